//! Packets that are seen at several places, as on both ports of a bridge, on every interface of `any`, or at the vantage
//! points of a file: recognised, so that each counts once.
//!
//! The same packet has the same [identity](Sightings::notification): what no node on the way changes. Two CNPs about a QP
//! have it as well, so a sighting is taken for the oldest packet of that identity, at most [`WITHIN`] away, that was not
//! seen at this place yet; where there is none, it is another packet. So n copies at one place are n, and n at each of two
//! places are n too. What others saw before a place that was looked at later has passed it unseen, but for the latest of them where
//! that is much nearer (`NEARER`) in time than such packets are to each other.

use crate::data::{DataPacket, words};
use crate::unit::Unit;
use core::hash::{BuildHasher, Hash, Hasher};
use fcn_wire::bth::Bth;
use fcn_wire::{Frame, LinkType, Notification, Qp, Subject};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::IpAddr;

/// How long after one another two places may see the same packet, in nanoseconds \[choice\]: propagation over 1,000 km and
/// a deep queue.
pub const WITHIN: u64 = 10_000_000;
/// Packets remembered: at ten million a second, those of 6 ms.
pub const KEPT: usize = 1 << 16;
/// Packets looked at in search of one.
const LOOKED_AT: usize = 1024;
/// A place where the first packet was captured so much later than the first of all was not looked at before, in nanoseconds:
/// places are nearer than that, mostly.
const LATE: u64 = 1_000_000;
/// How many times as near as such packets are to each other.
const NEARER: u64 = 4;
/// Places told apart. What is seen at further ones counts as seen at the last.
pub const MOST_PLACES: usize = 1_024;
/// Places remembered of a packet, the last of which gives way: in and out of eight switches.
const PLACES_EACH: usize = 16;
/// Octets of a message that tell it from others: those of a CNP, or of a quoted packet as far as its PSN.
const TELLING: usize = 128;

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the interface that it was captured on.
    interface: u32,
    /// The kernel's number of the one that it passed, where it was captured on all of them.
    index: u32,
}

impl Place {
    /// A capture's interface of that number.
    #[must_use]
    pub const fn new(interface: u32) -> Self {
        Self {
            interface,
            index: 0,
        }
    }

    /// One bit of 16 for its interface, whose clock its time stamps are by; others may have the same.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << (self.interface % u16::BITS)
    }

    /// One number of 256 for it; few others have the same.
    #[inline]
    #[must_use]
    pub const fn short(self) -> u8 {
        (self.interface ^ self.index) as u8
    }

    /// The number of the interface that it was captured on.
    #[must_use]
    pub const fn interface(self) -> u32 {
        self.interface
    }

    /// Whether packets of one interface tell of several.
    #[must_use]
    pub const fn is_of_several(self) -> bool {
        self.index != 0
    }

    /// The kernel's number of the interface that it passed, where that is known beside the one that it was captured on.
    #[inline]
    #[must_use]
    pub const fn index(self) -> Option<u32> {
        match self.index {
            0 => None,
            index => Some(index),
        }
    }

    /// Where a packet with these octets was seen, captured on `interface`.
    #[inline]
    #[must_use]
    pub fn for_packet(interface: u32, link: LinkType, bytes: &[u8]) -> Self {
        let index = match link {
            LinkType::LinuxCooked2 => (bytes.get(4..8))
                .and_then(|octets| octets.try_into().ok())
                .map_or(0, u32::from_be_bytes),
            _ => 0,
        };
        Self {
            index,
            ..Self::new(interface)
        }
    }
}

/// Whether the packets of such a capture may have been seen on several interfaces, and do not say on which.
#[must_use]
pub const fn is_unclear(link: LinkType) -> bool {
    matches!(link, LinkType::LinuxCooked)
}

/// Data that comes again at another place later than [`WITHIN`] is so by the places' clocks, and was not sent again, if it is so
/// many packets at least, and one in so many of all data.
const APART: [u64; 2] = [16, 8];

