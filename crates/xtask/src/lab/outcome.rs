//! Reports of the nodes of a lab, combined, and compared with the simulation of the same scenario.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Outcome;
use crate::figures;

/// Allowed difference of a flow's share of all delivered octets, in percentage points. Each node
/// has its own random numbers, congestion control is chaotic, and a busy machine forwards frames
/// late: runs of the built-in scenarios differed by one to three points on two shared cores, and a
/// flow that is starved or never slows down differs by far more than this.
const SHARE: f64 = 10.0;

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

    /// Returns a table with a line per node.
    pub fn nodes(&self) -> String {
        let rows: Vec<Vec<String>> = self.0.iter().map(row).collect();
        let heading = [
            "node",
            "role",
            "frames in",
            "out",
            "lost",
            "sent",
            "p50",
            "p99",
            "slowed by",
        ];
        indented(&figures::table(&heading, &rows))
    }

    /// Compares each flow's share, and the notifications by kind, with the simulation.
    pub fn compared(&self, truth: &Value) -> Outcome<String> {
        let live = self.delivered();
        let simulated = delivered_of(truth);
        let sum = |all: &BTreeMap<String, u64>| all.values().sum::<u64>().max(1) as f64;
        let (live_sum, simulated_sum) = (sum(&live), sum(&simulated));
        let mut worst = 0.0_f64;
        let mut rows = Vec::new();
        for (flow, octets) in &simulated {
            let share = live.get(flow).copied().unwrap_or(0) as f64 / live_sum * 100.0;
            let expected = *octets as f64 / simulated_sum * 100.0;
            worst = worst.max((share - expected).abs());
            rows.push(vec![
                format!("share of {flow}"),
                format!("{share:.1} %"),
                format!("{expected:.1} %"),
            ]);
        }
        rows.push(vec![
            "delivered, MB".to_owned(),
            format!("{:.1}", live_sum / 1e6),
            format!("{:.1}", simulated_sum / 1e6),
        ]);
        let mut kinds: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for report in &self.0 {
            count(&mut kinds, &report["notified"], 0);
        }
        for switch in truth["switches"].as_array().into_iter().flatten() {
            count(&mut kinds, &switch["notified"], 1);
        }
        for (kind, [live, simulated]) in kinds {
            // The ground truth has only the notifications of switches; receivers' CNPs are only in
            // the reports.
            let simulated = match simulated {
                0 => "(receivers')".to_owned(),
                some => some.to_string(),
            };
            rows.push(vec![format!("{kind} sent"), live.to_string(), simulated]);
        }
        let table = indented(&figures::table(&["", "on links", "simulated"], &rows));
        let verdict = if worst <= SHARE { "agree" } else { "differ" };
        Ok(format!(
            "{table}\n  Shares {verdict}: at most {worst:.1} points apart; the limit is {SHARE:.0}."
        ))
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
                "Nodes forwarded frames up to {:.1} ms late at p99, {:.0} µs of scenario time: this machine is too \
                 busy for the speed, and figures are those of a slower network; use --release or a lower --speed.",
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
        pairs(&report["notified"]),
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
        let text = outcomes([1, 1]).nodes();
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
        assert!(text.contains("25.8 ms late at p99, 258 µs"), "{text}");
    }

    #[test]
    fn shares_agree_or_differ() {
        let truth = json!({
            "flows": [{"name": "a", "octets_delivered": 60}, {"name": "b", "octets_delivered": 40}],
            "switches": [{"notified": {"fast_cnp_1": 9}}],
        });
        let compared = |delivered| outcomes(delivered).compared(&truth).unwrap();
        assert!(compared([55, 45]).contains("Shares agree: at most 5.0 points"));
        assert!(compared([20, 80]).contains("Shares differ: at most 40.0 points"));
        let text = compared([1, 1]);
        let kind = text
            .lines()
            .find(|line| line.contains("fast_cnp_1 sent"))
            .unwrap();
        assert!(kind.contains('7') && kind.contains('9'), "{kind}");
    }
}
