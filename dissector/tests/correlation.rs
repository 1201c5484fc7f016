//! The plugin's memory, tested in tshark: compared with an analysis of all packets of a capture at
//! once, with the generator's ground truth, and with fcn-top's audit; in one pass and in two,
//! filtered, reordered, truncated, and file after file.

mod common;

use common::{Packet, TempCapture, captures, decode, matches, packets, trees, with_plugin};
use fcn_gen::mirror::Mirroring;
use fcn_observe::{DataPacket, Ecn, FlowKey, Outer};
use fcn_top::monitor::{Monitor, Settings};
use fcn_wire::bth::{Bth, BthRepr};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::frame::{Frame, LinkType};
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::{Kind, Notification, Opcode, Profile, Qp, Rule, Subject};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use xtask::tshark::Tshark;

/// A CNP that is later than this, in nanoseconds, translates nothing: the plugin's documented
/// limit.
const TRANSLATION: u64 = 10_000_000;
const SECOND_PASS: &[&str] = &["-2"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures")
}

fn capture(name: &str) -> PathBuf {
    folder().join(format!("{name}.pcapng"))
}

fn truth(path: &Path) -> Value {
    let text = std::fs::read_to_string(path.with_extension("truth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Flows by the sender's QP, and the sender's QPs by flow, from the ground truth.
#[derive(Default)]
struct Connected {
    by_sender: BTreeMap<(IpAddr, Qp), FlowKey>,
    by_flow: BTreeMap<FlowKey, Qp>,
}

impl Connected {
    fn from_truth(truth: &Value) -> Self {
        let mut connected = Self::default();
        for flow in truth["flows"].as_array().unwrap() {
            let address = |field: &str| flow[field].as_str().unwrap().parse::<IpAddr>().unwrap();
            let qp = |field: &str| Qp::new(flow[field].as_u64().unwrap() as u32).unwrap();
            let key = FlowKey {
                sender: address("sender"),
                receiver: address("receiver"),
                receiver_qp: qp("receiver_qp"),
            };
            connected
                .by_sender
                .insert((key.sender, qp("sender_qp")), key);
            connected.by_flow.insert(key, qp("sender_qp"));
        }
        connected
    }
}

enum What {
    Data {
        flow: FlowKey,
        told_apart_by: (u16, u32),
        ce: bool,
        outer: Option<Outer>,
        octets: u64,
    },
    Notice(Notification),
    Other,
}

struct Read {
    number: usize,
    at: u64,
    interface: u32,
    what: What,
}

impl Read {
    fn flow(&self) -> Option<FlowKey> {
        match self.what {
            What::Data { flow, .. } => Some(flow),
            _ => None,
        }
    }

    fn is_marked(&self) -> bool {
        matches!(self.what, What::Data { ce: true, .. })
    }

    fn gist(&self) -> Option<&Notification> {
        match &self.what {
            What::Notice(gist) => Some(gist),
            _ => None,
        }
    }
}

/// UDP source port and PSN: a packet retransmitted on another path is a different packet.
fn told_apart_by(frame: &Frame<'_>) -> (u16, u32) {
    let datagram = frame.datagram().unwrap();
    let psn = Bth::new_checked(datagram.payload).unwrap().psn();
    (datagram.source_port, psn)
}

fn read(packets: &[Packet]) -> Vec<Read> {
    let read = packets.iter().zip(1..).map(|(packet, number)| {
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
        let what = match (
            Notification::from_frame(&frame),
            DataPacket::from_frame(&frame),
        ) {
            (Some(gist), _) => What::Notice(gist),
            (None, Some(data)) => {
                let ip = frame.ip().unwrap();
                What::Data {
                    flow: data.flow(),
                    told_apart_by: told_apart_by(&frame),
                    ce: ip.ecn() == 3 || data.ecn == Ecn::Ce,
                    outer: data.outer,
                    octets: (ip.end - ip.start) as u64,
                }
            }
            (None, None) => What::Other,
        };
        Read {
            number,
            at: packet.at,
            interface: packet.interface,
            what,
        }
    });
    read.collect()
}

/// Expected links of a notification.
#[derive(Debug, PartialEq, Eq, Default, Clone)]
struct Expected {
    data: Option<usize>,
    marked: Option<usize>,
    translates: Option<usize>,
    sender_qp: Option<u32>,
    interval: Option<u64>,
}

/// All packets of a capture at once.
struct Whole {
    packets: Vec<Read>,
    connected: Connected,
    two_passes: bool,
}

impl Whole {
    fn flow_of(&self, notice: &Read) -> Option<FlowKey> {
        let gist = notice.gist().unwrap();
        match gist.subject {
            Subject::SenderQp(qp) => self
                .connected
                .by_sender
                .get(&(gist.sender.unwrap(), qp))
                .copied(),
            Subject::ReceiverQp { receiver, qp } => Some(FlowKey {
                sender: gist.sender.unwrap(),
                receiver,
                receiver_qp: qp,
            }),
            Subject::Flow { tuple, receiver_qp } => Some(FlowKey {
                sender: tuple.source,
                receiver: tuple.destination,
                receiver_qp: receiver_qp?,
            }),
            Subject::FlowLabel(_) => {
                let by_pe = self.is_by_pe(notice);
                self.packets
                    .iter()
                    .filter(|packet| packet.number < notice.number)
                    .rfind(|packet| label(packet, gist) == Some(by_pe))?
                    .flow()
            }
        }
    }

    /// Returns true if the label of a WAN FCN was captured in a tunnel of the PE that it is sent
    /// to.
    fn is_by_pe(&self, notice: &Read) -> bool {
        let before = &self.packets[..notice.number];
        before
            .iter()
            .any(|packet| label(packet, notice.gist().unwrap()) == Some(true))
    }

    /// Returns the last candidate that is not later than `notice`.
    fn last_before<'a>(
        &self,
        notice: &Read,
        candidates: impl Iterator<Item = &'a Read>,
    ) -> Option<&'a Read> {
        candidates
            .filter(|packet| {
                if packet.number < notice.number {
                    packet.at <= notice.at
                } else {
                    self.two_passes && packet.at < notice.at
                }
            })
            .max_by_key(|packet| (packet.at, packet.number))
    }

    /// Returns the notification that each CNP from the address of a notified node translates: the
    /// newest one about its flow that no earlier CNP has translated. For a copy from another
    /// interface, the result is that of the first capture.
    fn translations(&self) -> BTreeMap<usize, usize> {
        let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut here: BTreeMap<(u32, String), usize> = BTreeMap::new();
        let mut requests: Vec<(FlowKey, &Read)> = Vec::new();
        let mut found = BTreeMap::new();
        for notice in self.notices() {
            let gist = notice.gist().unwrap();
            let text = format!("{gist:?}");
            let nth = here.entry((notice.interface, text.clone())).or_default();
            let alike = alike.entry(text).or_default();
            *nth += 1;
            if let Some(first) = alike.get(*nth - 1) {
                if let Some(earlier) = found.get(first).copied() {
                    found.insert(notice.number, earlier);
                }
                continue;
            }
            alike.push(notice.number);
            let Some(flow) = self.flow_of(notice) else {
                continue;
            };
            match gist.kind {
                Kind::ProxyCn | Kind::WanFcn => requests.push((flow, notice)),
                Kind::Cnp => {
                    let place = requests.iter().rposition(|(about, earlier)| {
                        let node = earlier.gist().unwrap().destination;
                        let in_time = (notice.at.checked_sub(earlier.at))
                            .is_some_and(|delay| delay <= TRANSLATION);
                        *about == flow && in_time && node == gist.notifier && node != flow.receiver
                    });
                    if let Some(place) = place {
                        found.insert(notice.number, requests.remove(place).1.number);
                    }
                }
                Kind::FastCnp1 | Kind::FastCnp2 => {}
            }
        }
        found
    }

    fn expect(&self, notice: &Read, translations: &BTreeMap<usize, usize>) -> Expected {
        let gist = notice.gist().unwrap();
        let flow = self.flow_of(notice);
        let interval = self.interval(notice);
        let sender_qp = match gist.subject {
            Subject::SenderQp(qp) => Some(qp),
            _ => flow.and_then(|flow| self.connected.by_flow.get(&flow).copied()),
        };
        let Some(flow) = flow else {
            return Expected {
                interval,
                sender_qp: sender_qp.map(Qp::get),
                ..Expected::default()
            };
        };
        let of_flow = || {
            self.packets
                .iter()
                .filter(|packet| packet.flow() == Some(flow))
        };
        let is_cnp = gist.kind == Kind::Cnp;
        let marked = self
            .last_before(notice, of_flow().filter(|packet| packet.is_marked()))
            .filter(|_| is_cnp);
        let translates = translations.get(&notice.number);
        let translates = translates.map(|number| &self.packets[number - 1]);
        let marked = marked.filter(|_| translates.is_none());
        let data = if let Some(earlier) = translates {
            self.expect(earlier, translations).data
        } else if let Some(marked) = marked {
            Some(marked.number)
        } else {
            let tunnelled = gist.kind == Kind::WanFcn;
            let by_pe = self.is_by_pe(notice);
            self.last_before(
                notice,
                of_flow().filter(|packet| !tunnelled || label(packet, gist) == Some(by_pe)),
            )
            .map(|packet| packet.number)
        };
        Expected {
            data,
            marked: marked.map(|packet| packet.number),
            translates: translates.map(|packet| packet.number),
            sender_qp: sender_qp.map(Qp::get),
            interval,
        }
    }

    fn interval(&self, notice: &Read) -> Option<u64> {
        let topic = |gist: &Notification| {
            let receiver_qp = match gist.subject {
                Subject::Flow { tuple, receiver_qp } => Subject::ReceiverQp {
                    receiver: tuple.destination,
                    qp: receiver_qp.unwrap_or(Qp::truncate(0)),
                },
                other => other,
            };
            (
                gist.kind,
                gist.sender.unwrap_or(gist.destination),
                receiver_qp,
            )
        };
        let about = topic(notice.gist().unwrap());
        let last = self
            .packets
            .iter()
            .filter(|packet| packet.number < notice.number && packet.interface == notice.interface)
            .filter(|packet| packet.gist().is_some_and(|gist| topic(gist) == about))
            .map(|packet| packet.at)
            .max()?;
        notice.at.checked_sub(last)
    }

    fn is_seen(&self, flow: &FlowKey) -> bool {
        self.packets.iter().any(|p| p.flow().as_ref() == Some(flow))
    }

    fn notices(&self) -> impl Iterator<Item = &Read> {
        self.packets.iter().filter(|packet| packet.gist().is_some())
    }
}

/// Returns true if data is in a tunnel with the label that a WAN FCN names and the tunnel begins at
/// the notified PE; with SR-MPLS the ingress is unknown, and the result is false. `None` if it is
/// not in such a tunnel.
fn label(packet: &Read, fcn: &Notification) -> Option<bool> {
    let (Subject::FlowLabel(label), What::Data { outer, .. }) = (fcn.subject, &packet.what) else {
        return None;
    };
    let outer = outer.filter(|outer| outer.flow_label == label)?;
    match outer.ingress {
        Some(ingress) => (fcn.destination == ingress).then_some(true),
        None => Some(false),
    }
}

/// Values of fields by frame number; frames without any are left out.
type Shown = BTreeMap<usize, Vec<String>>;

fn shows_any(columns: &[String]) -> bool {
    columns.iter().any(|column| !column.is_empty())
}

/// Returns the `wanted` fields out of all requested ones.
fn part(all: &Shown, fields: &[&str], wanted: &[&str]) -> Shown {
    let place = |field| fields.iter().position(|name| name == field).unwrap();
    let places: Vec<usize> = wanted.iter().map(place).collect();
    let columns = |all: &Vec<String>| places.iter().map(|i| all[*i].clone()).collect();
    let parts = all.iter().map(|(frame, all)| (*frame, columns(all)));
    parts
        .filter(|(_, columns): &(_, Vec<_>)| shows_any(columns))
        .collect()
}

/// Returns the fields as tshark shows them.
fn shown(tshark: &Tshark, path: &Path, options: &[&str], fields: &[&str]) -> Shown {
    let mut arguments = options.to_vec();
    arguments.extend(["-T", "fields", "-E", "separator=|", "-e", "frame.number"]);
    for field in fields {
        arguments.extend(["-e", field]);
    }
    let text = decode(tshark, path, &arguments);
    text.lines()
        .map(|line| {
            let mut columns = line.split('|').map(str::to_owned);
            let number = columns.next().unwrap().parse().unwrap();
            (number, columns.collect::<Vec<_>>())
        })
        .filter(|(_, columns)| shows_any(columns))
        .collect()
}

/// Converts seconds with nine decimals to nanoseconds.
fn nanoseconds(text: &str) -> i64 {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, part) = text.split_once('.').unwrap();
    assert_eq!(part.len(), 9, "{text}");
    sign * (whole.parse::<i64>().unwrap() * 1_000_000_000 + part.parse::<i64>().unwrap())
}

