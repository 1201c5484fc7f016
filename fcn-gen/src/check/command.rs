//! The `check` command: scenario, interfaces, main loop and reports.

use super::bench::{Bench, LinkReport, parse};
use super::judge::{Outcome, Verdict, untested_core};
use super::plan::{Limits, Plan, Setup, test_network, usual_config};
use super::receiver;
use super::report::{self, CheckInfo, CheckRun, RunEnd};
use super::roles::{judge, plan};
use super::statements::Test;
use super::test_plan;
use crate::cli::{Check, CheckCommand};
use crate::describe::quoted;
use crate::device::{DATA_HEADERS, Role, Wire, interfaces, load, open, refuse_longer};
use crate::scenario::model::{NodeId, Simulation};
use crate::units::Ps;
use fcn_link::clock::{Clock, Monotonic, Waiting};
use fcn_link::port::TURN;
use fcn_tool::console::{Console, print, print_json};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::Profile;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum wait, so that interruptions are handled promptly.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Time limit for the first packet of a device that begins by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `check`, or prints a plan for it.
///
/// # Errors
/// Those of [`check`].
pub fn command(command: CheckCommand, console: &mut Console<'_>) -> Result {
    if command.plan_template {
        return print(console.out, &test_plan::template(command.role));
    }
    let Some(role) = command.role else {
        return Err(Failure::usage("no role").and("add role to the plan, or name it"));
    };
    let plan = command.plan.map(|plan| plan.display().to_string());
    let options = Check {
        role,
        ..command.options
    };
    check(&options, plan, console)
}

/// Runs `check` with these options, which came from `plan` if there is one.
///
/// # Errors
/// The scenario is invalid, a link cannot be opened or fails, a test fails, the result is
/// inconclusive, or the check was interrupted.
fn check(options: &Check, plan_file: Option<String>, console: &mut Console<'_>) -> Result {
    let (name, simulation, device) = network(options)?;
    let mut setup = Setup::new(&simulation, device, options.role, options.off);
    setup.limits = Limits {
        flow_rate: options.flow_rate,
        latency: options.max_latency.into(),
        share: options.min_share,
    };
    select(&mut setup, options)?;
    let plan = plan(&setup)?;
    let info = CheckInfo {
        role: options.role.id(),
        device: &simulation.nodes[device].name,
        scenario: &name,
        off: options.off,
        speed: options.speed,
        dut: options.dut.as_deref(),
        date: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        command: command_line(std::env::args_os()),
        settings: settings(options, plan_file),
        profile: &simulation.profile,
    };
    if options.dry_run {
        return if options.json {
            print_json(console.out, &report::dry_json(&info, &setup, &plan))
        } else {
            print(console.out, &report::dry_text(&info, &setup, &plan))
        };
    }
    let named = (&options.iface[..], options.allow_default_route, false);
    let played = interfaces(named, &simulation, device)?;
    let flows = simulation.flows.iter();
    let played_flows = flows.filter(|flow| plan.peers.contains(&flow.from));
    let payload = played_flows.map(|flow| usize::from(flow.mtu)).max();
    let longest = plan
        .longest()
        .max(payload.map_or(0, |payload| payload + DATA_HEADERS));
    refuse_longer(&played, longest)?;
    if let Some(folder) = &options.output {
        let files = report::FILES.map(|name| folder.join(name));
        options
            .replacing
            .check(files.iter().map(|file| Some(&**file)))?;
        std::fs::create_dir_all(folder).map_err(|error| Failure::io("write", folder, &error))?;
    }
    let stop = (console.catch_interrupt)()?;
    let mut ports = open(options.backend, &played)?;
    if !options.quiet {
        let links = played.iter().zip(&ports);
        let links = links
            .map(|(played, port)| (played.interface.name(), played.peer.as_str(), port.mode()));
        print(console.err, &report::announcement(&info, &plan, links))?;
    }
    let macs: Vec<_> = played
        .iter()
        .map(|p| p.interface.mac().unwrap_or_default())
        .collect();
    let bench = Bench::new(&simulation, device, &macs, options.peer_mac, plan);
    let mut clock = Monotonic::new(Waiting::Sleep);
    let mut step = usize::MAX;
    let quiet = options.quiet;
    let mut ran = run(
        bench,
        &mut ports,
        &mut clock,
        options.speed,
        &stop,
        &mut |at, plan| {
            let now = plan
                .steps
                .iter()
                .position(|step| step.time.contains(&at))
                .unwrap_or(usize::MAX);
            if let Some(begins) = plan.steps.get(now).filter(|_| now != step && !quiet) {
                let _ = writeln!(console.err, "{:<12} {}", begins.id, begins.description);
            }
            step = now;
        },
    );
    let links: Vec<_> = played
        .iter()
        .zip(&ports)
        .map(|(played, port)| LinkReport {
            interface: played.interface.name().to_owned(),
            peer: played.peer.clone(),
            mode: port.mode().to_owned(),
            refused: port.refused(),
            lost: port.lost(),
        })
        .collect();
    ran.record.lost_here = links.iter().filter_map(|link| link.lost).sum();
    let judgement = judge(&setup, &ran.plan, &ran.record);
    let outcomes = &judgement.outcomes;
    let whole = report::json(&info, &ran, &links, &judgement)?;
    if let Some(folder) = &options.output {
        report::write(
            folder,
            &whole,
            &info,
            (&links, &simulation),
            (&ran.record, outcomes),
        )?;
    }
    if options.json {
        print_json(console.out, &whole)?;
    } else if !options.quiet {
        print(
            console.out,
            &report::text(&ran, &links, &judgement, options.output.as_deref()),
        )?;
    }
    conclude(&ran.end, outcomes, options.strict)
}

