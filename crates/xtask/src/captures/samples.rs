//! List of sample captures, and the `fcn-gen` arguments for those that it writes.
//! Not here: the scenarios and galleries (`fcn-gen`), and the capturing of the others
//! (`soft_roce.rs`, `routers.rs`).

/// Type of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Packets composed one by one.
    Gallery,
    /// Hosts and switches at work; the ground truth is beside the capture.
    Simulation,
    /// Captured once from a network: committed, and not rewritten with the others.
    Recorded,
    /// Like `Recorded`, but captured from routers.
    Routed,
}

/// One sample capture.
#[derive(Clone, Debug)]
pub struct Sample {
    /// File name without its ending.
    pub name: String,
    /// Built-in scenario or gallery, or the captured network.
    pub scenario: &'static str,
    /// Type of the sample.
    pub scene: Scene,
    /// Setting that selects this variant of the scenario, if any.
    pub variant: String,
}

impl Sample {
    /// Returns true if it was captured, not generated.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        matches!(self.scene, Scene::Recorded | Scene::Routed)
    }

    /// Returns the file name of the capture.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.pcapng", self.name)
    }

    /// Returns the name of the file with the decoding, beside it.
    #[must_use]
    pub fn decoding_name(&self) -> String {
        format!("{}.txt", self.name)
    }

    /// Returns the name of the file with the plugin's part of the decoding, beside it.
    #[must_use]
    pub fn fields_name(&self) -> String {
        format!("{}.fields.txt", self.name)
    }

    /// Returns the name of the file with the ground truth, beside it; only simulations have one.
    #[must_use]
    pub fn truth_name(&self) -> Option<String> {
        (self.scene == Scene::Simulation).then(|| format!("{}.truth.json", self.name))
    }

    /// Returns the `fcn-gen` arguments that write it, and its ground truth, into the current
    /// folder. They do not apply to recorded samples.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["write".to_owned(), self.scenario.to_owned()];
        let sets = std::iter::once(&*self.variant).chain(small(self.scenario).split("; "));
        let sets = sets.filter(|set| !set.is_empty());
        words.extend(sets.flat_map(|set| ["--set".to_owned(), set.to_owned()]));
        words.extend(["-o".to_owned(), self.file_name()]);
        if let Some(truth) = self.truth_name() {
            words.extend(["--truth".to_owned(), truth]);
        }
        words
    }
}

