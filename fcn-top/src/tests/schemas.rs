//! Checks the generated part of SCHEMAS.md (columns and metrics), and schema.json, the
//! machine-readable form.

use super::sample;
use crate::nic::known::Quantity;
use crate::output::html::STORY;
use crate::output::json::{AUDIT, COUNTERS, INTERVAL, SNAPSHOT, VERSION};
use crate::output::metrics::FAMILIES;
use crate::output::{Selection, csv, json};
use crate::record::{
    CounterRecord, EventRecord, FlowRecord, Holds, HopRecord, InterfaceRecord, LocalQpRecord,
    PauseRecord, PointRecord, QpRecord, ReceiverRecord, Record, TrimmedRecord, UnreadRecord,
};
use crate::text::Formatter;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Returns the description of a column's JSON type.
const fn json_type(holds: Holds) -> &'static str {
    match holds {
        Holds::Name | Holds::Text => "string",
        Holds::Address => "string, an IP address",
        Holds::Count | Holds::Number | Holds::Qp | Holds::Label => "integer",
        Holds::Rate => "number",
        Holds::Bits => "number, bits per second",
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

/// Returns a table of the metrics and their meanings, in Markdown.
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

/// Returns the columns of every table and the metrics, as Markdown.
fn described() -> String {
    let mut text = "## Columns\n\n".to_owned();
    table::<QpRecord>(&mut text, "rows");
    table::<FlowRecord>(&mut text, "flows");
    table::<PointRecord>(&mut text, "notifiers");
    table::<HopRecord>(&mut text, "hops");
    table::<EventRecord>(&mut text, "events");
    table::<InterfaceRecord>(&mut text, "interfaces");
    table::<ReceiverRecord>(&mut text, "receivers");
    table::<PauseRecord>(&mut text, "pauses");
    table::<TrimmedRecord>(&mut text, "trimmed");
    table::<UnreadRecord>(&mut text, "unread");
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
fn the_documentation_lists_every_column_and_metric() {
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
    // The hand-written part documents the existing members.
    let (tables, words) = (sample::tables(), Formatter::default());
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

/// Returns the JSON schema of a column, for validators; `null` if there is no value.
fn schema_of(holds: Holds) -> Value {
    match holds {
        Holds::Name | Holds::Text | Holds::Address => json!({"type": ["string", "null"]}),
        Holds::Count | Holds::Number | Holds::Span | Holds::Moment => {
            json!({"type": ["integer", "null"], "minimum": 0})
        }
        Holds::Qp => json!({"type": ["integer", "null"], "minimum": 0, "maximum": 0x00FF_FFFF}),
        Holds::Label => json!({"type": ["integer", "null"], "minimum": 0, "maximum": 0x000F_FFFF}),
        Holds::Rate | Holds::Bits => json!({"type": ["number", "null"], "minimum": 0}),
        Holds::Share => json!({"type": ["number", "null"], "minimum": 0, "maximum": 1}),
        Holds::Change => json!({"type": ["number", "null"], "minimum": -1}),
    }
}

/// Returns the schema of a list of lines of a table.
fn lines<R: Record>() -> Value {
    let columns = R::COLUMNS.iter().map(|column| {
        let mut schema = schema_of(column.holds);
        schema["description"] = column.about.into();
        (column.id.to_owned(), schema)
    });
    let columns: Map<String, Value> = columns.collect();
    let required: Vec<&String> = columns.keys().collect();
    json!({"type": "array", "items": {"type": "object", "required": required, "properties": columns}})
}

/// Returns the schema of a document, from its current members; those that are tables are taken from
/// `tables`.
fn document(written: &Value, schema: &str, tables: &Map<String, Value>) -> Value {
    let members = written.as_object().unwrap();
    let properties = members.keys().map(|member| {
        let about = match member.as_str() {
            "schema" => json!({"const": schema}),
            "version" => json!({"const": VERSION}),
            table if tables.contains_key(table) => json!({"$ref": format!("#/$defs/{table}")}),
            _ => json!({}),
        };
        (member.clone(), about)
    });
    let properties: Map<String, Value> = properties.collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "required": required, "properties": properties})
}

/// Returns true if a value conforms to the schema of its column.
fn is_allowed(value: &Value, schema: &Value) -> bool {
    let allowed = schema["type"].as_array().unwrap();
    let has = |name: &str| allowed.iter().any(|known| known == name);
    let limit = |name: &str| schema[name].as_f64();
    match value {
        Value::Null => has("null"),
        Value::String(_) => has("string"),
        Value::Number(number) => {
            let value = number.as_f64().unwrap();
            (has("number") || (has("integer") && !number.is_f64()))
                && limit("minimum").is_none_or(|least| value >= least)
                && limit("maximum").is_none_or(|most| value <= most)
        }
        _ => false,
    }
}

#[test]
fn the_schema_matches_the_output() {
    let tables = json!({
        "rows": lines::<QpRecord>(),
        "flows": lines::<FlowRecord>(),
        "notifiers": lines::<PointRecord>(),
        "hops": lines::<HopRecord>(),
        "events": lines::<EventRecord>(),
        "interfaces": lines::<InterfaceRecord>(),
        "receivers": lines::<ReceiverRecord>(),
        "pauses": lines::<PauseRecord>(),
        "trimmed": lines::<TrimmedRecord>(),
        "unread": lines::<UnreadRecord>(),
        "counters": lines::<CounterRecord>(),
        "local_qps": lines::<LocalQpRecord>(),
    });
    let tables = tables.as_object().unwrap();
    let (sample, words, selection) = (sample::tables(), Formatter::default(), Selection::default());
    let snapshot = serde_json::to_value(json::snapshot(&sample, &selection, &words)).unwrap();
    let line = json::Intervals::default().line(1, 2, &sample, &selection, &words);
    let line = serde_json::to_value(line).unwrap();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What fcn-top writes with --json, and in each line of --jsonl",
        "oneOf": [document(&snapshot, SNAPSHOT, tables), document(&line, INTERVAL, tables)],
        "$defs": tables,
    });
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.json");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&file, &text).unwrap();
    }
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(
        written == schema,
        "schema.json is not up to date (INSTA_UPDATE=always writes it)"
    );
    let mut checked = 0;
    for (table, schema) in tables {
        for line in snapshot[table].as_array().unwrap() {
            for (column, schema) in schema["items"]["properties"].as_object().unwrap() {
                let value = line
                    .get(column)
                    .unwrap_or_else(|| panic!("{table} has no {column}"));
                assert!(is_allowed(value, schema), "{table}, {column}: {value}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}
