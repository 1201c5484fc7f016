//! Plays the runs of a comparison on one thread per core; the result does not depend on the number
//! of threads.

use super::figures::{COMPLETION, Figure, GOODPUT, MEAN_QUEUE};
use super::thresholds::PortThresholds;
use super::{Best, Comparison, ComparisonRequest, Group, MECHANISM, Over, Row};
use crate::scenario::model::{MarkingPoint, Mechanism, NodeId, NodeKind, Simulation};
use crate::scenario::{self, Parameter, Play};
use crate::sim;
use crate::sim::outcome::Metrics;
use crate::units::Ps;
use fcn_tool::failure::{Failure, Result};
use std::collections::{BTreeMap, VecDeque};
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
    rows: Vec<(Mechanism, Vec<Candidate>)>,
}

/// A value of the parameter whose best value is chosen, and the scenarios with it; without such a
/// parameter, the only candidate has no value.
struct Candidate {
    value: Option<String>,
    loaded: Rows,
}

/// The simulations of a mechanism, or the reason why there are none.
type Rows = core::result::Result<Vec<Simulation>, String>;

impl Loaded {
    /// Returns the number of mechanisms under which it matters when packets are marked.
    fn marking_matters(&self) -> usize {
        let matters = |(mechanism, candidates): &&(Mechanism, Vec<Candidate>)| {
            let mut loaded = candidates.iter().flat_map(|candidate| &candidate.loaded);
            loaded.any(|simulations| marking_matters(*mechanism, simulations))
        };
        self.rows.iter().filter(matters).count()
    }

    /// Returns a simulation that can be played.
    fn any(&self) -> Option<&Simulation> {
        let mut simulations = self
            .rows
            .iter()
            .flat_map(|(_, candidates)| candidates)
            .filter_map(|candidate| candidate.loaded.as_ref().ok()?.first());
        simulations.next()
    }

