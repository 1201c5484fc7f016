//! The view of findings and events: by rule first, with counts; each rule opens to its packets.

use super::context::{ViewContext, Written};
use super::hits::DrawContext;
use super::table::{Entry, Key, Schema, Table, both};
use super::theme::Tone;
use super::views::{OpenTarget, TableId, View, draw, headed, in_columns, labelled, parted, tell};
use super::{Format, fit};
use crate::record::{Cell, Column, EventRecord, Holds, Record, records};
use fcn_tool::quantity::grouped;
use fcn_wire::{Rule, Severity};
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets;
use std::cmp::Reverse;
use std::sync::Arc;

records! {
    /// A broken rule, or another type of event, with its count.
    RuleRecord, "rules", {
        times: u64 = "times", 12, Count, "Occurrences since the start; for losses, the number of packets", |v| Cell::Count(*v);
        severity: Severity = "severity", 12, Name, "note, warning or error", |v| Cell::Name(v.id());
        what: &'static str = "rule", 12, Name, "Identifier of the broken rule or of the event", |v| Cell::Name(v);
        last: Option<u64> = "last", 12, Moment, "Time of the last occurrence", |v| v.map_or(Cell::None, Cell::Moment);
        text: Arc<str> = "meaning", 12, Text, "Description", |v| Cell::Text(v);
    }
}

/// Maximum width of an event's addresses in a line, in cells.
const WHO: u16 = 36;

/// Returns the tone of a severity.
pub(super) const fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warn,
        Severity::Error => Tone::Bad,
    }
}

impl Entry for RuleRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "rule",
        usual: &[
            ("times", 0, "times"),
            ("severity", 1, "severity"),
            ("what", 0, "rule"),
            ("last", 3, "last"),
            ("text", 2, "meaning"),
        ],
        order: "-severity",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Rule(self.what)
    }

    /// Within a severity, most frequent first.
    fn rank(&self, index: usize) -> (u64, u64) {
        (self.times, index as u64)
    }

    fn tone(&self, id: &str) -> Tone {
        tone(id, self.severity)
    }
}

impl Entry for EventRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "event",
        usual: &[
            ("at", 0, "time"),
            ("last", 6, "last"),
            ("severity", 2, "severity"),
            ("what", 1, "rule"),
            ("from", 3, "from"),
            ("to", 4, "to"),
            ("frame", 7, "frame"),
            ("times", 5, "times"),
            ("text", 8, "meaning"),
            ("interface", 9, "on"),
            ("section", 10, "section"),
        ],
        order: "-at",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Event {
            at: self.at,
            what: self.what,
            frame: self.frame,
            text: Arc::clone(&self.text),
        }
    }

    /// If the event did not repeat, its time says everything.
    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        column.id == "last" && self.last == self.at || self.cell(number) == Cell::None
    }

    fn tone(&self, id: &str) -> Tone {
        tone(id, self.severity)
    }
}

/// Returns the tone of a column.
fn tone(id: &str, severity: Severity) -> Tone {
    match id {
        "severity" | "what" => severity_tone(severity),
        _ => Tone::Plain,
    }
}

/// The events view.
#[derive(Debug)]
pub(super) struct Events {
    rules: Vec<RuleRecord>,
    /// True if single events are shown: of one rule, or all.
    opened: bool,
}

impl Events {
    /// Creates the view, showing single events or rules.
    pub(super) const fn new(opened: bool) -> Self {
        Self {
            rules: Vec::new(),
            opened,
        }
    }
}

