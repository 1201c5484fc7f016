//! A monitor of RoCEv2 congestion notifications: shows which senders are told to slow down, by
//! whom, how often, and whether they obey.
//!
//! `engine/` reads packets from interfaces and captures and feeds the `monitor`, which is
//! independent of their origin. Its state is copied into `tables` of `record`s, which `view/` shows
//! and `output/` prints. `text` and `names` format values, `filter` and `order` select and sort
//! rows, and `run.rs` ties everything together.
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
