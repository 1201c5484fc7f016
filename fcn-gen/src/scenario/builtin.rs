//! The built-in scenarios: TOML files of `fcn-gen/scenarios/`, embedded.

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        const TEXTS: &[(&str, &str)] = &[ $( ($name, include_str!(concat!("../../scenarios/", $name, ".toml"))), )+ ];
    };
}

embedded!(
    "receiver-cnp",
    "switch-cnp",
    "fast-cnp",
    "fast-cnp-ioam",
    "receiver-fast-cnp",
    "stubborn-sender",
    "detour",
    "proxy",
    "wan-fcn",
    "pfc",
    "incast",
    "victim-flow",
    "all-to-all",
    "attack",
    "border",
    "formats",
    "malformed",
    "stress-cnp",
    "stress-fast-cnp",
    "stress-mix",
);

/// Returns names and one-line descriptions, in a recommended order.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.iter().map(|(name, text)| (*name, about(text)))
}

/// Returns the TOML of the scenario `name`.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Returns the kind of the scenario `name`: `simulation`, `gallery`, or `stress`.
#[must_use]
pub fn kind(name: &str) -> &'static str {
    let has = |beginning: &str| {
        text(name).is_some_and(|text| text.lines().any(|line| line.starts_with(beginning)))
    };
    if has("gallery =") {
        "gallery"
    } else if has("[stress]") {
        "stress"
    } else {
        "simulation"
    }
}

/// Returns the value of `about`, which has its own line in every built-in scenario.
fn about(text: &'static str) -> &'static str {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("about = \""));
    line.and_then(|line| line.strip_suffix('"'))
        .unwrap_or_default()
}
