//! What was found and what happened: by rule first, with counts, each opening to its packets.

use super::sheet::{Entry, Key, Schema, Sheet, shortened};
use super::theme::Tone;
use super::views::{Opened, Place, TableId, View, empty, facts, headed};
use super::world::World;
use super::{Records, Tab};
use crate::filter::Filter;
use crate::order::Order;
use crate::record::{Cell, Column, EventRecord, Holds, Record};
use fcn_wire::{Rule, Severity};
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::sync::Arc;

/// A rule that was broken, or what else happened, and how often.
#[derive(Clone, Debug)]
pub(super) struct RuleRecord {
    severity: Severity,
    what: &'static str,
    times: u64,
    last: Option<u64>,
    text: Arc<str>,
}

const fn column(
    id: &'static str,
    title: &'static str,
    holds: Holds,
    about: &'static str,
) -> Column {
    Column {
        id,
        title,
        about,
        width: 12,
        holds,
    }
}

impl Record for RuleRecord {
    const TABLE: &'static str = "rules";
    const COLUMNS: &'static [Column] = &[
        column(
            "times",
            "times",
            Holds::Count,
            "How often, since the beginning; of losses, how many packets",
        ),
        column(
            "severity",
            "severity",
            Holds::Name,
            "note, warning or error",
        ),
        column(
            "what",
            "rule",
            Holds::Name,
            "Identifier of the broken rule or of what happened",
        ),
        column("last", "last", Holds::Moment, "When it is logged last"),
        column("text", "what it is", Holds::Text, "What it is, in words"),
    ];

    fn cell(&self, column: usize) -> Cell<'_> {
        match column {
            0 => Cell::Count(self.times),
            1 => Cell::Name(self.severity.name()),
            2 => Cell::Name(self.what),
            3 => self.last.map_or(Cell::None, Cell::Moment),
            4 => Cell::Text(&self.text),
            _ => Cell::None,
        }
    }
}

pub(super) static RULES: Schema = Schema {
    lines: "rule",
    columns: RuleRecord::COLUMNS,
    extra: &[],
    titles: &[],
    usual: &[
        ("times", 0),
        ("severity", 1),
        ("what", 0),
        ("last", 3),
        ("text", 2),
    ],
    fixed: 1,
    order: "-severity",
    filter: Filter::parse::<RuleRecord>,
    read_order: Order::parse::<RuleRecord>,
};

static SCHEMA: Schema = Schema {
    lines: "event",
    columns: EventRecord::COLUMNS,
    extra: &[],
    titles: &[
        ("at", "time"),
        ("severity", "severity"),
        ("what", "rule"),
        ("times", "times"),
        ("frame", "frame"),
        ("interface", "on"),
        ("from", "from"),
        ("to", "to"),
        ("text", "what it is"),
        ("section", "section"),
    ],
    usual: &[
        ("at", 0),
        ("severity", 2),
        ("what", 1),
        ("from", 3),
        ("to", 4),
        ("frame", 6),
        ("times", 5),
        ("text", 7),
        ("interface", 8),
        ("section", 9),
    ],
    fixed: 1,
    order: "-at",
    filter: Filter::parse::<EventRecord>,
    read_order: Order::parse::<EventRecord>,
};

/// What a severity is to the reader.
pub(super) const fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warn,
        Severity::Error => Tone::Bad,
    }
}

impl Entry for RuleRecord {
    type Record = Self;
    const SCHEMA: &'static Schema = &RULES;

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Rule(self.what)
    }

    /// Of one severity, what came most often first.
    fn rank(&self, _: usize) -> u64 {
        self.times
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        world: &World<'_>,
    ) -> Line<'static> {
        let text = world.words.in_column(column, self.cell(number));
        Line::styled(
            shortened(&text, room).into_owned(),
            world.style(self.tone(column.id)),
        )
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "severity" | "what" => severity_tone(self.severity),
            _ => Tone::Plain,
        }
    }
}

impl Entry for EventRecord {
    type Record = Self;
    const SCHEMA: &'static Schema = &SCHEMA;

    fn record(&self) -> &Self {
        self
    }

    fn key(&self) -> Key {
        Key::Event {
            at: self.at,
            what: self.what,
            frame: self.frame,
            text: Arc::clone(&self.text),
        }
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        world: &World<'_>,
    ) -> Line<'static> {
        let text = world.words.in_column(column, self.cell(number));
        Line::styled(
            shortened(&text, room).into_owned(),
            world.style(self.tone(column.id)),
        )
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "severity" | "what" => severity_tone(self.severity),
            _ => Tone::Plain,
        }
    }
}

/// The view.
#[derive(Debug)]
pub(super) struct Events {
    rules: Vec<RuleRecord>,
    /// Whether single events are shown: of one rule, or all.
    opened: bool,
}

impl Events {
    /// With all single events, or with the rules.
    pub(super) const fn new(opened: bool) -> Self {
        Self {
            rules: Vec::new(),
            opened,
        }
    }
}

