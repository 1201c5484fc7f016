//! The figures for comparing mechanisms: their definitions, units, and their median and range over
//! seeds.
//!
//! One list serves the table and the JSON report.

use crate::scenario::model::stem;
use crate::sim::outcome::Metrics;
use crate::units::{Ps, Rate};
use Unit::{BitsPerSecond, Change, Count, Nanoseconds, Octets, Ratio, Share};
use fcn_tool::quantity::grouped;
use fcn_wire::Kind;
use serde::Serialize;
use std::borrow::Cow;

/// Unit of a figure, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Octets.
    Octets,
    /// Bits per second.
    BitsPerSecond,
    /// A ratio, 0 to 1.
    Ratio,
    /// A share, 0 to 1, shown as a percentage.
    Share,
    /// A change as a share of the greater value, -1 to 1, shown as a percentage with its sign.
    Change,
    /// A number without unit.
    Count,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name in JSON, with the unit.
    pub id: Cow<'static, str>,
    /// Name in tables.
    pub label: Cow<'static, str>,
    /// Its unit.
    pub unit: Unit,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Of(fn(&Metrics) -> Option<f64>),
    Notifications(Kind),
    /// Goodput of the flows with these indices.
    Flows(Vec<usize>),
    /// Completion times of the flows with these indices.
    Completions(Vec<usize>),
}

impl Unit {
    const fn figure(
        self,
        id: &'static str,
        label: &'static str,
        value: fn(&Metrics) -> Option<f64>,
    ) -> Figure {
        Figure {
            id: Cow::Borrowed(id),
            label: Cow::Borrowed(label),
            unit: self,
            source: Source::Of(value),
        }
    }
}

/// Time from the onset of congestion to the first rate reduction.
pub const REACTION_TIME: Figure = Nanoseconds.figure("reaction_time_ns", "reaction time", |m| {
    m.reaction_time().and_then(time)
});
/// Average depth of the queue at the port where it is highest.
pub const MEAN_QUEUE: Figure =
    Octets.figure("mean_queue_octets", "mean queue", |m| Some(m.mean_queue));
/// Change of the mean queue within the measured time.
pub const QUEUE_DRIFT: Figure = Change.figure("mean_queue_drift", "queue drift", |m| {
    Some(m.drift(|half| half.queue))
});
/// Time at which all flows were complete.
pub const COMPLETION: Figure = Nanoseconds.figure("completion_ns", "all flows done", |m| {
    m.completion.and_then(time)
});
/// Goodput of all flows.
pub const GOODPUT: Figure = BitsPerSecond.figure("goodput_bps", "goodput", |m| Some(m.goodput));
/// Change of goodput within the measured time.
pub const GOODPUT_DRIFT: Figure = Change.figure("goodput_drift", "goodput drift", |m| {
    Some(m.drift(|half| half.goodput))
});
/// Change of the senders' rates within the measured time.
pub const RATE_DRIFT: Figure = Change.figure("rate_drift", "rate drift", |m| {
    Some(m.drift(|half| half.rate))
});
/// Packets lost.
pub const LOST: Figure = Count.figure("lost", "packets lost", |m| count(m.lost));
/// Share of the time in which the busiest port of a switch sends.
pub const UTILISATION: Figure = Share.figure("utilisation", "utilisation", |m| Some(m.utilisation));
/// Notifications about an episode of which another switch had notified already.
pub const REPEATED: Figure = Count.figure("told_twice", "of these repeated", |m| count(m.repeated));

/// Spread of a figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median; for an even number of values the mean of the middle two.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Number of seeds that have a value.
    pub seeds: usize,
}

impl Spread {
    /// Computes the spread of these values; `None` if there are none.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let seeds = values.len();
        let upper = *values.get(seeds / 2)?;
        let lower = *values.get((seeds - 1) / 2)?;
        Some(Self {
            median: f64::midpoint(lower, upper),
            min,
            max,
            seeds,
        })
    }

    /// Returns the spread with a range that is widened by this share at both ends.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        Self {
            min: self.min * (1.0 - share),
            max: self.max * (1.0 + share),
            ..self
        }
    }

    /// Returns true if the gap between the two ranges is more than half of the wider one. With few
    /// seeds, some of many ranges do not overlap by chance: this was observed with five seeds, and
    /// disproved with twenty. Measured in ratios if all values are above 0, because a value three
    /// times as large also varies three times as much.
    #[must_use]
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let are_ratios = self.min > 0.0 && other.min > 0.0;
        let place = |value: f64| if are_ratios { value.ln() } else { value };
        let [a, b] = [self, other].map(|spread| (place(spread.min), place(spread.max)));
        let apart = (a.0 - b.1).max(b.0 - a.1);
        let wider = (a.1 - a.0).max(b.1 - b.0);
        apart > wider / 2.0
    }
}

