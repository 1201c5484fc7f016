//! Packets of every kind, built from the values that rewriting changes.

use fcn_wire::Profile;
use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp, Reth};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::erspan::{Erspan, Erspan2};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::ioam::{IoamOption, OptType};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::rdma_cm::{
    CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectRequestRepr, MessageRepr, Path,
};
use fcn_wire::wan_fcn::WanFcnRepr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// MAC addresses of every frame here: destination, source.
pub const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
const MAC: Part<'static> = Part::Ethernet {
    source: [2, 0, 0, 0, 0, 1],
    destination: [2, 0, 0, 0, 0, 2],
};

/// Error in the innermost packet, and in complete ones that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    /// Flipped.
    Icrc(u16),
    ZeroIcrc,
    /// UDP checksums, if any, are off by this amount in one's complement.
    Udp(u16),
    /// IPv4 header checksums.
    Ipv4(u16),
    /// TCP, ICMP, OSPFv3.
    Other(u16),
}

/// Values that rewriting changes.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    pub v6: [Ipv6Addr; 6],
    pub v4: [Ipv4Addr; 4],
    pub qp: u32,
    pub other_qp: u32,
    pub psn: u32,
    pub port: u16,
    pub label: u32,
    pub reading: Reading,
    /// True if UDP has checksums.
    pub checksums: bool,
    pub wrong: Wrong,
}

impl Default for Values {
    fn default() -> Self {
        let v6 = |host| Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0xbeef, 0, 0, 1, host);
        let v4 = |host| Ipv4Addr::new(203, 0, 113, host);
        Self {
            v6: [1, 2, 3, 4, 5, 6].map(v6),
            v4: [1, 2, 3, 4].map(v4),
            qp: 0x1234,
            other_qp: 0x4321,
            psn: 77,
            port: 50000,
            label: 0x12345,
            reading: Reading::Covered,
            checksums: true,
            wrong: Wrong::Nothing,
        }
    }
}

