//! The order of a table's lines: by one column, either way.

use crate::columns::{self, Rates};
use crate::record::{Cell, Record};
use std::cmp::Ordering;

/// By which column, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column's number.
    pub column: usize,
    /// The greatest first.
    pub descending: bool,
}

/// What a line is sorted by, when the line itself may be gone.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// Whatever is no text.
    Cell(Cell<'static>),
    /// [`Cell::Text`].
    Text(Box<str>),
}

impl SortKey {
    /// That of a cell.
    #[must_use]
    pub fn of(cell: Cell<'_>) -> Self {
        Self::Cell(match cell {
            Cell::Text(text) => return Self::Text(text.into()),
            Cell::None => Cell::None,
            Cell::Evidence(evidence) => return Self::Text(evidence.to_string().into()),
            Cell::Name(name) => Cell::Name(name),
            Cell::Address(address) => Cell::Address(address),
            Cell::Count(n) => Cell::Count(n),
            Cell::Rate(x) => Cell::Rate(x),
            Cell::Bits(x) => Cell::Bits(x),
            Cell::Share(x) => Cell::Share(x),
            Cell::Change(x) => Cell::Change(x),
            Cell::Span(n) => Cell::Span(n),
            Cell::Moment(at) => Cell::Moment(at),
        })
    }

    /// The cell.
    #[must_use]
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Self::Cell(cell) => *cell,
            Self::Text(text) => Cell::Text(text),
        }
    }
}

impl Order {
    /// Reads `rate_1s`, or `-rate_1s` for the greatest first; short names as in filters.
    ///
    /// # Errors
    /// There is no such column; the text says which one may be meant.
    pub fn parse<R: Record>(text: &str) -> Result<Self, String> {
        Self::parse_with::<R>(text, Rates::Latest)
    }

    /// The same, where `rate` is short for one of `rates`.
    ///
    /// # Errors
    /// There is no such column; the text says which one may be meant.
    pub fn parse_with<R: Record>(text: &str, rates: Rates) -> Result<Self, String> {
        let text = text.trim();
        let (name, descending) = match text.strip_prefix(['-', '−']) {
            Some(name) => (name, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        let column = columns::named::<R>(name.trim(), rates)?;
        Ok(Self { column, descending })
    }

    /// As [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn text<R: Record>(&self) -> String {
        let id = columns::of::<R>(self.column).map_or("", |column| column.id);
        format!("{}{id}", if self.descending { "-" } else { "" })
    }

    /// Which of two lines comes first. What has nothing in the column comes last either way; equal lines are equal, so that
    /// a stable sort leaves them where they are.
    #[must_use]
    pub fn compare<R: Record>(&self, a: &R, b: &R) -> Ordering {
        self.compare_cells(&a.cell(self.column), &b.cell(self.column))
    }

    /// Which of two lines comes first, of which these are the keys.
    #[must_use]
    pub fn compare_keys(&self, a: &SortKey, b: &SortKey) -> Ordering {
        self.compare_cells(&a.cell(), &b.cell())
    }

    /// Which of two lines comes first, of which these are the cells in the column.
    #[must_use]
    pub fn compare_cells(&self, a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
        match (a, b) {
            (Cell::None, Cell::None) => Ordering::Equal,
            (Cell::None, _) => Ordering::Greater,
            (_, Cell::None) => Ordering::Less,
            _ if self.descending => Self::cells(b, a),
            _ => Self::cells(a, b),
        }
    }

    /// Which of two cells of one column is less. Nothing is more than anything.
    #[must_use]
    pub fn cells(a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
        match (a, b) {
            (Cell::None, Cell::None) => Ordering::Equal,
            (Cell::Name(a), Cell::Name(b)) => rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Evidence(a), Cell::Evidence(b)) => a.to_string().cmp(&b.to_string()),
            (Cell::Evidence(a), Cell::Text(b)) => a.to_string().as_str().cmp(b),
            (Cell::Text(a), Cell::Evidence(b)) => (*a).cmp(b.to_string().as_str()),
            (Cell::Address(a), Cell::Address(b)) => a.cmp(b),
            (Cell::Count(a), Cell::Count(b))
            | (Cell::Span(a), Cell::Span(b))
            | (Cell::Moment(a), Cell::Moment(b)) => a.cmp(b),
            (Cell::Rate(a), Cell::Rate(b))
            | (Cell::Bits(a), Cell::Bits(b))
            | (Cell::Share(a), Cell::Share(b))
            | (Cell::Change(a), Cell::Change(b)) => a.total_cmp(b),
            // Cells of one column are of one sort.
            _ => matches!(a, Cell::None).cmp(&matches!(b, Cell::None)),
        }
    }
}

/// Severities go by how bad they are; other names by the alphabet.
pub(crate) fn rank(name: &str) -> u8 {
    match name {
        "warning" => 1,
        "error" => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EventRecord, QpRecord, column_named};
    use crate::tests::sample;

    #[test]
    fn an_order_is_read_and_written() {
        for (text, column, descending) in [
            ("rate_1s", "rate_1s", false),
            ("-rate", "rate_1s", true),
            (" +total ", "total", false),
        ] {
            let order = Order::parse::<QpRecord>(text).unwrap();
            assert_eq!(Some(order.column), column_named::<QpRecord>(column));
            assert_eq!(order.descending, descending);
            assert_eq!(
                Order::parse::<QpRecord>(&order.text::<QpRecord>()),
                Ok(order)
            );
        }
        let said = Order::parse::<QpRecord>("-totl").unwrap_err();
        assert_eq!(said, "there is no column `totl`; did you mean `total`?");
        assert!(Order::parse::<QpRecord>("").is_err());
    }

    #[test]
    fn nothing_comes_last_either_way() {
        let rows: Vec<QpRecord> = [Some(3), None, Some(1), None, Some(2)]
            .into_iter()
            .map(|gap_p50| QpRecord {
                gap_p50,
                ..sample::qp()
            })
            .collect();
        for (text, expected) in [
            ("gap_p50", [Some(1), Some(2), Some(3), None, None]),
            ("-gap_p50", [Some(3), Some(2), Some(1), None, None]),
        ] {
            let order = Order::parse::<QpRecord>(text).unwrap();
            let mut sorted = rows.clone();
            sorted.sort_by(|a, b| order.compare(a, b));
            let gaps: Vec<_> = sorted.iter().map(|row| row.gap_p50).collect();
            assert_eq!(gaps, expected);
        }
    }

    #[test]
    fn severities_go_by_how_bad_they_are() {
        let order = Order::parse::<EventRecord>("severity").unwrap();
        let mut events = sample::tables().events;
        events.sort_by(|a, b| order.compare(a, b));
        let severities: Vec<_> = events.iter().map(|event| event.severity).collect();
        assert!(severities.is_sorted(), "{severities:?}");
        assert!(severities.first() != severities.last());
    }
}
