//! Damaged packets through tshark with the plugin, and through tshark without it to tell its faults from the plugin's. What is
//! amiss only with the plugin is reduced to the packets that it takes. Not here: which packets, and what is said of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;

use super::change::Change;
use super::fields;
use super::modes::{self, Additions, Amiss, Mode};
use crate::failure::Outcome;
use crate::packets::{self, Packet};
use crate::process;
use crate::tshark::Tshark;

/// Packets of a batch at most.
const BATCH: usize = 6_000;
/// Runs of tshark that reducing one finding may take.
const TRIES: usize = 120;
/// Findings that are enough to mend.
const ENOUGH: usize = 20;

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
    pub through: BTreeMap<String, usize>,
    /// What is amiss without the plugin, too, and how often.
    pub stock: BTreeMap<String, usize>,
    /// What is amiss with the plugin alone.
    pub findings: Vec<Finding>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (all, more) in [
            (&mut self.changed, other.changed),
            (&mut self.through, other.through),
            (&mut self.stock, other.stock),
        ] {
            for (what, count) in more {
                *all.entry(what).or_default() += count;
            }
        }
        self.findings.extend(other.findings);
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

/// tshark with the plugin and without, and what to run them on.
#[derive(Debug)]
pub struct Bench {
    /// With the plugin.
    pub with: Tshark,
    /// Without.
    pub without: Tshark,
    /// The ways of running it.
    pub modes: Vec<Mode>,
    scratch: PathBuf,
    next: AtomicUsize,
}

impl Bench {
    /// Sets the two up.
    ///
    /// # Errors
    /// They do not start.
    pub fn new(with: Tshark, without: Tshark) -> Outcome<Self> {
        let added = Additions::find(&with, &without)?;
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

    /// Writes packets into a file of their own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, packets: &[Packet]) -> Outcome<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.scratch.join(format!("{number}.pcapng"));
        packets::write(&path, packets)?;
        Ok(path)
    }

    /// Damages packets; `round` is how often that was done to the same ones.
    ///
    /// # Errors
    /// A program fails.
    pub fn damaged(
        &self,
        base: &[Packet],
        change: Change,
        round: usize,
        random: &mut Rng,
    ) -> Outcome<Vec<Packet>> {
        let mut places = Vec::new();
        if change == Change::Fields {
            let file = self.file(base)?;
            places = fields::places(&self.with, &file)?;
            fs_err::remove_file(file)?;
        }
        Ok(change.apply(base, &places, round, random))
    }

    /// What is amiss with these packets with the plugin, and without where something is.
    fn compare(&self, mode: &Mode, packets: &[Packet]) -> Outcome<(Amiss, Amiss)> {
        let file = self.file(packets)?;
        let lines = mode.line_a_packet.then_some(packets.len());
        let amiss = modes::run(&self.with, &mode.with, lines, &file)?;
        let mut stock = Amiss::new();
        if !amiss.is_empty() {
            stock = modes::run(&self.without, &mode.without, lines, &file)?;
            // The plugin gives the port of RoCEv2 to InfiniBand whatever the other port; this makes stock do so.
            let as_roce = [&mode.without[..], &modes::AS_ROCE.map(str::to_owned)].concat();
            stock.extend(modes::run(&self.without, &as_roce, lines, &file)?);
        }
        fs_err::remove_file(file)?;
        Ok((amiss, stock))
    }

    /// Runs packets through a mode; what a crash of stock Wireshark hides is looked at again without its cause.
    fn through(&self, mode: &Mode, change: Change, mut packets: Vec<Packet>) -> Outcome<Tally> {
        let mut tally = Tally::default();
        for _ in 0..8 {
            let (amiss, stock) = self.compare(mode, &packets)?;
            let own: Amiss = amiss.difference(&stock).cloned().collect();
            if !own.is_empty() {
                let fails = |some: &[Packet]| {
                    let (amiss, stock) = self.compare(mode, some)?;
                    Ok(amiss.difference(&stock).any(|what| own.contains(what)))
                };
                tally.findings.push(Finding {
                    packets: shrink(&packets, TRIES, fails)?,
                    mode: mode.name,
                    change: change.name(),
                    amiss: own,
                });
                break;
            }
            for what in &stock {
                *tally.stock.entry(what.clone()).or_default() += 1;
            }
            let ended = |what: &&String| what.starts_with("signal") || what.starts_with("no end");
            let fatal: Amiss = stock.iter().filter(ended).cloned().collect();
            if fatal.is_empty() {
                break;
            }
            // Stock Wireshark went down before the end: without the packets that it takes, the rest is seen.
            let guilty = shrink(&packets, TRIES, |some| {
                let file = self.file(some)?;
                let amiss = modes::run(&self.without, &mode.without, None, &file)?;
                Ok(!amiss.is_disjoint(&fatal))
            })?;
            packets.retain(|packet| !guilty.contains(packet));
        }
        tally.through.insert(mode.name.to_owned(), packets.len());
        Ok(tally)
    }

    fn batch(&self, base: &[Packet], change: Change, round: usize, seed: u64) -> Outcome<Tally> {
        let mut random = Rng::with_seed(seed ^ (round as u64) << 20);
        let packets = self.damaged(base, change, round, &mut random)?;
        let mut tally = Tally::default();
        tally.changed.insert(change.name(), packets.len());
        for mode in &self.modes {
            tally.add(self.through(mode, change, packets.clone())?);
        }
        let (count, change, word) = (packets.len(), change.name(), tally.word());
        println!("  {count} packets, {change}: {word}");
        Ok(tally)
    }

    /// Damages `base` until `wanted` packets are damaged, and runs them through every mode, `jobs` runs at a time.
    ///
    /// # Errors
    /// A program could not be started, or a file not be written.
    pub fn run(&self, base: &[Packet], wanted: usize, seed: u64, jobs: usize) -> Outcome<Tally> {
        let rounds = wanted.div_ceil(base.len().max(1));
        let work = (0..rounds).flat_map(|round| base.chunks(BATCH).map(move |some| (round, some)));
        let total = Mutex::new(Ok(Tally::default()));
        process::in_parallel(jobs, work, |(round, some)| {
            let change = Change::ALL[round % Change::ALL.len()];
            let done = self.batch(some, change, round, seed);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            match (&mut *total, done) {
                (Ok(total), Ok(tally)) => total.add(tally),
                (Ok(_), Err(failure)) => *total = Err(failure),
                (Err(_), _) => {}
            }
            total.as_ref().is_ok_and(|t| t.findings.len() <= ENOUGH)
        });
        total.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fewer of `packets` for which `fails` still holds, by leaving out ever smaller parts.
fn shrink(
    packets: &[Packet],
    mut tries: usize,
    mut fails: impl FnMut(&[Packet]) -> Outcome<bool>,
) -> Outcome<Vec<Packet>> {
    let mut left = packets.to_vec();
    let mut part = left.len() / 2;
    while part > 0 && left.len() > 1 {
        let (mut at, before) = (0, left.len());
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
}
