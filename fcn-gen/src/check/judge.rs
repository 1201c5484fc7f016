//! Computes the result of each test from the recorded frames: counts the findings of frames, and
//! applies the roles' own verdicts.

use super::bench::{LinkFrame, Record, parse};
use super::plan::{Plan, Setup, mask_mutable_fields};
use super::statements::{Statement, Test};
use crate::device::Role;
use crate::units::Ps;
use fcn_observe::rules::{self, Duties, NotifierRate};
use fcn_observe::{DataPacket, RowKey};
use fcn_wire::finding::Family;
use fcn_wire::header::ethernet;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Findings, Frame, IcrcCheck, Kind, Message, Notification, Opcode, Rule};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

fcn_wire::identified! {
    /// Result of a test.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    Grade {
        /// As required.
        Passed = "passed",
        /// Worth reporting, but not forbidden.
        Noted = "noted",
        /// Violated.
        Failed = "failed",
        /// Nothing was observed that allows a verdict.
        Untested = "not_tested",
    }
}

/// Result of one test, with details.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The test.
    pub test: Test,
    /// The result.
    pub grade: Grade,
    /// Reason, unless it passed.
    pub why: String,
    /// Number of times that the device's behaviour allowed a verdict.
    pub judged: usize,
    /// Indices of the recorded frames that show it; the first few if there are many.
    pub frames: Vec<usize>,
    /// Number of violations.
    pub times: usize,
}

fcn_wire::identified! {
    /// Result of a whole check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Verdict {
        /// The role's core tests passed, and no test failed.
        Passed = "passed",
        /// A test failed.
        Failed = "failed",
        /// A core test could not be done, or no test.
        Inconclusive = "inconclusive",
    }
}

impl Verdict {
    /// Returns the result of a check with these outcomes.
    #[must_use]
    pub fn new(outcomes: &[Outcome]) -> Self {
        let has = |grade| outcomes.iter().any(|outcome| outcome.grade == grade);
        if has(Grade::Failed) {
            Self::Failed
        } else if untested_core(outcomes).is_some() || !(has(Grade::Passed) || has(Grade::Noted)) {
            Self::Inconclusive
        } else {
            Self::Passed
        }
    }
}

/// Returns the first core test that could not be done.
pub fn untested_core(outcomes: &[Outcome]) -> Option<&Outcome> {
    let is_missing =
        |outcome: &&Outcome| outcome.grade == Grade::Untested && outcome.test.is_core();
    outcomes.iter().find(is_missing)
}

/// Maximum number of frames named in one outcome.
const MOST_NAMED: usize = 8;

/// Intermediate results of the tests.
pub struct Ledger {
    /// Reason why a statement could not be judged if there is no other.
    pub missing: String,
    broken: BTreeMap<Test, (String, Vec<usize>, usize)>,
    judged: BTreeMap<Test, usize>,
    untestable: BTreeMap<Test, String>,
    latencies: BTreeMap<&'static str, Vec<Ps>>,
}

/// Latency of the device's reactions to one kind of cause.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The two events between which it is measured.
    pub what: &'static str,
    /// Number of reactions.
    pub count: usize,
    /// Median.
    pub p50: Ps,
    /// 99th percentile.
    pub p99: Ps,
    /// Maximum.
    pub longest: Ps,
}

/// Result of a check.
pub struct Judgement {
    /// The outcomes of the tests.
    pub outcomes: Vec<Outcome>,
    /// The latencies of the device's reactions.
    pub latencies: Vec<Latency>,
}

