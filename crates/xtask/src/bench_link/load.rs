//! Frames that the benchmark sends: scenarios for fcn-gen, and captures made from them. Captures
//! are classic pcap with microseconds, which every peer reads.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::failure::Outcome;
use crate::{packets, process};

/// Lengths of the frames sent, in octets: a CNP over IPv6, and a data packet with 1008 octets of
/// payload.
pub const LENS: [usize; 2] = [94, 1086];
/// Octets of the headers of a data packet over IPv6, and its ICRC.
const DATA_OVERHEAD: usize = 14 + 40 + 8 + 12 + 4;

/// Writes a capture of a stress: `count` packets, one every `gap` nanoseconds.
///
/// # Errors
/// Returns an error if fcn-gen fails.
pub fn stress(generator: &Path, scenario: &Path, count: u64, gap: u64, file: &Path) -> Outcome {
    let mut command = Command::new(generator);
    command.arg("run").arg(scenario);
    command.args(["--count", &count.to_string()]);
    command.args(["--rate", &format!("{}pps", 1_000_000_000 / gap)]);
    process::stdout(command.args(["--quiet", "--output"]).arg(file)).map(drop)
}

/// Writes a scenario of this stress, in a file of that name.
///
/// # Errors
/// Returns an error if it cannot be written.
pub fn scenario(scratch: &Path, name: &str, stress: &str) -> Outcome<PathBuf> {
    let file = scratch.join(format!("{name}.toml"));
    let head = "about = \"A load\"\ndemonstrates = \"What it costs.\"\nseed = 1\n[stress]\n";
    fs_err::write(&file, [head, stress].concat())?;
    Ok(file)
}

/// Writes a stress scenario whose frames all have `len` octets and are all different.
///
/// # Errors
/// Returns an error if it cannot be written.
pub fn frames(scratch: &Path, len: usize) -> Outcome<PathBuf> {
    if len != LENS[0] {
        return data(scratch, len);
    }
    let stress = "flows = 10000\nqps = 1000000\n[stress.mix]\ncnp = 1\n";
    scenario(scratch, &format!("frames-{len}"), stress)
}

/// Like [`frames`], with data packets only, which a switch forwards to the receivers.
///
/// # Errors
/// Returns an error if it cannot be written.
pub fn data(scratch: &Path, len: usize) -> Outcome<PathBuf> {
    let payload = len.saturating_sub(DATA_OVERHEAD);
    let stress =
        format!("flows = 10000\nqps = 1000000\npayload = {payload}\n[stress.mix]\ndata = 1\n");
    scenario(scratch, &format!("data-{len}"), &stress)
}

/// Returns a capture of `count` frames of the scenario, `gap` nanoseconds apart; an existing one is
/// reused.
///
/// # Errors
/// Returns an error if fcn-gen or editcap fails, or a file cannot be written.
pub fn capture(
    generator: &Path,
    scratch: &Path,
    (len, count, gap): (usize, u64, u64),
) -> Outcome<PathBuf> {
    let file = scratch.join(format!("{count}-frames-of-{len}-every-{gap}-ns.pcap"));
    if !file.is_file() {
        let whole = scratch.join("frames.pcapng");
        let partial = file.with_extension("partial");
        stress(generator, &frames(scratch, len)?, count, gap, &whole)?;
        let mut convert = Command::new("editcap");
        process::stdout(convert.args(["-F", "pcap"]).args([&whole, &partial]))?;
        fs_err::remove_file(&whole)?;
        fs_err::rename(&partial, &file)?;
    }
    Ok(file)
}

/// Returns the first frame of a capture.
///
/// # Errors
/// Returns an error if it has none.
pub fn first_frame(file: &Path) -> Outcome<Vec<u8>> {
    let first = packets::read(file)?.packets.into_iter().next();
    let first = first.with_context(|| format!("{} has no packets", file.display()))?;
    Ok(first.bytes)
}
