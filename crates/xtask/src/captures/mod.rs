//! `cargo xtask captures`: the sample captures, byte for byte the same each time, their ground truths and decodings.
//!
//! `samples.rs` says which, `generator.rs` has `fcn-gen` write them, `decoding.rs` has tshark decode them, `fields.rs` picks
//! what is the plugin's out of that, `index.rs` lists them.
//! Not here: what is in them, which is `fcn-gen`'s business.

mod decoding;
mod fields;
mod generator;
mod index;
mod samples;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use crate::failure::Outcome;
use crate::tshark::{TempDir, Tshark};
use crate::{cargo, packages};

use fields::Protocols;

pub use fields::{COLUMNS, tabs};
pub use generator::Generator;
pub use samples::{Sample, Scene, all};

/// The folder of the captures, below the project's root.
pub const FOLDER: &str = "captures";

/// The Wireshark whose decodings are committed. Others say the same things of other protocols in other words; what the
/// plugin says is compared with each.
const DECODED_BY: (u32, u32) = (4, 0);

/// Writes captures and decodings, or with `check` compares them; returns what was done, in words.
///
/// # Errors
/// What cannot be built, decoded or written, or is not as it should be.
pub fn run(check_only: bool) -> Outcome<String> {
    packages::ensure(packages::PLUGIN)?;
    let tshark = Tshark::with_plugin(&cargo::build_plugin(false)?)?;
    let generator = Generator::build()?;
    let folder = folder()?;
    if check_only {
        let count = check(&folder, &generator, Some(&tshark))?;
        return Ok(format!(
            "{count} captures and their decodings are as committed"
        ));
    }
    let (major, minor) = DECODED_BY;
    ensure!(
        decodes_as_committed(&tshark)?,
        "Wireshark {} is installed; decodings are written with {major}.{minor}\n  what to do: --check compares what is the \
         same with every Wireshark",
        tshark.version()?
    );
    let count = write(&folder, &generator, Some(&tshark))?;
    let folder = folder.display();
    Ok(format!(
        "{count} captures and their decodings written to {folder}"
    ))
}

/// The captures' folder.
///
/// # Errors
/// The project's root cannot be found.
pub fn folder() -> Outcome<PathBuf> {
    Ok(cargo::root()?.join(FOLDER))
}

/// Writes captures, ground truths and index into `folder`; with `tshark`, the decodings beside them.
///
/// # Errors
/// What cannot be written or decoded.
pub fn write(folder: &Path, generator: &Generator, tshark: Option<&Tshark>) -> Outcome<usize> {
    fs_err::create_dir_all(folder)?;
    let decoder = match tshark {
        Some(tshark) => Some((
            tshark,
            Protocols::of(tshark)?,
            decodes_as_committed(tshark)?,
        )),
        None => None,
    };
    let samples = all();
    for sample in &samples {
        generator.write(sample, folder)?;
        if let Some((tshark, protocols, as_committed)) = &decoder {
            let capture = folder.join(sample.file_name());
            if *as_committed {
                let text = decoding::decode(tshark, sample, &capture)?;
                fs_err::write(folder.join(sample.decoding_name()), &text)?;
            }
            let text = fields::decode(tshark, protocols, sample, &capture)?;
            fs_err::write(folder.join(sample.fields_name()), &text)?;
        }
    }
    fs_err::write(folder.join(index::NAME), &index::page(folder, generator)?)?;
    Ok(samples.len())
}

fn decodes_as_committed(tshark: &Tshark) -> Outcome<bool> {
    Ok(tshark.version()?.minor() == DECODED_BY)
}

/// Compares what stands in `folder` with what [`write()`] would write; with `tshark`, the decodings too.
///
/// # Errors
/// What differs, is missing or should not be there, file by file, or what cannot be generated or decoded.
pub fn check(folder: &Path, generator: &Generator, tshark: Option<&Tshark>) -> Outcome<usize> {
    let fresh = TempDir::new(false)?;
    write(fresh.path(), generator, tshark)?;
    let as_committed = tshark.map(decodes_as_committed).transpose()?;
    let (mut names, mut uncompared) = (vec![index::NAME.to_owned()], Vec::new());
    for sample in all() {
        let (decoding, fields) = (sample.decoding_name(), sample.fields_name());
        let always = [Some(sample.file_name()), sample.truth_name()];
        names.extend(always.into_iter().flatten());
        // Without tshark there are no decodings to compare with, with another Wireshark not all of them.
        for (name, compared) in [
            (decoding, as_committed == Some(true)),
            (fields, tshark.is_some()),
        ] {
            match compared {
                true => names.push(name),
                false => uncompared.push(name),
            }
        }
    }
    let mut wrong = Vec::new();
    for name in &names {
        wrong.extend(compare(&folder.join(name), &fresh.path().join(name)));
    }
    for entry in fs_err::read_dir(folder)?.flatten() {
        let known = names.iter().chain(&uncompared);
        if !known.into_iter().any(|name| entry.file_name() == **name) {
            let path = entry.path();
            wrong.push(format!("{}: belongs to no sample capture", path.display()));
        }
    }
    if !wrong.is_empty() {
        bail!(
            "the sample captures are not as committed:\n  {}\nWhere the change is meant, `cargo xtask captures` writes them anew.",
            wrong.join("\n  ")
        );
    }
    Ok(all().len())
}

/// How a committed file differs from the same file written anew, if it does.
fn compare(committed: &Path, fresh: &Path) -> Option<String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let (is, want) = match (read(committed), read(fresh)) {
        (Ok(is), Ok(want)) => (is, want),
        (Err(e), _) | (_, Err(e)) => return Some(e),
    };
    if is == want {
        return None;
    }
    if committed.extension().is_some_and(|kind| kind == "pcapng") {
        return Some(format!("{}: other octets", committed.display()));
    }
    let (is, want) = (String::from_utf8_lossy(&is), String::from_utf8_lossy(&want));
    let differs = is.lines().zip(want.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(is.lines().count().min(want.lines().count()));
    let show = |text: &str| -> String {
        let found = text.lines().nth(line).unwrap_or("(end)");
        found.chars().take(160).collect()
    };
    Some(format!(
        "{}:{}:\n    committed: {}\n    now:       {}",
        committed.display(),
        line + 1,
        show(&is),
        show(&want)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_line_that_differs() {
        let folder = TempDir::new(false).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs_err::write(&path, text).unwrap();
            path
        };
        let (one, other) = (file("a.txt", "x\ny\n"), file("b.txt", "x\nz\n"));
        assert_eq!(compare(&one, &file("c.txt", "x\ny\n")), None);
        let text = compare(&one, &other).unwrap();
        assert!(
            text.ends_with("a.txt:2:\n    committed: y\n    now:       z"),
            "{text}"
        );
        let longer = compare(&one, &file("d.txt", "x\ny\nw\n")).unwrap();
        assert!(longer.contains("committed: (end)"), "{longer}");
        let binary = compare(&file("a.pcapng", "x"), &file("b.pcapng", "y")).unwrap();
        assert!(binary.ends_with("a.pcapng: other octets"), "{binary}");
        assert!(compare(&folder.path().join("none.txt"), &one).is_some());
    }
}
