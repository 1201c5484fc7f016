//! `cargo xtask captures`: the sample captures, identical byte for byte each time, their ground
//! truths and decodings. Samples captured from a network stay unchanged; only their decodings are
//! written.
//!
//! `samples.rs` lists them, `generator.rs` writes them with `fcn-gen`, `decoding.rs` decodes them
//! with tshark, `fields.rs` extracts the plugin's part, and `index.rs` writes the index. `demo.rs`
//! has the capture that `fcn-top --demo` plays.
//! Not here: their content, which `fcn-gen` determines.

mod decoding;
pub mod demo;
mod fields;
mod generator;
mod index;
mod samples;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure};

use crate::failure::Outcome;
use crate::tshark::{TempDir, Tshark};
use crate::{cargo, packages, packets, process};

use fields::Protocols;

pub use fields::{COLUMNS, tabs};
pub use generator::Generator;
pub use samples::{CASES, RECORDED, ROUTERS, Sample, Scene, all};

/// Folder of the captures, below the project's root.
pub const FOLDER: &str = "captures";

/// Wireshark version of the committed decodings. Other versions word other protocols differently;
/// the plugin's own part is compared with each version.
const DECODED_BY: (u32, u32) = (4, 0);

/// Writes captures and decodings, or with `check_only` compares them; returns a message.
///
/// # Errors
/// Something cannot be built, decoded or written, or is not as it should be.
pub fn run(check_only: bool) -> Outcome<String> {
    packages::ensure(packages::PLUGIN)?;
    let tshark = Tshark::with_plugin(&cargo::build_plugin(false)?)?;
    let generator = Generator::build()?;
    let folder = folder()?;
    if check_only {
        demo::check(&generator)?;
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
    demo::write(&generator)?;
    let count = write(&folder, &generator, Some(&tshark))?;
    let folder = folder.display();
    Ok(format!(
        "{count} captures and their decodings written to {folder}"
    ))
}

/// Returns the folder of the captures.
///
/// # Errors
/// The project's root cannot be found.
pub fn folder() -> Outcome<PathBuf> {
    Ok(cargo::root()?.join(FOLDER))
}

/// Rewrites the sample `name` from the captures `captured`.INTERFACE.pcap, and prints its number of
/// packets.
///
/// # Errors
/// A capture is missing or cannot be read, or the sample cannot be written.
pub fn gather(name: &str, about: &str, captured: &Path, interfaces: &[&str]) -> Outcome {
    let mut seen = Vec::new();
    for interface in interfaces {
        let capture = packets::read(&captured.with_added_extension(format!("{interface}.pcap")))?;
        seen.push((*interface, capture.packets));
    }
    let file = format!("{name}.pcapng");
    packets::write_seen(&folder()?.join(&file), about, &seen)?;
    let count: usize = seen.iter().map(|(_, packets)| packets.len()).sum();
    println!("{file}: {count} packets");
    Ok(())
}

/// Writes captures, ground truths and index into `folder`; with `tshark`, also the decodings.
///
/// # Errors
/// Something cannot be written or decoded.
pub fn write(folder: &Path, generator: &Generator, tshark: Option<&Tshark>) -> Outcome<usize> {
    fs_err::create_dir_all(folder)?;
    let decoder = match tshark {
        Some(tshark) => Some((
            tshark,
            Protocols::from_tshark(tshark)?,
            decodes_as_committed(tshark)?,
        )),
        None => None,
    };
    let samples = all();
    let committed = self::folder()?;
    for sample in &samples {
        let (name, recorded) = (sample.file_name(), sample.is_captured());
        match recorded {
            false => generator.write(sample, folder)?,
            true if folder == committed => {}
            true => drop(fs_err::copy(committed.join(&name), folder.join(name))?),
        }
        if let Some((tshark, protocols, as_committed)) = &decoder {
            let capture = folder.join(sample.file_name());
            let notable = decoding::notable(tshark, sample, &capture)?;
            if *as_committed {
                let text = decoding::decode(tshark, sample, &capture, &notable)?;
                fs_err::write(folder.join(sample.decoding_name()), &text)?;
            }
            let text = fields::decode(tshark, protocols, &capture, &notable)?;
            fs_err::write(folder.join(sample.fields_name()), &text)?;
        }
    }
    fs_err::write(folder.join(index::NAME), &index::page(folder, generator)?)?;
    Ok(samples.len())
}

fn decodes_as_committed(tshark: &Tshark) -> Outcome<bool> {
    Ok(tshark.version()?.minor() == DECODED_BY)
}

/// Compares the content of `folder` with the output of [`write()`]; with `tshark`, also the
/// decodings.
///
/// # Errors
/// Files that differ, are missing or should not exist, one by one, or something cannot be generated
/// or decoded.
pub fn check(folder: &Path, generator: &Generator, tshark: Option<&Tshark>) -> Outcome<usize> {
    let fresh = TempDir::new(false)?;
    let count = write(fresh.path(), generator, tshark)?;
    // Without tshark there are no decodings to compare with; with another version of Wireshark, not
    // all of them.
    for name in all()
        .iter()
        .flat_map(|s| [s.decoding_name(), s.fields_name()])
    {
        let place = fresh.path().join(&name);
        if !place.exists() {
            fs_err::copy(folder.join(name), place)?;
        }
    }
    match differences(folder, fresh.path())? {
        Some(lines) => bail!(
            "the sample captures are not as committed:{lines}\nIf the change is intended, `cargo xtask captures` \
             rewrites them."
        ),
        None => Ok(count),
    }
}

/// Compares the plugin's part of the sample captures, as this tshark decodes them, with the
/// committed files; returns the number of samples.
///
/// # Errors
/// A file differs, or tshark failed.
pub fn check_fields(tshark: &Tshark) -> Outcome<usize> {
    let folder = folder()?;
    let (committed, decoded) = (TempDir::new(false)?, TempDir::new(false)?);
    let protocols = Protocols::from_tshark(tshark)?;
    let samples = all();
    for sample in &samples {
        let capture = folder.join(sample.file_name());
        let notable = decoding::notable(tshark, sample, &capture)?;
        let text = fields::decode(tshark, &protocols, &capture, &notable)?;
        let name = sample.fields_name();
        fs_err::write(decoded.path().join(&name), &text)?;
        fs_err::copy(folder.join(&name), committed.path().join(&name))?;
    }
    match differences(committed.path(), decoded.path())? {
        Some(lines) => bail!("the samples are not decoded as committed:{lines}"),
        None => Ok(samples.len()),
    }
}

/// Part of a difference that is shown: number of lines, and of characters in each.
const SHOWN: (usize, usize) = (40, 160);

/// Returns the differences between committed files and newly written ones.
fn differences(committed: &Path, fresh: &Path) -> Outcome<Option<String>> {
    let mut diff = Command::new("diff");
    diff.args(["--recursive", "--unified=0"]);
    let output = process::output(diff.arg(committed).arg(fresh))?;
    let differences = String::from_utf8_lossy(&output.stdout);
    let (lines, width) = SHOWN;
    let shown = differences.lines().take(lines);
    let shown = shown.map(|line| format!("\n  {line:.width$}")).collect();
    Ok((!output.status.success()).then_some(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let folder = TempDir::new(false).unwrap();
        let [committed, fresh] = ["committed", "fresh"].map(|name| folder.path().join(name));
        let write = |folder: &Path, name: &str, text: &str| {
            fs_err::create_dir_all(folder).unwrap();
            fs_err::write(folder.join(name), text).unwrap();
        };
        for folder in [&committed, &fresh] {
            write(folder, "a.txt", "x\ny\n");
            write(folder, "a.pcapng", "\0x");
        }
        assert_eq!(differences(&committed, &fresh).unwrap(), None);
        write(&committed, "a.txt", "x\nz\n");
        write(&committed, "b.txt", "");
        write(&fresh, "a.pcapng", "\0y");
        let text = differences(&committed, &fresh).unwrap().unwrap();
        let holds = |expected: &str| assert!(text.contains(expected), "{expected}: {text}");
        holds("\n  @@ -2 +2 @@\n  -z\n  +y\n");
        holds("committed: b.txt");
        holds("a.pcapng differ");
        let none = folder.path().join("none");
        assert!(differences(&none, &fresh).unwrap().is_some());
    }
}
