//! The gallery `malformed`: every defect that a rule names, a packet each. Only defects of code
//! points are missing: they need a profile that the drafts forbid, and then every packet has them.
//!
//! Octets that change are counted from the beginning of the frame: IPv6 begins at 14, what is
//! behind it at 54; a CNP's BTH at 62; the option of a Fast CNP at 56, and its trace at 62.

use super::stacks::*;
use fcn_wire::pfc::ETHERTYPE_MAC_CONTROL;
use fcn_wire::pnc::bgp::{AFI_IPV4, NhcRepr, SAFI_UNICAST};

pub const GALLERY: Gallery = Gallery {
    name: "malformed",
    about: "One packet for each defect that a rule names, between good packets",
    families: &[
        Family { name: "cnp", compose: cnps,
            about: "CNPs and RoCEv2 packets that break a rule each" },
        Family { name: "fast-cnp", compose: fast_cnp, about: "Fast CNPs that break a rule each" },
        Family { name: "ioam", compose: ioam_traces,
            about: "IOAM traces that break a rule each, in Fast CNPs with option 2 and in data" },
        Family { name: "proxy-cn", compose: proxy,
            about: "Notifications to the proxy node and proxy address options that break a rule \
                each" },
        Family { name: "wan-fcn", compose: wan_fcn, about: "FCN messages that break a rule each" },
        Family { name: "pnc", compose: pnc,
            about: "Proxy Node Capability in routing messages that break a rule each" },
        Family { name: "pfc", compose: pfc_frames, about: "PFC frames that break a rule each" },
    ],
};

fn cnps(c: &mut Composer<'_>) {
    let good = (CNP6, SENDER_CNP);
    c.packet("BECN is 0", good).change(66, [0x00]).breaks(Rule::CnpBecn);
    c.packet("FECN instead of BECN", good).change(66, [0x80]).breaks(Rule::CnpBecn);
    c.packet("PSN is 7", good).change(73, [7]).breaks(Rule::CnpPsn);
    c.packet("The first reserved octet is not 0", good).change(74, [0x80])
        .breaks(Rule::CnpReserved);
    c.packet("A reserved octet is not 0", good).change(82, [1]).breaks(Rule::CnpReserved);
    c.packet("Transport version 1", good).change(63, [1]).breaks(Rule::RoceTver);
    c.packet("InfiniBand's own opcode", good).change(62, [0x80]).breaks(Rule::RoceIbCnp);
    c.packet("All at once", good).change(63, [2]).change(66, [0x80]).change(71, [1])
        .change(74, [0xFF]).breaks(Rule::RoceTver).breaks(Rule::CnpBecn).breaks(Rule::CnpPsn)
        .breaks(Rule::CnpReserved);
    let body = c.octets(cnp_body(0x11));
    c.packet("12 reserved octets instead of 16", (CNP6, CNP_UDP, Bytes(&body[..24]), ICRC))
        .breaks(Rule::CnpMalformed);
    c.packet("20 reserved octets instead of 16",
        (CNP6, CNP_UDP, Bytes(&body), Bytes(&[0; 4]), ICRC)).breaks(Rule::CnpMalformed);
    c.packet("No reserved octets", (CNP6, CNP_UDP, Bytes(&body[..12]), ICRC))
        .breaks(Rule::CnpMalformed);
    let write = bth(Opcode::RC_WRITE_ONLY, 0x12, 1);
    c.packet("RDMA WRITE Only without its RETH", (DATA6, CNP_UDP, write, ICRC))
        .breaks(Rule::RoceMalformed);
    c.packet("Shorter than a BTH", (CNP6, CNP_UDP, Bytes(&[0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 1])))
        .breaks(Rule::RoceMalformed);
    c.packet("One octet", (CNP6, CNP_UDP, Bytes(&[0x81]))).breaks(Rule::RoceMalformed);
    let (wrong, zero) = (Part::Icrc(Policy::Corrupt), Part::Icrc(Policy::Zero));
    c.packet("ICRC wrong", (CNP6, CNP_UDP, cnp_body(0x11), wrong)).breaks(Rule::RoceIcrcBad);
    c.packet("ICRC left 0, over IPv4", (CNP4, CNP_UDP, cnp_body(0x11), zero))
        .breaks(Rule::RoceIcrcMissing);
    let (swapped, middle) = (Part::Icrc(Policy::Swapped), bth(Opcode::RC_WRITE_MIDDLE, 0x12, 0x6FE));
    c.packet("ICRC with its octets swapped, from a port that RoCEv2 is not sent from",
        (DATA6, Part::udp(4791, ROCEV2_PORT), middle, PAYLOAD, swapped))
        .breaks(Rule::RoceIcrcSwapped);
    let reth = Part::Reth(Reth { address: 0x1000, rkey: 7, length: 64 });
    c.packet("No ICRC after the data", (DATA6, DATA_UDP, write, reth, Bytes(&[0x5A; 64])))
        .breaks(Rule::RoceIcrcMissing);
    let middle = bth(Opcode::RC_WRITE_MIDDLE, 0x12, 0x6FF);
    c.packet("ICRC of a data packet wrong", (DATA6, DATA_UDP, middle, PAYLOAD, wrong))
        .breaks(Rule::RoceIcrcBad);
    c.packet("A good one after them", good);
}

