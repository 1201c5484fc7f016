//! Capture that `fcn-top --demo` plays: the output of `fcn-gen` for the scenario beside it,
//! compressed with gzip.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use super::Generator;
use crate::failure::{Advice, Outcome};
use crate::tshark::TempDir;
use crate::{cargo, process};

const CAPTURE: &str = "demo.pcapng";

fn committed() -> Outcome<PathBuf> {
    Ok(cargo::root()?.join("fcn-top/demo/demo.pcapng.gz"))
}

/// Writes the capture to `folder`; returns its path, and true if the committed one has the same
/// octets.
fn make(generator: &Generator, folder: &Path) -> Outcome<(PathBuf, bool)> {
    let (capture, committed) = (folder.join(CAPTURE), committed()?);
    generator.write_file(&committed.with_file_name("demo.toml"), &capture)?;
    // Compressed octets may differ with gzip's version.
    let unpacked = process::output(Command::new("gzip").arg("-dc").arg(&committed))?;
    let same = unpacked.stdout == fs_err::read(&capture)?;
    Ok((capture, same))
}

/// Writes the capture, if it differs from the committed one.
///
/// # Errors
/// It cannot be generated, compressed or written.
pub fn write(generator: &Generator) -> Outcome {
    let folder = TempDir::new(false)?;
    let (capture, same) = make(generator, folder.path())?;
    if same {
        return Ok(());
    }
    process::stdout(Command::new("gzip").arg("-9n").arg(capture))?;
    let packed = folder.path().join(format!("{CAPTURE}.gz"));
    fs_err::copy(packed, committed()?)?;
    Ok(())
}

/// Compares the committed capture with the output of [`write()`].
///
/// # Errors
/// They differ, or it cannot be generated.
pub fn check(generator: &Generator) -> Outcome {
    let folder = TempDir::new(false)?;
    let (_, same) = make(generator, folder.path())?;
    let checked = || {
        ensure!(
            same,
            "{} differs from what its scenario produces",
            committed()?.display()
        );
        Ok(())
    };
    checked().advise("if the change is intended, `cargo xtask captures` rewrites it")
}
