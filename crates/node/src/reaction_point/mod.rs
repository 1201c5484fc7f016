//! The reaction point: a sender that slows the flow down that a CNP or Fast CNP is about, or takes it past the congested
//! switch (draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5).
//!
//! A plain CNP names the sender's own QP, a Fast CNP the receiver and its QP. Which rate follows from them is in
//! `dcqcn.rs` and `telemetry.rs`, whether another path is tried first in `detour.rs`.

pub mod dcqcn;
pub mod detour;
pub mod telemetry;

use crate::reasons::reasons;
use dcqcn::Dcqcn;
use detour::{Answer, Detour, Detours};
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
use telemetry::Telemetry;

/// How the rate of a flow is controlled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// DCQCN.
    Dcqcn(dcqcn::Params),
    /// From the telemetry in option 2, like HPCC.
    Telemetry(telemetry::Params),
    /// Not at all: the rate stays the line rate.
    Fixed,
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// How rates are controlled. Default DCQCN.
    pub control: Control,
    /// Whether Fast CNPs are acted upon. Default false.
    pub fast_cnp: bool,
    /// Who may send Fast CNPs; empty: nobody. A receiver that sends Fast CNPs itself must be on it too.
    pub access_list: Vec<Prefix>,
    /// Flows that can be open at the same time, at most 2²⁴. Default 65 536.
    pub flows: usize,
    /// Whether a wrong ICRC makes a notification void. Default true.
    pub verify_icrc: bool,
    /// Whether a flow tries other paths when a switch tells it of congestion. Default not.
    pub detour: Option<Detour>,
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
        }
    }
}

impl Config {
    /// Whether notifications lower rates or change paths.
    #[must_use]
    pub const fn obeys(&self) -> bool {
        self.detour.is_some() || !matches!(self.control, Control::Fixed)
    }
}

new_key_type! {
    /// An open flow of a reaction point. That of a closed one finds nothing.
    pub struct FlowId;
}

/// What came of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reaction {
    /// It was a notification about that flow, and the flow's rate was set, in bit/s.
    Slowed {
        /// The flow.
        flow: FlowId,
        /// Rate before.
        from: f64,
        /// Rate after.
        to: f64,
    },
    /// It was a Fast CNP of a switch, and the flow is to take another path: from now on its packets have another UDP source
    /// port, or another flow label. The rate stays.
    Detoured {
        /// The flow.
        flow: FlowId,
        /// How often it has changed its path, this time included.
        path: u32,
    },
    /// Nothing, for this reason.
    Ignored(Ignored),
}

reasons! {
    /// Why a frame was ignored.
    Ignored {
        /// Neither CNP nor Fast CNP.
        NotANotification = not_a_notification,
        /// A Fast CNP, and they are switched off.
        FeatureOff = feature_off,
        /// A Fast CNP from a source that is not on the access list.
        NotOnAccessList = not_on_access_list,
        /// No flow is open for what it names.
        UnknownQp = unknown_qp,
        /// Its ICRC is wrong.
        BadIcrc = bad_icrc,
        /// It cannot be read, or a Fast CNP breaks a rule gravely.
        Malformed = malformed,
        /// It has an option that is not known here, and that has whoever does not know it discard it (RFC 8200 section 4.2).
        UnknownOption = unknown_option,
        /// A Fast CNP of a switch, so soon after the flow has left a path that it may be about packets still there.
        JustDetoured = just_detoured,
    }
    /// What a reaction point has done and ignored.
    {
        /// CNPs acted upon.
        cnps,
        /// Fast CNPs acted upon.
        fast_cnps,
        /// Of these, those that made a flow take another path instead of slowing down.
        detours,
        /// Flows opened.
        opened,
        /// Flows not opened: the table was full.
        table_full,
        /// Flows not opened: one with the same QP, or the same receiver and QP there, is open.
        duplicates,
    }
}

