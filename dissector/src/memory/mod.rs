//! State kept from frame to frame, to show a notification with its context: the data before it, the
//! QP at the sender, the mark that it answers, the notification that it translates, its frequency
//! and its effect.
//!
//! Each frame is processed once, in file order ([`Memory::packet`], [`Memory::notification`]); its
//! context is queried whenever it is shown ([`Memory::context`]). Context that only later frames
//! supply (the notification that a data frame led to, the rate after it) is available when the
//! frame is shown again: in the second pass, or in Wireshark's window. `fcn_observe` decides which
//! flow is meant and which rules several packets violate; `ws/memory.rs` calls Wireshark.
//!
//! The tables are bounded, see [`Limits`]: the least recently used entry is evicted, and context
//! lost that way is reported as forgotten.
#![forbid(unsafe_code)]

mod exchange;
mod flows;
mod rate;
mod recent;
#[cfg(test)]
mod tests;

pub use exchange::Links;
pub use recent::FrameTime;

use exchange::Exchange;
use fcn_observe::correlator::{Capture, Correlator, NotificationContext, Topic as Common};
use fcn_observe::exchange::Incident;
use fcn_observe::origin::{Cnp, Inference};
use fcn_observe::rules::{self, Duties, FLOW_RATE, NOTIFIERS, NotifierRate};
use fcn_observe::sightings::CapturePoint;
use fcn_observe::{Bounded, Class, ClassRelation, DataPacket, FlowKey, Resolved, RowKey, Verdict};
use fcn_observe::{access, correlator};
use fcn_wire::bth::Aeth;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Frame, Kind, Message, Notification, Origin, Qp, Rule, Subject};
use flows::History;
use std::net::IpAddr;

/// Number of packets at the beginning that are always remembered: those of 10 ms at 1.5 million
/// packets a second.
const ALWAYS_WATCHED_PACKETS: u64 = 1 << 14;
/// Maximum number of notifications listed for a data frame; the others are only counted.
pub const MAX_LISTED: usize = 7;

/// Maximum number of entries in each table.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Data flows, and as many groups of notifications by kind and QP or flow. A flow takes about
    /// 1,272 octets, and up to 3,400 more if there are notifications about it; 100,000 are more than
    /// a link in one capture has at a time.
    pub flows: usize,
    /// Connections learnt from RDMA CM or from acknowledgements, and flow labels.
    pub connections: usize,
    /// Notifications, of about 300 octets each, and as many data frames that led to one, of 60
    /// octets each. Wireshark itself needs more for a frame.
    pub notices: usize,
    /// Data packets by PSN, of about 90 octets each, and as many links to them
    /// and stalls, of 60 octets each.
    pub packets: usize,
}

impl Limits {
    /// At most about 900 MB in total, if every table is full.
    pub const DEFAULT: Self = Self {
        flows: 100_000,
        connections: 100_000,
        notices: 500_000,
        packets: 500_000,
    };
}

/// Settings from the preferences.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes that may send Fast CNPs, proxy notifications and WAN FCNs; empty: every node is
    /// trusted.
    pub trusted: Vec<Prefix>,
    /// Senders known to obey Fast CNPs.
    pub able: Vec<Prefix>,
    /// The domain, whose border only CNPs may cross; empty: no domain.
    pub domain: Vec<Prefix>,
    /// Maximum number of notifications a second, except CNPs, from one notifier about one flow; 0:
    /// not checked.
    pub flow_rate: u32,
    /// Time before and after a notification in which the flow's rate is measured, in nanoseconds.
    pub window: u64,
    /// Length of the window's steps, from [`rate::step_of`].
    step: u64,
}

impl Settings {
    /// Creates settings from lists and limits, and derives the length of the window's steps.
    pub fn new(trusted: Vec<Prefix>, able: Vec<Prefix>, flow_rate: u32, window: u64) -> Self {
        Self {
            trusted,
            able,
            domain: Vec::new(),
            flow_rate,
            window: window.max(1),
            step: rate::step_of(window.max(1)),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new(), FLOW_RATE, 1_000_000)
    }
}

