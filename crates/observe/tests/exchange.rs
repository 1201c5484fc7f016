//! Flows and receivers as a capture at one point shows them: NAKs before the sender's QP is known,
//! QP numbers used again, packets captured twice.

use fcn_observe::FlowKey;
use fcn_observe::correlator::{Capture, Correlator, Flow};
use fcn_observe::data::DataPacket;
use fcn_observe::exchange::Cause;
use fcn_wire::bth::AckKind;
use fcn_wire::{Frame, LinkType, Opcode, Profile, Qp};

const SENDER: [u8; 4] = [10, 0, 1, 1];
const RECEIVER: [u8; 4] = [10, 0, 2, 1];
const MS: u64 = 1_000_000;
const ACK: u8 = 0x1F;
const RNR_NAK: u8 = 0x2E;

/// Returns a RoCEv2 packet over IPv4: to `qp`, with this PSN, opcode and what follows the BTH.
fn packet(
    [source, destination]: [[u8; 4]; 2],
    (opcode, qp, psn): (Opcode, u8, u32),
    rest: &[u8],
    ce: bool,
) -> Vec<u8> {
    let len = 20 + 8 + 12 + rest.len() + 4;
    let mut packet = vec![
        0x45,
        2 | u8::from(ce),
        0,
        len as u8,
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
    ];
    packet.extend(source);
    packet.extend(destination);
    packet.extend([0xC0, 0, 0x12, 0xB7, 0, len as u8 - 20, 0, 0]);
    packet.extend([opcode.0, 0, 0xFF, 0xFF, 0, 0, 0, qp]);
    packet.extend((psn | 0x8000_0000).to_be_bytes());
    packet.extend(rest);
    packet.extend([0; 4]);
    packet
}

#[derive(Default)]
struct Net(Option<Correlator<u64>>);

impl Net {
    fn observe(&mut self, at: u64, bytes: &[u8]) {
        let net = self.0.get_or_insert_with(|| Correlator::new(100, 100));
        let frame = Frame::parse(bytes, bytes.len(), LinkType::RawIp, &Profile::DEFAULT);
        let capture = Capture::at_single_point(1_000_000 * MS + at);
        if let Some(data) = DataPacket::from_frame(&frame) {
            net.data(&capture, &frame, (&data, true), |flow, _| flow.extra += 1);
        } else {
            net.ingest(&capture, &frame);
        }
    }

    fn data(&mut self, at: u64, psn: u32) {
        let about = (Opcode::RC_SEND_ONLY, 5, psn);
        self.observe(at, &packet([SENDER, RECEIVER], about, &[0; 64], false));
    }

    fn marked(&mut self, at: u64, psn: u32) {
        let about = (Opcode::RC_SEND_ONLY, 5, psn);
        self.observe(at, &packet([SENDER, RECEIVER], about, &[0; 64], true));
    }

    /// Acknowledges to QP 9.
    fn ack(&mut self, at: u64, psn: u32, syndrome: u8) {
        let about = (Opcode::RC_ACKNOWLEDGE, 9, psn);
        let aeth = [syndrome, 0, 0, 1];
        self.observe(at, &packet([RECEIVER, SENDER], about, &aeth, false));
    }

    fn cnp(&mut self, at: u64) {
        let about = (Opcode::CNP, 9, 0);
        self.observe(at, &packet([RECEIVER, SENDER], about, &[0; 16], false));
    }

    fn flow(&self) -> &Flow<u64> {
        let key = FlowKey {
            sender: SENDER.into(),
            receiver: RECEIVER.into(),
            receiver_qp: Qp::truncate(5),
        };
        self.0.as_ref().unwrap().flows().get(&key).unwrap()
    }
}

