//! A congestion point: data that meet congestion at it, each packet of the main step with a QP of its own, so that a notification
//! tells which packet caused it.

use super::bench::{Record, parse};
use super::judge::{Ledger, NOT_DONE, Own, Sorted, data, rates};
use super::plan::{
    AROUND, Plan, Planned, STRANGER, Sent, Setup, Step, What, emitted, framed, kinds, unchanging,
};
use super::statements::{Statement, Test};
use crate::scenario::model::{Flow, NodeKind, Switch, Tunnel};
use crate::units::{Ps, Rate};
use fcn_node::FlowKey;
use fcn_node::congestion_point::Ability;
use fcn_observe::DataPacket;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::bits_per_second;
use fcn_wire::bth::BthRepr;
use fcn_wire::compose::{self, OptionPart, Part};
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::finding::Family;
use fcn_wire::header::ethernet;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, TraceType, filled_trace};
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Frame, Kind, LinkType, Message, Opcode, Profile, Qp, Rule, Subject};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

/// First QP of data packets, and how far they are apart: no fault makes one into another.
const FIRST_QP: u32 = 0x0010_0000;
const BETWEEN_QPS: u32 = 0x101;
/// First UDP source port of them.
const FIRST_PORT: u16 = 0xC000;
/// First outer flow label of them.
const FIRST_LABEL: u32 = 0x1_0000;
/// Packets of a step behind those that fill the queue.
const PACKETS: u64 = 200;
/// The most packets of a step.
const MOST_PACKETS: u64 = 20_000;
/// Payload of a data packet at most: it fits an interface of 1500 octets with what is around it.
const PAYLOAD: u16 = 1_024;
/// Notifications of others that are sent at the border.
const LEAKS: u64 = 20;
/// What the bench's own node writes into traces.
const TRACE: TraceType = TraceType::from_bits(0).with(0).with(1).with(6);

/// IP protocol number of UDP.
const UDP: u8 = 17;
/// The step in which every packet has a QP of its own.
const EACH: &str = "each";
/// Likewise, with an IOAM trace.
const TRACED: &str = "traced";
/// The step of one flow alone.
const ONE: &str = "one-flow";
/// Data whose outer ECN field is 00.
const INCAPABLE: &str = "not-capable";
/// Data that come from outside.
const FOREIGN: &str = "foreign";
/// Notifications that cross the border.
const LEAKING: &str = "leaking";

/// A flow through the device.
#[derive(Clone, Copy)]
struct Way<'s> {
    flow: &'s Flow,
    from: usize,
    to: usize,
}

fn switch<'s>(setup: &Setup<'s>) -> Option<&'s Switch> {
    match &setup.simulation.nodes[setup.device].kind {
        NodeKind::Switch(switch) => Some(switch),
        NodeKind::Host(_) => None,
    }
}

/// The flows through the device to its first egress.
fn ways<'s>(setup: &Setup<'s>) -> Vec<Way<'s>> {
    let flows = setup.simulation.flows.iter();
    let ways = flows.filter_map(|flow| {
        let (from, to) = (setup.towards(flow.from)?, setup.towards(flow.to)?);
        (from != to).then_some(Way { flow, from, to })
    });
    let mut ways: Vec<_> = ways.collect();
    if let Some(to) = ways.first().map(|way| way.to) {
        ways.retain(|way| way.to == to);
    }
    ways
}

/// How packets of one step differ from those of others.
#[derive(Clone, Copy, Default)]
struct Manner {
    traced: bool,
    same_qp: bool,
    incapable: bool,
}

/// Makes data packets, and remembers them.
struct Maker<'a, 's> {
    setup: &'a Setup<'s>,
    sent: Vec<Sent>,
}

impl Maker<'_, '_> {
    /// The tunnel that a packet on this way is in: where it begins and ends.
    fn tunnel(&self, way: &Way<'_>) -> Option<(Ipv6Addr, Ipv6Addr, Tunnel)> {
        if !kinds(self.setup).contains(&Kind::WanFcn) {
            return None;
        }
        let nodes = self.setup.simulation.nodes.iter().enumerate();
        let edges = nodes.filter_map(|(index, node)| match &node.kind {
            NodeKind::Switch(switch) => Some((index, node.ipv6, switch.edge.as_ref()?.tunnel)),
            NodeKind::Host(_) => None,
        });
        let edges: Vec<_> = edges.collect();
        let at = |link: usize| {
            edges
                .iter()
                .find(|(node, ..)| self.setup.towards(*node) == Some(link))
        };
        let ((_, ingress, tunnel), (_, egress, _)) = (at(way.from)?, at(way.to)?);
        // Labels name no ingress PE: the device has it configured.
        let configured = switch(self.setup).and_then(|switch| switch.congestion.ingress);
        let ingress = match tunnel {
            Tunnel::SrMpls { .. } => configured.unwrap_or(*ingress),
            _ => *ingress,
        };
        Some((ingress, *egress, *tunnel))
    }

