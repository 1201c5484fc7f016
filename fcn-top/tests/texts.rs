//! Help and configuration match their snapshots, and the examples of the help run as a user would
//! run them. Those of the README run with those of all pages.

mod common;

use clap::Parser;
use common::top;
use fcn_top::cli::Cli;
use fcn_top::view::Tab;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;

#[test]
fn help_and_configuration_match_their_snapshots() {
    for (flag, name) in [
        ("-h", "help-short"),
        ("--help", "help-long"),
        ("--print-config", "config"),
    ] {
        let done = top([flag]).well();
        assert_eq!(done.err, "");
        assert_snapshot!(name, done.out);
    }
    assert_eq!(
        top(["--version"]).well().out,
        format!("fcn-top {}\n", fcn_tool::version())
    );
}

#[test]
fn the_help_lists_every_view() {
    let help = top(["--help"]).well().out;
    let line = (help.lines()).find(|line| line.contains("View to start with: "));
    for view in Tab::ALL {
        assert!(line.unwrap().contains(view.id()), "{view:?}");
    }
}

/// Text of the pages about fcn-top.
fn pages() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    [
        "README.md",
        "../docs/capture-points.md",
        "../docs/nic-counters.md",
    ]
    .map(|page| fs::read_to_string(root.join(page)).unwrap())
    .concat()
}

#[test]
fn the_pages_have_all_options_and_no_others() {
    let (pages, help) = (pages(), top(["--help"]).well().out);
    let options = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--") && word.len() > 4)
            .map(str::to_owned)
            .collect()
    };
    let known = options(&help);
    let listed = options(&pages);
    for option in &listed {
        assert!(known.contains(option), "{option} is in the pages only");
    }
    for option in known {
        let everywhere = ["--help", "--version"].contains(&option.as_str());
        assert!(
            everywhere || listed.contains(&option),
            "{option} is in no page"
        );
    }
}

#[test]
fn the_examples_of_the_help_run() {
    let help = top(["--help"]).well().out;
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    fcn_examples::run(
        &fcn_examples::of(&help, "fcn-top"),
        Path::new(env!("CARGO_BIN_EXE_fcn-top")),
        &[
            ("incast.pcapng", &captures.join("incast.pcapng")),
            ("prototype.pcapng", &captures.join("fast-cnp.pcapng")),
        ],
    );
}

/// The options used by the service and the container, without their variables.
#[test]
fn options_of_service_and_container_are_valid() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deploy");
    let service = fs::read_to_string(docs.join("fcn-top.service")).unwrap();
    let line = |begin: &str| {
        let line = service.lines().find_map(|line| line.strip_prefix(begin));
        line.unwrap_or_else(|| panic!("no {begin}")).to_owned()
    };
    let options = line("Environment=\"FCN_TOP_OPTIONS=");
    let command =
        line("ExecStart=/usr/bin/").replace("$FCN_TOP_OPTIONS", options.trim_end_matches('"'));
    let default = "../crates/xtask/src/dist/debian/default";
    let default = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(default)).unwrap();
    assert!(
        default.contains(&format!("FCN_TOP_OPTIONS=\"{options}")),
        "{default}"
    );
    let set = fs::read_to_string(docs.join("daemonset.yaml")).unwrap();
    let (_, arguments) = set.split_once("args: [").unwrap();
    let arguments = arguments
        .split(']')
        .next()
        .unwrap()
        .replace("\", \"", " ")
        .replace('"', "");
    let container = format!(
        "fcn-top {}",
        arguments.replace("$(NODE_ADDRESS)", "192.0.2.1")
    );
    for words in [command, container] {
        let cli = Cli::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            cli.mode.prometheus.is_some() && cli.input.iface == ["any"],
            "{words}"
        );
        assert!(!cli.mode.is_headless(), "{words}");
    }
}
