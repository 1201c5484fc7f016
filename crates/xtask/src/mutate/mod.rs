//! `cargo xtask mutate`: damaged packets through tshark with the plugin, in every mode, and through tshark without it,
//! to tell its faults from ours. What is amiss only with the plugin is reduced to the packets that it takes.
//! Not here: the same under valgrind, and memory over many packets (`memory.rs`).

pub mod change;
pub mod corpus;
pub mod memory;
pub mod modes;
pub mod packets;
pub mod places;
pub mod random;
pub mod valgrind;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::report::{Ink, Took, ink};
use crate::tshark::Tshark;
use crate::{cargo, process};
use change::Change;
use modes::{Additions, Amiss, Mode};
use packets::Packet;
use random::Random;

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

/// What a batch may take; the longest without a fault takes a tenth.
const LIMIT: Duration = Duration::from_secs(180);
/// Packets of a batch at most.
const BATCH: usize = 6_000;
/// Runs of tshark that reducing one finding may take.
const TRIES: usize = 120;

/// Something amiss with the plugin, and not without.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The mode.
    pub mode: &'static str,
    /// How the packets were changed.
    pub change: String,
    /// What.
    pub amiss: Amiss,
    /// The packets that it takes.
    pub packets: Vec<Packet>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Damaged packets by change.
    pub changed: BTreeMap<String, usize>,
    /// Packets through each mode.
    pub through: BTreeMap<&'static str, usize>,
    /// What is amiss without the plugin, too, and how often.
    pub stock: BTreeMap<String, usize>,
    /// What is amiss with the plugin alone.
    pub findings: Vec<Finding>,
}

/// tshark with the plugin and without, and what to run them on.
#[derive(Debug)]
pub struct Bench {
    with: Tshark,
    without: Tshark,
    modes: Vec<Mode>,
    scratch: PathBuf,
    next: AtomicUsize,
}

impl Bench {
    /// Sets the two up.
    ///
    /// # Errors
    /// They do not start.
    pub fn new(with: Tshark, without: Tshark) -> Outcome<Self> {
        let added = Additions::ask(&with, &without)?;
        Ok(Self {
            modes: modes::all(&added),
            scratch: with.scratch()?,
            with,
            without,
            next: AtomicUsize::new(0),
        })
    }

    /// Leaves only modes for which `wanted` holds.
    pub fn retain_modes(&mut self, wanted: impl Fn(&str) -> bool) {
        self.modes.retain(|mode| wanted(mode.name));
    }

