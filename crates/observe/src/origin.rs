//! Inference of the node that generated a CNP: a switch may send one itself in the receiver's name,
//! and its bytes do not show it. The results are inferences, reported with their evidence.
//!
//! A CNP is compared with packets that its receiver surely sent to the same sender past the same
//! capture point: acknowledgements. The first of these rules that holds decides:
//!
//! 1. It [translates](crate::translation) a notification to a proxy node or an ingress PE, and has
//!    that node's address.
//! 2. It comes from another address than the flow's receiver, which acknowledges nothing to the
//!    sender (a QP may have several receivers). A NIC may have several addresses, so the CNP is
//!    still compared with the receiver's packets: with their source MAC address on the receiver's
//!    link it is the receiver's; with another one, if both ends are in one network, or if it passed
//!    fewer routers, it is not.
//! 3. Its source MAC address is not the receiver's, and both ends are in one network. On the
//!    receiver's own link it may be that of another port.
//! 4. It passed fewer routers than any packet of the receiver: it was generated nearer. A CNP may
//!    take another path than acknowledgements (NICs give it its own UDP source port), and a route
//!    may become shorter, so this counts only if acknowledgements took its path before and after
//!    it; or, with one after it, if paths between two hosts have been observed often to be of one
//!    length, without exception. Routers passed are counted from the usual initial values (64, 128
//!    or 255), as a NIC may start CNPs at another one than acknowledgements; any other initial
//!    value shows as more routers than there are, or misleads (acknowledgements from 60, CNPs from
//!    64).
//! 5. It was captured on the receiver's link, is like the receiver's packets, and a CE mark of its
//!    flow is unanswered: the receiver generated it.
//! 6. It was captured elsewhere, while the receiver's link was watched: no CNP about the flow was
//!    ever captured there, and the flow's data passed there without a gap in PSNs and unmarked,
//!    from before the earliest mark that a receiver may still answer until after the CNP. That
//!    link's clock may be ahead by as much as the last data packet took from the CNP's capture
//!    point; if that time is unknown or negative, nothing is inferred.
//!
//! Each CNP is judged by itself. The CNPs of a row have one maker if all have the same one, except
//! for a few without an inference.
//!
//! Properties of CNPs that are configurable are ignored: DSCP, UDP source port, the initial hop
//! limit. A CNP that otherwise agrees with the receiver's packets is the receiver's or an
//! imitation: a node on the path that copies them cannot be distinguished from the receiver, except
//! on the receiver's link. It is neither if that link is another capture point, and no CNP about
//! the flow passed it.

use crate::bounded::Bounded;
use crate::data::{DataPacket, Ecn, FlowKey};
use crate::sightings::CapturePoint;
use crate::translation::{Attribution, WITHIN};
use derive_more::Display;
use fcn_wire::bth::Bth;
use fcn_wire::infiniband::lid_of_address;
use fcn_wire::{Frame, Layer, Notification, Origin, Qp, identified};
use std::net::IpAddr;

/// Number of the receiver's packets after which their properties are known.
const ENOUGH: u16 = 3;
/// Number of paths found as long as others between the same hosts, after which all are assumed to
/// be.
const MIN_EQUAL_PATHS: u32 = 8;
/// Maximum number of routers passed: a larger distance means an unusual initial hop limit.
const MAX_ROUTERS: u8 = 15;
/// Number of packets that are all inspected, before a sample of them suffices.
const FIRST: u32 = 1_000;
/// Number of paths between two hosts that are distinguished, by hashes of 16 bits. A Bloom filter
/// of 8 octets took one in ten paths for another's.
const PATHS: usize = 12;
const NO_PATH: u16 = 0;

identified! {
    /// Node that generated a CNP, as far as can be inferred.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Maker {
        /// The receiver.
        Receiver = "receiver",
        /// The receiver, or a node on the path that imitates its packets.
        ReceiverOrImitation = "receiver_or_imitation",
        /// A node on the path: a switch, or a proxy node or an ingress PE whose request was not
        /// captured.
        Network = "network",
        /// A proxy node whose request was captured.
        Proxy = "proxy",
        /// An ingress PE whose request was captured.
        IngressPe = "ingress_pe",
        /// Several CNPs with different makers.
        Mixed = "mixed",
        /// Unknown.
        Unknown = "unknown",
    }
}

/// One in this many CNPs may be of an unknown maker if the others are of one.
const FEW: u32 = 32;

impl Maker {
    /// Returns the maker of CNPs that were judged one by one: `counts` are indexed as
    /// [`Maker::ALL`]. `early` is the number of unknown ones that came before there was anything to
    /// compare them with.
    #[must_use]
    pub fn of(counts: &[u32; Self::ALL.len()], early: u32) -> Self {
        let count = |maker: Self| counts[maker as usize];
        let certain = || {
            (Self::ALL.into_iter())
                .filter(|maker| !matches!(maker, Self::ReceiverOrImitation | Self::Unknown))
        };
        let mut makers = certain().filter(|maker| count(*maker) > 0);
        let of_certain = certain().map(count).fold(0, u32::saturating_add);
        let alike = count(Self::ReceiverOrImitation);
        let known = of_certain.saturating_add(alike);
        let undecided = count(Self::Unknown).saturating_sub(early);
        match (makers.next(), makers.next()) {
            // A proxy node or an ingress PE is a node of the network: its role is known only if its
            // request was captured.
            (Some(_), Some(_)) if count(Self::Receiver) > 0 || count(Self::Mixed) > 0 => {
                Self::Mixed
            }
            _ if undecided > known / FEW || early > known => Self::Unknown,
            (None | Some(Self::Receiver), None) if alike > of_certain / FEW => {
                Self::ReceiverOrImitation
            }
            _ if alike > of_certain / FEW => Self::Unknown,
            (Some(maker), None) => maker,
            (Some(_), Some(_)) => Self::Network,
            (None, _) => Self::Unknown,
        }
    }

    /// Returns true if later evidence may attribute more of its CNPs to another maker.
    const fn is_open(self) -> bool {
        matches!(self, Self::ReceiverOrImitation | Self::Unknown)
    }
}

/// A source MAC address.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
#[display(
    "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
    _0[0], _0[1], _0[2], _0[3], _0[4], _0[5]
)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Of a packet without a MAC address.
    const NONE: Self = Self([0; 6]);
    /// Stands for several: the broadcast address belongs to no host.
    const SEVERAL: Self = Self([0xFF; 6]);

    /// Returns the source address in the Ethernet header at the beginning of `octets`.
    fn source_of(octets: &[u8]) -> Option<Self> {
        octets.get(6..)?.first_chunk().copied().map(Self)
    }

    fn is_one(self) -> bool {
        ![Self::NONE, Self::SEVERAL].contains(&self)
    }
}

/// Source MAC addresses compared.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
#[display("its source MAC address is {cnp}; the receiver's packets have {receiver}")]
pub struct Macs {
    /// The CNP's address.
    pub cnp: Mac,
    /// The address of the receiver's packets at the same capture point.
    pub receiver: Mac,
}

impl Macs {
    /// Returns those of a CNP and the receiver's packets, if each has exactly one.
    fn of(marks: PathMarks, own: &Direction) -> Option<Self> {
        (marks.mac.is_one() && own.mac.is_one()).then_some(Self {
            cnp: marks.mac,
            receiver: own.mac,
        })
    }

    fn differ(self) -> bool {
        self.cnp != self.receiver
    }
}