/// Most flows a table can hold: as many as there are QPs.
const MAX_FLOWS: usize = 1 << 24;

/// The rate control of one flow.
#[derive(Debug)]
enum Controller {
    Dcqcn(Dcqcn),
    Telemetry(Telemetry),
    Fixed(f64),
}

impl Controller {
    const fn new(control: Control, line_rate: f64) -> Self {
        match control {
            Control::Dcqcn(params) => Self::Dcqcn(Dcqcn::new(params, line_rate)),
            Control::Telemetry(params) => Self::Telemetry(Telemetry::new(params, line_rate)),
            Control::Fixed => Self::Fixed(line_rate),
        }
    }

    #[inline]
    fn rate(&mut self, now: Time) -> f64 {
        match self {
            Self::Dcqcn(flow) => {
                flow.advance(now);
                flow.rate()
            }
            Self::Telemetry(flow) => {
                flow.advance(now);
                flow.rate()
            }
            Self::Fixed(rate) => *rate,
        }
    }

    fn on_notification(&mut self, now: Time, trace: Option<&Trace<'_>>) {
        match self {
            Self::Dcqcn(flow) => flow.on_cnp(now),
            Self::Telemetry(flow) => flow.on_notification(now, trace),
            Self::Fixed(_) => {}
        }
    }
}

#[derive(Debug)]
struct Flow {
    own_qp: Qp,
    receiver: (IpAddr, Qp),
    controller: Controller,
    detours: Detours,
}

/// A reaction point: one host's sending flows.
///
/// Frames that are not for this host are its caller's to leave out.
#[derive(Debug)]
pub struct ReactionPoint {
    config: Config,
    flows: SlotMap<FlowId, Flow>,
    by_qp: HashMap<Qp, FlowId>,
    by_receiver: HashMap<(IpAddr, Qp), FlowId>,
    counters: Counters,
}

impl ReactionPoint {
    /// Without flows.
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

