//! The view of notifiers: congestion points, receivers and translating nodes; their rates, and the
//! flows they notified.

use super::Format;
use super::context::{Course, ViewContext, Written, kind_name};
use super::explanation::flow_text;
use super::fit;
use super::hits::DrawContext;
use super::qps::{qp_text, verdict};
use super::table::{Entry, Extra, Key, Schema, Table, shortened};
use super::theme::Tone;
use super::views::{OpenTarget, TableId, View, course_bars, draw, headed, in_columns, parted};
use crate::record::{Cell, Column, PointRecord, QpRecord, Record, RowId};
use crate::tables::WantedDetails;
use crate::text::{acts_as, estimate, flows_unclear};
use fcn_observe::rules::NOTIFIERS;
use fcn_tool::quantity::grouped;
use fcn_wire::Kind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{self, Row};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter;
use std::net::IpAddr;

/// Minimum width for a matrix of notifiers and senders beside the flows, in cells.
const MATRIX: u16 = 110;
/// Widths of a notifier's name and of a sender's column in it, in cells.
const NAME: u16 = 16;
const COLUMN: u16 = 10;
/// Index of the column that names a flow.
const FLOW: usize = 3;
/// Maximum number of rows whose notifiers are requested: those notified most.
const ROWS: usize = 256;
/// Heading and maximum width in cells of the column with a flow's capture point.
const SEEN_ON: &str = "seen on";
const PLACE: u16 = 16;
/// Minimum widths of a flow's number of notifications, QP and verdict, in cells.
const TIMES: u16 = 9;
const QP: u16 = 12;
const VERDICT: u16 = 8;

/// Returns the kind that it sends most.
fn kind(point: &PointRecord) -> Kind {
    let counts = [
        point.cnp,
        point.fast_cnp_1,
        point.fast_cnp_2,
        point.proxy_cn,
        point.wan_fcn,
    ];
    let most = Kind::ALL
        .into_iter()
        .zip(counts)
        .max_by_key(|(_, count)| *count);
    most.map_or(Kind::Cnp, |(kind, _)| kind)
}

impl Entry for PointRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "notifier",
        extra: &[
            Extra::graph(
                "trend",
                "rate_10s",
                30,
                "Its notifications over the last minute, or since the first packet; each has its own scale",
            ),
            Extra::graph(
                "queue_trend",
                "queue_max",
                10,
                "The deepest queue it reported, over the same time",
            ),
            Extra::graph(
                "level_trend",
                "level_max",
                10,
                "Its highest congestion level, over the same time",
            ),
        ],
        usual: &[
            ("rate_1s", 0, "rate"),
            ("total", 4, "total"),
            // A number of samples is not a number of packets: it is shown with every total.
            ("samples", 3, "samples"),
            ("trend", 3, "course"),
            ("notifier", 0, "notifier"),
            ("notifier_role", 1, "acts as"),
            ("flows", 2, "flows notified"),
            ("level_max", 5, "level"),
            ("level_trend", 8, "course"),
            ("queue_max", 6, "deepest queue"),
            ("queue_trend", 7, "course"),
            ("findings", 9, "findings"),
            ("trusted", 10, "trusted"),
            ("malformed", 11, "unreadable"),
            ("cnp", 12, "CNP"),
            ("fast_cnp_1", 13, "Fast 1"),
            ("fast_cnp_2", 14, "Fast 2"),
            ("proxy_cn", 15, "Proxy"),
            ("wan_fcn", 16, "WAN"),
            ("last_seen", 17, "last"),
        ],
        order: "-rate_1s",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Point(self.notifier)
    }

    /// Without rates, those that have notified most.
    fn rank(&self, index: usize) -> (u64, u64) {
        (self.total, index as u64)
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        context: &ViewContext<'_>,
    ) -> String {
        match (column.id, self.cell(number)) {
            ("notifier_role", _) => {
                fit::end(acts_as(self.notifier_role, self.made_by), room).into_owned()
            }
            ("flows", _) if let Some(unclear) = flows_unclear(self) => unclear,
            // A count of zero is shown as empty.
            (_, Cell::Count(0)) => context.formatter.cell(Cell::None),
            (_, cell) => shortened(&context.in_column(column, cell), room).into_owned(),
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
        let course = match id {
            "queue_trend" => Course::Queue,
            "level_trend" => Course::Level,
            _ => Course::Notifications,
        };
        let series = context.details.points.get(&self.notifier);
        course_bars(series, course, style, frame, area, context);
    }

    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        match column.id {
            "trend" => false,
            "queue_trend" => self.queue_max.is_none(),
            "level_trend" => self.level_max.is_none(),
            "flows" => self.flows == 0 && flows_unclear(self).is_none(),
            _ => matches!(self.cell(number), Cell::None | Cell::Count(0)),
        }
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "trusted" if self.trusted == Some(false) => Tone::Bad,
            "findings" if self.findings > 0 => Tone::Warn,
            "malformed" if self.malformed > 0 => Tone::Warn,
            _ if self.rate_10s == Some(0.0) => Tone::Dim,
            "notifier_role" | "trend" | "queue_trend" | "level_trend" => Tone::Kind(kind(self)),
            _ => Tone::Plain,
        }
    }
}

