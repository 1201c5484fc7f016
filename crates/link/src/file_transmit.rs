//! A capture file in place of an interface: writes the frames that would be sent, with the time at
//! which they are due.

use crate::capture_file::{CaptureWriter, Error, Interface, Options, ReadInterface, Summary};
use crate::slots::Slots;
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use fcn_wire::LinkType;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The name that stands for standard output.
pub const STDOUT: &str = "-";

/// Names and descriptions of capture points: the interfaces of the capture that frames come from,
/// added by its reader, possibly while reading; or the capture points of a simulation.
#[derive(Clone, Debug, Default)]
pub struct CapturePoints(Arc<Mutex<Vec<(String, String)>>>);

impl CapturePoints {
    /// Creates a complete list of capture points with these names.
    #[must_use]
    pub fn named(names: Vec<String>) -> Self {
        let places = names.into_iter().map(|name| (name, String::new()));
        Self(Arc::new(Mutex::new(places.collect())))
    }

    /// Adds the new ones of `interfaces`, which lists all of them so far.
    pub fn learn(&self, interfaces: &[ReadInterface]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = interfaces.get(known.len()..).unwrap_or_default();
        let places = new
            .iter()
            .map(|seen| (seen.name.clone(), seen.description.clone()));
        known.extend(places);
    }
}

/// Transforms frames before they are written.
pub trait FrameTransform: Send {
    /// Writes into an empty buffer the replacement for a frame that was captured at an interface at
    /// its due time. Writes nothing if the frame is to be omitted.
    fn transform(&mut self, seen: (u32, u64), frame: &[u8], out: &mut Vec<u8>);

    /// Writes what is left after the last frame, and returns its interface and time; `None` if
    /// nothing is left.
    fn rest(&mut self, out: &mut Vec<u8>) -> Option<(u32, u64)>;
}

/// Writes frames to a pcapng file, as Ethernet.
pub struct FileTransmit {
    writer: CaptureWriter<'static>,
    slots: Slots,
    /// Due time and capture point of the next frame pushed, and the same of the frames that wait.
    stamp: (u64, u32),
    stamps: VecDeque<(u64, u32)>,
    capture_points: CapturePoints,
    transform: Option<(Box<dyn FrameTransform>, Vec<u8>)>,
    is_live: bool,
    mode: Mode,
}

impl FileTransmit {
    /// Creates the file `path` ([`STDOUT`]: standard output) for frames of up to `max_frame_len`
    /// octets, of which `slots` can wait. `application` is the program's name, for the file header.
    ///
    /// # Errors
    /// As for [`CaptureWriter::create`].
    pub fn create(
        path: &Path,
        (slots, max_frame_len): (usize, usize),
        application: &str,
    ) -> Result<Self, Error> {
        let options = Options {
            application,
            ..Options::default()
        };
        let slots = Slots::new(slots, max_frame_len);
        let mode = Mode {
            target: path.display().to_string(),
            queue: None,
            kind: ModeKind::CaptureFile,
            why_not_better: Vec::new(),
            slots: slots.extent(),
        };
        let writer = if path == Path::new(STDOUT) {
            CaptureWriter::to(io::stdout(), &options, &[])
        } else {
            CaptureWriter::create(path, &options, &[])
        };
        Ok(Self {
            writer: writer?,
            stamps: VecDeque::with_capacity(slots.extent().0),
            stamp: (0, 0),
            capture_points: CapturePoints::default(),
            transform: None,
            is_live: false,
            slots,
            mode,
        })
    }

    /// Writes frames when they are due, as on a link, for a reader that follows the file. By
    /// default they are written immediately.
    pub const fn set_live(&mut self) {
        self.is_live = true;
    }

    /// True if frames are written when they are due.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.is_live
    }

    /// Names and describes the interfaces of the file as in `capture_points`. By default they have
    /// no names.
    pub fn describe(&mut self, capture_points: CapturePoints) {
        self.capture_points = capture_points;
    }

    /// Passes each frame through `transform` before it is written.
    pub fn transform_with(&mut self, transform: Box<dyn FrameTransform>) {
        self.transform = Some((transform, Vec::new()));
    }

    /// Describes the interfaces up to `number`, if the file does not yet, and those that are known
    /// already: a reader that follows packet by packet should learn of several capture points
    /// before the first packet. All of them are Ethernet, as the frames are.
    #[inline]
    fn require(&mut self, number: u32) -> Result<(), Error> {
        if (number as usize) < self.writer.interfaces() {
            return Ok(());
        }
        let known = self.capture_points.0.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let needed = known.len().max(number as usize + 1);
        for there in self.writer.interfaces()..needed {
            let seen = known.get(there);
            self.writer.interface(&Interface {
                name: seen.map_or("", |(name, _)| name),
                description: seen.map_or("", |(_, description)| description),
                link: LinkType::Ethernet,
                // Frames that are sent are complete.
                snap_len: 0,
            })?;
        }
        Ok(())
    }

    /// Writes what is buffered and renames the file to its final name.
    ///
    /// # Errors
    /// As for [`CaptureWriter::finish`].
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.require(0)?;
        if let Some((mut wrap, mut rest)) = self.transform.take() {
            while let Some((interface, at)) = wrap.rest(&mut rest) {
                self.writer
                    .packet(interface, at, &rest, rest.len() as u32)?;
            }
        }
        self.writer.finish()
    }
}

impl Transmit for FileTransmit {
    fn take(&mut self) -> Option<Slot> {
        self.slots.take()
    }

    fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    fn stamp(&mut self, at: u64, interface: u32) {
        self.stamp = (at, interface);
    }

    fn push(&mut self, slot: Slot, len: usize) {
        self.slots.push(slot, len);
        self.stamps.push_back(self.stamp);
    }

    fn flush(&mut self) -> Result<(), TransmitError> {
        while let Some((at, interface)) = self.stamps.front().copied() {
            self.require(interface)?;
            let mut frame = self.slots.first().unwrap_or_default();
            let mut is_written = true;
            if let Some((wrap, wrapped)) = &mut self.transform {
                wrapped.clear();
                wrap.transform((interface, at), frame, wrapped);
                frame = wrapped;
                is_written = !frame.is_empty();
            }
            if is_written {
                self.writer
                    .packet(interface, at, frame, frame.len() as u32)?;
            }
            self.slots.sent();
            self.stamps.pop_front();
        }
        if self.writer.is_read_at_once() {
            self.writer.flush()?;
        }
        self.slots.counts.kicks += 1;
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<(), TransmitError> {
        self.flush()
    }

    fn quick_counts(&self) -> Counts {
        self.slots.counts
    }

    fn mode(&self) -> &Mode {
        &self.mode
    }
}
