//! A table on the screen: its state (order, filter, columns, selected line) and its drawing: only
//! columns that fit and are not empty, the most important first, and only visible lines.

use super::context::ViewContext;
use super::fit;
use super::hits::{DrawContext, Hit};
use super::theme::Tone;
use super::time_series::SECOND;
use crate::filter::{Filter, FilterError};
use crate::order::{Order, SortKey};
use crate::record::{Cell, Column, Holds, Record, RowId};
use crate::text::clean;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{self, Row, TableState};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// Time for which lines sorted by a rate keep their order, with new ones after them, so that they
/// can be read.
pub(super) const HELD: u64 = 5 * SECOND;

/// Headings of optional columns, if they differ from the records' own.
const TITLES: [(&str, &str); 4] = [
    ("rate_now", "latest rate"),
    ("rate_10s", "smoothed rate"),
    ("rate_mean", "mean rate"),
    ("rate_peak", "peak rate"),
];

/// Identifies a line for as long as it is in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Qp(RowId),
    Point(IpAddr),
    Hop {
        path: u32,
        hop: u8,
    },
    Rule(&'static str),
    Event {
        at: u64,
        what: &'static str,
        frame: Option<u64>,
        text: Arc<str>,
    },
    Interface(Arc<str>),
    Counter(Arc<str>, u32, Option<Arc<str>>, Arc<str>),
    LocalQp(Arc<str>, Option<u32>, u32),
    Flow(IpAddr, IpAddr, u32),
    Receiver(IpAddr),
}

/// A column that exists only on the screen, combined from several.
#[derive(Debug)]
pub(super) struct Extra {
    column: Column,
    /// Column used to sort by it.
    sorts: &'static str,
    /// True for a graph, as wide as the column and without text.
    graph: bool,
}

impl Extra {
    pub(super) const fn new(
        id: &'static str,
        sorts: &'static str,
        width: u16,
        about: &'static str,
    ) -> Self {
        let column = Column {
            id,
            title: "",
            about,
            width,
            holds: Holds::Text,
        };
        Self {
            column,
            sorts,
            graph: false,
        }
    }

    /// Creates a graph column.
    pub(super) const fn graph(
        id: &'static str,
        sorts: &'static str,
        width: u16,
        about: &'static str,
    ) -> Self {
        Self {
            graph: true,
            ..Self::new(id, sorts, width, about)
        }
    }
}

/// Description of a kind of table.
#[derive(Debug)]
pub(super) struct Schema {
    /// Noun for its lines.
    pub lines: &'static str,
    /// Columns of its records; those that exist only on the screen are numbered after them.
    pub columns: &'static [Column],
    pub extra: &'static [Extra],
    /// Default columns from left to right, with their headings; those with the greatest number are
    /// dropped first if there is little room.
    pub usual: &'static [(&'static str, u8, &'static str)],
    /// Number of columns that stay when the others are scrolled.
    pub fixed: usize,
    pub order: &'static str,
    pub filter: fn(&str) -> Result<Filter, FilterError>,
    pub read_order: fn(&str) -> Result<Order, String>,
}

impl Schema {
    /// Returns the schema of a kind of record, with its first column fixed.
    pub(super) const fn for_record<R: Record>() -> Self {
        Self {
            lines: R::TABLE,
            columns: R::COLUMNS,
            extra: &[],
            usual: &[],
            fixed: 1,
            order: "",
            filter: Filter::parse::<R>,
            read_order: Order::parse::<R>,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'static Column> {
        let extra = self.extra.iter().map(|extra| &extra.column);
        self.columns.iter().chain(extra)
    }

    pub(super) fn column(&self, number: usize) -> Option<&'static Column> {
        self.all().nth(number)
    }

    pub(super) fn named(&self, id: &str) -> Option<usize> {
        self.all().position(|column| column.id == id)
    }

    fn extra(&self, number: usize) -> Option<&'static Extra> {
        self.extra.get(number.checked_sub(self.columns.len())?)
    }

    fn is_graph(&self, number: usize) -> bool {
        self.extra(number).is_some_and(|extra| extra.graph)
    }

    /// Returns the column of the records used to sort by a column.
    fn sorts(&self, number: usize) -> usize {
        self.extra(number)
            .and_then(|extra| self.named(extra.sorts))
            .unwrap_or(number)
    }

    /// Returns the heading of a column.
    pub(super) fn title(&self, column: &'static Column) -> &'static str {
        let usual = self.usual.iter().map(|(id, _, title)| (*id, *title));
        let mut titles = usual.chain(TITLES);
        let own = titles.find(|(id, _)| *id == column.id);
        own.map_or(column.title, |(_, title)| title)
    }
}

