//! The screen: tables as they are now, on a terminal, with keys and mouse.
//!
//! It knows [`Watched`](crate::tables::Watched) and the tables that come from it, never the monitor. [`App`] is all of
//! it but the terminal: keys, mouse and tables go in; what is drawn, what is wanted next and what is to be done
//! ([`Effect`]) come out. [`run`] is the loop around it on a real terminal.
//!
//! Each view is a file (`qps`, `points`, `flow`, `paths`, `events`, `interfaces`, `nics`), draws itself and knows none of the others'
//! state; `table` has what all tables share, `world` what all views see, `head` and `prompt` what stands above and below.

mod app;
mod effect;
mod events;
mod explanation;
pub(crate) mod fit;
mod flow;
mod graph;
mod head;
mod history;
mod hits;
mod interfaces;
mod keys;
mod nics;
mod options;
mod overlay;
mod paths;
mod picture;
mod points;
mod prompt;
mod qps;
mod tab;
mod table;
mod terminal;
mod theme;
mod time_series;
mod views;
mod world;

pub use crate::config::Colours;
pub use crate::output::table::Format;
pub use app::App;
pub use effect::Effect;
pub use options::Options;
pub use tab::Tab;
pub use terminal::run;
