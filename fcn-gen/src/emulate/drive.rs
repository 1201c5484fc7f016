//! The main loop: receives frames, runs timers, and sends frames at their times.

use crate::device::{LinkNode, Wire};
use crate::sim::live::OutgoingFrame;
use crate::units::Ps;
use fcn_link::clock::Clock;
use fcn_wire::Kind;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum wait, so that interruptions are handled promptly.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Time limit for taking down connections at the end, in nanoseconds.
const GRACE: u64 = 300_000_000;
/// Interval for checking links that may have gone down or come back, in nanoseconds.
const TEND: u64 = 100_000_000;
/// Interval of progress ticks, in nanoseconds.
const TICK: u64 = 1_000_000_000;
/// Maximum value of the histograms in nanoseconds: 100 s.
const LARGEST: u64 = 100_000_000_000;

/// Reason for the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The duration has passed.
    TimeUp,
    /// Every message of the node's flows was acknowledged.
    Done,
    /// It was interrupted.
    Interrupted,
    /// A link failed, or a packet could not be built.
    Failed(String),
}

/// Traffic of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkTraffic {
    /// Frames received.
    pub received: u64,
    /// Octets of these frames, without FCS.
    pub received_octets: u64,
    /// Frames sent.
    pub sent: u64,
    /// Octets of these frames, without FCS.
    pub sent_octets: u64,
    /// Frames that could not be sent: too long, no room, or the link was down.
    pub refused: u64,
    /// True if the link is unusable at present.
    #[serde(skip)]
    pub is_away: bool,
}

/// Measurements of a run.
pub struct Measured {
    /// Traffic by link.
    pub traffic: Vec<LinkTraffic>,
    /// Reaction times by kind of notification: from the arrival of the packet answered to the
    /// sending of the notification, in nanoseconds.
    pub reactions: BTreeMap<Kind, Histogram<u64>>,
    /// Lateness of sent frames, in nanoseconds.
    pub late: Histogram<u64>,
    /// Duration of the run, in nanoseconds.
    pub ran: u64,
    /// Messages about links that were not shown yet.
    pub news: Vec<String>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            traffic: Vec::new(),
            reactions: BTreeMap::new(),
            late: histogram(),
            ran: 0,
            news: Vec::new(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    // Three significant digits suffice for reading. These bounds are always accepted.
    Histogram::new_with_bounds(1, LARGEST, 3).unwrap_or_else(|e| unreachable!("{e}"))
}

/// Converts between real time, in nanoseconds of a clock, and the node's time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    start: u64,
    speed: f64,
}

impl Pace {
    fn to_node(self, real: u64) -> Ps {
        Ps((real.saturating_sub(self.start) as f64 * 1e3 * self.speed) as u64)
    }

    fn span(self, node: Ps) -> u64 {
        (node.0 as f64 / 1e3 / self.speed) as u64
    }

    /// Rounded up, so that events due at that time are due.
    fn to_real(self, node: Ps) -> u64 {
        let span = (node.0 as f64 / 1e3 / self.speed).ceil() as u64;
        self.start.saturating_add(span)
    }
}

/// Runs a node on its links.
pub struct Drive<'a, W, C, N> {
    wire: &'a mut W,
    clock: &'a mut C,
    node: N,
    pace: Pace,
    /// Frames to send later, by due time and sequence number.
    held: BTreeMap<(u64, u64), OutgoingFrame>,
    held_so_far: u64,
    outgoing: Vec<OutgoingFrame>,
    /// Frames to be handed over: their due time, and their reaction time without lateness.
    handed: Vec<(u64, Option<(Kind, u64)>)>,
    measured: Measured,
}

impl<'a, W: Wire, C: Clock, N: LinkNode> Drive<'a, W, C, N> {
    /// Creates a drive that begins now, with the node's time running `speed` times as fast.
    pub fn new(wire: &'a mut W, clock: &'a mut C, node: N, speed: f64) -> Self {
        let start = clock.now();
        let measured = Measured {
            traffic: vec![LinkTraffic::default(); wire.links()],
            ..Measured::default()
        };
        Self {
            wire,
            clock,
            node,
            pace: Pace { start, speed },
            held: BTreeMap::new(),
            held_so_far: 0,
            outgoing: Vec::new(),
            handed: Vec::new(),
            measured,
        }
    }

