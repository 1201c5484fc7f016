//! The report, for people.

use super::lines::{LIST, ROWS, WIDTH, push, push_close, section, table};
use super::part::Part;
use super::{Selection, bare_table, flows};
use crate::record::column_named;
use crate::record::{
    Cell, CounterRecord, EvidenceCell, INDIRECT, PointRecord, QpRecord, ReceiverRecord, Record,
    Resolved,
};
use crate::tables::{Nics, Tables, Totals};
use crate::text::{self, Formatter, share};
use crate::view::fit::wrapped;
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Kind, Rule};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Facts that are not in the tables.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Input: files and interfaces.
    pub read: Vec<String>,
    /// Part of it that was processed.
    pub part: Part,
    /// Reason for the end, if worth a line.
    pub ended: Option<String>,
}

/// Returns the report on the tables.
pub fn report(
    header: &Header,
    tables: &Tables,
    selection: &Selection,
    formatter: &Formatter,
) -> String {
    let mut out = String::new();
    head(&mut out, header, tables, formatter);
    if tables.totals.notified() == 0 {
        let packets = tables.totals.packets;
        let _ = match packets {
            0 => writeln!(out, "\nNo packet was captured."),
            _ => writeln!(
                out,
                "\nNo congestion notification was captured in {}.",
                counted(packets, "packet")
            ),
        };
    } else {
        rows(&mut out, tables, selection, formatter);
    }
    flows::section(&mut out, tables, selection, formatter);
    // There may be notifiers of which no packet could be decoded.
    if !tables.points.is_empty() {
        notifiers(&mut out, tables, selection, formatter);
    }
    receivers(&mut out, tables, formatter);
    pauses(&mut out, tables, formatter);
    trimmed(&mut out, tables, formatter);
    hops(&mut out, tables, formatter);
    findings(&mut out, tables, formatter);
    let pfc = if tables.totals.pfc > 0 {
        "pfc paused"
    } else {
        ""
    };
    let columns = format!(
        "name state received notifications data {pfc} cut undecodable dropped_kernel dropped_interface"
    );
    section(
        &mut out,
        "Interfaces",
        &tables.interfaces,
        &columns,
        formatter,
    );
    if !tables.nics.counters.is_empty() {
        nics(&mut out, &tables.nics, formatter);
    }
    out
}

/// Reports the counters of RDMA devices, and the owners of their queue pairs.
pub fn nics(out: &mut String, nics: &Nics, formatter: &Formatter) {
    let _ = writeln!(out, "\nNIC counters");
    for (port, sentence) in &nics.sentences {
        let _ = writeln!(out, "{}", formatter.text(&format!("{port}: {sentence}")));
    }
    let (known, others): (Vec<_>, Vec<_>) = nics
        .counters
        .iter()
        .partition(|counter| counter.quantity.is_some());
    let any = |is: fn(&CounterRecord) -> bool, column| match known.iter().any(|one| is(one)) {
        true => column,
        false => "",
    };
    let columns = format!(
        "device port counter quantity {} value {} {} {} {}",
        any(|one| one.qps.is_some(), "qps"),
        any(|one| one.growth.is_some(), "growth"),
        any(|one| one.seen.is_some(), "seen"),
        any(|one| one.resets > 0, "resets"),
        any(|one| one.vanished, "vanished"),
    );
    let shown = known.get(..LIST).unwrap_or(&known);
    table(out, shown, &columns, formatter, |_, _| None);
    let more = known.len() - shown.len() + others.len();
    if more > 0 {
        let _ = writeln!(out, "{} more: see --json", counted(more as u64, "counter"));
    }
    let columns = "device port qp kind state remote_qp pid process container notified";
    let mut pairs = nics.local_qps.clone();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.notified));
    section(out, "Queue pairs of this host", &pairs, columns, formatter);
    if pairs.len() > LIST {
        let more = grouped((pairs.len() - LIST) as u64);
        let _ = writeln!(out, "… and {more} more");
    }
    if let Some(missing) = &nics.missing {
        let _ = writeln!(out, "{}", formatter.text(missing));
    }
}

