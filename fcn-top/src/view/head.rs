//! The header of every view: tabs, state and losses, current traffic, and what the table below shows.

use super::Tab;
use super::explanation::bars;
use super::fit;
use super::history::{KEPT_ROWS, Mode};
use super::hits::{Hit, Hits};
use super::table::Table;
use super::theme::Tone;
use super::time_series::SECOND;
use super::world::{World, kind_name};
use crate::record::{Cell, InterfaceRecord, MADE_UP};
use crate::text::clean;
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::Kind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// The time that the graph at the top is over.
const SPAN: u64 = 120 * SECOND;
/// Lines from which on the graph has several.
const TALL: u16 = 30;

/// A piece of a line, more important if the number is lower.
type Piece = (u8, Span<'static>);

/// Leaves out the least important pieces until the rest, two cells apart, has room.
fn fitting(mut pieces: Vec<Piece>, room: u16) -> Vec<Span<'static>> {
    let used = |pieces: &[Piece]| {
        pieces
            .iter()
            .map(|(_, span)| span.width() + 2)
            .sum::<usize>()
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

/// So many nanoseconds in seconds, or minutes, or hours.
fn ago(span: u64) -> String {
    let seconds = span / SECOND;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Lines that the head takes on a screen so high.
pub(super) const fn height(lines: u16) -> u16 {
    match lines {
        0..14 => 3,
        14..TALL => 4,
        _ => 7,
    }
}

/// Draws the head.
pub(super) fn draw(
    tab: Tab,
    table: &Table,
    frame: &mut Frame<'_>,
    area: Rect,
    world: &World<'_>,
    hits: &mut Hits,
) {
    let graph = area.height.saturating_sub(3);
    let [tabs, state, graph, title] = area.layout(&Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(graph),
        Constraint::Length(1),
    ]));
    draw_tabs(tab, frame, tabs, world, hits);
    draw_state(frame, state, world, hits);
    draw_graph(frame, graph, world);
    draw_title(tab, table, frame, title, world);
}

/// The tabs, and on the right the mode and the time.
fn draw_tabs(tab: Tab, frame: &mut Frame<'_>, area: Rect, world: &World<'_>, hits: &mut Hits) {
    let (mode, tone) = match world.history.mode() {
        Mode::Paused(span) => (format!("PAUSED {}", ago(span)), Tone::Warn),
        Mode::Frozen(span) => (format!("FROZEN -{}", ago(span)), Tone::Warn),
        Mode::Live if world.ended.is_some() => ("END".to_owned(), Tone::Strong),
        Mode::Live => ("LIVE".to_owned(), Tone::Good),
    };
    let now = world.history.shown().now;
    let clock = if now > 0 {
        world.words.clock(now, 0)
    } else {
        String::new()
    };
    let names: u16 = Tab::ALL
        .iter()
        .map(|view| fit::width(view.title()) + 4)
        .sum();
    let mode_width = fit::width(&mode);
    let long = names + mode_width < area.width;
    let mut x = area.x;
    for (number, view) in (1..).zip(Tab::ALL) {
        let text = if long || view == tab {
            format!(" {number} {} ", view.title())
        } else {
            format!(" {number} ")
        };
        let width = fit::width(&text).min(area.right().saturating_sub(x));
        let place = Rect::new(x, area.y, width, 1);
        let style = if view == tab {
            world.theme.chosen()
        } else {
            world.style(Tone::Plain)
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
    let mut pieces = vec![Span::styled(mode, world.theme.bold(tone))];
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

/// Where packets come from, what was lost on the way, and the findings, which lead to their view.
fn draw_state(frame: &mut Frame<'_>, area: Rect, world: &World<'_>, hits: &mut Hits) {
    let tables = world.history.shown();
    let totals = &tables.totals;
    let (kernel, interface) = tables.dropped();
    let number = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), grouped);
    let lost = kernel.unwrap_or(0) > 0 || interface.unwrap_or(0) > 0;
    let drops = match (kernel, interface) {
        _ if area.width < 70 => format!("drops {}/{}", number(kernel), number(interface)),
        (Some(0), Some(0)) => "drops 0".to_owned(),
        _ => format!(
            "drops: kernel {}, interface {}",
            number(kernel),
            number(interface)
        ),
    };
    let [notes, warnings, errors] = totals.findings;
    let found = notes + warnings + errors;
    let badge = match found {
        0 => "no findings".to_owned(),
        _ => format!("{} ▸ 5", counted(found, "finding")),
    };
    let style = match (found, errors + warnings) {
        (0, _) => world.style(Tone::Dim),
        (_, 0) => world.style(Tone::Plain),
        _ => world.theme.bold(Tone::Bad),
    };
    let width = fit::width(&badge);
    let at = area.right().saturating_sub(width).max(area.x);
    let place = Rect::new(at, area.y, area.right() - at, 1);
    frame.render_widget(Span::styled(badge, style), place);
    hits.push(place, Hit::Tab(Tab::Events));

    let interfaces = &world.history.live().interfaces;
    let name = |name: &str| fit::end(&world.words.text(name), 20).into_owned();
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
        pieces.push((0, Span::styled(text, world.theme.bold(Tone::Bad))));
    }
    if let Some(first) = interfaces.iter().find(is_up) {
        let others = match interfaces.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let text = format!("{} {}{others}", name(&first.name), first.state);
        let weight = if first.state == MADE_UP { 0 } else { 3 };
        pieces.push((weight, world.span(text, Tone::Plain)));
    }
    let drops_style = if lost {
        world.theme.bold(Tone::Bad)
    } else {
        world.style(Tone::Dim)
    };
    pieces.push((0, Span::styled(drops, drops_style)));
    pieces.push((
        4,
        world.span(
            format!("{} notifications in all", grouped(totals.notified())),
            Tone::Plain,
        ),
    ));
    for (weight, count, what, tone) in [
        (
            4,
            totals.samples,
            "samples, counted as they are",
            Tone::Plain,
        ),
        (5, totals.rows_evicted, "rows evicted", Tone::Warn),
        (6, totals.cut + totals.undecodable, "unreadable", Tone::Warn),
        (7, totals.icrc_bad, "bad ICRC", Tone::Bad),
    ] {
        if count > 0 {
            pieces.push((
                weight,
                world.span(format!("{} {what}", grouped(count)), tone),
            ));
        }
    }
    let room = at.saturating_sub(area.x + 2);
    frame.render_widget(
        Line::from(fitting(pieces, room)),
        Rect {
            width: room,
            ..area
        },
    );
}

/// Notifications a second over the last two minutes, coloured by the kind that there were most of, and the data beside.
fn draw_graph(frame: &mut Frame<'_>, area: Rect, world: &World<'_>) {
    if area.is_empty() {
        return;
    }
    let shown = world.history.shown();
    let traffic = &world.details.traffic;
    let begun = if traffic.steps.is_empty() {
        shown.now
    } else {
        traffic.start.max(shown.started)
    };
    let window = (begun.max(shown.now.saturating_sub(SPAN)), shown.now);
    let rate = format!("{}/s", world.maybe(shown.rate_1s, Cell::Rate));
    let steps = world.steps(traffic.start, traffic.step);
    // Data and marks of the last second, or of all where that is less.
    let second = (window.0.max(window.1.saturating_sub(SECOND)), window.1);
    let sum = |field: fn(&crate::tables::TrafficStep) -> u64| {
        let values = traffic.steps.iter().map(|step| field(step) as f64);
        steps.parts(values, second, 1).into_iter().sum::<f64>()
    };
    let (packets, ce) = (sum(|step| step.data.into()), sum(|step| step.ce.into()));
    let bits = sum(|step| step.octets) * 8e9 / (second.1.saturating_sub(second.0)).max(1) as f64;
    let data = if packets > 0.0 {
        world.words.cell(Cell::Bits(bits))
    } else {
        "none".to_owned()
    };
    let ce = if packets > 0.0 {
        world.words.cell(Cell::Share(ce / packets))
    } else {
        crate::text::NOTHING.to_owned()
    };
    let rates = |kind: Kind| {
        let steps = traffic.steps.iter();
        steps
            .map(move |step| f64::from(step.notifications.get(kind as usize).copied().unwrap_or(0)))
    };
    let counts: Vec<(Kind, f64)> = Kind::ALL
        .into_iter()
        .map(|kind| (kind, steps.parts(rates(kind), window, 1).into_iter().sum()))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    let all: f64 = counts.iter().map(|(_, count)| count).sum();
    let shares: Vec<Span<'static>> = counts
        .iter()
        .map(|(kind, count)| {
            world.span(
                format!(
                    "{} {}",
                    kind_name(*kind),
                    world.words.cell(Cell::Share(count / all))
                ),
                Tone::Kind(*kind),
            )
        })
        .collect();
    let tall = area.height > 1;
    let (left, right): (Vec<Line<'static>>, Vec<Line<'static>>) = if tall {
        let rest = shares.into_iter().map(Line::from);
        let left = [
            Line::from(world.span("notifications", Tone::Dim)),
            Line::from(Span::styled(rate, world.theme.bold(Tone::Plain))),
            Line::from(world.span(world.last(window), Tone::Dim)),
        ];
        let data = [
            Line::from(vec![
                world.span("data  ", Tone::Dim),
                Span::styled(data, world.theme.bold(Tone::Plain)),
            ]),
            Line::from(vec![world.span("CE    ", Tone::Dim), Span::raw(ce)]),
        ];
        let mut right: Vec<Line<'static>> = data.into();
        // Kinds two a line, so that all of them have room.
        let rest: Vec<Line<'static>> = rest.collect();
        right.extend(rest.chunks(2).map(|two| {
            let spans = two
                .iter()
                .flat_map(|line| line.spans.iter().cloned().chain([Span::raw("  ")]));
            Line::from(spans.collect::<Vec<_>>())
        }));
        (left.into(), right)
    } else {
        let what = if area.width < 90 {
            ""
        } else {
            "notifications "
        };
        let left = Line::from(vec![
            world.span(what, Tone::Dim),
            Span::styled(rate, world.theme.bold(Tone::Plain)),
        ]);
        let mut pieces: Vec<Piece> = (2..).zip(shares).collect();
        pieces.push((0, Span::raw(format!("data {data}"))));
        pieces.push((1, Span::raw(format!("CE {ce}"))));
        (
            vec![left],
            vec![Line::from(fitting(pieces, area.width / 2))],
        )
    };
    let width = |lines: &[Line<'_>]| fit::cells(lines.iter().map(Line::width).max().unwrap_or(0));
    let [left_area, _, graph, _, right_area] = area.layout(&Layout::horizontal([
        Constraint::Length(width(&left)),
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Length(width(&right)),
    ]));
    frame.render_widget(ratatui::text::Text::from(left), left_area);
    frame.render_widget(ratatui::text::Text::from(right), right_area);
    let kinds = Kind::ALL.map(|kind| steps.parts(rates(kind), window, graph.width));
    let at = |parts: &Vec<f64>, at: usize| parts.get(at).copied().unwrap_or(0.0);
    let totals: Vec<f64> = (0..graph.width.into())
        .map(|column| kinds.iter().map(|parts| at(parts, column)).sum())
        .collect();
    let style = |column: usize| {
        let most = Kind::ALL
            .into_iter()
            .zip(&kinds)
            .max_by(|(_, a), (_, b)| at(a, column).total_cmp(&at(b, column)));
        most.map_or(Style::new(), |(kind, _)| world.style(Tone::Kind(kind)))
    };
    bars(&totals, style, frame, graph);
}

/// What the table below shows: how much of it, in which order, filtered by what.
fn draw_title(tab: Tab, table: &Table, frame: &mut Frame<'_>, area: Rect, world: &World<'_>) {
    let column = table.schema.column(table.order.column);
    let sign = if table.order.descending { '▼' } else { '▲' };
    let all = counted(table.all as u64, table.schema.lines);
    let count = if table.filters() {
        format!("{} of {all}", grouped(table.lines.len() as u64))
    } else {
        all
    };
    let mut pieces = vec![(0, Span::styled(count, world.theme.bold(Tone::Plain)))];
    if tab == Tab::Flow && table.chosen.is_some() {
        pieces.push((
            3,
            Span::raw(format!("row {}", grouped(table.at as u64 + 1))),
        ));
    }
    if let Some(column) = column {
        pieces.push((
            4,
            Span::raw(format!("by {} {sign}", table.schema.heading(column, world))),
        ));
    }
    if let Some((_, only)) = table.only {
        pieces.push((
            1,
            world.span(format!("only {}", world.words.cell(only)), Tone::Strong),
        ));
    }
    if !table.typed.is_empty() {
        let filter = fit::end(&clean(&table.typed), area.width / 2).into_owned();
        pieces.push((1, world.span(format!("filter {filter}"), Tone::Strong)));
    }
    if !world.prefix.is_empty() && matches!(tab, Tab::Qps | Tab::Flow) {
        pieces.push((5, world.span(format!("… is {}", world.prefix), Tone::Plain)));
    }
    let rows = world.history.shown().totals.rows;
    if matches!(world.history.mode(), Mode::Frozen(_)) && tab == Tab::Qps && rows > KEPT_ROWS as u64
    {
        pieces.push((
            2,
            world.span(
                format!("first {KEPT_ROWS} of {} kept", grouped(rows)),
                Tone::Warn,
            ),
        ));
    }
    if let Some(why) = &world.ended {
        pieces.push((6, Span::raw(clean(why).into_owned())));
    }
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
            Line::styled(more, world.style(Tone::Dim)).right_aligned(),
            area,
        );
    }
}
