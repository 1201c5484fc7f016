//! Assignment of frames to interfaces and queues: two interfaces by direction, several queues by
//! flow, so that the frames of a flow keep their order.

use fcn_tool::quantity;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Frame, Layer, LinkType, Message, Profile};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

/// Maximum number of conversations and flows remembered; beyond that, the addresses decide.
const MOST: usize = 1 << 20;

/// Division of frames between two interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// The host that sends first in a conversation of two hosts is the client: its frames leave by
    /// the first interface, those of the other by the second.
    FirstSeen,
    /// Frames from these prefixes leave by the first interface.
    Prefixes(Vec<Prefix>),
    /// Frames captured on the first interface of the capture leave by the first, all others by the
    /// second.
    Interface,
}

impl Sides {
    /// Parses `first-seen`, `interface`, or prefixes separated by commas.
    ///
    /// # Errors
    /// The text is none of them.
    pub fn read(text: &str) -> Result<Self, String> {
        match text {
            "first-seen" => Ok(Self::FirstSeen),
            "interface" => Ok(Self::Interface),
            prefixes => {
                let prefixes: Result<_, _> = prefixes.split(',').map(quantity::prefix).collect();
                prefixes
                    .map(Self::Prefixes)
                    .map_err(|error| format!("{error}; or first-seen, or interface"))
            }
        }
    }
}

/// Assignment of frames to interfaces and queues.
#[derive(Debug)]
pub struct Splitting {
    sides: Option<Sides>,
    /// Number of queues of each interface.
    queues: usize,
    profile: Profile,
    /// First sender of each conversation: the hash of both ends, and that of the first sender.
    first: FxHashMap<u64, u64>,
    /// Side of each MAC address from which IP packets came, for frames without IP.
    macs: FxHashMap<[u8; 6], usize>,
    /// Capture interface whose frames leave by the first interface.
    interface: Option<u32>,
    /// Queue of each flow, assigned in turn.
    flows: FxHashMap<u64, usize>,
}

impl Splitting {
    /// Creates an assignment to `queues` queues of each interface, of which there are two if
    /// `sides` is given.
    #[must_use]
    pub fn new(sides: Option<Sides>, queues: usize) -> Self {
        Self {
            sides,
            queues: queues.max(1),
            profile: Profile::default(),
            first: FxHashMap::default(),
            macs: FxHashMap::default(),
            interface: None,
            flows: FxHashMap::default(),
        }
    }

