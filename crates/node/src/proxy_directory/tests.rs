//! Tests of the directory: lists of routing messages, and the proxy that is found after each.

use super::*;
use crate::testing::{build, ip, mutated, with_frame};
use fcn_wire::LinkType;
use fcn_wire::compose::Part;
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{FLAG_PNC, FLAG_READVERTISED, LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{Flooding, Level, bgp_update, ospf2, ospf3};
use proptest::prelude::*;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU32, Ordering};

fn prefix(text: &str) -> Prefix {
    let (address, bits) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), bits.parse().unwrap()).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Returns a sequence number, so that each message of a test is newer than the previous ones.
fn sequence() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0x8000_0000);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Flag of an advertised prefix.
#[derive(Clone, Copy)]
enum Flag {
    No,
    Pnc,
    PncReadvertised,
    PncDown,
}

/// Builds an Ethernet frame with the LSP of node `system`.
fn isis(system: u8, prefixes: &[(&str, Flag)]) -> Vec<u8> {
    fragment((system, 0), 1200, prefixes)
}

/// Builds one of several LSPs of a node: system and number; remaining lifetime in seconds.
fn fragment((system, number): (u8, u8), lifetime: u16, prefixes: &[(&str, Flag)]) -> Vec<u8> {
    let reach: Vec<_> = prefixes
        .iter()
        .map(|(text, flag)| ReachRepr {
            kind: ReachKind::Plain,
            prefix: prefix(text),
            metric: 10,
            down: matches!(flag, Flag::PncDown),
            flags: match flag {
                Flag::No => None,
                Flag::Pnc | Flag::PncDown => Some(&[FLAG_PNC]),
                Flag::PncReadvertised => Some(&[FLAG_PNC | FLAG_READVERTISED]),
            },
        })
        .collect();
    let lsp = LspRepr {
        level: Level::L2,
        lsp_id: [0, 0, 0, 0, 0, system, 0, number],
        sequence: sequence(),
        lifetime,
        area: &[0x49],
        hostname: "",
        prefixes: &reach,
    };
    let mut pdu = vec![0xFE, 0xFE, 0x03];
    pdu.extend(lsp.to_bytes().unwrap());
    let ethernet = Part::Ethernet {
        source: [2, 0, 0, 0, 0, 1],
        destination: [1, 0x80, 0xC2, 0, 0, 0x15],
    };
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 0,
        bytes: &pdu,
    };
    build(&[ethernet, payload])
}

fn ospf2(router: u8, prefixes: &[(&str, u8, bool)]) -> Vec<u8> {
    let prefixes: Vec<_> = prefixes
        .iter()
        .map(|(text, route_type, pnc)| ospf2::ExtendedPrefixRepr {
            route_type: *route_type,
            prefix: prefix(text),
            tlv_flags: 0,
            flags: pnc.then_some(&ospf2::FLAGS_PNC_ONLY),
        })
        .collect();
    let router = Ipv4Addr::new(10, 0, 0, router);
    let lsa = ospf2::LsaRepr {
        age: 1,
        flooding: Flooding::Area,
        opaque_id: 1,
        advertising_router: router,
        sequence: sequence(),
        prefixes: &prefixes,
    };
    let update = ospf2::LsUpdateRepr {
        router_id: router,
        area: Ipv4Addr::UNSPECIFIED,
        lsas: &[lsa],
    };
    let bytes = update.to_bytes().unwrap();
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 89,
        bytes: &bytes,
    };
    build(&[ip(router.into(), address("224.0.0.5")), payload])
}