/// A line of a table.
pub(super) trait Entry: Record {
    const SCHEMA: &'static Schema;
    /// True if a line may have a second one below it.
    const TALL: bool = false;

    fn key(&self) -> Key;

    /// Tie-breaker for lines that are otherwise equal; `index` is the line's position in its table.
    fn rank(&self, index: usize) -> (u64, u64) {
        (index as u64, 0)
    }

    /// Returns the text of a column that has `room` cells.
    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        context: &ViewContext<'_>,
    ) -> String {
        cut(column, &context.in_column(column, self.cell(number)), room)
    }

    /// Draws a graph column.
    fn graph(
        &self,
        id: &str,
        style: Style,
        frame: &mut Frame<'_>,
        area: Rect,
        context: &ViewContext<'_>,
    ) {
        let _ = (id, style, frame, area, context);
    }

    /// Returns the text below that, if there is room; `is_shown` tells which other columns are
    /// shown.
    fn below(
        &self,
        column: &'static Column,
        is_shown: &dyn Fn(&str) -> bool,
        context: &ViewContext<'_>,
    ) -> String {
        let _ = (column, is_shown, context);
        String::new()
    }

    /// Returns true if a column is empty.
    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        let _ = column;
        number < Self::COLUMNS.len() && self.cell(number) == Cell::None
    }

    /// Returns the tone of a column.
    fn tone(&self, id: &str) -> Tone;
}

/// Movement of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    By(isize),
    Page { back: bool },
    First,
    Last,
}

/// State of one table.
#[derive(Debug)]
pub(super) struct Table {
    pub schema: &'static Schema,
    pub order: Order,
    /// Column numbers, in the order shown.
    pub columns: Vec<usize>,
    /// True if these are the default columns.
    pub usual: bool,
    /// Text of the last valid filter.
    pub typed: String,
    filter: Option<Filter>,
    /// Shows only lines with this value in that column. Separate from the filter because masked
    /// addresses cannot be typed.
    pub only: Option<(usize, Cell<'static>)>,
    /// Selected line.
    pub chosen: Option<Key>,
    /// Its current or last position among the lines shown.
    pub at: usize,
    /// First visible line.
    pub top: usize,
    /// True if the screen follows the selected line.
    pub follow: bool,
    /// Number of columns scrolled away to the left.
    pub left: usize,
    /// Column last requested to sort by, which stays visible.
    reveal: Option<usize>,
    /// Columns needed to distinguish lines.
    kept: Vec<usize>,
    /// Number of visible lines at the last drawing.
    pub page: usize,
    /// Maximum text width of each column: columns grow, but do not shrink.
    widest: Vec<u16>,
    /// Number of lines in the table.
    pub all: usize,
    /// Indices of the lines that pass the filter, in order, and their keys.
    pub lines: Vec<u32>,
    pub keys: Vec<Key>,
    /// Order at the last sorting, and the time of its tables.
    sorted: Option<(Order, u64)>,
    /// Columns not shown because they are empty in all lines.
    pub empty: Vec<usize>,
    /// Number of columns without room.
    pub more: usize,
}

impl Table {
    pub(super) fn new(schema: &'static Schema) -> Self {
        let usual = schema.usual.iter().filter_map(|(id, ..)| schema.named(id));
        Self {
            schema,
            order: (schema.read_order)(schema.order).unwrap_or(Order {
                column: 0,
                descending: false,
            }),
            columns: usual.collect(),
            usual: true,
            typed: String::new(),
            filter: None,
            only: None,
            chosen: None,
            at: 0,
            top: 0,
            follow: true,
            left: 0,
            reveal: None,
            kept: Vec::new(),
            page: 10,
            widest: vec![0; schema.all().count()],
            all: 0,
            lines: Vec::new(),
            keys: Vec::new(),
            sorted: None,
            empty: Vec::new(),
            more: 0,
        }
    }

