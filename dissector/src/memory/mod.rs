//! What is remembered from frame to frame, so that a notification can be shown with what it is about: the data before it,
//! the QP at the sender, the mark that it answers, the notification that it translates, how often and with what effect.
//!
//! Frames come in once, in the order of the file ([`Memory::passed`], [`Memory::notified`]); what has been found about one is asked for whenever it
//! is shown ([`Memory::context`]). What is known only later (the notification that a data frame led to, the rate after
//! it) is there when the frame is shown again: in the second pass, or in Wireshark's window. Which flow is meant and which
//! rules several packets break is decided by `fcn_observe`; Wireshark is called in `ws/memory.rs`.
//!
//! Bounded, see [`Limits`]: what was used longest ago leaves, and what then cannot be told is said to be forgotten.
#![forbid(unsafe_code)]

mod flows;
mod rate;
mod recent;
#[cfg(test)]
mod tests;

pub use recent::FrameTime;

use fcn_observe::correlator::{About, Capture, Correlator, Topic as Common};
use fcn_observe::origin::{Cnp, Inference};
use fcn_observe::rules::{self, Duties, FLOW_RATE, NOTIFIERS, NotifierRate};
use fcn_observe::sightings::Place;
use fcn_observe::{Bounded, Class, Company, DataPacket, FlowKey, Resolved, RowKey, Verdict};
use fcn_observe::{access, correlator};
use fcn_wire::pnc::Prefix;
use fcn_wire::{Frame, Kind, Notification, Origin, Qp, Rule, Subject};
use flows::History;
use std::net::IpAddr;

/// Packets remembered at the beginning in any case: those of 10 ms at a million and a half a second.
const YOUNG: u64 = 1 << 14;
/// Notifications that a data frame is said to have led to; the others are counted.
pub const SHOWN: usize = 7;

/// How many entries each table holds at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Data flows, and as many sorts of notifications. A flow takes about 984 octets,
    /// and up to 3,400 more where it is notified about; 100,000 are more than a link has at a time that one capture holds.
    pub flows: usize,
    /// Connections learnt from RDMA CM or from acknowledgements, and flow labels.
    pub connections: usize,
    /// Notifications, of about 300 octets each, and as many data frames that led to one, of 60 octets. Wireshark itself
    /// takes more for a frame.
    pub notices: usize,
}

impl Limits {
    /// At most about 800 MB in all, where everything is full.
    pub const DEFAULT: Self = Self {
        flows: 100_000,
        connections: 100_000,
        notices: 500_000,
    };
}

/// What is set by preferences.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may send Fast CNPs, proxy notifications and WAN FCNs; empty: nobody is suspected.
    pub trusted: Vec<Prefix>,
    /// Senders that are known to obey Fast CNPs.
    pub able: Vec<Prefix>,
    /// The domain, whose border no notification but CNPs may cross; empty: there is none.
    pub domain: Vec<Prefix>,
    /// Notifications a second, CNPs aside, that one notifier may send about one flow; 0: not checked.
    pub flow_rate: u32,
    /// Nanoseconds before and after a notification in which the flow's rate is measured.
    pub window: u64,
    /// Length of the window's steps, by [`rate::step_of`].
    step: u64,
}

impl Settings {
    /// Lists and limits as given; the window is made a whole number of steps.
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

/// What was found out about a notification, beside what its packet says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Notice {
    at: u64,
    kind: Kind,
    /// The flow that it is about.
    pub flow: Option<FlowKey>,
    /// The QP at the sender, and how it is known.
    pub sender_qp: Option<(Qp, Resolved)>,
    /// Evidence for the flow of a CNP, and so for the QP at the receiver.
    pub flow_from: Option<Resolved>,
    /// Nanoseconds since the last one of this kind about this QP or flow, on this interface.
    pub interval: Option<u64>,
    /// The data that it is about.
    pub data: Option<FrameTime>,
    /// Whether that is the CE mark that it answers.
    pub answers: bool,
    /// The notification that it translates.
    pub translates: Option<FrameTime>,
    /// Where that is not known, the frame of the newest notification that it may translate.
    pub may_translate: Option<u32>,
    /// The CNP that translates it.
    pub translated_by: Option<u32>,
    /// Bits a second of the flow before.
    pub rate_before: Option<u64>,
    /// Bits a second of the flow after.
    pub rate_after: Option<u64>,
    /// Who it comes from, which may be known better than by its bytes.
    pub origin: Origin,
    /// The frame that has it, seen before at another place.
    pub copy_of: Option<u32>,
    /// The rules that it shows broken.
    pub broken: Broken,
    /// What it is queued by.
    pub class: Option<Class>,
    /// What the flow's last data before it in the file is queued by.
    pub data_class: Option<Class>,
    /// How the notifications about the QP or flow up to this one are queued beside that data.
    pub company: Option<Company>,
    /// Of a CNP, what tells who made it.
    cnp: Option<Cnp>,
}

