//! Rewriting compared with building from scratch: a rewritten packet equals the packet that
//! `compose` builds from the new values, octet for octet; and rewriting back restores the original
//! octets, including any errors in them.

#[path = "rewrite_support/mod.rs"]
mod support;

use fcn_wire::frame::LinkType;
use fcn_wire::icrc::{Reading, Verdict};
use fcn_wire::pnc::Prefix;
use fcn_wire::rewrite::{
    LoopVariation, Outcome, PriorIcrc, RewriteError, Rules, RulesError, VlanTag,
};
use fcn_wire::{Frame, Profile, Qp};
use proptest::prelude::*;
use proptest::sample::Index;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use support::{MACS, Values, Wrong, ethernet, packets, wrapped};

/// Chosen so that they occur nowhere by chance.
const OLD6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0xbeef, 0, 0, 0, 0);
const NEW6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xfeed, 0xf00d, 0, 0, 0, 0);
const OLD4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 0);
const NEW4: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 0);

fn prefix(address: impl Into<IpAddr>, bits: u8) -> Prefix {
    Prefix::new(address.into(), bits).unwrap()
}

/// Maps the old prefixes to the new ones and vice versa, so that rewriting twice changes nothing.
fn swapped() -> Rules {
    let mut rules = Rules::default();
    for (a, b) in [
        (prefix(OLD6, 64), prefix(NEW6, 64)),
        (prefix(OLD4, 24), prefix(NEW4, 24)),
    ] {
        rules = rules.map_prefix(a, b).unwrap().map_prefix(b, a).unwrap();
    }
    rules
}

fn apply_as(rules: &Rules, packet: &[u8], wire_len: usize, link: LinkType) -> (Vec<u8>, Outcome) {
    let mut out = vec![0xEE; packet.len() + 40];
    let outcome = rules
        .apply(packet, wire_len, link, &Profile::DEFAULT, &mut out)
        .unwrap();
    assert!(out[outcome.len..].iter().all(|octet| *octet == 0xEE));
    out.truncate(outcome.len);
    (out, outcome)
}

fn apply(rules: &Rules, packet: &[u8]) -> (Vec<u8>, Outcome) {
    apply_as(rules, packet, packet.len(), LinkType::Ethernet)
}

fn parse(packet: &[u8]) -> Frame<'_> {
    Frame::parse(packet, packet.len(), LinkType::Ethernet, &Profile::DEFAULT)
}

fn contains(packet: &[u8], octets: &[u8]) -> bool {
    packet.windows(octets.len()).any(|window| window == octets)
}

#[track_caller]
fn same(name: &str, found: &[u8], expected: &[u8]) {
    let differ = || {
        let at = (0..found.len().min(expected.len())).find(|at| found[*at] != expected[*at]);
        let spans = parse(found).spans().to_vec();
        format!("{name} differs from octet {at:?} on\n{found:02x?}\n{expected:02x?}\n{spans:?}")
    };
    assert!(found == expected, "{}", differ());
}

fn values() -> impl Strategy<Value = Values> {
    let readings = proptest::sample::select(&Reading::ALL[..]);
    let hosts = (any::<[u64; 6]>(), any::<[u8; 4]>());
    let numbers = (
        2..0xFF_FFFFu32,
        2..0xFF_FFFFu32,
        0..=0xFF_FFFFu32,
        any::<u16>(),
    );
    (hosts, numbers, 0..=0xF_FFFFu32, readings, any::<bool>()).prop_map(
        |((hosts6, hosts4), (qp, other_qp, psn, port), label, reading, checksums)| Values {
            v6: hosts6.map(|host| Ipv6Addr::from_bits(OLD6.to_bits() | u128::from(host))),
            v4: hosts4.map(|host| Ipv4Addr::from_bits(OLD4.to_bits() | u32::from(host))),
            qp,
            other_qp,
            psn,
            port,
            label,
            reading,
            checksums,
            wrong: Wrong::Nothing,
        },
    )
}

