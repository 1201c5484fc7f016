//! The answer with time counted in gaps between packets.
//!
//! The *pace* is the logarithm of a gap's length per octet: 0.69 more is half the rate.
//! - *Response* (`response.rs`): the pace of the 1 to 64 gaps after a notification, minus that
//!   predicted from the flow's own past, averaged over notifications. The gap that contains the
//!   notification is left out, as long gaps contain more of them; but no sender is reported not to
//!   obey if its gaps with a notification are longer than even that explains. The prediction is a
//!   regression on the means of the last 1, 2, 4, 16 and 64 gaps, as notifications come when a
//!   sender is fast, and a fast sender becomes slower by itself.
//! - *Bursts* (`pace.rs`): at least four packets sent back to back are one burst. A sender may slow
//!   down within its messages or between its bursts, so the response is measured from packet to
//!   packet and from burst to burst.
//! - *Before*: a flow that is slower while it is notified than before the first notification may
//!   have been held down.
//! - *Steadiness* (`steadiness.rs`): a pace that varies by itself at the time scale of
//!   notifications may be a response that comes too late to be distinguished from chance.

use super::pace::{Batches, Gap, Pace};
use super::response::{Effect, FADES, Response};
use super::steadiness::Steadiness;
use super::{Advice, Answer, Evidence, Slower, Unit};
use crate::float::Float;

/// Minimum slowdown after notifications for an answer: standard errors, and the logarithm of the
/// rate. Of 601 senders that never slow down two were reported to obey.
const SURE: [(f64, f64); 3] = [(4.0, 0.03), (6.0, 0.02), (8.0, 0.01)];
/// The same after a queue that marks the flow, as other traffic changes the flow's share of the
/// link there. With six errors, one in 70 senders that never slow down was reported to obey there.
const SURE_BEHIND: [(f64, f64); 2] = [(4.0, 0.1), (7.0, 0.01)];
/// The same for responses to RDMA READs: a requester with a fixed number outstanding receives them
/// more slowly while the queue is long, which is when there are notifications. With [`SURE`], one
/// in six storage servers that never slow down was reported to obey.
const SURE_READ: [(f64, f64); 1] = [(4.0, 0.1)];
/// Number of windows of bursts: all.
const BURST_WINDOWS: usize = 9;
/// Number of windows of packets, of at least five each: notifications in step with an application's
/// messages have a longer gap after the next packet or two. With one, 12 % of the senders of
/// messages with think times were reported to obey.
const PACKET_WINDOWS: usize = 6;
/// Standard errors of a slowdown above [`HINT_LEAST`] that prevent a verdict of not obeying.
const HINT: f64 = 2.5;
const HINT_LEAST: f64 = 0.01;
/// Reduction that must be excluded for a flow not to obey, as a logarithm: a fifth.
const MOST: f64 = 0.223;
/// Least reduction that is reported as excluded.
const FINEST: f64 = 0.05;
/// Largest swing by itself of a flow that counts as steady, as a logarithm.
const STEADY: f64 = 0.06;
/// Minimum number of notifications for a verdict of not obeying. With five, one obeying sender in
/// 60 got that verdict at some moment.
pub(super) const ENOUGH: u32 = 8;
/// Minimum number of packets per notification; with fewer, a flow may be held at one reduced rate
/// all the time.
const HELD: f64 = 10.0;
/// The same in bursts.
const HELD_BURSTS: f64 = 1.5;
/// A flow that is slower than before the first notification by this much and by this many standard
/// errors has slowed down, by itself or not; that is an answer if the response after notifications
/// hints at one.
const LOWER: f64 = 0.1;
const LOWER_ERRORS: f64 = 4.0;
/// Maximum number of further notifications that is advised.
const ADVISED: f64 = 10_000.0;

/// State of a flow from its first notification on.
#[derive(Clone, Debug)]
struct Notified {
    /// From packet to packet, and from burst to burst.
    packets: Response<PACKET_WINDOWS>,
    bursts: Response<BURST_WINDOWS>,
    /// Steadiness of the pace from burst to burst, regardless of notifications.
    steadiness: Steadiness,
    /// Pace while it is notified.
    during: Batches,
}

/// The gaps of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct ByGap {
    pace: Pace,
    /// Pace before the first notification.
    before: Batches,
    notified: Option<Box<Notified>>,
    /// Notifications with data after them, and data packets since the first of them.
    measured: u32,
    packets: u32,
}

