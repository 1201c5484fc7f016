//! From a file's keys to a simulation: topology, addresses, roles, flows, faults and injections, in this order.

use super::addresses;
use super::error::{Refusal, refuse};
use super::faults;
use super::flows::Maker;
use super::model::Simulation;
use super::pairs;
use super::qps;
use super::roles::Roles;
use super::schema::File;
use super::topology::Topology;
use crate::units::Ps;

/// When captures were taken that do not say: 1 January 2026, 0:00 UTC.
const EPOCH: u64 = 1_767_225_600;
/// Octets kept of each packet at least: all headers up to a BTH behind a tunnel and a full trace.
const LEAST_SNAP: u32 = 64;
/// How often routing is advertised, where the file says nothing.
const ADVERTISED: Ps = Ps::from_nanos(1_000_000);

/// The simulation that `file` describes.
pub(super) fn simulation(file: &File) -> Result<Simulation, Refusal> {
    let duration = file.duration.0;
    let snap_len = file.snap_len;
    if snap_len != 0 && !(LEAST_SNAP..=65_535).contains(&snap_len) {
        refuse!(
            "snap_len",
            "{snap_len} is out of range; 0 (all) and {LEAST_SNAP} to 65535 are allowed"
        );
    }
    let advertise_interval = file.advertise_interval.unwrap_or(ADVERTISED);
    if advertise_interval < Ps::from_nanos(1_000) {
        refuse!(
            "advertise_interval",
            "that is too often; at least \"1us\" is allowed"
        );
    }
    let topology = Topology::of(file)?;
    let addresses = addresses::assign(&topology)?;
    let pairs = pairs::pairs(file, &topology)?;
    let roles = Roles::new(file, &topology, &addresses, &pairs)?;
    let flows = Maker::new(file, &roles).flows(&pairs)?;
    if flows.is_empty() {
        return Err(Refusal::whole(
            "there are no flows; a scenario needs [[flow]] entries",
        ));
    }
    let mut nodes = roles.nodes()?;
    qps::configure(&topology, &flows, &mut nodes)?;
    // Half of the duration, where the file says nothing, or more than what is played.
    let warm_up = file.compare.warm_up.filter(|warm_up| *warm_up < duration);
    Ok(Simulation {
        seed: file.seed,
        duration,
        warm_up: warm_up.unwrap_or(Ps(duration.0 / 2)),
        compare_for: file.compare.duration.map(|span| span.0),
        mechanism: file.mechanism,
        profile: file.profile.clone(),
        epoch: file.epoch.map_or(EPOCH, |epoch| epoch.0) * 1_000_000_000,
        snap_len,
        nodes,
        vantage_points: faults::vantage_points(file, &topology, &flows)?,
        faults: faults::faults(file, &topology)?,
        injections: faults::injections(file, &topology, &addresses, &flows)?,
        advertise_interval,
        flows,
        links: topology.links,
    })
}
