//! Plays the runs of a comparison on one thread per core; the result does not depend on the number
//! of threads.

use super::{Comparison, ComparisonRequest, Group, MECHANISM, Row};
use crate::scenario::model::{Mechanism, Simulation};
use crate::scenario::{self, Parameter, Play};
use crate::sim;
use crate::sim::outcome::Metrics;
use crate::units::Ps;
use fcn_tool::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Callback for progress: number of finished runs, and of all runs.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A group whose scenarios are loaded but not played: for each mechanism the scenario with each
/// seed, or the reason why it does not apply.
struct Loaded {
    value: Option<String>,
    rows: Vec<(Mechanism, Rows)>,
}

/// The simulations of a mechanism, or the reason why there are none.
type Rows = core::result::Result<Vec<Simulation>, String>;

impl Loaded {
    /// Returns the duration, and the time from which figures are measured: the same under every
    /// mechanism.
    fn played_for(&self) -> (Ps, Ps) {
        let mut simulations = self
            .rows
            .iter()
            .filter_map(|(_, loaded)| loaded.as_ref().ok()?.first());
        simulations.next().map_or((Ps(0), Ps(0)), |simulation| {
            (simulation.duration, simulation.warm_up)
        })
    }
}

/// Plays every run of `question`; ends with an error once `stop` is set.
///
/// # Errors
/// The scenario cannot be loaded under any mechanism, is a gallery, or its simulation fails; or it
/// was stopped.
pub fn compare(
    request: &ComparisonRequest,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<Comparison> {
    if request.sets.iter().any(|set| key(set) == MECHANISM) {
        return Err(Failure::usage("compare sets the mechanism itself")
            .and("choose mechanisms with --mechanisms, not with --set"));
    }
    if let Some(over) = &request.over
        && request.sets.iter().any(|set| key(set) == over.key)
    {
        return Err(Failure::usage("--over")
            .and(&over.key)
            .and("its values override --set; remove that"));
    }
    let base = scenario::load(&request.source, &request.sets)?;
    let Play::Simulation(simulation) = &base.play else {
        return Err(Failure::usage("nothing to compare")
            .and(&base.name)
            .and("it is not a simulation, so no mechanism applies to it"));
    };
    let question = &with_its_duration(request, &base.parameters, simulation);
    let first_seed = simulation.seed;
    let values: Vec<Option<&String>> = match &question.over {
        Some(over) => over.values.iter().map(Some).collect(),
        None => vec![None],
    };
    let groups = values.into_iter();
    let groups = groups.map(|value| load_group(question, first_seed, value));
    let loaded = groups.collect::<Result<Vec<_>>>()?;
    let rows = loaded.iter().flat_map(|group| &group.rows);
    let simulations: Vec<_> = rows.flat_map(|(_, loaded)| loaded).flatten().collect();
    let mut results = play_all(&base.name, &simulations, stop, progress)?.into_iter();
    let mut row = |(mechanism, loaded): (_, Rows)| Row {
        mechanism,
        played: loaded.map(|simulations| results.by_ref().take(simulations.len()).collect()),
    };
    let groups = loaded.into_iter().map(|loaded| Group {
        played_for: loaded.played_for(),
        value: loaded.value,
        rows: loaded.rows.into_iter().map(&mut row).collect(),
    });
    Ok(Comparison {
        groups: groups.collect(),
        scenario: base.name,
        seeds: (first_seed, question.seeds),
        over: question.over.as_ref().map(|over| over.key.clone()),
    })
}

/// Returns the question with the scenario's duration for comparisons, unless a duration is given.
fn with_its_duration(
    request: &ComparisonRequest,
    parameters: &[Parameter],
    simulation: &Simulation,
) -> ComparisonRequest {
    let mut question = request.clone();
    let sets_duration = |key: &str| {
        let parameter = parameters.iter().find(|p| p.name == key);
        key == DURATION || parameter.is_some_and(|p| p.sets.iter().any(|set| set == DURATION))
    };
    let over = question.over.iter().map(|over| &*over.key);
    let mut keys = question.sets.iter().map(|set| key(set)).chain(over);
    let given = keys.any(sets_duration);
    if let Some(duration) = simulation.compare_for.filter(|_| !given) {
        question.sets.push(format!("{DURATION}={}ps", duration.0));
    }
    question
}

/// Key of the duration.
const DURATION: &str = "duration";

/// Returns the key of `key=value`.
fn key(set: &str) -> &str {
    set.split('=').next().unwrap_or_default().trim()
}

fn load_group(
    request: &ComparisonRequest,
    first_seed: u64,
    value: Option<&String>,
) -> Result<Loaded> {
    let mut sets = request.sets.clone();
    if let (Some(over), Some(value)) = (&request.over, value) {
        sets.push(format!("{}={value}", over.key));
    }
    let row = |&mechanism: &Mechanism| {
        let seeds = (0..request.seeds).map(|seed| first_seed.saturating_add(seed.into()));
        let loaded: Rows = seeds
            .map(|seed| load_under(request, &sets, mechanism, seed))
            .collect();
        (mechanism, loaded)
    };
    let rows: Vec<_> = request.mechanisms.iter().map(row).collect();
    if rows.iter().all(|(_, loaded)| loaded.is_err()) {
        // A value that the scenario refuses under every mechanism has one reason, with its
        // position.
        scenario::load(&request.source, &sets)?;
        let reason = |(mechanism, loaded): &(Mechanism, Rows)| {
            Some(format!("{}: {}", mechanism.id(), loaded.as_ref().err()?))
        };
        let reasons: Vec<String> = rows.iter().filter_map(reason).collect();
        let what = "the scenario cannot be played under any of these mechanisms";
        return Err(Failure::usage(what).and(reasons.join("; ")));
    }
    Ok(Loaded {
        value: value.cloned(),
        rows,
    })
}

/// Loads the scenario as `write` does with these settings.
fn load_under(
    request: &ComparisonRequest,
    sets: &[String],
    mechanism: Mechanism,
    seed: u64,
) -> core::result::Result<Simulation, String> {
    let own = [
        format!("{MECHANISM}={}", mechanism.id()),
        format!("seed={seed}"),
    ];
    let sets = [sets, &own].concat();
    let scenario = scenario::load(&request.source, &sets).map_err(|error| error.message)?;
    match scenario.play {
        Play::Simulation(simulation) => {
            let is_fast = matches!(mechanism, Mechanism::FastCnp | Mechanism::FastCnpIoam);
            if is_fast && (simulation.flows.iter()).all(|flow| flow.source.is_ipv4()) {
                return Err("Fast CNPs are IPv6 only, but all flows are IPv4".to_owned());
            }
            Ok(*simulation)
        }
        Play::Gallery(_) | Play::Stress(_) => Err("it is not a simulation".to_owned()),
    }
}

/// Returns the figures of each simulation, in their order, or the first failure in that order.
fn play_all(
    name: &str,
    simulations: &[&Simulation],
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<Vec<Metrics>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(BTreeMap::new());
    let go_on = || !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed);
    let work = || {
        while go_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(simulation) = simulations.get(index) else {
                break;
            };
            let played = play(name, simulation, &go_on);
            failed.fetch_or(played.is_err(), Ordering::Relaxed);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(index, played);
            progress(done.len(), simulations.len());
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores.min(simulations.len()) {
            scope.spawn(work);
        }
        work();
    });
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("nothing was compared"));
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