/// Comparison of the pace while notified with that before.
enum Before {
    /// The time before is unknown, or the difference is within the variation of both.
    Unknown,
    Same,
    /// Slower, perhaps by chance.
    Slower,
    /// Surely slower, by this much as a logarithm.
    Lower(f64),
}

impl ByGap {
    /// Size of the additional state of a notified flow, in octets.
    #[cfg(test)]
    pub const WHEN_NOTIFIED: usize = size_of::<Notified>();

    /// Processes a data packet at `at`, with those skipped just before it: `packets` packets of
    /// `octets` octets in total.
    #[inline]
    pub fn data(&mut self, at: u64, octets: u64, packets: u32) {
        let Some(gaps) = self.pace.packet(at, octets, packets) else {
            return;
        };
        let Some(notified) = &mut self.notified else {
            if let Some(gap) = gaps.burst.filter(|gap| !gap.idle) {
                self.before.add(gap.pace);
            }
            return;
        };
        self.packets = self.packets.saturating_add(1);
        notified.packets.gap(gaps.packet);
        if let Some(gap) = gaps.burst {
            notified.burst(gap);
        }
        if gaps.packet.notified {
            self.measured = self.measured.saturating_add(1);
        }
    }

    /// Records that the latest data ends a message.
    pub fn message_ends(&mut self) {
        self.pace.message_ends();
    }

    /// Records that flow control has paused the flow's path since the latest data.
    pub const fn path_paused(&mut self) {
        self.pace.path_paused();
    }

    /// Records a notification, which lies in the gap from the data before it to the data after it.
    pub fn notified(&mut self) {
        self.pace.notify();
        if self.notified.is_none() {
            self.notified = Some(Box::new(Notified {
                packets: Response::new(None),
                bursts: Response::new(self.before.mean()),
                steadiness: Steadiness::default(),
                during: Batches::default(),
            }));
        }
    }

    /// Discards the time before the first notification: notifications came that could not be
    /// attributed to the flow.
    pub fn missed(&mut self) {
        self.before = Batches::default();
    }

    /// Returns the answer, its evidence, and advice; data captured after a queue that marks it, and
    /// responses to RDMA READs, need more evidence.
    pub fn judge(
        &self,
        is_behind_queue: bool,
        responds_to_reads: bool,
    ) -> (Answer, Evidence, Option<Advice>) {
        use Answer::{DoesNotObey, Obeys, Unclear};
        let Some(notified) = self.notified.as_ref().filter(|_| self.measured > 0) else {
            return (Unclear, Evidence::TooFew, None);
        };
        let limits: &[_] = match (is_behind_queue, responds_to_reads) {
            (true, _) => &SURE_BEHIND,
            (false, true) => &SURE_READ,
            (false, false) => &SURE,
        };
        let sure = notified.surest(|effect| is_sure(effect, limits));
        if let Some((unit, effect)) = sure {
            return (
                Obeys,
                Evidence::SlowerThanPredicted(slower(unit, &effect)),
                None,
            );
        }
        let hint = notified.surest(|effect| effect.slower > HINT_LEAST && effect.errors > HINT);
        let before = self.against_before(notified);
        match (&before, hint) {
            (Before::Lower(less), Some(_)) if self.lasted_before(notified) => {
                let less = part(*less);
                return (Obeys, Evidence::SlowerThanBefore { less }, None);
            }
            (Before::Lower(_) | Before::Slower, None) => {
                return (Unclear, Evidence::SlowedDown, None);
            }
            (_, Some((unit, effect))) if is_sure(&effect, &SURE) => {
                let less = slower(unit, &effect);
                return match is_behind_queue {
                    true => (Unclear, Evidence::AfterQueue(less), Some(Advice::AtSender)),
                    false => (Unclear, Evidence::ReadResponses(less), None),
                };
            }
            (_, Some((unit, effect))) => {
                let more = more((SURE[0].0 / effect.errors).powi(2), &effect);
                return (Unclear, Evidence::Hint(slower(unit, &effect)), more);
            }
            _ => {}
        }
        if self.measured < ENOUGH {
            let more = Some(Advice::Notifications(ENOUGH - self.measured));
            return (Unclear, Evidence::TooFew, more);
        }
        let measured = f64::from(self.measured);
        let bursts = f64::from(notified.bursts.gaps()) / measured;
        let packets = f64::from(self.packets) / measured;
        // A reaction that ends within an eighth of the interval between notifications does not
        // count.
        let bound = |effect: &Effect| effect.slower + 2.0 * effect.error;
        let most = (notified.bursts.effects())
            .filter(|effect| effect.count >= ENOUGH.into())
            .filter(|effect| f64::from(effect.window) >= bursts / 8.0)
            .max_by(|a, b| bound(a).total_cmp(&bound(b)));
        let Some(most) = most else {
            let more = Some(Advice::Notifications(self.measured));
            return (Unclear, Evidence::TooFew, more);
        };
        if bound(&most) > MOST {
            let enough = (2.0 * most.error / (MOST - most.slower).max(MOST / 4.0)).powi(2);
            let chance = part(2.0 * most.error);
            return (Unclear, Evidence::Chance { chance }, more(enough, &most));
        }
        let swing = notified.steadiness.swing(4.0 * bursts);
        if swing > STEADY {
            let swing = part(swing);
            return (Unclear, Evidence::Swings { swing }, None);
        }
        let (packets_pause, bursts_pause) = (notified.packets.pauses(), notified.bursts.pauses());
        if notified.packets.stops_at_once() || packets_pause || bursts_pause {
            return (Unclear, Evidence::Pauses, None);
        }
        let same = matches!(before, Before::Same);
        if bursts < HELD_BURSTS || packets < HELD && !same {
            return (Unclear, Evidence::NeverQuiet, Some(Advice::FromBefore));
        }
        let most = part(bound(&most).max(swing).max(FINEST));
        (
            DoesNotObey,
            Evidence::SteadyPace { most, alone: same },
            None,
        )
    }

