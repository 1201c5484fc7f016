//! Checks of our own roles in virtual time, correct and with one fault each.

use super::bench::{Bench, Record, parse};
use super::command::prepared;
use super::judge::{Grade, Outcome, Verdict, untested_core};
use super::notification;
use super::plan::{Plan, Setup, UNTRUSTED_SOURCE, emit_packet};
use super::roles::{judge, plan};
use super::statements::{Test, tests};
use crate::device::fault::{InjectedFault, Injector};
use crate::device::{Enabled, Faulty, LinkNode, Role};
use crate::gallery::Selection;
use crate::scenario::model::{Host, Node, NodeId, NodeKind, Simulation, Switch};
use crate::scenario::{Play, Source, load};
use crate::sim::frames;
use crate::sim::live::LiveNode;
use crate::units::{Ps, Rate};
use clap::ValueEnum;
use fcn_node::congestion_point::Marking;
use fcn_node::reaction_point::Control;
use fcn_observe::{DataPacket, FlowKey};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc;
use fcn_wire::proxy_cn::ProxyCnRepr;
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{LinkType, Message, Opcode, Profile, Qp, Rule, ip};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

/// All features enabled.
const ALL: Enabled = Enabled {
    fast_cnp: true,
    proxy: true,
    wan_fcn: true,
};

/// A network and the device in it.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) role: Role,
    config: &'static str,
    node: Option<&'static str>,
    sets: &'static [&'static str],
}

fn network(case: &Case) -> (Simulation, NodeId) {
    let sets: Vec<String> = case.sets.iter().map(ToString::to_string).collect();
    let source = match case.config {
        "link" => Source::Text {
            name: "link.toml".to_owned(),
            text: include_str!("../device/link.toml").to_owned(),
        },
        name => Source::Builtin(name.to_owned()),
    };
    let Play::Simulation(simulation) = load(&source, &sets).unwrap().play else {
        panic!("{} is not a simulation", case.config);
    };
    let device = case.role.node(&simulation, case.node).unwrap();
    (*simulation, device)
}

/// Changes a frame into none, one or several frames.
type Alter = Box<dyn Fn(&[u8]) -> Vec<Vec<u8>>>;
/// Selects frames.
type Select = fn(&[u8]) -> bool;
/// Changes the device's configuration.
type Configure = Box<dyn Fn(&mut Simulation, NodeId)>;
/// A frame of the device in transit: its time of arrival, its sequence number, its link.
type InTransit = Reverse<(Ps, u64, usize, Vec<u8>)>;

/// Faults of the device, relative to ours: in its configuration, in each frame sent, in the choice
/// between its two links, in the time of sending, and in each frame received.
struct Broken {
    configured: Configure,
    sends: Alter,
    astray: Select,
    late: Option<(Ps, Select)>,
    hears: Alter,
}

fn as_it_is() -> Alter {
    Box::new(|bytes| vec![bytes.to_vec()])
}

/// A device without faults.
fn sound() -> Broken {
    Broken {
        configured: Box::new(|_, _| ()),
        sends: as_it_is(),
        astray: |_| false,
        late: None,
        hears: as_it_is(),
    }
}

fn configured(change: impl Fn(&mut Node) + 'static) -> Broken {
    Broken {
        configured: Box::new(move |simulation, device| change(&mut simulation.nodes[device])),
        ..sound()
    }
}

fn switched(change: impl Fn(&mut Switch) + 'static) -> Broken {
    configured(move |node| match &mut node.kind {
        NodeKind::Switch(switch) => change(switch),
        NodeKind::Host(_) => panic!("{} is a host", node.name),
    })
}

fn hosted(change: impl Fn(&mut Host) + 'static) -> Broken {
    configured(move |node| match &mut node.kind {
        NodeKind::Host(host) => change(host),
        NodeKind::Switch(_) => panic!("{} is a switch", node.name),
    })
}

fn sends(change: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Broken {
    Broken {
        sends: Box::new(move |bytes| vec![change(bytes)]),
        ..sound()
    }
}

fn hears(change: impl Fn(&[u8]) -> Vec<Vec<u8>> + 'static) -> Broken {
    Broken {
        hears: Box::new(change),
        ..sound()
    }
}

/// Plays a plan against a device in virtual time; also returns the faults injected.
fn play<'s>(
    (simulation, device): (&'s Simulation, NodeId),
    (own, injector): (&Simulation, Option<Injector>),
    plan: Plan,
    broken: &Broken,
) -> (Plan, Record, Vec<InjectedFault>) {
    let links = LiveNode::links(own, device).count();
    let mut live = Faulty {
        node: LiveNode::new(own, device, vec![frames::mac(device); links], None),
        injector,
    };
    let macs = vec![[2, 0, 0, 0, 0, 9]; links];
    let mut bench: Bench<'s> = Bench::new(simulation, device, &macs, None, plan);
    let mut now = Ps(0);
    let mut cables: BinaryHeap<InTransit> = BinaryHeap::new();
    let mut number = 0;
    while !bench.is_over(now) {
        let arrival = cables.peek().map(|next| next.0.0);
        let timers = [live.next_timer(), bench.next_timer(), arrival];
        let Some(next) = timers.into_iter().flatten().min() else {
            break;
        };
        now = next.max(now);
        if bench.is_over(now) {
            break;
        }
        while cables.peek().is_some_and(|next| next.0.0 <= now) {
            let Some(Reverse((_, _, link, bytes))) = cables.pop() else {
                break;
            };
            bench.on_frame(now, now, link, &bytes);
        }
        bench.on_timer(now);
        let outgoing: Vec<_> = bench.take_outgoing().collect();
        for (link, bytes) in outgoing {
            bench.on_sent(now, link, &bytes);
            for bytes in (broken.hears)(&bytes) {
                live.on_frame(now, link, &bytes);
            }
        }
        live.on_timer(now);
        assert_eq!(live.failure(), None);
        assert_eq!(bench.failure(), None);
        let mut leaving = Vec::new();
        live.take_outgoing(&mut leaving);
        for frame in leaving {
            let bytes = <[&[u8]; 2]>::from(frame.parts()).concat();
            for bytes in (broken.sends)(&bytes) {
                number += 1;
                let link = frame.link ^ usize::from((broken.astray)(&bytes));
                let late = broken.late.filter(|(_, is_late)| is_late(&bytes));
                let at = frame.at + late.map_or(Ps(0), |(by, _)| by);
                cables.push(Reverse((at, number, link, bytes)));
            }
        }
    }
    let faults = live
        .injector
        .as_ref()
        .map_or_else(Vec::new, Injector::report);
    let (plan, record) = bench.end(now);
    (plan, record, faults)
}

/// Runs a check of a device with these faults; also returns what they have done.
pub(super) fn checked_with_faults(
    case: &Case,
    off: bool,
    faults: &[String],
) -> (Vec<Outcome>, Vec<InjectedFault>) {
    run(case, off, &sound(), None, Ps(0), faults)
}

fn checked(case: &Case, off: bool, broken: &Broken) -> Vec<Outcome> {
    checked_only(case, off, broken, None)
}

/// Runs a check with only that test.
fn checked_only(case: &Case, off: bool, broken: &Broken, only: Option<Test>) -> Vec<Outcome> {
    checked_late(case, off, broken, only, Ps(0))
}

/// Runs a check in which links are read this long after they were empty.
fn checked_late(
    case: &Case,
    off: bool,
    broken: &Broken,
    only: Option<Test>,
    late: Ps,
) -> Vec<Outcome> {
    run(case, off, broken, only, late, &[]).0
}

fn run(
    case: &Case,
    off: bool,
    broken: &Broken,
    only: Option<Test>,
    late: Ps,
    faults: &[String],
) -> (Vec<Outcome>, Vec<InjectedFault>) {
    let (simulation, device) = network(case);
    let mut own = simulation.clone();
    let simulation = prepared(
        &simulation,
        device,
        case.role,
        fcn_observe::rules::FLOW_RATE,
    );
    let enabled = if off { Enabled::default() } else { ALL };
    enabled.restrict(&mut own.nodes[device]);
    own.duration = simulation.duration;
    for flow in &mut own.flows {
        (flow.stop, flow.messages) = (simulation.duration, None);
    }
    (broken.configured)(&mut own, device);
    let injector =
        (!faults.is_empty()).then(|| Injector::new(faults, case.role, &mut own, device).unwrap());
    let mut setup = Setup::new(&simulation, device, case.role, off);
    setup
        .wanted
        .retain(|test| only.is_none_or(|only| *test == only));
    let plan = plan(&setup).unwrap();
    let (plan, mut record, faults) = play((&simulation, device), (&own, injector), plan, broken);
    assert_eq!(record.unrecorded, 0);
    for frame in &mut record.frames {
        frame.since.0 = frame.since.0.saturating_sub(late.0);
    }
    (judge(&setup, &plan, &record).outcomes, faults)
}

pub(super) fn ids(outcomes: &[Outcome], grade: Grade) -> Vec<&'static str> {
    let those = outcomes.iter().filter(|outcome| outcome.grade == grade);
    those.map(|outcome| outcome.test.id()).collect()
}

