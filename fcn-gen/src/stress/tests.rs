//! Frames of stresses: each conforms to its format, all are different, and kinds are distributed
//! according to the mix.

use super::*;
use crate::macs::Rewrite;
use crate::scenario::{Play, Source, load};
use fcn_link::sender::{Next, Source as _};
use fcn_wire::frame::Upper;
use fcn_wire::{Findings, Frame, IcrcCheck, Kind as Notified, LinkType, Message, Notification};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

const MACS: Rewrite = Rewrite {
    source: Some([2, 0, 0, 0, 0, 1]),
    destination: Some([2, 0, 0, 0, 0, 2]),
};

/// Loads `stress-mix` with these settings.
pub(super) fn stress(sets: &[&str]) -> Stress {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = load(&Source::Builtin("stress-mix".to_owned()), &sets);
    match scenario.unwrap_or_else(|error| panic!("{error}")).play {
        Play::Stress(stress) => *stress,
        _ => panic!("no stress"),
    }
}

/// Loads a stress with only frames of `kind`.
fn only(kind: Kind, sets: &[&str]) -> Stress {
    let mix = format!("stress.mix={{ {} = 1 }}", kind.id());
    stress(&[&[mix.as_str()], sets].concat())
}

/// A source with `slots` slots and their octets, as in a backend.
struct Link {
    source: StressSource,
    slots: Vec<Vec<u8>>,
    next: usize,
}

impl Link {
    fn new(stress: &Stress, queue: (u32, u32), slots: usize) -> Self {
        let prototypes = Prototypes::new(stress).unwrap();
        let len = prototypes.longest();
        let source = StressSource::new(stress, &prototypes, queue, slots, MACS).unwrap();
        Self {
            source,
            slots: vec![vec![0xEE; len]; slots],
            next: 0,
        }
    }

    fn frame(&mut self) -> &[u8] {
        let Next::Frame { len, .. } = self.source.peek() else {
            panic!("no frame");
        };
        let at = self.next;
        self.next = (at + 1) % self.slots.len();
        self.source.fill(at, &mut self.slots[at]);
        &self.slots[at][..len]
    }
}

/// Returns the defect of a frame, if it has one.
fn complaint(stress: &Stress, bytes: &[u8]) -> Option<String> {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &stress.profile);
    let mut findings = Findings::default();
    frame.check(IcrcCheck::On, &mut findings);
    if !findings.as_slice().is_empty() {
        return Some(format!("{:?}", findings.as_slice()));
    }
    if frame.is_roce() && !matches!(frame.verify_icrc(), fcn_wire::icrc::Verdict::Good(_)) {
        return Some("ICRC".to_owned());
    }
    if let Some(datagram) = frame.datagram() {
        let packet = &bytes[datagram.ip.start..];
        if let Some(wrong) = checksums(packet) {
            return Some(wrong.to_owned());
        }
    }
    None
}

/// Checks IPv4 and UDP checksums with another implementation.
fn checksums(packet: &[u8]) -> Option<&'static str> {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    if let Some(NetSlice::Ipv4(ip)) = &sliced.net {
        let header = ip.header().to_header();
        if header.header_checksum != header.calc_header_checksum() {
            return Some("IPv4 checksum");
        }
    }
    let Some(TransportSlice::Udp(udp)) = &sliced.transport else {
        return Some("no UDP");
    };
    if udp.checksum() == 0 {
        return None;
    }
    let header = udp.to_header();
    let right = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
        }
        Some(NetSlice::Ipv6(ip)) => {
            header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
        }
        _ => return Some("no IP"),
    };
    (right != Ok(udp.checksum())).then_some("UDP checksum")
}

