//! The proxy node: translates congestion notifications of network nodes into CNPs that every RoCEv2
//! sender understands.
//!
//! It is also notified about flows of other transports
//! (draft-xiao-rtgwg-proxy-congestion-notification section 1). Informing their senders is the
//! operator's choice; here they are counted \[choice\].

use crate::limiter::{Bucket, Interval, Limits};
use crate::outgoing::OutgoingNotification;
use crate::prefix_map::is_allowed;
use crate::reasons::reasons;
use crate::sender_qps::{KnownBy, SenderQps};
use fcn_observe::data::FlowKey;
use fcn_observe::time::Time;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Claim, End, Findings, Frame, IcrcCheck, Notification, Qp, Rule, Severity, Subject};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// IPv6 address of the proxy.
    pub address: Ipv6Addr,
    /// IPv4 address of the proxy, without which it cannot serve IPv4 senders.
    pub address4: Option<Ipv4Addr>,
    /// Enables the proxy. Default false.
    pub enabled: bool,
    /// Limits on notifications processed, and on CNPs to a sender about one flow.
    pub limits: Limits,
    /// Maximum number of connections remembered, and of flows whose acknowledgements are tracked.
    /// Default 65 536.
    pub connections: usize,
    /// QPs at senders, by flow, that need not be learnt.
    pub qps: Vec<(FlowKey, Qp)>,
    /// Nodes that may send notifications. Empty: any, which is only safe if the domain's border
    /// filters.
    pub congestion_points: Vec<Prefix>,
}

impl Config {
    /// Creates the default configuration for the proxy at `address`.
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
    /// Reason why a frame did not become a CNP.
    Refused {
        /// The proxy is disabled.
        Disabled = disabled,
        /// The frame is not a proxy notification.
        NotANotification = not_a_notification,
        /// The notification is addressed to another node.
        NotForUs = not_for_us,
        /// The source is not among the congestion points.
        NotAllowed = not_allowed,
        /// The limit on notifications is exceeded.
        TooMany = too_many,
        /// The notification violates a rule of the draft with severity error, or contradicts the
        /// packet that it quotes.
        Malformed = malformed,
        /// The notification is about a flow that is not RoCEv2.
        NotRoce = not_roce,
        /// The quote of the packet ends before its DestQP.
        NoQp = no_qp,
        /// The QP at the sender is neither configured nor learnt.
        UnknownConnection = unknown_connection,
        /// The sender is IPv4, and the proxy has no IPv4 address.
        NoAddress = no_address,
        /// The last CNP of the flow was too recent.
        TooSoon = too_soon,
    }
    /// Counters of a proxy: actions and refusals.
    {
        /// CNPs sent.
        cnps,
        /// CNPs about a QP that was inferred from packets.
        inferred,
    }
}

/// A proxy node.
#[derive(Debug)]
pub struct Proxy {
    config: Config,
    /// QPs at senders, learnt from passing packets.
    pub qps: SenderQps,
    read: Bucket,
    interval: Interval,
    counters: Counters,
}

impl Proxy {
    /// Creates a proxy that has not processed any packet.
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

    /// Returns the CNP to send for the notification in `frame`.
    ///
    /// It is sent from the proxy's own address to the sender, about the sender's QP \[choice: how
    /// the proxy informs the sender is beyond the draft's scope\].
    ///
    /// # Errors
    /// The reason why there is none; each is counted.
    pub fn on_message(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
    ) -> Result<OutgoingNotification, Refused> {
        let answer = self.answer(now, frame);
        match answer {
            Ok(_) => self.counters.cnps += 1,
            Err(refused) => self.counters.count(refused),
        }
        answer
    }

    fn answer(&mut self, now: Time, frame: &Frame<'_>) -> Result<OutgoingNotification, Refused> {
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
        Ok(OutgoingNotification::Cnp {
            source,
            destination: flow.sender,
            qp,
        })
    }

    /// Returns the flow that the notification in `frame` is about, if the notification is
    /// acceptable.
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
        if tuple.protocol != next_header::UDP
            || tuple.destination_port != frame.profile().rocev2_port
        {
            return Err(Refused::NotRoce);
        }
        Ok(FlowKey {
            sender: tuple.source,
            receiver: tuple.destination,
            receiver_qp: receiver_qp.ok_or(Refused::NoQp)?,
        })
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
