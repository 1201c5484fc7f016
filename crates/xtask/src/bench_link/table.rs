//! Plain tables of figures. Not here: figures.

/// Prints columns as wide as their widest cell, the first to the left, the others to the right.
pub fn print(heading: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        heading
            .get(column)
            .map_or(0, |h| h.chars().count())
            .max(widest)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from(" ");
        for (i, (cell, width)) in cells.zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            text += &if i == 0 {
                format!(" {cell}{pad}")
            } else {
                format!("  {pad}{cell}")
            };
        }
        println!("{}", text.trim_end());
    };
    line(&mut heading.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
