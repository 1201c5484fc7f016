//! The gallery `formats`: every message as it should be. No packet here deserves a warning.

use super::stacks::*;
use fcn_wire::cnm::MAX_MSDU_LEN;
use fcn_wire::header::ethernet as ethernet_types;
use fcn_wire::icrc::Reading;
use fcn_wire::pfc::ETHERTYPE_MAC_CONTROL;
use fcn_wire::mad::{GSI_Q_KEY, MAD_LEN};
use fcn_wire::rdma_cm::{
    CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    MessageRepr, ReadyToUseRepr,
};

pub const GALLERY: Gallery = Gallery {
    name: "formats",
    about: "Every message of fast congestion notification, well-formed, plain and in tunnels, \
        and related messages",
    families: &[
        Family { name: "cnp", compose: cnps,
            about: "Plain CNPs over IPv4 and IPv6, after data marked CE; VLAN, MPLS and VXLAN" },
        Family { name: "fast-cnp", compose: fast_cnp,
            about: "Fast CNP with option 1 from a switch and from a receiver; the four readings \
                of the ICRC" },
        Family { name: "ioam", compose: ioam_traces,
            about: "Data with IOAM traces growing hop by hop; Fast CNP with option 2, \
                pre-allocated and incremental, every data field" },
        Family { name: "fast-cnp-tunnels", compose: fast_cnp_tunnels,
            about: "Fast CNPs in VLAN tags, MPLS, VXLAN over IPv4 and IPv6, SRv6 with and without \
                a routing header, and raw IP" },
        Family { name: "unaware-sender", compose: unaware_sender,
            about: "A sender that does not support the option: action bits 10 make it answer the \
                switch with ICMPv6 Parameter Problem" },
        Family { name: "proxy-cn", compose: proxy,
            about: "Notification to the proxy node, over and about IPv4 and IPv6; the proxy \
                address option; the translated CNP" },
        Family { name: "wan-fcn", compose: wan_fcn,
            about: "Data between data centres in SRv6, VXLAN and SR-MPLS, the FCN about its \
                outer flow label, the CNP that results" },
        Family { name: "pnc", compose: pnc,
            about: "Proxy Node Capability advertised by IS-IS, OSPFv2, OSPFv3 and BGP" },
        Family { name: "rdma-cm", compose: rdma_cm,
            about: "RDMA CM connection setup and teardown, plain and in tunnels, which pairs \
                QPs; a Fast CNP in between" },
        Family { name: "pfc", compose: pfc_frames,
            about: "Priority-based flow control: a class paused and resumed" },
        Family { name: "neighbours", compose: neighbours,
            about: "Other mechanisms in the same networks: PAUSE of all classes, a bridge's \
                congestion notification message, data with a CSIG tag" },
        Family { name: "trimmed", compose: trimmed,
            about: "Data that a switch has trimmed instead of dropping it: with its lengths as \
                they were and with those of what is left, and sent back to its source" },
        Family { name: "cut", compose: cut,
            about: "Packets cut by a snap length and fragments: reported as such, not as \
                malformed, their ICRC unchecked" },
    ],
};

