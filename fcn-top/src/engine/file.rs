//! Packets from a capture file or a pipe: as fast as possible, as they arrive, or at the pace of
//! their capture. `open.rs` opens files and pipes.

#[cfg(feature = "program")]
mod open;

use super::all_interfaces::{InterfaceNumbers, ifindex};
use super::export::InterfaceDescription;
use super::kernel_filter::{BpfProgram, PacketFilter};
use super::{BATCH, BY_THE_CLOCK, Engine, Input, MAX_LIVE_AGE, PacketSink, wall_clock};
use crate::monitor::Monitor;
use crate::monitor::events::DAMAGED;
use crate::packet::Packet;
use crate::record::MADE_UP;
use fcn_link::capture_file::{self, CaptureReader, ReadError, ReadInterface, Stamp};
use fcn_observe::time::nanos;
use fcn_tool::clean::clean;
use fcn_tool::failure::Failure;
use fcn_tool::quantity::counted;
use fcn_wire::{LinkType, Severity};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum sleep of a paced input before it checks whether to stop.
const NAP: Duration = Duration::from_millis(50);
/// Output of `fcn-gen` for `demo/demo.toml`, written by `cargo xtask captures`.
const DEMO: &[u8] = match cfg!(feature = "program") {
    true => include_bytes!("../../demo/demo.pcapng.gz"),
    false => &[],
};
/// Time between its last packet and the first one of the next round, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;
/// State shown for an interface of a file.
const FILE: &str = "file";
/// Packets wanted from a file, and the pace.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names or indices (from 0) of the wanted interfaces; empty for all.
    pub interfaces: Vec<String>,
    /// Filter for packets; its kernel part is not applied.
    pub filter: PacketFilter,
    /// Speed factor relative to the capture; `None` for as fast as possible.
    pub pace: Option<f64>,
}

/// Opens a capture again.
pub type Reopen = Box<dyn Fn() -> Result<CaptureReader<'static>, ReadError> + Send>;

/// A capture file or pipe.
pub struct FileInput {
    reader: CaptureReader<'static>,
    /// Opens it again, if that is possible.
    again: Option<Reopen>,
    /// True if reads do not block, as with a regular file.
    regular: bool,
    /// Any of these flags aborts a blocking read of a pipe.
    stops: Vec<Arc<AtomicBool>>,
    processing: Processing,
}

/// State of processing the packets.
#[derive(Default)]
struct Processing {
    choice: Choice,
    /// True for the built-in capture, which repeats endlessly.
    demo: bool,
    /// Interfaces of the file.
    interfaces: Vec<FileInterface>,
    /// Names in use.
    names: FxHashSet<String>,
    /// Packets read, from all interfaces.
    number: u64,
    /// Time stamp of the previous packet.
    last: u64,
    /// Nanoseconds added to the time stamps of the file.
    shift: u64,
    /// Packets of unsupported link types.
    unknown: u64,
    clock: Option<Clock>,
    /// Time reached, shared with the engine if packets arrive in real time.
    mark: Option<Arc<AtomicU64>>,
}

/// An interface of the file.
struct FileInterface {
    /// Its number in the engine, and those of the interfaces that its packets passed.
    numbers: Option<InterfaceNumbers>,
    link: Option<LinkType>,
    filter: Option<BpfProgram>,
    /// True if all packets are dropped, because the filter cannot be compiled.
    filtered: bool,
}

/// Clock of a paced replay.
#[derive(Clone, Copy)]
struct Clock {
    begun: Instant,
    first: u64,
    speed: f64,
}

impl Clock {
    /// Returns the current time of the capture.
    fn now(&self) -> u64 {
        let gone = nanos(self.begun.elapsed()) as f64 * self.speed;
        // A float that is out of range saturates.
        self.first.saturating_add(gone as u64)
    }

    /// Returns the time left until `at`.
    fn until(&self, at: u64) -> Duration {
        let ahead = at.saturating_sub(self.now()) as f64 / self.speed;
        Duration::from_nanos(ahead as u64)
    }
}

impl FileInput {
    /// Reads the capture that `again` opens.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not a capture, or has an unsupported link type.
    pub fn reopening(again: Reopen) -> Result<Self, Failure> {
        let reader = again()
            .map_err(|error| Failure::usage("cannot read the capture").and(error.to_string()))?;
        check_link(&reader)?;
        Ok(Self::new(reader, Some(again), true, Choice::default(), &[]))
    }

