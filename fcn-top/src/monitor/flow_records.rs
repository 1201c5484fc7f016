//! Rows of the table of flows.

use super::Monitor;
use super::flows::Volume;
use crate::record::{Cause, FlowRecord};
use fcn_observe::correlator::Flow;
use fcn_observe::{Class, FlowKey};
use fcn_wire::bth::AckKind;

impl Monitor {
    /// Returns the flows kept, in no particular order.
    pub fn flows(&self) -> impl Iterator<Item = FlowRecord> {
        let flows = self.correlator.flows().iter();
        flows.map(|(key, flow)| self.flow_record(key, flow))
    }

    /// Appends at most `most` flows to `flows`, starting at a slot; returns the slot to continue
    /// from, if there are more.
    pub fn flows_from(&self, place: u32, most: usize, flows: &mut Vec<FlowRecord>) -> Option<u32> {
        let mut rest = self.correlator.flows().from(place);
        let some = rest.by_ref().take(most);
        flows.extend(some.map(|(_, key, flow)| self.flow_record(key, flow)));
        rest.next().map(|(place, ..)| place)
    }

    fn flow_record(&self, key: &FlowKey, flow: &Flow<Volume>) -> FlowRecord {
        let (volume, exchange) = (&flow.extra, &flow.exchange);
        let earlier = volume.earlier();
        let packets = volume.packets + earlier.map_or(0, |earlier| earlier.packets);
        let octets = earlier.map_or(0, |earlier| earlier.octets);
        let octets = volume.octets.saturating_add(octets);
        let estimate = volume.estimate(self.now, self.since());
        let (sender_qp, sender_qp_from) = self.correlator.sender_qp(key).unzip();
        let acks = |kind| exchange.acks(kind).into();
        let longest = exchange.longest_silence();
        let silences = Cause::ALL.map(|cause| exchange.silences(cause));
        let (rtt_min, rtt_last) = exchange.round_trip().unzip();
        let ack_class = exchange.ack_class();
        let is_notified = flow.is_notified() && estimate.is_none();
        let is_unpaired =
            exchange.unanswered_tries().is_some() && self.correlator.has_unpaired_acks(key);
        FlowRecord {
            sender: key.sender,
            receiver: key.receiver,
            receiver_qp: key.receiver_qp.get(),
            sender_qp: sender_qp.map(fcn_wire::Qp::get),
            sender_qp_from,
            data_rate: match estimate {
                Some(estimate) => estimate.rate,
                None => volume.data_rate(self.now, self.since()),
            },
            data_packets: estimate.map_or(packets, |estimate| estimate.packets),
            data_octets: estimate.map_or(octets, |estimate| estimate.octets),
            data_sampled: estimate.map(|estimate| estimate.sampled),
            ce_share: match estimate {
                Some(estimate) => Some(estimate.ce_share),
                None => volume.ce_share_of_all(),
            },
            ecn: exchange.data_ecn(),
            not_ect: exchange.not_ect.into(),
            data_dscp: flow.class.map(Class::dscp),
            data_vlan_priority: flow.class.and_then(Class::priority),
            ack_dscp: ack_class.map(Class::dscp),
            ack_vlan_priority: ack_class.and_then(Class::priority),
            acks: acks(AckKind::Ack),
            rnr_naks: acks(AckKind::RnrNak),
            nak_sequence: acks(AckKind::SequenceError),
            nak_invalid_request: acks(AckKind::InvalidRequest),
            nak_remote_access: acks(AckKind::RemoteAccess),
            nak_remote_operation: acks(AckKind::RemoteOperation),
            resent: exchange.resent.into(),
            late: exchange.late.into(),
            stall_max: longest.map(|(_, length)| length),
            stall_after: longest.map(|(cause, _)| cause),
            stalls: longest.map_or(0, |(cause, _)| exchange.silences(cause).count.into()),
            stalls_all: silences.iter().map(|each| u64::from(each.count)).sum(),
            stalled: (silences.iter()).fold(0, |sum, each| sum.saturating_add(each.total)),
            tries: exchange.unanswered_tries().filter(|_| !is_unpaired),
            path_pauses: flow.pauses.into(),
            exhausted: exchange.has_exhausted_retries(self.now) && !is_unpaired,
            rtt_min,
            rtt_last,
            verdict: is_notified.then(|| self.correlator.verdict(flow).answer),
            first_seen: earlier.map_or(flow.first, |earlier| earlier.first),
            last_seen: flow.latest,
        }
    }
}
