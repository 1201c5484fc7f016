//! Advertisements of proxy nodes: IS-IS and OSPF flooded from switch to switch, BGP sent to each
//! switch. The messages are those of `fcn_wire::pnc`; adjacencies, sessions and refreshes are not
//! simulated.

use super::event::Event;
use super::links::Links;
use super::packet::{NONE, Octets, Packet};
use super::{State, World};
use crate::routing::{self, ALL_L2, METRIC};
use crate::scenario::model::{NodeKind, ProxyKnownBy, ProxyNode};
use fcn_node::proxy_directory::Reading;
use fcn_wire::compose::{self, Part, UdpChecksum};
use fcn_wire::pnc::isis::ReachKind;
use fcn_wire::pnc::{Level, Prefix, bgp, isis, ospf2, ospf3};
use fcn_wire::{Frame, LinkType, Profile};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// MAC address of the OSPF routers' IPv4 group.
const ALL_SPF4_MAC: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x05];
/// MAC address of the OSPF routers' IPv6 group.
const ALL_SPF6_MAC: [u8; 6] = [0x33, 0x33, 0x00, 0x00, 0x00, 0x05];
/// The OSPF area: the backbone.
const AREA: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
/// TCP port of a proxy's end of its BGP sessions.
const BGP_SOURCE: u16 = 50_179;

/// Returns true if a proxy is advertised by routing.
pub const fn is_advertised(proxy: &ProxyNode) -> bool {
    !matches!(
        proxy.known_by,
        ProxyKnownBy::Configuration | ProxyKnownBy::Option
    )
}

impl<L: Links> World<'_, L> {
    /// Sends a proxy node's advertisement, and schedules the next one.
    pub(super) fn advertise(&mut self, node: u32) {
        let simulation = self.simulation;
        let Some(NodeKind::Switch(switch)) = simulation.nodes.get(node as usize).map(|n| &n.kind)
        else {
            return;
        };
        let Some(proxy) = &switch.proxy else { return };
        let interval = simulation.advertise_interval;
        let round = (self.now.0 / interval.0.max(1)) as u32 + 1;
        self.events
            .plan(self.now + interval, Event::Advertise(node));
        if proxy.known_by == ProxyKnownBy::Bgp {
            self.advertise_bgp(node, proxy, round);
            return;
        }
        let router = Ipv4Addr::from(0x0A00_0000 | (node + 1));
        let built = match proxy.known_by {
            ProxyKnownBy::IsIs => isis_lsp(node, proxy, round),
            ProxyKnownBy::Ospf2 => ospf2_update(router, proxy, round),
            _ => ospf3_update(node, router, proxy, round),
        };
        let Some(mut octets) = self.built("a proxy node's advertisement", built) else {
            return;
        };
        octets.flooded = Some((node, round));
        let flooded = &mut self.nodes[node as usize].switch().flooded;
        flooded.insert(node, round);
        self.pass_on(node, NONE, &octets);
    }

    /// Processes a flooded message at a switch: learns from it, and forwards it if it is new.
    pub(super) fn flood(&mut self, node: u32, came_by: u32, packet: Packet, origin: (u32, u32)) {
        let octets = self.octets.at(packet.extra).cloned();
        self.discard(&packet);
        let Some(octets) = octets else { return };
        let now = self.now.into();
        let state = self.nodes[node as usize].switch();
        // Rounds count from 1.
        let known = state.flooded.entry(origin.0).or_default();
        if *known >= origin.1 {
            return;
        }
        *known = origin.1;
        let header = Part::Ethernet {
            source: [0; 6],
            destination: octets.multicast.unwrap_or_default(),
        };
        let payload = Part::Payload {
            ether_type: octets.ether_type,
            protocol: 0,
            bytes: &octets.bytes,
        };
        let profile = &self.simulation.profile;
        if let Ok(whole) = compose::packet(&[header, payload], profile) {
            let frame = Frame::parse(&whole, whole.len(), LinkType::Ethernet, profile);
            state.congestion.on_transit(now, &frame);
        }
        self.pass_on(node, came_by, &octets);
    }

    /// Sends a flooded message to every neighbouring switch except the one it came from.
    fn pass_on(&mut self, node: u32, came_by: u32, octets: &Octets) {
        for port in self.nodes[node as usize].switch().ports.clone() {
            let peer = self.ports[port as usize].peer;
            if port == came_by || !matches!(self.nodes[peer as usize], State::Switch(_)) {
                continue;
            }
            let mut packet = self.frame_to(peer, octets.clone());
            // Routing protocols are link-local.
            packet.hops = 1;
            self.ports[port as usize].enqueue(packet);
            self.kick(port);
        }
    }

    /// Sends an UPDATE to every other switch: the served prefixes with the proxy as next hop, which
    /// has the capability.
    fn advertise_bgp(&mut self, node: u32, proxy: &ProxyNode, round: u32) {
        let simulation = self.simulation;
        let built = update_of(proxy, &simulation.profile);
        let Some(update) = self.built("a proxy node's BGP UPDATE", built) else {
            return;
        };
        for (peer, values) in simulation.nodes.iter().enumerate() {
            if peer as u32 == node || !matches!(values.kind, NodeKind::Switch(_)) {
                continue;
            }
            let source = proxy.config.address;
            let sequence = (round - 1).wrapping_mul(update.len() as u32);
            let parts = [
                Part::v6(source, values.ipv6, 0),
                Part::Tcp {
                    source: BGP_SOURCE,
                    destination: bgp::PORT,
                    sequence: sequence.wrapping_add(1),
                    acknowledgement: 1,
                    push: true,
                    window: 16_384,
                    checksum: UdpChecksum::Compute,
                },
                Part::Bytes(&update),
            ];
            let Ok(bytes) = compose::packet(&parts, &simulation.profile) else {
                continue;
            };
            let octets = Octets::ip(bytes);
            let packet = self.frame_to(peer as u32, octets);
            self.originate(node, packet);
        }
    }
}