    /// Returns another table with the same order and filter.
    pub(super) fn beside(&self) -> Self {
        Self {
            order: self.order,
            filter: self.filter.clone(),
            only: self.only,
            ..Self::new(self.schema)
        }
    }

    /// Restores the default columns.
    pub(super) fn usual_columns(&mut self) {
        self.columns = Self::new(self.schema).columns;
        (self.usual, self.left) = (true, 0);
    }

    /// Sets a filter.
    pub(super) fn filter(&mut self, text: &str) -> Result<(), FilterError> {
        self.filter = match text.trim() {
            "" => None,
            text => Some((self.schema.filter)(text)?),
        };
        text.trim().clone_into(&mut self.typed);
        self.sorted = None;
        // Other lines may need less room.
        self.widest.fill(0);
        Ok(())
    }

    /// Limits the lines to those with `cell` in the column called `id`, or shows all again.
    pub(super) fn only(&mut self, id: &str, cell: Option<Cell<'static>>) {
        self.only = self.schema.named(id).zip(cell);
        self.widest.fill(0);
        (self.chosen, self.top, self.sorted) = (None, 0, None);
    }

    /// Returns the filter in a form that may be shown.
    pub(super) fn shown_filter(&self, masks: bool) -> Cow<'_, str> {
        match masks && !self.typed.is_empty() {
            // It may contain an address in any spelling.
            true => "…".into(),
            false => clean(&self.typed),
        }
    }

    /// Returns true if lines may be hidden.
    pub(super) fn filters(&self) -> bool {
        self.filter.is_some() || self.only.is_some()
    }

    /// Sorts by a column, or reverses the direction if already sorted by it.
    pub(super) fn sort_by(&mut self, column: usize) {
        self.reveal = Some(column);
        let column = self.schema.sorts(column);
        if self.order.column == column {
            self.order.descending = !self.order.descending;
        } else if let Some(about) = self.schema.column(column) {
            // Numbers and times descending, names ascending.
            let descending = !matches!(about.holds, Holds::Address | Holds::Name | Holds::Text);
            self.order = Order { column, descending };
        }
    }

    /// Sorts by the next or previous shown column.
    pub(super) fn sort_beside(&mut self, right: bool) {
        let sorts = |column: &usize| self.schema.sorts(*column) == self.order.column;
        let now = self.columns.iter().position(sorts);
        // A combined column sorts like one of its parts, which may be shown beside it.
        let other = |at: &usize| {
            let column = self.columns.get(*at);
            column.is_some_and(|column| !sorts(column) && !self.empty.contains(column))
        };
        let next = match (now, right) {
            (None, _) => Some(0),
            (Some(now), true) => (now..self.columns.len()).find(other),
            (Some(now), false) => (0..now).rev().find(other),
        };
        if let Some(next) = next
            && let Some(&column) = self.columns.get(next)
        {
            self.sort_by(column);
        }
    }

    /// Returns true if lines keep their order for [`HELD`], because the column sorted by changes
    /// all the time.
    pub(super) fn holds(&self, context: &ViewContext<'_>) -> bool {
        let column = self.schema.column(self.order.column);
        column.is_some_and(|by| matches!(by.holds, Holds::Rate | Holds::Bits))
            && !self.empty.contains(&self.order.column)
            && context.ended.is_none()
    }

