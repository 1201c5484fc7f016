//! What the benchmark sends: scenarios for fcn-gen, and captures made from them. Captures are classic pcap with
//! microseconds, which every peer reads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapTsResolution, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::failure::{Failure, Outcome};
use crate::process;

/// Octets of the frames sent: a CNP over IPv6, and a data packet with 1008 octets of payload.
pub const LENS: [usize; 2] = [94, 1086];
/// Headers of a data packet over IPv6, and its ICRC.
const DATA_OVERHEAD: usize = 14 + 40 + 8 + 12 + 4;

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
    std::fs::write(&file, text).map_err(|e| Failure::io("write", &file, &e))?;
    Ok(file)
}

/// A capture of `count` frames of the scenario, `gap` apart, and the first of them.
///
/// # Errors
/// fcn-gen fails, or a file cannot be written.
pub fn capture(
    generator: &Path,
    scratch: &Path,
    (len, count, gap): (usize, usize, u64),
) -> Outcome<(PathBuf, Vec<u8>)> {
    let file = scratch.join(format!("{count}-frames-of-{len}-every-{gap}-ns.pcap"));
    if let Ok(first) = first_frame(&file) {
        return Ok((file, first));
    }
    let frames = scratch.join("frames.pcapng");
    process::stdout(
        Command::new(generator)
            .arg("run")
            .arg(scenario(scratch, len)?)
            .args(["--count", &count.to_string(), "--quiet", "--output"])
            .arg(&frames),
    )?;
    let first = restamp(&frames, &file, gap)?;
    let _ = std::fs::remove_file(&frames);
    Ok((file, first))
}

fn first_frame(file: &Path) -> Outcome<Vec<u8>> {
    let open = std::fs::File::open(file).map_err(|e| Failure::io("read", file, &e))?;
    let bad = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", file.display()));
    let mut reader = PcapReader::new(open).map_err(|e| bad(&e))?;
    match reader.next_packet() {
        Some(Ok(packet)) => Ok(packet.data().to_vec()),
        _ => Err(bad(&"it has no packets")),
    }
}

fn restamp(from: &Path, to: &Path, gap: u64) -> Outcome<Vec<u8>> {
    let bad = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", from.display()));
    let input = std::fs::File::open(from).map_err(|e| Failure::io("read", from, &e))?;
    let mut reader = PcapNgReader::new(std::io::BufReader::new(input)).map_err(|e| bad(&e))?;
    // Under another name first: a capture that is cut must not be taken for one that was made before.
    let partial = to.with_extension("partial");
    let output = std::fs::File::create(&partial).map_err(|e| Failure::io("write", &partial, &e))?;
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        ts_resolution: PcapTsResolution::MicroSecond,
        ..PcapHeader::default()
    };
    let mut writer =
        PcapWriter::with_header(std::io::BufWriter::new(output), header).map_err(|e| bad(&e))?;
    let (mut number, mut first) = (0, Vec::new());
    while let Some(block) = reader.next_block() {
        let (Block::EnhancedPacket(packet), _) = block.map_err(|e| bad(&e))? else {
            continue;
        };
        if number == 0 {
            first = packet.data.to_vec();
        }
        let at = Duration::from_secs(1) + Duration::from_nanos(number * gap);
        let len = packet.original_len;
        let packet = PcapPacket::new(at, len, &*packet.data).map_err(|e| bad(&e))?;
        writer.write_packet(&packet).map_err(|e| bad(&e))?;
        number += 1;
    }
    drop(writer);
    std::fs::rename(&partial, to).map_err(|e| Failure::io("rename", &partial, &e))?;
    Ok(first)
}
