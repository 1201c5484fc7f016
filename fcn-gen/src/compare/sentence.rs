//! The conclusion of a comparison, in sentences computed from its figures. Nothing is assumed: a
//! mechanism may be slower than receiver CNPs, no sender may have reacted, a run may not have
//! settled. Claims are limited to those that the ranges over the seeds support.

use super::Row;
use super::figures::{
    Figure, GOODPUT, MEAN_QUEUE, REACTION_TIME, REPEATED, Spread, UTILISATION, Unit, show,
};
use crate::scenario::model::Mechanism;
use crate::sim::outcome::Half;
use core::borrow::Borrow;
use fcn_wire::Kind;

/// Minimum number of seeds for a comparison: with a single one, a figure was claimed to be 53 %
/// higher, which six disproved.
const SEEDS: usize = 3;

/// Compares a reaction time with a baseline: as a percentage, or as a factor from 2 on; up to half
/// a percent counts as equal.
fn compared(time: f64, baseline: f64) -> String {
    let times = |ratio: f64| {
        let decimals = usize::from(ratio < 10.0);
        format!("{ratio:.decimals$} times")
    };
    if (time - baseline).abs() <= baseline * 0.005 {
        "as soon".to_owned()
    } else if time == 0.0 {
        "at once".to_owned()
    } else if time * 2.0 <= baseline {
        format!("{} sooner", times(baseline / time))
    } else if time < baseline {
        format!("{:.0} % sooner", (1.0 - time / baseline) * 100.0)
    } else if baseline == 0.0 {
        "later".to_owned()
    } else if time < baseline * 2.0 {
        format!("{:.0} % later", (time / baseline - 1.0) * 100.0)
    } else {
        format!("{} later", times(time / baseline))
    }
}

/// Returns the sentences about the mechanisms of one group.
#[must_use]
pub fn sentence(rows: &[Row]) -> String {
    let mut runs = rows.iter().flat_map(|row| &row.played).flatten();
    if !runs.any(|run| run.onset.is_some()) {
        return "No queue exceeded Kmin, so there was nothing to react to. Play for longer, or send more.".to_owned();
    }
    let seeds = rows.iter().filter_map(Row::runs).map(<[_]>::len).max();
    let seeds = seeds.unwrap_or(0);
    if seeds < SEEDS {
        let few = format!(
            "{} played: the effect of chance is unknown, so nothing is compared (use --seeds \
             {SEEDS} or more)",
            if seeds == 1 {
                "one seed was"
            } else {
                "two seeds were"
            }
        );
        return joined([Some(reaction(rows, false)), repeated(rows), Some(few)]);
    }
    joined([
        Some(reaction(rows, true)),
        goodput(rows),
        mean_queue(rows),
        elsewhere(rows),
        repeated(rows),
    ])
}

fn goodput(rows: &[Row]) -> Option<String> {
    let words = ["high", "low"];
    steady(rows, "goodput", &GOODPUT, |half| half.goodput, words)
}

fn mean_queue(rows: &[Row]) -> Option<String> {
    let words = ["long", "short"];
    steady(
        rows,
        "the mean queue",
        &MEAN_QUEUE,
        |half| half.queue,
        words,
    )
}

