//! Hostile input: the fuzz corpus of `fcn-wire` through the monitor, as every link type, complete
//! and truncated.
#![allow(missing_docs, reason = "tests have no users")]

use fcn_top::monitor::{Limits, Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_top::tables::Wanted;
use fcn_wire::LinkType;
use std::io::Read;
use std::path::Path;

const LINKS: [LinkType; 5] = [
    LinkType::Ethernet,
    LinkType::RawIp,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
    LinkType::Null,
];

#[test]
fn the_corpus_stops_nothing_and_every_packet_is_counted_once() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire/fuzz/corpus");
    let limits = Limits {
        rows: 4,
        flows: 20,
        points: 2,
        paths: 5,
        events: 50,
        connections: 10,
    };
    let settings = Settings {
        limits,
        per_interface: true,
        ..Settings::default()
    };
    let mut monitor = Monitor::new(settings);
    monitor.keep_course();
    let mut number = 0u64;
    let files = std::fs::read_dir(corpus).unwrap();
    let archives = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "tar"));
    for archive in archives {
        let mut archive = tar::Archive::new(std::fs::File::open(archive).unwrap());
        for input in archive.entries().unwrap() {
            let mut bytes = Vec::new();
            input.unwrap().read_to_end(&mut bytes).unwrap();
            // The first octets of an input select what a fuzz target does with the others.
            for (skip, link) in [0, 1, 2]
                .into_iter()
                .flat_map(|n| LINKS.map(|link| (n, link)))
            {
                let bytes = bytes.get(skip..).unwrap_or_default();
                for cut in [0, 1, bytes.len() / 2] {
                    number += 1;
                    monitor.observe(&Packet {
                        // Includes times that go back, and the maximum time.
                        at: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (number % 64),
                        bytes: &bytes[..bytes.len().saturating_sub(cut)],
                        wire_len: bytes.len(),
                        link,
                        interface: (number % 3) as u32,
                        number,
                    });
                }
            }
        }
    }
    assert!(number > 1_000);
    let tables = monitor.tables(Wanted::ALL);
    let totals = tables.totals;
    let sorts = totals.notified()
        + totals.data
        + totals.other
        + totals.cut
        + totals.undecodable
        + totals.copies;
    assert_eq!((totals.packets, sorts), (number, number));
    assert!(totals.notified() > 0 && totals.data > 0 && totals.cut > 0 && totals.undecodable > 0);
    assert!(tables.qps.len() <= 4 && tables.points.len() <= 2 && tables.events.len() <= 50);
    assert!(totals.rows_evicted > 0 && totals.notifiers_evicted > 0);
    for (id, _) in &tables.qps {
        assert!(monitor.detail(*id).is_some());
    }
    let course = monitor.course().unwrap();
    assert!((1..=512).contains(&course.traffic.len()) && course.flows.len() <= 200);
    assert!(
        course
            .flows
            .iter()
            .all(|flow| flow.steps.len() == course.traffic.len())
    );
}
