//! The walk over a frame: header by header, each read once, from the link layer to the content of
//! the innermost packet. The results are kept in `frame.rs`.

use super::{
    Datagram, End, Frame, Ip, LinkType, MAX_LAYERS, MAX_TUNNELS, RecordedOptions, Span, Unread,
    Upper, overlong,
};
use crate::claim::must_prove_roce;
use crate::cnm::CNM_LEN;
use crate::csig::CSIG_LEN;
use crate::error::{Error, ErrorKind};
use crate::erspan::{Erspan, Mirror};
use crate::header::{
    ICRC_LEN, arista, cisco_metadata, ethernet, fragment, geneve, gre, gtp_u, ipv4, ipv6,
    linux_cooked, llc, tcp, tzsp, udp, vxlan_gpe,
};
use crate::infiniband::{Erf, Packet, Record, TRANSPORT, address_of_lid, lrh};
use crate::ipv6_ext::{last_segment_at, next_header, read_header};
use crate::layer::Layer;
use crate::octets::{array, ipv4_at, ipv6_at, u8_at, u16_at, u32_at};
use crate::pfc::{ETHERTYPE_MAC_CONTROL, OPCODE_PFC, PFC_LEN};
use crate::pnc::bgp;
use crate::profile::{GENEVE_PORT, GTP_U_PORT, TZSP_PORT, VXLAN_GPE_PORT, VXLAN_PORT};
use std::net::IpAddr;

/// Assumed length of a frame that a mirror has truncated, in octets: the usual snapshot length of a
/// capture.
const MAX_COPIED_LEN: usize = 1 << 18;

/// Locates the layers of `frame`, whose octets are set and which has no layers yet.
pub(super) fn locate(frame: &mut Frame<'_>, link: LinkType) {
    let mut walk = Walk {
        at: 0,
        limit: frame.wire_len,
        tunnels: 0,
    };
    let mut next = walk.link(frame, link);
    // Each round locates at least one layer or is the last, and `push` ends the walk at MAX_LAYERS.
    while let Ok(here) = next {
        next = walk.step(frame, here);
    }
}

/// Type of the next layer.
#[derive(Clone, Copy, Debug)]
enum Next {
    Ethernet,
    /// Announced by an EtherType.
    EtherType(u16),
    Mpls,
    /// IP of either version.
    Ip,
}

/// Position of the walk. Results are stored in the frame. This struct is small, stays in registers,
/// and is therefore passed by value to rarely called functions.
#[derive(Clone, Copy)]
struct Walk {
    /// First octet not yet located.
    at: usize,
    /// First octet after the carrier's content on the wire.
    limit: usize,
    tunnels: usize,
}

/// The walk has ended; the frame records the reason.
#[derive(Clone, Copy)]
struct WalkEnded;

type Step = Result<Next, WalkEnded>;

/// Errors.
impl Walk {
    /// Ends the walk because a layer needs `need` octets from here on, more than are available.
    #[cold]
    fn short(self, frame: &mut Frame<'_>, layer: Layer, need: usize) -> WalkEnded {
        let (want, have) = (self.at + need, frame.bytes.len());
        if want <= self.limit {
            let need = want;
            frame.end = End::Cut { layer, need, have };
        } else {
            let room = self.limit.saturating_sub(self.at);
            frame.end = End::Malformed(Error::short(layer, need, room).at(self.at));
        }
        WalkEnded
    }

    /// Ends the walk at an extension header that ends too late: cut if the wire had more than was
    /// captured, otherwise malformed.
    #[cold]
    fn cut_or_malformed(self, frame: &mut Frame<'_>, e: Error) -> WalkEnded {
        let have = frame.bytes.len();
        let ErrorKind::Short { need, .. } = e.kind else {
            return malformed(frame, e);
        };
        let (layer, end) = (e.layer, e.offset + need);
        if end <= self.limit && end > have {
            let need = end;
            frame.end = End::Cut { layer, need, have };
            return WalkEnded;
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
    ) -> WalkEnded {
        let error = Error::value(layer, self.at, field, u64::from(value), expected);
        malformed(frame, error)
    }
}

#[cold]
fn malformed(frame: &mut Frame<'_>, error: Error) -> WalkEnded {
    frame.end = End::Malformed(error);
    WalkEnded
}

/// Ends the walk before an encapsulation that is not opened.
#[cold]
fn unread(frame: &mut Frame<'_>, why: Unread) -> WalkEnded {
    frame.unread = Some(why);
    WalkEnded
}

#[cold]
fn stop_at_fragment(frame: &mut Frame<'_>, offset: usize, more: bool) -> WalkEnded {
    frame.end = End::Fragment { offset, more };
    WalkEnded
}

impl Walk {
    #[inline]
    fn step<'a>(&mut self, frame: &mut Frame<'a>, next: Next) -> Step {
        let number = match next {
            Next::Ethernet => self.ethernet(frame)?,
            Next::EtherType(number) => number,
            Next::Mpls => return self.mpls(frame),
            Next::Ip => match self.array::<1>(frame, Layer::Ipv4)?[0] >> 4 {
                4 => ethernet::IPV4,
                6 => ethernet::IPV6,
                version => {
                    return Err(self.value(frame, Layer::Ipv4, "version", version, "4 or 6"));
                }
            },
        };
        self.ether_type(frame, number)
    }

