//! The figures by which mechanisms are compared: which, in which unit, and their median and range over seeds.
//!
//! One list serves the table and the JSON report.

use crate::sim::outcome::Metrics;
use crate::units::{Ps, Rate};
use fcn_tool::quantity::grouped;
use fcn_wire::Kind;
use serde::Serialize;

/// What a figure counts, and so how it is shown.
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
    /// A number of things.
    Count,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name in JSON, with its unit.
    pub id: String,
    /// Its name in tables.
    pub label: String,
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
}

/// A figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median: of two in the middle, their mean.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many seeds gave one.
    pub seeds: usize,
}

impl Spread {
    /// Of these values; `None` where there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
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

    /// Whether the two ranges are apart by more than half of the wider one. Of many ranges of few seeds some do not touch by
    /// chance: seen of five seeds, which twenty then denied.
    #[must_use]
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let apart = (self.min - other.max).max(other.min - self.max);
        let wider = (self.max - self.min).max(other.max - other.min);
        apart > wider / 2.0
    }
}

impl Figure {
    fn new(id: &str, label: &str, unit: Unit, of: fn(&Metrics) -> Option<f64>) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            unit,
            source: Source::Of(of),
        }
    }

    /// Whether it counts notifications of one kind.
    #[must_use]
    pub const fn is_of_notifications(&self) -> bool {
        matches!(self.source, Source::Notifications(_))
    }

    /// Its values in one run: one, or one of each flow; none where the run has none, as a reaction time has none where
    /// nobody reacted.
    fn values(&self, metrics: &Metrics) -> Vec<f64> {
        match &self.source {
            Source::Of(of) => of(metrics).into_iter().collect(),
            Source::Notifications(kind) => {
                vec![count(metrics.notifications.get(kind).copied().unwrap_or(0))]
            }
            Source::Flows(flows) => flows
                .iter()
                .filter_map(|flow| Some(metrics.by_flow.get(*flow)?.1))
                .collect(),
        }
    }

    /// Its spread over the runs of one mechanism.
    #[must_use]
    pub fn spread(&self, runs: &[Metrics]) -> Option<Spread> {
        Spread::of(runs.iter().flat_map(|run| self.values(run)))
    }

    /// For a table: the median, and the range where `runs` are several and differ.
    #[must_use]
    pub fn cell(&self, runs: &[Metrics]) -> String {
        let Some(spread) = self.spread(runs) else {
            return "never".to_owned();
        };
        let mut cell = show(self.unit, spread.median);
        let (min, max) = (show(self.unit, spread.min), show(self.unit, spread.max));
        if min != max {
            // A unit that both have stands once.
            let alike = |(number, unit)| max.ends_with(&format!(" {unit}")).then_some(number);
            let min = min.split_once(' ').and_then(alike).unwrap_or(&min);
            cell += &format!("\n{min} to {max}");
        }
        if spread.seeds < runs.len() {
            cell += &format!("\nin {} of {}", spread.seeds, runs.len());
        }
        cell
    }
}

/// Every figure, in the order of the table.
#[must_use]
pub fn all() -> Vec<Figure> {
    let mut figures = vec![
        reaction_time(),
        Figure::new("peak_queue_octets", "peak queue", Unit::Octets, |m| {
            Some(count(m.peak_queue))
        }),
        Figure::new("above_kmax_ns", "time above Kmax", Unit::Nanoseconds, |m| {
            Some(m.above_kmax.0 as f64 / 1e3)
        }),
        mean_queue(),
        queue_drift(),
        completion(),
        Figure::new("utilisation", "utilisation", Unit::Share, |m| {
            Some(m.utilisation)
        }),
        goodput(),
        goodput_drift(),
        rate_drift(),
        Figure::new("fairness", "fairness (Jain)", Unit::Ratio, |m| {
            Some(m.fairness)
        }),
        told_twice(),
        Figure::new("ce_marks", "CE marks", Unit::Count, |m| {
            Some(count(m.marked))
        }),
        Figure::new("pfc_frames", "PFC frames", Unit::Count, |m| {
            Some(count(m.pauses))
        }),
        Figure::new("lost", "packets lost", Unit::Count, |m| Some(count(m.lost))),
        Figure::new("sent_again", "packets sent again", Unit::Count, |m| {
            Some(count(m.again))
        }),
    ];
    let kinds = Kind::ALL.into_iter().map(|kind| Figure {
        id: format!("sent_{}", kind.id()),
        label: format!("{} sent", kind.id()),
        unit: Unit::Count,
        source: Source::Notifications(kind),
    });
    let behind_fairness = 1 + figures.iter().position(|f| f.id == "fairness").unwrap_or(0);
    figures.splice(behind_fairness..behind_fairness, kinds);
    figures
}

/// Goodput of each flow, by its name, of runs of one scenario.
#[must_use]
pub fn of_each_flow(run: &Metrics) -> Vec<Figure> {
    let flow = |(index, (name, _)): (usize, &(String, f64))| Figure {
        id: name.clone(),
        label: format!("goodput of {name}"),
        unit: Unit::BitsPerSecond,
        source: Source::Flows(vec![index]),
    };
    run.by_flow.iter().enumerate().map(flow).collect()
}

