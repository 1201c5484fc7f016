//! Help on the view that it is asked for from: keys, what each column means, the language of filters. Events in full.

use super::View;
use super::draw::Look;
use super::fit;
use super::line::severity_tone;
use super::picker::{Reader, framed};
use super::theme::Tone;
use crate::filter;
use crate::record::{
    Cell, Column, EventRecord, HopRecord, InterfaceRecord, PointRecord, QpRecord, Record,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A line of help: what stands on the left in the given cells, and the text beside it.
type Entry = (String, String);

const KEYS: &[(&str, &str)] = &[
    (
        "1 to 6",
        "QPs, Points, Flow, Paths, Events, Interfaces; Tab and Shift-Tab go round; or click",
    ),
    (
        "↑ ↓ k j",
        "choose a line: it stays chosen wherever it moves; PgUp PgDn, g first, G last",
    ),
    ("← → h l", "scroll the columns; the first ones stay"),
    (
        "Esc",
        "back: from the flow to the table, from a line chosen to none, from filtered to all",
    ),
    ("/", "filter this table, while you type"),
    (
        "s  < >  r",
        "sort by a column from a list; by the column beside; the other way round. Or click a heading",
    ),
    ("c", "choose columns and their order"),
    (
        "p Space",
        "let the picture stand, and go on; capture goes on meanwhile",
    ),
    (
        "[ ]  { }",
        "back and forward by a second, by ten, through the last two minutes",
    ),
    ("Home End", "to the oldest moment remembered, to now"),
    ("x", "write the packets behind the chosen QP as pcapng"),
    ("J  V", "write the lines of this table as JSON, as CSV"),
    ("Ctrl-L", "paint the screen anew"),
    ("q Ctrl-C", "quit"),
];

fn about(view: View) -> &'static str {
    match view {
        View::Qps => {
            "Who is told to slow down. A line is one flow and one kind of notification; lines of one flow have the same QP, as \
             soon as that is known. Behind it: s, the sender's own, as notified; c, the sender's by the CM exchange; a, by \
             acknowledgements; r, the receiver's, as Fast CNPs have it; f, no QP but a flow label. A sender in brackets is \
             not known: it is who was told instead. Dim: nothing for ten seconds. Enter opens the flow."
        }
        View::Points => {
            "Who tells others to slow down: switches with Fast CNPs, proxy notifications and WAN FCNs; receivers with CNPs. \
             Who notifies most, how deep its queues are, how many flows suffer. Enter shows the QPs that it tells."
        }
        View::Flow => {
            "One QP over time: notifications above, its data below, on one axis. Columns of the data in which a notification \
             came look like the notifications: a flow that obeys gets lower behind them. ↑ ↓ go to the rows beside it in the \
             table of QPs; + and - show a shorter or longer time."
        }
        View::Paths => {
            "What IOAM traces tell of the paths, node by node. Below, the path of the chosen line: the last trace is solid, \
             the most ever is shaded, the deepest queue stands out."
        }
        View::Events => {
            "Rules of the drafts found broken, suspicious notifiers, and what happened to the capture. The same in a row is \
             one line. Enter shows it in full, with the section of the rule. Below: how often each rule was broken."
        }
        View::Interfaces => {
            "Where packets come from, and what was lost on the way: only with both drop counters at 0 is everything counted. \
             A question mark or dash means that nothing is said about it."
        }
    }
}

fn columns(view: View) -> &'static [Column] {
    match view {
        View::Qps | View::Flow => QpRecord::COLUMNS,
        View::Points => PointRecord::COLUMNS,
        View::Paths => HopRecord::COLUMNS,
        View::Events => EventRecord::COLUMNS,
        View::Interfaces => InterfaceRecord::COLUMNS,
    }
}

/// Lines with their looks.
type Lines = Vec<Vec<(String, Style)>>;

fn heading(lines: &mut Lines, text: &str, look: Look<'_>) {
    if !lines.is_empty() {
        lines.push(Vec::new());
    }
    lines.push(vec![(text.to_owned(), look.theme.bold(Tone::Plain))]);
}

/// Entries with their texts beside them, in `room` cells.
fn entries(lines: &mut Lines, entries: &[Entry], room: u16, look: Look<'_>) {
    let left = entries
        .iter()
        .map(|(name, _)| fit::width(name))
        .max()
        .unwrap_or(0)
        .min(room / 2)
        + 2;
    for (name, text) in entries {
        let mut name = fit::end(name, left - 2).into_owned();
        for line in fit::wrapped(text, room.saturating_sub(left)) {
            let pad = " ".repeat(left.saturating_sub(fit::width(&name)).into());
            lines.push(vec![
                (format!("{name}{pad}"), look.theme.style(Tone::Accent)),
                (line, look.theme.style(Tone::Plain)),
            ]);
            name.clear();
        }
    }
}

