//! The answer to whether a flow obeys, from what is kept of it.

use super::response::Effect;
use super::{Advice, Answer, Evidence, Notified, Obedience, Slower, Unit, Verdict};
use crate::sightings::Sightings;

/// Slower pace after notifications that is an answer: standard errors, and the logarithm of the rate. Of 601 senders that never
/// slow down two were said to obey.
const SURE: [(f64, f64); 3] = [(3.8, 0.03), (6.0, 0.02), (8.0, 0.01)];
/// The least that is an answer after a queue that marks the flow: what it is slowed by there is less.
const SURE_BEHIND: f64 = 0.1;
/// Standard errors of a slower pace by which a flow may not be said to disobey, where it is more than [`HINT_LEAST`].
const HINT: f64 = 2.5;
const HINT_LEAST: f64 = 0.01;
/// What must be excluded for a flow not to obey, as a logarithm: a fifth less.
const MOST: f64 = 0.223;
/// Least that is said to be excluded.
const FINEST: f64 = 0.05;
/// Largest swing by itself of a flow that is called steady, as a logarithm.
const STEADY: f64 = 0.06;
/// Notifications from which on a flow may be said not to obey.
const ENOUGH: u32 = 8;
/// Packets from notification to notification below which a flow may be held at one reduced rate all the time.
const HELD: f64 = 6.0;
/// The same in bursts.
const HELD_BURSTS: f64 = 1.5;
/// A flow that is slower than before the first notification by this much and by so many standard errors has slowed down, by
/// itself or not; an answer is it where what follows notifications hints at one.
const LOWER: f64 = 0.1;
const LOWER_ERRORS: f64 = 4.0;
/// More than one data packet in so many that is stamped before an earlier one, and time stamps tell nothing.
const LATE_ONE_IN: u32 = 100;
/// Packets to a stamp from which on a clock is coarse.
const COARSE: u32 = 4;
/// Most notifications that are advised to be waited for.
const ADVISED: f64 = 10_000.0;

/// The pace while a flow is notified, beside that before.
enum Before {
    /// Nothing is known of the time before, or both differ by what they vary by.
    Unknown,
    Same,
    /// Slower, perhaps by chance.
    Slower,
    /// Slower, and surely, by this much as a logarithm.
    Lower(f64),
}

