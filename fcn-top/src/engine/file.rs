//! Packets out of a capture file or a pipe: at once, as they come, or at the pace at which they were captured.

use super::export::Described;
use super::kernel_filter::PacketFilter;
use super::passed::{Passed, ifindex};
use super::{BATCH, BY_THE_CLOCK, Engine, FRESH, Input, Taking, wall_clock};
use crate::monitor::Monitor;
use crate::monitor::events::DAMAGED;
use crate::packet::Packet;
use crate::record::MADE_UP;
use fcn_link::capture_file::{self, CaptureReader, ReadError, ReadInterface};
use fcn_observe::time::nanos;
use fcn_tool::clean::clean;
use fcn_tool::failure::Failure;
use fcn_tool::quantity::counted;
use fcn_wire::{LinkType, Severity};
use pcap::BpfProgram;
use rustc_hash::FxHashSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a paced input sleeps at most before it looks around.
const NAP: Duration = Duration::from_millis(50);
/// What `fcn-gen` makes of `demo/demo.toml`; `cargo xtask captures` writes it.
const DEMO: &[u8] = include_bytes!("../../demo/demo.pcapng.gz");
/// Time between the last packet of it and the first one of the next round, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;
/// What is said of the state of an interface of a file that is read.
const FILE: &str = "file";
/// Which packets of a file are wanted, and when.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only those of these interfaces, by name or by number from 0; empty: all.
    pub interfaces: Vec<String>,
    /// Only those that match; what the kernel would let through does not matter.
    pub filter: PacketFilter,
    /// So many times as fast as they were captured; `None`: at once.
    pub pace: Option<f64>,
}

/// A capture that is read.
pub struct FileInput {
    reader: CaptureReader<'static>,
    /// Where it can be read again.
    path: Option<PathBuf>,
    /// Whether reading waits for nobody.
    regular: bool,
    /// Any of them ends the reading of a pipe, wherever it is.
    stops: Vec<Arc<AtomicBool>>,
    fate: Fate,
}

/// What becomes of the packets.
#[derive(Default)]
struct Fate {
    choice: Choice,
    /// Whether it is the built-in capture, which begins again behind its end.
    demo: bool,
    /// What each interface of the file is.
    interfaces: Vec<Place>,
    /// Their names.
    names: FxHashSet<String>,
    /// Packets read, of all interfaces.
    number: u64,
    /// Time stamp of the packet before.
    last: u64,
    /// Nanoseconds by which packets count later than the file says.
    shift: u64,
    /// Packets that nobody here can read.
    unknown: u64,
    clock: Option<Clock>,
    /// Told to the engine where packets come as time goes by.
    mark: Option<Arc<AtomicU64>>,
}

/// What an interface of the file is.
struct Place {
    /// Its number in the engine, and those of what its packets passed.
    numbers: Option<Passed>,
    link: Option<LinkType>,
    filter: Option<BpfProgram>,
    /// Whether nothing passes, since the filter cannot be had.
    filtered: bool,
}

/// A pace.
#[derive(Clone, Copy)]
struct Clock {
    begun: Instant,
    first: u64,
    speed: f64,
}

impl Clock {
    /// The moment of the capture that is now.
    fn now(&self) -> u64 {
        let gone = nanos(self.begun.elapsed()) as f64 * self.speed;
        // A float too large for it becomes the greatest number.
        self.first.saturating_add(gone as u64)
    }

    /// How long it is until then.
    fn until(&self, at: u64) -> Duration {
        let ahead = at.saturating_sub(self.now()) as f64 / self.speed;
        Duration::from_nanos(ahead as u64)
    }
}

/// Reads what comes when it comes, and nothing more once it is to stop.
struct Patient {
    file: File,
    stops: Vec<Arc<AtomicBool>>,
}

impl Read for Patient {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return Ok(0);
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            let nap = Timespec {
                tv_sec: 0,
                tv_nsec: NAP.subsec_nanos().into(),
            };
            match poll(&mut fds, Some(&nap)) {
                Ok(0) | Err(Errno::INTR) => {}
                // What is wrong is what reading says.
                Ok(_) | Err(_) => match self.file.read(room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
            }
        }
    }
}

