//! Cost of writing a packet to a capture file: our writer, pcap-file's, and the same octets written
//! without any format. Prints medians of rounds that alternate between the variants, so that a
//! disturbance affects all of them.
#![allow(missing_docs, reason = "a benchmark has no users")]

use fcn_link::capture_file::{CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use std::borrow::Cow;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const OCTETS_A_ROUND: usize = 24 << 20;
const BUFFER_LEN: usize = 1 << 20;
/// A time in 2023, in nanoseconds since the epoch, so that the high half of the stamp is not zero.
const START: u64 = 1_700_000_000_000_000_000;
/// Overhead of an enhanced packet block, in octets.
const BLOCK_OVERHEAD: usize = 32;

type Way = (&'static str, fn(&Path, &[u8], u64));

const WAYS: [Way; 4] = [
    ("raw write", raw),
    ("CaptureWriter::packet", ours),
    ("CaptureWriter::packet_with", ours_with),
    ("pcap-file", theirs),
];

fn raw(path: &Path, frame: &[u8], packets: u64) {
    let block = (frame.len() + BLOCK_OVERHEAD).next_multiple_of(4);
    let buffer = black_box(vec![0x5A; BUFFER_LEN]);
    let mut file = File::create(path).expect("create");
    let mut left = block * packets as usize;
    while left > 0 {
        let now = left.min(BUFFER_LEN);
        file.write_all(&buffer[..now]).expect("write");
        left -= now;
    }
}

fn start(path: &Path) -> CaptureWriter<'static> {
    let interface = Interface {
        name: "eth0",
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    CaptureWriter::create(path, &Options::default(), &[interface]).expect("create")
}

fn ours(path: &Path, frame: &[u8], packets: u64) {
    let mut writer = start(path);
    for n in 0..packets {
        writer
            .packet(0, START + n, black_box(frame), frame.len() as u32)
            .expect("write");
    }
    writer.finish().expect("finish");
}

fn ours_with(path: &Path, frame: &[u8], packets: u64) {
    let mut writer = start(path);
    for n in 0..packets {
        let len = frame.len();
        let fill = |place: &mut [u8]| place.copy_from_slice(black_box(frame));
        writer
            .packet_with(0, START + n, len, len as u32, fill)
            .expect("write");
    }
    writer.finish().expect("finish");
}

fn theirs(path: &Path, frame: &[u8], packets: u64) {
    let file = BufWriter::with_capacity(BUFFER_LEN, File::create(path).expect("create"));
    let mut writer = PcapNgWriter::new(file).expect("write");
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    let nanoseconds = InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO);
    interface.options.push(nanoseconds);
    writer.write_pcapng_block(interface).expect("write");
    for n in 0..packets {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(START + n),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(black_box(frame)),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).expect("write");
    }
    writer.into_inner().flush().expect("write");
}

/// Runs the variants in turn and prints the median of each.
fn measure(place: &str, path: &Path, len: usize) {
    let frame = vec![0x5A; len];
    let packets = (OCTETS_A_ROUND / (len + BLOCK_OVERHEAD)) as u64;
    let mut rounds = WAYS.map(|_| Vec::new());
    for round in 0..=ROUNDS {
        for ((_, way), taken) in WAYS.iter().zip(&mut rounds) {
            let start = Instant::now();
            way(path, &frame, packets);
            // The first round warms up.
            if round > 0 {
                taken.push(start.elapsed().as_secs_f64() * 1e9 / packets as f64);
            }
            // The next variant must not include the time of removing this one's file; a device
            // stays.
            if path.is_file() {
                std::fs::remove_file(path).expect("remove");
            }
        }
    }
    println!("{packets} packets of {len} octets to {place}:");
    for ((name, _), mut taken) in WAYS.iter().zip(rounds) {
        taken.sort_by(f64::total_cmp);
        println!("  {name:<27} {:>8.1} ns a packet", taken[ROUNDS / 2]);
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for len in [118, 1086, 4170] {
        measure("/dev/null", Path::new("/dev/null"), len);
        measure("a file", &folder.path().join("capture.pcapng"), len);
    }
}
