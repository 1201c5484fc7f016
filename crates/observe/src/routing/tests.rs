//! Leaks between levels and areas, and sessions, tested with lists of messages.

use super::*;
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{FLAG_PNC, FLAG_READVERTISED, LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{bgp_update, ospf2, ospf3};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};

const PROXY: Prefix = Prefix::host(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 15)));
const PROXY6: Prefix = Prefix::host(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1)));
const OTHER: Prefix = Prefix::host(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 99)));

/// Returns a sequence number: each message that a test generates is newer than previous ones.
fn sequence() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Flags of a prefix in an LSP.
#[derive(Clone, Copy)]
struct How {
    down: bool,
    flags: Option<&'static [u8]>,
}

const PLAIN: How = How {
    down: false,
    flags: None,
};
const PNC: How = How {
    down: false,
    flags: Some(&[FLAG_PNC]),
};
const DOWN: How = How {
    down: true,
    flags: None,
};

fn lsp(level: Level, system: u8, lifetime: u16, prefixes: &[(Prefix, How)]) -> (Protocol, Vec<u8>) {
    let prefixes: Vec<_> = prefixes
        .iter()
        .map(|(prefix, how)| ReachRepr {
            kind: ReachKind::Plain,
            prefix: *prefix,
            metric: 10,
            down: how.down,
            flags: how.flags,
        })
        .collect();
    let repr = LspRepr {
        level,
        lsp_id: [0, 0, 0, 0, 0, system, 0, 0],
        sequence: sequence(),
        lifetime,
        area: &[0x49],
        hostname: "",
        prefixes: &prefixes,
    };
    (Protocol::IsIs, repr.to_bytes().unwrap())
}

fn isis(level: Level, system: u8, prefixes: &[(Prefix, How)]) -> (Protocol, Vec<u8>) {
    lsp(level, system, 1200, prefixes)
}

/// Returns an Extended Prefix Opaque LSA of `PROXY`.
fn ospf2_of(area: u8, router: u8, route_type: u8, pnc: bool, age: u16) -> (Protocol, Vec<u8>) {
    let prefixes = [ospf2::ExtendedPrefixRepr {
        route_type,
        prefix: PROXY,
        tlv_flags: 0x40,
        flags: pnc.then_some(&ospf2::FLAGS_PNC_ONLY[..]),
    }];
    let lsas = [ospf2::LsaRepr {
        age,
        flooding: Flooding::Area,
        opaque_id: 1,
        advertising_router: Ipv4Addr::new(10, 0, 0, router),
        sequence: 0x8000_0000 + sequence(),
        prefixes: &prefixes,
    }];
    let repr = ospf2::LsUpdateRepr {
        router_id: Ipv4Addr::new(10, 0, 0, router),
        area: Ipv4Addr::new(0, 0, 0, area),
        lsas: &lsas,
    };
    (Protocol::Ospf2, repr.to_bytes().unwrap())
}

fn intra(area: u8, router: u8, pnc: bool) -> (Protocol, Vec<u8>) {
    ospf2_of(area, router, ospf2::INTRA_AREA, pnc, 1)
}

fn inter(area: u8, router: u8, pnc: bool) -> (Protocol, Vec<u8>) {
    ospf2_of(area, router, ospf2::INTER_AREA, pnc, 1)
}

fn ospf3_of(area: u8, kind: ospf3::LsaKind, pnc: bool) -> (Protocol, Vec<u8>) {
    let prefixes = [ospf3::PrefixRepr {
        prefix: PROXY6,
        options: 0,
        metric: 1,
        flags: pnc.then_some(&ospf3::FLAGS_PNC_ONLY[..]),
    }];
    let lsas = [ospf3::LsaRepr {
        kind,
        age: 1,
        link_state_id: 1,
        advertising_router: Ipv4Addr::new(10, 0, 0, 1 + area),
        sequence: 0x8000_0000 + sequence(),
        prefixes: &prefixes,
    }];
    let repr = ospf3::LsUpdateRepr {
        router_id: Ipv4Addr::LOCALHOST,
        area: Ipv4Addr::new(0, 0, 0, area),
        instance: 0,
        lsas: &lsas,
    };
    let any = Ipv6Addr::LOCALHOST;
    (Protocol::Ospf3, repr.to_bytes(any, any).unwrap())
}

