//! Estimates whether a flow slows down after notifications. There are three answers, each with its
//! evidence; see [`Answer`].
//!
//! Three questions are asked about a flow, each at its own time scale:
//! - *Shape.* The time from one notification to the next is divided into bins, each four times as
//!   long as the previous one. How much less data is in a bin than in the rest of that time and in
//!   the time before the notification? For a flow that ignores notifications the expected
//!   difference is zero, averaged over notifications, however it sends: each interval between
//!   notifications is its own control, and so is a steady trend. Notifications that come when a
//!   sender is fast raise the first bins, not lower them. Less data in the last bin, after more in
//!   an earlier one, is no answer: the rate may fall back from a rise. If notifications come in
//!   episodes between which a sender recovers, the data around each belongs to the episode: so
//!   before a sender is reported not to obey, all notifications pooled must not show less data soon
//!   after than later either.
//! - *Quiet.* Is the flow slower while it is notified than before the first notification, or long
//!   after the last one? This is the only evidence left if notifications come so fast that they
//!   hold a sender down.
//! - *Path.* Does the entropy (UDP source port, flow label) change soon after notifications, rather
//!   than at other times?
//!
//! Data is spread evenly over the time since the previous earlier stamp, so that bins need not hold
//! whole packets; data sent after a long pause counts in neither side of a comparison. Shape is
//! measured twice: by elapsed time, and by busy time, in which an outlying gap counts no longer
//! than a usual one. Only less data by both measures shows that the sender obeys, and only as much
//! data by both shows that it does not: a message may end soon after the notification that it
//! caused, and a message that is slowed down may hide this among times with nothing to send. No
//! state is kept per packet: about 440 octets per flow, whatever it sends, and 2.7 KB more once it
//! is notified.
//!
//! The shape question is asked a second time, with time counted in gaps between packets
//! (`by_gap.rs`): the pace after a notification is compared with a prediction from the flow's own
//! past. That works at any time scale and across an application's pauses, but misses short episodes
//! and late responses, which the bins detect. The answer is that of either method, if the other
//! does not contradict it.
//!
//! The judgment is about the data that the sender sends: skipped PSNs count as sent at that time,
//! and so do retransmissions ([`Obedience::sequenced`]).
//!
//! This file holds the state of a flow; `obedience/judge.rs` derives the answer from it, and
//! `obedience/evidence.rs` describes the evidence.

use crate::float::Float;

mod by_gap;
mod evidence;
mod full_window;
mod judge;
mod pace;
mod response;
mod steadiness;
#[cfg(test)]
mod tests;

use crate::data::Sequence;
use crate::sightings::CapturePoint;
use fcn_wire::bth::MAX_24;

use by_gap::ByGap;
use full_window::FullWindow;

pub use evidence::{Advice, Answer, Doubt, Evidence, Less, Slower, Unit, Verdict, Window};

/// Number of bins of the time since a notification, each four times as long as the previous one;
/// the first ends at [`FIRST`], the last has no end.
const BINS: usize = 11;
/// End of the first bin, as a power of two of nanoseconds: about a microsecond.
const FIRST: u32 = 10;
/// Stamps in a batch of data, whose rate is compared between quiet and notified times.
const BATCH: u16 = 16;
/// A gap this many times as long as the longest recent one (which decays by a 16th per stamp) is a
/// pause, not a rate.
const PAUSE: f32 = 8.0;
/// A gap this many times as long as the recent median is an outlier; slowing down to half the rate
/// causes none.
const OUTLIER_RATIO: f32 = 2.0;
/// Number of stamps after which pauses are recognised.
const KNOWN: u8 = 64;
/// Number of notifications after which sums are halved, so that old data fades and single-precision
/// sums stay exact.
const KEPT: f32 = 16_384.0;
/// Time without a notification from which a flow counts as left alone, in usual intervals between
/// notifications.
const QUIET_AFTER: u64 = 8;

/// Octets in a time span.
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

    /// Returns the logarithm of its rate; `None` if there is no data.
    fn rate(&self) -> Option<f64> {
        (self.octets > 0.0).then(|| (f64::from(self.octets) / f64::from(self.time)).natural_log())
    }
}

/// Data in one bin since the last notification.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    octets: f32,
    time: f32,
    /// `time` without the excess of outlying gaps.
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

