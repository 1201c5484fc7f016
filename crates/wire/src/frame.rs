//! `Frame`: finds the layers in a captured frame: tags, labels, tunnels, IP with its extension headers, UDP.
//!
//! It locates and bounds; what a layer says is read by the views of the other modules, and what a message means is
//! `message.rs`'s business. Works on octets alone, allocates nothing, and reads each header once.

use crate::claim::{Claim, Evidence, must_prove_roce, proves_roce};
use crate::error::{Error, ErrorKind};
use crate::icrc::{self, Verdict};
use crate::ipv6_ext::{
    ExtHeader, Ipv6Option, MAX_OPTIONS_HEADER, Options, last_segment_at, next_header, read_header,
};
use crate::layer::Layer;
use crate::octets::{array, ipv4_at, ipv6_at, u8_at, u16_at, u32_at};
use crate::pfc::{ETHERTYPE_MAC_CONTROL, OPCODE_PFC, PFC_LEN};
use crate::profile::{Profile, VXLAN_PORT};
use crate::proxy_cn::Family;
use arrayvec::ArrayVec;
use etherparse::checksum::Sum16BitWords;
use etherparse::{
    EtherType, Ethernet2HeaderSlice, Ipv4HeaderSlice, Ipv6HeaderSlice, SingleVlanHeaderSlice,
    UdpHeaderSlice,
};
use std::net::IpAddr;

/// Most layers located in one frame; what lies deeper is left unread and said so.
pub const MAX_LAYERS: usize = 40;
/// Most IP headers inside one another.
pub const MAX_TUNNELS: usize = 6;
const _: () = assert!(MAX_LAYERS < 1 << 8 && MAX_OPTIONS_HEADER < 1 << 16);

/// EtherType of MPLS with a unicast label.
pub const ETHERTYPE_MPLS: u16 = 0x8847;
/// EtherType of MPLS with an upstream-assigned label.
pub const ETHERTYPE_MPLS_UPSTREAM: u16 = 0x8848;
/// What a Linux cooked capture says instead of an EtherType where LLC follows.
const LINUX_802_2: u16 = 4;
/// TCP port of BGP.
pub const BGP_PORT: u16 = 179;

/// What a capture says its packets begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6, told apart by the version nibble.
    RawIp,
    /// Linux cooked capture, version 1.
    LinuxCooked,
    /// Linux cooked capture, version 2.
    LinuxCooked2,
    /// BSD loopback: an address family of 4 octets in either order.
    Null,
}

impl LinkType {
    /// The link type of a pcap or pcapng file's number; `None` where this crate does not open it.
    #[must_use]
    pub const fn from_pcap(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::LinuxCooked),
            276 => Some(Self::LinuxCooked2),
            0 | 108 => Some(Self::Null),
            _ => None,
        }
    }
}

/// Where one layer lies. All numbers count octets from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which layer.
    pub layer: Layer,
    /// Its first octet.
    pub start: usize,
    /// The octet behind its header.
    pub header_end: usize,
    /// The octet behind its content by its own length field, within what its carrier holds on the wire; may lie
    /// behind the captured octets.
    pub end: usize,
}

/// How far a frame could be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// To a payload that this crate reads, or that has nothing to do with it.
    Complete,
    /// The capture cut the packet off inside this layer, which needs `need` octets of the frame where `have` were kept.
    Cut {
        /// The layer that is not all there.
        layer: Layer,
        /// Octets of the frame that would be needed.
        need: usize,
        /// Octets captured.
        have: usize,
    },
    /// A fragment: only whole datagrams are read.
    Fragment {
        /// Octets of the datagram in front of this fragment.
        offset: usize,
        /// Whether more follow.
        more: bool,
    },
    /// Not readable any further; offset from the start of the frame.
    Malformed(Error),
}

/// The innermost IP packet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// First octet of the IP header.
    pub start: usize,
    /// Octet behind the packet by its length field; may lie behind the captured octets.
    pub end: usize,
    /// Source address.
    pub source: IpAddr,
    /// Destination address: the last segment's where a routing header says that others come before.
    pub destination: IpAddr,
    /// TOS or traffic class: DSCP (6 bits), ECN (2 bits).
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label (20 bits), 0 in IPv4.
    pub flow_label: u32,
    /// Number of the upper-layer protocol.
    pub protocol: u8,
    /// First octet behind the IP header and its extension headers.
    pub payload: usize,
}

impl Ip {
    /// The ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }
}

/// A UDP datagram, with the IP packet around it.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The IP packet.
    pub ip: Ip,
    /// First octet of the UDP header in the frame.
    pub start: usize,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// UDP checksum as sent; 0 where the sender computed none.
    pub checksum: u16,
    /// As much of the payload as was captured.
    pub payload: &'a [u8],
    /// Octets of the payload on the wire.
    pub payload_len: usize,
}

