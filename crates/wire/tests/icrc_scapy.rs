//! The ICRC compared with an independent implementation, the RoCE layer of Scapy, in both
//! directions.
//!
//! Scapy computes no ICRC if there are extension headers. Before 2.6 it computes none over IPv6
//! either: then the oracle combines Scapy's IPv6 and UDP layers with zlib's CRC.

mod icrc_support;

use fcn_wire::icrc::{Policy, Verdict, fill, verify};
use icrc_support::{Packet, V4, V6};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::io::Write;
use std::process::{Command, Stdio};

/// Debian's Python: the first `python3` in the path may lack Scapy.
const PYTHON: &str = "/usr/bin/python3";
const PACKETS: usize = 400;

/// Reads packets as hexadecimal lines and answers each with Scapy's ICRC; then generates its own
/// packets.
const ORACLE: &str = r#"
import logging, random, sys
logging.getLogger("scapy").setLevel(logging.ERROR)
from zlib import crc32
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw
from scapy.contrib import roce
from scapy.contrib.roce import BTH, AETH, cnp

KNOWS_IPV6 = hasattr(roce, "IPv6")

def built(ip):
    """The packet as Scapy builds it, ICRC included."""
    octets = bytes(ip)
    if isinstance(ip, IP) or KNOWS_IPV6:
        return octets
    masked = ip.copy()
    masked.tc, masked.fl, masked.hlim = 0xFF, 0xFFFFF, 0xFF
    masked[UDP].chksum = 0xFFFF
    bth = masked[BTH]
    bth.fecn, bth.becn, bth.resv6, bth.icrc = 1, 1, 0x3F, 0
    crc = crc32(b"\xff" * 8 + bytes(masked)[:-4])
    return octets[:-4] + crc.to_bytes(4, "little")

def answer(octets):
    ip = IP(octets) if octets[0] >> 4 == 4 else IPv6(octets)
    # Dissected by hand: the layers Scapy has bound to other UDP ports win over RoCEv2 where the source port is theirs.
    behind = bytes(ip[UDP].payload)
    ip[UDP].remove_payload()
    bth = BTH(behind)
    del bth.icrc
    ip[UDP].add_payload(bth)
    again = built(ip)
    assert again[:-4] == octets[:-4], "Scapy changed the packet: " + again.hex() + " " + octets.hex()
    return again[-4:]

lines = sys.stdin.read().split()
for line in lines:
    print("icrc", answer(bytes.fromhex(line)).hex())

dice = random.Random(4791)
def number(bits):
    return dice.getrandbits(bits)
def octets(most):
    return bytes(number(8) for _ in range(dice.randrange(most)))
for _ in range(len(lines)):
    if dice.random() < 0.5:
        ip = IP(tos=number(8), id=number(16), ttl=number(8), flags=dice.choice([0, 2]),
                src="10.%d.%d.%d" % (number(8), number(8), number(8)), dst="192.0.2.%d" % number(8),
                options=[IPOption_NOP()] * dice.choice([0, 0, 4, 40]))
    else:
        ip = IPv6(tc=number(8), fl=number(20), hlim=number(8), src="2001:db8::%x" % number(16), dst="fd00::%x" % number(16))
    kind = dice.randrange(3)
    if kind == 0:
        bth = cnp(number(24))
        bth.fecn = number(1)
    elif kind == 1:
        bth = BTH(opcode="RC_ACKNOWLEDGE", dqpn=number(24), psn=number(24)) / AETH(syndrome=number(8), msn=number(24))
    else:
        bth = BTH(opcode=dice.choice(["RC_SEND_ONLY", "UC_RDMA_WRITE_MIDDLE"]), solicited=number(1), migreq=number(1),
                  padcount=number(2), version=number(4), pkey=number(16), fecn=number(1), becn=number(1), resv6=number(6),
                  dqpn=number(24), ackreq=number(1), resv7=number(7), psn=number(24)) / Raw(octets(600))
    ip = ip / UDP(sport=number(16), dport=4791, chksum=number(16)) / bth
    print("made", built(ip).hex())