/// Distribution of data over the time since the previous stamp.
#[derive(Clone, Copy)]
struct Pace {
    /// Octets per nanosecond.
    rate: f32,
    /// Share of the time that is busy.
    busy: f32,
    paused: bool,
    /// True if flow control paused its path.
    path_paused: bool,
}

/// Sums over notifications: the excess of data in a bin over that around it, in octets per
/// nanosecond.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    count: f32,
    more: f32,
    /// The excess by busy time, on the scale of `more`.
    more_busy: f32,
    squares: f32,
    around: f32,
    stamps: f32,
    /// The lowest excess, which the judgment leaves out.
    lowest: f32,
}

/// Data in one range of the time since notifications.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    /// Since the last notification.
    part: Part,
    /// Over previous notifications.
    totals: Totals,
    /// Octets and time over all notifications, regardless of the data around.
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
        let value = (batch.octets / batch.time).natural_log();
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

    /// Returns the logarithm of the rate over all its time.
    fn rate(&self) -> f64 {
        (f64::from(self.octets) / f64::from(self.time)).natural_log()
    }

    fn mean(&self) -> f64 {
        f64::from(self.sum) / f64::from(self.count)
    }

    /// Returns the variance of single values; at least that of `BATCH` random packets, divided by
    /// 16, as senders pace.
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

/// Kind of time that the data of a batch counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum BatchKind {
    Quiet,
    Notified,
    #[default]
    Between,
    Unknown,
}

/// Data packets in one kind of time.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    kind: BatchKind,
    part: Part,
}

/// Time of the last notification before the flow that it is about was known.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnattributedNotification(Option<u64>);

impl UnattributedNotification {
    /// Records another notification at `at`, whose flow is known or not. Returns the time of the
    /// last one that was not passed to the flow, if any.
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

/// State of one flow, to be judged. Times are nanoseconds of any clock; times that go back count as
/// the latest one.
///
/// The fields that every stamp touches come first, and take at most two cache lines.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Obedience {
    /// The stamp before the latest one, up to which data has been spread.
    spread: u64,
    /// The latest stamp, and the octets with that stamp.
    latest: u64,
    octets: u32,
    /// Packets before it that were sent and not captured, by their PSNs.
    skipped: u32,
    entropy: u32,
    /// True if the entropy changed at the latest stamp, and if it did so after a pending
    /// notification.
    turned: bool,
    turned_behind: bool,
    turned_next: bool,
    turned_ever: bool,
    /// True if flow control paused its path before the latest stamp, and before the next one.
    path_paused: bool,
    path_paused_next: bool,
    /// True if there was data long after a notification.
    left_alone: bool,
    /// True after the first data packet.
    begun: bool,
    /// Number of stamps, up to that needed to recognise pauses.
    stamps: u8,
    /// The longest recent gap, and the median.
    longest: f32,
    usual: f32,
    packets: u32,
    stamped: u32,
    batch: Batch,
    /// Rate before the last notification, by busy time.
    before_busy: f32,
    /// The last notification with data after it.
    last: u64,
    /// First and last notification since data was last spread.
    waiting: Option<(u64, u64)>,
    /// By the time since the last notification; present from the first one with data after it.
    bins: Option<Box<[Bin; BINS]>>,
    /// Interval between notifications, smoothed.
    typical: u64,
    /// Time of the first packet, and from it to the first notification.
    first: u64,
    alone: u64,
    /// First and last change of entropy in the current interval, as times since the notification; 0
    /// for none.
    turns: (u64, u64),
    /// Pauses in the current interval: their number, and the sums of their times since the
    /// notification and of the squares of these.
    paused: (f32, f32, f32),
    /// Rate before the last notification.
    before: f32,
    measured: u32,
    /// Notifications with a change of entropy in the first, and in the second half of the interval
    /// to the next one.
    turned_early: u16,
    turned_late: u16,
    /// The same for the middle half, and for the quarters around it.
    turned_middle: u16,
    turned_outside: u16,
    /// Notifications with several changes before the next one.
    turned_twice: u16,
    /// Pauses, and the sums of the positions where they began between two notifications, 0 to 1
    /// each, and of the squares of these.
    pauses: f32,
    paused_at: f32,
    paused_at_squares: f32,
    gaps: f32,
    /// The last batch before the first notification, and the data after it; no octets if unknown.
    just_before: Amount,
    quiet: Class,
    notified: Class,
    between: Class,
    /// Data packets marked CE up to the last notification with data after it, and since.
    marked: u32,
    marked_since: u32,
    /// Notifications that came right after a packet.
    in_step: u32,
    /// Data packets with a time stamp before that of an earlier one.
    late: u32,
    psns: LastPsns,
    by_gap: ByGap,
    /// Present from the first notification on.
    full_window: Option<Box<FullWindow>>,
    /// Capture points of its data and of the notifications that counted, one [bit](Place::bit)
    /// each.
    places: u16,
    /// Capture point of the first sighting of its last data packet: a [number](Place::short) that
    /// few others share.
    data_at: u8,
    /// Number of notifications captured elsewhere that may still be expected at that capture point
    /// as well; 0 if none are.
    awaited: u8,
    datagrams: bool,
    read_responses: bool,
    /// True if earlier notifications about it could not be attributed, so that it began anew.
    known_late: bool,
    /// The answer at the last evaluation, and the number of measured notifications for the next
    /// one.
    earlier: Answer,
    next: u32,
}

