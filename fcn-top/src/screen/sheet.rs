//! What the screen remembers of one table: order, filter, columns, the line chosen and where it is scrolled to.

use super::line::{Key, Line, Lines};
use crate::filter::{Filter, FilterError};
use crate::order::{Order, SortKey};
use crate::record::{Cell, Record, column_named};
use crate::text::Words;
use std::borrow::Cow;
use std::net::IpAddr;

/// How the line chosen is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    By(isize),
    Page { back: bool },
    First,
    Last,
}

/// The screen's state of one table.
#[derive(Debug)]
pub(super) struct Sheet {
    pub order: Order,
    /// Numbers of the columns, in the order shown.
    pub columns: Vec<usize>,
    /// Whether those are the usual ones.
    pub usual: bool,
    /// The filter as it was typed; the last one that could be read.
    pub text: String,
    filter: Option<Filter>,
    /// Only lines with this notifier; set from the points, apart from the filter since masked addresses cannot be typed.
    pub notifier: Option<IpAddr>,
    /// The line chosen.
    pub chosen: Option<Key>,
    /// Where it stands (or stood) among the lines shown.
    pub at: usize,
    /// The first line on the screen.
    pub top: usize,
    /// Whether the screen goes where the chosen line goes.
    pub follow: bool,
    /// Columns scrolled away to the left.
    pub left: usize,
    /// A column that is to be scrolled into sight.
    pub reveal: Option<usize>,
    /// Lines on the screen, when it was last drawn.
    pub page: usize,
    /// The widest text seen in each column: columns grow, and do not jump.
    pub seen: Vec<u16>,
    /// Numbers of the lines that pass the filter, in order.
    pub lines: Vec<u32>,
}

impl Sheet {
    pub(super) fn new<L: Line>() -> Self {
        let columns: Vec<usize> = L::LAYOUT
            .columns
            .iter()
            .filter_map(|id| column_named::<L::Record>(id))
            .collect();
        Self {
            order: Order::parse::<L::Record>(L::LAYOUT.order).unwrap_or(Order {
                column: 0,
                descending: false,
            }),
            columns,
            usual: true,
            text: String::new(),
            filter: None,
            notifier: None,
            chosen: None,
            at: 0,
            top: 0,
            follow: true,
            left: 0,
            reveal: None,
            page: 10,
            seen: vec![0; L::Record::COLUMNS.len()],
            lines: Vec::new(),
        }
    }

    /// Takes the usual columns again.
    pub(super) fn usual_columns<L: Line>(&mut self) {
        self.columns = Self::new::<L>().columns;
        self.usual = true;
        self.left = 0;
    }

    /// Takes a filter.
    pub(super) fn filter<R: Record>(&mut self, text: &str) -> Result<(), FilterError> {
        self.filter = match text.trim() {
            "" => None,
            _ => Some(Filter::parse::<R>(text)?),
        };
        text.trim().clone_into(&mut self.text);
        // Other lines may do with less room.
        self.seen.fill(0);
        Ok(())
    }

    /// Whether lines may be left out.
    pub(super) fn filters(&self) -> bool {
        self.filter.is_some() || self.notifier.is_some()
    }

