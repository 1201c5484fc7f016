//! A bounded table of flows, each with its owner's data: looked up by key, or by hosts.

use crate::bounded::{Bounded, Slot};
use crate::data::FlowKey;
use fcn_wire::Qp;
use fcn_wire::bth::MAX_24;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Maximum number of flows between two hosts that are considered.
pub const MAX_BETWEEN: usize = 64;
/// Maximum distance between PSNs of one connection, in either direction; PSNs further apart belong
/// to two connections, as the QP number was reused \[choice\]. A message may have that many
/// packets, and that many may be lost; connections that begin at random PSNs are nearer than this
/// in 3 % of cases.
pub(crate) const FAR: u32 = 1 << 18;
/// PSN 0, more than this behind the highest PSN, is of another connection too \[choice\]: some
/// libraries begin all connections at 0. Copies in a capture are nearer, and a sender goes back to
/// its very first packet only while none was acknowledged.
const FAR_FROM_0: u32 = 1 << 7;

/// Start of a flow, relative to a data packet of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStart {
    /// The flow has begun before.
    Before,
    /// The flow begins with this packet, as far as is remembered.
    First,
    /// The flow begins with this packet: the previous flow with that key was another connection.
    Anew,
    /// The flow has begun before; this is the first packet from a UDP source port other than its
    /// initial one.
    Spread,
}

/// A flow whose packet sequence numbers are remembered.
pub trait Sequenced {
    /// Returns the packet sequence number of the most advanced data packet, responses to RDMA READ
    /// excluded as their PSNs are the requester's; `None` if there is none.
    fn highest_psn(&self) -> Option<u32>;

    /// Takes over what continues from the flow's previous connection.
    fn succeed(&mut self, _previous: &mut Self) {}
}

/// A flow and its UDP source port.
#[derive(Debug)]
struct Entry<F> {
    flow: F,
    /// UDP source port of its data; 0 if it has none, or several.
    port: u16,
    /// True if the next data is of another connection.
    has_ended: bool,
}

/// A map with a maximum number of flows; the flows with the oldest data are evicted first.
#[derive(Debug)]
pub struct FlowTable<F> {
    flows: Bounded<FlowKey, Entry<F>>,
    /// Index by hosts, built on first use: new flows need no index until one is needed.
    by_hosts: Option<BTreeSet<FlowKey>>,
}

