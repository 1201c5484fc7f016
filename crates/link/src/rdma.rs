//! RDMA devices of this host: their drivers' counters for each port (sysfs), and their queue pairs
//! with owners and bound counters (RDMA netlink).
//!
//! Names and values are the drivers'; this module does not interpret them. No permissions are
//! needed. The kernel lists the queue pairs of the calling process's PID namespace.

mod nldev;
mod sysfs;

pub use nldev::{CounterSet, QueuePair, counter_sets, queue_pairs};
pub use sysfs::{CLASS, Port, ports};

use crate::interface::Interface;

/// Maximum number of counters read of one port or set. Drivers have up to 80.
const COUNTERS: usize = 256;
/// Maximum length of a counter's name, in octets.
const NAME: usize = 64;

/// Removes from `ports` the interfaces of other network namespaces: by default RDMA devices are
/// shared by all namespaces, and sysfs names an interface regardless of its namespace. RDMA netlink
/// reports only those of this namespace. If it is not available, an interface belongs to this
/// namespace if it has an address of the port.
pub fn keep_own_interfaces(ports: &mut [Port]) {
    let told = nldev::interfaces();
    for port in ports {
        port.interface = match &told {
            Ok(told) => {
                let is_it = |other: &&nldev::PortInterface| {
                    (&*other.device, other.port) == (port.device.as_str(), port.number)
                };
                told.iter().find(is_it).and_then(|found| found.name.clone())
            }
            Err(_) => port.interface.take().filter(|name| {
                let here = Interface::named(name);
                here.is_ok_and(|here| {
                    let mut own = here.addresses().iter();
                    own.any(|own| port.addresses.contains(&own.address))
                })
            }),
        };
    }
}
