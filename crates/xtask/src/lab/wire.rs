//! Traffic on the lab's links, from the capture of all of them: where packets met congestion, which
//! node notified which, how long that took, and the effect on the sender's rate. All times are from
//! one clock, the kernel's, which stamped the frames.
//!
//! **The loop** lasts from the time when the packet that met congestion passed the cable into the
//! congested switch, to the time when the notification passed the cable of the sender: the part in
//! which mechanisms differ in speed. A receiver answers a packet that is marked CE: that packet is
//! found on the receiver's cable, and its PSN shows where it was last unmarked. A switch answers a
//! packet as it arrives, on the cable by which it answers. A proxy node or ingress PE answers a
//! switch's notification, which answers such a packet. No notification names the packet, so the
//! flow's latest candidate is assumed, and the loop is at least that long.
//!
//! The source MAC address tells which node made a notification: switches may send CNPs in the
//! receiver's name.
//! Not here: the nodes' own reports (`outcome.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::net::IpAddr;

use fcn_wire::bth::Qp;
use fcn_wire::notification::{Side, Subject};
use fcn_wire::{Frame, Kind, Layer, LinkType, Message, Notification, Profile, ip};
use serde_json::Value;

use super::network::Topology;
use crate::figures;
use crate::packets::Capture;

/// Link type of Ethernet.
const ETHERNET: u32 = 1;
/// ECN field of a packet that met congestion.
const CE: u8 = 3;
/// Maximum number of flows whose beginnings are listed.
const BEGINNINGS: usize = 4;
/// Period in the scenario's time over which a rate is measured, before and after a notification, in
/// nanoseconds.
const WINDOW: f64 = 500_000.0;

/// A flow of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    name: String,
    sender: IpAddr,
    receiver: IpAddr,
    sender_qp: u32,
    receiver_qp: u32,
}

impl Flow {
    /// Returns the flows of a ground truth.
    pub fn all(truth: &Value) -> Vec<Self> {
        let flow = |flow: &Value| {
            let address = |key: &str| flow[key].as_str()?.parse().ok();
            let qp = |key: &str| u32::try_from(flow[key].as_u64()?).ok();
            Some(Self {
                name: flow["name"].as_str()?.to_owned(),
                sender: address("sender")?,
                receiver: address("receiver")?,
                sender_qp: qp("sender_qp")?,
                receiver_qp: qp("receiver_qp")?,
            })
        };
        let flows = truth["flows"].as_array().into_iter().flatten();
        flows.filter_map(flow).collect()
    }

    fn is_about(&self, said: &Notification) -> bool {
        said.sender == Some(self.sender)
            && match said.subject.qp() {
                Some((Side::Sender, qp)) => qp.get() == self.sender_qp,
                Some((Side::Receiver, qp)) => qp.get() == self.receiver_qp,
                None => false,
            }
    }
}

/// A data packet on a cable. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Data {
    at: u64,
    cable: usize,
    psn: u32,
    is_marked: bool,
    octets: u32,
}

/// A notification on a cable. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Notified {
    at: u64,
    cable: usize,
    /// Node that it is sent to.
    to: Option<usize>,
}

/// Packets of one flow, and notifications about it, by kind and by the node that made them.
#[derive(Debug, Default)]
struct FlowTraffic {
    data: Vec<Data>,
    notified: BTreeMap<(Kind, usize), Vec<Notified>>,
}

/// A notification, from its cause to the sender. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    flow: usize,
    kind: Kind,
    /// Node that made it.
    notifier: usize,
    /// Time when the packet that met congestion passed the cable into the switch.
    met: u64,
    /// The notification to a proxy node or ingress PE that it answers.
    request: Option<Request>,
    /// Time when the notification passed the first cable.
    said: u64,
    /// Time when it passed the sender's cable.
    notified: u64,
}

/// A notification to a proxy node or ingress PE. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    kind: Kind,
    /// Node that made it.
    notifier: usize,
    /// Time when it passed the first cable.
    said: u64,
}

/// A PFC frame on a cable. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pause {
    at: u64,
    cable: usize,
    notifier: usize,
    /// True if it pauses a class; others let all classes go on.
    stops: bool,
}

/// Traffic on the links.
#[derive(Debug)]
pub struct Wire {
    topology: Topology,
    flows: Vec<Flow>,
    traffic: Vec<FlowTraffic>,
    pauses: Vec<Pause>,
    loops: Vec<Loop>,
    /// Number of packets missing from the capture, if known; causes are unknown unless it is 0.
    missed: Option<u64>,
    speed: f64,
}