pub(super) fn describe(outcomes: &[Outcome]) -> String {
    let others = outcomes.iter().filter(|o| o.grade != Grade::Passed);
    let lines = others.map(|outcome| {
        format!(
            "{:?} {} {} {:?}\n",
            outcome.grade,
            outcome.test.id(),
            outcome.why,
            outcome.frames
        )
    });
    lines.collect()
}

const fn case(
    role: Role,
    config: &'static str,
    node: Option<&'static str>,
    sets: &'static [&'static str],
) -> Case {
    Case {
        role,
        config,
        node,
        sets,
    }
}

pub(super) const SWITCH: Case = case(Role::CongestionPoint, "link", None, &[]);
pub(super) const RECEIVER: Case = case(Role::Receiver, "link", None, &[]);
pub(super) const SENDER: Case = case(Role::Sender, "link", None, &["flows=4"]);

pub(super) const TRACES: Case = case(
    Role::CongestionPoint,
    "link",
    None,
    &["mechanism=fast-cnp-ioam"],
);
pub(super) const FOR_PROXY: Case = case(Role::CongestionPoint, "proxy", Some("leaf2"), &[]);
pub(super) const BORDER: Case = case(Role::CongestionPoint, "border", Some("border"), &[]);
const BORDER_PROXY: Case = case(
    Role::CongestionPoint,
    "border",
    Some("border"),
    &["mechanism=proxy"],
);
const BORDER_WAN: Case = case(
    Role::CongestionPoint,
    "border",
    Some("border"),
    &["edge=srv6", "mechanism=wan-fcn"],
);
pub(super) const VXLAN: Case = case(
    Role::CongestionPoint,
    "border",
    Some("border"),
    &["edge=vxlan", "mechanism=wan-fcn"],
);
const SR_MPLS: Case = case(
    Role::CongestionPoint,
    "border",
    Some("border"),
    &["edge=sr-mpls", "mechanism=wan-fcn"],
);
pub(super) const TRACING_SENDER: Case = case(
    Role::Sender,
    "link",
    None,
    &["mechanism=fast-cnp-ioam", "flows=4"],
);
const NAMING_SENDER: Case = case(
    Role::Sender,
    "proxy",
    Some("s1"),
    &["known_by=option", "flow.load.count=2"],
);
pub(super) const IPV4_SWITCH: Case = case(
    Role::CongestionPoint,
    "proxy",
    Some("leaf2"),
    &["known_by=ospfv2", "ip=4"],
);
pub(super) const IN_WAN: Case = case(Role::CongestionPoint, "wan-fcn", Some("p1"), &[]);
pub(super) const FAST_RECEIVER: Case = case(Role::Receiver, "receiver-fast-cnp", None, &[]);
pub(super) const PROXY: Case = case(Role::Proxy, "proxy", None, &[]);
pub(super) const INGRESS: Case = case(Role::IngressPe, "wan-fcn", Some("pe1"), &[]);
/// All cases.
const CASES: [Case; 17] = [
    SWITCH,
    TRACES,
    BORDER,
    BORDER_PROXY,
    BORDER_WAN,
    VXLAN,
    SR_MPLS,
    FOR_PROXY,
    IPV4_SWITCH,
    IN_WAN,
    TRACING_SENDER,
    NAMING_SENDER,
    RECEIVER,
    FAST_RECEIVER,
    SENDER,
    PROXY,
    INGRESS,
];

#[test]
fn translator_is_not_blamed_for_frames_read_late() {
    // With one flow, a CNP alone does not show which notification it answers.
    for case in [
        case(Role::Proxy, "proxy", None, &["host.s.count=1"]),
        case(Role::IngressPe, "wan-fcn", Some("pe1"), &["senders=1"]),
    ] {
        let late = Ps::from_nanos(2_000_000);
        let outcomes = checked_late(&case, false, &sound(), None, late);
        assert_eq!(
            ids(&outcomes, Grade::Failed),
            [""; 0],
            "{}",
            describe(&outcomes)
        );
    }
}

/// Also checks that every test of the list applies to one of the cases.
#[test]
fn own_roles_pass_all_tests() {
    let mut passed = BTreeSet::new();
    for case in CASES {
        for off in [false, true] {
            let outcomes = checked(&case, off, &sound());
            let what = format!(
                "{:?} {} {:?} off {off}:\n{}",
                case.role,
                case.config,
                case.sets,
                describe(&outcomes)
            );
            assert!(off || !outcomes.is_empty(), "{what}");
            assert!(
                outcomes
                    .iter()
                    .all(|outcome| outcome.grade == Grade::Passed),
                "{what}"
            );
            passed.extend(
                outcomes
                    .iter()
                    .map(|outcome| (case.role.id(), outcome.test)),
            );
        }
    }
    let all = tests(Role::value_variants()).map(|(role, test)| (role.id(), test));
    let never: Vec<_> = all.filter(|test| !passed.contains(test)).collect();
    assert_eq!(never, [], "{never:#?}");
}

/// The traffic that a test needs is also sent if it is the only test.
#[test]
fn each_test_can_run_alone() {
    for case in [
        TRACES,
        BORDER,
        BORDER_PROXY,
        BORDER_WAN,
        RECEIVER,
        SENDER,
        PROXY,
        INGRESS,
    ] {
        let (simulation, device) = network(&case);
        let setup = Setup::new(&simulation, device, case.role, false);
        // These share a step.
        let alike = &notification::STATEMENTS[1..];
        let is_step = |test: &&Test| match test {
            Test::Statement(statement) => !alike.contains(statement),
            Test::Rule(rule) => Rule::MULTI_PACKET.contains(rule),
        };
        let tests = setup.wanted.iter().filter(is_step);
        for test in tests.filter(|test| setup.applies(**test)) {
            let outcomes = checked_only(&case, false, &sound(), Some(*test));
            let what = format!("{:?} {}", case.sets, describe(&outcomes));
            assert_eq!(ids(&outcomes, Grade::Passed), [test.id()], "{what}");
        }
    }
}

