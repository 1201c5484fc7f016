//! Damaged packets through tshark with this build of the plugin: a short run of `cargo xtask
//! mutate`, the same each time.

use xtask::mutate::Mutation;
use xtask::packages;
use xtask::tshark::Tshark;

#[test]
fn damaged_packets_are_harmless() {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("damaged packets need {}", packages::describe(&lacking));
        return;
    }
    let mut mutation = Mutation::new(Tshark::with_this_plugin(false).unwrap(), &[]).unwrap();
    // Each builds the whole tree: the first in two passes, the second with every field printed, the
    // last for statistics.
    mutation
        .modes
        .retain(|mode| ["-2 -R -Y", "-T pdml", "-z"].contains(&mode.name));
    assert_eq!(mutation.modes.len(), 3);
    assert!(mutation.packets > 5_000, "{}", mutation.packets);
    let findings = mutation.run(1..4).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
}