/// Returns the prefixes that a proxy advertises: its own host prefixes and those that it serves.
/// Depending on the reading of the draft, one group or the other has the flags `pnc`.
fn prefixes(
    proxy: &ProxyNode,
    pnc: &'static [u8],
) -> impl Iterator<Item = (Prefix, Option<&'static [u8]>)> {
    let [own, served] = match proxy.reading {
        Reading::ProxyPrefix => [Some(pnc), None],
        Reading::SenderPrefix => [None, Some(pnc)],
    };
    let ipv4 = proxy.config.address4.map(IpAddr::V4);
    let hosts = [Some(proxy.config.address.into()), ipv4];
    let hosts = hosts.into_iter().flatten().map(Prefix::host);
    let serves = proxy.serves.iter().map(move |prefix| (*prefix, served));
    hosts.map(move |prefix| (prefix, own)).chain(serves)
}

fn isis_lsp(node: u32, proxy: &ProxyNode, round: u32) -> fcn_wire::Result<Octets> {
    let prefixes: Vec<_> = prefixes(proxy, &[isis::FLAG_PNC])
        .map(|(prefix, flags)| routing::reach(ReachKind::Plain, prefix, flags))
        .collect();
    Ok(Octets {
        bytes: routing::lsp(Level::L2, node + 1, round, &prefixes)?,
        ether_type: 0,
        multicast: Some(ALL_L2),
        ..Octets::default()
    })
}

fn ospf2_update(router: Ipv4Addr, proxy: &ProxyNode, round: u32) -> fcn_wire::Result<Octets> {
    let prefixes: Vec<_> = prefixes(proxy, &ospf2::FLAGS_PNC_ONLY)
        .filter(|(prefix, _)| prefix.address().is_ipv4())
        .map(|(prefix, flags)| ospf2::ExtendedPrefixRepr {
            route_type: ospf2::INTRA_AREA,
            prefix,
            tlv_flags: 0x40,
            flags,
        })
        .collect();
    let update = routing::ospf2_update((router, AREA), round - 1, &prefixes)?;
    let source = proxy.config.address4.unwrap_or(router);
    ospf(&routing::ospf2(source, &update), ALL_SPF4_MAC)
}

fn ospf3_update(
    node: u32,
    router: Ipv4Addr,
    proxy: &ProxyNode,
    round: u32,
) -> fcn_wire::Result<Octets> {
    let prefixes: Vec<_> = prefixes(proxy, &ospf3::FLAGS_PNC_ONLY)
        .filter(|(prefix, _)| prefix.address().is_ipv6())
        .map(|(prefix, flags)| ospf3::PrefixRepr {
            prefix,
            options: 0,
            metric: METRIC,
            flags,
        })
        .collect();
    let source = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, node as u16 + 1);
    let kind = ospf3::LsaKind::IntraAreaPrefix;
    let update = routing::ospf3_update((router, AREA), source, kind, round - 1, &prefixes)?;
    ospf(&routing::ospf3(source, &update), ALL_SPF6_MAC)
}

fn ospf(parts: &[Part<'_>], mac: [u8; 6]) -> fcn_wire::Result<Octets> {
    Ok(Octets {
        multicast: Some(mac),
        ..Octets::ip(compose::packet(parts, &Profile::DEFAULT)?)
    })
}

fn update_of(proxy: &ProxyNode, profile: &Profile) -> fcn_wire::Result<Vec<u8>> {
    let next_hop = IpAddr::V6(proxy.config.address);
    let pnc = [bgp::CharacteristicRepr {
        code: profile.bgp_pnc_characteristic,
        value: &[],
    }];
    let served = proxy.serves.iter().copied();
    let served: Vec<_> = served.filter(|p| p.address().is_ipv6()).collect();
    routing::update(&served, next_hop, next_hop, &pnc)
}
