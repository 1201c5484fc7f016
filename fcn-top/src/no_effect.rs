//! Rejects options that would have no effect in this run, so that no one relies on them. A
//! configuration file may contain them for other runs.

use crate::cli::Cli;
use crate::setup::{OutputMode, Printing};
use fcn_tool::failure::{Failure, Result};

/// Rejects options on the command line that do nothing in this mode of output.
///
/// # Errors
///
/// There is such an option; the text names it and its purpose.
pub fn refuse(cli: &Cli, way: OutputMode) -> Result {
    let (mode, limits, given) = (&cli.mode, &cli.limits, &cli.preferences);
    let on = |switch: Option<bool>| switch == Some(true);
    let is_screen = way == OutputMode::Screen;
    let exports = mode.export.is_some();
    let has_intervals = matches!(
        way,
        OutputMode::Headless(Printing::JsonLines | Printing::CsvIntervals)
    );
    let has_rows = has_intervals
        || exports
        || mode.html.is_some()
        || matches!(
            way,
            OutputMode::Headless(Printing::Json | Printing::Csv | Printing::Report)
        );
    // Preconditions of options: whether each holds, and its name.
    let capture = (!cli.input.iface.is_empty(), "capturing on an interface");
    let screen = (is_screen, "a screen");
    let packets = (is_screen || exports, "a screen, or --export");
    let intervals = (has_intervals, "--jsonl, or --csv");
    let rows = (
        is_screen || has_rows,
        "rows: a screen, --report, --json, --jsonl, --csv, --html or --export",
    );
    let top = (
        has_rows || mode.prometheus.is_some(),
        "--report, --json, --jsonl, --csv, --html, --export or --prometheus",
    );
    let names = (!on(given.privacy), "names, which --privacy masks");
    for (option, is_given, (is_used, what)) in [
        ("--buffer", given.buffer.is_some(), capture),
        ("--snap-length", given.snap_length.is_some(), capture),
        ("--no-promiscuous", on(given.no_promiscuous), capture),
        ("--no-kernel-filter", on(given.no_kernel_filter), capture),
        ("--keep-privileges", on(given.keep_privileges), capture),
        ("--keep", given.keep.is_some(), packets),
        ("--interval", given.interval.is_some(), intervals),
        ("--sort", given.sort.is_some(), rows),
        ("--where", limits.rows.is_some(), rows),
        ("--top", limits.top.is_some(), top),
        ("--view", given.view.is_some(), screen),
        ("--colours", given.colours.is_some(), screen),
        ("--refresh", given.refresh.is_some(), screen),
        ("--resolve", on(given.resolve), names),
    ] {
        if is_given && !is_used {
            return Err(Failure::usage(option)
                .and(format!("it requires {what}"))
                .and("it would have no effect here: omit it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::way;
    use clap::Parser;

    fn refused(words: &str, terminal: bool) -> Option<String> {
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        let way = way(&cli, terminal).unwrap();
        refuse(&cli, way).err().map(|failure| failure.to_string())
    }

    #[test]
    fn options_without_effect_are_rejected_by_name() {
        for (words, terminal, option) in [
            ("fcn-top -r a --json --buffer 1MiB", false, "--buffer"),
            ("fcn-top -r a --no-promiscuous", true, "--no-promiscuous"),
            ("fcn-top -i a --json --interval 1s", false, "--interval"),
            ("fcn-top -i a --json --view notifiers", false, "--view"),
            ("fcn-top -i a --report --keep 1MiB", false, "--keep"),
            ("fcn-top -i a --audit --where qp=5", false, "--where"),
            ("fcn-top -i a --prometheus 0 --sort qp", false, "--sort"),
            ("fcn-top -i a --top 5", true, "--top"),
            ("fcn-top -i a --resolve --privacy", true, "--resolve"),
        ] {
            let message = refused(words, terminal).unwrap_or_default();
            assert!(
                message.starts_with(&format!("{option}: ")),
                "{words}: {message}"
            );
        }
        for (words, terminal) in [
            (
                "fcn-top -i a --buffer 1MiB --keep 1MiB --view notifiers",
                true,
            ),
            ("fcn-top -r a --no-promiscuous=false --json", false),
            ("fcn-top -i a --csv --interval 1s --top 5 --sort qp", false),
            (
                "fcn-top -i a --audit --export b --where qp=5 --keep 1MiB",
                false,
            ),
            ("fcn-top -i a --prometheus 0 --top 5", true),
            ("fcn-top -i a --resolve --privacy=false", true),
        ] {
            assert_eq!(refused(words, terminal), None, "{words}");
        }
    }
}
