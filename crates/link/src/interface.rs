//! Properties of an interface: name, driver, queues, MTU, speed, addresses; permission to send on
//! it ([`check_may_send`]), as long as no default route uses it; changes of its state
//! ([`LinkWatch`]); and counters ([`Interface::counters`]).
//!
//! The facts come from the kernel by rtnetlink, and from sysfs if rtnetlink lacks them. All of them
//! apply to the network namespace of the calling thread. Nothing here changes an interface.

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

/// A snapshot of the properties of an interface.
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
    /// The IP address.
    pub address: IpAddr,
    /// Prefix length of its network, in bits.
    pub prefix_len: u8,
}

impl Interface {
    /// Looks up an interface by name or alternative name.
    ///
    /// # Errors
    ///
    /// There is no such interface (the error lists those that exist), or the kernel cannot be
    /// queried.
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

    /// Returns all interfaces in the order of their indices.
    ///
    /// # Errors
    ///
    /// The kernel cannot be queried.
    pub fn all() -> Result<Vec<Self>, InterfaceError> {
        let mut netlink = Netlink::open().map_err(|e| InterfaceError::query("interfaces", e))?;
        let links = link::all(&mut netlink)?;
        let addresses = addresses(&mut netlink)?;
        Ok(links
            .iter()
            .map(|link| Self::from_link(link, &addresses))
            .collect())
    }

    /// Returns the kernel's counters of the interface (`IFLA_STATS64`) since it was created.
    ///
    /// Frames sent by AF_XDP without copying may be missing: drivers differ.
    ///
    /// # Errors
    ///
    /// The interface is gone, or the kernel cannot be queried.
    pub fn counters(&self) -> Result<Stats64, InterfaceError> {
        let query = |e| InterfaceError::query("counters", e).on(&self.name);
        let mut netlink = Netlink::open().map_err(query)?;
        let link = link::by_index(&mut netlink, self.index).map_err(query)?;
        let link = link.ok_or_else(|| InterfaceError::gone(&self.name))?;
        Ok(link.counters.unwrap_or_default())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the index in its namespace, from 1.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the Ethernet address, if it has one.
    #[must_use]
    pub const fn mac(&self) -> Option<[u8; 6]> {
        self.mac
    }

    /// Returns the maximum packet length in octets, without the Ethernet header.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// True if it carries Ethernet frames (the loopback interface does).
    #[must_use]
    pub const fn is_ethernet(&self) -> bool {
        self.is_ethernet
    }

    /// True if it is the loopback interface: frames come back, and AF_XDP cannot send there.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// True if it is set up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// True if it has a carrier: something is at the other end.
    #[must_use]
    pub const fn has_carrier(&self) -> bool {
        self.carrier
    }

    /// Returns the driver, or the kind of a virtual interface.
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Returns the number of transmit queues in use.
    #[must_use]
    pub const fn transmit_queues(&self) -> u32 {
        self.transmit_queues
    }

    /// Returns the number of receive queues in use.
    #[must_use]
    pub const fn receive_queues(&self) -> u32 {
        self.receive_queues
    }

    /// Returns the link speed in Mbit/s; `None` if unknown.
    #[must_use]
    pub const fn speed(&self) -> Option<u32> {
        self.speed
    }

    /// Returns its IPv4 and IPv6 addresses.
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
            // Without sysfs: the maximum number of queues.
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

/// Returns all addresses, each with the index of its interface.
fn addresses(netlink: &mut Netlink) -> Result<Vec<(u32, InterfaceAddress)>, InterfaceError> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let answers = netlink.dump(request, libc::RTM_NEWADDR);
    let answers = answers.map_err(|e| InterfaceError::query("addresses", e))?;
    Ok(answers
        .iter()
        .filter_map(|answer| address(answer))
        .collect())
}

/// Length of `struct ifaddrmsg`, in octets.
const ADDRESS_HEADER_LEN: usize = 8;

/// Parses an address. One that cannot be parsed is ignored: the others are still valid.
fn address(payload: &[u8]) -> Option<(u32, InterfaceAddress)> {
    let header = AddressHeader::parse(payload).ok()?;
    let (mut local, mut address) = (None, None);
    for attribute in NlasIterator::new(payload.get(ADDRESS_HEADER_LEN..)?) {
        match AddressAttribute::parse(&attribute.ok()?) {
            // On a point-to-point link, `Address` is that of the peer.
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
