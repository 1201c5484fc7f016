//! Where the fields of a template's frame are, and how each is written: in place, with the ICRC and the IPv4 header
//! checksum patched. Which fields there are is said in `template.rs`; what the ICRC covers is `icrc.rs`'s business.

use super::{Change, Field, TemplateError};
use crate::bth::{BTH_LEN, Bth, ExtendedHeader, Roce};
use crate::error::Error;
use crate::fast_cnp::FastCnp;
use crate::frame::{End, Frame};
use crate::icrc::{self, ICRC_LEN, Reading, Verdict};
use crate::layer::Layer;
use crate::octets::{array, put, u8_at, u16_at, u32_at};
use etherparse::Ipv4Header;
use std::net::IpAddr;
use std::sync::Arc;

const NO_FLOW_LABEL: &str = "IPv4 has no flow label";
const NO_IDENTIFICATION: &str = "IPv6 has no identification";

/// Offsets in the Base Transport Header.
mod bth_field {
    /// FECN, BECN.
    pub const ECN: usize = 4;
    pub const DEST_QP: usize = 5;
    /// Acknowledge request.
    pub const ACK: usize = 8;
    pub const PSN: usize = 9;
}

/// Offsets in the IPv4 header.
mod ipv4_field {
    pub const TOS: usize = 1;
    pub const IDENTIFICATION: usize = 4;
    pub const TTL: usize = 8;
    pub const CHECKSUM: usize = 10;
    pub const SOURCE: usize = 12;
    pub const DESTINATION: usize = 16;
}

/// Offsets in the IPv6 header; the first four octets hold version, traffic class and flow label.
mod ipv6_field {
    pub const HOP_LIMIT: usize = 7;
    pub const SOURCE: usize = 8;
    pub const DESTINATION: usize = 24;
}

/// What an octet's changed bits add to the ICRC, by its two halves.
// A table of all 256 values is as fast alone. Beside a kernel that wants the cache for its own work it is not: 1 KiB an octet.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct OctetTable {
    low: [u32; 16],
    high: [u32; 16],
}

impl OctetTable {
    /// From what each bit adds, the lowest first.
    fn new(bits: &[u32; 8]) -> Self {
        let (low, high) = bits.split_at(4);
        let half = |bits: &[u32]| {
            let mut sums = [0; 16];
            for (value, sum) in sums.iter_mut().enumerate() {
                for (bit, adds) in bits.iter().enumerate() {
                    *sum ^= if value >> bit & 1 != 0 { *adds } else { 0 };
                }
            }
            sums
        };
        Self {
            low: half(low),
            high: half(high),
        }
    }

    #[inline]
    fn of(&self, changed: u8) -> u32 {
        self.low[usize::from(changed & 15)] ^ self.high[usize::from(changed >> 4)]
    }
}

/// A field of `N` octets: where it is, and what each of its octets adds to the ICRC.
#[derive(Clone, Debug)]
struct Patch<const N: usize> {
    at: usize,
    /// None where the ICRC does not cover the field in the template's reading.
    tables: Option<Arc<[OctetTable; N]>>,
}

impl<const N: usize> Patch<N> {
    /// Writes `new` into the field and patches `icrc`; returns what the field held.
    #[inline(always)]
    fn apply(&self, frame: &mut [u8], icrc: &mut u32, new: [u8; N]) -> Option<[u8; N]> {
        let field = frame.get_mut(self.at..)?.first_chunk_mut::<N>()?;
        let old = core::mem::replace(field, new);
        if let Some(tables) = &self.tables {
            // Of an address, most often only the end changes.
            let same = if N > END && old[..N - END] == new[..N - END] {
                N - END
            } else {
                0
            };
            for i in same..N {
                *icrc ^= tables[i].of(old[i] ^ new[i]);
            }
        }
        Some(old)
    }
}

/// Octets at the end of an address that change more often than the others.
const END: usize = 4;

/// An address field of either family.
#[derive(Clone, Debug)]
enum AddressPatch {
    V4(Patch<4>),
    V6(Patch<16>),
}

