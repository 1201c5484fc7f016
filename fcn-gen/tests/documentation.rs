//! SCENARIOS.md compared with the code: all keys of the code and no others, and all defaults.
//! TRUTH.md compared with the fields of a truth, README.md's list of scenarios with the built-in
//! ones.

use fcn_gen::scenario::{Play, Source, builtin, load};
use fcn_gen::sim::{Captured, Sink, play};
use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

/// A scenario in which keys at their defaults have an effect: hosts of both controls, edges,
/// proxies, a fault, an injection.
const BASE: &str = r#"
about = "base"
mechanism = "fast-cnp"
duration = "1ms"
host = [
  { name = "a", attach = "s1", dcqcn = {}, hpcc = {}, swift = {}, timely = {} },
  { name = "b", attach = "s1", control = "telemetry", telemetry = {} },
  { name = "r", attach = "s3" },
]
switch = [
  { name = "s1", edge = "vxlan", pfc = true, marking = {}, limits = {}, pause = {} },
  { name = "s2" },
  { name = "s3", edge = "vxlan" },
]
link = [{ name = "up", from = "s1", to = "s2" }, { from = "s2", to = "s3" }]
flow = [{ name = "f", from = ["a", "b"], to = "r", trace = "preallocated" }]
fault = [{ name = "wobble", link = "s1:s2", kind = "reorder", probability = 0.5 }]
inject = [{ name = "storm", from = "b", what = "pause" }]
profile = {}
compare = {}
"#;

const STRESS: &str = "about = \"base\"\nstress = { flows = 1000, mix = { data_ipv4 = 1 } }\n";

const GALLERY: &str = "about = \"base\"\ngallery = \"formats\"\n";

/// Keys that are removed from the document before deserialisation.
const TAKEN_OUT: [&str; 2] = ["parameters", "defaults"];

/// A heading of SCENARIOS.md, the base scenario for its keys, and the path in front of them.
const SECTIONS: [(&str, &str, &str); 23] = [
    ("Top of the file", BASE, ""),
    ("[parameters]", BASE, "parameters.p."),
    ("[profile]", BASE, "profile."),
    ("[compare]", BASE, "compare."),
    ("[defaults]", BASE, "defaults."),
    ("[[host]]", BASE, "host.a."),
    ("[host.dcqcn]", BASE, "host.a.dcqcn."),
    ("[host.telemetry]", BASE, "host.b.telemetry."),
    ("[host.hpcc]", BASE, "host.a.hpcc."),
    ("[host.swift]", BASE, "host.a.swift."),
    ("[host.timely]", BASE, "host.a.timely."),
    ("[[switch]]", BASE, "switch.s1."),
    ("[switch.marking]", BASE, "switch.s1.marking."),
    ("[switch.limits]", BASE, "switch.s1.limits."),
    ("[switch.pause]", BASE, "switch.s1.pause."),
    ("[[link]]", BASE, "link.up."),
    ("[[flow]]", BASE, "flow.f."),
    ("[[fault]]", BASE, "fault.wobble."),
    ("[[inject]]", BASE, "inject.storm."),
    ("Galleries", GALLERY, ""),
    ("Stress", STRESS, ""),
    ("[stress]", STRESS, "stress."),
    ("[stress.mix]", STRESS, "stress.mix."),
];

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn source(text: &str) -> Source {
    Source::Text {
        name: "t.toml".to_owned(),
        text: text.to_owned(),
    }
}

/// Returns the simulation in every detail; `None` for a gallery.
fn played(text: &str, sets: &[String]) -> Option<String> {
    let scenario = load(&source(text), sets).unwrap_or_else(|error| panic!("{error}"));
    match scenario.play {
        Play::Simulation(simulation) => Some(format!("{simulation:?}")),
        Play::Stress(stress) => Some(format!("{stress:?}")),
        Play::Gallery(_) => None,
    }
}

fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let begin = format!("\n## {heading}\n");
    let (_, rest) = document
        .split_once(&begin)
        .unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap()
}

/// Returns the rows of the section's table of keys, with the cells of each.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let (_, table) = section
        .split_once("| key | value | default | meaning |\n|---|---|---|---|\n")
        .expect("a table of keys");
    let lines = table.lines().take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 4, "{line}");
            cells
        })
        .collect()
}

