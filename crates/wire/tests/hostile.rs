//! Bad input, from the Ethernet header down: frames cut at every octet, wrong lengths, options past
//! their header, endless tunnels, and every octet of a valid frame changed.

mod frame_support;
#[path = "../fuzz/src/targets.rs"]
#[allow(dead_code, reason = "two of the targets are used here")]
mod targets;

use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::frame::{Datagram, MAX_LAYERS, MAX_TUNNELS, Upper};
use fcn_wire::icrc::Verdict;
use fcn_wire::ioam::OptType;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{
    End, Error, Findings, Frame, IcrcCheck, Kind, Layer, LinkType, Notification, Profile, Rule,
    Trimming,
};
use frame_support::{
    MAC, SENDER, SWITCH, Sample, build, fast_cnp, isis_frame, pfc_frame, samples, trace, v6,
    wrappings,
};

fn read(bytes: &[u8], wire_len: usize) -> Frame<'_> {
    Frame::parse(bytes, wire_len, LinkType::Ethernet, &Profile::DEFAULT)
}

fn findings(frame: &Frame<'_>) -> Findings {
    let mut findings = Findings::new();
    frame.check(IcrcCheck::On, &mut findings);
    findings
}

fn sample(name: &str) -> Sample {
    let found = samples().into_iter().find(|sample| sample.name == name);
    found.unwrap_or_else(|| panic!("there is no sample {name}"))
}

fn wrapping(name: &str) -> Vec<Part<'static>> {
    let found = wrappings().into_iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("there is no wrapping {name}"))
        .1
}

/// Returns every message in every possible wrapping, with a name for each.
fn frames() -> Vec<(String, Option<Kind>, Vec<u8>)> {
    let mut all = Vec::new();
    for (outer, parts) in wrappings() {
        for sample in samples() {
            let name = format!("{} behind {outer}", sample.name);
            all.push((name, sample.kind, sample.wrapped_in(&parts)));
        }
    }
    let tag = |id| Part::Vlan {
        id,
        priority: 0,
        service: false,
    };
    all.push(("isis".to_owned(), None, isis_frame(&[])));
    all.push(("isis behind vlan".to_owned(), None, isis_frame(&[tag(3)])));
    all
}

#[test]
fn every_message_is_found_in_every_wrapping() {
    for (name, kind, bytes) in frames() {
        let frame = read(&bytes, bytes.len());
        assert_eq!(frame.end(), End::Complete, "{name}");
        assert!(
            findings(&frame).is_empty(),
            "{name}: {:?}",
            findings(&frame)
        );
        let notification = Notification::from_frame(&frame);
        assert_eq!(notification.map(|n| n.kind), kind, "{name}");
        let read = match name.split(' ').next().unwrap() {
            "isis" => matches!(frame.upper(), Upper::IsIs(..)),
            "ospf2" | "ospf3" => matches!(frame.upper(), Upper::Ospf(..)),
            "bgp" => matches!(frame.upper(), Upper::Bgp(..)),
            _ => frame.datagram().is_some_and(Datagram::is_whole),
        };
        assert!(read, "{name}: {:?}", frame.upper());
    }
}

#[test]
fn a_truncated_capture_is_cut_not_malformed() {
    for (name, _, bytes) in frames() {
        for len in 0..bytes.len() {
            let frame = read(&bytes[..len], bytes.len());
            let End::Cut { need, have, .. } = frame.end() else {
                panic!("{name} cut to {len}: {:?}", frame.end());
            };
            assert!(have == len && need > len && need <= bytes.len());
            assert!(frame.is_cut(), "{name} cut to {len}");
            let found = findings(&frame);
            assert!(found.is_empty(), "{name} cut to {len}: {found:?}");
            assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
        }
    }
    // After the pause times of PFC there is only padding.
    let bytes = pfc_frame();
    for len in 0..bytes.len() {
        let frame = read(&bytes[..len], bytes.len());
        assert_eq!(
            matches!(frame.end(), End::Cut { .. }),
            len < 14 + 20,
            "{len}"
        );
        assert!(findings(&frame).is_empty());
    }
}

