//! Explains one QP or flow in words: its verdict with the evidence, the notifiers and how they were
//! identified, rates, and the effect on its data.

use super::context::{ViewContext, kind_name};
use super::fit;
use super::graph::{graph, most_data, most_notified};
use super::table::{both, shortened};
use super::theme::Tone;
use super::time_series::SECOND;
use super::views::{headed, labelled, pending, tell};
use crate::monitor::TENTH;
use crate::record::{Answer, Cell, EvidenceCell, Maker, QpRecord, QpSide, Resolved, RowId};
use crate::text::{NO_VERDICT, NOTHING, acts_as, estimate, samples, would_help};
use fcn_observe::rules::NOTIFIERS;
use fcn_wire::{Kind, Origin};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

/// Text of a graph if there are only samples, which are random.
pub(super) const SAMPLES: &str = "  samples: no time course";

/// Returns why a row has no data series, or no data in the time shown (`any` is false).
pub(super) const fn no_data(record: &QpRecord, any: bool) -> Option<&'static str> {
    match (record.data_sampled, record.data_packets, any) {
        (Some(_), ..) => Some(SAMPLES),
        (.., true) => None,
        (_, None, _) => Some("  no captured data is known to be its"),
        _ => Some("  no data of this flow captured in this time"),
    }
}

/// Minimum number of lines for two graphs.
const GRAPHS: u16 = 4;

/// Describes the QP or flow of a row.
pub(super) fn subject(record: &QpRecord, context: &ViewContext<'_>) -> String {
    match (record.qp, record.qp_side, record.flow_label) {
        (Some(qp), Some(QpSide::Sender), _) => format!("QP {qp:#x} at the sender"),
        (Some(qp), Some(QpSide::Receiver), _) => match record.receiver {
            Some(receiver) => format!(
                "QP {qp:#x} at receiver {}",
                context.formatter.address(receiver)
            ),
            None => format!("QP {qp:#x} at the receiver"),
        },
        (Some(qp), None, _) => format!("QP {qp:#x}"),
        (None, _, Some(label)) => format!("flow label {label:#07x}"),
        (None, _, None) => "an unnamed QP".to_owned(),
    }
}

/// Describes the verdict and its evidence.
fn verdict(record: &QpRecord) -> (&'static str, String, Tone) {
    let Some((answer, evidence)) = record.verdict.zip(record.evidence) else {
        return ("Verdict", NO_VERDICT.to_owned(), Tone::Dim);
    };
    let (says, tone) = match answer {
        Answer::Obeys => ("obeys", Tone::Good),
        Answer::DoesNotObey => ("does not obey", Tone::Bad),
        Answer::Unclear => ("unclear", Tone::Dim),
    };
    let measured = fcn_tool::quantity::counted(record.measured, "notification");
    (
        "Verdict",
        format!(
            "{says}: {evidence}{} ({measured} about the flow measured)",
            would_help(record)
        ),
        tone,
    )
}

/// Describes the number of notifications and their rates, over the available periods, which are not
/// longer than the capture.
fn rates(record: &QpRecord, context: &ViewContext<'_>) -> String {
    let shown = context.history.shown();
    let over = |unit: u64| {
        let watched = (shown.now / unit).saturating_sub(shown.since.div_ceil(unit));
        format!("over {} s", (watched.min(10) * unit) as f64 / 1e9)
    };
    let rates = [
        (record.rate_now, "over 0.1 s".to_owned()),
        (record.rate_1s, over(TENTH)),
        (
            record.rate_10s.filter(|_| over(SECOND) != over(TENTH)),
            over(SECOND),
        ),
        (record.rate_mean, "from the first to the last".to_owned()),
        (record.rate_peak, "in the busiest second".to_owned()),
    ];
    // Samples have no peak, and the other rates are estimates like the total.
    let (mark, total) = (estimate(record, "total"), Cell::Count(record.total));
    let rates = rates.into_iter().filter_map(|(rate, name)| {
        let rate = context.formatter.cell(Cell::Rate(rate?));
        Some(format!("{mark}{rate} {name}"))
    });
    let rates: Vec<_> = rates.collect();
    let all = format!("{mark}{} in all", context.formatter.cell(total));
    match rates.as_slice() {
        [] => all,
        rates => format!("{all}; per second: {}", rates.join(", ")),
    }
}

