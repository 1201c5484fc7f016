//! `cargo xtask bench`: the project's benchmarks, which print figures and ratios to a peer measured in the same run.
//! Not here: the benchmarks, which stand in the `benches` folders of the crates that they measure.

use std::process::Command;

use clap::ValueEnum;

use crate::failure::{Failure, Outcome};
use crate::report::{Ink, ink};
use crate::{cargo, process};

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// Building a frame: template and patched ICRC, against summing it anew and against copying
    Frames,
    /// Writing pcapng, against pcap-file and a raw write
    CaptureFile,
    /// Simulating an incast of 1,000 flows and writing it
    Simulation,
}

impl Bench {
    /// Package and name of the bench target.
    const fn target(self) -> (&'static str, &'static str) {
        match self {
            Self::Frames => ("fcn-wire", "frame_building"),
            Self::CaptureFile => ("fcn-link", "capture_writer"),
            Self::Simulation => ("fcn-gen", "simulation"),
        }
    }
}

/// Runs the benchmarks named, or all.
///
/// # Errors
/// One cannot be built or fails.
pub fn run(named: &[Bench]) -> Outcome {
    let all = Bench::value_variants();
    let chosen = if named.is_empty() { all } else { named };
    for bench in chosen {
        let (package, target) = bench.target();
        println!("{}", ink(Ink::Bold, &format!("{package}: {target}")));
        let mut command: Command = cargo::command(&["bench", "-p", package, "--bench", target])?;
        let status = command.status().map_err(|e| {
            Failure::new(format!(
                "{} cannot be run: {e}",
                process::command_line(&command)
            ))
        })?;
        if !status.success() {
            return Err(Failure::new(format!(
                "{} failed: {status}",
                process::command_line(&command)
            )));
        }
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
            let (package, target) = bench.target();
            let folder = match package.strip_prefix("fcn-").unwrap() {
                "gen" => "fcn-gen".to_owned(),
                other => format!("crates/{other}"),
            };
            let file = root
                .join(Path::new(&folder))
                .join(format!("benches/{target}.rs"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
