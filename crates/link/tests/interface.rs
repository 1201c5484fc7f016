//! Interfaces of network namespaces: properties, routes, permission to send, and changes.
#![cfg(target_os = "linux")]

mod common;

use common::netns::{End, Options, Pair};
use fcn_link::interface::{
    DefaultRoute, Interface, InterfaceErrorKind, LinkEvent, LinkWatch, Refusal, RefusalKind,
    check_may_send,
};
use fcn_link::xdp::Program;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any notification from the kernel takes.
const TIMEOUT: Duration = Duration::from_secs(10);

fn near(pair: &Pair) -> Interface {
    pair.inside(End::Near, || Interface::named("near").unwrap())
}

fn routes(pair: &Pair, name: &str) -> Vec<DefaultRoute> {
    let refusal = pair.inside(End::Near, || {
        check_may_send(&Interface::named(name).unwrap(), false).err()
    });
    match refusal.as_ref().map(Refusal::kind) {
        Some(RefusalKind::DefaultRoute(routes)) => routes.clone(),
        Some(RefusalKind::Unknown(e)) => panic!("{e}"),
        _ => Vec::new(),
    }
}

fn in_words(pair: &Pair, name: &str) -> Vec<String> {
    routes(pair, name).iter().map(ToString::to_string).collect()
}

#[test]
fn link_settings() {
    let options = Options {
        queues: 2,
        mtu: 9000,
        ipv6: true,
        ..Options::default()
    };
    let Some(pair) = Pair::with("facts", &options) else {
        return;
    };
    pair.ip(End::Near, &["addr", "add", "192.0.2.1/24", "dev", "near"]);
    let v6 = ["addr", "add", "2001:db8::1/64", "dev", "near", "nodad"];
    pair.ip(End::Near, &v6);
    let altname = [
        "link",
        "property",
        "add",
        "dev",
        "near",
        "altname",
        "other-name",
    ];
    pair.ip(End::Near, &altname);
    let near = near(&pair);
    assert_eq!((near.name(), near.mtu()), ("near", 9000));
    assert_eq!((near.transmit_queues(), near.receive_queues()), (2, 2));
    assert_eq!(near.mac(), Some(pair.mac(End::Near)));
    assert_eq!(near.driver(), Some("veth"));
    assert!(near.is_up() && near.has_carrier());
    assert!(near.is_ethernet() && !near.is_loopback());
    assert_eq!(near.speed(), Some(10_000), "what veth says");
    let addresses: Vec<_> = near
        .addresses()
        .iter()
        .map(|a| format!("{}/{}", a.address, a.prefix_len))
        .collect();
    for expected in ["192.0.2.1/24", "2001:db8::1/64"] {
        assert!(addresses.iter().any(|a| a == expected), "{addresses:?}");
    }
    let by_other_name = pair.inside(End::Near, || Interface::named("other-name").unwrap());
    assert_eq!(by_other_name.name(), "near");
}

#[test]
fn all_and_none() {
    let Some(pair) = Pair::new("all_and_none") else {
        return;
    };
    pair.inside(End::Near, || {
        let all = Interface::all().unwrap();
        // A kernel may add others to each new namespace.
        let named = |name: &str| all.iter().find(|interface| interface.name() == name);
        assert_eq!(named("near"), Some(&Interface::named("near").unwrap()));
        let lo = named("lo").unwrap();
        assert!(lo.is_loopback() && lo.driver() == Some("loopback"));
        let e = Interface::named("naer").unwrap_err();
        let InterfaceErrorKind::Missing { known, near } = e.kind() else {
            panic!("{e}");
        };
        assert!(known.iter().any(|name| name == "near"), "{known:?}");
        assert_eq!(near.as_deref(), Some("near"), "{e}");
    });
}