    /// Filters and sorts `lines`, and finds the selected one again.
    pub(super) fn arrange<E: Entry>(&mut self, lines: &[E], context: &ViewContext<'_>) {
        let (filter, order) = (self.filter.as_ref(), self.order);
        let fits = |line: &E| {
            filter.is_none_or(|filter| filter.matches_shown(line, context.formatter))
                && self
                    .only
                    .is_none_or(|(column, cell)| line.cell(column) == cell)
        };
        // Columns selected by the user are shown even if empty.
        let mut empty = Vec::new();
        if self.usual {
            let with_column = |&number: &usize| Some((number, self.schema.column(number)?));
            empty = self.columns.iter().filter_map(with_column).collect();
        }
        let now = context.history.shown().now;
        let mut stood = self.lines.iter().zip(&self.keys);
        let held = self.sorted.filter(|(by, at)| {
            self.holds(context)
                && *by == order
                && (*at..at.saturating_add(HELD)).contains(&now)
                // If some lines were replaced, looking up each takes longer than sorting all.
                && stood.all(|(at, key)| lines.get(*at as usize).is_some_and(|line| line.key() == *key))
        });
        self.sorted = held.or(Some((order, now)));
        // Previous position of each line, if the order is kept.
        let mut places = vec![u32::MAX; if held.is_some() { lines.len() } else { 0 }];
        for (place, at) in (0..).zip(&self.lines) {
            if let Some(line) = places.get_mut(*at as usize) {
                *line = place;
            }
        }
        // Keys are compared side by side: lines are long, and accessing two for each comparison
        // takes longer than everything else.
        let mut keys: Vec<(u32, SortKey, (u64, u64), u32)> = (lines.iter().zip(0u32..))
            .filter(|(line, _)| fits(line))
            .map(|(line, at)| {
                empty.retain(|&(number, column)| line.is_empty(number, column));
                let key = SortKey::from_cell(line.cell(order.column));
                (
                    places.get(at as usize).copied().unwrap_or(0),
                    key,
                    line.rank(at as usize),
                    at,
                )
            })
            .collect();
        keys.sort_unstable_by(|(first, a, one, _), (second, b, other, _)| {
            let ranks = if order.descending {
                other.cmp(one)
            } else {
                one.cmp(other)
            };
            let places = first.cmp(second);
            places.then(order.compare_keys(a, b)).then(ranks)
        });
        self.empty = match keys.as_slice() {
            [] => Vec::new(),
            _ => empty.into_iter().map(|(number, _)| number).collect(),
        };
        self.all = lines.len();
        self.lines = keys.iter().map(|&(.., at)| at).collect();
        self.keys = self.shown(lines).map(Entry::key).collect();
        let place = self
            .chosen
            .as_ref()
            .and_then(|key| self.keys.iter().position(|other| other == key));
        match place {
            Some(place) => self.at = place,
            // If the selected line is gone, the one now at its position is selected.
            None if self.chosen.is_some() && !self.keys.is_empty() => self.choose(self.at),
            None => self.at = 0,
        }
    }

    /// Keeps those columns visible.
    pub(super) fn keep(&mut self, ids: &[&str]) {
        self.kept = ids.iter().filter_map(|id| self.schema.named(id)).collect();
        self.empty.retain(|number| !self.kept.contains(number));
    }

