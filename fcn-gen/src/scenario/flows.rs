//! The flows with their senders and receivers. Numbers of a connection that the file leaves out are
//! drawn from the seed.

use super::error::{Refusal, refuse};
use super::limits;
use super::model::{Flow, Mechanism, NodeId, ProxyKnownBy};
use super::pairs::Pair;
use super::roles::Roles;
use super::schema::{File, TraceKind, WIDEST};
use crate::ioam::IoamTrace;
use crate::units::Ps;
use core::num::NonZeroU64;
use fcn_wire::Qp;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::HashSet;
use std::net::Ipv6Addr;

/// Minimum of the default window, in packets.
const WINDOW: u64 = 64;
/// Minimum of the default retransmission timeout: 4.096 µs · 2¹² (InfiniBand volume 1, section
/// 9.7.6.1.3), a common setting of NICs. A paused fabric delays packets for milliseconds.
const LEAST_TIMEOUT: Ps = Ps::from_nanos(16_777_216);
/// First UDP source port to draw from: the start of the dynamic range (RFC 6335).
const PORTS: u32 = 0xC000;
/// DSCP and class of lossless RDMA traffic, as in the default configuration of NICs.
const DSCP: u8 = 26;
const PRIORITY: u8 = 3;

/// Returns 6, unless the file specifies a version, or the proxies can only be advertised for IPv4.
fn default_family(file: &File) -> u8 {
    let mut known_by = file.switch.iter().map(|switch| switch.known_by);
    let ospf2 =
        file.mechanism == Mechanism::Proxy && known_by.any(|by| by == Some(ProxyKnownBy::Ospf2));
    file.ip.map_or(if ospf2 { 4 } else { 6 }, |ip| ip.0)
}

/// Builds every flow.
pub(super) fn flows(
    file: &File,
    roles: &Roles<'_, '_>,
    pairs: &[Pair<'_>],
) -> Result<Vec<Flow>, Refusal> {
    let mut builder = Builder {
        file,
        roles,
        ip: default_family(file),
        qps: HashSet::new(),
    };
    for pair in pairs {
        builder.own_qps(pair)?;
    }
    let numbered = pairs.iter().enumerate();
    numbered
        .map(|(number, pair)| builder.flow(number, pair))
        .collect()
}

/// State shared by all flows.
struct Builder<'a> {
    file: &'a File,
    roles: &'a Roles<'a, 'a>,
    ip: u8,
    qps: HashSet<(NodeId, u32)>,
}

