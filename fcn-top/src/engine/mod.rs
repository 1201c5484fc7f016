//! Everything that touches files, sockets, threads and the clock: packets go into the one monitor here, whatever they
//! come from, and whoever shows them looks at it through [`Engine`].
//!
//! `file.rs` reads captures, `live.rs` interfaces (`opener.rs` waits for
//! them), `passed.rs` tells apart those captured on together, `kernel_filter.rs` says what the kernel lets through, `intervals.rs` cuts
//! time into intervals, `keeper.rs` keeps packets and `export.rs` writes them, `privileges.rs` gives up what is not needed
//! any more.

pub mod export;
pub mod file;
pub mod handle;
pub mod intervals;
pub mod keeper;
pub mod kernel_filter;
pub mod live;
mod opener;
pub mod passed;
pub mod privileges;
mod rdma;
mod stamps;

use crate::monitor::events::{LOST_BY_INTERFACE, LOST_BY_KERNEL};
use crate::monitor::{Monitor, Observed};
use crate::new_file::taken;
use crate::packet::Packet;
use crate::record::EventRecord;
use crate::record::RowId;
use crate::tables::{Details, Dropped, Nics, PastPacket, Tables, Wanted, WantedDetails, Watched};
use export::{Chosen, Described};
use fcn_observe::FlowKey;
use fcn_observe::time::nanos;
use fcn_tool::failure::Failure;
use fcn_wire::Severity;
use intervals::IntervalTimer;
use keeper::Keeper;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustc_hash::FxHashSet;
use stamps::Stamps;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Packets of a file taken in before others may have a look.
pub const BATCH: usize = 512;
/// Rows copied out before packets may come in: a fraction of a millisecond's work, so that packets get most of the time.
const ROWS: usize = 256;
/// Where not all rows are wanted, so many are gathered before those that need not be kept are let go.
const GATHERED: usize = 4_096;
/// How long an interval waits for packets that were captured in it, where nothing comes that shows it to be over.
const GRACE: u64 = 250_000_000;
/// In a mark: everything captured until now has come, but for what is on its way for less than `GRACE`.
pub const BY_THE_CLOCK: u64 = u64::MAX;

/// What befell interfaces and was not told yet, at most: a screen never asks.
const MESSAGES: usize = 100;
/// What is no older than that when it arrives is taken to be captured now, in nanoseconds.
const FRESH: u64 = 5_000_000_000;

/// An input that runs.
pub struct Running<'e>(&'e Engine);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        let _waiters = self.0.waiters.lock();
        self.0.stopped.notify_all();
    }
}

/// Somewhere packets come from.
pub trait Input: Send {
    /// Takes packets in until there are no more, or `stop` is set.
    ///
    /// # Errors
    /// Why no more can come; what was taken in before counts.
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure>;
}

/// When enough was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// After so many packets.
    pub count: Option<u64>,
    /// So long after the first packet, by time stamps.
    pub span: Option<Duration>,
}

/// The monitor, and what goes with each packet.
struct State {
    monitor: Monitor,
    keeper: Option<Keeper>,
    timer: Option<IntervalTimer<Monitor>>,
    interfaces: Vec<Described>,
    limits: Limits,
    /// Packets taken in.
    taken: u64,
    /// The number of the last of them.
    last: u64,
    /// The moment from which on packets are not wanted.
    until: Option<u64>,
    /// Whether a limit was reached.
    enough: bool,
    /// Which time stamps are believed.
    stamps: Stamps,
}

