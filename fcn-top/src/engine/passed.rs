//! The interfaces that packets passed which were captured on all of them together (`any`): each packet has the kernel's number
//! of its own (LINUX_SLL2), and counts there.

use super::Taking;
use super::export::Described;
use fcn_observe::sightings::Place;
use fcn_wire::LinkType;
use rustc_hash::FxHashMap;

/// Linux's name for all interfaces together.
pub const ANY: &str = "any";
/// Interfaces told apart. What passed further ones counts as the capture's own: packets of a file may say any number.
const MOST: usize = 1_000;

/// The interfaces behind one that packets are captured on.
pub struct Passed {
    /// The engine's number of that one.
    captured_on: u32,
    /// Whether it is all interfaces.
    together: bool,
    /// The engine's numbers by the kernel's.
    known: FxHashMap<u32, u32>,
}

impl Passed {
    /// Those behind the interface that the engine knows by that number; none where it has a name that is not [`ANY`].
    pub fn new(captured_on: u32, name: &str) -> Self {
        Self {
            captured_on,
            together: name.is_empty() || name == ANY,
            known: FxHashMap::default(),
        }
    }

    /// The engine's number of the interface itself.
    pub const fn own(&self) -> u32 {
        self.captured_on
    }

    /// The engine's numbers of the interface itself and of those behind it.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        core::iter::once(self.captured_on).chain(self.known.values().copied())
    }

    /// The engine's number of the interface that a packet passed, which is the capture's own where the packet does not say;
    /// `describe` says what one is, by the kernel's number.
    #[inline]
    pub fn number(
        &mut self,
        (link, bytes): (LinkType, &[u8]),
        taking: &mut Taking<'_>,
        describe: impl FnOnce(u32) -> (Described, &'static str),
    ) -> u32 {
        if !self.together {
            return self.captured_on;
        }
        let Some(index) = Place::for_packet(self.captured_on, link, bytes).index() else {
            return self.captured_on;
        };
        match self.known.get(&index) {
            Some(number) => *number,
            None => self.learn(index, taking, describe),
        }
    }

    #[cold]
    fn learn(
        &mut self,
        index: u32,
        taking: &mut Taking<'_>,
        describe: impl FnOnce(u32) -> (Described, &'static str),
    ) -> u32 {
        if self.known.len() >= MOST {
            return self.captured_on;
        }
        let (described, state) = describe(index);
        // One that is made again has another number.
        let number = (self.known.values().copied())
            .find(|number| {
                let known = taking.state.interfaces.get(*number as usize);
                known.is_some_and(|interface| interface.name == described.name)
            })
            .unwrap_or_else(|| taking.know_interface(described, state));
        self.known.insert(index, number);
        number
    }
}

/// What the interface of that kernel's number is called where its name is not known.
pub fn ifindex(index: u32) -> String {
    format!("ifindex {index}")
}
