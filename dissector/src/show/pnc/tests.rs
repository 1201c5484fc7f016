//! Plans of routing messages: they stay within limits, they report omissions, and no input breaks
//! them.

use super::*;
use crate::plan::{Anchor, Item, ItemKind, Op, Plan, Value};
use fcn_wire::pnc::isis::{LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{Flooding, Level, Prefix, bgp, bgp_update, isis, ospf2, ospf3};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const START: usize = 77;

/// Returns the steps for a message, and their texts.
fn planned(protocol: Protocol, bytes: &[u8], wire_len: usize) -> (Vec<Op>, String) {
    let message = Routing {
        protocol,
        bytes,
        start: START,
        wire_len,
        session: Session::default(),
        not_kept: &[],
        profile: &Profile::DEFAULT,
    };
    let mut plan = Plan::default();
    routing(&mut plan, &message);
    let texts = String::from_utf8_lossy(plan.store()).into_owned();
    (plan.ops().to_vec(), texts)
}

fn host(i: u32) -> Prefix {
    Prefix::host(Ipv4Addr::from_bits(0x0A00_0000 + i).into())
}

fn lsp(count: u32, flags: &[u8]) -> Vec<u8> {
    let prefixes: Vec<_> = (0..count)
        .map(|i| ReachRepr {
            kind: ReachKind::Plain,
            prefix: host(i),
            metric: 10,
            down: false,
            flags: Some(flags),
        })
        .collect();
    let repr = LspRepr {
        level: Level::L2,
        lsp_id: [0, 0, 0, 0, 0, 1, 0, 0],
        sequence: 1,
        lifetime: 1200,
        area: &[0x49],
        hostname: "",
        prefixes: &prefixes,
    };
    repr.to_bytes().unwrap()
}

fn lsu2(count: u32, flags: &[u8]) -> Vec<u8> {
    let prefixes: Vec<_> = (0..count)
        .map(|i| ospf2::ExtendedPrefixRepr {
            route_type: 1,
            prefix: host(i),
            tlv_flags: 0x40,
            flags: Some(flags),
        })
        .collect();
    let lsas: Vec<_> = prefixes
        .chunks(100)
        .enumerate()
        .map(|(i, prefixes)| ospf2::LsaRepr {
            age: 1,
            flooding: Flooding::Area,
            opaque_id: i as u32,
            advertising_router: Ipv4Addr::LOCALHOST,
            sequence: 0x8000_0001,
            prefixes,
        })
        .collect();
    let repr = ospf2::LsUpdateRepr {
        router_id: Ipv4Addr::LOCALHOST,
        area: Ipv4Addr::UNSPECIFIED,
        lsas: &lsas,
    };
    repr.to_bytes().unwrap()
}

fn lsu3(count: u32, flags: &[u8]) -> Vec<u8> {
    let prefixes: Vec<_> = (0..count)
        .map(|i| ospf3::PrefixRepr {
            prefix: Prefix::host(Ipv6Addr::from_bits(0x2001_0DB8 << 96 | u128::from(i)).into()),
            options: 2,
            metric: 10,
            flags: Some(flags),
        })
        .collect();
    let lsas: Vec<_> = prefixes
        .iter()
        .map(|prefix| ospf3::LsaRepr {
            kind: ospf3::LsaKind::AsExternal,
            age: 1,
            link_state_id: 1,
            advertising_router: Ipv4Addr::LOCALHOST,
            sequence: 0x8000_0001,
            prefixes: core::slice::from_ref(prefix),
        })
        .collect();
    let repr = ospf3::LsUpdateRepr {
        router_id: Ipv4Addr::LOCALHOST,
        area: Ipv4Addr::UNSPECIFIED,
        instance: 0,
        lsas: &lsas,
    };
    let any = Ipv6Addr::LOCALHOST;
    repr.to_bytes(any, any).unwrap()
}

/// Returns an UPDATE with `count` prefixes, and this many characteristics before PNC.
fn update(count: u32, characteristics: u16) -> Vec<u8> {
    let prefixes: Vec<_> = (0..count).map(host).collect();
    let pnc = Profile::DEFAULT.bgp_pnc_characteristic;
    let codes: Vec<_> = (1..=characteristics)
        .chain([pnc])
        .map(|code| bgp::CharacteristicRepr { code, value: &[] })
        .collect();
    let next_hop = Ipv4Addr::LOCALHOST.into();
    let nhc = bgp::NhcRepr {
        afi: bgp::AFI_IPV4,
        safi: bgp::SAFI_UNICAST,
        next_hop,
        characteristics: &codes,
    };
    bgp_update(next_hop, &prefixes, Some(nhc)).unwrap()
}

fn samples() -> Vec<(Protocol, Vec<u8>)> {
    let several = update(4, 2).repeat(3);
    vec![
        (Protocol::IsIs, lsp(5, &[isis::FLAG_PNC])),
        (Protocol::Ospf2, lsu2(5, &ospf2::FLAGS_PNC_ONLY)),
        (Protocol::Ospf3, lsu3(5, &[0x20, 0, 0, 0, 0, 0, 0, 1])),
        (Protocol::Bgp, several),
    ]
}

fn capable(ops: &[Op]) -> usize {
    numbers(ops, F::PncCapable).filter(|is| *is == 1).count()
}

/// Returns the numbers in the items of `field`.
fn numbers(ops: &[Op], field: F) -> impl Iterator<Item = u64> {
    ops.iter().filter_map(move |op| match op {
        Op::Add(Item {
            kind,
            value: Value::Number(number),
            ..
        }) if *kind == ItemKind::Field(field) => Some(*number),
        _ => None,
    })
}

fn left_out(ops: &[Op], field: F) -> u64 {
    numbers(ops, field).next().unwrap_or(0)
}

const PREFIXES: [Node; 4] = [
    Node::IsisPrefix,
    Node::Ospf2Prefix,
    Node::Ospf3Prefix,
    Node::BgpPrefix,
];

#[test]
fn every_prefix_has_its_own_item_at_its_own_offset() {
    for (protocol, bytes) in samples() {
        let (ops, texts) = planned(protocol, &bytes, bytes.len());
        let count = if protocol == Protocol::Bgp { 12 } else { 5 };
        assert_eq!(capable(&ops), count, "{protocol}");
        assert_eq!(texts.matches(": advertised\0").count(), count, "{protocol}");
        let mut places: Vec<u32> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Goto(Anchor::At(node, at)) if PREFIXES.contains(node) => Some(*at),
                _ => None,
            })
            .collect();
        assert!(places.iter().all(|at| *at as usize > START));
        places.dedup();
        assert_eq!(places.len(), count, "{protocol}");
        assert!(places.is_sorted());
    }
}

