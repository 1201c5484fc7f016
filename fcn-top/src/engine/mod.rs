//! Everything that touches files, sockets, threads and the clock: all inputs feed the one monitor
//! here, and all outputs access it through [`Engine`].
//!
//! `file.rs` reads captures, `live.rs` captures on interfaces (`opener.rs` waits for them),
//! `all_interfaces.rs` distinguishes interfaces captured on together, `kernel_filter.rs` builds the
//! kernel's filter, `intervals.rs` divides time into intervals, `packet_store.rs` keeps packets and
//! `export.rs` writes them, `privileges.rs` drops privileges that are no longer needed.

pub mod all_interfaces;
pub mod export;
pub mod file;
#[cfg(feature = "program")]
pub mod handle;
pub mod intervals;
#[cfg_attr(not(feature = "program"), path = "no_filter.rs")]
pub mod kernel_filter;
#[cfg(feature = "program")]
pub mod live;
#[cfg(feature = "program")]
mod opener;
pub mod packet_store;
#[cfg(feature = "program")]
pub mod privileges;
#[cfg(feature = "program")]
mod rdma;
mod stamps;

use crate::monitor::events::{LOST_BY_INTERFACE, LOST_BY_KERNEL};
use crate::monitor::{Monitor, Observed};
use crate::new_file::taken;
use crate::packet::Packet;
use crate::record::EventRecord;
use crate::record::RowId;
use crate::tables::{
    Details, Dropped, Nics, PastPacket, TableSource, Tables, Wanted, WantedDetails,
};
use export::{InterfaceDescription, SelectedPackets};
use fcn_observe::FlowKey;
use fcn_observe::time::nanos;
use fcn_tool::failure::Failure;
use fcn_wire::Severity;
use intervals::IntervalTimer;
use packet_store::PacketStore;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustc_hash::FxHashSet;
use stamps::Stamps;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Packets of a file processed before other threads may access the monitor.
pub const BATCH: usize = 512;
/// Rows copied before packets are processed again: a fraction of a millisecond's work, so that
/// packets get most of the time.
const ROWS: usize = 256;
/// Number of rows collected before surplus ones are dropped, if not all rows are wanted.
const GATHERED: usize = 4_096;
/// Time that an interval waits for its packets if no later packet shows that it is over, in
/// nanoseconds.
const GRACE: u64 = 250_000_000;
/// Value of a mark: everything captured until now has arrived, except packets in transit for less
/// than `GRACE`.
pub const BY_THE_CLOCK: u64 = u64::MAX;

/// Maximum number of pending messages about interfaces: the screen never fetches them.
const MESSAGES: usize = 100;
/// Maximum age of a packet on arrival, in nanoseconds, for it to count as captured now.
const MAX_LIVE_AGE: u64 = 5_000_000_000;

/// Packets to export, the interfaces of the capture, and the number of packets that were dropped.
type Selection = (SelectedPackets, Vec<InterfaceDescription>, u64);

/// A running input; dropped when the input ends.
pub struct Running<'e>(&'e Engine);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        let _waiters = self.0.waiters.lock();
        self.0.stopped.notify_all();
    }
}

/// A source of packets.
pub trait Input: Send {
    /// Processes packets until there are no more, or `stop` is set.
    ///
    /// # Errors
    ///
    /// No more packets can come, for the reason given; those processed before count.
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure>;
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Number of packets.
    pub count: Option<u64>,
    /// Time after the first packet, by time stamps.
    pub span: Option<Duration>,
}

/// The monitor, and the other state updated with each packet.
struct State {
    monitor: Monitor,
    store: Option<PacketStore>,
    timer: Option<IntervalTimer<Monitor>>,
    interfaces: Vec<InterfaceDescription>,
    limits: Limits,
    /// Packets processed.
    taken: u64,
    /// Number of the last packet.
    last: u64,
    /// Time from which packets are ignored.
    until: Option<u64>,
    /// True if a limit was reached.
    limit_reached: bool,
    /// Plausibility check of time stamps.
    stamps: Stamps,
}

