//! Compares a scenario under several mechanisms: plays it under each, collects the figures, and
//! shows them as text, JSON or a page.
//!
//! `figures.rs` defines the figures, `sentence.rs` their conclusion; `plot.rs` draws them.

pub mod figures;
pub mod html;
mod json;
mod play;
mod sentence;
mod table;
mod thresholds;

pub use json::{COMPARE_SCHEMA, COMPARE_VERSION, json};
pub use play::{EACH_AT_ITS_BEST, Progress, compare};
pub use sentence::sentence;
pub use table::text;
pub use thresholds::PortThresholds;

use crate::scenario::Source;
use crate::scenario::model::{MarkingPoint, Mechanism};
use crate::sim::outcome::{Metrics, Timeouts};
use crate::units::Ps;
use fcn_tool::failure::{Failure, Result};
use figures::{Figure, Spread};

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// The scenario.
    pub source: Source,
    /// Changed parameters: `key=value`.
    pub sets: Vec<String>,
    /// Mechanisms to compare, in this order.
    pub mechanisms: Vec<Mechanism>,
    /// Number of seeds to play each mechanism with, from the scenario's own upwards; at least 1.
    pub seeds: u32,
    /// A parameter to compare over.
    pub over: Option<Over>,
    /// A parameter whose best value is chosen for each mechanism.
    pub best: Option<Over>,
}

/// A parameter and its successive values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The parameter.
    pub key: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

impl Over {
    /// Parses the value of `option`, if it is given.
    ///
    /// # Errors
    /// As [`Over::read`].
    pub fn read_option(option: &str, text: Option<&str>) -> Result<Option<Self>> {
        text.map(|text| Self::read(option, text)).transpose()
    }

    /// Parses `key=value,value`, given to `option`.
    ///
    /// # Errors
    /// There is no key, or no value, or the parameter is the mechanism or the seed.
    pub fn read(option: &str, text: &str) -> Result<Self> {
        let bad = |what: &str| {
            Failure::usage(format!("{option}: {what}"))
                .and(text)
                .and("write it as key=value,value, for example distance=1km,100km")
        };
        let (key, values) = text.split_once('=').ok_or_else(|| bad("no value"))?;
        let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(bad("an empty key or value"));
        }
        let instead = match key.trim() {
            MECHANISM => Some("all mechanisms are compared anyway; choose some with --mechanisms"),
            "seed" => Some("seeds are compared with --seeds"),
            _ => None,
        };
        if let Some(instead) = instead {
            return Err(Failure::usage(option).and(text).and(instead));
        }
        Ok(Self {
            key: key.trim().to_owned(),
            values,
        })
    }
}

/// The parameter that a comparison sets itself.
pub const MECHANISM: &str = "mechanism";

/// Returns mechanisms by name; all of them for an empty list.
///
/// # Errors
/// A name is unknown; the error lists the valid ones.
pub fn mechanisms(names: &[String]) -> Result<Vec<Mechanism>> {
    if names.is_empty() {
        return Ok(Mechanism::ALL.to_vec());
    }
    let mut chosen = Vec::new();
    for name in names {
        let found = Mechanism::ALL.into_iter().find(|m| m.id() == name.trim());
        let Some(mechanism) = found else {
            let known = Mechanism::ALL.map(Mechanism::id).join(", ");
            return Err(Failure::usage("--mechanisms: no such mechanism")
                .and(name)
                .and(format!("expected one of {known}")));
        };
        if !chosen.contains(&mechanism) {
            chosen.push(mechanism);
        }
    }
    Ok(chosen)
}

/// A finished comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// The seeds played: the first, and their number.
    pub seeds: (u64, u32),
    /// The parameter that differs between groups.
    pub over: Option<String>,
    /// One group for each value of that parameter; a single one without parameter.
    pub groups: Vec<Group>,
}

/// The mechanisms under one value of the parameter.
#[derive(Clone, Debug)]
pub struct Group {
    /// The value.
    pub value: Option<String>,
    /// Duration of the runs, and the time from which goodput and other figures were measured.
    pub played_for: (Ps, Ps),
    /// Round trip of the first flow, without queues and the time to send its packets.
    pub round_trip: Ps,
    /// One row for each mechanism.
    pub rows: Vec<Row>,
}

/// Results of one mechanism.
#[derive(Clone, Debug)]
pub struct Row {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The figures for each seed, or the reason why the scenario cannot be played under the
    /// mechanism.
    pub played: core::result::Result<Vec<Metrics>, String>,
    /// Thresholds of the switches' ports.
    pub thresholds: Vec<PortThresholds>,
    /// The value chosen for the mechanism, if it is played at its best.
    pub best: Option<Best>,
    /// The figures for each seed if switches mark at this other point, where that matters.
    pub elsewhere: Option<(MarkingPoint, Vec<Metrics>)>,
}

