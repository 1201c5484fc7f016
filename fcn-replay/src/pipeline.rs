//! From the file to frames that can be sent: read, selected, rewritten, and given a queue and a
//! time, one at a time. Callers decide whether to keep them in memory or to send them immediately.

use crate::omissions::{Reason, Tally};
use crate::rewriting::Rewriting;
use crate::selection::Selection;
use crate::splitting::Splitting;
use crate::timing::{Loops, Places, Stamp, TimeBase};
use fcn_link::capture_file::{CaptureReader, Packet, ReadError, ReadInterface};
use fcn_link::file_transmit::CapturePoints;
use fcn_tool::failure::{Failure, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Length of an Ethernet header, in octets.
pub const ETHERNET: usize = 14;
/// Length of a VLAN tag, in octets, which an MTU does not include.
const TAG: usize = 4;

/// Maximum length of frames that can be sent.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// MTU of each interface; `None` if there is no interface.
    pub mtu: [Option<u32>; 2],
    /// Maximum length of a frame without FCS, in octets, regardless of the MTU.
    pub longest: usize,
}

impl Room {
    /// True if `frame` fits the interface `side`.
    #[inline]
    #[must_use]
    pub fn has(&self, frame: &[u8], side: usize) -> bool {
        let tagged = matches!(
            frame.get(12..14),
            Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00])
        );
        // Linux permits one tag in addition to the MTU.
        let header = ETHERNET + if tagged { TAG } else { 0 };
        let mtu = self.mtu.get(side).copied().flatten();
        frame.len() <= self.longest && mtu.is_none_or(|mtu| frame.len() <= header + mtu as usize)
    }
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// Number in the capture, from 1.
    pub number: u64,
    /// Interface of the capture.
    pub interface: u32,
    /// Position in the loop, in the units of [`Places`].
    pub place: u64,
    /// Queue by which it leaves.
    pub job: usize,
    /// The frame, from its Ethernet header.
    pub octets: &'a [u8],
}

/// Name, description and link type of an interface.
type About = (String, String, u32);

/// Interfaces of captures that are sent one after the other. Interfaces of different files that have
/// the same name, description and link type are one interface, as in the files of a ring buffer.
#[derive(Default)]
struct Interfaces {
    known: Vec<ReadInterface>,
    /// Index into `known` of each interface of the current file.
    numbers: Vec<u32>,
    /// How many interfaces of the current file are described so.
    alike: HashMap<About, u32>,
    /// Index into `known` of the first, second and so on that is described so.
    index: HashMap<(About, u32), u32>,
}

impl Interfaces {
    /// Processes the interfaces that the current file has described so far.
    #[cold]
    fn learn(&mut self, interfaces: &[ReadInterface]) {
        for new in interfaces.iter().skip(self.numbers.len()) {
            let about = (new.name.clone(), new.description.clone(), new.link_number);
            let alike = self.alike.entry(about.clone()).or_insert(0);
            let number = *(self.index.entry((about, *alike))).or_insert(self.known.len() as u32);
            *alike += 1;
            if number as usize == self.known.len() {
                self.known.push(new.clone());
            }
            self.numbers.push(number);
        }
    }

    /// Begins another file.
    fn begin_file(&mut self) {
        self.numbers.clear();
        self.alike.clear();
    }
}

/// Processing of every frame of the files.
pub struct Pipeline {
    /// Selection of frames.
    pub selection: Selection,
    /// Changes to frames.
    pub rewriting: Rewriting,
    /// Assignment of queues.
    pub splitting: Splitting,
    /// Maximum length.
    pub room: Room,
    /// The capture's interfaces, for an output file that describes them.
    pub capture_points: CapturePoints,
    time_base: TimeBase,
    /// All files, and the number of those that were opened.
    paths: Vec<PathBuf>,
    opened: usize,
    /// Reader of the current file.
    reader: CaptureReader<'static>,
    interfaces: Interfaces,
    places: Places,
    number: u64,
    tally: Tally,
    /// True in the first pass through the file, the only one in which frames are counted.
    counting: bool,
    /// Messages that a file ends inside a frame, with the position.
    cut: Vec<String>,
    /// True if all frames that can be selected were read once.
    is_whole: bool,
}

