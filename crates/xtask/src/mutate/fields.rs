//! Where the fields of packets lie, as tshark tells: with the plugin its own, too. Not here: what is changed in them.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;

use crate::failure::Outcome;
use crate::pdml::attribute;
use crate::process;
use crate::tshark::Tshark;

/// Octets of the longest field that may decide how the rest is read: lengths, types, next headers, ports, flags, counts.
const LONGEST: usize = 4;

/// The fields of up to four octets of each packet of a capture; a place stands as often as fields have bits of it.
///
/// # Errors
/// tshark fails.
pub fn places(tshark: &Tshark, capture: &Path) -> Outcome<Vec<Vec<Range<usize>>>> {
    let mut command = tshark.command();
    command.args(["-n", "-T", "pdml", "-r"]);
    command.arg(tshark.inside(capture));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = process::spawn(&mut command)?;
    let out = child.0.stdout.take().context("no standard output")?;
    let mut found: Vec<Vec<Range<usize>>> = Vec::new();
    for line in BufReader::new(out).lines() {
        let line = line?;
        if line.starts_with("<packet>") {
            found.push(Vec::new());
        }
        let last = found.last_mut();
        if let (Some(last), Some(place)) = (last, place(&line)) {
            last.push(place);
        }
    }
    // A packet that stock Wireshark falls over is for the modes to find: what was printed before serves.
    child.0.wait()?;
    Ok(found)
}

/// Where a line's field lies.
fn place(line: &str) -> Option<Range<usize>> {
    let line = line.trim_start();
    let number = |name| attribute(line, name)?.parse::<usize>().ok();
    // Fields that were worked out have no size.
    let (at, len) = (number("pos")?, number("size")?);
    (line.starts_with("<field ") && (1..=LONGEST).contains(&len)).then_some(at..at + len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets;

    #[test]
    fn the_fields_of_a_fast_cnp_are_found() {
        if process::which("tshark").is_none() {
            fcn_skip::skipped!("tshark is not installed");
            return;
        }
        let folder = crate::captures::folder().unwrap();
        let tshark = Tshark::stock().unwrap();
        let capture = tshark.scratch().unwrap().join("a.pcapng");
        let packets = packets::read(&folder.join("formats-fast-cnp.pcapng"));
        let packets = packets.unwrap().packets;
        packets::write(&capture, &packets).unwrap();
        let found = places(&tshark, &capture).unwrap();
        assert_eq!(found.len(), packets.len());
        let at = packets.iter().position(|packet| packet.bytes[20] == 60);
        // EtherType, payload length, next header, of the options header, of the option, UDP's.
        for place in [12..14, 18..20, 20..21, 54..55, 55..56, 56..57] {
            assert!(found[at.unwrap()].contains(&place), "{place:?}");
        }
    }

    #[test]
    fn what_is_no_short_field_is_no_place() {
        let field =
            r#"    <field name="ip.len" showname="a" size="2" pos="16" show="60" value="003c"/>"#;
        assert_eq!(place(field), Some(16..18));
        for other in [
            ("<field", "<proto"),
            (r#"size="2""#, r#"size="0""#),
            (r#""2""#, r#""5""#),
        ] {
            assert_eq!(place(&field.replace(other.0, other.1)), None);
        }
    }
}
