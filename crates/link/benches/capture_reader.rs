//! Cost of reading a packet of a capture file: our reader, pcap-file's, and the same octets read
//! without any format. Prints medians of rounds that alternate between the variants, so that a
//! disturbance affects all of them.
#![allow(missing_docs, reason = "a benchmark has no users")]

use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapTsResolution, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const PACKETS: u64 = 1_000_000;
const BUFFER_LEN: usize = 1 << 20;
/// A time in 2023, in nanoseconds since the epoch, so that the high half of the stamp is not zero.
const START: u64 = 1_700_000_000_000_000_000;

/// A variant: returns the number of packets, and the sum of their time stamps and lengths, so that
/// nothing is optimized away.
type Way = (&'static str, fn(&Path) -> (u64, u64));

fn raw(path: &Path) -> (u64, u64) {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut file = File::open(path).expect("open");
    while file.read(&mut buffer).expect("read") > 0 {
        black_box(&buffer);
    }
    (PACKETS, 0)
}

fn ours(path: &Path) -> (u64, u64) {
    let mut reader = CaptureReader::open(path).expect("open");
    let (mut packets, mut sum) = (0, 0u64);
    while let Some(packet) = reader.next().expect("read") {
        packets += 1;
        sum = sum.wrapping_add(packet.at + black_box(packet.bytes).len() as u64);
    }
    (packets, sum)
}

fn sum_of(at: Duration, octets: &[u8]) -> u64 {
    at.as_nanos() as u64 + black_box(octets).len() as u64
}

fn their_pcapng(path: &Path) -> (u64, u64) {
    let mut reader = PcapNgReader::new(File::open(path).expect("open")).expect("read");
    let (mut packets, mut sum) = (0, 0u64);
    while let Some(block) = reader.next_block() {
        if let (Block::EnhancedPacket(packet), _) = block.expect("read") {
            packets += 1;
            sum = sum.wrapping_add(sum_of(packet.timestamp, &packet.data));
        }
    }
    (packets, sum)
}

fn their_pcap(path: &Path) -> (u64, u64) {
    let mut reader = PcapReader::new(File::open(path).expect("open")).expect("read");
    let (mut packets, mut sum) = (0, 0u64);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("read");
        packets += 1;
        sum = sum.wrapping_add(sum_of(packet.timestamp(), packet.data()));
    }
    (packets, sum)
}

fn write_pcapng(path: &Path, frame: &[u8]) {
    let interface = Interface {
        name: "eth0",
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    let mut writer =
        CaptureWriter::create(path, &Options::default(), &[interface]).expect("create");
    for n in 0..PACKETS {
        writer
            .packet(0, START + n, frame, frame.len() as u32)
            .expect("write");
    }
    writer.finish().expect("finish");
}

fn write_pcap(path: &Path, frame: &[u8]) {
    let file = BufWriter::with_capacity(BUFFER_LEN, File::create(path).expect("create"));
    let header = PcapHeader {
        ts_resolution: PcapTsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(file, header).expect("write");
    for n in 0..PACKETS {
        let at = Duration::from_nanos(START + n);
        let packet = PcapPacket::new(at, frame.len() as u32, frame).expect("a packet");
        writer.write_packet(&packet).expect("write");
    }
    writer.into_inner().flush().expect("write");
}

/// Runs the variants in turn and prints the median of each.
fn measure(what: &str, path: &Path, ways: &[Way]) {
    let mut rounds: Vec<_> = ways.iter().map(|_| Vec::new()).collect();
    let want = ours(path);
    for round in 0..=ROUNDS {
        for ((name, way), taken) in ways.iter().zip(&mut rounds) {
            let start = Instant::now();
            let got = way(path);
            // The first round warms up.
            if round > 0 {
                taken.push(start.elapsed().as_secs_f64() * 1e9 / PACKETS as f64);
            }
            assert!(got == want || *name == RAW, "{name} read something else");
        }
    }
    println!("{PACKETS} packets of {what}:");
    let mut medians = Vec::new();
    for ((name, _), taken) in ways.iter().zip(&mut rounds) {
        taken.sort_by(f64::total_cmp);
        let median = taken[ROUNDS / 2];
        medians.push(median);
        println!(
            "  {name:<14} {median:>8.1} ns a packet, {:>6.1} M packets/s",
            1e3 / median
        );
    }
    if let [raw, ours, theirs] = medians[..] {
        println!(
            "  pcap-file takes {:.2} times as long; above the raw read {:.2} times",
            theirs / ours,
            (theirs - raw) / (ours - raw)
        );
    }
}

const RAW: &str = "raw read";

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("capture");
    for len in [118, 1086] {
        let frame = vec![0x5A; len];
        write_pcapng(&path, &frame);
        let ways: [Way; 3] = [
            (RAW, raw),
            ("CaptureReader", ours),
            ("pcap-file", their_pcapng),
        ];
        measure(&format!("{len} octets from pcapng"), &path, &ways);
        write_pcap(&path, &frame);
        let ways: [Way; 3] = [
            (RAW, raw),
            ("CaptureReader", ours),
            ("pcap-file", their_pcap),
        ];
        measure(&format!("{len} octets from pcap"), &path, &ways);
    }
}
