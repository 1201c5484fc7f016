//! The matrix of devices and rules: every fault that `emulate` injects, and every field of a
//! device's messages changed, against the check of its role in virtual time. What each device was
//! found to fail is committed (`matrix/`), and so is the page in `docs/` that is made of it.

use super::judge::Grade;
use super::tests::{
    BORDER, Case, FAST_RECEIVER, FOR_PROXY, IN_WAN, INGRESS, IPV4_SWITCH, PROXY, RECEIVER, SENDER,
    SWITCH, TRACES, checked_with_faults, describe, ids,
};
use crate::device::fault::{FAULTS, Fault, NamedField};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A device: its name in the table, and its network.
struct Device {
    name: &'static str,
    case: Case,
    /// True if all faults of its role are tried, false if only those that name it.
    tries_all: bool,
    /// Beginning of the names of the fields that are changed; `None` if none is.
    fields: Option<&'static str>,
}

const fn device(
    name: &'static str,
    case: Case,
    tries_all: bool,
    fields: Option<&'static str>,
) -> Device {
    Device {
        name,
        case,
        tries_all,
        fields,
    }
}

const DEVICES: [Device; 11] = [
    device("switch", SWITCH, true, Some("")),
    device("switch-ioam", TRACES, false, None),
    device("switch-proxy", FOR_PROXY, true, Some("")),
    device("switch-wan", IN_WAN, true, Some("")),
    device("border", BORDER, false, None),
    device("receiver", RECEIVER, true, Some("")),
    device("receiver-fast", FAST_RECEIVER, true, None),
    device("sender", SENDER, true, None),
    device("proxy", PROXY, true, None),
    device("ingress-pe", INGRESS, true, None),
    device("switch-ipv4", IPV4_SWITCH, false, Some("ipv4.")),
];

/// Expectation of a fault.
struct Expected {
    fault: &'static str,
    /// Devices on which it is tried, if not on all of its roles.
    devices: &'static [&'static str],
    /// Rules that catch it: at least one on each device, and no others.
    rules: &'static [&'static str],
    /// Devices on which nothing catches it yet.
    not_yet: &'static [&'static str],
    /// Rules that are blamed for it although they are not broken.
    besides: &'static [(&'static str, &'static str)],
}

impl Expected {
    /// Returns true if it is tried on named devices, and this is one.
    fn is_for(&self, device: &Device) -> bool {
        self.devices.contains(&device.name)
    }

    fn is_not_yet(&self, device: &Device) -> bool {
        self.not_yet.contains(&ANY) || self.not_yet.contains(&device.name)
    }
}

/// All devices.
const ANY: &str = "any";
/// Result of a fault that would change something, but not in the check's traffic.
const NO_FRAME: &str = "-";

const fn expect(
    fault: &'static str,
    rules: &'static [&'static str],
    not_yet: &'static [&'static str],
) -> Expected {
    Expected {
        fault,
        devices: &[],
        rules,
        not_yet,
        besides: &[],
    }
}

include!("matrix/expected.rs");

/// The rules that a device with a fault failed; `None` if the fault changed nothing there.
type Blamed = Option<Vec<&'static str>>;

fn blamed(device: &Device, fault: &str) -> (Blamed, String) {
    let off = fault == "on-by-default";
    let (outcomes, faults) = checked_with_faults(&device.case, off, &[fault.to_owned()]);
    let changed = faults.iter().any(|fault| fault.frames != Some(0));
    let failed = ids(&outcomes, Grade::Failed);
    let others = outcomes.into_iter();
    let others: Vec<_> = others.filter(|o| o.grade != Grade::Passed).collect();
    (changed.then_some(failed), describe(&others))
}

fn is_tried(device: &Device, expected: &Expected) -> bool {
    let is_here = match expected.devices {
        [] => device.tries_all,
        named => named.contains(&device.name),
    };
    is_here && fault_of(expected.fault).roles.contains(&device.case.role)
}

