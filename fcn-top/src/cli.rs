//! Command-line options, except those shared with the configuration file, which are in `config.rs`.
//! `run.rs` carries them out.

use crate::config::Preferences;
use crate::output::prometheus;
use crate::values;
use clap::{ArgGroup, Args, Parser};
use fcn_tool::output::Replacing;
use fcn_tool::quantity;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Shows which senders are notified of congestion, by whom, how often, and whether they slow down:
/// RoCEv2 congestion notifications, live or from a capture
#[derive(Debug, Parser)]
#[command(
    name = "fcn-top",
    version,
    long_version = fcn_tool::version(),
    after_help = EXIT_CODES,
    after_long_help = EXAMPLES,
    group(ArgGroup::new("input").args(["iface", "read", "demo", "counters"])),
    group(ArgGroup::new("mode").args(["json", "jsonl", "csv", "report"])),
    group(ArgGroup::new("files").args(["export", "html"]).multiple(true)),
    mut_arg("force", |arg| arg.requires("files")),
)]
pub struct Cli {
    /// Source of packets.
    #[command(flatten)]
    pub input: Input,
    /// Output without a screen.
    #[command(flatten)]
    pub mode: Mode,
    /// Limits on rows, packets and time.
    #[command(flatten)]
    pub limits: Limiting,
    /// The configuration file.
    #[command(flatten)]
    pub config: Configuring,
    /// Options shared with the configuration file.
    #[command(flatten)]
    pub preferences: Preferences,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failed or the audit found something, 2 wrong options or nothing to read, 3 packets were
dropped before they were read, 130 interrupted (prints results until then; 0 if it only served metrics).";

const EXAMPLES: &str = "\
Examples:
  fcn-top --demo
  fcn-top -i eth1
  fcn-top -r incast.pcapng
  tcpdump -i eth1 -U -w - | fcn-top -r -
  fcn-top -i eth1 -i eth2 --per-interface --trust 10.255.0.0/16
  fcn-top -i eth1 --jsonl --interval 1s --duration 1min
  fcn-top -r incast.pcapng --report --sort -total --top 10
  fcn-top -r incast.pcapng --csv --where 'kind=fast_cnp_1 total>3'
  fcn-top -r prototype.pcapng --audit
  fcn-top -r incast.pcapng --html story.html
  fcn-top -i eth1 --prometheus 127.0.0.1:9464

Exit codes: 0 success, 1 failed or the audit found something, 2 wrong options or nothing to read, 3 packets were
dropped before they were read, 130 interrupted (prints results until then; 0 if it only served metrics).";

/// Source of packets.
#[derive(Clone, Debug, Args)]
pub struct Input {
    /// Capture on this interface; may be given several times; `any` means all
    #[arg(short, long, value_name = "IF")]
    pub iface: Vec<String>,
    /// Read this capture: pcap or pcapng, optionally compressed with gzip or zstd; `-` is standard
    /// input
    #[arg(short, long, value_name = "FILE")]
    pub read: Option<PathBuf>,
    /// Show synthetic traffic on the screen, in a loop: senders that obey and one that does not;
    /// needs no privileges, interface or file
    #[arg(long, conflicts_with_all = ["json", "jsonl", "csv", "report", "audit", "export", "prometheus", "interface", "pace", "sampled"])]
    pub demo: bool,
    /// Capture nothing: print the counters of this host's RDMA devices and the owners of their
    /// queue pairs (with --json, --csv), their growth in --duration, or serve them (--prometheus)
    #[arg(long, conflicts_with_all = ["jsonl", "report", "flows", "audit", "export", "html", "count", "filter", "rows", "top"])]
    pub counters: bool,
    /// Only packets of this interface of the capture, by name or by number from 0; may be given
    /// several times
    #[arg(
        long,
        value_name = "NAME|NUMBER",
        requires = "read",
        conflicts_with = "iface"
    )]
    pub interface: Vec<String>,
    /// Replay the capture at its own pace (real), or X times as fast [default: as fast as possible]
    #[arg(long, value_name = "real|X", value_parser = values::pace, requires = "read", conflicts_with = "iface")]
    pub pace: Option<f64>,
    /// Only packets that match this filter, in tcpdump's syntax
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// The capture is sampled, one packet in N, as by a sampling mirror: counts and rates are
    /// estimates; sFlow has its own N
    #[arg(long, value_name = "N", value_parser = quantity::one_in)]
    pub sampled: Option<NonZeroU32>,
    /// List the interfaces and exit
    #[arg(long, exclusive = true)]
    pub list_interfaces: bool,
}

