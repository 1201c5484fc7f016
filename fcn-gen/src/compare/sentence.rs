//! What a comparison comes to, in sentences computed from its figures. Nothing is taken for granted: a mechanism may be
//! later than receiver CNPs, nobody may have reacted, a run may not have settled. What the ranges over the seeds do not bear
//! out is not claimed.

use super::Row;
use super::figures::{Figure, Spread, Unit, goodput, mean_queue, reaction_time, show, told_twice};
use crate::scenario::model::Mechanism;
use crate::sim::outcome::Half;
use core::borrow::Borrow;
use fcn_wire::Kind;

/// How a reaction time compares with another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Against {
    /// So many times sooner, from 2.
    TimesSooner(f64),
    /// By this share of the other's time sooner, below a half.
    Sooner(f64),
    /// No difference that matters: less than half a percent.
    Same,
    /// By this share of the other's time later, less than all of it.
    Later(f64),
    /// So many times later, from 2.
    TimesLater(f64),
}

impl Against {
    fn of(time: f64, baseline: f64) -> Self {
        if (time - baseline).abs() <= baseline * 0.005 {
            Self::Same
        } else if time * 2.0 <= baseline {
            Self::TimesSooner(baseline / time)
        } else if time < baseline {
            Self::Sooner(1.0 - time / baseline)
        } else if time < baseline * 2.0 {
            Self::Later(time / baseline - 1.0)
        } else {
            Self::TimesLater(time / baseline)
        }
    }

    fn words(self) -> String {
        let times = |ratio: f64| {
            let decimals = usize::from(ratio < 10.0);
            format!("{ratio:.decimals$} times")
        };
        match self {
            Self::TimesSooner(ratio) if ratio.is_infinite() => "at once".to_owned(),
            Self::TimesLater(ratio) if ratio.is_infinite() => "later".to_owned(),
            Self::TimesSooner(ratio) => format!("{} sooner", times(ratio)),
            Self::Sooner(share) => format!("{:.0} % sooner", share * 100.0),
            Self::Same => "as soon".to_owned(),
            Self::Later(share) => format!("{:.0} % later", share * 100.0),
            Self::TimesLater(ratio) => format!("{} later", times(ratio)),
        }
    }
}