/// Compares the figures if packets are marked at the other point.
fn elsewhere(rows: &[Row]) -> Option<String> {
    let at = rows
        .iter()
        .find_map(|row| Some(row.elsewhere.as_ref()?.0))?;
    let rows = rows.iter().filter_map(|row| {
        let (_, runs) = row.elsewhere.as_ref()?;
        Some(Row::new(row.mechanism, Ok(runs.clone())))
    });
    let rows: Vec<Row> = rows.collect();
    let parts = [
        Some(reaction(&rows, true)),
        goodput(&rows),
        mean_queue(&rows),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (at, parts) = (at.id(), parts.join("; "));
    Some(format!(
        "if switches mark and notify on a packet's {at} instead: {parts}"
    ))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts = parts.into_iter().flatten();
    let parts: Vec<String> = parts.map(|part| capitalised(&part) + ".").collect();
    parts.join(" ")
}

/// Describes which mechanisms reacted when, and, if there are enough seeds, how that compares with
/// receiver CNPs.
fn reaction(rows: &[Row], compares: bool) -> String {
    let others = (rows.iter()).filter(|row| !compares || row.mechanism != Mechanism::Cnp);
    let played = others.filter_map(|row| Some((row.mechanism, REACTION_TIME.spread(row.runs()?))));
    let (reacted, unmoved): (Vec<_>, Vec<_>) = played.partition(|(_, time)| time.is_some());
    // Under a mechanism without notifications the reaction has another cause, such as a forged
    // notification.
    let (silent, others): (Vec<_>, Vec<_>) = reacted
        .into_iter()
        .filter_map(|(mechanism, time)| Some((mechanism, time?)))
        .partition(|(m, _)| matches!(m, Mechanism::None | Mechanism::Pfc));
    let baseline = rows.iter().find(|row| row.mechanism == Mechanism::Cnp);
    let mut text = match baseline.and_then(Row::runs).filter(|_| compares) {
        Some(runs) => match REACTION_TIME.spread(runs) {
            Some(baseline) => against(&baseline, &others, runs.len()),
            None => absolute("Receiver CNPs slowed no sender down", others),
        },
        None if compares => absolute("Receiver CNPs were not played", others),
        None if others.is_empty() => "no notified sender slowed down".to_owned(),
        None => format!(
            "from the onset of congestion to a sender's first cut {}",
            each(&others, |id, time| format!("{id} took {time}"))
        ),
    };
    if !silent.is_empty() {
        text += &format!(
            "; a sender slowed down although congestion is not notified under {}",
            each(&silent, |id, time| format!("{id} (after {time})"))
        );
    }
    if !unmoved.is_empty() {
        let unmoved: Vec<&str> = unmoved.iter().map(|(m, _)| m.id()).collect();
        text += &format!("; under {} no sender slowed down", listed(&unmoved));
    }
    text
}

/// Lists a part for each mechanism, formed from its name and its median reaction time.
fn each(times: &[(Mechanism, Spread)], part: impl Fn(&str, &str) -> String) -> String {
    let part = |(mechanism, time): &(Mechanism, Spread)| {
        part(mechanism.id(), &show(Unit::Nanoseconds, time.median))
    };
    listed(&times.iter().map(part).collect::<Vec<_>>())
}

fn against(baseline: &Spread, others: &[(Mechanism, Spread)], seeds: usize) -> String {
    let base = show(Unit::Nanoseconds, baseline.median);
    if others.is_empty() {
        return format!(
            "receiver CNPs took {base} from the onset of congestion to a sender's first cut"
        );
    }
    let part = |(mechanism, time): &(Mechanism, Spread)| {
        let words = if time.seeds.min(baseline.seeds) < seeds {
            format!("reacted with {} of {seeds} seeds", time.seeds)
        } else if time.is_apart_from(baseline) {
            format!("reacted {}", compared(time.median, baseline.median))
        } else {
            "was not clearly sooner or later".to_owned()
        };
        let time = show(Unit::Nanoseconds, time.median);
        format!("{} {words} ({time})", mechanism.id())
    };
    format!(
        "compared with receiver CNPs, which took {base} from the onset of congestion to a sender's first cut, {}",
        listed(&others.iter().map(part).collect::<Vec<_>>())
    )
}

/// Compares a figure of the time after the warm-up with that under receiver CNPs, for mechanisms
/// under which it has settled. A difference is claimed only if the ranges over the seeds are apart,
/// and also those over both halves of each run: a claim must hold for half the time, too.
fn steady(
    rows: &[Row],
    name: &str,
    figure: &Figure,
    of_half: fn(&Half) -> f64,
    [more, less]: [&str; 2],
) -> Option<String> {
    let spread = |row: &Row| figure.spread(row.runs()?);
    let baseline = rows.iter().find(|row| row.mechanism == Mechanism::Cnp)?;
    let halves = |row: &Row| {
        let halves = row.played.iter().flatten().filter_map(|run| run.halves);
        Spread::from_values(halves.flatten().map(|half| of_half(&half)))
    };
    let base_halves = halves(baseline);
    let unsettled = baseline.unsettled();
    if !unsettled.is_empty() {
        let have = if unsettled.len() == 1 { "has" } else { "have" };
        return Some(format!(
            "{name} is not compared: under receiver CNPs {} {have} not settled",
            listed(&unsettled)
        ));
    }
    let base = spread(baseline).filter(|base| base.median > 0.0)?;
    let mut parts = Vec::new();
    let mut alike = Vec::new();
    let others = rows.iter().filter(|row| row.mechanism != Mechanism::Cnp);
    let others = others.filter(|row| row.stalled().is_none());
    for row in others.filter(|row| row.drifts().is_empty() && !row.unsettled().contains(&name)) {
        let (Some(this), id) = (spread(row), row.mechanism.id()) else {
            continue;
        };
        // With uncertainty due to timeouts, at most a direction can be claimed, not a figure.
        let chance = row.timeouts().map_or(0.0, |timeouts| timeouts.chance());
        let this = this.widened(chance);
        let ratio = this.median / base.median;
        // If all flows were complete, there are no halves, because the runs are complete.
        let overlap = halves(row)
            .zip(base_halves)
            .is_some_and(|(this, base)| !this.is_apart_from(&base));
        let change = (ratio - 1.0).abs() * 100.0;
        if overlap || !this.is_apart_from(&base) || change < 0.5 {
            alike.push(id);
            continue;
        }
        parts.push(match ratio {
            ..1.0 if chance > 0.0 => format!("{less}er under {id}"),
            _ if chance > 0.0 => format!("{more}er under {id}"),
            ratio if ratio > 2.0 => format!("{ratio:.1} times as {more} under {id}"),
            ..0.1 => format!("1/{:.0} as {more} under {id}", 1.0 / ratio),
            ..1.0 if figure.id == GOODPUT.id => {
                let why = reason(row, baseline, 1.0 - ratio).unwrap_or_default();
                format!("{change:.0} % {less}er under {id}{why}")
            }
            ..1.0 => format!("{change:.0} % {less}er under {id}"),
            _ => format!("{change:.0} % {more}er under {id}"),
        });
    }
    if !alike.is_empty() {
        parts.push(format!("not clearly different under {}", listed(&alike)));
    }
    (!parts.is_empty()).then(|| format!("over the measured time, {name} was {}", listed(&parts)))
}

/// Returns the reason why goodput is lower by this share than under receiver CNPs: an idle link, or
/// what the link carries besides payload.
fn reason(row: &Row, baseline: &Row, lower: f64) -> Option<String> {
    let busy = |row: &Row| Some(UTILISATION.spread(row.runs()?)?.median);
    let (this, base) = (busy(row)?, busy(baseline)?);
    if base <= 0.0 {
        return None;
    }
    if 1.0 - this / base < lower / 2.0 {
        let more = "more of what it carries is headers, traces or retransmissions";
        return Some(format!(" (the busiest port is hardly less busy: {more})"));
    }
    let [this, base] = [this, base].map(|busy| (1.0 - busy) * 100.0);
    let since = match row.mechanism {
        Mechanism::FastCnpIoam => {
            ", since Fast CNPs report congestion, but not how much of a link is free, and senders \
             raise their rates in steps of W_AI"
        }
        _ => "",
    };
    Some(format!(
        " (its busiest port is idle {this:.0} % of the time, instead of {base:.0} %{since})"
    ))
}

/// Describes repeated notifications: switches of one path each notify of the same episode.
fn repeated(rows: &[Row]) -> Option<String> {
    let part = |row: &Row| {
        let runs = row.runs()?;
        let again = REPEATED.spread(runs)?.median;
        let sent = runs.iter().flat_map(|run| &run.notifications);
        let sent = sent.filter(|(kind, _)| **kind != Kind::Cnp);
        let sent: u64 = sent.map(|(_, sent)| sent).sum();
        let share = again * runs.len() as f64 / sent.max(1) as f64 * 100.0;
        let id = row.mechanism.id();
        (share >= 0.5).then(|| format!("{share:.0} % of the notifications under {id}"))
    };
    let parts: Vec<String> = rows.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "{} were about a flow that another switch had notified about less than 50 µs earlier, \
             so its sender was notified of one episode more than once",
            listed(&parts)
        )
    })
}

