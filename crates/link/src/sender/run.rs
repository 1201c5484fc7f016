//! The threads of a run and their supervision: starts them together, reports progress each second,
//! watches the interface, and ends them within a second when asked to.

use super::report::{Ended, QueueReport, Report, Timing};
use super::stats::{Live, Tick};
use super::{Pace, Settings, Source, queue};
use crate::backend::Queue;
use crate::clock::{Clock, Monotonic, Virtual};
use crate::interface::{Interface, LinkEvent, LinkWatch};
use crate::pacing::FCS_LEN;
use crate::transmit::{Counts, Transmit, TransmitError};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of the supervision.
const SUPERVISION_INTERVAL: Duration = Duration::from_millis(20);
/// Delay between the start of the threads and the first frames.
const START_DELAY: Duration = Duration::from_millis(5);
/// Phase of the first frame relative to a full millisecond. The kernel interrupts every processor
/// that is not idle at each full millisecond, or every fourth, for up to 30 µs. Frames at regular
/// gaps of 100, 200, 250, 500 µs or whole milliseconds would, depending on the start, either all be
/// clear of these interrupts, or a fixed fraction of them would not.
const PHASE: Duration = Duration::from_micros(350);
/// Time that an interface may take from down to gone.
const SETTLE: Duration = Duration::from_millis(100);
const TICK: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Flag that stops a run, set by a signal handler for example.
pub type Stop = Arc<AtomicBool>;

/// Work of one queue.
pub struct Job<S> {
    /// The queue.
    pub queue: Queue,
    /// Source of its frames.
    pub source: S,
    /// Settings of the queue.
    pub settings: Settings,
}

/// Runs the `jobs` in a thread each, pinned to separate processors if there are enough. The
/// `interfaces` of the queues are watched, and their counters read; the first that fails ends the
/// run. `each_second` is called with the progress.
///
/// Returns the report, and the queues and sources in their final state.
pub fn run<S: Source>(
    jobs: Vec<Job<S>>,
    interfaces: &[&Interface],
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Tick),
) -> (Report, Vec<(Queue, S)>) {
    let mut watches = Vec::with_capacity(interfaces.len());
    let mut unwatched = Vec::new();
    for interface in interfaces {
        match LinkWatch::new(interface) {
            Ok(watch) => watches.push(watch),
            Err(error) => unwatched.push(error.to_string()),
        }
    }
    let before = dropped(interfaces);
    let lives: Vec<Live> = jobs.iter().map(|_| Live::default()).collect();
    let places = processors(jobs.len());
    let unpaced = jobs.iter().any(|job| job.queue.is_unpaced());
    let halt = AtomicBool::new(false);
    let start = first_due(Monotonic::new(crate::clock::Waiting::Spin).now());
    let mut why = None;

    let results: Vec<QueueResult<S>> = thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .into_iter()
            .zip(&lives)
            .zip(&places)
            .map(|((job, live), place)| {
                let halt = &halt;
                scope.spawn(move || work(job, live, *place, start, halt))
            })
            .collect();
        let _aside = AffinityGuard::step(&places);
        why = supervise(
            &threads,
            &lives,
            (stop, &halt),
            &mut watches,
            (start, unpaced),
            each_second,
        );
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });

    // A thread may learn of the failure from the kernel before the supervision, but not its reason.
    if why.is_none()
        && results.iter().any(|queue| queue.result.is_err())
        && let Some((watch, event)) = event(&mut watches)
    {
        why = Some(settled(watch, event));
    }

    let interface_dropped = before
        .zip(dropped(interfaces))
        .map(|(before, after)| after.saturating_sub(before));
    let (mut report, rest) = conclude(results, &lives, why, (start, unpaced));
    report.interface_dropped = interface_dropped;
    report.unwatched = unwatched;
    (report, rest)
}

/// Returns the due time of the first frame, if threads are about to start at `now`.
fn first_due(now: u64) -> u64 {
    let ready = now + START_DELAY.as_nanos() as u64;
    ready.next_multiple_of(MILLISECOND) + PHASE.as_nanos() as u64
}

/// Returns the sum of the interfaces' drops on sending; `None` if there are no interfaces, or one
/// of them does not report it.
fn dropped(interfaces: &[&Interface]) -> Option<u64> {
    if interfaces.is_empty() {
        return None;
    }
    let counts = interfaces
        .iter()
        .map(|interface| Some(interface.counters().ok()?.tx_dropped));
    counts.sum()
}

