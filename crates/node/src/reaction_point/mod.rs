//! The reaction point: a sender that slows down the flow named by a CNP or Fast CNP, or moves it to
//! a path around the congested switch (draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5).
//!
//! A plain CNP names the sender's own QP, a Fast CNP the receiver and its QP. The flow's
//! [`Controller`] decides about its rate and window: `dcqcn.rs`, `telemetry.rs`, or one of the
//! caller's; `detour.rs` tries another path first. `hpcc.rs`, `swift.rs` and `timely.rs` go by
//! acknowledgements instead.

mod control;
mod controller;
pub mod dcqcn;
pub mod detour;
pub mod hpcc;
pub mod swift;
pub mod telemetry;
pub mod timely;

use crate::reasons::reasons;
pub use control::{Control, Custom};
pub use controller::{Ack, Answer, Controller, Notice};
use core::time::Duration;
use detour::Detour;
use fcn_observe::access;
use fcn_observe::time::Time;
use fcn_wire::icrc::Verdict;
use fcn_wire::ioam::Trace;
use fcn_wire::message::FastCnpMessage;
use fcn_wire::pnc::Prefix;
use fcn_wire::{End, Findings, Frame, IcrcCheck, Message, Opcode, Qp, Severity};
use slotmap::{SlotMap, new_key_type};
use std::collections::HashMap;
use std::net::IpAddr;

/// Configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rate control. Default DCQCN.
    pub control: Control,
    /// Enables Fast CNPs. Default false.
    pub fast_cnp: bool,
    /// Nodes that may send Fast CNPs; empty: none. A receiver that sends Fast CNPs itself must be
    /// included.
    pub access_list: Vec<Prefix>,
    /// Maximum number of flows that can be open at the same time, at most 2²⁴. Default 65 536.
    pub flows: usize,
    /// If true, notifications with a wrong ICRC are ignored. Default true.
    pub verify_icrc: bool,
    /// Settings for trying other paths when a switch notifies a flow of congestion. Default none.
    pub detour: Option<Detour>,
    /// Time after a notification acted upon in which others about the same flow are ignored, from
    /// whichever node and of whichever kind: several switches of a path, a switch and the receiver,
    /// or a proxy node report one congestion. Default 0: none is ignored.
    pub merge: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            control: Control::Dcqcn(dcqcn::Params::default()),
            fast_cnp: false,
            access_list: Vec::new(),
            flows: 65_536,
            verify_icrc: true,
            detour: None,
            merge: Duration::ZERO,
        }
    }
}

impl Config {
    /// True if notifications lower rates or change paths.
    #[must_use]
    pub const fn obeys(&self) -> bool {
        self.detour.is_some()
            || !matches!(
                self.control,
                Control::Fixed | Control::Hpcc(_) | Control::Swift(_) | Control::Timely(_)
            )
    }
}

new_key_type! {
    /// An open flow of a reaction point. The ID of a closed flow is never found.
    pub struct FlowId;
}

/// Result of processing a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reaction {
    /// A notification about a flow, whose rate was set, in bit/s.
    Slowed {
        /// The flow.
        flow: FlowId,
        /// Previous rate.
        from: f64,
        /// New rate.
        to: f64,
    },
    /// A Fast CNP of a switch. The flow is to take another path: from now on its packets have a
    /// different UDP source port, or a different flow label. The rate is unchanged.
    Detoured {
        /// The flow.
        flow: FlowId,
        /// Number of path changes of the flow, including this one.
        path: u32,
    },
    /// The frame was ignored, for this reason.
    Ignored(Ignored),
}

reasons! {
    /// Reason why a frame was ignored.
    Ignored {
        /// Neither a CNP nor a Fast CNP.
        NotANotification = not_a_notification,
        /// A Fast CNP, which are disabled.
        FeatureOff = feature_off,
        /// A Fast CNP from a source that is not on the access list.
        NotOnAccessList = not_on_access_list,
        /// No open flow matches.
        UnknownQp = unknown_qp,
        /// The ICRC is wrong.
        BadIcrc = bad_icrc,
        /// The frame cannot be parsed, or a Fast CNP violates a rule with severity error.
        Malformed = malformed,
        /// The frame has an unknown option that demands discarding the packet (RFC 8200 section
        /// 4.2).
        UnknownOption = unknown_option,
        /// A Fast CNP of a switch, so soon after a path change that it may be about packets on the
        /// old path.
        JustDetoured = just_detoured,
        /// A notification so soon after another about the flow that both are taken as one.
        Merged = merged,
        /// The flow's rate control does not use notifications.
        Unused = unused,
    }
    /// Counters of a reaction point: actions and ignored frames.
    {
        /// CNPs acted upon.
        cnps,
        /// Fast CNPs acted upon.
        fast_cnps,
        /// Fast CNPs that made a flow take another path instead of slowing down.
        detours,
        /// Flows opened.
        opened,
        /// Flows not opened because the table was full.
        table_full,
        /// Flows not opened because one with the same QP, or with the same receiver and QP there,
        /// is open.
        duplicates,
    }
}

