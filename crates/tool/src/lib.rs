//! What the command-line tools share: what they talk to ([`console`]), how they fail ([`failure`]), text that no terminal acts on ([`mod@clean`]), a bar
//! ([`progress`]), quantities as people write them ([`quantity`]), and sending: its options, safeguards and report
//! ([`sending`]); pages to send, with charts ([`page`]); metrics for Prometheus (`metrics`, a feature); and which version of what they are ([`version`]).
//!
//! Nothing of what one tool alone does; no packets.
#![forbid(unsafe_code)]

pub mod clean;
pub mod console;
pub mod failure;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod output;
pub mod page;
pub mod progress;
pub mod quantity;
pub mod sending;

/// What `--version` prints behind a tool's name: the version, and the drafts that are followed.
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