#[test]
fn a_short_frame_is_malformed_with_an_offset() {
    for (name, kind, bytes) in frames() {
        for len in 0..bytes.len() {
            let short = &bytes[..len];
            let frame = read(short, len);
            // So does a switch that trims the packet.
            if frame.trimming() == Some(Trimming::Lengths) {
                assert!(kind.is_none() && frame.is_cut() && findings(&frame).is_empty());
                assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
                assert!(Notification::from_frame(&frame).is_none());
                continue;
            }
            let End::Malformed(e) = frame.end() else {
                panic!("{name} ends at {len}: {:?}", frame.end());
            };
            assert!(e.offset <= len, "{name} ends at {len}: {e}");
            assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
            // Everything except the quotation at the end of a proxy notification must be complete.
            let notification = Notification::from_frame(&frame);
            assert!(
                notification.is_none_or(|n| n.kind == Kind::ProxyCn && kind == Some(n.kind)),
                "{name} ends at {len}"
            );
        }
    }
    let bytes = sample("cnp_v6").wrapped_in(&[]);
    for len in 0..bytes.len() {
        let want = match len {
            0..14 => Error::short(Layer::Ethernet, 14, len),
            14..54 => Error::short(Layer::Ipv6, 40, len - 14).at(14),
            54..62 => Error::short(Layer::Udp, 8, len - 54).at(54),
            _ => Error::length(Layer::Ipv6, 18, "payload length", 40, 0, len - 54),
        };
        assert_eq!(read(&bytes[..len], len).end(), End::Malformed(want));
    }
    let bytes = pfc_frame();
    let frame = read(&bytes[..33], 33);
    let found = findings(&frame);
    assert_eq!(found.as_slice().len(), 1);
    let one = found.as_slice()[0];
    assert_eq!((one.rule, one.offset), (Rule::PfcMalformed, 14));
}

/// Expected result of changing a field.
enum Want {
    /// The walk completes, with no findings except that of the ICRC.
    Fine,
    /// The frame is malformed with this error.
    Malformed(Error),
    /// The walk completes, and this rule is broken at this octet.
    Finding(Rule, usize),
    /// This rule is broken at this octet; the following octets are misinterpreted and may be
    /// malformed.
    Misread(Rule, usize),
    /// The frame is malformed with this error and breaks this rule.
    Both(Error, Rule, usize),
}
use Want::{Both, Finding, Fine, Malformed, Misread};

/// Sets `field` (of one or two octets) of `bytes` at `at` to each value, and compares the results.
fn expect(bytes: &[u8], at: usize, width: usize, cases: &[(u16, Want)]) {
    for (value, want) in cases {
        let mut changed = bytes.to_vec();
        match width {
            1 => changed[at] = u8::try_from(*value).unwrap(),
            _ => changed[at..at + 2].copy_from_slice(&value.to_be_bytes()),
        }
        let frame = read(&changed, changed.len());
        let found = findings(&frame);
        let has = |rule, offset| {
            let mut all = found.as_slice().iter();
            all.any(|finding| (finding.rule, finding.offset) == (rule, offset))
        };
        let note = format!("{value} at octet {at}: {:?}, {found:?}", frame.end());
        match *want {
            Fine => {
                assert_eq!(frame.end(), End::Complete, "{note}");
                let icrc = found.into_iter().all(|f| f.rule.is_icrc());
                assert!(icrc, "{note}");
            }
            Malformed(e) => assert_eq!(frame.end(), End::Malformed(e), "{note}"),
            Finding(rule, offset) => {
                assert_eq!(frame.end(), End::Complete, "{note}");
                assert!(has(rule, offset), "{note}");
            }
            Misread(rule, offset) => assert!(has(rule, offset), "{note}"),
            Both(e, rule, offset) => {
                assert_eq!(frame.end(), End::Malformed(e), "{note}");
                assert!(has(rule, offset), "{note}");
            }
        }
    }
}

