//! Does a flow slow down when it is told to? Three answers, with the evidence; what they mean is said at [`Answer`].
//!
//! Three questions are put to a flow, each at its own time scale:
//! - *Shape.* The time from one notification to the next is cut into bins, each four times as long as the one before it. How
//!   much less data is in a bin than in the rest of that time and in the time before the notification? Of a flow that knows
//!   nothing of notifications the answer is nothing, on average over notifications, however it sends: each time between
//!   notifications is its own control, and so is a steady trend. That notifications come when a sender is fast makes the
//!   first bins higher, not lower. Less in the last bin, after more in one before, is no answer: it may fall back from a rise.
//!   Where they come in episodes, between which a sender recovers, what is around one is the episode's: so all of them
//!   together must not show less soon after than later either, before a sender is said not to obey.
//! - *Quiet.* Is the flow slower while it is notified than before the first notification, or long after the last one? That
//!   is what remains to be seen where notifications come so fast that they hold a sender down.
//! - *Path.* Does the entropy (UDP source port, flow label) change soon after notifications, rather than at other times?
//!
//! Data is spread evenly over the time since the last earlier stamp, so that bins need not hold whole packets; what was sent
//! after a long pause counts to neither side. Shape is seen twice: by the time that passed, and by busy time, in which a gap that
//! stands out is no longer than a usual one. Only less by both is an answer, and only as much by both is none: a message may
//! end soon after the notification that it caused, and one that is slowed down may hide it among times with nothing to send.
//! Nothing is kept of single packets: about 430 octets a flow, whatever it sends, and 2.7 KB more once it is notified about.
//!
//! The same question is put a second time, with time counted in gaps between packets (`by_gap.rs`): what follows a notification is
//! compared with what the flow's own past predicts. That holds at any time scale and over an application's pauses, and misses
//! short episodes and late answers, which the bins see. An answer is one where either has it and the other does not
//! contradict.
//!
//! What is judged is what the sender sends: PSNs that were skipped count as sent at that time, and so does what is sent again
//! ([`Obedience::sequenced`]).
//!
//! Here is what is kept of a flow; `obedience/judge.rs` makes an answer of it, and `obedience/evidence.rs` says what that rests on.

mod by_gap;
mod evidence;
mod judge;
mod pace;
mod response;
mod steadiness;
#[cfg(test)]
mod tests;

use crate::data::Sequence;
use crate::sightings::Place;
use fcn_wire::bth::MAX_24;

use by_gap::ByGap;

pub use evidence::{Advice, Answer, Doubt, Evidence, Less, Slower, Unit, Verdict, Window};

/// Octaves of four that the time since a notification is divided into; the first ends at [`FIRST`], the last has no end.
const BINS: usize = 11;
/// Where the first bin ends, as a power of two of nanoseconds: about a microsecond.
const FIRST: u32 = 10;
/// Stamps in a batch of data, whose rate is compared between quiet and notified times.
const BATCH: u16 = 16;
/// A gap so many times as long as the longest of late (which fades by a 16th a stamp) is a pause, not a rate.
const PAUSE: f32 = 8.0;
/// A gap so many times as long as the median of late stands out: slowing down to half makes none.
const STANDS_OUT: f32 = 2.0;
/// Stamps after which it is known what a pause is.
const KNOWN: u8 = 64;
/// Sums over more notifications than this are halved, so that what was long ago fades, and single-precision sums stay exact.
const KEPT: f32 = 16_384.0;
/// Time without a notification from which on a flow counts as left alone, in usual times between notifications.
const ALONE: u64 = 8;

/// Octets in a time.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    octets: f32,
    time: f32,
}

impl Amount {
    fn add(&mut self, part: &Part) {
        self.octets += part.octets;
        self.time += part.time;
    }

    /// Logarithm of its rate; `None` where there is none.
    fn rate(&self) -> Option<f64> {
        (self.octets > 0.0).then(|| (f64::from(self.octets) / f64::from(self.time)).ln())
    }
}

/// Data in one bin since the last notification.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    octets: f32,
    time: f32,
    /// The same without what makes gaps stand out.
    busy: f32,
    stamps: u16,
}

