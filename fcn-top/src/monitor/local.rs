//! Counts of packets on the interfaces of this host's RDMA devices, for comparison with the
//! devices' counters: every packet there counts, including those captured elsewhere before.

use fcn_observe::Ecn;
use fcn_wire::{Frame, Kind, Notification};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Maximum number of watched addresses.
const MAX_INTERFACES: usize = 65_536;

/// An interface's own traffic since it is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalTraffic {
    /// Plain CNPs to one of its addresses.
    pub cnps_to: u64,
    /// Fast CNPs to one of them: NICs may or may not count these as CNPs.
    pub fast_cnps_to: u64,
    /// Plain CNPs from one of them.
    pub cnps_from: u64,
    /// RoCEv2 packets of any kind to one of them that are marked CE.
    pub marked_to: u64,
}

/// The watched interfaces.
#[derive(Debug, Default)]
pub struct LocalInterfaces {
    /// Indices in the list, by interface index and address.
    by: FxHashMap<(u32, IpAddr), u32>,
    list: Vec<(u32, LocalTraffic)>,
}

impl LocalInterfaces {
    /// Watches traffic on the interface at index `place` to and from these addresses. Returns the
    /// counts so far, and true if an address is new, so that the counts may be too low.
    pub fn watch(&mut self, place: u32, addresses: &[IpAddr]) -> (LocalTraffic, bool) {
        let at = self.list.iter().position(|(other, _)| *other == place);
        let at = at.unwrap_or_else(|| {
            self.list.push((place, LocalTraffic::default()));
            self.list.len() - 1
        });
        let before = self.by.len();
        for address in addresses {
            if self.by.len() < MAX_INTERFACES {
                self.by.insert((place, *address), at as u32);
            }
        }
        (self.list[at].1, self.by.len() > before)
    }

    #[inline]
    pub fn notified(&mut self, place: u32, notification: &Notification) {
        if self.by.is_empty() {
            return;
        }
        let fast = matches!(notification.kind, Kind::FastCnp1 | Kind::FastCnp2);
        if fast || notification.kind == Kind::Cnp {
            self.count(place, notification.destination, |seen| match fast {
                true => &mut seen.fast_cnps_to,
                false => &mut seen.cnps_to,
            });
        }
        if notification.kind == Kind::Cnp {
            self.count(place, notification.notifier, |seen| &mut seen.cnps_from);
        }
    }

    #[inline]
    pub fn roce(&mut self, place: u32, frame: &Frame<'_>) {
        if !self.by.is_empty()
            && frame.is_roce()
            && let Some(ip) = frame.ip()
            && Ecn::from_bits(ip.ecn()) == Ecn::Ce
        {
            self.count(place, ip.destination, |seen| &mut seen.marked_to);
        }
    }

    fn count(
        &mut self,
        place: u32,
        address: IpAddr,
        what: impl FnOnce(&mut LocalTraffic) -> &mut u64,
    ) {
        let at = self.by.get(&(place, address));
        if let Some((_, seen)) = at.and_then(|at| self.list.get_mut(*at as usize)) {
            *what(seen) += 1;
        }
    }
}