/// Returns the settings that keep a scenario small, so that every packet can be captured whole, but
/// congested long enough for fcn-top to judge which senders obey. Slow links and small packets
/// cover the same time with fewer octets, and with low thresholds the queue signals congestion
/// early.
fn small(scenario: &str) -> &'static str {
    match scenario {
        "receiver-cnp" | "receiver-fast-cnp" => {
            "mtu=256; rate=1G; message=4KiB; defaults.marking.kmin=2kB; snap_len=0; duration=5ms; \
             vantage=[\"leaf1:r1\", \"leaf1:s*\"]"
        }
        "switch-cnp" => {
            "mtu=256; rate=1G; link.up.rate=4G; link.down.rate=1G; flow.load.count=2; message=1KiB; \
             defaults.marking.kmin=2kB; snap_len=0; duration=5ms"
        }
        "fast-cnp" => {
            "mtu=256; rate=1G; link.down.rate=1G; message=4KiB; defaults.marking.kmin=2kB; snap_len=0; duration=6ms"
        }
        "fast-cnp-ioam" => {
            "mtu=256; rate=1G; message=4KiB; defaults.marking.kmin=4kB; snap_len=0; duration=3500us"
        }
        "stubborn-sender" => {
            "mtu=256; rate=1G; link.up.rate=4G; link.down.rate=1G; flow.stubborn.rate_limit=300M; message=4KiB; \
             defaults.marking.kmin=4kB; snap_len=0; duration=8ms"
        }
        "detour" => {
            "senders=4; mtu=256; defaults.rate=1G; link.1.rate=4G; link.wide.rate=4G; narrow=1G; host.r.rate=2500M; \
             hold=100us; message=2KiB; defaults.marking.kmin=1kB; duration=180us"
        }
        "proxy" => {
            "mtu=256; rate=1G; message=2KiB; defaults.marking.kmin=1kB; snap_len=0; duration=3ms; \
             vantage=[\"leaf2:spine1\", \"leaf1:s1\"]"
        }
        "wan-fcn" => {
            "mtu=256; rate=500M; defaults.rate=1G; message=4KiB; defaults.marking.kmin=2kB; snap_len=0; duration=8ms; \
             vantage=[\"p1:p2\", \"p1:pe1\", \"leaf1:s1\"]"
        }
        "pfc" => {
            "mtu=256; rate=1G; link.up.rate=1G; link.down.rate=1G; host.r1.rate=500M; flow.victim.rate_limit=100M; \
             message=2KiB; defaults.pause.xoff=3kB; defaults.pause.xon=1kB; inject.storm.start=250us; storm=3; \
             duration=400us"
        }
        "incast" => {
            "senders=4; mtu=256; rate=1G; message=4KiB; defaults.marking.kmin=2kB; snap_len=0; duration=5ms"
        }
        "victim-flow" => {
            "mtu=256; rate=1G; flow.victim.rate_limit=400M; message=2KiB; defaults.pause.xoff=4kB; \
             defaults.pause.xon=2kB; duration=250us"
        }
        "all-to-all" => {
            "hosts=3; mtu=256; rate=1G; link.fabric.rate=400M; message=1MiB; defaults.marking.kmin=1kB; snap_len=0; duration=3ms"
        }
        "attack" => {
            "mtu=256; rate=1G; defaults.marking.kmin=4kB; storm=5; inject.own.start=50us; inject.claimed.start=150us; \
             inject.replay.start=230us; inject.cnps.start=320us; duration=6ms"
        }
        "border" => {
            "flow.load.mtu=256; flow.foreign.mtu=256; switch.border.marking.kmin=2kB; switch.border.marking.kmax=8kB; \
             snap_len=0; duration=4ms; vantage=[\"west:border\", \"other:border\"]"
        }
        _ => "",
    }
}

/// Name, scenario and variant of the simulated samples, in the order of the list.
const SIMULATED: &str = "\
    receiver-cnp-ipv6           receiver-cnp       ip=6
    receiver-cnp-ipv4           receiver-cnp       ip=4
    switch-cnp                  switch-cnp
    fast-cnp                    fast-cnp
    fast-cnp-ioam-preallocated  fast-cnp-ioam      trace=preallocated
    fast-cnp-ioam-incremental   fast-cnp-ioam      trace=incremental
    receiver-fast-cnp           receiver-fast-cnp
    stubborn-sender             stubborn-sender
    detour                      detour
    proxy-config                proxy              known_by=config
    proxy-option                proxy              known_by=option
    proxy-isis                  proxy              known_by=isis
    proxy-ospfv2                proxy              known_by=ospfv2
    proxy-ospfv3                proxy              known_by=ospfv3
    proxy-bgp                   proxy              known_by=bgp
    wan-fcn-srv6                wan-fcn            tunnel=srv6
    wan-fcn-vxlan               wan-fcn            tunnel=vxlan
    wan-fcn-sr-mpls             wan-fcn            tunnel=sr-mpls
    pfc                         pfc
    incast                      incast
    victim-flow                 victim-flow
    all-to-all                  all-to-all
    attack                      attack
    border                      border";

/// Galleries, and the families of packets in them that are samples.
const COMPOSED: [(&str, &str); 2] = [
    (
        "formats",
        "cnp fast-cnp ioam fast-cnp-tunnels unaware-sender proxy-cn wan-fcn pnc rdma-cm pfc neighbours trimmed cut",
    ),
    ("malformed", "cnp fast-cnp ioam proxy-cn wan-fcn pnc pfc"),
];

/// Network that was captured, and prefix of the samples' names.
pub const RECORDED: &str = "soft-roce";

