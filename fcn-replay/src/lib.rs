//! Replays captures onto a link.
//!
//! A frame's way: `pipeline.rs` reads it, chooses it (`selection.rs`, `filter.rs`), gives it an interface and a queue
//! (`splitting.rs`), changes it (`rewriting.rs`, by `rules.rs`), and gives it a place in time (`timing.rs`). `loading.rs` keeps all of
//! them in memory, where `source.rs` is the one that fcn-link's sender takes them from, `streaming.rs` hands them on as they are read;
//! `run.rs` joins all that. Sockets, rates and waiting are fcn-link's business.
#![forbid(unsafe_code)]

pub mod cli;
mod dry_run;
mod filter;
mod left_out;
mod loading;
mod outcome;
mod pipeline;
mod plan;
mod rewriting;
mod rules;
pub mod run;
mod selection;
mod source;
mod splitting;
mod streaming;
mod summary;
mod timing;
