//! Writes the seeds of every fuzz target into `corpus/`: messages composed by this crate, and some
//! with one wrong octet. Each run writes the same octets.

#[path = "../tests/frame_support/mod.rs"]
mod frame_support;

use fcn_wire::bth::{BthRepr, Opcode, Qp};
use fcn_wire::compose::{Part, UdpChecksum};
use fcn_wire::frame::LinkType;
use fcn_wire::ioam::OptType;
use fcn_wire::sflow::{DatagramRepr, FlowSample, Port, RawRepr};
use fcn_wire_fuzz::targets::{FRAME_PREFIX, LINKS};
use frame_support as frames;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

struct Seeds {
    folder: PathBuf,
    count: usize,
}

impl Seeds {
    fn put(&mut self, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let folder = self.folder.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("seed_{name}")), bytes)?;
        self.count += 1;
        Ok(())
    }

    /// Writes seeds for a target that takes a frame: complete, cut in the middle, of the default
    /// profile.
    fn frame(&mut self, target: &str, name: &str, link: LinkType, bytes: &[u8]) -> io::Result<()> {
        let link = LINKS.iter().position(|known| *known == link).unwrap_or(0);
        let prefix: [u8; FRAME_PREFIX] = [link as u8, 0, 0, 0, 0x80];
        let bytes = [&prefix, bytes].concat();
        self.put(target, name, &bytes)
    }
}

fn main() -> io::Result<()> {
    let mut seeds = Seeds {
        folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"),
        count: 0,
    };
    frames(&mut seeds)?;
    options(&mut seeds)?;
    messages(&mut seeds)?;
    routing(&mut seeds)?;
    profiles(&mut seeds)?;
    println!("{} seeds in {}", seeds.count, seeds.folder.display());
    Ok(())
}

fn frames(seeds: &mut Seeds) -> io::Result<()> {
    let samples = frames::samples();
    let fast_cnp = &samples[3];
    assert_eq!(fast_cnp.name, "fast_cnp_1");
    for sample in &samples {
        let bytes = sample.wrapped_in(&[]);
        seeds.frame("notification", sample.name, LinkType::Ethernet, &bytes)?;
        seeds.frame("rewrite", sample.name, LinkType::Ethernet, &bytes)?;
    }
    // One of several similar frames is sufficient: a target keeps few.
    let alike = |name: &str| {
        [
            "gre",
            "nvgre",
            "erspan_1",
            "erspan_2",
            "geneve_ip",
            "vxlan_gpe",
            "vxlan_gpe_ip",
            "gtp_u",
            "vlan",
            "ip6_in_ip6",
            "ip6_in_ip4",
            "srv6",
            "vxlan_v6",
            // All of them are in `tags`.
            "vn_tag",
            "e_tag_vlan",
            "arista_64",
            "arista_48",
            "cisco_metadata",
            "csig",
            "service_instance",
        ]
        .contains(&name)
    };
    for (name, outer) in (frames::wrappings().into_iter()).filter(|(name, _)| !alike(name)) {
        let bytes = fast_cnp.wrapped_in(&outer);
        seeds.frame("frame", name, LinkType::Ethernet, &bytes)?;
    }
    seeds.frame("frame", "tags", LinkType::Ethernet, &frames::tags_frame(fast_cnp))?;
    let bth = BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(0x1234), 7).to_bytes();
    let ends = [1, 2].map(|end| [0xFE80, 0, 0, 0, 2, 0xC9FF, 0xFE00, end].into());
    let v1 = frames::roce_v1_frame(ends, &[&bth[..], &[7; 16]].concat());
    seeds.frame("frame", "roce_v1", LinkType::Ethernet, &v1)?;
    seeds.frame("frame", "snap", LinkType::Ethernet, &frames::snap_frame(fast_cnp))?;
    for target in ["frame", "notification"] {
        seeds.frame(target, "isis", LinkType::Ethernet, &frames::isis_frame(&[]))?;
        seeds.frame(target, "pfc", LinkType::Ethernet, &frames::pfc_frame())?;
    }
    sampled(seeds, samples.iter())?;
    rewritten(seeds)?;
    seeds.frame("frame", "raw", LinkType::RawIp, &fast_cnp.ip)?;
    let mut cooked = [0; 16];
    cooked[14..].copy_from_slice(&[0x86, 0xDD]);
    let cooked = [&cooked[..], &fast_cnp.ip].concat();
    seeds.frame("frame", "cooked", LinkType::LinuxCooked, &cooked)?;
    let mut cooked = [0; 20];
    cooked[..2].copy_from_slice(&[0x86, 0xDD]);
    let cooked = [&cooked[..], &fast_cnp.ip].concat();
    seeds.frame("frame", "cooked_2", LinkType::LinuxCooked2, &cooked)?;
    let null = [&[30, 0, 0, 0][..], &fast_cnp.ip].concat();
    seeds.frame("frame", "null", LinkType::Null, &null)?;
    let mut cnp = BthRepr::new(Opcode::IB_CNP, Qp::truncate(0x1234), 0).to_bytes().to_vec();
    cnp.extend([0; 16]);
    let gids = [1, 2].map(|end| [0xFE80, 0, 0, 0, 2, 0xC9FF, 0xFE00, end].into());
    let global = frames::erf(21, 1, &frames::infiniband(Some(gids), &cnp));
    seeds.frame("frame", "erf_infiniband", LinkType::Erf, &global)?;
    let local = frames::infiniband(None, &cnp);
    seeds.frame("notification", "infiniband", LinkType::InfiniBand, &local)?;
    let ethernet = frames::erf(2, 0, &fast_cnp.wrapped_in(&[]));
    seeds.frame("notification", "erf", LinkType::Erf, &ethernet)
}