/// Context of a notification, beyond its packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Notice {
    at: u64,
    kind: Kind,
    /// Flow that it is about.
    pub flow: Option<FlowKey>,
    /// QP at the sender, and the way that it was resolved.
    pub sender_qp: Option<(Qp, Resolved)>,
    /// Evidence for the flow of a CNP, and so for the QP at the receiver.
    pub flow_from: Option<Resolved>,
    /// Nanoseconds since the last one of this kind about this QP or flow, on this interface.
    pub interval: Option<u64>,
    /// Data that it is about.
    pub data: Option<FrameTime>,
    /// True if that data has the CE mark that it answers.
    pub is_ce_mark: bool,
    /// Notification that it translates.
    pub translates: Option<FrameTime>,
    /// If that is unknown, the frame of the newest notification that it may translate.
    pub may_translate: Option<u32>,
    /// CNP that translates it.
    pub translated_by: Option<u32>,
    /// Rate of the flow before it, in bits a second.
    pub rate_before: Option<u64>,
    /// Rate of the flow after it, in bits a second.
    pub rate_after: Option<u64>,
    /// Role of its source, which context may give more precisely than the packet.
    pub origin: Origin,
    /// Frame of the same notification, captured earlier at another capture point.
    pub copy_of: Option<u32>,
    /// Rules that it reveals as violated.
    pub broken: Broken,
    /// Traffic class of the notification.
    pub class: Option<Class>,
    /// Traffic class of the flow's last data before it in the file.
    pub data_class: Option<Class>,
    /// Relation of the traffic classes of the notifications about the QP or flow so far to that of
    /// the data.
    pub class_relation: Option<ClassRelation>,
    /// For a CNP, the evidence of the node that generated it.
    cnp: Option<Cnp>,
}

impl Notice {
    /// Returns how much later (or, negative, earlier) it is than that frame, in nanoseconds.
    pub fn delay(&self, since: FrameTime) -> i64 {
        i64::try_from(i128::from(self.at) - i128::from(since.at)).unwrap_or(0)
    }

    /// Returns the data's sender, if the notification does not name it.
    pub fn flow_sender(&self) -> Option<IpAddr> {
        let flow = self.flow.filter(|_| self.kind == Kind::WanFcn);
        flow.map(|flow| flow.sender)
    }
}

/// Rules that a notification reveals as violated: rate, source, border, marks, class.
type Broken = [Option<Rule>; 5];

/// Notifications that a data frame led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataContext {
    /// Frames of the notifications, in file order; 0 for none.
    pub frames: [u32; MAX_LISTED],
    /// Number of notifications.
    pub count: u32,
    /// Rule about CE marks beside Fast CNPs that it reveals as violated.
    pub rule: Option<Rule>,
}

impl DataContext {
    fn add(&mut self, frame: u32) {
        if let Some(place) = self.frames.get_mut(self.count as usize) {
            *place = frame;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Removes a notification that belongs to another frame after all.
    fn remove(&mut self, frame: u32) {
        let shown = (self.count as usize).min(MAX_LISTED);
        if let Some(place) = self.frames[..shown].iter().position(|f| *f == frame) {
            self.frames[place..].rotate_left(1);
            self.frames[MAX_LISTED - 1] = 0;
            self.count -= 1;
        } else if self.count as usize > MAX_LISTED {
            self.count -= 1;
        }
    }
}

/// Notifications of one kind about one QP or flow: the rate of each notifier, and the traffic
/// classes.
#[derive(Clone, Debug, Default)]
struct Topic {
    common: Common,
    notifiers: Vec<(IpAddr, NotifierRate)>,
}

impl Topic {
    /// Counts a notification; returns true if its notifier exceeds `limit` a second. A `limit` of 0
    /// means none.
    fn exceeds(&mut self, at: u64, gist: &Notification, limit: u32) -> bool {
        let who = gist.notifier;
        let known = self.notifiers.iter().any(|(known, _)| *known == who);
        if !known && self.notifiers.len() < NOTIFIERS {
            self.notifiers.push((who, NotifierRate::NEW));
        }
        let one = self.notifiers.iter_mut().find(|(known, _)| *known == who);
        // Notifiers beyond the limit of those tracked are not judged.
        one.is_some_and(|(_, rate)| rate.exceeds(at, limit))
    }
}

/// Wireshark's data about a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameInfo {
    /// Frame number.
    pub frame: u32,
    /// Time, in nanoseconds since 1970; `None` if the file has none.
    pub at: Option<u64>,
    /// Capture point; its interface is 0 if the file has none.
    pub capture_point: CapturePoint,
}

/// Current conclusions about a notification, from all frames so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusions {
    /// Verdict on whether the flow's sender obeys.
    pub verdict: Option<Verdict>,
    /// Node that generated it, if it is a CNP.
    pub generated_by: Option<Inference>,
    /// Number of flows forgotten, if the data that it is about is unknown.
    pub flows_forgotten: u64,
}

