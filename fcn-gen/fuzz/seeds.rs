//! Writes the seeds of the fuzz target into `corpus/`: the built-in scenarios, and a small one with
//! additions, many of which are refused. Each run writes the same octets.

use fcn_gen::scenario::builtin;
use fcn_gen_fuzz::targets::SET;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A small scenario with every kind of entry.
const SMALL: &str = r#"about = "test"
mechanism = "fast-cnp"
duration = "1ms"
vantage = ["leaf1:r1", "leaf*:spine1"]
[parameters]
senders = { about = "n", set = ["host.s.count"] }
[[switch]]
name = "leaf"
count = 2
queue = "64KiB"
[[switch]]
name = "spine1"
[[link]]
name = "up"
from = "leaf*"
to = "spine1"
rate = "40G"
delay = "1km"
[[host]]
name = "s"
count = 2
attach = "leaf2"
[[host]]
name = "r1"
attach = "leaf1"
[[flow]]
name = "f"
from = "s*"
to = "r1"
message = "64KiB"
"#;

/// Settings for [`SMALL`].
const SETTINGS: [&[&str]; 26] = [
    &["mechanism=none"],
    &[
        "mechanism=pfc",
        "switch.leaf.pause={ xoff = \"30kB\", xon = \"9kB\" }",
    ],
    &["mechanism=cnp", "host.s.cnp_interval=1ns"],
    &["mechanism=fast-cnp-ioam", "flow.f.trace=incremental"],
    &[
        "mechanism=proxy",
        "switch.leaf.known_by=isis",
        "advertise_interval=1us",
    ],
    &["mechanism=proxy", "switch.leaf.known_by=ospfv2"],
    &["mechanism=proxy", "switch.leaf.known_by=ospfv3"],
    &[
        "mechanism=proxy",
        "switch.leaf.known_by=bgp",
        "switch.leaf.serves=[\"2001:db8:2::/48\"]",
    ],
    &["mechanism=proxy", "switch.leaf.known_by=option"],
    &["mechanism=wan-fcn", "switch.leaf.edge=srv6"],
    &[
        "mechanism=wan-fcn",
        "switch.leaf.edge=vxlan",
        "switch.leaf.vni=7",
    ],
    &["mechanism=wan-fcn", "switch.leaf.edge=sr-mpls", "ip=4"],
    &["senders=30", "snap_len=64", "seed=9"],
    &["host.s.count=100000", "host.s.access_list=[\"*\"]"],
    &["flow.f.count=100000", "flow.f.stagger=\"1ns\""],
    &[
        "host.s.fast_cnp=unable",
        "host.r1.domain=x",
        "switch.leaf.border_filter=false",
    ],
    &[
        "host.s.control=telemetry",
        "host.s.telemetry={ T = \"1ns\", W_AI = \"1GB\" }",
    ],
    &["defaults.dcqcn={ g = 1, K = \"1ns\", T = \"1ns\", B = 0, R_min = \"1\" }"],
    &["defaults.limits={ interval = \"0s\", per_second = 0, burst = 0 }"],
    &[
        "defaults.marking={ kmin = 0, kmax = 0, pmax = 1.0 }",
        "switch.leaf.queue=\"5kB\"",
    ],
    &["profile.wan_fcn_port=2000"],
    &["profile.proxy_cn_port=1000", "epoch=0"],
    &["host.x.count=3"],
    &["senders"],
    &["duration="],
    &[
        "flow.f.window=1",
        "flow.f.mtu=256",
        "flow.f.retransmit_timeout=1s",
        "flow.f.rdma_cm=true",
    ],
];

/// Additions to [`SMALL`].
const MORE: [&str; 16] = [
    "[[fault]]\nlink = \"leaf1:spine1\"\nkind = \"loss\"\nprobability = 0.5\n",
    "[[fault]]\nlink = \"*:*\"\nkind = \"reorder\"\nprobability = 1\nby = \"1us\"\n",
    "[[fault]]\nlink = \"leaf1:r1\"\nkind = \"down\"\nstart = \"5us\"\nstop = \"20us\"\ntowards = \"r1\"\n",
    "[[inject]]\nfrom = \"r1\"\nwhat = \"pause\"\ncount = 9\ninterval = \"1ns\"\nclass = 3\n",
    "[[inject]]\nfrom = \"*\"\nwhat = \"spoofed-fast-cnp\"\nflow = \"f1\"\nsource = \"leaf1\"\ncount = 10_000_000\ninterval = \"1ns\"\n",
    "[[inject]]\nfrom = \"s1\"\nwhat = \"replayed-fast-cnp\"\nflow = \"f2\"\ncount = 99\n",
    "[[inject]]\nfrom = \"s1\"\nwhat = \"spoofed-cnp\"\nflow = \"f2\"\nstart = \"9us\"\n",
    "[[flow]]\nfrom = [\"s1\", \"r1\"]\nto = [\"r1\", \"s2\"]\npairs = \"each\"\nsender_qp = 9\n",
    "[[flow]]\nfrom = \"r1\"\nto = \"s1\"\nsender_qp = 16777215\nfirst_psn = 16777215\nmessages = 1\nmessage = 1\nrate_limit = \"1\"\n",
    "[[flow]]\nfrom = [\"*\", \"s*\"]\nto = \"r1\"\nip = 4\ndscp = 63\npriority = 7\necn = false\nstop = \"1us\"\n",
    "[[link]]\nfrom = \"leaf1\"\nto = \"leaf1\"\n",
    "[[host]]\nname = \"x\"\n",
    "[[host]]\nname = \"x\"\nattach = \"leaf*\"\nipv6 = \"ff02::1\"\n",
    "[defaults.lonk]\n",
    "[defaults]\nrate = \"1G\"\nhost = { verify_icrc = false }\n",
    "[parameters.x]\nabout = \"x\"\nset = []\n",
];

fn main() -> io::Result<()> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/scenario");
    fs::create_dir_all(&folder)?;
    for (name, _) in builtin::list() {
        let text = builtin::text(name).unwrap_or_default();
        fs::write(folder.join(format!("seed_builtin_{name}")), text)?;
    }
    for (index, sets) in SETTINGS.iter().enumerate() {
        let sets: String = sets.iter().map(|set| format!("{SET}{set}\n")).collect();
        let text = format!("{sets}{SMALL}");
        fs::write(folder.join(format!("seed_set_{index:02}")), text)?;
    }
    for (index, more) in MORE.iter().enumerate() {
        let text = format!("{SMALL}{more}");
        fs::write(folder.join(format!("seed_more_{index:02}")), text)?;
    }
    println!("seeds are in {}", folder.display());
    Ok(())
}
