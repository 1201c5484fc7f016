//! Faults that `emulate` injects into a role (`--fault`), so that checks and monitors can be tested
//! with a device that is wrong in a known way.
//!
//! A fault changes the node's configuration, the frames that it sends, or those that it receives;
//! the node itself knows nothing of it. [`Injector`] stands between a node and its links: frames
//! and times come in, frames come out, so that the same faults are played on links and in virtual
//! time. The faults are in `list.rs`; any field of a sent message can be changed besides
//! (`field=bth.pkey:0`).

mod edit;
mod fields;
mod list;

use crate::device::Role;
use crate::scenario::model::{NodeId, NodeKind, Simulation};
use crate::sim::live::OutgoingFrame;
use crate::units::{Ps, Rate};
use edit::{Layout, parse};
use fcn_observe::data::acknowledges;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity;
use fcn_wire::{Frame, Message, Profile, Qp};
pub use fields::NamedField;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

pub use list::FAULTS;

/// Maximum number of received frames kept for a fault that processes them late; further ones are
/// processed at once.
const MAX_WAITING: usize = 65_536;

/// Group of frames that a fault tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A congestion notification of any kind.
    Notification,
    /// RoCEv2 data or a request.
    Data,
    /// A RoCEv2 acknowledgement.
    Acknowledgement,
    /// Anything else.
    Other,
}

impl Class {
    fn of(frame: &Frame<'_>) -> Self {
        match frame.message() {
            Message::Cnp(_) | Message::FastCnp(_) | Message::ProxyCn(_) | Message::WanFcn(_) => {
                Self::Notification
            }
            Message::Roce(bth, _) if acknowledges(bth.opcode()) => Self::Acknowledgement,
            Message::Roce(..) => Self::Data,
            _ => Self::Other,
        }
    }
}

/// What follows `=` after a fault's name, with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Nothing.
    None,
    /// A time.
    Time(&'static str),
    /// A number.
    Number(u64),
    /// A field and its value: `NAME:VALUE`; without a value, its bits are inverted.
    Field,
}

/// Returns the frames that the node receives instead of one, each with a delay; may send frames.
type Instead =
    fn(&Context, &mut State, &Received<'_>, &mut Vec<OutgoingFrame>) -> Vec<(Ps, Vec<u8>)>;

/// What a fault changes.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// The configuration.
    Configuration(fn(&mut Simulation, NodeId)),
    /// The octets of each message that the device itself makes: of notifications, or of a sender's
    /// data. With true, checksums and ICRC are made to fit afterwards.
    Octets(bool, fn(&mut Vec<u8>, &Layout)),
    /// One field of these messages.
    Field,
    /// The frames sent: each becomes none, one or several.
    Sent(fn(&Context, &mut State, Sent, &mut Vec<OutgoingFrame>)),
    /// The frames received.
    Received(Instead),
}

/// A fault that can be injected.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its name on the command line.
    pub name: &'static str,
    /// What follows its name.
    pub parameter: Parameter,
    /// Roles that can have it.
    pub roles: &'static [Role],
    /// Description of the device that has it.
    pub about: &'static str,
    effect: Effect,
}

impl Fault {
    /// Returns its name with the form of its parameter.
    #[must_use]
    pub fn usage(&self) -> String {
        let name = self.name;
        match self.parameter {
            Parameter::None => name.to_owned(),
            Parameter::Time(default) => format!("{name}[=TIME] ({default})"),
            Parameter::Number(default) => format!("{name}[=N] ({default})"),
            Parameter::Field => format!("{name}=FIELD[:VALUE]"),
        }
    }
}

/// Lists the faults of a role, and the fields that one of them changes.
#[must_use]
pub fn listing(role: Role) -> String {
    let mut text = format!("faults of a {}\n", role.id());
    for fault in FAULTS.iter().filter(|fault| fault.roles.contains(&role)) {
        let _ = writeln!(text, "  {:<32} {}", fault.usage(), fault.about);
    }
    text.push_str("fields (VALUE: decimal or 0x…; without it, the bits are inverted)\n");
    let mut line = String::from(" ");
    for field in NamedField::all() {
        let name = field.name();
        if line.len() + name.len() > 98 {
            let _ = writeln!(text, "{line}");
            line = String::from(" ");
        }
        let _ = write!(line, " {name}");
    }
    let _ = writeln!(text, "{line}");
    text
}

