//! A comparison as JSON. docs/compare.md describes it.

use super::figures::{self, Figure};
use super::{Best, Comparison, Group, PortThresholds, Row, sentence};
use crate::sim::outcome::Metrics;
use serde_json::{Map, Value, json};

/// Name of the schema.
pub const COMPARE_SCHEMA: &str = "fcn-gen/compare";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const COMPARE_VERSION: u32 = 4;

/// Returns the comparison as JSON.
#[must_use]
pub fn json(comparison: &Comparison) -> Value {
    let figures = figures::all();
    let (first, count) = comparison.seeds;
    json!({
        "schema": COMPARE_SCHEMA,
        "version": COMPARE_VERSION,
        "scenario": comparison.scenario,
        "first_seed": first,
        "seeds": count,
        "over": comparison.over,
        "groups": comparison.groups.iter().map(|group| self::group(group, &figures)).collect::<Vec<_>>(),
    })
}

fn group(group: &Group, figures: &[Figure]) -> Value {
    json!({
        "value": group.value,
        "duration_ns": group.played_for.0.as_nanos(),
        "warm_up_ns": group.played_for.1.as_nanos(),
        "mechanisms": group.rows.iter().map(|row| self::row(row, figures)).collect::<Vec<_>>(),
        "sentence": sentence(&group.rows),
    })
}

fn row(row: &Row, figures: &[Figure]) -> Value {
    let spreads = |figures: &[Figure], runs: &[Metrics]| -> Map<String, Value> {
        let spread = |figure: &Figure| (figure.id.clone().into_owned(), json!(figure.spread(runs)));
        figures.iter().map(spread).collect()
    };
    let runs = row.runs();
    let flows = runs.and_then(|runs| Some(figures::of_each_flow(runs.first()?)));
    let [goodput, completion] = flows.unwrap_or_default();
    json!({
        "mechanism": row.mechanism.id(),
        "not_applicable": row.played.as_ref().err(),
        "settled": runs.map(|_| row.unsettled().is_empty()),
        "thresholds": runs.map(|_| row.thresholds.iter().map(thresholds).collect::<Vec<_>>()),
        "at_its_best": row.best.as_ref().map(best),
        "satisfied_flows": runs.and_then(|runs| Some(&runs.first()?.satisfied)),
        "marked_elsewhere": row.elsewhere.as_ref().map(|(at, runs)| json!({
            "marked_at": at.id(),
            "figures": spreads(figures, runs),
        })),
        "figures": runs.map(|runs| spreads(figures, runs)),
        "goodput_bps_by_flow": runs.map(|runs| spreads(&goodput, runs)),
        "completion_ns_by_flow": runs.map(|runs| spreads(&completion, runs)),
    })
}

fn thresholds(port: &PortThresholds) -> Value {
    json!({
        "rate_bps": port.rate.bits_per_second(),
        "ports": port.ports,
        "kmin_octets": port.marking.kmin,
        "kmax_octets": port.marking.kmax,
        "pmax": port.marking.pmax,
        "marked_at": port.marks_at.id(),
        "queue_octets": port.queue,
    })
}

fn best(best: &Best) -> Value {
    let tried = best.tried.iter().map(|(value, figures)| {
        let figures = figures.as_ref();
        json!({
            "value": value,
            "not_applicable": figures.err(),
            "goodput_bps": figures.ok().map(|figures| figures.0),
            "mean_queue_octets": figures.ok().map(|figures| figures.1),
        })
    });
    json!({ "key": best.key, "value": best.value, "tried": tried.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{comparison, comparison_over};
    use super::*;

    #[test]
    fn figures_are_found_by_name() {
        let value = json(&comparison_over());
        assert_eq!(value["schema"], "fcn-gen/compare");
        assert_eq!(value["over"], "distance");
        let group = &value["groups"][1];
        assert_eq!(group["value"], "100km");
        let cnp = &group["mechanisms"][0];
        assert_eq!(cnp["mechanism"], "cnp");
        assert_eq!(cnp["not_applicable"], Value::Null);
        assert_eq!(
            cnp["figures"]["reaction_time_ns"],
            json!({"median": 520_000.0, "min": 480_000.0, "max": 560_000.0, "seeds": 2})
        );
        assert_eq!(cnp["figures"]["sent_cnp"]["median"], 1_204.0);
        assert_eq!(cnp["settled"], true);
        assert_eq!(
            cnp["goodput_bps_by_flow"]["load2"],
            json!({"median": 43.2e9, "min": 43.2e9, "max": 43.2e9, "seeds": 2})
        );
    }

    #[test]
    fn refused_mechanisms_have_a_reason_and_nothing_is_null() {
        let value = json(&comparison());
        let mechanisms = &value["groups"][0]["mechanisms"];
        assert_eq!(mechanisms[3]["not_applicable"], "no ingress PE");
        assert_eq!(mechanisms[3]["figures"], Value::Null);
        assert_eq!(mechanisms[3]["settled"], Value::Null);
        assert_eq!(mechanisms[0]["figures"]["reaction_time_ns"], Value::Null);
    }
}