/// What tells a packet from others, wherever it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64);

impl Identity {
    /// Of data, which its PSN tells from other data for long: notifications about a QP are all alike.
    const DATA: u64 = 1 << 63;

    const fn is_data(self) -> bool {
        self.0 & Self::DATA != 0
    }
}

#[cfg(test)]
impl Identity {
    /// One of a test.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// One look at a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// When, in nanoseconds since the epoch.
    pub at: u64,
    /// The frame's number.
    pub frame: u32,
    /// Where.
    pub place: Place,
    /// Whether it is marked CE.
    pub ce: bool,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    identity: u64,
    first: Look,
    /// When that came into the capture, by the capture's clock.
    captured: u64,
    /// Numbers of the places that have seen it, counted from 1; 0 for none.
    places: [u16; PLACES_EACH],
    /// The packet before it in its chain, by its number; packets count from 1.
    before: u64,
}

impl Record {
    /// Which of the places it is.
    fn place(&self, place: u16) -> Option<usize> {
        self.places.iter().position(|known| *known == place)
    }
}

/// A place.
#[derive(Debug)]
struct Known {
    place: Place,
    /// When the first packet was captured there, if that was so much later than the first of all that it was not looked at
    /// before; else 0.
    looked_at: u64,
    unit: Unit,
}

/// The packets of late, and where each was seen.
#[derive(Debug, Default)]
pub struct Sightings {
    seed: RandomState,
    places: Vec<Known>,
    numbers: HashMap<Place, u16, RandomState>,
    /// Whether there are more than are told apart.
    has_more: bool,
    /// When the first of all packets was captured.
    began: u64,
    /// The last packet of each chain, by its number; nothing before the first packet.
    chains: Vec<u64>,
    /// A ring: the nth packet is at place n.
    records: Vec<Record>,
    /// Packets so far.
    count: u64,
    /// Whether packets were looked for that had been forgotten.
    forgot: bool,
    /// Of notifications that may have been on their way to a place when it began, the least time between two.
    unclear: Option<u64>,
    /// Whether the way takes so long that they may.
    unsure: bool,
    /// Data seen, and how much of it had been seen at another place longer ago than [`WITHIN`].
    data: u64,
    long_ago: u64,
}

impl Sightings {
    /// Whether a packet came so long behind those of its time at other places that they had been forgotten: it counts once
    /// more where it was one of them.
    #[must_use]
    pub const fn forgot(&self) -> bool {
        self.forgot
    }

    /// Whether a place began later than others, and more than one of the notifications that came to it was on its way then: they
    /// count as new.
    #[must_use]
    pub const fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// How many packets have been remembered so far.
    #[must_use]
    pub const fn remembered(&self) -> u64 {
        self.count
    }

    /// Whether there are more places than are told apart.
    #[must_use]
    pub const fn has_more_places(&self) -> bool {
        self.has_more
    }

    /// Whether places see the same data so long after one another that it is taken for other data: their clocks are apart.
    #[must_use]
    pub const fn are_apart(&self) -> bool {
        let [least, one_in] = APART;
        self.long_ago >= least && self.long_ago > self.data / one_in
    }

    /// The identity of a notification: addresses, QP or flow, and content.
    #[must_use]
    pub fn notification(&self, gist: &Notification, frame: &Frame<'_>) -> Identity {
        let (port, payload) = (frame.datagram()).map_or((0, &[][..]), |datagram| {
            (datagram.source_port, datagram.payload)
        });
        self.message(gist, port, payload)
    }