/// What a fault knows of the device.
#[derive(Debug)]
struct Context {
    profile: Profile,
    is_switch: bool,
    address: Ipv6Addr,
    /// Rate of each link.
    rates: Vec<Rate>,
    /// Flows that begin at the device: the receiver, and the QPs at sender and receiver.
    flows: Vec<(IpAddr, Qp, Qp)>,
}

/// What a fault has done so far.
#[derive(Clone, Debug, Default)]
struct State {
    /// Parameter: a number, or picoseconds.
    value: u64,
    field: Option<(NamedField, Option<u128>)>,
    /// Frames considered.
    count: u64,
    /// Frames changed, left out, added or delayed.
    changed: u64,
    /// Time of the last frame of each link, or of a frame added.
    last: BTreeMap<usize, Ps>,
    /// Link from which frames of a MAC address came.
    links: BTreeMap<[u8; 6], usize>,
}

impl State {
    /// Returns true for every `value`-th call, and counts it.
    const fn is_nth(&mut self) -> bool {
        self.count += 1;
        self.value > 0 && self.count.is_multiple_of(self.value)
    }
}

/// A frame that the device sends.
#[derive(Debug)]
struct Sent {
    /// The frame, with its Ethernet header among its octets.
    frame: OutgoingFrame,
    class: Class,
    /// True if the device made it: it does not forward it.
    is_own: bool,
}

impl Sent {
    fn is_own_notification(&self) -> bool {
        self.is_own && self.class == Class::Notification
    }

    fn is_forwarded_data(&self) -> bool {
        !self.is_own && self.class == Class::Data
    }
}

/// A frame that the device receives.
#[derive(Debug)]
struct Received<'a> {
    now: Ps,
    link: usize,
    bytes: &'a [u8],
    frame: &'a Frame<'a>,
    class: Class,
}

/// A fault as injected, for reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InjectedFault {
    /// Name and parameter.
    pub fault: String,
    /// Description.
    pub about: &'static str,
    /// Frames changed, left out, added or delayed; null for a fault of the configuration.
    pub frames: Option<u64>,
}

/// Injects faults into a device.
#[derive(Debug)]
pub struct Injector {
    faults: Vec<(&'static Fault, String, State)>,
    context: Context,
    /// Received frames to be processed later, by time.
    waiting: BTreeMap<(Ps, u64), (usize, Vec<u8>)>,
    number: u64,
    /// Frames added by faults.
    added: Vec<OutgoingFrame>,
}

impl Injector {
    /// Creates the injector of the faults given as `NAME[=VALUE]`, and changes the configuration of
    /// `node` where a fault is one of configuration; to be called after features were disabled.
    ///
    /// # Errors
    /// A fault is unknown, is not one of the role, or its value is invalid.
    pub fn new(
        faults: &[String],
        role: Role,
        simulation: &mut Simulation,
        node: NodeId,
    ) -> Result<Self> {
        let mut chosen = Vec::new();
        for text in faults {
            let (fault, state) = read(text, role)?;
            if let Effect::Configuration(change) = fault.effect {
                change(simulation, node);
            }
            chosen.push((fault, text.clone(), state));
        }
        let links = simulation.links.iter();
        let links = links.filter(|link| link.a == node || link.b == node);
        let own = simulation.flows.iter().filter(|flow| flow.from == node);
        let context = Context {
            profile: simulation.profile.clone(),
            is_switch: matches!(simulation.nodes[node].kind, NodeKind::Switch(_)),
            address: simulation.nodes[node].ipv6,
            rates: links.map(|link| link.rate).collect(),
            flows: own
                .map(|flow| (flow.destination, flow.sender_qp, flow.receiver_qp))
                .collect(),
        };
        Ok(Self {
            faults: chosen,
            context,
            waiting: BTreeMap::new(),
            number: 0,
            added: Vec::new(),
        })
    }

    /// Returns the faults, and how many frames each has changed so far.
    #[must_use]
    pub fn report(&self) -> Vec<InjectedFault> {
        let one = |(fault, text, state): &(&'static Fault, String, State)| InjectedFault {
            fault: text.clone(),
            about: fault.about,
            frames: match fault.effect {
                Effect::Configuration(_) => None,
                _ => Some(state.changed),
            },
        };
        self.faults.iter().map(one).collect()
    }

