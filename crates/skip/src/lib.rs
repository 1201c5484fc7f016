//! Reports a test that cannot run in its environment to the suite (`cargo xtask test`): the test
//! prints the reason, appends it to the file named by the suite, and returns.
#![forbid(unsafe_code)]

use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable with the path of the file of the running test; each test of the suite has
/// its own.
pub const SKIP_FILE: &str = "FCN_SKIP_FILE";

/// Marker before the reason in the output.
pub const SKIP_MARK: &str = "SKIPPED:";

/// Reports that the current test, or a part of it, does not run, and why. Takes the same arguments
/// as `println!`.
#[macro_export]
macro_rules! skipped {
    ($($why:tt)*) => { $crate::skip(format_args!($($why)*)) };
}

/// Implements [`skipped!`].
///
/// # Panics
/// The suite's file cannot be written: a skipped test that counts as passed would be worse.
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
