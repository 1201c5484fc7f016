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
use std::fmt;
use std::sync::LazyLock;

/// The family name that stands for every family of a gallery, in order.
pub const ALL_FAMILIES: &str = "all";

/// When the first packet is said to have passed, in seconds since 1970: what the IOAM timestamps in the packets agree with.
pub const EPOCH_SECONDS: u32 = 1_767_225_600;

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
    /// The gallery's name, and behind a hyphen the family's where one was chosen: fit for a file name.
    pub name: String,
    /// What it shows, in a line.
    pub about: &'static str,
    /// Its packets, in the order of time.
    pub packets: Vec<Packet>,
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
    #[serde(default)]
    link: Link,
    layers: Vec<Layer>,
    /// Octets of the frame that are changed. The ICRC is computed anew, so that it is not what is wrong.
    #[serde(default)]
    change: Vec<(usize, Hex)>,
    /// The snap length.
    cut: Option<usize>,
    #[serde(default, deserialize_with = "rules")]
    breaks: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Link {
    #[default]
    Ethernet,
    RawIp,
    LinuxCooked,
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

/// The packets of a family (or [`ALL_FAMILIES`]) of the gallery `name`, with the code points of `profile`.
///
/// With code points that the drafts forbid (a forced profile), packets break further rules than [`Packet::breaks`] says.
///
/// # Errors
/// No gallery or family of that name, with those that there are; or a packet that the wire crate refuses to write.
pub fn play(name: &str, family: &str, profile: &Profile) -> Result<Capture, Error> {
    let Some(gallery) = all().iter().find(|gallery| gallery.name == name) else {
        return Err(Error::NoGallery(name.to_owned()));
    };
    if family == ALL_FAMILIES {
        let name = gallery.name.clone();
        return gallery.play(name, &gallery.about, &gallery.families, profile);
    }
    let Some(chosen) = gallery.families.iter().find(|known| known.name == family) else {
        return Err(Error::NoFamily {
            gallery,
            family: family.to_owned(),
        });
    };
    let name = format!("{}-{}", gallery.name, chosen.name);
    gallery.play(name, &chosen.about, std::slice::from_ref(chosen), profile)
}

impl Gallery {
    fn play(
        &'static self,
        name: String,
        about: &'static str,
        families: &'static [Family],
        profile: &Profile,
    ) -> Result<Capture, Error> {
        let mut packets: Vec<Packet> = Vec::new();
        let mut now = 0;
        for family in families {
            for file in &family.packets {
                now += file.wait;
                let packet = file.packet(now, profile).map_err(|cause| Error::Compose {
                    gallery: &self.name,
                    family: &family.name,
                    comment: &file.comment,
                    cause,
                })?;
                packets.push(packet);
                now += STEP;
            }
            now += PAUSE;
        }
        Ok(Capture {
            name,
            about,
            packets,
        })
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
        if self.link == Link::Ethernet && !matches!(parts.first(), Some(Part::Ethernet { .. })) {
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
            link: match self.link {
                Link::Ethernet => LinkType::Ethernet,
                Link::RawIp => LinkType::RawIp,
                Link::LinuxCooked => LinkType::LinuxCooked,
            },
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

/// Why a gallery could not be played.
#[derive(Clone, Debug)]
pub enum Error {
    /// There is no gallery of this name.
    NoGallery(String),
    /// The gallery has no such family.
    NoFamily {
        /// The gallery.
        gallery: &'static Gallery,
        /// What was asked for.
        family: String,
    },
    /// The wire crate refused to write a packet, because of an unusual code point.
    Compose {
        /// The gallery.
        gallery: &'static str,
        /// The family.
        family: &'static str,
        /// The packet's comment.
        comment: &'static str,
        /// What it refused.
        cause: fcn_wire::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGallery(name) => {
                write!(f, "there is no gallery `{name}`; galleries:")?;
                list(f, all().iter().map(|gallery| &*gallery.name))
            }
            Self::NoFamily { gallery, family } => {
                let name = &gallery.name;
                write!(
                    f,
                    "the gallery `{name}` has no family `{family}`; families:"
                )?;
                let families = gallery.families.iter().map(|family| &*family.name);
                list(f, std::iter::once(ALL_FAMILIES).chain(families))
            }
            Self::Compose {
                gallery,
                family,
                comment,
                cause,
            } => write!(
                f,
                "gallery `{gallery}`, family `{family}`: the packet \"{comment}\" cannot be written with this profile: {cause}"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Compose { cause, .. } => Some(cause),
            Self::NoGallery(_) | Self::NoFamily { .. } => None,
        }
    }
}

/// Writes names behind what leads to them: ` a, b, c`.
fn list<'a>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'a str>) -> fmt::Result {
    for (number, name) in names.enumerate() {
        write!(f, "{} {name}", if number == 0 { "" } else { "," })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
