//! The screen without a terminal: what it remembers, what keys and tables change in it, what it wants and asks for.

use super::draw::Look;
use super::input::Prompt;
use super::keys::{self, Command};
use super::line::{Key, Line, Lines};
use super::moments::{KEPT_ROWS, Mode, Moments};
use super::mouse::Hits;
use super::picker::Over;
use super::sheet::Sheet;
use super::theme::{Theme, Tone};
use super::{Colours, Effect, Options, View};
use crate::order::Order;
use crate::record::RowId;
use crate::record::{
    EventRecord, HopRecord, InterfaceRecord, PointRecord, QpRecord, Record, column_named,
};
use crate::tables::{Tables, Wanted};
use crate::text::Words;
use crossterm::event::{KeyEvent, KeyEventKind};
use std::borrow::Cow;
use std::path::Path;

/// The screen's state of every table.
#[derive(Debug)]
pub(super) struct Sheets {
    pub qps: Sheet,
    pub points: Sheet,
    pub hops: Sheet,
    pub events: Sheet,
    pub interfaces: Sheet,
}

/// The screen without a terminal.
///
/// In goes what a person does ([`key`](Self::key), [`mouse`](Self::mouse), [`paste`](Self::paste)) and what was measured
/// ([`update`](Self::update), after [`wanted`](Self::wanted)); out comes a picture ([`draw`](Self::draw)) and what is to
/// be done ([`effects`](Self::effects)).
pub struct App<'a> {
    pub(super) words: &'a Words,
    pub(super) theme: Theme,
    refresh: u64,
    pub(super) view: View,
    pub(super) sheets: Sheets,
    pub(super) moments: Moments,
    pub(super) ended: Option<String>,
    /// What lies over the view.
    pub(super) over: Option<Over>,
    /// What is being typed.
    pub(super) prompt: Option<Prompt>,
    /// What there is to say until the next key.
    pub(super) message: Option<(String, Tone)>,
    pub(super) effects: Vec<Effect>,
    pub(super) hits: Hits,
    /// How often the time axis of the flow is halved.
    pub(super) zoom: u32,
    /// Columns of the table that have no room to the right.
    pub(super) more_columns: usize,
}

/// `$body` with the sheet and the lines of the table that the view shows; `$line` is their type.
macro_rules! with_table {
    ($app:expr, |$sheet:ident, $lines:ident, $line:ident| $body:expr) => {{
        let (sheets, moments) = (&mut $app.sheets, &$app.moments);
        match $app.view {
            $crate::screen::View::Qps | $crate::screen::View::Flow => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $line = ($crate::record::RowId, $crate::record::QpRecord);
                let ($sheet, $lines) = (&mut sheets.qps, &moments.shown().qps[..]);
                $body
            }
            $crate::screen::View::Points => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $line = $crate::record::PointRecord;
                let ($sheet, $lines) = (&mut sheets.points, &moments.shown().points[..]);
                $body
            }
            $crate::screen::View::Paths => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $line = $crate::record::HopRecord;
                let ($sheet, $lines) = (&mut sheets.hops, &moments.shown().hops[..]);
                $body
            }
            $crate::screen::View::Events => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $line = $crate::record::EventRecord;
                let ($sheet, $lines) = (&mut sheets.events, moments.events());
                $body
            }
            $crate::screen::View::Interfaces => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $line = $crate::record::InterfaceRecord;
                let ($sheet, $lines) = (&mut sheets.interfaces, &moments.shown().interfaces[..]);
                $body
            }
        }
    }};
}
pub(super) use with_table;

impl<'a> App<'a> {
    /// A screen that has seen nothing yet. What `options` say that cannot be done is told on the screen.
    #[must_use]
    pub fn new(options: &Options, words: &'a Words) -> Self {
        let mut app = Self {
            words,
            theme: Theme(options.colours),
            refresh: u64::try_from(options.refresh.as_nanos()).unwrap_or(u64::MAX),
            view: options.view,
            sheets: Sheets {
                qps: Sheet::new::<(RowId, QpRecord)>(),
                points: Sheet::new::<PointRecord>(),
                hops: Sheet::new::<HopRecord>(),
                events: Sheet::new::<EventRecord>(),
                interfaces: Sheet::new::<InterfaceRecord>(),
            },
            moments: Moments::new(),
            ended: None,
            over: None,
            prompt: None,
            message: None,
            effects: Vec::new(),
            hits: Hits::default(),
            zoom: 0,
            more_columns: 0,
        };
        if let Err(message) = with_table!(app, |sheet, _lines, L| begin::<L>(sheet, options)) {
            app.message = Some((message, Tone::Bad));
        }
        app
    }

