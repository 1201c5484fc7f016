//! What tshark with this build of the plugin finds in simulated captures: every notification of the ground truth, and nothing to
//! complain of. Over the samples, and over each built-in scenario as it is.

use std::collections::BTreeMap;
use std::path::Path;

use xtask::captures::{self, Generator, Scene};
use xtask::packages;
use xtask::tshark::{TempDir, Tshark};

/// What the plugin's protocols are called in expert info.
const OURS: [&str; 6] = [
    "RoCEv2",
    "CNP",
    "Fast CNP",
    "Proxy CN",
    "WAN FCN",
    "Proxy address option",
];

/// tshark with the plugin; `None`, said loudly, where it cannot be had.
fn tshark() -> Option<Tshark> {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("decoding needs {}", packages::describe(&lacking));
        return None;
    }
    Some(Tshark::with_this_plugin(false).unwrap())
}

/// What `tshark -z expert` lists: group, protocol and summary.
fn expert(text: &str) -> Vec<[String; 3]> {
    let row = |line: &str| {
        let (count, rest) = line.trim().split_once(char::is_whitespace)?;
        count.parse::<u64>().ok()?;
        let (group, rest) = rest.trim().split_once(char::is_whitespace)?;
        let (protocol, summary) = rest.trim().split_once("  ")?;
        Some([group, protocol, summary].map(|part| part.trim().to_owned()))
    };
    text.lines().filter_map(row).collect()
}

fn is_ours([_, protocol, _]: &[String; 3]) -> bool {
    OURS.contains(&protocol.as_str())
}

/// What tshark tells of a capture.
struct Decoded {
    /// Notifications by kind.
    counts: BTreeMap<String, u64>,
    /// How many frames pause a sender.
    pauses: usize,
}

/// Has tshark tell everything at once, and checks that it has nothing to complain of.
fn decoded(tshark: &Tshark, capture: &Path) -> Decoded {
    let fields = [
        "cnp",
        "fastcnp",
        "fastcnp.option.number",
        "proxycn",
        "wanfcn",
        "macc",
        "_ws.col.info",
    ];
    let mut arguments = vec![
        "-o",
        captures::COLUMNS,
        "-z",
        "expert",
        "-T",
        "fields",
        "-E",
        "separator=|",
    ];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = tshark
        .decode(capture, &arguments)
        .unwrap_or_else(|e| panic!("{e}"));
    let name = capture.display();
    // An empty line is before what is said of all frames, and has no separator.
    let (frames, experts) = text.split_once("\n\n").unwrap_or((&text, ""));
    for found in expert(experts) {
        // Spoofed and replayed notifications of `attack` are well-formed: who may say what is not for a decoder to know.
        assert!(!is_ours(&found), "{name}: {found:?}");
        assert_ne!(found[0], "Malformed", "{name}: {found:?}");
    }
    let mut counts = BTreeMap::new();
    let mut pauses = 0;
    for line in frames.lines() {
        let columns: Vec<&str> = line.splitn(fields.len(), '|').collect();
        let [kinds @ .., pause, info] = &columns[..] else {
            panic!("{name}: {line}");
        };
        pauses += usize::from(!pause.is_empty());
        // Packets are whole, so that Wireshark does not take cut ones for broken.
        assert!(!info.contains("[Malformed Packet]"), "{name}: {line}");
        let values: Vec<bool> = kinds.iter().map(|value| !value.is_empty()).collect();
        let option = kinds[2];
        let kind = match values[..] {
            [true, false, _, false, false] => "cnp".to_owned(),
            [false, true, true, false, false] => format!("fast_cnp_{option}"),
            [false, false, _, true, false] => "proxy_cn".to_owned(),
            [false, false, _, false, true] => "wan_fcn".to_owned(),
            [false, false, _, false, false] => continue,
            _ => panic!("{name}: several kinds at once: {line}"),
        };
        *counts.entry(kind).or_insert(0) += 1;
    }
    Decoded { counts, pauses }
}

/// Notifications by kind, as the ground truth has them.
fn in_truth(truth: &Path) -> BTreeMap<String, u64> {
    let truth: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(truth).unwrap()).unwrap();
    let mut counts = BTreeMap::new();
    for entry in truth["notifications"].as_array().unwrap() {
        let kind = entry["kind"].as_str().unwrap().to_owned();
        *counts.entry(kind).or_insert(0) += entry["total"].as_u64().unwrap();
    }
    counts
}

/// Checks a capture against its truth; returns what tshark tells of it.
fn agree(tshark: &Tshark, capture: &Path, truth: &Path) -> Decoded {
    let decoded = decoded(tshark, capture);
    assert_eq!(decoded.counts, in_truth(truth), "{}", capture.display());
    decoded
}

#[test]
fn samples_agree_with_their_truth() {
    let Some(tshark) = tshark() else { return };
    let folder = captures::folder().unwrap();
    for sample in captures::all() {
        let Some(truth) = sample.truth_name() else {
            continue;
        };
        let capture = folder.join(sample.file_name());
        let decoded = agree(&tshark, &capture, &folder.join(truth));
        let paused = ["pfc", "victim-flow"].contains(&sample.scenario);
        assert_eq!(decoded.counts.is_empty(), paused, "{}", sample.name);
        assert!(!paused || decoded.pauses > 2, "{}", sample.name);
    }
}

#[test]
fn scenarios_as_built_in_agree_with_their_truth() {
    let Some(tshark) = tshark() else { return };
    let generator = Generator::build().unwrap();
    let folder = TempDir::new(false).unwrap();
    let simulated: Vec<&str> = captures::all()
        .iter()
        .filter(|sample| sample.scene == Scene::Simulation)
        .map(|sample| sample.scenario)
        .collect();
    for name in generator.names().unwrap() {
        let sampled = captures::all().iter().any(|sample| sample.scenario == name);
        assert!(sampled, "no sample of {name}");
        if simulated.contains(&name.as_str()) {
            let capture = folder.path().join(format!("{name}.pcapng"));
            let truth = folder.path().join(format!("{name}.json"));
            // Whole, and as much of it as has everything.
            let options = ["--snap-len", "0", "--set", "duration=4ms"];
            generator
                .write_default(&name, &options, &capture, &truth)
                .unwrap();
            agree(&tshark, &capture, &truth);
        }
    }
}

/// Else the tests above could not fail.
#[test]
fn what_is_broken_is_found() {
    let Some(tshark) = tshark() else { return };
    let folder = captures::folder().unwrap();
    let malformed = captures::all()
        .into_iter()
        // Wireshark shows routing itself, without the drafts' rules.
        .filter(|sample| sample.scenario == "malformed" && sample.name != "malformed-pnc");
    let mut checked = 0;
    for sample in malformed {
        let capture = folder.join(sample.file_name());
        let found = expert(&tshark.decode(&capture, &["-q", "-z", "expert"]).unwrap());
        assert!(found.iter().any(is_ours), "{}: {found:?}", sample.name);
        checked += 1;
    }
    assert!(checked > 4, "{checked}");
}
