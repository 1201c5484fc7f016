//! Captures of connections between two hosts whose pairs of QPs are known.
//!
//! Each capture is drawn from its kind and its number alone.

use fcn_observe::source_port::udp_source_port;
use fcn_observe::{FlowKey, FlowTable, Resolver};
use fcn_wire::Qp;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use std::net::{IpAddr, Ipv4Addr};

const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 1));
const MAX_24: u32 = 0xFF_FFFF;

/// First PSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Psns {
    Zero,
    /// The same random one for all.
    InStep,
    Random,
}

/// UDP source ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Computed like in Linux drivers.
    Rule,
    /// One per connection, or per direction of one.
    Random,
    /// One for all.
    Same,
    /// Four per QP.
    Several,
}

/// Captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    All,
    /// All but one packet in a hundred.
    Lossy,
    /// From the middle on.
    Middle,
    /// Packets to the receiver.
    Data,
    /// Packets from the receiver.
    Answers,
    /// One of two links; each direction of a connection takes one of them.
    OneLink,
}

/// A kind of capture.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub qps: usize,
    pub psns: Psns,
    pub ports: Ports,
    pub captured: Captured,
    /// Messages per acknowledgement.
    pub coalesced: usize,
    /// For senders whose messages begin by a clock, all at the same rate, regardless of
    /// acknowledgements: variation of the time to acknowledgements, in µs.
    pub by_clock: Option<u64>,
}

/// Counts of flows, or of CNPs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub right: u32,
    pub wrong: u32,
    pub unknown: u32,
}

impl Count {
    fn add<T: PartialEq>(&mut self, found: Option<T>, truth: T) {
        match found {
            Some(found) if found == truth => self.right += 1,
            Some(_) => self.wrong += 1,
            None => self.unknown += 1,
        }
    }

    pub fn all(&self) -> u32 {
        self.right + self.wrong + self.unknown
    }
}

impl core::ops::AddAssign for Count {
    fn add_assign(&mut self, more: Self) {
        self.right += more.right;
        self.wrong += more.wrong;
        self.unknown += more.unknown;
    }
}

/// Pairing of the QPs of some captures, compared with the truth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paired {
    /// Flows whose data is captured, at the end.
    pub flows: Count,
    /// Of these, those with at least 20 acknowledgements.
    pub acknowledged: Count,
    /// CNPs about a flow whose data has been captured, when they come.
    pub cnps: Count,
}

impl core::ops::AddAssign for Paired {
    fn add_assign(&mut self, more: Self) {
        self.flows += more.flows;
        self.acknowledged += more.acknowledged;
        self.cnps += more.cnps;
    }
}

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.below(1 << 32) as f64 / (1_u64 << 32) as f64
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.between(0.0, 1.0) < chance
    }

    /// Exponential with mean 1.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.between(0.0, 1.0)).ln()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Data,
    Ack,
    Cnp,
}

/// A packet, to the QP of its connection at one of the hosts.
#[derive(Clone, Copy)]
struct Packet {
    at: f64,
    connection: usize,
    /// True if it goes to the data's receiver.
    forth: bool,
    sort: Sort,
    psn: u32,
    port: u16,
}

struct Connection {
    /// At the sender, and at the receiver.
    qps: [Qp; 2],
    /// First PSNs.
    psns: [u32; 2],
    ports: [[u16; 4]; 2],
    /// True if it takes the captured link, by direction.
    on_link: [bool; 2],
    /// Time between packets, in µs.
    pace: f64,
}