/// The sentences about the mechanisms of one group.
#[must_use]
pub fn sentence(rows: &[Row]) -> String {
    let congested = rows
        .iter()
        .filter_map(|row| row.played.as_ref().ok())
        .flatten()
        .any(|run| run.onset.is_some());
    if !congested {
        return "No queue went above Kmin: there was nothing to react to. Play for longer, or have more sent.".to_owned();
    }
    let parts = [
        Some(reaction(rows)),
        steady(
            rows,
            (&goodput(), |half| half.goodput),
            "goodput",
            ["higher", "lower"],
        ),
        steady(
            rows,
            (&mean_queue(), |half| half.queue),
            "the mean queue",
            ["longer", "shorter"],
        ),
        told_again(rows),
        rows.iter()
            .any(|row| row.played.as_ref().is_ok_and(|runs| runs.len() == 1))
            .then(|| "one seed was played: how far chance goes is not known".to_owned()),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .map(|part| capitalised(&part) + ".")
        .collect();
    parts.join(" ")
}

/// Who reacted when.
fn reaction(rows: &[Row]) -> String {
    let figure = reaction_time();
    let played: Vec<(Mechanism, Option<Spread>)> = rows
        .iter()
        .filter_map(|row| Some((row.mechanism, figure.spread(row.played.as_ref().ok()?))))
        .collect();
    let runs = rows.iter().filter_map(|row| row.played.as_ref().ok());
    let seeds = runs.map(Vec::len).max().unwrap_or(0);
    let baseline = played.iter().find(|(m, _)| *m == Mechanism::Cnp);
    let (untold, others): (Vec<_>, Vec<_>) = played
        .iter()
        .filter(|(m, _)| *m != Mechanism::Cnp)
        .filter_map(|(m, time)| Some((*m, (*time)?)))
        .partition(|(m, _)| matches!(m, Mechanism::None | Mechanism::Pfc));
    let unmoved: Vec<&str> = played
        .iter()
        .filter(|(m, time)| *m != Mechanism::Cnp && time.is_none())
        .map(|(m, _)| m.id())
        .collect();
    let mut text = match baseline {
        Some((_, Some(baseline))) => against(baseline, &others, seeds),
        Some((_, None)) => absolute("Receiver CNPs slowed no sender down", &others),
        None => absolute("Receiver CNPs were not played", &others),
    };
    if !untold.is_empty() {
        // For another reason: a forged notification, for one.
        let parts: Vec<String> = untold
            .iter()
            .map(|(m, time)| {
                format!(
                    "{} (after {})",
                    m.id(),
                    show(Unit::Nanoseconds, time.median)
                )
            })
            .collect();
        text += &format!(
            "; a sender slowed down although nobody tells it of congestion under {}",
            listed(&parts)
        );
    }
    if !unmoved.is_empty() {
        text += &format!("; under {} no sender slowed down", listed(&unmoved));
    }
    text
}

fn against(baseline: &Spread, others: &[(Mechanism, Spread)], seeds: usize) -> String {
    let base = show(Unit::Nanoseconds, baseline.median);
    if others.is_empty() {
        return format!(
            "receiver CNPs took {base} from the onset of congestion to a sender's first cut"
        );
    }
    let parts: Vec<String> = others
        .iter()
        .map(|(mechanism, time)| {
            let words = if time.seeds.min(baseline.seeds) < seeds {
                format!("reacted with {} of {seeds} seeds", time.seeds)
            } else if time.is_apart_from(baseline) {
                format!(
                    "reacted {}",
                    Against::of(time.median, baseline.median).words()
                )
            } else {
                "was not surely sooner or later".to_owned()
            };
            let time = show(Unit::Nanoseconds, time.median);
            format!("{} {words} ({time})", mechanism.id())
        })
        .collect();
    format!(
        "compared with receiver CNPs, which took {base} from the onset of congestion to a sender's first cut, {}",
        listed(&parts)
    )
}

/// A figure of the time behind the warm-up against that of receiver CNPs, of mechanisms that have settled, as far as the
/// ranges over the seeds do not overlap, those over both halves of each either: what half the time would deny is not claimed.
fn steady(
    rows: &[Row],
    (figure, of_half): (&Figure, fn(&Half) -> f64),
    name: &str,
    words: [&str; 2],
) -> Option<String> {
    let spread = |row: &Row| figure.spread(row.played.as_ref().ok()?);
    let baseline = rows.iter().find(|row| row.mechanism == Mechanism::Cnp)?;
    let base = spread(baseline).filter(|base| base.median > 0.0)?;
    let halves = |row: &Row| {
        let halves = row.played.iter().flatten().filter_map(|run| run.halves);
        Spread::of(halves.flatten().map(|half| of_half(&half)))
    };
    let base_halves = halves(baseline);
    let unsettled: Vec<&str> = baseline.unsettled().iter().map(|(what, _)| *what).collect();
    if !unsettled.is_empty() {
        let have = if unsettled.len() == 1 { "has" } else { "have" };
        return Some(format!(
            "{name} is not compared: under receiver CNPs {} {have} not settled",
            listed(&unsettled)
        ));
    }
    let mut parts = Vec::new();
    let mut alike = Vec::new();
    let others = rows.iter().filter(|row| row.mechanism != Mechanism::Cnp);
    for row in others.filter(|row| row.unsettled().is_empty()) {
        let (Some(this), id) = (spread(row), row.mechanism.id()) else {
            continue;
        };
        let ratio = this.median / base.median;
        // Where all flows were done there are no halves: the runs are whole.
        let overlap = halves(row)
            .zip(base_halves)
            .is_some_and(|(this, base)| !this.is_apart_from(&base));
        if overlap || !this.is_apart_from(&base) || (ratio - 1.0).abs() < 0.005 {
            alike.push(id);
        } else if ratio > 2.0 {
            parts.push(format!(
                "{ratio:.1} times as {} under {id}",
                as_much(words[0])
            ));
        } else if ratio < 0.5 {
            parts.push(format!(
                "{:.1} times as {} under {id}",
                1.0 / ratio,
                as_much(words[1])
            ));
        } else {
            let word = words[usize::from(ratio < 1.0)];
            let change = (ratio - 1.0).abs() * 100.0;
            parts.push(format!("{change:.0} % {word} under {id}"));
        }
    }
    if !alike.is_empty() {
        parts.push(format!("not surely different under {}", listed(&alike)));
    }
    (!parts.is_empty()).then(|| format!("over the time counted, {name} was {}", listed(&parts)))
}

/// `high` for `higher`, `long` for `longer`.
fn as_much(word: &str) -> &str {
    word.trim_end_matches("er")
}

/// Switches of one path tell of the same episode each.
fn told_again(rows: &[Row]) -> Option<String> {
    let parts: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let runs = row.played.as_ref().ok()?;
            let again = told_twice().spread(runs)?.median;
            let sent: u64 = runs
                .iter()
                .flat_map(|run| &run.notifications)
                .filter(|(kind, _)| **kind != Kind::Cnp)
                .map(|(_, sent)| sent)
                .sum();
            let share = again * runs.len() as f64 / sent.max(1) as f64 * 100.0;
            (share >= 0.5).then(|| {
                format!(
                    "{share:.0} % of the notifications under {}",
                    row.mechanism.id()
                )
            })
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "{} were about a flow of which another switch had told less than 50 µs before, so that its sender was told of \
             one episode more than once",
            listed(&parts)
        )
    })
}

