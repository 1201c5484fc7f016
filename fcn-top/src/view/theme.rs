//! Colours, each with one meaning, and no background; and what stands for the signs of Unicode where a terminal has none.

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

/// The colour of a tone, of the 256 that every terminal has alike: the sixteen below them are as the user's theme has them,
/// so nobody knows which of them can be read.
///
/// Where the ground is not known, contrast is at least 3 on black and on white, else 4.5 on it. The kinds differ by at least
/// 12 (CIEDE2000), also to the eyes of a protanope, a deuteranope and a tritanope: those of a hue do by their lightness.
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
    /// How a text of that tone looks.
    pub(super) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        // What is wrong is bold as well, and every colour has its word beside it: not all eyes tell them apart.
        match (tone, self.0) {
            (Tone::Plain, _) | (Tone::Good | Tone::Kind(_), Colours::None) => plain,
            (Tone::Strong, _) | (Tone::Warn, Colours::None) => bold,
            (Tone::Bad, Colours::None) => bold.add_modifier(Modifier::UNDERLINED),
            (Tone::Dim, Colours::None) => plain.add_modifier(Modifier::DIM),
            (Tone::Bad, colours) => bold.fg(colour(tone, colours)),
            (_, colours) => plain.fg(colour(tone, colours)),
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
        let symbol = cell.symbol();
        // Signs may be combined with what stands in the cell before any of them.
        let Some(sign) = symbol.chars().next().filter(|_| !symbol.is_ascii()) else {
            continue;
        };
        let plain = ASCII.iter().find(|(signs, _)| signs.contains(sign));
        cell.set_char(match sign {
            '→' | '▸' | '▶' => '>',
            '←' => '<',
            '▲' | '↑' => '^',
            '▼' | '↓' | '▾' => 'v',
            // One cell, and neither the end of a sentence nor an estimate.
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
    fn nothing_but_ascii_is_left() {
        let mut buffer = Buffer::with_lines(["e\u{301}th0 → é…"]);
        to_ascii(&mut buffer);
        let text: String = buffer.content.iter().map(Cell::symbol).collect();
        assert_eq!(text, "eth0 > ?$");
    }
}
