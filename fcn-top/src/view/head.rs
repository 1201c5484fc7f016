//! The header of every view: tabs, state and losses, current traffic, and a description of the
//! table below.

use super::Tab;
use super::context::{ViewContext, kind_name};
use super::fit;
use super::graph::{most_notified, stacked};
use super::history::{KEPT_ROWS, Mode};
use super::hits::{Hit, Hits};
use super::table::{HELD, Table};
use super::theme::Tone;
use super::time_series::SECOND;
use crate::record::{Cell, InterfaceRecord, MADE_UP};
use crate::tables::{Totals, Traffic};
use crate::text::{NOTHING, clean};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::Kind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

/// Time covered by the graph at the top.
const SPAN: u64 = 120 * SECOND;
/// Maximum height of the header in lines; without a graph it has three lines, or two.
const MAX_ROWS: u16 = 7;
const PLAIN: u16 = 3;
/// Width of the scale beside the graph, in cells.
const SCALE: u16 = 23;

/// Minimum screen width for a scale beside the current rate, in cells.
const WIDE: u16 = 100;

/// A piece of a line; a lower number is more important.
type Piece = (u8, Span<'static>);

/// Drops the least important pieces until the rest fits, two cells apart.
fn fitting(mut pieces: Vec<Piece>, room: u16) -> Vec<Span<'static>> {
    let used = |pieces: &[Piece]| -> usize {
        let widths = pieces.iter().map(|(_, span)| span.width() + 2);
        widths.sum()
    };
    while used(&pieces) > usize::from(room) + 2 {
        let worst = pieces.iter().map(|(weight, _)| *weight).max().unwrap_or(0);
        if worst == 0 {
            break;
        }
        pieces.retain(|(weight, _)| *weight != worst);
    }
    pieces
        .into_iter()
        .flat_map(|(_, span)| [span, Span::raw("  ")])
        .collect()
}

/// Formats nanoseconds as seconds, minutes or hours.
fn ago(span: u64) -> String {
    let seconds = span / SECOND;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns the height of the header for a screen of that height: at most a quarter of it.
pub(super) fn height(lines: u16) -> u16 {
    (lines / 4).clamp(PLAIN - 1, MAX_ROWS)
}

/// Draws the header.
pub(super) fn draw(
    tab: Tab,
    table: &Table,
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
    hits: &mut Hits,
) {
    let is_low = area.height < PLAIN;
    let [tabs, state, graph, title] = area.layout(&Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(u16::from(!is_low)),
    ]));
    // Without a line of its own, the description follows the state, where it may have no room: the
    // tab then shows that the table is filtered.
    let of = (is_low && table.filters()).then_some((table.lines.len(), table.all));
    let pieces = title_pieces(tab, table, area.width / 2, context);
    let (about, behind) = if is_low {
        (Vec::new(), pieces)
    } else {
        (pieces, Vec::new())
    };
    draw_tabs((tab, of), frame, tabs, context, hits);
    draw_state(behind, frame, state, context, hits);
    draw_graph(frame, graph, context);
    draw_title(about, (tab, table), frame, title, context);
}