/// Returns the indexes of the messages that show a PNC that was not kept.
fn broken(messages: &[(Protocol, Vec<u8>)]) -> Vec<usize> {
    let mut routing = Routing::default();
    let mut broken = Vec::new();
    for (i, (protocol, bytes)) in messages.iter().enumerate() {
        routing.learn(*protocol, bytes, None, |offset| {
            assert!(offset < bytes.len());
            broken.push(i);
        });
    }
    broken
}

#[test]
fn isis_keeps_the_pnc_between_levels() {
    use Level::{L1, L2};
    let own = || isis(L1, 1, &[(PROXY, PNC)]);
    let flagged = |flags| How { down: false, flags };
    let again = flagged(Some(&[FLAG_READVERTISED]));
    let kept = flagged(Some(&[FLAG_READVERTISED | FLAG_PNC]));
    let kept_down = How { down: true, ..PNC };
    // From level 1 to level 2, as indicated by the router's flags, or by its own level 1 LSP.
    assert_eq!(broken(&[own(), isis(L2, 2, &[(PROXY, again)])]), [1]);
    assert_eq!(broken(&[own(), isis(L2, 2, &[(PROXY, kept)])]), []);
    assert_eq!(broken(&[own(), isis(L2, 2, &[(PROXY, PLAIN)])]), []);
    let at_both = isis(L1, 2, &[(OTHER, PLAIN)]);
    assert_eq!(
        broken(&[own(), at_both, isis(L2, 2, &[(PROXY, PLAIN)])]),
        [2]
    );
    let anycast = isis(L1, 2, &[(PROXY, PLAIN)]);
    assert_eq!(
        broken(&[own(), anycast, isis(L2, 2, &[(PROXY, PLAIN)])]),
        []
    );
    // From level 2 to level 1.
    let own = || isis(L2, 1, &[(PROXY, PNC)]);
    assert_eq!(broken(&[own(), isis(L1, 2, &[(PROXY, DOWN)])]), [1]);
    assert_eq!(broken(&[own(), isis(L1, 2, &[(PROXY, kept_down)])]), []);
    // Another prefix, no flag at first, withdrawn: no rule is broken.
    assert_eq!(broken(&[own(), isis(L1, 2, &[(OTHER, DOWN)])]), []);
    assert_eq!(broken(&[isis(L1, 2, &[(PROXY, DOWN)]), own()]), []);
    let gone = || isis(L2, 1, &[(PROXY, PLAIN)]);
    assert_eq!(broken(&[own(), gone(), isis(L1, 2, &[(PROXY, DOWN)])]), []);
    let purged = || lsp(L2, 1, 0, &[(PROXY, PNC)]);
    assert_eq!(
        broken(&[own(), purged(), isis(L1, 2, &[(PROXY, DOWN)])]),
        []
    );
    // Lost on the way from level 1, but not by the router that passes the rest on.
    let lost = isis(L2, 2, &[(PROXY, again)]);
    let on = isis(L1, 3, &[(PROXY, DOWN)]);
    assert_eq!(broken(&[isis(L1, 1, &[(PROXY, PNC)]), lost, on]), [1]);
    // It is reported for each router that does not keep it.
    let twice = [
        own(),
        isis(L1, 2, &[(PROXY, DOWN)]),
        isis(L1, 3, &[(PROXY, DOWN)]),
    ];
    assert_eq!(broken(&twice), [1, 2]);
}

/// Returns an LSP fragment of that number.
fn fragment(
    level: Level,
    system: u8,
    number: u8,
    prefixes: &[(Prefix, How)],
) -> (Protocol, Vec<u8>) {
    let (protocol, mut bytes) = isis(level, system, prefixes);
    // Discriminator to maximum area addresses, length, lifetime, and the other octets of the LSP
    // ID.
    bytes[8 + 2 + 2 + 7] = number;
    (protocol, bytes)
}

