//! Description of the part of the input that was processed, if not all of it.

use crate::text::span;
use fcn_tool::quantity::counted;
use std::fmt::Write as _;

/// Restrictions of the input.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// A filter in tcpdump's syntax, which Wireshark's display filters do not support.
    pub filter: Option<String>,
    /// Interfaces of a file, by name or number.
    pub interfaces: Vec<String>,
    /// True if that filter and those interfaces are not shown, because they may contain an address
    /// in any spelling.
    pub private: bool,
    /// Limit of packets.
    pub count: Option<u64>,
    /// Limit of time, in nanoseconds.
    pub span: Option<u64>,
    /// Number of the last processed packet, if a limit was reached.
    pub last_frame: Option<u64>,
}

impl Part {
    /// Describes the part; `None` if it is everything.
    pub fn words(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(count) = self.count {
            parts.push(format!("the first {}", counted(count, "packet")));
        }
        if let Some(span_of) = self.span {
            parts.push(format!("the first {}", span(span_of)));
        }
        let shown = |text: String| if self.private { "…".to_owned() } else { text };
        if !self.interfaces.is_empty() {
            parts.push(format!("interface {}", shown(self.interfaces.join(", "))));
        }
        if let Some(filter) = &self.filter {
            let filter = shown(filter.clone());
            parts.push(format!("packets that match “{filter}”"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the continuation of a Wireshark display filter that limits it to this part, as far
    /// as expressible.
    pub fn display_filter(&self) -> String {
        let mut filter = String::new();
        if let Some(last) = self.last_frame {
            let _ = write!(filter, " && frame.number <= {last}");
        }
        let interfaces = self.interfaces.iter().filter(|_| !self.private);
        let each = interfaces.map(|interface| match interface.parse::<u32>() {
            Ok(number) => format!("frame.interface_id == {number}"),
            Err(_) => format!("frame.interface_name == {}", quoted(interface)),
        });
        let each: Vec<_> = each.collect();
        if !each.is_empty() {
            let _ = write!(filter, " && ({})", each.join(" || "));
        }
        filter
    }

    /// Returns true if the first copy of a packet is also the first in Wireshark, which processes
    /// all interfaces.
    pub fn has_first_copies(&self) -> bool {
        self.interfaces.len() != 1
    }

    /// Returns true if a display filter may find more or fewer packets in the whole input:
    /// Wireshark evaluates neither a filter in tcpdump's syntax nor which copy of a packet is the
    /// first on some of the interfaces, and interfaces that are not shown cannot be in the filter.
    pub fn differs(&self) -> bool {
        let most = if self.private { 0 } else { 1 };
        self.filter.is_some() || self.interfaces.len() > most
    }
}

/// Quotes a text for a display filter.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_input_has_no_restriction() {
        let part = Part::default();
        assert_eq!((part.words(), part.display_filter()), (None, String::new()));
        assert!(!part.differs());
    }

    #[test]
    fn a_part_is_described_and_filtered() {
        let part = Part {
            filter: Some("host 192.0.2.1".to_owned()),
            interfaces: vec!["leaf\"1".to_owned(), "3".to_owned()],
            count: Some(1_000),
            span: Some(2_000_000_000),
            last_frame: Some(1_234),
            ..Part::default()
        };
        assert_eq!(
            part.words().unwrap(),
            "the first 1,000 packets; the first 2.00 s; interface leaf\"1, 3; packets that match “host 192.0.2.1”"
        );
        assert_eq!(
            part.display_filter(),
            " && frame.number <= 1234 && (frame.interface_name == \"leaf\\\"1\" || frame.interface_id == 3)"
        );
        assert!(part.differs());
        let part = Part {
            private: true,
            filter: None,
            interfaces: vec!["vx-c0a80001".to_owned()],
            ..part
        };
        assert!(part.differs());
        assert_eq!(part.display_filter(), " && frame.number <= 1234");
        let part = Part {
            filter: Some("host 192.0.2.1".to_owned()),
            ..part
        };
        assert_eq!(
            part.words().unwrap(),
            "the first 1,000 packets; the first 2.00 s; interface …; packets that match “…”"
        );
    }
}
