//! Share of right, wrong and undecided verdicts on the origin of CNPs, by true origin, capture
//! point and evidence.

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use fcn_top::record::Maker;
use labelled::{Case, Judged, PLACES, Scene};
use std::collections::BTreeMap;

/// Seeds that were not used during development.
const SEEDS: core::ops::Range<u64> = 2_000..2_004;

fn print<'a>(name: &str, judged: impl Iterator<Item = &'a Judged>) {
    let (mut right, mut alike, mut wrong, mut unclear) = (0_u32, 0_u32, 0_u32, 0_u32);
    for judged in judged {
        match judged.maker {
            Maker::Unknown => unclear += 1,
            _ if judged.is_wrong() => wrong += 1,
            Maker::ReceiverOrImitation => alike += 1,
            _ => right += 1,
        }
    }
    let all = f64::from(right + alike + wrong + unclear).max(1.0);
    let part = |n: u32| f64::from(n) / all * 100.0;
    println!(
        "{name:44} {all:6.0} {:8.1} {:22.1} {:8.1} {:10.1}",
        part(right),
        part(alike),
        part(wrong),
        part(unclear)
    );
}

fn main() {
    let all: Vec<Judged> = SEEDS
        .flat_map(Case::all)
        .flat_map(labelled::judged)
        .collect();
    let known = || all.iter().filter(|judged| judged.truth.is_some());
    println!(
        "{:44} {:>6} {:>8} {:>22} {:>8} {:>10}",
        "", "QPs", "right %", "receiver/imitation %", "wrong %", "undecided %"
    );
    for scene in Scene::ALL {
        print(
            scene.about(),
            known()
                .filter(|judged| judged.case.scene == scene && judged.truth == Some(scene.maker())),
        );
    }
    for (place, (name, _)) in PLACES.iter().enumerate() {
        print(
            &format!("seen on {name}"),
            known().filter(|judged| judged.case.place == place),
        );
    }
    for (name, is) in [
        ("IPv4", (|case| case.ipv4) as fn(Case) -> bool),
        ("IPv6", |case| !case.ipv4),
        ("RDMA CM", |case| case.rdma_cm),
        ("without RDMA CM", |case| !case.rdma_cm),
        ("paths of one length", |case| !case.uneven),
        ("paths of four lengths", |case| case.uneven),
    ] {
        print(name, known().filter(|judged| is(judged.case)));
    }
    print("all", known());
    println!("by evidence:");
    let mut evidence: BTreeMap<String, Vec<&Judged>> = BTreeMap::new();
    for judged in known() {
        let name = format!("{:?}", judged.evidence);
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        evidence.entry(name).or_default().push(judged);
    }
    for (name, judged) in evidence {
        print(&name, judged.into_iter());
    }
}
