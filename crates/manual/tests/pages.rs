//! The pages and completions are complete, have the contents of the help, and programs that read
//! them report no errors.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use fcn_manual::{File, files, tools};

fn text(file: &File) -> &str {
    std::str::from_utf8(&file.text).unwrap()
}

#[test]
fn every_command_has_a_page_and_every_tool_three_completions() {
    let mut expected = BTreeSet::new();
    for tool in tools() {
        let name = tool.get_name();
        expected.insert(format!("man/man1/{name}.1"));
        for sub in tool.get_subcommands() {
            expected.insert(format!("man/man1/{name}-{}.1", sub.get_name()));
        }
        expected.insert(format!("bash-completion/completions/{name}"));
        expected.insert(format!("zsh/vendor-completions/_{name}"));
        expected.insert(format!("fish/vendor_completions.d/{name}.fish"));
    }
    let written: Vec<String> = files().into_iter().map(|file| file.path).collect();
    assert_eq!(BTreeSet::from_iter(written.clone()), expected);
    assert_eq!(written.len(), expected.len());
}

/// Returns the options as roff writes them.
fn options(command: &clap::Command) -> impl Iterator<Item = String> {
    let options = command.get_arguments().filter_map(|arg| arg.get_long());
    options.map(|long| format!("\\-\\-{}", long.replace('-', "\\-")))
}

#[test]
fn a_page_has_every_option_and_example_of_the_help() {
    let files = files();
    let page = |name: &str| {
        let path = format!("man/man1/{name}.1");
        let page = files.iter().find(|file| file.path == path);
        text(page.unwrap_or_else(|| panic!("{path}"))).to_owned()
    };
    let check = |name: &str, command: &clap::Command| {
        let page = page(name);
        for option in options(command) {
            assert!(page.contains(&option), "{name}: {option}");
        }
        let help = command.get_after_long_help();
        let help = help
            .unwrap_or_else(|| panic!("{name} has no examples"))
            .to_string();
        let examples = help.lines().filter(|line| line.starts_with("  "));
        for example in examples {
            let (line, _) = example
                .trim()
                .split_once(" #")
                .unwrap_or((example.trim(), ""));
            let line = line.trim_end().replace('-', "\\-").replace('\'', "\\*(Aq");
            assert!(page.contains(&line), "{name}: {line}\n{page}");
        }
    };
    for tool in tools() {
        let name = tool.get_name().to_owned();
        check(&name, &tool);
        assert!(page(&name).contains("EXIT STATUS"), "{name}");
        for sub in tool.get_subcommands() {
            check(&format!("{name}-{}", sub.get_name()), sub);
        }
    }
}

/// Returns the messages of a program that reads a text from standard input; `None` if it is not
/// installed.
fn complaints(program: &str, arguments: &[&str], text: &[u8]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    let mut complaint = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() && complaint.is_empty() {
        complaint = output.status.to_string();
    }
    Some(complaint)
}

#[test]
fn groff_and_the_shells_report_no_errors() {
    for file in files() {
        let (program, arguments): (_, &[&str]) = match file.path.split('/').next() {
            Some("man") => ("groff", &["-man", "-ww", "-Tutf8", "-z", "-K", "utf8"]),
            Some("bash-completion") => ("bash", &["-n"]),
            Some("zsh") => ("zsh", &["-n", "/dev/stdin"]),
            _ => ("fish", &["--no-execute", "/dev/stdin"]),
        };
        match complaints(program, arguments, &file.text) {
            Some(complaint) => assert_eq!(complaint, "", "{}", file.path),
            None => fcn_skip::skipped!("{program} is not installed: {} is not read", file.path),
        }
    }
}
