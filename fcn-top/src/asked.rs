//! What was asked for, checked and put together from the command line and the configuration, before anything is opened.

use crate::cli::Cli;
use crate::config::{Colours, Preferences};
use crate::filter::Filter;
use crate::monitor::{Limits, Settings};
use crate::names::{Names, Pseudonyms};
use crate::order::Order;
use crate::output::Selection;
use crate::output::audit::Checked;
use crate::record::QpRecord;
use crate::screen::{self, Options, View};
use crate::text::Words;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::Profile;
use fcn_wire::pnc::Prefix;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::Arc;

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printing {
    /// Nothing.
    Nothing,
    /// One document at the end.
    Json,
    /// A line for each interval.
    JsonLines,
    /// Rows at the end.
    Csv,
    /// Rows of each interval.
    CsvIntervals,
    /// A report at the end.
    Report,
    /// Broken rules, a line each, and the verdict.
    Audit,
    /// The same as one document at the end.
    AuditJson,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a screen.
    Screen,
    /// Printed or written, and then over.
    Headless(Printing),
    /// By metrics alone, until someone stops it.
    Daemon,
}

/// How packets are shown with these options, where standard output is a terminal or not.
///
/// # Errors
/// There is no terminal, and nothing was said about what to print.
pub fn way(cli: &Cli, terminal: bool) -> Result<Way> {
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
        return Ok(Way::Headless(printing));
    }
    match (terminal, mode.prometheus) {
        (true, _) => Ok(Way::Screen),
        (false, Some(_)) => Ok(Way::Daemon),
        (false, None) => Err(Failure::usage("standard output is no terminal").and(
            "say what to print: --report, --json, --jsonl, --csv or --audit; or --prometheus, or --export",
        )),
    }
}

/// Which rows are shown, and in which order.
///
/// # Errors
/// A filter or an order that is none.
pub fn selection(cli: &Cli, preferences: &Preferences) -> Result<Selection> {
    let filter = Filter::parse::<QpRecord>(cli.limits.rows.as_deref().unwrap_or_default())
        .map_err(|error| Failure::usage("--where").and(error.to_string()))?;
    let order = match preferences.sort.as_deref().unwrap_or_default() {
        "" => None,
        order => Some(
            Order::parse::<QpRecord>(order).map_err(|error| Failure::usage("--sort").and(error))?,
        ),
    };
    let top = cli
        .limits
        .top
        .map(|top| if top == 0 { usize::MAX } else { top });
    Ok(Selection { order, top, filter })
}

/// The code points.
///
/// # Errors
/// The file cannot be read, or is no profile.
pub fn profile(preferences: &Preferences) -> Result<Profile> {
    let Some(path) = preferences
        .profile
        .as_deref()
        .filter(|path| *path != Path::new(""))
    else {
        return Ok(Profile::DEFAULT);
    };
    let bad = || Failure::usage("bad profile").and(path.display().to_string());
    let text = std::fs::read_to_string(path).map_err(|error| bad().and(error.to_string()))?;
    Profile::from_toml(&text, false).map_err(|error| bad().and(error.to_string()))
}

/// What the monitor is told.
#[must_use]
pub fn settings(preferences: &Preferences, profile: Profile) -> Settings {
    let prefixes = |list: &Option<Vec<crate::values::Net>>| -> Vec<Prefix> {
        list.iter().flatten().map(|net| net.0).collect()
    };
    let rows = preferences.max_rows.map_or(Limits::default().rows, |rows| {
        usize::try_from(rows.0).unwrap_or(usize::MAX)
    });
    let usual = Settings::default();
    Settings {
        profile,
        limits: Limits {
            rows,
            flows: rows,
            connections: rows,
            ..usual.limits
        },
        per_interface: preferences.per_interface.unwrap_or(false),
        verify_icrc: !preferences.no_icrc.unwrap_or(false),
        trust: prefixes(&preferences.trust),
        able: prefixes(&preferences.able),
        flow_rate: preferences.flow_rate.map_or(usual.flow_rate, |rate| {
            u32::try_from(rate.0).unwrap_or(u32::MAX)
        }),
    }
}

/// Which rules are checked only with something that these settings have.
#[must_use]
pub fn checked(settings: &Settings) -> Checked {
    Checked {
        trust: !settings.trust.is_empty(),
        able: !settings.able.is_empty(),
        icrc: settings.verify_icrc,
    }
}

/// How things are written out. With names, this starts a thread.
#[must_use]
pub fn words(preferences: &Preferences) -> Words {
    let zone = if preferences.utc == Some(true) {
        TimeZone::UTC
    } else {
        TimeZone::system()
    };
    let words = Words::new(zone);
    if preferences.privacy == Some(true) {
        words.with_privacy(Arc::new(Pseudonyms::new()))
    } else if preferences.resolve == Some(true) {
        words.with_names(Arc::new(Names::from_resolver()))
    } else {
        words
    }
}

/// How the screen begins.
///
/// # Errors
/// There is no such view.
pub fn screen(cli: &Cli, preferences: &Preferences) -> Result<Options> {
    let usual = Options::default();
    let view = preferences.view.as_deref().unwrap_or(usual.view.id());
    let view = View::named(view).ok_or_else(|| {
        let views: Vec<_> = View::ALL.iter().map(|view| view.id()).collect();
        Failure::usage("--view")
            .and(format!("`{view}` is none"))
            .and(format!("there are: {}", views.join(", ")))
    })?;
    Ok(Options {
        refresh: preferences.refresh.map_or(usual.refresh, |span| span.0),
        view,
        order: preferences.sort.clone().unwrap_or_default(),
        filter: cli.limits.rows.clone().unwrap_or_default(),
        colours: match preferences.colours.unwrap_or_default() {
            Colours::Auto => screen::Colours::Auto,
            Colours::Dark => screen::Colours::Dark,
            Colours::Light => screen::Colours::Light,
            Colours::None => screen::Colours::None,
        },
        ..usual
    })
}
