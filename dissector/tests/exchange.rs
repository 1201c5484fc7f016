//! Links of retransmissions and acknowledgements, in a capture of Linux hosts with losses.

mod common;

use common::{TempCapture, captures, decode, matches, with_plugin};

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

/// Returns an Ethernet frame with a RoCEv2 packet, of these addresses' last octets, traffic class,
/// opcode, QP, PSN, and what follows the BTH; its ICRC is wrong.
fn frame((from, to, tos): (u8, u8, u8), (opcode, qp, psn): (u8, u8, u8), rest: &[u8]) -> Vec<u8> {
    let len = 20 + 8 + 12 + rest.len() as u8 + 4;
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    frame.extend([0x45, tos, 0, len, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([0xC0, 0, 0x12, 0xB7, 0, len - 20, 0, 0]);
    frame.extend([opcode, 0, 0xFF, 0xFF, 0, 0, 0, qp, 0x80, 0, 0, psn]);
    frame.extend(rest);
    frame.extend([0; 4]);
    frame
}

#[test]
fn stalls_not_ect_data_and_exhausted_retries_have_expert_infos() {
    let Some(tshark) = with_plugin() else {
        return;
    };
    const MS: u64 = 1_000_000;
    let data = |psn| frame((1, 2, 2), (4, 5, psn), &[0; 32]);
    let rnr = |psn| frame((2, 1, 2), (17, 9, psn), &[0x2E, 0, 0, 1]);
    let not_ect = || frame((3, 2, 0), (4, 6, 7), &[0; 32]);
    let mut frames = vec![
        (data(7), 0),
        (rnr(7), 1),
        // Before the QPs are paired, and after it.
        (data(7), 655 * MS),
        (rnr(7), 656 * MS),
        (data(7), 1_311 * MS),
        (not_ect(), 1_400 * MS),
    ];
    for again in 1..8 {
        frames.push((not_ect(), 1_400 * MS + again * 67 * MS));
    }
    let frames = frames
        .iter()
        .map(|(frame, at)| (&frame[..], frame.len(), 1_000_000 * MS + at));
    let file = TempCapture::timed("stalls", frames);
    let numbers = |filter: &str| matches(&tshark, file.path(), filter);
    let unanswered = 7..=12;
    assert_eq!(numbers("rocev2.not_ect"), [6].into());
    assert_eq!(numbers("rocev2.retries_exhausted"), [13].into());
    let stalled = [3, 5].into_iter().chain(unanswered).collect();
    assert_eq!(numbers("rocev2.stalled"), stalled);
    let shown = decode(&tshark, file.path(), &["-V", "-Y", "frame.number == 3"]);
    let wanted =
        "[Expert Info (Note/Sequence): The flow stalled: RNR NAK, then 654.999 ms without data]";
    assert!(shown.contains(wanted), "{shown}");
}
