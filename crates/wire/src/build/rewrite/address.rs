//! Rewriting of a single address: IP prefixes mapped to prefixes, and host parts that advance.
//! `packet.rs` locates addresses in a packet.

use super::RulesError;
use crate::pnc::Prefix;
use std::net::IpAddr;

/// Returns the number of bits of an address of the family of `prefix`.
const fn width(prefix: &Prefix) -> u32 {
    if prefix.address().is_ipv4() { 32 } else { 128 }
}

const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits() as u128,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns a mask with ones in a host part of `host` bits.
const fn host_mask(host: u32) -> u128 {
    match 1u128.checked_shl(host) {
        Some(bit) => bit - 1,
        None => u128::MAX,
    }
}

/// Mappings of the prefixes with one host part length.
#[derive(Clone, Debug)]
struct Group {
    host_mask: u128,
    /// Old and new prefix, sorted by the old one.
    pairs: Vec<(u128, u128)>,
}

/// Mappings of one address family; the longest prefix that contains an address applies.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixTable {
    /// Longest prefix first.
    groups: Vec<Group>,
}

impl PrefixTable {
    pub(super) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds the mapping of `from` to `to`; both have the table's family.
    pub(super) fn add(&mut self, from: Prefix, to: Prefix) -> Result<(), RulesError> {
        if from.address().is_ipv4() != to.address().is_ipv4() || from.bits() != to.bits() {
            return Err(RulesError::Prefixes { from, to });
        }
        let mask = host_mask(width(&from) - u32::from(from.bits()));
        let at = self.groups.partition_point(|group| group.host_mask < mask);
        if self.groups.get(at).is_none_or(|g| g.host_mask != mask) {
            let (host_mask, pairs) = (mask, Vec::new());
            self.groups.insert(at, Group { host_mask, pairs });
        }
        let pair = (bits(from.address()), bits(to.address()));
        let Some(group) = self.groups.get_mut(at) else {
            return Ok(());
        };
        match group.pairs.binary_search_by_key(&pair.0, |p| p.0) {
            Ok(_) => return Err(RulesError::PrefixTwice(from)),
            // Usually already in order, because lists of hosts are mostly sorted.
            Err(at) => group.pairs.insert(at, pair),
        }
        Ok(())
    }

    fn map(&self, address: u128) -> u128 {
        for group in &self.groups {
            let prefix = address & !group.host_mask;
            if let Ok(at) = group.pairs.binary_search_by_key(&prefix, |p| p.0) {
                let to = group.pairs.get(at).map_or(prefix, |p| p.1);
                return to | address & group.host_mask;
            }
        }
        address
    }
}

/// Addresses within a prefix whose host part advances by `step` each loop, modulo the prefix size.
#[derive(Clone, Copy, Debug)]
struct HostStep {
    prefix: u128,
    host_mask: u128,
    step: u128,
}

/// Rules for the addresses of one family.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    pub(super) table: PrefixTable,
    steps: Vec<HostStep>,
}

impl Addresses {
    pub(super) const fn is_empty(&self) -> bool {
        self.table.is_empty() && self.steps.is_empty()
    }

    /// Adds a prefix in which host parts advance by `step` each loop; the first prefix that
    /// contains an address applies.
    pub(super) fn add_step(&mut self, prefix: Prefix, step: u64) {
        self.steps.push(HostStep {
            prefix: bits(prefix.address()),
            host_mask: host_mask(width(&prefix) - u32::from(prefix.bits())),
            step: step.into(),
        });
    }

    /// Returns the new address for `address` in loop `turn`. The unspecified address stays
    /// unchanged.
    #[inline]
    pub(super) fn map(&self, address: u128, turn: u64) -> u128 {
        if address == 0 {
            return 0;
        }
        let address = self.table.map(address);
        if turn == 0 {
            return address;
        }
        for step in &self.steps {
            if address & !step.host_mask == step.prefix {
                let by = step.step.wrapping_mul(turn.into());
                return step.prefix | address.wrapping_add(by) & step.host_mask;
            }
        }
        address
    }
}
