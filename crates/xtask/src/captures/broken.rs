//! Every defect that the rules name, one packet each.

use super::fast_cnp::{OPTION1, fast_cnp1, option2};
use super::other::{control, pfc_bytes};
use super::proxy_cn::{PROXY_UDP, TUPLE4, TUPLE6, invoking, message};
use super::routing::{
    ISIS_PNC, OSPF_PNC, bgp, hosts, isis, lsp, ospf2, ospf2_update, reach, segment, update,
};
use super::scene::{
    CNP_V6, Capture, DATA_CLASS, FAST_V6, HOP_TRACE, ICRC, PATH, PROXY, PROXY4, RECEIVER,
    RECEIVER_QP, RECEIVER4, SENDER, SENDER_QP, SENDER4, SWITCH, SWITCH4, Scene, cnp, data, ioam,
    trace, v4, v6,
};
use super::wan_fcn::{FCN_UDP, FCN_V6, FLOW_LABEL, fcn};
use fcn_wire::bth::{BthRepr, Opcode};
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::{OptType, TraceType};
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::pnc::Prefix;
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::ReachKind;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{LinkType, Profile, Result, Rule};
use std::net::Ipv6Addr;

pub fn captures() -> Result<Vec<Capture>> {
    Ok(vec![
        roce()?,
        fast()?,
        ioam_traces()?,
        proxy()?,
        wan()?,
        routing()?,
        pfc()?,
    ])
}

/// Octets of Ethernet and IPv6 headers.
const BEHIND_V6: usize = 14 + 40;

fn roce() -> Result<Capture> {
    let mut scene = Scene::new(
        "broken-cnp",
        "CNPs and RoCEv2 packets that break a rule each",
    );
    let plain = [&[CNP_V6], &cnp(SENDER_QP)[..]].concat();
    let bth = BEHIND_V6 + 8;
    scene
        .say("BECN is 0", &plain)?
        .spoil(|b| b[bth + 4] = 0)
        .breaks(&[Rule::CnpBecn]);
    scene
        .say("PSN is 7", &plain)?
        .spoil(|b| b[bth + 11] = 7)
        .breaks(&[Rule::CnpPsn]);
    scene
        .say("A reserved octet is not 0", &plain)?
        .spoil(|b| b[bth + 20] = 1)
        .breaks(&[Rule::CnpReserved]);
    scene
        .say("Transport version 1", &plain)?
        .spoil(|b| b[bth + 1] = 1)
        .breaks(&[Rule::RoceTver]);
    let [udp, body, _] = cnp(SENDER_QP);
    scene
        .say(
            "ICRC wrong",
            &[CNP_V6, udp, body, Part::Icrc(Policy::Corrupt)],
        )?
        .breaks(&[Rule::RoceIcrcBad]);
    let old = v4(RECEIVER4, SENDER4, DEFAULT_TRAFFIC_CLASS);
    scene
        .say(
            "ICRC left 0, over IPv4",
            &[old, udp, body, Part::Icrc(Policy::Zero)],
        )?
        .breaks(&[Rule::RoceIcrcBad]);
    let bth_only = Part::Bth(CnpRepr::new(SENDER_QP).bth);
    scene
        .say(
            "12 reserved octets instead of 16",
            &[CNP_V6, udp, bth_only, Part::Bytes(&[0; 12]), ICRC],
        )?
        .breaks(&[Rule::CnpMalformed]);
    scene
        .say(
            "20 reserved octets instead of 16",
            &[CNP_V6, udp, bth_only, Part::Bytes(&[0; 20]), ICRC],
        )?
        .breaks(&[Rule::CnpMalformed]);
    let write = Part::Bth(BthRepr::new(Opcode::RC_WRITE_ONLY, RECEIVER_QP, 1));
    scene
        .say(
            "RDMA WRITE Only without its RETH",
            &[v6(SENDER, RECEIVER, DATA_CLASS), udp, write, ICRC],
        )?
        .breaks(&[Rule::RoceMalformed]);
    scene
        .say(
            "Shorter than a BTH",
            &[
                CNP_V6,
                udp,
                Part::Bytes(&[0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 1]),
            ],
        )?
        .breaks(&[Rule::RoceMalformed]);
    scene
        .say("All at once", &plain)?
        .spoil(|b| {
            b[bth + 1] = 2;
            b[bth + 4] = 0x80;
            b[bth + 9] = 1;
            b[bth + 12] = 0xFF;
        })
        .breaks(&[
            Rule::RoceTver,
            Rule::CnpBecn,
            Rule::CnpPsn,
            Rule::CnpReserved,
        ]);
    scene.say("A good one behind them", &plain)?;
    Ok(scene.done())
}

