//! Inference of the connected QPs of two hosts from the packets between them: by UDP source ports,
//! by acknowledgements, or because there is only one QP at each host.
//!
//! Every packet of a connection names the QP that it goes to. So the QPs of either host are known,
//! and only the pairs are unknown: an assignment between two short lists.

use crate::data::{FlowKey, words};
use crate::float::Float;
use crate::flow_table::{FAR, FlowTable, Sequenced};
use crate::resolved::Resolved;
use crate::source_port::{SOURCE_PORTS, udp_source_port};
use crate::table::Table;
use core::hash::{Hash, Hasher};
use fcn_wire::Qp;
use fcn_wire::bth::MAX_24;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::IpAddr;

/// Maximum number of QPs remembered at one host for packets from another: the number of bits in a
/// [`Mask`].
pub const MAX_QPS: usize = 128;
/// Maximum distance in PSNs, in either direction, between an acknowledgement and the flow's most
/// advanced data packet: 1.3 ms at 100 Gbit/s in packets of 4 KB. Above that, random PSNs begin to
/// look related: of 64 flows 3 in 100 have another in reach.
const REACH: u32 = 4096;
/// Number of acknowledgements that match exactly one flow before they pair its QPs, if PSNs
/// distinguish the flows.
const ENOUGH: u8 = 2;
/// The same if other flows have the same PSNs, or may have them and not be captured.
const ENOUGH_IN_STEP: u8 = 8;
/// The same for those or for the only two QPs, if data and acknowledgements come from different UDP
/// source ports: drivers give a connection the same one in both directions.
const ENOUGH_APART: u8 = 32;
/// Number of acknowledgements in a row of earlier packets that dissolve a pair, if the flow has sent
/// nothing since its last packet was acknowledged: the QP at the sender has another connection.
/// Copies and reordering cause fewer before the flow continues.
const ENOUGH_STALE: u8 = 32;
/// Number of additional contradicting acknowledgements, compared with the best flow, that rules a
/// flow out: each is of a packet that the flow had not sent.
const MARGIN: u8 = 4;
/// One acknowledgement in this many may precede its data in a capture that loses or reorders
/// packets.
const EARLY: u8 = 4;
/// Number of acknowledgements of a flow's last packet before their delay is evaluated.
const ENOUGH_TIMED: u8 = 16;
/// Logarithm of the minimum likelihood ratio between an assignment and one with two flows swapped.
const LIKELIER: f32 = 12.0;
/// Logarithm of how unlikely an acknowledgement before its data is, in a capture that may lose
/// packets.
const UNLIKELY: f32 = 2.0;
/// Minimum share of the acknowledgements of a flow that are of its last packet.
const MOST_TIMED: f32 = 0.9;
/// Maximum ratio of the variances of these delays between the same two hosts that counts as chance.
const MOST_UNLIKE: f32 = 4.0;
/// PSNs below this one do not distinguish connections: libraries start all of them at 0.
const FIRST_PSNS: u32 = 4096;
/// Number of packets to the only QP before it counts as the only one.
const ENOUGH_ALONE: u8 = 8;
/// Rate limit on displacing a remembered QP: one in this many acknowledgements and CNPs to QPs
/// without an entry. Without it, CNPs about 1,000 QPs of two hosts took four times as long.
const DISPLACES_ONE_IN: u32 = 64;
/// Number of packets between two hosts after which an idle QP is assumed to be closed, and after
/// which the count of displaced ones is halved: 64 for each of the QPs remembered.
const CLOSED: u32 = 64 * MAX_QPS as u32;
/// Number of packets between two hosts after which a QP is not expected to be paired any more.
const HOPELESS: u32 = CLOSED / 4;
/// Pairs by source port are accepted while at most one in this many is expected to be wrong.
const ONE_WRONG_IN: u64 = 512;
/// Stands for several ports of a QP, which the rule does not cover.
const SEVERAL: u16 = 1;
/// Mate of a QP without one.
const UNPAIRED: u8 = u8::MAX;
/// Stands for no PSN.
const NO_PSN: u32 = u32::MAX;

/// Low bits of a time in ns, to recognise it; 0 for none.
type Moment = u32;

const fn moment(time: u64) -> Moment {
    time as u32 | 1
}

/// Set of QPs at one host, by their index in its list.
type Mask = u128;

/// Kind of packets to a QP, for its UDP source ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Data.
    Data,
    /// Acknowledgements.
    Acks,
}

/// Two hosts, the lower address first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hosts([IpAddr; 2]);

impl Hosts {
    /// Returns the two hosts, and the index of `to` among them.
    fn new(from: IpAddr, to: IpAddr) -> (Self, usize) {
        match from <= to {
            true => (Self([from, to]), 1),
            false => (Self([to, from]), 0),
        }
    }

    /// Returns the flow to the QP `qp` at host `at`.
    const fn flow(&self, at: usize, qp: Qp) -> FlowKey {
        FlowKey {
            sender: self.0[1 - at],
            receiver: self.0[at],
            receiver_qp: qp,
        }
    }
}

impl Hash for Hosts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.0.iter().flat_map(words) {
            state.write_u64(word);
        }
    }
}

/// Acknowledgements to one QP, compared with one flow.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Number of acknowledgements of packets that the flow had sent.
    fits: u8,
    /// Number of acknowledgements of packets that it had not sent, or far from its PSNs.
    against: u8,
    /// Number of acknowledgements of its last packet, with no later one sent.
    timed: u8,
    /// Delay from that packet to the acknowledgement, in ns: the mean, and the sum of squared
    /// differences from it.
    mean: f32,
    squares: f32,
}

impl Cell {
    const fn count(&mut self, fits: bool) {
        let count = match fits {
            true => &mut self.fits,
            false => &mut self.against,
        };
        *count += 1;
        if *count == u8::MAX {
            (self.fits, self.against) = (self.fits / 2, self.against / 2);
        }
    }

    /// Adds the time since the packet that is acknowledged.
    fn time(&mut self, delay: u64) {
        if self.timed == u8::MAX {
            return;
        }
        self.timed += 1;
        let delay = delay as f32;
        let apart = delay - self.mean;
        self.mean += apart / f32::from(self.timed);
        self.squares += apart * (delay - self.mean);
    }

    /// Returns the variance of the delay.
    fn variance(self) -> f32 {
        (self.squares / f32::from(self.timed)).max(1.0)
    }

    /// Returns the logarithm of how much likelier this flow is than another for the same
    /// acknowledgements, assuming normally distributed delays.
    fn likelier_than(self, other: Self) -> f32 {
        let timed = f32::from(self.timed.min(other.timed)) / 2.0;
        let early = f32::from(other.against) - f32::from(self.against);
        timed * (other.variance() / self.variance()).natural_log() + UNLIKELY * early
    }

    /// Returns true if the flow may be the one that is acknowledged.
    const fn is_likely(self) -> bool {
        self.fits > 0 && self.against <= self.fits / EARLY
    }
}

