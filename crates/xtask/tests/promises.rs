//! docs/promises.md: every test named there exists, is a test, and is named for only one promise of
//! a table.

use std::collections::BTreeSet;

use xtask::cargo;

/// Returns true if a source has a test with this name.
fn has_test(source: &str, name: &str) -> bool {
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else {
        return false;
    };
    // Only attributes are between its attribute and its name; a property test's arguments follow
    // the name.
    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
    attributes.lines().any(|line| line.trim() == "#[test]")
}

#[test]
fn the_tests_behind_promises_exist() {
    let root = cargo::root().unwrap();
    let text = std::fs::read_to_string(root.join("docs/promises.md")).unwrap();
    let mut promises = 0;
    for section in text.split("\n## ").skip(1) {
        let mut named = BTreeSet::new();
        for line in section.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            if cells[0] == "what" {
                continue;
            }
            promises += 1;
            let (file, name) = cells
                .last()
                .unwrap()
                .split_once(" `")
                .unwrap_or_else(|| panic!("{line}"));
            let name = name.trim_end_matches('`');
            let source = std::fs::read_to_string(root.join(file));
            let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(has_test(&source, name), "{file} has no test {name}");
            assert!(
                named.insert((file.to_owned(), name.to_owned())),
                "{name} stands twice"
            );
        }
    }
    assert!(promises > 40, "{promises}");
}

#[test]
fn functions_without_the_attribute_are_not_tests() {
    let source = "#[test]\nfn one() {}\n\nfn two() {}\n\n    #[test]\n    #[cfg(unix)]\n    fn three(x in any::<u8>()) {}\n";
    assert!(has_test(source, "one") && has_test(source, "three"));
    assert!(!has_test(source, "two") && !has_test(source, "four"));
}
