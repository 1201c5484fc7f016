//! Which flows a pair of hosts has, without a look at all of them: chains through the slots of the table of flows.

use crate::bounded::Slot;
use core::hash::BuildHasher;
use foldhash::fast::RandomState;
use std::net::IpAddr;

/// So many flows of a chain are looked at for an acknowledgement.
pub const MAX_CHAIN: usize = 64;

/// Chains of flows whose pairs of hosts have the same hash. Numbers are slots plus one; 0 is none.
#[derive(Debug)]
pub struct Pairs {
    /// The first of each chain.
    heads: Vec<u32>,
    /// By slot.
    links: Vec<Link>,
    hasher: RandomState,
}

/// Where a flow stands in its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link {
    /// The one behind it.
    next: u32,
    /// The one before it; in front of the first stands the last, so that it need not be searched.
    before: u32,
}

impl Link {
    /// In no chain.
    const NONE: Self = Self { next: 0, before: 0 };
}

impl Pairs {
    /// For a table of at most `limit` flows. Takes 4 octets for each of them (rounded up to a power of two), and 8 for
    /// each that comes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            heads: vec![0; limit.clamp(1, 1 << 31).next_power_of_two()],
            links: Vec::new(),
            hasher: RandomState::default(),
        }
    }

    fn bucket(&self, sender: IpAddr, receiver: IpAddr) -> usize {
        self.hasher.hash_one((sender, receiver)) as usize & (self.heads.len() - 1)
    }

    fn link_of(&mut self, number: u32) -> Option<&mut Link> {
        self.links.get_mut((number as usize).wrapping_sub(1))
    }

    /// Puts `slot`, which is in none, at the end of its chain.
    pub fn link(&mut self, slot: Slot, sender: IpAddr, receiver: IpAddr) {
        let number = slot.get() + 1;
        if self.links.len() < number as usize {
            self.links.resize(number as usize, Link::NONE);
        }
        let bucket = self.bucket(sender, receiver);
        let Some(head) = self.heads.get_mut(bucket) else {
            return;
        };
        let first = match *head {
            0 => {
                *head = number;
                number
            }
            first => first,
        };
        let Some(in_front) = self.link_of(first) else {
            return;
        };
        let last = core::mem::replace(&mut in_front.before, number);
        if first == number {
            return;
        }
        if let Some(last) = self.link_of(last) {
            last.next = number;
        }
        if let Some(own) = self.link_of(number) {
            own.before = last;
        }
    }

    /// Takes `slot` out of its chain.
    pub fn unlink(&mut self, slot: Slot, sender: IpAddr, receiver: IpAddr) {
        let number = slot.get() + 1;
        let bucket = self.bucket(sender, receiver);
        let Some(own) = self.link_of(number) else {
            return;
        };
        let Link { next, before } = core::mem::take(own);
        let Some(head) = self.heads.get_mut(bucket) else {
            return;
        };
        let first = *head;
        if first == number {
            *head = next;
        } else if let Some(before) = self.link_of(before) {
            before.next = next;
        }
        // Where it was the last one, the first has to know the last anew.
        if let Some(behind) = self.link_of(if next == 0 { first } else { next }) {
            behind.before = before;
        }
        // It may have been alone.
        if let Some(own) = self.link_of(number) {
            *own = Link::NONE;
        }
    }

    /// The chain that the flows between these two are in, among flows of others: so many at most as [`MAX_CHAIN`], those
    /// that came first.
    pub fn chain(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = Slot> {
        let follow = |number: u32| (number != 0).then(|| Slot::new(number - 1));
        let head = self.heads.get(self.bucket(sender, receiver));
        core::iter::successors(head.and_then(|number| follow(*number)), move |slot| {
            follow(self.links.get(slot.get() as usize)?.next)
        })
        .take(MAX_CHAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn pair(n: u8) -> (IpAddr, IpAddr) {
        let host = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        (host(n), host(100))
    }

    proptest! {
        /// Against lists of those that came, in their order. With two heads several pairs share a chain.
        #[test]
        fn a_chain_is_what_came_and_has_not_left(
            steps in proptest::collection::vec((0u32..90, 0u8..3), 1..400),
            limit in 1usize..3,
        ) {
            let mut pairs = Pairs::new(limit);
            let mut linked: Vec<(u32, u8)> = Vec::new();
            for (slot, host) in steps {
                match linked.iter().position(|(other, _)| *other == slot) {
                    Some(place) => {
                        let (_, host) = linked.remove(place);
                        let (from, to) = pair(host);
                        pairs.unlink(Slot::new(slot), from, to);
                    }
                    None => {
                        let (from, to) = pair(host);
                        pairs.link(Slot::new(slot), from, to);
                        linked.push((slot, host));
                    }
                }
                for host in 0..3 {
                    let (from, to) = pair(host);
                    let shares = |other: u8| {
                        let (a, b) = pair(other);
                        pairs.bucket(a, b) == pairs.bucket(from, to)
                    };
                    let all = linked.iter().filter(|(_, other)| shares(*other));
                    let expected: Vec<u32> = all.map(|(slot, _)| *slot).take(MAX_CHAIN).collect();
                    let chain: Vec<u32> = pairs.chain(from, to).map(Slot::get).collect();
                    prop_assert_eq!(chain, expected);
                }
            }
        }
    }
}
