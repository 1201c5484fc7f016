//! Shows who is told to slow down, by whom, how often, and whether they obey: a monitor of RoCEv2 congestion notifications.
//!
//! `engine/` takes packets in from interfaces and captures, and feeds the `monitor`, which knows nothing of where they come
//! from. What it has seen comes out as `tables` of `record`s, which `view/` shows and `output/` prints; `text` and
//! `names` have the words, `filter` and `order` choose. `run.rs` joins all that.
#![forbid(unsafe_code)]

pub mod cli;
mod columns;
mod config;
pub mod engine;
mod filter;
mod headless;
mod inputs;
pub mod monitor;
mod names;
mod new_file;
pub mod nic;
mod order;
mod output;
pub mod packet;
pub mod record;
pub mod run;
pub mod running;
mod setup;
pub mod tables;
pub mod view;
#[cfg(test)]
mod tests {
    pub(crate) mod sample;
    mod schemas;
}
mod no_effect;
pub mod text;
mod values;
