//! The answer to whether a flow obeys, derived from its state.

use super::*;
use crate::float::Float;
use crate::sightings::Sightings;

/// Minimum number of packets between notifications for a flow that was never captured without
/// notifications: with fewer, it may be at its lowest rate, if a receiver answers every packet or
/// two. With 16, three of 100 flows that never slow down are unclear in addition; of those held at
/// half their rate 73 % are reported not to obey, with 16 58 %.
const HELD: f64 = 6.0;
/// Minimum number of packets in total for the same: of DCQCN senders that a burst had driven to a
/// few hundredths of the line rate, each with 150 to 200 packets in 20 ms and half of them
/// retransmissions, one in eight was reported not to obey.
const HELD_LEAST: u32 = 1_000;
/// With more than one in this many data packets stamped before an earlier one, time stamps are
/// useless.
const LATE_ONE_IN: u32 = 100;
/// A reduction above this, by more than this many standard errors, prevents a verdict of not
/// obeying: DCQCN that cuts by a few hundredths behind a queue shows hardly more. Each of up to
/// eleven bins may hint by chance: with two errors 16 % of the flows with random packets were
/// unclear, with two and a quarter 13 %, with two and a half 11.5 %; of all flows 0.4 % were wrong.
const HINT: f64 = 0.015;
const HINT_ERRORS: f64 = 2.5;
/// Less data soon after notifications than later, and less while notified than before, prevent a
/// verdict of not obeying if they add up to this many standard errors. In a set made independently
/// of the labelled one, 15 % of the verdicts about senders that slow down in part or not always
/// were wrong when the first had to be three errors and a fifth, and the second four errors; with
/// this and [`MOST`] for all notifications pooled, 3 %. Of the flows that never slow down seven
/// more in 100 are unclear.
const HINTS_ERRORS: f64 = 2.0;
/// For packets in bursts, a reduction by more than a tenth in bins with few packets, by this many
/// standard errors, leaves the answer open.
const HINTED: f64 = 1.25;
/// A reduction that begins later than this part of the usual interval between notifications, after
/// as much data as before, is an answer only if the rate is steady without notifications: a rate
/// that swings by itself looks the same if notifications come in step with it.
const SOON: u64 = 64;

/// Minimum reduction for an answer by two methods that are both less than sure.
const LEAST_BY_BOTH: f32 = 0.01;

/// Statistics of a bin.
#[derive(Clone, Copy, Debug)]
struct Shape {
    bin: usize,
    /// Rate around the bin, in octets per nanosecond.
    around: f64,
    /// Reduction as a part of the rate, without the lowest value.
    less: f64,
    /// Reduction by busy time, as a part of the rate.
    less_busy: f64,
    /// Spread of single notifications, and standard error of `less`.
    spread: f64,
    error: f64,
    /// Stamps in the bin per notification.
    stamps: f64,
    /// Number of notifications.
    count: f64,
}

/// Reduction that must be excluded for a flow not to obey; [`Answer::DoesNotObey`] allows for less,
/// as no answer is certain.
const MOST: f64 = 0.2;
/// Least reduction that is reported as excluded, and least that is an answer: the bounds miss cuts
/// by a hundredth or two, which hide among sparse bins, and a queue that fills causes as much for
/// any sender.
const FINEST: f64 = 0.05;
/// Minimum number of notifications with data in a bin for it to be evaluated.
const ENOUGH: f32 = 5.0;

/// Less data than at other times, which is no answer yet.
#[derive(Clone, Copy, Debug)]
struct Hint {
    less: f64,
    /// Standard error of `less`.
    error: f64,
    /// The time since notifications in which there was less data; `None` for all the time while
    /// notified.
    within: Option<Window>,
}

impl Hint {
    fn errors(&self) -> f64 {
        self.less / self.error
    }

    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.errors().total_cmp(&other.errors())
    }
}

