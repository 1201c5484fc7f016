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
//! Nothing is kept of single packets: about 800 octets a flow, whatever it sends.

use crate::data::Sequence;
use crate::sightings::Place;
use core::fmt;
use fcn_wire::bth::MAX_24;

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
/// A time between notifications in which a sender that was slowed down to its minimum recovers, in nanoseconds. The NICs known
/// begin to recover after 55 µs to 1.5 ms.
const RECOVERS: u64 = 5_000_000;
/// Packets between notifications from which on a flow that was never seen without them is not taken for one at its lowest
/// rate, where a receiver answers every packet or two. With 16, three of 100 flows that never slow down are unclear in addition; of
/// those held at half their rate 73 % are said not to obey, with 16 58 %.
const HELD: f64 = 6.0;
/// And so many packets in all: of DCQCN senders that a burst had driven to a few hundredths of the line, each with 150 to 200
/// packets in 20 ms and half of them sent again, one in eight was said not to obey.
const HELD_LEAST: u32 = 1_000;
/// An answer that begins later than this after the notification is none, in nanoseconds.
const LATEST: u64 = 1 << 24;
/// More than one data packet in so many that is stamped before an earlier one, and time stamps tell nothing.
const LATE_ONE_IN: u32 = 100;
/// More than this much less, and than so many standard errors, keeps a flow from not obeying: DCQCN that cuts by a few
/// hundredths behind a queue shows hardly more. Each of up to eleven bins may hint by chance: with two errors 16 % of the flows
/// with packets at random were unclear, with two and a quarter 13 %, with two and a half 11.5 %; of all flows 0.4 % were wrong.
const HINT: f64 = 0.015;
const HINT_ERRORS: f64 = 2.5;
/// Less data soon after notifications than later, and less while notified than before, keep it from not obeying by so many
/// standard errors together. In a set made independently of the labelled one, of the verdicts about senders that slow down in
/// part or not always 15 % were wrong where the first had to be three errors and a fifth, and the second four errors; with this
/// and [`MOST`] for all notifications together, 3 %. Of the flows that never slow down seven more in 100 are unclear.
const HINTS_ERRORS: f64 = 2.0;
/// Of packets in bursts, less of a tenth by this many standard errors in bins with few of them leaves it open.
const HINTED: f64 = 1.25;
/// Less that begins later than this after the notification, in nanoseconds, after data as before, is an answer only where the
/// rate is steady without notifications: a rate that swings by itself looks the same where notifications come in step with it.
/// The NICs known cut within tens of microseconds.
const SOON: u64 = 1 << 16;
/// Of what the rate goes down by while it is notified, so much must have come with the first notifications: a rate that wanders
/// goes down at any time.
const EARLY: f64 = 0.5;
/// Time without a notification from which on a flow counts as left alone, in nanoseconds; it is longer where they are sparse.
const ALONE: u64 = 10_000_000;

/// Whether the sender of a flow does what notifications ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Answer {
    /// It sends less after notifications than the same flow does at other times, or takes another path, by more than chance
    /// explains. A twentieth less suffices, where it is there after notification upon notification.
    Obeys,
    /// A fifth less after notifications can be excluded at every time scale that was measured, and for all notifications
    /// together, against all that comes later; nothing hints at less; and it was seen before the queue that marks it.
    DoesNotObey,
    /// Neither can be told.
    #[default]
    Unclear,
}

impl Answer {
    /// `obeys`, `does_not_obey` or `unclear`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Obeys => "obeys",
            Self::DoesNotObey => "does_not_obey",
            Self::Unclear => "unclear",
        }
    }
}

/// Less data in a window after notifications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Less {
    /// By how much at least, as a part of the rate that it is compared with, 0 to 1: two standard errors from the means over
    /// notifications. Data is spread evenly from packet to packet, so that where few packets lie in a window it is more.
    pub at_least: f32,
    /// The window since the notification.
    pub window: Window,
    /// The window with most data, where that is surely more than around; else what is compared is around `window`.
    pub than: Option<Window>,
    /// Whether it pauses now and then, which counts to neither.
    pub pauses: bool,
}

/// Part of the time since a notification: the bin of that number, 0 for the microsecond behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(u8);

impl Window {
    /// The bin of that number; the last one, where there is none such.
    #[must_use]
    pub const fn new(bin: usize) -> Self {
        Self(if bin < BINS { bin } else { BINS - 1 } as u8)
    }
}

