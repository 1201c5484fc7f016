//! Fast CNPs of both options, plain and in tunnels, and what an unaware sender answers.

use super::scene::{
    CE_CLASS, Capture, DATA_CLASS, EGRESS, ETHERNET, FAST_V6, HOP_TRACE, INGRESS, PATH, RECEIVER,
    RECEIVER_QP, RECEIVER4, SENDER, SENDER_QP, SENDER4, SWITCH, Scene, cnp, data, ioam, trace, v4,
    v6,
};
use fcn_wire::Result;
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::ioam::{NodeValues, OptType, TraceType, fill_preallocated};
use fcn_wire::{LinkType, Profile};

/// Option 1 about the flow.
pub const OPTION1: OptionPart<'static> = OptionPart::FastCnp(FastCnpRepr::Option1 {
    original_destination: RECEIVER,
});

/// Option 2 about the flow.
pub const fn option2(opt_type: OptType, trace: &[u8]) -> OptionPart<'_> {
    OptionPart::FastCnp(FastCnpRepr::Option2 {
        reserved: 0,
        opt_type,
        trace,
        original_destination: RECEIVER,
    })
}

/// The packets of a Fast CNP with option 1 from the switch, from the IPv6 header on.
pub fn fast_cnp1() -> Vec<Part<'static>> {
    [
        &[FAST_V6, Part::DestinationOptions(&[OPTION1])],
        &cnp(RECEIVER_QP)[..],
    ]
    .concat()
}

pub fn captures() -> Result<Vec<Capture>> {
    Ok(vec![option_1()?, option_2()?, tunnels()?, unaware()?])
}

fn option_1() -> Result<Capture> {
    let mut scene = Scene::new(
        "fast-cnp-option1",
        "Fast CNP with option 1 from a switch and from a receiver; the four readings of the ICRC",
    );
    scene.say(
        "RDMA WRITE to QP 0x12 meets congestion",
        &[&[v6(SENDER, RECEIVER, DATA_CLASS)], &data(0x200)[..]].concat(),
    )?;
    scene.say("Fast CNP from the switch: DestQP is the receiver's QP 0x12, option 1 says at which receiver", &fast_cnp1())?;
    let receiver = [
        v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS),
        Part::DestinationOptions(&[OPTION1]),
    ];
    scene.say(
        "Fast CNP from the receiver itself: source and original destination are equal",
        &[&receiver, &cnp(RECEIVER_QP)[..]].concat(),
    )?;
    for reading in [Reading::Skipped, Reading::Rewritten, Reading::SoftRoce] {
        let [udp, body, _] = cnp(RECEIVER_QP);
        let parts = [
            FAST_V6,
            Part::DestinationOptions(&[OPTION1]),
            udp,
            body,
            Part::Icrc(Policy::Compute(reading)),
        ];
        scene.say(
            &format!("ICRC by reading {reading}: {}", reading.describe()),
            &parts,
        )?;
    }
    let [udp, body, _] = cnp(RECEIVER_QP);
    let hop_limit = [OptionPart::Raw(0x3E, (1, 0), &[1, 2, 3, 4])];
    let parts = [
        FAST_V6,
        Part::HopByHop(&hop_limit),
        Part::DestinationOptions(&[OPTION1]),
        udp,
        body,
        Part::Icrc(Policy::default()),
    ];
    scene.say("An experimental Hop-by-Hop option in front, whose data may change: the ICRC takes them as ones", &parts)?;
    scene.say(
        "The sender's other flow still sends",
        &[&[v6(SENDER, RECEIVER, CE_CLASS)], &data(0x201)[..]].concat(),
    )?;
    Ok(scene.done())
}

