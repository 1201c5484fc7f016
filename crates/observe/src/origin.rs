//! Who really made a CNP: a switch may send one itself, in the receiver's name, and nothing in its bytes says so. What is
//! said here is inferred, with the evidence.
//!
//! A CNP is held against what its receiver surely sent to the same sender past the same place: acknowledgements. Evidence,
//! the first that holds decides:
//!
//! 1. It [translates](crate::translation) what a proxy node or an ingress PE was told.
//! 2. It comes from another address than the flow's receiver.
//! 3. Its source MAC address is not the receiver's, where the receiver's packets have passed no router yet.
//! 4. It passed fewer routers than any packet of the receiver: it was made nearer. A CNP may take another path than
//!    acknowledgements (NICs give it a UDP source port of its own), so this counts where acknowledgements took its path, or
//!    where paths between two hosts have been seen to be of one length, often and without exception. Routers passed are
//!    counted from the usual start (64, 128 or 255), as a NIC may start CNPs at another one than acknowledgements; of one that
//!    starts somewhere in between, it shows as more routers than there are, or misleads (acknowledgements from 60, CNPs from 64).
//! 5. It came sooner after the flow's first data than half the time that any acknowledgement takes.
//! 6. It was seen on the receiver's link, like the receiver's packets: the receiver made it.
//! 7. The receiver's link was watched, and no CE mark went over it.
//!
//! What CNPs have for themselves by configuration says nothing: DSCP, UDP source port, the start of the hop limit. Neither
//! does likeness: a switch that copies what the receiver's packets look like cannot be told from it elsewhere than on the
//! receiver's link.

use crate::bounded::Bounded;
use crate::data::{DataPacket, FlowKey};
use crate::sightings::Place;
use core::fmt;
use fcn_wire::bth::Bth;
use fcn_wire::{Frame, Layer, Notification, Origin, identified};
use std::net::IpAddr;

/// Packets of the receiver before it is known what they look like.
const ENOUGH: u16 = 3;
/// Paths that were as long as others between the same hosts, before all are thought to be.
const ALL_ALIKE: u32 = 8;
/// More routers are not passed: who is farther away begins at a start of its own.
const FARTHEST: u8 = 15;
/// Packets of which each is looked at, before a sample of them suffices.
const FIRST: u32 = 1_000;
/// Acknowledgements whose time was taken before the shortest one counts.
const TIMED: u8 = 4;
/// By so many nanoseconds a CNP must be too early: a NIC may make acknowledgements later than CNPs.
const SURELY: u32 = 5_000;
/// A CNP so long after the first data seen does not answer data from before, in nanoseconds.
const SETTLED: u64 = 10_000_000;
/// Data whose acknowledgement is waited for longer was lost, or is acknowledged with other data, in nanoseconds.
const LOST: u64 = 10_000_000;
/// Paths between two hosts that are told apart, by hashes of 16 bits. A Bloom filter of 8 octets took one in ten paths for
/// another's.
const PATHS: usize = 12;
const NO_PATH: u16 = 0;
/// Source MAC addresses are kept as hashes of 16 bits: none was seen, or several.
const NO_MAC: u16 = 0;
const SEVERAL_MACS: u16 = u16::MAX;