    /// The next data packet, as a frame.
    fn data(
        &mut self,
        way: &Way<'_>,
        manner: Manner,
        first: usize,
        payload: u16,
    ) -> Option<Vec<u8>> {
        let (flow, profile) = (way.flow, &self.setup.simulation.profile);
        let number = self.sent.len() as u32;
        let own = if manner.same_qp { first as u32 } else { number };
        let qp = Qp::truncate(FIRST_QP + own * BETWEEN_QPS);
        let port = FIRST_PORT | (own & 0x3FFF) as u16;
        let tunnel = self.tunnel(way);
        let ecn = if manner.incapable { 0 } else { 2 };
        let class = flow.dscp << 2 | ecn;
        let trace = manner.traced.then(|| {
            let before = NodeValues {
                hop_limit: 63,
                node_id: 0xBE_0000 | u64::from(number),
                ingress: 1,
                egress: 2,
                queue_depth: number,
                ..NodeValues::default()
            };
            filled_trace(TRACE, TRACE.node_len() * 4 * 3, [before].iter())
        });
        let trace = trace.and_then(std::result::Result::ok);
        let mut inner = vec![match (flow.source, flow.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                source,
                destination,
                traffic_class: class,
                flow_label: flow.flow_label,
                hop_limit: compose::DEFAULT_HOP_LIMIT,
            },
            (IpAddr::V4(source), IpAddr::V4(destination)) => Part::v4(source, destination, class),
            _ => return None,
        }];
        let ioam = trace.as_deref().map(|body| {
            [OptionPart::Ioam(IoamOption {
                reserved: 0,
                opt_type: OptType::Preallocated,
                body,
            })]
        });
        if let Some(options) = &ioam {
            inner.push(Part::HopByHop(options));
        }
        let proxy = flow
            .proxy_option
            .map(|address| [OptionPart::ProxyAddress(ProxyAddress(address))]);
        if let Some(options) = &proxy {
            inner.push(Part::DestinationOptions(options));
        }
        let payload = vec![0x5A; usize::from(payload)];
        inner.extend([
            Part::udp(port, profile.rocev2_port),
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, qp, number)),
            Part::Bytes(&payload),
            Part::Icrc(Policy::Compute(profile.icrc_reading)),
        ]);
        let packet = compose::packet(&inner, profile).ok()?;
        let label = FIRST_LABEL + own;
        let nodes = (flow.from, flow.to);
        let frame = match tunnel {
            None => framed(nodes, &packet),
            Some((ingress, egress, tunnel)) => encapsulated(
                &framed(nodes, &packet),
                (ingress, egress, tunnel),
                label,
                ecn,
            )?,
        };
        self.sent.push(Sent {
            flow: FlowKey {
                sender: flow.source,
                receiver: flow.destination,
                receiver_qp: qp,
            },
            port,
            ecn,
            trace,
            outer: tunnel.map(|(ingress, ..)| (label, ingress)),
            packet,
        });
        Some(frame)
    }
}

/// A frame's packet in a tunnel.
fn encapsulated(
    frame: &[u8],
    (ingress, egress, tunnel): (Ipv6Addr, Ipv6Addr, Tunnel),
    label: u32,
    ecn: u8,
) -> Option<Vec<u8>> {
    let mac = |at: usize| frame.get(at..)?.first_chunk::<6>().copied();
    let link = Part::Ethernet {
        source: mac(ethernet::SOURCE)?,
        destination: mac(ethernet::DESTINATION)?,
    };
    let packet = frame.get(ethernet::LEN..)?;
    let is_v4 = packet.first()? >> 4 == 4;
    let inner = Part::Payload {
        ether_type: if is_v4 {
            ethernet::IPV4
        } else {
            ethernet::IPV6
        },
        protocol: if is_v4 { 4 } else { 41 },
        bytes: packet,
    };
    let outer = Part::Ipv6 {
        source: ingress,
        destination: egress,
        traffic_class: ecn,
        flow_label: label,
        hop_limit: compose::DEFAULT_HOP_LIMIT,
    };
    let mpls = |label| Part::Mpls {
        label,
        traffic_class: 0,
        ttl: compose::DEFAULT_HOP_LIMIT,
    };
    let segments = [egress];
    let parts = match tunnel {
        Tunnel::Srv6 => {
            let routing = Part::SegmentRouting {
                left: 0,
                segments: &segments,
            };
            vec![link, outer, routing, inner]
        }
        Tunnel::Vxlan { vni } => {
            let udp = Part::udp(FIRST_PORT, VXLAN_PORT);
            vec![link, outer, udp, Part::Vxlan { vni }, link, inner]
        }
        // Transport label, entropy label indicator and entropy label, service label (RFC 6790).
        Tunnel::SrMpls { transport, service } => {
            vec![
                link,
                mpls(transport),
                mpls(7),
                mpls(label),
                mpls(service),
                inner,
            ]
        }
    };
    compose::packet(&parts, &Profile::DEFAULT).ok()
}