fn ospf3(kind: ospf3::LsaKind, prefixes: &[(&str, bool)]) -> Vec<u8> {
    let prefixes: Vec<_> = prefixes
        .iter()
        .map(|(text, pnc)| ospf3::PrefixRepr {
            prefix: prefix(text),
            options: 0,
            metric: 1,
            flags: pnc.then_some(&ospf3::FLAGS_PNC_ONLY),
        })
        .collect();
    let router = Ipv4Addr::new(10, 0, 0, 1);
    let lsa = ospf3::LsaRepr {
        kind,
        age: 1,
        link_state_id: 1,
        advertising_router: router,
        sequence: sequence(),
        prefixes: &prefixes,
    };
    let update = ospf3::LsUpdateRepr {
        router_id: router,
        area: Ipv4Addr::UNSPECIFIED,
        instance: 0,
        lsas: &[lsa],
    };
    let (source, destination): (Ipv6Addr, Ipv6Addr) =
        ("fe80::1".parse().unwrap(), "ff02::5".parse().unwrap());
    let bytes = update.to_bytes(source, destination).unwrap();
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 89,
        bytes: &bytes,
    };
    build(&[ip(source.into(), destination.into()), payload])
}

fn bgp(speaker: &str, next_hop: &str, prefixes: &[&str], pnc: bool) -> Vec<u8> {
    let next_hop = address(next_hop);
    let code = Profile::DEFAULT.bgp_pnc_characteristic;
    let characteristics = [CharacteristicRepr { code, value: &[] }];
    let prefixes: Vec<_> = prefixes.iter().map(|text| prefix(text)).collect();
    let nhc = NhcRepr {
        afi: if prefixes[0].address().is_ipv4() {
            1
        } else {
            2
        },
        safi: 1,
        next_hop,
        characteristics: &characteristics,
    };
    // A TCP header of 20 octets from the BGP port.
    let mut segment = vec![
        0, 179, 0xC0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0,
    ];
    segment.extend(bgp_update(next_hop, &prefixes, pnc.then_some(nhc)).unwrap());
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 6,
        bytes: &segment,
    };
    build(&[ip(address(speaker), address("10.9.9.9")), payload])
}

fn learn(directory: &mut ProxyDirectory, bytes: &[u8]) {
    // LSPs are on Ethernet, the others start with IP.
    let link = if bytes.first() == Some(&1) {
        LinkType::Ethernet
    } else {
        LinkType::RawIp
    };
    let frame = Frame::parse(bytes, bytes.len(), link, &Profile::DEFAULT);
    directory.learn(Time::default(), &frame);
}

fn directory(messages: &[Vec<u8>]) -> ProxyDirectory {
    let mut directory = ProxyDirectory::new(100, Reading::ProxyPrefix, Profile::DEFAULT);
    messages
        .iter()
        .for_each(|message| learn(&mut directory, message));
    directory
}

const SENDER: &str = "2001:db8:1::5";
const PROXY: &str = "2001:db8:f::1";
const PROXY_HOST: &str = "2001:db8:f::1/128";

#[test]
fn a_nodes_host_prefix_serves_the_senders_it_advertises() {
    let senders = isis(1, &[("2001:db8:1::/64", Flag::No)]);
    let host = fragment((1, 1), 1200, &[(PROXY_HOST, Flag::Pnc)]);
    let stranger = isis(2, &[("2001:db8:2::/64", Flag::No)]);
    for order in [[&senders, &host, &stranger], [&host, &stranger, &senders]] {
        let directory = directory(&order.map(Clone::clone));
        assert_eq!(directory.proxy_for(address(SENDER)), Some(address(PROXY)));
        assert_eq!(
            directory.proxy_for(address(PROXY)),
            Some(address(PROXY)),
            "its own prefix"
        );
        assert_eq!(
            directory.proxy_for(address("2001:db8:2::5")),
            None,
            "another node's"
        );
        assert_eq!(
            directory.proxy_for(address("2001:db8:3::5")),
            None,
            "not advertised"
        );
        let want = Counters {
            advertisements: 3,
            with_pnc: 1,
            refused: 0,
            malformed: 0,
        };
        assert_eq!(directory.counters(), &want);
    }
}

#[test]
fn clearing_the_flag_ends_service_and_setting_it_resumes() {
    let mut directory = directory(&[]);
    for (flag, want) in [
        (Flag::Pnc, Some(address(PROXY))),
        (Flag::No, None),
        (Flag::Pnc, Some(address(PROXY))),
    ] {
        learn(
            &mut directory,
            &isis(1, &[("2001:db8:1::/64", Flag::No), (PROXY_HOST, flag)]),
        );
        assert_eq!(directory.proxy_for(address(SENDER)), want);
    }
    assert_eq!(directory.len, 2);
}

