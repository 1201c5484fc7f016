//! `Frame`: locates the layers in a captured frame: tags, labels, tunnels, IP with its extension
//! headers, UDP.
//!
//! This module locates and bounds layers (in `frame/walk.rs`). The views of the other modules read
//! their content, and `message.rs` interprets the message. It works on octets alone, allocates
//! nothing, and reads each header once.

pub mod claim;
pub(crate) mod layer;
pub mod message;
pub mod notification;
mod trimmed;
mod walk;

pub use trimmed::Trimming;

use crate::checksum;
use crate::claim::{Claim, Evidence, proves_roce};
use crate::csig::Csig;
use crate::error::Error;
use crate::erspan::Mirror;
use crate::header::{ipv4, ipv6, udp};
pub use crate::headers::link_type::LinkType;
use crate::icrc::{self, Verdict};
use crate::infiniband;
pub use crate::ip::Ip;
use crate::ipv6_ext::{ExtHeader, Ipv6Option, MAX_OPTIONS_HEADER, Options, next_header};
use crate::layer::Layer;
use crate::octets::{put, u8_at, u16_at};
use crate::pfc::OPCODE_PAUSE;
use crate::profile::{Profile, SFLOW_PORT};
use crate::proxy_cn::Family;
use crate::sflow;
use arrayvec::ArrayVec;
use std::net::IpAddr;

/// Maximum number of layers located in one frame; anything deeper is left unread and reported.
pub const MAX_LAYERS: usize = 40;
/// Maximum number of nested IP headers.
pub const MAX_TUNNELS: usize = 6;
const _: () = assert!(MAX_LAYERS < 1 << 8 && MAX_OPTIONS_HEADER < 1 << 16);

/// Location of one layer. All numbers count octets from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The layer.
    pub layer: Layer,
    /// First octet.
    pub start: usize,
    /// First octet after its header.
    pub header_end: usize,
    /// First octet after its content by its own length field, within the length of its carrier on
    /// the wire; may lie beyond the captured octets. A packet that a mirror has truncated, or a
    /// switch has trimmed, was longer than its carrier.
    pub end: usize,
}

/// Extent to which a frame could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Parsed up to a payload that this crate reads, or that is unrelated to it.
    Complete,
    /// The capture or a mirror truncated the packet inside this layer, which needs `need` octets of
    /// the frame; `have` were kept.
    Cut {
        /// The incomplete layer.
        layer: Layer,
        /// Octets of the frame that would be needed.
        need: usize,
        /// Octets captured, or kept by the mirror.
        have: usize,
    },
    /// A fragment: only complete datagrams are read.
    Fragment {
        /// Octets of the datagram before this fragment.
        offset: usize,
        /// True if more fragments follow.
        more: bool,
    },
    /// Cannot be parsed any further; the offset is from the start of the frame.
    Malformed(Error),
}

/// Reason why the content of a packet was not read, although it may be RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unread {
    /// A datagram to RoCEv2's port from this port, which RoCEv2 is not sent from, and nothing in
    /// it [proves](claim::proves_roce) that it is RoCEv2.
    RoceUnproven(u16),
    /// Something of this EtherType, which is not opened and may carry packets.
    EtherType(u16),
    /// GRE with this protocol, or of another version.
    GreProtocol(u16),
    /// A fragment.
    Fragment,
}

/// A UDP datagram, with the enclosing IP packet.
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
    /// UDP checksum as sent; 0 if the sender computed none.
    pub checksum: u16,
    /// Payload as far as captured.
    pub payload: &'a [u8],
    /// Length of the payload on the wire, in octets.
    pub payload_len: usize,
}