/// A Fast CNP from the switch with `options`.
fn fast(scene: &mut Scene, comment: &str, options: &[OptionPart<'_>]) -> Result<()> {
    scene.say(
        comment,
        &[
            &[FAST_V6, Part::DestinationOptions(options)],
            &cnp(RECEIVER_QP)[..],
        ]
        .concat(),
    )?;
    Ok(())
}

fn option_2() -> Result<Capture> {
    let mut scene = Scene::new(
        "fast-cnp-option2",
        "Data with IOAM traces growing hop by hop; Fast CNP with option 2, pre-allocated and incremental, every data field",
    );
    let pre = OptType::Preallocated;
    let mut growing = trace(pre, HOP_TRACE, 3 * HOP_TRACE.node_len() * 4, &[])?;
    for (passed, node) in PATH.iter().enumerate() {
        let hop = [OptionPart::Ioam(ioam(pre, &growing))];
        let parts = [
            &[v6(SENDER, RECEIVER, DATA_CLASS), Part::HopByHop(&hop)],
            &data(0x300)[..],
        ]
        .concat();
        scene.say(
            &format!("Data with a pre-allocated trace, {passed} of 3 nodes filled"),
            &parts,
        )?;
        fill_preallocated(&mut growing, node)?;
    }
    let full = [option2(pre, &growing)];
    fast(
        &mut scene,
        "Fast CNP with option 2: node 0x301, passed last, stands first and has the deepest queue",
        &full,
    )?;

    let incremental = OptType::Incremental;
    let mut bytes = trace(incremental, HOP_TRACE, 0, &PATH[..2])?;
    bytes[3] |= 5; // RemainingLen: room for one node more.
    let hop = [OptionPart::Ioam(ioam(incremental, &bytes))];
    scene.say(
        "Data with an incremental trace of two nodes",
        &[
            &[v6(SENDER, RECEIVER, DATA_CLASS), Part::HopByHop(&hop)],
            &data(0x301)[..],
        ]
        .concat(),
    )?;
    fast(
        &mut scene,
        "Fast CNP with that incremental trace",
        &[option2(incremental, &bytes)],
    )?;

    let opaque = NodeValues {
        opaque: (0x00_2A_01, b"8 octets"),
        ..PATH[2]
    };
    let all = TraceType::from_bits(0xFF_F002);
    let bytes = trace(incremental, all, 0, &[PATH[1], opaque])?;
    fast(
        &mut scene,
        "Every defined data field, opaque state snapshots included (one empty, one of 8 octets)",
        &[option2(incremental, &bytes)],
    )?;

    let wide = TraceType::default().with(8).with(9).with(10);
    let bytes = trace(pre, wide, 48, &PATH[2..])?;
    fast(
        &mut scene,
        "Wide fields, room for two nodes more",
        &[option2(pre, &bytes)],
    )?;

    let mut overflowed = trace(pre, HOP_TRACE, 0, &PATH[..1])?;
    fill_preallocated(&mut overflowed, &PATH[1])?;
    fast(
        &mut scene,
        "Overflow: the second node found no room",
        &[option2(pre, &overflowed)],
    )?;

    let none = trace(pre, HOP_TRACE, 0, &[])?;
    fast(&mut scene, "A trace without a node", &[option2(pre, &none)])?;

    let undefined = trace(incremental, HOP_TRACE.with(12), 0, &PATH[..1])?;
    fast(
        &mut scene,
        "Undefined bit 12 of the trace type: 4 octets that nobody knows",
        &[option2(incremental, &undefined)],
    )?;
    let receiver = [
        v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS),
        Part::DestinationOptions(&full),
    ];
    scene.say(
        "The same trace from the receiver",
        &[&receiver, &cnp(RECEIVER_QP)[..]].concat(),
    )?;
    Ok(scene.done())
}

