//! Common parts of the command-line tools: streams and interrupts ([`console`]), failures
//! ([`failure`]), text that is safe for terminals ([`mod@clean`]), a progress bar ([`progress`]),
//! quantities in human notation ([`quantity`]), sending with its options, safeguards and report
//! ([`sending`]), standalone HTML pages with charts ([`page`]), metrics for Prometheus (`metrics`,
//! a feature), and versions ([`version`]).
//!
//! Contains nothing that is specific to one tool, and no packets.
#![forbid(unsafe_code)]

pub mod clean;
#[cfg(feature = "console")]
pub mod console;
pub mod failure;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "console")]
pub mod output;
pub mod page;
#[cfg(feature = "console")]
pub mod progress;
pub mod quantity;
#[cfg(feature = "console")]
pub mod sending;

/// Returns the output of `--version` after a tool's name: the version, and the drafts that are
/// followed.
#[must_use]
pub fn version() -> String {
    let drafts = fcn_wire::draft::ALL
        .iter()
        .map(|draft| format!("\n  {draft}"));
    format!(
        "{}\nfollows:{}",
        env!("CARGO_PKG_VERSION"),
        drafts.collect::<String>()
    )
}
