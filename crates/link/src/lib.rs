//! Input and output of frames: capture files ([`capture_file`]), AF_XDP ([`xdp`]) and AF_PACKET
//! ([`packet_socket`]), with [`transmit::Transmit`] as the common interface for output. [`backend`]
//! opens the best backend for output, [`sender`] sends frames through it, [`port`] is an interface
//! in both directions, [`pacing`] and [`clock`] determine the time of sending, [`interface`]
//! describes an interface, and [`rdma`] reads the counters of an RDMA device.
//!
//! The contents of frames are the business of fcn-wire; the choice of frames to send is that of the
//! roles and tools.
#![deny(unsafe_code)]

#[cfg(feature = "linux")]
pub mod backend;
pub mod capture_file;
#[cfg(feature = "linux")]
pub mod clock;
#[cfg(feature = "linux")]
pub mod file_transmit;
#[cfg(feature = "linux")]
pub mod interface;
#[cfg(feature = "linux")]
mod netlink;
pub mod pacing;
#[cfg(feature = "linux")]
mod packet_options;
#[cfg(feature = "linux")]
pub mod packet_socket;
#[cfg(feature = "linux")]
pub mod port;
#[cfg(feature = "linux")]
mod precedence;
#[cfg(feature = "linux")]
pub mod privilege;
#[cfg(feature = "linux")]
pub mod rdma;
#[cfg(feature = "linux")]
pub mod sender;
#[cfg(feature = "linux")]
mod slots;
#[cfg_attr(not(feature = "linux"), path = "portable/temporary.rs")]
pub mod temporary;
#[cfg(feature = "linux")]
pub mod transmit;
#[cfg(feature = "linux")]
pub mod xdp;
#[cfg_attr(not(feature = "linux"), path = "portable/zstd.rs")]
mod zstd;