fn tunnels() -> Result<Capture> {
    let mut scene = Scene::new(
        "fast-cnp-tunnels",
        "Fast CNPs in VLAN tags, MPLS, VXLAN over IPv4 and IPv6, SRv6 with and without a routing header, and raw IP",
    );
    let tag = |id, service| Part::Vlan {
        id,
        priority: 6,
        service,
    };
    let label = |label| Part::Mpls {
        label,
        traffic_class: 6,
        ttl: 62,
    };
    let outer = Part::Ipv6 {
        source: EGRESS,
        destination: INGRESS,
        traffic_class: 0xC0,
        flow_label: 0x12345,
        hop_limit: 60,
    };
    let outer4 = v4(RECEIVER4, SENDER4, 0xC0);
    let vxlan = Part::Udp {
        source: 52_000,
        destination: 4789,
        checksum: UdpChecksum::Zero,
    };
    let segments = [INGRESS, SWITCH];
    let routing = Part::SegmentRouting {
        left: 1,
        segments: &segments,
    };
    for (comment, tunnel) in [
        ("One 802.1Q tag", &[tag(30, false)][..]),
        ("802.1ad and 802.1Q tags", &[tag(200, true), tag(30, false)]),
        ("Two MPLS labels", &[label(100_016), label(16)]),
        (
            "VXLAN over IPv4",
            &[outer4, vxlan, Part::Vxlan { vni: 5_000 }, ETHERNET],
        ),
        (
            "VXLAN over IPv6, a tag inside",
            &[
                outer,
                vxlan,
                Part::Vxlan { vni: 5_000 },
                ETHERNET,
                tag(30, false),
            ],
        ),
        ("SRv6 with a segment routing header", &[outer, routing]),
        ("SRv6 without one: IPv6 in IPv6", &[outer]),
        (
            "SRv6 carrying VXLAN",
            &[
                outer,
                routing,
                outer4,
                vxlan,
                Part::Vxlan { vni: 7 },
                ETHERNET,
            ],
        ),
    ] {
        scene.say(comment, &[tunnel, &fast_cnp1()].concat())?;
    }
    let bytes = packet(&fast_cnp1(), &Profile::DEFAULT)?;
    let len = bytes.len();
    scene.octets(
        "Raw IP, without a link layer",
        bytes.clone(),
        len,
        LinkType::RawIp,
    );
    let cooked = [
        &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xDD],
        &bytes[..],
    ]
    .concat();
    let len = cooked.len();
    scene.octets(
        "Linux cooked capture (the interface `any`)",
        cooked,
        len,
        LinkType::LinuxCooked,
    );
    Ok(scene.done())
}

/// ICMPv6 Parameter Problem, code 2, about the option at octet 42 of the quoted packet.
fn unaware() -> Result<Capture> {
    let mut scene = Scene::new(
        "fast-cnp-unaware-sender",
        "A sender that does not know the option: action bits 10 make it answer the switch with ICMPv6 Parameter Problem",
    );
    let fast = packet(&fast_cnp1(), &Profile::DEFAULT)?;
    scene.say(
        "Fast CNP to a sender that does not know the option",
        &fast_cnp1(),
    )?;
    let mut message = [&[4, 2, 0, 0, 0, 0, 0, 42], &fast[..]].concat();
    let checksum = icmpv6_checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let answer = Part::Payload {
        ether_type: 0,
        protocol: 58,
        bytes: &message,
    };
    scene.say(
        "The answer quotes the Fast CNP and points at its option type",
        &[v6(SENDER, SWITCH, 0), answer],
    )?;
    let mut plain = cnp(SENDER_QP);
    plain[1] = Part::Cnp(CnpRepr::new(SENDER_QP));
    scene.say(
        "What it does understand",
        &[&[v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS)], &plain[..]].concat(),
    )?;
    Ok(scene.done())
}

/// The checksum of `message` from the sender to the switch (RFC 4443 section 2.3), its own field zero.
fn icmpv6_checksum(message: &[u8]) -> u16 {
    let pseudo = [
        &SENDER.octets()[..],
        &SWITCH.octets(),
        &(message.len() as u32).to_be_bytes(),
        &[0, 0, 0, 58],
        message,
    ]
    .concat();
    let sum: u32 = pseudo
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}