/// Evidence for an inference.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Evidence {
    /// Its maker was notified just before.
    #[display("comes from a node that was notified just before")]
    Request,
    /// It comes from another address than the receiver's, and passed fewer routers than the
    /// receiver's packets.
    #[display(
        "comes from an address other than the receiver's; routers passed, by hop limit: {passed}; by the receiver's packets: at least {receiver}"
    )]
    OtherAddress {
        /// Number of routers that it passed.
        passed: u8,
        /// Minimum number of routers that the receiver's packets passed.
        receiver: u8,
    },
    /// It comes from another address than the receiver's, but from the receiver's NIC.
    #[display(
        "comes from an address other than the receiver's, but from its source MAC address, {_0}, and has passed no router: a NIC may have several addresses"
    )]
    SecondAddress(Mac),
    /// It comes from another address than the receiver's, which may be of the same NIC.
    #[display(
        "comes from an address other than the receiver's, but nothing shows that another node sent it: a NIC may have several addresses"
    )]
    AddressUnclear,
    /// It has another source MAC address than the receiver, whose packets have passed no router
    /// yet.
    #[display("{_0} and have passed no router yet")]
    OtherMac(Macs),
    /// It passed fewer routers.
    #[display(
        "routers passed, by hop limit: {passed}; by the receiver's packets: at least {receiver}{}", also(*macs)
    )]
    Nearer {
        /// Number of routers that it passed.
        passed: u8,
        /// Minimum number of routers that the receiver's packets passed.
        receiver: u8,
        /// Source MAC addresses, if its own is its maker's and differs from that of the receiver's
        /// packets.
        macs: Option<Macs>,
    },
    /// No CE mark reached the receiver.
    #[display(
        "the flow's data passed the receiver's link, another capture point, without a PSN gap and without a CE mark"
    )]
    NoMark,
    /// It was captured on the receiver's link, is like the receiver's packets, and answers a CE
    /// mark.
    #[display(
        "captured on the receiver's link after a CE mark, with the receiver's MAC address, and has passed no router"
    )]
    OnItsLink,
    /// It is like the receiver's packets.
    #[display(
        "like the receiver's packets in routers passed and source MAC address, as far as known; a node on the path may imitate them"
    )]
    Alike,
    /// It is like the receiver's packets, but was not captured on the receiver's link.
    #[display(
        "like the receiver's packets, but no CNP about the flow passed the receiver's link, another capture point"
    )]
    NotOnItsLink,
    /// It passed as many routers as the receiver's packets, and has another source MAC address.
    #[display("passed as many routers as the receiver's packets, but {_0}")]
    MacUnlike(Macs),
    /// The receiver's packets are not all alike.
    #[display(
        "the receiver's packets differ here in routers passed or source MAC address: some are like it"
    )]
    Varied,
    /// It passed fewer or more routers, and may have taken another path.
    #[display(
        "its hop limit differs from the receiver's packets, but it may have taken another path"
    )]
    OtherPath,
    /// It passed fewer routers, but so may all packets that the receiver has sent since.
    #[display(
        "passed fewer routers than the receiver's packets, but its route may have become shorter: none before and after it took the same path"
    )]
    RouteUnclear,
    /// Nothing can be compared: it came in a tunnel, or not by Ethernet and IP.
    #[display("hop limits are not compared in tunnels and on links other than Ethernet")]
    NoSigns,
    /// The flow that it is about is unknown.
    #[display("its flow is unknown")]
    NoFlow,
    /// Too few packets of the receiver were captured at the same capture point.
    #[display("too few packets of the receiver were captured here to compare it with")]
    NothingAlike,
    /// CNPs without a common maker: their numbers by maker, indexed as [`Maker::ALL`].
    #[display("CNPs judged one by one: {}", by_maker(_0))]
    Several([u32; Maker::ALL.len()]),
    /// Only samples of packets were captured.
    #[display("only samples were captured, too few to compare it with")]
    Sampled,
}

fn also(macs: Option<Macs>) -> String {
    macs.map_or_else(String::new, |macs| format!("; {macs}"))
}

fn by_maker(counts: &[u32; Maker::ALL.len()]) -> String {
    let some = Maker::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0);
    let each: Vec<_> = some
        .map(|(maker, count)| format!("{} {count}", maker.id()))
        .collect();
    each.join(", ")
}

/// Maker of a CNP, and the evidence for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// The maker.
    pub maker: Maker,
    /// The evidence.
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

/// Marks of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMarks {
    hop_limit: u8,
    mac: Mac,
    /// Hash of the fields, other than addresses, by which its path is chosen.
    path: u16,
}

impl PathMarks {
    /// Returns those of the packet in `frame`; `None` within a tunnel, whose routers are not
    /// counted in its own header.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>) -> Option<Self> {
        let ip = frame.ip()?;
        let mut mac = Mac::NONE;
        for span in frame.inner_spans() {
            match span.layer {
                Layer::Ipv4 | Layer::Ipv6 if span.start == ip.start => break,
                Layer::Ethernet => mac = Mac::source_of(frame.bytes().get(span.start..)?)?,
                Layer::Vlan | Layer::LinuxCooked | Layer::Llc | Layer::Snap => {}
                Layer::VnTag | Layer::ETag | Layer::Arista | Layer::CiscoMetadata | Layer::Csig => {
                }
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

    /// Returns the probable initial value of its hop limit.
    const fn start(self) -> u8 {
        match self.hop_limit {
            0..=64 => 64,
            65..=128 => 128,
            _ => 255,
        }
    }

    /// Returns the number of routers passed.
    const fn passed(self) -> u8 {
        self.start() - self.hop_limit
    }
}

/// A CNP, with the properties that its maker is inferred from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cnp {
    from: IpAddr,
    to: IpAddr,
    point: CapturePoint,
    marks: Option<PathMarks>,
    /// Its origin; if that is ambiguous, the one other than the receiver.
    origin: Origin,
    /// The flow's receiver, if the flow is known.
    receiver: Option<IpAddr>,
    /// QP of the flow at its receiver.
    receiver_qp: Option<Qp>,
    /// Time of capture, in nanoseconds since the epoch.
    at: u64,
    /// True if it may answer a CE mark.
    marked: bool,
    /// Time of its flow's first data packet, if no earlier data can have been missed.
    first: Option<u64>,
    /// True if the flow passed on the receiver's link, unmarked, before and after it.
    unmarked: bool,
    /// True if a packet of the receiver took its path before it.
    path_known: bool,
}

/// Captured data of a CNP's flow.
#[derive(Clone, Copy, Debug)]
pub struct SeenData {
    /// Time of its first data packet.
    pub first: u64,
    /// Time of the last unanswered CE mark, in nanoseconds since the epoch.
    pub unanswered: Option<u64>,
    /// True if the setup of its connection was captured, so that nothing came before that packet.
    pub whole: bool,
}

impl Cnp {
    /// Returns a CNP captured at `at`.
    #[must_use]
    pub fn new(
        (at, place): (u64, CapturePoint),
        marks: Option<PathMarks>,
        (gist, attribution): (&Notification, &Attribution),
        flow: Option<&FlowKey>,
        data: Option<SeenData>,
    ) -> Self {
        let translator = attribution.translates.map(|request| request.translator());
        let is_answer = |mark: u64| at.checked_sub(mark).is_some_and(|delay| delay <= WITHIN);
        Self {
            from: gist.notifier,
            to: gist.destination,
            point: place,
            marks,
            origin: translator.unwrap_or(attribution.origin),
            receiver: flow.map(|flow| flow.receiver),
            receiver_qp: flow.map(|flow| flow.receiver_qp),
            at,
            marked: data.and_then(|data| data.unanswered).is_some_and(is_answer),
            first: data.filter(|data| data.whole).map(|data| data.first),
            unmarked: false,
            path_known: false,
        }
    }

    /// Returns true if another CNP differs from it only in the mark that it answers.
    fn is_like(&self, other: &Self) -> bool {
        let signs = |cnp: &Self| (cnp.from, cnp.to, cnp.point, cnp.marks, cnp.path_known);
        let about = |cnp: &Self| (cnp.origin, cnp.receiver, cnp.receiver_qp);
        signs(self) == signs(other) && about(self) == about(other)
    }

    fn flow(&self) -> Option<FlowKey> {
        Some(FlowKey {
            sender: self.to,
            receiver: self.receiver?,
            receiver_qp: self.receiver_qp?,
        })
    }

    /// Returns true if it comes from the flow's receiver; `None` if the flow is unknown.
    fn is_from_receiver(&self) -> Option<bool> {
        self.receiver.map(|receiver| receiver == self.from)
    }

    /// Returns the maker of a CNP that the receiver did not generate: the only remaining candidate.
    fn attribute_elsewhere(&self, evidence: Evidence) -> Inference {
        let maker = self.translator().unwrap_or(Maker::Network);
        Inference { maker, evidence }
    }

    const fn translator(&self) -> Option<Maker> {
        match self.origin {
            Origin::Proxy => Some(Maker::Proxy),
            Origin::IngressPe => Some(Maker::IngressPe),
            _ => None,
        }
    }
}

/// The packets from one host to another, at one capture point.
#[derive(Clone, Copy, Debug)]
struct Direction {
    count: u16,
    /// Number of routers passed.
    least: u8,
    most: u8,
    /// Initial value of hop limits; 0 if there are several.
    start: u8,
    mac: Mac,
    /// The first paths taken, and the last time of each.
    paths: [u16; PATHS],
    last: [Moment; PATHS],
    /// Time of its latest packet.
    latest: Moment,
}

/// A time in units of 1,024 ns, comparable with others within half an hour.
#[derive(Clone, Copy, Debug)]
struct Moment(u32);

impl Moment {
    const fn new(at: u64) -> Self {
        Self((at >> 10) as u32)
    }

    const fn is_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i32 > 0
    }
}

impl Direction {
    const NEW: Self = Self {
        count: 0,
        least: u8::MAX,
        most: 0,
        start: 0,
        mac: Mac::NONE,
        paths: [NO_PATH; PATHS],
        last: [Moment(0); PATHS],
        latest: Moment(0),
    };

    /// Returns true if its packets have passed no router.
    const fn is_at_source(&self) -> bool {
        self.count >= ENOUGH && self.most == 0
    }

