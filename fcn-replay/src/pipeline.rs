//! From the file to frames that can be sent: read, selected, rewritten, and given a queue and a
//! time, one at a time. Callers decide whether to keep them in memory or to send them immediately.

use crate::omissions::{Reason, Tally};
use crate::rewriting::Rewriting;
use crate::selection::Selection;
use crate::splitting::Splitting;
use crate::timing::{Loops, Places, Stamp, TimeBase};
use fcn_link::capture_file::{CaptureReader, ReadError};
use fcn_link::file_transmit::CapturePoints;
use fcn_tool::failure::{Failure, Result};
use std::path::Path;
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

/// Processing of every frame of the file.
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
    reader: CaptureReader<'static>,
    places: Places,
    number: u64,
    tally: Tally,
    /// True in the first pass through the file, the only one in which frames are counted.
    counting: bool,
    /// Message that the file ends inside a frame, with the position.
    cut: Option<String>,
    /// True if all frames that can be selected were read once.
    is_whole: bool,
}

impl Pipeline {
    /// Opens the capture file `path`; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be opened, or is not a capture file.
    pub fn open(
        path: &Path,
        selection: Selection,
        rewriting: Rewriting,
        splitting: Splitting,
        (by, room): (TimeBase, Room),
    ) -> Result<Self> {
        let reader = if path == Path::new("-") {
            CaptureReader::from(std::io::stdin(), "standard input")
        } else {
            CaptureReader::open(path)
        };
        Ok(Self {
            selection,
            rewriting,
            splitting,
            room,
            capture_points: CapturePoints::default(),
            time_base: by,
            // A wrong file is the user's mistake, not a failure of the machine.
            reader: reader.map_err(|error| Failure::usage(error.to_string()))?,
            places: Places::new(by),
            number: 0,
            tally: Tally::default(),
            counting: true,
            cut: None,
            is_whole: false,
        })
    }

    /// Processes the next frame of the file, and passes it to `take` if it is to be sent. Returns
    /// false if there are no more frames.
    ///
    /// # Errors
    /// The file cannot be read further, the filter is invalid, or a selected interface does not
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
            Ok(None) => return self.end(None).map(|()| false),
            Err(error) => return self.end(Some(error)).map(|()| false),
        };
        if packet.interface as usize >= self.selection.interfaces().0 {
            self.selection.learn(lent.interfaces());
            self.capture_points.learn(lent.interfaces());
        }
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
        let (place, stamp) = self.places.next(packet.time(), octets.len());
        if self.counting {
            self.tally.selected += 1;
            self.tally.octets += octets.len() as u64;
            match stamp {
                Stamp::Fine => {}
                Stamp::WentBack => self.tally.went_back += 1,
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

    #[cold]
    fn end(&mut self, error: Option<ReadError>) -> Result {
        match error {
            Some(error) if error.is_cut() => self.cut = Some(error.to_string()),
            Some(error) => return Err(Failure::failed(error.to_string())),
            None => {}
        }
        self.is_whole = true;
        self.selection.learn(self.reader.interfaces());
        if self.number > 0 {
            self.selection.check_interfaces(self.reader.interfaces())?;
        }
        Ok(())
    }

    /// Goes back to the start of the file.
    ///
    /// # Errors
    /// It is a pipe, or cannot be read again.
    pub fn rewind(&mut self) -> Result {
        self.reader
            .rewind()
            .map_err(|error| Failure::failed(error.to_string()))?;
        self.places = Places::new(self.time_base);
        self.number = 0;
        self.counting = false;
        Ok(())
    }

    /// Goes back to the start of the file, and resets the counts.
    ///
    /// # Errors
    /// As for [`rewind`](Self::rewind).
    pub fn restart(&mut self) -> Result {
        self.rewind()?;
        self.tally = Tally::default();
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

    /// Returns a message if the file ends inside a frame.
    #[must_use]
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Returns the name of an interface of the capture, or its number if it has none.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> String {
        match self.reader.interfaces().get(number as usize) {
            Some(interface) if !interface.name.is_empty() => interface.name.clone(),
            _ => number.to_string(),
        }
    }
}
