//! Which flow a WAN FCN means: the flow label of the outer header, as the data packets of an ingress PE carry it
//! (draft-he-rtgwg-wan-fcn section 4.1).

use super::hashing::Seeded;
use fcn_node::{FlowKey, Outer};
use std::collections::HashMap;
use std::net::IpAddr;

/// Flows by ingress PE and flow label. Bounded: when full, it begins anew and learns within a few packets.
#[derive(Debug)]
pub struct Labels {
    flows: HashMap<(IpAddr, u32), FlowKey, Seeded>,
    limit: usize,
}

impl Labels {
    /// At most `limit` flows; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            flows: HashMap::default(),
            limit: limit.max(1),
        }
    }

    /// Learns from a data packet in a tunnel. With SR-MPLS nothing names the ingress PE, so nothing is learnt.
    pub fn learn(&mut self, outer: &Outer, flow: FlowKey) {
        let Some(ingress) = outer.ingress else { return };
        let key = (IpAddr::V6(ingress), outer.flow_label);
        if self.flows.get(&key) == Some(&flow) {
            return;
        }
        if self.flows.len() >= self.limit {
            self.flows.clear();
        }
        // Several flows may hash to one label; of those the last one seen is as good as any.
        self.flows.insert(key, flow);
    }

    /// The flow that the FCN to `ingress` about `label` means.
    #[must_use]
    pub fn flow_of(&self, ingress: IpAddr, label: u32) -> Option<FlowKey> {
        self.flows.get(&(ingress, label)).copied()
    }
}
