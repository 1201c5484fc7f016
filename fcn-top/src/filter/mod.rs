//! The filter language: selects the rows of a table, for the screen's filter line and for
//! `--where`.
//!
//! `words.rs` splits a filter into tokens, `parse.rs` builds a tree of tests from them, `value.rs`
//! has the values and comparisons of a single test, `numbers.rs` parses numbers. [`LANGUAGE`]
//! describes the language.

mod numbers;
mod parse;
#[cfg(test)]
mod tests;
mod value;
mod words;

use crate::columns::Rates;
use crate::record::Record;
use crate::text::Formatter;
use derive_more::Display;
use value::{Sought, Value};
use words::Operator;

/// Description of the language for people.
pub const LANGUAGE: &str = "\
A filter consists of tests; lines that match are shown. An empty filter shows all.

  word                  any text or address of the line contains it, or a number equals it
  2001:db8::/32         any address of the line is in the prefix (or is that address)
  column OP value       OP is = != < <= > >= or ~ (contains)
  column = none         the column is empty (!= none: it is not)
  a b    a and b        both; `and` may be left out
  a or b                at least one of them
  not a                 lines that do not match
  ( )                   grouping; `not` binds closest, then `and`, then `or`
  \"two words\"           a text with spaces or signs, or one that is part of the language

Columns are named as in --csv and --json; rate, peak, gap, ce, data, label are short for
rate_1s, rate_peak, gap_p50, ce_share, data_rate, flow_label.

Values depend on the column:
  numbers, QPs, labels  1000  10k  1.5M  0x1234
  rates, bits/s         100  2.5k  10G
  durations             45us  1.5ms  2s  (a number alone is nanoseconds)
  fractions, changes    10%  0.1  -50%
  addresses             10.0.0.1  10.0.0.0/8  2001:db8::/64
  kinds                 cnp  fast_cnp_1  fast_cnp_2  fast_cnp (either)  proxy_cn  wan_fcn
  severities            note < warning < error
  times                 2026-11-22T08:15:00Z, or nanoseconds since 1970

A test on an empty column fails, except !=. Case does not matter.

  kind=fast_cnp rate>100            gap_p50<50us or ce>10%
  qp=0x1234 sender=2001:db8::/64    10.0.0.0/8 not notifier=10.0.0.1
  severity>=warning what~fastcnp    change<-40% data>1G
";

/// Maximum length of a filter, in characters.
pub const MAX_LEN: usize = 1_000;

/// Maximum nesting depth of parentheses and `not`s.
pub const MAX_DEPTH: usize = 32;

/// A syntax error in a filter, with its position.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
#[display("at character {}: {what}", at + 1)]
pub struct FilterError {
    /// Number of characters before the error; the length of the filter if it ends too soon.
    pub at: usize,
    /// Expected or wrong element, and what to write.
    pub what: String,
}

impl std::error::Error for FilterError {}

/// A filter for the rows of one kind of table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    root: Option<Node>,
}

/// A test, or several combined. Neither list is empty.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    /// Any cell.
    Any(Sought),
    /// The cell of one column.
    Column {
        number: usize,
        operator: Operator,
        value: Value,
    },
}

impl Filter {
    /// Parses a filter for rows of the table `R`; an empty filter passes all.
    ///
    /// # Errors
    ///
    /// The filter is invalid; the error has the position and a suggestion.
    pub fn parse<R: Record>(text: &str) -> Result<Self, FilterError> {
        Self::parse_with::<R>(text, Rates::Latest)
    }

    /// Same, with `rate` short for one of `rates`.
    ///
    /// # Errors
    ///
    /// The filter is invalid; the error has the position and a suggestion.
    pub fn parse_with<R: Record>(text: &str, rates: Rates) -> Result<Self, FilterError> {
        parse::filter::<R>(text, rates).map(|root| Self { root })
    }

    /// Returns true if the result depends on the names of addresses.
    pub fn seeks_names(&self) -> bool {
        self.root.as_ref().is_some_and(Node::seeks_names)
    }

    /// Returns true if a row passes. Words also match addresses as they are shown: by name, or by
    /// mask.
    pub fn matches_shown<R: Record>(&self, record: &R, shown: &Formatter) -> bool {
        let shown = shown.alters_addresses().then_some(shown);
        let root = self.root.as_ref();
        root.is_none_or(|root| root.matches(record, shown))
    }
}

impl Node {
    fn seeks_names(&self) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(Self::seeks_names),
            Self::Not(node) => node.seeks_names(),
            Self::Any(sought) => matches!(sought, Sought::Text { .. }),
            Self::Column { operator, .. } => *operator == Operator::Contains,
        }
    }

    fn matches<R: Record>(&self, record: &R, shown: Option<&Formatter>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|node| node.matches(record, shown)),
            Self::Or(some) => some.iter().any(|node| node.matches(record, shown)),
            Self::Not(node) => !node.matches(record, shown),
            Self::Any(sought) => {
                (0..R::COLUMNS.len()).any(|number| sought.is_in(&record.cell(number), shown))
            }
            Self::Column {
                number,
                operator,
                value,
            } => value.compare(*operator, &record.cell(*number), shown),
        }
    }
}
