//! Settings of a run, checked and combined from command line and configuration before anything is
//! opened.

use crate::cli::Cli;
use crate::columns::Rates;
use crate::config::Preferences;
use crate::filter::Filter;
use crate::monitor::{Limits, Settings};
use crate::names::{Names, Pseudonyms};
use crate::order::Order;
use crate::output::Selection;
use crate::record::{CounterRecord, EventRecord, HopRecord, InterfaceRecord, PointRecord};
use crate::record::{FlowRecord, QpRecord, ReceiverRecord, Record};
use crate::text::Formatter;
use crate::view::{Options, Tab};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::DscpSet;
use fcn_wire::Profile;
use fcn_wire::pnc::Prefix;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::Arc;

/// Format of the printed output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printing {
    /// Nothing.
    Nothing,
    /// One document at the end.
    Json,
    /// A line of JSON for each interval.
    JsonLines,
    /// CSV rows at the end.
    Csv,
    /// CSV rows of each interval.
    CsvIntervals,
    /// A report at the end.
    Report,
    /// Broken rules, a line each, and the verdict.
    Audit,
    /// The audit as one document at the end.
    AuditJson,
}

/// Mode of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// On a screen.
    Screen,
    /// Printed or written, then done.
    Headless(Printing),
    /// Metrics only, until stopped.
    Daemon,
}

/// Returns the mode of output for these options; `terminal` is true if standard output is a
/// terminal.
///
/// # Errors
///
/// There is no terminal, and no option selects an output.
pub fn way(cli: &Cli, terminal: bool) -> Result<OutputMode> {
    let mode = &cli.mode;
    let printing = match mode {
        _ if mode.audit && mode.json => Printing::AuditJson,
        _ if mode.audit => Printing::Audit,
        _ if mode.json => Printing::Json,
        _ if mode.jsonl => Printing::JsonLines,
        _ if mode.csv && cli.preferences.interval.is_some() => Printing::CsvIntervals,
        _ if mode.csv => Printing::Csv,
        _ if mode.report => Printing::Report,
        _ => Printing::Nothing,
    };
    if mode.is_headless() {
        return Ok(OutputMode::Headless(printing));
    }
    match (terminal, mode.prometheus) {
        (true, _) => Ok(OutputMode::Screen),
        (false, _) if cli.input.demo => Err(Failure::usage("--demo")
            .and("standard output is not a terminal, and synthetic traffic is only shown on a screen")),
        (false, Some(_)) => Ok(OutputMode::Daemon),
        (false, None) => Err(Failure::usage("standard output is not a terminal").and(
            "select an output: --report, --json, --jsonl, --csv, --html or --audit; or --prometheus, or --export",
        )),
    }
}

/// Returns the filter and order of rows.
///
/// # Errors
///
/// The filter or the order is invalid.
pub fn selection(cli: &Cli, preferences: &Preferences, mode: OutputMode) -> Result<Selection> {
    // Output at the end covers the whole capture, not its last second.
    let rates = match mode {
        OutputMode::Headless(Printing::JsonLines | Printing::CsvIntervals) => Rates::Latest,
        OutputMode::Headless(_) => Rates::Mean,
        OutputMode::Screen | OutputMode::Daemon => Rates::Latest,
    };
    let filter = cli.limits.rows.as_deref().unwrap_or_default();
    let order = preferences.sort.as_deref().unwrap_or_default();
    let of_flows = cli.mode.flows;
    let (filter, order) = match of_flows {
        true => chosen::<FlowRecord>(filter, order, rates),
        false => chosen::<QpRecord>(filter, order, rates),
    }?;
    let top = cli
        .limits
        .top
        .map(|top| if top == 0 { usize::MAX } else { top });
    Ok(Selection {
        order,
        top,
        filter,
        of_flows,
    })
}

/// Returns the filter and the order of a table, if there is one.
fn chosen<R: Record>(filter: &str, order: &str, rates: Rates) -> Result<(Filter, Option<Order>)> {
    let filter = Filter::parse_with::<R>(filter, rates)
        .map_err(|error| Failure::usage("--where").and(error.to_string()))?;
    let order = (!order.is_empty())
        .then(|| Order::parse_with::<R>(order, rates))
        .transpose()
        .map_err(|error| Failure::usage("--sort").and(error))?;
    Ok((filter, order))
}

