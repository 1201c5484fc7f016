//! `cargo xtask mutate`: damaged packets through tshark with the plugin, in every mode; nothing may be amiss that is not without
//! it. Not here: how that is told (`bench.rs`), the same under valgrind, and memory over many packets (`memory.rs`).

pub mod bench;
pub mod change;
pub mod corpus;
pub mod fields;
pub mod memory;
pub mod modes;
pub mod valgrind;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use crate::cargo;
use crate::failure::Outcome;
use crate::packets::{self, Packet};
use crate::report::{Ink, Took, ink};
use crate::tshark::Tshark;

use self::bench::{Bench, Finding, Tally};

/// What to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Damage at least so many packets
    #[arg(long, value_name = "N", default_value_t = 400_000)]
    pub packets: usize,
    /// Where the random numbers begin
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Runs of tshark at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub jobs: usize,
    /// Only modes with this in their names
    #[arg(long, value_name = "TEXT")]
    pub mode: Option<String>,
    /// Further captures, and folders of captures, besides the samples and those in FCN_CAPTURES
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// Run so many packets of each batch under valgrind instead, with every mode
    #[arg(long, value_name = "N")]
    pub valgrind: Option<usize>,
    /// Instead, watch tshark's memory over so many undamaged packets
    #[arg(long, value_name = "N", conflicts_with_all = ["valgrind", "with"])]
    pub memory: Option<u64>,
}

/// The packets to be damaged: of the samples, of `FCN_CAPTURES`, of `more`, and of the fuzzers' corpora.
///
/// # Errors
/// One cannot be read.
pub fn base(more: &[PathBuf]) -> Outcome<Vec<Packet>> {
    let root = cargo::root()?;
    let mut sources = vec![root.join("captures")];
    sources.extend(std::env::var_os("FCN_CAPTURES").map(PathBuf::from));
    sources.extend(more.iter().cloned());
    let mut all = Vec::new();
    for source in sources {
        let files = match source.is_file() {
            true => vec![source.clone()],
            false => packets::files(&source, &["pcap", "pcapng"])?,
        };
        ensure!(!files.is_empty(), "no captures in {}", source.display());
        for file in files {
            all.extend(packets::read(&file)?.packets);
        }
    }
    all.extend(corpus::packets(&root.join("crates/wire/fuzz/corpus"))?);
    Ok(all)
}

/// Runs the command.
///
/// # Errors
/// Something is amiss with the plugin, or could not be tried.
pub fn run(options: &Options) -> Outcome {
    crate::packages::ensure(crate::packages::PLUGIN)?;
    let (with, without) = (Tshark::with_this_plugin(true)?, Tshark::stock()?);
    if let Some(count) = options.memory {
        return memory::run(&with, &without, count);
    }
    let base = base(&options.with)?;
    let mut bench = Bench::new(with, without)?;
    if let Some(text) = &options.mode {
        bench.retain_modes(|name| name.contains(text.as_str()));
    }
    ensure!(!bench.modes.is_empty(), "no mode has that in its name");
    if let Some(count) = options.valgrind {
        return valgrind::run(&bench, &base, count, options.seed);
    }
    let began = Instant::now();
    let tally = bench.run(&base, options.packets, options.seed, options.jobs)?;
    report(&tally, base.len(), began.elapsed());
    if !tally.findings.is_empty() {
        let (count, kept) = (tally.findings.len(), keep(&tally.findings)?);
        let kept = kept.display();
        bail!("{count} findings, each kept in a file that is named for its mode: {kept}");
    }
    Ok(())
}

fn report(tally: &Tally, base: usize, took: Duration) {
    let (packets, took) = (tally.packets(), Took(took));
    println!("{packets} packets damaged, of {base}, in {took}");
    let list = |heading: &str, counts: &BTreeMap<String, usize>| {
        println!("{heading}");
        for (what, count) in counts {
            println!("  {count:>9}  {what}");
        }
    };
    list("by change:", &tally.changed);
    list("through tshark with the plugin:", &tally.through);
    if !tally.stock.is_empty() {
        list("amiss without the plugin, too (batches):", &tally.stock);
    }
    for finding in &tally.findings {
        let (mode, change) = (finding.mode, &finding.change);
        let (count, amiss) = (finding.packets.len(), &finding.amiss);
        let mark = ink(Ink::Red, "amiss:");
        println!("{mark} {mode} ({change}), {count} packets: {amiss:?}");
    }
    if tally.findings.is_empty() {
        println!("{}", ink(Ink::Green, "nothing amiss with the plugin"));
    }
}

/// Writes the packets of each finding into a file.
///
/// # Errors
/// One cannot be written.
pub fn keep(findings: &[Finding]) -> Outcome<PathBuf> {
    let folder = cargo::target_folder("mutate")?;
    for (number, finding) in findings.iter().enumerate() {
        let name = finding
            .mode
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let file = folder.join(format!("{name}-{number}.pcapng"));
        packets::write(&file, &finding.packets)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_has_packets_of_every_link_type() {
        let base = base(&[]).unwrap();
        let links: std::collections::BTreeSet<u32> =
            base.iter().map(|packet| packet.link).collect();
        assert!(
            links.is_superset(&[0, 1, 101, 113, 276].into()),
            "{links:?}"
        );
    }
}