impl Ledger {
    /// Creates an empty ledger for a completed plan.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            missing: plan.missing(),
            broken: BTreeMap::new(),
            judged: BTreeMap::new(),
            untestable: BTreeMap::new(),
            latencies: BTreeMap::new(),
        }
    }

    /// Records the maximum time that the device can have taken to react.
    pub fn record_latency(&mut self, what: &'static str, latency: Ps) {
        self.latencies.entry(what).or_default().push(latency);
    }

    /// Returns the latencies.
    pub fn latencies(&mut self) -> Vec<Latency> {
        let all = self.latencies.iter_mut().filter_map(|(what, times)| {
            times.sort_unstable();
            let count = times.len();
            // Nearest rank.
            let at = |percent: usize| {
                times
                    .get((count * percent).div_ceil(100).max(1) - 1)
                    .copied()
            };
            Some(Latency {
                what,
                count,
                p50: at(50)?,
                p99: at(99)?,
                longest: at(100)?,
            })
        });
        all.collect()
    }

    /// Records a violation, shown by these frames.
    pub fn fail(&mut self, test: Test, why: impl FnOnce() -> String, frames: &[usize]) {
        let (_, named, times) = (self.broken.entry(test)).or_insert_with(|| (why(), Vec::new(), 0));
        for frame in frames {
            if named.len() < MOST_NAMED && !named.contains(frame) {
                named.push(*frame);
            }
        }
        *times += 1;
    }

    /// Returns true if a statement was found not to hold.
    #[must_use]
    pub fn is_broken(&self, statement: Statement) -> bool {
        self.broken.contains_key(&Test::Statement(statement))
    }

    /// Withdraws violations of statements, which show nothing for that reason.
    pub fn excuse(&mut self, statements: &[Statement], why: &str) {
        for test in statements.iter().copied().map(Test::Statement) {
            if self.broken.remove(&test).is_some() {
                self.judged.remove(&test);
                self.untestable.insert(test, why.to_owned());
            }
        }
    }

    /// Records that a statement does not hold.
    pub fn fails(&mut self, statement: Statement, why: impl FnOnce() -> String, frames: &[usize]) {
        self.fail(Test::Statement(statement), why, frames);
    }

    /// Records that a test could be judged once.
    pub fn record_judgeable(&mut self, test: Test) {
        self.record_times(test, 1);
    }

    /// Records that a test could be judged that many times.
    pub fn record_times(&mut self, test: Test, times: usize) {
        *self.judged.entry(test).or_default() += times;
    }

    /// Records that statements could be judged once.
    pub fn record_judgeable_all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.record_judgeable(Test::Statement(*statement));
        }
    }

    /// Records why these statements could not be judged, unless there is a result already.
    pub fn record_untestable_all(&mut self, statements: &[Statement], why: &str) {
        for statement in statements {
            self.record_untestable(Test::Statement(*statement), why);
        }
    }

    /// Records why a test could not be judged, unless there is a result already.
    pub fn record_untestable(&mut self, test: Test, why: &str) {
        let known = self.untestable.entry(test);
        known.or_insert_with(|| why.to_owned());
    }

    /// Records why a statement was not judged: the device's messages break rules of these families.
    /// Returns false if they do not.
    pub fn blames_format(&mut self, statement: Statement, families: &[Family]) -> bool {
        let mut broken = self.broken.keys();
        let rule = broken.find_map(|test| match test {
            Test::Rule(rule) if families.contains(&rule.info().family) => Some(*rule),
            _ => None,
        });
        let why = |rule: Rule| format!("the device's messages break {rule}");
        if let Some(rule) = rule {
            self.record_untestable_all(&[statement], &why(rule));
        }
        rule.is_some()
    }

    /// Records whether a statement holds, according to a condition.
    pub fn holds(
        &mut self,
        statement: Statement,
        holds: bool,
        why: impl FnOnce() -> String,
        frames: &[usize],
    ) {
        self.record_judgeable_all(&[statement]);
        if !holds {
            self.fails(statement, why, frames);
        }
    }

    /// Returns the outcome of a test, based on the recorded results.
    pub fn outcome(&mut self, test: Test) -> Outcome {
        let judged = self.judged.remove(&test).unwrap_or(0);
        let untestable = self.untestable.remove(&test);
        let (grade, why, frames, times) = match self.broken.remove(&test) {
            Some((why, frames, times)) => {
                let grade = if test.is_note() {
                    Grade::Noted
                } else {
                    Grade::Failed
                };
                (grade, why, frames, times)
            }
            None if judged > 0 => (Grade::Passed, String::new(), Vec::new(), 0),
            None => {
                let why = untestable.unwrap_or_else(|| match test {
                    Test::Rule(_) => "the device sent no such message".to_owned(),
                    Test::Statement(_) => self.missing.clone(),
                });
                (Grade::Untested, why, Vec::new(), 0)
            }
        };
        Outcome {
            test,
            grade,
            why,
            judged: judged.max(times),
            frames,
            times,
        }
    }
}

/// A frame sent by the device.
pub struct DeviceFrame<'a> {
    /// Index of the frame in the record.
    pub index: usize,
    /// Its time and link.
    pub captured: &'a LinkFrame,
    /// The parsed frame.
    pub parsed: Frame<'a>,
    /// The notification in it, if it is one.
    pub notification: Option<Notification>,
    /// True if the bench sent the same packet, except for fields that any router may change.
    pub is_unchanged: bool,
}

