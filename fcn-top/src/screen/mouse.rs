//! What the mouse does: what was drawn where is remembered until the next picture.

use super::View;
use super::app::App;
use super::keys::Command;
use super::sheet::Move;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// What is at a place on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The tab of a view.
    Tab(View),
    /// The heading of a column.
    Heading(usize),
    /// A line of the table, by its place.
    Line(usize),
    /// A line of a list that lies over the view.
    Item(usize),
    /// The word that tells whether the screen is live.
    Mode,
}

/// What is where.
#[derive(Debug, Default)]
pub(super) struct Hits(Vec<(Rect, Hit)>);

impl Hits {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, area: Rect, hit: Hit) {
        self.0.push((area, hit));
    }

    /// What was drawn last at that place.
    fn at(&self, x: u16, y: u16) -> Option<Hit> {
        self.0
            .iter()
            .rev()
            .find(|(area, _)| area.contains(Position { x, y }))
            .map(|&(_, hit)| hit)
    }
}

/// Lines that a notch of the wheel moves.
const NOTCH: isize = 3;

impl App<'_> {
    /// Takes what the mouse did.
    pub fn mouse(&mut self, event: MouseEvent) {
        let hit = self.hits.at(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.clicked(hit),
            MouseEventKind::ScrollUp => self.wheel(-NOTCH),
            MouseEventKind::ScrollDown => self.wheel(NOTCH),
            MouseEventKind::ScrollLeft => self.command(Command::Column { right: false }),
            MouseEventKind::ScrollRight => self.command(Command::Column { right: true }),
            _ => {}
        }
    }

    fn clicked(&mut self, hit: Option<Hit>) {
        if self.is_over() {
            match hit {
                Some(Hit::Item(place)) => self.item_clicked(place),
                _ => self.close_over(),
            }
            return;
        }
        match hit {
            Some(Hit::Tab(view)) => self.command(Command::View(view)),
            Some(Hit::Heading(column)) => self.sort_by(column),
            Some(Hit::Line(place)) => self.line_clicked(place),
            Some(Hit::Mode) => self.command(Command::Pause),
            Some(Hit::Item(_)) | None => {}
        }
    }

    fn wheel(&mut self, by: isize) {
        if self.is_over() {
            self.over_moved(Move::By(by));
        } else {
            self.scrolled(by);
        }
    }
}