    /// Sorts by a column; by the one that is sorted by already, the other way round.
    pub(super) fn sort_by<L: Line>(&mut self, column: usize, lines: &(impl Lines<L> + ?Sized)) {
        if self.order.column == column {
            self.order.descending = !self.order.descending;
        } else {
            // The most and the latest first; names from A.
            let number = |line: Cow<'_, L>| {
                let cell = line.record().cell(column);
                (cell != Cell::None).then_some(!matches!(
                    cell,
                    Cell::Name(_) | Cell::Text(_) | Cell::Evidence(_) | Cell::Address(_)
                ))
            };
            let descending = lines.all().take(1000).find_map(number).unwrap_or(true);
            self.order = Order { column, descending };
        }
    }

    /// Filters and orders `lines`, and finds the chosen one again.
    pub(super) fn arrange<L: Line>(&mut self, lines: &(impl Lines<L> + ?Sized), words: &Words) {
        let notifier = self
            .notifier
            .and_then(|at| Some((column_named::<L::Record>("notifier")?, at)));
        let filter = self.filter.as_ref();
        self.lines.clear();
        let fits = |line: &L| {
            filter.is_none_or(|filter| filter.matches_shown(line.record(), words))
                && notifier
                    .is_none_or(|(column, at)| line.record().cell(column) == Cell::Address(at))
        };
        let order = self.order;
        // What is compared lies together: lines are long, and looking at two for every comparison takes longer than all else.
        let mut keys: Vec<(SortKey, u64, u32)> = (lines.all().zip(0u32..))
            .filter(|(line, _)| fits(line))
            .map(|(line, at)| {
                let key = SortKey::of(line.record().cell(order.column));
                (key, line.rank(at as usize), at)
            })
            .collect();
        keys.sort_unstable_by(|(a, one, _), (b, other, _)| {
            let ranks = if order.descending {
                other.cmp(one)
            } else {
                one.cmp(other)
            };
            order.compare_keys(a, b).then(ranks)
        });
        self.lines.extend(keys.iter().map(|&(.., at)| at));
        self.find(lines);
    }

    /// Finds where the chosen line stands; one that has gone gives way to what stands there now.
    fn find<L: Line>(&mut self, lines: &(impl Lines<L> + ?Sized)) {
        let Some(key) = &self.chosen else { return };
        let place = lines.place_of(key);
        let place = place.and_then(|at| self.lines.iter().position(|line| *line as usize == at));
        match place {
            Some(place) => self.at = place,
            None if self.lines.is_empty() => self.at = 0,
            None => self.choose(self.at, lines),
        }
    }

    /// The line at a place among those shown.
    pub(super) fn line<'l, L: Line>(
        &self,
        place: usize,
        lines: &'l (impl Lines<L> + ?Sized),
    ) -> Option<Cow<'l, L>> {
        lines.at(*self.lines.get(place)? as usize)
    }

    /// The line chosen; where none is, the first.
    pub(super) fn current<'l, L: Line>(
        &self,
        lines: &'l (impl Lines<L> + ?Sized),
    ) -> Option<Cow<'l, L>> {
        let Some(key) = &self.chosen else {
            return self.line(0, lines);
        };
        self.line(self.at, lines)
            .filter(|line| line.key() == *key)
            .or_else(|| lines.at(lines.place_of(key)?))
    }

    /// Chooses the line at a place among those shown, or the last.
    pub(super) fn choose<L: Line>(&mut self, place: usize, lines: &(impl Lines<L> + ?Sized)) {
        self.at = place.min(self.lines.len().saturating_sub(1));
        if let Some(line) = self.line(self.at, lines) {
            let key = line.key();
            self.chosen = Some(key);
        }
        self.follow = true;
    }

    /// Moves on from the chosen line; where none is, to the first one on the screen.
    pub(super) fn go<L: Line>(&mut self, how: Move, lines: &(impl Lines<L> + ?Sized)) {
        let last = self.lines.len().saturating_sub(1);
        let page = self.page.saturating_sub(1).max(1);
        let place = match how {
            Move::First => 0,
            Move::Last => last,
            _ if self.chosen.is_none() => self.top,
            Move::By(by) => self.at.saturating_add_signed(by),
            Move::Page { back: true } => self.at.saturating_sub(page),
            Move::Page { back: false } => self.at.saturating_add(page),
        };
        self.choose(place, lines);
    }

    /// Scrolls without choosing.
    pub(super) fn scroll(&mut self, by: isize) {
        self.follow = false;
        self.top = self.top.saturating_add_signed(by);
        self.settle(self.page);
    }

    /// Moves the lines on the screen to where they may and should be: `page` of them have room.
    pub(super) fn settle(&mut self, page: usize) {
        self.page = page;
        if self.follow && self.chosen.is_some() && page > 0 {
            self.top = self.top.clamp(self.at.saturating_sub(page - 1), self.at);
        }
        self.top = self.top.min(self.lines.len().saturating_sub(page));
    }

    /// Scrolls the columns; the first ones stay.
    pub(super) fn scroll_columns<L: Line>(&mut self, right: bool) {
        let most = self.columns.len().saturating_sub(L::LAYOUT.fixed + 1);
        self.left = if right {
            (self.left + 1).min(most)
        } else {
            self.left.saturating_sub(1)
        };
    }

    /// Sorts by the next column shown, or the one before.
    pub(super) fn sort_beside<L: Line>(&mut self, right: bool, lines: &(impl Lines<L> + ?Sized)) {
        let now = self
            .columns
            .iter()
            .position(|&column| column == self.order.column);
        let next = match (now, right) {
            (None, _) => 0,
            (Some(now), true) => (now + 1).min(self.columns.len().saturating_sub(1)),
            (Some(now), false) => now.saturating_sub(1),
        };
        if let Some(&column) = self.columns.get(next)
            && column != self.order.column
        {
            self.sort_by(column, lines);
            self.left = self.left.min(next.saturating_sub(L::LAYOUT.fixed));
            self.reveal = Some(column);
        }
    }
}