    /// Returns the shown lines, in order.
    pub(super) fn shown<'l, E>(&self, lines: &'l [E]) -> impl Iterator<Item = &'l E> {
        self.lines.iter().filter_map(|at| lines.get(*at as usize))
    }

    /// Returns the selected line, or else the first.
    pub(super) fn current<'l, E>(&self, lines: &'l [E]) -> Option<&'l E> {
        let at = if self.chosen.is_some() { self.at } else { 0 };
        lines.get(*self.lines.get(at)? as usize)
    }

    /// Returns the visible lines.
    pub(super) fn visible<'l, E>(&self, lines: &'l [E]) -> impl Iterator<Item = &'l E> {
        self.shown(lines).skip(self.top).take(self.page)
    }

    /// Selects the line at a position among those shown, or the last.
    pub(super) fn choose(&mut self, place: usize) {
        self.at = place.min(self.keys.len().saturating_sub(1));
        self.chosen = self.keys.get(self.at).cloned().or(self.chosen.take());
        self.follow = true;
    }

    /// Moves the selection; without one, starts at the first visible line.
    pub(super) fn go(&mut self, how: Move) {
        let place = match how {
            Move::By(_) | Move::Page { .. } if self.chosen.is_none() => self.top,
            how => moved(self.at, how, self.page, self.keys.len()),
        };
        self.choose(place);
    }

    /// Scrolls without selecting.
    pub(super) fn scroll(&mut self, by: isize) {
        self.follow = false;
        self.top = self.top.saturating_add_signed(by);
        self.settle(self.page);
    }

    /// Adjusts the first visible line for a page of `page` lines.
    fn settle(&mut self, page: usize) {
        self.page = page;
        if self.follow && self.chosen.is_some() && page > 0 {
            self.top = self.top.clamp(self.at.saturating_sub(page - 1), self.at);
        }
        self.top = self.top.min(self.lines.len().saturating_sub(page));
    }

    /// Scrolls the columns; the first ones stay.
    pub(super) fn scroll_columns(&mut self, right: bool) {
        let most = self.columns.len().saturating_sub(self.schema.fixed + 1);
        self.left = if right {
            (self.left + 1).min(most)
        } else {
            self.left.saturating_sub(1)
        };
    }

    /// Returns the weight of a column; the greatest is dropped first.
    fn weight(&self, place: usize, column: usize) -> u8 {
        let id = self.schema.column(column).map_or("", |column| column.id);
        let rate = self.schema.named("rate_1s");
        // Without rates, the total takes their place, and so does the number of samples.
        let id = match id {
            "total" | "samples" if rate.is_some_and(|rate| self.empty.contains(&rate)) => "rate_1s",
            id => id,
        };
        let usual = self.schema.usual.iter().find(|(usual, ..)| *usual == id);
        match usual {
            Some((_, weight, _)) if self.usual => *weight,
            _ => u8::try_from(place).unwrap_or(u8::MAX),
        }
    }

    /// Draws heading and lines.
    pub(super) fn draw<E: Entry>(
        &mut self,
        lines: &[E],
        area: Rect,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let DrawContext { frame, hits, .. } = canvas;
        let room = usize::from(area.height).saturating_sub(1);
        let tall = if E::TALL && self.lines.len() * 2 <= room {
            2
        } else {
            1
        };
        self.settle(room / tall);
        let visible: Vec<&E> = self.visible(lines).collect();
        let placed = self.place(&visible, area.width, context);
        let gap = gap(area.width);
        let (mut titles, mut x) = (Vec::new(), area.x);
        for &(number, column, width) in &placed {
            let sorted = self.schema.sorts(number) == self.order.column
                && number < self.schema.columns.len();
            let sign = match (sorted, self.order.descending) {
                (false, _) => "",
                (true, true) => "▼",
                (true, false) => "▲",
            };
            let title = self.schema.title(column);
            let title = if column.holds.is_number() {
                Line::raw(format!("{sign}{title}")).right_aligned()
            } else {
                Line::raw(format!("{title}{sign}"))
            };
            titles.push(
                title.style(
                    context
                        .theme
                        .style(if sorted { Tone::Strong } else { Tone::Dim }),
                ),
            );
            hits.push(Rect::new(x, area.y, width, 1), Hit::Heading(number));
            x += width + gap;
        }
        let is_shown = |id: &str| placed.iter().any(|(_, column, _)| column.id == id);
        // Half a number is worse than none.
        let below = |line: &E, column, width| {
            let text = line.below(column, &is_shown, context);
            if fit::width(&text) > width {
                String::new()
            } else {
                text
            }
        };
        let texts = |&(number, column, width): &(usize, &'static Column, u16)| {
            if self.schema.is_graph(number) {
                return vec![String::new(); visible.len()];
            }
            let text = |line: &E, room| line.text(number, column, room, context);
            let mut texts: Vec<_> = visible.iter().map(|line| text(line, width)).collect();
            if is_name(column.id) {
                fit::tell_apart(&mut texts, width, |at| text(visible[at], u16::MAX));
            }
            texts
        };
        let texts: Vec<_> = placed.iter().map(texts).collect();
        let cells = |(at, line): (usize, &&E)| {
            placed
                .iter()
                .zip(&texts)
                .map(|(&(_, column, width), texts)| {
                    let text = texts[at].as_str();
                    let style = context.style(line.tone(column.id));
                    let mut cell = Text::from(Line::styled(text, style));
                    if tall == 2 {
                        let below = below(line, column, width);
                        cell.push_line(Line::styled(below, context.style(Tone::Dim)));
                    }
                    if column.holds.is_number() {
                        cell.right_aligned()
                    } else {
                        cell
                    }
                })
                .collect::<Row<'_>>()
                .height(tall as u16)
        };
        let chosen = self.chosen.as_ref().and(self.at.checked_sub(self.top));
        let drawn = widgets::Table::new(
            visible.iter().enumerate().map(cells),
            placed.iter().map(|(.., width)| Constraint::Length(*width)),
        )
        .header(Row::new(titles))
        .column_spacing(gap)
        .row_highlight_style(context.theme.chosen());
        let chosen = chosen.filter(|at| *at < visible.len());
        frame.render_stateful_widget(drawn, area, &mut TableState::new().with_selected(chosen));
        for (place, line) in visible.iter().enumerate() {
            let y = area.y + 1 + (place * tall) as u16;
            let mut x = area.x;
            for &(number, column, width) in &placed {
                if self.schema.is_graph(number) {
                    let style = match chosen == Some(place) {
                        true => context.theme.chosen(),
                        false => context.style(line.tone(column.id)),
                    };
                    // A graph also uses the second line if it is free.
                    let is_free = below(line, column, width).is_empty();
                    let height = if is_free { tall as u16 } else { 1 };
                    let area = Rect::new(x, y, width, height);
                    line.graph(column.id, style, frame, area, context);
                }
                x += width + gap;
            }
            hits.push(
                Rect::new(area.x, y, area.width, tall as u16),
                Hit::Line(self.top + place),
            );
        }
    }

    /// Returns the columns that fit, with their widths.
    fn place<E: Entry>(
        &mut self,
        visible: &[&E],
        room: u16,
        context: &ViewContext<'_>,
    ) -> Vec<(usize, &'static Column, u16)> {
        let fixed = self.schema.fixed.min(self.columns.len());
        let skipped = self.left.min(self.columns.len().saturating_sub(fixed + 1));
        let stays = |number| self.reveal == Some(number) || self.kept.contains(&number);
        // Number, column, minimum width, desired width, weight.
        let mut placed = Vec::new();
        for (place, &number) in self.columns.iter().enumerate() {
            let scrolled = (fixed..fixed + skipped).contains(&place) && !stays(number);
            let Some(column) = self
                .schema
                .column(number)
                .filter(|_| !scrolled && !self.empty.contains(&number))
            else {
                continue;
            };
            let title = fit::width(self.schema.title(column))
                + u16::from(number < self.schema.columns.len());
            let widest = if self.schema.is_graph(number) {
                column.width
            } else {
                let text = |line: &&E| fit::width(&line.text(number, column, room, context));
                visible.iter().map(text).max().unwrap_or(0)
            };
            let Some(seen) = self.widest.get_mut(number) else {
                continue;
            };
            *seen = widest.max(*seen);
            let full = title.max(*seen);
            let least = full.min(least(column, room).max(title));
            placed.push((number, column, least, full, self.weight(place, number)));
        }
        let gap = gap(room);
        let used = |placed: &[(usize, &Column, u16, u16, u8)]| {
            placed
                .iter()
                .map(|(_, _, least, ..)| least + gap)
                .sum::<u16>()
                .saturating_sub(gap)
        };
        self.more = 0;
        while placed.len() > 1 && used(&placed) > room {
            let last = placed
                .iter()
                .enumerate()
                .max_by_key(|(at, placed)| (!stays(placed.0), placed.4, *at));
            let Some(at) = last.map(|(at, _)| at) else {
                break;
            };
            placed.remove(at);
            self.more += 1;
        }
        // Addresses are distinguished by the parts that would be cut off, so graphs give way to
        // them: one is dropped if that lets the addresses be shown in full.
        let lacking = |placed: &[(usize, &Column, u16, u16, u8)]| {
            let addresses = placed.iter().filter(|placed| is_address(placed.1.id));
            let lacks: u16 = addresses.map(|(_, _, width, full, _)| full - width).sum();
            lacks.saturating_sub(room.saturating_sub(used(placed)))
        };
        let graph = |placed: &[(usize, &Column, u16, u16, u8)]| {
            let graphs = placed.iter().enumerate();
            let graphs = graphs.filter(|(_, placed)| self.schema.is_graph(placed.0));
            let last = graphs.max_by_key(|(_, placed)| placed.4);
            last.map(|(at, placed)| (at, placed.2 + gap))
        };
        if lacking(&placed) > 0 {
            for (_, _, width, ..) in
                (placed.iter_mut()).filter(|placed| self.schema.is_graph(placed.0))
            {
                *width = NARROW.min(*width);
            }
        }
        if let Some((at, width)) = graph(&placed)
            && (1..=width).contains(&lacking(&placed))
        {
            placed.remove(at);
            self.more += 1;
        }
        // One cell each in turn, so that two shortened columns get the same width: addresses first.
        let mut left = room.saturating_sub(used(&placed));
        for turn in 0..3 {
            let mut before = u16::MAX;
            while left < before {
                before = left;
                for (_, column, width, full, _) in &mut placed {
                    let its_turn = match column.id {
                        id if is_address(id) => 0,
                        // Mostly an address as well, with its role.
                        "notified_by" => 1,
                        _ => 2,
                    };
                    if left > 0 && *width < *full && its_turn == turn {
                        *width += 1;
                        left -= 1;
                    }
                }
            }
        }
        let placed = placed.into_iter();
        placed
            .map(|(number, column, width, ..)| (number, column, width.min(room)))
            .collect()
    }
}

