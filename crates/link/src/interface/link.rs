//! A link as described by rtnetlink (`RTM_NEWLINK`), decoded as far as it is needed here.

use super::InterfaceError;
use crate::netlink::Netlink;
use netlink_packet_core::{
    DecodeError, NlaBuffer, NlasIterator, ParseableParametrized, parse_string,
};
use netlink_packet_route::link::{
    LinkAttribute, LinkFlags, LinkHeader, LinkLayerType, LinkMessage, Prop, State, Stats64,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;

/// Length of `struct ifinfomsg`, in octets.
const HEADER_LEN: usize = 16;
/// Kinds whose IFLA_LINK is the peer, not the interface below.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) other_names: Vec<String>,
    pub(super) family: AddressFamily,
    pub(super) layer: LinkLayerType,
    pub(super) flags: LinkFlags,
    pub(super) mac: Option<[u8; 6]>,
    pub(super) mtu: u32,
    /// True if the driver reports that it is down because the interface below is down.
    pub(super) lower_down: bool,
    pub(super) carrier: bool,
    pub(super) kind: Option<String>,
    /// The interface below, of a VLAN, macvlan, ….
    pub(super) lower: Option<u32>,
    /// The peer, of a veth.
    pub(super) peer: Option<u32>,
    /// The other namespace that contains `lower` or `peer`.
    pub(super) lower_namespace: Option<i32>,
    pub(super) master: Option<u32>,
    pub(super) tx_queues: u32,
    pub(super) rx_queues: u32,
    pub(super) counters: Option<Stats64>,
}

