//! Values of tests: parsing them as a column requires, and comparing.

use super::numbers::{moment, part, scaled, span, whole};
use super::words::{Operator, short};
use crate::columns::{near, unknown};
use crate::order::rank;
use crate::record::{Cell, Column, Holds, Maker};
use crate::text::Formatter;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Kind, Origin, Severity};
use std::net::IpAddr;

/// A value searched in all columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sought {
    Prefix(Prefix),
    Text {
        /// In lower case.
        text: String,
        /// Its numeric value, if it is not quoted.
        number: Option<u64>,
    },
}

impl Sought {
    /// Parses a word that stands alone: an address, a prefix, or a text.
    pub(super) fn word(word: &str) -> Result<Self, String> {
        if let Ok(prefix) = word.parse() {
            return Ok(Self::Prefix(prefix));
        }
        // An address followed by a length is meant as a prefix.
        if let Some((address, _)) = word.split_once('/')
            && address.parse::<IpAddr>().is_ok()
        {
            return Err(format!(
                "`{}` is not a valid prefix: write 10.0.0.0/8 or 2001:db8::/32",
                short(word)
            ));
        }
        let number = whole(&word.to_lowercase()).ok();
        Ok(Self::text(word, number))
    }

    pub(super) fn text(text: &str, number: Option<u64>) -> Self {
        let text = text.to_lowercase();
        Self::Text { text, number }
    }

    /// Returns true if a cell contains it.
    pub(super) fn is_in(&self, cell: &Cell<'_>, shown: Option<&Formatter>) -> bool {
        match (self, cell) {
            (Self::Prefix(prefix), Cell::Address(address)) => prefix.contains(*address),
            (Self::Prefix(_), _) => false,
            (
                &Self::Text {
                    number: Some(number),
                    ..
                },
                &Cell::Count(count),
            ) => number == count,
            (Self::Text { text, .. }, cell) => contains(cell, text, shown),
        }
    }
}

/// A value that a column is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// The empty cell.
    Nothing,
    /// A name or text in lower case.
    Text(String),
    /// Either kind of Fast CNP.
    AnyFastCnp,
    Prefix(Prefix),
    Whole(u64),
    Number(f64),
}

impl Value {
    /// Checks that a column supports an operator.
    pub(super) fn allows(column: &Column, operator: Operator) -> Result<(), String> {
        let what = match column.holds {
            Holds::Name if column.id == "severity" => return Ok(()),
            Holds::Name if column.id == "kind" => "kinds",
            Holds::Name => "names",
            Holds::Text => "texts",
            Holds::Address => "addresses",
            _ if operator == Operator::Contains => {
                return Err(
                    "`~` is for texts, names and addresses; here write = != < <= > >=".to_owned(),
                );
            }
            _ => return Ok(()),
        };
        if operator.is_order() {
            return Err(format!("{what} have no order; write = != or ~"));
        }
        Ok(())
    }

    /// Error text: the value a column expects, and the one found, if any.
    pub(super) fn expected(column: &Column, found: Option<&str>) -> String {
        let (what, how) = needs(column.holds);
        let colon = if how.is_empty() { "" } else { ": " };
        let found = found.map_or_else(String::new, |found| format!(", not `{found}`"));
        format!("expected {what}{colon}{how}{found}")
    }

    /// Parses a quoted text, which is neither `none` nor an alias.
    pub(super) fn quoted(column: &Column, operator: Operator, text: &str) -> Result<Self, String> {
        match column.holds {
            Holds::Text | Holds::Name => Ok(Self::Text(text.to_lowercase())),
            Holds::Address if operator == Operator::Contains => Ok(Self::Text(text.to_lowercase())),
            _ => Self::read(column, operator, text),
        }
    }

    /// Parses a word.
    pub(super) fn read(column: &Column, operator: Operator, word: &str) -> Result<Self, String> {
        let lower = word.to_lowercase();
        if lower == "none" && matches!(operator, Operator::Is | Operator::IsNot) {
            return Ok(Self::Nothing);
        }
        let (what, how) = needs(column.holds);
        let noun = what.split_once(' ').map_or(what, |(_, noun)| noun);
        let wrong = || format!("`{}` is not a valid {noun}: write {how}", short(word));
        if operator == Operator::Contains {
            return Ok(Self::Text(lower));
        }
        let number =
            |read: fn(&str) -> Option<f64>| read(&lower).map(Self::Number).ok_or_else(wrong);
        match column.holds {
            Holds::Text => Ok(Self::Text(lower)),
            Holds::Name
                if column.id == "kind" && ["fast_cnp", "fastcnp"].contains(&lower.as_str()) =>
            {
                Ok(Self::AnyFastCnp)
            }
            Holds::Name => known(column, lower).map(Self::Text),
            Holds::Address => word.parse().map(Self::Prefix).map_err(|_| wrong()),
            Holds::Count | Holds::Number | Holds::Qp | Holds::Label => {
                whole(&lower).map(Self::Whole).map_err(|()| wrong())
            }
            Holds::Rate | Holds::Bits => number(scaled),
            Holds::Share | Holds::Change => number(part),
            Holds::Span => span(&lower).map(Self::Whole).ok_or_else(wrong),
            Holds::Moment => moment(word).map(Self::Whole).ok_or_else(wrong),
        }
    }

