//! A capture file in an interface's place: what would be sent, stamped with the time at which it was handed over.

use crate::capture_file::{CaptureWriter, Error, Interface, Options, Summary};
use crate::slots::Slots;
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use fcn_wire::LinkType;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Frames out into a pcapng file, as Ethernet.
pub struct FileTransmit {
    writer: CaptureWriter<'static>,
    slots: Slots,
    mode: Mode,
}

impl FileTransmit {
    /// Starts the file `path` for frames of up to `longest` octets, of which `slots` can wait. `application` is the
    /// program's name, for the file's header.
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
        Ok(Self {
            writer: CaptureWriter::create(path, &options, &[interface])?,
            slots,
            mode,
        })
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

    fn push(&mut self, slot: Slot, len: usize) {
        self.slots.push(slot, len);
    }

    fn flush(&mut self) -> Result<(), TransmitError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos() as u64);
        while let Some(frame) = self.slots.first() {
            self.writer
                .packet(0, now, frame, frame.len() as u32)
                .map_err(TransmitError::File)?;
            self.slots.sent();
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
