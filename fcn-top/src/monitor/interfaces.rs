//! Where packets come from, and how many of which sort.

use super::windows::Windows;
use crate::packet::Packet;
use crate::record::InterfaceRecord;
use crate::tables::Dropped;
use std::sync::Arc;

/// Interfaces told apart: as many as a capture file may have. What comes from further ones counts as the last one's.
const MOST: usize = 65_536;

/// What a packet turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A congestion notification.
    Notification,
    /// RoCEv2 data.
    Data,
    /// Anything else that can be read.
    Other,
    /// Too little of it was captured.
    Cut,
    /// It contradicts itself, is of a link type that is not read, or cannot be read as the notification that it was meant as.
    Undecodable,
}

#[derive(Clone, Debug)]
struct Interface {
    name: Arc<str>,
    state: &'static str,
    about: Arc<str>,
    dropped: Dropped,
    /// By [`Sort`].
    sorts: [u64; 5],
    octets: u64,
    windows: Windows,
}

impl Interface {
    fn new(number: usize) -> Self {
        Self {
            name: format!("#{number}").into(),
            state: "up",
            about: Arc::from(""),
            dropped: (None, None),
            sorts: [0; 5],
            octets: 0,
            windows: Windows::default(),
        }
    }

    fn record(&self, now: u64, since: u64) -> InterfaceRecord {
        let of = |sort: Sort| self.sorts.get(sort as usize).copied().unwrap_or(0);
        InterfaceRecord {
            name: Arc::clone(&self.name),
            state: self.state,
            received: self.sorts.iter().sum(),
            octets: self.octets,
            rate_1s: self.windows.rate_1s(now, since),
            notifications: of(Sort::Notification),
            data: of(Sort::Data),
            other: of(Sort::Other),
            cut: of(Sort::Cut),
            undecodable: of(Sort::Undecodable),
            dropped_kernel: self.dropped.0,
            dropped_interface: self.dropped.1,
            about: Arc::clone(&self.about),
        }
    }
}

/// The interfaces by number.
#[derive(Debug, Default)]
pub struct Interfaces {
    list: Vec<Interface>,
}

impl Interfaces {
    fn entry(&mut self, number: u32) -> &mut Interface {
        let place = (number as usize).min(MOST - 1);
        while self.list.len() <= place {
            let new = Interface::new(self.list.len());
            self.list.push(new);
        }
        &mut self.list[place]
    }

    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, packet: &Packet<'_>, sort: Sort) {
        let interface = match self.list.get_mut(packet.interface as usize) {
            Some(interface) => interface,
            None => self.entry(packet.interface),
        };
        if let Some(count) = interface.sorts.get_mut(sort as usize) {
            *count += 1;
        }
        interface.octets += packet.octets();
        interface.windows.add(packet.at);
    }

    /// Whether there are several.
    #[inline]
    pub const fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// Says what an interface is called, and what else there is to say about it.
    pub fn know(&mut self, number: u32, name: &str, about: &str) {
        let interface = self.entry(number);
        if !name.is_empty() {
            interface.name = name.into();
        }
        interface.about = about.into();
    }

    /// Says how an interface is; what is `None` stays as it was.
    pub fn set_state(
        &mut self,
        number: u32,
        state: &'static str,
        about: Option<&str>,
        dropped: Dropped,
    ) {
        let interface = self.entry(number);
        interface.state = state;
        if let Some(about) = about {
            interface.about = about.into();
        }
        let (kernel, by_interface) = dropped;
        let before = interface.dropped;
        interface.dropped = (kernel.or(before.0), by_interface.or(before.1));
    }

    /// What an interface is called.
    pub fn name(&self, number: u32) -> Option<Arc<str>> {
        let interface = self.list.get((number as usize).min(MOST - 1));
        interface.map(|interface| Arc::clone(&interface.name))
    }

    /// The interfaces, as they are shown at `now`, where packets were watched `since`.
    pub fn records(&self, now: u64, since: u64) -> Vec<InterfaceRecord> {
        self.list
            .iter()
            .map(|interface| interface.record(now, since))
            .collect()
    }
}
