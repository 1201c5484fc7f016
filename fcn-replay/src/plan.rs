//! Turns the options into a plan: checked, with defaults applied.

use crate::cli::{Cli, Preload};
use crate::filter::Filter;
use crate::pipeline::{Pipeline, Room, is_regular};
use crate::rewriting::Rewriting;
use crate::selection::Selection;
use crate::splitting::Splitting;
use crate::timing::{Speed, TimeBase};
use fcn_link::interface::{self, Interface};
use fcn_link::pacing::burst_for;
use fcn_link::sender::{BURST, Pace};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::sending::{LinkOptions, refuse_endless};
use std::fs;

/// Assumed length of a frame, in octets, if no better value is known.
const TYPICAL: usize = 500;
/// Maximum length of a frame that is streamed to a file, in octets.
pub(crate) const LONGEST_STREAMED: usize = 65_535 + 14 + 8;

/// An interface, or a file, by which frames leave.
pub(crate) struct Target {
    pub(crate) options: LinkOptions,
    pub(crate) interface: Option<Interface>,
}

/// Refuses options that would have no effect, or never end.
pub(crate) fn check(cli: &Cli) -> Result {
    let stdin = cli.files.iter().filter(|path| path.as_os_str() == "-");
    if stdin.count() > 1 {
        return Err(Failure::usage("-").and("standard input can be read only once"));
    }
    cli.link.replacing.check([cli.link.output.as_deref()])?;
    let once = !cli.loops.forever && cli.loops.loops == 1;
    let idle = [
        ("--loop-gap", cli.loops.loop_gap.is_some()),
        ("--vary", !cli.rewriting.vary.is_empty()),
    ];
    if let Some((option, _)) = idle.iter().find(|(_, given)| once && *given) {
        return Err(Failure::usage(*option)
            .and("the capture is sent only once")
            .and("set --loops, or omit it"));
    }
    if cli.link.output.is_some() && cli.second.split.is_some() {
        return Err(Failure::usage("--split")
            .and("a file receives both directions")
            .and("omit it, or select frames with --filter or --interface"));
    }
    if cli.link.output.is_some() && cli.timing.top {
        refuse_duration(cli, "with --top, all frames of a file are due at once")?;
    }
    if cli.loops.forever && cli.limits.duration.is_none() {
        refuse_endless(&cli.link, "use --loops instead, or add --duration")?;
    }
    Ok(())
}

/// Refuses a time limit if no time passes.
pub(crate) fn refuse_duration(cli: &Cli, why: &str) -> Result {
    if cli.limits.duration.is_none() {
        return Ok(());
    }
    Err(Failure::usage("--duration")
        .and(why)
        .and("set --count, or a rate with --rate"))
}

/// Returns the targets of frames, one or two, not yet opened. Refuses interfaces that must not be
/// sent on.
pub(crate) fn targets(cli: &Cli) -> Result<Vec<Target>> {
    let mut options = vec![cli.link.clone()];
    if let Some(second) = &cli.second.iface2 {
        if cli.link.iface.as_ref() == Some(second) {
            return Err(Failure::usage("--iface2")
                .and(second.clone())
                .and("it is also the first interface; choose another one"));
        }
        options.push(LinkOptions {
            iface: Some(second.clone()),
            ..cli.link.clone()
        });
    }
    options
        .into_iter()
        .map(|options| {
            let interface = options.iface.as_deref().map(Interface::named).transpose();
            let interface = interface.map_err(|error| Failure::usage(error.to_string()))?;
            if let Some(interface) = &interface
                && !cli.printing.dry_run
            {
                interface::check_may_send(interface, options.allow_default_route)
                    .map_err(|refusal| Failure::failed(refusal.to_string()))?;
            }
            Ok(Target { options, interface })
        })
        .collect()
}

