//! `cargo xtask routers`: sample captures of real routers that carry the Proxy Node Capability:
//! FRR's, in network namespaces of this machine, from packages of a Debian release that are
//! unpacked, not installed. `routers.sh` starts the routers and the programs that give them the
//! capability (in IS-IS `isis_neighbour.py`), and captures; this module prepares its input, and
//! processes its captures. The result differs each time.
//! Not here: the list of cases (`captures/samples.rs`).

use std::process::Command;

use anyhow::ensure;

use crate::captures::{self, ROUTERS};
use crate::failure::Outcome;
use crate::packages::{self, Use};
use crate::report::heading;
use crate::{apt, cargo, process};

const SCRIPT: &str = include_str!("routers.sh");
const ISIS_NEIGHBOUR: &str = include_str!("isis_neighbour.py");

/// Release that packages are fetched from: in an older one, the OSPF API of FRR (8.4) refuses
/// Extended Prefix LSAs of an area.
const SUITE: &str = "trixie";

/// Routers, the client of their OSPF API, a BGP speaker that sends any attribute, and the programs
/// that start and capture them.
const PACKAGES: [&str; 5] = ["coreutils", "exabgp", "frr", "frr-pythontools", "tcpdump"];

/// Captures, and writes the samples; the routers' output stays below the target folder.
///
/// # Errors
/// The user is not root, a requirement is not available, a case failed, or a capture cannot be
/// written.
pub fn run() -> Outcome {
    ensure!(
        process::is_root(),
        "network namespaces need root\n  what to do: run this as root"
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
        "Output of the routers: {}\n`cargo xtask captures` decodes the captures",
        written.display()
    );
    Ok(())
}