impl Wire {
    /// Reads the packets captured at the topology's cables, in their order, for these flows, at
    /// this speed of the scenario; `missed` packets are missing.
    pub fn read(
        capture: &Capture,
        missed: Option<u64>,
        topology: &Topology,
        flows: Vec<Flow>,
        speed: f64,
    ) -> Self {
        let profile = Profile::default();
        let mut traffic: Vec<FlowTraffic> = flows.iter().map(|_| FlowTraffic::default()).collect();
        let mut pauses = Vec::new();
        // Flow by flow label of the outer header, as far as no two flows share it.
        let mut labels: HashMap<u32, Option<usize>> = HashMap::new();
        let packets = capture.packets.iter().filter(|p| p.link == ETHERNET);
        for packet in packets {
            let (at, cable) = (packet.time.as_nanos() as u64, packet.interface as usize);
            let len = packet.wire_len as usize;
            let frame = Frame::parse(&packet.bytes, len, LinkType::Ethernet, &profile);
            let maker = frame.ethernet_source().and_then(|mac| topology.at_mac(mac));
            if let Some(said) = Notification::from_frame(&frame) {
                let flow = match said.subject {
                    Subject::FlowLabel(label) => labels.get(&label).copied().flatten(),
                    _ => flows.iter().position(|flow| flow.is_about(&said)),
                };
                let maker = maker.or_else(|| topology.at_address(said.notifier));
                if let (Some(flow), Some(maker)) = (flow, maker) {
                    let to = topology.at_address(said.destination);
                    let told = traffic[flow].notified.entry((said.kind, maker));
                    told.or_default().push(Notified { at, cable, to });
                }
                continue;
            }
            let (bth, ip) = match (frame.message(), frame.ip()) {
                (Message::Roce(bth, _), Some(ip)) => (bth, ip),
                (Message::Pfc(pause), _) => {
                    let stops = pause.enabled().any(|(_, quanta)| quanta > 0);
                    if let Some(notifier) = maker {
                        pauses.push(Pause {
                            at,
                            cable,
                            notifier,
                            stops,
                        });
                    }
                    continue;
                }
                _ => continue,
            };
            let qp: Qp = bth.dest_qp();
            let is_of = |flow: &Flow| {
                flow.receiver_qp == qp.get()
                    && (flow.sender, flow.receiver) == (ip.source, ip.destination)
            };
            if let Some(flow) = flows.iter().position(is_of) {
                traffic[flow].data.push(Data {
                    at,
                    cable,
                    psn: bth.psn(),
                    is_marked: ip.ecn() == CE,
                    octets: packet.wire_len,
                });
                let mut spans = frame.spans().iter();
                let outer = spans.find(|span| span.layer == Layer::Ipv6);
                if let Some(outer) = outer.and_then(|span| packet.bytes.get(span.start..)) {
                    let known = labels.entry(ip::flow_label(outer)).or_insert(Some(flow));
                    *known = known.filter(|known| *known == flow);
                }
            }
        }
        // Each cable is captured by a thread of its own.
        pauses.sort_by_key(|pause| pause.at);
        for flow in &mut traffic {
            flow.data.sort_by_key(|data| data.at);
            flow.notified
                .values_mut()
                .for_each(|told| told.sort_by_key(|told| told.at));
        }
        let mut loops = Vec::new();
        for (index, (flow, passed)) in flows.iter().zip(&traffic).enumerate() {
            if missed == Some(0) {
                loops.extend(passed.loops(index, flow, topology, speed));
            }
        }
        loops.sort_by_key(|round| round.notified);
        Self {
            topology: topology.clone(),
            flows,
            traffic,
            pauses,
            loops,
            missed,
            speed,
        }
    }

    /// Returns the name of the node with this address.
    fn name(&self, address: IpAddr) -> String {
        let node = self.topology.at_address(address);
        node.map_or_else(
            || address.to_string(),
            |node| self.topology.name(node).to_owned(),
        )
    }

