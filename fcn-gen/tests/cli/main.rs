//! Tests of the program from outside: its output, its files, its exit code.

mod common;
mod compare;
mod extcap;
mod run;
mod texts;
mod write;
