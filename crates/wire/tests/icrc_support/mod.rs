//! Shared parts of the ICRC tests: packets built octet by octet, and the ICRC by its definition,
//! bit by bit.
#![allow(dead_code, reason = "each test program uses a part")]

use fcn_wire::icrc::Reading;

/// A packet from its IP header to the end of its ICRC, which is zero until filled.
#[derive(Clone, Debug)]
pub struct Packet {
    pub bytes: Vec<u8>,
    pub udp: usize,
    /// Data of options that may change on the path, as ranges of `bytes`.
    pub mutable: Vec<core::ops::Range<usize>>,
}

impl Packet {
    pub fn is_v6(&self) -> bool {
        self.bytes[0] >> 4 == 6
    }

    pub fn has_extensions(&self) -> bool {
        self.is_v6() && self.udp > 40
    }

    /// Returns the packet without the ICRC field.
    pub fn covered(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - 4]
    }

    pub fn icrc(&self) -> u32 {
        u32::from_le_bytes(*self.bytes.last_chunk().unwrap())
    }

    /// Computes the ICRC by its definition: masks a copy, leaves out what the reading leaves out,
    /// and divides bit by bit.
    pub fn reference(&self, reading: Reading) -> u32 {
        let mut copy = self.covered().to_vec();
        let udp = self.udp;
        let extended = self.has_extensions();
        if self.is_v6() {
            copy[0] |= 0x0F;
            copy[1..4].fill(0xFF);
            copy[7] = 0xFF;
        } else {
            for at in [1, 8, 10, 11] {
                copy[at] = 0xFF;
            }
        }
        copy[udp + 6..udp + 8].fill(0xFF);
        copy[udp + 12] = 0xFF;
        if extended {
            match reading {
                Reading::Covered => {
                    for range in &self.mutable {
                        copy[range.clone()].fill(0xFF);
                    }
                }
                Reading::Skipped => {
                    copy.drain(40..udp);
                }
                Reading::Rewritten => {
                    copy.drain(40..udp);
                    let payload = copy[44..46].to_vec();
                    copy[4..6].copy_from_slice(&payload);
                    copy[6] = 17;
                }
                Reading::SoftRoce => {
                    copy.drain(48..udp + 8);
                    copy[46..48].fill(0xFF);
                }
            }
        }
        let mut all = vec![0xFF; 8];
        all.extend(copy);
        crc32(&all)
    }
}

/// Computes the CRC-32 of IEEE 802.3, reflected, one bit at a time.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}

/// Returns UDP to port 4791 with a BTH, `payload`, and space for the ICRC.
fn transport(source_port: u16, bth: [u8; 12], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + 12 + payload.len() + 4).unwrap();
    let mut out = Vec::new();
    out.extend(source_port.to_be_bytes());
    out.extend(4791u16.to_be_bytes());
    out.extend(len.to_be_bytes());
    out.extend([0; 2]);
    out.extend(bth);
    out.extend(payload);
    out.extend([0; 4]);
    out
}

/// Fields of an IPv4 header that differ between tests.
#[derive(Clone, Debug)]
pub struct V4 {
    pub tos: u8,
    pub id: u16,
    pub flags: u8,
    pub ttl: u8,
    pub source: [u8; 4],
    pub destination: [u8; 4],
    pub options: Vec<u8>,
}

impl V4 {
    pub fn packet(&self, source_port: u16, bth: [u8; 12], payload: &[u8]) -> Packet {
        assert!(self.options.len() <= 40 && self.options.len().is_multiple_of(4));
        let rest = transport(source_port, bth, payload);
        let udp = 20 + self.options.len();
        let total = u16::try_from(udp + rest.len()).unwrap();
        let mut out = vec![0x40 | (udp / 4) as u8, self.tos];
        out.extend(total.to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend([self.flags << 5, 0, self.ttl, 17, 0, 0]);
        out.extend(self.source);
        out.extend(self.destination);
        out.extend(&self.options);
        let mut sum: u32 = out
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        out[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        out.extend(rest);
        Packet {
            bytes: out,
            udp,
            mutable: Vec::new(),
        }
    }
}

/// An extension header of IPv6.
#[derive(Clone, Debug)]
pub enum Extension {
    /// Hop-by-Hop Options with (type, data) each.
    HopByHop(Vec<(u8, Vec<u8>)>),
    /// Destination Options with (type, data) each.
    DestinationOptions(Vec<(u8, Vec<u8>)>),
    /// Routing header of that type with that many addresses.
    Routing(u8, u8),
}

/// Fields of an IPv6 header that differ between tests.
#[derive(Clone, Debug)]
pub struct V6 {
    pub traffic_class: u8,
    pub flow_label: u32,
    pub hop_limit: u8,
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub extensions: Vec<Extension>,
}

impl V6 {
    pub fn packet(&self, source_port: u16, bth: [u8; 12], payload: &[u8]) -> Packet {
        let mut mutable = Vec::new();
        let mut headers: Vec<u8> = Vec::new();
        // Offsets of the next-header values: octet 6 of the base header, then each header's first.
        let mut kinds = Vec::new();
        for extension in &self.extensions {
            let start = headers.len();
            let kind = match extension {
                Extension::Routing(kind, addresses) => {
                    headers.extend([0, 2 * addresses, *kind, 0, 0, 0, 0, 0]);
                    headers.extend((0..16 * usize::from(*addresses)).map(|n| n as u8));
                    43
                }
                Extension::HopByHop(options) | Extension::DestinationOptions(options) => {
                    headers.extend([0, 0]);
                    for (kind, data) in options {
                        headers.extend([*kind, u8::try_from(data.len()).unwrap()]);
                        let at = 40 + headers.len();
                        if kind & 0x20 != 0 {
                            mutable.push(at..at + data.len());
                        }
                        headers.extend(data);
                    }
                    while !(headers.len() - start).is_multiple_of(8) {
                        headers.push(0);
                    }
                    headers[start + 1] = u8::try_from((headers.len() - start) / 8 - 1).unwrap();
                    match extension {
                        Extension::HopByHop(_) => 0,
                        _ => 60,
                    }
                }
            };
            kinds.push((start, kind));
        }
        let first = kinds.first().map_or(17, |(_, kind)| *kind);
        for (i, (start, _)) in kinds.iter().enumerate() {
            headers[*start] = kinds.get(i + 1).map_or(17, |(_, kind)| *kind);
        }
        let rest = transport(source_port, bth, payload);
        let mut out = Vec::new();
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xF_FFFF;
        out.extend(word.to_be_bytes());
        out.extend(
            u16::try_from(headers.len() + rest.len())
                .unwrap()
                .to_be_bytes(),
        );
        out.extend([first, self.hop_limit]);
        out.extend(self.source);
        out.extend(self.destination);
        let udp = 40 + headers.len();
        out.extend(headers);
        out.extend(rest);
        Packet {
            bytes: out,
            udp,
            mutable,
        }
    }
}
