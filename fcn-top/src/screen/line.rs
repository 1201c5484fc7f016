//! What the lines of each table are to the screen: what names them, how they look, which columns they begin with.

use super::fit::Side;
use super::theme::Tone;
use crate::record::RowId;
use crate::record::{
    Answer, Column, EventRecord, HopRecord, InterfaceRecord, PointRecord, QpRecord, QpSide, Record,
    Resolved,
};
use crate::text::{NOTHING, Words};
use fcn_wire::{Origin, Severity};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// Names a line for as long as it is in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Qp(RowId),
    Point(IpAddr),
    Hop {
        path: u32,
        hop: u8,
    },
    Event {
        at: u64,
        what: &'static str,
        frame: Option<u64>,
        text: Arc<str>,
    },
    Interface(Arc<str>),
}

/// How a table is shown where nothing else is asked for.
#[derive(Debug)]
pub(super) struct Layout {
    /// Ids of its columns, the most important first.
    pub columns: &'static [&'static str],
    /// How many of them stay when the others are scrolled.
    pub fixed: usize,
    /// How many of them come before any address is written in full.
    pub core: usize,
    /// Its order.
    pub order: &'static str,
    /// What its lines are called.
    pub lines: &'static str,
}

/// What may become of a text that is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Squeeze {
    /// Nothing: a number cut off is another number.
    Never,
    /// Shortened in the middle, to that many cells if need be.
    Middle(u16),
    /// Shortened at the end, to that many cells if need be.
    End(u16),
}

/// How the texts of the column called `id` may be shortened.
pub(super) fn squeeze(id: &str) -> Squeeze {
    match id {
        "sender" | "notifier" | "told" | "receiver" | "from" | "to" => Squeeze::Middle(14),
        "what" => Squeeze::End(22),
        "text" | "section" | "about" => Squeeze::End(20),
        "name" => Squeeze::End(16),
        "interface" => Squeeze::End(8),
        _ => Squeeze::Never,
    }
}

/// Which side the texts of a column stand on: words to the left, numbers to the right.
pub(super) const fn side(column: &Column) -> Side {
    if column.holds.is_number() {
        Side::Right
    } else {
        Side::Left
    }
}

/// A line of a table, as the screen has it.
pub(super) trait Line: Clone + 'static {
    type Record: Record;
    const LAYOUT: &'static Layout;

    fn record(&self) -> &Self::Record;

    fn key(&self) -> Key;

    /// Orders lines that are otherwise equal, always the same way; `index` is where it stands in its table.
    fn rank(&self, index: usize) -> u64 {
        index as u64
    }

    /// What stands in a column.
    fn text(&self, column: usize, words: &Words) -> String {
        in_column::<Self::Record>(self.record(), column, words)
    }

    /// What that is to the reader.
    fn tone(&self, id: &str) -> Tone;
}

/// Lines of a table, in the order that they come in.
pub(super) trait Lines<L: Line> {
    /// How many there are.
    fn count(&self) -> usize;

    /// The one at a place.
    fn at(&self, place: usize) -> Option<Cow<'_, L>>;

    /// Where the one of that name stands.
    fn place_of(&self, key: &Key) -> Option<usize> {
        (0..self.count()).find(|place| self.at(*place).is_some_and(|line| line.key() == *key))
    }

    /// All of them.
    fn all(&self) -> impl Iterator<Item = Cow<'_, L>> {
        (0..self.count()).filter_map(|place| self.at(place))
    }
}

impl<L: Line> Lines<L> for [L] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, place: usize) -> Option<Cow<'_, L>> {
        self.get(place).map(Cow::Borrowed)
    }
}

/// What a record has in a column, as text.
fn in_column<R: Record>(record: &R, number: usize, words: &Words) -> String {
    R::COLUMNS.get(number).map_or_else(String::new, |column| {
        words.in_column(column, record.cell(number))
    })
}

