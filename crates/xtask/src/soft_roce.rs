//! `cargo xtask guest --soft-roce`: sample captures of packets that do not come from this project's
//! emitter, but from Linux's soft RoCE (rdma_rxe) between two hosts in an emulated guest.
//! `soft_roce.sh` runs in the guest; this module prepares its input, and processes its captures.
//! The result differs each time: the counts for `loss` and `ce` in fcn-top's `headless.rs` and in
//! `captures/index.md` are updated by hand.
//! Not here: the guest itself (`guest.sh`), and the list of cases (`captures/samples.rs`).

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use crate::failure::Outcome;
use crate::{captures, cargo, process};

const SCRIPT: &str = include_str!("soft_roce.sh");

/// Programs that the script runs, and kernel modules that it needs.
const PROGRAMS: &str = "ethtool ip nc.openbsd rdma tc tcpdump rping rstream ib_atomic_lat ib_read_bw ib_send_bw ib_send_lat ib_write_bw";
const MODULES: &str =
    "rdma_rxe ib_uverbs rdma_ucm veth sch_codel sch_netem sch_prio sch_tbf cls_u32";

/// Samples that it sends notifications from: a CNP, and Fast CNPs.
const NOTIFICATIONS: [&str; 2] = ["formats-cnp.pcapng", "formats-fast-cnp.pcapng"];

/// Names of the hosts in the script, and of the interfaces in the captures.
const HOSTS: [&str; 2] = ["left", "right"];

/// Size of the guest's output disk, in octets.
const DISK: u64 = 64 << 20;

/// Captures `cases` in the guest, or all if none is named, and writes the samples; other output
/// stays below `folder`.
///
/// # Errors
/// A program cannot be built, the guest broke, a case failed in it, or a capture cannot be written.
pub fn capture(
    folder: &Path,
    cases: &[String],
    guest: impl FnOnce(&[OsString]) -> Command,
) -> Outcome {
    let cases: Vec<_> = (captures::CASES.iter())
        .filter(|(name, _)| cases.is_empty() || cases.iter().any(|case| case == name))
        .collect();
    let samples = captures::folder()?;
    let mut words: Vec<OsString> = ["sh", "-c", SCRIPT, "soft_roce.sh"].map(Into::into).into();
    words.push(cargo::build_tool(cargo::REPLAYER, false)?.into());
    words.extend(NOTIFICATIONS.map(|name| samples.join(name).into()));
    words.push(cargo::build_tool(cargo::GENERATOR, true)?.into());
    let names: Vec<_> = cases.iter().map(|(name, _)| *name).collect();
    words.push(names.join(" ").into());
    let disk = tempfile::NamedTempFile::new()?;
    disk.as_file().set_len(DISK)?;
    let mut guest = guest(&words);
    guest.env("DISK", disk.path());
    guest.env("PROGRAMS", PROGRAMS).env("MODULES", MODULES);
    let status = process::spawn(&mut guest)?.0.wait()?;

    let written = folder.join("soft-roce");
    if written.exists() {
        fs_err::remove_dir_all(&written)?;
    }
    tar::Archive::new(fs_err::File::open(disk.path())?).unpack(&written)?;
    ensure!(
        status.success(),
        "not every case was captured ({status}): see above, and {}",
        written.display()
    );
    for (case, about) in cases {
        let name = format!("{}-{case}", captures::RECORDED);
        captures::gather(&name, about, &written.join(case), &HOSTS)?;
    }
    println!(
        "Output of the programs, and soft RoCE's counters: {}\n`cargo xtask captures` decodes the captures",
        written.display()
    );
    Ok(())
}