/// Returns the code points.
///
/// # Errors
///
/// The file cannot be read, or is not a profile.
pub fn profile(preferences: &Preferences) -> Result<Profile> {
    let path = preferences.profile.as_deref();
    let mut profile = match path.filter(|path| *path != Path::new("")) {
        None => Profile::DEFAULT,
        Some(path) => {
            let bad = || Failure::usage("bad profile").and(path.display().to_string());
            let text =
                std::fs::read_to_string(path).map_err(|error| bad().and(error.to_string()))?;
            Profile::from_toml(&text).map_err(|error| bad().and(error.to_string()))?
        }
    };
    let chosen = dscps("trimmed-dscp", preferences.trimmed_dscp.as_ref())?;
    profile.trimmed_dscp = profile.trimmed_dscp.union(chosen);
    Ok(profile)
}

/// Returns DSCPs: the configuration file is not checked by the parser of the command line.
fn dscps(option: &str, chosen: Option<&Vec<u8>>) -> Result<DscpSet> {
    let chosen = chosen.cloned().unwrap_or_default();
    DscpSet::try_from(chosen).map_err(|error| Failure::usage(format!("bad {option}")).and(error))
}

/// Returns the settings of the monitor.
///
/// # Errors
///
/// The configuration file has a DSCP above 63.
pub fn settings(cli: &Cli, preferences: &Preferences, profile: Profile) -> Result<Settings> {
    let prefixes = |list: &Option<Vec<crate::values::Net>>| -> Vec<Prefix> {
        list.iter().flatten().map(|net| net.0).collect()
    };
    let rows = preferences.max_rows.map_or(Limits::default().rows, |rows| {
        usize::try_from(rows.0).unwrap_or(usize::MAX)
    });
    let usual = Settings::default();
    Ok(Settings {
        profile,
        limits: Limits {
            rows,
            flows: rows,
            connections: rows,
            ..usual.limits
        },
        per_interface: preferences.per_interface.unwrap_or(false),
        mirror_clock: preferences.mirror_clock.unwrap_or(false),
        verify_icrc: !preferences.no_icrc.unwrap_or(false),
        trust: prefixes(&preferences.trust),
        able: prefixes(&preferences.able),
        domain: prefixes(&preferences.domain),
        flow_rate: preferences.flow_rate.unwrap_or(usual.flow_rate),
        link_speed: (preferences.link_speed).map_or(usual.link_speed, |speed| speed.0),
        hides_names: preferences.privacy == Some(true),
        cnp_dscp: dscps("cnp-dscp", preferences.cnp_dscp.as_ref())?,
        sampled: cli.input.sampled,
    })
}

/// Returns the formatting options. Starts a thread if names are resolved.
pub fn words(preferences: &Preferences) -> Formatter {
    let zone = if preferences.utc == Some(true) {
        TimeZone::UTC
    } else {
        TimeZone::system()
    };
    let formatter = Formatter::new(zone);
    if preferences.privacy == Some(true) {
        formatter.with_privacy(Arc::new(Pseudonyms::default()))
    } else if preferences.resolve == Some(true) {
        formatter.with_names(Arc::new(Names::from_resolver()))
    } else {
        formatter
    }
}

/// Returns the configuration of `file`, without its order if that applies to another table than the
/// one shown with `cli` in this mode: a preferred order of the points is not one of the QPs.
pub fn fitting(file: Preferences, cli: &Cli, mode: OutputMode) -> Preferences {
    let usual = Tab::default().id();
    let its = file.view.as_deref().unwrap_or(usual);
    let shown = match mode {
        OutputMode::Screen => cli.preferences.view.as_deref().unwrap_or(its),
        // Printed output shows the QPs, or the flows.
        OutputMode::Headless(_) | OutputMode::Daemon => usual,
    };
    if shown == its && !cli.mode.flows {
        return file;
    }
    Preferences { sort: None, ..file }
}

/// Returns the initial state of the screen in this mode.
///
/// # Errors
///
/// There is no such view, or its table has no such order or filter.
pub fn screen(cli: &Cli, preferences: &Preferences, mode: OutputMode) -> Result<Options> {
    let usual = Options::default();
    let view = preferences.view.as_deref().unwrap_or(usual.view.id());
    let view = Tab::named(view).ok_or_else(|| {
        let views: Vec<_> = Tab::ALL.iter().map(|view| view.id()).collect();
        Failure::usage("--view")
            .and(format!("`{view}` is not a view"))
            .and(format!("available: {}", views.join(", ")))
    })?;
    let order = preferences.sort.clone().unwrap_or_default();
    let filter = cli.limits.rows.clone().unwrap_or_default();
    if mode == OutputMode::Screen {
        match view {
            // A flow is a row of the QPs table.
            Tab::Qps | Tab::Flow => table::<QpRecord>(view, &order, &filter),
            Tab::Notifiers => table::<PointRecord>(view, &order, &filter),
            Tab::Paths => table::<HopRecord>(view, &order, &filter),
            Tab::Events => table::<EventRecord>(view, &order, &filter),
            Tab::Interfaces => table::<InterfaceRecord>(view, &order, &filter),
            Tab::Nics => table::<CounterRecord>(view, &order, &filter),
            Tab::Flows => table::<FlowRecord>(view, &order, &filter),
            Tab::Receivers => table::<ReceiverRecord>(view, &order, &filter),
        }?;
    }
    Ok(Options {
        refresh: preferences.refresh.map_or(usual.refresh, |span| span.0),
        view,
        order,
        filter,
        colours: preferences.colours.unwrap_or_default(),
        ..usual
    })
}