#[test]
fn any_fragment_may_have_the_flag() {
    use Level::{L1, L2};
    let kept = How { down: true, ..PNC };
    let own = || isis(L2, 1, &[(PROXY, PNC)]);
    let without = || fragment(L1, 2, 0, &[(PROXY, DOWN)]);
    let with = || fragment(L1, 2, 1, &[(PROXY, kept)]);
    assert_eq!(broken(&[own(), with(), without()]), []);
    // A new instance of a fragment does not remove the flag, except that of the fragment with the
    // flag.
    assert_eq!(broken(&[own(), with(), without(), without(), with()]), []);
    let gone = || fragment(L1, 2, 1, &[(OTHER, DOWN)]);
    assert_eq!(broken(&[own(), with(), without(), gone(), without()]), [4]);
    // The content of one LSP counts as simultaneous.
    let both = [(PROXY, DOWN), (PROXY, kept)];
    assert_eq!(broken(&[own(), isis(L1, 2, &both)]), []);
    assert_eq!(broken(&[own(), isis(L1, 2, &[both[1], both[0]])]), []);
    let neither = [(PROXY, DOWN), (PROXY, DOWN)];
    assert_eq!(broken(&[own(), isis(L1, 2, &neither)]), [1, 1]);
    // A later fragment is unknown: the rule says so.
    assert_eq!(broken(&[own(), without(), with(), without()]), [1]);
    assert!(Rule::PncNotKept.info().text.contains("not captured yet"));
    // Of several different statements, the one passed on is unknown.
    let plain = || fragment(L2, 1, 1, &[(PROXY, PLAIN)]);
    assert_eq!(broken(&[own(), plain(), without()]), []);
}

#[test]
fn ospf_keeps_the_pnc_between_areas() {
    assert_eq!(broken(&[intra(1, 1, true), inter(0, 2, false)]), [1]);
    assert_eq!(broken(&[intra(1, 1, true), inter(0, 2, true)]), []);
    assert_eq!(broken(&[intra(0, 1, true), inter(1, 2, false)]), [1]);
    assert_eq!(broken(&[intra(1, 1, false), inter(0, 2, false)]), []);
    // Without a capture of the backbone; with one, the router to blame is found.
    assert_eq!(broken(&[intra(1, 1, true), inter(2, 2, false)]), [1]);
    let on = [intra(1, 1, true), inter(0, 2, false), inter(2, 3, false)];
    assert_eq!(broken(&on), [1]);
    let on = [intra(1, 1, true), inter(0, 2, true), inter(2, 3, false)];
    assert_eq!(broken(&on), [2]);
    // A border router's own prefix, a statement within an area, and a prefix of several nodes.
    assert_eq!(broken(&[intra(1, 2, true), inter(0, 2, false)]), [1]);
    assert_eq!(broken(&[intra(1, 1, true), intra(0, 2, false)]), []);
    let several = [intra(1, 1, true), intra(1, 4, false), inter(0, 2, false)];
    assert_eq!(broken(&several), []);
    let aged = || ospf2_of(1, 1, ospf2::INTRA_AREA, true, 3600);
    assert_eq!(broken(&[intra(1, 1, true), aged(), inter(0, 2, false)]), []);
    // FRR may leave out the body of a purged LSA: packet header and number of LSAs, LSA header.
    let (protocol, mut header) = aged();
    header.truncate(28 + 20);
    (header[3], header[47]) = (48, 20);
    let purged = (protocol, header);
    assert_eq!(broken(&[intra(1, 1, true), purged, inter(0, 2, false)]), []);
    use ospf3::LsaKind::{AsExternal, InterAreaPrefix, IntraAreaPrefix};
    let own = || ospf3_of(1, IntraAreaPrefix, true);
    assert_eq!(broken(&[own(), ospf3_of(0, InterAreaPrefix, false)]), [1]);
    assert_eq!(broken(&[own(), ospf3_of(0, InterAreaPrefix, true)]), []);
    assert_eq!(broken(&[own(), ospf3_of(0, AsExternal, false)]), []);
}

#[test]
fn a_malformed_lsa_is_ignored() {
    let (protocol, mut bytes) = intra(1, 1, true);
    // The length of the flags, four octets before the end; the LSA and the TLV keep theirs.
    let at = bytes.len() - 6;
    assert_eq!(bytes[at..at + 2], [0, 4]);
    bytes[at + 1] = 3;
    assert_eq!(broken(&[(protocol, bytes), inter(0, 2, false)]), []);
}

#[test]
fn more_routers_than_are_remembered_are_not_judged() {
    let many = (0..40).map(|router| inter(0, router, false));
    let messages: Vec<_> = std::iter::once(intra(1, 1, true)).chain(many).collect();
    assert_eq!(broken(&messages).len(), STATEMENTS - 1);
}

/// Returns an OPEN of AS 65000 with ADD-PATH for IPv4 and IPv6 unicast.
fn open(identifier: [u8; 4], add_path: u8) -> Vec<u8> {
    let mut bytes = vec![0xFF; 16];
    bytes.extend([0, 47, 1, 4, 0xFD, 0xE8, 0, 180]);
    bytes.extend(identifier);
    bytes.extend([18, 2, 16, 65, 4, 0, 0, 0xFD, 0xE8]);
    bytes.extend([69, 8, 0, 1, 1, add_path, 0, 2, 1, add_path]);
    bytes[17] = bytes.len() as u8;
    bytes
}

