//! ERSPAN: the header that a switch's mirror adds to a copied frame (draft-foschiano-erspan-03).
//!
//! ERSPAN is carried in GRE: type I has no header of its own (0x88BE without a sequence number),
//! type II one of 8 octets (0x88BE with a sequence number), type III one of 12 octets (0x22EB),
//! optionally followed by 8 platform-specific octets. The GRE header is in `frame.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Ver=1 |         VLAN          | COS |En |T|    Session ID     |   0  type II
//! |       Reserved        |                 Index                 |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Ver=2 |         VLAN          | COS |BSO|T|    Session ID     |   0  type III
//! |                           Timestamp                           |   4
//! |              SGT              |P|   FT    |   Hw ID   |D|Gra|O|   8
//! |  Platf ID |               Platform-specific                   |  12  where O is set
//! |                       Platform-specific                       |  16
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::error::Result;
use crate::fields::{Bits, FieldPosition, Value, Values, bits, values};
use crate::header::{erspan as field, gre};
use crate::layer::Layer;
use crate::octets::{array, put, u32_at};
use std::net::IpAddr;

/// A mirror around a frame, and the start of the copied frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Address that sends the copies.
    pub exporter: IpAddr,
    /// First octet of the copied frame.
    pub start: usize,
    /// Format of the copies: ERSPAN, the header of a Spectrum ASIC, or TZSP.
    pub format: Layer,
    /// Mirror's header; type I if the format is another than ERSPAN.
    pub header: Erspan,
}

/// Content of an ERSPAN header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Erspan {
    /// Type I: no content.
    I,
    /// Type II.
    II(Erspan2),
    /// Type III.
    III(Erspan3),
}

values! {
    /// ERSPAN header of type II; its reserved bits are 0.
    Erspan2 {
        /// VLAN of the copied frame, 12 bits.
        vlan: u16 = "VLAN", [(0, 4, 12)];
        /// Class of service of the copied frame, 3 bits.
        cos: u8 = "COS", [(2, 0, 3)];
        /// VLAN encapsulation of the frame, 2 bits: 0 none, 1 ISL, 2 IEEE 802.1Q, 3 tag preserved
        /// in the frame.
        encapsulation: u8 = "En", [(2, 3, 2)];
        /// True if the mirror truncated the frame.
        truncated: bool = "T", [(2, 5, 1)];
        /// Session, 10 bits.
        session: u16 = "Session ID", [(2, 6, 10)];
        /// Port and direction by a platform-specific number, 20 bits.
        index: u32 = "Index", [(4, 12, 20)];
    }
}

values! {
    /// ERSPAN header of type III.
    Erspan3 {
        /// VLAN of the copied frame, 12 bits.
        vlan: u16 = "VLAN", [(0, 4, 12)];
        /// Class of service of the copied frame, 3 bits.
        cos: u8 = "COS", [(2, 0, 3)];
        /// Integrity of the frame, 2 bits: 0 good or unknown, 1 short, 2 too long, 3 CRC or
        /// alignment error.
        integrity: u8 = "BSO", [(2, 3, 2)];
        /// True if the mirror truncated the frame.
        truncated: bool = "T", [(2, 5, 1)];
        /// Session, 10 bits.
        session: u16 = "Session ID", [(2, 6, 10)];
        /// Low 32 bits of the time stamp.
        timestamp: u32 = "Timestamp", [(4, 0, 32)];
        /// Security group tag.
        security_group: u16 = "SGT", [(8, 0, 16)];
        /// True if it is an Ethernet protocol frame.
        is_pdu: bool = "P", [(10, 0, 1)];
        /// Type of the copied data, 5 bits: 0 an Ethernet frame, 2 an IP packet.
        frame_type: u8 = "FT", [(10, 1, 5)];
        /// Number of the hardware engine within the switch, 6 bits.
        hardware: u8 = "Hw ID", [(10, 6, 6)];
        /// Direction of the frame.
        direction: Direction = "D", [(10, 12, 1)];
        /// Unit of the time stamp.
        granularity: Granularity = "Gra", [(10, 13, 2)];
        /// Platform-specific octets.
        platform: Option<[u8; field::PLATFORM_LEN]> = "Platform Specific SubHeader", [(10, 15, 1)];
    }
}