fn fast_cnp(c: &mut Composer<'_>) {
    let (code_1, code_2) = (c.profile.fast_cnp_option1, c.profile.fast_cnp_option2);
    let (one, full) = (option_1(RECEIVER), trace(WANTED, 0, &PATH));
    c.packet("Opt Data Len 15: the address is incomplete", FAST_CNP).change(57, [0x0F])
        .change(73, [0x00]).breaks(Rule::FastCnpLength1);
    c.packet("Opt Data Len 20", FAST_CNP).change(57, [20]).breaks(Rule::FastCnpLength1);
    c.packet("Opt Data Len 0", FAST_CNP).change(57, [0; 17]).breaks(Rule::FastCnpLength1);
    c.packet("Opt Data Len 255 runs past the header", FAST_CNP).change(57, [0xFF])
        .breaks(Rule::FastCnpMalformed);
    let short = OptionPart::Raw(code_2, (4, 0), &[0; 17]);
    c.fast("Option 2 too short for an address and an IOAM header", &[short])
        .breaks(Rule::FastCnpMalformed);
    c.packet("In a Hop-by-Hop Options header", (FAST, HopByHop(&[one]), RECEIVER_CNP))
        .breaks(Rule::FastCnpHopByHop);
    c.fast("Option 1 twice", &[one, one]).breaks(Rule::FastCnpSeveral);
    c.fast("Options 1 and 2", &[one, option_2(ioam(1, &full))]).breaks(Rule::FastCnpSeveral);
    let second = DestinationOptions(&[]);
    c.packet("A second Destination Options header", (FAST, OPTION_1, second, RECEIVER_CNP))
        .breaks(Rule::FastCnpSeveralHeaders);
    c.packet("An option in each of two Destination Options headers",
        (FAST, OPTION_1, OPTION_1, RECEIVER_CNP)).breaks(Rule::FastCnpSeveral)
        .breaks(Rule::FastCnpSeveralHeaders);
    // One octet of padding in front instead of behind.
    let address = RECEIVER.octets();
    c.fast("Option 1 not at 4n+2", &[OptionPart::Raw(code_1, (4, 3), &address)])
        .breaks(Rule::FastCnpAlignment);
    let content = [&[0, 1], &full[..], &address].concat();
    c.fast("Option 2 not at 4n", &[OptionPart::Raw(code_2, (4, 2), &content)])
        .breaks(Rule::FastCnpAlignment);
    let addressed = Part::v6(SWITCH, RECEIVER, NOTICE);
    c.packet("Addressed to the receiver", (addressed, OPTION_1, RECEIVER_CNP))
        .breaks(Rule::FastCnpAddressed);
    for (comment, source) in [
        ("From a link-local address", Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3)),
        ("From the unspecified address", Ipv6Addr::UNSPECIFIED),
        ("From ::1", Ipv6Addr::LOCALHOST),
    ] {
        c.packet(comment, (Part::v6(source, SENDER, NOTICE), OPTION_1, RECEIVER_CNP))
            .breaks(Rule::FastCnpSource);
    }
    let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    c.fast("The original destination is a multicast address", &[option_1(multicast)])
        .breaks(Rule::FastCnpOriginal);
    let unspecified = option_1(Ipv6Addr::UNSPECIFIED);
    c.fast("The original destination is the unspecified address", &[unspecified])
        .breaks(Rule::FastCnpOriginal);
    c.packet("In front of a data packet", (FAST, OPTION_1, data(0x700)))
        .breaks(Rule::FastCnpNotCnp);
    c.packet("In front of nothing", (FAST, OPTION_1, carried(next_header::NONE, &[])))
        .breaks(Rule::FastCnpNotCnp);
    c.packet("The CNP after it has BECN 0", FAST_CNP).change(90, [0x00]).breaks(Rule::CnpBecn);
    let body = c.octets(cnp_body(0x12));
    c.packet("The CNP after it is 4 octets short",
        (FAST, OPTION_1, CNP_UDP, Bytes(&body[..24]), ICRC)).breaks(Rule::CnpMalformed);
    let wrong = [CNP_UDP, cnp_body(0x12), Part::Icrc(Policy::Corrupt)];
    c.packet("ICRC wrong by every reading", (FAST, OPTION_1, wrong)).breaks(Rule::RoceIcrcBad);
    c.packet("A good one after them", FAST_CNP);
}

