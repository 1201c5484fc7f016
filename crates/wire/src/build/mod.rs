//! Building and changing packets.

pub mod compose;
pub mod emit;
pub mod rewrite;
pub mod template;
