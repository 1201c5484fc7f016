//! The flows on a device's link: learnt from data packets, and their QPs at the sender from RDMA
//! CM, as a device has QPs and PSNs of its own.

use crate::scenario::model::Simulation;
use fcn_observe::{DataPacket, FlowKey, Resolver};
use fcn_wire::{Frame, Qp};
use std::collections::HashSet;
use std::fmt;

/// Maximum number of flows.
const MOST: usize = 65_536;

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntFlow {
    /// Its addresses, and the QP at the receiver.
    pub key: FlowKey,
    /// The QP at the sender; `None` if it was not exchanged by RDMA CM, and the flow is not the
    /// scenario's.
    pub sender_qp: Option<Qp>,
    /// Its name in the scenario.
    name: Option<String>,
}

impl fmt::Display for LearntFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "QP {} of {}", self.key.receiver_qp, self.key.receiver),
        }
    }
}

/// Learns flows from frames.
pub struct FlowLearner<'s> {
    simulation: &'s Simulation,
    resolver: Resolver,
    known: HashSet<FlowKey>,
    /// The flows, in the order of their first packets.
    pub flows: Vec<LearntFlow>,
}

impl<'s> FlowLearner<'s> {
    /// Creates a learner that knows no flow.
    #[must_use]
    pub fn new(simulation: &'s Simulation) -> Self {
        Self {
            simulation,
            resolver: Resolver::new(MOST),
            known: HashSet::new(),
            flows: Vec::new(),
        }
    }

    /// Learns from a frame: RDMA CM, data.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        self.resolver.learn(frame);
        let Some(data) = DataPacket::from_frame(frame) else {
            return;
        };
        let key = data.flow();
        if self.flows.len() >= MOST || !self.known.insert(key) {
            return;
        }
        let mut flows = self.simulation.flows.iter();
        let own = flows.find(|flow| flow.key() == key);
        let exchanged = self.resolver.connections().sender_qp(&key);
        self.flows.push(LearntFlow {
            key,
            sender_qp: exchanged.or(own.map(|flow| flow.sender_qp)),
            name: own.map(|flow| flow.name.clone()),
        });
    }
}
