//! Volume of the data flows that notifications are about: amount of data, and share of marked data.
//!
//! A flow with its volume takes about 1,270 octets, including its slots in the tables, and 2.8 KB
//! more after its first notification: 126 MB for 100,000 flows without notifications, 414 MB for
//! 100,000 with.

mod flow;

pub use flow::{PART, Volume};

#[cfg(test)]
mod tests;
