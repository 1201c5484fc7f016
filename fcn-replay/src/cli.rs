//! Command-line options, carried out by `run.rs`.

use crate::rules::Rewriting;
use crate::selection::Numbers;
use crate::splitting::Sides;
use clap::{Args, Parser, ValueEnum};
use fcn_link::pacing::Rate;
use fcn_tool::quantity;
use fcn_tool::sending::{LinkOptions, Manner};
use std::path::PathBuf;
use std::time::Duration;

/// Replays captures onto a link: pcap or pcapng, optionally compressed with gzip or zstd
#[derive(Debug, Parser)]
#[command(
    name = "fcn-replay",
    version,
    long_version = fcn_tool::version(),
    after_help = EXIT_CODES,
    after_long_help = EXAMPLES,
    mut_arg("iface", |arg| arg.required_unless_present("dry_run")),
    mut_arg("force", |arg| arg.requires("output"))
)]
pub struct Cli {
    /// The captures, sent one after the other as if they were one; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Target of frames.
    #[command(flatten)]
    pub link: LinkOptions,
    /// A second interface.
    #[command(flatten)]
    pub second: Second,
    /// Timing of frames.
    #[command(flatten)]
    pub timing: Timing,
    /// Accuracy of timing.
    #[command(flatten)]
    pub manner: Manner,
    /// Number of loops.
    #[command(flatten)]
    pub loops: Looping,
    /// Limits on number and time.
    #[command(flatten)]
    pub limits: Limits,
    /// Selection of frames.
    #[command(flatten)]
    pub selection: Selecting,
    /// Changes to frames.
    #[command(flatten)]
    pub rewriting: Rewriting,
    /// Memory.
    #[command(flatten)]
    pub memory: Memory,
    /// Output.
    #[command(flatten)]
    pub printing: Printing,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all was sent, 1 nothing was sent or sending failed, 2 wrong options or no capture, 5 sent, but the last
frame left more than 100 ms after its time, 130 interrupted.";

const EXAMPLES: &str = "\
Examples:
  fcn-replay incast.pcapng --dry-run
  fcn-replay incast.pcapng --iface eth1
  fcn-replay incast.pcapng.zst --iface eth1 --rate 2Mpps --loops 1000
  fcn-replay incast.pcapng --iface eth1 --top --forever --duration 10s --json
  fcn-replay incast.pcapng --iface eth1 --filter 'udp port 4791' --dst-mac 02:00:00:00:00:07
  fcn-replay both.pcapng --iface eth1 --iface2 eth2 --split first-seen

Exit codes: 0 all was sent, 1 nothing was sent or sending failed, 2 wrong options or no capture, 5 sent, but the last
frame left more than 100 ms after its time, 130 interrupted.";

/// A second interface.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Two interfaces")]
pub struct Second {
    /// Send one direction on this second interface
    #[arg(long, value_name = "IF", requires_all = ["iface", "split"], conflicts_with = "output")]
    pub iface2: Option<String>,
    /// Frames to send on --iface: first-seen (those of the host that sends first in each
    /// conversation), prefixes of source addresses (10.0.0.0/8,fd00::/8), or interface (those
    /// captured on the capture's first interface)
    #[arg(long, value_name = "HOW", value_parser = Sides::read, requires = "iface2")]
    pub split: Option<Sides>,
}

/// Timing of frames.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Timing")]
pub struct Timing {
    /// The capture's own timing, X times as fast [default: 1]
    #[arg(long, value_name = "X", value_parser = quantity::factor, group = "pace")]
    pub speed: Option<f64>,
    /// At a rate over all queues: 100kpps, 2.5Gbps (layer 2), 10Gbps-l1 (layer 1)
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, group = "pace")]
    pub rate: Option<Rate>,
    /// As fast as the link accepts them
    #[arg(long, group = "pace")]
    pub top: bool,
    /// Shorten longer gaps between frames to this [default: none; captures days apart follow each
    /// other at once]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with_all = ["rate", "top"])]
    pub max_gap: Option<Duration>,
}

