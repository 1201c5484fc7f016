//! Wireshark's extcap protocol: each built-in scenario is an interface in Wireshark's list, its
//! parameters are the dialog, and a capture plays it.
//!
//! Wireshark starts every program in its extcap folder with options of that protocol: for the
//! interfaces, for an interface's link type, for its dialog, and for a capture into a pipe.
//! `controls.rs` builds the dialog from a scenario, `capture.rs` captures. `write` and `live` play
//! the scenario.

mod capture;
mod controls;

use crate::scenario::{self, Source, builtin};
use clap::{ArgGroup, Args, Command, CommandFactory, FromArgMatches, Parser};
use controls::Control;
use fcn_tool::console::{Console, print, usage};
use fcn_tool::failure::{Failure, Result};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Prefix of the interfaces' names, since the list also has interfaces of other programs.
const PREFIX: &str = "fcn-gen-";
/// Prefix of all options of the protocol that may come first, except for [`CAPTURE`].
const BEGINNING: &str = "--extcap-";
/// First option of a capture.
const CAPTURE: &str = "--capture";
/// Option for a capture filter.
const FILTER: &str = "filter";
/// Answer to a capture filter.
const NO_FILTER: &str = "scenarios take no capture filter: use a display filter";
/// The one link type that is known in advance; a gallery's capture also declares its other ones.
const DLTS: &str = "dlt {number=1}{name=EN10MB}{display=Ethernet}\n";

/// Wireshark's requests to a program in its extcap folder.
#[derive(Debug, Parser)]
#[command(name = "fcn-gen", disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    step: Step,
    /// The interface
    #[arg(long = "extcap-interface", value_name = "NAME")]
    interface: Option<String>,
    /// The version of Wireshark
    #[arg(long = "extcap-version", value_name = "VERSION")]
    _version: Option<String>,
    /// A capture filter: to be checked, or with --capture to be applied
    #[arg(id = FILTER, long = "extcap-capture-filter", value_name = "FILTER")]
    filter: Option<String>,
    /// The pipe to write packets to
    #[arg(long, value_name = "FILE", requires = "capture")]
    fifo: Option<PathBuf>,
}

/// The request. Without any of them, a capture filter is to be checked.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("step").multiple(false))]
struct Step {
    /// List the interfaces
    #[arg(long = "extcap-interfaces", group = "step")]
    interfaces: bool,
    /// List an interface's link types
    #[arg(long = "extcap-dlts", group = "step", requires = "interface")]
    dlts: bool,
    /// Describe an interface's dialog
    #[arg(long = "extcap-config", group = "step", requires = "interface")]
    config: bool,
    /// Capture
    #[arg(long, group = "step", requires = "interface", requires = "fifo")]
    capture: bool,
}

/// Returns true if the program was started by Wireshark: its first argument is one of the
/// protocol's.
#[must_use]
pub fn is_extcap(args: &[OsString]) -> bool {
    args.get(1)
        .and_then(|first| first.to_str())
        .is_some_and(|first| first.starts_with(BEGINNING) || first == CAPTURE)
}

