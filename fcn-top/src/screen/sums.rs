//! Sums: rules found broken, and everything seen.

use super::draw::Look;
use super::fit;
use super::panels::headed;
use super::theme::Tone;
use crate::record::Cell;
use crate::tables::Tables;
use fcn_wire::{Kind, Rule};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Which rules were found broken how often, the most often broken first.
pub(super) fn rules(
    rules: &[(&'static str, u64)],
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let area = headed("Rules found broken since the beginning", area, look, buffer);
    let mut rules: Vec<_> = rules.to_vec();
    rules.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    if rules.is_empty() {
        fit::put(
            buffer,
            area,
            (area.x, area.y),
            "none",
            area.width,
            look.theme.style(Tone::Dim),
        );
    }
    let name = rules
        .iter()
        .map(|(id, _)| fit::width(id))
        .max()
        .unwrap_or(0);
    for (y, (id, count)) in (area.top()..area.bottom()).zip(&rules) {
        let rule = Rule::ALL
            .iter()
            .map(|rule| rule.info())
            .find(|info| info.id == *id);
        let tone = rule.map_or(Tone::Plain, |rule| {
            super::line::severity_tone(rule.severity)
        });
        let pieces = [
            (
                format!("{:>9}  ", look.words.cell(Cell::Count(*count))),
                look.theme.style(Tone::Plain),
            ),
            (
                format!("{id:<0$}  ", usize::from(name)),
                look.theme.style(tone),
            ),
            (
                rule.map_or("", |rule| rule.text).to_owned(),
                look.theme.style(Tone::Dim),
            ),
        ];
        fit::put_all(buffer, area, y, &pieces);
    }
}

/// Sums over everything seen, and what is kept.
pub(super) fn sums(tables: &Tables, area: Rect, look: Look<'_>, buffer: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let area = headed("All interfaces", area, look, buffer);
    let totals = &tables.totals;
    let count = |count: u64| look.words.cell(Cell::Count(count));
    let gone = |kept: u64, gone: u64| format!("{} kept, {} evicted", count(kept), count(gone));
    let kinds: Vec<String> = Kind::ALL
        .iter()
        .zip(totals.notifications)
        .filter(|(_, number)| *number > 0)
        .map(|(kind, number)| format!("{} {}", kind.id(), count(number)))
        .collect();
    let [notes, warnings, errors] = totals.findings;
    let bad = |wrong: bool, tone| if wrong { tone } else { Tone::Plain };
    let mut facts = vec![
        (
            "Packets",
            format!("{}, {} octets", count(totals.packets), count(totals.octets)),
            Tone::Plain,
        ),
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
            gone(totals.rows, totals.rows_evicted),
            bad(totals.rows_evicted > 0, Tone::Warn),
        ),
        (
            "Data flows",
            gone(totals.flows, totals.flows_evicted),
            bad(totals.flows_evicted > 0, Tone::Warn),
        ),
        (
            "Notifiers",
            gone(totals.points, totals.points_evicted),
            bad(totals.points_evicted > 0, Tone::Warn),
        ),
    ];
    if tables.started > 0 {
        let span = tables.now.saturating_sub(tables.started);
        let text = format!(
            "{} to {}, {}",
            look.words.day_and_time(tables.started),
            look.words.clock(tables.now, 3),
            look.words.cell(Cell::Span(span))
        );
        facts.insert(1, ("Time", text, Tone::Plain));
    }
    for (y, (label, value, tone)) in (area.top()..area.bottom()).zip(facts) {
        let pieces = [
            (format!("{label:<15}"), look.theme.style(Tone::Dim)),
            (value, look.theme.style(tone)),
        ];
        fit::put_all(buffer, area, y, &pieces);
    }
}
