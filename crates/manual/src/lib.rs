//! Man pages and shell completions of the tools, generated from their command-line definitions, so
//! that they cannot differ from `--help`. `cargo xtask dist` decides where packages put them.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use roff::{Roff, roman};

/// A file to install.
#[derive(Debug)]
pub struct File {
    /// Path below `/usr/share`.
    pub path: String,
    /// Contents.
    pub text: Vec<u8>,
}

/// Returns the command-line definitions of the three tools.
#[must_use]
pub fn tools() -> [Command; 3] {
    [
        fcn_gen::cli::Cli::command(),
        fcn_replay::cli::Cli::command(),
        fcn_top::cli::Cli::command(),
    ]
}

/// Returns every man page and completion.
///
/// # Panics
/// Never: everything is written to memory.
#[must_use]
pub fn files() -> Vec<File> {
    let mut files = Vec::new();
    for mut tool in tools() {
        // Before `build`, which adds the `help` command that needs no man page.
        tool = tool.disable_help_subcommand(true);
        tool.build();
        add_pages(&tool, None, &mut files);
        let name = tool.get_name().to_owned();
        for (shell, path) in [
            (Shell::Bash, format!("bash-completion/completions/{name}")),
            (Shell::Zsh, format!("zsh/vendor-completions/_{name}")),
            (
                Shell::Fish,
                format!("fish/vendor_completions.d/{name}.fish"),
            ),
        ] {
            let mut text = Vec::new();
            generate(shell, &mut tool, &name, &mut text);
            files.push(File { path, text });
        }
    }
    files
}

/// Adds the page of a command, and those of its subcommands.
fn add_pages(command: &Command, above: Option<&str>, files: &mut Vec<File>) {
    let name = match above {
        Some(above) => format!("{above}-{}", command.get_name()),
        None => command.get_name().to_owned(),
    };
    let mut text = Vec::new();
    page(command, &name, above, &mut text).expect("memory takes it");
    files.push(File {
        path: format!("man/man1/{name}.1"),
        text,
    });
    for sub in command.get_subcommands() {
        add_pages(sub, Some(&name), files);
    }
}

/// Writes one man page. Text after the options in the help becomes separate sections: examples,
/// exit codes.
fn page(command: &Command, name: &str, above: Option<&str>, to: &mut dyn Write) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    // The synopsis shows the words as they are typed; the page's name joins them.
    let typed = above.map(|above| format!("{above} {}", command.get_name()));
    let titled = (command.clone().name(name.to_owned())).bin_name(typed.unwrap_or(name.to_owned()));
    let man = Man::new(titled)
        .title(name.to_uppercase())
        .date("")
        .source(format!("fcn-tools {version}"))
        .manual("Fast congestion notification");
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(to)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(to)?;
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    for (title, lines) in sections(&after.map(ToString::to_string).unwrap_or_default()) {
        let mut roff = Roff::new();
        roff.control("SH", [title.as_str()]);
        if title == "EXAMPLES" {
            roff.control("nf", []);
            for line in &lines {
                roff.text([roman(line.trim_start())]);
            }
            roff.control("fi", []);
        } else {
            roff.text([roman(lines.join(" ").trim_start())]);
        }
        roff.to_writer(to)?;
    }
    if let Some(above) = above {
        let mut roff = Roff::new();
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(format!("{above}(1)"))]);
        roff.to_writer(to)?;
    }
    Ok(())
}

/// Splits the text after the options into parts with their titles: "Examples:" alone on a line, or
/// "Exit codes: 0 done, …".
fn sections(text: &str) -> Vec<(String, Vec<String>)> {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let (title, rest) = part.split_once(':').unwrap_or(("Notes", part));
        let title = match title {
            "Exit codes" => "EXIT STATUS".to_owned(),
            other => other.to_uppercase(),
        };
        let lines = rest.lines().map(str::to_owned);
        sections.push((
            title,
            lines.filter(|line| !line.trim().is_empty()).collect(),
        ));
    }
    sections
}