identified! {
    /// Who made a CNP, as far as that can be inferred.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Maker {
        /// The receiver.
        Receiver = "receiver",
        /// A node on the way: a switch, or else a proxy node or an ingress PE that was asked out of sight.
        Network = "network",
        /// A proxy node that was seen to be asked.
        Proxy = "proxy",
        /// An ingress PE that was seen to be asked.
        IngressPe = "ingress_pe",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

/// What an inference rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It translates what its maker was told.
    Request,
    /// It comes from another address than the receiver's.
    OtherAddress,
    /// It has another source MAC address than the receiver, whose packets have passed no router yet.
    OtherMac,
    /// It passed fewer routers.
    Nearer {
        /// Routers that it passed.
        passed: u8,
        /// Routers that the receiver's packets passed, at least.
        receiver: u8,
    },
    /// It came too soon to be an answer.
    TooEarly {
        /// Nanoseconds since the flow's first data.
        after: u32,
        /// Nanoseconds that acknowledgements take at least.
        takes: u32,
    },
    /// No CE mark reached the receiver.
    NoMark,
    /// It was seen on the receiver's link, and is like the receiver's packets.
    OnItsLink,
    /// It is like the receiver's packets.
    Alike,
    /// It passed fewer routers, or more, and may have come by another path.
    OtherPath,
    /// Which flow it is about is not known.
    NoFlow,
    /// Too few packets of the receiver were seen at the same place.
    NothingAlike,
    /// CNPs of several makers.
    Several,
    /// Only samples of packets were seen.
    Sampled,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |nanoseconds: u32| f64::from(nanoseconds) / 1e3;
        match *self {
            Self::Request => f.write_str("translates what was notified just before"),
            Self::OtherAddress => f.write_str("comes from another address than the receiver's"),
            Self::OtherMac => f.write_str(
                "has another source MAC address than the receiver, whose packets have passed no router yet",
            ),
            Self::Nearer { passed, receiver } => write!(
                f,
                "routers passed, by hop limit: {passed}; by the receiver's packets: {receiver} at least"
            ),
            Self::TooEarly { after, takes } => write!(
                f,
                "came {:.1} µs after the flow's first data, acknowledgements after {:.1} µs at least",
                us(after),
                us(takes)
            ),
            Self::NoMark => f.write_str(
                "no CE mark of its flow was seen before, and the receiver's link is another place of the capture",
            ),
            Self::OnItsLink => f.write_str(
                "seen on the receiver's link, with its MAC address, and has passed no router",
            ),
            Self::Alike => f.write_str(
                "passed as many routers as the receiver's packets, but a switch may imitate them",
            ),
            Self::OtherPath => f.write_str(
                "hop limit unlike that of the receiver's packets, but it may have come another way",
            ),
            Self::NoFlow => f.write_str("the flow that it is about is not known"),
            Self::NothingAlike => {
                f.write_str("too few packets of the receiver were seen here to compare it with")
            }
            Self::Several => f.write_str("CNPs of several makers"),
            Self::Sampled => {
                f.write_str("only samples were seen, which are too few to compare it with")
            }
        }
    }
}

/// Who made a CNP, and what that rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// Who.
    pub maker: Maker,
    /// Why.
    pub evidence: Evidence,
}

impl Inference {
    const fn unknown(evidence: Evidence) -> Self {
        Self {
            maker: Maker::Unknown,
            evidence,
        }
    }
}

/// What a packet shows of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    hop_limit: u8,
    /// Hash of its source MAC address, or [`NO_MAC`].
    mac: u16,
    /// Hash of what its path is chosen by, beside the addresses.
    path: u16,
}

impl Signs {
    /// Of the packet in `frame`; none within a tunnel, whose routers its own header does not count.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>) -> Option<Self> {
        let ip = frame.ip()?;
        let mut mac = NO_MAC;
        for span in frame.own_spans() {
            match span.layer {
                Layer::Ipv4 | Layer::Ipv6 if span.start == ip.start => break,
                Layer::Ethernet => mac = mac_hash(frame.bytes().get(span.start + 6..)?),
                Layer::Vlan | Layer::LinuxCooked | Layer::Llc => {}
                _ => return None,
            }
        }
        let entropy = u32::from(frame.datagram()?.source_port).rotate_right(12) ^ ip.flow_label;
        Some(Self {
            hop_limit: ip.hop_limit,
            mac,
            path: ((entropy.wrapping_mul(0x9E37_79B1) >> 16) as u16).max(NO_PATH + 1),
        })
    }

    /// Where its hop limit probably began.
    const fn start(self) -> u8 {
        match self.hop_limit {
            0..=64 => 64,
            65..=128 => 128,
            _ => 255,
        }
    }

    /// Routers passed since.
    const fn passed(self) -> u8 {
        self.start() - self.hop_limit
    }
}

fn mac_hash(octets: &[u8]) -> u16 {
    let Some([a, b, c, d, e, f]) = octets.first_chunk::<6>() else {
        return NO_MAC;
    };
    let number = u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]);
    let hash = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16;
    hash.clamp(NO_MAC + 1, SEVERAL_MACS - 1)
}

/// A CNP, as far as it matters who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cnp {
    from: IpAddr,
    to: IpAddr,
    place: Place,
    signs: Option<Signs>,
    origin: Origin,
    /// Whether it comes from the flow's receiver; nothing where the flow is not known.
    in_name: Option<bool>,
    /// Whether a CE mark of its flow was seen; and whether none was, since before what it may answer.
    marked: bool,
    unmarked: bool,
    /// Nanoseconds since the flow's first data, where none was before; else [`u32::MAX`].
    after: u32,
}

/// What was seen of a CNP's flow.
#[derive(Clone, Copy, Debug)]
pub struct SeenData {
    /// When its first data packet was seen.
    pub first: u64,
    /// Whether a packet of it was marked CE.
    pub marked: bool,
    /// Whether its connection was seen to be set up, and so nothing came before that packet.
    pub whole: bool,
}

