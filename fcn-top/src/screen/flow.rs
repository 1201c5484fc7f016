//! The flow view: facts about one QP row, who notifies, and two charts on one time axis.

use super::app::App;
use super::chart::{Bars, bars};
use super::facts::{self, Fact};
use super::fit;
use super::moments::Mode;
use super::theme::Tone;
use crate::record::{Cell, QpRecord};
use crate::tables::Detail;
use crate::text::clean;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Sparkline, SparklineBar, Widget};

/// A number of lines from the top of `area`, and the rest.
fn split(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    (
        Rect {
            height: lines,
            ..area
        },
        Rect {
            y: area.y + lines,
            height: area.height - lines,
            ..area
        },
    )
}

/// The next time from `least` nanoseconds on that is 1, 2 or 5 of some unit.
fn round_step(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for digit in [1, 2, 5] {
            let step = power.saturating_mul(digit);
            if step >= least || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// `2.00 s` as `2 s`.
fn short(span: &str) -> String {
    match span.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => span.to_owned(),
    }
}

impl App<'_> {
    pub(super) fn draw_flow(&self, area: Rect, buffer: &mut Buffer) {
        let tables = self.moments.shown();
        let row = self.flow_row();
        let Some(record) = row.and_then(|row| tables.qp(row)) else {
            let text = match (row, self.moments.mode()) {
                (None, _) => "Choose a QP (1, arrows) and press Enter: this view tells of one.",
                (Some(_), Mode::Live) => {
                    "This row has gone: the table was full, and it was notified longest ago."
                }
                (Some(_), _) => "This row was not kept at that moment.",
            };
            self.say_empty(text, area, buffer);
            return;
        };
        let record = &record;
        let (line, area) = split(area, 1);
        let sender = record.sender.map_or_else(
            || format!("({})", self.words.address(record.told)),
            |sender| self.words.address(sender),
        );
        let bold = self.theme.bold(Tone::Plain);
        let heading = [
            (sender, self.theme.bold(Tone::Accent)),
            (
                format!("  {}", record.kind.id()),
                self.theme.style(Tone::Plain),
            ),
            (format!("  {}", facts::subject(record, self.words)), bold),
        ];
        fit::put_all(buffer, line, line.y, &heading);
        // Where there is hardly room for the charts, they tell as much.
        let (line, area) = split(area, u16::from(area.height >= 7));
        let (text, tone) = facts::verdict(record);
        fit::put(
            buffer,
            line,
            (line.x, line.y),
            &text,
            line.width,
            self.theme.style(tone),
        );

        // The charts are what the view is for: they get half of the room, and what the facts leave.
        let (left, right) = (
            facts::who(record, self.look()),
            facts::how_much(record, self.look()),
        );
        let wanted = u16::try_from(left.len().max(right.len())).unwrap_or(0);
        let detail = self.moments.live().detail.as_ref();
        let notifiers = self.notifiers(record, detail);
        let charts = (area.height / 2)
            .clamp(area.height.min(7), 24)
            .max(area.height.saturating_sub(wanted + 2));
        let (upper, charts) = split(area, area.height - charts);
        let spare = upper.height.saturating_sub(1).min(wanted);
        let (table, below) = split(
            upper,
            if upper.height > 3 {
                spare
            } else {
                upper.height
            },
        );
        self.draw_facts(&left, &right, table, buffer);
        let below = Rect {
            height: below.height.min(1),
            ..below
        };
        fit::put_all(buffer, below, below.y, &notifiers);
        self.draw_charts(record, detail, charts, buffer);
    }

    /// Who notified how often, in one line.
    fn notifiers(
        &self,
        record: &QpRecord,
        detail: Option<&Detail>,
    ) -> Vec<(String, ratatui::style::Style)> {
        let plain = self.theme.style(Tone::Plain);
        let mut pieces = vec![("Notified by ".to_owned(), self.theme.style(Tone::Dim))];
        match detail.map(|detail| &detail.notifiers[..]) {
            Some(notifiers @ [_, ..]) => {
                for (number, (address, count)) in notifiers.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    pieces.push((format!("{comma}{}", self.words.address(*address)), plain));
                    let count = self.words.cell(Cell::Count(*count));
                    pieces.push((format!(" ×{count}"), self.theme.style(Tone::Dim)));
                }
            }
            _ => pieces.push((self.words.address(record.notifier), plain)),
        }
        pieces
    }

    fn draw_facts(&self, left: &[Fact], right: &[Fact], area: Rect, buffer: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        // Left of the middle who it is, right of it how much; where that is too narrow only the latter.
        let two = area.width >= 70;
        let half = if two { area.width / 2 } else { 0 };
        let halves = [
            (
                left,
                Rect {
                    width: half.saturating_sub(2),
                    ..area
                },
            ),
            (
                right,
                Rect {
                    x: area.x + half,
                    width: area.width - half,
                    ..area
                },
            ),
        ];
        for (facts, area) in halves {
            let label = facts
                .iter()
                .map(|fact| fit::width(fact.label))
                .max()
                .unwrap_or(0)
                + 2;
            for (y, fact) in (area.top()..area.bottom()).zip(facts) {
                if area.width == 0 {
                    break;
                }
                fit::put(
                    buffer,
                    area,
                    (area.x, y),
                    fact.label,
                    label,
                    self.theme.style(Tone::Dim),
                );
                let room = area.width.saturating_sub(label);
                let value = clean(&fact.value);
                let value = if value.contains(':') && !value.contains(' ') {
                    fit::middle(&value, room)
                } else {
                    fit::end(&value, room)
                };
                fit::put(
                    buffer,
                    area,
                    (area.x + label, y),
                    &value,
                    room,
                    self.theme.style(fact.tone),
                );
            }
        }
    }

    fn draw_charts(
        &self,
        record: &QpRecord,
        detail: Option<&Detail>,
        area: Rect,
        buffer: &mut Buffer,
    ) {
        if area.height < 3 || area.width < 8 {
            return;
        }
        let Some(detail) = detail else {
            self.say_empty("Waiting for the course of this flow…", area, buffer);
            return;
        };
        let bars = bars(detail, self.moments.shown().now, area.width, self.zoom);
        if bars.bars.is_empty() {
            self.say_empty(
                "Nothing is kept of this flow's course at that moment",
                area,
                buffer,
            );
            return;
        }
        let (upper, axis) = split(area, area.height - 1);
        // Two headings; the data has the larger part of what is left.
        let room = upper.height.saturating_sub(2);
        let (first, second) = split(upper, 1 + room / 2);
        let peak = bars.peak(|bar| bar.notified);
        let data_peak = bars.peak(|bar| bar.bits.unwrap_or(0.0));
        let most = bars.peak(|bar| bar.most);
        let dim = self.theme.style(Tone::Dim);
        let (title, first) = split(first, 1);
        let told = self.theme.bold(Tone::Warn);
        let heading = |what: &str, scale: String| [(what.to_owned(), told), (scale, dim)];
        let each = self.words.cell(Cell::Span(bars.each));
        let scale = format!(
            "  top {}  a column is {each}",
            self.words.cell(Cell::Rate(peak))
        );
        let titles = heading("Notifications a second", scale);
        fit::put_all(buffer, title, title.y, &titles);
        // A burst is shorter than a column is long: it has a line of its own, where there is room.
        let bursts = if most > 0.0 && first.height >= 4 {
            2
        } else {
            0
        };
        let (first, bursts) = split(first, first.height - bursts);
        self.draw_bars(
            &bars,
            first,
            peak,
            |bar| (Some(bar.notified), Tone::Warn),
            buffer,
        );
        let (title, bursts) = split(bursts, 1);
        if !bursts.is_empty() {
            let scale = format!("  top {}", self.words.cell(Cell::Count(most as u64)));
            let titles = heading("The most in any one millisecond", scale);
            fit::put_all(buffer, title, title.y, &titles);
            self.draw_bars(
                &bars,
                bursts,
                most,
                |bar| (Some(bar.most), Tone::Warn),
                buffer,
            );
        }
        let (title, second) = split(second, 1);
        if data_peak > 0.0 {
            fit::put_all(
                buffer,
                title,
                title.y,
                &[
                    ("Data".to_owned(), self.theme.bold(Tone::Accent)),
                    (
                        format!("  top {}  ", self.words.cell(Cell::Bits(data_peak))),
                        dim,
                    ),
                    ("█".to_owned(), self.theme.style(Tone::Warn)),
                    (" where it was notified".to_owned(), dim),
                ],
            );
            let tone = |bar: &super::chart::Bar| {
                if bar.notified > 0.0 {
                    Tone::Warn
                } else {
                    Tone::Accent
                }
            };
            self.draw_bars(
                &bars,
                second,
                data_peak,
                |bar| (bar.bits, tone(bar)),
                buffer,
            );
        } else {
            let who = if record.sender.is_some() {
                ""
            } else {
                " (the notification does not name its sender)"
            };
            let text = format!("Data  none of this flow has been seen{who}");
            fit::put(buffer, title, (title.x, title.y), &text, title.width, dim);
        }
        self.draw_axis(&bars, axis, buffer);
    }

    fn draw_bars(
        &self,
        bars: &Bars,
        area: Rect,
        top: f64,
        of: impl Fn(&super::chart::Bar) -> (Option<f64>, Tone),
        buffer: &mut Buffer,
    ) {
        let levels = u64::from(area.height) * 8;
        let cells: Vec<SparklineBar> = (0..area.width)
            .filter_map(|x| bars.at(x, area.width))
            .map(|bar| {
                let (value, tone) = of(bar);
                // One notification is seen, however small beside the greatest rate.
                let level = value.map_or(0, |value| {
                    let level = if top > 0.0 {
                        (value / top * levels as f64).round() as u64
                    } else {
                        0
                    };
                    if value > 0.0 { level.max(1) } else { 0 }
                });
                SparklineBar::from(level).style(self.theme.style(tone))
            })
            .collect();
        Sparkline::default()
            .data(cells)
            .max(levels.max(1))
            .render(area.intersection(buffer.area), buffer);
    }

    /// Times before the moment shown, under the columns that they belong to.
    fn draw_axis(&self, bars: &Bars, area: Rect, buffer: &mut Buffer) {
        let width = area.width;
        let dim = self.theme.style(Tone::Dim);
        let span = bars.span();
        // Labels of a dozen cells with room between them.
        let each = round_step(span / u64::from(width / 16).max(1));
        for part in (1..=8).rev() {
            let before = each.saturating_mul(part);
            let cells = (before as f64 / span as f64 * f64::from(width)).round();
            if before > span || cells > f64::from(width) {
                continue;
            }
            let text = format!("╵-{}", short(&self.words.cell(Cell::Span(before))));
            fit::put(
                buffer,
                area,
                (area.right() - cells as u16, area.y),
                &text,
                area.width,
                dim,
            );
        }
        if width >= 24 {
            fit::put_right(buffer, area, area.x, area.y, "now╵", dim);
        }
    }
}
