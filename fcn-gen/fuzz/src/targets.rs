//! Requirements that hold for any text, one function per parser. libFuzzer searches for text that
//! violates them; the corpus test of `fcn-gen` (`tests/corpus.rs`) runs the same functions over the
//! committed corpus.
//!
//! A function panics if a requirement is violated. Limits on time and memory are left to libFuzzer
//! (`-timeout`, `-rss_limit_mb`): no test measures time.

use fcn_gen::scenario::model::Simulation;
use fcn_gen::scenario::{self, Play, Position, Source};
use fcn_gen::sim::{self, Captured, Sink};
use fcn_gen::units::Ps;
use fcn_wire::{Frame, LinkType};
use std::error::Error;

/// A target: a function that must not panic for any octets.
pub type Target = fn(&[u8]);

/// All targets with their names, which are also those of their folders in `corpus/`.
pub const ALL: &[(&str, Target)] = &[("scenario", scenario)];

/// Prefix of lines in front of a scenario that are settings, as on the command line.
pub const SET: &str = "#--set ";

/// Maximum size of a simulation that is played.
const SMALL: usize = 32;
/// Duration of playing.
const SHORT: Ps = Ps::from_nanos(50_000);
/// Maximum number of packets checked.
const LOOKED_AT: usize = 256;

/// Loads a scenario file with settings: it is refused with a position, or it can be drawn and
/// played.
pub fn scenario(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    let sets: Vec<String> = text
        .lines()
        .map_while(|line| line.strip_prefix(SET))
        .map(str::to_owned)
        .collect();
    let source = Source::Text {
        name: "t.toml".to_owned(),
        text: text.to_owned(),
    };
    let scenario = match scenario::load(&source, &sets) {
        Ok(scenario) => scenario,
        Err(error) => return refused(&error, text, &sets),
    };
    if let Play::Simulation(mut simulation) = scenario.play.clone()
        && is_small(&simulation)
    {
        assert!(!scenario::draw(&scenario).is_empty());
        simulation.duration = simulation.duration.min(SHORT);
        play(&simulation);
    }
}

/// Checks that a refusal names an existing line, or one of the settings; an error about missing
/// entries has no position.
fn refused(error: &scenario::Error, text: &str, sets: &[String]) {
    let shown = error.to_string();
    assert!(shown.starts_with("t.toml") && !error.message.is_empty());
    match &error.position {
        Position::Text { line, column } => {
            let line = text.split('\n').nth(line - 1);
            let len = line.unwrap_or_else(|| panic!("no such line: {shown}"));
            assert!(
                *column >= 1 && *column <= len.chars().count() + 1,
                "{shown}"
            );
        }
        Position::Set(set) => assert!(sets.contains(set), "{shown}"),
        // The TOML parser reports no position for excessive nesting.
        Position::Whole => assert!(
            error.message.starts_with("there are no ") || error.message == "recursion limit",
            "{shown}"
        ),
    }
}

fn is_small(simulation: &Simulation) -> bool {
    [
        simulation.nodes.len(),
        simulation.links.len(),
        simulation.flows.len(),
        simulation.faults.len(),
        simulation.injections.len(),
    ]
    .iter()
    .all(|len| *len <= SMALL)
}

fn play(simulation: &Simulation) {
    let mut sink = Looks {
        simulation,
        left: LOOKED_AT,
        before: 0,
    };
    // Progress is first reported after a bounded number of events, which is enough.
    let outcome = sim::play(simulation, "t", Some(&mut sink), &mut |_| false);
    if let Err(failure) = outcome {
        // The simulation may be too short for a connection.
        assert!(failure.is::<sim::NoConnection>(), "{failure}");
    }
}

/// Checks captured packets, and discards them.
struct Looks<'s> {
    simulation: &'s Simulation,
    left: usize,
    before: u64,
}

impl Sink for Looks<'_> {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        assert!(packet.at >= self.before, "time runs backwards");
        self.before = packet.at;
        assert!(packet.vantage_point < self.simulation.vantage_points.len());
        assert!(packet.len <= packet.wire_len as usize);
        if self.left > 0 {
            self.left -= 1;
            let mut bytes = vec![0; packet.len];
            (packet.fill)(&mut bytes);
            let (wire_len, profile) = (packet.wire_len as usize, &self.simulation.profile);
            let frame = Frame::parse(&bytes, wire_len, LinkType::Ethernet, profile);
            assert!(!frame.spans().is_empty());
        }
        Ok(())
    }
}
