//! The screen without a terminal: what it remembers, what keys, mouse and tables change in it, what it wants and asks for.

use super::events::{Events, RuleRecord};
use super::flow::Flow;
use super::hits::{Hit, Hits, Place};
use super::interfaces::Interfaces;
use super::keys::{self, Command};
use super::moments::{KEPT_ROWS, Mode, Moments};
use super::overlay::{Done, Overlay, Picker, What};
use super::paths::Paths;
use super::points::Points;
use super::prompt::{Asked, Prompt, foot};
use super::qps::Qps;
use super::sheet::{Entry, Key, Move, Sheet};
use super::theme::{Theme, Tone, to_ascii};
use super::views::{Opened, TableId, View};
use super::world::World;
use super::{Effect, Format, Options, Tab, Writing, head};
use crate::record::{Cell, EventRecord, HopRecord, InterfaceRecord, PointRecord, QpRecord, RowId};
use crate::tables::{Details, Tables, Wanted, WantedDetails};
use crate::text::Words;
use crossterm::event::{KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use fcn_tool::quantity::{counted, grouped};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use std::path::{Path, PathBuf};

/// Cells that are needed to show something sensible.
const LEAST: (u16, u16) = (40, 10);
/// Lines that a notch of the wheel moves.
const NOTCH: isize = 3;

/// The screen without a terminal.
///
/// In goes what a person does ([`key`](Self::key), [`mouse`](Self::mouse), [`paste`](Self::paste)) and what was measured
/// ([`update`](Self::update) after [`wanted`](Self::wanted), [`detail`](Self::detail) after
/// [`wanted_details`](Self::wanted_details)); out comes a picture ([`draw`](Self::draw)) and what is to be done
/// ([`effects`](Self::effects)).
pub struct App<'a> {
    world: World<'a>,
    refresh: u64,
    ascii: bool,
    tab: Tab,
    /// In the order of the tabs.
    views: [Box<dyn View>; 6],
    /// In the order of [`TableId`].
    sheets: [Sheet; 6],
    overlay: Option<Overlay>,
    prompt: Option<Prompt>,
    /// What there is to say until the next key.
    message: Option<(String, Tone)>,
    effects: Vec<Effect>,
    hits: Hits,
}

impl<'a> App<'a> {
    /// A screen that has seen nothing yet. What `options` say that cannot be done is told on the screen.
    #[must_use]
    pub fn new(options: &Options, words: &'a Words) -> Self {
        let schemas = [
            <(RowId, QpRecord)>::SCHEMA,
            PointRecord::SCHEMA,
            HopRecord::SCHEMA,
            RuleRecord::SCHEMA,
            EventRecord::SCHEMA,
            InterfaceRecord::SCHEMA,
        ];
        let asks =
            !(options.order.is_empty() && options.filter.is_empty() && options.columns.is_empty());
        // Orders, filters and columns are those of single events.
        let events = Events::new(asks && options.view == Tab::Events);
        let mut app = Self {
            world: World {
                words,
                theme: Theme(options.colours),
                moments: Moments::new(),
                details: Details::default(),
                ended: None,
                prefix: String::new(),
            },
            refresh: u64::try_from(options.refresh.as_nanos()).unwrap_or(u64::MAX),
            ascii: options.ascii,
            tab: options.view,
            views: [
                Box::new(Qps),
                Box::new(Points),
                Box::new(Flow::default()),
                Box::new(Paths),
                Box::new(events),
                Box::new(Interfaces),
            ],
            sheets: schemas.map(Sheet::new),
            overlay: None,
            prompt: None,
            message: None,
            effects: Vec::new(),
            hits: Hits::default(),
        };
        if let Err(message) = begin(app.sheet(), options) {
            app.message = Some((message, Tone::Bad));
        }
        app
    }

    fn view(&mut self) -> &mut dyn View {
        &mut *self.views[self.tab as usize]
    }

    fn sheet(&mut self) -> &mut Sheet {
        let table = self.view().table();
        &mut self.sheets[table as usize]
    }

