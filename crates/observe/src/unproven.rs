//! RoCEv2 from source ports that it is not sent from: datagrams to its port that nothing in
//! themselves proves to be RoCEv2, because their ICRC is wrong or missing.
//!
//! Two of them with the same five-tuple prove it: both have a plausible transport header with the
//! same QP, and the PSN of the second is that of the first plus 1. No other protocol counts in the
//! low 24 bits of its third word and leaves the second as it is.

use crate::bounded::Bounded;
use fcn_wire::bth::Bth;
use fcn_wire::{Frame, Qp, Unread};
use std::net::IpAddr;

/// Maximum number of five-tuples remembered.
const FLOWS: usize = 4096;

/// Five-tuple without the destination port and the protocol, which are RoCEv2's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tuple {
    source: IpAddr,
    destination: IpAddr,
    source_port: u16,
}

/// Packets of one five-tuple.
#[derive(Clone, Copy, Debug)]
struct Packets {
    /// P_Key, QP and PSN of the last packet.
    last: (u16, Qp, u32),
    proven: bool,
}

/// Five-tuples of datagrams to RoCEv2's port that do not prove to be RoCEv2, bounded.
#[derive(Clone, Debug)]
pub struct Unproven {
    flows: Bounded<Tuple, Packets>,
}

impl Default for Unproven {
    fn default() -> Self {
        Self {
            flows: Bounded::new(FLOWS),
        }
    }
}

impl Unproven {
    /// Processes a packet captured at `at` ns. If it is unproven, and the packets of its five-tuple
    /// prove RoCEv2, the frame becomes RoCEv2.
    #[inline]
    pub fn learn(&mut self, frame: &mut Frame<'_>, at: u64) {
        if let Some(Unread::RoceUnproven(source_port)) = frame.unread()
            && self.proves(frame, source_port, at)
        {
            frame.accept_as_roce();
        }
    }

    #[cold]
    fn proves(&mut self, frame: &Frame<'_>, source_port: u16, at: u64) -> bool {
        let Some(datagram) = frame.datagram() else {
            return false;
        };
        let Ok(bth) = Bth::new_checked(datagram.payload) else {
            return false;
        };
        let is_plausible = bth.version() == 0
            && bth.reserved6() == 0
            && bth.reserved7() == 0
            && bth.opcode().name().is_some()
            && bth.dest_qp() != Qp::truncate(0);
        if !is_plausible {
            return false;
        }
        let tuple = Tuple {
            source: datagram.ip.source,
            destination: datagram.ip.destination,
            source_port,
        };
        let (key, qp, psn) = (bth.pkey(), bth.dest_qp(), bth.psn());
        let mut is_new = false;
        let flow = self.flows.get_or_insert_with(tuple, at, || {
            is_new = true;
            Packets {
                last: (key, qp, psn),
                proven: false,
            }
        });
        if !is_new {
            let (last_key, last_qp, last_psn) = flow.last;
            flow.proven |= (key, qp) == (last_key, last_qp) && psn == (last_psn + 1) & 0x00FF_FFFF;
            flow.last = (key, qp, psn);
        }
        flow.proven
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RECEIVER, SENDER, build, ip};
    use fcn_wire::bth::BthRepr;
    use fcn_wire::compose::{Part, UdpChecksum};
    use fcn_wire::icrc::Policy;
    use fcn_wire::{LinkType, Opcode, Profile};

    fn packet(from: u16, qp: u32, psn: u32, opcode: Opcode) -> Vec<u8> {
        let udp = Part::Udp {
            source: from,
            destination: 4791,
            checksum: UdpChecksum::Zero,
        };
        build(&[
            ip(SENDER.into(), RECEIVER.into()),
            udp,
            Part::Bth(BthRepr::new(opcode, Qp::truncate(qp), psn)),
            Part::Bytes(&[7; 16]),
            Part::Icrc(Policy::Corrupt),
        ])
    }

    fn is_roce(unproven: &mut Unproven, bytes: &[u8]) -> bool {
        let profile = Profile::DEFAULT;
        let mut frame = Frame::parse(bytes, bytes.len(), LinkType::RawIp, &profile);
        unproven.learn(&mut frame, 1);
        frame.is_roce()
    }

    #[test]
    fn consecutive_psns_of_one_flow_prove_roce() {
        let mut unproven = Unproven::default();
        let send = Opcode::RC_SEND_ONLY;
        for (from, qp, psn, opcode, proven) in [
            (4791, 7, 0x00FF_FFFF, send, false),
            // The same again, of another QP, and from another port.
            (4791, 7, 0x00FF_FFFF, send, false),
            (4791, 8, 0, send, false),
            (4791, 7, 0, send, false),
            (4792, 7, 1, send, false),
            (4791, 7, 1, Opcode(0xC3), false),
            (4791, 7, 1, send, true),
            // From then on every plausible one.
            (4791, 9, 77, send, true),
            (4791, 9, 77, Opcode(0xC3), false),
        ] {
            let bytes = packet(from, qp, psn, opcode);
            assert_eq!(is_roce(&mut unproven, &bytes), proven, "{from} {qp} {psn}");
        }
    }

    #[test]
    fn a_counting_protocol_in_other_octets_is_no_proof() {
        let mut unproven = Unproven::default();
        for count in 0..100 {
            let mut bytes = packet(4791, 7, 5, Opcode::RC_SEND_ONLY);
            // P_Key: for instance the number of a TFTP block.
            bytes[40 + 8 + 3] = count;
            assert!(!is_roce(&mut unproven, &bytes));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut unproven = Unproven::default();
        for from in 1..20_000 {
            let bytes = packet(from, 7, 5, Opcode::RC_SEND_ONLY);
            assert!(!is_roce(&mut unproven, &bytes));
        }
        assert!(unproven.flows.len() <= FLOWS);
    }
}
