//! A comparison as text: for each group a table with a column per mechanism, then remarks on
//! mechanisms that do not apply, then the conclusion.

use super::figures::{self, Figure, GOODPUT, MEAN_QUEUE, REACTION_TIME, Unit, show};
use super::sentence::{listed, sentence};
use super::{Comparison, Group, Row, TOLERANCE, thresholds};
use crate::scenario::model::Mechanism;
use crate::sim::outcome::Metrics;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, presets};

/// Describes the change of a figure, given a drift that is a share of the greater half.
fn change(drift: f64) -> String {
    let grown = 1.0 / (1.0 - drift);
    match drift {
        ..0.0 => format!("fell by {:.0} %", -drift * 100.0),
        _ if grown < 2.0 => format!("grew by {:.0} %", (grown - 1.0) * 100.0),
        1.0.. => "rose from 0".to_owned(),
        _ => format!("grew {grown:.1}-fold"),
    }
}

/// Returns the comparison as text.
#[must_use]
pub fn text(comparison: &Comparison) -> String {
    let part = |group: &Group| {
        let mut part = heading(comparison, group);
        part += "\n";
        part += &table(group);
        for remark in remarks(group) {
            part += &(remark + "\n");
        }
        part + &sentence(&group.rows) + "\n"
    };
    comparison
        .groups
        .iter()
        .map(part)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns remarks on figures that have not settled, and on mechanisms that do not apply.
pub(super) fn remarks(group: &Group) -> Vec<String> {
    let mut remarks = Vec::new();
    for row in &group.rows {
        let timeouts = row.timeouts().map(|timeouts| {
            format!(
                "{:.0} % of the measured time flows waited for retransmission timeouts; it fits \
                 {:.0} of these in a row, and below about {:.0}, goodput depends on chance",
                timeouts.share * 100.0,
                timeouts.rounds,
                timeouts.rounds_for(TOLERANCE)
            )
        });
        let changes = row.drifts().into_iter();
        let changes = changes.map(|(what, drift)| format!("{what} {}", change(drift)));
        let changes: Vec<String> = changes.collect();
        let drifts = (!changes.is_empty()).then(|| {
            let changes = listed(&changes);
            let seeds = row.runs().map_or(0, <[_]>::len);
            let which = if seeds > 1 {
                " under the seed that changed most"
            } else {
                ""
            };
            format!("from the first to the second half of the measured time {changes}{which}")
        });
        let stalled = row.stalled().map(|lost| {
            format!(
                "no flow delivered anything in the measured time, and {} packets were lost",
                show(Unit::Count, lost)
            )
        });
        let why: Vec<String> = stalled.into_iter().chain(timeouts).chain(drifts).collect();
        if !why.is_empty() {
            remarks.push(format!(
                "Not settled: {}: {}; a longer run (--set duration=...) may reverse the conclusions",
                row.mechanism.id(),
                why.join("; ")
            ));
        }
    }
    remarks.extend(thresholds::too_shallow(group));
    remarks.extend(thresholds::remarks(group));
    remarks.extend(satisfied(group));
    remarks.extend(beyond_queue(group));
    let refused = group.refused();
    remarks.extend(
        refused.map(|(mechanism, why)| format!("Not applicable: {}: {why}", mechanism.id())),
    );
    remarks
}

/// Returns a remark on flows that count towards fairness although congestion control does not
/// determine their share.
fn satisfied(group: &Group) -> Option<String> {
    let part = |(mechanism, runs): (Mechanism, &[Metrics])| {
        let always = runs.first()?.satisfied.iter();
        let always = always.filter(|name| runs.iter().all(|run| run.satisfied.contains(name)));
        let names: Vec<&str> = always.map(|name| &**name).collect();
        let all = runs.first()?.by_flow.len();
        let some = !names.is_empty() && names.len() < all;
        let listed = match &names[..] {
            [first, .., last] if names.len() > FLOWS => {
                format!("{} flows, {first} to {last},", names.len())
            }
            names => listed(names),
        };
        some.then(|| format!("{listed} under {}", mechanism.id()))
    };
    let parts: Vec<String> = group.played().filter_map(part).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Fairness counts flows that get all that they ask for, whatever the others get: {}",
            parts.join("; ")
        )
    })
}

/// Maximum number of flows that a remark names.
const FLOWS: usize = 3;

/// Returns a remark on queues above their limit.
fn beyond_queue(group: &Group) -> Option<String> {
    let part = |(mechanism, runs): (Mechanism, &[Metrics])| {
        let most = runs.iter().filter_map(|run| run.beyond_queue).max()?;
        let [depth, limit] = [most.0, most.1].map(|octets| show(Unit::Octets, octets as f64));
        Some(format!(
            "{depth} in a queue of {limit} under {}",
            mechanism.id()
        ))
    };
    let parts: Vec<String> = group.played().filter_map(part).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Peak queue above the queue's own limit: {}; PFC limits data by ingress port (pause.xoff), \
             not by queue, and several ports fill one",
            listed(&parts)
        )
    })
}

