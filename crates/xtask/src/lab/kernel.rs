//! The guest's kernel: its image, and the modules that a driver needs in the order in which they load.
//! Not here: where it comes from (`apt.rs`), or how it boots (`machine.rs`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::unpack;
use crate::failure::{Failure, Outcome};
use crate::process;

/// A kernel image and its modules.
pub(super) struct Kernel {
    image: PathBuf,
    /// The folder that has the version's name; `None` where all is built in.
    modules: Option<PathBuf>,
}

/// A module, ready to load.
pub(super) struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its bytes, not compressed.
    pub bytes: Vec<u8>,
}

impl Kernel {
    /// The kernel of packages unpacked in a folder.
    pub(super) fn unpacked(folder: &Path) -> Outcome<Self> {
        let not_there = || {
            Failure::new(format!("no kernel with modules is in {}", folder.display()))
                .todo("--refresh fetches it anew; --kernel names another")
        };
        // With or without merged /usr.
        let modules = ["usr/lib/modules", "lib/modules"]
            .iter()
            .filter_map(|at| folder.join(at).read_dir().ok())
            .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
            .find(|path| path.join("kernel").is_dir())
            .ok_or_else(not_there)?;
        let version = modules.file_name().unwrap_or_default().to_string_lossy();
        let boot = folder.join(format!("boot/vmlinuz-{version}"));
        let image = [modules.join("vmlinuz"), boot]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(not_there)?;
        Ok(Self {
            image,
            modules: Some(modules),
        })
    }

    /// The kernel that the options name: packages, or an image and the folder of its modules.
    pub(super) fn given(paths: &[PathBuf], modules: Option<&Path>, folder: &Path) -> Outcome<Self> {
        if let Some(path) = paths.iter().find(|path| !path.is_file()) {
            return Err(Failure::new(format!(
                "--kernel: {} is no file",
                path.display()
            )));
        }
        let packed = |path: &&PathBuf| path.extension().is_some_and(|e| e == "deb");
        match (paths.iter().filter(packed).count(), paths, modules) {
            (0, [image], modules) => {
                if let Some(path) = modules.filter(|path| !path.join("kernel").is_dir()) {
                    return Err(Failure::new(format!(
                        "--modules: {} has no folder `kernel`",
                        path.display()
                    ))
                    .todo("name the folder …/lib/modules/VERSION"));
                }
                Ok(Self {
                    image: image.clone(),
                    modules: modules.map(Path::to_path_buf),
                })
            }
            (count, _, None) if count == paths.len() => {
                process::need("dpkg-deb", "dpkg")?;
                let unpacked = folder.join("kernel-given");
                unpack(paths, &unpacked)?;
                Self::unpacked(&unpacked)
            }
            _ => Err(Failure::new("--kernel: these are not one kernel")
                .todo("name .deb files only, or one kernel image with --modules for its modules")),
        }
    }

    /// The image to boot.
    pub(super) fn image(&self) -> &Path {
        &self.image
    }

    /// "kernel 7.2.13+deb14-amd64"
    pub(super) fn describe(&self) -> String {
        let named = self.modules.as_deref().unwrap_or(&self.image);
        let name = named.file_name().unwrap_or_default();
        format!("kernel {}", name.to_string_lossy())
    }

    /// These modules and what they depend on, each after what it depends on. One that has no file is taken for built
    /// in: the guest finds no interface if it is not.
    pub(super) fn modules(&self, names: &[&str]) -> Outcome<Vec<Module>> {
        let Some(folder) = &self.modules else {
            return Ok(Vec::new());
        };
        let mut files = HashMap::new();
        index(&folder.join("kernel"), &mut files)?;
        let mut loaded = Vec::new();
        for name in names {
            add(name, &files, &mut loaded)?;
        }
        Ok(loaded)
    }
}

