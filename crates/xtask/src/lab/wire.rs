//! Traffic on the lab's links, from the capture of all of them: where packets met congestion, which
//! node notified which, how long that took, and the effect on the sender's rate. All times are from
//! one clock, the kernel's, which stamped the frames.
//!
//! **The loop** lasts from the time when the packet that met congestion passed the cable into the
//! congested switch, to the time when the notification passed the cable of the sender: the part in
//! which mechanisms differ in speed. A receiver answers a packet that is marked CE: that packet is
//! found on the receiver's cable, and its PSN shows where it was last unmarked. A switch answers a
//! packet as it arrives, on the cable by which it answers. No notification names the packet, so the
//! flow's latest candidate is assumed, and the loop is at least that long.
//! Not here: the nodes' own reports (`outcome.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use fcn_wire::bth::Qp;
use fcn_wire::notification::Side;
use fcn_wire::{Frame, Kind, LinkType, Message, Notification, Profile};
use serde_json::Value;

use super::network::Cable;
use crate::figures;
use crate::packets::Capture;

/// Link type of Ethernet.
const ETHERNET: u32 = 1;
/// ECN field of a packet that met congestion.
const CE: u8 = 3;
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
}

/// Packets of one flow, and notifications about it.
#[derive(Debug, Default)]
struct FlowTraffic {
    data: Vec<Data>,
    notified: BTreeMap<(Kind, IpAddr), Vec<Notified>>,
}

/// A notification, from its cause to the sender. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    flow: usize,
    kind: Kind,
    notifier: IpAddr,
    /// Time when the packet that met congestion passed the cable into the switch.
    met: u64,
    /// Time when the notification passed the first cable.
    said: u64,
    /// Time when it passed the sender's cable.
    notified: u64,
}

/// Traffic on the links.
#[derive(Debug)]
pub struct Wire {
    flows: Vec<Flow>,
    traffic: Vec<FlowTraffic>,
    loops: Vec<Loop>,
    /// Number of packets missing from the capture, if known; causes are unknown unless it is 0.
    missed: Option<u64>,
    /// True if a proxy or ingress PE translated notifications: their causes are not searched for.
    translated: bool,
    speed: f64,
}

impl Wire {
    /// Reads the packets captured at `cables`, in the order of `cables`, for these flows, at this
    /// speed of the scenario; `missed` packets are missing.
    pub fn read(
        capture: &Capture,
        missed: Option<u64>,
        cables: &[Cable],
        flows: Vec<Flow>,
        speed: f64,
    ) -> Self {
        let profile = Profile::default();
        let mut traffic: Vec<FlowTraffic> = flows.iter().map(|_| FlowTraffic::default()).collect();
        let mut translated = false;
        let packets = capture.packets.iter().filter(|p| p.link == ETHERNET);
        for packet in packets {
            let (at, cable) = (packet.time.as_nanos() as u64, packet.interface as usize);
            let len = packet.wire_len as usize;
            let frame = Frame::parse(&packet.bytes, len, LinkType::Ethernet, &profile);
            if let Some(said) = Notification::from_frame(&frame) {
                translated |= matches!(said.kind, Kind::ProxyCn | Kind::WanFcn);
                if let Some(flow) = flows.iter().position(|flow| flow.is_about(&said)) {
                    let notified = &mut traffic[flow].notified;
                    let told = notified.entry((said.kind, said.notifier)).or_default();
                    told.push(Notified { at, cable });
                }
                continue;
            }
            let (Message::Roce(bth, Some(_)), Some(ip)) = (frame.message(), frame.ip()) else {
                continue;
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
            }
        }
        // Each cable is captured by a thread of its own.
        for flow in &mut traffic {
            flow.data.sort_by_key(|data| data.at);
            flow.notified
                .values_mut()
                .for_each(|told| told.sort_by_key(|told| told.at));
        }
        let mut loops = Vec::new();
        for (index, (flow, passed)) in flows.iter().zip(&traffic).enumerate() {
            if !translated && missed == Some(0) {
                loops.extend(passed.loops(index, flow, cables, speed));
            }
        }
        loops.sort_by_key(|round| round.notified);
        Self {
            flows,
            traffic,
            loops,
            missed,
            translated,
            speed,
        }
    }

