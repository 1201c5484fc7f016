//! `cargo xtask mutate`: captures that Wireshark's editcap damages at random, run through tshark
//! with the plugin in every mode. Any fault that does not also occur without the plugin is
//! reported.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Seek};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{bail, ensure};

use crate::cargo;
use crate::failure::Outcome;
use crate::tshark::Tshark;
use crate::{packages, packets, process};

/// Options of `cargo xtask mutate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Damage all captures N times
    #[arg(long, value_name = "N", default_value_t = 30)]
    rounds: u64,
    /// First seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only modes with this in their names
    #[arg(long, value_name = "TEXT", default_value = "")]
    mode: String,
    /// Further captures, and folders of captures, besides the samples and those in FCN_CAPTURES
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The plugin has a fault, or could not be tested.
pub fn run(options: &Options) -> Outcome {
    packages::ensure(packages::PLUGIN)?;
    let mut mutation = Mutation::new(Tshark::with_this_plugin(true)?, &options.with)?;
    mutation
        .modes
        .retain(|mode| mode.name.contains(&options.mode));
    ensure!(!mutation.modes.is_empty(), "no mode's name contains that");
    let findings = mutation.run(options.seed..options.seed + options.rounds)?;
    if !findings.is_empty() {
        bail!("{} findings:\n{}", findings.len(), findings.join("\n"));
    }
    Ok(())
}

/// tshark with the plugin and without it, and all captures in one.
#[derive(Debug)]
pub struct Mutation {
    with: Tshark,
    without: Tshark,
    /// Modes of running it.
    pub modes: Vec<Mode>,
    /// Number of packets of all captures.
    pub packets: usize,
    base: PathBuf,
}

impl Mutation {
    /// Collects the samples, the captures in `FCN_CAPTURES`, and those in `more`.
    ///
    /// # Errors
    /// A capture cannot be read, or tshark does not start.
    pub fn new(with: Tshark, more: &[PathBuf]) -> Outcome<Self> {
        let without = Tshark::stock()?;
        let mut sources = vec![cargo::root()?.join("captures")];
        sources.extend(std::env::var_os("FCN_CAPTURES").map(PathBuf::from));
        sources.extend(more.iter().cloned());
        let base = with.scratch()?.join("all.pcapng");
        let mut number = 0;
        let mut merge = with.program("mergecap");
        merge.args(["-a", "-w", "-"]);
        for source in sources {
            let files = match source.is_file() {
                true => vec![source.clone()],
                false => packets::files(&source, &["pcap", "pcapng"])?,
            };
            ensure!(!files.is_empty(), "no captures in {}", source.display());
            for file in files {
                number += 1;
                let part = with.scratch()?.join(format!("first-{number}.pcapng"));
                let mut cut = with.program("editcap");
                cut.arg("-r").arg(with.readable(&file)?).arg("-");
                cut.arg(format!("1-{MOST}"));
                process::run(cut.stdout(fs_err::File::create(&part)?.into_file()))?;
                merge.arg(with.inside(&part));
            }
        }
        process::run(merge.stdout(fs_err::File::create(&base)?.into_file()))?;
        Ok(Self {
            modes: modes(&with, &without)?,
            packets: packets::read(&base)?.packets.len(),
            with,
            without,
            base,
        })
    }

    /// Damages the captures once for each seed; returns the faults that occur only with the plugin,
    /// each with the file that shows it.
    ///
    /// # Errors
    /// A program could not be started, or a file could not be written.
    pub fn run(&self, seeds: Range<u64>) -> Outcome<Vec<String>> {
        let done = Mutex::new(Vec::new());
        process::in_parallel(2, seeds, |seed| {
            let findings = self.round(seed);
            let goes_on = findings.is_ok();
            done.lock().is_ok_and(|mut done| {
                done.push(findings);
                goes_on
            })
        });
        let done: Outcome<Vec<_>> = done.into_inner()?.into_iter().collect();
        Ok(done?.concat())
    }

