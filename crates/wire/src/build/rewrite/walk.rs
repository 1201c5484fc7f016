//! Rewriting of single fields in a packet, in any header or message. `packet.rs`, `cm.rs` and
//! `icmp.rs` locate them.

use super::Rules;
use super::checksums::PacketPatcher;
use crate::bth::Qp;
use crate::frame::LinkType;
use crate::octets::{array, ipv4_at, ipv6_at, u16_at, u24_at};

/// One packet: that of the frame, or one that is quoted in it.
#[derive(Debug)]
pub(super) struct Walk<'w, 'a> {
    pub(super) rules: &'w Rules,
    pub(super) patcher: &'w mut PacketPatcher<'a>,
    pub(super) link: LinkType,
    /// Offset of the packet in the outermost one.
    pub(super) base: usize,
    /// Nesting depth of the quote.
    pub(super) quotes: usize,
    /// True if there may be addresses that were not found.
    pub(super) may_contain_unmapped: bool,
}

impl Walk<'_, '_> {
    /// Returns octets of the original outermost packet, from this packet's `at` on.
    pub(super) fn old<const N: usize>(&self, at: usize) -> [u8; N] {
        array(self.patcher.old(), self.base + at)
    }

    #[inline]
    pub(super) fn write<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        self.patcher.write(self.base + at, value);
    }

    pub(super) fn ipv4(&mut self, at: usize) {
        let old = ipv4_at(self.patcher.old(), self.base + at);
        let new = self.rules.ipv4(old);
        self.write(at, new.octets());
    }

    pub(super) fn ipv6(&mut self, at: usize) {
        let old = ipv6_at(self.patcher.old(), self.base + at);
        let new = self.rules.ipv6(old);
        self.write(at, new.octets());
    }

    pub(super) fn udp_source(&mut self, at: usize) {
        let old = u16_at(self.patcher.old(), self.base + at);
        let new = self.rules.udp_source(old);
        self.write(at, new.to_be_bytes());
    }

    pub(super) fn qp(&mut self, at: usize) {
        let old = u24_at(self.patcher.old(), self.base + at);
        let [_, new @ ..] = self.rules.qp(Qp::truncate(old)).get().to_be_bytes();
        self.write(at, new);
    }

    pub(super) fn psn(&mut self, at: usize) {
        let old = u24_at(self.patcher.old(), self.base + at);
        let [_, new @ ..] = self.rules.psn(old).to_be_bytes();
        self.write(at, new);
    }
}
