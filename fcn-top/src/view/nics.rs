//! The view of this host's NICs: their counters, compared with captured packets; each device opens
//! to its queue pairs.

use super::Format;
use super::context::{ViewContext, Written};
use super::fit;
use super::hits::DrawContext;
use super::table::{Entry, Key, Schema, Table};
use super::theme::Tone;
use super::views::{OpenTarget, TableId, View, draw, headed, labelled, parted, say};
use crate::nic::known::Quantity;
use crate::record::{CounterRecord, LocalQpRecord};
use ratatui::widgets::Paragraph;
use std::sync::Arc;

impl Entry for CounterRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "counter",
        usual: &[
            ("device", 1, "device"),
            ("counter", 0, "counter"),
            ("quantity", 2, "counts"),
            ("growth", 0, "growth"),
            ("seen", 0, "seen"),
            ("value", 3, "value"),
            ("resets", 4, "resets"),
            ("port", 5, "port"),
            ("interface", 6, "interface"),
            ("qps", 7, "QPs"),
            ("driver", 8, "driver"),
        ],
        order: "device",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        let (device, counter) = (Arc::clone(&self.device), Arc::clone(&self.counter));
        Key::Counter(device, self.port, self.qps.clone(), counter)
    }

    fn tone(&self, id: &str) -> Tone {
        match (id, self.quantity) {
            ("resets", _) if self.resets > 0 => Tone::Warn,
            ("growth", Some(Quantity::CnpIgnored)) if self.growth > Some(0) => Tone::Warn,
            (_, None) => Tone::Dim,
            _ if self.vanished => Tone::Dim,
            _ => Tone::Plain,
        }
    }
}

impl Entry for LocalQpRecord {
    const SCHEMA: &'static Schema = &Schema {
        lines: "QP",
        usual: &[
            ("qp", 0, "QP"),
            ("notified", 1, "notified"),
            ("process", 2, "process"),
            ("pid", 3, "PID"),
            ("container", 4, "container"),
            ("state", 5, "state"),
            ("kind", 6, "type"),
            ("remote_qp", 7, "peer QP"),
            ("device", 8, "device"),
            ("port", 9, "port"),
        ],
        order: "-notified",
        ..Schema::for_record::<Self>()
    };

    fn key(&self) -> Key {
        Key::LocalQp(Arc::clone(&self.device), self.port, self.qp)
    }

    fn tone(&self, id: &str) -> Tone {
        match (id, self.state) {
            ("state", Some("err" | "sqe")) => Tone::Bad,
            _ => Tone::Plain,
        }
    }
}

/// The NICs view.
#[derive(Debug, Default)]
pub(super) struct Nics {
    /// True if queue pairs are shown.
    opened: bool,
}

impl View for Nics {
    fn table_id(&self) -> TableId {
        if self.opened {
            TableId::LocalQps
        } else {
            TableId::Counters
        }
    }

    fn arrange(&mut self, table: &mut Table, context: &ViewContext<'_>) {
        let nics = &context.history.shown().nics;
        if self.opened {
            table.arrange(&nics.local_qps, context);
        } else {
            table.arrange(&nics.counters, context);
        }
    }

    fn draw(
        &mut self,
        table: &mut Table,
        canvas: &mut DrawContext<'_, '_>,
        context: &ViewContext<'_>,
    ) {
        let nics = &context.history.shown().nics;
        let missing = nics
            .missing
            .as_deref()
            .map(|why| context.formatter.text(why));
        let facts = nics.sentences.iter().map(|(port, text)| {
            let text = format!("{port}: {text}");
            ("", context.formatter.text(&text).into_owned(), Tone::Plain)
        });
        let lacks = missing.iter().filter(|_| !nics.counters.is_empty());
        let facts = facts.chain(lacks.map(|why| ("", why.to_string(), Tone::Warn)));
        let text = labelled(facts.collect(), canvas.area.width, context);
        let panel = match (canvas.area.height, text.lines.len()) {
            (0..9, _) | (_, 0) => 0,
            (height, lines) => fit::cells(lines + 1).min(height / 2),
        };
        let areas = parted(canvas.area, panel);
        if panel > 0 {
            let title = " Notifications, and the NIC's reaction ";
            let area = headed(title, areas[1], canvas.frame, context);
            canvas.frame.render_widget(Paragraph::new(text), area);
        }
        if table.all == 0 {
            let nothing = match (&missing, self.opened) {
                (Some(why), _) => why,
                (None, true) => "No process has a queue pair.",
                (None, false) => "No counter has been read yet.",
            };
            say(nothing, areas[0], canvas.frame, context);
        } else if self.opened {
            draw(table, &nics.local_qps, Some(""), canvas, areas, context);
        } else {
            draw(table, &nics.counters, Some(""), canvas, areas, context);
        }
    }

    fn enter(&mut self, _: &mut Table, context: &ViewContext<'_>) -> Option<OpenTarget> {
        self.opened |= !context.history.shown().nics.counters.is_empty();
        None
    }

    fn escape(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    fn text(&self, table: &Table, context: &ViewContext<'_>, format: Format) -> Written {
        let nics = &context.history.shown().nics;
        if self.opened {
            context.text(table.shown(&nics.local_qps), format)
        } else {
            context.text(table.shown(&nics.counters), format)
        }
    }

    fn about(&self) -> &'static str {
        "Counters of this host's RDMA devices, under their drivers' names, and how many of the same were captured on \
         the interface, both since the first reading. Grey: unknown meaning, or vanished. Below, the notifications of each port, and \
         its NIC's reaction. Enter shows the queue pairs, their owners, and how often each was notified."
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        match self.opened {
            true => &[("Esc", "counters"), ("/", "filter"), ("s", "sort")],
            false => &[("Enter", "queue pairs"), ("/", "filter"), ("s", "sort")],
        }
    }
}
