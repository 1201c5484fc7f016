//! Sending: the options that all tools have for it, the safeguards before the first frame, and
//! messages during and after it. The tools decide what is sent, and when.

mod messages;
mod open;
mod options;

pub use messages::{announce, conclude, nothing_sampled, send};
pub use open::{Opened, explain, longest_frame, open, refuse_endless};
pub use options::{Backend, CatchUpWanted, LinkOptions, Manner};
