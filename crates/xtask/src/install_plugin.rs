//! `cargo xtask install-plugin`: the plugin, built for the installed Wireshark, where that one loads it for this user.
//! Not here: how cargo builds it (`cargo.rs`).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::packages::{self, Use};
use crate::tshark::Tshark;
use crate::wireshark::{self, PLUGIN_FILE, PluginFolders, Version};
use crate::{cargo, extcap, process, profile};

/// What building and loading the plugin needs.
///
/// # Errors
/// Cargo's metadata could not be had.
pub fn needs() -> Outcome<Vec<Use>> {
    let mut uses = vec![Use::Run, Use::Build];
    if cargo::plugin_needs_libclang()? {
        uses.push(Use::Bindgen);
    }
    Ok(uses)
}

/// Checks that the plugin can be built for the Wireshark that is installed, and returns its version.
///
/// # Errors
/// Its version is not supported, or its headers are of another.
pub fn check_version() -> Outcome<Version> {
    let version = wireshark::version()?;
    version.supported()?;
    wireshark::agree(version, wireshark::headers_version()?)?;
    if let Some(gui) = wireshark::program_version("wireshark")?
        && !gui.same_minor(version)
    {
        println!(
            "      note: wireshark is {gui}, tshark {version}: the plugin will load into tshark alone"
        );
    }
    Ok(version)
}

/// Builds and installs the plugin, in `folder` or where Wireshark looks, and says where it is.
///
/// # Errors
/// Anything missing, unsupported, not built, not written or not loaded.
pub fn install(folder: Option<&Path>) -> Outcome<String> {
    // Before any package: headers do not help a version that is not supported.
    if let Some(version) = wireshark::program_version("tshark")? {
        version.supported()?;
    }
    packages::ensure(&needs()?)?;
    let version = check_version()?;
    let library = cargo::build_plugin(true)?;
    // Tried before it replaces one that works.
    drop(Tshark::with_plugin(&library)?);

    let root = process::is_root();
    let (own, other) = PluginFolders::ask()?.for_user(root);
    let folder = folder.map_or(own, Path::to_path_buf);
    let target = folder.join(PLUGIN_FILE);
    replace(&library, &target, 0o644)?;
    let (loaded, said) = wireshark::loaded(PLUGIN_FILE)?;
    match loaded {
        Some(plugin) if wireshark::same_file(&plugin.path, &target) => Ok(format!(
            "Wireshark {version} loads {} {} from {}",
            plugin.file,
            plugin.version,
            plugin.path.display()
        )),
        _ if !is_searched(&folder)? => Ok(format!(
            "wrote {}, which loads into Wireshark {version}; Wireshark does not look there by itself",
            target.display()
        )),
        Some(plugin) => Err(Failure::new(format!(
            "wrote {}, but Wireshark loads {} instead",
            target.display(),
            plugin.path.display()
        ))
        .todo(format!("remove {}", plugin.path.display()))),
        None => Err(Failure::new(format!(
            "wrote {}, but `tshark -G plugins` does not list it{}",
            target.display(),
            process::tail(&said, 8)
        ))
        .todo(format!(
            "see tshark's message; {} must be readable for this user, and no plugin of the name in {}",
            target.display(),
            other.display()
        ))),
    }
}

fn is_searched(folder: &Path) -> Outcome<bool> {
    let (own, other) = PluginFolders::ask()?.for_user(process::is_root());
    Ok(wireshark::same_file(folder, &own) || wireshark::same_file(folder, &other))
}

/// Removes the plugin, from `folder` or from where Wireshark looks, and says from where.
///
/// # Errors
/// There was none, or it could not be removed.
pub fn uninstall(folder: Option<&Path>) -> Outcome<String> {
    let (target, elsewhere) = match folder {
        Some(folder) => (folder.join(PLUGIN_FILE), None),
        None => {
            let (own, other) = PluginFolders::ask()?.for_user(process::is_root());
            (own.join(PLUGIN_FILE), Some(other.join(PLUGIN_FILE)))
        }
    };
    match std::fs::remove_file(&target) {
        Ok(()) => Ok(format!("removed {}", target.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(nothing_there(&target, elsewhere))
        }
        Err(error) => Err(Failure::io("remove", &target, &error)),
    }
}

/// Removes the plugin, the profile and the capturing program, whichever are there, and says from where.
///
/// # Errors
/// There was none of them, or one could not be removed.
pub fn uninstall_all() -> Outcome<String> {
    let others = [profile::uninstall()?, extcap::uninstall()?];
    let others: Vec<String> = others.into_iter().flatten().collect();
    match uninstall(None) {
        Ok(plugin) => Ok([vec![plugin], others].concat().join("\n")),
        // Whoever has the others alone has had the plugin removed before.
        Err(_) if !others.is_empty() => Ok(others.join("\n")),
        Err(failure) => Err(failure),
    }
}

fn nothing_there(target: &Path, elsewhere: Option<PathBuf>) -> Failure {
    let failure = Failure::new(format!(
        "no plugin is installed: there is no {}",
        target.display()
    ));
    match elsewhere.filter(|path| path.exists()) {
        Some(path) if process::is_root() => failure.todo(format!(
            "nothing; root never loads {}, run this as its user to remove it",
            path.display()
        )),
        Some(path) => failure.todo(format!("run this as root to remove {}", path.display())),
        None => failure.todo("nothing, or name its folder with --dir"),
    }
}

/// Puts a copy in place in one step: a Wireshark that starts meanwhile loads the old one or the new one.
pub(crate) fn replace(file: &Path, target: &Path, mode: u32) -> Outcome {
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("create", folder, &e))?;
    // Not named *.so: Wireshark would load it.
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let fresh = folder.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::copy(file, &fresh)
        .and_then(|_| std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(mode)))
        .and_then(|()| std::fs::rename(&fresh, target));
    written.map_err(|error| {
        // It may not exist; the error that matters is the first.
        let _ = std::fs::remove_file(&fresh);
        Failure::io("write", target, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("fcn-xtask-install-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn replaces_and_leaves_nothing_else_behind() {
        let folder = folder("replace");
        let library = folder.join("lib.so");
        let target = folder.join("deep/epan").join(PLUGIN_FILE);
        for content in ["one", "two"] {
            std::fs::write(&library, content).unwrap();
            replace(&library, &target, 0o644).unwrap();
            assert_eq!(std::fs::read_to_string(&target).unwrap(), content);
        }
        assert_eq!(
            target.metadata().unwrap().permissions().mode() & 0o777,
            0o644
        );
        assert_eq!(target.parent().unwrap().read_dir().unwrap().count(), 1);
        assert!(replace(&folder.join("none"), &target, 0o644).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "two");
        assert_eq!(target.parent().unwrap().read_dir().unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn uninstalls_once() {
        let folder = folder("uninstall");
        std::fs::write(folder.join(PLUGIN_FILE), "x").unwrap();
        assert!(uninstall(Some(&folder)).unwrap().starts_with("removed "));
        let text = uninstall(Some(&folder)).unwrap_err().to_string();
        assert!(
            text.starts_with("no plugin is installed: there is no "),
            "{text}"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
