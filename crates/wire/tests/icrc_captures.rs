//! The ICRC compared with packets sent by hardware and Linux: the third-party captures in the
//! folder `FCN_CAPTURES`.

use fcn_wire::icrc::{Reading, Verdict, verify};
use fcn_wire::ipv6_ext::ExtHeaders;
use fcn_wire::{Layer, profile::ROCEV2_PORT};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Returns the RoCEv2 packet in an Ethernet frame, from the IP header to its end, and the offset of
/// UDP. `None` for anything else, and for truncated packets.
fn rocev2(frame: &[u8]) -> Option<(&[u8], usize)> {
    let ether_type = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let mut at = 12;
    while matches!(ether_type(at)?, 0x8100 | 0x88A8) {
        at += 4;
    }
    let kind = ether_type(at)?;
    let ip = frame.get(at + 2..)?;
    let length = |at: usize| {
        Some(usize::from(u16::from_be_bytes(
            *ip.get(at..)?.first_chunk()?,
        )))
    };
    let (udp, end) = match kind {
        0x0800 if *ip.get(9)? == 17 && length(6)? & 0x3FFF == 0 => {
            (usize::from(ip[0] & 15) * 4, length(2)?)
        }
        0x86DD => {
            let end = 40 + length(4)?;
            let mut headers = ExtHeaders::new(ip.get(..end)?);
            if headers
                .any(|header| header.is_err() || header.is_ok_and(|h| h.layer == Layer::Fragment))
            {
                return None;
            }
            if headers.upper_protocol() != 17 {
                return None;
            }
            (headers.upper_start(), end)
        }
        _ => return None,
    };
    let packet = ip.get(..end)?;
    let port = u16::from_be_bytes(*packet.get(udp + 2..)?.first_chunk()?);
    (port == ROCEV2_PORT).then_some((packet, udp))
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    plain: usize,
    by_reading: BTreeMap<&'static str, usize>,
}

/// Verifies every complete RoCEv2 packet of a capture; a bad ICRC fails the test.
fn check(path: &Path) -> Counts {
    let mut counts = Counts::default();
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().datalink, DataLink::ETHERNET);
    let mut number = 0;
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        number += 1;
        let Some((bytes, udp)) = rocev2(packet.data()) else {
            continue;
        };
        match verify(bytes, udp) {
            Verdict::Good(None) => counts.plain += 1,
            Verdict::Good(Some(reading)) => {
                *counts.by_reading.entry(reading.id()).or_default() += 1;
            }
            other => panic!("{} packet {number}: {other:?}", path.display()),
        }
    }
    counts
}

#[test]
fn every_captured_icrc_is_good() {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("FCN_CAPTURES is not set");
        return;
    };
    let folder = Path::new(&folder);
    let plain = |plain| Counts {
        plain,
        by_reading: BTreeMap::new(),
    };
    // Linux soft-RoCE over IPv4, packets sent by hardware, and the packet in PcapPlusPlus's tests.
    assert_eq!(check(&folder.join("rxe_v4.pcap")), plain(764));
    assert_eq!(check(&folder.join("oferby_roce.pcap")), plain(105));
    assert_eq!(check(&folder.join("pcpp_pr1603_softroce.pcap")), plain(1));
    // Linux inserts the Hop-by-Hop header with the IOAM trace after the ICRC was computed: the ICRC
    // is that of the packet without it.
    let inserted = check(&folder.join("kernel_ioam_prealloc_ingress.pcap"));
    assert_eq!(
        inserted,
        Counts {
            plain: 0,
            by_reading: BTreeMap::from([(Reading::Rewritten.id(), 16)]),
        }
    );
}
