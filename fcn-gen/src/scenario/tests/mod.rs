//! Tests of whole scenarios: refusals in `refusals.rs`, the built-in ones in `builtins.rs`, and the
//! effect of files and settings on nodes and flows in `meaning.rs`, figures of published simulations in
//! `published.rs`.

mod builtins;
mod meaning;
mod published;
mod refusals;

use super::model::Simulation;
use super::{Play, Source, load};

/// A valid scenario of 16 lines.
const FINE: &str = r#"about = "test"
mechanism = "fast-cnp"
duration = "1ms"
[[switch]]
name = "leaf1"
[[host]]
name = "s"
count = 2
attach = "leaf1"
[[host]]
name = "r1"
attach = "leaf1"
[[flow]]
name = "f"
from = "s*"
to = "r1"
"#;

fn source(text: &str) -> Source {
    Source::Text {
        name: "t.toml".to_owned(),
        text: text.to_owned(),
    }
}

fn simulation(source: &Source, sets: &[&str]) -> Simulation {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    match load(source, &sets)
        .unwrap_or_else(|error| panic!("{sets:?}: {error}"))
        .play
    {
        Play::Simulation(simulation) => *simulation,
        Play::Gallery(_) | Play::Stress(_) => panic!("no simulation"),
    }
}

fn built_in(name: &str, sets: &[&str]) -> Simulation {
    simulation(&Source::Builtin(name.to_owned()), sets)
}

/// Returns `FINE` with a line replaced, and text appended.
fn with(line: &str, by: &str, more: &str) -> String {
    assert!(FINE.contains(line), "{line}");
    format!("{}{more}", FINE.replacen(line, by, 1))
}
