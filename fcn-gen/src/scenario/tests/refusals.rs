//! Refused scenarios, with messages and positions.

use super::{FINE, simulation, source, with};
use crate::scenario::{Play, Source, load};

fn refusal(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    match load(&source(text), &sets) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused: {text} {sets:?}"),
    }
}

#[test]
fn refusals_name_position_and_valid_values() {
    let mut wrong = Vec::new();
    for (line, by, more, expected) in [
        // TOML syntax, unknown keys, wrong types.
        ("mechanism =", "mechanism ==", "", "t.toml:2:12: "),
        (
            "name = \"f\"",
            "nome = \"f\"",
            "",
            "t.toml:14:1: flow.1.nome: unknown field `nome`, expected one of `name`, `from`",
        ),
        (
            "count = 2",
            "count = 0",
            "",
            "t.toml:8:9: host.s.count: 0 leaves no host `s*`, which other entries name",
        ),
        (
            "\"fast-cnp\"",
            "\"faster\"",
            "",
            "t.toml:2:13: mechanism: unknown variant `faster`, expected one of `none`, `pfc`",
        ),
        (
            "mechanism = \"fast-cnp\"\n",
            "",
            "",
            "missing field `mechanism`",
        ),
        (
            "\"1ms\"",
            "\"1 fortnight\"",
            "",
            "t.toml:3:12: duration: `1 fortnight` is not a valid time: write 500ns",
        ),
        (
            "\"1ms\"",
            "\"0s\"",
            "",
            "t.toml:3:12: duration: 0 is too short; at least",
        ),
        ("\"1ms\"", "\"-1ms\"", "", "is negative"),
        ("count = 2", "count = -2", "", "t.toml:8:9: host.s.count: "),
        (
            "count = 2",
            "count = 100_001",
            "",
            "t.toml:8:9: host.s.count: that makes 100001 hosts; at most 100000 are allowed",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\nip = 5\n",
            "",
            "t.toml:2:6: ip: 5 is not a valid IP version; 4 and 6",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\nsnap_len = 3\n",
            "",
            "t.toml:2:12: snap_len: 3 is out of range; 0 (all) and 64 to 65535 are allowed",
        ),
        // Defaults.
        (
            "",
            "",
            "[defaults.lonk]\n",
            "t.toml:17:1: defaults.lonk: unknown field `lonk`, expected one of `dcqcn`, `delay`",
        ),
        (
            "",
            "",
            "[defaults.flow]\nmtu = 1500\n",
            "t.toml:18:7: defaults.flow.mtu: 1500 is not a valid RoCE MTU; 256, 512, 1024, 2048, 4096 are allowed",
        ),
        (
            "",
            "",
            "[defaults]\nhost = 1\n",
            "t.toml:18:8: defaults.host: [defaults.host] must be a table",
        ),
        // Links.
        (
            "attach = \"leaf1\"\n[[host]]",
            "attach = \"leaf1\"\nrate = \"0\"\n[[host]]",
            "",
            "t.toml:10:8: host.s.rate: `0` is not a valid rate; 1 bit/s to 10 Tbit/s",
        ),
        (
            "count = 2\n",
            "count = 2\ndelay = \"300000km\"\n",
            "",
            "t.toml:9:9: host.s.delay: `300000km` is too much; at most a second",
        ),
        (
            "count = 2\n",
            "count = 2\ndelay = \"-1us\"\n",
            "",
            "t.toml:9:9: host.s.delay: `-1us` is negative",
        ),
        (
            "",
            "",
            "[[link]]\nfrom = \"leaf1\"\nto = \"leaf1\"\n",
            "t.toml:19:6: link.1.to: `leaf1` would be linked to itself",
        ),
        (
            "",
            "",
            "[[switch]]\nname = \"x\"\n[[link]]\nfrom = \"leaf1\"\nto = \"x\"\n[[link]]\nfrom = \"x\"\nto = \"leaf1\"\n",
            "t.toml:24:6: link.2.to: `x` and `leaf1` are linked twice",
        ),
        (
            "",
            "",
            "[[switch]]\nname = \"x\"\n[[link]]\nfrom = \"r1\"\nto = \"x\"\n",
            "t.toml:11:8: host.r1.name: the host `r1` has 2 links; one is allowed, since hosts do not forward",
        ),
        (
            "name = \"r1\"\nattach = \"leaf1\"",
            "name = \"r1\"",
            "",
            "t.toml:11:8: host.r1.name: the host `r1` has no link",
        ),
        (
            "name = \"r1\"\nattach = \"leaf1\"",
            "name = \"r1\"\nattach = \"leaf2\"",
            "",
            "t.toml:12:10: host.r1.attach: there is no switch `leaf2`; expected one of leaf1",
        ),
        (
            "name = \"r1\"\nattach = \"leaf1\"",
            "name = \"r1\"\nattach = \"leaf2\"",
            "[[switch]]\nname = \"leaf2\"\n",
            "t.toml:16:6: flow.f.to: there is no path from `s1` to `r1`",
        ),
        (
            "attach = \"leaf1\"\n[[flow]]",
            "[[host]]\nname = \"x\"\n[[link]]\nfrom = \"r1\"\nto = \"x\"\n[[flow]]",
            "",
            "t.toml:11:8: host.r1.name: the host `r1` is linked to the host `x`; hosts are linked to switches",
        ),
        // Names and addresses.
        (
            "name = \"r1\"",
            "name = \"s1\"",
            "",
            "t.toml:11:8: host.s1.name: two nodes are named `s1`",
        ),
        (
            "name = \"r1\"",
            "name = \"r 1\"",
            "",
            "is not a valid name; letters, digits, - and _",
        ),
        (
            "name = \"r1\"\n",
            "name = \"r1\"\nipv6 = \"2001:db8:1::1\"\n",
            "",
            "t.toml:12:8: host.r1.ipv6: 2001:db8:1::1 belongs to both `s1` and `r1`",
        ),
        (
            "name = \"r1\"\n",
            "name = \"r1\"\nipv4 = \"198.18.1.2\"\n",
            "",
            "t.toml:12:8: host.r1.ipv4: 198.18.1.2 belongs to both `s2` and `r1`",
        ),
        (
            "name = \"r1\"\n",
            "name = \"r1\"\nipv6 = \"ff02::1\"\n",
            "",
            "ff02::1 is not a valid address of a node",
        ),
        (
            "count = 2\n",
            "count = 2\nipv6 = \"2001:db8:1::1\"\n",
            "",
            "t.toml:9:8: host.s.ipv6: an entry for several nodes cannot set an address",
        ),
        // Flows.
        (
            "to = \"r1\"",
            "to = \"r2\"",
            "",
            "t.toml:16:6: flow.f.to: there is no host `r2`; expected one of s1, s2, r1",
        ),
        (
            "from = \"s*\"",
            "from = \"leaf1\"",
            "",
            "t.toml:15:8: flow.f.from: there is no host `leaf1`",
        ),
        (
            "from = \"s*\"",
            "from = \"r1\"",
            "",
            "sender and receiver are the same host",
        ),
        (
            "",
            "",
            "mtu = 1500\n",
            "t.toml:17:7: flow.f.mtu: 1500 is not a valid RoCE MTU; 256, 512, 1024, 2048, 4096 are allowed",
        ),
        (
            "",
            "",
            "message = 0\n",
            "t.toml:17:11: flow.f.message: `0` is out of range; 1 to 2147483648 octets are allowed",
        ),
        (
            "",
            "",
            "message = \"3GiB\"\n",
            "`3GiB` is out of range; 1 to 2147483648 octets",
        ),
        (
            "",
            "",
            "priority = 8\n",
            "t.toml:17:12: flow.f.priority: 8 is out of range; 0 to 7 are allowed",
        ),
        ("", "", "dscp = 64\n", "64 is out of range; 0 to 63"),
        (
            "",
            "",
            "window = 0\n",
            "0 is out of range; 1 to 8388608 are allowed",
        ),
        (
            "",
            "",
            "sender_qp = 16777216\n",
            "t.toml:17:13: flow.f.sender_qp: 16777216 is out of range; 2 to 16777215 are allowed",
        ),
        (
            "",
            "",
            "sender_qp = 77\n",
            "only an entry that makes one flow can set a QP",
        ),
        (
            "from = \"s*\"",
            "from = \"s1\"",
            "receiver_qp = 9\n[[flow]]\nfrom = \"s2\"\nto = \"r1\"\nreceiver_qp = 9\n",
            "t.toml:21:15: flow.2.receiver_qp: QP 9 is already used at `r1`",
        ),
        (
            "",
            "",
            "[[flow]]\nname = \"f1\"\nfrom = \"s1\"\nto = \"r1\"\n",
            "t.toml:18:8: flow.f1.name: two flows are named `f1`",
        ),
        (
            "",
            "",
            "pairs = \"each\"\n",
            "pairs = \"each\" needs as many receivers as senders, not 1 and 2",
        ),
        (
            "",
            "",
            "count = 100_000\n",
            "that makes 200000 flows; at most 100000",
        ),
        (
            "",
            "",
            "first_psn = 16777216\n",
            "first_psn: 16777216 is out of range; 0 to 16777215",
        ),
        (
            "",
            "",
            "flow_label = 0x100000\n",
            "flow_label: 1048576 is out of range; 0 to 1048575",
        ),
        (
            "",
            "",
            "start = \"1us\"\nstop = \"1us\"\n",
            "t.toml:18:8: flow.f.stop: `f1` would stop at 1 µs, but starts at 1 µs",
        ),
        (
            "",
            "",
            "retransmit_timeout = \"1us\"\n",
            "is shorter than the round-trip time",
        ),
        (
            "",
            "",
            "trace = \"preallocated\"\ntrace_nodes = 13\n",
            "t.toml:18:15: flow.f.trace_nodes: a trace of 13 nodes needs an option of 270 octets; \
             1 to 12 nodes",
        ),
        (
            "",
            "",
            "trace = \"incremental\"\nip = 4\n",
            "t.toml:17:9: flow.f.trace: an IOAM trace needs an IPv6 option",
        ),
        // Roles.
        (
            "\"fast-cnp\"",
            "\"wan-fcn\"",
            "",
            "t.toml:2:13: mechanism: wan-fcn needs provider edges",
        ),
        (
            "\"fast-cnp\"",
            "\"proxy\"",
            "[[switch]]\nname = \"x\"\nproxy = true\n",
            "t.toml:18:8: switch.x.name: the proxy `x` has no hosts attached; specify the senders \
             it serves",
        ),
        (
            "\"fast-cnp\"",
            "\"proxy\"",
            "[defaults.switch]\nproxy = false\n",
            "t.toml:2:13: mechanism: no switch is a proxy",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nmarking = { pmax = 1.5 }",
            "",
            "t.toml:6:20: switch.leaf1.marking.pmax: 1.5 is not a valid probability; 0 to 1 are allowed",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nmarking = { at = \"exit\" }",
            "",
            "t.toml:6:18: switch.leaf1.marking.at: unknown variant `exit`, expected `arrival` or `departure`",
        ),
        (
            "name = \"r1\"",
            "name = \"r1\"\nnic = \"cx7\"",
            "",
            "host.r1.nic: unknown variant `cx7`, expected one of `sigcomm15`, `hpcc-ns3`, `connectx`",
        ),
        (
            "name = \"r1\"",
            "name = \"r1\"\ndcqcn = { F = 4294967296 }",
            "",
            "host.r1.dcqcn.F: invalid value: integer `4294967296`, expected a whole number from 0 to 4294967295",
        ),
        (
            "name = \"r1\"",
            "name = \"r1\"\nswift = { fs_min = 100 }",
            "",
            "host.r1.swift.fs_min: 100 packets must be fewer than swift.fs_max, 100",
        ),
        (
            "name = \"r1\"",
            "name = \"r1\"\nswift = { ai = 0 }",
            "",
            "host.r1.swift.ai: 0 packets are out of range; 0.0001 to 1000000 are allowed",
        ),
        (
            "name = \"r1\"",
            "name = \"r1\"\ntimely = { T_low = \"1ms\" }",
            "",
            "host.r1.timely.T_low: T_low (1ms) must be below T_high (500µs)",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nmarking = { kmin = \"2MB\", kmax = \"1MB\" }",
            "",
            "Kmax (1000000) must not be below Kmin (2000000)",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nqueue = 9000\nmarking = { kmin = 9000 }",
            "",
            "t.toml:7:20: switch.leaf1.marking.kmin: Kmin (9000) must be below the queue's limit \
             (9000)",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nqueue = 100",
            "",
            "t.toml:6:9: switch.leaf1.queue: `100` is out of range; 5000 to ",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\npfc = true\npause = { xoff = 10000, xon = 10000 }",
            "",
            "xon (10000) must be below xoff (10000)",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nioam = true\nioam_node = 16777216",
            "",
            "ioam_node: 16777216 is out of range; 0 to 16777215",
        ),
        (
            "name = \"leaf1\"",
            "name = \"leaf1\"\nedge = \"sr-mpls\"\nservice_label = 3",
            "",
            "service_label: 3 is out of range; 16 to 1048575",
        ),
        (
            "name = \"r1\"\n",
            "name = \"r1\"\naccess_list = [\"2001:db8::/200\"]\n",
            "",
            "t.toml:12:16: host.r1.access_list: `2001:db8::/200` is not a valid prefix",
        ),
        (
            "name = \"r1\"\n",
            "name = \"r1\"\ndcqcn = { g = 2 }\n",
            "",
            "t.toml:12:15: host.r1.dcqcn.g: ",
        ),
        // Code points.
        (
            "",
            "",
            "[profile]\nfast_cnp_option1 = 0x1E\n",
            "t.toml:18:20: profile.fast_cnp_option1: fast_cnp_option1 = 0x1e is refused: draft-xiao",
        ),
        (
            "",
            "",
            "[profile]\nfast_cnp_option3 = 1\n",
            "t.toml:18:1: profile.fast_cnp_option3: unknown field `fast_cnp_option3`",
        ),
        // Vantage points, faults, injections.
        (
            "about = \"test\"\n",
            "about = \"test\"\nvantage = [\"leaf1\"]\n",
            "",
            "t.toml:2:12: vantage: `leaf1` is not a valid port; write node:peer",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\nvantage = [\"leaf1:x\"]\n",
            "",
            "t.toml:2:12: vantage: there is no node `x`",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\nvantage = [\"s1:r1\"]\n",
            "",
            "t.toml:2:12: vantage: there is no link s1:r1; `s1` is linked to leaf1",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\nvantage = [\"leaf1:s1\", \"leaf1:s*\"]\n",
            "",
            "t.toml:2:24: vantage: `leaf1:s*` is listed twice",
        ),
        (
            "",
            "",
            "[[fault]]\nlink = \"leaf1:r1\"\nkind = \"loss\"\nprobability = 1.1\n",
            "t.toml:20:15: fault.1.probability: 1.1 is not a valid probability; 0 to 1",
        ),
        (
            "",
            "",
            "[[fault]]\nlink = \"leaf1:r1\"\nkind = \"loss\"\n",
            "t.toml:19:8: fault.1.kind: the probability is missing",
        ),
        (
            "",
            "",
            "[[fault]]\nlink = \"leaf1:r1\"\nkind = \"down\"\ntowards = \"s1\"\n",
            "t.toml:20:11: fault.1.towards: `s1` is not an end of that link; r1 and leaf1 are",
        ),
        (
            "",
            "",
            "[[inject]]\nfrom = \"s1\"\nwhat = \"spoofed-cnp\"\n",
            "t.toml:19:8: inject.1.what: the key `flow` is missing; expected one of f1, f2",
        ),
        (
            "",
            "",
            "[[inject]]\nfrom = \"s1\"\nwhat = \"spoofed-fast-cnp\"\nflow = \"f9\"\n",
            "t.toml:20:8: inject.1.flow: there is no flow `f9`; expected one of f1, f2",
        ),
        (
            "",
            "",
            "ip = 4\n[[inject]]\nfrom = \"s1\"\nwhat = \"replayed-fast-cnp\"\nflow = \"f1\"\n",
            "`f1` is IPv4; Fast CNPs are IPv6 only",
        ),
        (
            "",
            "",
            "[[inject]]\nfrom = \"s1\"\nwhat = \"pause\"\nclass = 8\n",
            "inject.1.class: 8 is out of range; 0 to 7",
        ),
        // Parameters and galleries.
        (
            "",
            "",
            "[parameters]\np = { about = \"p\", set = [\"host.x.count\"] }\n",
            "t.toml:18:27: parameters.p.set: the document has no `host.x.count`",
        ),
        (
            "about = \"test\"\n",
            "about = \"test\"\ngallery = \"formats\"\n",
            "",
            "t.toml:3:1: mechanism: unknown field `mechanism`, expected one of `about`",
        ),
    ] {
        let message = refusal(&with(line, by, more), &[]);
        if !message.contains(expected) || !message.starts_with("t.toml:") {
            wrong.push(format!("{by} {more}\n   got {message}\nwanted {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let family = refusal(
        "about = \"x\"\ngallery = \"malformed\"\nfamily = \"x\"\n",
        &[],
    );
    assert!(
        family.starts_with(
            "t.toml:3:10: family: `malformed` has no family `x`; expected one of all, cnp"
        ),
        "{family}"
    );
    let gallery = refusal("about = \"x\"\ngallery = \"formulas\"\n", &[]);
    assert_eq!(
        gallery,
        "t.toml:2:11: gallery: there is no gallery `formulas`; expected one of formats, malformed"
    );
    assert!(refusal("", &[]).contains("missing field"));
}

#[test]
fn invalid_settings_are_refused_with_valid_values() {
    let mut wrong = Vec::new();
    let with_parameter = format!(
        "{FINE}[parameters]\nsenders = {{ about = \"n\", set = [\"host.s.count\"] }}\n\
         how = {{ about = \"m\", set = [\"mechanism\"], values = [\"cnp\", \"pfc\"] }}\n"
    );
    for (set, expected) in [
        ("senders", "is not of the form key=value"),
        (
            "sendrs=3",
            "t.toml: --set sendrs=3: sendrs: unknown field `sendrs`, expected one of `about`",
        ),
        (
            "senders=many",
            "t.toml: --set senders=many: host.s.count: invalid type",
        ),
        ("senders=-1", "t.toml: --set senders=-1: host.s.count: "),
        (
            "mechanism=fast",
            "t.toml: --set mechanism=fast: mechanism: unknown variant `fast`",
        ),
        (
            "host.x.count=3",
            "there is no host `x`; expected one of s, r1",
        ),
        ("host.s=3", "`host.s` is an entry"),
        (
            "host.s.cuont=3",
            "--set host.s.cuont=3: host.s.cuont: unknown field `cuont`",
        ),
        ("duration.x=3", "`duration` has no keys below it"),
        (
            "defaults.dcqcn.q=3",
            "--set defaults.dcqcn.q=3: defaults.dcqcn.q: unknown field `q`",
        ),
        ("defaults.rate=0", "`0` is not a valid rate"),
        (
            "fault.1.start=1us",
            "there is no [[fault]] in this scenario",
        ),
        (
            "profile.wan_fcn_port=2000",
            "--set profile.wan_fcn_port=2000: profile.wan_fcn_port: wan_fcn_port = 2000 is refused",
        ),
        ("flow.f.mtu=\"4096", "invalid type: string"),
        ("duration=", "is not a valid time"),
    ] {
        let message = refusal(&with_parameter, &[set]);
        if !message.contains(expected) {
            wrong.push(format!("{set}\n   got {message}\nwanted {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unused_default_is_refused() {
    let near = format!("{FINE}[defaults.host]\nrate = \"25G\"\n");
    let message = refusal(&near, &["defaults.rate=10G"]);
    assert!(
        message.contains("defaults.rate: has no effect"),
        "{message}"
    );
    simulation(&source(&near), &["defaults.host.rate=10G"]);
    let own = FINE.replace("attach", "rate = \"25G\"\nattach");
    let message = refusal(&own, &["defaults.host.rate=10G"]);
    assert!(message.contains("no effect"), "{message}");
}

#[test]
fn what_would_take_too_long_or_too_much_memory_is_refused() {
    let many = FINE.replacen("count = 2", "count = 50_000", 1);
    let listed = many.replacen("attach", "access_list = [\"*\"]\nattach", 1);
    let message = refusal(&listed, &[]);
    let expected = "t.toml:9:16: host.s.access_list: that makes ";
    assert!(
        message.starts_with(expected)
            && message.contains(" prefixes in all lists together; at most"),
        "{message}"
    );
    // Each pattern is compared with each name.
    let patterns = vec!["\"s*\""; 2_000].join(", ");
    let compared = many.replacen("\"s*\"", &format!("[{patterns}]"), 1);
    let message = refusal(&compared, &[]);
    assert!(
        message.contains("names compared with patterns; at most"),
        "{message}"
    );
    // Each default is copied to each entry.
    let about = "x".repeat(30_000);
    let flows = "[[flow]]\n".repeat(2_000);
    let spread = format!("{FINE}{flows}[defaults.flow]\nname = \"{about}\"\n");
    let message = refusal(&spread, &[]);
    assert!(
        message.contains("values for all entries; at most"),
        "{message}"
    );
}

#[test]
fn parameter_without_keys_is_refused_at_its_position() {
    let text = format!("{FINE}[parameters]\nx = {{ about = \"n\", set = [] }}\n");
    let message = refusal(&text, &[]);
    assert!(message.starts_with("t.toml:18:5: "), "{message}");
}

#[test]
fn code_points_apply_or_are_refused() {
    let load = |name: &str, set: &str| {
        let sets = [format!("profile.{set}")];
        load(&Source::Builtin(name.to_owned()), &sets)
    };
    for (name, set, part) in [
        (
            "stress-mix",
            "wan_fcn_port=1999",
            "wan_fcn_port = 1999 is refused",
        ),
        (
            "formats",
            "wan_fcn_port=1999",
            "wan_fcn_port = 1999 is refused",
        ),
        (
            "stress-cnp",
            "wan_fcn_port=999",
            "give a weight to `stress.mix.wan_fcn`",
        ),
        (
            "stress-mix",
            "bgp_pnc_characteristic=99",
            "no frame of a stress scenario has a bgp_pnc",
        ),
    ] {
        let error = load(name, set).unwrap_err().to_string();
        assert!(
            error.contains(&format!("--set profile.{set}: profile.")) && error.contains(part),
            "{error}"
        );
    }
    for name in ["stress-mix", "formats", "malformed"] {
        let profile = match load(name, "wan_fcn_port=999").unwrap().play {
            Play::Stress(stress) => stress.profile.clone(),
            Play::Gallery(selection) => selection.profile,
            Play::Simulation(_) => panic!("{name} is a simulation"),
        };
        assert_eq!(profile.wan_fcn_port, 999);
    }
}