#[test]
fn wrong_ipv6_lengths_are_reported() {
    // Ethernet to 14, IPv6 to 54, Destination Options to 78, UDP to 86, CNP to 118.
    let bytes = sample("fast_cnp_1").wrapped_in(&[]);
    assert_eq!(bytes.len(), 118);
    let options = Layer::DestinationOptions;
    let payload = |value, max| Error::length(Layer::Ipv6, 18, "payload length", value, 0, max);
    expect(
        &bytes,
        18,
        2,
        &[
            // Segmentation left to the sender's hardware.
            (0, Fine),
            (7, Malformed(Error::short(options, 8, 7).at(54))),
            (23, Malformed(Error::short(options, 24, 23).at(54))),
            (24, Malformed(Error::short(Layer::Udp, 8, 0).at(78))),
            (31, Malformed(Error::short(Layer::Udp, 8, 7).at(78))),
            (
                63,
                Both(
                    Error::length(Layer::Udp, 82, "UDP length", 40, 8, 39),
                    Rule::CnpMalformed,
                    86,
                ),
            ),
            (64, Fine),
            (65, Malformed(payload(65, 64))),
            (255, Malformed(payload(255, 64))),
            (65535, Malformed(payload(65535, 64))),
        ],
    );
    let option =
        |at, value, max| Error::length(Layer::Ipv6Option, at, "Opt Data Len", value, 0, max);
    let fast = Rule::FastCnpMalformed;
    expect(
        &bytes,
        55,
        1,
        &[
            (0, Both(option(57, 16, 4), fast, 57)),
            (1, Both(option(57, 16, 12), fast, 57)),
            (2, Fine),
            // The UDP header read as options: Pad1, Pad1, then type 0x12 with length 0xB7.
            (3, Malformed(option(81, 0xB7, 4))),
            (8, Malformed(Error::short(options, 72, 64).at(54))),
            (255, Malformed(Error::short(options, 2048, 64).at(54))),
        ],
    );
    expect(
        &bytes,
        57,
        1,
        &[
            (0, Finding(Rule::FastCnpLength1, 57)),
            (15, Finding(Rule::FastCnpLength1, 57)),
            (17, Finding(Rule::FastCnpLength1, 57)),
            (20, Finding(Rule::FastCnpLength1, 57)),
            (21, Both(option(57, 21, 20), fast, 57)),
            (255, Both(option(57, 255, 20), fast, 57)),
        ],
    );
    let udp = |value, max| Error::length(Layer::Udp, 82, "UDP length", value, 8, max);
    expect(
        &bytes,
        82,
        2,
        &[
            (0, Fine),
            (1, Malformed(udp(1, 40))),
            (7, Malformed(udp(7, 40))),
            // An empty datagram is not attributed to RoCEv2.
            (8, Finding(Rule::PacketLength, 82)),
            (8 + 11, Finding(Rule::RoceMalformed, 86)),
            (39, Finding(Rule::CnpMalformed, 86)),
            (41, Malformed(udp(41, 40))),
            (255, Malformed(udp(255, 40))),
            (65535, Malformed(udp(65535, 40))),
        ],
    );
}

