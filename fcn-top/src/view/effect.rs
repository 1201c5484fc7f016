//! Effects that the screen requests of its caller, such as writing files.

use crate::output::table::TableText;
use crate::record::RowId;
use std::path::PathBuf;

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
    Write {
        /// The table, filtered and in order as it was shown.
        text: TableText,
        /// The new file.
        to: PathBuf,
    },
}
