//! Executes the commands of the command line and prints their results.

use crate::check;
use crate::cli::{self, Cli, Command};
use crate::compare::{self, ComparisonRequest, Over, html};
use crate::describe;
use crate::emulate;
use crate::live;
use crate::pending::Pending;
use crate::plot;
use crate::scenario::{self, Source, builtin};
use crate::write::{self, Output, Request};
use clap::{CommandFactory, Parser};
use fcn_tool::console::{Console, print, print_json, usage};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::progress::Progress;
use std::ffi::OsString;

/// Executes the command in `args`.
pub(crate) fn run_command(args: Vec<OsString>, console: &mut Console<'_>) -> Result {
    let matches = match Cli::command().try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, console),
    };
    let args = match check::planned(&matches, &args)? {
        Some(whole) => whole,
        None => args,
    };
    match Cli::try_parse_from(args) {
        Ok(cli) => dispatch(cli.command, console),
        Err(error) => usage(&error, console),
    }
}

fn dispatch(command: Command, console: &mut Console<'_>) -> Result {
    match command {
        Command::List(options) => list(&options, console),
        Command::Show(options) => show(&options, console),
        Command::Write(options) => write(options, console),
        Command::Run(options) => live::run(*options, console),
        Command::Compare(options) => compare(options, console),
        Command::Emulate(options) => emulate::emulate(&options, console),
        Command::Check(command) => check::command(*command, console),
    }
}

fn list(options: &cli::List, console: &mut Console<'_>) -> Result {
    if options.json {
        let all = builtin::list().map(|(name, about)| (name, about, builtin::kind(name)));
        print_json(console.out, &describe::list_json(all))
    } else {
        print(console.out, &describe::list(builtin::list()))
    }
}

fn show(options: &cli::Show, console: &mut Console<'_>) -> Result {
    let cli::ScenarioArgs {
        scenario: name,
        sets,
    } = &options.scenario_args;
    let source = Source::named(name);
    let scenario = scenario::load(&source, sets)?;
    if options.toml {
        return print(console.out, &scenario::text_of(&source)?.2);
    }
    if options.json {
        print_json(console.out, &describe::show_json(&scenario, (name, sets)))
    } else {
        print(console.out, &describe::show(&scenario, (name, sets)))
    }
}

fn write(options: cli::Write, console: &mut Console<'_>) -> Result {
    let to_stdout = options.output == *"-";
    write::check_truth(options.truth.as_deref(), None)?;
    let files = [Some(options.output.as_path()), options.truth.as_deref()];
    options.replacing.check(files)?;
    if to_stdout && console.out_is_terminal {
        return Err(Failure::usage("refusing to write a capture to a terminal")
            .and("standard output")
            .and("redirect it to a file or a program, or specify a file with -o"));
    }
    let request = Request {
        source: Source::named(&options.scenario_args.scenario),
        sets: options.scenario_args.sets,
        seed: options.seed,
        snap_len: options.snap_len,
        truth: options.truth,
        mirror: options.mirror,
    };
    let stop = (console.catch_interrupt)()?;
    let bar = Progress::new(
        options.scenario_args.scenario,
        console.err_is_terminal && !options.quiet,
    );
    let output = if to_stdout {
        Output::Writer(&mut *console.out)
    } else {
        Output::File(options.output)
    };
    let report = write::write(&request, output, &stop, &|now, of| {
        bar.at(now.as_nanos(), of.as_nanos());
    })?;
    drop(bar);
    if options.quiet && !options.json {
        return Ok(());
    }
    let text = if options.json {
        report.json().map_err(|error| {
            Failure::failed("cannot write the report as JSON").and(error.to_string())
        })?
    } else {
        report.text()
    };
    // If the capture goes to standard output, nothing else may.
    print(if to_stdout { console.err } else { console.out }, &text)
}

fn compare(options: cli::Compare, console: &mut Console<'_>) -> Result {
    let request = ComparisonRequest {
        source: Source::named(&options.scenario_args.scenario),
        sets: options.scenario_args.sets,
        mechanisms: compare::mechanisms(&options.mechanisms)?,
        seeds: options.seeds,
        over: Over::read_option("--over", options.over.as_deref())?,
        best: Over::read_option(
            compare::EACH_AT_ITS_BEST,
            options.each_at_its_best.as_deref(),
        )?,
    };
    if let Some(svg) = &options.svg {
        write::no_stdout("--svg", svg)?;
    }
    if let Some(page) = &options.html {
        write::no_stdout("--html", page)?;
    }
    let files = [options.svg.as_deref(), options.html.as_deref()];
    options.replacing.check(files)?;
    let stop = (console.catch_interrupt)()?;
    let drawing = options.svg.as_deref().map(Pending::create).transpose()?;
    let page = options.html.as_deref().map(Pending::create).transpose()?;
    let bar = Progress::new(
        options.scenario_args.scenario,
        console.err_is_terminal && !options.quiet,
    );
    let comparison = compare::compare(&request, &stop, &|done, of| bar.at(done as u64, of as u64))?;
    drop(bar);
    if let Some(drawing) = drawing {
        drawing.finish(plot::svg(&comparison)?.as_bytes())?;
    }
    if let Some(page) = page {
        let mut text = Vec::new();
        html::PAGE
            .write(&html::document(&comparison), &mut text)
            .map_err(|error| Failure::failed("cannot make the page").and(error.to_string()))?;
        page.finish(&text)?;
    }
    if options.json {
        print_json(console.out, &compare::json(&comparison))
    } else {
        print(console.out, &compare::text(&comparison))
    }
}
