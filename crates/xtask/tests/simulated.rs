//! Simulated captures in tshark with this build of the plugin: every notification of the ground
//! truth is found, and no error is reported. Uses the samples, and each built-in scenario
//! unchanged.

use std::collections::BTreeMap;
use std::path::Path;

use xtask::captures::{self, Generator, Scene};
use xtask::packages;
use xtask::tshark::{TempDir, Tshark};

/// Names of the plugin's protocols in expert info.
const OURS: [&str; 6] = [
    "RoCEv2",
    "CNP",
    "Fast CNP",
    "Proxy CN",
    "WAN FCN",
    "Proxy address option",
];

/// Returns tshark with the plugin; `None`, with a conspicuous message, if it is not available.
fn tshark() -> Option<Tshark> {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("decoding needs {}", packages::describe(&lacking));
        return None;
    }
    Some(Tshark::with_this_plugin(false).unwrap())
}

/// Parses the list of `tshark -z expert`: group, protocol and summary.
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

/// Results of tshark on a capture.
struct Decoded {
    /// Notifications by kind.
    counts: BTreeMap<String, u64>,
    /// Number of frames that pause a sender.
    pauses: usize,
    /// True if a flow's data is said to be Not-ECT.
    without_ecn: bool,
}

/// Runs tshark once for all results, and checks that there are no errors.
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
    // The part about all frames follows an empty line, and has no separator.
    let (frames, experts) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut without_ecn = false;
    for found in expert(experts) {
        // Spoofed and replayed notifications of `attack` are well-formed: a decoder cannot know
        // which nodes are authorised. Under PFC alone, data is Not-ECT.
        let is_without_ecn = found[2].starts_with("The flow's data is Not-ECT");
        without_ecn |= is_without_ecn;
        assert!(is_without_ecn || !is_ours(&found), "{name}: {found:?}");
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
        // Packets are complete, so Wireshark does not take truncated ones for malformed.
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
    Decoded {
        counts,
        pauses,
        without_ecn,
    }
}

/// Returns the notifications by kind in the ground truth.
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

/// Compares a capture with its ground truth; returns the results of tshark.
fn agree(tshark: &Tshark, capture: &Path, truth: &Path) -> Decoded {
    let decoded = decoded(tshark, capture);
    let name = capture.display();
    assert_eq!(decoded.counts, in_truth(truth), "{name}");
    assert_eq!(decoded.without_ecn, decoded.counts.is_empty(), "{name}");
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
            // Whole packets, for long enough to include everything.
            let options = ["--snap-len", "0", "--set", "duration=4ms"];
            generator
                .write_default(&name, &options, &capture, &truth)
                .unwrap();
            agree(&tshark, &capture, &truth);
        }
    }
}

/// Proves that the tests above can fail.
#[test]
fn broken_packets_are_found() {
    let Some(tshark) = tshark() else { return };
    let folder = captures::folder().unwrap();
    let malformed = captures::all()
        .into_iter()
        // Wireshark itself decodes routing messages, without the drafts' rules.
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
