//! fcn-top's verdict on senders' obedience in the built-in scenarios, compared with the scenarios'
//! configuration.

mod watched;

use fcn_gen::scenario::{Source, builtin};
use fcn_observe::Answer;
use std::collections::BTreeMap;
use std::net::IpAddr;
use watched::watch;

/// Returns the verdicts on flows with at least 1,000 data packets and 20 notifications.
fn answers(source: &Source, sets: &[&str]) -> BTreeMap<(IpAddr, IpAddr, u32), Answer> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let (monitor, _) = watch(source, &sets, |_| {});
    let rows = monitor.rows();
    rows.filter_map(|(id, row)| {
        let flow = monitor.flow_of_row(id)?;
        let counts = row.data_packets? >= 1_000 && row.total >= 20;
        let key = (flow.sender, flow.receiver, flow.receiver_qp.get());
        counts.then_some((key, row.verdict?))
    })
    .collect()
}

/// Counts the verdicts, for senders that obey as by default, or stay at line rate.
fn count(obeys: bool) -> BTreeMap<Answer, usize> {
    let mut counts = BTreeMap::new();
    let scenarios = [
        ("receiver-cnp", &["duration=30ms", "ip=4"][..]),
        ("fast-cnp", &["duration=20ms"]),
        ("receiver-fast-cnp", &["duration=20ms"]),
        ("proxy", &["duration=40ms"]),
        ("incast", &["duration=20ms"]),
        ("wan-fcn", &["duration=60ms"]),
    ];
    // The last one is skipped for disobedient senders, since the network also interferes with them.
    let many = if obeys { 6 } else { 5 };
    for (name, sets) in scenarios.into_iter().take(many) {
        let mut text = builtin::text(name).unwrap().to_owned();
        if !obeys {
            let defaults = "[defaults.host]";
            if !text.contains(defaults) {
                text = format!("{text}\n{defaults}\n");
            }
            text = text.replace(defaults, "[defaults.host]\ncontrol = \"fixed\"");
        }
        let source = Source::Text {
            name: name.to_owned(),
            text,
        };
        for (flow, answer) in answers(&source, sets) {
            println!("{name} {sets:?} {flow:?} {answer:?}");
            *counts.entry(answer).or_default() += 1;
        }
    }
    counts
}

#[test]
fn senders_of_scenarios_obey() {
    let counts = count(true);
    assert_eq!(counts.get(&Answer::DoesNotObey), None, "{counts:?}");
    // Of two senders at one receiver, one may be cut too little to tell.
    assert!(counts[&Answer::Obeys] >= 9, "{counts:?}");
}

#[test]
fn senders_of_fixed_rate_do_not() {
    let counts = count(false);
    assert_eq!(counts.get(&Answer::Obeys), None, "{counts:?}");
    // Captures after the queue that marks the packets allow no verdict.
    assert!(counts[&Answer::DoesNotObey] >= 4, "{counts:?}");
}

/// Rows of the built-in scenarios with obedient senders, unchanged, by verdict.
#[test]
fn built_in_scenarios_last_long_enough_for_a_verdict() {
    let mut counts = BTreeMap::<Answer, usize>::new();
    for (name, _) in builtin::list() {
        let text = builtin::text(name).unwrap();
        let obey = !text.contains("control = \"fixed\"") && !text.contains("[[inject]]");
        // A flow that has found another path gets no more notifications.
        if builtin::kind(name) != "simulation" || !obey || name == "detour" {
            continue;
        }
        let (monitor, _) = watch(&Source::Builtin(name.to_owned()), &[], |_| {});
        let answers = monitor
            .rows()
            .map(|(_, row)| row.verdict.unwrap_or_default());
        for answer in answers {
            *counts.entry(answer).or_default() += 1;
        }
    }
    let all: usize = counts.values().sum();
    let obey = counts.get(&Answer::Obeys).copied().unwrap_or(0);
    assert!(obey * 10 >= all * 6, "{counts:?}");
    assert_eq!(counts.get(&Answer::DoesNotObey), None, "{counts:?}");
}