/// A QP at one of two hosts, to which the other host sends.
#[derive(Clone, Debug)]
struct End {
    /// QPs at the other host for which the UDP source port matches the rule.
    by_port: Mask,
    /// Acknowledgements to it, by QP at the other host; empty while it is paired.
    row: Vec<Cell>,
    qp: Qp,
    /// PSN of the last acknowledgement to it.
    psn: u32,
    /// [Moment] of the last packet of its mate's flow, if that was acknowledged.
    completed: Moment,
    /// [Moment] of the last packet to it when its pair was dissolved, if that was acknowledged: no
    /// acknowledgement is about its flow until it continues.
    abandoned: Moment,
    /// Number of the last packet to it that was processed.
    touched: u32,
    /// UDP source ports of packets to it, by [`Traffic`]; 0: none, [`SEVERAL`]: several.
    ports: [u16; 2],
    /// Its index in the other host's list, or [`UNPAIRED`].
    mate: u8,
    /// Evidence for the pair.
    from: Resolved,
    /// Acknowledgements to it since it was paired.
    acks: Cell,
    /// Number of acknowledgements to it since its flow's last packet was acknowledged.
    stale: u8,
    /// Number of acknowledgements and CNPs to it.
    packets: u8,
    /// True if another connection has the same PSNs.
    in_step: bool,
    has_data: bool,
    /// True if its mate was displaced and no packet came since: its entry is free.
    is_vacant: bool,
}

impl End {
    const fn new(qp: Qp) -> Self {
        Self {
            by_port: 0,
            row: Vec::new(),
            qp,
            psn: NO_PSN,
            completed: 0,
            abandoned: 0,
            touched: 0,
            ports: [0; 2],
            mate: UNPAIRED,
            from: Resolved::Only,
            acks: Cell {
                fits: 0,
                against: 0,
                timed: 0,
                mean: 0.0,
                squares: 0.0,
            },
            stale: 0,
            packets: 0,
            in_step: false,
            has_data: false,
            is_vacant: false,
        }
    }

    /// Records the source port of a packet to it; returns true if that changes its known ports.
    const fn learn_port(&mut self, traffic: Traffic, port: u16) -> bool {
        let known = &mut self.ports[traffic as usize];
        if *known == port || *known == SEVERAL || port == 0 {
            return false;
        }
        *known = if *known == 0 { port } else { SEVERAL };
        true
    }

    const fn is_paired(&self) -> bool {
        self.mate != UNPAIRED
    }
}

/// Returns true if all known ports of packets between two QPs are those of the rule.
fn rule_holds(one: &End, other: &End) -> bool {
    let port = udp_source_port(one.qp, other.qp);
    let mut known = one
        .ports
        .iter()
        .chain(&other.ports)
        .filter(|port| **port > SEVERAL);
    known.clone().next().is_some() && known.all(|known| *known == port)
}

/// Returns true if acknowledgements and data come from different ports, given the ports of packets
/// to two QPs.
const fn have_other_ports(to: [u16; 2], from: [u16; 2]) -> bool {
    let acks = to[Traffic::Acks as usize];
    let data = from[Traffic::Data as usize];
    acks > SEVERAL && data > SEVERAL && acks != data
}

/// Returns the number of different ports between two QPs: each could match by chance.
fn ports_between(one: &End, other: &End) -> u64 {
    let mut ports = [0; 4];
    let (first, second) = ports.split_at_mut(2);
    first.copy_from_slice(&one.ports);
    second.copy_from_slice(&other.ports);
    ports.sort_unstable();
    let mut last = SEVERAL;
    let mut many = 0;
    for port in ports {
        many += u64::from(port > last);
        last = last.max(port);
    }
    many
}

/// The QPs of one host to which the other one sends.
#[derive(Debug, Default)]
struct Side {
    /// The QPs of `ends`, stored apart: they are searched for every acknowledgement.
    qps: Vec<Qp>,
    ends: Vec<End>,
}

impl Side {
    fn place(&self, qp: Qp) -> Option<usize> {
        self.qps.iter().position(|other| *other == qp)
    }

    /// Returns the QPs for which `holds` is true.
    fn mask(&self, holds: impl Fn(&End) -> bool) -> Mask {
        let ends = self.ends.iter().zip(0..);
        ends.fold(0, |mask, (end, n)| mask | Mask::from(holds(end)) << n)
    }
}

/// Returns the index of each set bit.
fn places(mut mask: Mask) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (place < MAX_QPS).then_some(place)
    })
}

/// Returns the index of the only bit that is set.
const fn only(mask: Mask) -> Option<usize> {
    match mask.is_power_of_two() {
        true => Some(mask.trailing_zeros() as usize),
        false => None,
    }
}

/// The peers of paired QPs.
#[derive(Debug)]
struct Peers {
    /// The host that the QP at a host is connected to.
    hosts: HashMap<(IpAddr, Qp), IpAddr, RandomState>,
    /// Pairs of which a QP was displaced by another one: at each host, the QP's peer.
    displaced: Table<(IpAddr, Qp), (IpAddr, Qp, Resolved)>,
}

impl Peers {
    /// Records that two QPs are paired: any earlier pairs of them are obsolete.
    fn insert(&mut self, host: IpAddr, qp: Qp, peer: IpAddr) {
        self.hosts.insert((host, qp), peer);
        self.forget(host, qp);
    }

    /// Forgets the displaced pair of a QP, if there is one.
    fn forget(&mut self, host: IpAddr, qp: Qp) {
        if let Some((peer, mate, _)) = self.displaced.remove(&(host, qp)) {
            self.displaced.remove(&(peer, mate));
        }
    }

    /// Returns the peer of a QP whose pair was displaced.
    fn displaced(&self, host: IpAddr, qp: Qp) -> Option<(IpAddr, Qp, Resolved)> {
        let known = self.displaced.peek(&(host, qp)).copied()?;
        // The other half may have been evicted.
        let (back, own, _) = *self.displaced.peek(&(known.0, known.1))?;
        ((back, own) == (host, qp)).then_some(known)
    }
}

/// Flows and acknowledgements between two hosts.
#[derive(Debug)]
struct Between {
    hosts: Hosts,
    sides: [Side; 2],
    /// True if QPs are paired by port: both directions of a connection have the same one.
    by_port: bool,
    /// Number of acknowledgements and CNPs to QPs for which there was no room.
    refused: u32,
    /// Number of vacant entries at either host.
    vacant: [u32; 2],
    /// Number of QPs at either host displaced by others though they may still be open, and their
    /// mate is not known.
    displaced: [u32; 2],
    /// Number of packets so far, modulo 2³².
    packets: u32,
}

impl Between {
    fn len(&self) -> usize {
        self.sides[0].ends.len() + self.sides[1].ends.len()
    }

