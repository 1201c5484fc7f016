//! Runs without a screen: output printed while packets arrive, and at the end.

use crate::engine::Engine;
use crate::engine::intervals::IntervalTimer;
use crate::monitor::Monitor;
use crate::output::Selection;
use crate::output::audit::{Audit, Audited, Unchecked};
use crate::output::csv::{self, Csv};
use crate::output::json::{self, Intervals};
use crate::output::lines;
use crate::output::report::{self, Header};
use crate::setup::Printing;
use crate::tables::{TableSource, Tables, Wanted};
use crate::text::{self, Formatter, clean};
use fcn_observe::time::nanos;
use fcn_tool::console::{Console, print, print_json};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::grouped;
use parking_lot::Mutex;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Maximum number of queued pieces of output; a full queue holds up packet processing. An interval
/// may have many rows.
const WAITING: usize = 4;
/// Maximum wait for output before the engine is checked for the end of its input.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Polling interval while only the last interval is outstanding.
const SOON: Duration = Duration::from_millis(1);

/// Outcome of a run without a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended by itself.
    Well,
    /// It was interrupted.
    Interrupted,
}

/// Output produced while packets arrive. Formatted by the printing thread, so that packets do not
/// wait for it.
enum Piece {
    Text(Vec<u8>),
    /// A completed interval: start, end, and the rows notified in it.
    Interval(u64, u64, Box<Tables>),
}