fn build(parts: &[Part<'_>]) -> Vec<u8> {
    packet(parts, &Profile::DEFAULT).unwrap()
}

/// Returns the EtherType of a packet of [`packets`].
pub fn ether_type(name: &str, packet: &[u8]) -> [u8; 2] {
    match packet[0] >> 4 {
        _ if name.contains("arp") => [0x08, 0x06],
        4 => [0x08, 0x00],
        _ => [0x86, 0xDD],
    }
}

/// Returns an Ethernet frame with a packet of [`packets`].
pub fn ethernet(name: &str, packet: &[u8]) -> Vec<u8> {
    [&MACS[..], &ether_type(name, packet), packet].concat()
}

impl Values {
    fn ip6(&self, source: usize, destination: usize) -> Part<'static> {
        Part::Ipv6 {
            source: self.v6[source],
            destination: self.v6[destination],
            traffic_class: 0xC2,
            flow_label: self.label,
            hop_limit: 64,
        }
    }

    fn ip4<'a>(&self, source: usize, destination: usize, options: &'a [u8]) -> Part<'a> {
        Part::Ipv4 {
            source: self.v4[source],
            destination: self.v4[destination],
            tos: 0xC2,
            ttl: 64,
            id: 1,
            options,
        }
    }

    fn udp(&self, source: u16, destination: u16) -> Part<'static> {
        let checksum = if self.checksums {
            UdpChecksum::Compute
        } else {
            UdpChecksum::Zero
        };
        Part::Udp {
            source,
            destination,
            checksum,
        }
    }

    fn roce(&self) -> Part<'static> {
        self.udp(self.port, 4791)
    }

    fn icrc(&self) -> Part<'static> {
        Part::Icrc(match self.wrong {
            Wrong::Icrc(_) => Policy::Corrupt,
            Wrong::ZeroIcrc => Policy::Zero,
            _ => Policy::Compute(self.reading),
        })
    }

    fn bth(&self, opcode: Opcode, qp: u32) -> Part<'static> {
        Part::Bth(BthRepr::new(opcode, Qp::truncate(qp), self.psn))
    }

    /// Returns a RoCEv2 packet after `headers`, with the selected error.
    fn roce_packet(&self, headers: &[Part<'_>], behind: &[Part<'_>]) -> Vec<u8> {
        let rest = [&[self.roce()][..], behind, &[self.icrc()]].concat();
        self.broken(build(&[headers, &rest].concat()))
    }

    /// Invalidates the IPv4 header checksum and the UDP checksum of `packet`.
    fn broken(&self, mut packet: Vec<u8>) -> Vec<u8> {
        let udp = match packet[0] >> 4 {
            4 if packet[9] == 17 => Some(usize::from(packet[0] & 15) * 4),
            4 => None,
            _ => upper6(&packet, 17),
        };
        match (self.wrong, udp) {
            (Wrong::Ipv4(by), _) if packet[0] >> 4 == 4 => shift(&mut packet, 10, by),
            (Wrong::Udp(by), Some(udp)) if packet[udp + 6..udp + 8] != [0, 0] => {
                // 1 to 0xFFFF.
                let was = u32::from(u16::from_be_bytes([packet[udp + 6], packet[udp + 7]]));
                let now = (was - 1 + u32::from(by)) % 0xFFFF + 1;
                packet[udp + 6..udp + 8].copy_from_slice(&(now as u16).to_be_bytes());
            }
            _ => {}
        }
        packet
    }

    /// Returns an IP packet with `body` of `protocol`, whose checksum is at `at`.
    fn summed(&self, ip: Part<'_>, protocol: u8, mut body: Vec<u8>, at: usize) -> Vec<u8> {
        let addresses = match ip {
            Part::Ipv4 {
                source,
                destination,
                ..
            } => [source.octets(), destination.octets()].concat(),
            Part::Ipv6 {
                source,
                destination,
                ..
            } => [source.octets(), destination.octets()].concat(),
            _ => unreachable!(),
        };
        let mut covered = body.clone();
        if protocol != 1 {
            covered.splice(0..0, addresses);
            covered.resize(covered.len().next_multiple_of(2), 0);
            covered.extend((body.len() as u32).to_be_bytes());
            covered.extend([0, protocol]);
        }
        let sum: u64 = covered
            .chunks(2)
            .map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| u64::from(*low)))
            .sum();
        let sum = !((sum - 1) % 0xFFFF + 1) as u16;
        body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        if let Wrong::Other(by) = self.wrong {
            shift(&mut body, at, by);
        }
        let ether_type = 0;
        let payload = Part::Payload {
            ether_type,
            protocol,
            bytes: &body,
        };
        self.broken(build(&[ip, payload]))
    }

    fn data_v4(&self) -> Vec<u8> {
        let reth = Reth {
            address: 0x1000,
            rkey: 7,
            length: 9,
        };
        let body = [&reth.to_bytes()[..], &[0xAB; 9], &[0; 3]].concat();
        let bth = self.bth(Opcode::RC_WRITE_ONLY, self.qp);
        self.roce_packet(&[self.ip4(0, 1, &[])], &[bth, Part::Bytes(&body)])
    }

    fn data_v6(&self, len: usize) -> Vec<u8> {
        let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let bth = self.bth(Opcode::RC_SEND_ONLY, self.qp);
        self.roce_packet(&[self.ip6(0, 1)], &[bth, Part::Bytes(&payload)])
    }

    fn data_v6_options(&self) -> Vec<u8> {
        let trace = [
            0, 1, 0x10, 3, 0x80, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 8, 8, 8, 8,
        ];
        let ioam = IoamOption {
            reserved: 0,
            opt_type: OptType::Preallocated,
            body: &trace,
        };
        let options = [OptionPart::ProxyAddress(ProxyAddress(self.v6[3]))];
        let hop_by_hop = [OptionPart::Ioam(ioam)];
        let headers = [
            self.ip6(0, 1),
            Part::HopByHop(&hop_by_hop),
            Part::DestinationOptions(&options),
        ];
        let bth = self.bth(Opcode::RC_SEND_ONLY, self.qp);
        self.roce_packet(&headers, &[bth, Part::Bytes(&[0xAB; 16])])
    }

    fn fast_cnp(&self, option: FastCnpRepr<'_>) -> Vec<u8> {
        let option = [OptionPart::FastCnp(option)];
        let headers = [self.ip6(2, 0), Part::DestinationOptions(&option)];
        let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(self.other_qp)));
        self.roce_packet(&headers, &[cnp])
    }

    /// Returns a notification over IPv4 or IPv6 about `invoking`.
    fn proxy_cn(&self, over_v4: bool, invoking: &[u8]) -> Vec<u8> {
        let about_v4 = invoking[0] >> 4 == 4;
        let addresses: [IpAddr; 2] = if about_v4 {
            [self.v4[0].into(), self.v4[1].into()]
        } else {
            [self.v6[0].into(), self.v6[1].into()]
        };
        let repr = ProxyCnRepr {
            five_tuple: FiveTuple {
                source: addresses[0],
                destination: addresses[1],
                protocol: 17,
                source_port: self.port,
                destination_port: 4791,
            },
            level: 5,
            reserved: 0,
            invoking,
        };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).unwrap();
        let outer = if over_v4 {
            self.ip4(2, 3, &[])
        } else {
            self.ip6(2, 3)
        };
        self.broken(build(&[outer, self.udp(5000, 1021), Part::Bytes(&bytes)]))
    }

    fn cm(&self, over_v4: bool, message: impl Into<MessageRepr>) -> Vec<u8> {
        let mad = CmRepr::new(9, message).to_bytes().unwrap();
        let deth = Deth {
            qkey: GSI_Q_KEY,
            source_qp: Qp::GSI,
        };
        let ip = if over_v4 {
            self.ip4(0, 1, &[])
        } else {
            self.ip6(0, 1)
        };
        let bth = self.bth(Opcode::UD_SEND_ONLY, 1);
        let deth = deth.to_bytes();
        self.roce_packet(&[ip], &[bth, Part::Bytes(&deth), Part::Bytes(&mad)])
    }

    fn connect_request(&self, ends: [IpAddr; 2], alternate: [IpAddr; 2]) -> ConnectRequestRepr {
        let [source, destination] = ends;
        ConnectRequestRepr {
            local_qpn: self.qp,
            starting_psn: self.psn,
            alternate: Path::roce(alternate[0], alternate[1]),
            ..ConnectRequestRepr::roce((source, 7000), (destination, 8000)).unwrap()
        }
    }

    fn icmp(&self, ip: Part<'_>, head: [u8; 8], behind: &[u8]) -> Vec<u8> {
        let protocol = if matches!(ip, Part::Ipv4 { .. }) {
            1
        } else {
            58
        };
        self.summed(ip, protocol, [&head[..], behind].concat(), 2)
    }
}

