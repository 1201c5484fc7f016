//! A scene: packets said one after another with what to look at. What they are made of is in `cast.rs`.

use super::{Packet, STEP};
use fcn_wire::compose::{Part, packet};
use fcn_wire::icrc::{self, Policy};
use fcn_wire::{Frame, LinkType, Profile, Result, Rule};

/// From the sender's side of a link to the other.
pub const ETHERNET: Part<'static> = Part::Ethernet {
    source: [0x02, 0, 0, 0, 0, 0x01],
    destination: [0x02, 0, 0, 0, 0, 0x02],
};

/// A capture while it is being written down.
pub struct Scene {
    profile: Profile,
    packets: Vec<Packet>,
    now: u64,
}

impl Scene {
    /// An empty one, with the code points of `profile`.
    pub fn new(profile: &Profile) -> Self {
        Self {
            profile: profile.clone(),
            packets: Vec::new(),
            now: 0,
        }
    }

    /// The code points in use.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The comment of the last packet.
    pub fn last_comment(&self) -> &str {
        self.packets.last().map_or("", |packet| &packet.comment)
    }

    /// The octets of a packet.
    pub fn packet(&self, parts: &[Part<'_>]) -> Result<Vec<u8>> {
        packet(parts, &self.profile)
    }

    /// A packet in an Ethernet frame between two of our own ports.
    pub fn say(&mut self, comment: &str, parts: &[Part<'_>]) -> Result<&mut Self> {
        self.framed(comment, &[&[ETHERNET], parts].concat())
    }

    /// A packet whose parts begin with its link layer.
    pub fn framed(&mut self, comment: &str, parts: &[Part<'_>]) -> Result<&mut Self> {
        let bytes = self.packet(parts)?;
        Ok(self.octets(comment, bytes, LinkType::Ethernet))
    }

    /// A packet as octets.
    pub fn octets(&mut self, comment: &str, bytes: Vec<u8>, link: LinkType) -> &mut Self {
        self.packets.push(Packet {
            at: self.now,
            comment: comment.to_owned(),
            wire_len: bytes.len(),
            bytes,
            link,
            breaks: Vec::new(),
        });
        self.now += STEP;
        self
    }

    /// Lets time pass, in nanoseconds.
    pub const fn wait(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// Says which rules the last packet breaks on purpose.
    pub fn breaks(&mut self, rules: &[Rule]) -> &mut Self {
        if let Some(last) = self.packets.last_mut() {
            last.breaks = rules.to_vec();
        }
        self
    }

    /// Changes the last packet's octets; the ICRC is computed anew, so that it is not what is wrong.
    pub fn spoil(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if let Some(last) = self.packets.last_mut() {
            change(&mut last.bytes);
            last.wire_len = last.bytes.len();
            refit(&mut last.bytes, &self.profile);
        }
        self
    }

    /// Keeps only the first `len` octets of the last packet, as a snap length does.
    pub fn cut(&mut self, len: usize) -> &mut Self {
        if let Some(last) = self.packets.last_mut() {
            last.bytes.truncate(len);
        }
        self
    }

    /// The packets.
    pub fn done(self) -> Vec<Packet> {
        self.packets
    }
}

/// Computes the ICRC of a RoCEv2 packet anew, where it can be found.
fn refit(bytes: &mut [u8], profile: &Profile) {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
    let Some(datagram) = frame.datagram().filter(|_| frame.is_roce()).copied() else {
        return;
    };
    let (start, udp, end) = (
        datagram.ip.start,
        datagram.start,
        datagram.payload_at() + datagram.payload_len,
    );
    if let Some(packet) = bytes.get_mut(start..end) {
        icrc::fill(packet, udp - start, Policy::Compute(profile.icrc_reading));
    }
}
