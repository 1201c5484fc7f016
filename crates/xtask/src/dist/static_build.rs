//! One archive of the three tools that runs on any Linux of this architecture: nothing of the
//! system is linked, so it depends neither on a version of the C library nor on libpcap. libpcap's
//! source comes from Debian, without the parts that need other libraries (D-Bus, USB, Bluetooth,
//! RDMA devices).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::failure::Outcome;
use crate::{apt, process};

use super::binaries::{MUSL, TOOLS};
use super::notices;
use super::origin::Origin;

/// Debian release that libpcap is taken from.
const RELEASE: &str = "bookworm";

/// Its licence, next to the library.
const LICENCE: &str = "LICENSE";

/// Requirements of the build, besides Rust's standard library for the target: programs and their
/// packages.
const NEEDS: [(&str, &str); 4] = [
    ("musl-gcc", "musl-tools"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("make", "make"),
];

/// musl comes without the kernel's headers; the system's are searched after musl's own.
const COMPILER: &str = "musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu";

const WITHOUT: [&str; 7] = [
    "--host=x86_64-linux-musl",
    "--with-pcap=linux",
    "--disable-shared",
    "--disable-dbus",
    "--disable-rdma",
    "--without-libnl",
    "--disable-usb",
];

/// Returns a static libpcap and its version, or the reason why it cannot be built here.
pub(super) fn ready(target: &Path) -> Outcome<Result<(PathBuf, String), String>> {
    let mut rustc = Command::new("rustc");
    let folder = process::stdout(rustc.args(["--print", "target-libdir", "--target", MUSL]))?;
    if !Path::new(folder.trim()).is_dir() {
        return Ok(Err(format!(
            "Rust's standard library for {MUSL} is not installed; run `rustup target add {MUSL}`"
        )));
    }
    for (program, package) in NEEDS {
        if process::which(program).is_none() {
            return Ok(Err(format!(
                "{program} is not installed (in Debian: package {package})"
            )));
        }
    }
    let folder = target.join("libpcap");
    fs_err::create_dir_all(&folder)?;
    let (library, version) = (folder.join("libpcap.a"), folder.join("version"));
    if library.is_file() && version.is_file() {
        let version = fs_err::read_to_string(version)?;
        return Ok(Ok((folder, version)));
    }
    let source = tempfile::tempdir()?;
    let source = match apt::source(source.path(), RELEASE, "libpcap") {
        Ok(archive) => {
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--file").arg(&archive);
            process::stdout(tar.arg("--directory").arg(source.path()))?;
            source
        }
        Err(failure) => return Ok(Err(format!("no source of libpcap: {failure:#}"))),
    };
    let entries = fs_err::read_dir(source.path())?
        .flatten()
        .map(|entry| entry.path());
    let root = entries.filter(|path| path.join("configure").is_file());
    let root = root.last().context("libpcap's source has no `configure`")?;
    let mut configure = Command::new("./configure");
    configure
        .current_dir(&root)
        .args(WITHOUT)
        .arg("--disable-bluetooth");
    // Keeps paths of this machine out of assertions.
    process::stdout(configure.env("CC", COMPILER).env("CFLAGS", "-O2 -g0"))?;
    process::stdout(Command::new("make").arg("libpcap.a").current_dir(&root))?;
    let number = fs_err::read_to_string(root.join("VERSION"))?
        .trim()
        .to_owned();
    fs_err::copy(root.join("LICENSE"), folder.join(LICENCE))?;
    fs_err::copy(root.join("libpcap.a"), library)?;
    fs_err::write(version, &number)?;
    Ok(Ok((folder, number)))
}

/// Packs the tools, their manuals, completions and licences, and returns the archive's path.
pub(super) fn archive(
    root: &Path,
    tools: &[PathBuf; 3],
    (shared, libpcap): (&Path, &Path),
    origin: &Origin,
    output: &Path,
) -> Outcome<PathBuf> {
    let mut readelf = Command::new("readelf");
    let needs = process::stdout(readelf.args(["--wide", "--dynamic"]).arg(&tools[0]))?;
    if needs.contains("(NEEDED)") {
        bail!("{} is not static", tools[0].display());
    }
    let name = format!("fcn-tools-{}-x86_64-linux", origin.version);
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join(&name);
    for (tool, name) in tools.iter().zip(TOOLS) {
        crate::files::replace(tool, &tree.join("bin").join(name), 0o755)?;
    }
    let mut copy = Command::new("cp");
    process::stdout(copy.arg("--recursive").arg(shared).arg(tree.join("share")))?;
    fs_err::write(tree.join("crates.txt"), notices::text(root, &TOOLS)?)?;
    crate::files::replace(&libpcap.join(LICENCE), &tree.join("libpcap.txt"), 0o644)?;
    for file in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "docs/packages.md",
        "docs/deploy/Containerfile",
        "docs/deploy/daemonset.yaml",
        "docs/deploy/fcn-top.service",
    ] {
        let to = tree.join(Path::new(file).file_name().context("a file")?);
        crate::files::replace(&root.join(file), &to, 0o644)?;
    }
    let file = output.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.env("XZ_OPT", "-6 --threads=1").env("LC_ALL", "C");
    tar.args([
        "--create",
        "--xz",
        "--sort=name",
        "--format=ustar",
        "--mode=go=rX,u+rw,a-s",
    ]);
    tar.args(["--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", origin.epoch))
        .arg("--file")
        .arg(&file);
    process::stdout(tar.arg("--directory").arg(folder.path()).arg(&name))?;
    Ok(file)
}