fn cnps(c: &mut Composer<'_>) {
    c.packet("RDMA WRITE to QP 0x12 at the receiver, ECT(0)", (DATA4, WRITE_FIRST));
    c.packet("The same flow: a switch has marked CE", (MARKED4, data(0x101)));
    c.packet("Acknowledged to QP 0x11 at the sender", (BACK4, ACKNOWLEDGE));
    c.packet("The CNP: BECN, DestQP is the sender's own QP 0x11", (CNP4, SENDER_CNP));
    // The time that the notification point leaves between two CNPs about a flow.
    c.wait(50_000);
    c.packet("RDMA WRITE to QP 0x12 at the receiver, ECT(0)", (DATA6, WRITE_FIRST));
    c.packet("The same flow: a switch has marked CE", (MARKED6, data(0x101)));
    c.packet("Acknowledged to QP 0x11 at the sender", (BACK6, ACKNOWLEDGE));
    c.packet("The CNP: BECN, DestQP is the sender's own QP 0x11", (CNP6, SENDER_CNP));
    c.wait(50_000);
    c.packet("CNP in two VLAN tags, QP of 24 bits", (SERVICE_VLAN, VLAN, CNP4, cnp(0xABCDEF)));
    c.packet("CNP after an MPLS label", (mpls(100_016, 6, 62), CNP6, cnp(0xABCDEF)));
    c.packet("CNP in VXLAN", (CNP4, VXLAN, CNP6, cnp(0xABCDEF)));
    let (source, destination, options) = (RECEIVER4, SENDER4, &[0x94, 0x04, 0, 0]);
    let ip = Part::Ipv4 { source, destination, tos: NOTICE, ttl: 64, id: 0, options };
    c.packet("CNP after IPv4 options (Router Alert): the ICRC covers them", (ip, cnp(0xABCDEF)));
}

fn fast_cnp(c: &mut Composer<'_>) {
    c.packet("RDMA WRITE to QP 0x12 meets congestion", (DATA6, data(0x200)));
    c.packet("Fast CNP from the switch: DestQP is the receiver's QP 0x12, option 1 names the \
        receiver", FAST_CNP);
    c.packet("Fast CNP from the receiver itself: source and original destination are equal",
        (CNP6, OPTION_1, RECEIVER_CNP));
    let read = |reading| [CNP_UDP, cnp_body(0x12), Part::Icrc(Policy::Compute(reading))];
    c.packet("ICRC by reading A2: extension headers skipped, IPv6 header rewritten as if absent",
        (FAST, OPTION_1, read(Reading::Rewritten)));
    c.packet("ICRC by reading A: extension headers skipped, IPv6 header as on the wire",
        (FAST, OPTION_1, read(Reading::Skipped)));
    c.packet("ICRC by reading C: as Linux soft-RoCE: 8 octets after the IPv6 header taken as UDP",
        (FAST, OPTION_1, read(Reading::SoftRoce)));
    // The option type is that of experiments (RFC 4727).
    let experimental = OptionPart::Raw(0x3E, (1, 0), &[1, 2, 3, 4]);
    c.packet("An experimental Hop-by-Hop option in front, whose data may change: the ICRC takes \
         them as ones", (FAST, HopByHop(&[experimental]), OPTION_1, RECEIVER_CNP));
    c.packet("The sender's other flow still sends", (MARKED6, data(0x201)));
}

fn ioam_traces(c: &mut Composer<'_>) {
    for filled in 0..3 {
        c.traced(&format!("Data with a pre-allocated trace, {filled} of 3 nodes filled"), 0x300,
            ioam(0, &trace(WANTED, 16 * (3 - filled), &PATH[..filled])));
    }
    let full = trace(WANTED, 0, &PATH);
    c.traced("Data with a pre-allocated trace, 3 of 3 nodes filled: here it meets congestion",
        0x300, ioam(0, &full));
    c.fast_cnp_2("Fast CNP with option 2: node 0x301, passed last, comes first and has the \
        deepest queue", ioam(0, &full));
    // RemainingLen says that there is room for one node more.
    let two = changed(&trace(WANTED, 0, &PATH[..2]), 3, 4);
    c.traced("Data with an incremental trace of two nodes", 0x301, ioam(1, &two));
    c.fast_cnp_2("Fast CNP with that incremental trace", ioam(1, &two));
    // Every bit with a meaning: 0 to 11, and the opaque state snapshot.
    c.fast_cnp_2("Every defined data field, opaque state snapshots included (one empty, one of 8 \
         octets)", ioam(1, &trace(0xFF_F002, 0, &[PATH[1], SNAPSHOT])));
    for bit in (0..12).chain([22]) {
        c.fast_cnp_2(&format!("Bit {bit} of the trace type alone, three nodes"),
            ioam(1, &trace(0x80_0000 >> bit, 0, &[PATH[0], PATH[1], SNAPSHOT])));
    }
    c.fast_cnp_2("Wide fields, room for two more nodes",
        ioam(0, &trace(0x00_E000, 48, &PATH[2..])));
    c.fast_cnp_2("Overflow: the second node found no room",
        ioam(0, &changed(&trace(WANTED, 0, &PATH[..1]), 2, 0x24))).breaks(Rule::IoamOverflow);
    c.fast_cnp_2("A trace without a node", ioam(0, &trace(WANTED, 0, &[])));
    c.fast_cnp_2("14 nodes: the longest trace of this type that option 2 holds (250 octets of 255)",
        ioam(0, &trace(WANTED, 0, &[PATH[2]; 14])));
    c.packet("The same trace from the receiver",
        (CNP6, DestinationOptions(&[option_2(ioam(0, &full))]), RECEIVER_CNP));
}

