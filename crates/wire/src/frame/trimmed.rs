//! Trimmed packets: a switch cuts a data packet that it would drop, and forwards what is left with
//! another DSCP, in a class of its own, or sends it back to its source, so that the loss is known at
//! once. Nothing in the packet says so; its lengths may or may not be those of what is left.

use super::{Datagram, Frame, RecordedOptions};
use crate::bth::{BTH_LEN, Bth, Opcode, Reth, Transport};
use crate::fields::Values;
use crate::header::{ICRC_LEN, ipv4, ipv6, udp};
use crate::icrc::Verdict;
use crate::identified;
use crate::octets::u16_at;

identified! {
    /// Sign by which a RoCEv2 packet is known to be trimmed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Trimming {
        /// IP and UDP, or UDP alone, state the length of a RoCEv2 packet that is not there.
        Lengths = "lengths",
        /// Its DSCP is that of trimmed packets
        /// ([`Profile::trimmed_dscp`](crate::Profile::trimmed_dscp)).
        Dscp = "dscp",
        /// The RETH states more data than there is, although the message is this one packet; its
        /// ICRC is not correct.
        Reth = "reth",
    }
}

impl<'a> Frame<'a> {
    /// Returns the sign by which the innermost packet, RoCEv2 other than a notification, is known
    /// to be trimmed by a switch.
    #[must_use]
    pub fn trimming(&self) -> Option<Trimming> {
        const WHOLE_WRITES: [Opcode; 4] = [
            Opcode::RC_WRITE_ONLY,
            Opcode::RC_WRITE_ONLY_IMM,
            Opcode::UC_WRITE_ONLY,
            Opcode::UC_WRITE_ONLY_IMM,
        ];
        let datagram = self.datagram().filter(|_| self.is_roce())?;
        if self.trimmed {
            return Some(Trimming::Lengths);
        }
        let opcode = Bth::new_checked(datagram.payload).ok()?.opcode();
        if opcode.transport() == Transport::Cnp || self.has_fast_cnp_option() {
            return None;
        }
        if (self.profile.trimmed_dscp).contains(datagram.ip.traffic_class >> 2) {
            return Some(Trimming::Dscp);
        }
        if !WHOLE_WRITES.contains(&opcode) || self.overlong_at.is_some() || self.length_unstated {
            return None;
        }
        let reth = datagram.payload.get(BTH_LEN..)?;
        let reth = (reth.len() >= Reth::LEN).then(|| Reth::read_from(reth))?;
        let rest = datagram
            .payload_len
            .checked_sub(BTH_LEN + opcode.extended_len()?)?;
        let is_cut = reth.length as usize > rest;
        // Some generators write any length into the RETH of a packet that is whole.
        (is_cut && !matches!(self.verdict(datagram), Verdict::Good(_))).then_some(Trimming::Reth)
    }

    /// Restores the stated length of a RoCEv2 datagram that is longer than the frame, or than its
    /// IP packet, if a switch has trimmed the packet rather than its length is wrong: it is that of
    /// a RoCEv2 data packet, of which the headers are left. Returns its end.
    #[cold]
    pub(super) fn restore_trimmed(&mut self, datagram: &mut Datagram<'a>) -> Option<usize> {
        let (ip, overlong) = (datagram.ip, self.overlong_at?);
        if self.overlong.is_none_or(|error| error.offset != overlong) || self.has_fast_cnp_option()
        {
            return None;
        }
        let udp_len = usize::from(u16_at(self.bytes, datagram.start + udp::LENGTH));
        let end = datagram.start + udp_len;
        let (length_at, fixed) = match ip.source.is_ipv4() {
            true => (ip.start + ipv4::LENGTH, 0),
            false => (ip.start + ipv6::LENGTH, ipv6::LEN),
        };
        let of_ip = ip.start + fixed + usize::from(u16_at(self.bytes, length_at));
        if end <= self.wire_len || overlong == length_at && of_ip != end {
            return None;
        }
        let bth = Bth::new_checked(datagram.payload).ok()?;
        let (opcode, len) = (bth.opcode(), udp_len - udp::LEN);
        let is_packet = bth.version() == 0
            && opcode.transport() != Transport::Cnp
            && len % 4 == 0
            && len >= BTH_LEN + opcode.extended_len()? + ICRC_LEN
            // Some of the data is missing, not only a checksum.
            && len > datagram.payload_len + ICRC_LEN;
        if !is_packet {
            return None;
        }
        (self.overlong, self.overlong_at, self.trimmed) = (None, None, true);
        (datagram.ip.end, datagram.payload_len) = (end, len);
        self.ip = Some(datagram.ip);
        for span in self.spans.iter_mut().filter(|span| span.start >= ip.start) {
            span.end = end;
        }
        Some(end)
    }