/// Findings from all the bins in order.
#[derive(Debug, Default)]
struct BinFindings {
    /// The bin with the largest reduction that is an answer.
    most: Option<Shape>,
    /// True if the first of these begins late, after as much data as before.
    delayed: bool,
    /// Largest possible reduction, if there are enough packets.
    steady: Option<f64>,
    /// A reduction that may be chance, or no response.
    suspect: Option<(Shape, Doubt)>,
    /// A reduction in a bin that is shorter than the gap between packets.
    short: Option<Shape>,
    /// The first finding that leaves the answer open.
    open: Option<Evidence>,
}

/// Comparison of the rate while notified with that without notifications.
#[derive(Debug, Default)]
struct AgainstQuiet {
    /// Minimum reduction, if that is an answer.
    slower: Option<f32>,
    /// True if the rate is higher.
    faster: bool,
    /// Logarithm of the largest possible reduction, if a fifth can be excluded.
    most: Option<f64>,
    /// Present if the rate may be lower.
    hint: Option<Hint>,
}

impl Shape {
    /// Returns the reduction that chance explains. In the labelled set, 4.5 errors instead of 4 do
    /// not reduce the number of wrong answers.
    fn chance(&self) -> f64 {
        if self.less >= 0.01 {
            4.0 * self.error
        } else {
            (6.0 * self.error).max(0.003)
        }
    }

    /// Returns true if the reduction exceeds chance.
    fn is_sure(&self) -> bool {
        self.less > self.chance()
    }
}

impl Obedience {
    /// Updates the remembered answer each time that a quarter more notifications are measured.
    pub(super) fn update_earlier_answer(&mut self) {
        if self.measured > self.next {
            self.next = self.measured.saturating_add(self.measured / 4);
            self.earlier = self.weigh().0;
        }
    }

    /// Returns the last bin, if it has less data and an earlier one has more than around it: a rate
    /// that rises after notifications and then falls back looks like one that slows down late, and
    /// like one that has recovered just when it is notified again.
    fn falls_back(&self) -> Option<Shape> {
        let mut more = 0.0_f64;
        let mut last = None;
        for shape in self.shapes() {
            if shape.stamps < 0.5 {
                continue;
            }
            last = (shape.is_sure() && more > 0.25 * shape.less).then_some(shape);
            if -shape.less > 4.5 * shape.error {
                more = more.max(-shape.less);
            }
        }
        last
    }

    /// Returns the reported reduction of a bin: relative to the bin with most data, as the rate
    /// around either is a mix of both.
    fn less(&self, shape: &Shape) -> Less {
        let window = |shape: &Shape| Window::new(shape.bin);
        let least = |shape: &Shape| shape.around * (1.0 - shape.less - 2.0 * shape.error);
        let top = self
            .shapes()
            .filter(|other| other.stamps >= 1.0 && other.count >= 0.5 * shape.count)
            .max_by(|a, b| least(a).total_cmp(&least(b)))
            .filter(|top| least(top) > shape.around);
        let here = shape.around * (1.0 - shape.less + 2.0 * shape.error);
        let there = top.as_ref().map_or(shape.around, least);
        Less {
            at_least: (1.0 - here / there).max(0.0) as f32,
            window: window(shape),
            than: top.as_ref().map(window),
            pauses: self.pauses > 0.05 * self.gaps,
        }
    }

    /// Returns the evidence for a reduction that is no answer.
    fn doubted(&self, shape: &Shape, why: Doubt) -> Evidence {
        if shape.is_sure() {
            return Evidence::Doubtful(self.less(shape), why);
        }
        let (less, chance) = (shape.less as f32, shape.chance() as f32);
        Evidence::Varies { less, chance }
    }