/// Writes sFlow datagrams with the samples: over IPv4 and IPv6, one with a port that needs an
/// expanded sample, one cut.
fn sampled<'a>(
    seeds: &mut Seeds,
    samples: impl Iterator<Item = &'a frames::Sample> + Clone,
) -> io::Result<()> {
    for (name, agent, port, missing) in [
        ("ipv4", IpAddr::from([10, 0, 0, 1]), 3, 0u16),
        ("ipv6", IpAddr::from([0xFD; 16]), 3, 0),
        ("expanded", IpAddr::from([10, 0, 0, 1]), u32::MAX, 0),
        ("cut", IpAddr::from([10, 0, 0, 1]), 3, 200),
    ] {
        let header = DatagramRepr {
            agent,
            sub_agent: 1,
            sequence: 2,
            uptime: 3,
        };
        let mut out = [0; 1400];
        let mut writer = header.begin(&mut out).map_err(io::Error::other)?;
        for sample in samples.clone().take(4) {
            let frame = sample.wrapped_in(&[]);
            let flow = FlowSample {
                rate: 1000,
                input: Port::from_index(port),
                ..FlowSample::default()
            };
            let raw = RawRepr {
                protocol: 1,
                frame_length: frame.len() as u32 + 4,
                stripped: 4,
                header: frame.get(..128).unwrap_or(&frame),
            };
            writer.push(&flow, &raw).map_err(io::Error::other)?;
        }
        let len = writer.finish();
        let bytes = [&missing.to_be_bytes(), &out[..len - usize::from(missing)]].concat();
        seeds.put("sflow", name, &bytes)?;
    }
    Ok(())
}

