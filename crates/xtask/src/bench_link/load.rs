//! What the benchmark sends: scenarios for fcn-gen, and captures made from them. Captures are classic pcap with
//! microseconds, which every peer reads.

use std::path::{Path, PathBuf};
use std::process::Command;

use pcap_file::pcap::PcapReader;

use crate::failure::{Failure, Outcome};
use crate::process;

/// Octets of the frames sent: a CNP over IPv6, and a data packet with 1008 octets of payload.
pub const LENS: [usize; 2] = [94, 1086];
/// Headers of a data packet over IPv6, and its ICRC.
const DATA_OVERHEAD: usize = 14 + 40 + 8 + 12 + 4;

/// A capture of a stress: so many packets, one every `gap` nanoseconds.
///
/// # Errors
/// fcn-gen fails, or the scenario cannot be written.
pub fn stress(generator: &Path, scenario: &Path, count: u64, gap: u64, file: &Path) -> Outcome {
    let mut command = Command::new(generator);
    command.arg("run").arg(scenario);
    command.args(["--count", &count.to_string()]);
    command.args(["--rate", &format!("{}pps", 1_000_000_000 / gap)]);
    process::stdout(command.args(["--quiet", "--output"]).arg(file)).map(drop)
}

/// A stress scenario whose frames all have `len` octets and are all different.
///
/// # Errors
/// It cannot be written.
pub fn scenario(scratch: &Path, len: usize) -> Outcome<PathBuf> {
    let mix = if len == LENS[0] {
        "[stress.mix]\ncnp = 1\n".to_owned()
    } else {
        let payload = len.saturating_sub(DATA_OVERHEAD);
        format!("payload = {payload}\n[stress.mix]\ndata = 1\n")
    };
    let text = format!(
        "about = \"Frames of {len} octets, all different\"\n\
         demonstrates = \"How fast a link takes them.\"\n\
         seed = 1\n[stress]\nflows = 10000\nqps = 1000000\n{mix}"
    );
    let file = scratch.join(format!("frames-{len}.toml"));
    fs_err::write(&file, text)?;
    Ok(file)
}

/// A capture of `count` frames of the scenario, `gap` nanoseconds apart; one written before serves again.
///
/// # Errors
/// fcn-gen or editcap fails, or a file cannot be written.
pub fn capture(
    generator: &Path,
    scratch: &Path,
    (len, count, gap): (usize, u64, u64),
) -> Outcome<PathBuf> {
    let file = scratch.join(format!("{count}-frames-of-{len}-every-{gap}-ns.pcap"));
    if !file.is_file() {
        let (frames, partial) = (
            scratch.join("frames.pcapng"),
            file.with_extension("partial"),
        );
        stress(generator, &scenario(scratch, len)?, count, gap, &frames)?;
        let mut convert = Command::new("editcap");
        process::stdout(convert.args(["-F", "pcap"]).args([&frames, &partial]))?;
        fs_err::remove_file(&frames)?;
        fs_err::rename(&partial, &file)?;
    }
    Ok(file)
}

/// The first frame of a capture.
///
/// # Errors
/// It has none.
pub fn first_frame(file: &Path) -> Outcome<Vec<u8>> {
    let bad = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", file.display()));
    let mut reader = PcapReader::new(fs_err::File::open(file)?).map_err(|e| bad(&e))?;
    match reader.next_packet() {
        Some(Ok(packet)) => Ok(packet.data().to_vec()),
        _ => Err(bad(&"it has no packets")),
    }
}