impl<F> FlowTable<F> {
    /// Keeps at most `limit` flows; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Bounded::new(limit),
            by_hosts: None,
        }
    }

    /// Returns the flow `key`, of which a data packet came at `at` from the UDP source port `port`
    /// (0: none, or not to be counted); `psn` is its PSN if it is [of its
    /// connection](crate::data::Sequence). Inserts the result of `make` if the flow is new, or if
    /// the PSN shows that the QP number was reused for another connection.
    #[inline]
    pub fn data(
        &mut self,
        key: FlowKey,
        at: u64,
        (psn, port): (Option<u32>, u16),
        make: impl Fn() -> F,
    ) -> (&mut F, FlowStart)
    where
        F: Sequenced,
    {
        let mut is_new = false;
        let by_hosts = &mut self.by_hosts;
        let make = || Entry {
            flow: make(),
            port,
            has_ended: false,
        };
        let first = || {
            is_new = true;
            make()
        };
        let (_, kept) = self.flows.get_or_insert_evicting(key, at, first, |gone| {
            if let Some(by_hosts) = by_hosts {
                by_hosts.remove(gone);
            }
        });
        if is_new && let Some(by_hosts) = &mut self.by_hosts {
            by_hosts.insert(key);
        }
        let psns = psn.zip(kept.flow.highest_psn());
        let is_anew = psns.is_some_and(|(psn, last)| are_of_two_connections(last, psn));
        let mut start = match is_new {
            true => FlowStart::First,
            false => FlowStart::Before,
        };
        if is_anew || kept.has_ended {
            let mut previous = std::mem::replace(kept, make());
            kept.flow.succeed(&mut previous.flow);
            start = FlowStart::Anew;
        } else if kept.port != port && kept.port != 0 {
            kept.port = 0;
            start = FlowStart::Spread;
        }
        (&mut kept.flow, start)
    }

    /// Records that the next data of a flow is of another connection.
    pub fn ends(&mut self, key: &FlowKey) {
        if let Some(kept) = self.flows.get_mut(key) {
            kept.has_ended = true;
        }
    }

    /// Returns the flow `key`.
    pub fn get(&self, key: &FlowKey) -> Option<&F> {
        self.flows.get(key).map(|kept| &kept.flow)
    }

    /// Returns the PSN of the flow's most advanced data packet, and the time of its last data
    /// packet.
    pub(crate) fn position(&self, key: &FlowKey) -> Option<(u32, u64)>
    where
        F: Sequenced,
    {
        let (kept, at) = self.flows.get_touched(key)?;
        Some((kept.flow.highest_psn()?, at))
    }

    /// Returns the flow `key`, mutably.
    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut F> {
        self.flows.get_mut(key).map(|kept| &mut kept.flow)
    }

    /// Returns the flows, maintaining an index by hosts from now on.
    pub fn indexed(&mut self) -> &Self {
        let keys = || self.flows.iter().map(|(key, _)| *key).collect();
        self.by_hosts.get_or_insert_with(keys);
        self
    }

    /// Returns all flows.
    pub fn iter(&self) -> impl Iterator<Item = (&FlowKey, &F)> {
        self.flows.iter().map(|(key, kept)| (key, &kept.flow))
    }

    /// Returns the flows in slots from `place` on, with their slots.
    pub fn from(&self, place: u32) -> impl Iterator<Item = (u32, &FlowKey, &F)> {
        let flows = self.flows.touched_after(Slot::new(place), None);
        flows.map(|(slot, key, kept)| (slot.get(), key, &kept.flow))
    }

    /// Returns the flows from one host to another, ordered by QP: at most `MAX_BETWEEN`. None
    /// unless the table is [`indexed`](Self::indexed).
    pub fn between(
        &self,
        sender: IpAddr,
        receiver: IpAddr,
    ) -> impl Iterator<Item = (&FlowKey, &F)> {
        let key = |receiver_qp| FlowKey {
            sender,
            receiver,
            receiver_qp,
        };
        let range = key(Qp::truncate(0))..=key(Qp::truncate(u32::MAX));
        (self.by_hosts.iter())
            .flat_map(move |keys| keys.range(range.clone()))
            .take(MAX_BETWEEN)
            .filter_map(|key| Some((key, self.get(key)?)))
    }

    /// Returns the number of flows kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there are no flows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the number of flows evicted.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.flows.evicted()
    }
}

/// Returns true if two PSNs may be of one connection.
pub(crate) fn is_near(last: u32, psn: u32) -> bool {
    let ahead = psn.wrapping_sub(last) & MAX_24;
    ahead.min(last.wrapping_sub(psn) & MAX_24) <= FAR
}

fn are_of_two_connections(last: u32, psn: u32) -> bool {
    let ahead = psn.wrapping_sub(last) & MAX_24;
    let behind = last.wrapping_sub(psn) & MAX_24;
    !is_near(last, psn) || psn == 0 && ahead > behind && behind > FAR_FROM_0
}

