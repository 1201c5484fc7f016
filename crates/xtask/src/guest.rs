//! `cargo xtask guest`: runs a program in an emulated guest with a current kernel, whose two
//! network interfaces are wired to each other and whose drivers support AF_XDP zero copy. The
//! script `guest.sh` runs the guest; this module prepares its input.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use clap::{Args, ValueEnum};

use anyhow::ensure;

use crate::failure::Outcome;
use crate::report::heading;
use crate::{apt, captures, cargo, process, soft_roce};

const SCRIPT: &str = include_str!("guest.sh");

/// Release that packages are fetched from: zero copy on virtio-net and igb is newer than the
/// kernels of stable releases.
const SUITE: &str = "sid";

/// Emulator, the guest's tools, and the newest kernel; then the programs that set up, use and
/// capture soft RoCE.
const PACKAGES: [&str; 10] = [
    "qemu-system-x86",
    "busybox-static",
    "ethtool",
    "linux-image-amd64",
    "ibverbs-providers",
    "iproute2",
    "netcat-openbsd",
    "perftest",
    "rdmacm-utils",
    "tcpdump",
];

/// Package and example program that runs if no command is named, and its arguments.
const CHECK: (&str, &str) = ("fcn-link", "link_check");
const CHECK_WORDS: [&str; 4] = ["exchange", "eth0", "eth1", "zero-copy"];

/// Options of `cargo xtask guest`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Interfaces of the guest; with two kinds, one guest after the other
    #[arg(long, value_enum, default_values_t = [Nic::Virtio, Nic::Igb])]
    pub nic: Vec<Nic>,
    /// Queues of each interface, and processors of the guest
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub queues: u8,
    /// Seconds until the program is stopped; the guest is stopped two minutes later
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub limit: u32,
    /// Build the link check with optimisation
    #[arg(long)]
    pub release: bool,
    /// Fetch kernel, emulator and tools again
    #[arg(long)]
    pub refresh: bool,
    /// Instead, capture two hosts with Linux's soft RoCE in a guest, and rewrite the sample
    /// captures of it
    #[arg(long, conflicts_with_all = ["nic", "queues", "command"])]
    pub soft_roce: bool,
    /// Capture only the soft RoCE case with this name; may be given several times
    #[arg(long, value_name = "NAME", requires = "soft_roce", value_parser = clap::builder::PossibleValuesParser::new(captures::CASES.map(|(name, _)| name)))]
    pub case: Vec<String>,
    /// Command to run in the guest, instead of the link check; a word that is the absolute path of
    /// a file is copied there, with the libraries that it loads. It finds eth0 wired to eth1, and
    /// GUEST_NIC and GUEST_QUEUES in its environment
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

/// A kind of emulated interface whose driver supports zero copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Nic {
    /// virtio-net
    Virtio,
    /// Intel 82576
    Igb,
}

/// Runs the command in each guest.
///
/// # Errors
/// The program cannot be built, a guest is not available or broke, or the command failed in one.
pub fn run(options: &Options) -> Outcome {
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "the guest is x86_64 and runs this machine's programs, which are not x86_64"
    );
    let folder = cargo::target_folder("guest")?;
    if options.refresh && apt::is_complete(&folder) {
        fs_err::remove_dir_all(apt::root(&folder))?;
    }
    let root = apt::unpacked(&folder, SUITE, &PACKAGES)?;
    if options.soft_roce {
        heading("Guest with soft RoCE");
        return soft_roce::capture(&folder, &options.case, |words| {
            guest(&root, "none", 1, options.limit, words)
        });
    }
    let mut command = options.command.clone();
    if command.is_empty() {
        let (package, example) = CHECK;
        command.push(cargo::build_example(package, example, options.release)?.into());
        command.extend(CHECK_WORDS.map(OsString::from));
    }
    let mut failed = Vec::new();
    for nic in &options.nic {
        let nic = format!("{nic:?}").to_lowercase();
        heading(&format!("Guest with {nic}"));
        let mut guest = guest(&root, &nic, options.queues, options.limit, &command);
        let status = process::spawn(&mut guest)?.0.wait()?;
        if !status.success() {
            failed.push(format!("{nic} ({status})"));
        }
    }
    let failures = failed.join(", ");
    ensure!(failed.is_empty(), "failed with {failures}: see above");
    Ok(())
}

/// Returns the command that runs `words` in a guest; it has the exit status of `words`.
fn guest(root: &Path, nic: &str, queues: u8, limit: u32, words: &[OsString]) -> Command {
    let mut guest = Command::new("sh");
    guest.args(["-c", SCRIPT, "guest.sh"]).args(words);
    guest.env("ROOT", root).env("NIC", nic);
    guest.env("QUEUES", queues.to_string());
    guest.env("LIMIT", limit.to_string());
    guest
}