#[test]
fn the_longest_prefix_decides_even_without_a_proxy() {
    let directory = directory(&[
        isis(1, &[("2001:db8::/32", Flag::No), (PROXY_HOST, Flag::Pnc)]),
        isis(2, &[("2001:db8:1::/64", Flag::No)]),
    ]);
    assert_eq!(directory.proxy_for(address(SENDER)), None);
    assert_eq!(
        directory.proxy_for(address("2001:db8:7::1")),
        Some(address(PROXY))
    );
}

#[test]
fn the_flag_needs_a_host_prefix() {
    let directory = directory(&[isis(1, &[("2001:db8:1::/64", Flag::Pnc)])]);
    assert_eq!(directory.proxy_for(address(SENDER)), None);
}

#[test]
fn in_the_other_reading_the_flag_is_set_for_the_senders_prefix() {
    let learnt = |prefixes: &[(&str, Flag)]| {
        let mut directory = ProxyDirectory::new(100, Reading::SenderPrefix, Profile::DEFAULT);
        learn(&mut directory, &isis(1, prefixes));
        learn(
            &mut directory,
            &isis(2, &[("2001:db8:e::2/128", Flag::Pnc)]),
        );
        directory.proxy_for(address(SENDER))
    };
    let (net, own) = ("2001:db8:1::/64", "2001:db8:1::5/128");
    let proxy = Some(address(PROXY));
    for (prefixes, want) in [
        (&[(net, Flag::Pnc), (PROXY_HOST, Flag::No)][..], proxy),
        (&[(net, Flag::Pnc), (PROXY_HOST, Flag::Pnc)], None),
        // Another sender of the same node, with a lower address.
        (
            &[
                (own, Flag::Pnc),
                ("2001:db8:1::1/128", Flag::Pnc),
                (PROXY_HOST, Flag::No),
            ],
            proxy,
        ),
        (&[(own, Flag::Pnc), (PROXY_HOST, Flag::No)], proxy),
        // Serves in the other reading.
        (&[(net, Flag::No), (PROXY_HOST, Flag::Pnc)], None),
        // No address to notify.
        (&[(net, Flag::Pnc)], None),
        (&[(own, Flag::Pnc)], None),
        (&[(net, Flag::PncDown), (PROXY_HOST, Flag::No)], None),
    ] {
        assert_eq!(learnt(prefixes), want);
    }
}

#[test]
fn a_proxy_of_the_senders_family_is_preferred() {
    let directory = directory(&[isis(
        1,
        &[
            ("10.0.0.7/32", Flag::Pnc),
            (PROXY_HOST, Flag::Pnc),
            ("2001:db8:1::/64", Flag::No),
            ("10.1.0.0/16", Flag::No),
        ],
    )]);
    assert_eq!(directory.proxy_for(address(SENDER)), Some(address(PROXY)));
    assert_eq!(
        directory.proxy_for(address("10.1.2.3")),
        Some(address("10.0.0.7"))
    );
}

#[test]
fn redistributed_prefixes_serve_only_themselves() {
    for flag in [Flag::PncDown, Flag::PncReadvertised] {
        let directory = directory(&[isis(
            1,
            &[("2001:db8:1::/64", Flag::No), (PROXY_HOST, flag)],
        )]);
        assert_eq!(directory.proxy_for(address(SENDER)), None);
        assert_eq!(directory.proxy_for(address(PROXY)), Some(address(PROXY)));
    }
}

