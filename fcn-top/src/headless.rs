//! Without a screen: what is printed as packets come, and at the end.

use crate::asked::Printing;
use crate::engine::beat::Beat;
use crate::engine::{Engine, nanoseconds};
use crate::monitor::Monitor;
use crate::output::Selection;
use crate::output::audit::{Audit, Checked};
use crate::output::csv::Csv;
use crate::output::json::{self, Intervals};
use crate::output::report::{self, Header};
use crate::tables::{Wanted, Watched};
use crate::text::Words;
use fcn_tool::console::{Console, say, say_json};
use fcn_tool::failure::{Failure, Result};
use parking_lot::Mutex;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Pieces of text that may wait for whoever reads them; then packets wait.
const WAITING: usize = 64;
/// How often it is looked whether all is over.
const LOOK: Duration = Duration::from_millis(20);

/// What a run without a screen came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Well,
    /// Someone stopped it.
    Interrupted,
}

/// Prints what was asked for.
pub struct Printer {
    printing: Printing,
    selection: Selection,
    words: Words,
    /// What is printed as packets come.
    pieces: Receiver<Vec<u8>>,
    audit: Arc<Mutex<Audit>>,
    csv: Arc<Mutex<Option<Csv<Pieces>>>>,
}

impl Printer {
    /// Has the engine, or a monitor that it will have, tell what is printed as packets come.
    pub fn new(
        printing: Printing,
        (selection, words): (Selection, Words),
        monitor: &mut Monitor,
        every: Duration,
    ) -> (Self, Option<Beat<Monitor>>) {
        let (sender, pieces) = sync_channel(WAITING);
        let mut audit = Audit::new(words.clone());
        if printing == Printing::AuditJson {
            audit = audit.keeping();
        }
        let printer = Self {
            printing,
            selection,
            words,
            pieces,
            audit: Arc::new(Mutex::new(audit)),
            csv: Arc::default(),
        };
        if matches!(printing, Printing::Audit | Printing::AuditJson) {
            let (audit, sender) = (Arc::clone(&printer.audit), sender.clone());
            monitor.listen(Box::new(move |event| {
                if let Some(line) = audit.lock().hear(event) {
                    // That nobody reads on is found out where it is written.
                    let _ = sender.send(line.into_bytes());
                }
            }));
        }
        let beat = printer.beat(sender, nanoseconds(every));
        (printer, beat)
    }

    fn beat(&self, sender: SyncSender<Vec<u8>>, every: u64) -> Option<Beat<Monitor>> {
        let (selection, words) = (self.selection.clone(), self.words.clone());
        let tables = |monitor: &mut Monitor, to: u64| {
            // The interval's own last moment, so that rates are those of the interval.
            monitor.advance(to.saturating_sub(1));
            monitor.tables(Wanted {
                qps: true,
                ..Wanted::default()
            })
        };
        match self.printing {
            Printing::JsonLines => {
                let mut intervals = Intervals::default();
                Some(Beat::new(
                    every,
                    Box::new(move |monitor, from, to| {
                        let tables = tables(monitor, to);
                        let line = intervals.line(from, to, &tables, &selection, &words, false);
                        let _ = sender.send(format!("{line}\n").into_bytes());
                    }),
                ))
            }
            Printing::CsvIntervals => {
                *self.csv.lock() = Some(Csv::new(Pieces::new(sender), true));
                let csv = Arc::clone(&self.csv);
                Some(Beat::new(
                    every,
                    Box::new(move |monitor, from, to| {
                        let tables = tables(monitor, to);
                        if let Some(csv) = csv.lock().as_mut() {
                            let _ = csv.interval(from, to, &tables, &selection, &words, false);
                        }
                    }),
                ))
            }
            _ => None,
        }
    }

    /// Prints what comes as it comes, until no more packets do, or `asked` is set; sets `over` then.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn wait(
        &self,
        engine: &Engine,
        (asked, over): (&AtomicBool, &AtomicBool),
        console: &mut Console<'_>,
    ) -> Result<Ended> {
        let mut ended = Ended::Well;
        let mut written = Ok(());
        let mut print = |piece: Vec<u8>| {
            if written.is_ok() {
                written = write(console, &piece);
            }
            written.is_ok()
        };
        loop {
            let runs = engine.runs();
            if asked.load(Ordering::Relaxed) && !over.swap(true, Ordering::AcqRel) {
                ended = Ended::Interrupted;
            }
            match self.pieces.recv_timeout(LOOK) {
                // Also where nobody reads on: whoever sends must not wait for it.
                Ok(piece) => {
                    if !print(piece) {
                        over.store(true, Ordering::Release);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !runs {
                break;
            }
        }
        engine.finish();
        if let Some(csv) = self.csv.lock().take() {
            csv.finish()?;
        }
        for piece in self.pieces.try_iter() {
            print(piece);
        }
        written.map(|()| ended)
    }

    /// Prints what is printed at the end; fails where an audit did.
    ///
    /// # Errors
    /// Standard output cannot be written, or the audit found something.
    pub fn conclude(
        &self,
        engine: &Engine,
        (header, checked, strict): (&Header, Checked, bool),
        console: &mut Console<'_>,
    ) -> Result {
        let tables = || {
            engine.tables(Wanted {
                qps: true,
                points: true,
                hops: true,
                events: true,
                detail: None,
            })
        };
        let (selection, words) = (&self.selection, &self.words);
        match self.printing {
            Printing::Nothing | Printing::JsonLines | Printing::CsvIntervals => Ok(()),
            Printing::Json => say_json(console.out, &json::snapshot(&tables(), selection, words)),
            Printing::Csv => {
                let mut csv = Csv::new(&mut *console.out, false);
                csv.rows(&tables(), selection, words)?;
                csv.finish()
            }
            Printing::Report => {
                let text = report::report(header, &tables(), selection, words);
                say(console.out, &text)
            }
            Printing::Audit | Printing::AuditJson => {
                let packets = engine.with(|monitor| monitor.totals().packets);
                let audit = self.audit.lock();
                if self.printing == Printing::AuditJson {
                    say_json(console.out, &audit.json(checked, packets))?;
                } else {
                    say(console.out, &audit.summary(checked, packets))?;
                }
                if audit.failed(strict) {
                    return Err(Failure::failed("the audit found broken rules"));
                }
                Ok(())
            }
        }
    }
}

/// Unlike a text, which may be read in part, what comes without end is of no use to nobody.
fn write(console: &mut Console<'_>, piece: &[u8]) -> Result {
    console
        .out
        .write_all(piece)
        .and_then(|()| console.out.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Sends what is written on, piece by piece.
struct Pieces {
    sender: SyncSender<Vec<u8>>,
    piece: Vec<u8>,
}

impl Pieces {
    const fn new(sender: SyncSender<Vec<u8>>) -> Self {
        Self {
            sender,
            piece: Vec::new(),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        self.sender
            .send(std::mem::take(&mut self.piece))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
