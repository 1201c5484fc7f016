//! The answers, their evidence, and its description.

use super::{BINS, bounds};
use core::fmt;
use derive_more::Display;
use fcn_wire::identified;

identified! {
    /// Answer to whether the sender of a flow does what notifications ask.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    Answer {
        /// It sends less after notifications than the same flow does at other times, or takes
        /// another path, by more than chance explains. One or a few percent suffice if they recur
        /// after many notifications.
        Obeys = "obeys",
        /// A reduction by a fifth after notifications can be excluded at every measured time scale,
        /// and for all notifications pooled, against all later times; nothing hints at less data;
        /// and the flow was captured before the queue that marks it.
        DoesNotObey = "does_not_obey",
        /// Neither can be determined.
        #[default]
        Unclear = "unclear",
    }
}

/// Less data in a window after notifications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Less {
    /// Minimum reduction, as a part of the rate that it is compared with, 0 to 1: two standard
    /// errors from the means over notifications. Data is spread evenly from packet to packet, so
    /// the actual reduction is larger if few packets lie in a window.
    pub at_least: f32,
    /// The window since the notification.
    pub window: Window,
    /// The window with most data, if that is surely more than around; otherwise the comparison is
    /// with the data around `window`.
    pub than: Option<Window>,
    /// True if it pauses now and then, which counts on neither side.
    pub pauses: bool,
}

/// Part of the time since a notification, by bin number; 0 is the microsecond after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(u8);

impl Window {
    /// Returns the bin of that number, or the last one if the number is too large.
    #[must_use]
    pub const fn new(bin: usize) -> Self {
        Self(if bin < BINS { bin } else { BINS - 1 } as u8)
    }
}