    /// Processes a received frame; returns the frames that the node receives now instead.
    pub fn on_received(&mut self, now: Ps, link: usize, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = vec![(Ps(0), bytes.to_vec())];
        for (fault, _, state) in &mut self.faults {
            let Effect::Received(change) = fault.effect else {
                note_link(state, link, bytes);
                continue;
            };
            let mut changed = Vec::with_capacity(frames.len());
            for (delay, bytes) in frames {
                let frame = parse(&bytes, &self.context.profile);
                let received = Received {
                    now,
                    link,
                    bytes: &bytes,
                    frame: &frame,
                    class: Class::of(&frame),
                };
                let instead = change(&self.context, state, &received, &mut self.added);
                let is_same = matches!(instead.as_slice(), [(Ps(0), same)] if *same == bytes);
                state.changed += u64::from(!is_same);
                changed.extend(
                    instead
                        .into_iter()
                        .map(|(more, bytes)| (delay + more, bytes)),
                );
            }
            frames = changed;
        }
        let mut at_once = Vec::with_capacity(frames.len());
        for (delay, bytes) in frames {
            if delay == Ps(0) || self.waiting.len() >= MAX_WAITING {
                at_once.push(bytes);
            } else {
                self.number += 1;
                self.waiting
                    .insert((now + delay, self.number), (link, bytes));
            }
        }
        at_once
    }

    /// Returns the time at which the next received frame is to be processed.
    #[must_use]
    pub fn next_timer(&self) -> Option<Ps> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns the next received frame whose time has come, with its link.
    pub fn take_due(&mut self, now: Ps) -> Option<(usize, Vec<u8>)> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Changes the frames that the node sends, and adds those of faults.
    pub fn on_sent(&mut self, frames: &mut Vec<OutgoingFrame>) {
        for (fault, _, state) in &mut self.faults {
            let mut changed = Vec::with_capacity(frames.len());
            for frame in frames.drain(..) {
                let (sent, layout) = self.context.sort(frame);
                self.context
                    .inject(fault, state, (sent, layout), &mut changed);
            }
            *frames = changed;
        }
        frames.append(&mut self.added);
    }
}

/// Remembers the link from which frames of a MAC address come, if there is room.
fn note_link(state: &mut State, link: usize, bytes: &[u8]) {
    if let Some(source) = bytes.get(6..).and_then(|rest| rest.first_chunk())
        && state.links.len() < MAX_WAITING
    {
        state.links.insert(*source, link);
    }
}

impl Context {
    /// Puts the Ethernet header of a frame among its octets, and determines what the frame is.
    fn sort(&self, mut frame: OutgoingFrame) -> (Sent, Option<Layout>) {
        let is_forwarded = frame.header.is_some();
        if let Some(header) = frame.header.take() {
            frame.octets.splice(0..0, header);
        }
        let parsed = parse(&frame.octets, &self.profile);
        let class = Class::of(&parsed);
        let layout = Layout::of(&parsed);
        // Data in a tunnel of this device is forwarded, too.
        let is_own = !self.is_switch || !is_forwarded && class != Class::Data;
        let sent = Sent {
            frame,
            class,
            is_own,
        };
        (sent, layout)
    }