fn fast_cnp_tunnels(c: &mut Composer<'_>) {
    c.packet("One 802.1Q tag", (VLAN, FAST_CNP));
    c.packet("802.1ad and 802.1Q tags", (SERVICE_VLAN, VLAN, FAST_CNP));
    c.packet("Two MPLS labels", (mpls(100_016, 6, 62), mpls(16, 6, 62), FAST_CNP));
    c.packet("VXLAN over IPv4", (OUTER4, VXLAN, FAST_CNP));
    c.packet("VXLAN over IPv6, a tag inside", (TO_INGRESS, VXLAN, VLAN, FAST_CNP));
    c.packet("SRv6 with a segment routing header", (SRV6_TO_INGRESS, FAST_CNP));
    c.packet("SRv6 without one: IPv6 in IPv6", (TO_INGRESS, FAST_CNP));
    c.packet("SRv6 carrying VXLAN", (SRV6_TO_INGRESS, OUTER4, VXLAN, FAST_CNP));
    c.packet("SRv6 carrying Ethernet (End.DX2)", (TO_INGRESS, ETHERNET, FAST_CNP));
    c.frame(LinkType::RawIp, "Raw IP, without a link layer", FAST_CNP);
    // Unicast to us, Ethernet, 6 octets of address, IPv6.
    let cooked = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xDD];
    c.frame(LinkType::LinuxCooked, "Linux cooked capture (the interface `any`)",
        (Bytes(&cooked), FAST_CNP));
}

/// The answer of a sender that does not support the option of a Fast CNP (RFC 8200 section 4.2).
fn unaware_sender(c: &mut Composer<'_>) {
    c.packet("Fast CNP to a sender that does not support the option", FAST_CNP);
    // Parameter Problem, unrecognised option; the option's type, after the IPv6 header and two
    // octets of options header.
    let problem = Part::Icmpv6 { kind: [4, 2], rest: 42 };
    c.packet("The answer quotes the Fast CNP and points at its option type",
        (Part::v6(SENDER, SWITCH, 0), problem, Bytes(&c.octets(FAST_CNP))));
    c.packet("A CNP, which it supports", (CNP6, SENDER_CNP));
}

