//! Opens the interfaces or the file to read packets from, drops privileges, and lists interfaces.

use crate::cli::Cli;
use crate::config::Preferences;
use crate::engine::all_interfaces::ANY;
use crate::engine::file::{Choice, FileInput};
use crate::engine::handle::Capturing;
use crate::engine::kernel_filter::PacketFilter;
use crate::engine::live::LiveInput;
use crate::engine::privileges;
use crate::engine::{Engine, Input};
use crate::output::bare_table;
use fcn_link::interface::Interface;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::Profile;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Minimum and maximum size of the kernel's ring, in octets.
const BUFFER: std::ops::RangeInclusive<u64> = (1 << 20)..=(2 << 30) - 1;

/// Sources of packets.
pub enum Inputs {
    /// Interfaces, and a description of what happened to privileges.
    Live(Vec<LiveInput>, String),
    /// A capture.
    File(Box<FileInput>),
}

/// Opens the requested interfaces and drops privileges. Must be called before any thread is
/// started.
///
/// # Errors
///
/// An interface cannot be opened.
pub fn live(cli: &Cli, preferences: &Preferences, profile: &Profile) -> Result<Inputs> {
    let buffer = preferences.buffer.map_or(16 << 20, |size| size.0);
    if !BUFFER.contains(&buffer) {
        return Err(Failure::usage("--buffer").and("specify at least 1MiB and less than 2GiB"));
    }
    let how = Capturing {
        buffer,
        snap_len: preferences.snap_length.unwrap_or(512),
        promiscuous: !preferences.no_promiscuous.unwrap_or(false),
        filter: filter(cli, preferences)?,
        profile: profile.clone(),
        private: preferences.privacy == Some(true),
    };
    let program = program();
    let mut names: Vec<&String> = Vec::new();
    for name in &cli.input.iface {
        if name.is_empty() {
            return Err(
                Failure::usage("--iface").and("specify an interface; --list-interfaces lists them")
            );
        }
        if names.contains(&name) {
            return Err(Failure::usage("--iface").and(format!("{name} is specified twice")));
        }
        names.push(name);
    }
    if names.len() > 1 && names.iter().any(|name| *name == ANY) {
        return Err(Failure::usage("--iface")
            .and(format!("`{ANY}` already includes the other interfaces"))
            .and("specify it alone, or the others without it"));
    }
    let mut inputs = names
        .into_iter()
        .map(|name| LiveInput::open(name, &how, &program))
        .collect::<Result<Vec<_>>>()?;
    if preferences.per_interface == Some(true) && inputs.iter().any(LiveInput::is_unclear) {
        return Err(Failure::usage("--per-interface")
            .and(format!(
                "with this libpcap, packets of `{ANY}` do not name their interface"
            ))
            .and("specify each interface with -i"));
    }
    if preferences.keep_privileges == Some(true) {
        return Ok(Inputs::Live(inputs, "privileges kept".to_owned()));
    }
    let failed = |why: String| Failure::failed(why).and("use --keep-privileges to keep them");
    let mut waiting = false;
    for input in &mut inputs {
        waiting |= input.open_when_up().map_err(failed)?;
    }
    let mut rights = privileges::drop_all().map_err(failed)?;
    for input in &inputs {
        input.rights_dropped().map_err(failed)?;
    }
    if waiting {
        rights += " except CAP_NET_RAW, needed until an interface is up";
    }
    Ok(Inputs::Live(inputs, rights))
}

/// Opens the requested capture. A read from a pipe is abandoned once one of `stops` is set.
///
/// # Errors
///
/// It cannot be read.
pub fn file(cli: &Cli, preferences: &Preferences, stops: &[Arc<AtomicBool>]) -> Result<Inputs> {
    let choice = Choice {
        interfaces: cli.input.interface.clone(),
        filter: filter(cli, preferences)?,
        pace: cli.input.pace,
    };
    if cli.input.demo {
        let choice = Choice {
            pace: Some(1.0),
            ..choice
        };
        return Ok(Inputs::File(Box::new(FileInput::demo(choice, stops)?)));
    }
    let Some(path) = &cli.input.read else {
        return Err(nothing(preferences.privacy == Some(true)));
    };
    Ok(Inputs::File(Box::new(FileInput::open(
        path, choice, stops,
    )?)))
}

/// Returns the packet filter, if its expression is valid in tcpdump's syntax.
fn filter(cli: &Cli, preferences: &Preferences) -> Result<PacketFilter> {
    let filter = PacketFilter {
        own: cli.input.filter.clone(),
        built_in: !preferences.no_kernel_filter.unwrap_or(false),
    };
    // Checked for Ethernet, which supports every expression.
    match filter.for_file(1) {
        Ok(_) => Ok(filter),
        Err(why) => Err(Failure::usage("--filter")
            .and(why)
            .and("it uses tcpdump's syntax: man pcap-filter")),
    }
}

/// Error: neither an interface nor a capture was named. Lists the local interfaces unless
/// `private`.
pub fn nothing(private: bool) -> Failure {
    let names: Vec<String> = Interface::all()
        .unwrap_or_default()
        .iter()
        .map(|interface| interface.name().to_owned())
        .collect();
    let what = Failure::usage("no input").and(
        "specify an interface (-i), a capture (-r FILE, -r - from a pipe), or the demo (--demo); see --help",
    );
    if names.is_empty() || private {
        what
    } else {
        what.and(format!("interfaces: {}", names.join(", ")))
    }
}

impl Inputs {
    /// Registers interfaces with the engine and returns the runnable inputs.
    pub fn introduce(self, engine: &Engine) -> Vec<Box<dyn Input>> {
        match self {
            Self::File(file) => vec![file],
            Self::Live(inputs, rights) => inputs
                .into_iter()
                .map(|mut input| {
                    input.introduce(engine, &rights);
                    Box::new(input) as Box<dyn Input>
                })
                .collect(),
        }
    }

    /// Returns true if the inputs are interfaces.
    pub const fn are_live(&self) -> bool {
        matches!(self, Self::Live(..))
    }
}

/// Returns the path of the running program, for advice.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fcn-top"))
}

/// Returns a table of the local interfaces.
///
/// # Errors
///
/// The kernel cannot be queried.
pub fn list() -> Result<String> {
    let interfaces = Interface::all().map_err(|error| Failure::failed(error.to_string()))?;
    let header = ["interface", "state", "driver", "MTU", "speed", "addresses"];
    let mut table = bare_table(header, &[]);
    for interface in &interfaces {
        let state = match (interface.is_up(), interface.has_carrier()) {
            (false, _) => "down",
            (true, false) => "no carrier",
            (true, true) => "up",
        };
        let speed = interface
            .speed()
            .map_or_else(String::new, |speed| format!("{speed} Mbit/s"));
        let addresses: Vec<String> = interface
            .addresses()
            .iter()
            .map(|address| format!("{}/{}", address.address, address.prefix_len))
            .collect();
        table.add_row([
            interface.name(),
            state,
            interface.driver().unwrap_or(""),
            &interface.mtu().to_string(),
            &speed,
            &addresses.join(" "),
        ]);
    }
    Ok(table.trim_fmt() + "\n")
}