/// Moves values from the old prefixes to the new ones, or back: exclusive-or works both ways.
fn moved(values: &Values) -> Values {
    Values {
        v6: values
            .v6
            .map(|a| Ipv6Addr::from_bits(a.to_bits() ^ OLD6.to_bits() ^ NEW6.to_bits())),
        v4: values
            .v4
            .map(|a| Ipv4Addr::from_bits(a.to_bits() ^ OLD4.to_bits() ^ NEW4.to_bits())),
        ..*values
    }
}

/// Sets a source port of RoCEv2 senders, from which packets are RoCEv2 whatever is wrong with them.
fn spread(values: Values) -> Values {
    Values {
        port: values.port | 0xC000,
        ..values
    }
}

fn every_wrong(by: u16) -> [Wrong; 5] {
    [
        Wrong::Icrc(by),
        Wrong::ZeroIcrc,
        Wrong::Udp(by),
        Wrong::Ipv4(by),
        Wrong::Other(by),
    ]
}

/// Returns every packet in every wrapping, with the same built from `moved`.
fn both<'a>(
    values: &'a Values,
    moved: &'a Values,
) -> impl Iterator<Item = (String, Vec<u8>, Vec<u8>)> + use<'a> {
    let one = wrapped(values);
    let other = wrapped(moved);
    one.into_iter()
        .zip(other)
        .map(|((name, a), (_, b))| (name, a, b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rewritten_addresses_match_a_rebuilt_packet(values in values()) {
        // Before a payload length of 0x0071, the end of such a flow label completes the old prefix,
        // 203.0.113.
        prop_assume!(values.label & 0xFF != 0xCB);
        let rules = swapped();
        for (name, old, new) in both(&values, &moved(&values)) {
            let (out, outcome) = apply(&rules, &old);
            same(&name, &out, &new);
            prop_assert!(!contains(&out, &[0xde, 0xad, 0xbe, 0xef]), "{name}");
            prop_assert!(!contains(&out, &OLD4.octets()[..3]), "{name}");
            prop_assert!(parse(&out).spans() == parse(&old).spans(), "{name}");
            prop_assert_eq!(parse(&out).verify_icrc(), parse(&old).verify_icrc());
            prop_assert!(!outcome.is_cut());
            same(&name, &apply(&rules, &out).0, &old);
        }
    }

    #[test]
    fn rewritten_numbers_match_a_rebuilt_packet(
        values in values(), by_qp in any::<i32>(), by_psn in any::<u32>(), by_label in any::<u32>(), by_port: u16,
    ) {
        let rules = swapped()
            .add_qp(by_qp)
            .add_psn(by_psn)
            .set_flow_label(values.label.wrapping_add(by_label) & 0xF_FFFF)
            .unwrap()
            .add_udp_source(0..=0xFFFF, by_port)
            .unwrap()
            .verify_icrc();
        let qp = |qp: u32| (2 + (i64::from(qp) - 2 + i64::from(by_qp)).rem_euclid(0xFF_FFFD)) as u32;
        let new = Values {
            qp: qp(values.qp),
            other_qp: qp(values.other_qp),
            psn: values.psn.wrapping_add(by_psn) & 0xFF_FFFF,
            label: values.label.wrapping_add(by_label) & 0xF_FFFF,
            port: values.port.wrapping_add(by_port),
            ..moved(&values)
        };
        let back = swapped()
            .add_qp((-i64::from(by_qp)).rem_euclid(0xFF_FFFD) as i32)
            .add_psn(by_psn.wrapping_neg())
            .set_flow_label(values.label)
            .unwrap()
            .add_udp_source(0..=0xFFFF, by_port.wrapping_neg())
            .unwrap();
        for (name, old, new) in both(&values, &new) {
            let (out, outcome) = apply(&rules, &old);
            same(&name, &out, &new);
            match parse(&old).verify_icrc() {
                Verdict::Good(reading) => prop_assert_eq!(outcome.icrc, PriorIcrc::Good(reading)),
                _ => prop_assert_eq!(outcome.icrc, PriorIcrc::Absent, "{}", name),
            }
            same(&name, &apply(&back, &out).0, &old);
        }
    }

    #[test]
    fn errors_are_preserved(values in values(), by in 1..=0xFFFEu16) {
        let rules = swapped();
        for wrong in every_wrong(by) {
            let values = Values { wrong, ..spread(values) };
            for (name, old, new) in both(&values, &moved(&values)) {
                let (out, _) = apply(&rules, &old);
                same(&format!("{name}, {wrong:?}"), &out, &new);
                same(&format!("{name}, {wrong:?}, back"), &apply(&rules, &out).0, &old);
            }
        }
    }

    #[test]
    fn repair_corrects_errors(values in values(), by in 1..=0xFFFEu16) {
        // An ICRC that matches no reading is repaired by the default one.
        let values = Values { reading: Reading::default(), ..spread(values) };
        let rules = swapped().repair();
        for wrong in every_wrong(by).into_iter().chain([Wrong::Nothing]) {
            let broken = Values { wrong, ..values };
            for (name, old, new) in both(&broken, &moved(&values)) {
                let (out, _) = apply(&rules, &old);
                same(&format!("{name}, {wrong:?}"), &out, &new);
            }
        }
    }

    #[test]
    fn rewriting_any_octets_does_not_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        which in 0..1000usize,
        at in any::<Index>(),
        flips in proptest::collection::vec((any::<Index>(), any::<u8>()), 0..6),
        missing in 0..100usize,
    ) {
        let samples = wrapped(&Values::default());
        if which > 20 {
            bytes = samples[which % samples.len()].1.clone();
            for (at, value) in flips {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(at.index(bytes.len() * 2) + 1);
        }
        let everything = everything();
        for link in [
            LinkType::Ethernet,
            LinkType::RawIp,
            LinkType::LinuxCooked,
            LinkType::LinuxCooked2,
            LinkType::Null,
        ] {
            let mut out = vec![0xEE; bytes.len() + 40];
            for rules in [&everything, &swapped().repair()] {
                let _ = rules.apply(&bytes, bytes.len() + missing, link, &Profile::DEFAULT, &mut out);
            }
        }
    }
}

/// Returns rules of every kind at once.
fn everything() -> Rules {
    let rules = swapped()
        .source_mac([2; 6])
        .map_mac([1; 6], [3; 6])
        .unwrap()
        .to_ethernet([4; 6], [6; 6])
        .map_vlan(1, 2)
        .unwrap()
        .push_vlan(VlanTag {
            id: 9,
            priority: 1,
            service: true,
        })
        .unwrap()
        .map_udp_source(1, 2)
        .unwrap()
        .map_qp(Qp::truncate(5), Qp::truncate(6))
        .unwrap()
        .add_psn(1)
        .add_qp(-5)
        .set_flow_label(3)
        .unwrap();
    LoopVariation::new(&rules)
        .psn(1000)
        .qp(3)
        .udp_source(49152..=65535, 1)
        .unwrap()
        .addresses(prefix(NEW6, 64), 1)
        .rules(12)
}

#[test]
fn foreign_packets_to_the_rocev2_port_are_unchanged() {
    // A packet with a wrong ICRC for RoCEv2 and the source port of DNS.
    let data = |port| {
        let values = Values {
            wrong: Wrong::Icrc(7),
            port,
            ..Values::default()
        };
        let (_, packet) = (packets(&values).into_iter())
            .find(|(name, _)| name == "data_v4")
            .unwrap();
        ethernet("data_v4", &packet)
    };
    let rules = swapped().add_psn(1).add_udp_source(0..=0xFFFF, 1).unwrap();
    for rules in [rules.clone(), rules.repair()] {
        let (theirs, ours) = (data(53), data(0xC053));
        // Source port, and everything after the UDP checksum, which covers the addresses.
        let kept = |packet: &[u8]| [&packet[34..36], &packet[42..]].concat();
        assert_eq!(kept(&apply(&rules, &theirs).0), kept(&theirs));
        assert_ne!(kept(&apply(&rules, &ours).0), kept(&ours));
    }
}

#[test]
fn empty_rules_change_nothing() {
    let values = Values::default();
    let all = wrapped(&values);
    assert!(all.len() > 300, "{}", all.len());
    for rules in [Rules::default(), Rules::default().repair()] {
        for (name, old) in &all {
            same(name, &apply(&rules, old).0, old);
        }
    }
}

#[test]
fn truncated_packets_are_rewritten_and_restored() {
    let values = Values::default();
    let rules = swapped();
    for (name, old) in packets(&values) {
        let frame = ethernet(&name, &old);
        let (whole, _) = apply(&rules, &frame);
        for len in 0..frame.len() {
            let cut = &frame[..len];
            let (out, outcome) = apply_as(&rules, cut, frame.len(), LinkType::Ethernet);
            assert_eq!((outcome.len, outcome.wire_len), (len, frame.len()));
            assert!(outcome.is_cut());
            let icrc = matches!(outcome.icrc, PriorIcrc::Absent | PriorIcrc::Unrepaired);
            assert!(icrc, "{name} cut to {len}: {:?}", outcome.icrc);
            // The only differences are checksums over the missing part.
            let differ = (0..len).filter(|at| out[*at] != whole[*at]).count();
            let whole_fields = len < 14 + 20 || differ <= 3 * 16;
            assert!(whole_fields, "{name} cut to {len}: {differ} octets differ");
            let (back, _) = apply_as(&rules, &out, frame.len(), LinkType::Ethernet);
            same(&name, &back, cut);
        }
    }
}

#[test]
fn addresses_before_the_cut_are_rewritten() {
    let values = Values::default();
    let rules = swapped();
    for (name, ip) in packets(&values) {
        // Truncated headers are not parsed.
        if name == "arp" || name == "cnp_v4_options" {
            continue;
        }
        let frame = ethernet(&name, &ip);
        let addresses = if ip[0] >> 4 == 4 { 14 + 20 } else { 14 + 40 };
        let cut = &frame[..addresses];
        let (out, _) = apply_as(&rules, cut, frame.len(), LinkType::Ethernet);
        assert!(!contains(&out, &[0xde, 0xad, 0xbe, 0xef]), "{name}");
        assert!(!contains(&out, &OLD4.octets()[..3]), "{name}");
        let whole = apply(&rules, &frame).0;
        same(&name, &out, &whole[..addresses]);
    }
}

/// Builds an Ethernet frame with these tags and an unused payload.
fn tagged(tags: &[[u8; 4]]) -> Vec<u8> {
    let macs = [[2u8, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    [macs, tags.concat(), vec![0x88, 0xB5, 1, 2, 3]].concat()
}

#[test]
fn link_rules_change_macs_and_tags_of_any_frame() {
    let (five, seven) = ([0x81, 0, 0xE0, 5], [0x88, 0xA8, 0x20, 7]);
    let plain = tagged(&[]);
    let stack = tagged(&[seven, five]);
    let rules = |f: fn(Rules) -> Rules| f(Rules::default());
    let push = |b: Rules| {
        b.push_vlan(VlanTag {
            id: 5,
            priority: 7,
            service: false,
        })
        .unwrap()
    };
    for (rules, packet, expected) in [
        (rules(Rules::remove_vlans), &stack, plain.clone()),
        (rules(Rules::remove_vlans), &plain, plain.clone()),
        (rules(push), &plain, tagged(&[five])),
        (rules(push), &tagged(&[seven]), tagged(&[five, seven])),
        (
            push(Rules::default().remove_vlans()),
            &stack,
            tagged(&[five]),
        ),
        (
            rules(|b| b.set_vlan(4095).unwrap()),
            &stack,
            tagged(&[[0x88, 0xA8, 0x2F, 0xFF], five]),
        ),
        (
            rules(|b| b.map_vlan(5, 6).unwrap()),
            &stack,
            tagged(&[seven, [0x81, 0, 0xE0, 6]]),
        ),
        (
            rules(|b| {
                b.source_mac([9; 6])
                    .map_mac([2, 0, 0, 0, 0, 1], [8; 6])
                    .unwrap()
            }),
            &plain,
            [&[8; 6][..], &[9; 6], &plain[12..]].concat(),
        ),
        (
            rules(|b| b.destination_mac([7; 6])),
            &plain,
            [&[7; 6][..], &plain[6..]].concat(),
        ),
    ] {
        let (out, outcome) = apply(&rules, packet);
        assert_eq!(out, expected);
        assert_eq!(outcome.icrc, PriorIcrc::Absent);
        let have = expected.len() - 1;
        let short = rules.apply(
            packet,
            0,
            LinkType::Ethernet,
            &Profile::DEFAULT,
            &mut vec![0; have],
        );
        assert_eq!(
            short,
            Err(RewriteError::Buffer {
                need: have + 1,
                have
            })
        );
    }
}

#[test]
fn adding_or_removing_tags_shifts_other_rewrites() {
    let values = Values::default();
    let moved = moved(&values);
    let tag = VlanTag {
        id: 100,
        priority: 3,
        service: false,
    };
    let pushing = swapped().push_vlan(tag).unwrap();
    let removing = swapped().remove_vlans();
    for ((name, old), (_, new)) in packets(&values).into_iter().zip(packets(&moved)) {
        let with_tag = |ip: &[u8]| {
            [
                &MACS[..],
                &[0x81, 0, 0x60, 100],
                &support::ether_type(&name, ip),
                ip,
            ]
            .concat()
        };
        same(
            &name,
            &apply(&pushing, &ethernet(&name, &old)).0,
            &with_tag(&new),
        );
        same(
            &name,
            &apply(&removing, &with_tag(&old)).0,
            &ethernet(&name, &new),
        );
    }
}

#[test]
fn packets_get_an_ethernet_header_on_request() {
    let values = Values::default();
    let moved = moved(&values);
    let rules = swapped().to_ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let plain = swapped().source_mac([5; 6]);
    for ((name, old), (_, new)) in packets(&values).into_iter().zip(packets(&moved)) {
        let number = support::ether_type(&name, &old);
        let ethernet = ethernet(&name, &new);
        let cooked = [&[0; 14][..], &number].concat();
        let cooked_2 = [&number[..], &[0; 18]].concat();
        for (link, header) in [
            (LinkType::RawIp, vec![]),
            (LinkType::Null, vec![30, 0, 0, 0]),
            (LinkType::LinuxCooked, cooked),
            (LinkType::LinuxCooked2, cooked_2),
        ] {
            if name.contains("arp") && header.len() < 16 {
                continue;
            }
            let packet = [&header, &old[..]].concat();
            let (out, outcome) = apply_as(&rules, &packet, packet.len(), link);
            same(&name, &out, &ethernet);
            assert_eq!(outcome.link, LinkType::Ethernet);
            assert_eq!(outcome.wire_len, ethernet.len());
            let (out, outcome) = apply_as(&plain, &packet, packet.len(), link);
            same(&name, &out, &[&header, &new[..]].concat());
            assert_eq!(outcome.link, link);
        }
    }
    for (link, packet) in [
        (LinkType::RawIp, &[0x50, 1][..]),
        (LinkType::RawIp, &[]),
        (LinkType::LinuxCooked, &[0; 16]),
        (LinkType::LinuxCooked2, &[0x86, 0xDD]),
    ] {
        let refused = rules.apply(packet, 0, link, &Profile::DEFAULT, &mut [0; 99]);
        assert_eq!(refused, Err(RewriteError::NoEtherType { link }));
        assert!(refused.unwrap_err().to_string().contains("Ethernet"));
    }
}

#[test]
fn the_longest_prefix_applies_and_unspecified_addresses_stay() {
    let to = |text: &str| prefix(text.parse::<IpAddr>().unwrap(), 0).bits();
    assert_eq!(to("::"), 0);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let rules = Rules::default()
        .map_prefix(prefix(address("::"), 0), prefix(address("::"), 0))
        .unwrap()
        .map_prefix(
            prefix(address("10.0.0.0"), 8),
            prefix(address("11.0.0.0"), 8),
        )
        .unwrap()
        .map_prefix(
            prefix(address("10.1.2.3"), 32),
            prefix(address("12.1.1.1"), 32),
        )
        .unwrap()
        .map_prefix(
            prefix(address("10.1.0.0"), 16),
            prefix(address("10.2.0.0"), 16),
        )
        .unwrap()
        .map_prefix(prefix(address("0.0.0.0"), 0), prefix(address("0.0.0.0"), 0))
        .unwrap();
    for (old, new) in [
        ("10.9.9.9", "11.9.9.9"),
        ("10.1.2.3", "12.1.1.1"),
        ("10.1.2.4", "10.2.2.4"),
        ("9.9.9.9", "9.9.9.9"),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        assert_eq!(rules.address(address(old)), address(new));
    }
}

#[test]
fn invalid_rules_are_refused() {
    let p = |text: &str, bits| prefix(text.parse::<IpAddr>().unwrap(), bits);
    let new = Rules::default;
    let twice = new()
        .map_prefix(p("10.0.0.0", 8), p("11.0.0.0", 8))
        .unwrap();
    let tag = VlanTag {
        id: 4096,
        priority: 0,
        service: false,
    };
    for refused in [
        new().map_prefix(p("10.0.0.0", 8), p("11.0.0.0", 9)).err(),
        new().map_prefix(p("10.0.0.0", 8), p("::", 8)).err(),
        twice.map_prefix(p("10.0.0.0", 8), p("12.0.0.0", 8)).err(),
        new().set_vlan(4096).err(),
        new().map_vlan(1, 4096).err(),
        new().map_vlan(1, 2).unwrap().map_vlan(1, 3).err(),
        new().push_vlan(tag).err(),
        new()
            .push_vlan(VlanTag {
                id: 1,
                priority: 8,
                ..tag
            })
            .err(),
        new()
            .map_mac([1; 6], [2; 6])
            .unwrap()
            .map_mac([1; 6], [2; 6])
            .err(),
        new()
            .map_qp(Qp::GSI, Qp::GSI)
            .unwrap()
            .map_qp(Qp::GSI, Qp::GSI)
            .err(),
        new()
            .map_udp_source(1, 2)
            .unwrap()
            .map_udp_source(1, 2)
            .err(),
        new().set_flow_label(1 << 20).err(),
        #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
        new().add_udp_source(2..=1, 0).err(),
    ] {
        let refused: RulesError = refused.expect("refused");
        assert!(refused.to_string().contains(": "), "{refused}");
    }
}

#[test]
fn special_qps_stay_and_the_others_wrap_around() {
    let rules = Rules::default().add_qp(-1);
    for (old, new) in [
        (0, 0),
        (1, 1),
        (2, 0xFF_FFFE),
        (3, 2),
        (0xFF_FFFE, 0xFF_FFFD),
        (0xFF_FFFF, 0xFF_FFFF),
    ] {
        assert_eq!(rules.qp(Qp::truncate(old)).get(), new);
    }
    let mapped = Rules::default()
        .map_qp(Qp::truncate(9), Qp::truncate(20))
        .unwrap()
        .add_qp(2);
    assert_eq!(mapped.qp(Qp::truncate(9)).get(), 22);
    assert_eq!(mapped.qp(Qp::truncate(20)).get(), 22);
}

#[test]
fn a_loop_advances_its_varying_fields() {
    let base = swapped().add_psn(5);
    let hosts = prefix(Ipv4Addr::new(198, 18, 77, 0), 30);
    let varied = LoopVariation::new(&base)
        .psn(0x10_0000)
        .qp(-1)
        .udp_source(0xFFF0..=0xFFFF, 3)
        .unwrap()
        .addresses(hosts, 1)
        .addresses(prefix(NEW6, 64), 0x1_0000_0001);
    for (number, psn, qp, port, host) in [
        (0u64, 5u32, 7u32, 0xFFFE, 3),
        (1, 0x10_0005, 6, 0xFFF1, 0),
        (2, 0x20_0005, 5, 0xFFF4, 1),
        (17, 0x10_0005, 0xFF_FFF3, 0xFFF1, 0),
        ((1 << 40) + 1, 0x10_0005, 0, 0xFFF1, 0),
    ] {
        let rules = varied.rules(number);
        assert_eq!(rules.psn(0), psn, "loop {number}");
        if qp != 0 {
            assert_eq!(rules.qp(Qp::truncate(7)).get(), qp, "loop {number}");
        }
        assert_eq!(rules.udp_source(0xFFFE), port, "loop {number}");
        assert_eq!(rules.udp_source(9), 9);
        let address = rules.address(Ipv4Addr::new(203, 0, 113, 3).into());
        assert_eq!(
            address,
            IpAddr::V4(Ipv4Addr::new(198, 18, 77, host)),
            "loop {number}"
        );
        let outside = rules.address(Ipv4Addr::new(203, 0, 113, 4).into());
        assert_eq!(outside, IpAddr::V4(Ipv4Addr::new(198, 18, 77, 4)));
        let host = u128::from(number.wrapping_mul(0x1_0000_0001));
        let six = rules.address(OLD6.into());
        assert_eq!(six, IpAddr::V6(Ipv6Addr::from_bits(NEW6.to_bits() | host)));
    }
    for (name, packet) in wrapped(&Values::default()) {
        let (out, _) = apply(&varied.rules(3), &packet);
        assert_eq!(
            parse(&out).verify_icrc(),
            parse(&packet).verify_icrc(),
            "{name}"
        );
        assert_eq!(
            apply(&varied.rules(0), &packet),
            apply(&base, &packet),
            "{name}"
        );
    }
}

#[test]
fn mac_control_gets_no_tag_and_arp_gets_mapped_addresses() {
    let tag = VlanTag {
        id: 5,
        priority: 0,
        service: false,
    };
    let (old, new) = ([2, 0, 0, 0, 0, 1], [6; 6]);
    let rules = Rules::default().push_vlan(tag).unwrap();
    let rules = rules.map_mac(old, new).unwrap();
    let pause = [&[1, 0x80, 0xC2, 0, 0, 1][..], &old, &[0x88, 8, 1, 1, 0, 0]].concat();
    let (out, _) = apply(&rules, &pause);
    assert_eq!(out, [&pause[..6], &new, &pause[12..]].concat());
    let all = packets(&Values::default());
    let arp = &all.iter().find(|(name, _)| name == "arp").unwrap().1;
    let (out, _) = apply(&rules, &ethernet("arp", arp));
    assert_eq!(out[14..18], [0, 5, 8, 6]);
    assert_eq!(out[18 + 8..18 + 14], new);
    assert_eq!(out[18 + 18..18 + 24], arp[18..24]);
}

#[test]
fn a_zero_udp_checksum_is_sent_as_ones() {
    let old = Values::default();
    let dns = |values: &Values| {
        let all = packets(values);
        all.into_iter().find(|(name, _)| name == "dns").unwrap().1
    };
    // One's complement: this host part compensates for what the sum lacks.
    let lacks = |values: &Values| u16::from_be_bytes([dns(values)[46], dns(values)[47]]);
    let with = |host: u16| {
        let mut values = moved(&old);
        values.v6[0] = Ipv6Addr::from_bits(NEW6.to_bits() | u128::from(host));
        values
    };
    let new = with(lacks(&with(0)));
    assert_eq!(lacks(&new), 0xFFFF);
    let rules = swapped();
    let back = apply(&rules, &ethernet("dns", &dns(&new))).0;
    same("dns", &apply(&rules, &back).0, &ethernet("dns", &dns(&new)));
    same("dns", &back, &ethernet("dns", &dns(&moved(&new))));
}

#[test]
fn missing_extended_headers_do_not_change_the_icrc() {
    let values = Values::default();
    // UD SEND Only without the DETH, which would end at the end of the ICRC.
    let frame = support::ud_without_deth(&values);
    assert_eq!(parse(&frame).verify_icrc(), Verdict::Good(None));
    let rules = Rules::default().add_qp(3);
    let (out, _) = apply(&rules, &frame);
    assert_ne!(out, frame);
    assert_eq!(parse(&out).verify_icrc(), Verdict::Good(None));
    let new = Values {
        qp: values.qp + 3,
        ..values
    };
    same("no DETH", &out, &support::ud_without_deth(&new));
}

#[test]
fn udp_source_ports_are_set_or_mapped() {
    let set = Rules::default().set_udp_source(7);
    let mapped = Rules::default().map_udp_source(5, 6).unwrap();
    let mapped = mapped.add_udp_source(6..=9, 3).unwrap();
    for (port, as_set, as_mapped) in [(5, 7, 9), (6, 7, 9), (7, 7, 6), (10, 7, 10)] {
        assert_eq!(set.udp_source(port), as_set);
        assert_eq!(mapped.udp_source(port), as_mapped);
    }
    let label = Rules::default().set_flow_label(9).unwrap();
    assert_eq!(label.flow_label(0xF_FFFF), 9);
}

/// Third-party captures: rewritten twice they equal the original, with their ICRCs in the same
/// state.
#[test]
fn captures_are_rewritten_and_restored() {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("FCN_CAPTURES is not set");
        return;
    };
    let swap = |rules: Rules, a: &str, b: &str, bits| {
        let network = |text: &str| prefix(text.parse::<IpAddr>().unwrap(), bits);
        let rules = rules.map_prefix(network(a), network(b)).unwrap();
        rules.map_prefix(network(b), network(a)).unwrap()
    };
    let rules = swap(Rules::default(), "192.0.0.0", "64.0.0.0", 2);
    let rules = swap(rules, "10.0.0.0", "11.0.0.0", 8);
    let rules = swap(rules, "2000::", "3000::", 4);
    let (mut files, mut seen, mut changed, mut good) = (0, 0, 0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let Ok(file) = std::fs::File::open(&path) else {
            continue;
        };
        let Ok(mut reader) = pcap_file::pcap::PcapReader::new(file) else {
            continue;
        };
        let number = u32::from(reader.header().datalink);
        let Some(link) = LinkType::from_pcap(number) else {
            continue;
        };
        files += 1;
        while let Some(Ok(packet)) = reader.next_packet() {
            let (old, wire_len) = (packet.data(), packet.orig_len() as usize);
            let (out, _) = apply_as(&rules, old, wire_len, link);
            let parse = |bytes| Frame::parse(bytes, wire_len, link, &Profile::DEFAULT);
            let (before, after) = (parse(old).verify_icrc(), parse(&out).verify_icrc());
            let name = format!("{} packet {seen}", path.display());
            match before {
                Verdict::Good(_) => assert_eq!(before, after, "{name}"),
                _ => assert!(!matches!(after, Verdict::Good(_)), "{name}"),
            }
            seen += 1;
            changed += usize::from(out != old);
            good += usize::from(matches!(before, Verdict::Good(_)));
            let (back, _) = apply_as(&rules, &out, wire_len, link);
            same(&name, &back, old);
        }
    }
    println!("{files} files, {seen} packets, {changed} changed, {good} with a good ICRC");
    assert!(files > 0 && changed > 0 && good > 0);
}
