//! What is known of the flows, as [`fcn_observe`]'s resolver of QPs at the sender asks for it.

use super::flows::Flows;
use fcn_observe::FlowKey;
pub use fcn_observe::{Resolver, SeenFlows};
use std::net::IpAddr;

impl SeenFlows for Flows {
    fn last_psn(&self, key: &FlowKey) -> Option<u32> {
        self.get(key)?.last_psn()
    }

    fn between(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = (FlowKey, u32)> {
        Self::between(self, sender, receiver)
            .filter_map(|(key, flow)| Some((*key, flow.last_psn()?)))
    }
}

#[cfg(test)]
mod tests;