/// Returns the text of all pairs of backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns a TOML text with an unknown key at `path`.
fn with_unknown(base: &str, path: &str) -> String {
    match path.trim_end_matches('.') {
        "" => format!("nonsense = 1\n{base}"),
        "parameters.p" => format!("{base}\n[parameters.p]\nnonsense = 1\n"),
        "defaults" => format!("{base}\n[defaults]\nnonsense = 1\n"),
        path => {
            let (table, key) = path.split_once('.').unwrap_or((path, ""));
            let (entry, below) = key.split_once('.').unwrap_or((key, ""));
            let begin = match (table, below) {
                ("profile" | "compare", _) => format!("{table} = {{"),
                ("stress", "") if entry.is_empty() => "stress = {".to_owned(),
                ("stress", _) => format!("{entry} = {{"),
                (_, "") => format!("{{ name = \"{entry}\""),
                (_, below) => format!("{below} = {{"),
            };
            let comma = if begin.ends_with('{') { "" } else { "," };
            let (_, rest) = base.split_once(&begin).expect("it is there");
            assert_eq!(base.matches(&begin).count(), 1, "{begin}");
            // Before other keys of an inline table.
            let more = if comma.is_empty() && !rest.trim_start().starts_with('}') {
                ","
            } else {
                ""
            };
            base.replacen(&begin, &format!("{begin}{comma} nonsense = 1{more}"), 1)
        }
    }
}

/// Returns the keys listed in the error about an unknown one.
fn known(base: &str, path: &str) -> BTreeSet<String> {
    let text = with_unknown(base, path);
    let Err(error) = load(&source(&text), &[]) else {
        panic!("an unknown key is taken: {text}");
    };
    let (wrong, allowed) = error
        .message
        .split_once(" `nonsense`, expected ")
        .unwrap_or_else(|| panic!("{error}"));
    assert!(
        ["unknown field", "unknown variant"].contains(&wrong),
        "{error}"
    );
    quoted(allowed).map(str::to_owned).collect()
}

#[test]
fn documented_keys_match_the_code() {
    let document = document("SCENARIOS.md");
    for (heading, base, path) in SECTIONS {
        let described: BTreeSet<String> = rows(section(&document, heading))
            .iter()
            .flat_map(|cells| quoted(cells[0]))
            .map(str::to_owned)
            .collect();
        assert_eq!(described, known(base, path), "{heading}");
    }
    for key in TAKEN_OUT {
        assert!(document.contains(&format!("\n## [{key}]\n")), "{key}");
    }
}

/// A default that is alone in backticks is the code's: setting it changes nothing, under any
/// mechanism.
#[test]
fn documented_defaults_match_the_code() {
    let document = document("SCENARIOS.md");
    let mut checked = 0;
    for (heading, base, path) in SECTIONS {
        for cells in rows(section(&document, heading)) {
            let Some(default) = cells[2]
                .strip_prefix('`')
                .and_then(|rest| rest.strip_suffix('`'))
                .filter(|inner| !inner.contains(['`', '[']))
            else {
                continue;
            };
            let key = quoted(cells[0]).next().unwrap();
            let set = format!("{path}{key}={default}");
            for mechanism in ["cnp", "fast-cnp", "proxy", "wan-fcn"] {
                let (mut without, mut with) = (Vec::new(), vec![set.clone()]);
                if base == BASE {
                    without.push(format!("mechanism={mechanism}"));
                    with.push(format!("mechanism={mechanism}"));
                }
                assert_eq!(played(base, &with), played(base, &without), "{set}");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} defaults found");
}

#[test]
fn first_example_is_a_valid_scenario() {
    let document = document("SCENARIOS.md");
    let (_, rest) = document.split_once("```toml\n").unwrap();
    let example = rest.split("```").next().unwrap();
    assert!(played(example, &["senders=2".to_owned()]).is_some());
}

#[test]
fn readme_lists_the_built_in_scenarios() {
    let document = document("README.md");
    let listed: Vec<&str> = section(&document, "Scenarios")
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .collect();
    let ours: Vec<&str> = builtin::list().map(|(name, _)| name).collect();
    assert_eq!(listed, ours);
}

/// A sink that discards packets, so that they are counted.
struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: Captured<'_>) -> Result<(), Box<dyn Error>> {
        Ok(())
    }
}

#[test]
fn documented_fields_of_the_truth_match_the_code() {
    let scenario = load(&Source::Builtin("wan-fcn".to_owned()), &[]).unwrap();
    let Play::Simulation(simulation) = scenario.play else {
        panic!("no simulation");
    };
    let outcome = play(&simulation, &scenario.name, Some(&mut Nowhere), &mut |_| {
        true
    });
    let truth = serde_json::to_value(outcome.unwrap().truth).unwrap();
    let document = document("TRUTH.md");
    for (heading, place) in [
        ("## The object", ""),
        ("### `vantage_points[]`", "/vantage_points/0"),
        ("### `flows[]`", "/flows/0"),
        ("### `flows[].seen[]`", "/flows/0/seen/0"),
        ("### `notifications[]`", "/notifications/0"),
        ("### `switches[]`", "/switches/0"),
    ] {
        let (_, rest) = document.split_once(&format!("\n{heading}\n")).unwrap();
        let described: BTreeSet<&str> = rest
            .split("\n##")
            .next()
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("| `"))
            .flat_map(|line| quoted(line.split('|').nth(1).unwrap()))
            .collect();
        let Some(Value::Object(fields)) = truth.pointer(place) else {
            panic!("{place} is not an object");
        };
        let fields: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(described, fields, "{heading}");
    }
}
