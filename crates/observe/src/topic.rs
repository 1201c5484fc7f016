//! The key of notifications about the same subject: a sender's QP or flow, and the kind.

use crate::data::{FlowKey, words};
use fcn_wire::notification::Side;
use fcn_wire::{Kind, Notification, Qp, Subject};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What makes notifications belong to one row: who is to slow down, which of its QPs or flows, by which kind, and the
/// interface where they are told apart. Packed, as there may be many.
///
/// A QP at the receiver means nothing without the receiver, so that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The sender, or who was told where the notification names none.
    sender: [u64; 2],
    /// The receiver, or 0.
    receiver: [u64; 2],
    /// QP or flow label (24 bits), then the flags below, then the interface's number (32 bits).
    rest: u64,
}

/// What is to slow down, whichever kind tells it and wherever it is seen: kinds name a flow by its QP at the sender, its QP at
/// the receiver, or a flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aim {
    /// The flow, where it is known.
    Flow(FlowKey),
    /// What the notifications name, without kind and interface.
    Named(RowKey),
}

const KIND_AT: u32 = 24;
const SUBJECT_AT: u32 = 27;
const SENDER_V4: u64 = 1 << 29;
const RECEIVER_V4: u64 = 1 << 30;
const INTERFACE_AT: u32 = 32;

/// What sort of subject, in two bits of the key.
const SENDER_QP: u64 = 0;
const RECEIVER_QP: u64 = 1;
const NO_QP: u64 = 2;
const FLOW_LABEL: u64 = 3;

fn address([high, low]: [u64; 2], v4: bool) -> IpAddr {
    if v4 {
        Ipv4Addr::from_bits(low as u32).into()
    } else {
        Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).into()
    }
}

impl RowKey {
    /// The key of a notification; `interface` where interfaces are told apart.
    #[inline]
    #[must_use]
    pub fn new(notification: &Notification, interface: Option<u32>) -> Self {
        let sender = notification.sender.unwrap_or(notification.destination);
        let (subject, number, receiver) = match notification.subject {
            Subject::SenderQp(qp) => (SENDER_QP, qp.get(), None),
            Subject::ReceiverQp { receiver, qp } => (RECEIVER_QP, qp.get(), Some(receiver)),
            Subject::Flow { tuple, receiver_qp } => match receiver_qp {
                Some(qp) => (RECEIVER_QP, qp.get(), Some(tuple.destination)),
                None => (NO_QP, 0, Some(tuple.destination)),
            },
            Subject::FlowLabel(label) => (FLOW_LABEL, label & 0x00FF_FFFF, None),
        };
        let mut rest = u64::from(number)
            | (notification.kind as u64) << KIND_AT
            | subject << SUBJECT_AT
            | u64::from(interface.unwrap_or(0)) << INTERFACE_AT;
        if sender.is_ipv4() {
            rest |= SENDER_V4;
        }
        if receiver.is_some_and(|receiver| receiver.is_ipv4()) {
            rest |= RECEIVER_V4;
        }
        Self {
            sender: words(&sender),
            receiver: receiver.as_ref().map_or([0; 2], words),
            rest,
        }
    }

    const fn subject(&self) -> u64 {
        self.rest >> SUBJECT_AT & 3
    }

    const fn number(&self) -> u32 {
        (self.rest & 0x00FF_FFFF) as u32
    }

    /// How it is told.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let number = (self.rest >> KIND_AT & 7) as usize;
        Kind::ALL.get(number).copied().unwrap_or(Kind::Cnp)
    }

    /// The data sender, where the notifications name it.
    #[must_use]
    pub fn sender(&self) -> Option<IpAddr> {
        (self.subject() != FLOW_LABEL).then(|| self.destination_or_sender())
    }

    /// The sender, or who was told where the notifications name none.
    #[must_use]
    pub fn destination_or_sender(&self) -> IpAddr {
        address(self.sender, self.rest & SENDER_V4 != 0)
    }

    /// The data receiver, where the notifications name it.
    #[must_use]
    pub fn receiver(&self) -> Option<IpAddr> {
        let named = matches!(self.subject(), RECEIVER_QP | NO_QP);
        named.then(|| address(self.receiver, self.rest & RECEIVER_V4 != 0))
    }

    /// The QP that the notifications name, and whose it is.
    #[must_use]
    pub const fn qp(&self) -> Option<(Qp, Side)> {
        let qp = Qp::truncate(self.number());
        match self.subject() {
            SENDER_QP => Some((qp, Side::Sender)),
            RECEIVER_QP => Some((qp, Side::Receiver)),
            _ => None,
        }
    }

    /// The data flow that the notifications are about. `of_label` knows the flow that a flow label means, `of_sender` the one
    /// that a QP at its sender sends.
    pub fn flow(
        &self,
        of_label: impl FnOnce(u32) -> Option<FlowKey>,
        of_sender: impl FnOnce(IpAddr, Qp) -> Option<FlowKey>,
    ) -> Option<FlowKey> {
        if let Some(label) = self.flow_label() {
            return of_label(label);
        }
        let (qp, side) = self.qp()?;
        match side {
            Side::Sender => of_sender(self.sender()?, qp),
            Side::Receiver => Some(FlowKey {
                sender: self.sender()?,
                receiver: self.receiver()?,
                receiver_qp: qp,
            }),
        }
    }

    /// What is to slow down, where `flow` is the data flow that the notifications are about, as far as it is known.
    #[must_use]
    pub fn aim(&self, flow: Option<FlowKey>) -> Aim {
        let named = || {
            let rest = self.rest & !(7 << KIND_AT) & ((1 << INTERFACE_AT) - 1);
            Aim::Named(Self { rest, ..*self })
        };
        flow.map_or_else(named, Aim::Flow)
    }

    /// The flow label that WAN FCNs name.
    #[must_use]
    pub fn flow_label(&self) -> Option<u32> {
        (self.subject() == FLOW_LABEL).then(|| self.number())
    }

    /// The interface's number; 0 where they are not told apart.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        (self.rest >> INTERFACE_AT) as u32
    }
}