#[test]
fn sysfs_of_another_namespace_is_ignored() {
    let options = Options {
        queues: 2,
        ..Options::default()
    };
    let Some(pair) = Pair::with("sysfs", &options) else {
        return;
    };
    let namesake = "link add near numtxqueues 4 numrxqueues 4 type veth";
    let namesake: Vec<_> = namesake.split(' ').collect();
    pair.ip(End::Far, &namesake);
    // A thread that goes there without its own sysfs, as a program may.
    let (far, near) = (pair.entry(End::Far), pair.entry(End::Near));
    let interface = thread::spawn(move || {
        far.enter();
        near.enter_network_only();
        Interface::named("near").unwrap()
    });
    let interface = interface.join().unwrap();
    assert_eq!((interface.transmit_queues(), interface.speed()), (2, None));
    assert_eq!(interface.driver(), Some("veth"));
}

#[test]
fn default_routes_of_both_families() {
    let options = Options {
        ipv6: true,
        ..Options::default()
    };
    let Some(pair) = Pair::with("default_routes", &options) else {
        return;
    };
    let ip = |args: &str| {
        let args: Vec<_> = args.split(' ').collect();
        pair.ip(End::Near, &args);
    };
    ip("addr add 192.0.2.1/24 dev near");
    ip("addr add 2001:db8::1/64 dev near nodad");
    ip("route add 198.51.100.0/24 via 192.0.2.2");
    ip("route add blackhole default metric 9 table 5");
    ip("-6 route add unreachable default table 5");
    assert_eq!(in_words(&pair, "near"), [""; 0]);

    ip("route add default via 192.0.2.2");
    ip("-6 route add default via 2001:db8::2");
    let found = routes(&pair, "near");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].to_string(), "IPv4 default via 192.0.2.2 dev near");
    assert_eq!(
        (found[1].destination.is_ipv6(), found[1].table),
        (true, 254)
    );
    assert_eq!(
        found[1].to_string(),
        "IPv6 default via 2001:db8::2 dev near"
    );
    assert_eq!(in_words(&pair, "lo"), [""; 0]);
    ip("route del default");
    ip("-6 route del default");

    ip("route add 0.0.0.0/1 dev near");
    ip("route add 128.0.0.0/1 via 192.0.2.2 table 1000");
    ip("-6 route add 2000::/3 dev near");
    let expected = [
        "IPv4 0.0.0.0/1 dev near",
        "IPv4 128.0.0.0/1 via 192.0.2.2 dev near table 1000",
        "IPv6 2000::/3 dev near",
    ];
    let mut found = in_words(&pair, "near");
    found.sort();
    assert_eq!(found, expected);
    ip("route flush 0.0.0.0/1");
    ip("route flush table 1000");
    ip("-6 route del 2000::/3");
    assert_eq!(in_words(&pair, "near"), [""; 0]);

    ip("link add other type veth peer name end");
    ip("link set end up");
    ip("link set other up");
    ip("addr add 203.0.113.1/24 dev other");
    ip("route add default nexthop via 203.0.113.2 nexthop via 192.0.2.2");
    assert_eq!(
        in_words(&pair, "near"),
        ["IPv4 default via 192.0.2.2 dev near"]
    );
    ip("route del default");

    // A next hop object, reported in full and by its number.
    if pair.try_ip(
        End::Near,
        &[
            "nexthop",
            "add",
            "id",
            "7",
            "via",
            "192.0.2.2",
            "dev",
            "near",
        ],
    ) {
        ip("route add default nhid 7");
        assert_eq!(
            in_words(&pair, "near"),
            ["IPv4 default via 192.0.2.2 dev near"]
        );
        pair.inside(End::Near, || {
            let compatible = "/proc/sys/net/ipv4/nexthop_compat_mode";
            std::fs::write(compatible, "0").unwrap();
            let near = Interface::named("near").unwrap();
            // Kernels differ in whether they then report the interface: either it counts, or it is
            // unknown.
            match check_may_send(&near, false).unwrap_err().kind() {
                RefusalKind::DefaultRoute(routes) => assert_eq!(routes.len(), 1),
                e => assert!(format!("{e:?}").contains("next hop object 7"), "{e:?}"),
            }
            assert!(check_may_send(&near, true).is_ok());
        });
    }
}

