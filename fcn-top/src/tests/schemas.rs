//! The part of SCHEMAS.md that is made from the program: columns and metrics.

use super::prometheus;
use crate::record::{
    EventRecord, Holds, HopRecord, InterfaceRecord, PointRecord, QpRecord, Record,
};
use std::fmt::Write as _;

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

/// Columns of every table and the metrics, as Markdown.
#[must_use]
pub fn described() -> String {
    let mut text = "## Columns\n\n".to_owned();
    table::<QpRecord>(&mut text, "rows");
    table::<PointRecord>(&mut text, "points");
    table::<HopRecord>(&mut text, "hops");
    table::<EventRecord>(&mut text, "events");
    table::<InterfaceRecord>(&mut text, "interfaces");
    let _ = write!(text, "## Metrics\n\n{}", prometheus::described());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::json::{AUDIT, INTERVAL, SNAPSHOT, VERSION};
    use crate::output::{Selection, csv, json};
    use crate::tests::sample;
    use crate::text::Words;
    use std::fs;
    use std::path::Path;

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
        let line = json::Intervals::default().line(1, 2, &tables, &selection, &words, true);
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
        for name in [SNAPSHOT, INTERVAL, AUDIT]
            .iter()
            .chain(&csv::INTERVAL_COLUMNS)
            .chain(&csv::DROPPED_COLUMNS)
        {
            assert!(before.contains(name), "{name} is not documented");
        }
        assert!(before.contains(&format!("version {VERSION}")));
    }
}
