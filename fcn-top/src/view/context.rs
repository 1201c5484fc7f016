//! State shared by all views: the moment shown, time series, formatting and colours.

use super::history::{History, Mode};
use super::theme::{Theme, Tone};
use super::time_series::{SECOND, Steps};
use crate::monitor::TENTH;
use crate::output::table::{Format, TableText};
use crate::record::{Cell, Column, QpRecord, Record};
use crate::tables::{Detail, Details};
use crate::text::{Formatter, differ_by_place};
use fcn_wire::Kind;
use ratatui::style::Style;
use ratatui::text::Span;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::io;
use std::net::IpAddr;

/// Time covered by small graphs in tables.
const MINUTE: u64 = 60 * SECOND;
/// Maximum number of rows examined for common and distinguishing parts.
const LOOKED_AT: usize = 256;
/// Minimum length in characters of a common address prefix worth omitting.
const PREFIX: usize = 6;

/// Quantity of a small graph.
#[derive(Clone, Copy, Debug)]
pub(super) enum Course {
    Notifications,
    Data,
    Queue,
    Level,
}

/// A table as text, or an error.
pub(super) type Written = io::Result<TableText>;

/// State shared by all views.
pub(super) struct ViewContext<'a> {
    pub formatter: &'a Formatter,
    pub theme: Theme,
    pub history: History,
    pub details: Details,
    pub ended: Option<String>,
    /// Number of checked rules, and reasons why the others are not checked; empty if unknown.
    pub checked: String,
    /// Common prefix of all IPv6 addresses in the rows shown, without the colon after it.
    pub prefix: String,
    /// True if some rows differ only in their capture point.
    pub by_place: bool,
    /// Columns needed to distinguish the rows shown.
    pub telling: Vec<&'static str>,
}

