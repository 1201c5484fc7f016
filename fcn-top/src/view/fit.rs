//! Fits text into a number of cells.

use crate::text::clean;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use unicode_width::UnicodeWidthStr;

/// Converts a number to a number of cells.
pub(super) fn cells(number: usize) -> u16 {
    number.try_into().unwrap_or(u16::MAX)
}

/// Returns the width of `text` in cells.
pub(super) fn width(text: &str) -> u16 {
    if text.is_ascii() {
        return cells(text.len());
    }
    cells(text.width())
}

/// Returns the longest start of `text` that fits into `room` cells.
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

/// Returns the longest end of `text` that fits into `room` cells.
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

/// Shortens `text` to at most `room` cells, with `…` in place of its end.
pub(super) fn end(text: &str, room: u16) -> Cow<'_, str> {
    cut(text, room, |room| format!("{}…", head(text, room)))
}

/// Shortens `text` to at most `room` cells, with `…` in place of its start.
pub(super) fn start(text: &str, room: u16) -> Cow<'_, str> {
    cut(text, room, |room| format!("…{}", tail(text, room)))
}

/// Shortens `text` to at most `room` cells if necessary, leaving one cell for `…`.
fn cut(text: &str, room: u16, cut: impl FnOnce(u16) -> String) -> Cow<'_, str> {
    match room {
        _ if width(text) <= room => Cow::Borrowed(text),
        0 => Cow::Borrowed(""),
        _ => Cow::Owned(cut(room - 1)),
    }
}

/// Separator of two ends.
const ARROW: &str = " → ";

/// Shortens `text` to at most `room` cells, `first` of them from its start and the others from its
/// end, with `…` between.
fn middle(text: &str, first: u16, room: u16) -> String {
    let last = room.saturating_sub(first + 1);
    format!("{}…{}", head(text, first), tail(text, last))
}

/// Shortens texts again that became equal when shortened, so that they differ if possible within
/// `room` cells; `whole` returns the full text.
pub(super) fn tell_apart(cuts: &mut [String], room: u16, whole: impl Fn(usize) -> String) {
    let mut alike: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, cut) in cuts.iter().enumerate().filter(|(_, cut)| cut.contains('…')) {
        alike.entry(cut).or_default().push(at);
    }
    let alike: Vec<_> = alike.into_values().filter(|all| all.len() > 1).collect();
    for all in alike {
        let texts: Vec<_> = all.iter().map(|at| whole(*at)).collect();
        let different = texts.iter().collect::<HashSet<_>>().len();
        if different == 1 {
            continue;
        }
        // Each of the two ends separately.
        let ends: Option<Vec<_>> = texts.iter().map(|text| text.split_once(ARROW)).collect();
        if let Some(ends) = ends {
            let room = room.saturating_sub(width(ARROW));
            let longest = ends.iter().map(|(_, to)| width(to)).max().unwrap_or(0);
            let second = longest.min(room / 2);
            let apart = |room: u16, end: &dyn Fn(usize) -> String| {
                let texts = (0..ends.len()).map(end);
                let mut cuts: Vec<_> = texts.map(|text| start(&text, room).into_owned()).collect();
                tell_apart(&mut cuts, room, end);
                cuts
            };
            let from = apart(room - second, &|at| ends[at].0.to_owned());
            let to = apart(second, &|at| ends[at].1.to_owned());
            for ((at, from), to) in all.into_iter().zip(from).zip(to) {
                cuts[at] = format!("{from}{ARROW}{to}");
            }
            continue;
        }
        // Equal parts of start and end first, then more of one or the other.
        let half = room / 2;
        let firsts = (half..room.saturating_sub(1)).chain((0..half).rev());
        let middles =
            firsts.map(|first| texts.iter().map(|text| middle(text, first, room)).collect());
        // If neither reaches the difference, show the part with the difference.
        let same = |text: &String| {
            let both = text.bytes().zip(texts[0].bytes());
            both.take_while(|(a, b)| a == b).count()
        };
        let from = texts.iter().skip(1).map(same).min().unwrap_or(0);
        let inner = |text: &String| {
            let rest = text.get(from..).unwrap_or_default();
            format!("…{}…", head(rest, room.saturating_sub(2)))
        };
        let inner = (room > 2).then(|| texts.iter().map(inner).collect());
        let mut others = middles.chain(inner);
        let differ = |other: &Vec<_>| other.iter().collect::<HashSet<_>>().len() == different;
        if let Some(other) = others.find(differ) {
            for (at, cut) in all.into_iter().zip(other) {
                cuts[at] = cut;
            }
        }
    }
}

/// Wraps `text` into lines of at most `room` cells, between words if possible.
pub(crate) fn wrapped(text: &str, room: u16) -> Vec<String> {
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
            // A character wider than the line is still taken, so that the loop ends.
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
    fn text_is_shortened_to_fit() {
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

    #[test]
    fn equal_looking_texts_are_shortened_differently() {
        let apart = |whole: &[&str], cut: fn(&str, u16) -> Cow<'_, str>, room| {
            let mut cuts: Vec<_> = (whole.iter())
                .map(|text| cut(text, room).into_owned())
                .collect();
            tell_apart(&mut cuts, room, |at| whole[at].to_owned());
            cuts
        };
        let ports = [
            "rack12-leaf-switch-01-port-7",
            "rack12-leaf-switch-02-port-7",
        ];
        assert_eq!(
            apart(&ports, end, 16),
            ["rack12-…1-port-7", "rack12-…2-port-7"]
        );
        let hosts = ["2001:db8:1::aaaa:17", "2001:db8:2::aaaa:17", "10.0.0.1"];
        assert_eq!(
            apart(&hosts, start, 10),
            ["…1::aaaa:…", "…2::aaaa:…", "10.0.0.1"]
        );
        let hosts = ["2001:db8:1:1:bb::aaaa:17", "2001:db8:2:1:bb::aaaa:17"];
        assert_eq!(
            apart(&hosts, start, 14),
            ["2001:db8:1…:17", "2001:db8:2…:17"]
        );
        let flows = [
            "2001:db8:1::aaaa:17 → 10.0.0.1",
            "2001:db8:2::aaaa:17 → 10.0.0.1",
        ];
        assert_eq!(
            apart(&flows, start, 20),
            ["…1::aaaa… → 10.0.0.1", "…2::aaaa… → 10.0.0.1"]
        );
        // Equal texts stay the same, and so do texts that no shortening can distinguish.
        assert_eq!(apart(&["abcdef"; 2], end, 4), ["abc…"; 2]);
        assert_eq!(apart(&["abcdefghi", "abcdxfghi"], end, 2), ["a…"; 2]);
    }

    proptest! {
        #[test]
        fn shortened_text_always_fits(text in "\\PC{0,40}", room in 0u16..50) {
            prop_assert!(width(&end(&text, room)) <= room);
            prop_assert!(width(&start(&text, room)) <= room);
            for line in wrapped(&text, room) {
                prop_assert!(width(&line) <= room.max(2));
            }
        }
    }
}