    /// Pairs the QP `place` at host `at` with `mate` at the other.
    fn pair(
        &mut self,
        at: usize,
        (place, mate): (usize, usize),
        from: Resolved,
        peers: &mut Peers,
    ) {
        for (at, place, mate) in [(at, place, mate), (1 - at, mate, place)] {
            if usize::from(self.sides[at].ends[place].mate) != mate {
                self.unpair(at, place, peers);
            }
            let end = &mut self.sides[at].ends[place];
            (end.mate, end.from) = (mate as u8, from);
            end.acks = Cell::default();
            // Frees its memory.
            end.row = Vec::new();
            peers.insert(self.hosts.0[at], end.qp, self.hosts.0[1 - at]);
        }
    }

    /// Dissolves the pair of the QP `place` at host `at`, if it has one.
    fn unpair(&mut self, at: usize, place: usize, peers: &mut Peers) {
        let mate = usize::from(self.sides[at].ends[place].mate);
        if mate == usize::from(UNPAIRED) {
            return;
        }
        let completed = [
            self.sides[1 - at].ends[mate].completed,
            self.sides[at].ends[place].completed,
        ];
        for ((at, place), abandoned) in [(at, place), (1 - at, mate)].into_iter().zip(completed) {
            let end = &mut self.sides[at].ends[place];
            (end.mate, end.psn, end.abandoned) = (UNPAIRED, NO_PSN, abandoned);
            (end.completed, end.stale) = (0, 0);
            let key = (self.hosts.0[at], end.qp);
            if peers.hosts.get(&key) == Some(&self.hosts.0[1 - at]) {
                peers.hosts.remove(&key);
            }
        }
    }

    /// Dissolves the pair of the QP `place` at host `at`, which has to make room for another, and
    /// remembers who its peer was.
    fn displace(&mut self, at: usize, place: usize, peers: &mut Peers) {
        let end = &self.sides[at].ends[place];
        let (qp, from, mate) = (end.qp, end.from, usize::from(end.mate));
        let mate = self.sides[1 - at].ends.get_mut(mate);
        let mate = mate.map(|mate| {
            mate.is_vacant = true;
            self.vacant[1 - at] += 1;
            mate.qp
        });
        self.unpair(at, place, peers);
        if let Some(mate) = mate {
            let [own, other] = [self.hosts.0[at], self.hosts.0[1 - at]];
            for (host, qp, peer) in [
                (own, qp, (other, mate, from)),
                (other, mate, (own, qp, from)),
            ] {
                peers.displaced.put((host, qp), peer);
            }
        }
    }

    /// Records that the entry `place` at host `at` is not vacant.
    fn occupy(&mut self, at: usize, place: usize) {
        let was_vacant = std::mem::take(&mut self.sides[at].ends[place].is_vacant);
        self.vacant[at] -= u32::from(was_vacant);
    }

    /// Returns the index of a QP at host `at`, with a new entry if needed, and true if it is new.
    /// `None` if there is no room: packets other than data displace another QP only once in a
    /// while, as otherwise more QPs than fit would do so with every packet.
    fn end(
        &mut self,
        (at, qp): (usize, Qp),
        traffic: Traffic,
        most: usize,
        peers: &mut Peers,
    ) -> Option<(usize, bool)> {
        if let Some(place) = self.sides[at].place(qp) {
            return Some((place, false));
        }
        let place = self.sides[at].ends.len();
        if place >= most && self.vacant[at] == 0 && traffic == Traffic::Acks {
            self.refused = self.refused.wrapping_add(1);
            if !self.refused.is_multiple_of(DISPLACES_ONE_IN) {
                return None;
            }
        }
        if place < most {
            let side = &mut self.sides[at];
            side.qps.push(qp);
            side.ends.push(End::new(qp));
        } else {
            let age = |end: &End| self.packets.wrapping_sub(end.touched);
            let ends = self.sides[at].ends.iter().zip(0..);
            // A QP that has had no mate for long is displaced first, as it is of least use.
            let is_hopeless = |end: &End| !end.is_paired() && age(end) >= HOPELESS;
            let rank = |end: &End| (end.is_vacant, is_hopeless(end), age(end));
            let oldest = ends.max_by_key(|(end, _)| rank(end));
            let (old, is_open, place) = oldest.map_or((qp, false, 0), |(end, place)| {
                (end.qp, age(end) < CLOSED, place)
            });
            self.displace(at, place, peers);
            // Acknowledgements of a known pair cannot be taken for those of another.
            let is_unknown = peers.displaced(self.hosts.0[at], old).is_none();
            let counts = is_open && is_unknown;
            self.displaced[at] = self.displaced[at].saturating_add(counts.into());
            self.occupy(at, place);
            self.sides[at].qps[place] = qp;
            self.sides[at].ends[place] = End::new(qp);
            for end in &mut self.sides[1 - at].ends {
                end.by_port &= !(1 << place);
                if let Some(cell) = end.row.get_mut(place) {
                    *cell = Cell::default();
                }
            }
            return Some((place, true));
        }
        // There are several now.
        for at in 0..2 {
            for place in places(self.sides[at].mask(|end| end.from == Resolved::Only)) {
                self.unpair(at, place, peers);
            }
        }
        Some((place, true))
    }

    /// Compares the ports of the QP `place` at host `at` with those of the other host's QPs.
    fn compare_ports(&mut self, at: usize, place: usize) {
        let [low, high] = &mut self.sides;
        let (own, others) = match at {
            0 => (low, high),
            _ => (high, low),
        };
        let end = &mut own.ends[place];
        end.by_port = 0;
        for (other, n) in others.ends.iter_mut().zip(0..) {
            let fits = Mask::from(rule_holds(end, other));
            end.by_port |= fits << n;
            other.by_port = other.by_port & !(1 << place) | fits << place;
        }
    }

    /// Pairs all QPs by their ports again.
    fn pair_by_port(&mut self, peers: &mut Peers) {
        let is_open = |end: &End| {
            let is_known = end.is_paired() && !matches!(end.from, Resolved::Port | Resolved::Only);
            !is_known && !end.is_vacant
        };
        let mut free = [self.sides[0].mask(is_open), self.sides[1].mask(is_open)];
        let all = free[0];
        let mut mates = [UNPAIRED; MAX_QPS];
        let mut found = true;
        while std::mem::take(&mut found) {
            for at in 0..2 {
                for place in places(free[at]) {
                    let fits = |end: &End, at: usize| end.by_port & free[1 - at];
                    let Some(mate) = only(fits(&self.sides[at].ends[place], at)) else {
                        continue;
                    };
                    // Others that match it must have another choice.
                    let rivals = fits(&self.sides[1 - at].ends[mate], 1 - at) & !(1 << place);
                    if places(rivals)
                        .any(|rival| only(fits(&self.sides[at].ends[rival], at)).is_some())
                    {
                        continue;
                    }
                    let (low, high) = if at == 0 {
                        (place, mate)
                    } else {
                        (mate, place)
                    };
                    mates[low] = high as u8;
                    free[0] &= !(1 << low);
                    free[1] &= !(1 << high);
                    found = true;
                }
            }
        }
        let by_rule = mates.iter().filter(|mate| **mate != UNPAIRED).count();
        let occupied = |at: usize| self.sides[at].ends.len() - self.vacant[at] as usize;
        let lens = [occupied(0), occupied(1)];
        self.by_port = false;
        for place in places(all) {
            let mate = usize::from(mates[place]);
            let is_sure = mate != usize::from(UNPAIRED)
                && is_sure(by_rule, lens, self.displaced, {
                    ports_between(&self.sides[0].ends[place], &self.sides[1].ends[mate])
                });
            self.by_port |= is_sure;
            let before = &self.sides[0].ends[place];
            if is_sure && (usize::from(before.mate), before.from) != (mate, Resolved::Port) {
                self.pair(0, (place, mate), Resolved::Port, peers);
            } else if !is_sure && before.from == Resolved::Port {
                self.unpair(0, place, peers);
            }
        }
    }

