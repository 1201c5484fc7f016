//! The data flows: what is remembered of each, so that a notification finds the data that it is about.

use super::Settings;
use super::rate::{self, Steps};
use super::recent::{FrameTime, Recent};
use fcn_observe::data::Sequence;
use fcn_observe::marks::Marks;
use fcn_observe::origin::SeenData;
use fcn_observe::sightings::{Look, Place, Sightings};
use fcn_observe::{Class, FlowKey};
use fcn_observe::{FlowTable, Obedience, Order, Sequenced, Verdict};
use fcn_wire::Rule;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Data frames of a flow that a notification may be about: those of several interfaces lie in a file out of order by fewer.
const RECENT: usize = 16;
/// Frames marked CE that a notification may be about: more than the last one, as those of several interfaces may lie in the
/// file out of order.
const MARKED: usize = 4;
/// Notifications about a flow after which its rate is being measured: more than come in 1 ms at the rate limit's default.
const WAITING: usize = 32;
/// Notifications about a flow that data found later, but sent earlier, may belong to.
const CORRECTABLE: usize = 8;

/// What is to be known of a data packet.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its frame.
    pub moment: FrameTime,
    /// Where it was captured.
    pub place: Place,
    /// Whether it is looked for at other places, and whether there are several.
    pub several: (bool, bool),
    /// Its first sighting, where this is another one: its octets are counted already.
    pub earlier: Option<Look>,
    /// UDP source port.
    pub source_port: u16,
    /// Its packet sequence number.
    pub sequence: Sequence,
    /// Octets of its IP packet.
    pub octets: u64,
    /// What the network may choose its path by.
    pub entropy: u32,
    /// True if it ends a message.
    pub ends_message: bool,
    /// Whether it is marked CE.
    pub ce: bool,
    /// Whether its sender is known to obey Fast CNPs.
    pub able: bool,
    /// What it is queued by.
    pub class: Option<Class>,
}

/// A flow of which data was seen.
#[derive(Debug, Default)]
pub struct Flow {
    pub first: u64,
    /// The latest time of those that are counted.
    last: u64,
    octets: u64,
    /// Octets in the step of the rate's window that `last` lies in.
    in_step: u32,
    source_port: u16,
    /// What the last one in the file is queued by.
    pub class: Option<Class>,
    recent: Recent<RECENT>,
    obedience: Obedience,
    steps: Steps,
    marked: Recent<MARKED>,
    marks: Marks,
    /// The latest time of a notification about it.
    noticed: u64,
    waiting: VecDeque<Waiting>,
    /// Frames of the last notifications, newest last.
    notices: VecDeque<u32>,
}

/// A notification after which the rate is being measured.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    moment: FrameTime,
    /// What the flow had carried until then.
    octets: u64,
}

/// What a data packet has brought about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effect {
    /// The rule about CE marks beside Fast CNPs that it shows broken.
    pub rule: Option<Rule>,
    /// It comes in the file behind a notification about the flow that is later.
    pub late: bool,
}

impl Flow {
    /// One whose first packet came at that time.
    pub fn new(at: u64) -> Self {
        Self {
            first: at,
            last: at,
            ..Self::default()
        }
    }

    /// The latest time of its data.
    fn latest(&self) -> u64 {
        self.recent.latest().map_or(self.first, |latest| latest.at)
    }

    /// Takes in a data packet; `measured` is told of each notification whose window is over, and the octets in it.
    #[inline]
    pub fn data(
        &mut self,
        data: &Data,
        settings: &Settings,
        mut measured: impl FnMut(u32, u64),
    ) -> Effect {
        let FrameTime { at, frame } = data.moment;
        self.recent.push(data.moment);
        self.source_port = data.source_port;
        // Of what was seen before at another place nothing is news, nor is it where a switch has changed its class.
        if data.earlier.is_none() {
            self.class = data.class;
        }
        if data.earlier.is_none() {
            let order = self.obedience.sequenced(data.sequence, data.place);
            if order != Order::Overtaken {
                self.count(at.max(self.last), data.octets, settings, &mut measured);
            }
            if order.counts() {
                self.obedience.data(at, data.octets, data.entropy);
                if data.ends_message {
                    self.obedience.message_ends();
                }
                if data.ce {
                    self.obedience.marked();
                }
            }
        }
        let mut effect = Effect {
            rule: None,
            late: at < self.noticed,
        };
        if data.ce {
            self.marked.push(data.moment);
        }
        if data.ce || data.able && data.several.0 {
            let look = Look {
                at: self.latest(),
                frame,
                place: data.place,
                ce: data.ce,
            };
            effect.rule = self.marks.data(look, data.able, data.several, data.earlier);
        }
        effect
    }

