//! Saves a screenshot to a file, as SVG or text.

use crate::output::create_new;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Pixels of a cell.
const CELL: (usize, usize) = (9, 19);

/// Writes the screen into a new file; returns how many lines it has.
///
/// # Errors
/// There is a file of that name already, or it cannot be written: what failed, on what, and what to do.
pub(super) fn write(buffer: &Buffer, to: &Path) -> Result<u64, String> {
    let is_text = to.extension().is_some_and(|extension| extension == "txt");
    let picture = if is_text { text(buffer) } else { svg(buffer) };
    let written = create_new(to)?.write_all(picture.as_bytes());
    written.map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(buffer.area.height.into())
}

fn lines(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    buffer.content.chunks(usize::from(buffer.area.width).max(1))
}

fn text(buffer: &Buffer) -> String {
    let line = |line: &[Cell]| {
        line.iter()
            .map(Cell::symbol)
            .collect::<String>()
            .trim_end()
            .to_owned()
            + "\n"
    };
    lines(buffer).map(line).collect()
}

/// A colour of the terminal as it usually is on a dark background.
const fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Red => "#cd3131",
        Color::LightRed => "#f14c4c",
        Color::Green => "#23a55a",
        Color::Yellow => "#e5c07b",
        Color::Blue => "#3b78ff",
        Color::LightBlue => "#61afef",
        Color::Magenta => "#c678dd",
        Color::LightMagenta => "#ff79c6",
        Color::Cyan => "#29b8db",
        Color::DarkGray => "#808080",
        _ => "#d4d4d4",
    }
}

fn svg(buffer: &Buffer) -> String {
    let (width, height) = (
        usize::from(buffer.area.width) * CELL.0,
        usize::from(buffer.area.height) * CELL.1,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#1e1e1e\"/>\n"
    );
    for (y, line) in lines(buffer).enumerate() {
        let mut x = 0;
        // What looks alike is one text, as wide as its cells.
        for run in line.chunk_by(|a, b| a.style() == b.style()) {
            let (left, wide) = (x * CELL.0, run.len() * CELL.0);
            x += run.len();
            let text: String = run.iter().map(Cell::symbol).collect();
            let (Some(first), false) = (run.first(), text.trim().is_empty()) else {
                continue;
            };
            let is_chosen = first.modifier.contains(Modifier::REVERSED);
            if is_chosen {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left}\" y=\"{}\" width=\"{wide}\" height=\"{}\" fill=\"#d4d4d4\"/>",
                    y * CELL.1,
                    CELL.1
                );
            }
            let fill = if is_chosen {
                "#1e1e1e"
            } else {
                colour(first.fg)
            };
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
    fn text_and_svg_have_what_the_screen_has() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "a<b & c", Style::new().red().bold());
        buffer.set_string(2, 1, "→ █", Style::new().reversed());
        assert_eq!(text(&buffer), "a<b & c\n  → █\n");
        let svg = svg(&buffer);
        assert!(svg.contains(
            "fill=\"#cd3131\" font-weight=\"bold\" xml:space=\"preserve\">a&lt;b &amp; c<"
        ));
        assert!(svg.contains("fill=\"#1e1e1e\" xml:space=\"preserve\">→ █<"));
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("screen.txt");
        assert_eq!(write(&buffer, &to), Ok(2));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), text(&buffer));
        assert!(
            write(&buffer, &to)
                .unwrap_err()
                .contains("choose another name")
        );
    }
}
