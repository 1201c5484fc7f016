//! Addresses: those of the file, otherwise derived ones from the documentation and benchmarking
//! ranges (RFC 3849, RFC 2544).
//!
//! | node | IPv6 | IPv4 |
//! |---|---|---|
//! | host `n`, rack of switch `r` | `2001:db8:r::n` | `198.18.b.n`, blocks of 254 in rack order |
//! | switch `r` | `2001:db8:ffff::r` | in `198.19.240.0/20` |

use super::error::{Refusal, refuse};
use super::limits;
use super::topology::{Entry, Topology};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First block of the hosts' IPv4 addresses.
const HOSTS4: u32 = 0xC612_0100;
/// First IPv4 address of the switches; the hosts' addresses end before it.
const SWITCHES4: u32 = 0xC613_F000;
/// Number of hosts in a block of 256 IPv4 addresses.
const BLOCK: usize = 254;

/// Addresses of a node.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub ipv6: Ipv6Addr,
    pub ipv4: Ipv4Addr,
}

impl Addresses {
    /// Returns the address of one family.
    pub fn for_family(self, ip: u8) -> IpAddr {
        if ip == 6 {
            self.ipv6.into()
        } else {
            self.ipv4.into()
        }
    }
}

/// Assigns every node its addresses, all different.
pub(super) fn assign(topology: &Topology<'_>) -> Result<Vec<Addresses>, Refusal> {
    let racks = racks(topology);
    let blocks = blocks(&racks).map_err(|(rack, message)| {
        let host = racks.iter().position(|of| *of == Some(rack));
        Refusal::at(&topology.path(host.unwrap_or(0), "name"), message)
    })?;
    let mut all = Vec::with_capacity(topology.nodes.len());
    let mut owners: HashMap<IpAddr, usize> = HashMap::new();
    let mut in_rack: HashMap<usize, usize> = HashMap::new();
    let mut number = 0u32;
    for (id, node) in topology.nodes.iter().enumerate() {
        let (own6, own4, count) = match node.entry {
            Entry::Host(host) => (host.ipv6, host.ipv4, host.count),
            Entry::Switch(switch) => (switch.ipv6, switch.ipv4, switch.count),
        };
        let (derived6, derived4) = match racks.get(id).copied().flatten() {
            Some(rack) => {
                let index = in_rack.entry(rack).or_default();
                *index += 1;
                host(rack, *index, blocks.get(&rack).copied().unwrap_or(0))
            }
            None => {
                number += 1;
                let low = u16::try_from(number).unwrap_or(u16::MAX);
                let ipv6 = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, low);
                (ipv6, Ipv4Addr::from_bits(SWITCHES4 + number))
            }
        };
        let own = Addresses {
            ipv6: own6.unwrap_or(derived6),
            ipv4: own4.unwrap_or(derived4),
        };
        for (address, given, key) in [
            (IpAddr::V6(own.ipv6), own6.is_some(), "ipv6"),
            (IpAddr::V4(own.ipv4), own4.is_some(), "ipv4"),
        ] {
            let path = || node.path(if given { key } else { "name" });
            if given && count.is_some_and(|count| count != 1) {
                refuse!(path(), "an entry for several nodes cannot set an address");
            }
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                refuse!(
                    path(),
                    "{address} is not a valid address of a node; unicast addresses are allowed"
                );
            }
            if let Some(other) = owners.insert(address, id) {
                let (other, name) = (topology.name(other), &node.name);
                refuse!(
                    path(),
                    "{address} belongs to both `{other}` and `{name}`; addresses must differ"
                );
            }
        }
        all.push(own);
    }
    Ok(all)
}

/// Returns the rack of every host: the number of its switch, from 1.
fn racks(topology: &Topology<'_>) -> Vec<Option<usize>> {
    let first_switch = topology.nodes.iter().filter(|node| node.is_host()).count();
    let rack = |id| {
        let next = topology.neighbours(id).next().unwrap_or(0);
        (next + 1).saturating_sub(first_switch)
    };
    (0..topology.nodes.len())
        .map(|id| topology.is_host(id).then(|| rack(id)))
        .collect()
}

/// Returns the first IPv4 block of each rack, or the rack for which no block is left, with the
/// reason.
fn blocks(racks: &[Option<usize>]) -> Result<HashMap<usize, u32>, (usize, String)> {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for rack in racks.iter().flatten() {
        *sizes.entry(*rack).or_default() += 1;
    }
    let mut next = 0u32;
    let mut first = HashMap::new();
    for (rack, size) in sizes {
        first.insert(rack, next);
        next += u32::try_from(size.div_ceil(BLOCK)).unwrap_or(u32::MAX / 2);
        if HOSTS4 + next * 256 > SWITCHES4 {
            let message = format!(
                "the hosts need more blocks of {BLOCK} IPv4 addresses than 198.18.0.0/15 has; put \
                 more hosts in a rack"
            );
            return Err((rack, message));
        }
    }
    Ok(first)
}

fn host(rack: usize, index: usize, block: u32) -> (Ipv6Addr, Ipv4Addr) {
    // At most 1,000 switches and 100,000 hosts: `limits.rs`.
    debug_assert!(rack <= limits::SWITCHES && index <= limits::HOSTS);
    let (rack, index) = (rack as u16, index as u32);
    let (high, low) = ((index >> 16) as u16, index as u16);
    let ipv6 = Ipv6Addr::new(0x2001, 0xdb8, rack, 0, 0, 0, high, low);
    let block_size = BLOCK as u32;
    let ipv4 = HOSTS4 + (block + (index - 1) / block_size) * 256 + (index - 1) % block_size + 1;
    (ipv6, Ipv4Addr::from_bits(ipv4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_racks() {
        assert_eq!(
            host(1, 3, 0),
            (
                "2001:db8:1::3".parse().unwrap(),
                "198.18.1.3".parse().unwrap()
            )
        );
        assert_eq!(
            host(10, 255, 4),
            (
                "2001:db8:a::ff".parse().unwrap(),
                "198.18.6.1".parse().unwrap()
            )
        );
    }
}