/// Plays the capture of that kind and number, and evaluates the pairing.
pub fn play(case: &Case, number: u64) -> Paired {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(number));
    let connections = connections(case, &mut random);
    let mut packets = packets(case, &connections, &mut random);
    packets.sort_by(|one, other| one.at.total_cmp(&other.at));
    let middle = packets.last().map_or(0.0, |last| last.at) * 0.4;
    let mut watch = Watch {
        flows: FlowTable::new(1000),
        resolver: Resolver::new(1000),
    };
    let mut paired = Paired::default();
    let mut captured = vec![(false, 0); case.qps];
    for packet in &packets {
        let connection = &connections[packet.connection];
        let is_captured = match case.captured {
            Captured::All => true,
            Captured::Lossy => !random.chance(0.01),
            Captured::Middle => packet.at > middle,
            Captured::Data => packet.forth,
            Captured::Answers => !packet.forth,
            Captured::OneLink => connection.on_link[usize::from(packet.forth)],
        };
        if !is_captured {
            continue;
        }
        watch.see(packet, connection);
        let (has_data, acks) = &mut captured[packet.connection];
        match (packet.forth, packet.sort) {
            (true, Sort::Data) => *has_data = true,
            (false, Sort::Ack) => *acks += 1,
            (false, Sort::Cnp) if *has_data => {
                let found = watch.resolver.flow_of(SENDER, connection.qps[0]);
                paired.cnps.add(found, flow(connection, true));
            }
            _ => {}
        }
    }
    for (connection, (has_data, acks)) in connections.iter().zip(captured) {
        if !has_data {
            continue;
        }
        let found = watch.resolver.sender_qp(&flow(connection, true));
        let found = found.map(|(qp, _)| qp);
        paired.flows.add(found, connection.qps[0]);
        if acks >= 20 {
            paired.acknowledged.add(found, connection.qps[0]);
        }
    }
    paired
}

fn flow(connection: &Connection, forth: bool) -> FlowKey {
    let (sender, receiver) = match forth {
        true => (SENDER, RECEIVER),
        false => (RECEIVER, SENDER),
    };
    FlowKey {
        sender,
        receiver,
        receiver_qp: connection.qps[usize::from(forth)],
    }
}

struct Watch {
    flows: FlowTable<u32>,
    resolver: Resolver,
}

impl Watch {
    fn see(&mut self, packet: &Packet, connection: &Connection) {
        let (psn, port) = (packet.psn, packet.port);
        let at = (packet.at * 1e3) as u64;
        let key = flow(connection, packet.forth);
        let to = (key.sender, key.receiver, key.receiver_qp);
        match packet.sort {
            Sort::Data => {
                let (last, begins) = self.flows.data(key, at, (Some(psn), port), || psn);
                if psn.wrapping_sub(*last) & MAX_24 <= MAX_24 / 2 {
                    *last = psn;
                }
                self.resolver.begins(&key, begins, port);
            }
            Sort::Ack => self.resolver.acknowledged(to, port, (at, psn), &self.flows),
            Sort::Cnp => self.resolver.notified(to.0, to.1, to.2),
        }
    }
}

fn connections(case: &Case, random: &mut Random) -> Vec<Connection> {
    let mut qps = [(); 2].map(|()| {
        let most = [1 << 10, 1 << 14, 1 << 17, 1 << 23];
        let most = most[random.below(4) as usize];
        0x11 + random.below(most) as u32
    });
    let (common, both) = (random.below(1 << 24) as u32, random.chance(0.5));
    let same = 0xC000 | random.below(1 << 14) as u16;
    // Senders keep their speed in half the captures: the order of their progress does not change.
    let fixed = random.chance(0.5);
    (0..case.qps)
        .map(|_| {
            for qp in &mut qps {
                *qp += 1 + random.below(3) as u32;
            }
            let qps = qps.map(Qp::truncate);
            let mut psn = || match case.psns {
                Psns::Zero => 0,
                Psns::InStep => common,
                Psns::Random => random.below(1 << 24) as u32,
            };
            let psns = [psn(), psn()];
            let mut port = || 0xC000 | random.below(1 << 14) as u16;
            let ports = match case.ports {
                Ports::Rule => [[udp_source_port(qps[0], qps[1]); 4]; 2],
                Ports::Same => [[same; 4]; 2],
                Ports::Random if both => [[port(); 4]; 2],
                Ports::Random => [[port(); 4], [port(); 4]],
                Ports::Several => [(); 2].map(|()| [(); 4].map(|()| port())),
            };
            let spread = if fixed { 1.0 } else { 0.1 };
            Connection {
                qps,
                psns,
                ports,
                on_link: [random.chance(0.5), random.chance(0.5)],
                pace: 0.4 * case.qps as f64 * (1.0 + spread * random.exponential()),
            }
        })
        .collect()
}

