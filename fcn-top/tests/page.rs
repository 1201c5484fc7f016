//! The page written by `--html`: its data, hostile names, and its rendering in a browser.
#![allow(missing_docs, reason = "tests have no users")]

mod common;

use common::{capture, captures, top};
use fcn_examples::browser::rendered;
use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that are markup, unless escaped.
const NAMES: [&str; 3] = [
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "<!--<script> &lt;b&gt; \u{1b}[2J\u{202e}",
];

/// Returns the data in a page.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("a block of data");
    let block = rest.split_once("</script>").expect("its end").0;
    serde_json::from_str(block).unwrap()
}

/// Writes a capture of interfaces with such names, in a file with such a name.
fn hostile(folder: &Path) -> PathBuf {
    let path = folder.join("<b onclick=alert(1)>&\"'.pcapng");
    let interfaces = NAMES.map(|name| Interface {
        name,
        description: name,
        link: LinkType::Ethernet,
        snap_len: 0,
    });
    let mut writer = CaptureWriter::create(&path, &Options::default(), &interfaces).unwrap();
    let mut reader = CaptureReader::open(&captures().join("attack.pcapng")).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        let len = packet.bytes.len() as u32;
        writer
            .packet(packet.interface % 3, packet.at, packet.bytes, len)
            .unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn a_page_has_the_json_data_and_never_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html");
    let read = capture("attack.pcapng");
    let page = to.display().to_string();
    let words = ["-r", &read, "--json", "--html", &page, "--utc"];
    let done = top(words).well();
    assert!(done.err.contains("story.html: "), "{}", done.err);
    let text = fs::read_to_string(&to).unwrap();
    let (mut json, mut data) = (done.json(), data(&text));
    let stories = &mut data["snapshot"];
    // The page has the flows in another order.
    for flows in [&mut json["flows"], &mut stories["flows"]] {
        let flows = flows.as_array_mut().unwrap();
        flows.sort_by_key(ToString::to_string);
    }
    assert!(*stories == json);
    let again = top(words).with(2);
    assert!(again.err.contains("choose another name"), "{}", again.err);
    assert_eq!(
        (again.out.as_str(), fs::read_to_string(&to).unwrap()),
        ("", text)
    );
    top(words.into_iter().chain(["--force"])).well();
    // No file remains without output.
    let other = folder.path().join("other.html");
    let other_page = other.display().to_string();
    let missing = folder.path().join("none.pcapng").display().to_string();
    top(["-r", &missing, "--html", &other_page]).with(2);
    assert!(!other.exists());
}

#[test]
fn a_partial_page_is_marked_and_its_filters_find_that_part() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html").display().to_string();
    let read = capture("attack.pcapng");
    top(["-r", &read, "--html", &to, "--count", "50"]).well();
    let data = data(&fs::read_to_string(&to).unwrap());
    assert_eq!(data["part"], "the first 50 packets");
    let filters = data["filters"]["rows"].as_array().unwrap();
    assert!(!filters.is_empty());
    for filter in filters {
        let filter = filter.as_str().unwrap();
        assert!(filter.ends_with(" && frame.number <= 50"), "{filter}");
    }
    let done = top(["-r", &read, "--report", "--filter", "udp"]).well();
    let part = "\nonly          packets that match “udp”\n";
    assert!(done.out.contains(part), "{}", done.out);
}

#[test]
fn a_page_masks_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html").display().to_string();
    top(["-r", &capture("attack.pcapng"), "--html", &to, "--privacy"]).well();
    let text = fs::read_to_string(&to).unwrap();
    assert!(!text.contains("2001:db8"));
    let data = data(&text);
    assert!(
        data["filters"]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(Value::is_null)
    );
    let flow = &data["course"]["flows"][0];
    assert!(
        flow["sender"].as_str().unwrap().starts_with("host-"),
        "{flow}"
    );
}

#[test]
fn a_private_page_of_an_interface_does_not_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html").display().to_string();
    let from = folder.path().join("a.pcapng");
    let name = "vx-c0a80001";
    let interface = Interface {
        name,
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    let mut writer = CaptureWriter::create(&from, &Options::default(), &[interface]).unwrap();
    let mut reader = CaptureReader::open(&captures().join("attack.pcapng")).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        // A finding.
        let mut octets = packet.bytes.to_vec();
        *octets.last_mut().unwrap() ^= 1;
        let len = octets.len() as u32;
        writer.packet(0, packet.at, &octets, len).unwrap();
    }
    writer.finish().unwrap();
    let from = from.display().to_string();
    let words = ["-r", &from, "--report", "--html", &to, "--interface", name];
    let done = top(words.into_iter().chain(["--privacy"])).well();
    assert!(
        done.out.starts_with("only          interface …\n"),
        "{}",
        done.out
    );
    let page = fs::read_to_string(&to).unwrap();
    for text in [&done.out, &done.err, &page] {
        assert!(!text.contains("c0a80001"), "{text}");
    }
    let data = data(&page);
    let rules = data["filters"]["rules"].as_object().unwrap();
    assert!(!rules.is_empty());
    let know = data["know"].to_string();
    assert!(know.contains("they may match more or less"), "{know}");
}

