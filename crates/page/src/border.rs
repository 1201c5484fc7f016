//! The border between this crate and the page's scripts: pointers into the memory that the scripts
//! read and write. A bindings generator would be a second tool chain for these nine functions.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};

/// Kinds of written octets.
const OUTPUT: u32 = 0;
const FAILURE: u32 = 1;

/// Longest name of a file, in octets: that of common file systems.
const MAX_NAME: usize = 1_024;

mod script {
    // SAFETY: `worker.js` provides these functions, with these types. They access only the octets
    // passed to them, and keep no pointer.
    #[link(wasm_import_module = "page")]
    unsafe extern "C" {
        /// Copies octets of the file, from an offset on; returns their number, 0 at its end and -1
        /// if it cannot be read.
        pub fn read(offset: f64, to: *mut u8, len: usize) -> i32;
        /// Copies the name of the file, as UTF-8; returns its length.
        pub fn name(to: *mut u8, len: usize) -> usize;
        /// Takes octets of this kind.
        pub fn write(kind: u32, from: *const u8, len: usize);
        /// Returns the current time, in milliseconds since the epoch.
        pub safe fn now() -> f64;
    }
}

/// The page's file.
#[derive(Debug, Default)]
pub struct FileReader {
    offset: u64,
}

impl Read for FileReader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // A file is shorter than 2^53 octets, so that a float is exact.
        // SAFETY: the pointer and the length are those of one slice, borrowed exclusively.
        let len = unsafe { script::read(self.offset as f64, room.as_mut_ptr(), room.len()) };
        let Ok(len) = usize::try_from(len) else {
            return Err(io::Error::other(
                "the browser cannot read it; it may have been changed, moved or removed",
            ));
        };
        let len = len.min(room.len());
        self.offset += len as u64;
        Ok(len)
    }
}

/// Output to the page.
#[derive(Debug)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        send(OUTPUT, octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn send(kind: u32, octets: &[u8]) {
    // SAFETY: the pointer and the length are those of one slice.
    unsafe { script::write(kind, octets.as_ptr(), octets.len()) };
}

/// Tells the page why something failed.
pub fn fail(why: &str) {
    send(FAILURE, why.as_bytes());
}

/// Returns the name of the page's file.
pub fn name() -> String {
    let mut text = vec![0; MAX_NAME];
    // SAFETY: the pointer and the length are those of one vector, borrowed exclusively.
    let len = unsafe { script::name(text.as_mut_ptr(), text.len()) };
    text.truncate(len);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the current time, in nanoseconds since the epoch.
pub fn now() -> u64 {
    (script::now() * 1e6) as u64
}

/// Returns 0, or 1 after telling the page why it failed.
fn status<T>(done: Result<T, String>) -> u32 {
    match done {
        Ok(_) => 0,
        Err(why) => {
            fail(&why);
            1
        }
    }
}

// SAFETY of all exports: no other symbol of the module has these names.

/// Opens the file; see [`crate::open`].
#[unsafe(no_mangle)]
extern "C" fn open(random: u32) -> u32 {
    status(crate::open(random))
}

/// Analyses some packets; returns 1 if there are more.
#[unsafe(no_mangle)]
extern "C" fn advance() -> u32 {
    match crate::advance() {
        Ok(more) => u32::from(more),
        Err(why) => {
            fail(&why);
            0
        }
    }
}

/// Writes the JSON of the analysis.
#[unsafe(no_mangle)]
extern "C" fn json() -> u32 {
    status(crate::json())
}

/// Writes the page of the analysis.
#[unsafe(no_mangle)]
extern "C" fn page() -> u32 {
    status(crate::page())
}

/// Writes the packets of a row; returns the number of packets dropped before, or -1.
#[unsafe(no_mangle)]
extern "C" fn packets(row: u32) -> f64 {
    match crate::packets(row) {
        Ok(dropped) => dropped as f64,
        Err(why) => {
            fail(&why);
            -1.0
        }
    }
}

/// Returns the number of packets analysed.
#[unsafe(no_mangle)]
extern "C" fn count() -> f64 {
    crate::count() as f64
}