impl Notice {
    /// How much later or earlier than that frame it is, in nanoseconds.
    pub fn delay(&self, since: FrameTime) -> i64 {
        i64::try_from(i128::from(self.at) - i128::from(since.at)).unwrap_or(0)
    }

    /// The data's sender, where the notification does not name it.
    pub fn flow_sender(&self) -> Option<IpAddr> {
        let flow = self.flow.filter(|_| self.kind == Kind::WanFcn);
        flow.map(|flow| flow.sender)
    }
}

/// The rules that a notification shows broken: rate, source, border, marks, class.
type Broken = [Option<Rule>; 5];

/// What a data frame led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Led {
    /// The notifications, in the file's order; 0 for none.
    pub frames: [u32; SHOWN],
    /// How many there are.
    pub count: u32,
    /// The rule about CE marks beside Fast CNPs that it shows broken.
    pub rule: Option<Rule>,
}

impl Led {
    fn add(&mut self, frame: u32) {
        if let Some(place) = self.frames.get_mut(self.count as usize) {
            *place = frame;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Takes out one that belongs to another frame after all.
    fn remove(&mut self, frame: u32) {
        let shown = (self.count as usize).min(SHOWN);
        if let Some(place) = self.frames[..shown].iter().position(|f| *f == frame) {
            self.frames[place..].rotate_left(1);
            self.frames[SHOWN - 1] = 0;
            self.count -= 1;
        } else if self.count as usize > SHOWN {
            self.count -= 1;
        }
    }
}

/// One sort of notifications: who of those that send them sends how fast, and in which classes they come.
#[derive(Clone, Debug, Default)]
struct Topic {
    common: Common,
    notifiers: Vec<(IpAddr, NotifierRate)>,
}

impl Topic {
    /// Counts one; returns whether its notifier is faster than `limit` a second, 0 for none.
    fn exceeds(&mut self, at: u64, gist: &Notification, limit: u32) -> bool {
        let who = gist.notifier;
        let known = self.notifiers.iter().any(|(known, _)| *known == who);
        if !known && self.notifiers.len() < NOTIFIERS {
            self.notifiers.push((who, NotifierRate::NEW));
        }
        let one = self.notifiers.iter_mut().find(|(known, _)| *known == who);
        // One more notifier than are told apart is not judged.
        one.is_some_and(|(_, rate)| rate.exceeds(at, limit))
    }
}

/// A frame as Wireshark knows it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its number.
    pub frame: u32,
    /// Its time, in nanoseconds since 1970; `None` where the file has none.
    pub at: Option<u64>,
    /// Where it was captured: the interface is 0 where the file does not say.
    pub place: Place,
}

/// What is known about a notification now, by all that has been seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the flow's sender obeys.
    pub verdict: Option<Verdict>,
    /// Who made it, where it is a CNP.
    pub made: Option<Inference>,
    /// Flows that were forgotten, where the data that it is about is not known.
    pub flows_forgotten: u64,
}

/// What is known about a frame beside what its packet says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Context {
    /// It is a notification.
    Notice(Notice, Outcome),
    /// It is data.
    Data(Led),
    /// If it is a notification, what was known about it was forgotten.
    Forgotten,
}

/// The memory.
#[derive(Debug)]
pub struct Memory {
    settings: Settings,
    correlator: Correlator<History>,
    topics: Bounded<RowKey, Topic>,
    /// Where the first frame was seen, and the first one that was seen elsewhere, or 0.
    places: Option<(Place, u32)>,
    /// When a sort of notifications was seen last, by interface.
    last: Bounded<RowKey, u64>,
    notices: Bounded<u32, Notice>,
    led: Bounded<u32, Led>,
    now: u64,
    tick: u64,
    /// The greatest number of a notification that was forgotten.
    forgotten: u32,
}