/// Returns the offset of `protocol` in an IPv6 packet, after extension headers.
fn upper6(packet: &[u8], protocol: u8) -> Option<usize> {
    let (mut at, mut next) = (40, packet[6]);
    while matches!(next, 0 | 43 | 60) {
        next = packet[at];
        at += 8 * (1 + usize::from(packet[at + 1]));
    }
    (next == protocol).then_some(at)
}

/// Adds to a checksum in one's complement; the result is never 0xFFFF.
fn shift(bytes: &mut [u8], at: usize, by: u16) {
    let was = u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let now = (was + u32::from(by)) % 0xFFFF;
    bytes[at..at + 2].copy_from_slice(&(now as u16).to_be_bytes());
}

/// Returns one packet of every kind, from its IP header on (or an ARP packet).
pub fn packets(v: &Values) -> Vec<(String, Vec<u8>)> {
    // For partial quotes: a UDP checksum would cover an ICRC that changes but is not included.
    let right = Values {
        wrong: Wrong::Nothing,
        checksums: false,
        ..*v
    };
    let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(v.qp)));
    let trace = [0, 1, 0x10, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 64, 1, 2, 3];
    let one = FastCnpRepr::Option1 {
        original_destination: v.v6[1],
    };
    let two = FastCnpRepr::Option2 {
        ioam: IoamOption {
            reserved: 0,
            opt_type: OptType::Preallocated,
            body: &trace,
        },
        original_destination: v.v6[1],
    };
    let segments = [v.v6[4], v.v6[5], v.v6[1]];
    let routed = |left| {
        let routing = Part::SegmentRouting {
            left,
            segments: &segments,
        };
        let bth = v.bth(Opcode::RC_SEND_ONLY, v.qp);
        v.roce_packet(&[v.ip6(0, 1), routing], &[bth, Part::Bytes(&[1; 8])])
    };
    let deth = Deth {
        qkey: 1,
        source_qp: Qp::truncate(v.other_qp),
    };
    let ud = [
        v.bth(Opcode::UD_SEND_ONLY, v.qp),
        Part::Bytes(&deth.to_bytes()),
        Part::Bytes(&[3; 20]),
    ];
    let label = WanFcnRepr {
        flow_label: v.label,
        level: 3,
        reserved: 0x155,
    };
    let fcn = label.to_bytes();
    let ends4: [IpAddr; 2] = [v.v4[0].into(), v.v4[1].into()];
    let ends6: [IpAddr; 2] = [v.v6[0].into(), v.v6[1].into()];
    let reply = ConnectReplyRepr {
        local_comm_id: 1,
        remote_comm_id: 2,
        vendor_id: 0,
        local_q_key: 0,
        local_qpn: v.other_qp,
        local_eecn: 0,
        starting_psn: v.psn,
        responder_resources: 1,
        initiator_depth: 1,
        target_ack_delay: 0,
        failover_accepted: 0,
        end_to_end_flow_control: false,
        rnr_retry_count: 7,
        srq: false,
        local_ca_guid: 1,
        ..ConnectReplyRepr::default()
    };
    let down = DisconnectRequestRepr {
        local_comm_id: 1,
        remote_comm_id: 2,
        remote_qpn: v.qp,
        ..DisconnectRequestRepr::default()
    };
    let mut tcp = vec![0; 20];
    tcp[..4].copy_from_slice(&[0, 179, 0xC0, 0]);
    tcp[12] = 5 << 4;
    tcp.extend([0xFF; 19]);
    let mut web = tcp.clone();
    web[1] = 80;
    let mut ospf = vec![0; 16];
    ospf[..4].copy_from_slice(&[3, 1, 0, 16]);
    let quoted6 = right.data_v6(256)[..100].to_vec();
    let quoted4 = right.data_v4()[..28].to_vec();
    // RFC 4884: 128 octets, then an extension, which ends where the packet of 136 octets would.
    let mut extended = right.data_v6(72)[..128].to_vec();
    extended.extend([0x20, 0, 0, 0, 0, 8, 1, 1]);
    let mut extended4 = v.data_v4();
    extended4.resize(128, 0);
    extended4.extend([0x20, 0, 0, 0, 0, 8, 1, 1]);
    let unreachable = v.icmp(v.ip6(1, 0), [1, 4, 0, 0, 0, 0, 0, 0], &v.data_v6(16));
    let gateway = v.v4[3].octets();
    let redirect4 = [5, 1, 0, 0, gateway[0], gateway[1], gateway[2], gateway[3]];
    let target = v.v6[1].octets();
    let redirect6 = [v.v6[2].octets(), v.v6[1].octets()].concat();
    let arp = [
        &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1][..],
        &v.v4[0].octets(),
        &[2, 0, 0, 0, 0, 2],
        &v.v4[1].octets(),
    ]
    .concat();
    // UDP, one octet of payload, an odd one after it; only a part of the datagram is included.
    let dns = build(&[v.ip6(0, 1), v.udp(9, 53), Part::Bytes(&[7; 33])]);
    let fragment = Part::Fragment {
        offset: 0,
        more: true,
        id: 7,
    };
    let first = Part::Payload {
        ether_type: 0,
        protocol: 17,
        bytes: &dns[40..],
    };
    let later = Part::Fragment {
        offset: 64,
        more: false,
        id: 7,
    };
    let same = |headers: &[Part<'_>]| v.roce_packet(headers, &[cnp]);
    let list: Vec<(&str, Vec<u8>)> = vec![
        ("cnp_v4", same(&[v.ip4(1, 0, &[])])),
        ("cnp_v4_options", same(&[v.ip4(1, 0, &[1, 1, 1, 0])])),
        ("cnp_v6", same(&[v.ip6(1, 0)])),
        ("fast_cnp_1", v.fast_cnp(one)),
        ("fast_cnp_2", v.fast_cnp(two)),
        ("data_v4", v.data_v4()),
        ("data_v6", v.data_v6(1024)),
        ("data_v6_options", v.data_v6_options()),
        ("data_v6_segments_left", routed(2)),
        ("data_v6_segments_done", routed(0)),
        ("ud_v6", v.roce_packet(&[v.ip6(0, 1)], &ud)),
        ("ud_v4", v.roce_packet(&[v.ip4(0, 1, &[])], &ud)),
        ("proxy_cn_v4", v.proxy_cn(true, &v.data_v4())),
        ("proxy_cn_v6", v.proxy_cn(false, &v.data_v6_options())),
        ("proxy_cn_v6_about_v4", v.proxy_cn(false, &v.data_v4())),
        ("proxy_cn_v4_cut", v.proxy_cn(true, &quoted4)),
        ("proxy_cn_v6_cut", v.proxy_cn(false, &quoted6)),
        (
            "wan_fcn",
            v.broken(build(&[v.ip6(2, 0), v.udp(5000, 1022), Part::Bytes(&fcn)])),
        ),
        (
            "connect_request_v4",
            v.cm(true, v.connect_request(ends4, ends6)),
        ),
        (
            "connect_request_v6",
            v.cm(false, v.connect_request(ends6, ends4)),
        ),
        ("connect_reply", v.cm(true, reply)),
        ("disconnect_request", v.cm(false, down)),
        ("bgp_v6", v.summed(v.ip6(0, 1), 6, tcp.clone(), 16)),
        ("bgp_v4", v.summed(v.ip4(0, 1, &[]), 6, tcp, 16)),
        ("tcp_v6", v.summed(v.ip6(0, 1), 6, web, 16)),
        ("ospf3", v.summed(v.ip6(0, 1), 89, ospf, 12)),
        (
            "unreachable_v4",
            v.icmp(v.ip4(1, 0, &[]), [3, 3, 0, 0, 0, 0, 0, 0], &quoted4),
        ),
        (
            "unreachable_v4_extended",
            v.icmp(v.ip4(1, 0, &[]), [3, 3, 0, 0, 0, 32, 0, 0], &extended4),
        ),
        (
            "redirect_v4",
            v.icmp(v.ip4(1, 0, &[]), redirect4, &v.data_v4()),
        ),
        (
            "parameter_problem_v6",
            v.icmp(v.ip6(0, 2), [4, 2, 0, 0, 0, 0, 0, 42], &v.fast_cnp(one)),
        ),
        (
            "too_big_v6",
            v.icmp(v.ip6(2, 0), [2, 0, 0, 0, 0, 0, 5, 0], &quoted6),
        ),
        (
            "exceeded_v6_extended",
            v.icmp(v.ip6(1, 0), [3, 0, 0, 0, 16, 0, 0, 0], &extended),
        ),
        ("unreachable_v6", unreachable.clone()),
        (
            "quoted_twice",
            v.icmp(
                v.ip6(1, 0),
                [1, 4, 0, 0, 0, 0, 0, 0],
                &v.proxy_cn(false, &v.data_v4()),
            ),
        ),
        (
            "solicitation",
            v.icmp(v.ip6(0, 1), [135, 0, 0, 0, 0, 0, 0, 0], &target),
        ),
        (
            "redirect_v6",
            v.icmp(v.ip6(0, 1), [137, 0, 0, 0, 0, 0, 0, 0], &redirect6),
        ),
        (
            "echo",
            v.icmp(v.ip6(0, 1), [128, 0, 0, 0, 0, 1, 0, 1], &[5; 11]),
        ),
        ("arp", arp),
        ("dns", v.broken(dns.clone())),
        ("first_fragment", build(&[v.ip6(0, 1), fragment, first])),
        (
            "later_fragment",
            build(&[v.ip6(0, 1), later, Part::Bytes(&[9; 30])]),
        ),
    ];
    list.into_iter()
        .map(|(name, p)| (name.to_owned(), p))
        .collect()
}

