//! Selection of frames of a capture: by number, by interface, by filter, and by whether they can be
//! sent at all.

use crate::filter::Filter;
use crate::omissions::Reason;
use fcn_link::capture_file::{Packet, ReadInterface};
use fcn_tool::failure::{Failure, Result};

/// EtherType of MAC control frames: pause, and priority-based flow control.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

/// Frame numbers, counted from 1: `1-100,205,300-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<(u64, u64)>);

impl Numbers {
    /// Parses frame numbers.
    ///
    /// # Errors
    /// The text is invalid; the message shows the notation.
    pub fn read(text: &str) -> std::result::Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|n| *n >= 1);
        let range = |part: &str| {
            let (from, to) = match part.split_once('-') {
                None => {
                    let one = number(part)?;
                    (one, one)
                }
                Some((from, to)) if to.trim().is_empty() => (number(from)?, u64::MAX),
                Some((from, to)) => (number(from)?, number(to)?),
            };
            (from <= to).then_some((from, to))
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let mut ranges = ranges.ok_or_else(|| {
            format!("`{text}` is not a list of frame numbers: write 1-100,205,300- (the first frame is 1)")
        })?;
        ranges.sort_unstable();
        // Merges ranges, so that none touches another one.
        ranges.dedup_by(|next, before| {
            let touches = next.0 <= before.1.saturating_add(1);
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
        Ok(Self(ranges))
    }

    /// True if `number` is included.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let behind = self.0.partition_point(|(_, to)| *to < number);
        self.0.get(behind).is_some_and(|(from, _)| *from <= number)
    }

    /// True if no included number is greater than `number`.
    #[must_use]
    pub fn end_at(&self, number: u64) -> bool {
        self.0.last().is_none_or(|(_, to)| *to <= number)
    }
}

/// Selection of frames; by default all that can be sent.
#[derive(Default)]
pub struct Selection {
    /// Only these numbers; `None`: all.
    pub numbers: Option<Numbers>,
    /// Only frames of these interfaces, by name or by number; empty: all.
    pub interfaces: Vec<String>,
    /// Only frames that match.
    pub filter: Option<Filter>,
    /// Also frames that would pause the link.
    pub pause: bool,
    /// For each interface of the file so far, true if it is selected.
    chosen: Vec<bool>,
}

impl Selection {
    /// True if no frame after `number` can be selected.
    #[must_use]
    pub fn ends_at(&self, number: u64) -> bool {
        self.numbers
            .as_ref()
            .is_some_and(|numbers| numbers.end_at(number))
    }

    /// Processes the interfaces that the file has described so far.
    pub fn learn(&mut self, interfaces: &[ReadInterface]) {
        while self.chosen.len() < interfaces.len() {
            let number = self.chosen.len();
            let name = interfaces
                .get(number)
                .map(|interface| interface.name.as_str());
            let is =
                |wanted: &String| Some(wanted.as_str()) == name || wanted.parse() == Ok(number);
            self.chosen
                .push(self.interfaces.is_empty() || self.interfaces.iter().any(is));
        }
    }

    /// Returns the number of interfaces so far, and the number of selected ones.
    #[must_use]
    pub fn interfaces(&self) -> (usize, usize) {
        let chosen = self.chosen.iter().filter(|chosen| **chosen).count();
        (self.chosen.len(), chosen)
    }

    /// Refuses interfaces that do not exist in the whole file.
    ///
    /// # Errors
    /// There are such interfaces.
    pub fn check_interfaces(&self, interfaces: &[ReadInterface]) -> Result {
        for wanted in &self.interfaces {
            let there = interfaces.iter().any(|interface| interface.name == *wanted)
                || wanted
                    .parse()
                    .is_ok_and(|number: usize| number < interfaces.len());
            if !there {
                let names: Vec<String> = interfaces
                    .iter()
                    .take(20)
                    .enumerate()
                    .map(|(number, interface)| format!("{number} {}", interface.name))
                    .collect();
                return Err(Failure::usage("--interface")
                    .and(format!("the capture has no interface `{wanted}`"))
                    .and(format!("it has {}", names.join(", "))));
            }
        }
        Ok(())
    }

