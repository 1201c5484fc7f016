//! The filter language: which rows of a table are shown, on the screen's filter line and for `--where`.
//!
//! `words.rs` cuts a filter into words, `parse.rs` makes a tree of tests of them, `value.rs` has what a single test compares
//! with, `numbers.rs` how numbers are written. The language is told in [`LANGUAGE`].

mod numbers;
mod parse;
#[cfg(test)]
mod tests;
mod value;
mod words;

use crate::columns::Rates;
use crate::record::Record;
use crate::text::Words;
use derive_more::Display;
use value::{Sought, Value};
use words::Operator;

/// The language, for people.
pub const LANGUAGE: &str = "\
A filter is made of tests; lines that pass are shown. Nothing written shows all.

  word                  any text or address of the line contains it, or a number is it
  2001:db8::/32         any address of the line is in the prefix (or is that address)
  column OP value       OP is = != < <= > >= or ~ (contains)
  column = none         there is nothing in the column (!= none: there is something)
  a b    a and b        both; `and` may be left out
  a or b                one of them at least
  not a                 the other lines
  ( )                   what belongs together; `not` binds closest, then `and`, then `or`
  \"two words\"           a text with spaces or signs, or one that reads like a part of the language

Columns are named as in --csv and --json; rate, peak, gap, ce, data, label are short for
rate_1s, rate_peak, gap_p50, ce_share, data_rate, flow_label.

Values are written as the column needs them:
  numbers, QPs, labels  1000  10k  1.5M  0x1234
  rates, bits a second  100  2.5k  10G
  times between         45us  1.5ms  2s  (a number alone is nanoseconds)
  parts and changes     10%  0.1  -50%
  addresses             10.0.0.1  10.0.0.0/8  2001:db8::/64
  kinds                 cnp  fast_cnp_1  fast_cnp_2  fast_cnp (either)  proxy_cn  wan_fcn
  severities            note < warning < error
  moments               2026-11-22T08:15:00Z, or nanoseconds since 1970

A test on a column that has nothing for a line fails, but != passes. Case does not matter.

  kind=fast_cnp rate>100            gap_p50<50us or ce>10%
  qp=0x1234 sender=2001:db8::/64    10.0.0.0/8 not notifier=10.0.0.1
  severity>=warning what~fastcnp    change<-40% data>1G
";

/// Characters that a filter may have.
pub const MAX_LEN: usize = 1_000;

/// How deep parentheses and `not`s may nest.
pub const MAX_DEPTH: usize = 32;

/// What is wrong with a filter, and where.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
#[display("at character {}: {what}", at + 1)]
pub struct FilterError {
    /// Characters before the place; the number of all of them where the filter ends too soon.
    pub at: usize,
    /// What was expected there, or what is wrong with it, and what to write.
    pub what: String,
}

impl std::error::Error for FilterError {}

/// Which lines of one kind of table are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    root: Option<Node>,
}

/// A test, or several put together. Neither list is empty.
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
    /// Reads a filter for lines of the table `R`; one with nothing in it passes all.
    ///
    /// # Errors
    /// It is none: the place, and what to write there.
    pub fn parse<R: Record>(text: &str) -> Result<Self, FilterError> {
        Self::parse_with::<R>(text, Rates::Latest)
    }

    /// The same, where `rate` is short for one of `rates`.
    ///
    /// # Errors
    /// It is none: the place, and what to write there.
    pub fn parse_with<R: Record>(text: &str, rates: Rates) -> Result<Self, FilterError> {
        parse::filter::<R>(text, rates).map(|root| Self { root })
    }

    /// Whether what passes depends on the names of addresses, where they have some.
    pub fn seeks_names(&self) -> bool {
        self.root.as_ref().is_some_and(Node::seeks_names)
    }

    /// Whether a line passes. Words also find addresses as they are shown: by their name, or what they are masked with.
    pub fn matches_shown<R: Record>(&self, record: &R, shown: &Words) -> bool {
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

    fn matches<R: Record>(&self, record: &R, shown: Option<&Words>) -> bool {
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
