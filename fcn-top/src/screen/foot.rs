//! The lowest lines: keys, what is typed and what is wrong with it, or what there is to say.

use super::View;
use super::app::App;
use super::fit;
use super::moments::Mode;
use super::theme::Tone;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

impl App<'_> {
    /// What is typed, what there is to say, or the keys.
    pub(super) fn draw_foot(&self, area: Rect, frame: &mut Frame<'_>) {
        if area.height == 0 {
            return;
        }
        let dim = self.theme.style(Tone::Dim);
        if let Some(prompt) = &self.prompt {
            let label = prompt.label();
            let used = fit::put(
                frame.buffer_mut(),
                area,
                (area.left(), area.top()),
                label,
                area.width,
                self.theme.bold(Tone::Accent),
            );
            let room = area.width.saturating_sub(used + 1);
            let scroll = prompt.input.visual_scroll(room.into());
            let before = prompt
                .input
                .value()
                .chars()
                .take(prompt.input.cursor())
                .collect::<String>();
            let cursor = usize::from(fit::width(&before)).saturating_sub(scroll);
            let text: String = {
                let mut skipped = 0;
                let value = prompt.input.value();
                value
                    .chars()
                    .skip_while(|c| {
                        let skip = skipped < scroll;
                        skipped += usize::from(fit::width(c.encode_utf8(&mut [0; 4])));
                        skip
                    })
                    .collect()
            };
            let x = area.left() + used;
            fit::put(
                frame.buffer_mut(),
                area,
                (x, area.top()),
                &text,
                room,
                self.theme.style(Tone::Plain),
            );
            let at = (x + u16::try_from(cursor).unwrap_or(u16::MAX).min(room))
                .min(area.right().saturating_sub(1));
            frame.set_cursor_position(Position {
                x: at,
                y: area.top(),
            });
            return;
        }
        if let Some((text, tone)) = &self.message {
            fit::put(
                frame.buffer_mut(),
                area,
                (area.left(), area.top()),
                text,
                area.width,
                self.theme.style(*tone),
            );
            return;
        }
        let mode: &[(&str, &str)] = match self.moments.mode() {
            Mode::Live => &[("p", "pause"), ("[", "back")],
            Mode::Paused(_) => &[("p", "go on"), ("[", "back")],
            Mode::Frozen(_) => &[("[ ]", "back, forward"), ("p", "now")],
        };
        let view: &[(&str, &str)] = match self.view {
            View::Qps => &[
                ("Enter", "flow"),
                ("/", "filter"),
                ("s", "sort"),
                ("c", "columns"),
                ("x", "packets"),
            ],
            View::Points => &[
                ("Enter", "its QPs"),
                ("/", "filter"),
                ("s", "sort"),
                ("c", "columns"),
            ],
            View::Flow => &[
                ("Esc", "QPs"),
                ("↑ ↓", "other row"),
                ("+ -", "time"),
                ("x", "packets"),
            ],
            View::Events => &[
                ("Enter", "whole text"),
                ("/", "filter"),
                ("s", "sort"),
                ("c", "columns"),
            ],
            View::Paths | View::Interfaces => &[("/", "filter"), ("s", "sort"), ("c", "columns")],
        };
        let write: &[(&str, &str)] = &[("J", "JSON"), ("V", "CSV")];
        let keys = [&[("?", "help"), ("q", "quit")], view, mode, write].concat();
        let mut x = area.left();
        let buffer = frame.buffer_mut();
        for (key, does) in keys {
            let taken = fit::width(key) + 1 + fit::width(does);
            if x + taken > area.right() {
                break;
            }
            x += fit::put(
                buffer,
                area,
                (x, area.top()),
                key,
                taken,
                self.theme.bold(Tone::Accent),
            ) + 1;
            x += fit::put(buffer, area, (x, area.top()), does, taken, dim) + 2;
        }
    }

    /// While something is typed: what is wrong with it, or what can be done.
    pub(super) fn draw_hint(&self, area: Rect, buffer: &mut Buffer) {
        let Some(prompt) = &self.prompt else { return };
        let (text, tone) = match &prompt.error {
            Some(error) => (error.as_str(), Tone::Bad),
            None => (prompt.hint(), Tone::Dim),
        };
        fit::put(
            buffer,
            area,
            (area.left(), area.top()),
            text,
            area.width,
            self.theme.style(tone),
        );
    }
}