fn absolute(why: &str, others: &[(Mechanism, Spread)]) -> String {
    let mut others = others.to_vec();
    others.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let parts: Vec<String> = others
        .iter()
        .map(|(mechanism, time)| {
            format!(
                "{} after {}",
                mechanism.id(),
                show(Unit::Nanoseconds, time.median)
            )
        })
        .collect();
    if parts.is_empty() {
        return why.to_owned();
    }
    format!(
        "{why}; from the onset of congestion, {} reacted",
        listed(&parts)
    )
}

/// `a, b and c`.
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
    use super::super::made_up::{halves, metrics, refused, row};
    use super::*;

    #[test]
    fn sooner_later_and_the_same_are_told_from_the_figures() {
        let rows = [
            row(Mechanism::None, &[None]),
            row(Mechanism::Pfc, &[None]),
            row(Mechanism::Cnp, &[Some(12_000)]),
            row(Mechanism::FastCnp, &[Some(3_000)]),
            row(Mechanism::FastCnpIoam, &[Some(12_000)]),
            row(Mechanism::Proxy, &[Some(15_000)]),
            row(Mechanism::WanFcn, &[Some(60_000)]),
        ];
        assert_eq!(
            sentence(&rows),
            "Compared with receiver CNPs, which took 12 µs from the onset of congestion to a sender's first cut, \
             fast-cnp reacted 4.0 times sooner (3 µs), fast-cnp-ioam was not surely sooner or later (12 µs), \
             proxy reacted 25 % later (15 µs) and wan-fcn reacted 5.0 times later (60 µs); \
             under none and pfc no sender slowed down. Over the time counted, goodput was not surely different under none, pfc, fast-cnp, \
             fast-cnp-ioam, proxy and wan-fcn. Over the time counted, the mean queue was not surely different under none, pfc, \
             fast-cnp, fast-cnp-ioam, proxy and wan-fcn. One seed was played: how far chance goes is not known."
        );
    }

    #[test]
    fn who_slows_down_untold_of_congestion_does_not_react_to_it() {
        let rows = [
            row(Mechanism::None, &[Some(60_000)]),
            row(Mechanism::Pfc, &[Some(60_000)]),
            row(Mechanism::Cnp, &[Some(12_000)]),
            row(Mechanism::FastCnp, &[Some(3_000)]),
        ];
        let text = sentence(&rows);
        assert!(
            text.contains(
                "cut, fast-cnp reacted 4.0 times sooner (3 µs); a sender slowed down although nobody tells it of congestion \
                 under none (after 60 µs) and pfc (after 60 µs). Over"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_median_over_seeds_counts_where_the_ranges_are_well_apart() {
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
            text.contains("proxy was not surely sooner or later (8 µs)"),
            "{text}"
        );
        assert!(!text.contains("One seed"), "{text}");
    }

    #[test]
    fn what_has_settled_is_compared_and_nothing_else() {
        let steady = |mechanism, goodput: [f64; 2], drift: f64| {
            let mut row = row(mechanism, &[Some(1_000), Some(1_000)]);
            for (run, goodput) in row.played.as_mut().unwrap().iter_mut().zip(goodput) {
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
                "Over the time counted, goodput was 15 % higher under fast-cnp, 2.5 times as high under proxy and \
                 not surely different under fast-cnp-ioam."
            ),
            "{text}"
        );
        rows[0].played.as_mut().unwrap()[0].halves = Some(halves(20e9, 0.2));
        let text = sentence(&rows);
        assert!(
            text.contains("Goodput is not compared: under receiver CNPs goodput has not settled."),
            "{text}"
        );
        // Goodput is what the link carries while its queue fills, or the senders still slow down.
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
    fn what_half_the_time_would_deny_is_not_claimed() {
        let with = |mechanism, goodput: f64, drift: f64| {
            let mut row = row(mechanism, &[Some(1_000), Some(1_000)]);
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
        assert!(text(0.049).contains("goodput was not surely different under fast-cnp"));
    }

    #[test]
    fn switches_that_tell_of_the_same_episode_are_named() {
        let mut row = row(Mechanism::FastCnp, &[Some(1_000), Some(1_000)]);
        for run in row.played.as_mut().unwrap() {
            run.notifications = [(Kind::FastCnp1, 200)].into();
            run.told_twice = 50;
        }
        let text = sentence(&[row]);
        assert!(
            text.contains(
                "25 % of the notifications under fast-cnp were about a flow of which another switch"
            ),
            "{text}"
        );
    }

    #[test]
    fn without_receiver_cnps_times_stand_alone() {
        let rows = [
            refused(Mechanism::Cnp, "no ECN here"),
            row(Mechanism::Proxy, &[Some(4_000)]),
            row(Mechanism::FastCnp, &[Some(3_000)]),
        ];
        assert_eq!(
            sentence(&rows),
            "Receiver CNPs were not played; from the onset of congestion, \
             fast-cnp after 3 µs and proxy after 4 µs reacted. One seed was played: how far chance goes is not known."
        );
        let rows = [
            row(Mechanism::Cnp, &[None]),
            row(Mechanism::FastCnp, &[Some(3_000)]),
        ];
        assert!(sentence(&rows).starts_with("Receiver CNPs slowed no sender down; "));
    }

    #[test]
    fn nothing_to_react_to_is_said() {
        let mut calm = metrics(None);
        calm.onset = None;
        let rows = [Row {
            mechanism: Mechanism::Cnp,
            played: Ok(vec![calm]),
        }];
        assert!(sentence(&rows).starts_with("No queue went above Kmin"));
        assert!(sentence(&[refused(Mechanism::Cnp, "x")]).starts_with("No queue"));
    }

    #[test]
    fn a_lone_mechanism_is_not_compared() {
        assert_eq!(
            sentence(&[row(Mechanism::Cnp, &[Some(2_000)])]),
            "Receiver CNPs took 2 µs from the onset of congestion to a sender's first cut. One seed was played: how far \
             chance goes is not known."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Cnp, &[None, None])]),
            "Receiver CNPs slowed no sender down."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Pfc, &[None, None])]),
            "Receiver CNPs were not played; under pfc no sender slowed down."
        );
    }

    #[test]
    fn a_reaction_without_delay_divides_by_nothing() {
        let rows = [
            row(Mechanism::Cnp, &[Some(2_000)]),
            row(Mechanism::FastCnp, &[Some(0)]),
        ];
        assert!(sentence(&rows).contains("at once (0)"));
        assert_eq!(Against::of(0.0, 0.0), Against::Same);
        assert_eq!(Against::of(1.0, 0.0), Against::TimesLater(f64::INFINITY));
    }
}
