//! Galleries: packets composed by hand, one after another, each with a comment that says what to look at.
//!
//! Two of them: `formats` shows every message well-formed, `malformed` every defect that a rule names. Each has families,
//! of which one or all are played. What simulated hosts and switches send to each other is `sim`'s business; formats and
//! rules are the wire crate's.
//!
//! Their files, `formats.toml` and `malformed.toml`, say of what layers packets consist and what is changed in them;
//! `layers.rs` makes packets of that.

mod layers;

use bumpalo::Bump;
use fcn_wire::compose::Part;
use fcn_wire::icrc::{self, Policy};
use fcn_wire::{Frame, LinkType, Profile, Rule};
use layers::{Composer, ETHERNET, Hex, Layer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use std::sync::LazyLock;

/// The family name that stands for every family of a gallery, in order.
pub const ALL_FAMILIES: &str = "all";

/// When the first packet passed, in nanoseconds since 1970: what the IOAM timestamps in the packets agree with.
pub const EPOCH: u64 = 1_767_225_600_000_000_000;
/// Nanoseconds between two packets that follow each other directly.
const STEP: u64 = 2_000;
/// Nanoseconds between two families.
const PAUSE: u64 = 1_000_000;

/// One packet of a gallery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the first packet; never less than the packet's before.
    pub at: u64,
    /// What to look at.
    pub comment: String,
    /// The octets captured.
    pub bytes: Vec<u8>,
    /// Octets on the wire: more than were captured, where a snap length has cut the packet.
    pub wire_len: usize,
    /// What the octets begin with.
    pub link: LinkType,
    /// The rules that the packet is meant to break under the default profile, notes included, in the order in which
    /// [`fcn_wire::Frame::check`] finds them.
    pub breaks: Vec<Rule>,
}

impl Packet {
    /// Whether all of it was captured.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.wire_len
    }
}

/// What playing a gallery gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What it shows, in a line.
    pub about: &'static str,
    /// Its packets, in the order of time.
    pub packets: Vec<Packet>,
}

impl Capture {
    /// The link types of the packets, an interface each, in the order in which they appear.
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

    /// The interface of a packet: the place of its link type among [`links`](Self::links).
    #[must_use]
    pub fn interface_of(&self, packet: &Packet) -> usize {
        let links = self.links();
        links
            .iter()
            .position(|link| *link == packet.link)
            .unwrap_or(0)
    }
}

/// The name of the interface for packets of this link type.
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

/// What a gallery's parameter `family` may be, besides [`ALL_FAMILIES`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its name: lower case, with hyphens.
    pub name: String,
    /// What it shows, in a line.
    pub about: String,
    packets: Vec<PacketFile>,
}

/// The description of a gallery.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gallery {
    /// Its name: lower case.
    pub name: String,
    /// What it shows, in a line.
    pub about: String,
    /// Its families, in the order in which they are played.
    pub families: Vec<Family>,
}

/// A packet as the gallery's file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketFile {
    /// Nanoseconds more than usual since the packet before.
    #[serde(default)]
    wait: u64,
    comment: String,
    #[serde(default = "ethernet", deserialize_with = "Link::deserialize")]
    link: LinkType,
    layers: Vec<Layer>,
    /// Octets of the frame that are changed. The ICRC is computed anew, so that it is not what is wrong.
    #[serde(default)]
    change: Vec<(usize, Hex)>,
    /// The snap length.
    cut: Option<usize>,
    #[serde(default, deserialize_with = "rules")]
    breaks: Vec<Rule>,
}

/// The link types that packets of galleries have.
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

/// What a file of this folder holds.
fn document<T: DeserializeOwned>(text: &str) -> T {
    toml_edit::de::from_str(text).unwrap_or_else(|error| panic!("a gallery's file: {error}"))
}

/// Every gallery.
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

/// What is played of a gallery, with which code points.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The gallery.
    pub gallery: &'static Gallery,
    /// A family of it; `None`: every one.
    pub family: Option<&'static Family>,
    /// The code points. With those that the drafts forbid (a forced profile), packets break further rules than
    /// [`Packet::breaks`] says.
    pub profile: Profile,
}

impl Selection {
    /// The family's name, or [`ALL_FAMILIES`].
    #[must_use]
    pub fn family_name(&self) -> &'static str {
        self.family.map_or(ALL_FAMILIES, |family| &family.name)
    }

    /// Its packets.
    ///
    /// # Errors
    /// The wire crate refuses to write a packet, because of an unusual code point.
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

/// Computes the ICRC of a RoCEv2 packet anew, where it can be found.
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
    /// All of the gallery `name`.
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
