//! `cargo xtask bench link`: how fast and how exactly frames leave, over a veth pair between two network namespaces, against a
//! bare AF_XDP loop and other programs in the same run. Counted is what arrives, never what a sender says.
//!
//! Top speed is in `top.rs`, replaying at a capture's own times in `replay.rs`, exact rates in `exact.rs`; what they
//! send in `load.rs`.

pub mod arrivals;
mod exact;
mod load;
pub mod network;
pub mod peers;
mod replay;
pub mod table;
pub mod tcpreplay_build;
pub mod timing;
mod top;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::bench_link::arrivals::{Recorder, Run};
use crate::bench_link::network::Network;
use crate::bench_link::peers::{Peer, peers};
use crate::failure::{Failure, Outcome};
use crate::packages::{self, Use};
use crate::report::{Ink, ink};
use crate::tally::SKIP_MARK;
use crate::{cargo, process};

/// The processor that a sender of one queue runs on: the last, which our tools take by themselves.
fn senders() -> String {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (count - 1).to_string()
}
/// Another one.
const OTHERS: &str = "0";
/// The longest that one run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The programs under test, and what they are compared with.
#[derive(Debug)]
struct Programs {
    generator: PathBuf,
    replayer: PathBuf,
    bare_loop: PathBuf,
    bare_timer: PathBuf,
    peers: Vec<Peer>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Top speed
    Top,
    /// Exact rates
    Exact,
    /// Replay at a capture's own times
    Replay,
}

/// Runs the benchmark, or only those `parts` of it, with so many rounds of each comparison.
///
/// # Errors
/// Something cannot be built, or a program under test fails.
pub fn run(rounds: usize, parts: &[Part]) -> Outcome {
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    if let Some(reason) = Network::unavailable() {
        println!("{SKIP_MARK} the benchmark of the link {reason}");
        return Ok(());
    }
    // The peers are skipped where they cannot be installed; what ours need has to be there.
    packages::ensure(&[Use::Filter, Use::Network])?;
    if let Err(failure) = packages::ensure(&[Use::Peer]) {
        println!("{failure}");
    }
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let replayer = cargo::build_tool(cargo::REPLAYER, true)?;
    let bare_loop = cargo::build_example("fcn-link", "bare_loop", true)?;
    let bare_timer = cargo::build_example("fcn-link", "bare_timer", true)?;
    let cache = cargo::root()?.join("target/bench-link");
    let scratch = cache.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(|e| Failure::io("create", &scratch, &e))?;
    let mut at_hand = Vec::new();
    for found in peers(&cache) {
        match found {
            Ok(peer) => at_hand.push(peer),
            Err(missing) => println!("{missing}"),
        }
    }
    let programs = Programs {
        generator,
        replayer,
        bare_loop,
        bare_timer,
        peers: at_hand,
    };
    let mut top = None;
    if wanted(Part::Top) {
        heading("Top speed: arrivals, and time in the processor for each");
        for queues in [1, 2] {
            for len in load::LENS {
                let reached = top::run(&programs, &scratch, (queues, len), rounds)?;
                if (queues, len) == (1, load::LENS[0]) {
                    top = reached;
                }
            }
        }
    }
    if wanted(Part::Exact) {
        heading("\nExact rate: arrivals a second against what was asked");
        exact::run(&programs, &scratch, top)?;
    }
    if !wanted(Part::Replay) {
        return Ok(());
    }
    if let Some(reason) = Recorder::unavailable() {
        println!("{SKIP_MARK} replaying at a capture's own times {reason}");
        return Ok(());
    }
    heading("\nReplay at a capture's own times: gaps between arrivals");
    for gap in [500_000, 10_000] {
        replay::run(&programs, &scratch, gap, rounds)?;
    }
    Ok(())
}

fn heading(text: &str) {
    println!("{}", ink(Ink::Bold, text));
}

/// A program of ours that fails has no figures.
pub(crate) fn succeeded(run: &Run, what: &str) -> Outcome {
    if run.status.success() && !run.cut_off {
        return Ok(());
    }
    let said = process::tail(&run.stderr, 12);
    let how = if run.cut_off {
        "did not end".to_owned()
    } else {
        run.status.to_string()
    };
    Err(Failure::new(format!("{what}: {how}{said}")))
}

/// A number in a tool's JSON report.
fn reported(run: &Run, what: &str, name: &str) -> Outcome<f64> {
    let report: serde_json::Value = serde_json::from_str(&run.stdout)
        .map_err(|e| Failure::new(format!("{what}: its report cannot be read: {e}")))?;
    report
        .pointer(name)
        .and_then(serde_json::Value::as_f64)
        .ok_or_else(|| Failure::new(format!("{what}: its report has no number {name}")))
}

/// The middle of the values; of two, the mean.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(high)) => *high,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        for (values, middle) in [
            (&[3.0, 1.0, 2.0][..], 2.0),
            (&[4.0, 1.0][..], 2.5),
            (&[7.0][..], 7.0),
        ] {
            assert!((median(values) - middle).abs() < 1e-9);
        }
        assert!(median(&[]).is_nan());
    }
}
