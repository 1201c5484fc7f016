//! Locations of the fields in a template's frame, and code that writes them in place and patches
//! the ICRC and the IPv4 header checksum. `template.rs` lists the fields; `icrc.rs` defines the
//! coverage of the ICRC.

use super::{Change, Field, TemplateError};
use crate::bth::{ExtendedHeader, Roce, field as bth_field};
use crate::checksum;
use crate::error::Error;
use crate::fast_cnp::FastCnpRepr;
use crate::frame::{End, Frame};
use crate::header::{gre, ipv4, ipv6, udp};
use crate::icrc::{self, ICRC_LEN, Reading, Verdict};
use crate::ip;
use crate::layer::Layer;
use crate::octets::{array, put, u8_at, u16_at, u32_at};
use std::net::IpAddr;
use std::sync::Arc;

const NO_FLOW_LABEL: &str = "IPv4 has no flow label";
const NO_IDENTIFICATION: &str = "IPv6 has no identification";

/// Effect of an octet's changed bits on the ICRC, by its two nibbles.
// A table of all 256 values (1 KiB per octet) is as fast in isolation, but not when the kernel
// competes for the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct OctetTable {
    low: [u32; 16],
    high: [u32; 16],
}

impl OctetTable {
    /// Derives the table from the effect of the highest bit.
    fn new(highest: u32) -> Self {
        let mut bits = [0; 8];
        let mut adds = highest;
        // A lower bit is fed earlier, so one more zero bit follows it in the CRC.
        for bit in bits.iter_mut().rev() {
            *bit = adds;
            adds = adds >> 1 ^ if adds & 1 == 0 { 0 } else { icrc::POLYNOMIAL };
        }
        let (low, high) = bits.split_at(4);
        let half = |bits: &[u32]| {
            let mut effects = [0; 16];
            for (value, sum) in effects.iter_mut().enumerate() {
                for (bit, adds) in bits.iter().enumerate() {
                    *sum ^= if value >> bit & 1 != 0 { *adds } else { 0 };
                }
            }
            effects
        };
        Self {
            low: half(low),
            high: half(high),
        }
    }

    #[inline]
    fn effect(&self, changed: u8) -> u32 {
        self.low[usize::from(changed & 15)] ^ self.high[usize::from(changed >> 4)]
    }
}

/// Location of a field, and the effect of each of its octets on the ICRC.
#[derive(Clone, Debug)]
struct Patch {
    at: usize,
    /// `None` if the ICRC does not cover the field in the template's reading.
    tables: Option<Arc<[OctetTable]>>,
}

impl Patch {
    /// Writes `new` into the field, which has the same length, and patches `icrc`; returns the old
    /// value.
    #[inline(always)]
    fn apply<const N: usize>(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        new: [u8; N],
    ) -> Option<[u8; N]> {
        let field = frame.get_mut(self.at..)?.first_chunk_mut::<N>()?;
        let old = core::mem::replace(field, new);
        if let Some(tables) = &self.tables {
            let tables = tables.first_chunk::<N>()?;
            // Usually only the end of an address changes.
            let same = if N > END && old[..N - END] == new[..N - END] {
                N - END
            } else {
                0
            };
            for i in same..N {
                *icrc ^= tables[i].effect(old[i] ^ new[i]);
            }
        }
        Some(old)
    }
}

/// Number of octets at the end of an address that change more often than the others.
const END: usize = 4;
/// Number of fields that the ICRC covers in some reading: those up to [`Field::Identification`].
const COVERED: usize = Field::Identification as usize + 1;

/// Locations in the frame.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Start of the innermost IP header.
    ip: usize,
    is_ipv4: bool,
    udp: usize,
    icrc: usize,
    reading: Reading,
    /// Patches by field; `None` if the field is not to change.
    patches: [Option<Patch>; COVERED],
}