    /// The same, of a message from that UDP port, with that payload.
    #[must_use]
    pub fn message(&self, gist: &Notification, port: u16, payload: &[u8]) -> Identity {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64((gist.kind as u64) << 32 | u64::from(port));
        for address in [
            Some(gist.notifier),
            Some(gist.destination),
            gist.subject.receiver(),
        ] {
            for word in address.as_ref().map_or([0; 2], words) {
                hasher.write_u64(word);
            }
        }
        let (_, qp) = gist.subject.qp().unzip();
        let label = match gist.subject {
            Subject::FlowLabel(label) => label,
            _ => 0,
        };
        hasher.write_u64(u64::from(qp.map_or(label, Qp::get)));
        hasher.write_u64(u64::from(gist.deepest_queue.unwrap_or(0)) << 8 | gist.hops as u64);
        hasher.write(payload.get(..TELLING).unwrap_or(payload));
        Identity(hasher.finish() & !Identity::DATA)
    }

    /// The identity of a packet from one address to another that cannot be read any further than that.
    #[must_use]
    pub fn octets(&self, source: IpAddr, destination: IpAddr, octets: &[u8]) -> Identity {
        let mut hasher = self.seed.build_hasher();
        for word in [source, destination].iter().flat_map(words) {
            hasher.write_u64(word);
        }
        hasher.write(octets.get(..TELLING).unwrap_or(octets));
        Identity(hasher.finish() & !Identity::DATA)
    }

    /// The identity of a data packet: flow, UDP source port, PSN, opcode and octets of UDP payload (a trace grows before that).
    #[inline]
    #[must_use]
    pub fn data(&self, data: &DataPacket<'_>, bth: &Bth<'_>, octets: usize) -> Identity {
        let mut hasher = self.seed.build_hasher();
        data.flow().hash(&mut hasher);
        // What is sent again on another path is another packet.
        hasher.write_u16(data.source_port);
        hasher.write_u64(
            u64::from(bth.psn()) << 32 | u64::from(bth.opcode().0) << 24 | octets as u64,
        );
        Identity(hasher.finish() | Identity::DATA)
    }

    /// Takes in that a packet was seen at a place. Returns its first sighting, where this is another one.
    pub fn see(&mut self, identity: Identity, look: Look) -> Option<Look> {
        self.see_captured(identity, look, look.at)
    }

    /// The same where the time is by another clock than the capture's, which is the same for all places: by that, the packet
    /// came in at `captured`.
    pub fn see_captured(&mut self, identity: Identity, look: Look, captured: u64) -> Option<Look> {
        if self.records.is_empty() {
            self.records.reserve_exact(KEPT);
            self.chains = vec![0; KEPT];
            self.began = captured;
        }
        let (place, looked_at) = self.number(&look, captured);
        let chain = identity.0 as usize % KEPT;
        let last = self.chains[chain];
        let (mut long_ago, mut alike) = (false, false);
        let (mut found, mut latest) = (None, None);
        let mut number = last;
        let mut left = LOOKED_AT;
        while left > 0 {
            left -= 1;
            let Some(record) = self.record(number) else {
                break;
            };
            if record.identity == identity.0 {
                alike = true;
                // What this place saw later than all before it has come after them here, too.
                if record.place(place).is_some() {
                    break;
                }
                long_ago |= record.captured.abs_diff(captured) > WITHIN;
                if record.captured.saturating_add(WITHIN) < captured {
                    break;
                }
                // Data is no other than itself, whenever this place was looked at.
                if record.captured < looked_at && !identity.is_data() {
                    let Some((_, its)) = latest else {
                        latest = Some((number, record.captured));
                        number = record.before;
                        continue;
                    };
                    let apart = its.saturating_sub(record.captured);
                    if captured.saturating_sub(its).saturating_mul(NEARER) > apart {
                        latest = None;
                        self.unclear = Some(self.unclear.map_or(apart, |least| least.min(apart)));
                    }
                    break;
                }
                // Another place may be told of far ahead of this one.
                if record.captured <= captured.saturating_add(WITHIN) {
                    found = Some(number);
                }
            }
            number = record.before;
        }
        let several = self.places.len() > 1;
        // Where none is alike, it is but in the same chain as many that are.
        self.forgot |= several && alike && left == 0;
        self.data += u64::from(identity.is_data());
        let found = found.or(latest.map(|(number, _)| number));
        if let Some(number) = found {
            let known = &mut self.places[usize::from(place) - 1];
            if identity.is_data() {
                // So it was looked at before.
                let before = self.records[number as usize % KEPT].captured;
                known.looked_at = known.looked_at.min(before);
                let way = captured.saturating_sub(before);
                self.unsure |=
                    (self.unclear).is_some_and(|least| way.saturating_mul(NEARER) > least);
            }
            let record = &mut self.records[number as usize % KEPT];
            let free = record.place(0).unwrap_or(PLACES_EACH - 1);
            record.places[free] = place;
            let first = record.first;
            record.first.ce |= look.ce;
            return Some(first);
        }
        self.forgot |= several && self.has_forgotten(captured);
        self.long_ago += u64::from(long_ago && identity.is_data());
        let mut places = [0; PLACES_EACH];
        places[0] = place;
        let record = Record {
            identity: identity.0,
            first: look,
            captured,
            places,
            before: last,
        };
        self.count += 1;
        self.chains[chain] = self.count;
        // The first place of the ring is that of the packets whose numbers are its length's multiples.
        if self.records.len() < KEPT {
            if self.records.is_empty() {
                self.records.push(record);
            }
            self.records.push(record);
        } else {
            self.records[self.count as usize % KEPT] = record;
        }
        None
    }

