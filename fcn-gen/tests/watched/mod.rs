//! A simulation monitored by fcn-top, packet by packet, without a file in between.

use fcn_gen::scenario::{self, Play, Source};
use fcn_gen::sim::outcome::Outcome;
use fcn_gen::sim::{Captured, Sink, play};
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_wire::LinkType;
use std::error::Error;

struct Watcher<F> {
    monitor: Monitor,
    change: F,
    bytes: Vec<u8>,
    number: u64,
}

impl<F: FnMut(&mut [u8])> Sink for Watcher<F> {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        self.bytes.resize(packet.len, 0);
        (packet.fill)(&mut self.bytes);
        (self.change)(&mut self.bytes);
        self.number += 1;
        self.monitor.observe(&Packet {
            at: packet.at,
            bytes: &self.bytes,
            wire_len: packet.wire_len as usize,
            link: LinkType::Ethernet,
            interface: packet.vantage_point as u32,
            number: self.number,
        });
        Ok(())
    }
}

/// Plays a scenario with those settings; `change` may modify each frame before the monitor receives
/// it.
pub fn watch(
    source: &Source,
    sets: &[String],
    change: impl FnMut(&mut [u8]),
) -> (Monitor, Outcome) {
    let loaded = scenario::load(source, sets).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let Play::Simulation(simulation) = loaded.play else {
        panic!("{} is not a simulation", loaded.name);
    };
    let mut watcher = Watcher {
        monitor: Monitor::new(Settings::default()),
        change,
        bytes: Vec::new(),
        number: 0,
    };
    for number in 0..simulation.vantage_points.len() {
        watcher.monitor.know_interface(number as u32, "", "");
    }
    let outcome = play(&simulation, "", Some(&mut watcher), &mut |_| true).unwrap();
    (watcher.monitor, outcome)
}
