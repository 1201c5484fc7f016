//! The rules that packets are checked against, and the texts and code points that they follow.

pub mod draft;
pub mod dscp_set;
pub mod finding;
pub mod profile;
