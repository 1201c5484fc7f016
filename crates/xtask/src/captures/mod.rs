//! `cargo xtask captures`: the sample captures, byte for byte the same each time, and their decodings.
//!
//! One module a family of messages, each returning its captures; `scene.rs` has the cast of hosts and builds packets;
//! `file.rs` writes pcapng. Formats and rules are the wire crate's.

mod broken;
mod cnp;
mod fast_cnp;
mod file;
mod other;
mod proxy_cn;
mod routing;
mod scene;
mod wan_fcn;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::tshark::Tshark;
use crate::{cargo, install_plugin, packages};

pub use scene::{Capture, Packet};

/// The folder of the captures, below the project's root.
pub const FOLDER: &str = "captures";
/// The index page.
const INDEX: &str = "README.md";

/// Writes captures and decodings, or with `check` compares them; returns what was done, in words.
///
/// # Errors
/// What cannot be built, decoded or written, or is not as it should be.
pub fn run(check_only: bool) -> Outcome<String> {
    packages::ensure(&install_plugin::needs()?)?;
    let tshark = Tshark::with_plugin(&cargo::build_plugin(false)?)?;
    let folder = folder()?;
    if check_only {
        let count = check(&folder, Some(&tshark))?;
        return Ok(format!(
            "{count} captures and their decodings are as committed"
        ));
    }
    let count = write(&folder, Some(&tshark))?;
    Ok(format!(
        "{count} captures and their decodings written to {}",
        folder.display()
    ))
}

/// All sample captures.
///
/// # Errors
/// A packet that the wire crate refuses to build.
pub fn all() -> Outcome<Vec<Capture>> {
    let mut captures = Vec::new();
    for family in [
        cnp::captures,
        fast_cnp::captures,
        proxy_cn::captures,
        wan_fcn::captures,
        routing::captures,
        other::captures,
        broken::captures,
    ] {
        captures.extend(
            family().map_err(|e| Failure::new(format!("a sample capture cannot be built: {e}")))?,
        );
    }
    Ok(captures)
}

/// The captures' folder.
///
/// # Errors
/// The project's root cannot be found.
pub fn folder() -> Outcome<PathBuf> {
    Ok(cargo::root()?.join(FOLDER))
}

/// Writes captures and index into `folder`; with `tshark`, the decodings beside them.
///
/// # Errors
/// What cannot be built, written or decoded.
pub fn write(folder: &Path, tshark: Option<&Tshark>) -> Outcome<usize> {
    std::fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
    let captures = all()?;
    for capture in &captures {
        let path = folder.join(capture.file_name());
        put(&path, &file::pcapng(capture)?)?;
        if let Some(tshark) = tshark {
            put(&decoding(&path), decode(tshark, &path)?.as_bytes())?;
        }
    }
    put(&folder.join(INDEX), index(&captures).as_bytes())?;
    Ok(captures.len())
}

/// Compares what stands in `folder` with what [`write()`] would write; with `tshark`, the decodings too.
///
/// # Errors
/// What differs or is missing, file by file, or what cannot be built or decoded.
pub fn check(folder: &Path, tshark: Option<&Tshark>) -> Outcome<usize> {
    let captures = all()?;
    let mut wrong = Vec::new();
    let mut expected = vec![PathBuf::from(INDEX)];
    compare(&folder.join(INDEX), index(&captures).as_bytes(), &mut wrong);
    for capture in &captures {
        let path = folder.join(capture.file_name());
        compare(&path, &file::pcapng(capture)?, &mut wrong);
        if let Some(tshark) = tshark {
            compare(
                &decoding(&path),
                decode(tshark, &path)?.as_bytes(),
                &mut wrong,
            );
        }
        expected.push(capture.file_name().into());
        expected.push(decoding(Path::new(&capture.file_name())));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| unwritable(folder, &e))?;
    for entry in entries.flatten() {
        if !expected.contains(&PathBuf::from(entry.file_name())) {
            wrong.push(format!(
                "{}: belongs to no sample capture",
                entry.path().display()
            ));
        }
    }
    if wrong.is_empty() {
        return Ok(captures.len());
    }
    Err(Failure::new(format!(
        "the sample captures are not as committed:\n  {}\nWhere the change is meant, `cargo xtask captures` writes them anew.",
        wrong.join("\n  ")
    )))
}

/// What the decodings show in full: our protocols, and those that they stand in.
const DETAILS: &str = "pkt_comment,ipv6,infiniband,rocev2,cnp,fastcnp,proxycn,wanfcn";

/// A line a packet, then the details.
fn decode(tshark: &Tshark, capture: &Path) -> Outcome<String> {
    let lines = tshark.decode(capture, &[])?;
    Ok(format!(
        "{lines}\n{}",
        tshark.decode(capture, &["-O", DETAILS])?
    ))
}

