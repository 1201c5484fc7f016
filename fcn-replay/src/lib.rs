//! Replays captures onto a link.
//!
//! A frame's way: `pipeline.rs` reads it, chooses it (`selection.rs`, `filter.rs`), gives it an interface and a queue
//! (`splitting.rs`), changes it (`rewriting.rs`, by `rules.rs`), and gives it a place in time (`timing.rs`). `loading.rs` keeps all of
//! them in memory, `streaming.rs` hands them on as they are read; `source.rs` is where fcn-link's sender takes them from,
//! `run.rs` joins all that. Sockets, rates and waiting are fcn-link's business.
#![forbid(unsafe_code)]

pub mod batch;
pub mod cli;
mod dry_run;
pub mod filter;
pub mod left_out;
pub mod loading;
mod outcome;
pub mod pipeline;
mod plan;
pub mod rewriting;
pub mod rules;
pub mod run;
pub mod selection;
pub mod source;
pub mod splitting;
pub mod streaming;
mod summary;
pub mod timing;
