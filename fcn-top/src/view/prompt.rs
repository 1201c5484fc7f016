//! The lowest line of the screen: a filter, applied while it is typed, the name of a file, or
//! otherwise the keys or a message.

use super::Format;
use super::context::ViewContext;
use super::fit;
use super::history::Mode;
use super::table::Table;
use super::theme::Tone;
use crate::record::RowId;
use crate::text::clean;
use crossterm::event::{Event, KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Maximum length of the input, in characters.
const LONGEST: usize = 1000;

/// Purpose of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A filter, replacing the former one.
    Filter { former: String },
    /// A file for the packets of a row.
    Export(RowId),
    /// A file for the table.
    Write(Format),
    /// A file for a picture of the screen.
    Picture,
}

/// An open prompt.
#[derive(Debug)]
pub(super) struct Prompt {
    pub purpose: Purpose,
    pub input: Input,
    /// Error in the input.
    pub error: Option<String>,
    /// The last filter that some line passed: half a word mostly matches nothing, and the table
    /// should not flicker.
    pub good: String,
    /// True if no line passes the current filter.
    pub none: bool,
    /// Description of the lines shown, if they do not match the input.
    pub shown: Option<String>,
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, text: String) -> Self {
        Self {
            good: text.clone(),
            purpose,
            input: Input::new(text),
            error: None,
            none: false,
            shown: None,
        }
    }

    /// Edits the text; returns true if that changed it.
    pub(super) fn edit(&mut self, key: KeyEvent) -> bool {
        let full = self.input.value().chars().count() >= LONGEST;
        match key.code {
            // A control character can only come from a broken terminal.
            KeyCode::Char(c) if c.is_control() || (full && key.modifiers.is_empty()) => false,
            _ => self
                .input
                .handle_event(&Event::Key(key))
                .is_some_and(|changed| changed.value),
        }
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        for c in clean(text.lines().next().unwrap_or_default()).chars() {
            if self.input.value().chars().count() < LONGEST {
                self.input.handle(InputRequest::InsertChar(c));
            }
        }
    }

    /// Returns the label before the text.
    const fn label(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter { .. } => "Filter: ",
            Purpose::Export(_) => "Packets to pcapng file: ",
            Purpose::Write(Format::Json) => "Table to JSON file: ",
            Purpose::Write(Format::Csv) => "Table to CSV file: ",
            Purpose::Picture => "Picture to SVG file, or text (.txt): ",
        }
    }

    /// Returns a hint, shown unless there is an error.
    const fn hint(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter { .. } if self.none => "No line matches",
            Purpose::Filter { .. } => "Enter keeps · Esc restores · like: kind=cnp rate>100",
            Purpose::Export(_) => {
                "Enter writes its notifications and data, as far as kept · Esc cancels"
            }
            Purpose::Write(_) => "Enter writes the lines shown, with every column · Esc cancels",
            Purpose::Picture => "Enter writes the screen as it is · Esc cancels",
        }
    }

    /// Draws the input, and above it the error or a hint.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, context: &ViewContext<'_>) {
        let [hint, line] = area.layout(&Layout::vertical([Constraint::Length(1); 2]));
        let (text, tone) = match &self.error {
            Some(error) => (error.clone(), Tone::Bad),
            None => (self.hint().to_owned(), Tone::Dim),
        };
        let shown = self.shown.as_ref().map(|shown| format!(" · {shown}"));
        let shown = shown.unwrap_or_default();
        let room = hint.width.saturating_sub(fit::width(&shown));
        let text = fit::end(&text, room.max(hint.width / 3)).into_owned();
        let shown = fit::end(&shown, hint.width - fit::width(&text)).into_owned();
        let spans = vec![context.span(text, tone), context.span(shown, Tone::Strong)];
        frame.render_widget(Line::from(spans), hint);
        let [label, field] = line.layout(&Layout::horizontal([
            Constraint::Length(fit::width(self.label())),
            Constraint::Fill(1),
        ]));
        frame.render_widget(context.span(self.label(), Tone::Strong), label);
        let room = field.width.saturating_sub(1);
        let scroll = self.input.visual_scroll(room.into());
        let text = clean(self.input.value()).into_owned();
        frame.render_widget(
            Paragraph::new(text).scroll((0, u16::try_from(scroll).unwrap_or(u16::MAX))),
            field,
        );
        let cursor = u16::try_from(self.input.visual_cursor().saturating_sub(scroll))
            .unwrap_or(u16::MAX)
            .min(room);
        frame.set_cursor_position(Position {
            x: (field.x + cursor).min(area.right().saturating_sub(1)),
            y: field.y,
        });
    }

    /// Applies the filter if it is valid, or sets the error. `arrange` filters and sorts the table
    /// again.
    pub(super) fn filter(
        &mut self,
        table: &mut Table,
        masks: bool,
        arrange: &mut dyn FnMut(&mut Table),
    ) {
        if !matches!(self.purpose, Purpose::Filter { .. }) {
            self.error = None;
            return;
        }
        self.error = table
            .filter(self.input.value())
            .err()
            .map(|error| error.to_string());
        self.none = false;
        if self.error.is_none() {
            arrange(table);
            self.none = table.lines.is_empty() && table.all > 0;
            if self.none {
                // It was valid before.
                let _ = table.filter(&self.good);
                arrange(table);
            } else {
                self.input.value().clone_into(&mut self.good);
            }
        }
        let is_other = self.error.is_some() || self.none;
        self.shown = is_other.then(|| match table.shown_filter(masks) {
            typed if typed.is_empty() => "all lines shown".to_owned(),
            typed => format!("shown: {typed}"),
        });
    }
}

/// Draws the keys, or a message.
pub(super) fn foot(
    message: Option<&(String, Tone)>,
    view: &[(&'static str, &'static str)],
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    if let Some((text, tone)) = message {
        return frame.render_widget(
            context.span(fit::end(&clean(text), area.width).into_owned(), *tone),
            area,
        );
    }
    let mode: &[(&str, &str)] = match (context.history.mode(), context.history.has_earlier()) {
        (Mode::Live, true) => &[("p", "pause"), ("[", "back")],
        (Mode::Live, false) => &[("p", "pause")],
        (Mode::Paused(_), true) => &[("p", "resume"), ("[", "back")],
        (Mode::Paused(_), false) => &[("p", "resume")],
        (Mode::Frozen(_), true) => &[("[ ]", "back, forward"), ("p", "now")],
        (Mode::Frozen(_), false) => &[("]", "forward"), ("p", "now")],
    };
    let keys = [
        &[("?", "help"), ("q", "quit")],
        view,
        mode,
        &[("J", "JSON"), ("V", "CSV"), ("P", "picture")],
    ]
    .concat();
    let mut line = Line::default();
    for (key, does) in keys {
        if line.width() + fit::width(key) as usize + 1 + fit::width(does) as usize
            > area.width.into()
        {
            break;
        }
        line.push_span(context.span(key, Tone::Strong));
        line.push_span(context.span(format!(" {does}  "), Tone::Dim));
    }
    frame.render_widget(line, area);
}