/// Determines the kind of a frame from its octets.
fn kind_of(stress: &Stress, bytes: &[u8]) -> Kind {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &stress.profile);
    if let Upper::MacControl(..) = frame.upper() {
        return Kind::Pfc;
    }
    let v6 = frame.ip().unwrap().source.is_ipv6();
    let pick = |six, four| if v6 { six } else { four };
    match frame.message() {
        Message::Cnp(_) => pick(Kind::Cnp, Kind::CnpIpv4),
        Message::FastCnp(_) => match Notification::from_frame(&frame).unwrap().kind {
            Notified::FastCnp1 => Kind::FastCnp1,
            _ => Kind::FastCnp2,
        },
        Message::ProxyCn(_) => pick(Kind::ProxyCn, Kind::ProxyCnIpv4),
        Message::WanFcn(_) => Kind::WanFcn,
        _ => pick(Kind::Data, Kind::DataIpv4),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn frames_conform_to_their_format(
        kind in 0usize..10, flows in 1u32..5_000, more in 0u32..100_000, seed in 0u32..1 << 30, payload in 0u32..600, nodes in 0usize..=MOST_TRACE_NODES,
        ce in 0.0f64..=1.0, opcode in prop::sample::select(&["send-only", "send-middle", "write-only", "write-middle"][..]),
    ) {
        let kind = Kind::ALL[kind];
        let sets = [
            format!("stress.flows={flows}"), format!("stress.qps={}", flows + more), format!("seed={seed}"),
            format!("stress.payload={}", payload * 4), format!("stress.trace_nodes={nodes}"), format!("stress.ce={ce}"),
            format!("stress.opcode={opcode}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let stress = only(kind, &sets);
        let mut link = Link::new(&stress, (0, 1), 3);
        for _ in 0..400 {
            let frame = link.frame();
            prop_assert_eq!(complaint(&stress, frame), None, "{:?}", kind);
            prop_assert_eq!(kind_of(&stress, frame), kind);
        }
    }
}

#[test]
fn mix_is_kept_even_if_slots_change_kinds() {
    let stress = stress(&["stress.mix.pfc=2", "flows=37", "qps=1001"]);
    // Coprime to the pattern's length, so that every slot gets every kind.
    let mut link = Link::new(&stress, (0, 1), 29);
    let mut seen: HashMap<Kind, u64> = HashMap::new();
    let frames = 5_000;
    for _ in 0..frames {
        let frame = link.frame();
        assert_eq!(complaint(&stress, frame), None);
        *seen.entry(kind_of(&stress, frame)).or_default() += 1;
    }
    let expected: HashMap<Kind, u64> = stress.kinds_of(frames).into_iter().collect();
    assert_eq!(seen, expected);
    assert_eq!(seen.len(), Kind::ALL.len());
}

#[test]
fn frames_do_not_depend_on_slots() {
    let stress = stress(&[]);
    let mut reference = Link::new(&stress, (1, 3), 1);
    for slots in [2, 31, 64] {
        let mut link = Link::new(&stress, (1, 3), slots);
        let mut reference = Link::new(&stress, (1, 3), 1);
        for _ in 0..2_000 {
            assert_eq!(link.frame(), reference.frame());
        }
    }
    reference.source.skip();
    let second = reference.frame().to_vec();
    let mut again = Link::new(&stress, (1, 3), 1);
    again.frame();
    assert_eq!(again.frame(), second);
}

#[test]
fn queues_share_flows_without_duplicates() {
    let stress = only(Kind::Data, &["stress.flows=100", "stress.qps=1000"]);
    let mut flows: HashMap<(Vec<u8>, u16), u32> = HashMap::new();
    let mut frames = HashSet::new();
    for queue in 0..3 {
        let mut link = Link::new(&stress, (queue, 3), 64);
        for _ in 0..5_000 {
            let frame = link.frame();
            let pair = frame[22..54].to_vec();
            assert_eq!(*flows.entry((pair, 0)).or_insert(queue), queue);
            assert!(frames.insert(frame.to_vec()));
        }
    }
    assert_eq!(flows.len(), 100);
    let prototypes = Prototypes::new(&stress).unwrap();
    assert!(StressSource::new(&stress, &prototypes, (0, 101), 8, MACS).is_err());
}

/// No two frames of a kind are equal within a hundred laps. (A pause has only 524,280 values.)
#[test]
fn frames_of_a_kind_differ() {
    let hasher = RandomState::new();
    for kind in Kind::ALL {
        let (flows, frames) = match kind {
            Kind::Pfc => (1, 100_000),
            _ => (300, 100_000),
        };
        let flows = format!("stress.flows={flows}");
        // Few QPs, so that there are many laps.
        let stress = only(kind, &[&flows, "stress.qps=1000", "stress.payload=64"]);
        let mut link = Link::new(&stress, (0, 1), 64);
        let mut seen = HashSet::with_capacity(frames);
        for _ in 0..frames {
            seen.insert(hasher.hash_one(link.frame()));
        }
        assert_eq!(seen.len(), frames, "{kind:?}");
    }
}

#[test]
fn a_million_qps_are_all_used() {
    for kind in [Kind::Data, Kind::FastCnp1] {
        let stress = only(
            kind,
            &[
                "stress.flows=10000",
                "stress.qps=1100000",
                "stress.payload=64",
            ],
        );
        assert!(stress.connections > 1 << 20);
        let mut link = Link::new(&stress, (0, 1), 64);
        let (mut qps, mut flows) = (HashSet::new(), HashSet::new());
        for n in 0..stress.connections {
            let bytes = link.frame();
            // Offsets for kinds that have these fields, after whatever headers precede them.
            let (ip, bth) = match kind {
                Kind::Data => (22..54, 14 + 40 + 8),
                _ => (22..54, 14 + 40 + 24 + 8),
            };
            let qp = [0, bytes[bth + 5], bytes[bth + 6], bytes[bth + 7]];
            qps.insert(u32::from_be_bytes(qp));
            if n < stress.flows {
                flows.insert(bytes[ip].to_vec());
            }
            if n % 50_000 == 0 {
                assert_eq!(complaint(&stress, bytes), None);
            }
        }
        assert_eq!(qps.len(), stress.connections as usize, "{kind:?}");
        // A Fast CNP comes from a switch, so its addresses do not identify flows.
        let pairs = if kind == Kind::FastCnp1 {
            1_600
        } else {
            10_000
        };
        assert_eq!(flows.len(), pairs, "{kind:?}");
    }
}

#[test]
fn laps_without_a_psn_differ_in_entropy() {
    let stress = only(Kind::CnpIpv4, &["stress.flows=1", "stress.qps=1"]);
    let mut link = Link::new(&stress, (0, 1), 4);
    let mut seen = HashSet::new();
    for _ in 0..100_000 {
        assert!(seen.insert(link.frame().to_vec()));
    }
    let stress = only(Kind::Cnp, &["stress.flows=1", "stress.qps=1"]);
    let mut link = Link::new(&stress, (0, 1), 4);
    seen.clear();
    for _ in 0..100_000 {
        let frame = link.frame();
        assert!(seen.insert(frame.to_vec()));
    }
    assert_eq!(complaint(&stress, link.frame()), None);
}

#[test]
fn share_of_marked_packets_is_kept() {
    for ce in [0.0, 0.25, 1.0] {
        let stress = only(Kind::Data, &[&format!("stress.ce={ce}")]);
        let mut link = Link::new(&stress, (0, 1), 8);
        let marked = (0..4_000)
            .filter(|_| {
                let word = u32::from_be_bytes(*link.frame()[14..].first_chunk().unwrap());
                word >> 20 & 3 == 3
            })
            .count();
        assert_eq!(marked as f64, 4_000.0 * ce);
    }
}

#[test]
fn levels_alternate_and_notifications_name_their_flow() {
    for kind in [Kind::ProxyCn, Kind::ProxyCnIpv4, Kind::WanFcn] {
        let stress = only(kind, &["stress.levels=[0, 3, 7]"]);
        let mut link = Link::new(&stress, (0, 1), 8);
        let mut levels = HashSet::new();
        for _ in 0..9 {
            let bytes = link.frame().to_vec();
            let frame = Frame::parse(&bytes, bytes.len(), LinkType::Ethernet, &stress.profile);
            let read = Notification::from_frame(&frame).unwrap();
            levels.insert(read.level);
        }
        // 0 in a WAN FCN means that no level is given.
        let lowest = (kind != Kind::WanFcn).then_some(0);
        assert_eq!(
            levels,
            HashSet::from([lowest, Some(3), Some(7)]),
            "{kind:?}"
        );
    }
}
