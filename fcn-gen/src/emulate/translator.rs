//! A bump in the wire in front of a host whose NIC does not know Fast CNPs: everything passes
//! unchanged, and Fast CNPs for the host become plain CNPs.

use super::links::{OpenLinks, conclude, demand_end, end_of, show};
use super::report::Report;
use crate::cli::Emulate;
use crate::device::{LinkNode, Role, assign, load};
use crate::scenario::model::NodeKind;
use crate::sim::live::{Counters, OutgoingFrame};
use crate::units::Ps;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use fcn_node::Translator;
use fcn_node::translator::Config;
use fcn_tool::console::{Console, print};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::{Frame, Kind, LinkType, Profile};
use std::fmt::Write as _;

/// Links: to the host, to the network.
const HOST: usize = 0;
const NETWORK: usize = 1;
const PEERS: [&str; 2] = ["host", "network"];
/// Maximum number of buffers kept for further frames.
const SPARE: usize = 4_096;

/// What to play: a role of a scenario's node, or what stands in front of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A node.
    Role(Role),
    /// A translator.
    Translator,
}

const PARTS: [Part; 6] = [
    Part::Role(Role::CongestionPoint),
    Part::Role(Role::Receiver),
    Part::Role(Role::Sender),
    Part::Role(Role::Proxy),
    Part::Role(Role::IngressPe),
    Part::Translator,
];

impl Part {
    /// Returns its name on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Role(role) => role.id(),
            Self::Translator => "translator",
        }
    }
}

impl ValueEnum for Part {
    fn value_variants<'a>() -> &'a [Self] {
        &PARTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Role(role) => role.to_possible_value(),
            Self::Translator => Some(PossibleValue::new(self.id()).help(
                "A bump in the wire that turns Fast CNPs for a host into CNPs, for a NIC of today",
            )),
        }
    }
}

/// What to do with a Fast CNP for the host that cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Untranslated {
    /// Drop it: a NIC has no use for it, and the host's kernel would answer by ICMPv6
    Drop,
    /// Pass it on to the host
    Pass,
}

/// A translator on two links.
struct BumpInTheWire<'p> {
    translator: Translator,
    profile: &'p Profile,
    untranslated: Untranslated,
    outgoing: Vec<OutgoingFrame>,
    /// Buffers to reuse.
    spare: Vec<Vec<u8>>,
    to_host: u64,
    to_network: u64,
    dropped: u64,
}

impl<'p> BumpInTheWire<'p> {
    fn new(translator: Translator, profile: &'p Profile, untranslated: Untranslated) -> Self {
        Self {
            translator,
            profile,
            untranslated,
            outgoing: Vec::new(),
            spare: Vec::new(),
            to_host: 0,
            to_network: 0,
            dropped: 0,
        }
    }
}

impl LinkNode for BumpInTheWire<'_> {
    fn on_frame(&mut self, now: Ps, link: usize, bytes: &[u8]) {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, self.profile);
        let mut octets = self.spare.pop().unwrap_or_default();
        let mut reaction = None;
        let to = match link {
            HOST => NETWORK,
            _ => HOST,
        };
        let is_translated = match link {
            NETWORK => self.translator.translate(&frame, &mut octets),
            _ => Ok(false),
        };
        match (is_translated, self.untranslated) {
            (Ok(true), _) => reaction = Some((Kind::Cnp, now, now)),
            (Err(_), Untranslated::Drop) => {
                self.dropped += 1;
                return self.recycle(octets);
            }
            (Ok(false), _) | (Err(_), Untranslated::Pass) => {
                self.translator.learn(now.into(), &frame);
                octets.clear();
                octets.extend_from_slice(bytes);
                *match to {
                    HOST => &mut self.to_host,
                    _ => &mut self.to_network,
                } += 1;
            }
        }
        self.outgoing.push(OutgoingFrame {
            link: to,
            at: now,
            header: None,
            octets,
            reaction,
        });
    }

    fn on_timer(&mut self, _: Ps) {}

    fn next_timer(&mut self) -> Option<Ps> {
        None
    }

    fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>) {
        frames.append(&mut self.outgoing);
    }

    fn recycle(&mut self, octets: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(octets);
        }
    }

    fn failure(&mut self) -> Option<String> {
        None
    }

    fn stop(&mut self, _: Ps) {}

    fn is_quiet(&self) -> bool {
        true
    }

    fn has_opened(&self) -> bool {
        false
    }

    fn figures(&mut self) -> (u64, f64, u64) {
        (0, 0.0, 0)
    }

    fn counters(&self) -> Counters {
        let passed = [
            ("to_host", self.to_host),
            ("to_network", self.to_network),
            ("dropped", self.dropped),
        ];
        let translator = self.translator.counters().named();
        vec![("translator", translator.chain(passed).collect())]
    }
}

