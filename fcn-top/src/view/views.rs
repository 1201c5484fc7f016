//! The interface of views, and messages for empty tables.

use super::context::{Course, ViewContext, Written};
use super::graph::bars;
use super::hits::DrawContext;
use super::table::{Entry, Table, shortened};
use super::theme::Tone;
use super::{Format, Tab, fit};
use crate::record::{Cell, EventRecord};
use crate::tables::{Detail, WantedDetails};
use crate::text::NOTHING;
use crossterm::event::KeyCode;
use fcn_tool::quantity::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Row};
use std::borrow::Cow;

/// The tables shown by views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableId {
    Qps,
    Points,
    Hops,
    Rules,
    Events,
    Interfaces,
    Counters,
    LocalQps,
    Flows,
    Receivers,
}

/// Target of opening a line.
#[derive(Debug)]
pub(super) enum OpenTarget {
    Tab(Tab),
    /// The QPs with this value in that column.
    Qps(&'static str, Cell<'static>),
    /// The events of one rule, or of another type.
    Events(&'static str),
    /// The details of an event.
    Event(Box<EventRecord>),
}

/// A view: one table, and the panels beside it. The table's state is passed in, because two views
/// may show the same table.
pub(super) trait View {
    /// Returns the table that keys act on.
    fn table_id(&self) -> TableId;

    /// Filters and sorts the table again.
    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>);

    /// Draws the view.
    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    );

    /// Requests the time series that it draws.
    fn details(&self, table: &Table, context: &ViewContext<'_>, wanted: &mut WantedDetails) {
        let _ = (table, context, wanted);
    }

    /// Returns the target of the selected line.
    fn enter(&mut self, table: &mut Table, context: &ViewContext<'_>) -> Option<OpenTarget> {
        let _ = (table, context);
        None
    }

    /// Goes a step back within the view; returns true if there was one.
    fn escape(&mut self) -> bool {
        false
    }

    /// Handles a key specific to this view; returns true if it is one.
    fn key(&mut self, code: KeyCode, context: &ViewContext<'_>) -> bool {
        let _ = (code, context);
        false
    }

    /// Exports the lines shown.
    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written;

    /// Returns the description for the help.
    fn about(&self) -> &'static str;

    /// Returns its keys and their actions, the most important first.
    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[("/", "filter"), ("s", "sort"), ("c", "columns")]
    }
}

/// Splits the area into a table and, below it, a panel of `panel` lines about the selected line.
pub(super) fn parted(area: Rect, panel: u16) -> [Rect; 2] {
    area.layout(&Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(panel),
    ]))
}

/// Draws a table, or the reason why it is empty; `nothing` is the noun for missing data if the
/// table depends on packets. Returns the line to explain beside it, if there is room.
pub(super) fn draw<'l, E: Entry>(
    table: &mut Table,
    lines: &'l [E],
    nothing: Option<&str>,
    canvas: &mut DrawContext<'_, '_>,
    [area, beside]: [Rect; 2],
    context: &ViewContext<'_>,
) -> Option<&'l E> {
    table.draw(lines, area, canvas, context);
    if table.lines.is_empty() {
        say(&empty(nothing, table, context), area, canvas.frame, context);
    }
    table.current(lines).filter(|_| !beside.is_empty())
}

/// Returns why there are no lines, and what to do.
pub(super) fn empty(nothing: Option<&str>, table: &Table, context: &ViewContext<'_>) -> String {
    let packets = context.history.shown().totals.packets;
    let seen = counted(packets, "packet");
    match (nothing, context.ended.is_some(), packets) {
        _ if table.all > 0 && table.filters() => format!(
            "The filter matches none of {}. Change it with /, or clear it with Esc.",
            counted(table.all as u64, "line")
        ),
        (None, ..) => "No interface yet.".to_owned(),
        (Some(what), true, 0) => format!("{what}: no packet was received."),
        (Some(what), true, _) => format!("{what} in {seen}."),
        (Some(what), false, 0) => {
            format!("{what} yet: no packet received. Interfaces (6) lists the sources.")
        }
        (Some(what), false, _) => format!("{what} yet in {seen}."),
    }
}

