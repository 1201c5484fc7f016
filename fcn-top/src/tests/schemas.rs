//! The part of SCHEMAS.md that is made from the program: columns and metrics.

use super::sample;
use crate::nic::known::Quantity;
use crate::output::html::STORY;
use crate::output::json::{AUDIT, COUNTERS, INTERVAL, SNAPSHOT, VERSION};
use crate::output::metrics::FAMILIES;
use crate::output::{Selection, csv, json};
use crate::record::{
    CounterRecord, EventRecord, Holds, HopRecord, InterfaceRecord, LocalQpRecord, PointRecord,
    QpRecord, Record,
};
use crate::text::Words;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What a column is in JSON.
const fn json_type(holds: Holds) -> &'static str {
    match holds {
        Holds::Name | Holds::Text => "string",
        Holds::Address => "string, an IP address",
        Holds::Count | Holds::Number | Holds::Qp | Holds::Label => "integer",
        Holds::Rate => "number",
        Holds::Bits => "number, bits a second",
        Holds::Share => "number, 0 to 1",
        Holds::Change => "number, -1 and above",
        Holds::Span => "integer, nanoseconds",
        Holds::Moment => "integer, nanoseconds since the epoch",
    }
}

fn table<R: Record>(text: &mut String, member: &str) {
    let _ = writeln!(
        text,
        "### `{member}`\n\n| Column | Type | Meaning |\n|---|---|---|"
    );
    for column in R::COLUMNS {
        let about = column.about.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | {about} |",
            column.id,
            json_type(column.holds)
        );
    }
    text.push('\n');
}

/// The metrics and what they mean, as a table in Markdown.
fn metrics() -> String {
    let mut text = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n".to_owned();
    for family in FAMILIES {
        let labels: Vec<_> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            family.name,
            family.kind.name(),
            labels.join(", "),
            family.help
        );
    }
    text
}

/// Columns of every table and the metrics, as Markdown.
fn described() -> String {
    let mut text = "## Columns\n\n".to_owned();
    table::<QpRecord>(&mut text, "rows");
    table::<PointRecord>(&mut text, "points");
    table::<HopRecord>(&mut text, "hops");
    table::<EventRecord>(&mut text, "events");
    table::<InterfaceRecord>(&mut text, "interfaces");
    table::<CounterRecord>(&mut text, "counters");
    text += "| `quantity` | |\n|---|---|\n";
    for quantity in Quantity::ALL {
        let _ = writeln!(text, "| `{}` | {} |", quantity.id(), quantity.about());
    }
    text.push('\n');
    table::<LocalQpRecord>(&mut text, "local_qps");
    let _ = write!(text, "## Metrics\n\n{}", metrics());
    text
}

const BEGIN: &str = "<!-- made by the tests with INSTA_UPDATE=always: begin -->\n";
const END: &str = "<!-- made by the tests with INSTA_UPDATE=always: end -->\n";

#[test]
fn the_documentation_has_every_column_and_metric() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("SCHEMAS.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("the beginning of the part made");
    let (made, behind) = rest.split_once(END).expect("its end");
    let wanted = format!("\n{}\n", described());
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&file, format!("{before}{BEGIN}{wanted}{END}{behind}")).unwrap();
    } else {
        assert!(
            made == wanted,
            "SCHEMAS.md is not up to date (INSTA_UPDATE=always writes it)"
        );
    }
    // What was written by hand has the members that there are.
    let (tables, words) = (sample::tables(), Words::default());
    let selection = Selection::default();
    let snapshot = json::snapshot(&tables, &selection, &words);
    let line = json::Intervals::default().line(1, 2, &tables, &selection, &words);
    let snapshot = serde_json::to_value(snapshot).unwrap();
    let line = serde_json::to_value(line).unwrap();
    let totals = snapshot["totals"].as_object().unwrap().keys();
    let members = snapshot.as_object().unwrap().keys();
    for member in members
        .chain(line.as_object().unwrap().keys())
        .chain(totals)
    {
        assert!(
            before.contains(&format!("`{member}`")),
            "{member} is not documented"
        );
    }
    for name in [SNAPSHOT, INTERVAL, AUDIT, COUNTERS, STORY]
        .iter()
        .chain(&csv::INTERVAL_COLUMNS)
        .chain(&csv::DROPPED_COLUMNS)
    {
        assert!(before.contains(name), "{name} is not documented");
    }
    assert!(before.contains(&format!("version {VERSION}")));
}