    fn has_fast_cnp_option(&self) -> bool {
        self.options.fast_cnp != RecordedOptions::NONE.fast_cnp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::{BthRepr, Qp};
    use crate::compose::{self, Part};
    use crate::icrc::{Policy, Reading};
    use crate::{DscpSet, End, Findings, IcrcCheck, LinkType, Message, Profile};
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Returns a packet with 256 octets of data, and the offset of its BTH.
    fn packet(v6: bool, opcode: Opcode) -> (Vec<u8>, usize) {
        let (a, b) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let ip = match v6 {
            false => Part::v4(a, b, 0x6A),
            true => Part::v6(Ipv6Addr::LOCALHOST, a.to_ipv6_mapped(), 0x6A),
        };
        let bth = Part::Bth(BthRepr::new(opcode, Qp::truncate(0x12), 7));
        let reth = Part::Reth(Reth {
            address: 0x1000,
            rkey: 7,
            length: 256,
        });
        let has_reth = opcode.extended_len() == Some(Reth::LEN);
        let udp = Part::udp(49_321, Profile::DEFAULT.rocev2_port);
        let icrc = Part::Icrc(Policy::Compute(Reading::Covered));
        let parts = [ip, udp, bth, reth, Part::Bytes(&[0x5A; 256]), icrc];
        let parts: Vec<_> = (parts.into_iter().enumerate())
            .filter_map(|(i, part)| (i != 3 || has_reth).then_some(part))
            .collect();
        let bytes = compose::packet(&parts, &Profile::DEFAULT).unwrap();
        (bytes, if v6 { 48 } else { 28 })
    }

    /// Writes the lengths of what is left into IP and UDP.
    fn shrink(bytes: &mut [u8], transport: usize) {
        let (ip, at) = match transport {
            28 => (bytes.len(), 2),
            _ => (bytes.len() - 40, 4),
        };
        let udp = bytes.len() + 8 - transport;
        bytes[at..at + 2].copy_from_slice(&(ip as u16).to_be_bytes());
        bytes[transport - 4..transport - 2].copy_from_slice(&(udp as u16).to_be_bytes());
    }

    fn sign(bytes: &[u8], profile: &Profile) -> Option<Trimming> {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::RawIp, profile);
        let sign = frame.trimming();
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        if let Some(sign) = sign {
            assert!(findings.is_empty());
            assert!(matches!(frame.message(), Message::Roce(..)));
            assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
            let cut = matches!(frame.end(), End::Cut { .. });
            assert_eq!(cut, sign == Trimming::Lengths);
        }
        sign
    }

    #[test]
    fn a_packet_without_its_data_is_trimmed_whatever_its_lengths() {
        let mut profile = Profile::DEFAULT;
        profile.trimmed_dscp = DscpSet::new([26]).unwrap();
        for v6 in [false, true] {
            for opcode in [Opcode::RC_WRITE_ONLY, Opcode::RC_WRITE_MIDDLE] {
                let (good, transport) = packet(v6, opcode);
                assert_eq!(sign(&good, &Profile::DEFAULT), None);
                assert_eq!(sign(&good, &profile), Some(Trimming::Dscp));
                let headers = transport + BTH_LEN;
                for len in 0..good.len() {
                    let mut short = good[..len].to_vec();
                    let is_trimmed = (headers..good.len() - ICRC_LEN).contains(&len);
                    let want = is_trimmed.then_some(Trimming::Lengths);
                    assert_eq!(sign(&short, &Profile::DEFAULT), want, "{opcode} {len}");
                    if !is_trimmed {
                        continue;
                    }
                    shrink(&mut short, transport);
                    let with_reth = opcode == Opcode::RC_WRITE_ONLY && len >= headers + Reth::LEN;
                    let want = (with_reth && len < good.len() - ICRC_LEN).then_some(Trimming::Reth);
                    assert_eq!(sign(&short, &Profile::DEFAULT), want, "{opcode} {len}");
                    assert_eq!(sign(&short, &profile), Some(Trimming::Dscp));
                }
            }
        }
    }

    #[test]
    fn a_capture_that_cuts_packets_does_not_trim_them() {
        let (good, _) = packet(false, Opcode::RC_WRITE_ONLY);
        for len in 0..good.len() {
            let bytes = &good[..len];
            let frame = Frame::parse(bytes, good.len(), LinkType::RawIp, &Profile::DEFAULT);
            assert_eq!(frame.trimming(), None);
        }
    }

    #[test]
    fn notifications_and_lengths_of_no_packet_are_not_trimmed() {
        let (good, _) = packet(false, Opcode::RC_WRITE_MIDDLE);
        let changed = |at: usize, octet: u8| {
            let mut bytes = good[..100].to_vec();
            bytes[at] = octet;
            sign(&bytes, &Profile::DEFAULT)
        };
        assert_eq!(
            changed(28, Opcode::RC_WRITE_MIDDLE.0),
            Some(Trimming::Lengths)
        );
        assert_eq!(changed(28, Opcode::CNP.0), None);
        // The version of the BTH, and lengths that differ or are no multiple of 4.
        for (at, octet) in [
            (29, 1),
            (3, good[3] + 4),
            (25, good[25] + 4),
            (25, good[25] + 1),
        ] {
            assert_eq!(changed(at, octet), None, "{at}");
        }
    }
}