    /// Which tables the next update must have.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let all = self.moments.all_wanted(self.refresh);
        // Where another moment is shown, rows are wanted only to remember this one.
        let rows = matches!(self.view, View::Qps | View::Flow) && self.moments.mode() == Mode::Live;
        Wanted {
            qps: all || rows,
            first: self.first_wanted(),
            points: all || self.view == View::Points,
            hops: all || self.view == View::Paths,
            events: all || self.view == View::Events,
            detail: self.flow_row(),
        }
    }

    /// What suffices of the rows where they are only remembered, and it is known which of them will be.
    fn first_wanted(&self) -> Option<(Order, usize)> {
        let sheet = &self.sheets.qps;
        let shown = self.moments.mode() == Mode::Live || self.moments.lacks_rows();
        (!shown && !sheet.filters()).then_some((sheet.order, KEPT_ROWS))
    }

    /// The row that the flow view shows.
    pub(super) fn flow_row(&self) -> Option<RowId> {
        match (self.view, &self.sheets.qps.chosen) {
            (View::Flow, Some(Key::Qp(row))) => Some(*row),
            _ => None,
        }
    }

    /// Takes the tables as they are now, which must have all that was [`wanted`](Self::wanted).
    pub fn update(&mut self, tables: Tables) {
        let all = self.moments.all_wanted(self.refresh);
        self.moments.update(tables, all);
        self.arrange();
        if all && self.moments.due(self.refresh) {
            self.keep();
        }
        self.moments.spare();
        // What is opened before there is anything shows the first row that there is.
        if self.view == View::Flow && self.sheets.qps.chosen.is_none() {
            self.choose_first();
        }
    }

    fn keep(&mut self) {
        let live = self.moments.mode() == Mode::Live && matches!(self.view, View::Qps | View::Flow);
        if !live {
            // The rows in order are of another moment, or of none.
            self.sheets
                .qps
                .arrange(&self.moments.live().qps[..], self.words);
        }
        self.moments.keep(&self.sheets.qps.lines);
        if !live {
            self.sheets
                .qps
                .arrange(&self.moments.shown().qps[..], self.words);
        }
    }

    /// Lets go of rows that the next update brings anyway, for the room that they take; nothing can be drawn until then.
    pub(super) fn let_go(&mut self) {
        self.moments.let_go();
    }

    /// Takes what all input has come to an end with, where it has.
    pub fn ended(&mut self, why: Option<String>) {
        self.ended = why.map(|why| self.words.text(&why).into_owned());
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// What is to be done, each once.
    #[must_use]
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes how an export of packets went: how many there were, and how many had left before, or what failed.
    pub fn exported(&mut self, to: &Path, done: Result<(u64, u64), String>) {
        let gone = done.as_ref().map_or(0, |(_, gone)| *gone);
        self.tell(to, "packet", done.map(|(count, _)| count));
        if let Some((text, tone)) = &mut self.message
            && gone > 0
        {
            *text += &format!(
                "; {} older ones of all rows had left (--keep)",
                fcn_tool::quantity::grouped(gone)
            );
            *tone = Tone::Warn;
        }
    }

    /// Takes how writing a table went: how many lines there were, or what failed.
    pub fn wrote(&mut self, to: &Path, done: Result<u64, String>) {
        self.tell(to, "line", done);
    }

    fn tell(&mut self, to: &Path, what: &str, done: Result<u64, String>) {
        self.message = Some(match done {
            Ok(count) => {
                let count = fcn_tool::quantity::counted(count, what);
                (format!("{count} written to {}", to.display()), Tone::Good)
            }
            Err(why) => (self.words.text(&why).into_owned(), Tone::Bad),
        });
    }

    pub(super) fn look(&self) -> Look<'a> {
        Look {
            theme: self.theme,
            words: self.words,
        }
    }

    /// Filters and orders the table shown anew.
    pub(super) fn arrange(&mut self) {
        let words = self.words;
        with_table!(self, |sheet, lines, L| sheet.arrange::<L>(lines, words));
    }

    pub(super) fn choose_first(&mut self) {
        let lines = &self.moments.shown().qps[..];
        if !lines.is_empty() {
            self.sheets.qps.choose(0, lines);
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let command = keys::command(key);
        if command == Some(Command::Redraw) {
            self.effects.push(Effect::Redraw);
        } else if command == Some(Command::Quit)
            && (self.prompt.is_none() && self.over.is_none() || !key.modifiers.is_empty())
        {
            self.effects.push(Effect::Quit);
        } else if self.prompt.is_some() {
            self.prompt_key(key);
        } else if self.over.is_some() {
            self.over_key(key);
        } else if let Some(command) = command {
            self.message = None;
            self.command(command);
        }
    }
}

/// The lines that a table shows, in order.
pub(super) fn picked<'l, L: Line>(
    sheet: &'l Sheet,
    lines: &'l (impl Lines<L> + ?Sized),
) -> impl Iterator<Item = Cow<'l, L>> + Clone {
    sheet.lines.iter().filter_map(|&at| lines.at(at as usize))
}

/// Gives a table the order, filter and columns asked for; what cannot be is told, the rest is done.
fn begin<L: Line>(sheet: &mut Sheet, options: &Options) -> Result<(), String> {
    let mut wrong = Vec::new();
    if !options.order.is_empty() {
        match Order::parse::<L::Record>(&options.order) {
            Ok(order) => sheet.order = order,
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if let Err(error) = sheet.filter::<L::Record>(&options.filter) {
        wrong.push(error.to_string());
    }
    let mut columns = Vec::new();
    for id in &options.columns {
        match column_named::<L::Record>(id) {
            Some(column) if !columns.contains(&column) => columns.push(column),
            Some(_) => {}
            None => wrong.push(format!(
                "the table of {} has no column `{id}`",
                L::Record::TABLE
            )),
        }
    }
    if !columns.is_empty() {
        (sheet.columns, sheet.usual) = (columns, false);
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}

impl std::fmt::Debug for App<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("view", &self.view)
            .field("mode", &self.moments.mode())
            .finish_non_exhaustive()
    }
}

/// Colours that can be told from nothing but what the environment says; [`Colours::Auto`] where it says nothing.
pub(super) fn colours(
    wanted: Colours,
    no_color: bool,
    foreground_background: Option<&str>,
) -> Colours {
    if wanted != Colours::Auto {
        return wanted;
    }
    if no_color {
        return Colours::None;
    }
    match foreground_background.and_then(|text| text.rsplit(';').next()) {
        Some("7" | "15") => Colours::Light,
        Some("0" | "8") => Colours::Dark,
        _ => Colours::Auto,
    }
}
