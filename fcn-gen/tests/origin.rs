//! The origin of CNPs as inferred by fcn-top, compared with the ground truth.

mod labelled;

use fcn_top::record::{Maker, origin::Evidence};
use labelled::{Case, Judged, Scene};

fn part(judged: &[&Judged], holds: impl Fn(&Judged) -> bool) -> f64 {
    judged.iter().filter(|judged| holds(judged)).count() as f64 / judged.len() as f64
}

#[test]
fn origin_of_cnps_is_seldom_wrong() {
    let all: Vec<Judged> = Case::all(1).flat_map(labelled::judged).collect();
    let known: Vec<&Judged> = all.iter().filter(|judged| judged.truth.is_some()).collect();
    assert!(known.len() > 1_000, "{}", known.len());
    let wrong: Vec<_> = known.iter().filter(|judged| judged.is_wrong()).collect();
    assert!(wrong.len() * 100 <= known.len(), "{wrong:?}");
    let scene_of = |scene: Scene| -> Vec<&Judged> {
        let known = known.iter().copied();
        known
            .filter(|judged| judged.case.scene == scene && judged.truth == Some(scene.maker()))
            .collect()
    };
    // Switches that use their own address are nearer, which is evident if paths have equal lengths;
    // an imitator hides its hop limit.
    for scene in Scene::ALL {
        assert!(!scene_of(scene).is_empty(), "{}", scene.about());
    }
    let mut own_name = scene_of(Scene::OwnName);
    own_name.retain(|judged| !judged.case.uneven);
    assert!(part(&own_name, |judged| judged.maker == Maker::Network) > 0.9);
    let second = scene_of(Scene::SecondAddress);
    assert_eq!(part(&second, |judged| judged.maker == Maker::Network), 0.0);
    assert!(
        part(&scene_of(Scene::InName), |judged| judged.maker
            == Maker::Network)
            > 0.3
    );
    let nearer = |judged: &Judged| matches!(judged.evidence, Evidence::Nearer { .. });
    assert_eq!(part(&scene_of(Scene::Imitates), nearer), 0.0);
    // If all evidence agrees, a verdict is given; for a second address it is based on evidence of
    // the receiver's NIC.
    let is = |scene, maker| part(&scene_of(scene), |judged| judged.maker == maker);
    assert!(is(Scene::Bridged, Maker::ReceiverOrImitation) > 0.5);
    assert!(is(Scene::BridgedSecond, Maker::Receiver) > 0.5);
    assert!(is(Scene::Forged, Maker::Network) > 0.5);
}
