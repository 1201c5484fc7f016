//! Text output of tshark with the plugin for a sample.
//!
//! For a gallery: a line per packet, then all of them in detail. A simulation repeats itself: a
//! line for each of the first packets, then the first few packets of each kind in detail. The same
//! holds for recorded samples; of routers, all packets are shown in detail.

use std::collections::BTreeMap;
use std::path::Path;

use super::samples::{Sample, Scene};
use crate::failure::Outcome;
use crate::tshark::Tshark;

/// Protocols shown in full in details: ours, and those that contain them.
const DETAILS: &str =
    "pkt_comment,ipv6,infiniband,rocev2,cnp,fastcnp,proxycn,wanfcn,fcn,pnc,isis.lsp,ospf,bgp";

/// Additional protocols for a simulation.
const DETAILS_AROUND: &str = "icmpv6,macc";

/// Number of packets shown in detail: of notifications of one kind from one source, and of other
/// packets that are not RoCEv2 data.
const EACH: usize = 2;

/// Number of packets of a simulation that have a line.
const LINES: usize = 300;

/// Columns of a simulation: the interface is the capture point of a packet.
const COLUMNS: &str = r#"gui.column.format:"No.","%m","Time","%t","Interface","%Cus:frame.interface_name:0:R","Source","%s","Destination","%d","Protocol","%p","Length","%L","Info","%i""#;

/// Decodes the capture of a sample, with details of the `notable` frames of a simulation.
///
/// # Errors
/// tshark failed.
pub fn decode(tshark: &Tshark, sample: &Sample, capture: &Path, notable: &str) -> Outcome<String> {
    match sample.scene {
        Scene::Gallery => {
            let lines = tshark.decode(capture, &[])?;
            let details = tshark.decode(capture, &["-O", DETAILS])?;
            Ok(format!("{lines}\n{details}"))
        }
        Scene::Simulation | Scene::Recorded | Scene::Routed => {
            let lines = tshark.decode(capture, &["-o", COLUMNS])?;
            let protocols = format!("{DETAILS},{DETAILS_AROUND}");
            // The second pass shows a packet with its consequences.
            let details = tshark.decode(capture, &["-2", "-O", &protocols, "-Y", notable])?;
            Ok(format!("{}\n{details}", first_lines(&lines, LINES)))
        }
    }
}

/// Returns the first lines, and the number of the remaining ones.
fn first_lines(text: &str, most: usize) -> String {
    let mut lines = text.lines();
    let mut first: String = (lines.by_ref().take(most))
        .flat_map(|line| [line, "\n"])
        .collect();
    let more = lines.count();
    if more > 0 {
        first += &format!("… and {more} packets more\n");
    }
    first
}

/// Fields that distinguish kinds of packets; the first is the frame number.
const FIELDS: &str = "frame.number cnp fastcnp fastcnp.option.number proxycn wanfcn ip.src ipv6.src frame.protocols \
    ipv6.opt.ioam.trace.remlen infiniband.bth.opcode infiniband.mad.attributeid ip.dsfield.ecn \
    ipv6.tclass.ecn";

/// Returns a filter for the frames to show in detail: all of a gallery and of routers, otherwise
/// the first of each kind.
///
/// # Errors
/// tshark failed.
pub fn notable(tshark: &Tshark, sample: &Sample, capture: &Path) -> Outcome<String> {
    if matches!(sample.scene, Scene::Gallery | Scene::Routed) {
        return Ok("frame".to_owned());
    }
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    arguments.extend(FIELDS.split(' ').flat_map(|field| ["-e", field]));
    let numbers = first_of_each(&tshark.decode(capture, &arguments)?);
    Ok(format!("frame.number in {{{}}}", numbers.join(",")))
}

/// Returns the first frames of each kind, from one line of [`FIELDS`] per frame.
fn first_of_each(lines: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut numbers = Vec::new();
    for line in lines.lines() {
        let Some((number, values)) = line.split_once('|') else {
            continue;
        };
        let (kind, each) = kind(values);
        let count = seen.entry(kind).or_default();
        *count += 1;
        if *count <= each {
            numbers.push(number.to_owned());
        }
    }
    numbers
}

/// Returns the kind of packet with these values of [`FIELDS`], and the number of packets of that
/// kind to show.
fn kind(values: &str) -> (String, usize) {
    let mut values = values.split('|');
    let mut next = || values.next().unwrap_or_default();
    let [cnp, fast, option, proxy, wan] = [next(), next(), next(), next(), next()];
    let sources = [next(), next()].join(" ");
    let [protocols, trace] = [next(), next()];
    let shape = values.collect::<Vec<_>>().join(" ");
    let kinds = [
        ("cnp", cnp),
        ("fastcnp", fast),
        ("proxycn", proxy),
        ("wanfcn", wan),
    ];
    let notification = kinds.iter().find(|(_, value)| !value.is_empty());
    if let Some((name, _)) = notification {
        (format!("{name} {option} {sources}"), EACH)
    } else if !trace.is_empty() {
        // A trace grows from one vantage point to the next, independently of the data.
        (format!("{protocols} {trace}"), 1)
    } else if protocols.contains("infiniband") {
        (format!("{protocols} {shape}"), 1)
    } else {
        (protocols.to_owned(), EACH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_count_the_remaining_ones() {
        assert_eq!(first_lines("a\nb\n", 2), "a\nb\n");
        assert_eq!(
            first_lines("a\nb\nc\nd\n", 2),
            "a\nb\n… and 2 packets more\n"
        );
    }

    #[test]
    fn notifications_are_shown_twice_and_data_once_per_shape() {
        const ROCE: &str = "eth:ethertype:ipv6:udp:infiniband";
        let data = |opcode: u8, ecn: u8| format!("|||||||2001:db8::1|{ROCE}||{opcode}|||{ecn}");
        let traced =
            |opcode: u8, room: u8| format!("|||||||2001:db8::1|{ROCE}|{room}|{opcode}|||2");
        let fast = |source: &str| format!("||Fast CNP|1||||{source}|{ROCE}||129|||2");
        let pause = || "||||||||eth:ethertype:macc|||||".to_owned();
        let kinds = [
            data(6, 2),
            data(6, 2),
            data(6, 3),
            data(7, 2),
            traced(6, 20),
            traced(7, 20),
            traced(7, 15),
            fast("2001:db8::2"),
            fast("2001:db8::2"),
            fast("2001:db8::2"),
            fast("2001:db8::3"),
            pause(),
            pause(),
            pause(),
        ];
        let lines: String = (1..)
            .zip(kinds)
            .map(|(number, values)| format!("{number}{values}\n"))
            .collect();
        let shown = ["1", "3", "4", "5", "7", "8", "9", "11", "12", "13"];
        assert_eq!(first_of_each(&lines), shown);
    }
}
