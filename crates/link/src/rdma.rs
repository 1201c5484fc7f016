//! RDMA devices of this host: what their drivers count at each port (sysfs), and which queue pairs they have, for whom, with
//! the counters that are bound to those (RDMA netlink).
//!
//! Names and values are the drivers'; what they mean is for others to say. No rights are needed; of the queue pairs, the
//! kernel shows those of the calling process's PID namespace.

mod nldev;
mod sysfs;

pub use nldev::{CounterSet, QueuePair, counter_sets, queue_pairs};
pub use sysfs::{CLASS, Port, ports};

/// Counters read of one port or set, at most. Drivers have up to 80.
const COUNTERS: usize = 256;
/// Octets of a counter's name, at most.
const NAME: usize = 64;