/// Returns the fault of that name, with or without a value.
fn fault_of(text: &str) -> &'static Fault {
    let name = text.split('=').next();
    let fault = FAULTS.iter().find(|fault| Some(fault.name) == name);
    fault.unwrap_or_else(|| panic!("{text}"))
}

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/check/matrix/{name}.tsv"))
}

/// Compares a text with the committed one, or commits it on request.
fn compare(path: &Path, text: &str) {
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(path, text).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, text, "{}", path.display());
}

fn is_as_expected(device: &Device) {
    let mut table = String::new();
    let mut wrong = String::new();
    for expected in EXPECTED {
        let name = expected.fault;
        if !is_tried(device, expected) {
            continue;
        }
        let (found, outcomes) = blamed(device, name);
        let is_not_yet = expected.is_not_yet(device);
        let Some(found) = found else {
            if is_not_yet && expected.is_for(device) {
                let _ = writeln!(table, "{name}\t{NO_FRAME}");
            }
            continue;
        };
        let _ = writeln!(table, "{name}\t{}", found.join(" "));
        let besides: Vec<_> = (expected.besides.iter())
            .filter(|(here, _)| *here == device.name)
            .map(|(_, rule)| *rule)
            .collect();
        let (right, others): (Vec<&str>, Vec<&str>) =
            found.iter().partition(|rule| expected.rules.contains(rule));
        let is_caught = !right.is_empty();
        if is_caught == is_not_yet {
            let what = if is_caught {
                "is caught now"
            } else {
                "is not caught"
            };
            let _ = writeln!(
                wrong,
                "{name} {what}: {right:?}, by {:?}\n{outcomes}",
                expected.rules
            );
        }
        if others != besides {
            let _ = writeln!(
                wrong,
                "{name} is blamed on {others:?}, not on {besides:?}\n{outcomes}"
            );
        }
    }
    let fields = NamedField::all().map(|field| field.name());
    for field in fields.filter(|name| device.fields.is_some_and(|begin| name.starts_with(begin))) {
        let name = format!("field={field}");
        if let (Some(found), _) = blamed(device, &name) {
            let _ = writeln!(table, "{name}\t{}", found.join(" "));
        }
    }
    compare(&committed(device.name), &table);
    assert!(wrong.is_empty(), "{}:\n{wrong}", device.name);
}

macro_rules! devices {
    ($($test:ident: $index:literal,)+) => {
        $(
            #[test]
            fn $test() {
                is_as_expected(&DEVICES[$index]);
            }
        )+
    };
}

devices! {
    faults_of_a_switch_are_caught: 0,
    faults_of_a_switch_with_ioam_are_caught: 1,
    faults_of_a_switch_with_proxies_are_caught: 2,
    faults_of_a_switch_in_the_wan_are_caught: 3,
    faults_of_a_border_are_caught: 4,
    faults_of_a_receiver_are_caught: 5,
    faults_of_a_receiver_with_fast_cnps_are_caught: 6,
    faults_of_a_sender_are_caught: 7,
    faults_of_a_proxy_are_caught: 8,
    faults_of_an_ingress_pe_are_caught: 9,
    faults_of_a_switch_over_ipv4_are_caught: 10,
}

