//! The `emulate` command: opens the links of a node, runs it, and reports before, during and after.

use super::drive::{Drive, LinkTraffic, Measured, RunEnd};
use super::metrics::{self, Names};
use super::report::{LinkReport, Outage, Report};
use super::translator::{self, Part};
use crate::cli::Emulate;
use crate::device::fault::{self, InjectedFault, Injector};
use crate::device::{
    DATA_HEADERS, Enabled, Faulty, LinkNode, Played, Role, injects, interfaces, is_one, load, open,
    refuse_longer,
};
use crate::scenario::Scenario;
use crate::scenario::model::{Flow, NodeId, NodeKind, Simulation};
use crate::sim::live::LiveNode;
use crate::units::Ps;
use fcn_link::clock::{Monotonic, Waiting};
use fcn_link::port::Port;
use fcn_tool::console::{Console, print, print_json};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::{bits_per_second, grouped};
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the report's schema.
pub const EMULATE_SCHEMA: &str = "fcn-gen/emulate";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const EMULATE_VERSION: u32 = 1;

/// A duration that never ends in practice, but does not overflow in sums of times: a hundred days.
const FOREVER: Ps = Ps(100 * 24 * 3_600 * Ps::SECOND.0);

/// Runs `emulate` with these options.
///
/// # Errors
/// The scenario is invalid, the role cannot be played, a link cannot be opened or fails, no traffic
/// passed, or the run was interrupted.
pub fn emulate(options: &Emulate, console: &mut Console<'_>) -> Result {
    match options.role {
        Part::Role(role) => emulate_node(options, role, console),
        Part::Translator => translator::emulate(options, console),
    }
}

/// Refuses a run without an end, unless that was requested.
///
/// # Errors
/// Neither a duration nor `--forever` is given.
pub fn demand_end(options: &Emulate) -> Result {
    if options.duration.is_none() && !options.forever {
        return Err(Failure::usage("emulate needs --duration or --forever")
            .and(options.role.id())
            .and("for example --duration 10s, or --forever until Ctrl-C"));
    }
    Ok(())
}

fn emulate_node(options: &Emulate, role: Role, console: &mut Console<'_>) -> Result {
    if options.fault.iter().any(|fault| fault == "list") {
        return print(console.out, &fault::listing(role));
    }
    let (scenario, mut simulation) = load(options.config.as_deref(), &options.sets)?;
    let node = role.node(&simulation, options.node.as_deref())?;
    let enabled = Enabled {
        fast_cnp: options.enable_fast_cnp,
        proxy: options.enable_proxy,
        wan_fcn: options.enable_wan_fcn,
    };
    let off = enabled.restrict(&mut simulation.nodes[node]);
    demand_end(options)?;
    bound(&mut simulation, options);
    let injector = match options.fault.as_slice() {
        [] => None,
        faults => Some(Injector::new(faults, role, &mut simulation, node)?),
    };
    let faults = injector.as_ref().map_or_else(Vec::new, Injector::report);
    let named = (&options.iface[..], options.allow_default_route, true);
    let played = interfaces(named, &simulation, node)?;
    let flows = simulation.flows.iter().filter(|flow| flow.from == node);
    let payload = flows.map(|flow| usize::from(flow.mtu)).max();
    refuse_longer(&played, payload.map_or(0, |payload| payload + DATA_HEADERS))?;
    let links = OpenLinks::new(options, played, console)?;
    if !options.quiet {
        let text = announcement(
            options,
            &scenario,
            &simulation,
            node,
            &links,
            (&off, &faults),
        );
        print(console.err, &text)?;
    }
    let macs = links.played.iter();
    let macs = macs.map(|p| p.interface.mac().unwrap_or_default());
    let mut live = LiveNode::new(&simulation, node, macs.collect(), options.peer_mac);
    if is_one(&options.iface, &simulation, node) {
        live.reflect();
    }
    let live = Faulty {
        node: live,
        injector,
    };
    let own = &simulation.nodes[node].name;
    let role_names = [role.id(), own, &scenario.name, simulation.mechanism.id()];
    let begins_flows = simulation.flows.iter().any(|flow| flow.from == node);
    let ends = simulation
        .flows
        .iter()
        .all(|flow| flow.from != node || flow.messages.is_some());
    let (run, live) = links.run(options, role_names, live, begins_flows && ends, console)?;
    let faults = live
        .injector
        .as_ref()
        .map_or_else(Vec::new, Injector::report);
    let live = live.node;
    let (passed_over, counters) = (live.passed_over(), live.counters());
    let opened = live.has_opened();
    let outcome = live.end(&scenario.name);
    let truth = outcome.truth;
    let ends_here = |flow: &Flow| flow.from == node || flow.to == node;
    let flows = simulation.flows.iter().zip(truth.flows);
    let report = Report {
        notified: (outcome.metrics.notifications.iter())
            .map(|(kind, count)| (kind.id(), *count))
            .collect(),
        passed_over: passed_over.named().collect(),
        faults,
        switch: truth
            .switches
            .into_iter()
            .find(|switch| switch.name == *own),
        flows: flows
            .filter_map(|(flow, truth)| ends_here(flow).then_some(truth))
            .collect(),
        ..Report::of(role_names, options.speed, &run, counters)
    };
    show(&report, options, console)?;
    conclude(
        run.ended,
        &report,
        (begins_flows, opened),
        injects(&simulation, node),
    )
}