/// Number of consecutive notifications that do not pass the capture point of the data, after which
/// they are no longer awaited there.
const AWAITED: u8 = 32;

/// Returns the bin of a time since a notification.
const fn bin(since: u64) -> usize {
    match since.checked_ilog2() {
        Some(log) if log >= FIRST => {
            let bin = ((log - FIRST) / 2 + 1) as usize;
            if bin < BINS { bin } else { BINS - 1 }
        }
        _ => 0,
    }
}

/// Returns the bounds of a bin.
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

/// Order of a data packet relative to earlier ones, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A new packet.
    New,
    /// Retransmission: its PSN was captured before.
    Resent,
    /// Copy: its PSN was captured before, and most data of the flow is captured more than once.
    Copied,
    /// Out of order: it was counted when later packets skipped its PSN.
    Late,
    /// Overtaken by others of its flow at another capture point: it was on its way from there
    /// before capture began there.
    Overtaken,
    /// RDMA READ request: senders are not slowed down by the amount of data that they request.
    Request,
}

impl Order {
    /// Returns true for packets that count as sent: these are to be passed to [`Obedience::data`].
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::New | Self::Resent)
    }

    /// Returns true if its PSN was captured before.
    #[must_use]
    pub const fn repeats(self) -> bool {
        matches!(self, Self::Resent | Self::Copied)
    }
}

/// Maximum number of consecutive skipped PSNs that count as sent: packets lost by the capture, or
/// before it.
const MOST_SKIPPED: u32 = 4096;
/// Minimum share of packets with a repeated PSN for these to be copies: if every packet is captured
/// twice, it is half.
const COPIES: f32 = 0.4;
/// Number of packets after which that share is known, and after which the counts are halved.
const SHARE_KNOWN: u32 = 64;
const SHARE_KEPT: u32 = 1 << 16;
/// Maximum number of packets between one and its copy: kernels pass packets on in batches of 64. A
/// sender that goes back may go further.
const MOST_BETWEEN_COPIES: u32 = 128;
/// Number of retransmissions per new PSN that go unnoticed among copies.
const FEW_RESENT: f32 = 0.005;

/// Bitmap of the last 32 PSNs, as in RFC 6479. A PSN further behind counts as captured before if it
/// follows a new one, and so do those that follow it in turn: a sender that goes back continues
/// from there.
#[derive(Clone, Copy, Debug, Default)]
struct LastPsns {
    /// One bit per PSN, the lowest for the highest PSN.
    seen: u32,
    highest: u32,
    /// Capture point of the highest PSN.
    point: CapturePoint,
    last: u32,
    /// Recent packets, and those of them with a repeated PSN.
    packets: u32,
    repeated: u32,
    /// Number of PSNs that the last packet skipped.
    skipped: u32,
    /// Properties of the last packet: its PSN was new, was captured before, filled a hole, or was
    /// an RDMA READ request's.
    was_new: bool,
    was_repeated: bool,
    was_late: bool,
    was_request: bool,
}