fn fast() -> Result<Capture> {
    let mut scene = Scene::new("broken-fast-cnp", "Fast CNPs that break a rule each");
    let good = fast_cnp1();
    let with = |ip, header| [&[ip, header], &cnp(RECEIVER_QP)[..]].concat();
    let option = BEHIND_V6 + 2;
    scene
        .say("Opt Data Len 15: the address is not whole", &good)?
        .spoil(|b| {
            b[option + 1] = 15;
            b[option + 17] = 0;
        })
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 20", &good)?
        .spoil(|b| b[option + 1] = 20)
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 0", &good)?
        .spoil(|b| {
            b[option + 1] = 0;
            b[option + 2..option + 18].fill(0);
        })
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 255 runs past the header", &good)?
        .spoil(|b| b[option + 1] = 255)
        .breaks(&[Rule::FastCnpMalformed]);
    let hop = Part::HopByHop(&[OPTION1]);
    scene
        .say("In a Hop-by-Hop Options header", &with(FAST_V6, hop))?
        .breaks(&[Rule::FastCnpHopByHop]);
    let twice = Part::DestinationOptions(&[OPTION1, OPTION1]);
    scene
        .say("Option 1 twice", &with(FAST_V6, twice))?
        .breaks(&[Rule::FastCnpSeveral]);
    let one = Part::DestinationOptions(&[OPTION1]);
    let parts = [
        &[FAST_V6, one, Part::DestinationOptions(&[])],
        &cnp(RECEIVER_QP)[..],
    ]
    .concat();
    scene
        .say("A second Destination Options header", &parts)?
        .breaks(&[Rule::FastCnpSeveralHeaders]);
    scene
        .say(
            "In front of a data packet",
            &[&[FAST_V6, one], &data(0x700)[..]].concat(),
        )?
        .breaks(&[Rule::FastCnpNotCnp]);
    let tcp = Part::Payload {
        ether_type: 0,
        protocol: next_header::NONE,
        bytes: &[],
    };
    scene
        .say("In front of nothing", &[FAST_V6, one, tcp])?
        .breaks(&[Rule::FastCnpNotCnp]);
    let raw = |at, kind, data| OptionPart::Raw(kind, (1, at), data);
    let address = RECEIVER.octets();
    let odd = [
        raw(0, 0, &[]),
        raw(0, Profile::DEFAULT.fast_cnp_option1, &address),
    ];
    scene
        .say(
            "Not at 4n+2",
            &with(FAST_V6, Part::DestinationOptions(&odd[1..])),
        )?
        .spoil(|b| {
            // One octet of padding in front instead of behind.
            b.copy_within(option..option + 18, option + 1);
            b[option] = 0;
            b[option + 19..option + 22].copy_from_slice(&[1, 1, 0]);
        });
    scene.breaks(&[Rule::FastCnpAlignment]);
    scene
        .say(
            "Addressed to the receiver",
            &with(v6(SWITCH, RECEIVER, DEFAULT_TRAFFIC_CLASS), one),
        )?
        .breaks(&[Rule::FastCnpAddressed]);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3);
    scene
        .say(
            "From a link-local address",
            &with(v6(link_local, SENDER, DEFAULT_TRAFFIC_CLASS), one),
        )?
        .breaks(&[Rule::FastCnpSource]);
    let multicast = [OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    })];
    scene
        .say(
            "The original destination is a multicast address",
            &with(FAST_V6, Part::DestinationOptions(&multicast)),
        )?
        .breaks(&[Rule::FastCnpOriginal]);
    let bth = BEHIND_V6 + 24 + 8;
    scene
        .say("The CNP behind it has BECN 0", &good)?
        .spoil(|b| b[bth + 4] = 0)
        .breaks(&[Rule::CnpBecn]);
    scene
        .say(
            "The CNP behind it is 4 octets short",
            &[
                FAST_V6,
                one,
                super::scene::CNP_UDP,
                Part::Bth(CnpRepr::new(RECEIVER_QP).bth),
                Part::Bytes(&[0; 12]),
                ICRC,
            ],
        )?
        .breaks(&[Rule::CnpMalformed]);
    let [udp, body, _] = cnp(RECEIVER_QP);
    scene
        .say(
            "ICRC wrong by every reading",
            &[FAST_V6, one, udp, body, Part::Icrc(Policy::Corrupt)],
        )?
        .breaks(&[Rule::RoceIcrcBad]);
    scene.say("A good one behind them", &good)?;
    Ok(scene.done())
}

