//! The `run` command: sends a scenario, and reports before, during and after.

use super::frames::FrameList;
use super::schedule::{Schedule, refuse_given, until};
use super::simulation::{Plan, Played, pair};
use crate::cli::Run;
use crate::gallery::{EPOCH, Packet, Selection};
use crate::macs::{Link, Rewrite};
use crate::mirror::Mirrors;
use crate::pending::Pending;
use crate::scenario::model::Simulation;
use crate::scenario::{self, Play, Scenario};
use crate::stress::{Kind, Prototypes, Stress, StressSource};
use crate::write;
use fcn_link::backend::{Queue, SlotCount};
use fcn_link::file_transmit::CapturePoints;
use fcn_link::interface::Interface;
use fcn_link::pacing::Rate;
use fcn_link::sender::{Report, Stop};
use fcn_tool::console::Console;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::{counted, grouped};
use fcn_tool::sending::{Opened, announce, conclude, open, refuse_endless, send};
use fcn_wire::LinkType;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread;

/// Name of the report's schema.
pub const RUN_SCHEMA: &str = "fcn-gen/run";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const RUN_VERSION: u32 = 1;

/// Name of the vantage point that stands for all.
const ALL: &str = "all";
/// Default destination of a stress: locally administered, so not assigned to any device.
const DEFAULT_PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Source address if there is no interface to take it from.
const FILE_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Default rate of galleries.
const GALLERY_RATE: Rate = Rate::Packets(1_000);
/// Headers and ICRC of the shortest data packet, in octets: Ethernet, IPv4 or IPv6, UDP, BTH, ICRC.
const DATA_HEADERS: (usize, usize) = (14 + 20 + 8 + 12 + 4, 14 + 40 + 8 + 12 + 4);
/// Maximum length of frames in a capture file, in octets: jumbo frames.
const LONGEST_IN_FILE: usize = 9_216 + 256;