impl Figure {
    /// Returns true if it counts notifications of one kind.
    #[must_use]
    pub const fn is_of_notifications(&self) -> bool {
        matches!(self.source, Source::Notifications(_))
    }

    /// Returns its values in one run: one, or one per flow; none if the run has none, such as a
    /// reaction time without reaction.
    fn values(&self, metrics: &Metrics) -> Vec<f64> {
        match &self.source {
            Source::Of(of) => of(metrics).into_iter().collect(),
            Source::Notifications(kind) => {
                let sent = metrics.notifications.get(kind);
                vec![sent.map_or(0.0, |sent| *sent as f64)]
            }
            Source::Flows(flows) => flows
                .iter()
                .filter_map(|flow| Some(metrics.by_flow.get(*flow)?.1))
                .collect(),
            Source::Completions(flows) => flows
                .iter()
                .filter_map(|flow| time((*metrics.completion_by_flow.get(*flow)?)?))
                .collect(),
        }
    }

    /// Returns its spread over the runs of one mechanism.
    #[must_use]
    pub fn spread(&self, runs: &[Metrics]) -> Option<Spread> {
        Spread::from_values(runs.iter().flat_map(|run| self.values(run)))
    }

    /// Formats a table cell: the median, and the range if there are several different runs.
    #[must_use]
    pub fn cell(&self, runs: &[Metrics]) -> String {
        let Some(spread) = self.spread(runs) else {
            return "never".to_owned();
        };
        let mut cell = show(self.unit, spread.median);
        let (min, max) = (show(self.unit, spread.min), show(self.unit, spread.max));
        if min != max {
            // A common unit is shown only once.
            let alike = |(number, unit)| max.ends_with(&format!(" {unit}")).then_some(number);
            let min = min.split_once(' ').and_then(alike).unwrap_or(&min);
            cell += &format!("\n{min} to {max}");
        }
        let most = match &self.source {
            Source::Completions(flows) => flows.len() * runs.len(),
            _ => runs.len(),
        };
        if spread.seeds < most {
            cell += &format!("\nin {} of {most}", spread.seeds);
        }
        cell
    }
}

/// Returns all figures, in the order of the table.
#[must_use]
pub fn all() -> Vec<Figure> {
    let kinds = Kind::ALL.into_iter().map(|kind| Figure {
        id: format!("sent_{}", kind.id()).into(),
        label: format!("{} sent", kind.id()).into(),
        unit: Count,
        source: Source::Notifications(kind),
    });
    let before = [
        REACTION_TIME,
        Octets.figure("peak_queue_octets", "peak queue", |m| count(m.peak_queue)),
        Nanoseconds.figure("above_kmax_ns", "time above Kmax", |m| time(m.above_kmax)),
        MEAN_QUEUE,
        QUEUE_DRIFT,
        COMPLETION,
        UTILISATION,
        GOODPUT,
        GOODPUT_DRIFT,
        RATE_DRIFT,
        Ratio.figure("fairness", "fairness (Jain)", |m| Some(m.fairness)),
    ];
    let behind = [
        REPEATED,
        Count.figure("ce_marks", "CE marks", |m| count(m.marked)),
        Count.figure("pfc_frames", "PFC frames", |m| count(m.pauses)),
        LOST,
        Count.figure("sent_again", "retransmissions", |m| count(m.again)),
    ];
    before.into_iter().chain(kinds).chain(behind).collect()
}

fn goodput(id: &str, flow: &str, flows: Vec<usize>) -> Figure {
    Figure {
        id: id.to_owned().into(),
        label: format!("goodput of {flow}").into(),
        unit: BitsPerSecond,
        source: Source::Flows(flows),
    }
}

fn completion(id: &str, flow: &str, flows: Vec<usize>) -> Figure {
    Figure {
        id: id.to_owned().into(),
        label: format!("completion of {flow}").into(),
        unit: Nanoseconds,
        source: Source::Completions(flows),
    }
}

/// Returns goodput and completion time of each flow, by name, for runs of one scenario.
#[must_use]
pub fn of_each_flow(run: &Metrics) -> [Vec<Figure>; 2] {
    [goodput, completion].map(|figure| {
        let flows = run.by_flow.iter().enumerate();
        flows
            .map(|(index, (name, _))| figure(name, name, vec![index]))
            .collect()
    })
}

