//! PFC: a real frame, and hostile ones.

use fcn_wire::pfc::{
    CLASSES, ETHERTYPE_MAC_CONTROL, OPCODE_PFC, PFC_DESTINATION, PFC_LEN, Pfc, PfcRepr, inspect,
};
use fcn_wire::{Findings, Rule};
use pcap_file::pcap::PcapReader;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::File;
use std::path::Path;

proptest! {
    #[test]
    fn parse_after_emit_gives_back_the_value(
        vector in any::<u16>(),
        times in any::<[u16; CLASSES]>(),
    ) {
        let pfc = PfcRepr { vector, times };
        let out = pfc.to_bytes();
        prop_assert_eq!(Pfc::new_checked(&out).map(|view| PfcRepr::parse(&view)), Ok(pfc));
        let view = Pfc::new_checked(&out).unwrap();
        let enabled: Vec<_> = view.enabled().collect();
        let expected: Vec<_> = (0..CLASSES)
            .filter(|class| vector >> class & 1 == 1)
            .map(|class| (class, times[class]))
            .collect();
        prop_assert_eq!(enabled, expected);
    }

    #[test]
    fn emit_after_parse_gives_back_the_octets(bytes in any::<[u8; PFC_LEN]>()) {
        let mut bytes = bytes;
        bytes[..2].copy_from_slice(&OPCODE_PFC.to_be_bytes());
        prop_assert_eq!(PfcRepr::parse(&Pfc::new_checked(&bytes).unwrap()).to_bytes(), bytes);
    }

    #[test]
    fn no_octets_make_it_panic(
        bytes in vec(any::<u8>(), 0..64),
        dress in any::<bool>(),
        cut in any::<bool>(),
        destination in any::<[u8; 6]>(),
    ) {
        let mut bytes = bytes;
        if dress && bytes.len() >= 2 {
            bytes[..2].copy_from_slice(&OPCODE_PFC.to_be_bytes());
        }
        let is_pfc = bytes.starts_with(&OPCODE_PFC.to_be_bytes());
        let mut findings = Findings::new();
        let view = inspect(&bytes, cut, destination, &mut findings);
        prop_assert_eq!(view.is_some(), is_pfc && bytes.len() >= PFC_LEN);
        prop_assert_eq!(findings.has(Rule::PfcMalformed), is_pfc && bytes.len() < PFC_LEN && !cut);
        for finding in &findings {
            prop_assert!(finding.offset + finding.len <= bytes.len());
        }
        if let Some(view) = view {
            prop_assert_eq!(findings.has(Rule::PfcVector), view.vector() > 0xFF);
            let _ = (view.enabled().count(), PfcRepr::parse(&view));
        }
    }
}

#[test]
fn a_real_frame() {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("FCN_CAPTURES is not set");
        return;
    };
    let file = File::open(Path::new(&folder).join("pypacker_pfc.pcap")).unwrap();
    let mut reader = PcapReader::new(file).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let (destination, rest) = packet.data().split_first_chunk::<6>().unwrap();
    assert_eq!(*destination, PFC_DESTINATION);
    let payload = rest[6..]
        .strip_prefix(&ETHERTYPE_MAC_CONTROL.to_be_bytes())
        .unwrap();
    let mut findings = Findings::new();
    let view = inspect(payload, false, *destination, &mut findings).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    // Class 1 has a pause time that its bit in the vector does not enable.
    assert_eq!(
        PfcRepr::parse(&view),
        PfcRepr {
            vector: 0b1101_1101,
            times: [0, 1, 0, 20, 3, 40, 3, 500],
        }
    );
    assert_eq!(
        view.enabled().collect::<Vec<_>>(),
        [(0, 0), (2, 0), (3, 20), (4, 3), (6, 3), (7, 500)]
    );
    assert_eq!(PfcRepr::parse(&view).to_bytes(), payload[..PFC_LEN]);
}