impl DeviceFrame<'_> {
    /// Returns true if it is a notification of that kind, well-formed or not.
    #[must_use]
    pub fn is_of(&self, kind: Kind) -> bool {
        matches!(
            (self.parsed.message(), kind),
            (Message::FastCnp(_), Kind::FastCnp1 | Kind::FastCnp2)
                | (Message::ProxyCn(_), Kind::ProxyCn)
                | (Message::WanFcn(_), Kind::WanFcn)
                | (Message::Cnp(_), Kind::Cnp)
        )
    }
}

/// The device's frames in a record: those it generated, and those it forwarded.
pub struct ClassifiedFrames<'a> {
    /// Generated by the device.
    pub generated: Vec<DeviceFrame<'a>>,
    /// Forwarded by the device.
    pub forwarded: Vec<DeviceFrame<'a>>,
}

/// Separates the frames that the device generated from those that it forwarded.
#[must_use]
pub fn classify<'a>(setup: &'a Setup<'_>, record: &'a Record) -> ClassifiedFrames<'a> {
    let profile = &setup.simulation.profile;
    let is_host = matches!(setup.role, Role::Sender | Role::Receiver);
    let behind = |bytes: &[u8]| mask_mutable_fields(bytes.get(ethernet::LEN..).unwrap_or_default());
    let sent = record.iter().filter(|(_, passed, _)| !passed.by_device);
    // A frame that comes back to the device is still its own.
    let mut first_sent: HashMap<Vec<u8>, Ps> = HashMap::new();
    if !is_host {
        for (_, passed, bytes) in sent {
            first_sent.entry(behind(bytes)).or_insert(passed.since);
        }
    }
    let (mut generated, mut forwarded) = (Vec::new(), Vec::new());
    for (index, captured, bytes) in record.iter().filter(|(_, captured, _)| captured.by_device) {
        let parsed = parse(bytes, profile);
        let is_unchanged = !is_host && {
            let sent = first_sent.get(&behind(bytes));
            sent.is_some_and(|sent| *sent <= captured.at)
        };
        let is_passed_on = !is_host && {
            let is_transit = match parsed.message() {
                Message::RdmaCm(..) => true,
                Message::Roce(bth, _) => {
                    bth.opcode() != Opcode(0x80) && bth.opcode() != Opcode::CNP
                }
                _ => false,
            };
            is_transit || is_unchanged
        };
        let seen = DeviceFrame {
            index,
            captured,
            notification: Notification::from_frame(&parsed),
            parsed,
            is_unchanged,
        };
        if is_passed_on {
            forwarded.push(seen);
        } else {
            generated.push(seen);
        }
    }
    ClassifiedFrames {
        generated,
        forwarded,
    }
}

/// Returns the families of messages that a frame belongs to.
fn families(frame: &Frame<'_>) -> Vec<Family> {
    let mut families = vec![];
    match frame.message() {
        Message::Cnp(_) => families.extend([Family::Roce, Family::Cnp]),
        Message::FastCnp(message) => {
            families.extend([Family::Roce, Family::Cnp, Family::FastCnp]);
            if message.parsed.is_ok_and(|option| option.trace().is_some()) {
                families.push(Family::Ioam);
            }
        }
        Message::ProxyCn(_) => families.push(Family::ProxyCn),
        Message::WanFcn(_) => families.push(Family::WanFcn),
        Message::Roce(..) | Message::RdmaCm(..) => families.push(Family::Roce),
        Message::Pfc(_) | Message::Cnm(_) | Message::Other => {}
    }
    if frame.ioam_trace().is_some() {
        families.push(Family::Ioam);
    }
    if frame.proxy_address().is_some() {
        families.push(Family::ProxyAddress);
    }
    if frame.routing().is_some() {
        families.push(Family::Pnc);
    }
    if !families.is_empty() {
        families.push(Family::Packet);
    }
    families
}

/// Judges by the list of rules: first each frame by itself, then rules over several packets.
pub fn by_rules(setup: &Setup<'_>, classified: &ClassifiedFrames<'_>, ledger: &mut Ledger) {
    let own = super::statements::families(setup.role);
    let all = Rule::ALL
        .iter()
        .filter(|rule| !Rule::MULTI_PACKET.contains(rule));
    let all: Vec<Rule> = all.copied().collect();
    // Data that a device writes into forwarded packets are its own as well: node data of a trace, a
    // tunnel.
    let written = classified
        .forwarded
        .iter()
        .filter(|seen| seen.parsed.ioam_trace().is_some() && !seen.is_unchanged);
    for seen in classified.generated.iter().chain(written) {
        let mut findings = Findings::new();
        seen.parsed.check(IcrcCheck::On, &mut findings);
        let mut families = families(&seen.parsed);
        for finding in findings.as_slice() {
            let info = finding.rule.info();
            families.push(info.family);
            let why = || format!("{} (octet {})", info.text, finding.offset);
            ledger.fail(Test::Rule(finding.rule), why, &[seen.index]);
        }
        for rule in &all {
            let family = rule.info().family;
            if own.contains(&family) && families.contains(&family) {
                ledger.record_judgeable(Test::Rule(*rule));
            }
        }
    }
    if setup.has_border() {
        crossings(setup, classified, ledger);
    }
}

