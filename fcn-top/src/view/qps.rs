//! The first view: one line for each QP or flow, most notified first, with an explanation of the
//! selected one.

use super::context::{Course, ViewContext, Written, kind_name};
use super::explanation::{self, flow_text};
use super::fit;
use super::hits::DrawContext;
use super::table::{Entry, Extra, Key, Schema, Table, cut, shortened};
use super::theme::Tone;
use super::views::{OpenTarget, TableId, View, course_bars, draw};
use super::{Format, Tab};
use crate::record::{Answer, Cell, Column, QpRecord, QpSide, Record, Resolved, RowId};
use crate::tables::WantedDetails;
use crate::text::{NOTHING, acts_as, estimate, few};
use fcn_observe::rules::NOTIFIERS;
use fcn_wire::Kind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;

/// Noun for an empty table.
pub(super) const NONE: Option<&str> = Some("No congestion notification");

/// The table's lines.
type Row = (RowId, QpRecord);

/// Formats the QP of the row: plain for the sender's own, `~` before an inferred one, `→` before
/// the receiver's; or the flow label.
pub(super) fn qp_text(record: &QpRecord) -> String {
    match (record.qp, record.qp_side, record.flow_label) {
        (Some(qp), Some(QpSide::Receiver), _) => format!("→{qp:#x}"),
        (Some(qp), ..)
            if record
                .sender_qp_from
                .is_some_and(|from| from != Resolved::Packet) =>
        {
            format!("~{qp:#x}")
        }
        (Some(qp), ..) => format!("{qp:#x}"),
        (None, _, Some(label)) => format!("label {label:#x}"),
        (None, _, None) => NOTHING.to_owned(),
    }
}

/// Formats a verdict in short.
pub(super) const fn answer(verdict: Option<Answer>) -> (&'static str, Tone) {
    match verdict {
        Some(Answer::Obeys) => ("obeys", Tone::Good),
        Some(Answer::DoesNotObey) => ("does not", Tone::Bad),
        Some(Answer::Unclear) => ("unclear", Tone::Dim),
        None => ("none", Tone::Dim),
    }
}

/// Formats a verdict in short, with the number of notifications behind it if they are few.
pub(super) fn verdict(record: &QpRecord) -> (String, Tone) {
    let (says, tone) = answer(record.verdict);
    let few = few(record).map_or_else(String::new, |few| format!(" {few}"));
    (format!("{says}{few}"), tone)
}

/// Describes the notifier: its address, unless it is the flow's receiver, the number of others, and
/// its role if there is room.
fn notifier_text(record: &QpRecord, room: u16, context: &ViewContext<'_>) -> String {
    let role = acts_as(record.notifier_role, record.made_by);
    // Notifiers beyond the limit are not distinguished.
    let more = match record.notifiers.saturating_sub(1) {
        0 => String::new(),
        more if more < NOTIFIERS as u32 => format!(" +{more}"),
        more => format!(" +{more}…"),
    };
    let what = match record.kind {
        Kind::Cnp => role.to_owned(),
        // Only the kind shows the role.
        kind => format!("as {role}, {}", kind_name(kind)),
    };
    if record.receiver == Some(record.notifier) && more.is_empty() {
        return fit::end(&what, room).into_owned();
    }
    let address = context.address(record.notifier);
    match room.checked_sub(fit::width(&more) + fit::width(&what) + 1) {
        Some(left) if left >= 6 => format!("{}{more} {what}", shortened(&address, left)),
        _ => {
            let left = room.saturating_sub(fit::width(&more));
            format!("{}{more}", shortened(&address, left))
        }
    }
}

impl Record for Row {
    const TABLE: &'static str = QpRecord::TABLE;
    const COLUMNS: &'static [Column] = QpRecord::COLUMNS;

    fn cell(&self, column: usize) -> Cell<'_> {
        self.1.cell(column)
    }
}