impl Cnp {
    /// Of a CNP seen at `at`, which comes from `origin` by its [attribution](crate::translation).
    #[must_use]
    pub fn new(
        (at, place): (u64, Place),
        signs: Option<Signs>,
        (gist, origin): (&Notification, Origin),
        flow: Option<&FlowKey>,
        data: Option<SeenData>,
    ) -> Self {
        let after = data.and_then(|data| at.checked_sub(data.first).map(|after| (after, data)));
        let soon = after.filter(|(_, data)| data.whole).map(|(after, _)| after);
        Self {
            from: gist.notifier,
            to: gist.destination,
            place,
            signs,
            origin,
            in_name: flow.map(|flow| flow.receiver == gist.notifier),
            marked: data.is_some_and(|data| data.marked),
            unmarked: after
                .is_some_and(|(after, data)| !data.marked && (data.whole || after > SETTLED)),
            after: soon.map_or(u32::MAX, |after| u32::try_from(after).unwrap_or(u32::MAX)),
        }
    }

    /// The maker of a CNP that the receiver did not make: of those that it may be, the one that is left.
    const fn not_the_receivers(&self, evidence: Evidence) -> Inference {
        let maker = match self.origin {
            Origin::Ambiguous => Maker::IngressPe,
            _ => Maker::Network,
        };
        Inference { maker, evidence }
    }
}

/// The packets from one host to another, at one place.
#[derive(Clone, Copy, Debug)]
struct Way {
    count: u16,
    /// Routers passed.
    least: u8,
    most: u8,
    /// Where hop limits begin; 0 where at several.
    start: u8,
    /// Times taken of acknowledgements the other way.
    timed: u8,
    mac: u16,
    /// The first paths taken.
    paths: [u16; PATHS],
    /// Data whose acknowledgement is waited for: its PSN, and when it passed.
    psn: u32,
    passed: u64,
    /// The shortest time from data to its acknowledgement, in nanoseconds.
    takes: u32,
}

/// The PSN of nothing.
const NO_PSN: u32 = u32::MAX;

impl Way {
    const NEW: Self = Self {
        count: 0,
        least: u8::MAX,
        most: 0,
        start: 0,
        timed: 0,
        mac: NO_MAC,
        paths: [NO_PATH; PATHS],
        psn: NO_PSN,
        passed: 0,
        takes: u32::MAX,
    };

    /// Whether its packets have passed no router.
    const fn is_at_source(&self) -> bool {
        self.count >= ENOUGH && self.most == 0
    }

    /// Whether all its packets have passed some.
    fn has_passed_a_router(&self) -> bool {
        (1..=FARTHEST).contains(&self.least)
    }

    /// Whether there is room for another path.
    fn took_few(&self) -> bool {
        self.paths.contains(&NO_PATH)
    }

    /// Whether a packet on it took the same path.
    fn took(&self, signs: Signs) -> bool {
        self.paths.contains(&signs.path)
    }
}

/// Two hosts, at one place: the packets of the one with the lower address, and those of the other.
type Ways = [Way; 2];

/// What the packets of hosts look like, by place.
///
/// Bounded: at most `limit` pairs of hosts, of 210 octets each; those used longest ago leave first.
#[derive(Debug)]
pub struct Origins {
    ways: Bounded<(IpAddr, IpAddr, Place), Ways>,
    /// Where everything between a receiver and a sender passes the receiver's own link.
    links: Bounded<(IpAddr, IpAddr), Place>,
    /// Paths found to be as long as others between the same hosts, and those found not to be.
    alike: u32,
    unlike: u32,
    /// Packets looked at.
    looks: u32,
}

