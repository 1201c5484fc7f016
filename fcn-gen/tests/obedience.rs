//! Whether senders obey, as fcn-top says of the built-in scenarios, against what the scenarios have them do.

use fcn_gen::scenario::{self, Play, Source, builtin};
use fcn_gen::sim::{Captured, Sink, play};
use fcn_observe::Answer;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_wire::LinkType;
use std::collections::BTreeMap;
use std::error::Error;
use std::net::IpAddr;

/// Listens to the simulation.
struct Listener {
    monitor: Monitor,
    bytes: Vec<u8>,
    number: u64,
}

impl Sink for Listener {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        self.bytes.resize(packet.len, 0);
        (packet.fill)(&mut self.bytes);
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

/// Answers about flows with 1,000 data packets and 20 notifications at least.
fn answers(source: &Source, sets: &[&str]) -> BTreeMap<(IpAddr, IpAddr, u32), Answer> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let loaded = scenario::load(source, &sets).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let Play::Simulation(simulation) = loaded.play else {
        panic!("{} is no simulation", loaded.name);
    };
    let mut listener = Listener {
        monitor: Monitor::new(Settings::default()),
        bytes: Vec::new(),
        number: 0,
    };
    for number in 0..simulation.vantage_points.len() {
        listener.monitor.know_interface(number as u32, "", "");
    }
    play(&simulation, "", Some(&mut listener), &mut |_| true).unwrap();
    let rows = listener.monitor.rows();
    rows.filter_map(|(id, row)| {
        let flow = listener.monitor.flow_of_row(id)?;
        let counts = row.data_packets? >= 1_000 && row.total >= 20;
        let key = (flow.sender, flow.receiver, flow.receiver_qp.get());
        counts.then_some((key, row.verdict?))
    })
    .collect()
}

/// How often each answer is given, for senders that obey as they do by default, or stay at their line's rate.
fn count(obeys: bool) -> BTreeMap<Answer, usize> {
    let mut counts = BTreeMap::new();
    let scenarios = [
        ("receiver-cnp", &["duration=30ms", "ip=4"][..]),
        ("fast-cnp", &["duration=20ms"]),
        ("receiver-fast-cnp", &["duration=20ms"]),
        ("proxy", &["duration=40ms"]),
        ("incast", &["duration=20ms"]),
        ("wan-fcn", &["duration=60ms"]),
    ];
    // In the last one, who does not slow down is not left in peace by the network either.
    let many = if obeys { 6 } else { 5 };
    for (name, sets) in scenarios.into_iter().take(many) {
        let mut text = builtin::text(name).unwrap().to_owned();
        if !obeys {
            let defaults = "[defaults.host]";
            if !text.contains(defaults) {
                text = format!("{text}\n{defaults}\n");
            }
            text = text.replace(defaults, "[defaults.host]\ncontrol = \"fixed\"");
        }
        let source = Source::Text {
            name: name.to_owned(),
            text,
        };
        for (flow, answer) in answers(&source, sets) {
            println!("{name} {sets:?} {flow:?} {answer:?}");
            *counts.entry(answer).or_default() += 1;
        }
    }
    counts
}

#[test]
fn senders_of_scenarios_obey() {
    let counts = count(true);
    assert_eq!(counts.get(&Answer::DoesNotObey), None, "{counts:?}");
    assert!(counts[&Answer::Obeys] >= 10, "{counts:?}");
}

#[test]
fn senders_of_fixed_rate_do_not() {
    let counts = count(false);
    assert_eq!(counts.get(&Answer::Obeys), None, "{counts:?}");
    // What is seen behind the queue that marks it does not tell.
    assert!(counts[&Answer::DoesNotObey] >= 4, "{counts:?}");
}
