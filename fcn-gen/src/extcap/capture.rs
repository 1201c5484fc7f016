//! A capture: the scenario with the settings of the dialog, played into Wireshark's pipe. It ends
//! without an error when the pipe's reader is gone, and when it is stopped.

use super::controls::{AT_ONCE, COUNT, PACE, RATE, SEED, UNTIL_STOPPED, VANTAGE};
use super::{FILTER, Interface, NO_FILTER};
use crate::cli;
use crate::commands;
use crate::pace::{Pacer, unread};
use crate::scenario::{Source, builtin};
use crate::write::{self, Output, Request};
use fcn_tool::console::Console;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Captures from `interface` into `fifo`; `chosen` returns the value of a control, if one was
/// chosen.
///
/// # Errors
/// A chosen value is invalid, or the pipe cannot be written.
pub fn capture(
    interface: &Interface,
    chosen: &dyn Fn(&str) -> Option<String>,
    fifo: &Path,
    console: &mut Console<'_>,
) -> Result {
    let choices = Choices { interface, chosen };
    // Invalid choices are reported after opening the pipe: otherwise Wireshark would also complain
    // about the pipe.
    watched(fifo, console, |mut pipe, stop, console| {
        if chosen(FILTER).is_some_and(|filter| !filter.trim().is_empty()) {
            return Err(Failure::usage(NO_FILTER));
        }
        if builtin::kind(interface.scenario) == "stress" {
            return commands::run_command(choices.stress(fifo), console);
        }
        let (request, speed) = (choices.request()?, choices.speed()?);
        let file = pipe;
        let output = match speed {
            Some(speed) => Output::Paced(&mut pipe, Pacer::new(file, speed, stop)),
            None => Output::Writer(&mut pipe),
        };
        write::write(&request, output, stop, &|_, _| {}).map(drop)
    })
}

/// Calls `work` with the pipe opened, until it is stopped; a closed pipe is not an error.
fn watched(
    fifo: &Path,
    console: &mut Console<'_>,
    work: impl FnOnce(&File, &AtomicBool, &mut Console<'_>) -> Result,
) -> Result {
    // Opening waits for a reader; until then an interrupt ends the program in the usual way.
    let pipe = File::create(fifo).map_err(|error| Failure::io("write", fifo, &error))?;
    let stop = (console.catch_interrupt)()?;
    let mut console = Console {
        out: &mut *console.out,
        err: &mut *console.err,
        catch_interrupt: &|| Ok(Arc::clone(&stop)),
        ..*console
    };
    let done = work(&pipe, &stop, &mut console);
    if stop.load(Ordering::Relaxed) || unread(&pipe, Duration::ZERO) {
        return Ok(());
    }
    done
}

/// The values chosen for an interface.
struct Choices<'a> {
    interface: &'a Interface,
    chosen: &'a dyn Fn(&str) -> Option<String>,
}

impl Choices<'_> {
    /// Returns the value of a control, if it is not the default.
    fn changed(&self, name: &str) -> Option<String> {
        let control = self.interface.controls.iter().find(|c| c.name == name)?;
        (self.chosen)(name).filter(|value| *value != control.default)
    }

    /// Returns the value of a control, if the interface has it.
    fn value(&self, name: &str) -> Option<String> {
        let control = self.interface.controls.iter().find(|c| c.name == name)?;
        Some((self.chosen)(name).unwrap_or_else(|| control.default.clone()))
    }

    /// Returns the changed parameters. Unchanged ones are omitted: a parameter may set several keys
    /// with different values.
    fn sets(&self) -> Vec<String> {
        let parameters = self.interface.controls.iter().filter(|c| c.is_parameter);
        let changed = parameters.filter_map(|c| Some((&c.name, self.changed(&c.name)?)));
        changed
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    fn request(&self) -> Result<Request> {
        let mut sets = self.sets();
        if let Some(points) = self.changed(VANTAGE) {
            let points = points.split(',').map(str::trim);
            let points: Vec<_> = points.filter(|point| !point.is_empty()).collect();
            if !points.is_empty() {
                sets.push(format!("vantage={}", serde_json::Value::from(points)));
            }
        }
        let seed = self.changed(SEED).map(|text| cli::seed(&text));
        Ok(Request {
            source: Source::Builtin(self.interface.scenario.to_owned()),
            sets,
            seed: seed
                .transpose()
                .map_err(|error| Failure::usage("seed").and(error))?,
            snap_len: None,
            truth: None,
            mirror: None,
        })
    }

    /// Returns the speed relative to real time; `None`: all packets at once.
    fn speed(&self) -> Result<Option<f64>> {
        match self.value(PACE).as_deref() {
            None | Some(AT_ONCE) => Ok(None),
            Some(pace) => quantity::factor(pace)
                .map(Some)
                .map_err(|error| Failure::usage("pace").and(error)),
        }
    }

    /// Returns the arguments of `fcn-gen run` that send this stress into `fifo`.
    fn stress(&self, fifo: &Path) -> Vec<OsString> {
        // Wireshark shows packets as they arrive.
        let words = [
            "fcn-gen",
            "run",
            self.interface.scenario,
            "--quiet",
            "--live",
            // The file was created by the calling program.
            "--force",
        ];
        let mut words: Vec<OsString> = words.map(OsString::from).into();
        words.extend(self.sets().iter().map(|set| format!("--set={set}").into()));
        let seed = self.changed(SEED).map(|seed| format!("--seed={seed}"));
        let rate = self.value(RATE).map(|rate| format!("--rate={rate}"));
        words.extend(seed.into_iter().chain(rate).map(OsString::from));
        words.push(match self.value(COUNT) {
            Some(count) if count != UNTIL_STOPPED => format!("--count={count}").into(),
            _ => "--forever".into(),
        });
        words.extend(["--output".into(), fifo.into()]);
        words
    }
}