/// Plays a translator in front of a host of the scenario, whose access list is used.
///
/// # Errors
/// As for every role.
pub fn emulate(options: &Emulate, console: &mut Console<'_>) -> Result {
    if !options.fault.is_empty() {
        return Err(Failure::usage("--fault")
            .and("translator")
            .and("it has no faults to inject"));
    }
    let (scenario, simulation) = load(options.config.as_deref(), &options.sets)?;
    let node = Role::Sender.node(&simulation, options.node.as_deref())?;
    demand_end(options)?;
    let host = &simulation.nodes[node];
    let mut config = Config::new(match &host.kind {
        NodeKind::Host(host) => host.reaction.access_list.clone(),
        NodeKind::Switch(_) => Vec::new(),
    });
    config.enabled = options.enable_fast_cnp;
    let iface = (&options.iface[..], options.allow_default_route);
    let played = assign(iface, ("a translator", &PEERS), (false, false))?;
    let links = OpenLinks::new(options, played, console)?;
    if !options.quiet {
        let mut text = format!("role     translator: in front of {}\n", host.name);
        let mut line = |name: &str, what: &str| {
            let _ = writeln!(text, "{name:<8} {what}");
        };
        for (played, mode) in links.played.iter().zip(&links.modes) {
            let name = played.interface.name();
            line("link", &format!("{name} to the {}: {mode}", played.peer));
        }
        match config.access_list.as_slice() {
            [] => line(
                "allowed",
                "nobody: set the access list of the host (--set host.NAME.access_list=…)",
            ),
            list => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                line("allowed", &list.join(", "));
            }
        }
        if !config.enabled {
            line("off", "Fast CNP; --enable-fast-cnp enables it");
        }
        line("until", &end_of(options));
        print(console.err, &text)?;
    }
    let bump = BumpInTheWire::new(
        Translator::new(config),
        &simulation.profile,
        options.untranslated,
    );
    let mechanism = simulation.mechanism.id();
    let names = ["translator", &host.name, &scenario.name, mechanism];
    let (run, bump) = links.run(options, names, bump, false, console)?;
    let mut report = Report::of(names, options.speed, &run, bump.counters());
    let cnps = bump.translator.counters().translated;
    if cnps > 0 {
        report.notified.insert(Kind::Cnp.id(), cnps);
    }
    show(&report, options, console)?;
    conclude(run.ended, &report, (false, false), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Enabled;
    use crate::scenario::model::{NodeId, Simulation};
    use crate::scenario::{Play, Source, load};
    use crate::sim::frames;
    use crate::sim::live::LiveNode;
    use crate::truth::FlowTruth;
    use fcn_wire::icrc::Verdict;
    use fcn_wire::{Message, Notification, Subject};
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// A frame on a cable: its time of arrival, its number, the device and its link, the octets.
    type InTransit = Reverse<(Ps, u64, (usize, usize), Vec<u8>)>;

    fn link(sets: &[&str]) -> Simulation {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let source = Source::Text {
            name: "link.toml".to_owned(),
            text: include_str!("../device/link.toml").to_owned(),
        };
        let Play::Simulation(simulation) = load(&source, &sets).unwrap().play else {
            panic!("not a simulation");
        };
        let mut simulation = *simulation;
        // The NIC does not know Fast CNPs.
        let sender = node(&simulation, "sender");
        let off = Enabled::default().restrict(&mut simulation.nodes[sender]);
        assert_eq!(off.len(), 1);
        simulation
    }

    fn node(simulation: &Simulation, name: &str) -> NodeId {
        let mut nodes = simulation.nodes.iter();
        nodes.position(|node| node.name.starts_with(name)).unwrap()
    }

    fn bump<'p>(
        simulation: &'p Simulation,
        access_list: &[&str],
        how: Untranslated,
    ) -> BumpInTheWire<'p> {
        let access_list = access_list.iter().map(|prefix| prefix.parse().unwrap());
        let mut config = Config::new(access_list.collect());
        config.enabled = true;
        BumpInTheWire::new(Translator::new(config), &simulation.profile, how)
    }

    /// Connects sender, translator, switch and receiver, and plays 20 ms; `see` is called with each
    /// frame to the sender. Returns the sender's flows.
    fn play(
        simulation: &Simulation,
        bump: &mut BumpInTheWire<'_>,
        mut see: impl FnMut(&[u8]),
    ) -> Vec<FlowTruth> {
        // Each end of a cable: a device, and its link.
        const CABLES: [((usize, usize), (usize, usize)); 3] = [
            ((0, 0), (1, HOST)),
            ((1, NETWORK), (2, 0)),
            ((2, 1), (3, 0)),
        ];
        let mut nodes = ["sender", "switch", "receiver"].map(|name| {
            let node = node(simulation, name);
            let links = LiveNode::links(simulation, node).count();
            LiveNode::new(simulation, node, vec![frames::mac(node); links], None)
        });
        let mut cables = BinaryHeap::new();
        let (mut now, mut number) = (Ps(0), 0);
        while now < Ps::from_nanos(20_000_000) {
            let timers = nodes.iter_mut().filter_map(LiveNode::next_timer);
            let arrival = cables.peek().map(|next: &InTransit| next.0.0);
            now = timers.chain(arrival).min().unwrap().max(now);
            let [sender, switch, receiver] = &mut nodes;
            let devices: [&mut dyn LinkNode; 4] = [sender, bump, switch, receiver];
            while cables.peek().is_some_and(|next| next.0.0 <= now) {
                let Some(Reverse((_, _, (device, link), bytes))) = cables.pop() else {
                    break;
                };
                if device == 0 {
                    see(&bytes);
                }
                devices[device].on_frame(now, link, &bytes);
            }
            for (index, device) in devices.into_iter().enumerate() {
                device.on_timer(now);
                let mut leaving = Vec::new();
                device.take_outgoing(&mut leaving);
                for frame in leaving {
                    let from = (index, frame.link);
                    let to = CABLES.iter().find_map(|(a, b)| match from {
                        from if from == *a => Some(*b),
                        from if from == *b => Some(*a),
                        _ => None,
                    });
                    number += 1;
                    let bytes = <[&[u8]; 2]>::from(frame.parts()).concat();
                    cables.push(Reverse((frame.at, number, to.unwrap(), bytes)));
                    device.recycle(frame.octets);
                }
            }
        }
        let [sender, ..] = nodes;
        assert!(sender.has_opened());
        assert_eq!(sender.passed_over().bad_icrc, 0);
        sender.end("link").truth.flows
    }

    fn slowed(flows: &[FlowTruth]) -> u64 {
        flows.iter().flat_map(|flow| flow.slowed_by.values()).sum()
    }

    #[test]
    fn sender_without_fast_cnp_is_slowed_by_a_switch_with_it() {
        for (sets, is_inferred) in [
            (&[][..], false),
            (&["mechanism=fast-cnp-ioam"][..], false),
            // QPs are known from acknowledgements alone.
            (&["flow.load.rdma_cm=false"][..], true),
        ] {
            let simulation = link(sets);
            let qps: Vec<_> = simulation.flows.iter().map(|flow| flow.sender_qp).collect();
            let mut bump = bump(&simulation, &["::/0"], Untranslated::Drop);
            let mut cnps = 0;
            let flows = play(&simulation, &mut bump, |bytes| {
                let profile = &simulation.profile;
                let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
                if let Some(notification) = Notification::from_frame(&frame) {
                    cnps += 1;
                    assert!(matches!(frame.message(), Message::Cnp(_)));
                    assert_eq!(frame.verify_icrc(), Verdict::Good(None));
                    let Subject::SenderQp(qp) = notification.subject else {
                        panic!("{notification:?}");
                    };
                    assert!(qps.contains(&qp), "{qp}");
                }
            });
            let counters = *bump.translator.counters();
            assert!(cnps > 10, "{sets:?} {counters:?}");
            assert!(slowed(&flows) > 10, "{sets:?}");
            assert!(counters.translated >= cnps, "{sets:?}");
            assert_eq!(counters.inferred > 0, is_inferred, "{sets:?} {counters:?}");
            assert!(bump.to_host > 20 && bump.to_network > 100);
        }
    }

    #[test]
    fn fast_cnps_of_strangers_are_dropped_or_passed() {
        let simulation = link(&[]);
        for how in [Untranslated::Drop, Untranslated::Pass] {
            let mut bump = bump(&simulation, &["2001:db8:bad::/48"], how);
            let mut fast_cnps = 0;
            let flows = play(&simulation, &mut bump, |bytes| {
                let profile = &simulation.profile;
                let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
                fast_cnps += u64::from(matches!(frame.message(), Message::FastCnp(_)));
            });
            let counters = *bump.translator.counters();
            assert!(counters.not_on_access_list > 10, "{counters:?}");
            assert_eq!((counters.translated, slowed(&flows)), (0, 0));
            assert_eq!(bump.dropped > 0, how == Untranslated::Drop);
            assert_eq!(fast_cnps > 0, how == Untranslated::Pass);
        }
    }

    #[test]
    fn everything_else_passes_unchanged() {
        let simulation = link(&[]);
        let mut bump = bump(&simulation, &["::/0"], Untranslated::Drop);
        let tagged = [&[0xFF; 12][..], &[0x81, 0, 0x60, 5, 8, 6], &[7; 40]].concat();
        for (link, bytes) in [
            (HOST, &tagged[..]),
            (NETWORK, &tagged),
            (NETWORK, &[1]),
            (HOST, &[]),
        ] {
            bump.on_frame(Ps(5), link, bytes);
            let mut frames = Vec::new();
            bump.take_outgoing(&mut frames);
            let [frame] = &frames[..] else {
                panic!("{frames:?}");
            };
            assert_eq!(
                (frame.link, frame.at, &frame.octets[..]),
                (1 - link, Ps(5), bytes)
            );
            bump.recycle(frame.octets.clone());
        }
    }
}
