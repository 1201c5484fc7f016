//! Times and limits of sending: converts options to the settings of each queue's sender.

use crate::cli::Run;
use fcn_link::pacing::{Rate, burst_for};
use fcn_link::sender::{BURST, Pace, Settings};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::counted;
use std::time::Duration;

/// Schedule of the frames of all queues together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// As fast as the link accepts them.
    Top,
    /// At a rate.
    Rate(Rate),
    /// At the simulation's own times, this many times as fast.
    Own(f64),
}

impl Schedule {
    /// Returns the schedule selected by `options`. `speed` is the link's in Mbit/s, if known;
    /// `default` applies without an option.
    ///
    /// # Errors
    /// The link's speed is requested but unknown.
    pub fn from_options(options: &Run, speed: Option<u32>, default: Self) -> Result<Self> {
        if let Some(rate) = options.rate {
            return Ok(Self::Rate(rate));
        }
        if options.line_rate {
            let speed = speed.filter(|speed| *speed > 0).ok_or_else(|| {
                Failure::usage("--line-rate")
                    .and("the interface's link speed is unknown")
                    .and("set a rate: --rate 10Gbps-l1")
            })?;
            return Ok(Self::Rate(Rate::L1Bits(u64::from(speed) * 1_000_000)));
        }
        Ok(match options.speed {
            Some(factor) => Self::Own(factor),
            None if options.top => Self::Top,
            None if options.realtime => Self::Own(1.0),
            None => default,
        })
    }

    /// Describes the schedule.
    pub fn describe(&self, options: &Run) -> String {
        match self {
            Self::Top if options.link.output.is_some() => "all at once".to_owned(),
            Self::Top => "as fast as the link accepts it".to_owned(),
            Self::Rate(rate) if options.line_rate => format!("{rate}: the link's speed"),
            Self::Rate(rate) => rate.to_string(),
            #[expect(clippy::float_cmp, reason = "exactly what was asked for")]
            Self::Own(factor) if *factor == 1.0 => "in real time".to_owned(),
            Self::Own(factor) => format!("{factor} times real time"),
        }
    }

    /// Returns the settings of each of `queues` queues, for frames of `len` octets on average; in a
    /// file the run begins at `epoch`.
    ///
    /// # Errors
    /// The rate is too low to be shared, or an option has no effect.
    pub fn settings(
        &self,
        options: &Run,
        (queues, len, epoch): (u32, usize, u64),
    ) -> Result<Vec<Settings>> {
        if *self == Self::Top {
            check_top(options)?;
        }
        if let Self::Rate(rate) = self
            && rate.value() < u64::from(queues)
        {
            return Err(
                Failure::usage("--rate").and(format!("{rate} cannot be shared by {queues} queues"))
            );
        }
        let one = |queue: u32| {
            let pace = match *self {
                Self::Top => Pace::Top,
                Self::Own(_) => Pace::Own,
                Self::Rate(rate) => Pace::Rate(shared(rate, queue, queues)),
            };
            let burst = match (options.manner.burst, pace) {
                (Some(burst), _) => usize::from(burst),
                (None, Pace::Rate(rate)) => burst_for(rate, len),
                (None, Pace::Top | Pace::Own) => BURST,
            };
            let offset = match *self {
                // Queues take turns.
                Self::Rate(rate) => {
                    Duration::from_nanos(rate.gap(len).saturating_mul(queue.into()))
                }
                Self::Top | Self::Own(_) => Duration::ZERO,
            };
            Settings {
                pace,
                burst,
                catch_up: options.manner.catch_up(),
                waiting: options.manner.waiting(),
                count: options.count.map(|count| part(count, queue, queues)),
                duration: options.duration,
                offset,
                epoch,
            }
        };
        Ok((0..queues).map(one).collect())
    }
}

