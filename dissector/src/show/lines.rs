//! Which lines of a statistic a notification counts in, and how many lines there may be.

use super::connection::{Notified, Record};
use crate::plan::ColumnText;
use fcn_wire::notification::{Origin, Subject};
use std::collections::{HashMap, HashSet};

/// Most congestion points, receivers, and QPs or flows that have a line of their own. Who forges addresses would
/// otherwise fill the memory; what is beyond counts in [`OTHERS`].
pub const MAX_LINES: usize = 1000;

/// The line of what has none of its own.
const OTHERS: &str = "others (beyond the first 1000)";

/// What lines are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// How it is said.
    Kind,
    /// Congestion point that says it.
    CongestionPoint,
    /// Who else says it: receiver, proxy node or ingress PE.
    Other,
    /// What is to slow down.
    Subject,
    /// Congestion level.
    Level,
    /// Who sends what cannot be read.
    Malformed,
}

impl Group {
    /// Every group, in the order of the statistic.
    pub const ALL: [Self; 6] = [
        Self::Kind,
        Self::CongestionPoint,
        Self::Other,
        Self::Subject,
        Self::Level,
        Self::Malformed,
    ];

    /// Its heading.
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

/// Heading of the average of the deepest queues on the paths.
pub const DEEPEST_QUEUE: &core::ffi::CStr = c"Deepest queue on the path";

/// What has a line already, of one statistic.
#[derive(Debug, Default)]
pub struct Listed(HashMap<Group, HashSet<String>>);

/// A line that a notification counts in.
#[derive(Clone, Copy, Debug)]
pub struct CountedIn {
    /// Its group.
    pub group: Group,
    /// Its text.
    pub text: ColumnText,
}

impl Listed {
    /// The lines that a packet counts in, one a group at most.
    pub fn lines(&mut self, record: &Record) -> [Option<CountedIn>; 4] {
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
            Some(self.line(Group::Subject, format_args!("{}", Slower(notified)))),
            gist.level
                .map(|level| self.line(Group::Level, format_args!("level {level}"))),
        ]
    }

    /// The line of that text, where it has one or gets one; else that of the others.
    fn line(&mut self, group: Group, text: core::fmt::Arguments<'_>) -> CountedIn {
        let own = ColumnText::new(text);
        let known = self.0.entry(group).or_default();
        let has_line = known.contains(own.as_str())
            || known.len() < MAX_LINES && known.insert(own.as_str().to_owned());
        let text = match has_line {
            true => own,
            false => ColumnText::new(format_args!("{OTHERS}")),
        };
        CountedIn { group, text }
    }
}

/// What is to slow down: one text for every kind of notification about a QP at the sender, where that is known; else what the
/// notification names.
struct Slower<'a>(&'a Notified);

impl core::fmt::Display for Slower<'_> {
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
            hops: 0,
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
    fn a_notification_counts_once_in_every_group_that_it_says_something_of() {
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
    fn lines_are_bounded_and_the_others_counted_together() {
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
        // Two kinds; as many congestion points as receivers, of the same addresses; QPs of both sides.
        assert_eq!(counts.len(), 2 + MAX_LINES + MAX_LINES + 1);
        assert_eq!(counts["::5"], 4);
        assert_eq!(counts[OTHERS], 2 * (500 + 500) + 2 * 2 * 1000);
        assert!(OTHERS.contains(&MAX_LINES.to_string()));
    }
}
