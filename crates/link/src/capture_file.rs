//! Capture files. The writer produces pcapng with nanosecond time stamps, several interfaces in one
//! file, and the same octets for the same packets. The reader ([`CaptureReader`]) accepts pcap and
//! pcapng of any resolution and byte order, also compressed.
//!
//! A file contains nothing about the machine or the time of writing. The layout of blocks is in
//! `block.rs`; the output, which never gives an incomplete file its final name, in `sink.rs`; and
//! everything about reading in `reader.rs`.

mod block;
mod error;
mod reader;
mod sink;
mod writer;

pub use error::{Error, ErrorKind};
pub use reader::{
    CaptureReader, Compression, MAX_BLOCK, MAX_INTERFACES, Packet, Packets, ReadError,
    ReadErrorKind, ReadInterface, Resolution, Stamp,
};
pub use writer::{CaptureWriter, Summary};

use fcn_wire::LinkType;

/// Maximum length of a packet, in octets: the limit of Wireshark and libpcap.
pub const MAX_PACKET: usize = 262_144;
/// Maximum length of a comment, in octets: the limit of its 16-bit length field.
pub const MAX_COMMENT: usize = u16::MAX as usize;

/// An interface of a capture file: where packets were captured, or would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Name; empty for none.
    pub name: &'a str,
    /// Description for human readers; empty for none.
    pub description: &'a str,
    /// Link type of its packets.
    pub link: LinkType,
    /// Snap length: maximum number of octets kept of each packet; 0 for all.
    pub snap_len: u32,
}

/// Metadata of a capture file. Empty texts are omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Description of the contents of the file.
    pub comment: &'a str,
    /// Program that writes the file.
    pub application: &'a str,
}
