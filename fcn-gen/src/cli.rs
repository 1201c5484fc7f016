//! The command line: commands and options. `commands.rs` executes them.

pub use crate::device::Role;
pub use crate::emulate::{Part, Untranslated};
use crate::mirror::Mirroring;
use clap::{ArgGroup, Args, Parser, Subcommand};
use fcn_link::pacing::Rate;
use fcn_tool::output::Replacing;
use fcn_tool::quantity;
use fcn_tool::sending::{Backend, LinkOptions, Manner};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Plays congestion scenarios of RoCEv2 networks into capture files in virtual time, or onto a link
#[derive(Debug, Parser)]
#[command(
    name = "fcn-gen",
    version,
    long_version = fcn_tool::version(),
    after_help = EXIT_CODES,
    after_long_help = EXAMPLES,
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong options or a bad scenario, 4 a device failed a check, 5 sent, but the last frame
left more than 100 ms after its time, 130 interrupted.";

const EXAMPLES: &str = "\
Examples:
  fcn-gen list
  fcn-gen show incast
  fcn-gen write incast -o incast.pcapng
  fcn-gen run stress-cnp --iface veth0 --duration 10s
  fcn-gen compare incast
  fcn-gen emulate receiver --iface eth1 --forever

Exit codes: 0 done, 1 failed, 2 wrong options or a bad scenario, 4 a device failed a check, 5 sent, but the last frame
left more than 100 ms after its time, 130 interrupted.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the built-in scenarios
    #[command(after_long_help = LIST_EXAMPLES)]
    List(List),
    /// Show a scenario: topology, what it demonstrates, parameters
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(Show),
    /// Play a scenario into a pcapng file
    #[command(after_long_help = WRITE_EXAMPLES)]
    Write(Write),
    /// Send a scenario on a link: a simulation in real time, or a stress scenario as fast as the
    /// link accepts it
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Box<Run>),
    /// Play a scenario under several mechanisms and compare the figures
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Play one node of a scenario on real links: a switch, host, proxy or provider edge
    #[command(after_long_help = EMULATE_EXAMPLES)]
    Emulate(Box<Emulate>),
    /// Check a device against the drafts, rule by rule, as its link peer: a switch, host, proxy or
    /// provider edge
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(Box<Check>),
}

const LIST_EXAMPLES: &str = "\
Examples:
  fcn-gen list
  fcn-gen list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  fcn-gen show incast
  fcn-gen show incast --toml > mine.toml    # a starting point for your own scenario
  fcn-gen show mine.toml --set mechanism=fast-cnp";

const WRITE_EXAMPLES: &str = "\
Examples:
  fcn-gen write incast -o incast.pcapng
  fcn-gen write incast --set mechanism=fast-cnp --seed 7 -o incast.pcapng --truth incast.json
  fcn-gen write mine.toml -o - | tshark -r -";

const RUN_EXAMPLES: &str = "\
Examples:
  fcn-gen run fast-cnp --iface veth0                         # in real time, once
  fcn-gen run incast --iface veth0 --speed 0.01 --forever    # at a hundredth of the speed, repeatedly
  fcn-gen run stress-mix --iface veth0 --queues 2 --duration 10s
  fcn-gen run stress-cnp --iface veth0 --rate 500kpps --count 10M --set flows=100000
  fcn-gen run stress-fast-cnp -o fast.pcapng --count 1000    # into a capture file instead";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fcn-gen compare incast
  fcn-gen compare incast --mechanisms cnp,fast-cnp --seeds 20 --svg incast.svg
  fcn-gen compare wan-fcn --over distance=1km,100km,1000km";

const EMULATE_EXAMPLES: &str = "\
Examples:
  fcn-gen emulate congestion-point --iface eth1 --iface eth2 --enable-fast-cnp --duration 1min
  fcn-gen emulate receiver --iface eth1 --forever
  fcn-gen emulate sender --iface eth1 --set flows=16 --peer-mac 02:00:00:00:00:07 --enable-fast-cnp --duration 10s
  fcn-gen emulate congestion-point --config switch-cnp --node spine1 --speed 0.01 --iface a=leaf1 --iface b=leaf2 --forever
  fcn-gen emulate ingress-pe --config wan-fcn --node pe1 --speed 0.01 --iface in --iface out --enable-wan-fcn --forever
  fcn-gen emulate translator --iface eth1=host --iface eth2=network --enable-fast-cnp --forever
  fcn-gen emulate receiver --fault list                                        # what can be wrong with it (--fault)";