/// Returns the frame with its Fast CNP rewritten, if it is one.
fn fast_cnp(
    bytes: &[u8],
    change: impl Fn(&mut Carrier, &mut FastCnpRepr<'_>, &mut CnpRepr),
) -> Vec<u8> {
    let frame = parse(bytes, &Profile::DEFAULT);
    let (Message::FastCnp(message), Some(ip)) = (frame.message(), frame.ip()) else {
        return bytes.to_vec();
    };
    let (Ok(mut option), Some(cnp)) = (message.parsed, message.cnp) else {
        return bytes.to_vec();
    };
    let (mut carrier, mut cnp) = (
        Carrier::new(ip.source, ip.destination),
        CnpRepr::parse(&cnp),
    );
    change(&mut carrier, &mut option, &mut cnp);
    let packet = emit_packet(|out| emit::fast_cnp(&carrier, &option, &cnp, &Profile::DEFAULT, out));
    [&bytes[..14], &packet].concat()
}

/// Returns the frame with its plain CNP rewritten, if it is one.
fn cnp(bytes: &[u8], change: impl Fn(&mut Carrier, &mut CnpRepr)) -> Vec<u8> {
    let frame = parse(bytes, &Profile::DEFAULT);
    let (Message::Cnp(cnp), Some(ip)) = (frame.message(), frame.ip()) else {
        return bytes.to_vec();
    };
    let (mut carrier, mut cnp) = (
        Carrier::new(ip.source, ip.destination),
        CnpRepr::parse(&cnp),
    );
    change(&mut carrier, &mut cnp);
    let packet = emit_packet(|out| emit::cnp(&carrier, &cnp, &Profile::DEFAULT, out));
    [&bytes[..14], &packet].concat()
}

/// Returns the frame with its notification to a proxy rewritten, if it is one.
fn proxy_cn(bytes: &[u8], change: impl Fn(&mut Carrier, &mut ProxyCnRepr<'_>)) -> Vec<u8> {
    let frame = parse(bytes, &Profile::DEFAULT);
    let (Message::ProxyCn(message), Some(ip)) = (frame.message(), frame.ip()) else {
        return bytes.to_vec();
    };
    let (mut carrier, mut message) = (
        Carrier::new(ip.source, ip.destination),
        ProxyCnRepr::parse(&message),
    );
    change(&mut carrier, &mut message);
    let packet = emit_packet(|out| emit::proxy_cn(&carrier, &message, &Profile::DEFAULT, out));
    [&bytes[..14], &packet].concat()
}

/// Returns the frame with its FCN rewritten, if it is one.
fn wan_fcn(bytes: &[u8], change: impl Fn(&mut Carrier, &mut WanFcnRepr)) -> Vec<u8> {
    let frame = parse(bytes, &Profile::DEFAULT);
    let (Message::WanFcn(message), Some(ip)) = (frame.message(), frame.ip()) else {
        return bytes.to_vec();
    };
    let mut message = WanFcnRepr {
        flow_label: message.flow_label(),
        level: message.level(),
        reserved: message.reserved(),
    };
    let mut carrier = Carrier::new(ip.source, ip.destination);
    change(&mut carrier, &mut message);
    let packet = emit_packet(|out| emit::wan_fcn(&carrier, &message, &Profile::DEFAULT, out));
    [&bytes[..14], &packet].concat()
}

/// Octets of a node in the traces of a check.
const TRACE_NODE: usize = 12;

/// Recomputes the ICRC of a Fast CNP.
fn repair_icrc(bytes: &mut [u8]) {
    let udp = parse(bytes, &Profile::DEFAULT).datagram().unwrap().start;
    let len = bytes.len();
    let icrc = icrc::compute(&bytes[14..len - 4], udp - 14, icrc::Reading::default());
    bytes[len - 4..].copy_from_slice(&icrc.unwrap().to_le_bytes());
}

/// Changes each Fast CNP, and recomputes its ICRC.
fn spoils(change: impl Fn(&mut Vec<u8>) + 'static) -> Broken {
    sends(move |bytes| {
        let mut bytes = bytes.to_vec();
        if is_fast_cnp(&bytes) {
            change(&mut bytes);
            repair_icrc(&mut bytes);
        }
        bytes
    })
}

/// Offsets in a Fast CNP: IPv6 and UDP headers, BTH.
const IPV6_AT: usize = 14;
const UDP_AT: usize = IPV6_AT + 40 + 24;
const BTH_AT: usize = UDP_AT + 8;

/// Faults of a notification as a packet, and the tests that find them.
fn frame_faults() -> Vec<(&'static str, Broken, &'static str)> {
    let inserted = |kind: u8, header: &'static [u8]| {
        spoils(move |bytes| {
            let next = std::mem::replace(&mut bytes[IPV6_AT + 6], kind);
            let len = u16::from_be_bytes([bytes[IPV6_AT + 4], bytes[IPV6_AT + 5]]);
            let len = (len + header.len() as u16).to_be_bytes();
            bytes[IPV6_AT + 4..IPV6_AT + 6].copy_from_slice(&len);
            let at = IPV6_AT + 40;
            bytes.splice(at..at, header.iter().copied());
            bytes[at] = next;
        })
    };
    vec![
        (
            "a wrong UDP checksum",
            spoils(|bytes| bytes[UDP_AT + 6..UDP_AT + 8].copy_from_slice(&[0xBA, 0xD0])),
            "notification.udp_checksum",
        ),
        (
            "hop limit 0",
            spoils(|bytes| bytes[IPV6_AT + 7] = 0),
            "notification.hop_limit",
        ),
        (
            "hop limit 1",
            spoils(|bytes| bytes[IPV6_AT + 7] = 1),
            "notification.hop_limit",
        ),
        (
            "marked CE",
            spoils(|bytes| ip::set_traffic_class(&mut bytes[IPV6_AT..], 3, 3)),
            "notification.ecn",
        ),
        (
            "P_Key 0",
            spoils(|bytes| bytes[BTH_AT + 2..BTH_AT + 4].fill(0)),
            "notification.p_key",
        ),
        (
            "reserved bits after BECN",
            spoils(|bytes| bytes[BTH_AT + 4] |= 1),
            "notification.bth_reserved",
        ),
        (
            "reserved bits before the PSN",
            spoils(|bytes| bytes[BTH_AT + 8] |= 0x40),
            "notification.bth_reserved",
        ),
        (
            "to every station",
            spoils(|bytes| bytes[..6].fill(0xFF)),
            "notification.mac",
        ),
        (
            "a Routing header",
            inserted(43, &[0, 0, 4, 0, 0, 0, 0, 0]),
            "notification.headers",
        ),
        (
            "a Fragment header",
            inserted(44, &[0, 0, 0, 0, 0, 0, 0, 1]),
            "notification.headers",
        ),
        (
            "another option",
            spoils(|bytes| {
                // In place of the padding of four octets.
                bytes[UDP_AT - 4] = 0x1E;
            }),
            "notification.headers",
        ),
    ]
}

/// Drops, repeats or changes frames by their number.
fn counts(change: impl Fn(usize, &[u8]) -> Vec<Vec<u8>> + 'static) -> Broken {
    let number = Cell::new(0);
    Broken {
        sends: Box::new(move |bytes| {
            number.set(number.get() + 1);
            change(number.get(), bytes)
        }),
        ..sound()
    }
}

fn flow_of(bytes: &[u8]) -> Option<FlowKey> {
    let data = DataPacket::from_frame(&parse(bytes, &Profile::DEFAULT))?;
    Some(data.flow())
}

fn is_data(bytes: &[u8]) -> bool {
    flow_of(bytes).is_some()
}

#[test]
fn device_that_spoils_data_is_detected() {
    for case in [SWITCH, PROXY, INGRESS] {
        let dropping = counts(|number, bytes| match is_data(bytes) && number % 5 == 0 {
            true => vec![],
            false => vec![bytes.to_vec()],
        });
        fails(case, false, "loses data", &dropping, &["forwarded.all"]);
        let doubling = counts(|number, bytes| match is_data(bytes) && number % 9 == 0 {
            true => vec![bytes.to_vec(), bytes.to_vec()],
            false => vec![bytes.to_vec()],
        });
        fails(case, false, "repeats data", &doubling, &["forwarded.once"]);
        let kept: RefCell<Option<(FlowKey, Vec<u8>)>> = RefCell::new(None);
        let known = RefCell::new(BTreeSet::new());
        let swapping = counts(move |number, bytes| {
            let Some(flow) = flow_of(bytes) else {
                return vec![bytes.to_vec()];
            };
            let mut kept = kept.borrow_mut();
            match kept.take() {
                Some((of, before)) if of == flow => vec![bytes.to_vec(), before],
                None if number % 7 == 0 && !known.borrow_mut().insert(flow) => {
                    *kept = Some((flow, bytes.to_vec()));
                    vec![]
                }
                other => {
                    *kept = other;
                    vec![bytes.to_vec()]
                }
            }
        });
        fails(
            case,
            false,
            "reorders data",
            &swapping,
            &["forwarded.order"],
        );
    }
    let erasing = sends(|bytes| {
        let mut bytes = bytes.to_vec();
        if is_data(&bytes) {
            ip::set_traffic_class(&mut bytes[14..], 0, 3);
        }
        bytes
    });
    fails(SWITCH, false, "erases ECN", &erasing, &["forwarded.ecn"]);
    fails(IN_WAN, false, "erases ECN", &erasing, &["forwarded.ecn"]);
}

/// Delays the frames that `is_late` selects, by `by`.
fn late(by: Ps, is_late: Select) -> Broken {
    Broken {
        late: Some((by, is_late)),
        ..sound()
    }
}

#[test]
fn congestion_point_is_judged_by_time_and_amount() {
    for (by, test) in [(1, "congestion.latency"), (1_000, "fastcnp.sent")] {
        let late = late(Ps::from_nanos(by * 1_000_000), is_fast_cnp);
        fails(SWITCH, false, "late", &late, &[test]);
    }
    let in_time = late(Ps::from_nanos(400_000), is_fast_cnp);
    fails(SWITCH, false, "almost late", &in_time, &[]);
    let rare = counts(
        |number, bytes| match is_fast_cnp(bytes) && number % 97 != 0 {
            true => vec![],
            false => vec![bytes.to_vec()],
        },
    );
    let tests = ["congestion.share", "congestion.again"];
    fails(SWITCH, false, "one in 97", &rare, &tests);
    let twice = counts(|_, bytes| match is_fast_cnp(bytes) {
        true => vec![bytes.to_vec(), bytes.to_vec()],
        false => vec![bytes.to_vec()],
    });
    let tests = ["congestion.once", "fastcnp.rate.exceeded"];
    fails(SWITCH, false, "twice", &twice, &tests);
    // It takes an acknowledgement for data.
    let eager = hears(|bytes| {
        let mut bytes = bytes.to_vec();
        let frame = parse(&bytes, &Profile::DEFAULT);
        let bth = frame.datagram().map(fcn_wire::frame::Datagram::payload_at);
        let opcode = bth.and_then(|at| bytes.get_mut(at));
        if let Some(opcode) = opcode.filter(|opcode| **opcode == Opcode::RC_ACKNOWLEDGE.0) {
            *opcode = Opcode::RC_SEND_ONLY.0;
            repair_icrc(&mut bytes);
        }
        vec![bytes]
    });
    fails(SWITCH, false, "eager", &eager, &["congestion.data_alone"]);
    let early = switched(|switch| {
        for port in switch.ports.values_mut() {
            port.marking = Marking {
                kmin: 0,
                kmax: 1,
                pmax: 1.0,
            };
        }
    });
    fails(SWITCH, false, "early", &early, &["congestion.queue"]);
}

fn is_cnp(bytes: &[u8]) -> bool {
    matches!(parse(bytes, &Profile::DEFAULT).message(), Message::Cnp(_))
}

#[test]
fn receiver_is_judged_by_time_and_amount() {
    let late = late(Ps::from_nanos(1_000_000), is_cnp);
    fails(RECEIVER, false, "late", &late, &["cnp.latency"]);
    let rare = counts(|number, bytes| match is_cnp(bytes) && number % 97 != 0 {
        true => vec![],
        false => vec![bytes.to_vec()],
    });
    fails(RECEIVER, false, "one in 97", &rare, &["cnp.share"]);
    let (simulation, device) = network(&RECEIVER);
    let first = simulation.flows.iter().find(|flow| flow.to == device);
    let first = first.unwrap().sender_qp;
    let deaf = counts(
        move |_, bytes| match parse(bytes, &Profile::DEFAULT).message() {
            Message::Cnp(cnp) if cnp.bth().dest_qp() == first => vec![],
            _ => vec![bytes.to_vec()],
        },
    );
    fails(RECEIVER, false, "one flow alone", &deaf, &["cnp.each_flow"]);
}

/// A device with QPs, communication IDs and PSNs of its own, not the scenario's.
fn with_own_numbers(simulation: &mut Simulation, device: NodeId) {
    for flow in &mut simulation.flows {
        let qp = match flow.from == device {
            true => &mut flow.sender_qp,
            false => &mut flow.receiver_qp,
        };
        *qp = Qp::truncate(qp.get() ^ 0x55_5500);
        if flow.from == device {
            flow.first_psn ^= 0x7777;
        }
    }
}

#[test]
fn device_with_own_numbers_passes() {
    for case in [SENDER, RECEIVER, FAST_RECEIVER] {
        let own = Broken {
            configured: Box::new(with_own_numbers),
            ..sound()
        };
        let outcomes = checked(&case, false, &own);
        let others = outcomes.iter().filter(|o| o.grade != Grade::Passed);
        assert_eq!(others.count(), 0, "{}", describe(&outcomes));
    }
}

/// Steps in which this machine was late by about the time that is judged show no fault.
#[test]
fn device_is_not_blamed_for_a_late_machine() {
    let late = late(Ps::from_nanos(1_000_000), is_fast_cnp);
    let (simulation, device) = network(&SWITCH);
    let simulation = prepared(&simulation, device, SWITCH.role, 20_000);
    let mut own = simulation.clone();
    ALL.restrict(&mut own.nodes[device]);
    let setup = Setup::new(&simulation, device, SWITCH.role, false);
    let plan = plan(&setup).unwrap();
    let (mut plan, record, _) = play((&simulation, device), (&own, None), plan, &late);
    for step in &mut plan.steps {
        step.late = Ps::from_nanos(300_000);
    }
    let outcomes = judge(&setup, &plan, &record).outcomes;
    assert_eq!(
        ids(&outcomes, Grade::Failed),
        [""; 0],
        "{}",
        describe(&outcomes)
    );
    let mut latency = outcomes.iter();
    let latency = latency.find(|outcome| outcome.test.id() == "congestion.latency");
    let why = &latency.unwrap().why;
    assert!(why.starts_with("this machine was late: in step"), "{why}");
}

/// Proxy notifications are cut at the longest packet that their draft permits, however long the
/// data are.
#[test]
fn long_quote_is_detected() {
    let whole = sends(|bytes| {
        let frame = parse(bytes, &Profile::DEFAULT);
        let (Message::ProxyCn(message), Some(ip)) = (frame.message(), frame.ip()) else {
            return bytes.to_vec();
        };
        let mut quoted = message.invoking_packet().to_vec();
        // The data's payload repeats one octet.
        quoted.resize(quoted.len() + 60, 0x5A);
        let message = ProxyCnRepr::parse(&message);
        let parts = [
            Carrier::new(ip.source, ip.destination).ip().unwrap(),
            Part::udp_summed(50_000, Profile::DEFAULT.proxy_cn_port),
            Part::ProxyCn(ProxyCnRepr {
                invoking: &quoted,
                ..message
            }),
        ];
        let packet = compose::packet(&parts, &Profile::DEFAULT).unwrap();
        [&bytes[..14], &packet].concat()
    });
    fails(
        FOR_PROXY,
        false,
        "quotes too much",
        &whole,
        &["proxycn.length.excess"],
    );
}

fn is_fast_cnp(bytes: &[u8]) -> bool {
    matches!(
        parse(bytes, &Profile::DEFAULT).message(),
        Message::FastCnp(_)
    )
}

/// Behaviour that a correct device does not show is reported as not tested, with a reason.
#[test]
fn unobservable_behaviour_is_not_failed() {
    let own = |sets| case(Role::CongestionPoint, "link", None, sets);
    for (case, test, why) in [
        (own(&["ip=4"]), "fastcnp.sent", "does not support IPv4"),
        (
            own(&["mechanism=proxy"]),
            "proxycn.sent",
            "is itself a proxy",
        ),
    ] {
        let outcomes = checked(&case, false, &sound());
        let what = describe(&outcomes);
        assert_eq!(ids(&outcomes, Grade::Failed), [""; 0], "{what}");
        let outcome = outcomes.iter().find(|outcome| outcome.test.id() == test);
        assert!(outcome.unwrap().why.contains(why), "{what}");
    }
}

/// A bridge says nothing and changes nothing; as its links are fast enough, that is no failure.
#[test]
fn bridge_is_inconclusive() {
    let bridge = Broken {
        configured: Box::new(|simulation, device| {
            for link in &mut simulation.links {
                link.rate = Rate::new(100_000_000_000).unwrap();
            }
            let NodeKind::Switch(switch) = &mut simulation.nodes[device].kind else {
                panic!()
            };
            switch.congestion.fast_cnp = false;
        }),
        ..sends(|bytes| {
            let mut bytes = bytes.to_vec();
            ip::set_hop_limit(&mut bytes[14..], compose::DEFAULT_HOP_LIMIT);
            bytes
        })
    };
    let outcomes = checked(&SWITCH, false, &bridge);
    let what = describe(&outcomes);
    assert_eq!(Verdict::new(&outcomes), Verdict::Inconclusive, "{what}");
    let why = &untested_core(&outcomes).unwrap().why;
    assert!(
        why.contains("notified nobody") && why.contains("like a bridge"),
        "{why}"
    );
}

/// A receiver without CNPs did not answer; one with unusable CNPs did.
#[test]
fn answering_receiver_is_not_reported_silent() {
    let spoilt = sends(|bytes| {
        let mut bytes = bytes.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    });
    let silent = hears(|_| Vec::new());
    for (broken, why) in [(spoilt, "not set up"), (silent, "did not answer")] {
        let outcomes = checked(&RECEIVER, false, &broken);
        let sent = outcomes.iter().find(|o| o.test.id() == "cnp.sent").unwrap();
        assert!(sent.why.contains(why), "{}", describe(&outcomes));
    }
}

/// One or two packets before a message are not enough for a rate.
#[test]
fn flow_with_few_packets_is_not_judged() {
    let slow = case(
        Role::Sender,
        "link",
        None,
        &["flows=4", "host.sender.rate=10M"],
    );
    let outcomes = checked(&slow, false, &sound());
    let what = describe(&outcomes);
    assert_eq!(ids(&outcomes, Grade::Failed), [""; 0], "{what}");
    for test in ["fastcnp.obeyed", "fastcnp.access_list", "cnp.obeyed"] {
        let outcome = outcomes.iter().find(|outcome| outcome.test.id() == test);
        assert!(outcome.unwrap().why.contains("too little"), "{what}");
    }
}

#[test]
fn reasons_match_the_record() {
    let outcome = |broken: &Broken, test: &str| {
        let outcomes = checked(&TRACES, false, broken);
        let found = outcomes
            .into_iter()
            .find(|outcome| outcome.test.id() == test);
        found.unwrap()
    };
    // About QPs that no flow has.
    let elsewhere = sends(|bytes| fast_cnp(bytes, |_, _, cnp| cnp.bth.dest_qp = Qp::truncate(5)));
    for test in ["fastcnp.trace.copied", "fastcnp.ce.also_marked"] {
        let outcome = outcome(&elsewhere, test);
        assert!(
            outcome.why.contains("identifies its data packet"),
            "{test}: {}",
            outcome.why
        );
    }
    // With an option type that is not configured.
    let other_type = sends(|bytes| {
        let mut bytes = bytes.to_vec();
        let is_ours = is_fast_cnp(&bytes);
        if let Some(at) = bytes
            .iter()
            .position(|octet| is_ours && [0x9E, 0x9F].contains(octet))
        {
            bytes[at] = 0xDE;
        }
        bytes
    });
    let sent = outcome(&other_type, "fastcnp.sent");
    assert_eq!(sent.grade, Grade::Failed);
    assert!(sent.why.contains("is of this kind"), "{}", sent.why);
    let many = switched(|switch| switch.congestion.limits.interval = Duration::ZERO);
    assert!(outcome(&many, "fastcnp.rate.exceeded").times > 1);
}

const fn next(qp: Qp) -> Qp {
    Qp::truncate(qp.get() + 1)
}

/// Checks that a device with that fault fails exactly these tests.
fn fails(case: Case, off: bool, fault: &str, broken: &Broken, expected: &[&str]) {
    let outcomes = checked(&case, off, broken);
    let found: BTreeSet<_> = ids(&outcomes, Grade::Failed).into_iter().collect();
    let expected: BTreeSet<_> = expected.iter().copied().collect();
    assert_eq!(found, expected, "{fault}:\n{}", describe(&outcomes));
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.grade == Grade::Failed)
    {
        assert!(!outcome.why.is_empty(), "{fault}: {}", outcome.test.id());
    }
}