fn ioam_traces() -> Result<Capture> {
    let mut scene = Scene::new(
        "broken-ioam",
        "IOAM traces that break a rule each, in Fast CNPs with option 2 and in data",
    );
    let pre = OptType::Preallocated;
    let good = trace(pre, HOP_TRACE, 20, &PATH)?;
    let say =
        |scene: &mut Scene, comment: &str, opt_type, trace: &[u8], breaks: &[Rule]| -> Result<()> {
            let options = [option2(opt_type, trace)];
            let parts = [
                &[FAST_V6, Part::DestinationOptions(&options)],
                &cnp(RECEIVER_QP)[..],
            ]
            .concat();
            scene.say(comment, &parts)?.breaks(breaks);
            Ok(())
        };
    let edited = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let node_len = |units: u8| edited(&move |t| t[2] = t[2] & 0x07 | units << 3);
    say(&mut scene, "A good one first", pre, &good, &[])?;
    say(
        &mut scene,
        "NodeLen 0",
        pre,
        &node_len(0),
        &[Rule::IoamNodeLenZero],
    )?;
    say(
        &mut scene,
        "NodeLen 3, the trace type asks for 4",
        pre,
        &node_len(3),
        &[Rule::IoamNodeLen],
    )?;
    say(
        &mut scene,
        "NodeLen 31",
        pre,
        &node_len(31),
        &[Rule::IoamNodeLen],
    )?;
    say(
        &mut scene,
        "RemainingLen 127",
        pre,
        &edited(&|t| t[3] |= 0x7F),
        &[Rule::IoamRemaining],
    )?;
    say(
        &mut scene,
        "RemainingLen 4 of 5: the list is no whole number of nodes",
        pre,
        &edited(&|t| t[3] = 4),
        &[Rule::IoamRagged],
    )?;
    say(
        &mut scene,
        "The last node cut off",
        pre,
        &good[..good.len() - 4],
        &[Rule::IoamRagged],
    )?;
    say(
        &mut scene,
        "The reserved octet is not 0",
        pre,
        &edited(&|t| t[7] = 1),
        &[Rule::IoamReserved],
    )?;
    say(
        &mut scene,
        "Trace type bit 23, which is reserved",
        pre,
        &edited(&|t| t[6] |= 1),
        &[Rule::IoamReservedBit],
    )?;
    say(
        &mut scene,
        "The undefined flag",
        pre,
        &edited(&|t| t[3] |= 0x80),
        &[],
    )?;
    say(
        &mut scene,
        "Shorter than its header",
        pre,
        &good[..6],
        &[Rule::IoamMalformed],
    )?;
    say(
        &mut scene,
        "Direct export, which is no trace",
        OptType::Other(4),
        &good,
        &[Rule::FastCnpIoamType],
    )?;
    let opaque = TraceType::default().with(TraceType::OPAQUE);
    let mut long = trace(
        OptType::Incremental,
        opaque,
        0,
        &[fcn_wire::ioam::NodeValues::default()],
    )?;
    long[8] = 255;
    say(
        &mut scene,
        "An opaque snapshot of 1020 octets that are not there",
        OptType::Incremental,
        &long,
        &[Rule::IoamRagged],
    )?;

    let reserved = [OptionPart::FastCnp(FastCnpRepr::Option2 {
        reserved: 9,
        opt_type: pre,
        trace: &good,
        original_destination: RECEIVER,
    })];
    let parts = [
        &[FAST_V6, Part::DestinationOptions(&reserved)],
        &cnp(RECEIVER_QP)[..],
    ]
    .concat();
    scene
        .say("The reserved octet of option 2 is not 0", &parts)?
        .breaks(&[Rule::FastCnpReserved]);
    let short = [OptionPart::Raw(
        Profile::DEFAULT.fast_cnp_option2,
        (4, 0),
        &[0; 17],
    )];
    let parts = [
        &[FAST_V6, Part::DestinationOptions(&short)],
        &cnp(RECEIVER_QP)[..],
    ]
    .concat();
    scene
        .say(
            "Option 2 too short for an address and an IOAM header",
            &parts,
        )?
        .breaks(&[Rule::FastCnpMalformed]);

    let bytes = node_len(0);
    let hop = [OptionPart::Ioam(ioam(pre, &bytes))];
    let ip = v6(SENDER, RECEIVER, DATA_CLASS);
    scene
        .say(
            "Data with NodeLen 0 in its Hop-by-Hop trace",
            &[&[ip, Part::HopByHop(&hop)], &data(0x701)[..]].concat(),
        )?
        .breaks(&[Rule::IoamNodeLenZero]);
    let hop = [OptionPart::Ioam(fcn_wire::ioam::IoamOption {
        reserved: 1,
        opt_type: pre,
        body: &good,
    })];
    scene
        .say(
            "Data whose IOAM option has a reserved octet that is not 0",
            &[&[ip, Part::HopByHop(&hop)], &data(0x702)[..]].concat(),
        )?
        .breaks(&[Rule::IoamReserved]);
    Ok(scene.done())
}

