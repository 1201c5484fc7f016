//! Tokenizer: splits a filter into tokens with their positions.

use super::{FilterError, MAX_LEN};
use crate::text::clean;
use core::cmp::Ordering;

/// Operator symbols, preferred spelling first.
const SIGNS: [(&str, Operator); 8] = [
    ("=", Operator::Is),
    ("==", Operator::Is),
    ("!=", Operator::IsNot),
    ("<", Operator::Less),
    ("<=", Operator::AtMost),
    (">", Operator::More),
    (">=", Operator::AtLeast),
    ("~", Operator::Contains),
];

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Is,
    IsNot,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        let mut signs = SIGNS.iter();
        signs
            .find(|(_, is)| *is == self)
            .map_or("", |(sign, _)| sign)
    }

    /// Returns true if it compares magnitudes.
    pub(super) const fn is_order(self) -> bool {
        matches!(self, Self::Less | Self::AtMost | Self::More | Self::AtLeast)
    }

    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Is | Self::Contains => ordering.is_eq(),
            Self::IsNot => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::More => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Operator(Operator),
    /// An unquoted word.
    Word(String),
    /// A quoted text: never a keyword.
    Quoted(String),
}

impl Token {
    /// Returns its spelling, for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
            Self::And => "and".to_owned(),
            Self::Or => "or".to_owned(),
            Self::Not => "not".to_owned(),
            Self::Operator(operator) => operator.sign().to_owned(),
            Self::Word(text) | Self::Quoted(text) => short(text),
        }
    }
}

/// A token, and the number of characters before it.
pub(super) type Placed = (usize, Token);

/// Returns true for characters other than white space that end a word.
fn is_sign(c: char) -> bool {
    matches!(c, '(' | ')' | '=' | '!' | '<' | '>' | '~' | '"')
}

/// Splits a filter into tokens.
pub(super) fn cut(text: &str) -> Result<Vec<Placed>, FilterError> {
    // Counting one character beyond the limit is enough.
    if text.chars().take(MAX_LEN + 1).count() > MAX_LEN {
        return Err(FilterError {
            at: MAX_LEN,
            what: format!("a filter has at most {MAX_LEN} characters"),
        });
    }
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.chars().count() - rest.chars().count();
        let signs = SIGNS.iter().filter(|(sign, _)| rest.starts_with(sign));
        let (token, len) = match (signs.max_by_key(|(sign, _)| sign.len()), first) {
            (Some((sign, operator)), _) => (Token::Operator(*operator), sign.len()),
            (None, '(') => (Token::Open, 1),
            (None, ')') => (Token::Close, 1),
            (None, '!') => (Token::Not, 1),
            (None, '"') => quoted(rest).ok_or_else(|| FilterError {
                at,
                what: "the quotation mark is not closed".to_owned(),
            })?,
            _ => {
                let len = rest.find(|c: char| c.is_whitespace() || is_sign(c));
                let word = rest.get(..len.unwrap_or(rest.len())).unwrap_or(rest);
                let token = match word.to_ascii_lowercase().as_str() {
                    "and" | "&&" => Token::And,
                    "or" | "||" => Token::Or,
                    "not" => Token::Not,
                    _ => Token::Word(word.to_owned()),
                };
                (token, word.len())
            }
        };
        tokens.push((at, token));
        rest = rest.get(len..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

/// Returns the quoted text at the start of `rest`, and the offset of its end.
fn quoted(rest: &str) -> Option<(Token, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    loop {
        match chars.next()? {
            (at, '"') => return Some((Token::Quoted(text), at + 1)),
            (_, '\\') => text.push(chars.next()?.1),
            (_, c) => text.push(c),
        }
    }
}

/// Shortens a text for a message.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 40;
    let mut short: String = clean(text).chars().take(MOST).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
