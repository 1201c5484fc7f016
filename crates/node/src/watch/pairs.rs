//! Which flows a pair of hosts has, without a look at all of them: chains through the slots of the table of flows.

use super::bounded::Slot;
use super::hashing::Seeded;
use core::hash::BuildHasher;
use std::net::IpAddr;

/// Most flows in a chain: so many are looked at for an acknowledgement.
pub const MAX_CHAIN: usize = 64;

/// Chains of flows whose pairs of hosts have the same hash. Numbers are slots plus one; 0 is none.
#[derive(Debug)]
pub struct Pairs {
    heads: Vec<u32>,
    /// The next in the chain, by slot.
    next: Vec<u32>,
    hasher: Seeded,
}

impl Pairs {
    /// For a table of at most `limit` flows. Takes 4 octets for each of them (rounded up to a power of two), and 4 for
    /// each that comes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            heads: vec![0; limit.clamp(1, 1 << 31).next_power_of_two()],
            next: Vec::new(),
            hasher: Seeded::default(),
        }
    }

    fn bucket(&self, sender: IpAddr, receiver: IpAddr) -> usize {
        self.hasher.hash_one((sender, receiver)) as usize & (self.heads.len() - 1)
    }

    /// Puts `slot` at the end of its chain, unless that is full.
    pub fn link(&mut self, slot: Slot, sender: IpAddr, receiver: IpAddr) {
        let number = slot.get() + 1;
        if self.next.len() < number as usize {
            self.next.resize(number as usize, 0);
        }
        let bucket = self.bucket(sender, receiver);
        let mut last = 0;
        let mut count = 0;
        for slot in self.chain(sender, receiver) {
            last = slot.get() + 1;
            count += 1;
        }
        if count >= MAX_CHAIN {
            return;
        }
        let place = if last == 0 {
            self.heads.get_mut(bucket)
        } else {
            self.next.get_mut(last as usize - 1)
        };
        if let Some(place) = place {
            *place = number;
        }
    }

    /// Takes `slot` out of its chain.
    pub fn unlink(&mut self, slot: Slot, sender: IpAddr, receiver: IpAddr) {
        let number = slot.get() + 1;
        let bucket = self.bucket(sender, receiver);
        let after = self
            .next
            .get_mut(slot.get() as usize)
            .map_or(0, core::mem::take);
        let Some(mut place) = self.heads.get_mut(bucket) else {
            return;
        };
        while *place != 0 {
            if *place == number {
                *place = after;
                return;
            }
            let at = *place as usize - 1;
            let Some(next) = self.next.get_mut(at) else {
                return;
            };
            place = next;
        }
    }

    /// The chain that the flows between these two are in, among flows of others.
    pub fn chain(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = Slot> {
        let follow = |number: u32| (number != 0).then(|| Slot::new(number - 1));
        let head = self.heads.get(self.bucket(sender, receiver));
        core::iter::successors(head.and_then(|number| follow(*number)), move |slot| {
            follow(*self.next.get(slot.get() as usize)?)
        })
        .take(MAX_CHAIN)
    }
}
