//! One QP over time: its facts, and notifications, data, CE marks and retransmissions on one axis,
//! from two minutes down to single packets. Each notification is a mark that can be stepped
//! through.

use super::context::{ViewContext, Written};
use super::explanation::{SAMPLES, about, flow_text, no_data, subject};
use super::graph::{graph, most_data, most_notified};
use super::history::Mode;
use super::hits::DrawContext;
use super::table::{Key, Table};
use super::theme::Tone;
use super::time_series::SECOND;
use super::views::{TableId, View, empty, labelled, pending, say, tell};
use super::{Format, fit, qps};
use crate::record::{Cell, QpRecord, RowId};
use crate::tables::{Detail, PastPacket, WantedDetails};
use crossterm::event::KeyCode;
use fcn_tool::quantity::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Sparkline;

/// Longest time shown, in nanoseconds.
const LONGEST: u64 = 120 * SECOND;
/// Shortest time shown, in nanoseconds.
const SHORTEST: u64 = 10_000;
/// Minimum number of lines for the graphs.
const LEAST: u16 = 4;
/// Data before and after a notification is summed over this fraction of the time shown: one in this
/// many.
const PART: u64 = 16;
/// Packets needed to compare rates before and after a notification: with fewer, chance is a tenth
/// or more.
const COMPARED: u32 = 100;

/// The flow view.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The row shown.
    row: Option<RowId>,
    /// The row selected by default because it comes first, until the user moves.
    first: Option<Key>,
    /// Number of times the time shown is halved.
    zoom: u32,
    /// Time of the selected notification.
    mark: Option<u64>,
}

/// Contents of the columns of the graphs.
struct Columns {
    notified: Vec<f64>,
    /// True if columns count single notifications, false if they are shares of longer steps.
    single: bool,
    /// Single notifications, or nonempty steps where single ones are not remembered.
    marks: Vec<f64>,
    data: Vec<f64>,
    /// True if columns count single data packets.
    data_single: bool,
    /// Packets in each column.
    packets: Vec<f64>,
    /// Notifications, and octets of data, in the steps of that time.
    steps: [Vec<f64>; 2],
    /// Start of the data, if not available from the beginning.
    since: Option<u64>,
    /// Same, for notifications.
    notified_since: Option<u64>,
    ce: Vec<f64>,
    reordered: Vec<f64>,
}

impl Flow {
    /// Returns the time of the selected notification, unless it is later than the moment shown.
    fn mark(&self, context: &ViewContext<'_>) -> Option<u64> {
        self.mark.filter(|at| *at <= context.history.until())
    }

    /// Returns the time shown, around the selected notification, as far back as single ones are
    /// remembered.
    fn window(&self, context: &ViewContext<'_>) -> (u64, u64) {
        let (first, now) = context.latest(LONGEST);
        let all = now.saturating_sub(first).max(SHORTEST);
        let span = (all >> self.zoom.min(40)).max(SHORTEST);
        let begun = context.history.shown().started.unwrap_or(first);
        let single = context.details.notified.as_ref();
        let since = single.map_or(first, |(since, _)| first.min(begun.max(*since)));
        let end = self.mark(context).map_or(now, |mark| {
            mark.saturating_add(span / 2)
                .max(since.min(mark).saturating_add(span))
                .min(now.max(mark))
        });
        (end.saturating_sub(span), end)
    }

    /// Returns the times of notifications: single ones as far back as they are remembered, before
    /// that the nonempty steps.
    fn notifications(series: &Detail, context: &ViewContext<'_>) -> Vec<u64> {
        let single = context.details.notified.as_ref();
        let since = single.map_or(u64::MAX, |(since, _)| *since);
        let steps = series
            .notifications
            .iter()
            .zip(0u64..)
            .filter(|(count, _)| **count > 0.0);
        let mut times: Vec<u64> = steps
            .map(|(_, step)| {
                series
                    .start
                    .saturating_add(step.saturating_mul(series.step))
            })
            .filter(|start| start.saturating_add(series.step) <= since)
            .collect();
        times.extend(single.iter().flat_map(|(_, times)| times));
        times.retain(|at| *at <= context.history.until());
        times
    }