fn ioam_traces(c: &mut Composer<'_>) {
    // Room that is no whole number of nodes: nothing is wrong with it.
    let room = trace(WANTED, 20, &PATH);
    let good = ioam(0, &room);
    c.fast_cnp_2("A good one first", good);
    c.fast_cnp_2("NodeLen 0", good).change(64, [0]).breaks(Rule::IoamNodeLenZero);
    c.fast_cnp_2("NodeLen 3, the trace type asks for 4", good).change(64, [3 << 3])
        .breaks(Rule::IoamNodeLen);
    c.fast_cnp_2("NodeLen 31", good).change(64, [31 << 3]).breaks(Rule::IoamNodeLen);
    c.fast_cnp_2("RemainingLen 127", good).change(65, [127]).breaks(Rule::IoamRemaining);
    c.fast_cnp_2("RemainingLen 4 of 5: the list is not a whole number of nodes", good)
        .change(65, [4])
        .breaks(Rule::IoamRagged);
    c.fast_cnp_2("The last node cut off", ioam(0, &room[..72])).breaks(Rule::IoamRagged);
    c.fast_cnp_2("An opaque snapshot of 1020 octets that are not there",
        ioam(1, &changed(&trace(0x00_0002, 0, &PATH[..1]), 8, 0xFF))).breaks(Rule::IoamRagged);
    c.fast_cnp_2("The reserved octet is not 0", good).change(69, [1]).breaks(Rule::IoamReserved);
    c.fast_cnp_2("Trace type bit 23, which is reserved", good).change(68, [1])
        .breaks(Rule::IoamReservedBit);
    c.fast_cnp_2("The undefined flag: reported as a note", good).change(65, [0x85])
        .breaks(Rule::IoamFlag);
    c.fast_cnp_2("Undefined bit 12 of the trace type: 4 octets of unknown meaning",
        ioam(1, &trace(WANTED | 0x800, 0, &PATH))).breaks(Rule::IoamUndefined);
    c.fast_cnp_2("Overflow: the congested node, passed last, found no room; reported as a note",
        ioam(0, &changed(&trace(WANTED, 0, &PATH[..2]), 2, 0x24))).breaks(Rule::IoamOverflow);
    c.fast_cnp_2("Shorter than its header", ioam(0, &room[..6])).breaks(Rule::IoamMalformed);
    c.fast_cnp_2("Direct export, which is not a trace", ioam(4, &room))
        .breaks(Rule::FastCnpIoamType);
    let reserved = |reserved| IoamOption { reserved, ..good };
    c.fast_cnp_2("The reserved octet of option 2 is not 0", reserved(9))
        .breaks(Rule::FastCnpReserved);
    let empty = changed(&room, 2, 0);
    c.traced("Data with NodeLen 0 in its Hop-by-Hop trace", 0x701, ioam(0, &empty))
        .breaks(Rule::IoamNodeLenZero);
    c.traced("Data whose IOAM option has a reserved octet that is not 0", 0x701, reserved(1))
        .breaks(Rule::IoamReserved);
    let short = OptionPart::Raw(c.profile.ioam_option, (4, 0), &[0]);
    c.packet("Data whose IOAM option has one octet", (DATA6, HopByHop(&[short]), data(0x701)))
        .breaks(Rule::IoamMalformed);
}

