//! Loading of scenario files.
//!
//! `SCENARIOS.md` beside `Cargo.toml` describes the format: every key, its default and its range.

use super::build;
use super::builtin;
use super::document::{Document, Parameter};
use super::error::{Error, Position, Refusal, refuse};
use super::model::Simulation;
use super::schema::{File, GalleryFile, StressFile, list};
use super::stress;
use crate::gallery::{self, ALL_FAMILIES, Selection};
use crate::stress::Stress;
use fcn_wire::Profile;
use std::path::{Path, PathBuf};

/// Maximum size of a scenario file: 4 MiB.
const LARGEST_FILE: u64 = 4 << 20;

/// Source of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A built-in scenario, by name.
    Builtin(String),
    /// A file.
    File(PathBuf),
    /// Text in memory.
    Text {
        /// Name for error messages.
        name: String,
        /// The TOML.
        text: String,
    },
}

impl Source {
    /// Returns the source for a name on the command line: a built-in scenario, or a file if the
    /// name looks like one or the file exists.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let path = Path::new(name);
        let is_builtin = builtin::text(name).is_some();
        let like_a_file = name.contains('/') || name.ends_with(".toml") || path.is_file();
        if !is_builtin && like_a_file {
            Self::File(path.to_owned())
        } else {
            Self::Builtin(name.to_owned())
        }
    }
}

/// A loaded scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the built-in scenario, or the file name without directories and `.toml`.
    pub name: String,
    /// Description in a line.
    pub about: String,
    /// Explanation of what it demonstrates.
    pub demonstrates: String,
    /// Parameters for `--set`, in the file's order.
    pub parameters: Vec<Parameter>,
    /// Its content.
    pub play: Play,
}

/// Content of a scenario.
#[derive(Clone, Debug)]
pub enum Play {
    /// A simulation.
    Simulation(Box<Simulation>),
    /// Packets composed one by one.
    Gallery(Selection),
    /// An endless sequence of frames, for a link.
    Stress(Box<Stress>),
}

/// Loads a scenario with `sets` (`key=value`) applied to it.
///
/// A key is a parameter's name or a path: `mechanism`, `host.s.count`, `flow.f.message`,
/// `defaults.dcqcn.g`.
///
/// # Errors
/// The file cannot be read, or has an invalid value: the error is the first one, with its position
/// and the valid values.
pub fn load(source: &Source, sets: &[String]) -> Result<Scenario, Error> {
    let (file, name, text) = text_of(source)?;
    let document = Document::read(&file, &text, sets)?;
    let (about, demonstrates, play) = if document.has("gallery") {
        let keys: GalleryFile = document.keys()?;
        let play = check(&keys.profile).and_then(|()| gallery(&keys));
        (keys.about, keys.demonstrates, play)
    } else if document.has("stress") {
        let keys: StressFile = document.keys()?;
        let stress = check(&keys.profile).and_then(|()| stress::stress(&keys, &document));
        let play = stress.map(|stress| Play::Stress(Box::new(stress)));
        (keys.about, keys.demonstrates, play)
    } else {
        let keys: File = document.keys()?;
        let simulation = check(&keys.profile).and_then(|()| build::simulation(&keys));
        let play = simulation.map(|simulation| Play::Simulation(Box::new(simulation)));
        (keys.about, keys.demonstrates, play)
    };
    let play = play.map_err(|refusal| document.error(refusal))?;
    Ok(Scenario {
        name,
        about,
        demonstrates: demonstrates.trim().to_owned(),
        parameters: document.parameters,
        play,
    })
}

/// Refuses code points that the drafts forbid, at the code point's own position.
fn check(profile: &Profile) -> Result<(), Refusal> {
    profile.validate().map_err(|error| {
        let own = error.name().map(|name| format!("profile.{name}"));
        Refusal::at(own.as_deref().unwrap_or("profile"), error.to_string())
    })
}

fn gallery(keys: &GalleryFile) -> Result<Play, Refusal> {
    let name = &keys.gallery;
    let family = keys.family.as_deref().unwrap_or(ALL_FAMILIES);
    let Some(gallery) = gallery::all().iter().find(|gallery| gallery.name == *name) else {
        let names = list(gallery::all().iter().map(|gallery| gallery.name));
        refuse!(
            "gallery",
            "there is no gallery `{name}`; expected one of {names}"
        );
    };
    let chosen = gallery.families.iter().find(|known| known.name == family);
    if chosen.is_none() && family != ALL_FAMILIES {
        let names = list(gallery.families.iter().map(|family| family.name));
        refuse!(
            "family",
            "`{name}` has no family `{family}`; expected one of {ALL_FAMILIES}, {names}"
        );
    }
    Ok(Play::Gallery(Selection {
        gallery,
        family: chosen,
        profile: keys.profile.clone(),
    }))
}

/// Returns the file's name for error messages, the scenario's name, and the text.
///
/// # Errors
/// There is no such scenario, or the file cannot be read.
pub fn text_of(source: &Source) -> Result<(String, String, String), Error> {
    let refuse = |file: &str, message| Error::new(file, Position::Whole, message);
    match source {
        Source::Text { name, text } => Ok((name.clone(), stem(name), text.clone())),
        Source::Builtin(name) => {
            let text = builtin::text(name).ok_or_else(|| {
                let names = list(builtin::list().map(|(name, _)| name));
                let message =
                    format!("there is no such built-in scenario; expected one of {names}");
                refuse(name, message)
            })?;
            Ok((format!("{name}.toml"), name.clone(), text.to_owned()))
        }
        Source::File(path) => {
            let file = path.display().to_string();
            let unread = |error| refuse(&file, format!("cannot be read: {error}"));
            let len = std::fs::metadata(path).map_err(unread)?.len();
            if len > LARGEST_FILE {
                let message = format!(
                    "a scenario of {len} octets is too large; at most {LARGEST_FILE} are allowed"
                );
                return Err(refuse(&file, message));
            }
            let text = std::fs::read_to_string(path).map_err(unread)?;
            let name = stem(&file);
            Ok((file, name, text))
        }
    }
}

fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name).to_owned()
}