/// Context of a frame, beyond its packet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Context {
    /// The frame is a notification.
    Notice(Notice, Conclusions),
    /// The frame is data.
    Data(DataContext),
    /// If the frame is a notification, its context was forgotten.
    Forgotten,
}

/// The memory.
#[derive(Debug)]
pub struct Memory {
    settings: Settings,
    correlator: Correlator<History>,
    topics: Bounded<RowKey, Topic>,
    /// Capture point of the first frame, and the number of the first frame from another capture
    /// point, or 0.
    capture_points: Option<(CapturePoint, u32)>,
    /// Time of the last notification of each kind about each QP or flow, by interface.
    last: Bounded<RowKey, u64>,
    notices: Bounded<u32, Notice>,
    effects: Bounded<u32, DataContext>,
    exchange: Exchange,
    now: u64,
    tick: u64,
    /// Highest frame number of the forgotten notifications.
    forgotten: u32,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new(settings: Settings, limits: Limits) -> Self {
        Self {
            settings,
            correlator: Correlator::new(limits.flows, limits.connections),
            topics: Bounded::new(limits.flows),
            capture_points: None,
            last: Bounded::new(limits.flows),
            notices: Bounded::new(limits.notices),
            effects: Bounded::new(limits.notices),
            exchange: Exchange::new(limits.packets),
            now: 0,
            tick: 0,
            forgotten: 0,
        }
    }

    fn frame_time(&mut self, info: &FrameInfo) -> FrameTime {
        self.tick += 1;
        let at = info.at.unwrap_or(self.now);
        self.now = self.now.max(at);
        let (first, elsewhere) = self.capture_points.get_or_insert((info.capture_point, 0));
        if *elsewhere == 0
            && (*first != info.capture_point || info.capture_point.captures_several_interfaces())
        {
            *elsewhere = info.frame;
        }
        FrameTime {
            at,
            frame: info.frame,
        }
    }

    /// Returns time and capture point of a frame, for the correlator, which recognises the frame at
    /// another capture point if it is `watched`.
    fn capture(&self, moment: FrameTime, point: CapturePoint, watched: bool) -> Capture {
        let has_several_points = self
            .capture_points
            .is_some_and(|(_, elsewhere)| elsewhere != 0);
        // Another capture point may begin later only by its clock, and see packets that passed here
        // before.
        let is_young = self.correlator.sightings().remembered() < ALWAYS_WATCHED_PACKETS;
        Capture {
            at: moment.at,
            captured: moment.at,
            frame: moment.frame,
            point,
            watched: watched || has_several_points || is_young,
            has_several_points,
            sampled: false,
        }
    }

