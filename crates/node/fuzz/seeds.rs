//! Writes the seeds of every fuzz target to `corpus/`: frames of the sample captures, and series of
//! steps in which the roles notify each other. Each run writes the same octets.

use fcn_node_fuzz::targets::{OWN_ADDRESS, SETTINGS, step};
use fcn_wire::{Frame, LinkType, Message, Profile};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::error::Error;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Maximum length of a seed, in octets.
const LARGEST: usize = 3000;
/// Everything enabled, small tables, marking from the first octet, an interval of 10 µs, every
/// packet above 256 octets.
const ALL_ON: [u8; OWN_ADDRESS] = [0x3F, 3, 1, 2, 255, 10, 255, 0xB4];
/// A connection to be learnt and notified about: QP 5 at the active side, QP 6 at the passive one.
const SET_UP: [&[u8]; 3] = [
    &[0, 0x10, 1, 0, 5],
    &[1, 0x01, 2, 1, 6],
    &[2, 0x10, 1, 2, 0],
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../captures");
    for target in ["roles", "connections"] {
        fs::create_dir_all(folder.join(target))?;
    }
    let mut files: Vec<PathBuf> = fs::read_dir(captures)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|name| name == "pcapng"))
    {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let seed = of_capture(&fs::read(file)?)?;
        fs::write(folder.join(format!("roles/seed_capture_{name}")), seed)?;
    }
    for (name, seed) in series() {
        fs::write(folder.join(format!("roles/seed_{name}")), seed)?;
    }
    for (name, seed) in messages() {
        fs::write(folder.join(format!("connections/seed_{name}")), seed)?;
    }
    println!("seeds are in {}", folder.display());
    Ok(())
}

fn settings(control: u8) -> Vec<u8> {
    let mut octets = ALL_ON.to_vec();
    octets[1] = control;
    octets.resize(SETTINGS, 0);
    octets[OWN_ADDRESS] = 0x20;
    octets
}

/// Returns the frames of a capture that differ in kind or length, at a node with their destination
/// address.
fn of_capture(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut reader = PcapNgReader::new(bytes)?;
    let (mut seed, mut seen, mut own) = (settings(3), BTreeSet::new(), None);
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block?.0 else {
            continue;
        };
        let bytes: &[u8] = &packet.data;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let kind = match frame.message() {
            Message::Roce(bth, _) => u16::from(bth.opcode().0),
            Message::Cnp(_) => 256,
            Message::FastCnp(_) => 257,
            Message::ProxyCn(..) => 258,
            Message::WanFcn(_) => 259,
            Message::RdmaCm(_, cm) => 260 + u16::from(cm.local_qpn().is_some()),
            _ => 512,
        };
        let fits = seed.len() + 6 + bytes.len() <= LARGEST;
        if !fits || !seen.insert((kind, bytes.len() / 8)) {
            continue;
        }
        if let (258 | 259, Some(ip)) = (kind, frame.ip())
            && let IpAddr::V6(address) = ip.destination
        {
            own.get_or_insert(address);
        }
        seed.extend([step::ETHERNET, 0x11, 255, 0]);
        seed.extend((bytes.len() as u16).to_be_bytes());
        seed.extend(bytes);
    }
    if let Some(own) = own {
        seed[OWN_ADDRESS..SETTINGS].copy_from_slice(&own.octets());
    }
    Ok(seed)
}

/// Returns series of steps in which the roles interact.
fn series() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for control in 0..4 {
        let mut seed = settings(control | 0x40);
        // The flow of the connection, and one more.
        seed.extend([step::OPEN, 1, 5, 1, 6, 49, step::OPEN, 0, 7, 2, 8, 0]);
        for message in SET_UP {
            seed.extend([step::CM, 1]);
            seed.extend(message);
        }
        for bits in [1, 2, 3, 9, 13, 18, 0x42, 0xC3] {
            seed.extend([step::DATA, 0x8F, 255, 0, 0x10, 6, bits]);
            seed.extend([step::DATA, 0x01, 255, 0, 0x98, 7, bits]);
            seed.extend([step::SENT, 0x33, 0, 255, 255]);
        }
        for kind in 0..4 {
            for end in [0x01, 0x10] {
                seed.extend([step::NOTIFICATION, 0xA1, kind | 0x2C, end, 5, 0]);
                seed.extend([step::NOTIFICATION, 0xA1, kind | 0x40, end, 6, 0]);
            }
        }
        seed.extend([step::SENT, 0xFF, 1, 1, 0, step::CLOSE, 0xFE, 0]);
        seed.extend([step::OPEN, 0, 9, 1, 6, 1]);
        all.push((format!("series_{control}"), seed));
    }
    all
}

fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let set_up = SET_UP.concat();
    let down = [3, 0x10, 1, 2, 6];
    let down_by_passive = [3, 0x01, 2, 1, 5];
    // More than the limit of half-open connections, and more than that of open ones.
    let flood = (0..40).flat_map(|id| {
        let qp = id % 60 + 2;
        [0, 0x10, id, 0, qp, 1, 0x01, id, id, qp]
    });
    let many = (0..12).flat_map(|id| {
        let qp = id + 2;
        [0, 0x10, id, 0, qp, 1, 0x01, id, id, qp, 2, 0x10, id, id, 0]
    });
    let with = |rest: &[u8]| [&[4][..], &set_up, rest].concat();
    vec![
        ("set_up", with(&[])),
        ("down", with(&down)),
        ("down_by_passive", with(&down_by_passive)),
        ("down_twice", with(&[4, 0x10, 1, 2, 6, 4, 0x10, 1, 2, 6])),
        ("repeated", with(&set_up)),
        ("flood", with(&flood.collect::<Vec<_>>())),
        ("many", with(&many.collect::<Vec<_>>())),
        (
            "taken_over",
            with(&[0, 0x10, 9, 0, 5, 1, 0x01, 9, 9, 6, 2, 0x10, 9, 9, 0]),
        ),
        (
            "ipv4",
            [
                &[1][..],
                &[0, 0x98, 1, 0, 5, 1, 0x89, 2, 1, 6, 2, 0x98, 1, 2, 0],
            ]
            .concat(),
        ),
        ("unusable", vec![2, 0, 0x10, 1, 0, 1, 1, 0x01, 2, 1, 0]),
        (
            "other_mad",
            vec![
                2, 5, 0x10, 1, 0, 5, 26, 1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x14,
                0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
        (
            "to_itself",
            vec![3, 0, 0, 1, 0, 5, 1, 0, 1, 1, 5, 2, 0, 1, 1, 0],
        ),
    ]
}
