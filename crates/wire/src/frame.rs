//! `Frame`: finds the layers in a captured frame: tags, labels, tunnels, IP with its extension headers, UDP.
//!
//! It locates and bounds; what a layer says is read by the views of the other modules, and what a message means is
//! `message.rs`'s business. Works on octets alone, allocates nothing, and reads each header once.

use crate::error::{Error, ErrorKind};
use crate::icrc::{self, Verdict};
use crate::ipv6_ext::{ExtHeader, Ipv6Option, Options, next_header, read_header};
use crate::layer::Layer;
use crate::octets::{array, ipv4_at, ipv6_at, u8_at, u16_at, u32_at};
use crate::pfc::{ETHERTYPE_MAC_CONTROL, OPCODE_PFC, PFC_LEN};
use crate::profile::{Profile, VXLAN_PORT};
use arrayvec::ArrayVec;
use etherparse::{
    EtherType, Ethernet2HeaderSlice, Ipv4HeaderSlice, Ipv6HeaderSlice, SingleVlanHeaderSlice,
    UdpHeaderSlice,
};
use std::net::IpAddr;

/// Most layers located in one frame; what lies deeper is left unread and said so.
pub const MAX_LAYERS: usize = 40;
/// Most IP headers inside one another.
pub const MAX_TUNNELS: usize = 6;

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

