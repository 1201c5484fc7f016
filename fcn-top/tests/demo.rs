//! The `--demo` capture: verdicts agree with its scenario, it repeats, and it rejects incompatible
//! options.

mod common;

use common::{read, top_words};
use fcn_observe::Answer;
use fcn_top::engine::file::{Choice, FileInput};
use fcn_top::engine::kernel_filter::PacketFilter;
use fcn_top::engine::{Engine, Input, Limits};
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::record::MADE_UP;
use fcn_top::tables::{TableSource, Tables, Wanted};
use fcn_wire::Kind;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Returns the tables after that many seconds, without waiting.
fn after(seconds: u64) -> Tables {
    let limits = Limits {
        span: Some(Duration::from_secs(seconds)),
        ..Limits::default()
    };
    show(limits, None)
}

fn show(limits: Limits, filter: Option<&str>) -> Tables {
    let engine = Engine::new(Monitor::new(Settings::default()), None, limits, false);
    let choice = Choice {
        filter: PacketFilter {
            own: filter.map(str::to_owned),
            ..PacketFilter::default()
        },
        ..Choice::default()
    };
    let mut input = FileInput::demo(choice, &[]).unwrap();
    input.run(&engine, &AtomicBool::new(false)).unwrap();
    engine.tables(Wanted::ALL)
}

/// Returns the verdicts on each sender, by the last group of its address.
fn verdicts(tables: &Tables) -> BTreeMap<u16, Vec<&'static str>> {
    let mut verdicts = BTreeMap::<u16, Vec<_>>::new();
    for (_, row) in &tables.qps {
        let Some(IpAddr::V6(sender)) = row.sender else {
            panic!("{row:?}")
        };
        let [.., host] = sender.segments();
        verdicts
            .entry(host)
            .or_default()
            .push(row.verdict.map_or("none", Answer::id));
    }
    verdicts
}

#[test]
fn verdicts_are_those_of_the_scenario() {
    // s1 to s4, b1 and b2, old, deaf.
    let (steady, burst, old, deaf) = (1..=4, 5..=6, 7, 8);
    for seconds in [4, 20, 60, 120] {
        let tables = after(seconds);
        let verdicts = verdicts(&tables);
        for host in steady.clone().chain([old]) {
            assert_eq!(verdicts[&host], ["obeys"], "{host} after {seconds} s");
        }
        assert_eq!(verdicts[&deaf], ["does_not_obey"; 2], "{seconds} s");
        for host in burst.clone() {
            let told = verdicts.get(&host).cloned().unwrap_or_default();
            let flows = [0, 1, 2][usize::from(seconds > 12) + usize::from(seconds > 36)];
            assert_eq!(told, vec!["obeys"; flows], "{host} after {seconds} s");
        }
    }
}

#[test]
fn every_view_has_contents() {
    let tables = after(20);
    let told = |kind| tables.totals.notifications[kind as usize];
    assert!(told(Kind::Cnp) > 100 && told(Kind::FastCnp2) > 500);
    let rules: Vec<_> = tables.rules.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, ["fastcnp.rate.exceeded", "ioam.overflow"]);
    // Switch, receiver, and the host that sends its own.
    assert_eq!(tables.points.len(), 3);
    assert!(tables.hops.iter().any(|hop| hop.hop == 3));
}

#[test]
fn it_repeats_and_stays_marked_as_a_demo() {
    let packets = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/demo.pcapng.gz"));
    let rounds = [1, 2].map(|rounds| {
        let limits = Limits {
            count: Some(rounds * packets.len() as u64),
            ..Limits::default()
        };
        show(limits, None)
    });
    let [one, two] = &rounds;
    for tables in &rounds {
        let [interface] = &tables.interfaces[..] else {
            panic!("{:?}", tables.interfaces)
        };
        assert_eq!(interface.state, MADE_UP);
    }
    assert_eq!(two.span(), 2 * one.span() + SECOND);
    assert_eq!(two.totals.notified(), 2 * one.totals.notified());
    assert_eq!(two.totals.rows, one.totals.rows);
}

#[test]
fn the_filter_applies() {
    let limits = Limits {
        count: Some(2_000),
        ..Limits::default()
    };
    let tables = show(limits, Some("host 2001:db8:1::8"));
    assert_eq!(verdicts(&tables).keys().collect::<Vec<_>>(), [&8]);
}

#[test]
fn it_is_refused_without_a_screen() {
    let done = top_words("--no-config --demo").with(2);
    assert!(
        done.err
            .contains("--demo: standard output is not a terminal"),
        "{done:?}"
    );
    for (other, option) in [
        ("--json", "'--json'"),
        ("--report", "'--report'"),
        ("--audit", "'--audit'"),
        ("--export a", "'--export <FILE>'"),
        ("--prometheus 0", "'--prometheus <[ADDRESS:]PORT>'"),
        ("-i lo", "'--iface <IF>'"),
        ("-r a", "'--read <FILE>'"),
    ] {
        let done = top_words(&format!("--no-config --demo {other}")).with(2);
        for text in ["'--demo'", "cannot be used with", option] {
            assert!(done.err.contains(text), "{done:?}");
        }
    }
}
