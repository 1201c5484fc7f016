//! Packets from an interface through libpcap: kernel drops, changes of the interface's state, and
//! reopening it.

use super::all_interfaces::{ANY, InterfaceNumbers, ifindex};
use super::export::InterfaceDescription;
use super::handle::{Capturing, GATHER, Handle, open};
use super::kernel_filter::message;
use super::opener::Opener;
use super::rdma;
use super::{Engine, Input, wall_clock};
use crate::packet::Packet;
use crate::record::INDIRECT;
use fcn_link::interface::{Interface, InterfaceErrorKind, LinkEvent, LinkWatch};
use fcn_link::privilege::{Capability, require};
use fcn_observe::sightings;
use fcn_tool::failure::Failure;
use fcn_wire::{LinkType, Severity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum delivery delay, in nanoseconds: the time that the kernel may collect packets, plus
/// scheduling delay. If none are waiting, all older packets have arrived.
const MAX_DELIVERY_DELAY: u64 = 30_000_000;
/// Maximum wait for packets before other checks.
const POLL_TIMEOUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Interval at which the state of the interface is checked.
const WATCHING: Duration = Duration::from_millis(100);
/// Interval at which drop counters are read.
const COUNTING: Duration = Duration::from_millis(100);
/// Minimum time between events about losses.
const NOTING: Duration = Duration::from_secs(1);
/// Interval of attempts to open an interface that is missing or down.
const RETRYING: Duration = Duration::from_millis(250);
/// Packets processed before other threads may access the monitor, if that many are waiting. Copying
/// rows takes less time than that, and each handover costs two wake-ups, so a full ring drains
/// while a table is made.
const MAX_BATCH: usize = 4_096;
/// Maximum number of packets still processed at the end.
const LAST: usize = 1 << 20;

/// An interface that packets are captured on.
pub struct LiveInput {
    name: String,
    how: Capturing,
    handle: Option<Handle>,
    watch: Option<LinkWatch>,
    /// Description: driver and capture options.
    about: String,
    number: u32,
    /// Interfaces that packets passed, if this is the capture on all interfaces.
    numbers: InterfaceNumbers,
    /// Drops reported by the previous handles.
    dropped: (u64, u64),
    /// Drops already reported in an event, and the time of that event.
    noted: (u64, u64),
    noted_at: Option<Instant>,
    /// Opens the interface once it is up.
    opener: Option<Opener>,
    /// State shown to the user.
    state: &'static str,
}

impl LiveInput {
    /// Opens an interface; one that is down is opened later.
    ///
    /// # Errors
    ///
    /// There is no such interface, privileges are missing, or libpcap cannot capture on it.
    pub fn open(name: &str, how: &Capturing, program: &Path) -> Result<Self, Failure> {
        let failed = || Failure::failed("cannot capture").and(name);
        let rdma = rdma::interfaces(name);
        let interface = match name {
            ANY => None,
            _ if rdma.is_some() => None,
            _ => Some(Interface::named(name).map_err(|error| {
                let why = match error.kind() {
                    InterfaceErrorKind::Missing { .. } if how.private => {
                        format!("{name}: no such interface")
                    }
                    _ => error.to_string(),
                };
                Failure::usage("cannot capture").and(why)
            })?),
        };
        require(&[Capability::NetRaw], program).map_err(|missing| {
            failed().and(format!(
                "{missing}\n  3. or read from a permitted program:\n     \
                 sudo tcpdump -i {name} -U -w - | {} -r -",
                program.display()
            ))
        })?;
        let up = interface.as_ref().is_none_or(Interface::is_up);
        let handle = match open(name, how) {
            Ok(handle) => Some(handle),
            // It may have gone down in the meantime.
            Err(_) if !up => None,
            Err(why) => {
                let why = rdma.map_or(why.clone(), |mut interfaces| {
                    if how.private {
                        interfaces.fill("…".to_owned());
                    }
                    rdma::advice(&interfaces, &why)
                });
                return Err(failed().and(why));
            }
        };
        let watch = interface.as_ref().and_then(|i| LinkWatch::new(i).ok());
        Ok(Self {
            name: name.to_owned(),
            how: how.clone(),
            handle,
            watch,
            about: interface.as_ref().map_or_else(String::new, about),
            number: 0,
            numbers: InterfaceNumbers::new(0, name),
            dropped: (0, 0),
            noted: (0, 0),
            noted_at: None,
            opener: None,
            state: if up { "up" } else { "down" },
        })
    }

    /// Returns true if a packet may pass several interfaces without recording which.
    pub fn is_unclear(&self) -> bool {
        self.handle
            .as_ref()
            .is_some_and(|handle| sightings::hides_interface(handle.link))
    }

    /// Starts a thread that waits for an interface that is not up and keeps the privilege to open
    /// it when privileges are dropped. Returns true if such a thread was started.
    ///
    /// # Errors
    ///
    /// The privilege could not be kept.
    pub fn open_when_up(&mut self) -> Result<bool, String> {
        if self.handle.is_none() {
            self.opener = Some(Opener::start(&self.name, &self.how)?);
        }
        Ok(self.opener.is_some())
    }

    /// Tells the waiting thread, if any, that privileges were dropped.
    ///
    /// # Errors
    ///
    /// The thread could not drop its own privileges.
    pub fn rights_dropped(&self) -> Result<(), String> {
        self.opener.as_ref().map_or(Ok(()), Opener::begin)
    }

    /// Registers the interface with the engine; `rights` describes what happened to privileges.
    pub fn introduce(&mut self, engine: &Engine, rights: &str) {
        let link = self.handle.as_ref().map(|handle| handle.link);
        let mut parts = vec![
            match link {
                None => "not open yet",
                Some(LinkType::Ethernet) => "Ethernet",
                Some(LinkType::RawIp) => "raw IP",
                Some(LinkType::LinuxCooked | LinkType::LinuxCooked2) => "Linux cooked",
                Some(LinkType::Null) => "BSD loopback",
                Some(LinkType::InfiniBand) => "InfiniBand",
                Some(LinkType::Erf) => "ERF",
            }
            .to_owned(),
            match (&self.how.filter.own, self.how.filter.is_built_in(link)) {
                (None, true) => "kernel filter".to_owned(),
                (None, false) => "no filter".to_owned(),
                (Some(_), true) => "kernel filter and --filter".to_owned(),
                (Some(_), false) => "--filter only".to_owned(),
            },
            format!("ring of {} MiB", self.how.buffer >> 20),
        ];
        if !self.about.is_empty() {
            parts.insert(0, self.about.clone());
        }
        if link == Some(LinkType::LinuxCooked2) {
            parts.push("packets count at the interface they passed".to_owned());
        }
        if !rights.is_empty() {
            parts.push(rights.to_owned());
        }
        self.about = parts.join(", ");
        let description = InterfaceDescription {
            name: self.name.clone(),
            about: self.about.clone(),
            link: link.unwrap_or(LinkType::Ethernet),
            snap_len: self.how.snap_len,
        };
        self.number = engine
            .lock_for_packets()
            .know_interface(description, self.state);
        self.numbers = InterfaceNumbers::new(self.number, &self.name);
        if self.state == "down" {
            engine.note(
                Severity::Warning,
                "interface.down",
                Some(self.number),
                "it is down: waiting for it to come up",
            );
        }
    }

    /// Processes the packets that are available; returns their number.
    fn take(&mut self, engine: &Engine) -> Result<usize, String> {
        let Some(Handle {
            capture,
            link,
            filter,
            tick,
        }) = &mut self.handle
        else {
            return Ok(0);
        };
        let (link, filter, tick) = (*link, filter.as_ref(), *tick);
        let (passed, snap_len) = (&mut self.numbers, self.how.snap_len);
        let mut sink = engine.lock_for_packets();
        let mut number = sink.state.taken;
        let taken = capture.dispatch(Some(MAX_BATCH), |packet| {
            if filter.is_some_and(|filter| !filter.filter(packet.data)) {
                return;
            }
            let stamp = packet.header.ts;
            number += 1;
            let interface = passed.number((link, packet.data), &mut sink, |index| {
                let description = InterfaceDescription {
                    name: name_of(index),
                    about: format!("by {ANY}"),
                    link,
                    snap_len,
                };
                (description, INDIRECT)
            });
            let packet = Packet {
                at: (stamp.tv_sec as u64)
                    .saturating_mul(1_000_000_000)
                    .saturating_add((stamp.tv_usec as u64).saturating_mul(tick)),
                bytes: packet.data,
                wire_len: (packet.header.len as usize).max(packet.data.len()),
                link,
                interface,
                number,
            };
            sink.take(&packet);
        });
        sink.release();
        taken.map_err(message)
    }

    /// Waits for packets; returns true if there are some, or the interface changed.
    fn wait(&self) -> bool {
        let Some(handle) = &self.handle else {
            thread::sleep(Duration::from_millis(50));
            return false;
        };
        let mut fds = [PollFd::new(&handle.capture, PollFlags::IN)];
        match poll(&mut fds, Some(&POLL_TIMEOUT)) {
            Ok(ready) => ready > 0,
            Err(_) => false,
        }
    }

    /// Returns a message of libpcap, with the interface's name replaced by the one shown here.
    fn unnamed(&self, why: &str, engine: &Engine) -> String {
        why.replace(&self.name, &engine.interface_name(self.number))
    }

    /// Checks for changes of the interface.
    fn look(&mut self, engine: &Engine) {
        while let Some(event) = self.watch.as_mut().and_then(LinkWatch::poll) {
            // An interface that is not captured on was already reported as waited for.
            if self.handle.is_some() || event == LinkEvent::Gone {
                self.handle_link_event(event, engine);
            }
        }
    }

    /// Changes the state; `text` describes the change, and `about` is shown with the state.
    fn set_state(&mut self, state: &'static str, (about, text): (&str, &str), engine: &Engine) {
        self.state = state;
        let (severity, what) = match state {
            "up" => (Severity::Note, "interface.up"),
            "down" => (Severity::Warning, "interface.down"),
            _ => (Severity::Warning, "interface.gone"),
        };
        engine.interface_state(self.number, state, Some(about), (None, None));
        engine.note(severity, what, Some(self.number), text);
    }

    fn handle_link_event(&mut self, event: LinkEvent, engine: &Engine) {
        let state = match event {
            LinkEvent::Back => "up",
            LinkEvent::Down | LinkEvent::NoCarrier => "down",
            LinkEvent::Gone => "gone",
        };
        if event == LinkEvent::Gone {
            self.count(engine, true);
            self.close();
        }
        let text = event.to_string();
        let about = match event {
            LinkEvent::Back => self.about.clone(),
            _ => text.clone(),
        };
        self.set_state(state, (&about, &text), engine);
    }

    /// Closes the handle, after reading its counters.
    fn close(&mut self) {
        if let Some(mut handle) = self.handle.take()
            && let Ok(stat) = handle.capture.stats()
        {
            self.dropped.0 += u64::from(stat.dropped);
            self.dropped.1 += u64::from(stat.if_dropped);
        }
        self.watch = None;
    }

    /// Reports drops; as an event at intervals, and at the `end`.
    fn count(&mut self, engine: &Engine, end: bool) {
        if let Some(handle) = &mut self.handle
            && let Ok(stat) = handle.capture.stats()
        {
            let dropped = (
                self.dropped.0 + u64::from(stat.dropped),
                self.dropped.1 + u64::from(stat.if_dropped),
            );
            let (kernel, interface) = dropped;
            let known = (Some(kernel), Some(interface));
            engine.interface_state(self.number, self.state, None, known);
            let is_time = |at: Instant| at.elapsed() >= NOTING;
            if dropped != self.noted && (end || self.noted_at.is_none_or(is_time)) {
                let lost = [
                    kernel.saturating_sub(self.noted.0),
                    interface.saturating_sub(self.noted.1),
                ];
                (self.noted, self.noted_at) = (dropped, Some(Instant::now()));
                let ring = self.how.buffer >> 20;
                let by_kernel = format!(
                    "Packets dropped by the kernel: its ring of {ring} MiB was full (--buffer)"
                );
                let texts = [by_kernel.as_str(), "Packets dropped by the interface"];
                engine.note_losses(self.number, lost, texts);
            }
        }
    }

    /// Tries to open an interface that was down, or was deleted and may exist again. Returns true
    /// if it should be tried again.
    fn retry(&mut self, engine: &Engine) -> bool {
        let Ok(interface) = Interface::named(&self.name) else {
            return true;
        };
        let opened = match &self.opener {
            Some(opener) => match opener.opened() {
                Some(opened) => opened,
                None => return true,
            },
            None if !interface.is_up() => return true,
            None => open(&self.name, &self.how),
        };
        self.opener = None;
        match opened {
            Ok(handle) => {
                self.handle = Some(handle);
                self.watch = LinkWatch::new(&interface).ok();
                let text = "it is up, and captured from now on";
                self.set_state("up", (&self.about.clone(), text), engine);
                true
            }
            Err(why) if require(&[Capability::NetRaw], Path::new("fcn-top")).is_err() => {
                let why = self.unnamed(&why, engine);
                let text = format!(
                    "an interface of that name exists, but privileges were dropped: restart, with --keep-privileges if this \
                     may happen again ({why})"
                );
                engine.interface_state(self.number, self.state, Some(&text), (None, None));
                let number = Some(self.number);
                engine.note(Severity::Warning, "interface.gone", number, &text);
                false
            }
            Err(_) => true,
        }
    }
}

impl Input for LiveInput {
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure> {
        engine.with(|monitor| monitor.watch_from(wall_clock()));
        let mark = engine.mark();
        let begun = Instant::now();
        let (mut watched, mut counted, mut tried) = (begun, begun, begun);
        let mut retries = true;
        self.count(engine, false);
        while !stop.load(Ordering::Relaxed) && !engine.limit_reached() {
            let before = wall_clock();
            let taken = if self.wait() {
                self.take(engine)
            } else {
                Ok(0)
            };
            match taken {
                Ok(0) => {
                    // No packets are waiting: everything captured earlier has arrived.
                    mark.fetch_max(before.saturating_sub(MAX_DELIVERY_DELAY), Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(why) => {
                    self.look(engine);
                    if self.handle.is_some() {
                        // Broken, although the kernel reports it neither down nor gone.
                        self.count(engine, true);
                        self.close();
                        let why = self.unnamed(&why, engine);
                        self.set_state("gone", (&why, &why), engine);
                    }
                }
            }
            if watched.elapsed() >= WATCHING {
                watched = Instant::now();
                self.look(engine);
            }
            if counted.elapsed() >= COUNTING {
                counted = Instant::now();
                self.count(engine, false);
            }
            if self.handle.is_none() && retries && tried.elapsed() >= RETRYING {
                tried = Instant::now();
                retries = self.retry(engine);
            }
        }
        // Packets captured before the end count.
        thread::sleep(Duration::from_millis(GATHER as u64 * 2));
        let mut taken = 0;
        while taken < LAST && !engine.limit_reached() {
            match self.take(engine) {
                Ok(some) if some > 0 => taken += some,
                _ => break,
            }
        }
        self.count(engine, true);
        engine.end("stopped");
        Ok(())
    }
}

/// Returns the name of the interface with that index in the kernel.
fn name_of(index: u32) -> String {
    let all = Interface::all().unwrap_or_default();
    let named = all.iter().find(|interface| interface.index() == index);
    named.map_or_else(|| ifindex(index), |interface| interface.name().to_owned())
}

/// Returns a short description of an interface.
fn about(interface: &Interface) -> String {
    let driver = interface.driver().unwrap_or("unknown driver");
    match interface.speed() {
        Some(speed) => format!("{driver}, {speed} Mbit/s"),
        None => driver.to_owned(),
    }
}