    /// Returns a text about the first events.
    pub fn first(&self) -> String {
        let begins = |flow: &FlowTraffic| flow.data.first().map(|data| data.at);
        let Some(start) = self.traffic.iter().filter_map(begins).min() else {
            return "  no data packet was captured\n".to_owned();
        };
        // The time when all flows have begun, if the capture covers it: before, there may be no
        // significant congestion.
        let last = self
            .traffic
            .iter()
            .filter_map(begins)
            .max()
            .unwrap_or(start);
        let all_there = self.loops.iter().find(|round| round.met >= last);
        let first = all_there.or(self.loops.first());
        let pauses = self.first_pauses(start);
        let mut lines = Vec::new();
        let mut line = |at: u64, what: String| lines.push((at, what));
        let until = match (first, pauses.as_slice()) {
            (Some(first), _) => first.met,
            (None, [.., pause]) => pause.at,
            (None, []) => {
                return match self.missed {
                    None => "  the number of packets that the capture missed is unknown, so what happened first is unknown too\n".to_owned(),
                    Some(missed @ 1..) => format!(
                        "  the capture missed {missed} packets: what happened first, and how long notifications took, is unknown \
                         (a less busy machine or a lower --speed may help)\n"
                    ),
                    Some(0) => "  no notification of a flow was captured on its sender's link\n".to_owned(),
                };
            }
        };
        let begun = self.flows.iter().zip(self.traffic.iter().map(begins));
        let begun = begun.filter_map(|(flow, at)| Some((flow, at.filter(|at| *at <= until)?)));
        let mut begun: Vec<_> = begun.collect();
        begun.sort_by_key(|(_, at)| *at);
        if let ([.., (_, at)], true) = (begun.as_slice(), begun.len() > BEGINNINGS) {
            line(*at, format!("{} flows have begun", begun.len()));
            begun.clear();
        }
        for (flow, at) in begun {
            let (from, to) = (self.name(flow.sender), self.name(flow.receiver));
            line(at, format!("{} begins: {from} sends to {to}", flow.name));
        }
        for pause in pauses {
            let [a, b] = self.topology.cables()[pause.cable].ends;
            let to = if a == pause.notifier { b } else { a };
            let [from, to] = [pause.notifier, to].map(|node| self.topology.name(node));
            line(pause.at, format!("{from} pauses {to} (PFC)"));
        }
        let Some(first) = first else {
            return story(lines, start);
        };
        let flow = &self.flows[first.flow];
        let (sender, notifier) = (self.name(flow.sender), self.topology.name(first.notifier));
        let of = &flow.name;
        line(
            first.met,
            format!("a packet of {of} enters a congested queue"),
        );
        if let Some(Request {
            kind,
            notifier: switch,
            said,
        }) = first.request
        {
            let switch = self.topology.name(switch);
            line(said, format!("{switch} sends {notifier} a {kind} about it"));
        }
        line(
            first.said,
            format!("{notifier} sends a {} about it", first.kind),
        );
        let took = micros(first.notified - first.met);
        line(
            first.notified,
            format!("{sender} is notified, {took} after that packet"),
        );
        let begun = begins(&self.traffic[first.flow]).unwrap_or(start);
        let window = ((WINDOW / self.speed) as u64).min(first.notified.saturating_sub(begun));
        let after = first.notified + window;
        let rate = |from, to| self.traffic[first.flow].rate(from, to) / 1e6;
        let before = first.notified - window;
        let [before, then] = [rate(before, first.notified), rate(first.notified, after)];
        let span = window as f64 / 1e6;
        line(
            after,
            format!(
                "{of}: {before:.1} Mbit/s in the {span:.0} ms before, {then:.1} in the {span:.0} ms after"
            ),
        );
        story(lines, start)
    }

    /// Returns the first pause of each node after `start`, in order of time.
    fn first_pauses(&self, start: u64) -> Vec<Pause> {
        let mut nodes = BTreeSet::new();
        let after = self
            .pauses
            .iter()
            .filter(|pause| pause.stops && pause.at >= start);
        let each = after.filter(|pause| nodes.insert(pause.notifier));
        each.take(BEGINNINGS).copied().collect()
    }

    /// Returns the number of PFC frames on the links that pause a class, and of the others.
    pub fn pauses(&self) -> [usize; 2] {
        let stop = self.pauses.iter().filter(|pause| pause.stops).count();
        [stop, self.pauses.len() - stop]
    }

