//! `cargo xtask bench link`: how fast and how exactly frames leave, over a veth pair between two network namespaces, against a
//! bare AF_XDP loop and other programs in the same run. Counted is what arrives, never what a sender says.
//!
//! Top speed is in `top.rs`, what nodes in the wire cost in `forward.rs`, replaying at a capture's own times in `replay.rs`, exact rates in `exact.rs`; what they
//! send in `load.rs`.

pub mod arrivals;
mod exact;
mod forward;
pub mod load;
// Where the tests of the tools send, too.
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

/// Runs the benchmark, or only those `parts` of it, with so many rounds of each comparison; returns what compares with others.
///
/// # Errors
/// Something cannot be built, or a program under test fails.
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

/// The longest that one run may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The processor of what watches; senders of one queue have the last, which our tools take by themselves.
pub const WATCHERS: &str = "0";

/// The programs under test, and what they are compared with.
#[derive(Debug)]
pub struct Programs {
    /// `fcn-gen`.
    pub generator: PathBuf,
    /// `fcn-replay`.
    pub replayer: PathBuf,
    /// Sends as fast as AF_XDP takes frames.
    pub bare_loop: PathBuf,
    /// Has nothing to do but to keep time.
    pub bare_timer: PathBuf,
    /// Passes frames on, or back, unread.
    pub bare_forwarder: PathBuf,
    /// Measures how long answers take.
    pub round_trip: PathBuf,
    /// Other programs, as far as they are at hand.
    pub peers: Vec<Peer>,
    /// Where files may be put.
    pub scratch: PathBuf,
    /// The processor of a sender of one queue.
    pub senders: String,
}

impl Programs {
    /// Builds ours, and finds the others; says which are not at hand.
    ///
    /// # Errors
    /// One cannot be built.
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
