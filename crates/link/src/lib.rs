//! Frames in and out: capture files ([`capture_file`]), AF_XDP ([`xdp`]), AF_PACKET ([`packet_socket`]), behind
//! [`transmit::Transmit`] on the way out. [`backend`] opens the best way out, [`sender`] runs frames through it, [`port`] is an
//! interface both ways, [`pacing`] and [`clock`] say when, [`interface`] what an interface is, and [`rdma`]
//! what an RDMA device has counted.
//!
//! What the octets of a frame mean is fcn-wire's business, which frame to send that of the roles and tools.
#![deny(unsafe_code)]

pub mod backend;
pub mod capture_file;
pub mod clock;
pub mod file_transmit;
pub mod interface;
mod netlink;
pub mod pacing;
mod packet_options;
pub mod packet_socket;
pub mod port;
mod precedence;
pub mod privilege;
pub mod rdma;
pub mod sender;
mod slots;
pub mod temporary;
pub mod transmit;
pub mod xdp;
