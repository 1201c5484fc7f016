//! The command lines have one style: the same option has the same name, abbreviation and form in
//! every command, and help and exit codes are worded alike.

use clap::{Arg, Command};
use fcn_manual::tools;
use std::collections::BTreeMap;

/// Returns every command of every tool, with its name as it is typed.
fn commands() -> Vec<(String, Command)> {
    let mut commands = Vec::new();
    for mut tool in tools() {
        tool.build();
        let name = tool.get_name().to_owned();
        for sub in tool
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
        {
            commands.push((format!("{name} {}", sub.get_name()), sub.clone()));
        }
        commands.push((name, tool));
    }
    commands
}

/// Returns the form of an option.
fn way(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let takes = if arg.get_action().takes_values() {
        values
    } else {
        String::new()
    };
    format!("-{} {takes}", arg.get_short().unwrap_or('-'))
}

/// Options with a different meaning in these commands.
const OTHERS: [(&str, &str); 7] = [
    // With the neighbour at the other end of the link.
    ("iface", "fcn-gen emulate"),
    ("iface", "fcn-gen check"),
    // Typed all the time, so it has a short form; in commands that send it must be typed in full.
    ("iface", "fcn-top"),
    // A scenario.
    ("config", "fcn-gen emulate"),
    ("config", "fcn-gen check"),
    // A folder, for several files.
    ("output", "fcn-gen check"),
    // A number of rows; in commands that send it means "as fast as possible".
    ("top", "fcn-top"),
];

#[test]
fn the_same_option_has_the_same_form_everywhere() {
    let mut ways: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (name, command) in commands() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            if !OTHERS.contains(&(long, name.as_str())) {
                let ways = ways.entry(long.to_owned()).or_default();
                ways.entry(way(arg)).or_default().push(name.clone());
            }
        }
    }
    let several: Vec<_> = ways.iter().filter(|(_, ways)| ways.len() > 1).collect();
    assert!(several.is_empty(), "{several:#?}");
}

#[test]
fn help_has_one_style() {
    for (name, command) in commands() {
        let about = command
            .get_about()
            .unwrap_or_else(|| panic!("{name} says nothing"));
        let mut texts = vec![(name.clone(), about.to_string())];
        for arg in command.get_arguments() {
            let id = arg.get_long().unwrap_or(arg.get_id().as_str());
            let help = arg
                .get_help()
                .unwrap_or_else(|| panic!("{name} {id} has no help"));
            texts.push((format!("{name} {id}"), help.to_string()));
        }
        for (what, text) in texts {
            assert!(text.starts_with(char::is_uppercase), "{what}: {text}");
            assert!(!text.ends_with('.'), "{what}: {text}");
        }
    }
}

#[test]
fn every_tool_says_how_it_ends_and_what_it_follows() {
    for tool in tools() {
        let name = tool.get_name().to_owned();
        for help in [tool.get_after_help(), tool.get_after_long_help()] {
            let help = help.unwrap().to_string().replace('\n', " ");
            let (_, codes) = help
                .split_once("Exit codes: 0 ")
                .unwrap_or_else(|| panic!("{name}"));
            for code in [", 1 ", ", 2 wrong options", ", 130 interrupted"] {
                assert!(codes.contains(code), "{name} lacks {code}: {codes}");
            }
        }
        let version = tool.render_long_version();
        assert!(version.contains("draft-"), "{version}");
    }
}
