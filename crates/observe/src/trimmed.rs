//! Packets that switches have trimmed, by flow and capture point: those forwarded to the receiver,
//! and those sent back to the source of the data. Both keep the BTH, so the flow's data tells them
//! apart.

use crate::bounded::Bounded;
use crate::data::FlowKey;

/// Maximum number of flows and capture points with trimmed packets that are remembered.
const KEPT: usize = 1024;

/// Destination of a trimmed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The receiver of the data.
    Receiver,
    /// The source of the data.
    Source,
    /// One of them: no data of the flow was captured, or the hosts have a flow in each direction
    /// whose QPs have the same number.
    Unknown,
}

/// Trimmed packets of one flow at one capture point. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Those sent on to the receiver.
    pub to_receiver: u64,
    /// Those sent back to the source.
    pub to_source: u64,
    /// Those of which that is unknown.
    pub unknown: u64,
    /// Time of the first one.
    pub first: u64,
    /// Time of the latest one.
    pub last: u64,
}

/// Trimmed packets by flow and interface.
///
/// Bounded: flows whose last trimmed packet is oldest are forgotten first.
#[derive(Debug)]
pub struct TrimmedTable(Bounded<(FlowKey, u32), Trimmed>);

impl Default for TrimmedTable {
    fn default() -> Self {
        Self(Bounded::new(KEPT))
    }
}

impl TrimmedTable {
    /// Counts a trimmed packet of `flow`, captured on `interface` at `at`.
    #[cold]
    pub fn add(&mut self, at: u64, flow: FlowKey, interface: u32, destination: Destination) {
        let trimmed = (self.0).get_or_insert_with((flow, interface), at, || Trimmed {
            first: at,
            last: at,
            ..Trimmed::default()
        });
        let count = match destination {
            Destination::Receiver => &mut trimmed.to_receiver,
            Destination::Source => &mut trimmed.to_source,
            Destination::Unknown => &mut trimmed.unknown,
        };
        *count += 1;
        trimmed.first = trimmed.first.min(at);
        trimmed.last = trimmed.last.max(at);
    }

    /// Returns flows and interfaces with their trimmed packets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&FlowKey, u32, &Trimmed)> {
        let each = self.0.iter();
        each.map(|((flow, interface), trimmed)| (flow, *interface, trimmed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Qp;
    use std::net::IpAddr;

    #[test]
    fn trimmed_packets_are_counted_by_flow_and_interface() {
        let mut table = TrimmedTable::default();
        let flow = |number: u32| FlowKey {
            sender: IpAddr::from([10, 0, 0, 1]),
            receiver: IpAddr::from([10, 0, 0, 2]),
            receiver_qp: Qp::truncate(number),
        };
        for (at, destination) in [
            (5, Destination::Receiver),
            (3, Destination::Source),
            (9, Destination::Source),
            (7, Destination::Unknown),
        ] {
            table.add(at, flow(1), 0, destination);
        }
        let (key, interface, trimmed) = table.iter().next().unwrap();
        assert_eq!((*key, interface), (flow(1), 0));
        let counts = (trimmed.to_receiver, trimmed.to_source, trimmed.unknown);
        assert_eq!(counts, (1, 2, 1));
        assert_eq!((trimmed.first, trimmed.last), (3, 9));
        table.add(9, flow(1), 1, Destination::Receiver);
        assert_eq!(table.iter().count(), 2);
        for number in 0..5_000 {
            table.add(10, flow(number), 0, Destination::Unknown);
        }
        assert!(table.iter().count() <= KEPT);
    }
}
