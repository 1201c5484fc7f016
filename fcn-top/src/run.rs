//! From the command line to the exit code: parses the arguments, opens the inputs, and runs the
//! output.

use crate::analysis::NO_COUNTERS;
use crate::cli::Cli;
use crate::config::{self, Preferences};
use crate::engine::packet_store::PacketStore;
use crate::engine::{Engine, Limits};
use crate::headless::{self, Outcome, Printer, Warnings};
use crate::inputs::{self, Inputs};
use crate::monitor::Monitor;
use crate::nic::{command, read::NicInput};
use crate::no_effect;
use crate::output::Selection;
use crate::output::audit::{self, Unchecked};
use crate::output::html::{self, PageFile, Story};
use crate::output::part::Part;
use crate::output::prometheus::{self, Exposition};
use crate::output::report::Header;
use crate::record::INDIRECT;
use crate::running::feed;
use crate::setup::{self, OutputMode, Printing};
use crate::tables::{Nics, TableSource, Wanted};
use crate::text::Formatter;
use crate::view::{self, Tab};
use clap::Parser;
use fcn_observe::time::nanos;
use fcn_tool::console::{Console, conclude, print, usage};
use fcn_tool::failure::{Exit, Failure, Result};
use fcn_tool::quantity::{counted, grouped};
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PROGRAM: &str = "fcn-top";

/// Runs the command given by `args` (the first is the program's name) and returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let done = match Cli::try_parse_from(args) {
        Ok(cli) if cli.config.print_config => print(console.out, &config::template()),
        Ok(cli) if cli.input.list_interfaces => {
            inputs::list().and_then(|list| print(console.out, &list))
        }
        Ok(cli) => watch(cli, console),
        Err(error) => usage(&error, console),
    };
    conclude(PROGRAM, done, console)
}

