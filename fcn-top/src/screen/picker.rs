//! What lies over a view: help, an event in full, and the lists of columns.

use super::app::{App, with_table};
use super::draw::Look;
use super::fit;
use super::keys::movement;
use super::line::Line;
use super::mouse::{Hit, Hits};
use super::sheet::{Move, Sheet};
use super::theme::Tone;
use crate::record::{Column, EventRecord, Record};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A text that is scrolled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    /// First line shown.
    pub top: usize,
    /// Lines that have room, when it was last drawn.
    pub page: usize,
    /// Lines that there are.
    pub lines: usize,
}

impl Reader {
    fn go(&mut self, how: Move) {
        let page = self.page.saturating_sub(1).max(1);
        self.top = match how {
            Move::First => 0,
            Move::Last => self.lines,
            Move::By(by) => self.top.saturating_add_signed(by),
            Move::Page { back: true } => self.top.saturating_sub(page),
            Move::Page { back: false } => self.top.saturating_add(page),
        };
        self.top = self.top.min(self.lines.saturating_sub(self.page));
    }
}

/// A list of a table's columns.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    /// The columns.
    all: &'static [Column],
    /// Their numbers, in the order of the list, and which of them are shown.
    items: Vec<(usize, bool)>,
    at: usize,
    reader: Reader,
}

impl Picker {
    pub(super) fn new<L: Line>(sheet: &Sheet, sort: bool) -> Self {
        let all = L::Record::COLUMNS;
        let mut items: Vec<(usize, bool)> =
            sheet.columns.iter().map(|&column| (column, true)).collect();
        let others = (0..all.len()).filter(|column| !sheet.columns.contains(column));
        items.extend(others.map(|column| (column, false)));
        let now = items
            .iter()
            .position(|&(column, _)| column == sheet.order.column);
        let at = if sort { now.unwrap_or(0) } else { 0 };
        Self {
            all,
            items,
            at,
            reader: Reader::default(),
        }
    }

    /// The numbers of the columns that are ticked.
    fn ticked(&self) -> Vec<usize> {
        self.items
            .iter()
            .filter(|(_, shown)| *shown)
            .map(|&(column, _)| column)
            .collect()
    }

    fn go(&mut self, how: Move) {
        let last = self.items.len().saturating_sub(1);
        let page = self.reader.page.saturating_sub(1).max(1);
        self.at = match how {
            Move::First => 0,
            Move::Last => last,
            Move::By(by) => self.at.saturating_add_signed(by),
            Move::Page { back: true } => self.at.saturating_sub(page),
            Move::Page { back: false } => self.at.saturating_add(page),
        };
        self.at = self.at.min(last);
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

    /// Draws the list into a frame over `area`.
    pub(super) fn draw(
        &mut self,
        sort: bool,
        area: Rect,
        look: Look<'_>,
        buffer: &mut Buffer,
        hits: &mut Hits,
    ) {
        let (title, hint) = if sort {
            ("Sort by", "Enter sorts, again reverses · Esc leaves")
        } else {
            (
                "Columns",
                "Space ticks · K J move · d usual ones · Enter takes · Esc leaves",
            )
        };
        let room = framed(area, title, hint, look, buffer);
        let page = usize::from(room.height);
        (self.reader.page, self.reader.lines) = (page, self.items.len());
        if page > 0 {
            self.reader.top = self
                .reader
                .top
                .clamp((self.at + 1).saturating_sub(page), self.at);
        }
        let top = self.reader.top;
        for (y, (place, &(column, shown))) in
            (room.top()..room.bottom()).zip(self.items.iter().enumerate().skip(top))
        {
            let Some(column) = self.all.get(column) else {
                continue;
            };
            let chosen = place == self.at;
            let line = Rect {
                y,
                height: 1,
                ..room
            };
            hits.push(line, Hit::Item(place));
            let tick = match (sort, shown) {
                (true, _) => "",
                (false, true) => "[x] ",
                (false, false) => "[ ] ",
            };
            let dim = if shown { Tone::Plain } else { Tone::Dim };
            let style = |tone| {
                if chosen {
                    look.theme.chosen()
                } else {
                    look.theme.style(tone)
                }
            };
            if chosen {
                buffer.set_style(line.intersection(buffer.area), look.theme.chosen());
            }
            let text = format!("{tick}{:<11} ", column.title);
            let x = room.left()
                + fit::put(
                    buffer,
                    room,
                    (room.left(), y),
                    &text,
                    room.width,
                    style(dim),
                );
            let text = format!("{:<17} ", column.id);
            let x = x + fit::put(buffer, room, (x, y), &text, room.width, style(Tone::Accent));
            fit::put(
                buffer,
                room,
                (x, y),
                column.about,
                room.width,
                style(Tone::Dim),
            );
        }
    }
}

/// What lies over a view.
#[derive(Clone, Debug)]
pub(super) enum Over {
    Help(Reader),
    Event(Box<EventRecord>, Reader),
    Sort(Picker),
    Columns(Picker),
}

/// Draws a frame with a title and a hint into `area`, and clears what is in it; returns the room within.
pub(super) fn framed(
    area: Rect,
    title: &str,
    hint: &str,
    look: Look<'_>,
    buffer: &mut Buffer,
) -> Rect {
    use ratatui::widgets::{Block, Clear, Widget};
    let area = area.intersection(buffer.area);
    Clear.render(area, buffer);
    let block = Block::bordered().border_style(look.theme.style(Tone::Dim));
    let within = block.inner(area);
    block.render(area, buffer);
    let inside = area.width.saturating_sub(4);
    let at = area.left() + 2;
    fit::put(
        buffer,
        area,
        (at, area.top()),
        &format!(" {title} "),
        inside,
        look.theme.bold(Tone::Accent),
    );
    if area.height > 1 {
        let style = look.theme.style(Tone::Dim);
        fit::put(
            buffer,
            area,
            (at, area.bottom() - 1),
            &format!(" {hint} "),
            inside,
            style,
        );
    }
    // A blank between the frame and the text.
    if within.width > 4 {
        Rect {
            x: within.x + 1,
            width: within.width - 2,
            ..within
        }
    } else {
        within
    }
}

impl App<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    pub(super) fn close_over(&mut self) {
        self.over = None;
    }