    fn round(&self, seed: u64) -> Outcome<Vec<String>> {
        // A few octets, many of them, or the end.
        let damage = match seed % 3 {
            0 => ["-E".to_owned(), "0.1".to_owned()],
            1 => ["-E".to_owned(), "0.01".to_owned()],
            _ => ["-s".to_owned(), (20 + seed * 37 % 150).to_string()],
        };
        let mut edit = self.with.program("editcap");
        edit.args(&damage).args(["--seed", &seed.to_string()]);
        edit.arg(self.with.inside(&self.base)).arg("-");
        let file = self.with.scratch()?.join(format!("{seed}.pcapng"));
        process::run(edit.stdout(fs_err::File::create(&file)?.into_file()))?;
        let (mut findings, mut in_stock) = (Vec::new(), 0);
        for mode in &self.modes {
            let mut found = faults(&self.with, &mode.with, &file)?;
            if found.is_empty() {
                continue;
            }
            // The plugin gives RoCEv2's port to InfiniBand for any other port; this makes stock
            // tshark do so.
            let as_roce = ["-d".to_owned(), "udp.port==4791,infiniband".to_owned()];
            for more in [&[][..], &as_roce] {
                let stock = [&mode.without[..], more].concat();
                for what in faults(&self.without, &stock, &file)? {
                    in_stock += usize::from(found.remove(&what));
                }
            }
            if !found.is_empty() {
                let kept = cargo::target_folder("mutate")?.join(format!("{seed}.pcapng"));
                fs_err::copy(&file, &kept)?;
                findings.push(format!("{} {}: {found:?}", kept.display(), mode.name));
            }
        }
        fs_err::remove_file(file)?;
        println!(
            "  seed {seed}, editcap {}: {} errors, {in_stock} also without the plugin",
            damage.join(" "),
            findings.len()
        );
        Ok(findings)
    }
}

/// A mode of running tshark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Name of the mode.
    pub name: &'static str,
    /// Arguments with the plugin.
    with: Vec<String>,
    /// Arguments without the plugin, which name nothing of it.
    without: Vec<String>,
}

/// Returns all modes, with all protocols, fields and statistics that the plugin adds.
fn modes(with: &Tshark, without: &Tshark) -> Outcome<Vec<Mode>> {
    let listed = with.adds(without, &["-G", "fields"])?;
    let named = |kind: &str| -> Vec<String> {
        let rows = listed.iter().filter_map(|line| line.strip_prefix(kind));
        let names = rows.filter_map(|row| row.split('\t').nth(2));
        names.map(str::to_owned).collect()
    };
    let (protocols, fields) = (named("P"), named("F"));
    ensure!(
        !protocols.is_empty() && !fields.is_empty(),
        "the plugin adds nothing"
    );
    let statistics = with.adds(without, &["-z", "help"])?;
    let statistics = statistics.iter().filter_map(|l| l.strip_prefix("     "));
    let filter = protocols.join("||");
    // Only some fields: a filter of all of them would take longer than the dissection.
    let some: Vec<&str> = fields
        .iter()
        .skip(4)
        .step_by(9)
        .map(String::as_str)
        .collect();
    let taps =
        "-q -z io,phs -z expert -z conv,udp -z endpoints,ipv6 -z io,stat,0 -z ipv6_hosts,tree";
    let own_taps: String = statistics
        .map(|name| format!(" -z {}", name.trim()))
        .collect();
    let printed: String = fields.iter().map(|field| format!(" -e {field}")).collect();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let mode = |name, with: &str, without| Mode {
        name,
        with: words(with),
        without: words(without),
    };
    let same = |name, arguments| mode(name, arguments, arguments);
    Ok(vec![
        same("one line", ""),
        same("-V", "-V"),
        mode(
            "-2 -R -Y",
            &format!("-2 -V -R frame -Y {filter}"),
            "-2 -V -R frame -Y ipv6||ip",
        ),
        mode(
            "-Y",
            &format!("-Y {}", some.join("||")),
            "-Y ipv6.opt||infiniband",
        ),
        same("-T json", "-T json -x"),
        same("-T pdml", "-T pdml"),
        mode(
            "-T fields",
            &format!("-T fields -e frame.number{printed}"),
            "-T fields -e frame.number -e _ws.col.Info -e _ws.expert.message -e ipv6.opt.type",
        ),
        mode(
            "-z",
            &format!("{taps} -z io,stat,0,{filter}{own_taps}"),
            taps,
        ),
        mode(
            "code points changed",
            "-V -o rocev2.check_icrc:FALSE -o fastcnp.option1_type:0x1 -o fastcnp.option2_type:0x31 \
             -o proxycn.option_type:0x9f -d udp.port==4791,wanfcn -d udp.port==1022,proxycn",
            "-V",
        ),
    ])
}

