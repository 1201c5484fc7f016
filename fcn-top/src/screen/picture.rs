//! Puts a picture together: head, the view with what stands under it, what lies over it, foot.

use super::View;
use super::app::{App, with_table};
use super::draw;
use super::fit;
use super::help;
use super::line::Lines;
use super::panels;
use super::picker::Over;
use super::theme::Tone;
use super::{paths, points, sums};
use crate::record::HopRecord;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Cells that are needed to show something sensible.
const LEAST: (u16, u16) = (40, 10);

impl App<'_> {
    /// Draws the picture.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.hits.clear();
        let area = frame.area();
        if area.is_empty() {
            return;
        }
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let text = format!(
                "fcn-top needs {}×{} cells, has {}×{}",
                LEAST.0, LEAST.1, area.width, area.height
            );
            fit::put(
                frame.buffer_mut(),
                area,
                (area.x, area.y),
                &text,
                area.width,
                self.theme.style(Tone::Plain),
            );
            return;
        }
        let rows = [1, 1, 1, area.height - 4, 1];
        let mut y = area.y;
        let [tabs, sums, title, body, foot] = rows.map(|height| {
            let row = Rect { y, height, ..area };
            y += height;
            row
        });
        let hint = u16::from(self.prompt.is_some());
        let (body, hint) = (
            Rect {
                height: body.height - hint,
                ..body
            },
            Rect {
                y: body.bottom() - hint,
                height: hint,
                ..body
            },
        );
        self.draw_tabs(tabs, frame.buffer_mut());
        self.draw_sums(sums, frame.buffer_mut());
        if self.view == View::Flow {
            self.draw_flow(body, frame.buffer_mut());
        } else {
            self.draw_table(body, frame.buffer_mut());
        }
        self.draw_title(title, frame.buffer_mut());
        self.draw_over(
            Rect {
                y: title.y,
                height: title.height + body.height,
                ..body
            },
            frame.buffer_mut(),
        );
        self.draw_hint(hint, frame.buffer_mut());
        self.draw_foot(foot, frame);
    }

    fn draw_table(&mut self, area: Rect, buffer: &mut Buffer) {
        let look = self.look();
        let lines = with_table!(self, |_sheet, lines, L| Lines::<L>::count(lines));
        let (area, panel) = panels::split(self.view, area, lines);
        self.more_columns = {
            let hits = &mut self.hits;
            with_table!(self, |sheet, lines, L| draw::table::<L>(
                sheet, lines, area, look, buffer, hits
            ))
        };
        let empty = with_table!(self, |sheet, _lines, L| sheet.lines.is_empty());
        if empty {
            let filters = with_table!(self, |sheet, _lines, L| sheet.filters());
            let text = panels::why_empty(
                self.view,
                self.moments.shown(),
                lines,
                filters,
                self.ended.is_some(),
            );
            self.say_empty(
                &text,
                Rect {
                    y: area.y + 1,
                    height: area.height.saturating_sub(1),
                    ..area
                },
                buffer,
            );
        }
        match self.view {
            View::Paths => {
                if let Some(hop) = self
                    .sheets
                    .hops
                    .current::<HopRecord>(&self.moments.shown().hops[..])
                {
                    paths::paths(hop.path, &self.moments.shown().hops, panel, look, buffer);
                }
            }
            View::Events => sums::rules(&self.moments.shown().rules, panel, look, buffer),
            View::Interfaces => sums::sums(self.moments.shown(), panel, look, buffer),
            View::Points => {
                let sheet = &self.sheets.points;
                let shown = &self.moments.shown().points;
                let points = (sheet.lines.iter())
                    .filter_map(|&at| shown.get(at as usize))
                    .skip(sheet.top)
                    .take(sheet.page);
                points::points(points, panel, look, buffer);
            }
            View::Qps | View::Flow => {}
        }
    }

    /// Tells why there is nothing where there could be something.
    pub(super) fn say_empty(&self, text: &str, area: Rect, buffer: &mut Buffer) {
        let lines = fit::wrapped(text, area.width.saturating_sub(4).min(72));
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let top = area.y + area.height.saturating_sub(height) / 3;
        for (y, line) in (top..area.bottom()).zip(&lines) {
            let x = area.x + area.width.saturating_sub(fit::width(line)) / 2;
            fit::put(
                buffer,
                area,
                (x, y),
                line,
                area.width,
                self.theme.style(Tone::Plain),
            );
        }
    }

    fn draw_over(&mut self, area: Rect, buffer: &mut Buffer) {
        let look = self.look();
        match &mut self.over {
            None => {}
            Some(Over::Help(reader)) => {
                self.hits.clear();
                let view = self.view;
                help::draw(view, reader, area, look, buffer);
            }
            Some(Over::Event(event, reader)) => {
                self.hits.clear();
                help::event(event, reader, area, look, buffer);
            }
            Some(Over::Sort(picker)) => {
                self.hits.clear();
                picker.draw(true, area, look, buffer, &mut self.hits);
            }
            Some(Over::Columns(picker)) => {
                self.hits.clear();
                picker.draw(false, area, look, buffer, &mut self.hits);
            }
        }
    }
}
