//! The congestion point: a switch that detects a deep queue, and marks packets or sends
//! notifications.
//!
//! Configuration and counters are in `config.rs`. The caller provides the depth of the queue, and
//! the random numbers.
//!
//! A packet that meets congestion is handled by the first of these that is enabled and applicable
//! \[choice: the drafts do not say how they combine\]:
//! 1. WAN FCN to the ingress PE, if a tunnel's label identifies the flow and its ECN field is 01 or
//!    10 (draft-he-rtgwg-wan-fcn section 4); the packet is not marked CE.
//! 2. Notification to the proxy node, if one is known for the sender
//!    (draft-xiao-rtgwg-proxy-congestion-notification section 5); the packet is not marked CE. A
//!    configured proxy takes precedence over one learnt from routing, and that over one named by
//!    the packet: the order follows who can write it, and anyone can write an option.
//! 3. Fast CNP to the sender (draft-xiao-rtgwg-rocev2-fast-cnp section 4). A sender that handles
//!    them gets one, and its packet MUST NOT be marked CE. A sender whose ability is unknown gets
//!    one, and its packet MAY be marked. The packets of a sender that does not handle them are
//!    marked.
//! 4. A plain CNP to the sender, as sent by switches on the market today, if the QP at the sender
//!    is known; the packet is not marked CE.
//! 5. ECN CE, if the packet is ECN-capable.
//!
//! A packet of any other transport is notified to the proxy, or marked.
//!
//! Notifications suppressed by a flow's own interval do not change the marking: the sender of a
//! flow that is notified too often knows already. If the rate of all flows is used up, the packet
//! is marked instead.

mod config;
#[cfg(test)]
mod tests;

pub use config::{Ability, CnpName, Config, Counters, Marking};

use crate::limiter::{Limiter, Suppressed};
use crate::outgoing::{DataPacketContext, OutgoingNotification};
use crate::prefix_map::{PrefixMap, is_allowed};
use crate::proxy_directory::ProxyDirectory;
use crate::sender_qps::SenderQps;
use fcn_observe::data::{DataPacket, Ecn, FlowKey};
use fcn_observe::time::Time;
use fcn_wire::ip::is_node_address;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::proxy_cn::FiveTuple;
use fcn_wire::{Frame, Profile};
use std::net::{IpAddr, Ipv6Addr};

/// Number of values of the caller's dice.
const DICE: f64 = (u32::MAX as f64) + 1.0;

/// Treatment of a data packet, and the notification that it causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// True if the packet met congestion.
    pub congested: bool,
    /// True if the ECN field of the outermost IP header is to be set to CE.
    pub mark_ce: bool,
    /// Notification to send.
    pub notify: Option<OutgoingNotification>,
}

/// A packet of a transport other than RoCEv2.
#[derive(Clone, Copy, Debug)]
pub struct OtherPacket {
    /// Five-tuple, which identifies the flow.
    pub tuple: FiveTuple,
    /// ECN field of the outermost IP header.
    pub ecn: Ecn,
    /// Address of the proxy node in the packet's Destination Options.
    pub proxy_option: Option<Ipv6Addr>,
}

/// Key by which the limits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Topic {
    Roce(FlowKey),
    Other(FiveTuple),
}

/// A congestion point.
#[derive(Debug)]
pub struct CongestionPoint {
    config: Config,
    senders: PrefixMap<Ability>,
    proxies: PrefixMap<IpAddr>,
    directory: ProxyDirectory,
    /// QPs at senders, learnt from passing packets.
    pub qps: SenderQps,
    limiter: Limiter<Topic>,
    counters: Counters,
}

impl CongestionPoint {
    /// Creates a node that has not processed any packet.
    #[must_use]
    pub fn new(config: Config, profile: Profile) -> Self {
        Self {
            senders: config.senders.iter().copied().collect(),
            proxies: config.proxies.iter().copied().collect(),
            directory: ProxyDirectory::new(config.directory, config.pnc_reading, profile),
            qps: SenderQps::new(&config.qps, config.connections),
            limiter: Limiter::new(config.limits),
            counters: Counters::default(),
            config,
        }
    }

    /// Decides about a data packet that joins an egress queue of `depth` octets, whose port has the
    /// thresholds `marking`. `dice` is uniformly random.
    pub fn on_packet(
        &mut self,
        now: Time,
        packet: &DataPacket<'_>,
        (depth, marking): (u64, &Marking),
        dice: u32,
    ) -> Verdict {
        if !self.is_congested((depth, marking), dice) {
            return Verdict::default();
        }
        self.directory.expire(now);
        let decided = self.decide(packet, (depth, marking));
        let verdict = self.verdict(now, Topic::Roce(packet.flow()), packet.ecn, decided);
        if let Some(OutgoingNotification::FastCnp { .. }) = verdict.notify {
            let context = DataPacketContext {
                trace: packet.trace,
                ..DataPacketContext::default()
            };
            self.counters.trace_left_out += u64::from(context.loses_trace());
        }
        verdict
    }

