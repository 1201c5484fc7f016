//! The kernel's packet filter: passes congestion notifications, RoCEv2, and everything that may
//! encapsulate them, combined with the user's own expression.

use fcn_wire::header::ethernet::{OUTER_TAG, PLAIN, SERVICE_TAG, TAG};
use fcn_wire::profile::{
    GENEVE_PORT, GTP_U_PORT, SFLOW_PORT, TZSP_PORT, VXLAN_GPE_PORT, VXLAN_PORT,
};
use fcn_wire::{LinkType, Profile, claim};
pub use pcap::BpfProgram;
use pcap::{Active, Capture, Linktype};
use std::fmt::Write;

/// Packet filter options.
#[derive(Clone, Debug, Default)]
pub struct PacketFilter {
    /// The user's expression, in tcpdump's syntax.
    pub own: Option<String>,
    /// True if the kernel passes only relevant packets.
    pub built_in: bool,
}

/// Keywords of tcpdump's syntax that shift the offsets of all later expressions further into the
/// packet.
const SHIFTING: [&str; 6] = ["vlan", "mpls", "pppoed", "pppoes", "geneve", "vxlan"];

impl PacketFilter {
    /// Returns true if the kernel passes only relevant packets for link type `link`, if known:
    /// tcpdump's syntax cannot express InfiniBand.
    pub const fn is_built_in(&self, link: Option<LinkType>) -> bool {
        self.built_in && !matches!(link, Some(LinkType::InfiniBand | LinkType::Erf))
    }

    /// Installs the kernel's filter; returns a program that packets have to pass here as well, if
    /// there is one.
    ///
    /// # Errors
    ///
    /// The user's expression is invalid; the text is libpcap's message.
    pub fn install(
        &self,
        capture: &mut Capture<Active>,
        link: LinkType,
        profile: &Profile,
    ) -> Result<Option<BpfProgram>, String> {
        let ours = (self.is_built_in(Some(link))).then(|| expression(profile, link));
        let (expression, here) = match (&self.own, ours) {
            (None, None) => return Ok(None),
            (None, Some(ours)) => (ours, None),
            // Combined in the kernel, it would shift the offsets of the built-in expression.
            (Some(own), Some(ours)) if shifts(own) => {
                (ours, Some(compile(capture.get_datalink(), own)?))
            }
            (Some(own), ours) => {
                // Compiled separately first: parentheses may turn an invalid expression into a
                // valid one.
                capture.compile(own, true).map_err(message)?;
                let both = |ours| format!("({own}) and ({ours})");
                (ours.map_or_else(|| own.clone(), both), None)
            }
        };
        capture.filter(&expression, true).map_err(message)?;
        Ok(here)
    }

    /// Compiles the user's expression for packets of a file; `None` without an expression.
    ///
    /// # Errors
    ///
    /// The expression is invalid; the text is libpcap's message.
    pub fn for_file(&self, link_number: u32) -> Result<Option<BpfProgram>, String> {
        let Some(text) = &self.own else {
            return Ok(None);
        };
        // libpcap's internal number of raw IP differs from the one in files.
        let number = match link_number {
            101 => 12,
            other => i32::try_from(other).unwrap_or(i32::MAX),
        };
        compile(Linktype(number), text).map(Some)
    }
}

fn shifts(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| SHIFTING.contains(&word))
}

fn compile(link: Linktype, text: &str) -> Result<BpfProgram, String> {
    Capture::dead(link)
        .and_then(|capture| capture.compile(text, true))
        .map_err(message)
}

/// Returns libpcap's message.
pub(super) fn message(error: pcap::Error) -> String {
    match error {
        pcap::Error::PcapError(text) => text,
        other => other.to_string(),
    }
}

/// Returns an expression in tcpdump's syntax that passes everything that may be a notification or
/// RoCEv2, or contain them: untagged, and with one or two VLAN tags. Datagrams that pass are
/// classified later by [`Datagram::claim`](fcn_wire::frame::Datagram::claim).
pub fn expression(profile: &Profile, link: LinkType) -> String {
    let packet = packet(profile, link);
    if link == LinkType::Ethernet {
        // Each `vlan` shifts everything after it by one more tag.
        format!("{packet} or (vlan and ({packet})) or (vlan and ({packet}))")
    } else {
        packet
    }
}

