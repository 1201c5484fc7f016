//! Frames out by AF_XDP ([`xdp`]), AF_PACKET ([`packet_socket`]) and into capture files ([`file_transmit`]), behind
//! [`transmit::Transmit`]; capture files read and written ([`capture_file`]). [`backend`] opens the best way out, [`sender`]
//! runs frames through it, [`pacing`] and [`clock`] say when, and [`interface`] what an interface is.
//!
//! What the octets of a frame mean is fcn-wire's business, which frame to send that of the roles and tools.
#![deny(unsafe_code)]

pub mod backend;
pub mod capture_file;
pub mod clock;
pub mod file_transmit;
pub mod interface;
pub mod pacing;
pub mod packet_socket;
mod precedence;
pub mod privilege;
pub mod sender;
mod slots;
pub mod transmit;
pub mod xdp;
