//! Resolution by acknowledgements, by RDMA CM, and of whole captures compared with the generator's
//! truth.
#![expect(clippy::unwrap_used, reason = "tests")]

use fcn_link::capture_file::CaptureReader;
use fcn_observe::correlator::Capture;
use fcn_observe::{Correlator, DataPacket, FlowKey, FlowTable, Resolved, Resolver};
use fcn_wire::{Frame, Message, Profile, Qp};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

fn host(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

fn key(sender: u8, qp: u32) -> FlowKey {
    FlowKey {
        sender: host(sender),
        receiver: host(100),
        receiver_qp: Qp::truncate(qp),
    }
}

struct Net {
    flows: FlowTable<u32>,
    resolver: Resolver,
}

impl Net {
    fn new() -> Self {
        Self {
            flows: FlowTable::new(100),
            resolver: Resolver::new(100),
        }
    }

    fn data(&mut self, key: FlowKey, psn: u32) {
        let (last, begins) = self.flows.data(key, 0, (Some(psn), 0), || psn);
        *last = psn;
        self.resolver.begins(&key, begins, 0);
    }

    fn ack(&mut self, sender: u8, qp: u32, psn: u32) {
        let qp = Qp::truncate(qp);
        let to = (host(100), host(sender), qp);
        self.resolver.acknowledged(to, 0, (0, psn), &self.flows);
    }

    fn qp(&self, key: FlowKey) -> Option<u32> {
        let (qp, _) = self.resolver.sender_qp(&key)?;
        assert_eq!(self.resolver.flow_of(key.sender, qp), Some(key));
        Some(qp.get())
    }
}

#[test]
fn two_matching_acknowledgements_identify_a_qp() {
    let mut net = Net::new();
    net.data(key(1, 20), 5000);
    net.ack(1, 7, 4990);
    assert_eq!(net.qp(key(1, 20)), None);
    net.ack(1, 7, 4990);
    assert_eq!(net.qp(key(1, 20)), None, "the same one, seen twice");
    net.ack(1, 7, 5000);
    assert_eq!(net.qp(key(1, 20)), Some(7));
    assert_eq!(net.resolver.flow_of(host(1), Qp::truncate(8)), None);
    assert_eq!(net.resolver.flow_of(host(2), Qp::truncate(7)), None);
}

#[test]
fn a_contradicting_acknowledgement_starts_over() {
    let mut net = Net::new();
    for (qp, psn, want) in [
        (7, 5000, None),
        (8, 15_000, None),
        (7, 25_000, None),
        (7, 25_001, Some(7)),
        (8, 35_000, None),
        (8, 35_001, Some(8)),
    ] {
        net.data(key(1, 20), psn);
        net.ack(1, qp, psn);
        assert_eq!(net.qp(key(1, 20)), want, "{psn}");
    }
    assert_eq!(net.resolver.flow_of(host(1), Qp::truncate(7)), None);
}

#[test]
fn a_qp_has_one_flow_at_a_time() {
    let mut net = Net::new();
    net.data(key(1, 20), 5000);
    net.ack(1, 7, 4999);
    net.ack(1, 7, 5000);
    net.data(key(1, 21), 90_000);
    net.ack(1, 7, 90_000);
    assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (None, None));
    net.data(key(1, 21), 90_001);
    net.ack(1, 7, 90_001);
    assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (None, Some(7)));
}

#[test]
fn psns_must_match_one_flow_and_wrap() {
    let mut net = Net::new();
    net.data(key(1, 20), 10);
    // 10 − 2^24 + 4085 is 4095 behind.
    net.ack(1, 7, (1 << 24) - 4085);
    assert_eq!(net.qp(key(1, 20)), None);
    net.ack(1, 7, (1 << 24) - 1);
    assert_eq!(net.qp(key(1, 20)), Some(7));
    // One more is too far.
    let mut net = Net::new();
    net.data(key(1, 20), 10);
    for psn in [(1 << 24) - 4086, 11, (1 << 24) - 4087, 12] {
        net.ack(1, 7, psn);
    }
    assert_eq!(net.qp(key(1, 20)), None);
    // Two flows that both match are no evidence; those of another host are irrelevant.
    let mut net = Net::new();
    net.data(key(1, 20), 5000);
    net.data(key(1, 21), 5100);
    net.data(key(2, 20), 4000);
    for psn in 4990..5000 {
        net.ack(1, 7, psn);
        net.ack(1, 8, psn);
    }
    assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (None, None));
    for psn in 5001..5004 {
        net.ack(1, 7, psn);
        assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (None, None));
    }
    net.ack(1, 7, 5004);
    assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (None, Some(7)));
    // The remaining two belong together.
    net.ack(1, 8, 5000);
    assert_eq!((net.qp(key(1, 20)), net.qp(key(1, 21))), (Some(8), Some(7)));
}

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../captures")
        .join(name)
}

/// Plays a capture; RDMA CM messages only if `cm`. Counts each flow's packets.
fn play(name: &str, cm: bool) -> Correlator<u64> {
    let mut correlator = Correlator::new(100, 100);
    let mut reader = CaptureReader::open(&capture(&format!("{name}.pcapng"))).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        let (bytes, wire_len) = (packet.bytes, packet.wire_len as usize);
        let frame = Frame::parse(bytes, wire_len, packet.link.unwrap(), &Profile::DEFAULT);
        let capture = Capture::at_single_point(packet.at);
        if let Some(data) = DataPacket::from_frame(&frame) {
            correlator.data(&capture, &frame, (&data, true), |flow, _| flow.extra += 1);
        } else if cm || !matches!(frame.message(), Message::RdmaCm(..)) {
            correlator.other(&capture, &frame);
        }
    }
    correlator
}