/// What is going to be sent.
///
/// # Errors
/// No flow passes the device, or nothing would meet congestion there.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    let mut plan = Plan::new(setup.device);
    let name = &setup.simulation.nodes[setup.device].name;
    let (Some(switch), all) = (switch(setup), ways(setup)) else {
        return Ok(plan);
    };
    let (inside, outside): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|way| setup.is_inside(setup.neighbour(way.from)));
    let Some(first) = inside.first() else {
        return Err(Failure::usage("no flow passes the device")
            .and(name)
            .and("choose another scenario with --config"));
    };
    let kinds = kinds(setup);
    if kinds.is_empty() {
        return Err(Failure::usage("the scenario has the device notify nobody")
            .and(name)
            .and("choose a mechanism (--set mechanism=fast-cnp)"));
    }
    // Routers around it tell of proxies.
    let nodes = setup.simulation.nodes.iter().enumerate();
    let routers = nodes.filter(|(node, values)| {
        *node != setup.device && matches!(values.kind, NodeKind::Switch(_))
    });
    plan.peers = routers.map(|(node, _)| node).collect();
    plan.step(
        "settling",
        "nothing but routing, if there is any".to_owned(),
        settling(setup),
        Vec::new(),
    );

    let mut links: Vec<usize> = inside.iter().map(|way| way.from).collect();
    links.sort_unstable();
    links.dedup();
    let bits = |link: usize| setup.rate(link).bits_per_second();
    let (comes, goes) = (
        links.iter().map(|link| bits(*link)).sum::<u64>(),
        bits(first.to),
    );
    if comes <= goes {
        return Err(Failure::usage("nothing would meet congestion")
            .and(name)
            .and(format!(
                "{} come in and {} go out: give it more senders or a slower link, here and there",
                bits_per_second(comes as f64),
                bits_per_second(goes as f64)
            )));
    }
    let own_links = crate::sim::live::LiveNode::links(setup.simulation, setup.device);
    let egress = own_links.into_iter().nth(first.to).unwrap_or(0);
    let kmax = switch
        .ports
        .get(&egress)
        .map_or(200_000, |port| port.marking.kmax);
    // So much has to come in until so much waits.
    let until_full = |octets: u64| (octets as f64 / (1.0 - goes as f64 / comes as f64)) as u64;
    let payload = PAYLOAD.min(first.flow.mtu);
    let count = |payload: u16| (until_full(kmax) / u64::from(payload) + PACKETS).min(MOST_PACKETS);
    // As long as what waits takes to leave, and a little more.
    let drain = setup.rate(first.to).time(2 * kmax + 100_000) + Ps::from_nanos(1_000_000);
    let mut maker = Maker {
        setup,
        sent: Vec::new(),
    };
    let mut add =
        |plan: &mut Plan, id: &'static str, (ways, manner): (&[Way<'_>], Manner), payload: u16| {
            let frames = burst(
                &mut maker,
                plan.end,
                ways,
                manner,
                (count(payload), payload),
            );
            let last = frames
                .iter()
                .map(|planned| planned.at)
                .max()
                .unwrap_or(plan.end);
            let what = format!(
                "{} data packets at {}{}{}",
                frames.len(),
                bits_per_second(comes as f64),
                if manner.same_qp {
                    " of one flow"
                } else {
                    ", each with a QP of its own"
                },
                match (manner.traced, manner.incapable) {
                    (true, _) => ", with an IOAM trace",
                    (_, true) => ", not ECN-capable",
                    _ => "",
                }
            );
            plan.step(id, what, last.since(plan.end) + drain, frames);
        };
    use Statement as S;
    let per_packet = [
        S::FastCnpSent,
        S::FastCnpFromLoopback,
        S::FastCnpToSender,
        S::FastCnpQpCopied,
        S::FastCnpOriginalCopied,
        S::FastCnpOptionByTrace,
        S::ProxyCnSent,
        S::ProxyCnToProxy,
        S::ProxyCnTupleCopied,
        S::ProxyCnQuote,
        S::WanFcnSent,
        S::WanFcnToIngress,
        S::WanFcnLabel,
        S::FastCnpOff,
        S::ProxyCnOff,
        S::WanFcnOff,
    ];
    let families = [
        Family::Packet,
        Family::Roce,
        Family::Cnp,
        Family::FastCnp,
        Family::ProxyCn,
        Family::WanFcn,
    ];
    if setup.wants(&per_packet)
        || setup.wants_family(&families)
        || setup.wants_rule(&[Rule::FastCnpMarked])
    {
        add(&mut plan, EACH, (&inside, Manner::default()), payload);
    }
    if !setup.off {
        let traces = setup.wants(&[S::FastCnpTraceCopied, S::FastCnpOptionByTrace])
            || setup.wants_family(&[Family::Ioam]);
        if traces && kinds.contains(&Kind::FastCnp1) && first.flow.source.is_ipv6() {
            let manner = Manner {
                traced: true,
                ..Manner::default()
            };
            add(&mut plan, TRACED, (&inside, manner), payload);
        }
        if setup.wants_rule(&[Rule::FastCnpRate, Rule::ProxyCnRate, Rule::WanFcnRate]) {
            let manner = Manner {
                same_qp: true,
                ..Manner::default()
            };
            let one: Vec<_> = links
                .iter()
                .filter_map(|link| inside.iter().find(|way| way.from == *link))
                .copied()
                .collect();
            // As many packets as it takes to exceed the limit.
            let least = u64::from(setup.flow_rate) * 8 * 4;
            let largest = (comes / least.max(1)).saturating_sub(200);
            let payload = payload
                .min(u16::try_from(largest & !3).unwrap_or(u16::MAX))
                .max(4);
            add(&mut plan, ONE, (&one, manner), payload);
        }
        if kinds.contains(&Kind::WanFcn) && setup.wants(&[S::WanFcnCapable]) {
            let manner = Manner {
                incapable: true,
                ..Manner::default()
            };
            add(&mut plan, INCAPABLE, (&inside, manner), payload);
        }
        if !outside.is_empty()
            && setup.wants_rule(&[Rule::FastCnpBorder, Rule::ProxyCnBorder, Rule::WanFcnBorder])
        {
            let both = [&outside[..], &inside[..]].concat();
            add(&mut plan, FOREIGN, (&both, Manner::default()), payload);
            let frames = leaks(setup, &kinds, (plan.end, &outside[0]), first);
            let what = format!(
                "{} notifications into the domain and out of it",
                frames.len()
            );
            plan.step(LEAKING, what, Ps::from_nanos(2_000_000), frames);
        }
    }
    plan.sent = maker.sent;
    Ok(plan)
}

