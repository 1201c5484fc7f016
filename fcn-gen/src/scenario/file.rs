//! Scenario files: where they come from, and what comes out of them.
//!
//! `SCENARIOS.md` beside `Cargo.toml` describes the format: every key, its default and its range.

use super::build;
use super::builtin;
use super::check;
use super::document::{Document, Parameter, settings};
use super::error::{Error, Place, Refusal};
use super::model::Simulation;
use super::schema::{File, GalleryFile, StressFile};
use super::stress;
use crate::gallery::{self, ALL_FAMILIES};
use crate::stress::Stress;
use fcn_wire::Profile;
use serde::Deserialize;
use std::path::PathBuf;
use toml::de::Deserializer;

/// Largest scenario file: 4 MiB.
const LARGEST_FILE: u64 = 4 << 20;

/// Where a scenario comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One of ours, by name.
    Builtin(String),
    /// A file.
    File(PathBuf),
    /// Text at hand.
    Text {
        /// What to call it.
        name: String,
        /// The TOML.
        text: String,
    },
}

/// A scenario, ready.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of the built-in one, or the file's without directories and `.toml`.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// What it shows and where to look.
    pub demonstrates: String,
    /// What `--set` offers by a short name, in the file's order.
    pub parameters: Vec<Parameter>,
    /// What to do.
    pub play: Play,
}

/// What a scenario does.
#[derive(Clone, Debug)]
pub enum Play {
    /// A simulation.
    Simulation(Box<Simulation>),
    /// Packets made one by one.
    Gallery {
        /// Which: `formats` or `malformed`.
        name: String,
        /// Which family of them; `all`: every one.
        family: String,
        /// Their code points.
        profile: Profile,
    },
    /// Frames without end, for a link.
    Stress(Box<Stress>),
}

/// Reads a scenario with `sets` (`key=value`) applied to it.
///
/// A key is a parameter's name or a path: `mechanism`, `host.s.count`, `flow.f.message`, `defaults.dcqcn.g`.
///
/// # Errors
/// A file that cannot be read, or the first thing in it that is not allowed: where, and what is.
pub fn load(source: &Source, sets: &[String]) -> Result<Scenario, Error> {
    let (file, name, text) = text_of(source)?;
    let settings = settings(&file, sets, text.len())?;
    let document = Document::read(&file, &text, &settings)?;
    let Document {
        table,
        locator,
        parameters,
    } = document;
    let is_gallery = table.get_ref().contains_key("gallery");
    let is_stress = table.get_ref().contains_key("stress");
    let deserializer = Deserializer::from(table);
    let place_of = |key: &str| locator.place_of(key);
    if is_gallery {
        let read = GalleryFile::deserialize(deserializer)
            .map_err(Refusal::from)
            .and_then(|file| {
                check::profile(&file.profile, &place_of)?;
                let play = gallery(&file)?;
                Ok(Scenario {
                    name,
                    about: file.about,
                    demonstrates: file.demonstrates.trim().to_owned(),
                    parameters,
                    play,
                })
            });
        return read.map_err(|refusal| locator.error(refusal));
    }
    if is_stress {
        let read = StressFile::deserialize(deserializer)
            .map_err(Refusal::from)
            .and_then(|file| {
                check::profile(&file.profile, &place_of)?;
                let play = Play::Stress(Box::new(stress::stress(&file, &place_of)?));
                Ok(Scenario {
                    name,
                    about: file.about,
                    demonstrates: file.demonstrates.trim().to_owned(),
                    parameters,
                    play,
                })
            });
        return read.map_err(|refusal| locator.error(refusal));
    }
    let read = File::deserialize(deserializer)
        .map_err(Refusal::from)
        .and_then(|file| {
            check::profile(&file.profile, &place_of)?;
            let simulation = build::simulation(&file)?;
            let play = Play::Simulation(Box::new(simulation));
            Ok(Scenario {
                name,
                about: file.about,
                demonstrates: file.demonstrates.trim().to_owned(),
                parameters,
                play,
            })
        });
    read.map_err(|refusal| locator.error(refusal))
}

fn gallery(file: &GalleryFile) -> Result<Play, Refusal> {
    let name = file.gallery.get_ref();
    let Some(found) = gallery::all().iter().find(|gallery| gallery.name == name) else {
        let names: Vec<_> = gallery::all().iter().map(|gallery| gallery.name).collect();
        let message = format!(
            "there is no gallery `{name}`; there are {}",
            names.join(", ")
        );
        return Err(Refusal::at(&file.gallery, message));
    };
    let family = file
        .family
        .as_ref()
        .map_or(ALL_FAMILIES, |family| family.get_ref().as_str());
    let families = || found.families.iter().map(|family| family.name);
    match &file.family {
        Some(at) if family != ALL_FAMILIES && !families().any(|known| known == family) => {
            let names: Vec<_> = families().collect();
            let message = format!(
                "`{name}` has no family `{family}`; there are {ALL_FAMILIES}, {}",
                names.join(", ")
            );
            Err(Refusal::at(at, message))
        }
        _ => Ok(Play::Gallery {
            name: name.clone(),
            family: family.to_owned(),
            profile: file.profile.clone(),
        }),
    }
}

/// What to call the file in refusals, the scenario's name, and the text.
fn text_of(source: &Source) -> Result<(String, String, String), Error> {
    let refuse = |file: &str, message: String| Error {
        file: file.to_owned(),
        place: Place::Whole,
        key: None,
        message,
    };
    match source {
        Source::Text { name, text } => Ok((name.clone(), stem(name), text.clone())),
        Source::Builtin(name) => match builtin::text(name) {
            Some(text) => Ok((format!("{name}.toml"), name.clone(), text.to_owned())),
            None => {
                let names: Vec<_> = builtin::list().map(|(name, _)| name).collect();
                Err(refuse(
                    name,
                    format!(
                        "there is no such built-in scenario; there are {}",
                        names.join(", ")
                    ),
                ))
            }
        },
        Source::File(path) => {
            let file = path.display().to_string();
            let len = std::fs::metadata(path)
                .map_err(|error| refuse(&file, format!("cannot be read: {error}")))?
                .len();
            if len > LARGEST_FILE {
                return Err(refuse(
                    &file,
                    format!(
                        "{len} octets are too many for a scenario; at most {LARGEST_FILE} are read"
                    ),
                ));
            }
            let text = std::fs::read_to_string(path)
                .map_err(|error| refuse(&file, format!("cannot be read: {error}")))?;
            let name = path
                .file_name()
                .map_or_else(|| file.clone(), |name| stem(&name.to_string_lossy()));
            Ok((file, name, text))
        }
    }
}

fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name).to_owned()
}