/// Returns the combined completion times, if any flow ends, and the combined goodput of flows whose
/// names differ only in their number: those of one entry of the file.
#[must_use]
pub fn of_like_flows(runs: &[&Metrics]) -> Vec<Figure> {
    let Some(run) = runs.first() else {
        return Vec::new();
    };
    let ends = |flow: &usize| {
        let mut completions = runs.iter().map(|run| run.completion_by_flow.get(*flow));
        completions.any(|completion| completion.is_some_and(Option::is_some))
    };
    let mut entries: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, (name, _)) in run.by_flow.iter().enumerate() {
        let stem = stem(name);
        match entries.iter_mut().find(|(known, _)| *known == stem) {
            Some((_, flows)) => flows.push(index),
            None => entries.push((stem, vec![index])),
        }
    }
    if entries.len() > MOST_ENTRIES {
        entries = vec![("flow", (0..run.by_flow.len()).collect())];
    }
    let title = |stem: &str, flows: &[usize]| match flows {
        [one] => run.by_flow[*one].0.clone(),
        _ => format!("each {stem}"),
    };
    let ended = entries.iter().filter(|(_, flows)| flows.iter().any(ends));
    let ended = ended.map(|(stem, flows)| completion(stem, &title(stem, flows), flows.clone()));
    let ended: Vec<Figure> = ended.collect();
    let goodputs = entries.into_iter().map(|(stem, flows)| {
        let title = title(stem, &flows);
        goodput(stem, &title, flows)
    });
    ended.into_iter().chain(goodputs).collect()
}

/// Maximum number of groups of flows that have rows in a table.
const MOST_ENTRIES: usize = 6;

fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

fn time(span: Ps) -> Option<f64> {
    Some(span.0 as f64 / 1e3)
}

/// Formats a value with its unit.
#[must_use]
pub fn show(unit: Unit, value: f64) -> String {
    match unit {
        Nanoseconds => Ps((significant(value) * 1e3) as u64).to_string(),
        Octets if value >= 1e6 => format!("{} MB", significant(value / 1e6)),
        Octets if value >= 1e3 => format!("{} kB", significant(value / 1e3)),
        Octets => format!("{} B", significant(value)),
        BitsPerSecond => Rate::new(significant(value) as u64)
            .map_or_else(|| "0".to_owned(), |rate| rate.to_string()),
        Ratio => format!("{value:.3}"),
        Share => format!("{:.1} %", value * 100.0),
        Change => format!("{:+.1} %", value * 100.0),
        Count => grouped(value.round() as u64),
    }
}

/// Rounds to three significant digits, since further ones are noise.
fn significant(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let digits = 2 - value.log10().floor() as i32;
    if digits >= 0 {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    } else {
        let scale = 10f64.powi(-digits);
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::metrics;
    use super::*;

    #[test]
    fn median_is_the_middle_or_the_mean_of_two() {
        let median = |values: &[f64]| Spread::from_values(values.iter().copied()).map(|s| s.median);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        let spread = Spread::from_values([9.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.min, spread.max, spread.seeds), (1.0, 9.0, 3));
    }

    #[test]
    fn values_are_shown_in_a_fitting_unit() {
        assert_eq!(show(Nanoseconds, 12_345.0), "12.3 µs");
        assert_eq!(show(Nanoseconds, 0.0), "0");
        assert_eq!(show(Octets, 512.0), "512 B");
        assert_eq!(show(Octets, 1_234_567.0), "1.23 MB");
        assert_eq!(show(BitsPerSecond, 98.76e9), "98.8 Gbit/s");
        assert_eq!(show(BitsPerSecond, 0.0), "0");
        assert_eq!(show(Ratio, 0.99951), "1.000");
        assert_eq!(show(Share, 0.9876), "98.8 %");
        assert_eq!(show(Change, 0.0321), "+3.2 %");
        assert_eq!(show(Count, 1_234_567.0), "1,234,567");
    }

    #[test]
    fn cells_show_range_and_missing_seeds() {
        let figure = REACTION_TIME;
        assert_eq!(figure.cell(&[metrics(Some(3_000))]), "3 µs");
        let runs = [metrics(Some(3_000)), metrics(Some(5_000)), metrics(None)];
        assert_eq!(figure.cell(&runs), "4 µs\n3 to 5 µs\nin 2 of 3");
        assert_eq!(figure.cell(&[metrics(None)]), "never");
    }

    #[test]
    fn names_are_unique_and_all_kinds_are_included() {
        let figures = all();
        let ids: std::collections::BTreeSet<_> = figures.iter().map(|f| &*f.id).collect();
        assert_eq!(ids.len(), figures.len());
        for kind in Kind::ALL {
            assert!(ids.contains(&*format!("sent_{}", kind.id())));
        }
    }
}
