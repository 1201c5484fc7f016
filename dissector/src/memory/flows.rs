//! The data flows: what is remembered of each, so that a notification finds the data that it is about.

use super::Settings;
use super::rate::Window;
use super::recent::{Moment, Recent};
use fcn_node::FlowKey;
use fcn_node::watch::rules::Beside;
use fcn_node::watch::{Bounded, Pairs, SeenFlows};
use fcn_wire::Kind;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Data frames of a flow that a notification may be about: more than the last one, as those of several interfaces may lie
/// in the file out of order.
const DATA: usize = 8;
/// Frames marked CE, likewise.
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
    /// The interface that it was captured on.
    pub interface: u32,
    /// UDP source port.
    pub source_port: u16,
    /// Packet sequence number.
    pub psn: u32,
    /// Octets of its IP packet.
    pub octets: u64,
    /// Whether it is marked CE.
    pub ce: bool,
    /// Whether its sender is known to obey Fast CNPs.
    pub able: bool,
}

/// A flow of which data was seen.
#[derive(Debug)]
pub struct Flow {
    first: u64,
    /// The latest time on any interface.
    latest: u64,
    /// Octets are counted on this interface alone: on another they are the same ones.
    interface: u32,
    /// The latest time on that interface.
    last: u64,
    /// The latest time of a notification about it.
    noticed: u64,
    source_port: u16,
    psn: u32,
    octets: u64,
    window: Window,
    recent: Recent<DATA>,
    marked: Recent<MARKED>,
    beside: Beside,
    told: Option<Box<Told>>,
}

/// What only flows need that somebody was notified about.
#[derive(Debug, Default)]
struct Told {
    waiting: VecDeque<Waiting>,
    /// Frames of the last notifications, newest last.
    notices: VecDeque<u32>,
    translatable: Option<Translatable>,
}

/// A notification after which the rate is being measured.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    moment: Moment,
    /// What the flow had carried until then.
    octets: u64,
}

/// A notification that is not for the sender, but for a node that is to tell it.
#[derive(Clone, Copy, Debug)]
pub struct Translatable {
    /// Its frame.
    pub moment: Moment,
    /// How it is said.
    pub kind: Kind,
    /// The node that it is sent to.
    pub told: IpAddr,
}

/// What a data packet has brought about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effect {
    /// It is marked CE beside a Fast CNP, which breaks a rule.
    pub also_marked: bool,
    /// It comes in the file behind a notification about the flow that is later.
    pub late: bool,
}

impl Flow {
    fn new(data: &Data) -> Self {
        Self {
            first: data.moment.at,
            latest: data.moment.at,
            interface: data.interface,
            last: data.moment.at,
            noticed: 0,
            source_port: 0,
            psn: 0,
            octets: 0,
            window: Window::NEW,
            recent: Recent::NEW,
            marked: Recent::NEW,
            beside: Beside::default(),
            told: None,
        }
    }

    /// Takes in a data packet; `measured` is told of each notification whose window is over, and the octets in it.
    fn data(
        &mut self,
        data: &Data,
        settings: &Settings,
        mut measured: impl FnMut(u32, u64),
    ) -> Effect {
        self.latest = data.moment.at.max(self.latest);
        self.recent.push(data.moment);
        if data.ce {
            self.marked.push(data.moment);
        }
        self.source_port = data.source_port;
        self.psn = data.psn;
        if data.interface == self.interface {
            let at = data.moment.at.max(self.last);
            if let Some(told) = &mut self.told {
                told.close(at, settings.window, self.octets, &mut measured);
            }
            self.octets = self.octets.saturating_add(data.octets);
            (self.window).add(settings.step, self.last, at, data.octets);
            self.last = at;
        }
        Effect {
            also_marked: (self.beside).is_broken(self.latest, data.ce, data.able),
            late: data.moment.at < self.noticed,
        }
    }

    /// Takes in a notification about it.
    pub fn notified(&mut self, moment: Moment, beside: bool, translatable: Option<Translatable>) {
        if beside {
            self.beside.notified(moment.at.max(self.latest));
        }
        self.noticed = self.noticed.max(moment.at);
        let told = self.told.get_or_insert_default();
        if told.waiting.len() < WAITING {
            told.waiting.push_back(Waiting {
                moment,
                octets: self.octets,
            });
        }
        if told.notices.len() == CORRECTABLE {
            told.notices.pop_front();
        }
        told.notices.push_back(moment.frame);
        if translatable.is_some() {
            told.translatable = translatable;
        }
    }

    /// The last data frame that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<Moment> {
        self.recent.before(at)
    }

    /// The last data frame marked CE that is not later than `at`.
    pub fn marked_before(&self, at: u64) -> Option<Moment> {
        self.marked.before(at)
    }

    /// Octets in the window before `at`; `None` where the flow is too young to say.
    pub fn octets_before(&self, at: u64, settings: &Settings) -> Option<f64> {
        let at = at.max(self.last);
        let octets = self.window.before(settings.step, self.last, at);
        let age = at.saturating_sub(self.first);
        fcn_node::watch::rules::of_window(octets, age, settings.window)
    }

    /// Octets in the window after the notification in `frame`, if that is over at `now`.
    pub fn octets_after(&self, frame: u32, now: u64, settings: &Settings) -> Option<u64> {
        let waiting = &self.told.as_ref()?.waiting;
        let waiting = waiting.iter().find(|w| w.moment.frame == frame)?;
        let over = now > waiting.moment.at.saturating_add(settings.window);
        over.then(|| self.octets.saturating_sub(waiting.octets))
    }

    /// Frames of the last notifications about it.
    pub fn notices(&self) -> impl Iterator<Item = u32> + '_ {
        let told = self.told.iter();
        told.flat_map(|told| told.notices.iter().copied())
    }

    /// The last notification about it that a node is to translate.
    pub fn translatable(&self) -> Option<Translatable> {
        self.told.as_ref()?.translatable
    }
}

impl Told {
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
}

impl Flows {
    /// Keeps at most `limit` flows.
    pub fn new(limit: usize) -> Self {
        Self {
            table: Bounded::new(limit),
            pairs: Pairs::new(limit),
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
        let effect = flow.data(data, settings, measured);
        if new {
            self.pairs.link(slot, key.sender, key.receiver);
        }
        effect
    }

    /// The flow called `key`.
    pub fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.table.get(key)
    }

    /// The flow called `key`, to be changed.
    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.table.get_mut(key)
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
