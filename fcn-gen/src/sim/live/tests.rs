//! A network of live nodes, each of which sees only its own links, with a virtual clock instead of
//! cables: together the nodes behave like the simulation.

use super::*;
use crate::scenario::{Play, Source, load};
use crate::sim::{self, frames};
use fcn_observe::DataPacket;
use fcn_wire::bth::{Aeth, BthRepr, Deth, MAX_24, Opcode, Qp, Reth};
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::Carrier;
use fcn_wire::icrc::{Policy, Verdict};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::rdma_cm::{
    CmRepr, ConnectRejectRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr,
    DisconnectRequestRepr, IP_CM_LEN, MessageRepr, REP_PRIVATE_LEN, Transport,
};
use fcn_wire::{Findings, IcrcCheck, Message};
use std::collections::{BTreeMap, BinaryHeap};

/// A frame on a cable, with its time of arrival and its destination, in reversed order for the
/// heap.
type InTransit = std::cmp::Reverse<(Ps, u64, usize, usize, Vec<u8>)>;

fn simulation(name: &str, sets: &[&str]) -> Simulation {
    let mut sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    // On real links notifications take the actual processing time: here, none.
    for what in ["host", "switch"] {
        sets.push(format!("defaults.{what}.notification_delay=0ns"));
    }
    // There, packets are marked as they arrive.
    sets.push("defaults.marking.at=arrival".to_owned());
    match load(&Source::Builtin(name.to_owned()), &sets).unwrap().play {
        Play::Simulation(simulation) => *simulation,
        Play::Gallery(_) | Play::Stress(_) => panic!("{name} is not a simulation"),
    }
}

/// Plays all nodes of `simulation` as live ones; `see` is called with each frame on each cable.
fn play_live(
    simulation: &Simulation,
    see: impl FnMut(usize, &[u8]),
) -> Vec<(LiveNode<'_>, Vec<usize>)> {
    let nodes = (0..simulation.nodes.len()).map(|node| live_node(simulation, node));
    play(simulation, nodes.collect(), see)
}

/// Returns a live node, and its links.
fn live_node(simulation: &Simulation, node: usize) -> (LiveNode<'_>, Vec<usize>) {
    let links: Vec<usize> = LiveNode::links(simulation, node).collect();
    let macs = vec![frames::mac(node); links.len()];
    (LiveNode::new(simulation, node, macs, None), links)
}

/// Connects nodes as in `simulation`; `see` is called with each frame on each cable.
fn play<'s>(
    simulation: &Simulation,
    mut nodes: Vec<(LiveNode<'s>, Vec<usize>)>,
    mut see: impl FnMut(usize, &[u8]),
) -> Vec<(LiveNode<'s>, Vec<usize>)> {
    let mut cables: BinaryHeap<InTransit> = BinaryHeap::new();
    let (mut number, mut now) = (0, Ps(0));
    while now <= simulation.duration {
        let timers = nodes.iter_mut().filter_map(|(node, _)| node.next_timer());
        let timer = timers.min();
        let arrival = cables.peek().map(|next| next.0.0);
        now = match (timer, arrival) {
            (Some(timer), Some(arrival)) => timer.min(arrival),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => break,
        };
        while cables.peek().is_some_and(|next| next.0.0 <= now) {
            let Some(std::cmp::Reverse((_, _, to, link, frame))) = cables.pop() else {
                break;
            };
            nodes[to].0.on_frame(now, link, &frame);
        }
        for (index, (node, links)) in nodes.iter_mut().enumerate() {
            node.on_timer(now);
            assert_eq!(node.failure(), None);
            let mut leaving = Vec::new();
            node.take_outgoing(&mut leaving);
            for frame in leaving {
                assert!(frame.at >= now);
                let link = links[frame.link];
                let to = simulation.links[link].other_end(index);
                let place = LiveNode::links(simulation, to).position(|l| l == link);
                let bytes = <[&[u8]; 2]>::from(frame.parts()).concat();
                see(link, &bytes);
                number += 1;
                cables.push(std::cmp::Reverse((
                    frame.at,
                    number,
                    to,
                    place.unwrap(),
                    bytes,
                )));
            }
        }
    }
    nodes
}