    fn inject(
        &self,
        fault: &Fault,
        state: &mut State,
        (mut sent, layout): (Sent, Option<Layout>),
        out: &mut Vec<OutgoingFrame>,
    ) {
        // A sender is judged by its data.
        let wanted = if fault.is_of_data(self) {
            Class::Data
        } else {
            Class::Notification
        };
        let is_changed = sent.is_own && sent.class == wanted;
        match (fault.effect, layout) {
            (Effect::Sent(change), _) => return change(self, state, sent, out),
            (Effect::Octets(repair, change), Some(layout)) if is_changed => {
                let before = sent.frame.octets.clone();
                change(&mut sent.frame.octets, &layout);
                if repair {
                    edit::repair(&mut sent.frame.octets, &self.profile);
                }
                state.changed += u64::from(sent.frame.octets != before);
            }
            (Effect::Field, _) if is_changed => {
                let octets = &mut sent.frame.octets;
                let place = state.field.and_then(|(field, value)| {
                    Some((field, value, field.locate(&parse(octets, &self.profile))?))
                });
                if let Some((field, value, at)) = place {
                    let before = octets.clone();
                    field.write(octets, at, value);
                    if !field.is_checksum() {
                        edit::repair(octets, &self.profile);
                    }
                    state.changed += u64::from(*octets != before);
                }
            }
            _ => {}
        }
        out.push(sent.frame);
    }
}

impl Fault {
    /// Returns true if the device's own messages are a sender's data.
    const fn is_of_data(&self, context: &Context) -> bool {
        !context.flows.is_empty()
    }
}

/// Reads `NAME[=VALUE]`.
fn read(text: &str, role: Role) -> Result<(&'static Fault, State)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let bad = |why: String| Failure::usage("--fault").and(format!("`{text}`")).and(why);
    let fault = FAULTS.iter().find(|fault| fault.name == name);
    let fault = fault.ok_or_else(|| {
        bad(format!(
            "there is no such fault; fcn-gen emulate {} --fault list shows all",
            role.id()
        ))
    })?;
    if !fault.roles.contains(&role) {
        let roles: Vec<_> = fault.roles.iter().map(|role| role.id()).collect();
        return Err(bad(format!("a fault of {}", roles.join(", "))));
    }
    let mut state = State::default();
    match (fault.parameter, value) {
        (Parameter::None, None) => {}
        (Parameter::None, Some(_)) => return Err(bad("it takes no value".to_owned())),
        (Parameter::Time(default), value) => {
            let time = quantity::duration(value.unwrap_or(default)).map_err(bad)?;
            state.value = Ps::from(time).0;
        }
        (Parameter::Number(default), None) => state.value = default,
        (Parameter::Number(_), Some(value)) => state.value = quantity::count(value).map_err(bad)?,
        (Parameter::Field, None) => return Err(bad("name a field: field=bth.pkey:0".to_owned())),
        (Parameter::Field, Some(value)) => {
            let (name, value) = match value.split_once(':') {
                Some((name, value)) => (name, Some(value)),
                None => (value, None),
            };
            let field = NamedField::named(name).ok_or_else(|| {
                bad(format!(
                    "there is no field `{name}`; --fault list shows all"
                ))
            })?;
            let number = |value: &str| match value.strip_prefix("0x") {
                Some(digits) => u128::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            };
            let number = value.map(|value| {
                number(value)
                    .filter(|number| number.checked_shr(field.width()).unwrap_or(0) == 0)
                    .ok_or_else(|| {
                        bad(format!(
                            "`{value}` is not a number of {} bits",
                            field.width()
                        ))
                    })
            });
            state.field = Some((field, number.transpose()?));
        }
    }
    Ok((fault, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Play, Source, load};
    use fcn_wire::cnp::CnpRepr;
    use fcn_wire::emit::{self, Carrier};
    use fcn_wire::fast_cnp::FastCnpRepr;
    use fcn_wire::icrc::Verdict;
    use std::collections::BTreeSet;

    const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

    fn injector(role: Role, faults: &[&str]) -> Result<Injector> {
        let source = Source::Text {
            name: "link.toml".to_owned(),
            text: include_str!("../link.toml").to_owned(),
        };
        let Play::Simulation(mut simulation) = load(&source, &[]).unwrap().play else {
            panic!("not a simulation");
        };
        let node = role.node(&simulation, None)?;
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Injector::new(&faults, role, &mut simulation, node)
    }

    /// Returns a Fast CNP of the switch.
    fn fast_cnp() -> OutgoingFrame {
        let option = FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        };
        let cnp = CnpRepr::new(Qp::truncate(0x222));
        let carrier = Carrier::new(RECEIVER.into(), SENDER.into());
        let mut packet = [0; 128];
        let len = emit::fast_cnp(&carrier, &option, &cnp, &Profile::DEFAULT, &mut packet).unwrap();
        let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xDD];
        OutgoingFrame {
            link: 0,
            at: Ps(1_000),
            header: None,
            octets: [&ethernet, &packet[..len]].concat(),
            reaction: None,
        }
    }

    fn sent(injector: &mut Injector, frame: OutgoingFrame) -> Vec<OutgoingFrame> {
        let mut frames = vec![frame];
        injector.on_sent(&mut frames);
        frames
    }

    #[test]
    fn wrong_faults_are_explained() {
        for (role, fault, why) in [
            (Role::Receiver, "slow", "no such fault"),
            (Role::Receiver, "loss", "a fault of congestion-point"),
            (Role::Receiver, "psn=3", "takes no value"),
            (Role::Receiver, "late=soon", "soon"),
            (Role::Receiver, "one-in=0", "at least 1"),
            (Role::Receiver, "field", "name a field"),
            (Role::Receiver, "field=bth.colour", "no field `bth.colour`"),
            (Role::Receiver, "field=bth.pkey:0x10000", "16 bits"),
            (Role::Receiver, "field=bth.pkey:many", "16 bits"),
        ] {
            let error = injector(role, &[fault]).unwrap_err().to_string();
            assert!(error.contains(why), "{fault}: {error}");
        }
    }

