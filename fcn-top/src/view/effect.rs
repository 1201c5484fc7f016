//! Effects that the screen requests of its caller, such as writing files.

use super::Tab;
use crate::record::{CounterRecord, EventRecord, HopRecord, InterfaceRecord, LocalQpRecord};
use crate::record::{PointRecord, QpRecord, RowId};
use std::path::PathBuf;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON document.
    Json,
    /// Comma-separated values with a heading.
    Csv,
}

/// The lines of a table, filtered and in order as they were shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Records {
    /// What each QP is told.
    Qps(Vec<QpRecord>),
    /// Who tells.
    Points(Vec<PointRecord>),
    /// IOAM paths.
    Hops(Vec<HopRecord>),
    /// The log.
    Events(Vec<EventRecord>),
    /// Where packets come from.
    Interfaces(Vec<InterfaceRecord>),
    /// What this host's NICs count.
    Counters(Vec<CounterRecord>),
    /// Their queue pairs.
    LocalQps(Vec<LocalQpRecord>),
}

/// A table that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Writing {
    /// How.
    pub format: Format,
    /// The view that it was shown in.
    pub view: Tab,
    /// The new file.
    pub to: PathBuf,
    /// The moment shown, in nanoseconds since the epoch.
    pub at: u64,
    /// Its lines.
    pub records: Records,
}

/// What is to be done for the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The screen is left.
    Quit,
    /// The terminal is cleared and painted anew.
    Redraw,
    /// The program is suspended, and the terminal as it was meanwhile.
    Suspend,
    /// A picture of the screen is written; [`App::wrote`](super::App::wrote) is told how it went.
    Picture(PathBuf),
    /// The packets behind a row are written; [`App::exported`](super::App::exported) is told how it went.
    Export {
        /// The row.
        row: RowId,
        /// The new pcapng file.
        to: PathBuf,
    },
    /// A table is written; [`App::wrote`](super::App::wrote) is told how it went.
    Write(Box<Writing>),
}
