//! Makes text from the network or a file safe to show.

use std::borrow::Cow;

/// A text with every character replaced that a terminal would act on: control characters, and those that turn the direction
/// of writing round.
pub fn clean(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if text.chars().any(acts) {
        Cow::Owned(text.replace(acts, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
