//! The Wireshark profile, tested with the real tshark and this build of the plugin: every field,
//! filter, column and colour in it exists and matches something.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use xtask::tshark::Tshark;
use xtask::{captures, packages, process, profile};

/// Returns tshark with the plugin and the profile; `None`, with a message, if the plugin cannot be
/// built.
fn ready() -> Option<Tshark> {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("the profile needs {}", packages::describe(&lacking));
        return None;
    }
    let tshark = Tshark::with_this_plugin(false).unwrap();
    tshark
        .add_profile(&profile::source().unwrap(), profile::NAME)
        .unwrap();
    Some(tshark)
}

fn file(name: &str) -> String {
    std::fs::read_to_string(profile::source().unwrap().join(name)).unwrap()
}

/// Returns the committed captures whose names begin with `beginning`.
fn samples(beginning: &str) -> Vec<PathBuf> {
    let folder: PathBuf = captures::folder().unwrap();
    let mut files: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "pcapng"))
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(beginning)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no capture {beginning}");
    files
}

/// Returns the quoted texts in a line of one of Wireshark's tables.
fn columns(line: &str) -> Vec<String> {
    let line = line.trim().trim_matches('"');
    let columns = line.split("\",\"");
    columns.map(|text| text.replace("\\x22", "\"")).collect()
}

fn table(name: &str) -> Vec<Vec<String>> {
    let text = file(name);
    let lines = text.lines().filter(|line| line.starts_with('"'));
    lines.map(columns).collect()
}

/// Returns name and filter of every colouring rule.
fn colours() -> Vec<(String, String)> {
    let text = file("colorfilters");
    let lines = text.lines().filter(|line| line.starts_with('@'));
    let rules = lines.map(|line| {
        let (name, rest) = line[1..].split_once('@').unwrap();
        let (filter, _) = rest.rsplit_once('@').unwrap();
        (name.to_owned(), filter.to_owned())
    });
    rules.collect()
}

/// Returns every filter of the profile, with the name of its owner.
fn filters() -> Vec<(String, String)> {
    let mut all = colours();
    for line in table("dfilter_buttons") {
        let [_, label, filter, tooltip] = line.try_into().unwrap();
        assert!(!tooltip.is_empty(), "{label} has no tooltip");
        all.push((label, filter));
    }
    for line in table("io_graphs") {
        let [_, name, filter, _, _, _, field, _, _] = line.try_into().unwrap();
        if !field.is_empty() {
            all.push((name.clone(), field));
        }
        all.push((name, filter));
    }
    all
}

#[test]
fn every_filter_is_valid_and_every_field_exists() {
    let Some(tshark) = ready() else {
        return;
    };
    let fields = process::stdout(tshark.command().args(["-G", "fields"])).unwrap();
    let fields: BTreeSet<&str> = fields
        .lines()
        .filter_map(|line| line.split('\t').nth(2))
        .collect();
    // All in one statistic, which separates them by commas.
    let mut statistic = "io,stat,0".to_owned();
    for (name, filter) in filters() {
        assert!(!filter.contains(','), "{name}: {filter}");
        statistic += &format!(",{filter}");
        // A filter with an unknown field is refused; the name of a whole protocol may be ours, too.
        let ours = filter
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
            .filter(|word| word.starts_with("fcn") || word.starts_with("rocev2"));
        for word in ours {
            assert!(fields.contains(word), "{name}: {word}");
        }
    }
    let capture = &samples("formats-cnp")[0];
    let arguments = ["-C", profile::NAME, "-q", "-z", &statistic];
    let output = tshark.run(capture, &arguments).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let text = file("preferences");
    let custom = text.lines().filter_map(|line| line.split_once("%Cus:"));
    let mut count = 0;
    for (title, column) in custom {
        let (names, _) = column.split_once(':').unwrap();
        for name in names.split(" or ") {
            assert!(fields.contains(name), "{title}: {name}");
            count += 1;
        }
    }
    assert!(count > 8, "{count} fields in columns");
}

/// A capture in which each colour appears.
const SEEN: &[(&str, &str)] = &[
    ("Bad ICRC", "malformed-cnp"),
    ("Breaks a rule of a draft", "malformed-fast-cnp"),
    ("Departs from a recommendation", "malformed-cnp"),
    (
        "Sender answers that it does not know Fast CNP",
        "formats-unaware-sender",
    ),
    ("Note", "malformed-ioam"),
    ("Fast CNP (option 1)", "fast-cnp."),
    ("Fast CNP (option 2)", "fast-cnp-ioam-incremental"),
    ("Proxy notification", "proxy-config"),
    ("WAN FCN", "wan-fcn-vxlan"),
    ("CNP", "receiver-cnp-ipv4"),
    ("Pause (PFC)", "pfc"),
    ("Marked CE", "receiver-cnp-ipv4"),
    (
        "Connection set up or taken down (RDMA CM)",
        "formats-rdma-cm",
    ),
    ("RoCEv2", "incast"),
    ("Routing", "proxy-isis"),
    ("UDP", "formats-cut"),
];

