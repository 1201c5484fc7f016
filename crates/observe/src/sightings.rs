//! Recognition of packets captured at several capture points, as on both ports of a bridge, on
//! every interface of `any`, or at the vantage points of a file, so that each counts once.
//!
//! Copies of a packet have the same [identity](Sightings::notification): the fields that no node on
//! the way changes. Two CNPs about a QP have the same identity too, so a sighting is matched with
//! the oldest packet of that identity, at most [`WITHIN`] away, that this capture point has not
//! seen yet; without one it is a new packet. So n copies at one capture point count as n, and n at
//! each of two count as n too. Packets from before a later capture point started are taken to have
//! passed it uncaptured, except the latest of them, if it is much nearer in time (`DISTANCE_RATIO`)
//! than such packets are to each other.

use crate::data::{DataPacket, words};
use crate::unit::Unit;
use core::hash::{BuildHasher, Hash, Hasher};
use fcn_wire::bth::Bth;
use fcn_wire::{Frame, LinkType, Notification, Qp, Subject};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::IpAddr;

/// Maximum time between sightings of the same packet at two capture points, in nanoseconds
/// \[choice\]: propagation over 1,000 km and a deep queue.
pub const WITHIN: u64 = 10_000_000;
/// Number of packets remembered: at ten million per second, those of 6 ms.
pub const KEPT: usize = 1 << 16;
/// Maximum number of packets searched for a match.
const MAX_SEARCHED: usize = 1024;
/// A capture point whose first packet was captured this much later than the first of all is taken
/// to have started late, in nanoseconds: capture points are mostly nearer to each other than that.
const LATE: u64 = 1_000_000;
/// Required ratio of the distance between such packets to the distance from the latest of them.
const DISTANCE_RATIO: u64 = 4;
/// Maximum number of capture points distinguished. Further ones count as the last.
pub const MAX_CAPTURE_POINTS: usize = 1_024;
/// Maximum number of capture points remembered per packet (in and out of eight switches); further
/// ones overwrite the last.
const MAX_CAPTURE_POINTS_PER_PACKET: usize = 16;
/// Octets of a message by which it is identified: those of a CNP, or of a quoted packet up to its
/// PSN.
const IDENTIFYING_OCTETS: usize = 128;

/// A capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapturePoint {
    /// Number of the interface that it was captured on.
    interface: u32,
    /// The kernel's index of the interface that it passed, if captured on all interfaces.
    index: u32,
}

impl CapturePoint {
    /// Returns the capture point of a capture's interface.
    #[must_use]
    pub const fn new(interface: u32) -> Self {
        Self {
            interface,
            index: 0,
        }
    }

    /// Returns one bit of 16 for its interface, whose clock its time stamps are by; other
    /// interfaces may share it.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << (self.interface % u16::BITS)
    }

    /// Returns a number of 8 bits for it; few other capture points share it.
    #[inline]
    #[must_use]
    pub const fn short(self) -> u8 {
        (self.interface ^ self.index) as u8
    }

    /// Returns the number of the interface that it was captured on.
    #[must_use]
    pub const fn interface(self) -> u32 {
        self.interface
    }

    /// Returns true if one interface captures the packets of several.
    #[must_use]
    pub const fn captures_several_interfaces(self) -> bool {
        self.index != 0
    }

    /// Returns the kernel's index of the interface that it passed, if recorded in addition to the
    /// one that it was captured on.
    #[inline]
    #[must_use]
    pub const fn index(self) -> Option<u32> {
        match self.index {
            0 => None,
            index => Some(index),
        }
    }

    /// Returns the capture point of a packet with these octets, captured on `interface`.
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

/// Returns true if captures of that link type may contain packets of several interfaces without
/// recording which.
#[must_use]
pub const fn hides_interface(link: LinkType) -> bool {
    matches!(link, LinkType::LinuxCooked)
}

/// Data captured again at another capture point later than [`WITHIN`] is attributed to clocks that
/// differ, not to retransmission, if there are at least 16 such packets and they are more than one
/// in eight of all data.
const APART: [u64; 2] = [16, 8];

/// A hash that identifies a packet at all capture points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64);

impl Identity {
    /// Flag of data, whose PSN distinguishes it for a long time: notifications about a QP are all
    /// alike.
    const DATA: u64 = 1 << 63;

    const fn is_data(self) -> bool {
        self.0 & Self::DATA != 0
    }
}