fn proxy() -> Result<Capture> {
    let mut scene = Scene::new(
        "broken-proxy-cn",
        "Notifications to the proxy node and proxy address options that break a rule each",
    );
    let ip4 = v4(SWITCH4, PROXY4, DEFAULT_TRAFFIC_CLASS);
    let ip6 = v6(SWITCH, PROXY, DEFAULT_TRAFFIC_CLASS);
    let quoted4 = invoking(v4(SENDER4, RECEIVER4, DATA_CLASS))?;
    let good = message(TUPLE4, 5, &quoted4)?;
    let edited = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    for (comment, ip, bytes, breaks) in [
        ("A good one first", ip4, good.clone(), &[][..]),
        (
            "Reserved bits are not 0",
            ip4,
            edited(&|b| b[15] = 1),
            &[Rule::ProxyCnReserved],
        ),
        (
            "No invoking packet",
            ip4,
            good[..16].to_vec(),
            &[Rule::ProxyCnInvokingNone],
        ),
        (
            "Too short for its five-tuple",
            ip4,
            good[..15].to_vec(),
            &[Rule::ProxyCnMalformed],
        ),
        ("Empty", ip6, Vec::new(), &[Rule::ProxyCnMalformed]),
        (
            "The five-tuple has another source port",
            ip4,
            edited(&|b| b[9] ^= 1),
            &[Rule::ProxyCnTuple],
        ),
        (
            "Another protocol",
            ip4,
            edited(&|b| b[8] = 6),
            &[Rule::ProxyCnTuple],
        ),
        (
            "Another source address: the quoted packet no longer tells the family",
            ip4,
            edited(&|b| b[3] ^= 1),
            &[Rule::ProxyCnFamily, Rule::ProxyCnTuple],
        ),
        (
            "What is quoted is no IP packet",
            ip4,
            edited(&|b| b[16] = 0x15),
            &[Rule::ProxyCnFamily, Rule::ProxyCnTuple],
        ),
    ] {
        scene
            .say(comment, &[ip, PROXY_UDP, Part::Bytes(&bytes)])?
            .breaks(breaks);
    }
    let long = message(TUPLE4, 5, &[&quoted4[..], &[0; 500]].concat())?;
    scene
        .say(
            "Longer than 576 octets",
            &[ip4, PROXY_UDP, Part::Bytes(&long)],
        )?
        .breaks(&[Rule::ProxyCnTooLong]);
    let quoted6 = invoking(v6(SENDER, RECEIVER, DATA_CLASS))?;
    let long = message(TUPLE6, 5, &[&quoted6[..], &[0; 1200]].concat())?;
    scene
        .say(
            "Longer than 1280 octets",
            &[ip6, PROXY_UDP, Part::Bytes(&long)],
        )?
        .breaks(&[Rule::ProxyCnTooLong]);

    let ip = v6(SENDER, RECEIVER, DATA_CLASS);
    let address = OptionPart::ProxyAddress(ProxyAddress(PROXY));
    let with = |header| [&[ip, header], &data(0x800)[..]].concat();
    let twice = [address; 2];
    scene
        .say(
            "Proxy address in a Hop-by-Hop Options header",
            &with(Part::HopByHop(&twice[..1])),
        )?
        .breaks(&[Rule::ProxyAddressHopByHop]);
    scene
        .say(
            "Two proxy addresses",
            &with(Part::DestinationOptions(&twice)),
        )?
        .breaks(&[Rule::ProxyAddressSeveral]);
    let short = [OptionPart::Raw(
        Profile::DEFAULT.proxy_address_option,
        (4, 2),
        &[0x20; 12],
    )];
    scene
        .say("Opt Data Len 12", &with(Part::DestinationOptions(&short)))?
        .breaks(&[Rule::ProxyAddressLength]);
    let none = [OptionPart::ProxyAddress(ProxyAddress(
        Ipv6Addr::UNSPECIFIED,
    ))];
    scene
        .say(
            "The unspecified address",
            &with(Part::DestinationOptions(&none)),
        )?
        .breaks(&[Rule::ProxyAddressInvalid]);
    scene
        .say(
            "Runs past its header",
            &with(Part::DestinationOptions(&twice[..1])),
        )?
        .spoil(|b| b[BEHIND_V6 + 3] = 200)
        .breaks(&[Rule::ProxyAddressLength]);
    Ok(scene.done())
}