/// Maximum number of flows in a table: the number of QPs.
const MAX_FLOWS: usize = 1 << 24;

#[derive(Debug)]
struct Flow {
    own_qp: Qp,
    receiver: (IpAddr, Qp),
    controller: Box<dyn Controller>,
    /// Time of the last notification acted upon.
    acted: Option<Time>,
}

/// A reaction point: one host's sending flows.
///
/// The caller must not pass frames that are not for this host.
#[derive(Debug)]
pub struct ReactionPoint {
    config: Config,
    flows: SlotMap<FlowId, Flow>,
    by_qp: HashMap<Qp, FlowId>,
    by_receiver: HashMap<(IpAddr, Qp), FlowId>,
    counters: Counters,
}

impl ReactionPoint {
    /// Creates a reaction point without flows.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            flows: SlotMap::with_key(),
            by_qp: HashMap::new(),
            by_receiver: HashMap::new(),
            counters: Counters::default(),
        }
    }

    /// Opens a flow from `own_qp` to `receiver_qp` at `receiver`, which starts at `line_rate`
    /// bit/s.
    ///
    /// Returns `None` if the table is full (open flows stay), or a flow with that QP or to that QP
    /// is open; each case is counted.
    pub fn open(
        &mut self,
        own_qp: Qp,
        receiver: IpAddr,
        receiver_qp: Qp,
        line_rate: f64,
    ) -> Option<FlowId> {
        let receiver = (receiver, receiver_qp);
        if self.by_qp.contains_key(&own_qp) || self.by_receiver.contains_key(&receiver) {
            self.counters.duplicates += 1;
            return None;
        }
        if self.flows.len() >= self.config.flows.min(MAX_FLOWS) {
            self.counters.table_full += 1;
            return None;
        }
        let flow = self.flows.insert(Flow {
            own_qp,
            receiver,
            controller: self
                .config
                .control
                .controller(line_rate, self.config.detour),
            acted: None,
        });
        self.by_qp.insert(own_qp, flow);
        self.by_receiver.insert(receiver, flow);
        self.counters.opened += 1;
        Some(flow)
    }

    /// Closes a flow. Has no effect if it is not open.
    pub fn close(&mut self, flow: FlowId) {
        if let Some(closed) = self.flows.remove(flow) {
            self.by_qp.remove(&closed.own_qp);
            self.by_receiver.remove(&closed.receiver);
        }
    }

    /// Processes a received frame.
    pub fn on_frame(&mut self, now: Time, frame: &Frame<'_>) -> Reaction {
        match self.react(now, frame) {
            Ok(reaction) => reaction,
            Err(ignored) => {
                self.counters.count(ignored);
                Reaction::Ignored(ignored)
            }
        }
    }

    fn react(&mut self, now: Time, frame: &Frame<'_>) -> Result<Reaction, Ignored> {
        match frame.message() {
            Message::Cnp(_) | Message::FastCnp(_) if frame.has_discard_option() => {
                Err(Ignored::UnknownOption)
            }
            Message::Cnp(cnp) => {
                check_icrc(&self.config, frame)?;
                // Names the sender's own QP, whichever node sent it: the receiver, a proxy node or
                // an ingress PE.
                let flow = self.by_qp.get(&cnp.dest_qp()).copied();
                let reaction = self.notify(now, flow, &Notice::default())?;
                self.counters.cnps += 1;
                Ok(reaction)
            }
            Message::FastCnp(message) => {
                let receiver = accept_fast_cnp(&self.config, frame, &message)?;
                let trace = message.parsed.ok().and_then(|option| option.trace());
                let flow = self.by_receiver.get(&receiver).copied();
                let notice = Notice {
                    trace: trace.as_ref(),
                    by_switch: frame.ip().is_some_and(|ip| ip.source != receiver.0),
                };
                let reaction = self.notify(now, flow, &notice)?;
                self.counters.fast_cnps += 1;
                Ok(reaction)
            }
            // A CNP by its opcode, but not by its length.
            Message::Roce(bth, _) if bth.opcode() == Opcode::CNP => Err(Ignored::Malformed),
            _ => Err(Ignored::NotANotification),
        }
    }

    /// Notifies the flow's controller.
    fn notify(
        &mut self,
        now: Time,
        flow: Option<FlowId>,
        notice: &Notice<'_>,
    ) -> Result<Reaction, Ignored> {
        let flow = flow.ok_or(Ignored::UnknownQp)?;
        let merge = self.config.merge;
        let open = self.flows.get_mut(flow).ok_or(Ignored::UnknownQp)?;
        let controller = &mut *open.controller;
        controller.on_timer(now);
        if (open.acted).is_some_and(|acted| now.saturating_sub(acted) < merge) {
            return Err(Ignored::Merged);
        }
        let from = controller.rate();
        match controller.on_notification(now, notice) {
            Answer::Slow => {
                let to = controller.rate();
                open.acted = Some(now);
                Ok(Reaction::Slowed { flow, from, to })
            }
            Answer::Detour(path) => {
                open.acted = Some(now);
                self.counters.detours += 1;
                Ok(Reaction::Detoured { flow, path })
            }
            Answer::Wait => Err(Ignored::JustDetoured),
            Answer::Ignore => Err(Ignored::Unused),
        }
    }

    #[inline]
    fn controller(&mut self, flow: FlowId) -> Option<&mut dyn Controller> {
        let open = self.flows.get_mut(flow)?;
        Some(&mut *open.controller)
    }

    /// Counts octets of the flow that were sent.
    #[inline]
    pub fn on_sent(&mut self, flow: FlowId, octets: u32) {
        if let Some(controller) = self.controller(flow) {
            controller.on_sent(octets);
        }
    }

    /// Processes an acknowledgement of packets of the flow.
    #[inline]
    pub fn on_ack(&mut self, now: Time, flow: FlowId, ack: &Ack) {
        if let Some(controller) = self.controller(flow) {
            controller.on_timer(now);
            controller.on_ack(now, ack);
        }
    }

    /// Processes an acknowledgement that returns the data packet's trace, while `in_flight` octets
    /// of payload are not acknowledged.
    pub fn on_telemetry(
        &mut self,
        now: Time,
        flow: FlowId,
        (ack, in_flight): (&Ack, u64),
        trace: &Trace<'_>,
    ) {
        if let Some(controller) = self.controller(flow) {
            controller.on_timer(now);
            controller.on_telemetry(now, ack, in_flight, trace);
        }
    }

    /// Returns the flow's rate in bit/s, after applying pending timers; 0 if the flow is not open.
    #[inline]
    pub fn rate(&mut self, now: Time, flow: FlowId) -> f64 {
        self.controller(flow).map_or(0.0, |controller| {
            controller.on_timer(now);
            controller.rate()
        })
    }

    /// Returns the maximum payload of the flow in flight, in octets; `None` if it is not limited.
    #[inline]
    #[must_use]
    pub fn window(&self, flow: FlowId) -> Option<u64> {
        self.flows.get(flow)?.controller.window()
    }

    /// Returns the time at which the flow's rate next rises by itself; `None` if it will not.
    #[must_use]
    pub fn next_timer(&self, flow: FlowId) -> Option<Time> {
        self.flows.get(flow)?.controller.next_timer()
    }

    /// True if rates are fixed regardless of notifications.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        matches!(self.config.control, Control::Fixed)
    }

    /// True if rates follow from acknowledgements, not from notifications.
    #[must_use]
    pub const fn goes_by_acks(&self) -> bool {
        matches!(
            self.config.control,
            Control::Hpcc(_) | Control::Swift(_) | Control::Timely(_)
        )
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Returns the receiver and QP that a Fast CNP names, if it is acceptable.
pub(crate) fn accept_fast_cnp(
    config: &Config,
    frame: &Frame<'_>,
    message: &FastCnpMessage<'_>,
) -> Result<(IpAddr, Qp), Ignored> {
    if !config.fast_cnp {
        return Err(Ignored::FeatureOff);
    }
    let source = frame.ip().ok_or(Ignored::Malformed)?.source;
    if !access::list_contains(&config.access_list, source) {
        return Err(Ignored::NotOnAccessList);
    }
    let (Ok(option), Some(cnp)) = (message.parsed, message.cnp) else {
        return Err(Ignored::Malformed);
    };
    let mut findings = Findings::new();
    frame.check(IcrcCheck::Off, &mut findings);
    let broken = findings.worst() >= Some(Severity::Error);
    if broken || matches!(frame.end(), End::Malformed(_)) {
        return Err(Ignored::Malformed);
    }
    check_icrc(config, frame)?;
    Ok((option.original_destination().into(), cnp.dest_qp()))
}

fn check_icrc(config: &Config, frame: &Frame<'_>) -> Result<(), Ignored> {
    if !config.verify_icrc {
        return Ok(());
    }
    match frame.verify_icrc() {
        Verdict::Good(_) => Ok(()),
        Verdict::Bad { .. } => Err(Ignored::BadIcrc),
        // Contradictory lengths: it is unclear what the ICRC covers.
        Verdict::Unchecked => Err(Ignored::Malformed),
    }
}

#[cfg(test)]
mod tests;