/// Evidence for an answer. Parts are of the rate, 0 to 1.
#[derive(Clone, Copy, Debug, Display, PartialEq, Default)]
pub enum Evidence {
    /// Less data after notifications than at other times.
    Slower(Less),
    /// Less data while it was notified than without notifications.
    #[display("at least {} less data while notified than without notifications, before the first one or long after one", Percent(*less))]
    SlowerThanQuiet {
        /// Minimum reduction: two standard errors from the mean.
        less: f32,
    },
    /// The entropy changed soon after notifications.
    #[display("took another path after {}{after} notifications", at_least(*after))]
    OtherPath {
        /// Number of these notifications.
        after: u32,
    },
    /// No less data after notifications than around them.
    #[display("as much data after notifications as around them; a drop of more than {} can be excluded{}", Percent(*most), unless_held(*alone))]
    Steady {
        /// Largest reduction that cannot be excluded.
        most: f32,
        /// True if it was as fast without notifications; otherwise a flow that is held at a reduced
        /// rate, and does not recover before the next notification, looks the same.
        alone: bool,
    },
    /// No less data while it was notified than without notifications.
    #[display("as much data while notified as without notifications; a drop of more than {} can be excluded", Percent(*most))]
    SteadySinceQuiet {
        /// Largest reduction that cannot be excluded.
        most: f32,
    },
    /// No data lies between one notification and the next.
    #[default]
    #[display("by time stamps, no data of the flow falls between a notification and the next")]
    NoData,
    /// The flow of the notifications was identified too late.
    #[display("the flow of the notifications was identified only after them")]
    KnownLate,
    /// Too few notifications or packets.
    #[display("too few notifications or data packets")]
    TooFew,
    /// Only samples of its packets were captured.
    #[display("only samples were captured, which do not show when data follows notifications")]
    Sampled,
    /// Several QPs may send datagrams to one.
    #[display("datagrams: several QPs may send to this one")]
    Datagrams,
    /// It was notified all the time: it may have been held at a lower rate.
    #[display("too little data between notifications, or too late after them, to show a response")]
    NeverQuiet,
    /// Less data after notifications, but no more than chance explains.
    #[display("{} less data after notifications, but chance explains {}", Percent(*less), Percent(*chance))]
    Varies {
        /// The reduction.
        less: f32,
        /// Reduction that chance explains.
        chance: f32,
    },
    /// Less data after notifications, or while notified, which need not be a response.
    #[display("{} less data {}, which may not be a response", Percent(*less), fewer(*within))]
    Fewer {
        /// The reduction.
        less: f32,
        /// The time since notifications in which there was less data; `None` for all the time while
        /// notified.
        within: Option<Window>,
    },
    /// The rate varies too much around notifications.
    #[display("its rate varies too much around notifications")]
    Unsteady,
    /// The entropy changed, but not clearly in response to notifications.
    #[display("it took another path, but not clearly in response to notifications")]
    MayTurn,
    /// Time stamps are too coarse for the time between notifications.
    #[display("time stamps are too coarse for the interval between notifications")]
    Coarse,
    /// Packets have several capture points, and the time stamps of one are too coarse compared with
    /// those of another.
    #[display("packets were captured at several points, and time stamps of one have a resolution of {}", Span(*unit))]
    CoarseAt {
        /// Unit of the coarsest time stamps, in nanoseconds.
        unit: u64,
    },
    /// Packets have several capture points, whose clocks differ.
    #[display("captured at several points, whose clocks differ or which are far apart")]
    ClocksApart,
    /// Retransmissions among copies: the retransmissions of the sender are unknown.
    #[display(
        "its data was captured more than once and partly retransmitted: copies and retransmissions cannot be distinguished"
    )]
    ResentCopies,
    /// Time stamps of its data go back.
    #[display("time stamps of its data go backwards and do not show when it arrived")]
    OutOfOrder,
    /// It paused after notifications, which may be due to a lack of data to send.
    #[display("pauses after notifications, perhaps because there was no more data to send")]
    Pauses,
    /// No less data after notifications, or while notified, but captured after a queue that marks
    /// it.
    #[display(
        "as much data as at other times, but marked CE before the capture point: after a queue, data does not show what the sender does"
    )]
    BehindQueue,
    /// Slower after notifications than the flow's own past predicts.
    #[display("{_0} ({:.1} σ)", _0.errors)]
    SlowerThanPredicted(Slower),
    /// The same with less certainty, but there is less data by time, too.
    #[display("{_0} ({:.1} σ), and less by time as well", _0.errors)]
    SlowerByBoth(Slower),
    /// Slower while notified than before the first notification.
    #[display("{} less data while notified than before the first notification, and less after notifications than later", Percent(*less))]
    SlowerThanBefore {
        /// The reduction.
        less: f32,
    },
    /// No slower after notifications than at other times, and steady.
    #[display("as much data after notifications as at other times, at a steady rate; a drop of more than {} can be excluded{}", Percent(*most), unless_held(*alone))]
    SteadyPace {
        /// Largest reduction that cannot be excluded.
        most: f32,
        /// True if it was as fast before the first notification.
        alone: bool,
    },
    /// Slower after notifications, but chance may explain it, or it is too little.
    #[display("{_0}, but that {} ({:.1} σ)", no_answer(*_0), _0.errors)]
    Hint(Slower),
    /// Slower after notifications, but captured after the queue, where other traffic may be the
    /// cause.
    #[display("{_0} ({:.1} σ), but captured after the queue that marks it: other traffic may take that much of the link", _0.errors)]
    AfterQueue(Slower),
    /// Slower after notifications, but the data responds to RDMA READs, which come more slowly while
    /// the queue is long.
    #[display("{_0} ({:.1} σ), but these are READ responses, which are requested more slowly while the queue is long", _0.errors)]
    ReadResponses(Slower),
    /// Slower after notifications, but a fixed number of packets outstanding limits it, so that it
    /// slows down whenever the queue on its path is long.
    #[display(
        "less data after notifications, but always {packets} packets outstanding, so that any longer queue slows it down"
    )]
    FullWindow {
        /// Number of packets outstanding just before most acknowledgements.
        packets: u32,
    },
    /// Slower while notified than before, but not particularly after notifications.
    #[display("less data while notified than before, but not specifically after notifications")]
    SlowedDown,
    /// The rate varies by itself at the time scale of notifications.
    #[display("its rate swings by {} whenever it is notified; these may be late responses", Percent(*swing))]
    Swings {
        /// Standard deviation.
        swing: f32,
    },
    /// Chance explains a reduction by a fifth.
    #[display("its rate varies from notification to notification: chance alone explains a drop of {}", Percent(*chance))]
    Chance {
        /// Reduction that chance explains.
        chance: f32,
    },
    /// The answer was another one a few notifications ago.
    #[display("too recent: the result was different a few notifications ago")]
    Recent,
    /// Less data after notifications by time, but as much by gaps.
    #[display(
        "less data after notifications by time, but the gaps between its packets are not longer"
    )]
    Contradictory,
    /// Less data after notifications, which is no answer for that reason.
    #[display("{_0}, {_1}")]
    Doubtful(Less, Doubt),
}

/// Reason why less data after notifications is no answer, or no clear one.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Doubt {
    /// There was more data before: the rate falls back from a rise.
    #[display("but more before that: a fall after a rise is not a response")]
    FallsBack,
    /// It comes some time after the notification, and the rate is not steady without notifications.
    #[display("but its rate is not steady without them: it may swing by itself")]
    MaySwing,
    /// It is shorter than the gap between packets, or between bursts.
    #[display("which is shorter than the gap between packets or bursts: too few to tell")]
    Short,
    /// It is too small to be distinguished from the effect of a full queue on any sender.
    #[display("too little for a response")]
    TooLittle,
    /// The window contains hardly any packets.
    #[display("with hardly any packets there: too few to tell")]
    Sparse,
    /// It follows a time with as much data as before, or is small compared with the spread of
    /// single notifications.
    #[display("but not at once or not after most of them: not a clear response")]
    NotPlain,
    /// It consists mostly of outlying gaps.
    #[display("mostly in gaps, when there may have been nothing to send")]
    Idle,
    /// The flow was even slower without notifications.
    #[display("but even less without notifications")]
    SlowerWithout,
}