/// Number of loops.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Loops")]
pub struct Looping {
    /// Send the capture this many times
    #[arg(long, value_name = "N", value_parser = quantity::count, default_value = "1")]
    pub loops: u64,
    /// Send it until stopped
    #[arg(long, conflicts_with_all = ["loops", "count"])]
    pub forever: bool,
    /// Time between the last frame of a loop and the next loop [default: the capture's mean gap;
    /// none at a rate]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "top")]
    pub loop_gap: Option<Duration>,
}

/// Limits on what is sent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Send at most this many frames
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub count: Option<u64>,
    /// Send for at most this long
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<Duration>,
}

/// Selection of frames.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Selection")]
pub struct Selecting {
    /// Only frames that match this filter, in tcpdump's syntax
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only frames captured on this interface; may be given several times
    #[arg(long, value_name = "NAME|NUMBER")]
    pub interface: Vec<String>,
    /// Only frames with these numbers, from 1: 1-100,205,300-
    #[arg(long, value_name = "LIST", value_parser = Numbers::read)]
    pub frames: Option<Numbers>,
    /// Also send pause frames (PFC) on the interface; they may stop the link
    #[arg(long, conflicts_with = "output")]
    pub send_pause: bool,
}

/// Memory.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Memory {
    /// Read the capture into memory before sending the first frame
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub preload: Preload,
    /// Memory for frames, such as 500MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub memory_limit: Option<u64>,
}

/// Time of reading the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preload {
    /// Before sending if it fits into --memory-limit, else while sending
    Auto,
    /// Before sending; fail if it does not fit
    Yes,
    /// While sending
    No,
}

/// Output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Printing {
    /// Show what would be sent, without sending it
    #[arg(long)]
    pub dry_run: bool,
    /// Number of frames that --dry-run shows
    #[arg(long, value_name = "N", default_value_t = 20, requires = "dry_run")]
    pub show: usize,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, and no report but JSON
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
        let cli = parse(
            "fcn-replay a.pcapng --iface x --iface2 y --split 10.0.0.0/8,fd00::1 --speed 2.5x --max-gap 20ms \
             --loops 10k --count 5 --frames 1-4,9 --interface a --interface 3 --memory-limit 2MiB --preload no",
        )
        .unwrap();
        assert_eq!(cli.timing.speed, Some(2.5));
        assert_eq!(cli.loops.loops, 10_000);
        assert_eq!(cli.selection.interface, ["a", "3"]);
        assert_eq!(cli.memory.memory_limit, Some(2 << 20));
        assert!(
            parse("fcn-replay a --dry-run")
                .unwrap()
                .link
                .iface
                .is_none()
        );
        assert!(parse("fcn-replay a -o b --top").unwrap().timing.top);
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [
            "fcn-replay",
            "fcn-replay a",
            "fcn-replay a --iface x --iface2 y",
            "fcn-replay a --iface x --split interface",
            "fcn-replay a -o b --iface2 y --split interface",
            "fcn-replay a -o b --iface x",
            "fcn-replay a --iface x --top --rate 1kpps",
            "fcn-replay a --iface x --top --speed 2",
            "fcn-replay a --iface x --speed 0",
            "fcn-replay a --iface x --speed nan",
            "fcn-replay a --iface x --rate 5",
            "fcn-replay a --iface x --loops 0",
            "fcn-replay a --iface x --loops 2 --forever",
            "fcn-replay a --iface x --count 2 --forever",
            "fcn-replay a --iface x --top --spin",
            "fcn-replay a -o b --catch-up burst",
            "fcn-replay a -o b --burst 2",
            "fcn-replay a -o b --backend packet",
            "fcn-replay a --iface x --frames 0",
            "fcn-replay a --iface x --memory-limit 0",
            "fcn-replay a --iface x --memory-limit 99999999TiB",
            "fcn-replay a --iface x --dst-mac 02:00:00:00:00",
            "fcn-replay a --iface x --show 5",
            "fcn-replay a --iface x --top --max-gap 1s",
            "fcn-replay a --iface x --top --loop-gap 1s",
            "fcn-replay a --iface x --map-ip 10.0.0.0/8",
            "fcn-replay a --iface x --vlan x",
            "fcn-replay a --iface x --vary hope",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
