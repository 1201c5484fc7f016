//! The thresholds of a comparison: the same under every mechanism, unless each is played at its
//! best.

use super::figures::{Unit, show};
use super::{EACH_AT_ITS_BEST, Group, Row};
use crate::scenario::model::{MarkingPoint, Mechanism, NodeKind, Simulation, Thresholds};
use crate::units::Rate;
use core::fmt::{self, Display, Formatter};
use fcn_node::congestion_point::Marking;

/// Thresholds of all switches' ports of one rate that have the same ones.
#[derive(Clone, Debug, PartialEq)]
pub struct PortThresholds {
    /// The ports' rate.
    pub rate: Rate,
    /// Number of ports.
    pub ports: usize,
    /// Kmin, Kmax and Pmax.
    pub marking: Marking,
    /// Time at which they apply.
    pub marks_at: MarkingPoint,
    /// Capacity of an egress queue in octets.
    pub queue: u64,
}

impl PortThresholds {
    /// Returns the thresholds in a simulation, by rate of the ports.
    #[must_use]
    pub fn of(simulation: &Simulation) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for node in &simulation.nodes {
            let NodeKind::Switch(switch) = &node.kind else {
                continue;
            };
            for (link, thresholds) in &switch.ports {
                let Some(link) = simulation.links.get(*link) else {
                    continue;
                };
                let one = Self::new(link.rate, thresholds);
                match all.iter_mut().find(|known| known.is_like(&one)) {
                    Some(known) => known.ports += 1,
                    None => all.push(one),
                }
            }
        }
        all.sort_by_key(|one| (one.rate, one.marking.kmin, one.marking.kmax, one.queue));
        all
    }

    const fn new(rate: Rate, thresholds: &Thresholds) -> Self {
        Self {
            rate,
            ports: 1,
            marking: thresholds.marking,
            marks_at: thresholds.marks_at,
            queue: thresholds.queue,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let ports = self.ports;
        *self
            == Self {
                ports,
                ..other.clone()
            }
    }
}

impl Display for PortThresholds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [kmin, kmax, queue] = [self.marking.kmin, self.marking.kmax, self.queue]
            .map(|octets| show(Unit::Octets, octets as f64));
        let (rate, pmax, at) = (self.rate, self.marking.pmax, self.marks_at.id());
        write!(
            f,
            "Kmin {kmin}, Kmax {kmax}, Pmax {pmax} on {at}, queue {queue} at {rate}"
        )
    }
}

/// Maximum number of different thresholds that are listed in a heading.
const LISTED: usize = 4;

/// Formats the thresholds of the ports of all switches.
fn text(thresholds: &[PortThresholds]) -> String {
    let listed = thresholds
        .iter()
        .take(LISTED)
        .map(PortThresholds::to_string);
    let mut listed: Vec<String> = listed.collect();
    if let Some(more) = thresholds
        .len()
        .checked_sub(LISTED)
        .filter(|more| *more > 0)
    {
        listed.push(format!("{more} others (see --json)"));
    }
    listed.join("; ")
}

/// Returns the thresholds for the heading of a group, if all mechanisms have the same.
pub(super) fn common(group: &Group) -> Option<String> {
    let mut rows = group.rows.iter().filter(|row| row.runs().is_some());
    let first = rows.next()?;
    let same = rows.all(|row| row.thresholds == first.thresholds);
    (same && !first.thresholds.is_empty())
        .then(|| format!("thresholds of every mechanism: {}", text(&first.thresholds)))
}

/// Returns a remark if a queue at Kmax is sent before receivers' CNPs can have an effect, and the
/// thresholds are not chosen for them.
pub(super) fn too_shallow(group: &Group) -> Option<String> {
    let rows = &mut group.rows.iter();
    let row = rows.find(|row| row.mechanism == Mechanism::Cnp && row.runs().is_some())?;
    let waits = row
        .thresholds
        .iter()
        .map(|port| port.rate.time(port.marking.kmax));
    let (longest, round) = (waits.max()?, group.round_trip);
    (row.best.is_none() && longest < round).then(|| {
        format!(
            "Thresholds for short distances: a queue at Kmax lasts {longest} at most, less than the \
             round trip of {round} that receivers' CNPs take: their link may run idle; compare each \
             mechanism with the threshold that suits it ({EACH_AT_ITS_BEST} \
             defaults.marking.kmin=...)"
        )
    })
}

/// Returns remarks on the values chosen for each mechanism, and its thresholds where they differ.
pub(super) fn remarks(group: &Group) -> Vec<String> {
    let differ = common(group).is_none();
    let remark = |row: &Row| {
        let best = row.best.as_ref();
        let is_listed = differ && !row.thresholds.is_empty();
        if best.is_none() && !is_listed {
            return None;
        }
        let chosen = best.map(|best| {
            let tried = best.tried.iter().map(|(value, figures)| match figures {
                Ok((goodput, queue)) => {
                    let goodput = show(Unit::BitsPerSecond, *goodput);
                    format!("{value}: {goodput}, {}", show(Unit::Octets, *queue))
                }
                Err(why) => format!("{value}: not applicable, {why}"),
            });
            let tried: Vec<String> = tried.collect();
            let (key, value) = (&best.key, &best.value);
            format!(
                "at its best with {key}={value} (goodput and mean queue with {})",
                tried.join("; ")
            )
        });
        let thresholds = differ.then(|| text(&row.thresholds));
        let parts: Vec<String> = chosen.into_iter().chain(thresholds).collect();
        Some(format!(
            "Thresholds: {}: {}",
            row.mechanism.id(),
            parts.join(": ")
        ))
    };
    group.rows.iter().filter_map(remark).collect()
}