    /// Runs for this duration, until `stop` is true, or, if `until_done` is set, until the node's
    /// own flows are complete; `tick` is called each second with the measurements. Then connections
    /// are taken down.
    pub fn run(
        mut self,
        for_: Option<Duration>,
        until_done: bool,
        stop: &AtomicBool,
        tick: &mut dyn FnMut(u64, &mut Measured, &mut N),
    ) -> (RunEnd, N, Measured) {
        let start = self.pace.start;
        let end = for_.map(|d| start.saturating_add(d.as_nanos() as u64));
        let (mut next_tick, mut next_look) = (start + TICK, start + TEND);
        let mut ended = None;
        let mut until = end.unwrap_or(u64::MAX);
        loop {
            let now = self.clock.now();
            if now >= next_tick {
                tick(now - start, &mut self.measured, &mut self.node);
                next_tick = now + TICK;
            }
            if now >= next_look {
                self.measured.news.extend(self.wire.tend());
                for (link, passed) in self.measured.traffic.iter_mut().enumerate() {
                    passed.is_away = self.wire.is_away(link);
                }
                next_look = now + TEND;
            }
            if ended.is_none() {
                ended = if stop.load(Ordering::Relaxed) {
                    Some(RunEnd::Interrupted)
                } else if now >= until {
                    Some(RunEnd::TimeUp)
                } else if until_done && self.node.has_opened() && self.node.is_quiet() {
                    Some(RunEnd::Done)
                } else {
                    None
                };
                if ended.is_some() {
                    self.measured.ran = now - start;
                    until = now + GRACE;
                    self.node.stop(self.pace.to_node(now));
                }
            }
            let over = ended.is_some() && self.node.is_quiet() && self.held.is_empty();
            if over || ended.is_some() && now >= until {
                break;
            }
            if let Err(why) = self.run_once(until.min(next_tick).min(next_look)) {
                self.measured.ran = self.clock.now() - start;
                ended = Some(RunEnd::Failed(why));
                break;
            }
        }
        let ended = ended.unwrap_or(RunEnd::TimeUp);
        (ended, self.node, self.measured)
    }

    /// Receives available frames, sends due ones, and waits no longer than `until`.
    fn run_once(&mut self, until: u64) -> Result<(), String> {
        let mut any = 0;
        for link in 0..self.wire.links() {
            let (node, traffic) = (&mut self.node, &mut self.measured.traffic[link]);
            let (clock, pace) = (&mut *self.clock, self.pace);
            any += self.wire.receive(link, &mut |frame| {
                traffic.received += 1;
                traffic.received_octets += frame.len() as u64;
                // Each frame has its own time: a common time for all frames of a turn would be a
                // burst that never occurred.
                node.on_frame(pace.to_node(clock.now()), link, frame);
            })?;
            self.deliver()?;
        }
        let now = self.clock.now();
        self.node.on_timer(self.pace.to_node(now));
        self.deliver()?;
        if let Some(why) = self.node.failure() {
            return Err(why);
        }
        if any > 0 {
            self.clock.note_external_wait(now, 0);
            return Ok(());
        }
        let timer = self.node.next_timer().map(|at| self.pace.to_real(at));
        let held = self.held.first_key_value().map(|((due, _), _)| *due);
        let next = timer.into_iter().chain(held).fold(until, u64::min);
        let now = self.clock.now();
        if next > now {
            let for_ = Duration::from_nanos(next - now);
            self.wire.wait(for_.min(LONGEST_WAIT))?;
            let woke = self.clock.now();
            self.clock.note_external_wait(woke, woke - now);
        }
        Ok(())
    }

    /// Sends the due frames among those held and those new from the node, and holds the rest.
    fn deliver(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= now) {
            let ((due, _), frame) = first.remove_entry();
            self.hand_over(due, frame)?;
        }
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.node.take_outgoing(&mut outgoing);
        for frame in outgoing.drain(..) {
            let due = self.pace.to_real(frame.at);
            if due <= now {
                self.hand_over(due, frame)?;
                continue;
            }
            self.held_so_far += 1;
            self.held.insert((due, self.held_so_far), frame);
        }
        self.outgoing = outgoing;
        if self.handed.is_empty() {
            return Ok(());
        }
        self.wire.flush()?;
        let now = self.clock.now();
        for (due, reaction) in self.handed.drain(..) {
            let late = now.saturating_sub(due);
            self.measured.late.saturating_record(late);
            if let Some((kind, took)) = reaction {
                let all = self.measured.reactions.entry(kind);
                let all = all.or_insert_with(histogram);
                all.saturating_record(took + late);
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, due: u64, frame: OutgoingFrame) -> Result<(), String> {
        let (header, rest) = frame.parts();
        let sent = self.wire.send(frame.link, header, rest)?;
        let traffic = &mut self.measured.traffic[frame.link];
        count(traffic, header.len() + rest.len(), sent);
        if sent {
            let took = |(kind, from, to): (Kind, Ps, Ps)| (kind, self.pace.span(to.since(from)));
            self.handed.push((due, frame.reaction.map(took)));
        }
        self.node.recycle(frame.octets);
        Ok(())
    }
}

fn count(traffic: &mut LinkTraffic, octets: usize, sent: bool) {
    if sent {
        traffic.sent += 1;
        traffic.sent_octets += octets as u64;
    } else {
        traffic.refused += 1;
    }
}

#[cfg(test)]
mod tests;
