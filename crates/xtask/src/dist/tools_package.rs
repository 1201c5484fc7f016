//! The package of the three tools: programs, manuals, completions, and the configuration and
//! service of fcn-top.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Outcome;
use crate::process;

use super::binaries::TOOLS;
use super::deb::{Control, Package};
use super::origin::Origin;
use super::{elf, notices};

/// The package's name.
pub(super) const NAME: &str = "fcn-tools";

const DESCRIPTION: &str = "RoCEv2 fast congestion notification: monitor, generator, replay
 fcn-top shows which senders are notified of congestion, by whom, how often,
 and whether they obey, on interfaces or in captures, and serves metrics for
 Prometheus.
 fcn-gen plays congestion scenarios into captures or onto a link, and
 fcn-replay puts captures back onto a link, with AF_XDP where possible.";

/// Installed paths, and their sources in the project's folder.
const FILES: [(&str, &str); 6] = [
    (
        "usr/lib/systemd/system/fcn-top.service",
        "docs/deploy/fcn-top.service",
    ),
    ("usr/share/fcn-tools/alerts.yml", "docs/deploy/alerts.yml"),
    (
        "usr/share/fcn-tools/daemonset.yaml",
        "docs/deploy/daemonset.yaml",
    ),
    (
        "usr/share/fcn-tools/Containerfile",
        "docs/deploy/Containerfile",
    ),
    (
        "usr/share/fcn-tools/grafana/fcn-top.json",
        "fcn-top/grafana/fcn-top.json",
    ),
    ("usr/share/doc/fcn-tools/packages.md", "docs/packages.md"),
];

/// Builds the package; returns its path.
pub(super) fn make(
    root: &Path,
    tools: &[PathBuf; 3],
    shared: &Path,
    origin: &Origin,
    output: &Path,
) -> Outcome<PathBuf> {
    let mut package = Package::new(NAME, origin)?;
    let mut depends = vec![
        "debconf (>= 0.5) | debconf-2.0".to_owned(),
        "libcap2-bin".to_owned(),
        "passwd".to_owned(),
    ];
    for (tool, name) in tools.iter().zip(TOOLS) {
        package.add_file(&format!("usr/bin/{name}"), tool, 0o755)?;
        depends.extend(elf::depends(tool)?);
    }
    depends.sort();
    depends.dedup();
    for path in below(shared)? {
        let content = fs_err::read(shared.join(&path))?;
        match path.starts_with("man/") {
            true => package.add_compressed(&format!("usr/share/{path}.gz"), &content)?,
            false => package.add(&format!("usr/share/{path}"), &content, 0o644)?,
        }
    }
    for (to, from) in FILES {
        package.add_file(to, &root.join(from), 0o644)?;
    }
    for tool in TOOLS {
        let readme = root.join(tool).join("README.md");
        package.add_file(&format!("usr/share/doc/{NAME}/{tool}.md"), &readme, 0o644)?;
    }
    package.add(
        &format!("usr/share/doc/{NAME}/copyright"),
        include_bytes!("debian/copyright"),
        0o644,
    )?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let to = format!("usr/share/doc/{NAME}/{licence}");
        package.add_file(&to, &root.join(licence), 0o644)?;
    }
    let notices = notices::text(root, &TOOLS)?;
    package.add_compressed(
        &format!("usr/share/doc/{NAME}/crates.gz"),
        notices.as_bytes(),
    )?;
    let config = process::stdout(Command::new(&tools[2]).arg("--print-config"))?;
    package.add_configuration("etc/fcn-top/config.toml", config.as_bytes())?;
    package.add_configuration("etc/default/fcn-top", include_bytes!("debian/default"))?;
    package.add_script("templates", include_str!("debian/templates"), 0o644)?;
    package.add_script("config", include_str!("debian/config"), 0o755)?;
    package.add_script("postinst", include_str!("debian/postinst"), 0o755)?;
    package.add_script("prerm", include_str!("debian/prerm"), 0o755)?;
    package.add_script("postrm", include_str!("debian/postrm"), 0o755)?;
    let control = Control {
        fields: "",
        depends,
        description: DESCRIPTION,
    };
    package.finish(&control, output)
}

/// Returns the paths of all files below a folder, in order.
fn below(folder: &Path) -> Outcome<Vec<String>> {
    let mut find = Command::new("find");
    find.current_dir(folder)
        .args([".", "-type", "f", "-printf", "%P\\n"]);
    let text = process::stdout(&mut find)?;
    let mut paths: Vec<String> = text.lines().map(str::to_owned).collect();
    paths.sort();
    Ok(paths)
}
