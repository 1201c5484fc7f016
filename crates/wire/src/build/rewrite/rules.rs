//! `Rules`: the changes to make, with the new value for each old one. They are built in
//! `builder.rs` and `variation.rs`; `packet.rs` locates the values in a packet.

use super::address::Addresses;
use crate::bth::{MAX_24, Qp};
use core::ops::RangeInclusive;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Largest VLAN identifier (12 bits).
pub(super) const MAX_VLAN: u16 = 0x0FFF;
/// QP numbers not assigned to a single QP: 0 and 1 are the management QPs, the last one stands for
/// a multicast group.
const FIRST_QP: u32 = 2;
/// Number of QPs between them.
pub(super) const QPS: u32 = MAX_24 - FIRST_QP;

/// A VLAN tag to put before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// IEEE 802.1ad service tag (0x88A8) instead of an 802.1Q customer tag (0x8100).
    pub service: bool,
}

/// MAC addresses of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Macs {
    pub(super) source: [u8; 6],
    pub(super) destination: [u8; 6],
}

/// Rule for the UDP source port that spreads flows over paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Port {
    #[default]
    Keep,
    Set(u16),
    Map(Vec<(u16, u16)>),
}

/// Rules that are the same in all loops. By default nothing changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    pub(super) source_mac: Option<[u8; 6]>,
    pub(super) destination_mac: Option<[u8; 6]>,
    pub(super) macs: Vec<([u8; 6], [u8; 6])>,
    pub(super) to_ethernet: Option<Macs>,
    pub(super) remove_tags: bool,
    pub(super) vlan_id: Option<u16>,
    pub(super) vlans: Vec<(u16, u16)>,
    pub(super) push: Option<VlanTag>,
    pub(super) v4: Addresses,
    pub(super) v6: Addresses,
    pub(super) port: Port,
    /// Range within which ports advance; `None` for all ports.
    pub(super) ports: Option<RangeInclusive<u16>>,
    pub(super) qps: Vec<(Qp, Qp)>,
    pub(super) flow_label: Option<u32>,
    pub(super) repair: bool,
    pub(super) verify: bool,
}

impl Base {
    /// Returns the first of the ports that advance, and their number.
    pub(super) fn port_range(&self) -> (u16, u64) {
        let range = self.ports.clone().unwrap_or(0..=u16::MAX);
        let (first, last) = range.into_inner();
        (first, u64::from(last - first) + 1)
    }

    /// Returns true if MAC addresses or VLAN tags of an Ethernet header change.
    pub(super) const fn has_link_rules(&self) -> bool {
        self.source_mac.is_some()
            || self.destination_mac.is_some()
            || self.remove_tags
            || self.vlan_id.is_some()
            || self.push.is_some()
            || !self.macs.is_empty()
            || !self.vlans.is_empty()
    }

    /// Returns the new MAC address for `old`, by the mapping alone.
    pub(super) fn mac(&self, old: [u8; 6]) -> [u8; 6] {
        mapped(&self.macs, old).unwrap_or(old)
    }

    /// Returns the new tag control information of a tag.
    pub(super) fn tci(&self, old: u16, is_outermost: bool) -> u16 {
        let id = old & MAX_VLAN;
        let set = self.vlan_id.filter(|_| is_outermost);
        let id = set.or_else(|| mapped(&self.vlans, id)).unwrap_or(id);
        old & !MAX_VLAN | id
    }
}

fn mapped<T: Copy + Ord>(pairs: &[(T, T)], old: T) -> Option<T> {
    let at = pairs.binary_search_by_key(&old, |pair| pair.0).ok()?;
    pairs.get(at).map(|pair| pair.1)
}

/// Offsets that vary from loop to loop; all 0 unless there is a variation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopOffsets {
    pub(super) number: u64,
    pub(super) psn: u32,
    pub(super) port: u64,
    /// Less than [`QPS`] in magnitude.
    pub(super) qp: i64,
}

/// Changes to make in packets; none by default. Cheap to clone and to share between threads.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Rules {
    pub(super) base: Arc<Base>,
    pub(super) offsets: LoopOffsets,
}

impl Rules {
    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// Returns true if anything after the link header can change or is to be verified.
    pub(super) fn affects_payload(&self) -> bool {
        let base = &*self.base;
        base.repair
            || base.verify
            || !base.macs.is_empty()
            || self.maps_addresses()
            || base.port != Port::Keep
            || !base.qps.is_empty()
            || base.flow_label.is_some()
            || self.offsets.psn != 0
            || self.offsets.port != 0
            || self.offsets.qp != 0
    }

    /// Returns true if IP addresses can change.
    pub(super) fn maps_addresses(&self) -> bool {
        !self.base.v4.is_empty() || !self.base.v6.is_empty()
    }

    /// Returns the new address for `address`, as used wherever it occurs in a packet.
    #[must_use]
    pub fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => self.ipv4(address).into(),
            IpAddr::V6(address) => self.ipv6(address).into(),
        }
    }

    #[inline]
    pub(super) fn ipv4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let new = (self.base.v4).map(address.to_bits().into(), self.offsets.number);
        // A mapping between IPv4 addresses never yields a wider value.
        Ipv4Addr::from_bits(new as u32)
    }

    #[inline]
    pub(super) fn ipv6(&self, address: Ipv6Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits((self.base.v6).map(address.to_bits(), self.offsets.number))
    }

    /// Returns the new QP number for `qp`.
    #[must_use]
    pub fn qp(&self, qp: Qp) -> Qp {
        let qp = mapped(&self.base.qps, qp).unwrap_or(qp);
        match qp.get().checked_sub(FIRST_QP) {
            Some(place) if place < QPS && self.offsets.qp != 0 => {
                let place = (i64::from(place) + self.offsets.qp).rem_euclid(QPS.into());
                Qp::truncate(FIRST_QP + place as u32)
            }
            _ => qp,
        }
    }

    /// Returns the new PSN for `psn` (24 bits).
    #[must_use]
    pub const fn psn(&self, psn: u32) -> u32 {
        psn.wrapping_add(self.offsets.psn) & MAX_24
    }

    /// Returns the new UDP source port for `port`.
    #[must_use]
    pub fn udp_source(&self, port: u16) -> u16 {
        let base = &*self.base;
        let port = match &base.port {
            Port::Keep => port,
            Port::Set(port) => *port,
            Port::Map(pairs) => mapped(pairs, port).unwrap_or(port),
        };
        let (first, size) = base.port_range();
        let place = u64::from(port.wrapping_sub(first));
        if self.offsets.port == 0 || place >= size {
            return port;
        }
        let place = (place + self.offsets.port % size) % size;
        // Less than the range's size.
        first + place as u16
    }

    /// Returns the new IPv6 flow label for `label` (20 bits).
    #[must_use]
    pub fn flow_label(&self, label: u32) -> u32 {
        self.base.flow_label.unwrap_or(label)
    }
}