/// Output without a screen.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Without a screen")]
pub struct Mode {
    /// Print one JSON document at the end
    #[arg(long)]
    pub json: bool,
    /// Print a line of JSON for each interval
    #[arg(long)]
    pub jsonl: bool,
    /// Print the rows as CSV at the end
    #[arg(long)]
    pub csv: bool,
    /// Print a readable report at the end
    #[arg(long)]
    pub report: bool,
    /// List the flows of RoCEv2 data, notified or not, instead of the notifications to each QP;
    /// --where, --sort and --top then apply to the flows
    #[arg(long, requires = "mode", conflicts_with_all = ["jsonl", "interval", "audit", "export", "html"])]
    pub flows: bool,
    /// List broken rules with frame numbers, as JSON with --json; exit with 1 if there are any,
    /// else with 3 if packets that may be RoCE could not be read
    #[arg(long, conflicts_with_all = ["jsonl", "csv", "report"])]
    pub audit: bool,
    /// Notes also fail the audit
    #[arg(long, requires = "audit")]
    pub strict: bool,
    /// Write the packets of the rows to a pcapng file at the end
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Write an HTML page at the end, one file that needs no network: a summary, charts and tables
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Options for replacing existing files.
    #[command(flatten)]
    pub replacing: Replacing,
    /// Serve metrics for Prometheus, with or without a screen; a port alone listens on this machine
    /// only
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = prometheus::read_address)]
    pub prometheus: Option<SocketAddr>,
    /// Print only the requested output and errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl Mode {
    /// Returns true if something is printed or written at the end, or meanwhile.
    pub const fn is_headless(&self) -> bool {
        self.json
            || self.jsonl
            || self.csv
            || self.report
            || self.audit
            || self.export.is_some()
            || self.html.is_some()
    }
}

/// Limits on rows and time.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limiting {
    /// Stop after this time; when reading a capture, counted from its first packet
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<Duration>,
    /// Stop after this many packets
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub count: Option<u64>,
    /// Only rows that match, such as 'kind=cnp rate>100' or '10.0.0.0/8'
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub rows: Option<String>,
    /// Maximum number of rows, 0 for all [default: all; 20 in a report, 1,000 in a page]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

/// The configuration file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub struct Configuring {
    /// Read this configuration file [default: fcn-top/config.toml in $XDG_CONFIG_HOME, else in
    /// ~/.config]
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long)]
    pub no_config: bool,
    /// Print a commented configuration file with all defaults
    #[arg(long, exclusive = true)]
    pub print_config: bool,
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
        let cli = parse(
            "fcn-top -q -i a -i b --duration 5s --count 10k --jsonl --interval 100ms --trust 10.0.0.0/8,::1 --able fd00::/16 \
             --sort -total --top 5 --prometheus :9464 --privacy --keep 1MiB --buffer 2MiB",
        )
        .unwrap();
        assert_eq!(cli.input.iface, ["a", "b"]);
        assert_eq!(cli.limits.count, Some(10_000));
        assert_eq!(cli.preferences.trust.map(|list| list.len()), Some(2));
        assert_eq!(cli.preferences.sort.as_deref(), Some("-total"));
        assert_eq!(cli.mode.prometheus.map(|a| a.port()), Some(9464));
        assert!(cli.mode.is_headless());
        let cli = parse("fcn-top -r - --pace 10 --interface 1").unwrap();
        assert!(!cli.mode.is_headless());
        assert_eq!(cli.input.pace, Some(10.0));
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [
            "fcn-top -i a -r b",
            "fcn-top -i a --counters",
            "fcn-top --counters --report",
            "fcn-top -r a --demo",
            "fcn-top -i a --demo",
            "fcn-top --demo --json",
            "fcn-top --demo --audit",
            "fcn-top --demo --export a",
            "fcn-top --demo --prometheus 0",
            "fcn-top --demo --interface 0",
            "fcn-top --demo --pace 2",
            "fcn-top --demo --sampled 10",
            "fcn-top -i a --pace real",
            "fcn-top -i a --interface 1",
            "fcn-top -r a --json --csv",
            "fcn-top -r a --jsonl --audit",
            "fcn-top -r a --interval 0s",
            "fcn-top -r a --count 0",
            "fcn-top -r a --json --strict",
            "fcn-top -r a --flows",
            "fcn-top -r a --flows --jsonl",
            "fcn-top -r a --flows --csv --interval 1s",
            "fcn-top -r a --flows --json --html b",
            "fcn-top -i a --snap-length 10",
            "fcn-top -i a --trust 10.0.0.0/40",
            "fcn-top -i a --buffer lots",
            "fcn-top -i a --prometheus nowhere",
            "fcn-top -i a --colours pink",
            "fcn-top --print-config --json",
            "fcn-top -r a --json --force",
            "fcn-top --list-interfaces -i a",
            "fcn-top -r a --config c --no-config",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