#[test]
fn broken_congestion_point_is_detected() {
    let no_limit = || switched(|switch| switch.congestion.limits.interval = Duration::ZERO);
    let fast = |change: fn(&mut Carrier, &mut FastCnpRepr<'_>, &mut CnpRepr)| {
        sends(move |bytes| fast_cnp(bytes, change))
    };
    fails(
        SWITCH,
        false,
        "marks what caused a Fast CNP",
        &switched(|switch| {
            switch.congestion.senders.clear();
        }),
        &["fastcnp.ce.also_marked"],
    );
    fails(
        SWITCH,
        false,
        "no limit",
        &no_limit(),
        &["fastcnp.rate.exceeded"],
    );
    fails(
        SWITCH,
        false,
        "says nothing",
        &switched(|switch| switch.congestion.fast_cnp = false),
        &["fastcnp.sent"],
    );
    fails(
        SWITCH,
        false,
        "another QP",
        &fast(|_, _, cnp| cnp.bth.dest_qp = next(cnp.bth.dest_qp)),
        &["fastcnp.dest_qp.copied"],
    );
    fails(
        SWITCH,
        false,
        "QP 0",
        &fast(|_, _, cnp| cnp.bth.dest_qp = Qp::truncate(0)),
        &["fastcnp.dest_qp.copied"],
    );
    fails(
        SWITCH,
        false,
        "another source",
        &fast(|carrier, _, _| carrier.source = UNTRUSTED_SOURCE.into()),
        &["fastcnp.source.own"],
    );
    fails(
        SWITCH,
        false,
        "another destination",
        &fast(|carrier, _, _| carrier.destination = UNTRUSTED_SOURCE.into()),
        &["fastcnp.destination.copied"],
    );
    fails(
        SWITCH,
        false,
        "another original destination",
        &fast(|_, option, _| {
            *option = FastCnpRepr::Option1 {
                original_destination: UNTRUSTED_SOURCE,
            };
        }),
        &["fastcnp.original_destination.copied"],
    );
    fails(
        SWITCH,
        false,
        "out of the receiver's link",
        &Broken {
            astray: is_fast_cnp,
            ..sound()
        },
        &["fastcnp.destination.copied"],
    );
    fails(
        SWITCH,
        false,
        "BECN clear",
        &fast(|_, _, cnp| cnp.bth.becn = false),
        &["cnp.becn.clear"],
    );
    fails(
        SWITCH,
        false,
        "a PSN",
        &fast(|_, _, cnp| cnp.bth.psn = 7),
        &["cnp.psn.nonzero"],
    );
    fails(
        SWITCH,
        false,
        "reserved octets",
        &fast(|_, _, cnp| cnp.reserved[3] = 1),
        &["cnp.reserved.nonzero"],
    );
    fails(
        SWITCH,
        false,
        "a wrong ICRC",
        &sends(|bytes| {
            let mut bytes = bytes.to_vec();
            if is_fast_cnp(&bytes) {
                *bytes.last_mut().unwrap() ^= 1;
            }
            bytes
        }),
        &["rocev2.icrc.bad"],
    );
    // No draft requires any.
    fails(
        SWITCH,
        false,
        "DSCP",
        &fast(|carrier, _, _| carrier.traffic_class = 0),
        &[],
    );
    fails(
        TRACES,
        false,
        "option 1 whatever the packet has",
        &fast(|_, option, _| {
            *option = FastCnpRepr::Option1 {
                original_destination: option.original_destination(),
            };
        }),
        &["fastcnp.option.by_trace"],
    );
    fails(
        TRACES,
        false,
        "a trace of its own",
        &fast(|_, option, _| {
            if let FastCnpRepr::Option2 { ioam, .. } = option {
                ioam.body = &OTHER_TRACE;
            }
        }),
        &["fastcnp.trace.copied"],
    );
    fails(
        TRACES,
        false,
        "a reserved octet",
        &fast(|_, option, _| {
            if let FastCnpRepr::Option2 { ioam, .. } = option {
                ioam.reserved = 1;
            }
        }),
        &["fastcnp.reserved.nonzero"],
    );
    for (fault, broken, test) in frame_faults() {
        fails(SWITCH, false, fault, &broken, &[test]);
    }
    fails(
        TRACES,
        false,
        "node data of ones",
        &sends(|bytes| {
            let (node, mut bytes) = (TRACE_NODE, bytes.to_vec());
            let own = parse(&bytes, &Profile::DEFAULT);
            let trace = match own.message() {
                Message::FastCnp(message) => message.parsed.ok().and_then(|option| option.trace()),
                _ => None,
            };
            let at = trace.map(|trace| trace.bytes().as_ptr() as usize - bytes.as_ptr() as usize);
            if let Some(at) = at {
                bytes[at + 8 + 2 * node..at + 8 + 3 * node].fill(0xFF);
                repair_icrc(&mut bytes);
            }
            bytes
        }),
        &["ioam.own_node"],
    );
    fails(
        BORDER,
        false,
        "no border",
        &switched(|switch| switch.border_filter = false),
        &["fastcnp.border.crossed"],
    );
    fails(
        SWITCH,
        true,
        "on by default",
        &switched(|switch| switch.congestion.fast_cnp = true),
        &["fastcnp.off_by_default"],
    );
}

