//! Colours: the terminal's own sixteen, each with one meaning, and no background; and what stands for the signs of Unicode
//! where a terminal has none.

use super::Colours;
use fcn_wire::Kind;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// What a text is to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing special.
    Plain,
    /// Less important, or unclear.
    Dim,
    /// A heading, or something that can be chosen.
    Strong,
    /// As it should be.
    Good,
    /// Somewhat wrong.
    Warn,
    /// Wrong.
    Bad,
    /// Of notifications of that kind.
    Kind(Kind),
}

/// A set of colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme(pub Colours);

impl Theme {
    /// How a text of that tone looks.
    pub(super) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        // Yellow cannot be read on white, blue hardly on black; where the background is not known neither is used. What is
        // wrong is bold as well, and every colour has its word beside it: not all eyes tell them apart.
        match (tone, self.0) {
            (Tone::Plain, _) | (Tone::Good | Tone::Kind(_), Colours::None) => plain,
            (Tone::Strong, _) | (Tone::Warn, Colours::None) => bold,
            (Tone::Bad, Colours::None) => bold.add_modifier(Modifier::UNDERLINED),
            (Tone::Dim, Colours::Auto | Colours::None) => plain.add_modifier(Modifier::DIM),
            (Tone::Dim, _) => plain.fg(Color::DarkGray),
            (Tone::Good, _) => plain.fg(Color::Green),
            (Tone::Warn, Colours::Dark) => plain.fg(Color::LightRed),
            (Tone::Warn, _) => plain.fg(Color::Red),
            (Tone::Bad, Colours::Dark) => bold.fg(Color::LightRed),
            (Tone::Bad, _) => bold.fg(Color::Red),
            (Tone::Kind(kind), colours) => plain.fg(match (kind, colours) {
                (Kind::Cnp, _) => Color::Cyan,
                (Kind::FastCnp1 | Kind::FastCnp2, _) => Color::Magenta,
                (Kind::ProxyCn, Colours::Light) => Color::Blue,
                (Kind::ProxyCn, _) => Color::LightBlue,
                (Kind::WanFcn, Colours::Dark) => Color::Yellow,
                (Kind::WanFcn, _) => Color::LightMagenta,
            }),
        }
    }

    /// The same, bold.
    pub(super) fn bold(self, tone: Tone) -> Style {
        self.style(tone).add_modifier(Modifier::BOLD)
    }

    /// How the line looks that is chosen.
    pub(super) fn chosen(self) -> Style {
        Style::new()
            .fg(Color::Reset)
            .add_modifier(Modifier::REVERSED)
    }
}

/// Signs, and what stands for each on a terminal without Unicode.
const ASCII: [(&str, char); 11] = [
    (" ▁", '_'),
    ("▂", '.'),
    ("▃", ':'),
    ("▄░", '-'),
    ("▅", '='),
    ("▆", '+'),
    ("▇", '*'),
    ("█", '#'),
    ("─–−", '-'),
    ("│", '|'),
    ("┌┐└┘├╵", '+'),
];

/// Puts an ASCII sign in the place of every other one.
pub(super) fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let Some(sign) = cell.symbol().chars().next().filter(|c| !c.is_ascii()) else {
            continue;
        };
        let plain = ASCII.iter().find(|(signs, _)| signs.contains(sign));
        cell.set_char(match sign {
            '→' | '▸' | '▶' => '>',
            '←' => '<',
            '▲' | '↑' => '^',
            '▼' | '↓' | '▾' => 'v',
            '…' | '·' => '.',
            '●' => 'o',
            'µ' => 'u',
            '×' => 'x',
            _ => plain.map_or('?', |(_, plain)| *plain),
        });
    }
}
