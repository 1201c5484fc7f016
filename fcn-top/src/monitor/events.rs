//! The event log, newest last, with repetitions counted.

use crate::record::EventRecord;
use std::collections::VecDeque;

/// Number of last lines searched for a repetition of an event.
const LOOK_BACK: usize = 8;

/// A capture that is damaged from some point on.
pub const DAMAGED: &str = "capture.damaged";
/// Packets dropped by the kernel for lack of room.
pub const LOST_BY_KERNEL: &str = "capture.lost.kernel";
/// Packets dropped by the interface.
pub const LOST_BY_INTERFACE: &str = "capture.lost.interface";

/// A log with a maximum number of lines; the oldest is dropped first.
#[derive(Debug)]
pub struct Log {
    lines: VecDeque<EventRecord>,
    limit: usize,
}

impl Log {
    /// Keeps at most `limit` lines; 0 counts as 1.
    pub const fn new(limit: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            limit: if limit == 0 { 1 } else { limit },
        }
    }

    /// Adds an event. If one of the last 8 lines has the same kind, severity, addresses and
    /// interface, increases its `times` by this one's and sets its `last`; time, frame and text
    /// remain those of the first. Losses have a line each, because their times matter.
    pub fn push(&mut self, event: EventRecord) {
        let last = self.lines.iter_mut().rev().take(LOOK_BACK);
        if let Some(line) = last.into_iter().find(|line| same(line, &event)) {
            line.times = line.times.saturating_add(event.times);
            line.last = line.last.max(event.last);
            return;
        }
        if self.lines.len() >= self.limit {
            self.lines.pop_front();
        }
        self.lines.push_back(event);
    }

    /// Returns the lines, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &EventRecord> {
        self.lines.iter()
    }
}

fn same(a: &EventRecord, b: &EventRecord) -> bool {
    (a.what, a.severity, a.from, a.to) == (b.what, b.severity, b.from, b.to)
        && a.interface == b.interface
        && ![LOST_BY_KERNEL, LOST_BY_INTERFACE].contains(&a.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Severity;

    fn event(at: u64, what: &'static str, interface: Option<&str>) -> EventRecord {
        EventRecord {
            at,
            last: at,
            severity: Severity::Warning,
            what,
            times: 1,
            frame: Some(at),
            interface: interface.map(Into::into),
            from: Some([10, 0, 0, 1].into()),
            to: None,
            text: "it is so".into(),
            section: "",
        }
    }

    fn lines(log: &Log) -> Vec<(u64, &str, u64)> {
        log.iter()
            .map(|line| (line.at, line.what, line.times))
            .collect()
    }

    #[test]
    fn repetitions_are_counted_in_the_first_line() {
        let mut log = Log::new(100);
        for (at, what) in (1..).zip(["a", "b", "a", "a", "b"]) {
            log.push(event(at, what, None));
        }
        assert_eq!(lines(&log), [(1, "a", 3), (2, "b", 2)]);
        let mut twice = event(9, "b", None);
        twice.times = 10;
        log.push(twice);
        assert_eq!(lines(&log)[1], (2, "b", 12));
        // A late event does not become the last.
        log.push(event(3, "b", None));
        let last: Vec<_> = log.iter().map(|line| line.last).collect();
        assert_eq!(last, [4, 9]);
    }

    #[test]
    fn addresses_interface_and_severity_distinguish_events() {
        let mut log = Log::new(100);
        let first = event(1, "a", Some("eth0"));
        let mut others = vec![
            first.clone(),
            event(2, "a", None),
            event(3, "a", Some("eth1")),
        ];
        for change in [
            (|event: &mut EventRecord| event.severity = Severity::Error) as fn(&mut EventRecord),
            |event| event.from = None,
            |event| event.to = Some([10, 0, 0, 2].into()),
        ] {
            let mut other = first.clone();
            change(&mut other);
            others.push(other);
        }
        let count = others.len();
        others.iter().for_each(|event| log.push(event.clone()));
        assert_eq!(log.lines.len(), count);
        let mut other = event(7, "a", Some("eth0"));
        other.text = "otherwise".into();
        log.push(other);
        assert_eq!((log.lines.len(), lines(&log)[0]), (count, (1, "a", 2)));
    }

    #[test]
    fn losses_have_a_line_each() {
        let mut log = Log::new(100);
        for at in 1..4 {
            log.push(event(at, LOST_BY_KERNEL, Some("eth0")));
            log.push(event(at, LOST_BY_INTERFACE, Some("eth0")));
        }
        assert_eq!(log.lines.len(), 6);
    }

    #[test]
    fn only_the_last_eight_lines_are_searched() {
        const NAMES: [&str; 9] = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
        let mut log = Log::new(100);
        NAMES[..8]
            .iter()
            .for_each(|what| log.push(event(1, what, None)));
        log.push(event(2, "0", None));
        assert_eq!((log.lines.len(), lines(&log)[0].2), (8, 2));
        log.push(event(3, "8", None));
        log.push(event(4, "0", None));
        assert_eq!((log.lines.len(), lines(&log)[9]), (10, (4, "0", 1)));
    }

    #[test]
    fn the_oldest_line_leaves() {
        for (limit, kept) in [(2, vec![(2, "b", 1), (3, "c", 1)]), (0, vec![(3, "c", 1)])] {
            let mut log = Log::new(limit);
            assert!(log.lines.is_empty());
            for (at, what) in (1..).zip(["a", "b", "c"]) {
                log.push(event(at, what, None));
            }
            assert_eq!(lines(&log), kept);
        }
    }
}