/// Combines the results of all nodes: octets delivered by flow, notifications sent by kind.
fn together(simulation: &Simulation, live: Vec<LiveNode<'_>>) -> (Vec<u64>, BTreeMap<Kind, u64>) {
    let mut delivered = vec![0; simulation.flows.len()];
    let mut sent: BTreeMap<Kind, u64> = BTreeMap::new();
    for node in live {
        let outcome = node.end("x");
        for (sum, flow) in delivered.iter_mut().zip(&outcome.truth.flows) {
            *sum += flow.octets_delivered;
        }
        for (kind, count) in outcome.metrics.notifications {
            *sent.entry(kind).or_default() += count;
        }
    }
    (delivered, sent)
}

fn simulated(simulation: &Simulation) -> Outcome {
    sim::play(simulation, "x", None, &mut |_| true).unwrap()
}

/// Tolerance as a share: each node has its own random numbers, and control is chaotic.
const TOLERANCE: f64 = 0.2;

fn agree(what: &str, live: u64, simulated: u64) {
    let (live, simulated) = (live as f64, simulated as f64);
    let difference = (live - simulated).abs();
    // With small counts, a difference of one may exceed that share.
    assert!(
        difference <= (simulated * TOLERANCE).max(3.0),
        "{what}: {live} live, {simulated} simulated"
    );
}

#[test]
fn live_nodes_together_behave_like_the_simulation() {
    for (name, sets) in [
        ("receiver-cnp", &["duration=4ms"][..]),
        ("switch-cnp", &["duration=4ms"]),
        ("switch-cnp", &["duration=4ms", "rdma_cm=false"]),
        ("fast-cnp", &["duration=4ms"]),
        ("fast-cnp-ioam", &["duration=4ms"]),
        ("receiver-fast-cnp", &["duration=4ms"]),
        ("proxy", &["duration=4ms"]),
        ("proxy", &["duration=4ms", "known_by=ospfv2", "ip=4"]),
        ("proxy", &["duration=4ms", "known_by=option"]),
        ("wan-fcn", &["duration=8ms"]),
        ("wan-fcn", &["duration=8ms", "tunnel=vxlan"]),
        ("wan-fcn", &["duration=8ms", "tunnel=sr-mpls", "ip=4"]),
        ("pfc", &["duration=1ms"]),
    ] {
        let simulation = simulation(name, sets);
        let expected = simulated(&simulation);
        let mut findings = Findings::default();
        let nodes = play_live(&simulation, |_, bytes| {
            let profile = &simulation.profile;
            let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
            frame.check(IcrcCheck::On, &mut findings);
        });
        assert_eq!(findings.as_slice(), [], "{name} {sets:?}");
        for (node, _) in &nodes {
            // Switches flood routing messages like bridges, so hosts receive them; no other frame
            // is misdirected or broken.
            let passed_over = IgnoredFrames {
                not_for_us: 0,
                ..node.passed_over()
            };
            assert_eq!(passed_over, IgnoredFrames::default(), "{name} {sets:?}");
        }
        let nodes = nodes.into_iter().map(|(node, _)| node).collect();
        let (delivered, sent) = together(&simulation, nodes);
        for (flow, delivered) in expected.truth.flows.iter().zip(&delivered) {
            let what = format!("{name} {sets:?} {}", flow.name);
            agree(&what, *delivered, flow.octets_delivered);
        }
        let kinds = |sent: &BTreeMap<Kind, u64>| sent.keys().copied().collect::<Vec<_>>();
        let all = &expected.metrics.notifications;
        assert_eq!(kinds(&sent), kinds(all), "{name} {sets:?}");
        for (kind, count) in &sent {
            agree(&format!("{name} {sets:?} {kind}"), *count, all[kind]);
        }
    }
}

