//! Decompression by libzstd.

use std::io::{self, BufRead};
use zstd::stream::read::Decoder;

/// Largest window of a zstd frame, as a power of 2: the default limit of the zstd tool.
const WINDOW: u32 = 27;

/// Returns a reader of decompressed octets.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn decoder<R: BufRead>(packed: R) -> io::Result<Decoder<'static, R>> {
    let mut decoder = Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW)?;
    Ok(decoder)
}
