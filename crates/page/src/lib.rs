//! The part of `fcn.html` that reads a capture, compiled to WebAssembly: it takes the octets of a
//! file from the page, and returns JSON, the page of `fcn-top --html`, and packets. `border.rs` is
//! the border to the page's scripts (`worker.js`), and the only file with unsafe code.
//! Not here: what is analysed (`fcn-top/src/analysis.rs`), and what is shown (`open.js`).
#![cfg(target_family = "wasm")]
#![deny(unsafe_code)]

mod border;

use border::{FileReader, Output};
use fcn_link::capture_file::CaptureReader;
use fcn_top::analysis::Analysis;
use std::cell::RefCell;

/// Memory for packets that can be saved, in octets.
const ROOM: usize = 128 << 20;

thread_local! {
    /// The analysed capture.
    static ANALYSIS: RefCell<Option<Analysis>> = const { RefCell::new(None) };
}

/// Packets are analysed in steps of this many batches: a browser frees the octets of a file only
/// between them.
const STEP: usize = 64;

/// Opens the page's file. `random` makes the seeds of hashes unpredictable.
fn open(random: u32) -> Result<(), String> {
    std::panic::set_hook(Box::new(|panic| {
        border::fail(&format!("internal error, please report it: {panic}"));
    }));
    // Hash seeds are made from addresses, which are otherwise the same in each run: a capture could
    // be made for them whose keys all collide.
    std::mem::forget(Vec::<u8>::with_capacity((random % (1 << 20)) as usize));
    let name = border::name();
    let open = {
        let name = name.clone();
        move || CaptureReader::from(FileReader::default(), &name)
    };
    let analysis = Analysis::open(Box::new(open), &name, ROOM, border::now)
        .map_err(|failure| failure.to_string())?;
    ANALYSIS.set(Some(analysis));
    Ok(())
}

/// Analyses some packets; returns true if there are more.
fn advance() -> Result<bool, String> {
    ANALYSIS.with_borrow_mut(|analysis| {
        let analysis = analysis.as_mut().ok_or("no capture is open")?;
        for _ in 0..STEP {
            if !analysis.advance().map_err(|failure| failure.to_string())? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Writes something about the analysed capture.
fn write<T>(what: impl FnOnce(&Analysis, &mut Output) -> Result<T, String>) -> Result<T, String> {
    ANALYSIS.with_borrow(|analysis| match analysis {
        Some(analysis) => what(analysis, &mut Output),
        None => Err("no capture is open".to_owned()),
    })
}

fn json() -> Result<(), String> {
    write(|analysis, out| analysis.write_json(out).map_err(|error| error.to_string()))
}

fn page() -> Result<(), String> {
    write(|analysis, out| analysis.write_page(out).map_err(|error| error.to_string()))
}

/// Writes the packets of a row; returns the number of packets that were dropped before.
fn packets(row: u32) -> Result<u64, String> {
    write(|analysis, out| {
        let (_, dropped) = analysis.write_packets(row as usize, out)?;
        Ok(dropped)
    })
}

/// Returns the number of packets analysed.
fn count() -> u64 {
    ANALYSIS.with_borrow(|analysis| analysis.as_ref().map_or(0, Analysis::packets))
}