/// Returns all broken rules and other events of the log, with counts; those of rules include events
/// dropped from the log.
fn rules(context: &ViewContext<'_>) -> Vec<RuleRecord> {
    let mut found: Vec<RuleRecord> = Vec::new();
    for (what, times) in &context.history.shown().rules {
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
    for event in context.history.events().iter() {
        let place = found.iter().position(|rule| rule.what == event.what);
        let Some(place) = place else {
            found.push(RuleRecord {
                severity: event.severity,
                what: event.what,
                times: event.times,
                last: Some(event.last),
                text: Arc::clone(&event.text),
            });
            continue;
        };
        if let Some(rule) = found.get_mut(place) {
            rule.last = rule.last.max(Some(event.last));
            if place >= counted {
                rule.times = rule.times.saturating_add(event.times);
                rule.severity = rule.severity.max(event.severity);
            }
        }
    }
    found
}

impl View for Events {
    fn table_id(&self) -> TableId {
        if self.opened {
            TableId::Events
        } else {
            TableId::Rules
        }
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        if self.opened {
            table.arrange(&context.history.events(), context);
        } else {
            self.rules = rules(context);
            table.arrange(&self.rules, context);
        }
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let events = &context.history.events();
        let area = canvas.area;
        let panel = if area.height < 12 || table.lines.is_empty() {
            0
        } else {
            (area.height / 3).min(14)
        };
        let areas = parted(area, panel);
        let nothing = match context.checked.as_str() {
            "" => "No findings or events",
            checked => &format!("No findings or events ({checked})"),
        };
        let nothing = Some(nothing);
        if self.opened {
            let Some(event) = draw(table, events, nothing, canvas, areas, context) else {
                return;
            };
            let panel = headed(format!(" {} ", event.what), areas[1], canvas.frame, context);
            let text = labelled(in_full(event, context), panel.width, context);
            tell(text, panel, canvas.frame);
        } else if let Some(rule) = draw(table, &self.rules, nothing, canvas, areas, context) {
            let panel = headed(
                format!(" {}: latest events ", rule.what),
                areas[1],
                canvas.frame,
                context,
            );
            let mut of_it: Vec<_> = events
                .iter()
                .filter(|event| event.what == rule.what)
                .collect();
            of_it.sort_by_key(|event| Reverse(event.last));
            of_it.truncate(panel.height.into());
            let address = |address| context.maybe(address, Cell::Address);
            let who = |event: &EventRecord, room| match event.from {
                Some(_) => both(&address(event.from), &address(event.to), room),
                None => String::new(),
            };
            let line = |event: &EventRecord| {
                let frame = event.frame.map(|at| format!("frame {at}"));
                // Frame and text are those of the first occurrence.
                let since = match event.last == event.at {
                    true => frame.unwrap_or_default(),
                    false => {
                        let frame = frame.map_or_else(String::new, |at| format!(" ({at})"));
                        format!(
                            "since {}{frame}",
                            context.clock_before(event.last, event.at, 6)
                        )
                    }
                };
                [
                    context.clock(event.last, 6),
                    format!("×{}", grouped(event.times)),
                    since,
                    who(event, WHO),
                    context.formatter.text(&event.text).into_owned(),
                ]
            };
            let mut lines: Vec<_> = of_it.iter().copied().map(line).collect();
            let widest = |at: usize| lines.iter().map(|line| fit::width(&line[at])).max();
            let mut widths = [0, 1, 2, 3].map(|at| widest(at).unwrap_or(0));
            // Addresses can be shortened, times cannot; columns are one cell apart.
            let before: u16 = widths[..3].iter().map(|width| width + 1).sum();
            widths[3] = widths[3].min(panel.width.saturating_sub(before + 1));
            let widths = widths.map(Constraint::Length).into_iter();
            let widths: Vec<_> = widths.chain([Constraint::Fill(1)]).collect();
            let columns = Layout::horizontal(&widths).spacing(1).split(panel);
            let room = columns[3].width;
            let mut whose: Vec<_> = of_it.iter().map(|event| who(event, room)).collect();
            fit::tell_apart(&mut whose, room, |at| who(of_it[at], u16::MAX));
            for (line, who) in lines.iter_mut().zip(whose) {
                line[3] = who;
            }
            let lines = lines.into_iter().map(|line| line.map(Line::from));
            let lines = widgets::Table::new(in_columns(lines, &columns), &widths);
            canvas.frame.render_widget(lines, panel);
        }
    }

    fn enter(&mut self, table: &mut Table, context: &ViewContext<'_>) -> Option<OpenTarget> {
        if self.opened {
            let events = context.history.events();
            let event = table.current(&events)?;
            return Some(OpenTarget::Event(Box::new(event.clone())));
        }
        let rule = table.current(&self.rules)?;
        self.opened = true;
        Some(OpenTarget::Events(rule.what))
    }

    fn escape(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let events = context.history.events();
        if self.opened {
            context.text(table.shown(&events), format)
        } else {
            context.text(&*events, format)
        }
    }

    fn about(&self) -> &'static str {
        "Broken rules of the drafts, suspicious notifiers, and events of the capture: the worst first, with their \
         number. Enter opens the packets of a rule, and all details of a packet, with the section of the rule. \
         Consecutive equal ones are one event. J and V write the events."
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

/// Returns all details of an event.
pub(super) fn in_full(
    event: &EventRecord,
    context: &ViewContext<'_>,
) -> Vec<(&'static str, String, Tone)> {
    let severity = (
        event.severity.id(),
        context.formatter.text(&event.text).into_owned(),
        severity_tone(event.severity),
    );
    let shown = EventRecord::COLUMNS
        .iter()
        .enumerate()
        .filter(|(_, column)| !matches!(column.id, "severity" | "what" | "text"))
        .filter(|&(number, column)| !event.is_empty(number, column));
    let fields = shown.map(|(number, column)| {
        let text = match event.cell(number) {
            Cell::Moment(at) => context.formatter.day_and_time(at),
            cell => context.formatter.in_column(column, cell),
        };
        (EventRecord::SCHEMA.title(column), text, Tone::Plain)
    });
    std::iter::once(severity).chain(fields).collect()
}