fn watch(mut cli: Cli, console: &mut Console<'_>) -> Result {
    let file = if cli.config.no_config {
        Preferences::default()
    } else {
        Preferences::load(cli.config.config.as_deref())?
    };
    if cli.input.counters {
        return command::run(&mut cli, file, console);
    }
    let is_file = cli.input.read.is_some() || cli.input.demo;
    if cli.input.iface.is_empty() && !is_file {
        let private = cli.preferences.privacy.or(file.privacy);
        return Err(inputs::nothing(private == Some(true)));
    }
    // Intervals are enabled by the command line only.
    let way = setup::way(&cli, console.out_is_terminal)?;
    no_effect::refuse(&cli, way)?;
    let file = setup::fitting(file, &cli, way);
    let preferences = std::mem::take(&mut cli.preferences).or(file);
    let mut options = setup::screen(&cli, &preferences, way)?;
    let selection = if way == OutputMode::Screen && options.view != Tab::Qps {
        // Order and filter then belong to another table and are already checked.
        Selection::default()
    } else {
        setup::selection(&cli, &preferences, way)?
    };
    let profile = setup::profile(&preferences)?;
    let private = preferences.privacy == Some(true);
    if private && cli.mode.export.is_some() {
        return Err(
            Failure::usage("--export").and("it would reveal the addresses that --privacy hides")
        );
    }
    let files = [cli.mode.export.as_deref(), cli.mode.html.as_deref()];
    cli.mode.replacing.check(files)?;
    let settings = setup::settings(&cli, &preferences, profile.clone())?;
    let unchecked = audit::unchecked(&settings);
    options.checked = audit::checked_and_why(&unchecked);

    // Binding the port may need privileges that are dropped below.
    let listener = cli.mode.prometheus.map(prometheus::listen).transpose()?;
    let over = Arc::new(AtomicBool::new(false));
    // Threads started earlier would keep their privileges, including the one that catches Ctrl-C.
    let (inputs, interrupted) = if is_file {
        let interrupted = (console.catch_interrupt)()?;
        let stops = [Arc::clone(&interrupted), Arc::clone(&over)];
        (inputs::file(&cli, &preferences, &stops)?, interrupted)
    } else {
        let inputs = inputs::live(&cli, &preferences, &profile)?;
        (inputs, (console.catch_interrupt)()?)
    };
    let words = setup::words(&preferences);
    // Created before the run that fills it, and with the remaining privileges.
    let page = (cli.mode.html.as_deref())
        .map(|to| new_page(to, cli.mode.replacing.force, inputs.are_live()))
        .transpose()?;

    let mut monitor = Monitor::new(settings);
    if page.is_some() {
        monitor.keep_course();
    }
    let printing = match way {
        OutputMode::Headless(printing) => printing,
        OutputMode::Screen | OutputMode::Daemon => Printing::Nothing,
    };
    let (printer, timer) = Printer::new(
        printing,
        (selection.clone(), words.clone()),
        &mut monitor,
        preferences.interval(),
    );
    let keeps = cli.mode.export.is_some() || (way == OutputMode::Screen && !private);
    let room = preferences.keep.map_or(8 << 20, |size| size.0);
    let store = keeps.then(|| PacketStore::new(usize::try_from(room).unwrap_or(usize::MAX)));
    let limits = Limits {
        count: cli.limits.count,
        span: cli.limits.duration.filter(|_| !inputs.are_live()),
    };
    let engine = Arc::new(Engine::new(monitor, store, limits, private));
    if let Some(timer) = timer {
        engine.set_timer(timer);
    }
    if let (Inputs::Live(_, rights), OutputMode::Headless(_) | OutputMode::Daemon) = (&inputs, way)
        && !cli.mode.quiet
    {
        // Announced before the first packet, so that a script that starts the program can wait for
        // it.
        let _ = writeln!(
            console.err,
            "{PROGRAM}: capturing on {}; {rights}; Ctrl-C stops",
            match private {
                true => counted(cli.input.iface.len() as u64, "interface"),
                false => cli.input.iface.join(", "),
            }
        );
    }
    let live = inputs.are_live();
    let mut inputs = inputs.introduce(&engine);
    if live {
        inputs.push(Box::new(NicInput::new(private)));
    } else {
        engine.set_nics(Nics {
            missing: Some(NO_COUNTERS.into()),
            ..Nics::default()
        });
    }
    let deadline = cli.limits.duration;
    // Serves until it is dropped.
    let by_interface = preferences.per_interface == Some(true);
    let _server = listener
        .map(|listener| metrics(listener, &cli, by_interface, &engine, &words, way, console))
        .transpose()?;
    match way {
        OutputMode::Screen => {
            let (shown, ended) = feed(&engine, inputs, (&over, deadline), || {
                view::run(&*engine, &options, &words, &interrupted)
            });
            shown?;
            // Problems of an interface were on the screen; an incomplete capture is reported once
            // more.
            if live { check_losses(&engine) } else { ended }
        }
        OutputMode::Daemon => {
            let ((), ended) = feed(&engine, inputs, (&over, deadline), || {
                let mut warnings = Warnings::default();
                // The metrics of a capture file are served until the program is stopped.
                while !interrupted.load(Ordering::Relaxed) && (engine.runs() || !live) {
                    warnings.tell(&engine, console.err);
                    std::thread::sleep(Duration::from_millis(50));
                }
                warnings.finish(&engine, console.err);
            });
            ended?;
            if !interrupted.load(Ordering::Relaxed) {
                captured(&engine)?;
            }
            check_losses(&engine)
        }
        OutputMode::Headless(_) => {
            let (printed, ended) = feed(&engine, inputs, (&over, deadline), || {
                printer.wait(&engine, (&interrupted, &over), console)
            });
            let how = printed?;
            if let Err(failure) = &ended
                && failure.exit() == Exit::Usage
            {
                return ended;
            }
            let header = header(&cli, private, &engine, &ended, how);
            let shown = printer.conclude(&engine, (&header, &unchecked, cli.mode.strict), console);
            let exported = match &cli.mode.export {
                Some(to) => {
                    let to = (to.as_path(), live, cli.mode.quiet);
                    export(&engine, &selection, &words, to, console)
                }
                None => Ok(()),
            };
            let written = match page {
                Some(page) => {
                    let with = (&header, &unchecked[..], &selection, &words, by_interface);
                    write_page(page, &engine, with, &cli, console)
                }
                None => Ok(()),
            };
            shown.and(exported).and(written).and(ended)?;
            match how {
                Outcome::Well if live => captured(&engine).and(check_losses(&engine)),
                Outcome::Well => check_losses(&engine),
                Outcome::Interrupted => {
                    Err(Failure::interrupted("the output covers packets until then"))
                }
            }
        }
    }
}

/// Fails if no interface could be captured on at the end: an empty capture means nothing then.
fn captured(engine: &Engine) -> Result {
    let interfaces = engine.tables(Wanted::default()).interfaces;
    if engine.limit_reached() || interfaces.iter().any(|interface| interface.state == "up") {
        return Ok(());
    }
    let watched = interfaces
        .iter()
        .filter(|interface| interface.state != INDIRECT);
    let states: Vec<String> = watched
        .map(|interface| format!("{} is {}", interface.name, interface.state))
        .collect();
    Err(Failure::failed("no interface was up at the end").and(states.join(", ")))
}

/// Fails if packets were lost.
fn check_losses(engine: &Engine) -> Result {
    if engine.is_lossy() {
        return Err(Failure::incomplete("packets were lost")
            .and(headless::lost(&engine.tables(Wanted::default()))));
    }
    Ok(())
}