/// Draws the tabs, and on the right the mode and the time.
fn draw_tabs(
    (tab, of): (Tab, Option<(usize, usize)>),
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
    hits: &mut Hits,
) {
    let (mode, tone) = match context.history.mode() {
        Mode::Paused(span) => (format!("PAUSED {}", ago(span)), Tone::Warn),
        Mode::Frozen(span) => (format!("FROZEN -{}", ago(span)), Tone::Warn),
        Mode::Live if context.ended.is_some() => ("END".to_owned(), Tone::Strong),
        Mode::Live => ("LIVE".to_owned(), Tone::Good),
    };
    let now = context.history.shown().now;
    let clock = if now > 0 {
        context.clock(now, 0)
    } else {
        String::new()
    };
    let names: u16 = Tab::ALL
        .iter()
        .map(|view| fit::width(view.title()) + 4)
        .sum();
    let mode_width = fit::width(&mode);
    // With little room the names are closer together, or left out.
    let tight = names + mode_width >= area.width;
    let long = names + mode_width < area.width + fit::cells(Tab::ALL.len());
    let after = if tight { "" } else { " " };
    let mut x = area.x;
    for (number, view) in (1..).zip(Tab::ALL) {
        let text = match of {
            Some((shown, all)) if view == tab => {
                format!(" {number} {} {shown}/{all}{after}", view.title())
            }
            _ if long || view == tab => format!(" {number} {}{after}", view.title()),
            _ => format!(" {number} "),
        };
        let width = fit::width(&text).min(area.right().saturating_sub(x));
        let place = Rect::new(x, area.y, width, 1);
        let style = if view == tab {
            context.theme.chosen()
        } else {
            context.style(Tone::Plain)
        };
        frame.render_widget(Span::styled(text, style), place);
        hits.push(place, Hit::Tab(view));
        x += width;
    }
    let both = mode_width + 2 + fit::width(&clock);
    let width = if x + 1 + both <= area.right() {
        both
    } else {
        mode_width
    };
    let at = area.right().saturating_sub(width).max(x);
    let mut pieces = vec![Span::styled(mode, context.theme.bold(tone))];
    if width == both {
        pieces.push(Span::raw(format!("  {clock}")));
    }
    frame.render_widget(
        Line::from(pieces),
        Rect::new(at, area.y, area.right() - at, 1),
    );
    hits.push(
        Rect::new(at, area.y, mode_width.min(area.right() - at), 1),
        Hit::Mode,
    );
}

/// Draws the sources of packets, the losses, and the findings, which link to their view.
fn draw_state(
    title: Vec<Piece>,
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
    hits: &mut Hits,
) {
    let tables = context.history.shown();
    let totals = &tables.totals;
    let (kernel, interface) = tables.dropped();
    let number = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), grouped);
    let lost = kernel.unwrap_or(0) > 0 || interface.unwrap_or(0) > 0;
    let short = format!("drops {}/{}", number(kernel), number(interface));
    let drops = match (kernel, interface) {
        (Some(0), Some(0)) => "drops 0".to_owned(),
        (None, None) => "drops ?".to_owned(),
        _ => format!(
            "drops: kernel {}, interface {}",
            number(kernel),
            number(interface)
        ),
    };
    let [notes, warnings, errors] = totals.findings;
    let is_narrow = area.width < 60;
    let (mut badge, style) = match (errors, warnings, notes) {
        // Losses are not findings, but are listed with the events.
        (0, 0, 0) if lost => ("losses (5)".to_owned(), context.style(Tone::Plain)),
        (0, 0, 0) => ("no findings".to_owned(), context.style(Tone::Dim)),
        // Notes are not violations.
        (0, 0, notes) => (counted(notes, "note"), context.style(Tone::Plain)),
        (errors, warnings, _) => {
            let counts = [(errors, "error"), (warnings, "warning")];
            let counts = counts.iter().filter(|(count, _)| *count > 0);
            let counts: Vec<_> = counts.map(|(count, what)| counted(*count, what)).collect();
            let worst = if is_narrow { &counts[..1] } else { &counts };
            (worst.join(", "), context.theme.bold(Tone::Bad))
        }
    };
    if notes + warnings + errors > 0 && !is_narrow {
        badge += " (5)";
    }
    let width = fit::width(&badge);
    let at = area.right().saturating_sub(width).max(area.x);
    let place = Rect::new(at, area.y, area.right() - at, 1);
    frame.render_widget(Span::styled(badge, style), place);
    hits.push(place, Hit::Tab(Tab::Events));

    let interfaces = &tables.interfaces;
    let name = |name: &str| fit::start(&context.formatter.text(name), 20).into_owned();
    let mut pieces: Vec<Piece> = Vec::new();
    let is_up = |interface: &&InterfaceRecord| !matches!(interface.state, "down" | "gone");
    let mut missing = interfaces.iter().filter(|interface| !is_up(interface));
    if let Some(first) = missing.next() {
        let more = missing.count();
        let text = if more > 0 {
            format!("{} interfaces down or gone", more + 1)
        } else {
            format!("{} is {}", name(&first.name), first.state)
        };
        pieces.push((0, Span::styled(text, context.theme.bold(Tone::Bad))));
    }
    if let Some(first) = interfaces.iter().find(is_up) {
        let others = match interfaces.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let text = format!("{} {}{others}", name(&first.name), first.state);
        let weight = if first.state == MADE_UP { 0 } else { 6 };
        pieces.push((weight, context.span(text, Tone::Plain)));
    }
    let drops_style = if lost {
        context.theme.bold(Tone::Bad)
    } else {
        context.style(Tone::Dim)
    };
    let room = at.saturating_sub(area.x + 2);
    // A truncated number would be wrong.
    let used: usize = pieces
        .iter()
        .filter(|(weight, _)| *weight == 0)
        .map(|(_, piece)| piece.width() + 2)
        .sum();
    let fits = used + usize::from(fit::width(&drops)) <= usize::from(room);
    let drops = if fits { drops } else { short };
    pieces.push((0, Span::styled(drops, drops_style)));
    let notified = format!("{} in all", counted(totals.notified(), "notification"));
    pieces.push((7, context.span(notified, Tone::Plain)));
    let samples = match area.width {
        0..100 => "samples",
        _ => "samples, not scaled",
    };
    let pauses = match totals.pfc {
        1 => "PFC pause",
        _ => "PFC pauses",
    };
    for (weight, count, what, tone) in [
        (1, totals.samples, samples, Tone::Plain),
        (2, totals.icrc_bad, "bad ICRC", Tone::Bad),
        (3, totals.unread, "not read", Tone::Warn),
        (4, totals.global_pauses, "global pauses", Tone::Warn),
        (5, totals.roce_v1, "RoCE v1", Tone::Plain),
        (5, totals.cnms, "CNMs of bridges", Tone::Plain),
        (4, totals.trimmed, "trimmed", Tone::Warn),
        (3, totals.cut + totals.undecodable, "unreadable", Tone::Warn),
        (4, totals.pfc, pauses, Tone::Warn),
        (5, totals.rows_evicted, "rows evicted", Tone::Warn),
    ] {
        if count > 0 {
            let text = format!("{} {what}", grouped(count));
            pieces.push((weight, context.span(text, tone)));
        }
    }
    pieces.extend(title);
    frame.render_widget(
        Line::from(fitting(pieces, room)),
        Rect {
            width: room,
            ..area
        },
    );
}