    /// Returns the kept packets until the moment shown, if they are not samples.
    fn packets<'w>(record: &QpRecord, context: &'w ViewContext<'_>) -> &'w [PastPacket] {
        let (packets, until) = (&context.details.packets, context.history.until());
        let end = packets.iter().position(|packet| packet.at > until);
        match record.data_sampled {
            None => &packets[..end.unwrap_or(packets.len())],
            Some(_) => &[],
        }
    }

    /// Selects the next or previous notification.
    fn step(&mut self, back: bool, context: &ViewContext<'_>) {
        let Some(series) = self.row.and_then(|row| context.details.rows.get(&row)) else {
            return;
        };
        let times = Self::notifications(series, context);
        let next = match (self.mark(context), back) {
            (None, _) => times.last(),
            (Some(mark), true) => times.iter().rev().find(|at| **at < mark),
            (Some(mark), false) => times.iter().find(|at| **at > mark),
        };
        self.mark = next.copied().or(self.mark);
    }

    /// Computes the columns: from single packets if they reach back far enough, else from the
    /// series.
    fn columns(
        series: &Detail,
        packets: &[PastPacket],
        window: (u64, u64),
        parts: u16,
        context: &ViewContext<'_>,
    ) -> Columns {
        let columns = |single: &mut dyn Iterator<Item = (u64, f64)>| {
            let mut values = vec![0.0; parts.into()];
            let span = (window.1 - window.0).max(1);
            for (at, amount) in single.filter(|(at, _)| (window.0..=window.1).contains(at)) {
                let place = u128::from(at - window.0) * u128::from(parts) / u128::from(span);
                if let Some(sum) =
                    values.get_mut((place as usize).min(usize::from(parts.saturating_sub(1))))
                {
                    *sum += amount;
                }
            }
            values
        };
        let of_packets = |amount: fn(&PastPacket) -> f64| {
            columns(&mut packets.iter().map(|packet| (packet.at, amount(packet))))
        };
        let steps = context.steps(series.start, series.step, series.until);
        let exact =
            |values: &[f32]| -> Vec<f64> { values.iter().map(|value| f64::from(*value)).collect() };
        let whole = |values: &[f32]| steps.columns(exact(values), window, parts);
        let within = |values: &[f32]| steps.within(exact(values), window);
        let times = Self::notifications(series, context);
        let marks = columns(&mut times.iter().map(|at| (*at, 1.0)));
        let since = context.details.notified.as_ref().map(|(since, _)| *since);
        let single = since.is_some_and(|since| since <= window.0);
        let first = packets.first().map(|first| first.at);
        let data_single = first.is_some_and(|first| {
            first <= window.0 || first <= series.start.saturating_add(series.step)
        });
        // Sums of a younger flow still reach back to its beginning.
        let known = first.map_or(series.start, |first| first.min(series.start));
        let is_old = steps.kept_since().is_some();
        let since_if_left = |known: u64| (is_old && window.0 < known).then_some(known);
        Columns {
            notified: if single {
                marks.clone()
            } else {
                whole(&series.notifications)
            },
            single,
            marks,
            data: if data_single {
                of_packets(|packet| f64::from(packet.octets))
            } else {
                whole(&series.data)
            },
            data_single,
            packets: of_packets(|packet| u8::from(packet.octets > 0).into()),
            steps: [&series.notifications, &series.data].map(|values| within(values)),
            since: since_if_left(known),
            notified_since: since_if_left(series.start).filter(|_| !single),
            ce: of_packets(|packet| u8::from(packet.ce).into()),
            reordered: of_packets(|packet| u8::from(packet.reordered).into()),
        }
    }