    /// Returns the octets from here on, up to the end of the carrier or of the capture.
    #[inline]
    fn remaining<'a>(&self, frame: &Frame<'a>) -> &'a [u8] {
        let end = self.limit.min(frame.bytes.len());
        frame.bytes.get(self.at..end).unwrap_or_default()
    }

    /// Returns the first `N` octets from here on.
    #[inline]
    fn array<'a, const N: usize>(
        &self,
        frame: &mut Frame<'a>,
        layer: Layer,
    ) -> Result<&'a [u8; N], WalkEnded> {
        match self.remaining(frame).first_chunk() {
            Some(octets) => Ok(octets),
            None => Err(self.short(frame, layer, N)),
        }
    }

    /// Returns the octets from here on, or an error if fewer than the `need` octets of a header are
    /// available.
    #[inline]
    fn require<'a>(
        &self,
        frame: &mut Frame<'a>,
        layer: Layer,
        need: usize,
    ) -> Result<&'a [u8], WalkEnded> {
        let remaining = self.remaining(frame);
        if remaining.len() < need || self.at > frame.bytes.len() {
            return Err(self.short(frame, layer, need));
        }
        Ok(remaining)
    }

    /// Locates a layer with `header` octets of header here and moves past the header; its content
    /// ends at `end`.
    #[inline]
    fn push(
        &mut self,
        frame: &mut Frame<'_>,
        layer: Layer,
        header: usize,
        end: usize,
    ) -> Result<(), WalkEnded> {
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

    /// Returns the end given by the length field `field` at `field_at`, limited to the carrier. The
    /// length is at least `min`, and counts from here on without the first `uncounted` octets.
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
            if self.is_truncated_copy(frame, layer) {
                frame.bytes = frame.bytes.get(..self.limit).unwrap_or(frame.bytes);
                frame.truncated_copy = true;
                return self.at + len;
            }
            let max = room.saturating_sub(uncounted);
            let error = Error::length(layer, field_at, field, value, min, max);
            overlong(frame, error);
            frame.overlong_at.get_or_insert(field_at);
        }
        self.at + len.min(room)
    }

    /// Returns true if an IP packet longer than the tunnel around it is a mirror's copy that was
    /// truncated without indicating it: the tunnel's own length is consistent, and there is no
    /// mirror that would have indicated it.
    #[cold]
    fn is_truncated_copy(&self, frame: &Frame<'_>, layer: Layer) -> bool {
        let says = |mirror: Mirror| !matches!(mirror.header, Erspan::I);
        self.tunnels > 1
            && matches!(layer, Layer::Ipv4 | Layer::Ipv6)
            && frame.overlong.is_none()
            && !frame.mirror.is_some_and(says)
    }

    /// Returns the carrier's end, for a length field that states none.
    #[cold]
    fn length_unstated(&self, frame: &mut Frame<'_>) -> usize {
        frame.length_unstated = true;
        self.limit
    }

    /// Stops at a payload that ends at `end`; the frame is cut if the capture ends earlier.
    #[inline]
    fn payload(frame: &mut Frame<'_>, layer: Layer, end: usize) -> Step {
        let have = frame.bytes.len();
        if end > have {
            let need = end;
            frame.end = End::Cut { layer, need, have };
        }
        Err(WalkEnded)
    }

    #[inline]
    fn link(&mut self, frame: &mut Frame<'_>, link: LinkType) -> Step {
        match link {
            LinkType::Ethernet => Ok(Next::Ethernet),
            LinkType::RawIp => Ok(Next::Ip),
            LinkType::LinuxCooked => self.cooked(frame, linux_cooked::LEN, linux_cooked::TYPE),
            LinkType::LinuxCooked2 => self.cooked(frame, linux_cooked::LEN_2, linux_cooked::TYPE_2),
            LinkType::Null => {
                let family = *self.array::<4>(frame, Layer::Ethernet)?;
                self.push(frame, Layer::Ethernet, 4, self.limit)?;
                // The byte order is that of the capturing host; the number of IPv6 differs between
                // systems.
                match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
                    2 | 10 | 24 | 28 | 30 => Ok(Next::Ip),
                    _ => Err(WalkEnded),
                }
            }
            LinkType::InfiniBand => self.infiniband(frame),
            LinkType::Erf => self.erf(frame),
        }
    }

    #[inline(never)]
    fn erf(&mut self, frame: &mut Frame<'_>) -> Step {
        const LAYER: Layer = Layer::Erf;
        let header = match Erf::parse(self.remaining(frame)) {
            Ok(header) => header,
            Err(need) => return Err(self.short(frame, LAYER, need)),
        };
        self.push(frame, LAYER, header.len, self.limit)?;
        self.limit = self.limit.min(self.at + header.wire_len);
        match header.record {
            Record::Ethernet => Ok(Next::Ethernet),
            Record::InfiniBand => self.infiniband(frame),
            Record::Other => Err(WalkEnded),
        }
    }

    #[inline(never)]
    fn infiniband(&mut self, frame: &mut Frame<'_>) -> Step {
        const LAYER: Layer = Layer::Lrh;
        let here = self.array::<{ lrh::LEN }>(frame, LAYER)?;
        let version = u8_at(here, lrh::VERSION) & 0x0F;
        if version != 0 {
            return Err(self.value(frame, LAYER, "version", version, "0"));
        }
        let next = u8_at(here, lrh::NEXT) & 3;
        let len = usize::from(u16_at(here, lrh::LENGTH) & 0x07FF) * 4;
        if len <= lrh::LEN {
            let room = self.limit - self.at;
            let at = self.at + lrh::LENGTH;
            let error = Error::length(LAYER, at, "packet length", len, lrh::LEN + 4, room);
            return Err(malformed(frame, error));
        }
        let start = self.at;
        // Captures may leave out CRCs.
        let end = self.limit.min(start + len);
        let [source, destination] =
            [lrh::SOURCE, lrh::DESTINATION].map(|at| address_of_lid(u16_at(here, at)));
        self.push(frame, LAYER, lrh::LEN, end)?;
        let mut ip = Ip {
            start,
            end,
            source,
            destination,
            traffic_class: 0,
            hop_limit: 0,
            flow_label: 0,
            protocol: TRANSPORT,
            payload: self.at,
        };
        frame.ip = Some(ip);
        match next {
            lrh::LOCAL => {}
            lrh::GLOBAL => ip = self.global_route(frame, (start, end))?,
            _ => return Err(WalkEnded),
        }
        frame.ip = Some(ip);
        self.transport(frame, ip)
    }

    /// Locates InfiniBand's transport after the headers `ip` was read from.
    fn transport(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        if ip.protocol != TRANSPORT {
            return Err(WalkEnded);
        }
        frame.upper = Upper::InfiniBand(Packet {
            ip,
            payload: self.require(frame, Layer::Bth, 0)?,
            payload_len: self.limit - self.at,
        });
        Self::payload(frame, Layer::Payload, self.limit)
    }

    /// Parses the Global Route Header, which has the layout of an IPv6 header, of a packet from
    /// `start` to `end`.
    fn global_route(
        &mut self,
        frame: &mut Frame<'_>,
        (start, end): (usize, usize),
    ) -> Result<Ip, WalkEnded> {
        const LAYER: Layer = Layer::Grh;
        let here = self.array::<{ ipv6::LEN }>(frame, LAYER)?;
        let word = u32_at(here, 0);
        if word >> 28 != 6 {
            return Err(self.value(frame, LAYER, "version", u8_at(here, 0) >> 4, "6"));
        }
        let ip = Ip {
            start,
            end,
            source: ipv6_at(here, ipv6::SOURCE).into(),
            destination: ipv6_at(here, ipv6::DESTINATION).into(),
            traffic_class: (word >> 20 & 0xFF) as u8,
            hop_limit: u8_at(here, ipv6::HOP_LIMIT),
            flow_label: word & 0x000F_FFFF,
            protocol: u8_at(here, ipv6::NEXT),
            payload: self.at + ipv6::LEN,
        };
        self.push(frame, LAYER, ipv6::LEN, self.limit).map(|()| ip)
    }

    fn cooked(&mut self, frame: &mut Frame<'_>, header: usize, protocol_at: usize) -> Step {
        let number = u16_at(
            self.require(frame, Layer::LinuxCooked, header)?,
            protocol_at,
        );
        self.push(frame, Layer::LinuxCooked, header, self.limit)?;
        match number {
            linux_cooked::LLC => self.llc(frame),
            // Other small numbers are specific to Linux, not lengths.
            0..ethernet::LEAST_TYPE => Err(WalkEnded),
            _ => Ok(Next::EtherType(number)),
        }
    }

    #[inline]
    fn ethernet(&mut self, frame: &mut Frame<'_>) -> Result<u16, WalkEnded> {
        let here = self.array::<{ ethernet::LEN }>(frame, Layer::Ethernet)?;
        let number = u16_at(here, ethernet::TYPE);
        self.push(frame, Layer::Ethernet, ethernet::LEN, self.limit)?;
        if number == ETHERTYPE_MAC_CONTROL {
            let destination = array(here, ethernet::DESTINATION);
            return self.mac_control(frame, destination).map(|_| number);
        }
        Ok(number)
    }

    #[inline(never)]
    fn mac_control(&mut self, frame: &mut Frame<'_>, destination: [u8; 6]) -> Step {
        let payload = self.require(frame, Layer::Pfc, 0)?;
        frame.upper = Upper::MacControl(self.at, payload, destination);
        // Octets after the pause times are padding. Other opcodes are not read.
        let read = match payload.first_chunk() {
            Some(opcode) if u16::from_be_bytes(*opcode) != OPCODE_PFC => 2,
            _ => PFC_LEN,
        };
        Self::payload(frame, Layer::Pfc, self.limit.min(self.at + read))
    }

    #[inline]
    fn ether_type(&mut self, frame: &mut Frame<'_>, number: u16) -> Step {
        match number {
            ethernet::IPV6 => self.ipv6(frame),
            ethernet::IPV4 => self.ipv4(frame),
            ethernet::TAG | ethernet::SERVICE_TAG | ethernet::OUTER_TAG => {
                let here = self.array::<{ ethernet::TAG_LEN }>(frame, Layer::Vlan)?;
                self.push(frame, Layer::Vlan, ethernet::TAG_LEN, self.limit)?;
                Ok(Next::EtherType(u16_at(here, ethernet::TAG_TYPE)))
            }
            ethernet::MPLS | ethernet::MPLS_UPSTREAM => Ok(Next::Mpls),
            // IEEE 802.3: a length, then LLC.
            len @ 0..=ethernet::MAX_LENGTH => {
                let field = ("length", self.at - 2);
                self.limit = self.bounded(frame, Layer::Ethernet, field, usize::from(len), (3, 0));
                self.llc(frame)
            }
            _ => self.rare_ether_type(frame, number),
        }
    }

    #[inline(never)]
    fn rare_ether_type(&mut self, frame: &mut Frame<'_>, number: u16) -> Step {
        match number {
            ethernet::VN_TAG => self.tagged(frame, Layer::VnTag, ethernet::VN_TAG_LEN),
            ethernet::E_TAG => self.tagged(frame, Layer::ETag, ethernet::E_TAG_LEN),
            ethernet::ARISTA => self.arista(frame),
            ethernet::CISCO_METADATA => {
                const LAYER: Layer = Layer::CiscoMetadata;
                let here = self.array::<{ cisco_metadata::LEN }>(frame, LAYER)?;
                let options = usize::from(u8_at(here, cisco_metadata::OPTIONS));
                let len = cisco_metadata::LEN + options * cisco_metadata::OPTION_LEN;
                self.tagged(frame, LAYER, len + 2)
            }
            ethernet::SERVICE_INSTANCE => {
                let len = ethernet::SERVICE_INSTANCE_LEN;
                self.header(frame, Layer::ServiceInstance, len)?;
                Ok(Next::Ethernet)
            }
            ethernet::ROCE_V1 => self.roce_v1(frame),
            ethernet::CN_TAG => self.tagged(frame, Layer::CnTag, ethernet::TAG_LEN),
            ethernet::CNM => {
                let payload = self.require(frame, Layer::Cnm, 0)?;
                frame.upper = Upper::Cnm(self.at, payload);
                Self::payload(frame, Layer::Cnm, self.limit.min(self.at + CNM_LEN))
            }
            _ if number == frame.profile.csig_ether_type => {
                self.tagged(frame, Layer::Csig, CSIG_LEN + 2)
            }
            _ if ethernet::PLAIN.contains(&number) => Err(WalkEnded),
            _ => Err(unread(frame, Unread::EtherType(number))),
        }
    }

    /// Parses a tag of `len` octets after its own EtherType; it ends with that of the payload.
    fn tagged(&mut self, frame: &mut Frame<'_>, layer: Layer, len: usize) -> Step {
        let next = u16_at(self.require(frame, layer, len)?, len - 2);
        self.push(frame, layer, len, self.limit)?;
        Ok(Next::EtherType(next))
    }

    fn arista(&mut self, frame: &mut Frame<'_>) -> Step {
        let here = self.array::<{ arista::LEN }>(frame, Layer::Arista)?;
        // The upper octet of the version is the time scale.
        let len = match (
            u16_at(here, arista::SUBTYPE),
            u8_at(here, arista::VERSION + 1),
        ) {
            (arista::TIMESTAMP, arista::BITS_64) => 8,
            (arista::TIMESTAMP, arista::BITS_48) => 6,
            _ => return Err(unread(frame, Unread::EtherType(ethernet::ARISTA))),
        };
        self.tagged(frame, Layer::Arista, arista::LEN + len + 2)
    }

    fn roce_v1(&mut self, frame: &mut Frame<'_>) -> Step {
        self.tunnel(frame, Layer::Grh)?;
        frame.enter_ip();
        frame.options = RecordedOptions::NONE;
        let here = self.array::<{ ipv6::LEN }>(frame, Layer::Grh)?;
        let field = ("payload length", self.at + ipv6::LENGTH);
        let len = match usize::from(u16_at(here, ipv6::LENGTH)) {
            // Captures may leave out the ICRC, as they do with the CRCs of InfiniBand's own link.
            len if self.at + ipv6::LEN + len == self.limit + ICRC_LEN => len - ICRC_LEN,
            len => len,
        };
        let start = self.at;
        let end = self.bounded(frame, Layer::Grh, field, len, (0, ipv6::LEN));
        self.limit = end;
        let ip = self.global_route(frame, (start, end))?;
        frame.ip = Some(ip);
        self.transport(frame, ip)
    }

    /// Parses LLC: IS-IS is FE FE 03 with discriminator 83, SNAP AA AA 03.
    fn llc(&mut self, frame: &mut Frame<'_>) -> Step {
        let end = self.limit;
        let here = *self.array(frame, Layer::Llc)?;
        if here == llc::SNAP {
            return self.snap(frame);
        }
        if here != llc::ISIS || end == self.at + 3 {
            return Err(WalkEnded);
        }
        if self.array::<4>(frame, Layer::Llc)?[3] != 0x83 {
            return Err(WalkEnded);
        }
        self.push(frame, Layer::Llc, 3, end)?;
        let pdu = self.require(frame, Layer::IsIs, 1)?;
        frame.upper = Upper::IsIs(self.at, pdu);
        self.push(frame, Layer::IsIs, 1, end)?;
        Self::payload(frame, Layer::IsIs, end)
    }

    fn snap(&mut self, frame: &mut Frame<'_>) -> Step {
        self.push(frame, Layer::Llc, llc::SNAP.len(), self.limit)?;
        let here = self.array::<{ llc::SNAP_LEN }>(frame, Layer::Snap)?;
        let number = u16_at(here, llc::SNAP_TYPE);
        let has_type = llc::ETHERTYPES.iter().any(|oui| here.starts_with(oui));
        if !has_type || number < ethernet::LEAST_TYPE {
            return Err(WalkEnded);
        }
        self.push(frame, Layer::Snap, llc::SNAP_LEN, self.limit)?;
        Ok(Next::EtherType(number))
    }

    fn mpls(&mut self, frame: &mut Frame<'_>) -> Step {
        let entry = u32::from_be_bytes(*self.array(frame, Layer::Mpls)?);
        self.push(frame, Layer::Mpls, ethernet::LABEL_LEN, self.limit)?;
        if entry & 0x100 == 0 {
            return Ok(Next::Mpls);
        }
        // RFC 4385: after the last label, the first nibble distinguishes IP from a pseudowire's
        // control word (0).
        match self.array::<1>(frame, Layer::Mpls)?[0] >> 4 {
            4 => Ok(Next::EtherType(ethernet::IPV4)),
            6 => Ok(Next::EtherType(ethernet::IPV6)),
            0 => {
                self.array::<4>(frame, Layer::Mpls)?;
                self.at += 4;
                Ok(Next::Ethernet)
            }
            _ => Err(WalkEnded),
        }
    }

    #[inline]
    fn tunnel(&mut self, frame: &mut Frame<'_>, layer: Layer) -> Result<(), WalkEnded> {
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
        let here = self.array::<{ ipv4::LEN }>(frame, LAYER)?;
        let (first, total) = (u8_at(here, 0), usize::from(u16_at(here, ipv4::LENGTH)));
        if first >> 4 != 4 {
            return Err(self.value(frame, LAYER, "version", first >> 4, "4"));
        }
        let header = usize::from(first & 0x0F) * 4;
        if header < ipv4::LEN {
            return Err(self.value(frame, LAYER, "IHL", first & 0x0F, "5 to 15"));
        }
        self.require(frame, LAYER, header)?;
        let field = ("total length", self.at + ipv4::LENGTH);
        // Total length 0: the sender left segmentation to its hardware, so only the carrier's end
        // is known.
        let end = match total {
            0 => self.length_unstated(frame),
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
            source: ipv4_at(here, ipv4::SOURCE).into(),
            destination: ipv4_at(here, ipv4::DESTINATION).into(),
            traffic_class: u8_at(here, ipv4::TOS),
            hop_limit: u8_at(here, ipv4::TTL),
            flow_label: 0,
            protocol: u8_at(here, ipv4::PROTOCOL),
            payload: self.at + header,
        };
        let field = u16_at(here, ipv4::FRAGMENT);
        let (offset, more) = (usize::from(field & 0x1FFF) * 8, field & 0x2000 != 0);
        self.push(frame, LAYER, header, end)?;
        frame.options = RecordedOptions::NONE;
        frame.ip = Some(ip);
        if more || offset != 0 {
            return Err(stop_at_fragment(frame, offset, more));
        }
        self.protocol(frame, ip)
    }

    #[inline]
    fn ipv6(&mut self, frame: &mut Frame<'_>) -> Step {
        const LAYER: Layer = Layer::Ipv6;
        self.tunnel(frame, LAYER)?;
        frame.enter_ip();
        let here = self.array::<{ ipv6::LEN }>(frame, LAYER)?;
        let word = u32_at(here, 0);
        if word >> 28 != 6 {
            return Err(self.value(frame, LAYER, "version", u8_at(here, 0) >> 4, "6"));
        }
        // 0: a jumbogram, or segmentation left to the sender's hardware.
        let end = match usize::from(u16_at(here, ipv6::LENGTH)) {
            0 => self.length_unstated(frame),
            len => {
                let field = ("payload length", self.at + ipv6::LENGTH);
                self.bounded(frame, LAYER, field, len, (0, ipv6::LEN))
            }
        };
        let start = self.at;
        let mut ip = Ip {
            start,
            end,
            source: ipv6_at(here, ipv6::SOURCE).into(),
            destination: ipv6_at(here, ipv6::DESTINATION).into(),
            traffic_class: (word >> 20 & 0xFF) as u8,
            hop_limit: u8_at(here, ipv6::HOP_LIMIT),
            flow_label: word & 0x000F_FFFF,
            protocol: u8_at(here, ipv6::NEXT),
            payload: start + ipv6::LEN,
        };
        self.push(frame, LAYER, ipv6::LEN, end)?;
        frame.options = RecordedOptions::NONE;
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
                Layer::HopByHop | Layer::DestinationOptions => frame.record_options(&header),
                _ => {}
            }
            frame.ip = Some(ip);
            if header.layer == Layer::Fragment {
                let field = u16_at(packet, header.start + fragment::OFFSET);
                let (offset, more) = (usize::from(field & 0xFFF8), field & 1 != 0);
                // RFC 6946: offset 0 without further fragments is a complete packet.
                if offset != 0 || more {
                    return Err(stop_at_fragment(frame, offset, more));
                }
            }
        }
        self.protocol(frame, ip)
    }

    /// Parses the payload of the IP packet located last.
    // Always inlined, like `udp`, so that `ip` need not be read back right after it was written.
    #[inline(always)]
    fn protocol(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        match ip.protocol {
            next_header::UDP => self.udp(frame, ip),
            next_header::TCP => self.tcp(frame),
            next_header::GRE => self.gre(frame, ip),
            next_header::IPV4 => Ok(Next::EtherType(ethernet::IPV4)),
            next_header::IPV6 => Ok(Next::EtherType(ethernet::IPV6)),
            next_header::ETHERNET => Ok(Next::Ethernet),
            next_header::MPLS => Ok(Next::Mpls),
            next_header::OSPF => {
                let layer = if ip.source.is_ipv4() {
                    Layer::Ospf2
                } else {
                    Layer::Ospf3
                };
                frame.upper = Upper::Ospf(ip, self.require(frame, layer, 0)?);
                Self::payload(frame, layer, self.limit)
            }
            _ => Err(WalkEnded),
        }
    }

    fn tcp(&mut self, frame: &mut Frame<'_>) -> Step {
        let here = self.array::<{ tcp::LEN }>(frame, Layer::Tcp)?;
        let words = u8_at(here, tcp::DATA_OFFSET) >> 4;
        let header = usize::from(words) * 4;
        if header < tcp::LEN {
            let at = self.at + tcp::DATA_OFFSET;
            let error = Error::value(Layer::Tcp, at, "data offset", words.into(), "5 to 15");
            return Err(malformed(frame, error));
        }
        self.require(frame, Layer::Tcp, header)?;
        let ports = [tcp::SOURCE, tcp::DESTINATION].map(|at| u16_at(here, at));
        self.push(frame, Layer::Tcp, header, self.limit)?;
        if ports.contains(&bgp::PORT) {
            frame.upper = Upper::Bgp(self.at, self.require(frame, Layer::Bgp, 0)?);
            return Self::payload(frame, Layer::Bgp, self.limit);
        }
        Err(WalkEnded)
    }

    #[inline(always)]
    fn udp(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        let here = self.array::<{ udp::LEN }>(frame, Layer::Udp)?;
        let len = usize::from(u16_at(here, udp::LENGTH));
        let field = ("UDP length", self.at + udp::LENGTH);
        let end = match len {
            // RFC 2675: a jumbogram, which exists only in IPv6.
            0 if ip.source.is_ipv6() => self.length_unstated(frame),
            0..udp::LEN => {
                let room = self.limit - self.at;
                let error = Error::length(Layer::Udp, field.1, field.0, len, udp::LEN, room);
                return Err(malformed(frame, error));
            }
            len => self.bounded(frame, Layer::Udp, field, len, (udp::LEN, 0)),
        };
        let start = self.at;
        self.push(frame, Layer::Udp, udp::LEN, end)?;
        let destination_port = u16_at(here, udp::DESTINATION);
        // A single comparison for RoCEv2.
        if destination_port != frame.profile.rocev2_port
            && let Some(step) = self.udp_tunnel(frame, destination_port)
        {
            return step;
        }
        let mut datagram = Datagram {
            ip,
            start,
            source_port: u16_at(here, udp::SOURCE),
            destination_port,
            checksum: u16_at(here, udp::CHECKSUM),
            payload: self.remaining(frame),
            payload_len: end - self.at,
        };
        // An empty datagram, as sent by scans and keep-alives, is not attributed to RoCEv2.
        frame.roce = datagram.destination_port == frame.profile.rocev2_port
            && datagram.payload_len > 0
            && (!must_prove_roce(datagram.source_port, frame.profile.rocev2_port)
                || frame.proves_roce(&datagram));
        let mut end = end;
        if frame.roce && frame.overlong_at.is_some() && self.tunnels == 1 {
            end = frame.restore_trimmed(&mut datagram).unwrap_or(end);
        }
        frame.upper = Upper::Udp(datagram);
        Self::payload(frame, Layer::Payload, end)
    }

    /// Parses the tunnel at that port; returns `None` if there is none. A datagram that merely uses
    /// the port by chance is not a tunnel: the header has to be complete and valid.
    #[inline]
    fn udp_tunnel(&mut self, frame: &mut Frame<'_>, port: u16) -> Option<Step> {
        match port {
            VXLAN_PORT => Some(self.vxlan(frame)),
            // A port that was chosen for our messages belongs to them.
            VXLAN_GPE_PORT | GENEVE_PORT | GTP_U_PORT | TZSP_PORT
                if ![frame.profile.proxy_cn_port, frame.profile.wan_fcn_port].contains(&port) =>
            {
                match port {
                    VXLAN_GPE_PORT => self.vxlan_gpe(frame),
                    GENEVE_PORT => self.geneve(frame),
                    TZSP_PORT => self.tzsp(frame),
                    _ => self.gtp_u(frame),
                }
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn vxlan(&mut self, frame: &mut Frame<'_>) -> Step {
        let here = self.array::<{ udp::VXLAN_LEN }>(frame, Layer::Vxlan)?;
        // RFC 7348: the I flag must be set; otherwise this is not standard VXLAN.
        if u8_at(here, 0) & udp::VXLAN_FLAG == 0 {
            return Err(WalkEnded);
        }
        self.push(frame, Layer::Vxlan, udp::VXLAN_LEN, self.limit)?;
        Ok(Next::Ethernet)
    }

    /// Parses a packet that a sniffer sends by TZSP.
    #[inline(never)]
    fn tzsp(&mut self, frame: &mut Frame<'_>) -> Option<Step> {
        let here = self.remaining(frame);
        let first = here.first_chunk::<{ tzsp::LEN }>()?;
        if !tzsp::ETHERNET.contains(first) {
            return None;
        }
        let exporter = frame.ip?.source;
        // Tagged fields: a type, and except for padding and end a length and that many octets.
        let mut len = tzsp::LEN;
        loop {
            let Some(kind) = here.get(len) else {
                return Some(Err(self.short(frame, Layer::Tzsp, len + 1)));
            };
            len += match *kind {
                tzsp::PADDING | tzsp::END => 1,
                _ => match here.get(len + 1) {
                    Some(octets) => 2 + usize::from(*octets),
                    None => return Some(Err(self.short(frame, Layer::Tzsp, len + 2))),
                },
            };
            if *kind == tzsp::END {
                break;
            }
        }
        let pushed = self.push(frame, Layer::Tzsp, len, self.limit);
        self.mirrored(frame, exporter, (Layer::Tzsp, Erspan::I));
        Some(pushed.map(|()| Next::Ethernet))
    }

    /// Records that a mirror copied the frame that begins here.
    fn mirrored(&self, frame: &mut Frame<'_>, exporter: IpAddr, (format, header): (Layer, Erspan)) {
        frame.mirror = Some(Mirror {
            exporter,
            start: self.at,
            format,
            header,
        });
    }

    #[inline(never)]
    fn vxlan_gpe(&mut self, frame: &mut Frame<'_>) -> Option<Step> {
        let header = self.remaining(frame).first_chunk::<{ vxlan_gpe::LEN }>()?;
        if u8_at(header, vxlan_gpe::FLAGS) & vxlan_gpe::IDENTIFYING_MASK != vxlan_gpe::DATA {
            return None;
        }
        let next = match u8_at(header, vxlan_gpe::NEXT) {
            vxlan_gpe::IPV4 => Next::EtherType(ethernet::IPV4),
            vxlan_gpe::IPV6 => Next::EtherType(ethernet::IPV6),
            vxlan_gpe::ETHERNET => Next::Ethernet,
            vxlan_gpe::MPLS => Next::Mpls,
            _ => return None,
        };
        let pushed = self.push(frame, Layer::VxlanGpe, vxlan_gpe::LEN, self.limit);
        Some(pushed.map(|()| next))
    }

    #[inline(never)]
    fn geneve(&mut self, frame: &mut Frame<'_>) -> Option<Step> {
        let here = self.remaining(frame).first_chunk::<{ geneve::LEN }>()?;
        let first = u8_at(here, geneve::OPTIONS_LEN);
        let is_control = u8_at(here, geneve::FLAGS) & geneve::CONTROL != 0;
        if first >> 6 != 0 || is_control {
            return None;
        }
        let next = payload_by_ether_type(u16_at(here, geneve::TYPE))?;
        let header = geneve::LEN + usize::from(first & 0x3F) * 4;
        Some(self.header(frame, Layer::Geneve, header).map(|()| next))
    }

    /// Locates a layer of `header` octets, which may be incomplete, whose content ends with its
    /// carrier.
    fn header(
        &mut self,
        frame: &mut Frame<'_>,
        layer: Layer,
        header: usize,
    ) -> Result<(), WalkEnded> {
        self.require(frame, layer, header)?;
        self.push(frame, layer, header, self.limit)
    }

    #[inline(never)]
    fn gtp_u(&mut self, frame: &mut Frame<'_>) -> Option<Step> {
        let header = self.remaining(frame).first_chunk::<{ gtp_u::LEN }>()?;
        let flags = u8_at(header, gtp_u::FLAGS);
        if flags & gtp_u::IDENTIFYING_MASK != gtp_u::VERSION_1
            || u8_at(header, gtp_u::TYPE) != gtp_u::G_PDU
        {
            return None;
        }
        let len = usize::from(u16_at(header, gtp_u::LENGTH));
        let field = ("length", self.at + gtp_u::LENGTH);
        self.limit = self.bounded(frame, Layer::GtpU, field, len, (0, gtp_u::LEN));
        Some(self.g_pdu(frame, flags))
    }

    fn g_pdu(&mut self, frame: &mut Frame<'_>, flags: u8) -> Step {
        const LAYER: Layer = Layer::GtpU;
        let mut header = gtp_u::LEN;
        let mut next = 0;
        if flags & gtp_u::OPTIONAL != 0 {
            header += gtp_u::OPTIONAL_LEN;
            let here = self.require(frame, LAYER, header)?;
            if flags & gtp_u::EXTENSION != 0 {
                next = u8_at(here, gtp_u::NEXT);
            }
        }
        // Each extension header begins with its length, in units of 4 octets, and ends with the
        // type of the next.
        let mut extensions = 0;
        while next != 0 {
            extensions += 1;
            let units = u8_at(self.require(frame, LAYER, header + 1)?, header);
            let at = self.at + header;
            if units == 0 {
                let field = "extension header length";
                let error = Error::value(LAYER, at, field, 0, "1 to 255");
                return Err(malformed(frame, error));
            }
            if extensions > MAX_LAYERS {
                let error = Error::limit(LAYER, at, "extension headers", MAX_LAYERS);
                return Err(malformed(frame, error));
            }
            header += usize::from(units) * 4;
            next = u8_at(self.require(frame, LAYER, header)?, header - 1);
        }
        self.push(frame, LAYER, header, self.limit)?;
        // A user's packet may also be an Ethernet frame or unstructured; the header does not
        // indicate it.
        match self.remaining(frame).first().map(|first| first >> 4) {
            Some(4) => Ok(Next::EtherType(ethernet::IPV4)),
            Some(6) => Ok(Next::EtherType(ethernet::IPV6)),
            Some(_) => Err(WalkEnded),
            None => Self::payload(frame, Layer::Payload, self.limit),
        }
    }

    #[inline(never)]
    fn gre(&mut self, frame: &mut Frame<'_>, ip: Ip) -> Step {
        let here = self.array::<{ gre::LEN }>(frame, Layer::Gre)?;
        let (flags, number) = (u16_at(here, gre::FLAGS), u16_at(here, gre::TYPE));
        if flags & gre::UNSUPPORTED_BITS != 0 {
            return Err(unread(frame, Unread::GreProtocol(number)));
        }
        let fields = flags & (gre::CHECKSUM_PRESENT | gre::KEY_PRESENT | gre::SEQUENCE_PRESENT);
        let header = gre::LEN + gre::FIELD_LEN * fields.count_ones() as usize;
        self.header(frame, Layer::Gre, header)?;
        let has_header = match number {
            gre::ERSPAN => flags & gre::SEQUENCE_PRESENT != 0,
            gre::ERSPAN_3 => true,
            gre::SPECTRUM => {
                self.header(frame, Layer::Spectrum, gre::SPECTRUM_LEN)?;
                self.mirrored(frame, ip.source, (Layer::Spectrum, Erspan::I));
                return Ok(Next::Ethernet);
            }
            _ => {
                let next = payload_by_ether_type(number);
                return next.ok_or_else(|| match gre::PLAIN.contains(&number) {
                    true => WalkEnded,
                    false => unread(frame, Unread::GreProtocol(number)),
                });
            }
        };
        let header = if has_header {
            let len = Erspan::header_len(number, self.remaining(frame));
            let here = self.require(frame, Layer::Erspan, len)?;
            let header = Erspan::parse(number, here).ok_or(WalkEnded)?;
            self.push(frame, Layer::Erspan, len, self.limit)?;
            header
        } else {
            Erspan::I
        };
        if header.is_truncated() {
            // Treated like a frame cut by the capture here: octets after the copy are padding of
            // the frame around it.
            frame.bytes = frame.bytes.get(..self.limit).unwrap_or(frame.bytes);
            self.limit = self.at + MAX_COPIED_LEN;
        }
        self.mirrored(frame, ip.source, (Layer::Erspan, header));
        Ok(Next::Ethernet)
    }
}

/// Returns the layer that a tunnel's header announces by an EtherType; `None` if it is not parsed.
const fn payload_by_ether_type(number: u16) -> Option<Next> {
    match number {
        gre::ETHERNET => Some(Next::Ethernet),
        ethernet::IPV4 | ethernet::IPV6 | ethernet::CISCO_METADATA => Some(Next::EtherType(number)),
        ethernet::MPLS | ethernet::MPLS_UPSTREAM => Some(Next::Mpls),
        _ => None,
    }
}