fn head(out: &mut String, header: &Header, tables: &Tables, formatter: &Formatter) {
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:14}{text}");
    };
    let totals = &tables.totals;
    let sources: Vec<_> = header
        .read
        .iter()
        .map(|source| formatter.text(source))
        .collect();
    if !sources.is_empty() {
        line("read", sources.join(", "));
    }
    if let Some(part) = header.part.words() {
        line("only", formatter.text(&part).into_owned());
    }
    if let Some(ended) = &header.ended {
        line("ended", formatter.text(ended).into_owned());
    }
    if let Some(started) = tables.started {
        let (span, began) = (text::span(tables.span()), formatter.day_and_time(started));
        line("time", format!("{span} from {began}"));
    }
    if let Some(back) = text::stamps_back(totals) {
        line("time stamps", back);
    }
    line(
        "packets",
        format!(
            "{} ({})",
            grouped(totals.packets),
            counted(totals.octets, "octet")
        ),
    );
    let mut notified = grouped(totals.notified());
    if totals.notified() > 0 {
        let _ = write!(notified, ": {}", by_kind(totals, Kind::id));
    }
    line("notifications", notified);
    line("data", counted(totals.data, "packet") + &marked(totals));
    line(
        "others",
        format!(
            "{} decoded, {} captured too short, {} undecodable",
            grouped(totals.other),
            grouped(totals.cut),
            grouped(totals.undecodable)
        ),
    );
    if let Some(unread) = text::unread(&tables.unread) {
        let room = WIDTH - 14;
        line(
            "not read",
            wrapped(&unread, room).join(&format!("\n{:14}", "")),
        );
    }
    if let Some(classes) = text::classes(&tables.flows, tables.qps.iter().map(|(_, row)| row)) {
        let room = WIDTH - 14;
        line(
            "classes",
            wrapped(&classes, room).join(&format!("\n{:14}", "")),
        );
    }
    if totals.roce_v1 > 0 {
        line("RoCE v1", counted(totals.roce_v1, "packet"));
    }
    if totals.global_pauses > 0 {
        let pauses = counted(totals.global_pauses, "frame");
        line(
            "PAUSE",
            format!("{pauses} (IEEE 802.3x), which stop all classes"),
        );
    }
    if totals.cnms > 0 {
        let messages = counted(totals.cnms, "message");
        line("CNM", format!("{messages} of bridges (IEEE 802.1Qau)"));
    }
    if totals.trimmed > 0 {
        let packets = counted(totals.trimmed, "RoCEv2 packet");
        line(
            "trimmed",
            format!("{packets}, cut by switches that would have dropped them"),
        );
    }
    if totals.samples > 0 {
        let samples = counted(totals.samples, "packet");
        line(
            "samples",
            format!("{samples}, each counted as one, except in rows, where ~ marks estimates"),
        );
    }
    if totals.copies > 0 {
        let copies = counted(totals.copies, "packet");
        line(
            "copies",
            format!("{copies}, counted at the first capture point"),
        );
    }
    if totals.malformed > 0 {
        let malformed = counted(totals.malformed, "packet");
        line(
            "malformed",
            format!("{malformed} intended as notifications"),
        );
    }
    let [notes, warnings, errors] = totals.findings;
    line(
        "findings",
        format!(
            "{}, {}, {}",
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(notes, "note")
        ),
    );
    line("drops", drops(tables));
    if totals.icrc_bad > 0 {
        line("wrong ICRC", counted(totals.icrc_bad, "notification"));
    }
    let gone = [
        (totals.rows_evicted, "QP rows"),
        (totals.flows_evicted, "data flows"),
        (totals.notifiers_evicted, "notifiers"),
    ];
    let gone: Vec<_> = gone
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what} {}", grouped(*count)))
        .collect();
    if !gone.is_empty() {
        line(
            "evicted",
            format!("{} (least recently seen)", gone.join(", ")),
        );
    }
}