impl ViewContext<'_> {
    /// Exports lines of a table at the moment shown.
    pub(super) fn text<'l, R: Record + 'l>(
        &self,
        lines: impl IntoIterator<Item = &'l R>,
        format: Format,
    ) -> Written {
        TableText::new(lines, format, self.history.shown().now, self.formatter)
    }

    /// Returns the time covered by small graphs: the last minute, or less if less was captured.
    pub(super) fn window(&self) -> (u64, u64) {
        self.latest(MINUTE)
    }

    /// Returns the last `most` nanoseconds until the moment shown, or the time since the first
    /// packet if that is less.
    pub(super) fn latest(&self, most: u64) -> (u64, u64) {
        let shown = self.history.shown();
        let begun = shown.started.unwrap_or(shown.now);
        // Includes packets at that very moment.
        let end = shown.now.saturating_add(1);
        (begun.max(end.saturating_sub(most)), end)
    }

    /// Returns a qualifier for counts that extend beyond the moment shown.
    pub(super) fn until_now<'d>(
        &self,
        counts: impl IntoIterator<Item = &'d Detail>,
    ) -> &'static str {
        // Time series are fetched after the tables: a slightly later time is the same moment.
        let moment = self.history.shown().now.saturating_add(TENTH);
        let is_later = counts.into_iter().any(|series| series.until > moment);
        match self.history.mode() {
            Mode::Paused(_) | Mode::Frozen(_) if is_later => " until now",
            _ => "",
        }
    }

    /// Formats a time of day, with the date if it differs from that of the first packet.
    pub(super) fn clock(&self, at: u64, digits: usize) -> String {
        let started = self.history.shown().started;
        self.formatter
            .clock_since(started.unwrap_or(at), at, digits)
    }

    /// Same, also with the date if a `later` time beside it has another date.
    pub(super) fn clock_before(&self, later: u64, at: u64, digits: usize) -> String {
        let dated = self.formatter.clock_since(later, at, digits);
        let clock = self.clock(at, digits);
        if dated.len() > clock.len() {
            dated
        } else {
            clock
        }
    }

    /// Describes a period that ends now.
    pub(super) fn last(&self, (from, to): (u64, u64)) -> String {
        match to.saturating_sub(from) {
            0 | 1 => "course".to_owned(),
            MINUTE => "last minute".to_owned(),
            span if span == 2 * MINUTE => "last 2 minutes".to_owned(),
            span => format!("last {}", self.formatter.cell(Cell::Span(span))),
        }
    }

    /// Returns steps with the bounds of their data: the first may begin before any packet, the last
    /// may be incomplete.
    pub(super) fn steps(&self, start: u64, step: u64, until: u64) -> Steps {
        Steps {
            start,
            step,
            since: self.history.shown().started.unwrap_or(0),
            until: until.saturating_add(1),
            // Time series are fetched after the tables: a slightly later time is the same moment.
            shown: self.history.shown().now.saturating_add(TENTH),
        }
    }

    /// Returns true if a series reaches back to the moment shown.
    pub(super) fn reaches_back(&self, series: &Detail) -> bool {
        series.start <= self.history.shown().now
    }

    /// Returns the bars of a small graph of a series, over the time of all small graphs.
    pub(super) fn trend(&self, series: &Detail, what: Course, room: u16) -> Vec<f64> {
        let values = match what {
            Course::Notifications => &series.notifications,
            Course::Data => &series.data,
            Course::Queue => &series.queue,
            Course::Level => &series.level,
        };
        let values = values.iter().map(|value| f64::from(*value));
        let steps = self.steps(series.start, series.step, series.until);
        // A step may be as long as two seconds: more columns than steps would not show more.
        let (from, to) = steps.known(self.window());
        let most = (to.saturating_sub(from) / series.step.max(1)).clamp(1, 64) as u16;
        let parts = room.min(most);
        let values = match what {
            Course::Notifications | Course::Data => steps.columns(values, (from, to), parts),
            Course::Queue | Course::Level => steps.most(values, (from, to), parts),
        };
        let room = usize::from(room);
        let columns = 0..room;
        columns.map(|at| values[at * values.len() / room]).collect()
    }

    /// Formats an address, without the common prefix of all addresses.
    pub(super) fn address(&self, address: IpAddr) -> String {
        let text = self.formatter.address(address);
        match text.strip_prefix(&self.prefix) {
            Some(rest) if !self.prefix.is_empty() && rest.starts_with(':') => format!("…{rest}"),
            _ => text,
        }
    }

    /// Returns true if some rows shown differ only in their capture point.
    pub(super) fn differ_by_place(&self) -> bool {
        let rows = self.history.shown().qps.iter().take(LOOKED_AT);
        differ_by_place(rows.map(|(_, row)| row))
    }

    /// Returns the columns needed to distinguish the rows shown; empty if sender and receiver
    /// suffice.
    pub(super) fn telling(&self) -> Vec<&'static str> {
        let rows = self.history.shown().qps.iter().take(LOOKED_AT);
        let flow = |row: &QpRecord| (row.sender.unwrap_or(row.destination), row.receiver);
        let qp = |row: &QpRecord| (row.qp, row.flow_label);
        let place = |row: &QpRecord| row.interface.clone().filter(|_| self.by_place);
        let rows = rows.map(|(_, row)| row);
        let by_qp = differ(rows.clone().map(|row| (flow(row), qp(row))));
        let by_kind = differ(rows.map(|row| ((flow(row), qp(row), place(row)), row.kind)));
        let all = [
            ("qp", by_qp),
            ("kind", by_kind),
            ("interface", self.by_place),
        ];
        let telling = all.into_iter().filter(|(_, tells)| *tells);
        let mut telling: Vec<_> = telling.map(|(id, _)| id).collect();
        if !telling.is_empty() {
            telling.push("flow");
        }
        telling
    }

    /// Returns the capture point of a row, if it is specific to the row.
    pub(super) fn place<'r>(&self, row: &'r QpRecord) -> Option<&'r str> {
        let is_its = self.by_place || row.sampled.is_some();
        row.interface.as_deref().filter(|_| is_its)
    }

    /// Returns the common prefix of all IPv6 addresses in the rows shown, if worth omitting.
    pub(super) fn common_prefix(&self) -> String {
        if self.formatter.alters_addresses() {
            return String::new();
        }
        let rows = self.history.shown().qps.iter().take(LOOKED_AT);
        let addresses = rows.flat_map(|(_, row)| [row.sender, row.receiver, Some(row.notifier)]);
        let mut common: Option<String> = None;
        let mut differ = false;
        for address in addresses.flatten().filter(IpAddr::is_ipv6) {
            let text = address.to_string();
            common = Some(match common {
                None => text,
                Some(common) => {
                    differ |= common != text;
                    let same = common.bytes().zip(text.bytes()).take_while(|(a, b)| a == b);
                    let len = same.count();
                    common[..len].to_owned()
                }
            });
        }
        let common = common.filter(|_| differ).unwrap_or_default();
        let common = common
            .rfind(':')
            .map_or("", |at| common[..at].trim_end_matches(':'));
        if common.len() < PREFIX {
            String::new()
        } else {
            common.to_owned()
        }
    }

    pub(super) fn span(&self, text: impl Into<Cow<'static, str>>, tone: Tone) -> Span<'static> {
        Span::styled(text, self.style(tone))
    }

    pub(super) fn style(&self, tone: Tone) -> Style {
        self.theme.style(tone)
    }

    /// Formats a value for its column, with its unit.
    pub(super) fn in_column(&self, column: &Column, cell: Cell<'_>) -> String {
        match cell {
            Cell::Moment(at) => self.clock(at, column.digits()),
            cell => Self::per_second(column, cell, self.formatter.in_column(column, cell)),
        }
    }

    /// Appends the unit to a formatted value if it is a rate of packets.
    pub(super) fn per_second(column: &Column, cell: Cell<'_>, text: String) -> String {
        // Not every value formatted like a rate is one: a mean queue depth, for example.
        match cell {
            Cell::Rate(_) if column.id.starts_with("rate_") => text + "/s",
            _ => text,
        }
    }

    /// Formats a value, if there is one.
    pub(super) fn maybe<T>(
        &self,
        value: Option<T>,
        cell: impl FnOnce(T) -> Cell<'static>,
    ) -> String {
        self.formatter.cell(value.map_or(Cell::None, cell))
    }
}

/// Returns true if entries with equal keys have different values.
fn differ<K: Hash + Eq, V: PartialEq>(all: impl Iterator<Item = (K, V)>) -> bool {
    let mut first = HashMap::new();
    all.into_iter().any(|(key, value)| match first.entry(key) {
        Entry::Occupied(had) => *had.get() != value,
        Entry::Vacant(place) => {
            place.insert(value);
            false
        }
    })
}

/// Returns the short name of a kind of notification.
pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cnp => "cnp",
        Kind::FastCnp1 => "fast 1",
        Kind::FastCnp2 => "fast 2",
        Kind::ProxyCn => "proxy",
        Kind::WanFcn => "wan",
    }
}