impl Link {
    /// Decodes the payload of a message. Attributes that are not needed here may be malformed.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let header = LinkHeader::parse(payload)?;
        let mut link = Self {
            index: header.index,
            name: nameless(header.index),
            other_names: Vec::new(),
            family: header.interface_family,
            layer: header.link_layer_type,
            flags: header.flags,
            mac: None,
            mtu: 0,
            lower_down: false,
            carrier: header.flags.contains(LinkFlags::LowerUp),
            kind: None,
            lower: None,
            peer: None,
            lower_namespace: None,
            master: None,
            tx_queues: 0,
            rx_queues: 0,
            counters: None,
        };
        for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
            link.take(&attribute?)?;
        }
        if link.kind.as_deref().is_some_and(|k| PAIRS.contains(&k)) {
            link.peer = link.lower.take();
        }
        Ok(link)
    }

    fn take(&mut self, attribute: &NlaBuffer<&[u8]>) -> Result<(), DecodeError> {
        match attribute.kind() {
            // Only attributes that are used below must be parsed, so that a kernel newer than the
            // decoder does no harm.
            libc::IFLA_ADDRESS
            | libc::IFLA_IFNAME
            | libc::IFLA_MTU
            | libc::IFLA_OPERSTATE
            | libc::IFLA_CARRIER
            | libc::IFLA_LINK
            | libc::IFLA_LINK_NETNSID
            | libc::IFLA_MASTER
            | libc::IFLA_NUM_TX_QUEUES
            | libc::IFLA_NUM_RX_QUEUES
            | libc::IFLA_STATS64
            | libc::IFLA_PROP_LIST => {}
            libc::IFLA_LINKINFO => {
                // Only the kind: the rest is long and not needed here.
                for nested in NlasIterator::new(attribute.value()) {
                    let nested = nested?;
                    if nested.kind() == libc::IFLA_INFO_KIND {
                        self.kind = Some(parse_string(nested.value())?);
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        let above_zero = |index: u32| (index != 0).then_some(index);
        match LinkAttribute::parse_with_param(attribute, self.family)? {
            LinkAttribute::Address(octets) => self.mac = octets.try_into().ok(),
            LinkAttribute::IfName(name) => self.name = name,
            LinkAttribute::Mtu(mtu) => self.mtu = mtu,
            LinkAttribute::OperState(state) => self.lower_down = state == State::LowerLayerDown,
            LinkAttribute::Carrier(carrier) => self.carrier = carrier != 0,
            LinkAttribute::Link(index) => self.lower = above_zero(index),
            LinkAttribute::LinkNetNsId(id) => self.lower_namespace = Some(id),
            LinkAttribute::Controller(index) => self.master = above_zero(index),
            LinkAttribute::NumTxQueues(count) => self.tx_queues = count,
            LinkAttribute::NumRxQueues(count) => self.rx_queues = count,
            LinkAttribute::Stats64(stats) => self.counters = Some(stats),
            LinkAttribute::PropList(list) => {
                self.other_names = list
                    .into_iter()
                    .filter_map(|property| match property {
                        Prop::AltIfName(name) => Some(name),
                        _ => None,
                    })
                    .collect();
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.other_names.iter().any(|other| other == name)
    }

    pub(super) const fn is_up(&self) -> bool {
        self.flags.contains(LinkFlags::Up)
    }

    pub(super) const fn is_loopback(&self) -> bool {
        self.flags.contains(LinkFlags::Loopback)
    }
}

/// Returns a name for an interface whose name is unknown.
pub(super) fn nameless(index: u32) -> String {
    format!("interface {index}")
}

/// Returns all links in the order of their indices.
pub(super) fn all(netlink: &mut Netlink) -> Result<Vec<Link>, InterfaceError> {
    let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = netlink.dump(request, libc::RTM_NEWLINK);
    let answers = answers.map_err(|e| InterfaceError::query("interfaces", e))?;
    let links: Result<Vec<_>, _> = answers.iter().map(|answer| Link::parse(answer)).collect();
    let mut links = links.map_err(|e| InterfaceError::reply("interfaces", &e))?;
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// Returns the link with that index; `None` if there is none.
pub(super) fn by_index(netlink: &mut Netlink, index: u32) -> io::Result<Option<Link>> {
    let mut request = LinkMessage::default();
    request.header.index = index;
    match netlink.get(RouteNetlinkMessage::GetLink(request), libc::RTM_NEWLINK) {
        Ok(answer) => Link::parse(&answer)
            .map(Some)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string())),
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use netlink_packet_core::Emitable;
    use netlink_packet_route::link::{InfoKind, LinkInfo};
    use proptest::prelude::*;

    pub(in super::super) fn octets(index: u32, attributes: Vec<LinkAttribute>) -> Vec<u8> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.link_layer_type = LinkLayerType::Ether;
        message.header.flags = LinkFlags::Up | LinkFlags::LowerUp | LinkFlags::Running;
        message.attributes = attributes;
        let mut octets = vec![0; message.buffer_len()];
        message.emit(&mut octets);
        octets
    }

    pub(in super::super) fn link(index: u32, attributes: Vec<LinkAttribute>) -> Link {
        Link::parse(&octets(index, attributes)).unwrap()
    }

    pub(in super::super) fn kind(kind: InfoKind) -> LinkAttribute {
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)])
    }

    #[test]
    fn facts_of_a_veth() {
        let veth = link(
            5,
            vec![
                LinkAttribute::IfName("v0".into()),
                LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
                LinkAttribute::Mtu(9000),
                LinkAttribute::NumTxQueues(2),
                LinkAttribute::OperState(State::LowerLayerDown),
                LinkAttribute::Carrier(0),
                LinkAttribute::Link(4),
                LinkAttribute::LinkNetNsId(3),
                LinkAttribute::Controller(9),
                LinkAttribute::PropList(vec![Prop::AltIfName("a-longer-name".into())]),
                kind(InfoKind::Veth),
            ],
        );
        assert!(veth.is_called("v0") && veth.is_called("a-longer-name") && !veth.is_called("v"));
        assert_eq!(veth.mac, Some([2, 0, 0, 0, 0, 1]));
        assert_eq!((veth.mtu, veth.tx_queues), (9000, 2));
        assert_eq!((veth.lower, veth.peer), (None, Some(4)));
        assert_eq!((veth.lower_namespace, veth.master), (Some(3), Some(9)));
        assert!(veth.is_up() && !veth.carrier && veth.lower_down);
        assert_eq!(veth.kind.as_deref(), Some("veth"));
    }

    #[test]
    fn vlan_stands_on_another() {
        let vlan = link(5, vec![LinkAttribute::Link(4), kind(InfoKind::Vlan)]);
        assert_eq!((vlan.lower, vlan.peer), (Some(4), None));
        assert!(vlan.carrier, "from the flags");
        assert_eq!(vlan.name, "interface 5");
    }

    proptest! {
        #[test]
        fn parsing_any_octets_terminates(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Link::parse(&octets);
        }

        #[test]
        fn parsing_any_attribute_terminates(kind in 0..70_u16, value in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut message = octets(5, Vec::new());
            message.extend((4 + value.len() as u16).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
            let _ = Link::parse(&message);
        }
    }
}
