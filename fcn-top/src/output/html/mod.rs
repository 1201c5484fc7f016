//! A self-contained HTML page: a summary in three sentences, charts over the whole run, and the
//! tables.
//!
//! Its data is the [snapshot] that `--json` prints, plus data for the page only: the sentences, the
//! run over time, and filters for Wireshark. `story.js` renders it.

mod sentences;

use super::Selection;
use super::audit::Unchecked;
use super::json::{Snapshot, snapshot};
use super::part::Part;
use super::report::Header;
use crate::new_file;
use crate::record::{
    Cell, Column, CounterRecord, EventRecord, FlowRecord, HopRecord, InterfaceRecord, PauseRecord,
    PointRecord, QpRecord, QpSide, ReceiverRecord, Record,
};
use crate::tables::{Course, FlowCourse, FlowStep, Tables};
use crate::text::{self, Formatter};
use fcn_tool::page::Page;
use fcn_wire::{Kind, Rule};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The page without its data.
pub const PAGE: Page = Page {
    title: "fcn-top",
    script: include_str!("story.js"),
};

/// Schema name of a page's data.
pub const STORY: &str = "fcn-top/story";

/// Default number of rows of the table of QPs.
pub const ROWS: usize = 1_000;

/// Maximum number of lines of every other table.
const LINES: usize = 1_000;

/// Input of a page.
#[derive(Clone, Copy, Debug)]
pub struct Story<'t> {
    /// Facts that are not in the tables.
    pub header: &'t Header,
    /// The complete tables; [`shortened`](shorten) for a page.
    pub tables: &'t Tables,
    /// Rules that were not checked.
    pub unchecked: &'t [Unchecked],
    /// Number of notifiers, including those no longer in the tables.
    pub notifiers: u64,
    /// Data removed from the tables.
    pub left_out: &'t [String],
    /// The run over time.
    pub course: &'t Course,
    /// True if frame numbers identify packets: those of a file.
    pub is_file: bool,
    /// True if rows count each interface separately.
    pub by_interface: bool,
}

/// Data of a page.
#[derive(Serialize)]
pub struct Document<'t> {
    columns: BTreeMap<&'static str, &'static [Column]>,
    course: Steps,
    /// True if some rows differ only in their capture point.
    differ_by_place: bool,
    /// Time of each event, in nanoseconds since the first packet: JavaScript cannot represent
    /// nanoseconds since the epoch.
    events_since: Vec<i64>,
    filters: Filters,
    /// Display name of each kind of notification, in a fixed order.
    kinds: [(&'static str, &'static str); Kind::ALL.len()],
    know: Vec<String>,
    /// Explanation of means that exceed peaks, if there are any.
    mean_and_peak: Option<&'static str>,
    made_by: String,
    /// Names of addresses, if known.
    names: BTreeMap<String, String>,
    /// Explanation of a row without a verdict.
    no_verdict: &'static str,
    /// Number of notifications below which it is shown beside a verdict.
    few: u64,
    /// Part of the input that was processed; `None` for all.
    part: Option<String>,
    /// Role of each notifier.
    notifiers_as: Vec<&'static str>,
    read: Vec<String>,
    /// Notifiers of each row.
    rows_by: Vec<String>,
    /// Times in each row, in nanoseconds since the first packet, by column.
    rows_since: Vec<BTreeMap<&'static str, i64>>,
    schema: &'static str,
    sentences: Vec<String>,
    snapshot: Snapshot<'t>,
    time: String,
    version: u32,
}

/// Display filters for Wireshark.
#[derive(Serialize)]
struct Filters {
    /// True if `frame.number` identifies frames.
    frames: bool,
    /// Filter for the notifications of each row; `None` if addresses are masked.
    rows: Vec<Option<String>>,
    /// The plugin's expert items, by rule.
    rules: BTreeMap<&'static str, String>,
}

/// The run over time; each list has a value for each step.
#[derive(Serialize)]
struct Steps {
    /// Start of the first step, which contains the first packet, in nanoseconds since that packet.
    start: i64,
    step: u64,
    notifications: BTreeMap<&'static str, Vec<u32>>,
    data: Vec<u32>,
    ce: Vec<u32>,
    octets: Vec<u64>,
    flows: Vec<Flow>,
}

