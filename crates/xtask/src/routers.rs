//! `cargo xtask routers`: the sample captures of real routers that carry the Proxy Node Capability: FRR's, in network namespaces
//! of this machine, from the packages of a Debian release that are unpacked, not installed. `routers.sh` starts them and what
//! gives them the capability (in IS-IS `isis_neighbour.py`), and captures; here is what it is given, and what is made of it. It is
//! never the same twice.
//! Not here: which cases there are (`captures/samples.rs`).

use std::process::Command;

use anyhow::ensure;

use crate::captures::{self, ROUTERS};
use crate::failure::Outcome;
use crate::packages::{self, Use};
use crate::report::heading;
use crate::{apt, cargo, process};

const SCRIPT: &str = include_str!("routers.sh");
const ISIS_NEIGHBOUR: &str = include_str!("isis_neighbour.py");

/// The release fetched from: the OSPF API of an older one's FRR (8.4) refuses Extended Prefix LSAs of an area.
const SUITE: &str = "trixie";

/// Routers, the client of their OSPF API, a BGP speaker that sends any attribute, and what they are started and captured with.
const PACKAGES: [&str; 5] = ["coreutils", "exabgp", "frr", "frr-pythontools", "tcpdump"];

/// Captures, and writes the samples; what the routers said stays below the target folder.
///
/// # Errors
/// This user is not root, what is needed cannot be had, a case failed, or a capture cannot be written.
pub fn run() -> Outcome {
    ensure!(
        process::is_root(),
        "network namespaces take root\n  what to do: run this as root"
    );
    packages::ensure(&[Use::Network])?;
    process::need("unshare", "util-linux")?;
    let folder = cargo::target_folder("routers")?;
    let root = apt::unpacked(&folder, SUITE, &PACKAGES)?;
    let written = folder.join("routers");
    if written.exists() {
        fs_err::remove_dir_all(&written)?;
    }
    heading("Routers");
    let mut script = Command::new("unshare");
    script.args([
        "--mount",
        "--pid",
        "--uts",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    script.args(["sh", "-c", SCRIPT, "routers.sh"]);
    script.arg(&written).arg(root).arg(ISIS_NEIGHBOUR);
    let status = process::spawn(&mut script)?.0.wait()?;
    ensure!(
        status.success(),
        "not every case was captured ({status}): see above, and {}",
        written.display()
    );
    for case in ROUTERS {
        let captured = written.join(case.name);
        captures::gather(&case.file(), case.about, &captured, &case.interfaces)?;
    }
    println!(
        "What the routers said: {}\n`cargo xtask captures` decodes the captures",
        written.display()
    );
    Ok(())
}
