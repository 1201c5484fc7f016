//! `cargo xtask bench plugin`: the plugin's cost to tshark on RoCEv2 traffic with 5 %
//! notifications, compared with stock tshark and with a Lua dissector of the same messages
//! (`peer.lua`); and the profile's cost compared with the default profile.
//! Not here: the breakdown of time inside the plugin (callgrind), and correctness of the output
//! (the tests).

use std::path::Path;
use std::process::Stdio;

use crate::bench_link::load::stress;
use crate::failure::Outcome;
use crate::figures::{self, Ratio, median, range};
use crate::tally::SKIP_MARK;
use crate::tshark::Tshark;
use crate::{cargo, packages, process, profile};

/// Data and notifications of every kind, 19 to 1. About 100 packets a QP: more QPs than the plugin
/// remembers, in turn, would measure eviction.
const SCENARIO: &str = include_str!("mix.toml");
const PEER: &str = include_str!("peer.lua");

/// A mode of tshark: its name, and the arguments with the plugin, with the peer if it has an
/// equivalent, and without either.
type Case = (
    &'static str,
    &'static [&'static str],
    Option<&'static [&'static str]>,
    &'static [&'static str],
);

const CASES: [Case; 5] = [
    ("one line a packet", &[], Some(&[]), &[]),
    ("-V", &["-V"], Some(&["-V"]), &["-V"]),
    (
        "-Y notifications",
        &["-Y", "cnp || fastcnp || proxycn || wanfcn"],
        Some(&["-Y", "lcnp || lfastcnp || lproxycn || lwanfcn"]),
        &[
            "-Y",
            "infiniband.bth.opcode == 0x81 || udp.dstport == 1021 || udp.dstport == 1022",
        ],
    ),
    (
        "-Y bad ICRC",
        &["-Y", "rocev2.icrc.status == \"Bad\""],
        None,
        &["-Y", "infiniband.invariant.crc == 0"],
    ),
    ("-z io,stat", COUNTED, Some(COUNTED), COUNTED),
];
const COUNTED: &[&str] = &["-q", "-z", "io,stat,0"];

/// Runs `rounds` rounds over a capture of `count` packets, and returns the ratios.
///
/// # Errors
/// Something cannot be built, or tshark fails.
pub fn run(rounds: usize, count: u64) -> Outcome<Vec<Ratio>> {
    packages::ensure(packages::PLUGIN)?;
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let (with, without) = (
        Tshark::with_plugin(&cargo::build_plugin(true)?)?,
        Tshark::stock()?,
    );
    let scratch = with.scratch()?;
    let [scenario, peer, capture] = ["mix.toml", "peer.lua", "mix.pcapng"].map(|n| scratch.join(n));
    fs_err::write(&scenario, SCENARIO)?;
    fs_err::write(&peer, PEER)?;
    stress(&generator, &scenario, count, 1_000, &capture)?;

    let peer = format!("lua_script:{}", peer.display());
    let has_lua = peer_works(&without, &peer, &capture)?;
    if !has_lua {
        println!("{SKIP_MARK} this tshark has no Lua, so there is no peer");
    }
    println!(
        "{count} RoCEv2 packets of 1 KiB, 5 % notifications; {rounds} rounds in turn; user and system time"
    );
    let version = without.version()?;
    let mut ratios = Vec::new();
    let mut compared = |what: String, against: String, times: &[f64], alone: &[f64]| {
        if !times.is_empty() {
            let ratio = format!("{} times the time", ratio(times, alone));
            ratios.push(Ratio {
                what,
                against,
                ratio,
            });
        }
    };
    let mut rows = Vec::new();
    for (name, with_plugin, with_peer, stock) in CASES {
        let (mut alone, mut plugin, mut lua) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            alone.push(seconds(&without, &capture, &[], stock)?);
            plugin.push(seconds(&with, &capture, &[], with_plugin)?);
            if let Some(arguments) = with_peer.filter(|_| has_lua) {
                lua.push(seconds(&without, &capture, &["-X", &peer], arguments)?);
            }
        }
        let (stock, peer) = (
            format!("tshark {version} alone"),
            format!("tshark {version} with the Lua peer"),
        );
        let what = format!("tshark {name} with the plugin");
        compared(what.clone(), stock, &plugin, &alone);
        if !lua.is_empty() {
            compared(what, peer, &plugin, &lua);
        }
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", median(&alone) * 1e6 / count as f64),
            ratio(&plugin, &alone),
            ratio(&lua, &alone),
        ]);
    }
    let heading = "|µs a packet without|× with the plugin|× with the Lua peer";
    figures::print(heading, &rows);
    with.add_profile(&profile::source()?, profile::NAME)?;
    let (mut default, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        default.push(seconds(&with, &capture, &[], &[])?);
        ours.push(seconds(&with, &capture, &["-C", profile::NAME], &[])?);
    }
    let row = vec!["one line a packet".to_owned(), ratio(&ours, &default)];
    figures::print("with the plugin|× with its profile", &[row]);
    Ok(ratios)
}

/// Returns true if the peer runs here and finds the right messages: a peer that does nothing would
/// be fast.
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

/// Returns user plus system time of a run, in seconds.
fn seconds(tshark: &Tshark, capture: &Path, first: &[&str], then: &[&str]) -> Outcome<f64> {
    let mut command = tshark.command();
    command.args(first).arg("-r").arg(capture).args(then);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let usage = process::run(command.stderr(Stdio::null()))?;
    Ok((usage.utime + usage.stime).as_secs_f64())
}

/// Returns the median of the ratios of the rounds, and their range; a dash if nothing was run.
fn ratio(times: &[f64], alone: &[f64]) -> String {
    let ratios: Vec<f64> = times.iter().zip(alone).map(|(a, b)| a / b).collect();
    let (least, most) = range(&ratios);
    match ratios.is_empty() {
        true => "–".to_owned(),
        false => format!("{:.3} ({least:.3}..{most:.3})", median(&ratios)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let text = ratio(&[1.1, 2.0, 3.3], &[1.0, 2.0, 3.0]);
        assert_eq!(text, "1.100 (1.000..1.100)");
        assert_eq!(ratio(&[], &[1.0]), "–");
    }
}