impl Part {
    #[inline]
    fn add(&mut self, time: u64, pace: Pace) {
        let time = time as f32;
        self.octets += pace.rate * time;
        self.time += time;
        self.busy += pace.busy * time;
    }
}

/// How data is spread over the time since the stamp before.
#[derive(Clone, Copy)]
struct Pace {
    /// Octets a nanosecond.
    rate: f32,
    /// The part of the time that is busy.
    busy: f32,
    paused: bool,
}

/// Over notifications: how much more was in a bin than around it, in octets a nanosecond.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    count: f32,
    more: f32,
    /// By busy time, to the scale of `more`.
    more_busy: f32,
    squares: f32,
    around: f32,
    stamps: f32,
    /// The lowest one, which the judgment makes do without.
    lowest: f32,
}

/// The time since notifications that lies between two bounds.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    /// Since the last one.
    part: Part,
    /// Over those before.
    totals: Totals,
    /// Octets and time of them all, whatever was around.
    octets: f32,
    time: f32,
}

/// Natural logarithms of the rates of batches.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    count: f32,
    sum: f32,
    squares: f32,
    octets: f32,
    time: f32,
}

impl Class {
    fn add(&mut self, batch: &Part) {
        let value = (batch.octets / batch.time).ln();
        if !value.is_finite() {
            return;
        }
        let kept = if self.count >= KEPT { 0.5 } else { 1.0 };
        self.count = kept * self.count + 1.0;
        self.sum = kept * self.sum + value;
        self.squares = kept * self.squares + value * value;
        self.octets = kept * self.octets + batch.octets;
        self.time = kept * self.time + batch.time;
    }

    /// Logarithm of the rate over all its time.
    fn rate(&self) -> f64 {
        (f64::from(self.octets) / f64::from(self.time)).ln()
    }

    fn mean(&self) -> f64 {
        f64::from(self.sum) / f64::from(self.count)
    }

    /// Variance of single values; not below what `BATCH` packets have at random, divided by 16: senders pace.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        let n = f64::from(self.count);
        let variance = if n > 1.5 {
            (f64::from(self.squares) / n - mean * mean) * n / (n - 1.0)
        } else {
            0.0
        };
        variance.max(1.0 / f64::from(BATCH) / 16.0)
    }
}

/// What the data of a batch is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Times {
    Quiet,
    Notified,
    #[default]
    Between,
    Unknown,
}

/// Data packets of one kind of time.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    times: Times,
    part: Part,
}

/// When the last notification came before the flow was known that it is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missed(Option<u64>);

impl Missed {
    /// Another one comes at `at`, whose flow is known or not: when the last one came that the flow has not heard of, if any.
    pub const fn another(&mut self, at: u64, is_known: bool) -> Option<u64> {
        match is_known {
            true => self.0.take(),
            false => {
                self.0 = Some(at);
                None
            }
        }
    }
}

