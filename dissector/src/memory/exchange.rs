//! Data packets of connections by PSN, to link retransmissions and acknowledgements to them.

use super::FrameTime;
use fcn_observe::exchange::Incident;
use fcn_observe::sightings::CapturePoint;
use fcn_observe::{Bounded, FlowKey};
use fcn_wire::bth::AckKind;

/// Links of a packet of a connection to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It is a retransmission of that packet.
    Retransmission(FrameTime, u64),
    /// It acknowledges that packet, sent so long before it in nanoseconds; `None` if the packet was
    /// sent several times, or was captured elsewhere.
    Acknowledgement(u32, Option<u64>),
    /// It refuses that packet.
    Refusal(u32),
}

/// A data packet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    first: FrameTime,
    point: CapturePoint,
    was_resent: bool,
}

/// Data packets, and the links to them. About 90 octets for a packet, and 60 for a link.
#[derive(Debug)]
pub struct Exchange {
    sent: Bounded<(FlowKey, u32), Sent>,
    links: Bounded<u32, Links>,
    incidents: Bounded<u32, Incident>,
}

impl Exchange {
    /// Keeps at most `limit` packets, and as many links.
    pub fn new(limit: usize) -> Self {
        Self {
            sent: Bounded::new(limit),
            links: Bounded::new(limit),
            incidents: Bounded::new(limit),
        }
    }

    /// Processes a data packet with a PSN of its connection.
    pub fn data(
        &mut self,
        (moment, point): (FrameTime, CapturePoint),
        (flow, psn): (FlowKey, u32),
        is_resent: bool,
        tick: u64,
    ) {
        let new = Sent {
            first: moment,
            point,
            was_resent: false,
        };
        let known = self.sent.get_or_insert_with((flow, psn), tick, || new);
        if !is_resent {
            *known = new;
        } else if known.first != moment {
            known.was_resent = true;
            let after = moment.at.saturating_sub(known.first.at);
            let link = Links::Retransmission(known.first, after);
            self.links.get_or_insert_with(moment.frame, tick, || link);
        } else {
            // The capture lacks the first transmission.
            known.was_resent = true;
        }
    }

    /// Processes an acknowledgement of a flow's data.
    pub fn acknowledged(
        &mut self,
        (moment, point): (FrameTime, CapturePoint),
        (flow, psn): (FlowKey, u32),
        kind: AckKind,
        tick: u64,
    ) {
        let Some(sent) = self.sent.get(&(flow, psn)) else {
            return;
        };
        let is_timed = !sent.was_resent && sent.point == point;
        let link = match kind {
            AckKind::Ack => {
                let time = moment.at.checked_sub(sent.first.at).filter(|_| is_timed);
                Links::Acknowledgement(sent.first.frame, time)
            }
            _ => Links::Refusal(sent.first.frame),
        };
        self.links.get_or_insert_with(moment.frame, tick, || link);
    }

    /// Records what is wrong with the flow of a data packet since that frame.
    pub fn incident(&mut self, frame: u32, incident: Incident, tick: u64) {
        (self.incidents).get_or_insert_with(frame, tick, || incident);
    }

    /// Returns what is wrong with the flow of a data packet since that frame.
    pub fn incident_at(&self, frame: u32) -> Option<Incident> {
        self.incidents.get(&frame).copied()
    }

    /// Returns the links of a frame.
    pub fn links(&self, frame: u32) -> Option<Links> {
        self.links.get(&frame).copied()
    }
}
