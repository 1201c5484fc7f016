//! The report of `write`, as a table or as JSON. README.md describes the JSON.

use crate::truth::VantageTruth;
use crate::units::Ps;
use fcn_tool::quantity::{counted, grouped};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Name of the schema.
pub const REPORT_SCHEMA: &str = "fcn-gen/report";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const REPORT_VERSION: u32 = 1;

/// Summary of a written capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// The mechanism; `None` for a gallery.
    pub mechanism: Option<String>,
    /// The seed; `None` for a gallery.
    pub seed: Option<u64>,
    /// The capture file; `-` for standard output.
    pub file: String,
    /// The ground truth's file.
    pub truth: Option<String>,
    /// Number of packets captured.
    pub packets: u64,
    /// Octets of these packets on the wire.
    pub octets: u64,
    /// Interfaces of the capture.
    pub interfaces: Vec<VantageTruth>,
    /// Notifications in the capture, by kind. One that passes two vantage points is counted twice.
    pub notifications: BTreeMap<String, u64>,
    /// Length of the simulation in nanoseconds; of a gallery, the time from its first packet to its
    /// last.
    pub simulated_ns: u64,
    /// Time that the run took, in nanoseconds.
    pub took_ns: u64,
    /// Packets captured per second of the run.
    pub packets_per_second: f64,
}

impl Report {
    /// Returns the report as text: one line per fact.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![("scenario", self.scenario.clone())];
        if let (Some(mechanism), Some(seed)) = (&self.mechanism, self.seed) {
            lines.push(("mechanism", format!("{mechanism}, seed {seed}")));
        }
        let simulated = Ps::from_nanos(self.simulated_ns);
        lines.push(("simulated", simulated.to_string()));
        let (packets, octets) = (grouped(self.packets), counted(self.octets, "octet"));
        lines.push(("packets", format!("{packets}, {octets} on the wire")));
        if self.interfaces.len() > 1 {
            for interface in &self.interfaces {
                let packets = grouped(interface.packets);
                let octets = counted(interface.octets, "octet");
                lines.push(("", format!("{}: {packets}, {octets}", interface.name)));
            }
        }
        let kinds = self.notifications.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{} {kind}", grouped(*count)))
            .collect();
        let kinds = if kinds.is_empty() {
            "none".to_owned()
        } else {
            kinds.join(", ")
        };
        lines.push(("notifications", kinds));
        let took = Ps::from(Duration::from_millis(self.took_ns.div_ceil(1_000_000)));
        let speed = grouped(self.packets_per_second.round() as u64);
        lines.push(("took", format!("{took}, {speed} packets per second")));
        lines.push(("file", self.file.clone()));
        if let Some(truth) = &self.truth {
            lines.push(("truth", truth.clone()));
        }
        lines
            .into_iter()
            .map(|(name, value)| format!("{name:<14} {value}\n"))
            .collect()
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// The report contains a number that JSON cannot represent.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let interface = |name: &str, packets| VantageTruth {
            name: name.to_owned(),
            packets,
            octets: packets * 1_000,
        };
        Report {
            schema: REPORT_SCHEMA.to_owned(),
            version: REPORT_VERSION,
            scenario: "incast".to_owned(),
            mechanism: Some("cnp".to_owned()),
            seed: Some(7),
            file: "a.pcapng".to_owned(),
            truth: Some("a.json".to_owned()),
            packets: 12_345,
            octets: 12_345_000,
            interfaces: vec![interface("s1:h1", 12_000), interface("s1:h2", 345)],
            notifications: BTreeMap::from([("cnp".to_owned(), 1_200)]),
            simulated_ns: 2_000_000,
            took_ns: 12_300_000,
            packets_per_second: 1_003_658.5,
        }
    }

    #[test]
    fn each_fact_has_a_line() {
        assert_eq!(
            report().text(),
            "\
scenario       incast
mechanism      cnp, seed 7
simulated      2 ms
packets        12,345, 12,345,000 octets on the wire
               s1:h1: 12,000, 12,000,000 octets
               s1:h2: 345, 345,000 octets
notifications  1,200 cnp
took           13 ms, 1,003,659 packets per second
file           a.pcapng
truth          a.json
"
        );
    }

    #[test]
    fn gallery_has_neither_mechanism_nor_seed() {
        let mut report = report();
        (report.mechanism, report.seed, report.truth) = (None, None, None);
        report.notifications.clear();
        let text = report.text();
        assert!(!text.contains("mechanism") && !text.contains("truth"));
        assert!(text.contains("notifications  none\n"));
    }

    #[test]
    fn json_round_trips() {
        let report = report();
        let read: Report = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(read, report);
    }
}
