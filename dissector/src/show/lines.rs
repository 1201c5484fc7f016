//! Lines of the statistics that a notification is counted in, and their limits.

use super::connection::{Notified, Record};
use crate::plan::ColumnText;
use fcn_wire::notification::{Origin, Subject};
use std::collections::{HashMap, HashSet};

/// Maximum number of congestion points, receivers, and QPs or flows that have a line of their own.
/// Forged addresses would otherwise fill the memory; the rest are counted in [`OTHERS`].
pub const MAX_LINES: usize = 1000;

/// Line for all that have none of their own.
const OTHERS: &str = "others (beyond the first 1000)";

/// Groups of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Kind of notification.
    Kind,
    /// Congestion point that sent the notification.
    CongestionPoint,
    /// Any other notifier: receiver, proxy node or ingress PE.
    Other,
    /// QP or flow that has to slow down.
    Subject,
    /// Congestion level.
    Level,
    /// Sender of an unreadable message.
    Malformed,
}

impl Group {
    /// All groups, in the order of the statistics.
    pub const ALL: [Self; 6] = [
        Self::Kind,
        Self::CongestionPoint,
        Self::Other,
        Self::Subject,
        Self::Level,
        Self::Malformed,
    ];

    /// Returns its heading.
    pub const fn heading(self) -> &'static core::ffi::CStr {
        match self {
            Self::Kind => c"Notifications by kind",
            Self::CongestionPoint => c"By congestion point",
            Self::Other => c"By other notifier",
            Self::Subject => c"By QP or flow",
            Self::Level => c"By congestion level",
            Self::Malformed => c"Malformed, by sender",
        }
    }
}

/// Heading for the average of the deepest queues on the paths.
pub const DEEPEST_QUEUE: &core::ffi::CStr = c"Deepest queue on the path";

/// Texts that have a line already in one statistics tree.
#[derive(Debug, Default)]
pub struct Listed(HashMap<Group, HashSet<String>>);

/// A line that a notification is counted in.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Group of the line.
    pub group: Group,
    /// Text of the line.
    pub text: ColumnText,
}

impl Listed {
    /// Returns the lines that a packet is counted in, at most one per group.
    pub fn lines(&mut self, record: &Record) -> [Option<Line>; 4] {
        let notified = match record {
            Record::Notification(notified) => notified,
            Record::Malformed(broken) => {
                let by = self.line(Group::Malformed, format_args!("{}", broken.notifier));
                return [Some(by), None, None, None];
            }
        };
        let gist = &notified.gist;
        let group = match gist.origin {
            Origin::Switch => Group::CongestionPoint,
            _ => Group::Other,
        };
        [
            Some(self.line(Group::Kind, format_args!("{}", gist.kind.name()))),
            Some(self.line(group, format_args!("{}", gist.notifier))),
            Some(self.line(Group::Subject, format_args!("{}", SlowedSubject(notified)))),
            gist.level
                .map(|level| self.line(Group::Level, format_args!("level {level}"))),
        ]
    }

    /// Returns the line with this text, if it has or gets one, otherwise the line of the others.
    fn line(&mut self, group: Group, text: core::fmt::Arguments<'_>) -> Line {
        let own = ColumnText::new(text);
        let known = self.0.entry(group).or_default();
        let has_line = known.contains(own.as_str())
            || known.len() < MAX_LINES && known.insert(own.as_str().to_owned());
        let text = match has_line {
            true => own,
            false => ColumnText::new(format_args!("{OTHERS}")),
        };
        Line { group, text }
    }
}

/// The QP or flow that has to slow down: one text for every kind of notification about a QP at the
/// sender, if that is known; otherwise the subject that the notification names.
struct SlowedSubject<'a>(&'a Notified);