/// A flow over time, starting at step number `from`; missing values at the end are 0.
#[derive(Serialize)]
struct Flow {
    sender: String,
    receiver: String,
    receiver_qp: u32,
    notified: u64,
    /// Start of separate counting, in nanoseconds since the first packet.
    since: i64,
    from: usize,
    notifications: Vec<u32>,
    data: Vec<u32>,
    ce: Vec<u32>,
    octets: Vec<u64>,
}

/// The file of a page, created before the run that fills it. It is removed if dropped before
/// [`write`](Self::write).
#[derive(Debug)]
pub struct PageFile {
    path: PathBuf,
    file: Option<File>,
}

impl PageFile {
    /// Creates the file; `replace` allows replacing an existing one.
    ///
    /// # Errors
    ///
    /// The file exists already, or cannot be created. The text says what failed, on what, and what
    /// to do.
    pub fn create(path: &Path, replace: bool) -> Result<Self, String> {
        if replace && path.is_file() {
            std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Self {
            file: Some(new_file::create(path)?),
            path: path.to_owned(),
        })
    }

    /// Writes the page to it; returns its length in octets.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The text says what failed, and on what.
    pub fn write(mut self, document: &Document<'_>) -> Result<u64, String> {
        let Some(file) = &self.file else { return Ok(0) };
        let written = PAGE.write(document, &mut BufWriter::with_capacity(1 << 16, file));
        let length = written.and_then(|()| Ok(file.metadata()?.len()));
        let length = length.map_err(|error| format!("{}: {error}", self.path.display()))?;
        self.file = None;
        Ok(length)
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // A failure would leave an empty file, and cannot be reported here.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the number of notifiers.
pub fn notifiers(tables: &Tables) -> u64 {
    let points = tables.points.iter();
    points.filter(|point| point.total > 0).count() as u64
}

/// Removes lines that exceed the page's limits from the tables; returns a description of what was
/// removed.
pub fn shorten(tables: &mut Tables) -> Vec<String> {
    fn cut<T>(lines: &mut Vec<T>, what: &str, left_out: &mut Vec<String>) {
        if lines.len() > LINES {
            let all = text::count(lines.len() as u64);
            left_out.push(format!(
                "{what}: the first {} of {all}",
                text::count(LINES as u64)
            ));
            lines.truncate(LINES);
        }
    }
    let mut left_out = Vec::new();
    (tables.flows).sort_by_key(|flow| std::cmp::Reverse((flow.stalled, flow.data_octets)));
    let what = "Flows of data, those that stalled longest first";
    cut(&mut tables.flows, what, &mut left_out);
    cut(&mut tables.receivers, "Receivers", &mut left_out);
    cut(&mut tables.pauses, "Pauses", &mut left_out);
    if tables.points.len() > LINES {
        tables
            .points
            .sort_by_key(|point| std::cmp::Reverse(point.total));
    }
    cut(
        &mut tables.points,
        "Notifiers, those that notified most first",
        &mut left_out,
    );
    cut(&mut tables.hops, "Hops of paths", &mut left_out);
    cut(
        &mut tables.events,
        "Findings and events, the oldest first",
        &mut left_out,
    );
    left_out
}

/// Builds the data of a page, with the selected rows.
pub fn document<'t>(
    story: &Story<'t>,
    selection: &Selection,
    formatter: &'t Formatter,
) -> Document<'t> {
    let Story { header, tables, .. } = *story;
    let selection = selection.or_top(ROWS);
    let selected = selection.apply(tables, formatter);
    let filters = Filters {
        frames: story.is_file,
        rows: (selected.rows.iter())
            .map(|(_, row)| {
                row_filter(row, &header.part).filter(|_| !formatter.masks() && !story.by_interface)
            })
            .collect(),
        rules: (Rule::ALL.iter())
            .filter(|rule| tables.rules.iter().any(|(id, _)| *id == rule.info().id))
            .map(|rule| {
                (
                    rule.info().id,
                    rule.filter_name() + &header.part.display_filter(),
                )
            })
            .collect(),
    };
    let started = tables.started.unwrap_or(0);
    let since = |at: u64| at.wrapping_sub(started).cast_signed();
    let read = header.read.iter();
    Document {
        columns: [
            (QpRecord::TABLE, QpRecord::COLUMNS),
            (FlowRecord::TABLE, FlowRecord::COLUMNS),
            (PointRecord::TABLE, PointRecord::COLUMNS),
            (ReceiverRecord::TABLE, ReceiverRecord::COLUMNS),
            (PauseRecord::TABLE, PauseRecord::COLUMNS),
            (HopRecord::TABLE, HopRecord::COLUMNS),
            (EventRecord::TABLE, EventRecord::COLUMNS),
            (InterfaceRecord::TABLE, InterfaceRecord::COLUMNS),
            (CounterRecord::TABLE, CounterRecord::COLUMNS),
        ]
        .into(),
        course: steps(story.course, since, formatter),
        differ_by_place: text::differ_by_place(selected.rows.iter().map(|(_, row)| row)),
        events_since: tables.events.iter().map(|event| since(event.at)).collect(),
        filters,
        kinds: Kind::ALL.map(|kind| (kind.id(), kind.name())),
        know: sentences::know(story, (selected.rows.len(), selected.matched), formatter),
        mean_and_peak: text::mean_and_peak(selected.rows.iter().map(|(_, row)| row)),
        made_by: format!("fcn-top {}", env!("CARGO_PKG_VERSION")),
        names: names(story, selected.rows.iter().map(|(_, row)| row), formatter),
        no_verdict: text::NO_VERDICT,
        few: text::FEW,
        notifiers_as: (tables.points.iter())
            .map(|point| text::acts_as(point.notifier_role, point.made_by))
            .collect(),
        part: header
            .part
            .words()
            .map(|part| formatter.text(&part).into_owned()),
        read: read.map(|read| formatter.text(read).into_owned()).collect(),
        rows_by: (selected.rows.iter()).map(|(_, row)| by(row)).collect(),
        rows_since: (selected.rows.iter())
            .map(|(_, row)| times(row, since))
            .collect(),
        schema: STORY,
        sentences: sentences::sentences(story, formatter),
        snapshot: snapshot(tables, &selection, formatter),
        time: tables.started.map_or_else(String::new, |started| {
            let began = formatter.day_and_time(started);
            match tables.span() {
                0 => format!("at {began}"),
                span => format!("{} from {began}", text::span(span)),
            }
        }),
        version: 1,
    }
}

