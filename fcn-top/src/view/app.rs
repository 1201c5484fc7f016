//! The screen without a terminal: its state, how keys, mouse and tables change it, and the data and
//! effects that it requests.

use super::context::ViewContext;
use super::events::{Events, RuleRecord};
use super::flow::Flow;
use super::flows::Flows;
use super::history::{History, KEPT_ROWS, Mode};
use super::hits::{DrawContext, Hit, Hits};
use super::interfaces::Interfaces;
use super::keys::{self, Command};
use super::nics::Nics;
use super::overlay::{Overlay, OverlayAction, OverlayKind, Picker};
use super::paths::Paths;
use super::points::Points;
use super::prompt::{Prompt, Purpose, foot};
use super::qps::Qps;
use super::receivers::Receivers;
use super::table::{Entry, Key, Move, Table};
use super::theme::{Theme, Tone, to_ascii};
use super::views::{OpenTarget, TableId, View};
use super::{Effect, Format, Options, Tab, head};
use crate::record::{Cell, CounterRecord, EventRecord, HopRecord, InterfaceRecord, LocalQpRecord};
use crate::record::{FlowRecord, PointRecord, QpRecord, ReceiverRecord, RowId};
use crate::tables::{Details, Tables, Wanted, WantedDetails};
use crate::text::Formatter;
use crossterm::event::{KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use fcn_observe::time::nanos;
use fcn_tool::quantity::{counted, grouped};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use std::path::{Path, PathBuf};

/// Minimum size for a useful picture, in cells.
const LEAST: (u16, u16) = (40, 10);
/// Maximum number of time series kept of a frozen moment.
const STANDING: usize = 4096;
/// Lines scrolled per notch of the mouse wheel.
const NOTCH: isize = 3;

/// The screen without a terminal.
///
/// Inputs are user actions ([`key`](Self::key), [`mouse`](Self::mouse), [`paste`](Self::paste)) and
/// measurements ([`update`](Self::update) after [`wanted`](Self::wanted), [`detail`](Self::detail)
/// after [`wanted_details`](Self::wanted_details)); outputs are a picture ([`draw`](Self::draw))
/// and requested effects ([`effects`](Self::effects)).
pub struct App<'a> {
    context: ViewContext<'a>,
    refresh: u64,
    ascii: bool,
    tab: Tab,
    /// In the order of the tabs.
    views: [Box<dyn View>; 9],
    /// In the order of [`TableId`].
    tables: [Table; 10],
    overlay: Option<Overlay>,
    prompt: Option<Prompt>,
    /// Time of the current time series, and the row of the packets.
    detailed: Option<(u64, Option<RowId>)>,
    /// Message shown until the next key.
    message: Option<(String, Tone)>,
    effects: Vec<Effect>,
    hits: Hits,
}

impl<'a> App<'a> {
    /// Creates a screen without data. Invalid `options` are reported on the screen.
    #[must_use]
    pub fn new(options: &Options, formatter: &'a Formatter) -> Self {
        let schemas = [
            <(RowId, QpRecord)>::SCHEMA,
            PointRecord::SCHEMA,
            HopRecord::SCHEMA,
            RuleRecord::SCHEMA,
            EventRecord::SCHEMA,
            InterfaceRecord::SCHEMA,
            CounterRecord::SCHEMA,
            LocalQpRecord::SCHEMA,
            FlowRecord::SCHEMA,
            ReceiverRecord::SCHEMA,
        ];
        let asks = !(options.order.is_empty() && options.filter.is_empty());
        // Order and filter apply to single events.
        let events = Events::new(asks && options.view == Tab::Events);
        let mut app = Self {
            context: ViewContext {
                formatter,
                theme: Theme(options.colours),
                history: History::default(),
                details: Details::default(),
                ended: None,
                checked: options.checked.clone(),
                prefix: String::new(),
                by_place: false,
                telling: Vec::new(),
            },
            refresh: nanos(options.refresh),
            ascii: options.ascii,
            tab: options.view,
            views: [
                Box::new(Qps),
                Box::new(Points),
                Box::new(Flow::default()),
                Box::new(Paths),
                Box::new(events),
                Box::new(Interfaces),
                Box::new(Nics::default()),
                Box::new(Flows),
                Box::new(Receivers),
            ],
            tables: schemas.map(Table::new),
            overlay: None,
            prompt: None,
            detailed: None,
            message: None,
            effects: Vec::new(),
            hits: Hits::default(),
        };
        if let Err(message) = begin(app.table(), options) {
            app.message = Some((message, Tone::Bad));
        }
        app
    }

    fn view(&mut self) -> &mut dyn View {
        &mut *self.views[self.tab as usize]
    }

    fn table(&mut self) -> &mut Table {
        let id = self.view().table_id();
        &mut self.tables[id as usize]
    }

