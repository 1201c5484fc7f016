//! Congestion notification message of Ethernet (IEEE 802.1Q clause 33.4, formerly 802.1Qau): sent by
//! a congested bridge to the source of the frame that it sampled, within one layer 2 network.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |Version| Reserved  | Feedback  |     Congestion point           |   0
//! |                    identifier (64 bits)                       |   4
//! |                               |         Queue offset          |   8
//! |         Queue delta           |Prio |        Reserved         |  12
//! |           Destination MAC address of the frame                |  16
//! |                               |         MSDU length           |  20
//! |                 first octets of the frame's MSDU              |  24
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A tag of EtherType 0x22E9 in front of it, as of the data, has the flow's number at its source.

use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::octets::{array, u8_at, u16_at};

/// Octets before the MSDU.
pub const CNM_LEN: usize = 24;
/// Maximum number of octets of the MSDU.
pub const MAX_MSDU_LEN: usize = 64;

mod field {
    pub(super) const FEEDBACK: usize = 0;
    pub(super) const CONGESTION_POINT: usize = 2;
    pub(super) const OFFSET: usize = 10;
    pub(super) const DELTA: usize = 12;
    pub(super) const PRIORITY: usize = 14;
    pub(super) const DESTINATION: usize = 16;
    pub(super) const MSDU_LEN: usize = 22;
}

/// View of a message, from the octet after its EtherType.
///
/// Accessors never panic: [`new_checked`](Self::new_checked) has verified that every field is
/// present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cnm<'a> {
    bytes: &'a [u8],
}

impl<'a> Cnm<'a> {
    /// Returns a view of `bytes`, which may end with padding.
    ///
    /// # Errors
    /// Fails on fewer than [`CNM_LEN`] octets.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < CNM_LEN {
            return Err(Error::short(Layer::Cnm, CNM_LEN, bytes.len()));
        }
        Ok(Self { bytes })
    }

    /// Returns the version, 4 bits; 0 in the standard.
    #[must_use]
    pub fn version(&self) -> u8 {
        u8_at(self.bytes, field::FEEDBACK) >> 4
    }

    /// Returns the quantised feedback, 0 to 63: higher if congestion is worse.
    #[must_use]
    pub fn feedback(&self) -> u8 {
        u8_at(self.bytes, field::FEEDBACK + 1) & 0x3F
    }

    /// Returns the identifier of the congestion point.
    #[must_use]
    pub fn congestion_point(&self) -> u64 {
        u64::from_be_bytes(array(self.bytes, field::CONGESTION_POINT))
    }

    /// Returns the free room of the queue up to its set point, in units of 64 octets; negative if
    /// the queue is longer.
    #[must_use]
    pub fn queue_offset(&self) -> i16 {
        u16_at(self.bytes, field::OFFSET).cast_signed()
    }

    /// Returns the growth of the queue since the last sample, in units of 64 octets.
    #[must_use]
    pub fn queue_delta(&self) -> i16 {
        u16_at(self.bytes, field::DELTA).cast_signed()
    }

    /// Returns the priority of the frame, 0 to 7.
    #[must_use]
    pub fn priority(&self) -> u8 {
        u8_at(self.bytes, field::PRIORITY) >> 5
    }

    /// Returns the destination MAC address of the frame.
    #[must_use]
    pub fn destination(&self) -> [u8; 6] {
        array(self.bytes, field::DESTINATION)
    }

    /// Returns the first octets of the frame's MSDU, as far as captured.
    #[must_use]
    pub fn msdu(&self) -> &'a [u8] {
        let len = usize::from(u16_at(self.bytes, field::MSDU_LEN)).min(MAX_MSDU_LEN);
        let rest = self.bytes.get(CNM_LEN..).unwrap_or_default();
        rest.get(..len).unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: [u8; 28] = [
        0x00, 0x15, 2, 0, 0, 0, 0, 1, 0, 3, // feedback 21, congestion point
        0xFF, 0xF0, 0x00, 0x08, 0x60, 0x00, // offset -16, delta 8, priority 3
        2, 0, 0, 0, 0, 9, 0, 2, // destination, MSDU length
        0x08, 0x00, 0, 0, // MSDU and padding
    ];

    #[test]
    fn every_field_is_read() {
        let message = Cnm::new_checked(&MESSAGE).unwrap();
        assert_eq!((message.version(), message.feedback()), (0, 21));
        assert_eq!(message.congestion_point(), 0x0200_0000_0001_0003);
        assert_eq!((message.queue_offset(), message.queue_delta()), (-16, 8));
        assert_eq!(message.priority(), 3);
        assert_eq!(message.destination(), [2, 0, 0, 0, 0, 9]);
        assert_eq!(message.msdu(), [0x08, 0x00]);
    }

    #[test]
    fn a_cut_message_is_refused_and_a_cut_msdu_is_not() {
        for len in 0..MESSAGE.len() {
            let message = Cnm::new_checked(&MESSAGE[..len]);
            assert_eq!(message.is_ok(), len >= CNM_LEN, "{len}");
            if let Ok(message) = message {
                assert_eq!(message.msdu().len(), (len - CNM_LEN).min(2));
            }
        }
    }
}