/// Starts to serve metrics.
fn metrics(
    listener: TcpListener,
    cli: &Cli,
    by_interface: bool,
    engine: &Arc<Engine>,
    formatter: &Formatter,
    mode: OutputMode,
    console: &mut Console<'_>,
) -> Result<prometheus::Server> {
    let rows = cli.limits.top.unwrap_or(prometheus::QPS);
    let engine = Arc::clone(engine);
    let tables = move || {
        engine.tables(Wanted {
            qps: true,
            first: prometheus::order().map(|order| (order, rows)),
            points: true,
            flows: true,
            ..Wanted::default()
        })
    };
    let mut exposition = Exposition::new(rows, formatter.clone());
    exposition.by_interface = by_interface;
    let server = prometheus::serve(listener, exposition, tables)?;
    if mode != OutputMode::Screen && !cli.mode.quiet {
        let address = server.address();
        let _ = writeln!(
            console.err,
            "{PROGRAM}: metrics at http://{address}/metrics"
        );
    }
    Ok(server)
}

/// Returns the facts of a report that are not in the tables.
fn header(cli: &Cli, private: bool, engine: &Engine, ended: &Result, how: Outcome) -> Header {
    let files = cli.input.read.iter().map(|path| path.display().to_string());
    // They may contain an address in any spelling.
    let read = cli.input.iface.iter().cloned().chain(files);
    let read = read.filter(|_| !private).collect();
    let ended = match (ended, how) {
        (Err(failure), _) => Some(failure.to_string()),
        (Ok(()), Outcome::Interrupted) => Some("interrupted".to_owned()),
        (Ok(()), Outcome::Well) => None,
    };
    // A live capture has no end, so stopping it does not make the output partial.
    let limit_reached = cli.input.read.is_some() && engine.limit_reached();
    let part = Part {
        filter: cli.input.filter.clone(),
        interfaces: cli.input.interface.clone(),
        private,
        count: cli.limits.count.filter(|_| limit_reached),
        span: cli.limits.duration.map(nanos).filter(|_| limit_reached),
        last_frame: limit_reached.then(|| engine.last()),
    };
    Header { read, part, ended }
}

/// A failure to write a file; `dropped` is true if privileges were dropped before.
fn write_failure(what: &str, why: String, dropped: bool) -> Failure {
    let denied = why.contains("ermission denied");
    let failure = Failure::failed(what).and(why);
    if denied && dropped {
        failure.and("privileges had been dropped: write elsewhere, or use --keep-privileges")
    } else {
        failure
    }
}

/// Creates the file of a page.
fn new_page(to: &Path, replace: bool, dropped: bool) -> Result<PageFile> {
    PageFile::create(to, replace).map_err(|why| write_failure("--html", why, dropped))
}

/// Writes a page about the whole run.
fn write_page(
    page: PageFile,
    engine: &Engine,
    (header, unchecked, selection, words, by_interface): (
        &Header,
        &[Unchecked],
        &Selection,
        &Formatter,
        bool,
    ),
    cli: &Cli,
    console: &mut Console<'_>,
) -> Result {
    let mut tables = engine.tables(Wanted::ALL);
    let notifiers = html::notifiers(&tables);
    let left_out = html::shorten(&mut tables);
    let course = engine.with(|monitor| monitor.course());
    let story = Story {
        header,
        unchecked,
        notifiers,
        tables: &tables,
        left_out: &left_out,
        course: &course.unwrap_or_default(),
        is_file: cli.input.read.is_some(),
        by_interface,
    };
    let selected = selection.or_top(html::ROWS);
    if let Some(missing) = selected.wait_for_names(&tables, words) {
        // Losing a warning is not an error.
        let _ = writeln!(console.err, "{PROGRAM}: warning: {missing}");
    }
    let document = html::document(&story, selection, words);
    let octets = page
        .write(&document)
        .map_err(|why| Failure::failed("--html").and(why))?;
    if let Some(to) = cli.mode.html.as_ref().filter(|_| !cli.mode.quiet) {
        let octets = counted(octets, "octet");
        let _ = writeln!(console.err, "{}: {octets}", to.display());
    }
    Ok(())
}

/// Exports the packets of the matching rows.
fn export(
    engine: &Engine,
    selection: &Selection,
    formatter: &Formatter,
    (to, dropped, quiet): (&Path, bool, bool),
    console: &mut Console<'_>,
) -> Result {
    let tables = engine.tables(Wanted {
        qps: true,
        ..Wanted::default()
    });
    if let Some(missing) = selection.wait_to_filter(&tables, formatter) {
        // Losing a warning is not an error, here and below.
        let _ = writeln!(console.err, "{PROGRAM}: warning: {missing}");
    }
    let selected = selection.apply(&tables, formatter);
    let rows = selected.rows.iter().map(|(id, _)| *id).collect();
    let (count, gone) = engine
        .export_rows(&rows, to)
        .map_err(|why| write_failure("cannot export", why, dropped))?;
    let mut text = format!("{}: {}", to.display(), counted(count, "packet"));
    if gone > 0 {
        text += &format!(
            "; {} older ones were already dropped: increase --keep",
            grouped(gone)
        );
    }
    if !quiet {
        // Losing a message is not an error.
        let _ = writeln!(console.err, "{text}");
    }
    Ok(())
}