/// [`Tone::Bad`] for what should not be there.
fn bad_if(bad: bool) -> Tone {
    if bad { Tone::Bad } else { Tone::Plain }
}

fn warn_if(warn: bool) -> Tone {
    if warn { Tone::Warn } else { Tone::Plain }
}

/// What a change of the data rate after a notification is to the reader.
pub(super) fn change_tone(change: Option<f64>) -> Tone {
    match change {
        Some(change) if change <= -0.05 => Tone::Good,
        Some(_) => Tone::Warn,
        None => Tone::Plain,
    }
}

/// What a verdict is to the reader.
pub(super) const fn verdict_tone(verdict: Option<Answer>) -> Tone {
    match verdict {
        Some(Answer::Obeys) => Tone::Good,
        Some(Answer::DoesNotObey) => Tone::Bad,
        Some(Answer::Unclear) => Tone::Dim,
        None => Tone::Plain,
    }
}

/// The QP that a row is about with a letter for whose it is and how that is known, or its flow label.
pub(super) fn qp_text(record: &QpRecord) -> String {
    match (record.qp, record.qp_side, record.flow_label) {
        (Some(qp), Some(QpSide::Sender), _) => {
            let letter = match record.sender_qp_from {
                Some(Resolved::Cm) => 'c',
                Some(Resolved::Acks) => 'a',
                Some(Resolved::Packet) | None => 's',
            };
            format!("{qp:#x} {letter}")
        }
        (Some(qp), Some(QpSide::Receiver), _) => format!("{qp:#x} r"),
        (Some(qp), None, _) => format!("{qp:#x}  "),
        (None, _, Some(label)) => format!("{label:#07x} f"),
        (None, _, None) => NOTHING.to_owned(),
    }
}

impl Line for (RowId, QpRecord) {
    type Record = QpRecord;
    const LAYOUT: &'static Layout = &Layout {
        columns: &[
            "sender",
            "qp",
            "kind",
            "notifier",
            "rate_1s",
            "total",
            "change_10ms",
            "verdict",
            "data_rate",
            "rate_mean",
            "rate_peak",
            "ce_share",
            "queue_max",
            "level_max",
            "gap_p50",
            "receiver",
            "sender_qp",
            "change_1ms",
            "rate_10s",
            "gap_p99",
            "findings",
            "last_seen",
        ],
        fixed: 2,
        core: 8,
        order: "-rate_1s",
        lines: "rows",
    };

    fn record(&self) -> &QpRecord {
        &self.1
    }

    fn key(&self) -> Key {
        Key::Qp(self.0)
    }

    fn rank(&self, _: usize) -> u64 {
        self.0.0
    }

    fn text(&self, column: usize, words: &Words) -> String {
        let record = &self.1;
        match QpRecord::COLUMNS.get(column).map_or("", |column| column.id) {
            "qp" => qp_text(record),
            // As wide as the others.
            "verdict" if record.verdict == Some(Answer::DoesNotObey) => "does not".to_owned(),
            "sender" if record.sender.is_none() => format!("({})", words.address(record.told)),
            _ => in_column(record, column, words),
        }
    }

    fn tone(&self, id: &str) -> Tone {
        let record = &self.1;
        match id {
            "icrc_bad" => bad_if(record.icrc_bad > 0),
            "findings" => warn_if(record.findings > 0),
            "change_1ms" => change_tone(record.change_1ms),
            "change_10ms" => change_tone(record.change_10ms),
            "verdict" => verdict_tone(record.verdict),
            // Nothing for ten seconds: it is over.
            _ if record.rate_10s == Some(0.0) => Tone::Dim,
            "kind" => {
                if record.origin == Origin::Switch {
                    Tone::Accent
                } else {
                    Tone::Plain
                }
            }
            _ => Tone::Plain,
        }
    }
}

