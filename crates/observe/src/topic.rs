//! The key of notifications about the same subject: a sender's QP or flow, and the kind.

use crate::data::FlowKey;
use fcn_wire::notification::Side;
use fcn_wire::{Kind, Notification, Qp, Subject};
use std::net::IpAddr;

/// What makes notifications belong to one row: who is to slow down, which of its QPs or flows, by which kind, and the
/// interface where they are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The sender, or who was told where the notification names none.
    sender: IpAddr,
    named: Named,
    kind: Kind,
    interface: u32,
}

/// What notifications name. A QP at the receiver means nothing without the receiver, so that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Named {
    SenderQp(Qp),
    ReceiverQp(IpAddr, Qp),
    /// A flow of that receiver's without its QP.
    Receiver(IpAddr),
    FlowLabel(u32),
}

/// What is to slow down, whichever kind tells it and wherever it is seen: kinds name a flow by its QP at the sender, its QP at
/// the receiver, or a flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aim {
    /// The flow, where it is known.
    Flow(FlowKey),
    /// What the notifications name, whatever kind and interface.
    Named(RowKey),
}

impl RowKey {
    /// The key of a notification; `interface` where interfaces are told apart.
    #[inline]
    #[must_use]
    pub fn new(notification: &Notification, interface: Option<u32>) -> Self {
        Self {
            sender: notification.sender.unwrap_or(notification.destination),
            named: match notification.subject {
                Subject::SenderQp(qp) => Named::SenderQp(qp),
                Subject::ReceiverQp { receiver, qp } => Named::ReceiverQp(receiver, qp),
                Subject::Flow { tuple, receiver_qp } => receiver_qp
                    .map_or(Named::Receiver(tuple.destination), |qp| {
                        Named::ReceiverQp(tuple.destination, qp)
                    }),
                Subject::FlowLabel(label) => Named::FlowLabel(label),
            },
            kind: notification.kind,
            interface: interface.unwrap_or(0),
        }
    }

    /// How it is told.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The data sender, where the notifications name it.
    #[must_use]
    pub fn sender(&self) -> Option<IpAddr> {
        self.flow_label().is_none().then_some(self.sender)
    }

    /// The sender, or who was told where the notifications name none.
    #[must_use]
    pub const fn destination_or_sender(&self) -> IpAddr {
        self.sender
    }

    /// The data receiver, where the notifications name it.
    #[must_use]
    pub const fn receiver(&self) -> Option<IpAddr> {
        match self.named {
            Named::ReceiverQp(receiver, _) | Named::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// The QP that the notifications name, and whose it is.
    #[must_use]
    pub const fn qp(&self) -> Option<(Qp, Side)> {
        match self.named {
            Named::SenderQp(qp) => Some((qp, Side::Sender)),
            Named::ReceiverQp(_, qp) => Some((qp, Side::Receiver)),
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
            Aim::Named(Self {
                kind: Kind::Cnp,
                interface: 0,
                ..*self
            })
        };
        flow.map_or_else(named, Aim::Flow)
    }

    /// The flow label that WAN FCNs name.
    #[must_use]
    pub const fn flow_label(&self) -> Option<u32> {
        match self.named {
            Named::FlowLabel(label) => Some(label),
            _ => None,
        }
    }

    /// The interface's number; 0 where they are not told apart.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.interface
    }
}
