//! Prometheus metrics of a role while it runs.

use super::drive::Measured;
use crate::device::LinkNode;
use fcn_tool::metrics::Page;
use hdrhistogram::Histogram;

fcn_tool::families! {
    BUILD = "fcn_gen_build_info", Gauge, &["version"], "Version of fcn-gen; always 1";
    ROLE = "fcn_gen_emulate_info", Gauge, &["role", "node", "scenario", "mechanism"], "Role, node, scenario and mechanism; always 1";
    UP = "fcn_gen_link_up", Gauge, &["interface"], "1 if the interface can be used, else 0";
    PACKETS = "fcn_gen_link_packets_total", Counter, &["interface", "direction"], "Frames received or sent on a link";
    OCTETS = "fcn_gen_link_octets_total", Counter, &["interface", "direction"], "Octets of these frames, without FCS";
    LOST = "fcn_gen_link_refused_total", Counter, &["interface"], "Frames that could not be sent: too long, no room, or the link was down or gone";
    NOTIFICATIONS = "fcn_gen_notifications_total", Counter, &["kind"], "Congestion notifications sent in response to received frames";
    REACTION = "fcn_gen_reaction_seconds", Gauge, &["kind", "quantile"], "Time from reading a frame to sending the notification about it, since the start";
    LATE = "fcn_gen_late_seconds", Gauge, &["quantile"], "How late frames were sent, since the start";
    COUNTER = "fcn_gen_role_total", Counter, &["role", "counter"], "Counters of the node's roles, named as in the report";
    DELIVERED = "fcn_gen_delivered_octets_total", Counter, &[], "Payload delivered here in order";
    RATE = "fcn_gen_sending_bits_per_second", Gauge, &[], "Sum of the rates of the flows that start here, in the node's time";
    QUEUE = "fcn_gen_queue_octets", Gauge, &[], "Current depth of the deepest data queue";
}

/// Labels that do not change.
pub struct Names {
    /// Values of `role`, `node`, `scenario`, `mechanism`.
    pub role: [String; 4],
    /// Names of the links' interfaces.
    pub interfaces: Vec<String>,
}

/// Returns the page of metrics.
pub fn page(names: &Names, measured: &Measured, node: &mut impl LinkNode) -> String {
    let mut page = Page::default();
    let version = env!("CARGO_PKG_VERSION");
    page.family(&BUILD).add(&[version], 1);
    page.family(&ROLE).add(&names.role, 1);
    let links = || names.interfaces.iter().zip(&measured.traffic);
    let mut up = page.family(&UP);
    for (interface, passed) in links() {
        up.add(&[interface], u8::from(!passed.is_away));
    }
    let mut packets = page.family(&PACKETS);
    for (interface, passed) in links() {
        packets.add(&[interface, "in"], passed.received);
        packets.add(&[interface, "out"], passed.sent);
    }
    let mut octets = page.family(&OCTETS);
    for (interface, passed) in links() {
        octets.add(&[interface, "in"], passed.received_octets);
        octets.add(&[interface, "out"], passed.sent_octets);
    }
    let mut lost = page.family(&LOST);
    for (interface, passed) in links() {
        lost.add(&[interface], passed.refused);
    }
    let mut notifications = page.family(&NOTIFICATIONS);
    for (kind, times) in &measured.reactions {
        notifications.add(&[kind.id()], times.len());
    }
    let mut reaction = page.family(&REACTION);
    for (kind, times) in &measured.reactions {
        for (name, value) in quantiles(times) {
            reaction.add(&[kind.id(), name], value);
        }
    }
    let mut late = page.family(&LATE);
    for (name, value) in quantiles(&measured.late) {
        late.add(&[name], value);
    }
    let mut counters = page.family(&COUNTER);
    for (role, all) in node.counters() {
        for (counter, count) in all {
            counters.add(&[role, counter], count);
        }
    }
    let (delivered, rate, queue) = node.figures();
    page.single(&DELIVERED, delivered);
    page.single(&RATE, rate);
    page.single(&QUEUE, queue);
    page.finish()
}

/// Returns quantiles: name, and value in seconds.
fn quantiles(times: &Histogram<u64>) -> [(&'static str, f64); 2] {
    [("0.5", 0.5), ("0.99", 0.99)].map(|(name, quantile)| {
        let nanoseconds = times.value_at_quantile(quantile);
        (name, nanoseconds as f64 / 1e9)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::drive::LinkTraffic;
    use crate::scenario::{Play, Source, load};
    use crate::sim::live::LiveNode;
    use fcn_wire::Kind;

    #[test]
    fn page_has_all_metrics() {
        let scenario = load(&Source::Builtin("fast-cnp".to_owned()), &[]).unwrap();
        let Play::Simulation(simulation) = &scenario.play else {
            panic!("not a simulation");
        };
        let spine = simulation.nodes.iter().position(|n| n.name == "spine1");
        let mut node = LiveNode::new(simulation, spine.unwrap(), vec![[2; 6]; 2], None);
        let mut measured = Measured {
            traffic: vec![LinkTraffic::default(); 2],
            ..Measured::default()
        };
        measured.traffic[0].received = 7;
        measured.traffic[1].is_away = true;
        measured.late.record(2_000).unwrap();
        let mut times = Histogram::new(3).unwrap();
        times.record(5_000).unwrap();
        measured.reactions.insert(Kind::FastCnp1, times);
        let names = Names {
            role: ["congestion-point", "spine1", "a \"name\"", "fast-cnp"].map(str::to_owned),
            interfaces: vec!["eth1".to_owned(), "eth2".to_owned()],
        };
        let page = page(&names, &measured, &mut node);
        for family in FAMILIES {
            assert!(
                page.contains(&format!("\n{}", family.name)),
                "{}",
                family.name
            );
        }
        for line in [
            "fcn_gen_link_up{interface=\"eth2\"} 0",
            "fcn_gen_link_packets_total{interface=\"eth1\",direction=\"in\"} 7",
            "fcn_gen_notifications_total{kind=\"fast_cnp_1\"} 1",
            "fcn_gen_late_seconds{quantile=\"0.99\"} 0.000002",
            "fcn_gen_role_total{role=\"congestion_point\",counter=\"packets\"} 0",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
        assert!(page.contains(r#"scenario="a \"name\"""#), "{page}");
    }
}
