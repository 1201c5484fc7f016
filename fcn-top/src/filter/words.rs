//! A filter cut into words, and where each of them begins.

use super::{FilterError, MAX_LEN};
use core::cmp::Ordering;

/// How a column is compared with a value.
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
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Is => "=",
            Self::IsNot => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Contains => "~",
        }
    }

    /// Whether it is a question of more or less.
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

/// A word of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Operator(Operator),
    /// A word as it stands there.
    Word(String),
    /// What stands between quotation marks: never part of the language.
    Quoted(String),
}

impl Token {
    /// What it looks like, for messages.
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

/// A word, and the characters before it.
pub(super) type Placed = (usize, Token);

/// What ends a word, apart from white space.
fn is_sign(c: char) -> bool {
    matches!(c, '(' | ')' | '=' | '!' | '<' | '>' | '~' | '"')
}

/// The words of a filter.
pub(super) fn cut(text: &str) -> Result<Vec<Placed>, FilterError> {
    // One look further than allowed is enough to know.
    if text.chars().take(MAX_LEN + 1).count() > MAX_LEN {
        return Err(FilterError {
            at: MAX_LEN,
            what: format!("a filter has {MAX_LEN} characters at most"),
        });
    }
    let mut tokens = Vec::new();
    let mut chars = text.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let equals = |chars: &mut std::iter::Peekable<_>| {
            chars.next_if(|(_, c): &(usize, char)| *c == '=').is_some()
        };
        let token = match c {
            c if c.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            '~' => Token::Operator(Operator::Contains),
            '=' => {
                equals(&mut chars);
                Token::Operator(Operator::Is)
            }
            '!' if equals(&mut chars) => Token::Operator(Operator::IsNot),
            '!' => Token::Not,
            '<' if equals(&mut chars) => Token::Operator(Operator::AtMost),
            '<' => Token::Operator(Operator::Less),
            '>' if equals(&mut chars) => Token::Operator(Operator::AtLeast),
            '>' => Token::Operator(Operator::More),
            '"' => {
                let mut quoted = String::new();
                loop {
                    match chars.next() {
                        Some((_, '"')) => break Token::Quoted(quoted),
                        Some((_, '\\')) if chars.peek().is_some() => {
                            quoted.extend(chars.next().map(|(_, c)| c));
                        }
                        Some((_, c)) => quoted.push(c),
                        None => {
                            return Err(FilterError {
                                at,
                                what: "the quotation mark is not closed".to_owned(),
                            });
                        }
                    }
                }
            }
            c => {
                let mut word = String::from(c);
                while let Some((_, c)) = chars.next_if(|(_, c)| !c.is_whitespace() && !is_sign(*c))
                {
                    word.push(c);
                }
                keyword(&word).unwrap_or(Token::Word(word))
            }
        };
        tokens.push((at, token));
    }
    Ok(tokens)
}

fn keyword(word: &str) -> Option<Token> {
    let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
    match word {
        word if is("and") || word == "&&" => Some(Token::And),
        word if is("or") || word == "||" => Some(Token::Or),
        _ if is("not") => Some(Token::Not),
        _ => None,
    }
}

/// A text for a message: not longer than a message bears.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 40;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