/// What inputs feed and screens watch.
pub struct Engine {
    state: Mutex<State>,
    /// Inputs that run.
    running: AtomicUsize,
    /// Told when one does not run any more.
    stopped: Condvar,
    waiters: Mutex<()>,
    /// For each source that lives by the clock, the moment before which it has told everything.
    marks: Mutex<Vec<Arc<AtomicU64>>>,
    ended: Mutex<Option<String>>,
    /// What this host's RDMA devices count.
    nics: Mutex<Arc<Nics>>,
    /// What befell interfaces and was not told yet.
    messages: Mutex<Vec<String>>,
    /// Whether packets were dropped on their way here.
    lossy: AtomicBool,
    /// Whether what is read was captured before.
    recorded: AtomicBool,
    /// Whether addresses must not leave, which packets hold.
    pub(super) private: bool,
}

impl Engine {
    /// An engine without packets yet.
    pub fn new(monitor: Monitor, keeper: Option<Keeper>, limits: Limits, private: bool) -> Self {
        let state = State {
            monitor,
            keeper,
            timer: None,
            interfaces: Vec::new(),
            limits,
            taken: 0,
            last: 0,
            until: None,
            enough: false,
            stamps: Stamps::default(),
        };
        Self {
            state: Mutex::new(state),
            running: AtomicUsize::new(0),
            stopped: Condvar::new(),
            waiters: Mutex::new(()),
            marks: Mutex::new(Vec::new()),
            ended: Mutex::new(None),
            nics: Mutex::default(),
            messages: Mutex::new(Vec::new()),
            lossy: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            private,
        }
    }

    /// Has `timer` called at the end of each interval.
    pub fn set_timer(&self, timer: IntervalTimer<Monitor>) {
        self.state.lock().timer = Some(timer);
    }

    /// Takes what this host's RDMA devices count now.
    pub fn set_nics(&self, nics: Nics) {
        *self.nics.lock() = Arc::new(nics);
    }

    /// Tells how an interface is: `dropped` by the kernel and by the interface.
    pub fn interface_state(
        &self,
        number: u32,
        state: &'static str,
        about: Option<&str>,
        dropped: Dropped,
    ) {
        if dropped.0.max(dropped.1) > Some(0) {
            self.lossy.store(true, Ordering::Relaxed);
        }
        let mut guard = self.state.lock();
        guard.monitor.interface_state(number, state, about, dropped);
        if let (Some(about), Some(described)) = (about, guard.interfaces.get_mut(number as usize)) {
            about.clone_into(&mut described.about);
        }
    }

    /// What an interface is called wherever it is told of: by its number where its name may hold an address.
    pub fn interface_name(&self, number: u32) -> String {
        let guard = self.state.lock();
        match guard.interfaces.get(number as usize) {
            Some(known) if !self.private => known.name.clone(),
            _ => format!("#{number}"),
        }
    }

    /// Puts something into the log, about an interface or the whole.
    pub fn note(&self, severity: Severity, what: &'static str, interface: Option<u32>, text: &str) {
        let name = interface.map_or_else(String::new, |number| self.interface_name(number));
        let mut messages = self.messages.lock();
        if interface.is_some() && messages.len() < MESSAGES {
            messages.push(format!("{}: {name}: {text}", severity.id()));
        }
        drop(messages);
        self.note_times(1, (severity, what), &name, text);
    }

    /// The same, of what happened so many times.
    fn note_times(
        &self,
        times: u64,
        (severity, what): (Severity, &'static str),
        interface: &str,
        text: &str,
    ) {
        let mut guard = self.state.lock();
        let at = match guard.monitor.now() {
            0 => wall_clock(),
            now => now,
        };
        guard.monitor.note(EventRecord {
            times,
            interface: Some(interface.into()),
            ..EventRecord::of_capture(at, severity, what, text)
        });
    }

    /// Puts what was lost on an interface into the log: by the kernel and by the interface itself, and what is said of each.
    fn note_losses(&self, interface: u32, lost: [u64; 2], texts: [&str; 2]) {
        let name = self.interface_name(interface);
        let kinds = [LOST_BY_KERNEL, LOST_BY_INTERFACE];
        for ((lost, what), text) in lost.into_iter().zip(kinds).zip(texts) {
            if lost > 0 {
                self.note_times(lost, (Severity::Warning, what), &name, text);
            }
        }
    }

    /// To take packets in; others wait meanwhile.
    pub fn taking(&self) -> Taking<'_> {
        Taking {
            state: self.state.lock(),
        }
    }

