//! The ways in which tshark is run on a capture, and what is amiss with a run. Not here: what is in the capture.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::process;
use crate::tshark::Tshark;

/// What the plugin adds to Wireshark, as the two tell of themselves: so nothing has to be listed here by hand.
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
    /// Asks tshark with the plugin and without.
    ///
    /// # Errors
    /// tshark fails, or the plugin adds no protocol.
    pub fn ask(with: &Tshark, without: &Tshark) -> Outcome<Self> {
        let said = |tshark: &Tshark, arguments: &[&str]| -> Outcome<String> {
            let output = process::output(tshark.command().args(arguments))?;
            // The list of statistics goes to standard error.
            let text = [output.stdout, output.stderr].concat();
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let added = |arguments: &[&str], of_line: &dyn Fn(&str) -> Option<String>| {
            let (all, known) = (said(with, arguments)?, said(without, arguments)?);
            let known: BTreeSet<String> = known.lines().filter_map(of_line).collect();
            let names = all.lines().filter_map(of_line);
            Outcome::Ok(names.filter(|name| !known.contains(name)).collect())
        };
        let named = |kind: &'static str| {
            move |line: &str| {
                let mut columns = line.strip_prefix(kind)?.split('\t').skip(2);
                columns.next().map(str::to_owned)
            }
        };
        let statistic = |line: &str| {
            let name = line.strip_prefix("     ")?.trim();
            (!name.is_empty()).then(|| name.to_owned())
        };
        let this = Self {
            protocols: added(&["-G", "fields"], &named("P"))?,
            fields: added(&["-G", "fields"], &named("F"))?,
            statistics: added(&["-z", "help"], &statistic)?,
        };
        if this.protocols.is_empty() || this.fields.is_empty() {
            return Err(Failure::new("the plugin adds no protocol to tshark's"));
        }
        Ok(this)
    }

    /// A filter for every packet in which the plugin has something to say.
    #[must_use]
    pub fn filter(&self) -> String {
        self.protocols.join(" || ")
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
    words.split(' ').map(str::to_owned).collect()
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
    let filter = added.filter();
    // Some fields of all: a filter of all of them would take longer than what is filtered.
    let some: Vec<String> = added.fields.iter().skip(4).step_by(9).cloned().collect();
    let fields = words("-T fields -e frame.number");
    let taps =
        "-q -z io,phs -z expert -z conv,udp -z endpoints,ipv6 -z io,stat,0 -z ipv6_hosts,tree";
    let own_taps = [&[format!("io,stat,0,{filter}")], &added.statistics[..]].concat();
    vec![
        same("one line", "-n"),
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

/// So that a fault which takes all memory ends tshark instead of the machine's other work.
const BOUNDED: [&str; 2] = ["prlimit", "--as=4294967296"];

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
    limit: Duration,
) -> Outcome<Amiss> {
    let mut command = tshark.command_under(&BOUNDED);
    command.arg("-r").arg(tshark.inside(capture));
    command.args(arguments);
    watched(&mut command, lines, limit)
}

/// Runs a command of tshark's and says what is amiss.
///
/// # Errors
/// It could not be started.
pub fn watched(command: &mut Command, lines: Option<usize>, limit: Duration) -> Outcome<Amiss> {
    let streams = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process::spawn(streams.stdin(Stdio::null()))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (counted, said, ended) = std::thread::scope(|scope| {
        let counted = scope.spawn(|| out.map(scan).unwrap_or_default());
        let said = scope.spawn(|| {
            let mut said = Vec::new();
            // What could not be read is not said; the exit status tells.
            let _ = err.map(|mut err| err.read_to_end(&mut said));
            said
        });
        let ended = wait(&mut child, limit);
        (
            counted.join().unwrap_or_default(),
            said.join().unwrap_or_default(),
            ended,
        )
    });
    let mut amiss = counted.complaints;
    match ended {
        None => drop(amiss.insert(format!("no end within {} s", limit.as_secs()))),
        Some(status) if status.signal().is_some() => drop(amiss.insert(status.to_string())),
        Some(status) => {
            if !status.success() {
                amiss.insert(status.to_string());
            }
            if lines.is_some_and(|lines| lines != counted.lines) {
                // Not with the count: smaller captures with the same fault have another.
                amiss.insert("not a line for each packet".to_owned());
            }
        }
    }
    let said = String::from_utf8_lossy(&said);
    amiss.extend(said.lines().filter_map(complaint));
    Ok(amiss)
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

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Its streams end with it.
    let _ = child.kill();
    None
}

#[derive(Default)]
struct Scanned {
    lines: usize,
    complaints: Amiss,
}

/// Counts lines and finds complaints, in whatever much is written.
fn scan(out: impl Read) -> Scanned {
    let mut scanned = Scanned::default();
    for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
        scanned.lines += 1;
        let line = String::from_utf8_lossy(&line);
        let known = COMPLAINTS.into_iter().filter(|known| line.contains(known));
        scanned.complaints.extend(known.map(str::to_owned));
    }
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, lines: Option<usize>) -> Vec<String> {
        let limit = Duration::from_secs(2);
        let amiss = watched(Command::new("sh").args(["-c", script]), lines, limit).unwrap();
        amiss.into_iter().collect()
    }

    #[test]
    fn what_is_amiss_is_said() {
        assert!(sh("echo a; echo b", Some(2)).is_empty());
        assert_eq!(sh("echo a", Some(2)), ["not a line for each packet"]);
        assert_eq!(sh("exit 3", None), ["exit status: 3"]);
        assert!(sh("kill -SEGV $$", Some(1))[0].starts_with("signal: 11"));
        assert_eq!(sh("exec sleep 30", None), ["no end within 2 s"]);
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