    #[test]
    fn names_are_unique_and_listed() {
        let names: Vec<_> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for role in [Role::CongestionPoint, Role::Sender] {
            let listed = listing(role);
            for fault in FAULTS {
                let line = format!("\n  {} ", fault.usage());
                assert_eq!(
                    listed.contains(&line),
                    fault.roles.contains(&role),
                    "{line}"
                );
            }
        }
    }

    /// All at once, too: no combination fails.
    #[test]
    fn each_fault_of_octets_changes_a_fast_cnp() {
        let all = FAULTS.iter().filter(|fault| {
            matches!(fault.effect, Effect::Octets(..))
                && fault.roles.contains(&Role::CongestionPoint)
        });
        let all: Vec<&str> = all.map(|fault| fault.name).collect();
        for fault in &all {
            let mut injector = injector(Role::CongestionPoint, &[fault]).unwrap();
            let frames = sent(&mut injector, fast_cnp());
            // These change notifications to proxies.
            let is_changed = !["too-long", "quote-short"].contains(fault);
            assert_eq!(frames != [fast_cnp()], is_changed, "{fault}");
            assert_eq!(injector.report()[0].frames, Some(u64::from(is_changed)));
        }
        let mut injector = injector(Role::CongestionPoint, &all).unwrap();
        assert_eq!(sent(&mut injector, fast_cnp()).len(), 1);
        for len in 0..fast_cnp().octets.len() {
            let mut frame = fast_cnp();
            frame.octets.truncate(len);
            assert_eq!(sent(&mut injector, frame).len(), 1);
        }
    }

    #[test]
    fn a_changed_field_leaves_the_icrc_right() {
        for (fault, good) in [
            ("field=bth.pkey:0", true),
            ("field=ipv6.source:5", true),
            ("field=fast_cnp.original_destination", true),
            ("field=trailer.icrc:0", false),
        ] {
            let mut injector = injector(Role::CongestionPoint, &[fault]).unwrap();
            let frames = sent(&mut injector, fast_cnp());
            let verdict = parse(&frames[0].octets, &Profile::DEFAULT).verify_icrc();
            assert_eq!(matches!(verdict, Verdict::Good(_)), good, "{fault}");
            assert_ne!(frames, [fast_cnp()], "{fault}");
        }
    }

    #[test]
    fn notifications_are_late_or_left_out() {
        let late = &mut injector(Role::CongestionPoint, &["late=2ms"]).unwrap();
        assert_eq!(sent(late, fast_cnp())[0].at, Ps(2_000_001_000));
        let seldom = &mut injector(Role::CongestionPoint, &["one-in=3"]).unwrap();
        let left: Vec<_> = (0..6).map(|_| sent(seldom, fast_cnp()).len()).collect();
        assert_eq!(left, [0, 0, 1, 0, 0, 1]);
        let both = &mut injector(Role::CongestionPoint, &["twice", "late=2ms"]).unwrap();
        assert_eq!(sent(both, fast_cnp()).len(), 2);
        assert_eq!(both.report()[1].frames, Some(2));
        // A forwarded notification is not the device's own.
        let mut forwarded = fast_cnp();
        forwarded.header = forwarded.octets[..14].try_into().ok();
        forwarded.octets.drain(..14);
        assert_eq!(sent(seldom, forwarded.clone()).len(), 1);
        assert_eq!(sent(seldom, forwarded)[0].octets, fast_cnp().octets);
    }

    #[test]
    fn a_sender_hears_notifications_late() {
        let injector = &mut injector(Role::Sender, &["reacts-late=1ms"]).unwrap();
        let arp = [&[0xFF; 12][..], &[8, 6], &[0; 46]].concat();
        assert_eq!(injector.on_received(Ps(0), 0, &arp), [arp]);
        assert!(
            injector
                .on_received(Ps(5), 0, &fast_cnp().octets)
                .is_empty()
        );
        let due = Ps(1_000_000_005);
        assert_eq!(injector.next_timer(), Some(due));
        assert_eq!(injector.take_due(Ps(due.0 - 1)), None);
        assert_eq!(injector.take_due(due), Some((0, fast_cnp().octets)));
        assert_eq!(injector.next_timer(), None);
    }

    #[test]
    fn frames_beyond_those_kept_are_processed_at_once() {
        let injector = &mut injector(Role::Sender, &["reacts-late=1ms"]).unwrap();
        let frame = fast_cnp().octets;
        for _ in 0..MAX_WAITING {
            assert!(injector.on_received(Ps(0), 0, &frame).is_empty());
        }
        assert_eq!(injector.on_received(Ps(0), 0, &frame), [frame]);
    }
}
