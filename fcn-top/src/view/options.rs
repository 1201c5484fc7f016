//! Initial options of the screen.

use super::{Colours, Tab};
use std::time::Duration;

/// Initial state of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum time between pictures.
    pub refresh: Duration,
    /// Initial view.
    pub view: Tab,
    /// Order of that view's table, such as `-rate_1s`; empty for the default.
    pub order: String,
    /// Filter of that view's table; empty for none.
    pub filter: String,
    /// Number of checked rules, and reasons why the others are not checked, as text; empty if
    /// unknown.
    pub checked: String,
    /// Colours.
    pub colours: Colours,
    /// True if the terminal does not support Unicode.
    pub ascii: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            refresh: Duration::from_millis(250),
            view: Tab::Qps,
            order: String::new(),
            filter: String::new(),
            checked: String::new(),
            colours: Colours::Auto,
            ascii: false,
        }
    }
}

impl Options {
    /// Completes these options from the environment (`NO_COLOR`, `COLORFGBG`, the locale) where
    /// they do not decide.
    pub(super) fn with_environment(&self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let ground = set("COLORFGBG");
        let colours = match ground.as_deref().and_then(|text| text.rsplit(';').next()) {
            _ if self.colours != Colours::Auto => self.colours,
            _ if set("NO_COLOR").is_some() => Colours::None,
            Some("7" | "15") => Colours::Light,
            Some("0" | "8") => Colours::Dark,
            _ => Colours::Auto,
        };
        // The first variable that is set decides, as usual.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(set)
            .unwrap_or_default()
            .to_lowercase();
        let ascii = self.ascii || !(locale.contains("utf-8") || locale.contains("utf8"));
        Self {
            colours,
            ascii,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_describes_the_terminal() {
        let with = |pairs: &'static [(&str, &str)]| {
            let variable = |name: &str| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            let options = Options::default().with_environment(variable);
            (options.colours, options.ascii)
        };
        assert_eq!(with(&[("LANG", "de_DE.UTF-8")]), (Colours::Auto, false));
        assert_eq!(
            with(&[("LANG", "C.utf8"), ("LC_ALL", "POSIX")]),
            (Colours::Auto, true)
        );
        assert_eq!(with(&[]), (Colours::Auto, true));
        assert_eq!(
            with(&[("COLORFGBG", "0;15"), ("LC_CTYPE", "C.UTF-8")]),
            (Colours::Light, false)
        );
        assert_eq!(
            with(&[("COLORFGBG", "15;default;0")]),
            (Colours::Dark, true)
        );
        assert_eq!(
            with(&[("NO_COLOR", "1"), ("COLORFGBG", "15;0")]),
            (Colours::None, true)
        );
        assert_eq!(with(&[("NO_COLOR", "")]), (Colours::Auto, true));
    }
}