    /// Takes in where and when a packet was seen that need not be recognised elsewhere: it tells of the place's time stamps.
    #[inline]
    pub fn pass(&mut self, look: &Look) {
        self.number(look, look.at);
    }

    /// Whether packets of that time are remembered no longer, where they come in the order of time.
    fn has_forgotten(&self, at: u64) -> bool {
        let oldest = self.count.checked_sub(KEPT as u64 - 1);
        oldest
            .and_then(|number| self.record(number))
            .is_some_and(|record| record.captured > at)
    }

    /// The packet of that number, if it is remembered.
    fn record(&self, number: u64) -> Option<&Record> {
        let kept = number > 0 && self.count - number < KEPT as u64;
        kept.then(|| self.records.get(number as usize % KEPT))?
    }

    /// The number of a place where a packet was captured then, and since when it is looked at, if that is later than other
    /// places.
    #[inline]
    fn number(&mut self, look: &Look, captured: u64) -> (u16, u64) {
        let number = match self.numbers.get(&look.place) {
            Some(number) => *number,
            None => self.new_place(look.place, captured),
        };
        let known = &mut self.places[usize::from(number) - 1];
        known.unit.add(look.at);
        (number, known.looked_at)
    }

    #[cold]
    fn new_place(&mut self, place: Place, captured: u64) -> u16 {
        if self.places.len() == MOST_PLACES {
            self.has_more = true;
            return MOST_PLACES as u16;
        }
        let is_late = captured > self.began.saturating_add(LATE);
        self.places.push(Known {
            place,
            looked_at: if is_late { captured } else { 0 },
            unit: Unit::default(),
        });
        let number = self.places.len() as u16;
        self.numbers.insert(place, number);
        number
    }

    /// What the time stamps of an interface are multiples of.
    #[must_use]
    pub fn unit(&self, interface: u32) -> Unit {
        let mut known = self.places.iter();
        let known = known.find(|known| known.place.interface() == interface);
        known.map_or_else(Unit::default, |known| known.unit)
    }

