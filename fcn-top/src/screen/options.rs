//! How a screen begins.

use super::View;
use std::time::Duration;

/// Which colours are used; backgrounds are never painted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Those that can be read on dark and light; modifiers alone where `NO_COLOR` is set.
    #[default]
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// None: bold, dim, underlined and reversed only.
    None,
}

/// How a screen begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a picture stands, at most.
    pub refresh: Duration,
    /// The view that it begins with.
    pub view: View,
    /// Order of that view's table, such as `-rate_1s`; empty for the usual one.
    pub order: String,
    /// Filter of that view's table; empty for none.
    pub filter: String,
    /// Columns of that view's table by their ids; empty for the usual ones.
    pub columns: Vec<String>,
    /// Which colours are used.
    pub colours: Colours,
    /// Whether the mouse is listened to (the terminal's own selecting then needs Shift).
    pub mouse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            refresh: Duration::from_millis(250),
            view: View::Qps,
            order: String::new(),
            filter: String::new(),
            columns: Vec::new(),
            colours: Colours::Auto,
            mouse: true,
        }
    }
}