#[test]
fn wrong_ipv4_lengths_are_reported() {
    // Ethernet to 14, IPv4 to 34, UDP to 42, CNP to 74.
    let bytes = sample("cnp_v4").wrapped_in(&[]);
    assert_eq!(bytes.len(), 74);
    let total = |value, min| Error::length(Layer::Ipv4, 16, "total length", value, min, 60);
    let udp = |at, value, max| Error::length(Layer::Udp, at, "UDP length", value, 8, max);
    expect(
        &bytes,
        16,
        2,
        &[
            (0, Fine),
            (1, Malformed(total(1, 20))),
            (19, Malformed(total(19, 20))),
            (20, Malformed(Error::short(Layer::Udp, 8, 0).at(34))),
            (59, Both(udp(38, 40, 39), Rule::CnpMalformed, 42)),
            (61, Malformed(total(61, 20))),
            (255, Malformed(total(255, 20))),
            (65535, Malformed(total(65535, 20))),
        ],
    );
    let ihl = |value| Error::value(Layer::Ipv4, 14, "IHL", value, "5 to 15");
    let version = |value| Error::value(Layer::Ipv4, 14, "version", value, "4");
    expect(
        &bytes,
        14,
        1,
        &[
            (0x40, Malformed(ihl(0))),
            (0x44, Malformed(ihl(4))),
            // UDP's second half and the BTH read as UDP.
            (0x46, Malformed(udp(42, 0x8100, 36))),
            (0x4F, Malformed(Error::short(Layer::Udp, 8, 0).at(74))),
            (0x55, Malformed(version(5))),
            (0xFF, Malformed(version(15))),
        ],
    );
}

#[test]
fn wrong_lengths_of_other_headers_are_reported() {
    // IEEE 802.3: the length field replaces the EtherType, LLC begins at 14, IS-IS at 17.
    let bytes = isis_frame(&[]);
    let room = bytes.len() - 14;
    let length = |value| Error::length(Layer::Ethernet, 12, "length", value, 3, room);
    assert!(room < 255);
    expect(
        &bytes,
        12,
        2,
        &[
            (0, Malformed(Error::short(Layer::Llc, 3, 0).at(14))),
            (2, Malformed(Error::short(Layer::Llc, 3, 2).at(14))),
            (3, Fine),
            (room as u16 - 1, Finding(Rule::PncMalformed, 25)),
            (room as u16 + 1, Malformed(length(room + 1))),
            (255, Malformed(length(255))),
            (1500, Malformed(length(1500))),
        ],
    );
    // Its PDU length, and the length of its first TLV.
    expect(
        &bytes,
        25,
        2,
        &[
            (0, Finding(Rule::PncMalformed, 25)),
            (26, Finding(Rule::PncMalformed, 25)),
            (255, Finding(Rule::PncMalformed, 25)),
            (65535, Finding(Rule::PncMalformed, 25)),
        ],
    );
    // The flags cannot be found then, and defects in a message without them are out of scope.
    expect(&bytes, 45, 1, &[(255, Fine)]);

    let bytes = sample("ospf2").wrapped_in(&[]);
    let lies = [0, 27, 255, 65535].map(|value| (value, Finding(Rule::PncMalformed, 36)));
    expect(&bytes, 36, 2, &lies);
    let bytes = sample("ospf3").wrapped_in(&[]);
    let lies = [0, 19, 255, 65535].map(|value| (value, Finding(Rule::PncMalformed, 56)));
    expect(&bytes, 56, 2, &lies);

    // BGP: TCP begins at 54, the message at 74, its length follows 16 octets of ones.
    let bytes = sample("bgp").wrapped_in(&[]);
    let offset = |value| Error::value(Layer::Tcp, 66, "data offset", value, "5 to 15");
    expect(
        &bytes,
        66,
        1,
        &[(0, Malformed(offset(0))), (0x4F, Malformed(offset(4)))],
    );
    // No attribute can be found in it.
    expect(&bytes, 90, 2, &[(0, Fine), (18, Fine)]);
    let few = build(&[
        MAC,
        v6(SWITCH, SENDER),
        Part::Payload {
            ether_type: 0,
            protocol: 6,
            bytes: &bytes[54..94],
        },
    ]);
    let e = Error::short(Layer::Tcp, 60, 40).at(54);
    expect(&few, 66, 1, &[(0xF0, Malformed(e))]);

    // Segment routing header at 54, followed by an Authentication header.
    let bytes = sample("cnp_v6").wrapped_in(&wrapping("srv6"));
    let room = bytes.len() - 54;
    let frame = read(&bytes, bytes.len());
    assert_eq!(frame.spans()[2].layer, Layer::Routing);
    let e = Error::short(Layer::Routing, 2048, room).at(54);
    expect(&bytes, 55, 1, &[(255, Malformed(e))]);
    let bytes = sample("cnp_v6").wrapped_in(&wrapping("extension_headers"));
    let frame = read(&bytes, bytes.len());
    let span = |layer| *frame.spans().iter().find(|s| s.layer == layer).unwrap();
    let ah = span(Layer::Authentication);
    let e = Error::short(ah.layer, 1028, bytes.len() - ah.start).at(ah.start);
    expect(&bytes, ah.start + 1, 1, &[(255, Malformed(e))]);

    // VXLAN whose header does not fit into its datagram.
    let bytes = sample("cnp_v6").wrapped_in(&wrapping("vxlan_v6"));
    let e = Error::short(Layer::Vxlan, 8, 7).at(62);
    expect(&bytes, 58, 2, &[(15, Malformed(e))]);
}