impl Entry for Row {
    const SCHEMA: &'static Schema = &Schema {
        // A QP has one for each kind of notification.
        lines: "row",
        extra: &[
            Extra::graph(
                "trend",
                "rate_10s",
                20,
                "Notifications over the last minute, or since the first packet; each row has its own scale",
            ),
            Extra::new(
                "flow",
                "sender",
                60,
                "The data sender asked to slow down, and its receiver; in brackets the notified host, if the sender is unknown",
            ),
            Extra::new(
                "notified_by",
                "notifier",
                36,
                "The notifier, and the inferred origin of plain CNPs; for other kinds, its role and the kind. Without an address if it is the flow's receiver's",
            ),
            Extra::graph("data_trend", "data_rate", 10, "Data over the same time"),
        ],
        usual: &[
            ("rate_1s", 3, "notified"),
            ("total", 9, "total"),
            ("trend", 6, "course"),
            ("flow", 0, "sender → receiver"),
            ("qp", 2, "QP"),
            ("kind", 15, "kind"),
            ("notified_by", 5, "notified by"),
            ("data_rate", 4, "data rate"),
            ("data_trend", 8, "course"),
            ("change", 7, "change"),
            ("ce_share", 10, "CE"),
            ("verdict", 1, "verdict"),
            ("queue_max", 11, "deepest queue"),
            ("level_max", 12, "level"),
            ("gap_p50", 13, "gap"),
            ("findings", 14, "findings"),
            ("interface", 8, "seen on"),
        ],
        order: "-rate_1s",
        ..Schema::for_record::<Self>()
    };
    const TALL: bool = true;

    fn key(&self) -> Key {
        Key::Qp(self.0)
    }

    /// Without rates, those notified most.
    fn rank(&self, _: usize) -> (u64, u64) {
        (self.1.total, self.0.0)
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        context: &ViewContext<'_>,
    ) -> String {
        let record = &self.1;
        match column.id {
            "qp" => qp_text(record),
            "kind" => kind_name(record.kind).to_owned(),
            "verdict" => verdict(record).0,
            "flow" => flow_text(record, room, context),
            "notified_by" => notifier_text(record, room, context),
            "notifier_role" => {
                fit::end(acts_as(record.notifier_role, record.made_by), room).into_owned()
            }
            _ => {
                let cell = self.cell(number);
                let text = match cell {
                    Cell::Moment(_) => context.in_column(column, cell),
                    cell => {
                        let text = context.formatter.of_row(record, column, cell);
                        ViewContext::per_second(column, cell, text)
                    }
                };
                cut(column, &text, room)
            }
        }
    }

    fn graph(
        &self,
        id: &str,
        style: Style,
        frame: &mut Frame<'_>,
        area: Rect,
        context: &ViewContext<'_>,
    ) {
        // Samples have no time series.
        if self.1.sampled.is_some() {
            return;
        }
        let course = match id {
            "trend" => Course::Notifications,
            _ => Course::Data,
        };
        let series = context.details.rows.get(&self.0);
        course_bars(series, course, style, frame, area, context);
    }

    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        let record = &self.1;
        match column.id {
            "qp" => record.qp.is_none() && record.flow_label.is_none(),
            "data_trend" => record.data_packets.is_none(),
            "findings" => record.findings == 0,
            // If there is room, the notifier's column has it.
            "kind" => true,
            // Otherwise others may have the same capture point.
            "interface" => record.sampled.is_none(),
            "trend" | "flow" | "notified_by" => false,
            _ => self.cell(number) == Cell::None,
        }
    }

    fn below(
        &self,
        column: &'static Column,
        is_shown: &dyn Fn(&str) -> bool,
        context: &ViewContext<'_>,
    ) -> String {
        let record = &self.1;
        let words = context.formatter;
        match column.id {
            "trend" if !is_shown("total") => {
                let mark = estimate(record, "total");
                format!("{mark}{} in all", words.cell(Cell::Count(record.total)))
            }
            "flow" => match record.gap_p50 {
                Some(gap) => format!("gap {}", words.cell(Cell::Span(gap))),
                None => format!("last {}", context.clock(record.last_seen, 3)),
            },
            "qp" => match (record.qp_side, record.sender_qp_from) {
                (_, Some(Resolved::Cm)) => "by CM",
                (_, Some(Resolved::Port)) => "by port",
                (_, Some(Resolved::Acks)) => "by ACKs",
                (_, Some(Resolved::Only)) => "only one",
                (Some(QpSide::Receiver), _) => "receiver",
                (Some(QpSide::Sender), _) => "sender",
                _ => "",
            }
            .to_owned(),
            "data_rate" => record.data_packets.map_or_else(String::new, |packets| {
                format!("{} pkts", words.cell(Cell::Rate(packets as f64)))
            }),
            "verdict" if record.verdict.is_some() && few(record).is_none() => {
                format!("of {}", words.cell(Cell::Count(record.measured)))
            }
            _ => String::new(),
        }
    }

    fn tone(&self, id: &str) -> Tone {
        let record = &self.1;
        match id {
            "icrc_bad" if record.icrc_bad > 0 => Tone::Bad,
            "findings" if record.findings > 0 => Tone::Warn,
            "verdict" => verdict(record).1,
            // No notifications for ten seconds: inactive.
            _ if record.rate_10s == Some(0.0) => Tone::Dim,
            "kind" | "trend" | "notified_by" => Tone::Kind(record.kind),
            _ => Tone::Plain,
        }
    }
}