/// What one flow carries to be judged. Times are nanoseconds of any clock; those that go back count as the latest one.
///
/// What every stamp touches comes first, and is no longer than two cache lines.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Obedience {
    /// The stamp before the latest one, up to which data is spread.
    spread: u64,
    /// The latest stamp, and octets that bear it.
    latest: u64,
    octets: u32,
    /// Packets before it that were sent and not captured, by their PSNs.
    skipped: u32,
    entropy: u32,
    /// Whether the entropy has changed at the latest stamp, and whether behind a notification that is waiting.
    turned: bool,
    turned_behind: bool,
    turned_next: bool,
    turned_ever: bool,
    /// Whether there was data long after a notification.
    left_alone: bool,
    /// Whether there was data, and whether it was notified.
    begun: bool,
    /// Stamps seen, as far as it takes to know what a pause is.
    stamps: u8,
    /// The longest gap of late, and the median.
    longest: f32,
    usual: f32,
    packets: u32,
    stamped: u32,
    batch: Batch,
    /// Rate before the last notification, by busy time.
    before_busy: f32,
    /// The last notification that data was seen behind of.
    last: u64,
    /// Notifications since data was spread: the first and the last of them.
    waiting: Option<(u64, u64)>,
    /// By the time since the last notification; there from the first one on that data was seen behind.
    bins: Option<Box<[Bin; BINS]>>,
    /// Time between notifications, smoothed.
    typical: u64,
    /// When the first packet came, and how long that was before the first notification.
    first: u64,
    alone: u64,
    /// Changes of entropy in the present gap: the first one, and the last one, since the notification; 0 for none.
    turns: (u64, u64),
    /// Pauses in the present gap: how many, and the sums of the times since the notification, and of their squares.
    paused: (f32, f32, f32),
    /// Rate before the last notification.
    before: f32,
    measured: u32,
    /// Notifications with a change of entropy in the first, and in the second half of the time to the next one.
    turned_early: u16,
    turned_late: u16,
    /// The same for the middle half, and for the quarters around it.
    turned_middle: u16,
    turned_outside: u16,
    /// Notifications with several changes before the next one.
    turned_twice: u16,
    /// Pauses, and the sums of where they began between two notifications, 0 to 1 each, and of their squares.
    pauses: f32,
    paused_at: f32,
    paused_at_squares: f32,
    gaps: f32,
    /// The last batch before the first notification, and what came behind it; no octets where that is not known.
    just_before: Amount,
    quiet: Class,
    notified: Class,
    between: Class,
    /// Data packets marked CE until the last notification that data was seen behind, and since.
    marked: u32,
    marked_since: u32,
    /// Notifications that came right behind a packet.
    in_step: u32,
    /// Data packets stamped before one that came earlier.
    late: u32,
    psns: LastPsns,
    by_gap: ByGap,
    /// Where its data was seen, and the notifications about it as they counted, one [bit](Place::bit) each.
    places: u16,
    /// Where its data was seen last, before any other place: a [number](Place::short), which few others have.
    data_at: u8,
    /// How many notifications that were seen elsewhere are expected to come by there as well; 0 if they do not.
    awaited: u8,
    datagrams: bool,
    /// Whether notifications were not known to be about it, and it began anew.
    known_late: bool,
    /// The answer when it was looked at last, and how many notifications are measured when it is looked at next.
    earlier: Answer,
    next: u32,
}

/// So many notifications in a row that do not come by where the data is seen, and it is no longer waited for them.
const AWAITED: u8 = 32;

/// The bin that a time since a notification lies in.
const fn bin(since: u64) -> usize {
    match since.checked_ilog2() {
        Some(log) if log >= FIRST => {
            let bin = ((log - FIRST) / 2 + 1) as usize;
            if bin < BINS { bin } else { BINS - 1 }
        }
        _ => 0,
    }
}

/// Where a bin begins, and where it ends.
const fn bounds(bin: usize) -> (u64, u64) {
    let from = if bin == 0 {
        0
    } else {
        1 << (FIRST as usize + 2 * (bin - 1))
    };
    let to = if bin + 1 == BINS {
        u64::MAX
    } else {
        1 << (FIRST as usize + 2 * bin)
    };
    (from, to)
}

/// How a data packet follows those before it, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is new.
    New,
    /// Retransmission: its PSN was seen before.
    Resent,
    /// Copy: its PSN was seen before, and most data of the flow is captured more than once.
    Copied,
    /// Out of order: it was counted when later packets skipped its PSN.
    Late,
    /// Others of its flow have overtaken it at another place: it was on its way from there before that place was looked at.
    Overtaken,
    /// RDMA READ request: senders are not slowed down by how much they ask for.
    Request,
}

impl Order {
    /// Returns true for what the sender sends: it is to be given to [`Obedience::data`].
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::New | Self::Resent)
    }

    /// Returns true if its PSN was seen before.
    #[must_use]
    pub const fn repeats(self) -> bool {
        matches!(self, Self::Resent | Self::Copied)
    }
}

/// Maximum number of skipped PSNs in a row that count as sent: packets lost by the capture, or before it.
const MOST_SKIPPED: u32 = 4096;
/// Share of packets with a PSN seen before from which on these are copies: where all is captured twice it is half.
const COPIES: f32 = 0.4;
/// Packets after which that share is known, and after which their numbers are halved.
const SHARE_KNOWN: u32 = 64;
const SHARE_KEPT: u32 = 1 << 16;
/// Maximum number of packets between one and its copy: kernels hand packets on by 64. A sender that goes back may go further.
const MOST_BETWEEN_COPIES: u32 = 128;
/// Retransmissions for each new PSN that go unnoticed among copies.
const FEW_RESENT: f32 = 0.005;

