//! Proxy Node Capability in routing: third-party captures, in the folder named by `FCN_CAPTURES`.

use fcn_wire::pnc::{Origin, Protocol, walk};
use fcn_wire::{Findings, Profile};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::path::Path;

/// Returns the frames of a capture file of either format.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = Vec::new();
    if bytes.starts_with(&[0x0A, 0x0D, 0x0D, 0x0A]) {
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap().0 {
                out.push(packet.data.into_owned());
            }
        }
    } else {
        let mut reader = PcapReader::new(&bytes[..]).unwrap();
        while let Some(packet) = reader.next_packet() {
            out.push(packet.unwrap().data().to_vec());
        }
    }
    out
}

/// Returns the routing message in an Ethernet frame without tags, IP options or extension headers.
fn message(frame: &[u8]) -> Option<(Protocol, &[u8])> {
    let kind = u16::from_be_bytes([frame[12], frame[13]]);
    match kind {
        0..=1500 if frame[14..17] == [0xFE, 0xFE, 3] => {
            Some((Protocol::IsIs, &frame[17..14 + usize::from(kind)]))
        }
        0x0800 if frame[14] == 0x45 && frame[23] == 89 => {
            let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            Some((Protocol::Ospf2, &frame[34..14 + len]))
        }
        0x86DD if frame[20] == 89 => Some((Protocol::Ospf3, &frame[54..])),
        _ => None,
    }
}

/// Returns (frame from 1, advertiser, prefix, has flags) for every prefix; no message may break a
/// rule or be refused.
fn prefixes(name: &str) -> Option<Vec<(usize, String, String, bool)>> {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("FCN_CAPTURES is not set");
        return None;
    };
    let mut out = Vec::new();
    let mut messages = 0;
    for (i, frame) in frames(&Path::new(&folder).join(name)).iter().enumerate() {
        let Some((protocol, bytes)) = message(frame) else {
            continue;
        };
        messages += 1;
        let walked = walk(protocol, bytes, bytes.len(), &Profile::DEFAULT)
            .unwrap_or_else(|e| panic!("{name} frame {}: {e}", i + 1));
        let Some(mut walked) = walked else { continue };
        let mut findings = Findings::new();
        while let Some(ad) = walked.next_checked(&mut findings) {
            let who = match ad.origin {
                Origin::IsIs { lsp_id, tlv, .. } => format!("{}/{tlv}", lsp_id[5]),
                Origin::Ospf2 {
                    advertising_router, ..
                } => advertising_router.to_string(),
                other => format!("{other:?}"),
            };
            assert!(!ad.pnc);
            let prefix = ad.prefix.unwrap().to_string();
            out.push((i + 1, who, prefix, ad.carrier.is_some()));
        }
        assert!(findings.is_empty(), "{name} frame {}: {findings:?}", i + 1);
    }
    assert!(messages > 0);
    Some(out)
}

fn expect(name: &str, want: &[(usize, &str, &str)]) {
    let Some(got) = prefixes(name) else { return };
    let want: Vec<_> = want
        .iter()
        .map(|(n, who, prefix)| (*n, (*who).to_string(), (*prefix).to_string(), false))
        .collect();
    assert_eq!(got, want);
}

// Expected values are those of tshark 4.0.17 for the same files.

#[test]
fn isisd_lsps() {
    expect(
        "frr10.7_isis.pcap",
        &[
            (31, "1/135", "10.255.0.0/24"),
            (31, "1/135", "10.0.0.1/32"),
            (31, "1/237", "fdaa::/64"),
            (31, "1/237", "fd0f::1/128"),
            (37, "2/135", "10.255.0.0/24"),
            (37, "2/135", "10.254.0.0/24"),
            (37, "2/135", "10.0.0.2/32"),
            (37, "2/237", "fdaa::/64"),
            (37, "2/237", "fdbb::/64"),
            (37, "2/237", "fd0f::2/128"),
            (45, "3/135", "10.254.0.0/24"),
            (45, "3/135", "10.0.0.3/32"),
            (45, "3/237", "fdbb::/64"),
            (45, "3/237", "fd0f::3/128"),
        ],
    );
}

#[test]
fn ospfd_extended_prefixes_and_ospf6d_without_extended_lsas() {
    expect(
        "frr10.7_ospf2_sr_ospf3.pcap",
        &[
            (18, "10.0.0.2", "10.0.0.2/32"),
            (19, "10.0.0.1", "10.0.0.1/32"),
            (23, "10.0.0.3", "10.0.0.3/32"),
        ],
    );
}

#[test]
fn an_lsp_with_a_prefix_sid_before_no_flags() {
    expect(
        "tcpdump_isis_sr.pcapng",
        &[(1, "8/135", "10.0.27.0/31"), (1, "8/135", "7.7.7.1/32")],
    );
}

#[test]
fn an_extended_prefix_range_is_not_an_extended_prefix() {
    expect("tcpdump_ospf-sr.pcapng", &[]);
}