impl FileInput {
    /// Opens a capture; `-` is standard input. What comes by a pipe is not waited for any more once one of `stops` is set.
    ///
    /// # Errors
    /// It cannot be read, is none, or is of a link type that nobody here reads.
    pub fn open(path: &Path, choice: Choice, stops: &[Arc<AtomicBool>]) -> Result<Self, Failure> {
        let bad = || Failure::usage("cannot read the capture");
        let is_stdin = path == Path::new("-");
        let regular = !is_stdin && std::fs::metadata(path).is_ok_and(|about| about.is_file());
        let (reader, regular) = if regular {
            (CaptureReader::open(path), true)
        } else {
            let (file, name) = if is_stdin {
                let stdin = io::stdin();
                if stdin.is_terminal() {
                    return Err(bad()
                        .and("standard input is a terminal")
                        .and("pipe a capture in: tcpdump -i eth0 -U -w - | fcn-top -r -"));
                }
                let file = stdin.as_fd().try_clone_to_owned().map(File::from);
                (file, "standard input".to_owned())
            } else {
                // Opening a pipe that nobody writes to would wait where nothing can stop it.
                let mut how = File::options();
                let how = how
                    .read(true)
                    .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
                (how.open(path), path.display().to_string())
            };
            let file = file.map_err(|error| bad().and(format!("{name}: {error}")))?;
            if file.metadata().is_ok_and(|about| about.is_file()) {
                (CaptureReader::from(file, &name), true)
            } else {
                let stops = stops.to_vec();
                (CaptureReader::from(Patient { file, stops }, &name), false)
            }
        };
        let reader = reader.map_err(|error| {
            if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return Failure::interrupted("nothing had been read");
            }
            bad().and(error.to_string())
        })?;
        if let [only] = reader.interfaces()
            && only.link.is_none()
        {
            return Err(unknown_link(reader.name(), only.link_number));
        }
        let path = (regular && !is_stdin).then(|| path.to_path_buf());
        Ok(Self::new(reader, path, regular, choice, stops))
    }

    /// The built-in capture, again and again.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn demo(choice: Choice, stops: &[Arc<AtomicBool>]) -> Result<Self, Failure> {
        let reader = open_demo().map_err(|error| Failure::failed(error.to_string()))?;
        let mut input = Self::new(reader, None, true, choice, stops);
        input.fate.demo = true;
        Ok(input)
    }

    /// Begins the built-in capture again, later.
    fn begin_again(&mut self, stop: &AtomicBool) -> Result<(), ReadError> {
        let begin = self.fate.last.saturating_add(PAUSE);
        // Also where the filter lets nothing through.
        self.fate.wait(begin, stop);
        let first = open_demo()?.next()?.map_or(0, |packet| packet.at);
        self.fate.shift = begin.saturating_sub(first);
        self.reader = open_demo()?;
        Ok(())
    }

    fn new(
        reader: CaptureReader<'static>,
        path: Option<PathBuf>,
        regular: bool,
        choice: Choice,
        stops: &[Arc<AtomicBool>],
    ) -> Self {
        Self {
            reader,
            path,
            regular,
            stops: stops.to_vec(),
            fate: Fate {
                choice,
                ..Fate::default()
            },
        }
    }

    /// Takes in the packets that come next, `most` at most, each as soon as its time has come; `None`: there are no more, or
    /// no more are wanted.
    fn take(
        &mut self,
        most: usize,
        engine: &Engine,
        stop: &AtomicBool,
    ) -> Result<Option<()>, ReadError> {
        let Some(packets) = self.reader.next_some(most)? else {
            return match self.fate.demo {
                true => self.begin_again(stop).map(Some),
                false => Ok(None),
            };
        };
        let before = self.fate.wanted();
        self.fate.learn(packets.interfaces(), engine);
        let mut taking = engine.taking();
        if before == 1
            && self.fate.wanted() > 1
            && self.fate.number > 0
            && let Some(path) = &self.path
        {
            self.fate.look_back(path, &mut taking);
        }
        let mut more = true;
        for lent in packets.iter() {
            let Some(packet) = self.fate.pass(&lent, &mut taking) else {
                continue;
            };
            if self.fate.mark.is_some() {
                taking.release();
                self.fate.wait(packet.at, stop);
                taking = engine.taking();
            }
            more = taking.take(&packet);
            if !more {
                break;
            }
        }
        taking.release();
        Ok(more.then_some(()))
    }

    fn read(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), ReadError> {
        // Where reading waits for nobody, packets are taken in many at a time.
        let at_once = self.regular && self.fate.choice.pace.is_none();
        let most = if at_once { BATCH } else { 1 };
        let mut more = Some(());
        while more.is_some() && !stop.load(Ordering::Relaxed) {
            more = self.take(most, engine, stop)?;
        }
        // Interfaces without a packet.
        self.fate.learn(self.reader.interfaces(), engine);
        Ok(())
    }

    /// The first of the interfaces wanted that the capture does not have.
    fn missing(&self) -> Option<&str> {
        let mut wanted = self.fate.choice.interfaces.iter();
        let missing = wanted.find(|wanted| {
            let mut known = self.reader.interfaces().iter().enumerate();
            !known.any(|(number, interface)| is_called(interface, number, wanted))
        });
        missing.map(String::as_str)
    }

    /// Tells what the capture missed, as far as the file says so.
    fn tell_losses(&self, state: &'static str, engine: &Engine) {
        for (place, interface) in self.fate.interfaces.iter().zip(self.reader.interfaces()) {
            let Some(number) = place.numbers.as_ref().map(Passed::own) else {
                continue;
            };
            let lost = (interface.dropped_by_system, interface.dropped_by_interface);
            engine.interface_state(number, state, None, lost);
            let texts = [
                "Packets dropped by the operating system, as the file says",
                "Packets dropped by the interface, as the file says",
            ];
            let lost = [lost.0, lost.1].map(Option::unwrap_or_default);
            engine.note_losses(number, lost, texts);
        }
    }
}