/// Describes the notifiers of a row, to follow the address.
fn by(row: &QpRecord) -> String {
    let role = text::acts_as(row.notifier_role, row.made_by);
    // Only the kind shows the role.
    let how = if row.kind == Kind::Cnp { "" } else { "as " };
    match text::more_notifiers(row) {
        // The role is the row's, not that of the named notifier.
        Some(more) => format!("{more} (mostly {how}{role})"),
        None => format!("({how}{role})"),
    }
}

/// Returns the times in a row, in nanoseconds since the first packet, by column.
fn times(row: &QpRecord, since: impl Fn(u64) -> i64) -> BTreeMap<&'static str, i64> {
    let cells = QpRecord::COLUMNS.iter().zip(0..);
    let times = cells.filter_map(|(column, number)| match row.cell(number) {
        Cell::Moment(at) => Some((column.id, since(at))),
        _ => None,
    });
    times.collect()
}

/// Returns the known names of the addresses in the tables.
fn names<'r>(
    story: &Story<'r>,
    rows: impl Iterator<Item = &'r QpRecord>,
    formatter: &Formatter,
) -> BTreeMap<String, String> {
    let Story { tables, course, .. } = *story;
    let flows = course.flows.iter();
    let flows = flows.flat_map(|flow| [flow.key.sender, flow.key.receiver]);
    let listed = (tables.flows.iter()).flat_map(|flow| [flow.sender, flow.receiver]);
    let receivers = tables.receivers.iter().map(|receiver| receiver.receiver);
    let all = tables.addresses(rows).chain(flows).chain(listed);
    let all = all.chain(receivers);
    all.map(|address| (formatter.exact_address(address), formatter.address(address)))
        .filter(|(address, name)| address != name)
        .map(|(address, name)| (address, formatter.text(&name).into_owned()))
        .collect()
}

