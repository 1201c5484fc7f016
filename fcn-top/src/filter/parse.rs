//! Parser: builds the tree of tests of a filter.

use super::value::{Sought, Value};
use super::words::Operator;
use super::words::{Placed, Token, cut};
use super::{FilterError, MAX_DEPTH, Node};
use crate::columns::{self, Rates};
use crate::record::Record;

/// Parses a filter; `None` if it is empty.
pub(super) fn filter<R: Record>(text: &str, rates: Rates) -> Result<Option<Node>, FilterError> {
    let tokens = cut(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut parser = Parser {
        tokens: &tokens,
        end: text.chars().count(),
        depth: 0,
        rates,
    };
    let node = parser.either::<R>()?;
    match parser.tokens.first() {
        None => Ok(Some(node)),
        Some((at, token)) => Err(FilterError {
            at: *at,
            what: match token {
                Token::Close => "`)` without `(`".to_owned(),
                token => test_expected(Some(token)),
            },
        }),
    }
}

fn test_expected(found: Option<&Token>) -> String {
    let expected = "expected a test: a word, an address, or a column with a value";
    match found {
        Some(token) => format!("{expected}, not `{}`", token.shown()),
        None => expected.to_owned(),
    }
}

struct Parser<'t> {
    /// Tokens not yet consumed.
    tokens: &'t [Placed],
    /// Length of the filter, in characters.
    end: usize,
    depth: usize,
    /// Meaning of `rate`.
    rates: Rates,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.first().map(|(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |(at, _)| *at)
    }

    fn next(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(&first.1)
    }

    fn fails<T>(&self, what: String) -> Result<T, FilterError> {
        Err(FilterError {
            at: self.at(),
            what,
        })
    }

    /// Parses tests separated by `or`.
    fn either<R: Record>(&mut self) -> Result<Node, FilterError> {
        let mut nodes = Vec::new();
        loop {
            // `(a or b) or c` is `a or b or c`.
            match self.both::<R>()? {
                Node::Or(inner) => nodes.extend(inner),
                node => nodes.push(node),
            }
            if self.peek() != Some(&Token::Or) {
                return Ok(one_or(nodes, Node::Or));
            }
            self.next();
        }
    }

    /// Parses tests joined by `and`, or by nothing.
    fn both<R: Record>(&mut self) -> Result<Node, FilterError> {
        let mut nodes = Vec::new();
        loop {
            match self.single::<R>()? {
                Node::And(inner) => nodes.extend(inner),
                node => nodes.push(node),
            }
            match self.peek() {
                Some(Token::And) => {
                    self.next();
                }
                None | Some(Token::Or | Token::Close | Token::Operator(_)) => {
                    return Ok(one_or(nodes, Node::And));
                }
                Some(_) => {}
            }
        }
    }

    /// Enters one more level of nesting, if allowed.
    fn deeper(&mut self) -> Result<(), FilterError> {
        if self.depth >= MAX_DEPTH {
            return self.fails(format!(
                "parentheses and `not`s may be nested at most {MAX_DEPTH} deep"
            ));
        }
        self.depth += 1;
        Ok(())
    }

    fn single<R: Record>(&mut self) -> Result<Node, FilterError> {
        let at = self.at();
        match self.peek() {
            Some(Token::Not) => {
                self.deeper()?;
                self.next();
                let node = self.single::<R>()?;
                self.depth -= 1;
                Ok(Node::Not(Box::new(node)))
            }
            Some(Token::Open) => {
                self.deeper()?;
                self.next();
                let node = self.either::<R>()?;
                match self.peek() {
                    Some(Token::Close) => self.next(),
                    Some(token) => return self.fails(test_expected(Some(token))),
                    None => return self.fails("expected `)`".to_owned()),
                };
                self.depth -= 1;
                Ok(node)
            }
            Some(Token::Word(word)) => {
                self.next();
                match self.peek() {
                    Some(Token::Operator(operator)) => self.column::<R>(at, word, *operator),
                    _ => match Sought::word(word) {
                        Ok(sought) => Ok(Node::Any(sought)),
                        Err(what) => Err(FilterError { at, what }),
                    },
                }
            }
            Some(Token::Quoted(text)) => {
                self.next();
                Ok(Node::Any(Sought::text(text, None)))
            }
            found => self.fails(test_expected(found)),
        }
    }

    /// Parses the rest of a column test, starting with its operator.
    fn column<R: Record>(
        &mut self,
        at: usize,
        name: &str,
        operator: Operator,
    ) -> Result<Node, FilterError> {
        let number =
            columns::named::<R>(name, self.rates).map_err(|what| FilterError { at, what })?;
        let column = &R::COLUMNS[number];
        Value::allows(column, operator).or_else(|what| self.fails(what))?;
        self.next();
        let value = match self.peek() {
            Some(Token::Word(word)) => Value::read(column, operator, word),
            Some(Token::Quoted(text)) => Value::quoted(column, operator, text),
            found => Err(Value::expected(column, found.map(Token::shown).as_deref())),
        }
        .or_else(|what| self.fails(what))?;
        self.next();
        Ok(Node::Column {
            number,
            operator,
            value,
        })
    }
}

/// Returns the only node, or all of them combined.
fn one_or(mut nodes: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    match (nodes.pop(), nodes.is_empty()) {
        (Some(node), true) => node,
        (last, _) => {
            nodes.extend(last);
            several(nodes)
        }
    }
}