impl Origins {
    /// Remembers at most `limit` pairs of hosts.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            ways: Bounded::new(limit),
            links: Bounded::new(limit),
            alike: 0,
            unlike: 0,
            looks: 0,
        }
    }

    /// Whether a packet of that PSN is looked at: all at first, then those of an eighth of the PSNs, the same of data and of
    /// acknowledgements. Looking at all of them cost fcn-top a tenth more instructions a packet; so it is 2 %.
    #[inline]
    fn looks_at(&self, psn: u32) -> bool {
        self.looks < FIRST || psn.wrapping_mul(0x9E37_79B1) >> 29 == 0
    }

    /// Takes in a data packet, wherever it is seen. Those that ask for an acknowledgement suffice.
    #[inline]
    pub fn data(
        &mut self,
        at: u64,
        place: Place,
        frame: &Frame<'_>,
        data: &DataPacket<'_>,
        bth: &Bth<'_>,
    ) {
        if bth.ack_request()
            && self.looks_at(bth.psn())
            && let Some(signs) = Signs::from_frame(frame)
        {
            let (from, to) = (data.source, data.destination);
            let [way, _] = self.see(at, place, (from, to), signs);
            if way.psn == NO_PSN || at.saturating_sub(way.passed) > LOST {
                (way.psn, way.passed) = (bth.psn(), at);
            }
        }
    }

    /// Takes in an acknowledgement, wherever it is seen.
    #[inline]
    pub fn acknowledged(&mut self, at: u64, place: Place, frame: &Frame<'_>, bth: &Bth<'_>) {
        if !self.looks_at(bth.psn()) {
            return;
        }
        let (Some(ip), Some(signs)) = (frame.ip(), Signs::from_frame(frame)) else {
            return;
        };
        let (from, to) = (ip.source, ip.destination);
        let [own, data] = self.see(at, place, (from, to), signs);
        if data.psn == bth.psn() {
            data.psn = NO_PSN;
            if let Some(takes) = at.checked_sub(data.passed) {
                data.takes = data.takes.min(u32::try_from(takes).unwrap_or(u32::MAX));
                data.timed = data.timed.saturating_add(1);
            }
        }
        // Data has passed a router, what answers it has not: the receiver's own link.
        if own.count == ENOUGH && own.is_at_source() && data.has_passed_a_router() {
            self.links.get_or_insert_with((from, to), at, || place);
        }
    }

    /// The packets from `from` to `to` at `place`, a packet more, and those the other way.
    fn see(
        &mut self,
        at: u64,
        place: Place,
        (from, to): (IpAddr, IpAddr),
        signs: Signs,
    ) -> [&mut Way; 2] {
        self.looks = self.looks.saturating_add(1);
        let (key, is_upper) = pair(from, to);
        let ways = (self.ways).get_or_insert_with((key.0, key.1, place), at, || [Way::NEW; 2]);
        let [lower, upper] = ways;
        let (own, other) = if is_upper {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let passed = signs.passed();
        if own.count == 0 {
            (own.start, own.mac) = (signs.start(), signs.mac);
        } else {
            if own.start != signs.start() {
                own.start = 0;
            }
            if own.mac != signs.mac {
                own.mac = SEVERAL_MACS;
            }
            if (passed, passed) != (own.least, own.most) {
                self.unlike = self.unlike.saturating_add(1);
            } else if !own.took(signs) && own.took_few() {
                self.alike = self.alike.saturating_add(1);
            }
        }
        own.count = own.count.saturating_add(1);
        if !own.took(signs)
            && let Some(free) = own.paths.iter_mut().find(|path| **path == NO_PATH)
        {
            *free = signs.path;
        }
        (own.least, own.most) = (own.least.min(passed), own.most.max(passed));
        [own, other]
    }

    /// Who made a CNP, by all that has been seen so far.
    #[must_use]
    pub fn judge(&self, cnp: &Cnp) -> Inference {
        let maker = match cnp.origin {
            Origin::Proxy => Some(Maker::Proxy),
            Origin::IngressPe => Some(Maker::IngressPe),
            _ => None,
        };
        if let Some(maker) = maker {
            let evidence = Evidence::Request;
            return Inference { maker, evidence };
        }
        if cnp.in_name == Some(false) {
            return cnp.not_the_receivers(Evidence::OtherAddress);
        }
        let (key, is_upper) = pair(cnp.from, cnp.to);
        let ways = self.ways.get(&(key.0, key.1, cnp.place));
        let known = ways.map(|[lower, upper]| match is_upper {
            true => (upper, lower),
            false => (lower, upper),
        });
        let compared = match (known, cnp.signs) {
            (Some((own, data)), Some(signs)) => self.compare(cnp, signs, own, data),
            _ => Evidence::NothingAlike,
        };
        let unmarked = || {
            let link = self.links.get(&(cnp.from, cnp.to));
            cnp.unmarked && link.is_some_and(|link| *link != cnp.place)
        };
        match compared {
            Evidence::OnItsLink => Inference {
                maker: Maker::Receiver,
                evidence: compared,
            },
            // Who acknowledges the sender's data is a receiver of it, whichever flow this is about.
            Evidence::NothingAlike if cnp.in_name.is_none() => Inference::unknown(Evidence::NoFlow),
            Evidence::Alike | Evidence::OtherPath | Evidence::NothingAlike => match unmarked() {
                true => cnp.not_the_receivers(Evidence::NoMark),
                false => Inference::unknown(compared),
            },
            evidence => cnp.not_the_receivers(evidence),
        }
    }

    /// A CNP in the receiver's name against its packets, and the data that they answer.
    fn compare(&self, cnp: &Cnp, signs: Signs, own: &Way, data: &Way) -> Evidence {
        if own.count < ENOUGH {
            return Evidence::NothingAlike;
        }
        let (passed, receiver) = (signs.passed(), own.least);
        let known_mac = |mac| ![NO_MAC, SEVERAL_MACS].contains(&mac);
        if own.is_at_source() && known_mac(own.mac) && known_mac(signs.mac) && own.mac != signs.mac
        {
            return Evidence::OtherMac;
        }
        let same_start = own.start == signs.start() && own.most.saturating_sub(passed) <= FARTHEST;
        let comparable = same_start || own.start != 0 && own.most <= FARTHEST;
        let same_path = own.took(signs) || self.unlike == 0 && self.alike >= ALL_ALIKE;
        if passed < receiver && comparable && same_path {
            return Evidence::Nearer { passed, receiver };
        }
        let (after, takes) = (cnp.after, data.takes);
        if receiver > 0 && data.timed >= TIMED && after < takes / 2 && takes - after >= SURELY {
            return Evidence::TooEarly { after, takes };
        }
        let is_like = own.least <= passed && passed <= own.most;
        let on_its_link = own.is_at_source() && known_mac(own.mac) && data.has_passed_a_router();
        // What it answers came by here, unless a switch that routes nothing marks behind this place, and perhaps answers itself.
        if is_like && on_its_link && cnp.marked {
            return Evidence::OnItsLink;
        }
        match is_like && comparable {
            true => Evidence::Alike,
            false => Evidence::OtherPath,
        }
    }
}