fn steps(course: &Course, since: impl Fn(u64) -> i64, formatter: &Formatter) -> Steps {
    let traffic = &course.traffic;
    let of_kind = |kind: Kind| -> Vec<u32> {
        let steps = traffic.iter();
        let counts = steps.map(|step| step.notifications.get(kind as usize).copied());
        counts.map(Option::unwrap_or_default).collect()
    };
    Steps {
        start: since(course.start),
        step: course.step,
        notifications: (Kind::ALL.iter())
            .map(|kind| (kind.id(), of_kind(*kind)))
            .filter(|(_, counts)| counts.iter().any(|count| *count > 0))
            .collect(),
        data: traffic.iter().map(|step| step.data).collect(),
        ce: traffic.iter().map(|step| step.ce).collect(),
        octets: traffic.iter().map(|step| step.octets).collect(),
        flows: (course.flows.iter())
            .map(|flow| self::flow(flow, since(flow.since), formatter))
            .collect(),
    }
}

fn flow(flow: &FlowCourse, since: i64, formatter: &Formatter) -> Flow {
    let steps = &flow.steps;
    let is_something = |step: &FlowStep| *step != FlowStep::default();
    let from = steps.iter().position(is_something).unwrap_or(0);
    fn until_last<N: Copy + Default + PartialEq>(steps: impl Iterator<Item = N>) -> Vec<N> {
        let mut values: Vec<N> = steps.collect();
        let last = values.iter().rposition(|value| *value != N::default());
        values.truncate(last.map_or(0, |last| last + 1));
        values
    }
    let steps = || steps.iter().skip(from);
    Flow {
        sender: formatter.exact_address(flow.key.sender),
        receiver: formatter.exact_address(flow.key.receiver),
        receiver_qp: flow.key.receiver_qp.get(),
        notified: flow.notified,
        since,
        from,
        notifications: until_last(steps().map(|step| step.notifications)),
        data: until_last(steps().map(|step| step.data)),
        ce: until_last(steps().map(|step| step.ce)),
        octets: until_last(steps().map(|step| step.octets)),
    }
}

/// Returns a display filter, using the plugin's fields, that finds a row's notifications in the
/// processed part, each at its first capture point. It uses the addresses found by the plugin: a
/// frame may have headers of tunnels and of other packets.
fn row_filter(row: &QpRecord, part: &Part) -> Option<String> {
    // The QP named by notifications of this kind.
    let (qp, side) = match row.kind {
        Kind::Cnp => (row.sender_qp, QpSide::Sender),
        _ => (row.receiver_qp, QpSide::Receiver),
    };
    let mut filter = format!("fcn.kind == \"{}\" && ", row.kind.id());
    if part.has_first_copies() {
        filter += "!fcn.copy_of && ";
    }
    let _ = match (row.flow_label, qp) {
        _ if row.sampled.is_some() => return None,
        (Some(label), _) => write!(filter, "wanfcn.flow_label == {label:#x}"),
        (None, Some(qp)) => write!(
            filter,
            "fcn.qp == {qp:#x} && fcn.qp_side == \"{}\"",
            side.id()
        ),
        (None, None) => return None,
    };
    // A WAN FCN does not name the sender.
    let sender = row.sender.filter(|_| row.flow_label.is_none());
    let _ = match (sender, row.destination) {
        (Some(IpAddr::V4(sender)), _) => write!(filter, " && fcn.sender_ipv4 == {sender}"),
        (Some(IpAddr::V6(sender)), _) => write!(filter, " && fcn.sender_ipv6 == {sender}"),
        (None, IpAddr::V4(told)) => write!(filter, " && ip.dst == {told}"),
        (None, IpAddr::V6(told)) => write!(filter, " && ipv6.dst == {told}"),
    };
    // Another receiver may have a QP of the same number.
    if let (Kind::FastCnp1 | Kind::FastCnp2, Some(receiver)) = (row.kind, row.receiver) {
        let _ = write!(
            filter,
            " && fastcnp.option.original_destination == {receiver}"
        );
    }
    Some(filter + &part.display_filter())
}