/// The same of flows that differ in their number alone, together: those of one entry of the file.
#[must_use]
pub fn of_like_flows(run: &Metrics) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for (index, (name, _)) in run.by_flow.iter().enumerate() {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match figures.iter_mut().find(|figure| figure.id == stem) {
            Some(Figure {
                source: Source::Flows(flows),
                label,
                ..
            }) => {
                flows.push(index);
                *label = format!("goodput of each {stem}");
            }
            _ => figures.push(Figure {
                id: stem.to_owned(),
                label: format!("goodput of {name}"),
                unit: Unit::BitsPerSecond,
                source: Source::Flows(vec![index]),
            }),
        }
    }
    if figures.len() > MOST_ENTRIES {
        return vec![Figure {
            id: String::new(),
            label: "goodput of each flow".to_owned(),
            unit: Unit::BitsPerSecond,
            source: Source::Flows((0..run.by_flow.len()).collect()),
        }];
    }
    figures
}

/// Kinds of flows that a table has a row for each of.
const MOST_ENTRIES: usize = 6;

/// When all flows were done.
#[must_use]
pub fn completion() -> Figure {
    Figure::new("completion_ns", "all flows done", Unit::Nanoseconds, |m| {
        m.completion.map(|at| at.0 as f64 / 1e3)
    })
}

/// All flows' goodput.
#[must_use]
pub fn goodput() -> Figure {
    Figure::new("goodput_bps", "goodput", Unit::BitsPerSecond, |m| {
        Some(m.goodput)
    })
}

/// By how much goodput still changed within the time counted.
#[must_use]
pub fn goodput_drift() -> Figure {
    Figure::new("goodput_drift", "drift of goodput", Unit::Change, |m| {
        Some(m.drift(|half| half.goodput))
    })
}

/// By how much the mean queue did.
#[must_use]
pub fn queue_drift() -> Figure {
    Figure::new("mean_queue_drift", "drift of queue", Unit::Change, |m| {
        Some(m.drift(|half| half.queue))
    })
}

/// By how much the senders' rates did.
#[must_use]
pub fn rate_drift() -> Figure {
    Figure::new("rate_drift", "drift of rates", Unit::Change, |m| {
        Some(m.drift(|half| half.rate))
    })
}

/// The deepest queue, on average.
#[must_use]
pub fn mean_queue() -> Figure {
    Figure::new("mean_queue_octets", "mean queue", Unit::Octets, |m| {
        Some(m.mean_queue)
    })
}

/// Notifications about what another switch had told already.
#[must_use]
pub fn told_twice() -> Figure {
    Figure::new("told_twice", "of these told twice", Unit::Count, |m| {
        Some(count(m.told_twice))
    })
}

/// From the onset of congestion to the first cut.
#[must_use]
pub fn reaction_time() -> Figure {
    Figure::new(
        "reaction_time_ns",
        "reaction time",
        Unit::Nanoseconds,
        |m| m.reaction_time().map(|time| time.0 as f64 / 1e3),
    )
}

fn count(number: u64) -> f64 {
    number as f64
}

/// A value for people.
#[must_use]
pub fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => Ps((significant(value) * 1e3) as u64).to_string(),
        Unit::Octets if value >= 1e6 => format!("{} MB", significant(value / 1e6)),
        Unit::Octets if value >= 1e3 => format!("{} kB", significant(value / 1e3)),
        Unit::Octets => format!("{} B", significant(value)),
        Unit::BitsPerSecond => Rate::new(significant(value) as u64)
            .map_or_else(|| "0".to_owned(), |rate| rate.to_string()),
        Unit::Ratio => format!("{value:.3}"),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Change => format!("{:+.1} %", value * 100.0),
        Unit::Count => grouped(value.round() as u64),
    }
}

/// Three significant digits: what is left of more is noise.
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
    use super::super::made_up::metrics;
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two() {
        let of = |values: &[f64]| Spread::of(values.iter().copied()).map(|s| s.median);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7.0]), Some(7.0));
        assert_eq!(of(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        let spread = Spread::of([9.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.min, spread.max, spread.seeds), (1.0, 9.0, 3));
    }

    #[test]
    fn values_have_the_unit_that_fits() {
        assert_eq!(show(Unit::Nanoseconds, 12_345.0), "12.3 µs");
        assert_eq!(show(Unit::Nanoseconds, 0.0), "0");
        assert_eq!(show(Unit::Octets, 512.0), "512 B");
        assert_eq!(show(Unit::Octets, 1_234_567.0), "1.23 MB");
        assert_eq!(show(Unit::BitsPerSecond, 98.76e9), "98.8 Gbit/s");
        assert_eq!(show(Unit::BitsPerSecond, 0.0), "0");
        assert_eq!(show(Unit::Ratio, 0.99951), "1.000");
        assert_eq!(show(Unit::Share, 0.9876), "98.8 %");
        assert_eq!(show(Unit::Change, 0.0321), "+3.2 %");
        assert_eq!(show(Unit::Count, 1_234_567.0), "1,234,567");
    }

    #[test]
    fn a_cell_tells_range_and_missing_seeds() {
        let figure = reaction_time();
        assert_eq!(figure.cell(&[metrics(Some(3_000))]), "3 µs");
        let runs = [metrics(Some(3_000)), metrics(Some(5_000)), metrics(None)];
        assert_eq!(figure.cell(&runs), "4 µs\n3 to 5 µs\nin 2 of 3");
        assert_eq!(figure.cell(&[metrics(None)]), "never");
    }

    #[test]
    fn names_are_unique_and_every_kind_is_there() {
        let figures = all();
        let ids: std::collections::BTreeSet<_> = figures.iter().map(|f| &f.id).collect();
        assert_eq!(ids.len(), figures.len());
        for kind in Kind::ALL {
            assert!(ids.contains(&format!("sent_{}", kind.id())));
        }
    }
}
