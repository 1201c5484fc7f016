//! Which sample captures there are, and the `fcn-gen` arguments that make each.
//! Not here: what the scenarios and galleries are (`fcn-gen`).

use Scene::{Gallery, Simulation};

/// What a sample shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Packets composed one by one.
    Gallery,
    /// Hosts and switches at work; their ground truth stands beside the capture.
    Simulation,
}

/// One sample capture.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// File name without its ending.
    pub name: &'static str,
    /// The built-in scenario or gallery.
    pub scenario: &'static str,
    /// What it shows.
    pub scene: Scene,
    /// The settings that make this variant of the scenario, with semicolons between.
    pub variant: &'static str,
    /// The settings that keep it small, so that every packet can be in it whole, and still congested.
    pub small: &'static str,
}

impl Sample {
    /// The capture's file name.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.pcapng", self.name)
    }

    /// The name of the decoding's file, beside it.
    #[must_use]
    pub fn decoding_name(&self) -> String {
        format!("{}.txt", self.name)
    }

    /// The name of the file beside it with what is the plugin's in the decoding.
    #[must_use]
    pub fn fields_name(&self) -> String {
        format!("{}.fields.txt", self.name)
    }

    /// The name of the ground truth's file, beside it; galleries have none.
    #[must_use]
    pub fn truth_name(&self) -> Option<String> {
        (self.scene == Simulation).then(|| format!("{}.truth.json", self.name))
    }

    /// The arguments of `fcn-gen` that write it, and its ground truth, into the present folder.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["write".to_owned(), self.scenario.to_owned()];
        let sets = self.variant.split("; ").chain(self.small.split("; "));
        let sets = sets.filter(|set| !set.is_empty());
        words.extend(sets.flat_map(|set| ["--set".to_owned(), set.to_owned()]));
        words.extend(["-o".to_owned(), self.file_name()]);
        if let Some(truth) = self.truth_name() {
            words.extend(["--truth".to_owned(), truth]);
        }
        words
    }
}

const fn family(name: &'static str, gallery: &'static str, family: &'static str) -> Sample {
    Sample {
        name,
        scenario: gallery,
        scene: Gallery,
        variant: family,
        small: "",
    }
}

const fn simulated(
    name: &'static str,
    scenario: &'static str,
    variant: &'static str,
    small: &'static str,
) -> Sample {
    Sample {
        name,
        scenario,
        scene: Simulation,
        variant,
        small,
    }
}

// Slow links and small packets: as many microseconds, fewer packets. Low thresholds: the queue tells early.
const RECEIVER_CNP: &str =
    "mtu=256; rate=1G; message=2KiB; defaults.marking.kmin=1kB; duration=300us";
const FAST_CNP: &str = "mtu=256; rate=1G; link.down.rate=1G; message=2KiB; defaults.marking.kmin=2kB; \
    duration=240us";
const IOAM: &str = "mtu=256; rate=1G; message=2KiB; defaults.marking.kmin=2kB; duration=150us";
const DETOUR: &str = "senders=4; mtu=256; defaults.rate=1G; link.1.rate=4G; link.wide.rate=4G; narrow=1G; \
    host.r.rate=2500M; hold=100us; message=2KiB; defaults.marking.kmin=1kB; duration=180us";
const PROXY: &str = "mtu=256; rate=1G; message=2KiB; defaults.marking.kmin=1kB; duration=150us; \
    vantage=[\"leaf2:spine1\", \"leaf1:s1\"]";
const WAN_FCN: &str = "mtu=256; rate=500M; defaults.rate=1G; message=2KiB; defaults.marking.kmin=2kB; \
    duration=1180us";
const PFC: &str = "mtu=256; rate=1G; link.up.rate=1G; link.down.rate=1G; host.r1.rate=500M; \
    flow.victim.rate_limit=100M; message=2KiB; defaults.pause.xoff=3kB; \
    defaults.pause.xon=1kB; inject.storm.start=250us; storm=3; duration=400us";
const INCAST: &str =
    "senders=4; mtu=256; rate=1G; message=2KiB; defaults.marking.kmin=2kB; duration=250us";
const VICTIM_FLOW: &str = "mtu=256; rate=1G; flow.victim.rate_limit=400M; message=2KiB; defaults.pause.xoff=4kB; \
    defaults.pause.xon=2kB; duration=250us";
