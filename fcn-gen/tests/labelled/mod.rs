//! CNPs with a known origin, and fcn-top's verdict on them.

#[path = "../watched/mod.rs"]
mod watched;

use fcn_gen::scenario::{Source, builtin};
use fcn_top::record::{Maker, QpRecord, origin};
use fcn_wire::header::ethernet;
use fcn_wire::{Frame, Kind, LinkType, Notification, Profile, ip};
use std::collections::BTreeMap;
use std::net::IpAddr;
use watched::watch;

/// Node that generates a scenario's CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    /// Receivers.
    Receiver,
    /// Receivers, from a second address of theirs.
    SecondAddress,
    /// Receivers in the same network as the senders, without a router between them.
    Bridged,
    /// Receivers in the same network, from a second address of theirs.
    BridgedSecond,
    /// Another host of that network, with the receiver's address.
    Forged,
    /// A switch, with its own address.
    OwnName,
    /// A switch, with the receiver's address.
    InName,
    /// A switch, with the receiver's address and hop limit.
    Imitates,
    /// A proxy node.
    Proxy,
    /// An ingress PE.
    IngressPe,
}

impl Scene {
    pub const ALL: [Self; 10] = [
        Self::Receiver,
        Self::SecondAddress,
        Self::Bridged,
        Self::BridgedSecond,
        Self::Forged,
        Self::OwnName,
        Self::InName,
        Self::Imitates,
        Self::Proxy,
        Self::IngressPe,
    ];

    pub const fn about(self) -> &'static str {
        match self {
            Self::Receiver => "receivers",
            Self::SecondAddress => "receivers, from a second address",
            Self::Bridged => "receivers, without routers",
            Self::BridgedSecond => "the same, from a second address",
            Self::Forged => "another host, in the receiver's name",
            Self::OwnName => "a switch, in its own name",
            Self::InName => "a switch, in the receiver's name",
            Self::Imitates => "the same, with its hop limit",
            Self::Proxy => "a proxy node",
            Self::IngressPe => "an ingress PE",
        }
    }

    /// Returns the true origin.
    pub const fn maker(self) -> Maker {
        match self {
            Self::Receiver | Self::SecondAddress | Self::Bridged | Self::BridgedSecond => {
                Maker::Receiver
            }
            Self::Forged | Self::OwnName | Self::InName | Self::Imitates => Maker::Network,
            Self::Proxy => Maker::Proxy,
            Self::IngressPe => Maker::IngressPe,
        }
    }

    const fn scenario(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Receiver
            | Self::SecondAddress
            | Self::Bridged
            | Self::BridgedSecond
            | Self::Forged => ("switch-cnp", &["mechanism=cnp"]),
            Self::OwnName => ("switch-cnp", &["source=own"]),
            Self::InName => ("switch-cnp", &[]),
            Self::Imitates => ("switch-cnp", &["hop_limit=receiver"]),
            Self::Proxy => ("switch-cnp", &["mechanism=proxy"]),
            Self::IngressPe => ("wan-fcn", &[]),
        }
    }
}