    /// Decides about a packet of another transport: its sender need not use RoCEv2 to have a proxy
    /// (draft-xiao-rtgwg-proxy-congestion-notification section 1).
    pub fn on_other_packet(
        &mut self,
        now: Time,
        packet: &OtherPacket,
        (depth, marking): (u64, &Marking),
        dice: u32,
    ) -> Verdict {
        if !self.is_congested((depth, marking), dice) {
            return Verdict::default();
        }
        self.directory.expire(now);
        let notify = if !is_node_address(packet.tuple.source) {
            self.counters.sender_invalid += 1;
            None
        } else if self.config.proxy {
            self.proxy_cn(packet.tuple, packet.proxy_option, (depth, marking))
        } else {
            None
        };
        let decided = (notify, notify.is_none());
        let verdict = self.verdict(now, Topic::Other(packet.tuple), packet.ecn, decided);
        self.counters.proxy_cns_other += u64::from(verdict.notify.is_some());
        verdict
    }

    /// Returns true if a packet that finds `depth` octets meets congestion; counts it.
    fn is_congested(&mut self, (depth, marking): (u64, &Marking), dice: u32) -> bool {
        self.counters.packets += 1;
        let probability = marking.probability(depth);
        let congested = f64::from(dice) < probability * DICE;
        self.counters.congested += u64::from(congested);
        congested
    }

    /// Returns the verdict on what was decided, within the limits and the packet's ECN field.
    fn verdict(
        &mut self,
        now: Time,
        topic: Topic,
        ecn: Ecn,
        (notify, mark): (Option<OutgoingNotification>, bool),
    ) -> Verdict {
        let admitted = notify.map(|outgoing| self.admit(now, topic, &outgoing));
        // If the rate of all flows together is used up, only a mark can inform the sender; the
        // draft forbids it only in addition to a Fast CNP. A flow's own interval needs no mark: its
        // sender was notified recently.
        let instead = admitted == Some(Err(Suppressed::Total));
        Verdict {
            congested: true,
            mark_ce: (mark || instead) && self.may_mark(ecn),
            notify: notify.filter(|_| admitted == Some(Ok(()))),
        }
    }

    /// Learns proxies from a routing message that passes by or is addressed to this node.
    pub fn on_transit(&mut self, now: Time, frame: &Frame<'_>) {
        self.directory.learn(now, frame);
    }