/// Direction in which a copied frame passed the mirrored port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Into the switch.
    Ingress,
    /// Out of the switch.
    Egress,
}

/// Unit of a type III time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// 100 µs.
    Micros100,
    /// 100 ns.
    Nanos100,
    /// Nanoseconds of IEEE 1588, whose seconds may be in the platform-specific octets.
    Ieee1588,
    /// Unit configured on the switch.
    Custom,
}

bits! {
    Direction: |bits| if bits == 0 { Self::Ingress } else { Self::Egress }, |way: Self| way as u128;
    Granularity: |bits| match bits {
        0 => Self::Micros100,
        1 => Self::Nanos100,
        2 => Self::Ieee1588,
        _ => Self::Custom,
    }, |unit: Self| unit as u128;
}

/// The platform-specific octets, if the flag at that position is set.
impl Value for Option<[u8; field::PLATFORM_LEN]> {
    fn read(data: &[u8], places: &[FieldPosition]) -> Self {
        bool::read(data, places).then(|| array(data, field::LEN_3))
    }

    fn write(&self, data: &mut [u8], places: &[FieldPosition]) {
        self.is_some().write(data, places);
        put(
            data,
            field::LEN_3,
            self.as_ref().map_or(&[], |octets| octets),
        );
    }

    fn check(&self, _: Layer, _: &'static str, _: &[FieldPosition]) -> Result<()> {
        Ok(())
    }
}

/// A type III time stamp, of the switch's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Time in units of the granularity; for IEEE 1588, in nanoseconds.
    pub ticks: u64,
    /// True if `ticks` is complete, false if it is only the low 32 bits.
    pub whole: bool,
    /// Unit of `ticks`.
    pub granularity: Granularity,
}

impl Stamp {
    /// Returns the time stamp in nanoseconds, modulo 2³² units if it is not whole; `None` if the
    /// unit is unknown.
    #[must_use]
    pub const fn nanoseconds(&self) -> Option<u64> {
        match self.granularity {
            Granularity::Micros100 => self.ticks.checked_mul(100_000),
            Granularity::Nanos100 => self.ticks.checked_mul(100),
            Granularity::Ieee1588 => Some(self.ticks),
            Granularity::Custom => None,
        }
    }
}

/// Values of the version field, the first four bits of the header.
const VERSION_2: u8 = 1;
const VERSION_3: u8 = 2;
/// Frame type of an Ethernet frame in type III.
const ETHERNET_FRAME: u8 = 0;

impl Erspan {
    /// Returns the length of the header announced by GRE's protocol type, as far as `bytes`, which
    /// begin with it, reveal it.
    pub(crate) fn header_len(protocol_type: u16, bytes: &[u8]) -> usize {
        match bytes.get(field::FLAGS + 1) {
            _ if protocol_type == gre::ERSPAN => field::LEN_2,
            Some(flags) if flags & 1 != 0 => field::LEN_3 + field::PLATFORM_LEN,
            _ => field::LEN_3,
        }
    }

