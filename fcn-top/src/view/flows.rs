//! The view of flows of data, notified or not, with details of the selected one.

use super::Format;
use super::context::{ViewContext, Written};
use super::hits::DrawContext;
use super::qps::answer;
use super::table::{Entry, Key, Schema, Table, shortened};
use super::theme::Tone;
use super::views::{OpenTarget, TableId, View, draw, headed, labelled, parted, tell};
use crate::record::{Cell, Column, Ecn, FlowRecord, Record};
use crate::text::flow_trouble;

/// Lines of the panel about the selected flow, with its title.
const PANEL: u16 = 7;

impl Entry for FlowRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "flow",
        usual: &[
            ("sender", 0, "sender"),
            ("receiver", 0, "receiver"),
            ("receiver_qp", 1, "QP"),
            ("data_rate", 2, "data rate"),
            ("data_packets", 5, "packets"),
            ("ce_share", 6, "CE"),
            ("ecn", 4, "ECN"),
            ("acks", 9, "ACKs"),
            ("rnr_naks", 7, "RNR"),
            ("nak_sequence", 8, "NAKs"),
            ("resent", 7, "resent"),
            ("stall_max", 3, "stall"),
            ("stall_after", 5, "after"),
            ("stalls", 6, "times"),
            ("tries", 9, "tries"),
            ("rtt_min", 8, "RTT"),
            ("verdict", 4, "verdict"),
        ],
        fixed: 2,
        order: "-stalled",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Flow(self.sender, self.receiver, self.receiver_qp)
    }

    /// Without stalls, those with the most data.
    fn rank(&self, index: usize) -> (u64, u64) {
        (self.data_octets, index as u64)
    }

    fn text(
        &self,
        number: usize,
        column: &'static Column,
        room: u16,
        context: &ViewContext<'_>,
    ) -> String {
        let estimate = if self.is_estimate(column.id) { "~" } else { "" };
        match self.cell(number) {
            _ if column.id == "verdict" && self.verdict.is_some() => {
                answer(self.verdict).0.to_owned()
            }
            // A count of zero is shown as empty.
            Cell::Count(0) if column.id != "receiver_qp" => context.formatter.cell(Cell::None),
            cell => {
                let text = format!("{estimate}{}", context.in_column(column, cell));
                shortened(&text, room).into_owned()
            }
        }
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "verdict" => answer(self.verdict).1,
            "ecn" if self.ecn == Some(Ecn::NotCapable) => Tone::Warn,
            "tries" | "exhausted" if self.exhausted => Tone::Bad,
            "stall_max" | "stall_after" | "stalls" if self.stall_max.is_some() => Tone::Warn,
            _ => Tone::Plain,
        }
    }
}

/// The flows view.
#[derive(Debug, Default)]
pub(super) struct Flows;

impl View for Flows {
    fn table_id(&self) -> TableId {
        TableId::Flows
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().flows, context);
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let flows = &context.history.shown().flows;
        let panel = if canvas.area.height < 2 * PANEL {
            0
        } else {
            PANEL
        };
        let areas = parted(canvas.area, panel);
        let nothing = Some("No RoCEv2 data");
        let Some(flow) = draw(table, flows, nothing, canvas, areas, context) else {
            return;
        };
        let address = |address| context.formatter.address(address);
        let (from, to) = (address(flow.sender), address(flow.receiver));
        let title = format!(" {from} → {to} QP {:#x} ", flow.receiver_qp);
        let area = headed(title, areas[1], canvas.frame, context);
        tell(
            labelled(about(flow, context), area.width, context),
            area,
            canvas.frame,
        );
    }

    fn enter(&mut self, table: &mut Table, context: &ViewContext<'_>) -> Option<OpenTarget> {
        let flow = table.current(&context.history.shown().flows)?;
        let qp = Cell::Count(flow.receiver_qp.into());
        (flow.verdict.is_some()).then_some(OpenTarget::Qps("receiver_qp", qp))
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let flows = &context.history.shown().flows;
        context.text(table.shown(flows), format)
    }

    fn about(&self) -> &'static str {
        "Flows of RoCEv2 data, notified or not, those that stalled longest first: retransmissions, and stalls \
         with what they followed. Acknowledgements count for a flow whose sender's QP is known. A switch \
         cannot mark Not-ECT data. Below, the selected flow; Enter opens its notifications."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Enter", "notifications"),
            ("/", "filter"),
            ("s", "sort"),
            ("c", "columns"),
        ]
    }
}

/// Returns the details of a flow.
fn about(flow: &FlowRecord, context: &ViewContext<'_>) -> Vec<(&'static str, String, Tone)> {
    let count = |count| context.formatter.cell(Cell::Count(count));
    let span = |span: Option<u64>| context.maybe(span, Cell::Span);
    let naks = [
        (flow.rnr_naks, "RNR NAK"),
        (flow.nak_sequence, "NAK for a missing PSN"),
        (flow.nak_invalid_request, "for an invalid request"),
        (flow.nak_remote_access, "for remote access"),
        (flow.nak_remote_operation, "for a remote operation"),
    ];
    let naks = naks.iter().filter(|(number, _)| *number > 0);
    let naks = naks.map(|(number, kind)| format!(", {} {kind}", count(*number)));
    let sender = match (flow.sender_qp, flow.sender_qp_from) {
        (Some(qp), Some(from)) => format!("QP {qp:#x} of the sender, by {}", from.id()),
        _ => "unknown QP of the sender: acknowledgements are not counted".to_owned(),
    };
    let class = |dscp: Option<u8>, priority: Option<u8>| {
        let dscp = dscp.map_or_else(|| "unknown".to_owned(), |dscp| dscp.to_string());
        priority.map_or(format!("DSCP {dscp}"), |pcp| {
            format!("DSCP {dscp}, PCP {pcp}")
        })
    };
    let trouble = flow_trouble(flow);
    let tone = match (&trouble, flow.exhausted) {
        (None, _) => Tone::Plain,
        (Some(_), false) => Tone::Warn,
        (Some(_), true) => Tone::Bad,
    };
    vec![
        ("Stalls", trouble.unwrap_or_else(|| "none".to_owned()), tone),
        (
            "Data",
            format!(
                "{} packets, {} octets; {} resent, {} late, {} Not-ECT; {}",
                count(flow.data_packets),
                count(flow.data_octets),
                count(flow.resent),
                count(flow.late),
                count(flow.not_ect),
                class(flow.data_dscp, flow.data_vlan_priority)
            ),
            Tone::Plain,
        ),
        (
            "Answers",
            format!(
                "{} ACK{}; {}",
                count(flow.acks),
                naks.collect::<String>(),
                class(flow.ack_dscp, flow.ack_vlan_priority)
            ),
            Tone::Plain,
        ),
        (
            "Round trip",
            format!(
                "shortest {}, latest {}",
                span(flow.rtt_min),
                span(flow.rtt_last)
            ),
            Tone::Plain,
        ),
        ("Own end", sender, Tone::Plain),
    ]
}