/// The value of a parameter under which a mechanism does best.
#[derive(Clone, Debug)]
pub struct Best {
    /// The parameter.
    pub key: String,
    /// The value.
    pub value: String,
    /// All values tried.
    pub tried: Vec<Tried>,
}

/// A value tried, with median goodput in bit/s and median mean queue in octets, or the reason why it
/// cannot be played.
pub type Tried = (String, core::result::Result<(f64, f64), String>);

/// Name shared by goodput drift and its uncertainty due to timeouts.
const GOODPUT: &str = "goodput";

/// Maximum change of goodput that a longer run may cause if it has settled.
pub const TOLERANCE: f64 = 0.05;

impl Row {
    /// Creates the row of a mechanism from its figures, or the reason why there are none.
    #[must_use]
    pub const fn new(
        mechanism: Mechanism,
        played: core::result::Result<Vec<Metrics>, String>,
    ) -> Self {
        Self {
            mechanism,
            played,
            thresholds: Vec::new(),
            best: None,
            elsewhere: None,
        }
    }

    /// Returns the figures for each seed, if it was played.
    #[must_use]
    pub fn runs(&self) -> Option<&[Metrics]> {
        self.played.as_deref().ok()
    }

    /// Returns the retransmission timeouts (medians over the seeds), if the uncertainty of goodput
    /// that they cause exceeds [`TOLERANCE`].
    #[must_use]
    pub fn timeouts(&self) -> Option<Timeouts> {
        let median = |figure: fn(&Timeouts) -> f64| {
            Spread::from_values(self.runs()?.iter().map(|run| figure(&run.timeouts)))
                .map(|spread| spread.median)
        };
        let timeouts = Timeouts {
            share: median(|timeouts| timeouts.share)?,
            rounds: median(|timeouts| timeouts.rounds)?,
        };
        (timeouts.chance() > TOLERANCE).then_some(timeouts)
    }

    /// Returns the packets lost (median over the seeds) if no flow delivers anything in the
    /// measured time: such a run stands still, however steady its figures are.
    #[must_use]
    pub fn stalled(&self) -> Option<f64> {
        let runs = self.runs()?;
        let idle = figures::GOODPUT.spread(runs)?.median == 0.0;
        let lost = figures::LOST.spread(runs)?.median;
        (idle && lost > 0.0).then_some(lost)
    }

    /// Returns the figures that have not settled: those that [drift](Self::drifts), and goodput if
    /// it is uncertain because of [timeouts](Self::timeouts), or 0 because the run has
    /// [stalled](Self::stalled).
    #[must_use]
    pub fn unsettled(&self) -> Vec<&'static str> {
        let stalled = self.stalled().map(|_| ());
        let left_to_chance = self.timeouts().map(|_| ()).or(stalled).map(|()| GOODPUT);
        let drifts = self.drifts().into_iter().map(|(what, _)| what);
        let mut unsettled: Vec<_> = left_to_chance.into_iter().chain(drifts).collect();
        unsettled.dedup();
        unsettled
    }

    /// Returns the figures that still changed within the measured time, and their change (the
    /// largest of all seeds), if a longer run might reverse a conclusion: goodput by more than
    /// [`TOLERANCE`]; the mean queue or the senders' rates, which oscillate even under working
    /// control, by more than 20 %. A single seed suffices: if one drifts, the median of few seeds
    /// depends on chance.
    #[must_use]
    pub fn drifts(&self) -> Vec<(&'static str, f64)> {
        let runs = self.runs().unwrap_or_default();
        let drift = |figure: Figure| {
            figure.spread(runs).map_or(0.0, |spread| {
                let Spread { min, max, .. } = spread;
                if -min > max { min } else { max }
            })
        };
        [
            (GOODPUT, drift(figures::GOODPUT_DRIFT), TOLERANCE),
            ("the mean queue", drift(figures::QUEUE_DRIFT), 0.2),
            ("the senders' rates", drift(figures::RATE_DRIFT), 0.2),
        ]
        .into_iter()
        .filter(|(_, drift, most)| drift.abs() > *most)
        .map(|(what, drift, _)| (what, drift))
        .collect()
    }
}

impl Group {
    /// Returns the mechanisms that were played, with their figures.
    pub fn played(&self) -> impl Iterator<Item = (Mechanism, &[Metrics])> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row.mechanism, row.runs()?)))
    }

    /// Returns the mechanisms under which the scenario cannot be played, with the reasons.
    pub fn refused(&self) -> impl Iterator<Item = (Mechanism, &str)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row.mechanism, row.played.as_ref().err()?.as_str())))
    }
}

#[cfg(test)]
pub mod fixtures {
    //! Invented figures for tests.

    use super::{Comparison, Group, Row};
    use crate::scenario::model::Mechanism;
    use crate::sim::outcome::{Half, Metrics, Timeouts};
    use crate::units::Ps;
    use fcn_wire::Kind;
    use std::collections::BTreeMap;