impl Datagram<'_> {
    /// Returns true if the whole payload was captured.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.payload.len() == self.payload_len
    }

    /// Returns the offset of the first octet of the payload in the frame.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.start + udp::LEN
    }

    /// Classifies the datagram as a notification to a proxy node, an FCN in the WAN, or another
    /// protocol, if it is sent to the port of either.
    #[must_use]
    pub fn claim(&self, profile: &Profile) -> Claim {
        let seen = Evidence {
            ports: (self.source_port, self.destination_port),
            payload: self.payload,
            payload_len: self.payload_len,
            outer: Family::from_address(self.ip.source),
            outer_len: self.ip.end - self.ip.start,
        };
        seen.claim(profile)
    }

    /// Returns true if the checksum makes the receiver drop the datagram: it is wrong, or 0 over
    /// IPv6 (RFC 768, RFC 8200 section 8.1). Returns false if the checksum cannot be verified
    /// because a part was not captured, and if it is the sum of the pseudo-header alone, which a
    /// sender's hardware has yet to complete in captures at the sender.
    #[must_use]
    pub fn has_bad_checksum(&self) -> bool {
        if self.checksum == 0 {
            return self.ip.source.is_ipv6();
        }
        if !self.is_whole() {
            return false;
        }
        match (self.ip.source, self.ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.checksum_mismatches([&source.octets(), &destination.octets()])
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.checksum_mismatches([&source.octets(), &destination.octets()])
            }
            _ => false,
        }
    }

    /// Returns true if the checksum is neither that of the datagram between `addresses` nor the sum
    /// of its pseudo-header.
    fn checksum_mismatches(&self, addresses: [&[u8]; 2]) -> bool {
        let len = udp::LEN + self.payload_len;
        let mut header = [0; udp::LEN];
        put(&mut header, udp::SOURCE, &self.source_port.to_be_bytes());
        put(
            &mut header,
            udp::DESTINATION,
            &self.destination_port.to_be_bytes(),
        );
        put(&mut header, udp::LENGTH, &(len as u16).to_be_bytes());
        let right =
            checksum::of_transport(addresses, next_header::UDP, len, &[&header, self.payload]);
        self.checksum != right
            && self.checksum != checksum::of_pseudo_header(addresses, next_header::UDP, len)
    }
}

