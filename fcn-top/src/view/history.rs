//! The moment shown: the present, a paused one, or a remembered one. Memory is bounded.

use super::time_series::SECOND;
use crate::record::EventRecord;
use crate::record::RowId;
use crate::tables::Tables;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of remembered moments, one per second.
pub(super) const KEPT: usize = 120;
/// Maximum number of QP rows remembered of each.
pub(super) const KEPT_ROWS: usize = 300;
/// Maximum number of lines of every other table remembered of each.
const KEPT_LINES: usize = 300;

/// Relation of the moment shown to the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The present.
    Live,
    /// Paused since that many nanoseconds.
    Paused(u64),
    /// A remembered moment, that many nanoseconds before the present.
    Frozen(u64),
}

#[derive(Debug, Default)]
enum Shown {
    #[default]
    Live,
    /// Paused. If some tables were not available when the pause began, all of them come with the
    /// next update, and the pause moves there: tables of different moments would contradict each
    /// other.
    Still {
        at: Box<Tables>,
        whole: bool,
    },
    Kept(Rc<Tables>),
}

/// The moments that can be shown.
#[derive(Debug, Default)]
pub(super) struct History {
    live: Tables,
    /// True if the current tables are complete.
    whole: bool,
    shown: Shown,
    kept: VecDeque<Rc<Tables>>,
    /// Time between the last two updates.
    step: u64,
}

impl History {
    /// Returns the last remembered moment, or else the time of the first packet, if there is one.
    fn last(&self) -> Option<u64> {
        let last = self.kept.back().map(|last| last.now);
        last.or(self.live.started)
    }

    /// Returns true if the next update, in about `refresh` nanoseconds, needs all tables.
    pub(super) fn all_wanted(&self, refresh: u64) -> bool {
        // A file replayed fast may advance by more than the refresh interval in one step.
        let next = self.live.now.saturating_add(refresh.max(self.step));
        let due = self
            .last()
            .is_none_or(|last| next >= last.saturating_add(SECOND));
        due || self.is_incomplete()
    }

    /// Returns true if the paused moment lacks tables.
    pub(super) const fn is_incomplete(&self) -> bool {
        matches!(self.shown, Shown::Still { whole: false, .. })
    }

    /// Sets the current tables; `all` is true if they are complete.
    pub(super) fn update(&mut self, tables: Tables, all: bool) {
        if let Shown::Still { at, whole } = &mut self.shown
            && !*whole
            && all
        {
            (**at).clone_from(&tables);
            *whole = true;
        }
        self.step = match self.live.now {
            0 => 0,
            before => tables.now.saturating_sub(before),
        };
        (self.live, self.whole) = (tables, all);
    }

    /// Returns true if the present moment is to be remembered.
    pub(super) fn due(&self, refresh: u64) -> bool {
        let since = |last: u64| self.live.now.saturating_sub(last);
        self.last().is_some_and(|last| {
            since(last) > 0 && since(last).saturating_add(refresh / 2) >= SECOND
        })
    }

