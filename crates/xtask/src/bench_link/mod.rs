//! `cargo xtask bench link`: rates and exact times of frames over a veth pair between two network
//! namespaces, compared with a bare AF_XDP loop and other programs in the same run. Arrivals are
//! counted, never a sender's own report.
//!
//! Top speed is in `top.rs`, the cost of nodes in the wire in `forward.rs`, replaying at a
//! capture's own times in `replay.rs`, exact rates in `exact.rs`; the frames sent are in `load.rs`.

pub mod arrivals;
mod exact;
mod forward;
pub mod load;
// Shared with the tests of the tools.
#[allow(clippy::pedantic, reason = "tests' own habits")]
#[path = "../../../link/tests/common/netns.rs"]
mod netns;
pub mod peers;
mod replay;
pub mod timing;
mod top;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use self::arrivals::Link;
use self::peers::{Peer, peers};
use crate::failure::Outcome;
use crate::figures::Ratio;
use crate::packages::{self, Use};
use crate::report::heading;
use crate::tally::SKIP_MARK;
use crate::{cargo, process};

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Top speed
    Top,
    /// Exact rates
    Exact,
    /// Forwarding by a congestion point, and how long its and a proxy's notifications take
    Forward,
    /// Replay at a capture's own times
    Replay,
}

/// Runs the benchmark, or only those `parts` of it, with `rounds` rounds of each comparison;
/// returns the ratios to other programs.
///
/// # Errors
/// Returns an error if something cannot be built, or a program under test fails.
pub fn run(rounds: usize, parts: &[Part]) -> Outcome<Vec<Ratio>> {
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    if let Some(reason) = Link::unavailable() {
        println!("{SKIP_MARK} the benchmark of the link: {reason}");
        return Ok(Vec::new());
    }
    packages::ensure(&[Use::Run, Use::Filter, Use::Network])?;
    if let Err(failure) = packages::ensure(&[Use::Peer]) {
        println!("{failure:#}");
    }
    let programs = Programs::ready()?;
    let (mut fastest, mut ratios) = (None, Vec::new());
    if wanted(Part::Top) {
        heading("Top speed: arrivals, and time in the processor for each");
        for queues in [1, 2] {
            for len in load::LENS {
                let reached = top::run(&programs, (queues, len), rounds, &mut ratios)?;
                if (queues, len) == (1, load::LENS[0]) {
                    fastest = reached;
                }
            }
        }
    }
    if wanted(Part::Exact) {
        heading("\nExact rate: arrivals a second against what was asked");
        exact::run(&programs, fastest)?;
    }
    if wanted(Part::Forward) {
        heading("\nA node in the wire: forwarding, and notifying");
        forward::run(&programs, rounds, &mut ratios)?;
    }
    if !wanted(Part::Replay) {
        return Ok(ratios);
    }
    if process::which("tcpdump").is_none() {
        println!("{SKIP_MARK} replaying at a capture's own times needs tcpdump");
        return Ok(ratios);
    }
    heading("\nReplay at a capture's own times: gaps between arrivals");
    for gap in [500_000, 10_000] {
        replay::run(&programs, gap, rounds, &mut ratios)?;
    }
    Ok(ratios)
}

/// Time limit of one run.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Processor of the observers; senders of one queue use the last one, as our tools do by default.
pub const WATCHERS: &str = "0";

/// The programs under test, and those that they are compared with.
#[derive(Debug)]
pub struct Programs {
    /// `fcn-gen`.
    pub generator: PathBuf,
    /// `fcn-replay`.
    pub replayer: PathBuf,
    /// Sends as fast as AF_XDP accepts frames.
    pub bare_loop: PathBuf,
    /// Does nothing but keep time.
    pub bare_timer: PathBuf,
    /// Passes frames on, or back, without reading them.
    pub bare_forwarder: PathBuf,
    /// Measures the time until responses.
    pub round_trip: PathBuf,
    /// Other programs, as far as available.
    pub peers: Vec<Peer>,
    /// Folder for temporary files.
    pub scratch: PathBuf,
    /// Processor of a sender of one queue.
    pub senders: String,
}

impl Programs {
    /// Builds our programs, and finds the others; prints those that are missing.
    ///
    /// # Errors
    /// Returns an error if one cannot be built.
    pub fn ready() -> Outcome<Self> {
        let mut at_hand = Vec::new();
        for found in peers() {
            match found {
                Ok(peer) => at_hand.push(peer),
                Err(missing) => println!("{SKIP_MARK} {missing}"),
            }
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            generator: cargo::build_tool(cargo::GENERATOR, true)?,
            replayer: cargo::build_tool(cargo::REPLAYER, true)?,
            bare_loop: cargo::build_example("fcn-link", "bare_loop", true)?,
            bare_timer: cargo::build_example("fcn-link", "bare_timer", true)?,
            bare_forwarder: cargo::build_example("fcn-link", "bare_forwarder", true)?,
            round_trip: cargo::build_example("fcn-link", "round_trip", true)?,
            peers: at_hand,
            scratch: cargo::target_folder("bench-link/scratch")?,
            senders: (processors - 1).to_string(),
        })
    }
}