    /// Describes the selected notification, and the data around it.
    fn mark_text(
        &self,
        series: &Detail,
        packets: &[PastPacket],
        context: &ViewContext<'_>,
    ) -> Option<String> {
        let mark = self.mark(context)?;
        let times = Self::notifications(series, context);
        let place = times.iter().position(|at| *at == mark)?;
        let (from, to) = self.window(context);
        let span = ((to - from) / PART).max(1);
        let data = |from: u64, to: u64| {
            let within =
                |packet: &&PastPacket| packet.octets > 0 && (from..to).contains(&packet.at);
            let data = packets.iter().filter(within);
            data.fold((0_u32, 0), |(count, octets), packet| {
                (count + 1, octets + u64::from(packet.octets))
            })
        };
        let (before, after) = (mark.saturating_sub(span), mark.saturating_add(span));
        // Omit times that were not captured, or whose packets were dropped.
        let first = packets.first().map_or(u64::MAX, |first| first.at);
        let sides = [(before, mark, "before"), (mark, after, "after")];
        let known = |from, to| first <= from && to <= context.history.shown().now;
        let sides = sides.into_iter().filter(|&(from, to, _)| known(from, to));
        let sides: Vec<_> = sides
            .map(|(from, to, side)| (data(from, to), side))
            .collect();
        let is_enough = sides.iter().all(|((count, _), _)| *count >= COMPARED);
        let sides = sides.iter().map(|&((count, octets), side)| {
            let much = if is_enough {
                let bits = octets as f64 * 8e9 / span as f64;
                context.formatter.cell(Cell::Bits(bits))
            } else {
                counted(count.into(), "packet")
            };
            format!("{much} {side}")
        });
        let sides = sides.collect::<Vec<_>>().join(", ");
        let around = match sides.as_str() {
            "" => sides,
            _ => format!(
                "; data within {}: {sides}",
                context.formatter.cell(Cell::Span(span))
            ),
        };
        let (place, of) = (place + 1, times.len());
        let at = context.clock(mark, 9);
        Some(format!(
            "Notification {place} of the last {of} at {at}{around}"
        ))
    }