/// Returns the rates of notifications and data and the share of data marked CE in the last second
/// of the moment shown (“now” is the present); counts instead of rates if less than a second was
/// captured and there are few packets.
fn traffic(context: &ViewContext<'_>) -> [String; 3] {
    let shown = context.history.shown();
    let words = context.formatter;
    let Totals {
        data, ce, samples, ..
    } = shown.totals;
    let what = if samples > 0 { " samples" } else { "" };
    let notified = match shown.rate_1s {
        Some(rate) => format!("rate {}{what}/s", words.cell(Cell::Rate(rate))),
        None => format!(
            "{} in all",
            words.cell(Cell::Count(shown.totals.notified()))
        ),
    };
    let (much, ce) = match (data, shown.data_rate) {
        (0, _) => ("none".to_owned(), None),
        (_, Some(rate)) => (words.cell(Cell::Bits(rate * 8.0)), shown.ce_1s),
        (_, None) => (
            counted(data, "packet"),
            Some((ce as f64 / data as f64).min(1.0)),
        ),
    };
    // Several capture points may have sampled the same data, so it must not be added up.
    let much = if samples > 0 {
        NOTHING.to_owned()
    } else {
        much
    };
    [notified, much, context.maybe(ce, Cell::Share)]
}

/// Draws the notifications of the last two minutes, stacked by kind, and beside them the current
/// rate, the kinds, and the data.
fn draw_graph(frame: &mut Frame<'_>, area: Rect, context: &ViewContext<'_>) {
    if area.is_empty() {
        return;
    }
    let Traffic {
        start, step, until, ..
    } = context.details.traffic;
    let all = &context.details.traffic.steps;
    let (from, now) = context.latest(SPAN);
    let steps = context.steps(start, step, until);
    // At an earlier moment, part or all of that time may no longer be kept.
    let since = steps.kept_since();
    let span = (from.max(since.unwrap_or(from).min(now)), now);
    let window = steps.known(span);
    let [notified, data, ce] = traffic(context);
    let of_kind = |kind: Kind| {
        let counts = all
            .iter()
            .map(move |step| step.notifications.get(kind as usize));
        counts.map(|count| f64::from(count.copied().unwrap_or(0)))
    };
    let course = |kind, parts| steps.columns(of_kind(kind), window, parts);
    let sum = |kind| steps.within(of_kind(kind), window).into_iter().sum::<f64>();
    let mut counts = Kind::ALL.map(|kind| (kind, sum(kind)));
    counts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let sum: f64 = counts.iter().map(|(_, count)| count).sum();
    let kinds = counts.iter().filter(|(_, count)| *count > 0.0);
    let shares = kinds.map(|(kind, count)| {
        let share = context.formatter.cell(Cell::Share(count / sum));
        context.span(format!("{} {share}", kind_name(*kind)), Tone::Kind(*kind))
    });
    // The rarest kinds are dropped first.
    let shares: Vec<Piece> = (2..).zip(shares).collect();
    let bold = |text| Span::styled(text, context.theme.bold(Tone::Plain));
    let dim = |text: &'static str| context.span(text, Tone::Dim);
    let (mut left, right) = if area.height > 1 {
        let left = [
            Line::from(dim("notifications")),
            Line::from(bold(notified)),
            Line::from(context.span(context.last(span), Tone::Dim)),
        ];
        let about_data = if area.height > 2 {
            vec![
                Line::from(vec![dim("data  "), bold(data)]),
                Line::from(vec![dim("CE    "), Span::raw(ce)]),
            ]
        } else {
            let spans = vec![dim("data "), bold(data), dim("  CE "), Span::raw(ce)];
            vec![Line::from(spans)]
        };
        // The kinds share the remaining lines.
        let lines = usize::from(area.height).saturating_sub(about_data.len());
        let lines = shares.chunks(shares.len().div_ceil(lines.max(1)).max(2));
        let lines = lines.map(|pieces| Line::from(fitting(pieces.to_vec(), area.width / 2)));
        (left.to_vec(), about_data.into_iter().chain(lines).collect())
    } else {
        let what = match area.width {
            0..90 => "",
            _ => "notifications ",
        };
        let mut pieces = shares;
        pieces.push((0, Span::raw(format!("data {data}"))));
        pieces.push((1, Span::raw(format!("CE {ce}"))));
        (
            vec![Line::from(vec![dim(what), bold(notified)])],
            vec![Line::from(fitting(pieces, area.width / 2))],
        )
    };
    let width = |lines: &[Line<'_>]| fit::cells(lines.iter().map(Line::width).max().unwrap_or(0));
    let has_scale = left.len() > 1;
    // Without a line of its own, the scale is beside the rate or, if there is no room, in place of
    // the heading.
    let has_line = usize::from(area.height) > left.len();
    let is_beside = !has_line && area.width >= WIDE;
    let scale = match (has_scale, is_beside) {
        (false, _) => 0,
        (true, false) => SCALE,
        (true, true) => SCALE + 2 + fit::cells(left[1].width()),
    };
    let [left_area, _, graph, _, right_area] = area.layout(&Layout::horizontal([
        Constraint::Length(width(&left).max(scale)),
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Length(width(&right)),
    ]));
    let style = |kind| context.style(Tone::Kind(kind));
    let courses = Kind::ALL.map(|kind| (style(kind), course(kind, graph.width)));
    let notified = all
        .iter()
        .map(|step| step.notifications.iter().sum::<u32>());
    let notified = steps.within(notified.map(f64::from), window);
    if has_scale && notified.iter().any(|count| *count > 0.0) {
        let most = most_notified(&notified, step as f64, context);
        let scale = |text| context.span(text, Tone::Dim);
        match (has_line, is_beside) {
            (true, _) => left.insert(2, Line::from(scale(most))),
            (_, true) => left[1].push_span(scale(format!(", {most}"))),
            (..) => left[0] = Line::from(scale(most)),
        }
    }
    frame.render_widget(Text::from(left), left_area);
    frame.render_widget(Text::from(right), right_area);
    if let Some(since) = since.filter(|since| *since >= now) {
        let since = format!("kept since {}", context.clock(since, 0));
        return frame.render_widget(context.span(since, Tone::Dim), graph);
    }
    stacked(&courses, frame, graph);
}

/// Describes the table below: its size, order and filter.
fn title_pieces(tab: Tab, table: &Table, longest: u16, context: &ViewContext<'_>) -> Vec<Piece> {
    let all = counted(table.all as u64, table.schema.lines);
    let count = if table.filters() {
        format!("{} of {all}", grouped(table.lines.len() as u64))
    } else {
        all
    };
    let mut pieces = vec![(1, Span::styled(count, context.theme.bold(Tone::Plain)))];
    if tab == Tab::Flow && table.chosen.is_some() {
        let row = format!("row {}", grouped(table.at as u64 + 1));
        pieces.push((4, Span::raw(row)));
    }
    // If the column sorted by is empty, other criteria decide.
    if let Some(column) = table.schema.column(table.order.column)
        && !table.empty.contains(&table.order.column)
    {
        let sign = if table.order.descending { '▼' } else { '▲' };
        let by = format!("by {} {sign}", table.schema.title(column));
        pieces.push((5, Span::raw(by)));
        if table.holds(context) {
            let every = format!("every {} s", HELD / SECOND);
            pieces.push((8, context.span(every, Tone::Dim)));
        }
    }
    if let Some((_, only)) = table.only {
        let only = format!("only {}", context.formatter.cell(only));
        pieces.push((2, context.span(only, Tone::Strong)));
    }
    if !table.typed.is_empty() {
        let typed = table.shown_filter(context.formatter.masks());
        let filter = format!("filter {}", fit::end(&typed, longest));
        pieces.push((2, context.span(filter, Tone::Strong)));
    }
    if !context.prefix.is_empty() && matches!(tab, Tab::Qps | Tab::Flow) {
        let prefix = format!("… is {}", context.prefix);
        pieces.push((6, context.span(prefix, Tone::Plain)));
    }
    if tab == Tab::Events && !context.checked.is_empty() {
        pieces.push((6, context.span(context.checked.clone(), Tone::Dim)));
    }
    let Totals {
        rows,
        notifiers_evicted,
        ..
    } = context.history.shown().totals;
    if tab == Tab::Notifiers && notifiers_evicted > 0 {
        let gone = format!("{} more evicted", grouped(notifiers_evicted));
        pieces.push((1, context.span(gone, Tone::Warn)));
    }
    if matches!(context.history.mode(), Mode::Frozen(_))
        && tab == Tab::Qps
        && rows > KEPT_ROWS as u64
    {
        let kept = format!("first {KEPT_ROWS} of {} kept", grouped(rows));
        pieces.push((3, context.span(kept, Tone::Warn)));
    }
    // At an earlier moment it had not ended.
    if let Some(why) = &context.ended
        && matches!(context.history.mode(), Mode::Live | Mode::Paused(0))
    {
        pieces.push((7, Span::raw(clean(why).into_owned())));
    }
    pieces
}

/// Draws the description of the table below, and the number of columns without room.
fn draw_title(
    pieces: Vec<Piece>,
    (tab, table): (Tab, &Table),
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    let more = match (tab, table.more) {
        (Tab::Flow, _) | (_, 0) => String::new(),
        (_, more) => format!("{} →", counted(more as u64, "more column")),
    };
    let room = area.width.saturating_sub(fit::width(&more));
    let line = Line::from(fitting(pieces, room));
    let used = line.width();
    frame.render_widget(line, area);
    if used <= room.into() {
        frame.render_widget(
            Line::styled(more, context.style(Tone::Dim)).right_aligned(),
            area,
        );
    }
}