/// Prints a report as the options demand.
pub fn show(report: &Report, options: &Emulate, console: &mut Console<'_>) -> Result {
    if options.json {
        print_json(console.out, report)
    } else if !options.quiet {
        print(console.out, &report.text())
    } else {
        Ok(())
    }
}

/// The opened interfaces of a run.
pub struct OpenLinks {
    pub played: Vec<Played>,
    /// Method of sending and receiving of each.
    pub modes: Vec<String>,
    ports: Vec<Port>,
    listener: Option<TcpListener>,
    stop: Arc<AtomicBool>,
}

/// A run that is over.
pub struct FinishedRun {
    pub ended: RunEnd,
    pub measured: Measured,
    pub links: Vec<LinkReport>,
}

impl OpenLinks {
    /// Opens the interfaces, and catches interruptions from then on.
    ///
    /// # Errors
    /// An interface or the port for metrics cannot be opened.
    pub fn new(options: &Emulate, played: Vec<Played>, console: &Console<'_>) -> Result<Self> {
        let listener = options
            .prometheus
            .map(fcn_tool::metrics::listen)
            .transpose()?;
        let stop = (console.catch_interrupt)()?;
        let ports = open(options.backend, &played)?;
        Ok(Self {
            modes: ports.iter().map(|port| port.mode().to_owned()).collect(),
            played,
            ports,
            listener,
            stop,
        })
    }

    /// Runs a node on the links, until its own flows are complete if `until_done` is set; `role` is
    /// the role, and the names of its node, its scenario and its mechanism.
    ///
    /// # Errors
    /// Metrics cannot be served, or a stream cannot be written to.
    pub fn run<N: LinkNode>(
        mut self,
        options: &Emulate,
        role: [&str; 4],
        mut node: N,
        until_done: bool,
        console: &mut Console<'_>,
    ) -> Result<(FinishedRun, N)> {
        let interfaces = self.played.iter();
        let names = Names {
            role: role.map(str::to_owned),
            interfaces: interfaces.map(|p| p.interface.name().to_owned()).collect(),
        };
        let page = metrics::page(&names, &Measured::default(), &mut node);
        let page = Arc::new(Mutex::new(page));
        let server = self.listener.take().map(|listener| {
            let page = Arc::clone(&page);
            fcn_tool::metrics::serve(listener, "fcn-gen", move || page.lock().clone())
        });
        let server = server.transpose()?;
        if let (Some(server), false) = (&server, options.quiet) {
            let text = format!("metrics  http://{}/metrics", server.address());
            print(console.err, &text)?;
        }
        // An unoptimised build works most of the time: with raised priority, several of them would
        // starve other programs.
        let mut clock = match cfg!(debug_assertions) {
            true => Monotonic::new(Waiting::Sleep),
            false => Monotonic::with_precedence(Waiting::Sleep),
        };
        let drive = Drive::new(&mut self.ports, &mut clock, node, options.speed);
        let mut before = Measured::default();
        let (ended, node, measured) = drive.run(
            options.duration,
            until_done,
            &self.stop,
            &mut |at, now, node| {
                if server.is_some() {
                    *page.lock() = metrics::page(&names, now, node);
                }
                let news: String = now.news.drain(..).map(|news| news + "\n").collect();
                if !options.quiet {
                    let text = news + &tick((at, options.speed), now, &before, node);
                    before.traffic.clone_from(&now.traffic);
                    // A closed standard error is no reason to stop.
                    let _ = console.err.write_all(text.as_bytes());
                }
            },
        );
        let run = FinishedRun {
            links: self.report(&measured),
            ended,
            measured,
        };
        Ok((run, node))
    }

    fn report(&self, measured: &Measured) -> Vec<LinkReport> {
        let links = self.played.iter().zip(&self.modes).zip(&self.ports);
        let links = links.zip(&measured.traffic);
        let links = links.map(|(((played, mode), port), passed)| {
            let outages = Outage::of(port);
            LinkReport {
                interface: played.interface.name().to_owned(),
                peer: played.peer.clone(),
                mode: mode.clone(),
                traffic: LinkTraffic {
                    refused: passed.refused.saturating_sub(outages.lost),
                    ..*passed
                },
                lost: port.lost(),
                outages,
            }
        });
        links.collect()
    }
}