    /// Processes an acknowledgement to the QP `place` at host `at`, at `time` in ns.
    fn acknowledged(
        &mut self,
        (at, place): (usize, usize),
        (time, psn): (u64, u32),
        flows: &FlowTable<impl Sequenced>,
        peers: &mut Peers,
    ) {
        let [low, high] = &mut self.sides;
        let (own, others) = match at {
            0 => (low, high),
            _ => (high, low),
        };
        let hosts = self.hosts;
        let position = |end: &End| flows.position(&hosts.flow(1 - at, end.qp));
        let end = &mut own.ends[place];
        // One acknowledgement captured at two interfaces counts once.
        if end.psn == psn {
            return;
        }
        if let Some(mate) = others.ends.get(usize::from(end.mate)) {
            let Some((last, sent)) = position(mate) else {
                return;
            };
            if psn == last {
                end.completed = moment(sent);
            }
            // With many packets in flight, acknowledgements lag far behind.
            let is_behind = match end.from {
                Resolved::Port => last.wrapping_sub(psn) & MAX_24 < FAR,
                _ => fits(last, psn),
            };
            end.stale = match is_behind && psn != last && end.completed == moment(sent) {
                true => end.stale + 1,
                false => 0,
            };
            let is_anothers = || {
                let mut others = others.ends.iter().filter(|other| other.qp != mate.qp);
                others.any(|other| position(other).is_some_and(|(last, _)| fits(last, psn)))
            };
            if end.stale >= ENOUGH_STALE {
                // The QP has a new connection; both may match the rule of ports.
            } else if is_beside(last, psn) || end.from == Resolved::Port {
                end.acks.count(is_behind);
                end.psn = psn;
                if end.from == Resolved::Only
                    && psn >= FIRST_PSNS
                    && end.acks.fits >= ENOUGH_IN_STEP
                    && end.acks.is_likely()
                {
                    end.from = Resolved::Acks;
                    let mate = usize::from(end.mate);
                    self.sides[1 - at].ends[mate].from = Resolved::Acks;
                    return;
                }
                if end.acks.against < MARGIN || end.acks.against <= end.acks.fits / EARLY {
                    return;
                }
            } else if !is_anothers() {
                return;
            }
            if end.from == Resolved::Port {
                // The match was chance.
                let bit = 1 << end.mate;
                end.by_port &= !bit;
            }
            self.unpair(at, place, peers);
            return self.acknowledged((at, place), (time, psn), flows, peers);
        }
        end.psn = psn;
        end.row.resize(others.ends.len(), Cell::default());
        let ports = end.ports;
        let (mut fitting, mut current): (Mask, u32) = (0, 0);
        for ((other, cell), n) in others.ends.iter().zip(&mut end.row).zip(0..) {
            let is_taken = other.is_vacant || other.is_paired() && other.from == Resolved::Port;
            if is_taken || self.by_port && have_other_ports(ports, other.ports) {
                *cell = Cell::default();
            } else if let Some((last, sent)) =
                position(other).filter(|at| moment(at.1) != other.abandoned)
            {
                cell.count(fits(last, psn));
                fitting |= Mask::from(fits(last, psn)) << n;
                current += u32::from(is_beside(last, psn));
                if last == psn {
                    cell.time(time.saturating_sub(sent));
                }
            }
        }
        self.take_over(at, fitting, psn, peers);
        self.pair_by_acks((at, place), psn, current, peers);
        let end = &self.sides[at].ends[place];
        if !end.is_paired()
            && end
                .row
                .iter()
                .any(|cell| cell.timed >= ENOUGH_TIMED && cell.timed % 8 == 0)
        {
            self.pair_by_time(at, psn, peers);
        }
    }

    /// Discards the evidence that other QPs at host `at` send the flows that an acknowledgement of
    /// `psn` matches, if the last acknowledgements to these QPs have distant PSNs: the QPs at the
    /// receiver have another connection since.
    fn take_over(&mut self, at: usize, fitting: Mask, psn: u32, peers: &mut Peers) {
        if fitting == 0 {
            return;
        }
        for place in 0..self.sides[at].ends.len() {
            let end = &mut self.sides[at].ends[place];
            if end.psn == NO_PSN || is_beside(end.psn, psn) {
                continue;
            }
            for flow in places(fitting) {
                if let Some(cell) = end.row.get_mut(flow) {
                    *cell = Cell::default();
                }
            }
            let has_port = end.from == Resolved::Port;
            if end.is_paired() && !has_port && fitting & 1 << end.mate != 0 {
                self.unpair(at, place, peers);
            }
        }
    }

    /// Pairs the QPs at host `at` by how constant the delay between data and acknowledgements is,
    /// if flows advance at the same pace, so that acknowledgements match several: all at once, as
    /// each flow belongs to one QP.
    fn pair_by_time(&mut self, at: usize, psn: u32, peers: &mut Peers) {
        let (side, others) = (&self.sides[at], &self.sides[1 - at]);
        let taken = others.mask(|end| end.is_paired() || end.is_vacant || !end.has_data);
        let free = side.mask(|end| {
            !end.is_paired() && end.psn != NO_PSN && is_beside(end.psn, psn) && !end.row.is_empty()
        });
        // Otherwise some packets are not captured.
        let flows = others.mask(|_| true) & !taken;
        if free.count_ones() != flows.count_ones() || free.count_ones() < 2 {
            return;
        }
        let cell = |place: usize, flow: usize| {
            let cell = side.ends[place].row.get(flow).copied().unwrap_or_default();
            (cell.timed > cell.fits / 2 && cell.is_likely()).then_some(cell)
        };
        let likelier = |place, flow, other| match (cell(place, flow), cell(place, other)) {
            (Some(one), Some(other)) => one.likelier_than(other),
            _ => f32::INFINITY,
        };
        let mut mates = [0; MAX_QPS];
        let (mut left, mut least, mut most) = (flows, f32::INFINITY, 0.0_f32);
        for place in places(free) {
            let best = places(flows).min_by(|one, other| {
                let variance = |flow| cell(place, flow).map_or(f32::INFINITY, Cell::variance);
                variance(*one).total_cmp(&variance(*other))
            });
            let Some((best, cell)) = best.and_then(|best| Some((best, cell(place, best)?))) else {
                return;
            };
            // For a flow that is ahead, only acknowledgements that come soon match its last packet,
            // with hardly varying delays.
            if cell.timed < ENOUGH_TIMED
                || f32::from(cell.timed) < MOST_TIMED * f32::from(cell.fits)
            {
                return;
            }
            left &= !(1 << best);
            mates[place] = best;
            (least, most) = (least.min(cell.variance()), most.max(cell.variance()));
        }
        // All take the same path: if one delay varies more than the others, its flow is another.
        if left != 0 || most > MOST_UNLIKE * least {
            return;
        }
        let is_sure = |place: usize| {
            places(free & !(1 << place)).all(|rival| {
                let (own, its) = (mates[place], mates[rival]);
                likelier(place, own, its) + likelier(rival, its, own) >= LIKELIER
            })
        };
        let sure = places(free).filter(|place| is_sure(*place));
        let sure = sure.fold(0, |mask: Mask, place| mask | 1 << place);
        for place in places(sure) {
            self.pair(at, (place, mates[place]), Resolved::Acks, peers);
        }
    }

