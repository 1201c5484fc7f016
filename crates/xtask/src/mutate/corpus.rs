//! Packets out of the fuzz targets' corpora: what made the fuzzers find new paths, put where Wireshark meets it.
//! Not here: the corpora (`crates/wire/fuzz/corpus`), nor what their targets make of them.

use std::io::Read;
use std::path::Path;

use crate::failure::Outcome;
use crate::packets::{self, Packet};

/// Link types of the frame targets, in the order of their first octet.
const LINKS: [u32; 7] = [1, 101, 113, 276, 0, 247, 197];
/// Link type, profile, octets missing, cut.
const FRAME_PREFIX: usize = 5;

const UDP: u8 = 17;
const DESTINATION_OPTIONS: u8 = 60;
const ROCE: u16 = 4791;

/// A packet for every entry of the corpora in `folder` that can be carried by one.
///
/// # Errors
/// A corpus cannot be read.
pub fn packets(folder: &Path) -> Outcome<Vec<Packet>> {
    let mut packets = Vec::new();
    for (target, data) in entries(folder)? {
        packets.extend(carried(&target, &data));
    }
    Ok(packets)
}

/// Every entry of the archives in a folder, under the name of its target.
fn entries(folder: &Path) -> Outcome<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for path in packets::files(folder, &["tar"])? {
        let target = path.file_stem().unwrap_or_default().to_string_lossy();
        for entry in tar::Archive::new(fs_err::File::open(&path)?).entries()? {
            let mut data = Vec::new();
            entry?.read_to_end(&mut data)?;
            found.push((target.clone().into_owned(), data));
        }
    }
    Ok(found)
}

/// The packets that carry an entry of a target's corpus.
fn carried(target: &str, data: &[u8]) -> Vec<Packet> {
    let first = data.first().copied().unwrap_or(0);
    let from = |at: usize| data.get(at..).unwrap_or_default();
    match target {
        "frame" | "notification" | "rewrite" => {
            let link = LINKS[usize::from(first) % LINKS.len()];
            vec![Packet::whole(link, from(FRAME_PREFIX).to_vec())]
        }
        "ipv6_options" => vec![
            ethernet(0x86DD, data),
            ipv6(DESTINATION_OPTIONS, data),
            ipv6(0, data),
        ],
        "fast_cnp" => vec![behind_option(first, from(2))],
        "ioam" => vec![behind_option(0x9F, data), behind_option(0x31, data)],
        "proxy_address" => vec![behind_option(0x1E, data)],
        "roce" | "icrc" => over_both(UDP, &udp(ROCE, data)),
        "proxy_cn" => over_both(UDP, &udp(1021, from(1))),
        "wan_fcn" => vec![ipv6(UDP, &udp(1022, data))],
        "sflow" => over_both(UDP, &udp(6343, from(2))),
        "pfc" => vec![ethernet(0x8808, data)],
        "isis" => {
            let llc = [&[0xFE, 0xFE, 0x03], data].concat();
            vec![ethernet((llc.len() as u16).min(1500), &llc)]
        }
        "ospf2" => vec![ipv4(89, data)],
        "ospf3" => vec![ipv6(89, data)],
        "bgp" => over_both(6, &tcp(data)),
        _ => Vec::new(),
    }
}

fn ethernet(kind: u16, payload: &[u8]) -> Packet {
    let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    Packet::whole(1, [&macs, &kind.to_be_bytes()[..], payload].concat())
}

fn over_both(protocol: u8, payload: &[u8]) -> Vec<Packet> {
    vec![ipv6(protocol, payload), ipv4(protocol, payload)]
}

fn ipv4(protocol: u8, payload: &[u8]) -> Packet {
    let [high, low] = ((20 + payload.len()) as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    let addresses = [192, 0, 2, 1, 198, 51, 100, 1];
    ethernet(0x0800, &[&header, &addresses[..], payload].concat())
}

fn ipv6(next: u8, payload: &[u8]) -> Packet {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let address = |host| [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
    let header = [0x60, 0, 0, 0, high, low, next, 64];
    let parts = [&header, &address(3)[..], &address(1), payload];
    ethernet(0x86DD, &parts.concat())
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let header = [0xC000, port, len, 0].map(u16::to_be_bytes);
    [header.as_flattened(), payload].concat()
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let header = [
        0, 179, 0xC0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0,
    ];
    [&header, payload].concat()
}

/// A CNP behind a Destination Options header with this one option, padded with PadN as it must be.
fn behind_option(kind: u8, data: &[u8]) -> Packet {
    let data = &data[..data.len().min(255)];
    let mut header = vec![UDP, 0, kind, data.len() as u8];
    header.extend(data);
    match (8 - header.len() % 8) % 8 {
        0 => {}
        1 => header.push(0),
        pad => {
            header.extend([1, (pad - 2) as u8]);
            header.resize(header.len() + pad - 2, 0);
        }
    }
    header[1] = (header.len() / 8 - 1) as u8;
    let mut cnp = vec![0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 0x11, 0, 0, 0, 0];
    cnp.extend([0; 20]);
    header.extend(udp(ROCE, &cnp));
    ipv6(DESTINATION_OPTIONS, &header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_padded() {
        for len in [0, 1, 2, 3, 4, 16, 20, 200, 255, 300] {
            let packet = behind_option(0x9E, &vec![7; len]);
            let header = &packet.bytes[14 + 40..];
            let header_len = (usize::from(header[1]) + 1) * 8;
            assert_eq!(
                header[header_len + 2..header_len + 4],
                [0x12, 0xB7],
                "{len}"
            );
        }
    }

    #[test]
    fn every_corpus_of_a_message_is_carried() {
        let folder = crate::cargo::root()
            .unwrap()
            .join("crates/wire/fuzz/corpus");
        for (name, _) in entries(&folder).unwrap() {
            let carried = carried(&name, &[0; 64]);
            // A profile is a file of settings, a MAD lies deeper in packets than is put together here.
            let not = ["profile", "rdma_cm"].contains(&&*name);
            assert_eq!(carried.is_empty(), not, "{name}");
        }
        assert!(packets(&folder).unwrap().len() > 300);
    }
}
