//! Fits text into a number of cells.

use crate::text::clean;
use ratatui::text::Span;
use std::borrow::Cow;

/// So many as a number of cells.
pub(super) fn cells(number: usize) -> u16 {
    number.try_into().unwrap_or(u16::MAX)
}

/// Cells that `text` takes.
pub(super) fn width(text: &str) -> u16 {
    if text.is_ascii() {
        return cells(text.len());
    }
    cells(Span::raw(text).width())
}

/// As much of the beginning as has room in `room` cells.
fn head(text: &str, room: u16) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            return &text[..at];
        }
    }
    text
}

/// As much of the end as has room in `room` cells.
fn tail(text: &str, room: u16) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// `text` in at most `room` cells, with `…` for what is left out at its end.
pub(super) fn end(text: &str, room: u16) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    match room {
        0 => Cow::Borrowed(""),
        _ => Cow::Owned(format!("{}…", head(text, room - 1))),
    }
}

/// `text` in at most `room` cells, with `…` for what is left out at its beginning.
pub(super) fn start(text: &str, room: u16) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    match room {
        0 => Cow::Borrowed(""),
        _ => Cow::Owned(format!("…{}", tail(text, room - 1))),
    }
}

/// `text` in lines of at most `room` cells, broken between words where that can be.
pub(super) fn wrapped(text: &str, room: u16) -> Vec<String> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > room && line.is_empty() {
            let first = head(word, room);
            // A character wider than the line is still taken, so that this comes to an end.
            let at = if first.is_empty() {
                word.chars().next().map_or(0, char::len_utf8)
            } else {
                first.len()
            };
            lines.push(word[..at].to_owned());
            word = &word[at..];
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_shortened_where_it_may_be() {
        assert_eq!(end("abcdef", 6), "abcdef");
        assert_eq!(end("abcdef", 4), "abc…");
        assert_eq!(end("abcdef", 0), "");
        assert_eq!(start("2001:db8:0:1::a1", 16), "2001:db8:0:1::a1");
        assert_eq!(start("2001:db8:0:1::a1", 12), "…db8:0:1::a1");
        assert_eq!(start("abcdef", 0), "");
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    proptest! {
        #[test]
        fn it_always_fits(text in "\\PC{0,40}", room in 0u16..50) {
            prop_assert!(width(&end(&text, room)) <= room);
            prop_assert!(width(&start(&text, room)) <= room);
            for line in wrapped(&text, room) {
                prop_assert!(width(&line) <= room.max(2));
            }
        }
    }
}