#[cfg(test)]
impl Identity {
    /// Returns an identity for tests.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// One sighting of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sighting {
    /// Time in nanoseconds since the epoch.
    pub at: u64,
    /// Frame number.
    pub frame: u32,
    /// Capture point.
    pub point: CapturePoint,
    /// True if it is marked CE.
    pub ce: bool,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    identity: u64,
    first: Sighting,
    /// Time of capture of the first sighting, by the capture's clock.
    captured: u64,
    /// Numbers of the capture points that have seen it, counted from 1; 0 for none.
    places: [u16; MAX_CAPTURE_POINTS_PER_PACKET],
    /// Number of the previous packet in its chain; packets count from 1.
    before: u64,
}

impl Record {
    /// Returns the index of a capture point among those of this packet.
    fn place(&self, place: u16) -> Option<usize> {
        self.places.iter().position(|known| *known == place)
    }
}

/// A capture point and its state.
#[derive(Debug)]
struct CapturePointState {
    point: CapturePoint,
    /// Time of its first packet, if that is so much later than the first packet of all that it is
    /// taken to have started late; else 0.
    started_late_at: u64,
    unit: Unit,
}

/// The recent packets, and the capture points of each.
#[derive(Debug, Default)]
pub struct Sightings {
    seed: RandomState,
    places: Vec<CapturePointState>,
    numbers: HashMap<CapturePoint, u16, RandomState>,
    /// True if there are more capture points than are distinguished.
    has_more: bool,
    /// Time of capture of the first packet of all.
    began: u64,
    /// Number of the last packet of each chain; empty before the first packet.
    chains: Vec<u64>,
    /// A ring: the nth packet is at index n.
    records: Vec<Record>,
    /// Number of packets so far.
    count: u64,
    /// True if packets were looked for that had been forgotten.
    forgot: bool,
    /// Least time between two notifications that may both have been on their way to a capture point
    /// when it started.
    unclear: Option<u64>,
    /// True if the way takes so long that they may have been.
    unsure: bool,
    /// Data packets captured, and those of them captured at another capture point more than
    /// [`WITHIN`] before.
    data: u64,
    long_ago: u64,
}

impl Sightings {
    /// Returns true if a packet came so much later than contemporary ones of other capture points
    /// that these had been forgotten: it counts again if it was a copy of one of them.
    #[must_use]
    pub const fn forgot(&self) -> bool {
        self.forgot
    }

    /// Returns true if a capture point started later than others, and more than one of the
    /// notifications that came to it was on its way then: they count as new.
    #[must_use]
    pub const fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Returns the number of packets remembered so far.
    #[must_use]
    pub const fn remembered(&self) -> u64 {
        self.count
    }

    /// Returns true if there are more capture points than are distinguished.
    #[must_use]
    pub const fn has_more_places(&self) -> bool {
        self.has_more
    }

    /// Returns true if capture points see the same data so long after one another that it is taken
    /// for other data: their clocks differ.
    #[must_use]
    pub const fn clocks_differ(&self) -> bool {
        let [least, one_in] = APART;
        self.long_ago >= least && self.long_ago > self.data / one_in
    }

    /// Returns the identity of a notification: addresses, QP or flow, and content.
    #[must_use]
    pub fn notification(&self, gist: &Notification, frame: &Frame<'_>) -> Identity {
        let (port, payload) = (frame.datagram()).map_or((0, &[][..]), |datagram| {
            (datagram.source_port, datagram.payload)
        });
        self.message(gist, port, payload)
    }