/// Returns the expression for untagged packets.
fn packet(profile: &Profile, link: LinkType) -> String {
    // IPv4, IPv6, GRE (used by mirrors), MPLS and Ethernet in IP.
    const TUNNELS: [u8; 5] = [4, 41, 47, 137, 143];
    const TUNNEL_PORTS: [u16; 6] = [
        VXLAN_PORT,
        VXLAN_GPE_PORT,
        GENEVE_PORT,
        GTP_U_PORT,
        SFLOW_PORT,
        TZSP_PORT,
    ];
    // Hop-by-Hop, routing, fragment, Destination Options.
    const EXTENSIONS: [u8; 4] = [0, 43, 44, 60];
    let mut text = format!("(udp and (dst port {}", profile.rocev2_port);
    for port in TUNNEL_PORTS.iter().chain([&profile.proxy_cn_port]) {
        // Writing to a string cannot fail.
        let _ = write!(text, " or dst port {port}");
    }
    let _ = write!(text, " or (dst port {}", profile.wan_fcn_port);
    if profile.wan_fcn_port == Profile::DEFAULT.wan_fcn_port {
        // Others use that port as well, with longer messages: for example, an NFS server's replies
        // need not be copied to user space.
        let longest = 8 + claim::MAX_BROKEN_WAN_FCN_LEN;
        let _ = write!(
            text,
            " and ((ip and udp[4:2] <= {longest}) or (ip6 and ip6[44:2] <= {longest}))"
        );
    }
    text.push_str(")))");
    for tunnel in TUNNELS {
        let _ = write!(text, " or (ip and ip[9] = {tunnel})");
    }
    for next in TUNNELS.iter().chain(&EXTENSIONS) {
        let _ = write!(text, " or (ip6 and ip6[6] = {next})");
    }
    // ICMPv6 Parameter Problem: the reply of a sender that does not support a Fast CNP's option.
    text.push_str(" or (ip6 and ip6[6] = 58 and ip6[40] = 4)");
    if matches!(
        link,
        LinkType::Ethernet | LinkType::LinuxCooked | LinkType::LinuxCooked2
    ) {
        // Tags, labels and other encapsulations, PFC, RoCE v1, and what is to be counted because it
        // cannot be opened. Here tcpdump's syntax cannot look past tags in cooked captures.
        text.push_str(" or not (ip or ip6");
        // Tagged packets are judged by what follows the tag.
        let tags = match link {
            LinkType::Ethernet => &[TAG, SERVICE_TAG, OUTER_TAG][..],
            _ => &[],
        };
        for ether_type in tags.iter().chain(&PLAIN) {
            let _ = write!(text, " or ether proto {ether_type}");
        }
        text.push(')');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_link::capture_file::CaptureReader;
    use fcn_wire::emit::{Encapsulation, MirroredFrame};
    use fcn_wire::{Frame, Message, Notification};
    use rustc_hash::FxHashMap;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::path::Path;

    fn program(link: i32, kind: LinkType) -> BpfProgram {
        compile(Linktype(link), &expression(&Profile::DEFAULT, kind)).unwrap()
    }

    /// Returns an Ethernet frame with tags and a packet.
    fn frame(tags: usize, ether_type: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in 0..tags {
            let kind: u16 = if tag + 1 < tags { 0x88A8 } else { 0x8100 };
            frame.extend(kind.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame.extend(ether_type.to_be_bytes());
        frame.extend(packet);
        frame.resize(frame.len().max(60), 0);
        frame
    }

    fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet.extend([1; 32]);
        packet.extend(payload);
        packet
    }

    fn ports(from: u16, to: u16) -> Vec<u8> {
        let mut header = from.to_be_bytes().to_vec();
        header.extend(to.to_be_bytes());
        header.extend([0; 40]);
        header
    }

    /// Returns a datagram with 40 octets after its header.
    fn answer(from: u16, to: u16) -> Vec<u8> {
        let mut datagram = ports(from, to);
        datagram[5] = 48;
        datagram
    }

    #[test]
    fn relevant_packets_pass_with_any_tags_and_others_do_not() {
        let program = program(1, LinkType::Ethernet);
        for tags in 0..=2 {
            for port in [4791, 1021, 1022, 4789, 4790, 6081, 2152, 6343, 37008] {
                for (ether_type, packet) in [
                    (0x0800, ipv4(17, &ports(50_000, port))),
                    (0x86DD, ipv6(17, &ports(50_000, port))),
                ] {
                    let frame = frame(tags, ether_type, &packet);
                    assert!(program.filter(&frame), "{tags} {port} {ether_type:x}");
                }
            }
            for next in [0, 43, 44, 60, 4, 41, 47, 137, 143] {
                assert!(program.filter(&frame(tags, 0x86DD, &ipv6(next, &[0; 8]))));
            }
            for (ether_type, packet) in [
                (0x86DD, ipv6(58, &[4, 0, 0, 0])),
                (0x0800, ipv4(4, &ipv4(17, &ports(1, 4791)))),
                (0x0800, ipv4(41, &ipv6(17, &ports(1, 4791)))),
                (0x0800, ipv4(47, &[0x10, 0, 0x88, 0xBE])),
                (0x8847, vec![0; 40]),
                (0x8848, vec![0; 40]),
                (0x8808, vec![1, 1]),
                // RoCE v1, a VN-Tag, SNAP, and something unknown.
                (0x8915, vec![0x60; 60]),
                (0x8926, vec![0; 40]),
                (40, vec![0xAA; 40]),
                (0x9A00, vec![0; 40]),
            ] {
                assert!(program.filter(&frame(tags, ether_type, &packet)));
            }
            for (ether_type, packet) in [
                (0x0800, ipv4(6, &ports(50_000, 80))),
                (0x86DD, ipv6(6, &ports(443, 50_000))),
                (0x0800, ipv4(6, &ports(50_000, 4791))),
                (0x0800, ipv4(17, &ports(50_000, 53))),
                (0x86DD, ipv6(17, &ports(53, 50_000))),
                // A reply to a port that happens to be RoCEv2's on the other side.
                (0x0800, ipv4(17, &ports(4791, 53))),
                // A reply of an NFS server to the port of WAN FCNs, and a packet sent from that
                // port.
                (0x0800, ipv4(17, &answer(2049, 1022))),
                (0x86DD, ipv6(17, &answer(2049, 1022))),
                (0x0800, ipv4(17, &ports(1022, 2049))),
                (0x0800, ipv4(1, &[8, 0, 0, 0])),
                (0x86DD, ipv6(58, &[135, 0, 0, 0])),
                (0x0806, vec![0, 1, 8, 0, 6, 4, 0, 1]),
                (0x88CC, vec![2, 7, 4]),
            ] {
                let frame = frame(tags, ether_type, &packet);
                assert!(!program.filter(&frame), "{tags} {ether_type:x} {packet:?}");
            }
        }
    }

    #[test]
    fn tagged_packets_pass_on_all_interfaces() {
        let tagged = frame(2, 0x0800, &ipv4(17, &ports(50_000, 4791)));
        for (number, kind, header) in [
            (113, LinkType::LinuxCooked, &[0; 14][..]),
            (276, LinkType::LinuxCooked2, &[]),
        ] {
            // Protocol, and for version 2 the remaining header after it.
            let mut cooked = [header, &tagged[12..14]].concat();
            if number == 276 {
                cooked.resize(20, 0);
            }
            cooked.extend(&tagged[14..]);
            assert!(program(number, kind).filter(&cooked), "{kind:?}");
        }
    }

    #[test]
    fn every_message_of_the_sample_captures_passes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
        let profile = Profile::DEFAULT;
        let (mut messages, mut kept_out, mut mirrored) = (0, 0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "pcapng") {
                continue;
            }
            let mut programs = FxHashMap::default();
            let mut reader = CaptureReader::open(&path).unwrap();
            let mut number = 0;
            while let Some(packet) = reader.next().unwrap() {
                number += 1;
                let Some(link) = packet.link else { continue };
                let program = programs.entry(packet.link_number).or_insert_with(|| {
                    let dlt = match packet.link_number {
                        101 => 12,
                        other => other as i32,
                    };
                    compile(Linktype(dlt), &expression(&profile, link)).unwrap()
                });
                let frame = Frame::parse(packet.bytes, packet.wire_len as usize, link, &profile);
                let is_ours = !matches!(frame.message(), Message::Other)
                    || Notification::from_frame(&frame).is_some();
                let passes = program.filter(packet.bytes);
                assert!(passes || !is_ours, "{} frame {number}", path.display());
                if is_ours && link == LinkType::Ethernet {
                    mirrored += copies_pass(packet.bytes, packet.wire_len as usize, program);
                }
                messages += u64::from(is_ours);
                kept_out += u64::from(!passes);
            }
        }
        println!(
            "{messages} messages pass, {mirrored} copies of them, {kept_out} packets are kept out"
        );
        assert!(messages > 1_000 && mirrored > 10_000 && kept_out > 0);
    }

    /// Asserts that mirrored copies of a frame pass; returns their number.
    fn copies_pass(frame: &[u8], wire_len: usize, program: &BpfProgram) -> u64 {
        let mut out = vec![0; frame.len() + MirroredFrame::MAX_HEADERS];
        let mut copies = 0;
        for encapsulation in Encapsulation::ALL {
            let name = encapsulation.id();
            for (source, destination) in [
                (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()),
                (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
            ] {
                let mirrored = MirroredFrame {
                    encapsulation,
                    source,
                    destination,
                    session: 1,
                    port: 1,
                    sequence: 1,
                    at: 0,
                };
                let len = mirrored.write(frame, wire_len, &Profile::DEFAULT, &mut out);
                if let Some((len, _)) = len.unwrap() {
                    assert!(program.filter(&out[..len]), "{name} from {source}");
                    copies += 1;
                }
            }
        }
        copies
    }

    #[test]
    fn a_profile_has_its_own_ports() {
        let mut profile = Profile::DEFAULT;
        profile.set("rocev2_port=9000").unwrap();
        profile.set("wan_fcn_port=900").unwrap();
        let text = expression(&profile, LinkType::RawIp);
        let program = compile(Linktype(12), &text).unwrap();
        for (port, passes) in [(9_000, true), (900, true), (4791, false), (1022, false)] {
            assert_eq!(program.filter(&ipv4(17, &ports(1, port))), passes, "{port}");
        }
    }

    #[test]
    fn every_link_type_has_a_filter_within_the_kernels_limit() {
        for (number, link) in [
            (1, LinkType::Ethernet),
            (12, LinkType::RawIp),
            (113, LinkType::LinuxCooked),
            (276, LinkType::LinuxCooked2),
            (0, LinkType::Null),
        ] {
            // Linux's limit: BPF_MAXINSNS.
            let len = program(number, link).get_instructions().len();
            assert!(len < 4_096, "{link:?}: {len}");
            println!("{link:?}: {len} instructions");
        }
    }

    #[test]
    fn shifting_keywords_are_recognised() {
        assert!(shifts("vlan 7 and udp") && shifts("not(mpls)"));
        assert!(!shifts("host vlan-7x.example or udp") || shifts("host vlan"));
        assert!(!shifts("udp port 4791"));
    }

    #[test]
    fn invalid_expressions_are_reported_with_libpcaps_message() {
        let filter = PacketFilter {
            own: Some("udp prt 4791".to_owned()),
            built_in: true,
        };
        let Err(message) = filter.for_file(1) else {
            panic!("accepted");
        };
        assert!(message.contains("syntax error"), "{message}");
        assert!(PacketFilter::default().for_file(1).unwrap().is_none());
    }
}