/// Every rule that was found broken, and what else the log has, with counts: of rules, whatever the log has forgotten.
fn rules(world: &World<'_>) -> Vec<RuleRecord> {
    let mut found: Vec<RuleRecord> = Vec::new();
    for (what, times) in &world.moments.shown().rules {
        let info = Rule::ALL
            .iter()
            .map(|rule| rule.info())
            .find(|info| info.id == *what);
        found.push(RuleRecord {
            severity: info.map_or(Severity::Note, |info| info.severity),
            what,
            times: *times,
            last: None,
            text: info.map_or("", |info| info.text).into(),
        });
    }
    let counted = found.len();
    for event in world.moments.events() {
        let place = found.iter().position(|rule| rule.what == event.what);
        let Some(place) = place else {
            found.push(RuleRecord {
                severity: event.severity,
                what: event.what,
                times: event.times,
                last: Some(event.at),
                text: Arc::clone(&event.text),
            });
            continue;
        };
        if let Some(rule) = found.get_mut(place) {
            rule.last = rule.last.max(Some(event.at));
            if place >= counted {
                rule.times = rule.times.saturating_add(event.times);
                rule.severity = rule.severity.max(event.severity);
            }
        }
    }
    found
}

impl View for Events {
    fn table(&self) -> TableId {
        if self.opened {
            TableId::Events
        } else {
            TableId::Rules
        }
    }

    fn arrange(&mut self, sheet: &mut Sheet, world: &World<'_>) {
        if self.opened {
            sheet.arrange(world.moments.events(), world);
        } else {
            self.rules = rules(world);
            sheet.arrange(&self.rules, world);
        }
    }

    fn draw(&mut self, sheet: &mut Sheet, place: &mut Place<'_, '_>, world: &World<'_>) {
        let events = world.moments.events();
        let area = place.area;
        let panel = if area.height < 12 || sheet.lines.is_empty() {
            0
        } else {
            (area.height / 3).min(if self.opened { 8 } else { 14 })
        };
        let [table, panel] = area.layout(&Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(panel),
        ]));
        if self.opened {
            sheet.draw(events, place.frame, table, world, place.hits);
        } else {
            sheet.draw(&self.rules, place.frame, table, world, place.hits);
        }
        if sheet.lines.is_empty() {
            return empty(
                Tab::Events,
                "Nothing worth telling",
                sheet,
                table,
                place.frame,
                world,
            );
        }
        if panel.is_empty() {
            return;
        }
        if self.opened {
            let Some(event) = sheet.current().and_then(|at| events.get(at)) else {
                return;
            };
            let panel = headed(format!(" {} ", event.what), panel, place.frame, world);
            let text = facts(in_full(event, world), panel.width, world);
            place.frame.render_widget(Paragraph::new(text), panel);
        } else if let Some(rule) = sheet.current().and_then(|at| self.rules.get(at)) {
            let panel = headed(
                format!(" {}: the last of them ", rule.what),
                panel,
                place.frame,
                world,
            );
            let of_it = events
                .iter()
                .rev()
                .filter(|event| event.what == rule.what)
                .take(panel.height.into());
            let lines: Vec<Line<'_>> = of_it
                .map(|event| {
                    let frame = event
                        .frame
                        .map_or_else(String::new, |frame| format!("  frame {frame}"));
                    let address = |at: Option<_>| {
                        at.map_or_else(|| "?".to_owned(), |at| world.words.address(at))
                    };
                    let who = if event.from.is_some() {
                        format!("  {} → {}", address(event.from), address(event.to))
                    } else {
                        String::new()
                    };
                    Line::from(format!(
                        "{}  ×{}{frame}{who}  {}",
                        world.words.clock(event.at, 6),
                        event.times,
                        world.words.text(&event.text)
                    ))
                })
                .collect();
            place.frame.render_widget(Paragraph::new(lines), panel);
        }
    }

    fn enter(&mut self, sheet: &mut Sheet, world: &World<'_>) -> Option<Opened> {
        if self.opened {
            let event = world.moments.events().get(sheet.current()?)?;
            return Some(Opened::Event(Box::new(event.clone())));
        }
        let rule = self.rules.get(sheet.current()?)?;
        self.opened = true;
        Some(Opened::Events(rule.what))
    }

    fn escape(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    fn records(&self, sheet: &Sheet, world: &World<'_>) -> Records {
        let events = world.moments.events();
        Records::Events(if self.opened {
            sheet
                .lines
                .iter()
                .filter_map(|at| events.get(*at as usize))
                .cloned()
                .collect()
        } else {
            events.to_vec()
        })
    }

    fn about(&self) -> &'static str {
        "Rules of the drafts found broken, suspicious notifiers, and what happened to the capture: the worst first, with how \
         often. Enter opens a rule to its packets, and a packet to all that is said of it, with the section of the rule. The \
         same in a row is one event. Written are the events."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        if self.opened {
            &[
                ("Enter", "whole text"),
                ("Esc", "rules"),
                ("/", "filter"),
                ("s", "sort"),
                ("c", "columns"),
            ]
        } else {
            &[("Enter", "its packets"), ("/", "filter"), ("s", "sort")]
        }
    }
}

/// All that is said of an event.
pub(super) fn in_full(event: &EventRecord, world: &World<'_>) -> Vec<(&'static str, String, Tone)> {
    let severity = (
        event.severity.name(),
        world.words.text(&event.text).into_owned(),
        severity_tone(event.severity),
    );
    let shown = EventRecord::COLUMNS
        .iter()
        .enumerate()
        .filter(|(_, column)| !matches!(column.id, "severity" | "what" | "text"));
    let facts = shown.filter_map(|(number, column)| {
        let text = match event.cell(number) {
            Cell::None => return None,
            Cell::Moment(at) => world.words.day_and_time(at),
            cell => world.words.in_column(column, cell),
        };
        Some((SCHEMA.title(column), text, Tone::Plain))
    });
    std::iter::once(severity).chain(facts).collect()
}