/// Wireshark uses the first rule that matches; a rule that is never reached is useless.
#[test]
fn every_colour_appears_in_a_sample_capture() {
    let Some(tshark) = ready() else {
        return;
    };
    let mut earlier = String::new();
    for (name, filter) in colours() {
        let seen = SEEN.iter().find(|(rule, _)| *rule == name);
        let (_, capture) = seen.unwrap_or_else(|| panic!("where is {name} seen?"));
        let first = format!("({filter}){earlier}");
        let arguments = ["-C", profile::NAME, "-Y", &first];
        let shown = tshark.decode(&samples(capture)[0], &arguments).unwrap();
        assert!(!shown.is_empty(), "{name} is not seen in {capture}");
        earlier += &format!(" && !({filter})");
    }
}

/// Returns the titles of the visible columns, in their order, and of those that are filled in the
/// packets that match `filter`.
fn filled(
    tshark: &Tshark,
    capture: &Path,
    filter: &str,
    options: &[&str],
) -> (Vec<String>, BTreeSet<String>) {
    let arguments = ["-C", profile::NAME, "-T", "psml", "-Y", filter];
    let output = tshark
        .run(capture, &[&arguments, options].concat())
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let sections = |part: &str| -> Vec<String> {
        let parts = part.split("<section>").skip(1);
        let parts = parts.map(|part| part.split("</section>").next().unwrap_or_default());
        parts.map(str::to_owned).collect()
    };
    let (head, packets) = text.split_once("</structure>").unwrap();
    let titles = sections(head);
    let mut filled = BTreeSet::new();
    for packet in packets.split("<packet>").skip(1) {
        let values = sections(packet);
        assert_eq!(values.len(), titles.len());
        let some = titles
            .iter()
            .zip(values)
            .filter(|(_, value)| !value.is_empty());
        filled.extend(some.map(|(title, _)| title.clone()));
    }
    (titles, filled)
}

/// Columns that fit a screen of 1366 pixels.
const SHOWN: [&str; 8] = [
    "No.",
    "Time",
    "Source",
    "Destination",
    "Protocol",
    "Kind",
    "QP",
    "Info",
];

#[test]
fn columns_fit_the_screen_and_use_names_of_kinds() {
    let Some(tshark) = ready() else {
        return;
    };
    let capture = &samples("fast-cnp.")[0];
    let (titles, filled) = filled(&tshark, capture, "fastcnp", &[]);
    assert_eq!(titles, SHOWN);
    assert_eq!(filled, SHOWN.map(str::to_owned).into());
    let lines = tshark
        .decode(capture, &["-C", profile::NAME, "-Y", "fastcnp"])
        .unwrap();
    assert!(
        lines
            .lines()
            .all(|line| line.contains("Fast CNP (option 1)"))
    );
    let text = file("recent");
    let widths = text.lines().filter_map(|line| line.trim().split_once(", "));
    let mut widths = widths.filter_map(|(format, width)| {
        let width = width.trim_end_matches(',').parse::<u32>().ok()?;
        Some((format.trim_matches('"').to_owned(), width))
    });
    let (hidden, formats) = (hidden(), formats());
    let mut sum = 0;
    for format in &formats {
        let (of, width) = widths.next().unwrap();
        assert!(format.starts_with(&of), "{format}: {of}");
        sum += if hidden.contains(format) { 0 } else { width };
    }
    assert_eq!(
        (hidden.len(), widths.next()),
        (formats.len() - SHOWN.len(), None)
    );
    // Beside the colour map and the scroll bar.
    assert!((1200..=1366 - 51).contains(&sum), "{sum}");
}

/// Returns the formats of the columns, in their order.
fn formats() -> Vec<String> {
    let text = file("preferences");
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"'));
    let formats = lines.filter_map(|line| line.split_once("\", \""));
    let formats = formats.map(|(_, format)| format.trim_end_matches(['"', ',']).to_owned());
    formats.collect()
}

/// Returns the formats of the hidden columns.
fn hidden() -> BTreeSet<String> {
    let text = file("preferences");
    let mut lines = text.lines();
    let hidden = lines.find_map(|line| line.strip_prefix("gui.column.hidden: "));
    let hidden = hidden.unwrap().split(',');
    hidden.map(str::to_owned).collect()
}

#[test]
fn columns_are_filled_without_errors() {
    let Some(tshark) = ready() else {
        return;
    };
    for (beginning, filter, titles) in [
        (
            "receiver-cnp-ipv4",
            "fcn",
            &[
                "Interface",
                "Kind",
                "Notifier",
                "Sender",
                "QP",
                "Sender QP",
                "Gap",
                "Verdict",
            ][..],
        ),
        ("fast-cnp.", "fcn", &["Kind", "Notifier", "Sender", "QP"]),
        (
            "fast-cnp-ioam-preallocated",
            "fcn",
            &["Kind", "Notifier", "QP", "Queue"],
        ),
        (
            "proxy-config",
            "proxycn",
            &["Kind", "Notifier", "Sender", "Level"],
        ),
        ("wan-fcn-srv6", "wanfcn", &["Kind", "Notifier", "Level"]),
        (
            "receiver-cnp-ipv6",
            "!fcn",
            &["No.", "Time", "Interface", "Source", "Protocol", "Info"],
        ),
    ] {
        let options = ["-o", "gui.column.hidden:"];
        let (_, filled) = filled(&tshark, &samples(beginning)[0], filter, &options);
        for title in titles {
            assert!(
                filled.contains(*title),
                "{beginning}: {title} in {filled:?}"
            );
        }
    }
}
