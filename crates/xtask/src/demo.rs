//! `cargo xtask demo`: from a fresh clone to decoded captures, a comparison of mechanisms and a
//! congested network, step by step, on one screen. Not here: the steps themselves, except for the
//! selection of what is shown.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::captures::{self, Generator};
use crate::failure::Outcome;
use crate::packages::{self, Use};
use crate::report::{self, Ink, ink};
use crate::senders::{self, Judged};
use crate::{cargo, install_plugin, lab, process};

/// Filter for the messages that the plugin decodes.
const NOTIFICATIONS: &str = "fastcnp || cnp || proxycn || wanfcn";

/// Scenario in which mechanisms are compared.
const COMPARED: &str = "incast";
/// Mechanisms that are compared.
const MECHANISMS: &[&str] = &["cnp", LAST_MECHANISM];
const LAST_MECHANISM: &str = "fast-cnp";
/// Figures of the comparison that are shown.
const FIGURES: [&str; 2] = ["reaction time", "peak queue"];

/// Samples that are shown: a notification of each kind.
const SHOWN: [&str; 5] = [
    "receiver-cnp-ipv6",
    "fast-cnp",
    "fast-cnp-ioam-preallocated",
    "proxy-config",
    "wan-fcn-srv6",
];
/// Width reserved for their names, in characters.
const NAME: usize = 34;

/// Reason for stopping a step whose programs an earlier step should have built.
const NOT_BUILT: &str = "it is not built";

/// Scenario in which some senders obey, and one does not.
const OBEYED: &str = "stubborn-sender";

/// Capture to look at next.
const WATCHED: &str = "fast-cnp";

/// Maximum length of a line shown, in characters.
const WIDTH: usize = 118;

/// Runs the steps, and ends with the command to type next.
///
/// # Errors
/// A step failed; later ones were not started.
pub fn run() -> Outcome {
    let folder = captures::folder()?;
    let mut tools = None;
    let titles = [
        "Install what is missing",
        "Build the plugin, fcn-gen and fcn-top, and install the plugin",
        "Write the sample captures, and decode them",
        "Compare mechanisms under the same congestion, in virtual time",
        "Congest a network of links, and see who is notified",
        "See who slows down when notified",
    ];
    let steps = titles.len();
    for (number, title) in (1..).zip(titles) {
        let work = || match number {
            1 => packages::ensure(&[packages::PLUGIN, &[Use::Filter, Use::Network]].concat()),
            2 => {
                let installed = install_plugin::install(None)?;
                let generator = Generator::build()?;
                tools = Some((generator, cargo::build_tool(cargo::MONITOR, false)?));
                Ok(installed)
            }
            3 => {
                let (generator, _) = tools.as_ref().context(NOT_BUILT)?;
                captures::write(&folder, generator, None)?;
                show(&folder)
            }
            4 => compare(&tools.as_ref().context(NOT_BUILT)?.0),
            5 => {
                let (generator, monitor) = tools.as_ref().context(NOT_BUILT)?;
                on_links(generator, monitor)
            }
            _ => {
                let (generator, monitor) = tools.as_ref().context(NOT_BUILT)?;
                who_obeys(generator, monitor)
            }
        };
        // The step itself reports the failure and what to do about it.
        if !report::step(number, steps, title, work).good {
            bail!("the demo stopped at step {number} of {steps}: {title}");
        }
    }
    let file = folder.join(format!("{WATCHED}.pcapng"));
    println!("\nNext: {}", ink(Ink::Bold, &next_command(&file)));
    Ok(())
}

/// Shows the first notification of each of a few samples, and counts all notifications.
fn show(folder: &Path) -> Outcome<String> {
    let (all, mut notifications) = (captures::all(), 0);
    for sample in &all {
        let name = sample.file_name();
        let lines = decode(&folder.join(&name), NOTIFICATIONS)?;
        notifications += lines.len();
        if let (true, Some(line)) = (SHOWN.contains(&sample.name.as_str()), lines.first()) {
            let line = shortened(line, WIDTH - NAME);
            println!("    {name:<NAME$}{line}");
        }
    }
    let folder = folder.display();
    ensure!(
        notifications > 0,
        "tshark found no notification in {folder}\n  what to do: cargo xtask install-plugin"
    );
    let all = all.len();
    Ok(format!(
        "{notifications} notifications in {all} captures in {folder}"
    ))
}