    /// Returns the type of node that made a notification.
    fn origin(&self, round: &Loop) -> &'static str {
        let receiver = self.topology.at_address(self.flows[round.flow].receiver);
        match round.request.map(|request| request.kind) {
            Some(Kind::ProxyCn) => "the proxy",
            Some(_) => "the ingress PE",
            None if receiver == Some(round.notifier) => "the receiver",
            None => "a switch",
        }
    }

    /// Returns the number of loops and their times, by kind and by type of notifier.
    pub fn reactions(&self) -> Vec<Reaction> {
        let mut all: BTreeMap<(Kind, &str), Vec<u64>> = BTreeMap::new();
        for round in &self.loops {
            let times = all.entry((round.kind, self.origin(round))).or_default();
            times.push(round.notified - round.met);
        }
        let reaction = |((kind, origin), mut times): ((Kind, &str), Vec<u64>)| {
            times.sort_unstable();
            let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
            Reaction {
                what: format!("{kind} from {origin}"),
                count: times.len(),
                p50: at(50),
                p99: at(99),
            }
        };
        all.into_iter().map(reaction).collect()
    }
}

/// Returns the number of packets that dumpcap reports as missed when it ends.
pub fn missed(log: &str) -> Option<u64> {
    let line = |line: &str| {
        let (_, counts) = line
            .strip_prefix("Packets received/dropped on interface")?
            .rsplit_once("': ")?;
        let (_, dropped) = counts.split_whitespace().next()?.split_once('/')?;
        dropped.parse::<u64>().ok()
    };
    let all: Vec<u64> = log.lines().filter_map(line).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// Times of a kind of notification, from the packet that met congestion to the sender, in
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Kind, and type of notifier.
    pub what: String,
    /// Number of loops.
    pub count: usize,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
}

/// Formats a table of these, by run, with the ratio of the slowest to each.
pub fn table(runs: &[(String, Vec<Reaction>)], speed: f64) -> String {
    let all = || {
        runs.iter()
            .flat_map(|(name, all)| all.iter().map(move |one| (name, one)))
    };
    let slowest = all().map(|(_, one)| one.p50).max().unwrap_or(0);
    let rows: Vec<Vec<String>> = all()
        .map(|(name, one)| {
            vec![
                name.clone(),
                one.what.clone(),
                one.count.to_string(),
                micros(one.p50),
                micros(one.p99),
                micros((one.p50 as f64 * speed) as u64),
                format!("{:.1}", slowest as f64 / one.p50.max(1) as f64),
            ]
        })
        .collect();
    let heading = [
        "",
        "notified by",
        "times",
        "p50",
        "p99",
        "p50, scenario time",
        "slowest / this",
    ];
    figures::table(&heading, &rows)
}

