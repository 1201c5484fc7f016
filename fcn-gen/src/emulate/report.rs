//! The report at the end of a run, as text and as JSON. docs/emulate.md describes the JSON.

use super::drive::{LinkTraffic, Measured, RunEnd};
use crate::device::fault::InjectedFault;
use crate::sim::live::Counters;
use crate::truth::{FlowTruth, SwitchTruth};
use fcn_link::port::Port;
use fcn_tool::quantity::{bits_per_second, counted, grouped};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Name of the report's schema.
pub const EMULATE_SCHEMA: &str = "fcn-gen/emulate";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const EMULATE_VERSION: u32 = 1;

/// A run that is over.
pub struct FinishedRun {
    pub ended: RunEnd,
    pub measured: Measured,
    pub links: Vec<LinkReport>,
}

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub version: u32,
    pub role: String,
    pub node: String,
    pub scenario: String,
    pub mechanism: String,
    pub speed: f64,
    pub seconds: f64,
    pub ended: String,
    pub links: Vec<LinkReport>,
    /// Notifications sent, by kind.
    pub notified: BTreeMap<&'static str, u64>,
    /// Times from the arrival of the packet answered to the sending of the answer, by kind.
    pub reactions: BTreeMap<&'static str, Times>,
    /// Lateness of sent frames.
    pub late: Times,
    /// Counters by role.
    pub counters: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    pub passed_over: BTreeMap<&'static str, u64>,
    /// Injected faults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<InjectedFault>,
    /// Statistics of a switch.
    pub switch: Option<SwitchTruth>,
    /// Flows that begin or end at a host.
    pub flows: Vec<FlowTruth>,
}

/// Statistics of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    pub interface: String,
    pub peer: String,
    pub mode: String,
    #[serde(flatten)]
    pub traffic: LinkTraffic,
    /// Received frames lost because they were not read in time; null if unknown.
    pub lost: Option<u64>,
    pub outages: Outage,
}

/// Outages of a link: down, without carrier, or removed.
#[derive(Clone, Debug, Serialize)]
pub struct Outage {
    pub count: u64,
    pub seconds: f64,
    /// Frames that could not be sent in the meantime.
    pub lost: u64,
    /// The reason, if the link is still down.
    pub now: Option<String>,
}

impl Outage {
    pub fn of(port: &Port) -> Self {
        let outages = port.outages();
        Self {
            count: outages.count,
            seconds: outages.time.as_secs_f64(),
            lost: outages.lost,
            now: port.outage_reason().map(str::to_owned),
        }
    }
}

/// Statistics of times, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct Times {
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Times {
    pub fn of(all: &Histogram<u64>) -> Self {
        Self {
            count: all.len(),
            p50_ns: all.value_at_quantile(0.5),
            p99_ns: all.value_at_quantile(0.99),
            max_ns: all.max(),
        }
    }

    fn text(&self) -> String {
        let time = |ns| format!("{:?}", Duration::from_nanos(rounded(ns)));
        format!(
            "p50 {}, p99 {}, max {}",
            time(self.p50_ns),
            time(self.p99_ns),
            time(self.max_ns)
        )
    }
}

/// Rounds to three significant digits, the precision of the histogram.
const fn rounded(ns: u64) -> u64 {
    let mut unit = 1;
    while ns / unit >= 1_000 {
        unit *= 10;
    }
    ns / unit * unit
}