    /// Returns the duration, and the time from which figures are measured: the same under every
    /// mechanism.
    fn played_for(&self) -> (Ps, Ps) {
        let any = self.any();
        any.map_or_else(Default::default, |any| (any.duration, any.warm_up))
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
    let swept = [("--over", &request.over), (EACH_AT_ITS_BEST, &request.best)];
    for (option, swept) in swept {
        if let Some(swept) = swept
            && request.sets.iter().any(|set| key(set) == swept.key)
        {
            return Err(Failure::usage(option)
                .and(&swept.key)
                .and("its values override --set; remove that"));
        }
    }
    if let (Some(over), Some(best)) = (&request.over, &request.best)
        && over.key == best.key
    {
        return Err(Failure::usage(EACH_AT_ITS_BEST)
            .and(&best.key)
            .and("--over compares the same parameter; use one of both"));
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
    let candidates = loaded.iter().flat_map(|group| &group.rows);
    let candidates = candidates.flat_map(|(_, candidates)| candidates);
    let simulations: Vec<_> = candidates.flat_map(|c| &c.loaded).flatten().collect();
    let marks_at_both = !gives_marking_point(question);
    let elsewhere = match marks_at_both {
        true => loaded.iter().map(Loaded::marking_matters).sum::<usize>(),
        false => 0,
    };
    let before = simulations.len();
    let all = before + elsewhere * question.seeds as usize;
    let results = play_all(&base.name, &simulations, stop, &|done, _| {
        progress(done, all);
    })?;
    let mut results = results.into_iter();
    let mut groups: Vec<_> = loaded
        .into_iter()
        .map(|loaded| {
            let (value, played_for) = (loaded.value.clone(), loaded.played_for());
            let round_trip = loaded.any().map(round_trip).unwrap_or_default();
            let rows = loaded.rows.into_iter();
            let rows = rows.map(|row| choose(row, question.best.as_ref(), &mut results));
            (value, played_for, round_trip, rows.collect::<Vec<_>>())
        })
        .collect();
    let rows = groups.iter_mut().flat_map(|(.., rows)| rows);
    let flipped = rows.filter(|_| marks_at_both).filter_map(Chosen::flip);
    let flipped: Vec<(&mut Row, MarkingPoint, Vec<Simulation>)> = flipped.collect();
    let simulations: Vec<_> = flipped.iter().flat_map(|(.., played)| played).collect();
    let progress = |done, _| progress(before + done, all);
    let mut results = play_all(&base.name, &simulations, stop, &progress)?.into_iter();
    for (row, marks_at, played) in flipped {
        let runs = results.by_ref().take(played.len()).collect();
        row.elsewhere = Some((marks_at, runs));
    }
    let groups = groups.into_iter();
    let groups = groups.map(|(value, played_for, round_trip, rows)| Group {
        value,
        played_for,
        round_trip,
        rows: rows.into_iter().map(|chosen| chosen.row).collect(),
    });
    Ok(Comparison {
        groups: groups.collect(),
        scenario: base.name,
        seeds: (first_seed, question.seeds),
        over: question.over.as_ref().map(|over| over.key.clone()),
    })
}

/// A mechanism with the value chosen for it.
struct Chosen {
    row: Row,
    /// The simulations that the row's figures are from.
    simulations: Vec<Simulation>,
}

impl Chosen {
    /// Returns the simulations with packets marked at the other point, and that point, if this
    /// matters.
    fn flip(&mut self) -> Option<(&mut Row, MarkingPoint, Vec<Simulation>)> {
        if !marking_matters(self.row.mechanism, &self.simulations) {
            return None;
        }
        let mut other = MarkingPoint::default();
        let mut simulations = std::mem::take(&mut self.simulations);
        for simulation in &mut simulations {
            for node in &mut simulation.nodes {
                let NodeKind::Switch(switch) = &mut node.kind else {
                    continue;
                };
                for port in switch.ports.values_mut() {
                    other = port.marks_at.other();
                    port.marks_at = other;
                }
            }
        }
        Some((&mut self.row, other, simulations))
    }
}

/// Share of a flow's round trip that a mark has to wait in a queue at Kmax for the point of marking
/// to matter.
const WAIT: f64 = 0.1;

/// Returns true if it matters whether packets are marked on arrival or on departure: a mark set on
/// arrival waits in the queue, which is long compared with the round trip.
fn marking_matters(mechanism: Mechanism, simulations: &[Simulation]) -> bool {
    let Some(simulation) = simulations.first() else {
        return false;
    };
    if matches!(mechanism, Mechanism::None | Mechanism::Pfc) {
        return false;
    }
    let thresholds = PortThresholds::of(simulation).into_iter();
    let waits = thresholds.map(|port| port.rate.time(port.marking.kmax));
    let wait = waits.max().unwrap_or_default();
    wait.as_seconds_f64() > WAIT * round_trip(simulation).as_seconds_f64()
}

/// Returns the propagation delay from the first flow's sender to its receiver and back.
fn round_trip(simulation: &Simulation) -> Ps {
    let flow = simulation.flows.first();
    let way = flow.and_then(|flow| way(simulation, flow.from, flow.to));
    way.map_or(Ps(0), |way| way + way)
}

/// Returns the propagation delay from one node to another, along a path with the fewest links.
fn way(simulation: &Simulation, from: NodeId, to: NodeId) -> Option<Ps> {
    let mut neighbours = vec![Vec::new(); simulation.nodes.len()];
    for link in &simulation.links {
        neighbours[link.a].push((link.b, link.delay));
        neighbours[link.b].push((link.a, link.delay));
    }
    let mut known = vec![None; simulation.nodes.len()];
    known[from] = Some(Ps(0));
    let mut next = VecDeque::from([from]);
    while let Some(node) = next.pop_front() {
        for &(neighbour, delay) in &neighbours[node] {
            if known[neighbour].is_none() {
                known[neighbour] = known[node].map(|way: Ps| way + delay);
                next.push_back(neighbour);
            }
        }
    }
    known[to]
}

/// Takes the results of a mechanism's simulations, and chooses the candidate under which it does
/// best: of those whose figures have settled, if there are any, the shortest mean queue among those
/// whose goodput is within [`NEARLY`] of the highest; for flows that all end, of those that end
/// nearly as early as the earliest.
fn choose(
    (mechanism, candidates): (Mechanism, Vec<Candidate>),
    over: Option<&Over>,
    results: &mut impl Iterator<Item = Metrics>,
) -> Chosen {
    let played = candidates.into_iter().map(|Candidate { value, loaded }| {
        let (played, simulations) = match loaded {
            Ok(simulations) => (
                Ok(results.by_ref().take(simulations.len()).collect()),
                simulations,
            ),
            Err(why) => (Err(why), Vec::new()),
        };
        let mut row = Row::new(mechanism, played);
        row.thresholds = simulations
            .first()
            .map(PortThresholds::of)
            .unwrap_or_default();
        (value, Chosen { row, simulations })
    });
    let mut played: Vec<_> = played.collect();
    let median = |row: &Row, figure: &Figure| Some(figure.spread(row.runs()?)?.median);
    let speed = |row: &Row| match median(row, &COMPLETION) {
        Some(completion) => 1.0 / completion.max(1.0),
        None => median(row, &GOODPUT).unwrap_or(0.0),
    };
    let queue = |row: &Row| median(row, &MEAN_QUEUE).unwrap_or(0.0);
    let is_settled = |row: &Row| row.runs().is_some() && row.unsettled().is_empty();
    let any_settled = played.iter().any(|(_, chosen)| is_settled(&chosen.row));
    let counts = |row: &Row| match any_settled {
        true => is_settled(row),
        false => row.runs().is_some(),
    };
    let rows = || played.iter().map(|(_, chosen)| &chosen.row);
    let fastest = rows()
        .filter(|row| counts(row))
        .map(speed)
        .fold(0.0, f64::max);
    let good = rows().enumerate();
    let good = good.filter(|(_, row)| counts(row) && speed(row) >= fastest * NEARLY);
    let best = good.min_by(|(_, a), (_, b)| queue(a).total_cmp(&queue(b)));
    let best = best.map_or(0, |(index, _)| index);
    let figures = |row: &Row| match &row.played {
        Ok(_) => Ok((median(row, &GOODPUT).unwrap_or(0.0), queue(row))),
        Err(why) => Err(why.clone()),
    };
    let tried = played
        .iter()
        .map(|(value, chosen)| (value.clone().unwrap_or_default(), figures(&chosen.row)));
    let tried: Vec<_> = tried.collect();
    let (value, mut chosen) = played.swap_remove(best);
    if let (Some(over), Some(value), Ok(_)) = (over, value, &chosen.row.played) {
        chosen.row.best = Some(Best {
            key: over.key.clone(),
            value,
            tried,
        });
    }
    chosen
}

/// Share of the highest goodput that is nearly as high.
const NEARLY: f64 = 0.99;

/// Returns true if the question gives the point at which packets are marked: then only that is
/// played.
fn gives_marking_point(question: &ComparisonRequest) -> bool {
    let swept = [&question.over, &question.best].into_iter().flatten();
    let swept = swept.map(|over| &*over.key);
    let mut keys = question.sets.iter().map(|set| key(set)).chain(swept);
    keys.any(|key| key.ends_with("marking.at"))
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

/// Option that sweeps a parameter for each mechanism.
pub const EACH_AT_ITS_BEST: &str = "--each-at-its-best";
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
    let candidate = |mechanism, value: Option<&String>| {
        let own = request.best.as_ref().zip(value);
        let own = own.map(|(best, value)| format!("{}={value}", best.key));
        let sets: Vec<String> = sets.iter().cloned().chain(own).collect();
        let seeds = (0..request.seeds).map(|seed| first_seed.saturating_add(seed.into()));
        let loaded: Rows = seeds
            .map(|seed| load_under(request, &sets, mechanism, seed))
            .collect();
        Candidate {
            value: value.cloned(),
            loaded,
        }
    };
    if let Some(best) = &request.best {
        // A value that the scenario refuses whatever the mechanism has a reason with its position.
        for value in &best.values {
            let own = format!("{}={value}", best.key);
            scenario::load(&request.source, &[&sets[..], &[own]].concat())?;
        }
    }
    let row = |&mechanism: &Mechanism| {
        let candidates = match &request.best {
            Some(best) => {
                let values = best.values.iter().map(Some);
                values.map(|value| candidate(mechanism, value)).collect()
            }
            None => vec![candidate(mechanism, None)],
        };
        (mechanism, candidates)
    };
    let rows: Vec<_> = request.mechanisms.iter().map(row).collect();
    let mut candidates = rows.iter().flat_map(|(_, candidates)| candidates);
    if candidates.all(|candidate| candidate.loaded.is_err()) {
        // A value that the scenario refuses under every mechanism has one reason, with its
        // position.
        scenario::load(&request.source, &sets)?;
        let reason = |(mechanism, candidates): &(Mechanism, Vec<Candidate>)| {
            let why = candidates.first()?.loaded.as_ref().err()?;
            Some(format!("{}: {why}", mechanism.id()))
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
                over: over.map(|over| Over::read("--over", over).unwrap()),
                best: None,
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
