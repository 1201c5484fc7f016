//! The view of receivers of marked data: how they answer with CNPs, and how their NICs pace these.

use super::Format;
use super::context::{ViewContext, Written};
use super::hits::DrawContext;
use super::table::{Entry, Key, Schema, Table};
use super::theme::Tone;
use super::views::{TableId, View, draw, headed, labelled, parted, tell};
use crate::record::{Cell, Column, ReceiverRecord, Record};

/// Lines of the panel about the selected receiver, with its title.
const PANEL: u16 = 5;

impl Entry for ReceiverRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "receiver",
        usual: &[
            ("receiver", 0, "receiver"),
            ("marked", 1, "marked"),
            ("expected", 3, "expected"),
            ("cnps", 1, "CNPs"),
            ("answered", 2, "answered"),
            ("silent", 2, "silent"),
            ("delay_p50", 4, "delay"),
            ("paced_by", 5, "paced by"),
            ("gap_qp", 6, "gap QP"),
            ("gap_addresses", 7, "addresses"),
            ("gap_port", 8, "port"),
            ("with_naks", 9, "with NAK"),
        ],
        order: "-marked",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::Receiver(self.receiver)
    }

    fn is_empty(&self, number: usize, column: &'static Column) -> bool {
        column.id == "silent" && !self.silent || self.cell(number) == Cell::None
    }

    fn tone(&self, id: &str) -> Tone {
        match id {
            "silent" | "cnps" | "answered" if self.silent => Tone::Bad,
            _ => Tone::Plain,
        }
    }
}

/// The receivers view.
#[derive(Debug, Default)]
pub(super) struct Receivers;

impl View for Receivers {
    fn table_id(&self) -> TableId {
        TableId::Receivers
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        table.arrange(&context.history.shown().receivers, context);
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let receivers = &context.history.shown().receivers;
        let panel = if canvas.area.height < 2 * PANEL {
            0
        } else {
            PANEL
        };
        let areas = parted(canvas.area, panel);
        let nothing = Some("No data marked CE, and no CNP");
        let Some(receiver) = draw(table, receivers, nothing, canvas, areas, context) else {
            return;
        };
        let title = format!(" {} ", context.formatter.address(receiver.receiver));
        let area = headed(title, areas[1], canvas.frame, context);
        let text = labelled(about(receiver, context), area.width, context);
        tell(text, area, canvas.frame);
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let receivers = &context.history.shown().receivers;
        context.text(table.shown(receivers), format)
    }

    fn about(&self) -> &'static str {
        "Receivers of data marked CE, and what they answer: one CNP is expected for a flow and 50 µs. The gaps \
         between CNPs tell by what the NIC limits them. A silent receiver answers no mark, although other \
         packets from it were captured. Pauses are below the interfaces."
    }
}

/// Returns the details of a receiver.
fn about(
    receiver: &ReceiverRecord,
    context: &ViewContext<'_>,
) -> Vec<(&'static str, String, Tone)> {
    let count = |number| context.formatter.cell(Cell::Count(number));
    let span = |span: Option<u64>| context.maybe(span, Cell::Span);
    let answers = match (receiver.silent, receiver.captured) {
        (true, _) => "none, although other packets from it were captured".to_owned(),
        (false, false) => {
            "no packet from it was captured: perhaps only one direction is".to_owned()
        }
        (false, true) => format!(
            "{} CNPs for {} expected; {} follow no mark",
            count(receiver.cnps),
            count(receiver.expected),
            count(receiver.unprompted)
        ),
    };
    let tone = if receiver.silent {
        Tone::Bad
    } else {
        Tone::Plain
    };
    vec![
        ("Answers", answers, tone),
        (
            "Delay",
            format!(
                "from a mark to its CNP: median {}, 99 % within {}",
                span(receiver.delay_p50),
                span(receiver.delay_p99)
            ),
            Tone::Plain,
        ),
        (
            "Least gaps",
            format!(
                "about one QP {}, to one address {}, to several {}",
                span(receiver.gap_qp),
                span(receiver.gap_addresses),
                span(receiver.gap_port)
            ),
            Tone::Plain,
        ),
    ]
}
