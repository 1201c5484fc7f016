//! A Debian package: a tree of files, the files for dpkg, and the archive that contains both.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Outcome;
use crate::process;

use super::origin::Origin;

/// A package being built.
pub(super) struct Package<'o> {
    tree: tempfile::TempDir,
    origin: &'o Origin,
    name: String,
    octets: u64,
    /// Paths that dpkg does not replace if they were changed.
    configuration: Vec<String>,
}

/// Contents of `control` other than name, version and size.
pub(super) struct Control<'c> {
    /// Further fields, one per line.
    pub fields: &'c str,
    /// Dependencies.
    pub depends: Vec<String>,
    /// One summary line, and the lines below it.
    pub description: &'c str,
}

impl<'o> Package<'o> {
    pub(super) fn new(name: &str, origin: &'o Origin) -> Outcome<Self> {
        let tree = tempfile::tempdir()?;
        fs_err::set_permissions(tree.path(), PermissionsExt::from_mode(0o755))?;
        let mut package = Self {
            tree,
            origin,
            name: name.to_owned(),
            octets: 0,
            configuration: Vec::new(),
        };
        let (version, date, by) = (&origin.version, &origin.date, &origin.maintainer);
        let changes = format!(
            "{name} ({version}) unstable; urgency=medium\n\n  * As of the commit of this date.\n\n -- {by}  {date}\n"
        );
        package.add_compressed(
            &format!("usr/share/doc/{name}/changelog.gz"),
            changes.as_bytes(),
        )?;
        Ok(package)
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, content: &[u8], mode: u32) -> Outcome {
        let target = self.tree.path().join(path);
        for folder in target
            .ancestors()
            .skip(1)
            .take_while(|f| *f != self.tree.path())
        {
            fs_err::create_dir_all(folder)?;
            fs_err::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
        }
        fs_err::write(&target, content)?;
        fs_err::set_permissions(&target, PermissionsExt::from_mode(mode))?;
        self.octets += content.len() as u64;
        Ok(())
    }

    /// Adds a file of this machine.
    pub(super) fn add_file(&mut self, path: &str, from: &Path, mode: u32) -> Outcome {
        self.add(path, &fs_err::read(from)?, mode)
    }

    /// Adds a text as Debian stores manuals and changelogs: compressed, reproducibly.
    pub(super) fn add_compressed(&mut self, path: &str, content: &[u8]) -> Outcome {
        let plain = tempfile::NamedTempFile::new()?;
        fs_err::write(plain.path(), content)?;
        let mut gzip = Command::new("gzip");
        let output = process::output(gzip.args(["-9", "--no-name", "--stdout"]).arg(plain.path()))?;
        anyhow::ensure!(output.status.success(), process::failed(&gzip, &output));
        self.add(path, &output.stdout, 0o644)
    }

    /// Adds a configuration file, which administrators may change.
    pub(super) fn add_configuration(&mut self, path: &str, content: &[u8]) -> Outcome {
        self.configuration.push(format!("/{path}\n"));
        self.add(path, content, 0o644)
    }

    /// Adds a script or another file for dpkg itself.
    pub(super) fn add_script(&mut self, name: &str, content: &str, mode: u32) -> Outcome {
        let octets = self.octets;
        self.add(&format!("DEBIAN/{name}"), content.as_bytes(), mode)?;
        self.octets = octets;
        Ok(())
    }

    /// Writes the package into a folder, and returns its path.
    pub(super) fn finish(mut self, control: &Control<'_>, folder: &Path) -> Outcome<PathBuf> {
        let Control {
            fields,
            depends,
            description,
        } = control;
        let (name, version, by) = (&self.name, &self.origin.version, &self.origin.maintainer);
        let (kilobytes, depends) = (self.octets.div_ceil(1024), depends.join(", "));
        let text = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: {by}\nInstalled-Size: {kilobytes}\n\
             Depends: {depends}\nSection: net\nPriority: optional\n{fields}Description: {description}\n"
        );
        let file = folder.join(format!("{name}_{version}_amd64.deb"));
        self.add_script("control", &text, 0o644)?;
        if !self.configuration.is_empty() {
            let text = self.configuration.concat();
            self.add_script("conffiles", &text, 0o644)?;
        }
        let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
        let sums = process::stdout(
            Command::new("sh")
                .args(["-c", sums])
                .current_dir(self.tree.path()),
        )?;
        self.add_script("md5sums", &sums, 0o644)?;
        let mut build = Command::new("dpkg-deb");
        build.env("SOURCE_DATE_EPOCH", self.origin.epoch.to_string());
        // One thread: the output of xz depends on how it divides its work among several.
        build.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]);
        process::stdout(build.arg(self.tree.path()).arg(&file))?;
        Ok(file)
    }
}