/// Returns everything known, the most important first.
pub(super) fn about(
    id: RowId,
    record: &QpRecord,
    context: &ViewContext<'_>,
) -> Vec<(&'static str, String, Tone)> {
    let words = context.formatter;
    let span = |span: Option<u64>| context.maybe(span, Cell::Span);
    let count = |count: u64| words.cell(Cell::Count(count));
    let series = context.details.rows.get(&id);
    let notifiers = series.map_or(&[][..], |series| &series.notifiers);
    let by = match notifiers {
        // Notifiers that appeared later do not belong to an earlier moment.
        all if all.is_empty() || !context.until_now(series).is_empty() => {
            let more = match record.notifiers.saturating_sub(1) {
                0 => String::new(),
                more if more < NOTIFIERS as u32 => format!(" and {more} more"),
                // Notifiers beyond the limit are not distinguished.
                _ => ", and more".to_owned(),
            };
            words.address(record.notifier) + &more
        }
        all => {
            let mark = estimate(record, "total");
            let each = all.iter().map(|(address, times)| {
                format!("{} ×{mark}{}", words.address(*address), count(*times))
            });
            let more = match record.notifiers as usize > all.len() {
                true => ", and more",
                false => "",
            };
            each.collect::<Vec<_>>().join(", ") + more
        }
    };
    let how = match (record.kind, record.notifier_role) {
        (Kind::Cnp, Origin::Receiver) if record.receiver.is_none() => {
            "the receiver's address, by its kind; its flow is unknown".to_owned()
        }
        (Kind::Cnp, Origin::Receiver) if record.notifiers > 1 => {
            "the receiver's address for most".to_owned()
        }
        (Kind::Cnp, Origin::Receiver) => "the receiver's address".to_owned(),
        (Kind::Cnp, Origin::Ambiguous) => {
            "the receiver's address, but another node was notified just before".to_owned()
        }
        (Kind::Cnp, Origin::Unknown) => "a node that is not the flow's receiver".to_owned(),
        (Kind::Cnp, origin) => format!(
            "{}, inferred from earlier notifications",
            acts_as(origin, None)
        ),
        (kind, origin) => format!("a {}, by the kind {}", acts_as(origin, None), kind.name()),
    };
    let known = |from| match from {
        Some(Resolved::Packet) => " as notified",
        Some(Resolved::Cm) => " inferred from the CM exchange",
        Some(Resolved::Port) => " inferred from the UDP source port",
        Some(Resolved::Acks) => " inferred from acknowledgements",
        Some(Resolved::Only) => ", the only one between the two hosts",
        None => "",
    };
    let qp = |qp: Option<u32>| qp.map_or_else(|| "unknown".to_owned(), |qp| format!("{qp:#x}"));
    let mut lines = vec![
        verdict(record),
        (
            "Notified by",
            format!(
                "{by}: {how}; {} sent to {}",
                kind_name(record.kind),
                words.address(record.destination)
            ),
            Tone::Kind(record.kind),
        ),
        ("Notifications", rates(record, context), Tone::Plain),
    ];
    if let Some(text) = samples(record) {
        lines.push(("Estimated", text, Tone::Plain));
    }
    if let Some((maker, evidence)) = record.made_by.zip(record.made_by_evidence) {
        let who = match maker {
            Maker::Receiver => "the receiver",
            Maker::ReceiverOrImitation => "the receiver, or a switch that imitates it",
            Maker::Network => "a switch, or a proxy or ingress PE notified outside the capture",
            Maker::Proxy => "the proxy",
            Maker::IngressPe => "the ingress PE",
            Maker::Mixed => "the receiver, and others in its name",
            Maker::Unknown => "unknown",
        };
        let evidence = (context.formatter).cell(Cell::Evidence(EvidenceCell::Maker(evidence)));
        lines.push(("Made by", format!("{who}: {evidence}"), Tone::Plain));
    }
    if record.gap_p50.is_some() {
        let gaps = [
            record.gap_min,
            record.gap_p50,
            record.gap_p90,
            record.gap_p99,
        ]
        .map(span);
        let [least, half, ninety, most] = gaps;
        lines.push((
            "Gaps",
            format!("minimum {least}, median {half}, 90 % {ninety}, 99 % {most}"),
            Tone::Plain,
        ));
    }
    if let Some(packets) = record.data_packets {
        let mark = estimate(record, "data_packets");
        let rate = record.data_rate.map_or_else(String::new, |rate| {
            format!("{mark}{}, ", context.formatter.cell(Cell::Bits(rate)))
        });
        lines.push((
            "Data",
            format!(
                "{rate}{mark}{} packets, CE {}",
                count(packets),
                context.maybe(record.ce_share, Cell::Share),
            ),
            Tone::Plain,
        ));
    }
    lines.push((
        "QP",
        format!(
            "{} at the sender{}, {} at the receiver{}",
            qp(record.sender_qp),
            known(record.sender_qp_from),
            qp(record.receiver_qp),
            known(record.receiver_qp_from)
        ),
        Tone::Plain,
    ));
    let now_and_most = |now: Option<u32>, most: Option<u32>, unit| {
        most.map(|most| {
            format!(
                "{}, most {}{unit}",
                now.map_or_else(|| NOTHING.to_owned(), |now| count(now.into())),
                count(most.into())
            )
        })
    };
    let (level, most) = (record.level.map(u32::from), record.level_max.map(u32::from));
    let unit = " in the unit of its IOAM namespace";
    for (name, text) in [
        ("Level", now_and_most(level, most, "")),
        ("Queue", now_and_most(record.queue, record.queue_max, unit)),
    ] {
        lines.extend(text.map(|text| (name, text, Tone::Plain)));
    }
    let is_short = record.last_seen.saturating_sub(record.first_seen) < SECOND;
    let digits = if is_short { 6 } else { 3 };
    let place = record
        .interface
        .as_ref()
        .map_or_else(String::new, |name| format!("on {}, ", words.text(name)));
    lines.push((
        "Seen",
        format!(
            "{place}{} to {}",
            context.clock_before(record.last_seen, record.first_seen, digits),
            context.clock(record.last_seen, digits)
        ),
        Tone::Plain,
    ));
    if let Some(path) = &record.path {
        lines.push(("Path", words.text(path).into_owned(), Tone::Plain));
    }
    if record.findings > 0 || record.icrc_bad > 0 {
        lines.push((
            "Findings",
            format!(
                "{}; ICRC wrong in {}",
                count(record.findings),
                count(record.icrc_bad)
            ),
            Tone::Warn,
        ));
    }
    lines
}