    /// Like [`notification`](Self::notification), for a message from that UDP port with that
    /// payload.
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
        hasher.write_u64(
            u64::from(gist.deepest_queue.unwrap_or(0)) << 8 | u64::from(gist.hops.unwrap_or(0)),
        );
        hasher.write(payload.get(..IDENTIFYING_OCTETS).unwrap_or(payload));
        Identity(hasher.finish() & !Identity::DATA)
    }

    /// Returns the identity of a packet between two addresses whose content is not parsed.
    #[must_use]
    pub fn octets(&self, source: IpAddr, destination: IpAddr, octets: &[u8]) -> Identity {
        let mut hasher = self.seed.build_hasher();
        for word in [source, destination].iter().flat_map(words) {
            hasher.write_u64(word);
        }
        hasher.write(octets.get(..IDENTIFYING_OCTETS).unwrap_or(octets));
        Identity(hasher.finish() & !Identity::DATA)
    }

    /// Returns the identity of a data packet: flow, UDP source port, PSN, opcode and octets of UDP
    /// payload (excluding a trace, which grows, in front of it).
    #[inline]
    #[must_use]
    pub fn data(&self, data: &DataPacket<'_>, bth: &Bth<'_>, octets: usize) -> Identity {
        let mut hasher = self.seed.build_hasher();
        data.flow().hash(&mut hasher);
        // A retransmission on another path is another packet.
        hasher.write_u16(data.source_port);
        hasher.write_u64(
            u64::from(bth.psn()) << 32 | u64::from(bth.opcode().0) << 24 | octets as u64,
        );
        Identity(hasher.finish() | Identity::DATA)
    }

    /// Records a sighting. Returns the packet's first sighting, if this is another one.
    pub fn see(&mut self, identity: Identity, sighting: Sighting) -> Option<Sighting> {
        self.see_captured(identity, sighting, sighting.at)
    }

    /// Like [`see`](Self::see), if the time stamp is by another clock than the capture's, which is
    /// common to all capture points: `captured` is the time by that clock.
    pub fn see_captured(
        &mut self,
        identity: Identity,
        sighting: Sighting,
        captured: u64,
    ) -> Option<Sighting> {
        if self.records.is_empty() {
            self.records.reserve_exact(KEPT);
            self.chains = vec![0; KEPT];
            self.began = captured;
        }
        let (place, looked_at) = self.number(&sighting, captured);
        let chain = identity.0 as usize % KEPT;
        let last = self.chains[chain];
        let (mut long_ago, mut alike) = (false, false);
        let (mut found, mut latest) = (None, None);
        let mut number = last;
        let mut left = MAX_SEARCHED;
        while left > 0 {
            left -= 1;
            let Some(record) = self.record(number) else {
                break;
            };
            if record.identity == identity.0 {
                alike = true;
                // This capture point has seen it: all earlier ones came here before it, too.
                if record.place(place).is_some() {
                    break;
                }
                long_ago |= record.captured.abs_diff(captured) > WITHIN;
                if record.captured.saturating_add(WITHIN) < captured {
                    break;
                }
                // Data is unambiguous, whenever this capture point started.
                if record.captured < looked_at && !identity.is_data() {
                    let Some((_, its)) = latest else {
                        latest = Some((number, record.captured));
                        number = record.before;
                        continue;
                    };
                    let apart = its.saturating_sub(record.captured);
                    if captured.saturating_sub(its).saturating_mul(DISTANCE_RATIO) > apart {
                        latest = None;
                        self.unclear = Some(self.unclear.map_or(apart, |least| least.min(apart)));
                    }
                    break;
                }
                // Another capture point may be read far ahead of this one.
                if record.captured <= captured.saturating_add(WITHIN) {
                    found = Some(number);
                }
            }
            number = record.before;
        }
        let several = self.places.len() > 1;
        // If none has this identity, it only shares its chain with many others.
        self.forgot |= several && alike && left == 0;
        self.data += u64::from(identity.is_data());
        let found = found.or(latest.map(|(number, _)| number));
        if let Some(number) = found {
            let known = &mut self.places[usize::from(place) - 1];
            if identity.is_data() {
                // So it had started by then.
                let before = self.records[number as usize % KEPT].captured;
                known.started_late_at = known.started_late_at.min(before);
                let way = captured.saturating_sub(before);
                self.unsure |=
                    (self.unclear).is_some_and(|least| way.saturating_mul(DISTANCE_RATIO) > least);
            }
            let record = &mut self.records[number as usize % KEPT];
            let free = record.place(0).unwrap_or(MAX_CAPTURE_POINTS_PER_PACKET - 1);
            record.places[free] = place;
            let first = record.first;
            record.first.ce |= sighting.ce;
            return Some(first);
        }
        self.forgot |= several && self.has_forgotten(captured);
        self.long_ago += u64::from(long_ago && identity.is_data());
        let mut places = [0; MAX_CAPTURE_POINTS_PER_PACKET];
        places[0] = place;
        let record = Record {
            identity: identity.0,
            first: sighting,
            captured,
            places,
            before: last,
        };
        self.count += 1;
        self.chains[chain] = self.count;
        // Index 0 of the ring belongs to the packets whose numbers are multiples of its length.
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

    /// Records the time stamp of a packet that need not be recognised elsewhere.
    #[inline]
    pub fn record_time_stamp(&mut self, sighting: &Sighting) {
        self.number(sighting, sighting.at);
    }

    /// Returns true if packets of that time are forgotten, given that they come in the order of
    /// time.
    fn has_forgotten(&self, at: u64) -> bool {
        let oldest = self.count.checked_sub(KEPT as u64 - 1);
        oldest
            .and_then(|number| self.record(number))
            .is_some_and(|record| record.captured > at)
    }

    /// Returns the packet of that number, if it is remembered.
    fn record(&self, number: u64) -> Option<&Record> {
        let kept = number > 0 && self.count - number < KEPT as u64;
        kept.then(|| self.records.get(number as usize % KEPT))?
    }

    /// Returns the number of the capture point, and the time at which it started if that is later
    /// than others, else 0.
    #[inline]
    fn number(&mut self, sighting: &Sighting, captured: u64) -> (u16, u64) {
        let number = match self.numbers.get(&sighting.point) {
            Some(number) => *number,
            None => self.new_place(sighting.point, captured),
        };
        let known = &mut self.places[usize::from(number) - 1];
        known.unit.add(sighting.at);
        (number, known.started_late_at)
    }

    #[cold]
    fn new_place(&mut self, point: CapturePoint, captured: u64) -> u16 {
        if self.places.len() == MAX_CAPTURE_POINTS {
            self.has_more = true;
            return MAX_CAPTURE_POINTS as u16;
        }
        let is_late = captured > self.began.saturating_add(LATE);
        self.places.push(CapturePointState {
            point,
            started_late_at: if is_late { captured } else { 0 },
            unit: Unit::default(),
        });
        let number = self.places.len() as u16;
        self.numbers.insert(point, number);
        number
    }

    /// Returns the unit of the time stamps of an interface.
    #[must_use]
    pub fn unit(&self, interface: u32) -> Unit {
        let mut known = self.places.iter();
        let known = known.find(|known| known.point.interface() == interface);
        known.map_or_else(Unit::default, |known| known.unit)
    }

    /// Returns the finest and the coarsest unit of the time stamps of capture points with these
    /// [bits](Place::bit), in nanoseconds.
    #[must_use]
    pub fn units(&self, places: u16) -> [u64; 2] {
        let known = self.places.iter();
        let known = known.filter(|known| known.point.bit() & places != 0);
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
        let sighting = Sighting {
            at,
            frame: 1,
            point: CapturePoint::new(interface),
            ce: false,
        };
        sightings.see(Identity(identity), sighting).is_none()
    }

    #[test]
    fn a_late_capture_point_missed_earlier_packets() {
        // Each packet passes one capture point `way` before the other, one every `every`; one of
        // the two starts at the 400th. If packets are on their way for longer than the time between
        // them, nothing tells which ones come to it then.
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
                // Data travels in the opposite direction.
                all.extend([(at, 1, Identity::DATA, n), (then, 0, Identity::DATA, n)]);
            }
            all.retain(|(at, place, ..)| {
                *place != late || *at >= 1_000_000_000 + 400 * every * MICROSECOND
            });
            all.sort_unstable();
            let mut sightings = Sightings::default();
            let mut packets = 0;
            for (at, place, data, n) in all {
                let sighting = Sighting {
                    at,
                    frame: n as u32,
                    point: CapturePoint::new(place),
                    ce: false,
                };
                let earlier = sightings.see(Identity(data + n * data.min(1)), sighting);
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
    fn packets_that_are_not_watched_count_for_the_unit() {
        let sighting = |at| Sighting {
            at,
            frame: 1,
            point: CapturePoint::new(0),
            ce: false,
        };
        let mut sightings = Sightings::default();
        for n in 1..10 {
            sightings.see(Identity(n), sighting(n * 16 * MICROSECOND));
        }
        assert_eq!(sightings.unit(0).get(), 16 * MICROSECOND);
        sightings.record_time_stamp(&sighting(1_000 * MICROSECOND + 1));
        assert_eq!(sightings.unit(0).get(), 1);
    }

    #[test]
    fn data_repeated_late_shows_that_clocks_differ() {
        // True if each packet passes both capture points, and its delay by the clock of the second.
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
                    // Otherwise one in 20 is retransmitted on the other path.
                    if both || n % 20 == 0 {
                        all.push((at + later, 1, n));
                    }
                }
                all.sort_unstable();
                for (at, place, n) in all {
                    see(&mut sightings, n | kind, place, at);
                }
                assert_eq!(
                    sightings.clocks_differ(),
                    apart && kind > 0,
                    "{both} {later}"
                );
            }
        }
    }

    #[test]
    fn delays_do_not_change_the_count() {
        // One every 400 µs on average at one capture point, and 20 µs to 1 ms later at another, in
        // order or not.
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
    fn many_capture_points_are_distinguished() {
        let mut sightings = Sightings::default();
        let mut packets = 0;
        for n in 0..300 {
            // Each at two of 300 capture points.
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
    fn copies_at_one_capture_point_are_packets_and_elsewhere_duplicates() {
        let mut sightings = Sightings::default();
        let at = 1_000_000_000;
        // Two within 50 µs, and both again on two other interfaces, in any order.
        assert!(see(&mut sightings, 7, 0, at));
        assert!(!see(&mut sightings, 7, 1, at + MICROSECOND));
        assert!(see(&mut sightings, 7, 0, at + 50 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 2, at + 51 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 2, at + 52 * MICROSECOND));
        assert!(!see(&mut sightings, 7, 1, at + 53 * MICROSECOND));
        assert!(see(&mut sightings, 7, 1, at + 54 * MICROSECOND), "a third");
        assert!(see(&mut sightings, 8, 1, at + 54 * MICROSECOND), "another");
        // Too late to be the same, and clocks that differ slightly.
        assert!(see(&mut sightings, 9, 0, at));
        assert!(see(&mut sightings, 9, 1, at + WITHIN + 1));
        assert!(see(&mut sightings, 10, 0, at));
        assert!(!see(&mut sightings, 10, 1, at - MICROSECOND));
    }

    #[test]
    fn capture_points_read_one_after_another_match() {
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
    fn forgotten_packets_are_reported() {
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
        assert!(run(MAX_SEARCHED as u64 + 10, 1, behind));
        assert!(!run(kept - 10, u64::MAX, behind));
        assert!(!run(MAX_SEARCHED as u64 - 10, 1, behind));
        assert!(!run(2 * kept, u64::MAX, in_turn));
        assert!(!run(2 * kept, 1, in_turn));
        // A different packet in the same chain as many identical ones.
        let mut sightings = Sightings::default();
        see(&mut sightings, 2, 1, 1_000);
        for n in 0..2 * MAX_SEARCHED as u64 {
            see(&mut sightings, 1, 0, 1_000 + n);
        }
        see(&mut sightings, 1 + kept, 1, 3_000);
        assert!(!sightings.forgot());
        // With one capture point, nothing is forgotten.
        assert!(!run(kept + 10, u64::MAX, |n, packets| (0, n % packets)));
    }

    #[test]
    fn a_missed_packet_does_not_shift_the_others() {
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
        // The path moves to the second capture point only.
        let at = 2_000_000_000;
        assert!((0..100).all(|n| see(&mut sightings, 7, 1, at + n * 50 * MICROSECOND)));
    }

    #[test]
    fn a_mark_is_remembered() {
        let mut sightings = Sightings::default();
        let see = |sightings: &mut Sightings, number, ce| {
            let sighting = Sighting {
                at: 1,
                frame: 1,
                point: CapturePoint::new(number),
                ce,
            };
            sightings.see(Identity(1), sighting).map(|first| first.ce)
        };
        assert_eq!(see(&mut sightings, 0, false), None);
        assert_eq!(see(&mut sightings, 1, true), Some(false));
        assert_eq!(see(&mut sightings, 2, true), Some(true));
    }

    #[test]
    fn the_interface_of_a_cooked_capture_is_a_capture_point() {
        let mut header = [0; 20];
        let before = CapturePoint::for_packet(3, LinkType::LinuxCooked2, &header);
        header[7] = 5;
        assert_ne!(
            before,
            CapturePoint::for_packet(3, LinkType::LinuxCooked2, &header)
        );
        assert_eq!(
            CapturePoint::for_packet(3, LinkType::Ethernet, &header),
            CapturePoint::for_packet(3, LinkType::Ethernet, &[])
        );
        assert_eq!(
            before,
            CapturePoint::for_packet(3, LinkType::LinuxCooked2, &[1])
        );
    }

    proptest! {
        /// If all sightings are within the time limit, the count of each identity is that of the
        /// busiest capture point, in any order.
        #[test]
        fn the_count_is_that_of_the_busiest_capture_point(
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
        fn any_number_of_packets_is_accepted(step in 0_u64..2_000_000, places in 1_u32..90) {
            let mut sightings = Sightings::default();
            for n in 0..(KEPT as u64 + 1000) {
                see(&mut sightings, n % 5000, n as u32 % places, n * step);
            }
            prop_assert!(sightings.records.len() == KEPT || sightings.count < KEPT as u64);
        }
    }
}