/// Refuses options that require due times of frames.
fn check_top(options: &Run) -> Result {
    let (link, manner) = (&options.link, &options.manner);
    let given = [
        ("--spin", manner.spin),
        ("--catch-up", manner.catch_up.is_some()),
        ("--live", link.live),
        (
            "--duration",
            link.output.is_some() && options.duration.is_some(),
        ),
    ];
    let why = "at top speed frames have no due times";
    refuse_given(&given, why, "omit it, or set a rate with --rate")
}

/// Refuses the first given option, with the reason and the alternative.
pub fn refuse_given(options: &[(&str, bool)], why: &str, instead: &str) -> Result {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(*option).and(why).and(instead)),
        None => Ok(()),
    }
}

fn shared(rate: Rate, queue: u32, queues: u32) -> Rate {
    match rate {
        Rate::Packets(n) => Rate::Packets(part(n, queue, queues)),
        Rate::L2Bits(n) => Rate::L2Bits(part(n, queue, queues)),
        Rate::L1Bits(n) => Rate::L1Bits(part(n, queue, queues)),
    }
}

/// Returns the part of `whole` assigned to `queue`; the parts of all queues add up to it.
fn part(whole: u64, queue: u32, queues: u32) -> u64 {
    let queues = u64::from(queues.max(1));
    whole / queues + u64::from(u64::from(queue) < whole % queues)
}

/// Describes the end of a run; `end` is its own end, if it has one.
pub fn until(options: &Run, end: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(end.map(str::to_owned));
    parts.extend(options.count.map(|count| counted(count, "packet")));
    parts.extend(options.duration.map(|duration| format!("{duration:?}")));
    if parts.is_empty() {
        "Ctrl-C".to_owned()
    } else {
        parts.join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn options(words: &str) -> Run {
        let words = format!("fcn-gen run x --iface i {words}");
        match Cli::try_parse_from(words.split_whitespace())
            .unwrap()
            .command
        {
            Command::Run(run) => *run,
            _ => panic!("not run"),
        }
    }

    #[test]
    fn pace_follows_the_options() {
        let schedule =
            |words: &str, speed| Schedule::from_options(&options(words), speed, Schedule::Top);
        assert_eq!(schedule("", None), Ok(Schedule::Top));
        assert_eq!(schedule("--realtime", None), Ok(Schedule::Own(1.0)));
        assert_eq!(schedule("--speed 0.5", None), Ok(Schedule::Own(0.5)));
        assert_eq!(
            schedule("--rate 5kpps", None),
            Ok(Schedule::Rate(Rate::Packets(5_000)))
        );
        let line = Rate::L1Bits(25_000_000_000);
        assert_eq!(
            schedule("--line-rate", Some(25_000)),
            Ok(Schedule::Rate(line))
        );
        assert!(schedule("--line-rate", None).is_err());
        let own = Schedule::from_options(&options("--top"), None, Schedule::Own(1.0));
        assert_eq!(own, Ok(Schedule::Top));
    }

    #[test]
    fn queues_share_rate_and_count() {
        let options = options("--count 10 --rate 1000001pps");
        let rate = Schedule::Rate(options.rate.unwrap());
        let settings = rate.settings(&options, (3, 100, 0)).unwrap();
        let counts: Vec<_> = settings
            .iter()
            .map(|setting| setting.count.unwrap())
            .collect();
        assert_eq!(counts, [4, 3, 3]);
        let rates: Vec<_> = settings.iter().map(|setting| setting.pace).collect();
        let pace = |n| Pace::Rate(Rate::Packets(n));
        assert_eq!(rates, [pace(333_334), pace(333_334), pace(333_333)]);
        assert!(settings[0].offset < settings[1].offset);
        let slow = Schedule::Rate(Rate::Packets(2));
        assert!(slow.settings(&options, (3, 100, 0)).is_err());
    }

    #[test]
    fn end_is_described() {
        assert_eq!(until(&options("--forever"), None), "Ctrl-C");
        let both = options("--count 1500 --duration 2s");
        assert_eq!(until(&both, None), "1,500 packets or 2s");
        assert_eq!(
            until(&options(""), Some("the simulation's end")),
            "the simulation's end"
        );
    }
}