    fn graphs(
        &self,
        (series, record): (&Detail, &QpRecord),
        frame: &mut Frame<'_>,
        area: Rect,
        context: &ViewContext<'_>,
    ) {
        let packets = Self::packets(record, context);
        let window = self.window(context);
        let mut columns = Self::columns(series, packets, window, area.width, context);
        let each = (window.1 - window.0) / u64::from(area.width.max(1));
        let tone = Tone::Kind(record.kind);
        let any = |values: &[f64]| values.iter().any(|value| *value > 0.0);
        let thin = |values: &[f64]| {
            if any(values) && area.height >= LEAST + 6 {
                2
            } else {
                0
            }
        };
        let [first, marks, second, ce, back, axis] = area.layout(&Layout::vertical([
            // With little room, the marks show the times of notifications.
            Constraint::Fill(if area.height < LEAST + 2 { 0 } else { 2 }),
            Constraint::Length(1),
            Constraint::Fill(3),
            Constraint::Length(thin(&columns.ce)),
            Constraint::Length(thin(&columns.reordered)),
            Constraint::Length(1),
        ]));
        let exact = (window.1 - window.0) as f64 / f64::from(area.width.max(1));
        let source = |single| match single {
            true => String::new(),
            false => format!(
                ", from sums of {}",
                context.formatter.cell(Cell::Span(series.step))
            ),
        };
        let digits = if window.1 - window.0 < SECOND { 6 } else { 0 };
        // Sums do not show single packets.
        let kept_since = |at| format!("  kept since {}", context.clock(at, digits.max(3)));
        let notified = if record.sampled.is_some() {
            columns.notified.clear();
            SAMPLES.to_owned()
        } else {
            let most = match columns.single {
                true => most_notified(&columns.notified, exact, context),
                false => most_notified(&columns.steps[0], series.step as f64, context),
            };
            let each = context.formatter.cell(Cell::Span(each));
            let column = match most.ends_with(&format!(" {each}")) {
                true => ", a column".to_owned(),
                false => format!("  a column is {each}"),
            };
            let since = columns.notified_since.map_or_else(String::new, kept_since);
            match any(&columns.notified) || since.is_empty() {
                true => format!("  {most}{column}{}{since}", source(columns.single)),
                false => since,
            }
        };
        let (any_data, is_single) = (any(&columns.data), columns.data_single);
        let since = columns.since.map_or_else(String::new, kept_since);
        let data = match no_data(record, any_data || columns.since.is_some()) {
            Some(why) => why.to_owned(),
            None if any_data => {
                let most = match is_single {
                    true => most_data(&columns.data, exact, Some(&columns.packets), context),
                    false => most_data(&columns.steps[1], series.step as f64, None, context),
                };
                let source = source(is_single);
                format!("  {most}{source}  coloured if notified{since}")
            }
            None => since,
        };
        let kept = match packets.first() {
            Some(first) if !columns.data_single => kept_since(first.at),
            _ => String::new(),
        };
        let notified_at = |at: usize| columns.marks.get(at).is_some_and(|count| *count > 0.0);
        let coloured = |at| context.style(if notified_at(at) { tone } else { Tone::Plain });
        graph(
            "Data",
            data,
            &columns.data,
            coloured,
            frame,
            second,
            context,
        );
        let mut plain = |title, text, values: &[f64], tone, area| {
            let style = context.style(tone);
            graph(title, text, values, |_| style, frame, area, context);
        };
        plain("Notifications", notified, &columns.notified, tone, first);
        let again = format!("  retransmitted or out of order, inferred{kept}");
        plain("CE marks", kept, &columns.ce, Tone::Plain, ce);
        plain("PSN went back", again, &columns.reordered, Tone::Warn, back);
        // A mark under each column with a notification; the selected one stands out.
        let style = context.style(tone);
        let mark = |at| (!notified_at(at)).then_some(0_u64);
        let row = Sparkline::default()
            .data((0..area.width.into()).map(mark).collect::<Vec<_>>())
            .absent_value_symbol("·")
            .absent_value_style(style);
        frame.render_widget(row, marks);
        if let Some(mark) = self.mark(context) {
            let span = u128::from((window.1 - window.0).max(1));
            let at = u128::from(mark.saturating_sub(window.0)) * u128::from(area.width) / span;
            let left = (at as u16).min(area.width.saturating_sub(1));
            let place = Rect {
                x: marks.x + left,
                width: 1,
                ..marks
            };
            frame.render_widget(Span::styled("▲", style), place);
        }
        // The time at both ends.
        let (from, to) = window;
        let ends = [
            context.clock_before(to, from, digits),
            context.clock(to, digits),
        ];
        let ends = ends.map(|clock| Line::styled(clock, context.style(Tone::Dim)));
        let [left, middle, right] = axis.layout(&Layout::horizontal([
            Constraint::Length(fit::cells(ends[0].width())),
            Constraint::Fill(1),
            Constraint::Length(fit::cells(ends[1].width())),
        ]));
        let span = context.formatter.cell(Cell::Span(window.1 - window.0));
        frame.render_widget(context.span(span, Tone::Dim).into_centered_line(), middle);
        frame.render_widget(&ends[0], left);
        frame.render_widget(&ends[1], right);
    }
}

impl View for Flow {
    fn table_id(&self) -> TableId {
        TableId::Qps
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        let rows = &context.history.shown().qps;
        table.arrange(rows, context);
        // Without a selection, it shows the first row.
        if table.chosen.is_none() || table.chosen == self.first {
            table.choose(0);
            self.first.clone_from(&table.chosen);
        } else {
            self.first = None;
        }
        let row = match &table.chosen {
            Some(Key::Qp(row)) => Some(*row),
            _ => None,
        };
        if row != self.row {
            (self.row, self.mark) = (row, None);
        }
    }

