//! Overlays above a view: help, the details of an event, and lists of columns.

use super::Tab;
use super::context::ViewContext;
use super::events::in_full;
use super::fit;
use super::hits::{Hit, Hits};
use super::table::{Move, Schema, Table, moved};
use super::theme::Tone;
use super::views::labelled;
use crate::filter;
use crate::record::EventRecord;
use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Padding, Paragraph};

/// Keys, then elements of the header: one per line, the name before a tab.
const HELP: &str = include_str!("help.txt");

/// A list of a table's columns.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    schema: &'static Schema,
    /// True to select one to sort by.
    sorts: bool,
    /// Column numbers in the order of the list, and whether each is shown.
    items: Vec<(usize, bool)>,
    /// Columns shown when it was opened.
    shown: Vec<usize>,
    at: usize,
}

/// Returns the ticked columns, in the order of the list.
fn ticked(items: &[(usize, bool)]) -> Vec<usize> {
    let ticked = items.iter().filter(|(_, shown)| *shown);
    ticked.map(|&(column, _)| column).collect()
}

impl Picker {
    pub(super) fn new(table: &Table, sorts: bool) -> Self {
        let has = |column: &usize| !table.empty.contains(column);
        let shown = table.columns.iter().map(|column| (*column, has(column)));
        let others =
            (0..table.schema.all().count()).filter(|column| !table.columns.contains(column));
        let items: Vec<_> = shown.chain(others.map(|column| (column, false))).collect();
        let now = items
            .iter()
            .position(|&(column, _)| column == table.order.column);
        let at = if sorts { now.unwrap_or(0) } else { 0 };
        Self {
            schema: table.schema,
            sorts,
            shown: ticked(&items),
            items,
            at,
        }
    }

    /// Moves the item up or down in the list.
    fn shift(&mut self, down: bool) {
        let other = if down {
            self.at + 1
        } else {
            self.at.wrapping_sub(1)
        };
        if other < self.items.len() {
            self.items.swap(self.at, other);
            self.at = other;
        }
    }

    fn tick(&mut self) {
        if let Some((_, shown)) = self.items.get_mut(self.at) {
            *shown = !*shown;
        }
    }

    /// Applies the selection to the table.
    fn take(&self, table: &mut Table) {
        if self.sorts {
            if let Some(&(column, _)) = self.items.get(self.at) {
                table.sort_by(column);
            }
            return;
        }
        let ticked = ticked(&self.items);
        // A table without columns would be empty, so the previous ones remain.
        if !ticked.is_empty() && ticked != self.shown {
            (table.columns, table.usual, table.left) = (ticked, false, 0);
        }
    }

    fn text(&self, context: &ViewContext<'_>) -> Text<'static> {
        let line = |(place, &(number, shown)): (usize, &(usize, bool))| {
            let column = self.schema.column(number)?;
            let tick = match (self.sorts, shown) {
                (true, _) => "",
                (false, true) => "[x] ",
                (false, false) => "[ ] ",
            };
            let title = context.span(
                format!("{tick}{:<20} ", self.schema.title(column)),
                if shown { Tone::Strong } else { Tone::Plain },
            );
            let line = Line::from(vec![
                title,
                context.span(format!("{:<17} ", column.id), Tone::Dim),
                context.span(column.about, Tone::Dim),
            ]);
            Some(if place == self.at {
                line.patch_style(context.theme.chosen())
            } else {
                line
            })
        };
        self.items.iter().enumerate().filter_map(line).collect()
    }
}

/// Type of an overlay.
#[derive(Debug)]
pub(super) enum OverlayKind {
    Help(Tab, &'static str, &'static Schema),
    Event(Box<EventRecord>),
    Columns(Picker),
}

/// An overlay with its scroll position.
#[derive(Debug)]
pub(super) struct Overlay {
    kind: OverlayKind,
    top: usize,
    /// Visible and total number of lines at the last drawing.
    page: usize,
    lines: usize,
}

/// Effect of a key on the overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverlayAction {
    Stays,
    Closes,
}

impl Overlay {
    pub(super) const fn new(kind: OverlayKind) -> Self {
        Self {
            kind,
            top: 0,
            page: 1,
            lines: 0,
        }
    }

    pub(super) fn go(&mut self, how: Move) {
        match &mut self.kind {
            OverlayKind::Columns(picker) => {
                picker.at = moved(picker.at, how, self.page, picker.items.len());
            }
            _ => {
                self.top = moved(
                    self.top,
                    how,
                    self.page,
                    (self.lines + 1).saturating_sub(self.page),
                );
            }
        }
    }

    pub(super) fn key(
        &mut self,
        code: KeyCode,
        how: Option<Move>,
        table: &mut Table,
    ) -> OverlayAction {
        match (code, &mut self.kind) {
            (KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::F(1), _) => {
                return OverlayAction::Closes;
            }
            (KeyCode::Enter, what) => {
                if let OverlayKind::Columns(picker) = what {
                    picker.take(table);
                }
                return OverlayAction::Closes;
            }
            (KeyCode::Char(' '), OverlayKind::Columns(picker)) if !picker.sorts => picker.tick(),
            (KeyCode::Char('K'), OverlayKind::Columns(picker)) if !picker.sorts => {
                picker.shift(false);
            }
            (KeyCode::Char('J'), OverlayKind::Columns(picker)) if !picker.sorts => {
                picker.shift(true);
            }
            (KeyCode::Char('d'), OverlayKind::Columns(picker)) if !picker.sorts => {
                table.usual_columns();
                return OverlayAction::Closes;
            }
            (KeyCode::Char(' '), _) => self.go(Move::Page { back: false }),
            _ => how.into_iter().for_each(|how| self.go(how)),
        }
        OverlayAction::Stays
    }