/// Which of the last 32 PSNs were seen, as of RFC 6479. Of those that are further behind, one counts as seen where it follows one
/// that is new, and so do those that follow it in turn: a sender that goes back goes on from there.
#[derive(Clone, Copy, Debug, Default)]
struct LastPsns {
    /// One bit each, the lowest for the highest PSN.
    seen: u32,
    highest: u32,
    /// Where that was seen.
    place: Place,
    last: u32,
    /// Packets of late, and those of them with a PSN seen before.
    packets: u32,
    repeated: u32,
    /// PSNs that the last packet skipped.
    skipped: u32,
    /// Facts about the last packet: its PSN was new, was seen before, filled a hole, or was an RDMA READ request's.
    was_new: bool,
    was_repeated: bool,
    was_late: bool,
    was_request: bool,
}

impl LastPsns {
    fn see(&mut self, psn: u32, place: Place) -> Order {
        let ahead = psn.wrapping_sub(self.highest) & MAX_24;
        let follows = psn == (self.last + 1) & MAX_24;
        let is_first = self.seen == 0;
        let was_late = core::mem::take(&mut self.was_late);
        let goes_on = core::mem::take(&mut self.was_repeated) && follows;
        let was_request = core::mem::take(&mut self.was_request);
        (self.last, self.skipped) = (psn, 0);
        if self.packets >= SHARE_KEPT {
            (self.packets, self.repeated) = (self.packets / 2, self.repeated / 2);
        }
        self.packets += 1;
        if is_first || (1..0x80_0000).contains(&ahead) {
            (self.seen, self.highest) = (self.seen.checked_shl(ahead).unwrap_or(0) | 1, psn);
            (self.place, self.was_new) = (place, true);
            if !is_first && !was_request && ahead <= MOST_SKIPPED {
                self.skipped = ahead - 1;
            }
            return Order::New;
        }
        if place != self.place {
            return Order::Overtaken;
        }
        let follows_new = core::mem::take(&mut self.was_new);
        let behind = self.highest.wrapping_sub(psn) & MAX_24;
        match 1_u32.checked_shl(behind) {
            Some(bit) if self.seen & bit == 0 => {
                self.seen |= bit;
                self.was_late = true;
                return Order::Late;
            }
            None if !(follows_new || goes_on && behind <= MOST_BETWEEN_COPIES) => {
                return Order::New;
            }
            _ => {}
        }
        self.repeated += 1;
        self.was_repeated = true;
        if self.packets < SHARE_KNOWN || self.are_copies() {
            return Order::Copied;
        }
        // A retransmission starts with the lost packet, which filled the hole and was not counted then.
        self.skipped = u32::from(was_late && follows);
        Order::Resent
    }

    /// Returns whether PSNs are seen so often that these are copies.
    fn are_copies(&self) -> bool {
        self.repeated as f32 >= COPIES * self.packets as f32
    }

    /// Returns whether there are retransmissions among copies: without them, each PSN is seen equally often.
    fn has_resent_copies(&self) -> bool {
        let repeated = self.repeated as f32;
        let more = repeated / (self.packets as f32 - repeated);
        let is_even = more <= 1.0 || (more - more.round()).abs() <= FEW_RESENT;
        self.packets >= SHARE_KNOWN && self.are_copies() && !is_even
    }
}

impl Obedience {
    /// Data of so many octets at `at`, sent with that entropy: whatever the network chooses a path by.
    #[inline]
    pub fn data(&mut self, at: u64, octets: u64, entropy: u32) {
        // As many as were skipped, of the same length.
        let packets = core::mem::take(&mut self.psns.skipped) + 1;
        let octets = octets.saturating_mul(packets.into());
        self.by_gap.data(at, octets, packets);
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        if at > self.latest || !self.begun {
            self.stamp(at);
        } else if at < self.latest {
            self.late = self.late.saturating_add(1);
        }
        self.octets = self.octets.saturating_add(octets);
        self.skipped = self.skipped.saturating_add(packets - 1);
        self.packets = self.packets.saturating_add(1);
        if self.entropy != entropy {
            self.turned = true;
            self.turned_behind |= self.waiting.is_some();
            self.entropy = entropy;
        }
    }

