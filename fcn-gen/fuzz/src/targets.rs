//! What must hold for any text, one function a reader. libFuzzer looks for text for which it does not; the corpus test of
//! `fcn-gen` (`tests/corpus.rs`) runs the same functions over the committed corpus.
//!
//! A function panics where a promise is broken. That nothing takes too long or too much memory is libFuzzer's to watch
//! (`-timeout`, `-rss_limit_mb`): no test measures time.

use fcn_gen::scenario::model::Simulation;
use fcn_gen::scenario::{self, Place, Play, Source};
use fcn_gen::sim::{self, Captured, Sink};
use fcn_gen::units::Ps;
use fcn_wire::{Frame, LinkType};
use std::error::Error;

/// A target: something that must not panic, whatever the octets.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also that of its folder in `corpus/`.
pub const ALL: &[(&str, Target)] = &[("scenario", scenario)];

/// Lines in front of a scenario that begin so are settings, as if given beside the file.
pub const SET: &str = "#--set ";

/// Largest simulation that is played.
const SMALL: usize = 32;
/// How long it is played.
const SHORT: Ps = Ps::from_nanos(50_000);
/// How many packets are looked at.
const LOOKED_AT: usize = 256;

/// A scenario file and settings for it: refused at a place that is named, or it can be drawn and played.
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

/// A refusal names a line that there is, or one of the settings; what is missing altogether has no place.
fn refused(error: &scenario::Error, text: &str, sets: &[String]) {
    let shown = error.to_string();
    assert!(shown.starts_with("t.toml") && !error.message.is_empty());
    match &error.place {
        Place::Text { line, column } => {
            let line = text.split('\n').nth(line - 1);
            let len = line.unwrap_or_else(|| panic!("no such line: {shown}"));
            assert!(
                *column >= 1 && *column <= len.chars().count() + 1,
                "{shown}"
            );
        }
        Place::Set(set) => assert!(sets.contains(set), "{shown}"),
        // The TOML parser does not say where something is nested too deeply.
        Place::Whole => assert!(
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
    // The first word about progress comes after a bounded number of events; that is enough.
    let outcome = sim::play(simulation, "t", Some(&mut sink), &mut |_| false);
    if let Err(failure) = outcome {
        // It may be too short for one.
        assert!(failure.is::<sim::NoConnection>(), "{failure}");
    }
}

/// Looks at captured packets, and keeps none.
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