impl Datagram<'_> {
    /// Whether the whole payload was captured.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.payload.len() == self.payload_len
    }

    /// First octet of the payload in the frame.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.start + 8
    }

    /// Whether it is a notification to a proxy node or an FCN in the WAN, where it goes to the port of either.
    #[must_use]
    pub fn claim(&self, profile: &Profile) -> Claim {
        let seen = Evidence {
            ports: (self.source_port, self.destination_port),
            payload: self.payload,
            payload_len: self.payload_len,
            outer: Family::of(self.ip.source),
            outer_len: self.ip.end - self.ip.start,
        };
        seen.claim(profile)
    }

    /// Whether the checksum has whoever receives the datagram drop it: it is wrong, or 0 over IPv6 (RFC 768, RFC 8200
    /// section 8.1). One that cannot be told, as a part was not captured, is not; nor is the sum of the pseudo-header alone,
    /// which a sender's hardware has yet to complete, in captures at the sender.
    #[must_use]
    pub fn has_bad_checksum(&self) -> bool {
        if self.checksum == 0 {
            return self.ip.source.is_ipv6();
        }
        if !self.is_whole() {
            return false;
        }
        let len = (8 + self.payload_len) as u32;
        let pseudo = match (self.ip.source, self.ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Sum16BitWords::new()
                .add_4bytes(source.octets())
                .add_4bytes(destination.octets()),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Sum16BitWords::new()
                .add_16bytes(source.octets())
                .add_16bytes(destination.octets()),
            _ => return false,
        }
        .add_4bytes(len.to_be_bytes())
        .add_2bytes([0, next_header::UDP]);
        let whole = pseudo
            .clone()
            .add_2bytes(self.source_port.to_be_bytes())
            .add_2bytes(self.destination_port.to_be_bytes())
            .add_2bytes((len as u16).to_be_bytes())
            .add_2bytes(self.checksum.to_be_bytes())
            .add_slice(self.payload);
        whole.ones_complement() != 0 && !pseudo.ones_complement().to_be() != self.checksum
    }
}