fn number<T: core::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

const LINKS: [&str; 8] = [
    "fcn.data_frame",
    "fcn.data_delay",
    "fcn.marked_frame",
    "fcn.translates",
    "fcn.gap",
    "fcn.sender_qp",
    "fcn.sender_qp_from",
    "fcn.kind",
];

/// Compares the links of every notification with an analysis of all packets. Returns the numbers of
/// those with data, with marks, and with translations.
fn compare(tshark: &Tshark, path: &Path, whole: &Whole, case: &str) -> [usize; 3] {
    let passes = if whole.two_passes { SECOND_PASS } else { &[] };
    compare_links(&shown(tshark, path, passes, &LINKS), whole, case)
}

/// Like [`compare`], for [`LINKS`] as already shown.
fn compare_links(shown: &Shown, whole: &Whole, case: &str) -> [usize; 3] {
    let notices: BTreeSet<usize> = whole.notices().map(|notice| notice.number).collect();
    assert_eq!(
        shown.keys().copied().collect::<BTreeSet<_>>(),
        notices,
        "{case}"
    );
    let mut counts = [0; 3];
    let translations = whole.translations();
    for notice in whole.notices() {
        let columns = &shown[&notice.number];
        let case = format!("{case} frame {}: {columns:?}", notice.number);
        let got = Expected {
            data: number(&columns[0]),
            marked: number(&columns[2]),
            translates: number(&columns[3]),
            sender_qp: (columns[5].strip_prefix("0x"))
                .map(|qp| u32::from_str_radix(qp, 16).unwrap()),
            interval: (!columns[4].is_empty()).then(|| nanoseconds(&columns[4]) as u64),
        };
        let mut want = whole.expect(notice, &translations);
        if got.sender_qp.is_none() {
            // A connection without captured packets cannot be known.
            let flow = whole.flow_of(notice);
            let is_seen = flow.is_some_and(|flow| whole.is_seen(&flow));
            assert!(!is_seen || want.sender_qp.is_none(), "{case}");
            want.sender_qp = None;
        }
        assert_eq!(got, want, "{case}");
        if let Some(data) = got.data {
            let delay = notice.at as i64 - whole.packets[data - 1].at as i64;
            assert_eq!(nanoseconds(&columns[1]), delay, "{case}");
        }
        let by = match notice.gist().unwrap().subject {
            Subject::SenderQp(_) => vec!["packet"],
            _ if got.sender_qp.is_some() => vec!["cm", "acks"],
            _ => vec![""],
        };
        assert!(by.contains(&columns[6].as_str()), "{case}");
        for (count, link) in counts
            .iter_mut()
            .zip([got.data, got.marked, got.translates])
        {
            *count += usize::from(link.is_some());
        }
    }
    counts
}

/// Backward links, which are unknown in one pass.
const BACK: [&str; 4] = [
    "fcn.data_frame",
    "fcn.translates",
    "fcn.notified_by",
    "fcn.translated_by",
];

/// Checks that data and translated notifications link back to the notifications that link to them.
fn compare_back(shown: &Shown, two_passes: bool, case: &str) {
    if !two_passes {
        let mut columns = shown.values();
        assert!(!columns.any(|columns| shows_any(&columns[2..])), "{case}");
        return;
    }
    let mut led: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut translated: BTreeMap<usize, usize> = BTreeMap::new();
    for (frame, columns) in shown {
        match (number(&columns[0]), number(&columns[1])) {
            (_, Some(notice)) => {
                translated.entry(notice).or_insert(*frame);
            }
            (Some(data), None) => led.entry(data).or_default().push(*frame),
            (None, None) => {}
        }
    }
    let mut got_led = BTreeMap::new();
    let mut got_translated = BTreeMap::new();
    for (frame, columns) in shown {
        if !columns[2].is_empty() {
            let frames: Vec<usize> = columns[2].split(',').map(|f| f.parse().unwrap()).collect();
            got_led.insert(*frame, frames);
        }
        if let Some(by) = number::<usize>(&columns[3]) {
            got_translated.insert(*frame, by);
        }
    }
    for frames in led.values_mut() {
        frames.truncate(7);
    }
    assert_eq!(got_led, led, "{case}");
    assert_eq!(got_translated, translated, "{case}");
}