    /// Remembers the present moment, preferring the QP rows with the indices in `first`.
    pub(super) fn keep(&mut self, first: &[u32]) {
        let live = &self.live;
        let row = |&at: &u32| live.qps.get(at as usize).cloned();
        let mut qps: Vec<_> = first.iter().filter_map(row).take(KEPT_ROWS).collect();
        if qps.len() < KEPT_ROWS && qps.len() < live.qps.len() {
            let have: std::collections::HashSet<RowId> = qps.iter().map(|(id, _)| *id).collect();
            let more = live.qps.iter().filter(|(id, _)| !have.contains(id));
            let room = KEPT_ROWS - qps.len();
            qps.extend(more.take(room).cloned());
        }
        let mut flows: Vec<_> = live.flows.iter().collect();
        if flows.len() > KEPT_LINES {
            flows.sort_unstable_by_key(|flow| Reverse(flow.data_octets));
            flows.truncate(KEPT_LINES);
        }
        let tables = Tables {
            now: live.now,
            started: live.started,
            since: live.since,
            qps,
            flows: flows.into_iter().cloned().collect(),
            points: live.points.iter().take(KEPT_LINES).cloned().collect(),
            hops: live.hops.iter().take(KEPT_LINES).cloned().collect(),
            // The log only grows, except that repetitions are counted in one of the last lines.
            events: live.events[live.events.len().saturating_sub(KEPT_LINES)..].to_vec(),
            interfaces: live.interfaces.iter().take(KEPT_LINES).cloned().collect(),
            nics: Arc::clone(&live.nics),
            unread: live.unread.clone(),
            receivers: live.receivers.iter().take(KEPT_LINES).cloned().collect(),
            trimmed: live.trimmed.iter().take(KEPT_LINES).cloned().collect(),
            pauses: live.pauses.iter().take(KEPT_LINES).cloned().collect(),
            totals: live.totals,
            rate_1s: live.rate_1s,
            data_rate: live.data_rate,
            ce_1s: live.ce_1s,
            rules: live.rules.clone(),
        };
        self.kept.push_back(Rc::new(tables));
        while self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// Returns the tables at the moment shown; for their events see [`events`](Self::events).
    pub(super) fn shown(&self) -> &Tables {
        match &self.shown {
            Shown::Live => &self.live,
            Shown::Still { at, .. } => at,
            Shown::Kept(at) => at,
        }
    }

    /// Returns the current tables.
    pub(super) fn live(&self) -> &Tables {
        &self.live
    }

    /// Returns the log at the moment shown.
    pub(super) fn events(&self) -> Cow<'_, [EventRecord]> {
        match &self.shown {
            Shown::Live => Cow::Borrowed(&self.live.events),
            Shown::Still { at, .. } => Cow::Borrowed(&at.events),
            Shown::Kept(at) => {
                let Some(first) = at.events.first() else {
                    return Cow::Borrowed(&[]);
                };
                // Earlier lines have not changed since, unless they were dropped.
                let is_first = |event: &EventRecord| {
                    (event.at, event.frame, event.what) == (first.at, first.frame, first.what)
                        && (event.from, event.to) == (first.from, first.to)
                        && (&event.text, &event.interface) == (&first.text, &first.interface)
                };
                let end = self.live.events.iter().position(is_first).unwrap_or(0);
                Cow::Owned([&self.live.events[..end], &at.events].concat())
            }
        }
    }

    /// Returns the end of the time shown.
    pub(super) fn until(&self) -> u64 {
        match self.shown {
            // Time series are fetched after the tables, and may extend a little further.
            Shown::Live => u64::MAX,
            _ => self.shown().now,
        }
    }

    /// Returns the relation of the moment shown to the present.
    pub(super) fn mode(&self) -> Mode {
        let ago = |at: &Tables| self.live.now.saturating_sub(at.now);
        match &self.shown {
            Shown::Live => Mode::Live,
            Shown::Still { at, .. } => Mode::Paused(ago(at)),
            Shown::Kept(at) => Mode::Frozen(ago(at)),
        }
    }

    /// Pauses at the present moment, or continues. Rows are moved to the paused tables, because
    /// there may be many: to continue, new ones are needed.
    pub(super) fn pause(&mut self) {
        self.shown = match self.shown {
            Shown::Live => {
                let qps = std::mem::take(&mut self.live.qps);
                let tables = Tables {
                    qps,
                    ..self.live.clone()
                };
                Shown::Still {
                    at: Box::new(tables),
                    whole: self.whole,
                }
            }
            _ => return self.go_on(),
        };
    }

    /// Shows another moment. Paused rows serve as the current ones until newer ones arrive.
    fn show(&mut self, other: Shown) {
        if let Shown::Still { at, .. } = std::mem::replace(&mut self.shown, other)
            && self.live.qps.is_empty()
        {
            self.live.qps = at.qps;
        }
    }

    /// Drops the current rows during a pause: there may be many, and none of them is shown.
    pub(super) fn spare(&mut self) {
        if matches!(self.shown, Shown::Still { whole: true, .. }) {
            self.live.qps = Vec::new();
        }
    }

    /// Returns true if an earlier moment is remembered.
    pub(super) fn has_earlier(&self) -> bool {
        let now = self.shown().now;
        self.kept.front().is_some_and(|oldest| oldest.now < now)
    }

    /// Goes back to the remembered moment nearest to `by` nanoseconds earlier; no effect at the
    /// oldest.
    pub(super) fn back(&mut self, by: u64) {
        let now = self.shown().now;
        let to = now.saturating_sub(by);
        let before = self.kept.iter().filter(|kept| kept.now < now);
        if let Some(kept) = before.min_by_key(|kept| kept.now.abs_diff(to)) {
            let kept = Shown::Kept(Rc::clone(kept));
            self.show(kept);
        }
    }