/// What the innermost packet carries, as far as this crate follows it.
#[derive(Clone, Copy, Debug)]
pub enum Upper<'a> {
    /// A UDP datagram.
    Udp(Datagram<'a>),
    /// A TCP segment to or from the BGP port: where its payload begins, and the payload as far as captured.
    Bgp(usize, &'a [u8]),
    /// An OSPF packet (version 2 in IPv4, 3 in IPv6), as far as captured.
    Ospf(Ip, &'a [u8]),
    /// An IS-IS PDU, from its discriminator: where it begins, and the PDU as far as captured.
    IsIs(usize, &'a [u8]),
    /// A MAC control frame: where its opcode begins, from there on as far as captured, and the destination MAC address.
    MacControl(usize, &'a [u8], [u8; 6]),
    /// Anything else, or nothing that can be read.
    Other,
}

/// What the walk has noted of the innermost IP packet's options, so that nobody need look for them again. Numbers fit: of
/// layers there are [`MAX_LAYERS`], and a header has [`MAX_OPTIONS_HEADER`] octets at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    /// The place of its first options header among the layers; beyond them where there is none.
    first: u8,
    /// The place of the header that has its first Fast CNP option; beyond them where there is none.
    fast_cnp: u8,
    /// Where that option begins in its header.
    offset: u16,
    /// Whether an option runs past its header: whoever is to read the packet drops it (RFC 8200 section 4.2).
    overrun: bool,
}

impl Noted {
    const NONE: Self = Self {
        first: MAX_LAYERS as u8,
        fast_cnp: MAX_LAYERS as u8,
        offset: 0,
        overrun: false,
    };
}

/// The layers of one frame.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    profile: &'a Profile,
    spans: ArrayVec<Span, MAX_LAYERS>,
    ip: Option<Ip>,
    options: Noted,
    upper: Upper<'a>,
    roce: bool,
    /// The verdict on its ICRC, where that had to prove it.
    icrc: Option<Verdict>,
    end: End,
    /// A length field (of a layer, or of an IPv6 option) that claims more than its carrier holds: the walk goes on within
    /// the carrier.
    overlong: Option<Error>,
    /// Where the first such field of the innermost packet's IP and UDP headers is.
    beyond: Option<usize>,
    /// Whether IP or UDP of the innermost packet states no length.
    unstated: bool,
}

impl<'a> Frame<'a> {
    /// Finds the layers of the frame `bytes`, of which there were `wire_len` octets on the wire.
    ///
    /// Never fails: [`end`](Self::end) says how far it came.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &'a [u8], wire_len: usize, link: LinkType, profile: &'a Profile) -> Self {
        let mut frame = Self::empty(profile);
        frame.renew(bytes, wire_len, link);
        frame
    }

    /// A frame without octets, in whose place another is to come ([`renew`](Self::renew)).
    // Always inlined, so that it is made in its place.
    #[inline(always)]
    #[must_use]
    pub fn empty(profile: &'a Profile) -> Self {
        Self {
            bytes: &[],
            wire_len: 0,
            profile,
            spans: ArrayVec::new(),
            ip: None,
            options: Noted::NONE,
            upper: Upper::Other,
            roce: false,
            icrc: None,
            end: End::Complete,
            overlong: None,
            beyond: None,
            unstated: false,
        }
    }

    /// Finds the layers of another frame, in the place of this one's: a `Frame` is large, and many that are looked at
    /// together need not be moved to where they are kept.
    #[inline]
    pub fn renew(&mut self, bytes: &'a [u8], wire_len: usize, link: LinkType) {
        self.bytes = bytes;
        self.wire_len = wire_len.max(bytes.len());
        self.spans.clear();
        self.ip = None;
        self.options = Noted::NONE;
        self.upper = Upper::Other;
        self.roce = false;
        self.icrc = None;
        self.end = End::Complete;
        self.overlong = None;
        self.enter_ip();
        self.walk(link);
    }

    /// Finds the layers. Apart from [`parse`](Self::parse), so that a frame is made where the caller wants it, and not moved.
    fn walk(&mut self, link: LinkType) {
        let mut walk = Walk {
            at: 0,
            limit: self.wire_len,
            tunnels: 0,
        };
        let mut next = walk.link(self, link);
        // Each round locates at least one layer or is the last, and `push` ends the walk at MAX_LAYERS.
        while let Ok(here) = next {
            next = walk.step(self, here);
        }
    }

    /// Forgets what was noted of the lengths of the packet around the one that begins.
    #[inline]
    const fn enter_ip(&mut self) {
        self.beyond = None;
        self.unstated = false;
    }

    /// The captured octets.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Octets of the frame on the wire.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// The profile that the frame was read with.
    #[must_use]
    pub const fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// The layers, outermost first.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// How far the frame could be followed. A length field that claims more than its carrier holds makes it malformed
    /// (an IPv6 option's too, in a header of any of its packets), even though what lies behind that field was read.
    #[must_use]
    pub fn end(&self) -> End {
        match (self.end, self.overlong) {
            (End::Complete | End::Fragment { .. } | End::Cut { .. }, Some(e)) => End::Malformed(e),
            (end, _) => end,
        }
    }

    /// Whether the frame could be followed to its end, and no length field claims too much.
    #[inline]
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete) && self.overlong.is_none()
    }

    /// The length of the innermost packet's IP or UDP that contradicts the rest: more than its carrier holds, or a datagram
    /// that ends before its packet does, or an extension header that ends behind it. An IPv6 option's is that option's
    /// business.
    pub(crate) fn contradicting_length(&self) -> Option<usize> {
        let ip = self.ip?;
        if self.beyond.is_some() {
            return self.beyond;
        }
        if let End::Malformed(e) = &self.end
            && e.offset == ip.payload
            && matches!(
                e.layer,
                Layer::HopByHop
                    | Layer::DestinationOptions
                    | Layer::Routing
                    | Layer::Authentication
            )
        {
            return Some(e.offset);
        }
        let datagram = self.datagram()?;
        // 0: the carrier's end was taken for the packet's, with whatever pads it.
        let stated = ip.start + if ip.source.is_ipv4() { 2 } else { 4 };
        let short = datagram.payload_at() + datagram.payload_len < ip.end
            && self.bytes.get(stated..stated + 2) != Some(&[0, 0]);
        short.then_some(datagram.start + 4)
    }

    /// Whether the innermost packet is one that the rules are about: RoCEv2, a message of ours, well-formed or not, or a
    /// packet with a Fast CNP option, be it in a header that is longer than its packet.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let overruns = |e: &Error| {
            let rest = self.bytes.get(e.offset..).unwrap_or_default();
            matches!(e.layer, Layer::HopByHop | Layer::DestinationOptions)
                && (Options::new(e.layer, rest).flatten())
                    .any(|option| self.profile.is_fast_cnp(option.kind))
        };
        self.is_roce()
            || matches!(&self.end, End::Malformed(e) if overruns(e))
            || self.options.fast_cnp != Noted::NONE.fast_cnp
            || (self.datagram())
                .is_some_and(|datagram| datagram.claim(self.profile) != Claim::Others)
    }

    /// Where the walk stopped, whatever a length field on the way may have claimed.
    pub(crate) const fn stop(&self) -> End {
        self.end
    }

    /// Whether the capture ends before the content of the innermost layer does.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let end = self.spans.last().map_or(self.wire_len, |span| span.end);
        end > self.bytes.len()
    }

    /// The innermost IP packet.
    #[must_use]
    pub const fn ip(&self) -> Option<&Ip> {
        self.ip.as_ref()
    }

    /// What the innermost packet carries.
    #[must_use]
    pub const fn upper(&self) -> &Upper<'a> {
        &self.upper
    }

    /// The innermost UDP datagram.
    #[must_use]
    pub const fn datagram(&self) -> Option<&Datagram<'a>> {
        match &self.upper {
            Upper::Udp(datagram) => Some(datagram),
            _ => None,
        }
    }

    /// Whether the innermost datagram is RoCEv2: by its destination port, unless it has no octets, and where it comes from the port of others, by
    /// what it [shows](proves_roce).
    #[inline]
    #[must_use]
    pub const fn is_roce(&self) -> bool {
        self.roce
    }

    /// Whether `datagram`, of the innermost packet, shows that it is RoCEv2.
    #[inline(never)]
    fn proves_roce(&mut self, datagram: &Datagram<'_>) -> bool {
        let has_fast_cnp = self.options.fast_cnp != Noted::NONE.fast_cnp;
        let mut verdict = None;
        let proved = proves_roce(datagram.payload, datagram.payload_len, has_fast_cnp, || {
            *verdict.insert(self.verdict(datagram))
        });
        self.icrc = verdict;
        proved
    }

    /// Notes the options header located last, whether it has a Fast CNP option, and whether an option runs past it; what
    /// they say is read later.
    fn note_options(&mut self, header: &ExtHeader) {
        let place = (self.spans.len() - 1) as u8;
        let profile = self.profile;
        let Noted {
            mut first,
            mut fast_cnp,
            mut offset,
            mut overrun,
        } = self.options;
        first = first.min(place);
        let mut fast = |at: usize| {
            if usize::from(fast_cnp) == MAX_LAYERS {
                (fast_cnp, offset) = (place, at as u16);
            }
        };
        let (start, end) = (header.start, header.start + header.len);
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        let mut options = Options::new(header.layer, bytes);
        for option in options.by_ref() {
            match option {
                Ok(option) if option.is_padding() => {}
                Ok(option) if profile.is_fast_cnp(option.kind) => fast(option.offset),
                Ok(_) => {}
                Err(e) => {
                    overrun = true;
                    overlong(self, e.at(start));
                }
            }
        }
        // One that runs past its header is no less meant to be one; a type without a length is the end of the header.
        let failed = options.failed_at().filter(|at| at + 2 <= bytes.len());
        if let Some(at) = failed.filter(|at| profile.is_fast_cnp(u8_at(bytes, *at))) {
            fast(at);
        }
        self.options = Noted {
            first,
            fast_cnp,
            offset,
            overrun,
        };
    }

    /// The Hop-by-Hop and Destination Options headers of the innermost IP packet.
    #[inline]
    pub fn options_headers(&self) -> impl Iterator<Item = OptionsHeader<'a>> {
        let first = usize::from(self.options.first);
        let spans = self.spans.get(first..).unwrap_or_default();
        spans.iter().filter_map(|span| self.options_header(span))
    }

    fn options_header(&self, span: &Span) -> Option<OptionsHeader<'a>> {
        if !matches!(span.layer, Layer::HopByHop | Layer::DestinationOptions) {
            return None;
        }
        let bytes = self.bytes.get(span.start..span.header_end)?;
        Some(OptionsHeader {
            layer: span.layer,
            start: span.start,
            bytes,
        })
    }

    /// Where the option begins, and its type, in which octet `at` of the frame lies: one of the innermost packet, be it one
    /// that runs past its header.
    #[must_use]
    pub fn option_around(&self, at: usize) -> Option<(usize, u8)> {
        let header = (self.options_headers())
            .find(|header| (header.start..header.start + header.bytes.len()).contains(&at))?;
        let mut options = header.options();
        let mut found = None;
        while let Some(option) = options.next() {
            let offset =
                option.map_or_else(|_| options.failed_at(), |option| Some(option.offset))?;
            if header.start + offset > at {
                break;
            }
            found = Some((header.start + offset, u8_at(header.bytes, offset)));
        }
        found
    }

    /// The innermost packet's first Fast CNP option: its header, and where it begins in that. It may run past the header.
    #[inline]
    pub(crate) fn fast_cnp_option(&self) -> Option<(OptionsHeader<'a>, usize)> {
        let header = self.spans.get(usize::from(self.options.fast_cnp))?;
        Some((self.options_header(header)?, self.options.offset.into()))
    }

    /// Whether an option of the innermost IP packet runs past its header.
    #[inline]
    pub(crate) const fn has_overrunning_option(&self) -> bool {
        self.options.overrun
    }

    /// Verifies the ICRC of a RoCEv2 packet; [`Verdict::Unchecked`] where there is none, or not all of the packet, or
    /// where a length field contradicts the packet.
    #[must_use]
    pub fn verify_icrc(&self) -> Verdict {
        match (self.icrc, self.datagram()) {
            (Some(verdict), _) if self.roce => verdict,
            (None, Some(datagram)) if self.roce => self.verdict(datagram),
            _ => Verdict::Unchecked,
        }
    }

    fn verdict(&self, datagram: &Datagram<'_>) -> Verdict {
        // Lengths of packets around it are their business. What it covers is not known where a length is not stated.
        let unclear = self.beyond.is_some() || self.unstated || self.options.overrun;
        if unclear || !datagram.is_whole() {
            return Verdict::Unchecked;
        }
        let end = datagram.payload_at() + datagram.payload_len;
        match self.bytes.get(datagram.ip.start..end) {
            Some(packet) => icrc::verify(packet, datagram.start - datagram.ip.start),
            None => Verdict::Unchecked,
        }
    }
}