impl Obedience {
    /// Whether the flow obeys, by what has been seen so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (answer, evidence, advice) = match self.judge() {
            _ if self.late > self.packets / LATE_ONE_IN => {
                (Answer::Unclear, Evidence::OutOfOrder, None)
            }
            (Answer::DoesNotObey, _, _) if self.is_behind_queue() => (
                Answer::Unclear,
                Evidence::BehindQueue,
                Some(Advice::AtSender),
            ),
            // One that is looked at again and again is bound to seem something at some moment.
            (answer, _, _) if answer != Answer::Unclear && answer != self.earlier => {
                (Answer::Unclear, Evidence::Recent, None)
            }
            judged => judged,
        };
        Verdict {
            answer,
            measured: self.measured,
            evidence,
            advice,
        }
    }

    /// The same of a flow whose packets these are among, where time stamps of several places may be of different units, or by
    /// clocks that are apart: either shifts data against notifications.
    #[must_use]
    pub fn verdict_among(&self, sightings: &Sightings) -> Verdict {
        let verdict = self.verdict();
        let [finest, unit] = sightings.units(self.places);
        let is_coarse = finest < unit && 2.0 * unit as f32 > self.pace.usual();
        let evidence = match self.places.count_ones() {
            2.. if sightings.are_apart() => Evidence::ClocksApart,
            _ if is_coarse => Evidence::CoarseAt { unit },
            _ => return verdict,
        };
        if verdict.answer == Answer::Unclear {
            return verdict;
        }
        Verdict {
            answer: Answer::Unclear,
            evidence,
            advice: None,
            ..verdict
        }
    }

    pub(super) fn judge(&self) -> (Answer, Evidence, Option<Advice>) {
        use Answer::{DoesNotObey, Obeys, Unclear};
        if self.datagrams {
            return (Unclear, Evidence::Datagrams, None);
        }
        let coarse = self.packets / COARSE > self.pace.stamps;
        let notified = match &self.notified {
            Some(notified) if self.measured > 0 => notified,
            _ if self.known_late => return (Unclear, Evidence::KnownLate, None),
            _ if coarse => return (Unclear, Evidence::Coarse, Some(Advice::FinerStamps)),
            _ => return (Unclear, Evidence::NoData, None),
        };
        if let Some(after) = self.path.other() {
            return (Obeys, Evidence::OtherPath { after }, None);
        }
        let least = if self.is_behind_queue() { SURE_BEHIND } else { 0.0 };
        let sure = notified.surest(|effect| is_sure(effect) && effect.slower > least);
        if let Some((unit, effect)) = sure {
            return (Obeys, Evidence::Slower(slower(unit, &effect)), None);
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
            (_, Some((unit, effect))) => {
                let more = more((SURE[0].0 / effect.errors).powi(2), &effect);
                return (Unclear, Evidence::Hint(slower(unit, &effect)), more);
            }
            _ => {}
        }
        if coarse {
            return (Unclear, Evidence::Coarse, Some(Advice::FinerStamps));
        }
        if self.path.turned {
            return (Unclear, Evidence::MayTurn, None);
        }
        if self.measured < ENOUGH {
            let more = Some(Advice::Notifications(ENOUGH - self.measured));
            return (Unclear, Evidence::TooFew, more);
        }
        let measured = f64::from(self.measured);
        let bursts = f64::from(notified.bursts.gaps()) / measured;
        let packets = f64::from(self.packets_since) / measured;
        // A reaction that is over in an eighth of the time between notifications is none.
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
            return (Unclear, Evidence::Varies { chance }, more(enough, &most));
        }
        let swing = notified.bursts.steadiness().swing(4.0 * bursts);
        if swing > STEADY {
            let swing = part(swing);
            return (Unclear, Evidence::Unsteady { swing }, None);
        }
        let views = [&notified.bursts, &notified.packets];
        if views.iter().any(|view| view.stops() || view.pauses_after()) {
            return (Unclear, Evidence::Pauses, None);
        }
        let same = matches!(before, Before::Same);
        if bursts < HELD_BURSTS || packets < HELD && !same {
            return (Unclear, Evidence::Held, Some(Advice::FromBefore));
        }
        let most = part(bound(&most).max(swing).max(FINEST));
        (DoesNotObey, Evidence::Steady { most }, None)
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

    /// Whether the time before the first notification was as long as from one to the next: an opening burst is no rate.
    fn lasted_before(&self, notified: &Notified) -> bool {
        let bursts = 16.0 * self.before.batches;
        bursts * self.measured as f32 >= notified.bursts.gaps() as f32
    }
}

impl Notified {
    /// The surest of those effects, from packet to packet or from burst to burst.
    fn surest(&self, keep: impl Fn(&Effect) -> bool) -> Option<(Unit, Effect)> {
        let views = [(Unit::Bursts, &self.bursts), (Unit::Packets, &self.packets)];
        views
            .into_iter()
            .flat_map(|(unit, view)| view.effects().map(move |effect| (unit, effect)))
            .filter(|(_, effect)| keep(effect))
            .max_by(|(_, a), (_, b)| a.errors.total_cmp(&b.errors))
    }
}

fn is_sure(effect: &Effect) -> bool {
    (SURE.iter()).any(|(errors, slower)| effect.errors >= *errors && effect.slower >= *slower)
}

/// The part of the rate that a pace slower by this logarithm is less by.
fn part(slower: f64) -> f32 {
    (1.0 - (-slower).exp()) as f32
}

fn slower(unit: Unit, effect: &Effect) -> Slower {
    Slower {
        at_least: part((effect.slower - 2.0 * effect.slower / effect.errors).max(0.0)),
        less: part(effect.slower),
        errors: effect.errors as f32,
        window: effect.window,
        unit,
    }
}

/// How many more notifications it takes for `times` as many.
fn more(times: f64, effect: &Effect) -> Option<Advice> {
    let more = effect.count * (times - 1.0);
    (1.0..ADVISED).contains(&more).then(|| {
        // Two digits are more than can be known.
        let step = 10_f64.powf(more.log10().floor() - 1.0).max(1.0);
        Advice::Notifications(((more / step).ceil() * step) as u32)
    })
}