fn wan() -> Result<Capture> {
    let mut scene = Scene::new("broken-wan-fcn", "FCN messages that break a rule each");
    let bytes = fcn(FLOW_LABEL, 5, 0)?;
    let reserved = fcn(FLOW_LABEL, 5, 0x1FF)?;
    let long = [&bytes[..], &[0; 4]].concat();
    for (comment, bytes, breaks) in [
        ("A good one first", &bytes[..], &[][..]),
        (
            "Reserved bits are not 0",
            &reserved,
            &[Rule::WanFcnReserved],
        ),
        ("UDP length 16", &long, &[Rule::WanFcnLength]),
        ("UDP length 11", &bytes[..3], &[Rule::WanFcnMalformed]),
        ("UDP length 8: empty", &[], &[Rule::WanFcnMalformed]),
    ] {
        scene
            .say(comment, &[FCN_V6, FCN_UDP, Part::Bytes(bytes)])?
            .breaks(breaks);
    }
    Ok(scene.done())
}

fn routing() -> Result<Capture> {
    let mut scene = Scene::new(
        "broken-pnc",
        "Proxy Node Capability in routing messages that break a rule each",
    );
    let [host4, _] = hosts();
    let net = Prefix::new(PROXY4.into(), 24).unwrap_or(host4);
    let plain = ReachKind::Plain;
    scene
        .framed(
            "IS-IS: PNC at a prefix that is no host",
            &isis(&lsp(&[reach(plain, net, Some(ISIS_PNC))])?),
        )?
        .breaks(&[Rule::PncNotHost]);
    scene
        .framed(
            "IS-IS: empty flags",
            &isis(&lsp(&[reach(plain, host4, Some(&[]))])?),
        )?
        .breaks(&[Rule::PncFlagsLength]);
    let mut bytes = lsp(&[reach(plain, host4, Some(ISIS_PNC))])?;
    if let Some(length) = bytes.get_mut(3 + 8..3 + 10) {
        length.copy_from_slice(&[0xFF, 0xFF]);
    }
    scene
        .framed("IS-IS: PDU length 65535", &isis(&bytes))?
        .breaks(&[Rule::PncMalformed]);
    scene
        .say(
            "OSPFv2: flags of 3 octets",
            &ospf2(&ospf2_update(host4, Some(&OSPF_PNC[..3]))?),
        )?
        .breaks(&[Rule::PncFlagsLength]);

    let pnc = CharacteristicRepr {
        code: Profile::DEFAULT.bgp_pnc_characteristic,
        value: &[],
    };
    let valued = CharacteristicRepr {
        value: &[0, 1],
        ..pnc
    };
    let other = CharacteristicRepr {
        code: 1,
        value: &[0, 0, 0, 1],
    };
    let proxy = PROXY4.into();
    let mut sequence = 1;
    for (comment, of, characteristics, breaks) in [
        (
            "BGP: PNC carries a value",
            proxy,
            &[valued][..],
            &[Rule::PncNhcLength][..],
        ),
        (
            "BGP: codes not in increasing order",
            proxy,
            &[pnc, other],
            &[Rule::PncNhcOrder],
        ),
        (
            "BGP: the attribute's next hop is not the route's",
            SWITCH4.into(),
            &[pnc],
            &[Rule::PncNhcNextHop],
        ),
    ] {
        let update = update(&[host4], proxy, of, characteristics)?;
        scene
            .say(comment, &bgp(&segment(sequence, &update)))?
            .breaks(breaks);
        sequence += update.len() as u32;
    }
    let flags = |bytes: &mut Vec<u8>| {
        if let Some(at) = attribute_39(bytes) {
            bytes[at] = 0x80;
        }
    };
    let overlong = |bytes: &mut Vec<u8>| {
        if let Some(at) = bytes.windows(4).position(|w| w == [0xFF, 0x00, 0x00, 0x00]) {
            bytes[at + 3] = 255;
        }
    };
    let mut again = [0; 32];
    let nhc = NhcRepr {
        afi: 1,
        safi: 1,
        next_hop: proxy,
        characteristics: &[pnc],
    };
    let len = nhc.emit(&mut again)?;
    let again = &again[..len];
    // A second attribute, first written as the value of a characteristic, then let out of it.
    let twice = |bytes: &mut Vec<u8>| {
        if let Some(at) = attribute_39(bytes) {
            bytes[at + 2] -= again.len() as u8;
            let characteristic = at + 3 + 4 + 4;
            bytes[characteristic + 3] = 0;
        }
    };
    let carrier = CharacteristicRepr {
        code: 1,
        value: again,
    };
    for (comment, characteristics, change, breaks) in [
        (
            "BGP: attribute 39 is not marked transitive",
            &[pnc][..],
            &flags as &dyn Fn(&mut Vec<u8>),
            Rule::PncNhcFlags,
        ),
        (
            "BGP: a characteristic runs past the attribute",
            &[pnc],
            &overlong,
            Rule::PncNhcMalformed,
        ),
        (
            "BGP: the same characteristic twice",
            &[pnc, pnc],
            &|_| {},
            Rule::PncNhcDuplicate,
        ),
        (
            "BGP: attribute 39 twice",
            &[carrier],
            &twice,
            Rule::PncSeveral,
        ),
    ] {
        let mut bytes = update(&[host4], proxy, proxy, characteristics)?;
        change(&mut bytes);
        scene
            .say(comment, &bgp(&segment(sequence, &bytes)))?
            .breaks(&[breaks]);
        sequence += bytes.len() as u32;
    }
    Ok(scene.done())
}

