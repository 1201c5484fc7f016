//! Pairing of QPs in captures whose pairs are known.

mod pairs;

use pairs::{Captured, Case, Paired, Ports, Psns};

const CAPTURED: [Captured; 6] = [
    Captured::All,
    Captured::Lossy,
    Captured::Middle,
    Captured::Data,
    Captured::Answers,
    Captured::OneLink,
];

/// Plays captures of that kind, with 1 to 64 QPs.
fn play(psns: &[Psns], ports: Ports, captured: Captured) -> Paired {
    let mut paired = Paired::default();
    for psns in psns.iter().copied() {
        for (qps, number) in [1, 2, 4, 8, 16, 64].into_iter().cycle().zip(0..18) {
            for coalesced in [1, 2] {
                let case = Case {
                    qps,
                    psns,
                    ports,
                    captured,
                    coalesced,
                    by_clock: None,
                };
                paired += pairs::play(&case, number);
            }
        }
    }
    paired
}

const PSNS: [Psns; 3] = [Psns::Zero, Psns::InStep, Psns::Random];

#[test]
fn the_port_rule_finds_every_flow() {
    for captured in [Captured::All, Captured::Lossy, Captured::Middle] {
        let paired = play(&PSNS, Ports::Rule, captured);
        let (flows, cnps) = (paired.flows, paired.cnps);
        assert!(flows.all() > 400, "{captured:?} {paired:?}");
        assert_eq!(flows.right, flows.all(), "{captured:?} {paired:?}");
        // Two of 64 QPs match a flow now and then, until their own flows are known.
        assert_eq!(cnps.wrong, 0, "{captured:?} {paired:?}");
        assert!(cnps.unknown * 1000 <= cnps.all(), "{captured:?} {paired:?}");
    }
}

#[test]
fn half_a_capture_leads_to_no_wrong_flow() {
    for captured in [Captured::Data, Captured::Answers, Captured::OneLink] {
        let paired = play(&PSNS, Ports::Rule, captured);
        for count in [paired.acknowledged, paired.cnps] {
            assert_eq!(count.wrong, 0, "{captured:?} {paired:?}");
        }
    }
}

#[test]
fn acknowledgements_find_four_flows_in_five() {
    for ports in [Ports::Random, Ports::Same, Ports::Several] {
        let (mut all, mut both_ways) = (Paired::default(), Paired::default());
        for captured in CAPTURED {
            let paired = play(&PSNS, ports, captured);
            all += paired;
            // With one of two links, flows in step are left open.
            if captured != Captured::OneLink {
                both_ways += paired;
            }
        }
        let flows = both_ways.acknowledged;
        assert!(
            flows.right * 5 >= flows.all() * 4,
            "{ports:?} {both_ways:?}"
        );
        for count in [all.flows, all.cnps] {
            assert!(count.wrong * 500 <= count.all(), "{ports:?} {all:?}");
        }
    }
}

#[test]
fn senders_in_step_by_a_clock_lead_to_no_wrong_flow() {
    let mut paired = Paired::default();
    for psns in [Psns::Zero, Psns::InStep] {
        for (jitter, number) in [0, 1, 4, 16].into_iter().cycle().zip(0..100) {
            for (qps, coalesced) in [(2, 1), (2, 2), (4, 1), (4, 2), (16, 1)] {
                let case = Case {
                    qps,
                    psns,
                    ports: Ports::Random,
                    captured: Captured::All,
                    coalesced,
                    by_clock: Some(jitter),
                };
                let it = pairs::play(&case, number);
                if std::env::var("PAIRS").is_ok() {
                    println!("{jitter} {qps} {coalesced} {number} {:?}", it.flows);
                }
                paired += it;
            }
        }
    }
    for count in [paired.flows, paired.cnps] {
        assert!(count.wrong * 500 <= count.all(), "{paired:?}");
    }
}
