//! Watches an interface in use: going down, losing its carrier, or disappearing.

use super::link::{self, Link};
use super::{Interface, InterfaceError};
use crate::netlink::{Netlink, messages};
use netlink_packet_route::AddressFamily;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a message that is read, in octets. For longer ones the state is queried
/// instead.
const ROOM: usize = 32 * 1024;
/// Maximum number of messages read by one poll, most of which are about other interfaces.
const PER_POLL: usize = 64;
/// Maximum number of messages discarded after a loss; more than a socket holds.
const BACKLOG: usize = 100_000;

/// A change of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Deleted, unplugged, moved to another namespace or renamed: its name and index no longer
    /// belong to one interface. No further event follows.
    Gone,
    /// Set down. When it is being deleted, [`Gone`](Self::Gone) follows shortly.
    Down,
    /// Lost its carrier: nothing is at the other end.
    NoCarrier,
    /// Able to send again.
    Back,
}

impl LinkEvent {
    /// True if the event ends a run on that interface.
    #[must_use]
    pub const fn ends_run(self) -> bool {
        !matches!(self, Self::Back)
    }

    /// Returns the event that led to the state of a link.
    const fn to(link: &Link) -> Self {
        match (link.is_up(), link.carrier) {
            (false, _) => Self::Down,
            (true, false) => Self::NoCarrier,
            (true, true) => Self::Back,
        }
    }
}

impl fmt::Display for LinkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "it is gone: deleted, unplugged, renamed or moved to another namespace",
            Self::Down => "it was set down",
            Self::NoCarrier => "it has no carrier: the cable is out, or the other end is down",
            Self::Back => "it is back",
        })
    }
}

/// Listens to the kernel's notifications about links (rtnetlink group `RTMGRP_LINK`), in the
/// namespace of the thread that created it, whichever thread polls.
pub struct LinkWatch {
    socket: Socket,
    netlink: Netlink,
    buffer: Vec<u8>,
    /// True if the state must be queried.
    stale: bool,
    link: LinkState,
}

impl LinkWatch {
    /// Watches an interface. It is assumed to be able to send; the first poll reports if it is not.
    ///
    /// # Errors
    ///
    /// The kernel's notifications are not available.
    pub fn new(interface: &Interface) -> Result<Self, InterfaceError> {
        let failed = |e| InterfaceError::query("changes", e).on(&interface.name);
        let socket = subscribe().map_err(failed)?;
        let netlink = Netlink::open().map_err(failed)?;
        Ok(Self {
            socket,
            netlink,
            buffer: Vec::with_capacity(ROOM),
            // Queried after subscribing, so that no change is missed.
            stale: true,
            link: LinkState::new(interface.index, &interface.name),
        })
    }

    /// Returns the next event since the last poll; `None` if there is none, at the cost of one
    /// system call that does not block.
    ///
    /// Returns one event at a time: poll again after an event.
    pub fn poll(&mut self) -> Option<LinkEvent> {
        if let Some(event) = self.link.next_event() {
            return Some(event);
        }
        if self.link.state == LinkEvent::Gone {
            return None;
        }
        for _ in 0..PER_POLL {
            if self.stale {
                self.refresh();
            } else {
                match self.receive() {
                    Ok(true) => self.link.take_datagram(&self.buffer),
                    // Lost, or too long to be read: the state must be queried.
                    Ok(false) => self.resync(),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                    Err(_) => self.resync(),
                }
            }
            let event = self.link.next_event();
            if event.is_some() {
                return event;
            }
            if self.stale {
                // The kernel did not answer; it may at the next poll.
                return None;
            }
        }
        None
    }

    /// Waits for the final event, at most for `patience`: an interface that is being deleted is
    /// [`Down`](LinkEvent::Down) first.
    pub fn wait_for_final_event(&mut self, event: LinkEvent, patience: Duration) -> LinkEvent {
        let begin = Instant::now();
        let mut last = event;
        while last != LinkEvent::Gone && begin.elapsed() < patience {
            match self.poll() {
                Some(event) => last = event,
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
        last
    }

    /// Receives a datagram; returns true if the buffer now holds all of it.
    fn receive(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let room = self.buffer.capacity();
        let len = self.socket.recv(&mut self.buffer, libc::MSG_TRUNC)?;
        Ok(len <= room)
    }

    /// Recovers after a loss. Queued messages are older than the lost ones, and so must not
    /// determine the state.
    fn resync(&mut self) {
        for _ in 0..BACKLOG {
            match self.receive() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                _ => {}
            }
        }
        self.refresh();
    }

    fn refresh(&mut self) {
        match link::by_index(&mut self.netlink, self.link.index) {
            Ok(Some(link)) => {
                self.link.take(&link);
                self.stale = false;
            }
            Ok(None) => {
                self.link.state = LinkEvent::Gone;
                self.stale = false;
            }
            Err(_) => self.stale = true,
        }
    }
}

fn subscribe() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.set_non_blocking(true)?;
    socket.bind(&SocketAddr::new(0, libc::RTMGRP_LINK as u32))?;
    // Connected, so that only the kernel's messages are received.
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// State of the interface, and the last state reported.
#[derive(Debug)]
struct LinkState {
    index: u32,
    name: String,
    state: LinkEvent,
    reported: LinkEvent,
}

impl LinkState {
    fn new(index: u32, name: &str) -> Self {
        Self {
            index,
            name: name.to_owned(),
            state: LinkEvent::Back,
            reported: LinkEvent::Back,
        }
    }

