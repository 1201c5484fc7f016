//! What an interface is: name, driver, queues, MTU, speed, addresses; whether one may send on it ([`check_may_send`]), as
//! no default route leaves by it; what becomes of it meanwhile ([`LinkWatch`]); what it counted ([`Interface::counters`]).
//!
//! Facts come from the kernel by rtnetlink, and from sysfs where rtnetlink has none. All of it is about the network
//! namespace of the calling thread. Nothing here changes an interface.

mod check;
mod error;
mod link;
mod routes;
mod sysfs;
mod watch;

pub use check::{Refusal, RefusalKind, check_may_send};
pub use error::{InterfaceError, InterfaceErrorKind};
pub use netlink_packet_route::link::Stats64;
pub use routes::DefaultRoute;
pub use watch::{LinkEvent, LinkWatch};

use crate::netlink::Netlink;
use link::Link;
use netlink_packet_core::{NlasIterator, Parseable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeader, AddressMessage};
use netlink_packet_route::link::LinkLayerType;
use std::net::IpAddr;

/// What was true of an interface when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
    mac: Option<[u8; 6]>,
    mtu: u32,
    is_ethernet: bool,
    is_loopback: bool,
    up: bool,
    carrier: bool,
    driver: Option<String>,
    transmit_queues: u32,
    receive_queues: u32,
    speed: Option<u32>,
    addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// Bits that are the same for all of its network.
    pub prefix_len: u8,
}

impl Interface {
    /// The interface of that name (or alternative name).
    ///
    /// # Errors
    ///
    /// When there is none, and then it says which there are; and when the kernel cannot be asked.
    pub fn named(name: &str) -> Result<Self, InterfaceError> {
        let mut netlink = Netlink::open().map_err(|e| InterfaceError::query("interfaces", e))?;
        let links = link::all(&mut netlink)?;
        let Some(link) = links.iter().find(|link| link.is_called(name)) else {
            let known = links.into_iter().map(|link| link.name).collect();
            return Err(InterfaceError::missing(name, known));
        };
        let addresses = addresses(&mut netlink)?;
        Ok(Self::from_link(link, &addresses))
    }

    /// All interfaces, in the order of their indices.
    ///
    /// # Errors
    ///
    /// When the kernel cannot be asked.
    pub fn all() -> Result<Vec<Self>, InterfaceError> {
        let mut netlink = Netlink::open().map_err(|e| InterfaceError::query("interfaces", e))?;
        let links = link::all(&mut netlink)?;
        let addresses = addresses(&mut netlink)?;
        Ok(links
            .iter()
            .map(|link| Self::from_link(link, &addresses))
            .collect())
    }