    /// Processes a packet that is not a notification, once, in file order.
    pub fn packet(&mut self, info: FrameInfo, frame: &Frame<'_>) {
        let moment = self.frame_time(&info);
        let Some(data) = DataPacket::from_frame(frame) else {
            let capture = self.capture(moment, info.capture_point, false);
            if !capture.watched {
                self.correlator.passed(&capture);
            }
            self.correlator.pause(&capture, frame);
            self.correlator.other(&capture, frame);
            self.acknowledged(moment, info.capture_point, frame);
            return;
        };
        // Marks are checked from the first packet on, rates as soon as there is another capture
        // point.
        let able = access::list_contains(&self.settings.able, data.source);
        let capture = self.capture(moment, info.capture_point, able);
        if !capture.watched {
            self.correlator.passed(&capture);
        }
        let Self {
            settings,
            correlator,
            notices,
            ..
        } = self;
        let shown = correlator.data(&capture, frame, (&data, able), |flow, data| {
            flow.extra.data(data, settings, |notice, octets| {
                if let Some(notice) = notices.get_mut(&notice) {
                    notice.rate_after = Some(rate(octets as f64, settings.window));
                }
            })
        });
        let Some((shown, is_late)) = shown else {
            return;
        };
        if let (Some(_), Some(psn)) = (shown.order, shown.sequence.of_connection()) {
            let place = (moment, info.capture_point);
            let tick = self.tick;
            (self.exchange).data(place, (shown.key, psn), shown.is_resent, tick);
        }
        if let Some(incident) = shown.incident {
            (self.exchange).incident(moment.frame, incident, self.tick);
        }
        if shown.rule.is_some() {
            self.effects_mut(moment.frame).rule = shown.rule;
        }
        if is_late {
            self.correct(moment, &shown.key, shown.sighting.ce, data.outer.is_some());
        }
    }

    /// Links an acknowledgement to the data packet that it names.
    fn acknowledged(&mut self, moment: FrameTime, point: CapturePoint, frame: &Frame<'_>) {
        if let Message::Roce(bth, Some(roce)) = frame.message()
            && let Some(flow) = self.correlator.flow_acknowledged(frame)
            && let Some(kind) = roce.aeth().and_then(Aeth::kind)
        {
            let tick = self.tick;
            (self.exchange).acknowledged((moment, point), (flow, bth.psn()), kind, tick);
        }
    }

    /// Returns the links of a data packet or an acknowledgement to an earlier one.
    pub fn links(&self, frame: u32) -> Option<Links> {
        self.exchange.links(frame)
    }

    /// Returns what is wrong with the flow of a data packet since that frame.
    pub fn incident(&self, frame: u32) -> Option<Incident> {
        self.exchange.incident_at(frame)
    }

    /// Reassigns notifications to data that is late in the file, but precedes them in time.
    #[cold]
    fn correct(&mut self, data: FrameTime, key: &FlowKey, ce: bool, tunnelled: bool) {
        let Self {
            correlator,
            notices,
            effects,
            tick,
            ..
        } = self;
        let flow = correlator.flows().get(key);
        for frame in flow.into_iter().flat_map(|flow| flow.extra.notices()) {
            let Some(notice) = notices.get_mut(&frame) else {
                continue;
            };
            let fits = match notice.kind {
                Kind::WanFcn => tunnelled,
                Kind::Cnp if notice.translates.is_some() => false,
                Kind::Cnp if notice.is_ce_mark => ce,
                _ => true,
            };
            let later = notice.data.is_none_or(|known| known.at <= data.at);
            // Data that follows a notification of the same time in the file does not precede it.
            if !fits || !later || data.at >= notice.at {
                continue;
            }
            if let Some(before) = notice.data.replace(data)
                && let Some(context) = effects.get_mut(&before.frame)
            {
                context.remove(frame);
            }
            effects
                .get_or_insert_with(data.frame, *tick, DataContext::default)
                .add(frame);
        }
    }

    fn effects_mut(&mut self, frame: u32) -> &mut DataContext {
        self.effects
            .get_or_insert_with(frame, self.tick, DataContext::default)
    }

