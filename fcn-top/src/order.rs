//! The order of a table's lines: by one column, either way.

use crate::columns::{self, Rates};
use crate::record::{Cell, Record};
use std::cmp::Ordering;
use std::net::IpAddr;

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
    /// There is nothing in the column.
    Nothing,
    /// Severities go by how bad they are; other names by the alphabet.
    Name(u8, &'static str),
    /// Any other text.
    Text(Box<str>),
    /// An address.
    Address(IpAddr),
    /// A whole number.
    Whole(u64),
    /// Any other number.
    Number(f64),
}

impl SortKey {
    /// That of a cell.
    pub fn from_cell(cell: Cell<'_>) -> Self {
        match cell {
            Cell::None => Self::Nothing,
            Cell::Name(name) => Self::Name(rank(name), name),
            Cell::Text(text) => Self::Text(text.into()),
            Cell::Evidence(evidence) => Self::Text(evidence.to_string().into()),
            Cell::Address(address) => Self::Address(address),
            Cell::Count(n) | Cell::Span(n) | Cell::Moment(n) => Self::Whole(n),
            Cell::Rate(x) | Cell::Bits(x) | Cell::Share(x) | Cell::Change(x) => Self::Number(x),
        }
    }

    /// Which of two keys of one column, neither of them nothing, is less.
    fn ascending(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Name(rank, a), Self::Name(other, b)) => (rank, a).cmp(&(other, b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Address(a), Self::Address(b)) => a.cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            // Cells of one column are of one sort.
            _ => Ordering::Equal,
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

    /// Which of two lines comes first. What has nothing in the column comes last either way; equal lines are equal, so that
    /// a stable sort leaves them where they are.
    pub fn compare<R: Record>(&self, a: &R, b: &R) -> Ordering {
        let key = |record| SortKey::from_cell(R::cell(record, self.column));
        self.compare_keys(&key(a), &key(b))
    }

    /// Which of two lines comes first, of which these are the keys.
    pub fn compare_keys(&self, a: &SortKey, b: &SortKey) -> Ordering {
        match (a, b) {
            (SortKey::Nothing, SortKey::Nothing) => Ordering::Equal,
            (SortKey::Nothing, _) => Ordering::Greater,
            (_, SortKey::Nothing) => Ordering::Less,
            _ if self.descending => b.ascending(a),
            _ => a.ascending(b),
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
    fn an_order_is_read() {
        for (text, column, descending) in [
            ("rate_1s", "rate_1s", false),
            ("-rate", "rate_1s", true),
            (" +total ", "total", false),
        ] {
            let order = Order::parse::<QpRecord>(text).unwrap();
            assert_eq!(Some(order.column), column_named::<QpRecord>(column));
            assert_eq!(order.descending, descending);
        }
        let message = Order::parse::<QpRecord>("-totl").unwrap_err();
        assert_eq!(message, "there is no column `totl`; did you mean `total`?");
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