impl Evidence {
    /// Returns the change of the rate at least, if the evidence is for an answer: −0.5 is half.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        match *self {
            Self::Slower(Less { at_least: less, .. })
            | Self::SlowerThanPredicted(Slower { at_least: less, .. })
            | Self::SlowerByBoth(Slower { at_least: less, .. })
            | Self::SlowerThanBefore { less }
            | Self::SlowerThanQuiet { less } => Some(-f64::from(less)),
            _ => None,
        }
    }
}

impl Evidence {
    /// Returns true if it hints at a response to notifications, so that a flow must not be reported
    /// not to obey.
    ///
    /// Of flows that one of the two methods reported not to obey while the other was unclear for
    /// this reason, a third or more do obey.
    pub(super) const fn hints(&self) -> bool {
        matches!(
            self,
            Self::Hint(_)
                | Self::AfterQueue(_)
                | Self::ReadResponses(_)
                | Self::SlowedDown
                | Self::Varies { .. }
                | Self::Fewer { .. }
                | Self::MayTurn
                | Self::Doubtful(
                    _,
                    Doubt::Idle | Doubt::TooLittle | Doubt::FallsBack | Doubt::Short
                )
        )
    }

    /// Returns true if there seems to be less data after notifications by time, but not surely:
    /// together with a hint by gaps that is an answer. Of 1,262 senders that never slow down, three
    /// were reported to obey by that.
    pub(super) fn hints_at_less(&self) -> bool {
        match self {
            Self::Varies { less, .. } => *less > 0.0,
            Self::Unsteady | Self::Doubtful(_, Doubt::Idle | Doubt::TooLittle) => true,
            _ => false,
        }
    }

    /// Returns true if it compares with the time without notifications.
    pub(super) const fn is_since_quiet(&self) -> bool {
        matches!(self, Self::SlowerThanQuiet { .. })
    }

    /// Returns true if a flow with this evidence by gaps may be reported not to obey by the
    /// evidence by time. A swinging rate may hide a late response, unless the flow is as fast
    /// without notifications.
    pub(super) const fn allows(&self, time: &Self) -> bool {
        match self {
            Self::Swings { .. } => !matches!(time, Self::Steady { alone: false, .. }),
            _ => !self.hints(),
        }
    }
}

/// Units of a window after notifications.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Unit {
    /// Data packets.
    #[display("packets")]
    Packets,
    /// Bursts of at least four packets sent back to back.
    #[display("bursts")]
    Bursts,
}

/// A slower pace after notifications. Parts are of the rate, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    /// Minimum reduction: two standard errors from the mean over notifications.
    pub at_least: f32,
    /// Distance of the mean from zero, in standard errors.
    pub errors: f32,
    /// Length of the window after a notification.
    pub window: u8,
    /// Unit of the window.
    pub unit: Unit,
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let less = Percent(self.at_least);
        write!(f, "at least {less} less data in the first ")?;
        match (self.window, self.unit) {
            (1, Unit::Packets) => write!(f, "packet"),
            (1, Unit::Bursts) => write!(f, "burst"),
            (window, unit) => write!(f, "{window} {unit}"),
        }?;
        write!(f, " after notifications")
    }
}

/// Advice on finding out whether a flow obeys.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Advice {
    /// About this many more notifications, if the flow continues as it does.
    #[display("about {_0} more notifications")]
    Notifications(u32),
    /// A capture before the queue.
    #[display("a capture at the sender")]
    AtSender,
    /// A capture that shows the flow without notifications.
    #[display("a capture that starts before the first notification")]
    FromBefore,
    /// Time stamps of a finer clock.
    #[display("finer time stamps")]
    FinerStamps,
}

/// Duration, formatted with up to three digits.
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
            None => write!(f, "around that window"),
        }?;
        f.write_str(if self.pauses {
            ", leaving out pauses"
        } else {
            ""
        })
    }
}

fn no_answer(slower: Slower) -> &'static str {
    match slower.errors > 4.0 {
        true => "is too little for a response",
        false => "may be chance",
    }
}

/// Counts this large have been halved.
fn at_least(after: u32) -> &'static str {
    match after > u32::from(u16::MAX) / 2 {
        true => "at least ",
        false => "",
    }
}

fn unless_held(alone: bool) -> &'static str {
    match alone {
        true => "",
        false => ", unless it was held at one reduced rate all the time",
    }
}

fn fewer(within: Option<Window>) -> String {
    match within.map(|Window(last)| bounds(last.into())) {
        Some((_, to)) => format!("within {} of notifications than later", Span(to)),
        None => "while notified than without notifications".to_owned(),
    }
}

/// Answer to whether a flow obeys, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// Number of notifications measured, of any kind about the flow: those with data between them
    /// and the next one.
    pub measured: u32,
    /// Evidence for the answer.
    pub evidence: Evidence,
    /// Advice, if the answer is unclear.
    pub advice: Option<Advice>,
}