    /// Processes a notification, once, in file order.
    pub fn notification(&mut self, info: FrameInfo, heard: &correlator::NotificationPacket<'_>) {
        let moment = self.frame_time(&info);
        let FrameTime { at, frame } = moment;
        let gist = heard.notification;
        let capture = self.capture(moment, info.capture_point, true);
        let about = self.correlator.about(&capture, heard);
        let (flow, earlier, data_class) = (about.flow, about.earlier, about.data_class);
        let known = flow.and_then(|key| self.correlator.flows().get(&key));
        for earlier in known.into_iter().flat_map(|flow| flow.extra.notices()) {
            let earlier = self.notices.get_mut(&earlier);
            if let Some(cnp) = earlier.and_then(|earlier| earlier.cnp.as_mut()) {
                self.correlator.settle(cnp);
            }
        }
        let key = RowKey::new(gist, None);
        let topic = (self.topics).get_or_insert_with(key, self.tick, Topic::default);
        let mut broken = Broken::default();
        if earlier.is_none() {
            broken[4] = topic.common.class(heard.class, &about);
        }
        let class_relation = topic.common.class_relation(data_class);
        if let (Some(duties), None) = (Duties::for_kind(gist.kind), earlier) {
            let too_fast = topic.exceeds(at, gist, self.settings.flow_rate);
            broken[0] = duties.rate_about(&gist.subject).filter(|_| too_fast);
            broken[1] = rules::untrusted(&self.settings.trusted, gist);
            broken[2] = rules::crosses(&self.settings.domain, gist);
        }
        let told = (self.correlator).notified(&capture, heard, &about, &mut topic.common);
        broken[3] = told.rule;
        let interval = self.interval(RowKey::new(gist, Some(info.capture_point.interface())), at);
        let mut notice = Notice {
            at,
            kind: gist.kind,
            flow,
            sender_qp: self.sender_qp(gist, flow.as_ref()),
            flow_from: match gist.subject {
                Subject::SenderQp(_) => {
                    flow.and_then(|flow| Some(self.correlator.sender_qp(&flow)?.1))
                }
                _ => None,
            },
            interval,
            data: None,
            is_ce_mark: false,
            translates: None,
            may_translate: None,
            translated_by: None,
            rate_before: None,
            rate_after: None,
            origin: about.attribution.origin,
            copy_of: earlier.map(|earlier| earlier.frame),
            broken,
            class: heard.class,
            data_class,
            class_relation,
            cnp: told.cnp,
        };
        if let Some(request) = about.attribution.translates {
            if about.attribution.is_translation {
                notice.translates = Some(FrameTime {
                    at: request.at,
                    frame: request.frame,
                });
            } else {
                notice.may_translate = Some(request.frame);
            }
        }
        self.find_data(moment, gist, &about, &mut notice);
        // If a frame contains two, the last one counts.
        let forgotten = &mut self.forgotten;
        let (_, place) = self.notices.get_or_insert_evicting(
            frame,
            self.tick,
            || notice,
            |number| *forgotten = (*forgotten).max(*number),
        );
        *place = notice;
        // A translation links back to the notification, and that one to the data.
        if let (Some(data), None) = (notice.data, notice.translates) {
            self.effects_mut(data.frame).add(frame);
        }
        if let Some(translated) = notice.translates
            && let Some(translated) = self.notices.get_mut(&translated.frame)
        {
            translated.translated_by.get_or_insert(frame);
        }
    }

    /// Finds the data that a notification is about, if its flow is known.
    fn find_data(
        &mut self,
        moment: FrameTime,
        gist: &Notification,
        context: &NotificationContext,
        notice: &mut Notice,
    ) {
        let at = moment.at;
        let labelled = self.correlator.labelled(gist).filter(|data| data.at <= at);
        let labelled = labelled.map(|data| FrameTime {
            at: data.at,
            frame: data.frame,
        });
        let flows = self.correlator.flows_mut();
        let Some(flow) = context.flow.and_then(|key| flows.get_mut(&key)) else {
            return;
        };
        let history = &mut flow.extra;
        if gist.kind == Kind::Cnp && notice.origin == Origin::Receiver {
            notice.data = history.marked_before(at);
            notice.is_ce_mark = notice.data.is_some();
        }
        if let Some(earlier) = notice.translates {
            let earlier = self.notices.get(&earlier.frame);
            notice.data = earlier.and_then(|earlier| earlier.data);
        }
        notice.data = notice.data.or(labelled).or(history.before(at));
        notice.rate_before = history
            .octets_before(at, flow.first, &self.settings)
            .map(|octets| rate(octets, self.settings.window));
        history.notified(moment);
    }

