//! The summary in three sentences, and caveats for the reader.

use super::super::audit::{self, Audited};
use super::super::report::{by_kind, drops, marked};
use super::Story;
use crate::monitor::events::DAMAGED;
use crate::record::{Answer, PointRecord, QpRecord, QpSide};
use crate::tables::Tables;
use crate::text::{self, Formatter, share};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Kind, Origin, Severity};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of warnings about the capture.
const WARNINGS: usize = 10;

/// Identity of a row's flow, the same for all kinds of notifications about it: the sender (or the
/// notified host), the QP and its side, the receiver if the QP is the receiver's, the flow label if
/// there is no QP.
type Subject = (IpAddr, Option<u32>, bool, Option<IpAddr>, Option<u32>);

fn subject(row: &QpRecord) -> Subject {
    let of_sender = row.qp_side == Some(QpSide::Sender);
    (
        row.sender.unwrap_or(row.destination),
        row.qp,
        of_sender,
        row.receiver.filter(|_| !of_sender),
        row.flow_label.filter(|_| row.qp.is_none()),
    )
}

/// Returns the summary: notifications, senders and notifiers; obedience; problems and losses.
pub(super) fn sentences(story: &Story<'_>, formatter: &Formatter) -> Vec<String> {
    let tables = story.tables;
    if tables.totals.packets == 0 {
        return vec![format!("No packet was captured; {}.", losses(tables))];
    }
    // Rows of one flow have one verdict.
    let subjects: BTreeMap<Subject, &QpRecord> = tables
        .qps
        .iter()
        .map(|(_, row)| (subject(row), row))
        .collect();
    let subjects: Vec<&QpRecord> = subjects.into_values().collect();
    vec![
        seen(story, subjects.len() as u64, formatter),
        obeys(tables, &subjects, formatter),
        wrong(story),
    ]
}

fn seen(story: &Story<'_>, subjects: u64, formatter: &Formatter) -> String {
    let tables = story.tables;
    let totals = &tables.totals;
    let span = match tables.span() {
        0 => "At a single time stamp".to_owned(),
        span => format!("In {}", text::span(span)),
    };
    let data = counted(totals.data, "packet") + " of RoCEv2 data" + &marked(totals);
    let notified = totals.notified();
    if notified == 0 {
        let packets = counted(totals.packets, "packet");
        return format!(
            "{span}, no congestion notification was captured in {packets}, with {data}."
        );
    }
    let at_least = |evicted| if evicted > 0 { "at least " } else { "" };
    let by = by(story, at_least(totals.notifiers_evicted), formatter);
    format!(
        "{span}, {} ({}) for {}{} {} captured{by}, with {data}.",
        counted(notified, "congestion notification"),
        by_kind(totals, Kind::name),
        at_least(totals.rows_evicted),
        counted(subjects, "QP or flow").replace("QP or flows", "QPs or flows"),
        if notified == 1 { "was" } else { "were" },
    )
}

/// Describes the notifiers.
fn by(story: &Story<'_>, at_least: &str, formatter: &Formatter) -> String {
    let tables = story.tables;
    let who = |point: &PointRecord| {
        let role = text::acts_as(point.notifier_role, point.made_by);
        // The origin of plain CNPs is unknown from these.
        let is_plain = matches!(point.notifier_role, Origin::Receiver | Origin::Ambiguous);
        let how = match point.made_by.filter(|_| is_plain) {
            Some(_) => "inferred",
            None => "by what it sends",
        };
        format!("from {} ({how}: {role})", formatter.address(point.notifier))
    };
    let most = (tables.points.iter())
        .filter(|point| point.total > 0)
        .max_by_key(|point| (point.total, std::cmp::Reverse(point.notifier)));
    match (most, story.notifiers) {
        (None, _) => String::new(),
        (Some(most), 1) => format!(", {}", who(most)),
        // Others may have sent as many.
        (Some(most), number)
            if (tables.points.iter())
                .filter(|point| point.total == most.total)
                .nth(1)
                .is_some() =>
        {
            format!(", from {at_least}{}", counted(number, "notifier"))
        }
        (Some(most), number) => {
            let part = most.total as f64 / tables.totals.notified().max(1) as f64;
            format!(
                ", from {at_least}{}, {} of them {}",
                counted(number, "notifier"),
                share(part),
                who(most)
            )
        }
    }
}

