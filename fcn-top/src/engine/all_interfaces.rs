//! Interfaces that packets passed if captured on all of them (`any`): each packet carries the
//! kernel's index of its interface (LINUX_SLL2) and counts there.

use super::PacketSink;
use super::export::InterfaceDescription;
use fcn_observe::sightings::CapturePoint;
use fcn_wire::LinkType;
use rustc_hash::FxHashMap;

/// Linux's name for all interfaces.
pub const ANY: &str = "any";
/// Maximum number of interfaces distinguished. Packets of further ones count for the capture
/// itself: a file may contain any index.
const MAX_INTERFACES: usize = 1_000;

/// Interfaces captured on through one capture.
pub struct InterfaceNumbers {
    /// The engine's number of the capture's own interface.
    captured_on: u32,
    /// True if it is all interfaces.
    together: bool,
    /// The engine's numbers, by the kernel's index.
    known: FxHashMap<u32, u32>,
}

impl InterfaceNumbers {
    /// Creates the mapping for the interface with that number in the engine. It remains empty if
    /// the interface has a name other than [`ANY`].
    pub fn new(captured_on: u32, name: &str) -> Self {
        Self {
            captured_on,
            together: name.is_empty() || name == ANY,
            known: FxHashMap::default(),
        }
    }

    /// Returns the engine's number of the capture's own interface.
    pub const fn own(&self) -> u32 {
        self.captured_on
    }

    /// Returns the engine's numbers of the capture's own interface and of those found in its
    /// packets.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        core::iter::once(self.captured_on).chain(self.known.values().copied())
    }

    /// Returns the engine's number of the interface that a packet passed, or the capture's own if
    /// the packet does not record it. `describe` describes an interface by the kernel's index.
    #[inline]
    pub fn number(
        &mut self,
        (link, bytes): (LinkType, &[u8]),
        sink: &mut PacketSink<'_>,
        describe: impl FnOnce(u32) -> (InterfaceDescription, &'static str),
    ) -> u32 {
        if !self.together {
            return self.captured_on;
        }
        let Some(index) = CapturePoint::for_packet(self.captured_on, link, bytes).index() else {
            return self.captured_on;
        };
        match self.known.get(&index) {
            Some(number) => *number,
            None => self.learn(index, sink, describe),
        }
    }

    #[cold]
    fn learn(
        &mut self,
        index: u32,
        sink: &mut PacketSink<'_>,
        describe: impl FnOnce(u32) -> (InterfaceDescription, &'static str),
    ) -> u32 {
        if self.known.len() >= MAX_INTERFACES {
            return self.captured_on;
        }
        let (described, state) = describe(index);
        // An interface that is created again gets another index.
        let number = (self.known.values().copied())
            .find(|number| {
                let known = sink.state.interfaces.get(*number as usize);
                known.is_some_and(|interface| interface.name == described.name)
            })
            .unwrap_or_else(|| sink.know_interface(described, state));
        self.known.insert(index, number);
        number
    }
}

/// Returns the name of an interface whose name is unknown, by the kernel's index.
pub fn ifindex(index: u32) -> String {
    format!("ifindex {index}")
}