/// Returns the rows notified most, up to the number whose notifiers are requested.
fn most_notified<'w>(context: &'w ViewContext<'_>) -> Vec<&'w (RowId, QpRecord)> {
    let mut rows: Vec<_> = context.history.shown().qps.iter().collect();
    if rows.len() > ROWS {
        rows.select_nth_unstable_by_key(ROWS, |(_, row)| Reverse(row.total));
        rows.truncate(ROWS);
    }
    rows.sort_unstable_by_key(|(id, row)| (Reverse(row.total), *id));
    rows
}

/// Returns the number of notifications of a row by each notifier.
fn notifiers<'w>(id: RowId, context: &'w ViewContext<'_>) -> &'w [(IpAddr, u64)] {
    let series = context.details.rows.get(&id);
    series.map_or(&[], |series| &series.notifiers)
}

/// Returns a qualifier for counts by notifier and row if another moment than the present is shown.
fn until_now(context: &ViewContext<'_>) -> &'static str {
    context.until_now(context.details.rows.values())
}

/// Draws the flows notified by a notifier, most notified first.
fn draw_flows(point: &PointRecord, frame: &mut Frame<'_>, area: Rect, context: &ViewContext<'_>) {
    let rows = most_notified(context).into_iter().flat_map(|(id, row)| {
        let its = |(by, _): &&(IpAddr, u64)| *by == point.notifier;
        notifiers(*id, context)
            .iter()
            .filter(its)
            .map(move |(_, count)| (*count, row))
    });
    let mut rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        let qps = &context.history.shown().qps;
        let several = |(_, row): &(RowId, QpRecord)| row.notifiers > NOTIFIERS as u32;
        let why = match qps.len() {
            0..=ROWS if qps.iter().any(several) => {
                format!("unknown: rows keep only their first {NOTIFIERS} notifiers")
            }
            0..=ROWS => "none is kept".to_owned(),
            _ => format!("none is among the {ROWS} notified most (Enter shows them)"),
        };
        return frame.render_widget(fit::end(&why, area.width).into_owned(), area);
    }
    rows.sort_by_key(|(count, _)| Reverse(*count));
    let place = |(_, row): &(u64, &QpRecord)| {
        let place = context.place(row)?;
        Some(context.formatter.text(place).into_owned())
    };
    let places = rows.iter().filter_map(place);
    let places = places.map(|place| fit::width(&place)).max();
    let places = places.map_or(0, |widest| widest.clamp(fit::width(SEEN_ON), PLACE));
    let widest = |text: &dyn Fn(&(u64, &QpRecord)) -> String, least| {
        let widths = rows.iter().map(|row| fit::width(&text(row)));
        widths.max().map_or(least, |widest| widest.max(least))
    };
    let times = |&(count, row): &(u64, &QpRecord)| {
        let mark = estimate(row, "total");
        format!("{mark}{}", context.formatter.cell(Cell::Count(count)))
    };
    let qp = widest(&|(_, row)| qp_text(row), QP);
    let says = widest(&|(_, row)| verdict(row).0, VERDICT);
    let widths = [widest(&times, TIMES), 6, qp].map(Constraint::Length);
    let widths = widths.into_iter();
    let widths = widths.chain([Constraint::Max(60), Constraint::Length(says)]);
    let place_width = (places > 0).then_some(Constraint::Length(places));
    let widths: Vec<_> = widths.chain(place_width).collect();
    let columns = Layout::horizontal(&widths).spacing(1).split(area);
    rows.truncate(area.height.into());
    let flow = |at: usize, room| flow_text(rows[at].1, room, context);
    let room = columns[FLOW].width;
    let mut flows: Vec<_> = (0..rows.len()).map(|at| flow(at, room)).collect();
    fit::tell_apart(&mut flows, room, |at| flow(at, u16::MAX));
    let line = |(row, flow): (&(u64, &QpRecord), String)| {
        let (verdict, tone) = verdict(row.1);
        let kind = kind_name(row.1.kind);
        [
            Line::from(times(row)).right_aligned(),
            Line::styled(kind, context.style(Tone::Kind(row.1.kind))),
            Line::from(qp_text(row.1)).right_aligned(),
            flow.into(),
            Line::styled(verdict, context.style(tone)),
            place(row).unwrap_or_default().into(),
        ]
    };
    let style = context.style(Tone::Dim);
    let heading = [
        Line::styled("notified", style).right_aligned(),
        Line::styled("kind", style),
        Line::styled("QP", style).right_aligned(),
        Line::styled("sender → receiver", style),
        Line::styled("verdict", style),
        Line::styled(SEEN_ON, style),
    ];
    let lines = iter::once(heading).chain(rows.iter().zip(flows).map(line));
    let lines = lines.take(area.height.into());
    let table = widgets::Table::new(in_columns(lines, &columns), &widths);
    frame.render_widget(table, area);
}

