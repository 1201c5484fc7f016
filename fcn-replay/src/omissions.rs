//! Reasons why frames of a capture are not sent, with counts.

use fcn_tool::quantity::{counted, grouped};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reason why a frame is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The number is not selected.
    Number,
    /// The capture interface is not selected.
    Interface,
    /// The filter does not match.
    Filter,
    /// The capture has only a part of the frame.
    Cut,
    /// The link type cannot be sent on Ethernet.
    LinkType,
    /// The capture has no Ethernet header for the frame, and no destination was given.
    NoEthernet,
    /// The frame is shorter than an Ethernet header.
    Short,
    /// The frame is longer than the interface permits.
    Long,
    /// The frame would pause the link.
    Pause,
    /// The frame cannot be rewritten as requested.
    Rewriting,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::Number,
        Self::Interface,
        Self::Filter,
        Self::Cut,
        Self::LinkType,
        Self::NoEthernet,
        Self::Short,
        Self::Long,
        Self::Pause,
        Self::Rewriting,
    ];

    /// Returns the text after a number of frames: why they are omitted, and the option that would
    /// send them.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Number => "not among --frames",
            Self::Interface => "of other interfaces",
            Self::Filter => "not matching the filter",
            Self::Cut => "cut by the capture",
            Self::LinkType => "of a link type that Ethernet cannot carry",
            Self::NoEthernet => "without an Ethernet header (needs --dst-mac)",
            Self::Short => "shorter than an Ethernet header",
            Self::Long => "longer than the interface sends",
            Self::Pause => "that would pause the link (--send-pause sends them)",
            Self::Rewriting => "that cannot be rewritten",
        }
    }
}

/// Counts of the frames read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames read.
    pub read: u64,
    /// Frames to be sent.
    pub selected: u64,
    /// Octets of frames to be sent, after rewriting.
    pub octets: u64,
    /// Frames to be sent whose time stamp is before that of the previous frame, by at most a
    /// second; they are sent immediately after it.
    pub went_back: u64,
    /// Frames to be sent whose time stamp is far from the others; sent likewise.
    pub outliers: u64,
    /// Steps of the time stamps at which a new time base begins.
    pub time_bases: u64,
    /// Gaps that are shortened.
    pub shortened: u64,
    /// Frames to be sent without a valid time stamp; sent likewise.
    pub unstamped: u64,
    left_out: [u64; Reason::ALL.len()],
}

impl Tally {
    /// Counts an omitted frame.
    #[inline]
    pub const fn leave_out(&mut self, reason: Reason) {
        self.left_out[reason as usize] += 1;
    }

    /// Returns the reasons that occurred, with the number of frames for each.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL
            .into_iter()
            .zip(self.left_out)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns lines for human readers: names and texts.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![(
            "capture",
            format!(
                "{} read, {} to send",
                counted(self.read, "frame"),
                grouped(self.selected)
            ),
        )];
        lines.extend(
            self.reasons().map(|(reason, count)| {
                ("left out", format!("{} {}", grouped(count), reason.text()))
            }),
        );
        for (count, what) in [
            (self.went_back, "by at most 1 s before the previous one"),
            (self.outliers, "far from all others"),
            (self.unstamped, "missing, before 1970 or after 2554"),
        ] {
            if count > 0 {
                let frames = counted(count, "frame");
                lines.push(("times", format!("{what} in {frames}: sent without a gap")));
            }
        }
        if self.time_bases > 0 {
            let steps = counted(self.time_bases, "step");
            lines.push(("times", format!("a new time base after {steps} by more than 1 s back or a day ahead, as in appended captures")));
        }
        if self.shortened > 0 {
            let gaps = counted(self.shortened, "gap");
            lines.push(("times", format!("{gaps} shortened to --max-gap")));
        }
        lines
    }

    /// Returns a summary in one line.
    #[must_use]
    pub fn in_short(&self) -> String {
        let mut text = format!("{} read", counted(self.read, "frame"));
        for (reason, count) in self.reasons() {
            text.push_str(&format!(", {} {}", grouped(count), reason.text()));
        }
        text
    }

    /// Returns the counts as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let left_out: BTreeMap<Reason, u64> = self.reasons().collect();
        serde_json::json!({
            "read": self.read,
            "selected": self.selected,
            "selected_octets": self.octets,
            "left_out": left_out,
            "times_went_back": self.went_back,
            "times_far_off": self.outliers,
            "without_time": self.unstamped,
            "new_time_bases": self.time_bases,
            "gaps_shortened": self.shortened,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_index() {
        for (i, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
        }
    }

    #[test]
    fn counts_are_reported() {
        let mut tally = Tally {
            read: 5_000,
            selected: 4_997,
            went_back: 1,
            ..Tally::default()
        };
        for reason in [Reason::Cut, Reason::Cut, Reason::Filter] {
            tally.leave_out(reason);
        }
        assert_eq!(tally.reasons().map(|(_, count)| count).sum::<u64>(), 3);
        assert_eq!(
            tally.in_short(),
            "5,000 frames read, 1 not matching the filter, 2 cut by the capture"
        );
        assert_eq!(tally.lines().len(), 4);
        assert_eq!(
            tally.json()["left_out"],
            serde_json::json!({ "filter": 1, "cut": 2 })
        );
    }
}
