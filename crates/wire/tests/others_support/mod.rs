//! Frames of other protocols whose port happens to be one of ours, for the tests of every tool:
//! none contains one of our messages.

#![allow(dead_code, reason = "each test program uses a part")]

use fcn_wire::Profile;

/// A frame from the Ethernet header on, with its protocol.
pub struct Other {
    pub name: String,
    /// Protocol name in Wireshark.
    pub protocol: &'static str,
    pub bytes: Vec<u8>,
}

/// Returns requests and responses, both ways, over IPv4 and IPv6, with each of our ports on the
/// client's side.
pub fn frames() -> Vec<Other> {
    let mut frames = Vec::new();
    let rocev2_port = Profile::DEFAULT.rocev2_port;
    for client in [
        Profile::DEFAULT.proxy_cn_port,
        Profile::DEFAULT.wan_fcn_port,
        rocev2_port,
    ] {
        for ipv6 in [false, true] {
            for (index, (protocol, server, to_server, to_client)) in talks().into_iter().enumerate()
            {
                // Wireshark tries the dissector of the lower port first, and its InfiniBand
                // dissector accepts everything.
                if client == rocev2_port && (server > rocev2_port || protocol == "data") {
                    continue;
                }
                let number = index as u8 + 1;
                let both = [
                    ("to", (client, server), to_server),
                    ("from", (server, client), to_client),
                ];
                for (way, ports, payload) in both {
                    if let Some(payload) = payload {
                        frames.push(Other {
                            name: format!("{protocol} {way} port {server}, {client}, IPv6 {ipv6}"),
                            protocol,
                            bytes: frame(ports, &payload, ipv6, number),
                        });
                    }
                }
            }
        }
    }
    // From RoCEv2's port to itself: the same dissector is tried for both ports.
    let bytes = frame((rocev2_port, rocev2_port), &[6; 64], false, 99);
    frames.push(Other {
        name: "RoCEv2's port to itself".to_owned(),
        protocol: "infiniband",
        bytes,
    });
    frames.extend(by_udp_lite());
    frames
}

/// Returns packets that would be our messages if they were carried by UDP.
fn by_udp_lite() -> impl Iterator<Item = Other> {
    let profile = Profile::DEFAULT;
    let invoking = frame((50_000, profile.rocev2_port), &[4; 40], false, 99);
    let invoking = &invoking[14..];
    let ports = [17, 0xC3, 0x50, 0x12, 0xB7, 5 << 5, 0, 0];
    let proxy = [&invoking[12..20], &ports, invoking].concat();
    let cnp = [&[0x81, 0x40, 0xFF, 0xFF, 0, 0, 0, 9][..], &[0; 24]].concat();
    let messages = [
        ("proxy notification", profile.proxy_cn_port, proxy),
        ("WAN FCN", profile.wan_fcn_port, vec![0x12, 0x34, 0x5A, 0]),
        ("CNP", profile.rocev2_port, cnp),
    ];
    messages.into_iter().flat_map(|(name, port, payload)| {
        [false, true].map(|ipv6| Other {
            name: format!("{name} by UDP-Lite, IPv6 {ipv6}"),
            protocol: "udplite",
            bytes: carried(136, (50_000, port), &payload, ipv6, 99),
        })
    })
}

type Talk = (&'static str, u16, Option<Vec<u8>>, Option<Vec<u8>>);

fn talks() -> Vec<Talk> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
    // RFC 5531: transaction, call, version 2, program, its version, procedure 0, no credentials, no
    // verifier.
    let call = |id, program, version| words(&[id, 0, 2, program, version, 0, 0, 0, 0, 0]);
    let reply = |id| words(&[id, 1, 0, 0, 0, 0]);
    let radius = |code| [&[code, 7, 0, 20], &[0; 16][..]].concat();
    let sip = b"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP c\r\nFrom: <sip:a@b>\r\nTo: <sip:a@b>\r\nCall-ID: 1\r\n\
        CSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
        .to_vec();
    let question = [1, b'a', 2, b'b', b'c', 0, 0, 1, 0, 1];
    let dns = |flags: u8| {
        [
            &[0x12, 0x34, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            &question[..],
        ]
        .concat()
    };
    let ntp = |mode| [&[mode], &[0; 47][..]].concat();
    let inner = frame((5000, 53), &dns(1), false, 9);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0], &inner[..]].concat();
    vec![
        ("rpc", 2049, Some(call(1, 100_003, 3)), Some(reply(1))),
        // A response whose call was not captured cannot be identified.
        ("data", 2049, None, Some(reply(99))),
        ("rpc", 111, Some(call(2, 100_000, 2)), Some(reply(2))),
        ("radius", 1812, Some(radius(1)), Some(radius(2))),
        ("sip", 5060, Some(sip.clone()), Some(sip)),
        ("data", 40_000, None, Some(b"\r\n\r\n".to_vec())),
        ("vxlan", 4789, Some(vxlan), None),
        ("dns", 53, Some(dns(1)), Some(dns(0x81))),
        ("ntp", 123, Some(ntp(0x23)), Some(ntp(0x24))),
        // RFC 1350: block 1.
        (
            "tftp",
            69,
            None,
            Some([&[0, 3, 0, 1][..], &[7; 60]].concat()),
        ),
        // A NAT keep-alive, an empty probe, and arbitrary data.
        ("data", 40_000, Some(vec![0xFF]), Some(vec![0xFF])),
        ("udp", 40_000, None, Some(Vec::new())),
        ("data", 40_000, None, Some((0..60).collect())),
        (
            "data",
            40_000,
            Some(vec![0x12, 0x34, 0x5E, 0]),
            Some(vec![0x60; 100]),
        ),
    ]
}

/// Builds Ethernet, IP and UDP without a checksum, between two hosts numbered `number`.
fn frame(ports: (u16, u16), payload: &[u8], ipv6: bool, number: u8) -> Vec<u8> {
    carried(17, ports, payload, ipv6, number)
}

/// Builds the same with another IP protocol, whose header is like UDP's.
fn carried(protocol: u8, ports: (u16, u16), payload: &[u8], ipv6: bool, number: u8) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut frame = vec![2; 12];
    if ipv6 {
        frame.extend([0x86, 0xDD, 0x60, 0, 0, 0]);
        frame.extend(len.to_be_bytes());
        frame.extend([protocol, 64]);
        for _ in 0..2 {
            frame.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]);
        }
    } else {
        let mut header = vec![0x45, 0];
        header.extend((20 + len).to_be_bytes());
        header.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
        header.extend([10, 0, 0, number, 10, 0, 0, number]);
        let sum: u32 = (header.chunks(2))
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend([8, 0]);
        frame.extend(header);
    }
    for word in [ports.0, ports.1, len, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}
