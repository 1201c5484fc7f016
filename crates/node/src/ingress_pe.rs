//! The ingress PE: labels the flows that it tunnels through the WAN, and translates FCNs about a
//! label into CNPs (draft-he-rtgwg-wan-fcn section 4.1). The caller does the encapsulation.

use crate::limiter::{Bucket, Interval, Limits};
use crate::outgoing::OutgoingNotification;
use crate::prefix_map::is_allowed;
use crate::reasons::reasons;
use crate::sender_qps::{KnownBy, SenderQps};
use fcn_observe::data::FlowKey;
use fcn_observe::table::Table;
use fcn_observe::time::Time;
use fcn_wire::pnc::Prefix;
use fcn_wire::rdma_cm::gid_from_ip;
use fcn_wire::wan_fcn::MAX_FLOW_LABEL;
use fcn_wire::{Frame, Message, Qp};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Maximum number of flows that have a label at the same time: half of all labels.
pub const MAX_FLOWS: usize = 1 << 19;

/// Configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The PE's address: source of its tunnels.
    pub address: Ipv6Addr,
    /// Enables answering FCNs. Default false.
    pub enabled: bool,
    /// Limits on FCNs processed, and on CNPs to a sender about one flow.
    pub limits: Limits,
    /// Number of flows that have a label at the same time, at most half of the 2²⁰ labels. Default
    /// 65 536.
    pub flows: usize,
    /// Maximum number of connections remembered, and of flows whose acknowledgements are tracked.
    /// Default 65 536.
    pub connections: usize,
    /// QPs at senders, by flow, that need not be learnt.
    pub qps: Vec<(FlowKey, Qp)>,
    /// Nodes that may send FCNs. Empty: any, which is only safe if the domain's border filters.
    pub congestion_points: Vec<Prefix>,
}

impl Config {
    /// Creates the default configuration for the PE at `address`.
    #[must_use]
    pub fn new(address: Ipv6Addr) -> Self {
        Self {
            address,
            enabled: false,
            limits: Limits::default(),
            flows: 65_536,
            connections: 65_536,
            qps: Vec::new(),
            congestion_points: Vec::new(),
        }
    }
}

reasons! {
    /// Reason why a frame did not become a CNP.
    Refused {
        /// The PE does not answer FCNs.
        Disabled = disabled,
        /// The frame is not an FCN.
        NotANotification = not_a_notification,
        /// The FCN is addressed to another node.
        NotForUs = not_for_us,
        /// The source is not among the congestion points.
        NotAllowed = not_allowed,
        /// The limit on FCNs is exceeded.
        TooMany = too_many,
        /// No flow has the label, or no longer.
        UnknownLabel = unknown_label,
        /// The QP at the sender is neither configured nor learnt.
        UnknownConnection = unknown_connection,
        /// The last CNP of the flow was too recent.
        TooSoon = too_soon,
    }
    /// Counters of an ingress PE: actions and refusals.
    {
        /// CNPs sent.
        cnps,
        /// CNPs about a QP that was inferred from packets.
        inferred,
        /// Flows that were given a label.
        labelled,
        /// Flows that lost their label because the table was full.
        evicted,
    }
}

/// An ingress PE.
#[derive(Debug)]
pub struct IngressPe {
    config: Config,
    /// QPs at senders, learnt from passing packets.
    pub qps: SenderQps,
    labels: Labels,
    read: Bucket,
    interval: Interval,
    counters: Counters,
}