    /// Pairs the QP `place` at host `at` with the one whose flow its acknowledgements match, if
    /// they match only one. `current` is the number of the other host's flows near that PSN.
    fn pair_by_acks(
        &mut self,
        (at, place): (usize, usize),
        psn: u32,
        current: u32,
        peers: &mut Peers,
    ) {
        let (side, others) = (&self.sides[at], &self.sides[1 - at]);
        let end = &side.ends[place];
        let likely = |row: &[Cell]| {
            let fitting = row.iter().filter(|cell| cell.fits > 0);
            let least = fitting.map(|cell| cell.against).min().unwrap_or(0);
            row.iter().zip(0..).fold(0, |mask: Mask, (cell, n)| {
                let is_likely = cell.fits > 0 && cell.against < least + MARGIN;
                mask | Mask::from(is_likely) << n
            })
        };
        let all = likely(&end.row);
        let taken = others.mask(End::is_paired);
        let Some(best) = only(all & !taken).or_else(|| only(all)) else {
            return;
        };
        let cell = end.row[best];
        let is_apart = (end.row.iter().enumerate()).all(|(n, cell)| n == best || cell.fits == 0);
        let may_be_in_step = !is_apart || end.in_step || psn < FIRST_PSNS;
        // Displaced QPs may match as well: a match by port makes that unlikely.
        let by_both = !may_be_in_step && end.by_port & 1 << best != 0;
        if self.displaced != [0; 2] && !by_both {
            return;
        }
        let is_alone = side.ends.len() == 1 && others.ends.len() == 1;
        let enough = match have_other_ports(end.ports, others.ends[best].ports) {
            // There is no other evidence for it.
            true if is_alone && may_be_in_step => return,
            true if is_alone || may_be_in_step => ENOUGH_APART,
            false if may_be_in_step => ENOUGH_IN_STEP,
            _ => ENOUGH,
        };
        if cell.fits < enough || !cell.is_likely() {
            return;
        }
        let holder = usize::from(others.ends[best].mate);
        if let Some(holder) = side.ends.get(holder).map(|_| holder) {
            // Both are acknowledged as the flow advances: one of them belongs to another flow.
            self.unpair(at, holder, peers);
            for place in [place, holder] {
                let end = &mut self.sides[at].ends[place];
                (end.in_step, end.row) = (true, Vec::new());
            }
            return;
        }
        let is_rival = |other: &End| {
            let others = likely(&other.row) & !taken;
            let is_current = other.psn != NO_PSN && is_beside(other.psn, psn);
            other.qp != end.qp && !other.is_paired() && is_current && only(others) == Some(best)
        };
        if side.ends.iter().any(is_rival) {
            return;
        }
        // Otherwise one of the flows or of the QPs is not captured, and the remaining ones need not
        // belong together.
        let is_current = |end: &&End| {
            let has_port = end.is_paired() && end.from == Resolved::Port;
            !has_port && end.psn != NO_PSN && is_beside(end.psn, psn)
        };
        let acknowledged = side.ends.iter().filter(is_current).count();
        if may_be_in_step && acknowledged != current as usize {
            return;
        }
        let from = match is_alone && may_be_in_step {
            true => Resolved::Only,
            false => Resolved::Acks,
        };
        self.pair(at, (place, best), from, peers);
        self.sides[at].ends[place].acks = cell;
    }

    /// Pairs the only two QPs, if enough packets are sent to the one at host `at`.
    fn pair_alone(&mut self, at: usize, peers: &mut Peers) {
        let ([own], [other]) = (&self.sides[at].ends[..], &self.sides[1 - at].ends[..]) else {
            return;
        };
        let refuted = own.row.first().is_some_and(|cell| !cell.is_likely());
        let refuted = refuted || have_other_ports(own.ports, other.ports);
        if own.packets >= ENOUGH_ALONE && other.has_data && !own.is_paired() && !refuted {
            self.pair(at, (0, 0), Resolved::Only, peers);
        }
    }
}

/// Returns true if pairs by ports are seldom chance, given the number of QPs at the two hosts that
/// pair by the rule, and the number of ports between two. By chance, (QPs left at one host) × (QPs
/// left at the other) × ports / 16384 pairs match. One more of each is counted for QPs yet to come,
/// and so are those that were compared and displaced while they may be open.
fn is_sure(
    by_rule: usize,
    [low, high]: [usize; 2],
    [from_low, from_high]: [u32; 2],
    ports: u64,
) -> bool {
    let left = |qps: usize| (qps + 1).saturating_sub(by_rule) as u64;
    let (low, high) = (left(low), left(high));
    let compared = low * high + u64::from(from_low) * high + u64::from(from_high) * low;
    let by_chance = compared * ports;
    by_chance * ONE_WRONG_IN <= (by_rule as u64 + 1) * u64::from(SOURCE_PORTS)
}

/// The connected QPs.
///
/// Memory: 96 octets for each QP at one host that another sends to, and 12 more for each QP at the
/// other host while acknowledgements to it are being compared; 56 more once it has a mate. At most
/// `2 × limit` QPs; hosts that were silent longest are evicted first. `limit` more, 120 octets each,
/// are remembered only by their mates: they were paired and made room for others.
#[derive(Debug)]
pub struct Pairing {
    between: Table<Hosts, Between>,
    peers: Peers,
    limit: usize,
    qps: usize,
}

impl Pairing {
    /// Returns one that remembers the QPs of at most `limit` connections.
    pub fn new(limit: usize) -> Self {
        Self {
            between: Table::new(usize::MAX),
            peers: Peers {
                hosts: HashMap::default(),
                displaced: Table::new(limit.saturating_mul(2)),
            },
            limit: limit.max(1),
            qps: 0,
        }
    }

    /// Returns the number of QPs remembered.
    pub const fn len(&self) -> usize {
        self.qps
    }

