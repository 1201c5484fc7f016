//! Galleries: sequences of packets composed by hand, each with a comment that explains it.
//!
//! There are two: `formats` has every message well-formed, `malformed` has every defect for which
//! there is a rule. Each has families, of which one or all are played. Traffic of simulated hosts
//! and switches is in `sim`; formats and rules are in the wire crate.
//!
//! A family is a function that composes its packets one after another, each in one statement
//! (`formats.rs`, `malformed.rs`), of parts that many packets share (`stacks.rs`).

mod composer;
// Tables, with more in a line than rustfmt allows.
#[rustfmt::skip]
mod formats;
#[rustfmt::skip]
mod malformed;
#[rustfmt::skip]
mod stacks;

use composer::Composer;
use core::slice;
use fcn_wire::{LinkType, Profile, Rule};

/// Family name that selects all families of a gallery, in order.
pub const ALL_FAMILIES: &str = "all";

/// Time of the first packet in nanoseconds since 1970, consistent with the IOAM timestamps in the
/// packets.
pub const EPOCH: u64 = 1_767_225_600_000_000_000;
/// Nanoseconds between two consecutive packets.
const STEP: u64 = 2_000;
/// Nanoseconds between two families.
const PAUSE: u64 = 1_000_000;

/// One packet of a gallery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the first packet; never less than for the previous packet.
    pub at: u64,
    /// Explanation of the packet.
    pub comment: String,
    /// The octets captured.
    pub bytes: Vec<u8>,
    /// Octets on the wire: more than captured if the packet was truncated by a snap length.
    pub wire_len: usize,
    /// Link type, which determines the first header.
    pub link: LinkType,
    /// Rules that the packet breaks on purpose under the default profile, including notes, in the
    /// order in which [`fcn_wire::Frame::check`] reports them.
    pub breaks: Vec<Rule>,
}

impl Packet {
    /// Returns true if all of it was captured.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.wire_len
    }
}

/// Result of playing a gallery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Description in a line.
    pub about: &'static str,
    /// Its packets, in the order of time.
    pub packets: Vec<Packet>,
}

impl Capture {
    /// Returns the link types of the packets, one per interface, in order of appearance.
    #[must_use]
    pub fn links(&self) -> Vec<LinkType> {
        let mut links = Vec::new();
        for packet in &self.packets {
            if !links.contains(&packet.link) {
                links.push(packet.link);
            }
        }
        links
    }

    /// Returns the interface of a packet: the index of its link type in [`links`](Self::links).
    #[must_use]
    pub fn interface_of(&self, packet: &Packet) -> usize {
        let links = self.links();
        let found = links.iter().position(|link| *link == packet.link);
        found.unwrap_or(0)
    }
}

/// Returns the name of the interface for packets of this link type.
#[must_use]
pub const fn interface_name(link: LinkType) -> &'static str {
    match link {
        LinkType::Ethernet => "eth0",
        LinkType::RawIp => "raw0",
        LinkType::LinuxCooked => "any0",
        LinkType::LinuxCooked2 => "any1",
        LinkType::Null => "lo0",
        LinkType::InfiniBand => "ib0",
        LinkType::Erf => "erf0",
    }
}

/// A family of a gallery, selected by its parameter `family`; see also [`ALL_FAMILIES`].
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name: lower case, with hyphens.
    pub name: &'static str,
    /// Description in a line.
    pub about: &'static str,
    compose: fn(&mut Composer<'_>),
}

/// The description of a gallery.
#[derive(Clone, Copy, Debug)]
pub struct Gallery {
    /// Name: lower case.
    pub name: &'static str,
    /// Description in a line.
    pub about: &'static str,
    /// Families, in the order in which they are played.
    pub families: &'static [Family],
}

/// Returns all galleries.
#[must_use]
pub const fn all() -> &'static [Gallery] {
    &[formats::GALLERY, malformed::GALLERY]
}

/// A gallery or one of its families, with the code points.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The gallery.
    pub gallery: &'static Gallery,
    /// The selected family; `None`: all.
    pub family: Option<&'static Family>,
    /// The code points. With a forced profile, whose code points the drafts forbid, packets break
    /// more rules than listed in [`Packet::breaks`].
    pub profile: Profile,
}

impl Selection {
    /// Returns the family's name, or [`ALL_FAMILIES`].
    #[must_use]
    pub fn family_name(&self) -> &'static str {
        self.family.map_or(ALL_FAMILIES, |family| family.name)
    }

    /// Composes the packets.
    #[must_use]
    pub fn play(&self) -> Capture {
        let all = self.gallery;
        let (about, families) = match self.family {
            Some(family) => (family.about, slice::from_ref(family)),
            None => (all.about, all.families),
        };
        let mut composer = Composer::new(&self.profile);
        for family in families {
            (family.compose)(&mut composer);
            composer.wait(PAUSE);
        }
        let packets = composer.packets;
        Capture { about, packets }
    }
}

#[cfg(test)]
impl Selection {
    /// Selects all of the gallery `name`.
    pub fn all_of(name: &str) -> Self {
        let gallery = all().iter().find(|gallery| gallery.name == name);
        Self {
            gallery: gallery.unwrap(),
            family: None,
            profile: Profile::DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests;