impl Memory {
    /// Nothing is known yet.
    pub fn new(settings: Settings, limits: Limits) -> Self {
        Self {
            settings,
            correlator: Correlator::new(limits.flows, limits.connections),
            topics: Bounded::new(limits.flows),
            places: None,
            last: Bounded::new(limits.flows),
            notices: Bounded::new(limits.notices),
            led: Bounded::new(limits.notices),
            now: 0,
            tick: 0,
            forgotten: 0,
        }
    }

    fn frame_time(&mut self, seen: &Seen) -> FrameTime {
        self.tick += 1;
        let at = seen.at.unwrap_or(self.now);
        self.now = self.now.max(at);
        let (first, elsewhere) = self.places.get_or_insert((seen.place, 0));
        if *elsewhere == 0 && (*first != seen.place || seen.place.is_of_several()) {
            *elsewhere = seen.frame;
        }
        FrameTime {
            at,
            frame: seen.frame,
        }
    }

    /// Time and place of a frame, for the correlator, which recognises it at another place if it is `watched`.
    fn capture(&self, moment: FrameTime, place: Place, watched: bool) -> Capture {
        let several = self.places.is_some_and(|(_, elsewhere)| elsewhere != 0);
        // Another place may begin later by its clock alone, and see what passed here before.
        let is_young = self.correlator.sightings().remembered() < YOUNG;
        Capture {
            at: moment.at,
            captured: moment.at,
            frame: moment.frame,
            place,
            watched: watched || several || is_young,
            several,
            sampled: false,
        }
    }

    /// Takes in a packet that is no notification, once, in the order of the file.
    pub fn passed(&mut self, seen: Seen, frame: &Frame<'_>) {
        let moment = self.frame_time(&seen);
        let Some(data) = DataPacket::from_frame(frame) else {
            let capture = self.capture(moment, seen.place, false);
            if !capture.watched {
                self.correlator.passed(&capture);
            }
            self.correlator.other(&capture, frame);
            return;
        };
        // Marks are looked at from the first packet on, rates from where there is another place.
        let able = access::lists(&self.settings.able, data.source);
        let capture = self.capture(moment, seen.place, able);
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
        if shown.rule.is_some() {
            self.led_mut(moment.frame).rule = shown.rule;
        }
        if is_late {
            self.correct(moment, &shown.key, shown.look.ce, data.outer.is_some());
        }
    }