/// How long routers around the device may take until proxies are known.
fn settling(setup: &Setup<'_>) -> Ps {
    if !kinds(setup).contains(&Kind::ProxyCn) {
        return Ps::from_nanos(100_000);
    }
    Ps(setup.simulation.advertise_interval.0 * 3) + Ps::from_nanos(100_000)
}

/// Frames on these ways, as fast as their links take them.
fn burst(
    maker: &mut Maker<'_, '_>,
    begin: Ps,
    ways: &[Way<'_>],
    manner: Manner,
    (count, payload): (u64, u16),
) -> Vec<Planned> {
    let first = maker.sent.len();
    let mut free: HashMap<usize, Ps> = HashMap::new();
    let mut frames = Vec::new();
    let mut turn = HashMap::new();
    while (frames.len() as u64) < count {
        // The link that is free first, and of its flows the next.
        let link = ways.iter().map(|way| way.from);
        let Some(link) = link.min_by_key(|link| (free.get(link).copied().unwrap_or(begin), *link))
        else {
            break;
        };
        let of_link: Vec<_> = ways.iter().filter(|way| way.from == link).collect();
        let turn = turn.entry(link).or_insert(0);
        let Some(way) = of_link.get(*turn % of_link.len()) else {
            break;
        };
        *turn += usize::from(!manner.same_qp);
        let Some(bytes) = maker.data(way, manner, first, payload) else {
            break;
        };
        let at = free.entry(link).or_insert(begin);
        let rate: Rate = maker.setup.rate(link);
        let planned = Planned {
            at: *at,
            link,
            what: What::Octets(bytes.clone()),
        };
        *at = *at + rate.time((bytes.len() + AROUND) as u64);
        frames.push(planned);
    }
    frames
}

/// Notifications of each kind from outside to inside, and from inside to outside.
fn leaks(
    setup: &Setup<'_>,
    kinds: &[Kind],
    (begin, outside): (Ps, &Way<'_>),
    inside: &Way<'_>,
) -> Vec<Planned> {
    let (stranger, own) = (outside.flow.source, inside.flow.destination);
    let mut frames = Vec::new();
    for n in 0..LEAKS {
        for kind in kinds {
            for (link, nodes, (from, to)) in [
                (
                    outside.from,
                    (outside.flow.from, inside.flow.to),
                    (stranger, own),
                ),
                (
                    inside.to,
                    (inside.flow.to, outside.flow.from),
                    (own, stranger),
                ),
            ] {
                let carrier = Carrier::new(from, to);
                let packet = notification(setup, *kind, &carrier, outside.flow);
                frames.push(Planned {
                    at: begin + Ps::from_nanos(n * 50_000),
                    link,
                    what: What::Octets(framed(nodes, &packet)),
                });
            }
        }
    }
    frames
}

/// A notification of that kind about a flow.
fn notification(setup: &Setup<'_>, kind: Kind, carrier: &Carrier, flow: &Flow) -> Vec<u8> {
    let profile = &setup.simulation.profile;
    emitted(|out| match kind {
        Kind::ProxyCn => {
            let message = super::translator::proxy_message(flow, profile);
            emit::proxy_cn(
                carrier,
                &ProxyCnRepr {
                    invoking: &message.1,
                    ..message.0
                },
                profile,
                out,
            )
        }
        Kind::WanFcn => {
            let message = WanFcnRepr {
                flow_label: FIRST_LABEL,
                level: 7,
                reserved: 0,
            };
            emit::wan_fcn(carrier, &message, profile, out)
        }
        _ => {
            let original_destination = match flow.destination {
                IpAddr::V6(address) => address,
                IpAddr::V4(_) => STRANGER,
            };
            let option = FastCnpRepr::Option1 {
                original_destination,
            };
            let cnp = fcn_wire::cnp::CnpRepr::new(flow.receiver_qp);
            emit::fast_cnp(carrier, &option, &cnp, profile, out)
        }
    })
}

/// The data packets that were sent, by what a notification names.
struct Index<'p> {
    all: &'p [Sent],
    flows: HashMap<FlowKey, &'p Sent>,
    senders: HashSet<IpAddr>,
    pairs: HashSet<(IpAddr, IpAddr)>,
    tuples: HashMap<FiveTuple, &'p Sent>,
    labels: HashMap<u32, &'p Sent>,
}

impl<'p> Index<'p> {
    fn new(sent: &'p [Sent], destination_port: u16) -> Self {
        let tuple = |sent: &Sent| FiveTuple {
            source: sent.flow.sender,
            destination: sent.flow.receiver,
            protocol: UDP,
            source_port: sent.port,
            destination_port,
        };
        let label = |sent: &'p Sent| Some((sent.outer?.0, sent));
        Self {
            flows: sent.iter().map(|sent| (sent.flow, sent)).collect(),
            senders: sent.iter().map(|sent| sent.flow.sender).collect(),
            pairs: (sent
                .iter()
                .map(|sent| (sent.flow.sender, sent.flow.receiver)))
            .collect(),
            all: sent,
            tuples: sent.iter().map(|sent| (tuple(sent), sent)).collect(),
            labels: sent.iter().filter_map(label).collect(),
        }
    }

    /// The packet that a quotation is of: its PSN is its number.
    fn quoted(&self, quoted: &[u8]) -> Option<&'p Sent> {
        let frame = Frame::parse(quoted, quoted.len(), LinkType::RawIp, &Profile::DEFAULT);
        match frame.message() {
            Message::Roce(bth, _) => self.all.get(bth.psn() as usize),
            _ => self.tuples.get(&FiveTuple::from_packet(quoted)?).copied(),
        }
    }
}