/// Frames received at a host of `link` that are foreign or altered, and the answers to them.
#[test]
fn foreign_and_broken_frames_are_counted_and_not_answered() {
    let simulation = simulation("fast-cnp", &["plain=able"]);
    let index = |name: &str| {
        simulation
            .nodes
            .iter()
            .position(|n| n.name == name)
            .unwrap()
    };
    let (sender, receiver) = (index("able1"), index("r1"));
    // Frames between the two, from the simulation.
    let mut all = Vec::new();
    play_live(&simulation, |_, bytes| all.push(bytes.to_vec()));
    let profile = &simulation.profile;
    let parse = |bytes: &[u8], node: usize| {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
        let to_it = frame
            .ip()
            .is_some_and(|ip| ip.destination == simulation.nodes[node].ipv6);
        let kind = fcn_wire::Notification::from_frame(&frame).map(|n| n.kind);
        (to_it, kind, DataPacket::from_frame(&frame).is_some())
    };
    let data = all
        .iter()
        .find(|bytes| parse(bytes, receiver) == (true, None, true));
    let request = all
        .iter()
        .find(|bytes| parse(bytes, receiver) == (true, None, false));
    let told = (true, Some(Kind::FastCnp1), false);
    let fast = all.iter().find(|bytes| parse(bytes, sender) == told);
    let (data, request, fast) = (data.unwrap(), request.unwrap(), fast.unwrap());
    let changed = |bytes: &[u8], at: usize, by: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= by;
        bytes
    };
    // Offsets in the packet after Ethernet and IPv6: UDP, then the BTH.
    let (bth, source) = (14 + 40 + 8, 14 + 8 + 15);
    let of = |count: &str| match count {
        "not_for_us" => |counts: IgnoredFrames| counts.not_for_us,
        "unknown_qp" => |counts: IgnoredFrames| counts.unknown_qp,
        "bad_icrc" => |counts: IgnoredFrames| counts.bad_icrc,
        "out_of_place" => |counts: IgnoredFrames| counts.out_of_place,
        _ => |counts: IgnoredFrames| counts.unreadable,
    };
    for (what, node, bytes, count) in [
        (
            "another's QP",
            receiver,
            changed(data, bth + 7, 1),
            "unknown_qp",
        ),
        (
            "another sender",
            receiver,
            changed(data, source, 0x40),
            "unknown_qp",
        ),
        (
            "a wrong ICRC",
            receiver,
            changed(data, data.len() - 1, 1),
            "bad_icrc",
        ),
        ("not for it", sender, data.clone(), "not_for_us"),
        (
            "another's connection, damaged",
            receiver,
            changed(request, source, 0x40),
            "bad_icrc",
        ),
        ("too short", receiver, vec![0; 9], "unreadable"),
    ] {
        let mut live = LiveNode::new(&simulation, node, vec![[2; 6]], None);
        let before = live.world.links.outgoing.len();
        live.on_frame(Ps(1), 0, &bytes);
        assert_eq!(live.world.links.outgoing.len(), before, "{what}");
        assert_eq!(of(count)(live.passed_over()), 1, "{what}");
        assert_eq!(live.failure(), None);
    }
    // A Fast CNP of a switch that is not on the list, and one about an unknown QP: the role counts
    // the reason for ignoring it.
    for (bytes, why) in [
        (changed(fast, 14 + 8, 0x10), "not_on_access_list"),
        (fast.clone(), "unknown_qp"),
    ] {
        let mut live = LiveNode::new(&simulation, sender, vec![[2; 6]], None);
        live.on_frame(Ps(1), 0, &bytes);
        let counters = live.counters();
        let reaction = counters.iter().find(|(role, _)| *role == "reaction_point");
        let count = reaction.unwrap().1.iter().find(|(name, _)| *name == why);
        assert_eq!(count.unwrap().1, 1, "{why}");
    }
}

/// A bump in the wire has real hosts at its ends, which are not in the scenario.
#[test]
fn senders_outside_the_scenario_are_notified() {
    for (mechanism, kind, counter) in [
        ("fast-cnp", Kind::FastCnp1, "fast_cnps"),
        ("switch-cnp", Kind::Cnp, "cnps"),
    ] {
        let mechanism = format!("mechanism={mechanism}");
        let sets = [&mechanism, "host.s.count=1", "link.down.rate=1G"];
        let real = simulation("switch-cnp", &sets);
        let others = ["host.s.ipv6=2001:db8::1", "host.r1.ipv6=2001:db8::2"];
        let of_the_switch = simulation("switch-cnp", &[&sets[..], &others].concat());
        let index = |name| real.nodes.iter().position(|n| n.name == name).unwrap();
        let (switch, sender) = (index("spine1"), index("s1"));
        let mut nodes: Vec<_> = (0..real.nodes.len())
            .map(|node| live_node(&real, node))
            .collect();
        nodes[switch] = live_node(&of_the_switch, switch);
        let (mut count, mut astray) = (0, 0);
        let onward = LiveNode::links(&real, index("leaf2")).collect::<Vec<_>>();
        let mut nodes = play(&real, nodes, |link, bytes| {
            let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &real.profile);
            let notified = fcn_wire::Notification::from_frame(&frame).map(|n| n.kind);
            let last = LiveNode::links(&real, sender).any(|of_it| of_it == link);
            count += u64::from(last && notified == Some(kind));
            let is_fast = notified == Some(Kind::FastCnp1);
            astray += u64::from(is_fast && onward.contains(&link));
        });
        assert_eq!(astray, 0, "towards the receiver");
        assert!(count > 3, "{mechanism}: {count}");
        let counters = nodes[sender].0.counters();
        let reaction = counters.iter().find(|(role, _)| *role == "reaction_point");
        let taken = reaction
            .unwrap()
            .1
            .iter()
            .find(|(name, _)| *name == counter);
        // Some are in transit at the end; the receiver's own CNPs count, too.
        assert!(
            taken.unwrap().1 + 3 > count,
            "{mechanism}: {reaction:?} of {count}"
        );
        let truth = nodes.swap_remove(switch).0.end("spine1").truth;
        let passed = truth.switches.iter().find(|s| s.name == "spine1");
        assert!(passed.unwrap().forwarded > count, "{passed:?}");
    }
}