/// Returns the command line as a shell takes it.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let words = words.enumerate().map(|(place, word)| match place {
        0 => "fcn-gen".to_owned(),
        _ => quoted(&word.to_string_lossy()),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the settings that decide on results, by name.
fn settings(options: &Check, plan: Option<String>) -> Vec<(&'static str, String)> {
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(", "));
    let mac = |mac: [u8; 6]| mac.map(|octet| format!("{octet:02x}")).join(":");
    let all = [
        ("Plan", plan),
        ("Parameters", list(&options.sets)),
        ("Speed", Some(options.speed.to_string())),
        (
            "At most about one flow",
            Some(format!("{} notifications a second", options.flow_rate)),
        ),
        (
            "Maximum latency",
            Some(format!("{:?}", options.max_latency)),
        ),
        (
            "Minimum share of flows notified",
            Some(options.min_share.to_string()),
        ),
        ("Only", list(&options.only)),
        ("Left out", list(&options.skip)),
        ("Sent to", options.peer_mac.map(mac)),
    ];
    let given = all.into_iter();
    given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns the scenario's name, the network around the device, and the device's node.
fn network(options: &Check) -> Result<(String, Simulation, NodeId)> {
    let usual = usual_config(options.role);
    let config = options.config.as_deref().or(usual);
    let (scenario, simulation) = load(config, &options.sets)?;
    let device = options.role.node(&simulation, options.node.as_deref())?;
    let simulation = prepared(&simulation, device, options.role, options.flow_rate);
    Ok((scenario.name, simulation, device))
}

/// Returns the network as it is played around the device.
pub fn prepared(simulation: &Simulation, device: NodeId, role: Role, flow_rate: u32) -> Simulation {
    let mut simulation = test_network(simulation, device);
    if role == Role::Receiver {
        receiver::raise_rates(&mut simulation, device, flow_rate);
    }
    simulation
}

