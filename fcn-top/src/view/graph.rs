//! Graphs of series: bars of one colour each, bars stacked by kind, and a heading above them.

use super::context::ViewContext;
use super::fit;
use super::theme::Tone;
use super::time_series::SECOND;
use crate::monitor::ENOUGH;
use crate::record::Cell;
use fcn_tool::quantity::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Sparkline, SparklineBar};

/// Number of heights that a cell can show.
const EIGHTHS: u64 = 8;
/// Octets of a large data packet: an MTU of 4,096, and headers.
const LARGEST: f64 = 4_200.0;

/// Returns the height of a value if the maximum has height `levels`; a positive value is always
/// visible.
fn level(value: f64, top: f64, levels: u64) -> u64 {
    let level = (value / top * levels as f64).round() as u64;
    if value > 0.0 { level.max(1) } else { 0 }
}

/// Draws bars in `area`, the highest at full height.
pub(super) fn bars(
    values: &[f64],
    style: impl Fn(usize) -> Style,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let levels = u64::from(area.height) * EIGHTHS;
    let top = values.iter().copied().fold(0.0, f64::max);
    let bar = |(at, value): (usize, &f64)| {
        SparklineBar::from(level(*value, top, levels)).style(style(at))
    };
    let bars: Vec<_> = values.iter().enumerate().map(bar).collect();
    frame.render_widget(Sparkline::default().data(bars).max(levels.max(1)), area);
}

/// Draws several series of equal length, stacked, in bars that fill the height of `area`: the first
/// at the bottom.
pub(super) fn stacked(series: &[(Style, Vec<f64>)], frame: &mut Frame<'_>, area: Rect) {
    // Upper edge of each series, column by column.
    let mut reached: Vec<Vec<f64>> = Vec::new();
    for (_, values) in series {
        let below = reached.last();
        let sum = |(at, value): (usize, &f64)| value + below.map_or(0.0, |below| below[at]);
        reached.push(values.iter().enumerate().map(sum).collect());
    }
    let top = reached.last().into_iter().flatten().copied();
    let top = top.fold(0.0, f64::max);
    let levels = u64::from(area.height) * EIGHTHS;
    for (y, row) in area.rows().zip((0..u64::from(area.height)).rev()) {
        let floor = row * EIGHTHS;
        let bar = |column: usize| {
            // Each series' share of this cell.
            let mut from = floor;
            let mut parts = series.iter().zip(&reached).map(|((style, _), reached)| {
                let to = level(reached[column], top, levels).clamp(from, floor + EIGHTHS);
                let part = to - std::mem::replace(&mut from, to);
                (part, *style)
            });
            let Some((first, style)) = parts.find(|(part, _)| *part > 0) else {
                return SparklineBar::from(0);
            };
            // A cell has only two colours: the remainder goes to the series with the largest share
            // of it.
            let (rest, above) = parts.fold((0, (0, style)), |(sum, most), part| {
                (sum + part.0, if part.0 > most.0 { part } else { most })
            });
            match above.1.fg {
                Some(fg) if first + rest == EIGHTHS && rest > 0 => {
                    SparklineBar::from(first).style(style.bg(fg))
                }
                _ => SparklineBar::from(first + rest).style(if above.0 > first {
                    above.1
                } else {
                    style
                }),
            }
        };
        let bars: Vec<_> = (0..area.width.into()).map(bar).collect();
        frame.render_widget(Sparkline::default().data(bars).max(EIGHTHS), y);
    }
}

/// Formats the maximum of these sums over `span` nanoseconds: as a rate, or by `few` if it comes
/// from so few packets in less than a second that a rate would be little more than chance.
fn most(
    values: &[f64],
    span: f64,
    packets: impl Fn(usize) -> f64,
    rate: impl Fn(f64) -> String,
    few: impl Fn(f64, f64) -> String,
    context: &ViewContext<'_>,
) -> String {
    let all = values.iter().copied().enumerate();
    let (at, most) = all
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .unwrap_or((0, 0.0));
    if most <= 0.0 || span <= 0.0 {
        return format!("most {}", rate(0.0));
    }
    let number = packets(at);
    let over = context.formatter.cell(Cell::Span(span as u64));
    if span < SECOND as f64 && number < ENOUGH {
        return format!("most {} in {over}", few(number, most));
    }
    // It is not the maximum over a second, and there may have been more in parts of the time.
    format!("most {} in {over}", rate(most * 1e9 / span))
}