fn play(name: &str, simulation: &Simulation, go_on: &dyn Fn() -> bool) -> Result<Metrics> {
    sim::play(simulation, name, None, &mut |_| go_on())
        .map(|outcome| outcome.metrics)
        .map_err(|error| {
            Failure::failed("the simulation failed")
                .and(format!("{name} under {}", simulation.mechanism.id()))
                .and(error.to_string())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Over;
    use crate::scenario::Source;

    #[test]
    fn given_duration_overrides_the_scenarios() {
        let sets = |set: Option<&str>, over: Option<&str>| {
            let request = ComparisonRequest {
                source: Source::Builtin("incast".to_owned()),
                sets: set.map(str::to_owned).into_iter().collect(),
                mechanisms: Vec::new(),
                seeds: 1,
                over: over.map(|over| Over::read(over).unwrap()),
            };
            let base = scenario::load(&request.source, &request.sets).unwrap();
            let Play::Simulation(simulation) = &base.play else {
                panic!("no simulation");
            };
            with_its_duration(&request, &base.parameters, simulation).sets
        };
        assert_eq!(sets(None, None), ["duration=100000000000ps"]);
        assert_eq!(sets(Some("senders=4"), None).len(), 2);
        assert_eq!(sets(Some("duration=2ms"), None), ["duration=2ms"]);
        assert_eq!(sets(None, Some("duration=1ms,2ms")), [""; 0]);
    }
}
