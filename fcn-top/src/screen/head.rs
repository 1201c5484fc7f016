//! What every view has at the top: tabs, sums and drops, and what the table below shows.

use super::View;
use super::app::{App, with_table};
use super::fit;
use super::line::{Line, Lines};
use super::moments::{KEPT_ROWS, Mode};
use super::mouse::Hit;
use super::theme::Tone;
use crate::record::{Cell, Record};
use crate::text::clean;
use fcn_tool::quantity::{counted, grouped};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A piece of a line, more important if the number is lower.
struct Piece {
    text: String,
    style: Style,
    weight: u8,
}

/// Leaves out the least important pieces until the rest, two cells apart, has room.
fn fitting(mut pieces: Vec<Piece>, room: u16) -> Vec<Piece> {
    loop {
        let used: u16 = pieces
            .iter()
            .map(|piece| fit::width(&piece.text).saturating_add(2))
            .sum();
        let worst = pieces.iter().map(|piece| piece.weight).max().unwrap_or(0);
        if used <= room.saturating_add(2) || worst == 0 {
            return pieces;
        }
        pieces.retain(|piece| piece.weight != worst);
    }
}

fn put_pieces(buffer: &mut Buffer, area: Rect, pieces: Vec<Piece>) -> u16 {
    let mut x = area.left();
    for piece in fitting(pieces, area.width) {
        x += fit::put(
            buffer,
            area,
            (x, area.top()),
            &piece.text,
            area.right().saturating_sub(x),
            piece.style,
        ) + 2;
    }
    x
}