    fn file(&self, packets: &[Packet]) -> Outcome<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.scratch.join(format!("{number}.pcapng"));
        packets::write(&path, packets)?;
        Ok(path)
    }

    /// What is amiss with these packets with the plugin, and without where something is.
    fn compare(&self, mode: &Mode, packets: &[Packet]) -> Outcome<(Amiss, Amiss)> {
        let file = self.file(packets)?;
        let lines = mode.line_a_packet.then_some(packets.len());
        let amiss = modes::run(&self.with, &mode.with, lines, &file, LIMIT)?;
        let mut stock = Amiss::new();
        if !amiss.is_empty() {
            stock = modes::run(&self.without, &mode.without, lines, &file, LIMIT)?;
            // The plugin gives the port of RoCEv2 to InfiniBand whatever the other port; this makes stock do so.
            let as_roce = [&mode.without[..], &modes::as_roce()].concat();
            stock.extend(modes::run(&self.without, &as_roce, lines, &file, LIMIT)?);
        }
        // A scratch file that stays goes with its folder.
        let _ = std::fs::remove_file(file);
        Ok((amiss, stock))
    }

    /// What is amiss with the plugin alone.
    fn ours(&self, mode: &Mode, packets: &[Packet]) -> Outcome<Amiss> {
        let (amiss, stock) = self.compare(mode, packets)?;
        Ok(amiss.difference(&stock).cloned().collect())
    }

    /// Runs packets through a mode; what a crash of stock Wireshark hides is looked at again without its cause.
    fn through(&self, mode: &Mode, change: &str, packets: &[Packet]) -> Outcome<Tally> {
        let mut tally = Tally::default();
        let mut packets = packets.to_vec();
        for _ in 0..8 {
            let (amiss, stock) = self.compare(mode, &packets)?;
            let ours: Amiss = amiss.difference(&stock).cloned().collect();
            if !ours.is_empty() {
                let packets = self.reduced(mode, &packets, &ours)?;
                tally.findings.push(Finding {
                    mode: mode.name,
                    change: change.to_owned(),
                    amiss: ours,
                    packets,
                });
                break;
            }
            for what in &stock {
                *tally.stock.entry(what.clone()).or_default() += 1;
            }
            let ended = |what: &String| what.starts_with("signal") || what.starts_with("no end");
            if !stock.iter().any(ended) {
                break;
            }
            // Stock Wireshark went down before the end: without the packets that it takes, the rest is seen.
            let fatal: Amiss = stock.iter().filter(|what| ended(what)).cloned().collect();
            let guilty = shrink(&packets, TRIES, |some| {
                let file = self.file(some)?;
                Ok(
                    !modes::run(&self.without, &mode.without, None, &file, LIMIT)?
                        .is_disjoint(&fatal),
                )
            })?;
            packets.retain(|packet| !guilty.contains(packet));
        }
        tally.through.insert(mode.name, packets.len());
        Ok(tally)
    }

    fn reduced(&self, mode: &Mode, packets: &[Packet], amiss: &Amiss) -> Outcome<Vec<Packet>> {
        shrink(packets, TRIES, |some| {
            Ok(!self.ours(mode, some)?.is_disjoint(amiss))
        })
    }

    /// Damages `base` until so many packets are damaged, and runs them through every mode.
    ///
    /// # Errors
    /// A program could not be started, or a file not be written.
    pub fn run(&self, base: &[Packet], options: &Options) -> Outcome<Tally> {
        let batches = base.chunks(BATCH).count().max(1);
        let rounds = options.packets.div_ceil(base.len().max(1));
        let jobs: Vec<(usize, usize)> = (0..rounds)
            .flat_map(|round| (0..batches).map(move |batch| (round, batch)))
            .collect();
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let total = Mutex::new(Tally::default());
        let work = || -> Outcome {
            while let Some((round, batch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let chunk = base.chunks(BATCH).nth(*batch).unwrap_or_default();
                let change = Change::ALL[round % Change::ALL.len()];
                let mut tally = self.batch(chunk, change, *round, options.seed)?;
                println!(
                    "  {} packets, {}: {}",
                    tally.packets(),
                    change.name(),
                    tally.word()
                );
                let mut total = total
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                total.add(&mut tally);
                // Enough to mend.
                stop.store(total.findings.len() > 20, Ordering::Relaxed);
            }
            Ok(())
        };
        let ended: Vec<Outcome> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..options.jobs.max(1))
                .map(|_| scope.spawn(work))
                .collect();
            let died = || Err(Failure::new("a worker panicked"));
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| died()))
                .collect()
        });
        ended.into_iter().collect::<Outcome<Vec<()>>>()?;
        Ok(total
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn batch(&self, base: &[Packet], change: Change, round: usize, seed: u64) -> Outcome<Tally> {
        let seed = Random(seed ^ (round as u64) << 20).number();
        let mut packets = change.apply(base, round, &mut Random(seed));
        if let Change::Octets(rate) = change {
            packets = self.editcap(&packets, rate, seed)?;
        }
        let mut tally = Tally::default();
        tally.changed.insert(change.name(), packets.len());
        for mode in &self.modes {
            tally.add(&mut self.through(mode, &change.name(), &packets)?);
        }
        Ok(tally)
    }

    /// `editcap -E`.
    fn editcap(&self, packets: &[Packet], rate: u32, seed: u64) -> Outcome<Vec<Packet>> {
        let from = self.file(packets)?;
        let to = from.with_extension("changed");
        let mut command = Command::new("editcap");
        command.args(["-E", &format!("{}", f64::from(rate) / 1000.0)]);
        command.args(["--seed", &(seed & 0x7FFF_FFFF).to_string()]);
        process::stdout(command.arg(&from).arg(&to))?;
        let changed = packets::read(&to)?;
        for file in [from, to] {
            // It goes with its folder.
            let _ = std::fs::remove_file(file);
        }
        Ok(changed)
    }
}

impl Tally {
    fn add(&mut self, other: &mut Self) {
        for (change, count) in &other.changed {
            *self.changed.entry(change.clone()).or_default() += count;
        }
        for (mode, count) in &other.through {
            *self.through.entry(mode).or_default() += count;
        }
        for (what, count) in &other.stock {
            *self.stock.entry(what.clone()).or_default() += count;
        }
        self.findings.append(&mut other.findings);
    }

