//! Packets from an interface through libpcap: what the kernel dropped, what became of the interface, and waiting for it
//! to come back.

use super::export::Described;
use super::handle::{Capturing, GATHER, Handle, open};
use super::kernel_filter::message;
use super::opener::Opener;
use super::passed::{ANY, Passed, ifindex};
use super::rdma;
use super::{Engine, Input, wall_clock};
use crate::packet::Packet;
use crate::record::PASSED;
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

/// How long the kernel may gather packets, in nanoseconds, with what the machine may be late: packets older than that have
/// come, if none are waiting.
const ON_ITS_WAY: u64 = 30_000_000;
/// How long an interface without packets is waited for before something else is looked at.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// How often it is asked what became of the interface.
const WATCHING: Duration = Duration::from_millis(100);
/// How often it is asked what was dropped.
const COUNTING: Duration = Duration::from_millis(100);
/// How often losses become an event, at most.
const NOTING: Duration = Duration::from_secs(1);
/// How often it is tried to open an interface that is not there, or down.
const RETRYING: Duration = Duration::from_millis(250);
/// Packets taken in before others may have a look, where so many are waiting: rows are copied out for less time than that
/// takes, and each handing over costs two wake-ups, so that a full ring gets emptier while a table is made.
const MANY: usize = 4_096;
/// Packets that are still taken in at the end, at most.
const LAST: usize = 1 << 20;

/// An interface that packets are captured on.
pub struct LiveInput {
    name: String,
    how: Capturing,
    handle: Option<Handle>,
    watch: Option<LinkWatch>,
    /// What it is: driver, and how it is captured.
    about: String,
    number: u32,
    /// Those that packets passed, where it is all of them together.
    passed: Passed,
    /// What handles before this one were told to have dropped.
    dropped: (u64, u64),
    /// Of what was dropped, what has become an event, and when.
    noted: (u64, u64),
    noted_at: Option<Instant>,
    /// Who opens it once it is up.
    opener: Option<Opener>,
    /// What is shown of its state.
    state: &'static str,
}