/// An options header of the innermost IP packet.
#[derive(Clone, Copy, Debug)]
pub struct OptionsHeader<'a> {
    /// Hop-by-Hop or Destination Options.
    pub layer: Layer,
    /// Its first octet in the frame.
    pub start: usize,
    /// The whole header.
    pub bytes: &'a [u8],
}

impl<'a> OptionsHeader<'a> {
    /// Its options; offsets from the start of the header.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options::new(self.layer, self.bytes)
    }

    /// Its options as far as they can be read.
    pub fn readable(&self) -> impl Iterator<Item = Ipv6Option<'a>> {
        self.options().map_while(Result::ok)
    }
}

/// What stands where the walk has come to.
#[derive(Clone, Copy, Debug)]
enum Next {
    Ethernet,
    /// What an EtherType says.
    EtherType(EtherType),
    Mpls,
    /// IP of either version.
    Ip,
}

/// Where the walk is. What it finds is the frame's; this is small and stays in registers, and so is handed by value to
/// whatever is called seldom.
#[derive(Clone, Copy)]
struct Walk {
    /// First octet not yet located.
    at: usize,
    /// Octet behind what the carrier holds on the wire.
    limit: usize,
    tunnels: usize,
}

/// The walk is over, and its frame says why.
#[derive(Clone, Copy)]
struct Stopped;