/// Draws a text in the middle of a free area.
pub(super) fn say(text: &str, area: Rect, frame: &mut Frame<'_>, context: &ViewContext<'_>) {
    let room = area.width.saturating_sub(4).min(72);
    let lines: Vec<Line<'_>> = fit::wrapped(text, room)
        .into_iter()
        .map(Line::from)
        .collect();
    let top = area.height.saturating_sub(fit::cells(lines.len())) / 3;
    let [_, area] = area.layout(&Layout::vertical([
        Constraint::Length(top.max(1)),
        Constraint::Min(0),
    ]));
    frame.render_widget(
        Paragraph::new(lines)
            .style(context.style(Tone::Plain))
            .centered(),
        area,
    );
}

/// Draws a line with a title above a panel; returns the area below it.
pub(super) fn headed(
    title: impl Into<Line<'static>>,
    area: Rect,
    frame: &mut Frame<'_>,
    context: &ViewContext<'_>,
) -> Rect {
    let title = title.into().to_string();
    let title = fit::end(&title, area.width).into_owned();
    let title = Line::styled(title, context.style(Tone::Strong));
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(context.style(Tone::Dim))
        .title(title);
    let within = block.inner(area);
    frame.render_widget(block, area);
    within
}

/// Draws as much of a text as fits, with a mark at its end if there is more.
pub(super) fn tell(mut text: Text<'static>, area: Rect, frame: &mut Frame<'_>) {
    if text.height() > usize::from(area.height) {
        text.lines.truncate(area.height.into());
        if let Some(Line { spans, .. }) = text.lines.last_mut()
            && let Some(last) = spans.pop()
        {
            let before: usize = spans.iter().map(Span::width).sum();
            let room = area.width.saturating_sub(fit::cells(before));
            let more = format!("{} …", last.content);
            spans.push(Span::styled(fit::end(&more, room).into_owned(), last.style));
        }
    }
    frame.render_widget(Paragraph::new(text), area);
}

/// Draws a placeholder for time series that have not arrived yet, to distinguish them from empty
/// ones.
pub(super) fn pending(frame: &mut Frame<'_>, area: Rect, context: &ViewContext<'_>) {
    frame.render_widget(context.span("…", Tone::Dim), area);
}

/// Draws the bars of a small graph of a series.
pub(super) fn course_bars(
    series: Option<&Detail>,
    what: Course,
    style: Style,
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    match series {
        Some(series) if !context.reaches_back(series) => {
            frame.render_widget(context.span(NOTHING, Tone::Dim), area);
        }
        Some(series) => bars(
            &context.trend(series, what, area.width),
            |_| style,
            frame,
            area,
        ),
        None => pending(frame, area, context),
    }
}

/// Returns the lines of a small table in columns of those widths; longer contents are shortened.
pub(super) fn in_columns<const N: usize>(
    lines: impl IntoIterator<Item = [Line<'static>; N]>,
    columns: &[Rect],
) -> Vec<Row<'static>> {
    let mut lines: Vec<_> = lines.into_iter().collect();
    for (at, column) in columns.iter().enumerate().take(N) {
        let whole: Vec<_> = lines.iter().map(|line| line[at].to_string()).collect();
        let cuts = whole.iter().map(|text| shortened(text, column.width));
        let mut cuts: Vec<_> = cuts.map(Cow::into_owned).collect();
        fit::tell_apart(&mut cuts, column.width, |at| whole[at].clone());
        for (line, cut) in lines.iter_mut().zip(cuts) {
            line[at].spans = vec![cut.into()];
        }
    }
    lines.into_iter().map(Row::from_iter).collect()
}

/// Formats labels with texts beside them, wrapped if too long.
pub(super) fn labelled(
    lines: Vec<(&'static str, String, Tone)>,
    room: u16,
    context: &ViewContext<'_>,
) -> Text<'static> {
    let label = lines
        .iter()
        .map(|(label, ..)| fit::width(label))
        .max()
        .unwrap_or(0)
        + 2;
    let lines = lines.into_iter().flat_map(|(name, text, tone)| {
        let parts = fit::wrapped(&text, room.saturating_sub(label).max(8));
        parts.into_iter().enumerate().map(move |(part, text)| {
            let name = if part == 0 { name } else { "" };
            Line::from(vec![
                context.span(format!("{name:<0$}", usize::from(label)), Tone::Dim),
                context.span(text, tone),
            ])
        })
    });
    lines.collect()
}
