//! The index page beside the sample captures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::generator::Generator;
use super::samples::{ALL, Sample, Scene};
use super::written::Written;
use crate::failure::Outcome;
use crate::{cargo, process};

/// The page's file name.
pub const NAME: &str = "README.md";

const HEAD: &str = "# Sample captures

Written by `cargo xtask captures`, byte for byte the same each time, with the program `fcn-gen` of this project. Beside each capture
stands its decoding by tshark 4.0 with the plugin, and what is the plugin's in it, which is the same with every Wireshark
(`.fields.txt`: frame, field, octets, text); beside each simulated one its ground truth
([TRUTH.md](../fcn-gen/TRUTH.md)): what there is to find in it.
";

const SIMULATED: &str = "
## Simulated

Hosts and switches at work. Each interface is a vantage point, so a packet that passes two of them stands there twice. Packets are
whole: links are slow, packets small and thresholds low, so that the files are too. Decodings have a line for every packet, then the
first of each kind in detail.
";

const COMPOSED: &str = "
## Composed

Packets made one by one. Their comments say what to look at; decodings show every packet in detail.
";

const CAST: &str = "
The hosts in them: sender 2001:db8:1::1 or 192.0.2.1, its QP 0x11; receiver 2001:db8:2::1 or 198.51.100.1, its QP 0x12; congested \
switch 2001:db8:ffff::3 or 203.0.113.3 (loopback addresses); proxy node 2001:db8:1::f or 192.0.2.15; ingress PE 2001:db8:ee::1, \
egress PE 2001:db8:ee::2.
";

const LOOK: &str = "
## What to look at

In the words of the scenarios (`fcn-gen show NAME`). Their times are those of the built-in settings.
";

/// The page about the captures that stand in `folder`.
///
/// # Errors
/// A capture cannot be read, or the generator does not describe a scenario.
pub fn page(folder: &Path, generator: &Generator) -> Outcome<String> {
    let mut page = format!("{HEAD}{SIMULATED}");
    table(&mut page, folder, Scene::Simulation)?;
    page.push_str(COMPOSED);
    table(&mut page, folder, Scene::Gallery)?;
    page.push_str(CAST);
    page.push_str(LOOK);
    let mut told = BTreeSet::new();
    for sample in ALL.iter().filter(|sample| told.insert(sample.scenario)) {
        let scenario = generator.scenario(sample.scenario)?;
        let _ = write!(
            page,
            "\n### {}\n\n{}\n",
            scenario.name,
            scenario.demonstrates.trim()
        );
    }
    page.push_str("\n## The commands\n\n```console\n");
    for sample in ALL {
        let _ = writeln!(page, "$ {}", command_line(sample));
    }
    page.push_str("```\n");
    Ok(page)
}

/// The command that makes a sample, as one would type it.
fn command_line(sample: &Sample) -> String {
    let mut command = std::process::Command::new(cargo::GENERATOR);
    process::command_line(command.args(sample.arguments()))
}

fn table(page: &mut String, folder: &Path, scene: Scene) -> Outcome {
    page.push_str("\n| capture | packets | what it shows |\n|---|---|---|\n");
    for sample in ALL.iter().filter(|sample| sample.scene == scene) {
        let file = sample.file_name();
        let written = Written::read(&folder.join(&file))?;
        let truth = sample
            .truth_name()
            .map_or_else(String::new, |name| format!(", [truth]({name})"));
        let variant = match (scene, sample.variant) {
            (Scene::Gallery, _) | (_, "") => String::new(),
            (Scene::Simulation, set) => format!(" (`{set}`)"),
        };
        let _ = writeln!(
            page,
            "| [{file}]({file}) ([decoded]({}){truth}) | {} | {}{variant} |",
            sample.decoding_name(),
            written.packets,
            written.about,
        );
    }
    Ok(())
}