/// Shared state, fed by inputs and read by outputs.
pub struct Engine {
    state: Mutex<State>,
    /// Number of running inputs.
    running: AtomicUsize,
    /// Notified when an input ends.
    stopped: Condvar,
    waiters: Mutex<()>,
    /// For each live source, the time before which it has delivered everything.
    marks: Mutex<Vec<Arc<AtomicU64>>>,
    ended: Mutex<Option<String>>,
    /// Counters of this host's RDMA devices.
    nics: Mutex<Arc<Nics>>,
    /// Returns the current time, in nanoseconds since the epoch.
    clock: fn() -> u64,
    /// Pending messages about interfaces.
    messages: Mutex<Vec<String>>,
    /// True if packets were dropped before they got here.
    lossy: AtomicBool,
    /// True if the input was captured earlier.
    recorded: AtomicBool,
    /// True if addresses must not leave the program; packets contain them.
    pub(super) private: bool,
}

impl Engine {
    /// Creates an engine without packets.
    pub fn new(
        monitor: Monitor,
        store: Option<PacketStore>,
        limits: Limits,
        private: bool,
    ) -> Self {
        let state = State {
            monitor,
            store,
            timer: None,
            interfaces: Vec::new(),
            limits,
            taken: 0,
            last: 0,
            until: None,
            limit_reached: false,
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
            clock: wall_clock,
            messages: Mutex::new(Vec::new()),
            lossy: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            private,
        }
    }

    /// Takes the time of events without packets from another clock than the system's, in
    /// nanoseconds since the epoch.
    #[must_use]
    pub fn with_clock(self, clock: fn() -> u64) -> Self {
        Self { clock, ..self }
    }

    /// Sets a timer called at the end of each interval.
    pub fn set_timer(&self, timer: IntervalTimer<Monitor>) {
        self.state.lock().timer = Some(timer);
    }

    /// Sets the current counters of this host's RDMA devices.
    pub fn set_nics(&self, nics: Nics) {
        *self.nics.lock() = Arc::new(nics);
    }

    /// Sets the state of an interface; `dropped` by the kernel and by the interface.
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

    /// Returns the name of an interface for messages: its number if the name may contain an
    /// address.
    pub fn interface_name(&self, number: u32) -> String {
        let guard = self.state.lock();
        match guard.interfaces.get(number as usize) {
            Some(known) if !self.private => known.name.clone(),
            _ => format!("#{number}"),
        }
    }

    /// Adds an event about an interface or the whole capture to the log.
    pub fn note(&self, severity: Severity, what: &'static str, interface: Option<u32>, text: &str) {
        let name = interface.map_or_else(String::new, |number| self.interface_name(number));
        let mut messages = self.messages.lock();
        if interface.is_some() && messages.len() < MESSAGES {
            messages.push(format!("{}: {name}: {text}", severity.id()));
        }
        drop(messages);
        self.note_times(1, (severity, what), &name, text);
    }

    /// Same, for something that happened `times` times.
    fn note_times(
        &self,
        times: u64,
        (severity, what): (Severity, &'static str),
        interface: &str,
        text: &str,
    ) {
        let mut guard = self.state.lock();
        let at = match guard.monitor.now() {
            0 => (self.clock)(),
            now => now,
        };
        guard.monitor.note(EventRecord {
            times,
            interface: Some(interface.into()),
            ..EventRecord::of_capture(at, severity, what, text)
        });
    }

    /// Logs losses on an interface: by the kernel and by the interface itself, each with its text.
    fn note_losses(&self, interface: u32, lost: [u64; 2], texts: [&str; 2]) {
        let name = self.interface_name(interface);
        let kinds = [LOST_BY_KERNEL, LOST_BY_INTERFACE];
        for ((lost, what), text) in lost.into_iter().zip(kinds).zip(texts) {
            if lost > 0 {
                self.note_times(lost, (Severity::Warning, what), &name, text);
            }
        }
    }

    /// Locks the state to process packets; other threads wait.
    pub fn lock_for_packets(&self) -> PacketSink<'_> {
        PacketSink {
            state: self.state.lock(),
        }
    }

    /// Returns true if a limit was reached.
    pub fn limit_reached(&self) -> bool {
        self.state.lock().limit_reached
    }