/// Returns the data packets captured for the first time: as the n-th of equal packets on any
/// interface.
fn seen_first(packets: &[Read]) -> BTreeSet<usize> {
    let mut on_interface: BTreeMap<_, usize> = BTreeMap::new();
    let mut on_any: BTreeMap<_, usize> = BTreeMap::new();
    let mut first = BTreeSet::new();
    for packet in packets {
        let What::Data {
            flow,
            told_apart_by,
            ..
        } = packet.what
        else {
            continue;
        };
        let qp = flow.receiver_qp.get();
        let flow = (flow.sender, flow.receiver, qp, told_apart_by);
        let here = on_interface.entry((packet.interface, flow)).or_default();
        *here += 1;
        let any = on_any.entry(flow).or_default();
        if *here > *any {
            *any = *here;
            first.insert(packet.number);
        }
    }
    first
}

const RATES: [&str; 3] = ["fcn.rate_before", "fcn.rate_after", "fcn.data_frame"];

/// The samples are short: windows of 48 µs, in steps of 3 µs.
const RATE_WINDOW: &str = "fcn.rate_window:48";

/// Compares rates before and after notifications with counted octets; returns the number of each.
fn compare_rates(shown: &Shown, whole: &Whole, case: &str) -> [usize; 2] {
    let (window, step) = (48_000, 3_000);
    let rate = |octets: f64| octets * 8e9 / window as f64;
    let (mut before_seen, mut after_seen) = (0, 0);
    let end = whole
        .packets
        .iter()
        .filter(|p| !matches!(p.what, What::Other))
        .map(|p| p.at)
        .max();
    let seen_first = seen_first(&whole.packets);
    let is_new = |packet: &Read| seen_first.contains(&packet.number);
    for notice in whole.notices() {
        let none = vec![String::new(); 3];
        let columns = shown.get(&notice.number).unwrap_or(&none);
        let case = format!("{case} frame {}: {columns:?}", notice.number);
        let Some(flow) = whole.flow_of(notice) else {
            continue;
        };
        let of_flow = || {
            whole
                .packets
                .iter()
                .filter(|packet| packet.flow() == Some(flow))
        };
        let Some(first) = of_flow()
            .next()
            .filter(|first| first.number < notice.number)
        else {
            assert_eq!(
                (columns[0].as_str(), columns[1].as_str()),
                ("", ""),
                "{case}"
            );
            continue;
        };
        let octets = |wanted: &dyn Fn(&Read) -> bool| -> f64 {
            let counted = of_flow().filter(|p| is_new(p) && wanted(p));
            counted
                .map(|p| match p.what {
                    What::Data { octets, .. } => octets as f64,
                    _ => 0.0,
                })
                .sum()
        };
        let (at, age) = (notice.at, notice.at - first.at);
        let since = |from: u64| octets(&|p| p.number < notice.number && p.at >= from);
        if age > 0 && age >= window / 8 {
            let scale = if age < window {
                window as f64 / age as f64
            } else {
                1.0
            };
            let from = (at - window) / step * step;
            let (least, most) = (rate(since(from + step) * scale), rate(since(from) * scale));
            let got: f64 = columns[0].parse().unwrap();
            assert!(
                least - 1.0 <= got && got <= most + 1.0,
                "{case}: {least} to {most}"
            );
            before_seen += 1;
        } else {
            assert_eq!(columns[0], "", "{case}");
        }
        if end.is_some_and(|end| end > at + window) {
            let after = octets(&|p| p.number > notice.number && p.at <= at + window);
            let got: f64 = columns[1].parse().unwrap_or_else(|_| panic!("{case}"));
            assert!((rate(after) - got).abs() <= 1.0, "{case}: {}", rate(after));
            after_seen += 1;
        } else if end.is_some_and(|end| end < at + window) {
            assert_eq!(columns[1], "", "{case}");
        }
    }
    [before_seen, after_seen]
}

/// Returns the frames that fcn-top's audit reports, by rule.
fn audited(packets: &[Packet], settings: Settings) -> BTreeMap<&'static str, BTreeSet<usize>> {
    audited_by(&mut Monitor::new(settings), packets)
}

/// The findings that the plugin reports for a frame, or the first of them.
const FINDINGS: [&str; 1] = ["fcn.finding"];

/// Returns the frames by rule, from [`FINDINGS`] as shown.
fn found(shown: &Shown) -> BTreeMap<&str, BTreeSet<usize>> {
    let mut found = BTreeMap::<_, BTreeSet<usize>>::new();
    for (frame, columns) in shown {
        for rule in columns[0].split(',') {
            found.entry(rule).or_default().insert(*frame);
        }
    }
    found
}

/// Returns the audit's entries that are rules.
fn broken(
    audited: &BTreeMap<&'static str, BTreeSet<usize>>,
) -> BTreeMap<&'static str, BTreeSet<usize>> {
    let is_rule = |what: &str| Rule::ALL.iter().any(|rule| rule.info().id == what);
    let broken = audited.iter().filter(|(what, _)| is_rule(what));
    broken
        .map(|(rule, frames)| (*rule, frames.clone()))
        .collect()
}

fn audited_by(
    monitor: &mut Monitor,
    packets: &[Packet],
) -> BTreeMap<&'static str, BTreeSet<usize>> {
    let found = Arc::new(Mutex::new(BTreeMap::<_, BTreeSet<usize>>::new()));
    let heard = Arc::clone(&found);
    monitor.listen(Box::new(move |event| {
        if let Some(frame) = event.frame {
            let mut heard = heard.lock().unwrap();
            heard.entry(event.what).or_default().insert(frame as usize);
        }
    }));
    watch_packets(monitor, packets);
    let found = found.lock().unwrap();
    found.clone()
}

/// Passes a capture to fcn-top.
fn watch(monitor: &mut Monitor, path: &Path) {
    watch_packets(monitor, &packets(path));
}

fn watch_packets(monitor: &mut Monitor, packets: &[Packet]) {
    let last = packets.iter().map(|packet| packet.interface).max();
    for number in 0..=last.unwrap_or(0) {
        monitor.know_interface(number, "", "");
    }
    for (packet, number) in packets.iter().zip(1..) {
        monitor.observe(&fcn_top::packet::Packet {
            at: packet.at,
            bytes: &packet.bytes,
            wire_len: packet.wire_len,
            link: packet.link,
            interface: packet.interface,
            number,
        });
    }
}

/// Captures a scenario that runs for longer than the samples; 160 octets of each packet.
fn played(folder: &Path, name: &str, sets: &[&str], text: Option<String>) -> PathBuf {
    played_as(folder, name, sets, text, None)
}

/// Like [`played`], but mirrored by switches, with as much of each packet as they send.
fn played_as(
    folder: &Path,
    name: &str,
    sets: &[&str],
    text: Option<String>,
    mirror: Option<Mirroring>,
) -> PathBuf {
    use fcn_gen::scenario::Source;
    use fcn_gen::write::{Output, Request, write};
    let path = folder.join(format!("{name}.pcapng"));
    let name = name.to_owned();
    let source = match text {
        Some(text) => Source::Text { name, text },
        None => Source::Builtin(name),
    };
    let request = Request {
        source,
        sets: sets.iter().map(ToString::to_string).collect(),
        seed: None,
        snap_len: Some(160),
        mirror,
        truth: None,
    };
    let output = Output::File(path.clone());
    let stop = std::sync::atomic::AtomicBool::new(false);
    write(&request, output, &stop, &|_, _| {}).unwrap_or_else(|e| panic!("{path:?}: {e:?}"));
    path
}

const VERDICTS: [&str; 4] = [
    "fcn.data_frame",
    "fcn.verdict",
    "fcn.measured",
    "fcn.evidence",
];

/// Compares verdicts with those of fcn-top, and counts them.
fn compare_verdicts(
    shown: &Shown,
    captured: &[Packet],
    case: &str,
    answers: &mut BTreeMap<String, usize>,
) {
    let mut monitor = Monitor::new(Settings::default());
    watch_packets(&mut monitor, captured);
    let wanted: BTreeMap<FlowKey, Vec<String>> = monitor
        .rows()
        .filter_map(|(id, row)| {
            let flow = monitor.flow_of_row(id)?;
            let measured = row.measured.to_string();
            let expected = [
                row.verdict?.id().to_owned(),
                measured,
                row.evidence?.to_string(),
            ];
            Some((flow, expected.to_vec()))
        })
        .collect();
    let packets = read(captured);
    for (frame, values) in shown {
        // Its subject may be only a quoted packet, or come after the end of the file.
        let Some(data) = number::<usize>(&values[0]) else {
            continue;
        };
        let Some(want) = packets[data - 1].flow().and_then(|flow| wanted.get(&flow)) else {
            continue;
        };
        assert_eq!(&values[1..], want, "{case} frame {frame}");
        *answers.entry(values[1].clone()).or_default() += 1;
    }
}

