//! `cargo xtask bench plugin`: what the plugin costs tshark on RoCEv2 traffic with 5 % notifications, beside stock tshark
//! and beside a Lua dissector of the same messages (`peer.lua`).
//! Not here: where the time goes inside (callgrind), nor whether what is shown is right (the tests).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench_link::{median, table};
use crate::failure::{Failure, Outcome};
use crate::report::{Ink, ink};
use crate::tally::SKIP_MARK;
use crate::tshark::Tshark;
use crate::{cargo, install_plugin, packages, process};

/// Data and notifications of every kind, 19 to 1. About 100 packets a QP: more QPs than the plugin remembers, in turn, would
/// measure how it forgets.
const SCENARIO: &str = "about = \"RoCEv2 with 5 % notifications\"
demonstrates = \"What a dissector costs.\"
seed = 1
[stress]
flows = 10000
qps = 10000
payload = 1024
ce = 0.1
trace_nodes = 4
[stress.mix]
data = 114
data_ipv4 = 38
cnp = 1
cnp_ipv4 = 1
fast_cnp_1 = 2
fast_cnp_2 = 1
proxy_cn = 1
proxy_cn_ipv4 = 1
wan_fcn = 1
";
const PEER: &str = include_str!("peer.lua");

/// A way of running tshark.
struct Case {
    name: &'static str,
    /// Arguments with the plugin, with the peer, without either; nothing where the peer has no such thing.
    with: &'static [&'static str],
    peer: Option<&'static [&'static str]>,
    without: &'static [&'static str],
    /// Most times the time without the plugin.
    limit: Option<f64>,
}

const CASES: [Case; 5] = [
    Case {
        name: "one line a packet",
        with: &[],
        peer: Some(&[]),
        without: &[],
        limit: Some(1.10),
    },
    Case {
        name: "-V",
        with: &["-V"],
        peer: Some(&["-V"]),
        without: &["-V"],
        limit: Some(1.25),
    },
    Case {
        name: "-Y notifications",
        with: &["-Y", "cnp || fastcnp || proxycn || wanfcn"],
        peer: Some(&["-Y", "lcnp || lfastcnp || lproxycn || lwanfcn"]),
        without: &[
            "-Y",
            "infiniband.bth.opcode == 0x81 || udp.dstport == 1021 || udp.dstport == 1022",
        ],
        limit: None,
    },
    Case {
        name: "-Y bad ICRC",
        with: &["-Y", "rocev2.icrc.status == \"Bad\""],
        peer: None,
        without: &["-Y", "infiniband.invariant.crc == 0"],
        limit: None,
    },
    Case {
        name: "-z io,stat",
        with: &["-q", "-z", "io,stat,0"],
        peer: Some(&["-q", "-z", "io,stat,0"]),
        without: &["-q", "-z", "io,stat,0"],
        limit: None,
    },
];

/// Runs so many rounds over a capture of so many packets.
///
/// # Errors
/// Something cannot be built, or tshark fails.
pub fn run(rounds: usize, count: u64) -> Outcome {
    packages::ensure(&install_plugin::needs()?)?;
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let (with, without) = (
        Tshark::with_plugin(&cargo::build_plugin(true)?)?,
        Tshark::stock()?,
    );
    let scratch = with.scratch()?;
    let file = |name: &str, text: &str| -> Outcome<PathBuf> {
        let path = scratch.join(name);
        std::fs::write(&path, text).map_err(|e| Failure::io("write", &path, &e))?;
        Ok(path)
    };
    let scenario = file("mix.toml", SCENARIO)?;
    let peer = file("peer.lua", PEER)?;
    let capture = scratch.join("mix.pcapng");
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

    let peer = format!("lua_script:{}", peer.display());
    let has_lua = peer_works(&without, &peer, &capture)?;
    if !has_lua {
        println!("{SKIP_MARK} this tshark has no Lua, so there is no peer");
    }
    println!(
        "{count} RoCEv2 packets of 1 KiB, 5 % notifications; {rounds} rounds in turn; user and system time"
    );
    let mut rows = Vec::new();
    let mut verdicts = Vec::new();
    for case in &CASES {
        let (mut alone, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            alone.push(seconds(&without, &capture, &[], case.without)?);
            ours.push(seconds(&with, &capture, &[], case.with)?);
            if let Some(arguments) = case.peer.filter(|_| has_lua) {
                theirs.push(seconds(&without, &capture, &["-X", &peer], arguments)?);
            }
        }
        let (ours, theirs) = (Ratio::of(&ours, &alone), Ratio::of(&theirs, &alone));
        rows.push(vec![
            case.name.to_owned(),
            format!("{:.2}", median(&alone) * 1e6 / count as f64),
            ours.to_string(),
            if theirs.is_some() {
                theirs.to_string()
            } else {
                "–".to_owned()
            },
        ]);
        verdicts.extend(verdict(case, &ours, &theirs));
    }
    table::print(
        &[
            "",
            "µs a packet without",
            "× with the plugin",
            "× with the Lua peer",
        ],
        &rows,
    );
    for line in verdicts {
        println!("  {line}");
    }
    Ok(())
}