impl Sequenced for u32 {
    fn highest_psn(&self) -> Option<u32> {
        Some(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(sender: u8, qp: u32) -> FlowKey {
        FlowKey {
            sender: [10, 0, 1, sender].into(),
            receiver: [10, 0, 2, 1].into(),
            receiver_qp: Qp::truncate(qp),
        }
    }

    fn between(flows: &FlowTable<u32>, sender: u8) -> Vec<FlowKey> {
        let hosts = key(sender, 0);
        let found = flows.between(hosts.sender, hosts.receiver);
        found.map(|(key, _)| *key).collect()
    }

    #[test]
    fn the_flow_seen_longest_ago_leaves_with_its_place_in_the_index() {
        let mut flows = FlowTable::new(4);
        flows.indexed();
        for (at, qp) in [2, 3, 4, 5, 2, 6].into_iter().enumerate() {
            *flows.data(key(1, qp), at as u64, (None, 0), || 0).0 += 1;
        }
        assert_eq!((flows.len(), flows.evicted()), (4, 1));
        assert_eq!(flows.get(&key(1, 3)), None);
        assert_eq!(flows.get(&key(1, 2)), Some(&2));
        assert_eq!(between(&flows, 1), [2, 4, 5, 6].map(|qp| key(1, qp)));
        let back = flows.between(key(1, 0).receiver, key(1, 0).sender);
        assert_eq!(back.count(), 0);
    }

    #[test]
    fn the_number_of_flows_between_two_hosts_is_limited() {
        let mut flows = FlowTable::new(1000);
        for qp in 2..200 {
            flows.data(key(1, qp), 0, (None, 0), || 0);
        }
        assert_eq!(between(&flows, 1), [], "no index yet");
        flows.indexed();
        assert_eq!((flows.len(), between(&flows, 1).len()), (198, MAX_BETWEEN));
    }

    #[test]
    fn psns_of_another_connection_restart_a_flow() {
        for (last, psn, is_anew) in [
            (5, 6, false),
            (5, 5, false),
            (0xFF_FFF0, 0, false),
            (0x80, 0, false),
            (0x81, 0, true),
            (0x2000, 1, false),
            (0x10_0000, 0x14_0000, false),
            (0x14_0000, 0x10_0000, false),
            (0x10_0000, 0x14_0001, true),
            (0x14_0001, 0x10_0000, true),
            (0xFF_0000, 0x02_0000, false),
        ] {
            let mut flows = FlowTable::new(2);
            *flows.data(key(1, 2), 0, (Some(7), 0), || 0).0 = last;
            let (flow, anew) = flows.data(key(1, 2), 1, (Some(psn), 0), || psn);
            let is = (anew == FlowStart::Anew, *flow == psn);
            assert_eq!(is, (is_anew, is_anew || last == psn));
        }
        let mut flows = FlowTable::new(2);
        *flows.data(key(1, 2), 0, (None, 0), || 0).0 = 0x80_0000;
        let (_, begins) = flows.data(key(1, 2), 1, (None, 0), || 0);
        assert_eq!(begins, FlowStart::Before, "of a datagram");
    }

    #[test]
    fn a_flow_from_several_ports_is_reported_once() {
        let mut flows = FlowTable::new(2);
        let mut data = |psn, port| flows.data(key(1, 2), 0, (Some(psn), port), || 7).1;
        assert_eq!(data(7, 50_000), FlowStart::First);
        assert_eq!(data(7, 50_000), FlowStart::Before);
        assert_eq!(data(8, 50_001), FlowStart::Spread);
        assert_eq!(data(8, 50_002), FlowStart::Before);
        assert_eq!(data(0x80_0000, 50_003), FlowStart::Anew);
        assert_eq!(data(7, 50_003), FlowStart::Before);
        assert_eq!(data(7, 50_000), FlowStart::Spread);
    }

    proptest! {
        /// The index matches the table, whatever was evicted, and whenever the index was built.
        #[test]
        fn the_index_follows_the_table(
            packets in proptest::collection::vec((0_u8..4, 2_u32..10), 1..200),
            late in 0_usize..200,
        ) {
            let mut flows = FlowTable::new(20);
            for (time, (sender, qp)) in packets.into_iter().enumerate() {
                flows.data(key(sender, qp), time as u64, (None, 0), || 0);
                prop_assert!(flows.len() <= 20);
                if time >= late {
                    flows.indexed();
                    let all: Vec<_> = (0..4).flat_map(|sender| between(&flows, sender)).collect();
                    let mut held: Vec<_> = flows.flows.iter().map(|(key, _)| *key).collect();
                    held.sort_unstable();
                    prop_assert_eq!(held, all);
                }
            }
        }
    }
}