/// A trace that no packet had.
static OTHER_TRACE: [u8; 8 + 48] = {
    let mut trace = [9; 56];
    // Namespace 1, NodeLen 3, no room left, bits 0, 1 and 6.
    let header = [0, 1, 3 << 3, 0, 0b1100_0010, 0, 0, 0];
    let mut at = 0;
    while at < 8 {
        trace[at] = header[at];
        at += 1;
    }
    trace
};

#[test]
fn broken_congestion_point_is_detected_by_proxy_and_wan() {
    let no_limit = || switched(|switch| switch.congestion.limits.interval = Duration::ZERO);
    let proxy = |change: fn(&mut Carrier, &mut ProxyCnRepr<'_>)| {
        sends(move |bytes| proxy_cn(bytes, change))
    };
    fails(
        FOR_PROXY,
        false,
        "says nothing",
        &switched(|switch| switch.congestion.proxy = false),
        &["proxycn.sent"],
    );
    fails(
        FOR_PROXY,
        false,
        "no limit",
        &no_limit(),
        &["proxycn.rate.exceeded"],
    );
    fails(
        FOR_PROXY,
        false,
        "to another proxy",
        &proxy(|carrier, _| carrier.destination = UNTRUSTED_SOURCE.into()),
        &["proxycn.destination.proxy"],
    );
    fails(
        FOR_PROXY,
        false,
        "another port",
        &proxy(|_, message| message.five_tuple.source_port ^= 1),
        &["proxycn.tuple.mismatch"],
    );
    fails(
        FOR_PROXY,
        false,
        "reserved bits",
        &proxy(|_, message| message.reserved = 1),
        &["proxycn.reserved.nonzero"],
    );
    fails(
        FOR_PROXY,
        false,
        "another packet",
        &sends(|bytes| {
            let frame = parse(bytes, &Profile::DEFAULT);
            let (Message::ProxyCn(message), Some(ip)) = (frame.message(), frame.ip()) else {
                return bytes.to_vec();
            };
            let mut quoted = message.invoking_packet().to_vec();
            *quoted.last_mut().unwrap() ^= 1;
            let message = ProxyCnRepr {
                invoking: &quoted,
                ..ProxyCnRepr::parse(&message)
            };
            let carrier = Carrier::new(ip.source, ip.destination);
            let packet =
                emit_packet(|out| emit::proxy_cn(&carrier, &message, &Profile::DEFAULT, out));
            [&bytes[..14], &packet].concat()
        }),
        &["proxycn.invoking.copied"],
    );
    fails(
        FOR_PROXY,
        true,
        "on by default",
        &switched(|switch| switch.congestion.proxy = true),
        &["proxycn.off_by_default"],
    );

    let (simulation, _) = network(&IN_WAN);
    let edges = simulation.nodes.iter().find(|node| node.name == "pe2");
    let edge = edges.unwrap().ipv6;
    let wan =
        |change: fn(&mut Carrier, &mut WanFcnRepr)| sends(move |bytes| wan_fcn(bytes, change));
    fails(
        IN_WAN,
        false,
        "says nothing",
        &switched(|switch| switch.congestion.wan_fcn = false),
        &["wanfcn.sent"],
    );
    fails(
        IN_WAN,
        false,
        "no limit",
        &no_limit(),
        &["wanfcn.rate.exceeded"],
    );
    fails(
        IN_WAN,
        false,
        "another label",
        &wan(|_, message| message.flow_label ^= 0x8_0000),
        &["wanfcn.flow_label.copied"],
    );
    fails(
        IN_WAN,
        false,
        "to somebody else",
        &wan(|carrier, _| carrier.destination = UNTRUSTED_SOURCE.into()),
        &["wanfcn.destination.ingress"],
    );
    fails(
        IN_WAN,
        false,
        "to another edge",
        &sends(move |bytes| wan_fcn(bytes, |carrier, _| carrier.destination = edge.into())),
        &["wanfcn.destination.ingress"],
    );
    fails(
        IN_WAN,
        false,
        "reserved bits",
        &wan(|_, message| message.reserved = 1),
        &["wanfcn.reserved.nonzero"],
    );
    fails(
        IN_WAN,
        false,
        "about what is not capable",
        &hears(|bytes| {
            let mut bytes = bytes.to_vec();
            if DataPacket::from_frame(&parse(&bytes, &Profile::DEFAULT)).is_some() {
                ip::set_traffic_class(&mut bytes[14..], 2, 3);
            }
            vec![bytes]
        }),
        &["wanfcn.capable_alone"],
    );
    fails(
        IN_WAN,
        true,
        "on by default",
        &switched(|switch| switch.congestion.wan_fcn = true),
        &["wanfcn.off_by_default"],
    );
}