/// The files of all modules below a folder by the module's name.
fn index(folder: &Path, files: &mut HashMap<String, PathBuf>) -> Outcome {
    let unreadable = |e| Failure::io("read", folder, &e);
    for entry in folder.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        // A link may lead round in circles.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            index(&path, files)?;
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            files.insert(normal(name), path);
        }
    }
    Ok(())
}

/// Files are named with hyphens or underscores, modules with underscores.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn add(name: &str, files: &HashMap<String, PathBuf>, loaded: &mut Vec<Module>) -> Outcome {
    let name = normal(name);
    let Some(file) = files.get(&name) else {
        return Ok(());
    };
    if loaded.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let bytes = plain(file)?;
    // Kernels are built without circles among modules, so this ends.
    for dependency in dependencies(&bytes) {
        add(&dependency, files, loaded)?;
    }
    loaded.push(Module { name, bytes });
    Ok(())
}

/// A module's bytes, whichever way it is compressed.
fn plain(file: &Path) -> Outcome<Vec<u8>> {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    let (program, package) = match extension.as_ref() {
        "xz" => ("xz", "xz-utils"),
        "zst" => ("zstd", "zstd"),
        "gz" => ("gzip", "gzip"),
        _ => return std::fs::read(file).map_err(|e| Failure::io("read", file, &e)),
    };
    process::need(program, package)?;
    let mut command = Command::new(program);
    command.args(["--decompress", "--stdout"]).arg(file);
    let output = process::output(&mut command)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(process::failed(&command, &output))
    }
}

/// The names in a module's `depends=`, which its section .modinfo has between zero bytes. Packages come without the
/// list (modules.dep) that installing makes.
fn dependencies(module: &[u8]) -> Vec<String> {
    module
        .split(|byte| *byte == 0)
        .find_map(|text| text.strip_prefix(b"depends="))
        .map(|names| String::from_utf8_lossy(names).into_owned())
        .unwrap_or_default()
        .split(',')
        .filter(|name| !name.is_empty())
        .map(normal)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_module_depends_on() {
        assert_eq!(
            dependencies(b"\x7fELF..\0license=GPL\0depends=dca,i2c-algo-bit\0name=igb\0"),
            ["dca", "i2c_algo_bit"]
        );
        assert!(dependencies(b"\0depends=\0name=failover\0").is_empty());
        assert!(dependencies(b"no module").is_empty());
    }

    #[test]
    fn loads_what_a_module_depends_on_before_it() {
        let folder = std::env::temp_dir().join(format!("fcn-lab-modules-{}", std::process::id()));
        let net = folder.join("kernel/drivers/net");
        std::fs::create_dir_all(&net).unwrap();
        for (file, bytes) in [
            ("top.ko", "\0depends=mid-dle,low\0"),
            ("mid-dle.ko", "\0depends=low\0"),
            ("low.ko", "\0depends=\0"),
            ("other.ko", "\0depends=top\0"),
        ] {
            std::fs::write(net.join(file), bytes).unwrap();
        }
        let kernel = Kernel {
            image: PathBuf::new(),
            modules: Some(folder.clone()),
        };
        let modules = kernel.modules(&["built_in", "top"]);
        std::fs::remove_dir_all(&folder).unwrap();
        let names: Vec<_> = modules.unwrap().into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["low", "mid_dle", "top"]);
    }

    #[test]
    fn a_kernel_that_is_not_there_is_named() {
        let given = |paths: &[&str]| {
            let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
            Kernel::given(&paths, None, Path::new("/nowhere"))
                .err()
                .map(|failure| failure.to_string())
        };
        assert_eq!(
            given(&["/no/such.deb"]).as_deref(),
            Some("--kernel: /no/such.deb is no file")
        );
        let two = given(&["/proc/self/status", "/proc/self/stat"]).unwrap();
        assert!(
            two.starts_with("--kernel: these are not one kernel"),
            "{two}"
        );
        assert!(given(&["/proc/self/status"]).is_none());
    }
}