/// Answers a request of Wireshark.
///
/// # Errors
/// The request is invalid, or it failed; Wireshark shows standard error.
pub fn answer(args: &[OsString], console: &mut Console<'_>) -> Result {
    // The valid options depend on the interface.
    let name = args.windows(2).find_map(|pair| match pair {
        [option, name] if option == "--extcap-interface" => Some(name),
        _ => None,
    });
    let interface = name.map(|name| Interface::find(name)).transpose()?;
    let controls = interface
        .as_ref()
        .map_or(&[][..], |interface| &interface.controls);
    let read = command(controls).try_get_matches_from(args);
    let read = read.and_then(|matches| Ok((Options::from_arg_matches(&matches)?, matches)));
    let (options, matches) = match read {
        Ok(read) => read,
        Err(error) => return usage(&error, console),
    };
    match (&options.step, interface) {
        (Step { interfaces, .. }, _) if *interfaces => print(console.out, &interfaces_text()),
        (Step { dlts, .. }, Some(_)) if *dlts => print(console.out, DLTS),
        (Step { config, .. }, Some(interface)) if *config => {
            print(console.out, &controls::dialog(&interface.controls))
        }
        (Step { capture, .. }, Some(interface)) if *capture => {
            let fifo = options.fifo.unwrap_or_default();
            let chosen = |name: &str| matches.get_one::<String>(name).cloned();
            capture::capture(&interface, &chosen, &fifo, console)
        }
        // Wireshark shows the output as the filter's error message.
        _ => match options.filter.as_deref().map(str::trim) {
            Some("") => Ok(()),
            Some(_) => print(console.out, &format!("{NO_FILTER}\n")),
            None => Err(Failure::usage("nothing was requested")
                .and("options of Wireshark's extcap protocol")
                .and("see fcn-gen help for fcn-gen's own commands")),
        },
    }
}

/// Returns the options, including those of a dialog.
fn command(controls: &[Control]) -> Command {
    Options::command().args(controls.iter().map(Control::option))
}

/// A built-in scenario as an interface.
struct Interface {
    /// Name of the scenario.
    scenario: &'static str,
    controls: Vec<Control>,
}

impl Interface {
    fn find(name: &OsStr) -> Result<Self> {
        let names = || {
            let names = builtin::list().map(|(name, _)| format!("{PREFIX}{name}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let scenario = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some((scenario, _)) = builtin::list().find(|(name, _)| Some(*name) == scenario) else {
            return Err(Failure::usage("no such interface")
                .and(name.to_string_lossy())
                .and(format!("expected one of {}", names())));
        };
        let source = Source::Builtin(scenario.to_owned());
        let loaded = scenario::load(&source, &[])?;
        Ok(Self {
            scenario,
            controls: controls::for_scenario(&loaded),
        })
    }
}

fn interfaces_text() -> String {
    let mut text = format!(
        "extcap {{version={}}}{{display=fcn-gen}}\n",
        env!("CARGO_PKG_VERSION")
    );
    for (name, about) in builtin::list() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "interface {{value={PREFIX}{name}}}{{display={about}}}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces() -> Vec<Interface> {
        builtin::list()
            .map(|(name, _)| Interface::find(OsStr::new(&format!("{PREFIX}{name}"))).unwrap())
            .collect()
    }

    #[test]
    fn options_of_all_interfaces_are_valid() {
        for interface in interfaces() {
            command(&interface.controls).debug_assert();
        }
    }

    #[test]
    fn wireshark_is_distinguished_from_users() {
        let is_one = |words: &str| {
            let args: Vec<_> = words.split(' ').map(OsString::from).collect();
            is_extcap(&args)
        };
        assert!(is_one("fcn-gen --extcap-interfaces --extcap-version=4.0"));
        assert!(is_one("fcn-gen --capture --extcap-interface x"));
        assert!(!is_one("fcn-gen write --capture"));
        assert!(!is_one("fcn-gen"));
    }

    /// Wireshark ends a value at a brace, and derives preferences from options, with names of
    /// lower-case letters, digits and underscores.
    #[test]
    fn wireshark_can_parse_all_texts() {
        let mut text = interfaces_text();
        for interface in interfaces() {
            text += &controls::dialog(&interface.controls);
            for control in &interface.controls {
                let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(control.name.chars().all(fine), "{}", control.name);
            }
        }
        for line in text.lines() {
            let (kind, mut rest) = line.split_once(' ').unwrap();
            assert!(
                ["extcap", "interface", "arg", "value"].contains(&kind),
                "{line}"
            );
            while !rest.is_empty() {
                let (pair, behind) = rest.strip_prefix('{').unwrap().split_once('}').unwrap();
                let (key, value) = pair.split_once('=').unwrap();
                assert!(key.chars().all(char::is_alphabetic), "{line}");
                assert!(!value.contains('{'), "{line}");
                rest = behind;
            }
        }
    }
}
