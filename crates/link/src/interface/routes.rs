//! Default routes that use an interface.

use super::link::Link;
use super::{InterfaceError, link};
use crate::netlink::Netlink;
use netlink_packet_core::{DecodeError, Parseable};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The table that is used without further rules.
const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// A route for every destination without a more specific one, or for half of all destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultRoute {
    /// Destinations: all (`0.0.0.0/0`, `::/0`) or half of them (`0.0.0.0/1`).
    pub destination: IpAddr,
    /// Prefix length of `destination`, in bits.
    pub prefix_len: u8,
    /// The next router; `None` if the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// The interface that the route names: the one requested, or one above it.
    pub via_interface: String,
    /// Number of the routing table; 254 is the main one.
    pub table: u32,
}

impl fmt::Display for DefaultRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.destination {
            IpAddr::V4(_) => "IPv4 ",
            IpAddr::V6(_) => "IPv6 ",
        })?;
        match self.prefix_len {
            0 => f.write_str("default")?,
            len => write!(f, "{}/{len}", self.destination)?,
        }
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        write!(f, " dev {}", self.via_interface)?;
        match self.table {
            MAIN => Ok(()),
            table => write!(f, " table {table}"),
        }
    }
}

/// Returns the default routes that use the interface with that index.
pub(super) fn by_interface(
    netlink: &mut Netlink,
    links: &[Link],
    index: u32,
) -> Result<Vec<DefaultRoute>, InterfaceError> {
    let above = above(links, index);
    let mut found = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        let answers = netlink.dump(RouteNetlinkMessage::GetRoute(request), libc::RTM_NEWROUTE);
        let answers = answers.map_err(|e| InterfaceError::query("routes", e))?;
        for answer in answers {
            let route = Route::parse(&answer, family);
            let Some(route) = route.map_err(|e| InterfaceError::reply("routes", &e))? else {
                continue;
            };
            for hop in &route.hops {
                if above.contains(&hop.index) {
                    let via = links.iter().find(|link| link.index == hop.index);
                    found.push(DefaultRoute {
                        destination: route.destination,
                        prefix_len: route.prefix_len,
                        gateway: hop.gateway,
                        via_interface: via
                            .map_or_else(|| link::nameless(hop.index), |link| link.name.clone()),
                        table: route.table,
                    });
                }
            }
        }
    }
    found.sort_by_key(|route| (route.destination.is_ipv6(), route.table != MAIN));
    Ok(found)
}

/// Returns the interface with that index, and all whose packets leave by it: the bridge or bond it
/// is a port of, and interfaces stacked on it.
fn above(links: &[Link], index: u32) -> Vec<u32> {
    let mut found = vec![index];
    let mut next = 0;
    // Each index occurs at most once, so `found` is limited by the number of links, even if they
    // form loops.
    while let Some(&lower) = found.get(next) {
        next += 1;
        let master = links.iter().find(|link| link.index == lower);
        let master = master.and_then(|link| link.master);
        let stands_on = |link: &&Link| link.lower == Some(lower) && link.lower_namespace.is_none();
        let uppers = links.iter().filter(stands_on).map(|link| link.index);
        for upper in master.into_iter().chain(uppers) {
            if !found.contains(&upper) {
                found.push(upper);
            }
        }
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Route {
    destination: IpAddr,
    prefix_len: u8,
    table: u32,
    hops: Vec<Hop>,
}

#[derive(Debug, PartialEq, Eq)]
struct Hop {
    index: u32,
    gateway: Option<IpAddr>,
}

impl Route {
    /// Parses the default route in a message; `None` for other routes. A default route that cannot
    /// be parsed is an error, so that nothing is sent where it might lead.
    fn parse(payload: &[u8], requested: AddressFamily) -> Result<Option<Self>, DecodeError> {
        let header = RouteHeader::parse(payload)?;
        // Without IPv6 the kernel answers with the routes that it has.
        let any = match header.address_family {
            AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => return Ok(None),
        };
        let goes_nowhere = matches!(
            header.kind,
            RouteType::Local
                | RouteType::Broadcast
                | RouteType::Anycast
                | RouteType::Multicast
                | RouteType::BlackHole
                | RouteType::Unreachable
                | RouteType::Prohibit
                | RouteType::Throw
        );
        if header.address_family != requested
            || goes_nowhere
            || header.destination_prefix_length > LONGEST
            || header.flags.contains(RouteFlags::Cloned)
        {
            return Ok(None);
        }
        let message = RouteMessage::parse(payload)?;
        let mut route = Self {
            destination: any,
            prefix_len: header.destination_prefix_length,
            table: u32::from(header.table),
            hops: Vec::new(),
        };
        let (mut index, mut object) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(ip)) => {
                    route.destination = IpAddr::V4(*ip);
                }
                RouteAttribute::Destination(RouteAddress::Inet6(ip)) => {
                    route.destination = IpAddr::V6(*ip);
                }
                RouteAttribute::Table(table) => route.table = *table,
                RouteAttribute::Oif(oif) => index = Some(*oif),
                RouteAttribute::NhId(id) => object = Some(*id),
                RouteAttribute::MultiPath(hops) => {
                    route.hops.extend(hops.iter().map(|hop| Hop {
                        index: hop.interface_index,
                        gateway: gateway(&hop.attributes),
                    }));
                }
                _ => {}
            }
        }
        if let Some(index) = index {
            let gateway = gateway(&message.attributes);
            route.hops.push(Hop { index, gateway });
        }
        if !is_default(route.destination, route.prefix_len) {
            return Ok(None);
        }
        match object {
            Some(id) if route.hops.is_empty() => Err(DecodeError::from(format!(
                "a default route uses next hop object {id}, whose interface is unknown \
                 (ip nexthop show id {id}; sysctl net.ipv4.nexthop_compat_mode=1 resolves it)"
            ))),
            _ => Ok(Some(route)),
        }
    }
}

