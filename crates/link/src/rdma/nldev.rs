//! RDMA netlink (`NETLINK_RDMA`, client `RDMA_NL_NLDEV`): queue pairs of devices, their owners, and
//! counters that are optional or bound to queue pairs. Numbers are those of `rdma/rdma_netlink.h`.

use super::{COUNTERS, NAME};
use crate::netlink::Netlink;
use netlink_packet_core::{NetlinkSerializable, NlaBuffer, NlasIterator};
use netlink_sys::protocols::NETLINK_RDMA;
use std::io;
use std::sync::Arc;

/// Maximum number of devices queried.
const DEVICES: usize = 256;
/// Maximum number of queue pairs, and of sets of counters, read of all devices.
const OBJECTS: usize = 100_000;
/// Maximum number of queue pairs read that are bound to one set of counters.
const BOUND: usize = 1_000;

/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)`.
const fn message_type(command: u16) -> u16 {
    (5 << 10) + command
}

/// `RDMA_NLDEV_CMD_*`.
mod command {
    pub(super) const GET: u16 = 1;
    pub(super) const PORT_GET: u16 = 5;
    pub(super) const RES_QP_GET: u16 = 10;
    pub(super) const STAT_GET: u16 = 17;
}

/// `RDMA_NLDEV_ATTR_*`.
mod attribute {
    pub(super) const DEV_INDEX: u16 = 1;
    pub(super) const DEV_NAME: u16 = 2;
    pub(super) const PORT_INDEX: u16 = 3;
    pub(super) const RES_QP: u16 = 19;
    pub(super) const RES_QP_ENTRY: u16 = 20;
    pub(super) const RES_LQPN: u16 = 21;
    pub(super) const RES_RQPN: u16 = 22;
    pub(super) const RES_TYPE: u16 = 26;
    pub(super) const RES_STATE: u16 = 27;
    pub(super) const RES_PID: u16 = 28;
    pub(super) const RES_KERN_NAME: u16 = 29;
    pub(super) const NDEV_NAME: u16 = 51;
    pub(super) const STAT_RES: u16 = 75;
    pub(super) const STAT_COUNTER: u16 = 77;
    pub(super) const STAT_COUNTER_ENTRY: u16 = 78;
    pub(super) const STAT_COUNTER_ID: u16 = 79;
    pub(super) const STAT_HWCOUNTERS: u16 = 80;
    pub(super) const STAT_HWCOUNTER_ENTRY: u16 = 81;
    pub(super) const STAT_HWCOUNTER_ENTRY_NAME: u16 = 82;
    pub(super) const STAT_HWCOUNTER_ENTRY_VALUE: u16 = 83;
}
use attribute as attr;

/// A queue pair of a device. Fields that the kernel does not report are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePair {
    /// Name of the device.
    pub device: Arc<str>,
    /// Port to which it is bound.
    pub port: Option<u32>,
    /// Queue pair number.
    pub number: u32,
    /// Queue pair number of the remote end; only if connected.
    pub remote: Option<u32>,
    /// Type, `enum ib_qp_type`: 2 is RC.
    pub kind: Option<u8>,
    /// State, `enum ib_qp_state`: 3 is RTS.
    pub state: Option<u8>,
    /// Process that created it.
    pub pid: Option<u32>,
    /// Kernel component that created it, if no process did.
    pub kernel: Option<String>,
}

/// A set of counters that are read together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSet {
    /// Name of the device.
    pub device: Arc<str>,
    /// Port number.
    pub port: Option<u32>,
    /// Number of the set; `None` for that of the port itself, which has optional counters that
    /// sysfs lacks.
    pub id: Option<u32>,
    /// Queue pairs now bound to the set. It retains the counts of earlier ones.
    pub bound: Vec<u32>,
    /// Names and values.
    pub counters: Vec<(String, u64)>,
}

/// Returns the queue pairs of all devices that are visible in this network namespace. The kernel
/// queries the NIC for each, so this should not be called every second.
///
/// # Errors
/// The kernel has no RDMA netlink, or refuses.
pub fn queue_pairs() -> io::Result<Vec<QueuePair>> {
    let mut netlink = Netlink::with_protocol(NETLINK_RDMA)?;
    let mut found = Vec::new();
    for device in devices(&mut netlink)? {
        for payload in ask(&mut netlink, command::RES_QP_GET, &[device])? {
            add_queue_pairs(&payload, &mut found);
        }
    }
    Ok(found)
}

/// Returns the counters that are bound to queue pairs (`rdma statistic qp`), and those of ports,
/// including optional ones. Counters that a kernel (before 5.3) or a driver does not support are
/// omitted.
///
/// # Errors
/// The kernel has no RDMA netlink, or refuses.
pub fn counter_sets() -> io::Result<Vec<CounterSet>> {
    let mut netlink = Netlink::with_protocol(NETLINK_RDMA)?;
    let mut found = Vec::new();
    for device in devices(&mut netlink)? {
        let bound = [device, (attr::STAT_RES, attr::RES_QP.into())];
        for payload in ask(&mut netlink, command::STAT_GET, &bound).unwrap_or_default() {
            add_bound_sets(&payload, &mut found);
        }
        for payload in ask(&mut netlink, command::PORT_GET, &[device]).unwrap_or_default() {
            let Some(port) = u32_of(&payload, attr::PORT_INDEX) else {
                continue;
            };
            let port = Request::new(command::STAT_GET, &[device, (attr::PORT_INDEX, port)]);
            if let Ok(payload) = netlink.get(port, message_type(command::STAT_GET)) {
                add_port_set(&payload, &mut found);
            }
        }
    }
    Ok(found)
}

/// The interface of a port, if it is in this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortInterface {
    pub(super) device: Arc<str>,
    pub(super) port: u32,
    pub(super) name: Option<String>,
}

/// Returns the interfaces of all ports.
pub(super) fn interfaces() -> io::Result<Vec<PortInterface>> {
    let mut netlink = Netlink::with_protocol(NETLINK_RDMA)?;
    let mut found = Vec::new();
    for device in devices(&mut netlink)? {
        let answers = ask(&mut netlink, command::PORT_GET, &[device])?;
        found.extend(answers.iter().filter_map(|payload| port_interface(payload)));
    }
    Ok(found)
}

fn port_interface(payload: &[u8]) -> Option<PortInterface> {
    Some(PortInterface {
        device: device_of(payload)?,
        port: u32_of(payload, attr::PORT_INDEX)?,
        name: name_of(payload, attr::NDEV_NAME),
    })
}

/// Returns the devices, each as the attribute that identifies it in a request.
fn devices(netlink: &mut Netlink) -> io::Result<Vec<(u16, u32)>> {
    let answers = ask(netlink, command::GET, &[])?;
    let numbers = answers
        .iter()
        .filter_map(|device| u32_of(device, attr::DEV_INDEX));
    Ok(numbers
        .take(DEVICES)
        .map(|number| (attr::DEV_INDEX, number))
        .collect())
}

fn ask(netlink: &mut Netlink, command: u16, about: &[(u16, u32)]) -> io::Result<Vec<Vec<u8>>> {
    netlink.dump(Request::new(command, about), message_type(command))
}

/// A request; all attributes that it needs are 32-bit numbers.
#[derive(Clone, Debug)]
struct Request {
    command: u16,
    attributes: Vec<(u16, u32)>,
}

impl Request {
    fn new(command: u16, attributes: &[(u16, u32)]) -> Self {
        let attributes = attributes.to_vec();
        Self {
            command,
            attributes,
        }
    }
}

impl NetlinkSerializable for Request {
    fn message_type(&self) -> u16 {
        message_type(self.command)
    }

    fn buffer_len(&self) -> usize {
        self.attributes.len() * 8
    }

    fn serialize(&self, buffer: &mut [u8]) {
        for (room, (kind, value)) in buffer.chunks_exact_mut(8).zip(&self.attributes) {
            let mut attribute = NlaBuffer::new(room);
            attribute.set_length(8);
            attribute.set_kind(*kind);
            attribute.value_mut().copy_from_slice(&value.to_ne_bytes());
        }
    }
}

/// Iterates over the attributes of a message or a nest, up to the first malformed one.
fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(octets).map_while(|attribute| {
        let attribute = attribute.ok()?;
        // The iterator has checked the length.
        let value = attribute.into_inner().get(4..attribute.length().into())?;
        Some((attribute.kind(), value))
    })
}

/// Iterates over the attributes of that kind.
fn all(octets: &[u8], kind: u16) -> impl Iterator<Item = &[u8]> {
    attributes(octets).filter_map(move |(other, value)| (other == kind).then_some(value))
}

fn u32_of(octets: &[u8], kind: u16) -> Option<u32> {
    Some(u32::from_ne_bytes(
        all(octets, kind).next()?.try_into().ok()?,
    ))
}

fn u8_of(octets: &[u8], kind: u16) -> Option<u8> {
    all(octets, kind).next()?.first().copied()
}

/// Returns a name, up to the terminating zero.
fn name_of(octets: &[u8], kind: u16) -> Option<String> {
    let name = all(octets, kind)
        .next()?
        .split(|octet| *octet == 0)
        .next()?;
    let name = name.get(..NAME).unwrap_or(name);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

fn device_of(payload: &[u8]) -> Option<Arc<str>> {
    name_of(payload, attr::DEV_NAME).map(Arc::from)
}

/// Adds the queue pairs of an answer to `RES_QP_GET`.
fn add_queue_pairs(payload: &[u8], found: &mut Vec<QueuePair>) {
    let Some(device) = device_of(payload) else {
        return;
    };
    let entries = all(payload, attr::RES_QP).flat_map(|table| all(table, attr::RES_QP_ENTRY));
    let pairs = entries.filter_map(|entry| {
        Some(QueuePair {
            device: Arc::clone(&device),
            port: u32_of(entry, attr::PORT_INDEX),
            number: u32_of(entry, attr::RES_LQPN)?,
            remote: u32_of(entry, attr::RES_RQPN),
            kind: u8_of(entry, attr::RES_TYPE),
            state: u8_of(entry, attr::RES_STATE),
            pid: u32_of(entry, attr::RES_PID),
            kernel: name_of(entry, attr::RES_KERN_NAME),
        })
    });
    found.extend(pairs.take(OBJECTS.saturating_sub(found.len())));
}

/// Adds the sets of counters of an answer to `STAT_GET` for queue pairs.
fn add_bound_sets(payload: &[u8], found: &mut Vec<CounterSet>) {
    let Some(device) = device_of(payload) else {
        return;
    };
    let tables = all(payload, attr::STAT_COUNTER);
    let entries = tables.flat_map(|table| all(table, attr::STAT_COUNTER_ENTRY));
    let sets = entries.filter_map(|entry| {
        let pairs = all(entry, attr::RES_QP).flat_map(|table| all(table, attr::RES_QP_ENTRY));
        Some(CounterSet {
            device: Arc::clone(&device),
            port: u32_of(entry, attr::PORT_INDEX),
            id: Some(u32_of(entry, attr::STAT_COUNTER_ID)?),
            bound: pairs
                .filter_map(|pair| u32_of(pair, attr::RES_LQPN))
                .take(BOUND)
                .collect(),
            counters: counters(entry),
        })
    });
    found.extend(sets.take(OBJECTS.saturating_sub(found.len())));
}

/// Adds the counters of a whole port, from an answer to `STAT_GET` for it.
fn add_port_set(payload: &[u8], found: &mut Vec<CounterSet>) {
    found.extend(device_of(payload).map(|device| CounterSet {
        device,
        port: u32_of(payload, attr::PORT_INDEX),
        counters: counters(payload),
        ..CounterSet::default()
    }));
}

/// Returns names and values of the counters in a message or an entry.
fn counters(octets: &[u8]) -> Vec<(String, u64)> {
    let tables = all(octets, attr::STAT_HWCOUNTERS);
    let entries = tables.flat_map(|table| all(table, attr::STAT_HWCOUNTER_ENTRY));
    let counters = entries.filter_map(|entry| {
        let value = all(entry, attr::STAT_HWCOUNTER_ENTRY_VALUE).next()?;
        let value = u64::from_ne_bytes(value.try_into().ok()?);
        Some((name_of(entry, attr::STAT_HWCOUNTER_ENTRY_NAME)?, value))
    });
    counters.take(COUNTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NESTED: u16 = 1 << 15;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut octets = (4 + value.len() as u16).to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend(value);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    fn number(kind: u16, value: u32) -> Vec<u8> {
        attribute(kind, &value.to_ne_bytes())
    }

    fn handle() -> Vec<u8> {
        [
            number(attr::DEV_INDEX, 0),
            attribute(attr::DEV_NAME, b"rxe0\0"),
        ]
        .concat()
    }

    fn counter(name: &[u8], value: u64) -> Vec<u8> {
        let members = [
            attribute(attr::STAT_HWCOUNTER_ENTRY_NAME, name),
            // The kernel pads to align the value.
            attribute(0, b""),
            attribute(attr::STAT_HWCOUNTER_ENTRY_VALUE, &value.to_ne_bytes()),
        ];
        attribute(attr::STAT_HWCOUNTER_ENTRY | NESTED, &members.concat())
    }

    #[test]
    fn a_request_is_its_attributes() {
        let request = Request::new(
            command::STAT_GET,
            &[(attr::DEV_INDEX, 3), (attr::STAT_RES, 19)],
        );
        let mut octets = vec![0; request.buffer_len()];
        request.serialize(&mut octets);
        assert_eq!(octets, [number(1, 3), number(75, 19)].concat());
        assert_eq!(request.message_type(), 0x1411);
    }

    #[test]
    fn queue_pairs_of_processes_and_of_the_kernel() {
        let of_process = [
            number(attr::PORT_INDEX, 1),
            number(attr::RES_LQPN, 0x11),
            number(attr::RES_PID, 4_242),
            number(attr::RES_RQPN, 0x12),
            attribute(attr::RES_TYPE, &[2]),
            attribute(attr::RES_STATE, &[3]),
        ];
        let of_kernel = [
            number(attr::RES_LQPN, 1),
            attribute(attr::RES_KERN_NAME, b"ib_core\0"),
            attribute(attr::RES_TYPE, &[1]),
        ];
        // An entry without a number is ignored.
        let entries = [&of_process[..], &of_kernel, &of_kernel[1..]]
            .map(|entry| attribute(attr::RES_QP_ENTRY | NESTED, &entry.concat()));
        let table = attribute(attr::RES_QP | NESTED, &entries.concat());
        let mut found = Vec::new();
        add_queue_pairs(&[handle(), table.clone()].concat(), &mut found);
        let expected = [
            QueuePair {
                device: "rxe0".into(),
                port: Some(1),
                number: 0x11,
                remote: Some(0x12),
                kind: Some(2),
                state: Some(3),
                pid: Some(4_242),
                kernel: None,
            },
            QueuePair {
                device: "rxe0".into(),
                number: 1,
                kind: Some(1),
                kernel: Some("ib_core".to_owned()),
                ..QueuePair::default()
            },
        ];
        assert_eq!(found, expected);
        add_queue_pairs(&table, &mut found);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn interfaces_of_ports() {
        let mut payload = [handle(), number(attr::PORT_INDEX, 2)].concat();
        let mut port = PortInterface {
            device: "rxe0".into(),
            port: 2,
            name: None,
        };
        assert_eq!(port_interface(&payload).as_ref(), Some(&port));
        payload.extend(attribute(attr::NDEV_NAME, b"eth0\0"));
        port.name = Some("eth0".to_owned());
        assert_eq!(port_interface(&payload), Some(port));
        assert_eq!(port_interface(&handle()), None);
    }

    #[test]
    fn counters_of_sets_and_of_ports() {
        let pair = attribute(attr::RES_QP_ENTRY | NESTED, &number(attr::RES_LQPN, 0x11));
        let counters = attribute(
            attr::STAT_HWCOUNTERS | NESTED,
            &[
                counter(b"cc_rx_cnp_pkts\0", 400),
                counter(b"\0", 1),
                counter(&[b'n'; 1_000], 2),
            ]
            .concat(),
        );
        let entry = [
            number(attr::PORT_INDEX, 1),
            number(attr::STAT_COUNTER_ID, 5),
            attribute(attr::RES_QP | NESTED, &pair),
            counters.clone(),
        ];
        let entry = attribute(attr::STAT_COUNTER_ENTRY | NESTED, &entry.concat());
        let table = attribute(attr::STAT_COUNTER | NESTED, &entry);
        let mut found = Vec::new();
        add_bound_sets(&[handle(), table].concat(), &mut found);
        add_port_set(
            &[handle(), number(attr::PORT_INDEX, 1), counters].concat(),
            &mut found,
        );
        assert_eq!((found[0].id, &*found[0].bound), (Some(5), &[0x11][..]));
        assert_eq!((found[1].id, found[1].port), (None, Some(1)));
        for set in &found {
            let read = [("cc_rx_cnp_pkts".to_owned(), 400), ("n".repeat(NAME), 2)];
            assert_eq!(set.counters, read);
        }
    }

    proptest! {
        #[test]
        fn parsing_any_octets_terminates(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
            let (mut pairs, mut sets) = (Vec::new(), Vec::new());
            for octets in [octets.clone(), [handle(), octets].concat()] {
                add_queue_pairs(&octets, &mut pairs);
                add_bound_sets(&octets, &mut sets);
                add_port_set(&octets, &mut sets);
                port_interface(&octets);
            }
            prop_assert!(pairs.len() + sets.len() <= 400);
        }

        /// Correctly nested attributes with arbitrary contents.
        #[test]
        fn parsing_any_attributes_terminates(values in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20)) {
            let inner: Vec<u8> = values.iter().flat_map(|(kind, value)| attribute(kind % 90, value)).collect();
            let (mut pairs, mut sets) = (Vec::new(), Vec::new());
            let nest = |outer, kind| attribute(outer | NESTED, &attribute(kind | NESTED, &inner));
            add_queue_pairs(&[handle(), nest(attr::RES_QP, attr::RES_QP_ENTRY)].concat(), &mut pairs);
            add_bound_sets(&[handle(), nest(attr::STAT_COUNTER, attr::STAT_COUNTER_ENTRY)].concat(), &mut sets);
            prop_assert!(pairs.len() <= 1 && sets.len() <= 1);
        }
    }
}