#[test]
fn wrong_message_lengths_are_reported() {
    // IPv6 to 54, UDP to 62; the notification there has an IPv6 five-tuple before 40 octets.
    let bytes = sample("proxy_cn_v6").wrapped_in(&[]);
    expect(
        &bytes,
        58,
        2,
        &[
            // Not recognisable as a notification.
            (8, Fine),
            (8 + 39, Finding(Rule::ProxyCnMalformed, 62)),
            (8 + 40, Finding(Rule::ProxyCnInvokingNone, 62 + 40)),
            (8 + 41, Finding(Rule::ProxyCnInvokingShort, 62 + 40)),
        ],
    );
    let bytes = sample("proxy_cn_v4").wrapped_in(&[]);
    expect(
        &bytes,
        38,
        2,
        &[
            (8, Fine),
            (8 + 15, Finding(Rule::ProxyCnMalformed, 42)),
            (8 + 16, Finding(Rule::ProxyCnInvokingNone, 42 + 16)),
            (8 + 17, Finding(Rule::ProxyCnInvokingShort, 42 + 16)),
        ],
    );
    let bytes = sample("wan_fcn").wrapped_in(&[]);
    expect(
        &bytes,
        58,
        2,
        &[(8, Fine), (11, Finding(Rule::WanFcnMalformed, 62))],
    );
    let long = build(&[
        MAC,
        v6(SWITCH, SENDER),
        frame_support::udp(1, 1022),
        Part::Bytes(&[0x12, 0x34, 0x56, 0, 1]),
    ]);
    expect(
        &long,
        58,
        2,
        &[
            (13, Finding(Rule::WanFcnLength, 66)),
            // UDP ends before its packet does.
            (12, Finding(Rule::PacketLength, 58)),
        ],
    );
}

