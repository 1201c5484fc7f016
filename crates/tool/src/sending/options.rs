//! The options of tools that send.

use crate::output::Replacing;
use clap::{Args, ValueEnum};
use fcn_link::backend::BackendChoice;
use fcn_link::clock::Waiting;
use fcn_link::pacing::CatchUp;
use fcn_link::xdp::CopyMode;
use std::path::PathBuf;

/// Target of frames.
#[derive(Clone, Debug, Args)]
pub struct LinkOptions {
    /// The interface to send on
    #[arg(long, value_name = "IF", required_unless_present = "output")]
    pub iface: Option<String>,
    /// Write a capture file instead, at once, with each frame's due time as its time stamp; `-` is
    /// standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "iface")]
    pub output: Option<PathBuf>,
    /// Permission to replace files.
    #[command(flatten)]
    pub replacing: Replacing,
    /// Write each frame when it is due, for a program that reads the file as it grows
    #[arg(long, requires = "output", conflicts_with = "top")]
    pub live: bool,
    /// How to send
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        conflicts_with = "output"
    )]
    pub backend: Backend,
    /// Send on this many queues, one thread each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub queues: u32,
    /// Send even if a default route uses this interface
    #[arg(long, conflicts_with = "output")]
    pub allow_default_route: bool,
}

/// Backends for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// AF_XDP in the best mode the driver supports, else AF_PACKET
    Auto,
    /// AF_XDP in the best mode the driver supports
    Xdp,
    /// AF_XDP, zero copy only
    XdpZeroCopy,
    /// AF_XDP in copy mode
    XdpCopy,
    /// AF_PACKET
    Packet,
}

impl From<Backend> for BackendChoice {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Auto => Self::Best,
            Backend::Xdp => Self::Xdp(CopyMode::Best),
            Backend::XdpZeroCopy => Self::Xdp(CopyMode::Never),
            Backend::XdpCopy => Self::Xdp(CopyMode::Always),
            Backend::Packet => Self::PacketSocket,
        }
    }
}

/// Timing of frames.
#[derive(Clone, Debug, Args)]
pub struct Manner {
    /// Hand over at most this many frames at once [default: depends on the rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "output")]
    pub burst: Option<u16>,
    /// What to do with late frames [default: quickly if gaps are 100 µs or more, else gently]
    #[arg(long, value_name = "HOW", conflicts_with_all = ["output", "top"])]
    pub catch_up: Option<CatchUpWanted>,
    /// Wait by spinning: uses one core for each queue, for smaller timing errors
    #[arg(long, conflicts_with_all = ["output", "top"])]
    pub spin: bool,
}

/// Treatment of late frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatchUpWanted {
    /// Shorten gaps by 5 % until back on schedule: small errors
    Gently,
    /// Shorten gaps by 40 % until back on schedule: few errors
    Quickly,
    /// Send all of them at once
    Burst,
}

impl Manner {
    /// Returns the treatment of late frames.
    #[must_use]
    pub const fn catch_up(&self) -> CatchUp {
        match self.catch_up {
            Some(CatchUpWanted::Gently) => CatchUp::Gently,
            Some(CatchUpWanted::Quickly) => CatchUp::Quickly,
            Some(CatchUpWanted::Burst) => CatchUp::Burst,
            None => CatchUp::ByGap,
        }
    }

    /// Returns the waiting strategy.
    #[must_use]
    pub const fn waiting(&self) -> Waiting {
        if self.spin {
            Waiting::Spin
        } else {
            Waiting::Sleep
        }
    }
}