/// What an answer rests on. Parts are of the rate, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Evidence {
    /// Less data after notifications than at other times.
    Slower(Less),
    /// Less data while it was notified than without notifications.
    SlowerThanQuiet {
        /// By how much at least: two standard errors from the mean.
        less: f32,
    },
    /// The entropy changed soon after so many notifications.
    OtherPath {
        /// How many.
        after: u32,
    },
    /// As much data after notifications as around that.
    Steady {
        /// What can be excluded: more than this much less.
        most: f32,
        /// Whether it was as fast without notifications; else one that is held at a reduced rate, and does not recover before
        /// the next notification, looks the same.
        alone: bool,
    },
    /// As much data while it was notified as without notifications.
    SteadySinceQuiet {
        /// What can be excluded: more than this much less.
        most: f32,
    },
    /// No data lies between one notification and the next.
    #[default]
    NoData,
    /// The flow was known too late to be the one that notifications are about.
    KnownLate,
    /// Too few notifications or packets.
    TooFew,
    /// Only samples of its packets were seen.
    Sampled,
    /// Several QPs may send datagrams to one.
    Datagrams,
    /// Many of its packets come twice.
    Repeats,
    /// It was notified all the time: it may have been held at a lower rate.
    NeverQuiet,
    /// Less data after notifications, but no more than chance explains.
    Varies {
        /// How much less there was.
        less: f32,
        /// What chance explains.
        chance: f32,
    },
    /// Less data after notifications, or while notified, which need not be an answer.
    Fewer {
        /// By how much.
        less: f32,
        /// The time since notifications in which there was less; `None` for as long as it was notified.
        within: Option<Window>,
    },
    /// The rate varies too much around notifications.
    Unsteady,
    /// The entropy changed, but not plainly in answer to notifications.
    MayTurn,
    /// Time stamps are too coarse for the time between notifications.
    Coarse,
    /// Time stamps of its data go back.
    OutOfOrder,
    /// It paused after notifications, which may be the end of what there was to send.
    Pauses,
    /// As much data after notifications, or while notified, but seen behind a queue that marks it.
    BehindQueue,
    /// Less data after notifications, which is no answer for that reason.
    Doubtful(Less, Doubt),
}

/// Why less data after notifications is no answer, or not plainly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// There was more before that: it falls back from a rise.
    FallsBack,
    /// It comes too late.
    TooLate,
    /// It comes some time after, and without notifications the rate is not steady.
    MaySwing,
    /// It lasts for less time than from packet to packet, or from burst to burst.
    Short,
    /// It is less than can be told from what a full queue does to any sender.
    TooLittle,
    /// Hardly a packet lies there.
    Sparse,
    /// It comes after a time with data as before, or is small beside what single notifications differ by.
    NotPlain,
    /// It is mostly gaps that stand out.
    Idle,
    /// The flow was slower still without notifications.
    SlowerWithout,
}

impl Evidence {
    /// How the rate changed at least, where that is an answer: −0.5 is half.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        match *self {
            Self::Slower(Less { at_least: less, .. }) | Self::SlowerThanQuiet { less } => {
                Some(-f64::from(less))
            }
            _ => None,
        }
    }
}

/// A length of time with two or three digits.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{nanos} ns"),
            1_000..1_000_000 => write!(f, "{:.0} µs", nanos / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.0} ms", nanos / 1e6),
            _ => write!(f, "{:.0} s", nanos / 1e9),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match bounds(self.0.into()) {
            (0, to) => write!(f, "within {}", Span(to)),
            (from, u64::MAX) => write!(f, "from {} on", Span(from)),
            (from, to) => write!(f, "{} to {}", Span(from), Span(to)),
        }
    }
}

/// A part as percent.
struct Percent(f32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0.clamp(0.0, 1.0) * 100.0;
        if percent < 9.95 {
            write!(f, "{percent:.1} %")
        } else {
            write!(f, "{percent:.0} %")
        }
    }
}

impl fmt::Display for Less {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (less, window) = (Percent(self.at_least), self.window);
        write!(
            f,
            "at least {less} less data {window} after notifications than "
        )?;
        match self.than {
            Some(than) if (1..BINS as u8 - 1).contains(&than.0) => write!(f, "{than} after"),
            Some(than) => write!(f, "{than}"),
            None => write!(f, "around that"),
        }?;
        f.write_str(if self.pauses {
            ", leaving out pauses"
        } else {
            ""
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FallsBack => "but more before that: falling back from a rise is no answer",
            Self::TooLate => "too late for an answer",
            Self::MaySwing => "but no steady rate without them: it may swing by itself",
            Self::Short => {
                "which is shorter than from packet or burst to the next: too few to tell"
            }
            Self::TooLittle => "too little for an answer",
            Self::Sparse => "with hardly a packet there: too few to tell",
            Self::NotPlain => "but not at once or not after most of them: no plain answer",
            Self::Idle => "mostly in gaps, in which there may have been nothing to send",
            Self::SlowerWithout => "but less still without notifications",
        })
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Slower(less) => write!(f, "{less}"),
            Self::Doubtful(less, why) => write!(f, "{less}, {why}"),
            Self::BehindQueue => write!(
                f,
                "as much data as at other times, but marked CE before it came here: behind a queue it does not show what the sender does"
            ),
            Self::SlowerThanQuiet { less } => write!(
                f,
                "at least {} less data while it was notified than while it was left alone, before the first notification or long after one",
                Percent(less)
            ),
            Self::OtherPath { after } => {
                // Counts this large have been halved.
                let least = if after > u32::from(u16::MAX) / 2 {
                    "at least "
                } else {
                    ""
                };
                write!(f, "took another path after {least}{after} notifications")
            }
            Self::Steady { most, alone } => {
                let held = if alone {
                    ""
                } else {
                    ", unless it was held at one reduced rate all the time"
                };
                write!(
                    f,
                    "as much data after notifications as around that; more than {} less can be excluded{held}",
                    Percent(most)
                )
            }
            Self::SteadySinceQuiet { most } => write!(
                f,
                "as much data while it was notified as without notifications; more than {} less can be excluded",
                Percent(most)
            ),
            Self::NoData => write!(
                f,
                "by their time stamps, no two notifications have data of the flow between them"
            ),
            Self::KnownLate => write!(
                f,
                "which flow the notifications are about was known only behind them"
            ),
            Self::TooFew => write!(f, "too few notifications or data packets"),
            Self::Datagrams => write!(f, "datagrams, which several QPs may send to this one"),
            Self::Repeats => write!(
                f,
                "more than one in four of its packets comes twice: sent again, or captured twice"
            ),
            Self::Sampled => write!(
                f,
                "only samples were seen, which do not tell when data follows notifications"
            ),
            Self::NeverQuiet => write!(
                f,
                "too little data between one notification and the next, or too late after it, to see an answer"
            ),
            Self::Varies { less, chance } => write!(
                f,
                "{} less data after notifications, where chance explains {}",
                Percent(less),
                Percent(chance)
            ),
            Self::Fewer { less, within } => {
                write!(f, "{} less data ", Percent(less))?;
                match within {
                    Some(Window(last)) => {
                        let (_, to) = bounds(last.into());
                        write!(f, "within {} of notifications than later", Span(to))?;
                    }
                    None => write!(f, "while it was notified than while it was left alone")?,
                }
                write!(f, ", which need not be an answer")
            }
            Self::Unsteady => write!(f, "its rate varies too much around notifications"),
            Self::MayTurn => write!(
                f,
                "it took another path, but not plainly in answer to notifications"
            ),
            Self::Coarse => write!(
                f,
                "time stamps are too coarse for the time between notifications"
            ),
            Self::OutOfOrder => write!(
                f,
                "time stamps of its data go back, and do not tell when it came"
            ),
            Self::Pauses => write!(
                f,
                "pauses after notifications, which may be the end of what there was to send"
            ),
        }
    }
}

