//! Sending: the options that all tools have for it, the safeguards before the first frame, and what is said during and
//! after it. What is sent, and when, is the tool's own business.

mod messages;
mod open;
mod options;

pub use messages::{announce, conclude, nothing_sampled, send};
pub use open::{Opened, explain, longest_frame, open, refuse_endless};
pub use options::{Backend, CatchUpWanted, LinkOptions, Manner};
