//! The data flows: what is remembered of each, so that a notification finds the data that it is about.

use super::Settings;
use super::log::Log;
use super::rate::{self, Steps};
use super::recent::{Moment, Recent};
use fcn_observe::FlowKey;
use fcn_observe::marks::Marks;
use fcn_observe::sightings::{Look, Place};
use fcn_observe::{Bounded, Obedience, Pairs, SeenFlows, Verdict};
use fcn_wire::Rule;
use std::collections::VecDeque;
use std::net::IpAddr;

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
    pub moment: Moment,
    /// Where it was captured.
    pub place: Place,
    /// Whether it is looked for at other places, and whether there are several.
    pub several: (bool, bool),
    /// Its first sighting, where this is another one: its octets are counted already.
    pub earlier: Option<Look>,
    /// UDP source port.
    pub source_port: u16,
    /// Packet sequence number.
    pub psn: u32,
    /// Octets of its IP packet.
    pub octets: u64,
    /// What the network may choose its path by.
    pub entropy: u32,
    /// Whether it is marked CE.
    pub ce: bool,
    /// Whether its sender is known to obey Fast CNPs.
    pub able: bool,
}

/// A flow of which data was seen.
///
/// Tshark's own work leaves nothing in the caches from one packet of a flow to the next, so what every packet changes lies
/// in one line of them, and the table's key in the next.
#[derive(Debug)]
#[repr(align(64))]
pub struct Flow {
    first: u64,
    /// The latest time on any interface.
    latest: u64,
    /// The frame of that time.
    frame: u32,
    /// Its last frame in the file.
    logged: u32,
    /// Packet sequence number of the last one in the file.
    psn: u32,
    /// The latest time of those that are counted.
    last: u64,
    octets: u64,
    /// Octets in the step of the rate's window that `last` lies in.
    in_step: u32,
    source_port: u16,
    /// Whether a notification's window is not over.
    is_waiting: bool,
    rare: Option<Box<Rare>>,
}

/// What Tshark need not fetch together with the rest of a flow.
#[derive(Debug)]
struct Rare {
    steps: Steps,
    obedience: Obedience,
    marked: Recent<MARKED>,
    marks: Marks,
    /// The latest time of a notification about it.
    noticed: u64,
    waiting: VecDeque<Waiting>,
    /// Frames of the last notifications, newest last.
    notices: VecDeque<u32>,
}

impl Default for Rare {
    fn default() -> Self {
        Self {
            steps: Steps::NEW,
            obedience: Obedience::new(),
            marked: Recent::NEW,
            marks: Marks::default(),
            noticed: 0,
            waiting: VecDeque::new(),
            notices: VecDeque::new(),
        }
    }
}

