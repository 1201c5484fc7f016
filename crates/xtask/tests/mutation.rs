//! Damaged packets through tshark with this build of the plugin: a short run of `cargo xtask mutate`, the same each time.

use xtask::mutate::bench::Bench;
use xtask::mutate::{self, change::Change};
use xtask::packages;
use xtask::tshark::Tshark;

/// One of so many packets is damaged, in each way.
const SAMPLE: usize = 4;

#[test]
fn damaged_packets_do_no_harm() {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("damaged packets need {}", packages::describe(&lacking));
        return;
    }
    let with = Tshark::with_this_plugin(false).unwrap();
    let mut bench = Bench::new(with, Tshark::stock().unwrap()).unwrap();
    // Each adds everything to the tree; the first in two passes, the second through what prints every field, the last
    // through statistics.
    bench.retain_modes(|name| ["-2 -R -Y", "-T pdml", "-z"].contains(&name));
    let base: Vec<_> = mutate::base(&[])
        .unwrap()
        .into_iter()
        .step_by(SAMPLE)
        .collect();
    let wanted = base.len() * Change::ALL.len();
    let tally = bench.run(&base, wanted, 1, 2).unwrap();
    println!("{} damaged packets", tally.packets());
    assert!(tally.packets() > 5_000, "{tally:?}");
    assert_eq!(tally.through.len(), 3);
    if !tally.findings.is_empty() {
        let kept = mutate::keep(&tally.findings).unwrap();
        let amiss: Vec<_> = tally
            .findings
            .iter()
            .map(|finding| (finding.mode, &finding.change, &finding.amiss))
            .collect();
        panic!("kept in {}: {amiss:#?}", kept.display());
    }
}