/// Whether the file's interface of that number is the one wanted.
fn is_called(interface: &ReadInterface, number: usize, wanted: &str) -> bool {
    wanted == interface.name || wanted.parse() == Ok(number)
}

fn open_demo() -> Result<CaptureReader<'static>, ReadError> {
    CaptureReader::from(DEMO, "the built-in capture")
}

fn unknown_link(name: &str, number: u32) -> Failure {
    Failure::usage("cannot read the capture")
        .and(name)
        .and(format!(
            "its link type {number} is none that is read here: Ethernet, raw IP, Linux cooked, BSD loopback, InfiniBand and ERF are"
        ))
}

impl Input for FileInput {
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure> {
        if self.fate.choice.pace.is_some() || !self.regular {
            self.fate.mark = Some(engine.mark());
        }
        if self.regular {
            engine.reads_recording();
        }
        // Remembering each packet costs more than half as much again as all else, so what can be read twice is looked back
        // at where another interface comes.
        if self.reader.may_describe_later() && self.path.is_none() {
            engine.with(Monitor::expect_interfaces);
        }
        self.fate.learn(self.reader.interfaces(), engine);
        let done = self.read(engine, stop);
        if let Some(mark) = &self.fate.mark {
            mark.store(0, Ordering::Relaxed);
        }
        let stops = self.stops.iter().map(|stop| &**stop);
        let stopped = stops.chain([stop]).any(|stop| stop.load(Ordering::Relaxed));
        let state = match &done {
            Err(_) if !stopped => "damaged",
            _ if self.fate.demo => MADE_UP,
            _ => "ended",
        };
        for place in &self.fate.interfaces {
            for number in place.numbers.iter().flat_map(Passed::numbers) {
                engine.interface_state(number, state, None, (None, None));
            }
        }
        self.tell_losses(state, engine);
        // An address may be in its name in any spelling.
        let name = match engine.private {
            true => "the capture",
            false => self.reader.name(),
        };
        let result = match done {
            // A pipe that is not listened to any more ends anywhere.
            Err(_) if stopped => Ok(()),
            Err(error) => {
                let why = error.to_string().replacen(self.reader.name(), name, 1);
                engine.note(Severity::Error, DAMAGED, None, &why);
                Err(Failure::failed("the capture is not whole").and(why))
            }
            Ok(()) if self.fate.unknown > 0 => {
                let left_out = format!(
                    "{} of link types that are not read here, counted as undecodable",
                    counted(self.fate.unknown, "packet")
                );
                engine.note(Severity::Warning, "capture.link_type", None, &left_out);
                let unread = self
                    .fate
                    .interfaces
                    .iter()
                    .all(|place| place.link.is_none());
                match self.reader.interfaces().first() {
                    Some(first) if unread => Err(unknown_link(name, first.link_number)),
                    _ => Ok(()),
                }
            }
            Ok(()) if engine.with(|monitor| monitor.misses_mirror_clocks()) => {
                Err(Failure::usage("--mirror-clock").and(format!(
                    "{name} has no mirror's copy with a time stamp that can be used: ERSPAN type III has"
                )))
            }
            // Others may be described behind what was read.
            Ok(()) if (stopped || engine.has_enough()) && self.fate.wanted() > 0 => Ok(()),
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
                        .and(format!("{name} has none of that name or number"))
                        .and(format!("there are: {}", known.join(", "))))
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

impl Fate {
    /// Interfaces known so far whose packets are wanted.
    fn wanted(&self) -> usize {
        let wanted = self.interfaces.iter();
        wanted.filter(|place| place.numbers.is_some()).count()
    }

    /// Remembers where the packets so far were seen, as another interface may have seen them, too, which the file describes
    /// only now. Where it cannot be read again, they count by interface.
    #[cold]
    fn look_back(&mut self, path: &Path, taking: &mut Taking<'_>) {
        let Ok(mut reader) = CaptureReader::open(path) else {
            return;
        };
        let mut rehearsal = taking.state.monitor.rehearsal();
        let (number, last) = (self.number, self.last);
        self.number = 0;
        while self.number < number {
            let Ok(Some(lent)) = reader.next() else {
                break;
            };
            if lent.link.is_none() {
                self.number += 1;
            } else if let Some(packet) = self.pass(&lent, taking) {
                rehearsal.observe(&packet);
            }
        }
        (self.number, self.last) = (number, last);
        taking.state.monitor.remember(rehearsal);
    }

    /// Sees to the interfaces that the file has described so far.
    fn learn(&mut self, interfaces: &[ReadInterface], engine: &Engine) {
        for interface in interfaces.iter().skip(self.interfaces.len()) {
            let number = self.interfaces.len();
            let wanted = self.choice.interfaces.is_empty()
                || (self.choice.interfaces.iter())
                    .any(|wanted| is_called(interface, number, wanted));
            let name = match &*interface.name {
                "" => format!("#{number}"),
                // Each has a name of its own, with the number that --interface takes.
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
                None => format!("link type {} is not read here", interface.link_number),
            };
            let (filter, about) = match filter {
                Ok(filter) => (Some(filter), about),
                Err(why) => (None, format!("--filter cannot be had for it: {why}")),
            };
            let described = Described {
                name,
                about,
                // Of packets that are not read, nothing is written either.
                link: interface.link.unwrap_or(LinkType::Ethernet),
                snap_len: 0,
            };
            let state = if self.demo { MADE_UP } else { FILE };
            self.interfaces.push(Place {
                numbers: wanted.then(|| {
                    Passed::new(
                        engine.taking().know_interface(described, state),
                        &interface.name,
                    )
                }),
                link: interface.link,
                filtered: filter.is_none(),
                filter: filter.flatten(),
            });
        }
    }

    /// The packet as the engine takes it; `None` where it is not wanted.
    #[inline]
    fn pass<'a>(
        &mut self,
        lent: &capture_file::Packet<'a>,
        taking: &mut Taking<'_>,
    ) -> Option<Packet<'a>> {
        self.number += 1;
        if lent.stamped {
            self.last = lent.at.saturating_add(self.shift);
        }
        let place = self.interfaces.get_mut(lent.interface as usize)?;
        let numbers = place.numbers.as_mut()?;
        // Nobody reads what follows of a link type that is not known.
        let link = place.link.unwrap_or(LinkType::Ethernet);
        let passes = |filter: &BpfProgram| filter.filter(lent.bytes);
        if place.filtered || !place.filter.as_ref().is_none_or(passes) {
            return None;
        }
        let interface = numbers.number((link, lent.bytes), taking, |index| {
            // What this machine calls that number need not be what the other one does.
            let described = Described {
                name: ifindex(index),
                about: String::new(),
                link,
                snap_len: 0,
            };
            (described, FILE)
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
            taking.state.monitor.count_unread(&packet);
            return None;
        }
        Some(packet)
    }

    /// Waits until a packet's time has come, and tells how late it is.
    fn wait(&mut self, at: u64, stop: &AtomicBool) {
        let Some(mark) = &self.mark else { return };
        let Some(speed) = self.choice.pace else {
            // Where a pipe brings what is captured now, time goes on between its packets.
            let fresh = wall_clock().abs_diff(at) < FRESH;
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