#[test]
fn a_page_explains_missing_filters() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html").display().to_string();
    let file = capture("attack.pcapng");
    for (option, why) in [
        ("--utc", None),
        (
            "--per-interface",
            Some("--per-interface each counts one capture point"),
        ),
        ("--privacy", Some("which --privacy hides")),
    ] {
        top(["-r", &file, "--html", &to, "--force", option]).well();
        let data = data(&fs::read_to_string(&to).unwrap());
        let filters = data["filters"]["rows"].as_array().unwrap();
        assert_eq!(
            filters.iter().all(Value::is_null),
            why.is_some(),
            "{option}"
        );
        let know = data["know"].to_string();
        let is_told = know.contains("QPs have no display filters for Wireshark: ");
        assert_eq!(is_told, why.is_some(), "{know}");
        assert!(know.contains(why.unwrap_or_default()), "{know}");
    }
}

#[test]
fn names_are_not_markup() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html");
    let read = hostile(folder.path()).display().to_string();
    top(["-r", &read, "--html", &to.display().to_string()]).well();
    let text = fs::read_to_string(&to).unwrap();
    assert_eq!(text.matches("<script").count(), 4);
    assert!(!text.contains("<img") && !text.contains("<b onclick"));
    let data = data(&text);
    let names = data["snapshot"]["interfaces"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(&names[..2], &NAMES[..2]);
    assert_eq!(names[2], "<!--<script> &lt;b&gt; \u{fffd}[2J\u{fffd}");
}

#[test]
fn a_browser_renders_it_and_runs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = hostile(folder.path()).display().to_string();
    for (number, (read, charts)) in [
        (capture("attack.pcapng"), true),
        (capture("receiver-cnp-ipv4.pcapng"), true),
        (capture("formats-pnc.pcapng"), false),
        (hostile, true),
    ]
    .into_iter()
    .enumerate()
    {
        let to = folder.path().join(format!("{number}.html"));
        top(["-r", &read, "--html", &to.display().to_string()]).well();
        let Some(page) = rendered(&to) else { return };
        assert!(page.contains("data-state=\"ready\""), "{read}: {page}");
        let body = page.rsplit_once("<main id=\"page\">").expect("the page").1;
        let body = body.split_once("</main>").expect("its end").0;
        assert!(body.contains("<h2>Notified senders</h2>"), "{read}");
        assert_eq!(body.contains("<canvas"), charts, "{read}");
        // The page has only our own elements; data is text in them.
        for element in ["<script", "<img", "<b ", "<b>"] {
            assert!(!body.contains(element), "{read}: {element}");
        }
        assert!(!page.contains("<title>owned"), "{read}");
        let rows = data(&fs::read_to_string(&to).unwrap())["snapshot"]["rows"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(body.matches("aria-expanded").count(), rows, "{read}");
    }
}

/// User actions in a page, and the resulting state.
const CLICKS: &str = r#"
addEventListener("load", () => {
  const all = (css, root = document) => [...root.querySelectorAll(css)];
  const seen = {};
  const section = all("section").find((one) => one.querySelector("h2")?.textContent === "Notified senders");
  const rows = () => all("tbody > tr:not([hidden])", section).length;
  seen.rows = rows();
  dispatchEvent(new Event("beforeprint"));
  seen.printed = rows();
  dispatchEvent(new Event("afterprint"));
  seen.again = rows();
  const total = all("thead button", section).find((one) => one.textContent === "Total");
  const column = all("thead th", section).indexOf(total.parentElement);
  const first = () => Number(section.querySelector("tbody tr").children[column].textContent.replaceAll(",", ""));
  total.click();
  const most = first();
  total.click();
  seen.sorted = first() <= most && total.parentElement.getAttribute("aria-sort") === "ascending";
  const details = section.querySelector("button.more");
  details.click();
  seen.details = details.getAttribute("aria-expanded") === "true" && section.querySelector("dl") !== null;
  const search = section.querySelector("input[type=search]");
  search.value = "no such words";
  search.dispatchEvent(new Event("input"));
  seen.found = rows();
  const shown = () => document.querySelector(".sticky [role=status]").textContent;
  const [plot] = all(".plot");
  const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const before = shown();
  seen.begins = before.split(" to ")[0];
  key("+");
  seen.zoomed = shown() !== before;
  key("0");
  seen.whole = shown() === before;
  key("ArrowRight");
  seen.read = plot.nextElementSibling.textContent.length > 0;
  const table = plot.parentElement.querySelector("details");
  table.open = true;
  table.dispatchEvent(new Event("toggle"));
  seen.figures = all("tbody tr", table).length > 0;
  const result = document.createElement("output");
  result.id = "seen";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
});
"#;