fn proxy(c: &mut Composer<'_>) {
    let quoted4 = c.octets((DATA4, data(0x400)));
    let good4 = proxy_cn(5, &quoted4);
    let octets4 = c.octets(good4);
    c.packet("A good one first", (PROXY_CN4, good4));
    for (comment, at, octet, rule) in [
        ("Reserved bits are not 0", 15, 0x01, Rule::ProxyCnReserved),
        ("The five-tuple has another source port", 9, 0xC1, Rule::ProxyCnTuple),
        ("Another protocol", 8, 0x06, Rule::ProxyCnTuple),
        ("Another source address", 3, 0x00, Rule::ProxyCnTuple),
    ] {
        let message = changed(&octets4, at, octet);
        c.packet(comment, (PROXY_CN4, Bytes(&message))).breaks(rule);
    }
    let message = changed(&octets4, 16, 0x15);
    c.packet("The quoted packet is not an IP packet", (PROXY_CN4, Bytes(&message)))
        .breaks(Rule::ProxyCnFamily).breaks(Rule::ProxyCnTuple);
    c.packet("No invoking packet", (PROXY_CN4, Bytes(&octets4[..16])))
        .breaks(Rule::ProxyCnInvokingNone);
    c.packet("Less of the invoking packet than fits: reported as a note",
        (PROXY_CN4, Bytes(&octets4[..44]))).breaks(Rule::ProxyCnInvokingShort);
    c.packet("Too short for its five-tuple", (PROXY_CN4, Bytes(&octets4[..15])))
        .breaks(Rule::ProxyCnMalformed);
    c.packet("Longer than 576 octets", (PROXY_CN4, good4, Bytes(&[0; 500])))
        .breaks(Rule::ProxyCnTooLong);
    let quoted6 = c.octets((DATA6, data(0x400)));
    let good6 = proxy_cn(5, &quoted6);
    let message = changed(&c.octets(good6), 35, 0x13);
    c.packet("The five-tuple has another destination port, IPv6", (PROXY_CN6, Bytes(&message)))
        .breaks(Rule::ProxyCnTuple);
    c.packet("Another UDP checksum, IPv6", (PROXY_CN6, good6)).change(60, [0x96])
        .breaks(Rule::ProxyCnChecksum);
    c.packet("Longer than 1280 octets", (PROXY_CN6, good6, Bytes(&[0; 1200])))
        .breaks(Rule::ProxyCnTooLong);
    let at = proxy_address(PROXY);
    c.packet("Proxy address in a Hop-by-Hop Options header", (DATA6, HopByHop(&[at]), data(0x800)))
        .breaks(Rule::ProxyAddressHopByHop);
    c.informed("Two proxy addresses", &[at, at]).breaks(Rule::ProxyAddressSeveral);
    let short = OptionPart::Raw(c.profile.proxy_address_option, (4, 2), &[0x20; 12]);
    c.informed("Opt Data Len 12", &[short]).breaks(Rule::ProxyAddressLength);
    let unspecified = proxy_address(Ipv6Addr::UNSPECIFIED);
    c.informed("The unspecified address", &[unspecified]).breaks(Rule::ProxyAddressInvalid);
    let multicast = proxy_address(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1));
    c.informed("A multicast address", &[multicast]).breaks(Rule::ProxyAddressInvalid);
    c.informed("Runs past its header", &[at]).change(57, [0xC8]).breaks(Rule::ProxyAddressLength);
}

