//! A page to send: what was seen in three sentences, charts over the whole run, and the tables.
//!
//! Its data is the [snapshot] that `--json` prints, with what only a page has: the sentences, the run over time, and filters
//! for Wireshark. `story.js` makes a page of that.

mod sentences;

use super::Selection;
use super::audit::Unchecked;
use super::json::{Snapshot, snapshot};
use super::part::Part;
use super::report::Header;
use crate::new_file;
use crate::record::{
    Cell, Column, CounterRecord, EventRecord, HopRecord, InterfaceRecord, PointRecord, QpRecord,
    QpSide, Record,
};
use crate::tables::{Course, FlowCourse, FlowStep, Tables};
use crate::text::{self, Words};
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

/// What a page's data is.
pub const STORY: &str = "fcn-top/story";

/// Rows of the table of QPs where no number is given.
pub const ROWS: usize = 1_000;

/// Most lines of each other table.
const LINES: usize = 1_000;

/// What a page tells.
#[derive(Clone, Copy, Debug)]
pub struct Story<'t> {
    /// What the tables do not say.
    pub header: &'t Header,
    /// All of them; [`shortened`](shorten) for a page.
    pub tables: &'t Tables,
    /// The rules that were not checked.
    pub unchecked: &'t [Unchecked],
    /// How many have notified, whatever is left in the tables.
    pub notifiers: u64,
    /// What is not in them any more.
    pub left_out: &'t [String],
    /// The run over time.
    pub course: &'t Course,
    /// Whether frames have numbers by which they are found again: those of a file.
    pub is_file: bool,
    /// Whether rows count what each interface has seen.
    pub by_interface: bool,
}

/// The data of a page.
#[derive(Serialize)]
pub struct Document<'t> {
    columns: BTreeMap<&'static str, &'static [Column]>,
    course: Steps,
    /// Whether some rows differ in nothing but where they were seen.
    differ_by_place: bool,
    /// When each event was, in nanoseconds since the first packet: JavaScript has no numbers for those since the epoch.
    events_since: Vec<i64>,
    filters: Filters,
    /// What people call each kind of notification, in an order that is always the same.
    kinds: [(&'static str, &'static str); Kind::ALL.len()],
    know: Vec<String>,
    /// Why means are more than peaks, where some are.
    mean_and_peak: Option<&'static str>,
    made_by: String,
    /// Names of addresses, where there are.
    names: BTreeMap<String, String>,
    /// Why a row has no verdict.
    no_verdict: &'static str,
    /// Fewer notifications than this are told beside a verdict.
    few: u64,
    /// Which part of that was looked at; `None` for all.
    part: Option<String>,
    /// What each notifier acts as.
    points_as: Vec<&'static str>,
    read: Vec<String>,
    /// Who notifies, of each row.
    rows_by: Vec<String>,
    /// The times in each row, in nanoseconds since the first packet, by column.
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
    /// Whether `frame.number` finds frames.
    frames: bool,
    /// The notifications of each row; none where addresses are masked.
    rows: Vec<Option<String>>,
    /// The plugin's expert items, by rule.
    rules: BTreeMap<&'static str, String>,
}

/// The run over time; each list has a figure for each step.
#[derive(Serialize)]
struct Steps {
    /// Start of the first step, in nanoseconds since the first packet, which lies in it.
    start: i64,
    step: u64,
    notifications: BTreeMap<&'static str, Vec<u32>>,
    data: Vec<u32>,
    ce: Vec<u32>,
    octets: Vec<u64>,
    flows: Vec<Flow>,
}

/// A flow over time, from step number `from` on; what is missing behind is 0.
#[derive(Serialize)]
struct Flow {
    sender: String,
    receiver: String,
    receiver_qp: u32,
    notified: u64,
    /// From when on it is told apart, in nanoseconds since the first packet.
    since: i64,
    from: usize,
    notifications: Vec<u32>,
    data: Vec<u32>,
    ce: Vec<u32>,
    octets: Vec<u64>,
}

/// A file for a page, made before the run that fills it. Dropped before [`write`](Self::write), it leaves nothing.
#[derive(Debug)]
pub struct PageFile {
    path: PathBuf,
    file: Option<File>,
}

