//! `cargo xtask captures`: the sample captures, byte for byte the same each time, their ground truths and decodings.
//!
//! `samples.rs` says which, `generator.rs` has `fcn-gen` write them, `decoding.rs` has tshark decode them, `ours.rs` picks what is
//! the plugin's out of that, `index.rs` lists them.
//! Not here: what is in them, which is `fcn-gen`'s business.

mod decoding;
mod generator;
mod index;
mod ours;
mod samples;
mod written;

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::tshark::{TempDir, Tshark};
use crate::{cargo, packages};

use ours::Ours;

pub use generator::{Generator, Scenario};
pub use samples::{ALL, Sample, Scene};
pub use written::Written;

/// The folder of the captures, below the project's root.
pub const FOLDER: &str = "captures";

/// The Wireshark whose decodings are committed. Others say the same things of other protocols in other words; what is
/// ours is compared with each.
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
    if !decodes_as_committed(&tshark)? {
        let (major, minor) = DECODED_BY;
        return Err(Failure::new(format!(
            "Wireshark {} is installed; decodings are written with {major}.{minor}",
            tshark.version()?
        ))
        .todo("--check compares what is the same with every Wireshark"));
    }
    let count = write(&folder, &generator, Some(&tshark))?;
    Ok(format!(
        "{count} captures and their decodings written to {}",
        folder.display()
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
        Some(tshark) => Some((tshark, Ours::of(tshark)?, decodes_as_committed(tshark)?)),
        None => None,
    };
    for sample in ALL {
        generator.write(sample, folder)?;
        if let Some((tshark, ours, as_committed)) = &decoder {
            let capture = folder.join(sample.file_name());
            if *as_committed {
                let text = decoding::decode(tshark, sample, &capture)?;
                fs_err::write(folder.join(sample.decoding_name()), &text)?;
            }
            let text = ours::decode(tshark, ours, sample, &capture)?;
            fs_err::write(folder.join(sample.fields_name()), &text)?;
        }
    }
    fs_err::write(folder.join(index::NAME), &index::page(folder, generator)?)?;
    Ok(ALL.len())
}

fn decodes_as_committed(tshark: &Tshark) -> Outcome<bool> {
    let version = tshark.version()?;
    Ok((version.major, version.minor) == DECODED_BY)
}

/// Compares what stands in `folder` with what [`write()`] would write; with `tshark`, the decodings too.
///
/// # Errors
/// What differs, is missing or should not be there, file by file, or what cannot be generated or decoded.
pub fn check(folder: &Path, generator: &Generator, tshark: Option<&Tshark>) -> Outcome<usize> {
    let fresh = TempDir::new(false)?;
    write(fresh.path(), generator, tshark)?;
    let names = file_names();
    let as_committed = tshark.map(decodes_as_committed).transpose()?;
    // Without tshark there are no decodings to compare with, with another Wireshark not all of them.
    let unwritten = |sample: &Sample| match as_committed {
        Some(true) => Vec::new(),
        Some(false) => vec![sample.decoding_name()],
        None => vec![sample.decoding_name(), sample.fields_name()],
    };
    let unwritten: Vec<String> = ALL.iter().flat_map(unwritten).collect();
    let mut wrong: Vec<String> = names
        .iter()
        .filter(|name| !unwritten.contains(name))
        .map(|name| (folder.join(name), fresh.path().join(name)))
        .filter_map(|(committed, fresh)| compare(&committed, &fresh))
        .collect();
    for entry in fs_err::read_dir(folder)?.flatten() {
        if !names.iter().any(|name| entry.file_name() == **name) {
            let path = entry.path();
            wrong.push(format!("{}: belongs to no sample capture", path.display()));
        }
    }
    if wrong.is_empty() {
        return Ok(ALL.len());
    }
    Err(Failure::new(format!(
        "the sample captures are not as committed:\n  {}\nWhere the change is meant, `cargo xtask captures` writes them anew.",
        wrong.join("\n  ")
    )))
}

/// The names of all files that belong into the folder.
fn file_names() -> Vec<String> {
    let mut names = vec![index::NAME.to_owned()];
    for sample in ALL {
        names.extend([
            sample.file_name(),
            sample.decoding_name(),
            sample.fields_name(),
        ]);
        names.extend(sample.truth_name());
    }
    names
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