fn obeys(tables: &Tables, subjects: &[&QpRecord], formatter: &Formatter) -> String {
    if subjects.is_empty() {
        return "Without notifications, whether senders would slow down is unknown.".to_owned();
    }
    let number =
        |answer: Option<Answer>| subjects.iter().filter(|row| row.verdict == answer).count() as u64;
    let (obey, not) = (
        number(Some(Answer::Obeys)),
        number(Some(Answer::DoesNotObey)),
    );
    let (unclear, no_data) = (number(Some(Answer::Unclear)), number(None));
    let mut text = format!(
        "Whether senders slow down is inferred from their data: of {}, {} {}, {} {} not, {} {} unclear",
        counted(subjects.len() as u64, "QP or flow").replace("QP or flows", "QPs or flows"),
        grouped(obey),
        if obey == 1 { "obeys" } else { "obey" },
        grouped(not),
        if not == 1 { "does" } else { "do" },
        grouped(unclear),
        if unclear == 1 { "is" } else { "are" },
    );
    if no_data > 0 {
        text += &format!(
            ", and for {} no captured data is known to be {} (by RDMA CM or acknowledgements)",
            grouped(no_data),
            if no_data == 1 { "its" } else { "theirs" }
        );
    }
    let worst = (tables.qps.iter())
        .map(|(_, row)| row)
        .filter(|row| row.verdict == Some(Answer::DoesNotObey))
        .max_by_key(|row| row.total);
    if let Some((row, sender)) = worst.and_then(|row| Some((row, row.sender?))) {
        let qp = row
            .qp
            .map_or_else(String::new, |qp| format!("QP {qp:#x} of "));
        let estimate = if row.is_estimate("total") {
            "about "
        } else {
            ""
        };
        text += &format!(
            "; of those that do not, {qp}{} was notified most, {estimate}{} by {} from {}{}",
            formatter.address(sender),
            counted(row.total, "time"),
            row.kind.name(),
            formatter.address(row.notifier),
            if row.notifiers > 1 { " and others" } else { "" }
        );
    }
    text + "."
}

fn wrong(story: &Story<'_>) -> String {
    let tables = story.tables;
    let [notes, warnings, errors] = tables.totals.findings;
    let all = notes.saturating_add(warnings).saturating_add(errors);
    let mut text = match all {
        0 => {
            let checked = audit::checked(story.unchecked);
            let unbroken = audited(tables).unbroken();
            format!("N{} ({checked})", unbroken.trim_start_matches('n'))
        }
        all => {
            let each = [(errors, "error"), (warnings, "warning"), (notes, "note")];
            let each: Vec<_> = each.map(|(count, what)| counted(count, what)).into();
            format!(
                "Packets show {} ({})",
                counted(all, "finding"),
                each.join(", ")
            )
        }
    };
    let mut rules: Vec<_> = tables.rules.iter().collect();
    rules.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    // Of several equally frequent rules, none is named.
    if let Some((id, times)) = rules.first()
        && rules.get(1).is_none_or(|(_, next)| next < times)
    {
        text += &format!(", most often {id} ({})", counted(*times, "time"));
    }
    format!("{text}; {}.", losses(tables))
}

/// Describes the losses of the capture, as far as known.
fn losses(tables: &Tables) -> String {
    match tables.dropped() {
        (None, None) => "the input does not report packets lost during capture".to_owned(),
        _ => format!("packets lost during capture: {}", drops(tables)),
    }
}

fn audited(tables: &Tables) -> Audited {
    Audited {
        packets: tables.totals.packets,
        incomplete: tables.totals.incomplete,
        unread: tables.totals.unread,
    }
}