    /// Parses the header at the start of `bytes` that GRE's protocol type announces. Returns `None`
    /// for another version, for a copied frame that is not Ethernet, and for input that is too
    /// short.
    pub(crate) fn parse(protocol_type: u16, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::header_len(protocol_type, bytes))?;
        match (protocol_type, bytes.first()? >> 4) {
            (gre::ERSPAN, VERSION_2) => Some(Self::II(Erspan2::read_from(bytes))),
            (gre::ERSPAN_3, VERSION_3) => {
                let header = Erspan3::read_from(bytes);
                (header.frame_type == ETHERNET_FRAME).then_some(Self::III(header))
            }
            _ => None,
        }
    }

    /// Returns its length in octets.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        match self {
            Self::I => 0,
            Self::II(_) => field::LEN_2,
            Self::III(header) if header.platform.is_some() => field::LEN_3 + field::PLATFORM_LEN,
            Self::III(_) => field::LEN_3,
        }
    }

    /// Returns GRE's protocol type for it.
    #[must_use]
    pub const fn protocol_type(&self) -> u16 {
        match self {
            Self::I | Self::II(_) => gre::ERSPAN,
            Self::III(_) => gre::ERSPAN_3,
        }
    }

    /// Writes it to the start of `out`, which has room for [`buffer_len`](Self::buffer_len) octets.
    /// Each number is truncated to the low bits that fit its field.
    pub(crate) fn emit(&self, out: &mut [u8]) {
        match self {
            Self::I => {}
            Self::II(header) => emit(VERSION_2, header, out),
            Self::III(header) => emit(VERSION_3, header, out),
        }
    }

    /// Returns the session; type I has none.
    #[must_use]
    pub const fn session(&self) -> Option<u16> {
        match self {
            Self::I => None,
            Self::II(header) => Some(header.session),
            Self::III(header) => Some(header.session),
        }
    }

    /// Returns the direction of the frame, if the header has a separate field for it.
    #[must_use]
    pub const fn direction(&self) -> Option<Direction> {
        match self {
            Self::III(header) => Some(header.direction),
            Self::I | Self::II(_) => None,
        }
    }

    /// Returns the number of the mirrored port: type II's index, which on some platforms includes
    /// the direction; for type III, the port in the platform-specific octets, if present.
    #[must_use]
    pub fn port(&self) -> Option<u32> {
        match self {
            Self::I => None,
            Self::II(header) => Some(header.index),
            Self::III(header) => header.port(),
        }
    }

    /// Returns the time at which the frame was copied, by the switch's clock.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::III(header) => Some(header.stamp()),
            Self::I | Self::II(_) => None,
        }
    }

    /// Returns true if the mirror truncated the frame. The original length is then only in the
    /// frame's own length fields.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        match self {
            Self::I => false,
            Self::II(header) => header.truncated,
            Self::III(header) => header.truncated,
        }
    }
}

fn emit(version: u8, header: &impl Values, out: &mut [u8]) {
    out.fill(0);
    put(out, 0, &[version << 4]);
    header.write_to(out);
}

impl Erspan3 {
    /// Returns the platform's number and its two words.
    fn platform(&self) -> Option<(u8, u32, u32)> {
        let octets = self.platform.as_ref()?;
        let first = u32_at(octets, 0);
        Some(((first >> 26) as u8, first, u32_at(octets, 4)))
    }

    fn port(&self) -> Option<u32> {
        let (platform, first, second) = self.platform()?;
        match platform {
            1 => Some(second),
            3 => Some(first & 0x3FFF),
            5 | 6 => Some(first & 0xFFFF),
            // 0 is used as another name of 7.
            0 | 7 => Some(first & 0x000F_FFFF),
            _ => None,
        }
    }

