//! What is typed on the lowest line: a filter, which works while it is typed, or the name of a file.

use super::Format;
use super::app::{App, with_table};
use super::line::Line;
use crate::record::RowId;
use crate::text::clean;
use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Characters that can be typed at most.
const LONGEST: usize = 1000;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A filter, in place of the former one.
    Filter { former: String },
    /// A file for the packets behind a row.
    Export(RowId),
    /// A file for the table.
    Write(Format),
}

/// What is being typed.
#[derive(Debug)]
pub(super) struct Prompt {
    pub asked: Asked,
    pub input: Input,
    /// What is wrong with it.
    pub error: Option<String>,
    /// The last filter that something passed: half a word mostly finds nothing, and the table is not to flicker.
    good: String,
    /// Whether nothing passes the filter typed.
    none: bool,
}

impl Prompt {
    pub(super) fn new(asked: Asked, text: String) -> Self {
        Self {
            good: text.clone(),
            asked,
            input: Input::new(text),
            error: None,
            none: false,
        }
    }

    /// What stands before the text.
    pub(super) fn label(&self) -> &'static str {
        match self.asked {
            Asked::Filter { .. } => "Filter: ",
            Asked::Export(_) => "Packets to pcapng file: ",
            Asked::Write(Format::Json) => "Table to JSON file: ",
            Asked::Write(Format::Csv) => "Table to CSV file: ",
        }
    }

    /// What to do, while nothing is wrong.
    pub(super) fn hint(&self) -> &'static str {
        match self.asked {
            Asked::Filter { .. } if self.none => "No line passes this",
            Asked::Filter { .. } => "Enter keeps · Esc restores · like: kind=cnp rate>100",

            Asked::Export(_) => {
                "Enter writes its notifications and its data, as far as kept · Esc leaves"
            }
            Asked::Write(_) => "Enter writes the lines shown, with every column · Esc leaves",
        }
    }
}

impl App<'_> {
    /// Takes pasted text, where something is being typed.
    pub fn paste(&mut self, text: &str) {
        let Some(prompt) = &mut self.prompt else {
            return;
        };
        for c in clean(text.lines().next().unwrap_or_default()).chars() {
            if prompt.input.value().chars().count() < LONGEST {
                prompt.input.handle(InputRequest::InsertChar(c));
            }
        }
        self.typed();
    }

    pub(super) fn prompt_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Esc => {
                if let Some(Prompt {
                    asked: Asked::Filter { former },
                    ..
                }) = self.prompt.take()
                {
                    // It could be read before.
                    let _ = self.filter(&former);
                    self.arrange();
                }
            }
            KeyCode::Enter => self.given(),
            // A letter with Alt is typed by nobody; a control character could only come from a broken terminal.
            KeyCode::Char(c) if c.is_control() => {}
            _ => {
                let Some(prompt) = &mut self.prompt else {
                    return;
                };
                let full = prompt.input.value().chars().count() >= LONGEST;
                if full && matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_empty() {
                    return;
                }
                let changed = prompt.input.handle_event(&Event::Key(key));
                if changed.is_some_and(|changed| changed.value) {
                    self.typed();
                }
            }
        }
    }

    fn filter(&mut self, text: &str) -> Result<(), String> {
        with_table!(self, |sheet, _lines, L| {
            sheet
                .filter::<<L as Line>::Record>(text)
                .map_err(|error| error.to_string())
        })
    }

    /// Takes over a filter that can be read already; tells what is wrong with one that cannot.
    fn typed(&mut self) {
        let Some(prompt) = &self.prompt else { return };
        if !matches!(prompt.asked, Asked::Filter { .. }) {
            if let Some(prompt) = &mut self.prompt {
                prompt.error = None;
            }
            return;
        }
        let (text, good) = (prompt.input.value().to_owned(), prompt.good.clone());
        let error = self.filter(&text).err();
        let mut none = false;
        if error.is_none() {
            self.arrange();
            none = with_table!(self, |sheet, lines, _L| sheet.lines.is_empty()
                && !lines.is_empty());
            if none {
                // It could be read before.
                let _ = self.filter(&good);
                self.arrange();
            }
        }
        if let Some(prompt) = &mut self.prompt {
            if error.is_none() && !none {
                prompt.good = text;
            }
            (prompt.error, prompt.none) = (error, none);
        }
    }

    fn given(&mut self) {
        let Some(prompt) = self.prompt.take() else {
            return;
        };
        let text = prompt.input.value().trim().to_owned();
        match &prompt.asked {
            Asked::Filter { .. } => {
                // One that cannot be read stays until it can be, or is left.
                if prompt.error.is_some() {
                    self.prompt = Some(prompt);
                } else if self.filter(&text).is_ok() {
                    self.arrange();
                }
            }
            _ if text.is_empty() => {
                self.prompt = Some(Prompt {
                    error: Some("a file needs a name".to_owned()),
                    ..prompt
                });
            }
            asked => self.name_given(asked, &text),
        }
    }
}
