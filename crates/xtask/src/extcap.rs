//! fcn-gen in Wireshark's extcap folder, from where Wireshark starts it: the built-in scenarios are interfaces then.
//! Not here: what it says and does there.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::{cargo, files, process, wireshark};

/// Where this Wireshark looks for programs that capture for it.
struct Folders {
    /// For everyone.
    global: Option<PathBuf>,
    /// For this user; Wireshark 4.0 has none.
    personal: Option<PathBuf>,
}

impl Folders {
    fn ask() -> Outcome<Self> {
        Ok(Self {
            global: wireshark::folder(&["Global Extcap path", "Extcap path"])?,
            personal: wireshark::folder(&["Personal Extcap path"])?,
        })
    }

    /// Where the program goes for this user: as the plugin does, for root where everyone has it.
    fn for_user(self, root: bool) -> Outcome<PathBuf> {
        match (root, self.personal, self.global) {
            (false, Some(folder), _) | (true, _, Some(folder)) => {
                Ok(folder.join(cargo::GENERATOR))
            }
            (false, None, Some(global)) => Err(Failure::new(format!(
                "this Wireshark starts capturing programs of {} alone, which only root may write",
                global.display()
            ))
            .todo(format!(
                "run this as root, or put {} into a folder of your own and name it in WIRESHARK_EXTCAP_DIR",
                cargo::GENERATOR
            ))),
            _ => Err(Failure::new("`tshark -G folders` names no extcap folder")
                .todo("look at what it prints")),
        }
    }
}

/// Builds fcn-gen and installs it for this user, and says where.
///
/// # Errors
/// It cannot be built, or not be put there, or Wireshark does not list it.
pub fn install() -> Outcome<String> {
    // Before it is built, which takes a while.
    let target = Folders::ask()?.for_user(process::is_root())?;
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

/// Removes fcn-gen from where this user's would be, if it is there; says from where.
///
/// # Errors
/// It could not be removed.
pub fn uninstall() -> Outcome<Option<String>> {
    let Ok(target) = Folders::ask()?.for_user(process::is_root()) else {
        return Ok(None);
    };
    let removed = files::remove(&target)?;
    Ok(removed.then(|| format!("removed {}", target.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(personal: Option<&str>, global: Option<&str>, root: bool) -> Outcome<PathBuf> {
        let folders = Folders {
            global: global.map(PathBuf::from),
            personal: personal.map(PathBuf::from),
        };
        folders.for_user(root)
    }

    #[test]
    fn everyone_has_what_root_installs() {
        let (home, lib) = (Some("/home"), Some("/lib"));
        assert_eq!(place(home, lib, false), Ok("/home/fcn-gen".into()));
        assert_eq!(place(home, lib, true), Ok("/lib/fcn-gen".into()));
        assert_eq!(place(None, lib, true), Ok("/lib/fcn-gen".into()));
        let said = place(None, lib, false).unwrap_err().to_string();
        assert!(
            said.contains("/lib alone") && said.contains("WIRESHARK_EXTCAP_DIR"),
            "{said}"
        );
        assert!(place(None, None, true).is_err());
    }
}
