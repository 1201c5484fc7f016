//! Replays captures onto a link.
//!
//! For each frame, `pipeline.rs` reads it, selects it (`selection.rs`, `filter.rs`), assigns an
//! interface and a queue (`splitting.rs`), rewrites it (`rewriting.rs`, by `rules.rs`), and assigns
//! a time (`timing.rs`). `loading.rs` keeps all frames in memory, from where `source.rs` supplies
//! them to fcn-link's sender; `streaming.rs` passes them on as they are read. `run.rs` combines
//! these parts. fcn-link implements sockets, rates and waiting.
#![forbid(unsafe_code)]

pub mod cli;
mod dry_run;
mod filter;
mod loading;
mod omissions;
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