    /// Returns the reason why the frame with this number (from 1) is not sent, as far as its octets
    /// in the capture determine it; `None` if it is sent.
    ///
    /// # Errors
    /// The filter is invalid.
    #[inline]
    pub fn choose(&mut self, number: u64, packet: &Packet<'_>) -> Result<Option<Reason>> {
        if let Some(numbers) = &self.numbers
            && !numbers.contains(number)
        {
            return Ok(Some(Reason::Number));
        }
        if !self.interfaces.is_empty() {
            let chosen = self.chosen.get(packet.interface as usize);
            if !chosen.is_some_and(|chosen| *chosen) {
                return Ok(Some(Reason::Interface));
            }
        }
        if let Some(filter) = &mut self.filter
            && !filter.matches(packet.link_number, packet.bytes)?
        {
            return Ok(Some(Reason::Filter));
        }
        if packet.link.is_none() {
            return Ok(Some(Reason::LinkType));
        }
        Ok(packet.is_cut().then_some(Reason::Cut))
    }

    /// True if the frame, as it would be sent, would pause the link and is refused for that reason.
    #[inline]
    #[must_use]
    pub fn refuses_pause(&self, frame: &[u8]) -> bool {
        !self.pause && frame.get(12..14) == Some(&MAC_CONTROL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_link::capture_file::Stamp;
    use fcn_wire::LinkType;
    use proptest::prelude::*;

    fn packet(interface: u32, wire_len: u32, bytes: &[u8]) -> Packet<'_> {
        Packet {
            interface,
            at: 0,
            stamp: Stamp::Valid,
            link: Some(LinkType::Ethernet),
            link_number: 1,
            wire_len,
            bytes,
        }
    }

    #[test]
    fn numbers_are_read() {
        let numbers = Numbers::read("1-3, 7,10-").unwrap();
        let contained: Vec<u64> = (0..13).filter(|n| numbers.contains(*n)).collect();
        assert_eq!(contained, [1, 2, 3, 7, 10, 11, 12]);
        assert!(!numbers.end_at(1_000));
        assert!(Numbers::read("5,2-4").unwrap().end_at(5));
        for text in [
            "",
            "0",
            "3-1",
            "a",
            "1,,2",
            "-3",
            "1-2-3",
            "99999999999999999999",
        ] {
            assert!(Numbers::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unsendable_frames_are_not_selected() {
        let mut selection = Selection::default();
        let whole = packet(0, 60, &[0; 60]);
        let cut = packet(0, 61, &[0; 60]);
        let strange = Packet {
            link: None,
            ..whole
        };
        assert_eq!(selection.choose(1, &whole), Ok(None));
        assert_eq!(selection.choose(1, &cut), Ok(Some(Reason::Cut)));
        assert_eq!(selection.choose(1, &strange), Ok(Some(Reason::LinkType)));
        selection.filter = Some(Filter::new("udp"));
        assert_eq!(selection.choose(1, &cut), Ok(Some(Reason::Filter)));
        selection.numbers = Some(Numbers::read("2").unwrap());
        assert_eq!(selection.choose(1, &cut), Ok(Some(Reason::Number)));
        assert!(selection.ends_at(2) && !selection.ends_at(1));
        selection.filter = Some(Filter::new("udp udp"));
        assert!(selection.choose(2, &cut).is_err());
    }

    #[test]
    fn pause_frames_are_refused_unless_asked_for() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&MAC_CONTROL);
        let mut selection = Selection::default();
        assert!(selection.refuses_pause(&frame));
        assert!(!selection.refuses_pause(&[0; 60]) && !selection.refuses_pause(&[]));
        selection.pause = true;
        assert!(!selection.refuses_pause(&frame));
    }

    proptest! {
        #[test]
        fn any_numbers_are_read_or_refused(text in "[0-9,\\- ]{0,20}", number in 0u64..2_000) {
            if let Ok(numbers) = Numbers::read(&text) {
                prop_assert!(!(numbers.contains(number) && numbers.end_at(number - 1)));
            }
        }
    }
}