/// Beside each capture, what tshark makes of it.
fn decoding(capture: &Path) -> PathBuf {
    capture.with_extension("txt")
}

fn compare(path: &Path, want: &[u8], wrong: &mut Vec<String>) {
    let is = match std::fs::read(path) {
        Ok(is) => is,
        Err(e) => return wrong.push(format!("{}: {e}", path.display())),
    };
    if is == want {
        return;
    }
    let (is, want) = (String::from_utf8_lossy(&is), String::from_utf8_lossy(want));
    let differs = is.lines().zip(want.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(is.lines().count().min(want.lines().count()));
    let show = |text: &str| {
        text.lines()
            .nth(line)
            .unwrap_or("(end)")
            .chars()
            .take(160)
            .collect::<String>()
    };
    wrong.push(if path.extension().is_some_and(|kind| kind == "pcapng") {
        format!("{}: other octets", path.display())
    } else {
        format!(
            "{}:{}:\n    committed: {}\n    now:       {}",
            path.display(),
            line + 1,
            show(&is),
            show(&want)
        )
    });
}

fn index(captures: &[Capture]) -> String {
    let mut page = String::from(
        "# Sample captures\n\n\
         Every message of fast congestion notification, well-formed and broken, plain and in tunnels. Written by \
         `cargo xtask captures`, byte for byte the same each time. Packet comments say what to look at; beside each \
         capture stands its decoding by tshark with the plugin (`tshark -V`, our protocols and those around them).\n\n\
         | capture | packets | what it shows |\n|---|---|---|\n",
    );
    for capture in captures {
        let _ = writeln!(
            page,
            "| [{0}]({0}) ([decoded]({1})) | {2} | {3} |",
            capture.file_name(),
            decoding(Path::new(&capture.file_name())).display(),
            capture.packets.len(),
            capture.about
        );
    }
    page.push_str(
        "\nThe hosts: sender 2001:db8:1::1 or 192.0.2.1, its QP 0x11; receiver 2001:db8:2::1 or 198.51.100.1, its QP \
         0x12; congested switch 2001:db8:ffff::3 or 203.0.113.3 (loopback addresses); proxy node 2001:db8:1::f or \
         192.0.2.15; ingress PE 2001:db8:ee::1, egress PE 2001:db8:ee::2.\n",
    );
    page
}

fn put(path: &Path, bytes: &[u8]) -> Outcome<()> {
    std::fs::write(path, bytes).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, e: &std::io::Error) -> Failure {
    Failure::io("write", path, e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{End, Findings, Frame, IcrcCheck, Profile, Rule, Severity};
    use std::collections::BTreeSet;

    fn rules(packet: &Packet) -> Vec<Rule> {
        let mut findings = Findings::new();
        let profile = Profile::DEFAULT;
        Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile)
            .check(IcrcCheck::On, &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn the_same_captures_come_out_each_time() {
        let bytes = || {
            all()
                .unwrap()
                .iter()
                .map(|c| file::pcapng(c).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(bytes(), bytes());
    }

    #[test]
    fn the_committed_captures_and_index_are_these() {
        check(&folder().unwrap(), None).unwrap();
    }

    #[test]
    fn well_formed_packets_break_no_rule_and_are_read_to_their_end() {
        for capture in all().unwrap() {
            for (number, packet) in capture.packets.iter().enumerate() {
                let at = format!("{} packet {}: {}", capture.name, number + 1, packet.comment);
                let broken: Vec<_> = rules(packet)
                    .into_iter()
                    .filter(|rule| rule.info().severity > Severity::Note)
                    .collect();
                assert_eq!(broken, packet.breaks, "{at}");
                if packet.breaks.is_empty() && !capture.name.starts_with("broken") && packet.whole()
                {
                    let profile = Profile::DEFAULT;
                    let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
                    let fragment = packet.comment.contains(" fragment of ")
                        && !packet.comment.contains("atomic");
                    assert_eq!(
                        matches!(frame.end(), End::Fragment { .. }),
                        fragment,
                        "{at}"
                    );
                    assert_eq!(frame.end() == End::Complete, !fragment, "{at}");
                }
            }
        }
    }

    #[test]
    fn every_rule_is_broken_somewhere() {
        let shown: BTreeSet<_> = all()
            .unwrap()
            .iter()
            .flat_map(|c| c.packets.iter().flat_map(rules))
            .collect();
        let never: Vec<_> = Rule::ALL
            .iter()
            .filter(|rule| !shown.contains(rule))
            .collect();
        // A code point that the draft forbids needs a profile that was forced.
        assert_eq!(
            never,
            [
                &Rule::FastCnpAction,
                &Rule::FastCnpChange,
                &Rule::ProxyAddressType
            ]
        );
    }
}