    /// What the kernel counted at it (`IFLA_STATS64`) since it was made.
    ///
    /// What AF_XDP sends without copying may be missing here: drivers differ.
    ///
    /// # Errors
    ///
    /// When the interface is gone, or the kernel cannot be asked.
    pub fn counters(&self) -> Result<Stats64, InterfaceError> {
        let query = |e| InterfaceError::query("counters", e).on(&self.name);
        let mut netlink = Netlink::open().map_err(query)?;
        let link = link::by_index(&mut netlink, self.index).map_err(query)?;
        let link = link.ok_or_else(|| InterfaceError::gone(&self.name))?;
        Ok(link.counters.unwrap_or_default())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in its namespace, from 1.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Its Ethernet address; `None` if it has none.
    #[must_use]
    pub const fn mac(&self) -> Option<[u8; 6]> {
        self.mac
    }

    /// Octets of the largest packet, without the Ethernet header.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether it carries Ethernet frames (the loopback interface does).
    #[must_use]
    pub const fn is_ethernet(&self) -> bool {
        self.is_ethernet
    }

    /// Whether it is the loopback interface: frames come back, and AF_XDP cannot send there.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Whether it was set up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Whether there is something at the other end.
    #[must_use]
    pub const fn has_carrier(&self) -> bool {
        self.carrier
    }

    /// The driver; of a virtual interface its kind.
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Transmit queues in use.
    #[must_use]
    pub const fn transmit_queues(&self) -> u32 {
        self.transmit_queues
    }

    /// Receive queues in use.
    #[must_use]
    pub const fn receive_queues(&self) -> u32 {
        self.receive_queues
    }

    /// Link speed in Mbit/s; `None`: not known.
    #[must_use]
    pub const fn speed(&self) -> Option<u32> {
        self.speed
    }

    /// Its IPv4 and IPv6 addresses.
    #[must_use]
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    fn from_link(link: &Link, addresses: &[(u32, InterfaceAddress)]) -> Self {
        let sysfs = sysfs::Attributes::read(link);
        let loopback = link.is_loopback().then(|| "loopback".to_owned());
        Self {
            name: link.name.clone(),
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            is_ethernet: matches!(link.layer, LinkLayerType::Ether | LinkLayerType::Loopback),
            is_loopback: link.is_loopback(),
            up: link.is_up(),
            carrier: link.carrier,
            driver: sysfs.driver.or_else(|| link.kind.clone()).or(loopback),
            // Without sysfs: those there is room for.
            transmit_queues: sysfs.tx_queues.unwrap_or(link.tx_queues),
            receive_queues: sysfs.rx_queues.unwrap_or(link.rx_queues),
            speed: sysfs.speed,
            addresses: addresses
                .iter()
                .filter(|(index, _)| *index == link.index)
                .map(|(_, address)| *address)
                .collect(),
        }
    }
}

/// All addresses, each with the index of its interface.
fn addresses(netlink: &mut Netlink) -> Result<Vec<(u32, InterfaceAddress)>, InterfaceError> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let answers = netlink.dump(request, libc::RTM_NEWADDR);
    let answers = answers.map_err(|e| InterfaceError::query("addresses", e))?;
    Ok(answers
        .iter()
        .filter_map(|answer| address(answer))
        .collect())
}

/// Octets of `struct ifaddrmsg`.
const ADDRESS_HEADER_LEN: usize = 8;

/// An address without which the others still hold: what cannot be understood is left out.
fn address(payload: &[u8]) -> Option<(u32, InterfaceAddress)> {
    let header = AddressHeader::parse(payload).ok()?;
    let (mut local, mut address) = (None, None);
    for attribute in NlasIterator::new(payload.get(ADDRESS_HEADER_LEN..)?) {
        match AddressAttribute::parse(&attribute.ok()?) {
            // On a point-to-point link the address is that of the other side.
            Ok(AddressAttribute::Local(ip)) => local = Some(ip),
            Ok(AddressAttribute::Address(ip)) => address = Some(ip),
            _ => {}
        }
    }
    let address = InterfaceAddress {
        address: local.or(address)?,
        prefix_len: header.prefix_len,
    };
    Some((header.index, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Emitable;

    fn octets(local: Option<&str>, address: &str) -> Vec<u8> {
        let mut message = AddressMessage::default();
        message.header.index = 7;
        message.header.prefix_len = 24;
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        message
            .attributes
            .push(AddressAttribute::Address(ip(address)));
        if let Some(local) = local {
            message.attributes.push(AddressAttribute::Local(ip(local)));
        }
        let mut octets = vec![0; message.buffer_len()];
        message.emit(&mut octets);
        octets
    }

    #[test]
    fn own_address_of_a_point_to_point_link() {
        let (index, found) = address(&octets(Some("10.0.0.1"), "10.0.0.2")).unwrap();
        assert_eq!((index, found.prefix_len), (7, 24));
        assert_eq!(found.address.to_string(), "10.0.0.1");
        let (_, found) = address(&octets(None, "fd00::1")).unwrap();
        assert_eq!(found.address.to_string(), "fd00::1");
    }

    #[test]
    fn cut_addresses_are_left_out() {
        let whole = octets(Some("10.0.0.1"), "10.0.0.2");
        assert!(address(&whole).is_some());
        for len in 0..whole.len() {
            let cut = &whole[..len];
            assert!(address(cut).is_none() || len >= 16, "{len}");
        }
    }
}
