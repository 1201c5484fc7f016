//! History of a flow: frames and rates, so that a notification finds the data that it is about.

use super::Settings;
use super::rate::{self, Steps};
use super::recent::{FrameTime, Recent};
use fcn_observe::Order;
use fcn_observe::correlator::Data;
use std::collections::VecDeque;

/// Data frames of a flow that a notification may be about: those of several interfaces lie in a file out of order by fewer.
const RECENT: usize = 16;
/// Frames marked CE that a notification may be about: more than the last one, as those of several interfaces may lie in the
/// file out of order.
const MARKED: usize = 4;
/// Notifications about a flow after which its rate is being measured: more than come in 1 ms at the rate limit's default.
const WAITING: usize = 32;
/// Notifications about a flow that data found later, but sent earlier, may belong to.
const CORRECTABLE: usize = 8;

/// Frames and rate of a flow of which data was seen.
#[derive(Debug, Default)]
pub struct History {
    /// The latest time of those that are counted.
    last: u64,
    octets: u64,
    /// Octets in the step of the rate's window that `last` lies in.
    in_step: u32,
    recent: Recent<RECENT>,
    steps: Steps,
    marked: Recent<MARKED>,
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

impl History {
    /// Takes in a data packet; `measured` gets each notification whose window is over, and the octets in it. Returns whether
    /// it comes in the file after a notification about the flow that is later.
    #[inline]
    pub fn data(
        &mut self,
        data: &Data,
        settings: &Settings,
        mut measured: impl FnMut(u32, u64),
    ) -> bool {
        let moment = FrameTime {
            at: data.look.at,
            frame: data.look.frame,
        };
        if self.recent.latest().is_none() {
            self.last = moment.at;
        }
        self.recent.push(moment);
        if data.order.is_some_and(|order| order != Order::Overtaken) {
            let at = moment.at.max(self.last);
            self.count(at, data.octets, settings, &mut measured);
        }
        if data.look.ce {
            self.marked.push(moment);
        }
        moment.at < self.noticed
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

    /// Takes in a notification about it.
    pub fn notified(&mut self, moment: FrameTime) {
        self.noticed = self.noticed.max(moment.at);
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
    }

    /// The last data frame that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<FrameTime> {
        self.recent.before(at)
    }

    /// The last data frame marked CE that is not later than `at`.
    pub fn marked_before(&self, at: u64) -> Option<FrameTime> {
        self.marked.before(at)
    }

    /// Octets in the window before `at`; `None` where the flow, which began at `first`, is too young to say.
    pub fn octets_before(&self, at: u64, first: u64, settings: &Settings) -> Option<f64> {
        let at = at.max(self.last);
        let octets = rate::before(&self.steps, self.in_step, settings.step, self.last, at);
        let age = at.saturating_sub(first);
        fcn_observe::rules::of_window(octets, age, settings.window)
    }

    /// Octets in the window after the notification in `frame`, if that is over at `now`.
    pub fn octets_after(&self, frame: u32, now: u64, settings: &Settings) -> Option<u64> {
        let waiting = (self.waiting.iter()).find(|waiting| waiting.moment.frame == frame)?;
        let over = now > waiting.moment.at.saturating_add(settings.window);
        over.then(|| self.octets.saturating_sub(waiting.octets))
    }

    /// Frames of the last notifications about it.
    pub fn notices(&self) -> impl Iterator<Item = u32> + '_ {
        self.notices.iter().copied()
    }
}
