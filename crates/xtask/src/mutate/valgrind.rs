//! Damaged packets through tshark with the plugin under valgrind. An error counts where a function of the plugin's is
//! among those that were being called, and stock Wireshark does not make it there.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;
use fastrand::Rng;

use super::bench::Bench;
use super::change::Change;
use crate::failure::Outcome;
use crate::packets::Packet;
use crate::process;
use crate::report::{Ink, ink};
use crate::tshark::Tshark;

/// Says of everything wrong where it was called from, deep enough to reach the plugin.
const VALGRIND: [&str; 7] = [
    "valgrind",
    "--leak-check=full",
    // Of memory that hangs together, only one part is reported as lost for itself, and not always the same one.
    "--show-leak-kinds=definite,indirect",
    "--num-callers=60",
    // Plugins are unloaded before leaks are reported.
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
/// The library with Wireshark's dissection.
const WIRESHARK: &str = "libwireshark.so";

/// Runs `count` packets of each kind of damage through every mode.
///
/// # Errors
/// valgrind is missing, or finds something.
pub fn run(bench: &Bench, base: &[Packet], count: usize, seed: u64) -> Outcome {
    process::need("valgrind", "valgrind")?;
    let mut random = Rng::with_seed(seed);
    let mut packets = Vec::new();
    for (round, change) in Change::ALL.into_iter().enumerate() {
        let choose = |_| base[random.usize(..base.len())].clone();
        let chosen: Vec<_> = (0..count).map(choose).collect();
        packets.append(&mut bench.damaged(&chosen, change, round, &mut random)?);
    }
    let file = bench.file(&packets)?;
    let mut own = BTreeSet::new();
    for mode in &bench.modes {
        let (with, whole) = errors(&bench.with, &mode.with, &file)?;
        let mut found: BTreeSet<Block> = with.into_iter().filter(|block| block.of_plugin).collect();
        if !found.is_empty() {
            let (stock, _) = errors(&bench.without, &mode.without, &file)?;
            found.retain(|block| !stock.iter().any(|known| block.is_as(known)));
        }
        let (name, packets, errors) = (mode.name, packets.len(), found.len());
        println!(
            "{name:>24}: {packets} packets, {errors} errors with the plugin in the stack; {whole}"
        );
        own.extend(found.into_iter().map(|block| block.text));
    }
    if !own.is_empty() {
        let all: Vec<_> = own.into_iter().collect();
        bail!("valgrind found\n{}", all.join("\n\n"));
    }
    println!("{}", ink(Ink::Green, "nothing amiss with the plugin"));
    Ok(())
}

/// An error that valgrind reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    innermost: Vec<String>,
    /// What was being called up to the innermost function of Wireshark's that has a name, where the plugin had that called.
    below_plugin: Vec<String>,
    frames: Vec<String>,
    of_plugin: bool,
    text: String,
}

impl Block {
    /// Whether stock Wireshark makes this error, too: at the same place, or in the same function of its own that the plugin calls.
    fn is_as(&self, stock: &Self) -> bool {
        let own = &self.below_plugin;
        self.innermost == stock.innermost || !own.is_empty() && stock.frames.starts_with(own)
    }
}

/// The errors of a run, and valgrind's last word.
fn errors(tshark: &Tshark, arguments: &[String], capture: &Path) -> Outcome<(Vec<Block>, String)> {
    let mut command = tshark.command_under(&VALGRIND);
    command.envs(PLAIN_ALLOCATION);
    command.arg("-r").arg(tshark.inside(capture));
    command.args(arguments);
    let output = process::output(&mut command)?;
    let log = String::from_utf8_lossy(&output.stderr);
    let summary = log
        .lines()
        .rev()
        .find_map(|line| line.split_once("ERROR SUMMARY: "));
    let Some((_, summary)) = summary.filter(|_| output.status.success()) else {
        return Err(process::failed(&command, &output));
    };
    let whole = summary.split(" (").next().unwrap_or_default();
    Ok((blocks(&log), format!("{whole} in all")))
}

/// The errors reported, each between lines of "==1234== " with nothing behind.
fn blocks(log: &str) -> Vec<Block> {
    let text = |line| str::split_once(line, "== ").map_or("", |(_, text)| text.trim_end());
    let lines = log.lines().filter(|line| line.starts_with("=="));
    let lines: Vec<&str> = lines.map(|line| text(&line[2..])).collect();
    let parts = lines.split(|line| line.trim().is_empty());
    parts.filter_map(block).collect()
}

