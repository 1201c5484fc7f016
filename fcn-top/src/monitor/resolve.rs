//! What is known of the flows, as [`fcn_observe`]'s resolver of QPs at the sender asks for it.

use super::flows::{Flow, Flows};
use fcn_observe::FlowKey;
pub use fcn_observe::{Resolver, SeenFlows};
use std::net::IpAddr;

impl SeenFlows for Flows {
    fn last_psn(&self, key: &FlowKey) -> Option<u32> {
        self.get(key).and_then(last_psn)
    }

    fn between(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = (FlowKey, u32)> {
        let flows = Self::between(self, sender, receiver);
        flows.filter_map(|(key, flow)| Some((*key, last_psn(flow)?)))
    }
}

/// `None` where only samples of its data were seen, of which the last is no measure.
fn last_psn(flow: &Flow) -> Option<u32> {
    (flow.packets > 0).then_some(flow.last_psn)
}

#[cfg(test)]
mod tests;