impl IngressPe {
    /// Creates a PE that has not processed any packet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let flows = config.flows.min(MAX_FLOWS);
        Self {
            qps: SenderQps::new(&config.qps, config.connections),
            labels: Labels::new(flows),
            read: Bucket::new(&config.limits),
            interval: Interval::new(config.limits.interval, config.limits.flows),
            counters: Counters::default(),
            config,
        }
    }

    /// Returns the outer flow label for packets of a flow: 20 bits, not 0, and different from those
    /// of other live flows.
    ///
    /// The label is a hash of the flow, so that a flow keeps its path after a restart, unless
    /// another flow already has that hash. If the table is full, the least recently used flow loses
    /// its label.
    pub fn label(&mut self, source: IpAddr, destination: IpAddr, dest_qp: Qp) -> u32 {
        let flow = FlowKey {
            sender: source,
            receiver: destination,
            receiver_qp: dest_qp,
        };
        if let Some(label) = self.labels.get(&flow) {
            return label;
        }
        let (label, evicted) = self.labels.assign(flow);
        self.counters.labelled += 1;
        self.counters.evicted += u64::from(evicted);
        label
    }

    /// Returns the CNP to send for the FCN in `frame`: with the receiver's source address, about
    /// the sender's QP, as a standard CNP that the sender understands (section 4.1).
    ///
    /// # Errors
    /// The reason why there is none; each is counted.
    pub fn on_message(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
    ) -> Result<OutgoingNotification, Refused> {
        let answer = self.answer(now, frame);
        match answer {
            Ok(_) => self.counters.cnps += 1,
            Err(refused) => self.counters.count(refused),
        }
        answer
    }

    fn answer(&mut self, now: Time, frame: &Frame<'_>) -> Result<OutgoingNotification, Refused> {
        if !self.config.enabled {
            return Err(Refused::Disabled);
        }
        let (Message::WanFcn(fcn), Some(ip)) = (frame.message(), frame.ip()) else {
            return Err(Refused::NotANotification);
        };
        if ip.destination != self.config.address {
            return Err(Refused::NotForUs);
        }
        if !is_allowed(&self.config.congestion_points, ip.source) {
            return Err(Refused::NotAllowed);
        }
        if !self.read.admit(now) {
            return Err(Refused::TooMany);
        }
        let flow = self
            .labels
            .flow(fcn.flow_label())
            .ok_or(Refused::UnknownLabel)?;
        let (qp, by) = self
            .qps
            .sender_qp(&flow)
            .ok_or(Refused::UnknownConnection)?;
        if !self.interval.admit(now, flow) {
            return Err(Refused::TooSoon);
        }
        self.counters.inferred += u64::from(by == KnownBy::Packets);
        Ok(OutgoingNotification::Cnp {
            source: flow.receiver,
            destination: flow.sender,
            qp,
        })
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Assignment of labels to flows.
#[derive(Debug)]
struct Labels {
    by_flow: Table<FlowKey, u32>,
    by_label: HashMap<u32, FlowKey>,
}

impl Labels {
    fn new(flows: usize) -> Self {
        Self {
            by_flow: Table::new(flows),
            by_label: HashMap::new(),
        }
    }

    fn get(&mut self, flow: &FlowKey) -> Option<u32> {
        self.by_flow.get(flow).copied()
    }

    fn flow(&self, label: u32) -> Option<FlowKey> {
        self.by_label.get(&label).copied()
    }

    /// Assigns a label to a flow that has none; returns true if another flow lost its label for it.
    fn assign(&mut self, flow: FlowKey) -> (u32, bool) {
        let first = hash(&flow);
        // At most half of the labels are in use, so that a free one is always found quickly.
        let label = (0..MAX_FLOW_LABEL)
            .map(|step| (first + step) % MAX_FLOW_LABEL + 1)
            .find(|label| !self.by_label.contains_key(label))
            .unwrap_or(1);
        let evicted = self.by_flow.put(flow, label);
        if let Some((_, label)) = evicted {
            self.by_label.remove(&label);
        }
        self.by_label.insert(label, flow);
        (label, evicted.is_some())
    }
}

/// Returns a hash of the flow from 0 to 2²⁰ − 2 (FNV-1a, 64 bits), the same on every machine and in
/// every run.
fn hash(flow: &FlowKey) -> u32 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    let octets = |address: IpAddr| gid_from_ip(address).octets();
    let bytes = octets(flow.sender)
        .into_iter()
        .chain(octets(flow.receiver))
        .chain(flow.receiver_qp.get().to_be_bytes());
    let hash = bytes.fold(OFFSET, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(PRIME)
    });
    // The upper bits are mixed better.
    ((hash ^ hash >> 32) % u64::from(MAX_FLOW_LABEL)) as u32
}

#[cfg(test)]
mod tests;
