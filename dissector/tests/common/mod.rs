//! Shared by the tests that run tshark: a tshark with this build of the plugin, one without it, and
//! captures. `xtask` isolates tshark from the installed settings and plugins.
#![allow(dead_code, reason = "each test program uses a part")]

use fcn_wire::frame::LinkType;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use xtask::system::{self, System};
use xtask::tshark::Tshark;

/// Returns a tshark with this build of the plugin; `None`, with a conspicuous message, if there is
/// no tshark.
pub fn with_plugin() -> Option<Tshark> {
    if !has_tshark() {
        return None;
    }
    Some(Tshark::with_plugin(&library()).unwrap_or_else(|e| panic!("{e}")))
}

/// Returns the installed tshark without our plugin.
pub fn stock() -> Option<Tshark> {
    if !has_tshark() {
        return None;
    }
    Some(Tshark::stock().unwrap_or_else(|e| panic!("{e}")))
}

fn has_tshark() -> bool {
    // A requested tshark that is missing fails the test.
    let found = !System::of_tests().is_here() || xtask::process::which("tshark").is_some();
    if !found {
        fcn_skip::skipped!("tshark is not installed, so the plugin was not run at all");
    }
    found
}

/// Returns the plugin of this build, which cargo puts beside the test, or the one for another
/// Wireshark, if that is to be used.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    system::plugin_of_tests().unwrap_or_else(|| test.with_file_name("libfcn_dissector.so"))
}

/// Returns the project's own captures.
pub fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let found = files(&folder, &["pcapng"]);
    assert!(!found.is_empty(), "no captures in {}", folder.display());
    found
}

/// Returns captures of third parties: those in the folder named by `FCN_CAPTURES`.
pub fn foreign_captures() -> Vec<PathBuf> {
    captures_of("FCN_CAPTURES")
}

/// Returns captures that contain no protocol of ours: those in the folder named by `FCN_FOREIGN`.
pub fn without_ours_captures() -> Vec<PathBuf> {
    captures_of("FCN_FOREIGN")
}

fn captures_of(variable: &str) -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os(variable) else {
        fcn_skip::skipped!("{variable} names no folder with captures of third parties");
        return Vec::new();
    };
    let folder = PathBuf::from(folder);
    let found = files(&folder, &["pcap", "pcapng"]);
    assert!(!found.is_empty(), "no captures in {}", folder.display());
    found
}

fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|found| extensions.iter().any(|e| found == *e))
        })
        .collect();
    found.sort();
    found
}

/// One captured packet.
pub struct Packet {
    pub link: LinkType,
    pub bytes: Vec<u8>,
    pub wire_len: usize,
    /// Time in nanoseconds since 1970.
    pub at: u64,
    pub interface: u32,
}

/// Reads the packets of a pcapng file.
pub fn packets(path: &Path) -> Vec<Packet> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut links = Vec::new();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.unwrap().0 {
            Block::InterfaceDescription(interface) => {
                links.push(LinkType::from_pcap(u32::from(interface.linktype)).unwrap());
            }
            Block::EnhancedPacket(packet) => packets.push(Packet {
                link: links[packet.interface_id as usize],
                bytes: packet.data.to_vec(),
                wire_len: packet.original_len as usize,
                at: packet.timestamp.as_nanos() as u64,
                interface: packet.interface_id,
            }),
            _ => {}
        }
    }
    packets
}

/// A capture of Ethernet frames that is deleted when dropped.
pub struct TempCapture(PathBuf);

impl TempCapture {
    /// Writes `frames`, each with its length on the wire, one second apart.
    pub fn new<'a>(name: &str, frames: impl Iterator<Item = (&'a [u8], usize)>) -> Self {
        let frames = frames.zip(0..);
        Self::timed(
            name,
            frames.map(|((bytes, wire_len), second)| (bytes, wire_len, second * 1_000_000_000)),
        )
    }

    /// Writes `frames`, each with its length on the wire and its time in nanoseconds since 1970.
    pub fn timed<'a>(name: &str, frames: impl Iterator<Item = (&'a [u8], usize, u64)>) -> Self {
        let mut file = Vec::new();
        // Magic (times with nanoseconds), version 2.4, zone, accuracy, snap length, Ethernet.
        for word in [0xA1B2_3C4Du32, 0x0004_0002, 0, 0, 262_144, 1] {
            file.extend(word.to_le_bytes());
        }
        for (bytes, wire_len, at) in frames {
            let (second, rest) = ((at / 1_000_000_000) as usize, (at % 1_000_000_000) as usize);
            for word in [second, rest, bytes.len(), wire_len] {
                file.extend((word as u32).to_le_bytes());
            }
            file.extend(bytes);
        }
        Self::whole(&file, name)
    }

    /// Writes the content of a whole file.
    pub fn whole(file: &[u8], name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fcn-{}-{name}.pcap", std::process::id()));
        fs::write(&path, file).unwrap();
        Self(path)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempCapture {
    fn drop(&mut self) {
        // A leftover file in the temporary folder is harmless.
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs tshark on a capture; fails the test if tshark fails or reports an error.
pub fn decode(tshark: &Tshark, capture: &Path, arguments: &[&str]) -> String {
    let text = tshark
        .decode(capture, arguments)
        .unwrap_or_else(|e| panic!("{e}"));
    for bad in ["Dissector bug", "DISSECTOR_ASSERT", "panicked at"] {
        assert!(!text.contains(bad), "{}: {bad}", capture.display());
    }
    text
}

/// Returns the numbers of the frames that match `filter`.
pub fn matches(tshark: &Tshark, capture: &Path, filter: &str) -> BTreeSet<usize> {
    decode(
        tshark,
        capture,
        &["-Y", filter, "-T", "fields", "-e", "frame.number"],
    )
    .lines()
    .map(|line| line.parse().unwrap())
    .collect()
}

/// Returns the output of `-V`, one text per frame.
pub fn trees(tshark: &Tshark, capture: &Path, arguments: &[&str]) -> Vec<String> {
    let text = decode(tshark, capture, &[&["-V"], arguments].concat());
    let mut frames: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Frame ") && line.contains(" bytes on wire") {
            frames.push(String::new());
        }
        if let Some(frame) = frames.last_mut() {
            frame.push_str(line);
            frame.push('\n');
        }
    }
    frames
}

/// Returns the line of `tree` that contains `from`, and the lines nested below it, without their
/// indent.
pub fn subtree(tree: &str, from: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = tree.lines().skip_while(|line| !line.contains(from));
    let Some(first) = lines.next() else {
        panic!("no `{from}` in\n{tree}");
    };
    let depth = indent(first);
    core::iter::once(first)
        .chain(lines.take_while(|line| indent(line) > depth))
        .map(|line| line[depth..].to_owned())
        .collect()
}