impl Pipeline {
    /// Opens the capture files `paths`, which are processed in this order; `-` is standard input.
    ///
    /// # Errors
    /// One cannot be opened, or is not a capture file.
    pub fn open(
        paths: &[PathBuf],
        selection: Selection,
        rewriting: Rewriting,
        splitting: Splitting,
        (by, room): (TimeBase, Room),
    ) -> Result<Self> {
        // A wrong file is the user's mistake, not a failure of the machine.
        let usage = |error: ReadError| Failure::usage(error.to_string());
        let Some((first, others)) = paths.split_first() else {
            return Err(Failure::usage("no capture was given"));
        };
        for path in others.iter().filter(|path| is_regular(path)) {
            CaptureReader::open(path).map_err(usage)?;
        }
        Ok(Self {
            selection,
            rewriting,
            splitting,
            room,
            capture_points: CapturePoints::default(),
            time_base: by,
            reader: open(first).map_err(usage)?,
            paths: paths.to_vec(),
            opened: 1,
            interfaces: Interfaces::default(),
            places: Places::new(by),
            number: 0,
            tally: Tally::default(),
            counting: true,
            cut: Vec::new(),
            is_whole: false,
        })
    }

    /// Processes the next frame of the files, and passes it to `take` if it is to be sent. Returns
    /// false if there are no more frames.
    ///
    /// # Errors
    /// A file cannot be read further, the filter is invalid, or a selected interface does not
    /// exist.
    #[inline]
    pub fn step(&mut self, take: impl FnOnce(Chosen<'_>)) -> Result<bool> {
        if self.selection.ends_at(self.number) {
            self.is_whole = true;
            return Ok(false);
        }
        let lent = self.reader.next_batch(1);
        let lent = lent.map(|lent| lent.and_then(|lent| Some((lent.iter().next()?, lent))));
        let (packet, lent) = match lent {
            Ok(Some(lent)) => lent,
            Ok(None) => return self.end(None),
            Err(error) => return self.end(Some(error)),
        };
        let of_file = packet.interface as usize;
        if of_file >= self.interfaces.numbers.len() {
            self.interfaces.learn(lent.interfaces());
            self.selection.learn(&self.interfaces.known);
            self.capture_points.learn(&self.interfaces.known);
        }
        let interface = self.interfaces.numbers.get(of_file).copied();
        let packet = Packet {
            interface: interface.unwrap_or_default(),
            ..packet
        };
        self.number += 1;
        let chosen = self.selection.choose(self.number, &packet)?;
        if self.counting {
            self.tally.read += 1;
        }
        let counting = self.counting;
        let leave_out = |tally: &mut Tally, reason| {
            if counting {
                tally.leave_out(reason);
            }
            Ok(true)
        };
        if let Some(reason) = chosen {
            return leave_out(&mut self.tally, reason);
        }
        let Some(link) = packet.link else {
            return leave_out(&mut self.tally, Reason::LinkType);
        };
        let job = self.splitting.job(packet.bytes, link, packet.interface);
        let side = self.splitting.side(job);
        let octets = match self.rewriting.apply(packet.bytes, link, side) {
            Ok(octets) => octets,
            Err(reason) => return leave_out(&mut self.tally, reason),
        };
        if octets.len() < ETHERNET {
            return leave_out(&mut self.tally, Reason::Short);
        }
        if !self.room.has(octets, side) {
            return leave_out(&mut self.tally, Reason::Long);
        }
        if self.selection.refuses_pause(octets) {
            return leave_out(&mut self.tally, Reason::Pause);
        }
        let (place, stamp) = self
            .places
            .next(packet.interface, packet.time(), octets.len());
        if self.counting {
            self.tally.selected += 1;
            self.tally.octets += octets.len() as u64;
            match stamp {
                Stamp::Fine => {}
                Stamp::Shortened => self.tally.shortened += 1,
                Stamp::WentBack => self.tally.went_back += 1,
                Stamp::Outlier => self.tally.outliers += 1,
                Stamp::NewTimeBase => {
                    self.tally.outliers = self.tally.outliers.saturating_sub(1);
                    self.tally.time_bases += 1;
                }
                Stamp::None => self.tally.unstamped += 1,
            }
        }
        take(Chosen {
            number: self.number,
            interface: packet.interface,
            place,
            job,
            octets,
        });
        Ok(true)
    }

    /// Ends the current file, and opens the next one; returns false if there is none.
    #[cold]
    fn end(&mut self, error: Option<ReadError>) -> Result<bool> {
        let failed = |error: ReadError| Failure::failed(error.to_string());
        match error {
            Some(error) if error.is_cut() && self.counting => self.cut.push(error.to_string()),
            Some(error) if error.is_cut() => {}
            Some(error) => return Err(failed(error)),
            None => {}
        }
        self.interfaces.learn(self.reader.interfaces());
        self.selection.learn(&self.interfaces.known);
        if let Some(path) = self.paths.get(self.opened) {
            self.reader = open(path).map_err(failed)?;
            self.interfaces.begin_file();
            self.opened += 1;
            return Ok(true);
        }
        self.is_whole = true;
        if self.number > 0 {
            self.selection.check_interfaces(&self.interfaces.known)?;
        }
        Ok(false)
    }

    /// Goes back to the start of the first file.
    ///
    /// # Errors
    /// One is a pipe, or cannot be read again.
    pub fn rewind(&mut self) -> Result {
        let failed = |error: ReadError| Failure::failed(error.to_string());
        match self.paths.first() {
            Some(first) if self.opened > 1 => {
                if let Some(pipe) = self.paths.iter().find(|path| !is_regular(path)) {
                    return Err(Failure::failed("cannot read it again")
                        .and(pipe.display().to_string())
                        .and("it is not a regular file"));
                }
                self.reader = open(first).map_err(failed)?;
                self.interfaces.begin_file();
                self.opened = 1;
            }
            _ => self.reader.rewind().map_err(failed)?,
        }
        self.places = Places::new(self.time_base);
        self.number = 0;
        self.counting = false;
        Ok(())
    }

    /// Goes back to the start of the first file, and resets the counts.
    ///
    /// # Errors
    /// As for [`rewind`](Self::rewind).
    pub fn restart(&mut self) -> Result {
        self.rewind()?;
        self.tally = Tally::default();
        self.cut.clear();
        self.counting = true;
        Ok(())
    }

    /// True if the capture was read to its end, or to the last frame that can be selected.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the time base of the frames.
    #[must_use]
    pub const fn by(&self) -> TimeBase {
        self.time_base
    }

    /// Returns the loop, after all of it was read; `gap` as for [`Places::end`].
    #[must_use]
    pub fn loops(&self, gap: Option<Duration>) -> Loops {
        self.places.end(gap)
    }

    /// Returns the first time stamp, as [`Places::begins`].
    #[must_use]
    pub fn begins(&self) -> u64 {
        self.places.begins()
    }

    /// Returns the counts of the frames read so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Describes the number of the capture's interfaces and of the selected ones, if it has
    /// several.
    #[must_use]
    pub fn about_interfaces(&self) -> Option<String> {
        let (there, chosen) = self.selection.interfaces();
        match (there, chosen) {
            (0 | 1, _) => None,
            (there, chosen) if there == chosen => Some(format!(
                "all {there} interfaces of the capture, in the file's order (--interface chooses)"
            )),
            (there, chosen) => Some(format!("{chosen} of the capture's {there} interfaces")),
        }
    }

    /// Returns a message for each file that ends inside a frame.
    #[must_use]
    pub fn cut(&self) -> &[String] {
        &self.cut
    }

    /// Returns the name of an interface of the capture, or its number if it has none.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> String {
        match self.interfaces.known.get(number as usize) {
            Some(interface) if !interface.name.is_empty() => interface.name.clone(),
            _ => number.to_string(),
        }
    }
}

/// Opens the capture file `path`; `-` is standard input.
fn open(path: &Path) -> std::result::Result<CaptureReader<'static>, ReadError> {
    if path == Path::new("-") {
        CaptureReader::from(std::io::stdin(), "standard input")
    } else {
        CaptureReader::open(path)
    }
}

/// True if `path` is a regular file, which can be read several times.
#[must_use]
pub fn is_regular(path: &Path) -> bool {
    path != Path::new("-") && path.is_file()
}
