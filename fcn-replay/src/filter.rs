//! The filter in libpcap's language, compiled for each link type of the capture, and the position
//! of errors in it.

use fcn_tool::failure::{Failure, Result};
use pcap::{BpfProgram, Capture, Linktype};
use rustc_hash::FxHashMap;

/// A filter in libpcap's language.
pub struct Filter {
    text: String,
    /// Compiled programs by link type number in the file.
    programs: FxHashMap<u32, BpfProgram>,
}

impl Filter {
    /// Creates a filter that is not yet compiled.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            programs: FxHashMap::default(),
        }
    }

    /// Returns true if a packet of the link type with this number in its file matches.
    ///
    /// # Errors
    /// The filter is invalid, or not supported for this link type.
    #[inline]
    pub fn matches(&mut self, link_number: u32, packet: &[u8]) -> Result<bool> {
        if !self.programs.contains_key(&link_number) {
            self.prepare(link_number)?;
        }
        Ok(self
            .programs
            .get(&link_number)
            .is_some_and(|program| program.filter(packet)))
    }

    /// Compiles the filter for a link type.
    ///
    /// # Errors
    /// As for [`matches`](Self::matches).
    #[cold]
    pub fn prepare(&mut self, link_number: u32) -> Result {
        let program = compile(link_number, &self.text).map_err(|message| {
            let failure = Failure::usage("--filter").and(message.clone());
            match mistake(link_number, &self.text, &message) {
                Some((column, word)) => failure.and(format!("at column {column}, `{word}`")),
                None => failure.and(format!("at its end, column {}", end(&self.text))),
            }
        })?;
        self.programs.insert(link_number, program);
        Ok(())
    }
}

/// Compiles a filter, or returns libpcap's error message.
fn compile(link_number: u32, text: &str) -> std::result::Result<BpfProgram, String> {
    let text_of = |error: pcap::Error| match error {
        pcap::Error::PcapError(text) => text,
        other => other.to_string(),
    };
    Capture::dead(Linktype(dlt(link_number)))
        .and_then(|capture| capture.compile(text, true))
        .map_err(text_of)
}

/// Returns libpcap's own number of a link type whose number in files is different.
fn dlt(link_number: u32) -> i32 {
    match link_number {
        101 => 12,
        other => i32::try_from(other).unwrap_or(i32::MAX),
    }
}

/// Texts that may complete the beginning of a filter.
const REST: [&str; 15] = [
    "",
    " ip",
    " 1",
    " 10.0.0.1",
    " net 10.0.0.0/8",
    " host 10.0.0.1",
    " port 1",
    " 00:00:00:00:00:01",
    " fe80::1",
    " proto 17",
    " = 1",
    "0] = 1",
    ":1] = 1",
    "] = 1",
    "-2",
];

/// Returns the column (from 1) and the word of the first error; `None` if the filter ends too soon.
/// libpcap does not report the position. The word is the one that it names, otherwise the first one
/// after which no text completes the filter.
fn mistake<'t>(link_number: u32, text: &'t str, message: &str) -> Option<(usize, &'t str)> {
    let column = |at: usize| {
        text.get(..at)
            .map_or(1, |before| before.chars().count() + 1)
    };
    let named = message
        .split(['\'', '"'])
        .nth(1)
        .filter(|word| !word.is_empty());
    if let Some(at) = named.and_then(|word| text.find(word)) {
        let word = named.unwrap_or_default();
        return Some((column(at), text.get(at..at + word.len())?));
    }
    let may_go_on = |start: &str| {
        let open = start.matches('(').count();
        let close = ")".repeat(open.saturating_sub(start.matches(')').count()));
        REST.iter()
            .any(|rest| compile(link_number, &format!("{start}{rest}{close}")).is_ok())
    };
    words(text)
        .find(|(at, word)| {
            text.get(..at + word.len())
                .is_some_and(|start| !may_go_on(start))
        })
        .map(|(at, word)| (column(at), word))
}

/// Iterates over the words of a filter and their positions: text between spaces, split at
/// parentheses and brackets.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive([' ', '(', ')', '[', ']'])
        .scan(0, |at, piece| {
            let start = *at;
            *at += piece.len();
            Some((start, piece.trim()))
        })
        .filter(|(_, word)| !word.is_empty())
}

fn end(text: &str) -> usize {
    text.chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> String {
        let failure = Filter::new(text).prepare(1).unwrap_err();
        assert_eq!(failure.exit().code(), 2);
        failure.to_string()
    }

    #[test]
    fn a_filter_matches() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[23] = 17;
        let mut filter = Filter::new("udp");
        assert!(filter.matches(1, &frame).unwrap());
        frame[23] = 6;
        assert!(!filter.matches(1, &frame).unwrap());
        // Without an Ethernet header, with the number that files have for that.
        frame[23] = 17;
        assert!(filter.matches(101, &frame[14..]).unwrap());
        assert!(!filter.matches(101, &frame).unwrap());
        assert!(Filter::new("").matches(1, &frame).unwrap());
    }

    #[test]
    fn errors_are_reported_with_their_position() {
        for (text, place) in [
            ("udp prt 4791", "at column 5, `prt`"),
            ("udp and ) ip", "at column 9, `)`"),
            ("ip and (udp or tcp))", "at column 20, `)`"),
            ("ip host 10.0.0.1 port 5", "at column 18, `port`"),
            ("udp and", "at its end, column 8"),
            ("(udp", "at its end, column 5"),
            ("port no-such-port", "at column 6, `no-such-port`"),
        ] {
            let message = failure(text);
            assert!(message.starts_with("--filter: "), "{message}");
            assert!(message.ends_with(place), "{text}: {message}");
        }
    }

    #[test]
    fn nothing_that_is_written_panics() {
        for text in [
            "\0", "é é é", "((((((", "ether[", "[", "'", "\"\"", "\u{2003}",
        ] {
            let _ = Filter::new(text).prepare(1);
        }
    }
}
