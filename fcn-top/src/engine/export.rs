//! Exports kept packets to a pcapng file.

use super::packet_store::{PacketStore, StoredPacket};
use fcn_link::capture_file::{CaptureWriter, Error, Interface, Options};
use fcn_wire::LinkType;
use std::io::Write;
use std::path::Path;

/// A source interface, as described in a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceDescription {
    /// Name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Link type.
    pub link: LinkType,
    /// Maximum number of octets captured of a packet; 0 for all.
    pub snap_len: u32,
}

/// Packets copied from memory, so that capturing continues while they are written.
#[derive(Debug, Default)]
pub struct SelectedPackets {
    packets: Vec<(u32, u64, u32, usize)>,
    octets: Vec<u8>,
}

impl SelectedPackets {
    /// Selects the packets for which `wanted` returns true.
    pub fn select(store: &PacketStore, wanted: impl Fn(&StoredPacket) -> bool) -> Self {
        let mut chosen = Self::default();
        let mut last = None;
        for (kept, octets) in store.packets() {
            if wanted(kept)
                && !(kept.samples && last.replace(octets.as_ptr()) == Some(octets.as_ptr()))
            {
                chosen.octets.extend_from_slice(octets);
                let end = chosen.octets.len();
                chosen
                    .packets
                    .push((kept.interface, kept.at, kept.wire_len, end));
            }
        }
        chosen
    }

    /// Writes the packets to the file `to`, with all of `interfaces`; returns their number.
    ///
    /// # Errors
    ///
    /// The file cannot be written; an existing file of that name is not changed.
    pub fn write(&self, to: &Path, interfaces: &[InterfaceDescription]) -> Result<u64, String> {
        self.finish(CaptureWriter::create(to, &OPTIONS, &described(interfaces)))
    }

    /// Same, to a writer.
    ///
    /// # Errors
    ///
    /// The writer fails.
    pub fn write_to(
        &self,
        to: impl Write + Send,
        interfaces: &[InterfaceDescription],
    ) -> Result<u64, String> {
        self.finish(CaptureWriter::to(to, &OPTIONS, &described(interfaces)))
    }

    fn finish(&self, writer: Result<CaptureWriter<'_>, Error>) -> Result<u64, String> {
        let mut writer = writer.map_err(say)?;
        let mut start = 0;
        for (interface, at, wire_len, end) in &self.packets {
            let octets = self.octets.get(start..*end).unwrap_or_default();
            start = *end;
            writer
                .packet(*interface, *at, octets, *wire_len)
                .map_err(say)?;
        }
        Ok(writer.finish().map_err(say)?.packets)
    }
}

/// Origin of exported files.
const OPTIONS: Options<'_> = Options {
    comment: "",
    application: concat!("fcn-top ", env!("CARGO_PKG_VERSION")),
};

fn described(interfaces: &[InterfaceDescription]) -> Vec<Interface<'_>> {
    let interfaces = interfaces.iter().map(|described| Interface {
        name: &described.name,
        description: &described.about,
        link: described.link,
        snap_len: described.snap_len,
    });
    interfaces.collect()
}

fn say(error: Error) -> String {
    error.to_string()
}
