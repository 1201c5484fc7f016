//! History of a flow: recent frames and rate, to find the data that a notification is about.

use super::Settings;
use super::rate::{self, Steps};
use super::recent::{FrameTime, Recent};
use fcn_observe::Order;
use fcn_observe::correlator::Data;
use std::collections::VecDeque;

/// Number of recent data frames of a flow that a notification may be about. Frames of several
/// interfaces are out of order in a file by fewer than this.
const RECENT: usize = 16;
/// Number of recent CE-marked frames that a notification may be about: more than one, because
/// frames of several interfaces may be out of order in the file.
const MARKED: usize = 4;
/// Maximum number of notifications about a flow with a pending rate measurement: more than arrive
/// in 1 ms at the default rate limit.
const MAX_PENDING_RATES: usize = 32;
/// Number of recent notifications about a flow that may be reassigned to data found later in the
/// file, but sent earlier.
const MAX_CORRECTABLE: usize = 8;

/// Frames and rate of a flow with captured data.
#[derive(Debug, Default)]
pub struct History {
    /// Latest time of the counted packets.
    last: u64,
    octets: u64,
    /// Octets in the step of the rate's window that contains `last`.
    in_step: u32,
    recent: Recent<RECENT>,
    steps: Steps,
    marked: Recent<MARKED>,
    /// Latest time of a notification about it.
    noticed: u64,
    pending: VecDeque<PendingRate>,
    /// Frames of the latest notifications, newest last.
    notices: VecDeque<u32>,
}

/// A notification with a pending rate measurement.
#[derive(Clone, Copy, Debug)]
struct PendingRate {
    moment: FrameTime,
    /// Octets that the flow had carried until then.
    octets: u64,
}

impl History {
    /// Processes a data packet; calls `measured` for each notification whose window is over, with
    /// the octets in it. Returns true if the packet follows in the file a notification about the
    /// flow with a later time.
    #[inline]
    pub fn data(
        &mut self,
        data: &Data,
        settings: &Settings,
        mut measured: impl FnMut(u32, u64),
    ) -> bool {
        let moment = FrameTime {
            at: data.sighting.at,
            frame: data.sighting.frame,
        };
        if data.reconnects.is_some() {
            *self = Self::default();
        }
        if self.recent.latest().is_none() {
            self.last = moment.at;
        }
        self.recent.push(moment);
        if data.order.is_some_and(|order| order != Order::Overtaken) {
            let at = moment.at.max(self.last);
            self.count(at, data.octets, settings, &mut measured);
        }
        if data.sighting.ce {
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
        // The measurement excludes this packet.
        while let Some(first) = self.pending.front()
            && at > first.moment.at.saturating_add(settings.window)
        {
            measured(first.moment.frame, self.octets.saturating_sub(first.octets));
            self.pending.pop_front();
        }
        self.octets = self.octets.saturating_add(octets);
        let (from, to) = (self.last / settings.step, at / settings.step);
        if from != to {
            if Steps::is_within_window(from, to) {
                self.steps.close(from, self.in_step);
            }
            self.in_step = 0;
        }
        self.last = at;
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        self.in_step = self.in_step.saturating_add(octets);
    }

    /// Processes a notification about the flow.
    pub fn notified(&mut self, moment: FrameTime) {
        self.noticed = self.noticed.max(moment.at);
        if self.pending.len() < MAX_PENDING_RATES {
            self.pending.push_back(PendingRate {
                moment,
                octets: self.octets,
            });
        }
        if self.notices.len() == MAX_CORRECTABLE {
            self.notices.pop_front();
        }
        self.notices.push_back(moment.frame);
    }

    /// Returns the last data frame that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<FrameTime> {
        self.recent.before(at)
    }

    /// Returns the last CE-marked data frame that is not later than `at`.
    pub fn marked_before(&self, at: u64) -> Option<FrameTime> {
        self.marked.before(at)
    }

    /// Returns the octets in the window before `at`; `None` if the flow, which began at `first`, is
    /// too young.
    pub fn octets_before(&self, at: u64, first: u64, settings: &Settings) -> Option<f64> {
        let at = at.max(self.last);
        let octets = rate::before(&self.steps, self.in_step, settings.step, self.last, at);
        let age = at.saturating_sub(first);
        fcn_observe::rules::scaled_to_window(octets, age, settings.window)
    }

    /// Returns the octets in the window after the notification in `frame`, if the window is over at
    /// `now`.
    pub fn octets_after(&self, frame: u32, now: u64, settings: &Settings) -> Option<u64> {
        let pending = (self.pending.iter()).find(|waiting| waiting.moment.frame == frame)?;
        let over = now > pending.moment.at.saturating_add(settings.window);
        over.then(|| self.octets.saturating_sub(pending.octets))
    }

    /// Returns the frames of the latest notifications about the flow.
    pub fn notices(&self) -> impl Iterator<Item = u32> + '_ {
        self.notices.iter().copied()
    }
}
