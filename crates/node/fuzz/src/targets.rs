//! Properties that must hold for any octets. libFuzzer searches for octets that violate them; the
//! corpus test of `fcn-node` (`tests/corpus.rs`) runs the same functions over the committed corpus.
//!
//! An input is a set of settings and a series of steps, read from the front until it ends:
//! [`roles`] for all roles together, [`connections`] for connections learnt from RDMA CM. A
//! function panics if a role breaks a promise.

use fcn_node::access::list_contains;
use fcn_node::border::{Crossing, Side};
use fcn_node::congestion_point::{self, Ability, CongestionPoint, Marking, Verdict};
use fcn_node::limiter::Limits;
use fcn_node::reaction_point::detour::Detour;
use fcn_node::reaction_point::{self, Control, FlowId, Reaction, ReactionPoint, dcqcn, telemetry};
use fcn_node::{
    Border, Connections, DataPacket, DataPacketContext, FlowKey, IngressPe, NotificationPoint,
    OutgoingNotification, Proxy, Time, ingress_pe, notification_point, proxy,
};
use fcn_wire::bth::{BthRepr, Deth};
use fcn_wire::compose::{self, OptionPart, Part, UdpChecksum};
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::ioam::{IoamOption, OptType};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::pnc::Prefix;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::rdma_cm::{
    Cm, CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    MessageRepr, ReadyToUseRepr,
};
use fcn_wire::{Frame, LinkType, Message, Opcode, Profile, Qp};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A target: a function that must not panic for any octets.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the name of its folder in `corpus/`.
pub const ALL: &[(&str, Target)] = &[("roles", roles), ("connections", connections)];

/// Number of octets of settings before the steps of [`roles`].
pub const SETTINGS: usize = OWN_ADDRESS + 16;
/// Offset of the node's own IPv6 address in them.
pub const OWN_ADDRESS: usize = 8;

/// Steps of [`roles`]: value of the first octet, modulo the number of steps.
pub mod step {
    /// Number of steps.
    pub const ALL: u8 = 8;
    /// A frame: time (1), queue depth (1), dice (1), length (2), octets; Ethernet.
    pub const ETHERNET: u8 = 0;
    /// The same with an IP packet.
    pub const IP: u8 = 1;
    /// A data packet: time, depth, dice, ends (1), QP (1), options (1).
    pub const DATA: u8 = 2;
    /// An RDMA CM message: time, and the octets of a step of [`connections`](super::connections).
    pub const CM: u8 = 3;
    /// A notification: time, kind (1), ends (1), QP (1), length (1), octets of its quote or trace.
    pub const NOTIFICATION: u8 = 4;
    /// Opening of a flow: time, own QP (1), receiver (1), receiver's QP (1), rate (1).
    pub const OPEN: u8 = 5;
    /// Closing of a flow: time, index (1).
    pub const CLOSE: u8 = 6;
    /// Sending by a flow: time, index (1), octets (2).
    pub const SENT: u8 = 7;
}

/// Reads octets from the front; returns nothing after the end.
struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn two(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.next()?, self.next()?]))
    }

    /// Returns `len` octets, or as many as there are.
    fn some(&mut self, len: usize) -> &'a [u8] {
        let (some, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        some
    }
}

fn v6(octet: u8) -> IpAddr {
    let low = u16::from(octet & 3) + 1;
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, low, 0, 0, 0, 0, low))
}

fn v4(octet: u8) -> IpAddr {
    let low = (octet & 3) + 1;
    IpAddr::V4(Ipv4Addr::new(10, 0, low, low))
}

/// Decodes two addresses of one family from an octet: the lower half is one, the upper half the
/// other; bit 3 selects IPv4.
fn ends(octet: u8) -> (IpAddr, IpAddr) {
    let address = if octet & 8 == 0 { v6 } else { v4 };
    (address(octet), address(octet >> 4))
}

fn qp(octet: u8) -> Qp {
    Qp::truncate(u32::from(octet & 63))
}

fn parse(bytes: &[u8], link: LinkType) -> Frame<'_> {
    Frame::parse(bytes, bytes.len(), link, &Profile::DEFAULT)
}

fn ip(source: IpAddr, destination: IpAddr, class: u8) -> Option<Part<'static>> {
    Some(match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Part::Ipv4 {
            source,
            destination,
            tos: class,
            ttl: 64,
            id: 0,
            options: &[],
        },
        (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
            source,
            destination,
            traffic_class: class,
            flow_label: u32::from(class) << 3,
            hop_limit: 64,
        },
        _ => return None,
    })
}