/// Where attribute 39, of fewer than 256 octets, begins in a BGP UPDATE.
fn attribute_39(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|w| w == [0xC0, 39])
}

fn pfc() -> Result<Capture> {
    let mut scene = Scene::new("broken-pfc", "PFC frames that break a rule each");
    let pause = PfcRepr {
        vector: 0x08,
        times: [0xFFFF; 8],
    };
    let good = pfc_bytes(&pause)?;
    let wide = pfc_bytes(&PfcRepr {
        vector: 0x0108,
        ..pause
    })?;
    for (destination, bytes, comment, breaks) in [
        (
            [2, 0, 0, 0, 0, 4],
            &good,
            "Not to 01-80-C2-00-00-01",
            &[Rule::PfcDestination],
        ),
        (
            PFC_DESTINATION,
            &wide,
            "The upper octet of the class-enable vector is not 0",
            &[Rule::PfcVector],
        ),
    ] {
        let frame = control(destination, bytes);
        let len = frame.len();
        scene
            .octets(comment, frame, len, LinkType::Ethernet)
            .breaks(breaks);
    }
    let mut frame = control(PFC_DESTINATION, &good);
    frame.truncate(14 + 12);
    let len = frame.len();
    scene
        .octets("Ends in the pause times", frame, len, LinkType::Ethernet)
        .breaks(&[Rule::PfcMalformed]);
    Ok(scene.done())
}