    /// Returns true if a cell compares with it as the operator requires.
    pub(super) fn compare(
        &self,
        operator: Operator,
        cell: &Cell<'_>,
        shown: Option<&Formatter>,
    ) -> bool {
        let is = |yes: bool| yes == (operator != Operator::IsNot);
        match (self, cell) {
            (Self::Nothing, cell) => is(*cell == Cell::None),
            (_, Cell::None) => operator == Operator::IsNot,
            (Self::Text(text), cell) if operator == Operator::Contains => {
                contains(cell, text, shown)
            }
            (Self::Text(text), Cell::Name(name)) if operator.is_order() => {
                operator.holds(rank(name).cmp(&rank(text)))
            }
            (Self::Text(text), Cell::Name(name) | Cell::Text(name)) => {
                let same = name.eq_ignore_ascii_case(text)
                    || (!name.is_ascii() && name.to_lowercase() == *text);
                is(same)
            }
            (Self::Text(text), Cell::Evidence(evidence)) => {
                is(evidence.to_string().eq_ignore_ascii_case(text))
            }
            (Self::AnyFastCnp, Cell::Name(name)) => {
                is([Kind::FastCnp1.id(), Kind::FastCnp2.id()].contains(name))
            }
            (Self::Prefix(prefix), Cell::Address(address)) => is(prefix.contains(*address)),
            (Self::Whole(value), Cell::Count(cell) | Cell::Span(cell) | Cell::Moment(cell)) => {
                operator.holds(cell.cmp(value))
            }
            (
                Self::Number(value),
                Cell::Rate(cell) | Cell::Bits(cell) | Cell::Share(cell) | Cell::Change(cell),
            ) => cell
                .partial_cmp(value)
                .is_some_and(|ordering| operator.holds(ordering)),
            // The parser creates no other combinations.
            _ => false,
        }
    }
}

/// Describes the values accepted by a column of that type.
const fn needs(holds: Holds) -> (&'static str, &'static str) {
    match holds {
        Holds::Name => ("a name", ""),
        Holds::Text => ("a text", ""),
        Holds::Address => ("an address", "10.0.0.1, 10.0.0.0/8 or 2001:db8::/32"),
        Holds::Count | Holds::Number | Holds::Qp | Holds::Label => {
            ("a whole number", "1000, 10k or 0x1234")
        }
        Holds::Rate | Holds::Bits => ("a rate", "100, 2.5k or 10G"),
        Holds::Share => ("a fraction", "10% or 0.1"),
        Holds::Change => ("a change", "-50%, 20% or -0.5"),
        Holds::Span => ("a duration", "45us, 1.5ms or 2s"),
        Holds::Moment => ("a time", "2026-11-22T08:15:00Z"),
    }
}

/// Checks a name against the known names of its column, if these are limited.
fn known(column: &Column, name: String) -> Result<String, String> {
    let (what, names) = match column.id {
        "kind" => {
            let kinds = Kind::ALL.iter().map(|kind| kind.id());
            ("kind", kinds.chain(["fast_cnp"]).collect())
        }
        "severity" => ("severity", Severity::ALL.map(Severity::id).to_vec()),
        "made_by" => ("maker", Maker::ALL.map(Maker::id).to_vec()),
        "notifier_role" => ("role", Origin::ALL.map(Origin::id).to_vec()),
        "qp_side" => ("side", vec!["sender", "receiver"]),
        "trusted" => ("answer", vec!["yes", "no"]),
        _ => return Ok(name),
    };
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    let near = near(&name, names.iter().copied());
    Err(unknown(what, &short(&name), near, &names))
}

/// Returns true if the text of a cell contains `text`, which is in lower case.
fn contains(cell: &Cell<'_>, text: &str, shown: Option<&Formatter>) -> bool {
    match cell {
        Cell::Name(cell) | Cell::Text(cell) => contains_lower(cell, text),
        Cell::Evidence(evidence) => contains_lower(&evidence.to_string(), text),
        Cell::Address(address) => {
            // Most words cannot be part of an address, so formatting it is avoided.
            let may_be = text
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
            may_be && contains_lower(&address.to_string(), text)
                || shown.is_some_and(|words| contains_lower(&words.address(*address), text))
        }
        _ => false,
    }
}

/// Returns true if `text` contains `lower`, ignoring case.
fn contains_lower(text: &str, lower: &str) -> bool {
    if text.is_ascii() {
        // The usual case, without a copy.
        let (text, lower) = (text.as_bytes(), lower.as_bytes());
        return lower.is_empty()
            || text
                .windows(lower.len())
                .any(|part| part.eq_ignore_ascii_case(lower));
    }
    text.to_lowercase().contains(lower)
}