/// Where things are in the frame; what is `None` was not asked for.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Start of the innermost IP header.
    ip: usize,
    is_ipv4: bool,
    udp: usize,
    icrc: usize,
    reading: Reading,
    psn: Option<Patch<3>>,
    ack: Option<Patch<1>>,
    dest_qp: Option<Patch<3>>,
    udp_source: Option<Patch<2>>,
    source: Option<AddressPatch>,
    destination: Option<AddressPatch>,
    original: Option<Patch<16>>,
    reth_address: Option<Patch<8>>,
    aeth_msn: Option<Patch<3>>,
    identification: Option<Patch<2>>,
}

impl Layout {
    /// The layout of a complete RoCEv2 frame whose checksums are right; no field prepared.
    pub(super) fn of(frame: &Frame<'_>) -> Result<Self, Error> {
        match frame.end() {
            End::Complete => {}
            End::Malformed(e) => return Err(e),
            End::Cut { layer, need, have } => return Err(Error::short(layer, need, have)),
            End::Fragment { offset, .. } => {
                let (field, offset) = ("fragment offset", offset as u64);
                return Err(Error::value(
                    Layer::Fragment,
                    0,
                    field,
                    offset,
                    "a whole packet",
                ));
            }
        }
        let Some(datagram) = frame.datagram() else {
            let (at, found) = frame
                .ip()
                .map_or((0, 0), |ip| (ip.start, u64::from(ip.protocol)));
            return Err(Error::value(
                Layer::Udp,
                at,
                "protocol",
                found,
                "17, for RoCEv2 is carried by UDP",
            ));
        };
        if datagram.destination_port != frame.profile().rocev2_port {
            let port = u64::from(datagram.destination_port);
            return Err(Error::value(
                Layer::Udp,
                datagram.start + 2,
                "destination port",
                port,
                "the profile's rocev2_port",
            ));
        }
        let base = datagram.payload_at();
        Roce::new_checked(datagram.payload).map_err(|e| e.at(base))?;
        no_udp_checksums(frame)?;
        let ip = datagram.ip.start;
        let is_ipv4 = datagram.ip.source.is_ipv4();
        if is_ipv4 {
            right_ipv4_checksum(frame.bytes(), ip)?;
        }
        let icrc = base + datagram.payload_len - ICRC_LEN;
        let reading = match frame.verify_icrc() {
            Verdict::Good(reading) => reading.unwrap_or_default(),
            Verdict::Bad { .. } | Verdict::Unchecked => {
                let found = u64::from(u32_at(frame.bytes(), icrc).swap_bytes());
                let expected = "what one of the readings gives (emit with Policy::Compute)";
                return Err(Error::value(Layer::Icrc, icrc, "ICRC", found, expected));
            }
        };
        Ok(Self {
            ip,
            is_ipv4,
            udp: datagram.start,
            icrc,
            reading,
            psn: None,
            ack: None,
            dest_qp: None,
            udp_source: None,
            source: None,
            destination: None,
            original: None,
            reth_address: None,
            aeth_msn: None,
            identification: None,
        })
    }

    /// The reading by which the ICRC is kept right.
    pub(super) const fn reading(&self) -> Reading {
        self.reading
    }