#[cfg(test)]
mod tests {
    use super::super::audit::unchecked;
    use super::*;
    use crate::monitor::events::DAMAGED;
    use crate::output::tests::nothing;
    use crate::tests::sample;
    use insta::assert_snapshot;

    fn header() -> Header {
        Header {
            read: vec!["incast.pcapng".to_owned()],
            ..Header::default()
        }
    }

    fn document_of(tables: &Tables, course: &Course) -> serde_json::Value {
        let story = Story {
            header: &header(),
            tables,
            unchecked: &[],
            notifiers: notifiers(tables),
            left_out: &[],
            course,
            is_file: true,
            by_interface: false,
        };
        let (selection, words) = (Selection::default(), Formatter::default());
        serde_json::to_value(document(&story, &selection, &words)).unwrap()
    }

    #[test]
    fn a_page_has_the_json_tables_and_matches_its_snapshot() {
        let (tables, course) = (sample::tables(), sample::course());
        let mut document = document_of(&tables, &course);
        let members = document.as_object_mut().unwrap();
        let formatter = Formatter::default();
        let snapshot = snapshot(&tables, &Selection::default(), &formatter);
        assert_eq!(
            members.remove("snapshot"),
            serde_json::to_value(snapshot).ok()
        );
        let columns = members.remove("columns").unwrap();
        assert_eq!(
            columns["qps"].as_array().unwrap().len(),
            QpRecord::COLUMNS.len()
        );
        assert_eq!(columns["qps"][0]["holds"], "address");
        assert_snapshot!("story", format!("{document:#}\n"));
    }

    #[test]
    fn sentences_agree_with_the_tables() {
        let told = |tables: &Tables| {
            let document = document_of(tables, &Course::default());
            let lines = |member: &str| -> String {
                let lines = document[member].as_array().unwrap().iter();
                lines
                    .map(|line| format!("- {}\n", line.as_str().unwrap()))
                    .collect()
            };
            format!("{}but:\n{}\n", lines("sentences"), lines("know"))
        };
        let mut text = told(&Tables::default()) + &told(&nothing());
        let mut tables = sample::tables();
        // Another kind of notification about the same flow is not another flow; events of the
        // capture are listed.
        let mut also = tables.qps[1].clone();
        also.1.kind = Kind::FastCnp1;
        tables.qps.push(also);
        tables.qps[0].1.verdict = Some(crate::record::Answer::DoesNotObey);
        let mut lost = tables.events[0].clone();
        (lost.frame, lost.what) = (None, "capture.lost.kernel");
        (lost.text, lost.times) = ("The kernel had no room for packets".into(), 3);
        tables.events.push(lost);
        tables.totals.rows_evicted = 2;
        tables.totals.samples = 7;
        text += &told(&tables);
        assert_snapshot!("sentences", text);
        // Of two notifiers with the same number, neither is named.
        let mut alike = tables.clone();
        alike.points.truncate(2);
        alike.points[1].total = alike.points[0].total;
        let text = told(&alike);
        assert!(text.contains("from 2 notifiers, with"), "{text}");
        // The origin of plain CNPs is unknown from these.
        tables.points.retain(|point| point.made_by.is_some());
        let text = told(&tables);
        assert!(
            text.contains("(inferred: network, in receiver's name)"),
            "{text}"
        );
    }

    #[test]
    fn shortened_tables_are_reported() {
        let mut tables = sample::tables();
        assert!(shorten(&mut tables).is_empty());
        let event = tables.events[0].clone();
        tables.events = vec![event; LINES + 5];
        let left_out = shorten(&mut tables);
        assert_eq!(
            left_out,
            ["Findings and events, the oldest first: the first 1,000 of 1,005"]
        );
        assert_eq!(tables.events.len(), LINES);
        let row = tables.qps[0].clone();
        tables.qps = (0..ROWS as u64 + 1)
            .map(|id| (crate::record::RowId(id), row.1.clone()))
            .collect();
        let document = document_of(&tables, &Course::default());
        assert_eq!(document["snapshot"]["rows"].as_array().unwrap().len(), ROWS);
        let know = document["know"].to_string();
        assert!(
            know.contains("The table of QPs has 1,000 of 1,001 rows"),
            "{know}"
        );
    }