/// Opens the capture, and reads only its header.
pub(crate) fn pipeline(cli: &Cli, targets: &[Target]) -> Result<Pipeline> {
    let to_interface = targets.iter().any(|target| target.interface.is_some());
    let mut selection = Selection::default();
    selection.numbers.clone_from(&cli.selection.frames);
    selection.interfaces.clone_from(&cli.selection.interface);
    selection.filter = cli.selection.filter.as_deref().map(Filter::new);
    // They do not stop anything in a file.
    selection.pause = cli.selection.send_pause || !to_interface;
    let mut mtu = [None; 2];
    let mut macs = [None; 2];
    for ((mtu, mac), target) in mtu.iter_mut().zip(&mut macs).zip(targets) {
        *mtu = target.interface.as_ref().map(Interface::mtu);
        *mac = target.interface.as_ref().and_then(Interface::mac);
    }
    let longest = usize::MAX;
    let rewriting = Rewriting::new(&cli.rewriting, macs)?;
    let splitting = Splitting::new(cli.second.split.clone(), cli.link.queues as usize);
    let by = by(cli, splitting.jobs());
    Pipeline::open(
        &cli.files,
        selection,
        rewriting,
        splitting,
        (by, Room { mtu, longest }),
    )
}

/// Returns the time base of frames that are sent by `jobs` queues.
fn by(cli: &Cli, jobs: usize) -> TimeBase {
    if cli.timing.top {
        return TimeBase::Nothing;
    }
    match cli.timing.rate {
        Some(rate) => TimeBase::Rate {
            rate,
            // With one queue, the sender forms the bursts.
            burst: match cli.manner.burst {
                _ if jobs == 1 => 1,
                Some(burst) => usize::from(burst),
                None => burst_for(rate, TYPICAL),
            },
        },
        None => TimeBase::Stamps {
            speed: cli.timing.speed.map_or(Speed::CAPTURED, Speed::from_factor),
            max_gap: cli
                .timing
                .max_gap
                .map(|gap| u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX)),
        },
    }
}

/// Returns the pace for `jobs` queues of frames with a mean length of `mean` octets, and the size
/// of a burst.
pub(crate) fn pace(cli: &Cli, jobs: usize, mean: Option<usize>) -> (Pace, usize) {
    let wanted = cli.manner.burst.map(usize::from);
    match (cli.timing.rate, cli.loops.loop_gap) {
        _ if cli.timing.top => (Pace::Top, wanted.unwrap_or(BURST)),
        (Some(rate), None) if jobs == 1 => {
            let burst = burst_for(rate, mean.unwrap_or(TYPICAL));
            (Pace::Rate(rate), wanted.unwrap_or(burst))
        }
        _ => (Pace::Own, wanted.unwrap_or(BURST)),
    }
}

/// Returns the number of loops; `None`: without end.
pub(crate) fn loops(cli: &Cli) -> Option<u64> {
    (!cli.loops.forever).then_some(cli.loops.loops)
}

/// Returns the memory limit for frames, in octets.
pub(crate) fn memory_limit(cli: &Cli) -> u64 {
    /// Default if the size of the machine's memory is unknown.
    const SOME: u64 = 1 << 30;
    cli.memory.memory_limit.unwrap_or_else(|| {
        let kibibytes = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        kibibytes.map_or(SOME, |kibibytes| kibibytes * 1024 / 4)
    })
}

/// Returns whether to try loading the capture into memory first, and whether it can be streamed
/// instead.
pub(crate) fn loading_modes(cli: &Cli, limit: u64) -> (bool, bool) {
    // Total length, if all are regular files.
    let len = (cli.files.iter())
        .map(|path| fs::metadata(path).ok().filter(|_| is_regular(path)))
        .map(|file| Some(file?.len()))
        .sum::<Option<u64>>();
    match (cli.memory.preload, len) {
        (Preload::Yes, _) => (true, false),
        (Preload::No, _) => (false, true),
        (Preload::Auto, Some(len)) => (len <= limit, true),
        // A pipe can be read only once.
        (Preload::Auto, None) if loops(cli) == Some(1) => (false, true),
        (Preload::Auto, None) => (true, false),
    }
}

