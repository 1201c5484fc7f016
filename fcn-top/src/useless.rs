//! Options that would do nothing in this run: refused, so that nobody believes in them. A configuration file may have them for
//! other runs.

use crate::asked::{Printing, Way};
use crate::cli::Cli;
use fcn_tool::failure::{Failure, Result};

/// Refuses what was given on the command line and has nothing to act on, where packets are shown in this way.
///
/// # Errors
/// There is such an option: which, and what it is for.
pub fn refuse(cli: &Cli, way: Way) -> Result {
    let (mode, limits, preferred) = (&cli.mode, &cli.limits, &cli.preferences);
    let captures = cli.input.read.is_none();
    let screen = way == Way::Screen;
    let exports = mode.export.is_some();
    let by_interval = matches!(
        way,
        Way::Headless(Printing::JsonLines | Printing::CsvIntervals)
    );
    let rows = by_interval
        || exports
        || matches!(
            way,
            Way::Headless(Printing::Json | Printing::Csv | Printing::Report)
        );
    let on = |switch: Option<bool>| switch == Some(true);
    let interfaces = "capturing on an interface";
    let printed = "rows: a screen, --report, --json, --jsonl, --csv or --export";
    for (option, given, used, what) in [
        ("--buffer", preferred.buffer.is_some(), captures, interfaces),
        (
            "--snap-length",
            preferred.snap_length.is_some(),
            captures,
            interfaces,
        ),
        (
            "--no-promiscuous",
            on(preferred.no_promiscuous),
            captures,
            interfaces,
        ),
        (
            "--no-kernel-filter",
            on(preferred.no_kernel_filter),
            captures,
            interfaces,
        ),
        (
            "--keep-privileges",
            on(preferred.keep_privileges),
            captures,
            interfaces,
        ),
        (
            "--keep",
            preferred.keep.is_some(),
            screen || exports,
            "a screen, or --export",
        ),
        (
            "--interval",
            preferred.interval.is_some(),
            by_interval,
            "--jsonl, or --csv",
        ),
        ("--sort", preferred.sort.is_some(), screen || rows, printed),
        ("--where", limits.rows.is_some(), screen || rows, printed),
        (
            "--top",
            limits.top.is_some(),
            rows || mode.prometheus.is_some(),
            "--report, --json, --jsonl, --csv, --export or --prometheus",
        ),
        ("--view", preferred.view.is_some(), screen, "a screen"),
        ("--colours", preferred.colours.is_some(), screen, "a screen"),
        ("--refresh", preferred.refresh.is_some(), screen, "a screen"),
        (
            "--resolve",
            on(preferred.resolve),
            !on(preferred.privacy),
            "names, which --privacy masks",
        ),
    ] {
        if given && !used {
            return Err(Failure::usage(option)
                .and(format!("it is for {what}"))
                .and("here it would do nothing: leave it out"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::way;
    use clap::Parser;

    fn refused(words: &str, terminal: bool) -> Option<String> {
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        let way = way(&cli, terminal).unwrap();
        refuse(&cli, way).err().map(|failure| failure.to_string())
    }

    #[test]
    fn what_would_do_nothing_is_refused_by_its_name() {
        for (words, terminal, option) in [
            ("fcn-top -r a --json --buffer 1MiB", false, "--buffer"),
            ("fcn-top -r a --no-promiscuous", true, "--no-promiscuous"),
            ("fcn-top -i a --json --interval 1s", false, "--interval"),
            ("fcn-top -i a --json --view points", false, "--view"),
            ("fcn-top -i a --report --keep 1MiB", false, "--keep"),
            ("fcn-top -i a --audit --where qp=5", false, "--where"),
            ("fcn-top -i a --prometheus 0 --sort qp", false, "--sort"),
            ("fcn-top -i a --top 5", true, "--top"),
            ("fcn-top -i a --resolve --privacy", true, "--resolve"),
        ] {
            let said = refused(words, terminal).unwrap_or_default();
            assert!(said.starts_with(&format!("{option}: ")), "{words}: {said}");
        }
        for (words, terminal) in [
            ("fcn-top -i a --buffer 1MiB --keep 1MiB --view points", true),
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
