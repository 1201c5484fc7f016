//! What several of the tests share.
pub mod check;
pub mod netns;
