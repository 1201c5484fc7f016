//! CNPs that translate: a proxy node or an ingress PE that was notified of congestion sends the
//! sender a CNP, which looks like the receiver's (draft-xiao-rtgwg-proxy-congestion-notification
//! section 4, draft-he-rtgwg-wan-fcn section 4.1).
//!
//! A CNP's bytes do not show the node that generated it. The first of these rules that holds
//! decides:
//!
//! 1. It comes from a node that was notified of this very flow, at most [`WITHIN`] before, and that
//!    is not the flow's receiver: that node. If the CNP's flow is unknown, the sender has to agree.
//! 2. It comes from the receiver's address, and another node was notified of this very flow, at
//!    most [`WITHIN`] before: [ambiguous](Origin::Ambiguous), as that node may speak in the
//!    receiver's name. Time does not distinguish them: the receiver may answer a CE mark that was
//!    not captured. A node known to use its own address does not count. [Comparison](crate::origin)
//!    with other packets of the receiver may decide.
//! 3. It comes from another address than the receiver of the flow that it is about:
//!    [unknown](Origin::Unknown).
//! 4. Otherwise the origin that its bytes suggest: the receiver.
//!
//! The notification that a CNP translates is known only if a single one is pending: with several, a
//! node may still be at an older one, or have skipped it.
//!
//! Notifications to a node about other flows, or long ago, are no evidence.

use crate::{Bounded, FlowKey};
use fcn_wire::{Kind, Notification, Origin, Subject};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Maximum time from a notification to the CNP that translates it, or from a CE mark to the CNP
/// that answers it, in nanoseconds \[choice\]: nodes answer at once, and the capture may have been
/// made at some distance from them. A later CNP does not count as the answer.
pub const WITHIN: u64 = 10_000_000;
/// Maximum number of pending notifications about one flow, the latest ones: at intervals of 50 µs,
/// those of 400 µs.
const WAITING: usize = 8;
/// Number of CNPs whose copies at other capture points are recognised.
const KNOWN_AGAIN: usize = 1 << 12;

/// A notification that is addressed not to the sender, but to a node that is to notify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time of capture, in nanoseconds since the epoch.
    pub at: u64,
    /// Its frame number.
    pub frame: u32,
    /// Its kind.
    pub kind: Kind,
    /// The node that it is sent to.
    pub node: IpAddr,
    is_translated: bool,
}

impl Request {
    /// Returns true if it may have led to a CNP at `at`.
    fn counts_at(&self, at: u64) -> bool {
        at.checked_sub(self.at).is_some_and(|delay| delay <= WITHIN)
    }

    /// Returns the role of its node.
    #[must_use]
    pub const fn translator(&self) -> Origin {
        match self.kind {
            Kind::WanFcn => Origin::IngressPe,
            _ => Origin::Proxy,
        }
    }
}

/// Source of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// Its origin.
    pub origin: Origin,
    /// The notification that it translates, or the newest candidate.
    pub translates: Option<Request>,
    /// True if it surely translates that one.
    pub is_translation: bool,
    /// True if it may answer earlier CE marks of its flow.
    pub answers: bool,
}

/// State of one flow.
#[derive(Debug, Default)]
struct FlowState {
    /// Oldest first.
    requests: VecDeque<Request>,
    /// A node that translates under its own address, so not in the receiver's name.
    own: Option<IpAddr>,
}

/// The requests to notify senders, by node and flow.
#[derive(Debug)]
pub struct Translations {
    flows: Bounded<FlowKey, FlowState>,
    /// The last notification to a node about a sender; true if its flow is known.
    nodes: Bounded<(IpAddr, IpAddr), (Request, bool)>,
    /// Attributions of CNPs that differ from the one by bytes, by frame.
    attributions: Bounded<u64, Attribution>,
}