/// Returns a datagram of the unreliable service that ends in the middle of its DETH.
pub fn ud_without_deth(v: &Values) -> Vec<u8> {
    let bth = v.bth(Opcode::UD_SEND_ONLY, v.qp);
    let ip = v.roce_packet(&[v.ip4(0, 1, &[])], &[bth, Part::Bytes(&[0xA5; 4])]);
    ethernet("ud", &ip)
}

/// Returns Ethernet frames with all of [`packets`] in every tunnel.
pub fn wrapped(v: &Values) -> Vec<(String, Vec<u8>)> {
    let tag = |id| Part::Vlan {
        id,
        priority: 3,
        service: false,
    };
    let mpls = |label| Part::Mpls {
        label,
        traffic_class: 0,
        ttl: 64,
    };
    let segments = [v.v6[5], v.v6[2]];
    let routing = |left| Part::SegmentRouting {
        left,
        segments: &segments,
    };
    let vxlan = [v.udp(v.port, 4789), Part::Vxlan { vni: 42 }, MAC];
    let gre = |checksum, sequence| Part::Gre {
        checksum,
        key: Some(7),
        sequence,
    };
    let erspan = Erspan::II(Erspan2::default());
    let options = &[];
    let geneve = [v.udp(v.port, 6081), Part::Geneve { vni: 42, options }];
    let tunnels: Vec<(&str, Vec<Part<'_>>)> = vec![
        ("plain", vec![]),
        ("vlans", vec![tag(100), tag(7)]),
        ("mpls", vec![mpls(16), mpls(17)]),
        ("vxlan_v6", [&[v.ip6(2, 3)], &vxlan[..]].concat()),
        (
            "vxlan_v4_vlan",
            [&[v.ip4(2, 3, &[1, 1, 1, 0])], &vxlan[..], &[tag(5)]].concat(),
        ),
        ("srv6", vec![v.ip6(2, 4), routing(1)]),
        (
            "vxlan_srv6",
            [&[v.ip6(2, 4), routing(1)], &vxlan[..]].concat(),
        ),
        ("ip6_in_ip4", vec![v.ip4(2, 3, &[])]),
        ("gre_summed", vec![v.ip4(2, 3, &[]), gre(true, None)]),
        (
            "erspan_2",
            vec![v.ip6(2, 3), gre(false, Some(1)), Part::Erspan(erspan), MAC],
        ),
        (
            "geneve",
            [&[v.ip4(2, 3, &[])], &geneve[..], &[MAC, tag(5)]].concat(),
        ),
        (
            "three_deep",
            vec![v.ip6(2, 3), v.ip4(2, 3, &[]), v.ip6(4, 5), routing(0)],
        ),
    ];
    let mut all = Vec::new();
    for (name, ip) in packets(v) {
        let ether_type = u16::from_be_bytes(ether_type(&name, &ip));
        let part = Part::Payload {
            ether_type,
            protocol: if ether_type == 0x0800 { 4 } else { 41 },
            bytes: &ip,
        };
        for (tunnel, outer) in &tunnels {
            // ARP only follows an EtherType.
            if name == "arp"
                && !tunnel.contains("plain")
                && !tunnel.contains("vlan")
                && !tunnel.contains("vxlan")
            {
                continue;
            }
            let frame = build(&[&[MAC], &outer[..], &[part]].concat());
            all.push((format!("{name} in {tunnel}"), frame));
        }
    }
    all
}
