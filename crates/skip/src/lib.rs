//! How a test that cannot run where it is tells the suite (`cargo xtask test`): the test prints why, writes the same into the file
//! that the suite names, and returns.
#![forbid(unsafe_code)]

use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file of the test that runs; each test of the suite has its own.
pub const SKIP_FILE: &str = "FCN_SKIP_FILE";

/// What stands before the reason where people read it.
pub const SKIP_MARK: &str = "SKIPPED:";

/// Tells that the present test, or a part of it, does not run, and why; takes what `println!` takes.
#[macro_export]
macro_rules! skipped {
    ($($why:tt)*) => { $crate::skip(format_args!($($why)*)) };
}

/// As [`skipped!`].
///
/// # Panics
/// The suite's file cannot be written: a test that counted as passed would be worse.
pub fn skip(why: Arguments<'_>) {
    println!("{SKIP_MARK} {why}");
    if let Some(file) = std::env::var_os(SKIP_FILE) {
        let line = why.to_string().replace('\n', " ");
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| writeln!(file, "{line}"))
            .expect("the suite's file takes what is skipped");
    }
}