/// Whether a flow obeys, as far as that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// Notifications measured, of any kind about the flow: those with data between them and the next one.
    pub measured: u32,
    /// What the answer rests on.
    pub evidence: Evidence,
}

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
    /// Data while notified, once there was time to answer the first notification.
    early: Amount,
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
    /// Data packets whose PSN was seen before.
    repeats: u32,
    psns: LastPsns,
    datagrams: bool,
    /// Whether notifications were not known to be about it, and it began anew.
    known_late: bool,
}

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
    /// Its PSN was seen before.
    Repeated,
    /// Others of its flow have overtaken it at another place: it was on its way from there before that place was looked at.
    Overtaken,
}

/// Which of the last 32 PSNs were seen, as of RFC 6479: what overtakes by less repeats none. One that is further behind is taken
/// for a copy where it follows one that is new: a sender that goes back goes on from there.
#[derive(Clone, Copy, Debug, Default)]
struct LastPsns {
    /// One bit each, the lowest for the highest PSN.
    seen: u32,
    highest: u32,
    /// Where that was seen.
    place: Place,
    /// Whether the last one was new.
    was_new: bool,
}

impl LastPsns {
    fn see(&mut self, psn: u32, place: Place) -> Order {
        let ahead = psn.wrapping_sub(self.highest) & MAX_24;
        if self.seen == 0 || (1..0x80_0000).contains(&ahead) {
            (self.seen, self.highest) = (self.seen.checked_shl(ahead).unwrap_or(0) | 1, psn);
            (self.place, self.was_new) = (place, true);
            return Order::New;
        }
        if place != self.place {
            return Order::Overtaken;
        }
        let follows_new = core::mem::replace(&mut self.was_new, false);
        let behind = self.highest.wrapping_sub(psn) & MAX_24;
        let is_known = match 1_u32.checked_shl(behind) {
            None => follows_new,
            Some(bit) => {
                let is_known = self.seen & bit != 0;
                self.seen |= bit;
                is_known
            }
        };
        match is_known {
            true => Order::Repeated,
            false => Order::New,
        }
    }
}

impl Obedience {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Data of so many octets at `at`, sent with that entropy: whatever the network chooses a path by.
    #[inline]
    pub fn data(&mut self, at: u64, octets: u64, entropy: u32) {
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        if at > self.latest || !self.begun {
            self.stamp(at);
        } else if at < self.latest {
            self.late = self.late.saturating_add(1);
        }
        self.octets = self.octets.saturating_add(octets);
        self.packets = self.packets.saturating_add(1);
        if self.entropy != entropy {
            self.turned = true;
            self.turned_behind |= self.waiting.is_some();
            self.entropy = entropy;
        }
    }

    /// Data comes with that PSN, seen at `place` and nowhere before, which is [`data`](Self::data) unless it was overtaken.
    #[inline]
    pub fn sequenced(&mut self, sequence: Sequence, place: Place) -> Order {
        let order = match sequence {
            Sequence::Connection(psn) => self.psns.see(psn, place),
            Sequence::Answer(_) => Order::New,
            Sequence::Datagram => {
                self.datagrams = true;
                Order::New
            }
        };
        self.repeats = self
            .repeats
            .saturating_add(u32::from(order == Order::Repeated));
        order
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
        self.octets = 0;
        self.turned = false;
        self.turned_behind = false;
    }

    /// Notifications came, until `at`, that were not known to be about it: where there was data before, it is not known when it
    /// was left alone, and all begins anew.
    pub fn missed(&mut self, at: u64) {
        if at > self.first {
            *self = Self::new();
            self.known_late = true;
        }
    }