#[test]
fn broken_receiver_is_detected() {
    let plain = |change: fn(&mut Carrier, &mut CnpRepr)| sends(move |bytes| cnp(bytes, change));
    let fast = |change: fn(&mut Carrier, &mut FastCnpRepr<'_>, &mut CnpRepr)| {
        sends(move |bytes| fast_cnp(bytes, change))
    };
    fails(
        RECEIVER,
        false,
        "says nothing",
        &hosted(|host| host.notification = None),
        &["cnp.sent"],
    );
    fails(
        RECEIVER,
        false,
        "no interval",
        &hosted(|host| {
            host.notification.as_mut().unwrap().interval = Duration::ZERO;
        }),
        &["cnp.limited"],
    );
    fails(
        RECEIVER,
        false,
        "its own QP",
        &plain(|_, cnp| cnp.bth.dest_qp = next(cnp.bth.dest_qp)),
        &["cnp.dest_qp.sender"],
    );
    fails(
        RECEIVER,
        false,
        "for all data",
        &hears(|bytes| {
            let mut bytes = bytes.to_vec();
            if DataPacket::from_frame(&parse(&bytes, &Profile::DEFAULT)).is_some() {
                ip::set_traffic_class(&mut bytes[14..], 3, 3);
            }
            vec![bytes]
        }),
        &["cnp.for_marks_alone"],
    );
    fails(
        RECEIVER,
        false,
        "BECN clear",
        &plain(|_, cnp| cnp.bth.becn = false),
        &["cnp.becn.clear"],
    );
    fails(
        RECEIVER,
        false,
        "InfiniBand's opcode",
        &plain(|_, cnp| cnp.bth.opcode = Opcode(0x80)),
        &["rocev2.opcode.infiniband_cnp"],
    );
    fails(
        RECEIVER,
        true,
        "Fast CNPs by default",
        &hosted(|host| {
            host.notification.as_mut().unwrap().fast_cnp = true;
        }),
        &["fastcnp.off_by_default"],
    );
    fails(
        FAST_RECEIVER,
        false,
        "another QP",
        &fast(|_, _, cnp| cnp.bth.dest_qp = next(cnp.bth.dest_qp)),
        &["fastcnp.dest_qp.copied"],
    );
    fails(
        FAST_RECEIVER,
        false,
        "another source",
        &fast(|carrier, _, _| carrier.source = UNTRUSTED_SOURCE.into()),
        &["fastcnp.source.receiver"],
    );
    fails(
        FAST_RECEIVER,
        false,
        "another original destination",
        &fast(|_, option, _| {
            *option = FastCnpRepr::Option1 {
                original_destination: UNTRUSTED_SOURCE,
            };
        }),
        &["fastcnp.original_destination.copied"],
    );
}

