//! Builds `Rules`, one change at a time, and refuses invalid ones.

use super::address::Addresses;
use super::rules::{Base, MAX_VLAN, Macs, Port, QPS, VlanTag};
use super::{Rules, RulesError};
use crate::bth::{MAX_24, Qp};
use crate::pnc::Prefix;
use crate::wan_fcn::MAX_FLOW_LABEL;
use core::ops::RangeInclusive;
use std::sync::Arc;

/// Adds a pair to a sorted list.
fn add<T: Copy + Ord>(
    pairs: &mut Vec<(T, T)>,
    what: &'static str,
    (from, to): (T, T),
    value: u64,
) -> Result<(), RulesError> {
    match pairs.binary_search_by_key(&from, |pair| pair.0) {
        Ok(_) => Err(RulesError::Twice { what, value }),
        Err(at) => {
            pairs.insert(at, (from, to));
            Ok(())
        }
    }
}

fn within(what: &'static str, value: u64, max: u64) -> Result<(), RulesError> {
    if value <= max {
        return Ok(());
    }
    Err(RulesError::Wide { what, value, max })
}

pub(super) fn not_empty(range: &RangeInclusive<u16>) -> Result<(), RulesError> {
    if !range.is_empty() {
        return Ok(());
    }
    let (first, last) = (*range.start(), *range.end());
    Err(RulesError::EmptyRange { first, last })
}

impl Rules {
    fn edit(&mut self) -> &mut Base {
        Arc::make_mut(&mut self.base)
    }

    /// Sets the source address of every Ethernet header.
    pub fn source_mac(mut self, address: [u8; 6]) -> Self {
        self.edit().source_mac = Some(address);
        self
    }

    /// Sets the destination address of every Ethernet header, including group addresses.
    pub fn destination_mac(mut self, address: [u8; 6]) -> Self {
        self.edit().destination_mac = Some(address);
        self
    }

    /// Maps the MAC address `from` to `to`, in both address fields of the Ethernet header (unless
    /// an address is set for all) and in ARP.
    ///
    /// # Errors
    /// Fails if `from` has a mapping already.
    pub fn map_mac(mut self, from: [u8; 6], to: [u8; 6]) -> Result<Self, RulesError> {
        let [a, b, c, d, e, f] = from;
        let value = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        add(&mut self.edit().macs, "MAC address", (from, to), value)?;
        Ok(self)
    }

    /// Puts an Ethernet header with these addresses before packets that have none, replacing the
    /// capture's link header (Linux cooked header, address family). The EtherType is that of the
    /// capture or of the IP version.
    pub fn to_ethernet(mut self, source: [u8; 6], destination: [u8; 6]) -> Self {
        self.edit().to_ethernet = Some(Macs {
            source,
            destination,
        });
        self
    }

    /// Removes all VLAN tags.
    pub fn remove_vlans(mut self) -> Self {
        self.edit().remove_tags = true;
        self
    }

    /// Sets the identifier of the outermost tag, if there is one. Takes precedence over a mapping.
    ///
    /// # Errors
    /// Fails if `id` is more than 4095.
    pub fn set_vlan(mut self, id: u16) -> Result<Self, RulesError> {
        within("VLAN id", id.into(), MAX_VLAN.into())?;
        self.edit().vlan_id = Some(id);
        Ok(self)
    }

    /// Maps the identifier `from` to `to` in every tag.
    ///
    /// # Errors
    /// Fails if an identifier is more than 4095, or `from` has a mapping already.
    pub fn map_vlan(mut self, from: u16, to: u16) -> Result<Self, RulesError> {
        within("VLAN id", from.max(to).into(), MAX_VLAN.into())?;
        add(&mut self.edit().vlans, "VLAN id", (from, to), from.into())?;
        Ok(self)
    }

    /// Puts `tag` before all tags, after the other rules have changed those. MAC control frames do
    /// not get one.
    ///
    /// # Errors
    /// Fails if the identifier is more than 4095 or the priority more than 7.
    pub fn push_vlan(mut self, tag: VlanTag) -> Result<Self, RulesError> {
        within("VLAN id", tag.id.into(), MAX_VLAN.into())?;
        within("VLAN priority", tag.priority.into(), 7)?;
        self.edit().push = Some(tag);
        Ok(self)
    }

