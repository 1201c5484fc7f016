//! The proxy node: turns congestion notifications of network nodes into CNPs that every RoCEv2 sender understands.
//!
//! It is told about flows of other transports too (draft-xiao-rtgwg-proxy-congestion-notification section 1). What their
//! senders are then told is the operator's choice; here they are counted \[choice\].

use crate::limiter::{Bucket, Interval, Limits};
use crate::outgoing::Outgoing;
use crate::prefix_map::is_allowed;
use crate::reasons::reasons;
use crate::sender_qps::{KnownBy, SenderQps};
use fcn_observe::data::FlowKey;
use fcn_observe::time::Time;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Claim, End, Findings, Frame, IcrcCheck, Notification, Qp, Rule, Severity, Subject};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP protocol number of UDP.
const UDP: u8 = 17;

/// The settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The proxy's IPv6 address.
    pub address: Ipv6Addr,
    /// Its IPv4 address, without which it cannot serve IPv4 senders.
    pub address4: Option<Ipv4Addr>,
    /// Whether it does anything. Default false.
    pub enabled: bool,
    /// How many notifications it reads, and how often it tells a sender about one flow.
    pub limits: Limits,
    /// Connections remembered, and as many flows whose acknowledgements are watched. Default 65 536.
    pub connections: usize,
    /// QPs at senders, by flow, that need not be learnt.
    pub qps: Vec<(FlowKey, Qp)>,
    /// Who may send notifications. Empty: anybody, which is right only where the domain's border filters.
    pub congestion_points: Vec<Prefix>,
}

impl Config {
    /// Everything at its default, for the proxy at `address`.
    #[must_use]
    pub fn new(address: Ipv6Addr) -> Self {
        Self {
            address,
            address4: None,
            enabled: false,
            limits: Limits::default(),
            connections: 65_536,
            qps: Vec::new(),
            congestion_points: Vec::new(),
        }
    }
}

reasons! {
    /// Why a frame did not become a CNP.
    Refused {
        /// The proxy is off.
        Disabled = disabled,
        /// Not a proxy notification.
        NotANotification = not_a_notification,
        /// Addressed to another node.
        NotForUs = not_for_us,
        /// Its source is not among the congestion points.
        NotAllowed = not_allowed,
        /// More notifications came than it reads.
        TooMany = too_many,
        /// It breaks a rule of the draft gravely, or contradicts the packet it quotes.
        Malformed = malformed,
        /// It is about a flow that is not RoCEv2.
        NotRoce = not_roce,
        /// It does not quote the packet as far as its DestQP.
        NoQp = no_qp,
        /// The QP at the sender is neither configured nor learnt.
        UnknownConnection = unknown_connection,
        /// The sender is IPv4, and the proxy has no IPv4 address.
        NoAddress = no_address,
        /// The last CNP of this flow was too recent.
        TooSoon = too_soon,
    }
    /// What a proxy has done and refused.
    {
        /// CNPs sent.
        cnps,
        /// Of these, those about a QP that was inferred from packets.
        inferred,
    }
}

/// A proxy node.
#[derive(Debug)]
pub struct Proxy {
    config: Config,
    /// The QPs at senders, learnt from what passes by.
    pub qps: SenderQps,
    read: Bucket,
    interval: Interval,
    counters: Counters,
}

impl Proxy {
    /// A proxy that has seen nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            qps: SenderQps::new(&config.qps, config.connections),
            read: Bucket::new(&config.limits),
            interval: Interval::new(config.limits.interval, config.limits.flows),
            counters: Counters::default(),
            config,
        }
    }

    /// The CNP to send for the notification in `frame`.
    ///
    /// It goes from the proxy's own address to the sender, about the sender's QP \[choice: how the proxy tells the sender
    /// is beyond the draft's scope\].
    ///
    /// # Errors
    /// Why there is none; each is counted.
    pub fn on_message(&mut self, now: Time, frame: &Frame<'_>) -> Result<Outgoing, Refused> {
        let answer = self.answer(now, frame);
        match answer {
            Ok(_) => self.counters.cnps += 1,
            Err(refused) => self.counters.count(refused),
        }
        answer
    }

    fn answer(&mut self, now: Time, frame: &Frame<'_>) -> Result<Outgoing, Refused> {
        if !self.config.enabled {
            return Err(Refused::Disabled);
        }
        let flow = self.subject(now, frame)?;
        let (qp, by) = self
            .qps
            .sender_qp(&flow)
            .ok_or(Refused::UnknownConnection)?;
        let source = match flow.sender {
            IpAddr::V6(_) => Some(self.config.address.into()),
            IpAddr::V4(_) => self.config.address4.map(IpAddr::V4),
        };
        let source = source.ok_or(Refused::NoAddress)?;
        if !self.interval.admit(now, flow) {
            return Err(Refused::TooSoon);
        }
        self.counters.inferred += u64::from(by == KnownBy::Packets);
        Ok(Outgoing::Cnp {
            source,
            destination: flow.sender,
            qp,
        })
    }

    /// The flow that the notification in `frame` is about, if it is to be believed.
    fn subject(&mut self, now: Time, frame: &Frame<'_>) -> Result<FlowKey, Refused> {
        let profile = frame.profile();
        let datagram = frame
            .datagram()
            .filter(|datagram| datagram.destination_port == profile.proxy_cn_port)
            .filter(|datagram| datagram.claim(profile) != Claim::Others)
            .ok_or(Refused::NotANotification)?;
        let destination = datagram.ip.destination;
        let is_own4 = self.config.address4.is_some_and(|own| destination == own);
        if destination != self.config.address && !is_own4 {
            return Err(Refused::NotForUs);
        }
        if !is_allowed(&self.config.congestion_points, datagram.ip.source) {
            return Err(Refused::NotAllowed);
        }
        if !self.read.admit(now) {
            return Err(Refused::TooMany);
        }
        let notification = Notification::from_frame(frame).ok_or(Refused::Malformed)?;
        let mut findings = Findings::new();
        frame.check(IcrcCheck::Off, &mut findings);
        let broken = findings.worst() >= Some(Severity::Error)
            || findings.has(Rule::ProxyCnTuple)
            || matches!(frame.end(), End::Malformed(_));
        let Subject::Flow { tuple, receiver_qp } = notification.subject else {
            return Err(Refused::NotANotification);
        };
        if broken {
            return Err(Refused::Malformed);
        }
        if tuple.protocol != UDP || tuple.destination_port != frame.profile().rocev2_port {
            return Err(Refused::NotRoce);
        }
        Ok(FlowKey {
            sender: tuple.source,
            receiver: tuple.destination,
            receiver_qp: receiver_qp.ok_or(Refused::NoQp)?,
        })
    }

    /// What it has done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
