//! `cargo xtask demo`: from a fresh clone to decoded captures and a comparison of mechanisms, step by step.
//! Not here: what the steps do, but for the last three, which show what there is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::captures::{self, Generator, Sample, Scene};
use crate::failure::Outcome;
use crate::packages::{self, Use};
use crate::report::{self, Ink, ink};
use crate::{cargo, install_plugin, packets, process};

/// Matches the messages that the plugin exists for.
const NOTIFICATIONS: &str = "fastcnp || cnp || proxycn || wanfcn";

/// Matches what a capture without any of them is about.
const PAUSES: &str = "macc";

/// The scenario whose mechanisms are compared.
const COMPARED: &str = "incast";

/// The capture that the monitor looks at, and to look at next.
const WATCHED: &str = "fast-cnp";

/// Characters of a line shown.
const WIDTH: usize = 118;

/// Runs the steps, and ends with the command to type next.
///
/// # Errors
/// A step failed; those after it were not begun.
pub fn run() -> Outcome {
    let folder = captures::folder()?;
    let mut generator = None;
    let titles = [
        "Install what is missing",
        "Build the plugin and install it",
        "Build fcn-gen and write the sample captures",
        "Decode the sample captures",
        "Compare mechanisms under the same congestion",
        "Build fcn-top and ask it who is told to slow down",
    ];
    let steps = titles.len();
    for (number, title) in (1..).zip(titles) {
        let work = || match number {
            1 => packages::ensure(&[packages::PLUGIN, &[Use::Filter]].concat()),
            2 => install_plugin::install(None),
            3 => {
                let count = captures::write(&folder, generator.insert(Generator::build()?), None)?;
                Ok(format!("{count} captures in {}", folder.display()))
            }
            4 => show(&folder),
            5 => compare(generator.as_ref().context("the generator is not built")?),
            _ => monitor(&folder),
        };
        // It says so itself, with what to do.
        if !report::step(number, steps, title, work).good {
            bail!("the demo stopped at step {number} of {steps}: {title}");
        }
    }
    let file = folder.join(format!("{WATCHED}.pcapng"));
    println!("\nNext: {}", ink(Ink::Bold, &next_command(&file)));
    Ok(())
}

/// Shows the first sample of each simulated scenario by its first notification, and counts the rest.
fn show(folder: &Path) -> Outcome<String> {
    let mut shown = BTreeSet::new();
    let (all, mut notifications) = (captures::all(), 0);
    for sample in &all {
        let file = folder.join(sample.file_name());
        let lines = decode(&file, Some(NOTIFICATIONS))?;
        notifications += lines.len();
        if sample.scene == Scene::Simulation && shown.insert(sample.scenario) {
            present(sample, &file, &lines)?;
        }
    }
    let folder = folder.display();
    ensure!(
        notifications > 0,
        "tshark finds no notification in {folder}\n  what to do: cargo xtask install-plugin"
    );
    let all = all.len();
    println!("    … and {} more", all - shown.len());
    Ok(format!("{all} captures, {notifications} notifications"))
}

/// Two lines about a sample, whose notifications are `lines`.
fn present(sample: &Sample, file: &Path, lines: &[String]) -> Outcome {
    let capture = packets::read(file)?;
    let (packets, notifications) = (capture.packets.len(), lines.len());
    let count = format!("{packets} packets, {notifications} notifications");
    let name = sample.file_name();
    let room = WIDTH.saturating_sub(name.len() + count.len() + 6);
    let about = shortened(&capture.comment, room);
    let (name, count) = (ink(Ink::Bold, &name), ink(Ink::Dim, &count));
    println!("    {name}  {about}  {count}");
    let first = match lines.first() {
        Some(line) => Some(line.clone()),
        None => decode(file, Some(PAUSES))?.into_iter().next(),
    };
    if let Some(line) = first {
        println!("        {}", shortened(&line, WIDTH));
    }
    Ok(())
}

/// Shows how the mechanisms fare.
fn compare(generator: &Generator) -> Outcome<String> {
    for line in generator.compare(COMPARED)?.lines() {
        println!("    {line}");
    }
    Ok(format!("fcn-gen compare {COMPARED}"))
}

/// Shows who is told to slow down, by whom, and whether it obeyed.
fn monitor(folder: &Path) -> Outcome<String> {
    // As the generator is built, so that most of it is there.
    let monitor = cargo::build_tool(cargo::MONITOR, false)?;
    let file = folder.join(format!("{WATCHED}.pcapng"));
    let mut command = Command::new(monitor);
    command.args(["--no-config", "--report", "--top", "5", "-r"]);
    command.arg(&file);
    for line in process::stdout(&mut command)?.lines() {
        println!("    {line}");
    }
    Ok(format!("fcn-top -r {}", file.display()))
}

/// Frame number, protocol and Info column of the packets that a display filter matches, by the installed tshark.
fn decode(file: &Path, filter: Option<&str>) -> Outcome<Vec<String>> {
    // Columns, since the fields that hold their text are called differently from one Wireshark to the next.
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "tabs", "-o", captures::COLUMNS, "-r"]);
    command.arg(file).args(["-Y", filter.unwrap_or("frame")]);
    let text = process::stdout(&mut command)?;
    Ok(text.lines().filter_map(row).collect())
}

/// A line of `-T tabs`, aligned.
fn row(line: &str) -> Option<String> {
    let [number, protocol, info] = captures::tabs(line)?;
    Some(format!("{number:>3}  {protocol:<8}  {info}"))
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// What a person would type next: Wireshark where there is a screen for it.
fn next_command(capture: &Path) -> String {
    let displays = ["DISPLAY", "WAYLAND_DISPLAY"];
    let screen = displays
        .into_iter()
        .any(|name| std::env::var_os(name).is_some());
    let here = std::env::current_dir().unwrap_or_default();
    let path = capture.strip_prefix(here).unwrap_or(capture).display();
    match screen && process::which("wireshark").is_some() {
        true => format!("wireshark {path}"),
        false => format!("tshark -r {path} -O fastcnp"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_align() {
        assert_eq!(
            row("1\tCNP\tCNP \u{2192} QP 0x12\tx").as_deref(),
            Some("  1  CNP       CNP \u{2192} QP 0x12\tx")
        );
        assert_eq!(row("Running as user"), None);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(shortened("a→b", 3), "a→b");
        assert_eq!(shortened("a→b→c", 3), "a→…");
        assert_eq!(shortened("ab", 0), "…");
    }

    #[test]
    fn decodes_in_one_line_a_packet() {
        if process::which("tshark").is_none() {
            println!("SKIPPED: tshark is not installed");
            return;
        }
        // A section, an Ethernet interface, a frame of 14 octets.
        let mut bytes = vec![0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A];
        bytes.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        bytes.extend([28, 0, 0, 0]);
        bytes.extend([1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0]);
        bytes.extend([6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0, 0, 0, 14, 0, 0, 0, 14, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5, 0, 0]);
        bytes.extend([48, 0, 0, 0]);
        let file =
            std::env::temp_dir().join(format!("fcn-xtask-row-{}.pcapng", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let all = decode(&file, None).unwrap();
        assert!(
            all.len() == 1 && all[0].starts_with("  1  0x88b5  "),
            "{all:?}"
        );
        assert!(decode(&file, Some("ip")).unwrap().is_empty());
        assert!(decode(&file, Some("no.such.field")).is_err());
        std::fs::remove_file(file).unwrap();
    }
}