fn proxy(c: &mut Composer<'_>) {
    let (quoted6, quoted4) = (c.octets((DATA6, data(0x400))), c.octets((DATA4, data(0x400))));
    let at = [proxy_address(PROXY)];
    let informed = (DATA6, DestinationOptions(&at), data(0x400));
    c.packet("Data that names its proxy node (not a notification)", informed);
    c.packet("The congested switch notifies that proxy: five-tuple, level 5, the packet that met \
        congestion", (PROXY_CN6, proxy_cn(5, &c.octets(informed))));
    c.packet("The proxy notifies the sender in a form that it supports: a CNP about its own QP \
        0x11",
        (Part::v6(PROXY, SENDER, NOTICE), SENDER_CNP));
    c.packet("Over IPv4, level 7 (highest)", (PROXY_CN4, proxy_cn(7, &quoted4)));
    c.packet("An IPv4 flow notified over IPv6: the family is read from the quoted packet",
        (PROXY_CN6, proxy_cn(7, &quoted4)));
    c.packet("An IPv6 flow notified over IPv4", (PROXY_CN4, proxy_cn(2, &quoted6)));
    let [udp, bth, _, icrc] = data(0x401);
    let long = [udp, bth, Bytes(&[0x5A; 1400]), icrc];
    c.packet("A long packet: as much of it as fits into 1280 octets, level 0 (lowest)",
        (PROXY_CN6, proxy_cn(0, &c.octets((DATA6, long))[..1192])));
    c.packet("The same over IPv4: as much as fits into 576 octets",
        (PROXY_CN4, proxy_cn(1, &c.octets((DATA4, long))[..532])));
    c.packet("Less of the packet than fits: allowed, reported as a note",
        (PROXY_CN6, proxy_cn(3, &quoted6[..60]))).breaks(Rule::ProxyCnInvokingShort);
    c.packet("In a VLAN tag and SRv6", (VLAN, TO_INGRESS, PROXY_CN6, proxy_cn(3, &quoted6)));
}

fn wan_fcn(c: &mut Composer<'_>) {
    let data = (DATA6, data(0x500));
    c.packet("Data in SRv6; the outer flow label 0xabcde identifies the flow",
        (outer(INGRESS, SWITCH, DATA), SEGMENTS_TO_EGRESS, data));
    c.packet("The congested P node notifies the ingress PE: flow label 0xabcde, level 6",
        (FCN, fcn(6)));
    c.packet("The ingress PE notifies the sender with a standard CNP about its own QP 0x11",
        (CNP6, SENDER_CNP));
    c.packet("Level not used (0), flow label not copied",
        (Part::v6(SWITCH, INGRESS, NOTICE), FCN_UDP, fcn(0)));
    c.packet("Data in VXLAN over IPv6", (outer(INGRESS, EGRESS, DATA), VXLAN, data));
    c.packet("Level 1 (lowest), in a VLAN tag", (VLAN, FCN, fcn(1)));
    c.packet("Data in SRv6 without a routing header, outer ECN field CE: no FCN for this one",
        (outer(INGRESS, EGRESS, CE), data));
    c.packet("Data in SR-MPLS without entropy", (SEGMENT_1, SEGMENT_2, data));
    c.packet("Data in SR-MPLS with entropy at the bottom (RFC 6790): indicator 7, then the label \
        0xabcde that identifies the flow", (SEGMENT_1, SEGMENT_2, ENTROPY, data));
    c.packet("The FCN about the entropy label 0xabcde, after an MPLS label, level 7 (highest)",
        (SEGMENT_2, FCN, fcn(7)));
    c.packet("Data in SR-MPLS with the entropy label after each segment (RFC 8662 section 7): \
        for nodes that read few labels", (SEGMENT_1, ENTROPY, SEGMENT_2, ENTROPY, data));
    c.packet("Data in SR-MPLS with entropy, in a VLAN tag",
        (VLAN, SEGMENT_1, SEGMENT_2, ENTROPY, data));
}