#[test]
fn expectations_name_faults_devices_and_rules() {
    let devices: BTreeSet<_> = DEVICES.iter().map(|device| device.name).collect();
    let rules: BTreeSet<_> = super::statements::tests(clap::ValueEnum::value_variants())
        .map(|(_, test)| test.id())
        .collect();
    for expected in EXPECTED {
        let name = expected.fault;
        fault_of(name);
        for rule in expected.rules {
            assert!(rules.contains(rule), "{name}: {rule}");
        }
        let named = expected.devices.iter().chain(expected.not_yet);
        for device in named.chain(expected.besides.iter().map(|(device, _)| device)) {
            assert!(
                devices.contains(device) || *device == ANY,
                "{name}: {device}"
            );
        }
    }
    for fault in FAULTS.iter().filter(|fault| fault.name != "field") {
        let name = fault.name;
        let mut tried = EXPECTED
            .iter()
            .map(|expected| fault_of(expected.fault).name);
        assert!(
            tried.any(|tried| tried == name),
            "{name} is missing in expected.rs"
        );
    }
    let names: Vec<_> = EXPECTED.iter().map(|expected| expected.fault).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

/// Devices by the rules that they failed with one fault.
type Row = BTreeMap<String, Vec<&'static str>>;

fn rows() -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for device in &DEVICES {
        let text = fs::read_to_string(committed(device.name)).unwrap_or_default();
        for line in text.lines() {
            let (fault, rules) = line.split_once('\t').unwrap();
            let row = rows.entry(fault.to_owned()).or_default();
            row.entry(rules.to_owned()).or_default().push(device.name);
        }
    }
    rows
}

/// Writes the rules that were broken, and on which devices; of one that passes, that it does.
fn cell(row: &Row) -> String {
    let all = row.values().flatten().count();
    let cells = row.iter().map(|(rules, devices)| {
        let rules: Vec<_> = rules.split(' ').map(|rule| format!("`{rule}`")).collect();
        let what = match rules.join(", ") {
            none if none == "``" => "nothing".to_owned(),
            none if none == format!("`{NO_FRAME}`") => "nothing: no such frames".to_owned(),
            some => some,
        };
        match devices.len() == all {
            true => what,
            false => format!("{what} ({})", devices.join(", ")),
        }
    });
    cells.collect::<Vec<_>>().join("; ")
}

fn page() -> String {
    let rows = rows();
    let mut text = String::from(
        "# Faults and the rules that catch them\n\n\
         Devices with a fault (`fcn-gen emulate ROLE --fault NAME`), and the rules of `fcn-gen check` that they fail in virtual time. Generated from `fcn-gen/src/check/matrix/`; tests keep it up to date. `INSTA_UPDATE=always cargo test -p fcn-gen matrix` regenerates it (twice: the page is made of the first run's results).\n\n\
         Devices, all of this project and correct but for the fault: `switch` sends Fast CNPs, `switch-ioam` with option 2, `switch-proxy` notifies proxies, `switch-wan` ingress PEs, `border` is at the border of its domain; `receiver` answers with CNPs, `receiver-fast` with Fast CNPs; `sender`, `proxy`, `ingress-pe`. A fault is tried where it changes anything.\n\n\
         ## Faults\n\n\
         | fault | the device | fails | left |\n|---|---|---|---|\n",
    );
    for expected in EXPECTED {
        let Some(row) = rows.get(expected.fault) else {
            continue;
        };
        let mut notes = Vec::new();
        match expected.not_yet {
            [] => {}
            [ANY] => notes.push("not caught yet".to_owned()),
            some => notes.push(format!("not caught yet: {}", some.join(", "))),
        }
        for (device, rule) in expected.besides {
            notes.push(format!("blamed besides: `{rule}` ({device})"));
        }
        let (name, about) = (expected.fault, fault_of(expected.fault).about);
        let (cell, notes) = (cell(row), notes.join("; "));
        let _ = writeln!(text, "| `{name}` | {about} | {cell} | {notes} |");
    }
    text.push_str(
        "\n## Fields\n\nEvery field of the notifications of five devices (`switch`, `switch-proxy`, `switch-wan`, `receiver`, and `switch-ipv4`, which notifies proxies over IPv4) with all bits inverted, and checksums and ICRC right (`--fault field=NAME`). A field that no rule is about may have any value.\n\n\
         | field | fails |\n|---|---|\n",
    );
    for field in NamedField::all() {
        if let Some(row) = rows.get(&format!("field={}", field.name())) {
            let _ = writeln!(text, "| `{}` | {} |", field.name(), cell(row));
        }
    }
    text
}

#[test]
fn page_matches_the_matrix() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/faults.md");
    compare(&path, &page());
}
