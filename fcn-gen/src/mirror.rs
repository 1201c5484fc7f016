//! Frames as a switch's mirror sends them: copies inside ERSPAN, GRE or another tunnel.

use fcn_wire::Profile;
use fcn_wire::emit::{Copied, Encapsulation};
use rustc_hash::FxHashMap;
use std::net::Ipv4Addr;

/// Where the copies go.
const COLLECTOR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);

/// Mirrors, one at each place that frames were seen at.
pub struct Mirrors {
    encapsulation: Encapsulation,
    profile: Profile,
    /// Copies so far of each.
    copies: FxHashMap<u32, u32>,
}

impl Mirrors {
    /// Mirrors that copy in that way.
    #[must_use]
    pub fn new(encapsulation: Encapsulation) -> Self {
        Self {
            encapsulation,
            // Which messages are ours makes no difference.
            profile: Profile::DEFAULT,
            copies: FxHashMap::default(),
        }
    }

    /// Writes the copy of an Ethernet frame of `wire_len` octets, seen at a place at a time, to `out`, and returns how many
    /// octets the copy has on the wire. What cannot be carried stays as it is.
    pub fn copy(
        &mut self,
        (place, at): (u32, u64),
        frame: &[u8],
        wire_len: u32,
        out: &mut Vec<u8>,
    ) -> u32 {
        let sequence = self.copies.entry(place).or_default();
        *sequence = sequence.wrapping_add(1);
        let copied = Copied {
            encapsulation: self.encapsulation,
            source: Ipv4Addr::new(198, 51, 100, (place % 250) as u8 + 1).into(),
            destination: COLLECTOR.into(),
            // Of ten bits.
            session: (place % 1023) as u16 + 1,
            port: (place % 1023) as u16 + 1,
            sequence: *sequence,
            at,
        };
        out.clear();
        out.resize(frame.len() + Copied::MAX_HEADERS, 0);
        if let Ok(Some((len, wire_len))) =
            copied.write(frame, wire_len as usize, &self.profile, out)
        {
            out.truncate(len);
            return wire_len as u32;
        }
        out.clear();
        out.extend_from_slice(frame);
        wire_len
    }
}