fn micros(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

impl FlowTraffic {
    /// Returns the sender's rate in bit/s, from the octets on the first cable that its packets
    /// pass. Times are in nanoseconds.
    fn rate(&self, from: u64, to: u64) -> f64 {
        let Some(first) = self.data.first() else {
            return 0.0;
        };
        let here = self.data.iter().filter(|data| data.cable == first.cable);
        let octets: u64 = here
            .filter(|data| (from..to).contains(&data.at))
            .map(|data| u64::from(data.octets))
            .sum();
        octets as f64 * 8e9 / (to - from).max(1) as f64
    }

    fn loops(&self, flow: usize, values: &Flow, topology: &Topology, speed: f64) -> Vec<Loop> {
        let ends = [values.sender, values.receiver].map(|end| topology.at_address(end));
        let [Some(sender), Some(receiver)] = ends else {
            return Vec::new();
        };
        let Some(&at_sender) = topology.path(sender, receiver).first() else {
            return Vec::new();
        };
        // A packet captured on a cable has already incurred the rate and the delay of the link.
        let left = |said: u64, cable: usize| {
            said.saturating_sub((topology.cables()[cable].delay_ns as f64 / speed) as u64)
        };
        let mut loops = Vec::new();
        for (&(kind, notifier), told) in &self.notified {
            let Some(&own) = topology.path(sender, notifier).last() else {
                continue;
            };
            let requests: Vec<_> = self.requests(notifier, topology).collect();
            // The receiver's CNPs, which a provider edge takes out of its tunnel.
            let relayed: Vec<u64> = (topology.path(notifier, receiver).first().into_iter())
                .flat_map(|&cable| {
                    let others = self.notified.iter();
                    let others = others.filter(move |((as_kind, by), _)| {
                        (*as_kind, *by != notifier) == (kind, true)
                    });
                    others.flat_map(move |(_, told)| passing(told, cable))
                })
                .filter(|_| !requests.is_empty())
                .collect();
            let mut answered = BTreeSet::new();
            let all: Vec<u64> = passing(told, own).collect();
            for notified in passing(told, at_sender) {
                let Some(said) = latest(&all, notified) else {
                    continue;
                };
                let left_at = left(said, own);
                let (request, met) = if notifier == receiver {
                    (None, self.unmarked(own, left_at))
                } else if requests.is_empty() {
                    let data = self.latest(own, left_at, |_| true);
                    (None, data.map(|data| data.at))
                } else {
                    let before = requests.iter().filter(|(arrived, _)| *arrived <= left_at);
                    let Some(&(arrived, request)) = before.max_by_key(|(arrived, _)| *arrived)
                    else {
                        continue;
                    };
                    // It may answer something else: a request has one answer, and a CNP of the
                    // receiver may have arrived since.
                    let other = |at: &u64| (arrived..=left_at).contains(at);
                    if relayed.iter().any(other) || !answered.insert(arrived) {
                        continue;
                    }
                    let from = topology.path(sender, request.notifier).last().copied();
                    let by = topology.path(notifier, request.notifier).last().copied();
                    let data = from
                        .zip(by)
                        .and_then(|(from, by)| self.latest(from, left(request.said, by), |_| true));
                    (Some(request), data.map(|data| data.at))
                };
                if let Some(met) = met {
                    loops.push(Loop {
                        flow,
                        kind,
                        notifier,
                        met,
                        request,
                        said,
                        notified,
                    });
                }
            }
        }
        loops
    }

    /// Returns the notifications sent to a proxy node or ingress PE, each with its time of arrival.
    fn requests<'a>(
        &'a self,
        node: usize,
        topology: &'a Topology,
    ) -> impl Iterator<Item = (u64, Request)> + 'a {
        self.notified
            .iter()
            .filter(|((kind, _), _)| matches!(kind, Kind::ProxyCn | Kind::WanFcn))
            .filter_map(move |(&(kind, notifier), told)| {
                let path = topology.path(node, notifier);
                let (&own, &first) = (path.first()?, path.last()?);
                let said: Vec<u64> = passing(told, first).collect();
                let here = told.iter().filter(move |told| told.cable == own);
                let here = here.filter(move |told| told.to == Some(node));
                Some(here.filter_map(move |told| {
                    let said = latest(&said, told.at)?;
                    let request = Request {
                        kind,
                        notifier,
                        said,
                    };
                    Some((told.at, request))
                }))
            })
            .flatten()
    }

    /// Returns the flow's latest packet on a cable up to that time.
    fn latest(&self, cable: usize, until: u64, is_it: impl Fn(&Data) -> bool) -> Option<&Data> {
        let end = self.data.partition_point(|data| data.at <= until);
        let before = self.data[..end].iter().rev();
        before
            .filter(|data| data.cable == cable)
            .find(|data| is_it(data))
    }

    /// Returns the time when the latest packet that was marked at `cable` up to `until` was last
    /// unmarked.
    fn unmarked(&self, cable: usize, until: u64) -> Option<u64> {
        let marked = self.latest(cable, until, |data| data.is_marked)?;
        let end = self.data.partition_point(|data| data.at < marked.at);
        let before = self.data[..end].iter().rev();
        let mut same = before.filter(|data| data.psn == marked.psn);
        same.find(|data| !data.is_marked).map(|data| data.at)
    }
}

/// Formats events in order of time, in milliseconds from `start`.
fn story(mut events: Vec<(u64, String)>, start: u64) -> String {
    events.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    for (at, what) in events {
        let ms = at.saturating_sub(start) as f64 / 1e6;
        let _ = writeln!(text, "{ms:>9.2} ms  {what}");
    }
    text
}

/// Returns the latest of the times, which are in order, up to `until`.
fn latest(times: &[u64], until: u64) -> Option<u64> {
    let before = times.partition_point(|at| *at <= until);
    times.get(before.checked_sub(1)?).copied()
}

fn passing(notified: &[Notified], cable: usize) -> impl Iterator<Item = u64> + '_ {
    notified
        .iter()
        .filter(move |told| told.cable == cable)
        .map(|told| told.at)
}

#[cfg(test)]
mod tests {
    use super::super::network::Cable;
    use super::*;