type Step = Result<Next, Stopped>;

/// Where something has turned out wrong.
impl Walk {
    /// A layer needs `need` octets from here on, more than there are.
    #[cold]
    fn short(self, frame: &mut Frame<'_>, layer: Layer, need: usize) -> Stopped {
        let (want, have) = (self.at + need, frame.bytes.len());
        if want <= self.limit {
            let need = want;
            frame.end = End::Cut { layer, need, have };
        } else {
            let room = self.limit.saturating_sub(self.at);
            frame.end = End::Malformed(Error::short(layer, need, room).at(self.at));
        }
        Stopped
    }

    /// An extension header ends too late: cut where the wire had more than was captured, else malformed.
    #[cold]
    fn cut_or_malformed(self, frame: &mut Frame<'_>, e: Error) -> Stopped {
        let have = frame.bytes.len();
        let ErrorKind::Short { need, .. } = e.kind else {
            return malformed(frame, e);
        };
        let (layer, end) = (e.layer, e.offset + need);
        if end <= self.limit && end > have {
            let need = end;
            frame.end = End::Cut { layer, need, have };
            return Stopped;
        }
        let room = self.limit.saturating_sub(e.offset);
        malformed(frame, Error::short(layer, need, room).at(e.offset))
    }

    #[cold]
    fn value(
        self,
        frame: &mut Frame<'_>,
        layer: Layer,
        field: &'static str,
        value: u8,
        expected: &'static str,
    ) -> Stopped {
        let error = Error::value(layer, self.at, field, u64::from(value), expected);
        malformed(frame, error)
    }
}

#[cold]
fn malformed(frame: &mut Frame<'_>, error: Error) -> Stopped {
    frame.end = End::Malformed(error);
    Stopped
}

#[cold]
fn fragment(frame: &mut Frame<'_>, offset: usize, more: bool) -> Stopped {
    frame.end = End::Fragment { offset, more };
    Stopped
}

/// A length field claims too much; the first one counts.
#[cold]
fn overlong(frame: &mut Frame<'_>, error: Error) {
    frame.overlong.get_or_insert(error);
}

