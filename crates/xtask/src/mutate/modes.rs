//! The ways in which tshark is run on a capture, and what is amiss with a run. Not here: what is in the capture.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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
        let added = |arguments: &[&str], of_line: fn(&str) -> Option<String>| {
            let names = |tshark: &Tshark| -> Outcome<Vec<String>> {
                let output = process::output(tshark.command().args(arguments))?;
                // The list of statistics goes to standard error.
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text);
                Ok(text.lines().filter_map(of_line).collect())
            };
            let known: BTreeSet<String> = names(without)?.into_iter().collect();
            let mut all = names(with)?;
            all.retain(|name| !known.contains(name));
            Ok(all)
        };
        let this = Self {
            protocols: added(&["-G", "fields"], |line| {
                let mut columns = line.strip_prefix("P\t")?.split('\t').skip(1);
                columns.next().map(str::to_owned)
            })?,
            fields: added(&["-G", "fields"], |line| {
                let mut columns = line.strip_prefix("F\t")?.split('\t').skip(1);
                columns.next().map(str::to_owned)
            })?,
            statistics: added(&["-z", "help"], |line| {
                let name = line.strip_prefix("     ")?.trim();
                (!name.is_empty()).then(|| name.to_owned())
            })?,
        };
        if this.protocols.is_empty() || this.fields.is_empty() {
            return Err(Failure::new(
                "tshark with the plugin knows no protocol that it does not know without",
            ));
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

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The arguments that make stock Wireshark take a packet for RoCEv2 by one of its ports, whatever the other.
#[must_use]
pub fn as_roce() -> Vec<String> {
    words(&["-d", "udp.port==4791,infiniband"])
}

/// Every way of running tshark.
#[must_use]
pub fn all(added: &Additions) -> Vec<Mode> {
    let same = |name, arguments: &[&str]| Mode {
        name,
        with: words(arguments),
        without: words(arguments),
        line_a_packet: false,
    };
    let filter = added.filter();
    // Two fields of each hundred: a filter of all of them would take longer than what is filtered.
    let some = |from: usize| {
        let chosen: Vec<_> = added.fields.iter().skip(from).step_by(9).cloned().collect();
        chosen.join(" || ")
    };
    let mut fields = words(&["-T", "fields", "-e", "frame.number"]);
    let mut stock_fields = fields.clone();
    for field in ["_ws.col.Info", "_ws.expert.message", "ipv6.opt.type"] {
        stock_fields.extend(words(&["-e", field]));
    }
    for field in &added.fields {
        fields.extend(words(&["-e", field]));
    }
    let mut taps = words(&["-q"]);
    for tap in [
        "io,phs",
        "expert",
        "conv,udp",
        "endpoints,ipv6",
        "io,stat,0",
        "ipv6_hosts,tree",
    ] {
        taps.extend(words(&["-z", tap]));
    }
    let stock_taps = taps.clone();
    taps.extend(words(&["-z", &format!("io,stat,0,{filter}")]));
    for tap in &added.statistics {
        taps.extend(words(&["-z", tap]));
    }
    vec![
        Mode {
            line_a_packet: true,
            ..same("one line", &[])
        },
        same("-V", &["-V"]),
        Mode {
            with: words(&["-2", "-V", "-R", "frame", "-Y", &filter]),
            ..same("-2 -R -Y", &["-2", "-V", "-R", "frame", "-Y", "ipv6 || ip"])
        },
        Mode {
            with: words(&["-Y", &some(4)]),
            ..same("-Y", &["-Y", "ipv6.opt || infiniband"])
        },
        same("-T json", &["-T", "json", "-x"]),
        same("-T pdml", &["-T", "pdml"]),
        Mode {
            name: "-T fields",
            with: fields,
            without: stock_fields,
            line_a_packet: true,
        },
        Mode {
            name: "-z",
            with: taps,
            without: stock_taps,
            line_a_packet: false,
        },
        Mode {
            with: words(&[
                "-V",
                "-o",
                "rocev2.check_icrc:FALSE",
                "-o",
                "fastcnp.option1_type:0x1",
                "-o",
                "fastcnp.option2_type:0x31",
                "-o",
                "proxycn.option_type:0x9f",
                "-d",
                "udp.port==4791,wanfcn",
                "-d",
                "udp.port==1022,proxycn",
            ]),
            ..same("code points changed", &["-V"])
        },
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
    let line = process::command_line(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
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
            if let Some(lines) = lines.filter(|lines| *lines != counted.lines) {
                // Not with the count: smaller captures with the same fault have another.
                amiss.insert("not a line for each packet".to_owned());
                let _ = lines;
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

fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

#[derive(Default)]
struct Scanned {
    lines: usize,
    complaints: Amiss,
}

/// Counts lines and finds complaints, in whatever much is written.
fn scan(mut out: impl Read) -> Scanned {
    let mut scanned = Scanned::default();
    let mut buffer = vec![0; 1 << 16];
    // The end of what came before: a complaint may be cut in two.
    let mut kept: Vec<u8> = Vec::new();
    loop {
        let len = match out.read(&mut buffer) {
            Ok(0) | Err(_) => return scanned,
            Ok(len) => len,
        };
        scanned.lines += buffer[..len]
            .iter()
            .filter(|octet| **octet == b'\n')
            .count();
        kept.extend(&buffer[..len]);
        for known in COMPLAINTS {
            let found = kept
                .windows(known.len())
                .any(|window| window == known.as_bytes());
            if found {
                scanned.complaints.insert(known.to_owned());
            }
        }
        let rest = kept.len().saturating_sub(20);
        kept.drain(..rest);
    }
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
            protocols: words(&["ours"]),
            fields: (0..40).map(|n| format!("ours.f{n}")).collect(),
            statistics: words(&["ours,tree"]),
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