    /// Returns the reduction of data sent soon after notifications compared with later, pooled over
    /// all of them, for each possible end of `soon`: if they come in episodes between which the
    /// sender recovers, the data around each of them belongs to the episode, too.
    fn soon_and_later(&self) -> impl Iterator<Item = Hint> + '_ {
        let sum = |bins: &[Bin]| {
            let add = |(octets, time), bin: &Bin| {
                (octets + f64::from(bin.octets), time + f64::from(bin.time))
            };
            bins.iter().fold((0.0, 0.0), add)
        };
        let bins = self.bins.as_deref().into_iter();
        bins.flat_map(move |bins| {
            let (all, length) = sum(bins);
            let octets_each = all / f64::from(self.stamped);
            (1..BINS).filter_map(move |split| {
                let (soon, later) = bins.split_at(split);
                let [(soon, time), (later, rest)] = [soon, later].map(sum);
                (time.min(rest) > 0.1 * length).then(|| Hint {
                    less: 1.0 - soon / time / (later / rest),
                    error: (octets_each / soon + octets_each / later).sqrt(),
                    within: Some(Window::new(split - 1)),
                })
            })
        })
    }

    fn shapes(&self) -> impl Iterator<Item = Shape> {
        // A short bin varies at least as much as a long one: a few short bins may show little
        // variation by chance.
        let mut spread: f64 = 0.0;
        let mut all = [None; BINS];
        let bins = self
            .bins
            .iter()
            .flat_map(|bins| bins.iter().enumerate().rev());
        for (number, Bin { totals, .. }) in bins {
            if totals.count < ENOUGH || totals.around <= 0.0 {
                continue;
            }
            let around = f64::from(totals.around) / f64::from(totals.count);
            let lowest = f64::from(totals.lowest) / around;
            let n = f64::from(totals.count) - 1.0;
            let mean = (f64::from(totals.more) / around - lowest) / n;
            let squares = f64::from(totals.squares) / (around * around) - lowest * lowest;
            let variance = ((squares / n - mean * mean) * n / (n - 1.0)).max(0.0);
            spread = spread.max(variance.sqrt());
            let stamps = f64::from(totals.stamps);
            let random = 0.1 / stamps.max(1.0).sqrt();
            all[number] = Some(Shape {
                bin: number,
                around,
                less: -mean,
                less_busy: -f64::from(totals.more_busy) / f64::from(totals.count) / around,
                spread,
                error: (spread / n.sqrt()).max(random),
                stamps: stamps / f64::from(totals.count),
                count: f64::from(totals.count),
            });
        }
        all.into_iter().flatten()
    }

    /// Returns the verdict on the flow so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (mut answer, mut evidence, mut advice) = self.weigh();
        // Evaluated after every packet, any flow seems steady at some moment.
        if answer == Answer::DoesNotObey && self.earlier != answer {
            (answer, evidence, advice) = (Answer::Unclear, Evidence::Recent, None);
        }
        if answer == Answer::DoesNotObey && self.is_behind_queue() {
            (answer, evidence) = (Answer::Unclear, Evidence::BehindQueue);
            advice = Some(Advice::AtSender);
        }
        if self.late > self.packets / LATE_ONE_IN {
            (answer, evidence, advice) = (Answer::Unclear, Evidence::OutOfOrder, None);
        }
        Verdict {
            answer,
            measured: self.measured(),
            evidence,
            advice,
        }
    }

    /// Returns the answer by time and by gaps, if these do not contradict each other.
    fn weigh(&self) -> (Answer, Evidence, Option<Advice>) {
        use Answer::{Obeys, Unclear};
        if let Some(why) = self.unfit() {
            let advice = (why == Evidence::Coarse).then_some(Advice::FinerStamps);
            return (Unclear, why, advice);
        }
        if let Some(after) = self.other_path() {
            return (Obeys, Evidence::OtherPath { after }, None);
        }
        let window = self.full_window.as_ref();
        let limit = window.and_then(|window| window.limit());
        let (answer, evidence, advice) = self.weigh_rates();
        match limit {
            Some(packets) if answer == Obeys => (Unclear, Evidence::FullWindow { packets }, None),
            _ => (answer, evidence, advice),
        }
    }

    /// Returns the answer by the rates after notifications.
    fn weigh_rates(&self) -> (Answer, Evidence, Option<Advice>) {
        use Answer::{DoesNotObey, Obeys, Unclear};
        let (by_time, time) = self.judge();
        let is_behind_queue = self.is_behind_queue();
        let (by_gap, gap, advice) = self.by_gap.judge(is_behind_queue, self.read_responses);
        let may_be_both = !is_behind_queue && !self.read_responses && time.hints_at_less();
        match (by_gap, by_time) {
            (Obeys, _) | (DoesNotObey, DoesNotObey) => (by_gap, gap, None),
            // A full window slows a sender down while the queue is long, notified or not.
            (Unclear, Obeys) if time.is_since_quiet() && !gap.hints() => (Unclear, gap, advice),
            (Unclear, Obeys) => (by_time, time, None),
            (DoesNotObey, Obeys) => (Unclear, Evidence::Contradictory, None),
            (DoesNotObey, Unclear) if !time.hints() => (by_gap, gap, None),
            (DoesNotObey, Unclear) => (Unclear, time, None),
            (Unclear, DoesNotObey) if gap.allows(&time) && self.measured() >= by_gap::ENOUGH => {
                (by_time, time, None)
            }
            (Unclear, DoesNotObey) => (Unclear, gap, advice),
            (Unclear, Unclear) => match gap {
                Evidence::Hint(slower) if may_be_both && slower.at_least >= LEAST_BY_BOTH => {
                    (Obeys, Evidence::SlowerByBoth(slower), None)
                }
                Evidence::TooFew => (Unclear, time, advice),
                _ => (Unclear, gap, advice),
            },
        }
    }

    /// Like [`verdict`](Self::verdict), for a flow whose packets are among `sightings`: time stamps
    /// of several capture points may have different units, or clocks that differ. Either shifts
    /// data relative to notifications.
    #[must_use]
    pub fn verdict_among(&self, sightings: &Sightings) -> Verdict {
        let verdict = self.verdict();
        let [finest, unit] = sightings.units(self.places);
        let is_coarse = finest < unit && 2.0 * unit as f32 > self.usual;
        let evidence = match self.places.count_ones() {
            2.. if sightings.clocks_differ() => Evidence::ClocksApart,
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

    /// Returns the number of notifications with data between them and the next one, even without
    /// data after the next one yet.
    fn measured(&self) -> u32 {
        let Some((first, last)) = self.waiting else {
            return self.measured;
        };
        let mut bins = self.bins.iter().flat_map(|bins| bins.iter());
        // The latest data has not been spread yet.
        let is_latest =
            self.bins.is_some() && (self.last.saturating_add(1)..=first).contains(&self.latest);
        let before = is_latest || bins.any(|bin| bin.part.stamps > 0);
        let between = first < self.latest && self.latest < last;
        self.measured
            .saturating_add(u32::from(before) + u32::from(between))
    }

    /// Returns true if notifications come right after packets, few of which lie between them: the
    /// interval between two begins and ends with a packet, so that more data seems to come at its
    /// end. Of random packets with one to four between notifications, 42 % of the flows that never
    /// slow down were reported to obey, with six none.
    fn is_in_step(&self) -> bool {
        self.per_gap() < 6.0 && f64::from(self.in_step) > 0.6 * f64::from(self.gaps)
    }

    /// Returns true if it pauses after most notifications, and sooner than pauses of its own would
    /// come, or always after the same time: pauses of its own begin anywhere between two
    /// notifications.
    fn pauses_by_notifications(&self) -> bool {
        // Mean and variance of a uniform distribution from 0 to 1.
        const EVEN: (f32, f32) = (0.5, 1.0 / 12.0);
        let mean = self.paused_at / self.pauses;
        let variance = self.paused_at_squares / self.pauses - mean * mean;
        let soon = mean < 0.5 * EVEN.0;
        self.pauses > 0.5 * self.gaps && (soon || variance < 0.5 * EVEN.1)
    }

    /// Returns true if time stamps are too coarse to distinguish packets.
    const fn is_coarse(&self) -> bool {
        self.packets / 4 > self.stamped
    }

    /// Returns the number of stamps per interval between notifications.
    fn per_gap(&self) -> f64 {
        f64::from(self.stamped) / f64::from(self.gaps.max(1.0))
    }

    /// Returns the reason why the flow cannot be judged, if there is one.
    fn unfit(&self) -> Option<Evidence> {
        if self.datagrams {
            return Some(Evidence::Datagrams);
        }
        if self.measured() == 0 {
            let coarse = self.is_coarse().then_some(Evidence::Coarse);
            let has_heard = self.waiting.is_some() || self.bins.is_some();
            let late = (self.known_late || !has_heard).then_some(Evidence::KnownLate);
            return Some(late.or(coarse).unwrap_or(Evidence::NoData));
        }
        self.psns
            .has_resent_copies()
            .then_some(Evidence::ResentCopies)
    }

    /// Returns the number of notifications followed by another path, if that is more often than by
    /// chance or by a clock of the sender's own.
    fn other_path(&self) -> Option<u32> {
        // Compares half of the interval between notifications with the other half: a random change
        // occurs in either.
        for (after, other) in [
            (self.turned_early, self.turned_late),
            (self.turned_middle, self.turned_outside),
        ] {
            let (here, there) = (f64::from(after), f64::from(other));
            // A sender that changes it by a clock of its own does so twice between some
            // notifications, or in step with them.
            let own_clock = self.turned_twice > after / 4 || 2.0 * there >= here;
            let chance = 3.0 * (here + there).sqrt().min(here - 0.5);
            if here >= 3.0 && here - there > chance && !own_clock {
                return Some(u32::from(after));
            }
        }
        None
    }

    /// Evaluates the bins in order; `falls_back` is true if the last one falls back from a rise.
    fn bins_show(&self, falls_back: bool) -> BinFindings {
        let BinFindings {
            mut most,
            mut delayed,
            mut steady,
            mut suspect,
            mut short,
            mut open,
        } = BinFindings::default();
        let mut before_steady = false;
        let in_bursts = self.typical as f64 > 2.0 * f64::from(self.usual) * self.per_gap();
        // Stamps before a bin, and the total reduction before it: packets may be too sparse for
        // single bins.
        let (mut stamps, mut less_before) = (0.0, 0.0);
        for shape in self.shapes() {
            let (from, to) = bounds(shape.bin);
            let sure = shape.is_sure();
            let steady_before = stamps >= 3.0 && less_before <= 0.0;
            stamps += shape.stamps;
            less_before += shape.less * (to - from) as f64;
            // A bin shorter than the gap between packets only measures these gaps: if notifications
            // come in step with packets, as a receiver's do, its reduction is no chance. The same
            // holds for bursts and the gaps between them.
            let len = to.min(self.typical).saturating_sub(from);
            let is_short = (len as f32) < self.usual || in_bursts && (len as f32) < self.longest;
            // Too few packets to measure, but enough for a hint: for packets in bursts these bins
            // may hold the entire reduction.
            let few = in_bursts && (0.25..3.0).contains(&shape.stamps) && !is_short;
            if few && shape.less > 0.1 && shape.less > HINTED * shape.error {
                open = open.or(Some(self.doubted(&shape, Doubt::Sparse)));
            }
            if shape.stamps < 0.5 || is_short {
                // Packets are further apart than at other times: nothing was sent, for an unknown
                // reason.
                if sure && is_short {
                    short = short.or(Some(shape));
                } else if sure && shape.less > MOST {
                    suspect = suspect.or(Some((shape, Doubt::Sparse)));
                }
                continue;
            }
            let apart = shape.less / shape.spread.max(1e-9);
            let seldom = shape.count <= 0.25 * f64::from(self.gaps);
            let late = before_steady && (apart <= 1.5 || seldom) || apart < 0.25;
            let is_plain = sure && !late && !falls_back;
            let is_idle = shape.less_busy < 0.4 * shape.less;
            if is_plain && !is_idle {
                if most.is_none() {
                    delayed = steady_before && from >= self.typical / SOON;
                }
                if most.is_none_or(|most| shape.less > most.less) {
                    most = Some(shape);
                }
                continue;
            }
            if sure || shape.less > HINT && shape.less > HINT_ERRORS * shape.error {
                let doubt = match is_plain {
                    true => Doubt::Idle,
                    false => Doubt::NotPlain,
                };
                suspect = Some((shape, doubt));
            }
            if shape.stamps >= 3.0 {
                let bound = (shape.less + 2.0 * shape.error).max(shape.less_busy);
                if bound < MOST {
                    steady = Some(steady.unwrap_or(0.0).max(bound));
                } else {
                    suspect = suspect.or(Some((shape, Doubt::NotPlain)));
                }
                before_steady = true;
            }
        }
        BinFindings {
            most,
            delayed,
            steady,
            suspect,
            short,
            open,
        }
    }

    /// Compares the rate while notified with that without notifications.
    fn against_quiet(&self) -> AgainstQuiet {
        let mut against = AgainstQuiet::default();
        let (quiet, notified) = (&self.quiet, &self.notified);
        if quiet.count >= 1.0 && notified.count >= 2.0 {
            let less = quiet.mean() - notified.mean();
            let (a, b) = (quiet.variance(), notified.variance());
            let spread = a.max(b).sqrt();
            // A flow that slows down and recovers varies while notified, but not necessarily
            // without notifications. A single stretch does not show how much it varies without
            // them.
            let usual = if quiet.count >= 4.0 && self.left_alone {
                a.sqrt()
            } else {
                spread
            };
            let error = spread * f64::from(1.0 / quiet.count + 1.0 / notified.count).sqrt();
            // The ratio of the rates as a reader would compute it, in which batches far slower than
            // others have less weight.
            let counted = 1.0 - (notified.rate() - quiet.rate()).exponential();
            let at_least = less.min(quiet.rate() - notified.rate()) - 2.0 * error;
            let at_least = 1.0 - (-at_least).exponential();
            // It may have slowed down by itself before the first notification.
            let before = self.just_before.rate();
            let sank = before.is_none_or(|before| before - notified.mean() > 0.5 * less);
            // An opening burst is no rate.
            let lasted = self.left_alone || self.alone >= self.typical / 4;
            let is_sure = sank
                && lasted
                && less.min(counted) > 0.1
                && less > 1.2 * usual
                && less > 4.0 * error
                && at_least > FINEST;
            against.slower = is_sure.then_some(at_least as f32);
            against.faster = less < -0.1 && -less > 4.0 * error;
            let most = less.max(quiet.rate() - notified.rate());
            let bound = most + 2.0 * error;
            against.most = (bound < -(1.0 - MOST).natural_log()).then_some(bound);
            against.hint = (most > 0.08).then_some(Hint {
                less: most,
                error,
                within: None,
            });
        }
        against
    }

    fn judge(&self) -> (Answer, Evidence) {
        use Answer::{DoesNotObey, Obeys, Unclear};
        let falls_back = self.falls_back();
        let BinFindings {
            most,
            delayed,
            steady,
            mut suspect,
            mut short,
            mut open,
        } = self.bins_show(falls_back.is_some());
        let AgainstQuiet {
            slower,
            faster,
            most: since_quiet,
            hint: while_notified,
        } = self.against_quiet();
        if let Some(less) = slower {
            return (Obeys, Evidence::SlowerThanQuiet { less });
        }
        let (quiet, notified) = (&self.quiet, &self.notified);
        let between = &self.between;
        // Slower after notifications, but faster than without them: this is no answer.
        if let Some(shape) = most {
            if self.is_in_step() {
                short = short.or(most);
            } else if !faster {
                // Twice the spread: with once the spread 17 % of the swinging flows were reported
                // to obey, with this 4 %.
                let steady = [quiet, between]
                    .into_iter()
                    .find(|class| class.count >= 2.0)
                    .is_some_and(|class| shape.less >= 2.0 * class.variance().sqrt());
                if delayed && !steady {
                    return (Unclear, self.doubted(&shape, Doubt::MaySwing));
                }
                let less = self.less(&shape);
                if f64::from(less.at_least) < FINEST {
                    return (Unclear, Evidence::Doubtful(less, Doubt::TooLittle));
                }
                return (Obeys, Evidence::Slower(less));
            }
            if faster {
                suspect = Some((shape, Doubt::SlowerWithout));
            }
        }
        if between.count >= 2.0 && notified.count >= 1.0 {
            let less = notified.mean() - between.rate();
            let spread = between.variance().sqrt();
            let error = spread * f64::from(1.0 / between.count + 1.0 / notified.count).sqrt();
            if less > 0.15 && less > 4.0 * error {
                open = open.or(Some(Evidence::Unsteady));
            }
        }
        let skewed = notified.count >= 2.0 && notified.mean() - notified.rate() > 0.3;
        // Rates this far apart may be a response that comes after the next notification.
        if skewed || notified.count >= 8.0 && notified.variance() > 1.2 {
            open = open.or(Some(Evidence::Unsteady));
        }
        if self.turned_ever {
            return (Unclear, Evidence::MayTurn);
        }
        let later = self.soon_and_later().max_by(Hint::cmp);
        let hints = [later.filter(|hint| hint.less > HINT), while_notified];
        let hints = hints.into_iter().flatten();
        if hints.clone().map(|hint| hint.errors()).sum::<f64>() > HINTS_ERRORS {
            let most = hints.max_by(Hint::cmp).map(|hint| Evidence::Fewer {
                less: hint.less as f32,
                within: hint.within,
            });
            open = open.or(most);
        }
        // A capture that begins between two of many notifications shows no time without them.
        let was_alone = self.left_alone || self.alone / 3 >= self.typical / 2;
        let rested = self.alone / 3 >= self.typical && self.measured >= 5;
        if let Some(shape) = falls_back {
            if let Some(most) = since_quiet
                && most <= 0.0
                && (rested || faster)
            {
                let most = FINEST as f32;
                return (DoesNotObey, Evidence::SteadySinceQuiet { most });
            }
            return (Unclear, self.doubted(&shape, Doubt::FallsBack));
        }
        if self.pauses_by_notifications() {
            return (Unclear, Evidence::Pauses);
        }
        if let Some((shape, why)) = suspect {
            return (Unclear, self.doubted(&shape, why));
        }
        if let Some(shape) = short {
            return (Unclear, self.doubted(&shape, Doubt::Short));
        }
        if let Some(why) = open {
            return (Unclear, why);
        }
        if self.is_coarse() && self.per_gap() < 16.0 {
            return (Unclear, Evidence::Coarse);
        }
        let between: f64 = self.shapes().map(|shape| shape.stamps).sum();
        let alone = since_quiet.is_some() && was_alone;
        if let Some(most) = steady
            && (alone || between >= HELD && self.packets >= HELD_LEAST)
        {
            let most = (self.soon_and_later())
                .map(|hint| hint.less + 2.0 * hint.error)
                .fold(most.max(FINEST), f64::max);
            if most > MOST {
                return (Unclear, Evidence::TooFew);
            }
            let most = most as f32;
            return (DoesNotObey, Evidence::Steady { most, alone });
        }
        if let Some(most) = since_quiet
            && rested
        {
            let most = (1.0 - (-most).exponential()).max(FINEST) as f32;
            return (DoesNotObey, Evidence::SteadySinceQuiet { most });
        }
        if self.measured < 8 {
            return (Unclear, Evidence::TooFew);
        }
        (Unclear, Evidence::NeverQuiet)
    }
}