const ROCE: Part<'_> = Part::Udp {
    source: 49152,
    destination: 4791,
    checksum: UdpChecksum::Zero,
};
const ICRC: Part<'_> = Part::Icrc(Policy::Compute(Reading::Covered));

/// Builds the RDMA CM message that the octets describe, in an IP packet: kind, ends, own and other
/// communication ID, QP. In addition to the five kinds, there are arbitrary octets of a MAD.
fn cm(octets: &mut Octets<'_>) -> Option<Vec<u8>> {
    let (kind, (source, destination)) = (octets.next()?, ends(octets.next()?));
    let (own, other) = (octets.next()?.into(), octets.next()?.into());
    // A few more numbers than there are QPs: 0 and 1 belong to no connection.
    let number = u32::from(octets.next()? & 63);
    let message: MessageRepr = match kind % 6 {
        0 => {
            let mut message =
                ConnectRequestRepr::roce((source, 5000), (destination, 18515)).ok()?;
            (message.local_comm_id, message.local_qpn) = (own, number);
            message.into()
        }
        1 => ConnectReplyRepr {
            local_comm_id: own,
            remote_comm_id: other,
            local_qpn: number,
            ..ConnectReplyRepr::default()
        }
        .into(),
        2 => ReadyToUseRepr {
            local_comm_id: own,
            remote_comm_id: other,
            ..ReadyToUseRepr::default()
        }
        .into(),
        3 => DisconnectRequestRepr {
            local_comm_id: own,
            remote_comm_id: other,
            remote_qpn: number,
            ..DisconnectRequestRepr::default()
        }
        .into(),
        _ => DisconnectReplyRepr {
            local_comm_id: own,
            remote_comm_id: other,
            ..DisconnectReplyRepr::default()
        }
        .into(),
    };
    let mut mad = CmRepr::new(7, message).to_bytes().ok()?;
    if kind % 6 == 5 {
        let len = usize::from(octets.next()?);
        let some = octets.some(len);
        mad[..some.len()].copy_from_slice(some);
    }
    let deth = Deth {
        qkey: GSI_Q_KEY,
        source_qp: Qp::GSI,
    };
    let packet = compose::packet(
        &[
            ip(source, destination, 2)?,
            ROCE,
            Part::Bth(BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, 1)),
            Part::Bytes(&deth.to_bytes()),
            Part::Bytes(&mad),
            ICRC,
        ],
        &Profile::DEFAULT,
    );
    packet.ok()
}

/// Checks [`Connections`]: for any messages, it stays within its limit, and never invents a QP.
pub fn connections(data: &[u8]) {
    let mut octets = Octets(data);
    let Some(capacity) = octets.next().map(|octet| usize::from(octet % 5)) else {
        return;
    };
    let mut connections = Connections::new(capacity);
    // A quarter as many half-open ones, but at least 16; two directions each.
    let most = 2 * (capacity.max(1) + 16);
    let mut announced = HashSet::new();
    for number in 0_u8.. {
        let Some(packet) = cm(&mut octets) else { break };
        let frame = parse(&packet, LinkType::RawIp);
        if let (Message::RdmaCm(_, cm), Some(ip)) = (frame.message(), frame.ip()) {
            match cm {
                Cm::ConnectRequest(request) => announced.insert((ip.source, request.local_qpn())),
                Cm::ConnectReply(reply) => announced.insert((ip.source, reply.local_qpn())),
                _ => false,
            };
        }
        connections.learn(&frame);
        if octets.0.is_empty() || number == u8::MAX {
            known(&mut connections, most, &announced);
        }
        if number == u8::MAX {
            break;
        }
    }
}

fn known(connections: &mut Connections, most: usize, announced: &HashSet<(IpAddr, u32)>) {
    let mut found = 0;
    for both in 0..=u8::MAX {
        // Each pair of ends once.
        if both & 0x80 != 0 || both & 0x4 != 0 {
            continue;
        }
        let (sender, receiver) = ends(both & 0x7B);
        if both & 0x40 != 0 {
            continue;
        }
        for number in 0..64 {
            let flow = FlowKey {
                sender,
                receiver,
                receiver_qp: qp(number),
            };
            let Some(own) = connections.sender_qp(&flow) else {
                continue;
            };
            found += 1;
            assert!(own > Qp::GSI && qp(number) > Qp::GSI);
            assert!(announced.contains(&(sender, own.get())), "{sender} {own:?}");
            let other = (receiver, u32::from(number));
            assert!(announced.contains(&other), "{other:?}");
            let used = connections.use_sender_qp(&flow);
            assert_eq!(used, Some(own), "a use changes nothing");
        }
    }
    assert!(found <= most, "{found} directions of at most {most}");
}

