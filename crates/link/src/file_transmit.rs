//! A capture file in an interface's place: what would be sent, stamped with the time at which it is due.

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

/// Where frames were seen, by name and description: the interfaces of the capture that they come from, told by the one who
/// reads it, maybe as it goes; or the vantage points of a simulation.
#[derive(Clone, Debug, Default)]
pub struct SeenAt(Arc<Mutex<Vec<(String, String)>>>);

impl SeenAt {
    /// Places with these names, all that there are.
    #[must_use]
    pub fn named(names: Vec<String>) -> Self {
        let places = names.into_iter().map(|name| (name, String::new()));
        Self(Arc::new(Mutex::new(places.collect())))
    }

    /// Learns those of `interfaces`, which are all so far, that are new.
    pub fn learn(&self, interfaces: &[ReadInterface]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = interfaces.get(known.len()..).unwrap_or_default();
        let places = new
            .iter()
            .map(|seen| (seen.name.clone(), seen.description.clone()));
        known.extend(places);
    }
}

/// Makes of frames what is written in their place.
pub trait Wrap: Send {
    /// Writes into an empty buffer what comes in the place of a frame seen at an interface when it is due; nothing where nothing
    /// is to be written.
    fn wrap(&mut self, seen: (u32, u64), frame: &[u8], out: &mut Vec<u8>);

    /// Writes what is left once there are no more frames, and says for which interface and time; `None` where there is nothing.
    fn rest(&mut self, out: &mut Vec<u8>) -> Option<(u32, u64)>;
}

/// Frames out into a pcapng file, as Ethernet.
pub struct FileTransmit {
    writer: CaptureWriter<'static>,
    slots: Slots,
    /// When the next frame pushed is due and where it was seen, and the same of those that wait.
    stamp: (u64, u32),
    stamps: VecDeque<(u64, u32)>,
    seen_at: SeenAt,
    wrap: Option<(Box<dyn Wrap>, Vec<u8>)>,
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
        let slots = Slots::new(slots, longest);
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
            seen_at: SeenAt::default(),
            wrap: None,
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

    /// Has the file describe its interfaces as those that frames were `seen_at`; else they have no names.
    pub fn describe(&mut self, seen_at: SeenAt) {
        self.seen_at = seen_at;
    }

    /// Has `wrap` make of each frame what is written.
    pub fn wrap(&mut self, wrap: Box<dyn Wrap>) {
        self.wrap = Some((wrap, Vec::new()));
    }

    /// Describes the interfaces up to `number`, as far as the file has not yet, and those that are known already: whoever
    /// reads packets one by one is to know of several places before the first. All of them are Ethernet, as the frames are.
    #[inline]
    fn require(&mut self, number: u32) -> Result<(), Error> {
        if (number as usize) < self.writer.interfaces() {
            return Ok(());
        }
        let known = self.seen_at.0.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let needed = known.len().max(number as usize + 1);
        for there in self.writer.interfaces()..needed {
            let seen = known.get(there);
            self.writer.interface(&Interface {
                name: seen.map_or("", |(name, _)| name),
                description: seen.map_or("", |(_, description)| description),
                link: LinkType::Ethernet,
                // No octet of a frame that is sent is left out.
                snap_len: 0,
            })?;
        }
        Ok(())
    }

    /// Writes what is buffered and gives the file its name.
    ///
    /// # Errors
    /// As for [`CaptureWriter::finish`].
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.require(0)?;
        if let Some((mut wrap, mut rest)) = self.wrap.take() {
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
            if let Some((wrap, wrapped)) = &mut self.wrap {
                wrapped.clear();
                wrap.wrap((interface, at), frame, wrapped);
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