    /// Returns true if this is its source's own link: the `data` that it answers has passed a
    /// router, and its own packets none.
    fn is_on_link_beside(&self, data: &Self) -> bool {
        self.is_at_source() && (1..=MAX_ROUTERS).contains(&data.least)
    }

    /// Returns true if the number of routers that a CNP passed can be compared with that of its
    /// packets.
    const fn is_comparable(&self, marks: PathMarks) -> bool {
        let same_start =
            self.start == marks.start() && self.most.saturating_sub(marks.passed()) <= MAX_ROUTERS;
        same_start || self.start != 0 && self.most <= MAX_ROUTERS
    }

    /// Returns true if there is room for another path.
    fn has_room_for_path(&self) -> bool {
        self.paths.contains(&NO_PATH)
    }

    /// Returns the last time that one of its packets took the same path.
    fn last_use_of_path(&self, marks: PathMarks) -> Option<Moment> {
        let path = self.paths.iter().position(|path| *path == marks.path)?;
        self.last.get(path).copied()
    }

    /// Records that a path was taken at `at`, if it is one of the first.
    fn record_path(&mut self, at: u64, marks: PathMarks) {
        self.latest = Moment::new(at);
        let is_its = |path: &u16| *path == marks.path || *path == NO_PATH;
        if let Some(place) = self.paths.iter().position(is_its)
            && let (Some(path), Some(last)) = (self.paths.get_mut(place), self.last.get_mut(place))
        {
            (*path, *last) = (marks.path, Moment::new(at));
        }
    }
}

/// The packets between two hosts at one capture point: those of the host with the lower address,
/// and those of the other.
type Directions = [Direction; 2];

/// A flow's data at the capture point nearest to its receiver: the last one that packets pass, by
/// their hop limits.
#[derive(Clone, Copy, Debug)]
struct Watch {
    point: CapturePoint,
    /// Number of routers passed before it.
    passed: u8,
    /// True if the flow began there with the first packet that was watched anywhere.
    is_whole: bool,
    /// Time and PSN of that packet.
    first: (u64, u32),
    /// PSN of the next packet.
    next: u32,
    /// Start and end of the time in which no PSN is missing and no packet marked CE, in nanoseconds
    /// since the epoch.
    since: u64,
    last: u64,
    /// A packet captured at another capture point, but not at this one yet: time, PSN or
    /// [`NO_PSN`], and capture point.
    probe: (u64, u32, CapturePoint),
    /// Transit time of the last such packet, in nanoseconds or [`UNCLEAR`], and the capture point
    /// that it came from: this capture point's clock is ahead by at most that much.
    transit: (u32, CapturePoint),
    /// True if a CNP about the flow was captured there.
    has_cnps: bool,
}

/// Stands for no PSN.
const NO_PSN: u32 = u32::MAX;
/// Stands for no time.
const UNCLEAR: u32 = u32::MAX;

impl Watch {
    const fn new(at: u64, (place, passed): (CapturePoint, u8), psn: u32) -> Self {
        Self {
            point: place,
            passed,
            is_whole: true,
            first: (at, psn),
            next: psn,
            since: at,
            last: at,
            probe: (at, NO_PSN, place),
            transit: (UNCLEAR, place),
            has_cnps: false,
        }
    }

    fn see(&mut self, at: u64, (place, passed): (CapturePoint, u8), psn: u32, ce: bool) {
        if place != self.point {
            if passed <= self.passed {
                self.see_before(at, place, psn);
                return;
            }
            *self = Self {
                is_whole: psn == self.first.1,
                first: self.first,
                ..Self::new(at, (place, passed), psn)
            };
        }
        if is_ahead(self.next, psn) || ce || at < self.last {
            (self.since, self.is_whole) = (at, false);
        }
        self.next = psn.wrapping_add(1) & 0xFF_FFFF;
        self.last = at;
        let (since, probe, from) = self.probe;
        if probe == psn {
            let time = at.checked_sub(since).map(u32::try_from);
            self.transit = (time.and_then(Result::ok).unwrap_or(UNCLEAR), from);
        }
        if probe != NO_PSN && !is_ahead(psn, probe) {
            self.probe.1 = NO_PSN;
        }
    }

    /// Records a packet of the flow at another capture point, upstream of this one by its hop
    /// limit.
    fn see_before(&mut self, at: u64, point: CapturePoint, psn: u32) {
        let (_, probe, _) = self.probe;
        if psn != self.next && !is_ahead(self.next, psn) {
            // By the clocks it comes back from here, or it is a retransmission.
            self.transit.0 = UNCLEAR;
        } else if probe == NO_PSN || probe == psn {
            self.probe = (at, psn, point);
        }
    }

    /// Returns true if a CNP at `at` cannot answer a mark that passed here; `first` is the start of
    /// the flow, if that was captured.
    fn excludes_marks(&self, (at, place): (u64, CapturePoint), first: Option<u64>) -> bool {
        let is_whole = self.is_whole && first == Some(self.first.0);
        let least = if is_whole { 0 } else { WITHIN };
        let (transit, from) = self.transit;
        transit != UNCLEAR
            && from == place
            && at.saturating_add(transit.into()) <= self.last
            && at.checked_sub(self.since).is_some_and(|time| time >= least)
    }
}

/// Returns true if a PSN is ahead of another, modulo 2^24.
const fn is_ahead(of: u32, psn: u32) -> bool {
    let ahead = psn.wrapping_sub(of) & 0xFF_FFFF;
    ahead > 0 && ahead < 0x80_0000
}

/// Properties of the packets of hosts, by capture point.
///
/// Bounded: at most `limit` pairs of hosts, of 250 octets each, and as many flows, of 170; the
/// least recently used are evicted first.
#[derive(Debug)]
pub struct Origins {
    ways: Bounded<(IpAddr, IpAddr, CapturePoint), Directions>,
    /// Data nearest to receivers, if there are several capture points.
    watches: Bounded<FlowKey, Watch>,
    /// Number of paths found to be as long as others between the same hosts, and of those found not
    /// to be.
    alike: u32,
    unlike: u32,
    /// Number of packets inspected.
    looks: u32,
}