/// Checks all roles at one node: their promises about what they send and how fast a flow may be.
pub fn roles(data: &[u8]) {
    let Some((settings, rest)) = data.split_first_chunk::<SETTINGS>() else {
        return;
    };
    let mut node = Node::new(settings);
    let mut octets = Octets(rest);
    while node.step(&mut octets).is_some() {
        node.check_rates();
    }
    node.check_counters();
}

struct Settings {
    congestion: congestion_point::Config,
    marking: Marking,
    reaction: reaction_point::Config,
    notification: notification_point::Config,
    interval: Duration,
    flows: usize,
}

struct Open {
    id: FlowId,
    line: f64,
}

struct Node {
    settings: Settings,
    now: Time,
    /// The latest time so far.
    latest: Time,
    congestion: CongestionPoint,
    notification: NotificationPoint,
    reaction: ReactionPoint,
    proxy: Proxy,
    pe: IngressPe,
    border: Border,
    open: Vec<Open>,
    /// Time of the last notification about a flow, of congestion point and notification point.
    last_notified: [HashMap<FlowKey, Time>; 2],
    sent: u64,
    /// Labels in use, the least recently used first.
    labels: Vec<(FlowKey, u32)>,
}

/// A flow whose QP at the sender may be configured.
const CONFIGURED: FlowKey = FlowKey {
    sender: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1)),
    receiver: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2)),
    receiver_qp: Qp::truncate(9),
};

/// Indices into `Node::last_notified`.
const BY_CONGESTION_POINT: usize = 0;
const BY_NOTIFICATION_POINT: usize = 1;

fn settings(octets: &[u8; SETTINGS]) -> Settings {
    let [
        flags,
        control,
        kmin,
        kmax,
        pmax,
        interval,
        burst,
        sizes,
        own @ ..,
    ] = octets;
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let interval = Duration::from_micros((*interval).into());
    let flows = usize::from(sizes & 15);
    let mut congestion = congestion_point::Config::new(Ipv6Addr::from(*own));
    congestion.address4 = (sizes & 16 != 0).then_some(Ipv4Addr::new(10, 0, 9, 9));
    congestion.ingress = (sizes & 32 != 0).then_some(congestion.address);
    let marking = Marking {
        kmin: u64::from(*kmin) * 256,
        kmax: u64::from(*kmax) * 256,
        pmax: f64::from(*pmax) / 255.0,
    };
    congestion.ecn = flag(0);
    congestion.fast_cnp = flag(1);
    congestion.proxy = flag(2);
    congestion.wan_fcn = flag(3);
    congestion.mark_unknown = flag(4);
    congestion.copy_flow_label = flag(5);
    congestion.senders = vec![
        (Prefix::host(v6(0)), Ability::Able),
        (Prefix::host(v6(1)), Ability::Unable),
        (Prefix::host(v6(2)), Ability::Unknown),
    ];
    if sizes & 64 != 0 {
        congestion.senders.extend(
            Prefix::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0).map(|all| (all, Ability::Able)),
        );
    }
    if sizes & 128 != 0 {
        congestion.proxies = vec![(Prefix::host(v6(0)), v6(3)), (Prefix::host(v4(0)), v4(3))];
    }
    congestion.directory = flows * 2;
    congestion.limits = Limits {
        interval,
        per_second: u32::from(*burst) << 12,
        burst: u32::from(*burst & 15),
        flows,
    };
    let control = match control % 4 {
        0 => Control::Fixed,
        1 => Control::Telemetry(telemetry::Params {
            eta: f64::from(control >> 2) / 63.0,
            ..telemetry::Params::default()
        }),
        2 => Control::Dcqcn(dcqcn::Params {
            g: f64::from(control >> 2) / 63.0,
            b: u64::from(*burst),
            t: interval,
            k: interval,
            f: u32::from(control >> 6),
            ..dcqcn::Params::default()
        }),
        _ => Control::Dcqcn(dcqcn::Params {
            clamp_target_rate: flag(2),
            alpha_per_tick: flag(3),
            ..dcqcn::Params::default()
        }),
    };
    let access_list = if flag(7) {
        vec![Prefix::host(v6(3))]
    } else {
        Prefix::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)
            .into_iter()
            .collect()
    };
    Settings {
        congestion,
        marking,
        reaction: reaction_point::Config {
            control,
            fast_cnp: flag(1),
            access_list,
            flows,
            verify_icrc: flag(6),
            detour: (burst & 32 != 0).then_some(Detour {
                tries: u32::from(burst >> 6),
                hold: interval,
                rest: interval * 4,
            }),
            merge: if flag(5) { interval } else { Duration::ZERO },
        },
        notification: notification_point::Config {
            interval,
            flows,
            fast_cnp: burst & 16 != 0,
        },
        interval,
        flows,
    }
}