fn wan_fcn(c: &mut Composer<'_>) {
    let good = (FCN, fcn(5));
    let values = |flow_label, reserved| Part::WanFcn(WanFcnRepr { flow_label, level: 5, reserved });
    c.packet("A good one first", good);
    c.packet("Reserved bits are not 0", (FCN, values(LABEL, 0x1FF))).breaks(Rule::WanFcnReserved);
    // With the label of the others its first two octets would be those of RTCP, which Wireshark 4.6
    // recognises.
    c.packet("UDP length 16", (FCN, values(0xABCD, 0), Bytes(&[0; 4]))).breaks(Rule::WanFcnLength);
    let octets = c.octets(fcn(5));
    c.packet("UDP length 11", (FCN, Bytes(&octets[..3]))).breaks(Rule::WanFcnMalformed);
    c.packet("UDP length 13, more than IPv6 carries", good).change(58, [0, 13])
        .breaks(Rule::PacketLength);
    c.packet("Another UDP checksum", good).change(60, [0x0B, 0xAD]).breaks(Rule::WanFcnChecksum);
    c.packet("No UDP checksum, over IPv6", good).change(60, [0, 0]).breaks(Rule::WanFcnChecksum);
}

fn pnc(c: &mut Composer<'_>) {
    let (level_1, level_2) = ((Level::L1, 0x15), (Level::L2, 0x15));
    let set = &[0x20, 0, 0, 0];
    c.lsp("IS-IS: PNC at a prefix that is not a host", level_2, &[plain(network(PROXY4, 24), &[1])])
        .breaks(Rule::PncNotHost);
    c.lsp("IS-IS: empty flags", level_2, &[plain(host(PROXY4), &[])]).breaks(Rule::PncFlagsLength);
    c.lsp("IS-IS: PDU length 65535", level_2, &[plain(host(PROXY4), &[1])]).change(25, [0xFF, 0xFF])
        .breaks(Rule::PncMalformed);
    let proxy4 = (INTRA_AREA, host(PROXY4));
    c.ospf2("OSPFv2: flags of 3 octets", (15, 0), proxy4, &[0x20, 0, 0])
        .breaks(Rule::PncFlagsLength);
    c.ospf2("OSPFv2: flags of 8 octets, although the bits set need only 4", (15, 0), proxy4,
        &[0x20, 0, 0, 0, 0, 0, 0, 0]).breaks(Rule::PncFlagsExcess);
    let subnet = (INTRA_AREA, network(PROXY4, 24));
    c.ospf2("OSPFv2: PNC at a prefix that is not a host", (15, 0), subnet, set)
        .breaks(Rule::PncNotHost);
    let proxy6 = (LsaKind::IntraAreaPrefix, host(PROXY));
    c.ospf3("OSPFv3: flags of 2 octets", (15, 0), proxy6, &[0x20, 0]).breaks(Rule::PncFlagsLength);
    let subnet = (LsaKind::IntraAreaPrefix, network(PROXY, 64));
    c.ospf3("OSPFv3: PNC at a prefix that is not a host", (15, 0), subnet, set)
        .breaks(Rule::PncNotHost);
    // PNC that a router does not keep on the way to another level or area. No packet alone shows
    // it; those of other frames are told apart by their prefixes.
    let (switch4, switch) = (host(SWITCH4), host(SWITCH));
    c.lsp("A good one, IS-IS: PNC to be passed on from level 1 to level 2", level_1,
        &[plain(switch4, &[0x01])]);
    c.lsp("A good one for itself, IS-IS: from level 1 to level 2, and PNC was not kept",
        (Level::L2, 0x16), &[plain(switch4, &[0x40])]);
    c.lsp("A good one, IS-IS: PNC to be passed on from level 2 to level 1", level_2,
        &[plain(switch, &[0x01])]);
    c.lsp("A good one for itself, IS-IS: from level 2 to level 1, and PNC was not kept",
        (Level::L1, 0x16), &[ReachRepr { down: true, ..plain(switch, &[0x40]) }]);
    c.ospf2("A good one, OSPFv2: PNC to be passed on to the backbone", (15, 1),
        (INTRA_AREA, switch4), set);
    c.ospf2("A good one for itself, OSPFv2: inter-area, and PNC was not kept", (16, 0),
        (INTER_AREA, switch4), &[]);
    c.ospf3("A good one, OSPFv3: PNC to be passed on to the backbone", (15, 1),
        (LsaKind::IntraAreaPrefix, switch), set);
    c.ospf3("A good one for itself, OSPFv3: inter-area, and PNC was not kept", (16, 0),
        (LsaKind::InterAreaPrefix, switch), &[0; 4]);
    // One side of a BGP session. Attribute 39 begins at 98, its first characteristic at 109.
    let code = c.profile.bgp_pnc_characteristic;
    let [pnc, valued] = [&[][..], &[0, 1]].map(|value| CharacteristicRepr { code, value });
    c.packet("BGP: PNC carries a value",
        (bgp_segment(1), Bytes(&update(PROXY4, PROXY4, &[valued])))).breaks(Rule::PncNhcLength);
    c.packet("BGP: codes not in increasing order",
        (bgp_segment(67), Bytes(&update(PROXY4, PROXY4, &[pnc, ENTROPY_LABELS]))))
        .breaks(Rule::PncNhcOrder);
    c.packet("BGP: the same characteristic twice",
        (bgp_segment(135), Bytes(&update(PROXY4, PROXY4, &[pnc, pnc]))))
        .breaks(Rule::PncNhcDuplicate);
    c.packet("BGP: the attribute's next hop is not the route's",
        (bgp_segment(203), Bytes(&update(PROXY4, SWITCH4, &[pnc])))).breaks(Rule::PncNhcNextHop);
    let good = update(PROXY4, PROXY4, &[pnc]);
    c.packet("BGP: attribute 39 is not marked transitive", (bgp_segment(267), Bytes(&good)))
        .change(98, [0x80]).breaks(Rule::PncNhcFlags);
    c.packet("BGP: a characteristic runs past the attribute", (bgp_segment(331), Bytes(&good)))
        .change(112, [0xFF]).breaks(Rule::PncNhcMalformed);
    // The second attribute is first the value of a characteristic, then let out of it.
    let (afi, safi, next_hop) = (AFI_IPV4, SAFI_UNICAST, PROXY4.into());
    let second = composed(NhcRepr { afi, safi, next_hop, characteristics: &[pnc] }.to_bytes());
    let twice = update(PROXY4, PROXY4, &[CharacteristicRepr { value: &second, ..ENTROPY_LABELS }]);
    c.packet("BGP: attribute 39 twice", (bgp_segment(395), Bytes(&twice))).change(100, [0x0C])
        .change(112, [0x00]).breaks(Rule::PncSeveral);
}

fn pfc_frames(c: &mut Composer<'_>) {
    let elsewhere = ethernet(3, [0x02, 0, 0, 0, 0, 0x04]);
    c.frame(LinkType::Ethernet, "Not to 01-80-C2-00-00-01", (elsewhere, PAUSE))
        .breaks(Rule::PfcDestination);
    c.frame(LinkType::Ethernet, "The upper octet of the class-enable vector is not 0", (PFC, PAUSE))
        .change(16, [1]).breaks(Rule::PfcVector);
    let pause = c.octets(PAUSE);
    let cut = Part::Payload { ether_type: ETHERTYPE_MAC_CONTROL, protocol: 0, bytes: &pause[..12] };
    c.frame(LinkType::Ethernet, "Ends in the pause times", (PFC, cut)).breaks(Rule::PfcMalformed);
}
