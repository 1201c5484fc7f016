//! Flows: who sends to whom, and the numbers of each connection, drawn from the seed where the file says none.

use super::addresses::Addresses;
use super::check;
use super::error::Refusal;
use super::model::{Flow, IoamTrace, Mechanism, NodeId, ProxyKnownBy};
use super::roles::Roles;
use super::schema::{
    File, FlowText, KnownByText, Maybe, MechanismText, PairsText, Patterns, TraceText,
};
use super::topology::{Paths, Topology};
use crate::units::{Ps, Rate};
use core::ops::Range;
use fcn_wire::Qp;
use fcn_wire::bth::MAX_24;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use toml::Spanned;

/// Largest message: InfiniBand's 2 GiB.
const LARGEST_MESSAGE: u64 = 1 << 31;
/// Most packets under way: half the PSNs, so that old and new can be told apart.
const WIDEST: u32 = 1 << 23;
/// Packets under way where the path holds fewer.
const WINDOW: u64 = 64;
/// Least time until data are sent again, where the file says none: 4.096 µs · 2¹² (InfiniBand volume 1, section 9.7.6.1.3), as
/// NICs are commonly set. A paused fabric holds packets back for milliseconds.
const PATIENCE: Ps = Ps::from_nanos(16_777_216);
/// UDP source ports are drawn from here on: the dynamic range (RFC 6335).
const PORTS: u32 = 0xC000;
/// DSCP and class of lossless RDMA traffic, as NICs come configured.
const DSCP: u8 = 26;
const PRIORITY: u8 = 3;

/// A flow before its numbers are known.
pub(super) struct Pair<'a> {
    pub entry: &'a FlowText,
    pub name: String,
    pub from: NodeId,
    pub to: NodeId,
    /// Nodes on the way, both hosts included.
    pub path: Vec<NodeId>,
    /// Whether its entry makes just this one.
    alone: bool,
    /// Number within its entry, from 0.
    index: u64,
}

/// Every flow's ends and way.
pub(super) fn pairs<'a>(file: &'a File, topology: &Topology<'_>) -> Result<Vec<Pair<'a>>, Refusal> {
    let mut paths = Paths::new(topology);
    let mut names = HashSet::new();
    let mut all = Vec::new();
    let mut on_the_way = 0;
    for entry in &file.flow {
        let entry = entry.get_ref();
        if let Some(name) = &entry.name {
            check::name(name)?;
        }
        let alone =
            single(entry.from.get_ref()) && single(entry.to.get_ref()) && entry.count.is_none();
        let ends = ends(entry, topology)?;
        let copies = check::within(&entry.count, 1, 1..=check::FLOWS as u32, "count of flows")?;
        check::count(
            all.len() + ends.len().saturating_mul(copies as usize),
            check::FLOWS,
            "flows",
            entry.to.span(),
        )?;
        let mut index = 0;
        for (from, to) in ends {
            let path = paths.path(from, to).ok_or_else(|| {
                let (from, to) = (topology.name(from), topology.name(to));
                Refusal::at(
                    &entry.to,
                    format!("there is no way from `{from}` to `{to}`; link their switches"),
                )
            })?;
            on_the_way += path.len() * copies as usize;
            let what = "nodes on the ways of all flows";
            check::count(on_the_way, check::ON_THE_WAY, what, entry.to.span())?;
            for copy in 1..=copies {
                let name = match &entry.name {
                    Some(name) if alone => name.get_ref().clone(),
                    Some(name) => format!("{}{}", name.get_ref(), index + 1),
                    None if entry.count.is_none() => {
                        format!("{}-{}", topology.name(from), topology.name(to))
                    }
                    None => format!("{}-{}-{copy}", topology.name(from), topology.name(to)),
                };
                if !names.insert(name.clone()) {
                    let at = entry
                        .name
                        .as_ref()
                        .map_or_else(|| entry.from.span(), Spanned::span);
                    return Err(Refusal::span(
                        at,
                        format!("there are two flows `{name}`; give them names that differ"),
                    ));
                }
                all.push(Pair {
                    entry,
                    name,
                    from,
                    to,
                    path: path.clone(),
                    alone,
                    index,
                });
                index += 1;
            }
        }
    }
    Ok(all)
}

fn single(patterns: &Patterns) -> bool {
    matches!(patterns.0.as_slice(), [one] if !one.contains('*'))
}

