//! What a comparison comes to, in one sentence computed from its reaction times. Nothing is taken for granted: a
//! mechanism may be later than receiver CNPs, or nobody may have reacted.

use super::Row;
use super::figures::{Unit, reaction_time, show};
use crate::scenario::model::Mechanism;

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

/// The sentence about the mechanisms of one group.
#[must_use]
pub fn sentence(rows: &[Row]) -> String {
    let figure = reaction_time();
    let played: Vec<(Mechanism, Option<f64>)> = rows
        .iter()
        .filter_map(|row| {
            let runs = row.played.as_ref().ok()?;
            Some((row.mechanism, figure.spread(runs).map(|s| s.median)))
        })
        .collect();
    let congested = rows
        .iter()
        .filter_map(|row| row.played.as_ref().ok())
        .flatten()
        .any(|run| run.onset.is_some());
    if !congested {
        return "No queue went above Kmin: there was nothing to react to. Play for longer, or have more sent.".to_owned();
    }
    let baseline = played.iter().find(|(m, _)| *m == Mechanism::Cnp);
    let others: Vec<(Mechanism, f64)> = played
        .iter()
        .filter(|(m, _)| *m != Mechanism::Cnp)
        .filter_map(|(m, time)| Some((*m, (*time)?)))
        .collect();
    let unmoved: Vec<&str> = played
        .iter()
        .filter(|(m, time)| *m != Mechanism::Cnp && time.is_none())
        .map(|(m, _)| m.id())
        .collect();
    let mut text = match baseline {
        Some((_, Some(baseline))) => against(*baseline, &others),
        Some((_, None)) => absolute("Receiver CNPs slowed no sender down", &others),
        None => absolute("Receiver CNPs were not played", &others),
    };
    if !unmoved.is_empty() {
        text += &format!("; under {} no sender slowed down", listed(&unmoved));
    }
    capitalised(&text) + "."
}

fn against(baseline: f64, others: &[(Mechanism, f64)]) -> String {
    let base = show(Unit::Nanoseconds, baseline);
    if others.is_empty() {
        return format!(
            "receiver CNPs took {base} from the onset of congestion to a sender's first cut"
        );
    }
    let parts: Vec<String> = others
        .iter()
        .map(|(mechanism, time)| {
            let words = Against::of(*time, baseline).words();
            let time = show(Unit::Nanoseconds, *time);
            format!("{} reacted {words} ({time})", mechanism.id())
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    format!(
        "compared with receiver CNPs, which took {base} from the onset of congestion to a sender's first cut, {}",
        listed(&parts)
    )
}

fn absolute(why: &str, others: &[(Mechanism, f64)]) -> String {
    let mut others = others.to_vec();
    others.sort_by(|a, b| a.1.total_cmp(&b.1));
    let parts: Vec<String> = others
        .iter()
        .map(|(mechanism, time)| {
            format!(
                "{} after {}",
                mechanism.id(),
                show(Unit::Nanoseconds, *time)
            )
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if parts.is_empty() {
        return why.to_owned();
    }
    format!(
        "{why}; from the onset of congestion, {} reacted",
        listed(&parts)
    )
}

/// `a, b and c`.
fn listed(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
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
    use super::super::made_up::{metrics, refused, row};
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
             fast-cnp reacted 4.0 times sooner (3 µs), fast-cnp-ioam reacted as soon (12 µs), \
             proxy reacted 25 % later (15 µs) and wan-fcn reacted 5.0 times later (60 µs); \
             under none and pfc no sender slowed down."
        );
    }

    #[test]
    fn the_median_over_seeds_counts() {
        let rows = [
            row(Mechanism::Cnp, &[Some(1_000), Some(10_000), Some(90_000)]),
            row(Mechanism::FastCnp, &[Some(8_000), Some(1), Some(9_000)]),
        ];
        assert!(sentence(&rows).contains("fast-cnp reacted 20 % sooner (8 µs)"));
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
             fast-cnp after 3 µs and proxy after 4 µs reacted."
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
            "Receiver CNPs took 2 µs from the onset of congestion to a sender's first cut."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Cnp, &[None])]),
            "Receiver CNPs slowed no sender down."
        );
        assert_eq!(
            sentence(&[row(Mechanism::Pfc, &[None])]),
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
