//! Exact rates: arrivals per second compared with the requested rate, from slow to four fifths of
//! the top, with both backends.

use super::arrivals::{Link, Run};
use super::load;
use super::{LIMIT, Programs};
use crate::failure::Outcome;
use crate::figures::{self, median, worst};

/// Duration of a run, in seconds.
const SECONDS: &str = "4";
/// Number of runs per rate.
const RUNS: usize = 3;
/// Name of the sender in error messages.
const SENDER: &str = "fcn-gen run";

/// Measures the rates; `top` is the top speed with AF_XDP, in frames per second.
///
/// # Errors
/// Returns an error if fcn-gen fails.
pub fn run(programs: &Programs, top: Option<f64>) -> Outcome {
    let link = Link::new(1)?;
    let scenario = load::frames(&programs.scratch, load::LENS[0])?;
    let mut rows = Vec::new();
    for backend in ["xdp", "packet"] {
        let play = |rate: Option<u64>| -> Outcome<Run> {
            let mut command = link.sender(None, &programs.generator);
            command.arg("run").arg(&scenario);
            command.args(["--backend", backend, "--json"]);
            command.args(["--duration", SECONDS, "--iface", link.sending()]);
            if let Some(rate) = rate {
                command.args(["--rate", &format!("{rate}pps")]);
            }
            let run = link.run(&mut command, LIMIT)?;
            run.succeeded(SENDER).map(|()| run)
        };
        let fastest = match (backend, top) {
            ("xdp", Some(top)) => top,
            _ => play(None)?.steady_pps.unwrap_or(0.0),
        };
        let shares = [0.25, 0.5, 0.8];
        let shares = shares.map(|share| (fastest * share / 1_000.0).round() as u64 * 1_000);
        for rate in [1_000, 10_000, 100_000].into_iter().chain(shares) {
            let (mut errors, mut bursts, mut lost, mut cores) = (Vec::new(), 0.0, 0.0, Vec::new());
            for _ in 0..RUNS {
                let run = play(Some(rate))?;
                let reported = |name| run.reported(SENDER, name);
                let measured = run.steady_pps.unwrap_or(f64::NAN);
                errors.push((measured / rate as f64 - 1.0) * 100.0);
                bursts = reported("/timing/largest_batch")?.max(bursts);
                lost += reported("/sent")? - run.arrived as f64;
                cores.push(run.cpu.both() / reported("/seconds")?);
            }
            let share = rate as f64 / fastest * 100.0;
            rows.push(vec![
                format!("{backend}, {rate} packet/s ({share:.0} % of the top)"),
                format!("{:+.4}", median(&errors)),
                format!("{:+.4}", worst(&errors)),
                format!("{bursts}"),
                format!("{lost}"),
                format!("{:.2}", median(&cores)),
            ]);
        }
    }
    let heading = "|error %|worst %|largest burst|lost|cores";
    figures::print(heading, &rows);
    Ok(())
}