/// Returns the number of notifications of each kind that occurred, using the names given by `name`.
pub(super) fn by_kind(totals: &Totals, name: fn(Kind) -> &'static str) -> String {
    let kinds = Kind::ALL.iter().zip(totals.notifications);
    let kinds = kinds.filter(|(_, count)| *count > 0);
    let kinds = kinds.map(|(kind, count)| format!("{} {}", name(*kind), grouped(count)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Returns the fraction of data marked CE, if there is data.
pub(super) fn marked(totals: &Totals) -> String {
    match totals.data {
        0 => String::new(),
        data => format!(
            ", {} of them marked CE",
            share(totals.ce as f64 / data as f64)
        ),
    }
}

/// Returns the losses of the capture, as far as recorded.
pub(super) fn drops(tables: &Tables) -> String {
    let (kernel, interface) = tables.dropped();
    let silent = tables
        .interfaces
        .iter()
        .filter(|i| i.dropped_kernel.or(i.dropped_interface).is_none() && i.state != INDIRECT)
        .count();
    match (kernel, interface) {
        (None, None) => "unknown: the input does not report them".to_owned(),
        (kernel, interface) => {
            let number = |count: Option<u64>| count.map_or("unknown".to_owned(), grouped);
            let mut text = format!(
                "by the kernel {}, by the interface {}",
                number(kernel),
                number(interface)
            );
            if silent > 0 {
                let _ = write!(
                    text,
                    "; unknown for {silent} of {}",
                    counted(tables.interfaces.len() as u64, "interface")
                );
            }
            text
        }
    }
}

fn rows(out: &mut String, tables: &Tables, selection: &Selection, formatter: &Formatter) {
    let mut selection = selection.clone();
    let top = *selection.top.get_or_insert(ROWS);
    let selected = selection.apply(tables, formatter);
    let _ = write!(out, "\nNotified senders");
    let _ = match (selected.matched, tables.qps.len()) {
        (matched, all) if matched < all => writeln!(
            out,
            " ({} of {} rows, {} of them pass the filter)",
            selected.rows.len(),
            grouped(all as u64),
            grouped(matched as u64)
        ),
        (_, all) if all > top => writeln!(out, " ({top} of {} rows)", grouped(all as u64)),
        _ => writeln!(out),
    };
    let records: Vec<_> = selected.rows.iter().map(|(_, row)| row).collect();
    let interface = match text::differ_by_place(records.iter().copied()) {
        true => "interface",
        false => "",
    };
    let columns = format!(
        "sender qp kind {interface} notifier total rate_mean rate_peak gap_p50 ce_share measured verdict"
    );
    let about = |row: &QpRecord, id: &str| match (id, row.qp, row.flow_label) {
        // A WAN FCN names no QP; if the flow was not captured, only the notified host is known.
        ("qp", None, Some(label)) => Some(format!("fl {label:#07x}")),
        ("notifier", ..) => {
            let more = text::more_notifiers(row)?;
            Some(format!("{}\n{more}", formatter.address(row.notifier)))
        }
        ("sender", ..) if row.sender.is_none() => {
            Some(format!("→ {}", formatter.address(row.destination)))
        }
        _ if row.is_estimate(id) => {
            let number = column_named::<QpRecord>(id)?;
            let column = QpRecord::COLUMNS.get(number)?;
            let text = formatter.of_row(row, column, row.cell(number));
            (row.cell(number) != Cell::None).then_some(text)
        }
        _ => None,
    };
    table(out, &records, &columns, formatter, about);
    let named = |row: &QpRecord| match (row.qp, row.flow_label) {
        (Some(qp), _) => match row.sender_qp_from {
            Some(from) if from != Resolved::Packet => format!("{qp:#x} (by {})", from.id()),
            _ => format!("{qp:#x}"),
        },
        (None, label) => format!("fl {:#07x}", label.unwrap_or(0)),
    };
    if let Some(why) = text::mean_and_peak(records.iter().copied()) {
        let _ = writeln!(out, "{why}");
    }
    for row in &records {
        if let Some(text) = text::samples(row) {
            let place = row.interface.as_deref().map(|name| formatter.text(name));
            let place = place.map_or_else(String::new, |name| format!(" on {name}"));
            let _ = writeln!(out, "{} {}{place}: {text}", named(row), row.kind.id());
        }
    }
    // A flow has one verdict, for all kinds of notifications.
    let mut flows = HashSet::new();
    let once = records.iter().filter(|row| {
        let flow = (row.sender, row.receiver, row.qp, row.flow_label);
        row.qp.is_none() || flows.insert(flow)
    });
    for row in once {
        if let Some((verdict, evidence)) = row.verdict.zip(row.evidence) {
            let (subject, help) = (named(row), text::would_help(row));
            let line = format!("{subject} {}: {evidence}{help}", verdict.id());
            let _ = writeln!(out, "{}", wrapped(&line, WIDTH - 2).join("\n  "));
        }
    }
    makers(out, &records, formatter);
}

/// Lists the origins of the CNPs of these rows, merging rows with the same notifier and origin.
fn makers(out: &mut String, records: &[&QpRecord], formatter: &Formatter) {
    let mut lines: Vec<(String, &str, String, u64)> = Vec::new();
    for row in records {
        let Some((maker, evidence)) = row.made_by.zip(row.made_by_evidence) else {
            continue;
        };
        let more = text::more_notifiers(row).map_or_else(String::new, |more| format!("\n{more}"));
        let notifier = formatter.address(row.notifier) + &more;
        let evidence = formatter.cell(Cell::Evidence(EvidenceCell::Maker(evidence)));
        let maker = maker.id();
        let is_same = |line: &&mut (String, &str, String, u64)| {
            (&line.0, line.1, &line.2) == (&notifier, maker, &evidence)
        };
        match lines.iter_mut().find(is_same) {
            Some((.., rows)) => *rows += 1,
            None => lines.push((notifier, maker, evidence, 1)),
        }
    }
    if lines.is_empty() {
        return;
    }
    out.push_str("\nOrigin of the CNPs, inferred\n");
    let mut table = bare_table(["Notifier", "Origin", "Rows", "Evidence"], &[2]);
    for (notifier, maker, evidence, rows) in lines {
        table.add_row([notifier, maker.replace('_', " "), grouped(rows), evidence]);
    }
    push_close(out, table);
}

fn notifiers(out: &mut String, tables: &Tables, selection: &Selection, formatter: &Formatter) {
    let mut points: Vec<_> = tables.points.iter().collect();
    points.sort_by(|a, b| b.total.cmp(&a.total).then(a.notifier.cmp(&b.notifier)));
    let top = selection.top.unwrap_or(ROWS);
    let all = points.len();
    points.truncate(top);
    let _ = match all > top {
        true => writeln!(out, "\nNotifiers ({top} of {})", grouped(all as u64)),
        false => writeln!(out, "\nNotifiers"),
    };
    let any = |is: fn(&PointRecord) -> bool, column| match points.iter().any(|point| is(point)) {
        true => column,
        false => "",
    };
    let trusted = any(|point| point.trusted.is_some(), "trusted");
    let malformed = any(|point| point.malformed > 0, "malformed");
    let samples = any(|point| point.samples > 0, "samples");
    let columns = format!(
        "notifier notifier_role {trusted} flows total {samples} rate_peak level_max queue_max {malformed} findings"
    );
    table(out, &points, &columns, formatter, |point, id| match id {
        "notifier_role" => Some(text::acts_as(point.notifier_role, point.made_by).to_owned()),
        "flows" => text::flows_unclear(point),
        _ => None,
    });
}

fn receivers(out: &mut String, tables: &Tables, formatter: &Formatter) {
    let any = |is: fn(&ReceiverRecord) -> bool, column| match tables.receivers.iter().any(is) {
        true => column,
        false => "",
    };
    let columns = format!(
        "receiver marked expected cnps answered {} delay_p50 delay_p99 {} gap_qp {} {} {}",
        any(|one| one.silent, "silent"),
        any(|one| one.paced_by.is_some(), "paced_by"),
        any(|one| one.gap_addresses.is_some(), "gap_addresses"),
        any(|one| one.gap_port.is_some(), "gap_port"),
        any(|one| one.with_naks > 0, "with_naks"),
    );
    section(out, "Receivers", &tables.receivers, &columns, formatter);
}

fn pauses(out: &mut String, tables: &Tables, formatter: &Formatter) {
    let several = tables.interfaces.len() > 1;
    let columns = format!(
        "{} mac class frames paused share episodes resumed timed_out longest storm",
        if several { "interface" } else { "" },
    );
    section(out, "Pauses", &tables.pauses, &columns, formatter);
}

fn trimmed(out: &mut String, tables: &Tables, formatter: &Formatter) {
    let unknown = tables.trimmed.iter().any(|flow| flow.unknown > 0);
    let columns = format!(
        "{} sender receiver receiver_qp to_receiver to_source {}",
        if tables.interfaces.len() > 1 {
            "interface"
        } else {
            ""
        },
        if unknown { "unknown" } else { "" },
    );
    section(out, "Trimmed packets", &tables.trimmed, &columns, formatter);
}

fn hops(out: &mut String, tables: &Tables, formatter: &Formatter) {
    let shown = tables.hops.get(..LIST).unwrap_or(&tables.hops);
    let title = "Paths from IOAM traces";
    let columns =
        "path hop node traces ingress egress queue_mean queue_max delay delay_max between";
    section(out, title, shown, columns, formatter);
    if tables.hops.len() > shown.len() {
        let more = grouped((tables.hops.len() - shown.len()) as u64);
        let _ = writeln!(out, "… and {more} more hops");
    }
}

fn findings(out: &mut String, tables: &Tables, formatter: &Formatter) {
    out.push_str("\nFindings and capture events\n");
    if tables.rules.is_empty() && tables.events.is_empty() {
        out.push_str("none\n");
        return;
    }
    let mut table = bare_table(["times", "first", "severity", "what", ""], &[0]);
    let rule = |id: &str| {
        let mut rules = Rule::ALL.iter().map(|rule| rule.info());
        rules.find(|info| info.id == id)
    };
    let broken = tables.rules.iter();
    let mut found: Vec<_> = broken
        .map(|(id, times)| (rule(id).map(|info| info.severity), *id, *times))
        .collect();
    // Other events are only in the log: those with the same identifier and severity are merged.
    let rules = found.len();
    for event in &tables.events {
        let kind = (Some(event.severity), event.what);
        let mut all = found.iter_mut().enumerate();
        match all.find(|(_, (severity, id, _))| (*severity, *id) == kind) {
            Some((at, (.., times))) if at >= rules => *times = times.saturating_add(event.times),
            Some(_) => {}
            None => found.push((kind.0, kind.1, event.times)),
        }
    }
    let mut lines: Vec<_> = found
        .into_iter()
        .map(|(severity, id, times)| {
            let mut events = tables.events.iter();
            let logged = events.find(|event| (Some(event.severity), event.what) == (severity, id));
            let text = match (rule(id), logged) {
                (Some(info), _) => info.text.into(),
                // For other events, the log's first text says most.
                (None, Some(event)) => formatter.text(&event.text),
                (None, None) => "".into(),
            };
            let frame = logged.and_then(|event| event.frame);
            (severity, times, id, frame, text)
        })
        .collect();
    lines.sort_by_key(|(severity, times, ..)| std::cmp::Reverse((*severity, *times)));
    for (severity, times, id, frame, text) in lines.into_iter().take(LIST) {
        table.add_row([
            grouped(times),
            frame.map_or_else(String::new, |frame| format!("frame {frame}")),
            severity.map_or("", |severity| severity.id()).to_owned(),
            id.to_owned(),
            text.into_owned(),
        ]);
    }
    push(out, table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::record::FlowRecord;
    use crate::tests::sample;
    use insta::assert_snapshot;

    fn header() -> Header {
        Header {
            read: vec!["captures/incast\x1b.pcapng".to_owned()],
            ..Header::default()
        }
    }

    #[test]
    fn a_report_matches_its_snapshot() {
        let formatter = Formatter::default();
        let text = report(
            &header(),
            &sample::tables(),
            &Selection::default(),
            &formatter,
        );
        assert_snapshot!("report", text);
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(WIDTH), "{line}");
        }
        let selection = Selection {
            filter: Filter::parse::<QpRecord>("kind=cnp or kind=proxy_cn").unwrap(),
            top: Some(1),
            ..Selection::default()
        };
        let text = report(&header(), &sample::tables(), &selection, &formatter);
        assert!(
            text.contains("(1 of 4 rows, 2 of them pass the filter)"),
            "{text}"
        );
        assert!(text.contains("Notifiers (1 of 2)"), "{text}");
    }

    #[test]
    fn a_report_of_flows_matches_its_snapshot() {
        let formatter = Formatter::default();
        let selection = Selection {
            of_flows: true,
            ..Selection::default()
        };
        let tables = sample::tables();
        let text = report(&header(), &tables, &selection, &formatter);
        let (_, flows) = text.split_once("\nFlows of data").unwrap();
        let (flows, _) = flows.split_once("\n\n").unwrap();
        assert_snapshot!("report-flows", flows);
        let filtered = Selection {
            filter: Filter::parse::<FlowRecord>("rnr_naks>0").unwrap(),
            ..selection
        };
        let text = report(&header(), &tables, &filtered, &formatter);
        assert!(
            text.contains("Flows of data (1 of 2, 1 of them pass the filter)"),
            "{text}"
        );
        // The filter is not one of the rows.
        assert!(text.contains("\nNotified senders\n"), "{text}");
    }

    #[test]
    fn an_unknown_number_of_flows_is_not_zero() {
        let mut tables = sample::tables();
        tables.points.truncate(1);
        tables.points[0].flows = 0;
        let formatter = Formatter::default();
        let text = report(&header(), &tables, &Selection::default(), &formatter);
        let (_, told) = text.split_once("\nNotifiers\n").unwrap();
        let line = told.lines().find(|line| line.contains("2001:db8:ffff::1"));
        assert!(line.unwrap().contains(" ? "), "{told}");
    }

    #[test]
    fn an_empty_report_states_what_is_missing() {
        let formatter = Formatter::default();
        let text = report(
            &header(),
            &super::super::tests::nothing(),
            &Selection::default(),
            &formatter,
        );
        assert_snapshot!("report-nothing", text);
        assert!(
            text.contains("No congestion notification was captured in 1,234 packets."),
            "{text}"
        );
        let text = report(
            &header(),
            &Tables::default(),
            &Selection::default(),
            &formatter,
        );
        assert!(text.contains("No packet was captured."), "{text}");
        assert!(text.contains("unknown"), "{text}");
    }

    #[test]
    fn a_report_has_no_control_characters() {
        let text = report(
            &header(),
            &sample::tables(),
            &Selection::default(),
            &Formatter::default(),
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    }
}