/// Draws a matrix of notifications by notifier and sender, with the most notified senders.
fn draw_matrix(
    points: &[&PointRecord],
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    if area.is_empty() {
        return;
    }
    let mut places: HashMap<_, (u64, &str)> = HashMap::new();
    for (id, row) in most_notified(context) {
        let sender = row.sender.unwrap_or(row.destination);
        let place = context.place(row);
        for (notifier, count) in notifiers(*id, context) {
            let (sum, mark) = places.entry((*notifier, sender, place)).or_default();
            *sum += count;
            *mark = estimate(row, "total").max(*mark);
        }
    }
    // Several capture points may have captured the same packets: the maximum counts.
    let mut counts: HashMap<(IpAddr, IpAddr), (u64, &str)> = HashMap::new();
    for ((notifier, sender, _), count) in places {
        let most = counts.entry((notifier, sender)).or_default();
        *most = count.max(*most);
    }
    let mut senders: HashMap<IpAddr, u64> = HashMap::new();
    for ((_, sender), (count, _)) in &counts {
        *senders.entry(*sender).or_default() += count;
    }
    let mut senders: Vec<_> = senders.into_iter().collect();
    senders.sort_by_key(|(sender, count)| (Reverse(*count), *sender));
    let all = senders.len();
    senders.truncate(usize::from(area.width.saturating_sub(NAME) / (COLUMN + 1)));
    let names = |addresses: &[IpAddr], room| {
        let whole: Vec<_> = addresses.iter().map(|one| context.address(*one)).collect();
        let cuts = whole.iter().map(|name| shortened(name, room));
        let mut cuts: Vec<_> = cuts.map(Cow::into_owned).collect();
        fit::tell_apart(&mut cuts, room, |at| whole[at].clone());
        cuts
    };
    let heading: Vec<_> = senders.iter().map(|(sender, _)| *sender).collect();
    let heading = names(&heading, COLUMN).into_iter();
    let heading = heading.map(|name| Text::from(name).right_aligned());
    let about = match (until_now(context), senders.len()) {
        ("", shown) if shown < all => format!("{shown} of {all} senders"),
        (until_now, shown) if shown < all => format!("{shown}/{all}{until_now}"),
        ("", _) if context.by_place => "by capture point".to_owned(),
        ("", _) => "notifies".to_owned(),
        (until_now, _) => until_now.trim_start().to_owned(),
    };
    let about = fit::end(&about, NAME).into_owned();
    let heading = Row::new(iter::once(Text::from(about)).chain(heading));
    let points = points.iter().take(area.height.into());
    let notifiers: Vec<_> = points.clone().map(|point| point.notifier).collect();
    let line = |(point, name): (&&PointRecord, String)| {
        let counts = senders.iter().map(|(sender, _)| {
            let count = counts.get(&(point.notifier, *sender));
            let mark = count.map_or("", |(_, mark)| mark);
            let text = match flows_unclear(point).filter(|_| point.flows == 0) {
                Some(unknown) => unknown,
                None => context.maybe(count, |(count, _)| Cell::Count(*count)),
            };
            Text::from(format!("{mark}{text}")).right_aligned()
        });
        let style = context.style(Tone::Kind(kind(point)));
        let name = Text::styled(name, style);
        Row::new(iter::once(name).chain(counts))
    };
    let widths = iter::repeat_n(Constraint::Length(COLUMN), senders.len());
    let table = widgets::Table::new(
        points.zip(names(&notifiers, NAME)).map(line),
        iter::once(Constraint::Length(NAME)).chain(widths),
    );
    let heading = heading.style(context.style(Tone::Dim));
    frame.render_widget(table.header(heading), area);
}