    /// The finest and the coarsest unit of the time stamps of places with these [bits](Place::bit), in nanoseconds.
    #[must_use]
    pub fn units(&self, places: u16) -> [u64; 2] {
        let known = self.places.iter();
        let known = known.filter(|known| known.place.bit() & places != 0);
        let units = known.map(|known| known.unit.get());
        units.fold([u64::MAX, 0], |[finest, coarsest], unit| {
            [finest.min(unit), coarsest.max(unit)]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MICROSECOND: u64 = 1_000;

    fn see(sightings: &mut Sightings, identity: u64, interface: u32, at: u64) -> bool {
        let look = Look {
            at,
            frame: 1,
            place: Place::new(interface),
            ce: false,
        };
        sightings.see(Identity(identity), look).is_none()
    }

    #[test]
    fn a_place_that_is_looked_at_later_has_not_seen_what_came_before() {
        // Each passes one place so much before the other, so often; either is looked at from the 400th on. Of those that are on
        // their way longer than to the next one, nothing tells which come to it then.
        let ways = [
            (0, 8, 50, 0),
            (1, 8, 50, 0),
            (0, 3_000, 400, 0),
            (1, 3_000, 400, 7),
        ];
        for (late, way, every, twice) in ways {
            let mut all = Vec::new();
            for n in 0..1_000 {
                let at = 1_000_000_000 + n * every * MICROSECOND;
                let then = at + way * MICROSECOND;
                all.extend([(at, 0, 0, n), (then, 1, 0, n)]);
                // Data goes the other way.
                all.extend([(at, 1, Identity::DATA, n), (then, 0, Identity::DATA, n)]);
            }
            all.retain(|(at, place, ..)| {
                *place != late || *at >= 1_000_000_000 + 400 * every * MICROSECOND
            });
            all.sort_unstable();
            let mut sightings = Sightings::default();
            let mut packets = 0;
            for (at, place, data, n) in all {
                let look = Look {
                    at,
                    frame: n as u32,
                    place: Place::new(place),
                    ce: false,
                };
                let earlier = sightings.see(Identity(data + n * data.min(1)), look);
                match earlier.filter(|_| data == 0) {
                    None => packets += u64::from(data == 0),
                    Some(first) if way < every => {
                        assert_eq!((place, first.frame), (1, n as u32));
                    }
                    Some(_) => {}
                }
            }
            let unsure = sightings.is_unsure();
            assert_eq!(
                (packets, unsure),
                (1_000 + twice, way > every),
                "{late} {way}"
            );
        }
    }

    #[test]
    fn what_is_not_looked_for_elsewhere_tells_of_time_stamps_too() {
        let look = |at| Look {
            at,
            frame: 1,
            place: Place::new(0),
            ce: false,
        };
        let mut sightings = Sightings::default();
        for n in 1..10 {
            sightings.see(Identity(n), look(n * 16 * MICROSECOND));
        }
        assert_eq!(sightings.unit(0).get(), 16 * MICROSECOND);
        sightings.pass(&look(1_000 * MICROSECOND + 1));
        assert_eq!(sightings.unit(0).get(), 1);
    }

    #[test]
    fn data_that_comes_long_after_itself_tells_of_clocks_apart() {
        // Whether each packet passes both places, and how much later by the clock of the second.
        for (both, later, apart) in [
            (true, 8 * MICROSECOND, false),
            (true, WITHIN + MICROSECOND, true),
            (true, 1_000 * WITHIN, true),
            (false, 1_000 * WITHIN, false),
        ] {
            for kind in [0, Identity::DATA] {
                let mut sightings = Sightings::default();
                let mut all = Vec::new();
                for n in 0..1_000 {
                    let at = 1_000_000_000 + n * 50 * MICROSECOND;
                    all.push((at, 0, n));
                    // Else one in 20 is sent again, on the other path.
                    if both || n % 20 == 0 {
                        all.push((at + later, 1, n));
                    }
                }
                all.sort_unstable();
                for (at, place, n) in all {
                    see(&mut sightings, n | kind, place, at);
                }
                assert_eq!(sightings.are_apart(), apart && kind > 0, "{both} {later}");
            }
        }
    }

    #[test]
    fn as_many_count_however_long_each_takes() {
        // Each 400 µs on average at one place, and 20 µs to a millisecond later at another, in the same order or not.
        for in_order in [true, false] {
            let mut random = 7u64;
            let mut next = |of: u64| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (random >> 33) % of
            };
            let (mut at, mut last) = (1_000_000_000, 0);
            let mut events = Vec::new();
            for _ in 0..2_000 {
                at += next(800 * MICROSECOND);
                let mut there = at + 20 * MICROSECOND + next(980 * MICROSECOND);
                if in_order {
                    there = there.max(last + 1);
                    last = there;
                }
                events.extend([(at, 0), (there, 1)]);
            }
            events.sort_unstable();
            let mut sightings = Sightings::default();
            let new = events
                .iter()
                .filter(|(at, place)| see(&mut sightings, 7, *place, *at));
            assert_eq!(new.count(), 2_000, "{in_order}");
        }
    }

    #[test]
    fn any_number_of_places_is_told_apart() {
        let mut sightings = Sightings::default();
        let mut packets = 0;
        for n in 0..300 {
            // Each by two of 300 places.
            for place in [n, (n + 7) % 300] {
                let at = 1_000_000_000 + u64::from(n) * 50 * MICROSECOND + u64::from(place);
                packets += u64::from(see(&mut sightings, u64::from(n), place, at));
            }
        }
        assert_eq!((packets, sightings.has_more_places()), (300, false));
        for place in 300..2_000 {
            see(&mut sightings, 8, place, 2_000_000_000);
        }
        assert!(sightings.has_more_places());
    }

    #[test]
    fn copies_at_one_place_are_packets_and_at_another_the_same_ones() {
        let mut sightings = Sightings::default();
        let at = 1_000_000_000;
        // Two within 50 µs, and both again on two other interfaces, in whatever order.
        assert!(see(&mut sightings, 7, 0, at));
        assert!(!see(&mut sightings, 7, 1, at + MICROSECOND));
        assert!(see(&mut sightings, 7, 0, at + 50 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 2, at + 51 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 2, at + 52 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 1, at + 53 * MICROSECOND));
        assert!(see(&mut sightings, 7, 1, at + 54 * MICROSECOND), "a third");
        assert!(see(&mut sightings, 8, 1, at + 54 * MICROSECOND), "another");
        // Too late to be the same, and clocks that differ a little.
        assert!(see(&mut sightings, 9, 0, at));
        assert!(see(&mut sightings, 9, 1, at + WITHIN + 1));
        assert!(see(&mut sightings, 10, 0, at));
        assert!(!see(&mut sightings, 10, 1, at - MICROSECOND));
    }

    #[test]
    fn a_place_that_is_told_of_long_after_another_sees_the_same_packets() {
        let mut sightings = Sightings::default();
        let mut new = 0;
        for place in [0, 1] {
            for n in 0..1000 {
                let at = 1_000_000_000 + n * 50 * MICROSECOND;
                let at = at + u64::from(place) * 30 * MICROSECOND;
                new += u64::from(see(&mut sightings, 7, place, at));
            }
        }
        assert_eq!(new, 1000);
    }

    #[test]
    fn what_had_been_forgotten_is_known_to_be() {
        let run = |packets: u64, identities: u64, order: fn(u64, u64) -> (u32, u64)| {
            let mut sightings = Sightings::default();
            for n in 0..2 * packets {
                let (place, number) = order(n, packets);
                see(&mut sightings, number % identities, place, 1_000 + number);
            }
            sightings.forgot()
        };
        let kept = KEPT as u64;
        let behind = |n, packets| ((n / packets) as u32, n % packets);
        let in_turn = |n, _| ((n % 2) as u32, n / 2);
        assert!(run(kept + 10, u64::MAX, behind));
        assert!(run(LOOKED_AT as u64 + 10, 1, behind));
        assert!(!run(kept - 10, u64::MAX, behind));
        assert!(!run(LOOKED_AT as u64 - 10, 1, behind));
        assert!(!run(2 * kept, u64::MAX, in_turn));
        assert!(!run(2 * kept, 1, in_turn));
        // Another that shares the chain of many that are alike.
        let mut sightings = Sightings::default();
        see(&mut sightings, 2, 1, 1_000);
        for n in 0..2 * LOOKED_AT as u64 {
            see(&mut sightings, 1, 0, 1_000 + n);
        }
        see(&mut sightings, 1 + kept, 1, 3_000);
        assert!(!sightings.forgot());
        // At one place, there is nothing to forget.
        assert!(!run(kept + 10, u64::MAX, |n, packets| (0, n % packets)));
    }

    #[test]
    fn one_that_a_place_has_missed_does_not_shift_the_others() {
        let mut sightings = Sightings::default();
        let mut new = 0;
        for n in 0..1000 {
            let at = 1_000_000_000 + n * 50 * MICROSECOND;
            new += u64::from(see(&mut sightings, 7, 0, at));
            if n % 10 != 0 {
                new += u64::from(see(&mut sightings, 7, 1, at + MICROSECOND));
            }
        }
        assert_eq!(new, 1000);
        // The way moves to the second place alone.
        let at = 2_000_000_000;
        assert!((0..100).all(|n| see(&mut sightings, 7, 1, at + n * 50 * MICROSECOND)));
    }

    #[test]
    fn a_mark_that_was_seen_once_is_remembered() {
        let mut sightings = Sightings::default();
        let see = |sightings: &mut Sightings, number, ce| {
            let look = Look {
                at: 1,
                frame: 1,
                place: Place::new(number),
                ce,
            };
            sightings.see(Identity(1), look).map(|first| first.ce)
        };
        assert_eq!(see(&mut sightings, 0, false), None);
        assert_eq!(see(&mut sightings, 1, true), Some(false));
        assert_eq!(see(&mut sightings, 2, true), Some(true));
    }

    #[test]
    fn the_interface_of_a_cooked_capture_is_a_place() {
        let mut header = [0; 20];
        let before = Place::for_packet(3, LinkType::LinuxCooked2, &header);
        header[7] = 5;
        assert_ne!(
            before,
            Place::for_packet(3, LinkType::LinuxCooked2, &header)
        );
        assert_eq!(
            Place::for_packet(3, LinkType::Ethernet, &header),
            Place::for_packet(3, LinkType::Ethernet, &[])
        );
        assert_eq!(before, Place::for_packet(3, LinkType::LinuxCooked2, &[1]));
    }

    proptest! {
        /// However places see packets of few identities, as many count as the busiest place has seen of each, where all come
        /// within the time.
        #[test]
        fn as_many_count_as_the_busiest_place_has_seen(
            seen in proptest::collection::vec((0_u64..4, 0_u32..70), 0..200),
        ) {
            let mut sightings = Sightings::default();
            let mut counts = std::collections::BTreeMap::<(u64, u32), u64>::new();
            let mut new = [0; 4];
            for (identity, interface) in seen {
                new[identity as usize] += u64::from(see(&mut sightings, identity, interface % 16, 5));
                *counts.entry((identity, interface % 16)).or_default() += 1;
            }
            for (identity, new) in new.into_iter().enumerate() {
                let count = counts.iter().filter(|((count, _), _)| *count == identity as u64);
                prop_assert_eq!(new, count.map(|(_, count)| *count).max().unwrap_or(0));
            }
        }

        #[test]
        fn any_number_of_packets_is_taken(step in 0_u64..2_000_000, places in 1_u32..90) {
            let mut sightings = Sightings::default();
            for n in 0..(KEPT as u64 + 1000) {
                see(&mut sightings, n % 5000, n as u32 % places, n * step);
            }
            prop_assert!(sightings.records.len() == KEPT || sightings.count < KEPT as u64);
        }
    }
}
