//! What is known of one QP row, as labels and values, the most important first; and whether it obeys, in words.

use super::draw::Look;
use super::line::{change_tone, verdict_tone};
use super::theme::Tone;
use crate::record::{Answer, Cell, QpRecord, QpSide, Resolved};
use crate::text::{NOTHING, Words};

/// A label, what stands behind it, and what that is to the reader.
pub(super) struct Fact {
    pub label: &'static str,
    pub value: String,
    pub tone: Tone,
}

fn fact(label: &'static str, value: String, tone: Tone) -> Fact {
    Fact { label, value, tone }
}

/// Several values of one fact; one sign for nothing where there is none of them.
fn several<const N: usize>(values: [String; N]) -> String {
    if values.iter().all(|value| value == NOTHING) {
        NOTHING.to_owned()
    } else {
        values.join(", ")
    }
}

/// The QP or flow that the row is about, in words.
pub(super) fn subject(record: &QpRecord, words: &Words) -> String {
    match (record.qp, record.qp_side, record.flow_label) {
        (Some(qp), Some(QpSide::Sender), _) => format!("QP {qp:#x} at the sender"),
        (Some(qp), Some(QpSide::Receiver), _) => match record.receiver {
            Some(receiver) => format!("QP {qp:#x} at receiver {}", words.address(receiver)),
            None => format!("QP {qp:#x} at the receiver"),
        },
        (Some(qp), None, _) => format!("QP {qp:#x}"),
        (None, _, Some(label)) => format!("flow label {label:#07x}"),
        (None, _, None) => "a QP that is not named".to_owned(),
    }
}

/// Who and what: the left column.
pub(super) fn who(record: &QpRecord, look: Look<'_>) -> Vec<Fact> {
    let words = look.words;
    let address =
        |address: Option<_>| address.map_or_else(|| "not known".to_owned(), |at| words.address(at));
    let known =
        |qp: Option<u32>| qp.map_or_else(|| "not known".to_owned(), |qp| format!("{qp:#x}"));
    let from = match record.sender_qp_from {
        Some(Resolved::Packet) => ", as notified",
        Some(Resolved::Cm) => ", by the CM exchange",
        Some(Resolved::Acks) => ", by the acknowledgements",
        None => "",
    };
    let mut facts = vec![
        fact("Sender", address(record.sender), Tone::Accent),
        fact(
            "QP at sender",
            format!("{}{from}", known(record.sender_qp)),
            Tone::Plain,
        ),
        fact("Receiver", address(record.receiver), Tone::Plain),
        fact("QP at receiver", known(record.receiver_qp), Tone::Plain),
        fact("Told", words.address(record.told), Tone::Plain),
        fact(
            "How",
            format!("{} from a {}", record.kind.id(), record.origin.id()),
            Tone::Plain,
        ),
    ];
    if let Some(label) = record.flow_label {
        facts.push(fact("Flow label", format!("{label:#07x}"), Tone::Plain));
    }
    if let Some(interface) = &record.interface {
        facts.push(fact("Interface", interface.to_string(), Tone::Plain));
    }
    facts.push(fact(
        "First",
        words.cell(Cell::Moment(record.first_seen)),
        Tone::Plain,
    ));
    facts.push(fact(
        "Last",
        words.cell(Cell::Moment(record.last_seen)),
        Tone::Plain,
    ));
    facts.push(fact(
        "ICRC wrong",
        record.icrc_bad.to_string(),
        if record.icrc_bad > 0 {
            Tone::Bad
        } else {
            Tone::Plain
        },
    ));
    facts.push(fact(
        "Findings",
        record.findings.to_string(),
        if record.findings > 0 {
            Tone::Warn
        } else {
            Tone::Plain
        },
    ));
    facts
}

/// How often and how much: the right column.
pub(super) fn how_much(record: &QpRecord, look: Look<'_>) -> Vec<Fact> {
    let words = look.words;
    let maybe = |cell: Option<Cell<'_>>| words.cell(cell.unwrap_or(Cell::None));
    let count = |count: Option<u32>| maybe(count.map(|count| Cell::Count(count.into())));
    let span = |span: Option<u64>| maybe(span.map(Cell::Span));
    vec![
        fact(
            "Rate now, 1 s, 10 s",
            [record.rate_now, record.rate_1s, record.rate_10s]
                .map(|rate| maybe(rate.map(Cell::Rate)))
                .join(", "),
            Tone::Plain,
        ),
        fact(
            "Mean, peak, total",
            format!(
                "{}, {}, {}",
                maybe(record.rate_mean.map(Cell::Rate)),
                words.cell(Cell::Rate(record.rate_peak)),
                words.cell(Cell::Count(record.total))
            ),
            Tone::Plain,
        ),
        fact(
            "Data rate now",
            maybe(record.data_rate.map(Cell::Bits)),
            Tone::Plain,
        ),
        fact(
            "Change 1 ms",
            maybe(record.change_1ms.map(Cell::Change)),
            change_tone(record.change_1ms),
        ),
        fact(
            "Change 10 ms",
            maybe(record.change_10ms.map(Cell::Change)),
            change_tone(record.change_10ms),
        ),
        fact(
            "CE share of data",
            maybe(record.ce_share.map(Cell::Share)),
            Tone::Plain,
        ),
        fact(
            "Queue now, deepest",
            several([count(record.queue), count(record.queue_max)]),
            Tone::Plain,
        ),
        fact(
            "Level now, highest",
            {
                let level = |level: Option<u8>| count(level.map(u32::from));
                several([level(record.level), level(record.level_max)])
            },
            Tone::Plain,
        ),
        fact(
            "Gap least, half",
            several([span(record.gap_min), span(record.gap_p50)]),
            Tone::Plain,
        ),
        fact(
            "Gap 90 %, 99 %",
            several([span(record.gap_p90), span(record.gap_p99)]),
            Tone::Plain,
        ),
        fact(
            "Data packets",
            maybe(record.data_packets.map(Cell::Count)),
            Tone::Plain,
        ),
    ]
}

/// Whether it obeys, in words.
pub(super) fn verdict(record: &QpRecord) -> (String, Tone) {
    let (Some(answer), Some(evidence)) = (record.verdict, record.evidence) else {
        let text = "Whether it obeys is not known: no data of it was seen";
        return (text.to_owned(), Tone::Dim);
    };
    let says = match answer {
        Answer::Obeys => "Obeys",
        Answer::DoesNotObey => "Does not obey",
        Answer::Unclear => "Unclear whether it obeys",
    };
    let text = format!("{says} ({} measured): {evidence}", record.measured);
    (text, verdict_tone(Some(answer)))
}
