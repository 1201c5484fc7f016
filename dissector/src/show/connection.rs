//! The connection that a notification is about: its two ends, in the words that tables and filters share.

use core::fmt;
use fcn_wire::Qp;
use fcn_wire::notification::{Gist, Side};
use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    address: IpAddr,
    /// Its QP, where the notification names it.
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

/// The sender that is to slow down, and the other end: the receiver, or who notifies where no receiver is named.
///
/// `None` where no sender is named: a WAN FCN is about all flows of a tunnel with one flow label.
pub fn ends(gist: &Gist) -> Option<[End; 2]> {
    let qp_of = |side| {
        gist.subject
            .qp()
            .filter(|(named, _)| *named == side)
            .map(|(_, qp)| qp)
    };
    Some([
        End {
            address: gist.sender?,
            qp: qp_of(Side::Sender),
        },
        End {
            address: gist.subject.receiver().unwrap_or(gist.notifier),
            qp: qp_of(Side::Receiver),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::notification::{Kind, Origin, Subject};

    fn gist(sender: Option<&str>, subject: Subject) -> Gist {
        Gist {
            kind: Kind::Cnp,
            origin: Origin::Switch,
            notifier: "203.0.113.3".parse().unwrap(),
            told: "192.0.2.15".parse().unwrap(),
            sender: sender.map(|sender| sender.parse().unwrap()),
            subject,
            level: None,
            deepest_queue: None,
            hops: 0,
        }
    }

    #[test]
    fn a_qp_stands_at_its_own_side() {
        let qp = Qp::truncate(0x12);
        let sender = Some("192.0.2.1");
        let by_sender = ends(&gist(sender, Subject::SenderQp(qp))).unwrap();
        assert_eq!(
            by_sender.map(|end| end.to_string()),
            ["192.0.2.1 QP 0x12", "203.0.113.3"]
        );
        let receiver = "198.51.100.1".parse().unwrap();
        let by_receiver = ends(&gist(sender, Subject::ReceiverQp { receiver, qp })).unwrap();
        assert_eq!(
            by_receiver.map(|end| end.to_string()),
            ["192.0.2.1", "198.51.100.1 QP 0x12"]
        );
        assert_eq!(ends(&gist(None, Subject::FlowLabel(5))), None);
    }
}