/// Destination and format of the pieces.
enum Printed<'w> {
    Text(&'w mut dyn Write),
    Lines(&'w mut dyn Write, Intervals),
    Csv(Box<Csv<&'w mut dyn Write>>),
}

/// Prints the requested output.
pub struct Printer {
    printing: Printing,
    selection: Selection,
    formatter: Formatter,
    /// Output produced while packets arrive.
    pieces: Receiver<Piece>,
    audit: Arc<Mutex<Audit>>,
}

impl Printer {
    /// Makes the engine, or a monitor that it will own, send the output to print while packets
    /// arrive.
    pub fn new(
        printing: Printing,
        (selection, words): (Selection, Formatter),
        monitor: &mut Monitor,
        every: Duration,
    ) -> (Self, Option<IntervalTimer<Monitor>>) {
        let (sender, pieces) = sync_channel(WAITING);
        let mut audit = Audit::new(words.clone());
        if printing == Printing::AuditJson {
            audit = audit.keeping();
        }
        let printer = Self {
            printing,
            selection,
            formatter: words,
            pieces,
            audit: Arc::new(Mutex::new(audit)),
        };
        if matches!(printing, Printing::Audit | Printing::AuditJson) {
            let (audit, sender) = (Arc::clone(&printer.audit), sender.clone());
            monitor.listen(Box::new(move |event| {
                if let Some(line) = audit.lock().take(event) {
                    // A reader that has gone away is detected when writing.
                    let _ = sender.send(Piece::Text(line.into_bytes()));
                }
            }));
        }
        let by_interval = matches!(printing, Printing::JsonLines | Printing::CsvIntervals);
        let timer = by_interval.then(|| intervals(sender, nanos(every)));
        (printer, timer)
    }

    /// Prints output as it arrives, until no more packets come or `interrupted` is set; then sets
    /// `over`.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn wait(
        &self,
        engine: &Engine,
        (interrupted, over): (&AtomicBool, &AtomicBool),
        console: &mut Console<'_>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::Well;
        let mut printed = match self.printing {
            Printing::JsonLines => Printed::Lines(&mut *console.out, Intervals::default()),
            Printing::CsvIntervals => Printed::Csv(Box::new(Csv::new(
                &mut *console.out as &mut dyn Write,
                true,
            )?)),
            _ => Printed::Text(&mut *console.out),
        };
        let mut warnings = Warnings::default();
        let mut result = Ok(());
        // Keep receiving even if the reader has gone away: the sender must not block.
        let mut print = |piece: Piece| {
            if result.is_ok() {
                result = self.print(&mut printed, piece);
            }
            if result.is_err() {
                over.store(true, Ordering::Release);
            }
        };
        loop {
            let runs = engine.runs();
            warnings.tell(engine, console.err);
            if interrupted.load(Ordering::Relaxed) && !over.swap(true, Ordering::AcqRel) {
                outcome = Outcome::Interrupted;
            }
            // After the last packet there is nothing to wait for: all its output has arrived.
            let look = if runs { POLL_INTERVAL } else { Duration::ZERO };
            match self.pieces.recv_timeout(look) {
                Ok(piece) => {
                    print(piece);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => engine.wait(look),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !runs {
                break;
            }
        }
        // The last interval is sent as well; its sender may have to wait for room in the queue.
        thread::scope(|scope| {
            let finishing = scope.spawn(|| engine.finish());
            while !finishing.is_finished() {
                match self.pieces.recv_timeout(SOON) {
                    Ok(piece) => print(piece),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        for piece in self.pieces.try_iter() {
            print(piece);
        }
        warnings.finish(engine, console.err);
        result?;
        if let Printed::Csv(csv) = printed {
            csv.finish()?;
        }
        Ok(outcome)
    }

    fn print(&self, printed: &mut Printed<'_>, piece: Piece) -> Result {
        let (selection, words) = (&self.selection, &self.formatter);
        match (printed, piece) {
            (Printed::Text(out) | Printed::Lines(out, _), Piece::Text(text)) => write(*out, &text),
            (Printed::Lines(out, intervals), Piece::Interval(from, to, tables)) => {
                let line = intervals.line(from, to, &tables, selection, words);
                json::write(&line, *out, true).map_err(|error| Failure::stdout(&error))
            }
            (Printed::Csv(csv), Piece::Interval(from, to, tables)) => {
                csv.interval(from, to, &tables, selection, words)
            }
            // Never sent.
            (Printed::Text(_), Piece::Interval(..)) | (Printed::Csv(_), Piece::Text(_)) => Ok(()),
        }
    }

    /// Prints the output due at the end; fails if an audit did.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written, or the audit found something.
    pub fn conclude(
        &self,
        engine: &Engine,
        (header, unchecked, strict): (&Header, &[Unchecked], bool),
        console: &mut Console<'_>,
    ) -> Result {
        let (selection, words) = (&self.selection, &self.formatter);
        let err = &mut *console.err;
        let mut warn = |missing: Option<String>| {
            if let Some(missing) = missing {
                // Losing a warning is not an error.
                let _ = writeln!(err, "fcn-top: warning: {missing}");
            }
        };
        match self.printing {
            Printing::Nothing | Printing::JsonLines | Printing::CsvIntervals => Ok(()),
            Printing::Json => {
                let tables = engine.tables(Wanted::ALL);
                warn(selection.wait_to_filter(&tables, words));
                let document = json::snapshot(&tables, selection, words);
                match json::write(&document, console.out, false) {
                    // The text may be read only in part.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    done => done.map_err(|error| Failure::stdout(&error)),
                }
            }
            Printing::Csv => {
                let tables = engine.tables(Wanted::ALL);
                warn(selection.wait_to_filter(&tables, words));
                if selection.of_flows {
                    let flows = selection.flows(&tables, words).0;
                    return csv::table(&mut *console.out, flows, words)
                        .map_err(|error| Failure::stdout(&error));
                }
                let mut csv = Csv::new(&mut *console.out, false)?;
                csv.rows(&tables, selection, words)?;
                csv.finish()
            }
            Printing::Report => {
                let tables = engine.tables(Wanted::ALL);
                let selected = selection.or_top(lines::ROWS);
                warn(selected.wait_for_names(&tables, words));
                let text = report::report(header, &tables, selection, words);
                print(console.out, &text)
            }
            Printing::Audit | Printing::AuditJson => {
                let tables = engine.tables(Wanted::default());
                let totals = &tables.totals;
                let packets = Audited {
                    packets: totals.packets,
                    incomplete: totals.incomplete,
                    unread: totals.unread,
                };
                let unread = text::unread(&tables.unread);
                let audit = self.audit.lock();
                if self.printing == Printing::AuditJson {
                    print_json(console.out, &audit.json(unchecked, packets))?;
                } else {
                    let summary = audit.summary(unchecked, packets, unread.as_deref());
                    print(console.out, &summary)?;
                }
                if audit.failed(strict) {
                    return Err(Failure::failed("the audit found broken rules"));
                }
                if let Some(unread) = unread {
                    return Err(
                        Failure::incomplete("the audit did not read everything").and(unread)
                    );
                }
                Ok(())
            }
        }
    }
}

/// Reports capture problems as soon as they occur: packet loss (once), each doubt about the counts,
/// and changes of interfaces.
#[derive(Debug, Default)]
pub struct Warnings {
    /// True if packet loss has been reported.
    warned_of_losses: bool,
    /// Number of doubts reported.
    doubts: usize,
}

impl Warnings {
    /// Reports everything not yet reported.
    pub fn tell(&mut self, engine: &Engine, err: &mut dyn Write) {
        for text in engine.messages() {
            // Losing a warning is not an error, here and below.
            let _ = writeln!(err, "fcn-top: {}", clean(&text));
        }
        engine.try_with(|monitor| self.doubt(monitor, engine, err));
    }

    /// Same as [`Self::tell`], after the last packet.
    pub fn finish(&mut self, engine: &Engine, err: &mut dyn Write) {
        self.tell(engine, err);
        engine.with(|monitor| {
            self.doubt(monitor, engine, err);
            // Applies to everything captured, hence only now.
            if let Some(text) = monitor.repeats() {
                let _ = writeln!(err, "fcn-top: warning: {text}");
            }
        });
    }

    /// Reports reasons to doubt everything that is counted.
    fn doubt(&mut self, monitor: &Monitor, engine: &Engine, err: &mut dyn Write) {
        for text in monitor.doubts().get(self.doubts..).unwrap_or_default() {
            self.doubts += 1;
            let _ = writeln!(err, "fcn-top: warning: {}", clean(text));
        }
        if self.warned_of_losses || !engine.is_lossy() {
            return;
        }
        self.warned_of_losses = true;
        let (when, advice) = if engine.is_recorded() {
            ("were lost during capture", "")
        } else {
            (
                "are being lost",
                "; a larger kernel ring (--buffer) may help",
            )
        };
        let _ = writeln!(
            err,
            "fcn-top: warning: packets {when}: {}; counts may be too low{advice}",
            lost(&monitor.tables(Wanted::default()))
        );
    }
}

/// Returns the losses so far, by the kernel and by the interface.
pub fn lost(tables: &Tables) -> String {
    let (kernel, interface) = tables.dropped();
    let number = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), grouped);
    format!(
        "dropped by the kernel {}, by the interface {}",
        number(kernel),
        number(interface)
    )
}

/// Returns a timer that sends each interval when it ends.
fn intervals(sender: SyncSender<Piece>, every: u64) -> IntervalTimer<Monitor> {
    let mut mark = 0;
    IntervalTimer::new(
        every,
        Box::new(move |monitor, from, to, over| {
            // Rates are those of the interval. The last one ends with the last known time.
            let to = if over {
                monitor.advance(to);
                to
            } else {
                monitor.now().saturating_add(1).clamp(from, to)
            };
            let tables = monitor.tables_since(mark);
            mark = monitor.mark();
            let _ = sender.send(Piece::Interval(from, to, Box::new(tables)));
        }),
    )
}

/// Writes and flushes. A broken pipe is an error here: unlike a document, which may be read in
/// part, an endless stream is useless without a reader.
fn write(out: &mut dyn Write, text: &[u8]) -> Result {
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::stdout(&error))
}
