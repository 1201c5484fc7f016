//! Clickable areas of the screen for the mouse, valid until the next frame is drawn.

use super::Tab;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};

/// A clickable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The tab of a view, or a link to it.
    Tab(Tab),
    /// The heading of a column.
    Heading(usize),
    /// A line of the table, by its index.
    Line(usize),
    /// A line of a list in an overlay.
    Item(usize),
    /// The indicator of the mode (live, paused or frozen).
    Mode,
}

/// Clickable areas, in drawing order.
#[derive(Debug, Default)]
pub(super) struct Hits(Vec<(Rect, Hit)>);

impl Hits {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, area: Rect, hit: Hit) {
        self.0.push((area, hit));
    }

    /// Returns the topmost element at that position.
    pub(super) fn at(&self, x: u16, y: u16) -> Option<Hit> {
        let under = |(area, _): &&(Rect, Hit)| area.contains(Position { x, y });
        self.0.iter().rev().find(under).map(|&(_, hit)| hit)
    }
}

/// Drawing context of a view.
pub(super) struct DrawContext<'f, 'b> {
    pub frame: &'f mut Frame<'b>,
    pub area: Rect,
    pub hits: &'f mut Hits,
}