/// Returns the result of a script, which the page's policy would not let run, in the page at `to`
/// with other data. `None` without a browser.
fn seen(to: &Path, data: &Value, script: &str) -> Option<Value> {
    let text = fs::read_to_string(to).unwrap();
    let (before, block) = text.split_once("id=\"data\">").unwrap();
    let (_, after) = block.split_once("</script>").unwrap();
    let before = before.replace("http-equiv=\"Content-Security-Policy\"", "");
    let page = format!("{before}id=\"data\">{data}</script><script>{script}</script>{after}");
    fs::write(to, page).unwrap();
    let page = rendered(to)?;
    let (_, seen) = page.split_once("<output id=\"seen\">").expect(&page);
    let seen = seen.split_once("</output>").unwrap().0;
    let seen = seen.replace("&lt;", "<");
    Some(serde_json::from_str(&seen).unwrap())
}

#[test]
fn a_page_handles_clicks_and_keys_and_prints_completely() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html");
    top([
        "-r",
        &capture("all-to-all.pcapng"),
        "--html",
        &to.display().to_string(),
    ])
    .well();
    let text = fs::read_to_string(&to).unwrap();
    // More rows than the screen has room for.
    let mut data = data(&text);
    // Steps begin at multiples of their length, but the axis begins with the first packet.
    data["course"]["start"] = (-data["course"]["step"].as_i64().unwrap() / 2).into();
    for (table, list) in [("snapshot", "rows"), ("filters", "rows")] {
        let rows = data[table][list].as_array_mut().unwrap();
        *rows = rows.iter().cycle().take(120).cloned().collect();
    }
    let moments = data["rows_since"].as_array_mut().unwrap();
    *moments = moments.iter().cycle().take(120).cloned().collect();
    let Some(seen) = seen(&to, &data, CLICKS) else {
        return;
    };
    assert_eq!(
        seen,
        serde_json::json!({
            "rows": 50, "printed": 120, "again": 50, "sorted": true, "details": true, "found": 0,
            "zoomed": true, "whole": true, "read": true, "figures": true, "begins": "Shown: 0",
        })
    );
}

/// Labels of the charts, and the start of the axis.
const HOURS: &str = r#"
const written = new Set();
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  written.add(text);
  return write.call(this, text, ...rest);
};
addEventListener("load", () => {
  const [plot] = document.querySelectorAll(".plot");
  const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  key("Home");
  const seen = {
    begins: document.querySelector(".sticky [role=status]").textContent.split(",")[0],
    first: plot.nextElementSibling.textContent,
    ticks: [...written].filter((text) => / (d|h|min|s)$/.test(text)).sort(),
    says: [...document.querySelectorAll("p:not(.screen)")].some((one) => one.textContent === "Time since the first packet."),
    seldom: page.show.rate(1.157e-5), spans: [3.5e12, 3.6e12, 8.64e14].map(page.show.span),
  };
  const result = document.createElement("output");
  result.id = "seen";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
});
"#;

#[test]
fn the_axis_of_hours_begins_with_the_first_packet_and_has_round_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("story.html");
    let page = to.display().to_string();
    top(["-r", &capture("receiver-cnp-ipv4.pcapng"), "--html", &page]).well();
    let mut data = data(&fs::read_to_string(&to).unwrap());
    // Data and notifications begin in the middle of ten hours.
    let half = 5 * 3_600_000_000_000_u64;
    let course = data["course"].as_object_mut().unwrap();
    let steps = course["data"].as_array().unwrap().len() as u64;
    course["step"] = half.div_ceil(steps).into();
    course["start"] = half.into();
    let Some(seen) = seen(&to, &data, HOURS) else {
        return;
    };
    assert_eq!(
        seen,
        serde_json::json!({
            "begins": "Shown: 0 to 10 h", "first": "0 to 5 h: CNP 0", "ticks": ["10 h", "2 h", "4 h", "6 h", "8 h"],
            "says": true, "seldom": "<0.01", "spans": ["58.3 min", "1 h", "10 d"],
        })
    );
}