#[test]
fn broken_sender_is_detected() {
    fails(
        SENDER,
        false,
        "obeys nobody",
        &hosted(|host| host.reaction.control = Control::Fixed),
        &["cnp.obeyed", "fastcnp.obeyed", "fastcnp.obeyed.option2"],
    );
    fails(
        SENDER,
        false,
        "never heard of Fast CNP",
        &hosted(|host| host.reaction.fast_cnp = false),
        &["fastcnp.obeyed", "fastcnp.obeyed.option2"],
    );
    fails(
        SENDER,
        false,
        "believes anybody",
        &hosted(|host| {
            host.reaction.access_list = vec!["::/0".parse().unwrap()];
        }),
        &["fastcnp.access_list"],
    );
    fails(
        SENDER,
        false,
        "looks at the QP alone",
        &hears(|bytes| {
            let receiver = "2001:db8:1::2".parse().unwrap();
            vec![fast_cnp(bytes, |_, option, _| {
                if let FastCnpRepr::Option1 {
                    original_destination,
                } = option
                {
                    *original_destination = receiver;
                }
            })]
        }),
        &["fastcnp.obeyed.by_both"],
    );
    let (simulation, device) = network(&SENDER);
    let flows = simulation.flows.iter().filter(|flow| flow.from == device);
    let qps: Vec<(Qp, Qp)> = flows
        .map(|flow| (flow.sender_qp, flow.receiver_qp))
        .collect();
    let all = qps.clone();
    fails(
        SENDER,
        false,
        "slows all down for a Fast CNP",
        &hears(move |bytes| {
            let others = all
                .iter()
                .map(|(_, qp)| fast_cnp(bytes, |_, _, cnp| cnp.bth.dest_qp = *qp));
            match parse(bytes, &Profile::DEFAULT).message() {
                Message::FastCnp(message)
                    if message.parsed.is_ok_and(|option| option.number() == 1) =>
                {
                    others.collect()
                }
                _ => vec![bytes.to_vec()],
            }
        }),
        &["fastcnp.obeyed.that_qp_alone"],
    );
    fails(
        SENDER,
        false,
        "slows all down for a CNP",
        &hears(move |bytes| {
            let others = qps
                .iter()
                .map(|(qp, _)| cnp(bytes, |_, cnp| cnp.bth.dest_qp = *qp));
            match parse(bytes, &Profile::DEFAULT).message() {
                Message::Cnp(_) => others.collect(),
                _ => vec![bytes.to_vec()],
            }
        }),
        &["cnp.obeyed.that_qp_alone"],
    );
    fails(
        SENDER,
        true,
        "obeys Fast CNPs by default",
        &hosted(|host| host.reaction.fast_cnp = true),
        &["fastcnp.off_by_default"],
    );
}

