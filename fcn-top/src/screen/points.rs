//! Notifiers beside each other, as bars.

use super::draw::Look;
use super::fit;
use super::panels::{bar, headed};
use super::theme::Tone;
use crate::record::{Cell, PointRecord};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Who notifies most, how deep its queues are, how many flows suffer: as bars, in the order of the table.
pub(super) fn points<'p>(
    points: impl Iterator<Item = &'p PointRecord> + Clone,
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
) {
    if area.height < 3 {
        return;
    }
    let area = headed(
        "Who notifies most, how many flows suffer, how deep the queues are",
        area,
        look,
        buffer,
    );
    let words = look.words;
    let (name, gap) = ((area.width / 4).min(26), 2);
    let room = area.width.saturating_sub(name) / 3;
    let of = |point: &PointRecord| {
        [
            point.rate_1s.unwrap_or(0.0),
            point.flows as f64,
            point.queue_max.unwrap_or(0).into(),
        ]
    };
    let tops = points
        .clone()
        .map(of)
        .fold([0.0; 3], |top: [f64; 3], next| {
            std::array::from_fn(|i| top[i].max(next[i]))
        });
    let accent = look.theme.bold(Tone::Accent);
    let titles = ["Notifications, 1 s", "Flows told", "Deepest queue"];
    for (x, title) in (0..3).map(|i| area.x + name + i * room).zip(titles) {
        fit::put(
            buffer,
            area,
            (x, area.y),
            title,
            room.saturating_sub(gap),
            accent,
        );
    }
    for (y, point) in (area.top() + 1..area.bottom()).zip(points) {
        let address = words.address(point.notifier);
        let shown = fit::middle(&address, name.saturating_sub(gap));
        fit::put(
            buffer,
            area,
            (area.x, y),
            &shown,
            name,
            look.theme.style(Tone::Plain),
        );
        let texts = [
            words.cell(point.rate_1s.map_or(Cell::None, Cell::Rate)),
            words.cell(Cell::Count(point.flows)),
            words.cell(
                point
                    .queue_max
                    .map_or(Cell::None, |queue| Cell::Count(queue.into())),
            ),
        ];
        let bars = of(point).into_iter().zip(tops).zip(texts);
        for (x, ((value, top), text)) in (0..3).map(|i| area.x + name + i * room).zip(bars) {
            let number = 9;
            let (solid, _) = bar(value, 0.0, top, room.saturating_sub(number + gap));
            let tone = if value >= top && top > 0.0 {
                Tone::Warn
            } else {
                Tone::Accent
            };
            let used = fit::put(buffer, area, (x, y), &solid, room, look.theme.style(tone));
            let at = x + used + u16::from(used > 0);
            fit::put(
                buffer,
                area,
                (at, y),
                &text,
                number,
                look.theme.style(Tone::Plain),
            );
        }
    }
}
