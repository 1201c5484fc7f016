//! The data flows that notifications are about: how much they carry, how much of it is marked, and whether they slow down.
//!
//! A flow is what the roles call so: sender, receiver and the QP at the receiver. What one flow remembers is in `flow.rs`.
//! Notifications of a flow of which no data was seen leave nothing here.

mod flow;

pub use flow::{Effect, Flow, PART};

use super::samples::OneIn;
use fcn_observe::sightings::{Look, Place};
use fcn_observe::{Bounded, Pairs};
use fcn_observe::{Class, FlowKey};
use fcn_wire::Rule;
use std::net::IpAddr;

/// What is to be known of a data packet.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its flow.
    pub key: FlowKey,
    /// When and where it was seen, and whether it is marked CE.
    pub look: Look,
    /// Whether several places are told apart where packets are seen.
    pub several: bool,
    /// The packet's first sighting, where this is another one, which counts for nothing but a mark.
    pub earlier: Option<Look>,
    /// Octets of the IP packet, header included: of the innermost one where there is a tunnel.
    pub ip_octets: u64,
    /// What the network may choose its path by.
    pub entropy: u32,
    /// What it is queued by.
    pub class: Option<Class>,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Whether it answers an RDMA READ, and so counts as whoever asked does.
    pub answers_read: bool,
    /// Whether its sender is known to handle Fast CNPs.
    pub able: bool,
}

/// What is to be known of a notification about a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notified {
    /// Where it was seen, if it is a Fast CNP from a switch.
    pub fast: Option<Place>,
    /// Whether several places are told apart where packets are seen.
    pub several: bool,
    /// Whether the receiver answers the CE marks so far.
    pub answers: bool,
}

/// At most so many flows; past the limit those leave first whose data was seen longest ago.
///
/// A flow takes about 870 octets, its place in the tables included, and 470 more once it was notified about: 134 MB for
/// 100,000.
#[derive(Debug)]
pub struct Flows {
    pub table: Bounded<FlowKey, Flow>,
    /// From when on they were asked for: new flows need not wait for an index that nobody looks into.
    pairs: Option<Pairs>,
}

impl Flows {
    /// Keeps at most `limit` flows; 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        Self {
            table: Bounded::new(limit),
            pairs: None,
        }
    }

    /// Takes in a data packet seen at `at`, in nanoseconds since the epoch. Times may go back a little: a packet that is
    /// earlier than the flow's last one counts as seen with it.
    ///
    /// Returns the rule about [marks](fcn_observe::marks) that it shows broken.
    pub fn data(&mut self, at: u64, data: &Data) -> Effect {
        self.with(at, data.key, |flow| flow.data(at, data))
    }

    /// Takes in a sample of data, one in so many, that was taken at a place.
    pub fn sampled(&mut self, at: u64, data: &Data, place: u32, one_in: OneIn) {
        self.with(at, data.key, |flow| flow.sampled(at, data, place, one_in));
    }

    /// Does something with the flow called `key`, which is made where it is new.
    #[inline]
    fn with<T>(&mut self, at: u64, key: FlowKey, work: impl FnOnce(&mut Flow) -> T) -> T {
        let pairs = &mut self.pairs;
        let mut new = false;
        let (slot, flow) = self.table.get_or_insert_evicting(
            key,
            at,
            || {
                new = true;
                Flow::new(at)
            },
            |slot, key, _| {
                if let Some(pairs) = pairs {
                    pairs.unlink(slot, key.sender, key.receiver);
                }
            },
        );
        let done = work(flow);
        if new && let Some(pairs) = &mut self.pairs {
            pairs.link(slot, key.sender, key.receiver);
        }
        done
    }

    /// Takes in that a notification about the flow was seen at `at`. Of a flow without data so far nothing is kept. Returns
    /// the rule about marks that it shows broken.
    pub fn notified(&mut self, at: u64, key: &FlowKey, notified: &Notified) -> Option<Rule> {
        self.table.get_mut(key)?.notified(at, notified)
    }

    /// The flow called `key`.
    pub fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.table.get(key)
    }

    /// The flows, with an index of pairs of hosts from now on.
    pub fn paired(&mut self) -> &Self {
        if self.pairs.is_none() {
            let mut pairs = Pairs::new(self.table.limit());
            let mut all: Vec<_> = (self.table.slots())
                .map(|(slot, key, flow)| (flow.first, slot, key))
                .collect();
            // Slot by slot where it is the same moment.
            all.sort_by_key(|(first, _, _)| *first);
            for (_, slot, key) in all {
                pairs.link(slot, key.sender, key.receiver);
            }
            self.pairs = Some(pairs);
        }
        self
    }

    /// The flows from one host to another: [`MAX_CHAIN`](fcn_observe::pairs::MAX_CHAIN) at most, those that came first of those still kept. None before
    /// they are [`paired`](Self::paired).
    pub fn between(
        &self,
        sender: IpAddr,
        receiver: IpAddr,
    ) -> impl Iterator<Item = (&FlowKey, &Flow)> {
        (self.pairs.iter())
            .flat_map(move |pairs| pairs.chain(sender, receiver))
            .filter_map(|slot| self.table.at(slot))
            .filter(move |(key, _)| key.sender == sender && key.receiver == receiver)
    }
}

#[cfg(test)]
mod tests;
