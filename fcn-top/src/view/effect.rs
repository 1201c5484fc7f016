//! Effects that the screen requests of its caller, such as writing files.

use crate::output::table::TableText;
use crate::record::RowId;
use std::path::PathBuf;

/// An effect requested by the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Leaves the screen.
    Quit,
    /// Clears and repaints the terminal.
    Redraw,
    /// Suspends the program, with the terminal restored meanwhile.
    Suspend,
    /// Writes a picture of the screen; [`App::wrote`](super::App::wrote) gets the result.
    Picture(PathBuf),
    /// Exports the packets of a row; [`App::exported`](super::App::exported) gets the result.
    Export {
        /// The row.
        row: RowId,
        /// The new pcapng file.
        to: PathBuf,
    },
    /// Writes a table; [`App::wrote`](super::App::wrote) gets the result.
    Write {
        /// The table, filtered and sorted as shown.
        text: TableText,
        /// The new file.
        to: PathBuf,
    },
}