impl LiveInput {
    /// Opens an interface; one that is down is waited for later.
    ///
    /// # Errors
    /// There is none of that name, rights are missing, or libpcap cannot capture on it.
    pub fn open(name: &str, how: &Capturing, program: &Path) -> Result<Self, Failure> {
        let failed = || Failure::failed("cannot capture").and(name);
        let rdma = rdma::interfaces(name);
        let interface = match name {
            ANY => None,
            _ if rdma.is_some() => None,
            _ => Some(Interface::named(name).map_err(|error| {
                let why = match error.kind() {
                    InterfaceErrorKind::Missing { .. } if how.private => {
                        format!("{name}: there is no such interface")
                    }
                    _ => error.to_string(),
                };
                Failure::usage("cannot capture").and(why)
            })?),
        };
        require(&[Capability::NetRaw], program).map_err(|missing| {
            failed().and(format!(
                "{missing}\n  3. or read from a program that is permitted:\n     \
                 sudo tcpdump -i {name} -U -w - | {} -r -",
                program.display()
            ))
        })?;
        let up = interface.as_ref().is_none_or(Interface::is_up);
        let handle = match open(name, how) {
            Ok(handle) => Some(handle),
            // It may have gone down in between.
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
            passed: Passed::new(0, name),
            dropped: (0, 0),
            noted: (0, 0),
            noted_at: None,
            opener: None,
            state: if up { "up" } else { "down" },
        })
    }

    /// Whether its packets passed several interfaces, and do not say which.
    pub fn is_unclear(&self) -> bool {
        self.handle
            .as_ref()
            .is_some_and(|handle| sightings::is_unclear(handle.link))
    }

    /// Has somebody wait for an interface that is not up, who keeps the right to open it when privileges are dropped. Says
    /// whether that is so.
    ///
    /// # Errors
    /// That right could not be kept.
    pub fn await_it(&mut self) -> Result<bool, String> {
        if self.handle.is_none() {
            self.opener = Some(Opener::start(&self.name, &self.how)?);
        }
        Ok(self.opener.is_some())
    }

    /// Privileges were dropped.
    ///
    /// # Errors
    /// Whoever waits for the interface could not drop its own.
    pub fn rights_dropped(&self) -> Result<(), String> {
        self.opener.as_ref().map_or(Ok(()), Opener::begin)
    }

    /// Makes it known to the engine; `rights` says what became of privileges.
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
                (Some(_), false) => "--filter alone".to_owned(),
            },
            format!("ring of {} MiB", self.how.buffer >> 20),
        ];
        if !self.about.is_empty() {
            parts.insert(0, self.about.clone());
        }
        if link == Some(LinkType::LinuxCooked2) {
            parts.push("packets count where they passed".to_owned());
        }
        if !rights.is_empty() {
            parts.push(rights.to_owned());
        }
        self.about = parts.join(", ");
        let described = Described {
            name: self.name.clone(),
            about: self.about.clone(),
            link: link.unwrap_or(LinkType::Ethernet),
            snap_len: self.how.snap_len,
        };
        self.number = engine.taking().know_interface(described, self.state);
        self.passed = Passed::new(self.number, &self.name);
        if self.state == "down" {
            engine.note(
                Severity::Warning,
                "interface.down",
                Some(self.number),
                "it is down: waiting for it to be set up",
            );
        }
    }

    /// Takes in what is there; how many there were.
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
        let (passed, snap_len) = (&mut self.passed, self.how.snap_len);
        let mut taking = engine.taking();
        let mut number = taking.state.taken;
        let taken = capture.dispatch(Some(MANY), |packet| {
            if filter.is_some_and(|filter| !filter.filter(packet.data)) {
                return;
            }
            let stamp = packet.header.ts;
            number += 1;
            let interface = passed.number((link, packet.data), &mut taking, |index| {
                let described = Described {
                    name: name_of(index),
                    about: format!("by {ANY}"),
                    link,
                    snap_len,
                };
                (described, PASSED)
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
            taking.take(&packet);
        });
        taking.release();
        taken.map_err(message)
    }

    /// Waits for packets; whether there are some, or something happened to the interface.
    fn wait(&self) -> bool {
        let Some(handle) = &self.handle else {
            thread::sleep(Duration::from_millis(50));
            return false;
        };
        let mut fds = [PollFd::new(&handle.capture, PollFlags::IN)];
        match poll(&mut fds, Some(&PATIENCE)) {
            Ok(ready) => ready > 0,
            Err(_) => false,
        }
    }

    /// What libpcap says, which may name the interface, with the name that it has here.
    fn unnamed(&self, why: &str, engine: &Engine) -> String {
        why.replace(&self.name, &engine.interface_name(self.number))
    }

    /// What became of the interface.
    fn look(&mut self, engine: &Engine) {
        while let Some(event) = self.watch.as_mut().and_then(LinkWatch::poll) {
            // Of one that is not captured on it was told that it is waited for, until it is.
            if self.handle.is_some() || event == LinkEvent::Gone {
                self.became(event, engine);
            }
        }
    }

    /// Its state is another one now, as `text` says; `about` is shown with it.
    fn turn(&mut self, state: &'static str, (about, text): (&str, &str), engine: &Engine) {
        self.state = state;
        let (severity, what) = match state {
            "up" => (Severity::Note, "interface.up"),
            "down" => (Severity::Warning, "interface.down"),
            _ => (Severity::Warning, "interface.gone"),
        };
        engine.interface_state(self.number, state, Some(about), (None, None));
        engine.note(severity, what, Some(self.number), text);
    }

    fn became(&mut self, event: LinkEvent, engine: &Engine) {
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
        self.turn(state, (&about, &text), engine);
    }

    /// The handle is of no use any more; its counters have been read.
    fn close(&mut self) {
        if let Some(mut handle) = self.handle.take()
            && let Ok(stat) = handle.capture.stats()
        {
            self.dropped.0 += u64::from(stat.dropped);
            self.dropped.1 += u64::from(stat.if_dropped);
        }
        self.watch = None;
    }

    /// Tells what was dropped; as an event now and then, or also in the `end`.
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

    /// Tries to open an interface that was not up, or was deleted and may have been made again. Says whether it should be
    /// tried again.
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
                let text = "it is up, and captured on from now on";
                self.turn("up", (&self.about.clone(), text), engine);
                true
            }
            Err(why) if require(&[Capability::NetRaw], Path::new("fcn-top")).is_err() => {
                let why = self.unnamed(&why, engine);
                let text = format!(
                    "one of that name is there, but privileges were dropped: start again, with --keep-privileges if this \
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
        while !stop.load(Ordering::Relaxed) && !engine.has_enough() {
            let before = wall_clock();
            let taken = if self.wait() {
                self.take(engine)
            } else {
                Ok(0)
            };
            match taken {
                Ok(0) => {
                    // Nothing is waiting: all that was captured before has come.
                    mark.fetch_max(before.saturating_sub(ON_ITS_WAY), Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(why) => {
                    self.look(engine);
                    if self.handle.is_some() {
                        // Broken, but neither down nor gone as far as the kernel tells.
                        self.count(engine, true);
                        self.close();
                        let why = self.unnamed(&why, engine);
                        self.turn("gone", (&why, &why), engine);
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
        // What was captured before the end counts.
        thread::sleep(Duration::from_millis(GATHER as u64 * 2));
        let mut taken = 0;
        while taken < LAST && !engine.has_enough() {
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

/// What the interface of that kernel's number is called.
fn name_of(index: u32) -> String {
    let all = Interface::all().unwrap_or_default();
    let named = all.iter().find(|interface| interface.index() == index);
    named.map_or_else(|| ifindex(index), |interface| interface.name().to_owned())
}

/// What an interface is, in a few words.
fn about(interface: &Interface) -> String {
    let driver = interface.driver().unwrap_or("unknown driver");
    match interface.speed() {
        Some(speed) => format!("{driver}, {speed} Mbit/s"),
        None => driver.to_owned(),
    }
}
