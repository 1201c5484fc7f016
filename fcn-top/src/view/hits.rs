//! Clickable areas of the screen, for the mouse: remembered until the next frame is drawn.

use super::Tab;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};

/// What is at a place on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The tab of a view, or what leads to it.
    Tab(Tab),
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
    pub(super) fn at(&self, x: u16, y: u16) -> Option<Hit> {
        let under = |(area, _): &&(Rect, Hit)| area.contains(Position { x, y });
        self.0.iter().rev().find(under).map(|&(_, hit)| hit)
    }
}

/// Where a view is drawn.
pub(super) struct Place<'f, 'b> {
    pub frame: &'f mut Frame<'b>,
    pub area: Rect,
    pub hits: &'f mut Hits,
}
