//! Who made CNPs, as fcn-top infers, against the ground truth.

mod labelled;

use fcn_top::record::{Maker, origin::Evidence};
use labelled::{Case, Said, Scene};

fn part(said: &[&Said], of: impl Fn(&Said) -> bool) -> f64 {
    said.iter().filter(|said| of(said)).count() as f64 / said.len() as f64
}

#[test]
fn who_made_cnps_is_seldom_said_wrongly() {
    let all: Vec<Said> = Case::all(1).flat_map(labelled::said).collect();
    let known: Vec<&Said> = all.iter().filter(|said| said.truth.is_some()).collect();
    assert!(known.len() > 1_000, "{}", known.len());
    let wrong: Vec<_> = known.iter().filter(|said| said.is_wrong()).collect();
    assert!(wrong.len() * 100 <= known.len(), "{wrong:?}");
    let of = |scene: Scene| -> Vec<&Said> {
        let known = known.iter().copied();
        known
            .filter(|said| said.case.scene == scene && said.truth == Some(scene.maker()))
            .collect()
    };
    // Who speaks in its own name hides nothing; who imitates, its hop limit.
    for scene in Scene::ALL {
        assert!(!of(scene).is_empty(), "{}", scene.about());
    }
    assert!(part(&of(Scene::OwnName), |said| said.maker == Maker::Network) > 0.9);
    assert!(part(&of(Scene::InName), |said| said.maker == Maker::Network) > 0.3);
    let nearer = |said: &Said| matches!(said.evidence, Evidence::Nearer { .. });
    assert_eq!(part(&of(Scene::Imitates), nearer), 0.0);
}