/// Writes seeds for data that only rewriting inspects: checksums of tunnels, quoted packets, ARP.
fn rewritten(seeds: &mut Seeds) -> io::Result<()> {
    let (data_v4, data_v6) = (frames::data_v4(), frames::data_v6());
    let payload = |ether_type, protocol, bytes| Part::Payload {
        ether_type,
        protocol,
        bytes,
    };
    let quote = |head: [u8; 8], quoted: &[u8]| [&head[..], quoted].concat();
    let unreachable = quote([1, 4, 0, 0, 0, 0, 0, 0], &data_v6);
    let redirect = quote([5, 1, 0, 0, 192, 0, 2, 7], &data_v4);
    let target = quote([137, 0, 0, 0, 0, 0, 0, 0], &[0x20; 32]);
    let arp = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2,
    ];
    let summed = Part::Udp {
        source: 50000,
        destination: 4789,
        checksum: UdpChecksum::Compute,
    };
    let v6 = frames::v6(frames::SWITCH, frames::SENDER);
    let v4 = frames::v4(&[]);
    for (name, parts) in [
        ("unreachable", vec![v6, payload(0, 58, &unreachable)]),
        ("redirect_v4", vec![v4, payload(0, 1, &redirect)]),
        ("redirect_v6", vec![v6, payload(0, 58, &target)]),
        ("arp", vec![payload(0x0806, 0, &arp)]),
        (
            "tunnel",
            vec![
                v4,
                summed,
                Part::Vxlan { vni: 1 },
                frames::MAC,
                payload(0x86DD, 41, &data_v6),
            ],
        ),
    ] {
        let frame = frames::build(&[&[frames::MAC][..], &parts].concat());
        seeds.frame("rewrite", name, LinkType::Ethernet, &frame)?;
    }
    seeds.frame("rewrite", "raw", LinkType::RawIp, &data_v4)
}

/// Writes options on their own: type, position, data; the IOAM option; the headers that contain
/// them.
fn options(seeds: &mut Seeds) -> io::Result<()> {
    let receiver = frames::RECEIVER.octets();
    seeds.put(
        "fast_cnp",
        "option_1",
        &[&[0x9E, 0][..], &receiver].concat(),
    )?;
    seeds.put(
        "fast_cnp",
        "hop_by_hop",
        &[&[0x9E, 0x80][..], &receiver].concat(),
    )?;
    for (name, opt_type) in [
        ("preallocated", OptType::Preallocated),
        ("incremental", OptType::Incremental),
    ] {
        let trace = frames::trace(opt_type);
        let ioam = [&[0, opt_type.code()][..], &trace].concat();
        seeds.put("ioam", name, &ioam)?;
        seeds.put(
            "fast_cnp",
            name,
            &[&[0x9F, 2][..], &ioam, &receiver].concat(),
        )?;
        // NodeLen, trace type, RemainingLen (each without the two octets before the trace).
        for (what, at, value) in [
            ("node_len_0", 4, 0x00),
            ("undefined_bits", 7, 0xFC),
            ("snapshot", 8, 0x02),
            ("remaining_127", 5, 0x7F),
            ("wide_fields", 7, 0xE0),
        ] {
            let mut broken = ioam.clone();
            broken[at] |= value;
            if value == 0 {
                broken[at] = 0;
            }
            seeds.put("ioam", &format!("{name}_{what}"), &broken)?;
        }
    }
    seeds.put(
        "proxy_address",
        "plain",
        &[&[0x1E, 0][..], &receiver].concat(),
    )?;
    seeds.put("ioam", "nothing", &[0, 0])?;
    seeds.put("proxy_address", "short", &[0x1E, 0x80, 1, 2, 3])?;
    let trace = frames::trace(OptType::Preallocated);
    let trace = Some((OptType::Preallocated, &trace[..]));
    for (name, outer) in frames::wrappings() {
        let outer = match outer.as_slice() {
            [Part::Ipv6 { .. }, between @ ..] => between,
            _ => continue,
        };
        if outer.iter().any(|part| {
            matches!(
                part,
                Part::Ethernet { .. } | Part::Gre { .. } | Part::Udp { .. }
            )
        }) {
            continue;
        }
        seeds.put("ipv6_options", name, &frames::fast_cnp(outer, trace))?;
    }
    // From the options header on.
    let packet = frames::fast_cnp(&[], trace);
    seeds.put("ipv6_options", "header", &packet[40..])?;
    let data = frames::data_v6();
    seeds.put("ipv6_options", "hop_by_hop", &data[40..])
}

