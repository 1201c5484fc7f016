//! The committed sample captures, and that of `fcn-top --demo`, are identical to the output of this
//! build of `fcn-gen`, and the samples' decodings are identical to the output of tshark with this
//! build of the plugin.

use xtask::captures::Generator;
use xtask::tshark::Tshark;
use xtask::{captures, packages};

#[test]
fn the_sample_captures_are_as_committed() {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("golden decodings need {}", packages::describe(&lacking));
        return;
    }
    let tshark = Tshark::with_this_plugin(false).unwrap();
    let generator = Generator::build().unwrap();
    let folder = captures::folder().unwrap();
    if let Err(e) = captures::check(&folder, &generator, Some(&tshark)) {
        panic!("{e:#}");
    }
}

#[test]
fn the_demo_is_as_committed() {
    let generator = Generator::build().unwrap();
    if let Err(e) = captures::demo::check(&generator) {
        panic!("{e:#}");
    }
}
