//! The command line: what can be asked for. What it leads to is `run.rs`'s business.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Congestion scenarios of RoCEv2 networks, played in virtual time into capture files
#[derive(Debug, Parser)]
#[command(name = "fcn-gen", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong options or a bad scenario, 130 interrupted.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the built-in scenarios
    List(List),
    /// Show a scenario: topology, what it demonstrates, parameters
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(Show),
    /// Play a scenario into a pcapng file
    #[command(after_long_help = WRITE_EXAMPLES)]
    Write(Write),
    /// Play a scenario under several mechanisms and compare the figures
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(Compare),
}

const SHOW_EXAMPLES: &str = "\
Examples:
  fcn-gen show incast
  fcn-gen show incast --toml > mine.toml    # a scenario of one's own, to start from
  fcn-gen show mine.toml --set mechanism=fast-cnp";

const WRITE_EXAMPLES: &str = "\
Examples:
  fcn-gen write incast -o incast.pcapng
  fcn-gen write incast --set mechanism=fast-cnp --seed 7 -o incast.pcapng --truth incast.json
  fcn-gen write mine.toml -o - | tshark -r -";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fcn-gen compare incast
  fcn-gen compare incast --mechanisms cnp,fast-cnp --seeds 5 --svg incast.svg
  fcn-gen compare wan-fcn --set duration=50ms --over distance=1km,100km,1000km";

/// Options of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which scenario, and what to change in it.
#[derive(Debug, Args)]
pub struct Chosen {
    /// A built-in scenario, or a scenario file
    #[arg(value_name = "NAME|FILE")]
    pub scenario: String,
    /// Change a parameter; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Which scenario.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Print the scenario's file, to start one's own from
    #[arg(long, conflicts_with_all = ["json", "sets"])]
    pub toml: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `write`.
#[derive(Debug, Args)]
pub struct Write {
    /// Which scenario.
    #[command(flatten)]
    pub chosen: Chosen,
    /// The pcapng file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Seed of everything that chance decides
    // TOML, in which scenarios are written, has no larger integers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Also write the ground truth there, as JSON
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Keep at most so many octets of each packet; 0: all
    #[arg(long, value_name = "N")]
    pub snap_len: Option<u32>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no report and no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Which scenario.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Only these mechanisms, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub mechanisms: Vec<String>,
    /// Play each with so many seeds; median and range are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Compare once for each value of a parameter
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub over: Option<String>,
    /// Also draw queue and rate over time there
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words.split(' '))
    }

    #[test]
    fn the_declaration_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let Command::Write(write) =
            parse("fcn-gen write x --set a=1 --set b=2 -o - --seed 7 --snap-len 64")
                .unwrap()
                .command
        else {
            panic!("not write");
        };
        assert_eq!(write.chosen.sets, ["a=1", "b=2"]);
        assert_eq!((write.seed, write.snap_len), (Some(7), Some(64)));
        let Command::Compare(compare) =
            parse("fcn-gen compare x --mechanisms cnp,pfc --over distance=1km,2km")
                .unwrap()
                .command
        else {
            panic!("not compare");
        };
        assert_eq!(compare.mechanisms, ["cnp", "pfc"]);
        assert_eq!(compare.seeds, 1);
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [
            "fcn-gen",
            "fcn-gen write x",
            "fcn-gen compare x --seeds 0",
            "fcn-gen show x --toml --set a=1",
            "fcn-gen write x -o y --seed -1",
            "fcn-gen write x -o y --seed 9223372036854775808",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