/// Longest prefix that may count as default, in bits.
const LONGEST: u8 = 4;

/// True if these destinations are half of all addresses in use, or more.
fn is_default(destination: IpAddr, prefix_len: u8) -> bool {
    match destination {
        IpAddr::V4(_) => prefix_len <= 1,
        // All global unicast addresses are in 2000::/3. VPNs set routes for it, or for its halves,
        // instead of ::/0.
        IpAddr::V6(ip) => {
            let global = ip.segments().first().is_some_and(|top| top >> 13 == 1);
            prefix_len <= 1
                || (prefix_len == 2 && ip.is_unspecified())
                || (prefix_len <= LONGEST && global)
        }
    }
}

fn gateway(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(ip))
        | RouteAttribute::Via(RouteVia::Inet(ip)) => Some(IpAddr::V4(*ip)),
        RouteAttribute::Gateway(RouteAddress::Inet6(ip))
        | RouteAttribute::Via(RouteVia::Inet6(ip)) => Some(IpAddr::V6(*ip)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::link::tests::{kind, link};
    use super::*;
    use netlink_packet_core::Emitable;
    use netlink_packet_route::link::{InfoKind, LinkAttribute};
    use netlink_packet_route::route::RouteNextHop;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn message(destination: &str, prefix_len: u8, attributes: Vec<RouteAttribute>) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = match ip(destination) {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.kind = RouteType::Unicast;
        message.header.table = 254;
        message.header.destination_prefix_length = prefix_len;
        message.attributes = attributes;
        if prefix_len != 0 {
            let destination = RouteAddress::from(ip(destination));
            message
                .attributes
                .push(RouteAttribute::Destination(destination));
        }
        message
    }

    fn parse(message: &RouteMessage) -> Result<Option<Route>, DecodeError> {
        let mut octets = vec![0; message.buffer_len()];
        message.emit(&mut octets);
        Route::parse(&octets, message.header.address_family)
    }

    #[test]
    fn routes_that_count_as_default() {
        for (destination, prefix_len, expected) in [
            ("0.0.0.0", 0, true),
            ("0.0.0.0", 1, true),
            ("128.0.0.0", 1, true),
            ("0.0.0.0", 2, false),
            ("10.0.0.0", 8, false),
            ("::", 0, true),
            ("::", 1, true),
            ("8000::", 1, true),
            ("::", 2, true),
            ("2000::", 3, true),
            ("3000::", 4, true),
            ("fc00::", 4, false),
            ("2001:db8::", 32, false),
        ] {
            let route = message(destination, prefix_len, vec![RouteAttribute::Oif(3)]);
            let found = parse(&route).unwrap();
            assert_eq!(found.is_some(), expected, "{destination}/{prefix_len}");
        }
    }

    #[test]
    fn hops_of_a_route() {
        let gateway = |text| RouteAttribute::Gateway(RouteAddress::from(ip(text)));
        let single = message(
            "0.0.0.0",
            0,
            vec![
                RouteAttribute::Oif(3),
                gateway("10.0.0.1"),
                RouteAttribute::Table(1000),
            ],
        );
        let route = parse(&single).unwrap().unwrap();
        assert_eq!(route.table, 1000);
        let hop = |index, gateway: &str| Hop {
            index,
            gateway: Some(ip(gateway)),
        };
        assert_eq!(route.hops, [hop(3, "10.0.0.1")]);

        let next = |index, via| {
            let mut next = RouteNextHop::default();
            next.interface_index = index;
            next.attributes = vec![gateway(via)];
            next
        };
        let hops = vec![next(3, "fe80::1"), next(4, "fe80::2")];
        let multiple = message("::", 0, vec![RouteAttribute::MultiPath(hops)]);
        let route = parse(&multiple).unwrap().unwrap();
        assert_eq!(route.hops, [hop(3, "fe80::1"), hop(4, "fe80::2")]);
        assert_eq!(route.table, 254);
    }

    #[test]
    fn dead_ends_do_not_count() {
        for kind in [
            RouteType::BlackHole,
            RouteType::Unreachable,
            RouteType::Prohibit,
            RouteType::Local,
        ] {
            let mut route = message("0.0.0.0", 0, vec![RouteAttribute::Oif(3)]);
            route.header.kind = kind;
            assert_eq!(parse(&route).unwrap(), None, "{kind:?}");
        }
    }

    #[test]
    fn undisclosed_next_hop_is_an_error() {
        let route = message("0.0.0.0", 0, vec![RouteAttribute::NhId(7)]);
        let error = parse(&route).unwrap_err().to_string();
        assert!(error.contains("next hop object 7"), "{error}");
        let resolved = message(
            "0.0.0.0",
            0,
            vec![RouteAttribute::NhId(7), RouteAttribute::Oif(3)],
        );
        assert!(parse(&resolved).unwrap().is_some());
    }

    #[test]
    fn interfaces_above() {
        let links = [
            link(1, vec![LinkAttribute::Controller(3)]),
            link(2, vec![LinkAttribute::Controller(3)]),
            // A bridge, with a VLAN on it, which has a macvlan on it.
            link(3, vec![kind(InfoKind::Bridge)]),
            link(4, vec![LinkAttribute::Link(3), kind(InfoKind::Vlan)]),
            link(5, vec![LinkAttribute::Link(4), kind(InfoKind::MacVlan)]),
            // Both ends of a veth.
            link(6, vec![LinkAttribute::Link(7), kind(InfoKind::Veth)]),
            link(7, vec![LinkAttribute::Link(6), kind(InfoKind::Veth)]),
            // On an interface with index 1 in another namespace.
            link(
                8,
                vec![
                    LinkAttribute::Link(1),
                    LinkAttribute::LinkNetNsId(0),
                    kind(InfoKind::Vlan),
                ],
            ),
            // A loop, which no kernel creates.
            link(9, vec![LinkAttribute::Controller(10)]),
            link(10, vec![LinkAttribute::Controller(9)]),
        ];
        assert_eq!(above(&links, 1), [1, 3, 4, 5]);
        assert_eq!(above(&links, 4), [4, 5]);
        assert_eq!(above(&links, 6), [6]);
        assert_eq!(above(&links, 9), [9, 10]);
        assert_eq!(above(&links, 99), [99]);
    }

    #[test]
    fn in_words() {
        let mut route = DefaultRoute {
            destination: ip("0.0.0.0"),
            prefix_len: 0,
            gateway: Some(ip("10.0.0.1")),
            via_interface: "br0".into(),
            table: 254,
        };
        assert_eq!(route.to_string(), "IPv4 default via 10.0.0.1 dev br0");
        route.prefix_len = 1;
        route.gateway = None;
        route.table = 7;
        assert_eq!(route.to_string(), "IPv4 0.0.0.0/1 dev br0 table 7");
    }

    proptest! {
        #[test]
        fn any_octets_end(
            family in prop_oneof![Just(2_u8), Just(10), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let mut octets = vec![family, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0];
            octets.extend(rest);
            let _ = Route::parse(&octets, AddressFamily::from(family));
        }
    }
}