/// Judges a congestion point.
pub fn judge(
    setup: &Setup<'_>,
    plan: &Plan,
    record: &Record,
    sorted: &Sorted<'_>,
    ledger: &mut Ledger,
) {
    let kinds = kinds(setup);
    let met = plan.steps.iter().find(|step| step.id == EACH);
    let met = met.map_or(Err(NOT_DONE), |step| congestion(step, record, sorted));
    if setup.off {
        return off(&kinds, met, sorted, ledger);
    }
    use Statement as S;
    let index = Index::new(&plan.sent, setup.simulation.profile.rocev2_port);
    for kind in kinds {
        let (first, others): (S, &[S]) = match kind {
            Kind::ProxyCn => (
                S::ProxyCnSent,
                &[S::ProxyCnToProxy, S::ProxyCnTupleCopied, S::ProxyCnQuote],
            ),
            Kind::WanFcn => (S::WanFcnSent, &[S::WanFcnToIngress, S::WanFcnLabel]),
            _ => (
                S::FastCnpSent,
                &[
                    S::FastCnpFromLoopback,
                    S::FastCnpToSender,
                    S::FastCnpQpCopied,
                    S::FastCnpOriginalCopied,
                    S::FastCnpOptionByTrace,
                ],
            ),
        };
        let of_kind: Vec<&Own<'_>> = sorted.own.iter().filter(|own| is_of(own, kind)).collect();
        match met {
            Err(why) => ledger.cannot(&[first], why),
            Ok(()) => {
                let why = || "data met congestion, and the device told nobody".to_owned();
                ledger.holds(first, !of_kind.is_empty(), why, &[]);
            }
        }
        if of_kind.iter().any(|own| own.notification.is_some()) {
            ledger.tries(others);
        } else {
            ledger.cannot(others, "the device sent no such message");
        }
        for own in &of_kind {
            match kind {
                Kind::ProxyCn => proxy_cn(setup, &index, own, ledger),
                Kind::WanFcn => wan_fcn(&index, own, ledger),
                _ => fast_cnp(setup, &index, own, ledger),
            }
        }
        if kind == Kind::FastCnp1 {
            marks(setup, &index, &of_kind, sorted, ledger);
        }
        let tried = plan.steps.iter().find(|step| step.id == ONE);
        let tried = tried.is_some_and(|step| beyond(setup, plan, step));
        rates(setup, &of_kind, tried, ledger);
        if kind == Kind::WanFcn && plan.time(INCAPABLE).is_some() && met.is_ok() {
            ledger.tries(&[S::WanFcnCapable]);
        }
        let border = match kind {
            Kind::ProxyCn => Rule::ProxyCnBorder,
            Kind::WanFcn => Rule::WanFcnBorder,
            _ => Rule::FastCnpBorder,
        };
        if plan.time(LEAKING).is_some() {
            ledger.tried(Test::Rule(border));
        }
    }
}

