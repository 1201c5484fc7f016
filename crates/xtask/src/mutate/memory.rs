//! tshark's memory over many packets, with the plugin and without: what grows only with the plugin is a leak.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench_link::table;
use crate::failure::{Failure, Outcome};
use crate::report::Took;
use crate::tshark::Tshark;
use crate::{cargo, process};

/// Few flows and QPs, so that what Wireshark keeps of conversations is soon complete; every second packet is a
/// notification, of every kind.
const SCENARIO: &str = "about = \"Notifications about few flows\"
demonstrates = \"What a dissector remembers.\"
seed = 1
[stress]
flows = 16
qps = 64
payload = 64
ce = 0.1
trace_nodes = 4
[stress.mix]
data = 7
data_ipv4 = 2
cnp = 1
cnp_ipv4 = 1
fast_cnp_1 = 2
fast_cnp_2 = 2
proxy_cn = 1
proxy_cn_ipv4 = 1
wan_fcn = 1
";

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
/// How often the memory is looked at.
const LOOKS: Duration = Duration::from_millis(100);
/// Parts of a run of which the memory is told.
const PARTS: usize = 5;

/// Reads `count` packets with the plugin and without.
///
/// # Errors
/// A program fails.
pub fn run(with: &Tshark, without: &Tshark, count: u64) -> Outcome {
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let scratch = with.scratch()?;
    let scenario = scratch.join("few.toml");
    std::fs::write(&scenario, SCENARIO).map_err(|e| Failure::io("write", &scenario, &e))?;
    let capture = scratch.join("few.pcapng");
    let mut command = Command::new(generator);
    command.arg("run").arg(&scenario);
    command.args([
        "--count",
        &count.to_string(),
        "--rate",
        "1Mpps",
        "--quiet",
        "--output",
    ]);
    process::stdout(command.arg(&capture))?;

    println!("resident memory in MB over {count} packets, half of them notifications about 64 QPs");
    let mut rows = Vec::new();
    for (name, ours, theirs) in RUNS {
        for (who, tshark, arguments) in [("without", without, theirs), ("with", with, ours)] {
            let (memory, took) = watched(tshark, &capture, arguments)?;
            let mut row = vec![format!("{name}, {who} the plugin")];
            row.extend((0..=PARTS).map(|part| {
                let at = (memory.len() - 1) * part / PARTS;
                format!("{:.1}", memory[at] as f64 / 1e6)
            }));
            // From a fifth on, when all flows are known.
            let from = memory[memory.len() / PARTS] as f64;
            let grown = memory[memory.len() - 1] as f64 - from;
            let packets = count as f64 * (PARTS - 1) as f64 / PARTS as f64;
            row.push(format!("{:.2}", grown / packets));
            row.push(Took(took).to_string());
            rows.push(row);
        }
    }
    let mut heading = vec!["".to_owned()];
    heading.extend((0..=PARTS).map(|part| format!("{} %", 100 * part / PARTS)));
    heading.extend(["octets a packet after 20 %".to_owned(), "took".to_owned()]);
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    table::print(&heading, &rows);
    Ok(())
}

/// Octets of memory resident, each moment of a run.
fn watched(tshark: &Tshark, capture: &Path, arguments: &[&str]) -> Outcome<(Vec<u64>, Duration)> {
    let mut command = tshark.command();
    command.args(["-n", "-r"]).arg(tshark.inside(capture));
    command.args(arguments);
    let line = process::command_line(&command);
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
    let statm = format!("/proc/{}/statm", child.id());
    let mut seen = Vec::new();
    let ended = loop {
        let text = std::fs::read_to_string(&statm).unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
        seen.extend(pages.filter(|pages| *pages > 0).map(|pages| pages * PAGE));
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOKS),
            Err(e) => return Err(Failure::new(format!("cannot wait for `{line}`: {e}"))),
        }
    };
    if !ended.success() || seen.is_empty() {
        return Err(Failure::new(format!("`{line}` failed: {ended}")));
    }
    // What it gives back while it ends tells nothing of packets.
    let most = seen.iter().copied().max();
    let end = seen.iter().position(|octets| Some(*octets) == most);
    seen.truncate(end.map_or(0, |end| end + 1));
    Ok((seen, began.elapsed()))
}

/// Octets of a page of memory.
const PAGE: u64 = 4096;