#[test]
fn messages_without_pnc_have_no_plan() {
    let hello = [0x83, 27, 1, 0, 17, 1, 0, 0];
    assert_eq!(planned(Protocol::IsIs, &hello, hello.len()).0, []);
    let mut keepalive = vec![0xFF; 16];
    keepalive.extend([0, 19, 4]);
    assert_eq!(planned(Protocol::Bgp, &keepalive, 19).0, []);
    assert_eq!(planned(Protocol::Ospf2, &[2, 4, 0], 90).0, [], "cut");
}

#[test]
fn the_largest_messages_fit_and_omissions_are_counted() {
    let big = [
        (Protocol::IsIs, lsp(100, &[isis::FLAG_PNC]), 100),
        (Protocol::Ospf2, lsu2(2500, &ospf2::FLAGS_PNC_ONLY), 2500),
        (Protocol::Ospf3, lsu3(1000, &ospf3::FLAGS_PNC_ONLY), 1000),
        (Protocol::Bgp, update(800, 3), 800),
        (Protocol::Bgp, update(12_000, 3), 12_000),
    ];
    for (protocol, bytes, count) in big {
        let (ops, _) = planned(protocol, &bytes, bytes.len());
        let shown = capable(&ops);
        assert_eq!(shown, count.min(MAX_PREFIXES), "{protocol}");
        let out = left_out(&ops, F::PncLeftOut) as usize;
        assert_eq!(shown + out, count, "{protocol}");
    }
    let bytes = update(1, 3000);
    let (ops, _) = planned(Protocol::Bgp, &bytes, bytes.len());
    let out = left_out(&ops, F::PncLeftOutCharacteristics) as usize;
    assert_eq!(out, 3001 - MAX_CHARACTERISTICS);
    let bytes = update(1, 0).repeat(400);
    let (ops, _) = planned(Protocol::Bgp, &bytes, bytes.len());
    let out = left_out(&ops, F::PncLeftOutAttributes) as usize;
    assert_eq!(out, 400 - MAX_ATTRIBUTES);
}

#[test]
fn findings_appear_once_and_excess_ones_are_counted() {
    // Empty flags, for many prefixes.
    for count in [10, 60] {
        let bytes = lsp(count, &[]);
        let (ops, _) = planned(Protocol::IsIs, &bytes, bytes.len());
        let experts = ops.iter().filter(|op| matches!(op, Op::Expert(..))).count();
        let most = fcn_wire::finding::MAX_FINDINGS;
        assert_eq!(experts, (count as usize).min(most));
        let out = left_out(&ops, F::PncLeftOutFindings) as usize;
        assert_eq!(experts + out, count as usize);
    }
}

proptest! {
    #[test]
    fn anything_can_be_planned(
        which in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in 0usize..500,
        grown in 0usize..100,
    ) {
        let (protocol, mut bytes) = samples().swap_remove(which);
        for (index, value) in changes {
            let len = bytes.len();
            bytes[index.index(len)] = value;
        }
        let wire_len = bytes.len() + grown;
        bytes.truncate(bytes.len().saturating_sub(cut));
        let (ops, _) = planned(protocol, &bytes, wire_len);
        // fcn-wire's own check has the same findings.
        let mut findings = Findings::new();
        let profile = &Profile::DEFAULT;
        if let Some(walk) = walk_checked(protocol, &bytes, wire_len, profile, &mut findings) {
            walk.check(&mut findings);
        }
        let mut expected: Vec<_> = findings
            .as_slice()
            .iter()
            .map(|found| (found.rule, range(START + found.offset, found.len)))
            .collect();
        let mut shown: Vec<_> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Expert(rule, at, _) => Some((*rule, *at)),
                _ => None,
            })
            .collect();
        let order = |(rule, at): &(Rule, Range)| (*rule as usize, at.start, at.len);
        expected.sort_by_key(order);
        shown.sort_by_key(order);
        prop_assert_eq!(expected, shown);
        let mut depth = 0i32;
        for op in &ops {
            match op {
                Op::Add(Item { opens: true, .. }) => depth += 1,
                Op::Close => depth -= 1,
                Op::Goto(_) => depth = 0,
                _ => {}
            }
            prop_assert!((0..7).contains(&depth));
        }
    }

    #[test]
    fn any_octets_can_be_planned(
        which in 0usize..4,
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        head in 0usize..32,
    ) {
        let (protocol, sample) = samples().swap_remove(which);
        let mut whole = sample[..head.min(sample.len())].to_vec();
        whole.extend(bytes);
        planned(protocol, &whole, whole.len());
    }
}