#[test]
fn a_nak_of_the_first_packet_is_the_cause_of_the_stall() {
    for first in [0, 5_000] {
        let mut net = Net::default();
        net.data(0, first);
        net.ack(2_000, first, RNR_NAK);
        net.data(655 * MS, first);
        net.ack(655 * MS + 2_000, first, RNR_NAK);
        net.data(1_310 * MS, first);
        let exchange = &net.flow().exchange;
        let [rnr, unanswered] =
            [Cause::RnrNak, Cause::Unanswered].map(|cause| exchange.silences(cause).count);
        assert_eq!((rnr, unanswered), (2, 0), "{first}");
        // A timeout after it has its own cause.
        net.data(1_900 * MS, first);
        assert_eq!(net.flow().exchange.silences(Cause::Unanswered).count, 1);
    }
}

#[test]
fn the_first_connection_of_a_qp_used_again_stays_counted() {
    for packets in [3, 40, 500] {
        let mut net = Net::default();
        for connection in 0..3 {
            let start = connection * 100 * MS;
            for psn in 0..packets {
                net.data(start + u64::from(psn) * 10_000, psn);
                net.ack(start + u64::from(psn) * 10_000 + 5_000, psn, ACK);
            }
        }
        let flow = net.flow();
        assert_eq!(flow.extra, u64::from(3 * packets));
        let exchange = &flow.exchange;
        assert_eq!((exchange.resent, exchange.late), (0, 0), "{packets}");
        assert_eq!(exchange.longest_silence(), None, "{packets}");
    }
}

#[test]
fn an_unreliable_connection_from_psn_0_retransmits_nothing() {
    let mut net = Net::default();
    for connection in 0..3 {
        for psn in 0..50 {
            let about = (Opcode::UC_SEND_ONLY, 5, psn);
            let bytes = packet([SENDER, RECEIVER], about, &[0; 64], false);
            net.observe(connection * 100 * MS + u64::from(psn) * 1_000, &bytes);
        }
    }
    let flow = net.flow();
    assert_eq!((flow.extra, flow.exchange.resent), (150, 0));
    assert_eq!(flow.exchange.longest_silence(), None);
}

#[test]
fn psns_that_wrap_around_continue_the_connection() {
    let mut net = Net::default();
    for number in 0..100 {
        let (at, psn) = (u64::from(number) * 2 * MS, (0xFF_FFCE + number) & 0xFF_FFFF);
        net.data(at, psn);
        net.ack(at + 5_000, psn, ACK);
    }
    let flow = net.flow();
    assert_eq!(flow.first, 1_000_000 * MS);
    assert_eq!((flow.extra, flow.exchange.acks(AckKind::Ack)), (100, 100));
}

#[test]
fn a_sender_that_goes_back_to_psn_0_retransmits() {
    let mut net = Net::default();
    for psn in 0..10 {
        net.data(u64::from(psn) * 1_000, psn);
    }
    for psn in 0..10 {
        net.data(100 * MS + u64::from(psn) * 1_000, psn);
    }
    let exchange = &net.flow().exchange;
    assert_eq!(exchange.resent, 10);
    assert_eq!(exchange.silences(Cause::Unanswered).count, 1);
}

#[test]
fn packets_captured_twice_count_once() {
    for delay in [1_000, 60_000] {
        let mut net = Net::default();
        let mut packets = Vec::new();
        for round in 0..200_u32 {
            let at = u64::from(round) * 100_000;
            for at in [at, at + delay] {
                packets.extend([
                    (at, 0, round),
                    (at + 10_000, 1, round),
                    (at + 20_000, 2, round),
                ]);
            }
        }
        packets.sort_unstable();
        for (at, kind, round) in packets {
            match kind {
                0 => net.marked(at, 5_000 + round),
                1 => net.ack(at, 5_000 + round, ACK),
                _ => net.cnp(at),
            }
        }
        let acks = net.flow().exchange.acks(AckKind::Ack);
        // The first few are counted before the copies are known.
        assert!((200..=205).contains(&acks), "{acks}");
        assert_eq!(net.flow().exchange.resent, 0);
        let (_, receiver) = net.0.as_ref().unwrap().receivers().iter().next().unwrap();
        assert!((200..=205).contains(&receiver.cnps), "{}", receiver.cnps);
        assert_eq!(receiver.marked, 200);
    }
}