impl Node {
    fn new(octets: &[u8; SETTINGS]) -> Self {
        let settings = settings(octets);
        let own = settings.congestion.address;
        let flows = settings.flows;
        let limits = settings.congestion.limits;
        let qps = match settings.congestion.proxies.is_empty() {
            true => Vec::new(),
            false => vec![(CONFIGURED, qp(7))],
        };
        let proxy = proxy::Config {
            address4: settings.congestion.address4,
            enabled: true,
            limits,
            connections: flows,
            qps: qps.clone(),
            ..proxy::Config::new(own)
        };
        let pe = ingress_pe::Config {
            enabled: true,
            limits,
            flows,
            connections: flows,
            qps,
            ..ingress_pe::Config::new(own)
        };
        Self {
            now: Time::default(),
            latest: Time::default(),
            congestion: CongestionPoint::new(settings.congestion.clone(), Profile::DEFAULT),
            notification: NotificationPoint::new(settings.notification),
            reaction: ReactionPoint::new(settings.reaction.clone()),
            proxy: Proxy::new(proxy),
            pe: IngressPe::new(pe),
            border: Border::default(),
            open: Vec::new(),
            last_notified: Default::default(),
            sent: 0,
            labels: Vec::new(),
            settings,
        }
    }

    fn step(&mut self, octets: &mut Octets<'_>) -> Option<()> {
        let what = octets.next()? % step::ALL;
        self.pass(octets.next()?);
        match what {
            step::ETHERNET | step::IP => {
                let (depth, dice, len) = (octets.next()?, octets.next()?, octets.two()?);
                let bytes = octets.some(len.into());
                let link = match what {
                    step::IP => LinkType::RawIp,
                    _ => LinkType::Ethernet,
                };
                self.frame(bytes, link, depth, dice);
            }
            step::DATA => {
                let (depth, dice) = (octets.next()?, octets.next()?);
                let bytes = data_packet(octets)?;
                self.frame(&bytes, LinkType::RawIp, depth, dice);
            }
            step::CM => self.frame(&cm(octets)?, LinkType::RawIp, 0, 0),
            step::NOTIFICATION => {
                let (outgoing, rest) = self.notification(octets)?;
                self.deliver(&outgoing, &rest);
            }
            step::OPEN => self.open(octets)?,
            step::CLOSE => {
                let which = usize::from(octets.next()?) % self.open.len().max(1);
                if which < self.open.len() {
                    let closed = self.open.remove(which);
                    self.reaction.close(closed.id);
                    assert_eq!(self.reaction.rate(self.now, closed.id), 0.0);
                    assert_eq!(self.reaction.next_timer(closed.id), None);
                }
            }
            step::SENT => {
                let (which, len) = (usize::from(octets.next()?), octets.two()?);
                if let Some(open) = self.open.get(which % self.open.len().max(1)) {
                    self.reaction.on_sent(open.id, u32::from(len) << 4);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Advances the time, by 0 to 4 ms in ever larger steps; sometimes it seems to go back.
    fn pass(&mut self, octet: u8) {
        let step = u64::from(octet & 15) << (octet >> 4);
        let nanos = self.now.as_nanos() as u64;
        self.now = match octet {
            0xFF => Time::from_nanos(nanos / 2),
            0xFE => Time::from_nanos(u64::MAX),
            _ => Time::from_nanos(nanos.saturating_add(step * 16)),
        };
        self.latest = self.latest.max(self.now);
    }

    fn open(&mut self, octets: &mut Octets<'_>) -> Option<()> {
        let (own, receiver) = (qp(octets.next()?), v6(octets.next()?));
        let (receiver_qp, rate) = (qp(octets.next()?), octets.next()?);
        let line = f64::from(u32::from(rate) + 1) * 2e9;
        let opened = self.reaction.open(own, receiver, receiver_qp, line);
        if let Some(id) = opened {
            assert!(self.open.iter().all(|open| open.id != id));
            self.open.push(Open { id, line });
        }
        assert!(self.open.len() <= self.settings.flows);
        Some(())
    }

    /// Builds a notification from arbitrary fields, and the octets that it takes from the data
    /// packet.
    fn notification(&self, octets: &mut Octets<'_>) -> Option<(OutgoingNotification, Vec<u8>)> {
        let (kind, both, number) = (octets.next()?, octets.next()?, octets.next()?);
        let (source, destination) = ends(both);
        let own = self.settings.congestion.address;
        let len = octets.next()?;
        let rest = octets.some(len.into()).to_vec();
        let outgoing = match (kind & 3, source, destination) {
            (1, IpAddr::V6(source), IpAddr::V6(original_destination)) => {
                OutgoingNotification::FastCnp {
                    source: match v6(kind >> 2) {
                        IpAddr::V6(address) => address,
                        IpAddr::V4(_) => own,
                    },
                    destination: source,
                    original_destination,
                    qp: qp(number),
                }
            }
            (2, ..) => OutgoingNotification::ProxyCn {
                source: v6(kind >> 2),
                proxy: own.into(),
                tuple: fcn_wire::proxy_cn::FiveTuple {
                    source,
                    destination,
                    protocol: 17,
                    source_port: 49152,
                    destination_port: 4791,
                },
                level: kind >> 5,
            },
            (3, ..) => OutgoingNotification::WanFcn {
                source: own,
                ingress: own,
                flow_label: self
                    .labels
                    .get(usize::from(number) % self.labels.len().max(1))
                    .map_or(1, |(_, label)| *label),
                level: kind >> 5,
                copy_flow_label: false,
            },
            _ => OutgoingNotification::Cnp {
                source,
                destination,
                qp: qp(number),
            },
        };
        // A proxy notification quotes a packet; one of ours, unless there are octets for another.
        let quotes = matches!(outgoing, OutgoingNotification::ProxyCn { .. });
        let rest = if quotes && rest.is_empty() {
            data_packet(&mut Octets(&[both, number, 2]))?
        } else {
            rest
        };
        Some((outgoing, rest))
    }

    /// Encodes a notification and delivers it to all roles.
    fn deliver(&mut self, outgoing: &OutgoingNotification, rest: &[u8]) {
        let opt_type = match rest.first().copied().unwrap_or(0) & 1 {
            0 => OptType::Preallocated,
            _ => OptType::Incremental,
        };
        let context = DataPacketContext {
            trace: rest.get(1..).map(|trace| (opt_type, trace)),
            invoking: rest,
        };
        if let Some(bytes) = emitted(outgoing, &context) {
            self.receive(&parse(&bytes, LinkType::RawIp));
        }
    }

    /// Delivers a frame to all roles, and then their answers.
    fn frame(&mut self, bytes: &[u8], link: LinkType, depth: u8, dice: u8) {
        let frame = parse(bytes, link);
        self.receive(&frame);
        let Some(packet) = DataPacket::from_frame(&frame) else {
            return;
        };
        let context = DataPacketContext::new(&packet, &frame);
        let label = self
            .pe
            .label(packet.source, packet.destination, packet.dest_qp);
        self.labelled(packet.flow(), label);
        let (depth, dice) = (u64::from(depth) * 257, u32::from(dice) * 0x0101_0101);
        let verdict =
            self.congestion
                .on_packet(self.now, &packet, (depth, &self.settings.marking), dice);
        self.judge(&packet, &verdict, depth);
        if let Some(outgoing) = verdict.notify {
            let bytes = emitted(&outgoing, &context).expect("what it decides can be written");
            let frame = parse(&bytes, LinkType::RawIp);
            assert!(matches!(
                frame.message(),
                Message::FastCnp(_) | Message::ProxyCn(..) | Message::WanFcn(_)
            ));
            self.receive(&frame);
        }
        let answer = self
            .notification
            .on_data(self.now, &packet, Qp::truncate(9));
        if let Some(outgoing) = answer {
            let kept = self.notification.counters().evicted == 0;
            self.may_tell(BY_NOTIFICATION_POINT, packet.flow(), kept);
            assert!(emitted(&outgoing, &context).is_some());
        }
    }

    /// Checks a verdict against the draft and the settings of a congestion point.
    fn judge(&mut self, packet: &DataPacket<'_>, verdict: &Verdict, depth: u64) {
        let config = &self.settings.congestion;
        assert!((1..=7).contains(&self.settings.marking.wan_level(depth)));
        assert!(self.settings.marking.proxy_level(depth) <= 7);
        assert!(verdict.congested || !verdict.mark_ce && verdict.notify.is_none());
        assert!(!verdict.mark_ce || config.ecn && packet.ecn.is_ect());
        let Some(outgoing) = verdict.notify else {
            return;
        };
        let able = config
            .senders
            .iter()
            .filter(|(prefix, _)| prefix.contains(packet.source))
            .max_by_key(|(prefix, _)| prefix.bits())
            .map_or(Ability::Unknown, |(_, ability)| *ability);
        match outgoing {
            OutgoingNotification::FastCnp { .. } => {
                assert!(config.fast_cnp && able != Ability::Unable);
                let both = able == Ability::Unknown && config.mark_unknown;
                assert!(both || !verdict.mark_ce, "marked and notified about");
            }
            OutgoingNotification::ProxyCn { .. } => assert!(config.proxy && !verdict.mark_ce),
            OutgoingNotification::WanFcn { flow_label, .. } => {
                assert!(config.wan_fcn && !verdict.mark_ce && packet.ecn.is_ect());
                assert!(flow_label != 0);
            }
            OutgoingNotification::Cnp { .. } => {
                panic!("a congestion point does not know the sender's QP")
            }
        }
        self.sent += 1;
        let beyond = u128::from(self.sent.saturating_sub(config.limits.burst.into()));
        let earned = self.latest.as_nanos() * u128::from(config.limits.per_second);
        assert!(beyond * 1_000_000_000 <= earned, "too many in total");
        let kept = self.congestion.counters().flows_evicted == 0;
        self.may_tell(BY_CONGESTION_POINT, packet.flow(), kept);
    }

    /// Checks that the interval is kept, as long as no flow had to be forgotten.
    fn may_tell(&mut self, role: usize, flow: FlowKey, kept: bool) {
        let last = self.last_notified[role].insert(flow, self.now);
        if let Some(last) = last.filter(|_| kept) {
            assert!(
                self.now.saturating_sub(last) >= self.settings.interval,
                "too soon"
            );
        }
    }

    /// Delivers a frame to the receiving roles, and then the notifications that it causes.
    fn receive(&mut self, frame: &Frame<'_>) {
        self.congestion.on_transit(self.now, frame);
        let crossed = self.border.filter(Side::Outside, Side::Inside, frame);
        let fcn = matches!(
            frame.message(),
            Message::FastCnp(_) | Message::ProxyCn(_) | Message::WanFcn(_)
        );
        assert_eq!(crossed, fcn.then_some(Crossing::Inbound));
        self.proxy.qps.learn(self.now, frame);
        self.pe.qps.learn(self.now, frame);
        self.react(frame);
        let (proxy, pe) = (
            self.proxy.on_message(self.now, frame),
            self.pe.on_message(self.now, frame),
        );
        assert!(proxy.is_err() || pe.is_err(), "one message, two answers");
        for outgoing in [proxy.ok(), pe.ok()].into_iter().flatten() {
            assert!(matches!(outgoing, OutgoingNotification::Cnp { .. }));
            let bytes =
                emitted(&outgoing, &DataPacketContext::default()).expect("a CNP can be written");
            let cnp = parse(&bytes, LinkType::RawIp);
            assert!(matches!(cnp.message(), Message::Cnp(_)));
            self.react(&cnp);
        }
    }

    fn react(&mut self, frame: &Frame<'_>) {
        let (flow, rates) = match self.reaction.on_frame(self.now, frame) {
            Reaction::Slowed { flow, from, to } => (flow, vec![from, to]),
            Reaction::Detoured { flow, .. } => {
                assert!(self.settings.reaction.detour.is_some());
                (flow, Vec::new())
            }
            Reaction::Ignored(_) => return,
        };
        let open = self.open.iter().find(|open| open.id == flow);
        let open = open.expect("a flow that is not open was told");
        for rate in rates {
            in_range(&self.settings.reaction.control, open.line, rate);
        }
        if let (Message::FastCnp(_), Some(ip)) = (frame.message(), frame.ip()) {
            let config = &self.settings.reaction;
            assert!(config.fast_cnp && list_contains(&config.access_list, ip.source));
        }
    }

    /// Checks that a flow has one label, and a label one flow, among those used last.
    fn labelled(&mut self, flow: FlowKey, label: u32) {
        assert!((1..=fcn_wire::wan_fcn::MAX_FLOW_LABEL).contains(&label));
        let known = self.labels.iter().position(|(known, _)| *known == flow);
        if let Some(at) = known {
            assert_eq!(self.labels.remove(at).1, label);
        } else if self.labels.len() >= self.settings.flows.max(1) {
            // Given away only once the new flow has its own.
            let (_, oldest) = self.labels.remove(0);
            assert_ne!(oldest, label);
        }
        assert!(self.labels.iter().all(|(_, taken)| *taken != label));
        self.labels.push((flow, label));
        let counters = self.pe.counters();
        let live = counters.labelled - counters.evicted;
        assert_eq!(usize::try_from(live), Ok(self.labels.len()));
    }

    fn check_rates(&mut self) {
        for open in &self.open {
            let rate = self.reaction.rate(self.now, open.id);
            in_range(&self.settings.reaction.control, open.line, rate);
            let again = self.reaction.next_timer(open.id);
            assert!(again.is_none() || rate < open.line);
        }
    }

    fn check_counters(&self) {
        let reaction = self.reaction.counters();
        assert!(reaction.opened >= self.open.len() as u64);
        let congestion = self.congestion.counters();
        let sent = congestion.fast_cnps + congestion.proxy_cns + congestion.wan_fcns;
        assert_eq!(sent, self.sent);
        assert!(congestion.congested <= congestion.packets);
        let directory = self.congestion.directory().counters();
        assert!(directory.with_pnc <= directory.advertisements);
    }
}

fn in_range(control: &Control, line: f64, rate: f64) {
    let least = match control {
        Control::Dcqcn(params) => params.r_min.min(line),
        Control::Telemetry(params) => params.r_min.min(line),
        Control::Hpcc(_) | Control::Swift(_) | Control::Timely(_) => 0.0,
        Control::Fixed | Control::Custom(_) => line,
    };
    assert!((least..=line).contains(&rate), "{rate} of {line}");
}

fn emitted(outgoing: &OutgoingNotification, context: &DataPacketContext<'_>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; OutgoingNotification::MAX_LEN];
    let (len, _) = outgoing.emit(context, &Profile::DEFAULT, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}

/// Builds a data packet from ends, QP, and an octet of bits: ECN field (2), trace (2), proxy
/// address, tunnel (2).
fn data_packet(octets: &mut Octets<'_>) -> Option<Vec<u8>> {
    let ((source, destination), number) = (ends(octets.next()?), octets.next()?);
    let bits = octets.next()?;
    let outer = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, (bits >> 7).into());
    let tunnel = Part::Ipv6 {
        source: outer,
        destination: outer,
        traffic_class: bits & 3,
        flow_label: u32::from(bits >> 6),
        hop_limit: 64,
    };
    // Two hops with hop limit and node, and queue depth.
    let mut trace = [0; 24];
    trace[..8].copy_from_slice(&[0, 1, 2 << 3, 0, 0x82, 0, 0, 0]);
    trace[8..].fill(number);
    let opt_type = match bits & 4 {
        0 => OptType::Preallocated,
        _ => OptType::Incremental,
    };
    let trace = [OptionPart::Ioam(IoamOption {
        reserved: 0,
        opt_type,
        body: &trace,
    })];
    let proxy = [OptionPart::ProxyAddress(ProxyAddress(outer))];
    let mut parts = Vec::new();
    if bits & 0x40 != 0 {
        parts.push(tunnel);
    }
    parts.push(ip(source, destination, bits & 3)?);
    if source.is_ipv6() && bits & 8 != 0 {
        parts.push(Part::HopByHop(&trace));
    }
    if source.is_ipv6() && bits & 16 != 0 {
        parts.push(Part::DestinationOptions(&proxy));
    }
    let zeros = [0; 16];
    parts.extend([
        ROCE,
        Part::Bth(BthRepr::new(Opcode::UC_WRITE_ONLY, qp(number), 1)),
        Part::Bytes(&zeros),
        ICRC,
    ]);
    compose::packet(&parts, &Profile::DEFAULT).ok()
}
