//! The view of paths from IOAM traces: hop by hop, with bars for the queues, and a diagram of the
//! selected path.

use super::Format;
use super::context::{ViewContext, Written};
use super::fit;
use super::hits::DrawContext;
use super::table::{Entry, Extra, Key, Schema, Table};
use super::theme::Tone;
use super::views::{TableId, View, draw, headed, parted};
use crate::record::{Cell, HopRecord};
use fcn_tool::quantity::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Bar, BarChart, BarGroup, Block, Borders, LineGauge};

impl Entry for HopRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "hop",
        extra: &[Extra::graph(
            "bar",
            "queue",
            24,
            "The queue in the last trace (solid) and the deepest one (shaded), on one scale for all hops",
        )],
        usual: &[
            ("path", 0, "path"),
            ("hop", 0, "hop"),
            ("node", 0, "node"),
            ("bar", 1, "queue"),
            ("queue", 2, "last queue"),
            ("queue_max", 3, "deepest queue"),
            ("delay", 4, "transit"),
            ("between", 5, "from previous"),
            ("delay_max", 6, "most transit"),
            ("queue_mean", 7, "mean queue"),
            ("ingress", 8, "In"),
            ("egress", 9, "Out"),
            ("traces", 10, "traces"),
            ("namespace", 11, "namespace"),
            ("last_seen", 12, "last"),
        ],
        fixed: 3,
        order: "path",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Hop {
            path: self.path,
            hop: self.hop,
        }
    }

    fn graph(
        &self,
        _: &str,
        style: Style,
        frame: &mut Frame<'_>,
        area: Rect,
        context: &ViewContext<'_>,
    ) {
        let hops = &context.history.shown().hops;
        let top = hops.iter().filter_map(|hop| hop.queue_max).max();
        let cells = |queue: Option<u32>| {
            let share = f64::from(queue.unwrap_or(0)) / f64::from(top.unwrap_or(0).max(1));
            (share * f64::from(area.width.saturating_sub(1))).ceil()
        };
        let (last, most) = (cells(self.queue), cells(self.queue_max));
        if most <= 0.0 {
            return;
        }
        // A gauge reserves the first cell for its label, and rounds down.
        let gauge = LineGauge::default()
            .label("")
            .ratio(((last + 0.5) / most).min(1.0))
            .filled_symbol("█")
            .unfilled_symbol("░")
            .filled_style(style)
            .unfilled_style(style);
        let width = most as u16 + 1;
        frame.render_widget(gauge, Rect { width, ..area });
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "path" | "hop" | "node" => Tone::Strong,
            _ => Tone::Plain,
        }
    }
}

/// The paths view.
#[derive(Debug, Default)]
pub(super) struct Paths;

impl View for Paths {
    fn table_id(&self) -> TableId {
        TableId::Hops
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().hops, context);
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let hops = &context.history.shown().hops;
        let room = canvas.area.height;
        let picture = if room < 14 || hops.is_empty() {
            0
        } else {
            room.saturating_sub(fit::cells(hops.len() + 2))
                .max(room / 2)
                .min(16)
        };
        let areas = parted(canvas.area, picture);
        let nothing = Some("No IOAM trace");
        let Some(chosen) = draw(table, hops, nothing, canvas, areas, context) else {
            return;
        };
        let mut path: Vec<&HopRecord> = hops.iter().filter(|hop| hop.path == chosen.path).collect();
        path.sort_by_key(|hop| hop.hop);
        let title = format!(
            " Path {}: {}, {}; queue, last and deepest, in the namespace's unit ",
            chosen.path,
            counted(path.len() as u64, "node"),
            counted(chosen.traces, "trace")
        );
        let frame = &mut *canvas.frame;
        let area = headed(title, areas[1], frame, context);
        // Each node with its two bars, and an arrow with the time between nodes.
        let each = (area.width / fit::cells(path.len()).max(1)).clamp(6, 28);
        let [arrows, area] = area.layout(&Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
        ]));
        let node = |hop: &HopRecord| {
            hop.node
                .map_or_else(|| format!("hop {}", hop.hop), |node| format!("node {node}"))
        };
        for (place, hop) in (0..).zip(path.iter().skip(1)) {
            let time = hop.between.map_or_else(String::new, |time| {
                format!(" {} ", context.formatter.cell(Cell::Span(time)))
            });
            let x = each.saturating_mul(place).saturating_add(each / 2);
            let arrow = Block::new()
                .borders(Borders::TOP)
                .title_top(Line::from(time).centered())
                .title_top(Line::from("→").right_aligned());
            let room = arrows.width.saturating_sub(x);
            let arrows = Rect::new(arrows.x.saturating_add(x), arrows.y, each.min(room), 1);
            frame.render_widget(arrow, arrows);
        }
        let width = (each.saturating_sub(4) / 2).clamp(1, 9);
        let deepest = path.iter().filter_map(|hop| hop.queue_max).max();
        let groups = path.iter().map(|hop| {
            let bar = |queue: Option<u32>, tone| {
                let text = context.maybe(queue, |queue| Cell::Count(queue.into()));
                Bar::default()
                    .value(queue.unwrap_or(0).into())
                    .text_value(text)
                    .style(context.style(tone))
            };
            let tone = if hop.queue_max == deepest {
                Tone::Warn
            } else {
                Tone::Plain
            };
            BarGroup::new(vec![bar(hop.queue, tone), bar(hop.queue_max, Tone::Dim)])
                .label(Line::from(node(hop)).centered())
        });
        let chart = BarChart::grouped(groups.collect::<Vec<_>>())
            .bar_width(width)
            // After each number.
            .bar_gap(1)
            .group_gap(each.saturating_sub(width * 2 + 2))
            .value_style(context.theme.chosen());
        frame.render_widget(chart, area);
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let hops = &context.history.shown().hops;
        context.text(table.shown(hops), format)
    }

    fn about(&self) -> &'static str {
        "Paths from IOAM traces, node by node: solid is the queue in the last trace, shaded the deepest one. Below, \
         the path of the selected line from left to right, with the time from each node to the next; the deepest queue of the \
         path stands out."
    }
}
