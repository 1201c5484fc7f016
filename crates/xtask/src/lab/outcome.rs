//! Reports of the nodes of a lab, combined, and compared with the simulation of the same scenario.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::figures;

/// Allowed difference of a flow's share of all delivered octets, in percentage points. Each node
/// has its own random numbers, congestion control is chaotic, and a busy machine forwards frames
/// late: runs of the built-in scenarios differed by one to three points on two shared cores, and a
/// flow that is starved or never slows down differs by far more than this.
const SHARE: f64 = 10.0;

/// Number of nodes listed unless all are wanted.
const LISTED: usize = 12;

/// Default interval between two CNPs of a flow, in nanoseconds.
const CNP_INTERVAL: f64 = 50_000.0;

/// Reports of the nodes.
pub struct Outcomes(Vec<Value>);

impl Outcomes {
    /// Reads the reports of `nodes`. A node without a report is omitted.
    pub fn read<T>(nodes: &[T], report: impl Fn(&T) -> &PathBuf) -> Outcome<Self> {
        let mut all = Vec::new();
        for node in nodes {
            let text = fs_err::read_to_string(report(node))?;
            if let Ok(report) = serde_json::from_str(&text) {
                all.push(report);
            }
        }
        Ok(Self(all))
    }

    /// Returns a table with a line per node; unless `all`, of a screenful of them.
    pub fn nodes(&self, all: bool) -> String {
        let listed = if all { usize::MAX } else { LISTED };
        let rows: Vec<Vec<String>> = self.0.iter().take(listed).map(row).collect();
        let heading = [
            "node",
            "role",
            "in",
            "out",
            "lost",
            "sent",
            "p50",
            "p99",
            "slowed by",
        ];
        let more = match self.0.len().saturating_sub(listed) {
            0 => String::new(),
            more => format!("\n… and {more} more"),
        };
        indented(&(figures::table(&heading, &rows) + &more))
    }

    /// Returns the switches that stopped notifications at the domain's border, and how many.
    pub fn borders(&self) -> Vec<(String, u64)> {
        let stopped = self.0.iter().filter_map(|report| {
            let stopped = report["switch"]["stopped_at_border"].as_u64()?;
            Some((report["node"].as_str()?.to_owned(), stopped))
        });
        stopped.filter(|(_, stopped)| *stopped > 0).collect()
    }

    /// Returns the links on which frames were lost, with the number of frames that one end sent and
    /// the other neither received nor counts as lost.
    pub fn cut(&self) -> Vec<(String, u64)> {
        let mut cut = Vec::new();
        for report in &self.0 {
            for link in report["links"].as_array().into_iter().flatten() {
                let other = self.link(&link["peer"], &report["node"]);
                let sent = link["sent"].as_u64().unwrap_or(0);
                let Some((received, lost)) = other
                    .and_then(|other| Some((other["received"].as_u64()?, other["lost"].as_u64()?)))
                else {
                    continue;
                };
                let missing = sent.saturating_sub(received + lost);
                if let (Some(from), Some(to), 1..) =
                    (report["node"].as_str(), link["peer"].as_str(), missing)
                {
                    cut.push((format!("{from} to {to}"), missing));
                }
            }
        }
        cut
    }

    /// Returns the report of a node's link to `peer`.
    fn link(&self, node: &Value, peer: &Value) -> Option<&Value> {
        let report = self.0.iter().find(|report| report["node"] == *node)?;
        let mut links = report["links"].as_array().into_iter().flatten();
        links.find(|link| link["peer"] == *peer)
    }

    /// Compares each flow's share, and the notifications by kind, with the simulation.
    pub fn compared(&self, truth: &Value) -> Comparison {
        let live = self.delivered();
        let simulated = delivered_of(truth);
        let sum = |all: &BTreeMap<String, u64>| all.values().sum::<u64>().max(1) as f64;
        let (live_sum, simulated_sum) = (sum(&live), sum(&simulated));
        let mut apart = 0.0_f64;
        let mut rows = Vec::new();
        for (flow, octets) in &simulated {
            let share = live.get(flow).copied().unwrap_or(0) as f64 / live_sum * 100.0;
            let expected = *octets as f64 / simulated_sum * 100.0;
            apart = apart.max((share - expected).abs());
            rows.push(vec![
                format!("share of {flow}"),
                format!("{share:.1} %"),
                format!("{expected:.1} %"),
            ]);
        }
        let mut totals = vec![vec![
            "delivered, MB".to_owned(),
            format!("{:.1}", live_sum / 1e6),
            format!("{:.1}", simulated_sum / 1e6),
        ]];
        let mut kinds: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for report in &self.0 {
            count(&mut kinds, &report["notified"], 0);
            count(
                &mut kinds,
                &json!({"pauses": report["switch"]["pauses"]}),
                0,
            );
        }
        for switch in truth["switches"].as_array().into_iter().flatten() {
            count(&mut kinds, &switch["notified"], 1);
            count(&mut kinds, &json!({"pauses": switch["pauses"]}), 1);
        }
        let mut missing = Vec::new();
        for (kind, [live, simulated]) in kinds {
            if live == 0 && simulated > 0 {
                missing.push(kind.clone());
            }
            // The ground truth has only the notifications of switches; receivers' CNPs are only in
            // the reports.
            let simulated = match simulated {
                0 => "not counted".to_owned(),
                some => some.to_string(),
            };
            if live > 0 || simulated != "not counted" {
                totals.push(vec![format!("{kind} sent"), live.to_string(), simulated]);
            }
        }
        Comparison {
            shares: rows,
            totals,
            apart,
            missing,
        }
    }

