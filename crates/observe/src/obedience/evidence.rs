//! The answers, what they rest on, and how that is said.

use core::fmt;
use derive_more::Display;
use fcn_wire::identified;

identified! {
    /// Whether the sender of a flow does what notifications ask.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    Answer {
        /// It sends more slowly after notifications than its own past predicts, by more than chance explains, or takes another
        /// path.
        Obeys = "obeys",
        /// A fifth less after notifications can be excluded, nothing hints at less, and its rate is steady: it was seen before
        /// the queue that marks it.
        DoesNotObey = "does_not_obey",
        /// Neither can be told.
        #[default]
        Unclear = "unclear",
    }
}

/// Units of a window after notifications.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Unit {
    /// Data packets.
    #[display("packets")]
    Packets,
    /// Bursts of packets sent back to back; single packets where there are none.
    #[display("bursts")]
    Bursts,
}

/// A slower pace after notifications. Parts are of the rate, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    /// Less data at least: two standard errors from the mean over notifications.
    pub at_least: f32,
    /// Less data on average.
    pub less: f32,
    /// Standard errors that the average is away from none.
    pub errors: f32,
    /// Length of the window after a notification.
    pub window: u8,
    /// What it is counted in.
    pub unit: Unit,
}

/// What an answer rests on. Parts are of the rate, 0 to 1.
#[derive(Clone, Copy, Debug, Display, PartialEq, Default)]
pub enum Evidence {
    /// Slower after notifications than the past predicts.
    #[display("{_0} ({:.1} standard errors)", _0.errors)]
    Slower(Slower),
    /// Slower while notified than before the first notification.
    #[display("{} less data while it was notified than before the first notification, and less after notifications than later", Percent(*less))]
    SlowerThanBefore {
        /// By how much.
        less: f32,
    },
    /// The entropy changed soon after so many notifications.
    #[display("took another path after {}{after} notifications", at_least(*after))]
    OtherPath {
        /// How many.
        after: u32,
    },
    /// As fast after notifications as at other times, and steady.
    #[display("as much data after notifications as at other times, at a steady rate; more than {} less can be excluded", Percent(*most))]
    Steady {
        /// What can be excluded: more than this much less.
        most: f32,
    },
    /// No data lies between one notification and the next.
    #[default]
    #[display(
        "by their time stamps, no notification has data of the flow between it and the next one"
    )]
    NoData,
    /// The flow was known too late to be the one that notifications are about.
    #[display("its flow was known only after the notifications")]
    KnownLate,
    /// Too few notifications or packets.
    #[display("too few notifications or data packets")]
    TooFew,
    /// The answer was another one a few notifications ago.
    #[display("what its last notifications show is too recent to hold")]
    Recent,
    /// Only samples of its packets were seen.
    #[display("only samples were seen, which do not tell when data follows notifications")]
    Sampled,
    /// Several QPs may send datagrams to one.
    #[display("datagrams, which several QPs may send to this one")]
    Datagrams,
    /// It was notified all the time: it may have been held at a lower rate.
    #[display("notified so often that it may have been held at one reduced rate all the time")]
    Held,
    /// Chance explains a fifth less data.
    #[display("its rate varies from notification to notification: chance alone explains {} less", Percent(*chance))]
    Varies {
        /// What chance explains.
        chance: f32,
    },
    /// Slower after notifications, but no more than chance may explain.
    #[display("{_0}, but that may be chance ({:.1} standard errors)", _0.errors)]
    Hint(Slower),
    /// Slower while notified than before, but at no time after notifications in particular.
    #[display("less data while it was notified than before, but no more so after notifications")]
    SlowedDown,
    /// The rate varies by itself at the time scale of notifications.
    #[display("its rate swings by {} whenever it is notified, which may be late answers", Percent(*swing))]
    Unsteady {
        /// Standard deviation.
        swing: f32,
    },
    /// It paused after notifications.
    #[display("it pauses after notifications, which may be the end of what there was to send")]
    Pauses,
    /// The entropy changed, but not plainly in answer to notifications.
    #[display("it took another path, but not plainly in answer to notifications")]
    MayTurn,
    /// Time stamps are too coarse to tell packets apart.
    #[display("time stamps are too coarse to tell its packets apart")]
    Coarse,
    /// It was seen at several places, and the time stamps of one of them are too coarse beside those of another.
    #[display("packets were seen at several places, and time stamps at one of them are of {}", Span(*unit))]
    CoarseAt {
        /// What the coarsest are multiples of, in nanoseconds.
        unit: u64,
    },
    /// It was seen at several places, whose clocks are apart.
    #[display("seen at several places, whose clocks are apart, or which are far from each other")]
    ClocksApart,
    /// Time stamps of its data go back.
    #[display("time stamps of its data go back, and do not tell when it came")]
    OutOfOrder,
    /// As fast after notifications, but seen after a queue that marks it.
    #[display(
        "as much data as at other times, but marked CE before it came here: after a queue it does not show what the sender does"
    )]
    BehindQueue,
}

impl Evidence {
    /// How the rate changed at least, where that is an answer: −0.5 is half.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        match *self {
            Self::Slower(Slower { at_least: less, .. }) | Self::SlowerThanBefore { less } => {
                Some(-f64::from(less))
            }
            _ => None,
        }
    }
}

/// What would help to tell whether a flow obeys.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Advice {
    /// So many more notifications, if the flow goes on as it does.
    #[display("about {_0} more notifications")]
    Notifications(u32),
    /// A capture before the queue.
    #[display("a capture at the sender's side")]
    AtSender,
    /// A capture that shows the flow without notifications.
    #[display("a capture that begins before the first notification")]
    FromBefore,
    /// Time stamps of a finer clock.
    #[display("finer time stamps")]
    FinerStamps,
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

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at least {} less data in the {} {} after a notification than its own past predicts",
            Percent(self.at_least),
            self.window,
            self.unit
        )
    }
}

/// Counts so large have been halved.
fn at_least(after: u32) -> &'static str {
    match after > u32::from(u16::MAX) / 2 {
        true => "at least ",
        false => "",
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
    /// What would help, where the answer is unclear.
    pub advice: Option<Advice>,
}
