//! Exact rates: what arrives a second against what was asked, from slow to four fifths of the top, by both backends.

use std::path::Path;

use super::arrivals::{self, Run};
use super::network::{Network, Plan};
use super::{LIMIT, Programs, load, median, reported, succeeded, table};
use crate::failure::Outcome;

/// Seconds of a run.
const SECONDS: &str = "4";
/// Runs of each rate.
const RUNS: usize = 3;

/// Measures; `top` is the top speed with AF_XDP, frames a second.
///
/// # Errors
/// fcn-gen fails.
pub fn run(programs: &Programs, scratch: &Path, top: Option<f64>) -> Outcome {
    let network = Network::new(&Plan::default())?;
    let scenario = load::scenario(scratch, load::LENS[0])?;
    let mut rows = Vec::new();
    for backend in ["xdp", "packet"] {
        let play = |rate: Option<u64>| -> Outcome<Run> {
            let mut command = network.sender.command(&programs.generator);
            command.arg("run").arg(&scenario);
            command.args(["--backend", backend, "--json"]);
            command.args(["--duration", SECONDS, "--iface", network.sender.interface()]);
            if let Some(rate) = rate {
                command.args(["--rate", &format!("{rate}pps")]);
            }
            let run = arrivals::run(&network, &mut command, LIMIT)?;
            succeeded(&run, "fcn-gen run")?;
            Ok(run)
        };
        let fastest = match (backend, top) {
            ("xdp", Some(top)) => top,
            _ => play(None)?.steady_pps.unwrap_or(0.0),
        };
        let shares =
            [0.25, 0.5, 0.8].map(|share| (fastest * share / 1_000.0).round() as u64 * 1_000);
        for rate in [1_000, 10_000, 100_000].into_iter().chain(shares) {
            let (mut errors, mut bursts, mut lost, mut cores) = (Vec::new(), 0.0, 0.0, Vec::new());
            for _ in 0..RUNS {
                let run = play(Some(rate))?;
                let seconds = reported(&run, "fcn-gen run", "/seconds")?;
                let measured = run.steady_pps.unwrap_or(f64::NAN);
                errors.push((measured / rate as f64 - 1.0) * 100.0);
                bursts = reported(&run, "fcn-gen run", "/timing/largest_batch")?.max(bursts);
                lost += reported(&run, "fcn-gen run", "/sent")? - run.arrived.rx_packets as f64;
                cores.push(run.cpu.both().as_secs_f64() / seconds);
            }
            let worst =
                errors.iter().copied().fold(
                    0.0,
                    |worst: f64, e| if e.abs() > worst.abs() { e } else { worst },
                );
            rows.push(vec![
                format!(
                    "{backend}, {rate} packet/s ({:.0} % of the top)",
                    rate as f64 / fastest * 100.0
                ),
                format!("{:+.4}", median(&errors)),
                format!("{worst:+.4}"),
                format!("{bursts}"),
                format!("{lost}"),
                format!("{:.2}", median(&cores)),
            ]);
        }
    }
    let heading = ["", "error %", "worst %", "largest burst", "lost", "cores"];
    table::print(&heading, &rows);
    Ok(())
}