/// Two hosts in the order of their addresses, and whether the first one is the upper.
fn pair(from: IpAddr, to: IpAddr) -> ((IpAddr, IpAddr), bool) {
    match from > to {
        true => ((to, from), true),
        false => ((from, to), false),
    }
}

/// Of how many CNPs of one maker one of another is taken for a mistake.
const MISTAKEN: u32 = 32;

/// Who made the CNPs about one QP.
#[derive(Clone, Debug)]
pub struct Tally {
    /// By maker.
    counts: [u32; Maker::ALL.len()],
    /// The last judgement of the maker of most.
    known: Option<Inference>,
    /// The CNP to be judged anew as more becomes known: the one soonest after the flow's first data, else the last.
    open: Option<Cnp>,
}

impl Tally {
    /// Of no CNP.
    pub const NEW: Self = Self {
        counts: [0; Maker::ALL.len()],
        known: None,
        open: None,
    };

    /// Counts a CNP.
    pub fn add(&mut self, cnp: Cnp, inference: Inference) {
        let count = &mut self.counts[inference.maker as usize];
        *count = count.saturating_add(1);
        let count = *count;
        if inference.maker == Maker::Unknown {
            if self.open.is_none_or(|open| cnp.after <= open.after) {
                self.open = Some(cnp);
            }
        } else if self
            .known
            .is_none_or(|known| self.counts[known.maker as usize] <= count)
        {
            self.known = Some(inference);
        }
    }