/// Returns the next event of one of the interfaces.
fn event(watches: &mut [LinkWatch]) -> Option<(&mut LinkWatch, LinkEvent)> {
    watches
        .iter_mut()
        .find_map(|watch| watch.poll().map(|event| (watch, event)))
}

/// Result of a thread.
struct QueueResult<S> {
    queue: Queue,
    source: S,
    timing: Timing,
    result: Result<(), TransmitError>,
    counts: Counts,
    pinned_to: Option<usize>,
    time_up: bool,
    end: u64,
    /// Time taken, if frames were written immediately.
    took: Duration,
}

fn work<S: Source>(
    job: Job<S>,
    live: &Live,
    place: Option<usize>,
    start: u64,
    halt: &AtomicBool,
) -> QueueResult<S> {
    let pinned_to = place.filter(|place| pin(*place));
    let Job {
        mut queue,
        mut source,
        settings,
    } = job;
    let mut timing = Timing::default();
    let mut clock = match settings.pace {
        // This pace never sleeps.
        Pace::Top => Monotonic::new(settings.waiting),
        Pace::Rate(_) | Pace::Own => Monotonic::with_precedence(settings.waiting),
    };
    let began = Instant::now();
    let (times, watched) = ((&mut clock, start), (halt, live, &mut timing));
    let (result, counts, end) = match &mut queue {
        Queue::Xdp(link) => send_queue(&mut **link, &mut source, times, &settings, watched),
        Queue::Packet(link) => send_queue(&mut **link, &mut source, times, &settings, watched),
        Queue::File(link) if link.is_live() => {
            send_queue(&mut **link, &mut source, times, &settings, watched)
        }
        Queue::File(link) => {
            let times = (&mut Virtual::new(start), start);
            // Writing a frame at its virtual time is not a measurement.
            let watched = (halt, live, &mut Timing::default());
            send_queue(&mut **link, &mut source, times, &settings, watched)
        }
    };
    let time_up = settings
        .duration
        .is_some_and(|d| end >= start.saturating_add(d.as_nanos() as u64));
    QueueResult {
        queue,
        source,
        timing,
        result,
        counts,
        pinned_to,
        time_up,
        end,
        took: began.elapsed(),
    }
}

fn send_queue<T: Transmit, S: Source>(
    link: &mut T,
    source: &mut S,
    (clock, start): (&mut impl Clock, u64),
    settings: &Settings,
    (halt, live, timing): (&AtomicBool, &Live, &mut Timing),
) -> (Result<(), TransmitError>, Counts, u64) {
    let result = queue::send(link, source, clock, start, settings, (halt, live, timing));
    if result.is_err() {
        // The other threads would encounter the same error.
        halt.store(true, Ordering::Relaxed);
    }
    (result, link.counts(), clock.now())
}