    /// A notification at `at`.
    pub fn notified(&mut self, at: u64) {
        // Within a quarter of the usual time from packet to packet.
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
        let long = length as f32;
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
            rate: self.octets as f32 / long,
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
        } else if a > ALONE.max(self.typical.saturating_mul(8)) {
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
                Times::Notified => {
                    let enough = RECOVERS
                        .max(self.typical.saturating_mul(4))
                        .min(u64::MAX / 2);
                    let since = to.saturating_sub(self.first.saturating_add(self.alone));
                    if (enough..2 * enough).contains(&since) {
                        self.early.add(&batch);
                    }
                    &mut self.notified
                }
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
        // The next packet but one may be the first that can answer.
        let in_time = LATEST.max((2.5 * self.usual) as u64);
        match self.turns {
            (0, _) => {}
            (first, last) if first <= in_time && last <= length / 2 => self.turned_early += 1,
            (first, _) if first > in_time.min(length / 2) => self.turned_late += 1,
            _ => {}
        }
        let quarter = length / 4;
        match self.turns {
            (0, _) => {}
            (first, last) if first >= quarter && last <= length - quarter => {
                self.turned_middle += u16::from(last < in_time);
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

/// What the sums of a bin say.
#[derive(Clone, Copy, Debug)]
struct Shape {
    bin: usize,
    /// Rate around the bin, in octets a nanosecond.
    around: f64,
    /// Part less, without the lowest.
    less: f64,
    /// Part less by busy time.
    less_busy: f64,
    /// Spread of single notifications, and standard error of `less`.
    spread: f64,
    error: f64,
    /// Stamps in the bin, a notification.
    stamps: f64,
    /// Notifications.
    count: f64,
}

/// What must be excluded for a flow not to obey; less is allowed for in [`Answer::DoesNotObey`], as no answer is for certain.
const MOST: f64 = 0.2;
/// The least that is said to be excluded, and the least that is an answer: of cuts by a hundredth or two, which hide among sparse
/// bins, the bounds know nothing, and a queue that fills makes as much of any sender.
const FINEST: f64 = 0.05;
/// Notifications with data in a bin, from which on it is looked at.
const ENOUGH: f32 = 5.0;

/// Less data than at other times, which is no answer yet.
#[derive(Clone, Copy, Debug)]
struct Hint {
    less: f64,
    /// Standard error of `less`.
    error: f64,
    /// The time since notifications in which there was less; `None` for as long as it was notified.
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

impl Shape {
    /// How much less data chance explains. In the labelled set 4.5 errors mean no fewer wrong answers than 4.
    fn chance(&self) -> f64 {
        if self.less >= 0.01 {
            4.0 * self.error
        } else {
            (6.0 * self.error).max(0.003)
        }
    }

    /// Less data than chance explains.
    fn is_sure(&self) -> bool {
        self.less > self.chance()
    }
}

impl Obedience {
    /// The last bin, where there is less than in one before it that has more than around: what rises after notifications and
    /// then falls back looks like what slows down late, and like what has recovered just when it is notified again.
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

    /// What a bin with less data is said to show: less than in the one with most, as what is around either holds some of both.
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

    /// What less data is worth that is no answer.
    fn doubted(&self, shape: &Shape, why: Doubt) -> Evidence {
        if shape.is_sure() {
            return Evidence::Doubtful(self.less(shape), why);
        }
        let (less, chance) = (shape.less as f32, shape.chance() as f32);
        Evidence::Varies { less, chance }
    }

    /// How much less data was sent soon after notifications than later, over all of them together, wherever `soon` may end:
    /// where they come in episodes between which the sender recovers, what is around each of them is an episode's, too.
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
        // A short bin varies at least as much as a long one: few of them may have shown little.
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

    /// Whether the flow obeys, by what has been seen so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (mut answer, mut evidence) = self.judge();
        if answer == Answer::DoesNotObey && self.is_behind_queue() {
            (answer, evidence) = (Answer::Unclear, Evidence::BehindQueue);
        }
        if self.late > self.packets / LATE_ONE_IN {
            (answer, evidence) = (Answer::Unclear, Evidence::OutOfOrder);
        }
        Verdict {
            answer,
            measured: self.measured(),
            evidence,
        }
    }

    /// How many notifications have data between them and the next one, also where none is behind that yet.
    fn measured(&self) -> u32 {
        let Some((first, last)) = self.waiting else {
            return self.measured;
        };
        let mut bins = self.bins.iter().flat_map(|bins| bins.iter());
        // The latest data is not spread yet.
        let is_latest =
            self.bins.is_some() && (self.last.saturating_add(1)..=first).contains(&self.latest);
        let before = is_latest || bins.any(|bin| bin.part.stamps > 0);
        let between = first < self.latest && self.latest < last;
        self.measured
            .saturating_add(u32::from(before) + u32::from(between))
    }

    /// Whether notifications come right behind packets, few of which lie between them: the time between two ends with a packet
    /// then, as it began with one, so that more seem to come at its end. Of packets at random with one to four between
    /// notifications 42 % of the flows that never slow down were said to obey, with six none.
    fn is_in_step(&self) -> bool {
        let per_gap = f64::from(self.stamped) / f64::from(self.gaps.max(1.0));
        per_gap < 6.0 && f64::from(self.in_step) > 0.6 * f64::from(self.gaps)
    }

    /// Whether it pauses after most notifications, and sooner than pauses of its own would come, or always as late: these begin
    /// anywhere between two notifications.
    fn pauses_by_notifications(&self) -> bool {
        // Mean and variance of what is spread evenly from 0 to 1.
        const EVEN: (f32, f32) = (0.5, 1.0 / 12.0);
        let mean = self.paused_at / self.pauses;
        let variance = self.paused_at_squares / self.pauses - mean * mean;
        let soon = mean < 0.5 * EVEN.0;
        self.pauses > 0.5 * self.gaps && (soon || variance < 0.5 * EVEN.1)
    }

    fn judge(&self) -> (Answer, Evidence) {
        use Answer::{DoesNotObey, Obeys, Unclear};
        if self.datagrams {
            return (Unclear, Evidence::Datagrams);
        }
        let is_coarse = self.packets / 4 > self.stamped;
        if self.measured() == 0 {
            let coarse = is_coarse.then_some(Evidence::Coarse);
            let has_heard = self.waiting.is_some() || self.bins.is_some();
            let late = (self.known_late || !has_heard).then_some(Evidence::KnownLate);
            return (Unclear, late.or(coarse).unwrap_or(Evidence::NoData));
        }
        if self.repeats > self.packets / 4 {
            return (Unclear, Evidence::Repeats);
        }
        // Half the time between notifications against the other half: where a change comes by chance, it is in either.
        for (after, other) in [
            (self.turned_early, self.turned_late),
            (self.turned_middle, self.turned_outside),
        ] {
            let (here, there) = (f64::from(after), f64::from(other));
            // A sender that changes it by a clock of its own does so twice between some notifications, or in step with them.
            let own_clock = self.turned_twice > after / 4 || 2.0 * there >= here;
            let chance = 3.0 * (here + there).sqrt().min(here - 0.5);
            if here >= 3.0 && here - there > chance && !own_clock {
                let after = u32::from(after);
                return (Obeys, Evidence::OtherPath { after });
            }
        }
        // Shape.
        let mut steady: Option<f64> = None;
        // What leaves it open, of which the first found says why.
        let mut open: Option<Evidence> = None;
        let mut most: Option<Shape> = None;
        let mut suspect: Option<(Shape, Doubt)> = None;
        let mut short: Option<Shape> = None;
        let mut too_late: Option<Shape> = None;
        let mut before_steady = false;
        let mut delayed = false;
        let falls_back = self.falls_back();
        let per_gap = f64::from(self.stamped) / f64::from(self.gaps.max(1.0));
        let in_bursts = self.typical as f64 > 2.0 * f64::from(self.usual) * per_gap;
        // Stamps before a bin, and less in all the time before it: packets may be too sparse for single bins.
        let (mut stamps, mut less_before) = (0.0, 0.0);
        for shape in self.shapes() {
            let (from, to) = bounds(shape.bin);
            let sure = shape.is_sure();
            let as_before = less_before < 0.1 * shape.less * from as f64;
            let unanswered = before_steady || sure && stamps >= 1.5 && as_before;
            let steady_before = stamps >= 3.0 && less_before <= 0.0;
            stamps += shape.stamps;
            less_before += shape.less * (to - from) as f64;
            // One that is shorter than the time from packet to packet says how far these are apart: where notifications
            // come in step with packets, as a receiver's do, that is no chance. So it is with bursts, and what is between them.
            let len = to.min(self.typical).saturating_sub(from);
            let is_short = (len as f32) < self.usual || in_bursts && (len as f32) < self.longest;
            // Too few packets to measure, and yet a hint: of packets in bursts these bins may hold all that is less.
            let few = in_bursts && (0.25..3.0).contains(&shape.stamps) && !is_short;
            if few && shape.less > 0.1 && shape.less > HINTED * shape.error {
                open = open.or(Some(self.doubted(&shape, Doubt::Sparse)));
            }
            if shape.stamps < 0.5 || is_short {
                // Packets further apart than at other times: nothing was sent, for whatever reason.
                if sure && is_short && from < LATEST {
                    short = short.or(Some(shape));
                } else if sure && from < LATEST && shape.less > MOST {
                    suspect = suspect.or(Some((shape, Doubt::Sparse)));
                }
                continue;
            }
            if unanswered && from >= LATEST {
                if sure {
                    too_late = Some(shape);
                }
                if !before_steady {
                    open = open.or(Some(Evidence::TooFew));
                }
                continue;
            }
            let apart = shape.less / shape.spread.max(1e-9);
            let seldom = shape.count <= 0.25 * f64::from(self.gaps);
            let late = before_steady && (apart <= 1.5 || seldom) || apart < 0.25;
            let is_plain = sure && !late && falls_back.is_none();
            let is_idle = shape.less_busy < 0.4 * shape.less;
            if is_plain && !is_idle {
                if most.is_none() {
                    delayed = steady_before && from >= SOON;
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
        // Quiet.
        let (quiet, notified) = (&self.quiet, &self.notified);
        let mut since_quiet = None;
        let mut while_notified = None;
        let mut faster = false;
        if quiet.count >= 1.0 && notified.count >= 2.0 {
            let less = quiet.mean() - notified.mean();
            let (a, b) = (quiet.variance(), notified.variance());
            let spread = a.max(b).sqrt();
            // One that sinks and recovers varies while notified, and need not without notifications. How much it varies
            // without them, a single stretch does not show.
            let usual = if quiet.count >= 4.0 && self.left_alone {
                a.sqrt()
            } else {
                spread
            };
            let error = spread * f64::from(1.0 / quiet.count + 1.0 / notified.count).sqrt();
            // What a reader would count, which batches that are far slower than others weigh less in.
            let counted = 1.0 - (notified.rate() - quiet.rate()).exp();
            let at_least = less.min(quiet.rate() - notified.rate()) - 2.0 * error;
            let at_least = 1.0 - (-at_least).exp();
            // It may have slowed down by itself before it was notified at all.
            let before = self.just_before.rate();
            let sank = before.is_none_or(|before| before - notified.mean() > 0.5 * less);
            // It may have gone on for long as if it had not been notified, and then slowed down by itself.
            let early = self.early.rate();
            let answered = early.is_none_or(|early| quiet.rate() - early > EARLY * less);
            // An opening burst is no rate.
            let lasted = self.left_alone || self.alone >= self.typical / 4;
            if too_late.is_none()
                && sank
                && answered
                && lasted
                && less.min(counted) > 0.1
                && less > 1.2 * usual
                && less > 4.0 * error
                && at_least > FINEST
            {
                let less = at_least as f32;
                return (Obeys, Evidence::SlowerThanQuiet { less });
            }
            faster = less < -0.1 && -less > 4.0 * error;
            let most = less.max(quiet.rate() - notified.rate());
            let bound = most + 2.0 * error;
            since_quiet = (bound < -(1.0 - MOST).ln()).then_some(bound);
            while_notified = (most > 0.08).then_some(Hint {
                less: most,
                error,
                within: None,
            });
        }
        let between = &self.between;
        // Slower after notifications, and yet faster than without them: that is no answer.
        if let Some(shape) = most {
            if self.is_in_step() {
                short = short.or(most);
            } else if !faster {
                // Twice the spread: with as much as the spread 17 % of those that swing were said to obey, with this 4 %.
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
        // Rates this far apart may be an answer later than the next notification.
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
            if bounds(shape.bin).0 < LATEST {
                return (Unclear, self.doubted(&shape, Doubt::FallsBack));
            }
            too_late = Some(shape);
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
            let late = too_late.map(|shape| self.doubted(&shape, Doubt::TooLate));
            return (Unclear, late.unwrap_or(why));
        }
        if is_coarse && per_gap < 16.0 {
            return (Unclear, Evidence::Coarse);
        }
        let between: f64 = self.shapes().map(|shape| shape.stamps).sum();
        let alone = since_quiet.is_some() && was_alone;
        if let Some(most) = steady
            && (alone || self.typical >= RECOVERS || between >= HELD && self.packets >= HELD_LEAST)
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
            let most = (1.0 - (-most).exp()).max(FINEST) as f32;
            return (DoesNotObey, Evidence::SteadySinceQuiet { most });
        }
        if self.measured < 8 {
            return (Unclear, Evidence::TooFew);
        }
        (Unclear, Evidence::NeverQuiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notifications_that_a_flow_has_not_heard_of_are_told_once_it_is_known() {
        let mut missed = Missed::default();
        let known = [true, false, false, true, true, false, true];
        let mut at = 0;
        let told = known.map(|known| {
            at += 1;
            missed.another(at, known)
        });
        assert_eq!(told, [None, None, None, Some(3), None, None, Some(6)]);
    }

    #[test]
    fn what_came_before_the_first_data_is_no_reason_to_begin_anew() {
        let measured = |missed: u64| {
            let mut flow = Obedience::new();
            for at in (1_000..100_000).step_by(100) {
                flow.data(at, 1_000, 0);
                if at % 10_000 == 0 {
                    flow.notified(at + 50);
                }
            }
            assert!(missed < 1_000 || flow.verdict().measured == 8);
            flow.missed(missed);
            let has_heard = flow.verdict().evidence != Evidence::KnownLate;
            assert_eq!(has_heard, missed < 1_000);
            flow.notified(100_050);
            (
                flow.verdict().measured,
                flow.verdict().evidence == Evidence::KnownLate,
            )
        };
        assert_eq!([measured(900), measured(1_100)], [(9, false), (0, true)]);
    }

    #[test]
    fn what_was_on_its_way_when_the_capture_began_is_no_data_of_that_time() {
        // A packet each 3 µs, 1 ms from one place to the other, both captured from one moment on.
        let [near, far] = [0, 1].map(Place::new);
        let evidence = |places: &[Place]| {
            let mut flow = Obedience::new();
            let mut repeated = 0;
            for n in 0..6_000_u32 {
                let at = u64::from(n) * 3_000;
                for place in places {
                    // Behind the first 333, those at the far place are copies.
                    let psn = if *place == near { n + 333 } else { n };
                    if *place == far && places.len() > 1 && n >= 333 {
                        continue;
                    }
                    match flow.sequenced(Sequence::Connection(psn), *place) {
                        Order::New => flow.data(at, 1_000, 0),
                        Order::Repeated => repeated += 1,
                        Order::Overtaken => {}
                    }
                }
                if n > 300 && n % 100 == 0 {
                    flow.notified(at + 10);
                }
            }
            assert_eq!(repeated, 0);
            flow.verdict().evidence
        };
        assert_eq!(evidence(&[near, far]), evidence(&[near]));
        let first = evidence(&[far, near]);
        assert!(matches!(first, Evidence::Steady { .. }), "{first:?}");
    }

    #[test]
    fn two_notifications_with_data_between_are_measured_though_none_is_behind() {
        let mut flow = Obedience::new();
        for at in [100, 200, 300, 400] {
            flow.data(at, 1_000, 0);
            if at == 100 {
                flow.notified(150);
            }
        }
        assert_eq!(flow.verdict().measured, 0);
        flow.notified(450);
        assert_eq!(flow.verdict().measured, 1);
        assert_eq!(flow.verdict().evidence, Evidence::TooFew);
        // A single packet in between.
        let mut flow = Obedience::new();
        let mut measured = Vec::new();
        for at in [100, 200, 300, 400] {
            flow.data(at, 1_000, 0);
            flow.notified(at + 50);
            measured.push(flow.verdict().measured);
        }
        assert_eq!(measured, [0, 1, 2, 3]);
    }

    #[test]
    fn evidence_is_a_sentence() {
        let less = |at_least, window, than| {
            let less = Less {
                at_least,
                window,
                than,
                pauses: than == Some(window),
            };
            Evidence::Slower(less).to_string()
        };
        let (early, middle, late) = (Window::new(0), Window::new(3), Window::new(BINS));
        for (evidence, text) in [
            (
                less(0.415, middle, None),
                "at least 42 % less data 16 µs to 66 µs after notifications than around that",
            ),
            (
                less(0.031, early, Some(late)),
                "at least 3.1 % less data within 1 µs after notifications than from 268 ms on",
            ),
            (
                less(0.5, late, Some(middle)),
                "at least 50 % less data from 268 ms on after notifications than 16 µs to 66 µs after",
            ),
            (
                less(0.5, late, Some(late)),
                "at least 50 % less data from 268 ms on after notifications than from 268 ms on, leaving out pauses",
            ),
            (
                less(0.5, middle, Some(early)),
                "at least 50 % less data 16 µs to 66 µs after notifications than within 1 µs",
            ),
        ] {
            assert_eq!(evidence, text);
        }
    }

    #[test]
    fn stamps_that_go_back_bear_no_verdict() {
        let verdict = |back: u64| {
            let mut flow = Obedience::new();
            for n in 0..2_000 {
                let at = 1_000_000_000 + n * 10_000;
                flow.data(at - back * u64::from(n >= 1_000), 1_000, 1);
                if n % 50 == 0 {
                    flow.notified(at + 1_000);
                }
            }
            let verdict = flow.verdict();
            (verdict.answer, verdict.evidence)
        };
        assert_eq!(verdict(0).0, Answer::DoesNotObey);
        let out_of_order = (Answer::Unclear, Evidence::OutOfOrder);
        assert_eq!(verdict(5_000_000), out_of_order);
        // A few packets are seen out of order on many a line.
        assert_eq!(verdict(50_000).0, Answer::DoesNotObey);
    }

    #[test]
    fn bins_follow_one_another() {
        for number in 0..BINS {
            let (from, to) = bounds(number);
            assert_eq!((bin(from), bin(to - 1)), (number, number));
            if number + 1 < BINS {
                assert_eq!(bounds(number + 1).0, to);
            }
        }
    }

    /// One that stops altogether answers, or has nothing more to send: by no means does it not obey.
    #[test]
    fn who_stops_after_every_notification_is_not_said_to_disobey() {
        const MS: u64 = 1_000_000;
        for (gap, stop) in [
            (100_u64, 1),
            (100, 2),
            (100, 5),
            (100, 20),
            (100, 30),
            (10, 2),
            (1_000, 20),
        ] {
            for behind in [0, 30] {
                let mut judged = Obedience::new();
                let mut rests = 0;
                for at in (0..3_000 * MS).step_by(gap as usize * 1_000) {
                    if at >= rests {
                        judged.data(at, 1_000, 0);
                        if at >= 50 * MS && at % (50 * MS) < gap * 1_000 {
                            judged.notified(at + behind * gap * 10);
                            rests = at + stop * MS;
                        }
                    }
                }
                let verdict = judged.verdict();
                let case = format!("{gap} µs, {stop} ms: {}", verdict.evidence);
                assert_ne!(verdict.answer, Answer::DoesNotObey, "{case}");
            }
        }
    }

    /// Paced data, a packet each `gap` nanoseconds up to `end`, at the times for which `sends` holds; notified each `every`.
    fn paced(
        (gap, end, every): (u64, u64, u64),
        first: u64,
        mut sends: impl FnMut(u64, u64) -> Option<u32>,
    ) -> Verdict {
        let mut judged = Obedience::new();
        let mut next = first;
        let mut last = None;
        for at in (0..end).step_by(gap as usize) {
            if at >= next {
                judged.notified(next);
                last = Some(next);
                next += every;
            }
            let since = last.map_or(u64::MAX, |last| at - last);
            if let Some(entropy) = sends(at, since) {
                judged.data(at, 1_000, entropy);
            }
        }
        judged.verdict()
    }

    #[test]
    fn who_stops_late_after_every_notification_is_not_said_to_disobey() {
        for (every, gap) in [(40_000_u64, 600), (1_000_000, 10_000), (10_000_000, 40_000)] {
            for percent in [25, 40, 50] {
                let stops = every * percent / 100..every * (percent + 40) / 100;
                let verdict = paced((gap, 100 * every, every), 5 * every, |_, since| {
                    (!stops.contains(&since)).then_some(0)
                });
                let case = format!("{every} ns, {percent} %: {}", verdict.evidence);
                assert_ne!(verdict.answer, Answer::DoesNotObey, "{case}");
            }
        }
    }

    #[test]
    fn a_fall_after_many_unanswered_notifications_is_no_answer() {
        const US: u64 = 1_000;
        // 100 packets between notifications; after so many of them it falls to 40 % for good.
        for (unanswered, answers) in [(0, true), (12, false), (22, false)] {
            let falls = 5_000 * US + unanswered * 500 * US;
            let mut due = 0;
            let verdict = paced((5 * US, 23_000 * US, 500 * US), 5_000 * US, |at, _| {
                due += if at < falls { 10 } else { 4 };
                (due >= 10).then(|| due -= 10).map(|()| 0)
            });
            let case = format!("{unanswered}: {verdict:?}");
            assert_eq!(verdict.answer == Answer::Obeys, answers, "{case}");
        }
    }

    #[test]
    fn another_path_long_after_notifications_is_no_answer() {
        const MS: u64 = 1_000_000;
        for (after, gap, answers) in [
            (2 * MS, 4 * MS, true),
            (10 * MS, 4 * MS, true),
            (80 * MS, 4 * MS, false),
            // The next packet but one.
            (80 * MS, 50 * MS, true),
        ] {
            let mut path = 0;
            let mut turned = false;
            let verdict = paced((gap, 20_000 * MS, 400 * MS), 500 * MS, |_, since| {
                if since < gap {
                    turned = false;
                }
                if since != u64::MAX && since >= after && !turned {
                    (path, turned) = (path + 1, true);
                }
                Some(path)
            });
            let case = format!("{after} ns, a packet each {gap} ns: {verdict:?}");
            assert_eq!(verdict.answer == Answer::Obeys, answers, "{case}");
        }
    }

    #[test]
    fn packets_that_come_twice_and_datagrams_bear_no_verdict() {
        let evidence = |sequence: fn(u32) -> Sequence| {
            let mut judged = Obedience::new();
            for n in 0..2_000 {
                judged.sequenced(sequence(n), Place::default());
                judged.data(u64::from(n) * 1_000, 1_000, 0);
                if n % 100 == 50 {
                    judged.notified(u64::from(n) * 1_000 + 1);
                }
            }
            judged.verdict().evidence
        };
        let once = evidence(Sequence::Connection);
        assert!(matches!(once, Evidence::Steady { .. }), "{once:?}");
        let twice = evidence(|n| Sequence::Connection(n / 2));
        assert_eq!(twice, Evidence::Repeats);
        assert_eq!(evidence(|_| Sequence::Datagram), Evidence::Datagrams);
    }

    #[test]
    fn marks_behind_the_last_notification_show_no_queue_before_it() {
        let evidence = |marked: core::ops::Range<u64>| {
            let mut judged = Obedience::new();
            for n in 0..4_000_u64 {
                judged.data(n * 1_000, 1_000, 0);
                if marked.contains(&n) {
                    judged.marked();
                }
                if n < 2_000 && n % 20 == 10 {
                    judged.notified(n * 1_000 + 1);
                }
            }
            judged.verdict().evidence
        };
        assert_eq!(evidence(0..4_000), Evidence::BehindQueue);
        let since = evidence(2_000..4_000);
        assert!(matches!(since, Evidence::Steady { .. }), "{since:?}");
    }

    /// One that knows nothing of notifications, and was never seen without: with few packets it may be held down.
    #[test]
    fn few_packets_of_one_that_was_never_left_alone_bear_no_verdict() {
        let answer = |packets: u64| {
            let mut judged = Obedience::new();
            for n in 0..packets {
                judged.data(n * 1_000, 1_000, 0);
                if n % 20 == 2 {
                    judged.notified(n * 1_000 + 1);
                }
            }
            judged.verdict().answer
        };
        let least = u64::from(HELD_LEAST);
        assert_eq!(answer(least - 10), Answer::Unclear);
        assert_eq!(answer(least + 10), Answer::DoesNotObey);
    }

    #[test]
    fn a_flow_takes_little() {
        let all = size_of::<Obedience>() + size_of::<[Bin; BINS]>();
        assert!(size_of::<Obedience>() <= 320, "{}", size_of::<Obedience>());
        assert!(all <= 896, "{all}");
    }

    proptest! {
        /// Whatever comes in whatever order: no panic, and parts that are parts.
        #[test]
        fn anything_is_survived(
            acts in proptest::collection::vec((any::<u64>(), 0..64_u32, proptest::option::weighted(0.7, any::<u64>())), 1..400),
            forward in any::<bool>(),
        ) {
            let mut judged = Obedience::new();
            let mut at: u64 = 0;
            for (time, shift, data) in acts {
                at = if forward { at.saturating_add(time >> shift) } else { time >> shift };
                match data {
                    Some(octets) => judged.data(at, octets, (octets % 3) as u32),
                    None => judged.notified(at),
                }
                let verdict = judged.verdict();
                prop_assert!(!verdict.evidence.to_string().is_empty());
                if verdict.measured == 0 {
                    prop_assert_eq!(verdict.answer, Answer::Unclear);
                }
            }
        }
    }
}
