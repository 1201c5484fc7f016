//! Building the newest tcpreplay with AF_XDP, from Debian's source package, without touching the system: a private apt
//! state, headers unpacked into a folder. Not here: choosing among the tcpreplays at hand (`peers.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::process;

/// The Debian suite with the newest.
const SUITE: &str = "sid";
/// Verifies the suite's index.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What AF_XDP needs beside tcpreplay, from the system's own suite: headers, and the libraries of just that version.
const PACKAGES: &[&str] = &["libxdp-dev", "libxdp1", "libbpf-dev", "libbpf1"];
/// What the build calls.
const PROGRAMS: &[&str] = &["apt-get", "dpkg-deb", "tar", "xz", "make", "cc", "timeout"];
/// Seconds that fetching from a mirror may take, and compiling.
const FETCHING: &str = "90";
const COMPILING: &str = "180";
/// Beside the program: the folder with the libraries that it was linked with.
const LIBRARIES: &str = "lib";

/// Builds the newest tcpreplay with `--xdp` in `cache`, or returns the one built there before.
///
/// # Errors
/// It cannot be had here: no Debian, a program or a header is missing, the mirror has no source packages, or the build fails.
pub fn build_tcpreplay(cache: &Path) -> Outcome<PathBuf> {
    let folder = cache.join("tcpreplay");
    let program = folder.join("tcpreplay");
    if program.is_file() {
        return Ok(program);
    }
    for name in PROGRAMS {
        if process::which(name).is_none() {
            return Err(Failure::new(format!("building it needs {name}")).todo(help()));
        }
    }
    let work = folder.join("work");
    make_folder(&work)?;
    let built = build_in(&work, &folder, &program);
    // Some 60 MB of indexes and objects.
    let _ = std::fs::remove_dir_all(&work);
    built.map(|()| program)
}

fn build_in(work: &Path, folder: &Path, program: &Path) -> Outcome {
    let source = fetch_source(work)?;
    let libraries = unpack_libraries(work)?;
    let built = compile(&source, &libraries)?;
    // Libraries first: a program that is there is taken for complete.
    let beside = folder.join(LIBRARIES);
    make_folder(&beside)?;
    process::stdout(
        Command::new("cp")
            .args(["--recursive", "--no-dereference"])
            .arg(libraries.join("."))
            .arg(&beside),
    )?;
    std::fs::copy(&built, program).map_err(|e| Failure::io("write", program, &e))?;
    Ok(())
}

/// Lets a tcpreplay find the libraries and BPF objects that stand beside it, if such do. A program from elsewhere
/// finds its own.
pub fn environment(command: &mut Command, program: &Path) {
    let Some(libraries) = program.parent().map(|folder| folder.join(LIBRARIES)) else {
        return;
    };
    let objects = libraries.join("bpf");
    if objects.is_dir() {
        command.env("LD_LIBRARY_PATH", &libraries);
        command.env("LIBXDP_OBJECT_PATH", &objects);
    }
}

fn help() -> &'static str {
    "build tcpreplay 4.5 or newer with libxdp-dev and libbpf-dev installed, and name it in FCN_TCPREPLAY"
}

fn make_folder(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("make", folder, &e))
}

/// Fetches and unpacks the source package, and returns its folder.
fn fetch_source(work: &Path) -> Outcome<PathBuf> {
    let targets = process::stdout(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(ORIGIN) $(REPO_URI) $(CODENAME)",
        "Created-By: Packages",
    ]))?;
    let uri = debian_mirror(&targets)
        .ok_or_else(|| Failure::new("apt knows no Debian mirror").todo(help()))?;
    let (state, archives) = (
        work.join("apt/lists/partial"),
        work.join("apt/archives/partial"),
    );
    make_folder(&state)?;
    make_folder(&archives)?;
    let sources = work.join("apt/sources.list");
    let signed = if Path::new(KEYRING).is_file() {
        format!("[signed-by={KEYRING}] ")
    } else {
        String::new()
    };
    std::fs::write(&sources, format!("deb-src {signed}{uri} {SUITE} main\n"))
        .map_err(|e| Failure::io("write", &sources, &e))?;
    let apt = |words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args([FETCHING, "apt-get", "--quiet", "--quiet"]);
        let set = |name: &str, path: &Path| format!("--option={name}={}", path.display());
        command.args([
            set("Dir::Etc::SourceList", &sources),
            set("Dir::Etc::SourceParts", Path::new("/dev/null")),
            set("Dir::State::Lists", &work.join("apt/lists")),
            set("Dir::Cache", &work.join("apt")),
            // A mirror may be a snapshot.
            "--option=Acquire::Check-Valid-Until=false".to_owned(),
            "--option=Acquire::Languages=none".to_owned(),
            "--option=APT::Sandbox::User=root".to_owned(),
        ]);
        command.args(words).current_dir(work);
        let output = process::output(&mut command)?;
        if output.status.success() {
            return Ok(());
        }
        // The first complaint says it; the rest repeat it for each file.
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said
            .lines()
            .find(|l| l.starts_with("E:"))
            .unwrap_or("no answer in time");
        Err(Failure::new(format!(
            "`apt-get {}` for Debian {SUITE} failed ({}): {first}",
            words.join(" "),
            output.status
        ))
        .todo(help()))
    };
    apt(&["update"])?;
    // apt checks the archive against the signed index; dpkg-source, which would unpack it, need not be there.
    apt(&["source", "--download-only", "--only-source", "tcpreplay"])?;
    let archive = find(work, &|name| {
        name.starts_with("tcpreplay_") && name.contains(".orig.tar.") && !name.ends_with(".asc")
    })
    .ok_or_else(|| Failure::new("the source package has no archive"))?;
    let source = work.join("source");
    make_folder(&source)?;
    process::stdout(
        Command::new("tar")
            .args(["--extract", "--strip-components=1", "--file"])
            .arg(&archive)
            .arg("--directory")
            .arg(&source),
    )?;
    Ok(source)
}

