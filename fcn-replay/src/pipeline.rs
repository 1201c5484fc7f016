//! From the file to frames that can be sent: read, selected, rewritten, given a queue and a place in time, one at a time.
//! Whether they are kept in memory or sent as they come is for others to say.

use crate::left_out::{Reason, Tally};
use crate::rewriting::Rewriting;
use crate::selection::Selection;
use crate::splitting::Splitting;
use crate::timing::{By, Loops, Places, Stamp};
use fcn_link::capture_file::{CaptureReader, ReadError};
use fcn_link::file_transmit::SeenAt;
use fcn_tool::failure::{Failure, Result};
use std::path::Path;
use std::time::Duration;

/// Octets of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Octets of a VLAN tag, which an MTU does not count.
const TAG: usize = 4;

/// The longest frame that can leave.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The MTU of each interface; `None` where there is no interface to ask.
    pub mtu: [Option<u32>; 2],
    /// Octets of the longest frame, without FCS, whatever the MTU.
    pub longest: usize,
}

impl Room {
    /// Whether `frame` fits the interface `side`.
    #[inline]
    #[must_use]
    pub fn has(&self, frame: &[u8], side: usize) -> bool {
        let tagged = matches!(
            frame.get(12..14),
            Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00])
        );
        // Linux lets one tag be beside the MTU.
        let header = ETHERNET + if tagged { TAG } else { 0 };
        let mtu = self.mtu.get(side).copied().flatten();
        frame.len() <= self.longest && mtu.is_none_or(|mtu| frame.len() <= header + mtu as usize)
    }
}

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// The capture's interface.
    pub interface: u32,
    /// Its place in the loop.
    pub place: u64,
    /// The queue that it leaves by.
    pub job: usize,
    /// The frame, from its Ethernet header.
    pub octets: &'a [u8],
}

/// What is done to every frame of the file.
pub struct Pipeline {
    /// Which are sent.
    pub selection: Selection,
    /// What is changed in them.
    pub rewriting: Rewriting,
    /// Which queue they leave by.
    pub splitting: Splitting,
    /// How long they may be.
    pub room: Room,
    /// The capture's interfaces, for a file that keeps them.
    pub seen_at: SeenAt,
    by: By,
    reader: CaptureReader<'static>,
    places: Places,
    number: u64,
    tally: Tally,
    /// Whether this is the first time through the file, of which alone frames are counted.
    counting: bool,
    /// That the file ends inside a frame, and where.
    cut: Option<String>,
    /// Whether all that can be chosen was read once.
    is_whole: bool,
}

impl Pipeline {
    /// Opens the capture file `path`; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be opened, or is none.
    pub fn open(
        path: &Path,
        selection: Selection,
        rewriting: Rewriting,
        splitting: Splitting,
        (by, room): (By, Room),
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
            seen_at: SeenAt::default(),
            by,
            // What is wrong with what was named is the caller's mistake, not the machine's.
            reader: reader.map_err(|error| Failure::usage(error.to_string()))?,
            places: Places::new(by),
            number: 0,
            tally: Tally::default(),
            counting: true,
            cut: None,
            is_whole: false,
        })
    }

    /// Goes on by one frame of the file, which `take` is given if it is to be sent. `false`: there is none any more.
    ///
    /// # Errors
    /// The file cannot be read on, or the filter or an interface chosen makes no sense.
    #[inline]
    pub fn step(&mut self, take: impl FnOnce(Chosen<'_>)) -> Result<bool> {
        if self.selection.ends_at(self.number) {
            self.is_whole = true;
            return Ok(false);
        }
        let lent = self.reader.next_some(1);
        let lent = lent.map(|lent| lent.and_then(|lent| Some((lent.iter().next()?, lent))));
        let (packet, lent) = match lent {
            Ok(Some(lent)) => lent,
            Ok(None) => return self.end(None).map(|()| false),
            Err(error) => return self.end(Some(error)).map(|()| false),
        };
        if packet.interface as usize >= self.selection.interfaces().0 {
            self.selection.learn(lent.interfaces());
            self.seen_at.learn(lent.interfaces());
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
        let at = packet.stamped.then_some(packet.at);
        let (place, stamp) = self.places.next(at, octets.len());
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
    pub fn again(&mut self) -> Result {
        self.reader
            .rewind()
            .map_err(|error| Failure::failed(error.to_string()))?;
        self.places = Places::new(self.by);
        self.number = 0;
        self.counting = false;
        Ok(())
    }

    /// Goes back to the start of the file as if nothing had been read.
    ///
    /// # Errors
    /// As for [`again`](Self::again).
    pub fn afresh(&mut self) -> Result {
        self.again()?;
        self.tally = Tally::default();
        self.counting = true;
        Ok(())
    }

    /// Whether the capture was read to its end, or to the last frame that can be chosen.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What the frames are timed by.
    #[must_use]
    pub const fn by(&self) -> By {
        self.by
    }

    /// The loop, when all of it was read; `gap` as for [`Places::end`].
    #[must_use]
    pub fn loops(&self, gap: Option<Duration>) -> Loops {
        self.places.end(gap)
    }

    /// As for [`Places::begins`].
    #[must_use]
    pub fn begins(&self) -> u64 {
        self.places.begins()
    }

    /// What became of the frames read so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Names of the capture's interfaces, and what is to be said about them.
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

    /// That the file ends inside a frame.
    #[must_use]
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// The name of an interface of the capture, else its number.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> String {
        match self.reader.interfaces().get(number as usize) {
            Some(interface) if !interface.name.is_empty() => interface.name.clone(),
            _ => number.to_string(),
        }
    }
}
