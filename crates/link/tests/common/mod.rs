//! Common parts of several tests.
pub mod check;
pub mod netns;