/// Whether data met congestion in a step: they left later and later, or did not leave at all.
fn congestion(
    step: &Step,
    record: &Record,
    sorted: &Sorted<'_>,
) -> std::result::Result<(), &'static str> {
    let mut came: HashMap<FlowKey, Ps> = HashMap::new();
    for (_, passed, bytes) in record.iter().filter(|(_, passed, _)| !passed.by_device) {
        if step.time.contains(&passed.at)
            && let Some(data) = DataPacket::from_frame(&parse(bytes, &Profile::DEFAULT))
        {
            came.insert(data.flow(), passed.at);
        }
    }
    let left = data(&sorted.forwarded).filter_map(|(own, data)| {
        let came = came.get(&data.flow())?;
        Some((*came, own.passed.at))
    });
    let left: Vec<_> = left.collect();
    let (Some(first), Some(last)) = (left.first(), left.last()) else {
        return Err("the device passed no data on");
    };
    if left.len() < came.len() {
        return Ok(());
    }
    let (came, left) = (last.0.since(first.0), last.1.since(first.1));
    // Less than a tenth longer is what any device may take.
    match left.0 > came.0 + came.0 / 10 {
        true => Ok(()),
        false => Err("data left as fast as they came: nothing met congestion"),
    }
}

/// Whether the packets of a step came faster than the limit on notifications lets through.
fn beyond(setup: &Setup<'_>, plan: &Plan, step: &Step) -> bool {
    let frames = plan
        .frames
        .iter()
        .filter(|planned| step.time.contains(&planned.at));
    let times: Vec<Ps> = frames.map(|planned| planned.at).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return false;
    };
    let span = last.since(*first).as_nanos() + fcn_observe::rules::TOLERANCE;
    let allowed = u128::from(span) * u128::from(setup.flow_rate) / 1_000_000_000;
    // Those that fill the queue cause none.
    let telling = (times.len() as u64).min(PACKETS);
    u128::from(telling) > allowed + 1
}

