//! Headers around our messages, and the reading and writing of their fields.

pub mod checksum;
pub mod erspan;
pub(crate) mod fields;
pub mod header;
pub mod infiniband;
pub mod ip;
pub mod ipv6_ext;
pub(crate) mod link_type;
pub(crate) mod octets;
pub mod sflow;
