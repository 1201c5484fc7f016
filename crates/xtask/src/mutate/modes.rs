//! The ways in which tshark is run on a capture, and what is amiss with a run. Not here: what is in the capture.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::failure::Outcome;
use crate::process;
use crate::tshark::Tshark;

/// What the plugin adds to Wireshark, as tshark with and without it lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Additions {
    /// Filter names of protocols.
    pub protocols: Vec<String>,
    /// Filter names of fields.
    pub fields: Vec<String>,
    /// Names of statistics.
    pub statistics: Vec<String>,
}

impl Additions {
    /// Compares tshark with the plugin and without.
    ///
    /// # Errors
    /// tshark fails, or the plugin adds no protocol.
    pub fn find(with: &Tshark, without: &Tshark) -> Outcome<Self> {
        let fields = with.adds(without, &["-G", "fields"])?;
        let named = |kind: &str| -> Vec<String> {
            let rows = fields.iter().filter_map(|line| line.strip_prefix(kind));
            let names = rows.filter_map(|row| row.split('\t').nth(2));
            names.map(str::to_owned).collect()
        };
        let statistics = with.adds(without, &["-z", "help"])?;
        let statistics = statistics.iter().filter_map(|l| l.strip_prefix("     "));
        let this = Self {
            protocols: named("P"),
            fields: named("F"),
            statistics: statistics.map(|name| name.trim().to_owned()).collect(),
        };
        let some = !this.protocols.is_empty() && !this.fields.is_empty();
        ensure!(some, "the plugin adds no protocol to tshark's");
        Ok(this)
    }
}

/// A way of running tshark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What it is called.
    pub name: &'static str,
    /// The arguments with the plugin.
    pub with: Vec<String>,
    /// The arguments without, which name nothing of the plugin's.
    pub without: Vec<String>,
    /// Whether it writes a line for each packet.
    pub line_a_packet: bool,
}

