//! The key of notifications about the same subject: a sender's QP or flow, and the kind.

use crate::data::FlowKey;
use fcn_wire::notification::Side;
use fcn_wire::{Kind, Notification, Qp, Subject};
use std::net::IpAddr;

/// Key of the notifications that share a row: the sender that is to slow down, its QP or flow, the
/// kind of notification, and the interface if interfaces are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The sender, or the destination if the notification names no sender.
    sender: IpAddr,
    named: Named,
    kind: Kind,
    interface: u32,
}

/// Subject named by a notification. A QP at the receiver is ambiguous without the receiver's
/// address, so the two go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Named {
    SenderQp(Qp),
    ReceiverQp(IpAddr, Qp),
    /// A flow to that receiver whose QP is unknown.
    Receiver(IpAddr),
    FlowLabel(u32),
}

/// Subject that is to slow down, regardless of the kind of notification and the capture point:
/// kinds name a flow by its QP at the sender, its QP at the receiver, or a flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The flow, if known.
    Flow(FlowKey),
    /// The subject that the notifications name, regardless of kind and interface.
    Named(RowKey),
}

impl RowKey {
    /// Returns the key of a notification; `interface` is given if interfaces are distinguished.
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

    /// Returns the kind of the notifications.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the data sender, if the notifications name it.
    #[must_use]
    pub fn sender(&self) -> Option<IpAddr> {
        self.flow_label().is_none().then_some(self.sender)
    }

    /// Returns the sender, or the destination if the notifications name no sender.
    #[must_use]
    pub const fn destination_or_sender(&self) -> IpAddr {
        self.sender
    }

    /// Returns the data receiver, if the notifications name it.
    #[must_use]
    pub const fn receiver(&self) -> Option<IpAddr> {
        match self.named {
            Named::ReceiverQp(receiver, _) | Named::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// Returns the QP that the notifications name, and the side that it belongs to.
    #[must_use]
    pub const fn qp(&self) -> Option<(Qp, Side)> {
        match self.named {
            Named::SenderQp(qp) => Some((qp, Side::Sender)),
            Named::ReceiverQp(_, qp) => Some((qp, Side::Receiver)),
            _ => None,
        }
    }

    /// Returns the data flow that the notifications are about. `of_label` looks up the flow of a
    /// flow label, `of_sender` the flow sent by a QP at its sender.
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

    /// Returns the subject that is to slow down; `flow` is the data flow that the notifications are
    /// about, if known.
    #[must_use]
    pub fn aim(&self, flow: Option<FlowKey>) -> Target {
        let named = || {
            Target::Named(Self {
                kind: Kind::Cnp,
                interface: 0,
                ..*self
            })
        };
        flow.map_or_else(named, Target::Flow)
    }

    /// Returns the flow label that WAN FCNs name.
    #[must_use]
    pub const fn flow_label(&self) -> Option<u32> {
        match self.named {
            Named::FlowLabel(label) => Some(label),
            _ => None,
        }
    }

    /// Returns the number of the interface; 0 if interfaces are not distinguished.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.interface
    }
}