    /// Processes a packet to the QP `qp`; `act` continues with the state of the two hosts, and the
    /// position of the QP in it.
    fn packet(
        &mut self,
        (from, to, qp): (IpAddr, IpAddr, Qp),
        (traffic, port): (Traffic, u16),
        act: impl FnOnce(&mut Between, (usize, usize), &mut Peers),
    ) {
        let (hosts, at) = Hosts::new(from, to);
        // Packets of a host to itself have no two sides.
        if from == to {
            return;
        }
        let between = self.between.get_or_make(hosts, || Between {
            hosts,
            sides: Default::default(),
            by_port: false,
            refused: 0,
            vacant: [0; 2],
            displaced: [0; 2],
            packets: 0,
        });
        let peers = &mut self.peers;
        between.packets = between.packets.wrapping_add(1);
        if between.packets.is_multiple_of(CLOSED) {
            between.displaced = between.displaced.map(|qps| qps / 2);
        }
        let before = between.len();
        let most = MAX_QPS.min(self.limit);
        let Some((place, is_new)) = between.end((at, qp), traffic, most, peers) else {
            return;
        };
        self.qps += between.len() - before;
        between.occupy(at, place);
        let end = &mut between.sides[at].ends[place];
        end.touched = between.packets;
        let is_changed = end.learn_port(traffic, port);
        if is_new || is_changed {
            between.compare_ports(at, place);
            between.pair_by_port(peers);
        }
        act(between, (at, place), peers);
        while self.qps > 2 * self.limit
            && let Some(mut oldest) = self.between.pop_oldest()
        {
            self.qps -= oldest.len();
            for place in 0..oldest.sides[0].ends.len() {
                oldest.unpair(0, place, peers);
            }
        }
    }

    /// Records that data of a flow begins, from that UDP source port; `is_anew` is true if it is of
    /// another connection than before.
    pub fn begins(&mut self, flow: &FlowKey, is_anew: bool, port: u16) {
        let packet = (flow.sender, flow.receiver, flow.receiver_qp);
        if port != SEVERAL {
            self.peers.forget(flow.receiver, flow.receiver_qp);
        }
        // Its port is recorded below.
        self.packet(packet, (Traffic::Data, 0), |between, (at, place), peers| {
            if is_anew {
                between.unpair(at, place, peers);
            }
            let end = &mut between.sides[at].ends[place];
            end.has_data = true;
            if is_anew {
                end.abandoned = 0;
                end.ports = [0; 2];
                for other in &mut between.sides[1 - at].ends {
                    if let Some(cell) = other.row.get_mut(place) {
                        *cell = Cell::default();
                    }
                }
            }
            let end = &mut between.sides[at].ends[place];
            if end.ports[Traffic::Data as usize] != port {
                end.ports[Traffic::Data as usize] = port;
                between.compare_ports(at, place);
                between.pair_by_port(peers);
            }
        });
    }

    /// Records that a flow's data comes from several UDP source ports.
    pub fn spreads(&mut self, flow: &FlowKey) {
        self.begins(flow, false, SEVERAL);
    }

    /// Processes a CNP to the QP `qp`.
    pub fn notified(&mut self, from: IpAddr, to: IpAddr, qp: Qp) {
        let (hosts, at) = Hosts::new(from, to);
        let sides = self.between.peek(&hosts).map(|between| &between.sides);
        // Many QPs, none of which can have a mate, need not be searched.
        if sides
            .is_some_and(|sides| sides[at].ends.len() >= MAX_QPS && sides[1 - at].ends.is_empty())
        {
            return;
        }
        if self.peers.displaced(to, qp).is_some() {
            return;
        }
        // The port is ignored: notification points need not use the connection's.
        let none = (Traffic::Acks, 0);
        self.packet((from, to, qp), none, |between, (at, place), peers| {
            let end = &mut between.sides[at].ends[place];
            end.packets = end.packets.saturating_add(1);
            between.pair_alone(at, peers);
        });
    }

    /// Processes an acknowledgement of the packet with that PSN to a QP, at `time` in ns.
    pub fn acknowledged(
        &mut self,
        packet: (IpAddr, IpAddr, Qp),
        port: u16,
        (time, psn): (u64, u32),
        flows: &FlowTable<impl Sequenced>,
    ) {
        let (from, to, qp) = packet;
        if let Some((receiver, receiver_qp, _)) = self.peers.displaced(to, qp) {
            let flow = FlowKey {
                sender: to,
                receiver,
                receiver_qp,
            };
            let position = flows.position(&flow).filter(|_| receiver == from);
            if position.is_some_and(|(last, _)| is_beside(last, psn)) {
                return;
            }
            self.peers.forget(to, qp);
        }
        self.packet(packet, (Traffic::Acks, port), |between, at, peers| {
            between.acknowledged(at, (time, psn), flows, peers);
        });
    }

    /// Pairs the QPs of a connection that is known otherwise.
    pub fn set(&mut self, flow: &FlowKey, sender_qp: Qp, from: Resolved) {
        let (receiver, sender) = (flow.receiver, flow.sender);
        let none = (Traffic::Data, 0);
        self.packet((receiver, sender, sender_qp), none, |_, _, _| ());
        let packet = (sender, receiver, flow.receiver_qp);
        self.packet(packet, none, |between, (at, place), peers| {
            if let Some(mate) = between.sides[1 - at].place(sender_qp) {
                between.pair(at, (place, mate), from, peers);
            }
        });
    }

    /// Returns the number of acknowledgements to the flow's QP that match the flow of its mate so
    /// far: at most 255.
    pub fn acknowledgements(&self, flow: &FlowKey) -> Option<u8> {
        self.find(flow).map(|(end, _)| end.acks.fits)
    }

    /// Returns the QP at the sender that `flow`'s data comes from, and the evidence for it.
    pub fn sender_qp(&self, flow: &FlowKey) -> Option<(Qp, Resolved)> {
        let found = self.find(flow).map(|(end, mate)| (mate.qp, end.from));
        found.or_else(|| {
            let (host, mate, from) = (self.peers).displaced(flow.receiver, flow.receiver_qp)?;
            (host == flow.sender).then_some((mate, from))
        })
    }

    /// Returns the QP at the receiver, and the one at the sender that it is paired with.
    fn find(&self, flow: &FlowKey) -> Option<(&End, &End)> {
        let (hosts, at) = Hosts::new(flow.sender, flow.receiver);
        let between = self.between.peek(&hosts)?;
        let end = &between.sides[at].ends[between.sides[at].place(flow.receiver_qp)?];
        let mate = between.sides[1 - at].ends.get(usize::from(end.mate))?;
        // Either QP may have been paired with one at another host since.
        let holds = |host, qp, peer| self.peers.hosts.get(&(host, qp)) == Some(&peer);
        let holds =
            holds(flow.sender, mate.qp, flow.receiver) && holds(flow.receiver, end.qp, flow.sender);
        holds.then_some((end, mate))
    }

