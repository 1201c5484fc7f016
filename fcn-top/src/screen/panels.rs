//! What stands under a table, as far as it is the same for all: its room, heading and bars. What is said of an empty table.

use super::View;
use super::draw::Look;
use super::fit;
use super::theme::Tone;
use crate::tables::Tables;
use fcn_tool::quantity::counted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Room for the table, and for what stands under it.
pub(super) fn split(view: View, area: Rect, lines: usize) -> (Rect, Rect) {
    let lines = u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(1);
    let wanted = match view {
        View::Paths | View::Points if lines == 1 => 0,
        View::Paths if area.height >= 9 => (area.height / 2).max(area.height.saturating_sub(lines)),
        View::Points if area.height >= 14 => (area.height / 2)
            .max(area.height.saturating_sub(lines))
            .min(lines.saturating_add(1)),
        View::Events if area.height >= 18 => (area.height / 3).min(10),
        View::Interfaces if area.height >= 9 => area.height.saturating_sub(lines.max(3)).min(11),
        _ => 0,
    };
    let rest = area.height - wanted.min(area.height);
    (
        Rect {
            height: rest,
            ..area
        },
        Rect {
            y: area.y + rest,
            height: area.height - rest,
            ..area
        },
    )
}

/// Why a table has no lines, and what to do.
pub(super) fn why_empty(
    view: View,
    tables: &Tables,
    lines: usize,
    filters: bool,
    ended: bool,
) -> String {
    if lines > 0 && filters {
        return format!(
            "The filter lets nothing of {} pass. Change it with /, or drop it with Esc.",
            counted(lines as u64, "line")
        );
    }
    let seen = counted(tables.totals.packets, "packet");
    let what = match view {
        View::Qps | View::Flow => "No congestion notification",
        View::Points => "Nobody has sent a congestion notification",
        View::Paths => "No IOAM trace",
        View::Events => "Nothing worth telling",
        View::Interfaces => return "There is no interface yet.".to_owned(),
    };
    match (ended, tables.totals.packets) {
        (true, 0) => format!("{what}: no packet came at all."),
        (true, _) => format!("{what} in {seen}."),
        (false, 0) => format!(
            "{what} yet: no packet has come so far. Interfaces (6) tells where packets are waited for."
        ),
        (false, _) => format!("{what} yet in {seen}."),
    }
}

/// A line between the table and the panel, with a title; returns the room under it.
pub(super) fn headed(title: &str, area: Rect, look: Look<'_>, buffer: &mut Buffer) -> Rect {
    if area.height == 0 {
        return area;
    }
    let dim = look.theme.style(Tone::Dim);
    fit::put(
        buffer,
        area,
        (area.x, area.y),
        &"─".repeat(area.width.into()),
        area.width,
        dim,
    );
    fit::put(
        buffer,
        area,
        (area.x + 2, area.y),
        &format!(" {title} "),
        area.width.saturating_sub(4),
        look.theme.bold(Tone::Plain),
    );
    Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    }
}

/// A bar of `room` cells: solid up to `value`, shaded up to `most`, of a scale that ends at `top`.
pub(super) fn bar(value: f64, most: f64, top: f64, room: u16) -> (String, String) {
    let cells = |value: f64| {
        let part = if top > 0.0 {
            (value / top).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let cells = (part * f64::from(room)).round() as usize;
        // What is there is seen.
        if value > 0.0 { cells.max(1) } else { cells }
    };
    let (solid, all) = (cells(value), cells(most));
    ("█".repeat(solid), "░".repeat(all.saturating_sub(solid)))
}