    /// Whether a limit was reached.
    pub fn has_enough(&self) -> bool {
        self.state.lock().enough
    }

    /// Looks at the monitor; packets wait meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(&mut Monitor) -> T) -> T {
        look(&mut self.state.lock().monitor)
    }

    /// The same, but not while packets are taken in, which may wait for somebody to print what they show.
    pub fn try_with<T>(&self, look: impl FnOnce(&mut Monitor) -> T) -> Option<T> {
        let mut guard = self.state.try_lock()?;
        Some(look(&mut guard.monitor))
    }

    /// A mark that a source which lives by the clock moves on, in nanoseconds since the epoch: everything captured before
    /// it was taken in.
    pub fn mark(&self) -> Arc<AtomicU64> {
        let mark = Arc::new(AtomicU64::new(0));
        self.marks.lock().push(Arc::clone(&mark));
        mark
    }

    /// Moves time on where no packets come. Does not wait: where packets come, they move it on.
    pub fn tick(&self) {
        let marks = self.marks.lock();
        let moment = |mark: &Arc<AtomicU64>| match mark.load(Ordering::Relaxed) {
            BY_THE_CLOCK => wall_clock().saturating_sub(GRACE),
            moment => moment,
        };
        let Some(until) = marks.iter().map(moment).min() else {
            return;
        };
        let Some(mut guard) = self.state.try_lock() else {
            return;
        };
        let State { monitor, timer, .. } = &mut *guard;
        if let Some(timer) = timer {
            timer.quiet_until(until.saturating_sub(GRACE), monitor);
        }
        if until > 0 && !guard.enough {
            // Rates are told of the end of an interval, which time must not have left behind by then.
            let end = guard.timer.as_ref().map_or(u64::MAX, IntervalTimer::end);
            guard.monitor.advance(until.min(end));
        }
    }

    /// Counts an input as running, until what is returned is dropped.
    pub fn begin(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(self)
    }

    /// An input has come to its end, and says how.
    pub fn end(&self, how: &str) {
        *self.ended.lock() = Some(how.to_owned());
    }

    /// Whether what comes is captured now, as far as can be told: on an interface, and in a pipe where its last packet was
    /// fresh or none has come.
    pub fn is_fresh(&self) -> bool {
        let marks = self.marks.lock();
        let now = wall_clock();
        let fresh = |mark: &Arc<AtomicU64>| match mark.load(Ordering::Relaxed) {
            BY_THE_CLOCK => true,
            moment => now.abs_diff(moment) < FRESH,
        };
        !marks.is_empty() && (self.taken() == 0 || marks.iter().all(fresh))
    }

    /// What befell interfaces since this was asked for last.
    pub fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.messages.lock())
    }

    /// Whether packets were dropped, by the kernel or by an interface.
    pub fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Relaxed)
    }

    /// Says that what is read was captured before.
    pub fn reads_recording(&self) {
        self.recorded.store(true, Ordering::Relaxed);
    }

    /// Whether what is read was captured before.
    pub fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Packets taken in so far.
    pub fn taken(&self) -> u64 {
        self.state.lock().taken
    }

    /// The number of the last packet taken in, among those that its input counts.
    pub fn last(&self) -> u64 {
        self.state.lock().last
    }

    /// Whether inputs run.
    pub fn runs(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }

    /// Waits as long as inputs run, so long at most.
    pub fn wait(&self, most: Duration) {
        let mut waiters = self.waiters.lock();
        if self.runs() {
            self.stopped.wait_for(&mut waiters, most);
        }
    }

    /// Ends the interval that runs. To be called once, behind the last packet.
    pub fn finish(&self) {
        let mut guard = self.state.lock();
        let State { monitor, timer, .. } = &mut *guard;
        if let Some(mut timer) = timer.take() {
            timer.finish(monitor);
        }
    }

    /// Writes the packets kept that stand behind some rows into a new pcapng file; returns how many, and how many had to
    /// leave for want of room.
    ///
    /// # Errors
    /// What failed, on what, and what to do.
    pub fn export_rows(&self, rows: &FxHashSet<RowId>, to: &Path) -> Result<(u64, u64), String> {
        if self.private {
            return Err("packets hold addresses, and --privacy keeps those in".to_owned());
        }
        let (chosen, interfaces, gone) = {
            let guard = self.state.lock();
            let Some(keeper) = &guard.keeper else {
                return Err("no packets are kept: give room for them with --keep".to_owned());
            };
            let flows: FxHashSet<FlowKey> = rows
                .iter()
                .filter_map(|row| guard.monitor.flow_of_row(*row))
                .collect();
            let chosen = Chosen::select(keeper, |kept| {
                kept.row.is_some_and(|row| rows.contains(&row))
                    || kept.flow.is_some_and(|flow| flows.contains(&flow))
            });
            (chosen, guard.interfaces.clone(), keeper.gone())
        };
        Ok((chosen.write(to, &interfaces)?, gone))
    }
}