/// The layers of one frame.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    profile: &'a Profile,
    spans: ArrayVec<Span, MAX_LAYERS>,
    /// Whether the innermost IP packet has an options header: most have none.
    has_options: bool,
    ip: Option<Ip>,
    upper: Upper<'a>,
    end: End,
    /// A length field (of a layer, or of an IPv6 option) that claims more than its carrier holds: the walk goes on within
    /// the carrier.
    overlong: Option<Error>,
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
            has_options: false,
            ip: None,
            upper: Upper::Other,
            end: End::Complete,
            overlong: None,
        }
    }

    /// Finds the layers of another frame, in the place of this one's: a `Frame` is large, and many that are looked at
    /// together need not be moved to where they are kept.
    #[inline]
    pub fn renew(&mut self, bytes: &'a [u8], wire_len: usize, link: LinkType) {
        self.bytes = bytes;
        self.wire_len = wire_len.max(bytes.len());
        self.spans.clear();
        self.has_options = false;
        self.ip = None;
        self.upper = Upper::Other;
        self.end = End::Complete;
        self.overlong = None;
        self.walk(link);
    }

    /// Finds the layers. Apart from [`parse`](Self::parse), so that a frame is made where the caller wants it, and not moved.
    fn walk(&mut self, link: LinkType) {
        let limit = self.wire_len;
        let mut walk = Walk {
            frame: self,
            at: 0,
            limit,
            tunnels: 0,
        };
        let mut next = Next::Link(link);
        // Each round locates at least one layer or stops, and `push` stops at MAX_LAYERS.
        loop {
            match walk.step(next) {
                Ok(Next::Stop) => break,
                Ok(following) => next = following,
                Err(end) => {
                    walk.frame.end = end;
                    break;
                }
            }
        }
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

    /// Whether the innermost datagram is RoCEv2, by its destination port.
    #[must_use]
    pub fn is_roce(&self) -> bool {
        self.datagram()
            .is_some_and(|datagram| datagram.destination_port == self.profile.rocev2_port)
    }

    /// The Hop-by-Hop and Destination Options headers of the innermost IP packet.
    #[inline]
    pub fn options_headers(&self) -> impl Iterator<Item = OptionsHeader<'a>> {
        let (bytes, start) = (self.bytes, self.ip.map_or(usize::MAX, |ip| ip.start));
        let spans: &[Span] = if self.has_options { &self.spans } else { &[] };
        let innermost = spans.iter().skip_while(move |span| span.start != start);
        innermost.filter_map(move |span| {
            if !matches!(span.layer, Layer::HopByHop | Layer::DestinationOptions) {
                return None;
            }
            let bytes = bytes.get(span.start..span.header_end)?;
            Some(OptionsHeader {
                layer: span.layer,
                start: span.start,
                bytes,
            })
        })
    }

    /// Verifies the ICRC of a RoCEv2 packet; [`Verdict::Unchecked`] where there is none, or not all of the packet.
    #[must_use]
    pub fn verify_icrc(&self) -> Verdict {
        let Some(datagram) = self.datagram().filter(|datagram| datagram.is_whole()) else {
            return Verdict::Unchecked;
        };
        // An option that runs past its header leaves it clear where the packet ends.
        let unclear = self.overlong.filter(|e| e.layer != Layer::Ipv6Option);
        if unclear.is_some() || !self.is_roce() {
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

/// What the walk does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Link(LinkType),
    Ethernet,
    EtherType(u16),
    Mpls,
    Ip,
    Ipv4,
    Ipv6,
    Protocol,
    Stop,
}

struct Walk<'f, 'a> {
    /// Borrowed, as it is too large to be moved for nothing.
    frame: &'f mut Frame<'a>,
    /// First octet not yet located.
    at: usize,
    /// Octet behind what the carrier holds on the wire.
    limit: usize,
    tunnels: usize,
}

type Step = Result<Next, End>;

impl<'a> Walk<'_, 'a> {
    fn step(&mut self, next: Next) -> Step {
        match next {
            Next::Link(link) => self.link(link),
            Next::Ethernet => self.ethernet(),
            Next::EtherType(number) => self.ether_type(number),
            Next::Mpls => self.mpls(),
            Next::Ip => match self
                .have(Layer::Ipv4, 1)?
                .first()
                .map_or(0, |octet| octet >> 4)
            {
                4 => Ok(Next::Ipv4),
                6 => Ok(Next::Ipv6),
                version => Err(self.value(Layer::Ipv4, 0, "version", version, "4 or 6")),
            },
            Next::Ipv4 => self.ipv4(),
            Next::Ipv6 => self.ipv6(),
            Next::Protocol => self.protocol(),
            Next::Stop => Ok(Next::Stop),
        }
    }

    /// The octets from here on as far as carrier and capture go, at least `need` of them.
    fn have(&self, layer: Layer, need: usize) -> Result<&'a [u8], End> {
        let want = self.at + need;
        if want > self.limit {
            return Err(End::Malformed(
                Error::short(layer, need, self.limit.saturating_sub(self.at)).at(self.at),
            ));
        }
        let bytes = self.frame.bytes;
        if want > bytes.len() {
            return Err(End::Cut {
                layer,
                need: want,
                have: bytes.len(),
            });
        }
        Ok(bytes
            .get(self.at..self.limit.min(bytes.len()))
            .unwrap_or_default())
    }

    fn value(
        &self,
        layer: Layer,
        offset: usize,
        field: &'static str,
        value: u8,
        expected: &'static str,
    ) -> End {
        End::Malformed(Error::value(
            layer,
            self.at + offset,
            field,
            u64::from(value),
            expected,
        ))
    }

    /// Locates a layer of `header` octets here and goes behind its header; its content ends at `end`.
    fn push(&mut self, layer: Layer, header: usize, end: usize) -> Result<(), End> {
        let span = Span {
            layer,
            start: self.at,
            header_end: self.at + header,
            end,
        };
        if self.frame.spans.try_push(span).is_err() {
            return Err(End::Malformed(Error::limit(
                layer, self.at, "layers", MAX_LAYERS,
            )));
        }
        self.at += header;
        self.limit = end;
        Ok(())
    }

    /// The end that the length field `field` at `field_at` gives, within the carrier. It is at least `min`, and counts
    /// from here on without the first `uncounted` octets.
    fn bounded(
        &mut self,
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
            self.frame.overlong.get_or_insert(error);
        }
        self.at + len.min(room)
    }

    /// Stops at a payload that ends at `end`: cut where the capture ends before.
    fn payload(&self, layer: Layer, end: usize) -> Step {
        let have = self.frame.bytes.len();
        if end > have {
            return Err(End::Cut {
                layer,
                need: end,
                have,
            });
        }
        Ok(Next::Stop)
    }

    fn link(&mut self, link: LinkType) -> Step {
        match link {
            LinkType::Ethernet => Ok(Next::Ethernet),
            LinkType::RawIp => Ok(Next::Ip),
            LinkType::LinuxCooked => self.cooked(16, 14),
            LinkType::LinuxCooked2 => self.cooked(20, 0),
            LinkType::Null => {
                let family = array::<4>(self.have(Layer::Ethernet, 4)?, 0);
                self.push(Layer::Ethernet, 4, self.limit)?;
                // In the byte order of the capturing host; the number of IPv6 differs between systems.
                match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
                    2 | 10 | 24 | 28 | 30 => Ok(Next::Ip),
                    _ => Ok(Next::Stop),
                }
            }
        }
    }

    fn cooked(&mut self, header: usize, protocol_at: usize) -> Step {
        let number = u16_at(self.have(Layer::LinuxCooked, header)?, protocol_at);
        self.push(Layer::LinuxCooked, header, self.limit)?;
        match number {
            LINUX_802_2 => self.llc(),
            // Other small numbers are Linux's own, not lengths.
            0..1536 => Ok(Next::Stop),
            _ => Ok(Next::EtherType(number)),
        }
    }

    fn ethernet(&mut self) -> Step {
        let here = self.have(Layer::Ethernet, 14)?;
        let number =
            Ethernet2HeaderSlice::from_slice(here).map_or(0, |header| header.ether_type().0);
        let destination = array::<6>(here, 0);
        self.push(Layer::Ethernet, 14, self.limit)?;
        if number == ETHERTYPE_MAC_CONTROL {
            let payload = self.have(Layer::Pfc, 0)?;
            self.frame.upper = Upper::MacControl(self.at, payload, destination);
            // What is behind the pause times is padding. Other opcodes are not read.
            let read = match payload.first_chunk() {
                Some(opcode) if u16::from_be_bytes(*opcode) != OPCODE_PFC => 2,
                _ => PFC_LEN,
            };
            return self.payload(Layer::Pfc, self.limit.min(self.at + read));
        }
        Ok(Next::EtherType(number))
    }

    fn ether_type(&mut self, number: u16) -> Step {
        match EtherType(number) {
            EtherType::IPV4 => Ok(Next::Ipv4),
            EtherType::IPV6 => Ok(Next::Ipv6),
            EtherType::VLAN_TAGGED_FRAME
            | EtherType::PROVIDER_BRIDGING
            | EtherType::VLAN_DOUBLE_TAGGED_FRAME => {
                let here = self.have(Layer::Vlan, 4)?;
                let inner = SingleVlanHeaderSlice::from_slice(here)
                    .map_or(0, |header| header.ether_type().0);
                self.push(Layer::Vlan, 4, self.limit)?;
                Ok(Next::EtherType(inner))
            }
            EtherType(ETHERTYPE_MPLS | ETHERTYPE_MPLS_UPSTREAM) => Ok(Next::Mpls),
            // IEEE 802.3: a length, then LLC.
            EtherType(len @ 0..=1500) => {
                let field = ("length", self.at - 2);
                self.limit = self.bounded(Layer::Ethernet, field, usize::from(len), (3, 0));
                self.llc()
            }
            _ => Ok(Next::Stop),
        }
    }

    /// LLC: IS-IS is FE FE 03 with discriminator 83.
    fn llc(&mut self) -> Step {
        let here = self.have(Layer::Llc, 3)?;
        let end = self.limit;
        if array::<3>(here, 0) != [0xFE, 0xFE, 0x03] || end == self.at + 3 {
            return Ok(Next::Stop);
        }
        if u8_at(self.have(Layer::Llc, 4)?, 3) != 0x83 {
            return Ok(Next::Stop);
        }
        self.push(Layer::Llc, 3, end)?;
        let pdu = self.have(Layer::IsIs, 1)?;
        self.frame.upper = Upper::IsIs(self.at, pdu);
        self.push(Layer::IsIs, 1, end)?;
        self.payload(Layer::IsIs, end)
    }

    fn mpls(&mut self) -> Step {
        let entry = u32_at(self.have(Layer::Mpls, 4)?, 0);
        self.push(Layer::Mpls, 4, self.limit)?;
        if entry & 0x100 == 0 {
            return Ok(Next::Mpls);
        }
        // RFC 4385: behind the last label, the first nibble tells IP from a pseudowire's control word (0).
        match self
            .have(Layer::Mpls, 1)?
            .first()
            .map_or(0, |octet| octet >> 4)
        {
            4 => Ok(Next::Ipv4),
            6 => Ok(Next::Ipv6),
            0 => {
                self.have(Layer::Mpls, 4)?;
                self.at += 4;
                Ok(Next::Ethernet)
            }
            _ => Ok(Next::Stop),
        }
    }

    fn tunnel(&mut self, layer: Layer) -> Result<(), End> {
        self.tunnels += 1;
        if self.tunnels > MAX_TUNNELS {
            return Err(End::Malformed(Error::limit(
                layer,
                self.at,
                "IP headers inside one another",
                MAX_TUNNELS,
            )));
        }
        Ok(())
    }

    fn ipv4(&mut self) -> Step {
        self.tunnel(Layer::Ipv4)?;
        let here = self.have(Layer::Ipv4, 20)?;
        let (first, total) = (u8_at(here, 0), usize::from(u16_at(here, 2)));
        if first >> 4 != 4 {
            return Err(self.value(Layer::Ipv4, 0, "version", first >> 4, "4"));
        }
        let header = usize::from(first & 0x0F) * 4;
        if header < 20 {
            return Err(self.value(Layer::Ipv4, 0, "IHL", first & 0x0F, "5 to 15"));
        }
        let here = self.have(Layer::Ipv4, header)?;
        let Ok(slice) = Ipv4HeaderSlice::from_slice(here) else {
            return Err(self.value(Layer::Ipv4, 0, "version and IHL", first, "an IPv4 header"));
        };
        // Total length 0: the sender left segmentation to its hardware, so the carrier's end is all there is to know.
        let end = match total {
            0 => self.limit,
            total if total < header => {
                return Err(End::Malformed(Error::length(
                    Layer::Ipv4,
                    self.at + 2,
                    "total length",
                    total,
                    header,
                    self.limit - self.at,
                )));
            }
            total => {
                let field = ("total length", self.at + 2);
                self.bounded(Layer::Ipv4, field, total, (header, 0))
            }
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
        self.push(Layer::Ipv4, header, end)?;
        self.frame.ip = Some(ip);
        self.frame.has_options = false;
        if more || offset != 0 {
            return Err(End::Fragment { offset, more });
        }
        Ok(Next::Protocol)
    }

    fn ipv6(&mut self) -> Step {
        self.tunnel(Layer::Ipv6)?;
        let here = self.have(Layer::Ipv6, 40)?;
        let Ok(slice) = Ipv6HeaderSlice::from_slice(here) else {
            return Err(self.value(Layer::Ipv6, 0, "version", u8_at(here, 0) >> 4, "6"));
        };
        let payload_len = usize::from(slice.payload_length());
        // 0: a jumbogram, or segmentation left to the sender's hardware.
        let end = match payload_len {
            0 => self.limit,
            len => {
                let field = ("payload length", self.at + 4);
                self.bounded(Layer::Ipv6, field, len, (0, 40))
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
        self.push(Layer::Ipv6, 40, end)?;
        self.frame.ip = Some(ip);
        self.frame.has_options = false;
        loop {
            let wire = end.min(self.frame.bytes.len());
            let packet = self.frame.bytes.get(..wire).unwrap_or_default();
            let header = match read_header(packet, ip.protocol, self.at) {
                None => break,
                Some(Ok(header)) => header,
                Some(Err(e)) => return Err(self.cut_or_malformed(e)),
            };
            self.push(header.layer, header.len, end)?;
            ip.protocol = header.next;
            ip.payload = self.at;
            match header.layer {
                Layer::Routing => self.last_segment(&header, &mut ip),
                Layer::HopByHop | Layer::DestinationOptions => self.options(&header),
                _ => {}
            }
            self.frame.ip = Some(ip);
            if header.layer == Layer::Fragment {
                let field = u16_at(packet, header.start + 2);
                let (offset, more) = (usize::from(field & 0xFFF8), field & 1 != 0);
                // RFC 6946: offset 0 and nothing to follow is a whole packet.
                if offset != 0 || more {
                    return Err(End::Fragment { offset, more });
                }
            }
        }
        Ok(Next::Protocol)
    }

    /// Sees whether an option runs past its header; what they say is read later.
    fn options(&mut self, header: &ExtHeader) {
        self.frame.has_options = true;
        let (start, end) = (header.start, header.start + header.len);
        let bytes = self.frame.bytes.get(start..end).unwrap_or_default();
        if let Some(e) = Options::new(header.layer, bytes).find_map(Result::err) {
            self.frame.overlong.get_or_insert(e.at(start));
        }
    }

    /// Takes the final destination from a segment routing header (RFC 8754): segment 0 is the last one.
    fn last_segment(&self, header: &ExtHeader, ip: &mut Ip) {
        let bytes = self
            .frame
            .bytes
            .get(header.start..header.start + header.len)
            .unwrap_or_default();
        let (kind, left) = (u8_at(bytes, 2), u8_at(bytes, 3));
        if kind == 4 && left > 0 && bytes.len() >= 8 + 16 {
            ip.destination = ipv6_at(bytes, 8).into();
        }
    }

    /// An extension header that ends too late: cut where the wire had more than was captured, else malformed.
    fn cut_or_malformed(&self, e: Error) -> End {
        let have = self.frame.bytes.len();
        match e.kind {
            ErrorKind::Short { need, .. }
                if e.offset + need <= self.limit && e.offset + need > have =>
            {
                End::Cut {
                    layer: e.layer,
                    need: e.offset + need,
                    have,
                }
            }
            ErrorKind::Short { need, .. } => {
                let room = self.limit.saturating_sub(e.offset);
                End::Malformed(Error::short(e.layer, need, room).at(e.offset))
            }
            _ => End::Malformed(e),
        }
    }

    /// What the IP packet located last carries.
    fn protocol(&mut self) -> Step {
        let Some(ip) = self.frame.ip else {
            return Ok(Next::Stop);
        };
        match ip.protocol {
            next_header::UDP => self.udp(&ip),
            next_header::TCP => self.tcp(),
            next_header::IPV4 => Ok(Next::Ipv4),
            next_header::IPV6 => Ok(Next::Ipv6),
            next_header::ETHERNET => Ok(Next::Ethernet),
            next_header::MPLS => Ok(Next::Mpls),
            next_header::OSPF => {
                let layer = if ip.source.is_ipv4() {
                    Layer::Ospf2
                } else {
                    Layer::Ospf3
                };
                self.frame.upper = Upper::Ospf(ip, self.have(layer, 0)?);
                self.payload(layer, self.limit)
            }
            _ => Ok(Next::Stop),
        }
    }

    fn tcp(&mut self) -> Step {
        let here = self.have(Layer::Tcp, 20)?;
        let header = usize::from(u8_at(here, 12) >> 4) * 4;
        if header < 20 {
            return Err(self.value(
                Layer::Tcp,
                12,
                "data offset",
                u8_at(here, 12) >> 4,
                "5 to 15",
            ));
        }
        let here = self.have(Layer::Tcp, header)?;
        let ports = [u16_at(here, 0), u16_at(here, 2)];
        self.push(Layer::Tcp, header, self.limit)?;
        if ports.contains(&BGP_PORT) {
            self.frame.upper = Upper::Bgp(self.at, self.have(Layer::Bgp, 0)?);
            return self.payload(Layer::Bgp, self.limit);
        }
        Ok(Next::Stop)
    }

    fn udp(&mut self, ip: &Ip) -> Step {
        let here = self.have(Layer::Udp, 8)?;
        let Ok(header) = UdpHeaderSlice::from_slice(here) else {
            return Err(End::Malformed(
                Error::short(Layer::Udp, 8, here.len()).at(self.at),
            ));
        };
        let len = usize::from(header.length());
        let end = match len {
            // RFC 2675: a jumbogram, or segmentation left to the sender's hardware.
            0 => self.limit,
            1..8 => {
                let room = self.limit - self.at;
                return Err(End::Malformed(Error::length(
                    Layer::Udp,
                    self.at + 4,
                    "UDP length",
                    len,
                    8,
                    room,
                )));
            }
            len => self.bounded(Layer::Udp, ("UDP length", self.at + 4), len, (8, 0)),
        };
        let start = self.at;
        self.push(Layer::Udp, 8, end)?;
        if header.destination_port() == VXLAN_PORT {
            return self.vxlan();
        }
        let payload = self
            .frame
            .bytes
            .get(self.at..end.min(self.frame.bytes.len()))
            .unwrap_or_default();
        let datagram = Datagram {
            ip: *ip,
            start,
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            checksum: header.checksum(),
            payload,
            payload_len: end - self.at,
        };
        self.frame.upper = Upper::Udp(datagram);
        self.payload(Layer::Payload, end)
    }

    fn vxlan(&mut self) -> Step {
        let here = self.have(Layer::Vxlan, 8)?;
        // RFC 7348: the I flag must be set; otherwise this is not VXLAN as we know it.
        if u8_at(here, 0) & 0x08 == 0 {
            return Ok(Next::Stop);
        }
        self.push(Layer::Vxlan, 8, self.limit)?;
        Ok(Next::Ethernet)
    }
}