    /// Returns the number of queues of all interfaces.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.queues * if self.sides.is_some() { 2 } else { 1 }
    }

    /// Returns the interface (0 or 1) of a queue returned by [`job`](Self::job).
    #[must_use]
    pub const fn side(&self, job: usize) -> usize {
        job / self.queues
    }

    /// Returns the queue by which a frame leaves, counted over the queues of the first and then of
    /// the second interface. `interface` is that of the capture.
    #[must_use]
    pub fn job(&mut self, packet: &[u8], link: LinkType, interface: u32) -> usize {
        if self.jobs() == 1 {
            return 0;
        }
        let frame = Frame::parse(packet, packet.len(), link, &self.profile);
        let side = match &self.sides {
            None => 0,
            Some(Sides::Interface) => {
                usize::from(*self.interface.get_or_insert(interface) != interface)
            }
            Some(Sides::FirstSeen) => first_seen(&mut self.first, &frame),
            Some(Sides::Prefixes(prefixes)) => by_prefix(&mut self.macs, prefixes, &frame),
        };
        let queue = if self.queues == 1 {
            0
        } else {
            let flow = flow(&frame);
            let (next, room) = (self.flows.len() % self.queues, self.flows.len() < MOST);
            match self.flows.get(&flow) {
                Some(queue) => *queue,
                None if room => *self.flows.entry(flow).or_insert(next),
                None => (flow >> 32) as usize % self.queues,
            }
        };
        side * self.queues + queue
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns a hash that identifies a flow, in one direction: addresses, ports, and the QP for
/// RoCEv2. For fragments, of which only the first has ports, and everything other than UDP:
/// addresses and protocol; without IP: MAC addresses and EtherType.
fn flow(frame: &Frame<'_>) -> u64 {
    let Some(ip) = frame.ip() else {
        return hash(frame.bytes().get(..14));
    };
    let addresses = (ip.source, ip.destination, ip.protocol);
    let Some(datagram) = frame.datagram() else {
        return hash(addresses);
    };
    let qp = match frame.message() {
        _ if !frame.is_roce() => None,
        Message::Cnp(cnp) => Some(cnp.dest_qp()),
        Message::FastCnp(message) => message.bth.map(|bth| bth.dest_qp()),
        Message::Roce(bth, _) => Some(bth.dest_qp()),
        Message::RdmaCm(roce, _) => Some(roce.bth().dest_qp()),
        _ => None,
    };
    let ports = (datagram.source_port, datagram.destination_port);
    hash((addresses, ports, qp))
}

/// Returns source and destination of the outermost IP packet, which are nearest to the link.
fn ends(frame: &Frame<'_>) -> Option<(IpAddr, IpAddr)> {
    let bytes = frame.bytes();
    frame.spans().iter().find_map(|span| {
        let octets = bytes.get(span.start..)?;
        match span.layer {
            Layer::Ipv4 => {
                let address = |at| Some(IpAddr::from(*octets.get(at..)?.first_chunk::<4>()?));
                Some((address(12)?, address(16)?))
            }
            Layer::Ipv6 => {
                let address = |at| Some(IpAddr::from(*octets.get(at..)?.first_chunk::<16>()?));
                Some((address(8)?, address(24)?))
            }
            _ => None,
        }
    })
}

/// Returns destination and source of an Ethernet header.
fn macs(frame: &Frame<'_>) -> Option<([u8; 6], [u8; 6])> {
    let bytes = frame.bytes();
    let there = frame.spans().first()?.layer == Layer::Ethernet;
    let mac = |at: usize| bytes.get(at..)?.first_chunk::<6>().copied();
    there.then_some((mac(0)?, mac(6)?))
}

fn first_seen(first: &mut FxHashMap<u64, u64>, frame: &Frame<'_>) -> usize {
    let (source, destination) = match ends(frame) {
        Some((source, destination)) => (hash(source), hash(destination)),
        None => match macs(frame) {
            Some((destination, source)) => (hash(source), hash(destination)),
            None => return 0,
        },
    };
    let both = hash((source.min(destination), source.max(destination)));
    let room = first.len() < MOST;
    let speaker = match first.get(&both) {
        Some(speaker) => *speaker,
        None if room => *first.entry(both).or_insert(source),
        // The lower one, so that both directions are still separated.
        None => source.min(destination),
    };
    usize::from(speaker != source)
}

fn by_prefix(
    known: &mut FxHashMap<[u8; 6], usize>,
    prefixes: &[Prefix],
    frame: &Frame<'_>,
) -> usize {
    let mac = macs(frame).map(|(_, source)| source);
    match ends(frame) {
        Some((source, _)) => {
            let side = usize::from(!prefixes.iter().any(|prefix| prefix.contains(source)));
            if let Some(mac) = mac
                && known.len() < MOST
            {
                known.entry(mac).or_insert(side);
            }
            side
        }
        None => mac.and_then(|mac| known.get(&mac).copied()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a UDP datagram in IPv4 without a link header.
    fn packet(from: [u8; 4], to: [u8; 4], ports: (u16, u16), qp: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0];
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend(ports.0.to_be_bytes());
        bytes.extend(ports.1.to_be_bytes());
        bytes.extend([0, 28, 0, 0]);
        bytes.extend([0x04, 0, 0xff, 0xff, 0, 0, 0, qp]);
        bytes.extend([0; 12]);
        bytes
    }

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 1, 1];

    fn job(splitting: &mut Splitting, packet: &[u8]) -> usize {
        splitting.job(packet, LinkType::RawIp, 0)
    }

    #[test]
    fn sides_are_read() {
        assert_eq!(Sides::read("first-seen"), Ok(Sides::FirstSeen));
        assert_eq!(Sides::read("interface"), Ok(Sides::Interface));
        for text in ["", "10.0.0.0/33", "a/8", "10.0.0.0/8,"] {
            assert!(Sides::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flows_are_assigned_in_turn_and_keep_their_queue() {
        let mut splitting = Splitting::new(None, 2);
        let flows: Vec<Vec<u8>> = (0..6).map(|qp| packet(A, B, (50_700, 4791), qp)).collect();
        let queues: Vec<usize> = flows.iter().map(|f| job(&mut splitting, f)).collect();
        assert_eq!(queues, [0, 1, 0, 1, 0, 1]);
        for _ in 0..3 {
            let again: Vec<usize> = flows.iter().map(|f| job(&mut splitting, f)).collect();
            assert_eq!(again, queues);
        }
        let mut plain = Splitting::new(None, 2);
        // Not RoCEv2: there is no QP after the UDP header.
        let first = job(&mut plain, &packet(A, B, (700, 53), 1));
        assert_eq!(job(&mut plain, &packet(A, B, (700, 53), 2)), first);
        assert_eq!(job(&mut Splitting::new(None, 1), &flows[1]), 0);
    }

    #[test]
    fn the_first_sender_is_the_client() {
        let mut splitting = Splitting::new(Some(Sides::FirstSeen), 1);
        let (there, back) = (packet(A, B, (1, 4791), 1), packet(B, A, (2, 4791), 9));
        assert_eq!(job(&mut splitting, &there), 0);
        assert_eq!(job(&mut splitting, &back), 1);
        assert_eq!(job(&mut splitting, &there), 0);
        let other = packet(B, [10, 0, 0, 9], (2, 4791), 9);
        assert_eq!(job(&mut splitting, &other), 0);
    }

    #[test]
    fn prefixes_and_interfaces_decide_sides() {
        let sides = Sides::read("10.0.1.0/24,fd00::/8").unwrap();
        let mut splitting = Splitting::new(Some(sides), 2);
        assert_eq!(splitting.jobs(), 4);
        let from_b = job(&mut splitting, &packet(B, A, (1, 4791), 1));
        let from_a = job(&mut splitting, &packet(A, B, (1, 4791), 1));
        assert_eq!((splitting.side(from_b), splitting.side(from_a)), (0, 1));

        let mut splitting = Splitting::new(Some(Sides::Interface), 1);
        let frame = packet(A, B, (1, 2), 3);
        let sides: Vec<usize> = [3, 0, 3, 5]
            .map(|interface| splitting.job(&frame, LinkType::RawIp, interface))
            .to_vec();
        assert_eq!(sides, [0, 1, 0, 1]);
    }

    #[test]
    fn frames_without_ip_follow_their_mac_address() {
        let mut splitting = Splitting::new(Some(Sides::read("10.0.1.0/24").unwrap()), 1);
        let ethernet = |mac: u8, ether_type: [u8; 2], rest: &[u8]| {
            let mut frame = vec![0xff; 6];
            frame.extend([2, 0, 0, 0, 0, mac]);
            frame.extend(ether_type);
            frame.extend(rest);
            frame
        };
        let mut side = |frame: &[u8]| splitting.job(frame, LinkType::Ethernet, 0);
        let arp = |mac| ethernet(mac, [8, 6], &[0; 46]);
        assert_eq!(side(&arp(7)), 0);
        assert_eq!(side(&ethernet(7, [8, 0], &packet(A, B, (1, 2), 3))), 1);
        assert_eq!(side(&arp(7)), 1);
        assert_eq!(side(&[]), 0);
    }
}