impl core::fmt::Display for SlowedSubject<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(notified) = self;
        if let (Some(sender), Some(qp)) = (notified.sender(), notified.sender_qp) {
            return write!(f, "{sender} QP {qp}");
        }
        let subject = notified.gist.subject;
        let sender = notified.gist.sender.unwrap_or(notified.gist.destination);
        match (subject.qp(), subject.receiver(), subject) {
            (Some((_, qp)), Some(receiver), _) => write!(f, "{sender}, QP {qp} at {receiver}"),
            (Some((_, qp)), None, _) => write!(f, "{sender} QP {qp}"),
            (None, Some(receiver), _) => write!(f, "{sender}, flow to {receiver}"),
            (None, None, Subject::FlowLabel(label)) => {
                write!(f, "{sender}, flow label {label:#07x}")
            }
            (None, None, _) => write!(f, "{sender}, no QP or flow"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Qp;
    use fcn_wire::notification::{Kind, Notification};
    use std::collections::BTreeMap;
    use std::net::Ipv6Addr;

    fn gist(kind: Kind, notifier: u128, subject: Subject) -> Notification {
        Notification {
            kind,
            origin: match subject {
                Subject::SenderQp(_) => Origin::Receiver,
                _ => Origin::Switch,
            },
            notifier: Ipv6Addr::from(notifier).into(),
            destination: Ipv6Addr::from(7).into(),
            sender: Some(Ipv6Addr::from(7).into()),
            subject,
            level: (kind == Kind::ProxyCn).then_some(3),
            deepest_queue: None,
            hops: None,
        }
    }

    fn texts(known: &mut Listed, gist: &Notification) -> Vec<String> {
        known
            .lines(&Record::Notification(Notified::alone(*gist)))
            .iter()
            .flatten()
            .map(|line| line.text.as_str().to_owned())
            .collect()
    }

    #[test]
    fn a_notification_counts_once_in_every_group_that_applies() {
        let mut known = Listed::default();
        let cnp = gist(Kind::Cnp, 2, Subject::SenderQp(Qp::truncate(0x11)));
        assert_eq!(texts(&mut known, &cnp), ["CNP", "::2", "::7 QP 0x11"]);
        let subject = Subject::ReceiverQp {
            receiver: Ipv6Addr::from(2).into(),
            qp: Qp::truncate(0x12),
        };
        let fast = gist(Kind::FastCnp1, 2, subject);
        assert_eq!(
            texts(&mut known, &fast),
            ["Fast CNP (option 1)", "::2", "::7, QP 0x12 at ::2"]
        );
        let wan = gist(Kind::ProxyCn, 3, Subject::FlowLabel(0x12));
        assert_eq!(
            texts(&mut known, &wan),
            [
                "Proxy notification",
                "::3",
                "::7, flow label 0x00012",
                "level 3"
            ]
        );
        let groups: Vec<Group> = known
            .lines(&Record::Notification(Notified::alone(wan)))
            .iter()
            .flatten()
            .map(|l| l.group)
            .collect();
        assert_eq!(
            groups,
            [
                Group::Kind,
                Group::CongestionPoint,
                Group::Subject,
                Group::Level
            ]
        );
    }

    #[test]
    fn lines_are_bounded_and_the_rest_counted_together() {
        let mut known = Listed::default();
        let mut counts = BTreeMap::new();
        for round in 0..2u128 {
            for i in 0..(MAX_LINES as u128 + 500) {
                let qp = Qp::truncate(u32::try_from(i).unwrap());
                for notification in [
                    gist(Kind::Cnp, i, Subject::SenderQp(qp)),
                    gist(
                        Kind::FastCnp1,
                        i,
                        Subject::ReceiverQp {
                            receiver: Ipv6Addr::from(2).into(),
                            qp,
                        },
                    ),
                ] {
                    for text in texts(&mut known, &notification) {
                        *counts.entry(text).or_insert(0u128) += 1;
                    }
                }
            }
            assert_eq!(counts["CNP"], (round + 1) * 1500);
        }
        // Two kinds; as many congestion points as receivers, with the same addresses; QPs of both
        // ends.
        assert_eq!(counts.len(), 2 + MAX_LINES + MAX_LINES + 1);
        assert_eq!(counts["::5"], 4);
        assert_eq!(counts[OTHERS], 2 * (500 + 500) + 2 * 2 * 1000);
        assert!(OTHERS.contains(&MAX_LINES.to_string()));
    }
}