/// The points view.
#[derive(Debug, Default)]
pub(super) struct Points;

impl View for Points {
    fn table_id(&self) -> TableId {
        TableId::Points
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().points, context);
    }

    fn details(&self, table: &Table, context: &ViewContext<'_>, wanted: &mut WantedDetails) {
        let visible = table.visible(&context.history.shown().points);
        wanted.points.extend(visible.map(|point| point.notifier));
        let rows = most_notified(context).into_iter();
        wanted.rows.extend(rows.map(|(id, _)| *id));
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let shown = context.history.shown();
        let room = canvas.area.height;
        let panel = if room < 14 || shown.points.is_empty() {
            0
        } else {
            room.saturating_sub(fit::cells(shown.points.len() + 2))
                .max(room / 3)
        };
        let areas = parted(canvas.area, panel);
        let nothing = Some("No notifier");
        let Some(point) = draw(table, &shown.points, nothing, canvas, areas, context) else {
            return;
        };
        let of = match shown.qps.len() {
            0..=ROWS => String::new(),
            all => format!(", of the {ROWS} of {} notified most", grouped(all as u64)),
        };
        let until = match until_now(context) {
            "" => String::new(),
            until_now => format!("{until_now}, verdicts of this moment"),
        };
        let title = format!(
            " {}, acts as {}: flows notified{of}{until} ",
            context.formatter.address(point.notifier),
            acts_as(point.notifier_role, point.made_by)
        );
        let points: Vec<_> = table.shown(&shown.points).collect();
        let panel = headed(title, areas[1], canvas.frame, context);
        // With only some of the rows, sums would be too low.
        let is_whole = shown.qps.len() <= ROWS;
        let [flows, matrix] = if panel.width < MATRIX || points.len() < 2 || !is_whole {
            [panel, Rect::ZERO]
        } else {
            let mut rows = most_notified(context).into_iter();
            let has_places = rows.any(|(_, row)| context.place(row).is_some());
            let parts = [1 + u16::from(has_places), 1].map(Constraint::Fill);
            panel.layout(&Layout::horizontal(parts).spacing(3))
        };
        draw_flows(point, canvas.frame, flows, context);
        draw_matrix(&points, canvas.frame, matrix, context);
    }

    fn enter(&mut self, table: &mut Table, context: &ViewContext<'_>) -> Option<OpenTarget> {
        let point = table.current(&context.history.shown().points)?;
        Some(OpenTarget::Qps("notifier", Cell::Address(point.notifier)))
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let points = &context.history.shown().points;
        context.text(table.shown(points), format)
    }

    fn about(&self) -> &'static str {
        "Notifiers: switches with Fast CNPs, proxy notifications and WAN FCNs; receivers with CNPs; how \
         much they notified, over the last minute, and how deep queues were. Acts as: the role by what it sends, which anyone can forge, \
         and the inferred origin of plain CNPs. Below, the flows that the selected one notified, whatever their verdict, and \
         how often each notifier has notified each sender, if there is room and no row is left out. Enter shows the flows in the table \
         of QPs."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Enter", "its QPs"),
            ("/", "filter"),
            ("s", "sort"),
            ("c", "columns"),
        ]
    }
}
