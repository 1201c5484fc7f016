//! Order of a table's rows: by one column, ascending or descending.

use crate::columns::{self, Rates};
use crate::record::{Cell, Record};
use std::cmp::Ordering;
use std::net::IpAddr;

/// A sort column and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Index of the column.
    pub column: usize,
    /// True for descending order.
    pub descending: bool,
}

/// Sort key of a row, usable after the row itself is gone.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// The cell is empty.
    Nothing,
    /// Severities sort by rank, other names alphabetically.
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
    /// Returns the key of a cell.
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

    /// Compares two keys of the same column, neither of them empty.
    fn ascending(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Name(rank, a), Self::Name(other, b)) => (rank, a).cmp(&(other, b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Address(a), Self::Address(b)) => a.cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            // All cells of a column are of the same type.
            _ => Ordering::Equal,
        }
    }
}

impl Order {
    /// Parses `rate_1s`, or `-rate_1s` for descending order; accepts the same short names as
    /// filters.
    ///
    /// # Errors
    ///
    /// There is no such column; the text suggests a name.
    pub fn parse<R: Record>(text: &str) -> Result<Self, String> {
        Self::parse_with::<R>(text, Rates::Latest)
    }

    /// Same as [`Self::parse`], with `rate` short for one of `rates`.
    ///
    /// # Errors
    ///
    /// There is no such column; the text suggests a name.
    pub fn parse_with<R: Record>(text: &str, rates: Rates) -> Result<Self, String> {
        let text = text.trim();
        let (name, descending) = match text.strip_prefix(['-', '−']) {
            Some(name) => (name, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        let column = columns::named::<R>(name.trim(), rates)?;
        Ok(Self { column, descending })
    }

    /// Compares two rows. Empty cells sort last in either direction. Equal rows compare equal, so
    /// that a stable sort keeps their order.
    pub fn compare<R: Record>(&self, a: &R, b: &R) -> Ordering {
        let key = |record| SortKey::from_cell(R::cell(record, self.column));
        self.compare_keys(&key(a), &key(b))
    }

    /// Compares two rows by their keys.
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

/// Returns the rank of a severity; 0 for other names, which sort alphabetically.
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
    fn an_order_is_parsed() {
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
    fn empty_cells_sort_last_in_both_directions() {
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
    fn severities_sort_by_rank() {
        let order = Order::parse::<EventRecord>("severity").unwrap();
        let mut events = sample::tables().events;
        events.sort_by(|a, b| order.compare(a, b));
        let severities: Vec<_> = events.iter().map(|event| event.severity).collect();
        assert!(severities.is_sorted(), "{severities:?}");
        assert!(severities.first() != severities.last());
    }
}