impl Origins {
    /// Returns one that remembers at most `limit` pairs of hosts.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            ways: Bounded::new(limit),
            watches: Bounded::new(limit),
            alike: 0,
            unlike: 0,
            looks: 0,
        }
    }

    /// Returns true if a packet of that PSN is inspected: all at first, then those of an eighth of
    /// the PSNs, the same for data and for acknowledgements. Inspecting all of them cost fcn-top
    /// 10 % more instructions per packet; this way it is 2 %.
    #[inline]
    fn is_inspected(&self, psn: u32) -> bool {
        self.looks < FIRST || psn.wrapping_mul(0x9E37_79B1) >> 29 == 0
    }

    /// Processes a data packet at any capture point; `several` is true with several capture points,
    /// `ce` if it is marked CE.
    #[inline]
    pub fn data(
        &mut self,
        at: u64,
        point: CapturePoint,
        frame: &Frame<'_>,
        (data, bth): (&DataPacket<'_>, &Bth<'_>),
        (several, ce): (bool, bool),
    ) {
        // Packets that request an acknowledgement suffice to know a host's properties.
        let looks = bth.ack_request() && self.is_inspected(bth.psn());
        if !looks && !several {
            return;
        }
        let Some(marks) = PathMarks::from_frame(frame) else {
            return;
        };
        if looks {
            self.see(at, point, (data.source, data.destination), marks);
        }
        if several {
            let (here, psn) = ((point, marks.passed()), bth.psn());
            let watch =
                (self.watches).get_or_insert_with(data.flow(), at, || Watch::new(at, here, psn));
            watch.see(at, here, psn, ce);
        }
    }

    /// Processes an acknowledgement at any capture point.
    #[inline]
    pub fn acknowledged(&mut self, at: u64, point: CapturePoint, frame: &Frame<'_>, bth: &Bth<'_>) {
        let Some(ip) = frame.ip() else {
            return;
        };
        let (from, to) = (ip.source, ip.destination);
        // A host also answers marks on packets that acknowledge its own data.
        if Ecn::from_bits(ip.ecn()) == Ecn::Ce
            && let Some(watch) = self.watches.get_mut(&FlowKey {
                sender: from,
                receiver: to,
                receiver_qp: bth.dest_qp(),
            })
        {
            (watch.since, watch.is_whole) = (at.max(watch.since), false);
        }
        if self.is_inspected(bth.psn())
            && let Some(marks) = PathMarks::from_frame(frame)
        {
            self.see(at, point, (from, to), marks);
        }
    }

    /// Processes a CNP at any capture point, and stores in it the evidence from before it.
    pub fn notified(&mut self, cnp: &mut Cnp) {
        let directions = self.directions(cnp.point, (cnp.from, cnp.to));
        let last_use = |signs| directions?.0.last_use_of_path(signs);
        cnp.path_known = cnp.marks.and_then(last_use).is_some();
        if let Some(flow) = cnp.flow()
            && let Some(watch) = self.watches.get_mut(&flow)
        {
            watch.has_cnps |= watch.point == cnp.point;
        }
    }

    /// Records a packet from `from` to `to` at `point`.
    fn see(
        &mut self,
        at: u64,
        point: CapturePoint,
        (from, to): (IpAddr, IpAddr),
        marks: PathMarks,
    ) {
        self.looks = self.looks.saturating_add(1);
        let (key, is_upper) = pair(from, to);
        let ways =
            (self.ways).get_or_insert_with((key.0, key.1, point), at, || [Direction::NEW; 2]);
        let [lower, upper] = ways;
        let own = if is_upper { upper } else { lower };
        let passed = marks.passed();
        if own.count == 0 {
            (own.start, own.mac) = (marks.start(), marks.mac);
        } else {
            if own.start != marks.start() {
                own.start = 0;
            }
            if own.mac != marks.mac {
                own.mac = Mac::SEVERAL;
            }
            if (passed, passed) != (own.least, own.most) {
                self.unlike = self.unlike.saturating_add(1);
            } else if passed > 0 && own.last_use_of_path(marks).is_none() && own.has_room_for_path()
            {
                // Before the first router, paths do not differ in length yet.
                self.alike = self.alike.saturating_add(1);
            }
        }
        own.count = own.count.saturating_add(1);
        own.record_path(at, marks);
        (own.least, own.most) = (own.least.min(passed), own.most.max(passed));
    }

    /// Returns the packets from `from` to `to` at `point`, and those in the opposite direction.
    fn directions(
        &self,
        point: CapturePoint,
        (from, to): (IpAddr, IpAddr),
    ) -> Option<(&Direction, &Direction)> {
        let (key, is_upper) = pair(from, to);
        let [lower, upper] = self.ways.get(&(key.0, key.1, point))?;
        Some(match is_upper {
            true => (upper, lower),
            false => (lower, upper),
        })
    }

    /// Stores in a CNP whether marks of its flow are excluded as far as known: the next
    /// notification or mark may change that.
    pub fn settle(&self, cnp: &mut Cnp) {
        cnp.unmarked |= self.is_unmarked(cnp);
    }

    fn is_unmarked(&self, cnp: &Cnp) -> bool {
        self.watch_of(cnp).is_some_and(|watch| {
            watch.excludes_marks((cnp.at, cnp.point), cnp.first) && self.is_on_link(watch, cnp)
        })
    }

    /// Returns true if a CNP's flow is watched on its receiver's link.
    fn is_on_link(&self, watch: &Watch, cnp: &Cnp) -> bool {
        let ways = |receiver| self.directions(watch.point, (receiver, cnp.to));
        (cnp.receiver.and_then(ways)).is_some_and(|(own, data)| own.is_on_link_beside(data))
    }

    fn watch_of(&self, cnp: &Cnp) -> Option<&Watch> {
        self.watches.get(&cnp.flow()?)
    }

    /// Returns the evidence from the receiver's link that a CNP is not the receiver's: no CNP about
    /// the flow passed there, and no mark that requests one.
    fn against_receiver(&self, cnp: &Cnp) -> Option<Evidence> {
        let watch = self.watch_of(cnp);
        if watch.is_some_and(|watch| watch.has_cnps) {
            return None;
        }
        if cnp.unmarked || self.is_unmarked(cnp) {
            return Some(Evidence::NoMark);
        }
        watch
            .filter(|watch| watch.point != cnp.point && self.is_on_link(watch, cnp))
            .map(|_| Evidence::NotOnItsLink)
    }

    /// Returns the maker of a CNP, from all packets so far.
    #[must_use]
    pub fn judge(&self, cnp: &Cnp) -> Inference {
        let known = self.directions(cnp.point, (cnp.from, cnp.to));
        if let Some(maker) = cnp
            .translator()
            .filter(|_| cnp.is_from_receiver() != Some(true))
        {
            return Inference {
                maker,
                evidence: Evidence::Request,
            };
        }
        // A host that acknowledges the sender's data, or is sent data, is a receiver: QPs may have
        // several, at once or one after another. An InfiniBand port may have several local
        // identifiers.
        let is_receiver = known.is_some_and(|(own, data)| own.count > 0 || data.count > 0);
        let has_other_name = cnp.is_from_receiver() == Some(false);
        let is_strange = has_other_name && !is_receiver && lid_of_address(cnp.from).is_none();
        let evidence = match (known, cnp.marks) {
            _ if is_strange => self.compare_address(cnp),
            (Some((own, data)), Some(signs)) => self.compare(cnp, signs, own, data),
            (_, None) => Evidence::NoSigns,
            _ => Evidence::NothingAlike,
        };
        // The known receiver's link says nothing about another receiver of the QP.
        let against = match has_other_name && !is_strange {
            true => None,
            false => self.against_receiver(cnp),
        };
        let maker = match (evidence, against) {
            (Evidence::OnItsLink | Evidence::SecondAddress(_), _) => Maker::Receiver,
            (
                Evidence::Nearer { .. } | Evidence::OtherMac(_) | Evidence::OtherAddress { .. },
                _,
            ) => return cnp.attribute_elsewhere(evidence),
            // The flow that it is about is unknown.
            (Evidence::NothingAlike | Evidence::NoSigns, _)
                if !is_strange && cnp.is_from_receiver() != Some(true) =>
            {
                return Inference::unknown(Evidence::NoFlow);
            }
            (_, Some(Evidence::NoMark)) => return cnp.attribute_elsewhere(Evidence::NoMark),
            (Evidence::Alike, Some(against)) => return Inference::unknown(against),
            // A node that was notified just before may speak in the receiver's name.
            (Evidence::Alike, None)
                if cnp.is_from_receiver() == Some(true) && cnp.translator().is_none() =>
            {
                Maker::ReceiverOrImitation
            }
            _ => Maker::Unknown,
        };
        Inference { maker, evidence }
    }

    /// Compares a CNP from another address than the flow's receiver with the receiver's packets: a
    /// NIC may have several addresses.
    fn compare_address(&self, cnp: &Cnp) -> Evidence {
        let own =
            (cnp.receiver).and_then(|receiver| self.directions(cnp.point, (receiver, cnp.to)));
        let Some(signs) = cnp.marks else {
            return Evidence::NoSigns;
        };
        let Some((own, data)) = own else {
            return Evidence::NothingAlike;
        };
        if own.count < ENOUGH {
            return Evidence::NothingAlike;
        }
        let (passed, receiver) = (signs.passed(), own.least);
        match Macs::of(signs, own).filter(|_| own.is_at_source()) {
            // On its own link a receiver may have another port.
            Some(macs) if macs.differ() && !own.is_on_link_beside(data) => {
                return Evidence::OtherMac(macs);
            }
            Some(macs) if !macs.differ() && passed == 0 => {
                return Evidence::SecondAddress(macs.cnp);
            }
            _ => {}
        }
        // Paths also depend on addresses: they have to be of one length.
        let is_one_length = self.unlike == 0 || own.least == own.most && !own.has_room_for_path();
        match passed < receiver && own.is_comparable(signs) && is_one_length {
            true => Evidence::OtherAddress { passed, receiver },
            false => Evidence::AddressUnclear,
        }
    }

    /// Compares a CNP in the receiver's name with the receiver's packets, and the data that they
    /// answer.
    fn compare(&self, cnp: &Cnp, marks: PathMarks, own: &Direction, data: &Direction) -> Evidence {
        if own.count < ENOUGH {
            return Evidence::NothingAlike;
        }
        let (passed, receiver) = (marks.passed(), own.least);
        let macs = Macs::of(marks, own);
        let unlike = macs.filter(|macs| macs.differ());
        if let Some(macs) = unlike.filter(|_| own.is_at_source()) {
            // On its own link a receiver may have another port.
            return match own.is_on_link_beside(data) {
                true => Evidence::MacUnlike(macs),
                false => Evidence::OtherMac(macs),
            };
        }
        let comparable = own.is_comparable(marks);
        let last_use = own.last_use_of_path(marks);
        let all_alike = self.unlike == 0 && self.alike >= MIN_EQUAL_PATHS;
        if passed < receiver && comparable && (last_use.is_some() || all_alike) {
            let last = (last_use.filter(|_| cnp.path_known)).or(all_alike.then_some(own.latest));
            let is_between = last.is_some_and(|last| last.is_after(Moment::new(cnp.at)));
            return match is_between {
                true => Evidence::Nearer {
                    passed,
                    receiver,
                    // Before the first router it is its maker's own.
                    macs: unlike.filter(|_| passed == 0),
                },
                false => Evidence::RouteUnclear,
            };
        }
        let is_like = own.least <= passed && passed <= own.most;
        let on_its_link = own.mac.is_one() && own.is_on_link_beside(data);
        // The mark that it answers passed here, unless a switch that does not route marks behind
        // this capture point, and perhaps generates the CNP itself.
        if is_like && on_its_link && cnp.marked && cnp.is_from_receiver() != Some(false) {
            return Evidence::OnItsLink;
        }
        let several = own.least != own.most || own.mac == Mac::SEVERAL && own.most == 0;
        match unlike {
            _ if !is_like || !comparable => Evidence::OtherPath,
            _ if several => Evidence::Varied,
            Some(macs) => Evidence::MacUnlike(macs),
            None => Evidence::Alike,
        }
    }
}