    /// Returns a warning if a node forwarded frames so late that the figures are those of a
    /// different network: the 99th percentile exceeds the interval of a flow's CNPs.
    pub fn lateness(&self, speed: f64) -> Option<String> {
        let late = self
            .0
            .iter()
            .filter_map(|report| report["late"]["p99_ns"].as_f64());
        let worst = late.fold(0.0, f64::max);
        (worst * speed > CNP_INTERVAL).then(|| {
            format!(
                "This machine is too busy: at p99, frames left {:.1} ms late ({:.0} µs of scenario time). Figures
  \
                 are those of a slower network; try --release or a lower --speed.",
                worst / 1e6,
                worst * speed / 1e3
            )
        })
    }

    /// Returns all flows, each once, as described by its nodes.
    pub fn flows(&self) -> Value {
        let flows = self
            .0
            .iter()
            .filter_map(|report| report["flows"].as_array());
        let named = flows
            .flatten()
            .map(|flow| (flow["name"].to_string(), flow.clone()));
        let once: BTreeMap<String, Value> = named.collect();
        serde_json::json!({"flows": once.into_values().collect::<Vec<_>>()})
    }

    /// Returns the octets delivered by flow, as reported by their receivers.
    fn delivered(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for report in &self.0 {
            for (flow, octets) in delivered_of(report) {
                *all.entry(flow).or_default() += octets;
            }
        }
        all
    }
}

/// A run on links beside the same in virtual time.
pub struct Comparison {
    shares: Vec<Vec<String>>,
    totals: Vec<Vec<String>>,
    /// Largest difference of a flow's share, in percentage points.
    apart: f64,
    /// Kinds of notification that only the simulation has.
    missing: Vec<String>,
}

impl Comparison {
    /// True if they agree.
    pub fn agrees(&self) -> bool {
        self.apart <= SHARE && self.missing.is_empty()
    }

    /// Returns a table; the shares are in it if there are few flows, or all are wanted.
    pub fn text(&self, all: bool) -> String {
        let shown = all || self.shares.len() <= LISTED / 2;
        let shares = self.shares.iter().filter(|_| shown);
        let rows: Vec<Vec<String>> = shares.chain(&self.totals).cloned().collect();
        let table = figures::table(&["", "on links", "virtual time"], &rows);
        let limit = format!(
            "at most {:.1} points apart; the limit is {SHARE:.0}",
            self.apart
        );
        let verdict = match (self.missing.as_slice(), self.apart <= SHARE) {
            ([], true) => format!("They agree: flows' shares are {limit}."),
            ([], false) => format!("They differ: flows' shares are {limit}."),
            (missing, _) => {
                let missing = missing.join(", ");
                format!("They differ: on links, none of {missing} (shares {limit}).")
            }
        };
        indented(&format!("{table}\n{verdict}"))
    }
}

fn delivered_of(report: &Value) -> BTreeMap<String, u64> {
    let flows = report["flows"].as_array().into_iter().flatten();
    let of = |flow: &Value| {
        let name = flow["name"].as_str()?.to_owned();
        Some((name, flow["octets_delivered"].as_u64()?))
    };
    flows.filter_map(of).collect()
}

fn count(kinds: &mut BTreeMap<String, [u64; 2]>, notified: &Value, place: usize) {
    for (kind, count) in notified.as_object().into_iter().flatten() {
        kinds.entry(kind.clone()).or_default()[place] += count.as_u64().unwrap_or(0);
    }
}