const CHECK_EXAMPLES: &str = "\
Examples:
  fcn-gen check congestion-point --dry-run                                     # the tests, and what would be sent
  fcn-gen check congestion-point --iface eth1 --iface eth2 -o report           # report.json, junit.xml, packets.pcapng
  fcn-gen check congestion-point --iface eth1 --iface eth2 --off               # in its default configuration: all must be off
  fcn-gen check receiver --iface eth1 --only cnp
  fcn-gen check sender --iface eth1 --set flows=4
  fcn-gen check proxy --iface up=spine1 --iface a=s1 --iface b=s2 --set mtu=1024 --speed 0.01
  fcn-gen check ingress-pe --node pe1 --iface in=leaf1 --iface out=p1 --set mtu=1024 --speed 0.01

Exit codes: 0 passed, 1 the check failed, 2 wrong options, 3 inconclusive: a core test could not be done (with --strict,
any), 4 a test failed, 130 interrupted.";

/// Options of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The scenario, and changes to its parameters.
#[derive(Debug, Args)]
pub struct ScenarioArgs {
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
    /// The scenario.
    #[command(flatten)]
    pub scenario_args: ScenarioArgs,
    /// Print the scenario's file, as a starting point for your own
    #[arg(long, conflicts_with_all = ["json", "sets"])]
    pub toml: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `write`.
#[derive(Debug, Args)]
pub struct Write {
    /// The scenario.
    #[command(flatten)]
    pub scenario_args: ScenarioArgs,
    /// The pcapng file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Seed of all random decisions
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<u64>,
    /// Also write the ground truth to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Files that may be overwritten.
    #[command(flatten)]
    pub replacing: Replacing,
    /// Keep at most this many octets of each packet; 0 keeps all
    #[arg(long = "snap-length", alias = "snap-len", value_name = "OCTETS")]
    pub snap_len: Option<u32>,
    /// Write frames as a switch mirrors them (erspan1, erspan2, erspan3, gre, nvgre, geneve,
    /// vxlan-gpe, gtpu), or as samples (sflow:N: one in N); truth and report describe the original
    /// frames
    #[arg(long, value_name = "HOW", value_parser = Mirroring::read)]
    pub mirror: Option<Mirroring>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, and no report but JSON
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("pace"))]
pub struct Run {
    /// The scenario.
    #[command(flatten)]
    pub scenario_args: ScenarioArgs,
    /// The link, or the file instead of it.
    #[command(flatten)]
    pub link: LinkOptions,
    /// Send at this rate: 100kpps, 2.5Gbps (layer 2), 10Gbps-l1 (layer 1)
    #[arg(long, value_name = "RATE", group = "pace", value_parser = quantity::rate)]
    pub rate: Option<Rate>,
    /// Send at the interface's link speed
    #[arg(long, group = "pace")]
    pub line_rate: bool,
    /// Send as fast as the link accepts packets [default for a stress]
    #[arg(long, group = "pace")]
    pub top: bool,
    /// Send at the simulation's own times [default for a simulation]
    #[arg(long, group = "pace")]
    pub realtime: bool,
    /// Send at the simulation's own times, X times as fast
    #[arg(long, value_name = "X", group = "pace", value_parser = quantity::factor)]
    pub speed: Option<f64>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<Duration>,
    /// Stop after this many packets
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub count: Option<u64>,
    /// Repeat a simulation or gallery, or continue a stress, until interrupted
    #[arg(long, conflicts_with = "count")]
    pub forever: bool,
    /// The manner of sending.
    #[command(flatten)]
    pub manner: Manner,
    /// Destination MAC address [default: the simulation's; 02:00:00:00:00:02 for a stress]
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    pub peer_mac: Option<[u8; 6]>,
    /// Source MAC address [default: the interface's]
    #[arg(long, value_name = "MAC", value_parser = quantity::mac, conflicts_with = "keep_macs")]
    pub source_mac: Option<[u8; 6]>,
    /// Keep a simulation's MAC addresses
    #[arg(long, conflicts_with = "peer_mac")]
    pub keep_macs: bool,
    /// Send the packets captured at this vantage point of a simulation, or `all` [default: the
    /// first]
    #[arg(long, value_name = "NAME")]
    pub vantage: Option<String>,
    /// Seed of all random decisions
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<u64>,
    /// Write frames as a switch mirrors them (erspan1, erspan2, erspan3, gre, nvgre, geneve,
    /// vxlan-gpe, gtpu), or as samples (sflow:N: one in N), only to a file; truth and report
    /// describe the original frames
    #[arg(long, value_name = "HOW", value_parser = Mirroring::read, conflicts_with = "iface")]
    pub mirror: Option<Mirroring>,
    /// Write the ground truth to this file, as JSON, once all of a simulation has been sent
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, and no report but JSON
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `emulate`.
#[derive(Debug, Args)]
pub struct Emulate {
    /// The role to play
    #[arg(value_enum)]
    pub role: Part,
    /// The interface of a link of the node, in the order of its links in the scenario, or of the
    /// link to the named neighbour; give one for each, or for a switch a single one, on which it
    /// also sends back
    #[arg(long, value_name = "IF[=NODE]", required_unless_present = "fault")]
    pub iface: Vec<String>,
    /// The scenario that contains the node: a built-in one, or a file [default: senders, a switch
    /// and a receiver with a slow link]
    #[arg(long, value_name = "NAME|FILE")]
    pub config: Option<String>,
    /// The node of the scenario to play [default: the only one that can play the role]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Change a parameter of the scenario; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Let the node's time run X times as fast: its rates are X times the scenario's
    #[arg(long, value_name = "X", default_value = "1", value_parser = quantity::factor)]
    pub speed: f64,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<Duration>,
    /// Continue until interrupted
    #[arg(long, conflicts_with = "duration")]
    pub forever: bool,
    /// Send Fast CNPs, or obey them, if the node does so in the scenario
    #[arg(long)]
    pub enable_fast_cnp: bool,
    /// Notify proxy nodes, or act as one, if the node does so in the scenario
    #[arg(long)]
    pub enable_proxy: bool,
    /// Send FCNs to ingress PEs, or translate them, if the node does so in the scenario
    #[arg(long)]
    pub enable_wan_fcn: bool,
    /// Play a device with this fault, to test checks and monitors; may be given several times;
    /// "list" shows the role's
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub fault: Vec<String>,
    /// What a translator does with a Fast CNP for its host that it cannot translate
    #[arg(long, value_name = "HOW", default_value = "drop")]
    pub untranslated: Untranslated,
    /// Method of sending and receiving
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub backend: Backend,
    /// Continue even if a default route uses the interface
    #[arg(long)]
    pub allow_default_route: bool,
    /// Destination MAC address until a frame from the neighbour is received [default: the
    /// scenario's]
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    pub peer_mac: Option<[u8; 6]>,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics while running; a port alone
    /// listens on this machine only
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = fcn_tool::metrics::read_address)]
    pub prometheus: Option<SocketAddr>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, and no report but JSON
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The role of the device
    #[arg(value_enum)]
    pub role: Role,
    /// The interface connected to a link of the device, in the order of its links in the scenario,
    /// or to its link to the named neighbour, which is played; give one for each link
    #[arg(long, value_name = "IF[=NODE]", required_unless_present = "dry_run")]
    pub iface: Vec<String>,
    /// The scenario that contains the device as a node: a built-in one, or a file [default: as for
    /// emulate; proxy and wan-fcn for those roles]
    #[arg(long, value_name = "NAME|FILE")]
    pub config: Option<String>,
    /// The device's node in the scenario [default: the only one that can play the role]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Change a parameter of the scenario; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Let time run X times as fast: rates are X times the scenario's
    #[arg(long, value_name = "X", default_value = "1", value_parser = quantity::factor)]
    pub speed: f64,
    /// The device is in its default configuration: test that features that must be off by default
    /// are off
    #[arg(long)]
    pub off: bool,
    /// Maximum acceptable notifications per second about one flow, at the scenario's speed
    #[arg(long, value_name = "N", default_value_t = fcn_observe::rules::FLOW_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    pub flow_rate: u32,
    /// Maximum acceptable time from a data packet that meets congestion, or a mark, to the
    /// notification about it, in the scenario's time
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = quantity::duration)]
    pub max_latency: Duration,
    /// Minimum acceptable share of congested or marked flows that are notified about, 0 to 1
    #[arg(long, value_name = "X", default_value = "0.5", value_parser = quantity::share)]
    pub min_share: f64,
    /// Run only tests whose name equals or begins with one of these, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Skip tests whose name equals or begins with one of these
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Also end with an error if something was not tested
    #[arg(long)]
    pub strict: bool,
    /// List the tests and the packets that would be sent; send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Method of sending and receiving
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub backend: Backend,
    /// Continue even if a default route uses the interface
    #[arg(long)]
    pub allow_default_route: bool,
    /// Destination MAC address of all packets sent [default: the scenario's]
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    pub peer_mac: Option<[u8; 6]>,
    /// Also write report.json, junit.xml and packets.pcapng (all packets sent and received, with
    /// comments where a test failed) into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Files that may be overwritten.
    #[command(flatten)]
    pub replacing: Replacing,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, and no report but JSON
    #[arg(short, long)]
    pub quiet: bool,
}