    /// The ICRC of a frame of this layout.
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
        self.udp + 8
    }

    /// Finds `field` and builds its tables.
    pub(super) fn prepare(&mut self, frame: &Frame<'_>, field: Field) -> Result<(), TemplateError> {
        let lacks = |why| TemplateError::Lacks { field, why };
        let bth = self.bth();
        match field {
            Field::Psn => self.psn = Some(self.patch(frame, bth + bth_field::PSN)?),
            Field::AckRequest => self.ack = Some(self.patch(frame, bth + bth_field::ACK)?),
            Field::DestQp => self.dest_qp = Some(self.patch(frame, bth + bth_field::DEST_QP)?),
            Field::UdpSource => self.udp_source = Some(self.patch(frame, self.udp)?),
            Field::SourceAddress => {
                let at = (ipv4_field::SOURCE, ipv6_field::SOURCE);
                self.source = Some(self.address(frame, at)?);
            }
            Field::DestinationAddress => {
                if frame
                    .spans()
                    .iter()
                    .any(|s| s.layer == Layer::Routing && s.start > self.ip)
                {
                    return Err(lacks(
                        "its routing header decides what the destination address means",
                    ));
                }
                let at = (ipv4_field::DESTINATION, ipv6_field::DESTINATION);
                self.destination = Some(self.address(frame, at)?);
            }
            Field::FastCnpOriginalDestination => {
                let at = original_destination_at(frame)
                    .ok_or(lacks("there is no Fast CNP option in it"))?;
                self.original = Some(self.patch(frame, at)?);
            }
            Field::RethAddress => {
                let at = extended_at(frame, bth, ExtendedHeader::Reth)
                    .ok_or(lacks("its opcode has no RETH"))?;
                self.reth_address = Some(self.patch(frame, at)?);
            }
            Field::AethMsn => {
                let at = extended_at(frame, bth, ExtendedHeader::Aeth)
                    .ok_or(lacks("its opcode has no AETH"))?;
                self.aeth_msn = Some(self.patch(frame, at + 1)?);
            }
            Field::Identification if !self.is_ipv4 => {
                return Err(lacks(NO_IDENTIFICATION));
            }
            Field::Identification => {
                let at = self.ip + ipv4_field::IDENTIFICATION;
                self.identification = Some(self.patch(frame, at)?);
            }
            Field::FlowLabel if self.is_ipv4 => return Err(lacks(NO_FLOW_LABEL)),
            Field::FlowLabel
            | Field::TrafficClass
            | Field::Ecn
            | Field::HopLimit
            | Field::Fecn
            | Field::Becn => {}
        }
        Ok(())
    }

    fn address(
        &self,
        frame: &Frame<'_>,
        (v4, v6): (usize, usize),
    ) -> Result<AddressPatch, TemplateError> {
        Ok(if self.is_ipv4 {
            AddressPatch::V4(self.patch(frame, self.ip + v4)?)
        } else {
            AddressPatch::V6(self.patch(frame, self.ip + v6)?)
        })
    }

    /// The patch of the field at `at`: for each bit of it, the difference that flipping it makes to the ICRC. Asking
    /// `icrc::compute` makes this right in every reading, also where it covers a part of the field only.
    fn patch<const N: usize>(&self, frame: &Frame<'_>, at: usize) -> Result<Patch<N>, Error> {
        let short = || Error::short(Layer::Icrc, at + N, self.icrc);
        let mut packet = frame
            .bytes()
            .get(self.ip..self.icrc)
            .ok_or_else(short)?
            .to_vec();
        let icrc = |packet: &[u8]| {
            icrc::compute(packet, self.udp - self.ip, self.reading).ok_or_else(short)
        };
        let unchanged = icrc(&packet)?;
        let mut tables = [OctetTable::default(); N];
        let mut covered = false;
        for (i, table) in tables.iter_mut().enumerate() {
            let octet = at - self.ip + i;
            let mut adds = [0; 8];
            for (bit, adds) in (0..).zip(&mut adds) {
                flip(&mut packet, octet, bit).ok_or_else(short)?;
                *adds = icrc(&packet)? ^ unchanged;
                flip(&mut packet, octet, bit).ok_or_else(short)?;
            }
            covered |= adds != [0; 8];
            *table = OctetTable::new(&adds);
        }
        let tables = covered.then(|| Arc::new(tables));
        Ok(Patch { at, tables })
    }

    /// Makes `change` in `frame`, which has this layout.
    // Always inlined, so that the match is gone where the caller names the field: with it a patch takes twice as long.
    #[inline(always)]
    pub(super) fn apply(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        change: Change,
    ) -> Result<(), TemplateError> {
        let field = change.field();
        match change {
            Change::Psn(psn) => self.write(&self.psn, (frame, icrc), low_24(psn), field),
            Change::DestQp(qp) => self.write(&self.dest_qp, (frame, icrc), low_24(qp.get()), field),
            Change::AethMsn(msn) => self.write(&self.aeth_msn, (frame, icrc), low_24(msn), field),
            Change::UdpSource(port) => {
                self.write(&self.udp_source, (frame, icrc), port.to_be_bytes(), field)
            }
            Change::RethAddress(address) => self.write(
                &self.reth_address,
                (frame, icrc),
                address.to_be_bytes(),
                field,
            ),
            Change::FastCnpOriginalDestination(address) => {
                self.write(&self.original, (frame, icrc), address.octets(), field)
            }
            Change::AckRequest(on) => {
                let octet = u8_at(frame, self.bth() + bth_field::ACK);
                self.write(&self.ack, (frame, icrc), [with_bit(octet, 0x80, on)], field)
            }
            Change::Identification(id) => self.write_identification(frame, icrc, id),
            Change::SourceAddress(address) => {
                self.write_address(&self.source, (frame, icrc), address, field)
            }
            Change::DestinationAddress(address) => {
                self.write_address(&self.destination, (frame, icrc), address, field)
            }
            Change::FlowLabel(label) => self.write_flow_label(frame, label),
            Change::TrafficClass(class) => self.write_traffic_class(frame, class, 0xFF),
            Change::Ecn(ecn) => self.write_traffic_class(frame, ecn, 0b11),
            Change::HopLimit(hops) => self.write_hop_limit(frame, hops),
            Change::Fecn(on) => self.write_bth_ecn(frame, 0x80, on),
            Change::Becn(on) => self.write_bth_ecn(frame, 0x40, on),
        }
    }

    #[inline(always)]
    fn write<const N: usize>(
        &self,
        patch: &Option<Patch<N>>,
        (frame, icrc): (&mut [u8], &mut u32),
        new: [u8; N],
        field: Field,
    ) -> Result<(), TemplateError> {
        // The frame is as long as the template, in which every field was found: only a field not prepared gives none.
        patch
            .as_ref()
            .and_then(|patch| patch.apply(frame, icrc, new))
            .map(drop)
            .ok_or(TemplateError::NotPrepared(field))
    }

    fn write_identification(
        &self,
        frame: &mut [u8],
        icrc: &mut u32,
        id: u16,
    ) -> Result<(), TemplateError> {
        let old = self.identification.as_ref();
        let old = old.and_then(|patch| patch.apply(frame, icrc, id.to_be_bytes()));
        let old = match old {
            Some(old) => u16::from_be_bytes(old),
            None if self.is_ipv4 => return Err(TemplateError::NotPrepared(Field::Identification)),
            None => {
                return Err(TemplateError::Lacks {
                    field: Field::Identification,
                    why: NO_IDENTIFICATION,
                });
            }
        };
        self.patch_ipv4_checksum(frame, [old], [id]);
        Ok(())
    }

    #[inline(always)]
    fn write_address(
        &self,
        patch: &Option<AddressPatch>,
        (frame, icrc): (&mut [u8], &mut u32),
        address: IpAddr,
        field: Field,
    ) -> Result<(), TemplateError> {
        let written = match (patch, address) {
            (None, _) => None,
            (Some(AddressPatch::V6(patch)), IpAddr::V6(address)) => {
                patch.apply(frame, icrc, address.octets()).map(drop)
            }
            (Some(AddressPatch::V4(patch)), IpAddr::V4(address)) => {
                let new = address.octets();
                patch.apply(frame, icrc, new).map(|old| {
                    let words = |[a, b, c, d]: [u8; 4]| [[a, b], [c, d]].map(u16::from_be_bytes);
                    self.patch_ipv4_checksum(frame, words(old), words(new));
                })
            }
            (Some(_), _) => return Err(TemplateError::Family(field)),
        };
        written.ok_or(TemplateError::NotPrepared(field))
    }

    fn write_flow_label(&self, frame: &mut [u8], label: u32) -> Result<(), TemplateError> {
        if self.is_ipv4 {
            return Err(TemplateError::Lacks {
                field: Field::FlowLabel,
                why: NO_FLOW_LABEL,
            });
        }
        self.write_ipv6_word(frame, label, 0x000F_FFFF);
        Ok(())
    }

    /// Writes the bits of `mask` of the traffic class or TOS.
    fn write_traffic_class(
        &self,
        frame: &mut [u8],
        class: u8,
        mask: u8,
    ) -> Result<(), TemplateError> {
        if self.is_ipv4 {
            self.write_ipv4_octet(frame, ipv4_field::TOS, class, mask);
        } else {
            self.write_ipv6_word(frame, u32::from(class) << 20, u32::from(mask) << 20);
        }
        Ok(())
    }

    fn write_hop_limit(&self, frame: &mut [u8], hops: u8) -> Result<(), TemplateError> {
        if self.is_ipv4 {
            self.write_ipv4_octet(frame, ipv4_field::TTL, hops, 0xFF);
        } else {
            put(frame, self.ip + ipv6_field::HOP_LIMIT, &[hops]);
        }
        Ok(())
    }

    /// Writes the bits of `mask` of the first four octets of the IPv6 header.
    fn write_ipv6_word(&self, frame: &mut [u8], bits: u32, mask: u32) {
        let word = u32_at(frame, self.ip) & !mask | bits & mask;
        put(frame, self.ip, &word.to_be_bytes());
    }

    /// Writes the bits of `mask` of one octet of the IPv4 header, and patches its checksum.
    fn write_ipv4_octet(&self, frame: &mut [u8], at: usize, bits: u8, mask: u8) {
        let old = u8_at(frame, self.ip + at);
        let new = old & !mask | bits & mask;
        put(frame, self.ip + at, &[new]);
        let word = |octet: u8| u16::from(octet) << if at.is_multiple_of(2) { 8 } else { 0 };
        self.patch_ipv4_checksum(frame, [word(old)], [word(new)]);
    }

    /// Patches the IPv4 header checksum for header words that changed from `old` to `new`: equation 3 of RFC 1624.
    #[inline]
    fn patch_ipv4_checksum<const N: usize>(&self, frame: &mut [u8], old: [u16; N], new: [u16; N]) {
        let at = self.ip + ipv4_field::CHECKSUM;
        let mut sum = u32::from(!u16_at(frame, at));
        sum += old.iter().map(|word| u32::from(!word)).sum::<u32>();
        sum += new.iter().map(|word| u32::from(*word)).sum::<u32>();
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        put(frame, at, &(!(sum as u16)).to_be_bytes());
    }

    /// Sets or clears a bit of the BTH's octet that the ICRC takes as ones.
    fn write_bth_ecn(&self, frame: &mut [u8], bit: u8, on: bool) -> Result<(), TemplateError> {
        let at = self.bth() + bth_field::ECN;
        let octet = with_bit(u8_at(frame, at), bit, on);
        put(frame, at, &[octet]);
        Ok(())
    }
}

