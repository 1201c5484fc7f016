//! From the command line to the exit code: reads the arguments, has the work done, prints what comes of it.

use crate::cli::{self, Cli, Command};
use crate::compare::{self, Over, Question};
use crate::describe;
use crate::extcap;
use crate::live;
use crate::pending::Pending;
use crate::plot;
use crate::scenario::{self, Source, builtin};
use crate::write::{self, Output, Request};
use clap::Parser;
use fcn_tool::console::{Console, conclude, say, say_json, usage};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::progress::Progress;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Does what `args` ask for (the first is the program's name); returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let done = if extcap::is_meant(&args) {
        extcap::answer(&args, console)
    } else {
        act(args, console)
    };
    conclude("fcn-gen", done, console)
}

/// Does what `args` ask for.
pub(crate) fn act(args: Vec<OsString>, console: &mut Console<'_>) -> Result {
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
    }
}

fn list(options: &cli::List, console: &mut Console<'_>) -> Result {
    if options.json {
        say_json(
            console.out,
            &describe::list_json(
                builtin::list().map(|(name, about)| (name, about, builtin::kind(name))),
            ),
        )
    } else {
        say(console.out, &describe::list(builtin::list()))
    }
}

/// The scenario meant: one of ours by its name, or a file where it is written like one or there is one.
pub(crate) fn source(name: &str) -> Source {
    let path = Path::new(name);
    let is_builtin = builtin::text(name).is_some();
    let like_a_file = name.contains('/') || name.ends_with(".toml") || path.is_file();
    if !is_builtin && like_a_file {
        Source::File(path.to_owned())
    } else {
        Source::Builtin(name.to_owned())
    }
}

fn show(options: &cli::Show, console: &mut Console<'_>) -> Result {
    let cli::Chosen {
        scenario: name,
        sets,
    } = &options.chosen;
    let source = source(name);
    let scenario = scenario::load(&source, sets).map_err(|error| Failure::bad_scenario(&error))?;
    if options.toml {
        return say(console.out, &toml(&source)?);
    }
    if options.json {
        say_json(console.out, &describe::show_json(&scenario, (name, sets)))
    } else {
        say(console.out, &describe::show(&scenario, (name, sets)))
    }
}

/// The scenario's file, as it is.
fn toml(source: &Source) -> Result<String> {
    match source {
        Source::Builtin(name) => Ok(builtin::text(name).unwrap_or_default().to_owned()),
        Source::File(path) => {
            fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))
        }
        Source::Text { text, .. } => Ok(text.clone()),
    }
}

fn write(options: cli::Write, console: &mut Console<'_>) -> Result {
    let to_stdout = options.output == *"-";
    write::check_truth(options.truth.as_deref(), None)?;
    if to_stdout && console.out_is_terminal {
        return Err(Failure::usage("a capture is nothing for a terminal")
            .and("standard output")
            .and("redirect it into a file or a program, or name a file with -o"));
    }
    let request = Request {
        source: source(&options.chosen.scenario),
        sets: options.chosen.sets,
        seed: options.seed,
        snap_len: options.snap_len,
        truth: options.truth,
    };
    let stop = (console.catch_interrupt)()?;
    let bar = Progress::new(
        options.chosen.scenario,
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
    // Where the capture is on standard output, nothing else is.
    say(if to_stdout { console.err } else { console.out }, &text)
}

fn compare(options: cli::Compare, console: &mut Console<'_>) -> Result {
    let question = Question {
        source: source(&options.chosen.scenario),
        sets: options.chosen.sets,
        mechanisms: compare::mechanisms(&options.mechanisms)?,
        seeds: options.seeds,
        over: options.over.as_deref().map(Over::read).transpose()?,
    };
    if let Some(svg) = &options.svg {
        write::no_stdout("--svg", svg)?;
    }
    let stop = (console.catch_interrupt)()?;
    let drawing = options.svg.as_deref().map(Pending::create).transpose()?;
    let bar = Progress::new(
        options.chosen.scenario,
        console.err_is_terminal && !options.quiet,
    );
    let comparison =
        compare::compare(&question, &stop, &|done, of| bar.at(done as u64, of as u64))?;
    drop(bar);
    if let Some(drawing) = drawing {
        drawing.finish(plot::svg(&comparison)?.as_bytes())?;
    }
    if options.json {
        say_json(console.out, &compare::json(&comparison))
    } else {
        say(console.out, &compare::text(&comparison))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::Arc;

    /// Exit code, standard output, standard error.
    fn run_with(words: &str, colour: bool) -> (u8, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(
            words.split(' ').map(OsString::from),
            &mut Console {
                out: &mut out,
                err: &mut err,
                out_is_terminal: true,
                err_is_terminal: colour,
                colour,
                catch_interrupt: &|| Ok(Arc::default()),
            },
        );
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn help_and_version_are_no_failure() {
        let (code, out, err) = run_with("fcn-gen --version", false);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out, concat!("fcn-gen ", env!("CARGO_PKG_VERSION"), "\n"));
        assert_eq!(run_with("fcn-gen help write", false).0, 0);
    }

    #[test]
    fn wrong_options_end_with_2_and_our_name() {
        for words in [
            "fcn-gen frobnicate",
            "fcn-gen write no-such-scenario -o x",
            "fcn-gen show no/such/file.toml",
            "fcn-gen compare x --mechanisms hope",
            "fcn-gen compare x --over distance",
            "fcn-gen write x -o a --truth -",
            "fcn-gen write formats -o -",
        ] {
            let (code, out, err) = run_with(words, false);
            assert_eq!((code, out.as_str()), (2, ""), "{words}: {err}");
            assert!(
                err.starts_with("fcn-gen: ") && !err.contains('\x1b'),
                "{err}"
            );
        }
    }

    #[test]
    fn colour_is_for_terminals() {
        let (_, _, err) = run_with("fcn-gen frobnicate", true);
        assert!(err.starts_with("\x1b[1;31mfcn-gen:\x1b[0m "), "{err}");
    }

    /// Fails as standard output does in these cases.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_text_that_nobody_reads_is_no_failure_but_a_full_disk_is() {
        for (kind, expected) in [
            (io::ErrorKind::BrokenPipe, 0),
            (io::ErrorKind::StorageFull, 1),
        ] {
            let mut err = Vec::new();
            let code = run(
                ["fcn-gen", "list"].map(OsString::from),
                &mut Console {
                    out: &mut Failing(kind),
                    err: &mut err,
                    out_is_terminal: false,
                    err_is_terminal: false,
                    colour: false,
                    catch_interrupt: &|| Ok(Arc::default()),
                },
            );
            assert_eq!(code, expected);
            assert_eq!(err.is_empty(), expected == 0);
        }
    }
}
