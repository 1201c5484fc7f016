//! From what passed to what each test comes to: how findings of frames count, and what the roles' own judges say in.

use super::bench::{Passed, Record, parse};
use super::plan::{Setup, unchanging};
use super::statements::{Statement, Test};
use crate::emulate::Role;
use crate::units::Ps;
use fcn_observe::rules::{self, Duties, NotifierRate};
use fcn_observe::{DataPacket, RowKey};
use fcn_wire::finding::Family;
use fcn_wire::header::ethernet;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Findings, Frame, IcrcCheck, Kind, Message, Notification, Opcode, Rule};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

fcn_wire::identified! {
    /// What a test comes to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    Grade {
        /// As it should be.
        Passed = "passed",
        /// Worth knowing; nobody demands otherwise.
        Noted = "noted",
        /// Broken.
        Failed = "failed",
        /// Nothing was there to tell by.
        Untested = "not_tested",
    }
}

/// What became of one test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The test.
    pub test: Test,
    /// What it comes to.
    pub grade: Grade,
    /// Why, where it is not passed.
    pub why: String,
    /// The frames of the record that show it, from 0; a few of many.
    pub frames: Vec<usize>,
    /// How many there are.
    pub times: usize,
}

/// Why there is nothing to tell a statement by, where its step is missing.
pub const NOT_DONE: &str =
    "its step was not done to its end, or this machine was late with it (a lower --speed helps)";
/// Frames named for one outcome.
const MOST_NAMED: usize = 8;

/// What is known of each test so far.
#[derive(Default)]
pub struct Ledger {
    broken: BTreeMap<Test, (String, Vec<usize>, usize)>,
    tried: BTreeMap<Test, Result<(), String>>,
}

impl Ledger {
    /// The test is broken, as these frames show.
    pub fn fail(&mut self, test: Test, why: impl FnOnce() -> String, frames: &[usize]) {
        let (_, named, times) = (self.broken.entry(test)).or_insert_with(|| (why(), Vec::new(), 0));
        for frame in frames {
            if named.len() < MOST_NAMED && !named.contains(frame) {
                named.push(*frame);
            }
        }
        *times += 1;
    }

    /// A statement does not hold.
    pub fn fails(&mut self, statement: Statement, why: impl FnOnce() -> String, frames: &[usize]) {
        self.fail(Test::Statement(statement), why, frames);
    }

    /// Something was there to tell by.
    pub fn tried(&mut self, test: Test) {
        self.tried.insert(test, Ok(()));
    }

    /// There was something to tell a statement by.
    pub fn tries(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.tried(Test::Statement(*statement));
        }
    }

    /// Why there is nothing to tell these by, unless something else was.
    pub fn cannot(&mut self, statements: &[Statement], why: &str) {
        for statement in statements {
            self.cannot_test(Test::Statement(*statement), why);
        }
    }

    /// The same of one test.
    pub fn cannot_test(&mut self, test: Test, why: &str) {
        let known = self.tried.entry(test);
        known.or_insert_with(|| Err(why.to_owned()));
    }

    /// A statement that holds or does not, as a condition says.
    pub fn holds(
        &mut self,
        statement: Statement,
        holds: bool,
        why: impl FnOnce() -> String,
        frames: &[usize],
    ) {
        self.tries(&[statement]);
        if !holds {
            self.fails(statement, why, frames);
        }
    }

    /// What a test comes to, by what was entered.
    pub fn outcome(&mut self, test: Test) -> Outcome {
        let (grade, why, frames, times) =
            match (self.broken.remove(&test), self.tried.remove(&test)) {
                (Some((why, frames, times)), _) => {
                    let grade = if test.is_note() {
                        Grade::Noted
                    } else {
                        Grade::Failed
                    };
                    (grade, why, frames, times)
                }
                (None, Some(Ok(()))) => (Grade::Passed, String::new(), Vec::new(), 0),
                (None, Some(Err(why))) => (Grade::Untested, why, Vec::new(), 0),
                (None, None) => {
                    let why = match test {
                        Test::Rule(_) => "the device sent no such message",
                        Test::Statement(_) => NOT_DONE,
                    };
                    (Grade::Untested, why.to_owned(), Vec::new(), 0)
                }
            };
        Outcome {
            test,
            grade,
            why,
            frames,
            times,
        }
    }
}

/// A frame of the device that it did not merely pass on.
pub struct Own<'a> {
    /// Its number.
    pub index: usize,
    /// When, and where.
    pub passed: &'a Passed,
    /// Itself.
    pub frame: Frame<'a>,
    /// What it notifies of.
    pub notification: Option<Notification>,
}

impl Own<'_> {
    /// Whether it is of that kind, well-formed or not.
    #[must_use]
    pub fn is_of(&self, kind: Kind) -> bool {
        matches!(
            (self.frame.message(), kind),
            (Message::FastCnp(_), Kind::FastCnp1 | Kind::FastCnp2)
                | (Message::ProxyCn(_), Kind::ProxyCn)
                | (Message::WanFcn(_), Kind::WanFcn)
                | (Message::Cnp(_), Kind::Cnp)
        )
    }
}

/// The frames that the device made, and those it passed on, of a record.
pub struct Sorted<'a> {
    /// Made by the device.
    pub own: Vec<Own<'a>>,
    /// Passed on.
    pub forwarded: Vec<Own<'a>>,
}