/// Returns two hosts in the order of their addresses; true if the first one is the upper.
fn pair(from: IpAddr, to: IpAddr) -> ((IpAddr, IpAddr), bool) {
    match from > to {
        true => ((to, from), true),
        false => ((from, to), false),
    }
}

/// Makers of the CNPs about one QP.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Number by maker.
    counts: [u32; Maker::ALL.len()],
    /// Number of those of an unknown maker, before any of a known one, that there was nothing to
    /// compare with yet, or whose flow was unknown.
    early: u32,
    /// The last inference with a known maker; the receiver or an imitation only if there is no
    /// other.
    known: Option<Inference>,
    /// The last CNP, judged after the next one has come: packets in between are evidence, too.
    last: Option<Cnp>,
    /// Number of CNPs just before it that are like it, and whose route is unclear as long as its
    /// own is.
    before: u32,
}

impl Tally {
    /// A tally without CNPs.
    pub const NEW: Self = Self {
        counts: [0; Maker::ALL.len()],
        early: 0,
        known: None,
        last: None,
        before: 0,
    };

    /// Counts a CNP.
    pub fn add(&mut self, cnp: Cnp, origins: &Origins) {
        if let Some(last) = self.last.replace(cnp) {
            let inference = origins.judge(&last);
            if inference.evidence == Evidence::RouteUnclear && cnp.is_like(&last) {
                self.before = self.before.saturating_add(1);
            } else {
                self.count(&last, inference);
            }
        }
    }

    fn count(&mut self, cnp: &Cnp, inference: Inference) {
        let before = core::mem::take(&mut self.before);
        self.count_some(1, cnp, inference);
        if before > 0 {
            let inference = match inference.evidence {
                Evidence::Nearer { .. } => inference,
                _ => Inference::unknown(Evidence::RouteUnclear),
            };
            self.count_some(before, cnp, inference);
        }
    }

    fn count_some(&mut self, number: u32, cnp: &Cnp, inference: Inference) {
        let count = &mut self.counts[inference.maker as usize];
        *count = count.saturating_add(number);
        if inference.maker != Maker::Unknown {
            let is_open = |known: Inference| known.maker.is_open();
            if self.known.is_none_or(is_open) || !inference.maker.is_open() {
                self.known = Some(inference);
            }
            return;
        }
        let is_incomparable = match inference.evidence {
            Evidence::NothingAlike => true,
            Evidence::RouteUnclear => !cnp.path_known,
            _ => cnp.receiver.is_none(),
        };
        if is_incomparable && self.known.is_none() {
            self.early = self.early.saturating_add(number);
        }
    }