fn messages(seeds: &mut Seeds) -> io::Result<()> {
    for sample in frames::samples() {
        let udp = match sample.ip[0] >> 4 {
            4 => usize::from(sample.ip[0] & 15) * 4,
            _ => {
                fcn_wire::Frame::parse(&sample.ip, 0, LinkType::RawIp, &fcn_wire::Profile::DEFAULT)
                    .ip()
                    .map_or(40, |ip| ip.payload)
            }
        };
        let payload = &sample.ip[udp + 8..];
        match &sample.ip[udp + 2..udp + 4] {
            [0x12, 0xB7] => {
                seeds.put("roce", sample.name, payload)?;
                let mut input = vec![udp as u8, 3];
                input.extend(&sample.ip);
                seeds.put("icrc", sample.name, &input)?;
            }
            [0x03, 0xFD] => {
                let outer = u8::from(sample.ip[0] >> 4 == 6);
                seeds.put(
                    "proxy_cn",
                    sample.name,
                    &[&[outer | 4][..], payload].concat(),
                )?;
                let header = [&[outer][..], &payload[..payload.len().min(44)]].concat();
                seeds.put("proxy_cn", &format!("{}_short", sample.name), &header)?;
            }
            [0x03, 0xFE] => seeds.put("wan_fcn", sample.name, payload)?,
            _ => {}
        }
    }
    seeds.put("wan_fcn", "reserved", &[0, 0, 1, 0xFF, 9])?;
    for opcode in [
        Opcode::RC_READ_REQUEST,
        Opcode::RC_ATOMIC_ACKNOWLEDGE,
        Opcode::RC_COMPARE_SWAP,
        Opcode::UC_WRITE_ONLY_IMM,
        Opcode::UD_SEND_ONLY_IMM,
    ] {
        let mut bytes = vec![0x11; 48];
        bytes[..12].copy_from_slice(&BthRepr::new(opcode, Qp::GSI, 7).to_bytes());
        seeds.put("roce", &format!("opcode_{:02x}", opcode.0), &bytes)?;
    }
    seeds.put("pfc", "one_class", &frames::pfc_frame()[14..])?;
    seeds.put("pfc", "pause", &[0, 1, 0xFF, 0xFF])?;
    seeds.put("rdma_cm", "disconnect_request", &frames::mad())?;
    for (name, attribute) in [
        ("request", 0x10),
        ("reply", 0x13),
        ("ready", 0x14),
        ("reject", 0x12),
    ] {
        let mut mad = frames::mad();
        mad[17] = attribute;
        mad[24..]
            .iter_mut()
            .enumerate()
            .for_each(|(i, octet)| *octet |= i as u8);
        seeds.put("rdma_cm", name, &mad)?;
    }
    Ok(())
}

fn routing(seeds: &mut Seeds) -> io::Result<()> {
    let two = [frames::bgp(), frames::bgp()].concat();
    let messages = [
        ("isis", frames::lsp()),
        ("ospf2", frames::ospf2()),
        ("ospf3", frames::ospf3()),
        ("bgp", frames::bgp()),
        ("bgp", two),
    ];
    for (i, (target, bytes)) in messages.iter().enumerate() {
        seeds.put(target, &format!("message_{i}"), bytes)?;
        let mut wrong = bytes.clone();
        let at = wrong.len() * 2 / 3;
        wrong[at] ^= 0xFF;
        seeds.put(target, &format!("message_{i}_wrong"), &wrong)?;
    }
    // Octets from which the targets draw their values.
    let octets: Vec<u8> = (0..160).map(|i: u32| (i * 89 + 7) as u8).collect();
    for target in ["isis", "ospf2", "ospf3", "bgp"] {
        seeds.put(target, "drawn", &octets)?;
        seeds.put(target, "drawn_other", &octets[1..])?;
    }
    Ok(())
}

fn profiles(seeds: &mut Seeds) -> io::Result<()> {
    let toml =
        "# Code points\nfast_cnp_option1 = 0x88\nwan_fcn_port = 900\nicrc_reading = \"A2\"\n";
    seeds.put("profile", "toml", toml.as_bytes())?;
    seeds.put("profile", "refused", b"fast_cnp_option1 = 0x1E")?;
    seeds.put(
        "profile",
        "overrides",
        b"fast_cnp_option2=0x89\nproxy_cn_port = 1000\nicrc_reading=c\nioam_option=0\nrocev2_port=0",
    )
}
