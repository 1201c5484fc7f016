//! The view of interfaces: sources of packets, losses, and sums over everything captured.

use super::Format;
use super::context::{ViewContext, Written};
use super::fit;
use super::hits::DrawContext;
use super::table::{Entry, Key, Schema, Table};
use super::theme::Tone;
use super::views::{TableId, View, draw, headed, labelled, parted, tell};
use crate::record::{Cell, Column, InterfaceRecord, MADE_UP, PauseRecord, Record};
use crate::text;
use fcn_tool::quantity::counted;
use fcn_wire::Kind;
use std::sync::Arc;

/// Maximum number of senders of pauses described below the table.
const PAUSERS: usize = 3;

impl Entry for InterfaceRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "interface",
        usual: &[
            ("name", 0, "interface"),
            ("state", 0, "state"),
            ("dropped_kernel", 1, "dropped by kernel"),
            ("dropped_interface", 2, "by interface"),
            ("rate_1s", 3, "packet rate"),
            ("received", 4, "packets"),
            ("notifications", 5, "notifications"),
            ("data", 6, "RoCEv2 data"),
            ("other", 7, "other"),
            ("pfc", 8, "PFC pauses"),
            ("paused", 9, "by class"),
            ("cut", 10, "truncated"),
            ("undecodable", 11, "unreadable"),
            ("octets", 12, "octets"),
            ("about", 13, "about"),
        ],
        order: "name",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Interface(Arc::clone(&self.name))
    }

    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        column.id == "pfc" && self.pfc == 0 || self.cell(number) == Cell::None
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "pfc" | "paused" if self.pfc > 0 => Tone::Warn,
            "dropped_kernel" if self.dropped_kernel.unwrap_or(0) > 0 => Tone::Bad,
            "dropped_interface" if self.dropped_interface.unwrap_or(0) > 0 => Tone::Bad,
            "cut" if self.cut > 0 => Tone::Warn,
            "undecodable" if self.undecodable > 0 => Tone::Warn,
            "state" => match self.state {
                "up" => Tone::Good,
                "file" | "ended" | MADE_UP => Tone::Plain,
                _ => Tone::Bad,
            },
            _ => Tone::Plain,
        }
    }
}

/// The interfaces view.
#[derive(Debug, Default)]
pub(super) struct Interfaces;

impl View for Interfaces {
    fn table_id(&self) -> TableId {
        TableId::Interfaces
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().interfaces, context);
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let interfaces = &context.history.shown().interfaces;
        let panel = match canvas.area.height {
            0..9 => 0,
            height => height
                .saturating_sub(fit::cells(interfaces.len() + 2).max(4))
                .min(16),
        };
        let [area, panel] = parted(canvas.area, panel);
        draw(table, interfaces, None, canvas, [area, panel], context);
        if !panel.is_empty() {
            let panel = headed(" All interfaces ", panel, canvas.frame, context);
            let text = labelled(totals(context), panel.width, context);
            tell(text, panel, canvas.frame);
        }
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let interfaces = &context.history.shown().interfaces;
        context.text(table.shown(interfaces), format)
    }

    fn about(&self) -> &'static str {
        "Sources of packets, and losses: only if both drop counters are 0 is everything counted. A \
         question mark or dash means unknown. PFC pauses: frames that pause a class of traffic; \
         paused senders look as if they obeyed. Below, totals of all interfaces, and who paused longest."
    }
}

/// Describes the pauses from one sender.
fn paused(pauses: &PauseRecord, context: &ViewContext<'_>) -> String {
    let words = context.formatter;
    let what = match pauses.class {
        Some(class) => format!("class {class}"),
        None => "all traffic".to_owned(),
    };
    let place = match &pauses.interface {
        Some(name) => format!(" on {}", words.text(name)),
        None => String::new(),
    };
    let span = |span| words.cell(Cell::Span(span));
    format!(
        "{what} by {}{place}: {} in {}, longest {}{}",
        pauses.mac,
        span(pauses.paused),
        counted(pauses.episodes, "episode"),
        span(pauses.longest),
        if pauses.storm { ", a storm" } else { "" }
    )
}

/// Returns the sums over everything captured, and the numbers of entries kept.
fn totals(context: &ViewContext<'_>) -> Vec<(&'static str, String, Tone)> {
    let tables = context.history.shown();
    let (totals, words) = (&tables.totals, context.formatter);
    let count = |count: u64| words.cell(Cell::Count(count));
    let kinds = Kind::ALL
        .iter()
        .zip(totals.notifications)
        .filter(|(_, number)| *number > 0);
    let kinds: Vec<String> = kinds
        .map(|(kind, number)| format!("{} {}", kind.id(), count(number)))
        .collect();
    let [notes, warnings, errors] = totals.findings;
    let bad = |wrong: bool, tone| if wrong { tone } else { Tone::Plain };
    let mut lines = vec![(
        "Packets",
        format!("{}, {} octets", count(totals.packets), count(totals.octets)),
        Tone::Plain,
    )];
    if totals.copies > 0 {
        let text = format!(
            "{} of them, counted below at the first capture point",
            count(totals.copies)
        );
        lines.push(("Copies", text, Tone::Plain));
    }
    if totals.samples > 0 {
        let text = format!("{}, each counted as one here", count(totals.samples));
        lines.push(("Samples", text, Tone::Plain));
    }
    for pauses in tables.pauses.iter().take(PAUSERS) {
        let tone = if pauses.storm { Tone::Bad } else { Tone::Warn };
        lines.push(("Paused", paused(pauses, context), tone));
    }
    if let Some(started) = tables.started {
        let span = words.cell(Cell::Span(tables.span()));
        let text = format!(
            "{} to {}, {span}",
            words.day_and_time(started),
            context.clock(tables.now, 6)
        );
        lines.push(("Time", text, Tone::Plain));
    }
    if let Some(back) = text::stamps_back(totals) {
        lines.push(("Time stamps", back, Tone::Warn));
    }
    lines.extend([
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
        (
            "Other packets",
            match totals.pfc {
                0 => count(totals.other),
                pfc => format!("{}, of them PFC pauses {}", count(totals.other), count(pfc)),
            },
            bad(totals.pfc > 0, Tone::Warn),
        ),
        (
            "Unreadable",
            format!(
                "{} truncated, {} undecodable, {} of them malformed notifications",
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
    ]);
    for (name, kept, gone) in [
        ("QP rows", totals.rows, totals.rows_evicted),
        ("Data flows", totals.flows, totals.flows_evicted),
        ("Notifiers", totals.notifiers, totals.notifiers_evicted),
    ] {
        let text = format!("{} kept, {} evicted", count(kept), count(gone));
        lines.push((name, text, bad(gone > 0, Tone::Warn)));
    }
    lines
}
