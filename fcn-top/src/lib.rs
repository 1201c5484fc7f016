//! A monitor of RoCEv2 congestion notifications: shows which senders are told to slow down, by
//! whom, how often, and whether they obey.
//!
//! `engine/` reads packets from interfaces and captures and feeds the `monitor`, which is
//! independent of their origin. Its state is copied into `tables` of `record`s, which `view/` shows
//! and `output/` prints. `text` and `names` format values, `filter` and `order` select and sort
//! rows, and `run.rs` ties everything together.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "program"),
    expect(
        dead_code,
        unused_imports,
        reason = "the program uses all of each module"
    )
)]

pub mod analysis;
#[cfg(feature = "program")]
pub mod cli;
mod columns;
#[cfg(feature = "program")]
mod config;
pub mod engine;
mod filter;
#[cfg(feature = "program")]
mod headless;
#[cfg(feature = "program")]
mod inputs;
pub mod monitor;
mod names;
mod new_file;
#[cfg(feature = "program")]
pub mod nic;
#[cfg(not(feature = "program"))]
mod nic {
    pub mod known;
}
mod order;
mod output;
pub mod packet;
pub mod record;
#[cfg(feature = "program")]
pub mod run;
#[cfg(feature = "program")]
pub mod running;
#[cfg(feature = "program")]
mod setup;
pub mod tables;
#[cfg(feature = "program")]
pub mod view;
#[cfg(not(feature = "program"))]
mod view {
    pub(crate) mod fit;
}
#[cfg(all(test, feature = "program"))]
mod tests {
    pub(crate) mod sample;
    mod schemas;
}
#[cfg(feature = "program")]
mod no_effect;
pub mod text;
#[cfg(feature = "program")]
mod values;