impl Walk {
    #[inline]
    fn step<'a>(&mut self, frame: &mut Frame<'a>, next: Next) -> Step {
        let number = match next {
            Next::Ethernet => self.ethernet(frame)?,
            Next::EtherType(number) => number,
            Next::Mpls => return self.mpls(frame),
            Next::Ip => match self.array::<1>(frame, Layer::Ipv4)?[0] >> 4 {
                4 => EtherType::IPV4,
                6 => EtherType::IPV6,
                version => {
                    return Err(self.value(frame, Layer::Ipv4, "version", version, "4 or 6"));
                }
            },
        };
        self.ether_type(frame, number)
    }

    /// The octets from here on as far as carrier and capture go.
    #[inline]
    fn here<'a>(&self, frame: &Frame<'a>) -> &'a [u8] {
        let end = self.limit.min(frame.bytes.len());
        frame.bytes.get(self.at..end).unwrap_or_default()
    }

    /// The first `N` octets from here on.
    #[inline]
    fn array<'a, const N: usize>(
        &self,
        frame: &mut Frame<'a>,
        layer: Layer,
    ) -> Result<&'a [u8; N], Stopped> {
        match self.here(frame).first_chunk() {
            Some(octets) => Ok(octets),
            None => Err(self.short(frame, layer, N)),
        }
    }

    /// The octets from here on, of which a header takes `need`, or the header has none.
    #[inline]
    fn have<'a>(
        &self,
        frame: &mut Frame<'a>,
        layer: Layer,
        need: usize,
    ) -> Result<&'a [u8], Stopped> {
        let here = self.here(frame);
        if here.len() < need || self.at > frame.bytes.len() {
            return Err(self.short(frame, layer, need));
        }
        Ok(here)
    }

    /// Locates a layer of `header` octets here and goes behind its header; its content ends at `end`.
    #[inline]
    fn push(
        &mut self,
        frame: &mut Frame<'_>,
        layer: Layer,
        header: usize,
        end: usize,
    ) -> Result<(), Stopped> {
        let span = Span {
            layer,
            start: self.at,
            header_end: self.at + header,
            end,
        };
        if frame.spans.try_push(span).is_err() {
            let error = Error::limit(layer, self.at, "layers", MAX_LAYERS);
            return Err(malformed(frame, error));
        }
        self.at += header;
        self.limit = end;
        Ok(())
    }

    /// The end that the length field `field` at `field_at` gives, within the carrier. It is at least `min`, and counts
    /// from here on without the first `uncounted` octets.
    #[inline]
    fn bounded(
        &self,
        frame: &mut Frame<'_>,
        layer: Layer,
        (field, field_at): (&'static str, usize),
        value: usize,
        (min, uncounted): (usize, usize),
    ) -> usize {
        let room = self.limit - self.at;
        let len = uncounted + value;
        if len > room {
            let max = room.saturating_sub(uncounted);
            let error = Error::length(layer, field_at, field, value, min, max);
            overlong(frame, error);
            frame.beyond.get_or_insert(field_at);
        }
        self.at + len.min(room)
    }

    /// The carrier's end, where a length field states none.
    #[cold]
    fn unstated(&self, frame: &mut Frame<'_>) -> usize {
        frame.unstated = true;
        self.limit
    }

    /// Stops at a payload that ends at `end`: cut where the capture ends before.
    #[inline]
    fn payload(frame: &mut Frame<'_>, layer: Layer, end: usize) -> Step {
        let have = frame.bytes.len();
        if end > have {
            let need = end;
            frame.end = End::Cut { layer, need, have };
        }
        Err(Stopped)
    }

    #[inline]
    fn link(&mut self, frame: &mut Frame<'_>, link: LinkType) -> Step {
        match link {
            LinkType::Ethernet => Ok(Next::Ethernet),
            LinkType::RawIp => Ok(Next::Ip),
            LinkType::LinuxCooked => self.cooked(frame, 16, 14),
            LinkType::LinuxCooked2 => self.cooked(frame, 20, 0),
            LinkType::Null => {
                let family = *self.array::<4>(frame, Layer::Ethernet)?;
                self.push(frame, Layer::Ethernet, 4, self.limit)?;
                // In the byte order of the capturing host; the number of IPv6 differs between systems.
                match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
                    2 | 10 | 24 | 28 | 30 => Ok(Next::Ip),
                    _ => Err(Stopped),
                }
            }
        }
    }

    fn cooked(&mut self, frame: &mut Frame<'_>, header: usize, protocol_at: usize) -> Step {
        let number = u16_at(self.have(frame, Layer::LinuxCooked, header)?, protocol_at);
        self.push(frame, Layer::LinuxCooked, header, self.limit)?;
        match number {
            LINUX_802_2 => self.llc(frame),
            // Other small numbers are Linux's own, not lengths.
            0..1536 => Err(Stopped),
            _ => Ok(Next::EtherType(EtherType(number))),
        }
    }

    #[inline]
    fn ethernet(&mut self, frame: &mut Frame<'_>) -> Result<EtherType, Stopped> {
        let here = self.array::<14>(frame, Layer::Ethernet)?;
        let number = Ethernet2HeaderSlice::from_slice(here)
            .map_or(EtherType(0), |header| header.ether_type());
        self.push(frame, Layer::Ethernet, 14, self.limit)?;
        if number == EtherType(ETHERTYPE_MAC_CONTROL) {
            return self.mac_control(frame, array(here, 0)).map(|_| number);
        }
        Ok(number)
    }

    #[inline(never)]
    fn mac_control(&mut self, frame: &mut Frame<'_>, destination: [u8; 6]) -> Step {
        let payload = self.have(frame, Layer::Pfc, 0)?;
        frame.upper = Upper::MacControl(self.at, payload, destination);
        // What is behind the pause times is padding. Other opcodes are not read.
        let read = match payload.first_chunk() {
            Some(opcode) if u16::from_be_bytes(*opcode) != OPCODE_PFC => 2,
            _ => PFC_LEN,
        };
        Self::payload(frame, Layer::Pfc, self.limit.min(self.at + read))
    }

    #[inline]
    fn ether_type(&mut self, frame: &mut Frame<'_>, number: EtherType) -> Step {
        match number {
            EtherType::IPV6 => self.ipv6(frame),
            EtherType::IPV4 => self.ipv4(frame),
            EtherType::VLAN_TAGGED_FRAME
            | EtherType::PROVIDER_BRIDGING
            | EtherType::VLAN_DOUBLE_TAGGED_FRAME => {
                let here = self.array::<4>(frame, Layer::Vlan)?;
                let inner = SingleVlanHeaderSlice::from_slice(here)
                    .map_or(EtherType(0), |header| header.ether_type());
                self.push(frame, Layer::Vlan, 4, self.limit)?;
                Ok(Next::EtherType(inner))
            }
            EtherType(ETHERTYPE_MPLS | ETHERTYPE_MPLS_UPSTREAM) => Ok(Next::Mpls),
            // IEEE 802.3: a length, then LLC.
            EtherType(len @ 0..=1500) => {
                let field = ("length", self.at - 2);
                self.limit = self.bounded(frame, Layer::Ethernet, field, usize::from(len), (3, 0));
                self.llc(frame)
            }
            _ => Err(Stopped),
        }
    }

    /// LLC: IS-IS is FE FE 03 with discriminator 83.
    fn llc(&mut self, frame: &mut Frame<'_>) -> Step {
        let end = self.limit;
        if *self.array(frame, Layer::Llc)? != [0xFE, 0xFE, 0x03] || end == self.at + 3 {
            return Err(Stopped);
        }
        if self.array::<4>(frame, Layer::Llc)?[3] != 0x83 {
            return Err(Stopped);
        }
        self.push(frame, Layer::Llc, 3, end)?;
        let pdu = self.have(frame, Layer::IsIs, 1)?;
        frame.upper = Upper::IsIs(self.at, pdu);
        self.push(frame, Layer::IsIs, 1, end)?;
        Self::payload(frame, Layer::IsIs, end)
    }

    fn mpls(&mut self, frame: &mut Frame<'_>) -> Step {
        let entry = u32::from_be_bytes(*self.array(frame, Layer::Mpls)?);
        self.push(frame, Layer::Mpls, 4, self.limit)?;
        if entry & 0x100 == 0 {
            return Ok(Next::Mpls);
        }
        // RFC 4385: behind the last label, the first nibble tells IP from a pseudowire's control word (0).
        match self.array::<1>(frame, Layer::Mpls)?[0] >> 4 {
            4 => Ok(Next::EtherType(EtherType::IPV4)),
            6 => Ok(Next::EtherType(EtherType::IPV6)),
            0 => {
                self.array::<4>(frame, Layer::Mpls)?;
                self.at += 4;
                Ok(Next::Ethernet)
            }
            _ => Err(Stopped),
        }
    }

    #[inline]
    fn tunnel(&mut self, frame: &mut Frame<'_>, layer: Layer) -> Result<(), Stopped> {
        self.tunnels += 1;
        if self.tunnels > MAX_TUNNELS {
            let what = "IP headers inside one another";
            let error = Error::limit(layer, self.at, what, MAX_TUNNELS);
            return Err(malformed(frame, error));
        }
        Ok(())
    }

    fn ipv4(&mut self, frame: &mut Frame<'_>) -> Step {
        const LAYER: Layer = Layer::Ipv4;
        self.tunnel(frame, LAYER)?;
        frame.enter_ip();
        let here = self.array::<20>(frame, LAYER)?;
        let (first, total) = (u8_at(here, 0), usize::from(u16_at(here, 2)));
        if first >> 4 != 4 {
            return Err(self.value(frame, LAYER, "version", first >> 4, "4"));
        }
        let header = usize::from(first & 0x0F) * 4;
        if header < 20 {
            return Err(self.value(frame, LAYER, "IHL", first & 0x0F, "5 to 15"));
        }
        let Ok(slice) = Ipv4HeaderSlice::from_slice(self.have(frame, LAYER, header)?) else {
            return Err(self.value(frame, LAYER, "version and IHL", first, "an IPv4 header"));
        };
        let field = ("total length", self.at + 2);
        // Total length 0: the sender left segmentation to its hardware, so the carrier's end is all there is to know.
        let end = match total {
            0 => self.unstated(frame),
            total if total < header => {
                let room = self.limit - self.at;
                let error = Error::length(LAYER, field.1, field.0, total, header, room);
                return Err(malformed(frame, error));
            }
            total => self.bounded(frame, LAYER, field, total, (header, 0)),
        };
        let ip = Ip {
            start: self.at,
            end,
            source: ipv4_at(here, 12).into(),
            destination: ipv4_at(here, 16).into(),
            traffic_class: u8_at(here, 1),
            hop_limit: slice.ttl(),
            flow_label: 0,
            protocol: slice.protocol().0,
            payload: self.at + header,
        };
        let (offset, more) = (
            usize::from(slice.fragments_offset().value()) * 8,
            slice.more_fragments(),
        );
        self.push(frame, LAYER, header, end)?;
        frame.options = Noted::NONE;
        frame.ip = Some(ip);
        if more || offset != 0 {
            return Err(fragment(frame, offset, more));
        }
        self.protocol(frame, ip)
    }

    #[inline]
    fn ipv6(&mut self, frame: &mut Frame<'_>) -> Step {
        const LAYER: Layer = Layer::Ipv6;
        self.tunnel(frame, LAYER)?;
        frame.enter_ip();
        let here = self.array::<40>(frame, LAYER)?;
        let Ok(slice) = Ipv6HeaderSlice::from_slice(here) else {
            return Err(self.value(frame, LAYER, "version", u8_at(here, 0) >> 4, "6"));
        };
        // 0: a jumbogram, or segmentation left to the sender's hardware.
        let end = match usize::from(slice.payload_length()) {
            0 => self.unstated(frame),
            len => {
                let field = ("payload length", self.at + 4);
                self.bounded(frame, LAYER, field, len, (0, 40))
            }
        };
        let word = u32_at(here, 0);
        let start = self.at;
        let mut ip = Ip {
            start,
            end,
            source: ipv6_at(here, 8).into(),
            destination: ipv6_at(here, 24).into(),
            traffic_class: (word >> 20 & 0xFF) as u8,
            hop_limit: slice.hop_limit(),
            flow_label: word & 0x000F_FFFF,
            protocol: slice.next_header().0,
            payload: start + 40,
        };
        self.push(frame, LAYER, 40, end)?;
        frame.options = Noted::NONE;
        frame.ip = Some(ip);
        let wire = end.min(frame.bytes.len());
        let packet = frame.bytes.get(..wire).unwrap_or_default();
        while let Some(header) = read_header(packet, ip.protocol, self.at) {
            let header = match header {
                Ok(header) => header,
                Err(e) => return Err(self.cut_or_malformed(frame, e)),
            };
            self.push(frame, header.layer, header.len, end)?;
            ip.protocol = header.next;
            ip.payload = self.at;
            match header.layer {
                Layer::Routing => {
                    ip.destination = last_segment_at(packet, &header)
                        .map_or(ip.destination, |at| ipv6_at(packet, at).into());
                }
                Layer::HopByHop | Layer::DestinationOptions => frame.note_options(&header),
                _ => {}
            }
            frame.ip = Some(ip);
            if header.layer == Layer::Fragment {
                let field = u16_at(packet, header.start + 2);
                let (offset, more) = (usize::from(field & 0xFFF8), field & 1 != 0);
                // RFC 6946: offset 0 and nothing to follow is a whole packet.
                if offset != 0 || more {
                    return Err(fragment(frame, offset, more));
                }
            }
        }
        self.protocol(frame, ip)
    }

    /// What the IP packet located last carries.
    // Always inlined, as this and `udp` are, so that `ip` need not be read again where it was just written.
    #[inline(always)]
    fn protocol(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        match ip.protocol {
            next_header::UDP => self.udp(frame, ip),
            next_header::TCP => self.tcp(frame),
            next_header::IPV4 => Ok(Next::EtherType(EtherType::IPV4)),
            next_header::IPV6 => Ok(Next::EtherType(EtherType::IPV6)),
            next_header::ETHERNET => Ok(Next::Ethernet),
            next_header::MPLS => Ok(Next::Mpls),
            next_header::OSPF => {
                let layer = if ip.source.is_ipv4() {
                    Layer::Ospf2
                } else {
                    Layer::Ospf3
                };
                frame.upper = Upper::Ospf(ip, self.have(frame, layer, 0)?);
                Self::payload(frame, layer, self.limit)
            }
            _ => Err(Stopped),
        }
    }

    fn tcp(&mut self, frame: &mut Frame<'_>) -> Step {
        let here = self.array::<20>(frame, Layer::Tcp)?;
        let words = u8_at(here, 12) >> 4;
        let header = usize::from(words) * 4;
        if header < 20 {
            let at = self.at + 12;
            let error = Error::value(Layer::Tcp, at, "data offset", words.into(), "5 to 15");
            return Err(malformed(frame, error));
        }
        self.have(frame, Layer::Tcp, header)?;
        let ports = [u16_at(here, 0), u16_at(here, 2)];
        self.push(frame, Layer::Tcp, header, self.limit)?;
        if ports.contains(&BGP_PORT) {
            frame.upper = Upper::Bgp(self.at, self.have(frame, Layer::Bgp, 0)?);
            return Self::payload(frame, Layer::Bgp, self.limit);
        }
        Err(Stopped)
    }

    #[inline(always)]
    fn udp(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        let here = self.array::<8>(frame, Layer::Udp)?;
        let Ok(header) = UdpHeaderSlice::from_slice(here) else {
            return Err(self.short(frame, Layer::Udp, 8));
        };
        let len = usize::from(header.length());
        let field = ("UDP length", self.at + 4);
        let end = match len {
            // RFC 2675: a jumbogram, which IPv4 has not.
            0 if ip.source.is_ipv6() => self.unstated(frame),
            0..8 => {
                let room = self.limit - self.at;
                let error = Error::length(Layer::Udp, field.1, field.0, len, 8, room);
                return Err(malformed(frame, error));
            }
            len => self.bounded(frame, Layer::Udp, field, len, (8, 0)),
        };
        let start = self.at;
        self.push(frame, Layer::Udp, 8, end)?;
        if header.destination_port() == VXLAN_PORT {
            return self.vxlan(frame);
        }
        let datagram = Datagram {
            ip,
            start,
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            checksum: header.checksum(),
            payload: self.here(frame),
            payload_len: end - self.at,
        };
        frame.upper = Upper::Udp(datagram);
        // One without octets, as scans and keep-alives send it, is anybody's.
        frame.roce = datagram.destination_port == frame.profile.rocev2_port
            && datagram.payload_len > 0
            && (!must_prove_roce(datagram.source_port, frame.profile.rocev2_port)
                || frame.proves_roce(&datagram));
        Self::payload(frame, Layer::Payload, end)
    }

    #[inline(never)]
    fn vxlan(&mut self, frame: &mut Frame<'_>) -> Step {
        let here = self.array::<8>(frame, Layer::Vxlan)?;
        // RFC 7348: the I flag must be set; otherwise this is not VXLAN as we know it.
        if u8_at(here, 0) & 0x08 == 0 {
            return Err(Stopped);
        }
        self.push(frame, Layer::Vxlan, 8, self.limit)?;
        Ok(Next::Ethernet)
    }
}
