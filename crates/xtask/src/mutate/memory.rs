//! tshark's memory over many packets, with the plugin and without: what grows only with the plugin is a leak.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::bench_link::load::stress;
use crate::failure::Outcome;
use crate::report::Took;
use crate::tshark::Tshark;
use crate::{cargo, figures, process};

/// Few flows and QPs, so that what Wireshark keeps of conversations is soon complete; every second packet is a
/// notification, of every kind.
const SCENARIO: &str = include_str!("few.toml");

/// What is run: its name, the arguments with the plugin, and without.
const RUNS: [(&str, &[&str], &[&str]); 2] = [
    ("one line", &[], &[]),
    // Everything is added to the tree, and nothing printed.
    (
        "-Y field",
        &["-Y", "rocev2.icrc.status == 99"],
        &["-Y", "infiniband.bth.opcode == 255"],
    ),
];
/// The part of the packets after which all flows are known.
const PART: u64 = 5;

/// Reads `count` packets with the plugin and without.
///
/// # Errors
/// A program fails.
pub fn run(with: &Tshark, without: &Tshark, count: u64) -> Outcome {
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let scratch = with.scratch()?;
    let (scenario, capture) = (scratch.join("few.toml"), scratch.join("few.pcapng"));
    fs_err::write(&scenario, SCENARIO)?;
    stress(&generator, &scenario, count, 1_000, &capture)?;
    println!(
        "most resident memory in MB over {count} packets, half of them notifications about 64 QPs"
    );
    let mut rows = Vec::new();
    for (name, plugin, stock) in RUNS {
        for (who, tshark, arguments) in [("without", without, stock), ("with", with, plugin)] {
            let began = Instant::now();
            let first = peak(tshark, &capture, count / PART, arguments)?;
            let all = peak(tshark, &capture, count, arguments)?;
            let took = Took(began.elapsed());
            rows.push(vec![
                format!("{name}, {who} the plugin"),
                format!("{:.1}", first / 1e6),
                format!("{:.1}", all / 1e6),
                format!("{:.2}", (all - first) / (count - count / PART) as f64),
                took.to_string(),
            ]);
        }
    }
    let heading = "|a fifth|all|octets a packet after a fifth|took";
    figures::print(heading, &rows);
    Ok(())
}

/// The most octets of memory that reading so many packets takes.
fn peak(tshark: &Tshark, capture: &Path, packets: u64, arguments: &[&str]) -> Outcome<f64> {
    let mut command = tshark.command();
    command.args(["-n", "-r"]).arg(tshark.inside(capture));
    command.args(["-c", &packets.to_string()]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(process::run(command.stderr(Stdio::null()))?.maxrss as f64)
}