/// The QPs view.
#[derive(Debug, Default)]
pub(super) struct Qps;

impl Qps {
    /// Splits the area between the table and the explanation, beside it or below.
    fn split(area: Rect, lines: usize) -> [Rect; 2] {
        if area.height < 16 {
            return [area, Rect::ZERO];
        }
        let wanted = fit::cells(lines * 2 + 1).max(8);
        // Beside few lines it would leave more than half of the screen empty.
        if area.width >= 240 && wanted > area.height / 2 {
            let [left, _, story] = area.layout(&Layout::horizontal([
                Constraint::Min(150),
                Constraint::Length(2),
                Constraint::Length(84),
            ]));
            return [left, story];
        }
        // The explanation gets the space that the lines leave, or half of the screen if there are
        // many.
        let story = (area.height - 1)
            .saturating_sub(wanted)
            .clamp(9.min(area.height / 2), area.height / 2);
        area.layout(&Layout::vertical([
            Constraint::Min(4),
            Constraint::Length(story),
        ]))
    }
}

impl View for Qps {
    fn table_id(&self) -> TableId {
        TableId::Qps
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().qps, context);
        table.keep(&context.telling);
    }

    fn details(&self, table: &Table, context: &ViewContext<'_>, wanted: &mut WantedDetails) {
        let rows = &context.history.shown().qps;
        let drawn = table.visible(rows).chain(table.current(rows));
        wanted.rows.extend(drawn.map(|(id, _)| *id));
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let rows = &context.history.shown().qps;
        let areas = Self::split(canvas.area, table.lines.len());
        if let Some((id, record)) = draw(table, rows, NONE, canvas, areas, context) {
            explanation::panel((*id, record), canvas.frame, areas[1], context);
        }
    }

    fn enter(&mut self, table: &mut Table, _: &ViewContext<'_>) -> Option<OpenTarget> {
        if table.chosen.is_none() {
            table.choose(table.top);
        }
        Some(OpenTarget::Tab(Tab::Flow))
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let rows = &context.history.shown().qps;
        context.text(table.shown(rows).map(|(_, record)| record), format)
    }

    fn about(&self) -> &'static str {
        "Notified senders, and whether they slow down: a line is one flow and one kind of notification. Notified: how \
         often, over the last second, followed by a graph of the last minute, each row on its own scale. Notified by: the origin of plain \
         CNPs; receiver or imitation if they look like its other packets, network or receiver if the origin is undecided; for other kinds, \
         only by the kind. QP: the sender's own, with \
         ~ if inferred from the CM exchange or acknowledgements; with → if only the receiver's is known; or a flow label. A \
         sender in brackets is unknown: it is the notified host. Change: how much less data there is after \
         notifications than at other times. Verdict: obeys, does not, unclear; with a number in brackets it rests on only that many \
         notifications; the line below the table gives the reason. Dim: no \
         notification for ten seconds. Enter opens the flow."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Enter", "flow"),
            ("/", "filter"),
            ("s", "sort"),
            ("c", "columns"),
            ("x", "packets"),
        ]
    }
}
