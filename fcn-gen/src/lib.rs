//! Congestion scenarios of RoCEv2 networks: their definition (`scenario`), their simulation
//! (`sim`), and the files and reports written from them.
#![forbid(unsafe_code)]

pub mod check;
pub mod cli;
mod commands;
pub mod compare;
pub mod describe;
pub mod device;
pub mod emulate;
pub mod extcap;
pub mod gallery;
pub mod ioam;
mod json_lines;
pub mod live;
pub mod macs;
pub mod mirror;
pub mod pace;
pub mod pending;
pub mod plot;
pub mod report;
mod routing;
pub mod run;
pub mod scenario;
pub mod sim;
pub mod stress;
pub mod truth;
pub mod units;
pub mod write;