/// An error, where its lines have a stack.
fn block(lines: &[&str]) -> Option<Block> {
    let (places, frames): (Vec<&str>, Vec<&str>) = lines
        .iter()
        .filter(|line| line.contains(" 0x"))
        .filter_map(|line| line.split_once(": "))
        .unzip();
    let names = |frames: &[&str]| -> Vec<String> {
        let name = |frame: &&str| frame.split(" (").next().unwrap_or(frame).to_owned();
        frames.iter().map(name).collect()
    };
    // Of functions that were made one by the compiler, which stand at one place, only the outermost may say.
    let of_plugin = |frame: &&str| frame.contains("fcn.so") || frame.contains("fcn_");
    let plugin = frames.iter().position(of_plugin).and_then(|at| {
        let same = |place: &&str| same_place(place, places[at]);
        places.iter().position(same)
    });
    let below_plugin = frames[..plugin.unwrap_or(0)]
        .iter()
        .position(|frame| frame.contains(WIRESHARK) && !frame.starts_with("???"))
        .map_or_else(Vec::new, |at| names(&frames[..=at]));
    (!frames.is_empty()).then(|| Block {
        innermost: names(&frames[..frames.len().min(INNERMOST)]),
        below_plugin,
        frames: names(&frames),
        of_plugin: plugin.is_some() && !registered(lines) && !is_indirect(lines),
        text: lines.join("\n"),
    })
}

/// Whether two lines of a stack, "   by 0x1234", name one address.
fn same_place(one: &str, other: &str) -> bool {
    one.trim_start().split_once(' ').map(|(_, place)| place)
        == other.trim_start().split_once(' ').map(|(_, place)| place)
}

/// Whether this memory is lost with other memory alone, which is reported, too.
fn is_indirect(lines: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| line.contains("indirectly lost in loss record"))
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
        let output = "==7== Memcheck\n==7== \nRunning\n==7== Invalid read of size 1\n\
            ==7==    at 0x1: memcpy (vg.c:1)\n==7==    by 0x2: fcn_dissector::ws::hooks::post (hooks.rs:5)\n\
            ==7==  Address 0x3 is 0 bytes after a block\n==7== \n\
            ==7== 8 bytes are lost\n==7==    at 0x4: malloc (vg.c:2)\n==7==    by 0x5: main (x.c:3)\n==7== \n\
            ==7== ERROR SUMMARY: 2 errors from 2 contexts (suppressed: 0 from 0)\n";
        let blocks = blocks(output);
        assert_eq!(blocks.len(), 2);
        assert_eq!(
            blocks[0].innermost,
            ["memcpy", "fcn_dissector::ws::hooks::post"]
        );
        assert!(blocks[0].of_plugin && !blocks[1].of_plugin);
        assert!(blocks[1].text.starts_with("8 bytes"));

        let lost = |by: &str| {
            format!(
                "==7== 8 bytes in 1 blocks are definitely lost in loss record 1 of 2\n==7==    at 0x4: malloc (v.c:2)\n\
                 ==7==    by 0x2: fcn_dissector::f (a.rs:5)\n==7==    by 0x5: {by} (x.c:3)\n==7== \n"
            )
        };
        assert!(!super::blocks(&lost("epan_init"))[0].of_plugin);
        assert!(super::blocks(&lost("dissect_packet"))[0].of_plugin);
    }

    #[test]
    fn what_wireshark_does_wrong_for_others_too_is_not_ours() {
        let lost = |within: &str, caller: &str| {
            let output = format!(
                "==7== 8 bytes are lost\n==7==    at 0x1: calloc (v.c:2)\n==7==    by 0x2: {within}\n\
                 ==7==    by 0x3: {caller}\n==7==    by 0x4: main (x.c:3)\n==7== \n"
            );
            blocks(&output).remove(0)
        };
        let node = "new_node (in /usr/lib/libwireshark.so.16)";
        let inlined =
            "tick (statistics.rs:3)\n==7==    by 0x3: fcn_dissector::count (statistics.rs:5)";
        let (ours, stock) = (lost(node, inlined), lost(node, "plen (packet.c:7)"));
        assert!(ours.of_plugin && !stock.of_plugin);
        assert!(ours.is_as(&stock));
        // Memory that we ask for ourselves.
        let plain = "g_malloc (in /usr/lib/libglib-2.0.so.0)";
        let with_more = "==7== 8 bytes in 1 blocks are indirectly lost in loss record 1 of 2\n\
                         ==7==    at 0x1: fcn_dissector::count (statistics.rs:5)\n==7== \n";
        assert!(!blocks(with_more)[0].of_plugin);
        assert!(!lost(plain, inlined).is_as(&lost(plain, "plen (packet.c:7)")));
        assert!(!ours.is_as(&lost(
            "other (in /usr/lib/libwireshark.so.16)",
            "plen (packet.c:7)"
        )));
    }
}