#[test]
fn single_interface_switch_rewrites_macs_like_a_router() {
    let simulation = simulation("receiver-cnp", &["duration=4ms"]);
    // Frames of a whole network, so that there are data and answers to them.
    let mut seen = Vec::new();
    let from = |name: &str| {
        simulation
            .nodes
            .iter()
            .position(|n| n.name == name)
            .unwrap()
    };
    let (leaf, receiver, s1) = (from("leaf1"), from("r1"), from("s1"));
    play_live(&simulation, |_, frame| seen.push(frame.to_vec()));
    let (own, [there, here]) = ([2, 9, 9, 9, 9, 9], [[2, 7, 7, 7, 7, 1], [2, 7, 7, 7, 7, 2]]);
    let mut live = LiveNode::new(&simulation, leaf, vec![own], None);
    live.reflect();
    let is = |source: NodeId, frame: &[u8]| {
        let profile = &simulation.profile;
        let frame = Frame::parse(frame, frame.len(), LinkType::Ethernet, profile);
        let ip = frame.ip().unwrap();
        let source = &simulation.nodes[source];
        ip.source == source.ipv6 || ip.source == source.ipv4
    };
    let frame_of = |source: NodeId, mac: [u8; 6], to: [u8; 6]| {
        let frame = seen.iter().find(|frame| is(source, frame)).unwrap();
        [&to[..], &mac, &frame[12..]].concat()
    };
    let mut at = Ps(0);
    let mut answered = |live: &mut LiveNode<'_>, frame: &[u8]| {
        at = at + Ps(1_000_000);
        live.on_frame(at, 0, frame);
        at = at + Ps(1_000_000_000);
        live.on_timer(at);
        let mut leaving = Vec::new();
        live.take_outgoing(&mut leaving);
        leaving
            .iter()
            .map(|frame| (frame.link, <[&[u8]; 2]>::from(frame.parts()).concat()))
            .collect::<Vec<_>>()
    };
    // No frame has come from the receiver: the scenario's address is used.
    let request = frame_of(s1, there, own);
    let sent = answered(&mut live, &request);
    let towards = [&frames::mac(receiver)[..], &own, &request[12..]].concat();
    assert_eq!(sent, [(0, towards)]);
    let reply = frame_of(receiver, here, own);
    let back = [&there[..], &own, &reply[12..]].concat();
    assert_eq!(answered(&mut live, &reply), [(0, back)]);
    let sent = answered(&mut live, &request);
    assert_eq!(sent, [(0, [&here[..], &own, &request[12..]].concat())]);
    // Forwarding a frame that is not for it would create a loop.
    assert_eq!(answered(&mut live, &frame_of(s1, there, here)), []);
    assert_eq!(live.passed_over().not_for_us, 1);
}

/// The other end of connections that is not in the scenario: a real host.
struct ExternalPeer<'a> {
    own: IpAddr,
    node: IpAddr,
    simulation: &'a Simulation,
    live: LiveNode<'a>,
    at: Ps,
}

/// Its QP and communication ID.
const QP: u32 = 0x11;
const ID: u32 = 0xC0FF_EE00;
/// Transaction ID of its connection management, and of the answers.
const TRANSACTION: u64 = 0xDEAD_0001_0000_0007;

