//! Correctness of fcn-top's verdicts on senders, in the scenario of `cargo xtask demo` and in the
//! samples.

use serde_json::Value;
use xtask::captures::{self, Generator};
use xtask::tshark::TempDir;
use xtask::{cargo, demo, senders};

fn truth(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_demo_is_right_about_every_sender() {
    let monitor = cargo::build_tool(cargo::MONITOR, false).unwrap();
    let folder = TempDir::new(false).unwrap();
    let judged = demo::obeyed(&Generator::build().unwrap(), &monitor, folder.path()).unwrap();
    let text = senders::list(&judged);
    assert_eq!(judged.len(), 4, "{text}");
    assert!(
        text.ends_with("3 obey, 1 does not, as in the scenario"),
        "{text}"
    );
    // Together with its surroundings, it fills a screen.
    assert!(
        text.lines().count() <= 16 && text.lines().all(|line| line.chars().count() <= 76),
        "{text}"
    );
}

#[test]
fn samples_last_long_enough_to_tell() {
    let monitor = cargo::build_tool(cargo::MONITOR, false).unwrap();
    let folder = captures::folder().unwrap();
    let mut all = Vec::new();
    for sample in captures::all() {
        if let Some(name) = sample.truth_name() {
            let truth = truth(&folder.join(name));
            let judged = senders::judge(&monitor, &folder.join(sample.file_name()), None, &truth);
            all.extend(judged.unwrap());
        }
    }
    let decided = all.iter().filter(|one| one.is_decided()).count();
    assert!(decided * 10 >= all.len() * 6, "{decided} of {}", all.len());
    let wrong: Vec<_> = all.iter().filter(|one| one.is_wrong()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