impl Watched for Engine {
    fn tables(&self, wanted: Wanted) -> Tables {
        let others = Wanted {
            qps: false,
            ..wanted
        };
        let mut rows = Vec::new();
        let mut next = wanted.qps.then_some(0);
        // Rows are many: packets are taken in between, so that rows may be of moments a few milliseconds apart. All else is
        // of the last of them.
        let tables = loop {
            let guard = self.state.lock();
            next = next.and_then(|place| guard.monitor.rows_from(place, ROWS, &mut rows));
            let tables = next.is_none().then(|| guard.monitor.tables(others));
            MutexGuard::unlock_fair(guard);
            if let Some((order, most)) = wanted.first
                && rows.len() > most
                && (next.is_none() || rows.len() >= most.saturating_add(GATHERED))
            {
                rows.sort_by(|(_, a), (_, b)| order.compare(a, b));
                rows.truncate(most);
            }
            if let Some(tables) = tables {
                break tables;
            }
        };
        Tables {
            qps: rows,
            nics: Arc::clone(&self.nics.lock()),
            ..tables
        }
    }

    fn details(&self, wanted: &WantedDetails) -> Details {
        let guard = self.state.lock();
        let mut details = guard.monitor.details(wanted);
        if let (Some(row), Some(keeper)) = (wanted.packets, &guard.keeper) {
            details.notified = Some(keeper.notified(row));
            let flow = guard.monitor.flow_of_row(row);
            let of_it = keeper.packets().map(|(kept, _)| kept).filter(|kept| {
                (!kept.copy || kept.ce)
                    && !kept.samples
                    && (kept.row == Some(row)
                        || flow.is_some() && kept.flow == flow && kept.row.is_none())
            });
            details.packets = of_it
                .map(|kept| PastPacket {
                    at: kept.at,
                    octets: kept.octets,
                    ce: kept.ce,
                    back: kept.back,
                })
                .collect();
        }
        details
    }

    fn export(&self, row: RowId, to: &Path) -> Result<(u64, u64), String> {
        if to.is_file() {
            return Err(taken(to));
        }
        let rows = std::iter::once(row).collect();
        self.export_rows(&rows, to)
    }

    fn ended(&self) -> Option<String> {
        if self.runs() {
            return None;
        }
        self.ended.lock().clone()
    }
}

/// The right to take packets in.
pub struct Taking<'a> {
    state: MutexGuard<'a, State>,
}