#[test]
fn default_route_of_an_interface_above() {
    let Some(pair) = Pair::new("above") else {
        return;
    };
    let ip = |args: &str| {
        let args: Vec<_> = args.split(' ').collect();
        pair.ip(End::Near, &args);
    };
    let can = |args: &str| {
        let args: Vec<_> = args.split(' ').collect();
        let can = pair.try_ip(End::Near, &args);
        if !can {
            fcn_skip::skipped!("above: this kernel has no such interface: ip {args:?}");
        }
        can
    };
    if can("link add br0 type bridge") {
        ip("link set near master br0");
        ip("link set br0 up");
        ip("route add default dev br0");
        let expected = ["IPv4 default dev br0"];
        assert_eq!(in_words(&pair, "near"), expected);
        assert_eq!(in_words(&pair, "br0"), expected);
        if can("link add link br0 name mv0 type macvlan") {
            ip("link set mv0 up");
            ip("route add default dev mv0 table 9");
            let expected = ["IPv4 default dev br0", "IPv4 default dev mv0 table 9"];
            assert_eq!(in_words(&pair, "near"), expected);
            assert_eq!(in_words(&pair, "mv0"), expected[1..]);
        }
        ip("link del br0");
    }
    if can("link add link near name v5 type vlan id 5") {
        ip("link set v5 up");
        ip("route add default dev v5");
        assert_eq!(in_words(&pair, "near"), ["IPv4 default dev v5"]);
        ip("link del v5");
    }
    if can("link add bond0 type bond") {
        ip("link set near down");
        ip("link set near master bond0");
        ip("link set bond0 up");
        ip("route add default dev bond0");
        assert_eq!(in_words(&pair, "near"), ["IPv4 default dev bond0"]);
        ip("link del bond0");
    }
    // The peer of a veth in the same namespace is not above it.
    ip("link add one type veth peer name two");
    ip("link set one up");
    ip("link set two up");
    ip("route add default dev one");
    assert_eq!(in_words(&pair, "one"), ["IPv4 default dev one"]);
    assert_eq!(in_words(&pair, "two"), [""; 0]);
}

#[test]
fn interlock() {
    let Some(pair) = Pair::new("interlock") else {
        return;
    };
    let interface = near(&pair);
    let check = |allow| pair.inside(End::Near, || check_may_send(&interface, allow));
    check(false).unwrap();

    pair.ip(End::Near, &["route", "add", "default", "dev", "near"]);
    let refusal = check(false).unwrap_err();
    assert!(matches!(refusal.kind(), RefusalKind::DefaultRoute(routes) if routes.len() == 1));
    let text = refusal.to_string();
    for part in ["near: ", "IPv4 default dev near", "--allow-default-route"] {
        assert!(text.contains(part), "{text}");
    }
    check(true).unwrap();

    pair.ip(End::Far, &["link", "set", "far", "down"]);
    let refusal = check(true).unwrap_err();
    assert!(
        matches!(refusal.kind(), RefusalKind::NoCarrier { .. }),
        "{refusal}"
    );
    assert!(refusal.to_string().contains("peer is down"), "{refusal}");

    pair.ip(End::Near, &["link", "set", "near", "down"]);
    let refusal = check(true).unwrap_err();
    assert!(matches!(refusal.kind(), RefusalKind::Down));
    let advice = "ip link set dev near up";
    assert!(refusal.to_string().contains(advice), "{refusal}");

    pair.ip(End::Near, &["link", "del", "near"]);
    let refusal = check(true).unwrap_err();
    assert!(matches!(refusal.kind(), RefusalKind::Gone), "{refusal}");

    pair.inside(End::Near, || {
        let lo = Interface::named("lo").unwrap();
        assert!(lo.is_loopback());
        check_may_send(&lo, false).unwrap();
    });
}

#[test]
fn not_ethernet() {
    let Some(pair) = Pair::new("not_ethernet") else {
        return;
    };
    let tuntap = ["tuntap", "add", "dev", "tun7", "mode", "tun"];
    if !pair.try_ip(End::Near, &tuntap) {
        fcn_skip::skipped!("not_ethernet: this kernel has no tun");
        return;
    }
    pair.inside(End::Near, || {
        let tun = Interface::named("tun7").unwrap();
        assert!(!tun.is_ethernet());
        let refusal = check_may_send(&tun, false).unwrap_err();
        assert!(
            matches!(refusal.kind(), RefusalKind::NotEthernet),
            "{refusal}"
        );
    });
}

