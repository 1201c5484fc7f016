//! CNPs that translate: a proxy node or an ingress PE that was told of congestion sends the sender a CNP, which looks like
//! the receiver's (draft-xiao-rtgwg-proxy-congestion-notification section 4, draft-he-rtgwg-wan-fcn section 4.1).
//!
//! That one translates is inferred: it follows a notification about its flow, to the node that it comes from, or (an
//! ingress PE may speak in the receiver's name) with no CE mark in between that the receiver may have answered.

use crate::{Bounded, FlowKey};
use fcn_wire::{Gist, Kind, Origin};
use std::net::IpAddr;

/// How long a proxy or an ingress PE may take to translate a notification, in nanoseconds \[choice\]: they answer at once,
/// and the capture may have been made some way from them. A CNP that comes later is not taken for the translation.
pub const WITHIN: u64 = 10_000_000;

/// A notification that is not for the sender, but for a node that is to tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it was seen, in nanoseconds since the epoch.
    pub at: u64,
    /// Its frame.
    pub frame: u32,
    /// How it is said.
    pub kind: Kind,
    /// The node that it is sent to.
    pub told: IpAddr,
}

/// Who was asked to tell senders, and about which flows.
#[derive(Debug)]
pub struct Translations {
    flows: Bounded<FlowKey, Asked>,
    /// The nodes that were told, and how.
    nodes: Bounded<IpAddr, Kind>,
}

impl Translations {
    /// Remembers at most `limit` flows, and as many nodes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            flows: Bounded::new(limit),
            nodes: Bounded::new(limit),
        }
    }

    /// Takes in a notification, and the flow that it is about; CNPs and Fast CNPs ask nobody.
    #[inline]
    pub fn asked(&mut self, (at, frame): (u64, u32), gist: &Gist, flow: Option<FlowKey>) {
        if !matches!(gist.kind, Kind::ProxyCn | Kind::WanFcn) {
            return;
        }
        let (kind, told) = (gist.kind, gist.told);
        *self.nodes.get_or_insert_with(told, at, || kind) = kind;
        if let Some(flow) = flow {
            let asked = Asked {
                at,
                frame,
                kind,
                told,
            };
            *self.flows.get_or_insert_with(flow, at, || asked) = asked;
        }
    }

    /// Whether nobody was asked.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The notification that a CNP about `flow` at `at` translates. `marked` is when the last CE mark of the flow was seen
    /// before it.
    #[must_use]
    pub fn translated(
        &self,
        cnp: &Gist,
        flow: &FlowKey,
        at: u64,
        marked: Option<u64>,
    ) -> Option<Asked> {
        if cnp.kind != Kind::Cnp || self.is_empty() {
            return None;
        }
        let asked = *self.flows.get(flow)?;
        let in_time = (at.checked_sub(asked.at)).is_some_and(|delay| delay <= WITHIN);
        let by_node = cnp.notifier == asked.told;
        // With the receiver's address, the later cause is the likelier one.
        let for_receiver = asked.kind == Kind::WanFcn
            && cnp.notifier == flow.receiver
            && marked.is_none_or(|marked| marked <= asked.at);
        (in_time && (by_node || for_receiver)).then_some(asked)
    }

    /// Who a notification comes from, where that is somebody else than its bytes tell: a node that was told to translate,
    /// or who has just translated, as [`translated`](Self::translated) found.
    #[must_use]
    pub fn origin(&self, gist: &Gist, translated: Option<&Asked>) -> Origin {
        if gist.kind != Kind::Cnp {
            return gist.origin;
        }
        let by = (translated.map(|asked| asked.kind))
            .or_else(|| self.nodes.get(&gist.notifier).copied());
        match by {
            Some(Kind::ProxyCn) => Origin::Proxy,
            Some(Kind::WanFcn) => Origin::IngressPe,
            _ => gist.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{Qp, Subject};

    const PE: [u8; 4] = [10, 9, 0, 1];
    const FLOW: FlowKey = FlowKey {
        sender: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1)),
        receiver: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 2, 9)),
        receiver_qp: Qp::truncate(5),
    };

    fn gist(kind: Kind, notifier: IpAddr, told: IpAddr) -> Gist {
        Gist {
            kind,
            origin: Origin::Receiver,
            notifier,
            told,
            sender: Some(FLOW.sender),
            subject: Subject::SenderQp(Qp::truncate(9)),
            level: None,
            deepest_queue: None,
            hops: 0,
        }
    }

    /// Who a CNP from `notifier` comes from, so long after a notification of that kind to the PE.
    fn origin(kind: Kind, notifier: IpAddr, delay: u64, marked: Option<u64>) -> (bool, Origin) {
        let mut translations = Translations::new(4);
        let asked = gist(kind, [10, 8, 0, 1].into(), PE.into());
        translations.asked((1000, 3), &asked, Some(FLOW));
        let cnp = gist(Kind::Cnp, notifier, FLOW.sender);
        let translated = translations.translated(&cnp, &FLOW, 1000 + delay, marked);
        (
            translated.is_some(),
            translations.origin(&cnp, translated.as_ref()),
        )
    }

    #[test]
    fn who_translates_is_told_by_its_address_or_by_time() {
        let (pe, receiver) = (IpAddr::from(PE), FLOW.receiver);
        for (kind, by) in [
            (Kind::ProxyCn, Origin::Proxy),
            (Kind::WanFcn, Origin::IngressPe),
        ] {
            assert_eq!(origin(kind, pe, WITHIN, None), (true, by));
            // A node that translates is no receiver, whenever it speaks.
            assert_eq!(origin(kind, pe, WITHIN + 1, None), (false, by));
        }
        let of = |kind, delay, marked| origin(kind, receiver, delay, marked);
        assert_eq!(of(Kind::WanFcn, 5, Some(1000)), (true, Origin::IngressPe));
        assert_eq!(of(Kind::WanFcn, 5, Some(1001)), (false, Origin::Receiver));
        assert_eq!(
            of(Kind::WanFcn, WITHIN + 1, None),
            (false, Origin::Receiver)
        );
        assert_eq!(of(Kind::ProxyCn, 5, None), (false, Origin::Receiver));
    }

    #[test]
    fn notifications_to_the_sender_ask_nobody() {
        let mut translations = Translations::new(4);
        let fast = gist(Kind::FastCnp1, [10, 8, 0, 1].into(), PE.into());
        translations.asked((1, 1), &fast, Some(FLOW));
        assert!(translations.is_empty());
    }
}