/// The mirror of the suite that this system runs; those of updates stand after it, those of other projects are no Debian.
fn debian_mirror(targets: &str) -> Option<&str> {
    targets.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (origin, uri, suite) = (words.next()?, words.next()?, words.next()?);
        (origin == "Debian" && !suite.contains('-')).then_some(uri)
    })
}

/// Unpacks headers and libraries, and returns the folder of the libraries; the headers are in `usr/include` beside.
fn unpack_libraries(work: &Path) -> Outcome<PathBuf> {
    let packages = work.join("packages");
    make_folder(&packages)?;
    process::stdout(
        Command::new("timeout")
            .args([FETCHING, "apt-get", "--quiet", "--quiet"])
            .args(["--option=APT::Sandbox::User=root", "download"])
            .args(PACKAGES)
            .current_dir(&packages),
    )
    .map_err(|e| e.todo("apt-get update"))?;
    let root = work.join("root");
    for name in list(&packages) {
        process::stdout(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(packages.join(name))
                .arg(&root),
        )?;
    }
    let usr = root.join("usr/lib");
    list(&usr)
        .iter()
        .map(|name| usr.join(name))
        .find(|folder| folder.join("libxdp.so.1").exists())
        .ok_or_else(|| Failure::new("libxdp1 holds no libxdp.so.1"))
}

/// Builds `source` with the libraries in `libraries`, and returns the program.
fn compile(source: &Path, libraries: &Path) -> Outcome<PathBuf> {
    let include = libraries.join("../../include");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let run = |command: &mut Command| process::stdout(command.current_dir(source));
    let limited = || {
        let mut command = Command::new("timeout");
        command.arg(COMPILING);
        command
    };
    run(limited()
        .args(["./configure", "--quiet"])
        .env("CFLAGS", format!("-O2 -I{}", include.display()))
        .env(
            "LDFLAGS",
            format!("-L{0} -Wl,-rpath-link,{0}", libraries.display()),
        ))
    .map_err(|e| e.todo("apt-get install build-essential libpcap-dev"))?;
    run(limited().args(["make", "--silent", &format!("--jobs={jobs}")]))?;
    let program = source.join("src/tcpreplay");
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", libraries).arg("--version");
    let output = process::output(&mut command)?;
    if String::from_utf8_lossy(&output.stderr).contains("AF_XDP") {
        Ok(program)
    } else {
        Err(Failure::new("its configure did not find libxdp").todo(help()))
    }
}

/// The names in a folder, in order.
fn list(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The first file in a folder with such a name.
fn find(folder: &Path, such: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    list(folder)
        .into_iter()
        .find(|name| such(name))
        .map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_mirror_of_the_suite() {
        let targets = "Other http://other.example/ stable\n\
            Debian http://debian.example/security/ bookworm-security\n\
            Debian http://debian.example/debian/ bookworm\n";
        assert_eq!(
            debian_mirror(targets),
            Some("http://debian.example/debian/")
        );
        assert_eq!(debian_mirror("Ubuntu http://ubuntu.example/ noble\n"), None);
        assert_eq!(debian_mirror("$(ORIGIN)\n"), None);
    }

    #[test]
    fn only_what_stands_beside_its_libraries_gets_them() {
        let mut command = Command::new("x");
        environment(&mut command, Path::new("/usr/bin/tcpreplay"));
        assert_eq!(command.get_envs().count(), 0);
        let folder = std::env::temp_dir().join(format!("fcn-environment-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib/bpf")).unwrap();
        environment(&mut command, &folder.join("tcpreplay"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(command.get_envs().count(), 2);
    }

    #[test]
    fn one_built_before_is_taken() {
        let cache = std::env::temp_dir().join(format!("fcn-built-{}", std::process::id()));
        let program = cache.join("tcpreplay/tcpreplay");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "").unwrap();
        let built = build_tcpreplay(&cache);
        std::fs::remove_dir_all(&cache).unwrap();
        assert_eq!(built, Ok(program));
        let failure = build_tcpreplay(Path::new("/dev/null/none")).unwrap_err();
        assert!(failure.to_string().starts_with("cannot make "), "{failure}");
    }
}