impl Layout {
    /// Returns the layout of a complete RoCEv2 frame with correct checksums; no field is prepared.
    pub(super) fn from_frame(frame: &Frame<'_>) -> Result<Self, Error> {
        match frame.end() {
            End::Complete => {}
            End::Malformed(e) => return Err(e),
            End::Cut { layer, need, have } => return Err(Error::short(layer, need, have)),
            End::Fragment { offset, .. } => {
                let (field, expected) = ("fragment offset", "an unfragmented packet");
                let offset = offset as u64;
                return Err(Error::value(Layer::Fragment, 0, field, offset, expected));
            }
        }
        let Some(datagram) = frame.datagram() else {
            let (at, found) = frame.ip().map_or((0, 0), |ip| (ip.start, ip.protocol));
            let (field, expected) = ("protocol", "17 (RoCEv2 uses UDP)");
            return Err(Error::value(Layer::Udp, at, field, found.into(), expected));
        };
        let port = datagram.destination_port;
        if port != frame.profile().rocev2_port {
            let at = datagram.start + udp::DESTINATION;
            let (field, expected) = ("destination port", "the profile's rocev2_port");
            return Err(Error::value(Layer::Udp, at, field, port.into(), expected));
        }
        let base = datagram.payload_at();
        Roce::new_checked(datagram.payload).map_err(|e| e.at(base))?;
        check_no_checksums(frame)?;
        let ip = datagram.ip.start;
        let is_ipv4 = datagram.ip.source.is_ipv4();
        if is_ipv4 {
            let header = frame.bytes().get(ip..datagram.start);
            check_ipv4_checksum(header.unwrap_or_default(), ip)?;
        }
        let icrc = base + datagram.payload_len - ICRC_LEN;
        let reading = match frame.verify_icrc() {
            Verdict::Good(reading) => reading.unwrap_or_default(),
            Verdict::Bad { .. } | Verdict::Unchecked => {
                let found = u64::from(u32_at(frame.bytes(), icrc).swap_bytes());
                let expected = "the value of one of the readings (emit with Policy::Compute)";
                return Err(Error::value(Layer::Icrc, icrc, "ICRC", found, expected));
            }
        };
        Ok(Self {
            ip,
            is_ipv4,
            udp: datagram.start,
            icrc,
            reading,
            patches: [const { None }; COVERED],
        })
    }

    /// Returns the ICRC of a frame with this layout.
    #[inline]
    pub(super) fn icrc(&self, frame: &[u8]) -> u32 {
        u32::from_le_bytes(array(frame, self.icrc))
    }

    /// Writes the ICRC.
    #[inline]
    pub(super) fn put_icrc(&self, frame: &mut [u8], icrc: u32) {
        put(frame, self.icrc, &icrc.to_le_bytes());
    }

    const fn bth(&self) -> usize {
        self.udp + udp::LEN
    }

    /// Locates `field` and builds its tables.
    pub(super) fn prepare(&mut self, frame: &Frame<'_>, field: Field) -> Result<(), TemplateError> {
        let lacks = |why| TemplateError::Lacks { field, why };
        let (ip, bth) = (self.ip, self.bth());
        let extended = |which, why| {
            let roce = Roce::new_checked(frame.bytes().get(bth..).unwrap_or_default())?;
            let at = roce.extended_at(which).ok_or(lacks(why))?;
            Ok::<_, TemplateError>(bth + at)
        };
        let reth = || extended(ExtendedHeader::Reth, "its opcode has no RETH");
        let (at, len) = match field {
            Field::Psn => (bth + bth_field::PSN, 3),
            Field::AckRequest => (bth + bth_field::ACK, 1),
            Field::DestQp => (bth + bth_field::DEST_QP, 3),
            Field::UdpSource => (self.udp + udp::SOURCE, 2),
            Field::DestinationAddress if is_routed(frame, ip) => {
                let why = "its routing header changes the meaning of the destination address";
                return Err(lacks(why));
            }
            Field::SourceAddress if self.is_ipv4 => (ip + ipv4::SOURCE, 4),
            Field::SourceAddress => (ip + ipv6::SOURCE, 16),
            Field::DestinationAddress if self.is_ipv4 => (ip + ipv4::DESTINATION, 4),
            Field::DestinationAddress => (ip + ipv6::DESTINATION, 16),
            Field::FastCnpOriginalDestination => {
                let at = original_destination_at(frame);
                (at.ok_or(lacks("it has no Fast CNP option"))?, 16)
            }
            Field::RethAddress => (reth()?, 8),
            Field::RethKey => (reth()? + 8, 4),
            Field::AethMsn => {
                let aeth = extended(ExtendedHeader::Aeth, "its opcode has no AETH")?;
                (aeth + 1, 3)
            }
            Field::Identification if self.is_ipv4 => (ip + ipv4::IDENTIFICATION, 2),
            Field::Identification => return Err(lacks(NO_IDENTIFICATION)),
            Field::FlowLabel if self.is_ipv4 => return Err(lacks(NO_FLOW_LABEL)),
            Field::FlowLabel | Field::TrafficClass | Field::Ecn | Field::HopLimit => return Ok(()),
        };
        let patch = self.patch(frame, at, len)?;
        if let Some(place) = self.patches.get_mut(field as usize) {
            *place = Some(patch);
        }
        Ok(())
    }

