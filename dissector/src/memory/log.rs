//! The last data frames of the file, each with the one before it of its flow: which data is before a notification is asked
//! seldom, so a data frame is written where the last one was, and not into the midst of what is kept of its flow.

use super::recent::Moment;

/// Data frames kept: those of several interfaces lie in a file out of order by less.
const KEPT: usize = 1 << 16;
/// Frames of one flow that are looked at.
const LOOKED_AT: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    /// 0: none.
    frame: u32,
    /// The flow's frame before it, 0 for none.
    before: u32,
}

/// The last frames with data, by their numbers.
#[derive(Debug, Default)]
pub struct Log {
    /// Nothing before the first one.
    entries: Vec<Entry>,
}

impl Log {
    /// Takes in a data frame, and the number of its flow's last one before it in the file, or 0.
    #[inline]
    pub fn push(&mut self, moment: Moment, before: u32) {
        if self.entries.is_empty() {
            let none = Entry {
                at: 0,
                frame: 0,
                before: 0,
            };
            self.entries.resize(KEPT, none);
        }
        let (Moment { at, frame }, place) = (moment, moment.frame as usize % KEPT);
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = Entry { at, frame, before };
        }
    }

    fn get(&self, frame: u32) -> Option<&Entry> {
        (self.entries.get(frame as usize % KEPT)).filter(|entry| entry.frame == frame && frame != 0)
    }

    /// The latest frame that is not later than `at`, among the last ones of the flow whose last one in the file is `frame`.
    pub fn before(&self, frame: u32, at: u64) -> Option<Moment> {
        core::iter::successors(self.get(frame), |entry| self.get(entry.before))
            .take(LOOKED_AT)
            .filter(|entry| entry.at <= at)
            .map(|entry| Moment {
                at: entry.at,
                frame: entry.frame,
            })
            .max_by_key(|moment| (moment.at, moment.frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at: u64, frame: u32) -> Moment {
        Moment { at, frame }
    }

    #[test]
    fn the_latest_in_time_of_the_flow_is_found() {
        let mut log = Log::default();
        assert_eq!(log.before(0, 9), None);
        for (at, frame, before) in [(5, 1, 0), (9, 2, 0), (7, 3, 1), (6, 4, 3), (6, 5, 4)] {
            log.push(moment(at, frame), before);
        }
        let of_first = [4, 5, 6, 7, 9].map(|at| log.before(5, at).map(|found| found.frame));
        assert_eq!(of_first, [None, Some(1), Some(5), Some(3), Some(3)]);
        assert_eq!(log.before(2, 9), Some(moment(9, 2)));
    }

    #[test]
    fn what_was_written_over_is_not_taken_for_the_flows() {
        let mut log = Log::default();
        log.push(moment(1, 1), 0);
        log.push(moment(2, 2), 1);
        log.push(moment(3, 1 + KEPT as u32), 0);
        assert_eq!(log.before(1, 9), None);
        assert_eq!(log.before(2, 9), Some(moment(2, 2)));
        assert_eq!(log.before(2, 1), None);
        // A chain that leads back to itself ends.
        log.push(moment(4, 4), 4);
        assert_eq!(log.before(4, 9), Some(moment(4, 4)));
    }
}