    const SENDER: usize = 0;
    const TRUNK: usize = 1;
    const RECEIVER: usize = 2;
    /// Switch near the sender.
    const NEAR: usize = 1;
    /// Switch near the receiver.
    const FAR: usize = 2;
    const HOST: usize = 3;

    fn flow() -> Flow {
        let truth = serde_json::json!({"flows": [{
            "name": "load", "sender": "fd00::1", "receiver": "fd00::2", "sender_qp": 17, "receiver_qp": 18,
        }]});
        Flow::all(&truth).remove(0)
    }

    fn topology() -> Topology {
        let node = |(name, address): (&str, IpAddr)| (name.to_owned(), [0; 6], vec![address]);
        let switch = |number| IpAddr::V6(std::net::Ipv6Addr::from_bits(number));
        let nodes = [
            ("s1", flow().sender),
            ("leaf1", switch(8)),
            ("leaf2", switch(9)),
            ("r1", flow().receiver),
        ];
        let cable = |end| Cable {
            name: String::new(),
            delay_ns: 10,
            ends: [end, end + 1],
        };
        Topology::new(nodes.map(node).to_vec(), (0..3).map(cable).collect())
    }

    fn data(at: u64, cable: usize, psn: u32, is_marked: bool) -> Data {
        let octets = 1_000;
        Data {
            at,
            cable,
            psn,
            is_marked,
            octets,
        }
    }