impl PageFile {
    /// A new file; `replace` is whether one that is there may go.
    ///
    /// # Errors
    /// There is a file of that name already, or it cannot be made: what failed, on what, and what to do.
    pub fn create(path: &Path, replace: bool) -> Result<Self, String> {
        if replace && path.is_file() {
            std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Self {
            file: Some(new_file::create(path)?),
            path: path.to_owned(),
        })
    }

    /// Writes the page into it; returns how many octets it has.
    ///
    /// # Errors
    /// It cannot be written: what failed, and on what.
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
            // What stays is empty, and nobody is left to be told.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// How many have notified.
pub fn notifiers(tables: &Tables) -> u64 {
    let points = tables.points.iter();
    points.filter(|point| point.total > 0).count() as u64
}

/// Takes from the tables what a page has no room for, and says what that was.
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

/// What a page is made of: of the rows those that are selected.
pub fn document<'t>(story: &Story<'t>, selection: &Selection, words: &'t Words) -> Document<'t> {
    let Story { header, tables, .. } = *story;
    let selection = selection.or_top(ROWS);
    let selected = selection.apply(tables, words);
    let filters = Filters {
        frames: story.is_file,
        rows: (selected.rows.iter())
            .map(|(_, row)| {
                row_filter(row, &header.part).filter(|_| !words.masks() && !story.by_interface)
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
            (PointRecord::TABLE, PointRecord::COLUMNS),
            (HopRecord::TABLE, HopRecord::COLUMNS),
            (EventRecord::TABLE, EventRecord::COLUMNS),
            (InterfaceRecord::TABLE, InterfaceRecord::COLUMNS),
            (CounterRecord::TABLE, CounterRecord::COLUMNS),
        ]
        .into(),
        course: steps(story.course, since, words),
        differ_by_place: text::differ_by_place(selected.rows.iter().map(|(_, row)| row)),
        events_since: tables.events.iter().map(|event| since(event.at)).collect(),
        filters,
        kinds: Kind::ALL.map(|kind| (kind.id(), kind.name())),
        know: sentences::know(story, (selected.rows.len(), selected.matched), words),
        mean_and_peak: text::mean_and_peak(selected.rows.iter().map(|(_, row)| row)),
        made_by: format!("fcn-top {}", env!("CARGO_PKG_VERSION")),
        names: names(story, selected.rows.iter().map(|(_, row)| row), words),
        no_verdict: text::NO_VERDICT,
        few: text::FEW,
        points_as: (tables.points.iter())
            .map(|point| text::acts_as(point.notifier_role, point.made_by))
            .collect(),
        part: header
            .part
            .words()
            .map(|part| words.text(&part).into_owned()),
        read: read.map(|read| words.text(read).into_owned()).collect(),
        rows_by: (selected.rows.iter()).map(|(_, row)| by(row)).collect(),
        rows_since: (selected.rows.iter())
            .map(|(_, row)| times(row, since))
            .collect(),
        schema: STORY,
        sentences: sentences::sentences(story, words),
        snapshot: snapshot(tables, &selection, words),
        time: tables.started.map_or_else(String::new, |started| {
            let began = words.day_and_time(started);
            match tables.span() {
                0 => format!("at {began}"),
                span => format!("{} from {began}", text::span(span)),
            }
        }),
        version: 1,
    }
}

/// Who notifies, behind the address.
fn by(row: &QpRecord) -> String {
    let role = text::acts_as(row.notifier_role, row.made_by);
    // Only the kind says so.
    let how = if row.kind == Kind::Cnp { "" } else { "as " };
    match text::more_notifiers(row) {
        // It is the row's, and not of the one that is named.
        Some(more) => format!("{more} (mostly {how}{role})"),
        None => format!("({how}{role})"),
    }
}

/// The times in a row, in nanoseconds since the first packet, by column.
fn times(row: &QpRecord, since: impl Fn(u64) -> i64) -> BTreeMap<&'static str, i64> {
    let cells = QpRecord::COLUMNS.iter().zip(0..);
    let times = cells.filter_map(|(column, number)| match row.cell(number) {
        Cell::Moment(at) => Some((column.id, since(at))),
        _ => None,
    });
    times.collect()
}

/// The names of the addresses in the tables, where they are known.
fn names<'r>(
    story: &Story<'r>,
    rows: impl Iterator<Item = &'r QpRecord>,
    words: &Words,
) -> BTreeMap<String, String> {
    let Story { tables, course, .. } = *story;
    let flows = course.flows.iter();
    let flows = flows.flat_map(|flow| [flow.key.sender, flow.key.receiver]);
    let all = tables.addresses(rows).chain(flows);
    all.map(|address| (words.exact_address(address), words.address(address)))
        .filter(|(address, name)| address != name)
        .map(|(address, name)| (address, words.text(&name).into_owned()))
        .collect()
}