/// Content of the innermost packet, as far as this crate parses it.
#[derive(Clone, Copy, Debug)]
pub enum Upper<'a> {
    /// A UDP datagram.
    Udp(Datagram<'a>),
    /// A native InfiniBand packet.
    InfiniBand(infiniband::Packet<'a>),
    /// A TCP segment to or from the BGP port: offset of its payload, and the payload as far as
    /// captured.
    Bgp(usize, &'a [u8]),
    /// An OSPF packet (version 2 in IPv4, 3 in IPv6), as far as captured.
    Ospf(Ip, &'a [u8]),
    /// An IS-IS PDU, from its discriminator: its offset, and the PDU as far as captured.
    IsIs(usize, &'a [u8]),
    /// A MAC control frame: offset of its opcode, the octets from there on as far as captured, and
    /// the destination MAC address.
    MacControl(usize, &'a [u8], [u8; 6]),
    /// A congestion notification message of a bridge (IEEE 802.1Q clause 33.4): its offset, and
    /// the message as far as captured.
    Cnm(usize, &'a [u8]),
    /// Anything else, or unreadable.
    Other,
}

/// Options of the innermost IP packet that the walk has recorded, so that no later search is
/// needed. The small integers suffice: a frame has at most [`MAX_LAYERS`] layers, and a header at
/// most [`MAX_OPTIONS_HEADER`] octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordedOptions {
    /// Index of the first options header among the layers; beyond the last layer if there is none.
    first: u8,
    /// Index of the header with the first Fast CNP option; beyond the last layer if there is none.
    fast_cnp: u8,
    /// Offset of that option in its header.
    offset: u16,
    /// An option runs past its header: the receiver of the packet drops it (RFC 8200 section 4.2).
    overrun: bool,
}

impl RecordedOptions {
    const NONE: Self = Self {
        first: MAX_LAYERS as u8,
        fast_cnp: MAX_LAYERS as u8,
        offset: 0,
        overrun: false,
    };

    /// Records a Fast CNP option; the first one counts.
    fn fast_cnp_at(&mut self, place: u8, offset: usize) {
        if self.fast_cnp == Self::NONE.fast_cnp {
            (self.fast_cnp, self.offset) = (place, offset as u16);
        }
    }
}

/// The layers of one frame.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    profile: &'a Profile,
    spans: ArrayVec<Span, MAX_LAYERS>,
    ip: Option<Ip>,
    options: RecordedOptions,
    mirror: Option<Mirror>,
    upper: Upper<'a>,
    roce: bool,
    /// Verdict on the ICRC, if it was needed to identify RoCEv2.
    icrc: Option<Verdict>,
    end: End,
    /// A length field (of a layer, or of an IPv6 option) that exceeds its carrier. The walk
    /// continues within the carrier.
    overlong: Option<Error>,
    /// Offset of the first such field in the innermost packet's IP and UDP headers.
    overlong_at: Option<usize>,
    /// IP or UDP of the innermost packet states no length.
    length_unstated: bool,
    /// A mirror has truncated the packet without indicating it.
    truncated_copy: bool,
    /// A switch has trimmed the packet and left its lengths as they were.
    trimmed: bool,
    /// Encapsulation that was not opened.
    unread: Option<Unread>,
}

impl<'a> Frame<'a> {
    /// Locates the layers of the frame `bytes`, which had `wire_len` octets on the wire.
    ///
    /// Never fails: [`end`](Self::end) reports how far parsing got.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &'a [u8], wire_len: usize, link: LinkType, profile: &'a Profile) -> Self {
        let mut frame = Self::empty(profile);
        frame.reparse(bytes, wire_len, link);
        frame
    }

    /// Creates an empty frame to be filled by [`reparse`](Self::reparse).
    // Always inlined, so that the frame is constructed in place.
    #[inline(always)]
    #[must_use]
    pub fn empty(profile: &'a Profile) -> Self {
        Self {
            bytes: &[],
            wire_len: 0,
            profile,
            spans: ArrayVec::new(),
            ip: None,
            options: RecordedOptions::NONE,
            mirror: None,
            upper: Upper::Other,
            roce: false,
            icrc: None,
            end: End::Complete,
            overlong: None,
            overlong_at: None,
            length_unstated: false,
            truncated_copy: false,
            trimmed: false,
            unread: None,
        }
    }

    /// Parses another frame in place. A `Frame` is large; reusing it avoids moving frames that are
    /// processed together.
    #[inline]
    pub fn reparse(&mut self, bytes: &'a [u8], wire_len: usize, link: LinkType) {
        self.bytes = bytes;
        self.wire_len = wire_len.max(bytes.len());
        self.spans.clear();
        self.ip = None;
        self.options = RecordedOptions::NONE;
        self.mirror = None;
        self.upper = Upper::Other;
        self.roce = false;
        self.icrc = None;
        self.end = End::Complete;
        self.overlong = None;
        self.truncated_copy = false;
        self.trimmed = false;
        self.unread = None;
        self.enter_ip();
        walk::locate(self, link);
    }

    /// Clears what was recorded about the lengths of the outer packet when an inner one begins.
    #[inline]
    const fn enter_ip(&mut self) {
        self.overlong_at = None;
        self.length_unstated = false;
    }

    /// Returns true if a packet in a tunnel is longer than the tunnel: the copy of a mirror that
    /// truncated it without indicating it.
    #[must_use]
    pub const fn is_truncated_copy(&self) -> bool {
        self.truncated_copy
    }

    /// Returns the captured octets. If a mirror truncated its copy of a frame, these end with the
    /// copy.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the length of the frame on the wire, in octets.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// Returns the profile with which the frame was parsed.
    #[must_use]
    pub const fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Returns the layers, outermost first.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns how far the frame could be parsed. A length field that exceeds its carrier makes the
    /// frame malformed (including an IPv6 option's, in a header of any of its packets), even though
    /// the octets after that field were read.
    #[must_use]
    pub fn end(&self) -> End {
        match (self.end, self.overlong) {
            (End::Complete | End::Fragment { .. } | End::Cut { .. }, Some(e)) => End::Malformed(e),
            (end, _) => end,
        }
    }

    /// Returns true if the frame could be parsed to its end and no length field exceeds its
    /// carrier.
    #[inline]
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete) && self.overlong.is_none()
    }

    /// Returns the offset of the IP or UDP length field of the innermost packet that contradicts
    /// the rest: a length that exceeds the carrier, a datagram that ends before its packet does, or
    /// an extension header that ends after it. IPv6 options' lengths are handled elsewhere.
    pub(crate) fn contradicting_length(&self) -> Option<usize> {
        let ip = self.ip?;
        if self.overlong_at.is_some() {
            return self.overlong_at;
        }
        let stated = ip.start
            + match ip.source.is_ipv4() {
                true => ipv4::LENGTH,
                false => ipv6::LENGTH,
            };
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
            // The header may be missing entirely, or lack its length field.
            let is_there = e.offset + 2 <= ip.end;
            return Some(if is_there { e.offset } else { stated });
        }
        let datagram = self.datagram()?;
        // Length 0: the carrier's end was taken as the packet's, including any padding.
        let short = datagram.payload_at() + datagram.payload_len < ip.end
            && self.bytes.get(stated..stated + 2) != Some(&[0, 0]);
        short.then_some(datagram.start + udp::LENGTH)
    }

    /// Returns true if the rules apply to the innermost packet: RoCEv2, one of our messages,
    /// well-formed or not, or a packet with a Fast CNP option, even in a header that is longer than
    /// its packet.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        let overruns = |e: &Error| {
            let rest = self.bytes.get(e.offset..).unwrap_or_default();
            matches!(e.layer, Layer::HopByHop | Layer::DestinationOptions)
                && (Options::new(e.layer, rest).flatten())
                    .any(|option| self.profile.is_fast_cnp(option.kind))
        };
        self.is_roce()
            || matches!(&self.end, End::Malformed(e) if overruns(e))
            || self.options.fast_cnp != RecordedOptions::NONE.fast_cnp
            || (self.datagram())
                .is_some_and(|datagram| datagram.claim(self.profile) != Claim::Others)
    }

    /// Returns where the walk stopped, regardless of length fields that exceed their carriers.
    pub(crate) const fn walk_end(&self) -> End {
        self.end
    }

    /// Returns true if the capture ends before the content of the innermost layer does.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let end = self.spans.last().map_or(self.wire_len, |span| span.end);
        end > self.bytes.len()
    }

    /// Returns the mirror that copied the frame, the innermost if several; its transport is not
    /// part of the frame's own path.
    #[inline]
    #[must_use]
    pub const fn mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()
    }

    /// Returns the layers of the frame itself: those copied by a [mirror](Self::mirror), if there
    /// is one.
    #[inline]
    #[must_use]
    pub fn inner_spans(&self) -> &[Span] {
        let Some(mirror) = &self.mirror else {
            return &self.spans;
        };
        let first = (self.spans).partition_point(|span| span.start < mirror.start);
        self.spans.get(first..).unwrap_or_default()
    }

    /// Returns the innermost IP packet.
    #[must_use]
    pub const fn ip(&self) -> Option<&Ip> {
        self.ip.as_ref()
    }

    /// Returns the innermost IP packet, unless it belongs to a tunnel or mirror around a frame
    /// without IP: its addresses are not those of the frame's sender.
    #[must_use]
    pub fn sender(&self) -> Option<&Ip> {
        let inner = |ip: &&Ip| {
            let behind = |span: &Span| span.layer == Layer::Ethernet && span.start > ip.start;
            !self.spans.iter().any(behind)
        };
        self.ip.as_ref().filter(inner)
    }

    /// Returns the content of the innermost packet.
    #[must_use]
    pub const fn upper(&self) -> &Upper<'a> {
        &self.upper
    }

    /// Returns the innermost UDP datagram.
    #[must_use]
    pub const fn datagram(&self) -> Option<&Datagram<'a>> {
        match &self.upper {
            Upper::Udp(datagram) => Some(datagram),
            _ => None,
        }
    }

    /// Returns the InfiniBand packet in a RoCEv2 datagram or on native InfiniBand, from its
    /// transport header on as far as captured, and its length on the wire in octets.
    #[inline]
    #[must_use]
    pub const fn transport(&self) -> Option<(&'a [u8], usize)> {
        match &self.upper {
            Upper::Udp(datagram) if self.roce => Some((datagram.payload, datagram.payload_len)),
            Upper::InfiniBand(packet) => Some((packet.payload, packet.payload_len)),
            _ => None,
        }
    }

    /// Returns the packet samples of the innermost datagram, if it is an sFlow datagram. They are
    /// packets of their own, and the datagram only carries them: none of their layers is located
    /// here.
    #[must_use]
    pub fn samples(&self) -> Option<sflow::Datagram<'a>> {
        let datagram = self.datagram()?;
        let profile = self.profile;
        let chosen = [
            profile.rocev2_port,
            profile.proxy_cn_port,
            profile.wan_fcn_port,
        ];
        if datagram.destination_port != SFLOW_PORT
            || chosen.contains(&SFLOW_PORT)
            || matches!(self.end(), End::Malformed(_))
        {
            return None;
        }
        sflow::Datagram::new_checked(datagram.payload, datagram.payload_len).ok()
    }

    /// Returns true if the innermost datagram is RoCEv2. It is recognised by its destination port,
    /// unless it is empty; if its source port belongs to other protocols, its content has to [prove
    /// it](proves_roce).
    #[inline]
    #[must_use]
    pub const fn is_roce(&self) -> bool {
        self.roce
    }

    /// Accepts the innermost datagram as RoCEv2, for a caller whose other packets of the flow prove
    /// it. Does nothing unless it is [unproven](Unread::RoceUnproven).
    pub fn accept_as_roce(&mut self) {
        self.roce |= matches!(self.unread(), Some(Unread::RoceUnproven(_)));
    }

    /// Returns the reason why the packet was not read, if it may be RoCE or carry it.
    #[inline]
    #[must_use]
    pub fn unread(&self) -> Option<Unread> {
        match &self.upper {
            Upper::Udp(datagram) if !self.roce => {
                let is_unproven = datagram.destination_port == self.profile.rocev2_port
                    && datagram.payload_len > 0;
                is_unproven.then_some(Unread::RoceUnproven(datagram.source_port))
            }
            Upper::Other => match (self.unread, self.end) {
                (None, End::Fragment { .. }) => self.is_fragment_of_tunnel_or_udp(),
                (unread, _) => unread,
            },
            _ => None,
        }
    }

    #[cold]
    fn is_fragment_of_tunnel_or_udp(&self) -> Option<Unread> {
        use next_header::{ETHERNET, GRE, IPV4, IPV6, MPLS, UDP};
        let protocol = self.ip?.protocol;
        ([UDP, GRE, IPV4, IPV6, ETHERNET, MPLS].contains(&protocol)).then_some(Unread::Fragment)
    }

    /// Returns true for RoCE v1: InfiniBand's transport after an Ethernet header and a Global Route
    /// Header (EtherType 0x8915).
    #[must_use]
    pub fn is_roce_v1(&self) -> bool {
        matches!(self.upper, Upper::InfiniBand(_))
            && !self.spans.iter().any(|span| span.layer == Layer::Lrh)
    }

    /// Returns the pause time in quanta of 512 bit times of a PAUSE frame (IEEE 802.3 annex 31B),
    /// which stops all traffic classes; 0 lets them resume.
    #[must_use]
    pub fn global_pause(&self) -> Option<u16> {
        let Upper::MacControl(_, bytes, _) = &self.upper else {
            return None;
        };
        let [opcode @ .., high, low] = bytes.first_chunk::<4>()?;
        (*opcode == OPCODE_PAUSE.to_be_bytes()).then(|| u16::from_be_bytes([*high, *low]))
    }

    /// Returns the source of the outermost Ethernet header. `None` if the frame begins with
    /// something else.
    #[must_use]
    pub fn ethernet_source(&self) -> Option<[u8; 6]> {
        let outermost = self.spans.first()?;
        let addresses = (outermost.layer == Layer::Ethernet).then_some(self.bytes)?;
        addresses.get(6..)?.first_chunk().copied()
    }

    /// Returns the source address of a MAC control frame, which is PAUSE or PFC.
    #[must_use]
    pub fn mac_control_source(&self) -> Option<[u8; 6]> {
        let Upper::MacControl(at, ..) = &self.upper else {
            return None;
        };
        let addresses = self.bytes.get(..at.checked_sub(2)?)?;
        addresses.last_chunk().copied()
    }

    /// Returns the frame's congestion signalling tag, the innermost if several.
    #[must_use]
    pub fn csig(&self) -> Option<Csig> {
        let span = self.spans.iter().rfind(|span| span.layer == Layer::Csig)?;
        Some(Csig::from_bits(u16_at(self.bytes, span.start)))
    }

    /// Returns true if `datagram`, of the innermost packet, proves to be RoCEv2.
    #[inline(never)]
    fn proves_roce(&mut self, datagram: &Datagram<'_>) -> bool {
        let has_fast_cnp = self.options.fast_cnp != RecordedOptions::NONE.fast_cnp;
        let mut verdict = None;
        let proved = proves_roce(datagram.payload, datagram.payload_len, has_fast_cnp, || {
            *verdict.insert(self.verdict(datagram))
        });
        self.icrc = verdict;
        proved
    }

    /// Records the options header located last, whether it has a Fast CNP option, and whether an
    /// option runs past it. The options are read later.
    fn record_options(&mut self, header: &ExtHeader) {
        let (place, profile) = ((self.spans.len() - 1) as u8, self.profile);
        let mut noted = self.options;
        noted.first = noted.first.min(place);
        let (start, end) = (header.start, header.start + header.len);
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        let mut options = Options::new(header.layer, bytes);
        for option in options.by_ref() {
            match option {
                Ok(option) if !option.is_padding() && profile.is_fast_cnp(option.kind) => {
                    noted.fast_cnp_at(place, option.offset);
                }
                Ok(_) => {}
                Err(e) => {
                    noted.overrun = true;
                    overlong(self, e.at(start));
                }
            }
        }
        // An option that runs past its header is still meant as one; a type without a length is the
        // end of the header.
        let failed = options.failed_at().filter(|at| at + 2 <= bytes.len());
        if let Some(at) = failed.filter(|at| profile.is_fast_cnp(u8_at(bytes, *at))) {
            noted.fast_cnp_at(place, at);
        }
        self.options = noted;
    }

    /// Returns the Hop-by-Hop and Destination Options headers of the innermost IP packet.
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

    /// Returns the offset and type of the option that contains octet `at` of the frame: an option
    /// of the innermost packet, possibly one that runs past its header.
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

    /// Returns the innermost packet's first Fast CNP option: its header, and its offset there. It
    /// may run past the header.
    #[inline]
    pub(crate) fn fast_cnp_option(&self) -> Option<(OptionsHeader<'a>, usize)> {
        let header = self.spans.get(usize::from(self.options.fast_cnp))?;
        Some((self.options_header(header)?, self.options.offset.into()))
    }

    /// Returns true if an option of the innermost IP packet runs past its header.
    #[inline]
    pub(crate) const fn has_overrunning_option(&self) -> bool {
        self.options.overrun
    }

    /// Verifies the ICRC of a RoCEv2 packet; [`Verdict::Unchecked`] if there is none, if the packet
    /// is incomplete or trimmed, or if a length field contradicts the packet.
    #[must_use]
    pub fn verify_icrc(&self) -> Verdict {
        match (self.icrc, self.datagram()) {
            (Some(verdict), _) if self.roce => verdict,
            (None, Some(datagram)) if self.roce && self.trimming().is_none() => {
                self.verdict(datagram)
            }
            _ => Verdict::Unchecked,
        }
    }

    fn verdict(&self, datagram: &Datagram<'_>) -> Verdict {
        // The lengths of outer packets are checked elsewhere. If a length is not stated, the range
        // that the ICRC covers is unknown.
        let unclear = self.overlong_at.is_some() || self.length_unstated || self.options.overrun;
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
    /// Offset of its first octet in the frame.
    pub start: usize,
    /// The whole header.
    pub bytes: &'a [u8],
}

impl<'a> OptionsHeader<'a> {
    /// Returns its options, with offsets from the start of the header.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options::new(self.layer, self.bytes)
    }

    /// Returns its options as far as they can be parsed.
    pub fn readable(&self) -> impl Iterator<Item = Ipv6Option<'a>> {
        self.options().map_while(Result::ok)
    }
}

/// Records a length field that exceeds its carrier; the first one counts.
#[cold]
fn overlong(frame: &mut Frame<'_>, error: Error) {
    frame.overlong.get_or_insert(error);
}
