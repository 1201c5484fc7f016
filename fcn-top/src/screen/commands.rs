//! What each command changes on the screen.

use super::app::{App, picked, with_table};
use super::input::{Asked, Prompt};
use super::keys::Command;
use super::line::{Key, Line};
use super::moments::Moments;
use super::picker::{Over, Picker, Reader};
use super::sheet::Move;
use super::theme::Tone;
use super::{Effect, Format, Records, View, Writing};
use crate::record::{EventRecord, PointRecord};
use std::borrow::Cow;
use std::path::PathBuf;

impl App<'_> {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Quit => self.effects.push(Effect::Quit),
            Command::Redraw => self.effects.push(Effect::Redraw),
            Command::View(view) => self.show(view),
            Command::NextView { back } => self.show(self.view.step(back)),
            Command::Help => self.over = Some(Over::Help(Reader::default())),
            Command::Pause => {
                self.moments.pause(false);
                self.arrange();
            }
            Command::Back(by) => self.travel(|moments| moments.back(by)),
            Command::Forward(by) => self.travel(|moments| moments.forward(by)),
            Command::Oldest => self.travel(|moments| moments.back(usize::MAX)),
            Command::Newest => self.travel(Moments::go_on),
            Command::Filter => self.ask_filter(),
            Command::SortPicker => self.pick(true),
            Command::Columns => self.pick(false),
            Command::SortBeside { right } => {
                with_table!(self, |sheet, lines, L| sheet.sort_beside::<L>(right, lines));
                self.arrange();
            }
            Command::Reverse => {
                with_table!(self, |sheet, _lines, L| sheet.order.descending =
                    !sheet.order.descending);
                self.arrange();
            }
            Command::Export => self.ask_export(),
            Command::Write(format) => {
                let kind = match format {
                    Format::Json => "json",
                    Format::Csv => "csv",
                };
                let name = format!("fcn-top-{}.{kind}", self.table_view().id());
                self.prompt = Some(Prompt::new(Asked::Write(format), name));
            }
            Command::Enter => self.enter(),
            Command::Escape => self.escape(),
            Command::Move(how) => {
                with_table!(self, |sheet, lines, L| sheet.go::<L>(how, lines));
            }
            Command::Column { right } => {
                with_table!(self, |sheet, _lines, L| sheet.scroll_columns::<L>(right));
            }
            Command::Zoom { closer } => {
                self.zoom = if closer {
                    (self.zoom + 1).min(10)
                } else {
                    self.zoom.saturating_sub(1)
                };
            }
        }
    }

    /// The view whose table is meant: the flow is a line of the QPs.
    fn table_view(&self) -> View {
        if self.view == View::Flow {
            View::Qps
        } else {
            self.view
        }
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.arrange();
        if view == View::Flow && self.sheets.qps.chosen.is_none() {
            self.choose_first();
        }
    }

    fn travel(&mut self, go: impl FnOnce(&mut Moments)) {
        go(&mut self.moments);
        self.arrange();
    }

    fn enter(&mut self) {
        match self.view {
            View::Qps => {
                with_table!(self, |sheet, lines, L| if sheet.chosen.is_none() {
                    sheet.choose::<L>(sheet.top, lines);
                });
                self.show(View::Flow);
            }
            View::Points => {
                let (sheet, lines) = (&self.sheets.points, &self.moments.shown().points);
                if let Some(notifier) = sheet
                    .current(&lines[..])
                    .map(|point: Cow<'_, PointRecord>| point.notifier)
                {
                    let qps = &mut self.sheets.qps;
                    qps.notifier = Some(notifier);
                    qps.seen.fill(0);
                    (qps.chosen, qps.top) = (None, 0);
                    self.show(View::Qps);
                }
            }
            View::Events => {
                let (sheet, lines) = (&self.sheets.events, self.moments.events());
                let event: Option<Cow<'_, EventRecord>> = sheet.current(lines);
                if let Some(event) = event.map(Cow::into_owned) {
                    self.over = Some(Over::Event(Box::new(event), Reader::default()));
                }
            }
            View::Flow | View::Paths | View::Interfaces => {}
        }
    }

    /// Goes one step back: from the flow to the table, from a chosen line to none, from a filtered table to all of it.
    fn escape(&mut self) {
        if self.view == View::Flow {
            self.show(View::Qps);
            return;
        }
        with_table!(self, |sheet, _lines, L| {
            if sheet.chosen.is_some() {
                sheet.chosen = None;
                (sheet.top, sheet.follow) = (0, true);
            } else if sheet.notifier.is_some() {
                sheet.notifier = None;
            } else {
                // Nothing can be wrong with no filter.
                let _ = sheet.filter::<<L as Line>::Record>("");
            }
        });
        self.arrange();
    }

    pub(super) fn sort_by(&mut self, column: usize) {
        with_table!(self, |sheet, lines, L| sheet.sort_by::<L>(column, lines));
        self.arrange();
    }

    /// A click chooses a line; a click on the chosen one opens it.
    pub(super) fn line_clicked(&mut self, place: usize) {
        let opens = with_table!(self, |sheet, lines, L| {
            let key = sheet.line::<L>(place, lines).map(|line| line.key());
            let opens = key.is_some() && key == sheet.chosen;
            if key.is_some() {
                sheet.choose::<L>(place, lines);
            }
            opens
        });
        if opens {
            self.enter();
        }
    }

    pub(super) fn scrolled(&mut self, by: isize) {
        if self.view == View::Flow {
            self.command(Command::Move(Move::By(by.signum())));
        } else {
            with_table!(self, |sheet, _lines, L| sheet.scroll(by));
        }
    }

    fn ask_filter(&mut self) {
        let former = with_table!(self, |sheet, _lines, L| sheet.text.clone());
        self.prompt = Some(Prompt::new(
            Asked::Filter {
                former: former.clone(),
            },
            former,
        ));
    }

    fn ask_export(&mut self) {
        let row = match (self.table_view(), &self.sheets.qps.chosen) {
            (View::Qps, Some(Key::Qp(row))) => *row,
            _ => {
                let how = "packets are kept by QP: choose a row of the QPs first (1, then arrows), then x";
                self.message = Some((how.to_owned(), Tone::Warn));
                return;
            }
        };
        let record = self.moments.shown().qp(row);
        let name = match record.map(|record| (record.qp, record.flow_label)) {
            Some((Some(qp), _)) => format!("fcn-top-qp-{qp:#x}.pcapng"),
            Some((None, Some(label))) => format!("fcn-top-label-{label:#07x}.pcapng"),
            _ => "fcn-top-row.pcapng".to_owned(),
        };
        self.prompt = Some(Prompt::new(Asked::Export(row), name));
    }

    fn pick(&mut self, sort: bool) {
        let picker = with_table!(self, |sheet, _lines, L| Picker::new::<L>(sheet, sort));
        self.over = Some(if sort {
            Over::Sort(picker)
        } else {
            Over::Columns(picker)
        });
    }

    /// Takes a file name that was typed.
    pub(super) fn name_given(&mut self, asked: &Asked, name: &str) {
        let to = PathBuf::from(name);
        match asked {
            Asked::Filter { .. } => {}
            Asked::Export(row) => self.effects.push(Effect::Export { row: *row, to }),
            Asked::Write(format) => {
                let view = self.table_view();
                let (sheets, shown) = (&self.sheets, self.moments.shown());
                let records = match view {
                    View::Qps | View::Flow => Records::Qps(
                        picked(&sheets.qps, &shown.qps[..])
                            .map(|line| line.into_owned().1)
                            .collect(),
                    ),
                    View::Points => Records::Points(
                        picked(&sheets.points, &shown.points[..])
                            .map(Cow::into_owned)
                            .collect(),
                    ),
                    View::Paths => Records::Hops(
                        picked(&sheets.hops, &shown.hops[..])
                            .map(Cow::into_owned)
                            .collect(),
                    ),
                    View::Events => Records::Events(
                        picked(&sheets.events, self.moments.events())
                            .map(Cow::into_owned)
                            .collect(),
                    ),
                    View::Interfaces => Records::Interfaces(
                        picked(&sheets.interfaces, &shown.interfaces[..])
                            .map(Cow::into_owned)
                            .collect(),
                    ),
                };
                let writing = Writing {
                    format: *format,
                    view,
                    to,
                    at: shown.now,
                    records,
                };
                self.effects.push(Effect::Write(Box::new(writing)));
            }
        }
    }
}
