//! AF_XDP sockets: frames from our memory to a queue of an interface, and back.
//!
//! Has `unsafe` in it: system calls and rings shared with the kernel. `sys.rs` has the system calls, `umem.rs` the memory,
//! `ring.rs` the rings, `socket.rs` how these become a bound socket, `program.rs` the embedded XDP program, `transmit.rs`
//! and `port.rs` (both ways, with `receive.rs`) what the rest of the world uses.
#![allow(unsafe_code)]

mod port;
mod program;
mod receive;
mod ring;
mod socket;
mod sys;
mod transmit;
mod umem;

pub use port::XdpPort;
pub use program::{Program, ProgramMode};
pub use socket::{Copying, XdpError};
pub use transmit::XdpTransmit;