    #[test]
    fn all_notifiers_count_including_those_without_a_line() {
        let mut tables = sample::tables();
        let point = tables.points[0].clone();
        tables.points = vec![point; LINES + 500];
        let number = notifiers(&tables);
        shorten(&mut tables);
        let header = header();
        let story = Story {
            header: &header,
            tables: &tables,
            unchecked: &[],
            notifiers: number,
            left_out: &[],
            course: &Course::default(),
            is_file: true,
            by_interface: false,
        };
        let told = sentences::sentences(&story, &Formatter::default());
        assert!(told[0].contains("from 1,500 notifiers"), "{told:?}");
    }

    #[test]
    fn unchecked_rules_are_reported_once() {
        let mut tables = nothing();
        tables.totals.incomplete = 40;
        tables.events = vec![sample::tables().events[0].clone()];
        (tables.events[0].frame, tables.events[0].what) = (None, DAMAGED);
        tables.events[0].text = "packet 7 is cut".into();
        let unchecked = unchecked(&crate::monitor::Settings::default());
        let header = Header {
            ended: Some("the capture is incomplete: packet 7 is cut".to_owned()),
            ..header()
        };
        let story = Story {
            header: &header,
            tables: &tables,
            unchecked: &unchecked,
            notifiers: 0,
            left_out: &[],
            course: &Course::default(),
            is_file: true,
            by_interface: false,
        };
        let formatter = Formatter::default();
        let [.., wrong] = &sentences::sentences(&story, &formatter)[..] else {
            panic!("no sentence")
        };
        let start =
            "No rule is broken in the captured part of 1,234 packets (checked: 73 of 81 rules); ";
        assert!(wrong.starts_with(start), "{wrong}");
        let know = sentences::know(&story, (0, 0), &formatter).join("\n");
        assert_eq!(know.matches("packet 7").count(), 1, "{know}");
        for line in [
            "Not complete: 40 packets, whose ICRC and missing parts are not checked.",
            "fastcnp.source.untrusted, ",
            "(set --domain)",
        ] {
            assert!(know.contains(line), "{know}");
        }
    }

    #[test]
    fn moments_are_exact_to_the_nanosecond() {
        let mut tables = sample::tables();
        tables.qps.truncate(1);
        tables.qps[0].1.first_seen = sample::START;
        tables.qps[0].1.last_seen = sample::START + 1_234_567_891;
        let document = document_of(&tables, &Course::default());
        assert_eq!(
            document["rows_since"],
            serde_json::json!([{"first_seen": 0, "last_seen": 1_234_567_891}])
        );
    }

    #[test]
    fn filters_use_the_fields_of_the_notifications() {
        let filters: Vec<_> = sample::rows()
            .iter()
            .map(|(_, row)| row_filter(row, &Part::default()))
            .collect();
        assert_eq!(
            filters,
            [
                Some("fcn.kind == \"cnp\" && !fcn.copy_of && fcn.qp == 0x11 && fcn.qp_side == \"sender\" && fcn.sender_ipv4 == 198.18.1.3".to_owned()),
                Some("fcn.kind == \"fast_cnp_2\" && !fcn.copy_of && fcn.qp == 0x1234 && fcn.qp_side == \"receiver\" && fcn.sender_ipv6 == 2001:db8:0:1::10 && fastcnp.option.original_destination == 2001:db8:0:2::20".to_owned()),
                None,
                Some("fcn.kind == \"wan_fcn\" && !fcn.copy_of && wanfcn.flow_label == 0x21234 && ipv6.dst == 2001:db8:0:9::1".to_owned()),
            ]
        );
    }

    #[test]
    fn existing_files_remain_and_unwritten_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        drop(PageFile::create(&path, false).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "old").unwrap();
        let why = PageFile::create(&path, false).unwrap_err();
        assert!(why.contains("choose another name"), "{why}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        drop(PageFile::create(&path, true).unwrap());
        assert!(!path.exists());
    }
}
