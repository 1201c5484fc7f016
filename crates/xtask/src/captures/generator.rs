//! Builds and runs `fcn-gen`: writes samples, describes scenarios.
//! Not here: the list of samples (`samples.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::samples::Sample;
use crate::failure::Outcome;
use crate::{cargo, process};

/// `fcn-gen` of this build.
#[derive(Debug)]
pub struct Generator {
    program: PathBuf,
}

impl Generator {
    /// Builds it.
    ///
    /// # Errors
    /// The build failed.
    pub fn build() -> Outcome<Self> {
        let program = cargo::build_tool(cargo::GENERATOR, false)?;
        Ok(Self { program })
    }

    /// Returns a command with arguments.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        command
    }

    /// Writes a sample, and its ground truth if it has one, into `folder`.
    ///
    /// # Errors
    /// The generator failed.
    pub fn write(&self, sample: &Sample, folder: &Path) -> Outcome {
        let mut command = self.command(&[]);
        // Relative names, as in the command that the index recommends.
        command
            .args(sample.arguments())
            .args(["--quiet", "--force"]);
        process::stdout(command.current_dir(folder)).map(drop)
    }

    /// Writes a built-in scenario, changed only by these options, with its ground truth.
    ///
    /// # Errors
    /// The generator failed.
    pub fn write_default(
        &self,
        scenario: &str,
        options: &[&str],
        capture: &Path,
        truth: &Path,
    ) -> Outcome {
        let mut command = self.command(&["write", scenario, "--quiet", "--force"]);
        command.args(options).arg("-o").arg(capture);
        process::stdout(command.arg("--truth").arg(truth)).map(drop)
    }

    /// Writes the capture of a scenario file.
    ///
    /// # Errors
    /// The generator failed.
    pub fn write_file(&self, scenario: &Path, capture: &Path) -> Outcome {
        let mut command = self.command(&["write", "--quiet", "--force"]);
        process::stdout(command.arg(scenario).arg("-o").arg(capture)).map(drop)
    }

    /// Returns its path.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the output for people of a comparison of mechanisms.
    ///
    /// # Errors
    /// The generator failed.
    pub fn compare(&self, scenario: &str, mechanisms: &[&str]) -> Outcome<String> {
        let mechanisms = mechanisms.join(",");
        let words = ["compare", scenario, "--quiet", "--mechanisms", &mechanisms];
        process::stdout(&mut self.command(&words))
    }

    /// Returns the names of the built-in scenarios and galleries, without stresses, which have no
    /// end and go only to links.
    ///
    /// # Errors
    /// The generator failed, or did not write its JSON.
    pub fn names(&self) -> Outcome<Vec<String>> {
        let list = self.json(&["list", "--json"])?;
        let scenarios = list["scenarios"].as_array().into_iter().flatten();
        let played = scenarios.filter(|scenario| scenario["kind"] != "stress");
        played.map(|scenario| text(scenario, "name")).collect()
    }

    /// Returns a built-in scenario's own description of what to look at.
    ///
    /// # Errors
    /// As [`Generator::names`].
    pub fn demonstrates(&self, name: &str) -> Outcome<String> {
        text(&self.json(&["show", name, "--json"])?, "demonstrates")
    }

    fn json(&self, arguments: &[&str]) -> Outcome<Value> {
        let mut command = self.command(arguments);
        let text = process::stdout(&mut command)?;
        let line = process::command_line(&command);
        serde_json::from_str(&text).with_context(|| format!("`{line}` wrote no JSON"))
    }
}

fn text(value: &Value, key: &str) -> Outcome<String> {
    let text = value[key].as_str().map(str::to_owned);
    text.with_context(|| format!("the JSON of {} has no text `{key}`", cargo::GENERATOR))
}