    /// Opens a flow from `own_qp` to `receiver_qp` at `receiver`, which starts at `line_rate` bit/s.
    ///
    /// `None` where the table is full (flows that are open stay), or a flow with that QP or to that QP is open; each is
    /// counted.
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
            controller: Controller::new(self.config.control, line_rate),
            detours: Detours::default(),
        });
        self.by_qp.insert(own_qp, flow);
        self.by_receiver.insert(receiver, flow);
        self.counters.opened += 1;
        Some(flow)
    }

    /// Closes a flow; one that is not open is left alone.
    pub fn close(&mut self, flow: FlowId) {
        if let Some(closed) = self.flows.remove(flow) {
            self.by_qp.remove(&closed.own_qp);
            self.by_receiver.remove(&closed.receiver);
        }
    }

    /// Acts upon a frame that arrived.
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
            Message::Cnp(_) | Message::FastCnp(_) if frame.demands_discarding() => {
                Err(Ignored::UnknownOption)
            }
            Message::Cnp(cnp) => {
                self.check_icrc(frame)?;
                // About the sender's own QP, whoever sends it: the receiver, a proxy node or an ingress PE.
                let flow = self.by_qp.get(&cnp.dest_qp()).copied();
                let reaction = self.slow(now, flow, None)?;
                self.counters.cnps += 1;
                Ok(reaction)
            }
            Message::FastCnp(message) => {
                let receiver = self.accept(frame, &message)?;
                let trace = message.parsed.ok().and_then(|option| option.trace());
                let flow = self.by_receiver.get(&receiver).copied();
                // The receiver's own Fast CNP tells of congestion, and of no switch to pass by (section 4).
                let by_switch = frame.ip().is_some_and(|ip| ip.source != receiver.0);
                let detoured = match self.config.detour.filter(|_| by_switch) {
                    Some(detour) => self.detour(now, flow, &detour)?,
                    None => None,
                };
                let reaction = match detoured {
                    Some(reaction) => reaction,
                    None => self.slow(now, flow, trace.as_ref())?,
                };
                self.counters.fast_cnps += 1;
                Ok(reaction)
            }
            // A CNP by its opcode, yet not as long as one.
            Message::Roce(bth, _) if bth.opcode() == Opcode::CNP => Err(Ignored::Malformed),
            _ => Err(Ignored::NotANotification),
        }
    }

    /// The receiver and QP that a Fast CNP is about, if it is to be believed.
    fn accept(
        &self,
        frame: &Frame<'_>,
        message: &FastCnpMessage<'_>,
    ) -> Result<(IpAddr, Qp), Ignored> {
        if !self.config.fast_cnp {
            return Err(Ignored::FeatureOff);
        }
        let source = frame.ip().ok_or(Ignored::Malformed)?.source;
        if !access::lists(&self.config.access_list, source) {
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
        self.check_icrc(frame)?;
        Ok((option.original_destination().into(), cnp.dest_qp()))
    }

    fn check_icrc(&self, frame: &Frame<'_>) -> Result<(), Ignored> {
        if !self.config.verify_icrc {
            return Ok(());
        }
        match frame.verify_icrc() {
            Verdict::Good(_) => Ok(()),
            Verdict::Bad { .. } => Err(Ignored::BadIcrc),
            // Lengths that contradict each other: nobody knows what the ICRC is to cover.
            Verdict::Unchecked => Err(Ignored::Malformed),
        }
    }

    /// Takes the flow to another path, where it has not tried enough of them.
    fn detour(
        &mut self,
        now: Time,
        flow: Option<FlowId>,
        detour: &Detour,
    ) -> Result<Option<Reaction>, Ignored> {
        let (flow, open) = self.named(flow)?;
        match open.detours.on_fast_cnp(now, detour) {
            Answer::Change => {
                let path = open.detours.path();
                self.counters.detours += 1;
                Ok(Some(Reaction::Detoured { flow, path }))
            }
            Answer::Wait => Err(Ignored::JustDetoured),
            Answer::Slow => Ok(None),
        }
    }

    fn slow(
        &mut self,
        now: Time,
        flow: Option<FlowId>,
        trace: Option<&Trace<'_>>,
    ) -> Result<Reaction, Ignored> {
        let (flow, open) = self.named(flow)?;
        let from = open.controller.rate(now);
        open.controller.on_notification(now, trace);
        let to = open.controller.rate(now);
        Ok(Reaction::Slowed { flow, from, to })
    }

    /// The open flow that a notification names.
    fn named(&mut self, flow: Option<FlowId>) -> Result<(FlowId, &mut Flow), Ignored> {
        let flow = flow.ok_or(Ignored::UnknownQp)?;
        let open = self.flows.get_mut(flow).ok_or(Ignored::UnknownQp)?;
        Ok((flow, open))
    }

    /// That many octets of the flow were sent.
    #[inline]
    pub fn on_sent(&mut self, flow: FlowId, octets: u32) {
        if let Some(Controller::Dcqcn(dcqcn)) = self.flows.get_mut(flow).map(|f| &mut f.controller)
        {
            dcqcn.on_sent(octets);
        }
    }

    /// The flow's rate in bit/s, with what timers owe applied; 0 where it is not open.
    #[inline]
    pub fn rate(&mut self, now: Time, flow: FlowId) -> f64 {
        let open = self.flows.get_mut(flow);
        open.map_or(0.0, |open| open.controller.rate(now))
    }

    /// When the flow's rate next rises by itself; `None` where it will not.
    #[must_use]
    pub fn next_timer(&self, flow: FlowId) -> Option<Time> {
        match &self.flows.get(flow)?.controller {
            Controller::Dcqcn(flow) => flow.next_timer(),
            Controller::Telemetry(flow) => flow.next_timer(),
            Controller::Fixed(_) => None,
        }
    }

    /// Whether rates stay as they are, whatever notifications come.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        matches!(self.config.control, Control::Fixed)
    }

    /// What it has done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
