//! Installs fcn-gen in Wireshark's extcap folder, from which Wireshark runs it: the built-in
//! scenarios then appear as interfaces.
//! Not here: its behaviour as an extcap program.

use std::path::PathBuf;

use anyhow::bail;

use crate::failure::Outcome;
use crate::{cargo, files, process, wireshark};

/// Returns the folders where this Wireshark looks for capture programs: for everyone, and for this
/// user; Wireshark 4.0 does not have the latter.
fn folders() -> Outcome<[Option<PathBuf>; 2]> {
    let global = wireshark::folder(&["Global Extcap path", "Extcap path"])?;
    Ok([global, wireshark::folder(&["Personal Extcap path"])?])
}

/// Returns the program's location for this user: as for the plugin, root installs it for everyone.
fn place(folders: [Option<PathBuf>; 2], root: bool) -> Outcome<PathBuf> {
    match folders {
        [Some(folder), _] if root => Ok(folder.join(cargo::GENERATOR)),
        [_, Some(folder)] if !root => Ok(folder.join(cargo::GENERATOR)),
        [Some(global), None] => bail!(
            "this Wireshark runs extcap programs only from {}, which only root may write\n  what to do: run this as root, \
             or put {} into a folder of your own and name it in WIRESHARK_EXTCAP_DIR",
            global.display(),
            cargo::GENERATOR
        ),
        _ => bail!("`tshark -G folders` names no extcap folder"),
    }
}

/// Builds fcn-gen and installs it for this user; returns a message with its location.
///
/// # Errors
/// It cannot be built, or cannot be written there, or Wireshark does not list it.
pub fn install() -> Outcome<String> {
    // Before the build, which takes a while.
    let target = place(folders()?, process::is_root())?;
    let program = cargo::build_tool(cargo::GENERATOR, true)?;
    files::replace(&program, &target, 0o755)?;
    let target = target.display().to_string();
    let todo = format!("see what {target} --extcap-interfaces says");
    let listed = wireshark::check_loaded(cargo::GENERATOR, target.as_ref(), &todo)?;
    Ok(format!(
        "Wireshark starts {target} {}: its scenarios are interfaces (tshark -D)",
        listed.version
    ))
}

/// Removes fcn-gen from this user's location, if it is there; returns a message with the location.
///
/// # Errors
/// It could not be removed.
pub fn uninstall() -> Outcome<Option<String>> {
    let Ok(target) = place(folders()?, process::is_root()) else {
        return Ok(None);
    };
    let removed = files::remove(&target)?;
    Ok(removed.then(|| format!("removed {}", target.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(personal: Option<&str>, global: Option<&str>, root: bool) -> Outcome<PathBuf> {
        place(
            [global.map(PathBuf::from), personal.map(PathBuf::from)],
            root,
        )
    }

    #[test]
    fn root_installs_for_everyone() {
        let (home, lib) = (Some("/home"), Some("/lib"));
        assert_eq!(
            placed(home, lib, false).unwrap(),
            PathBuf::from("/home/fcn-gen")
        );
        assert_eq!(
            placed(home, lib, true).unwrap(),
            PathBuf::from("/lib/fcn-gen")
        );
        assert_eq!(
            placed(None, lib, true).unwrap(),
            PathBuf::from("/lib/fcn-gen")
        );
        let text = placed(None, lib, false).unwrap_err().to_string();
        assert!(
            text.contains("only from /lib") && text.contains("WIRESHARK_EXTCAP_DIR"),
            "{text}"
        );
        assert!(placed(None, None, true).is_err());
    }
}