    /// Returns the time since the last notification in the same group; `None` for the first one,
    /// and if the file goes back in time.
    fn interval(&mut self, key: RowKey, at: u64) -> Option<u64> {
        let mut new = false;
        let last = self.last.get_or_insert_with(key, self.tick, || {
            new = true;
            at
        });
        let interval = if new { None } else { at.checked_sub(*last) };
        *last = at.max(*last);
        interval
    }

    /// Returns the flow that a notification is about, by present knowledge.
    pub fn flow_of(&self, gist: &Notification) -> Option<FlowKey> {
        self.correlator.flow_of(gist)
    }

    fn sender_qp(&self, gist: &Notification, flow: Option<&FlowKey>) -> Option<(Qp, Resolved)> {
        match gist.subject {
            Subject::SenderQp(qp) => Some((qp, Resolved::Packet)),
            _ => self.correlator.sender_qp(flow?),
        }
    }

    /// Returns the current context of a frame.
    pub fn context(&self, frame: u32) -> Option<Context> {
        if let Some(notice) = self.notices.get(&frame) {
            return Some(self.notice(frame, *notice));
        }
        if let Some(context) = self.effects.get(&frame) {
            return Some(Context::Data(DataContext {
                rule: context.rule.filter(|rule| self.still_applies(frame, *rule)),
                ..*context
            }));
        }
        (frame <= self.forgotten).then_some(Context::Forgotten)
    }

    /// Returns true if a rule about marks still holds in `frame`. Marks that were unclear with a
    /// single capture point were set before the switch if other capture points have appeared since.
    fn still_applies(&self, frame: u32, rule: Rule) -> bool {
        let later = |(_, elsewhere)| elsewhere > frame;
        rule != Rule::FastCnpMarkUnclear || !self.capture_points.is_some_and(later)
    }

    fn notice(&self, frame: u32, mut notice: Notice) -> Context {
        let flows = self.correlator.flows();
        let flow = notice.flow.and_then(|key| flows.get(&key));
        // The flow may have restarted since.
        let flow = flow.filter(|flow| flow.first <= notice.at);
        if notice.rate_after.is_none() {
            let octets =
                flow.and_then(|flow| flow.extra.octets_after(frame, self.now, &self.settings));
            notice.rate_after = octets.map(|octets| rate(octets as f64, self.settings.window));
        }
        // A QP resolved by later acknowledgements also applies to earlier notifications of the same
        // connection.
        let since = || {
            flow?;
            self.correlator.sender_qp(&notice.flow?)
        };
        notice.sender_qp = notice.sender_qp.or_else(since);
        let holds = |rule: &Rule| self.still_applies(frame, *rule);
        notice.broken = notice.broken.map(|rule| rule.filter(holds));
        let flows_forgotten = match notice.data {
            Some(_) => 0,
            None => flows.evicted(),
        };
        let verdict = flow.map(|flow| self.correlator.verdict(flow));
        // The point of the first capture is nearest to the node that generated it.
        let first = (notice.copy_of).and_then(|first| self.notices.get(&first)?.cnp);
        let generated_by = first.or(notice.cnp).map(|cnp| self.correlator.maker(&cnp));
        Context::Notice(
            notice,
            Conclusions {
                verdict,
                generated_by,
                flows_forgotten,
            },
        )
    }
}

/// Returns the rate of `octets` in a window, in bits a second.
fn rate(octets: f64, window: u64) -> u64 {
    (octets * 8e9 / window as f64).round() as u64
}
