//! A simulation played ahead of time: one thread plays, another sends.

use crate::macs::Link;
use crate::scenario::model::Simulation;
use crate::sim::{self, Captured, Sink};
use crate::truth::Truth;
use fcn_link::sender::{BatchReceiver, BatchSender, Gone, stream};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of batches in flight, and of frames and octets in each: about 16,000 frames, or
/// 16 MiB.
const BATCHES: usize = 64;
const FRAMES: usize = 256;
const OCTETS: usize = 256 * 1024;
/// Maximum time for the player to get ahead before the first frame is sent.
const HEAD_START: Duration = Duration::from_secs(2);

/// Parameters of playing a simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The simulation.
    pub simulation: Simulation,
    /// The scenario's name.
    pub name: String,
    /// The vantage point whose frames are sent; `None`: all.
    pub vantage: Option<usize>,
    /// Speed relative to the simulation's time.
    pub speed: f64,
    /// True to repeat it endlessly.
    pub forever: bool,
    /// Limits and addresses of the link.
    pub link: Link,
}

/// State of the player, shared while it plays.
#[derive(Debug, Default)]
pub struct Played {
    /// Number of frames too long for the link.
    too_long: AtomicU64,
    /// Length of the longest of these, in octets.
    longest: AtomicU64,
    /// Number of batches handed over, counted until the player is ahead.
    ahead: AtomicUsize,
    over: AtomicBool,
}

impl Played {
    /// Returns the number of frames skipped because they are too long for the link, and the length
    /// of the longest in octets.
    pub fn too_long(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.too_long), load(&self.longest))
    }

    /// Waits until the player is well ahead, or has played everything; the time is limited.
    pub fn wait(&self, stop: &AtomicBool) {
        let until = Instant::now() + HEAD_START;
        // The last batch is handed over when another one is empty.
        while self.ahead.load(Ordering::Acquire) < BATCHES - 1
            && !self.over.load(Ordering::Acquire)
            && !stop.load(Ordering::Relaxed)
            && Instant::now() < until
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the player's side and the sender's side.
pub fn pair(played: &Played) -> (Player<'_>, BatchReceiver) {
    let (sender, frames) = stream(BATCHES);
    (Player { sender, played }, frames)
}

/// Plays a simulation for a sender.
pub struct Player<'a> {
    sender: BatchSender,
    played: &'a Played,
}

impl Player<'_> {
    /// Plays the plan to its end, or until the sender is gone. Returns the truth of the simulation
    /// if it was played to its end, and the number of frames passed to the sender.
    ///
    /// # Errors
    /// The simulation failed.
    pub fn play(mut self, plan: &Plan, stop: &AtomicBool) -> Result<Option<(Truth, u64)>, String> {
        let result = self.passes(plan, stop);
        self.played.over.store(true, Ordering::Release);
        result
    }

    fn passes(&mut self, plan: &Plan, stop: &AtomicBool) -> Result<Option<(Truth, u64)>, String> {
        let mut truth = None;
        for pass in 0_u64.. {
            let mut sink = LiveSink {
                player: self,
                plan,
                // Passes follow each other without a pause.
                offset: pass.saturating_mul(plan.simulation.duration.as_nanos()),
                taken: 0,
            };
            let outcome = sim::play(&plan.simulation, &plan.name, Some(&mut sink), &mut |_| {
                !stop.load(Ordering::Relaxed)
            });
            let taken = sink.taken;
            match outcome {
                Err(error) if error.is::<Gone>() => return Ok(truth),
                Err(error) => return Err(error.to_string()),
                Ok(_) if stop.load(Ordering::Relaxed) => return Ok(truth),
                Ok(outcome) => {
                    truth.get_or_insert((outcome.truth, taken));
                }
            }
            if !plan.forever || taken == 0 {
                break;
            }
        }
        // The last batch need not be full.
        let _ = self.sender.hand_over();
        Ok(truth)
    }

    fn put(&mut self, at: u64, packet: Captured<'_>, plan: &Plan) -> Result<bool, Gone> {
        let batch = &self.sender.batch;
        let full = batch.len() >= FRAMES || batch.octets() + packet.len > OCTETS;
        if full && !batch.is_empty() {
            self.sender.hand_over()?;
            self.played.ahead.fetch_add(1, Ordering::Release);
        }
        // A capture has an interface for each vantage point that is sent.
        let interface = match plan.vantage {
            Some(_) => 0,
            None => packet.vantage_point as u32,
        };
        let Captured { len, fill, .. } = packet;
        let taken = self.sender.batch.push_with((at, interface), len, |frame| {
            fill(frame);
            let takes = plan.link.takes(frame);
            if takes {
                plan.link.rewrite.apply(frame);
            }
            takes
        });
        if !taken {
            self.played.too_long.fetch_add(1, Ordering::Relaxed);
            self.played.longest.fetch_max(len as u64, Ordering::Relaxed);
        }
        Ok(taken)
    }
}

/// Receives the packets captured at the vantage points.
struct LiveSink<'p, 'a> {
    player: &'p mut Player<'a>,
    plan: &'p Plan,
    /// Total duration of the previous passes, in nanoseconds.
    offset: u64,
    taken: u64,
}