impl ExternalPeer<'_> {
    /// Sends a packet; returns the answers, and whatever else is due by then.
    fn sends(&mut self, traffic_class: u8, parts: &[Part<'_>]) -> Vec<Vec<u8>> {
        let profile = &self.simulation.profile;
        let carrier = Carrier {
            traffic_class,
            ..Carrier::new(self.own, self.node)
        };
        let mut all = vec![
            Part::Ethernet {
                source: [2, 7, 7, 7, 7, 7],
                destination: [2; 6],
            },
            carrier.ip().unwrap(),
            Part::udp(50_000, profile.rocev2_port),
        ];
        all.extend_from_slice(parts);
        all.push(Part::Icrc(Policy::Compute(profile.icrc_reading)));
        self.at = self.at + Ps(1_000_000_000);
        let frame = compose::packet(&all, profile).unwrap();
        self.live.on_frame(self.at, 0, &frame);
        self.live.on_timer(self.at + Ps(1_000_000));
        let mut leaving = Vec::new();
        self.live.take_outgoing(&mut leaving);
        let whole = |frame: &OutgoingFrame| <[&[u8]; 2]>::from(frame.parts()).concat();
        leaving.iter().map(whole).collect()
    }

    fn manages(&mut self, message: impl Into<MessageRepr>) -> Vec<Vec<u8>> {
        let mad = CmRepr::new(TRANSACTION, message).to_bytes().unwrap();
        let deth = Deth {
            qkey: GSI_Q_KEY,
            source_qp: Qp::GSI,
        };
        let bth = BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, 0);
        let parts = [Part::Bth(bth), Part::Deth(deth), Part::Bytes(&mad)];
        self.sends(0, &parts)
    }

    /// Sends a request of this opcode, marked CE or not, that requests an acknowledgement.
    fn asks(&mut self, opcode: Opcode, qp: u32, psn: u32, is_marked: bool) -> Vec<Vec<u8>> {
        let bth = BthRepr {
            ack_request: true,
            ..BthRepr::new(opcode, Qp::truncate(qp), psn)
        };
        let reth = Reth {
            address: 0x7000,
            rkey: 1,
            length: 64,
        };
        let payload = [7; 64];
        let parts = [Part::Bth(bth), Part::Reth(reth), Part::Bytes(&payload)];
        let with_reth = opcode == Opcode::RC_WRITE_ONLY;
        let plain = [Part::Bth(bth), Part::Bytes(&payload)];
        let class = if is_marked { 3 } else { 2 };
        self.sends(class, if with_reth { &parts } else { &plain })
    }

    fn counted(&self, name: &str) -> u64 {
        let counters = self.live.counters();
        let responder = counters.iter().find(|(role, _)| *role == "responder");
        let counter = responder.unwrap().1.iter().find(|(is, _)| *is == name);
        counter.unwrap().1
    }
}

