//! The committed decodings of the sample captures are what tshark with this build of the plugin says.

use xtask::tshark::Tshark;
use xtask::{captures, cargo, install_plugin, packages};

#[test]
fn the_sample_captures_decode_as_committed() {
    let lacking = packages::missing(&install_plugin::needs().unwrap());
    if !lacking.is_empty() {
        println!(
            "SKIPPED: golden decodings need {}",
            packages::describe(&lacking)
        );
        return;
    }
    let tshark = Tshark::with_plugin(&cargo::build_plugin(false).unwrap()).unwrap();
    let folder = captures::folder().unwrap();
    if let Err(e) = captures::check(&folder, Some(&tshark)) {
        panic!("{e}");
    }
}
