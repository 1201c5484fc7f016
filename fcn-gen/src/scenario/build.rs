//! From a file's keys to a simulation: topology, addresses, roles, flows, happenings, in this order.

use super::addresses;
use super::check;
use super::error::Refusal;
use super::flows::{self, Maker};
use super::happenings;
use super::model::{Mechanism, Simulation};
use super::qps;
use super::roles::Roles;
use super::schema::{File, Maybe, MechanismText};
use super::text::DurationText;
use super::topology::Topology;
use crate::units::Ps;
use toml::Spanned;

/// When captures were taken that do not say: 1 January 2026, 0:00 UTC.
const EPOCH: u64 = 1_767_225_600;
/// Last second that fits 64 bits of nanoseconds, with an hour to spare.
const LAST_EPOCH: u64 = u64::MAX / 1_000_000_000 - 3_601;
/// Octets kept of each packet at least: all headers up to a BTH behind a tunnel and a full trace.
const LEAST_SNAP: u32 = 64;
/// How often routing is advertised, where the file says nothing.
const ADVERTISED: Ps = Ps::from_nanos(1_000_000);

/// The simulation that `file` describes.
pub(super) fn simulation(file: &File) -> Result<Simulation, Refusal> {
    let mechanism = mechanism(*file.mechanism.get_ref());
    let duration = duration(&file.duration)?;
    let topology = Topology::of(file)?;
    let addresses = addresses::assign(&topology)?;
    let pairs = flows::pairs(file, &topology)?;
    let roles = Roles::new(file, &topology, &addresses, mechanism, &pairs)?;
    let flows =
        Maker::new(file, &topology, &addresses, &roles, mechanism, duration)?.flows(&pairs)?;
    if flows.is_empty() {
        return Err(Refusal::whole(
            "there are no flows; a scenario needs [[flow]] entries",
        ));
    }
    let mut nodes = roles.nodes()?;
    qps::configure(&topology, &flows, &mut nodes)?;
    let snap_len = match &file.snap_len {
        Some(len) if *len.get_ref() != 0 => {
            check::within(&file.snap_len, 0, LEAST_SNAP..=65_535, "snap_len (0: all)")?
        }
        _ => 0,
    };
    Ok(Simulation {
        seed: file.seed,
        duration,
        warm_up: warm_up(&file.compare.warm_up, duration),
        compare_for: match &file.compare.duration {
            Some(text) => Some(self::duration(text)?),
            None => None,
        },
        mechanism,
        profile: file.profile.clone(),
        epoch: check::within(
            &file.epoch,
            EPOCH,
            0..=LAST_EPOCH,
            "time in seconds since 1970",
        )? * 1_000_000_000,
        snap_len,
        nodes,
        vantage_points: happenings::vantage_points(file, &topology, &flows)?,
        faults: happenings::faults(file, &topology, duration)?,
        injections: happenings::injections(file, &topology, &addresses, &flows)?,
        advertise_interval: advertise_interval(&file.advertise_interval)?,
        flows,
        links: topology.links,
    })
}

const fn mechanism(text: MechanismText) -> Mechanism {
    match text {
        MechanismText::None => Mechanism::None,
        MechanismText::Pfc => Mechanism::Pfc,
        MechanismText::Cnp => Mechanism::Cnp,
        MechanismText::FastCnp => Mechanism::FastCnp,
        MechanismText::FastCnpIoam => Mechanism::FastCnpIoam,
        MechanismText::Proxy => Mechanism::Proxy,
        MechanismText::WanFcn => Mechanism::WanFcn,
    }
}

fn duration(text: &Spanned<DurationText>) -> Result<Ps, Refusal> {
    match text.get_ref().0 {
        Ps(0) => Err(Refusal::at(
            text,
            "a simulation of no time shows nothing; \"2ms\" is usual",
        )),
        duration => Ok(duration),
    }
}

/// Half of the duration, where the file says nothing, or more than what is played.
fn warm_up(text: &Maybe<DurationText>, duration: Ps) -> Ps {
    text.as_ref()
        .map(|warm_up| warm_up.get_ref().0)
        .filter(|warm_up| *warm_up < duration)
        .unwrap_or(Ps(duration.0 / 2))
}

fn advertise_interval(text: &Maybe<DurationText>) -> Result<Ps, Refusal> {
    match text {
        Some(interval) if interval.get_ref().0 < Ps::from_nanos(1_000) => Err(Refusal::at(
            interval,
            "that is too often; at least \"1us\" is allowed",
        )),
        Some(interval) => Ok(interval.get_ref().0),
        None => Ok(ADVERTISED),
    }
}