impl Line for PointRecord {
    type Record = Self;
    const LAYOUT: &'static Layout = &Layout {
        columns: &[
            "notifier",
            "origin",
            "flows",
            "rate_1s",
            "total",
            "queue_max",
            "level_max",
            "findings",
            "rate_peak",
            "trusted",
            "malformed",
            "cnp",
            "fast_cnp_1",
            "fast_cnp_2",
            "proxy_cn",
            "wan_fcn",
            "rate_10s",
            "last_seen",
        ],
        fixed: 1,
        core: 8,
        order: "-rate_1s",
        lines: "notifiers",
    };

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Point(self.notifier)
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "trusted" => bad_if(self.trusted == Some(false)),
            "findings" => warn_if(self.findings > 0),
            "malformed" => warn_if(self.malformed > 0),
            _ if self.rate_10s == Some(0.0) => Tone::Dim,
            "origin" => {
                if self.origin == Origin::Switch {
                    Tone::Accent
                } else {
                    Tone::Plain
                }
            }
            _ => Tone::Plain,
        }
    }
}

impl Line for HopRecord {
    type Record = Self;
    const LAYOUT: &'static Layout = &Layout {
        columns: &[
            "path",
            "hop",
            "node",
            "ingress",
            "egress",
            "queue",
            "queue_mean",
            "queue_max",
            "delay",
            "delay_max",
            "between",
            "traces",
            "namespace",
            "last_seen",
        ],
        fixed: 3,
        core: 11,
        order: "path",
        lines: "hops",
    };

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Hop {
            path: self.path,
            hop: self.hop,
        }
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "path" | "hop" => Tone::Accent,
            _ => Tone::Plain,
        }
    }
}

/// What a severity is to the reader.
pub(super) fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warn,
        Severity::Error => Tone::Bad,
    }
}

impl Line for EventRecord {
    type Record = Self;
    const LAYOUT: &'static Layout = &Layout {
        columns: &[
            "at",
            "severity",
            "what",
            "text",
            "times",
            "from",
            "to",
            "frame",
            "interface",
            "section",
        ],
        fixed: 1,
        core: 4,
        order: "-at",
        lines: "events",
    };

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Event {
            at: self.at,
            what: self.what,
            frame: self.frame,
            text: Arc::clone(&self.text),
        }
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "severity" | "what" => severity_tone(self.severity),
            _ => Tone::Plain,
        }
    }
}

impl Line for InterfaceRecord {
    type Record = Self;
    const LAYOUT: &'static Layout = &Layout {
        columns: &[
            "name",
            "state",
            "dropped_kernel",
            "dropped_interface",
            "received",
            "rate_1s",
            "notifications",
            "data",
            "other",
            "cut",
            "undecodable",
            "octets",
            "about",
        ],
        fixed: 1,
        core: 8,
        order: "name",
        lines: "interfaces",
    };

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Interface(Arc::clone(&self.name))
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "dropped_kernel" => bad_if(self.dropped_kernel.unwrap_or(0) > 0),
            "dropped_interface" => bad_if(self.dropped_interface.unwrap_or(0) > 0),
            "cut" => warn_if(self.cut > 0),
            "undecodable" => warn_if(self.undecodable > 0),
            "state" => match self.state {
                "up" => Tone::Good,
                "file" | "ended" => Tone::Plain,
                _ => Tone::Bad,
            },
            _ => Tone::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Order;
    use crate::record::column_named;

    fn sound<L: Line>() {
        let layout = L::LAYOUT;
        assert!(layout.fixed <= layout.core && layout.core <= layout.columns.len());
        for (number, id) in layout.columns.iter().enumerate() {
            assert!(column_named::<L::Record>(id).is_some(), "{id}");
            assert!(!layout.columns[..number].contains(id), "{id} twice");
        }
        assert!(
            Order::parse::<L::Record>(layout.order).is_ok(),
            "{}",
            layout.order
        );
    }

    #[test]
    fn usual_columns_and_orders_are_there() {
        sound::<(RowId, QpRecord)>();
        sound::<PointRecord>();
        sound::<HopRecord>();
        sound::<EventRecord>();
        sound::<InterfaceRecord>();
    }
}
