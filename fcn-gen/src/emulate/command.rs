//! The `emulate` command: selects a node of a scenario, announces it, runs it on its links, and
//! reports.

use super::links::{OpenLinks, conclude, demand_end, end_of, show};
use super::report::Report;
use super::translator::{self, Part};
use crate::cli::Emulate;
use crate::device::fault::{self, InjectedFault, Injector};
use crate::device::{
    DATA_HEADERS, Enabled, Faulty, Role, injects, interfaces, is_one, load, refuse_longer,
};
use crate::scenario::Scenario;
use crate::scenario::model::{Flow, NodeId, NodeKind, Simulation};
use crate::sim::live::LiveNode;
use crate::units::Ps;
use fcn_tool::console::{Console, print};
use fcn_tool::failure::Result;
use fcn_tool::quantity::bits_per_second;
use std::fmt::Write as _;
use std::time::Duration;

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
