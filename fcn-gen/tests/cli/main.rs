//! The program from outside: what it prints, what it writes, how it ends.

mod common;
mod compare;
mod extcap;
mod run;
mod texts;
mod write;
