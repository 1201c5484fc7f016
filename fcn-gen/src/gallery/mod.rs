//! Galleries: packets composed by hand, one after another, each with a comment that says what to look at.
//!
//! Two of them: `formats` shows every message well-formed, `malformed` every defect that a rule names. Each has families,
//! of which one or all are played. What simulated hosts and switches send to each other is `sim`'s business; formats and
//! rules are the wire crate's.
//!
//! `cast.rs` has the hosts and the parts that packets are made of, `scene.rs` takes the packets down, `messages.rs` and
//! `routing.rs` build what parts do not.

mod cast;
mod formats;
mod malformed;
mod messages;
mod routing;
mod scene;

use fcn_wire::{LinkType, Profile, Rule};
use scene::Scene;
use std::fmt;

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
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name: lower case, with hyphens.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    compose: fn(&mut Scene) -> fcn_wire::Result<()>,
}

/// The description of a gallery.
#[derive(Clone, Copy, Debug)]
pub struct Gallery {
    /// Its name: lower case.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// Its families, in the order in which they are played.
    pub families: &'static [Family],
}

/// Every gallery.
#[must_use]
pub const fn all() -> &'static [Gallery] {
    const GALLERIES: &[Gallery] = &[
        Gallery {
            name: "formats",
            about: "Every message of fast congestion notification as it should be, plain and in tunnels, and what stands around them",
            families: formats::FAMILIES,
        },
        Gallery {
            name: "malformed",
            about: "Every defect that a rule names, a packet each, between good packets",
            families: malformed::FAMILIES,
        },
    ];
    GALLERIES
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
        return gallery.play(
            gallery.name.to_owned(),
            gallery.about,
            gallery.families,
            profile,
        );
    }
    let chosen = gallery.families.iter().find(|one| one.name == family);
    let Some(chosen) = chosen else {
        return Err(Error::NoFamily {
            gallery,
            family: family.to_owned(),
        });
    };
    let name = format!("{}-{}", gallery.name, chosen.name);
    gallery.play(name, chosen.about, std::slice::from_ref(chosen), profile)
}

impl Gallery {
    fn play(
        &self,
        name: String,
        about: &'static str,
        families: &[Family],
        profile: &Profile,
    ) -> Result<Capture, Error> {
        let mut scene = Scene::new(profile);
        for family in families {
            (family.compose)(&mut scene).map_err(|cause| Error::Compose {
                gallery: self.name,
                family: family.name,
                behind: scene.last_comment().to_owned(),
                cause,
            })?;
            scene.wait(PAUSE);
        }
        Ok(Capture {
            name,
            about,
            packets: scene.done(),
        })
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
        /// Comment of the last packet that could be written; empty where there is none.
        behind: String,
        /// What it refused.
        cause: fcn_wire::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGallery(name) => {
                write!(f, "there is no gallery `{name}`; galleries:")?;
                list(f, all().iter().map(|gallery| gallery.name))
            }
            Self::NoFamily { gallery, family } => {
                let name = gallery.name;
                write!(
                    f,
                    "the gallery `{name}` has no family `{family}`; families:"
                )?;
                let families = gallery.families.iter().map(|family| family.name);
                list(f, std::iter::once(ALL_FAMILIES).chain(families))
            }
            Self::Compose {
                gallery,
                family,
                behind,
                cause,
            } => {
                write!(f, "gallery `{gallery}`, family `{family}`: ")?;
                if behind.is_empty() {
                    f.write_str("its first packet")?;
                } else {
                    write!(f, "the packet behind \"{behind}\"")?;
                }
                write!(f, " cannot be written with this profile: {cause}")
            }
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
