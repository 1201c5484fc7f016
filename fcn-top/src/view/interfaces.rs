//! Where packets come from, what was lost on the way, and sums over everything seen.

use super::sheet::{Entry, Key, Schema, Sheet};
use super::theme::Tone;
use super::views::{Place, TableId, View, empty, facts, headed};
use super::world::World;
use super::{Records, Tab};
use crate::filter::Filter;
use crate::order::Order;
use crate::record::{Cell, InterfaceRecord, Record};
use fcn_wire::Kind;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use std::sync::Arc;

static SCHEMA: Schema = Schema {
    lines: "interface",
    columns: InterfaceRecord::COLUMNS,
    extra: &[],
    titles: &[
        ("name", "interface"),
        ("state", "state"),
        ("received", "packets"),
        ("octets", "octets"),
        ("rate_1s", "packets/s"),
        ("notifications", "notifications"),
        ("data", "RoCEv2 data"),
        ("other", "other"),
        ("cut", "cut short"),
        ("undecodable", "unreadable"),
        ("dropped_kernel", "dropped by kernel"),
        ("dropped_interface", "by interface"),
        ("about", "about"),
    ],
    usual: &[
        ("name", 0),
        ("state", 0),
        ("dropped_kernel", 1),
        ("dropped_interface", 2),
        ("rate_1s", 3),
        ("received", 4),
        ("notifications", 5),
        ("data", 6),
        ("other", 7),
        ("cut", 8),
        ("undecodable", 9),
        ("octets", 10),
        ("about", 11),
    ],
    fixed: 1,
    order: "name",
    filter: Filter::parse::<InterfaceRecord>,
    read_order: Order::parse::<InterfaceRecord>,
};

impl Entry for InterfaceRecord {
    type Record = Self;
    const SCHEMA: &'static Schema = &SCHEMA;

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Interface(Arc::clone(&self.name))
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "dropped_kernel" if self.dropped_kernel.unwrap_or(0) > 0 => Tone::Bad,
            "dropped_interface" if self.dropped_interface.unwrap_or(0) > 0 => Tone::Bad,
            "cut" if self.cut > 0 => Tone::Warn,
            "undecodable" if self.undecodable > 0 => Tone::Warn,
            "state" => match self.state {
                "up" => Tone::Good,
                "file" | "ended" => Tone::Plain,
                _ => Tone::Bad,
            },
            _ => Tone::Plain,
        }
    }
}

/// The view.
#[derive(Debug, Default)]
pub(super) struct Interfaces;

impl View for Interfaces {
    fn table(&self) -> TableId {
        TableId::Interfaces
    }

    fn arrange(&mut self, sheet: &mut Sheet, world: &World<'_>) {
        sheet.arrange(&world.moments.shown().interfaces, world);
    }

    fn draw(&mut self, sheet: &mut Sheet, place: &mut Place<'_, '_>, world: &World<'_>) {
        let shown = &world.moments.shown();
        let lines = u16::try_from(shown.interfaces.len())
            .unwrap_or(u16::MAX)
            .saturating_add(2);
        let sums_height = if place.area.height < 9 {
            0
        } else {
            place.area.height.saturating_sub(lines.max(4)).min(13)
        };
        let [table, panel] = place.area.layout(&Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(sums_height),
        ]));
        sheet.draw(&shown.interfaces, place.frame, table, world, place.hits);
        if sheet.lines.is_empty() {
            empty(Tab::Interfaces, "", sheet, table, place.frame, world);
        }
        if !panel.is_empty() {
            let panel = headed(" All interfaces ", panel, place.frame, world);
            place.frame.render_widget(
                Paragraph::new(facts(sums(world), panel.width, world)),
                panel,
            );
        }
    }

    fn records(&self, sheet: &Sheet, world: &World<'_>) -> Records {
        let interfaces = &world.moments.shown().interfaces;
        Records::Interfaces(
            sheet
                .lines
                .iter()
                .filter_map(|at| interfaces.get(*at as usize))
                .cloned()
                .collect(),
        )
    }

    fn about(&self) -> &'static str {
        "Where packets come from, and what was lost on the way: only with both drop counters at 0 is everything counted. A \
         question mark or dash means that nothing is said about it. Below, sums over all interfaces."
    }
}

/// Sums over everything seen, and what is kept.
fn sums(world: &World<'_>) -> Vec<(&'static str, String, Tone)> {
    let tables = world.moments.shown();
    let (totals, words) = (&tables.totals, world.words);
    let count = |count: u64| words.cell(Cell::Count(count));
    let kept = |kept: u64, gone: u64| format!("{} kept, {} evicted", count(kept), count(gone));
    let kinds = Kind::ALL
        .iter()
        .zip(totals.notifications)
        .filter(|(_, number)| *number > 0);
    let kinds: Vec<String> = kinds
        .map(|(kind, number)| format!("{} {}", kind.id(), count(number)))
        .collect();
    let [notes, warnings, errors] = totals.findings;
    let bad = |wrong: bool, tone| if wrong { tone } else { Tone::Plain };
    let mut sums = vec![(
        "Packets",
        format!("{}, {} octets", count(totals.packets), count(totals.octets)),
        Tone::Plain,
    )];
    if tables.started > 0 {
        let span = words.cell(Cell::Span(tables.now.saturating_sub(tables.started)));
        let text = format!(
            "{} to {}, {span}",
            words.day_and_time(tables.started),
            words.clock(tables.now, 3)
        );
        sums.push(("Time", text, Tone::Plain));
    }
    sums.extend([
        (
            "Notifications",
            if kinds.is_empty() {
                "none".to_owned()
            } else {
                kinds.join(", ")
            },
            Tone::Plain,
        ),
        (
            "RoCEv2 data",
            format!(
                "{}, of them marked CE {}",
                count(totals.data),
                count(totals.ce)
            ),
            Tone::Plain,
        ),
        ("Other packets", count(totals.other), Tone::Plain),
        (
            "Unreadable",
            format!(
                "{} cut short, {} undecodable, {} of them notifications",
                count(totals.cut),
                count(totals.undecodable),
                count(totals.malformed)
            ),
            bad(totals.cut + totals.undecodable > 0, Tone::Warn),
        ),
        (
            "ICRC wrong",
            count(totals.icrc_bad),
            bad(totals.icrc_bad > 0, Tone::Bad),
        ),
        (
            "Findings",
            format!(
                "errors {}, warnings {}, notes {}",
                count(errors),
                count(warnings),
                count(notes)
            ),
            bad(errors > 0, Tone::Bad),
        ),
        (
            "QP rows",
            kept(totals.rows, totals.rows_evicted),
            bad(totals.rows_evicted > 0, Tone::Warn),
        ),
        (
            "Data flows",
            kept(totals.flows, totals.flows_evicted),
            bad(totals.flows_evicted > 0, Tone::Warn),
        ),
        (
            "Notifiers",
            kept(totals.points, totals.points_evicted),
            bad(totals.points_evicted > 0, Tone::Warn),
        ),
    ]);
    sums
}