fn steps(course: &Course, since: impl Fn(u64) -> i64, words: &Words) -> Steps {
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
            .map(|flow| self::flow(flow, since(flow.since), words))
            .collect(),
    }
}

fn flow(flow: &FlowCourse, since: i64, words: &Words) -> Flow {
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
        sender: words.exact_address(flow.key.sender),
        receiver: words.exact_address(flow.key.receiver),
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

/// The display filter, with the plugin's fields, that finds a row's notifications in the part that was looked at, each where
/// it was seen first. Addresses are those that the plugin has found: a frame may have headers of tunnels and of other packets.
fn row_filter(row: &QpRecord, part: &Part) -> Option<String> {
    // The QP that notifications of this kind name.
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
    // An FCN names no sender.
    let sender = row.sender.filter(|_| row.flow_label.is_none());
    let _ = match (sender, row.told) {
        (Some(IpAddr::V4(sender)), _) => write!(filter, " && fcn.sender_ipv4 == {sender}"),
        (Some(IpAddr::V6(sender)), _) => write!(filter, " && fcn.sender_ipv6 == {sender}"),
        (None, IpAddr::V4(told)) => write!(filter, " && ip.dst == {told}"),
        (None, IpAddr::V6(told)) => write!(filter, " && ipv6.dst == {told}"),
    };
    // The same number may be a QP of another receiver, too.
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
        let (selection, words) = (Selection::default(), Words::default());
        serde_json::to_value(document(&story, &selection, &words)).unwrap()
    }

    #[test]
    fn a_page_has_the_tables_as_json_prints_them_and_what_is_as_committed() {
        let (tables, course) = (sample::tables(), sample::course());
        let mut document = document_of(&tables, &course);
        let members = document.as_object_mut().unwrap();
        let words = Words::default();
        let snapshot = snapshot(&tables, &Selection::default(), &words);
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
    fn what_was_seen_is_told_as_it_is() {
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
        // Another kind about the same flow is no other flow; what befell the capture is told.
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
        // Of two that have sent as many, neither is named.
        let mut alike = tables.clone();
        alike.points.truncate(2);
        alike.points[1].total = alike.points[0].total;
        let text = told(&alike);
        assert!(text.contains("from 2 notifiers, beside"), "{text}");
        // Who made plain CNPs, these do not say.
        tables.points.retain(|point| point.made_by.is_some());
        let text = told(&tables);
        assert!(
            text.contains("(inferred: network, in receiver's name)"),
            "{text}"
        );
    }

    #[test]
    fn tables_are_shortened_and_that_is_said() {
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
    fn all_notifiers_count_also_those_that_have_no_line() {
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
        let told = sentences::sentences(&story, &Words::default());
        assert!(told[0].contains("from 1,500 notifiers"), "{told:?}");
    }

    #[test]
    fn what_was_not_checked_is_told_and_nothing_twice() {
        let mut tables = nothing();
        tables.totals.incomplete = 40;
        tables.events = vec![sample::tables().events[0].clone()];
        (tables.events[0].frame, tables.events[0].what) = (None, DAMAGED);
        tables.events[0].text = "packet 7 is cut".into();
        let unchecked = unchecked(&crate::monitor::Settings::default());
        let header = Header {
            ended: Some("the capture is not whole: packet 7 is cut".to_owned()),
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
        let words = Words::default();
        let [.., wrong] = &sentences::sentences(&story, &words)[..] else {
            panic!("no sentence")
        };
        let start =
            "No rule is broken in what was captured of 1,234 packets (checked: 70 of 78 rules); ";
        assert!(wrong.starts_with(start), "{wrong}");
        let know = sentences::know(&story, (0, 0), &words).join("\n");
        assert_eq!(know.matches("packet 7").count(), 1, "{know}");
        for line in [
            "Not whole: 40 packets, of which the ICRC and what else is missing are not checked.",
            "fastcnp.source.untrusted, ",
            "(give --domain)",
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
    fn filters_name_what_notifications_name() {
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
    fn a_file_that_is_there_stays_and_one_that_is_not_written_goes() {
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