/// Returns the new position after a movement in a list of `lines` lines.
pub(super) fn moved(at: usize, how: Move, page: usize, lines: usize) -> usize {
    let page = page.saturating_sub(1).max(1);
    let place = match how {
        Move::First => 0,
        Move::Last => usize::MAX,
        Move::By(by) => at.saturating_add_signed(by),
        Move::Page { back: true } => at.saturating_sub(page),
        Move::Page { back: false } => at.saturating_add(page),
    };
    place.min(lines.saturating_sub(1))
}

/// Columns of addresses.
const ADDRESSES: [&str; 6] = [
    "sender",
    "notifier",
    "destination",
    "receiver",
    "from",
    "to",
];

fn is_address(id: &str) -> bool {
    id == "flow" || ADDRESSES.contains(&id)
}

/// Returns true if the column identifies something, so that different values must not look equal.
fn is_name(id: &str) -> bool {
    is_address(id) || ["interface", "name"].contains(&id)
}

/// Width of a graph if addresses need the room: that of its heading, in cells.
const NARROW: u16 = 6;

/// Cells between columns.
const fn gap(room: u16) -> u16 {
    if room < 130 { 1 } else { 2 }
}

/// Returns the minimum width of a column in cells: a truncated number would be wrong, a truncated
/// text is not.
fn least(column: &Column, room: u16) -> u16 {
    match column.id {
        id if ADDRESSES.contains(&id) => 14,
        "flow" => 21,
        "trend" if room < 100 => 8,
        "trend" => 14,
        "bar" => 8,
        "data_trend" if room < 100 => 6,
        "data_trend" => 10,
        "notified_by" | "notifier_role" if room < 100 => 11,
        "notified_by" if room < 130 => 22,
        "notified_by" => 26,
        "what" | "evidence" | "advice" => 22,
        "text" | "section" | "about" => 20,
        "name" => 16,
        "interface" if room < 60 => 10,
        "interface" => 16,
        _ => u16::MAX,
    }
}