    /// Builds the patch of the field of `len` octets at `at`: for each octet, the change of the
    /// ICRC when its highest bit is flipped. Using `icrc::compute` makes this correct in every
    /// reading, as a reading either covers an octet or does not.
    fn patch(&self, frame: &Frame<'_>, at: usize, len: usize) -> Result<Patch, Error> {
        let short = || Error::short(Layer::Icrc, at + len, self.icrc);
        let packet = frame.bytes().get(self.ip..self.icrc).ok_or_else(short)?;
        let icrc = |packet: &[u8]| {
            icrc::compute(packet, self.udp - self.ip, self.reading).ok_or_else(short)
        };
        let (unchanged, mut packet) = (icrc(packet)?, packet.to_vec());
        let mut highest = Vec::with_capacity(len);
        for octet in at - self.ip..at - self.ip + len {
            flip(&mut packet, octet).ok_or_else(short)?;
            highest.push(icrc(&packet)? ^ unchanged);
            flip(&mut packet, octet).ok_or_else(short)?;
        }
        let covered = highest.iter().any(|difference| *difference != 0);
        let tables = covered.then(|| highest.into_iter().map(OctetTable::new).collect());
        Ok(Patch { at, tables })
    }

    /// Applies `change` to `frame`, which has this layout.
    // Always inlined, so that the match disappears if the caller names the field: with the match a
    // patch takes twice as long.
    #[inline(always)]
    pub(super) fn apply(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        change: Change,
    ) -> Result<(), TemplateError> {
        let field = change.field();
        match change {
            Change::Psn(value) | Change::AethMsn(value) => {
                self.write(frame, icrc, field, low_24(value)).map(drop)
            }
            Change::DestQp(qp) => self.write(frame, icrc, field, low_24(qp.get())).map(drop),
            Change::UdpSource(port) => self.write(frame, icrc, field, port.to_be_bytes()).map(drop),
            Change::RethAddress(address) => self
                .write(frame, icrc, field, address.to_be_bytes())
                .map(drop),
            Change::RethKey(key) => self.write(frame, icrc, field, key.to_be_bytes()).map(drop),
            Change::FastCnpOriginalDestination(address) => {
                self.write(frame, icrc, field, address.octets()).map(drop)
            }
            Change::AckRequest(on) => {
                let octet = u8_at(frame, self.bth() + bth_field::ACK);
                self.write(frame, icrc, field, [with_bit(octet, 0x80, on)])
                    .map(drop)
            }
            Change::Identification(_) if !self.is_ipv4 => {
                let why = NO_IDENTIFICATION;
                Err(TemplateError::Lacks { field, why })
            }
            Change::Identification(id) => {
                let old = self.write(frame, icrc, field, id.to_be_bytes())?;
                ip::patch_ipv4_checksum(self.packet(frame), [u16::from_be_bytes(old)], [id]);
                Ok(())
            }
            Change::SourceAddress(address) | Change::DestinationAddress(address) => {
                self.write_address(frame, icrc, field, address)
            }
            Change::FlowLabel(_) if self.is_ipv4 => {
                let why = NO_FLOW_LABEL;
                Err(TemplateError::Lacks { field, why })
            }
            Change::FlowLabel(label) => {
                ip::set_flow_label(self.packet(frame), label);
                Ok(())
            }
            Change::TrafficClass(class) => {
                ip::set_traffic_class(self.packet(frame), class, 0xFF);
                Ok(())
            }
            Change::Ecn(ecn) => {
                ip::set_traffic_class(self.packet(frame), ecn, 0b11);
                Ok(())
            }
            Change::HopLimit(hops) => {
                ip::set_hop_limit(self.packet(frame), hops);
                Ok(())
            }
        }
    }