fn pnc(c: &mut Composer<'_>) {
    let topology = ReachKind::MultiTopology { id: 2 };
    let locator = ReachKind::Srv6Locator { id: 0, algorithm: 0 };
    let prefixes = [
        plain(host(PROXY4), &[0x01]),
        plain(network(PROXY4, 24), &[0x20]),
        plain(host(PROXY), &[0x01]),
        routing::reach(topology, host(PROXY4), Some(&[0x01])),
        routing::reach(topology, host(PROXY), Some(&[0x41, 0x80])),
        routing::reach(locator, host(PROXY), Some(&[0x01])),
    ];
    c.lsp("IS-IS LSP: the flag at TLVs 135, 236, 235, 237 and 27, and a prefix without it",
        (Level::L2, 0x15), &prefixes);
    let flags = &[0x20, 0, 0, 0];
    c.ospf2("OSPFv2: Extended Prefix Opaque LSA with PNC", (15, 0), (INTRA_AREA, host(PROXY4)),
        flags);
    c.ospf3("OSPFv3: E-Intra-Area-Prefix LSA with PNC", (15, 0),
        (LsaKind::IntraAreaPrefix, host(PROXY)), flags);
    c.ospf3("OSPFv3: E-Inter-Area-Prefix LSA with PNC", (15, 0),
        (LsaKind::InterAreaPrefix, host(PROXY)), flags);
    c.ospf3("OSPFv3: E-AS-External LSA with PNC", (15, 0), (LsaKind::AsExternal, host(PROXY)),
        flags);
    let pnc = CharacteristicRepr { code: c.profile.bgp_pnc_characteristic, value: &[] };
    let update4 = update(PROXY4, PROXY4, &[ENTROPY_LABELS, pnc]);
    let update6 = update(PROXY, PROXY, &[pnc]);
    c.packet("BGP: two UPDATEs in a segment, IPv4 by NEXT_HOP and IPv6 by MP_REACH_NLRI, \
         attribute 39 with PNC", (bgp_segment(1), Bytes(&update4), Bytes(&update6)));
}

/// Which QP of one side belongs to which of the other. Plain, and in the tunnels in which an
/// ingress PE reads it.
fn rdma_cm(c: &mut Composer<'_>) {
    let [request, reply, ready, release, released] = connection(1);
    c.packet("ConnectRequest: the sender's QP is 0x11", (CM_THERE, send(0, &request)));
    c.packet("ConnectReply: the receiver's QP is 0x12", (CM_BACK, send(0, &reply)));
    c.packet("ReadyToUse", (CM_THERE, send(1, &ready)));
    c.packet("Data to QP 0x12", (DATA6, data(0x100)));
    c.packet("A Fast CNP about QP 0x12 at the receiver: the exchange shows that the sender's own \
        QP is 0x11", FAST_CNP);
    c.packet("DisconnectRequest", (CM_THERE, send(2, &release)));
    c.packet("DisconnectReply", (CM_BACK, send(1, &released)));
    let srv6 = "SRv6 with a segment routing header";
    exchange(c, 2, srv6, SRV6_TO_EGRESS, SRV6_TO_INGRESS);
    exchange(c, 3, "VXLAN over IPv6", (TO_EGRESS, VXLAN), (TO_INGRESS, VXLAN));
}

/// Composes the messages of a connection in tunnels there and back.
fn exchange<T: Copy + for<'a> Layers<'a>>(
    c: &mut Composer<'_>, number: u32, tunnel: &str, there: T, back: T,
) {
    let (there, back) = ((there, CM_THERE), (back, CM_BACK));
    let [request, reply, ready, release, released] = connection(number);
    c.packet(&format!("ConnectRequest in {tunnel}: the sender's QP is 0x{number}1"),
        (there, send(3, &request)));
    c.packet(&format!("ConnectReply in {tunnel}: the receiver's QP is 0x{number}2"),
        (back, send(2, &reply)));
    c.packet(&format!("ReadyToUse in {tunnel}"), (there, send(4, &ready)));
    c.packet(&format!("DisconnectRequest in {tunnel}"), (there, send(5, &release)));
    c.packet(&format!("DisconnectReply in {tunnel}"), (back, send(3, &released)));
}

