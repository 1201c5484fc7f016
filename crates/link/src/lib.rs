//! Input and output of frames: capture files ([`capture_file`]), AF_XDP ([`xdp`]) and AF_PACKET
//! ([`packet_socket`]), with [`transmit::Transmit`] as the common interface for output. [`backend`]
//! opens the best backend for output, [`sender`] sends frames through it, [`port`] is an interface
//! in both directions, [`pacing`] and [`clock`] determine the time of sending, [`interface`]
//! describes an interface, and [`rdma`] reads the counters of an RDMA device.
//!
//! The contents of frames are the business of fcn-wire; the choice of frames to send is that of the
//! roles and tools.
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
