//! `--counters`: the counters of RDMA devices, without capturing.

use super::Watch;
use super::read::{Reader, wait};
use crate::cli::Cli;
use crate::config::Preferences;
use crate::engine::{privileges, wall_clock};
use crate::no_effect;
use crate::output::csv;
use crate::output::json;
use crate::output::prometheus::{self, Exposition};
use crate::output::report;
use crate::setup::{self, OutputMode, Printing};
use crate::tables::Nics;
use crate::text::Formatter;
use fcn_tool::console::{Console, print};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::counted;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Prints or serves the counters of RDMA devices.
///
/// # Errors
///
/// There is no device, an option would have no effect, or the output cannot be written.
pub fn run(cli: &mut Cli, file: Preferences, console: &mut Console<'_>) -> Result {
    no_effect::refuse(cli, OutputMode::Headless(Printing::Nothing))?;
    if cli.mode.prometheus.is_some() && cli.mode.is_headless() {
        return Err(
            Failure::usage("--prometheus").and("counters can be served or printed, not both")
        );
    }
    let preferences = std::mem::take(&mut cli.preferences).or(file);
    let listener = cli.mode.prometheus.map(prometheus::listen).transpose()?;
    if preferences.keep_privileges != Some(true) {
        privileges::drop_all().map_err(Failure::failed)?;
    }
    let interrupted = (console.catch_interrupt)()?;
    let words = setup::words(&preferences);
    let mut reader = Reader::new(preferences.privacy == Some(true));
    let mut watch = Watch::default();
    let reading = reader.read(true);
    if reading.ports.is_empty() {
        let missing = reading.missing.unwrap_or_default();
        return Err(Failure::usage("nothing to read").and(missing));
    }
    let mut nics = watch.take(&reading, None);
    let (begun, duration) = (Instant::now(), cli.limits.duration);
    let over = || {
        let interrupted = interrupted.load(Ordering::Relaxed);
        interrupted || duration.is_some_and(|most| begun.elapsed() >= most)
    };
    if let Some(listener) = listener {
        let exposition = Exposition::new(0, words);
        let page = move || exposition.counters(&watch.take(&reader.read(false), None));
        // Serves until it is dropped.
        let server = prometheus::serve_page(listener, page)?;
        if !cli.mode.quiet {
            let address = server.address();
            let _ = writeln!(console.err, "fcn-top: metrics at http://{address}/metrics");
        }
        wait(over);
        return Ok(());
    }
    if duration.is_some() {
        reader.each_second(over, |reading, _| nics = watch.take(reading, None));
    }
    print_counters(cli, &nics, &words, console)?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("the output covers counts until then"));
    }
    complete(&nics, &words)
}

/// Checks that all counters read at first were there until the end.
pub(super) fn complete(nics: &Nics, formatter: &Formatter) -> Result {
    let gone = nics.counters.iter().filter(|counter| counter.vanished);
    let mut ports: Vec<_> = gone
        .map(|counter| format!("{} port {}", formatter.text(&counter.device), counter.port))
        .collect();
    let count = ports.len() as u64;
    ports.dedup();
    match count {
        0 => Ok(()),
        _ => Err(
            Failure::incomplete(format!("{} vanished meanwhile", counted(count, "counter")))
                .and(ports.join(", "))
                .and("their last values are shown"),
        ),
    }
}

fn print_counters(
    cli: &Cli,
    nics: &Nics,
    formatter: &Formatter,
    console: &mut Console<'_>,
) -> Result {
    let failed = |error: std::io::Error| Failure::stdout(&error);
    if cli.mode.json {
        let document = json::counted(wall_clock(), nics, formatter);
        return json::write(&document, console.out, false).map_err(failed);
    }
    if cli.mode.csv {
        let mut octets = Vec::new();
        csv::table(&mut octets, &nics.counters, formatter).map_err(failed)?;
        return print(console.out, &String::from_utf8_lossy(&octets));
    }
    let mut text = String::new();
    report::nics(&mut text, nics, formatter);
    print(console.out, text.trim_start())
}
