//! Builds a simulation from a file's keys: topology, addresses, roles, flows, faults and
//! injections, in this order.

use super::addresses;
use super::error::Refusal;
use super::faults;
use super::flows;
use super::model::Simulation;
use super::pairs;
use super::qps;
use super::roles::Roles;
use super::schema::File;
use super::topology::Topology;
use crate::units::Ps;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;

/// Default start time of captures: 1 January 2026, 0:00 UTC.
const EPOCH: u64 = 1_767_225_600;
/// Default interval of routing advertisements.
const ADVERTISED: Ps = Ps::from_nanos(1_000_000);

/// Builds the simulation that `file` describes.
pub(super) fn simulation(file: &File) -> Result<Simulation, Refusal> {
    let duration = file.duration.0;
    let topology = Topology::new(file)?;
    let addresses = addresses::assign(&topology)?;
    let pairs = pairs::pairs(file, &topology)?;
    let roles = Roles::new(file, &topology, &addresses, &pairs)?;
    let flows = flows::flows(file, &roles, &pairs)?;
    if flows.is_empty() {
        return Err(Refusal::whole(
            "there are no flows; a scenario needs [[flow]] entries",
        ));
    }
    let mut nodes = roles.nodes()?;
    qps::configure(&topology, &flows, &mut nodes)?;
    // Defaults to half of the duration, also if the file's value is not below the duration.
    let warm_up = file.compare.warm_up.filter(|warm_up| *warm_up < duration);
    Ok(Simulation {
        seed: file.seed,
        duration,
        warm_up: warm_up.unwrap_or(Ps(duration.0 / 2)),
        compare_for: file.compare.duration.map(|span| span.0),
        mechanism: file.mechanism,
        profile: file.profile.clone(),
        epoch: file.epoch.map_or(EPOCH, |epoch| epoch.0) * 1_000_000_000,
        snap_len: file.snap_len.map_or(0, |octets| octets.0),
        cnp_dscp: file
            .cnp_dscp
            .map_or(DEFAULT_TRAFFIC_CLASS >> 2, |dscp| dscp.0),
        nodes,
        vantage_points: faults::vantage_points(file, &topology, &flows)?,
        faults: faults::faults(file, &topology)?,
        injections: faults::injections(file, &topology, &addresses, &flows)?,
        advertise_interval: file
            .advertise_interval
            .map_or(ADVERTISED, |interval| interval.0),
        flows,
        links: topology.links,
    })
}
