//! Colours, each with one meaning and without background, and ASCII replacements for Unicode
//! symbols.

use super::Colours;
use fcn_wire::Kind;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// Meaning of a text to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing special.
    Plain,
    /// Less important, or unclear.
    Dim,
    /// A heading, or something selectable.
    Strong,
    /// As it should be.
    Good,
    /// Somewhat wrong.
    Warn,
    /// Wrong.
    Bad,
    /// Belongs to notifications of that kind.
    Kind(Kind),
}

/// Returns the colour of a tone, from the 256 that are the same in every terminal: the first
/// sixteen depend on the user's theme, so their legibility is unknown.
///
/// If the background is unknown, contrast is at least 3 on black and on white, otherwise at least
/// 4.5. The colours of kinds differ by at least 12 (CIEDE2000), also for protanopes, deuteranopes
/// and tritanopes: those of one hue differ in lightness.
fn colour(tone: Tone, colours: Colours) -> Color {
    let [unknown, dark, light] = match tone {
        Tone::Plain | Tone::Strong => return Color::Reset,
        Tone::Dim => [243, 246, 242],
        Tone::Good => [29, 72, 29],
        Tone::Warn | Tone::Bad => [160, 203, 160],
        Tone::Kind(Kind::Cnp) => [26, 123, 26],
        Tone::Kind(Kind::FastCnp1) => [126, 201, 162],
        Tone::Kind(Kind::FastCnp2) => [198, 175, 53],
        Tone::Kind(Kind::ProxyCn) => [105, 183, 20],
        Tone::Kind(Kind::WanFcn) => [136, 226, 94],
    };
    Color::Indexed(match colours {
        Colours::Dark => dark,
        Colours::Light => light,
        Colours::Auto | Colours::None => unknown,
    })
}

/// A set of colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme(pub Colours);

impl Theme {
    /// Returns the style of a tone.
    pub(super) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        // Problems are also bold, and every colour comes with a word: not everyone can distinguish
        // them.
        match (tone, self.0) {
            (Tone::Plain, _) | (Tone::Good | Tone::Kind(_), Colours::None) => plain,
            (Tone::Strong, _) | (Tone::Warn, Colours::None) => bold,
            (Tone::Bad, Colours::None) => bold.add_modifier(Modifier::UNDERLINED),
            (Tone::Dim, Colours::None) => plain.add_modifier(Modifier::DIM),
            (Tone::Bad, colours) => bold.fg(colour(tone, colours)),
            (_, colours) => plain.fg(colour(tone, colours)),
        }
    }

    /// Same, bold.
    pub(super) fn bold(self, tone: Tone) -> Style {
        self.style(tone).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of the selected line.
    pub(super) fn chosen(self) -> Style {
        Style::new()
            .fg(Color::Reset)
            .add_modifier(Modifier::REVERSED)
    }
}

/// Symbols, and their replacements on a terminal without Unicode.
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

/// Replaces all other symbols by ASCII characters.
pub(super) fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        // Symbols may combine with the contents of the cell before them.
        let Some(sign) = symbol.chars().next().filter(|_| !symbol.is_ascii()) else {
            continue;
        };
        let plain = ASCII.iter().find(|(signs, _)| signs.contains(sign));
        cell.set_char(match sign {
            '→' | '▸' | '▶' => '>',
            '←' => '<',
            '▲' | '↑' => '^',
            '▼' | '↓' | '▾' => 'v',
            // One cell, and neither the end of a sentence nor the mark of an estimate.
            '…' => '$',
            '·' => '.',
            '●' => 'o',
            'µ' => 'u',
            '×' => 'x',
            sign if sign.is_ascii() => sign,
            _ => plain.map_or('?', |(_, plain)| *plain),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::Cell;

    #[test]
    fn only_ascii_is_left() {
        let mut buffer = Buffer::with_lines(["e\u{301}th0 → é…"]);
        to_ascii(&mut buffer);
        let text: String = buffer.content.iter().map(Cell::symbol).collect();
        assert_eq!(text, "eth0 > ?$");
    }
}