#[test]
fn verdicts_match_fcn_top() {
    let Some(tshark) = with_plugin() else { return };
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    // Captured before the queue: behind it, no sender is reported as not obeying.
    let fixed = fcn_gen::scenario::builtin::text("fast-cnp").unwrap();
    let fixed = format!("{fixed}\n[defaults.host]\ncontrol = \"fixed\"\n");
    let long = |name, sets, text| played(folder.path(), name, sets, text);
    let mut answers = BTreeMap::<_, usize>::new();
    for path in [
        long("receiver-cnp", &["duration=20ms", "ip=4"], None),
        long("fixed", &["duration=20ms"], Some(fixed)),
        long("incast", &["duration=10ms"], None),
        long("wan-fcn", &["duration=20ms"], None),
    ] {
        let shown = shown(&tshark, &path, SECOND_PASS, &VERDICTS);
        let case = path.display().to_string();
        compare_verdicts(&shown, &packets(&path), &case, &mut answers);
    }
    for sure in ["obeys", "does_not_obey"] {
        assert!(answers[sure] > 20, "{answers:?}");
    }
}

/// Returns the connections of a sample, from the ground truth.
fn connected(path: &Path, packets: &[Read]) -> Connected {
    if path.with_extension("truth.json").exists() {
        return Connected::from_truth(&truth(path));
    }
    let mut connected = Connected::default();
    if path.ends_with("formats-rdma-cm.pcapng") {
        // Its Fast CNP is about the connection that it sets up: QP 0x11 to QP 0x12.
        let mut notices = packets.iter().filter_map(Read::gist);
        let fast = notices.find(|gist| gist.kind == Kind::FastCnp1).unwrap();
        let Subject::ReceiverQp { receiver, qp } = fast.subject else {
            panic!("{fast:?}");
        };
        assert_eq!(qp.get(), 0x12);
        let sender = fast.sender.unwrap();
        let flow = FlowKey {
            sender,
            receiver,
            receiver_qp: qp,
        };
        connected.by_flow.insert(flow, Qp::truncate(0x11));
        connected
            .by_sender
            .insert((sender, Qp::truncate(0x11)), flow);
    }
    connected
}

/// Complete check of the samples, each decoded once in one pass and once in two.
#[test]
fn samples_match_an_analysis_of_all_packets() {
    let Some(tshark) = with_plugin() else { return };
    let list = |text: &str| vec![text.parse().unwrap()];
    let settings = Settings {
        flow_rate: 1000,
        trust: list("2001:db8:ffff::1"),
        able: list("::/0"),
        domain: list("2001:db8:1::/48"),
        ..Settings::default()
    };
    let preferences = [
        "fcn.flow_rate:1000",
        "fcn.trusted:2001:db8:ffff::1",
        "fcn.able:::/0",
        "fcn.domain:2001:db8:1::/48",
        RATE_WINDOW,
    ]
    .map(|preference| ["-o", preference])
    .concat();
    let rules: Vec<&str> = Rule::MULTI_PACKET
        .iter()
        .map(|rule| rule.info().id)
        .collect();
    let names: Vec<String> = Rule::MULTI_PACKET
        .iter()
        .map(|rule| rule.filter_name())
        .collect();
    let experts: Vec<&str> = names.iter().map(String::as_str).collect();
    let fields = [&LINKS, &BACK[..], &RATES, &VERDICTS, &FINDINGS, &experts].concat();
    // tshark fills only one of several equal fields.
    let fields: Vec<&str> = BTreeSet::from_iter(fields).into_iter().collect();
    let mut frames = vec![0; experts.len()];
    let (mut links, mut answers) = (BTreeMap::new(), BTreeMap::new());
    let (mut before, mut after) = (0, 0);
    for path in captures() {
        // Wireshark reassembles these from fragments, which neither fcn-wire nor the audit does.
        if path.ends_with("formats-cut.pcapng") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_simulated = path.with_extension("truth.json").exists();
        let packets = packets(&path);
        let audited = audited(&packets, settings.clone());
        for two_passes in [false, true] {
            let passes = if two_passes { SECOND_PASS } else { &[] };
            let all = shown(&tshark, &path, &[passes, &preferences].concat(), &fields);
            let part = |wanted: &[&str]| part(&all, &fields, wanted);
            let case = format!("{name}, two passes: {two_passes}");
            let read = read(&packets);
            let whole = Whole {
                connected: connected(&path, &read),
                packets: read,
                two_passes,
            };
            if is_simulated || name.starts_with("formats-") && two_passes {
                let counts = compare_links(&part(&LINKS), &whole, &case);
                links.insert((name.clone(), two_passes), counts);
            }
            compare_back(&part(&BACK), two_passes, &case);
            if is_simulated && two_passes {
                let seen = compare_rates(&part(&RATES), &whole, &case);
                before += seen[0];
                after += seen[1];
                compare_verdicts(&part(&VERDICTS), &packets, &case, &mut answers);
            }
            assert_eq!(found(&part(&FINDINGS)), broken(&audited), "{case}");
            for ((count, rule), expert) in frames.iter_mut().zip(&rules).zip(&experts) {
                let got: BTreeSet<usize> = part(&[*expert]).into_keys().collect();
                let want = audited.get(rule).cloned().unwrap_or_default();
                *count += want.len();
                assert_eq!(got, want, "{case}: {rule}");
            }
        }
        if is_simulated {
            assert_eq!(links[&(name.clone(), false)], links[&(name, true)]);
        }
    }
    // Each sample has what it is meant to show.
    for (name, [data, marked, translated]) in [
        ("incast", [1, 0, 0]),
        ("fast-cnp", [1, 0, 0]),
        ("receiver-cnp-ipv4", [1, 1, 0]),
        ("receiver-cnp-ipv6", [1, 1, 0]),
        ("proxy-config", [1, 0, 1]),
        ("wan-fcn-srv6", [1, 0, 0]),
        ("wan-fcn-vxlan", [1, 0, 0]),
        ("wan-fcn-sr-mpls", [1, 0, 0]),
        ("attack", [1, 0, 0]),
    ] {
        let counts = links[&(name.to_owned(), true)];
        for (count, least) in counts.into_iter().zip([data, marked, translated]) {
            assert!(count >= least, "{name}: {counts:?}");
        }
    }
    let formats = links
        .iter()
        .filter(|((name, _), _)| name.starts_with("formats-"));
    assert!(formats.map(|(_, counts)| counts[0]).sum::<usize>() > 0);
    assert!(before > 100 && after > 50, "{before} {after}");
    // Too short for more.
    assert!(answers["unclear"] > 20, "{answers:?}");
    // No sample has both sides of a marking switch, nor proxies that are notified too often.
    for rule in [
        Rule::FastCnpRate,
        Rule::FastCnpMarkUnclear,
        Rule::FastCnpUntrusted,
        Rule::FastCnpBorder,
        Rule::ProxyCnUntrusted,
        Rule::ProxyCnBorder,
        Rule::WanFcnUntrusted,
    ] {
        let place = Rule::MULTI_PACKET.iter().position(|other| *other == rule);
        assert!(frames[place.unwrap()] > 3, "{rule}: {frames:?}");
    }
    // Also if the tree is not visible.
    let statistics = [&["-q", "-z", "expert"][..], &preferences].concat();
    let output = decode(&tshark, &capture("attack"), &statistics);
    assert!(
        output.contains(Rule::FastCnpUntrusted.info().text),
        "{output}"
    );
    // Without a list no node is suspected, and no scenario exceeds the default rate limit.
    assert!(shown(&tshark, &capture("fast-cnp"), &[], &experts).is_empty());
}

