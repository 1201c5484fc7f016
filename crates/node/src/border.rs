//! The border of a domain: drops fast congestion notifications that would enter or leave it
//! (draft-xiao-rtgwg-rocev2-fast-cnp section 5, a MUST for deployments;
//! draft-xiao-rtgwg-proxy-congestion-notification section 6; draft-he-rtgwg-wan-fcn section 6 asks
//! for a controlled domain, which the same filter maintains \[choice\]).
//!
//! Plain CNPs pass \[choice\]: a receiver in another domain answers its sender with them, and no
//! draft mentions them.

use crate::reasons::counters;
use fcn_wire::{Frame, Message};

/// The side of the border from which a frame comes, or to which it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The node's own domain, including the node itself.
    Inside,
    /// Another domain.
    Outside,
}

/// The direction in which a notification would have crossed the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// From outside into the domain, or through it.
    Inbound,
    /// Out of the domain.
    Outbound,
}

counters! {
    /// Notifications dropped by a border.
    pub struct Counters {
        /// Fast CNPs.
        pub fast_cnps: u64,
        /// Notifications to proxy nodes.
        pub proxy_cns: u64,
        /// WAN FCNs.
        pub wan_fcns: u64,
        /// Those of all kinds that came from outside.
        pub inbound: u64,
        /// Those of all kinds that were leaving.
        pub outbound: u64,
    }
}

impl Counters {
    /// Returns the number of notifications dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.inbound + self.outbound
    }
}

/// The filter of a border node.
#[derive(Clone, Debug, Default)]
pub struct Border {
    counters: Counters,
}

impl Border {
    /// Returns the direction if the frame is to be dropped, and counts it. Malformed notifications
    /// are dropped as well: a broken Fast CNP must not reach the next domain either.
    pub fn filter(&mut self, from: Side, to: Side, frame: &Frame<'_>) -> Option<Crossing> {
        let crossing = match (from, to) {
            (Side::Outside, _) => Crossing::Inbound,
            (Side::Inside, Side::Outside) => Crossing::Outbound,
            (Side::Inside, Side::Inside) => return None,
        };
        let counter = match frame.message() {
            Message::FastCnp(_) => &mut self.counters.fast_cnps,
            Message::ProxyCn(_) => &mut self.counters.proxy_cns,
            Message::WanFcn(_) => &mut self.counters.wan_fcns,
            _ => return None,
        };
        *counter += 1;
        match crossing {
            Crossing::Inbound => self.counters.inbound += 1,
            Crossing::Outbound => self.counters.outbound += 1,
        }
        Some(crossing)
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::{DataPacketContext, OutgoingNotification};
    use crate::testing::{RECEIVER, SENDER, SWITCH, data, with_frame};
    use fcn_wire::proxy_cn::FiveTuple;
    use fcn_wire::{Opcode, Profile, Qp};

    /// One frame of each kind, and frames that must pass: a plain CNP, and data.
    fn frames() -> ([Vec<u8>; 3], [Vec<u8>; 2]) {
        let data = data(
            SENDER.into(),
            RECEIVER.into(),
            Opcode::RC_SEND_ONLY,
            Qp::truncate(5),
        );
        let context = DataPacketContext {
            trace: None,
            invoking: &data,
        };
        let emit = |outgoing: OutgoingNotification| {
            let mut out = [0; OutgoingNotification::MAX_LEN];
            let (len, _) = outgoing
                .emit(&context, &Profile::DEFAULT, &mut out)
                .unwrap();
            out[..len].to_vec()
        };
        let fast = OutgoingNotification::FastCnp {
            source: SWITCH,
            destination: SENDER,
            original_destination: RECEIVER,
            qp: Qp::truncate(5),
        };
        let proxy = OutgoingNotification::ProxyCn {
            source: SWITCH.into(),
            proxy: SENDER.into(),
            tuple: FiveTuple::from_packet(&data).unwrap(),
            level: 0,
        };
        let wan = OutgoingNotification::WanFcn {
            source: SWITCH,
            ingress: SENDER,
            flow_label: 7,
            level: 1,
            copy_flow_label: false,
        };
        let cnp = OutgoingNotification::Cnp {
            source: RECEIVER.into(),
            destination: SENDER.into(),
            qp: Qp::truncate(6),
        };
        let others = [emit(cnp), data.clone()];
        ([fast, proxy, wan].map(emit), others)
    }

    #[test]
    fn every_kind_is_stopped_in_both_directions_and_nothing_else() {
        let (notifications, others) = frames();
        let ways = [
            (Side::Outside, Side::Inside, Some(Crossing::Inbound)),
            (Side::Outside, Side::Outside, Some(Crossing::Inbound)),
            (Side::Inside, Side::Outside, Some(Crossing::Outbound)),
            (Side::Inside, Side::Inside, None),
        ];
        let mut border = Border::default();
        for (from, to, want) in ways {
            for bytes in &notifications {
                let stopped = with_frame(bytes, |frame| border.filter(from, to, frame));
                assert_eq!(stopped, want, "{from:?} {to:?}");
            }
            for bytes in &others {
                let stopped = with_frame(bytes, |frame| border.filter(from, to, frame));
                assert_eq!(stopped, None);
            }
        }
        let want = Counters {
            fast_cnps: 3,
            proxy_cns: 3,
            wan_fcns: 3,
            inbound: 6,
            outbound: 3,
        };
        assert_eq!(border.counters(), &want);
        assert_eq!(want.dropped(), 9);
    }
}