impl Translations {
    /// Returns one that remembers at most `limit` flows, and as many pairs of node and sender.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Bounded::new(limit),
            nodes: Bounded::new(limit),
            attributions: Bounded::new(limit.min(KNOWN_AGAIN)),
        }
    }

    /// Processes the first sighting of a notification, with the flow that it is about. CNPs and
    /// Fast CNPs request nothing, and a flow's own receiver translates nothing.
    #[inline]
    pub fn request(
        &mut self,
        (at, frame): (u64, u32),
        notification: &Notification,
        flow: Option<&FlowKey>,
    ) {
        if !matches!(notification.kind, Kind::ProxyCn | Kind::WanFcn) {
            return;
        }
        let receiver = flow
            .map(|flow| flow.receiver)
            .or(notification.subject.receiver());
        let sender = flow.map(|flow| flow.sender).or(notification.sender);
        let Some(sender) = sender.filter(|_| receiver != Some(notification.destination)) else {
            return;
        };
        let request = Request {
            at,
            frame,
            kind: notification.kind,
            node: notification.destination,
            is_translated: false,
        };
        // A flow inferred from its addresses and port is not exactly identified.
        let names_no_qp = matches!(
            notification.subject,
            Subject::Flow {
                receiver_qp: None,
                ..
            }
        );
        let flow = flow.filter(|_| !names_no_qp);
        let last = (request, flow.is_some());
        *(self.nodes).get_or_insert_with((notification.destination, sender), at, || last) = last;
        if let Some(flow) = flow {
            let state = self.flows.get_or_insert_with(*flow, at, FlowState::default);
            if state.requests.len() == WAITING {
                state.requests.pop_front();
            }
            state.requests.push_back(request);
        }
    }

    /// Returns true if there was no request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the source of a notification in `frame`, captured at `at`. `flow` is the flow that
    /// it is about, and `copy_of` the frame of its first sighting if this is a copy.
    pub fn attribute(
        &mut self,
        (at, frame): (u64, u32),
        notification: &Notification,
        flow: Option<&FlowKey>,
        copy_of: Option<u32>,
    ) -> Attribution {
        let by_bytes = Attribution {
            origin: notification.origin,
            translates: None,
            is_translation: false,
            answers: false,
        };
        if notification.kind != Kind::Cnp {
            return by_bytes;
        }
        let in_name = flow.filter(|flow| flow.receiver == notification.notifier);
        let by_bytes = Attribution {
            origin: match flow {
                Some(_) if in_name.is_none() => Origin::Unknown,
                _ => by_bytes.origin,
            },
            answers: in_name.is_some(),
            ..by_bytes
        };
        if let Some(first) = copy_of {
            let first = self.attributions.get(&u64::from(first)).copied();
            return Attribution {
                answers: false,
                ..first.unwrap_or(by_bytes)
            };
        }
        if self.is_empty() {
            return by_bytes;
        }
        let state = flow.and_then(|flow| self.flows.get_mut(flow));
        let attribution = if in_name.is_some() {
            state.and_then(|state| {
                Some(Attribution {
                    origin: Origin::Ambiguous,
                    translates: Some(state.in_the_receivers_name(at)?),
                    ..by_bytes
                })
            })
        } else {
            state
                .and_then(|state| state.by_address(at, notification.notifier))
                .or_else(|| {
                    let (request, is_of_flow) = self
                        .nodes
                        .get(&(notification.notifier, notification.destination))?;
                    let agrees = flow.is_none() || !is_of_flow;
                    (agrees && request.counts_at(at)).then(|| Attribution {
                        origin: request.translator(),
                        ..by_bytes
                    })
                })
        };
        if let Some(attribution) = attribution {
            *(self.attributions).get_or_insert_with(frame.into(), at, || attribution) = attribution;
        }
        attribution.unwrap_or(by_bytes)
    }
}

impl FlowState {
    /// Returns the pending notifications that may have led to a CNP at `at`, the newest first.
    fn waiting(
        &mut self,
        at: u64,
        mut fits: impl FnMut(&Request) -> bool,
    ) -> impl Iterator<Item = &mut Request> {
        (self.requests.iter_mut().rev())
            .filter(move |request| !request.is_translated && request.counts_at(at) && fits(request))
    }

    /// Attributes a CNP from another address than the receiver's.
    fn by_address(&mut self, at: u64, node: IpAddr) -> Option<Attribution> {
        let by_node = |request: &Request| request.node == node;
        let last = (self.requests.iter().rev())
            .find(|request| by_node(request) && request.counts_at(at))?;
        let origin = last.translator();
        self.own = Some(node);
        let mut waiting = self.waiting(at, by_node);
        let newest = waiting.next();
        let is_translation = newest.is_some() && waiting.next().is_none();
        let translates = newest.map(|newest| {
            newest.is_translated = is_translation;
            *newest
        });
        Some(Attribution {
            origin,
            translates,
            is_translation,
            answers: false,
        })
    }

