//! `fcn-gen emulate`: one node of a scenario on real links, for the device under test at the other end.
//!
//! **One state machine.** A role is a [`LiveNode`]: the simulator's own states of one node (`sim/live.rs`), with its DCQCN, RDMA CM,
//! retransmission, queues, PFC, tunnels and the roles of `fcn-node`. The simulator gives it packets in virtual time; here it gets
//! octets in real time. There is no second implementation of anything, so what a scenario shows in virtual time is what its nodes
//! do on links, and a test has live nodes without cables agree with the simulation.
//!
//! **One loop** (`drive.rs`), single-threaded, the same for every role:
//!
//! ```text
//! frame in   → node.on_frame(now, link, octets)   \
//! timer due  → node.on_timer(now)                  → frames, each with its link and the time at which it is at the other end
//! otherwise wait for a frame, or for the next of these times
//! ```
//!
//! The node neither waits nor reads a clock; the loop knows nothing of RoCEv2. What is due later (the link's rate and its
//! propagation are the scenario's) is held by the loop. Where it wakes late it catches up: rates hold on average, and the report
//! has how late frames left. Frames come in and leave by `fcn_link::port` (AF_XDP, else AF_PACKET); a test puts a fake in its place.
//!
//! **One clock.** The node's time is real time times `--speed`. At 0.01 a scenario of 10 Gbit/s is one of 100 Mbit/s: its rates are a
//! hundredth, its times a hundred times as long, and DCQCN's published parameters fit as they did. So nodes need not keep up
//! with the rates that a scenario is about; all of a network need the same speed.
//!
//! **One configuration.** Which node, which neighbours, thresholds, access list, limits, border filter, tunnels, flows: a scenario
//! (`--config`, `--set`), one of the built-in ones or the plain `link.toml` here. `node.rs` chooses the node that a role names, and
//! switches off what the drafts have off by default, unless an option switches it on.
//!
//! **A switch** passes on what it gets as it came, MAC addresses and hop limit included: to the port of its destination by the
//! scenario's routes, and what is for none of the scenario's nodes to all other ports; with two links it is a bump in the wire. What
//! it says itself goes to the MAC address that the destination was last seen behind. **A host** plays the flows that begin or
//! end at it. Neither answers neighbour solicitations: peers need a static entry, or `--peer-mac` here.
//!
//! **Links that go down** and come back are the port's business (`fcn_link::port`): the node plays on, and what it sends meanwhile is
//! lost. A receiver that is started anew takes a flow up where it is.
//!
//! **One interface**: a switch can have all its links on one. What comes in is taken to have come by the link towards its sender, and
//! goes back out with the MAC addresses of a router.
//!
//! **Reaction time** is from when the loop took the frame that is answered from the ring to when its answer was handed to the
//! kernel, without what the scenario's link would have added. Interlocks, Ctrl-C and exit codes are those of every sender here.

mod command;
mod drive;
mod metrics;
mod node;
mod report;

pub(crate) use command::{AROUND, interfaces, load, open, refuse_longer};
pub use command::{EMULATE_SCHEMA, EMULATE_VERSION, emulate};
pub(crate) use drive::Wire;
pub use node::{Enabled, Role};

#[cfg(doc)]
use crate::sim::live::LiveNode;