/// Keeps the tests selected by the options.
fn select(setup: &mut Setup<'_>, options: &Check) -> Result {
    let is_named = |test: &Test, name: &str| test.id().starts_with(name);
    for name in options.only.iter().chain(&options.skip) {
        if !setup.wanted.iter().any(|test| is_named(test, name)) {
            return Err(Failure::usage("--only, --skip")
                .and(format!("`{name}`"))
                .and(format!(
                    "a {} has no such test; --dry-run lists them",
                    options.role.id()
                )));
        }
    }
    let only = &options.only;
    setup.wanted.retain(|test| {
        (only.is_empty() || only.iter().any(|name| is_named(test, name)))
            && !options.skip.iter().any(|name| is_named(test, name))
    });
    if !setup.wanted.iter().any(|test| setup.applies(*test)) {
        return Err(Failure::usage("no test is left")
            .and("--only, --skip, --off")
            .and("these exclude all tests, or the tests are about another mechanism (--set mechanism=…)"));
    }
    Ok(())
}

/// Executes a plan at `speed` times its own speed; `tell` is called with the plan's current time.
fn run<C: Clock>(
    mut bench: Bench<'_>,
    wire: &mut impl Wire,
    clock: &mut C,
    speed: f64,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Ps, &Plan),
) -> CheckRun {
    let heard = match bench.plan().waits {
        true => wait_for_device(wire, clock, stop, bench.profile()),
        false => Ok(Vec::new()),
    };
    let start = clock.now();
    let mut since = vec![Ps(0); wire.links()];
    let mut failed = None;
    match heard {
        Ok(heard) => {
            for (link, bytes) in heard {
                bench.on_frame(Ps(0), Ps(0), link, &bytes);
            }
        }
        Err(why) => failed = Some(why),
    }
    let ended = loop {
        if let Some(why) = failed.take() {
            break RunEnd::Failed(why);
        }
        let now = Ps(((clock.now() - start) as f64 * 1e3 * speed) as u64);
        tell(now, bench.plan());
        if stop.load(Ordering::Relaxed) {
            break RunEnd::Interrupted;
        }
        // Frames already received are read before the end, even if the end is noticed late.
        match run_once(&mut bench, wire, clock, (start, speed), &mut since) {
            Ok(()) if bench.is_over(now) => break RunEnd::Done,
            Ok(()) => {}
            Err(why) => break RunEnd::Failed(why),
        }
    };
    let nanoseconds = clock.now() - start;
    let until = Ps((nanoseconds as f64 * 1e3 * speed) as u64);
    // Incomplete steps say nothing.
    let (plan, record) = bench.end(until);
    CheckRun {
        end: ended,
        plan,
        record,
        nanoseconds,
    }
}

/// Waits for a device that begins by itself; returns the frames read together with its first RoCEv2
/// packet.
fn wait_for_device<C: Clock>(
    wire: &mut impl Wire,
    clock: &mut C,
    stop: &AtomicBool,
    profile: &Profile,
) -> core::result::Result<Vec<(usize, Vec<u8>)>, String> {
    let until = clock.now() + PATIENCE.as_nanos() as u64;
    let mut heard = Vec::new();
    while !stop.load(Ordering::Relaxed) && clock.now() < until {
        let mut began = false;
        for link in 0..wire.links() {
            wire.receive(link, &mut |bytes| {
                began |= parse(bytes, profile).is_roce();
                heard.push((link, bytes.to_vec()));
            })?;
        }
        if began {
            break;
        }
        heard.clear();
        wire.wait(LONGEST_WAIT)?;
    }
    Ok(heard)
}

/// Reads the frames that are available, sends what is due, and waits.
fn run_once<C: Clock>(
    bench: &mut Bench<'_>,
    wire: &mut impl Wire,
    clock: &mut C,
    (start, speed): (u64, f64),
    since: &mut [Ps],
) -> core::result::Result<(), String> {
    if let Some(news) = wire.tend().first() {
        return Err(format!(
            "{news}: frames sent meanwhile are lost, so they show nothing about the device"
        ));
    }
    let at = |real: u64| Ps(((real - start) as f64 * 1e3 * speed) as u64);
    let mut any = 0;
    for (link, since) in since.iter_mut().enumerate() {
        let now = at(clock.now());
        let count = wire.receive(link, &mut |bytes| bench.on_frame(now, *since, link, bytes))?;
        if count < TURN {
            *since = now;
        }
        any += count;
    }
    bench.on_timer(at(clock.now()));
    let outgoing: Vec<_> = bench.take_outgoing().collect();
    for (link, bytes) in &outgoing {
        let since = at(clock.now());
        // A frame that the link refuses shows nothing about the device.
        if wire.send(*link, bytes, &[])? {
            bench.on_sent(since, *link, bytes);
        }
    }
    if !outgoing.is_empty() {
        wire.flush()?;
        bench.on_flushed(at(clock.now()));
    }
    if let Some(why) = bench.failure() {
        return Err(why);
    }
    if any > 0 {
        return Ok(());
    }
    let now = at(clock.now());
    let next = bench
        .next_timer()
        .map_or(Ps::MAX, |next| next)
        .min(bench.plan().end);
    if next > now {
        let for_ = Duration::from_nanos((next.since(now).0 as f64 / 1e3 / speed) as u64);
        wire.wait(for_.min(LONGEST_WAIT))?;
    }
    Ok(())
}

