//! Key bindings outside of overlays.

use super::table::Move;
use super::time_series::SECOND;
use super::{Format, Tab};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Command bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Quit,
    Redraw,
    Suspend,
    View(Tab),
    NextView {
        back: bool,
    },
    Help,
    Pause,
    /// By that many nanoseconds.
    Back(u64),
    Forward(u64),
    Newest,
    Filter,
    SortPicker,
    SortBeside {
        right: bool,
    },
    Reverse,
    Columns,
    Export,
    Write(Format),
    Picture,
    Enter,
    Escape,
    Move(Move),
    Column {
        right: bool,
    },
}

/// Returns the command bound to a key, if any.
pub(super) fn command(key: KeyEvent) -> Option<Command> {
    let held = key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT);
    if held == KeyModifiers::CONTROL {
        return Some(match key.code {
            KeyCode::Char('c') => Command::Quit,
            KeyCode::Char('l') => Command::Redraw,
            KeyCode::Char('z') => Command::Suspend,
            KeyCode::Char('b') => Command::Move(Move::Page { back: true }),
            KeyCode::Char('f') => Command::Move(Move::Page { back: false }),
            _ => return None,
        });
    }
    if !held.is_empty() {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('q') => Command::Quit,
        KeyCode::Char(digit @ '1'..='9') => {
            let place = usize::from(digit as u8 - b'1');
            Command::View(*Tab::ALL.get(place)?)
        }
        KeyCode::Tab => Command::NextView { back: false },
        KeyCode::BackTab => Command::NextView { back: true },
        KeyCode::Char('?') | KeyCode::F(1) => Command::Help,
        KeyCode::Char('p' | ' ') => Command::Pause,
        KeyCode::Char('[') => Command::Back(SECOND),
        KeyCode::Char('{') => Command::Back(10 * SECOND),
        KeyCode::Char(']') => Command::Forward(SECOND),
        KeyCode::Char('}') => Command::Forward(10 * SECOND),
        KeyCode::Char('(') => Command::Back(u64::MAX),
        KeyCode::Char(')') => Command::Newest,
        KeyCode::Char('/') => Command::Filter,
        KeyCode::Char('s') => Command::SortPicker,
        KeyCode::Char('<') => Command::SortBeside { right: false },
        KeyCode::Char('>') => Command::SortBeside { right: true },
        KeyCode::Char('r') => Command::Reverse,
        KeyCode::Char('c') => Command::Columns,
        KeyCode::Char('x') => Command::Export,
        KeyCode::Char('J') => Command::Write(Format::Json),
        KeyCode::Char('P') => Command::Picture,
        KeyCode::Char('V' | 'v') => Command::Write(Format::Csv),
        KeyCode::Enter => Command::Enter,
        KeyCode::Esc => Command::Escape,
        KeyCode::Left | KeyCode::Char('h') => Command::Column { right: false },
        KeyCode::Right | KeyCode::Char('l') => Command::Column { right: true },
        code => Command::Move(movement(code)?),
    })
}

/// Returns the movement in a list bound to a key.
pub(super) fn movement(code: KeyCode) -> Option<Move> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => Move::By(-1),
        KeyCode::Down | KeyCode::Char('j') => Move::By(1),
        KeyCode::PageUp => Move::Page { back: true },
        KeyCode::PageDown => Move::Page { back: false },
        KeyCode::Home | KeyCode::Char('g') => Move::First,
        KeyCode::End | KeyCode::Char('G') => Move::Last,
        _ => return None,
    })
}