    /// Returns the maker of the CNPs, from all packets so far; `None` if there are none.
    #[must_use]
    pub fn judge(&self, origins: &Origins) -> Option<Inference> {
        let cnp = self.last.as_ref()?;
        let last = origins.judge(cnp);
        let mut all = self.clone();
        // Packets after the last CNP may still reveal its maker.
        if self.known.is_none_or(|known| known.maker == last.maker) || !last.maker.is_open() {
            all.count(cnp, last);
        }
        let Some(known) = all.known else {
            return Some(last);
        };
        let maker = Maker::of(&all.counts, all.early);
        // A few others without evidence against the maker are not reported.
        let is_said = |other: &Maker| *other == maker || other.is_open();
        let is_one =
            (Maker::ALL.iter().zip(all.counts)).all(|(other, count)| count == 0 || is_said(other));
        Some(match is_one && known.maker == maker {
            true => known,
            false => Inference {
                maker,
                evidence: Evidence::Several(all.counts),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ICRC, RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, build};
    use fcn_wire::bth::BthRepr;
    use fcn_wire::compose::{Part, UdpChecksum};
    use fcn_wire::{Kind, LinkType, Message, Opcode, Profile, Qp, Subject};

    const HERE: CapturePoint = CapturePoint::new(0);
    const QP: Qp = Qp::truncate(0x222);
    const US: u64 = 1_000;
    /// Last octet of MAC addresses.
    const NIC: u8 = 9;
    const ROUTER: u8 = 1;

    /// A captured packet.
    #[derive(Clone, Copy)]
    struct Passing {
        v4: bool,
        back: bool,
        opcode: Opcode,
        psn: u32,
        hop_limit: u8,
        mac: u8,
        port: u16,
        ce: bool,
    }

    const ACK: Passing = Passing {
        v4: false,
        back: true,
        opcode: Opcode::RC_ACKNOWLEDGE,
        psn: 7,
        hop_limit: 61,
        mac: ROUTER,
        port: 0xC001,
        ce: false,
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
                    tos: 2 | u8::from(self.ce),
                    ttl: self.hop_limit,
                    id: 0,
                    options: &[],
                },
                (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                    source,
                    destination,
                    traffic_class: 2 | u8::from(self.ce),
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

        fn signs(self) -> PathMarks {
            self.with(|frame| PathMarks::from_frame(frame).unwrap())
        }
    }

    fn see(origins: &mut Origins, at: u64, point: CapturePoint, packet: Passing) {
        see_data(origins, at, point, packet, (false, false));
    }

    fn see_data(
        origins: &mut Origins,
        at: u64,
        point: CapturePoint,
        packet: Passing,
        several_and_ce: (bool, bool),
    ) {
        packet.with(|frame| {
            let Message::Roce(bth, _) = frame.message() else {
                panic!("RoCEv2");
            };
            match DataPacket::from_frame(frame) {
                Some(data) => origins.data(at, point, frame, (&data, &bth), several_and_ce),
                None => origins.acknowledged(at, point, frame, &bth),
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

    /// A CNP like `packet`, at `at` after the flow's first data.
    fn cnp(packet: Passing, origin: Origin, at: u64) -> Cnp {
        cnp_behind(packet, origin, at, None)
    }

    /// The same, with the time of the flow's last unanswered mark.
    fn cnp_behind(packet: Passing, origin: Origin, at: u64, unanswered: Option<u64>) -> Cnp {
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
            hops: None,
        };
        let flow = FlowKey {
            sender: destination,
            receiver: notifier,
            receiver_qp: QP,
        };
        let data = SeenData {
            first: 0,
            unanswered,
            whole: true,
        };
        let signs = Some(packet.signs());
        let attribution = Attribution {
            origin,
            translates: None,
            is_translation: false,
            answers: true,
        };
        let by = (&gist, &attribution);
        let cnp = Cnp::new((at, HERE), signs, by, Some(&flow), Some(data));
        Cnp {
            path_known: true,
            ..cnp
        }
    }

    fn judge(origins: &Origins, packet: Passing) -> Inference {
        let cnp = cnp(packet, Origin::Receiver, 5 * US);
        origins.judge(&cnp)
    }

    const ALIKE: Inference = Inference {
        maker: Maker::ReceiverOrImitation,
        evidence: Evidence::Alike,
    };

    const fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    fn on_the_way(evidence: Evidence) -> Inference {
        Inference {
            maker: Maker::Network,
            evidence,
        }
    }

    #[test]
    fn fewer_routers_on_the_same_path_mean_a_nearer_node() {
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
                    macs: None,
                })
            };
            assert_eq!(passing(63, ack.port), nearer(1));
            assert_eq!(passing(254, ack.port), nearer(1), "starts at 255");
            // A NIC may use another initial value for CNPs, and switches may copy.
            for hop_limit in [61, 252, 125] {
                assert_eq!(passing(hop_limit, ack.port), ALIKE);
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
    fn equal_paths_are_interchangeable() {
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
            macs: None,
        });
        assert_eq!(judge(&paths(&[]), other), nearer);
        let last = cnp(other, Origin::Receiver, 195 * US);
        let unclear = Inference::unknown(Evidence::RouteUnclear);
        assert_eq!(paths(&[]).judge(&last), unclear, "none behind it");
        let unlike = paths(&[5]);
        assert_eq!(
            judge(&unlike, other),
            Inference::unknown(Evidence::OtherPath)
        );
        let within = Passing {
            hop_limit: 60,
            ..ACK
        };
        assert_eq!(judge(&unlike, within), Inference::unknown(Evidence::Varied));
    }

    #[test]
    fn a_route_may_have_become_shorter() {
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let mut origins = after(&[ACK; 3]);
        let unclear = Inference::unknown(Evidence::RouteUnclear);
        let mut tally = Tally::NEW;
        for at in [25, 28, 31] {
            let cnp = cnp(nearer, Origin::Receiver, at * US);
            assert_eq!(origins.judge(&cnp), unclear);
            tally.add(cnp, &origins);
        }
        assert_eq!(tally.judge(&origins), Some(unclear));
        // Another path gives no information.
        let other = Passing { port: 0, ..ACK };
        see(&mut origins, 35 * US, HERE, other);
        assert_eq!(tally.judge(&origins), Some(unclear));
        let later = tally.clone();
        see(&mut origins, 40 * US, HERE, ACK);
        let maker = tally.judge(&origins).map(|judged| judged.maker);
        assert_eq!(maker, Some(Maker::Network));
        tally.add(cnp(ACK, Origin::Receiver, 41 * US), &origins);
        assert_eq!(tally.counts[Maker::Network as usize], 3);
        // It has become shorter.
        let mut origins = after(&[ACK; 3]);
        see(&mut origins, 40 * US, HERE, nearer);
        let varied = Inference::unknown(Evidence::Varied);
        assert_eq!(later.judge(&origins), Some(varied));
    }

    #[test]
    fn a_route_may_have_become_longer() {
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let mut origins = after(&[Passing { port: 0, ..ACK }; 3]);
        let mut cnp = cnp(nearer, Origin::Receiver, 25 * US);
        origins.notified(&mut cnp);
        see(&mut origins, 40 * US, HERE, ACK);
        let unclear = Inference::unknown(Evidence::RouteUnclear);
        assert_eq!(origins.judge(&cnp), unclear);
        origins.notified(&mut cnp);
        assert_eq!(origins.judge(&cnp).maker, Maker::Network);
    }

    #[test]
    fn another_receiver_of_a_qp_is_not_a_switch() {
        let another = |hop_limit| Cnp {
            receiver: Some(SWITCH.into()),
            ..cnp(Passing { hop_limit, ..ACK }, Origin::Receiver, 5 * US)
        };
        let origins = after(&[ACK; 3]);
        let alike = Inference::unknown(Evidence::Alike);
        assert_eq!(origins.judge(&another(61)), alike);
        assert_eq!(origins.judge(&another(63)).maker, Maker::Network);
        let nothing = Inference::unknown(Evidence::NothingAlike);
        assert_eq!(after(&[]).judge(&another(61)), nothing);
        // Another receiver, whose acknowledgements take another path, is sent data.
        let no_flow = Inference::unknown(Evidence::NoFlow);
        assert_eq!(after(&[DATA; 3]).judge(&another(61)), no_flow);
        // An InfiniBand port has several identifiers.
        let lid = Cnp {
            from: fcn_wire::infiniband::address_of_lid(0x2C),
            ..another(61)
        };
        assert_eq!(after(&[]).judge(&lid), no_flow);
    }

    #[test]
    fn unusual_initial_hop_limits_are_not_compared() {
        // A NIC with an initial hop limit of 100.
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
        // A NIC with an initial hop limit of 16.
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
    fn mac_addresses_are_compared_before_the_first_router() {
        let own = Passing {
            hop_limit: 64,
            mac: NIC,
            ..ACK
        };
        // In one network, both ends look alike.
        let bridged = after(&[own; 3]);
        let other = Passing { mac: ROUTER, ..own };
        assert_eq!(judge(&bridged, own), ALIKE);
        let forged = judge(&bridged, other);
        let macs = Macs {
            cnp: mac(ROUTER),
            receiver: mac(NIC),
        };
        assert_eq!(forged, on_the_way(Evidence::OtherMac(macs)));
        assert_eq!(
            forged.evidence.to_string(),
            "its source MAC address is 02:00:00:00:00:01; the receiver's packets have 02:00:00:00:00:09 and have passed no router yet"
        );
        // Data has passed a router: this is the receiver's link.
        let routed = Passing {
            hop_limit: 60,
            ..DATA
        };
        let link = after(&[routed, own, own, own]);
        let receiver = Inference {
            maker: Maker::Receiver,
            evidence: Evidence::OnItsLink,
        };
        let at = 1_000_000 * US;
        let behind = |mark| cnp_behind(own, Origin::Receiver, at, Some(mark));
        let answer = behind(at - WITHIN);
        assert_eq!(link.judge(&answer), receiver);
        // One mark is not the cause of all later CNPs.
        let late = behind(at - WITHIN - 1);
        assert_eq!(link.judge(&late), ALIKE);
        // Nothing to answer: a switch that does not route may mark behind this capture point.
        assert_eq!(judge(&link, own), ALIKE);
        // Another port of the receiver, or a switch.
        let unlike = Inference::unknown(Evidence::MacUnlike(macs));
        assert_eq!(judge(&link, other), unlike);
        // A mirror of several ports.
        let mirror = after(&[routed, own, other, own, own]);
        let varied = Inference::unknown(Evidence::Varied);
        assert_eq!(mirror.judge(&answer), varied);
        // Elsewhere MAC addresses are those of routers.
        let behind = after(&[ACK; 3]);
        let other = judge(&behind, Passing { mac: 2, ..ACK });
        assert_eq!(other.maker, Maker::Unknown);
        assert!(matches!(other.evidence, Evidence::MacUnlike(_)));
        // In one network with the sender, MAC addresses are the nodes' own.
        let forged = Passing {
            mac: 2,
            hop_limit: 64,
            ..ACK
        };
        let behind = after(&[ACK; 3]);
        let text = judge(&behind, forged).evidence.to_string();
        let expected = "routers passed, by hop limit: 0; by the receiver's packets: at least 3; its source MAC address is 02:00:00:00:00:02; the receiver's packets have 02:00:00:00:00:01";
        assert_eq!(text, expected);
        // Any of several routers at the same distance may have passed it on.
        let bundle = after(&[ACK, Passing { mac: 2, ..ACK }, ACK]);
        assert_eq!(judge(&bundle, ACK), ALIKE);
    }

    /// Packets of a flow on the sender's link, one per 1 ms, and soon after that on the receiver's
    /// link if `is_seen` returns true: PSNs from `from` up to `to`.
    fn watched(
        origins: &mut Origins,
        (from, to): (u32, u32),
        is_seen: impl Fn(u32) -> bool,
        is_marked: impl Fn(u32) -> bool,
    ) {
        let link = CapturePoint::new(1);
        for psn in from..to {
            let at = u64::from(psn) * MS;
            let data = Passing { psn, ..DATA };
            see_data(origins, at, HERE, data, (true, false));
            if is_seen(psn) {
                let there = Passing {
                    hop_limit: 61,
                    ..data
                };
                see_data(origins, at + US, link, there, (true, is_marked(psn)));
                let ack = Passing {
                    hop_limit: 64,
                    mac: NIC,
                    psn,
                    ..ACK
                };
                see(origins, at + 2 * US, link, ack);
            }
            see(origins, at + 3 * US, HERE, Passing { psn, ..ACK });
        }
    }

    /// Makers of CNPs like the receiver's, each a tenth of a millisecond after the packet with that
    /// PSN.
    fn makers<const N: usize>(origins: &Origins, behind: [u32; N]) -> [Maker; N] {
        behind.map(|psn| {
            let at = u64::from(psn) * MS + 100 * US;
            origins.judge(&cnp(ACK, Origin::Receiver, at)).maker
        })
    }

    const MS: u64 = 1_000 * US;
    const ALL: fn(u32) -> bool = |_| true;
    const NONE: fn(u32) -> bool = |_| false;

    #[test]
    fn the_receiver_sends_no_cnp_without_marks_on_its_link() {
        use Maker::{Network, Unknown};
        let seen = |is_seen: &dyn Fn(u32) -> bool, is_marked: &dyn Fn(u32) -> bool| {
            let mut origins = Origins::new(16);
            watched(&mut origins, (0, 100), is_seen, is_marked);
            origins
        };
        let all = seen(&ALL, &NONE);
        assert_eq!(makers(&all, [0, 50, 98]), [Network; 3]);
        assert_eq!(makers(&all, [99]), [Unknown], "no data behind it yet");
        let last = cnp(ACK, Origin::Receiver, 99 * MS + 100 * US);
        assert_eq!(all.judge(&last).evidence, Evidence::NotOnItsLink);
        let evidence = all.judge(&cnp(ACK, Origin::Receiver, 50 * MS)).evidence;
        assert_eq!(evidence, Evidence::NoMark);
        // Watched before, after, and around them.
        assert_eq!(makers(&seen(&|psn| psn < 50, &NONE), [60]), [Unknown]);
        let behind = seen(&|psn| psn >= 50, &NONE);
        assert_eq!(makers(&behind, [40, 55, 70]), [Unknown, Unknown, Network]);
        let around = seen(&|psn| !(40..60).contains(&psn), &NONE);
        assert_eq!(makers(&around, [50, 65, 75]), [Unknown, Unknown, Network]);
        // Thinned, and without the marked packets.
        let thinned = seen(&|psn| psn % 16 == 0, &NONE);
        assert_eq!(makers(&thinned, [50, 96]), [Unknown; 2]);
        assert_eq!(makers(&seen(&|psn| psn % 9 != 0, &NONE), [50]), [Unknown]);
        // A mark may be answered for a while.
        let marked = seen(&ALL, &|psn| psn == 50);
        assert_eq!(makers(&marked, [50, 59, 61]), [Unknown, Unknown, Network]);
    }

    #[test]
    fn later_marks_do_not_change_settled_evidence() {
        let mut origins = Origins::new(16);
        watched(&mut origins, (0, 50), ALL, NONE);
        let mut early = cnp(ACK, Origin::Receiver, 40 * MS);
        let forgotten = early;
        origins.settle(&mut early);
        watched(&mut origins, (50, 60), ALL, ALL);
        assert_eq!(origins.judge(&early).evidence, Evidence::NoMark);
        assert_eq!(origins.judge(&forgotten).maker, Maker::Unknown);
        assert_eq!(makers(&origins, [55]), [Maker::Unknown]);
    }

    #[test]
    fn cnps_on_the_receivers_link_are_not_attributed_to_a_switch() {
        let mut origins = Origins::new(16);
        watched(&mut origins, (0, 100), ALL, NONE);
        let mut here = cnp(ACK, Origin::Receiver, 50 * MS);
        origins.notified(&mut here);
        assert_eq!(origins.judge(&here).evidence, Evidence::NoMark);
        // Its copy, or any other about the flow.
        origins.notified(&mut Cnp {
            point: CapturePoint::new(1),
            ..here
        });
        assert_eq!(makers(&origins, [50, 98]), [Maker::ReceiverOrImitation; 2]);
        origins.settle(&mut here);
        assert_eq!(origins.judge(&here).maker, Maker::ReceiverOrImitation);
    }

    #[test]
    fn differing_clocks_are_taken_into_account() {
        /// Packets up to that PSN, one per millisecond; the clock on the link is off by `off`.
        fn seen(last: u32, off: i64) -> Origins {
            let mut looks: Vec<_> = (0..=last)
                .flat_map(|psn| {
                    let at = i64::from(psn) * MS as i64 + 100 * MS as i64;
                    [(at, psn, HERE), (at + off, psn, CapturePoint::new(1))]
                })
                .filter(|(at, ..)| *at <= (i64::from(last) + 100) * MS as i64)
                .collect();
            looks.sort_by_key(|(at, ..)| *at);
            let mut origins = Origins::new(16);
            for (at, psn, place) in looks {
                let is_here = place == HERE;
                let hop_limit = if is_here { 64 } else { 61 };
                let data = Passing {
                    psn,
                    hop_limit,
                    ..DATA
                };
                see_data(&mut origins, at as u64, place, data, (true, false));
                let own = Passing {
                    hop_limit: 64,
                    mac: NIC,
                    psn,
                    ..ACK
                };
                let ack = if is_here { ACK } else { own };
                see(&mut origins, at as u64, place, Passing { psn, ..ack });
            }
            origins
        }
        let maker = |last, off: i64| {
            let [maker] = makers(&seen(last, off), [150]);
            maker
        };
        assert_eq!(maker(52, US as i64), Maker::Network);
        // The packet that it may answer is yet to come.
        assert_eq!(maker(53, 5 * MS as i64), Maker::Unknown);
        assert_eq!(maker(56, 5 * MS as i64), Maker::Network);
        // Packets do not arrive before they were sent.
        assert_eq!(maker(70, -5 * MS as i64), Maker::Unknown);
    }

    #[test]
    fn marks_on_acknowledgements_are_answered_too() {
        let mut origins = Origins::new(16);
        watched(&mut origins, (0, 50), ALL, NONE);
        let marked = Passing {
            opcode: Opcode::RC_ACKNOWLEDGE,
            hop_limit: 61,
            ce: true,
            ..DATA
        };
        see(&mut origins, 50 * MS, CapturePoint::new(1), marked);
        watched(&mut origins, (50, 100), ALL, NONE);
        assert_eq!(
            makers(&origins, [50, 59, 61]),
            [Maker::Unknown, Maker::Unknown, Maker::Network]
        );
    }

    #[test]
    fn a_mark_may_precede_a_capture_without_the_start() {
        // A flow that began, at other capture points, before there were several.
        let mut origins = Origins::new(16);
        watched(&mut origins, (3, 100), ALL, NONE);
        assert_eq!(makers(&origins, [5, 20]), [Maker::Unknown, Maker::Network]);
    }

    #[test]
    fn notified_nodes_and_other_addresses_are_attributed() {
        let origins = after(&[ACK; 3]);
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        for (origin, maker) in [
            (Origin::Proxy, Maker::Proxy),
            (Origin::IngressPe, Maker::IngressPe),
        ] {
            let in_name = |packet| cnp(packet, origin, US);
            let own_address = Cnp {
                receiver: Some(SWITCH.into()),
                ..in_name(ACK)
            };
            let evidence = Evidence::Request;
            assert_eq!(origins.judge(&own_address), Inference { maker, evidence });
            // The receiver or the notified node: if it is not the receiver's, it is the other's.
            assert_eq!(origins.judge(&in_name(nearer)).maker, maker);
            let alike = Inference::unknown(Evidence::Alike);
            assert_eq!(origins.judge(&in_name(ACK)), alike);
            let nothing = Inference::unknown(Evidence::NothingAlike);
            assert_eq!(after(&[]).judge(&in_name(nearer)), nothing);
        }
    }

    #[test]
    fn the_flow_need_not_be_known() {
        let unknown = |packet| Cnp {
            receiver: None,
            ..cnp(packet, Origin::Receiver, US)
        };
        let nearer = unknown(Passing {
            hop_limit: 63,
            ..ACK
        });
        assert_eq!(after(&[ACK; 3]).judge(&nearer).maker, Maker::Network);
        let no_flow = Inference::unknown(Evidence::NoFlow);
        assert_eq!(after(&[]).judge(&nearer), no_flow);
        // The marks that it may answer are unknown: it does not count against the others.
        let origins = after(&[ACK; 3]);
        let mut tally = Tally::NEW;
        for cnp in [unknown(ACK), nearer, nearer] {
            tally.add(cnp, &origins);
        }
        let maker = tally.judge(&origins).map(|judged| judged.maker);
        assert_eq!(maker, Some(Maker::Network));
    }

    #[test]
    fn tunnelled_packets_are_not_compared() {
        let inner = |parts: &[Part<'_>]| {
            let bytes = build(parts);
            let link = LinkType::Ethernet;
            PathMarks::from_frame(&Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT))
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

    /// The inference about a row of CNPs, each with its hop limit.
    fn row(origins: &Origins, hop_limits: impl IntoIterator<Item = u8>) -> Option<Inference> {
        let mut tally = Tally::NEW;
        for hop_limit in hop_limits {
            let cnp = cnp(Passing { hop_limit, ..ACK }, Origin::Receiver, US);
            tally.add(cnp, origins);
        }
        tally.judge(origins)
    }

    fn counts<const N: usize>(of: [(Maker, u32); N]) -> Evidence {
        let mut counts = [0; Maker::ALL.len()];
        for (maker, count) in of {
            counts[maker as usize] = count;
        }
        Evidence::Several(counts)
    }

    #[test]
    fn a_row_is_judged_again_with_later_packets() {
        let mut origins = after(&[ACK; 2]);
        assert_eq!(row(&origins, []), None);
        let mut tally = Tally::NEW;
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        tally.add(cnp(nearer, Origin::Receiver, US), &origins);
        let nothing = Inference::unknown(Evidence::NothingAlike);
        assert_eq!(tally.judge(&origins), Some(nothing));
        see(&mut origins, 40 * US, HERE, ACK);
        let maker = tally.judge(&origins).map(|judged| judged.maker);
        assert_eq!(maker, Some(Maker::Network), "without a further one");
    }

    #[test]
    fn one_cnp_does_not_decide_for_all() {
        let origins = after(&[ACK; 3]);
        let (nearer, alike) = (63, 61);
        let unknown = |of| Some(Inference::unknown(counts(of)));
        let half = (0..100).map(|n| if n % 2 == 0 { alike } else { nearer });
        assert_eq!(
            row(&origins, half),
            unknown([(Maker::Network, 50), (Maker::ReceiverOrImitation, 50)])
        );
        let one = (0..100).map(|n| if n == 40 { nearer } else { alike });
        let one = row(&origins, one);
        // The last one is not counted as long as later data may decide it.
        assert_eq!(
            one,
            unknown([(Maker::Network, 1), (Maker::ReceiverOrImitation, 98)])
        );
        assert_eq!(
            one.unwrap().evidence.to_string(),
            "CNPs judged one by one: receiver_or_imitation 98, network 1"
        );
        let few = (0..100).map(|n| if n % 40 == 7 { alike } else { nearer });
        let few = row(&origins, few).unwrap();
        assert_eq!(few.maker, Maker::Network);
        assert!(matches!(few.evidence, Evidence::Nearer { .. }), "{few:?}");
        let all = row(&origins, [alike; 100]);
        assert_eq!(all, Some(ALIKE));
    }

    #[test]
    fn several_makers_are_network_or_mixed() {
        let origins = after(&[ACK; 3]);
        let mut tally = Tally::NEW;
        for n in 0..100 {
            let origin = match n {
                7 => Origin::Proxy,
                _ => Origin::Receiver,
            };
            let nearer = Passing {
                hop_limit: 63,
                ..ACK
            };
            tally.add(cnp(nearer, origin, US), &origins);
        }
        let mixed = Inference {
            maker: Maker::Network,
            evidence: counts([(Maker::Network, 99), (Maker::Proxy, 1)]),
        };
        assert_eq!(tally.judge(&origins), Some(mixed));
    }

    #[test]
    fn incomparable_cnps_are_ignored_only_before_the_first_comparable_one() {
        let origins = after(&[ACK; 3]);
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let nearer = cnp(nearer, Origin::Receiver, US);
        let elsewhere = Cnp {
            point: CapturePoint::new(5),
            ..cnp(ACK, Origin::Receiver, US)
        };
        let maker = |is_nearer: fn(usize) -> bool| {
            let mut tally = Tally::NEW;
            for n in 0..100 {
                tally.add(if is_nearer(n) { nearer } else { elsewhere }, &origins);
            }
            tally.judge(&origins).map(|judged| judged.maker)
        };
        assert_eq!(maker(|n| n >= 40), Some(Maker::Network));
        assert_eq!(maker(|n| n % 2 == 0), Some(Maker::Unknown));
    }

    #[test]
    fn a_few_known_cnps_do_not_decide_for_many_unknown() {
        let mut origins = after(&[]);
        let nearer = Passing {
            hop_limit: 63,
            ..ACK
        };
        let mut tally = Tally::NEW;
        for n in 0..10 {
            if n == 8 {
                (0..3).for_each(|at| see(&mut origins, at * 10 * US, HERE, ACK));
            }
            tally.add(cnp(nearer, Origin::Receiver, US), &origins);
        }
        let of = [(Maker::Network, 3), (Maker::Unknown, 7)];
        assert_eq!(tally.judge(&origins), Some(Inference::unknown(counts(of))));
    }

    #[test]
    fn a_verdict_on_a_row_holds_for_almost_all_cnps() {
        use Maker::{
            IngressPe, Mixed, Network, Proxy, Receiver, ReceiverOrImitation as Alike, Unknown,
        };
        for (expected, counts) in [
            (Unknown, &[][..]),
            (Alike, &[(Alike, 1)]),
            (Alike, &[(Alike, 32), (Unknown, 1)]),
            (Unknown, &[(Alike, 31), (Unknown, 1)]),
            (Alike, &[(Alike, 1), (Receiver, 9)]),
            (Receiver, &[(Alike, 1), (Receiver, 32)]),
            (Unknown, &[(Alike, 1), (Network, 9)]),
            (Unknown, &[(Alike, 99), (Network, 1)]),
            (Network, &[(Alike, 1), (Network, 32)]),
            (Network, &[(Proxy, 1), (IngressPe, 1)]),
            (Mixed, &[(Receiver, 1), (Proxy, 1), (Alike, 99)]),
        ] {
            let mut all = [0; Maker::ALL.len()];
            for (maker, count) in counts {
                all[*maker as usize] = *count;
            }
            assert_eq!(Maker::of(&all, 0), expected, "{counts:?}");
        }
    }

    /// The inference about a CNP from another address than its flow's receiver.
    fn from_another(origins: &Origins, packet: Passing) -> Inference {
        let from = |bytes: u8| match packet.v4 {
            true => IpAddr::from([192, 0, 2, bytes]),
            false => IpAddr::from([0x2001, 0xDB8, 0, 0, 0, 0, 9, u16::from(bytes)]),
        };
        let cnp = Cnp {
            from: from(200),
            path_known: false,
            ..cnp(packet, Origin::Unknown, 5 * US)
        };
        assert_eq!(cnp.is_from_receiver(), Some(false));
        origins.judge(&cnp)
    }

    #[test]
    fn a_nic_may_have_several_addresses() {
        for (v4, start, routers) in [
            (false, 64, 3),
            (true, 64, 1),
            (false, 255, 5),
            (true, 255, 2),
        ] {
            let own = Passing {
                v4,
                hop_limit: start,
                mac: NIC,
                ..ACK
            };
            let data = Passing {
                v4,
                hop_limit: start - routers,
                ..DATA
            };
            let passed = Passing {
                hop_limit: start - routers,
                mac: ROUTER,
                ..own
            };
            let link = after(&[data, own, own, own]);
            let bridged = after(&[own; 3]);
            let far = after(&[passed; 3]);
            let second = Inference {
                maker: Maker::Receiver,
                evidence: Evidence::SecondAddress(mac(NIC)),
            };
            for port in [ACK.port, 0xFEED] {
                let cnp = |packet| Passing { port, ..packet };
                assert_eq!(from_another(&link, cnp(own)), second);
                assert_eq!(from_another(&bridged, cnp(own)), second);
                let unclear = Inference::unknown(Evidence::AddressUnclear);
                assert_eq!(from_another(&far, cnp(passed)), unclear);
                // The same distance with another initial hop limit, or a larger distance.
                let other = Passing {
                    hop_limit: 128 - routers,
                    ..passed
                };
                assert_eq!(from_another(&far, cnp(other)), unclear);
                let farther = Passing {
                    hop_limit: passed.hop_limit - 1,
                    ..passed
                };
                assert_eq!(from_another(&far, cnp(farther)), unclear);
                // Nothing to compare it with.
                let nothing = Inference::unknown(Evidence::NothingAlike);
                assert_eq!(from_another(&after(&[passed; 2]), cnp(passed)), nothing);
                // Another port on the same link.
                let other = Passing { mac: 5, ..own };
                assert_eq!(from_another(&link, cnp(other)), unclear);
                // Another host of the same network, and a router that is nearer.
                let other = from_another(&bridged, cnp(other));
                assert_eq!(other.maker, Maker::Network);
                assert!(matches!(other.evidence, Evidence::OtherMac(_)));
                let nearer = Passing {
                    hop_limit: start,
                    ..passed
                };
                let evidence = Evidence::OtherAddress {
                    passed: 0,
                    receiver: routers,
                };
                assert_eq!(from_another(&far, cnp(nearer)), on_the_way(evidence));
                // If paths differ in length, a shorter one need not be from a nearer node.
                let longer = Passing {
                    hop_limit: passed.hop_limit - 1,
                    port: 7,
                    ..passed
                };
                let unlike = after(&[passed, passed, passed, longer]);
                assert_eq!(from_another(&unlike, cnp(nearer)), unclear);
            }
        }
    }

    #[test]
    fn vlan_tags_do_not_hide_mac_addresses() {
        let tagged = |tags: usize| {
            let ethernet = Part::Ethernet {
                source: [2, 0, 0, 0, 0, NIC],
                destination: [2; 6],
            };
            let vlan = Part::Vlan {
                id: 7,
                priority: 3,
                service: false,
            };
            let mut parts = vec![ethernet];
            parts.resize(1 + tags, vlan);
            parts.extend([
                crate::testing::ip(RECEIVER.into(), SENDER.into()),
                crate::testing::udp(4791),
                Part::Bth(BthRepr::new(Opcode::RC_ACKNOWLEDGE, QP, 1)),
                Part::Bytes(&[0; 8]),
                ICRC,
            ]);
            let bytes = build(&parts);
            let link = LinkType::Ethernet;
            let frame = Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT);
            PathMarks::from_frame(&frame).unwrap().mac
        };
        assert_eq!([0, 1, 2].map(tagged), [mac(NIC); 3]);
    }

    #[test]
    fn cnps_with_a_switchs_address_do_not_pass_the_receivers_link() {
        let mut origins = Origins::new(16);
        watched(&mut origins, (0, 100), ALL, NONE);
        let judged = from_another(&origins, ACK);
        assert_eq!(judged, on_the_way(Evidence::NoMark));
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Tally>() <= 184, "{}", size_of::<Tally>());
        assert!(size_of::<Cnp>() <= 112, "{}", size_of::<Cnp>());
        let ways = size_of::<(IpAddr, IpAddr, CapturePoint)>() + size_of::<Directions>();
        let watch = size_of::<FlowKey>() + size_of::<Watch>();
        assert!(watch <= 152, "{watch}");
        assert!(ways <= 256, "{ways}");
    }
}
