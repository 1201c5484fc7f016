//! Draws a table: as many columns as have room, the most important first, and only the lines that are seen.

use super::fit::{self, Side};
use super::line::{Line, Lines, Squeeze, side, squeeze};
use super::mouse::{Hit, Hits};
use super::sheet::Sheet;
use super::theme::{Theme, Tone};
use crate::record::{Column, Record};
use crate::text::{Words, clean};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::borrow::Cow;

/// What drawing needs to know besides what is drawn.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub theme: Theme,
    pub words: &'a Words,
}

/// A column with its texts, as it is laid out.
struct Placed {
    number: usize,
    column: &'static Column,
    cells: Vec<String>,
    /// Cells given to it.
    width: u16,
    /// Cells that it would like.
    full: u16,
}

/// Columns from left to right.
struct Laid {
    placed: Vec<Placed>,
    gap: u16,
    /// Columns that have no room.
    more: usize,
}

/// Formats the visible cells of a column, and says how wide it must be and would like to be.
fn place<L: Line>(
    sheet: &mut Sheet,
    visible: &[Cow<'_, L>],
    number: usize,
    narrow: bool,
    look: Look<'_>,
) -> Option<Placed> {
    let column = L::Record::COLUMNS.get(number)?;
    let cells: Vec<String> = visible
        .iter()
        .map(|line| line.text(number, look.words))
        .collect();
    let widest = cells.iter().map(|text| fit::width(text)).max().unwrap_or(0);
    let seen = sheet.seen.get_mut(number)?;
    *seen = widest.max(*seen);
    // One more than the heading, for the sign of the order.
    let least = fit::width(column.title) + 1;
    let full = least.max(*seen);
    let width = match squeeze(column.id) {
        Squeeze::Never => full,
        // A little less of an address is better than a column less.
        Squeeze::Middle(room) if narrow => full.min((room - 2).max(least)),
        Squeeze::Middle(room) | Squeeze::End(room) => full.min(room.max(least)),
    };
    Some(Placed {
        number,
        column,
        cells,
        width,
        full,
    })
}

/// Widens the columns that are shortened, each up to `limit` of itself, while there is room; returns what is left of it.
fn widen(placed: &mut [Placed], mut room: u16, limit: impl Fn(&Placed) -> u16) -> u16 {
    // A cell each in turn, so that two addresses get the same.
    loop {
        let before = room;
        for column in placed.iter_mut() {
            if room > 0 && column.width < limit(column) {
                column.width += 1;
                room -= 1;
            }
        }
        if room == 0 || room == before {
            return room;
        }
    }
}

fn lay<L: Line>(sheet: &mut Sheet, visible: &[Cow<'_, L>], width: u16, look: Look<'_>) -> Laid {
    let gap = if width < 100 { 1 } else { 2 };
    let layout = L::LAYOUT;
    let fixed = layout.fixed.min(sheet.columns.len());
    let skipped = sheet
        .left
        .min(sheet.columns.len().saturating_sub(fixed + 1));
    let shown: Vec<usize> = sheet
        .columns
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < fixed || *at >= fixed + skipped)
        .map(|(_, &c)| c)
        .collect();
    let core = if sheet.usual {
        layout.core
    } else {
        shown.len()
    };
    let mut placed: Vec<Placed> = Vec::new();
    let mut room = width;
    let usual = |placed: &Placed| placed.full.min(placed.column.width.max(placed.width));
    for (at, &column) in shown.iter().enumerate() {
        if at == core {
            room = widen(&mut placed, room, usual);
        }
        let Some(mut next) = place(sheet, visible, column, width < 70, look) else {
            continue;
        };
        let between = if placed.is_empty() { 0 } else { gap };
        if between + next.width > room {
            // A column that may be shortened still is of use in a part of its room; the first one always.
            let least = if placed.is_empty() { 1 } else { 8 };
            let shortened = squeeze(next.column.id) != Squeeze::Never || placed.is_empty();
            if !shortened || room < between + least {
                break;
            }
            next.width = room - between;
        }
        room -= between + next.width;
        placed.push(next);
    }
    let room = widen(&mut placed, room, usual);
    widen(&mut placed, room, |column| column.full);
    let more = shown.len() - placed.len();
    Laid { placed, gap, more }
}

/// Draws the table's heading and lines into `area`; returns how many columns have no room to the right.
pub(super) fn table<L: Line>(
    sheet: &mut Sheet,
    lines: &(impl Lines<L> + ?Sized),
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
    hits: &mut Hits,
) -> usize {
    if area.is_empty() {
        return 0;
    }
    sheet.settle(usize::from(area.height).saturating_sub(1));
    let visible: Vec<Cow<'_, L>> = (sheet.top..sheet.top + sheet.page)
        .map_while(|place| sheet.line(place, lines))
        .collect();
    let mut laid = lay(sheet, &visible, area.width, look);
    if let Some(column) = sheet.reveal.take() {
        for _ in 0..sheet.columns.len() {
            if laid.placed.iter().any(|placed| placed.number == column) {
                break;
            }
            sheet.scroll_columns::<L>(true);
            laid = lay(sheet, &visible, area.width, look);
        }
    }
    heading(sheet, &laid, area, look, buffer, hits);
    let chosen = sheet.chosen.as_ref();
    for (row, line) in visible.iter().enumerate() {
        let y = area.top() + 1 + u16::try_from(row).unwrap_or(u16::MAX - area.top() - 1);
        let whole = Rect {
            y,
            height: 1,
            ..area
        };
        let chosen = chosen.is_some_and(|key| line.key() == *key);
        if chosen {
            buffer.set_style(whole.intersection(buffer.area), look.theme.chosen());
        }
        hits.push(whole, Hit::Line(sheet.top + row));
        let mut x = area.left();
        for placed in &laid.placed {
            let text = placed.cells.get(row).map_or("", String::as_str);
            let style = if chosen {
                look.theme.chosen()
            } else {
                look.theme.style(line.tone(placed.column.id))
            };
            let text = clean(text);
            let text = match squeeze(placed.column.id) {
                Squeeze::Middle(_) if text.contains(':') => fit::middle(&text, placed.width),
                _ => fit::end(&text, placed.width),
            };
            let indent = match side(placed.column) {
                Side::Left => 0,
                Side::Right => placed.width - fit::width(&text).min(placed.width),
            };
            fit::put(buffer, area, (x + indent, y), &text, placed.width, style);
            x += placed.width + laid.gap;
        }
    }
    laid.more
}

fn heading(
    sheet: &Sheet,
    laid: &Laid,
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
    hits: &mut Hits,
) {
    let mut x = area.left();
    for placed in &laid.placed {
        let sorted = placed.number == sheet.order.column;
        let sign = match (sorted, sheet.order.descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        let text = match side(placed.column) {
            Side::Left => format!("{}{sign}", placed.column.title),
            Side::Right => format!("{sign}{}", placed.column.title),
        };
        let indent = match side(placed.column) {
            Side::Left => 0,
            Side::Right => placed.width - fit::width(&text).min(placed.width),
        };
        let style = if sorted {
            look.theme.bold(Tone::Accent)
        } else {
            look.theme.bold(Tone::Plain)
        };
        fit::put(
            buffer,
            area,
            (x + indent, area.top()),
            &text,
            placed.width,
            style,
        );
        hits.push(
            Rect::new(x, area.top(), placed.width, 1),
            Hit::Heading(placed.number),
        );
        x += placed.width + laid.gap;
    }
}
