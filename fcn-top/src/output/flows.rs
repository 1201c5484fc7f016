//! The report's section about data flows, notified or not.

use super::Selection;
use super::lines::{LIST, ROWS, WIDTH, table};
use crate::record::{Cell, FlowRecord, Record, column_named};
use crate::tables::Tables;
use crate::text::{self, Formatter};
use crate::view::fit::wrapped;
use fcn_tool::quantity::{counted, grouped};
use std::fmt::Write as _;

/// Appends the table of the selected flows, if flows are selected, and a sentence about each flow
/// in trouble.
pub(super) fn section(
    out: &mut String,
    tables: &Tables,
    selection: &Selection,
    formatter: &Formatter,
) {
    let selected = selection.or_top(ROWS);
    let (flows, matched) = selected.flows(tables, formatter);
    if selection.of_flows {
        let all = tables.flows.len();
        let _ = match flows.len() < all {
            true => writeln!(
                out,
                "\nFlows of data ({} of {}, {} of them pass the filter)",
                grouped(flows.len() as u64),
                grouped(all as u64),
                grouped(matched as u64)
            ),
            false => writeln!(out, "\nFlows of data"),
        };
        list(out, &flows, formatter);
    }
    let mut troubled: Vec<_> = (flows.iter())
        .filter_map(|flow| Some((*flow, text::flow_trouble(flow)?)))
        .collect();
    if troubled.is_empty() {
        return;
    }
    if !selection.of_flows {
        out.push_str("\nFlows that stalled, or whose sender gave up\n");
    }
    troubled.sort_by_key(|(flow, _)| std::cmp::Reverse((flow.exhausted, flow.stalled)));
    for (flow, trouble) in troubled.iter().take(LIST) {
        let (from, to) = (
            formatter.address(flow.sender),
            formatter.address(flow.receiver),
        );
        let line = format!("{from} → {to} QP {:#x}: {trouble}", flow.receiver_qp);
        let _ = writeln!(out, "{}", wrapped(&line, WIDTH - 2).join("\n  "));
    }
    if troubled.len() > LIST {
        let more = counted((troubled.len() - LIST) as u64, "flow");
        let _ = writeln!(out, "… and {more} more");
    }
}

fn list(out: &mut String, flows: &[&FlowRecord], formatter: &Formatter) {
    let any = |is: fn(&FlowRecord) -> bool, column| match flows.iter().any(|flow| is(flow)) {
        true => column,
        false => "",
    };
    let columns = format!(
        "sender receiver receiver_qp data_packets ce_share ecn acks {} {} {} {} {} {} {} {}",
        any(|flow| flow.rnr_naks > 0, "rnr_naks"),
        any(|flow| flow.nak_sequence > 0, "nak_sequence"),
        any(|flow| flow.nak_invalid_request > 0, "nak_invalid_request"),
        any(|flow| flow.nak_remote_access > 0, "nak_remote_access"),
        any(|flow| flow.nak_remote_operation > 0, "nak_remote_operation"),
        any(|flow| flow.resent > 0, "resent"),
        any(|flow| flow.rtt_min.is_some(), "rtt_min"),
        any(|flow| flow.verdict.is_some(), "verdict"),
    );
    table(out, flows, &columns, formatter, |flow, id| {
        let column = column_named::<FlowRecord>(id).filter(|_| flow.is_estimate(id))?;
        let cell = flow.cell(column);
        (cell != Cell::None).then(|| {
            format!(
                "~{}",
                formatter.in_column(&FlowRecord::COLUMNS[column], cell)
            )
        })
    });
}
