//! Descriptions of scenarios: the list of the built-in ones, and all details of one, as text or
//! JSON. README.md describes the JSON.

use crate::device::{Role, injects};
use crate::scenario::model::Simulation;
use crate::scenario::{Play, Scenario, draw};
use crate::sim::frames;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name of the list's schema.
pub const LIST_SCHEMA: &str = "fcn-gen/list";
/// Name of the schema of one scenario's description.
pub const SHOW_SCHEMA: &str = "fcn-gen/show";
/// Version of both schemas: raised when a field changes its meaning or is removed.
pub const DESCRIBE_VERSION: u32 = 1;

/// Maximum width of the lines of parameters, in characters.
const WIDTH: u16 = 118;

/// Returns the list as text: one line per scenario, with name and description.
#[must_use]
pub fn list<'a>(scenarios: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let scenarios: Vec<_> = scenarios.into_iter().collect();
    let width = scenarios
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    scenarios
        .iter()
        .map(|(name, about)| format!("{name:<width$}  {about}\n"))
        .collect()
}

/// Returns the list as JSON: name, description and kind ([`builtin::kind`]) of each scenario.
///
/// [`builtin::kind`]: crate::scenario::builtin::kind
#[must_use]
pub fn list_json<'a>(scenarios: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Value {
    let scenarios = scenarios
        .into_iter()
        .map(|(name, about, kind)| json!({"name": name, "about": about, "kind": kind}));
    json!({
        "schema": LIST_SCHEMA,
        "version": DESCRIBE_VERSION,
        "scenarios": scenarios.collect::<Vec<_>>(),
    })
}