impl LastPsns {
    fn see(&mut self, psn: u32, point: CapturePoint) -> Order {
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
            (self.point, self.was_new) = (point, true);
            if !is_first && !was_request && ahead <= MOST_SKIPPED {
                self.skipped = ahead - 1;
            }
            return Order::New;
        }
        if point != self.point {
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
        // A retransmission starts with the lost packet, which filled the hole and was not counted
        // then.
        self.skipped = u32::from(was_late && follows);
        Order::Resent
    }

    /// Returns true if PSNs are repeated so often that the repetitions are copies.
    fn are_copies(&self) -> bool {
        self.repeated as f32 >= COPIES * self.packets as f32
    }

    /// Returns true if there are retransmissions among copies: without them, each PSN occurs
    /// equally often.
    fn has_resent_copies(&self) -> bool {
        let repeated = self.repeated as f32;
        let more = repeated / (self.packets as f32 - repeated);
        let is_even = more <= 1.0 || (more - more.round()).abs() <= FEW_RESENT;
        self.packets >= SHARE_KNOWN && self.are_copies() && !is_even
    }
}

impl Obedience {
    /// Records data of `octets` octets at `at`. `entropy` combines the fields by which the network
    /// chooses a path.
    #[inline]
    pub fn data(&mut self, at: u64, octets: u64, entropy: u32) {
        // Skipped packets count with the same length.
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

    /// Returns true if most of its data is captured more than once at one capture point.
    #[must_use]
    pub fn has_copies(&self) -> bool {
        self.psns.packets > 0 && self.psns.are_copies()
    }

    /// Records the PSN of data first captured at `point`. If the returned order counts,
    /// [`data`](Self::data) is called next. Skipped PSNs count as sent, as do retransmissions;
    /// copies do not.
    #[inline]
    pub fn sequenced(&mut self, sequence: Sequence, point: CapturePoint) -> Order {
        self.places |= point.bit();
        self.data_at = point.short();
        match sequence {
            Sequence::Connection(psn) => self.psns.see(psn, point),
            Sequence::Request(psn) => {
                let order = self.psns.see(psn, point);
                self.psns.was_request = true;
                match order {
                    Order::New => Order::Request,
                    _ => order,
                }
            }
            Sequence::Answer(_) => {
                self.read_responses = true;
                Order::New
            }
            Sequence::Datagram => {
                self.datagrams = true;
                Order::New
            }
        }
    }

    /// Returns the highest PSN of the data with its own PSNs. Retransmissions do not lower it, as
    /// acknowledgements of earlier packets continue.
    #[inline]
    #[must_use]
    pub fn highest_psn(&self) -> Option<u32> {
        (self.psns.seen != 0).then_some(self.psns.highest)
    }

    /// Records that the latest data ends a message: later data may not have been available to send.
    pub fn message_ends(&mut self) {
        self.by_gap.message_ends();
    }

    /// Returns true if its last data packet was first captured at `point`, or at one of the few
    /// with the same [number](CapturePoint::short).
    #[must_use]
    pub const fn is_captured_at(&self, point: CapturePoint) -> bool {
        point.short() == self.data_at
    }

    /// Processes an acknowledgement of the flow's data, captured at `point`, that shows this
    /// round-trip time in ns.
    pub fn acknowledged(&mut self, psn: u32, point: CapturePoint, round_trip: Option<u64>) {
        let is_beside_data = self.is_captured_at(point);
        if let Some(window) = &mut self.full_window
            && is_beside_data
        {
            window.acknowledged(psn, self.psns.highest, round_trip);
        }
    }

    /// Records that flow control has paused the flow's path since the latest data: the time until
    /// the next data does not count.
    pub fn path_paused(&mut self) {
        self.path_paused_next = true;
        self.by_gap.path_paused();
    }

    /// Records that the latest data was marked CE before the capture point.
    pub const fn marked(&mut self) {
        self.marked_since = self.marked_since.saturating_add(1);
    }

    /// Returns true if marks, and so notifications, come from a queue that the data had passed when
    /// it was captured. The rate after a queue is the flow's share of the link, not the rate at
    /// which it was sent.
    const fn is_behind_queue(&self) -> bool {
        self.marked > self.measured / 4
    }

    /// Begins a new stamp: the data of the previous one can be spread.
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
            // Before all data: the rate before it is unknown.
            self.bins = Some(Box::default());
            self.last = last.min(self.latest);
            self.waiting = (last >= self.latest).then_some((last, last));
        }
        (self.spread, self.latest) = (self.latest, at);
        self.path_paused = core::mem::take(&mut self.path_paused_next);
        (self.octets, self.skipped) = (0, 0);
        self.turned = false;
        self.turned_behind = false;
    }

    /// Records that notifications up to `at` could not be attributed to it: if there was data
    /// before, the times when it was left alone are unknown, and all state is reset.
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

    /// Records a notification captured at that place, for the first time or (`again`) as a copy. It
    /// counts when it passes the capture point of the data: nearer to the receiver it is captured
    /// sooner, and the sender's response would appear late, or as one to later notifications.
    pub fn notified_at(&mut self, at: u64, point: CapturePoint, again: bool) {
        let beside_data = point.short() == self.data_at || self.packets == 0;
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
            self.places |= point.bit();
            self.notified(at);
        }
    }

    /// Returns true if there were notifications, at any capture point.
    pub const fn is_notified(&self) -> bool {
        self.known_late || self.waiting.is_some() || self.bins.is_some()
    }

    /// Records a notification at `at`.
    pub fn notified(&mut self, at: u64) {
        // In step: within a quarter of the usual gap between packets.
        if self.begun {
            self.by_gap.notified();
            (self.full_window.get_or_insert_default()).notified(self.psns.highest);
        }
        let since = at.saturating_sub(self.latest) as f32;
        self.in_step = (self.in_step).saturating_add(u32::from(4.0 * since < self.usual));
        let at = at.max(self.spread);
        self.waiting = Some(match self.waiting {
            None => (at, at),
            Some((first, last)) => (first, last.max(at)),
        });
    }

    /// Spreads the latest octets over the time since the previous stamp.
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
        let busy = if long > self.usual * OUTLIER_RATIO {
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
            paused: paused || self.path_paused,
            path_paused: self.path_paused,
        };
        let paused = pace.paused;
        let mut start = from;
        if let Some((first, last)) = self.waiting
            && first < to
        {
            let first = first.max(from);
            self.add(from, first, pace, false);
            self.close(first);
            self.update_earlier_answer();
            let last_before = if last < to { last.max(first) } else { first };
            if last_before > first && !paused {
                self.batch.part.add(last_before - first, pace);
                // Between the notifications, the rate was this.
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

    /// Adds data between two times, with no notification in between; `whole` is true if a stamp
    /// ends it.
    fn add(&mut self, from: u64, to: u64, pace: Pace, whole: bool) {
        let (a, b) = (from - self.last.min(from), to - self.last.min(to));
        if whole && self.turned && self.bins.is_some() {
            self.turns = (if self.turns.0 == 0 { b } else { self.turns.0 }, b);
        }
        if pace.paused {
            // Notifications may lie within a pause: it counts in the part that holds most of it.
            let is_own = !pace.path_paused && self.bins.is_some();
            if is_own && to - from > (self.latest - self.spread) / 2 {
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
            BatchKind::Quiet
        } else if self.typical == 0 {
            BatchKind::Unknown
        } else if b <= self.typical.saturating_mul(4) {
            BatchKind::Notified
        } else if a > self.typical.saturating_mul(QUIET_AFTER) {
            BatchKind::Quiet
        } else {
            BatchKind::Between
        };
        if self.batch.kind != times {
            self.batch = Batch {
                kind: times,
                part: Part::default(),
            };
        }
        let part = &mut self.batch.part;
        part.add(to - from, pace);
        part.stamps += stamps;
        if part.stamps >= BATCH {
            let batch = core::mem::take(part);
            let class = match times {
                BatchKind::Quiet => {
                    if self.bins.is_some() {
                        self.left_alone = true;
                    } else {
                        self.just_before = Amount::default();
                        self.just_before.add(&batch);
                    }
                    &mut self.quiet
                }
                BatchKind::Notified => &mut self.notified,
                BatchKind::Between => &mut self.between,
                BatchKind::Unknown => return,
            };
            class.add(&batch);
        }
    }

    /// Ends the interval that began with the last notification at the next one, at `at`.
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
                self.before = (self.quiet.mean() as f32).exponential();
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
            // The rate around a bin: that of the rest of the interval, averaged with that of the
            // time before if known.
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