    fn details(&self, _: &Table, _: &ViewContext<'_>, wanted: &mut WantedDetails) {
        wanted.rows.extend(self.row);
        wanted.packets = self.row;
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let record = self
            .row
            .and_then(|row| Some((row, context.history.shown().qp(row)?)));
        let Some((row, record)) = record else {
            let text = match (self.row, context.history.mode()) {
                (None, _) => &empty(qps::NONE, table, context),
                (Some(_), Mode::Live) => {
                    "This row was evicted: the table was full, and it was notified longest ago."
                }
                (Some(_), _) => "This row was not kept at that moment.",
            };
            return say(text, canvas.area, canvas.frame, context);
        };
        let heading = format!(
            "{}, {}",
            flow_text(record, canvas.area.width / 2, context),
            subject(record, context)
        );
        let heading = fit::end(&heading, canvas.area.width);
        let text = labelled(about(row, record, context), canvas.area.width, context);
        // The graphs are the purpose of the view: they get three fifths of the room, and their
        // minimum first.
        let room = canvas.area.height.saturating_sub(1);
        let height = fit::cells(text.height()).min(room * 2 / 5);
        let mark = context
            .details
            .rows
            .get(&row)
            .and_then(|series| self.mark_text(series, Self::packets(record, context), context));
        let mark = mark.map_or_else(Vec::new, |mark| fit::wrapped(&mark, canvas.area.width));
        let marks = fit::cells(mark.len()).min(room.saturating_sub(LEAST));
        let height = height.min(room.saturating_sub(LEAST + marks));
        let [title, above, mark_area, graphs] = canvas.area.layout(&Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(height),
            Constraint::Length(marks),
            Constraint::Fill(1),
        ]));
        canvas
            .frame
            .render_widget(Line::styled(heading, context.style(Tone::Strong)), title);
        tell(text, above, canvas.frame);
        let style = context.theme.bold(Tone::Kind(record.kind));
        let mark: Text<'_> = mark
            .into_iter()
            .map(|line| Line::styled(line, style))
            .collect();
        tell(mark, mark_area, canvas.frame);
        match context.details.rows.get(&row) {
            Some(series) if graphs.height >= LEAST && graphs.width >= 8 => {
                self.graphs((series, record), canvas.frame, graphs, context);
            }
            Some(_) => {}
            None if context.history.mode() == Mode::Live => pending(canvas.frame, graphs, context),
            None => say(
                "No time series of this flow is kept for that moment.",
                graphs,
                canvas.frame,
                context,
            ),
        }
    }

    fn escape(&mut self) -> bool {
        self.mark.take().is_some()
    }

    fn key(&mut self, code: KeyCode, context: &ViewContext<'_>) -> bool {
        match code {
            KeyCode::Char('+' | '=') => self.zoom = (self.zoom + 1).min(24),
            KeyCode::Char('-') => self.zoom = self.zoom.saturating_sub(1),
            KeyCode::Char('0') => (self.zoom, self.mark) = (0, None),
            KeyCode::Left | KeyCode::Char('h' | 'N') => self.step(true, context),
            KeyCode::Right | KeyCode::Char('l' | 'n') => self.step(false, context),
            _ => return false,
        }
        self.first = None;
        true
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        qps::Qps.text(table, context, format)
    }

    fn about(&self) -> &'static str {
        "One QP over time: notifications above, its data below, on one axis. Data is coloured in columns with a \
         notification: a flow that obeys drops after it. + and - halve and double the time, 0 shows the last two minutes; n and N \
         (or Right and Left) go from notification to notification. As far back as packets are kept (--keep), every packet is shown \
         at its time, with CE marks, and PSNs that went back; before that, sums. Notifications are kept longer. Up and \
         Down go to the adjacent rows of the table of QPs."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Esc", "QPs"),
            ("n N", "notification"),
            ("+ -", "time"),
            ("j k", "other row"),
            ("x", "packets"),
        ]
    }
}
