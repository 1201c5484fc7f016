//! Links of retransmissions and acknowledgements, in a capture of Linux hosts with losses.

mod common;

use common::{captures, decode, with_plugin};

#[test]
fn retransmissions_and_naks_link_to_the_packet() {
    let Some(tshark) = with_plugin() else {
        return;
    };
    let is_loss = |path: &&std::path::PathBuf| path.ends_with("soft-roce-loss.pcapng");
    let captures = captures();
    let file = captures.iter().find(is_loss).unwrap();
    let fields = |filter: &str, fields: [&str; 2]| {
        let [first, second] = fields;
        let arguments = [
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
            "-e",
            first,
            "-e",
            second,
        ];
        decode(&tshark, file, &arguments)
    };
    let naks = fields(
        "rocev2.refuses && frame.interface_id == 0",
        ["rocev2.refuses", "infiniband.bth.psn"],
    );
    assert_eq!(
        naks.lines().collect::<Vec<_>>(),
        ["66\t43\t2964114", "141\t127\t2964139"]
    );
    let again = fields(
        "rocev2.retransmission_of",
        ["rocev2.retransmission_of", "infiniband.bth.psn"],
    );
    assert_eq!(again.lines().next(), Some("69\t43\t2964114"));
    assert_eq!(again.lines().count(), 19, "{again}");
    let times = fields(
        "frame.number == 112",
        ["rocev2.acknowledges", "rocev2.round_trip"],
    );
    assert_eq!(times.trim(), "112\t97\t0.000438230");
}