/// Proxy notifications have the same content for any RoCEv2 port, set by InfiniBand's preference or
/// by Decode As, and the audit agrees.
#[test]
fn proxy_notifications_follow_the_rocev2_port() {
    const FIELDS: [&str; 6] = [
        "fcn.qp",
        "fcn.sender_qp",
        "fcn.may_translate",
        "fcn.data_frame",
        "proxycn.rate.exceeded",
        "proxycn.tuple.mismatch",
    ];
    let Some(tshark) = with_plugin() else { return };
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    let found = |port: u16, choice: &[&str]| {
        let set = format!("profile.rocev2_port={port}");
        let path = played(folder.path(), "proxy", &["ip=4", &set], None);
        let packets = packets(&path);
        let is_told = |packet: &Packet| packet.bytes[36..38] == 1021u16.to_be_bytes();
        let mut broken = packets.into_iter().find(is_told).unwrap();
        // It ends where it was truncated, has no checksum, and is about a sender other than that of
        // the quoted packet.
        broken.wire_len = broken.bytes.len();
        for (at, len) in [
            (16, broken.wire_len - 14),
            (38, broken.wire_len - 34),
            (40, 0),
        ] {
            broken.bytes[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        }
        broken.bytes[42] ^= 1;
        let frame = (&broken.bytes[..], broken.wire_len, broken.at);
        let file = TempCapture::timed("broken", [frame].into_iter());

        let options = [&["-o", "fcn.flow_rate:1000"], choice].concat();
        let mut settings = Settings {
            flow_rate: 1000,
            ..Settings::default()
        };
        settings.profile.rocev2_port = port;
        let whole = audited(&common::packets(&path), settings.clone());
        let alone = audited_by(&mut Monitor::new(settings), &[broken]);
        [(&*path, whole), (file.path(), alone)].map(|(path, audited)| {
            let shown = shown(&tshark, path, &options, &FIELDS);
            for (i, field) in FIELDS.iter().enumerate().skip(4) {
                let frames = shown.iter().filter(|(_, columns)| !columns[i].is_empty());
                let frames = frames.map(|(frame, _)| *frame).collect();
                let wanted = audited.get(field).cloned().unwrap_or_default();
                assert_eq!(wanted, frames, "{field} at {port}");
            }
            shown
        })
    };
    let usual = found(4791, &[]);
    for (i, field) in FIELDS.iter().enumerate() {
        let mut all = usual.iter().flat_map(BTreeMap::values);
        assert!(all.any(|columns| !columns[i].is_empty()), "{field}");
    }
    for choice in [
        ["-o", "infiniband.rroce.port:5555"],
        ["-d", "udp.port==5555,infiniband"],
    ] {
        assert_eq!(found(5555, &choice), usual, "{choice:?}");
    }
}

const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
/// Address of a proxy node, or an ingress PE.
const NODE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);

/// Packet of a hand-made capture, of one flow: from QP 0x11 at the sender to QP 0x22 at the
/// receiver.
#[derive(Clone, Copy)]
enum Hand {
    /// Data with PSN and CE.
    Data(u32, bool),
    /// CE-marked data to another QP.
    Other,
    Ack(u32),
    /// Data in a tunnel from the node, with this flow label.
    Tunnel(u32),
    FastCnp,
    /// CNP from this address.
    Cnp(Ipv6Addr),
    /// Proxy notification to this address.
    Proxy(Ipv6Addr),
    /// FCN to the node, about this label.
    Fcn(u32),
}

impl Hand {
    fn packet(self) -> Vec<u8> {
        let ip = |source, destination, ce: bool, flow_label| Part::Ipv6 {
            source,
            destination,
            traffic_class: if ce { 3 } else { 2 },
            flow_label,
            hop_limit: 64,
        };
        let udp = |destination| Part::Udp {
            source: 0xC000,
            destination,
            checksum: UdpChecksum::Compute,
        };
        let icrc = Part::Icrc(Policy::Compute(Reading::Covered));
        let roce = |ip, opcode, qp, psn, zeros: &[u8]| {
            let bth = Part::Bth(BthRepr::new(opcode, Qp::truncate(qp), psn));
            build(&[ip, udp(4791), bth, Part::Bytes(zeros), icrc])
        };
        let data = |psn, ce, qp| {
            let ip = ip(SENDER, RECEIVER, ce, 0);
            roce(ip, Opcode::RC_SEND_ONLY, qp, psn, &[0; 64])
        };
        let cnp = |qp| Part::Cnp(CnpRepr::new(Qp::truncate(qp)));
        match self {
            Self::Data(psn, ce) => data(psn, ce, 0x22),
            Self::Other => data(5, true, 0x44),
            Self::Ack(psn) => {
                let ip = ip(RECEIVER, SENDER, false, 0);
                roce(ip, Opcode::RC_ACKNOWLEDGE, 0x11, psn, &[0; 4])
            }
            Self::Tunnel(label) => {
                let inner = Part::Payload {
                    ether_type: 0x86DD,
                    protocol: 41,
                    bytes: &data(110, false, 0x22),
                };
                build(&[ip(NODE, SWITCH, false, label), inner])
            }
            Self::FastCnp => {
                let option = [OptionPart::FastCnp(FastCnpRepr::Option1 {
                    original_destination: RECEIVER,
                })];
                let options = Part::DestinationOptions(&option);
                let ip = ip(SWITCH, SENDER, false, 0);
                build(&[ip, options, udp(4791), cnp(0x22), icrc])
            }
            Self::Cnp(from) => build(&[ip(from, SENDER, false, 0), udp(4791), cnp(0x11), icrc]),
            Self::Proxy(to) => {
                let mut message = [SENDER.octets(), RECEIVER.octets()].concat();
                message.extend([17, 0xC0, 0, 0x12, 0xB7, 3 << 5, 0, 0]);
                message.extend(data(9, false, 0x22));
                let to = ip(SWITCH, to, false, 0);
                build(&[
                    to,
                    udp(Profile::DEFAULT.proxy_cn_port),
                    Part::Bytes(&message),
                ])
            }
            Self::Fcn(label) => {
                let message = (label << 12 | 3 << 9).to_be_bytes();
                let to = ip(SWITCH, NODE, false, 0);
                build(&[
                    to,
                    udp(Profile::DEFAULT.wan_fcn_port),
                    Part::Bytes(&message),
                ])
            }
        }
    }
}