    fn word(&self) -> String {
        match (self.findings.len(), self.stock.len()) {
            (0, 0) => "nothing amiss".to_owned(),
            (0, _) => "nothing amiss that is not without the plugin".to_owned(),
            (count, _) => format!("{count} findings"),
        }
    }

    /// Packets damaged.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.changed.values().sum()
    }
}

/// Fewer of `packets` for which `fails` still holds, by leaving out ever smaller parts.
fn shrink(
    packets: &[Packet],
    tries: usize,
    mut fails: impl FnMut(&[Packet]) -> Outcome<bool>,
) -> Outcome<Vec<Packet>> {
    let mut left = packets.to_vec();
    let mut part = left.len() / 2;
    let mut tries = tries;
    while part > 0 && left.len() > 1 {
        let mut at = 0;
        let before = left.len();
        while at < left.len() && left.len() > 1 {
            if tries == 0 {
                return Ok(left);
            }
            tries -= 1;
            let mut fewer = left.clone();
            fewer.drain(at..(at + part).min(left.len()));
            if !fewer.is_empty() && fails(&fewer)? {
                left = fewer;
            } else {
                at += part;
            }
        }
        if part > 1 || left.len() == before {
            part /= 2;
        }
    }
    Ok(left)
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
        for file in captures(&source)? {
            all.extend(packets::read(&file)?);
        }
    }
    all.extend(corpus::packets(&root.join("crates/wire/fuzz/corpus"))?);
    Ok(all)
}

fn captures(path: &Path) -> Outcome<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = path.read_dir().map_err(|e| Failure::io("read", path, &e))?;
    let is_capture = |path: &PathBuf| {
        path.extension()
            .is_some_and(|e| e == "pcap" || e == "pcapng")
    };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_capture)
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!("no captures in {}", path.display())));
    }
    Ok(files)
}

/// The chore.
///
/// # Errors
/// Something is amiss with the plugin, or could not be tried.
pub fn run(options: &Options) -> Outcome {
    let library = match crate::system::plugin_of_tests() {
        Some(library) => library,
        None => {
            crate::packages::ensure(&crate::install_plugin::needs()?)?;
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
        return valgrind::run(&bench, &base, count, options);
    }
    let began = Instant::now();
    let tally = bench.run(&base, options)?;
    report(&tally, base.len(), began.elapsed());
    if tally.findings.is_empty() {
        return Ok(());
    }
    let kept = keep(&tally.findings)?;
    Err(Failure::new(format!(
        "{} findings, kept in {}",
        tally.findings.len(),
        kept.display()
    ))
    .todo("run the plugin's tshark on them: each file is named for its mode"))
}

fn report(tally: &Tally, base: usize, took: Duration) {
    println!(
        "{} packets damaged, of {base}, in {}",
        tally.packets(),
        Took(took)
    );
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
    let folder = cargo::root()?.join("target/mutate");
    std::fs::create_dir_all(&folder).map_err(|e| Failure::io("create", &folder, &e))?;
    let mut names = BTreeSet::new();
    for finding in findings {
        let plain: String = finding
            .mode
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let mut name = plain.clone();
        while !names.insert(name.clone()) {
            name = format!("{plain}-{}", names.len());
        }
        packets::write(&folder.join(format!("{name}.pcapng")), &finding.packets)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_reduced_to_what_they_take() {
        let packets: Vec<_> = (0..500u32)
            .map(|n| Packet::whole(1, n.to_be_bytes().to_vec()))
            .collect();
        let guilty = [packets[77].clone(), packets[400].clone()];
        let both = |some: &[Packet]| Ok(guilty.iter().all(|packet| some.contains(packet)));
        assert_eq!(shrink(&packets, 500, both).unwrap(), guilty);
        let one = |some: &[Packet]| Ok(some.contains(&guilty[1]));
        assert_eq!(shrink(&packets, 500, one).unwrap(), guilty[1..]);
        assert_eq!(shrink(&packets, 0, one).unwrap().len(), 500);
    }

    #[test]
    fn the_base_has_packets_of_every_link_type() {
        let base = base(&[]).unwrap();
        let links: BTreeSet<u32> = base.iter().map(|packet| packet.link).collect();
        assert!(
            links.is_superset(&[0, 1, 101, 113, 276].into()),
            "{links:?}"
        );
    }
}