    /// Accesses the monitor; packets wait meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(&mut Monitor) -> T) -> T {
        look(&mut self.state.lock().monitor)
    }

    /// Same, but returns `None` while packets are processed, which may themselves wait for output
    /// to be printed.
    pub fn try_with<T>(&self, look: impl FnOnce(&mut Monitor) -> T) -> Option<T> {
        let mut guard = self.state.try_lock()?;
        Some(look(&mut guard.monitor))
    }

    /// Returns a new mark for a live source to advance, in nanoseconds since the epoch: everything
    /// captured before it has been processed.
    pub fn mark(&self) -> Arc<AtomicU64> {
        let mark = Arc::new(AtomicU64::new(0));
        self.marks.lock().push(Arc::clone(&mark));
        mark
    }

    /// Advances time while no packets arrive. Does not wait for the lock, because packets advance
    /// time themselves.
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
        if until > 0 && !guard.limit_reached {
            // Rates are reported as of the end of an interval, so time must not have advanced past
            // it.
            let end = guard.timer.as_ref().map_or(u64::MAX, IntervalTimer::end);
            guard.monitor.advance(until.min(end));
        }
    }

    /// Counts an input as running until the returned value is dropped.
    pub fn begin(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(self)
    }

    /// Records that an input ended, and why.
    pub fn end(&self, how: &str) {
        *self.ended.lock() = Some(how.to_owned());
    }

    /// Returns true if packets are captured now, as far as can be told: on an interface, or in a
    /// pipe whose last packet was fresh or that has not delivered any.
    pub fn is_fresh(&self) -> bool {
        let marks = self.marks.lock();
        let now = wall_clock();
        let fresh = |mark: &Arc<AtomicU64>| match mark.load(Ordering::Relaxed) {
            BY_THE_CLOCK => true,
            moment => now.abs_diff(moment) < MAX_LIVE_AGE,
        };
        !marks.is_empty() && (self.taken() == 0 || marks.iter().all(fresh))
    }

    /// Returns the messages about interfaces since the last call.
    pub fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.messages.lock())
    }

    /// Returns true if packets were dropped by the kernel or by an interface.
    pub fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Relaxed)
    }

    /// Records that the input was captured earlier.
    pub fn reads_recording(&self) {
        self.recorded.store(true, Ordering::Relaxed);
    }

    /// Returns true if the input was captured earlier.
    pub fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Returns the number of packets processed.
    pub fn taken(&self) -> u64 {
        self.state.lock().taken
    }

    /// Returns the number of the last processed packet, as counted by its input.
    pub fn last(&self) -> u64 {
        self.state.lock().last
    }

    /// Returns true if any input is running.
    pub fn runs(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }

    /// Waits at most `most` while inputs are running.
    pub fn wait(&self, most: Duration) {
        let mut waiters = self.waiters.lock();
        if self.runs() {
            self.stopped.wait_for(&mut waiters, most);
        }
    }

    /// Ends the current interval. Must be called once, after the last packet.
    pub fn finish(&self) {
        let mut guard = self.state.lock();
        let State { monitor, timer, .. } = &mut *guard;
        if let Some(mut timer) = timer.take() {
            timer.finish(monitor);
        }
    }

    /// Writes the kept packets of some rows to a new pcapng file; returns their number, and the
    /// number of packets dropped for lack of room.
    ///
    /// # Errors
    ///
    /// The packets cannot be exported. The text says what failed, on what, and what to do.
    pub fn export_rows(&self, rows: &FxHashSet<RowId>, to: &Path) -> Result<(u64, u64), String> {
        let (chosen, interfaces, gone) = self.select_rows(rows)?;
        Ok((chosen.write(to, &interfaces)?, gone))
    }

    /// Same, to a writer.
    ///
    /// # Errors
    ///
    /// As for [`export_rows`](Self::export_rows).
    pub fn write_rows(
        &self,
        rows: &FxHashSet<RowId>,
        to: impl Write + Send,
    ) -> Result<(u64, u64), String> {
        let (chosen, interfaces, gone) = self.select_rows(rows)?;
        Ok((chosen.write_to(to, &interfaces)?, gone))
    }

    /// Copies the kept packets of some rows; returns them, all interfaces, and the number of
    /// packets dropped for lack of room.
    fn select_rows(&self, rows: &FxHashSet<RowId>) -> Result<Selection, String> {
        if self.private {
            return Err("an export would reveal the addresses that --privacy hides".to_owned());
        }
        Ok({
            let guard = self.state.lock();
            let Some(store) = &guard.store else {
                return Err("no packets are kept: set --keep".to_owned());
            };
            let flows: FxHashSet<FlowKey> = rows
                .iter()
                .filter_map(|row| guard.monitor.flow_of_row(*row))
                .collect();
            let selected = SelectedPackets::select(store, |kept| {
                kept.row.is_some_and(|row| rows.contains(&row))
                    || kept.flow.is_some_and(|flow| flows.contains(&flow))
            });
            (selected, guard.interfaces.clone(), store.dropped())
        })
    }
}