    /// Data that comes late in the file may be what notifications are about that came before it.
    #[cold]
    fn correct(&mut self, data: FrameTime, key: &FlowKey, ce: bool, tunnelled: bool) {
        let Self {
            correlator,
            notices,
            led,
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
                Kind::Cnp if notice.answers => ce,
                _ => true,
            };
            let later = notice.data.is_none_or(|known| known.at <= data.at);
            // What lies in the file behind a notification of the same time is not before it.
            if !fits || !later || data.at >= notice.at {
                continue;
            }
            if let Some(before) = notice.data.replace(data)
                && let Some(led) = led.get_mut(&before.frame)
            {
                led.remove(frame);
            }
            led.get_or_insert_with(data.frame, *tick, Led::default)
                .add(frame);
        }
    }

    fn led_mut(&mut self, frame: u32) -> &mut Led {
        self.led.get_or_insert_with(frame, self.tick, Led::default)
    }

    /// Takes in a notification, once, in the order of the file.
    pub fn notified(&mut self, seen: Seen, heard: &correlator::Notice<'_>) {
        let moment = self.frame_time(&seen);
        let FrameTime { at, frame } = moment;
        let gist = heard.notification;
        let capture = self.capture(moment, seen.place, true);
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
        let company = topic.common.company(data_class);
        if let (Some(duties), None) = (Duties::for_kind(gist.kind), earlier) {
            let too_fast = topic.exceeds(at, gist, self.settings.flow_rate);
            broken[0] = duties.rate_about(&gist.subject).filter(|_| too_fast);
            broken[1] = rules::untrusted(&self.settings.trusted, gist);
            broken[2] = rules::crosses(&self.settings.domain, gist);
        }
        let told = (self.correlator).notified(&capture, heard, &about, &mut topic.common);
        broken[3] = told.rule;
        let interval = self.interval(RowKey::new(gist, Some(seen.place.interface())), at);
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
            answers: false,
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
            company,
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
        // A frame that holds two of them counts as the last.
        let forgotten = &mut self.forgotten;
        let (_, place) = self.notices.get_or_insert_evicting(
            frame,
            self.tick,
            || notice,
            |number| *forgotten = (*forgotten).max(*number),
        );
        *place = notice;
        // A translation leads back to the notification, and that to the data.
        if let (Some(data), None) = (notice.data, notice.translates) {
            self.led_mut(data.frame).add(frame);
        }
        if let Some(translated) = notice.translates
            && let Some(translated) = self.notices.get_mut(&translated.frame)
        {
            translated.translated_by.get_or_insert(frame);
        }
    }

    /// Finds the data that a notification is about, of a flow that is known.
    fn find_data(
        &mut self,
        moment: FrameTime,
        gist: &Notification,
        about: &About,
        notice: &mut Notice,
    ) {
        let at = moment.at;
        let labelled = self.correlator.labelled(gist).filter(|data| data.at <= at);
        let labelled = labelled.map(|data| FrameTime {
            at: data.at,
            frame: data.frame,
        });
        let flows = self.correlator.flows_mut();
        let Some(flow) = about.flow.and_then(|key| flows.get_mut(&key)) else {
            return;
        };
        let history = &mut flow.extra;
        if gist.kind == Kind::Cnp && notice.origin == Origin::Receiver {
            notice.data = history.marked_before(at);
            notice.answers = notice.data.is_some();
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

    /// Time since the last one of that sort; `None` for the first, and where the file goes back in time.
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

    /// The flow that a notification is about, by what is known now.
    pub fn flow_of(&self, gist: &Notification) -> Option<FlowKey> {
        self.correlator.flow_of(gist)
    }

    fn sender_qp(&self, gist: &Notification, flow: Option<&FlowKey>) -> Option<(Qp, Resolved)> {
        match gist.subject {
            Subject::SenderQp(qp) => Some((qp, Resolved::Packet)),
            _ => self.correlator.sender_qp(flow?),
        }
    }

    /// What is known about a frame, now.
    pub fn context(&self, frame: u32) -> Option<Context> {
        if let Some(notice) = self.notices.get(&frame) {
            return Some(self.notice(frame, *notice));
        }
        if let Some(led) = self.led.get(&frame) {
            return Some(Context::Data(Led {
                rule: led.rule.filter(|rule| self.holds(frame, *rule)),
                ..*led
            }));
        }
        (frame <= self.forgotten).then_some(Context::Forgotten)
    }

    /// Whether a rule about marks still holds in `frame`: what seemed unclear at the only place was marked before the switch,
    /// where other places were seen since.
    fn holds(&self, frame: u32, rule: Rule) -> bool {
        let later = |(_, elsewhere)| elsewhere > frame;
        rule != Rule::FastCnpMarkUnclear || !self.places.is_some_and(later)
    }

    fn notice(&self, frame: u32, mut notice: Notice) -> Context {
        let flows = self.correlator.flows();
        let flow = notice.flow.and_then(|key| flows.get(&key));
        // It may have begun anew since.
        let flow = flow.filter(|flow| flow.first <= notice.at);
        if notice.rate_after.is_none() {
            let octets =
                flow.and_then(|flow| flow.extra.octets_after(frame, self.now, &self.settings));
            notice.rate_after = octets.map(|octets| rate(octets as f64, self.settings.window));
        }
        // What acknowledgements have told since then holds for the notifications before, too: of the same connection.
        let since = || {
            flow?;
            self.correlator.sender_qp(&notice.flow?)
        };
        notice.sender_qp = notice.sender_qp.or_else(since);
        let holds = |rule: &Rule| self.holds(frame, *rule);
        notice.broken = notice.broken.map(|rule| rule.filter(holds));
        let flows_forgotten = match notice.data {
            Some(_) => 0,
            None => flows.evicted(),
        };
        let verdict = flow.map(|flow| self.correlator.verdict(flow));
        // Where it was seen first is nearest to its maker.
        let first = (notice.copy_of).and_then(|first| self.notices.get(&first)?.cnp);
        let made = first.or(notice.cnp).map(|cnp| self.correlator.maker(&cnp));
        Context::Notice(
            notice,
            Outcome {
                verdict,
                made,
                flows_forgotten,
            },
        )
    }
}

/// Bits a second of so many octets in a window.
fn rate(octets: f64, window: u64) -> u64 {
    (octets * 8e9 / window as f64).round() as u64
}
