//! The report as a self-contained page for readers who were not there: what was tested, how, with
//! which result, and the frames that show it. `page.js` renders it.

use super::bench::{LinkReport, Record, parse};
use super::judge::Outcome;
use fcn_observe::DataPacket;
use fcn_tool::page::Page;
use fcn_wire::icrc::{Reading, Verdict};
use fcn_wire::{Frame, Message, Notification, Profile};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The page without its data.
pub const PAGE: Page = Page {
    title: "fcn-gen check",
    script: include_str!("page.js"),
};

/// Maximum number of notifications of the device whose ICRC is verified for the report.
const VERIFIED: usize = 10_000;

/// Returns the frames that outcomes name, each once: number in the capture, time, link, direction,
/// and a line on its content.
pub fn decoded(
    record: &Record,
    outcomes: &[Outcome],
    links: &[LinkReport],
    profile: &Profile,
) -> Vec<Value> {
    let named = outcomes.iter().flat_map(|outcome| &outcome.frames);
    let named: BTreeMap<usize, ()> = named.map(|frame| (*frame, ())).collect();
    let shown = named.keys().filter_map(|index| {
        let frame = record.frames.get(*index)?;
        let parsed = parse(record.bytes(frame), profile);
        Some(json!({
            "number": index + 1,
            "at_ns": frame.at.as_nanos(),
            "interface": links.get(frame.link).map(|link| &link.interface),
            "from_device": frame.by_device,
            "text": line(&parsed),
        }))
    });
    shown.collect()
}

/// Describes a frame in one line.
fn line(frame: &Frame<'_>) -> String {
    if let Some(notification) = Notification::from_frame(frame) {
        return notification.to_string();
    }
    if let (Some(data), Message::Roce(bth, _)) = (DataPacket::from_frame(frame), frame.message()) {
        return format!(
            "{} from {} → {}, QP {}, PSN {}, {:?}",
            bth.opcode(),
            data.source,
            data.destination,
            data.dest_qp,
            bth.psn(),
            data.ecn
        );
    }
    match frame.message() {
        Message::Roce(bth, _) => {
            format!("{}, QP {}, PSN {}", bth.opcode(), bth.dest_qp(), bth.psn())
        }
        Message::RdmaCm(_, message) => format!("RDMA CM, {message:?}"),
        Message::Pfc(pfc) => {
            let times = pfc
                .enabled()
                .map(|(class, quanta)| format!("{class}: {quanta}"));
            format!("PFC, {}", times.collect::<Vec<_>>().join(", "))
        }
        _ => {
            let layers = frame.spans().iter().map(|span| span.layer.to_string());
            layers.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns how the device's notifications compute their ICRC: by reading, the number of frames.
pub fn icrc(record: &Record, profile: &Profile) -> Vec<Value> {
    let mut found: BTreeMap<&str, (&str, u64)> = BTreeMap::new();
    let by_device = record.iter().filter(|(_, frame, _)| frame.by_device);
    let verdicts = by_device.filter_map(|(_, _, bytes)| {
        let frame = parse(bytes, profile);
        let is_ours = matches!(frame.message(), Message::Cnp(_) | Message::FastCnp(_));
        is_ours.then(|| frame.verify_icrc())
    });
    for verdict in verdicts.take(VERIFIED) {
        let (reading, meaning) = match verdict {
            Verdict::Good(Some(reading)) => (reading.id(), Reading::describe(reading)),
            Verdict::Good(None) => ("right", "no extension headers: all readings agree"),
            Verdict::Bad { .. } => ("wrong", "by every reading"),
            Verdict::Unchecked => ("not checked", "cut off or broken"),
        };
        found.entry(reading).or_insert((meaning, 0)).1 += 1;
    }
    let each = found.into_iter();
    each.map(|(reading, (meaning, frames))| {
        json!({ "reading": reading, "meaning": meaning, "frames": frames })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_examples::browser::rendered;

    /// A report with the content of a device that attacks its reader.
    fn hostile() -> Value {
        let evil = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";
        let test = |id: &str, result: &str, frames: Value| {
            json!({
                "id": id, "section": "a draft section 4", "text": evil, "forbidden": true, "core": true,
                "result": result, "why": evil, "frames": frames, "times": 3, "judged": 9,
            })
        };
        json!({
            "schema": "fcn-gen/check", "version": 1, "dry_run": false, "made_by": "fcn-gen 0",
            "role": "congestion-point", "device": "switch", "scenario": evil, "off": false,
            "speed": 0.05, "seconds": 1.5, "ended": "completed", "verdict": "failed",
            "date": "2026-01-01T00:00:00Z", "command": evil, "dut": evil,
            "settings": [["speed", "0.05"], ["scenario", evil]],
            "code_points": [["fast_cnp_option1", "0x9e"]],
            "icrc": [{"reading": "B", "meaning": "covered", "frames": 7}],
            "decoded": [{"number": 12, "at_ns": 5_000, "interface": evil, "from_device": true, "text": evil}],
            "links": [{"interface": evil, "peer": "sender1", "mode": "packet", "refused": 0, "lost": null}],
            "frames": 100, "frames_left_out": 1, "passed": 1, "noted": 0, "failed": 1, "not_tested": 1,
            "latency": [{"what": "from data to Fast CNP", "count": 9, "p50_ns": 1_000, "p99_ns": 2_000, "longest_ns": 3_000}],
            "steps": [{"id": "main", "what": evil, "begin_ns": 0, "end_ns": 9, "frames": 4}],
            "tests": [
                test("fastcnp.sent", "passed", json!([])),
                test("fastcnp.source.own", "failed", json!([12, 13])),
                test("cnp.sent", "not_tested", json!([])),
            ],
        })
    }

    #[test]
    fn page_has_no_markup_of_the_device() {
        let mut page = Vec::new();
        PAGE.write(&hostile(), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.matches("<script").count(), 4);
        assert!(!page.contains("<img"));
        for way in ["innerHTML", "outerHTML", "insertAdjacent", "</", "<!--"] {
            assert!(!PAGE.script.contains(way), "{way}");
        }
    }

    #[test]
    fn a_browser_renders_it_and_runs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        let mut page = Vec::new();
        PAGE.write(&hostile(), &mut page).unwrap();
        std::fs::write(&file, page).unwrap();
        let Some(page) = rendered(&file) else { return };
        assert!(page.contains("data-state=\"ready\""), "{page}");
        assert!(!page.contains("<title>owned"), "{page}");
        let body = page.rsplit_once("<main id=\"page\">").unwrap().1;
        let body = body.split_once("</main>").unwrap().0;
        for element in ["<script", "<img"] {
            assert!(!body.contains(element), "{element}");
        }
        for text in [
            "fastcnp.source.own",
            "frame 12",
            "frame 13",
            "extension headers",
        ] {
            assert!(body.contains(text), "{text}: {body}");
        }
        // Failures first.
        let place = |id: &str| body.find(id).unwrap();
        assert!(place("fastcnp.source.own") < place("fastcnp.sent"));
    }
}
