//! The flow that a WAN FCN refers to: the flow label of the outer header, as in the data packets of
//! an ingress PE (draft-he-rtgwg-wan-fcn section 4.1).

use crate::data::Outer;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::IpAddr;

/// The last data packet by ingress PE and flow label; `V` names its flow. Bounded: when full, the
/// map is cleared and relearnt within a few packets.
///
/// With SR-MPLS nothing names the ingress PE: the entropy label alone is used, if no tunnel of the
/// notified PE has the label \[choice\].
#[derive(Debug)]
pub struct Labels<V> {
    flows: HashMap<(Option<IpAddr>, u32), V, RandomState>,
    limit: usize,
}

impl<V: PartialEq> Labels<V> {
    /// Keeps at most `limit` flows; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            flows: HashMap::default(),
            limit: limit.max(1),
        }
    }

    /// Learns from a data packet in a tunnel.
    pub fn learn(&mut self, outer: &Outer, flow: V) {
        let key = (outer.ingress.map(IpAddr::V6), outer.flow_label);
        if self.flows.get(&key) == Some(&flow) {
            return;
        }
        if self.flows.len() >= self.limit {
            self.flows.clear();
        }
        // Several flows may hash to one label; the most recent one is as good as any.
        self.flows.insert(key, flow);
    }

    /// Returns the flow that an FCN to `ingress` about `label` refers to.
    #[must_use]
    pub fn flow_of(&self, ingress: IpAddr, label: u32) -> Option<&V> {
        let named = self.flows.get(&(Some(ingress), label));
        named.or_else(|| self.flows.get(&(None, label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn the_label_of_the_notified_pe_takes_precedence() {
        let pe = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        let outer = |ingress, flow_label| Outer {
            ingress,
            flow_label,
        };
        let mut labels = Labels::new(3);
        labels.learn(&outer(Some(pe(1)), 7), 'a');
        labels.learn(&outer(None, 7), 'b');
        labels.learn(&outer(Some(pe(1)), 7), 'c');
        assert_eq!(labels.flow_of(pe(1).into(), 7), Some(&'c'));
        assert_eq!(labels.flow_of(pe(2).into(), 7), Some(&'b'));
        assert_eq!(labels.flow_of(pe(1).into(), 8), None);
        labels.learn(&outer(None, 8), 'd');
        labels.learn(&outer(None, 9), 'e');
        assert_eq!(labels.flow_of(pe(1).into(), 7), None, "begun anew");
        assert_eq!(labels.flow_of(pe(1).into(), 9), Some(&'e'));
    }
}