"#;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn packets() -> impl Strategy<Value = Packet> {
    let v4 = (
        any::<(u8, u16, u8, [u8; 4], [u8; 4])>(),
        proptest::sample::select(vec![0usize, 0, 4, 40]),
    )
        .prop_map(|((tos, id, ttl, source, destination), nops)| {
            (
                Some(V4 {
                    tos,
                    id,
                    flags: 2,
                    ttl,
                    source,
                    destination,
                    options: vec![1; nops],
                }),
                None,
            )
        });
    let v6 = any::<(u8, u32, u8, [u8; 16], [u8; 16])>().prop_map(
        |(traffic_class, flow_label, hop_limit, source, destination)| {
            (
                None,
                Some(V6 {
                    traffic_class,
                    flow_label,
                    hop_limit,
                    source,
                    destination,
                    extensions: Vec::new(),
                }),
            )
        },
    );
    // A CNP, a send with payload, an acknowledgement, any opcode.
    let opcode = prop_oneof![Just(0x81u8), Just(0x04), Just(0x11), any::<u8>()];
    (
        prop_oneof![v4, v6],
        any::<(u16, [u8; 12])>(),
        opcode,
        vec(any::<u8>(), 0..600),
    )
        .prop_map(|((v4, v6), (port, mut bth), opcode, payload)| {
            bth[0] = opcode;
            let payload = match opcode {
                0x81 => vec![0; 16],
                0x11 => payload.into_iter().chain([0; 4]).take(4).collect(),
                _ => payload,
            };
            let mut packet = match (v4, v6) {
                (Some(ip), _) => ip.packet(port, bth, &payload),
                (_, Some(ip)) => ip.packet(port, bth, &payload),
                _ => unreachable!("one of the two"),
            };
            assert!(fill(&mut packet.bytes, packet.udp, Policy::default()));
            packet
        })
}

#[test]
fn scapy_gives_the_same_icrc() {
    let usable = Command::new(PYTHON)
        .args(["-c", "import scapy.contrib.roce"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !usable {
        fcn_skip::skipped!("python3-scapy is not installed (apt-get install python3-scapy)");
        return;
    }
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let packets: Vec<Packet> = (0..PACKETS)
        .map(|_| packets().new_tree(&mut runner).unwrap().current())
        .collect();

    let mut oracle = Command::new(PYTHON)
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The oracle reads everything before it writes, so neither side blocks the other.
    let mut input = oracle.stdin.take().unwrap();
    for packet in &packets {
        writeln!(input, "{}", hex(&packet.bytes)).unwrap();
    }
    drop(input);
    let output = oracle.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = |word: &str| -> Vec<Vec<u8>> {
        text.lines()
            .filter_map(|line| line.strip_prefix(word))
            .map(octets)
            .collect()
    };

    let theirs = answers("icrc ");
    assert_eq!(theirs.len(), PACKETS);
    for (packet, icrc) in packets.iter().zip(theirs) {
        assert_eq!(
            packet.icrc().to_le_bytes(),
            icrc[..],
            "{}",
            hex(&packet.bytes)
        );
    }
    let made = answers("made ");
    assert_eq!(made.len(), PACKETS);
    for packet in &made {
        let udp = if packet[0] >> 4 == 4 {
            usize::from(packet[0] & 15) * 4
        } else {
            40
        };
        assert_eq!(verify(packet, udp), Verdict::Good(None), "{}", hex(packet));
    }
    let v6 =
        |packets: &mut dyn Iterator<Item = u8>| packets.filter(|first| first >> 4 == 6).count();
    assert!(v6(&mut packets.iter().map(|p| p.bytes[0])) > PACKETS / 4);
    assert!(v6(&mut made.iter().map(|p| p[0])) > PACKETS / 4);
}