    pub(super) fn over_moved(&mut self, how: Move) {
        match &mut self.over {
            Some(Over::Help(reader) | Over::Event(_, reader)) => reader.go(how),
            Some(Over::Sort(picker) | Over::Columns(picker)) => picker.go(how),
            None => {}
        }
    }

    pub(super) fn over_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::F(1) => self.close_over(),
            KeyCode::Enter => self.over_taken(),
            KeyCode::Home => self.over_moved(Move::First),
            KeyCode::End => self.over_moved(Move::Last),
            code => {
                if let Some(Over::Columns(picker)) = &mut self.over {
                    match code {
                        KeyCode::Char(' ') => {
                            if let Some((_, shown)) = picker.items.get_mut(picker.at) {
                                *shown = !*shown;
                            }
                            return;
                        }
                        KeyCode::Char('K') => return picker.shift(false),
                        KeyCode::Char('J') => return picker.shift(true),
                        KeyCode::Char('d') => {
                            with_table!(self, |sheet, _lines, L| sheet.usual_columns::<L>());
                            return self.close_over();
                        }
                        _ => {}
                    }
                }
                let how = match code {
                    KeyCode::Char(' ') => Some(Move::Page { back: false }),
                    code => movement(code),
                };
                if let Some(how) = how {
                    self.over_moved(how);
                }
            }
        }
    }

    /// A click on an item of a list: it is sorted by, or ticked.
    pub(super) fn item_clicked(&mut self, place: usize) {
        match &mut self.over {
            Some(Over::Sort(picker)) => {
                picker.at = place;
                self.over_taken();
            }
            Some(Over::Columns(picker)) => {
                picker.at = place.min(picker.items.len().saturating_sub(1));
                if let Some((_, shown)) = picker.items.get_mut(place) {
                    *shown = !*shown;
                }
            }
            _ => {}
        }
    }

    fn over_taken(&mut self) {
        match self.over.take() {
            Some(Over::Sort(picker)) => {
                if let Some(&(column, _)) = picker.items.get(picker.at) {
                    self.sort_by(column);
                    with_table!(self, |sheet, _lines, L| sheet.reveal = Some(column));
                }
            }
            Some(Over::Columns(picker)) => {
                let ticked = picker.ticked();
                // A table without columns shows nothing; then those stay that were.
                if !ticked.is_empty() {
                    with_table!(self, |sheet, _lines, L| {
                        sheet.usual &= sheet.columns == ticked;
                        (sheet.columns, sheet.left) = (ticked, 0);
                    });
                }
            }
            Some(Over::Help(_) | Over::Event(..)) | None => {}
        }
    }
}