const ALL_TO_ALL: &str = "hosts=3; mtu=256; rate=1G; link.fabric.rate=400M; message=8KiB; \
    defaults.marking.kmin=1kB; duration=300us";
const ATTACK: &str = "mtu=256; rate=1G; defaults.marking.kmin=2kB; storm=5; inject.own.start=50us; \
    inject.claimed.start=150us; inject.replay.start=230us; inject.cnps.start=320us; \
    duration=400us";

/// The sample captures, in the order in which they are listed.
pub const ALL: &[Sample] = &[
    simulated("receiver-cnp-ipv6", "receiver-cnp", "ip=6", RECEIVER_CNP),
    simulated("receiver-cnp-ipv4", "receiver-cnp", "ip=4", RECEIVER_CNP),
    simulated("fast-cnp", "fast-cnp", "", FAST_CNP),
    simulated(
        "fast-cnp-ioam-preallocated",
        "fast-cnp-ioam",
        "trace=preallocated",
        IOAM,
    ),
    simulated(
        "fast-cnp-ioam-incremental",
        "fast-cnp-ioam",
        "trace=incremental",
        IOAM,
    ),
    simulated("receiver-fast-cnp", "receiver-fast-cnp", "", RECEIVER_CNP),
    simulated("detour", "detour", "", DETOUR),
    simulated("proxy-config", "proxy", "known_by=config", PROXY),
    simulated("proxy-option", "proxy", "known_by=option", PROXY),
    simulated("proxy-isis", "proxy", "known_by=isis", PROXY),
    simulated("proxy-ospfv2", "proxy", "known_by=ospfv2", PROXY),
    simulated("proxy-ospfv3", "proxy", "known_by=ospfv3", PROXY),
    simulated("proxy-bgp", "proxy", "known_by=bgp", PROXY),
    simulated("wan-fcn-srv6", "wan-fcn", "tunnel=srv6", WAN_FCN),
    simulated("wan-fcn-vxlan", "wan-fcn", "tunnel=vxlan", WAN_FCN),
    simulated("wan-fcn-sr-mpls", "wan-fcn", "tunnel=sr-mpls", WAN_FCN),
    simulated("pfc", "pfc", "", PFC),
    simulated("incast", "incast", "", INCAST),
    simulated("victim-flow", "victim-flow", "", VICTIM_FLOW),
    simulated("all-to-all", "all-to-all", "", ALL_TO_ALL),
    simulated("attack", "attack", "", ATTACK),
    family("formats-cnp", "formats", "family=cnp"),
    family("formats-fast-cnp", "formats", "family=fast-cnp"),
    family("formats-ioam", "formats", "family=ioam"),
    family(
        "formats-fast-cnp-tunnels",
        "formats",
        "family=fast-cnp-tunnels",
    ),
    family("formats-unaware-sender", "formats", "family=unaware-sender"),
    family("formats-proxy-cn", "formats", "family=proxy-cn"),
    family("formats-wan-fcn", "formats", "family=wan-fcn"),
    family("formats-pnc", "formats", "family=pnc"),
    family("formats-rdma-cm", "formats", "family=rdma-cm"),
    family("formats-pfc", "formats", "family=pfc"),
    family("formats-cut", "formats", "family=cut"),
    family("malformed-cnp", "malformed", "family=cnp"),
    family("malformed-fast-cnp", "malformed", "family=fast-cnp"),
    family("malformed-ioam", "malformed", "family=ioam"),
    family("malformed-proxy-cn", "malformed", "family=proxy-cn"),
    family("malformed-wan-fcn", "malformed", "family=wan-fcn"),
    family("malformed-pnc", "malformed", "family=pnc"),
    family("malformed-pfc", "malformed", "family=pfc"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|sample| sample.name).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn arguments_name_the_files() {
        let words = |name| {
            let sample = ALL.iter().find(|sample| sample.name == name).unwrap();
            sample.arguments().join(" ")
        };
        assert_eq!(
            words("formats-pfc"),
            "write formats --set family=pfc -o formats-pfc.pcapng"
        );
        let proxy = words("proxy-bgp");
        assert!(
            proxy.starts_with("write proxy --set known_by=bgp --set mtu=256 "),
            "{proxy}"
        );
        assert!(
            proxy.ends_with(" -o proxy-bgp.pcapng --truth proxy-bgp.truth.json"),
            "{proxy}"
        );
    }
}
