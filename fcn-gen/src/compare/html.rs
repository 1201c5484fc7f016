//! A comparison as a self-contained page: its figures, its conclusion, and queue and rate over
//! time. `compare.js` renders it.

use super::figures::REACTION_TIME;
use super::table::{heading, remarks, rows};
use super::{Comparison, Group, json, sentence};
use crate::scenario::model::Mechanism;
use fcn_tool::page::Page;
use serde_json::{Value, json};

/// The page without its data.
pub const PAGE: Page = Page {
    title: "fcn-gen compare",
    script: include_str!("compare.js"),
};

/// Returns the data of the page: the comparison as in [`json()`], and as text.
#[must_use]
pub fn document(comparison: &Comparison) -> Value {
    let groups = comparison.groups.iter();
    json!({
        "schema": "fcn-gen/comparison",
        "version": 1,
        "made_by": concat!("fcn-gen ", env!("CARGO_PKG_VERSION")),
        "comparison": json(comparison),
        "groups": groups.map(|group| self::group(comparison, group)).collect::<Vec<_>>(),
    })
}

fn group(comparison: &Comparison, group: &Group) -> Value {
    let lines = group.played().filter_map(|(mechanism, runs)| {
        let run = runs.first()?;
        let queue = run.queue_over_time.iter().map(|(_, octets)| octets);
        let rate = run.rate_over_time.iter().map(|(_, rate)| rate);
        Some(json!({
            "mechanism": mechanism.id(),
            "line": Mechanism::ALL.iter().position(|other| *other == mechanism),
            "queue": queue.collect::<Vec<_>>(),
            "rate": rate.collect::<Vec<_>>(),
        }))
    });
    // All runs of a group have the same sampling interval.
    let mut runs = group.played().filter_map(|(_, runs)| runs.first());
    let step = runs.find_map(|run| Some(run.queue_over_time.get(1)?.0));
    let reactions = group.played().map(|(mechanism, runs)| {
        json!({ "mechanism": mechanism.id(), "cell": REACTION_TIME.cell(runs) })
    });
    json!({
        "value": group.value,
        "heading": heading(comparison, group),
        "sentence": sentence(&group.rows),
        "remarks": remarks(group),
        "mechanisms": group.played().map(|(mechanism, _)| mechanism.id()).collect::<Vec<_>>(),
        "rows": rows(group),
        "reactions": reactions.collect::<Vec<_>>(),
        "step_ns": step.map(|step| step.0 as f64 / 1e3),
        "lines": lines.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{comparison, comparison_over};
    use super::*;

    #[test]
    fn page_has_the_table_and_all_mechanisms_over_time() {
        let document = document(&comparison());
        assert_eq!(document["comparison"], json(&comparison()));
        let group = &document["groups"][0];
        assert_eq!(group["mechanisms"], json!(["pfc", "cnp", "fast-cnp"]));
        assert_eq!(
            group["rows"][0],
            json!(["reaction time", ["never", "12 µs", "3 µs"]])
        );
        assert_eq!(group["step_ns"], 500_000.0);
        assert_eq!(
            group["lines"][2]["queue"],
            json!([0, 50_000, 100_000, 150_000, 200_000])
        );
        assert!(
            group["remarks"]
                .to_string()
                .contains("Not applicable: wan-fcn: no ingress PE")
        );
        let over = self::document(&comparison_over());
        assert_eq!(over["groups"][1]["value"], "100km");
        assert!(
            over["groups"][1]["heading"]
                .as_str()
                .unwrap()
                .contains("distance 100km")
        );
    }

    #[test]
    fn page_is_built_from_the_document() {
        let mut page = Vec::new();
        let mut comparison = comparison();
        comparison.scenario = "</script><script>alert(1)</script>".to_owned();
        PAGE.write(&document(&comparison), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.matches("<script").count(), 4);
        for way in ["innerHTML", "outerHTML", "insertAdjacent", "</", "<!--"] {
            assert!(!PAGE.script.contains(way), "{way}");
        }
    }
}
