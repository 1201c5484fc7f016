//! The screen, driven by keys, mouse and tables, and inspected as text.

mod behaviour;
mod colours;
mod everything;
mod pictures;
mod sample;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use fcn_top::view::App;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

/// Returns the picture drawn on a terminal of that size.
pub fn picture(app: &mut App<'_>, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    // The visible lines are known after drawing.
    for _ in 0..2 {
        terminal.draw(|frame| app.draw(frame)).unwrap();
        app.detail(sample::details(
            &app.wanted_details(),
            sample::START + 20 * sample::SECOND,
        ));
    }
    terminal.draw(|frame| app.draw(frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns a picture as lines of text, without trailing blanks.
pub fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut hidden = 0;
        for x in buffer.area.left()..buffer.area.right() {
            let symbol = buffer[(x, y)].symbol();
            if hidden == 0 {
                line.push_str(symbol);
                hidden = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
            } else {
                hidden -= 1;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the screen on a terminal of 120 × 40.
pub fn seen(app: &mut App<'_>) -> String {
    text(&picture(app, 120, 40))
}

/// Presses a key, with Shift if terminals report it.
pub fn press(app: &mut App<'_>, code: KeyCode) {
    let modifiers = match code {
        KeyCode::Char(c) if c.is_uppercase() => KeyModifiers::SHIFT,
        _ => KeyModifiers::NONE,
    };
    app.key(KeyEvent::new(code, modifiers));
}

/// Types a text.
pub fn typed(app: &mut App<'_>, text: &str) {
    for c in text.chars() {
        press(app, KeyCode::Char(c));
    }
}

/// Clicks.
pub fn click(app: &mut App<'_>, column: u16, row: u16) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    });
}

/// Returns column and line of a text on the screen.
pub fn place(app: &mut App<'_>, what: &str) -> (u16, u16) {
    let seen = seen(app);
    for (y, line) in seen.lines().enumerate() {
        if let Some(at) = line.find(what) {
            return (line[..at].chars().count() as u16, y as u16);
        }
    }
    panic!("no `{what}` in\n{seen}");
}