fn build(parts: &[Part<'_>]) -> Vec<u8> {
    fcn_wire::compose::packet(parts, &Profile::DEFAULT).unwrap()
}

/// Writes a capture of raw IP on this many interfaces; each packet with its interface, and its time
/// in microseconds.
fn by_hand(folder: &Path, name: &str, interfaces: u32, packets: &[(u32, u64, Hand)]) -> PathBuf {
    let path = folder.join(format!("{}.pcapng", name.replace(' ', "-")));
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = PcapNgWriter::new(file).unwrap();
    for _ in 0..interfaces {
        let described = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: Vec::new(),
        };
        writer.write_pcapng_block(described).unwrap();
    }
    for (interface_id, at, hand) in packets {
        let bytes = hand.packet();
        let captured = EnhancedPacketBlock {
            interface_id: *interface_id,
            timestamp: Duration::from_micros(1_700_000_000_000_000 + at),
            original_len: bytes.len() as u32,
            data: bytes.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(captured).unwrap();
    }
    path
}

/// Returns the senders of the CNPs in a capture, according to fcn-top: the count for each address
/// and origin.
fn senders_of_cnps(path: &Path) -> BTreeMap<(IpAddr, &'static str), u64> {
    let mut monitor = Monitor::new(Settings::default());
    watch(&mut monitor, path);
    let points = monitor.points().filter(|point| point.cnp > 0);
    points
        .map(|point| ((point.notifier, point.notifier_role.id()), point.cnp))
        .collect()
}

#[test]
fn origin_of_cnps_matches_fcn_top() {
    use Hand::{Ack, Cnp, Data, Fcn, Proxy, Tunnel};
    let Some(tshark) = with_plugin() else { return };
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    // Acknowledgements reveal which QP sends the flow.
    let known = (0..4).flat_map(|n| {
        let at = u64::from(n) * 20;
        let psn = 10_100 + n;
        [(0, at, Data(psn, false)), (0, at + 10, Ack(psn))]
    });
    let known: Vec<_> = known.chain([(0, 90, Tunnel(7))]).collect();
    let (by_receiver, by_node) = (Cnp(RECEIVER), Cnp(NODE));
    let mark = Data(10_120, true);
    // Packets after those; then for each CNP its origin, and the packet, counted from 0, that it
    // translates, or may translate.
    type Case<'a> = (
        &'a str,
        &'a [(u32, u64, Hand)],
        &'a [(usize, &'a str, Option<usize>)],
    );
    let cases: [Case<'_>; 13] = [
        (
            "the receiver was told",
            &[
                (0, 100, Proxy(RECEIVER)),
                (0, 150, mark),
                (0, 151, by_receiver),
                (0, 190, by_receiver),
            ],
            &[(2, "receiver", None), (3, "receiver", None)],
        ),
        (
            "of an unknown label",
            &[(0, 100, Fcn(8)), (0, 105, by_node), (0, 160, by_receiver)],
            &[(1, "unknown", None), (2, "receiver", None)],
        ),
        (
            "proxy",
            &[(0, 100, Proxy(NODE)), (0, 105, by_node)],
            &[(1, "proxy", Some(0))],
        ),
        (
            "too late",
            &[(0, 100, Proxy(NODE)), (0, 10_101, by_node)],
            &[(1, "unknown", None)],
        ),
        (
            "proxy in the name",
            &[
                (0, 100, Proxy(NODE)),
                (0, 105, by_receiver),
                (0, 160, by_receiver),
            ],
            &[(1, "ambiguous", Some(0)), (2, "ambiguous", Some(0))],
        ),
        (
            "proxy in the name, mark",
            &[
                (0, 99, mark),
                (0, 100, Proxy(NODE)),
                (0, 105, by_receiver),
                (0, 160, by_receiver),
            ],
            &[(2, "ambiguous", Some(1)), (3, "ambiguous", Some(1))],
        ),
        (
            "ingress PE",
            &[(0, 100, Fcn(7)), (0, 105, by_node)],
            &[(1, "ingress_pe", Some(0))],
        ),
        (
            "proxy by its own address, and the receiver",
            &[
                (0, 100, Proxy(NODE)),
                (0, 105, by_node),
                (0, 150, Proxy(NODE)),
                (0, 155, by_receiver),
            ],
            &[(1, "proxy", Some(0)), (3, "receiver", None)],
        ),
        (
            "ingress PE in the name",
            &[
                (0, 100, Fcn(7)),
                (0, 105, by_receiver),
                (0, 160, by_receiver),
            ],
            &[(1, "ambiguous", Some(0)), (2, "ambiguous", Some(0))],
        ),
        (
            "two told",
            &[
                (0, 100, Fcn(7)),
                (0, 150, Fcn(7)),
                (0, 160, by_receiver),
                (0, 210, by_receiver),
            ],
            &[(2, "ambiguous", Some(1)), (3, "ambiguous", Some(1))],
        ),
        (
            "mark and FCN",
            &[
                (0, 99, mark),
                (0, 100, Fcn(7)),
                (0, 105, by_receiver),
                (0, 160, by_receiver),
                (0, 210, by_receiver),
            ],
            &[
                (2, "ambiguous", Some(1)),
                (3, "ambiguous", Some(1)),
                (4, "ambiguous", Some(1)),
            ],
        ),
        (
            "mark answered",
            &[
                (0, 96, mark),
                (0, 97, by_receiver),
                (0, 100, Fcn(7)),
                (0, 105, by_receiver),
            ],
            &[(1, "receiver", None), (3, "ambiguous", Some(2))],
        ),
        (
            "copies",
            &[
                (0, 100, Fcn(7)),
                (1, 101, Fcn(7)),
                (0, 105, by_receiver),
                (1, 106, by_receiver),
                (0, 160, by_receiver),
            ],
            &[
                (2, "ambiguous", Some(0)),
                (3, "ambiguous", Some(0)),
                (4, "ambiguous", Some(0)),
            ],
        ),
    ];
    for (name, behind, wanted) in cases {
        let path = by_hand(folder.path(), name, 2, &[&known, behind].concat());
        let frame = |place| known.len() + place + 1;
        for passes in [&[][..], SECOND_PASS] {
            let fields = [
                "fcn.notifier_role",
                "fcn.translates",
                "fcn.may_translate",
                "fcn.kind",
            ];
            let shown = shown(&tshark, &path, passes, &fields);
            let got: Vec<_> = shown
                .iter()
                .filter(|(_, values)| values[3] == "cnp")
                .map(|(frame, values)| {
                    let is_sure = values[0] != "ambiguous";
                    let [cause, other] = match is_sure {
                        true => [&values[1], &values[2]],
                        false => [&values[2], &values[1]],
                    };
                    assert!(other.is_empty(), "{name}");
                    (*frame, values[0].as_str(), number::<usize>(cause))
                })
                .collect();
            let want: Vec<_> = wanted
                .iter()
                .map(|(place, by, translates)| (frame(*place), *by, translates.map(frame)))
                .collect();
            assert_eq!(got, want, "{name}");
        }
        // Packets of the second interface are copies.
        let mut expected: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for (place, by, _) in wanted.iter().filter(|(place, ..)| behind[*place].0 == 0) {
            let Cnp(from) = behind[*place].2 else {
                panic!("{name}")
            };
            expected.entry(IpAddr::from(from)).or_default().push(by);
        }
        for ((from, by), count) in senders_of_cnps(&path) {
            let roles = expected.remove(&from).unwrap();
            let of = |role: &str| roles.iter().filter(|by| **by == role).count();
            assert_eq!(count as usize, roles.len(), "{name}");
            assert!(roles.iter().all(|role| of(role) <= of(by)), "{name}");
        }
        assert!(expected.is_empty(), "{name}");
    }
}

#[test]
fn marks_beside_a_fast_cnp_are_judged_as_in_the_audit() {
    use Hand::{Data, FastCnp, Other};
    let Some(tshark) = with_plugin() else { return };
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    let (marked, unclear) = (
        Rule::FastCnpMarked.info().id,
        Rule::FastCnpMarkUnclear.info().id,
    );
    let (whole, ce) = (Data(20, false), Data(20, true));
    // Interface 0 is before the switch, 1 behind it.
    type Case<'a> = (
        &'a str,
        u32,
        &'a [(u32, u64, Hand)],
        Option<(usize, &'a str)>,
    );
    let cases: [Case<'_>; 11] = [
        (
            "marked by it",
            2,
            &[(0, 0, whole), (0, 5, FastCnp), (1, 10, ce)],
            Some((3, marked)),
        ),
        (
            "marked, then told",
            2,
            &[(0, 0, whole), (1, 4, ce), (0, 5, FastCnp)],
            Some((3, marked)),
        ),
        (
            "behind alone",
            2,
            &[(0, 5, FastCnp), (1, 6, ce)],
            Some((2, unclear)),
        ),
        (
            "behind alone, before",
            2,
            &[(1, 4, ce), (0, 5, FastCnp)],
            Some((2, unclear)),
        ),
        (
            "unmarked behind",
            2,
            &[(0, 0, whole), (0, 5, FastCnp), (1, 10, whole)],
            None,
        ),
        (
            "marked before",
            2,
            &[(0, 0, ce), (1, 4, ce), (0, 5, FastCnp)],
            None,
        ),
        (
            "after the Fast CNP",
            2,
            &[(0, 5, FastCnp), (0, 10, whole), (1, 15, ce)],
            None,
        ),
        (
            "another flow",
            2,
            &[
                (0, 0, whole),
                (0, 5, FastCnp),
                (1, 6, Other),
                (1, 10, whole),
            ],
            None,
        ),
        (
            "one place, before",
            1,
            &[(0, 4, ce), (0, 5, FastCnp)],
            Some((2, unclear)),
        ),
        (
            "one place, after",
            1,
            &[(0, 5, FastCnp), (0, 6, ce)],
            Some((2, unclear)),
        ),
        (
            "one place, long ago",
            1,
            &[(0, 0, ce), (0, 1_005, FastCnp)],
            None,
        ),
    ];
    let settings = Settings {
        able: vec!["::/0".parse().unwrap()],
        ..Settings::default()
    };
    for (name, interfaces, behind, wanted) in cases {
        // A packet that every interface captured long before, so that the flow is known.
        let known = (0..interfaces).map(|interface| (interface, 0, Data(1, false)));
        let later = behind
            .iter()
            .map(|(interface, at, hand)| (*interface, at + 5_000, *hand));
        let packets: Vec<_> = known.chain(later).collect();
        let path = by_hand(folder.path(), name, interfaces, &packets);
        let want: Vec<_> = (wanted.iter())
            .map(|(place, rule)| (place + interfaces as usize, *rule))
            .collect();
        let audit = audited(&common::packets(&path), settings.clone());
        let found = [marked, unclear].into_iter().flat_map(|rule| {
            let frames = audit.get(rule).into_iter().flatten();
            frames.map(move |frame| (*frame, rule))
        });
        assert_eq!(found.collect::<Vec<_>>(), want, "{name}");
        for passes in [&[][..], SECOND_PASS] {
            let options = [passes, &["-o", "fcn.able:::/0"]].concat();
            let shown = shown(&tshark, &path, &options, &[marked, unclear]);
            let got = shown.iter().map(|(frame, values)| {
                let rule = if values[0].is_empty() {
                    unclear
                } else {
                    marked
                };
                (*frame, rule)
            });
            assert_eq!(got.collect::<Vec<_>>(), want, "{name}");
        }
    }
    // A mark that the second interface resolves only later.
    let packets = [(0, 0, ce), (0, 5, FastCnp), (1, 10, ce)];
    let path = by_hand(folder.path(), "known later", 2, &packets);
    let options = [SECOND_PASS, &["-o", "fcn.able:::/0"]].concat();
    assert!(shown(&tshark, &path, &options, &[marked, unclear]).is_empty());
    let audit = audited(&common::packets(&path), settings);
    assert!(!audit.contains_key(unclear) && !audit.contains_key(marked));
}