    /// Returns the request that a CNP from the receiver's address may translate.
    fn in_the_receivers_name(&mut self, at: u64) -> Option<Request> {
        let own = self.own;
        (self
            .waiting(at, move |request| own != Some(request.node))
            .next())
        .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Qp;
    use proptest::prelude::*;

    const PE: [u8; 4] = [10, 9, 0, 1];
    const FLOW: FlowKey = FlowKey {
        sender: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1)),
        receiver: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 2, 9)),
        receiver_qp: Qp::truncate(5),
    };
    const BYTES: (Origin, Option<u32>, bool) = (Origin::Receiver, None, false);
    const UNKNOWN: (Origin, Option<u32>, bool) = (Origin::Unknown, None, false);

    fn notification(kind: Kind, notifier: IpAddr, destination: IpAddr) -> Notification {
        Notification {
            kind,
            origin: Origin::Receiver,
            notifier,
            destination,
            sender: (kind != Kind::WanFcn).then_some(FLOW.sender),
            subject: Subject::SenderQp(Qp::truncate(9)),
            level: None,
            deepest_queue: None,
            hops: None,
        }
    }

    /// One flow, and the tables.
    struct Flow {
        tables: Translations,
        frame: u32,
    }

    impl Flow {
        fn new() -> Self {
            Self {
                tables: Translations::new(4),
                frame: 0,
            }
        }

        /// Notifies the PE or another node; returns the frame.
        fn tell(&mut self, kind: Kind, destination: impl Into<IpAddr>, at: u64) -> u32 {
            self.frame += 1;
            let fcn = notification(kind, [10, 8, 0, 1].into(), destination.into());
            self.tables.request((at, self.frame), &fcn, Some(&FLOW));
            self.frame
        }

        fn say(&mut self, from: impl Into<IpAddr>, at: u64, flow: Option<&FlowKey>) -> Attribution {
            self.frame += 1;
            let cnp = notification(Kind::Cnp, from.into(), FLOW.sender);
            (self.tables).attribute((at, self.frame), &cnp, flow, None)
        }

        /// Returns the origin of a CNP, the frame that it translates, and true if it surely does.
        fn cnp(&mut self, from: impl Into<IpAddr>, at: u64) -> (Origin, Option<u32>, bool) {
            let attribution = self.say(from, at, Some(&FLOW));
            (
                attribution.origin,
                attribution.translates.map(|request| request.frame),
                attribution.is_translation,
            )
        }
    }

    const KINDS: [(Kind, Origin); 2] = [
        (Kind::ProxyCn, Origin::Proxy),
        (Kind::WanFcn, Origin::IngressPe),
    ];

    #[test]
    fn each_notification_is_translated_once_and_in_time() {
        for (kind, by) in KINDS {
            let mut flow = Flow::new();
            assert_eq!(flow.cnp(PE, 999), UNKNOWN, "before");
            let first = flow.tell(kind, PE, 1000);
            assert_eq!(flow.cnp(PE, 1100), (by, Some(first), true));
            let second = flow.tell(kind, PE, 2000);
            assert_eq!(flow.cnp(PE, 2200), (by, Some(second), true));
            // The address still identifies it.
            assert_eq!(flow.cnp(PE, 2300), (by, None, false));
            // It may still be at the older one, or have skipped it.
            flow.tell(kind, PE, 3000);
            let newest = flow.tell(kind, PE, 3100);
            assert_eq!(flow.cnp(PE, 3200), (by, Some(newest), false));
            assert_eq!(flow.cnp(PE, 3101 + WITHIN), UNKNOWN, "too late");
        }
    }

    #[test]
    fn a_cnp_in_the_receivers_name_is_ambiguous() {
        for (kind, _) in KINDS {
            let mut flow = Flow::new();
            assert_eq!(flow.cnp(FLOW.receiver, 999), BYTES);
            flow.tell(kind, PE, 1000);
            let newest = flow.tell(kind, PE, 2000);
            // Any number of CNPs: each of them may be the translation.
            for at in [2001, 2002, 2000 + WITHIN] {
                let ambiguous = (Origin::Ambiguous, Some(newest), false);
                assert_eq!(flow.cnp(FLOW.receiver, at), ambiguous);
            }
            assert_eq!(flow.cnp(FLOW.receiver, 2001 + WITHIN), BYTES, "too late");
            // A node that speaks for itself does not speak in the receiver's name.
            flow.tell(kind, PE, 3000 + WITHIN);
            flow.cnp(PE, 3001 + WITHIN);
            flow.tell(kind, PE, 4000 + WITHIN);
            assert_eq!(flow.cnp(FLOW.receiver, 4001 + WITHIN), BYTES);
        }
    }

    #[test]
    fn notifications_about_other_flows_are_no_evidence() {
        for (kind, by) in KINDS {
            let mut flow = Flow::new();
            flow.tell(kind, PE, 1000);
            let other = FlowKey {
                receiver_qp: Qp::truncate(6),
                ..FLOW
            };
            assert_eq!(flow.say(PE, 1001, Some(&other)).origin, Origin::Unknown);
            // A CNP whose flow is unknown: address and sender agree.
            assert_eq!(flow.say(PE, 1002, None).origin, by);
            assert_eq!(flow.say(PE, 1001 + WITHIN, None).origin, Origin::Receiver);
            let elsewhere = notification(Kind::Cnp, PE.into(), [10, 0, 1, 7].into());
            let attribution = flow.tables.attribute((1002, 9), &elsewhere, None, None);
            assert_eq!(attribution.origin, Origin::Receiver);
            // A notified receiver is still the receiver.
            let mut flow = Flow::new();
            flow.tell(kind, FLOW.receiver, 1000);
            assert_eq!(flow.cnp(FLOW.receiver, 1001), BYTES);
            assert_eq!(flow.say(FLOW.receiver, 1001, None).origin, Origin::Receiver);
        }
        // An FCN about an unknown label.
        let mut tables = Translations::new(4);
        let fcn = notification(Kind::WanFcn, [10, 8, 0, 1].into(), PE.into());
        tables.request((1, 1), &fcn, None);
        let fast = notification(Kind::FastCnp1, [10, 8, 0, 1].into(), PE.into());
        tables.request((1, 1), &fast, Some(&FLOW));
        assert!(tables.is_empty());
    }

    #[test]
    fn a_copy_has_the_attribution_of_the_first() {
        let mut flow = Flow::new();
        flow.tell(Kind::WanFcn, PE, 1000);
        let first = flow.say(FLOW.receiver, 1001, Some(&FLOW));
        let cnp = notification(Kind::Cnp, FLOW.receiver, FLOW.sender);
        let mut copy = |of| {
            let seen = (1002, 10);
            (flow.tables).attribute(seen, &cnp, Some(&FLOW), Some(of))
        };
        let answers = false;
        assert_eq!(copy(2), Attribution { answers, ..first });
        assert_eq!((copy(3).origin, copy(3).answers), (Origin::Receiver, false));
        // From a node that was not notified.
        let cnp = notification(Kind::Cnp, PE.into(), FLOW.sender);
        for copy_of in [None, Some(4)] {
            let seen = (1003, 11);
            let attribution = (flow.tables).attribute(seen, &cnp, Some(&FLOW), copy_of);
            let by = attribution.origin;
            assert_eq!(
                by,
                [Origin::IngressPe, Origin::Unknown][usize::from(copy_of.is_some())]
            );
        }
    }

    proptest! {
        /// No more CNPs surely are translations than there were notifications, and memory is
        /// bounded.
        #[test]
        fn translations_do_not_outnumber_notifications(
            acts in proptest::collection::vec((0u8..4, 0u64..WITHIN, any::<bool>()), 1..200),
        ) {
            let mut flow = Flow::new();
            let (mut requested, mut translated) = (0, 0);
            let mut at = 0;
            for (act, after, is_wan) in acts {
                at += after / 4;
                match act {
                    0 => {
                        flow.tell(if is_wan { Kind::WanFcn } else { Kind::ProxyCn }, PE, at);
                        requested += 1;
                    }
                    1 => {
                        let origin = flow.cnp(FLOW.receiver, at).0;
                        prop_assert!([Origin::Receiver, Origin::Ambiguous].contains(&origin));
                    }
                    _ => {
                        translated += usize::from(flow.cnp(PE, at).2);
                        prop_assert!(translated <= requested);
                    }
                }
            }
            prop_assert!(flow.tables.flows.iter().all(|(_, state)| state.requests.len() <= WAITING));
        }
    }
}