const fn with_bit(octet: u8, bit: u8, on: bool) -> u8 {
    if on { octet | bit } else { octet & !bit }
}

const fn low_24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

fn flip(packet: &mut [u8], octet: usize, bit: u32) -> Option<()> {
    *packet.get_mut(octet)? ^= 1 << bit;
    Some(())
}

/// Every UDP header of the frame must say that there is no checksum: one of a tunnel covers our fields, too.
fn no_udp_checksums(frame: &Frame<'_>) -> Result<(), Error> {
    for span in frame.spans().iter().filter(|s| s.layer == Layer::Udp) {
        let checksum = u16_at(frame.bytes(), span.start + 6);
        if checksum != 0 {
            return Err(Error::value(
                Layer::Udp,
                span.start + 6,
                "checksum",
                u64::from(checksum),
                "0, for it would have to follow every change",
            ));
        }
    }
    Ok(())
}

fn right_ipv4_checksum(bytes: &[u8], ip: usize) -> Result<(), Error> {
    let header = Ipv4Header::from_slice(bytes.get(ip..).unwrap_or_default());
    let right = header.is_ok_and(|(h, _)| h.header_checksum == h.calc_header_checksum());
    if right {
        return Ok(());
    }
    let at = ip + ipv4_field::CHECKSUM;
    let found = u64::from(u16_at(bytes, at));
    Err(Error::value(
        Layer::Ipv4,
        at,
        "header checksum",
        found,
        "the right one",
    ))
}

/// Where the data packet's destination lies in the Fast CNP option.
fn original_destination_at(frame: &Frame<'_>) -> Option<usize> {
    frame.options_headers().find_map(|header| {
        header.readable().find_map(|option| {
            let fast_cnp = FastCnp::parse(option.kind, option.data, frame.profile())?.ok()?;
            let data = header.start + option.offset + 2;
            Some(data + fast_cnp.address_at(option.data.len()))
        })
    })
}

/// Where the extended header `which` of the BTH at `bth` begins, if the opcode has it.
fn extended_at(frame: &Frame<'_>, bth: usize, which: ExtendedHeader) -> Option<usize> {
    let header = array::<BTH_LEN>(frame.bytes(), bth);
    let headers = Bth::new_checked(&header)
        .ok()?
        .opcode()
        .extended_headers()?;
    let before = headers.iter().position(|header| *header == which)?;
    let before: usize = headers.iter().take(before).map(|header| header.len()).sum();
    Some(bth + BTH_LEN + before)
}
