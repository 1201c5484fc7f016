//! Saves a screenshot to a file, as SVG or text.

use super::{Colours, fit};
use crate::new_file;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;
use std::path::Path;

/// Size of a cell in pixels.
const CELL: (usize, usize) = (9, 19);

/// Writes the screen to a new file; returns the number of lines.
///
/// # Errors
///
/// The file exists already, or cannot be written. The text says what failed, on what, and what to
/// do.
pub(super) fn write(buffer: &Buffer, colours: Colours, to: &Path) -> Result<u64, String> {
    let is_text = to.extension().is_some_and(|extension| extension == "txt");
    let picture = if is_text {
        text(buffer)
    } else {
        svg(buffer, colours)
    };
    new_file::write(to, picture.as_bytes())?;
    Ok(buffer.area.height.into())
}

fn lines(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    buffer.content.chunks(usize::from(buffer.area.width).max(1))
}

fn text(buffer: &Buffer) -> String {
    let line = |line: &[Cell]| symbols(line).trim_end().to_owned() + "\n";
    lines(buffer).map(line).collect()
}

/// Returns the contents of cells, without the blanks that follow a symbol wider than one cell.
fn symbols(cells: &[Cell]) -> String {
    let mut taken = 0;
    let seen = cells.iter().map(Cell::symbol).filter(|symbol| {
        let is_seen = taken == 0;
        taken = if is_seen { fit::width(symbol) } else { taken }.saturating_sub(1);
        is_seen
    });
    seen.collect()
}

/// Returns background and text colour of a picture: light if the colours are for a light
/// background.
const fn ground(colours: Colours) -> [&'static str; 2] {
    match colours {
        Colours::Light => ["#ffffff", "#1a1f26"],
        _ => ["#000000", "#d4d4d4"],
    }
}

/// Converts one of the 256 colours above the first sixteen, a cube of six by six by six and greys;
/// `usual` for any other.
fn hex(colour: Color, usual: &str) -> String {
    let Color::Indexed(number) = colour else {
        return usual.to_owned();
    };
    let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
    let [red, green, blue] = match number.saturating_sub(16) {
        grey @ 216.. => [8 + (grey - 216) * 10; 3],
        cube => [cube / 36, cube / 6 % 6, cube % 6].map(level),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn svg(buffer: &Buffer, colours: Colours) -> String {
    let [ground, text_colour] = ground(colours);
    let (width, height) = (
        usize::from(buffer.area.width) * CELL.0,
        usize::from(buffer.area.height) * CELL.1,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{ground}\"/>\n"
    );
    for (y, line) in lines(buffer).enumerate() {
        let mut x = 0;
        // Cells of equal style become one text element, as wide as the cells.
        for run in line.chunk_by(|a, b| a.style() == b.style()) {
            let (left, wide) = (x * CELL.0, run.len() * CELL.0);
            x += run.len();
            let text = symbols(run);
            let Some(first) = run.first() else { continue };
            let (mut fill, mut behind) = (hex(first.fg, text_colour), hex(first.bg, ground));
            if first.modifier.contains(Modifier::REVERSED) {
                std::mem::swap(&mut fill, &mut behind);
            }
            if behind != ground {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left}\" y=\"{}\" width=\"{wide}\" height=\"{}\" fill=\"{behind}\"/>",
                    y * CELL.1,
                    CELL.1
                );
            }
            if text.trim().is_empty() {
                continue;
            }
            let weight = if first.modifier.contains(Modifier::BOLD) {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let text = text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text x=\"{left}\" y=\"{}\" textLength=\"{wide}\" fill=\"{fill}\"{weight} xml:space=\"preserve\">{text}</text>",
                y * CELL.1 + 14
            );
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn text_and_svg_match_the_screen() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "a<b & c", Style::new().fg(Color::Indexed(203)).bold());
        buffer.set_string(2, 1, "→ █", Style::new().reversed());
        let stacked = Style::new().fg(Color::Indexed(26)).bg(Color::Indexed(246));
        buffer.set_string(6, 1, "▄", stacked);
        assert_eq!(text(&buffer), "a<b & c\n  → █ ▄\n");
        let mut wide = Buffer::empty(Rect::new(0, 0, 12, 1));
        wide.set_string(0, 0, "交換a機", Style::new());
        assert_eq!(text(&wide), "交換a機\n");
        assert!(svg(&wide, Colours::Dark).contains(">交換a機 "));
        let light = svg(&buffer, Colours::Light);
        assert!(light.contains("fill=\"#ffffff\" xml:space=\"preserve\">→ █<"));
        let svg = svg(&buffer, Colours::Dark);
        assert!(svg.contains(
            "fill=\"#ff5f5f\" font-weight=\"bold\" xml:space=\"preserve\">a&lt;b &amp; c<"
        ));
        assert!(svg.contains("fill=\"#000000\" xml:space=\"preserve\">→ █<"));
        assert!(
            svg.contains("height=\"19\" fill=\"#949494\"/>") && svg.contains("fill=\"#005fd7\"")
        );
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("screen.txt");
        assert_eq!(write(&buffer, Colours::Dark, &to), Ok(2));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), text(&buffer));
        assert!(
            write(&buffer, Colours::Dark, &to)
                .unwrap_err()
                .contains("choose another name")
        );
    }
}