/// Lines for the announcement before sending, and for the report.
type Lines = Vec<(&'static str, String)>;

/// Runs `run` with these options.
///
/// # Errors
/// The scenario is invalid, the link cannot be opened or fails, nothing was sent, or the run was
/// interrupted.
pub fn run(options: Run, console: &mut Console<'_>) -> Result {
    let files = [options.link.output.as_deref(), options.truth.as_deref()];
    options.link.replacing.check(files)?;
    let request = write::Request {
        source: scenario::Source::named(&options.scenario_args.scenario),
        sets: options.scenario_args.sets.clone(),
        seed: options.seed,
        // Complete frames are sent, regardless of the scenario's snap length.
        snap_len: None,
        truth: options.truth.clone(),
        mirror: None,
    };
    let Scenario {
        name, about, play, ..
    } = write::load(&request)?;
    if !matches!(play, Play::Simulation(_)) {
        only_simulations(&options)?;
    }
    write::check_truth(options.truth.as_deref(), options.link.output.as_deref())?;
    if options.forever && options.duration.is_none() {
        let instead = match play {
            Play::Stress(_) => "use --count instead, or --duration with --rate",
            Play::Simulation(_) | Play::Gallery(_) => "add --duration, or omit --forever",
        };
        refuse_endless(&options.link, instead)?;
    }
    let send = SendRun {
        options,
        name,
        about,
    };
    match play {
        Play::Simulation(simulation) => send.simulation(*simulation, console),
        Play::Gallery(selection) => send.gallery(&selection, console),
        Play::Stress(stress) => send.stress(&stress, console),
    }
}

fn only_simulations(options: &Run) -> Result {
    let given = [
        ("--realtime", options.realtime),
        ("--speed", options.speed.is_some()),
        ("--vantage", options.vantage.is_some()),
        ("--truth", options.truth.is_some()),
    ];
    let instead = "omit it, or choose another scenario";
    refuse_given(&given, "only a simulation supports this", instead)
}

/// A single run.
struct SendRun {
    options: Run,
    /// Name and description of the scenario.
    name: String,
    about: String,
}

impl SendRun {
    /// Opens the destination, after installing the handler for Ctrl-C, so that an interruption
    /// leaves no partial file.
    fn open(
        &self,
        slots: Option<SlotCount>,
        longest: Option<usize>,
        console: &Console<'_>,
    ) -> Result<(Opened, Stop)> {
        let stop = (console.catch_interrupt)()?;
        let program = concat!("fcn-gen ", env!("CARGO_PKG_VERSION"));
        let longest = match self.options.link.output {
            Some(_) => Some(longest.unwrap_or(LONGEST_IN_FILE)),
            None => longest,
        };
        let mut opened = open(&self.options.link, slots, longest, program)?;
        for queue in &mut opened.queues {
            if let (Queue::File(file), Some(how)) = (queue, self.options.mirror) {
                file.transform_with(Box::new(Mirrors::new(how, self.options.seed.unwrap_or(0))));
            }
        }
        Ok((opened, stop))
    }

    fn one_queue(&self) -> Result {
        if self.options.link.queues == 1 {
            return Ok(());
        }
        Err(Failure::usage("--queues")
            .and("several queues do not keep the order of packets")
            .and("only a stress scenario can use more than one"))
    }

    fn source_mac(&self, interface: Option<&Interface>) -> Option<[u8; 6]> {
        let own = || interface.and_then(Interface::mac);
        self.options.source_mac.or_else(own)
    }

    fn schedule(&self, opened: &Opened, default: Schedule) -> Result<Schedule> {
        let speed = opened.interface.as_ref().and_then(Interface::speed);
        Schedule::from_options(&self.options, speed, default)
    }

    /// Prints the report, with `lines` and `more` in addition to the figures of sending.
    fn conclude(
        &self,
        (report, queues): (Report, Vec<Queue>),
        lines: &Lines,
        more: Value,
        console: &mut Console<'_>,
    ) -> Result {
        let head = json!({
            "schema": RUN_SCHEMA,
            "version": RUN_VERSION,
            "scenario": self.name,
        });
        let output = (self.options.quiet, self.options.json);
        conclude(&report, queues, (lines, vec![head, more]), output, console)
    }

    fn stress(&self, stress: &Stress, console: &mut Console<'_>) -> Result {
        let options = &self.options;
        if options.count.is_none() && options.duration.is_none() && !options.forever {
            return Err(Failure::usage("a stress scenario has no end")
                .and(&self.name)
                .and("set an end: --duration 10s, --count 1M, or --forever"));
        }
        if options.forever && options.duration.is_some() {
            return Err(Failure::usage("--forever")
                .and("with --duration a stress scenario ends")
                .and("omit one of them"));
        }
        if options.keep_macs {
            return Err(Failure::usage("--keep-macs")
                .and("a stress scenario has no MAC addresses of its own")
                .and("omit it"));
        }
        let failed = |error: String| Failure::failed(error).and(&self.name);
        let prototypes = Prototypes::new(stress).map_err(failed)?;
        let (longest, average) = (prototypes.longest(), prototypes.average(stress));
        let SlotCount { zero_copy, copying } = SlotCount::default();
        let slots = SlotCount {
            zero_copy: stress.pattern.slots(zero_copy),
            copying: stress.pattern.slots(copying),
        };
        let (opened, stop) = self.open(Some(slots), Some(longest), console)?;
        if let Some(interface) = &opened.interface
            && longest > 14 + interface.mtu() as usize
        {
            return Err(Failure::usage("the frames are too long for the interface")
                .and(&self.name)
                .and(format!(
                    "{longest} octets, but {} sends at most {}",
                    interface.name(),
                    14 + interface.mtu()
                ))
                .and("set a smaller payload, or a larger MTU (ip link set dev IF mtu N)"));
        }
        let own = self.source_mac(opened.interface.as_ref());
        let source = own.unwrap_or(FILE_SOURCE);
        let destination = options.peer_mac.unwrap_or(DEFAULT_PEER_MAC);
        let macs = Rewrite {
            source: Some(source),
            destination: Some(destination),
        };
        let schedule = self.schedule(&opened, Schedule::Top)?;
        let queues = opened.queues.len() as u32;
        let settings = schedule.settings(options, (queues, average, EPOCH))?;
        let shares = stress.shares();
        let mix = shares.map(|(kind, share)| format!("{} {share:.1} %", kind.id()));
        let (flows, qps) = (grouped(stress.flows.into()), stress.connections.into());
        let frames = format!("{average} octets on average, {longest} at most");
        let mac = |mac: [u8; 6]| mac.map(|octet| format!("{octet:02x}")).join(":");
        let from_to = format!("{} to {}", mac(source), mac(destination));
        let announcement = vec![
            ("what", format!("{}: {}", self.name, self.about)),
            ("mix", mix.collect::<Vec<_>>().join(", ")),
            ("flows", format!("{flows}, {}", counted(qps, "QP"))),
            ("frames", frames),
            ("macs", from_to),
            ("pace", schedule.describe(options)),
            ("until", until(options, None)),
        ];
        let sources = (0..queues).zip(&opened.queues).map(|(queue, link)| {
            let slots = link.mode().slots.0;
            StressSource::new(stress, &prototypes, (queue, queues), slots, macs)
        });
        let sources = sources
            .collect::<std::result::Result<Vec<StressSource>, _>>()
            .map_err(|error| Failure::usage("--queues").and(error))?;
        announce(&opened, &announcement, options.quiet, console)?;
        let ways = (vec![opened], sources, settings);
        let sent = send(ways, &stop, options.quiet, console);
        let kinds = kinds(stress, &sent.0);
        let text = kinds
            .iter()
            .map(|(kind, count)| format!("{} {}", kind.id(), grouped(*count)));
        let lines = vec![("kinds", text.collect::<Vec<_>>().join(", "))];
        let more = json!({
            "kind": "stress",
            "flows": stress.flows,
            "qps": stress.connections,
            "kinds": kinds.iter().map(|(kind, count)| (kind.id(), count)).collect::<BTreeMap<_, _>>(),
        });
        self.conclude(sent, &lines, more, console)
    }

    fn gallery(&self, selection: &Selection, console: &mut Console<'_>) -> Result {
        let options = &self.options;
        self.one_queue()?;
        let capture = selection.play();
        let (opened, stop) = self.open(None, None, console)?;
        let link = self.link(&opened);
        let all = capture.packets.len();
        let whole = |packet: &Packet| packet.link == LinkType::Ethernet && packet.is_whole();
        let packets = capture.packets.into_iter().filter(whole);
        let mut frames: Vec<Vec<u8>> = packets
            .map(|packet| packet.bytes)
            .filter(|frame| link.takes(frame))
            .collect();
        for frame in &mut frames {
            link.rewrite.apply(frame);
        }
        let left_out = all - frames.len();
        let average = frames.iter().map(Vec::len).sum::<usize>() / frames.len().max(1);
        let schedule = self.schedule(&opened, Schedule::Rate(GALLERY_RATE))?;
        let settings = schedule.settings(options, (1, average, EPOCH))?;
        let end = (!options.forever).then_some("the gallery's end");
        let mut announcement = vec![
            ("what", format!("{}: {}", self.name, capture.about)),
            ("packets", format!("{} of {all}", frames.len())),
        ];
        if left_out > 0 {
            let what = "that are not whole Ethernet frames, or too long for the link";
            announcement.push(("without", format!("{left_out} {what}")));
        }
        announcement.push(("pace", schedule.describe(options)));
        announcement.push(("until", until(options, end)));
        announce(&opened, &announcement, options.quiet, console)?;
        let source = FrameList::new(frames, options.forever);
        let ways = (vec![opened], vec![source], settings);
        let sent = send(ways, &stop, options.quiet, console);
        let more = json!({"kind": "gallery", "left_out": left_out});
        self.conclude(sent, &Vec::new(), more, console)
    }

    fn simulation(&self, mut simulation: Simulation, console: &mut Console<'_>) -> Result {
        let options = &self.options;
        self.one_queue()?;
        simulation.snap_len = 0;
        let (vantage, names) = self.vantage(&simulation)?;
        // Created before the work, as in `write`.
        let truth_file = options.truth.as_deref().map(Pending::create).transpose()?;
        let (mut opened, stop) = self.open(None, None, console)?;
        let schedule = self.schedule(&opened, Schedule::Own(1.0))?;
        let speed = match schedule {
            Schedule::Own(factor) => factor,
            Schedule::Top | Schedule::Rate(_) => 1.0,
        };
        let plan = Plan {
            vantage,
            name: self.name.clone(),
            speed,
            forever: options.forever,
            link: self.link(&opened),
            simulation,
        };
        let average = average_of(&plan.simulation);
        let settings = schedule.settings(options, (1, average, plan.simulation.epoch))?;
        let (mechanism, seed) = (plan.simulation.mechanism.id(), plan.simulation.seed);
        let (name, about) = (&self.name, &self.about);
        let end = (!options.forever).then_some("the simulation's end");
        let mut announcement = vec![
            (
                "what",
                format!("{name}: {about} ({mechanism}, seed {seed})"),
            ),
            ("vantage", names.join(", ")),
            ("pace", schedule.describe(options)),
            ("until", until(options, end)),
        ];
        if let Some(mtu) = plan.link.mtu
            && let Some((flow, len)) = too_long(&plan.simulation, mtu)
        {
            let link = opened
                .interface
                .as_ref()
                .map_or("the link", Interface::name);
            let takes = format!(
                "{link} sends at most {}: they are left out (--set mtu=…)",
                mtu + 14
            );
            let packets = format!("data packets of flow {flow} have {len} octets");
            announcement.push(("too long", format!("{packets}, but {takes}")));
        }
        if options.truth.is_some() {
            let which = "of all vantage points, in the simulation's own time";
            announcement.push(("truth", which.to_owned()));
        }
        for queue in &mut opened.queues {
            if let Queue::File(file) = queue {
                file.describe(CapturePoints::named(names.clone()));
            }
        }
        announce(&opened, &announcement, options.quiet, console)?;
        let played = Played::default();
        let (sent, truth) = thread::scope(|scope| {
            let (player, frames) = pair(&played);
            let (plan, stop) = (&plan, &stop);
            let player = scope.spawn(move || player.play(plan, stop));
            played.wait(stop);
            // The player ends when the receiver of its frames is gone.
            let ways = (vec![opened], vec![frames], settings);
            let sent = send(ways, stop, options.quiet, console);
            let outcome = player.join();
            let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (sent, outcome)
        });
        let truth = truth.map_err(|error| {
            Failure::failed("the simulation failed")
                .and(&self.name)
                .and(error)
        })?;
        let mut lines = Lines::new();
        let (too_long, longest) = played.too_long();
        if too_long > 0 {
            let packets = counted(too_long, "packet");
            let text = format!("{packets} longer than the link sends, up to {longest} octets");
            lines.push(("left out", text));
        }
        // The player is ahead: it may have finished before the sender.
        let truth = truth.filter(|(_, frames)| sent.0.total.pushed >= *frames);
        let complete = truth.is_some() && options.truth.is_some();
        match (truth_file, truth) {
            (Some(pending), Some((truth, _))) => pending.finish(&truth.document()?)?,
            (Some(_), None) => {
                let why = "not written: the simulation was not sent to its end";
                lines.push(("truth", why.to_owned()));
            }
            (None, _) => {}
        }
        let file = options.truth.as_ref().filter(|_| complete);
        let more = json!({
            "kind": "simulation",
            "mechanism": mechanism,
            "seed": seed,
            "left_out": too_long,
            "truth": file.map(|path| path.display().to_string()),
        });
        self.conclude(sent, &lines, more, console)
    }

    /// Returns the selected vantage point (`None`: all), and the names of the vantage points that
    /// are sent.
    fn vantage(&self, simulation: &Simulation) -> Result<(Option<usize>, Vec<String>)> {
        let names = simulation.vantage_names();
        let Some(first) = names.first() else {
            return Err(Failure::usage("the scenario has no vantage point")
                .and(&self.name)
                .and("only packets that pass one are sent: --set 'vantage=[\"NODE:PEER\"]'"));
        };
        match self.options.vantage.as_deref() {
            Some(ALL) => Ok((None, names)),
            None => Ok((Some(0), vec![first.clone()])),
            Some(name) => names
                .iter()
                .position(|known| known == name)
                .map(|index| (Some(index), vec![name.to_owned()]))
                .ok_or_else(|| {
                    Failure::usage("--vantage").and(format!(
                        "no vantage point `{name}`; expected one of {}, {ALL}",
                        names.join(", ")
                    ))
                }),
        }
    }

    /// Returns the frame length limits and new addresses for the link.
    fn link(&self, opened: &Opened) -> Link {
        let interface = opened.interface.as_ref();
        let rewrite = (!self.options.keep_macs).then(|| Rewrite {
            source: self.source_mac(interface),
            destination: self.options.peer_mac,
        });
        let slots = opened.queues.iter().map(Queue::slot_len);
        Link {
            rewrite: rewrite.unwrap_or_default(),
            mtu: interface.map(|interface| interface.mtu() as usize),
            longest: slots.min().unwrap_or(0),
        }
    }
}

/// Estimates the average frame length of a simulation, in octets.
fn average_of(simulation: &Simulation) -> usize {
    let mtus = simulation.flows.iter().map(|flow| usize::from(flow.mtu));
    mtus.sum::<usize>() / simulation.flows.len().max(1) + DATA_HEADERS.0
}

/// Returns the flow with the longest data packets, and their length in octets, if it exceeds a link
/// of this MTU.
fn too_long(simulation: &Simulation, mtu: usize) -> Option<(&str, usize)> {
    let lengths = simulation.flows.iter().map(|flow| {
        let headers = if flow.source.is_ipv4() {
            DATA_HEADERS.0
        } else {
            DATA_HEADERS.1
        };
        (flow.name.as_str(), usize::from(flow.mtu) + headers)
    });
    let longest = lengths.max_by_key(|(_, len)| *len)?;
    (longest.1 > mtu + 14).then_some(longest)
}

/// Returns the number of frames sent of each kind, over all queues.
fn kinds(stress: &Stress, report: &Report) -> Vec<(Kind, u64)> {
    let mut all: Vec<(Kind, u64)> = stress.mix.iter().map(|(kind, _)| (*kind, 0)).collect();
    for queue in &report.queues {
        for (sum, (_, count)) in all.iter_mut().zip(stress.kinds_of(queue.counts.pushed)) {
            sum.1 += count;
        }
    }
    all
}
