//! `fcn-gen emulate`: one node of a scenario on real links, for the device under test at the other
//! end.
//!
//! **One state machine.** A role is a [`LiveNode`]: the simulator's own state of one node
//! (`sim/live`), with its DCQCN, RDMA CM, retransmission, queues, PFC, tunnels and the roles of
//! `fcn-node`. The simulator gives it packets in virtual time; here it gets octets in real time.
//! Nothing is implemented twice, so the behaviour of a scenario in virtual time is that of its
//! nodes on links. A test checks that live nodes without cables agree with the simulation.
//!
//! **One loop** (`drive.rs`), single-threaded, the same for every role:
//!
//! ```text
//! frame in   → node.on_frame(now, link, octets)   \
//! timer due  → node.on_timer(now)                  → frames, each with link and time of arrival
//! otherwise wait for a frame, or for the next of these times
//! ```
//!
//! The node neither waits nor reads a clock; the loop does not depend on RoCEv2. The loop holds
//! frames that are due later (the link's rate and its propagation delay are the scenario's). If it
//! wakes up late it catches up: rates hold on average, and the report has the lateness of frames.
//! Frames are received and sent by `fcn_link::port` (AF_XDP, else AF_PACKET); a test replaces it by
//! a fake.
//!
//! **One clock.** The node's time is real time times `--speed`. At 0.01 a scenario of 10 Gbit/s
//! becomes one of 100 Mbit/s: its rates are a hundredth, its times a hundred times as long, and
//! DCQCN's published parameters remain suitable. Nodes therefore need not keep up with the
//! scenario's rates, but all nodes of a network need the same speed.
//!
//! **One configuration.** Node, neighbours, thresholds, access list, limits, border filter, tunnels
//! and flows come from a scenario (`--config`, `--set`): a built-in one, or the simple `link.toml`
//! of `device`. `device` selects the node for a role, and disables features that the drafts have off by
//! default, unless an option enables them.
//!
//! **A switch** forwards frames as received, including MAC addresses and hop limit: to the port of
//! their destination by the scenario's routes, or to all other ports if the destination is not a
//! node of the scenario. With two links it is a bump in the wire. Its own packets go to the MAC
//! address from which their destination was last received. **A host** plays the flows that begin or
//! end at it. Neither answers neighbour solicitations: peers need a static entry, or `--peer-mac`
//! here.
//!
//! **Links that go down** and come back are handled by the port (`fcn_link::port`): the node
//! continues, and frames that it sends in the meantime are lost. A restarted receiver resumes a
//! flow at its present position.
//!
//! **One interface**: a switch can have all its links on one. Received frames are treated as coming
//! from the link towards their sender, and are sent back with the MAC addresses of a router.
//!
//! **A translator** (`translator.rs`) is no node of a scenario: it stands in front of a host, and
//! translates the Fast CNPs for it by `fcn_node::translator`, in the same loop.
//!
//! **Reaction time** is measured from the time at which the loop took the frame to answer from the
//! ring to the time at which the answer was handed to the kernel, without the delay of the
//! scenario's link. Interlocks, Ctrl-C and exit codes are the same as for every sender here.

mod command;
mod drive;
mod links;
mod metrics;
mod report;
mod translator;

pub use command::emulate;
pub use report::{EMULATE_SCHEMA, EMULATE_VERSION};
pub use translator::{Part, Untranslated};

#[cfg(doc)]
use crate::sim::live::LiveNode;