    /// Opens the built-in capture, which repeats endlessly.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn demo(choice: Choice, stops: &[Arc<AtomicBool>]) -> Result<Self, Failure> {
        let reader = open_demo().map_err(|error| Failure::failed(error.to_string()))?;
        let mut input = Self::new(reader, None, true, choice, stops);
        input.processing.demo = true;
        Ok(input)
    }

    /// Restarts the built-in capture after a pause.
    fn restart(&mut self, stop: &AtomicBool) -> Result<(), ReadError> {
        let begin = self.processing.last.saturating_add(PAUSE);
        // Also if the filter drops all packets.
        self.processing.wait(begin, stop);
        let first = open_demo()?.next()?.map_or(0, |packet| packet.at);
        self.processing.shift = begin.saturating_sub(first);
        self.reader = open_demo()?;
        Ok(())
    }

    fn new(
        reader: CaptureReader<'static>,
        again: Option<Reopen>,
        regular: bool,
        choice: Choice,
        stops: &[Arc<AtomicBool>],
    ) -> Self {
        Self {
            reader,
            again,
            regular,
            stops: stops.to_vec(),
            processing: Processing {
                choice,
                ..Processing::default()
            },
        }
    }

    /// Processes at most `most` packets, each as soon as it is due. Returns `None` if there are no
    /// more, or no more are wanted.
    fn take(
        &mut self,
        most: usize,
        engine: &Engine,
        stop: &AtomicBool,
    ) -> Result<Option<()>, ReadError> {
        let Some(packets) = self.reader.next_batch(most)? else {
            return match self.processing.demo {
                true => self.restart(stop).map(Some),
                false => Ok(None),
            };
        };
        let before = self.processing.wanted();
        self.processing.learn(packets.interfaces(), engine);
        let mut sink = engine.lock_for_packets();
        if before == 1
            && self.processing.wanted() > 1
            && self.processing.number > 0
            && let Some(again) = &self.again
        {
            self.processing.replay_sightings(again, &mut sink);
        }
        if self.processing.number == 0 {
            // Until the first valid time stamp, this is the best time known.
            let first = packets.iter().find_map(|packet| packet.time());
            self.processing.last = first.unwrap_or_default();
        }
        let mut more = true;
        for lent in packets.iter() {
            let Some(packet) = self.processing.pass(&lent, &mut sink) else {
                continue;
            };
            if lent.stamp == Stamp::OutOfRange {
                sink.report_bad_stamp(&packet);
            }
            if self.processing.mark.is_some() {
                sink.release();
                self.processing.wait(packet.at, stop);
                sink = engine.lock_for_packets();
            }
            more = sink.take(&packet);
            if !more {
                break;
            }
        }
        sink.release();
        Ok(more.then_some(()))
    }

    fn read(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), ReadError> {
        // If reads do not block, process packets in batches.
        let at_once = self.regular && self.processing.choice.pace.is_none();
        let most = if at_once { BATCH } else { 1 };
        let mut more = Some(());
        while more.is_some() && !stop.load(Ordering::Relaxed) {
            more = self.take(most, engine, stop)?;
        }
        // Interfaces without packets.
        self.processing.learn(self.reader.interfaces(), engine);
        Ok(())
    }

    /// Returns the first wanted interface that the capture does not have.
    fn missing(&self) -> Option<&str> {
        let mut wanted = self.processing.choice.interfaces.iter();
        let missing = wanted.find(|wanted| {
            let mut known = self.reader.interfaces().iter().enumerate();
            !known.any(|(number, interface)| is_called(interface, number, wanted))
        });
        missing.map(String::as_str)
    }

    /// Reports the losses recorded in the file.
    fn report_losses(&self, state: &'static str, engine: &Engine) {
        for (place, interface) in self
            .processing
            .interfaces
            .iter()
            .zip(self.reader.interfaces())
        {
            let Some(number) = place.numbers.as_ref().map(InterfaceNumbers::own) else {
                continue;
            };
            let lost = (interface.dropped_by_system, interface.dropped_by_interface);
            engine.interface_state(number, state, None, lost);
            let texts = [
                "Packets dropped by the operating system, as reported by the file",
                "Packets dropped by the interface, as reported by the file",
            ];
            let lost = [lost.0, lost.1].map(Option::unwrap_or_default);
            engine.note_losses(number, lost, texts);
        }
    }
}

/// Returns true if that interface of the file is the wanted one.
fn is_called(interface: &ReadInterface, number: usize, wanted: &str) -> bool {
    wanted == interface.name || wanted.parse() == Ok(number)
}

fn open_demo() -> Result<CaptureReader<'static>, ReadError> {
    CaptureReader::from(DEMO, "the built-in capture")
}

/// Fails if the only interface of the capture has an unsupported link type.
fn check_link(reader: &CaptureReader<'_>) -> Result<(), Failure> {
    match reader.interfaces() {
        [only] if only.link.is_none() => Err(unknown_link(reader.name(), only.link_number)),
        _ => Ok(()),
    }
}