#[test]
fn truncated_proxy_notifications_are_checked_in_front() {
    let mut bytes = sample("proxy_cn_v6").wrapped_in(&[]);
    let whole = bytes.len();
    let more = 1_300_u16;
    for length_at in [14 + 4, 54 + 4] {
        let length = u16::from_be_bytes([bytes[length_at], bytes[length_at + 1]]) + more;
        bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
    let frame = read(&bytes, whole + usize::from(more));
    assert!(matches!(frame.end(), End::Cut { .. }));
    let found: Vec<Rule> = findings(&frame).into_iter().map(|f| f.rule).collect();
    assert_eq!(found, [Rule::ProxyCnTooLong]);
}

#[test]
fn contradictory_ioam_traces_are_reported() {
    // Both carry their trace at the same offsets: the header at 54, the option at 58, the trace at
    // 62.
    let in_data = sample("data_v6_ioam_proxy_address").wrapped_in(&[]);
    let in_fast = sample("fast_cnp_2_preallocated").wrapped_in(&[]);
    for bytes in [&in_data, &in_fast] {
        let lengths = u16::from_be_bytes([bytes[64], bytes[65]]);
        assert_eq!((lengths >> 11, lengths & 0x7F), (3, 3));
        let node_len = |units: u16| (units << 11) | 3;
        expect(
            bytes,
            64,
            2,
            &[
                (node_len(0), Finding(Rule::IoamNodeLenZero, 64)),
                (node_len(2), Finding(Rule::IoamNodeLen, 64)),
                (node_len(31), Finding(Rule::IoamNodeLen, 64)),
                // RemainingLen: nothing free, a node cut in two, all free, more than the list.
                (3 << 11, Fine),
                (3 << 11 | 4, Finding(Rule::IoamRagged, 62 + 8 + 16 + 12)),
                (3 << 11 | 9, Fine),
                (3 << 11 | 10, Finding(Rule::IoamRemaining, 64)),
                (3 << 11 | 127, Finding(Rule::IoamRemaining, 64)),
                (0xFFFF, Finding(Rule::IoamRemaining, 64)),
            ],
        );
        // Undefined bits 12 to 21 need four octets each; so do bits 2 to 5 and 7.
        let kind = u16::from_be_bytes([bytes[67], bytes[68]]);
        expect(
            bytes,
            67,
            2,
            &[
                (kind | 0x0FFC, Finding(Rule::IoamUndefined, 66)),
                (kind | 0x0004, Finding(Rule::IoamNodeLen, 64)),
                (kind | 0x0001, Finding(Rule::IoamReservedBit, 66)),
                // The first octet of the next node is then read as the length of a snapshot.
                (kind | 0x0002, Finding(Rule::IoamRagged, 62 + 8 + 12)),
            ],
        );
        expect(bytes, 66, 1, &[(0xFF, Finding(Rule::IoamNodeLen, 64))]);
    }
    let room = |bytes: &[u8]| (usize::from(bytes[55]) + 1) * 8 - 6;
    let data = room(&in_data);
    let name = "Opt Data Len in Hop-by-Hop Options";
    let overrun = |value| Error::length(Layer::Ipv6Option, 59, name, value, 0, data);
    expect(
        &in_data,
        59,
        1,
        &[
            (0, Misread(Rule::IoamMalformed, 59)),
            (1, Misread(Rule::IoamMalformed, 59)),
            (2, Misread(Rule::IoamMalformed, 62)),
            (9, Misread(Rule::IoamMalformed, 62)),
            (
                data as u16 + 1,
                Both(overrun(data + 1), Rule::IoamMalformed, 59),
            ),
            (255, Both(overrun(255), Rule::IoamMalformed, 59)),
        ],
    );
    let data = room(&in_fast);
    let overrun = |value| Error::length(Layer::Ipv6Option, 59, "Opt Data Len", value, 0, data);
    expect(
        &in_fast,
        59,
        1,
        &[
            (0, Misread(Rule::FastCnpMalformed, 59)),
            (17, Misread(Rule::FastCnpMalformed, 59)),
            (18, Misread(Rule::IoamMalformed, 62)),
            (25, Misread(Rule::IoamMalformed, 62)),
            (
                data as u16 + 1,
                Both(overrun(data + 1), Rule::FastCnpMalformed, 59),
            ),
            (255, Both(overrun(255), Rule::FastCnpMalformed, 59)),
        ],
    );
    expect(&in_fast, 61, 1, &[(2, Finding(Rule::FastCnpIoamType, 61))]);
    expect(
        &in_fast,
        60,
        1,
        &[(255, Finding(Rule::FastCnpReserved, 60))],
    );
}

#[test]
fn an_option_running_past_its_header_is_reported() {
    // The proxy's address with a length one octet too large, in a header of its own.
    let bytes = sample("data_v6_ioam_proxy_address").wrapped_in(&[]);
    let frame = read(&bytes, bytes.len());
    let start = frame
        .spans()
        .iter()
        .find(|span| span.layer == Layer::DestinationOptions)
        .unwrap()
        .start;
    let at = start + 3;
    let e = |value| Error::length(Layer::Ipv6Option, at, "Opt Data Len", value, 0, 20);
    expect(
        &bytes,
        at,
        1,
        &[
            (0, Finding(Rule::ProxyAddressLength, at)),
            (17, Finding(Rule::ProxyAddressLength, at)),
            (21, Both(e(21), Rule::ProxyAddressLength, at)),
            (255, Both(e(255), Rule::ProxyAddressLength, at)),
        ],
    );
    // An option that consists only of a type, at the header's end.
    for (kind, rule) in [
        (0x9E, Some(Rule::FastCnpMalformed)),
        (0x1E, Some(Rule::ProxyAddressLength)),
        (0x31, Some(Rule::IoamMalformed)),
        (0x3D, None),
    ] {
        let header = [17, 0, 0, 0, 0, 0, 0, kind];
        let option = Part::RawExtension(60, &header);
        let parts = [MAC, v6(SWITCH, SENDER), option, frame_support::udp(1, 9)];
        let bytes = build(&parts);
        let frame = read(&bytes, bytes.len());
        let e = Error::short(Layer::Ipv6Option, 2, 1).at(61);
        assert_eq!(frame.end(), End::Malformed(e));
        let found = findings(&frame);
        let found: Vec<_> = found.into_iter().map(|f| (f.rule, f.offset)).collect();
        assert_eq!(found, Vec::from_iter(rule.map(|rule| (rule, 61))));
    }
    // Padding is no exception.
    let pad = [OptionPart::Raw(1, (1, 0), &[0; 4])];
    let inner = sample("cnp_v6");
    let mut bytes = inner.wrapped_in(&[v6(SWITCH, SENDER), Part::DestinationOptions(&pad)]);
    bytes[57] = 5;
    let frame = read(&bytes, bytes.len());
    let e = Error::length(Layer::Ipv6Option, 57, "Opt Data Len", 5, 0, 4);
    assert_eq!(frame.end(), End::Malformed(e));
    // The walk continued: the inner packet is parsed.
    let n = Notification::from_frame(&frame).unwrap();
    assert!(n.kind == Kind::Cnp && findings(&frame).is_empty());
}

#[test]
fn repeated_options_are_reported() {
    let original_destination = SENDER;
    let fast = OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination,
    });
    let proxy = OptionPart::ProxyAddress(ProxyAddress(SWITCH));
    for (option, rule) in [
        (fast, Rule::FastCnpSeveral),
        (proxy, Rule::ProxyAddressSeveral),
    ] {
        // In one header, the second option is at 18, after the first and two octets of padding; in
        // two headers, both are at the offset of the first.
        let (once, twice) = ([option], [option; 2]);
        for (headers, at) in [
            (vec![Part::DestinationOptions(&twice)], 54 + 2 + 20),
            (vec![Part::DestinationOptions(&once); 2], 54 + 24 + 2),
        ] {
            let parts = [
                &[MAC, v6(SWITCH, SENDER)],
                &headers[..],
                &[frame_support::udp(1, 9)],
            ];
            let bytes = build(&parts.concat());
            let found = findings(&read(&bytes, bytes.len()));
            let mut again = found.into_iter().filter(|finding| finding.rule == rule);
            let one = again.next().unwrap();
            assert_eq!((one.offset, one.len), (at, 18), "{found:?}");
            assert_eq!(again.next(), None);
        }
    }
}

