//! The ICRC compared with its definition, over packets of every shape.

mod icrc_support;

use fcn_wire::icrc::{ICRC_LEN, Policy, Reading, Verdict, compute, fill, verify};
use icrc_support::{Extension, Packet, V4, V6};
use proptest::collection::vec;
use proptest::prelude::*;

fn options() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    // 0 is Pad1, which has no length octet.
    vec((1u8..=255, vec(any::<u8>(), 0..40)), 0..4)
}

fn extension() -> impl Strategy<Value = Extension> {
    prop_oneof![
        options().prop_map(Extension::HopByHop),
        options().prop_map(Extension::DestinationOptions),
        (any::<u8>(), 0u8..4).prop_map(|(kind, addresses)| Extension::Routing(kind, addresses)),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let v4 = (
        any::<(u8, u16, u8, u8, [u8; 4], [u8; 4])>(),
        vec(any::<[u8; 4]>(), 0..=10),
    )
        .prop_map(|((tos, id, flags, ttl, source, destination), options)| V4 {
            tos,
            id,
            flags,
            ttl,
            source,
            destination,
            options: options.concat(),
        });
    let v6 = (
        any::<(u8, u32, u8, [u8; 16], [u8; 16])>(),
        vec(extension(), 0..4),
    )
        .prop_map(
            |((traffic_class, flow_label, hop_limit, source, destination), extensions)| V6 {
                traffic_class,
                flow_label,
                hop_limit,
                source,
                destination,
                extensions,
            },
        );
    let rest = || (any::<u16>(), any::<[u8; 12]>(), vec(any::<u8>(), 0..300));
    prop_oneof![
        (v4, rest()).prop_map(|(ip, (port, bth, payload))| ip.packet(port, bth, &payload)),
        (v6, rest()).prop_map(|(ip, (port, bth, payload))| ip.packet(port, bth, &payload)),
    ]
}

fn reading() -> impl Strategy<Value = Reading> {
    proptest::sample::select(&Reading::ALL[..])
}

proptest! {
    #[test]
    fn computed_icrc_matches_the_definition(packet in packet(), reading in reading()) {
        prop_assert_eq!(
            compute(packet.covered(), packet.udp, reading),
            Some(packet.reference(reading))
        );
    }

    #[test]
    fn filled_icrcs_verify_with_their_reading(packet in packet(), reading in reading()) {
        let mut packet = packet;
        prop_assert!(fill(&mut packet.bytes, packet.udp, Policy::Compute(reading)));
        prop_assert_eq!(packet.icrc(), packet.reference(reading));
        let named = packet.has_extensions().then_some(reading);
        prop_assert_eq!(verify(&packet.bytes, packet.udp), Verdict::Good(named));
    }

    #[test]
    fn zeros_and_corruption_are_detected(packet in packet()) {
        let mut packet = packet;
        let expected = packet.reference(Reading::default());
        for (policy, found) in [(Policy::Corrupt, !expected), (Policy::Zero, 0)] {
            prop_assert!(fill(&mut packet.bytes, packet.udp, policy));
            prop_assert_eq!(packet.icrc(), found);
            prop_assert_eq!(
                verify(&packet.bytes, packet.udp),
                Verdict::Bad { found, expected }
            );
        }
    }

    #[test]
    fn no_octets_make_it_panic(bytes in vec(any::<u8>(), 0..200), udp in 0usize..220, policy in 0usize..6) {
        let mut bytes = bytes;
        let policy = match policy {
            4 => Policy::Zero,
            5 => Policy::Corrupt,
            n => Policy::Compute(Reading::ALL[n]),
        };
        let _ = verify(&bytes, udp);
        let before = bytes.clone();
        if !fill(&mut bytes, udp, policy) {
            prop_assert_eq!(before, bytes);
        }
    }

    #[test]
    fn arbitrary_extension_headers_do_not_panic(
        bytes in vec(any::<u8>(), 60..200),
        next in proptest::sample::select(vec![0u8, 43, 44, 51, 60]),
        len in proptest::sample::select(vec![0u8, 1, 2, 254, 255]),
        option in proptest::sample::select(vec![0u8, 1, 16, 17, 18, 254, 255]),
        udp in 40usize..200,
    ) {
        let mut bytes = bytes;
        bytes[0] = 0x60;
        bytes[6] = next;
        bytes[41] = len;
        bytes[42] = 0x31;
        bytes[43] = option;
        for reading in Reading::ALL {
            let _ = compute(&bytes, udp, reading);
        }
        let _ = verify(&bytes, udp);
    }
}

/// Returns one packet of each shape, filled with octets that all differ from ones.
fn shapes() -> Vec<Packet> {
    let bth = [0x0A, 0x40, 0x7F, 0x7E, 0x15, 1, 2, 3, 0x80, 4, 5, 6];
    let payload: Vec<u8> = (0..24).collect();
    let v4 = V4 {
        tos: 0x1A,
        id: 0x1234,
        flags: 2,
        ttl: 17,
        source: [192, 0, 2, 1],
        destination: [198, 51, 100, 2],
        options: Vec::new(),
    };
    let v4_options = V4 {
        options: vec![1; 12],
        ..v4.clone()
    };
    let v6 = |extensions| V6 {
        traffic_class: 0x5A,
        flow_label: 0x1_2345,
        hop_limit: 9,
        source: core::array::from_fn(|i| i as u8),
        destination: core::array::from_fn(|i| 0x40 + i as u8),
        extensions,
    };
    vec![
        v4.packet(0xC123, bth, &payload),
        v4_options.packet(0xC123, bth, &[]),
        v6(vec![]).packet(0xC123, bth, &payload),
        v6(vec![Extension::DestinationOptions(vec![(
            0x9E,
            vec![7; 16],
        )])])
        .packet(0xC123, bth, &[0; 16]),
        v6(vec![
            Extension::HopByHop(vec![(0x31, vec![3; 28]), (0x05, vec![0; 2])]),
            Extension::Routing(4, 2),
            Extension::DestinationOptions(vec![(0x1E, vec![7; 16]), (0x3E, vec![5])]),
        ])
        .packet(0xC123, bth, &payload),
    ]
}

/// Returns the bits of an octet that the ICRC must not depend on.
fn masked_bits(packet: &Packet, at: usize, reading: Reading) -> u8 {
    let udp = packet.udp;
    let extended = packet.has_extensions();
    let base = if packet.is_v6() {
        match at {
            0 => 0x0F,
            1..=3 | 7 => 0xFF,
            6 if extended && reading == Reading::Rewritten => 0xFF,
            _ => 0,
        }
    } else {
        match at {
            1 | 8 | 10 | 11 => 0xFF,
            _ => 0,
        }
    };
    let left_out = extended
        && match reading {
            Reading::Covered => packet.mutable.iter().any(|range| range.contains(&at)),
            Reading::Skipped | Reading::Rewritten => (40..udp).contains(&at),
            Reading::SoftRoce => (46..udp + 8).contains(&at),
        };
    let transport = [udp + 6, udp + 7, udp + 12].contains(&at);
    if left_out || transport { 0xFF } else { base }
}

#[test]
fn exactly_the_masked_bits_are_ignored() {
    for packet in shapes() {
        for reading in Reading::ALL {
            let before = compute(packet.covered(), packet.udp, reading);
            assert_eq!(before, Some(packet.reference(reading)));
            let mut covered = packet.covered().to_vec();
            for at in 0..covered.len() {
                for bit in 0..8 {
                    covered[at] ^= 1 << bit;
                    let same = compute(&covered, packet.udp, reading) == before;
                    let masked = masked_bits(&packet, at, reading) >> bit & 1 == 1;
                    assert_eq!(
                        same, masked,
                        "octet {at} bit {bit}, reading {reading}, UDP at {}",
                        packet.udp
                    );
                    covered[at] ^= 1 << bit;
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_after_the_masks_is_detected() {
    for packet in shapes() {
        let mut packet = packet;
        fill(&mut packet.bytes, packet.udp, Policy::default());
        for at in packet.udp + 13..packet.bytes.len() {
            for bit in 0..8 {
                packet.bytes[at] ^= 1 << bit;
                let verdict = verify(&packet.bytes, packet.udp);
                assert!(
                    matches!(verdict, Verdict::Bad { .. }),
                    "octet {at} bit {bit}"
                );
                packet.bytes[at] ^= 1 << bit;
            }
        }
        let good = verify(&packet.bytes, packet.udp);
        assert!(matches!(good, Verdict::Good(_)), "{good:?}");
    }
}

#[test]
fn short_packets_are_unchecked_not_bad() {
    for packet in shapes() {
        let mut packet = packet;
        fill(&mut packet.bytes, packet.udp, Policy::default());
        for len in 0..packet.udp + 20 + ICRC_LEN {
            assert_eq!(
                verify(&packet.bytes[..len], packet.udp),
                Verdict::Unchecked,
                "{len} octets"
            );
        }
        for udp in [usize::MAX, usize::MAX - 20, packet.bytes.len()] {
            assert_eq!(verify(&packet.bytes, udp), Verdict::Unchecked);
            assert!(!fill(&mut packet.bytes, udp, Policy::default()));
        }
    }
}