/// Sorts the frames of the device.
#[must_use]
pub fn sort<'a>(setup: &'a Setup<'_>, record: &'a Record) -> Sorted<'a> {
    let profile = &setup.simulation.profile;
    let is_host = matches!(setup.role, Role::Sender | Role::Receiver);
    let behind = |bytes: &[u8]| unchanging(bytes.get(ethernet::LEN..).unwrap_or_default());
    let sent = record.iter().filter(|(_, passed, _)| !passed.by_device);
    let sent: HashSet<Vec<u8>> = match is_host {
        true => HashSet::new(),
        false => sent.map(|(.., bytes)| behind(bytes)).collect(),
    };
    let (mut own, mut forwarded) = (Vec::new(), Vec::new());
    for (index, passed, bytes) in record.iter().filter(|(_, passed, _)| passed.by_device) {
        let frame = parse(bytes, profile);
        let is_passed_on = !is_host && {
            let is_transit = match frame.message() {
                Message::RdmaCm(..) => true,
                Message::Roce(bth, _) => {
                    bth.opcode() != Opcode(0x80) && bth.opcode() != Opcode::CNP
                }
                _ => false,
            };
            is_transit || sent.contains(&behind(bytes))
        };
        let seen = Own {
            index,
            passed,
            notification: Notification::from_frame(&frame),
            frame,
        };
        if is_passed_on {
            forwarded.push(seen);
        } else {
            own.push(seen);
        }
    }
    Sorted { own, forwarded }
}

/// The families that a frame belongs to.
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
        Message::Pfc(_) | Message::Other => {}
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

/// Judges by the rules of the list: each frame by itself, then those over several.
pub fn by_rules(setup: &Setup<'_>, sorted: &Sorted<'_>, ledger: &mut Ledger) {
    let own = super::statements::families(setup.role);
    let all = Rule::ALL
        .iter()
        .filter(|rule| !Rule::SEVERAL.contains(rule));
    let all: Vec<Rule> = all.copied().collect();
    // What a device writes into packets that it passes on is its own as well: node data of a trace, a tunnel.
    let written = sorted
        .forwarded
        .iter()
        .filter(|seen| seen.frame.ioam_trace().is_some());
    for seen in sorted.own.iter().chain(written) {
        let mut findings = Findings::new();
        seen.frame.check(IcrcCheck::On, &mut findings);
        let mut families = families(&seen.frame);
        for finding in findings.as_slice() {
            let info = finding.rule.info();
            families.push(info.family);
            let why = || format!("{} (octet {})", info.text, finding.offset);
            ledger.fail(Test::Rule(finding.rule), why, &[seen.index]);
        }
        for rule in &all {
            let family = rule.info().family;
            if own.contains(&family) && families.contains(&family) {
                ledger.tried(Test::Rule(*rule));
            }
        }
    }
    if setup.has_border() {
        crossings(setup, sorted, ledger);
    }
}

/// Notifications that have crossed the border of the device's domain.
fn crossings(setup: &Setup<'_>, sorted: &Sorted<'_>, ledger: &mut Ledger) {
    let nodes = setup.simulation.nodes.iter().enumerate();
    let inside = nodes.filter(|(index, _)| setup.is_inside(*index));
    let domain: Vec<Prefix> = inside
        .flat_map(|(_, node)| [IpAddr::V6(node.ipv6), IpAddr::V4(node.ipv4)].map(Prefix::host))
        .collect();
    for seen in sorted.own.iter().chain(&sorted.forwarded) {
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

/// When frames came in, by their numbers: those of one look at the link are taken as coming evenly since the look before.
#[must_use]
pub fn spread(frames: &[&Own<'_>]) -> Vec<Ps> {
    let mut times = Vec::with_capacity(frames.len());
    for batch in
        frames.chunk_by(|a, b| (a.passed.at, a.passed.since) == (b.passed.at, b.passed.since))
    {
        let Some(first) = batch.first() else { continue };
        let (since, at) = (first.passed.since, first.passed.at);
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

/// Holds notifications to the limit on their rate about one flow; returns the frames that exceed it.
#[must_use]
pub fn over_rate(frames: &[&Own<'_>], rate: u32) -> Option<Vec<usize>> {
    let mut rates: HashMap<(IpAddr, RowKey), NotifierRate> = HashMap::new();
    let mut beyond = Vec::new();
    for (seen, at) in frames.iter().zip(spread(frames)) {
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

/// The same for congestion points, by the rule of the kind. `tried`: more came to be told of than the limit lets through.
pub fn rates(setup: &Setup<'_>, frames: &[&Own<'_>], tried: bool, ledger: &mut Ledger) {
    let Some(duties) = frames
        .iter()
        .find_map(|seen| Duties::for_kind(seen.notification.as_ref()?.kind))
    else {
        return;
    };
    let test = Test::Rule(duties.rate);
    if tried {
        ledger.tried(test);
    }
    if let Some(beyond) = over_rate(frames, setup.flow_rate) {
        let (times, many, rate) = (beyond.len(), frames.len(), setup.flow_rate);
        let text = duties.rate.info().text;
        let why = || format!("{text}: {times} of {many} beyond {rate} a second");
        for frame in beyond {
            ledger.fail(test, why, &[frame]);
        }
    }
}

/// The data packets among frames.
pub fn data<'o, 'a>(frames: &'o [Own<'a>]) -> impl Iterator<Item = (&'o Own<'a>, DataPacket<'a>)> {
    let data = |seen: &'o Own<'a>| Some((seen, DataPacket::from_frame(&seen.frame)?));
    frames.iter().filter_map(data)
}