/// Returns all details of a scenario as text. `arguments` are its name or file, and the changed
/// parameters.
#[must_use]
pub fn show(scenario: &Scenario, arguments: (&str, &[String])) -> String {
    let mut parts = vec![
        format!("{}: {}\n", scenario.name, scenario.about),
        text_block(&draw(scenario)),
        text_block(&scenario.demonstrates),
    ];
    if !scenario.parameters.is_empty() {
        parts.push(format!("Parameters, for --set:\n{}", parameters(scenario)));
    }
    let what = match scenario.play {
        Play::Stress(_) => "To send it",
        _ => "To write it",
    };
    parts.push(format!("{what}:\n  {}\n", command(scenario, arguments)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Returns the text ending with exactly one line feed; an empty text stays empty.
fn text_block(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    }
}

fn parameters(scenario: &Scenario) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    for parameter in &scenario.parameters {
        let mut about = parameter.about.clone();
        if !parameter.values.is_empty() {
            about += &format!(" ({})", parameter.values.join(", "));
        }
        let default = format!("{}={}", parameter.name, parameter.default);
        table.add_row([format!(" {default}"), about]);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// Returns the command that plays the scenario with these arguments: `write`, or `run` for a
/// stress, which has no end.
#[must_use]
pub fn command(scenario: &Scenario, (name, sets): (&str, &[String])) -> String {
    let (command, to) = match scenario.play {
        Play::Stress(_) => ("fcn-gen run", "--iface IF --duration 10s".to_owned()),
        _ => {
            let file = format!("{}.pcapng", scenario.name);
            ("fcn-gen write", format!("-o {}", quoted(&file)))
        }
    };
    let mut words = vec![command.to_owned(), quoted(name)];
    words.extend(sets.iter().map(|set| format!("--set {}", quoted(set))));
    words.push(to);
    words.join(" ")
}

/// Quotes a word for a shell if necessary.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns all details of a scenario as JSON.
#[must_use]
pub fn show_json(scenario: &Scenario, arguments: (&str, &[String])) -> Value {
    json!({
        "schema": SHOW_SCHEMA,
        "version": DESCRIBE_VERSION,
        "name": scenario.name,
        "about": scenario.about,
        "demonstrates": scenario.demonstrates,
        "topology": draw(scenario),
        "parameters": scenario.parameters,
        "play": play(&scenario.play),
        "command": command(scenario, arguments),
    })
}

fn play(play: &Play) -> Value {
    match play {
        Play::Simulation(simulation) => json!({
            "kind": "simulation",
            "mechanism": simulation.mechanism.id(),
            "seed": simulation.seed,
            "duration_ns": simulation.duration.as_nanos(),
            "snap_len": simulation.snap_len,
            "nodes": simulation.nodes.iter().map(|node| &node.name).collect::<Vec<_>>(),
            "flows": simulation.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
            "network": network(simulation),
        }),
        Play::Gallery(selection) => json!({
            "kind": "gallery",
            "gallery": selection.gallery.name,
            "family": selection.family_name(),
        }),
        Play::Stress(stress) => json!({
            "kind": "stress",
            "seed": stress.seed,
            "flows": stress.flows,
            "qps": stress.connections,
            "mix": stress.mix.iter().map(|(kind, weight)| (kind.id(), weight)).collect::<BTreeMap<_, _>>(),
        }),
    }
}

/// Returns the data needed to rebuild the network elsewhere: each node with its addresses and the
/// roles that it can play, and each link.
fn network(simulation: &Simulation) -> Value {
    let nodes = simulation.nodes.iter().enumerate().map(|(id, node)| {
        json!({
            "name": node.name,
            "ipv6": node.ipv6,
            "ipv4": node.ipv4,
            "mac": frames::mac(id).map(|octet| format!("{octet:02x}")).join(":"),
            "roles": Role::all_of(simulation, id).map(Role::id).collect::<Vec<_>>(),
            "injects": injects(simulation, id),
        })
    });
    let links = simulation.links.iter().map(|link| {
        json!({
            "ends": [simulation.nodes[link.a].name, simulation.nodes[link.b].name],
            "bits_per_second": link.rate.bits_per_second(),
            "delay_ns": link.delay.as_nanos(),
        })
    });
    json!({"nodes": nodes.collect::<Vec<_>>(), "links": links.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Selection;
    use crate::scenario::Parameter;

    fn gallery() -> Scenario {
        Scenario {
            name: "broken".to_owned(),
            about: "Packets that are wrong".to_owned(),
            demonstrates: "Every rule.\n".to_owned(),
            parameters: vec![Parameter {
                name: "family".to_owned(),
                about: "which packets".to_owned(),
                default: "all".to_owned(),
                values: vec!["all".to_owned(), "cnp".to_owned()],
                sets: vec!["family".to_owned()],
            }],
            play: Play::Gallery(Selection::all_of("malformed")),
        }
    }

    #[test]
    fn names_are_aligned() {
        assert_eq!(
            list([("a", "first"), ("long", "second")]),
            "a     first\nlong  second\n"
        );
        assert_eq!(list([]), "");
        assert_eq!(
            list_json([("a", "first", "gallery")])["scenarios"][0]["about"],
            "first"
        );
    }

    #[test]
    fn command_is_quoted_for_a_shell() {
        let sets = ["family=it's".to_owned()];
        assert_eq!(
            command(&gallery(), ("my file.toml", &sets)),
            r"fcn-gen write 'my file.toml' --set 'family=it'\''s' -o broken.pcapng"
        );
        assert_eq!(
            command(&gallery(), ("broken", &[])),
            "fcn-gen write broken -o broken.pcapng"
        );
    }

    #[test]
    fn show_has_all_parts() {
        let text = show(&gallery(), ("broken", &[]));
        assert!(
            text.starts_with("broken: Packets that are wrong\n\n"),
            "{text}"
        );
        assert!(text.contains("\nEvery rule.\n\n"), "{text}");
        let line = text
            .lines()
            .find(|line| line.contains("family=all"))
            .unwrap();
        assert!(line.ends_with("which packets (all, cnp)"), "{line}");
        assert!(
            text.ends_with("To write it:\n  fcn-gen write broken -o broken.pcapng\n"),
            "{text}"
        );
        let value = show_json(&gallery(), ("broken", &[]));
        assert_eq!(value["parameters"][0]["values"][1], "cnp");
        assert_eq!(value["play"]["gallery"], "malformed");
    }
}
