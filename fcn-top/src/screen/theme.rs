//! Colours: sixteen of them at most, as the terminal has them, and no background.

use super::Colours;
use ratatui::style::{Color, Modifier, Style};

/// What a text is to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing special.
    Plain,
    /// Less important.
    Dim,
    /// A heading, or something that can be chosen.
    Accent,
    /// As it should be.
    Good,
    /// To be looked at.
    Warn,
    /// Wrong.
    Bad,
}

/// A set of colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme(pub Colours);

impl Theme {
    /// How a text of that tone looks.
    pub(super) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        if self.0 == Colours::None {
            return plain.add_modifier(match tone {
                Tone::Plain | Tone::Good => Modifier::empty(),
                Tone::Dim => Modifier::DIM,
                Tone::Accent | Tone::Warn => Modifier::BOLD,
                Tone::Bad => Modifier::BOLD | Modifier::UNDERLINED,
            });
        }
        // Yellow cannot be read on white, blue hardly on black; where the background is not known neither is used.
        match (tone, self.0) {
            (Tone::Plain, _) => plain,
            (Tone::Dim, Colours::Auto) => plain.add_modifier(Modifier::DIM),
            (Tone::Dim, _) => plain.fg(Color::DarkGray),
            (Tone::Accent, Colours::Light) => plain.fg(Color::Blue),
            (Tone::Accent, _) => plain.fg(Color::Cyan),
            (Tone::Good, _) => plain.fg(Color::Green),
            (Tone::Warn, Colours::Dark) => plain.fg(Color::Yellow),
            (Tone::Warn, _) => plain.fg(Color::Magenta),
            (Tone::Bad, Colours::Dark) => plain.fg(Color::LightRed).add_modifier(Modifier::BOLD),
            (Tone::Bad, _) => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// The same, bold.
    pub(super) fn bold(self, tone: Tone) -> Style {
        self.style(tone).add_modifier(Modifier::BOLD)
    }

    /// How the line looks that is chosen.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