fn off(
    kinds: &[Kind],
    met: std::result::Result<(), &'static str>,
    sorted: &Sorted<'_>,
    ledger: &mut Ledger,
) {
    for (kind, statement) in [
        (Kind::FastCnp1, Statement::FastCnpOff),
        (Kind::ProxyCn, Statement::ProxyCnOff),
        (Kind::WanFcn, Statement::WanFcnOff),
    ] {
        if !kinds.contains(&kind) {
            ledger.cannot(&[statement], "the scenario's mechanism is another");
            continue;
        }
        match met {
            Ok(()) => ledger.tries(&[statement]),
            Err(why) => ledger.cannot(&[statement], why),
        }
        for own in sorted.own.iter().filter(|own| is_of(own, kind)) {
            let why = || format!("the device sent a {kind}, and nobody enabled it");
            ledger.fails(statement, why, &[own.index]);
        }
    }
}

/// Whether the device made this, of that kind, well-formed or not.
pub fn is_of(own: &Own<'_>, kind: Kind) -> bool {
    matches!(
        (own.frame.message(), kind),
        (Message::FastCnp(_), Kind::FastCnp1 | Kind::FastCnp2)
            | (Message::ProxyCn(_), Kind::ProxyCn)
            | (Message::WanFcn(_), Kind::WanFcn)
            | (Message::Cnp(_), Kind::Cnp)
    )
}

fn fast_cnp(setup: &Setup<'_>, index: &Index<'_>, own: &Own<'_>, ledger: &mut Ledger) {
    use Statement as S;
    let Some(notification) = &own.notification else {
        return;
    };
    let Subject::ReceiverQp { receiver, qp } = notification.subject else {
        return;
    };
    let shows = &[own.index];
    let loopback = IpAddr::V6(setup.simulation.nodes[setup.device].ipv6);
    if notification.notifier != loopback {
        let why = || {
            format!(
                "the source is {}, and the device's address {loopback}",
                notification.notifier
            )
        };
        ledger.fails(S::FastCnpFromLoopback, why, shows);
    }
    let sender = notification.destination;
    if !index.senders.contains(&sender) {
        let why = || format!("it goes to {sender}, which has sent nothing");
        return ledger.fails(S::FastCnpToSender, why, shows);
    }
    if !index.pairs.contains(&(sender, receiver)) {
        let why = || format!("{sender} has sent nothing to {receiver}");
        return ledger.fails(S::FastCnpOriginalCopied, why, shows);
    }
    let key = FlowKey {
        sender,
        receiver,
        receiver_qp: qp,
    };
    let Some(sent) = index.flows.get(&key) else {
        let why = || format!("{sender} has sent nothing to QP {qp} of {receiver}");
        return ledger.fails(S::FastCnpQpCopied, why, shows);
    };
    let has_trace = notification.kind == Kind::FastCnp2;
    if has_trace != sent.trace.is_some() {
        let why = || {
            let what = if has_trace {
                "no trace, and the option is 2"
            } else {
                "a trace, and the option is 1"
            };
            format!("the data packet had {what}")
        };
        ledger.fails(S::FastCnpOptionByTrace, why, shows);
    }
    if let (Message::FastCnp(message), Some(before)) = (own.frame.message(), &sent.trace)
        && let Some(trace) = message.parsed.ok().and_then(|option| option.trace())
    {
        ledger.tries(&[S::FastCnpTraceCopied]);
        if !continues(before, trace.bytes()) {
            let why = || "the trace is not the data packet's with what the device adds".to_owned();
            ledger.fails(S::FastCnpTraceCopied, why, shows);
        }
    }
}

/// Whether a pre-allocated trace is another one to which nodes have added their data.
fn continues(before: &[u8], after: &[u8]) -> bool {
    let node = TRACE.node_len() * 4;
    let header = fcn_wire::ioam::TRACE_HEADER_LEN;
    let namespace_and_type = |bytes: &[u8]| {
        (
            bytes.get(..2).map(<[u8]>::to_vec),
            bytes.get(4..7).map(<[u8]>::to_vec),
        )
    };
    before.len() == after.len()
        && namespace_and_type(before) == namespace_and_type(after)
        && before.get(header + 3 * node..) == after.get(header + 3 * node..)
}