#[test]
fn ospf_advertising_routers_are_distinguished() {
    let (intra, inter) = (1, 3);
    let directory = directory(&[
        ospf2(
            1,
            &[("10.0.0.1/32", intra, true), ("10.1.0.0/16", intra, false)],
        ),
        ospf2(
            2,
            &[("10.2.0.0/16", intra, false), ("10.0.0.9/32", inter, true)],
        ),
        ospf3(
            ospf3::LsaKind::IntraAreaPrefix,
            &[(PROXY_HOST, true), ("2001:db8:1::/64", false)],
        ),
    ]);
    assert_eq!(
        directory.proxy_for(address("10.1.2.3")),
        Some(address("10.0.0.1"))
    );
    assert_eq!(directory.proxy_for(address("10.2.2.3")), None);
    assert_eq!(
        directory.proxy_for(address("10.0.0.9")),
        Some(address("10.0.0.9"))
    );
    assert_eq!(directory.proxy_for(address(SENDER)), Some(address(PROXY)));
    let leaked = self::directory(&[
        ospf3(ospf3::LsaKind::InterAreaPrefix, &[(PROXY_HOST, true)]),
        ospf3(
            ospf3::LsaKind::IntraAreaPrefix,
            &[("2001:db8:1::/64", false)],
        ),
    ]);
    assert_eq!(leaked.proxy_for(address(SENDER)), None);
    assert_eq!(leaked.proxy_for(address(PROXY)), Some(address(PROXY)));
}

#[test]
fn a_bgp_next_hop_with_pnc_serves_its_routes() {
    let mut directory = directory(&[]);
    let route = "10.5.0.0/16";
    let steps = [
        (bgp("10.9.0.1", "10.9.0.7", &[route], false), None, 0),
        (
            bgp("10.9.0.1", "10.9.0.7", &[route], true),
            Some("10.9.0.7"),
            1,
        ),
        (
            bgp("10.9.0.1", "10.9.0.8", &[route], true),
            Some("10.9.0.8"),
            1,
        ),
        (
            bgp("10.9.0.2", "10.9.0.6", &[route], true),
            Some("10.9.0.6"),
            2,
        ),
        (
            bgp("10.9.0.2", "10.9.0.6", &[route], false),
            Some("10.9.0.8"),
            1,
        ),
        (bgp("10.9.0.1", "10.9.0.8", &[route], false), None, 0),
    ];
    for (i, (message, want, len)) in steps.iter().enumerate() {
        learn(&mut directory, message);
        assert_eq!(
            directory.proxy_for(address("10.5.1.1")),
            want.map(address),
            "step {i}"
        );
        assert_eq!(directory.len, *len, "step {i}");
    }
    let route6 = bgp("10.9.0.1", "2001:db8::7", &["2001:db8:1::/48"], true);
    learn(&mut directory, &route6);
    assert_eq!(
        directory.proxy_for(address(SENDER)),
        Some(address("2001:db8::7"))
    );
}

#[test]
fn purged_replaced_and_expired_information_is_removed() {
    let net = ("2001:db8:1::/64", Flag::No);
    let host = (PROXY_HOST, Flag::Pnc);
    let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
    let known = |directory: &ProxyDirectory| directory.proxy_for(address(SENDER)).is_some();
    let own = isis(1, &[net, host]);

    let mut directory = directory(&[own.clone(), fragment((1, 0), 0, &[])]);
    assert_eq!((known(&directory), directory.len), (false, 0), "purged");
    learn(&mut directory, &own);
    assert!(known(&directory), "learnt again");
    learn(&mut directory, &isis(1, &[net]));
    assert_eq!((known(&directory), directory.len), (false, 1), "replaced");
    learn(&mut directory, &own);
    assert!(!known(&directory), "older than the known edition");

    let mut directory = self::directory(&[own]);
    directory.expire(at(1199));
    assert!(known(&directory));
    directory.expire(at(1200));
    assert_eq!((known(&directory), directory.len), (false, 0), "too old");
    assert!(directory.sources.is_empty() && directory.ends.is_empty());
}