impl RunEnd {
    pub fn text(&self) -> String {
        match self {
            Self::TimeUp => "the time was up".to_owned(),
            Self::Done => "every message was acknowledged".to_owned(),
            Self::Interrupted => "interrupted".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }
}

impl Report {
    /// Creates the report of a run, with what every role has. `role` is the role, and the names of
    /// its node, its scenario and its mechanism.
    pub fn of(
        [role, node, scenario, mechanism]: [&str; 4],
        speed: f64,
        run: &FinishedRun,
        counters: Counters,
    ) -> Self {
        let measured = &run.measured;
        Self {
            schema: EMULATE_SCHEMA,
            version: EMULATE_VERSION,
            role: role.to_owned(),
            node: node.to_owned(),
            scenario: scenario.to_owned(),
            mechanism: mechanism.to_owned(),
            speed,
            seconds: measured.ran as f64 / 1e9,
            ended: run.ended.text(),
            links: run.links.clone(),
            notified: BTreeMap::new(),
            reactions: (measured.reactions.iter())
                .map(|(kind, all)| (kind.id(), Times::of(all)))
                .collect(),
            late: Times::of(&measured.late),
            counters: (counters.into_iter())
                .map(|(role, counters)| (role, counters.into_iter().collect()))
                .collect(),
            passed_over: BTreeMap::new(),
            faults: Vec::new(),
            switch: None,
            flows: Vec::new(),
        }
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, what: String| {
            let _ = writeln!(text, "{name:<18} {what}");
        };
        line(
            "ended",
            format!("{}, after {:.3} s", self.ended, self.seconds),
        );
        for InjectedFault {
            fault,
            about,
            frames,
        } in &self.faults
        {
            let frames = frames.map_or_else(
                || "by configuration".to_owned(),
                |frames| counted(frames, "frame"),
            );
            line("fault", format!("{fault}: {about}; {frames}"));
        }
        for link in &self.links {
            let traffic = &link.traffic;
            let rate = |octets: u64| bits_per_second(octets as f64 * 8.0 / self.seconds.max(1e-9));
            let mut what = format!(
                "{} in ({}), {} out ({})",
                grouped(traffic.received),
                rate(traffic.received_octets),
                grouped(traffic.sent),
                rate(traffic.sent_octets),
            );
            if traffic.refused > 0 {
                let _ = write!(what, ", {} refused by the link", grouped(traffic.refused));
            }
            match link.lost {
                Some(0) => {}
                Some(lost) => {
                    let _ = write!(what, ", {} lost before being read", grouped(lost));
                }
                None => what.push_str(", lost before being read: unknown"),
            }
            line(&link.interface, what);
            let Outage {
                count,
                seconds,
                lost,
                now,
            } = &link.outages;
            if *count > 0 {
                let (count, lost) = (counted(*count, "time"), counted(*lost, "frame"));
                let now = now
                    .as_ref()
                    .map_or_else(String::new, |why| format!("; {why}"));
                line(
                    "",
                    format!(
                        "unusable {count}, {seconds:.1} s in total: {lost} could not be sent{now}"
                    ),
                );
            }
        }
        let sent = self.notified.iter();
        let sent: Vec<_> = sent
            .map(|(kind, n)| format!("{kind} {}", grouped(*n)))
            .collect();
        if !sent.is_empty() {
            line("notifications", sent.join(", "));
        }
        for (kind, times) in &self.reactions {
            line(&format!("reaction {kind}"), times.text());
        }
        if self.late.count > 0 {
            line("frames late by", self.late.text());
        }
        if let Some(switch) = &self.switch {
            let dropped = grouped(switch.dropped);
            let queue = grouped(switch.peak_queue);
            line("queue", format!("peak {queue} octets, {dropped} dropped"));
        }
        for (role, counters) in &self.counters {
            line(&role.replace('_', " "), counted_ones(counters));
        }
        if self.passed_over.values().any(|count| *count > 0) {
            line("ignored", counted_ones(&self.passed_over));
        }
        for flow in &self.flows {
            line(&flow.name, flow_text(flow));
        }
        text
    }
}

/// Lists the counters that are not 0.
fn counted_ones(counters: &BTreeMap<&'static str, u64>) -> String {
    let counters = counters.iter().filter(|(_, count)| **count > 0);
    let counters: Vec<_> = counters
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), grouped(*count)))
        .collect();
    match counters.as_slice() {
        [] => "nothing".to_owned(),
        some => some.join(", "),
    }
}

fn flow_text(flow: &FlowTruth) -> String {
    let mut parts = Vec::new();
    if flow.packets_sent > 0 {
        let again = grouped(flow.packets_again);
        let sent = counted(flow.packets_sent, "packet");
        parts.push(format!("{sent} sent, {again} of them retransmitted"));
        parts.push(counted(flow.messages_done, "message") + " done");
    }
    if flow.octets_delivered > 0 {
        let octets = counted(flow.octets_delivered, "octet");
        parts.push(format!("{octets} delivered"));
        parts.push(format!("{} CE", grouped(flow.ce_received)));
    }
    for (kind, count) in &flow.slowed_by {
        parts.push(format!("slowed by {kind} {}", grouped(*count)));
    }
    match parts.as_slice() {
        [] => "nothing".to_owned(),
        some => some.join(", "),
    }
}