/// Arguments of `ip` for another interface.
const OTHER: [&str; 5] = ["link", "add", "other", "type", "veth"];

/// Returns the next event; there must be one.
fn next(watch: &mut LinkWatch) -> LinkEvent {
    let begin = Instant::now();
    loop {
        if let Some(event) = watch.poll() {
            return event;
        }
        assert!(begin.elapsed() < TIMEOUT, "no event");
        thread::sleep(Duration::from_millis(1));
    }
}

fn watch(pair: &Pair) -> LinkWatch {
    pair.inside(End::Near, || {
        LinkWatch::new(&Interface::named("near").unwrap()).unwrap()
    })
}

#[test]
fn events() {
    let Some(pair) = Pair::new("events") else {
        return;
    };
    let mut watch = watch(&pair);
    assert_eq!(watch.poll(), None);
    pair.ip(End::Near, &OTHER);
    pair.ip(End::Near, &["link", "set", "near", "mtu", "1400"]);
    assert_eq!(watch.poll(), None);

    pair.ip(End::Near, &["link", "set", "near", "down"]);
    assert_eq!(next(&mut watch), LinkEvent::Down);
    pair.ip(End::Near, &["link", "set", "near", "up"]);
    assert_eq!(next(&mut watch), LinkEvent::Back);
    pair.ip(End::Far, &["link", "set", "far", "down"]);
    assert_eq!(next(&mut watch), LinkEvent::NoCarrier);
    pair.ip(End::Far, &["link", "set", "far", "up"]);
    assert_eq!(next(&mut watch), LinkEvent::Back);

    // A port that leaves a bridge still exists.
    if pair.try_ip(End::Near, &["link", "add", "br0", "type", "bridge"]) {
        pair.ip(End::Near, &["link", "set", "near", "master", "br0"]);
        pair.ip(End::Near, &["link", "set", "near", "nomaster"]);
        assert_eq!(watch.poll(), None);
    }

    pair.ip(End::Near, &["link", "del", "near"]);
    let first = next(&mut watch);
    assert!(first.ends_run());
    assert_eq!(watch.wait_for_final_event(first, TIMEOUT), LinkEvent::Gone);
    assert_eq!(watch.poll(), None);
}

#[test]
fn other_end_deleted() {
    let Some(pair) = Pair::new("other_end_deleted") else {
        return;
    };
    let mut watch = watch(&pair);
    pair.ip(End::Far, &["link", "del", "far"]);
    let first = next(&mut watch);
    assert_eq!(watch.wait_for_final_event(first, TIMEOUT), LinkEvent::Gone);
}

#[test]
fn moved_or_renamed() {
    for change in ["netns", "name"] {
        let Some(pair) = Pair::new("moved_or_renamed") else {
            return;
        };
        let mut watch = watch(&pair);
        let to = match change {
            "netns" => pair.namespace(End::Far),
            _ => {
                pair.ip(End::Near, &["link", "set", "near", "down"]);
                "renamed"
            }
        };
        pair.ip(End::Near, &["link", "set", "near", change, to]);
        let first = next(&mut watch);
        assert_eq!(
            watch.wait_for_final_event(first, TIMEOUT),
            LinkEvent::Gone,
            "{change}"
        );
        pair.inside(End::Near, || {
            assert!(Interface::named("near").is_err(), "{change}");
        });
    }
}

#[test]
fn changed_before_the_watch() {
    let Some(pair) = Pair::new("changed_before") else {
        return;
    };
    let interface = near(&pair);
    pair.ip(End::Near, &["link", "set", "near", "down"]);
    let watch = |pair: &Pair| pair.inside(End::Near, || LinkWatch::new(&interface).unwrap());
    assert_eq!(watch(&pair).poll(), Some(LinkEvent::Down));
    pair.ip(End::Near, &["link", "del", "near"]);
    assert_eq!(watch(&pair).poll(), Some(LinkEvent::Gone));
}