    /// Takes in the PSN of data, seen at `place` and nowhere before, that is [`data`](Self::data) next where it counts. What a
    /// sender sends is judged: PSNs that were skipped count with it, as does what is sent again; copies do not.
    #[inline]
    pub fn sequenced(&mut self, sequence: Sequence, place: Place) -> Order {
        self.places |= place.bit();
        self.data_at = place.short();
        match sequence {
            Sequence::Connection(psn) => self.psns.see(psn, place),
            Sequence::Request(psn) => {
                let order = self.psns.see(psn, place);
                self.psns.was_request = true;
                match order {
                    Order::New => Order::Request,
                    _ => order,
                }
            }
            Sequence::Answer(_) => Order::New,
            Sequence::Datagram => {
                self.datagrams = true;
                Order::New
            }
        }
    }

    /// The highest PSN of its data that has PSNs of its own. What is sent again is behind it: acknowledgements of what was sent
    /// before go on.
    #[inline]
    #[must_use]
    pub fn highest_psn(&self) -> Option<u32> {
        (self.psns.seen != 0).then_some(self.psns.highest)
    }

    /// The latest data ends a message: what comes later may not have been there to send.
    pub fn message_ends(&mut self) {
        self.by_gap.message_ends();
    }

    /// The latest data was marked CE before it was seen.
    pub const fn marked(&mut self) {
        self.marked_since = self.marked_since.saturating_add(1);
    }

    /// Whether marks, and so notifications, come of a queue that the data had passed when it was seen. What leaves a queue is
    /// the flow's share of the line, whatever it was sent at.
    const fn is_behind_queue(&self) -> bool {
        self.marked > self.measured / 4
    }

    /// A new stamp: what bears the last one can be spread.
    fn stamp(&mut self, at: u64) {
        if !self.begun {
            self.begun = true;
            (self.first, self.spread, self.latest) = (at, at, at);
            self.turned = false;
            return;
        }
        if self.latest > self.spread {
            self.settle();
        } else if let Some((first, last)) = self.waiting
            && first < self.latest
        {
            // Before all data: of what was before it, nothing is known.
            self.bins = Some(Box::default());
            self.last = last.min(self.latest);
            self.waiting = (last >= self.latest).then_some((last, last));
        }
        (self.spread, self.latest) = (self.latest, at);
        (self.octets, self.skipped) = (0, 0);
        self.turned = false;
        self.turned_behind = false;
    }

    /// Notifications came, until `at`, that were not known to be about it: where there was data before, it is not known when it
    /// was left alone, and all begins anew.
    pub fn missed(&mut self, at: u64) {
        if at > self.first {
            let mut by_gap = core::mem::take(&mut self.by_gap);
            by_gap.missed();
            *self = Self {
                psns: self.psns,
                by_gap,
                known_late: true,
                ..Self::default()
            };
        }
    }

    /// A notification was seen at that place, first of all or (`again`) behind another one. It counts when it passes where the
    /// data is seen: nearer to the receiver it was seen sooner, and the sender's answer to it would come too late, or to those
    /// behind it.
    pub fn notified_at(&mut self, at: u64, place: Place, again: bool) {
        let beside_data = place.short() == self.data_at || self.packets == 0;
        let counted = match (again, beside_data) {
            (false, true) => true,
            (false, false) => {
                let is_awaited = self.awaited > 0;
                self.awaited = self.awaited.saturating_sub(1);
                !is_awaited
            }
            (true, true) => std::mem::replace(&mut self.awaited, AWAITED) > 0,
            (true, false) => false,
        };
        if counted {
            self.places |= place.bit();
            self.notified(at);
        }
    }

    /// A notification at `at`.
    pub fn notified(&mut self, at: u64) {
        // Within a quarter of the usual time from packet to packet.
        if self.begun {
            self.by_gap.notified();
        }
        let since = at.saturating_sub(self.latest) as f32;
        self.in_step = (self.in_step).saturating_add(u32::from(4.0 * since < self.usual));
        let at = at.max(self.spread);
        self.waiting = Some(match self.waiting {
            None => (at, at),
            Some((first, last)) => (first, last.max(at)),
        });
    }