    /// Returns the flow that the QP `qp` at `sender` sends.
    pub fn flow_of(&self, sender: IpAddr, qp: Qp) -> Option<FlowKey> {
        let receiver = (self.peers.hosts.get(&(sender, qp)).copied())
            .or_else(|| Some(self.peers.displaced(sender, qp)?.0))?;
        let back = FlowKey {
            sender: receiver,
            receiver: sender,
            receiver_qp: qp,
        };
        let (receiver_qp, _) = self.sender_qp(&back)?;
        Some(FlowKey {
            sender,
            receiver,
            receiver_qp,
        })
    }
}

/// Returns true if an acknowledgement of `psn` may be about the flow whose most advanced data
/// packet has the PSN `last`, as far as captured.
pub const fn is_beside(last: u32, psn: u32) -> bool {
    fits(last, psn) || fits(psn, last)
}

/// Returns true if an acknowledgement of `psn` is about sent data of the flow whose most advanced
/// data packet has the PSN `last`.
const fn fits(last: u32, psn: u32) -> bool {
    last.wrapping_sub(psn) & MAX_24 < REACH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn flow(qp: u32) -> FlowKey {
        FlowKey {
            sender: A,
            receiver: B,
            receiver_qp: Qp::truncate(qp),
        }
    }

    /// Sends data to the second QP of each connection.
    fn begun(connections: impl IntoIterator<Item = (u32, u32)>) -> Pairing {
        let mut pairing = Pairing::new(1000);
        for (qp, receiver_qp) in connections {
            let port = udp_source_port(Qp::truncate(qp), Qp::truncate(receiver_qp));
            pairing.begins(&flow(receiver_qp), false, port);
        }
        pairing
    }

    fn found(pairing: &Pairing, qp: u32) -> Option<u32> {
        let flow = pairing.flow_of(A, Qp::truncate(qp))?;
        let (back, _) = pairing.sender_qp(&flow)?;
        assert_eq!(back.get(), qp);
        Some(flow.receiver_qp.get())
    }

    #[test]
    fn the_first_cnp_finds_its_flow_by_the_port() {
        let mut pairing = begun((0..64).map(|n| (887 + n, 11_662 + 3 * n)));
        assert_eq!(found(&pairing, 890), None);
        pairing.notified(B, A, Qp::truncate(890));
        assert_eq!(found(&pairing, 890), Some(11_671));
        let back = pairing.sender_qp(&flow(11_671));
        assert_eq!(back, Some((Qp::truncate(890), Resolved::Port)));
    }

    #[test]
    fn late_acknowledgements_keep_a_pair_by_port() {
        let known_after = |behind: u32| {
            let mut pairing = begun([(887, 11_662)]);
            let mut flows: FlowTable<u32> = FlowTable::new(8);
            let port = udp_source_port(Qp::truncate(887), Qp::truncate(11_662));
            for n in 0..100 {
                let psn = 100_000 + n;
                *flows
                    .data(flow(11_662), n.into(), (Some(psn), port), || psn)
                    .0 = psn;
                let acknowledged = psn.wrapping_sub(behind) & MAX_24;
                let packet = (B, A, Qp::truncate(887));
                pairing.acknowledged(packet, port, (n.into(), acknowledged), &flows);
            }
            found(&pairing, 887)
        };
        assert_eq!(known_after(10), Some(11_662));
        assert_eq!(known_after(20_000), Some(11_662));
        assert_eq!(known_after(0_u32.wrapping_sub(20)), None);
        assert_eq!(known_after(0x40_0000), None);
    }

    #[test]
    fn data_in_both_directions_is_enough() {
        let mut pairing = begun([(887, 11_662), (889, 11_665)]);
        let back = FlowKey {
            sender: B,
            receiver: A,
            receiver_qp: Qp::truncate(887),
        };
        let port = udp_source_port(Qp::truncate(887), Qp::truncate(11_662));
        pairing.begins(&back, false, port);
        assert_eq!(found(&pairing, 887), Some(11_662));
    }

    #[test]
    fn several_ports_are_no_evidence() {
        let mut pairing = begun([(887, 11_662), (889, 11_665)]);
        pairing.notified(B, A, Qp::truncate(887));
        assert_eq!(found(&pairing, 887), Some(11_662));
        pairing.spreads(&flow(11_662));
        assert_eq!(found(&pairing, 887), None);
        // Another connection uses the QP.
        let port = udp_source_port(Qp::truncate(887), Qp::truncate(11_662));
        pairing.begins(&flow(11_662), true, port);
        assert_eq!(found(&pairing, 887), Some(11_662));
    }

    #[test]
    fn one_matching_port_among_many_is_chance() {
        for (by_rule, qps, displaced, ports, want) in [
            (1, [1, 1], [0, 0], 1, true),
            (1, [1, 64], [0, 0], 1, true),
            (1, [1, 128], [0, 0], 1, false),
            (3, [3, 128], [0, 0], 1, true),
            (64, [64, 64], [0, 0], 1, true),
            (1, [64, 64], [0, 0], 1, false),
            (1, [8, 8], [0, 0], 2, false),
            (128, [128, 128], [1_000, 1_000], 1, true),
            (64, [128, 128], [72, 72], 1, false),
        ] {
            let sure = is_sure(by_rule, qps, displaced, ports);
            assert_eq!(sure, want, "{by_rule} {qps:?} {displaced:?}");
        }
        // One of 64 whose port matches by chance.
        let mut pairing = begun([(887, 11_662)]);
        for n in 1..64 {
            pairing.begins(&flow(11_662 + n), false, 0xC000 + n as u16);
        }
        for n in 0..64 {
            pairing.notified(B, A, Qp::truncate(887 + n));
        }
        assert_eq!(found(&pairing, 887), None);
    }

    #[test]
    fn the_only_qps_are_paired_until_there_are_others() {
        let mut pairing = Pairing::new(1000);
        pairing.begins(&flow(20), false, 0xC001);
        for n in 0..ENOUGH_ALONE {
            assert_eq!(found(&pairing, 7), None, "{n}");
            pairing.notified(B, A, Qp::truncate(7));
        }
        let known = pairing.sender_qp(&flow(20));
        assert_eq!(known, Some((Qp::truncate(7), Resolved::Only)));
        pairing.begins(&flow(21), false, 0xC001);
        assert_eq!(found(&pairing, 7), None);
    }

    #[test]
    fn qps_without_a_mate_are_displaced_first() {
        let mut pairing = begun([(887, 11_662)]);
        pairing.notified(B, A, Qp::truncate(887));
        for n in 0..1000 {
            pairing.begins(&flow(20_000 + n), false, 0xC001);
        }
        assert_eq!(found(&pairing, 887), None, "one of many");
        assert_eq!(pairing.len(), 1 + MAX_QPS);
    }

    #[test]
    fn displaced_flows_prevent_pairs_by_acknowledgements() {
        let wrong_and_right = |connections: u32| {
            let mut pairing = Pairing::new(1000);
            let mut flows: FlowTable<u32> = FlowTable::new(1000);
            // Any two flows 200 apart have PSNs that acknowledgements of either match.
            let psn = |n: u32| 100_000 + n % 200 * 50_000 + n / 200 * 100;
            for n in 0..connections {
                let flow = flow(100_000 + n);
                *flows.data(flow, 1, (Some(psn(n)), 0xC001), || 0).0 = psn(n);
                pairing.begins(&flow, false, 0xC001);
            }
            for (back, time) in (0..4).zip(2..) {
                for n in 0..connections {
                    let to = (B, A, Qp::truncate(n + 2));
                    pairing.acknowledged(to, 0xC001, (time, psn(n) - back), &flows);
                }
            }
            let found = (0..connections).filter_map(|n| Some((n, found(&pairing, n + 2)?)));
            let (right, wrong): (Vec<_>, Vec<_>) = found.partition(|(n, qp)| n + 100_000 == *qp);
            (wrong.len(), right.len())
        };
        assert_eq!(wrong_and_right(100), (0, 100));
        assert_eq!(wrong_and_right(400), (0, 0));
    }

    #[test]
    fn many_consecutive_connections_are_paired() {
        for (case, port) in [("port", None), ("acks", Some(0xC001))] {
            let mut pairing = Pairing::new(1000);
            let mut flows: FlowTable<u32> = FlowTable::new(1000);
            for n in 0..1000 {
                let flow = flow(100_000 + n);
                let own = Qp::truncate(n + 2);
                let port = port.unwrap_or_else(|| udp_source_port(flow.receiver_qp, own));
                for at in 0..200 {
                    let time = u64::from(n * 200 + at);
                    let psn = 100_000 + n % 200 * 50_000 + at;
                    *flows.data(flow, time, (Some(psn), port), || 0).0 = psn;
                    pairing.begins(&flow, false, port);
                    pairing.acknowledged((B, A, own), port, (time + 1, psn), &flows);
                }
                assert_eq!(found(&pairing, n + 2), Some(n + 100_000), "{case}, {n}");
            }
            for n in 0..1000 {
                assert_eq!(
                    found(&pairing, n + 2),
                    Some(n + 100_000),
                    "{case}, {n}, at the end"
                );
            }
        }
    }

    #[test]
    fn a_displaced_pair_is_remembered_until_its_qps_are_used_again() {
        let (qp, receiver_qp) = (887, 11_662);
        let displaced = || {
            let mut pairing = Pairing::new(1000);
            for n in 0..MAX_QPS as u32 + 2 {
                let (own, flow) = (qp + n, flow(receiver_qp + 3 * n));
                let port = udp_source_port(Qp::truncate(own), flow.receiver_qp);
                pairing.begins(&flow, false, port);
                pairing.notified(B, A, Qp::truncate(own));
            }
            assert_eq!(pairing.len(), 2 * MAX_QPS);
            pairing
        };
        let first = flow(receiver_qp);
        let mut pairing = displaced();
        assert_eq!(found(&pairing, qp), Some(receiver_qp));
        pairing.notified(B, A, Qp::truncate(qp));
        assert_eq!(found(&pairing, qp), Some(receiver_qp), "notified");
        let mut flows: FlowTable<u32> = FlowTable::new(8);
        flows.data(first, 1, (Some(900), 0), || 900);
        let to = (B, A, Qp::truncate(qp));
        pairing.acknowledged(to, 0xC001, (2, 899), &flows);
        assert_eq!(
            found(&pairing, qp),
            Some(receiver_qp),
            "its own acknowledgement"
        );
        pairing.acknowledged(to, 0xC001, (3, 9_000_000), &flows);
        assert_eq!(found(&pairing, qp), None, "another connection's");
        let mut pairing = displaced();
        pairing.begins(&first, true, 0xC001);
        assert_eq!(
            found(&pairing, qp),
            None,
            "the QP at the receiver begins anew"
        );
    }

    #[test]
    fn a_qp_of_the_sender_that_is_used_again_gets_its_new_flow() {
        let own = Qp::truncate(887);
        for (case, ports) in [
            ("acks", [0xC001, 0xC002]),
            (
                "port",
                [20, 21].map(|qp| udp_source_port(own, Qp::truncate(qp))),
            ),
        ] {
            let mut pairing = begun([]);
            let mut flows: FlowTable<u32> = FlowTable::new(8);
            // Another connection is beside both, with its own PSNs.
            for (n, (qp, port)) in (20..).zip(ports).enumerate() {
                for at in 0..200 {
                    let time = n as u64 * 1_000 + u64::from(at);
                    for (receiver_qp, sender_qp, psn) in
                        [(qp, own, at), (30, Qp::truncate(31), 100_000 + time as u32)]
                    {
                        let flow = flow(receiver_qp);
                        *flows.data(flow, time, (Some(psn), port), || 0).0 = psn;
                        pairing.begins(&flow, false, port);
                        pairing.acknowledged((B, A, sender_qp), port, (time, psn), &flows);
                    }
                }
                assert_eq!(found(&pairing, 887), Some(qp), "{case}");
            }
        }
    }

    proptest! {
        /// No table exceeds its limit, and both directions agree.
        #[test]
        fn any_packets_are_survived(
            packets in proptest::collection::vec((any::<bool>(), 0_u8..3, 0_u32..40, 0_u32..9, 0_u8..5), 1..400),
            limit in 1_usize..12,
        ) {
            let mut pairing = Pairing::new(limit);
            let mut flows: FlowTable<u32> = FlowTable::new(20);
            for (time, (forth, peer, qp, psn, act)) in packets.into_iter().enumerate() {
                let time = time as u64;
                let peer = IpAddr::from([10, 0, 0, 2 + peer]);
                let (from, to) = if forth { (A, peer) } else { (peer, A) };
                let flow = FlowKey { sender: from, receiver: to, receiver_qp: Qp::truncate(2 + qp) };
                // Mostly the ports of a few others.
                let port = udp_source_port(flow.receiver_qp, Qp::truncate(2 + psn));
                let qp = flow.receiver_qp;
                match act {
                    0 => {
                        *flows.data(flow, time, (Some(psn), port), || psn).0 = psn;
                        pairing.begins(&flow, psn == 8, port);
                    }
                    1 => pairing.spreads(&flow),
                    2 => pairing.notified(from, to, qp),
                    _ => pairing.acknowledged((from, to, qp), port, (time, psn), &flows),
                }
                prop_assert!(pairing.len() <= 2 * limit);
                prop_assert!(pairing.peers.hosts.len() <= pairing.len());
                prop_assert!(pairing.peers.displaced.len() <= 2 * limit);
                if let Some(found) = pairing.flow_of(from, qp) {
                    prop_assert_eq!(pairing.sender_qp(&found).map(|(qp, _)| qp), Some(qp));
                }
                if let Some((sender_qp, _)) = pairing.sender_qp(&flow) {
                    prop_assert_eq!(pairing.flow_of(from, sender_qp), Some(flow));
                }
            }
        }
    }
}