    /// Handles a click on an item of a list: sorts by it, or ticks it.
    pub(super) fn clicked(&mut self, place: usize, table: &mut Table) -> OverlayAction {
        if let OverlayKind::Columns(picker) = &mut self.kind {
            picker.at = place.min(picker.items.len().saturating_sub(1));
            if picker.sorts {
                picker.take(table);
                return OverlayAction::Closes;
            }
            picker.tick();
        }
        OverlayAction::Stays
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        frame: &mut Frame<'_>,
        context: &ViewContext<'_>,
        hits: &mut Hits,
    ) {
        hits.clear();
        let room = area.width.saturating_sub(4);
        let (title, text, hint) = match &self.kind {
            OverlayKind::Help(tab, about, schema) => (
                format!(" Help: {} ", tab.title()),
                help(about, schema, room, context),
                "",
            ),
            OverlayKind::Event(event) => (
                format!(" {} ", event.what),
                labelled(in_full(event, context), room, context),
                "",
            ),
            OverlayKind::Columns(picker) if picker.sorts => (
                " Sort by ".to_owned(),
                picker.text(context),
                "Enter sorts, again reverses · Esc cancels",
            ),
            OverlayKind::Columns(picker) => (
                " Columns ".to_owned(),
                picker.text(context),
                "Space toggles · K J move · d default · Enter applies · Esc cancels",
            ),
        };
        self.lines = text.height();
        let area = match &self.kind {
            OverlayKind::Event(_) => Rect {
                height: area.height.min(self.lines as u16 + 2),
                ..area
            },
            _ => area,
        };
        self.page = area.height.saturating_sub(2).into();
        if let OverlayKind::Columns(picker) = &self.kind
            && self.page > 0
        {
            self.top = self
                .top
                .clamp((picker.at + 1).saturating_sub(self.page), picker.at);
        }
        self.top = self.top.min(self.lines.saturating_sub(self.page));
        let last = (self.top + self.page).min(self.lines);
        let hint = match (hint, self.lines > self.page) {
            ("", true) => format!(
                "lines {} to {last} of {} · Esc closes",
                self.top + 1,
                self.lines
            ),
            ("", false) => "Esc closes".to_owned(),
            (hint, _) => hint.to_owned(),
        };
        let block = Block::bordered()
            .border_style(context.style(Tone::Dim))
            .title(Line::styled(title, context.style(Tone::Strong)))
            .title_bottom(Line::styled(format!(" {hint} "), context.style(Tone::Dim)))
            .padding(Padding::horizontal(u16::from(area.width > 8)));
        let within = block.inner(area);
        frame.render_widget(Clear, area);
        let top = u16::try_from(self.top).unwrap_or(u16::MAX);
        frame.render_widget(Paragraph::new(text).block(block).scroll((top, 0)), area);
        for (y, place) in (within.top()..within.bottom()).zip(self.top..self.lines) {
            hits.push(
                Rect {
                    y,
                    height: 1,
                    ..within
                },
                Hit::Item(place),
            );
        }
    }
}

/// Returns the help for a view: its contents, keys, columns, and the filter language.
fn help(
    about: &str,
    schema: &'static Schema,
    room: u16,
    context: &ViewContext<'_>,
) -> Text<'static> {
    let mut lines: Vec<Line<'static>> = fit::wrapped(about, room)
        .into_iter()
        .map(Line::from)
        .collect();
    let entries = |text: &'static str| {
        let entries = text.lines().filter_map(|line| line.split_once('\t'));
        let entries = entries.map(|(name, text)| (name, text.to_owned(), Tone::Plain));
        labelled(entries.collect(), room, context).lines
    };
    let (keys, top) = HELP.split_once("\n\n").unwrap_or((HELP, ""));
    let columns = schema.all().map(|column| {
        (
            schema.title(column),
            format!("{}: {}.", column.id, column.about),
            Tone::Plain,
        )
    });
    let columns = labelled(columns.collect(), room, context).lines;
    // A table with its layout preserved: long lines continue below with the same indentation.
    let language = filter::LANGUAGE.lines().flat_map(|line| {
        let indent = (line.len() - line.trim_start().len()).min(usize::from(room / 2));
        if fit::width(line) <= room {
            return vec![Line::from(line)];
        }
        let parts = fit::wrapped(line, room.saturating_sub(indent as u16));
        parts
            .into_iter()
            .map(|part| Line::from(format!("{:indent$}{part}", "")))
            .collect()
    });
    for (title, part) in [
        ("Keys", entries(keys)),
        ("At the top", entries(top)),
        ("Columns", columns),
        ("Filters", language.collect()),
    ] {
        lines.extend([
            Line::default(),
            Line::styled(title, context.style(Tone::Strong)),
        ]);
        lines.extend(part);
    }
    lines.into()
}