fn ends(entry: &FlowText, topology: &Topology<'_>) -> Result<Vec<(NodeId, NodeId)>, Refusal> {
    let from = topology.find(entry.from.get_ref(), &entry.from.span(), Some(true))?;
    let to = topology.find(entry.to.get_ref(), &entry.to.span(), Some(true))?;
    let ends: Vec<_> = match entry.pairs.unwrap_or(PairsText::All) {
        PairsText::Each if from.len() != to.len() => {
            let message = format!(
                "pairs = \"each\" wants as many receivers as senders; there are {} and {}",
                to.len(),
                from.len()
            );
            return Err(Refusal::at(&entry.to, message));
        }
        PairsText::Each => from.into_iter().zip(to).collect(),
        PairsText::All => {
            check::count(
                from.len().saturating_mul(to.len()),
                check::FLOWS + check::HOSTS,
                "flows",
                entry.to.span(),
            )?;
            from.iter()
                .flat_map(|from| to.iter().map(|to| (*from, *to)))
                .collect()
        }
    };
    let ends: Vec<_> = ends.into_iter().filter(|(from, to)| from != to).collect();
    if ends.is_empty() {
        return Err(Refusal::at(
            &entry.to,
            "sender and receiver are the same host; a flow needs two",
        ));
    }
    Ok(ends)
}

/// IPv6 unless the file says otherwise, or the proxies can only be known for IPv4.
pub(super) fn default_family(file: &File) -> Result<u8, Refusal> {
    let proxy = *file.mechanism.get_ref() == MechanismText::Proxy;
    let by = file
        .switch
        .iter()
        .filter_map(|switch| switch.get_ref().known_by.as_ref());
    let ospf2 = proxy && by.map(Spanned::get_ref).any(|by| *by == KnownByText::Ospf2);
    family(&file.ip, if ospf2 { 4 } else { 6 })
}

fn family(text: &Maybe<u8>, default: u8) -> Result<u8, Refusal> {
    match text {
        Some(ip) if ![4, 6].contains(ip.get_ref()) => Err(Refusal::at(
            ip,
            format!("{} is no version of IP; 4 and 6 are allowed", ip.get_ref()),
        )),
        Some(ip) => Ok(*ip.get_ref()),
        None => Ok(default),
    }
}

/// What all flows share.
pub(super) struct Maker<'a> {
    pub file: &'a File,
    pub topology: &'a Topology<'a>,
    pub addresses: &'a [Addresses],
    pub roles: &'a Roles<'a, 'a>,
    pub mechanism: Mechanism,
    pub duration: Ps,
    pub ip: u8,
    qps: HashSet<(NodeId, u32)>,
}

impl<'a> Maker<'a> {
    pub fn new(
        file: &'a File,
        topology: &'a Topology<'a>,
        addresses: &'a [Addresses],
        roles: &'a Roles<'a, 'a>,
        mechanism: Mechanism,
        duration: Ps,
    ) -> Result<Self, Refusal> {
        let ip = default_family(file)?;
        Ok(Self {
            file,
            topology,
            addresses,
            roles,
            mechanism,
            duration,
            ip,
            qps: HashSet::new(),
        })
    }