    fn stamp(&self) -> Stamp {
        let low = u64::from(self.timestamp);
        let ticks = match (self.granularity, self.platform()) {
            (Granularity::Ieee1588, Some((5 | 6, _, seconds))) => {
                Some(u64::from(seconds) * 1_000_000_000 + low)
            }
            (Granularity::Ieee1588, _) => None,
            (_, Some((0 | 3 | 7, _, high))) => Some(u64::from(high) << 32 | low),
            _ => None,
        };
        Stamp {
            ticks: ticks.unwrap_or(low),
            whole: ticks.is_some(),
            granularity: self.granularity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn type_2() -> impl Strategy<Value = Erspan2> {
        (
            0..1u16 << 12,
            0..8u8,
            0..4u8,
            any::<bool>(),
            0..1u16 << 10,
            0..1u32 << 20,
        )
            .prop_map(
                |(vlan, cos, encapsulation, truncated, session, index)| Erspan2 {
                    vlan,
                    cos,
                    encapsulation,
                    truncated,
                    session,
                    index,
                },
            )
    }

    fn type_3() -> impl Strategy<Value = Erspan3> {
        let common = (0..1u16 << 12, 0..8u8, 0..4u8, any::<bool>(), 0..1u16 << 10);
        let rest = (
            any::<u32>(),
            any::<u16>(),
            any::<bool>(),
            0..64u8,
            any::<bool>(),
            0..4u8,
            any::<Option<[u8; 8]>>(),
        );
        (common, rest).prop_map(|(common, rest)| Erspan3 {
            vlan: common.0,
            cos: common.1,
            integrity: common.2,
            truncated: common.3,
            session: common.4,
            timestamp: rest.0,
            security_group: rest.1,
            is_pdu: rest.2,
            frame_type: ETHERNET_FRAME,
            hardware: rest.3,
            direction: if rest.4 {
                Direction::Egress
            } else {
                Direction::Ingress
            },
            granularity: [
                Granularity::Micros100,
                Granularity::Nanos100,
                Granularity::Ieee1588,
                Granularity::Custom,
            ][usize::from(rest.5)],
            platform: rest.6,
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(two in type_2(), three in type_3()) {
            for header in [Erspan::II(two), Erspan::III(three)] {
                let mut bytes = vec![0xA5; header.buffer_len()];
                header.emit(&mut bytes);
                let parsed = Erspan::parse(header.protocol_type(), &bytes);
                prop_assert_eq!(parsed, Some(header));
                prop_assert_eq!(Erspan::header_len(header.protocol_type(), &bytes), bytes.len());
                for len in 0..bytes.len() {
                    prop_assert_eq!(Erspan::parse(header.protocol_type(), &bytes[..len]), None);
                }
            }
        }

        #[test]
        fn any_octets_are_read_without_a_panic(protocol in prop::sample::select(vec![0x88BEu16, 0x22EB]), octets: [u8; 20]) {
            if let Some(header) = Erspan::parse(protocol, &octets) {
                prop_assert_eq!(header.buffer_len(), Erspan::header_len(protocol, &octets));
                let _ = (header.session(), header.direction(), header.port());
                let _ = header.stamp().map(|stamp| stamp.nanoseconds());
            }
        }
    }

    #[test]
    fn a_time_stamp_has_its_unit_and_its_high_part() {
        let platform = |number: u8, low: [u8; 4]| {
            let mut octets = [0; 8];
            octets[0] = number << 2;
            octets[3] = 9;
            octets[4..].copy_from_slice(&low);
            Some(octets)
        };
        let stamp_and_port = |granularity, platform| {
            let header = Erspan::III(Erspan3 {
                timestamp: 7,
                granularity,
                platform,
                ..Erspan3::default()
            });
            let stamp = header.stamp().unwrap();
            (stamp.nanoseconds(), stamp.whole, header.port())
        };
        use Granularity::{Custom, Ieee1588, Micros100, Nanos100};
        assert_eq!(
            stamp_and_port(Micros100, None),
            (Some(700_000), false, None)
        );
        assert_eq!(stamp_and_port(Nanos100, None), (Some(700), false, None));
        let high = platform(3, [0, 0, 0, 1]);
        assert_eq!(
            stamp_and_port(Nanos100, high),
            (Some(((1 << 32) + 7) * 100), true, Some(9))
        );
        assert_eq!(stamp_and_port(Ieee1588, high), (Some(7), false, Some(9)));
        let seconds = platform(5, [0, 0, 0, 2]);
        assert_eq!(
            stamp_and_port(Ieee1588, seconds),
            (Some(2_000_000_007), true, Some(9))
        );
        assert_eq!(stamp_and_port(Custom, None), (None, false, None));
        assert_eq!(
            stamp_and_port(Nanos100, platform(1, [0, 0, 0, 5])).2,
            Some(5)
        );
        assert_eq!(stamp_and_port(Nanos100, platform(4, [0, 0, 0, 5])).2, None);
    }

    #[test]
    fn other_versions_and_frame_types_are_rejected() {
        let mut bytes = [0; 20];
        Erspan::III(Erspan3::default()).emit(&mut bytes);
        assert!(Erspan::parse(gre::ERSPAN_3, &bytes).is_some());
        assert_eq!(Erspan::parse(gre::ERSPAN, &bytes), None);
        let mut ip = bytes;
        ip[10] |= 2 << 2;
        assert_eq!(Erspan::parse(gre::ERSPAN_3, &ip), None);
        bytes[0] = 0x30;
        assert_eq!(Erspan::parse(gre::ERSPAN_3, &bytes), None);
    }
}
