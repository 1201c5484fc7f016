//! Where the fields of a template's frame are, and how each is written: in place, with the ICRC and the IPv4 header
//! checksum patched. Which fields there are is said in `template.rs`; what the ICRC covers is `icrc.rs`'s business.

use super::{Change, Field, TemplateError};
use crate::bth::{ExtendedHeader, Roce, field as bth_field};
use crate::checksum;
use crate::error::Error;
use crate::fast_cnp::FastCnp;
use crate::frame::{End, Frame};
use crate::header::{ipv4, ipv6, udp};
use crate::icrc::{self, ICRC_LEN, Reading, Verdict};
use crate::ip;
use crate::layer::Layer;
use crate::octets::{array, put, u8_at, u16_at, u32_at};
use std::net::IpAddr;
use std::sync::Arc;

const NO_FLOW_LABEL: &str = "IPv4 has no flow label";
const NO_IDENTIFICATION: &str = "IPv6 has no identification";

/// What an octet's changed bits add to the ICRC, by its two halves.
// A table of all 256 values is as fast alone. Beside a kernel that wants the cache for its own work it is not: 1 KiB an octet.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct OctetTable {
    low: [u32; 16],
    high: [u32; 16],
}

impl OctetTable {
    /// From what the highest bit adds.
    fn new(highest: u32) -> Self {
        let mut bits = [0; 8];
        let mut adds = highest;
        // A lower bit is fed earlier: a CRC of one more bit of zero lies behind it.
        for bit in bits.iter_mut().rev() {
            *bit = adds;
            adds = adds >> 1 ^ if adds & 1 == 0 { 0 } else { icrc::POLYNOMIAL };
        }
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
    reth_key: Option<Patch<4>>,
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
                datagram.start + udp::DESTINATION,
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
            let header = frame.bytes().get(ip..datagram.start);
            right_ipv4_checksum(header.unwrap_or_default(), ip)?;
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
            reth_key: None,
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
        self.udp + udp::LEN
    }

    /// Finds `field` and builds its tables.
    pub(super) fn prepare(&mut self, frame: &Frame<'_>, field: Field) -> Result<(), TemplateError> {
        let lacks = |why| TemplateError::Lacks { field, why };
        let bth = self.bth();
        let extended_at = |which| {
            let roce = Roce::new_checked(frame.bytes().get(bth..)?).ok()?;
            Some(bth + roce.extended_at(which)?)
        };
        match field {
            Field::Psn => self.psn = Some(self.patch(frame, bth + bth_field::PSN)?),
            Field::AckRequest => self.ack = Some(self.patch(frame, bth + bth_field::ACK)?),
            Field::DestQp => self.dest_qp = Some(self.patch(frame, bth + bth_field::DEST_QP)?),
            Field::UdpSource => self.udp_source = Some(self.patch(frame, self.udp + udp::SOURCE)?),
            Field::SourceAddress => {
                let at = (ipv4::SOURCE, ipv6::SOURCE);
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
                let at = (ipv4::DESTINATION, ipv6::DESTINATION);
                self.destination = Some(self.address(frame, at)?);
            }
            Field::FastCnpOriginalDestination => {
                let at = original_destination_at(frame)
                    .ok_or(lacks("there is no Fast CNP option in it"))?;
                self.original = Some(self.patch(frame, at)?);
            }
            Field::RethAddress => {
                let at =
                    extended_at(ExtendedHeader::Reth).ok_or(lacks("its opcode has no RETH"))?;
                self.reth_address = Some(self.patch(frame, at)?);
            }
            Field::RethKey => {
                let at =
                    extended_at(ExtendedHeader::Reth).ok_or(lacks("its opcode has no RETH"))?;
                self.reth_key = Some(self.patch(frame, at + 8)?);
            }
            Field::AethMsn => {
                let at =
                    extended_at(ExtendedHeader::Aeth).ok_or(lacks("its opcode has no AETH"))?;
                self.aeth_msn = Some(self.patch(frame, at + 1)?);
            }
            Field::Identification if !self.is_ipv4 => {
                return Err(lacks(NO_IDENTIFICATION));
            }
            Field::Identification => {
                let at = self.ip + ipv4::IDENTIFICATION;
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

    /// The patch of the field at `at`: for each octet of it, the difference that flipping its highest bit makes to the
    /// ICRC. Asking `icrc::compute` makes this right in every reading; the reading covers an octet or it does not.
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
            flip(&mut packet, octet).ok_or_else(short)?;
            let highest = icrc(&packet)? ^ unchanged;
            flip(&mut packet, octet).ok_or_else(short)?;
            covered |= highest != 0;
            *table = OctetTable::new(highest);
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
            Change::RethKey(key) => {
                self.write(&self.reth_key, (frame, icrc), key.to_be_bytes(), field)
            }
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
        ip::patch_ipv4_checksum(self.packet(frame), [old], [id]);
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
                    ip::patch_ipv4_checksum(self.packet(frame), words(old), words(new));
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
        ip::set_flow_label(self.packet(frame), label);
        Ok(())
    }

    /// The innermost IP packet.
    #[inline]
    fn packet<'f>(&self, frame: &'f mut [u8]) -> &'f mut [u8] {
        frame.get_mut(self.ip..).unwrap_or_default()
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

fn flip(packet: &mut [u8], octet: usize) -> Option<()> {
    *packet.get_mut(octet)? ^= 0x80;
    Some(())
}

/// Every UDP header of the frame must say that there is no checksum: one of a tunnel covers our fields, too.
fn no_udp_checksums(frame: &Frame<'_>) -> Result<(), Error> {
    for span in frame.spans().iter().filter(|s| s.layer == Layer::Udp) {
        let at = span.start + udp::CHECKSUM;
        let checksum = u16_at(frame.bytes(), at);
        if checksum != 0 {
            let expected = "0, for it would have to follow every change";
            return Err(Error::value(
                Layer::Udp,
                at,
                "checksum",
                u64::from(checksum),
                expected,
            ));
        }
    }
    Ok(())
}

/// The checksum of an IPv4 header is right where the sum of all its words comes to nothing.
fn right_ipv4_checksum(header: &[u8], ip: usize) -> Result<(), Error> {
    if checksum::of(&[header]) == 0 {
        return Ok(());
    }
    let (field, found) = ("header checksum", u16_at(header, ipv4::CHECKSUM));
    let at = ip + ipv4::CHECKSUM;
    Err(Error::value(
        Layer::Ipv4,
        at,
        field,
        found.into(),
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