fn unknown_link(name: &str, number: u32) -> Failure {
    Failure::usage("cannot read the capture")
        .and(name)
        .and(format!(
            "unsupported link type {number}; supported are Ethernet, raw IP, Linux cooked, BSD loopback, InfiniBand and ERF"
        ))
}

impl Input for FileInput {
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure> {
        self.begin(engine);
        let done = self.read(engine, stop);
        self.conclude(done, engine, stop)
    }
}

impl FileInput {
    /// Prepares the engine for the packets.
    pub(crate) fn begin(&mut self, engine: &Engine) {
        if self.processing.choice.pace.is_some() || !self.regular {
            self.processing.mark = Some(engine.mark());
        }
        if self.regular {
            engine.reads_recording();
        }
        // Remembering each packet costs more than half as much again as everything else, so a file
        // that can be read twice is read again when another interface appears.
        if self.reader.may_describe_later() && self.again.is_none() {
            engine.with(Monitor::expect_interfaces);
        }
        self.processing.learn(self.reader.interfaces(), engine);
    }

    /// Processes the next packets of a file; returns true if there may be more.
    pub(crate) fn advance(&mut self, engine: &Engine) -> Result<bool, ReadError> {
        let more = self.take(BATCH, engine, &AtomicBool::new(false))?;
        if more.is_none() {
            self.processing.learn(self.reader.interfaces(), engine);
        }
        Ok(more.is_some())
    }

    /// Records how it ended.
    pub(crate) fn conclude(
        &mut self,
        done: Result<(), ReadError>,
        engine: &Engine,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        if let Some(mark) = &self.processing.mark {
            mark.store(0, Ordering::Relaxed);
        }
        let stops = self.stops.iter().map(|stop| &**stop);
        let stopped = stops.chain([stop]).any(|stop| stop.load(Ordering::Relaxed));
        let state = match &done {
            Err(_) if !stopped => "damaged",
            _ if self.processing.demo => MADE_UP,
            _ => "ended",
        };
        for place in &self.processing.interfaces {
            for number in place.numbers.iter().flat_map(InterfaceNumbers::numbers) {
                engine.interface_state(number, state, None, (None, None));
            }
        }
        self.report_losses(state, engine);
        // The name may contain an address in any spelling.
        let name = match engine.private {
            true => "the capture",
            false => self.reader.name(),
        };
        let result = match done {
            // A pipe that was abandoned may end anywhere.
            Err(_) if stopped => Ok(()),
            Err(error) => {
                let why = error.to_string().replacen(self.reader.name(), name, 1);
                engine.note(Severity::Error, DAMAGED, None, &why);
                Err(Failure::failed("the capture is incomplete").and(why))
            }
            Ok(()) if self.processing.unknown > 0 => {
                let left_out = format!(
                    "{} of unsupported link types, counted as undecodable",
                    counted(self.processing.unknown, "packet")
                );
                engine.note(Severity::Warning, "capture.link_type", None, &left_out);
                let unread = self
                    .processing
                    .interfaces
                    .iter()
                    .all(|interface| interface.link.is_none());
                match self.reader.interfaces().first() {
                    Some(first) if unread => Err(unknown_link(name, first.link_number)),
                    _ => Ok(()),
                }
            }
            Ok(()) if engine.with(|monitor| monitor.misses_mirror_clocks()) => {
                Err(Failure::usage("--mirror-clock").and(format!(
                    "{name} has no mirror's copy with a usable time stamp: ERSPAN type III has them"
                )))
            }
            // More may be described after the part that was read.
            Ok(()) if (stopped || engine.limit_reached()) && self.processing.wanted() > 0 => Ok(()),
            Ok(()) => match self.missing() {
                None => Ok(()),
                Some(missing) => {
                    let known = self.reader.interfaces().iter().enumerate();
                    let known: Vec<String> = known
                        .map(|(number, interface)| match engine.private {
                            true => number.to_string(),
                            false => format!("{number} ({})", clean(&interface.name)),
                        })
                        .collect();
                    Err(Failure::usage("--interface")
                        .and(missing)
                        .and(format!("{name} has no interface of that name or number"))
                        .and(format!("available: {}", known.join(", "))))
                }
            },
        };
        engine.end(&match &result {
            Ok(()) => format!("end of {name}"),
            Err(failure) => failure.to_string(),
        });
        result
    }
}

impl Processing {
    /// Returns the number of wanted interfaces so far.
    fn wanted(&self) -> usize {
        let wanted = self.interfaces.iter();
        wanted
            .filter(|interface| interface.numbers.is_some())
            .count()
    }

