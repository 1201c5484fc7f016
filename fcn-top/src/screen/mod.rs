//! The screen: tables as they are now, on a terminal, with keys and mouse.
//!
//! It knows [`Watched`](crate::tables::Watched) and the tables that come from it, never the monitor. [`App`] is all of
//! it but the terminal: keys, mouse and tables go in; what is drawn, what is wanted next and what is to be done
//! ([`Effect`]) come out. [`run`] is the loop around it on a real terminal.

mod app;
mod chart;
mod commands;
mod draw;
mod effect;
mod facts;
mod fit;
mod flow;
mod foot;
mod head;
mod help;
mod input;
mod keys;
mod line;
mod moments;
mod mouse;
mod options;
mod panels;
mod paths;
mod picker;
mod picture;
mod points;
mod sheet;
mod sums;
mod terminal;
mod theme;
mod view;

pub use app::App;
pub use effect::{Effect, Format, Records, Writing};
pub use options::{Colours, Options};
pub use terminal::{Writer, run, run_with};
pub use view::View;
