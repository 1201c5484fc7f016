//! What the kernel counted at an interface.

use super::link;
use super::netlink::Netlink;
use super::{Interface, InterfaceError};
use netlink_packet_route::link::Stats64;
use serde::Serialize;

/// Counts of an interface (`IFLA_STATS64`), since it was made or since an earlier reading.
///
/// What AF_XDP sends without copying may be missing here: drivers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Frames sent.
    pub transmit_packets: u64,
    /// Octets sent.
    pub transmit_octets: u64,
    /// Frames dropped before they were sent; on a veth also those that the peer would not take.
    pub transmit_dropped: u64,
    /// Frames whose sending failed.
    pub transmit_errors: u64,
    /// Frames received.
    pub receive_packets: u64,
    /// Octets received.
    pub receive_octets: u64,
    /// Frames received and dropped for want of room or interest.
    pub receive_dropped: u64,
    /// Malformed frames received.
    pub receive_errors: u64,
    /// Frames the hardware had no room for.
    pub receive_missed: u64,
}

impl Counters {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// When the interface is gone, or the kernel cannot be asked.
    pub fn read(interface: &Interface) -> Result<Self, InterfaceError> {
        let name = &interface.name;
        let query = |e| InterfaceError::query("counters", e).on(name);
        let mut netlink = Netlink::open().map_err(query)?;
        let link = link::one(&mut netlink, interface.index).map_err(query)?;
        let link = link.ok_or_else(|| InterfaceError::gone(name))?;
        Ok(link.counters.unwrap_or_default())
    }

    /// What was counted since `earlier`; 0 where a driver began anew.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            transmit_packets: self
                .transmit_packets
                .saturating_sub(earlier.transmit_packets),
            transmit_octets: self.transmit_octets.saturating_sub(earlier.transmit_octets),
            transmit_dropped: self
                .transmit_dropped
                .saturating_sub(earlier.transmit_dropped),
            transmit_errors: self.transmit_errors.saturating_sub(earlier.transmit_errors),
            receive_packets: self.receive_packets.saturating_sub(earlier.receive_packets),
            receive_octets: self.receive_octets.saturating_sub(earlier.receive_octets),
            receive_dropped: self.receive_dropped.saturating_sub(earlier.receive_dropped),
            receive_errors: self.receive_errors.saturating_sub(earlier.receive_errors),
            receive_missed: self.receive_missed.saturating_sub(earlier.receive_missed),
        }
    }
}

impl From<Stats64> for Counters {
    fn from(stats: Stats64) -> Self {
        Self {
            transmit_packets: stats.tx_packets,
            transmit_octets: stats.tx_bytes,
            transmit_dropped: stats.tx_dropped,
            transmit_errors: stats.tx_errors,
            receive_packets: stats.rx_packets,
            receive_octets: stats.rx_bytes,
            receive_dropped: stats.rx_dropped,
            receive_errors: stats.rx_errors,
            receive_missed: stats.rx_missed_errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference() {
        let counters = |transmit_packets, receive_packets| Counters {
            transmit_packets,
            receive_packets,
            ..Counters::default()
        };
        assert_eq!(counters(7, 5).since(counters(3, 9)), counters(4, 0));
    }
}
