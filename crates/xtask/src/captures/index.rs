//! The index page beside the sample captures.

use std::collections::BTreeSet;
use std::path::Path;

use super::generator::Generator;
use super::samples::{ALL, Sample, Scene};
use super::written::Written;
use crate::failure::Outcome;
use crate::{cargo, process};

/// The page's file name.
pub const NAME: &str = "README.md";

/// The page, but for what stands in braces.
const PAGE: &str = include_str!("index.md");

/// The page about the captures that stand in `folder`.
///
/// # Errors
/// A capture cannot be read, or the generator does not describe a scenario.
pub fn page(folder: &Path, generator: &Generator) -> Outcome<String> {
    let mut told = BTreeSet::new();
    let mut scenarios = String::new();
    for sample in ALL.iter().filter(|sample| told.insert(sample.scenario)) {
        let scenario = generator.scenario(sample.scenario)?;
        let (name, about) = (scenario.name, scenario.demonstrates);
        scenarios += &format!("\n### {name}\n\n{}\n", about.trim());
    }
    let commands = ALL
        .iter()
        .map(|sample| format!("$ {}\n", command_line(sample)));
    Ok(PAGE
        .replace("{simulated}", &table(folder, Scene::Simulation)?)
        .replace("{composed}", &table(folder, Scene::Gallery)?)
        .replace("{scenarios}", &scenarios)
        .replace("{commands}", &commands.collect::<String>()))
}

/// The command that makes a sample, as one would type it.
fn command_line(sample: &Sample) -> String {
    let mut command = std::process::Command::new(cargo::GENERATOR);
    process::command_line(command.args(sample.arguments()))
}

fn table(folder: &Path, scene: Scene) -> Outcome<String> {
    let mut table = "\n| capture | packets | what it shows |\n|---|---|---|\n".to_owned();
    for sample in ALL.iter().filter(|sample| sample.scene == scene) {
        let (file, decoded) = (sample.file_name(), sample.decoding_name());
        let Written { about, packets } = Written::read(&folder.join(&file))?;
        let truth = sample
            .truth_name()
            .map_or_else(String::new, |name| format!(", [truth]({name})"));
        let variant = match (scene, sample.variant) {
            (Scene::Gallery, _) | (_, "") => String::new(),
            (Scene::Simulation, set) => format!(" (`{set}`)"),
        };
        table += &format!(
            "| [{file}]({file}) ([decoded]({decoded}){truth}) | {packets} | {about}{variant} |\n"
        );
    }
    Ok(table)
}