/// Returns the MADs by which the connection of this number, from 1, is set up and taken down. The
/// number determines the identifiers and QPs of both sides.
fn connection(number: u32) -> [[u8; MAD_LEN]; 5] {
    let (here, peer) = (0x0A00_0000 + number, 0x0B00_0000 + number);
    let (sender_qp, receiver_qp) = (0x10 * number + 1, 0x10 * number + 2);
    let request = ConnectRequestRepr::roce((SENDER.into(), 40_000), (RECEIVER.into(), 18_515));
    let messages: [MessageRepr; 5] = [
        ConnectRequestRepr { local_comm_id: here, local_qpn: sender_qp, starting_psn: 0x100,
            ..composed(request) }.into(),
        ConnectReplyRepr { local_comm_id: peer, remote_comm_id: here, local_qpn: receiver_qp,
            starting_psn: 0x700, ..Default::default() }.into(),
        ReadyToUseRepr { local_comm_id: here, remote_comm_id: peer, ..Default::default() }.into(),
        DisconnectRequestRepr { local_comm_id: here, remote_comm_id: peer,
            remote_qpn: receiver_qp, ..Default::default() }.into(),
        DisconnectReplyRepr { local_comm_id: peer, remote_comm_id: here,
            ..Default::default() }.into(),
    ];
    messages.map(|message| composed(CmRepr::new(0x0000_1234_5678_9ABC, message).to_bytes()))
}

/// Returns a MAD between the general services QPs, from its BTH on.
fn send(psn: u32, mad: &[u8]) -> [Part<'_>; 4] {
    let deth = Part::Deth(Deth { qkey: GSI_Q_KEY, source_qp: Qp::GSI });
    [bth(Opcode::UD_SEND_ONLY, 1, psn), deth, Bytes(mad), ICRC]
}

fn neighbours(c: &mut Composer<'_>) {
    let link = LinkType::Ethernet;
    let pause = changed(&[0; 46], 1, 1);
    let pause = changed(&changed(&pause, 2, 0xFF), 3, 0xFF);
    c.frame(link, "PAUSE: all classes stop", (PFC, of_type(ETHERTYPE_MAC_CONTROL, &pause)));
    let cnm = |ether_type: u16, packet: &[u8]| {
        // Feedback 21, congestion point 3 of a bridge; the queue is 1,024 octets too long and has
        // grown by 512; priority 3; the frame's destination and the length of its MSDU.
        let mut cnm = vec![
            0, 21, 2, 0, 0, 0, 0, 7, 0, 3, 0xFF, 0xF0, 0, 8, 0x60, 0, 2, 0, 0, 0, 0, 2, 0, 64,
        ];
        cnm.extend(ether_type.to_be_bytes());
        cnm.extend(&packet[..MAX_MSDU_LEN - 2]);
        cnm
    };
    let about6 = cnm(ethernet_types::IPV6, &c.octets((DATA6, data(0x500))));
    c.frame(link, "A bridge's notification to a frame's source (IEEE 802.1Qau), in a CN-TAG",
        (ETHERNET, of_type(ethernet_types::CN_TAG, &[0, 7, 0x22, 0xE7]), Bytes(&about6)));
    let about4 = cnm(ethernet_types::IPV4, &c.octets((DATA4, data(0x500))));
    c.frame(link, "The same without that tag, about IPv4",
        (ETHERNET, of_type(ethernet_types::CNM, &about4)));
    let csig = c.profile.csig_ether_type;
    c.frame(link, "Data with a CSIG tag: share of bandwidth left, signal 0x17 of locator 5",
        (ETHERNET, of_type(csig, &[0x2B, 0x85, 0x86, 0xDD]), DATA6, data(0x500)));
}

/// Returns octets announced by that EtherType.
const fn of_type(ether_type: u16, bytes: &[u8]) -> Part<'_> {
    Part::Payload { ether_type, protocol: next_header::NONE, bytes }
}

fn pfc_frames(c: &mut Composer<'_>) {
    let link = LinkType::Ethernet;
    let stop = pfc(0x08, [0, 0, 0, 0xFFFF, 0, 0, 0, 0]);
    c.frame(link, "Class 3 stops for the longest time", (PFC, stop));
    c.frame(link, "Class 3 may send again", (PFC, pfc(0x08, [0; 8])));
    c.frame(link, "Classes 3 and 4", (PFC, pfc(0x18, [0, 0, 0, 100, 200, 0, 0, 0])));
    c.frame(link, "Every class", (PFC, pfc(0xFF, [0xFFFF; 8])));
}