/// The packet that caused a Fast CNP is not marked.
fn marks(
    setup: &Setup<'_>,
    index: &Index<'_>,
    told: &[&Own<'_>],
    sorted: &Sorted<'_>,
    ledger: &mut Ledger,
) {
    let Some(switch) = switch(setup) else { return };
    let is_able = |sender: IpAddr| {
        let senders = switch.congestion.senders.iter();
        let known = senders.filter(|(prefix, _)| prefix.contains(sender));
        let known = known.max_by_key(|(prefix, _)| prefix.bits());
        known.is_some_and(|(_, ability)| *ability == Ability::Able)
    };
    // A QP of one packet: the flow of the rate's step has many.
    let mut of_qp: HashMap<FlowKey, u32> = HashMap::new();
    let left: HashMap<FlowKey, (usize, bool)> = data(&sorted.forwarded)
        .map(|(own, data)| {
            *of_qp.entry(data.flow()).or_default() += 1;
            (data.flow(), (own.index, data.ecn == fcn_observe::Ecn::Ce))
        })
        .collect();
    for own in told {
        let Some(notification) = &own.notification else {
            continue;
        };
        let Subject::ReceiverQp { receiver, qp } = notification.subject else {
            continue;
        };
        let key = FlowKey {
            sender: notification.destination,
            receiver,
            receiver_qp: qp,
        };
        if !is_able(key.sender) || of_qp.get(&key) != Some(&1) || !index.flows.contains_key(&key) {
            continue;
        }
        let Some((at, marked)) = left.get(&key) else {
            continue;
        };
        let test = Test::Rule(Rule::FastCnpMarked);
        ledger.tried(test);
        if *marked {
            let text = Rule::FastCnpMarked.info().text;
            ledger.fail(test, || format!("{text}: QP {qp}"), &[own.index, *at]);
        }
    }
}

fn proxy_cn(setup: &Setup<'_>, index: &Index<'_>, own: &Own<'_>, ledger: &mut Ledger) {
    use Statement as S;
    let (Some(notification), Message::ProxyCn(message)) = (&own.notification, own.frame.message())
    else {
        return;
    };
    let shows = &[own.index];
    let tuple = message.five_tuple();
    let sent = index.tuples.get(&tuple).copied();
    let mut findings = fcn_wire::Findings::new();
    own.frame.check(fcn_wire::IcrcCheck::Off, &mut findings);
    // One that contradicts its own quote is the rule's business.
    if sent.is_none() && !findings.has(Rule::ProxyCnTuple) {
        let why = || {
            format!(
                "no data packet from {} to {} had port {}",
                tuple.source, tuple.destination, tuple.source_port
            )
        };
        ledger.fails(S::ProxyCnTupleCopied, why, shows);
    }
    let quoted = unchanging(message.invoking_packet());
    let is_quote = |sent: &&Sent| unchanging(&sent.packet).starts_with(&quoted);
    if !index.quoted(&quoted).is_some_and(|sent| is_quote(&sent)) {
        let why = || "the packet that is quoted was not sent".to_owned();
        ledger.fails(S::ProxyCnQuote, why, shows);
    }
    let sender = sent.map_or(tuple.source, |sent| sent.flow.sender);
    let proxies = setup
        .simulation
        .nodes
        .iter()
        .filter(|node| match &node.kind {
            NodeKind::Switch(switch) => switch
                .proxy
                .as_ref()
                .is_some_and(|proxy| proxy.serves.iter().any(|prefix| prefix.contains(sender))),
            NodeKind::Host(_) => false,
        });
    let mut proxies = proxies.flat_map(|node| [IpAddr::V6(node.ipv6), IpAddr::V4(node.ipv4)]);
    let to = notification.destination;
    if sent.is_some() && !proxies.any(|proxy| proxy == to) {
        let why = || format!("it goes to {to}, which is not the proxy of {sender}");
        ledger.fails(S::ProxyCnToProxy, why, shows);
    }
}

fn wan_fcn(index: &Index<'_>, own: &Own<'_>, ledger: &mut Ledger) {
    use Statement as S;
    let (Some(notification), Message::WanFcn(message)) = (&own.notification, own.frame.message())
    else {
        return;
    };
    let shows = &[own.index];
    let label = message.flow_label();
    let Some(sent) = index.labels.get(&label) else {
        let why = || format!("no packet had the outer flow label {label:#x}");
        return ledger.fails(S::WanFcnLabel, why, shows);
    };
    if let Some((_, ingress)) = sent.outer
        && notification.destination != ingress
    {
        let to = notification.destination;
        let why = || format!("it goes to {to}, and the tunnel begins at {ingress}");
        ledger.fails(S::WanFcnToIngress, why, shows);
    }
    if sent.ecn == 0 {
        let why = || "it is about a packet whose outer ECN field was 00".to_owned();
        ledger.fails(S::WanFcnCapable, why, shows);
    }
}
