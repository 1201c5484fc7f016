//! `Frame`: finds the layers in a captured frame: tags, labels, tunnels, IP with its extension headers, UDP.
//!
//! It locates and bounds (in `frame/walk.rs`); what a layer says is read by the views of the other modules, and what a
//! message means is in `message.rs`. Works on octets alone, allocates nothing, and reads each header once.

mod walk;

use crate::checksum;
use crate::claim::{Claim, Evidence, proves_roce};
use crate::error::Error;
use crate::erspan::Mirror;
use crate::header::{ipv4, ipv6, udp};
use crate::icrc::{self, Verdict};
use crate::infiniband;
pub use crate::ip::Ip;
use crate::ipv6_ext::{ExtHeader, Ipv6Option, MAX_OPTIONS_HEADER, Options, next_header};
use crate::layer::Layer;
pub use crate::link_type::LinkType;
use crate::octets::{put, u8_at};
use crate::profile::{Profile, SFLOW_PORT};
use crate::proxy_cn::Family;
use crate::sflow;
use arrayvec::ArrayVec;
use std::net::IpAddr;

/// Most layers located in one frame; what lies deeper is left unread and said so.
pub const MAX_LAYERS: usize = 40;
/// Most IP headers inside one another.
pub const MAX_TUNNELS: usize = 6;
const _: () = assert!(MAX_LAYERS < 1 << 8 && MAX_OPTIONS_HEADER < 1 << 16);

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
    /// behind the captured octets. What a mirror has cut was longer than its carrier.
    pub end: usize,
}

/// How far a frame could be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// To a payload that this crate reads, or that has nothing to do with it.
    Complete,
    /// The capture, or a mirror, cut the packet off inside this layer, which needs `need` octets of the frame where `have` were kept.
    Cut {
        /// The layer that is not all there.
        layer: Layer,
        /// Octets of the frame that would be needed.
        need: usize,
        /// Octets captured, or left by the mirror.
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
        self.start + udp::LEN
    }

    /// Whether it is a notification to a proxy node or an FCN in the WAN, where it goes to the port of either.
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
        match (self.ip.source, self.ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.is_wrong_between([&source.octets(), &destination.octets()])
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.is_wrong_between([&source.octets(), &destination.octets()])
            }
            _ => false,
        }
    }

    /// Whether the checksum is neither that of the datagram between `addresses` nor the sum of its pseudo-header.
    fn is_wrong_between(&self, addresses: [&[u8]; 2]) -> bool {
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

/// What the innermost packet carries, as far as this crate follows it.
#[derive(Clone, Copy, Debug)]
pub enum Upper<'a> {
    /// A UDP datagram.
    Udp(Datagram<'a>),
    /// A packet of InfiniBand's own link.
    InfiniBand(infiniband::Packet<'a>),
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

    /// Notes a Fast CNP option; the first one counts.
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
    options: Noted,
    mirror: Option<Mirror>,
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
    /// Whether a mirror has cut it without a word.
    cut_copy: bool,
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
            mirror: None,
            upper: Upper::Other,
            roce: false,
            icrc: None,
            end: End::Complete,
            overlong: None,
            beyond: None,
            unstated: false,
            cut_copy: false,
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
        self.mirror = None;
        self.upper = Upper::Other;
        self.roce = false;
        self.icrc = None;
        self.end = End::Complete;
        self.overlong = None;
        self.enter_ip();
        walk::locate(self, link);
    }

    /// Forgets what was noted of the lengths of the packet around the one that begins.
    #[inline]
    const fn enter_ip(&mut self) {
        self.beyond = None;
        self.unstated = false;
    }

    /// Whether a packet in a tunnel is longer than the tunnel, and so what a mirror has kept of one that did not say so.
    #[must_use]
    pub const fn is_cut_copy(&self) -> bool {
        self.cut_copy
    }

    /// The captured octets; where a mirror has cut the frame that it copied, those of that frame and what is in front of it.
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
            // Nothing of it may be there, or not even its length.
            let is_there = e.offset + 2 <= ip.end;
            return Some(if is_there { e.offset } else { stated });
        }
        let datagram = self.datagram()?;
        // 0: the carrier's end was taken for the packet's, with whatever pads it.
        let short = datagram.payload_at() + datagram.payload_len < ip.end
            && self.bytes.get(stated..stated + 2) != Some(&[0, 0]);
        short.then_some(datagram.start + udp::LENGTH)
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

    /// The mirror that has copied the frame, of several the innermost; its transport is no part of the frame's own path.
    #[inline]
    #[must_use]
    pub const fn mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()
    }

    /// The layers of the frame itself: those that a [mirror](Self::mirror) has copied, where there is one.
    #[inline]
    #[must_use]
    pub fn own_spans(&self) -> &[Span] {
        let Some(mirror) = &self.mirror else {
            return &self.spans;
        };
        let first = (self.spans).partition_point(|span| span.start < mirror.start);
        self.spans.get(first..).unwrap_or_default()
    }

    /// The innermost IP packet.
    #[must_use]
    pub const fn ip(&self) -> Option<&Ip> {
        self.ip.as_ref()
    }

    /// The innermost IP packet, unless it is a tunnel's or a mirror's around a frame that has none: its addresses are not those of
    /// who sent the frame.
    #[must_use]
    pub fn sender(&self) -> Option<&Ip> {
        let inner = |ip: &&Ip| {
            let behind = |span: &Span| span.layer == Layer::Ethernet && span.start > ip.start;
            !self.spans.iter().any(behind)
        };
        self.ip.as_ref().filter(inner)
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

    /// The InfiniBand packet that a RoCEv2 datagram or InfiniBand's own link carries: from its transport header on as far as
    /// captured, and its octets on the wire.
    #[inline]
    #[must_use]
    pub const fn transport(&self) -> Option<(&'a [u8], usize)> {
        match &self.upper {
            Upper::Udp(datagram) if self.roce => Some((datagram.payload, datagram.payload_len)),
            Upper::InfiniBand(packet) => Some((packet.payload, packet.payload_len)),
            _ => None,
        }
    }

    /// The samples of packets that the innermost datagram has, where it is one of sFlow. They are packets of their own, of
    /// which it is only the carrier: none is located here.
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
        // One that runs past its header is no less meant to be one; a type without a length is the end of the header.
        let failed = options.failed_at().filter(|at| at + 2 <= bytes.len());
        if let Some(at) = failed.filter(|at| profile.is_fast_cnp(u8_at(bytes, *at))) {
            noted.fast_cnp_at(place, at);
        }
        self.options = noted;
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

/// A length field claims too much; the first one counts.
#[cold]
fn overlong(frame: &mut Frame<'_>, error: Error) {
    frame.overlong.get_or_insert(error);
}