impl Taking<'_> {
    /// Takes a packet in; says whether more are wanted. Its number is its place among those that the input counts.
    #[inline]
    pub fn take(&mut self, packet: &Packet<'_>) -> bool {
        let State {
            monitor,
            keeper,
            timer,
            limits,
            taken,
            last,
            until,
            enough,
            stamps,
            ..
        } = &mut *self.state;
        if *enough {
            return false;
        }
        // It counts with a time that is believed; what is kept of it has its own.
        let (at, far) = stamps.believed(packet.interface, packet.at, monitor.now());
        let counted = Packet { at, ..*packet };
        if let Some(far) = far {
            monitor.stamped_far(&counted, (far.by, far.ahead), far.first);
        }
        if let Some(span) = limits.span {
            let end = *until.get_or_insert_with(|| counted.at.saturating_add(nanos(span)));
            if counted.at >= end {
                *enough = true;
                return false;
            }
        }
        if let Some(timer) = timer {
            timer.before(counted.at, monitor);
        }
        let observed = monitor.observe(&counted);
        *taken += 1;
        *last = packet.number;
        if observed.samples
            && let Some(keeper) = keeper
        {
            keep_samples(monitor, keeper, packet);
        }
        if let Some(keeper) = keeper
            && (observed.row.is_some() || observed.flow.is_some())
        {
            let about = observed.row.and_then(|row| monitor.flow_of_row(row));
            let about = Observed {
                flow: observed.flow.or(about),
                ..observed
            };
            keeper.keep(packet, &about);
        }
        if limits.count.is_some_and(|count| *taken >= count) {
            *enough = true;
        }
        !*enough
    }

    /// Makes an interface known; returns its number.
    pub fn know_interface(&mut self, described: Described, state: &'static str) -> u32 {
        let State {
            monitor,
            interfaces,
            ..
        } = &mut *self.state;
        let number = interfaces.len() as u32;
        monitor.know_interface(number, &described.name, &described.about);
        monitor.interface_state(number, state, None, (None, None));
        interfaces.push(described);
        number
    }

    /// Lets whoever waits have a look now.
    pub fn release(self) {
        MutexGuard::unlock_fair(self.state);
    }
}

/// Keeps a packet with samples for every row and flow that one of them is about.
#[cold]
fn keep_samples(monitor: &Monitor, keeper: &mut Keeper, packet: &Packet<'_>) {
    let mut known = FxHashSet::default();
    for sample in monitor.of_samples() {
        let about = sample.row.and_then(|row| monitor.flow_of_row(row));
        let about = Observed {
            row: sample.row,
            flow: sample.flow.or(about),
            samples: true,
            ..Observed::default()
        };
        if about.row.is_none() && about.flow.is_none() || !known.insert((about.row, about.flow)) {
            continue;
        }
        match known.len() {
            1 => keeper.keep(packet, &about),
            _ => keeper.keep_again(&about),
        }
    }
}

