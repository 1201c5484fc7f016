//! Installs the Wireshark profile of `dissector/profile` into the user's settings, and removes it,
//! keeping the user's changes.
//! Not here: its content.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Outcome;
use crate::{cargo, wireshark};

/// Name of the profile in Wireshark's list, and of its folder.
pub const NAME: &str = "fcn";

/// File that Wireshark rewrites each time it is closed: it contains no user changes, and nothing is
/// lost with it.
const OWN: &str = "recent";

/// Returns the folder with the profile's files.
///
/// # Errors
/// The project's root was not found.
pub fn source() -> Outcome<PathBuf> {
    Ok(cargo::root()?.join("dissector/profile").join(NAME))
}

/// Returns the folder where this Wireshark looks for this user's profile.
///
/// # Errors
/// tshark failed, or did not name the folder.
fn target() -> Outcome<PathBuf> {
    let settings = wireshark::folder(&["Personal configuration"])?;
    let settings = settings.context("`tshark -G folders` names no folder of personal settings")?;
    Ok(settings.join("profiles").join(NAME))
}

/// Installs the profile for this user, and returns a message with its location and the old files
/// that were kept.
///
/// # Errors
/// Its files cannot be read, or cannot be written there.
pub fn install() -> Outcome<String> {
    let target = target()?;
    let kept = put(&source()?, &target)?;
    let mut text = format!(
        "the profile is in {}: wireshark -C {NAME}",
        target.display()
    );
    for (file, kept) in kept {
        text += &format!("\n  {file} was changed there; the old one is kept as {kept}");
    }
    Ok(text)
}

/// Removes this user's profile, if there is one; returns a message with its location and the files
/// that were kept.
///
/// # Errors
/// It could not be removed.
pub fn uninstall() -> Outcome<Option<String>> {
    let target = target()?;
    if !target.is_dir() {
        return Ok(None);
    }
    let kept = take(&source()?, &target)?;
    let (target, names) = (target.display(), kept.join(", "));
    Ok(Some(match kept.is_empty() {
        true => format!("removed {target}"),
        false => format!(
            "removed the profile from {target}; kept what is not as it was installed: {names}"
        ),
    }))
}

/// Returns the names of the files in a folder, sorted.
fn names(folder: &Path) -> Outcome<Vec<String>> {
    let name = |entry: fs_err::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = fs_err::read_dir(folder)?.flatten().map(name).collect();
    names.sort();
    Ok(names)
}

/// Copies the files of `source` into `target`; returns those that existed with different content,
/// each with its new name.
fn put(source: &Path, target: &Path) -> Outcome<Vec<(String, String)>> {
    fs_err::create_dir_all(target)?;
    let mut kept = Vec::new();
    for name in names(source)? {
        let (ours, place) = (fs_err::read(source.join(&name))?, target.join(&name));
        if place.exists() {
            if name == OWN || fs_err::read(&place)? == ours {
                continue;
            }
            let other = (1..)
                .map(|number| format!("{name}.old-{number}"))
                .find(|other| !target.join(other).exists())
                .unwrap_or_default();
            fs_err::rename(&place, target.join(&other))?;
            kept.push((name, other));
        }
        fs_err::write(place, ours)?;
    }
    Ok(kept)
}

/// Removes the files of `source` from `target` again; returns the names of the files left there.
fn take(source: &Path, target: &Path) -> Outcome<Vec<String>> {
    for name in names(source)? {
        let (ours, place) = (source.join(&name), target.join(&name));
        if place.exists() && (name == OWN || fs_err::read(&place)? == fs_err::read(ours)?) {
            fs_err::remove_file(place)?;
        }
    }
    let left = names(target)?;
    if left.is_empty() {
        fs_err::remove_dir(target)?;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tshark::TempDir;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    fn text(folder: &Path, name: &str) -> String {
        std::fs::read_to_string(folder.join(name)).unwrap()
    }

    #[test]
    fn user_changes_are_kept() {
        let folder = TempDir::new(false).unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("a/target"));
        write(&source, "colours", "ours");
        write(&source, OWN, "ours");
        assert_eq!(put(&source, &target).unwrap(), []);
        assert_eq!(text(&target, "colours"), "ours");
        assert_eq!(put(&source, &target).unwrap(), []);
        for number in 1..=2 {
            write(&target, "colours", &format!("theirs {number}"));
            write(&target, OWN, "Wireshark's");
            let name = format!("colours.old-{number}");
            let kept = vec![("colours".to_owned(), name.clone())];
            assert_eq!(put(&source, &target).unwrap(), kept);
            assert_eq!(text(&target, "colours"), "ours");
            assert_eq!(text(&target, OWN), "Wireshark's");
            assert_eq!(text(&target, &name), format!("theirs {number}"));
        }
        let left = ["colours.old-1", "colours.old-2"].map(str::to_owned);
        assert_eq!(take(&source, &target).unwrap(), left);
        assert_eq!(names(&target).unwrap(), left);
    }

    #[test]
    fn unchanged_profiles_are_removed_completely() {
        let folder = TempDir::new(false).unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        write(&source, "colours", "ours");
        write(&source, OWN, "ours");
        put(&source, &target).unwrap();
        write(&target, OWN, "Wireshark's");
        assert!(take(&source, &target).unwrap().is_empty());
        assert!(!target.exists());
        put(&source, &target).unwrap();
        write(&target, "colours", "theirs");
        assert_eq!(take(&source, &target).unwrap(), ["colours"]);
        assert_eq!(text(&target, "colours"), "theirs");
    }
}