fn row(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let links = report["links"].as_array().cloned().unwrap_or_default();
    let sum = |key: &str| {
        links
            .iter()
            .filter_map(|link| link[key].as_u64())
            .sum::<u64>()
    };
    let known = links.iter().all(|link| link["lost"].is_u64());
    let lost = match known {
        true => (sum("lost") + sum("refused")).to_string(),
        false => "unknown".to_owned(),
    };
    let pairs = |value: &Value| {
        let all = value.as_object().into_iter().flatten();
        let all = all.map(|(kind, count)| format!("{kind} {count}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let mut sent = pairs(&report["notified"]);
    if let Some(pauses @ 1..) = report["switch"]["pauses"].as_u64() {
        let comma = if sent.is_empty() { "" } else { ", " };
        let _ = write!(sent, "{comma}pauses {pauses}");
    }
    let reactions = report["reactions"].as_object().cloned().unwrap_or_default();
    let time = |key: &str| {
        let times = reactions.values().filter_map(|times| times[key].as_f64());
        let times: Vec<String> = times.map(|ns| format!("{:.0} µs", ns / 1e3)).collect();
        times.join(", ")
    };
    let mut slowed: BTreeMap<String, u64> = BTreeMap::new();
    for flow in report["flows"].as_array().into_iter().flatten() {
        for (kind, count) in flow["slowed_by"].as_object().into_iter().flatten() {
            *slowed.entry(kind.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    let slowed = slowed.iter().map(|(kind, count)| format!("{kind} {count}"));
    vec![
        text(&report["node"]),
        text(&report["role"]),
        sum("received").to_string(),
        sum("sent").to_string(),
        lost,
        sent,
        time("p50_ns"),
        time("p99_ns"),
        slowed.collect::<Vec<_>>().join(", "),
    ]
}

/// Indents lines by two spaces.
pub fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("  {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcomes(delivered: [u64; 2]) -> Outcomes {
        let flow = |name: &str, octets: u64| json!({"name": name, "octets_delivered": octets, "slowed_by": {}});
        Outcomes(vec![
            json!({
                "node": "s1", "role": "sender",
                "links": [{"received": 3, "sent": 4, "lost": null, "refused": 0}],
                "notified": {}, "reactions": {},
                "flows": [{"name": "a", "octets_delivered": 0, "slowed_by": {"fast_cnp_1": 7}}],
            }),
            json!({
                "node": "leaf1", "role": "congestion-point",
                "links": [{"received": 1, "sent": 2, "lost": 0, "refused": 5}, {"received": 1, "sent": 2, "lost": 0, "refused": 0}],
                "notified": {"fast_cnp_1": 7},
                "reactions": {"fast_cnp_1": {"count": 7, "p50_ns": 42_000, "p99_ns": 99_000}},
                "flows": [],
            }),
            json!({
                "node": "r1", "role": "receiver", "links": [], "notified": {}, "reactions": {},
                "flows": [flow("a", delivered[0]), flow("b", delivered[1])],
            }),
        ])
    }

    #[test]
    fn a_node_is_a_line() {
        let text = outcomes([1, 1]).nodes(true);
        assert!(text.contains("unknown") && text.contains("42 µs"), "{text}");
        let switch = text.lines().find(|line| line.contains("leaf1")).unwrap();
        let cells: Vec<&str> = switch.split_whitespace().collect();
        assert_eq!(cells[..5], ["leaf1", "congestion-point", "2", "4", "5"]);
    }

    #[test]
    fn late_nodes_are_reported() {
        let late = |ns: u64| Outcomes(vec![json!({"late": {"p99_ns": ns}})]).lateness(0.01);
        assert_eq!(late(4_000_000), None);
        let text = late(25_800_000).unwrap();
        assert!(text.contains("25.8 ms late (258 µs"), "{text}");
    }

    #[test]
    fn shares_agree_or_differ() {
        let truth = json!({
            "flows": [{"name": "a", "octets_delivered": 60}, {"name": "b", "octets_delivered": 40}],
            "switches": [{"notified": {"fast_cnp_1": 9}}],
        });
        let compared = |delivered| outcomes(delivered).compared(&truth);
        assert!(compared([55, 45]).agrees() && !compared([20, 80]).agrees());
        let text = compared([55, 45]).text(false);
        assert!(
            text.contains("They agree: flows' shares are at most 5.0 points"),
            "{text}"
        );
        let text = compared([20, 80]).text(false);
        assert!(
            text.contains("They differ: flows' shares are at most 40.0 points"),
            "{text}"
        );
        let kind = text
            .lines()
            .find(|line| line.contains("fast_cnp_1 sent"))
            .unwrap();
        assert!(kind.contains('7') && kind.contains('9'), "{kind}");
    }

    #[test]
    fn kinds_that_only_the_simulation_has_are_a_difference() {
        let truth = json!({"flows": [], "switches": [{"notified": {}, "pauses": 3}]});
        let compared = outcomes([0, 0]).compared(&truth);
        assert!(!compared.agrees());
        let text = compared.text(true);
        assert!(text.contains("none of pauses"), "{text}");
    }

    #[test]
    fn a_link_that_cuts_frames_is_named() {
        let node = |name: &str, peer: &str, sent: u64, received: u64, lost: u64| {
            let link = json!({"peer": peer, "sent": sent, "received": received, "lost": lost});
            json!({"node": name, "links": [link]})
        };
        let all = Outcomes(vec![node("a", "b", 10, 5, 0), node("b", "a", 5, 6, 1)]);
        assert_eq!(all.cut(), [("a to b".to_owned(), 3)]);
    }
}