fn absolute(why: &str, mut others: Vec<(Mechanism, Spread)>) -> String {
    if others.is_empty() {
        return why.to_owned();
    }
    others.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    format!(
        "{why}; from the onset of congestion, {} reacted",
        each(&others, |id, time| format!("{id} after {time}"))
    )
}

/// Joins a list: `a, b and c`.
pub(super) fn listed<S: Borrow<str>>(parts: &[S]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.borrow().to_owned(),
        [first @ .., last] => format!("{} and {}", first.join(", "), last.borrow()),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{halves, metrics, refused, row};
    use super::*;
    use crate::sim::outcome::Timeouts;

    #[test]
    fn sooner_later_and_equal_follow_from_the_figures() {
        let rows = [
            row(Mechanism::None, &[None; 3]),
            row(Mechanism::Pfc, &[None; 3]),
            row(Mechanism::Cnp, &[Some(12_000); 3]),
            row(Mechanism::FastCnp, &[Some(3_000); 3]),
            row(Mechanism::FastCnpIoam, &[Some(12_000); 3]),
            row(Mechanism::Proxy, &[Some(15_000); 3]),
            row(Mechanism::WanFcn, &[Some(60_000); 3]),
        ];
        assert_eq!(
            sentence(&rows),
            "Compared with receiver CNPs, which took 12 µs from the onset of congestion to a sender's first cut, \
             fast-cnp reacted 4.0 times sooner (3 µs), fast-cnp-ioam was not clearly sooner or later (12 µs), \
             proxy reacted 25 % later (15 µs) and wan-fcn reacted 5.0 times later (60 µs); \
             under none and pfc no sender slowed down. Over the measured time, goodput was not clearly different under none, pfc, fast-cnp, \
             fast-cnp-ioam, proxy and wan-fcn. Over the measured time, the mean queue was not clearly different under none, pfc, \
             fast-cnp, fast-cnp-ioam, proxy and wan-fcn."
        );
    }

    #[test]
    fn few_seeds_are_not_compared() {
        let few = |seeds: usize| {
            let row = |mechanism, time: Option<u64>, queue| {
                let mut row = row(mechanism, &vec![time; seeds]);
                for run in row.played.as_mut().unwrap() {
                    (run.mean_queue, run.halves) = (queue, None);
                }
                row
            };
            sentence(&[
                row(Mechanism::Pfc, None, 9e6),
                row(Mechanism::Cnp, Some(12_000), 1e6),
                row(Mechanism::FastCnp, Some(3_000), 5e3),
            ])
        };
        let figures = "From the onset of congestion to a sender's first cut cnp took 12 µs and fast-cnp took 3 µs; under pfc no \
                       sender slowed down.";
        for (seeds, played) in [(1, "One seed was"), (2, "Two seeds were")] {
            assert_eq!(
                few(seeds),
                format!(
                    "{figures} {played} played: the effect of chance is unknown, so nothing is \
                     compared (use --seeds 3 or more)."
                )
            );
        }
        let text = few(3);
        assert!(text.starts_with("Compared with receiver CNPs"), "{text}");
        assert!(
            text.contains(
                "the mean queue was 9.0 times as long under pfc and 1/200 as long under fast-cnp"
            ),
            "{text}"
        );
    }

    #[test]
    fn slowing_down_without_notification_is_no_reaction() {
        let rows = [
            row(Mechanism::None, &[Some(60_000); 3]),
            row(Mechanism::Pfc, &[Some(60_000); 3]),
            row(Mechanism::Cnp, &[Some(12_000); 3]),
            row(Mechanism::FastCnp, &[Some(3_000); 3]),
        ];
        let text = sentence(&rows);
        assert!(
            text.contains(
                "cut, fast-cnp reacted 4.0 times sooner (3 µs); a sender slowed down although \
                 congestion is not notified under none (after 60 µs) and pfc (after 60 µs). Over"
            ),
            "{text}"
        );
    }

    #[test]
    fn medians_are_compared_if_ranges_are_well_apart() {
        let rows = [
            row(Mechanism::Cnp, &[Some(9_500), Some(10_000), Some(11_000)]),
            row(Mechanism::FastCnp, &[Some(8_000), Some(7_900), Some(8_100)]),
            row(Mechanism::Proxy, &[Some(8_000), Some(7_000), Some(9_400)]),
        ];
        let text = sentence(&rows);
        assert!(
            text.contains("fast-cnp reacted 20 % sooner (8 µs)"),
            "{text}"
        );
        assert!(
            text.contains("proxy was not clearly sooner or later (8 µs)"),
            "{text}"
        );
        assert!(!text.contains("One seed"), "{text}");
        // Ranges that are far apart as ratios, although each is wide.
        let rows = [
            row(Mechanism::Cnp, &[Some(24_100), Some(33_500), Some(48_300)]),
            row(
                Mechanism::FastCnp,
                &[Some(7_600), Some(10_300), Some(15_300)],
            ),
        ];
        let text = sentence(&rows);
        assert!(text.contains("fast-cnp reacted 3.3 times sooner"), "{text}");
    }

    #[test]
    fn only_settled_figures_are_compared() {
        let steady = |mechanism, goodput: [f64; 2], drift: f64| {
            let mut row = row(mechanism, &[Some(1_000); 3]);
            let runs = row.played.as_mut().unwrap().iter_mut();
            for (run, goodput) in runs.zip(goodput.into_iter().cycle()) {
                run.goodput = goodput;
                run.halves = Some(halves(goodput, drift));
            }
            row
        };
        let mut rows = [
            steady(Mechanism::Cnp, [20e9, 21e9], 0.0),
            steady(Mechanism::FastCnp, [23e9, 24e9], 0.0),
            steady(Mechanism::FastCnpIoam, [20.9e9, 30e9], 0.0),
            steady(Mechanism::Proxy, [50e9, 51e9], -0.02),
            steady(Mechanism::WanFcn, [99e9, 99e9], 0.2),
        ];
        let text = sentence(&rows);
        assert!(
            text.contains(
                "Over the measured time, goodput was 15 % higher under fast-cnp, 2.5 times as high under proxy and \
                 not clearly different under fast-cnp-ioam."
            ),
            "{text}"
        );
        rows[0].played.as_mut().unwrap()[0].halves = Some(halves(20e9, 0.2));
        let text = sentence(&rows);
        assert!(
            text.contains("Goodput is not compared: under receiver CNPs goodput has not settled."),
            "{text}"
        );
        // Goodput is determined by the link while its queue fills, or while the senders still slow
        // down.
        for run in rows[0].played.as_mut().unwrap() {
            let [before, after] = halves(20e9, 0.0);
            let after = Half {
                queue: before.queue * 1.5,
                rate: before.rate * 0.7,
                ..after
            };
            run.halves = Some([before, after]);
        }
        assert_eq!(rows[0].unsettled().len(), 2);
        let text = sentence(&rows);
        let why = "is not compared: under receiver CNPs the mean queue and the senders' rates have not settled.";
        assert!(
            text.contains(&format!("Goodput {why} The mean queue {why}")),
            "{text}"
        );
    }

    #[test]
    fn claims_must_hold_for_both_halves() {
        let with = |mechanism, goodput: f64, drift: f64| {
            let mut row = row(mechanism, &[Some(1_000); 3]);
            for run in row.played.as_mut().unwrap() {
                run.goodput = goodput;
                run.halves = Some(halves(goodput, drift));
            }
            row
        };
        let text = |drift| {
            sentence(&[
                with(Mechanism::Cnp, 20e9, drift),
                with(Mechanism::FastCnp, 20.4e9, 0.0),
            ])
        };
        assert!(text(0.01).contains("goodput was 2 % higher under fast-cnp"));
        assert!(text(0.049).contains("goodput was not clearly different under fast-cnp"));
    }

    #[test]
    fn claims_account_for_timeouts() {
        let with = |mechanism, queue: f64, timeouts| {
            let mut row = row(mechanism, &[Some(1_000); 3]);
            for run in row.played.as_mut().unwrap() {
                run.goodput = if mechanism == Mechanism::Cnp {
                    20e9
                } else {
                    25e9
                };
                run.mean_queue = queue;
                let half = Half {
                    queue,
                    ..halves(run.goodput, 0.0)[0]
                };
                run.halves = Some([half; 2]);
                run.timeouts = timeouts;
            }
            row
        };
        let text = |queue, share, rounds| {
            let rows = [
                with(Mechanism::Cnp, 10e3, Timeouts::default()),
                with(Mechanism::Pfc, queue, Timeouts { share, rounds }),
            ];
            sentence(&rows)
        };
        let longer = text(100e3, 0.5, 3.0);
        assert!(
            longer.ends_with(" Over the measured time, the mean queue was longer under pfc."),
            "{longer}"
        );
        assert!(!longer.contains("goodput"), "{longer}");
        assert!(text(1e3, 0.5, 3.0).contains("the mean queue was shorter under pfc."));
        assert!(
            text(12e3, 0.5, 3.0).contains("the mean queue was not clearly different under pfc.")
        );
        // Timeouts that are rare, or numerous enough.
        for (share, rounds) in [(0.04, 0.5), (0.5, 201.0)] {
            let text = text(100e3, share, rounds);
            assert!(
                text.contains("goodput was 25 % higher under pfc."),
                "{text}"
            );
            assert!(
                text.contains("the mean queue was 10.0 times as long under pfc."),
                "{text}"
            );
        }
        let rows = [
            with(
                Mechanism::Cnp,
                10e3,
                Timeouts {
                    share: 0.5,
                    rounds: 3.0,
                },
            ),
            with(Mechanism::Pfc, 10e3, Timeouts::default()),
        ];
        let why = "is not compared: under receiver CNPs goodput has not settled.";
        assert!(sentence(&rows).contains(&format!("Goodput {why} The mean queue {why}")));
    }

    #[test]
    fn repeated_notifications_are_reported() {
        let mut row = row(Mechanism::FastCnp, &[Some(1_000); 3]);
        for run in row.played.as_mut().unwrap() {
            run.notifications = [(Kind::FastCnp1, 200)].into();
            run.repeated = 50;
        }
        let text = sentence(&[row]);
        assert!(
            text.contains(
                "25 % of the notifications under fast-cnp were about a flow that another switch"
            ),
            "{text}"
        );
    }

    #[test]
    fn times_are_absolute_without_receiver_cnps() {
        let rows = [
            refused(Mechanism::Cnp, "no ECN here"),
            row(Mechanism::Proxy, &[Some(4_000); 3]),
            row(Mechanism::FastCnp, &[Some(3_000); 3]),
        ];
        assert_eq!(
            sentence(&rows),
            "Receiver CNPs were not played; from the onset of congestion, \
             fast-cnp after 3 µs and proxy after 4 µs reacted."
        );
        let rows = [
            row(Mechanism::Cnp, &[None; 3]),
            row(Mechanism::FastCnp, &[Some(3_000); 3]),
        ];
        assert!(sentence(&rows).starts_with("Receiver CNPs slowed no sender down; "));
    }

    #[test]
    fn absence_of_congestion_is_reported() {
        let mut calm = metrics(None);
        calm.onset = None;
        let rows = [Row::new(Mechanism::Cnp, Ok(vec![calm]))];
        assert!(sentence(&rows).starts_with("No queue exceeded Kmin"));
        assert!(sentence(&[refused(Mechanism::Cnp, "x")]).starts_with("No queue"));
    }

    #[test]
    fn single_mechanism_is_not_compared() {
        assert_eq!(
            sentence(&[row(Mechanism::Cnp, &[Some(2_000); 3])]),
            "Receiver CNPs took 2 µs from the onset of congestion to a sender's first cut."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Cnp, &[None; 3])]),
            "Receiver CNPs slowed no sender down."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Pfc, &[None; 3])]),
            "Receiver CNPs were not played; under pfc no sender slowed down."
        );
    }

    #[test]
    fn zero_reaction_time_is_not_divided_by() {
        let rows = [
            row(Mechanism::Cnp, &[Some(2_000); 3]),
            row(Mechanism::FastCnp, &[Some(0); 3]),
        ];
        assert!(sentence(&rows).contains("at once (0)"));
        assert_eq!(compared(0.0, 0.0), "as soon");
        assert_eq!(compared(1.0, 0.0), "later");
    }
}