/// Parses a seed. Its maximum is the largest integer in TOML, the format of scenario files.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    const MOST: u64 = i64::MAX as u64;
    let seed = text.parse().ok().filter(|seed| *seed <= MOST);
    seed.ok_or_else(|| format!("`{text}` is not a valid seed: write a number, 0 to {MOST}"))
}

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The scenario.
    #[command(flatten)]
    pub scenario_args: ScenarioArgs,
    /// Only these mechanisms, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub mechanisms: Vec<String>,
    /// Play each mechanism with this many seeds; shows median and range
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Compare once for each value of a parameter
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub over: Option<String>,
    /// Also draw queue and rate over time into this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write a self-contained HTML page that needs no network: the figures, with charts of
    /// queue and rate over time
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Files that may be overwritten.
    #[command(flatten)]
    pub replacing: Replacing,
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
    fn clap_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_parsed() {
        let Command::Write(write) =
            parse("fcn-gen write x --set a=1 --set b=2 -o - --seed 7 --snap-len 64")
                .unwrap()
                .command
        else {
            panic!("not write");
        };
        assert_eq!(write.scenario_args.sets, ["a=1", "b=2"]);
        assert_eq!((write.seed, write.snap_len), (Some(7), Some(64)));
        let Command::Compare(compare) =
            parse("fcn-gen compare x --mechanisms cnp,pfc --over distance=1km,2km")
                .unwrap()
                .command
        else {
            panic!("not compare");
        };
        assert_eq!(compare.mechanisms, ["cnp", "pfc"]);
        assert_eq!(compare.seeds, 5);
    }

    #[test]
    fn options_of_run_are_parsed() {
        let words = "fcn-gen run x --iface i --speed 2x --peer-mac 02-00-00-00-00-fF --queues 2 --duration 5";
        let Command::Run(run) = parse(words).unwrap().command else {
            panic!("not run");
        };
        assert_eq!(run.speed, Some(2.0));
        assert_eq!(run.peer_mac, Some([2, 0, 0, 0, 0, 255]));
        assert_eq!(
            (run.link.queues, run.duration),
            (2, Some(Duration::from_secs(5)))
        );
        parse("fcn-gen run x -o f --rate 10kpps --forever --duration 7s").unwrap();
    }

    #[test]
    fn invalid_options_are_refused() {
        for words in [
            "fcn-gen",
            "fcn-gen write x",
            "fcn-gen compare x --seeds 0",
            "fcn-gen show x --toml --set a=1",
            "fcn-gen write x -o y --seed -1",
            "fcn-gen write x -o y --seed 9223372036854775808",
            "fcn-gen run x",
            "fcn-gen run x --iface i -o f",
            "fcn-gen run x --iface i --top --realtime",
            "fcn-gen run x --iface i --rate 5Gbps --line-rate",
            "fcn-gen run x --iface i --rate 5",
            "fcn-gen run x --iface i --speed 0",
            "fcn-gen run x --iface i --speed NaN",
            "fcn-gen run x --iface i --count 0",
            "fcn-gen run x --iface i --count 7 --forever",
            "fcn-gen run x --iface i --top --spin",
            "fcn-gen run x --iface i --top --catch-up burst",
            "fcn-gen run x -o f --spin",
            "fcn-gen run x --iface i --mirror gre",
            "fcn-gen write x -o f --mirror erspan4",
            "fcn-gen write x -o f --mirror sflow:0",
            "fcn-gen run x -o f --burst 2",
            "fcn-gen run x -o f --backend packet",
            "fcn-gen run x -o f --allow-default-route",
            "fcn-gen run x --iface i --peer-mac 02:00:00:00:00",
            "fcn-gen run x --iface i --peer-mac 02:00:00:00:00:+1",
            "fcn-gen run x --iface i --peer-mac 02:00:00:00:00:01 --keep-macs",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