    /// Returns the current view with its table and the shared state.
    fn parts(&mut self) -> (&mut dyn View, &mut Table, &ViewContext<'a>) {
        let view = &mut *self.views[self.tab as usize];
        let table = &mut self.tables[view.table_id() as usize];
        (view, table, &self.context)
    }

    /// Returns the tables that the next update must have.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let history = &self.context.history;
        let (all, live) = (
            history.all_wanted(self.refresh),
            history.mode() == Mode::Live,
        );
        // If another moment is shown, rows are wanted only to remember the current one.
        let rows = matches!(self.tab, Tab::Qps | Tab::Flow | Tab::Notifiers) && live;
        let qps = &self.tables[TableId::Qps as usize];
        let few = !(live || history.is_incomplete() || qps.filters());
        Wanted {
            qps: all || rows,
            first: few.then_some((qps.order, KEPT_ROWS)),
            flows: all || self.tab == Tab::Flows,
            points: all || matches!(self.tab, Tab::Notifiers | Tab::Receivers),
            hops: all || self.tab == Tab::Paths,
            events: all || self.tab == Tab::Events,
        }
    }

    /// Processes the current tables, which must include all that were [`wanted`](Self::wanted).
    pub fn update(&mut self, tables: Tables) {
        let all = self.context.history.all_wanted(self.refresh);
        self.context.history.update(tables, all);
        if !self.context.history.shown().qps.is_empty() {
            self.context.prefix = self.context.common_prefix();
            self.context.by_place = self.context.differ_by_place();
            self.context.telling = self.context.telling();
        }
        self.arrange();
        if all && self.context.history.due(self.refresh) {
            self.keep();
        }
        self.context.history.spare();
    }

    fn keep(&mut self) {
        // Independent of the table shown, which may be frozen.
        let mut table = self.tables[TableId::Qps as usize].beside();
        table.arrange(&self.context.history.live().qps, &self.context);
        self.context.history.keep(&table.lines);
    }

    /// Returns the time series that the next picture draws.
    #[must_use]
    pub fn wanted_details(&self) -> WantedDetails {
        let view = &self.views[self.tab as usize];
        let mut wanted = WantedDetails::default();
        view.details(
            &self.tables[view.table_id() as usize],
            &self.context,
            &mut wanted,
        );
        wanted
    }

    /// Processes time series. At a frozen moment, only adds missing ones: the others get coarser
    /// with time.
    pub fn detail(&mut self, mut details: Details) {
        let history = &self.context.history;
        let (now, wanted) = (history.shown().now, self.wanted_details());
        let had = self.detailed.replace((now, wanted.packets));
        if let Some((at, packets)) = had
            && at == now
            && history.mode() != Mode::Live
        {
            let old = std::mem::take(&mut self.context.details);
            details.traffic = old.traffic;
            (details.rows).extend(old.rows.into_iter().take(STANDING));
            (details.points).extend(old.points.into_iter().take(STANDING));
            if packets == wanted.packets {
                (details.packets, details.notified) = (old.packets, old.notified);
            }
        }
        self.context.details = details;
    }

    /// Drops rows that the next update replaces anyway, to save memory; nothing can be drawn until
    /// then.
    pub(super) fn drop_rows(&mut self) {
        self.context.history.drop_rows();
    }

    /// Sets the reason for the end of all input, if it has ended.
    pub fn ended(&mut self, why: Option<String>) {
        let had_ended = self.has_ended();
        self.context.ended = why.map(|why| self.context.formatter.text(&why).into_owned());
        // The final state is sorted at once.
        if self.has_ended() && !had_ended {
            self.arrange();
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.context.ended.is_some()
    }

    /// Returns the requested effects, each once.
    #[must_use]
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Reports the result of an export of packets: their number and the number dropped before, or
    /// the error.
    pub fn exported(&mut self, to: &Path, done: Result<(u64, u64), String>) {
        let gone = done.as_ref().map_or(0, |(_, gone)| *gone);
        self.wrote_some(to, "packet", done.map(|(count, _)| count));
        if let Some((text, tone)) = &mut self.message
            && gone > 0
        {
            *text += &format!(
                "; {} older ones of all rows evicted (--keep)",
                grouped(gone)
            );
            *tone = Tone::Warn;
        }
    }

    /// Reports the result of writing a table or a picture: the number of lines, or the error.
    pub fn wrote(&mut self, to: &Path, done: Result<u64, String>) {
        self.wrote_some(to, "line", done);
    }

    fn wrote_some(&mut self, to: &Path, what: &str, done: Result<u64, String>) {
        self.message = Some(match done {
            Ok(count) => (
                format!("{} written to {}", counted(count, what), to.display()),
                Tone::Good,
            ),
            Err(why) => (self.context.formatter.text(&why).into_owned(), Tone::Bad),
        });
    }

    /// Filters and sorts the current table again.
    fn arrange(&mut self) {
        let (view, table, context) = self.parts();
        view.arrange(table, context);
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
            frame.render_widget(self.context.span(text, Tone::Plain), area);
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
        let table = &mut self.tables[view.table_id() as usize];
        let (context, hits) = (&self.context, &mut self.hits);
        view.draw(
            table,
            &mut DrawContext {
                frame,
                area: body,
                hits,
            },
            context,
        );
        // After the table, which determines how many columns have no room.
        head::draw(self.tab, table, frame, top, context, hits);
        if let Some(overlay) = &mut self.overlay {
            let over = Rect {
                y: body.y - 1,
                height: body.height + 1,
                ..body
            };
            overlay.draw(over, frame, context, hits);
        }
        match &self.prompt {
            Some(prompt) => prompt.draw(frame, bottom, context),
            None => foot(self.message.as_ref(), view.keys(), frame, bottom, context),
        }
    }

    /// Processes a key.
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        // Terminals report Shift in addition to the character it produces, which suffices.
        let key = KeyEvent {
            modifiers: key.modifiers - KeyModifiers::SHIFT,
            ..key
        };
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
                self.in_overlay(|overlay, table| overlay.key(key.code, how, table));
            }
            command => {
                self.message = None;
                let (view, _, context) = self.parts();
                if key.modifiers.is_empty() && view.key(key.code, context) {
                    return;
                }
                command
                    .into_iter()
                    .for_each(|command| self.command(command));
            }
        }
    }

    fn in_overlay(&mut self, act: impl FnOnce(&mut Overlay, &mut Table) -> OverlayAction) {
        let Some(mut overlay) = self.overlay.take() else {
            return;
        };
        if act(&mut overlay, self.table()) == OverlayAction::Stays {
            self.overlay = Some(overlay);
        }
        self.arrange();
    }

    /// Processes a mouse event.
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
            return self.in_overlay(|overlay, table| match hit {
                Some(Hit::Item(place)) => overlay.clicked(place, table),
                _ => OverlayAction::Closes,
            });
        }
        match hit {
            Some(Hit::Tab(view)) => self.command(Command::View(view)),
            Some(Hit::Heading(column)) => {
                self.table().sort_by(column);
                self.arrange();
            }
            Some(Hit::Line(place)) => {
                // A click selects a line; a click on the selected one opens it.
                let table = self.table();
                let opens =
                    table.chosen.is_some() && table.keys.get(place) == table.chosen.as_ref();
                table.choose(place);
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
                OverlayAction::Stays
            });
        } else if self.tab == Tab::Flow {
            self.command(Command::Move(Move::By(by.signum())));
        } else {
            self.table().scroll(by);
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
                let (tab, (view, table, _)) = (self.tab, self.parts());
                self.overlay = Some(Overlay::new(OverlayKind::Help(
                    tab,
                    view.about(),
                    table.schema,
                )));
            }
            Command::Pause => self.context.history.pause(),
            Command::Back(by) if self.context.history.has_earlier() => {
                self.context.history.back(by);
            }
            Command::Back(_) => {
                let fast = match self.has_ended() {
                    true => "; a capture read fast keeps few: --pace real replays it",
                    false => "",
                };
                let text = format!("no earlier moment is kept{fast}");
                self.message = Some((text, Tone::Warn));
            }
            Command::Forward(by) => self.context.history.forward(by),
            Command::Newest => self.context.history.go_on(),
            Command::Filter => {
                let former = self.table().typed.clone();
                self.prompt = Some(Prompt::new(
                    Purpose::Filter {
                        former: former.clone(),
                    },
                    former,
                ));
            }
            Command::SortPicker | Command::Columns => {
                let picker = Picker::new(self.table(), command == Command::SortPicker);
                self.overlay = Some(Overlay::new(OverlayKind::Columns(picker)));
            }
            Command::SortBeside { right } => self.table().sort_beside(right),
            Command::Reverse => {
                let order = &mut self.table().order;
                order.descending = !order.descending;
            }
            Command::Export => self.export_prompt(),
            Command::Write(format) => {
                let kind = match format {
                    Format::Json => "json",
                    Format::Csv => "csv",
                };
                let name = format!("fcn-top-{}.{kind}", self.table_tab().id());
                self.prompt = Some(Prompt::new(Purpose::Write(format), name));
            }
            Command::Picture => {
                self.prompt = Some(Prompt::new(
                    Purpose::Picture,
                    format!("fcn-top-{}.svg", self.tab.id()),
                ));
            }
            Command::Enter => return self.enter(),
            Command::Escape => self.escape(),
            Command::Move(how) => self.table().go(how),
            Command::Column { right } => self.table().scroll_columns(right),
        }
        self.arrange();
    }

    /// Returns the view of the current table: the flow is a line of the QPs.
    fn table_tab(&self) -> Tab {
        if self.tab == Tab::Flow {
            Tab::Qps
        } else {
            self.tab
        }
    }

    fn enter(&mut self) {
        let (view, table, context) = self.parts();
        match view.enter(table, context) {
            // It may show another table now.
            None => self.arrange(),
            Some(OpenTarget::Tab(tab)) => self.show(tab),
            Some(OpenTarget::Qps(column, cell)) => {
                self.tables[TableId::Qps as usize].only(column, Some(cell));
                self.show(Tab::Qps);
            }
            Some(OpenTarget::Events(what)) => {
                self.tables[TableId::Events as usize].only("what", Some(Cell::Name(what)));
                self.arrange();
            }
            Some(OpenTarget::Event(event)) => {
                self.overlay = Some(Overlay::new(OverlayKind::Event(event)));
            }
        }
    }

    /// Goes one step back: from the flow to the table, from a selected line to none, from a
    /// filtered table to all of it.
    fn escape(&mut self) {
        if self.tab == Tab::Flow {
            if !self.view().escape() {
                self.tab = Tab::Qps;
            }
            return;
        }
        let (view, table, _) = self.parts();
        if table.chosen.is_some() {
            table.chosen = None;
            (table.top, table.follow) = (0, true);
        } else if !table.typed.is_empty() {
            // An empty filter is always valid.
            let _ = table.filter("");
        } else if !view.escape() {
            table.only("", None);
        }
    }

    fn export_prompt(&mut self) {
        let tab = self.table_tab();
        let table = self.table();
        // That is, the one explained.
        let row = match (tab, table.chosen.as_ref().or(table.keys.first())) {
            (Tab::Qps, Some(Key::Qp(row))) => *row,
            _ => {
                let how = "packets are kept by QP: select a row of the QPs first (1, then arrows), then x";
                self.message = Some((how.to_owned(), Tone::Warn));
                return;
            }
        };
        let record = self.context.history.shown().qp(row);
        let name = match record.map(|record| (record.qp, record.flow_label)) {
            Some((Some(qp), _)) => format!("fcn-top-qp-{qp:#x}.pcapng"),
            Some((None, Some(label))) => format!("fcn-top-label-{label:#07x}.pcapng"),
            _ => "fcn-top-row.pcapng".to_owned(),
        };
        self.prompt = Some(Prompt::new(Purpose::Export(row), name));
    }

    /// Processes pasted text, if a prompt is open.
    pub fn paste(&mut self, text: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.paste(text);
            self.typed();
        }
    }

    /// Applies the typed text to the table.
    fn typed(&mut self) {
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        let (view, table, context) = self.parts();
        let masks = context.formatter.masks();
        prompt.filter(table, masks, &mut |table| view.arrange(table, context));
        self.prompt = Some(prompt);
    }

    fn prompt_key(&mut self, key: KeyEvent) {
        use crossterm::event::KeyCode::{Enter, Esc};
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        match key.code {
            Esc => {
                if let Purpose::Filter { former } = prompt.purpose {
                    // It was valid before.
                    let _ = self.table().filter(&former);
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

    /// Processes the completed input of a prompt.
    fn given(&mut self, prompt: Prompt) {
        let text = prompt.input.value().trim().to_owned();
        let to = PathBuf::from(&text);
        match prompt.purpose {
            // An invalid filter remains until it is corrected or abandoned.
            Purpose::Filter { .. } if prompt.error.is_some() => self.prompt = Some(prompt),
            Purpose::Filter { .. } => {
                let _ = self.table().filter(&text);
                self.arrange();
            }
            _ if text.is_empty() => {
                self.prompt = Some(Prompt {
                    error: Some("a file needs a name".to_owned()),
                    ..prompt
                });
            }
            Purpose::Export(row) => self.effects.push(Effect::Export { row, to }),
            Purpose::Picture => self.effects.push(Effect::Picture(to)),
            Purpose::Write(format) => {
                let (view, table, context) = self.parts();
                match view.text(table, context, format) {
                    Ok(text) => self.effects.push(Effect::Write { text, to }),
                    Err(error) => self.wrote(&to, Err(error.to_string())),
                }
            }
        }
    }
}

/// Applies the requested order and filter to a table; reports invalid ones and applies the rest.
fn begin(table: &mut Table, options: &Options) -> Result<(), String> {
    let mut wrong = Vec::new();
    if !options.order.is_empty() {
        match (table.schema.read_order)(&options.order) {
            Ok(order) => table.order = order,
            Err(error) => wrong.push(error),
        }
    }
    if let Err(error) = table.filter(&options.filter) {
        wrong.push(error.to_string());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}
