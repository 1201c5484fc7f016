//! The help as committed, and its examples, which run as a user would run them. Those of the README
//! run with those of all pages.

mod common;

use common::replay;
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

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
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