    /// Kind, maker, and times with cables.
    type Told<'a> = (Kind, usize, &'a [(u64, usize)]);

    fn loops(told: &[Told<'_>], data: &[Data]) -> Vec<(u64, u64, u64)> {
        let notified = told.iter().map(|&(kind, notifier, told)| {
            let to = Some(NEAR).filter(|_| kind == Kind::WanFcn);
            let told = told.iter().map(|&(at, cable)| Notified { at, cable, to });
            ((kind, notifier), told.collect())
        });
        let traffic = FlowTraffic {
            data: data.to_vec(),
            notified: notified.collect(),
        };
        let loops = traffic.loops(0, &flow(), &topology(), 0.1);
        loops.iter().map(|l| (l.met, l.said, l.notified)).collect()
    }

    #[test]
    fn a_receivers_loop_begins_where_the_packet_was_last_unmarked() {
        let passed = [
            data(1_000, SENDER, 5, false),
            data(1_100, TRUNK, 5, false),
            data(1_200, RECEIVER, 5, true),
            data(1_250, RECEIVER, 6, false),
            // Too late to have caused the answer, which incurred the link's delay.
            data(1_450, RECEIVER, 7, true),
        ];
        let told = [(1_500, RECEIVER), (1_600, TRUNK), (1_700, SENDER)];
        let loops = |told, passed| loops(&[(Kind::Cnp, HOST, told)], passed);
        assert_eq!(loops(&told, &passed), [(1_100, 1_500, 1_700)]);
        assert_eq!(loops(&told[..2], &passed), [], "it did not arrive");
        let unmarked = &passed[..2];
        assert_eq!(loops(&told, unmarked), [], "its cause is not known");
    }

    #[test]
    fn a_switchs_loop_begins_with_the_latest_packet_before_it() {
        let passed = [
            data(1_000, SENDER, 5, false),
            data(1_100, TRUNK, 5, false),
            data(1_250, TRUNK, 6, false),
            data(1_350, SENDER, 7, false),
        ];
        let told = [
            (1_300, TRUNK),
            (1_400, SENDER),
            (1_900, TRUNK),
            (2_000, SENDER),
        ];
        assert_eq!(
            loops(&[(Kind::FastCnp1, FAR, &told)], &passed),
            [(1_100, 1_300, 1_400), (1_250, 1_900, 2_000)]
        );
    }

    #[test]
    fn the_loop_of_an_ingress_pe_begins_before_the_fcn_that_it_answers() {
        let passed = [
            data(1_000, SENDER, 5, false),
            data(1_100, TRUNK, 5, false),
            data(1_900, TRUNK, 6, false),
        ];
        let fcn = [(1_300, TRUNK)];
        let cnp = [(1_500, SENDER), (2_500, SENDER)];
        let told = [(Kind::WanFcn, FAR, &fcn[..]), (Kind::Cnp, NEAR, &cnp[..])];
        assert_eq!(loops(&told, &passed), [(1_100, 1_500, 1_500)]);
        // The receiver's, in the tunnel.
        let relayed = [(1_310, TRUNK)];
        let told = [&told[..], &[(Kind::Cnp, HOST, &relayed[..])]].concat();
        assert_eq!(loops(&told, &passed), []);
    }

    fn wire(speed: f64) -> Wire {
        Wire {
            topology: topology(),
            flows: vec![flow()],
            traffic: Vec::new(),
            pauses: Vec::new(),
            loops: Vec::new(),
            missed: Some(0),
            speed,
        }
    }

    #[test]
    fn reactions_are_grouped_by_kind_and_notifier() {
        let round = |kind, notifier, took: u32| Loop {
            flow: 0,
            kind,
            notifier,
            request: None,
            met: 100,
            said: 110,
            notified: 100 + u64::from(took),
        };
        let wire = Wire {
            traffic: vec![FlowTraffic::default()],
            loops: vec![
                round(Kind::FastCnp1, FAR, 2_000),
                round(Kind::Cnp, HOST, 9_000),
                round(Kind::Cnp, FAR, 4_000),
                round(Kind::FastCnp1, FAR, 3_000),
                round(Kind::FastCnp1, FAR, 1_000),
            ],
            ..wire(0.1)
        };
        let text = table(&[("a".to_owned(), wire.reactions())], 0.1);
        let row = |what: &str| {
            text.lines()
                .find(|line| line.contains(what))
                .unwrap()
                .to_owned()
        };
        let cells = |what: &str| {
            row(what)
                .split("  ")
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            cells("Fast CNP from a switch")[2..],
            ["3", "2.0 µs", "3.0 µs", "0.2 µs", "4.5"]
        );
        assert_eq!(
            cells("CNP from the receiver")[2..],
            ["1", "9.0 µs", "9.0 µs", "0.9 µs", "1.0"]
        );
        // In the receiver's name, but the switch made it.
        assert_eq!(
            cells(" CNP from a switch")[1..3],
            ["CNP from a switch", "1"]
        );
    }

    #[test]
    fn the_story_has_the_rate_before_and_after() {
        let early = (0..10).map(|i| data(u64::from(i) * 1_000_000, SENDER, i, false));
        let late = data(15_000_000, SENDER, 11, false);
        let traffic = FlowTraffic {
            data: early.chain([late]).collect(),
            ..FlowTraffic::default()
        };
        let request = Request {
            kind: Kind::WanFcn,
            notifier: FAR,
            said: 9_200_000,
        };
        let wire = Wire {
            traffic: vec![traffic],
            loops: vec![Loop {
                flow: 0,
                kind: Kind::Cnp,
                notifier: NEAR,
                request: Some(request),
                met: 9_000_000,
                said: 9_500_000,
                notified: 10_000_000,
            }],
            ..wire(1e-3)
        };
        let text = wire.first();
        for line in [
            "     0.00 ms  load begins: s1 sends to r1",
            "     9.20 ms  leaf2 sends leaf1 a WAN FCN about it",
            "     9.50 ms  leaf1 sends a CNP about it",
            "    10.00 ms  s1 is notified, 1000.0 µs after that packet",
            "    20.00 ms  load: 8.0 Mbit/s in the 10 ms before, 0.8 in the 10 ms after",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let mut nothing = Wire {
            loops: Vec::new(),
            ..wire
        };
        assert!(nothing.first().contains("no notification"));
        nothing.missed = Some(3);
        let text = nothing.first();
        assert!(text.contains("missed 3 packets"), "{text}");
        nothing.pauses.push(Pause {
            at: 2_000_000,
            cable: TRUNK,
            notifier: FAR,
            stops: true,
        });
        nothing.pauses.push(Pause {
            at: 3_000_000,
            stops: false,
            ..nothing.pauses[0]
        });
        let text = nothing.first();
        assert!(text.contains("2.00 ms  leaf2 pauses leaf1 (PFC)"), "{text}");
        assert_eq!(nothing.pauses(), [1, 1]);
    }

    #[test]
    fn missed_packets_are_read_from_the_log() {
        let log = "Packets captured: 9\n\
            Packets received/dropped on interface 'a-b': 7/5 (pcap:1/dumpcap:4/flushed:0/ps_ifdrop:0) (58.3%)\n\
            Packets received/dropped on interface 'b-c': 2/1 (pcap:1/dumpcap:0/flushed:0/ps_ifdrop:0) (66.6%)\n";
        assert_eq!(missed(log), Some(6));
        assert_eq!(missed("Capturing on 2 interfaces\n"), None);
    }
}