/// Shows the results of two mechanisms for the figures that differ most.
fn compare(generator: &Generator) -> Outcome<String> {
    let text = generator.compare(COMPARED, MECHANISMS)?;
    let mut shown = false;
    for line in text.lines().skip(1) {
        // The range of a figure is printed below it.
        let is_range = line.starts_with("      ");
        shown = FIGURES
            .iter()
            .any(|name| line.trim_start().starts_with(name))
            || (shown && is_range);
        if shown || line.trim_end().ends_with(LAST_MECHANISM) {
            println!("    {line}");
        }
    }
    Ok(format!("full table: fcn-gen compare {COMPARED}"))
}

/// Runs a network in namespaces, if this process may create them.
fn on_links(generator: &Generator, monitor: &Path) -> Outcome<String> {
    if let Err(missing) = lab::ensure_possible() {
        let missing = format!("{missing:#}").replace('\n', "\n    ");
        let notice = format!("Skipped: nothing was sent over links: {missing}");
        println!("    {}", ink(Ink::Yellow, &notice));
        return Ok("the network was skipped".to_owned());
    }
    lab::brief(OBEYED, generator.program(), monitor)
}

/// Ends with the senders that obey, in virtual time, where results do not depend on the load of
/// this machine.
fn who_obeys(generator: &Generator, monitor: &Path) -> Outcome<String> {
    let folder = cargo::target_folder("demo")?;
    let judged = obeyed(generator, monitor, &folder)?;
    println!("    fcn-top infers it from a capture of {OBEYED}, in virtual time:");
    println!("{}", lab::indented(&lab::indented(&senders::list(&judged))));
    let capture = capture_in(&folder);
    Ok(format!("the capture: {}", here(&capture).display()))
}

/// Returns the path of the capture of the scenario in which one sender does not obey.
fn capture_in(folder: &Path) -> PathBuf {
    folder.join(format!("{OBEYED}.pcapng"))
}

/// Returns the verdicts of fcn-top on senders of which one does not obey, captured in virtual time
/// into `folder`.
///
/// # Errors
/// The capture cannot be written or read.
pub fn obeyed(generator: &Generator, monitor: &Path, folder: &Path) -> Outcome<Vec<Judged>> {
    let capture = capture_in(folder);
    let truth = capture.with_extension("truth.json");
    generator.write_default(OBEYED, &[], &capture, &truth)?;
    let truth = serde_json::from_str(&fs_err::read_to_string(truth)?)?;
    senders::judge(monitor, &capture, None, &truth)
}

/// Returns frame number, protocol and Info column of the packets that match a display filter, from
/// the installed tshark.
fn decode(file: &Path, filter: &str) -> Outcome<Vec<String>> {
    // Columns, because the fields with their text have different names in different versions of
    // Wireshark.
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "tabs", "-o", captures::COLUMNS, "-r"]);
    command.arg(file).args(["-Y", filter]);
    let text = process::stdout(&mut command)?;
    Ok(text.lines().filter_map(row).collect())
}

/// Aligns a line of `-T tabs`.
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

/// Returns a path relative to the current folder.
fn here(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path)
}

/// Returns the command that a user would type next: Wireshark if there is a screen for it.
fn next_command(capture: &Path) -> String {
    let displays = ["DISPLAY", "WAYLAND_DISPLAY"];
    let screen = displays
        .into_iter()
        .any(|name| std::env::var_os(name).is_some());
    let path = here(capture).display();
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
    fn long_lines_are_truncated_between_characters() {
        assert_eq!(shortened("a→b", 3), "a→b");
        assert_eq!(shortened("a→b→c", 3), "a→…");
        assert_eq!(shortened("ab", 0), "…");
    }

    #[test]
    fn decodes_one_line_per_packet() {
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
        let all = decode(&file, "frame").unwrap();
        assert!(
            all.len() == 1 && all[0].starts_with("  1  0x88b5  "),
            "{all:?}"
        );
        assert!(decode(&file, "ip").unwrap().is_empty());
        assert!(decode(&file, "no.such.field").is_err());
        std::fs::remove_file(file).unwrap();
    }
}