/// Formats the maximum of notifications in these sums over `span` nanoseconds.
pub(super) fn most_notified(values: &[f64], span: f64, context: &ViewContext<'_>) -> String {
    let rate = |rate| format!("{}/s", context.formatter.cell(Cell::Rate(rate)));
    let few = |number: f64, _| context.formatter.cell(Cell::Count(number.ceil() as u64));
    most(values, span, |at| values[at], rate, few, context)
}

/// Formats the maximum of octets of data; `packets` are the packets in each sum, if known.
pub(super) fn most_data(
    values: &[f64],
    span: f64,
    packets: Option<&[f64]>,
    context: &ViewContext<'_>,
) -> String {
    let rate = |rate: f64| context.formatter.cell(Cell::Bits(rate * 8.0));
    let few = |number: f64, octets: f64| match packets {
        Some(_) => counted(number as u64, "packet"),
        None => counted(octets.round() as u64, "octet"),
    };
    let packets = |at: usize| packets.map_or_else(|| values[at] / LARGEST, |packets| packets[at]);
    most(values, span, packets, rate, few, context)
}

/// Draws a heading with bars below.
pub(super) fn graph(
    what: &'static str,
    text: String,
    values: &[f64],
    style: impl Fn(usize) -> Style,
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    if area.is_empty() {
        return;
    }
    let room = area.width.saturating_sub(fit::width(what));
    let [title, area] = area.layout(&Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
    ]));
    frame.render_widget(
        Line::from(vec![
            context.span(what, Tone::Strong),
            context.span(fit::end(&text, room).into_owned(), Tone::Dim),
        ]),
        title,
    );
    bars(values, style, frame, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;

    fn drawn(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> TestBackend {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(draw).unwrap();
        terminal.backend().clone()
    }

    #[test]
    fn bars_have_the_height_of_their_values() {
        let values = [0.0, 0.01, 4.0, 8.0];
        drawn(4, 1, |frame| {
            bars(&values, |_| Style::new(), frame, frame.area());
        })
        .assert_buffer_lines([" ▁▄█"]);
        drawn(2, 1, |frame| {
            bars(&[0.0, 0.0], |_| Style::new(), frame, frame.area());
        })
        .assert_buffer_lines(["  "]);
    }

    #[test]
    fn stacked_series_have_their_share_of_the_height() {
        let (cyan, red) = (Style::new().cyan(), Style::new().red());
        let series = |a: Style, b: Style| {
            [
                (a, vec![4.0, 0.0, 2.0, 0.0, 12.0]),
                (b, vec![12.0, 8.0, 2.0, 0.0, 0.0]),
            ]
        };
        let screen = drawn(5, 2, |frame| {
            stacked(&series(cyan, red), frame, frame.area());
        });
        let cell = |x, y| {
            let cell = &screen.buffer()[(x, y)];
            (cell.symbol(), cell.fg, cell.bg)
        };
        assert_eq!(cell(0, 0), ("█", Color::Red, Color::Reset));
        assert_eq!(cell(0, 1), ("▄", Color::Cyan, Color::Red));
        assert_eq!(cell(1, 1), ("█", Color::Red, Color::Reset));
        assert_eq!(cell(2, 1), ("▄", Color::Cyan, Color::Reset));
        assert_eq!(cell(3, 1).0, " ");
        assert_eq!(cell(4, 0), ("▄", Color::Cyan, Color::Reset));
        // Without colours, the sum.
        let plain = Style::new();
        drawn(5, 2, |frame| {
            stacked(&series(plain, plain), frame, frame.area());
        })
        .assert_buffer_lines(["█   ▄", "██▄ █"]);
    }
}
