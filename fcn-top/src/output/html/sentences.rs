//! What was seen in three sentences, and what else whoever reads them has to know.

use super::super::report::drops;
use super::Story;
use crate::record::{Answer, PointRecord, QpRecord, QpSide};
use crate::tables::Tables;
use crate::text::{self, Words, share};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Kind, Severity};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most warnings about the capture.
const WARNINGS: usize = 10;

/// What a row is about, the same for all kinds of notifications about one flow: the sender (or else who is told), the QP
/// and whose it is, the receiver where the QP is the receiver's, the flow label where there is no QP.
type Subject = (IpAddr, Option<u32>, bool, Option<IpAddr>, Option<u32>);

fn subject(row: &QpRecord) -> Subject {
    let of_sender = row.qp_side == Some(QpSide::Sender);
    (
        row.sender.unwrap_or(row.told),
        row.qp,
        of_sender,
        row.receiver.filter(|_| !of_sender),
        row.flow_label.filter(|_| row.qp.is_none()),
    )
}

/// What was seen, about whom and by whom; whether they obey; what is wrong, and what was lost.
pub(super) fn sentences(tables: &Tables, words: &Words) -> Vec<String> {
    // Rows of one flow have one verdict.
    let subjects: BTreeMap<Subject, &QpRecord> = tables
        .qps
        .iter()
        .map(|(_, row)| (subject(row), row))
        .collect();
    let subjects: Vec<&QpRecord> = subjects.into_values().collect();
    vec![
        seen(tables, subjects.len() as u64, words),
        obeys(tables, &subjects, words),
        wrong(tables),
    ]
}

fn seen(tables: &Tables, subjects: u64, words: &Words) -> String {
    let totals = &tables.totals;
    if totals.packets == 0 {
        return "No packet was seen.".to_owned();
    }
    let span = text::span(tables.span());
    let mut data = counted(totals.data, "packet") + " of RoCEv2 data";
    if totals.data > 0 {
        data += &format!(
            ", {} of them marked CE",
            share(totals.ce as f64 / totals.data as f64)
        );
    }
    let notified = totals.notified();
    if notified == 0 {
        let packets = counted(totals.packets, "packet");
        return format!(
            "In {span} and {packets} no congestion notification was seen, beside {data}."
        );
    }
    let kinds = Kind::ALL.iter().zip(totals.notifications);
    let kinds: Vec<_> = kinds
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{} {}", kind.id(), grouped(count)))
        .collect();
    let at_least = if totals.rows_evicted > 0 {
        "at least "
    } else {
        ""
    };
    let by = by(tables, words);
    format!(
        "In {span}, {} ({}) for {at_least}{} {} seen{by}, beside {data}.",
        counted(notified, "congestion notification"),
        kinds.join(", "),
        counted(subjects, "QP or flow").replace("QP or flows", "QPs or flows"),
        if notified == 1 { "was" } else { "were" },
    )
}

/// Who notifies.
fn by(tables: &Tables, words: &Words) -> String {
    let who = |point: &PointRecord| {
        // Who made a CNP, its bytes do not tell.
        format!(
            "{} ({} by what it sends)",
            words.address(point.notifier),
            point.notifier_role.id()
        )
    };
    let most = (tables.points.iter())
        .filter(|point| point.total > 0)
        .max_by_key(|point| (point.total, std::cmp::Reverse(point.notifier)));
    let number = tables.points.iter().filter(|point| point.total > 0).count() as u64;
    match (most, number) {
        (None, _) => String::new(),
        (Some(most), 1) => format!(", from {}", who(most)),
        (Some(most), number) => {
            let part = most.total as f64 / tables.totals.notified().max(1) as f64;
            format!(
                ", from {}, {} of them from {}",
                counted(number, "notifier"),
                share(part),
                who(most)
            )
        }
    }
}

fn obeys(tables: &Tables, subjects: &[&QpRecord], words: &Words) -> String {
    if subjects.is_empty() {
        return "Without notifications there is nothing to obey, so nothing is known about whether senders would.".to_owned();
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
        text += &format!(", and of {} no data is known", grouped(no_data));
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
            "; of those that do not, {qp}{} was notified most, {estimate}{} by {}",
            words.address(sender),
            counted(row.total, "time"),
            row.kind.id()
        );
    }
    text + "."
}