/// Succeeds only if the verdict is "passed"; with `strict`, all tests must have been run.
fn conclude(end: &RunEnd, outcomes: &[Outcome], strict: bool) -> Result {
    let [passed, _, failed, untested] = report::counts(outcomes);
    let tests = |count: usize| fcn_tool::quantity::counted(count as u64, "test");
    match end {
        RunEnd::Failed(why) => return Err(Failure::failed(why.clone())),
        RunEnd::Interrupted => {
            return Err(Failure::interrupted(format!(
                "tests so far: {passed} passed, {failed} failed"
            )));
        }
        RunEnd::Done => {}
    }
    match Verdict::new(outcomes) {
        Verdict::Failed => Err(Failure::broken(format!("{} failed", tests(failed)))),
        Verdict::Inconclusive => Err(match untested_core(outcomes) {
            Some(core) => {
                let what = format!("inconclusive: {} could not be tested", core.test.id());
                Failure::incomplete(what).and(&core.why)
            }
            None => Failure::incomplete("inconclusive: nothing could be tested").and(
                "see the report for reasons; is the device connected, up, and configured as in the \
                 scenario?",
            ),
        }),
        Verdict::Passed if strict && untested > 0 => Err(Failure::incomplete(format!(
            "{} could not be run",
            tests(untested)
        ))
        .and("see the report for reasons")),
        Verdict::Passed => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::judge::Grade;
    use crate::check::statements::Statement;

    fn conclusion(grades: &[(Statement, Grade)], strict: bool) -> String {
        let outcomes = grades.iter().map(|(statement, grade)| Outcome {
            test: Test::Statement(*statement),
            grade: *grade,
            why: "of a reason".to_owned(),
            judged: 1,
            frames: Vec::new(),
            times: 0,
        });
        let outcomes: Vec<_> = outcomes.collect();
        match conclude(&RunEnd::Done, &outcomes, strict) {
            Ok(()) => String::new(),
            Err(failure) => format!("{} {failure}", failure.exit().code()),
        }
    }

    #[test]
    fn only_failures_untested_core_tests_and_strictness_are_errors() {
        use Grade::{Failed, Passed, Untested};
        use Statement as S;
        let core = |grade| (S::FastCnpSent, grade);
        let other = |grade| (S::FastCnpQpCopied, grade);
        for (grades, strict, expected) in [
            (&[core(Passed), other(Untested)][..], false, ""),
            (&[core(Passed), other(Passed)], true, ""),
            (
                &[core(Passed), other(Untested)],
                true,
                "3 1 test could not be run",
            ),
            (&[core(Failed), other(Untested)], true, "4 1 test failed"),
            (&[core(Untested), other(Failed)], false, "4 1 test failed"),
            (
                &[core(Untested), other(Passed)],
                false,
                "3 inconclusive: fastcnp.sent could not be tested: of a reason",
            ),
            // Chosen without the core tests.
            (&[other(Passed)], false, ""),
            (
                &[other(Untested)],
                false,
                "3 inconclusive: nothing could be tested",
            ),
        ] {
            let said = conclusion(grades, strict);
            assert!(said.starts_with(expected), "{said}");
            assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
        }
    }
}