    /// Spreads the latest octets over the time since the stamp before.
    fn settle(&mut self) {
        let (from, to) = (self.spread, self.latest);
        let length = to - from;
        let long = length as f32 / (1.0 + self.skipped as f32);
        let paused = self.stamps >= KNOWN && long > self.longest * PAUSE;
        self.stamps = self.stamps.saturating_add(1);
        self.stamped = self.stamped.saturating_add(1);
        self.longest = long.max(self.longest * (15.0 / 16.0));
        if self.usual == 0.0 {
            self.usual = long;
        }
        let busy = if long > self.usual * STANDS_OUT {
            self.usual / long
        } else {
            1.0
        };
        self.usual *= if long > self.usual {
            17.0 / 16.0
        } else {
            16.0 / 17.0
        };
        let pace = Pace {
            rate: self.octets as f32 / length as f32,
            busy,
            paused,
        };
        let mut start = from;
        if let Some((first, last)) = self.waiting
            && first < to
        {
            let first = first.max(from);
            self.add(from, first, pace, false);
            self.close(first);
            self.look();
            let last_before = if last < to { last.max(first) } else { first };
            if last_before > first && !paused {
                self.batch.part.add(last_before - first, pace);
                // In between, the rate was this.
                self.before = pace.rate;
                self.before_busy = pace.rate / busy;
                if let Some(bins) = &mut self.bins {
                    let time = (last_before - first) as f32;
                    let bin = &mut bins[bin(last_before - first)];
                    bin.time += time;
                    bin.octets += pace.rate * time;
                }
            }
            self.waiting = (last >= to).then_some((last, last));
            self.last = last_before;
            start = last_before;
        } else if self.turned_behind && self.waiting.is_some() {
            // At the notification's own stamp.
            self.turned = false;
            self.turned_next = true;
        }
        self.add(start, to, pace, true);
    }

    /// Adds data between two times, which no notification lies between; `whole` where a stamp ends it.
    fn add(&mut self, from: u64, to: u64, pace: Pace, whole: bool) {
        let (a, b) = (from - self.last.min(from), to - self.last.min(to));
        if whole && self.turned && self.bins.is_some() {
            self.turns = (if self.turns.0 == 0 { b } else { self.turns.0 }, b);
        }
        if pace.paused {
            // Notifications may lie in it: it is one where most of it is.
            if self.bins.is_some() && to - from > (self.latest - self.spread) / 2 {
                let since = a as f32;
                self.paused.0 += 1.0;
                self.paused.1 += since;
                self.paused.2 += since * since;
            }
            return;
        }
        let stamps = u16::from(whole);
        if let Some(bins) = &mut self.bins {
            let mut at = a;
            let (mut number, end) = (bin(a), bin(b));
            while number < end {
                let (_, to) = bounds(number);
                bins[number].part.add(to - at, pace);
                at = to;
                number += 1;
            }
            let part = &mut bins[end].part;
            part.add(b - at, pace);
            part.stamps = part.stamps.saturating_add(stamps);
        }
        let times = if self.bins.is_none() {
            Times::Quiet
        } else if self.typical == 0 {
            Times::Unknown
        } else if b <= self.typical.saturating_mul(4) {
            Times::Notified
        } else if a > self.typical.saturating_mul(ALONE) {
            Times::Quiet
        } else {
            Times::Between
        };
        if self.batch.times != times {
            self.batch = Batch {
                times,
                part: Part::default(),
            };
        }
        let part = &mut self.batch.part;
        part.add(to - from, pace);
        part.stamps += stamps;
        if part.stamps >= BATCH {
            let batch = core::mem::take(part);
            let class = match times {
                Times::Quiet => {
                    if self.bins.is_some() {
                        self.left_alone = true;
                    } else {
                        self.just_before = Amount::default();
                        self.just_before.add(&batch);
                    }
                    &mut self.quiet
                }
                Times::Notified => &mut self.notified,
                Times::Between => &mut self.between,
                Times::Unknown => return,
            };
            class.add(&batch);
        }
    }