fn text(view: View, room: u16, look: Look<'_>) -> Lines {
    let plain = look.theme.style(Tone::Plain);
    let mut lines: Lines = fit::wrapped(about(view), room)
        .into_iter()
        .map(|line| vec![(line, plain)])
        .collect();
    heading(&mut lines, "Keys", look);
    let keys: Vec<Entry> = KEYS
        .iter()
        .map(|&(key, does)| (key.to_owned(), does.to_owned()))
        .collect();
    entries(&mut lines, &keys, room, look);
    heading(&mut lines, "At the top", look);
    let top = [
        ("drops".to_owned(), "packets lost before they were counted: by the kernel, for want of room, and by the interface; ? where nobody says".to_owned()),
        ("evicted".to_owned(), "QP rows that had to go because the table was full: those notified longest ago".to_owned()),
    ];
    entries(&mut lines, &top, room, look);
    heading(&mut lines, "Columns", look);
    let columns: Vec<Entry> = columns(view)
        .iter()
        .map(|column| {
            (
                format!("{:<11} {}", column.title, column.id),
                format!("{}.", column.about),
            )
        })
        .collect();
    entries(&mut lines, &columns, room, look);
    heading(&mut lines, "Filters", look);
    for line in filter::LANGUAGE.lines() {
        // A table as it is: lines too long for the screen go on below, as far in.
        let indent = line.len() - line.trim_start().len();
        let indent = u16::try_from(indent).unwrap_or(0).min(room / 2);
        if fit::width(line) <= room {
            lines.push(vec![(line.to_owned(), plain)]);
            continue;
        }
        for part in fit::wrapped(line, room.saturating_sub(indent)) {
            lines.push(vec![(
                format!("{}{part}", " ".repeat(indent.into())),
                plain,
            )]);
        }
    }
    lines
}

/// Draws lines in a frame, from where the reader is.
fn read(lines: &Lines, reader: &mut Reader, room: Rect, buffer: &mut Buffer) {
    (reader.lines, reader.page) = (lines.len(), room.height.into());
    reader.top = reader.top.min(reader.lines.saturating_sub(reader.page));
    for (y, line) in (room.top()..room.bottom()).zip(lines.iter().skip(reader.top)) {
        fit::put_all(buffer, room, y, line);
    }
}

/// What the hint of a scrolled text says.
fn hint(reader: &Reader) -> String {
    if reader.lines > reader.page && reader.page > 0 {
        let last = (reader.top + reader.page).min(reader.lines);
        format!(
            "lines {} to {last} of {} · ↑ ↓ PgUp PgDn · Esc closes",
            reader.top + 1,
            reader.lines
        )
    } else {
        "Esc closes".to_owned()
    }
}

/// Draws the help of a view over it.
pub(super) fn draw(
    view: View,
    reader: &mut Reader,
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
) {
    // The hint tells where the reader is, which is known when the text is: it is laid out first.
    let lines = text(view, area.width.saturating_sub(4), look);
    (reader.lines, reader.page) = (lines.len(), area.height.saturating_sub(2).into());
    reader.top = reader.top.min(reader.lines.saturating_sub(reader.page));
    let room = framed(
        area,
        &format!("Help: {}", view.title()),
        &hint(reader),
        look,
        buffer,
    );
    read(&lines, reader, room, buffer);
}

/// Draws an event in full over the view.
pub(super) fn event(
    event: &EventRecord,
    reader: &mut Reader,
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
) {
    let wide = area.width.min(90);
    let room = wide.saturating_sub(4);
    let style = look.theme.bold(severity_tone(event.severity));
    let mut lines: Lines = vec![
        vec![(format!("{}: {}", event.severity.name(), event.what), style)],
        Vec::new(),
    ];
    let plain = look.theme.style(Tone::Plain);
    lines.extend(
        fit::wrapped(&look.words.text(&event.text), room)
            .into_iter()
            .map(|line| vec![(line, plain)]),
    );
    lines.push(Vec::new());
    let shown = EventRecord::COLUMNS
        .iter()
        .enumerate()
        .filter(|(_, column)| !matches!(column.id, "severity" | "what" | "text"));
    let facts: Vec<Entry> = shown
        .filter_map(|(number, column)| {
            let cell = event.cell(number);
            let text = match cell {
                Cell::None => return None,
                Cell::Moment(at) => look.words.day_and_time(at),
                cell => look.words.in_column(column, cell),
            };
            let name = if column.id == "interface" {
                "Interface"
            } else {
                column.title
            };
            Some((name.to_owned(), text))
        })
        .collect();
    entries(&mut lines, &facts, room, look);
    let height = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2)
        .min(area.height);
    let area = Rect {
        x: area.x + (area.width - wide) / 2,
        y: area.y + (area.height - height) / 2,
        width: wide,
        height,
    };
    (reader.lines, reader.page) = (lines.len(), height.saturating_sub(2).into());
    let room = framed(area, "Event", &hint(reader), look, buffer);
    read(&lines, reader, room, buffer);
}