    /// Returns a text about the first events; `name` returns the names of nodes by address.
    pub fn first(&self, name: impl Fn(IpAddr) -> String) -> String {
        let begins = |flow: &FlowTraffic| flow.data.first().map(|data| data.at);
        let Some(start) = self.traffic.iter().filter_map(begins).min() else {
            return "no data packet was captured\n".to_owned();
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
        let Some(first) = all_there.or(self.loops.first()) else {
            return match (self.missed, self.translated) {
                (None, _) => "the number of packets that the capture missed is unknown, so what happened first is unknown too\n".to_owned(),
                (Some(missed @ 1..), _) => format!(
                    "the capture missed {missed} packets: what happened first, and how long notifications took, is unknown \
                     (a less busy machine or a lower --speed may help)\n"
                ),
                (_, true) => "notifications were translated on the path; their times are not measured here\n".to_owned(),
                (_, false) => "no notification was captured on the link of its flow's sender\n".to_owned(),
            };
        };
        let mut text = String::new();
        let mut line = |at: u64, what: String| {
            let ms = at.saturating_sub(start) as f64 / 1e6;
            let _ = writeln!(text, "{ms:>9.2} ms  {what}");
        };
        let begun = self.flows.iter().zip(self.traffic.iter().map(begins));
        let mut begun: Vec<_> = begun.collect();
        begun.sort_by_key(|(_, at)| *at);
        for (flow, at) in begun {
            if let Some(at) = at.filter(|at| *at <= first.met) {
                let (from, to) = (name(flow.sender), name(flow.receiver));
                line(at, format!("{} begins: {from} sends to {to}", flow.name));
            }
        }
        let flow = &self.flows[first.flow];
        let (sender, notifier) = (name(flow.sender), name(first.notifier));
        let of = &flow.name;
        line(
            first.met,
            format!("a packet of {of} enters a congested queue"),
        );
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
        text
    }

    /// Returns the number of loops and their times, by kind and by type of notifier, switch or
    /// receiver.
    pub fn reactions(&self) -> Vec<Reaction> {
        let mut all: BTreeMap<(Kind, bool), Vec<u64>> = BTreeMap::new();
        for round in &self.loops {
            let by_receiver = self.flows[round.flow].receiver == round.notifier;
            let times = all.entry((round.kind, by_receiver)).or_default();
            times.push(round.notified - round.met);
        }
        let reaction = |((kind, by_receiver), mut times): ((Kind, bool), Vec<u64>)| {
            times.sort_unstable();
            let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
            Reaction {
                what: match by_receiver {
                    true => format!("{kind} from the receiver"),
                    false => format!("{kind} from a switch"),
                },
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

    fn loops(&self, flow: usize, values: &Flow, cables: &[Cable], speed: f64) -> Vec<Loop> {
        let own = |address: IpAddr| cables.iter().position(|cable| cable.leads_to(address));
        let (Some(at_sender), Some(at_receiver)) = (own(values.sender), own(values.receiver))
        else {
            return Vec::new();
        };
        let mut loops = Vec::new();
        for (&(kind, notifier), told) in &self.notified {
            // The cable of the first capture is the notifier's.
            let Some(first) = told.first() else { continue };
            let delay = (cables[first.cable].delay_ns as f64 / speed) as u64;
            let said: Vec<u64> = passing(told, first.cable).collect();
            for notified in passing(told, at_sender) {
                let before = said.partition_point(|said| *said <= notified);
                let Some(said) = before.checked_sub(1).and_then(|last| said.get(last)) else {
                    continue;
                };
                // A packet captured on a cable has already incurred the rate and the delay of the
                // link.
                let met = match first.cable == at_receiver {
                    true => self.unmarked(at_receiver, said.saturating_sub(delay)),
                    false => self
                        .latest(first.cable, said.saturating_sub(delay), |_| true)
                        .map(|data| data.at),
                };
                if let Some(met) = met {
                    loops.push(Loop {
                        flow,
                        kind,
                        notifier,
                        met,
                        said: *said,
                        notified,
                    });
                }
            }
        }
        loops
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

fn passing(notified: &[Notified], cable: usize) -> impl Iterator<Item = u64> + '_ {
    notified
        .iter()
        .filter(move |told| told.cable == cable)
        .map(|told| told.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: usize = 0;
    const TRUNK: usize = 1;
    const RECEIVER: usize = 2;
    const SWITCH: IpAddr = IpAddr::V6(std::net::Ipv6Addr::from_bits(9));

    fn flow() -> Flow {
        let truth = serde_json::json!({"flows": [{
            "name": "load", "sender": "fd00::1", "receiver": "fd00::2", "sender_qp": 17, "receiver_qp": 18,
        }]});
        Flow::all(&truth).remove(0)
    }

    fn cables() -> Vec<Cable> {
        let ends = [vec![flow().sender], vec![], vec![flow().receiver]];
        let cable = |ends| Cable::new("", 10, ends);
        ends.into_iter().map(cable).collect()
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

    fn loops(
        kind: Kind,
        notifier: IpAddr,
        told: &[(u64, usize)],
        data: &[Data],
    ) -> Vec<(u64, u64, u64)> {
        let told = told.iter().map(|&(at, cable)| Notified { at, cable });
        let traffic = FlowTraffic {
            data: data.to_vec(),
            notified: BTreeMap::from([((kind, notifier), told.collect())]),
        };
        let loops = traffic.loops(0, &flow(), &cables(), 0.1);
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
        let receiver = flow().receiver;
        assert_eq!(
            loops(Kind::Cnp, receiver, &told, &passed),
            [(1_100, 1_500, 1_700)]
        );
        assert_eq!(
            loops(Kind::Cnp, receiver, &told[..2], &passed),
            [],
            "it did not arrive"
        );
        let unmarked = &passed[..2];
        assert_eq!(
            loops(Kind::Cnp, receiver, &told, unmarked),
            [],
            "its cause is not known"
        );
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
            loops(Kind::FastCnp1, SWITCH, &told, &passed),
            [(1_100, 1_300, 1_400), (1_250, 1_900, 2_000)]
        );
    }

    #[test]
    fn reactions_are_grouped_by_kind_and_notifier() {
        let round = |kind, notifier, took: u32| Loop {
            flow: 0,
            kind,
            notifier,
            met: 100,
            said: 110,
            notified: 100 + u64::from(took),
        };
        let wire = Wire {
            flows: vec![flow()],
            traffic: vec![FlowTraffic::default()],
            loops: vec![
                round(Kind::FastCnp1, SWITCH, 2_000),
                round(Kind::Cnp, flow().receiver, 9_000),
                round(Kind::FastCnp1, SWITCH, 3_000),
                round(Kind::FastCnp1, SWITCH, 1_000),
            ],
            missed: Some(0),
            translated: false,
            speed: 0.1,
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
    }

    #[test]
    fn the_story_has_the_rate_before_and_after() {
        let early = (0..10).map(|i| data(u64::from(i) * 1_000_000, SENDER, i, false));
        let late = data(15_000_000, SENDER, 11, false);
        let traffic = FlowTraffic {
            data: early.chain([late]).collect(),
            ..FlowTraffic::default()
        };
        let wire = Wire {
            flows: vec![flow()],
            traffic: vec![traffic],
            loops: vec![Loop {
                flow: 0,
                kind: Kind::FastCnp1,
                notifier: SWITCH,
                met: 9_000_000,
                said: 9_500_000,
                notified: 10_000_000,
            }],
            missed: Some(0),
            translated: false,
            speed: 1e-3,
        };
        let text = wire.first(|address| match address {
            SWITCH => "leaf1".to_owned(),
            host => host.to_string(),
        });
        for line in [
            "     0.00 ms  load begins: fd00::1 sends to fd00::2",
            "     9.50 ms  leaf1 sends a Fast CNP about it",
            "    10.00 ms  fd00::1 is notified, 1000.0 µs after that packet",
            "    20.00 ms  load: 8.0 Mbit/s in the 10 ms before, 0.8 in the 10 ms after",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let mut nothing = Wire {
            loops: Vec::new(),
            ..wire
        };
        assert!(
            nothing
                .first(|a| a.to_string())
                .starts_with("no notification")
        );
        nothing.missed = Some(3);
        let text = nothing.first(|a| a.to_string());
        assert!(text.contains("missed 3 packets"), "{text}");
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