#[test]
fn the_end_of_a_bgp_session_removes_its_routes() {
    let route = bgp(
        "10.9.0.1",
        "10.9.0.7",
        &["10.5.0.0/16", "10.6.0.0/16"],
        true,
    );
    let known = |directory: &ProxyDirectory, sender| directory.proxy_for(address(sender)).is_some();
    // The same TCP header, followed by another message.
    let message = |octets: &[u8], from: &str, to: &str| {
        let mut segment = vec![
            0, 179, 0xC0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0,
        ];
        segment.extend([0xFF; 16]);
        segment.extend([0, 18 + octets.len() as u8]);
        segment.extend(octets);
        let payload = Part::Payload {
            ether_type: 0,
            protocol: 6,
            bytes: &segment,
        };
        build(&[ip(address(from), address(to)), payload])
    };
    let withdrawn = message(&[2, 0, 3, 16, 10, 5, 0, 0], "10.9.0.1", "10.9.9.9");
    let mut directory = directory(&[route.clone(), withdrawn]);
    assert!(!known(&directory, "10.5.0.1") && known(&directory, "10.6.0.1"));
    for (from, to) in [("10.9.0.1", "10.9.9.9"), ("10.9.9.9", "10.9.0.1")] {
        learn(&mut directory, &route);
        learn(&mut directory, &message(&[3, 6, 2], from, to));
        assert!(!known(&directory, "10.6.0.1") && directory.len == 0);
    }
    learn(&mut directory, &route);
    learn(&mut directory, &message(&[3, 6, 2], "10.9.0.2", "10.9.9.9"));
    assert!(known(&directory, "10.6.0.1"), "another session");
}

#[test]
fn when_full_what_is_known_stays_and_can_still_change() {
    let mut directory = ProxyDirectory::new(2, Reading::ProxyPrefix, Profile::DEFAULT);
    learn(
        &mut directory,
        &isis(1, &[("2001:db8:1::/64", Flag::No), (PROXY_HOST, Flag::Pnc)]),
    );
    learn(
        &mut directory,
        &isis(
            2,
            &[
                ("2001:db8:1::5/128", Flag::Pnc),
                ("2001:db8:8::/64", Flag::No),
            ],
        ),
    );
    assert_eq!(directory.proxy_for(address(SENDER)), Some(address(PROXY)));
    assert_eq!(directory.counters().refused, 2);
    learn(&mut directory, &isis(1, &[(PROXY_HOST, Flag::No)]));
    assert_eq!(directory.proxy_for(address(SENDER)), None);
}

#[test]
fn malformed_messages_are_counted() {
    let mut bytes = ospf2(1, &[("10.0.0.1/32", 1, true)]);
    bytes[20 + 3] = 255;
    let directory = directory(&[bytes]);
    assert_eq!(directory.counters().malformed, 1);
    assert_eq!(directory.proxy_for(address("10.0.0.1")), None);
}

fn messages() -> Vec<Vec<u8>> {
    vec![
        isis(1, &[("2001:db8:1::/64", Flag::No), (PROXY_HOST, Flag::Pnc)]),
        isis(1, &[(PROXY_HOST, Flag::No)]),
        isis(
            2,
            &[("2001:db8:1::/64", Flag::No), (PROXY_HOST, Flag::PncDown)],
        ),
        ospf2(1, &[("10.0.0.1/32", 1, true), ("10.1.0.0/16", 1, false)]),
        ospf3(
            ospf3::LsaKind::IntraAreaPrefix,
            &[(PROXY_HOST, true), ("2001:db8:1::/64", false)],
        ),
        bgp(
            "10.9.0.1",
            "10.9.0.7",
            &["10.5.0.0/16", "10.6.0.0/16"],
            true,
        ),
        bgp("10.9.0.1", "10.9.0.7", &["10.5.0.0/16"], false),
    ]
}

proptest! {
    #[test]
    fn hostile_messages_keep_the_tables_consistent(frames in proptest::collection::vec(mutated(messages()), 0..30)) {
        let mut directory = ProxyDirectory::new(5, Reading::ProxyPrefix, Profile::DEFAULT);
        for bytes in &frames {
            learn(&mut directory, bytes);
            with_frame(bytes, |frame| directory.learn(Time::default(), frame));
            let _ = directory.proxy_for(address(SENDER));
            prop_assert!(directory.len <= 5);
            prop_assert!(directory.proxies.values().map(BTreeSet::len).sum::<usize>() <= directory.len);
        }
    }
}