#[test]
fn nesting_has_a_stated_limit() {
    let inner = sample("cnp_v6");
    for outer in 0..2 * MAX_TUNNELS {
        let bytes = inner.wrapped_in(&vec![v6(SWITCH, SENDER); outer]);
        let frame = read(&bytes, bytes.len());
        if outer < MAX_TUNNELS {
            assert_eq!(frame.end(), End::Complete, "{outer}");
            assert_eq!(frame.spans().len(), 1 + outer + 2);
        } else {
            let what = "IP headers inside one another";
            let e = Error::limit(Layer::Ipv6, 14 + 40 * MAX_TUNNELS, what, MAX_TUNNELS);
            assert_eq!(frame.end(), End::Malformed(e), "{outer}");
            assert!(Notification::from_frame(&frame).is_none());
        }
        assert!(findings(&frame).is_empty());
    }
    let tag = Part::Vlan {
        id: 1,
        priority: 0,
        service: false,
    };
    let label = Part::Mpls {
        label: 16,
        traffic_class: 0,
        ttl: 1,
    };
    for (part, layer) in [(tag, Layer::Vlan), (label, Layer::Mpls)] {
        // Ethernet, the parts, IPv6 and UDP.
        let most = MAX_LAYERS - 3;
        let bytes = inner.wrapped_in(&vec![part; most]);
        assert_eq!(read(&bytes, bytes.len()).end(), End::Complete);
        let bytes = inner.wrapped_in(&vec![part; MAX_LAYERS]);
        let e = Error::limit(layer, 14 + 4 * (MAX_LAYERS - 1), "layers", MAX_LAYERS);
        assert_eq!(read(&bytes, bytes.len()).end(), End::Malformed(e));
    }
    let options = Part::DestinationOptions(&[]);
    let headers = [&[v6(SWITCH, SENDER)][..], &[options; MAX_LAYERS]].concat();
    let bytes = inner.wrapped_in(&headers);
    let at = 14 + 40 + 8 * (MAX_LAYERS - 2);
    let e = Error::limit(Layer::DestinationOptions, at, "layers", MAX_LAYERS);
    assert_eq!(read(&bytes, bytes.len()).end(), End::Malformed(e));
}