#[test]
fn receiver_serves_initiators_outside_the_scenario() {
    let simulation = simulation("receiver-cnp", &[]);
    let nodes = &simulation.nodes;
    let receiver = nodes.iter().position(|n| n.name == "r1").unwrap();
    let mut initiator = ExternalPeer {
        own: "2001:db8:9::9".parse().unwrap(),
        node: nodes[receiver].ipv6.into(),
        simulation: &simulation,
        live: LiveNode::new(&simulation, receiver, vec![[2; 6]], None),
        at: Ps(0),
    };
    let profile = &simulation.profile;
    let read = |bytes: &[u8], see: &mut dyn FnMut(&Frame<'_>)| {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
        assert!(matches!(frame.verify_icrc(), Verdict::Good(_)));
        assert_eq!(bytes[..6], [2, 7, 7, 7, 7, 7], "to whence it came");
        see(&frame);
    };
    let managed = |frames: &[Vec<u8>]| {
        assert_eq!(frames.len(), 1);
        let mut answer = None;
        read(&frames[0], &mut |frame| match frame.message() {
            Message::RdmaCm(_, message) => {
                let cm = CmRepr::parse(&message).unwrap();
                assert_eq!(cm.transaction_id, TRANSACTION);
                answer = Some(cm.message);
            }
            other => panic!("{other:?}"),
        });
        answer.unwrap()
    };
    // Syndrome and MSN of an AETH (0 for a CNP), and the PSN.
    let answered = |frames: &[Vec<u8>]| {
        let mut all = Vec::new();
        for bytes in frames {
            read(bytes, &mut |frame| {
                let (bth, answer) = match frame.message() {
                    Message::Roce(bth, Some(roce)) => {
                        let aeth = roce.aeth().unwrap();
                        (bth, ((aeth.syndrome, aeth.msn), bth.psn()))
                    }
                    Message::Cnp(cnp) => (cnp.bth(), ((0, 0), 0)),
                    other => panic!("{other:?}"),
                };
                assert_eq!(bth.dest_qp().get(), QP);
                all.push(answer);
            });
        }
        all
    };
    let ends = ((initiator.own, 50_000), (initiator.node, 18_515));
    let request = ConnectRequestRepr {
        local_comm_id: ID,
        local_qpn: QP,
        ..ConnectRequestRepr::roce(ends.0, ends.1).unwrap()
    };
    let datagram = ConnectRequestRepr {
        transport: Transport::Uc,
        ..request
    };
    match managed(&initiator.manages(datagram)) {
        MessageRepr::ConnectReject(no) => assert_eq!((no.remote_comm_id, no.reason), (ID, 9)),
        other => panic!("{other:?}"),
    }
    let MessageRepr::ConnectReply(reply) = managed(&initiator.manages(request)) else {
        panic!("not accepted")
    };
    assert_eq!(reply.remote_comm_id, ID);
    // A repeated request, as if the answer was lost.
    let again = managed(&initiator.manages(request));
    assert_eq!(again, MessageRepr::ConnectReply(reply));
    let (qp, psn) = (reply.local_qpn, reply.starting_psn);
    let write = Opcode::RC_WRITE_ONLY;
    let ack = |messages, psn| ((0x1F, messages), psn);
    assert_eq!(
        answered(&initiator.asks(write, qp, psn, false)),
        [ack(1, psn)]
    );
    // A marked packet also causes a CNP.
    let both = [ack(2, psn + 1), ((0, 0), 0)];
    assert_eq!(answered(&initiator.asks(write, qp, psn + 1, true)), both);
    // A gap causes one NAK; duplicates are acknowledged again.
    let missing = ((0x60, 2), psn + 2);
    assert_eq!(
        answered(&initiator.asks(write, qp, psn + 3, false)),
        [missing]
    );
    assert_eq!(answered(&initiator.asks(write, qp, psn + 4, false)), []);
    assert_eq!(
        answered(&initiator.asks(write, qp, psn, false)),
        [ack(2, psn + 1)]
    );
    assert_eq!(
        answered(&initiator.asks(write, qp, psn + 2, false)),
        [ack(3, psn + 2)]
    );
    let refused = ((0x61, 3), psn + 3);
    let send = Opcode::RC_SEND_ONLY;
    assert_eq!(
        answered(&initiator.asks(send, qp, psn + 3, false)),
        [refused]
    );
    assert_eq!(answered(&initiator.asks(write, qp + 1, psn, false)), []);
    assert_eq!(initiator.live.passed_over().unknown_qp, 1);
    for (name, count) in [
        ("accepted", 1),
        ("rejected", 1),
        ("writes", 3),
        ("octets", 192),
    ] {
        assert_eq!(initiator.counted(name), count, "{name}");
    }
    for (name, count) in [("out_of_order", 2), ("again", 1), ("refused", 1)] {
        assert_eq!(initiator.counted(name), count, "{name}");
    }
    let end = DisconnectRequestRepr {
        local_comm_id: ID,
        remote_comm_id: reply.local_comm_id,
        remote_qpn: qp,
        ..DisconnectRequestRepr::default()
    };
    for _ in 0..2 {
        match managed(&initiator.manages(end)) {
            MessageRepr::DisconnectReply(done) => {
                assert_eq!(
                    (done.local_comm_id, done.remote_comm_id),
                    (reply.local_comm_id, ID)
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(initiator.counted("disconnected"), 1);
    assert_eq!(answered(&initiator.asks(write, qp, psn + 3, false)), []);
}

/// A packet from a sender to a stranger, as parsed by the tests.
#[derive(Debug, PartialEq, Eq)]
enum SentPacket {
    Managed(Box<MessageRepr>),
    /// QP, PSN, and address, key and length of a RETH.
    Data(u32, u32, (u64, u32, u32)),
    /// QP, PSN, and syndrome and MSN of an AETH.
    Acknowledged(u32, u32, u8, u32),
}

/// A sender of three messages of one packet each, and a target of which the scenario has only the
/// address.
fn sender_and_target(simulation: &Simulation) -> ExternalPeer<'_> {
    let flow = &simulation.flows[0];
    ExternalPeer {
        own: flow.destination,
        node: flow.source,
        simulation,
        live: LiveNode::new(simulation, flow.from, vec![[2; 6]], None),
        at: Ps(0),
    }
}

fn three_writes() -> Simulation {
    let sets = [
        "host.s.count=1",
        "flow.load.messages=3",
        "flow.load.message=1000",
    ];
    simulation("receiver-cnp", &sets)
}

impl ExternalPeer<'_> {
    fn parse_sent(&self, frames: &[Vec<u8>]) -> Vec<SentPacket> {
        let profile = &self.simulation.profile;
        let read = |bytes: &Vec<u8>| {
            let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
            assert!(matches!(frame.verify_icrc(), Verdict::Good(_)));
            match frame.message() {
                Message::RdmaCm(_, message) => {
                    SentPacket::Managed(Box::new(CmRepr::parse(&message).unwrap().message))
                }
                Message::Roce(bth, Some(roce)) => {
                    let (qp, psn) = (bth.dest_qp().get(), bth.psn());
                    match (roce.reth(), roce.aeth()) {
                        (Some(to), _) => {
                            SentPacket::Data(qp, psn, (to.address, to.rkey, to.length))
                        }
                        (None, Some(aeth)) => {
                            SentPacket::Acknowledged(qp, psn, aeth.syndrome, aeth.msn)
                        }
                        (None, None) => panic!("{frame:?}"),
                    }
                }
                other => panic!("{other:?}"),
            }
        };
        frames.iter().map(read).collect()
    }

    /// Returns the packets sent to it in the meantime.
    fn waits(&mut self) -> Vec<SentPacket> {
        self.at = self.at + Ps(1_000_000_000);
        self.live.on_timer(self.at);
        let mut leaving = Vec::new();
        self.live.take_outgoing(&mut leaving);
        let whole = |frame: &OutgoingFrame| <[&[u8]; 2]>::from(frame.parts()).concat();
        let frames: Vec<_> = leaving.iter().map(whole).collect();
        self.parse_sent(&frames)
    }

    /// Returns the sender's ConnectRequest.
    fn is_asked(&mut self) -> ConnectRequestRepr {
        match self.waits().pop() {
            Some(SentPacket::Managed(message)) => match *message {
                MessageRepr::ConnectRequest(request) => request,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Returns the reply of an rsocket of librdmacm with a buffer of `len` octets.
    fn agrees(request: &ConnectRequestRepr, len: u32) -> ConnectReplyRepr {
        let mut private_data = [0; REP_PRIVATE_LEN];
        private_data[..4].copy_from_slice(&[1, 2, 1, 128]);
        private_data[24..32].copy_from_slice(&0x7F12_3456_7000_u64.to_be_bytes());
        private_data[32..36].copy_from_slice(&0x1234_u32.to_be_bytes());
        private_data[36..40].copy_from_slice(&len.to_be_bytes());
        ConnectReplyRepr {
            local_comm_id: ID,
            remote_comm_id: request.local_comm_id,
            local_qpn: QP,
            starting_psn: MAX_24,
            private_data,
            ..ConnectReplyRepr::default()
        }
    }

    fn acknowledges(
        &mut self,
        request: &ConnectRequestRepr,
        syndrome: u8,
        psn: u32,
    ) -> Vec<SentPacket> {
        let qp = Qp::truncate(request.local_qpn);
        let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, qp, psn);
        let frames = self.sends(2, &[Part::Bth(bth), Part::Aeth(Aeth { syndrome, msn: 0 })]);
        self.parse_sent(&frames)
    }
}

#[test]
fn sender_learns_a_real_target_from_its_connect_reply() {
    let simulation = three_writes();
    let mut target = sender_and_target(&simulation);
    let request = target.is_asked();
    // An rsocket checks the version.
    assert_eq!(request.private_data[IP_CM_LEN..][..4], [1, 0, 0, 0]);
    // Without it soft RoCE retransmits immediately.
    assert_eq!(request.primary.local_ack_timeout, 17);
    // The buffer has room for two messages.
    let reply = ExternalPeer::agrees(&request, 2_999);
    let frames = target.manages(reply);
    let mut sent = target.parse_sent(&frames);
    sent.extend(target.waits());
    let Some((SentPacket::Managed(ready), data)) = sent.split_first() else {
        panic!("{sent:?}")
    };
    match **ready {
        MessageRepr::ReadyToUse(ready) => {
            assert_eq!(
                (ready.local_comm_id, ready.remote_comm_id),
                (request.local_comm_id, ID)
            );
        }
        ref other => panic!("{other:?}"),
    }
    let write = |psn, address| SentPacket::Data(QP, psn, (address, 0x1234, 1_000));
    let begin = 0x7F12_3456_7000;
    assert_eq!(
        data,
        [
            write(MAX_24, begin),
            write(0, begin + 1_000),
            write(1, begin)
        ]
    );
    // An rsocket also gives the sender credits, by an RDMA WRITE with immediate data: it is
    // acknowledged, and again if repeated.
    let begins = request.starting_psn;
    let own = Qp::truncate(request.local_qpn);
    for _ in 0..2 {
        let bth = BthRepr {
            ack_request: true,
            ..BthRepr::new(Opcode::RC_WRITE_ONLY_IMM, own, begins)
        };
        let reth = Reth {
            address: 0x10,
            rkey: 0,
            length: 4,
        };
        let parts = [Part::Bth(bth), Part::Reth(reth), Part::Bytes(&[0; 8])];
        let frames = target.sends(2, &parts);
        assert_eq!(
            target.parse_sent(&frames),
            [SentPacket::Acknowledged(QP, begins, 0x1F, 1)]
        );
    }
    let ended = target.acknowledges(&request, 0x1F, 1);
    let [SentPacket::Managed(end)] = &ended[..] else {
        panic!("{ended:?}")
    };
    match **end {
        MessageRepr::DisconnectRequest(end) => {
            assert_eq!((end.remote_comm_id, end.remote_qpn), (ID, QP));
        }
        ref other => panic!("{other:?}"),
    }
    assert!(!target.live.is_quiet());
    let done = DisconnectReplyRepr {
        local_comm_id: ID,
        remote_comm_id: request.local_comm_id,
        ..DisconnectReplyRepr::default()
    };
    target.manages(done);
    assert!(target.live.is_quiet());
    assert_eq!(target.live.failure(), None);
    assert_eq!(target.live.passed_over(), IgnoredFrames::default());
}

#[test]
fn sender_waits_longer_with_each_connect_request() {
    let simulation = three_writes();
    let mut target = sender_and_target(&simulation);
    let mut asked_at = Vec::new();
    // Each wait is a millisecond.
    for at in 1..=2_000 {
        asked_at.extend(target.waits().iter().map(|_| at));
    }
    let gaps: Vec<_> = asked_at.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps, [4, 16, 64, 256]);
    assert!(target.live.is_quiet());
}

#[test]
fn sender_reports_why_a_target_fails() {
    let simulation = three_writes();
    let flow = &simulation.flows[0];
    let why = |play: &dyn Fn(&mut ExternalPeer<'_>, &ConnectRequestRepr)| {
        let mut target = sender_and_target(&simulation);
        let request = target.is_asked();
        play(&mut target, &request);
        let why = target.live.failure().unwrap();
        let about = format!("{}: the receiver {} ", flow.name, flow.destination);
        why.strip_prefix(&about).unwrap().to_owned()
    };
    let rejected = why(&|target, request| {
        let reject = ConnectRejectRepr {
            remote_comm_id: request.local_comm_id,
            reason: 8,
            ..ConnectRejectRepr::default()
        };
        // The reject of another connection.
        target.manages(ConnectRejectRepr {
            remote_comm_id: ID,
            ..reject
        });
        assert_eq!(target.live.failure(), None);
        target.manages(reject);
    });
    assert_eq!(rejected, "refuses the connection: ConnectReject, reason 8");
    let small = why(&|target, request| {
        target.manages(ExternalPeer::agrees(request, 999));
    });
    assert!(small.starts_with("accepts writes of 999 octets"), "{small}");
    let refused = why(&|target, request| {
        target.manages(ExternalPeer::agrees(request, 4_096));
        target.acknowledges(request, 0x62, MAX_24);
    });
    assert_eq!(refused, "refuses RDMA WRITEs: NAK, AETH syndrome 0x62");
    let ended = why(&|target, request| {
        target.manages(ExternalPeer::agrees(request, 4_096));
        let end = DisconnectRequestRepr {
            local_comm_id: ID,
            remote_comm_id: request.local_comm_id,
            remote_qpn: request.local_qpn,
            ..DisconnectRequestRepr::default()
        };
        let frames = target.manages(end);
        match target.parse_sent(&frames).pop() {
            Some(SentPacket::Managed(message)) => match *message {
                MessageRepr::DisconnectReply(reply) => assert_eq!(reply.remote_comm_id, ID),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(ended, "has closed the connection");
}
