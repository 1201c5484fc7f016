//! Congestion signalling tag (CSIG), compact form: a tag in front of the EtherType of the IP packet,
//! in which switches record the bottleneck of the path.
//!
//! ```text
//!  0                   1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |Type |R| Signal  |   Locator   |   then the EtherType of the payload
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The tag's own EtherType is [`Profile::csig_ether_type`](crate::Profile::csig_ether_type). The wide
//! form, of 8 octets, is not read.

/// Length of the compact tag after its EtherType, in octets.
pub const CSIG_LEN: usize = 2;

/// Quantity that the signal of a tag measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Minimum available bandwidth.
    Bandwidth,
    /// Minimum available bandwidth as a share of the link's capacity.
    Share,
    /// Maximum delay of a hop.
    Delay,
    /// Maximum queue depth.
    QueueDepth,
    /// Another type, 4 to 7.
    Unknown(u8),
}

/// Values of a compact tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Csig {
    /// Type, 3 bits.
    pub quantity: Quantity,
    /// Reserved bit.
    pub reserved: bool,
    /// Signal, 5 bits: a step of the scale that the operator defines for the type.
    pub signal: u8,
    /// Locator of the bottleneck, 7 bits.
    pub locator: u8,
}

impl Csig {
    /// Returns the values of a tag.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self {
            quantity: match (bits >> 13) as u8 {
                0 => Quantity::Bandwidth,
                1 => Quantity::Share,
                2 => Quantity::Delay,
                3 => Quantity::QueueDepth,
                other => Quantity::Unknown(other),
            },
            reserved: bits & 0x1000 != 0,
            signal: (bits >> 7 & 0x1F) as u8,
            locator: (bits & 0x7F) as u8,
        }
    }

    /// Returns the tag with these values; bits beyond a field's width are dropped.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        let quantity = match self.quantity {
            Quantity::Bandwidth => 0,
            Quantity::Share => 1,
            Quantity::Delay => 2,
            Quantity::QueueDepth => 3,
            Quantity::Unknown(other) => (other & 7) as u16,
        };
        let (signal, locator) = (self.signal & 0x1F, self.locator & 0x7F);
        quantity << 13 | (self.reserved as u16) << 12 | (signal as u16) << 7 | locator as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_tag_has_its_values() {
        let tag = Csig {
            quantity: Quantity::Share,
            reserved: false,
            signal: 0x17,
            locator: 5,
        };
        assert_eq!(Csig::from_bits(0x2B85), tag);
    }

    #[test]
    fn every_tag_is_written_as_it_was_read() {
        for bits in 0..=u16::MAX {
            assert_eq!(Csig::from_bits(bits).to_bits(), bits);
        }
    }
}