/// Runs `bytes`, as Ethernet, through the checks of the fuzz targets for a frame and its message.
fn demand(bytes: &[u8]) {
    for cut in [0x30, 0xC0] {
        let input = [&[0, 0, 0, 0, cut][..], bytes].concat();
        targets::frame(&input);
        targets::notification(&input);
    }
}

#[test]
fn no_changed_octet_breaks_a_promise() {
    let fast = sample("fast_cnp_2_incremental");
    let plain = samples().into_iter().map(|sample| sample.wrapped_in(&[]));
    let wrapped = wrappings()
        .into_iter()
        .map(|(_, outer)| fast.wrapped_in(&outer));
    let other = [isis_frame(&[]), pfc_frame()];
    for mut bytes in plain.chain(wrapped).chain(other) {
        demand(&bytes);
        for at in 0..bytes.len() {
            let good = bytes[at];
            for bad in [0, 1, 0x7F, 0xFF, good ^ 0x01, good ^ 0x10, good ^ 0x80] {
                bytes[at] = bad;
                demand(&bytes);
            }
            bytes[at] = good;
        }
    }
}

#[test]
fn a_bad_packet_does_not_affect_the_next() {
    let trace = trace(OptType::Incremental);
    let ip = fast_cnp(&[], Some((OptType::Incremental, &trace)));
    let good = Sample {
        name: "good",
        kind: None,
        ip,
    }
    .wrapped_in(&[]);
    let before = Notification::from_frame(&read(&good, good.len()));
    assert!(before.is_some_and(|n| n.hops == Some(2) && n.deepest_queue == Some(9000)));
    let mut bad = good.clone();
    bad[59] = 255;
    assert!(Notification::from_frame(&read(&bad, bad.len())).is_none());
    let after = Notification::from_frame(&read(&good, good.len()));
    assert_eq!(before, after);
}