#[test]
fn sender_that_does_not_recover_is_detected() {
    let stuck = hosted(|host| {
        let Control::Dcqcn(dcqcn) = &mut host.reaction.control else {
            panic!("{:?}", host.reaction.control)
        };
        (dcqcn.t, dcqcn.b) = (Duration::from_secs(1_000), u64::MAX);
    });
    fails(SENDER, false, "stuck", &stuck, &["reaction.recovers"]);
}

#[test]
fn broken_translator_is_detected() {
    let plain = |change: fn(&mut Carrier, &mut CnpRepr)| sends(move |bytes| cnp(bytes, change));
    let (other_qp, elsewhere) = (
        || plain(|_, cnp| cnp.bth.dest_qp = next(cnp.bth.dest_qp)),
        || plain(|carrier, _| carrier.destination = UNTRUSTED_SOURCE.into()),
    );
    let proxied = |change: fn(&mut fcn_node::proxy::Config)| {
        switched(move |switch| change(&mut switch.proxy.as_mut().unwrap().config))
    };
    fails(
        PROXY,
        false,
        "says nothing",
        &proxied(|config| config.enabled = false),
        &["proxy.sent"],
    );
    fails(
        PROXY,
        false,
        "no limit",
        &proxied(|config| config.limits.interval = Duration::ZERO),
        &["proxy.limited"],
    );
    fails(
        PROXY,
        false,
        "believes anybody",
        &proxied(|config| config.congestion_points.clear()),
        &["proxy.access_list"],
    );
    fails(
        PROXY,
        false,
        "another QP",
        &other_qp(),
        &["proxy.dest_qp.sender"],
    );
    fails(
        PROXY,
        false,
        "to somebody else",
        &elsewhere(),
        &["proxy.destination.sender"],
    );
    fails(
        PROXY,
        false,
        "a PSN",
        &plain(|_, cnp| cnp.bth.psn = 1),
        &["cnp.psn.nonzero"],
    );
    fails(
        PROXY,
        true,
        "on by default",
        &proxied(|config| config.enabled = true),
        &["proxycn.off_by_default"],
    );

    let edge = |change: fn(&mut fcn_node::ingress_pe::Config)| {
        switched(move |switch| change(&mut switch.edge.as_mut().unwrap().config))
    };
    fails(
        INGRESS,
        false,
        "says nothing",
        &edge(|config| config.enabled = false),
        &["ingress.sent"],
    );
    fails(
        INGRESS,
        false,
        "no limit",
        &edge(|config| config.limits.interval = Duration::ZERO),
        &["ingress.limited"],
    );
    fails(
        INGRESS,
        false,
        "believes anybody",
        &edge(|config| config.congestion_points.clear()),
        &["ingress.access_list"],
    );
    fails(
        INGRESS,
        false,
        "another QP",
        &other_qp(),
        &["ingress.dest_qp.sender"],
    );
    fails(
        INGRESS,
        false,
        "to somebody else",
        &elsewhere(),
        &["ingress.destination.sender"],
    );
    fails(
        INGRESS,
        false,
        "minds reserved bits",
        &hears(|bytes| match parse(bytes, &Profile::DEFAULT).message() {
            Message::WanFcn(message) if message.reserved() != 0 => vec![],
            _ => vec![bytes.to_vec()],
        }),
        &["ingress.reserved_ignored"],
    );
    let in_tunnel = |bytes: &[u8]| {
        DataPacket::from_frame(&parse(bytes, &Profile::DEFAULT))
            .is_some_and(|data| data.outer.is_some())
    };
    fails(
        INGRESS,
        false,
        "hides ECN",
        &sends(move |bytes| {
            let mut bytes = bytes.to_vec();
            if in_tunnel(&bytes) {
                ip::set_traffic_class(&mut bytes[14..], 0, 3);
            }
            bytes
        }),
        &["ingress.ecn.copied"],
    );
    let label = Cell::new(None);
    fails(
        INGRESS,
        false,
        "one label for all",
        &sends(move |bytes| {
            let mut bytes = bytes.to_vec();
            if in_tunnel(&bytes) {
                let own = ip::flow_label(&bytes[14..]);
                label.set(label.get().or(Some(own)));
                ip::set_flow_label(&mut bytes[14..], label.get().unwrap());
            }
            bytes
        }),
        &["ingress.labels"],
    );
    fails(
        INGRESS,
        true,
        "on by default",
        &edge(|config| config.enabled = true),
        &["wanfcn.off_by_default"],
    );
}

/// A device that sends one packet of the gallery of defects fails exactly the rules that the packet
/// breaks; each rule is broken by one of the packets.
#[test]
fn each_single_packet_rule_is_detected_alone() {
    let mut caught = BTreeSet::new();
    // Three rules need code points that the drafts forbid; with these, packets break more rules
    // than they list.
    let forced = "force = true\nfast_cnp_option1 = 0x3E\nfast_cnp_option2 = 0xBE\nproxy_address_option = 0x5E";
    for forced in [None, Some(Profile::from_toml(forced).unwrap())] {
        let mut defects = Selection::all_of("malformed");
        defects.profile = forced.clone().unwrap_or(Profile::DEFAULT);
        for case in [SWITCH, RECEIVER, SENDER, PROXY, INGRESS] {
            let (mut simulation, device) = network(&case);
            simulation.profile = defects.profile.clone();
            let setup = Setup::new(&simulation, device, case.role, false);
            for packet in defects.play().packets {
                if packet.link != LinkType::Ethernet || !packet.is_whole() {
                    continue;
                }
                let mut record = Record::default();
                record.add((Ps(1), Ps(0)), 0, true, &packet.bytes);
                for outcome in judge(&setup, &Plan::new(device), &record).outcomes {
                    let is_broken = matches!(outcome.grade, Grade::Failed | Grade::Noted);
                    if let (true, Test::Rule(rule)) = (is_broken, outcome.test) {
                        let said = packet.breaks.contains(&rule) || forced.is_some();
                        assert!(said, "{}: {rule}", packet.comment);
                        assert_eq!(outcome.frames, [0]);
                        caught.insert(rule);
                    }
                }
            }
        }
    }
    let all = tests(Role::value_variants()).filter_map(|(_, test)| match test {
        Test::Rule(rule) if !Rule::MULTI_PACKET.contains(&rule) => Some(rule),
        _ => None,
    });
    let missed: BTreeSet<Rule> = all.filter(|rule| !caught.contains(rule)).collect();
    assert_eq!(missed, BTreeSet::new());
}