    /// Writes `new` into `field`, and returns the old value.
    #[inline(always)]
    fn write<const N: usize>(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        field: Field,
        new: [u8; N],
    ) -> Result<[u8; N], TemplateError> {
        // The frame is as long as the template, in which every field was found: this fails only for
        // a field not prepared.
        let patch = self.patches.get(field as usize).and_then(Option::as_ref);
        let old = patch.and_then(|patch| patch.apply(frame, icrc, new));
        old.ok_or(TemplateError::NotPrepared(field))
    }

    #[inline(always)]
    fn write_address(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        field: Field,
        address: IpAddr,
    ) -> Result<(), TemplateError> {
        match address {
            IpAddr::V6(address) if !self.is_ipv4 => {
                self.write(frame, icrc, field, address.octets()).map(drop)
            }
            IpAddr::V4(address) if self.is_ipv4 => {
                let new = address.octets();
                let old = self.write(frame, icrc, field, new)?;
                let words = |[a, b, c, d]: [u8; 4]| [[a, b], [c, d]].map(u16::from_be_bytes);
                ip::patch_ipv4_checksum(self.packet(frame), words(old), words(new));
                Ok(())
            }
            _ => Err(match self.patches.get(field as usize) {
                Some(Some(_)) => TemplateError::Family(field),
                _ => TemplateError::NotPrepared(field),
            }),
        }
    }

    /// Returns the innermost IP packet.
    #[inline]
    fn packet<'f>(&self, frame: &'f mut [u8]) -> &'f mut [u8] {
        frame.get_mut(self.ip..).unwrap_or_default()
    }
}

const fn with_bit(octet: u8, bit: u8, on: bool) -> u8 {
    if on { octet | bit } else { octet & !bit }
}

const fn low_24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

/// Returns true if a routing header follows the IP header at `ip`.
fn is_routed(frame: &Frame<'_>, ip: usize) -> bool {
    let mut headers = frame.spans().iter().filter(|span| span.start > ip);
    headers.any(|span| span.layer == Layer::Routing)
}

fn flip(packet: &mut [u8], octet: usize) -> Option<()> {
    *packet.get_mut(octet)? ^= 0x80;
    Some(())
}

/// Checks that every UDP and GRE header of the frame states that it has no checksum: a tunnel's
/// checksum covers our fields, too.
fn check_no_checksums(frame: &Frame<'_>) -> Result<(), Error> {
    for span in frame.spans() {
        let (at, found) = match span.layer {
            Layer::Udp => {
                let at = span.start + udp::CHECKSUM;
                (at, u16_at(frame.bytes(), at))
            }
            Layer::Gre => {
                let flags = u16_at(frame.bytes(), span.start);
                (span.start, flags & gre::CHECKSUM_PRESENT)
            }
            _ => continue,
        };
        if found != 0 {
            let expected = "0, because every change would alter it";
            let error = Error::value(span.layer, at, "checksum", found.into(), expected);
            return Err(error);
        }
    }
    Ok(())
}

/// Checks an IPv4 header checksum: it is correct if the sum of all words is zero.
fn check_ipv4_checksum(header: &[u8], ip: usize) -> Result<(), Error> {
    if checksum::internet(&[header]) == 0 {
        return Ok(());
    }
    let (field, found) = ("header checksum", u16_at(header, ipv4::CHECKSUM).into());
    let (at, expected) = (ip + ipv4::CHECKSUM, "the correct checksum");
    Err(Error::value(Layer::Ipv4, at, field, found, expected))
}

/// Returns the offset of the data packet's destination in the Fast CNP option.
fn original_destination_at(frame: &Frame<'_>) -> Option<usize> {
    frame.options_headers().find_map(|header| {
        header.readable().find_map(|option| {
            let fast_cnp = FastCnpRepr::parse(option.kind, option.data, frame.profile())?.ok()?;
            let data = header.start + option.offset + 2;
            Some(data + fast_cnp.address_at(option.data.len()))
        })
    })
}
