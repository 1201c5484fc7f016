//! The dialog of an interface: the scenario's parameters as defined in its file, and how to play
//! it. Each control is an option of a capture, too.

use crate::scenario::{Parameter, Play, Scenario};
use clap::Arg;
use std::fmt::Write as _;

/// Seed of all random decisions.
pub const SEED: &str = "seed";
/// Vantage points of a simulation.
pub const VANTAGE: &str = "vantage";
/// Speed at which a simulation is played.
pub const PACE: &str = "pace";
/// Rate of a stress's frames.
pub const RATE: &str = "rate";
/// Number of a stress's frames.
pub const COUNT: &str = "count";

/// Value of [`PACE`] for a capture without pacing.
pub const AT_ONCE: &str = "at-once";
/// Value of [`COUNT`] for a capture without a limit.
pub const UNTIL_STOPPED: &str = "until-stopped";

/// Speeds with their labels. Scenarios last milliseconds: in real time, packets would appear all at
/// once.
const PACES: [(&str, &str); 6] = [
    (AT_ONCE, "all packets at once"),
    ("1", "in real time"),
    ("0.1", "10 times slower"),
    ("0.01", "100 times slower"),
    ("0.001", "1,000 times slower: 1 ms takes a second"),
    ("0.0001", "10,000 times slower: 1 ms takes 10 seconds"),
];
const PACE_DEFAULT: &str = "0.001";
const COUNTS: [(&str, &str); 5] = [
    ("1k", "1,000 packets"),
    ("10k", "10,000 packets"),
    ("100k", "100,000 packets"),
    ("1M", "1,000,000 packets"),
    (UNTIL_STOPPED, "until the capture is stopped"),
];
const COUNT_DEFAULT: &str = "10k";
const RATE_DEFAULT: &str = "1kpps";

/// A control of the dialog.
#[derive(Clone, Debug)]
pub struct Control {
    /// Name: the option's without dashes.
    pub name: String,
    /// Description.
    pub about: String,
    /// Default value.
    pub default: String,
    /// True if it is a parameter of the scenario, for `--set`.
    pub is_parameter: bool,
    kind: Kind,
}

/// Kind of a control.
#[derive(Clone, Debug)]
enum Kind {
    /// A value of this type.
    Value(&'static str),
    /// One of these values, each with its label.
    OneOf(Vec<(String, String)>),
    /// Any of these values.
    AnyOf(Vec<String>),
}

impl Control {
    fn own(name: &str, about: &str, default: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            default: default.to_owned(),
            is_parameter: false,
            kind,
        }
    }

    fn parameter(parameter: &Parameter) -> Self {
        let Parameter {
            name,
            about,
            default,
            values,
            ..
        } = parameter;
        let mut sorted: Vec<_> = values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let kind = if sorted == ["false", "true"] {
            Kind::Value("boolean")
        } else if !values.is_empty() {
            Kind::OneOf(pairs(
                values.iter().map(|value| (value.as_str(), value.as_str())),
            ))
        } else if default.parse::<i32>().is_ok() {
            Kind::Value("integer")
        } else if default.parse::<f64>().is_ok() {
            Kind::Value("double")
        } else {
            Kind::Value("string")
        };
        Self {
            name: name.clone(),
            about: about.clone(),
            default: default.clone(),
            is_parameter: true,
            kind,
        }
    }

    /// Returns the option of a capture. The scenario checks its value, with its own error messages.
    pub fn option(&self) -> Arg {
        Arg::new(self.name.clone())
            .long(self.name.clone())
            .help(self.about.clone())
            .allow_hyphen_values(true)
    }
}

fn pairs<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let values = values.into_iter();
    values
        .map(|(value, shown)| (value.to_owned(), shown.to_owned()))
        .collect()
}

/// Returns the controls of a scenario: first those for playing it, which are changed most often.
pub fn for_scenario(scenario: &Scenario) -> Vec<Control> {
    let mut controls = Vec::new();
    match &scenario.play {
        Play::Simulation(simulation) => {
            let (about, paces) = ("how fast packets are sent", Kind::OneOf(pairs(PACES)));
            controls.push(Control::own(PACE, about, PACE_DEFAULT, paces));
            let points = simulation.vantage_names();
            let about =
                "vantage points at which packets are captured (node:peer); none selected: all";
            let all = points.join(",");
            controls.push(Control::own(VANTAGE, about, &all, Kind::AnyOf(points)));
            controls.push(seed(simulation.seed));
        }
        Play::Gallery(_) => {}
        Play::Stress(stress) => {
            let about = "how fast packets are sent: 100kpps, 2.5Gbps (layer 2) or 10Gbps-l1";
            let rate = Kind::Value("string");
            controls.push(Control::own(RATE, about, RATE_DEFAULT, rate));
            let (about, counts) = ("number of packets", Kind::OneOf(pairs(COUNTS)));
            controls.push(Control::own(COUNT, about, COUNT_DEFAULT, counts));
            controls.push(seed(stress.seed));
        }
    }
    controls.extend(scenario.parameters.iter().map(Control::parameter));
    controls
}

fn seed(seed: u64) -> Control {
    let about = "seed of all random decisions; the same seed gives the same packets";
    // A string, because numbers in Wireshark's dialog are shorter.
    Control::own(SEED, about, &seed.to_string(), Kind::Value("string"))
}

/// Formats the dialog in the protocol's syntax.
pub fn dialog(controls: &[Control]) -> String {
    let mut text = String::new();
    for (number, control) in controls.iter().enumerate() {
        let Control {
            name,
            about,
            default,
            ..
        } = control;
        let (kind, values): (String, Vec<String>) = match &control.kind {
            Kind::Value(kind) => (format!("{kind}}}{{default={default}"), Vec::new()),
            // Wireshark takes the default from the values.
            Kind::OneOf(values) => {
                let value = |(value, shown): &(String, String)| {
                    let is_default = value == default;
                    format!("{{value={value}}}{{display={shown}}}{{default={is_default}}}")
                };
                ("selector".to_owned(), values.iter().map(value).collect())
            }
            Kind::AnyOf(values) => {
                let value = |value: &String| {
                    format!("{{value={value}}}{{display={value}}}{{default=true}}{{enabled=true}}")
                };
                ("multicheck".to_owned(), values.iter().map(value).collect())
            }
        };
        let shown = name.replace('_', " ");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "arg {{number={number}}}{{call=--{name}}}{{display={shown}}}{{tooltip={about}}}{{type={kind}}}"
        );
        for value in values {
            let _ = writeln!(text, "value {{arg={number}}}{value}");
        }
    }
    text
}
