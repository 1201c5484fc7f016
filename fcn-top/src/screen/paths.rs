//! IOAM paths as bars.

use super::draw::Look;
use super::fit;
use super::panels::{bar, headed};
use super::theme::Tone;
use crate::record::{Cell, HopRecord};
use fcn_tool::quantity::counted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Paths, the chosen one first, and the others as far as there is room.
pub(super) fn paths(
    chosen: u32,
    hops: &[HopRecord],
    area: Rect,
    look: Look<'_>,
    buffer: &mut Buffer,
) {
    let mut numbers = vec![chosen];
    for hop in hops {
        if !numbers.contains(&hop.path) && numbers.len() < usize::from(area.height) {
            numbers.push(hop.path);
        }
    }
    let mut area = area;
    for number in numbers {
        let used = path(number, hops, area, look, buffer).min(area.height);
        area = Rect {
            y: area.y + used,
            height: area.height - used,
            ..area
        };
        // Less than this shows no node.
        if area.height < 3 {
            return;
        }
    }
}

/// One path, node by node: queue depth and transit delay as bars, each on one scale for all nodes; returns its lines.
fn path(path: u32, hops: &[HopRecord], area: Rect, look: Look<'_>, buffer: &mut Buffer) -> u16 {
    let mut hops: Vec<&HopRecord> = hops.iter().filter(|hop| hop.path == path).collect();
    hops.sort_by_key(|hop| hop.hop);
    let Some(first) = hops.first() else { return 0 };
    let lines = u16::try_from(hops.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    let title = format!(
        "Path {path}: {}, {}; solid is the last trace, shaded the most",
        counted(hops.len() as u64, "node"),
        counted(first.traces, "trace")
    );
    let area = headed(&title, area, look, buffer);
    let words = look.words;
    let node = |hop: &HopRecord| match hop.node {
        Some(node) => format!("{}  node {node}", hop.hop),
        None => format!("{}  node not named", hop.hop),
    };
    let count = |value: Option<u32>| {
        words.cell(value.map_or(Cell::None, |value| Cell::Count(value.into())))
    };
    let span = |value: Option<u64>| words.cell(value.map_or(Cell::None, Cell::Span));
    let longest = |texts: &mut dyn Iterator<Item = String>| {
        texts.map(|text| fit::width(&text)).max().unwrap_or(0)
    };
    let names = longest(&mut hops.iter().map(|hop| node(hop))) + 2;
    let queues = longest(
        &mut hops
            .iter()
            .flat_map(|hop| [count(hop.queue), count(hop.queue_max)]),
    )
    .max(5);
    let delays = longest(
        &mut hops
            .iter()
            .flat_map(|hop| [span(hop.delay), span(hop.delay_max)]),
    )
    .max(5);
    // Two bars, each with two numbers behind it.
    let numbers = names + 2 * (queues + delays) + 12;
    let bars = area.width.saturating_sub(numbers) / 2;
    let deepest = hops
        .iter()
        .flat_map(|hop| [hop.queue, hop.queue_max])
        .flatten()
        .max()
        .unwrap_or(0);
    let slowest = hops
        .iter()
        .flat_map(|hop| [hop.delay, hop.delay_max])
        .flatten()
        .max()
        .unwrap_or(0);
    let (plain, dim) = (look.theme.style(Tone::Plain), look.theme.style(Tone::Dim));
    let right = |text: &str, room: u16| {
        format!(
            "{}{text}",
            " ".repeat(room.saturating_sub(fit::width(text)).into())
        )
    };
    let titles = [
        (right("", names), plain),
        (
            format!("{:<1$}", "Queue", usize::from(bars)),
            look.theme.bold(Tone::Accent),
        ),
        (format!(" {}", right("last", queues)), dim),
        (format!(" {}", right("most", queues)), dim),
        (
            format!("   {:<1$}", "Transit", usize::from(bars)),
            look.theme.bold(Tone::Accent),
        ),
        (format!(" {}", right("last", delays)), dim),
        (format!(" {}", right("most", delays)), dim),
    ];
    if area.height > 0 {
        fit::put_all(buffer, area, area.y, &titles);
    }
    for (y, hop) in (area.top() + 1..area.bottom()).zip(hops) {
        let is_deepest = deepest > 0 && hop.queue_max == Some(deepest);
        let tone = look
            .theme
            .style(if is_deepest { Tone::Warn } else { Tone::Accent });
        let pad = |(solid, shaded): (String, String)| {
            let blank =
                usize::from(bars).saturating_sub(solid.chars().count() + shaded.chars().count());
            [(solid, tone), (shaded, tone), (" ".repeat(blank), plain)]
        };
        let queue = hop.queue.unwrap_or(0).into();
        let queue = bar(
            queue,
            hop.queue_max.map_or(queue, f64::from),
            deepest.into(),
            bars,
        );
        let delay = hop.delay.unwrap_or(0) as f64;
        let delay = bar(
            delay,
            hop.delay_max.map_or(delay, |most| most as f64),
            slowest as f64,
            bars,
        );
        let name = node(hop);
        let mut pieces = vec![(
            format!("{name}{}", " ".repeat((names - fit::width(&name)).into())),
            plain,
        )];
        pieces.extend(pad(queue));
        pieces.push((
            format!(
                " {} {}   ",
                right(&count(hop.queue), queues),
                right(&count(hop.queue_max), queues)
            ),
            plain,
        ));
        pieces.extend(pad(delay));
        pieces.push((
            format!(
                " {} {}",
                right(&span(hop.delay), delays),
                right(&span(hop.delay_max), delays)
            ),
            plain,
        ));
        fit::put_all(buffer, area, y, &pieces);
    }
    lines
}