/// Supervises the threads; returns the reason why the run had to be ended, if any.
fn supervise<T>(
    threads: &[thread::ScopedJoinHandle<'_, T>],
    lives: &[Live],
    (stop, halt): (&AtomicBool, &AtomicBool),
    watches: &mut [LinkWatch],
    (start, unpaced): (u64, bool),
    each_second: &mut dyn FnMut(&Tick),
) -> Option<Ended> {
    let mut clock = Monotonic::new(crate::clock::Waiting::Sleep);
    let (mut last_at, mut last) = (start, Counts::default());
    let mut why = None;
    while threads.iter().any(|thread| !thread.is_finished()) {
        thread::sleep(SUPERVISION_INTERVAL);
        if why.is_none() {
            if stop.load(Ordering::Relaxed) {
                why = Some(Ended::Interrupted);
            } else if let Some((watch, event)) = event(watches)
                && event.ends_run()
            {
                halt.store(true, Ordering::Relaxed);
                why = Some(settled(watch, event));
            }
            if why.is_some() {
                halt.store(true, Ordering::Relaxed);
            }
        }
        let now = clock.now();
        if now >= last_at + TICK {
            let tick = tick(lives, (start, unpaced), (last_at, &last), now);
            (last_at, last) = (now, sum(lives));
            each_second(&tick);
        }
    }
    why
}

/// Waits for the final event: an interface goes down before it disappears.
fn settled(watch: &mut LinkWatch, event: LinkEvent) -> Ended {
    Ended::LinkFailed(format!(
        "the interface failed: {}",
        watch.wait_for_final_event(event, SETTLE)
    ))
}

fn sum(lives: &[Live]) -> Counts {
    lives
        .iter()
        .fold(Counts::default(), |sum, live| sum.plus(live.counts()))
}

fn tick(
    lives: &[Live],
    (start, unpaced): (u64, bool),
    (last_at, last): (u64, &Counts),
    now: u64,
) -> Tick {
    let counts = sum(lives);
    let over = (now - last_at) as f64 / 1e9;
    let packets = (counts.completed - last.completed) as f64;
    let octets = (counts.octets - last.octets) as f64;
    Tick {
        at: now.saturating_sub(start) as f64 / 1e9,
        sent: counts.completed,
        packets_per_second: packets / over,
        l2_bits_per_second: (octets + packets * FCS_LEN as f64) * 8.0 / over,
        dropped: counts.dropped,
        starved: lives.iter().map(Live::starvations).sum(),
        unpaced,
    }
}

fn conclude<S>(
    results: Vec<QueueResult<S>>,
    lives: &[Live],
    why: Option<Ended>,
    (start, unpaced): (u64, bool),
) -> (Report, Vec<(Queue, S)>) {
    let mut timing = Timing::default();
    let mut queues = Vec::with_capacity(results.len());
    let mut total = Counts::default();
    let mut end = start;
    let mut last = None;
    let mut took = Duration::ZERO;
    let mut time_up = false;
    let mut failed = None;
    let mut rest = Vec::with_capacity(results.len());
    for (send_queue, live) in results.into_iter().zip(lives) {
        timing.add(&send_queue.timing);
        last = last.max(send_queue.timing.last_handed());
        total = total.plus(send_queue.counts);
        end = end.max(send_queue.end);
        took = took.max(send_queue.took);
        time_up |= send_queue.time_up;
        if let Err(error) = &send_queue.result {
            failed.get_or_insert_with(|| Ended::LinkFailed(error.to_string()));
        }
        queues.push(QueueReport {
            mode: send_queue.queue.mode().clone(),
            pinned_to: send_queue.pinned_to,
            counts: send_queue.counts,
            // Without waiting for times, a source cannot be late.
            starved: if unpaced { 0 } else { live.starvations() },
            misfits: live.misfits(),
        });
        rest.push((send_queue.queue, send_queue.source));
    }
    let ended = match (failed, why) {
        (_, Some(why @ Ended::LinkFailed(_))) => why,
        (Some(failed), _) => failed,
        (None, Some(why)) => why,
        (None, None) if time_up => Ended::TimeUp,
        (None, None) => Ended::Done,
    };
    let due_seconds = (end - start) as f64 / 1e9;
    let report = Report {
        ended,
        queues,
        total,
        interface_dropped: None,
        unwatched: Vec::new(),
        seconds: if unpaced {
            took.as_secs_f64()
        } else {
            due_seconds
        },
        sending_seconds: last.unwrap_or(end).saturating_sub(start) as f64 / 1e9,
        due_seconds: unpaced.then_some(due_seconds),
        timing,
    };
    (report, rest)
}

/// Assigns a processor to each of `count` threads if enough are allowed; otherwise the kernel
/// schedules better.
fn processors(count: usize) -> Vec<Option<usize>> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let mut places = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    // From the last one: the first has most of the interrupts.
    let all: Vec<usize> = places.by_ref().collect();
    (0..count)
        .map(|i| (count <= all.len()).then(|| all[all.len() - 1 - i]))
        .collect()
}

/// Keeps the current thread off the senders' processors, if there are others, until it is dropped:
/// the supervision would otherwise take the processor from a spinning thread for milliseconds.
struct AffinityGuard(Option<CpuSet>);

impl AffinityGuard {
    fn step(places: &[Option<usize>]) -> Self {
        let Ok(before) = sched_getaffinity(None) else {
            return Self(None);
        };
        let mut rest = before;
        for place in places.iter().flatten() {
            rest.unset(*place);
        }
        let stepped = rest.count() > 0 && sched_setaffinity(None, &rest).is_ok();
        Self(stepped.then_some(before))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // This set was allowed before.
            let _ = sched_setaffinity(None, before);
        }
    }
}

fn pin(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_frames_avoid_the_kernels_timer_interrupts() {
        for now in [0, 5, 999_999, 123_456_789_012] {
            let start = first_due(now);
            assert!(start >= now + START_DELAY.as_nanos() as u64);
            for gap in [
                100_000,
                200_000,
                250_000,
                500_000,
                MILLISECOND,
                7 * MILLISECOND,
            ] {
                for frame in 0..100 {
                    let past = (start + frame * gap) % MILLISECOND;
                    assert!(
                        (50_000..=MILLISECOND - 50_000).contains(&past),
                        "{gap} {past}"
                    );
                }
            }
        }
    }
}
