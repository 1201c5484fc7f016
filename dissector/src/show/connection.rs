//! The connection that a notification is about: its two ends, in the form that tables and filters
//! share.

use core::fmt;
use fcn_observe::FlowKey;
use fcn_observe::malformed::Malformed;
use fcn_wire::Qp;
use fcn_wire::notification::{Notification, Side, Subject};
use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    address: IpAddr,
    /// QP, if known.
    qp: Option<Qp>,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.qp {
            Some(qp) => write!(f, "{} QP {qp}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// Record of a packet for the statistics.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// A notification.
    Notification(Notified),
    /// A packet meant as a notification, but unreadable.
    Malformed(Malformed),
}

/// A notification, and the context known from other frames.
#[derive(Clone, Copy, Debug)]
pub struct Notified {
    /// Content of the notification.
    pub gist: Notification,
    /// Flow that it is about, if known.
    pub flow: Option<FlowKey>,
    /// QP at the sender, if known.
    pub sender_qp: Option<Qp>,
}

impl Notified {
    /// Creates a notification without context from other frames.
    pub const fn alone(gist: Notification) -> Self {
        let sender_qp = match gist.subject {
            Subject::SenderQp(qp) => Some(qp),
            _ => None,
        };
        Self {
            gist,
            flow: None,
            sender_qp,
        }
    }

    /// Returns the sender that has to slow down, and the other end: the receiver, or the notifier
    /// if no receiver is known. Both are the same for every kind of notification about a flow, as
    /// far as known.
    ///
    /// `None` if no sender is known: a WAN FCN names none.
    pub fn ends(&self) -> Option<[End; 2]> {
        let Self { gist, flow, .. } = self;
        let named = gist
            .subject
            .qp()
            .filter(|(side, _)| *side == Side::Receiver);
        let receiver = flow.map(|flow| flow.receiver).or(gist.subject.receiver());
        Some([
            End {
                address: self.sender()?,
                qp: self.sender_qp,
            },
            End {
                address: receiver.unwrap_or(gist.notifier),
                qp: flow
                    .map(|flow| flow.receiver_qp)
                    .or(named.map(|(_, qp)| qp)),
            },
        ])
    }

    /// Returns the sender that has to slow down.
    pub fn sender(&self) -> Option<IpAddr> {
        self.gist.sender.or(self.flow.map(|flow| flow.sender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::notification::{Kind, Origin};

    fn gist(sender: Option<&str>, subject: Subject) -> Notification {
        Notification {
            kind: Kind::Cnp,
            origin: Origin::Switch,
            notifier: "203.0.113.3".parse().unwrap(),
            destination: "192.0.2.15".parse().unwrap(),
            sender: sender.map(|sender| sender.parse().unwrap()),
            subject,
            level: None,
            deepest_queue: None,
            hops: None,
        }
    }

    #[test]
    fn a_qp_belongs_to_its_own_end() {
        let qp = Qp::truncate(0x12);
        let sender = Some("192.0.2.1");
        let by_sender = Notified::alone(gist(sender, Subject::SenderQp(qp)))
            .ends()
            .unwrap();
        assert_eq!(
            by_sender.map(|end| end.to_string()),
            ["192.0.2.1 QP 0x12", "203.0.113.3"]
        );
        let receiver = "198.51.100.1".parse().unwrap();
        let by_receiver = Notified::alone(gist(sender, Subject::ReceiverQp { receiver, qp }))
            .ends()
            .unwrap();
        assert_eq!(
            by_receiver.map(|end| end.to_string()),
            ["192.0.2.1", "198.51.100.1 QP 0x12"]
        );
        assert_eq!(
            Notified::alone(gist(None, Subject::FlowLabel(5))).ends(),
            None
        );
    }

    #[test]
    fn a_known_flow_has_the_same_ends_for_every_kind() {
        let [own, qp] = [Qp::truncate(0x11), Qp::truncate(0x12)];
        let sender = Some("192.0.2.1");
        let flow = FlowKey {
            sender: "192.0.2.1".parse().unwrap(),
            receiver: "198.51.100.1".parse().unwrap(),
            receiver_qp: qp,
        };
        let receiver = flow.receiver;
        for (sender, subject) in [
            (sender, Subject::SenderQp(own)),
            (sender, Subject::ReceiverQp { receiver, qp }),
            (None, Subject::FlowLabel(5)),
        ] {
            let notified = Notified {
                gist: gist(sender, subject),
                flow: Some(flow),
                sender_qp: Some(own),
            };
            assert_eq!(
                notified.ends().unwrap().map(|end| end.to_string()),
                ["192.0.2.1 QP 0x11", "198.51.100.1 QP 0x12"]
            );
        }
    }
}