    /// Maps addresses within `from` to those with the same host part within `to`. If prefixes are
    /// nested, the longest one that contains an address applies. `0.0.0.0` and `::` are not
    /// addresses of a node and stay.
    ///
    /// # Errors
    /// Fails if the prefixes differ in length or IP version, or `from` has a mapping already.
    pub fn map_prefix(mut self, from: Prefix, to: Prefix) -> Result<Self, RulesError> {
        self.addresses_in(&from).table.add(from, to)?;
        Ok(self)
    }

    pub(super) fn addresses_in(&mut self, prefix: &Prefix) -> &mut Addresses {
        let base = self.edit();
        if prefix.address().is_ipv4() {
            &mut base.v4
        } else {
            &mut base.v6
        }
    }

    /// Sets the UDP source port of RoCEv2 and tunnels, replacing a mapping.
    pub fn set_udp_source(mut self, port: u16) -> Self {
        self.edit().port = Port::Set(port);
        self
    }

    /// Maps the UDP source port `from` of RoCEv2 and tunnels to `to`, replacing a port set for all.
    ///
    /// # Errors
    /// Fails if `from` has a mapping already.
    pub fn map_udp_source(mut self, from: u16, to: u16) -> Result<Self, RulesError> {
        let port = &mut self.edit().port;
        if !matches!(port, Port::Map(_)) {
            *port = Port::Map(Vec::new());
        }
        if let Port::Map(pairs) = port {
            add(pairs, "UDP port", (from, to), from.into())?;
        }
        Ok(self)
    }

    /// Adds `by` to UDP source ports of RoCEv2 and tunnels within `range`, modulo its size; other
    /// ports stay. Applied after a mapping; `range` is also that of a
    /// [`LoopVariation`](super::LoopVariation).
    ///
    /// # Errors
    /// Fails if the range is empty.
    pub fn add_udp_source(
        mut self,
        range: RangeInclusive<u16>,
        by: u16,
    ) -> Result<Self, RulesError> {
        not_empty(&range)?;
        self.edit().ports = Some(range);
        self.offsets.port = by.into();
        Ok(self)
    }

    /// Maps the QP number `from` to `to`.
    ///
    /// # Errors
    /// Fails if `from` has a mapping already.
    pub fn map_qp(mut self, from: Qp, to: Qp) -> Result<Self, RulesError> {
        add(&mut self.edit().qps, "QP", (from, to), from.get().into())?;
        Ok(self)
    }

    /// Adds `by` to QP numbers, after a mapping. The management QPs 0 and 1 and the multicast QP
    /// 0xFFFFFF stay; the sum wraps around within the numbers between them.
    pub fn add_qp(mut self, by: i32) -> Self {
        self.offsets.qp = i64::from(by).rem_euclid(QPS.into());
        self
    }

    /// Adds `by` to PSNs, modulo 2^24. The PSN of a CNP stays.
    pub const fn add_psn(mut self, by: u32) -> Self {
        self.offsets.psn = by & MAX_24;
        self
    }

    /// Sets every IPv6 flow label, including the one that a WAN FCN names.
    ///
    /// # Errors
    /// Fails if `label` needs more than 20 bits.
    pub fn set_flow_label(mut self, label: u32) -> Result<Self, RulesError> {
        within("flow label", label.into(), MAX_FLOW_LABEL.into())?;
        self.edit().flow_label = Some(label);
        Ok(self)
    }

    /// Recomputes all checksums and the ICRC, so that wrong ones become right. A UDP checksum of 0
    /// stays, as do checksums over data that the capture truncated. An ICRC that was right stays
    /// right by its reading; otherwise the profile's reading is used.
    pub fn repair(mut self) -> Self {
        self.edit().repair = true;
        self
    }

    /// Verifies the ICRC of every RoCEv2 packet for [`Outcome::icrc`](super::Outcome), at a cost
    /// that grows with the packet. Otherwise an ICRC is verified only if its state has to be known.
    pub fn verify_icrc(mut self) -> Self {
        self.edit().verify = true;
        self
    }
}
