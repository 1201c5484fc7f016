//! Commands of `cargo xtask`, one module each.
//! Not here: anything that the tools or the plugin need at run time.
#![forbid(unsafe_code)]

pub mod apt;
pub mod bench;
pub mod bench_link;
pub mod bench_monitor;
pub mod bench_plugin;
pub mod captures;
pub mod cargo;
pub mod demo;
pub mod deny;
pub mod dist;
pub mod docs;
pub mod extcap;
pub mod failure;
pub mod figures;
pub mod files;
pub mod guest;
pub mod install_plugin;
pub mod lab;
pub mod licences;
pub mod matrix;
pub mod mutate;
pub mod packages;
pub mod packets;
pub mod page;
pub mod pdml;
pub mod process;
pub mod profile;
pub mod report;
pub mod routers;
pub mod runner;
pub mod senders;
pub mod soft_roce;
pub mod suite;
pub mod system;
pub mod tally;
pub mod tshark;
pub mod wireshark;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Outcome;

/// Builds, tests, benchmarks and installs fcn-tools
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install what is missing, build and install the plugin, decode the sample captures, compare
    /// mechanisms, congest a network of links
    Demo,
    /// Run every check: licences, rustfmt, clippy and all tests
    Test(runner::Options),
    /// Write the sample captures with fcn-gen, and tshark's decodings of them with the plugin
    Captures {
        /// Compare with the committed files, write nothing
        #[arg(long)]
        check: bool,
    },
    /// Write the generated parts of pages: fields, schemas, statements of the drafts, and the
    /// output of commands
    Docs,
    /// Run the benchmarks: figures, and ratios to a peer in the same run
    Bench(bench::Options),
    /// Run damaged packets through tshark with the plugin, in every mode, and report crashes, hangs
    /// and errors that stock tshark does not have
    Mutate(mutate::Options),
    /// Run the link check, or another program, in an emulated guest whose drivers support AF_XDP
    /// zero copy
    Guest(guest::Options),
    /// Capture FRR routers that carry the Proxy Node Capability, and rewrite the sample captures of
    /// them
    Routers,
    /// Play a scenario on links, each node in a network namespace: senders, switches, receivers;
    /// watch, capture and compare
    Lab(lab::Options),
    /// Make packages for Debian and Ubuntu, and an archive for any Linux
    Dist(dist::Options),
    /// Build fcn.html, a page that reads a capture in a browser and shows what fcn-top finds
    Page(page::Options),
    /// Build the plugin for the installed Wireshark, and install it where Wireshark loads it for
    /// this user
    InstallPlugin(install_plugin::Options),
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// It failed.
    pub fn run(self) -> Outcome<ExitCode> {
        match self.command {
            Command::Demo => demo::run()?,
            Command::Test(options) => return suite::run(&options),
            Command::Captures { check } => println!("{}", captures::run(check)?),
            Command::Docs => docs::run()?,
            Command::Bench(options) => bench::run(&options)?,
            Command::Mutate(options) => mutate::run(&options)?,
            Command::Guest(options) => guest::run(&options)?,
            Command::Routers => routers::run()?,
            Command::Lab(options) => return lab::run(&options),
            Command::Dist(options) => dist::run(&options)?,
            Command::Page(options) => println!("{}", page::run(&options)?),
            Command::InstallPlugin(options) => println!("{}", install_plugin::run(&options)?),
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn help_is_as_committed() {
        let mut command = Cli::command();
        command.build();
        let mut text = command.render_help().to_string();
        for sub in command
            .get_subcommands_mut()
            .filter(|sub| sub.get_name() != "help")
        {
            let help = sub.render_help();
            text += &format!("\n--- {} ---\n{help}", sub.get_name());
        }
        let file = cargo::root().unwrap().join("crates/xtask/src/help.txt");
        if std::env::var_os("XTASK_BLESS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            committed,
            "XTASK_BLESS=1 cargo test --package xtask writes {}",
            file.display()
        );
    }

    #[test]
    fn arguments_are_read() {
        Cli::command().debug_assert();
        let parse = |words: &str| Cli::try_parse_from(words.split(' '));
        assert!(matches!(
            parse("xtask install-plugin --uninstall --dir /x").unwrap().command,
            Command::InstallPlugin(install_plugin::Options { uninstall: true, dir: Some(dir), .. })
                if *dir == *"/x"
        ));
        assert!(matches!(
            parse("xtask test --no-install icrc cnp").unwrap().command,
            Command::Test(runner::Options { no_install: true, filter, .. }) if filter == ["icrc", "cnp"]
        ));
        assert!(matches!(
            parse("xtask test --wireshark 4.4 --wireshark 4.6 icrc").unwrap().command,
            Command::Test(runner::Options { wireshark, .. }) if wireshark == [(4, 4), (4, 6)]
        ));
        assert!(parse("xtask test --wireshark 3.6").is_err());
        assert!(parse("xtask").is_err());
        assert!(parse("xtask no-such-command").is_err());
    }
}
