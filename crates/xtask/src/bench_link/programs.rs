//! The programs under test, and what they are compared with. Not here: how each is run.

use std::path::PathBuf;
use std::time::Duration;

use super::peers::{Peer, peers};
use crate::cargo;
use crate::failure::Outcome;
use crate::tally::SKIP_MARK;

/// The longest that one run may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The processor of what watches; senders of one queue have the last, which our tools take by themselves.
pub const WATCHERS: &str = "0";

/// The programs under test, and what they are compared with.
#[derive(Debug)]
pub struct Programs {
    /// `fcn-gen`.
    pub generator: PathBuf,
    /// `fcn-replay`.
    pub replayer: PathBuf,
    /// Sends as fast as AF_XDP takes frames.
    pub bare_loop: PathBuf,
    /// Has nothing to do but to keep time.
    pub bare_timer: PathBuf,
    /// Other programs, as far as they are at hand.
    pub peers: Vec<Peer>,
    /// Where files may be put.
    pub scratch: PathBuf,
    /// The processor of a sender of one queue.
    pub senders: String,
}

impl Programs {
    /// Builds ours, and finds the others; says which are not at hand.
    ///
    /// # Errors
    /// One cannot be built.
    pub fn ready() -> Outcome<Self> {
        let cache = cargo::target_folder("bench-link")?;
        let mut at_hand = Vec::new();
        for found in peers(&cache) {
            match found {
                Ok(peer) => at_hand.push(peer),
                Err(missing) => println!("{SKIP_MARK} {missing}"),
            }
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            generator: cargo::build_tool(cargo::GENERATOR, true)?,
            replayer: cargo::build_tool(cargo::REPLAYER, true)?,
            bare_loop: cargo::build_example("fcn-link", "bare_loop", true)?,
            bare_timer: cargo::build_example("fcn-link", "bare_timer", true)?,
            peers: at_hand,
            scratch: cargo::target_folder("bench-link/scratch")?,
            senders: (processors - 1).to_string(),
        })
    }
}