/// Returns the flows in a capture, with the sender's QPs and packets, from the generator's truth.
fn truth(name: &str) -> BTreeMap<FlowKey, (Qp, u64)> {
    let text = std::fs::read_to_string(capture(&format!("{name}.truth.json"))).unwrap();
    let truth: Value = serde_json::from_str(&text).unwrap();
    let mut flows = BTreeMap::new();
    for flow in truth["flows"].as_array().unwrap() {
        let address = |field: &str| flow[field].as_str().unwrap().parse().unwrap();
        let qp = |field: &str| Qp::new(flow[field].as_u64().unwrap() as u32).unwrap();
        let key = FlowKey {
            sender: address("sender"),
            receiver: address("receiver"),
            receiver_qp: qp("receiver_qp"),
        };
        let seen = flow["seen"].as_array().unwrap();
        let packets = seen.iter().map(|at| at["packets"].as_u64().unwrap()).sum();
        if packets > 0 {
            flows.insert(key, (qp("sender_qp"), packets));
        }
    }
    flows
}

#[test]
fn sender_qps_in_captures_are_found_by_cm_and_by_acks() {
    for (name, cm, from) in [
        ("incast", true, Resolved::Cm),
        ("incast", false, Resolved::Acks),
        // Its connections are closed at its end.
        ("all-to-all", true, Resolved::Cm),
    ] {
        let (net, truth) = (play(name, cm), truth(name));
        assert!(truth.len() > 1, "{name}");
        for (key, (qp, packets)) in &truth {
            let case = format!("{name} {from:?} {key:?}");
            assert_eq!(net.flows().get(key).unwrap().extra, *packets, "{case}");
            assert_eq!(net.sender_qp(key), Some((*qp, from)), "{case}");
        }
        assert_eq!(net.flows().len(), truth.len(), "{name}");
    }
}

#[test]
fn acks_yield_no_wrong_qp_in_any_scenario() {
    let mut found = 0;
    for file in std::fs::read_dir(capture("")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".truth.json") else {
            continue;
        };
        let (net, truth) = (play(name, false), truth(name));
        for (key, _) in net.flows().iter() {
            if let Some(qp) = net.sender_qp(key) {
                let want = truth.get(key).map(|(qp, _)| *qp);
                assert_eq!(Some(qp.0), want, "{name} {key:?} {qp:?}");
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found}");
}

/// perftest and rping print the QPs of Linux's soft RoCE, whose numbers are two apart on the two
/// hosts. An RDMA READ is two flows, and datagrams are no connection: their source QP is unknown.
#[test]
fn ports_acks_and_read_responses_yield_the_qps_of_linux() {
    for (case, flows, named, from) in [
        ("rping-ipv4", 2, 2, Resolved::Acks),
        ("rping-ipv6", 2, 2, Resolved::Acks),
        ("verbs-ipv4", 6, 4, Resolved::Port),
        ("verbs-ipv6", 6, 4, Resolved::Port),
        ("loss", 3, 3, Resolved::Port),
        ("ce", 1, 1, Resolved::Port),
        ("cut", 1, 1, Resolved::Port),
        ("notified", 1, 1, Resolved::Port),
    ] {
        let net = play(&format!("soft-roce-{case}"), false);
        let right = ["198.51.100.1", "2001:db8:2::1"].map(|host| host.parse().unwrap());
        let mut found = 0;
        for (key, _) in net.flows().iter() {
            let Some(named) = net.sender_qp(key) else {
                continue;
            };
            let qp = key.receiver_qp.get();
            let qp = if right.contains(&key.receiver) {
                qp - 2
            } else {
                qp + 2
            };
            assert_eq!(named, (Qp::truncate(qp), from), "{case} {key:?}");
            found += 1;
        }
        assert_eq!((net.flows().len(), found), (flows, named), "{case}");
    }
}

proptest! {
    /// For any acknowledgements and responses, both directions agree, and no table exceeds its
    /// limit.
    #[test]
    fn both_directions_agree(
        acts in proptest::collection::vec((0_u8..3, 2_u32..6, 0_u32..6, 0_u8..3), 1..200),
    ) {
        let mut net = Net { flows: FlowTable::new(8), resolver: Resolver::new(4) };
        for (sender, qp, psn, act) in acts {
            let psn = 10_000 + psn * 500;
            let answered = FlowKey {
                sender: host(100),
                receiver: host(sender),
                receiver_qp: Qp::truncate(qp + 100),
            };
            match act {
                0 => net.data(key(sender, qp), psn),
                1 => net.ack(sender, qp + 100, psn),
                _ => {
                    let to = (answered.sender, answered.receiver, answered.receiver_qp);
                    net.resolver.acknowledged(to, 0, (0, psn), &net.flows);
                }
            }
            net.qp(answered);
            for (key, _) in net.flows.iter() {
                net.qp(*key);
            }
            prop_assert!(net.resolver.qps_kept() <= 8);
        }
    }
}
