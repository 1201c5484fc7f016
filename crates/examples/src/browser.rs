//! Pages in a headless browser.

use std::path::Path;
use std::process::Command;

/// Programs to try.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-headless-shell",
    "chromium-browser",
    "google-chrome",
];

/// Returns the elements of a page after a browser has run its scripts. `None` without a browser.
///
/// # Panics
/// The browser fails.
#[must_use]
pub fn rendered(page: &Path) -> Option<String> {
    for browser in BROWSERS {
        let profile = tempfile::tempdir().expect("a folder for the browser");
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--virtual-time-budget=5000",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--dump-dom")
            .arg(page)
            .output();
        match output {
            Ok(output) if output.status.success() => {
                return Some(String::from_utf8(output.stdout).expect("a page in UTF-8"));
            }
            Ok(output) => panic!("{browser}: {output:?}"),
            Err(_) => {}
        }
    }
    fcn_skip::skipped!("what a browser makes of a page: needs chromium-headless-shell");
    None
}