    fn against_before(&self, notified: &Notified) -> Before {
        let (before, during) = (&self.before, &notified.during);
        let (Some(was), Some(is)) = (before.mean(), during.mean()) else {
            return Before::Unknown;
        };
        if before.batches < 2.0 || during.batches < 4.0 {
            return Before::Unknown;
        }
        let slower = f64::from(is - was);
        let variance = before.variance().max(during.variance()).max(1e-4);
        let count = f64::from(1.0 / before.batches + 1.0 / during.batches);
        let errors = slower / (variance * count).sqrt();
        if slower > LOWER && errors > LOWER_ERRORS && slower > 1.2 * variance.sqrt() {
            Before::Lower(slower)
        } else if slower > LOWER && errors > 2.0 {
            Before::Slower
        } else if slower.abs() < LOWER && before.batches >= 4.0 {
            Before::Same
        } else {
            Before::Unknown
        }
    }

    /// Returns true if the time before the first notification was as long as one interval between
    /// notifications: an opening burst is no rate.
    fn lasted_before(&self, notified: &Notified) -> bool {
        let bursts = 16.0 * self.before.batches;
        bursts * self.measured as f32 >= notified.bursts.gaps() as f32
    }
}

impl Notified {
    /// Processes a gap from burst to burst.
    fn burst(&mut self, gap: Gap) {
        let pace = self.bursts.gap(gap);
        self.steadiness.add(pace);
        if self.bursts.gaps().is_multiple_of(FADES) {
            self.steadiness.fade();
        }
        if !gap.idle {
            self.during.add(gap.pace);
        }
    }

    /// Returns the most certain of the effects for which `keep` is true, from packet to packet or
    /// from burst to burst.
    fn surest(&self, keep: impl Fn(&Effect) -> bool) -> Option<(Unit, Effect)> {
        let bursts = (self.bursts.effects()).map(|effect| (Unit::Bursts, effect));
        let packets = (self.packets.effects()).map(|effect| (Unit::Packets, effect));
        bursts
            .chain(packets)
            .filter(|(_, effect)| keep(effect))
            .max_by(|(_, a), (_, b)| a.errors.total_cmp(&b.errors))
    }
}

fn is_sure(effect: &Effect, limits: &[(f64, f64)]) -> bool {
    (limits.iter()).any(|(errors, slower)| effect.errors >= *errors && effect.slower >= *slower)
}

/// Returns the reduction of the rate, as a part, for a pace slower by this logarithm.
fn part(slower: f64) -> f32 {
    (1.0 - (-slower).exponential()) as f32
}

fn slower(unit: Unit, effect: &Effect) -> Slower {
    Slower {
        at_least: part((effect.slower - 2.0 * effect.slower / effect.errors).max(0.0)),
        errors: effect.errors as f32,
        window: effect.window,
        unit,
    }
}

/// Advises the number of further notifications that makes their total `times` as many.
fn more(times: f64, effect: &Effect) -> Option<Advice> {
    let more = effect.count * (times - 1.0);
    (1.0..ADVISED).contains(&more).then(|| {
        // Two digits are more than can be known.
        let step = libm::exp10(libm::log10(more).floor() - 1.0).max(1.0);
        Advice::Notifications(((more / step).ceil() * step) as u32)
    })
}