/// Succeeds only if frames were received, unless the node injects packets, which have no answer,
/// and, if it begins flows, a connection was opened.
pub fn conclude(
    end: RunEnd,
    report: &Report,
    (begins_flows, opened): (bool, bool),
    injects: bool,
) -> Result {
    let received: u64 = report.links.iter().map(|link| link.traffic.received).sum();
    match end {
        RunEnd::Failed(why) => Err(Failure::failed(why)),
        RunEnd::Interrupted => Err(Failure::interrupted(format!(
            "frames received so far: {}",
            grouped(received)
        ))),
        RunEnd::TimeUp | RunEnd::Done if begins_flows && !opened => {
            Err(Failure::failed("no connection was opened")
                .and(&report.node)
                .and(
                    "is the receiver running (start it first), and do the devices between forward?",
                ))
        }
        RunEnd::TimeUp | RunEnd::Done if received == 0 && !injects => {
            Err(Failure::failed("no frame was received")
                .and(&report.node)
                .and("is the other end of the link up, and does it send?"))
        }
        RunEnd::TimeUp | RunEnd::Done => Ok(()),
    }
}

/// Extends the scenario to the duration of the run.
fn bound(simulation: &mut Simulation, options: &Emulate) {
    let lasts = options.duration.map_or(FOREVER, |duration| {
        Ps((duration.as_nanos() as f64 * 1e3 * options.speed) as u64).min(FOREVER)
    });
    let before = simulation.duration;
    simulation.duration = lasts.max(Ps(1));
    simulation.warm_up = Ps(lasts.0 / 2);
    for flow in &mut simulation.flows {
        // Flows that last until the scenario's end last until the run's end.
        if flow.stop >= before {
            flow.stop = simulation.duration;
        }
    }
    simulation.vantage_points.clear();
    simulation.snap_len = 0;
}

/// Describes the run before it starts.
fn announcement(
    options: &Emulate,
    scenario: &Scenario,
    simulation: &Simulation,
    node: NodeId,
    links: &OpenLinks,
    (off, faults): (&[(&str, &str)], &[InjectedFault]),
) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:<8} {what}");
    };
    let values = &simulation.nodes[node];
    let Scenario { name, about, .. } = scenario;
    let mechanism = simulation.mechanism.id();
    line("role", format!("{}: {}", options.role.id(), values.name));
    line("scenario", format!("{name}: {about} ({mechanism})"));
    let addresses = format!("{}, {}", values.ipv6, values.ipv4);
    line("address", addresses);
    for (played, mode) in links.played.iter().zip(&links.modes) {
        let link = &simulation.links[played.link];
        let rate = link.rate.bits_per_second() as f64 * options.speed;
        let mut what = format!(
            "{} to {}: {}",
            played.interface.name(),
            played.peer,
            bits_per_second(rate)
        );
        if link.delay > Ps(0) {
            let delay = Duration::from(link.delay).as_secs_f64() / options.speed;
            let _ = write!(what, ", {:?} long", Duration::from_secs_f64(delay));
        }
        line("link", format!("{what}; {mode}"));
    }
    if let NodeKind::Host(_) = values.kind {
        let begin = simulation.flows.iter().filter(|flow| flow.from == node);
        let end = simulation.flows.iter().filter(|flow| flow.to == node);
        let flows = format!("{} start here, {} end here", begin.count(), end.count());
        line("flows", flows);
    }
    let is_switch = matches!(values.kind, NodeKind::Switch(_));
    let grows = |flow: &Flow| flow.ioam.is_some_and(|ioam| ioam.incremental);
    if is_switch && simulation.flows.iter().any(grows) {
        let why = "incremental IOAM traces are forwarded unchanged; set trace = \"preallocated\" to add node data";
        line("without", why.to_owned());
    }
    if options.speed != 1.0 {
        let speed = options.speed;
        line(
            "speed",
            format!("{speed}: rates are multiplied by it, times divided"),
        );
    }
    for (what, option) in off {
        line("off", format!("{what}; {option} enables it"));
    }
    for InjectedFault { fault, about, .. } in faults {
        line("fault", format!("{fault}: {about}"));
    }
    line("until", end_of(options));
    text
}

/// Describes when a run ends.
pub fn end_of(options: &Emulate) -> String {
    match options.duration {
        Some(duration) => format!("{duration:?} have passed, or Ctrl-C"),
        None => "Ctrl-C".to_owned(),
    }
}

/// Formats the progress line.
fn tick(
    (at, speed): (u64, f64),
    now: &Measured,
    before: &Measured,
    node: &mut impl LinkNode,
) -> String {
    let sum = |measured: &Measured| {
        let traffic = measured.traffic.iter();
        traffic.fold((0, 0), |(received, sent), p| {
            (received + p.received, sent + p.sent)
        })
    };
    let ((received, sent), (received_before, sent_before)) = (sum(now), sum(before));
    let (delivered, rate, queue) = node.figures();
    let mut text = format!(
        "{:>7.1} s  {:>9} in/s  {:>9} out/s",
        at as f64 / 1e9,
        grouped(received - received_before),
        grouped(sent - sent_before),
    );
    if rate > 0.0 {
        let _ = write!(text, "  rates {}", bits_per_second(rate * speed));
    }
    if delivered > 0 {
        let _ = write!(text, "  {} octets delivered", grouped(delivered));
    }
    if queue > 0 {
        let _ = write!(text, "  queue {} octets", grouped(queue));
    }
    for (kind, times) in &now.reactions {
        let _ = write!(text, "  {} {}", grouped(times.len()), kind.id());
    }
    text.push('\n');
    text
}