/// Returns the relevant figures of a group: the label of each, and a cell for each mechanism that
/// was played.
pub(super) fn rows(group: &Group) -> Vec<(String, Vec<String>)> {
    let figures = figures(group).into_iter();
    let figures = figures.filter(|figure| matters(figure, group));
    let rows = figures.flat_map(|figure| {
        let cells = group.played().map(|(_, runs)| figure.cell(runs));
        let row = (figure.label.clone().into_owned(), cells.collect());
        [Some(row), elsewhere(&figure, group)]
    });
    rows.flatten().collect()
}

/// Returns the row of a figure for packets marked at the other point, if it differs there under a
/// mechanism.
fn elsewhere(figure: &Figure, group: &Group) -> Option<(String, Vec<String>)> {
    if ![REACTION_TIME.id, GOODPUT.id, MEAN_QUEUE.id].contains(&figure.id) {
        return None;
    }
    let played = group.rows.iter().filter(|row| row.runs().is_some());
    let spreads = |row: &Row| {
        let (_, there) = row.elsewhere.as_ref()?;
        figure.spread(row.runs()?).zip(figure.spread(there))
    };
    let at = group
        .rows
        .iter()
        .find_map(|row| Some(row.elsewhere.as_ref()?.0))?;
    let differs = played
        .clone()
        .filter_map(spreads)
        .any(|(a, b)| a.is_apart_from(&b));
    let cells = played.map(|row| match &row.elsewhere {
        Some((_, runs)) => figure.cell(runs),
        None => "the same".to_owned(),
    });
    differs.then(|| {
        (
            format!("{}, marked on {}", figure.label, at.id()),
            cells.collect(),
        )
    })
}

/// Returns every figure, those of individual flows after that of all flows.
fn figures(group: &Group) -> Vec<Figure> {
    let mut figures = figures::all();
    let runs: Vec<&Metrics> = group.played().flat_map(|(_, runs)| runs).collect();
    let at = figures.iter().position(|figure| figure.id == "fairness");
    let at = at.unwrap_or(figures.len());
    figures.splice(at..at, figures::of_like_flows(&runs));
    figures
}

pub(super) fn heading(comparison: &Comparison, group: &Group) -> String {
    let mut heading = comparison.scenario.clone();
    if let (Some(key), Some(value)) = (&comparison.over, &group.value) {
        heading += &format!(", {key} {value}");
    }
    let (first, count) = comparison.seeds;
    if count == 1 {
        heading += &format!(", seed {first}");
    } else {
        let last = first.wrapping_add(u64::from(count - 1));
        heading += &format!(", seeds {first} to {last}: median, and range if they differ");
    }
    let (duration, warm_up) = group.played_for;
    let mut runs = group.played().flat_map(|(_, runs)| runs);
    let done = match runs.any(|run| run.completion.is_some()) {
        true => "; for runs in which all flows completed, until then",
        false => "",
    };
    let thresholds = thresholds::common(group).map(|text| format!("; {text}"));
    let counted = format!("; {duration} played, mean queue to fairness from {warm_up} on{done}");
    heading
        + &counted
        + "; drifts are the change between its halves, as a share of the greater one"
        + &thresholds.unwrap_or_default()
}

fn table(group: &Group) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    let names = group.played().map(|(mechanism, _)| mechanism.id());
    table.set_header(core::iter::once("").chain(names).map(right));
    for (label, cells) in rows(group) {
        let cells = cells.into_iter().map(right);
        table.add_row(core::iter::once(Cell::new(label)).chain(cells));
    }
    table.trim_fmt() + "\n"
}

fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Returns false for events that never occurred: notifications of a kind, repeated ones, completion
/// of flows without end.
fn matters(figure: &Figure, group: &Group) -> bool {
    let rare = [figures::REPEATED.id, figures::COMPLETION.id];
    !figure.is_of_notifications() && !rare.contains(&figure.id)
        || group
            .played()
            .filter_map(|(_, runs)| figure.spread(runs))
            .any(|spread| spread.max > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{comparison, comparison_over, halves};
    use super::*;
    use crate::sim::outcome::Timeouts;

    #[test]
    fn figures_are_in_their_mechanisms_column() {
        let text = text(&comparison());
        let cells = |label: &str| -> Vec<&str> {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(label));
            line.map(|line| {
                line.trim_start()[label.len()..]
                    .split_whitespace()
                    .collect()
            })
            .unwrap_or_default()
        };
        assert_eq!(cells("pfc"), ["cnp", "fast-cnp"]);
        assert_eq!(cells("reaction time"), ["never", "12", "µs", "3", "µs"]);
        assert_eq!(cells("peak queue"), ["250", "kB", "250", "kB", "250", "kB"]);
        assert_eq!(cells("fairness (Jain)"), ["0.970"; 3]);
        assert_eq!(
            cells("goodput drift"),
            ["+1.0", "%", "+1.0", "%", "+1.0", "%"]
        );
        assert_eq!(cells("queue drift")[..2], ["+0.0", "%"]);
        assert_eq!(cells("goodput of each load")[..2], ["41.6", "Gbit/s"]);
        assert!(text.contains("40 to 43.2 Gbit/s"), "{text}");
        assert!(text.contains(" goodput of victim"), "{text}");
        assert!(
            !text.contains("repeated") && !text.contains("Not settled"),
            "{text}"
        );
        assert_eq!(cells("CE marks"), ["4,321"; 3]);
        assert_eq!(cells("cnp sent"), ["1,204"; 3]);
        assert!(!text.contains("wan_fcn sent"), "{text}");
        assert!(text.contains("\nNot applicable: wan-fcn: no ingress PE\n"));
        assert!(text.contains(
            "first cut cnp took 12 µs and fast-cnp took 3 µs; under pfc no sender slowed down. "
        ));
    }

    #[test]
    fn unsettled_figures_are_reported() {
        let mut comparison = comparison();
        for run in comparison.groups[0].rows[1].played.as_mut().unwrap() {
            run.halves = Some(halves(93.2e9, -0.25));
            run.repeated = 300;
        }
        let text = text(&comparison);
        assert!(
            text.contains("\nNot settled: cnp: from the first to the second half of the measured time goodput fell by 22 %"),
            "{text}"
        );
        assert!(text.contains("of these repeated"), "{text}");
    }

    #[test]
    fn thresholds_too_shallow_for_the_distance_are_reported() {
        let mut comparison = comparison();
        let port = |kmax| super::super::PortThresholds {
            rate: crate::units::Rate::new(25_000_000_000).unwrap(),
            ports: 1,
            marking: fcn_node::congestion_point::Marking {
                kmin: kmax / 4,
                kmax,
                pmax: 0.2,
            },
            marks_at: crate::scenario::model::MarkingPoint::Departure,
            queue: 400_000,
        };
        let group = &mut comparison.groups[0];
        // 6 µs at 25 Gbit/s are 18,750 octets.
        for (kmax, is_reported) in [(18_000, true), (20_000, false)] {
            for row in &mut group.rows {
                row.thresholds = vec![port(kmax)];
            }
            assert_eq!(thresholds::too_shallow(group).is_some(), is_reported);
        }
        let text = text(&comparison);
        assert!(
            text.contains("; thresholds of every mechanism: Kmin 5 kB, Kmax 20 kB, Pmax 0.2 on departure, queue 400 kB at 25 Gbit/s\n"),
            "{text}"
        );
    }

    #[test]
    fn runs_that_deliver_nothing_are_not_settled() {
        let mut comparison = comparison();
        for run in comparison.groups[0].rows[0].played.as_mut().unwrap() {
            (run.goodput, run.lost) = (0.0, 3_000_000);
            run.halves = Some(halves(0.0, 0.0));
            run.beyond_queue = Some((1_600_000, 1_000_000));
        }
        for run in comparison.groups[0].rows[1].played.as_mut().unwrap() {
            run.satisfied = vec!["victim".into()];
        }
        assert_eq!(comparison.groups[0].rows[0].unsettled(), ["goodput"]);
        let text = text(&comparison);
        for remark in [
            "\nNot settled: pfc: no flow delivered anything in the measured time, and 3,000,000 \
             packets were lost; a longer run",
            "\nPeak queue above the queue's own limit: 1.6 MB in a queue of 1 MB under pfc; PFC",
            "\nFairness counts flows that get all that they ask for, whatever the others get: victim \
             under cnp\n",
        ] {
            assert!(text.contains(remark), "{text}");
        }
    }

    #[test]
    fn timeouts_are_reported_before_their_effects() {
        let mut comparison = comparison();
        for run in comparison.groups[0].rows[0].played.as_mut().unwrap() {
            run.halves = Some(halves(93.2e9, -0.25));
            run.timeouts = Timeouts {
                share: 0.5,
                rounds: 3.0,
            };
        }
        let text = text(&comparison);
        assert!(
            text.contains(
                "\nNot settled: pfc: 50 % of the measured time flows waited for retransmission \
                 timeouts; it fits 3 of these in a row, and below about 200, goodput depends on \
                 chance; from the first to the second half of the measured time goodput fell by \
                 22 %; a longer run"
            ),
            "{text}"
        );
    }

    #[test]
    fn each_value_has_its_own_table() {
        let text = text(&comparison_over());
        assert!(text.starts_with("made-up, distance 1km, seeds 7 to 8: median"));
        assert!(text.contains("\nmade-up, distance 100km, seeds 7 to 8"));
        assert!(text.contains("12 to 14 µs"), "{text}");
        assert!(text.contains("480 to 560 µs"), "{text}");
        assert_eq!(text.matches("Not applicable: proxy").count(), 2);
    }
}