    /// Returns the halves of a run with this goodput, which rose by this share, or fell if it is
    /// negative.
    pub fn halves(goodput: f64, drift: f64) -> [Half; 2] {
        [goodput * (1.0 - drift / 2.0), goodput * (1.0 + drift / 2.0)].map(|goodput| Half {
            goodput,
            queue: 60_000.0,
            rate: 100e9,
        })
    }

    /// Returns the figures of a run in which congestion began after 1 ms and a sender slowed down
    /// `reaction` nanoseconds later.
    pub fn metrics(reaction: Option<u64>) -> Metrics {
        let onset = Ps::from_nanos(1_000_000);
        let over_time = |scale: u64| (0..5).map(move |n| (Ps::from_nanos(n * 500_000), n * scale));
        Metrics {
            onset: Some(onset),
            first_cut: reaction.map(|time| onset + Ps::from_nanos(time)),
            peak_queue: 250_000,
            above_kmax: Ps::from_nanos(40_000),
            mean_queue: 60_000.0,
            goodput: 93.2e9,
            completion: None,
            halves: Some(halves(93.2e9, 0.01)),
            timeouts: Timeouts::default(),
            utilisation: 0.98,
            by_flow: vec![
                ("load1".into(), 40e9),
                ("load2".into(), 43.2e9),
                ("victim".into(), 10e9),
            ],
            repeated: 0,
            fairness: 0.97,
            completion_by_flow: vec![None; 3],
            satisfied: Vec::new(),
            beyond_queue: None,
            notifications: BTreeMap::from([(Kind::Cnp, 1_204)]),
            marked: 4_321,
            lost: 0,
            again: 3,
            pauses: 0,
            packets: 100_000,
            queue_over_time: over_time(50_000).collect(),
            rate_over_time: over_time(20_000_000_000)
                .map(|(at, rate)| (at, rate as f64))
                .collect(),
        }
    }

    /// Returns a mechanism with these reaction times, one for each seed.
    pub fn row(mechanism: Mechanism, reactions: &[Option<u64>]) -> Row {
        Row::new(
            mechanism,
            Ok(reactions.iter().copied().map(metrics).collect()),
        )
    }

    /// Returns a mechanism that does not apply.
    pub fn refused(mechanism: Mechanism, why: &str) -> Row {
        Row::new(mechanism, Err(why.to_owned()))
    }

    /// Returns a comparison of three mechanisms, of which one does not apply.
    pub fn comparison() -> Comparison {
        Comparison {
            scenario: "made-up".to_owned(),
            seeds: (1, 1),
            over: None,
            groups: vec![Group {
                value: None,
                played_for: (Ps::from_nanos(2_000_000), Ps::from_nanos(1_000_000)),
                round_trip: Ps::from_nanos(6_000),
                rows: vec![
                    row(Mechanism::Pfc, &[None]),
                    row(Mechanism::Cnp, &[Some(12_000)]),
                    row(Mechanism::FastCnp, &[Some(3_000)]),
                    refused(Mechanism::WanFcn, "no ingress PE"),
                ],
            }],
        }
    }

    /// Returns the same comparison over two distances, with two seeds.
    pub fn comparison_over() -> Comparison {
        let group = |value: &str, scale: u64| Group {
            value: Some(value.to_owned()),
            played_for: (Ps::from_nanos(2_000_000), Ps::from_nanos(1_000_000)),
            round_trip: Ps::from_nanos(6_000),
            rows: vec![
                row(
                    Mechanism::Cnp,
                    &[Some(12_000 * scale), Some(14_000 * scale)],
                ),
                row(Mechanism::FastCnp, &[Some(3_000), Some(3_000)]),
                refused(Mechanism::Proxy, "no proxy node"),
            ],
        };
        Comparison {
            scenario: "made-up".to_owned(),
            seeds: (7, 2),
            over: Some("distance".to_owned()),
            groups: vec![group("1km", 1), group("100km", 40)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_and_values_are_parsed() {
        let over = Over::read("--over", "distance=1km, 100km").unwrap();
        assert_eq!(over.key, "distance");
        assert_eq!(over.values, ["1km", "100km"]);
        for bad in [
            "distance",
            "distance=",
            "=1",
            "distance=1,,2",
            "mechanism=cnp",
            "seed=1,2",
        ] {
            assert_eq!(
                Over::read("--over", bad).unwrap_err().exit(),
                fcn_tool::failure::Exit::Usage,
                "{bad}"
            );
        }
    }

    #[test]
    fn mechanisms_are_selected_by_name_without_duplicates() {
        let named =
            |names: &[&str]| mechanisms(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(named(&[]).unwrap(), Mechanism::ALL);
        assert_eq!(
            named(&["fast-cnp", "cnp", "cnp"]).unwrap(),
            [Mechanism::FastCnp, Mechanism::Cnp]
        );
        assert!(
            named(&["fastcnp"])
                .unwrap_err()
                .to_string()
                .contains("expected one of none, pfc")
        );
    }
}
