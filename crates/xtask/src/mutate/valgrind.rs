//! Damaged packets through tshark with the plugin under valgrind. An error counts where a function of ours is among
//! those that were being called, and stock Wireshark does not make it there.

use std::collections::BTreeSet;
use std::path::Path;

use super::change::Change;
use super::packets::Packet;
use super::random::Random;
use super::{Bench, Options};
use crate::failure::{Failure, Outcome};
use crate::process;
use crate::report::{Ink, ink};
use crate::tshark::Tshark;

/// Says of everything wrong where it was called from, deep enough to reach the plugin.
const VALGRIND: [&str; 7] = [
    "valgrind",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--num-callers=60",
    // Plugins are unloaded before leaks are told.
    "--keep-debuginfo=yes",
    "--error-limit=no",
    "--fair-sched=no",
];
/// Wireshark's own pools hide what runs over an allocation's end.
const PLAIN_ALLOCATION: [(&str, &str); 2] = [
    ("WIRESHARK_DEBUG_WMEM_OVERRIDE", "simple"),
    ("G_SLICE", "always-malloc"),
];
/// Functions that say which code made an error.
const INNERMOST: usize = 5;

/// Runs `count` packets of each kind of damage through every mode.
///
/// # Errors
/// valgrind is missing, or finds something.
pub fn run(bench: &Bench, base: &[Packet], count: usize, options: &Options) -> Outcome {
    if process::which("valgrind").is_none() {
        return Err(Failure::new("valgrind is not installed").todo("apt install valgrind"));
    }
    let mut random = Random(options.seed);
    let mut packets = Vec::new();
    for (round, change) in Change::ALL.into_iter().enumerate() {
        let chosen: Vec<_> = (0..count)
            .map(|_| base[random.below(base.len())].clone())
            .collect();
        let mut changed = change.apply(&chosen, round, &mut random);
        if let Change::Octets(rate) = change {
            changed = bench.editcap(&changed, rate, random.number())?;
        }
        packets.append(&mut changed);
    }
    let file = bench.file(&packets)?;
    let mut ours = BTreeSet::new();
    for mode in &bench.modes {
        let (with, whole) = errors(&bench.with, &mode.with, &file)?;
        let mut found: BTreeSet<Block> = with.into_iter().filter(|block| block.is_ours).collect();
        if !found.is_empty() {
            let (stock, _) = errors(&bench.without, &mode.without, &file)?;
            let known: BTreeSet<_> = stock.into_iter().map(|block| block.innermost).collect();
            found.retain(|block| !known.contains(&block.innermost));
        }
        println!(
            "{:>24}: {} packets, {} errors with the plugin in the stack; {whole}",
            mode.name,
            packets.len(),
            found.len()
        );
        ours.extend(found.into_iter().map(|block| block.text));
    }
    if ours.is_empty() {
        println!("{}", ink(Ink::Green, "nothing amiss with the plugin"));
        return Ok(());
    }
    let all: Vec<_> = ours.into_iter().collect();
    Err(Failure::new(format!(
        "valgrind found\n{}",
        all.join("\n\n")
    )))
}

/// An error as valgrind tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    innermost: Vec<String>,
    is_ours: bool,
    text: String,
}

/// The errors of a run, and valgrind's last word.
fn errors(tshark: &Tshark, arguments: &[String], capture: &Path) -> Outcome<(Vec<Block>, String)> {
    let mut command = tshark.command_under(&VALGRIND);
    command.envs(PLAIN_ALLOCATION);
    command.arg("-r").arg(tshark.inside(capture));
    command.args(arguments);
    let output = process::output(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let summary = said
        .lines()
        .rev()
        .find_map(|line| line.split_once("ERROR SUMMARY: "));
    let Some((_, summary)) = summary.filter(|_| output.status.success()) else {
        return Err(process::failed(&command, &output));
    };
    let blocks = blocks(&said);
    let whole = summary.split(" (").next().unwrap_or_default();
    Ok((blocks, format!("{whole} in all")))
}

fn blocks(said: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in said.lines().chain(["== =="]) {
        let Some(text) = line
            .strip_prefix("==")
            .and_then(|l| l.split_once("== ").or(Some(("", ""))))
        else {
            continue;
        };
        let text = text.1.trim_end();
        if !text.trim().is_empty() {
            lines.push(text);
            continue;
        }
        let frames: Vec<&str> = lines
            .iter()
            .filter(|line| line.contains(" 0x"))
            .filter_map(|line| Some(line.split_once(": ")?.1))
            .collect();
        if !frames.is_empty() {
            blocks.push(Block {
                innermost: frames
                    .iter()
                    .take(INNERMOST)
                    .map(|frame| frame.split(" (").next().unwrap_or(frame).to_owned())
                    .collect(),
                is_ours: frames
                    .iter()
                    .any(|frame| frame.contains("fcn.so") || frame.contains("fcn_"))
                    && !registered(&lines),
                text: lines.join("\n"),
            });
        }
        lines.clear();
    }
    blocks
}

/// Whether this is memory that was handed to Wireshark while it started, for as long as it runs: names, lists of fields.
/// It loses sight of them before it ends; they do not grow with packets.
fn registered(lines: &[&str]) -> bool {
    let says = |text: &str| lines.iter().any(|line| line.contains(text));
    says("lost in loss record") && says(" epan_init (")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let said = "==7== Memcheck\n==7== \nRunning\n==7== Invalid read of size 1\n\
            ==7==    at 0x1: memcpy (vg.c:1)\n==7==    by 0x2: fcn_dissector::ws::hooks::post (hooks.rs:5)\n\
            ==7==  Address 0x3 is 0 bytes after a block\n==7== \n\
            ==7== 8 bytes are lost\n==7==    at 0x4: malloc (vg.c:2)\n==7==    by 0x5: main (x.c:3)\n==7== \n\
            ==7== ERROR SUMMARY: 2 errors from 2 contexts (suppressed: 0 from 0)\n";
        let blocks = blocks(said);
        assert_eq!(blocks.len(), 2);
        assert_eq!(
            blocks[0].innermost,
            ["memcpy", "fcn_dissector::ws::hooks::post"]
        );
        assert!(blocks[0].is_ours && !blocks[1].is_ours);
        assert!(blocks[1].text.starts_with("8 bytes"));

        let lost = |by: &str| {
            format!(
                "==7== 8 bytes in 1 blocks are definitely lost in loss record 1 of 2\n==7==    at 0x4: malloc (v.c:2)\n\
                 ==7==    by 0x2: fcn_dissector::f (a.rs:5)\n==7==    by 0x5: {by} (x.c:3)\n==7== \n"
            )
        };
        assert!(!super::blocks(&lost("epan_init"))[0].is_ours);
        assert!(super::blocks(&lost("dissect_packet"))[0].is_ours);
    }
}