    /// Goes forward in the same way, or to the present if that is as near.
    pub(super) fn forward(&mut self, by: u64) {
        let now = self.shown().now;
        let to = now.saturating_add(by).min(self.live.now);
        let after = self.kept.iter().filter(|kept| kept.now > now);
        let next = match after.min_by_key(|kept| kept.now.abs_diff(to)) {
            Some(kept) if kept.now.abs_diff(to) < self.live.now - to => {
                Shown::Kept(Rc::clone(kept))
            }
            _ => Shown::Live,
        };
        self.show(next);
    }

    /// Returns to the present.
    pub(super) fn go_on(&mut self) {
        self.show(Shown::Live);
    }

    /// Drops data that the next update replaces anyway, so that it is not in memory twice.
    pub(super) fn drop_rows(&mut self) {
        self.live.qps = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64, notified: u64) -> Tables {
        let mut tables = Tables {
            now: second * SECOND,
            started: Some(0),
            ..Tables::default()
        };
        tables.totals.notifications[0] = notified;
        tables
    }

    fn take(history: &mut History, tables: Tables) {
        let all = history.all_wanted(SECOND / 4);
        history.update(tables, all);
        if all && history.due(SECOND / 4) {
            history.keep(&[]);
        }
    }

    #[test]
    fn it_goes_back_and_forward_and_forgets_the_oldest() {
        let mut history = History::default();
        for second in 1..=200 {
            take(&mut history, at(second, second * 50));
        }
        assert_eq!(history.kept.len(), KEPT);
        assert_eq!(history.mode(), Mode::Live);
        history.back(SECOND);
        assert_eq!(history.mode(), Mode::Frozen(SECOND));
        take(&mut history, at(201, 10_050));
        assert_eq!(
            (history.mode(), history.shown().now),
            (Mode::Frozen(2 * SECOND), 199 * SECOND)
        );
        history.back(1000 * SECOND);
        assert_eq!(history.shown().now, 82 * SECOND);
        history.back(SECOND);
        assert!(!history.has_earlier());
        assert_eq!(history.shown().now, 82 * SECOND);
        history.forward(2 * SECOND);
        assert_eq!(history.shown().now, 84 * SECOND);
        history.forward(1000 * SECOND);
        assert_eq!(history.mode(), Mode::Live);
    }

    #[test]
    fn it_follows_the_time_of_a_fast_replay() {
        let mut history = History::default();
        assert!(!history.has_earlier());
        // Four times a second, ten times as fast.
        for step in 1..=40 {
            let mut tables = at(0, 0);
            tables.now = step * 2_500_000_000;
            take(&mut history, tables);
        }
        let mut now = |go: fn(&mut History)| {
            go(&mut history);
            history.shown().now / 100_000_000
        };
        assert_eq!(now(|history| history.back(10 * SECOND)), 900);
        assert_eq!(now(|history| history.back(SECOND)), 875, "the one before");
        assert_eq!(now(|history| history.forward(10 * SECOND)), 975);
        assert_eq!(now(|history| history.forward(SECOND)), 1_000);
        assert_eq!(history.mode(), Mode::Live);
    }

    #[test]
    fn an_incomplete_pause_moves_to_the_next_complete_update() {
        let mut history = History::default();
        history.update(at(1, 0), false);
        history.pause();
        assert!(history.all_wanted(0) && history.is_incomplete());
        let mut all = at(2, 9);
        all.rules = vec![("a", 9)];
        take(&mut history, all);
        assert!(!history.is_incomplete());
        take(&mut history, at(5, 12));
        assert_eq!(history.mode(), Mode::Paused(3 * SECOND));
        let shown = history.shown();
        assert_eq!(
            (shown.totals.notified(), &shown.rules[..]),
            (9, &[("a", 9)][..])
        );
        history.pause();
        assert_eq!(history.shown().totals.notified(), 12);
        // With all tables it pauses at once.
        history.update(at(6, 15), true);
        history.pause();
        assert!(!history.is_incomplete());
        history.update(at(7, 18), true);
        assert_eq!(history.shown().totals.notified(), 15);
    }
}
