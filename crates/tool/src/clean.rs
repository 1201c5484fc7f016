//! Makes text from the network or a file safe to show.

use std::borrow::Cow;

/// Replaces every character that a terminal would act on: control characters, and those that change
/// the direction of text.
pub fn clean(text: &str) -> Cow<'_, str> {
    without(text, acts)
}

/// Does the same for a text of several lines.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    without(text, |c| c != '\n' && acts(c))
}

fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn without(text: &str, bad: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if text.chars().any(bad) {
        Cow::Owned(text.replace(bad, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
