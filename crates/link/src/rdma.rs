//! RDMA devices of this host: what their drivers count at each port (sysfs), and which queue pairs they have, for whom, with
//! the counters that are bound to those (RDMA netlink).
//!
//! Names and values are the drivers'; what they mean is for others to say. No rights are needed; of the queue pairs, the
//! kernel shows those of the calling process's PID namespace.

mod nldev;
mod sysfs;

pub use nldev::{CounterSet, QueuePair, counter_sets, queue_pairs};
pub use sysfs::{CLASS, Port, ports};

use crate::interface::Interface;

/// Counters read of one port or set, at most. Drivers have up to 80.
const COUNTERS: usize = 256;
/// Octets of a counter's name, at most.
const NAME: usize = 64;

/// Takes from `ports` the interfaces of other network namespaces: RDMA devices are shared by all namespaces unless told otherwise,
/// and sysfs names an interface wherever it is. RDMA netlink tells only those of this one; where it tells nothing, an interface
/// is this one's if it has an address of the port.
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