/// Returns the caveats; the table of QPs shows `shown` rows of `matched` that match.
pub(super) fn know(
    story: &Story<'_>,
    (shown, matched): (usize, usize),
    formatter: &Formatter,
) -> Vec<String> {
    let Story {
        header,
        tables,
        course,
        ..
    } = *story;
    let totals = &tables.totals;
    let mut know = Vec::new();
    if header.part.differs() {
        know.push(
            "Display filters for Wireshark do not include all limits of the part analysed: they may match more or less."
                .to_owned(),
        );
    }
    let unfiltered = match (formatter.masks(), story.by_interface) {
        (true, _) => Some("they would contain addresses, which --privacy hides"),
        (_, true) => {
            Some("with --per-interface each counts one capture point, but they would match all")
        }
        _ => None,
    };
    if let Some(why) = unfiltered.filter(|_| shown > 0) {
        know.push(format!("QPs have no display filters for Wireshark: {why}."));
    }
    if let Some(ended) = &header.ended {
        know.push(format!("It ended early: {}.", formatter.text(ended)));
    }
    if let Some(back) = text::stamps_back(totals) {
        let why = match story.is_file {
            true => "clocks may differ, or parts be out of order",
            false => "each interface is read separately",
        };
        know.push(format!("Time stamps {back}: {why}."));
    }
    if let Some(unread) = text::unread(&tables.unread) {
        know.push(format!("Not everything was read: {unread}."));
    }
    // Events of the capture are not findings about a packet.
    let befell = tables.events.iter().filter(|event| !event.is_finding());
    let befell = befell.filter(|event| event.severity > Severity::Note);
    // Already reported as the reason for the early end.
    let befell = befell.filter(|event| event.what != DAMAGED || header.ended.is_none());
    for event in befell.take(WARNINGS) {
        know.push(format!(
            "{} ({}, {}).",
            formatter.text(&event.text),
            event.what,
            counted(event.times, "time")
        ));
    }
    let counts = [
        (
            "Samples of others, which sums count as one each, charts omit, and rows marked ~ are estimated from",
            (totals.samples, "packet"),
        ),
        (
            "Copies from another capture point, counted at the first",
            (totals.copies, "packet"),
        ),
        (
            "Malformed notifications, not counted as notifications",
            (totals.malformed, "packet"),
        ),
        ("Captured too short to decode", (totals.cut, "packet")),
        ("RoCE v1", (totals.roce_v1, "packet")),
        (
            "PAUSE (IEEE 802.3x), which stops all classes",
            (totals.global_pauses, "frame"),
        ),
        (
            "Congestion notification messages of bridges (IEEE 802.1Qau)",
            (totals.cnms, "message"),
        ),
        (
            "Trimmed by switches that would have dropped them",
            (totals.trimmed, "RoCEv2 packet"),
        ),
        ("With a wrong ICRC", (totals.icrc_bad, "notification")),
        (
            "Evicted for lack of room, least recently used first, so display filters may match more than a row counts since it reappeared",
            (totals.rows_evicted, "row"),
        ),
        (
            "Evicted for lack of room, least recently used first",
            (totals.flows_evicted, "data flow"),
        ),
        (
            "Evicted for lack of room, least recently used first",
            (totals.notifiers_evicted, "notifier"),
        ),
    ];
    if let Some(cut) = audited(tables).cut() {
        know.push(format!("N{}.", cut.trim_start_matches('n')));
    }
    if !story.unchecked.is_empty() {
        let each = story.unchecked.chunk_by(|(_, why), (_, next)| why == next);
        let each = each.filter_map(|rules| {
            let (_, why) = rules.first()?;
            let rules: Vec<_> = rules.iter().map(|(rule, _)| rule.info().id).collect();
            Some(format!("{} ({why})", rules.join(", ")))
        });
        let each: Vec<_> = each.collect();
        know.push(format!("Rules not checked: {}.", each.join("; ")));
    }
    for (what, (count, unit)) in counts.into_iter().filter(|(_, (count, _))| *count > 0) {
        know.push(format!("{what}: {}.", counted(count, unit)));
    }
    let has = |is: fn(&QpRecord) -> bool| tables.qps.iter().any(|(_, row)| is(row));
    let by_sender = has(|row| row.qp_side == Some(QpSide::Sender) && row.receiver_qp.is_none());
    if by_sender && has(|row| row.qp_side != Some(QpSide::Sender)) {
        know.push(
            "Some notifications name the sender's QP, some the receiver's or a flow label: if not all names of a flow are known, \
             each counts as a separate QP or flow."
                .to_owned(),
        );
    }
    let all = tables.qps.len();
    if matched < all {
        know.push(format!(
            "The table of QPs has the rows that pass the filter: {} of {}. Sentences and charts cover all.",
            grouped(matched as u64),
            grouped(all as u64)
        ));
    }
    if shown < matched {
        know.push(format!(
            "The table of QPs has {} of {} rows; --top 0 writes all.",
            grouped(shown as u64),
            grouped(matched as u64)
        ));
    }
    for left_out in story.left_out {
        know.push(format!("{}; --json prints all.", formatter.text(left_out)));
    }
    let flows = totals.flows.saturating_add(totals.flows_evicted);
    let told_apart = course.flows.len() as u64;
    if told_apart > 0 && flows > told_apart {
        know.push(format!(
            "Charts show {} of {} data flows separately, by how often they were notified; the others are summed, as is \
             what these sent before they were shown separately.",
            grouped(told_apart),
            grouped(flows)
        ));
    }
    know
}