    /// Reads the packets so far again to remember their capture points, because an interface
    /// described only now may have captured them as well. If the file cannot be read again, packets
    /// count per interface.
    #[cold]
    fn replay_sightings(&mut self, again: &Reopen, sink: &mut PacketSink<'_>) {
        let Ok(mut reader) = again() else {
            return;
        };
        let mut replay = sink.state.monitor.replay_monitor();
        let (number, last) = (self.number, self.last);
        self.number = 0;
        while self.number < number {
            let Ok(Some(lent)) = reader.next() else {
                break;
            };
            if lent.link.is_none() {
                self.number += 1;
            } else if let Some(packet) = self.pass(&lent, sink) {
                replay.observe(&packet);
            }
        }
        (self.number, self.last) = (number, last);
        sink.state.monitor.adopt_sightings(replay);
    }

    /// Registers the interfaces that the file has described so far.
    fn learn(&mut self, interfaces: &[ReadInterface], engine: &Engine) {
        for interface in interfaces.iter().skip(self.interfaces.len()) {
            let number = self.interfaces.len();
            let wanted = self.choice.interfaces.is_empty()
                || (self.choice.interfaces.iter())
                    .any(|wanted| is_called(interface, number, wanted));
            let name = match &*interface.name {
                "" => format!("#{number}"),
                // Names are unique: a repeated one gets the index that --interface accepts.
                name if !self.names.insert(name.to_owned()) => format!("{name} #{number}"),
                name => name.to_owned(),
            };
            let filter = match interface.link {
                Some(_) => self.choice.filter.for_file(interface.link_number),
                None => Ok(None),
            };
            let about = match interface.link {
                Some(_) if self.demo => MADE_UP.to_owned(),
                Some(_) => interface.description.clone(),
                None => format!("unsupported link type {}", interface.link_number),
            };
            let (filter, about) = match filter {
                Ok(filter) => (Some(filter), about),
                Err(why) => (None, format!("--filter cannot be compiled for it: {why}")),
            };
            let description = InterfaceDescription {
                name,
                about,
                // Packets of unknown link types are not exported either.
                link: interface.link.unwrap_or(LinkType::Ethernet),
                snap_len: 0,
            };
            let state = if self.demo { MADE_UP } else { FILE };
            self.interfaces.push(FileInterface {
                numbers: wanted.then(|| {
                    InterfaceNumbers::new(
                        engine.lock_for_packets().know_interface(description, state),
                        &interface.name,
                    )
                }),
                link: interface.link,
                filtered: filter.is_none(),
                filter: filter.flatten(),
            });
        }
    }

    /// Converts a packet for the engine; `None` if it is not wanted.
    #[inline]
    fn pass<'a>(
        &mut self,
        lent: &capture_file::Packet<'a>,
        sink: &mut PacketSink<'_>,
    ) -> Option<Packet<'a>> {
        self.number += 1;
        if let Some(at) = lent.time() {
            self.last = at.saturating_add(self.shift);
        }
        let place = self.interfaces.get_mut(lent.interface as usize)?;
        let numbers = place.numbers.as_mut()?;
        // Packets of an unknown link type are not decoded.
        let link = place.link.unwrap_or(LinkType::Ethernet);
        let passes = |filter: &BpfProgram| filter.filter(lent.bytes);
        if place.filtered || !place.filter.as_ref().is_none_or(passes) {
            return None;
        }
        let interface = numbers.number((link, lent.bytes), sink, |index| {
            // Interface indices of another machine need not be those of this one.
            let description = InterfaceDescription {
                name: ifindex(index),
                about: String::new(),
                link,
                snap_len: 0,
            };
            (description, FILE)
        });
        let packet = Packet {
            at: self.last,
            bytes: lent.bytes,
            wire_len: lent.wire_len as usize,
            link,
            interface,
            number: self.number,
        };
        if place.link.is_none() {
            self.unknown += 1;
            sink.state.monitor.count_unread(&packet);
            return None;
        }
        Some(packet)
    }

    /// Waits until a packet is due, and shares its time with the engine.
    fn wait(&mut self, at: u64, stop: &AtomicBool) {
        let Some(mark) = &self.mark else { return };
        let Some(speed) = self.choice.pace else {
            // If a pipe delivers packets captured now, time also advances between them.
            let fresh = wall_clock().abs_diff(at) < MAX_LIVE_AGE;
            mark.store(if fresh { BY_THE_CLOCK } else { 0 }, Ordering::Relaxed);
            return;
        };
        let clock = *self.clock.get_or_insert_with(|| Clock {
            begun: Instant::now(),
            first: at,
            speed,
        });
        loop {
            let rest = clock.until(at);
            mark.store(clock.now().min(at), Ordering::Relaxed);
            if rest.is_zero() || stop.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(rest.min(NAP));
        }
    }
}