fn words(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// The arguments that make stock Wireshark take a packet for RoCEv2 by one of its ports, whatever the other.
pub const AS_ROCE: [&str; 2] = ["-d", "udp.port==4791,infiniband"];

/// Every way of running tshark.
#[must_use]
pub fn all(added: &Additions) -> Vec<Mode> {
    let mode = |name, with: Vec<String>, without: &str| Mode {
        name,
        with,
        without: words(without),
        line_a_packet: ["one line", "-T fields"].contains(&name),
    };
    let same = |name, arguments: &str| mode(name, words(arguments), arguments);
    let followed = |arguments: &str, last: String| [words(arguments), vec![last]].concat();
    let before_each = |option: &str, names: &[String]| -> Vec<String> {
        let pairs = names.iter().map(|name| [option.to_owned(), name.clone()]);
        pairs.flatten().collect()
    };
    let filter = added.protocols.join(" || ");
    // Some fields of all: a filter of all of them would take longer than what is filtered.
    let some: Vec<String> = added.fields.iter().skip(4).step_by(9).cloned().collect();
    let fields = words("-T fields -e frame.number");
    let taps =
        "-q -z io,phs -z expert -z conv,udp -z endpoints,ipv6 -z io,stat,0 -z ipv6_hosts,tree";
    let own_taps = [&[format!("io,stat,0,{filter}")], &added.statistics[..]].concat();
    vec![
        same("one line", ""),
        same("-V", "-V"),
        mode(
            "-2 -R -Y",
            followed("-2 -V -R frame -Y", filter),
            "-2 -V -R frame -Y ipv6||ip",
        ),
        mode(
            "-Y",
            followed("-Y", some.join(" || ")),
            "-Y ipv6.opt||infiniband",
        ),
        same("-T json", "-T json -x"),
        same("-T pdml", "-T pdml"),
        mode(
            "-T fields",
            [fields, before_each("-e", &added.fields)].concat(),
            "-T fields -e frame.number -e _ws.col.Info -e _ws.expert.message -e ipv6.opt.type",
        ),
        mode(
            "-z",
            [words(taps), before_each("-z", &own_taps)].concat(),
            taps,
        ),
        mode(
            "code points changed",
            words(
                "-V -o rocev2.check_icrc:FALSE -o fastcnp.option1_type:0x1 -o fastcnp.option2_type:0x31 \
                 -o proxycn.option_type:0x9f -d udp.port==4791,wanfcn -d udp.port==1022,proxycn",
            ),
            "-V",
        ),
    ]
}

/// Something amiss with a run of tshark; two runs with the same text have the same thing amiss.
pub type Amiss = BTreeSet<String>;

/// A fault that takes all memory is to end tshark instead of the machine's other work; one that takes all time, too, after
/// ten times what the longest batch without a fault takes.
const BOUNDED: &str = "timeout --signal=KILL 180 prlimit --as=4294967296";

/// What tshark writes that a dissector never should cause.
const COMPLAINTS: [&str; 3] = ["issector bug", "DISSECTOR_ASSERT", "panicked at"];

/// Runs a mode on a capture of so many packets, and says what is amiss.
///
/// # Errors
/// tshark could not be started.
pub fn run(
    tshark: &Tshark,
    arguments: &[String],
    lines: Option<usize>,
    capture: &Path,
) -> Outcome<Amiss> {
    let mut command = tshark.command_under(&BOUNDED.split(' ').collect::<Vec<_>>());
    command.arg("-r").arg(tshark.inside(capture));
    watched(command.args(arguments), lines)
}

/// Runs a command of tshark's, which is ended where it takes too long, and says what is amiss.
fn watched(command: &mut Command, lines: Option<usize>) -> Outcome<Amiss> {
    // Not a pipe, which nobody would empty while standard output is read.
    let mut complaints = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stderr(complaints.try_clone()?);
    let mut child = process::spawn(command.stdout(Stdio::piped()))?;
    let (mut amiss, mut counted) = (Amiss::new(), 0);
    for line in child.0.stdout.take().into_iter().flat_map(lines_of) {
        counted += 1;
        let line = String::from_utf8_lossy(&line);
        let known = COMPLAINTS.into_iter().filter(|known| line.contains(known));
        amiss.extend(known.map(str::to_owned));
    }
    let status = child.0.wait()?;
    match status.signal() {
        Some(KILLED) => drop(amiss.insert("no end in time".to_owned())),
        _ if !status.success() => drop(amiss.insert(status.to_string())),
        // Not with the count: smaller captures with the same fault have another.
        _ if lines.is_some_and(|lines| lines != counted) => {
            amiss.insert("not a line for each packet".to_owned());
        }
        _ => {}
    }
    complaints.rewind()?;
    amiss.extend(lines_of(complaints).filter_map(|l| complaint(&String::from_utf8_lossy(&l))));
    Ok(amiss)
}

/// The signal of what is ended for taking too long.
const KILLED: i32 = 9;

fn lines_of(stream: impl Read) -> impl Iterator<Item = Vec<u8>> {
    BufReader::new(stream).split(b'\n').map_while(Result::ok)
}

/// A line on standard error, without what differs between two runs; `None` where it is harmless.
fn complaint(line: &str) -> Option<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("Running as user") {
        return None;
    }
    // Times of day, process and packet numbers.
    let mut text = String::new();
    for c in line.chars() {
        match (c.is_ascii_digit(), text.ends_with('#')) {
            (true, true) => {}
            (true, false) => text.push('#'),
            (false, _) => text.push(c),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, lines: Option<usize>) -> Vec<String> {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "2", "sh", "-c", script]);
        watched(&mut command, lines).unwrap().into_iter().collect()
    }

    #[test]
    fn what_is_amiss_is_said() {
        assert!(sh("echo a; echo b", Some(2)).is_empty());
        assert_eq!(sh("echo a", Some(2)), ["not a line for each packet"]);
        assert_eq!(sh("exit 3", None), ["exit status: 3"]);
        assert!(sh("kill -SEGV $$", Some(1))[0].starts_with("signal: 11"));
        assert_eq!(sh("exec sleep 30", None), ["no end in time"]);
        assert_eq!(
            sh("printf '[Diss'; sleep 0.1; echo 'ector bug]'", None),
            ["issector bug"]
        );
        assert_eq!(
            sh(
                "echo ' ** (tshark:12) 08:30:01 WARNING' >&2; echo Running as user >&2",
                None
            ),
            ["** (tshark:#) #:#:# WARNING"]
        );
    }

    #[test]
    fn every_mode_has_its_stock_counterpart() {
        let added = Additions {
            protocols: words("ours"),
            fields: (0..40).map(|n| format!("ours.f{n}")).collect(),
            statistics: words("ours,tree"),
        };
        let modes = all(&added);
        for mode in &modes {
            let names_ours = |words: &[String]| words.join(" ").contains("ours");
            assert!(!names_ours(&mode.without), "{mode:?}");
        }
        let with: Vec<_> = modes.iter().flat_map(|mode| &mode.with).collect();
        assert!(added.fields.iter().all(|field| with.contains(&field)));
        assert!(with.contains(&&added.statistics[0]));
    }
}
