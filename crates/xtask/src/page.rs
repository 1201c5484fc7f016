//! `cargo xtask page`: builds `fcn.html`, a page that reads a capture in a browser, for which
//! fcn-page is compiled to WebAssembly.
//! Not here: the page (`crates/page`).

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::failure::{Advice, Outcome};
use crate::{apt, cargo, process};

/// The page's name in packages.
pub const NAME: &str = "fcn.html";

/// Package of the page: its library is the WebAssembly module, its program puts the page together.
const PACKAGE: &str = "fcn-page";

const TARGET: &str = "wasm32-unknown-unknown";

/// Limit on the module's memory, in octets, as in `worker.js`.
const MEMORY: u32 = 1 << 30;

/// Limit on the page's length, in octets.
const MOST: usize = 4 << 20;

/// Debian's release with a Rust that is new enough, and packages of it.
const RELEASE: &str = "sid";
const PACKAGES: [&str; 3] = ["rustc", "libstd-rust-dev-wasm32", "lld"];

/// The file to write.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = NAME)]
    pub output: PathBuf,
    /// Install and fetch nothing
    #[arg(long)]
    pub no_install: bool,
}

/// Builds the page and writes it; returns a message with its location.
///
/// # Errors
/// It cannot be built or written.
pub fn run(options: &Options) -> Outcome<String> {
    let compiler = Compiler::ready(options.no_install)?;
    let page = build(&compiler, |_| {})?;
    fs_err::write(&options.output, &page)?;
    let (output, length) = (options.output.display(), page.len() as f64 / 1e6);
    Ok(format!(
        "{output}: {length:.2} MB, compiled by {}; open it in a browser",
        compiler.name()
    ))
}

/// A Rust compiler for WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// The one that cargo uses.
    Own,
    /// Debian's, unpacked into this folder.
    Debian(PathBuf),
}

impl Compiler {
    /// Returns a compiler: cargo's, for which rustup adds the target if it is missing and rustup
    /// can; else that of Debian unstable, fetched below the target folder. With `no_install`,
    /// nothing is added or fetched.
    ///
    /// # Errors
    /// There is none.
    pub fn ready(no_install: bool) -> Outcome<Self> {
        if is_present()? {
            return Ok(Self::Own);
        }
        let add = format!("rustup target add {TARGET}");
        let folder = cargo::target_folder("wasm")?;
        if no_install {
            if apt::is_complete(&folder) {
                return Self::debian(&folder);
            }
            bail!("Rust lacks the target {TARGET}\n  what to do: {add}");
        }
        let mut why = "there is no rustup".to_owned();
        if process::which("rustup").is_some() {
            println!("Adding to Rust: {add}");
            let mut rustup = Command::new("rustup");
            match process::stdout(rustup.args(["target", "add", TARGET])) {
                Ok(_) if is_present()? => return Ok(Self::Own),
                Ok(_) => why = "cargo uses another Rust than rustup's".to_owned(),
                Err(failure) => why = format!("{failure:#}"),
            }
        }
        println!(
            "Fetching Debian unstable’s {} below {}, since {why}",
            PACKAGES.join(", "),
            folder.display()
        );
        Self::debian(&folder).advise(add)
    }

    /// Returns Debian's, fetched if necessary.
    fn debian(folder: &Path) -> Outcome<Self> {
        ensure!(
            std::env::consts::ARCH == "x86_64",
            "packages are fetched for x86_64, which this machine is not"
        );
        let root = apt::unpacked(folder, RELEASE, &PACKAGES)?;
        let compiler = folder.join("rustc");
        // It needs its own C library, but not to be installed.
        let sysroot = format!("--sysroot {}", quoted(&root.join("usr")));
        wrap(&compiler, &root, "usr/bin/rustc", &sysroot)?;
        wrap(&folder.join("wasm-ld"), &root, "usr/bin/wasm-ld", "")?;
        process::stdout(Command::new(&compiler).arg("--version"))?;
        Ok(Self::Debian(folder.to_path_buf()))
    }

    /// Describes it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Own => "cargo’s Rust",
            Self::Debian(_) => "Debian unstable’s Rust",
        }
    }

    /// Makes a build use it.
    fn choose(&self, command: &mut Command) {
        if let Self::Debian(folder) = self {
            command
                .env("RUSTC", folder.join("rustc"))
                .env(
                    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER",
                    folder.join("wasm-ld"),
                )
                // Cargo's own wrappers and this compiler's artifacts do not fit together.
                .env_remove("RUSTC_WRAPPER")
                .env("CARGO_TARGET_DIR", folder.join("build"));
        }
    }
}

/// Returns true if cargo's compiler has the target's library.
fn is_present() -> Outcome<bool> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    let folder = process::stdout(command.current_dir(cargo::root()?))?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// Writes a script that runs a program of an unpacked release, with the release's libraries.
fn wrap(script: &Path, root: &Path, program: &str, arguments: &str) -> Outcome {
    let libraries = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib",
    ];
    let libraries = libraries.map(|folder| quoted(&root.join(folder))).join(":");
    let text = format!(
        "#!/bin/sh\nexec {} --library-path {libraries} {} {arguments} \"$@\"\n",
        quoted(&root.join("lib64/ld-linux-x86-64.so.2")),
        quoted(&root.join(program)),
    );
    fs_err::write(script, text)?;
    fs_err::set_permissions(script, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Quotes a path for `sh`.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Builds the page; `adapt` may add options to cargo's.
///
/// # Errors
/// The build failed, or the page is too long.
pub fn build(compiler: &Compiler, adapt: impl Fn(&mut Command)) -> Outcome<String> {
    let mut command = cargo::command(&["rustc", cargo::MESSAGES, "--package", PACKAGE, "--lib"])?;
    command.args([
        "--crate-type",
        "cdylib",
        "--profile",
        "page",
        "--target",
        TARGET,
    ]);
    compiler.choose(&mut command);
    adapt(&mut command);
    command.args(["--", "-C", &format!("link-arg=--max-memory={MEMORY}")]);
    let module = cargo::wasm_module(&cargo::messages(&mut command)?, PACKAGE)?;
    let mut command = cargo::command(&["build", cargo::MESSAGES, "--package", PACKAGE, "--bins"])?;
    adapt(&mut command);
    let maker = cargo::executable(&cargo::messages(&mut command)?, PACKAGE)?;
    let page = process::stdout(Command::new(maker).arg(module))?;
    ensure!(page.len() <= MOST, "the page has {} octets", page.len());
    page.ends_with("</html>\n")
        .then_some(page)
        .context("the page is incomplete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted() {
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }

    #[test]
    fn the_limit_is_that_of_the_page() {
        let worker = cargo::root().unwrap().join("crates/page/src/worker.js");
        let text = fs_err::read_to_string(worker).unwrap();
        let limit = format!("const MEMORY = 1 << {};", MEMORY.trailing_zeros());
        assert!(text.contains(&limit), "{limit}");
    }
}
