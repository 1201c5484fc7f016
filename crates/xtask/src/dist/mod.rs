//! `cargo xtask dist`: packages for Debian and Ubuntu, and one archive that runs on any Linux, in a
//! folder. The same commit gives the same octets, on any machine and at any time, if built with the
//! same Rust. A plugin for this machine's own Wireshark is in `install_plugin.rs`.

mod binaries;
mod deb;
mod elf;
mod notices;
mod origin;
mod static_build;
mod tools_package;
mod trial;
mod wireshark_package;

use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::failure::Outcome;
use crate::page::Compiler;
use crate::report::heading;
use crate::tally::SKIP_MARK;
use crate::wireshark::{TESTED, tested_minor};
use crate::{cargo, process};

use binaries::Target;
use origin::Origin;

/// Packages to make, and checks of them.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The folder for packages and archive [default: packages in the target folder]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Make the plugin's package for this Wireshark; may be given several times [default: all that
    /// it is tested with]
    #[arg(long, value_name = "VERSION", value_parser = tested_minor, conflicts_with = "no_plugin")]
    pub wireshark: Vec<(u32, u32)>,
    /// Make no package of the plugin
    #[arg(long)]
    pub no_plugin: bool,
    /// Make no static archive
    #[arg(long)]
    pub no_static: bool,
    /// Build everything a second time, in a clone elsewhere, and compare
    #[arg(long)]
    pub twice: bool,
    /// Install, run and remove the packages in fresh Debian 12, 13 and unstable, as root (needs
    /// debootstrap)
    #[arg(long)]
    pub r#try: bool,
    /// The same in this folder, which holds a system of Debian or Ubuntu to be thrown away; may be
    /// given several times
    #[arg(long, value_name = "FOLDER")]
    pub try_in: Vec<PathBuf>,
}

/// Makes the packages, and prints their paths.
///
/// # Errors
/// Returns an error if one cannot be made, or fails its trial.
pub fn run(options: &Options) -> Outcome {
    for (program, package) in [
        ("dpkg-deb", "dpkg"),
        ("readelf", "binutils"),
        ("gzip", "gzip"),
        ("xz", "xz-utils"),
        ("git", "git"),
    ] {
        process::need(program, package)?;
    }
    if options.r#try {
        process::need("debootstrap", "debootstrap")?;
    }
    let root = cargo::root()?;
    let output = match &options.output {
        Some(folder) => folder.clone(),
        None => cargo::target_folder("packages")?,
    };
    let target = cargo::target_folder("dist")?;
    let made = make(&root, &target, &output, options)?;
    if options.twice {
        twice(&root, &made, options)?;
    }
    if options.r#try {
        trial::in_fresh_systems(&made)?;
    }
    for folder in &options.try_in {
        heading(&format!("Try in {}", folder.display()));
        trial::run(folder, &made)?;
    }
    Ok(())
}

/// Makes everything from the sources in a folder.
fn make(root: &Path, target: &Path, output: &Path, options: &Options) -> Outcome<Vec<PathBuf>> {
    fs_err::create_dir_all(output)?;
    let origin = Origin::of(root)?;
    println!("fcn-tools {} of {}", origin.version, origin.date);
    let mut made = Vec::new();
    let mut done = |file: PathBuf| -> Outcome {
        println!("  {}  {}", origin::sha256(&file)?, file.display());
        made.push(file);
        Ok(())
    };
    // Reported before the steps that take long.
    let libpcap = match options.no_static {
        true => None,
        false => static_build::ready(target)?
            .map_err(|why| println!("{SKIP_MARK} static archive: {why}"))
            .ok(),
    };
    let page = Compiler::ready(false)
        .map_err(|why| println!("{SKIP_MARK} fcn.html: {why:#}"))
        .ok();
    let tools = binaries::tools(root, target, &Target::Debian)?;
    let shared = binaries::manual(root, target)?;
    if let Some(compiler) = page {
        binaries::page(root, target, &shared, &compiler)?;
    }
    done(tools_package::make(root, &tools, &shared, &origin, output)?)?;
    if !options.no_plugin {
        for version in TESTED {
            if options.wireshark.is_empty() || options.wireshark.contains(version) {
                done(wireshark_package::make(
                    root, target, *version, &origin, output,
                )?)?;
            }
        }
    }
    if let Some((libpcap, version)) = libpcap {
        let of = Target::Static((libpcap.clone(), version));
        let tools = binaries::tools(root, target, &of)?;
        let below = (shared.as_path(), libpcap.as_path());
        done(static_build::archive(root, &tools, below, &origin, output)?)?;
    }
    Ok(made)
}

/// Makes everything again from a clone of the last commit in another folder, and compares.
fn twice(root: &Path, made: &[PathBuf], options: &Options) -> Outcome {
    heading("Second build, elsewhere");
    ensure!(
        !Origin::of(root)?.dirty,
        "there are uncommitted changes, which a clone would lack\n  what to do: commit them"
    );
    let folder = tempfile::tempdir()?;
    let (clone, target, output) = (
        folder.path().join("clone"),
        folder.path().join("clone/target/dist"),
        folder.path().join("packages"),
    );
    let mut git = std::process::Command::new("git");
    process::stdout(
        git.args(["clone", "--quiet", "--no-hardlinks"])
            .args([root, &clone]),
    )?;
    fs_err::create_dir_all(&target)?;
    let again = make(&clone, &target, &output, options)?;
    ensure!(made.len() == again.len(), "a package was built only once");
    for (first, second) in made.iter().zip(&again) {
        ensure!(
            first.file_name() == second.file_name()
                && fs_err::read(first)? == fs_err::read(second)?,
            "{} differs when built again\n  what to do: compare both with diffoscope",
            first.display()
        );
    }
    println!("  identical: {} files", made.len());
    Ok(())
}