impl TableSource for Engine {
    fn tables(&self, wanted: Wanted) -> Tables {
        let others = Wanted {
            qps: false,
            flows: false,
            ..wanted
        };
        let mut flows = Vec::new();
        let mut next = wanted.flows.then_some(0);
        while let Some(place) = next {
            let guard = self.state.lock();
            next = guard.monitor.flows_from(place, ROWS, &mut flows);
            MutexGuard::unlock_fair(guard);
        }
        let mut rows = Vec::new();
        let mut next = wanted.qps.then_some(0);
        // There are many rows and flows: packets are processed in between, so that rows may differ in time by
        // a few milliseconds. Everything else is of the last moment.
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
            flows,
            nics: Arc::clone(&self.nics.lock()),
            ..tables
        }
    }

    fn details(&self, wanted: &WantedDetails) -> Details {
        let guard = self.state.lock();
        let mut details = guard.monitor.details(wanted);
        if let (Some(row), Some(store)) = (wanted.packets, &guard.store) {
            details.notified = Some(store.notified(row));
            let flow = guard.monitor.flow_of_row(row);
            let of_it = store.packets().map(|(kept, _)| kept).filter(|kept| {
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
                    reordered: kept.back,
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

/// Exclusive access for processing packets.
pub struct PacketSink<'a> {
    state: MutexGuard<'a, State>,
}

impl PacketSink<'_> {
    /// Processes a packet; returns true if more are wanted. The packet's number is its position
    /// among those counted by the input.
    #[inline]
    pub fn take(&mut self, packet: &Packet<'_>) -> bool {
        let State {
            monitor,
            store,
            timer,
            limits,
            taken,
            last,
            until,
            limit_reached,
            stamps,
            ..
        } = &mut *self.state;
        if *limit_reached {
            return false;
        }
        // It counts with a plausible time; the kept copy has its own.
        let (at, far) = stamps.plausible_time(packet.interface, packet.at, monitor.now());
        let counted = Packet { at, ..*packet };
        if let Some(far) = far {
            monitor.report_outlier(&counted, (far.by, far.ahead), far.first);
        }
        if let Some(span) = limits.span {
            let end = *until.get_or_insert_with(|| counted.at.saturating_add(nanos(span)));
            if counted.at >= end {
                *limit_reached = true;
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
            && let Some(store) = store
        {
            keep_samples(monitor, store, packet);
        }
        if let Some(store) = store
            && (observed.row.is_some() || observed.flow.is_some())
        {
            let about = observed.row.and_then(|row| monitor.flow_of_row(row));
            let about = Observed {
                flow: observed.flow.or(about),
                ..observed
            };
            store.keep(packet, &about);
        }
        if limits.count.is_some_and(|count| *taken >= count) {
            *limit_reached = true;
        }
        !*limit_reached
    }

    /// Reports a packet whose time stamp is out of range: its time is that of the packet before.
    #[cold]
    pub fn report_bad_stamp(&mut self, packet: &Packet<'_>) {
        self.state.monitor.report_bad_stamp(packet);
    }

    /// Registers an interface; returns its number.
    pub fn know_interface(
        &mut self,
        description: InterfaceDescription,
        state: &'static str,
    ) -> u32 {
        let State {
            monitor,
            interfaces,
            ..
        } = &mut *self.state;
        let number = interfaces.len() as u32;
        monitor.know_interface(number, &description.name, &description.about);
        monitor.interface_state(number, state, None, (None, None));
        interfaces.push(description);
        number
    }

    /// Lets waiting threads access the monitor.
    pub fn release(self) {
        MutexGuard::unlock_fair(self.state);
    }
}

/// Keeps a packet with samples for every row and flow that one of them is about.
#[cold]
fn keep_samples(monitor: &Monitor, store: &mut PacketStore, packet: &Packet<'_>) {
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
            1 => store.keep(packet, &about),
            _ => store.keep_again(&about),
        }
    }
}

/// Returns the clock that stamps packets, in nanoseconds since the epoch.
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

    /// Returns a CNP.
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
    fn clocks_days_apart_are_reported_and_used_per_interface() {
        let (cnp, link) = cnp();
        let monitor = Monitor::new(Settings {
            per_interface: true,
            ..Settings::default()
        });
        let engine = Engine::new(monitor, None, Limits::default(), false);
        for name in ["utc", "uptime"] {
            let description = InterfaceDescription {
                name: name.to_owned(),
                about: String::new(),
                link,
                snap_len: 0,
            };
            engine
                .lock_for_packets()
                .know_interface(description, "ended");
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
            assert!(engine.lock_for_packets().take(&packet));
        }
        let tables = TableSource::tables(&engine, Wanted::ALL);
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
        let text = "Time stamps of uptime are 20454 d behind the previous ones: ";
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
        let store = PacketStore::new(1 << 20);
        let monitor = Monitor::new(Settings::default());
        let engine = Engine::new(monitor, Some(store), Limits::default(), false);
        let description = InterfaceDescription {
            name: "eth0".to_owned(),
            about: String::new(),
            link: fcn_wire::LinkType::Ethernet,
            snap_len: 0,
        };
        engine.lock_for_packets().know_interface(description, "up");
        for number in 1..=3 {
            let packet = Packet {
                at: START + number,
                bytes: &bytes[..len],
                wire_len: len,
                link: fcn_wire::LinkType::Ethernet,
                interface: 0,
                number,
            };
            assert!(engine.lock_for_packets().take(&packet));
        }
        let wanted = Wanted {
            qps: true,
            ..Wanted::default()
        };
        let rows: FxHashSet<RowId> = TableSource::tables(&engine, wanted)
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
    fn a_mark_counts_at_any_capture_point() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv6.pcapng");
        let mut reader = CaptureReader::open(&file).unwrap();
        let store = PacketStore::new(1 << 20);
        let monitor = Monitor::new(Settings::default());
        let engine = Engine::new(monitor, Some(store), Limits::default(), false);
        for name in ["leaf1:r1", "leaf1:s1", "leaf1:s2"] {
            let description = InterfaceDescription {
                name: name.to_owned(),
                about: String::new(),
                link: fcn_wire::LinkType::Ethernet,
                snap_len: 0,
            };
            engine
                .lock_for_packets()
                .know_interface(description, "ended");
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
            assert!(engine.lock_for_packets().take(&packet));
        }
        let mut seen_again = 0;
        for (row, record) in TableSource::tables(&engine, Wanted::ALL).qps {
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
            // Sums are in units of 64 octets.
            assert!(
                (octets as f32 - summed).abs() < 64.0,
                "{octets} in packets, {summed} in sums"
            );
            assert_eq!(record.data_packets, Some(data as u64));
            assert_eq!(record.ce_share, Some(count(|packet| packet.ce) / data));
            seen_again += count(|packet| packet.octets == 0 && packet.ce) as u64;
        }
        assert_eq!(
            seen_again, 23,
            "unmarked before the switch, and marked behind it"
        );
    }

    #[test]
    fn rates_of_an_interval_are_those_at_its_end() {
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
        // 100 a second for half a second, then nothing: the clock alone ends the interval.
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
            assert!(engine.lock_for_packets().take(&packet));
        }
        for tenth in 5..25 {
            mark.store(START + tenth * SECOND / 10, Ordering::Relaxed);
            engine.tick();
        }
        assert_eq!(*rates.lock(), [Some(50.0), Some(0.0)]);
    }
}