/// Captured cases, in the order of the list, each with a description.
pub const CASES: [(&str, &str); 12] = [
    (
        "rping-ipv4",
        "rping over IPv4: RDMA CM sets up and takes down; sends, writes and reads between",
    ),
    ("rping-ipv6", "The same over IPv6"),
    (
        "verbs-ipv4",
        "perftest over IPv4, QPs exchanged by TCP: RDMA writes, reads, datagrams (UD), atomic operations",
    ),
    ("verbs-ipv6", "The same over IPv6"),
    (
        "loss",
        "Packets lost on the way: NAKs, retransmissions and repeated requests, late copies",
    ),
    (
        "ce",
        "A queue marks a flow's data CE; the receiver answers with no CNP",
    ),
    (
        "cut",
        "Sends of four packets, of which 128 octets each were captured",
    ),
    (
        "notified",
        "A CNP and Fast CNPs sent to the sender by fcn-replay: ignored, and answered by ICMPv6 Parameter Problem",
    ),
    (
        "switch-fast-cnp",
        "rping and perftest through `fcn-gen emulate congestion-point`, whose slow link makes it send Fast CNPs",
    ),
    (
        "switch-cnp",
        "The same with plain CNPs from the switch, in the receiver's name",
    ),
    (
        "receiver",
        "rping and a socket of librdmacm to `fcn-gen emulate receiver`, which answers CE with CNPs",
    ),
    (
        "sender",
        "`fcn-gen emulate sender` to a socket of librdmacm, through `fcn-gen emulate congestion-point`, whose Fast CNPs slow it",
    ),
];

/// Prefix of the names of samples captured from routers.
const ROUTED: &str = "routers";

/// A case captured from routers.
#[derive(Clone, Copy, Debug)]
pub struct Routed {
    /// Name of the case.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Capture points: router and interface, which has the name of the router at the other end.
    pub interfaces: [&'static str; 3],
}

impl Routed {
    /// Returns the name of the sample.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{ROUTED}-{}", self.name)
    }
}

/// Cases, in the order of the list.
pub const ROUTERS: [Routed; 4] = [
    Routed {
        name: "ospf-area",
        about: "OSPFv2: the PNC flag in an LSA of area 1, which ends at the border; the border passes it on without, then with it; MaxAge",
        interfaces: ["proxy-inner", "border-inner", "core-border"],
    },
    Routed {
        name: "ospf-domain",
        about: "OSPFv2: the PNC flag in an LSA of the whole domain, which the border passes on as it is; without the flag, then MaxAge",
        interfaces: ["proxy-inner", "border-inner", "core-border"],
    },
    Routed {
        name: "isis",
        about: "IS-IS: the PNC flag in an LSP of level 1, without it, with it, purged; the border does not advertise \
            the prefix to level 2",
        interfaces: ["proxy-inner", "border-inner", "core-border"],
    },
    Routed {
        name: "bgp",
        about: "BGP: attribute 39 with the PNC characteristic, through a route reflector, and to another AS with another next hop; withdrawn",
        interfaces: ["proxy-reflector", "edge-reflector", "outside-edge"],
    },
];

/// Returns the sample captures, in the order of the list.
#[must_use]
pub fn all() -> Vec<Sample> {
    let simulated = SIMULATED.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(Sample {
            name: words.next()?.to_owned(),
            scenario: words.next()?,
            scene: Scene::Simulation,
            variant: words.next().unwrap_or_default().to_owned(),
        })
    });
    let composed = COMPOSED.iter().flat_map(|(gallery, families)| {
        families.split(' ').map(move |family| Sample {
            name: format!("{gallery}-{family}"),
            scenario: gallery,
            scene: Scene::Gallery,
            variant: format!("family={family}"),
        })
    });
    let recorded = CASES.iter().map(|(case, _)| Sample {
        name: format!("{RECORDED}-{case}"),
        scenario: RECORDED,
        scene: Scene::Recorded,
        variant: String::new(),
    });
    let routed = ROUTERS.iter().map(|case| Sample {
        name: case.file(),
        scenario: ROUTED,
        scene: Scene::Routed,
        variant: String::new(),
    });
    (simulated.chain(composed).chain(recorded))
        .chain(routed)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = all().into_iter().map(|sample| sample.name).collect();
        assert_eq!((names.len(), all().len()), (60, 60));
    }

    #[test]
    fn arguments_name_the_files() {
        let words = |name| {
            let sample = all().into_iter().find(|sample| sample.name == name);
            sample.unwrap().arguments().join(" ")
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