/// Whether the peer runs here, and finds what it should: a peer that does nothing would be fast.
fn peer_works(tshark: &Tshark, peer: &str, capture: &Path) -> Outcome<bool> {
    let version = process::stdout(tshark.command().arg("-v"))?;
    if !version.contains("with Lua") {
        return Ok(false);
    }
    for protocol in ["lcnp", "lfastcnp", "lproxycn", "lwanfcn"] {
        let mut command = tshark.command();
        command.args(["-X", peer, "-c", "2000", "-Y", protocol, "-r"]);
        let output = process::output(command.arg(capture))?;
        if !output.status.success() || output.stdout.is_empty() {
            return Err(process::failed(&command, &output));
        }
    }
    Ok(true)
}

/// User and system time of a run.
fn seconds(tshark: &Tshark, capture: &Path, first: &[&str], then: &[&str]) -> Outcome<f64> {
    // The shell is asked: children's times cannot be had without unsafe code.
    let timed = "TIMEFORMAT='%U %S'; time \"$@\" >/dev/null 2>&1 || echo failed >&2";
    let mut command = tshark.command_under(&["bash", "-c", timed, "bash"]);
    command.args(first).arg("-r").arg(capture).args(then);
    let output = process::output(command.stdin(Stdio::null()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let mut numbers = said.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(user)), Some(Ok(system)), None) => Ok(user + system),
        _ => Err(process::failed(&command, &output)),
    }
}

/// How many times as long, round by round.
#[derive(Debug)]
struct Ratio(Vec<f64>);

impl Ratio {
    fn of(times: &[f64], alone: &[f64]) -> Self {
        Self(times.iter().zip(alone).map(|(a, b)| a / b).collect())
    }

    fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    fn median(&self) -> f64 {
        median(&self.0)
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.0.iter().copied().fold(0.0, f64::max);
        write!(f, "{:.3} ({least:.3}..{most:.3})", self.median())
    }
}

fn verdict(case: &Case, ours: &Ratio, theirs: &Ratio) -> Vec<String> {
    let word = |good: bool| match good {
        true => ink(Ink::Green, "met"),
        false => ink(Ink::Red, "missed"),
    };
    let mut lines = Vec::new();
    if let Some(limit) = case.limit {
        lines.push(format!(
            "{}: at most {limit:.2} × stock: {}",
            case.name,
            word(ours.median() <= limit)
        ));
    }
    if theirs.is_some() {
        lines.push(format!(
            "{}: ahead of the Lua peer: {}",
            case.name,
            word(ours.median() < theirs.median())
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_verdicts() {
        let ours = Ratio::of(&[1.1, 2.0, 3.3], &[1.0, 2.0, 3.0]);
        assert_eq!(ours.to_string(), "1.100 (1.000..1.100)");
        let theirs = Ratio::of(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        let lines = verdict(&CASES[0], &ours, &theirs);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.contains("met")), "{lines:?}");
        let lines = verdict(&CASES[0], &theirs, &ours);
        assert!(
            lines.iter().all(|line| line.contains("missed")),
            "{lines:?}"
        );
        assert!(verdict(&CASES[3], &ours, &Ratio(Vec::new())).is_empty());
    }
}
