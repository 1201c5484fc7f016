//! A capture file in an interface's place: what would be sent, stamped with the time at which it is due.

use crate::capture_file::{CaptureWriter, Error, Interface, Options, Summary};
use crate::slots::Slots;
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use fcn_wire::LinkType;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The name that stands for standard output.
pub const STDOUT: &str = "-";

/// Frames out into a pcapng file, as Ethernet.
pub struct FileTransmit {
    writer: CaptureWriter<'static>,
    slots: Slots,
    /// When the next frame pushed is due, and when those are that wait.
    stamp: u64,
    stamps: VecDeque<u64>,
    is_live: bool,
    mode: Mode,
}

impl FileTransmit {
    /// Starts the file `path` ([`STDOUT`]: on standard output) for frames of up to `longest` octets, of which `slots` can wait.
    /// `application` is the program's name, for the file's header.
    ///
    /// # Errors
    /// As for [`CaptureWriter::create`].
    pub fn create(
        path: &Path,
        (slots, longest): (usize, usize),
        application: &str,
    ) -> Result<Self, Error> {
        let options = Options {
            application,
            ..Options::default()
        };
        let interface = Interface {
            name: "",
            description: "",
            link: LinkType::Ethernet,
            snap_len: 0,
        };
        let slots = Slots::new(slots, longest);
        let mode = Mode {
            target: path.display().to_string(),
            queue: None,
            kind: ModeKind::CaptureFile,
            why_not_better: Vec::new(),
            slots: (slots.count(), slots.slot_len()),
        };
        let writer = if path == Path::new(STDOUT) {
            CaptureWriter::to(io::stdout(), &options, &[interface])
        } else {
            CaptureWriter::create(path, &options, &[interface])
        };
        Ok(Self {
            writer: writer?,
            stamps: VecDeque::with_capacity(slots.count()),
            stamp: 0,
            is_live: false,
            slots,
            mode,
        })
    }

    /// Has frames written when they are due, as onto a link, for somebody who watches them come; else they are written at once.
    pub const fn make_live(&mut self) {
        self.is_live = true;
    }

    /// Whether they are.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.is_live
    }

    /// Writes what is buffered and gives the file its name.
    ///
    /// # Errors
    /// As for [`CaptureWriter::finish`].
    pub fn finish(self) -> Result<Summary, Error> {
        self.writer.finish()
    }
}

impl Transmit for FileTransmit {
    fn slots(&self) -> usize {
        self.slots.count()
    }

    fn slot_len(&self) -> usize {
        self.slots.slot_len()
    }

    fn take(&mut self) -> Option<Slot> {
        self.slots.take()
    }

    fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    fn stamp(&mut self, at: u64) {
        self.stamp = at;
    }

    fn push(&mut self, slot: Slot, len: usize) {
        self.slots.push(slot, len);
        self.stamps.push_back(self.stamp);
    }

    fn flush(&mut self) -> Result<(), TransmitError> {
        while let (Some(frame), Some(at)) = (self.slots.first(), self.stamps.front()) {
            self.writer
                .packet(0, *at, frame, frame.len() as u32)
                .map_err(TransmitError::File)?;
            self.slots.sent();
            self.stamps.pop_front();
        }
        if self.writer.is_read_at_once() {
            self.writer.flush().map_err(TransmitError::File)?;
        }
        self.slots.counts.kicks += 1;
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<(), TransmitError> {
        self.flush()
    }

    fn in_flight(&self) -> usize {
        self.slots.waiting()
    }

    fn quick_counts(&self) -> Counts {
        self.slots.counts
    }

    fn counts(&mut self) -> Counts {
        self.slots.counts
    }

    fn mode(&self) -> &Mode {
        &self.mode
    }
}