#[test]
fn invalid_lists_are_reported_and_not_used() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("attack");
    let output = tshark
        .run(
            &path,
            &[
                "-o",
                "fcn.trusted:10.0.0.0/8, everybody",
                "-Y",
                "fastcnp.source.untrusted",
            ],
        )
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("\"everybody\" is not a valid prefix"),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn fields_can_be_filtered_and_printed_in_every_format() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("fast-cnp");
    let all = shown(&tshark, &path, &[], &["fcn.data_frame"]);
    let (notice, data) = all.iter().next().map(|(n, d)| (*n, d[0].clone())).unwrap();
    let filter = format!("fcn.data_frame == {data} && fcn.data_delay < 1 && fcn.sender_qp");
    assert!(matches(&tshark, &path, &filter).contains(&notice));
    let json = decode(
        &tshark,
        &path,
        &["-2", "-Y", "fcn.notified_by", "-T", "json", "-j", "fcn"],
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(!json.as_array().unwrap().is_empty());
    let tree = &trees(&tshark, &path, SECOND_PASS)[notice - 1];
    for part in [
        "[Congestion notification: Fast CNP (option 1)]".to_owned(),
        format!("    [Data frame: {data}]"),
        "    [QP at the sender: 0x".to_owned(),
        "    [QP at the sender known from: cm]".to_owned(),
    ] {
        assert!(tree.contains(&part), "no `{part}` in\n{tree}");
    }
    let off = [
        "-o",
        "fcn.correlate:FALSE",
        "-Y",
        "fcn.data_frame || fcn.sender_qp || fcn.gap",
    ];
    assert_eq!(decode(&tshark, &path, &off), "");
    // `fcn` itself matches only notifications, in both passes.
    let kinds = matches(&tshark, &path, "fcn.kind");
    assert_eq!(matches(&tshark, &path, "fcn"), kinds);
    let second = decode(
        &tshark,
        &path,
        &["-2", "-Y", "fcn", "-T", "fields", "-e", "frame.number"],
    );
    assert_eq!(second.lines().count(), kinds.len());
}

/// Returns the packets of one interface; data and notifications are truncated to `cut` octets, and
/// from the first data packet on, groups of three are reversed.
fn reordered(path: &Path, interface: u32, cut: usize) -> Vec<Packet> {
    let mut all: Vec<Packet> = packets(path)
        .into_iter()
        .filter(|packet| packet.interface == interface && packet.link == LinkType::Ethernet)
        .collect();
    let first = read(&all).iter().position(|packet| packet.flow().is_some());
    for group in all[first.unwrap()..].chunks_mut(3) {
        group.reverse();
    }
    let what: Vec<What> = read(&all).into_iter().map(|packet| packet.what).collect();
    for (packet, what) in all.iter_mut().zip(what) {
        // RDMA CM must be complete.
        if !matches!(what, What::Other) {
            packet.bytes.truncate(cut);
        }
        packet.interface = 0;
    }
    all
}

#[test]
fn reordered_and_truncated_frames_are_linked_by_time() {
    let Some(tshark) = with_plugin() else { return };
    for (name, interface, cut) in [
        ("fast-cnp", 0, usize::MAX),
        ("fast-cnp", 0, 134),
        ("incast", 1, usize::MAX),
        ("attack", 0, 134),
        ("receiver-cnp-ipv6", 0, usize::MAX),
        ("receiver-cnp-ipv4", 0, 60),
    ] {
        let path = capture(name);
        let packets = reordered(&path, interface, cut);
        let frames = packets
            .iter()
            .map(|p| (p.bytes.as_slice(), p.wire_len, p.at));
        let file = TempCapture::timed(&format!("{name}-{cut}"), frames);
        for two_passes in [false, true] {
            let whole = Whole {
                packets: read(&packets),
                connected: Connected::from_truth(&truth(&path)),
                two_passes,
            };
            let case = format!("{name}, cut to {cut}, two passes: {two_passes}");
            let [data, ..] = compare(&tshark, file.path(), &whole, &case);
            assert!(data > 0, "{case}");
        }
    }
}

#[test]
fn merged_captures_are_linked_in_any_order() {
    let Some(tshark) = with_plugin() else { return };
    let (one, other) = (capture("fast-cnp"), capture("proxy-config"));
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    for append in [false, true] {
        let path = folder.path().join("merged.pcapng");
        let mut command = std::process::Command::new("mergecap");
        command.arg("-w").arg(&path);
        if append {
            command.arg("-a");
        }
        match command.arg(&other).arg(&one).status() {
            Ok(status) => assert!(status.success()),
            Err(e) => {
                fcn_skip::skipped!("mergecap does not run ({e}), so no captures were merged");
                return;
            }
        }
        let mut connected = Connected::from_truth(&truth(&one));
        let others = Connected::from_truth(&truth(&other));
        connected.by_sender.extend(others.by_sender);
        connected.by_flow.extend(others.by_flow);
        let whole = Whole {
            packets: read(&packets(&path)),
            connected,
            two_passes: true,
        };
        let counts = compare(&tshark, &path, &whole, &format!("merged, append: {append}"));
        assert!(counts[0] > 0 && counts[2] > 0, "{counts:?}");
    }
}