#[test]
fn opens_settle_path_identifiers_and_the_speaker() {
    let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let mut routing = Routing::default();
    let mut learn = |bytes: &[u8], ends| routing.learn(Protocol::Bgp, bytes, Some(ends), |_| {});
    assert_eq!(learn(&[], (a, b)), Session::default());
    let id = |last| (Ipv4Addr::new(1, 1, 1, last), 65_000);
    let session = learn(&open([1, 1, 1, 1], 2), (a, b));
    assert_eq!(session.speaker, Some(id(1)));
    assert_eq!(session.path_ids, [None, None]);
    let session = learn(&open([1, 1, 1, 2], 1), (b, a));
    assert_eq!(
        (session.speaker, session.path_ids),
        (Some(id(2)), [Some(false); 2])
    );
    assert_eq!(learn(&[], (a, b)).path_ids, [Some(true); 2]);
    // A new session.
    learn(&open([1, 1, 1, 2], 0), (b, a));
    assert_eq!(learn(&[], (a, b)).path_ids, [Some(false); 2]);

    // One prefix with a path identifier that can also be parsed without.
    let next_hop = IpAddr::from([10, 0, 0, 1]);
    let nhc = NhcRepr {
        afi: 1,
        safi: 1,
        next_hop,
        characteristics: &[CharacteristicRepr {
            code: Profile::DEFAULT.bgp_pnc_characteristic,
            value: &[],
        }],
    };
    let mut bytes = bgp_update(next_hop, &[], Some(nhc)).unwrap();
    bytes.extend([8, 10, 8, 11, 24, 10, 9, 9]);
    bytes[17] += 8;
    let read = |ids| {
        let session = Session {
            path_ids: [ids, None],
            ..Session::default()
        };
        let walk = pnc::walk(Protocol::Bgp, &bytes, bytes.len(), &Profile::DEFAULT);
        let walk = walk.unwrap().unwrap().in_session(session);
        walk.filter_map(|found| Some(found.prefix?.to_string()))
            .collect::<Vec<_>>()
    };
    let without = ["10.0.0.0/8", "11.0.0.0/8", "10.9.9.0/24"];
    assert_eq!(read(None), without);
    assert_eq!(read(Some(false)), without);
    assert_eq!(read(Some(true)), ["10.9.9.0/24"]);
}

#[test]
fn repeated_and_overtaken_messages_are_ignored() {
    use Level::{L1, L2};
    // Passed on before the flag was set; repeated afterwards, and only then sent anew.
    let on = isis(L1, 2, &[(PROXY, DOWN)]);
    let own = isis(L2, 1, &[(PROXY, PNC)]);
    let anew = isis(L1, 2, &[(PROXY, DOWN)]);
    let heard = [on.clone(), own, on, anew.clone(), anew];
    assert_eq!(broken(&heard), [3]);
    // An instance older than one received from the same router.
    let old = isis(L2, 1, &[(PROXY, PNC)]);
    let new = isis(L2, 1, &[(PROXY, PLAIN)]);
    let on = isis(L1, 2, &[(PROXY, DOWN)]);
    assert_eq!(broken(&[new, old, on]), []);
    // Without the prefix, and without any prefix.
    for rest in [&[(OTHER, PLAIN)][..], &[]] {
        let own = isis(L2, 1, &[(PROXY, PNC)]);
        let without = isis(L2, 1, rest);
        let on = isis(L1, 2, &[(PROXY, DOWN)]);
        assert_eq!(broken(&[own, without, on]), []);
    }
    // A purge has the sequence number of the purged instance.
    let own = isis(L2, 1, &[(PROXY, PNC)]);
    let mut purge = own.clone();
    purge.1[10..12].fill(0);
    let on = isis(L1, 2, &[(PROXY, DOWN)]);
    assert_eq!(broken(&[own, purge, on]), []);

    let on = inter(0, 2, false);
    let own = intra(1, 1, true);
    let anew = inter(0, 2, false);
    assert_eq!(broken(&[on.clone(), own, on, anew]), [3]);
    let old = intra(1, 1, true);
    let new = intra(1, 1, false);
    assert_eq!(broken(&[new, old, inter(0, 2, false)]), []);
}