/// The clock that packets are stamped by, in nanoseconds since the epoch.
pub fn wall_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Settings;
    use fcn_link::capture_file::CaptureReader;
    use fcn_wire::sflow::{DatagramRepr, FlowSample, Port, RawRepr};
    use fcn_wire::{Frame, Kind, Profile};

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 1_767_225_600 * SECOND;

    /// A CNP.
    fn cnp() -> (Vec<u8>, fcn_wire::LinkType) {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv4.pcapng");
        let mut reader = CaptureReader::open(&file).unwrap();
        loop {
            let packet = reader.next().unwrap().unwrap();
            let (bytes, link) = (packet.bytes.to_vec(), packet.link.unwrap());
            let frame = Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT);
            if fcn_wire::Notification::from_frame(&frame).is_some_and(|gist| gist.kind == Kind::Cnp)
            {
                return (bytes, link);
            }
        }
    }

    #[test]
    fn a_clock_that_is_days_apart_is_told_of_and_each_counts_by_its_own() {
        let (cnp, link) = cnp();
        let monitor = Monitor::new(Settings {
            per_interface: true,
            ..Settings::default()
        });
        let engine = Engine::new(monitor, None, Limits::default(), false);
        for name in ["utc", "uptime"] {
            let described = Described {
                name: name.to_owned(),
                about: String::new(),
                link,
                snap_len: 0,
            };
            engine.taking().know_interface(described, "ended");
        }
        let clocks = [START, 1_000 * SECOND];
        for number in 0..100 {
            let interface = number % 2;
            let packet = Packet {
                at: clocks[interface as usize] + number / 2 * SECOND / 100,
                bytes: &cnp,
                wire_len: cnp.len(),
                link,
                interface: interface as u32,
                number: number + 1,
            };
            assert!(engine.taking().take(&packet));
        }
        let tables = Watched::tables(&engine, Wanted::ALL);
        for (_, row) in &tables.qps {
            let of_it = row.interface.as_deref() == Some("uptime");
            let first = clocks[usize::from(of_it)];
            assert_eq!((row.total, row.first_seen), (50, first));
            assert_eq!(row.last_seen, first + 49 * SECOND / 100);
            assert!(
                row.rate_mean
                    .is_some_and(|rate| (99.0..101.0).contains(&rate))
            );
        }
        assert_eq!(tables.qps.len(), 2);
        let [event] = &tables.events[..] else {
            panic!("{:?}", tables.events);
        };
        assert_eq!((event.what, event.times), ("capture.stamps.far", 1));
        let text = "Time stamps of uptime are 20454 d behind those before: ";
        assert!(event.text.starts_with(text), "{}", event.text);
        assert_eq!(engine.with(|monitor| monitor.doubts().len()), 1);
    }

    #[test]
    fn datagrams_with_samples_are_kept_for_each_row_and_exported_once() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv4.pcapng");
        let mut reader = CaptureReader::open(&file).unwrap();
        let header = DatagramRepr {
            agent: [10, 0, 0, 1].into(),
            sub_agent: 0,
            sequence: 1,
            uptime: 0,
        };
        let mut octets = vec![0; 60_000];
        let mut writer = header.begin(&mut octets).unwrap();
        while let Some(packet) = reader.next().unwrap() {
            let sample = FlowSample {
                rate: 10,
                input: Port::from_index(packet.interface + 1),
                ..FlowSample::default()
            };
            let raw = RawRepr {
                protocol: 1,
                frame_length: packet.wire_len + 4,
                stripped: 4,
                header: packet.bytes.get(..128).unwrap_or(packet.bytes),
            };
            if writer.push(&sample, &raw).is_err() {
                break;
            }
        }
        let len = writer.finish();
        let mut bytes = vec![0; 64_000];
        let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let len =
            fcn_wire::emit::sflow(from, to, &octets[..len], &Profile::DEFAULT, &mut bytes).unwrap();
        let keeper = Keeper::new(1 << 20);
        let monitor = Monitor::new(Settings::default());
        let engine = Engine::new(monitor, Some(keeper), Limits::default(), false);
        let described = Described {
            name: "eth0".to_owned(),
            about: String::new(),
            link: fcn_wire::LinkType::Ethernet,
            snap_len: 0,
        };
        engine.taking().know_interface(described, "up");
        for number in 1..=3 {
            let packet = Packet {
                at: START + number,
                bytes: &bytes[..len],
                wire_len: len,
                link: fcn_wire::LinkType::Ethernet,
                interface: 0,
                number,
            };
            assert!(engine.taking().take(&packet));
        }
        let wanted = Wanted {
            qps: true,
            ..Wanted::default()
        };
        let rows: FxHashSet<RowId> = Watched::tables(&engine, wanted)
            .qps
            .iter()
            .map(|(id, _)| *id)
            .collect();
        assert!(rows.len() > 1);
        let folder = tempfile::tempdir().unwrap();
        let exported = |name: &str, rows: &FxHashSet<RowId>| {
            engine.export_rows(rows, &folder.path().join(name)).unwrap()
        };
        assert_eq!(exported("all", &rows), (3, 0));
        for (n, row) in rows.iter().enumerate() {
            let one = std::iter::once(*row).collect();
            assert_eq!(exported(&n.to_string(), &one), (3, 0));
        }
        let mut reader = CaptureReader::open(&folder.path().join("all")).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().bytes, &bytes[..len]);
    }

    #[test]
    fn a_mark_shows_wherever_the_packet_was_seen_with_it() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv6.pcapng");
        let mut reader = CaptureReader::open(&file).unwrap();
        let keeper = Keeper::new(1 << 20);
        let monitor = Monitor::new(Settings::default());
        let engine = Engine::new(monitor, Some(keeper), Limits::default(), false);
        for name in ["leaf1:r1", "leaf1:s1", "leaf1:s2"] {
            let described = Described {
                name: name.to_owned(),
                about: String::new(),
                link: fcn_wire::LinkType::Ethernet,
                snap_len: 0,
            };
            engine.taking().know_interface(described, "ended");
        }
        let mut number = 0;
        // As many as are kept.
        while let Some(packet) = reader.next().unwrap().filter(|_| number < 400) {
            number += 1;
            let packet = Packet {
                at: packet.at,
                bytes: packet.bytes,
                wire_len: packet.wire_len as usize,
                link: packet.link.unwrap(),
                interface: packet.interface,
                number,
            };
            assert!(engine.taking().take(&packet));
        }
        let mut seen_again = 0;
        for (row, record) in Watched::tables(&engine, Wanted::ALL).qps {
            let wanted = WantedDetails {
                packets: Some(row),
                rows: vec![row],
                ..WantedDetails::default()
            };
            let Details { packets, rows, .. } = engine.details(&wanted);
            let count = |is: fn(&&PastPacket) -> bool| packets.iter().filter(is).count() as f64;
            let data = count(|packet| packet.octets > 0);
            let octets: u32 = packets.iter().map(|packet| packet.octets).sum();
            let summed: f32 = rows[&row].data.iter().sum();
            assert!(summed > 0.0);
            // Sums are in parts of 64 octets.
            assert!(
                (octets as f32 - summed).abs() < 64.0,
                "{octets} in packets, {summed} in sums"
            );
            assert_eq!(record.data_packets, Some(data as u64));
            assert_eq!(record.ce_share, Some(count(|packet| packet.ce) / data));
            seen_again += count(|packet| packet.octets == 0 && packet.ce) as u64;
        }
        assert_eq!(
            seen_again, 93,
            "unmarked before the switch, and marked behind it"
        );
    }

    #[test]
    fn rates_of_an_interval_are_those_at_its_end_however_late_it_is_told() {
        let (cnp, link) = cnp();
        let mut monitor = Monitor::new(Settings::default());
        monitor.watch_from(START);
        let engine = Engine::new(monitor, None, Limits::default(), false);
        let rates = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&rates);
        engine.set_timer(IntervalTimer::new(
            SECOND,
            Box::new(move |monitor, _, to, _| {
                monitor.advance(to);
                seen.lock().push(monitor.tables(Wanted::default()).rate_1s);
            }),
        ));
        // 100 a second for half a second, and then nothing: the clock alone ends the interval.
        let mark = engine.mark();
        for nth in 0..50 {
            let packet = Packet {
                at: START + nth * SECOND / 100,
                bytes: &cnp,
                wire_len: cnp.len(),
                link,
                interface: 0,
                number: nth + 1,
            };
            assert!(engine.taking().take(&packet));
        }
        for tenth in 5..25 {
            mark.store(START + tenth * SECOND / 10, Ordering::Relaxed);
            engine.tick();
        }
        assert_eq!(*rates.lock(), [Some(50.0), Some(0.0)]);
    }
}