/// Returns the responses of sharkd, one line per request.
fn sharkd(tshark: &Tshark, requests: &[Value]) -> Option<Vec<Value>> {
    let started = tshark
        .program("sharkd")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(e) => {
            fcn_skip::skipped!("sharkd does not run ({e}), so no second file was opened");
            return None;
        }
    };
    let mut input = child.stdin.take().unwrap();
    for request in requests {
        // A sharkd that does not run reads nothing.
        let _ = writeln!(input, "{request}");
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    if !output.status.success() && output.stdout.is_empty() {
        fcn_skip::skipped!("sharkd does not run, so no second file was opened");
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

#[test]
fn a_second_file_starts_fresh_and_frames_may_be_shown_in_any_order() {
    let Some(tshark) = with_plugin() else { return };
    let (one, other) = ("fast-cnp", "wan-fcn-srv6");
    let files: Vec<PathBuf> = [one, other]
        .iter()
        .map(|name| tshark.readable(&capture(name)).unwrap())
        .collect();
    let mut requests = Vec::new();
    let mut ask = |method: &str, params: Value| {
        let id = requests.len() + 1;
        requests.push(serde_json::json!({
            "jsonrpc": "2.0", "id": id, "method": method, "params": params,
        }));
        requests.len() - 1
    };
    let filters = [
        "fcn.notified_by",
        "fcn.data_frame",
        "fcn.translated_by",
        "fcn.notified_by",
    ];
    let mut requested = Vec::new();
    for (name, file) in [(one, &files[0]), (other, &files[1]), (one, &files[0])] {
        ask("load", serde_json::json!({"file": file}));
        for filter in filters {
            // sharkd caches the results of a filter, even for another file.
            let filter = format!("{filter} && frame.number != {}", 100_000 + requested.len());
            let place = ask("frames", serde_json::json!({"filter": filter}));
            requested.push((name, filter, place));
        }
    }
    let Some(answers) = sharkd(&tshark, &requests) else {
        return;
    };
    let mut found = 0;
    for (name, filter, place) in requested {
        let got: BTreeSet<usize> = answers[place]["result"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", answers[place]))
            .iter()
            .map(|frame| frame["num"].as_u64().unwrap() as usize)
            .collect();
        let arguments = ["-2", "-Y", &filter, "-T", "fields", "-e", "frame.number"];
        let want: BTreeSet<usize> = decode(&tshark, &capture(name), &arguments)
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        assert_eq!(got, want, "{name}: {filter}");
        found += got.len();
    }
    assert!(found > 10, "{found}");
}

#[test]
fn sflow_samples_are_shown_like_the_original_packets() {
    let Some(tshark) = with_plugin() else { return };
    let folder = xtask::tshark::TempDir::new(true).unwrap();
    let sets = ["mtu=256", "message=16KiB"];
    let [plain, sampled] = [None, Some(Mirroring::Sflow(NonZeroU32::MIN))].map(|mirror| {
        let folder = folder.path().join(if mirror.is_some() { "b" } else { "a" });
        std::fs::create_dir(&folder).unwrap();
        played_as(&folder, "fast-cnp", &sets, None, mirror)
    });
    let told = |path: &Path, fields: &[&str]| {
        let mut arguments = vec!["-o", "sflow.enable_analysis:TRUE", "-T", "fields"];
        arguments.extend(["-E", "occurrence=a"]);
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let text = decode(&tshark, path, &arguments);
        let mut told = Vec::new();
        for line in text.lines() {
            let lists = line
                .split('\t')
                .map(|list| list.split(',').collect::<Vec<_>>());
            let lists: Vec<_> = lists.collect();
            for n in 0..lists[0].len() {
                let one = lists
                    .iter()
                    .map(|list| list.get(n).copied().unwrap_or_default());
                told.push(one.collect::<Vec<_>>().join(" "));
            }
        }
        told.retain(|one| !one.trim().is_empty());
        told.sort();
        told
    };
    let fields = ["fcn.kind", "fcn.notifier_ipv6", "fcn.sender_ipv6", "fcn.qp"];
    let wanted = told(&plain, &fields);
    assert!(wanted.len() > 10, "{wanted:?}");
    assert_eq!(told(&sampled, &fields), wanted);
    // Truncation by a switch causes no finding about length or ICRC.
    assert_eq!(
        told(&sampled, &["fcn.finding"]),
        told(&plain, &["fcn.finding"])
    );
    // Unless Wireshark is configured to dissect samples, it takes them for quotations.
    assert!(matches(&tshark, &sampled, "fcn").is_empty());
    assert!(!matches(&tshark, &sampled, "fastcnp.quoted").is_empty());
}

#[test]
fn quoted_packets_are_not_traffic() {
    let Some(tshark) = with_plugin() else { return };
    // Data only within proxy notifications and ICMPv6 errors.
    for name in ["formats-proxy-cn", "formats-unaware-sender"] {
        let path = capture(name);
        let whole = read(&packets(&path));
        assert!(whole.iter().any(|packet| packet.gist().is_some()));
        let linked = shown(
            &tshark,
            &path,
            SECOND_PASS,
            &["fcn.data_frame", "fcn.notified_by"],
        );
        let data: BTreeSet<usize> = whole
            .iter()
            .filter(|p| p.flow().is_some())
            .map(|p| p.number)
            .collect();
        for columns in linked.values() {
            for frame in columns.iter().filter_map(|text| number::<usize>(text)) {
                assert!(
                    data.contains(&frame) || whole[frame - 1].gist().is_some(),
                    "{name}: {frame}"
                );
            }
        }
    }
}

/// Returns packets with wrong lengths and checksums, and packets that violate many rules at once.
fn damaged() -> Vec<Packet> {
    use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
    let [switch, sender, receiver] = [0xFFFF_0000_u128, 0x0001_0000, 0x0002_0000]
        .map(|net| Ipv6Addr::from(0x2001_0DB8_u128 << 96 | net << 64 | 1));
    let around = |destination| Part::Ipv6 {
        source: switch,
        destination,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
    };
    let udp = |destination, checksum| Part::Udp {
        source: 49_152,
        destination,
        checksum,
    };
    let build = |parts: &[Part<'_>]| {
        let packet = packet(parts, &Profile::DEFAULT).unwrap();
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xDD]);
        frame.extend(packet);
        frame
    };
    let ends = [around(sender)];
    let summed =
        |port, bytes| build(&[ends[0], udp(port, UdpChecksum::Compute), Part::Bytes(bytes)]);
    let wan = summed(1022, &[0x12, 0x34, 0x5A, 0]);
    let invoking = build(&[
        Part::Ipv6 {
            source: sender,
            destination: receiver,
            traffic_class: 2,
            flow_label: 0,
            hop_limit: 64,
        },
        udp(4791, UdpChecksum::Zero),
        Part::Bytes(&[0; 1000]),
    ]);
    let mut datagram = [sender.octets(), receiver.octets()].concat();
    datagram.extend([17, 0xC0, 0, 0x12, 0xB7, 5 << 5, 0, 0]);
    datagram.extend(&invoking[14..]);
    let proxy = summed(1021, &datagram);
    let cnp = build(&[
        ends[0],
        udp(4791, UdpChecksum::Zero),
        Part::Cnp(CnpRepr::new(Qp::truncate(7))),
        Part::Icrc(Policy::Compute(Reading::Covered)),
    ]);
    let mut frames = vec![wan.clone(), proxy.clone(), cnp.clone()];
    // Offsets: Ethernet to 14, IPv6 to 54, UDP to 62.
    for good in [&wan, &proxy, &cnp] {
        let len = u16::from_be_bytes([good[58], good[59]]);
        for (at, value) in [
            (58, len + 1),
            (58, len + 100),
            (58, len - 1),
            (18, len - 1),
            (18, len + 9),
        ] {
            let mut frame = good.clone();
            frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
            frames.push(frame);
        }
    }
    for good in [&wan, &proxy] {
        let mut wrong = good.clone();
        wrong[61] ^= 1;
        let mut none = good.clone();
        none[60..62].fill(0);
        frames.extend([wrong, none]);
    }
    // No octets, no length, and a wrong length around a tunnelled packet.
    let with = |at: usize, value: u16| {
        let mut frame = cnp.clone();
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
        frame
    };
    let mut empty = cnp[..62].to_vec();
    empty[18..20].copy_from_slice(&8u16.to_be_bytes());
    empty[58..60].copy_from_slice(&8u16.to_be_bytes());
    let tunnel = |outer: u16, inner: Vec<u8>| {
        let mut frame = with(18, outer)[..54].to_vec();
        frame[20] = 41;
        frame.extend(&inner[14..]);
        frame
    };
    frames.extend([
        empty,
        with(58, 0),
        tunnel(200, cnp.clone()),
        tunnel(200, with(18, 150)),
        tunnel(81, with(18, 42)),
    ]);
    // Padding, and an IOAM option, that runs past its header in front of the rest; a header that
    // runs past the packet.
    for option in [[1, 5], [1, 100], [0x31, 3], [0x31, 99], [0x9E, 4]] {
        for header in [0, 60] {
            let mut frame = with(18, 48);
            frame[20] = header;
            let options = [17, 0, option[0], option[1], 0, 0, 0, 0];
            frame.splice(54..54, options);
            frames.push(frame.clone());
            frame[55] = 40;
            frames.push(frame);
        }
    }
    // A Fast CNP that ends within its transport header; very many options.
    let option = [OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: receiver,
    })];
    frames.push(build(&[
        ends[0],
        Part::DestinationOptions(&option),
        udp(4791, UdpChecksum::Zero),
        Part::Bytes(&[0x81, 0, 0xFF, 0xFF, 0x40, 0]),
    ]));
    let mut many = build(&[
        ends[0],
        Part::Payload {
            ether_type: 0,
            protocol: 60,
            bytes: &[&[17, 63][..], &[0x9E, 0].repeat(255), &cnp[54..]].concat(),
        },
    ]);
    frames.push(many.clone());
    many[57..60].fill(0x9E);
    frames.push(many);
    (frames.into_iter())
        .map(|bytes| Packet {
            at: 0,
            wire_len: bytes.len(),
            bytes,
            link: LinkType::Ethernet,
            interface: 0,
        })
        .collect()
}

#[test]
fn violated_rules_match_the_audit() {
    let Some(tshark) = with_plugin() else { return };
    let damaged = damaged();
    let frames = damaged
        .iter()
        .map(|packet| (&packet.bytes[..], packet.wire_len));
    let file = TempCapture::new("damaged", frames);
    let audited = audited(&damaged, Settings::default());
    assert_eq!(
        found(&shown(&tshark, file.path(), &[], &FINDINGS)),
        broken(&audited)
    );
    for rule in [
        Rule::PacketLength,
        Rule::WanFcnChecksum,
        Rule::ProxyCnChecksum,
    ] {
        assert!(audited.contains_key(rule.info().id), "{rule}: {audited:?}");
    }
    // The number of findings left out also agrees.
    let mut monitor = Monitor::new(Settings::default());
    watch_packets(&mut monitor, &damaged);
    let left_out = shown(&tshark, file.path(), &[], &["fcn.finding.left_out"]);
    let left_out: u64 = left_out
        .values()
        .map(|columns| columns[0].parse::<u64>().unwrap())
        .sum();
    assert!(left_out > 100);
    assert_eq!(left_out, monitor.totals().findings_left_out);
}
