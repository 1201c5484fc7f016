//! The view of notifiers: congestion points, receivers and translating nodes; how much each sends, and which flows it slows down.

use super::Records;
use super::explanation::{flow_text, origin_name};
use super::fit;
use super::hits::Place;
use super::table::{Entry, Extra, Key, Schema, Table, shortened};
use super::theme::Tone;
use super::views::{Opened, TableId, View, draw, headed, parted};
use super::world::World;
use crate::record::{Cell, Column, PointRecord, QpRecord, Record};
use crate::tables::WantedDetails;
use fcn_wire::Kind;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// The kind that it notifies by most.
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
        extra: &[Extra::graph(
            "trend",
            "rate_10s",
            30,
            "Its notifications over the last minute, or since the first packet; each has its own scale",
        )],
        usual: &[
            ("rate_1s", 0, "rate"),
            ("trend", 3, "course"),
            ("notifier", 0, "notifier"),
            ("origin", 1, "is a"),
            ("flows", 2, "flows slowed"),
            ("total", 4, "total"),
            ("level_max", 5, "level"),
            ("queue_max", 6, "deepest queue"),
            ("findings", 7, "findings"),
            ("trusted", 8, "trusted"),
            ("malformed", 9, "unreadable"),
            ("cnp", 10, "CNP"),
            ("fast_cnp_1", 11, "Fast 1"),
            ("fast_cnp_2", 12, "Fast 2"),
            ("proxy_cn", 13, "Proxy"),
            ("wan_fcn", 14, "WAN"),
            ("last_seen", 15, "last"),
        ],
        order: "-rate_1s",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Point(self.notifier, self.origin.id())
    }

    fn text(&self, number: usize, column: &'static Column, room: u16, world: &World<'_>) -> String {
        match (column.id, self.cell(number)) {
            ("trend", _) => String::new(),
            ("origin", _) => origin_name(self.origin).to_owned(),
            // None of a kind is as good as nothing.
            (_, Cell::Count(0)) => world.words.cell(Cell::None),
            (_, cell) => shortened(&world.in_column(column, cell), room).into_owned(),
        }
    }

    fn bars(&self, _: &str, room: u16, world: &World<'_>) -> Vec<f64> {
        let series = world.details.points.get(&(self.notifier, self.origin));
        world.trend(series, |series| &series.notifications, room)
    }

    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        column.id != "trend" && matches!(self.cell(number), Cell::None | Cell::Count(0))
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "trusted" if self.trusted == Some(false) => Tone::Bad,
            "findings" if self.findings > 0 => Tone::Warn,
            "malformed" if self.malformed > 0 => Tone::Warn,
            _ if self.rate_10s == Some(0.0) => Tone::Dim,
            "origin" | "trend" => Tone::Kind(kind(self)),
            _ => Tone::Plain,
        }
    }
}

/// The view.
#[derive(Debug, Default)]
pub(super) struct Points;

impl View for Points {
    fn table_id(&self) -> TableId {
        TableId::Points
    }

    fn arrange(&mut self, table: &mut Table, world: &World<'_>) {
        table.arrange(&world.history.shown().points, world);
    }

    fn details(&self, table: &Table, world: &World<'_>, wanted: &mut WantedDetails) {
        let visible = table.visible(&world.history.shown().points);
        wanted
            .points
            .extend(visible.map(|point| (point.notifier, point.origin)));
    }

    fn draw(&mut self, table: &mut Table, place: &mut Place<'_, '_>, world: &World<'_>) {
        let shown = world.history.shown();
        let room = place.area.height;
        let panel = if room < 14 || shown.points.is_empty() {
            0
        } else {
            room.saturating_sub(fit::cells(shown.points.len() + 2))
                .max(room / 3)
        };
        let areas = parted(place.area, panel);
        let nothing = Some("Nobody has sent a congestion notification");
        let Some(point) = draw(table, &shown.points, nothing, place, areas, world) else {
            return;
        };
        // The flows that it slows, those notified most first.
        let mut rows: Vec<_> = shown
            .qps
            .iter()
            .map(|(_, row)| row)
            .filter(|row| row.notifier == point.notifier)
            .collect();
        let rate = |row: &QpRecord| row.rate_1s.unwrap_or(0.0);
        rows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        let title = format!(
            " {}, {}: the flows it slows ",
            world.words.address(point.notifier),
            origin_name(point.origin)
        );
        let panel = headed(title, areas[1], place.frame, world);
        let line = |row: &QpRecord| {
            let rate = format!("{}/s", world.maybe(row.rate_1s, Cell::Rate));
            let kind = world.words.cell(Cell::Name(row.kind.id()));
            let verdict = row.verdict.map_or("no data", |verdict| verdict.id());
            let flow = flow_text(row, 60, world);
            Line::from(format!("{rate:>9}  {kind:<10}  {flow}  {verdict}"))
        };
        let lines: Vec<Line<'_>> = match rows.as_slice() {
            [] => vec![Line::from("none of them is kept")],
            rows => rows
                .iter()
                .take(panel.height.into())
                .map(|row| line(row))
                .collect(),
        };
        place.frame.render_widget(Paragraph::new(lines), panel);
    }

    fn enter(&mut self, table: &mut Table, world: &World<'_>) -> Option<Opened> {
        let point = table.current(&world.history.shown().points)?;
        Some(Opened::Qps("notifier", Cell::Address(point.notifier)))
    }

    fn records(&self, table: &Table, world: &World<'_>) -> Records {
        let points = &world.history.shown().points;
        Records::Points(table.shown(points).cloned().collect())
    }

    fn about(&self) -> &'static str {
        "Who tells others to slow down: switches with Fast CNPs, proxy notifications and WAN FCNs; receivers with CNPs; how \
         much, over the last minute, and how deep queues were. Below, the flows that the chosen one slows. Enter shows them \
         in the table of QPs."
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
