//! Runs the program as a user does, writes captures and reads them back, and compares texts with
//! committed ones.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Result of a finished program.
#[derive(Debug)]
pub struct Done {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Done {
    pub fn from_output(output: &Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Returns standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts success.
    #[track_caller]
    pub fn well(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Asserts that all was sent, even if a busy machine was late (5).
    #[track_caller]
    pub fn sent(self) -> Self {
        assert!(matches!(self.code, 0 | 5), "{self:?}");
        self
    }
}

/// Path of the program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_fcn-replay");

/// Runs the program.
pub fn replay<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    let mut command = Command::new(PROGRAM);
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR");
    Done::from_output(&command.output().unwrap())
}

/// Splits a text into words; paths must not contain spaces.
pub fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Returns the folder of the sample captures.
pub fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures")
}

/// A frame of a capture: interface, time, octets, length on the wire.
pub type Frame = (u32, u64, Vec<u8>, u32);

/// Returns all frames of a capture, of all its interfaces.
pub fn read(path: &Path) -> Vec<Frame> {
    let mut reader = CaptureReader::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        frames.push((
            packet.interface,
            packet.at,
            packet.bytes.to_vec(),
            packet.wire_len,
        ));
    }
    frames
}

/// Returns the octets of the complete Ethernet frames of a capture.
pub fn sendable(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        if packet.link == Some(LinkType::Ethernet) && !packet.is_cut() {
            frames.push(packet.bytes.to_vec());
        }
    }
    frames
}

/// Returns the octets of all frames of a capture.
pub fn octets(path: &Path) -> Vec<Vec<u8>> {
    read(path)
        .into_iter()
        .map(|(_, _, octets, _)| octets)
        .collect()
}

/// Writes a pcapng file with several Ethernet interfaces.
pub fn write(path: &Path, interfaces: &[&str], frames: &[Frame]) {
    let interfaces: Vec<Interface<'_>> = interfaces
        .iter()
        .map(|name| Interface {
            name,
            description: "",
            link: LinkType::Ethernet,
            snap_len: 0,
        })
        .collect();
    let mut writer = CaptureWriter::create(path, &Options::default(), &interfaces).unwrap();
    for (interface, at, octets, wire_len) in frames {
        writer.packet(*interface, *at, octets, *wire_len).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a pcap file of a link type, with a frame each microsecond.
pub fn write_pcap(path: &Path, link: u32, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (i, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [1, i as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

/// Builds an Ethernet frame with a UDP datagram in IPv4 from host `from` to host `to`, with a
/// number in its payload.
pub fn udp(from: u8, to: u8, ports: (u16, u16), number: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    let packet = (len - 14) as u16;
    frame.extend([0x45, 0]);
    frame.extend(packet.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(ports.0.to_be_bytes());
    frame.extend(ports.1.to_be_bytes());
    frame.extend((packet - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(len, 0x5A);
    frame
}

/// Returns `count` frames of several flows and lengths, `gap` nanoseconds apart.
pub fn traffic(count: u64, gap: u64) -> Vec<Frame> {
    (0..count)
        .map(|i| {
            let frame = udp(
                1,
                2,
                (1_000 + (i % 7) as u16, 9),
                i,
                60 + (i as usize * 37) % 1_300,
            );
            (
                0,
                1_000_000_000 + i * gap,
                frame.clone(),
                frame.len() as u32,
            )
        })
        .collect()
}