    /// Returns the directory of proxies learnt from routing.
    #[must_use]
    pub const fn directory(&self) -> &ProxyDirectory {
        &self.directory
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the notification to send if the limits allow it, and true if the packet is to be
    /// marked.
    fn decide(
        &mut self,
        packet: &DataPacket<'_>,
        queue: (u64, &Marking),
    ) -> (Option<OutgoingNotification>, bool) {
        if !is_node_address(packet.source) {
            self.counters.sender_invalid += 1;
            return (None, true);
        }
        if !is_node_address(packet.destination) {
            self.counters.receiver_invalid += 1;
            return (None, true);
        }
        if self.config.wan_fcn
            && let Some(fcn) = self.wan_fcn(packet, queue)
        {
            return (Some(fcn), false);
        }
        if self.config.proxy {
            let tuple = FiveTuple {
                source: packet.source,
                destination: packet.destination,
                protocol: next_header::UDP,
                source_port: packet.source_port,
                destination_port: packet.destination_port,
            };
            if let Some(notification) = self.proxy_cn(tuple, packet.proxy_option, queue) {
                return (Some(notification), false);
            }
        }
        if self.config.fast_cnp {
            return self.fast_cnp(packet);
        }
        if let Some(name) = self.config.cnp {
            let cnp = self.cnp(packet, name);
            return (cnp, cnp.is_none());
        }
        (None, true)
    }

    fn wan_fcn(
        &mut self,
        packet: &DataPacket<'_>,
        (depth, marking): (u64, &Marking),
    ) -> Option<OutgoingNotification> {
        let outer = packet.outer?;
        if !packet.ecn.is_ect() {
            self.counters.wan_not_capable += 1;
            return None;
        }
        if outer.flow_label == 0 {
            self.counters.wan_no_label += 1;
            return None;
        }
        let Some(ingress) = outer.ingress.or(self.config.ingress) else {
            self.counters.wan_no_ingress += 1;
            return None;
        };
        if !self.may_notify(ingress.into()) {
            return None;
        }
        let level = if self.config.wan_level {
            marking.wan_level(depth)
        } else {
            0
        };
        Some(OutgoingNotification::WanFcn {
            source: self.config.address,
            ingress,
            flow_label: outer.flow_label,
            level,
            copy_flow_label: self.config.copy_flow_label,
        })
    }

    fn proxy_cn(
        &mut self,
        tuple: FiveTuple,
        named: Option<Ipv6Addr>,
        (depth, marking): (u64, &Marking),
    ) -> Option<OutgoingNotification> {
        let Some(proxy) = self.proxy_for(tuple.source, named) else {
            self.counters.proxy_unknown += 1;
            return None;
        };
        let source = match proxy {
            IpAddr::V6(_) => Some(self.config.address.into()),
            IpAddr::V4(_) => self.config.address4.map(IpAddr::V4),
        };
        let Some(source) = source else {
            self.counters.proxy_no_source += 1;
            return None;
        };
        if !self.may_notify(proxy) {
            return None;
        }
        Some(OutgoingNotification::ProxyCn {
            source,
            proxy,
            tuple,
            level: marking.proxy_level(depth),
        })
    }

    /// Returns the proxy of `sender`, whose packet has `named` in its option.
    fn proxy_for(&mut self, sender: IpAddr, named: Option<Ipv6Addr>) -> Option<IpAddr> {
        if let Some((_, proxy)) = self.proxies.longest(sender) {
            return Some(*proxy);
        }
        let named = named
            .map(IpAddr::V6)
            .filter(|address| is_node_address(*address));
        for proxy in [self.directory.proxy_for(sender), named]
            .into_iter()
            .flatten()
        {
            if is_allowed(&self.config.allowed_proxies, proxy) {
                return Some(proxy);
            }
            self.counters.proxy_not_allowed += 1;
        }
        None
    }

    /// Returns true if `address` may be notified; counts it if not.
    fn may_notify(&mut self, address: IpAddr) -> bool {
        let may = is_allowed(&self.config.allowed_targets, address);
        self.counters.not_to_be_told += u64::from(!may);
        may
    }

    fn fast_cnp(&mut self, packet: &DataPacket<'_>) -> (Option<OutgoingNotification>, bool) {
        let (IpAddr::V6(sender), IpAddr::V6(receiver)) = (packet.source, packet.destination) else {
            self.counters.not_ipv6 += 1;
            return (None, true);
        };
        if !self.may_notify(packet.source) {
            return (None, true);
        }
        let ability = self.senders.longest(packet.source);
        let mark = match ability.map_or(Ability::Unknown, |(_, ability)| *ability) {
            Ability::Unable => {
                self.counters.sender_unable += 1;
                return (None, true);
            }
            Ability::Able => {
                self.counters.able += 1;
                false
            }
            Ability::Unknown => self.config.mark_unknown,
        };
        let fast_cnp = OutgoingNotification::FastCnp {
            source: self.config.address,
            destination: sender,
            original_destination: receiver,
            qp: packet.dest_qp,
        };
        (Some(fast_cnp), mark)
    }

    fn cnp(&mut self, packet: &DataPacket<'_>, name: CnpName) -> Option<OutgoingNotification> {
        if !self.may_notify(packet.source) {
            return None;
        }
        let Some((qp, _)) = self.qps.sender_qp(&packet.flow()) else {
            self.counters.cnp_unknown += 1;
            return None;
        };
        let source = match (name, packet.source) {
            (CnpName::Receiver, _) => Some(packet.destination),
            (CnpName::Own, IpAddr::V6(_)) => Some(self.config.address.into()),
            (CnpName::Own, IpAddr::V4(_)) => self.config.address4.map(IpAddr::V4),
        };
        self.counters.cnp_no_source += u64::from(source.is_none());
        Some(OutgoingNotification::Cnp {
            source: source?,
            destination: packet.source,
            qp,
        })
    }

    /// Returns true if a packet with this ECN field can be marked; counts the result.
    fn may_mark(&mut self, ecn: Ecn) -> bool {
        if !self.config.ecn {
            return false;
        }
        match ecn {
            Ecn::Ect0 | Ecn::Ect1 => self.counters.marked += 1,
            Ecn::NotCapable => self.counters.unmarked_not_capable += 1,
            Ecn::Ce => {}
        }
        ecn.is_ect()
    }

    /// Checks a notification against the limits, and counts the result.
    fn admit(
        &mut self,
        now: Time,
        topic: Topic,
        outgoing: &OutgoingNotification,
    ) -> Result<(), Suppressed> {
        let admitted = self.limiter.admit(now, topic);
        self.counters.flows_evicted = self.limiter.evicted();
        match (admitted, outgoing) {
            (Err(Suppressed::Flow), _) => self.counters.flow_limited += 1,
            (Err(Suppressed::Total), _) => self.counters.total_limited += 1,
            (Ok(()), OutgoingNotification::FastCnp { .. }) => self.counters.fast_cnps += 1,
            (Ok(()), OutgoingNotification::WanFcn { .. }) => self.counters.wan_fcns += 1,
            (Ok(()), OutgoingNotification::ProxyCn { .. }) => self.counters.proxy_cns += 1,
            (Ok(()), OutgoingNotification::Cnp { .. }) => self.counters.cnps += 1,
        }
        admitted
    }
}
