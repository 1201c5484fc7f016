//! Galleries: sequences of packets composed by hand, each with a comment that explains it.
//!
//! There are two: `formats` has every message well-formed, `malformed` has every defect for which
//! there is a rule. Each has families, of which one or all are played. Traffic of simulated hosts
//! and switches is in `sim`; formats and rules are in the wire crate.
//!
//! The files `formats.toml` and `malformed.toml` define the layers of packets and the changes to
//! them; `layers.rs` builds packets from these definitions.

mod layers;

use bumpalo::Bump;
use fcn_wire::compose::Part;
use fcn_wire::icrc::{self, Policy};
use fcn_wire::{Frame, LinkType, Profile, Rule};
use layers::{Composer, ETHERNET, Hex, Layer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use std::sync::LazyLock;

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
        links
            .iter()
            .position(|link| *link == packet.link)
            .unwrap_or(0)
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Name: lower case, with hyphens.
    pub name: String,
    /// Description in a line.
    pub about: String,
    packets: Vec<PacketFile>,
}

/// The description of a gallery.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gallery {
    /// Name: lower case.
    pub name: String,
    /// Description in a line.
    pub about: String,
    /// Families, in the order in which they are played.
    pub families: Vec<Family>,
}

/// A packet as defined in the gallery's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketFile {
    /// Additional nanoseconds since the previous packet.
    #[serde(default)]
    wait: u64,
    comment: String,
    #[serde(default = "ethernet", deserialize_with = "Link::deserialize")]
    link: LinkType,
    layers: Vec<Layer>,
    /// Changed octets of the frame. The ICRC is recomputed, so that it remains correct.
    #[serde(default)]
    change: Vec<(usize, Hex)>,
    /// The snap length.
    cut: Option<usize>,
    #[serde(default, deserialize_with = "rules")]
    breaks: Vec<Rule>,
}

/// Link types of packets in galleries.
#[derive(Deserialize)]
#[serde(remote = "LinkType", rename_all = "snake_case")]
enum Link {
    Ethernet,
    RawIp,
    LinuxCooked,
    LinuxCooked2,
    Null,
}

const fn ethernet() -> LinkType {
    LinkType::Ethernet
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let ids = Vec::<String>::deserialize(deserializer)?;
    let rule = |id: &String| {
        let mut rules = Rule::ALL.iter().copied();
        let found = rules.find(|rule| rule.info().id == id);
        found.ok_or_else(|| D::Error::custom(format!("there is no rule {id}")))
    };
    ids.iter().map(rule).collect()
}

/// Parses a file of this folder.
fn document<T: DeserializeOwned>(text: &str) -> T {
    toml_edit::de::from_str(text).unwrap_or_else(|error| panic!("a gallery's file: {error}"))
}

/// Returns all galleries.
#[must_use]
pub fn all() -> &'static [Gallery] {
    static GALLERIES: LazyLock<[Gallery; 2]> = LazyLock::new(|| {
        [
            document(include_str!("formats.toml")),
            document(include_str!("malformed.toml")),
        ]
    });
    &*GALLERIES
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
        self.family.map_or(ALL_FAMILIES, |family| &family.name)
    }

    /// Composes the packets.
    ///
    /// # Errors
    /// The wire crate refuses to write a packet because of an unusual code point.
    pub fn play(&self) -> Result<Capture, String> {
        let all = self.gallery;
        let (about, families) = match self.family {
            Some(family) => (&family.about, std::slice::from_ref(family)),
            None => (&all.about, &all.families[..]),
        };
        let mut packets: Vec<Packet> = Vec::new();
        let mut now = 0;
        for family in families {
            for file in &family.packets {
                now += file.wait;
                let packet = file.packet(now, &self.profile).map_err(|cause| {
                    format!(
                        "gallery `{}`, family `{}`: the packet \"{}\" cannot be written with this profile: {cause}",
                        all.name, family.name, file.comment
                    )
                })?;
                packets.push(packet);
                now += STEP;
            }
            now += PAUSE;
        }
        Ok(Capture { about, packets })
    }
}

impl PacketFile {
    fn packet(&self, at: u64, profile: &Profile) -> fcn_wire::Result<Packet> {
        let arena = Bump::new();
        let mut parts = Composer {
            profile,
            arena: &arena,
        }
        .parts(&self.layers)?;
        if self.link == LinkType::Ethernet && !matches!(parts.first(), Some(Part::Ethernet { .. }))
        {
            parts.insert(0, ETHERNET);
        }
        let mut bytes = fcn_wire::compose::packet(&parts, profile)?;
        if !self.change.is_empty() {
            layers::change(&mut bytes, &self.change);
            fill_icrc(&mut bytes, profile);
        }
        let wire_len = bytes.len();
        bytes.truncate(self.cut.unwrap_or(wire_len));
        Ok(Packet {
            at,
            comment: self.comment.clone(),
            bytes,
            wire_len,
            link: self.link,
            breaks: self.breaks.clone(),
        })
    }
}

/// Recomputes the ICRC of a RoCEv2 packet, if it can be located.
fn fill_icrc(bytes: &mut [u8], profile: &Profile) {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
    let Some(datagram) = frame.datagram().filter(|_| frame.is_roce()).copied() else {
        return;
    };
    let (start, udp) = (datagram.ip.start, datagram.start);
    let end = datagram.payload_at() + datagram.payload_len;
    if let Some(packet) = bytes.get_mut(start..end) {
        icrc::fill(packet, udp - start, Policy::Compute(profile.icrc_reading));
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
