//! Proxies that a congestion point learns from foreign routers: the sample captures of FRR and
//! ExaBGP.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fcn_node::proxy_directory::Reading;
use fcn_node::{ProxyDirectory, Time};
use fcn_wire::{Frame, LinkType, Profile};
use xtask::{captures, packets};

/// Returns the known proxy after each packet of one link that changed it.
fn learnt(case: &str, sender: &str, link: [u8; 5]) -> Vec<Option<IpAddr>> {
    let file = captures::folder()
        .unwrap()
        .join(format!("routers-{case}.pcapng"));
    let capture = packets::read(&file).unwrap();
    let mut directory = ProxyDirectory::new(100, Reading::ProxyPrefix, Profile::DEFAULT);
    let mut known = vec![None];
    for packet in &capture.packets {
        if packet.bytes.get(6..11) != Some(&link) {
            continue;
        }
        let time = Time::from_nanos(packet.time.as_nanos() as u64);
        let frame = Frame::parse(
            &packet.bytes,
            packet.bytes.len(),
            LinkType::Ethernet,
            &Profile::DEFAULT,
        );
        directory.learn(time, &frame);
        let proxy = directory.proxy_for(sender.parse().unwrap());
        if known.last() != Some(&proxy) {
            known.push(proxy);
        }
    }
    assert_eq!(directory.counters().malformed, 0);
    known.split_off(1)
}

/// Returns the MAC addresses of a link's ends, without the last octet.
fn link(number: u8) -> [u8; 5] {
    [2, 0, 0, 0, number]
}

#[test]
fn the_directory_follows_flags_withdrawals_and_max_age() {
    let proxy = Some("192.0.2.15".parse().unwrap());
    let mut wrong = BTreeMap::new();
    for (case, sender, number, want) in [
        ("ospf-area", "192.0.2.15", 1, vec![proxy, None]),
        ("ospf-area", "192.0.2.15", 2, vec![proxy, None]),
        ("ospf-area", "192.0.2.15", 3, vec![proxy, None]),
        ("ospf-domain", "192.0.2.15", 1, vec![proxy, None]),
        ("ospf-domain", "192.0.2.15", 3, vec![proxy, None]),
        // With the flag, without, with it, purged; core never receives it.
        ("isis", "192.0.2.15", 1, vec![proxy, None, proxy, None]),
        ("isis", "192.0.2.15", 2, vec![proxy, None, proxy, None]),
        ("isis", "192.0.2.15", 3, vec![]),
        // With the characteristic, without, with it, withdrawn.
        ("bgp", "10.1.2.3", 1, vec![proxy, None, proxy, None]),
        ("bgp", "10.1.2.3", 2, vec![proxy, None, proxy, None]),
        // For a different next hop.
        ("bgp", "10.1.2.3", 3, vec![]),
        // ExaBGP ends the session without a NOTIFICATION, only by TCP, which is not tracked; the
        // reflector withdraws its routes.
        ("bgp", "192.0.2.15", 1, vec![proxy]),
        ("bgp", "192.0.2.15", 2, vec![proxy, None]),
    ] {
        let known = learnt(case, sender, link(number));
        if known != want {
            wrong.insert((case, sender, number), known);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
