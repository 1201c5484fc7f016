//! Index page beside the sample captures.

use std::collections::BTreeSet;
use std::path::Path;

use super::generator::Generator;
use super::samples::{Sample, Scene, all};
use crate::failure::Outcome;
use crate::{cargo, packets, process};

/// File name of the page.
pub const NAME: &str = "README.md";

/// Template of the page, with placeholders in braces.
const PAGE: &str = include_str!("index.md");

/// Returns the page about the captures in `folder`.
///
/// # Errors
/// A capture cannot be read, or the generator does not describe a scenario.
pub fn page(folder: &Path, generator: &Generator) -> Outcome<String> {
    let made = |sample: &Sample| !sample.is_captured();
    let samples: Vec<Sample> = all().into_iter().filter(made).collect();
    let (mut described, mut scenarios) = (BTreeSet::new(), String::new());
    for sample in samples.iter().filter(|s| described.insert(s.scenario)) {
        let (name, about) = (sample.scenario, generator.demonstrates(sample.scenario)?);
        scenarios += &format!("\n### {name}\n\n{}\n", about.trim());
    }
    let commands = samples.iter().map(|s| format!("$ {}\n", command_line(s)));
    Ok(PAGE
        .replace("{simulated}", &table(folder, Scene::Simulation)?)
        .replace("{composed}", &table(folder, Scene::Gallery)?)
        .replace("{recorded}", &table(folder, Scene::Recorded)?)
        .replace("{routed}", &table(folder, Scene::Routed)?)
        .replace("{scenarios}", &scenarios)
        .replace("{commands}", &commands.collect::<String>()))
}

/// Returns the command that writes a sample, as a user would type it.
fn command_line(sample: &Sample) -> String {
    let mut command = std::process::Command::new(cargo::GENERATOR);
    process::command_line(command.args(sample.arguments()))
}

fn table(folder: &Path, scene: Scene) -> Outcome<String> {
    let mut table = "\n| capture | packets | what it shows |\n|---|---|---|\n".to_owned();
    for sample in all().iter().filter(|sample| sample.scene == scene) {
        let (file, decoded) = (sample.file_name(), sample.decoding_name());
        let capture = packets::read(&folder.join(&file))?;
        let (about, packets) = (capture.comment, capture.packets.len());
        let truth = sample.truth_name();
        let truth = truth.map_or_else(String::new, |name| format!(", [truth]({name})"));
        let variant = match (scene, &*sample.variant) {
            (Scene::Gallery | Scene::Recorded | Scene::Routed, _) | (_, "") => String::new(),
            (Scene::Simulation, set) => format!(" (`{set}`)"),
        };
        table += &format!(
            "| [{file}]({file}) ([decoded]({decoded}){truth}) | {packets} | {about}{variant} |\n"
        );
    }
    Ok(table)
}