/// Draws the explanation of a row, beside the table.
pub(super) fn panel(
    (id, record): (RowId, &QpRecord),
    frame: &mut Frame<'_>,
    area: Rect,
    context: &ViewContext<'_>,
) {
    let title = format!(
        " {}, {} ",
        flow_text(record, 60, context),
        subject(record, context)
    );
    let area = headed(title, area, frame, context);
    let text = labelled(about(id, record, context), area.width, context);
    let height = fit::cells(text.height());
    let graphs = area.height.saturating_sub(height + 1);
    let graphs = if graphs < GRAPHS { 0 } else { graphs };
    let [text_area, _, graphs] = area.layout(&Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(u16::from(graphs > 0)),
        Constraint::Length(graphs),
    ]));
    tell(text, text_area, frame);
    let Some(series) = context.details.rows.get(&id).filter(|_| !graphs.is_empty()) else {
        return pending(frame, graphs, context);
    };
    if !context.reaches_back(series) {
        let text = context.span("Graphs do not reach back that far", Tone::Dim);
        return frame.render_widget(text, graphs);
    }
    // Notifications above, data below, on one axis.
    let steps = context.steps(series.start, series.step, series.until);
    let window = steps.known(context.window());
    let [notified, data] = graphs.layout(&Layout::vertical([Constraint::Fill(1); 2]));
    let span = series.step as f64;
    let last = context.last(context.window());
    let whole = |values: &[f32]| {
        let values: Vec<_> = values.iter().map(|value| f64::from(*value)).collect();
        let within = steps.within(values.iter().copied(), window);
        (steps.columns(values, window, area.width), within)
    };
    let (mut columns, mut text) = (Vec::new(), SAMPLES.to_owned());
    if record.sampled.is_none() {
        let within;
        (columns, within) = whole(&series.notifications);
        text = format!("  {last}, {}", most_notified(&within, span, context));
    }
    let tone = context.style(Tone::Kind(record.kind));
    graph(
        "Notifications",
        text,
        &columns,
        |_| tone,
        frame,
        notified,
        context,
    );
    let (columns, within) = whole(&series.data);
    let most = most_data(&within, span, None, context);
    let any = columns.iter().any(|octets| *octets > 0.0);
    let text = match no_data(record, any) {
        Some(why) => why.to_owned(),
        None => format!("  {last}, {most}"),
    };
    let tone = context.style(Tone::Plain);
    graph("Data", text, &columns, |_| tone, frame, data, context);
}

/// Formats sender and receiver in `room` cells.
pub(super) fn flow_text(record: &QpRecord, room: u16, context: &ViewContext<'_>) -> String {
    let sender = record.sender.map_or_else(
        || format!("({})", context.formatter.address(record.destination)),
        |sender| context.address(sender),
    );
    let Some(receiver) = record.receiver.map(|receiver| context.address(receiver)) else {
        return shortened(&sender, room).into_owned();
    };
    both(&sender, &receiver, room)
}