/// So many nanoseconds in seconds, or minutes, or hours.
fn ago(span: u64) -> String {
    let seconds = span / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

impl App<'_> {
    /// The word for how the moment shown is to now, and what it is to the reader.
    fn mode_text(&self) -> (String, Tone) {
        match self.moments.mode() {
            Mode::Paused(span) => (format!("PAUSED {}", ago(span)), Tone::Warn),
            Mode::Frozen(span) => (format!("FROZEN -{}", ago(span)), Tone::Warn),
            Mode::Live if self.ended.is_some() => ("END".to_owned(), Tone::Accent),
            Mode::Live => ("LIVE".to_owned(), Tone::Good),
        }
    }

    /// The tabs, and on the right the mode and the time.
    pub(super) fn draw_tabs(&mut self, area: Rect, buffer: &mut Buffer) {
        let (mode, tone) = self.mode_text();
        let now = self.moments.shown().now;
        let names: u16 = View::ALL
            .iter()
            .map(|view| fit::width(view.title()) + 4)
            .sum();
        // What has no room: first parts of the second, then the names of the other tabs, then the time.
        let times = [
            Some(self.words.cell(Cell::Moment(now))),
            Some(self.words.clock(now, 0)),
            None,
        ];
        let rights = times
            .into_iter()
            .filter(|time| now > 0 || time.is_none())
            .map(|time| match time {
                Some(time) => format!("{mode}  {time}"),
                None => mode.clone(),
            });
        let rights: Vec<String> = rights.collect();
        let room = |names: u16| {
            rights
                .iter()
                .find(|right| names + fit::width(right) <= area.width)
        };
        let long = room(names).filter(|_| area.width >= 70);
        let short = long.is_none();
        let right = long.or_else(|| room(30)).unwrap_or(&mode).clone();
        let mut x = area.left();
        for (number, view) in (1..).zip(View::ALL) {
            let shown = view == self.view;
            let text = match (short, shown) {
                (true, false) => format!(" {number} "),
                (_, true) => format!(" {number} {} ", view.title()),
                (false, false) => format!(" {number} {} ", view.title()),
            };
            let style = if shown {
                self.theme.chosen()
            } else {
                self.theme.style(Tone::Plain)
            };
            let taken = fit::put(
                buffer,
                area,
                (x, area.top()),
                &text,
                area.right().saturating_sub(x),
                style,
            );
            self.hits
                .push(Rect::new(x, area.top(), taken, 1), Hit::Tab(view));
            x += taken;
        }
        let at = fit::put_right(
            buffer,
            area,
            x + 1,
            area.top(),
            &right,
            self.theme.style(Tone::Plain),
        );
        fit::put(
            buffer,
            area,
            (at, area.top()),
            &mode,
            area.right().saturating_sub(at),
            self.theme.bold(tone),
        );
        self.hits
            .push(Rect::new(at, area.top(), fit::width(&mode), 1), Hit::Mode);
    }

    /// Sums, and what was lost on the way here.
    pub(super) fn draw_sums(&self, area: Rect, buffer: &mut Buffer) {
        let tables = self.moments.shown();
        let totals = &tables.totals;
        let (kernel, interface) = tables.dropped();
        let said = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), grouped);
        let lost = kernel.unwrap_or(0) > 0 || interface.unwrap_or(0) > 0;
        let plain = self.theme.style(Tone::Plain);
        let tone = |wrong: bool, tone: Tone| self.theme.style(if wrong { tone } else { Tone::Dim });
        let piece = |weight, text: String, style| Piece {
            text,
            style,
            weight,
        };
        let rate = tables.rate_1s.map_or(Cell::None, Cell::Rate);
        let rate = self.words.cell(rate);
        let narrow = area.width < 70;
        let drops = if narrow {
            format!("drops {}/{}", said(kernel), said(interface))
        } else {
            format!(
                "drops: kernel {}, interface {}",
                said(kernel),
                said(interface)
            )
        };
        let [notes, warnings, errors] = totals.findings;
        let found = notes + warnings + errors;
        let worst = tone(
            warnings + errors > 0,
            if errors > 0 { Tone::Bad } else { Tone::Warn },
        );
        let mut pieces = self.missing().map_or_else(Vec::new, |text| {
            vec![piece(0, text, self.theme.bold(Tone::Bad))]
        });
        pieces.extend([
            piece(0, drops, tone(lost, Tone::Bad)),
            piece(1, format!("{rate} notif/s"), self.theme.bold(Tone::Plain)),
            piece(4, format!("{} in all", grouped(totals.notified())), plain),
            piece(2, counted(totals.rows, "row"), plain),
            piece(3, counted(found, "finding"), worst),
        ]);
        if totals.rows_evicted > 0 {
            pieces.push(piece(
                5,
                format!("{} evicted", grouped(totals.rows_evicted)),
                self.theme.style(Tone::Warn),
            ));
        }
        let unread = totals.cut + totals.undecodable;
        if unread > 0 {
            pieces.push(piece(
                6,
                format!("{} unreadable", grouped(unread)),
                self.theme.style(Tone::Warn),
            ));
        }
        if totals.icrc_bad > 0 {
            pieces.push(piece(
                7,
                format!("{} bad ICRC", grouped(totals.icrc_bad)),
                self.theme.style(Tone::Bad),
            ));
        }
        put_pieces(buffer, area, pieces);
    }

    /// Which interfaces nothing comes from now.
    fn missing(&self) -> Option<String> {
        let live = &self.moments.live().interfaces;
        let mut missing = live
            .iter()
            .filter(|one| matches!(one.state, "down" | "gone"));
        let (first, more) = (missing.next()?, missing.count());
        Some(if more > 0 {
            format!("{} interfaces down or gone", more + 1)
        } else {
            format!(
                "{} is {}",
                fit::end(&self.words.text(&first.name), 16),
                first.state
            )
        })
    }

    /// What the table below shows: how much of it, in which order, filtered by what.
    pub(super) fn draw_title(&mut self, area: Rect, buffer: &mut Buffer) {
        let (shown, all, title, order, filter, notifier, filters) =
            with_table!(self, |sheet, lines, L| {
                let column = <<L as Line>::Record as Record>::COLUMNS.get(sheet.order.column);
                let sign = if sheet.order.descending { '▼' } else { '▲' };
                let order = column.map(|column| format!("by {} {sign}", column.title));
                let title = <L as Line>::LAYOUT.lines;
                (
                    sheet.lines.len(),
                    Lines::<L>::count(lines),
                    title,
                    order,
                    sheet.text.clone(),
                    sheet.notifier,
                    sheet.filters(),
                )
            });
        let count = if filters {
            format!(
                "{} of {} {title}",
                grouped(shown as u64),
                grouped(all as u64)
            )
        } else {
            format!("{} {title}", grouped(all as u64))
        };
        let plain = self.theme.style(Tone::Plain);
        let mut pieces = vec![Piece {
            text: count,
            style: self.theme.bold(Tone::Plain),
            weight: 0,
        }];
        if self.view == View::Flow
            && let Some(at) = self.flow_place()
        {
            pieces.push(Piece {
                text: format!("row {}", grouped(at as u64 + 1)),
                style: plain,
                weight: 3,
            });
        }
        if let Some(order) = order {
            pieces.push(Piece {
                text: order,
                style: plain,
                weight: 4,
            });
        }
        if let Some(notifier) = notifier {
            let text = format!("told by {}", self.words.address(notifier));
            pieces.push(Piece {
                text,
                style: self.theme.style(Tone::Accent),
                weight: 1,
            });
        }
        if !filter.is_empty() {
            let room = area.width / 2;
            let text = format!("filter {}", fit::end(&clean(&filter), room));
            pieces.push(Piece {
                text,
                style: self.theme.style(Tone::Accent),
                weight: 1,
            });
        }
        if matches!(self.moments.mode(), Mode::Frozen(_)) && self.view == View::Qps {
            let rows = self.moments.shown().totals.rows;
            if rows > KEPT_ROWS as u64 {
                let text = format!("first {KEPT_ROWS} of {} kept", grouped(rows));
                pieces.push(Piece {
                    text,
                    style: self.theme.style(Tone::Warn),
                    weight: 2,
                });
            }
        }
        if let Some(why) = &self.ended {
            pieces.push(Piece {
                text: clean(why).into_owned(),
                style: self.theme.style(Tone::Accent),
                weight: 5,
            });
        }
        let more = match (self.view, self.more_columns) {
            (View::Flow, _) | (_, 0) => String::new(),
            (_, 1) => "1 more column →".to_owned(),
            (_, more) => format!("{more} more columns →"),
        };
        let x = put_pieces(buffer, area, pieces);
        if x + fit::width(&more) <= area.right() {
            fit::put_right(
                buffer,
                area,
                x,
                area.top(),
                &more,
                self.theme.style(Tone::Dim),
            );
        }
    }

    fn flow_place(&self) -> Option<usize> {
        let sheet = &self.sheets.qps;
        let line = sheet.line(sheet.at, &self.moments.shown().qps[..])?;
        (sheet.chosen.as_ref() == Some(&line.key())).then_some(sheet.at)
    }
}
