//! Who notifies: congestion points, receivers and those that translate; how much, and which flows each slows down.

use super::sheet::{Entry, Extra, Key, Schema, Sheet, shortened};
use super::story::{flow_text, origin_name};
use super::theme::Tone;
use super::views::{Opened, Place, TableId, View, empty, headed};
use super::world::World;
use super::{Records, Tab};
use crate::filter::Filter;
use crate::order::Order;
use crate::record::{Cell, Column, Holds, PointRecord, Record};
use crate::tables::WantedDetails;
use fcn_wire::Kind;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

static SCHEMA: Schema = Schema {
    lines: "notifier",
    columns: PointRecord::COLUMNS,
    extra: &[Extra {
        column: Column {
            id: "trend",
            title: "last minute",
            about: "Its notifications over the last minute, or since the first packet; each has its own scale",
            width: 30,
            holds: Holds::Text,
        },
        sorts: "rate_10s",
    }],
    titles: &[
        ("notifier", "notifier"),
        ("origin", "is a"),
        ("trusted", "trusted"),
        ("flows", "flows slowed"),
        ("rate_now", "notif/s, 0.1 s"),
        ("rate_1s", "notif/s"),
        ("rate_10s", "notif/s, 10 s"),
        ("rate_peak", "peak notif/s"),
        ("total", "total"),
        ("level_max", "level"),
        ("queue_max", "deepest queue"),
        ("malformed", "unreadable"),
        ("findings", "findings"),
        ("last_seen", "last"),
    ],
    usual: &[
        ("rate_1s", 0),
        ("trend", 3),
        ("notifier", 0),
        ("origin", 1),
        ("flows", 2),
        ("total", 4),
        ("level_max", 5),
        ("queue_max", 6),
        ("findings", 7),
        ("trusted", 8),
        ("malformed", 9),
        ("cnp", 10),
        ("fast_cnp_1", 11),
        ("fast_cnp_2", 12),
        ("proxy_cn", 13),
        ("wan_fcn", 14),
        ("last_seen", 15),
    ],
    fixed: 1,
    order: "-rate_1s",
    filter: Filter::parse::<PointRecord>,
    read_order: Order::parse::<PointRecord>,
};

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
    type Record = Self;
    const SCHEMA: &'static Schema = &SCHEMA;

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Point(self.notifier, self.origin.id())
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        world: &World<'_>,
    ) -> Line<'static> {
        let text = match column.id {
            "trend" => world.trend(
                world.details.points.get(&(self.notifier, self.origin)),
                |series| &series.notifications,
                room,
            ),
            "origin" => origin_name(self.origin).to_owned(),
            _ => {
                let cell = self.cell(number);
                // None of a kind is as good as nothing.
                let cell = if cell == Cell::Count(0) {
                    Cell::None
                } else {
                    cell
                };
                shortened(&world.words.in_column(column, cell), room).into_owned()
            }
        };
        Line::styled(text, world.style(self.tone(column.id)))
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
    fn table(&self) -> TableId {
        TableId::Points
    }

    fn arrange(&mut self, sheet: &mut Sheet, world: &World<'_>) {
        sheet.arrange(&world.moments.shown().points, world);
    }

    fn details(&self, sheet: &Sheet, world: &World<'_>, wanted: &mut WantedDetails) {
        let points = &world.moments.shown().points;
        let visible = sheet.visible().filter_map(|at| points.get(at));
        wanted
            .points
            .extend(visible.map(|point| (point.notifier, point.origin)));
    }

    fn draw(&mut self, sheet: &mut Sheet, place: &mut Place<'_, '_>, world: &World<'_>) {
        let shown = world.moments.shown();
        let lines = u16::try_from(shown.points.len())
            .unwrap_or(u16::MAX)
            .saturating_add(2);
        let panel = if place.area.height < 14 || shown.points.is_empty() {
            0
        } else {
            place
                .area
                .height
                .saturating_sub(lines)
                .max(place.area.height / 3)
        };
        let [table, panel] = place.area.layout(&Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(panel),
        ]));
        sheet.draw(&shown.points, place.frame, table, world, place.hits);
        if sheet.lines.is_empty() {
            return empty(
                Tab::Points,
                "Nobody has sent a congestion notification",
                sheet,
                table,
                place.frame,
                world,
            );
        }
        let Some(point) = sheet
            .current()
            .and_then(|at| shown.points.get(at))
            .filter(|_| !panel.is_empty())
        else {
            return;
        };
        // The flows that it slows, those notified most first.
        let mut rows: Vec<_> = shown
            .qps
            .iter()
            .map(|(_, row)| row)
            .filter(|row| row.notifier == point.notifier)
            .collect();
        rows.sort_by(|a, b| {
            b.rate_1s
                .unwrap_or(0.0)
                .total_cmp(&a.rate_1s.unwrap_or(0.0))
        });
        let title = format!(
            " {}, {}: the flows it slows ",
            world.words.address(point.notifier),
            origin_name(point.origin)
        );
        let panel = headed(title, panel, place.frame, world);
        let lines = rows.into_iter().take(panel.height.into()).map(|row| {
            let rate = format!("{}/s", world.maybe(row.rate_1s, Cell::Rate));
            let verdict = row.verdict.map_or("no data", |verdict| verdict.id());
            (
                world.words.cell(Cell::Name(row.kind.id())),
                rate,
                flow_text(row, 60, world),
                verdict,
            )
        });
        let lines: Vec<Line<'_>> = lines
            .map(|(kind, rate, flow, verdict)| {
                Line::from(format!("{rate:>9}  {kind:<10}  {flow}  {verdict}"))
            })
            .collect();
        let none = vec![Line::from("none of them is kept")];
        place.frame.render_widget(
            Paragraph::new(if lines.is_empty() { none } else { lines }),
            panel,
        );
    }

    fn enter(&mut self, sheet: &mut Sheet, world: &World<'_>) -> Option<Opened> {
        let point = world.moments.shown().points.get(sheet.current()?)?;
        Some(Opened::Qps("notifier", Cell::Address(point.notifier)))
    }

    fn records(&self, sheet: &Sheet, world: &World<'_>) -> Records {
        let points = &world.moments.shown().points;
        Records::Points(
            sheet
                .lines
                .iter()
                .filter_map(|at| points.get(*at as usize))
                .cloned()
                .collect(),
        )
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
