//! The help as committed, and the examples of the README and of the help, which are read as a user would give them.

mod common;

use clap::Parser;
use common::replay;
use fcn_replay::cli::Cli;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;

#[test]
fn help_is_as_committed() {
    for (flag, name) in [("-h", "help-short"), ("--help", "help-long")] {
        let done = replay([flag]).well();
        assert_eq!(done.err, "");
        assert_snapshot!(name, done.out);
    }
    assert_eq!(
        replay(["--version"]).well().out,
        format!("fcn-replay {}\n", fcn_tool::version())
    );
}

/// Words of a shell line, with quotes.
fn split(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    line.split('\'')
        .enumerate()
        .flat_map(|(i, part)| -> Vec<String> {
            if i % 2 == 1 {
                vec![part.to_owned()]
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            }
        })
        .collect()
}

fn examples(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .map(str::trim)
        .filter(|line| line.starts_with("fcn-replay ") && !line.contains('['))
        .map(split)
        .collect()
}

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

#[test]
fn every_example_is_understood() {
    let help = replay(["--help"]).well().out;
    for text in [readme(), help] {
        let examples = examples(&text);
        assert!(examples.len() >= 5, "{examples:?}");
        for example in examples {
            Cli::try_parse_from(&example).unwrap_or_else(|error| panic!("{example:?}: {error}"));
        }
    }
}

#[test]
fn every_option_of_the_readme_is_one_and_the_other_way_round() {
    let (readme, help) = (readme(), replay(["--help"]).well().out);
    let options = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--") && word.len() > 4)
            .map(str::to_owned)
            .collect()
    };
    let known = options(&help);
    for option in options(&readme) {
        assert!(known.contains(&option), "{option} is in README.md only");
    }
    let listed = options(&readme);
    for option in known {
        let everywhere = ["--help", "--version"].contains(&option.as_str());
        assert!(
            everywhere || listed.contains(&option),
            "{option} is not in README.md"
        );
    }
}

#[test]
fn the_table_of_the_readme_is_what_a_dry_run_prints() {
    let readme = readme();
    let (_, rest) = readme
        .split_once("    $ fcn-replay captures/formats-cnp.pcapng --dry-run --show 3\n")
        .expect("the example");
    let shown: Vec<&str> = rest
        .lines()
        .take_while(|line| line.starts_with("    ") || line.is_empty())
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect();
    let capture = common::captures().join("formats-cnp.pcapng");
    let done = replay([capture.to_str().unwrap(), "--dry-run", "--show", "3"]).well();
    assert_eq!(shown.join("\n").trim_end(), done.out.trim_end());
}

#[test]
fn the_examples_of_the_help_run() {
    let help = replay(["--help"]).well().out;
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("incast.pcapng.zst");
    let capture = common::captures().join("incast.pcapng");
    let octets = zstd::encode_all(fs::read(&capture).unwrap().as_slice(), 0).unwrap();
    fs::write(&compressed, octets).unwrap();
    fcn_examples::run(
        &fcn_examples::of(&help, "fcn-replay"),
        Path::new(env!("CARGO_BIN_EXE_fcn-replay")),
        &[
            ("incast.pcapng", &capture),
            ("both.pcapng", &capture),
            ("incast.pcapng.zst", &compressed),
        ],
    );
}
