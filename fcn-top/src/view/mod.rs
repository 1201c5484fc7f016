//! The terminal user interface: current tables, controlled by keys and mouse.
//!
//! It depends on [`TableSource`](crate::tables::TableSource) and its tables, never on the monitor.
//! [`App`] is everything except the terminal: keys, mouse and tables go in; pictures, requests for
//! data and effects ([`Effect`]) come out. [`run`] is the loop around it on a real terminal.
//!
//! Each view is a file (`qps`, `points`, `flow`, `paths`, `events`, `interfaces`, `nics`), draws
//! itself and does not use the others' state; `table` has the common parts of all tables, `context`
//! the state shared by all views, `head` and `prompt` the lines above and below.

mod app;
mod context;
mod effect;
mod events;
mod explanation;
pub(crate) mod fit;
mod flow;
mod flows;
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
mod receivers;
mod tab;
mod table;
mod terminal;
mod theme;
mod time_series;
mod views;

pub use crate::config::Colours;
pub use crate::output::table::Format;
pub use app::App;
pub use effect::Effect;
pub use options::Options;
pub use tab::Tab;
pub use terminal::run;