/// Formats sender and receiver in `room` cells.
pub(super) fn both(from: &str, to: &str, room: u16) -> String {
    let room = room.saturating_sub(3);
    let from = shortened(from, room.saturating_sub(fit::width(to)).max(room / 2));
    let to = shortened(to, room.saturating_sub(fit::width(&from)));
    format!("{from} → {to}")
}

/// Shortens the text of a column to `room` cells. Names of a device's interfaces differ at the end.
pub(super) fn cut(column: &Column, text: &str, room: u16) -> String {
    match column.id {
        "interface" | "name" => fit::start(text, room),
        _ => shortened(text, room),
    }
    .into_owned()
}

/// Shortens an address or another text to `room` cells. Addresses of a fabric's hosts differ at the
/// end.
pub(super) fn shortened(text: &str, room: u16) -> Cow<'_, str> {
    let is_ipv4 = |text: &str| {
        text.bytes()
            .all(|c| c.is_ascii_digit() || b".()".contains(&c))
    };
    if text.contains(' ') || !(text.contains(':') || is_ipv4(text)) {
        return fit::end(text, room);
    }
    match text.strip_prefix('(') {
        Some(address) if room > 0 && fit::width(text) > room => {
            Cow::Owned(format!("({}", fit::start(address, room - 1)))
        }
        _ => fit::start(text, room),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_their_end() {
        assert_eq!(shortened("192.168.200.251", 10), "…8.200.251");
        assert_eq!(
            shortened("(10.255.17.251)", 9),
            "(….17.251)".replace("….", "…")
        );
        assert_eq!(shortened("192.168.200.251, a switch", 10), "192.168.2…");
        // Two addresses of one fabric remain distinct.
        assert_eq!(shortened("fd00:10:77:3::a1", 10), "…:77:3::a1");
        let ends = both("2001:db8:ffff::3", "2001:db8:1::1", 25);
        assert_eq!(ends, "…b8:ffff::3 → …1:db8:1::1");
    }
}
