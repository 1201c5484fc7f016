//! A capture analysed as a whole, for programs without a command line or files: the same JSON and
//! the same page as those of the program.

use crate::engine::file::{FileInput, Reopen};
use crate::engine::packet_store::PacketStore;
use crate::engine::{Engine, Limits};
use crate::monitor::{Monitor, Settings};
use crate::output::Selection;
use crate::output::audit;
use crate::output::html::{self, PAGE, Story};
use crate::output::json;
use crate::output::report::Header;
use crate::tables::{Nics, TableSource, Wanted};
use crate::text::Formatter;
use fcn_tool::failure::{Exit, Failure, Result};
use fcn_tool::page::Page;
use jiff::tz::TimeZone;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

/// Reason for missing counters.
pub(crate) const NO_COUNTERS: &str = "counters are read only when capturing live";

/// A page of an analysis, without its data.
pub const STORY: Page = PAGE;

/// An analysed capture.
pub struct Analysis {
    input: FileInput,
    engine: Engine,
    header: Header,
    formatter: Formatter,
}

impl Analysis {
    /// Opens the capture that `open` opens, called `name`. Keeps packets for
    /// [`write_packets`](Self::write_packets) in about `room` octets, the latest first. `clock`
    /// returns the current time, in nanoseconds since the epoch.
    ///
    /// # Errors
    ///
    /// It is not a capture, or has an unsupported link type.
    pub fn open(open: Reopen, name: &str, room: usize, clock: fn() -> u64) -> Result<Self> {
        let mut input = FileInput::reopening(open)?;
        let mut monitor = Monitor::new(Settings::default());
        monitor.keep_course();
        let store = Some(PacketStore::new(room));
        let engine = Engine::new(monitor, store, Limits::default(), false).with_clock(clock);
        engine.set_nics(Nics {
            missing: Some(NO_COUNTERS.into()),
            ..Nics::default()
        });
        input.begin(&engine);
        Ok(Self {
            input,
            engine,
            header: Header {
                read: vec![name.to_owned()],
                ..Header::default()
            },
            formatter: Formatter::new(TimeZone::UTC),
        })
    }

    /// Analyses the next packets; returns true if there are more. A capture that is damaged is
    /// analysed up to there.
    ///
    /// # Errors
    ///
    /// Nothing in it can be analysed.
    pub fn advance(&mut self) -> Result<bool> {
        let done = match self.input.advance(&self.engine) {
            Ok(true) => return Ok(true),
            done => done.map(drop),
        };
        let ended = (self.input).conclude(done, &self.engine, &AtomicBool::new(false));
        match ended {
            Err(failure) if failure.exit() == Exit::Usage => return Err(failure),
            ended => self.header.ended = ended.err().map(|failure: Failure| failure.to_string()),
        }
        Ok(false)
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.engine.taken()
    }

    /// Writes the tables as JSON.
    ///
    /// # Errors
    ///
    /// The writer fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let tables = self.engine.tables(Wanted::ALL);
        let document = json::snapshot(&tables, &Selection::default(), &self.formatter);
        json::write(&document, out, false)
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// The writer fails.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut tables = self.engine.tables(Wanted::ALL);
        let notifiers = html::notifiers(&tables);
        let left_out = html::shorten(&mut tables);
        let course = self.engine.with(|monitor| monitor.course());
        let story = Story {
            header: &self.header,
            unchecked: &audit::unchecked(&Settings::default()),
            notifiers,
            tables: &tables,
            left_out: &left_out,
            course: &course.unwrap_or_default(),
            is_file: true,
            by_interface: false,
        };
        let document = html::document(&story, &Selection::default(), &self.formatter);
        STORY.write(&document, out)
    }

    /// Writes the kept packets of a row of the page, counted from 0, as pcapng: its notifications
    /// and its flow's data. Returns their number, and the number of packets of any row that were
    /// dropped for lack of room.
    ///
    /// # Errors
    ///
    /// There is no such row, or the writer fails.
    pub fn write_packets(
        &self,
        row: usize,
        out: impl Write + Send,
    ) -> core::result::Result<(u64, u64), String> {
        let tables = self.engine.tables(Wanted {
            qps: true,
            ..Wanted::default()
        });
        let selection = Selection::default().or_top(html::ROWS);
        let selected = selection.apply(&tables, &self.formatter);
        let Some((id, _)) = selected.rows.get(row) else {
            return Err(format!("there is no row {row}"));
        };
        self.engine.write_rows(&std::iter::once(*id).collect(), out)
    }
}

#[cfg(all(test, feature = "program"))]
mod tests {
    use super::*;
    use fcn_link::capture_file::CaptureReader;
    use std::path::Path;

    fn analysed(octets: &'static [u8]) -> Result<Analysis> {
        let open = move || CaptureReader::from(octets, "a capture");
        let mut analysis = Analysis::open(Box::new(open), "a capture", 8 << 20, || 7)?;
        while analysis.advance()? {}
        Ok(analysis)
    }

    #[test]
    fn a_capture_has_json_a_page_and_packets() {
        let sample =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv4.pcapng");
        let octets: &'static [u8] = Box::leak(std::fs::read(sample).unwrap().into_boxed_slice());
        let count = |octets| {
            let mut reader = CaptureReader::from(octets, "packets").unwrap();
            let mut count = 0;
            while reader.next().unwrap().is_some() {
                count += 1;
            }
            count
        };
        let analysis = analysed(octets).unwrap();
        assert_eq!(analysis.packets(), count(octets));
        let (mut json, mut page, mut packets) = (Vec::new(), Vec::new(), Vec::new());
        analysis.write_json(&mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["schema"], json::SNAPSHOT);
        assert_eq!(json["totals"]["packets"], analysis.packets());
        analysis.write_page(&mut page).unwrap();
        assert!(page.ends_with(b"</html>\n"));
        let (written, dropped) = analysis.write_packets(0, &mut packets).unwrap();
        assert!(written > 0 && (count(&packets[..]), dropped) == (written, 0));
        let missing = analysis.write_packets(1_000, Vec::new()).unwrap_err();
        assert_eq!(missing, "there is no row 1000");
    }

    #[test]
    fn a_damaged_capture_is_analysed_and_something_else_refused() {
        let sample =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv4.pcapng");
        let octets: &'static [u8] = Box::leak(std::fs::read(sample).unwrap().into_boxed_slice());
        let analysis = analysed(&octets[..octets.len() / 2]).unwrap();
        let ended = analysis.header.ended.unwrap();
        assert!(ended.contains("the capture is incomplete"), "{ended}");
        let refused = analysed(b"not a capture").err().unwrap().to_string();
        assert!(refused.contains("not a capture file"), "{refused}");
    }
}