/// A notification after which the rate is being measured.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    moment: Moment,
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
    fn new(data: &Data) -> Self {
        let Moment { at, frame } = data.moment;
        Self {
            first: at,
            latest: at,
            frame,
            logged: 0,
            psn: 0,
            last: at,
            octets: 0,
            in_step: 0,
            source_port: 0,
            is_waiting: false,
            rare: None,
        }
    }

    /// Takes in a data packet, which is in `log` from now on; `measured` is told of each notification whose window is over,
    /// and the octets in it. `noticed` is the latest time of any notification.
    #[inline]
    fn data(
        &mut self,
        data: &Data,
        settings: &Settings,
        log: &mut Log,
        noticed: u64,
        mut measured: impl FnMut(u32, u64),
    ) -> Effect {
        let Moment { at, frame } = data.moment;
        if at >= self.latest {
            (self.latest, self.frame) = (at, frame);
        }
        log.push(data.moment, self.logged);
        self.logged = frame;
        self.source_port = data.source_port;
        self.psn = data.psn;
        if data.earlier.is_none() {
            self.count(at.max(self.last), data.octets, settings, &mut measured);
            let rare = self.rare.get_or_insert_default();
            rare.obedience.data(at, data.octets, data.entropy);
            if data.ce {
                rare.obedience.marked();
            }
        }
        let mut effect = Effect::default();
        if data.ce {
            let rare = self.rare.get_or_insert_default();
            rare.marked.push(data.moment);
        }
        if data.ce || data.able && data.several.0 {
            let look = Look {
                at: self.latest,
                frame,
                place: data.place,
                ce: data.ce,
            };
            let marks = &mut self.rare.get_or_insert_default().marks;
            effect.rule = marks.data(look, data.able, data.several, data.earlier);
        }
        // In a file that is in order no flow has to be asked.
        if at < noticed {
            effect.late = self.rare.as_ref().is_some_and(|rare| at < rare.noticed);
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
        if self.is_waiting
            && let Some(rare) = &mut self.rare
        {
            rare.close(at, settings.window, self.octets, measured);
            self.is_waiting = !rare.waiting.is_empty();
        }
        self.octets = self.octets.saturating_add(octets);
        if at != self.last {
            let (from, to) = (self.last / settings.step, at / settings.step);
            if from != to {
                if Steps::matters(from, to) {
                    let steps = &mut self.rare.get_or_insert_default().steps;
                    steps.close(from, self.in_step);
                }
                self.in_step = 0;
            }
            self.last = at;
        }
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        self.in_step = self.in_step.saturating_add(octets);
    }

    /// Takes in a notification about it, whether it is seen for the first time, and where, if it is a Fast CNP from a
    /// switch, and whether there are several places. Returns the rule about CE marks that it shows broken.
    pub fn notified(
        &mut self,
        moment: Moment,
        is_new: bool,
        fast: Option<(Place, bool)>,
    ) -> Option<Rule> {
        let rare = self.rare.get_or_insert_default();
        let at = moment.at.max(self.latest);
        let rule = fast.and_then(|(place, several)| rare.marks.notified(at, place, several));
        rare.noticed = rare.noticed.max(moment.at);
        if is_new {
            rare.obedience.notified(moment.at);
        }
        if rare.waiting.len() < WAITING {
            rare.waiting.push_back(Waiting {
                moment,
                octets: self.octets,
            });
            self.is_waiting = true;
        }
        if rare.notices.len() == CORRECTABLE {
            rare.notices.pop_front();
        }
        rare.notices.push_back(moment.frame);
        rule
    }

    /// The last data frame that is not later than `at`.
    fn before(&self, log: &Log, at: u64) -> Option<Moment> {
        if self.latest <= at {
            return Some(Moment {
                at: self.latest,
                frame: self.frame,
            });
        }
        log.before(self.logged, at)
    }

    /// The last data frame marked CE that is not later than `at`.
    pub fn marked_before(&self, at: u64) -> Option<Moment> {
        self.rare.as_ref()?.marked.before(at)
    }

    /// When the last CE mark was seen that the receiver has not answered.
    pub fn unanswered(&self) -> Option<u64> {
        self.rare.as_ref()?.marks.unanswered()
    }

    /// Octets in the window before `at`; `None` where the flow is too young to say.
    pub fn octets_before(&self, at: u64, settings: &Settings) -> Option<f64> {
        let at = at.max(self.last);
        let steps = self.rare.as_ref().map(|rare| &rare.steps);
        let octets = rate::before(steps, self.in_step, settings.step, self.last, at);
        let age = at.saturating_sub(self.first);
        fcn_observe::rules::of_window(octets, age, settings.window)
    }

    /// Octets in the window after the notification in `frame`, if that is over at `now`.
    pub fn octets_after(&self, frame: u32, now: u64, settings: &Settings) -> Option<u64> {
        let waiting = &self.rare.as_ref()?.waiting;
        let waiting = waiting.iter().find(|w| w.moment.frame == frame)?;
        let over = now > waiting.moment.at.saturating_add(settings.window);
        over.then(|| self.octets.saturating_sub(waiting.octets))
    }

    /// Whether its sender obeys.
    pub fn verdict(&self) -> Verdict {
        (self.rare.as_ref()).map_or_else(Verdict::default, |rare| rare.obedience.verdict())
    }

    /// Frames of the last notifications about it.
    pub fn notices(&self) -> impl Iterator<Item = u32> + '_ {
        let rare = self.rare.iter();
        rare.flat_map(|rare| rare.notices.iter().copied())
    }
}

