//! The composer of a gallery's packets, and the layers that it takes.

use super::stacks::{ETHERNET, FCN_PORT, PROXY_PORT, READING, ROCEV2_PORT};
use super::{Packet, STEP};
use fcn_wire::compose::{self, Part};
use fcn_wire::icrc::{self, Policy};
use fcn_wire::{Frame, LinkType, Profile, Result, Rule};

/// A part of a packet, or several in order.
pub trait Layers<'a> {
    fn append_to(self, parts: &mut Vec<Part<'a>>);
}

impl<'a, 'b: 'a> Layers<'a> for Part<'b> {
    fn append_to(self, parts: &mut Vec<Part<'a>>) {
        parts.push(self);
    }
}

impl<'a, 'b: 'a, const N: usize> Layers<'a> for [Part<'b>; N] {
    fn append_to(self, parts: &mut Vec<Part<'a>>) {
        parts.extend(self);
    }
}

macro_rules! tuples {
    () => {};
    ($first:ident $($other:ident)*) => {
        impl<'a, $first: Layers<'a>, $($other: Layers<'a>),*> Layers<'a> for ($first, $($other),*) {
            #[allow(non_snake_case, reason = "values are named like their types")]
            fn append_to(self, parts: &mut Vec<Part<'a>>) {
                let ($first, $($other),*) = self;
                $first.append_to(parts);
                $($other.append_to(parts);)*
            }
        }
        tuples!($($other)*);
    };
}
tuples!(A B C D E F);

/// Returns what was composed of constants. They are valid: a test composes every packet, and no
/// code point is refused.
pub fn composed<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("a gallery's packet: {error}"))
}

/// Composes the packets of a gallery one after another, with the code points of a profile.
pub struct Composer<'p> {
    pub profile: &'p Profile,
    pub packets: Vec<Packet>,
    /// Time of the next packet.
    now: u64,
}

impl<'p> Composer<'p> {
    pub const fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            packets: Vec::new(),
            now: 0,
        }
    }

    /// Lets nanoseconds pass, in addition to those between all packets.
    pub const fn wait(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// Composes a packet after the usual Ethernet header.
    pub fn packet<'a>(&mut self, comment: &str, layers: impl Layers<'a>) -> &mut Self {
        self.frame(LinkType::Ethernet, comment, (ETHERNET, layers))
    }

    /// Composes a packet with its own link layer.
    pub fn frame<'a>(
        &mut self,
        link: LinkType,
        comment: &str,
        layers: impl Layers<'a>,
    ) -> &mut Self {
        let bytes = self.octets(layers);
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

    /// Overwrites octets of the last packet. The ICRC is recomputed, so that it remains correct.
    pub fn change<const N: usize>(&mut self, at: usize, octets: [u8; N]) -> &mut Self {
        if let Some(packet) = self.packets.last_mut() {
            packet.bytes[at..at + N].copy_from_slice(&octets);
            fill_icrc(&mut packet.bytes, self.profile);
        }
        self
    }

    /// Cuts the last packet by a snap length.
    pub fn cut(&mut self, snap_len: usize) {
        if let Some(packet) = self.packets.last_mut() {
            packet.bytes.truncate(snap_len);
        }
    }

    /// Adds a rule to those that the last packet breaks.
    pub fn breaks(&mut self, rule: Rule) -> &mut Self {
        if let Some(packet) = self.packets.last_mut() {
            packet.breaks.push(rule);
        }
        self
    }

    /// Returns the octets of layers.
    pub fn octets<'a>(&self, layers: impl Layers<'a>) -> Vec<u8> {
        let mut parts = Vec::new();
        layers.append_to(&mut parts);
        for part in &mut parts {
            match part {
                Part::Udp { destination, .. } => *destination = self.port(*destination),
                Part::Icrc(Policy::Compute(reading)) if *reading == READING => {
                    *reading = self.profile.icrc_reading;
                }
                _ => {}
            }
        }
        composed(compose::packet(&parts, self.profile))
    }

    /// Returns the profile's port in place of a default one.
    const fn port(&self, port: u16) -> u16 {
        match port {
            ROCEV2_PORT => self.profile.rocev2_port,
            PROXY_PORT => self.profile.proxy_cn_port,
            FCN_PORT => self.profile.wan_fcn_port,
            other => other,
        }
    }
}

/// Recomputes the ICRC of a RoCEv2 packet, if it can be located.
fn fill_icrc(bytes: &mut [u8], profile: &Profile) {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
    let Some(datagram) = frame.datagram().filter(|_| frame.is_roce()).copied() else {
        return;
    };
    let (start, udp) = (datagram.ip.start, datagram.start);
    let end = datagram.payload_at() + datagram.payload_len;
    if let Some(packet) = bytes.get_mut(start..end) {
        icrc::fill(packet, udp - start, Policy::Compute(profile.icrc_reading));
    }
}