/// Checks that the table of `view` supports that order and that filter, if they are not empty.
fn table<R: Record>(view: Tab, order: &str, filter: &str) -> Result {
    let wrong = |option: &str, error: String| {
        let columns: Vec<_> = R::COLUMNS.iter().map(|column| column.id).collect();
        let mut failure = Failure::usage(option).and(error.clone());
        if view != Tab::Qps && !error.contains(columns.join(", ").as_str()) {
            failure = failure.and(format!(
                "the view `{}` has the columns {}",
                view.id(),
                columns.join(", ")
            ));
        }
        failure
    };
    if !order.is_empty() {
        Order::parse::<R>(order).map_err(|error| wrong("--sort", error))?;
    }
    Filter::parse::<R>(filter).map_err(|error| wrong("--where", error.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(words: &str, mode: OutputMode) -> core::result::Result<Options, String> {
        let mut cli = Cli::try_parse_from(words.split(' ')).unwrap();
        let preferences = core::mem::take(&mut cli.preferences);
        screen(&cli, &preferences, mode).map_err(|failure| failure.to_string())
    }

    #[test]
    fn order_and_filter_apply_to_the_view() {
        for words in [
            "fcn-top -i a --sort -total --where qp=5",
            "fcn-top -i a --view flow --sort -total --where qp=5",
            "fcn-top -i a --view notifiers --sort -flows --where flows>3",
            "fcn-top -i a --view paths --sort queue_max --where hop=2",
            "fcn-top -i a --view events --sort -at --where severity>=warning",
            "fcn-top -i a --view interfaces --sort name --where state=up",
            "fcn-top -i a --view flows --sort -stalled --where ecn=not_ect",
        ] {
            options(words, OutputMode::Screen).unwrap();
        }
        for (words, option) in [
            ("fcn-top -i a --view notifiers --sort qp", "--sort"),
            ("fcn-top -i a --view notifiers --where qp=5", "--where"),
            ("fcn-top -i a --view events --sort total", "--sort"),
            ("fcn-top -i a --view interfaces --where hop=1", "--where"),
            ("fcn-top -i a --view paths --sort quue_max", "--sort"),
        ] {
            let error = options(words, OutputMode::Screen).unwrap_err();
            assert!(error.starts_with(&format!("{option}: ")), "{error}");
            let all = match words.split(' ').nth(4) {
                Some("notifiers") => "notifier, notifier_role, made_by, trusted, ",
                Some("events") => "at, severity, what, times, ",
                Some("paths") => "path, traces, hop, node, ",
                _ => "name, state, received, ",
            };
            assert!(error.contains(all), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            // Printed output is checked elsewhere, against the QPs.
            options(words, OutputMode::Headless(Printing::Json)).unwrap();
        }
    }

    #[test]
    fn a_configured_order_applies_to_the_configured_view() {
        let file = |view: Option<&str>| Preferences {
            view: view.map(str::to_owned),
            sort: Some("-total".to_owned()),
            ..Preferences::default()
        };
        let json = OutputMode::Headless(Printing::Json);
        for (view, words, way, kept) in [
            (None, "fcn-top -i a", OutputMode::Screen, true),
            (
                None,
                "fcn-top -i a --view notifiers",
                OutputMode::Screen,
                false,
            ),
            (Some("notifiers"), "fcn-top -i a", OutputMode::Screen, true),
            (
                Some("notifiers"),
                "fcn-top -i a --view qps",
                OutputMode::Screen,
                false,
            ),
            (Some("notifiers"), "fcn-top -i a", json, false),
            (None, "fcn-top -i a", json, true),
        ] {
            let cli = Cli::try_parse_from(words.split(' ')).unwrap();
            let fitting = fitting(file(view), &cli, way);
            assert_eq!(fitting.sort.is_some(), kept, "{words} {view:?}");
        }
    }
}
