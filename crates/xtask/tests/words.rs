//! docs/words.md: the names in it are those of the plugin, fcn-top, its metrics and the ground
//! truth, and each quantity has only one name.

use std::collections::BTreeSet;
use std::fs;
use xtask::cargo;

fn file(path: &str) -> String {
    let path = cargo::root().unwrap().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Wireshark's own names.
const STOCK: [&str; 1] = ["frame.interface_name"];

/// Names that differ between Wireshark and fcn-top, for reasons given on the page.
const APART: [(&str, &str); 3] = [
    ("fcn.rate_before", "data_rate"),
    ("fcn.finding", "what"),
    ("fcn.finding.severity", "severity"),
];

/// Returns the quoted names in `text`, between `open` and `close`.
fn quoted<'a>(text: &'a str, open: &str, close: char) -> BTreeSet<&'a str> {
    let parts = text.split(open).skip(1);
    parts
        .filter_map(|part| part.split_once(close))
        .map(|(name, _)| name)
        .collect()
}

/// Returns the cells of the page's tables: Wireshark, fcn-top, Prometheus, ground truth.
fn rows(page: &str) -> Vec<[Option<&str>; 4]> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    let lines = lines.filter(|line| !line.starts_with("| what |"));
    let cells = lines.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, names @ ..] = <[&str; 5]>::try_from(cells).unwrap_or_else(|_| panic!("{line}"));
        names.map(|cell| {
            let name = cell.strip_prefix('`')?.strip_suffix('`');
            Some(name.unwrap_or_else(|| panic!("{cell}")))
        })
    });
    cells.collect()
}

#[test]
fn one_quantity_has_one_name_in_every_tool() {
    let page = file("docs/words.md");
    let rows = rows(&page);
    assert!(rows.len() > 25, "{}", rows.len());
    let (plugin, schemas, truth) = (
        file("dissector/src/names.rs"),
        file("fcn-top/SCHEMAS.md"),
        file("fcn-gen/TRUTH.md"),
    );
    let (columns, metrics) = schemas.split_once("\n## Metrics\n").unwrap();
    let known: [BTreeSet<&str>; 4] = [
        plugin.split('"').chain(STOCK).collect(),
        quoted(columns, "\n| `", '`'),
        metrics.split('`').collect(),
        truth.split('`').collect(),
    ];
    for row in &rows {
        for (name, known) in row.iter().zip(&known) {
            assert!(
                name.is_none_or(|name| known.contains(name)),
                "{name:?} in {row:?}"
            );
        }
        if let [Some(field), Some(column), ..] = row
            && !STOCK.contains(field)
            && !APART.contains(&(field, column))
        {
            let word = field.rsplit('.').next().unwrap_or(field);
            let word = word.trim_end_matches("_ipv4");
            assert!(column.starts_with(word), "{field} is {column} in fcn-top");
        }
        if let [_, Some(column), _, Some(other)] = row
            && !["interface", "data_rate", "what"].contains(column)
        {
            assert_eq!(column, other, "in the ground truth");
        }
    }
    // A name common to the plugin and to rows and points of fcn-top is in the table.
    let (_, of_rows) = columns.split_once("\n### `rows`\n").unwrap();
    let (of_rows, _) = of_rows.split_once("\n### `hops`\n").unwrap();
    let of_rows = quoted(of_rows, "\n| `", '`');
    let listed: BTreeSet<&str> = rows.iter().filter_map(|[_, column, ..]| *column).collect();
    for field in quoted(&plugin, "\"fcn.", '"') {
        let word = field.trim_end_matches("_ipv4").trim_end_matches("_ipv6");
        let is_column = of_rows.contains(word);
        assert!(!is_column || listed.contains(word), "{word} is not listed");
    }
}
