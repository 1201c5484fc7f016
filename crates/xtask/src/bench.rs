//! `cargo xtask bench`: the project's programs against others, measured in the same run: figures
//! and ratios.
//! Not here: the cost of parts of a program, which `cargo bench` measures, crate by crate.

use clap::ValueEnum;

use crate::failure::Outcome;
use crate::figures::{self, Ratio};
use crate::report::heading;
use crate::{bench_link, bench_monitor, bench_plugin};

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// fcn-top against tshark on a file, and on a link at top speed (needs root)
    Monitor,
    /// tshark with the plugin against tshark without, and against a dissector in Lua
    Plugin,
    /// Frames over a link: top speed, exact rates, replay, against a bare AF_XDP loop and other
    /// programs (needs root)
    Link,
}

/// Default number of rounds of each comparison.
const ROUNDS: usize = 7;
/// Default number of rounds with tshark: one over a million packets takes minutes.
const SLOW_ROUNDS: usize = 3;

/// Options of `cargo xtask bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only these
    name: Vec<Bench>,
    /// Rounds of each comparison [default: 7, of the plugin 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Packets that tshark reads in each run of the plugin benchmark
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    packets: u64,
    /// Only this part of the link benchmark
    #[arg(long, value_name = "PART")]
    part: Vec<bench_link::Part>,
}

/// Runs the named benchmarks, or all.
///
/// # Errors
/// One cannot be built or fails.
pub fn run(options: &Options) -> Outcome {
    let rounds = |default| options.rounds.unwrap_or(default);
    let wanted = |bench: &&Bench| options.name.is_empty() || options.name.contains(bench);
    let mut ratios: Vec<Ratio> = Vec::new();
    for bench in Bench::value_variants().iter().filter(wanted) {
        ratios.extend(match bench {
            Bench::Monitor => bench_monitor::run(rounds(ROUNDS))?,
            Bench::Plugin => bench_plugin::run(rounds(SLOW_ROUNDS), options.packets)?,
            Bench::Link => bench_link::run(rounds(ROUNDS), &options.part)?,
        });
    }
    heading("\nAll ratios, medians");
    println!("  {}", machine());
    let row = |ratio: Ratio| vec![ratio.what, ratio.against, ratio.ratio];
    let rows: Vec<_> = ratios.into_iter().map(row).collect();
    figures::print("|against|", &rows);
    Ok(())
}

/// Describes the machine of the figures: processors, kernel, and load average.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("", |(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').nth(1).unwrap_or_default();
    format!(
        "{cores} × {model}, Linux {}, load average of 5 minutes {load}",
        kernel.trim()
    )
}