impl Builder<'_> {
    /// Reserves the QPs given in the file, so that none of them is drawn for another flow.
    fn own_qps(&mut self, pair: &Pair<'_>) -> Result<(), Refusal> {
        for (own, host, key) in [
            (pair.keys.sender_qp, pair.from, "sender_qp"),
            (pair.keys.receiver_qp, pair.to, "receiver_qp"),
        ] {
            let Some(qp) = own.map(|qp| qp.0) else {
                continue;
            };
            if !pair.alone {
                refuse!(
                    pair.key(key),
                    "only an entry that makes one flow can set a QP"
                );
            }
            if !self.qps.insert((host, qp)) {
                let host = self.roles.topology.name(host);
                refuse!(
                    pair.key(key),
                    "QP {qp} is already used at `{host}`; QPs of a host must differ"
                );
            }
        }
        Ok(())
    }

    fn qp(&mut self, own: Option<u32>, host: NodeId, rng: &mut Xoshiro256PlusPlus) -> Qp {
        if let Some(own) = own {
            return Qp::truncate(own);
        }
        loop {
            // With at most 100,000 flows and 16 million QPs, a free one is found quickly.
            let qp = bits(rng, 24);
            if qp > 255 && self.qps.insert((host, qp)) {
                return Qp::truncate(qp);
            }
        }
    }

    fn flow(&mut self, number: usize, pair: &Pair<'_>) -> Result<Flow, Refusal> {
        let keys = pair.keys;
        // Each flow has its own random number generator, so that an additional flow does not change
        // the others.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(
            self.file.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        let ip = keys.ip.map_or(self.ip, |ip| ip.0);
        let [source, destination] =
            [pair.from, pair.to].map(|id| self.roles.addresses[id].for_family(ip));
        let mtu = pair.mtu();
        let (start, stop) = self.times(pair)?;
        let (round, window) = self.round_and_window(pair, mtu);
        let window = keys.window.map_or(window, |window| window.0);
        let usual = if self.roles.uses_hpcc(pair.from) {
            1
        } else {
            16
        };
        let ack_every = keys.ack_every.unwrap_or(usual.min(window));
        if !(1..=window).contains(&ack_every) {
            refuse!(
                pair.key("ack_every"),
                "{ack_every} is out of range; 1 to the window, {window}, are allowed"
            );
        }
        let usual = Ps(round.0.saturating_mul(8)).max(LEAST_TIMEOUT);
        let timeout = keys.retransmit_timeout.unwrap_or(usual);
        if timeout < round {
            refuse!(
                pair.key("retransmit_timeout"),
                "{timeout} is shorter than the round-trip time, {round}"
            );
        }
        let sender_qp = self.qp(keys.sender_qp.map(|qp| qp.0), pair.from, &mut rng);
        let receiver_qp = self.qp(keys.receiver_qp.map(|qp| qp.0), pair.to, &mut rng);
        let (port, label, psn) = (
            PORTS | bits(&mut rng, 14),
            bits(&mut rng, 20).max(1),
            bits(&mut rng, 24),
        );
        let marks = !matches!(self.file.mechanism, Mechanism::None | Mechanism::Pfc);
        Ok(Flow {
            name: pair.name.clone(),
            from: pair.from,
            to: pair.to,
            source,
            destination,
            sender_qp,
            receiver_qp,
            source_port: keys.source_port.unwrap_or(port as u16),
            flow_label: keys.flow_label.map_or(label, |label| label.0),
            first_psn: keys.first_psn.map_or(psn, |psn| psn.0),
            start,
            stop,
            messages: keys.messages.map(NonZeroU64::get),
            message: keys.message.map_or(65_536, |message| message.0 as u32),
            mtu,
            window,
            ack_every,
            retransmit_timeout: timeout,
            priority: keys.priority.map_or(PRIORITY, |priority| priority.0),
            dscp: keys.dscp.map_or(DSCP, |dscp| dscp.0),
            ecn: keys.ecn.unwrap_or(marks),
            ioam: self.trace(pair, ip)?,
            proxy_option: self.proxy_option(pair, ip)?,
            rdma_cm: keys.rdma_cm.unwrap_or(true),
            rate_limit: keys.rate_limit,
        })
    }

    fn times(&self, pair: &Pair<'_>) -> Result<(Ps, Ps), Refusal> {
        let keys = pair.keys;
        let stagger = keys.stagger.unwrap_or_default();
        let start = keys.start.unwrap_or_default() + Ps(stagger.0.saturating_mul(pair.index));
        let (end, what) = (self.file.duration.0, format!("`{}`", pair.name));
        let stop = limits::stop((start, keys.stop), end, &what, || pair.key("stop"))?;
        Ok((start, stop))
    }

    /// Returns the round-trip time of packets of `mtu` octets, and the window: four times the
    /// packets in flight when the slowest link is full, so that windows do not hide congestion.
    fn round_and_window(&self, pair: &Pair<'_>, mtu: u16) -> (Ps, u32) {
        let round = pair.round(self.roles.topology);
        let times =
            (self.roles.topology.links_on(&pair.path)).map(|link| link.rate.time(mtu.into()));
        let packet = times.max().unwrap_or_default().max(Ps(1));
        let packets = (round.0 / packet.0).saturating_mul(4).max(WINDOW);
        let window = u32::try_from(packets).unwrap_or(WIDEST);
        (round, window.min(WIDEST))
    }

    fn trace(&self, pair: &Pair<'_>, ip: u8) -> Result<Option<IoamTrace>, Refusal> {
        let keys = pair.keys;
        let counts = self.roles.uses_hpcc(pair.from);
        let by_mechanism = if counts || self.file.mechanism == Mechanism::FastCnpIoam && ip == 6 {
            TraceKind::Preallocated
        } else {
            TraceKind::None
        };
        let kind = keys.trace.unwrap_or(by_mechanism);
        if counts && kind != TraceKind::Preallocated {
            refuse!(
                pair.key("trace"),
                "`{}` is controlled by HPCC, which needs a preallocated trace (trace = \
                 \"preallocated\", or another control of its sender)",
                pair.name
            );
        }
        if kind == TraceKind::None {
            return Ok(None);
        }
        if ip == 4 {
            refuse!(
                pair.key("trace"),
                "an IOAM trace needs an IPv6 option, but the flow is IPv4 (ip = 6, or trace = \
                 \"none\")"
            );
        }
        // Opt Data Len is an octet.
        let room = 255 - IoamTrace::option_len(0);
        let most = (room / (IoamTrace::option_len(1) - IoamTrace::option_len(0))) as u32;
        let on_way = pair.path.iter().filter(|id| self.roles.writes_ioam(**id));
        let on_way = on_way.count() as u32;
        let nodes = keys.trace_nodes.unwrap_or(on_way.clamp(1, most));
        if !(1..=most).contains(&nodes) {
            let len = IoamTrace::option_len(nodes as usize);
            refuse!(
                pair.key("trace_nodes"),
                "a trace of {nodes} nodes needs an option of {len} octets; 1 to {most} nodes are allowed, since an IPv6 option \
                 holds at most 255"
            );
        }
        Ok(Some(IoamTrace {
            incremental: kind == TraceKind::Incremental,
            nodes: nodes as u8,
            namespace: keys.trace_namespace,
            counts,
        }))
    }

    /// Returns the proxy's address for the option in the flow's packets, if the proxy is announced
    /// in this way. Also checks the IP version that other ways require.
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
            let path = match (pair.keys.ip, self.file.ip) {
                (Some(_), _) => pair.key("ip"),
                (None, Some(_)) => "ip".to_owned(),
                (None, None) => pair.key("from"),
            };
            let name = &pair.name;
            refuse!(
                path,
                "`{name}` is IPv{ip}, but known_by = \"{word}\" announces IPv{wants} senders \
                 only; set ip = {wants}"
            );
        }
        Ok((known_by == ProxyKnownBy::Option).then_some(proxy.ipv6))
    }
}

fn bits(rng: &mut Xoshiro256PlusPlus, bits: u32) -> u32 {
    (rng.next_u64() >> (64 - bits)) as u32
}