fn wrong(tables: &Tables) -> String {
    let [notes, warnings, errors] = tables.totals.findings;
    let all = notes.saturating_add(warnings).saturating_add(errors);
    let mut text = match all {
        0 => "Packets show nothing that breaks a rule of the drafts".to_owned(),
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
    let most = tables
        .rules
        .iter()
        .max_by_key(|(id, times)| (*times, std::cmp::Reverse(*id)));
    if let Some((id, times)) = most {
        text += &format!(", most often {id} ({})", counted(*times, "time"));
    }
    match tables.dropped() {
        (None, None) => {
            format!("{text}; whether packets were lost in capturing, what was read does not say.")
        }
        _ => format!("{text}; packets lost in capturing: {}.", drops(tables)),
    }
}

/// What limits all that is told: the table of QPs has so many rows, of so many that match.
pub(super) fn know(
    story: &Story<'_>,
    (shown, matched): (usize, usize),
    words: &Words,
) -> Vec<String> {
    let Story {
        header,
        tables,
        course,
        ..
    } = *story;
    let totals = &tables.totals;
    let mut know = Vec::new();
    if let Some(ended) = &header.ended {
        know.push(format!("It ended early: {}.", words.text(ended)));
    }
    if let Some(back) = text::stamps_back(totals) {
        know.push(format!(
            "Time stamps {back}: clocks may be apart, or parts out of order. Each packet counts when it says."
        ));
    }
    // What befell the capture is no finding about a packet.
    let befell = tables.events.iter().filter(|event| !event.is_finding());
    let befell = befell.filter(|event| event.severity > Severity::Note);
    for event in befell.take(WARNINGS) {
        know.push(format!(
            "{} ({}, {}).",
            words.text(&event.text),
            event.what,
            counted(event.times, "time")
        ));
    }
    let counts = [
        (
            "Samples of others, which sums count as one each, charts leave out and rows marked ~ are estimated from",
            (totals.samples, "packet"),
        ),
        (
            "Seen again at another place, and counted where seen first",
            (totals.copies, "packet"),
        ),
        (
            "Meant as notifications, but not readable, and counted as none",
            (totals.malformed, "packet"),
        ),
        (
            "Too short in the capture to be read",
            (totals.cut, "packet"),
        ),
        ("With a wrong ICRC", (totals.icrc_bad, "notification")),
        (
            "Used longest ago, and gone for want of room",
            (totals.rows_evicted, "row"),
        ),
        (
            "Used longest ago, and gone for want of room",
            (totals.flows_evicted, "data flow"),
        ),
        (
            "Used longest ago, and gone for want of room",
            (totals.points_evicted, "notifier"),
        ),
    ];
    for (what, (count, unit)) in counts.into_iter().filter(|(_, (count, _))| *count > 0) {
        know.push(format!("{what}: {}.", counted(count, unit)));
    }
    let has = |is: fn(&QpRecord) -> bool| tables.qps.iter().any(|(_, row)| is(row));
    let by_sender = has(|row| row.qp_side == Some(QpSide::Sender) && row.receiver_qp.is_none());
    if by_sender && has(|row| row.qp_side != Some(QpSide::Sender)) {
        know.push(
            "Some notifications name the QP at the sender, some the one at the receiver or a flow label: of a flow whose names \
             are not all known, each counts as a QP or flow of its own."
                .to_owned(),
        );
    }
    let all = tables.qps.len();
    if matched < all {
        know.push(format!(
            "The table of QPs has rows that pass the filter: {} of {}. Sentences and charts are about all.",
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
        know.push(format!("{}; --json prints all.", words.text(left_out)));
    }
    let flows = totals.flows.saturating_add(totals.flows_evicted);
    let told_apart = course.flows.len() as u64;
    if told_apart > 0 && flows > told_apart {
        know.push(format!(
            "Charts tell {} of {} data flows apart, by how often they were notified; what the others sent is summed, as is \
             what these sent before they were told apart.",
            grouped(told_apart),
            grouped(flows)
        ));
    }
    know
}