    fn next_event(&mut self) -> Option<LinkEvent> {
        let changed = self.state != self.reported;
        self.reported = self.state;
        changed.then_some(self.state)
    }

    fn take_datagram(&mut self, datagram: &[u8]) {
        for message in messages(datagram) {
            let gone = match message.message_type() {
                libc::RTM_NEWLINK => false,
                libc::RTM_DELLINK => true,
                _ => continue,
            };
            let Ok(link) = Link::parse(message.payload()) else {
                continue;
            };
            // Bridges send notifications about their ports to the same group; a port that leaves a
            // bridge is not gone.
            if link.index != self.index || link.family != AddressFamily::Unspec {
                continue;
            }
            if gone {
                self.state = LinkEvent::Gone;
            } else {
                self.take(&link);
            }
        }
    }

    fn take(&mut self, link: &Link) {
        // The index may be reused by another interface; this one is not back then.
        if self.state == LinkEvent::Gone {
            return;
        }
        self.state = if self.name == link.name {
            LinkEvent::to(link)
        } else {
            LinkEvent::Gone
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Emitable;
    use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

    const UP: LinkFlags = LinkFlags::Up.union(LinkFlags::LowerUp);

    fn message(kind: u16, family: AddressFamily, index: u32, flags: LinkFlags) -> Vec<u8> {
        named(kind, family, index, flags, "v0")
    }

    fn named(kind: u16, family: AddressFamily, index: u32, flags: LinkFlags, n: &str) -> Vec<u8> {
        let mut message = LinkMessage::default();
        message.header.interface_family = family;
        message.header.index = index;
        message.header.flags = flags;
        message.attributes = vec![LinkAttribute::IfName(n.into())];
        let len = message.buffer_len();
        let mut octets = Vec::new();
        octets.extend((16 + len as u32).to_ne_bytes());
        octets.extend(kind.to_ne_bytes());
        octets.resize(16 + len, 0);
        message.emit(&mut octets[16..]);
        octets
    }

    fn watched() -> LinkState {
        LinkState::new(7, "v0")
    }

    fn events(link: &mut LinkState, datagram: &[u8]) -> Vec<LinkEvent> {
        link.take_datagram(datagram);
        std::iter::from_fn(|| link.next_event()).collect()
    }

    #[test]
    fn states_and_events() {
        let mut link = watched();
        let new = |flags| message(libc::RTM_NEWLINK, AddressFamily::Unspec, 7, flags);
        assert_eq!(events(&mut link, &new(UP)), []);
        assert_eq!(
            events(&mut link, &new(LinkFlags::Up)),
            [LinkEvent::NoCarrier]
        );
        assert_eq!(events(&mut link, &new(LinkFlags::Up)), []);
        assert_eq!(
            events(&mut link, &new(LinkFlags::empty())),
            [LinkEvent::Down]
        );
        assert_eq!(events(&mut link, &new(UP)), [LinkEvent::Back]);
        let gone = message(libc::RTM_DELLINK, AddressFamily::Unspec, 7, UP);
        assert_eq!(events(&mut link, &gone), [LinkEvent::Gone]);
        assert_eq!(
            events(&mut link, &new(UP)),
            [],
            "another one with its number"
        );
    }

    #[test]
    fn not_about_this_interface() {
        let mut link = watched();
        let other = message(libc::RTM_DELLINK, AddressFamily::Unspec, 8, UP);
        let port_left = message(libc::RTM_DELLINK, AddressFamily::Bridge, 7, UP);
        let address = message(libc::RTM_NEWADDR, AddressFamily::Unspec, 7, UP);
        for datagram in [other, port_left, address, vec![0; 40], Vec::new()] {
            assert_eq!(events(&mut link, &datagram), []);
        }
    }

    #[test]
    fn renamed() {
        let mut link = watched();
        let (new, unspec) = (libc::RTM_NEWLINK, AddressFamily::Unspec);
        let renamed = named(new, unspec, 7, LinkFlags::empty(), "v1");
        assert_eq!(events(&mut link, &renamed), [LinkEvent::Gone]);
    }
}
