//! AF_XDP sockets: frames from our memory to a queue of an interface, and back.
//!
//! Uses `unsafe` for system calls and for rings shared with the kernel. `sys.rs` has the system
//! calls, `umem.rs` the memory, `ring.rs` the rings, `socket.rs` the setup of a bound socket, and
//! `program.rs` the embedded XDP program. `transmit.rs` and `port.rs` (both directions, with
//! `receive.rs`) are the interface for other modules.
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
pub use socket::{CopyMode, XdpError};
pub use transmit::XdpTransmit;