/// Judges notifications that have crossed the border of the device's domain.
fn crossings(setup: &Setup<'_>, classified: &ClassifiedFrames<'_>, ledger: &mut Ledger) {
    let nodes = setup.simulation.nodes.iter().enumerate();
    let inside = nodes.filter(|(index, _)| setup.is_inside(*index));
    let domain: Vec<Prefix> = inside
        .flat_map(|(_, node)| [IpAddr::V6(node.ipv6), IpAddr::V4(node.ipv4)].map(Prefix::host))
        .collect();
    for seen in classified.generated.iter().chain(&classified.forwarded) {
        let Some(notification) = &seen.notification else {
            continue;
        };
        if let Some(rule) = rules::crosses(&domain, notification) {
            let why = || {
                let (from, to) = (notification.notifier, notification.destination);
                format!("{}: {from} to {to}", rule.info().text)
            };
            ledger.fail(Test::Rule(rule), why, &[seen.index]);
        }
    }
}

/// Estimates the arrival times of frames: frames read from a link at the same time are taken as
/// evenly distributed since the previous read.
#[must_use]
pub fn estimate_arrivals(frames: &[&DeviceFrame<'_>]) -> Vec<Ps> {
    let mut times = Vec::with_capacity(frames.len());
    for batch in frames
        .chunk_by(|a, b| (a.captured.at, a.captured.since) == (b.captured.at, b.captured.since))
    {
        let Some(first) = batch.first() else { continue };
        let (since, at) = (first.captured.since, first.captured.at);
        let span = at.since(since).0;
        let many = batch.len() as u64;
        times.extend(
            (1..=many).map(|n| {
                Ps(since.0 + (u128::from(span) * u128::from(n) / u128::from(many)) as u64)
            }),
        );
    }
    times
}

/// Returns the frames that exceed the limit on the rate of notifications about one flow.
#[must_use]
pub fn over_rate(frames: &[&DeviceFrame<'_>], rate: u32) -> Option<Vec<usize>> {
    let mut rates: HashMap<(IpAddr, RowKey), NotifierRate> = HashMap::new();
    let mut beyond = Vec::new();
    for (seen, at) in frames.iter().zip(estimate_arrivals(frames)) {
        let Some(notification) = &seen.notification else {
            continue;
        };
        let key = (notification.notifier, RowKey::new(notification, None));
        let counted = rates.entry(key).or_insert(NotifierRate::NEW);
        if counted.exceeds(at.as_nanos(), rate) {
            beyond.push(seen.index);
        }
    }
    (!beyond.is_empty()).then_some(beyond)
}

/// Judges the notification rate of congestion points by the rule for their kind. `tried` is true if
/// there was more congestion to report than the limit permits.
pub fn rates(setup: &Setup<'_>, frames: &[&DeviceFrame<'_>], tried: bool, ledger: &mut Ledger) {
    let Some(duties) = frames
        .iter()
        .find_map(|seen| Duties::for_kind(seen.notification.as_ref()?.kind))
    else {
        return;
    };
    let test = Test::Rule(duties.rate);
    if tried {
        ledger.record_times(test, frames.len());
    }
    if let Some(beyond) = over_rate(frames, setup.limits.flow_rate) {
        let (times, many, rate) = (beyond.len(), frames.len(), setup.limits.flow_rate);
        let text = duties.rate.info().text;
        let why = || format!("{text}: {times} of {many} exceeded {rate} per second");
        for frame in beyond {
            ledger.fail(test, why, &[frame]);
        }
    }
}

/// Returns the data packets among frames.
pub fn data<'o, 'a>(
    frames: &'o [DeviceFrame<'a>],
) -> impl Iterator<Item = (&'o DeviceFrame<'a>, DataPacket<'a>)> {
    let data = |seen: &'o DeviceFrame<'a>| Some((seen, DataPacket::from_frame(&seen.parsed)?));
    frames.iter().filter_map(data)
}