    /// Who made them, by all that has been seen so far; `None` where there are none.
    #[must_use]
    pub fn judge(&self, origins: &Origins) -> Option<Inference> {
        let Some(known) = self.known else {
            return Some(origins.judge(self.open.as_ref()?));
        };
        let [known_ones, unknown] = [known.maker, Maker::Unknown].map(|m| self.counts[m as usize]);
        let all = self.counts.iter().copied().fold(0, u32::saturating_add);
        let others = all.saturating_sub(unknown).saturating_sub(known_ones);
        match others > known_ones / MISTAKEN {
            true => Some(Inference::unknown(Evidence::Several)),
            false => Some(known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ICRC, RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, build};
    use fcn_wire::bth::BthRepr;
    use fcn_wire::compose::{Part, UdpChecksum};
    use fcn_wire::{Kind, LinkType, Message, Opcode, Profile, Qp, Subject};

    const HERE: Place = Place::new(0);
    const QP: Qp = Qp::truncate(0x222);
    const US: u64 = 1_000;
    /// The last octet of MAC addresses.
    const NIC: u8 = 9;
    const ROUTER: u8 = 1;

    /// A packet as it passes.
    #[derive(Clone, Copy)]
    struct Passing {
        v4: bool,
        back: bool,
        opcode: Opcode,
        psn: u32,
        hop_limit: u8,
        mac: u8,
        port: u16,
    }

    const ACK: Passing = Passing {
        v4: false,
        back: true,
        opcode: Opcode::RC_ACKNOWLEDGE,
        psn: 7,
        hop_limit: 61,
        mac: ROUTER,
        port: 0xC001,
    };
    const DATA: Passing = Passing {
        back: false,
        opcode: Opcode::RC_SEND_ONLY,
        hop_limit: 64,
        ..ACK
    };

    impl Passing {
        fn addresses(self) -> (IpAddr, IpAddr) {
            let (sender, receiver) = match self.v4 {
                true => (SENDER4.into(), RECEIVER4.into()),
                false => (SENDER.into(), RECEIVER.into()),
            };
            if self.back {
                (receiver, sender)
            } else {
                (sender, receiver)
            }
        }

        fn with<T>(self, act: impl FnOnce(&Frame<'_>) -> T) -> T {
            let (source, destination) = self.addresses();
            let ip = match (source, destination) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => Part::Ipv4 {
                    source,
                    destination,
                    tos: 2,
                    ttl: self.hop_limit,
                    id: 0,
                    options: &[],
                },
                (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                    source,
                    destination,
                    traffic_class: 2,
                    flow_label: 0,
                    hop_limit: self.hop_limit,
                },
                _ => unreachable!("one family"),
            };
            let mut bth = BthRepr::new(self.opcode, QP, self.psn);
            bth.ack_request = true;
            let bytes = build(&[
                Part::Ethernet {
                    source: [2, 0, 0, 0, 0, self.mac],
                    destination: [2, 0, 0, 0, 0, 77],
                },
                ip,
                Part::Udp {
                    source: self.port,
                    destination: 4791,
                    checksum: UdpChecksum::Zero,
                },
                Part::Bth(bth),
                Part::Bytes(&[0; 16]),
                ICRC,
            ]);
            act(&Frame::parse(
                &bytes,
                bytes.len(),
                LinkType::Ethernet,
                &Profile::DEFAULT,
            ))
        }

        fn signs(self) -> Signs {
            self.with(|frame| Signs::from_frame(frame).unwrap())
        }
    }

    fn see(origins: &mut Origins, at: u64, place: Place, packet: Passing) {
        packet.with(|frame| {
            let Message::Roce(bth, _) = frame.message() else {
                panic!("RoCEv2");
            };
            match DataPacket::from_frame(frame) {
                Some(data) => origins.data(at, place, frame, &data, &bth),
                None => origins.acknowledged(at, place, frame, &bth),
            }
        });
    }

    fn after(packets: &[Passing]) -> Origins {
        let mut origins = Origins::new(16);
        for (at, packet) in (0..).zip(packets) {
            see(&mut origins, at * 10 * US, HERE, *packet);
        }
        origins
    }

    /// A CNP that looks like `packet`, so long after the flow's first data.
    fn cnp(packet: Passing, origin: Origin, after: u64) -> Cnp {
        let (notifier, destination) = packet.addresses();
        let gist = Notification {
            kind: Kind::Cnp,
            origin: Origin::Receiver,
            notifier,
            destination,
            sender: Some(destination),
            subject: Subject::SenderQp(QP),
            level: None,
            deepest_queue: None,
            hops: 0,
        };
        let flow = FlowKey {
            sender: destination,
            receiver: notifier,
            receiver_qp: QP,
        };
        let data = SeenData {
            first: 0,
            marked: false,
            whole: true,
        };
        let signs = Some(packet.signs());
        Cnp::new(
            (after, HERE),
            signs,
            (&gist, origin),
            Some(&flow),
            Some(data),
        )
    }

    fn judge(origins: &Origins, packet: Passing) -> Inference {
        let cnp = cnp(packet, Origin::Receiver, 1_000_000 * US);
        origins.judge(&cnp)
    }

    fn on_the_way(evidence: Evidence) -> Inference {
        Inference {
            maker: Maker::Network,
            evidence,
        }
    }

    #[test]
    fn who_passed_fewer_routers_on_the_same_path_is_nearer() {
        for v4 in [false, true] {
            let ack = Passing { v4, ..ACK };
            let origins = after(&[ack; 3]);
            let passing = |hop_limit, port| {
                judge(
                    &origins,
                    Passing {
                        hop_limit,
                        port,
                        ..ack
                    },
                )
            };
            let nearer = |passed| {
                on_the_way(Evidence::Nearer {
                    passed,
                    receiver: 3,
                })
            };
            assert_eq!(passing(63, ack.port), nearer(1));
            assert_eq!(passing(254, ack.port), nearer(1), "starts at 255");
            // A NIC may let CNPs start elsewhere, and switches may copy.
            for hop_limit in [61, 252, 125] {
                assert_eq!(
                    passing(hop_limit, ack.port),
                    Inference::unknown(Evidence::Alike)
                );
            }
            // A longer path, another path.
            for (hop_limit, port) in [(60, ack.port), (63, 0)] {
                assert_eq!(
                    passing(hop_limit, port),
                    Inference::unknown(Evidence::OtherPath)
                );
            }
        }
        let few = after(&[ACK; 2]);
        assert_eq!(judge(&few, ACK), Inference::unknown(Evidence::NothingAlike));
    }

    #[test]
    fn where_paths_are_alike_any_of_them_will_do() {
        let paths = |longer: &[u16]| {
            let acks = (0..20).map(|port| Passing {
                port,
                hop_limit: if longer.contains(&port) { 59 } else { 61 },
                ..ACK
            });
            after(&acks.collect::<Vec<_>>())
        };
        let other = Passing {
            hop_limit: 63,
            port: 0xABCD,
            ..ACK
        };
        let nearer = on_the_way(Evidence::Nearer {
            passed: 1,
            receiver: 3,
        });
        assert_eq!(judge(&paths(&[]), other), nearer);
        let unlike = paths(&[5]);
        assert_eq!(
            judge(&unlike, other),
            Inference::unknown(Evidence::OtherPath)
        );
        let within = Passing {
            hop_limit: 60,
            ..ACK
        };
        assert_eq!(judge(&unlike, within), Inference::unknown(Evidence::Alike));
    }

    #[test]
    fn a_start_of_its_own_is_not_counted_from() {
        // A NIC that lets hop limits start at 100.
        let odd = Passing {
            hop_limit: 97,
            ..ACK
        };
        let origins = after(&[odd; 3]);
        let usual = Passing {
            hop_limit: 63,
            ..ACK
        };
        assert_eq!(
            judge(&origins, usual),
            Inference::unknown(Evidence::OtherPath)
        );
        let copied = Passing {
            hop_limit: 99,
            ..ACK
        };
        assert_eq!(judge(&origins, copied).maker, Maker::Network);
        // One that lets them start at 16.
        let odd = Passing {
            hop_limit: 13,
            ..ACK
        };
        assert_eq!(
            judge(&after(&[odd; 3]), usual),
            Inference::unknown(Evidence::OtherPath)
        );
    }

    #[test]
    fn before_the_first_router_mac_addresses_tell() {
        let own = Passing {
            hop_limit: 64,
            mac: NIC,
            ..ACK
        };
        // In one network, both ends look alike.
        let bridged = after(&[own; 3]);
        let other = Passing { mac: ROUTER, ..own };
        assert_eq!(judge(&bridged, own), Inference::unknown(Evidence::Alike));
        assert_eq!(judge(&bridged, other), on_the_way(Evidence::OtherMac));
        // Where data has passed a router, it is the receiver's link.
        let routed = Passing {
            hop_limit: 60,
            ..DATA
        };
        let link = after(&[routed, own, own, own]);
        let receiver = Inference {
            maker: Maker::Receiver,
            evidence: Evidence::OnItsLink,
        };
        let answer = Cnp {
            marked: true,
            unmarked: false,
            ..cnp(own, Origin::Receiver, 1_000_000 * US)
        };
        assert_eq!(link.judge(&answer), receiver);
        // What would it answer? A switch that routes nothing may mark behind this place.
        assert_eq!(judge(&link, own), Inference::unknown(Evidence::Alike));
        assert_eq!(judge(&link, other), on_the_way(Evidence::OtherMac));
        // A mirror of several ports.
        let mirror = after(&[routed, own, other, own, own]);
        assert_eq!(mirror.judge(&answer), Inference::unknown(Evidence::Alike));
        // Elsewhere MAC addresses are those of routers.
        let behind = after(&[ACK; 3]);
        let other = Passing { mac: 2, ..ACK };
        assert_eq!(judge(&behind, other), Inference::unknown(Evidence::Alike));
    }

    #[test]
    fn what_comes_before_it_can_is_no_answer() {
        // Acknowledged after 10 µs each.
        let rounds: Vec<_> = (0..8)
            .map(|n| Passing {
                psn: n / 2,
                ..if n % 2 == 0 { DATA } else { ACK }
            })
            .collect();
        let verdict = |seen: usize, sooner: u64| {
            let origins = after(&rounds[..seen]);
            let cnp = cnp(ACK, Origin::Receiver, sooner);
            origins.judge(&cnp)
        };
        let early = on_the_way(Evidence::TooEarly {
            after: 4_000,
            takes: 10_000,
        });
        assert_eq!(verdict(8, 4 * US), early);
        assert_eq!(verdict(8, 6 * US), Inference::unknown(Evidence::Alike));
        assert_eq!(verdict(6, 4 * US), Inference::unknown(Evidence::Alike));
    }

    #[test]
    fn without_marks_on_its_link_the_receiver_has_no_cause() {
        let link = Place::new(1);
        let mut origins = after(&[ACK; 4]);
        let own = Passing {
            hop_limit: 64,
            mac: NIC,
            ..ACK
        };
        let alike = Inference::unknown(Evidence::Alike);
        assert_eq!(judge(&origins, ACK), alike);
        see(
            &mut origins,
            1,
            link,
            Passing {
                hop_limit: 60,
                ..DATA
            },
        );
        for _ in 0..3 {
            assert_eq!(judge(&origins, ACK), alike);
            see(&mut origins, 2, link, own);
        }
        assert_eq!(judge(&origins, ACK), on_the_way(Evidence::NoMark));
    }

    #[test]
    fn who_was_asked_and_who_has_another_address_is_known() {
        let origins = after(&[ACK; 3]);
        for (origin, maker) in [
            (Origin::Proxy, Maker::Proxy),
            (Origin::IngressPe, Maker::IngressPe),
        ] {
            let cnp = cnp(ACK, origin, US);
            let evidence = Evidence::Request;
            let inference = Inference { maker, evidence };
            assert_eq!(origins.judge(&cnp), inference);
        }
        let named = cnp(ACK, Origin::Receiver, US);
        let other = Cnp {
            in_name: Some(false),
            ..named
        };
        let by_address = on_the_way(Evidence::OtherAddress);
        assert_eq!(origins.judge(&other), by_address);
        // The receiver or an ingress PE: what is not the receiver's is the other's.
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let cnp = cnp(nearer, Origin::Ambiguous, US);
        assert_eq!(origins.judge(&cnp).maker, Maker::IngressPe);
    }

    #[test]
    fn whom_it_is_about_need_not_be_known() {
        let unknown = |packet| Cnp {
            in_name: None,
            ..cnp(packet, Origin::Receiver, US)
        };
        let nearer = unknown(Passing {
            hop_limit: 63,
            ..ACK
        });
        assert_eq!(after(&[ACK; 3]).judge(&nearer).maker, Maker::Network);
        let no_flow = Inference::unknown(Evidence::NoFlow);
        assert_eq!(after(&[]).judge(&nearer), no_flow);
    }

    #[test]
    fn a_tunnel_shows_nothing() {
        let inner = |parts: &[Part<'_>]| {
            let bytes = build(parts);
            let link = LinkType::Ethernet;
            Signs::from_frame(&Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT))
        };
        let ethernet = Part::Ethernet {
            source: [2; 6],
            destination: [4; 6],
        };
        let plain = [
            crate::testing::ip(SENDER.into(), RECEIVER.into()),
            crate::testing::udp(4791),
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 1)),
            Part::Bytes(&[0; 8]),
            ICRC,
        ];
        let outer = crate::testing::ip(SWITCH.into(), SWITCH.into());
        assert!(inner(&[&[ethernet], &plain[..]].concat()).is_some());
        assert!(inner(&[&[ethernet, outer], &plain[..]].concat()).is_none());
    }

    #[test]
    fn a_row_says_who_made_most_and_judges_anew() {
        let mut origins = after(&[ACK; 2]);
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let mut tally = Tally::NEW;
        let add = |tally: &mut Tally, origins: &Origins, packet, origin| {
            let cnp = cnp(packet, origin, US);
            tally.add(cnp, origins.judge(&cnp));
        };
        assert_eq!(tally.judge(&origins), None);
        add(&mut tally, &origins, nearer, Origin::Receiver);
        let judged = |tally: &Tally, origins: &Origins| {
            let inference = tally.judge(origins).unwrap();
            (inference.maker, inference.evidence)
        };
        let nothing = (Maker::Unknown, Evidence::NothingAlike);
        assert_eq!(judged(&tally, &origins), nothing);
        see(&mut origins, 1, HERE, ACK);
        assert_eq!(
            judged(&tally, &origins).0,
            Maker::Network,
            "without a further one"
        );
        for _ in 0..MISTAKEN {
            add(&mut tally, &origins, nearer, Origin::Receiver);
        }
        add(&mut tally, &origins, ACK, Origin::Proxy);
        assert_eq!(judged(&tally, &origins).0, Maker::Network);
        add(&mut tally, &origins, ACK, Origin::Proxy);
        let several = (Maker::Unknown, Evidence::Several);
        assert_eq!(judged(&tally, &origins), several);
    }

    #[test]
    fn what_is_remembered_is_small() {
        assert!(size_of::<Tally>() <= 112, "{}", size_of::<Tally>());
        assert!(size_of::<Cnp>() <= 60, "{}", size_of::<Cnp>());
        let ways = size_of::<(IpAddr, IpAddr, Place)>() + size_of::<Ways>();
        assert!(ways <= 184, "{ways}");
    }
}
