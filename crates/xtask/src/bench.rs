//! `cargo xtask bench`: the project's benchmarks, which print figures and ratios to a peer measured in the same run.
//! Not here: the benchmarks, which stand in the `benches` folders of the crates that they measure.

use clap::ValueEnum;

use crate::failure::Outcome;
use crate::report::heading;
use crate::{bench_link, bench_monitor, bench_plugin, cargo, process};

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// Building a frame: template and patched ICRC, against summing it anew and against copying
    Frames,
    /// Writing pcapng, against pcap-file and a raw write
    CaptureFile,
    /// Simulating an incast of 1,000 flows and writing it
    Simulation,
    /// Frames of a stress filled in, against copying them
    Stress,
    /// Reading captures, against pcap-file
    CaptureReader,
    /// What fcn-top costs a packet, alone and with reading
    Monitoring,
    /// Drawing a screen of fcn-top
    Drawing,
    /// fcn-top against tshark on a file, and on a link at top speed (needs root)
    Monitor,
    /// tshark with the plugin against tshark without, and against a dissector in Lua
    Plugin,
    /// Frames over a link: top speed, exact rates, replay, against a bare AF_XDP loop and other programs (needs root)
    Link,
}

impl Bench {
    /// Package and name of the bench target; those with other programs are chores of their own.
    const fn target(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Frames => Some(("fcn-wire", "frame_building")),
            Self::CaptureFile => Some(("fcn-link", "capture_writer")),
            Self::Simulation => Some(("fcn-gen", "simulation")),
            Self::Stress => Some(("fcn-gen", "stress")),
            Self::CaptureReader => Some(("fcn-link", "capture_reader")),
            Self::Monitoring => Some(("fcn-top", "monitor")),
            Self::Drawing => Some(("fcn-top", "draw")),
            Self::Monitor | Self::Plugin | Self::Link => None,
        }
    }
}

/// Rounds of each comparison where none are asked for.
const ROUNDS: usize = 7;
/// A round of tshark over a million packets takes minutes.
const SLOW_ROUNDS: usize = 3;

/// Which benchmarks, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only these
    name: Vec<Bench>,
    /// Rounds of each comparison with other programs [default: 7, of the plugin 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Packets that tshark reads in each run of the plugin's
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    packets: u64,
    /// Only this part of the benchmark over the link
    #[arg(long, value_name = "PART")]
    part: Vec<bench_link::Part>,
}

/// Runs the benchmarks named, or all.
///
/// # Errors
/// One cannot be built or fails.
pub fn run(options: &Options) -> Outcome {
    let rounds = |default| options.rounds.unwrap_or(default);
    let all = Bench::value_variants();
    let named = &options.name[..];
    for bench in if named.is_empty() { all } else { named } {
        let Some((package, target)) = bench.target() else {
            match bench {
                Bench::Monitor => bench_monitor::run(rounds(ROUNDS))?,
                Bench::Plugin => bench_plugin::run(rounds(SLOW_ROUNDS), options.packets)?,
                _ => bench_link::run(rounds(ROUNDS), &options.part)?,
            }
            continue;
        };
        heading(&format!("{package}: {target}"));
        let words = ["bench", "-p", package, "--bench", target];
        process::run(&mut cargo::command(&words)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_benchmark_is_there() {
        let root = cargo::root().unwrap();
        for bench in Bench::value_variants() {
            let Some((package, target)) = bench.target() else {
                continue;
            };
            let folder = match package.strip_prefix("fcn-").unwrap() {
                tool @ ("gen" | "top") => format!("fcn-{tool}"),
                other => format!("crates/{other}"),
            };
            let file = root
                .join(Path::new(&folder))
                .join(format!("benches/{target}.rs"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
