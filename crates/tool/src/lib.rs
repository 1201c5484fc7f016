//! What the command-line tools share: what they talk to ([`console`]), how they fail ([`failure`]), a bar
//! ([`progress`]), quantities as people write them ([`quantity`]), and sending: its options, safeguards and report
//! ([`sending`]).
//!
//! Nothing of what one tool alone does; no packets.
#![forbid(unsafe_code)]

pub mod console;
pub mod failure;
pub mod progress;
pub mod quantity;
pub mod sending;
