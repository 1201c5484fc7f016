//! `cargo xtask mutate`: damaged packets through tshark with the plugin, in every mode; nothing may be amiss that is not without
//! it. Not here: how that is told (`bench.rs`), the same under valgrind, and memory over many packets (`memory.rs`).

pub mod bench;
pub mod change;
pub mod corpus;
pub mod fields;
pub mod memory;
pub mod modes;
pub mod packets;
pub mod valgrind;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::report::{Ink, Took, ink};
use crate::tshark::Tshark;

use self::bench::{Bench, Finding, Tally};
use self::packets::Packet;

/// What to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Damage at least so many packets
    #[arg(long, value_name = "N", default_value_t = Self::default().packets)]
    pub packets: usize,
    /// Where the random numbers begin
    #[arg(long, value_name = "S", default_value_t = Self::default().seed)]
    pub seed: u64,
    /// Runs of tshark at a time
    #[arg(long, value_name = "N", default_value_t = Self::default().jobs)]
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

impl Default for Options {
    fn default() -> Self {
        Self {
            packets: 400_000,
            seed: 1,
            jobs: 2,
            mode: None,
            with: Vec::new(),
            valgrind: None,
            memory: None,
        }
    }
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
        if files.is_empty() {
            return Err(Failure::new(format!("no captures in {}", source.display())));
        }
        for file in files {
            all.extend(packets::read(&file)?);
        }
    }
    all.extend(corpus::packets(&root.join("crates/wire/fuzz/corpus"))?);
    Ok(all)
}

/// The chore.
///
/// # Errors
/// Something is amiss with the plugin, or could not be tried.
pub fn run(options: &Options) -> Outcome {
    let library = match crate::system::plugin_of_tests() {
        Some(library) => library,
        None => {
            crate::packages::ensure(crate::packages::PLUGIN)?;
            cargo::build_plugin(true)?
        }
    };
    let (with, without) = (Tshark::with_plugin(&library)?, Tshark::stock()?);
    if let Some(count) = options.memory {
        return memory::run(&with, &without, count);
    }
    let base = base(&options.with)?;
    let mut bench = Bench::new(with, without)?;
    if let Some(text) = &options.mode {
        bench.retain_modes(|name| name.contains(text.as_str()));
    }
    if bench.modes.is_empty() {
        return Err(Failure::new("no mode has that in its name"));
    }
    if let Some(count) = options.valgrind {
        return valgrind::run(&bench, &base, count, options.seed);
    }
    let began = Instant::now();
    let tally = bench.run(&base, options.packets, options.seed, options.jobs)?;
    report(&tally, base.len(), began.elapsed());
    if tally.findings.is_empty() {
        return Ok(());
    }
    let (count, kept) = (tally.findings.len(), keep(&tally.findings)?);
    Err(
        Failure::new(format!("{count} findings, kept in {}", kept.display()))
            .todo("run the plugin's tshark on them: each file is named for its mode"),
    )
}

fn report(tally: &Tally, base: usize, took: Duration) {
    let (packets, took) = (tally.packets(), Took(took));
    println!("{packets} packets damaged, of {base}, in {took}");
    for (change, count) in &tally.changed {
        println!("  {count:>9}  {change}");
    }
    println!("through tshark with the plugin:");
    for (mode, count) in &tally.through {
        println!("  {count:>9}  {mode}");
    }
    if !tally.stock.is_empty() {
        println!("amiss without the plugin, too (batches):");
        for (what, count) in &tally.stock {
            println!("  {count:>9}  {what}");
        }
    }
    for finding in &tally.findings {
        let amiss: Vec<_> = finding.amiss.iter().map(String::as_str).collect();
        println!(
            "{} {} ({}), {} packets: {}",
            ink(Ink::Red, "amiss:"),
            finding.mode,
            finding.change,
            finding.packets.len(),
            amiss.join("; ")
        );
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