/// More changes than a socket can queue: the state is queried after a loss.
#[test]
fn lost_messages() {
    let Some(pair) = Pair::new("lost_messages") else {
        return;
    };
    let mut watch = watch(&pair);
    assert_eq!(watch.poll(), None);
    pair.ip(End::Near, &OTHER);
    // The kernel reports nothing about an interface that is down.
    pair.ip(End::Near, &["link", "set", "other", "up"]);
    let flood = |first: &str, last: &str| {
        let changes: String = (0..3000)
            .map(|n| format!("link set dev other alias change-{n}\n"))
            .collect();
        let mut ip = pair.command(End::Near, "ip");
        let ip = ip.args(["-batch", "-"]).stdin(Stdio::piped());
        let mut ip = ip.spawn().unwrap();
        let text = format!("{first}\n{changes}{last}\n");
        std::io::Write::write_all(&mut ip.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(ip.wait().unwrap().success());
    };
    // The queued messages say "up", the lost ones "down": the result must not be the other way
    // round.
    flood("link set dev near mtu 1400", "link set dev near down");
    assert_eq!(next(&mut watch), LinkEvent::Down);
    for _ in 0..100 {
        assert_eq!(watch.poll(), None);
    }
    let up = "link set dev near up";
    flood(up, up);
    assert_eq!(next(&mut watch), LinkEvent::Back);
    flood("link set dev near mtu 1500", "link del dev near");
    let first = next(&mut watch);
    assert_eq!(watch.wait_for_final_event(first, TIMEOUT), LinkEvent::Gone);
}

#[test]
fn counters() {
    let Some(pair) = Pair::new("counters") else {
        return;
    };
    pair.ip(End::Near, &["addr", "add", "192.0.2.1/24", "dev", "near"]);
    pair.ip(End::Far, &["addr", "add", "192.0.2.2/24", "dev", "far"]);
    let far = pair.inside(End::Far, || Interface::named("far").unwrap());
    let interface = near(&pair);
    let read = || {
        let near = pair.inside(End::Near, || interface.counters().unwrap());
        let far = pair.inside(End::Far, || far.counters().unwrap());
        (near, far)
    };
    let before = read();
    pair.inside(End::Near, || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        for _ in 0..10 {
            // 86 octets on the wire; after the first frame, ARP is done.
            socket.send_to(&[0; 44], ("192.0.2.2", 9)).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
    });
    let after = read();
    let packets = after.0.tx_packets - before.0.tx_packets;
    let octets = after.0.tx_bytes - before.0.tx_bytes;
    assert!(packets >= 10, "{packets}");
    assert!(octets >= 860, "{octets}");
    assert_eq!(after.0.tx_dropped, before.0.tx_dropped);
    assert_eq!(packets, after.1.rx_packets - before.1.rx_packets);
    assert_eq!(octets, after.1.rx_bytes - before.1.rx_bytes);

    pair.ip(End::Near, &["link", "del", "near"]);
    pair.inside(End::Near, || {
        let e = interface.counters().unwrap_err();
        assert!(matches!(e.kind(), InterfaceErrorKind::Gone), "{e}");
        assert!(e.to_string().starts_with("near: "), "{e}");
    });
}

#[test]
fn attached_programs() {
    let Some(pair) = Pair::new("attached_programs") else {
        return;
    };
    let name = "near";
    let index = near(&pair).index();
    let program = pair.inside(End::Near, || Program::attach(name, index, 1));
    let program = match program {
        Ok(program) => program,
        Err(e) => {
            fcn_skip::skipped!("attached_programs: {e}");
            return;
        }
    };
    assert!(pair.has_xdp_program(End::Near));
    drop(program);
    assert!(!pair.has_xdp_program(End::Near));
}

#[test]
fn namespaces_are_gone_afterwards() {
    let Some(pair) = Pair::new("namespaces_are_gone") else {
        return;
    };
    let names = End::BOTH.map(|end| pair.namespace(end).to_owned());
    let listed = || {
        let output = Command::new("ip").args(["netns", "list"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let text = listed();
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    drop(pair);
    let text = listed();
    assert!(!names.iter().any(|name| text.contains(name)), "{text}");
}