impl Rare {
    /// Measures the notifications whose window is over when a packet comes at `at`, which is not among `octets` yet.
    fn close(&mut self, at: u64, window: u64, octets: u64, measured: &mut impl FnMut(u32, u64)) {
        while let Some(first) = self.waiting.front() {
            if at <= first.moment.at.saturating_add(window) {
                break;
            }
            measured(first.moment.frame, octets.saturating_sub(first.octets));
            self.waiting.pop_front();
        }
    }
}

/// At most so many flows; past the limit those leave first whose data was seen longest ago.
#[derive(Debug)]
pub struct Flows {
    table: Bounded<FlowKey, Flow>,
    pairs: Pairs,
    log: Log,
    /// The latest time of a notification about any of them.
    noticed: u64,
}

impl Flows {
    /// Keeps at most `limit` flows.
    pub fn new(limit: usize) -> Self {
        Self {
            table: Bounded::new(limit),
            pairs: Pairs::new(limit),
            log: Log::default(),
            noticed: 0,
        }
    }

    /// Takes in a data packet of `key`; `tick` says which packet it is.
    pub fn data(
        &mut self,
        key: FlowKey,
        tick: u64,
        data: &Data,
        settings: &Settings,
        measured: impl FnMut(u32, u64),
    ) -> Effect {
        let pairs = &mut self.pairs;
        let mut new = false;
        let (slot, flow) = self.table.get_or_insert_evicting(
            key,
            tick,
            || {
                new = true;
                Flow::new(data)
            },
            |slot, key, _| pairs.unlink(slot, key.sender, key.receiver),
        );
        let effect = flow.data(data, settings, &mut self.log, self.noticed, measured);
        if new {
            self.pairs.link(slot, key.sender, key.receiver);
        }
        effect
    }

    /// The flow called `key`.
    pub fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.table.get(key)
    }

    /// The flow called `key`, for a notification about it at `at`, and its last data frame that is not later.
    pub fn notified(&mut self, key: &FlowKey, at: u64) -> Option<(&mut Flow, Option<Moment>)> {
        self.noticed = self.noticed.max(at);
        let flow = self.table.get_mut(key)?;
        let before = flow.before(&self.log, at);
        Some((flow, before))
    }

    /// The receiver has answered the CE marks of that flow so far.
    pub fn answered(&mut self, key: &FlowKey) {
        let flow = self.table.get_mut(key);
        if let Some(rare) = flow.and_then(|flow| flow.rare.as_mut()) {
            rare.marks.answered();
        }
    }

    /// Of the flows from one host to another that came from that UDP port last, the one seen last.
    pub fn by_port(&self, sender: IpAddr, receiver: IpAddr, port: u16) -> Option<FlowKey> {
        self.chain(sender, receiver)
            .filter(|(_, flow)| flow.source_port == port)
            .max_by_key(|(_, flow)| flow.latest)
            .map(|(key, _)| *key)
    }

    fn chain(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = (&FlowKey, &Flow)> {
        self.pairs
            .chain(sender, receiver)
            .filter_map(|slot| self.table.at(slot))
            .filter(move |(key, _)| key.sender == sender && key.receiver == receiver)
    }

    /// Flows that have had to leave.
    pub const fn evicted(&self) -> u64 {
        self.table.evicted()
    }

    /// Flows kept.
    #[cfg(test)]
    pub const fn len(&self) -> usize {
        self.table.len()
    }
}

impl SeenFlows for Flows {
    fn last_psn(&self, key: &FlowKey) -> Option<u32> {
        self.get(key).map(|flow| flow.psn)
    }

    fn between(&self, sender: IpAddr, receiver: IpAddr) -> impl Iterator<Item = (FlowKey, u32)> {
        self.chain(sender, receiver)
            .map(|(key, flow)| (*key, flow.psn))
    }
}