/// Number of packets taken from each capture: later ones are of the same kinds.
const MOST: u32 = 1_000;
/// Limits: a fault that takes all memory should end tshark rather than the machine's other work; so
/// should one that takes forever, after ten times the longest run without a fault.
const BOUNDED: [&str; 5] = [
    "timeout",
    "--signal=KILL",
    "180",
    "prlimit",
    "--as=4294967296",
];
/// Signal that ends a run that takes too long.
const KILLED: i32 = 9;
/// Messages of tshark that a dissector must never cause.
const COMPLAINTS: [&str; 3] = ["issector bug", "DISSECTOR_ASSERT", "panicked at"];

/// Runs tshark on a capture, and returns its faults; two runs with equal texts have the same fault.
fn faults(tshark: &Tshark, arguments: &[String], capture: &Path) -> Outcome<BTreeSet<String>> {
    let mut command = tshark.command_under(&BOUNDED);
    command.arg("-r").arg(tshark.inside(capture));
    watched(command.args(arguments))
}

fn watched(command: &mut Command) -> Outcome<BTreeSet<String>> {
    // Not a pipe, which would not be drained while standard output is read.
    let mut complaints = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stderr(complaints.try_clone()?);
    let mut child = process::spawn(command.stdout(Stdio::piped()))?;
    let mut found = BTreeSet::new();
    for line in child.0.stdout.take().into_iter().flat_map(lines_of) {
        let known = COMPLAINTS.into_iter().filter(|known| line.contains(known));
        found.extend(known.map(str::to_owned));
    }
    let status = child.0.wait()?;
    if status.signal() == Some(KILLED) {
        found.insert("timed out".to_owned());
    } else if !status.success() {
        found.insert(status.to_string());
    }
    complaints.rewind()?;
    found.extend(lines_of(complaints).filter_map(|line| complaint(&line)));
    Ok(found)
}

fn lines_of(stream: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Returns a line of standard error without the parts that differ between two runs: times of day,
/// process and packet numbers. `None` if it is harmless.
fn complaint(line: &str) -> Option<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("Running as user") {
        return None;
    }
    let words = line.split(|c: char| c.is_ascii_digit());
    Some(
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("#"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_reported() {
        for (script, want) in [
            ("echo a", None),
            ("exit 3", Some("exit status: 3")),
            ("kill -SEGV $$", Some("signal: 11 (SIGSEGV)")),
            ("exec sleep 30", Some("timed out")),
            (
                "printf '[Diss'; sleep 0.1; echo 'ector bug]'",
                Some("issector bug"),
            ),
            (
                "echo ' ** (tshark:12) 08:30:01 WARNING' >&2; echo Running as user >&2",
                Some("** (tshark:#) #:#:# WARNING"),
            ),
        ] {
            let mut command = Command::new("timeout");
            command.args(["--signal=KILL", "2", "sh", "-c", script]);
            let amiss: Vec<String> = watched(&mut command).unwrap().into_iter().collect();
            assert_eq!(amiss, Vec::from_iter(want), "{script}");
        }
    }
}