/// Returns the packets of 60 messages per connection.
fn packets(case: &Case, connections: &[Connection], random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    if let Some(jitter) = case.by_clock {
        return by_clock(connections, case.coalesced, jitter as f64, random);
    }
    let collective = random.chance(0.7);
    let each = 8 << random.below(3);
    let round_trip = random.between(5.0, 40.0);
    let both_ways = random.chance(0.3);
    let mut next = vec![0.0; connections.len()];
    for message in 0..60 {
        let mut ends = 0.0_f64;
        for (number, connection) in connections.iter().enumerate() {
            let mut at = next[number] + random.between(0.0, 3.0);
            let pace = connection.pace * (1.0 + 0.3 * random.exponential());
            let mut packet = |at, forth: bool, sort, psn: u32, random: &mut Random| {
                let ports = connection.ports[usize::from(forth)];
                packets.push(Packet {
                    at,
                    connection: number,
                    forth,
                    sort,
                    psn: connection.psns[usize::from(forth == (sort == Sort::Data))]
                        .wrapping_add(psn)
                        & MAX_24,
                    port: ports[random.below(4) as usize],
                });
            };
            let answer = |random: &mut Random| round_trip * (1.0 + 0.3 * random.exponential());
            let mut last = 0;
            for index in 0..each {
                last = message * each + index;
                at += pace * random.between(0.9, 1.1);
                packet(at, true, Sort::Data, last, random);
                if both_ways {
                    packet(at + 0.2, false, Sort::Data, last, random);
                }
                if random.chance(0.02) {
                    let at = at + answer(random);
                    packet(at, false, Sort::Cnp, 0, random);
                }
            }
            if random.chance(0.005) {
                // One was lost: it is named, and all packets from it on are retransmitted.
                let lost = last - random.below(u64::from(each)) as u32;
                at += answer(random);
                packet(at, false, Sort::Ack, lost, random);
                at += round_trip / 2.0;
                for psn in lost..=last {
                    at += pace;
                    packet(at, true, Sort::Data, psn, random);
                }
            }
            let answered = at + answer(random);
            if message as usize % case.coalesced == case.coalesced - 1 {
                packet(answered, false, Sort::Ack, last, random);
            }
            if both_ways {
                packet(answered, true, Sort::Ack, last, random);
            }
            ends = ends.max(answered);
            next[number] = if random.chance(0.5) { at } else { answered };
        }
        if collective {
            next.fill(ends + random.between(5.0, 200.0));
        }
    }
    packets
}

/// Returns the packets of 100 messages per connection, one every 20 µs.
fn by_clock(
    connections: &[Connection],
    coalesced: usize,
    jitter: f64,
    random: &mut Random,
) -> Vec<Packet> {
    let mut packets = Vec::new();
    let each = 1 << random.below(3);
    let apart = random.between(0.0, 60.0);
    for (number, connection) in connections.iter().enumerate() {
        let mut packet = |at, forth: bool, sort, psn: u32| {
            packets.push(Packet {
                at,
                connection: number,
                forth,
                sort,
                psn: connection.psns[1].wrapping_add(psn) & MAX_24,
                port: connection.ports[usize::from(forth)][0],
            });
        };
        let start = random.between(0.0, apart);
        for message in 0..100 {
            let mut at = start + 20.0 * f64::from(message) + random.between(0.0, 0.2);
            let mut last = 0;
            for index in 0..each {
                at += 0.1;
                last = message * each + index;
                packet(at, true, Sort::Data, last);
            }
            let answered = at + 6.0 + random.between(0.0, jitter);
            if message as usize % coalesced == coalesced - 1 {
                packet(answered, false, Sort::Ack, last);
            }
            if random.chance(0.2) {
                packet(answered, false, Sort::Cnp, 0);
            }
        }
    }
    packets
}