    /// Counts octets at `at`, which is not before the last time.
    #[inline]
    fn count(
        &mut self,
        at: u64,
        octets: u64,
        settings: &Settings,
        measured: &mut impl FnMut(u32, u64),
    ) {
        // Measured is what came before this packet.
        while let Some(first) = self.waiting.front()
            && at > first.moment.at.saturating_add(settings.window)
        {
            measured(first.moment.frame, self.octets.saturating_sub(first.octets));
            self.waiting.pop_front();
        }
        self.octets = self.octets.saturating_add(octets);
        let (from, to) = (self.last / settings.step, at / settings.step);
        if from != to {
            if Steps::matters(from, to) {
                self.steps.close(from, self.in_step);
            }
            self.in_step = 0;
        }
        self.last = at;
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        self.in_step = self.in_step.saturating_add(octets);
    }

    /// Takes in a notification about it, whether it is seen for the first time, and where, whether it is a Fast CNP from a
    /// switch, and whether there are several places. Returns the rule about CE marks that it shows broken.
    pub fn notified(
        &mut self,
        moment: FrameTime,
        (is_new, missed): (bool, Option<u64>),
        (place, fast, several): (Place, bool, bool),
    ) -> Option<Rule> {
        let at = moment.at.max(self.latest());
        let rule = (fast && is_new).then(|| self.marks.notified(at, place, several));
        let rule = rule.flatten();
        self.noticed = self.noticed.max(moment.at);
        if let Some(last) = missed.filter(|_| is_new) {
            self.obedience.missed(last);
        }
        self.obedience.notified_at(moment.at, place, !is_new);
        if self.waiting.len() < WAITING {
            self.waiting.push_back(Waiting {
                moment,
                octets: self.octets,
            });
        }
        if self.notices.len() == CORRECTABLE {
            self.notices.pop_front();
        }
        self.notices.push_back(moment.frame);
        rule
    }

    /// The last data frame that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<FrameTime> {
        self.recent.before(at)
    }

    /// The last data frame marked CE that is not later than `at`.
    pub fn marked_before(&self, at: u64) -> Option<FrameTime> {
        self.marked.before(at)
    }

    /// What tells who made a CNP about it; `whole` is whether its connection was seen to be set up.
    pub fn seen(&self, whole: bool) -> SeenData {
        SeenData {
            first: self.first,
            unanswered: self.marks.unanswered(),
            whole,
        }
    }

    /// Octets in the window before `at`; `None` where the flow is too young to say.
    pub fn octets_before(&self, at: u64, settings: &Settings) -> Option<f64> {
        let at = at.max(self.last);
        let octets = rate::before(&self.steps, self.in_step, settings.step, self.last, at);
        let age = at.saturating_sub(self.first);
        fcn_observe::rules::of_window(octets, age, settings.window)
    }

    /// Octets in the window after the notification in `frame`, if that is over at `now`.
    pub fn octets_after(&self, frame: u32, now: u64, settings: &Settings) -> Option<u64> {
        let waiting = (self.waiting.iter()).find(|waiting| waiting.moment.frame == frame)?;
        let over = now > waiting.moment.at.saturating_add(settings.window);
        over.then(|| self.octets.saturating_sub(waiting.octets))
    }

    /// The receiver has answered the CE marks so far.
    pub fn answered(&mut self) {
        self.marks.answered();
    }

    /// Whether its sender obeys; its packets are among these.
    pub fn verdict(&self, sightings: &Sightings) -> Verdict {
        self.obedience.verdict_among(sightings)
    }

    /// Frames of the last notifications about it.
    pub fn notices(&self) -> impl Iterator<Item = u32> + '_ {
        self.notices.iter().copied()
    }
}

/// The flows.
pub type Flows = FlowTable<Flow>;

impl Sequenced for Flow {
    fn highest_psn(&self) -> Option<u32> {
        self.obedience.highest_psn()
    }
}

/// Of the flows from one host to another that came from that UDP port last, the one seen last.
pub fn by_port(flows: &Flows, sender: IpAddr, receiver: IpAddr, port: u16) -> Option<FlowKey> {
    flows
        .between(sender, receiver)
        .filter(|(_, flow)| flow.source_port == port)
        .max_by_key(|(_, flow)| flow.latest())
        .map(|(key, _)| *key)
}