/// Capture points: at the sender, two on the path, at the receiver, and two at once.
pub const PLACES: [(&str, &str); 5] = [
    ("the sender's link", r#"["leaf1:s1"]"#),
    ("a link between switches", r#"["leaf1:spine1"]"#),
    ("behind the congestion", r#"["spine1:leaf2"]"#),
    ("the receiver's link", r#"["leaf2:r1"]"#),
    (
        "sender's and receiver's links",
        r#"["leaf1:s1", "leaf2:r1"]"#,
    ),
];

/// Parameters of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub scene: Scene,
    pub place: usize,
    pub ipv4: bool,
    /// True if connections are set up by RDMA CM; otherwise the QPs have to be learnt from
    /// acknowledgements.
    pub rdma_cm: bool,
    /// True if equal-cost paths have one, two or three additional routers.
    pub uneven: bool,
    pub seed: u64,
}

impl Case {
    /// Returns the captures for that seed.
    pub fn all(seed: u64) -> impl Iterator<Item = Self> {
        let scenes = Scene::ALL.into_iter();
        scenes.flat_map(move |scene| {
            (0..PLACES.len() * 8).map(move |number| Self {
                scene,
                place: number / 8,
                ipv4: number & 1 == 1,
                rdma_cm: number & 2 == 2,
                uneven: number & 4 == 4,
                seed,
            })
        })
    }
}

/// Verdict on the CNPs about one QP, with the true origin.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    pub case: Case,
    /// True origin of at least 31 of 32 CNPs, by the ground truth; `None` if there is no such
    /// origin.
    pub truth: Option<Maker>,
    pub maker: Maker,
    pub evidence: origin::Evidence,
}

impl Judged {
    /// Returns true if it names the receiver although that sent none, or another origin although
    /// the receiver sent all.
    pub fn is_wrong(&self) -> bool {
        match (self.maker, self.truth) {
            (Maker::Unknown, _) | (_, None) => false,
            (Maker::ReceiverOrImitation, Some(truth)) => {
                let is_unlike = matches!(self.case.scene, Scene::OwnName | Scene::Forged);
                truth == Maker::Proxy || truth == Maker::Network && is_unlike
            }
            (Maker::Network, Some(truth)) => truth == Maker::Receiver,
            (maker, Some(truth)) => maker != truth,
        }
    }
}

/// Makes hosts appear to be in one network, as if no packet had passed a router: frames have the
/// MAC address of their source host. A CNP has that of `forger`, if there is one.
fn bridge(bytes: &mut [u8], forger: Option<[u8; 6]>) {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
    let Some(ip) = frame.ip().filter(|ip| ip.start == ethernet::LEN) else {
        return;
    };
    let is_cnp = Notification::from_frame(&frame).is_some_and(|gist| gist.kind == Kind::Cnp);
    let last = match ip.source {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => (address.to_bits() as u32) ^ (address.to_bits() >> 64) as u32,
    };
    let [a, b, c, d] = last.to_be_bytes();
    let mac = forger.filter(|_| is_cnp).unwrap_or([2, 1, a, b, c, d]);
    let (start, hops) = (ip.start, if ip.hop_limit > 64 { 255 } else { 64 });
    ip::set_hop_limit(&mut bytes[start..], hops);
    bytes[6..12].copy_from_slice(&mac);
}

/// Gives a CNP a second address of its host.
fn readdress(bytes: &mut [u8]) {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
    let is_cnp = Notification::from_frame(&frame).is_some_and(|gist| gist.kind == Kind::Cnp);
    let Some(ip) = (frame.ip()).filter(|ip| is_cnp && ip.start == ethernet::LEN) else {
        return;
    };
    // Words of an IPv4 header can be swapped without changing the checksum.
    match ip.source {
        IpAddr::V4(_) => {
            let (high, low) = (ip.start + 12, ip.start + 14);
            for at in 0..2 {
                bytes.swap(high + at, low + at);
            }
        }
        IpAddr::V6(_) => bytes[ip.start + 16] ^= 0x5A,
    }
}

/// Gives a CNP another initial hop limit than acknowledgements have, as some NICs do.
fn start_higher(bytes: &mut [u8]) {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
    let is_cnp = Notification::from_frame(&frame).is_some_and(|gist| gist.kind == Kind::Cnp);
    if let Some(ip) = frame.ip().filter(|ip| is_cnp && ip.start == ethernet::LEN) {
        let (start, hops) = (ip.start, ip.hop_limit.saturating_add(255 - 64));
        ip::set_hop_limit(&mut bytes[start..], hops);
    }
}

/// Reduces the hop limit of a routed packet by up to three, depending on its addresses and entropy.
fn lengthen(bytes: &mut [u8], seed: u64) {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
    let (Some(ip), Some(datagram)) = (frame.ip(), frame.datagram()) else {
        return;
    };
    if ip.start != ethernet::LEN || [64, 255].contains(&ip.hop_limit) {
        return;
    }
    let ends = [ip.source, ip.destination].map(|address| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64,
    });
    let entropy = u64::from(datagram.source_port) << 20 | u64::from(ip.flow_label);
    let mut hash = seed;
    for value in [ends[0], ends[1], entropy] {
        hash = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    let (start, hops) = (ip.start, ip.hop_limit.saturating_sub((hash % 4) as u8));
    ip::set_hop_limit(&mut bytes[start..], hops);
}

/// Returns the verdicts on all QPs of a capture.
pub fn judged(case: Case) -> Vec<Judged> {
    let (name, sets) = case.scene.scenario();
    let mut sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let (_, vantage) = PLACES[case.place];
    let vantage = match case.scene {
        Scene::IngressPe => vantage
            .replace("leaf1:spine1", "pe1:p1")
            .replace("spine1:leaf2", "p2:pe2"),
        _ => vantage.to_owned(),
    };
    sets.push(format!("seed={}", case.seed));
    sets.push(format!("vantage={vantage}"));
    sets.push(format!("ip={}", if case.ipv4 { 4 } else { 6 }));
    sets.push(format!("flow.load.rdma_cm={}", case.rdma_cm));
    let source = Source::Text {
        name: name.to_owned(),
        text: builtin::text(name).unwrap().to_owned(),
    };
    let (monitor, outcome) = watch(&source, &sets, |bytes| {
        if case.seed % 2 == 1 {
            start_higher(bytes);
        }
        if case.uneven {
            lengthen(bytes, case.seed);
        }
        if matches!(case.scene, Scene::Bridged | Scene::BridgedSecond) {
            bridge(bytes, None);
        }
        if case.scene == Scene::Forged {
            bridge(bytes, Some([2, 9, 9, 9, 9, 9]));
        }
        if matches!(case.scene, Scene::SecondAddress | Scene::BridgedSecond) {
            readdress(bytes);
        }
    });
    let mut makers: BTreeMap<(IpAddr, u32), BTreeMap<Maker, u64>> = BTreeMap::new();
    for note in &outcome.truth.notifications {
        if note.kind != Kind::Cnp.id() {
            continue;
        }
        let maker = match note.made_by.as_deref() {
            Some("receiver") if case.scene == Scene::Forged => Maker::Network,
            Some("receiver") => Maker::Receiver,
            Some("switch") => Maker::Network,
            Some("proxy") => Maker::Proxy,
            Some("ingress_pe") => Maker::IngressPe,
            other => panic!("{other:?}"),
        };
        let of_qp = makers
            .entry((note.destination, note.qp.unwrap()))
            .or_default();
        *of_qp.entry(maker).or_default() += note.total;
    }
    let judge = |row: QpRecord| {
        let (maker, evidence) = row.made_by.zip(row.made_by_evidence)?;
        let made = &makers[&(row.sender?, row.sender_qp?)];
        let all: u64 = made.values().sum();
        let most = made.iter().find(|(_, count)| **count * 32 >= all * 31);
        Some(Judged {
            case,
            truth: most.map(|(maker, _)| *maker),
            maker,
            evidence,
        })
    };
    monitor.rows().filter_map(|(_, row)| judge(row)).collect()
}