/// Names the captures for human readers.
pub(crate) fn say_files(cli: &Cli) -> String {
    match &cli.files[..] {
        [] => String::new(),
        [file] => file.display().to_string(),
        [first, .., last] => format!(
            "{} captures, {} to {}",
            cli.files.len(),
            first.display(),
            last.display()
        ),
    }
}

/// Describes the timing for human readers.
pub(crate) fn say_timing(cli: &Cli) -> String {
    let mut text = match (cli.timing.top, cli.timing.rate, cli.timing.speed) {
        (true, _, _) if cli.link.output.is_some() => "all at once".to_owned(),
        (true, _, _) => "as fast as the link accepts them".to_owned(),
        (_, Some(rate), _) => rate.to_string(),
        (_, _, None) => "the capture's own".to_owned(),
        (_, _, Some(speed)) => format!("the capture's own, {speed} times as fast"),
    };
    if let Some(gap) = cli.timing.max_gap {
        text.push_str(&format!(", gaps of at most {gap:?}"));
    }
    text
}

/// Describes the limits for human readers.
pub(crate) fn say_extent(cli: &Cli) -> String {
    use fcn_tool::quantity::{counted, grouped};
    let mut text = match loops(cli) {
        Some(1) => "once".to_owned(),
        Some(loops) => format!("{} loops", grouped(loops)),
        None => "until stopped".to_owned(),
    };
    if let Some(gap) = cli.loops.loop_gap {
        text.push_str(&format!(", {gap:?} apart"));
    }
    if let Some(count) = cli.limits.count {
        text.push_str(&format!(", at most {}", counted(count, "frame")));
    }
    if let Some(duration) = cli.limits.duration {
        text.push_str(&format!(", at most {duration:?}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use fcn_link::pacing::Rate;

    fn cli(words: &str) -> Cli {
        Cli::try_parse_from(format!("fcn-replay a --iface x {words}").split_whitespace()).unwrap()
    }

    #[test]
    fn the_sender_only_paces_one_queue_at_a_rate() {
        let rate = Rate::Packets(1_000_000);
        assert_eq!(pace(&cli("--top"), 1, None), (Pace::Top, BURST));
        let at_rate = cli("--rate 1Mpps");
        assert_eq!(pace(&at_rate, 1, None), (Pace::Rate(rate), 20));
        assert_eq!(pace(&at_rate, 2, None).0, Pace::Own);
        assert_eq!(by(&at_rate, 2), TimeBase::Rate { rate, burst: 20 });
        assert_eq!(by(&at_rate, 1), TimeBase::Rate { rate, burst: 1 });
        assert_eq!(
            pace(&cli("--rate 1Mpps --loop-gap 1s"), 1, None).0,
            Pace::Own
        );
        assert_eq!(pace(&cli("--rate 1Mpps --burst 3"), 1, None).1, 3);
        assert_eq!(pace(&cli(""), 1, None).0, Pace::Own);
    }

    #[test]
    fn options_are_described() {
        let wanted =
            cli("--speed 2 --max-gap 1s --loops 3 --loop-gap 5ms --count 2k --duration 1min");
        assert_eq!(
            say_timing(&wanted),
            "the capture's own, 2 times as fast, gaps of at most 1s"
        );
        assert_eq!(
            say_extent(&wanted),
            "3 loops, 5ms apart, at most 2,000 frames, at most 60s"
        );
        assert_eq!(say_extent(&cli("--forever")), "until stopped");
        assert!(memory_limit(&cli("")) > 0);
        // The file does not exist; opening it reports that later.
        assert_eq!(loading_modes(&cli("--loops 2"), 1), (true, false));
        assert_eq!(loading_modes(&cli(""), 1), (false, true));
    }
}
