//! Capture files. Written is pcapng with nanosecond stamps, several interfaces in one file, the same octets for the same
//! packets; read ([`CaptureReader`]) are pcap and pcapng of any resolution and byte order, also compressed.
//!
//! Nothing of the machine or of the time of writing gets into a file. How blocks are laid out is in `block.rs`, where
//! the octets go (and that no half file gets the final name) in `sink.rs`; all about reading is in `reader.rs`.

mod block;
mod error;
mod reader;
mod sink;
mod writer;

pub use error::{Error, ErrorKind};
pub use reader::{
    CaptureReader, MAX_BLOCK, MAX_INTERFACES, Packet, Packets, Packing, ReadError, ReadErrorKind,
    ReadInterface, Resolution,
};
pub use writer::{CaptureWriter, Summary};

use fcn_wire::LinkType;

/// Most octets of one packet: what Wireshark and libpcap read.
pub const MAX_PACKET: usize = 262_144;
/// Most octets of one comment: what its 16-bit length can say.
pub const MAX_COMMENT: usize = u16::MAX as usize;

/// An interface of a capture file: where packets were, or would have been, seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name; empty for none.
    pub name: &'a str,
    /// What it is, for people; empty for none.
    pub description: &'a str,
    /// What its packets begin with.
    pub link: LinkType,
    /// Octets kept of each packet at most; 0 for all.
    pub snap_len: u32,
}

/// What a capture file says about itself; an empty text is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// What the file shows.
    pub comment: &'a str,
    /// The program that writes the file.
    pub application: &'a str,
}