    /// The time that began with the last notification ends with the next one, at `at`.
    fn close(&mut self, at: u64) {
        let marked = core::mem::take(&mut self.marked_since);
        self.marked = self.marked.saturating_add(marked);
        let Some(bins) = &mut self.bins else {
            self.bins = Some(Box::default());
            self.alone = at.saturating_sub(self.first);
            let part = self.batch.part;
            if part.stamps >= 4 {
                self.before = part.octets / part.time;
            }
            if part.stamps >= 4 || self.just_before.time > 0.0 {
                self.just_before.add(&part);
            }
            if self.quiet.count > 0.0 {
                self.before = (self.quiet.mean() as f32).exp();
            }
            return;
        };
        let length = at.saturating_sub(self.last).max(1);
        let (mut octets, mut time, mut busy, mut stamps) = (0.0, 0.0, 0.0, 0);
        for Bin { part, .. } in bins.iter() {
            octets += part.octets;
            time += part.time;
            busy += part.busy;
            stamps += u32::from(part.stamps);
        }
        if stamps > 0 {
            self.measured = self.measured.saturating_add(1);
        }
        self.gaps += 1.0;
        let kept = if self.gaps % KEPT == 0.0 { 0.5 } else { 1.0 };
        for bin in bins.iter_mut() {
            bin.octets = kept * bin.octets + bin.part.octets;
            bin.time = kept * bin.time + bin.part.time;
        }
        self.pauses += self.paused.0;
        self.paused_at += self.paused.1 / length as f32;
        self.paused_at_squares += self.paused.2 / (length as f32).powi(2);
        self.turned_ever |= self.turns.0 > 0;
        let turned = [
            &mut self.turned_early,
            &mut self.turned_late,
            &mut self.turned_middle,
            &mut self.turned_outside,
            &mut self.turned_twice,
        ];
        if turned.iter().any(|count| **count == u16::MAX) {
            turned.into_iter().for_each(|count| *count /= 2);
        }
        self.turned_twice += u16::from(self.turns.0 != self.turns.1);
        match self.turns {
            (0, _) => {}
            (_, last) if last <= length / 2 => self.turned_early += 1,
            (first, _) if first > length / 2 => self.turned_late += 1,
            _ => {}
        }
        let quarter = length / 4;
        match self.turns {
            (0, _) => {}
            (first, last) if first >= quarter && last <= length - quarter => {
                self.turned_middle += 1;
            }
            (first, last) if last < quarter || first > length - quarter => self.turned_outside += 1,
            _ => {}
        }
        if time > 0.0 {
            // What is around a bin: the rest of that time, and the time before, where that is known.
            let between = |rest: f32, before: f32| {
                if before > 0.0 {
                    f32::midpoint(rest, before)
                } else {
                    rest
                }
            };
            for (number, Bin { part, totals, .. }) in bins.iter_mut().enumerate() {
                let (from, to) = bounds(number);
                if from >= length {
                    break;
                }
                let rest = time - part.time;
                let whole = part.time >= (to.saturating_sub(from) as f32) / 2.0;
                if !whole && part.time < 0.15 * time || rest < 0.1 * time {
                    continue;
                }
                let others = (octets - part.octets).max(0.0);
                let around = between(others / rest, self.before);
                let around_busy = between(others / (busy - part.busy), self.before_busy);
                let more_busy = part.octets / part.busy / around_busy - 1.0;
                totals.add(part, around, more_busy * around);
            }
            self.before = octets / time;
            self.before_busy = octets / busy;
        }
        self.typical = if self.typical == 0 {
            length
        } else {
            let length = length.min(self.typical.saturating_mul(8));
            (self.typical - self.typical / 8 + length / 8).max(1)
        };
        for bin in bins.iter_mut() {
            bin.part = Part::default();
        }
        self.paused = (0.0, 0.0, 0.0);
        self.turns = if core::mem::take(&mut self.turned_next) {
            (1, 1)
        } else {
            (0, 0)
        };
    }
}

impl Totals {
    fn add(&mut self, part: &Part, around: f32, more_busy: f32) {
        let more = part.octets / part.time - around;
        let kept = if self.count >= KEPT { 0.5 } else { 1.0 };
        self.count = kept * self.count + 1.0;
        self.more = kept * self.more + more;
        self.more_busy *= kept;
        if more_busy.is_finite() {
            self.more_busy += more_busy;
        }
        self.squares = kept * self.squares + more * more;
        self.around = kept * self.around + around;
        self.stamps = kept * self.stamps + f32::from(part.stamps);
        self.lowest = self.lowest.min(more);
    }
}