    /// Every flow, complete.
    pub fn flows(&mut self, pairs: &[Pair<'_>]) -> Result<Vec<Flow>, Refusal> {
        for pair in pairs {
            self.own_qps(pair)?;
        }
        pairs
            .iter()
            .enumerate()
            .map(|(number, pair)| self.flow(number, pair))
            .collect()
    }

    /// Reserves the QPs that the file gives, so that none is drawn that a later flow has.
    fn own_qps(&mut self, pair: &Pair<'_>) -> Result<(), Refusal> {
        for (own, host) in [
            (&pair.entry.sender_qp, pair.from),
            (&pair.entry.receiver_qp, pair.to),
        ] {
            let Some(qp) = own else { continue };
            check::within(
                own,
                2,
                2..=MAX_24,
                "QP (24 bits; 0 and 1 are for management)",
            )?;
            if !pair.alone {
                return Err(Refusal::at(
                    qp,
                    "a QP is for an entry that makes one flow; leave it out here",
                ));
            }
            if !self.qps.insert((host, *qp.get_ref())) {
                let message = format!(
                    "QP {} is taken at `{}`; QPs of a host must differ",
                    qp.get_ref(),
                    self.topology.name(host)
                );
                return Err(Refusal::at(qp, message));
            }
        }
        Ok(())
    }

    fn qp(&mut self, own: &Maybe<u32>, host: NodeId, chance: &mut Xoshiro256PlusPlus) -> Qp {
        if let Some(own) = own {
            return Qp::truncate(*own.get_ref());
        }
        loop {
            // At most 100,000 flows: of 16 million QPs one is soon found.
            let qp = bits(chance, 24);
            if qp > 255 && self.qps.insert((host, qp)) {
                return Qp::truncate(qp);
            }
        }
    }

    fn flow(&mut self, number: usize, pair: &Pair<'_>) -> Result<Flow, Refusal> {
        let entry = pair.entry;
        // Each flow has its own chance: one flow more leaves the others as they are.
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(
            self.file.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        let ip = family(&entry.ip, self.ip)?;
        let (source, destination) = self.ends(pair, ip)?;
        let mtu = mtu(&entry.mtu)?;
        let (start, stop) = self.times(pair)?;
        let way = self.way(pair, mtu);
        let window = check::within(&entry.window, way.window(mtu), 1..=WIDEST, "window")?;
        let message = entry
            .message
            .as_ref()
            .map_or(65_536, |message| message.get_ref().0);
        if let Some(at) = entry
            .message
            .as_ref()
            .filter(|_| !(1..=LARGEST_MESSAGE).contains(&message))
        {
            return Err(Refusal::at(
                at,
                format!("{message} octets are no message; 1 to 2 GiB are allowed"),
            ));
        }
        let patience = entry
            .retransmit_timeout
            .as_ref()
            .map_or(Ps(way.round.0.saturating_mul(8)).max(PATIENCE), |text| {
                text.get_ref().0
            });
        if let Some(at) = entry
            .retransmit_timeout
            .as_ref()
            .filter(|_| patience < way.round)
        {
            return Err(Refusal::at(
                at,
                format!(
                    "{patience} is shorter than the way there and back, {}",
                    way.round
                ),
            ));
        }
        let sender_qp = self.qp(&entry.sender_qp, pair.from, &mut chance);
        let receiver_qp = self.qp(&entry.receiver_qp, pair.to, &mut chance);
        let (port, label, psn) = (
            PORTS | bits(&mut chance, 14),
            bits(&mut chance, 20).max(1),
            bits(&mut chance, 24),
        );
        Ok(Flow {
            name: pair.name.clone(),
            from: pair.from,
            to: pair.to,
            source,
            destination,
            sender_qp,
            receiver_qp,
            source_port: entry.source_port.unwrap_or(port as u16),
            flow_label: check::within(
                &entry.flow_label,
                label,
                0..=0x000F_FFFF,
                "flow label (20 bits)",
            )?,
            first_psn: check::within(&entry.first_psn, psn, 0..=MAX_24, "PSN (24 bits)")?,
            start,
            stop,
            messages: match &entry.messages {
                Some(_) => Some(check::within(
                    &entry.messages,
                    1,
                    1..=u64::MAX,
                    "count of messages",
                )?),
                None => None,
            },
            message: message as u32,
            mtu,
            window,
            ack_every: check::within(
                &entry.ack_every,
                16.min(window),
                1..=window,
                "count of packets (the window is the most)",
            )?,
            retransmit_timeout: patience,
            priority: check::within(&entry.priority, PRIORITY, 0..=7, "priority")?,
            dscp: check::within(&entry.dscp, DSCP, 0..=63, "DSCP")?,
            ecn: entry
                .ecn
                .unwrap_or(!matches!(self.mechanism, Mechanism::None | Mechanism::Pfc)),
            ioam: self.trace(pair, ip)?,
            proxy_option: self.proxy_option(pair, ip)?,
            rdma_cm: entry.rdma_cm.unwrap_or(true),
            rate_limit: entry.rate_limit.map(|rate| rate.0),
        })
    }

    fn ends(&self, pair: &Pair<'_>, ip: u8) -> Result<(IpAddr, IpAddr), Refusal> {
        let address = |id: NodeId| {
            let own = self.addresses.get(id)?;
            if ip == 6 {
                Some(IpAddr::V6(own.ipv6))
            } else {
                own.ipv4.map(IpAddr::V4)
            }
        };
        match (address(pair.from), address(pair.to)) {
            (Some(from), Some(to)) => Ok((from, to)),
            _ => Err(Refusal::at(
                &pair.entry.to,
                format!("an end has no IPv{ip} address; give it one"),
            )),
        }
    }

    fn times(&self, pair: &Pair<'_>) -> Result<(Ps, Ps), Refusal> {
        let entry = pair.entry;
        let stagger = entry
            .stagger
            .as_ref()
            .map_or(Ps(0), |stagger| stagger.get_ref().0);
        let first = entry
            .start
            .as_ref()
            .map_or(Ps(0), |start| start.get_ref().0);
        let start = first + Ps(stagger.0.saturating_mul(pair.index));
        match &entry.stop {
            Some(stop) if stop.get_ref().0 <= start => Err(Refusal::at(
                stop,
                format!(
                    "`{}` would stop at {} and start at {start}",
                    pair.name,
                    stop.get_ref().0
                ),
            )),
            Some(stop) => Ok((start, stop.get_ref().0)),
            None => Ok((start, start.max(self.duration))),
        }
    }

    /// The way there and back, for packets of `mtu` octets.
    fn way(&self, pair: &Pair<'_>, mtu: u16) -> Way {
        let mut way = Way {
            round: Ps(0),
            slowest: u64::MAX,
        };
        for (a, b) in pair.path.iter().zip(pair.path.iter().skip(1)) {
            let Some(link) = self
                .topology
                .between(*a, *b)
                .and_then(|link| self.topology.links.get(link))
            else {
                continue;
            };
            way.round = way.round + link.delay + link.delay + link.rate.time(u64::from(mtu) + 100);
            way.slowest = way.slowest.min(link.rate.bits_per_second());
        }
        way
    }

    fn trace(&self, pair: &Pair<'_>, ip: u8) -> Result<Option<IoamTrace>, Refusal> {
        let entry = pair.entry;
        let kind = match &entry.trace {
            Some(kind) if ip == 4 && *kind.get_ref() != TraceText::None => {
                return Err(Refusal::at(
                    kind,
                    "an IOAM trace stands in an IPv6 option; the flow is IPv4 (ip = 6, or trace = \"none\")",
                ));
            }
            Some(kind) => *kind.get_ref(),
            None if self.mechanism == Mechanism::FastCnpIoam && ip == 6 => TraceText::Preallocated,
            None => TraceText::None,
        };
        if kind == TraceText::None {
            return Ok(None);
        }
        // Opt Data Len is an octet.
        let most = (1..=u8::MAX)
            .rev()
            .find(|nodes| IoamTrace::option_len(usize::from(*nodes)) <= 255)
            .unwrap_or(1);
        let on_way = pair
            .path
            .iter()
            .filter(|id| self.roles.writes_ioam(**id))
            .count();
        let default = u8::try_from(on_way).unwrap_or(u8::MAX).clamp(1, most);
        if let Some(nodes) = entry
            .trace_nodes
            .as_ref()
            .filter(|nodes| !(1..=u32::from(most)).contains(nodes.get_ref()))
        {
            let len = IoamTrace::option_len(*nodes.get_ref() as usize);
            let message = format!(
                "a trace of {} nodes makes an option of {len} octets; 1 to {most} nodes are allowed, since an IPv6 option holds at most 255",
                nodes.get_ref()
            );
            return Err(Refusal::at(nodes, message));
        }
        let nodes = entry
            .trace_nodes
            .as_ref()
            .and_then(|nodes| u8::try_from(*nodes.get_ref()).ok())
            .unwrap_or(default);
        let incremental = kind == TraceText::Incremental;
        Ok(Some(IoamTrace {
            incremental,
            nodes,
            namespace: entry.trace_namespace.unwrap_or(0),
        }))
    }

    /// The proxy's address for the flow's packets, where the proxy is known by that; what the others need is checked here too.
    fn proxy_option(&self, pair: &Pair<'_>, ip: u8) -> Result<Option<Ipv6Addr>, Refusal> {
        let Some((proxy, known_by)) = self.roles.proxy_of(pair.from) else {
            return Ok(None);
        };
        let (wants, word) = match known_by {
            ProxyKnownBy::Option => (6, "option"),
            ProxyKnownBy::Ospf3 => (6, "ospfv3"),
            ProxyKnownBy::Ospf2 => (4, "ospfv2"),
            _ => return Ok(None),
        };
        if ip != wants {
            let message = format!(
                "`{}` is IPv{ip}, but known_by = \"{word}\" tells of IPv{wants} senders only; give ip = {wants}",
                pair.name
            );
            return Err(Refusal::span(self.family_place(pair), message));
        }
        Ok((known_by == ProxyKnownBy::Option).then_some(proxy.ipv6))
    }

    fn family_place(&self, pair: &Pair<'_>) -> Range<usize> {
        let own = pair
            .entry
            .ip
            .as_ref()
            .or(self.file.ip.as_ref())
            .map(Spanned::span);
        own.unwrap_or_else(|| pair.entry.from.span())
    }
}

/// A flow's way.
struct Way {
    round: Ps,
    slowest: u64,
}

impl Way {
    /// Four times what is under way when the slowest link is full, so that windows do not hide congestion.
    fn window(&self, mtu: u16) -> u32 {
        let packet = Rate::new(self.slowest).map_or(Ps(0), |rate| rate.time(u64::from(mtu)));
        let packets = self.round.0 / packet.0.max(1);
        u32::try_from(packets.saturating_mul(4).max(WINDOW))
            .unwrap_or(WIDEST)
            .min(WIDEST)
    }
}

fn mtu(text: &Maybe<u16>) -> Result<u16, Refusal> {
    match text {
        Some(mtu) if !check::MTUS.contains(mtu.get_ref()) => {
            let sizes = check::MTUS.map(|mtu| mtu.to_string()).join(", ");
            Err(Refusal::at(
                mtu,
                format!("{} is no RoCE MTU; {sizes} are allowed", mtu.get_ref()),
            ))
        }
        Some(mtu) => Ok(*mtu.get_ref()),
        None => Ok(1024),
    }
}

fn bits(chance: &mut Xoshiro256PlusPlus, bits: u32) -> u32 {
    (chance.next_u64() >> (64 - bits)) as u32
}