fn trimmed(c: &mut Composer<'_>) {
    /// Octets of IP that are left.
    const LEFT: usize = 128;
    const DATA: [u8; 1024] = [0x5A; 1024];
    let reth = Part::Reth(Reth { address: 0x7F00_0000_1000, rkey: 0x1234, length: 1024 });
    let write = [DATA_UDP, bth(Opcode::RC_WRITE_ONLY, 0x12, 0x600), reth, Bytes(&DATA), ICRC];
    let middle = [DATA_UDP, bth(Opcode::RC_WRITE_MIDDLE, 0x12, 0x601), Bytes(&DATA), ICRC];
    let cut = |mut octets: Vec<u8>| {
        octets.truncate(LEFT);
        octets
    };
    let trimmed = |traffic_class| Part::v6(SENDER, RECEIVER, traffic_class);
    c.packet("RDMA WRITE Only with 1,024 octets of data", (DATA6, write));
    let left = cut(c.octets((trimmed(TRIMMED), write)));
    c.frame(LinkType::Ethernet, "Trimmed to 128 octets: IP and UDP state the length that it had",
        (ETHERNET, of_type(ethernet_types::IPV6, &left)));
    let mut shrunk = left;
    shrunk[4..6].copy_from_slice(&(LEFT as u16 - 40).to_be_bytes());
    shrunk[44..46].copy_from_slice(&(LEFT as u16 - 40).to_be_bytes());
    c.frame(LinkType::Ethernet, "Trimmed, IP and UDP state what is left: the RETH shows it",
        (ETHERNET, of_type(ethernet_types::IPV6, &shrunk)));
    let left = cut(c.octets((Part::v4(SENDER4, RECEIVER4, TRIMMED), middle)));
    c.frame(LinkType::Ethernet, "The middle of a WRITE trimmed, over IPv4",
        (ETHERNET, of_type(ethernet_types::IPV4, &left)));
    let left = cut(c.octets((Part::v4(RECEIVER4, SENDER4, TRIMMED), middle)));
    c.frame(LinkType::Ethernet, "The same sent back to its source, by a switch on the path",
        (ETHERNET, of_type(ethernet_types::IPV4, &left)));
    c.packet("The sender retransmits", (DATA6, write));
}

fn cut(c: &mut Composer<'_>) {
    c.packet("Fast CNP cut in its CNP: the option is complete", FAST_CNP).cut(96);
    c.packet("Cut after the UDP header", FAST_CNP).cut(86);
    c.packet("Cut in the option", FAST_CNP).cut(64);
    c.packet("Cut in the IPv6 header", FAST_CNP).cut(40);
    c.packet("Data cut in its payload", (Part::v6(SWITCH, SENDER, DATA), data(0x600))).cut(100);
    let quoted = c.octets((DATA6, data(0x400)));
    c.packet("Proxy notification cut in the quoted packet",
        (Part::v6(SWITCH, PROXY, DATA), PROXY_UDP, proxy_cn(5, &quoted))).cut(140);
    // A Fast CNP in two fragments: reassembled by Wireshark, said to be a fragment by tools that
    // look at one packet.
    let whole = c.octets(FAST_CNP);
    let options = |bytes| carried(next_header::DESTINATION_OPTIONS, bytes);
    c.packet("First fragment of a Fast CNP",
        (FAST, Part::Fragment { offset: 0, more: true, id: 0xC0FFEE }, options(&whole[40..80])));
    c.packet("Last fragment of a Fast CNP",
        (FAST, Part::Fragment { offset: 40, more: false, id: 0xC0FFEE }, options(&whole[80..])));
    c.packet("An atomic fragment (RFC 6946) is a whole packet",
        (FAST, Part::Fragment { offset: 0, more: false, id: 1 }, OPTION_1, RECEIVER_CNP));
}