impl Sink for LiveSink<'_, '_> {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        let wanted = self.plan.vantage;
        if wanted.is_some_and(|point| point != packet.vantage_point) {
            return Ok(());
        }
        let since = packet.at.saturating_sub(self.plan.simulation.epoch);
        let virtually = self.offset.saturating_add(since);
        #[expect(clippy::float_cmp, reason = "exactly real time")]
        let at = if self.plan.speed == 1.0 {
            virtually
        } else {
            (virtually as f64 / self.plan.speed) as u64
        };
        self.taken += u64::from(self.player.put(at, packet, self.plan)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::macs::Rewrite;
    use crate::scenario::{Play, Source as From, load};
    use fcn_link::sender::{Next, Source};

    fn plan(sets: &[&str]) -> Plan {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = load(&From::Builtin("incast".to_owned()), &sets).unwrap();
        let Play::Simulation(mut simulation) = scenario.play else {
            panic!("no simulation");
        };
        simulation.snap_len = 0;
        Plan {
            simulation: *simulation,
            name: scenario.name,
            vantage: Some(0),
            speed: 1.0,
            forever: false,
            link: Link {
                rewrite: Rewrite::default(),
                mtu: None,
                longest: 9_000,
            },
        }
    }

    /// Collects the packets of a capture with the plan's vantage points.
    struct Kept(Vec<(u64, Vec<u8>)>, Plan);

    impl Sink for Kept {
        fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
            if self
                .1
                .vantage
                .is_none_or(|point| point == packet.vantage_point)
            {
                let mut octets = vec![0; packet.len];
                (packet.fill)(&mut octets);
                self.0.push((packet.at - self.1.simulation.epoch, octets));
            }
            Ok(())
        }
    }

    fn captured(plan: &Plan) -> Vec<(u64, Vec<u8>)> {
        let mut kept = Kept(Vec::new(), plan.clone());
        sim::play(&plan.simulation, "x", Some(&mut kept), &mut |_| true).unwrap();
        kept.0
    }

    /// Returns the frames that the sender gets, at most `most`; the number of frames too long; and
    /// whether there is a truth.
    fn sent(plan: &Plan, most: usize) -> (Vec<(u64, Vec<u8>)>, u64, bool) {
        let (played, stop) = (Played::default(), AtomicBool::new(false));
        let mut got = Vec::new();
        let truth = thread::scope(|scope| {
            let (player, mut frames) = pair(&played);
            let stop = &stop;
            let playing = scope.spawn(move || player.play(plan, stop));
            played.wait(stop);
            let mut out = vec![0; 10_000];
            while got.len() < most {
                match frames.peek() {
                    Next::Frame { at, len } => {
                        frames.fill(0, &mut out);
                        got.push((at, out[..len].to_vec()));
                    }
                    Next::NotYet => thread::yield_now(),
                    Next::End => break,
                }
            }
            drop(frames);
            playing.join().unwrap().unwrap()
        });
        (got, played.too_long().0, truth.is_some())
    }

    #[test]
    fn sent_frames_equal_a_capture() {
        for (vantage, sets) in [
            (Some(0), &["duration=200us"][..]),
            (Some(1), &["duration=200us"]),
            (None, &["duration=100us"]),
            // More frames than fit the batches.
            (Some(0), &["duration=20ms", "mtu=256", "senders=20"]),
        ] {
            let mut plan = plan(sets);
            plan.vantage = vantage;
            let expected = captured(&plan);
            assert!(expected.len() > 10);
            let (got, too_long, truth) = sent(&plan, usize::MAX);
            assert_eq!(got.len(), expected.len());
            assert!(got == expected && too_long == 0 && truth);
        }
    }

    #[test]
    fn time_is_scaled_and_passes_are_consecutive() {
        let mut plan = plan(&["duration=100us"]);
        let once = captured(&plan);
        plan.speed = 0.5;
        plan.forever = true;
        let n = once.len();
        let (got, ..) = sent(&plan, 2 * n + 3);
        assert_eq!(got.len(), 2 * n + 3);
        for (i, (at, octets)) in got.iter().enumerate() {
            let pass = (i / n) as u64;
            let (first, expected) = &once[i % n];
            assert_eq!(*at, (pass * 100_000 + first) * 2);
            assert_eq!(octets, expected);
        }
    }

    #[test]
    fn frames_too_long_are_counted_and_skipped() {
        let mut plan = plan(&["duration=100us", "mtu=1024"]);
        let all = captured(&plan);
        plan.link.mtu = Some(1_000);
        let short = |octets: &[u8]| octets.len() <= 1_014;
        let expected: Vec<_> = all
            .iter()
            .filter(|(_, octets)| short(octets))
            .cloned()
            .collect();
        let (got, too_long, _) = sent(&plan, usize::MAX);
        assert!(!expected.is_empty() && expected.len() < all.len());
        assert_eq!(got, expected);
        assert_eq!(too_long as usize, all.len() - expected.len());
        plan.link.mtu = Some(1);
        plan.forever = true;
        // It ends instead of repeating a simulation without frames.
        assert!(sent(&plan, usize::MAX).0.is_empty());
    }

    #[test]
    fn player_ends_with_the_sender() {
        let mut plan = plan(&["duration=50ms", "mtu=256"]);
        plan.forever = true;
        let (got, _, truth) = sent(&plan, 10);
        assert!(got.len() == 10 && !truth);
    }
}