    /// The view that is shown with its table and all that it sees.
    fn parts(&mut self) -> (&mut dyn View, &mut Sheet, &World<'a>) {
        let view = &mut *self.views[self.tab as usize];
        let sheet = &mut self.sheets[view.table() as usize];
        (view, sheet, &self.world)
    }

    /// Which tables the next update must have.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let moments = &self.world.moments;
        let (all, live) = (
            moments.all_wanted(self.refresh),
            moments.mode() == Mode::Live,
        );
        // Where another moment is shown, rows are wanted only to remember this one.
        let rows = matches!(self.tab, Tab::Qps | Tab::Flow | Tab::Points) && live;
        let qps = &self.sheets[TableId::Qps as usize];
        let few = !(live || moments.lacks_rows() || qps.filters());
        Wanted {
            qps: all || rows,
            first: few.then_some((qps.order, KEPT_ROWS)),
            points: all || self.tab == Tab::Points,
            hops: all || self.tab == Tab::Paths,
            events: all || self.tab == Tab::Events,
        }
    }

    /// Takes the tables as they are now, which must have all that was [`wanted`](Self::wanted).
    pub fn update(&mut self, tables: Tables) {
        let all = self.world.moments.all_wanted(self.refresh);
        self.world.moments.update(tables, all);
        if !self.world.moments.shown().qps.is_empty() {
            self.world.prefix = self.world.common_prefix();
        }
        self.arrange();
        if all && self.world.moments.due(self.refresh) {
            self.keep();
        }
        self.world.moments.spare();
    }

    fn keep(&mut self) {
        let sheet = &mut self.sheets[TableId::Qps as usize];
        sheet.arrange(&self.world.moments.live().qps, &self.world);
        self.world.moments.keep(&sheet.lines);
        sheet.arrange(&self.world.moments.shown().qps, &self.world);
    }

    /// Which courses over time the next picture draws.
    #[must_use]
    pub fn wanted_details(&self) -> WantedDetails {
        let view = &self.views[self.tab as usize];
        let mut wanted = WantedDetails::default();
        view.details(
            &self.sheets[view.table() as usize],
            &self.world,
            &mut wanted,
        );
        wanted
    }

    /// Takes courses over time.
    pub fn detail(&mut self, details: Details) {
        self.world.details = details;
    }

    /// Lets go of rows that the next update brings anyway, for the room that they take; nothing can be drawn until then.
    pub(super) fn let_go(&mut self) {
        self.world.moments.let_go();
    }

    /// Takes what all input has come to an end with, where it has.
    pub fn ended(&mut self, why: Option<String>) {
        self.world.ended = why.map(|why| self.world.words.text(&why).into_owned());
    }

    pub(super) fn has_ended(&self) -> bool {
        self.world.ended.is_some()
    }

    /// What is to be done, each once.
    #[must_use]
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes how an export of packets went: how many there were, and how many had left before, or what failed.
    pub fn exported(&mut self, to: &Path, done: Result<(u64, u64), String>) {
        let gone = done.as_ref().map_or(0, |(_, gone)| *gone);
        self.wrote_some(to, "packet", done.map(|(count, _)| count));
        if let Some((text, tone)) = &mut self.message
            && gone > 0
        {
            *text += &format!(
                "; {} older ones of all rows had left (--keep)",
                grouped(gone)
            );
            *tone = Tone::Warn;
        }
    }

    /// Takes how writing a table or a picture went: how many lines there were, or what failed.
    pub fn wrote(&mut self, to: &Path, done: Result<u64, String>) {
        self.wrote_some(to, "line", done);
    }

    fn wrote_some(&mut self, to: &Path, what: &str, done: Result<u64, String>) {
        self.message = Some(match done {
            Ok(count) => (
                format!("{} written to {}", counted(count, what), to.display()),
                Tone::Good,
            ),
            Err(why) => (self.world.words.text(&why).into_owned(), Tone::Bad),
        });
    }

    /// Filters and orders the table shown anew.
    fn arrange(&mut self) {
        let (view, sheet, world) = self.parts();
        view.arrange(sheet, world);
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.arrange();
    }

    /// Draws the picture.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.hits.clear();
        let area = frame.area();
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let text = format!(
                "fcn-top needs {}×{} cells, has {}×{}",
                LEAST.0, LEAST.1, area.width, area.height
            );
            frame.render_widget(self.world.span(text, Tone::Plain), area);
        } else {
            self.draw_in(area, frame);
        }
        if self.ascii {
            to_ascii(frame.buffer_mut());
        }
    }

    fn draw_in(&mut self, area: Rect, frame: &mut Frame<'_>) {
        let below = if self.prompt.is_some() { 2 } else { 1 };
        let [top, body, bottom] = area.layout(&Layout::vertical([
            Constraint::Length(head::height(area.height)),
            Constraint::Fill(1),
            Constraint::Length(below),
        ]));
        let view = &mut *self.views[self.tab as usize];
        let sheet = &mut self.sheets[view.table() as usize];
        let (world, hits) = (&self.world, &mut self.hits);
        view.draw(
            sheet,
            &mut Place {
                frame,
                area: body,
                hits,
            },
            world,
        );
        // Behind the table, which tells how many columns had no room.
        head::draw(self.tab, sheet, frame, top, world, hits);
        if let Some(overlay) = &mut self.overlay {
            let over = Rect {
                y: body.y - 1,
                height: body.height + 1,
                ..body
            };
            overlay.draw(over, frame, world, hits);
        }
        match &self.prompt {
            Some(prompt) => prompt.draw(frame, bottom, world),
            None => foot(self.message.as_ref(), view.keys(), frame, bottom, world),
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let command = keys::command(key);
        match command {
            Some(Command::Redraw) => self.effects.push(Effect::Redraw),
            Some(Command::Suspend) => self.effects.push(Effect::Suspend),
            Some(Command::Quit)
                if self.prompt.is_none() && self.overlay.is_none() || !key.modifiers.is_empty() =>
            {
                self.effects.push(Effect::Quit);
            }
            _ if self.prompt.is_some() => self.prompt_key(key),
            _ if self.overlay.is_some() => {
                let how = keys::movement(key.code);
                self.in_overlay(|overlay, sheet| overlay.key(key.code, how, sheet));
            }
            command => {
                self.message = None;
                let (view, _, world) = self.parts();
                if key.modifiers.is_empty() && view.key(key.code, world) {
                    return;
                }
                command
                    .into_iter()
                    .for_each(|command| self.command(command));
            }
        }
    }

    fn in_overlay(&mut self, act: impl FnOnce(&mut Overlay, &mut Sheet) -> Done) {
        let Some(mut overlay) = self.overlay.take() else {
            return;
        };
        if act(&mut overlay, self.sheet()) == Done::Stays {
            self.overlay = Some(overlay);
        }
        self.arrange();
    }

    /// Takes what the mouse did.
    pub fn mouse(&mut self, event: MouseEvent) {
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                self.clicked(self.hits.at(event.column, event.row));
            }
            MouseEventKind::ScrollUp => self.wheel(-NOTCH),
            MouseEventKind::ScrollDown => self.wheel(NOTCH),
            MouseEventKind::ScrollLeft => self.command(Command::Column { right: false }),
            MouseEventKind::ScrollRight => self.command(Command::Column { right: true }),
            _ => {}
        }
    }

    fn clicked(&mut self, hit: Option<Hit>) {
        if self.overlay.is_some() {
            return self.in_overlay(|overlay, sheet| match hit {
                Some(Hit::Item(place)) => overlay.clicked(place, sheet),
                _ => Done::Closes,
            });
        }
        match hit {
            Some(Hit::Tab(view)) => self.command(Command::View(view)),
            Some(Hit::Heading(column)) => {
                self.sheet().sort_by(column);
                self.arrange();
            }
            Some(Hit::Line(place)) => {
                // A click chooses a line; a click on the chosen one opens it.
                let sheet = self.sheet();
                let opens =
                    sheet.chosen.is_some() && sheet.keys.get(place) == sheet.chosen.as_ref();
                sheet.choose(place);
                if opens {
                    self.enter();
                }
            }
            Some(Hit::Mode) => self.command(Command::Pause),
            Some(Hit::Item(_)) | None => {}
        }
    }

    fn wheel(&mut self, by: isize) {
        if self.overlay.is_some() {
            self.in_overlay(|overlay, _| {
                overlay.go(Move::By(by));
                Done::Stays
            });
        } else if self.tab == Tab::Flow {
            self.command(Command::Move(Move::By(by.signum())));
        } else {
            self.sheet().scroll(by);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Quit => self.effects.push(Effect::Quit),
            Command::Redraw => self.effects.push(Effect::Redraw),
            Command::Suspend => self.effects.push(Effect::Suspend),
            Command::View(view) => return self.show(view),
            Command::NextView { back } => return self.show(self.tab.step(back)),
            Command::Help => {
                let (tab, (view, sheet, _)) = (self.tab, self.parts());
                self.overlay = Some(Overlay::new(What::Help(tab, view.about(), sheet.schema)));
            }
            Command::Pause => self.world.moments.pause(false),
            Command::Back(by) => self.world.moments.back(by),
            Command::Forward(by) => self.world.moments.forward(by),
            Command::Newest => self.world.moments.go_on(),
            Command::Filter => {
                let former = self.sheet().typed.clone();
                self.prompt = Some(Prompt::new(
                    Asked::Filter {
                        former: former.clone(),
                    },
                    former,
                ));
            }
            Command::SortPicker | Command::Columns => {
                let picker = Picker::new(self.sheet(), command == Command::SortPicker);
                self.overlay = Some(Overlay::new(What::Columns(picker)));
            }
            Command::SortBeside { right } => self.sheet().sort_beside(right),
            Command::Reverse => {
                let order = &mut self.sheet().order;
                order.descending = !order.descending;
            }
            Command::Export => self.ask_export(),
            Command::Write(format) => {
                let kind = match format {
                    Format::Json => "json",
                    Format::Csv => "csv",
                };
                let name = format!("fcn-top-{}.{kind}", self.table_tab().id());
                self.prompt = Some(Prompt::new(Asked::Write(format), name));
            }
            Command::Picture => {
                self.prompt = Some(Prompt::new(
                    Asked::Picture,
                    format!("fcn-top-{}.svg", self.tab.id()),
                ));
            }
            Command::Enter => return self.enter(),
            Command::Escape => self.escape(),
            Command::Move(how) => self.sheet().go(how),
            Command::Column { right } => self.sheet().scroll_columns(right),
        }
        self.arrange();
    }

    /// The view whose table is meant: the flow is a line of the QPs.
    fn table_tab(&self) -> Tab {
        if self.tab == Tab::Flow {
            Tab::Qps
        } else {
            self.tab
        }
    }

    fn enter(&mut self) {
        let (view, sheet, world) = self.parts();
        match view.enter(sheet, world) {
            None => {}
            Some(Opened::Tab(tab)) => self.show(tab),
            Some(Opened::Qps(column, cell)) => {
                self.sheets[TableId::Qps as usize].only(column, Some(cell));
                self.show(Tab::Qps);
            }
            Some(Opened::Events(what)) => {
                self.sheets[TableId::Events as usize].only("what", Some(Cell::Name(what)));
                self.arrange();
            }
            Some(Opened::Event(event)) => self.overlay = Some(Overlay::new(What::Event(event))),
        }
    }

    /// Goes one step back: from the flow to the table, from a chosen line to none, from a filtered table to all of it.
    fn escape(&mut self) {
        if self.tab == Tab::Flow {
            if !self.view().escape() {
                self.tab = Tab::Qps;
            }
            return;
        }
        let (view, sheet, _) = self.parts();
        if sheet.chosen.is_some() {
            sheet.chosen = None;
            (sheet.top, sheet.follow) = (0, true);
        } else if !sheet.typed.is_empty() {
            // Nothing can be wrong with no filter.
            let _ = sheet.filter("");
        } else if !view.escape() {
            sheet.only("", None);
        }
    }

    fn ask_export(&mut self) {
        let row = match (self.table_tab(), &self.sheet().chosen) {
            (Tab::Qps, Some(Key::Qp(row))) => *row,
            _ => {
                let how = "packets are kept by QP: choose a row of the QPs first (1, then arrows), then x";
                self.message = Some((how.to_owned(), Tone::Warn));
                return;
            }
        };
        let record = self.world.moments.shown().qp(row);
        let name = match record.map(|record| (record.qp, record.flow_label)) {
            Some((Some(qp), _)) => format!("fcn-top-qp-{qp:#x}.pcapng"),
            Some((None, Some(label))) => format!("fcn-top-label-{label:#07x}.pcapng"),
            _ => "fcn-top-row.pcapng".to_owned(),
        };
        self.prompt = Some(Prompt::new(Asked::Export(row), name));
    }

    /// Takes pasted text, where something is being typed.
    pub fn paste(&mut self, text: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.paste(text);
            self.typed();
        }
    }

    /// Has the table go by what is typed.
    fn typed(&mut self) {
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        let (view, sheet, world) = self.parts();
        prompt.filter(sheet, &mut |sheet| view.arrange(sheet, world));
        self.prompt = Some(prompt);
    }

    fn prompt_key(&mut self, key: KeyEvent) {
        use crossterm::event::KeyCode::{Enter, Esc};
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        match key.code {
            Esc => {
                if let Asked::Filter { former } = prompt.asked {
                    // It could be read before.
                    let _ = self.sheet().filter(&former);
                    self.arrange();
                }
            }
            Enter => self.given(prompt),
            _ => {
                let changed = prompt.edit(key);
                self.prompt = Some(prompt);
                if changed {
                    self.typed();
                }
            }
        }
    }

    /// Takes what was typed.
    fn given(&mut self, prompt: Prompt) {
        let text = prompt.input.value().trim().to_owned();
        let to = PathBuf::from(&text);
        match prompt.asked {
            // One that cannot be read stays until it can be, or is left.
            Asked::Filter { .. } if prompt.error.is_some() => self.prompt = Some(prompt),
            Asked::Filter { .. } => {
                let _ = self.sheet().filter(&text);
                self.arrange();
            }
            _ if text.is_empty() => {
                self.prompt = Some(Prompt {
                    error: Some("a file needs a name".to_owned()),
                    ..prompt
                });
            }
            Asked::Export(row) => self.effects.push(Effect::Export { row, to }),
            Asked::Picture => self.effects.push(Effect::Picture(to)),
            Asked::Write(format) => {
                let (tab, (view, sheet, world)) = (self.table_tab(), self.parts());
                let writing = Writing {
                    format,
                    view: tab,
                    to,
                    at: world.moments.shown().now,
                    records: view.records(sheet, world),
                };
                self.effects.push(Effect::Write(Box::new(writing)));
            }
        }
    }
}

/// Gives a table the order, filter and columns asked for; what cannot be is told, the rest is done.
fn begin(sheet: &mut Sheet, options: &Options) -> Result<(), String> {
    let mut wrong = Vec::new();
    if !options.order.is_empty() {
        match (sheet.schema.read_order)(&options.order) {
            Ok(order) => sheet.order = order,
            Err(error) => wrong.push(error),
        }
    }
    if let Err(error) = sheet.filter(&options.filter) {
        wrong.push(error.to_string());
    }
    let mut columns = Vec::new();
    for id in &options.columns {
        match sheet.schema.named(id) {
            Some(column) if !columns.contains(&column) => columns.push(column),
            Some(_) => {}
            None => wrong.push(format!("the table has no column `{id}`")),
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
