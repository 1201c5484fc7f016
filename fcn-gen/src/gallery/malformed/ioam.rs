//! Defects of IOAM traces, in option 2 of Fast CNPs and in data.

use crate::gallery::cast::{DATA_V6, FAST_V6, RECEIVER};
use crate::gallery::messages::{HOP_TRACE, PATH, ioam, option2, trace};
use crate::gallery::scene::Scene;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, TraceType, fill_preallocated};
use fcn_wire::{Result, Rule};

const PRE: OptType = OptType::Preallocated;
const INCREMENTAL: OptType = OptType::Incremental;
/// Octets free in the good trace.
const FREE: usize = 20;

/// A trace of three nodes in which nothing is wrong, although its free room is no whole number of nodes.
fn good() -> Result<Vec<u8>> {
    trace(PRE, HOP_TRACE, FREE, &PATH)
}

/// The good trace, changed.
fn edited(change: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>> {
    let mut bytes = good()?;
    change(&mut bytes);
    Ok(bytes)
}

/// The good trace with another NodeLen.
fn node_len(units: u8) -> Result<Vec<u8>> {
    edited(|t| t[2] = t[2] & 0x07 | units << 3)
}

pub fn compose(scene: &mut Scene) -> Result<()> {
    fast(scene, "A good one first", PRE, &good()?, &[])?;
    node_lengths(scene)?;
    lists(scene)?;
    header(scene)?;
    option(scene)?;
    in_data(scene)
}

/// A Fast CNP with option 2 around `trace`.
fn fast(
    scene: &mut Scene,
    comment: &str,
    opt_type: OptType,
    trace: &[u8],
    breaks: &[Rule],
) -> Result<()> {
    scene
        .say(
            comment,
            &scene.fast_cnp(FAST_V6, &[option2(opt_type, trace)]),
        )?
        .breaks(breaks);
    Ok(())
}

fn node_lengths(scene: &mut Scene) -> Result<()> {
    for (comment, units, rule) in [
        ("NodeLen 0", 0, Rule::IoamNodeLenZero),
        ("NodeLen 3, the trace type asks for 4", 3, Rule::IoamNodeLen),
        ("NodeLen 31", 31, Rule::IoamNodeLen),
    ] {
        fast(scene, comment, PRE, &node_len(units)?, &[rule])?;
    }
    Ok(())
}

fn lists(scene: &mut Scene) -> Result<()> {
    fast(
        scene,
        "RemainingLen 127",
        PRE,
        &edited(|t| t[3] |= 0x7F)?,
        &[Rule::IoamRemaining],
    )?;
    fast(
        scene,
        "RemainingLen 4 of 5: the list is no whole number of nodes",
        PRE,
        &edited(|t| t[3] = 4)?,
        &[Rule::IoamRagged],
    )?;
    fast(
        scene,
        "The last node cut off",
        PRE,
        &edited(|t| t.truncate(t.len() - 4))?,
        &[Rule::IoamRagged],
    )?;
    let opaque = TraceType::default().with(TraceType::OPAQUE);
    let mut long = trace(INCREMENTAL, opaque, 0, &[NodeValues::default()])?;
    long[8] = 255;
    fast(
        scene,
        "An opaque snapshot of 1020 octets that are not there",
        INCREMENTAL,
        &long,
        &[Rule::IoamRagged],
    )
}

fn header(scene: &mut Scene) -> Result<()> {
    fast(
        scene,
        "The reserved octet is not 0",
        PRE,
        &edited(|t| t[7] = 1)?,
        &[Rule::IoamReserved],
    )?;
    fast(
        scene,
        "Trace type bit 23, which is reserved",
        PRE,
        &edited(|t| t[6] |= 1)?,
        &[Rule::IoamReservedBit],
    )?;
    fast(
        scene,
        "The undefined flag: worth a note",
        PRE,
        &edited(|t| t[3] |= 0x80)?,
        &[Rule::IoamFlag],
    )?;
    fast(
        scene,
        "Undefined bit 12 of the trace type: 4 octets that nobody knows",
        INCREMENTAL,
        &trace(INCREMENTAL, HOP_TRACE.with(12), 0, &PATH)?,
        &[Rule::IoamUndefined],
    )?;
    let mut overflowed = trace(PRE, HOP_TRACE, 0, &PATH[..2])?;
    fill_preallocated(&mut overflowed, &PATH[2])?;
    fast(
        scene,
        "Overflow: the congested node, passed last, found no room; worth a note",
        PRE,
        &overflowed,
        &[Rule::IoamOverflow],
    )?;
    fast(
        scene,
        "Shorter than its header",
        PRE,
        &edited(|t| t.truncate(6))?,
        &[Rule::IoamMalformed],
    )
}

/// What stands in option 2 in front of the trace.
fn option(scene: &mut Scene) -> Result<()> {
    let good = good()?;
    fast(
        scene,
        "Direct export, which is no trace",
        OptType::Other(4),
        &good,
        &[Rule::FastCnpIoamType],
    )?;
    let reserved = OptionPart::FastCnp(FastCnpRepr::Option2 {
        ioam: IoamOption {
            reserved: 9,
            opt_type: PRE,
            body: &good,
        },
        original_destination: RECEIVER,
    });
    scene
        .say(
            "The reserved octet of option 2 is not 0",
            &scene.fast_cnp(FAST_V6, &[reserved]),
        )?
        .breaks(&[Rule::FastCnpReserved]);
    Ok(())
}

fn in_data(scene: &mut Scene) -> Result<()> {
    let (zero, good) = (node_len(0)?, good()?);
    let reserved = OptionPart::Ioam(IoamOption {
        reserved: 1,
        opt_type: PRE,
        body: &good,
    });
    let short = OptionPart::Raw(scene.profile().ioam_option, (4, 0), &[0]);
    for (comment, option, rule) in [
        (
            "Data with NodeLen 0 in its Hop-by-Hop trace",
            ioam(PRE, &zero),
            Rule::IoamNodeLenZero,
        ),
        (
            "Data whose IOAM option has a reserved octet that is not 0",
            reserved,
            Rule::IoamReserved,
        ),
        (
            "Data whose IOAM option has one octet",
            short,
            Rule::IoamMalformed,
        ),
    ] {
        let options = [option];
        let headers = [DATA_V6, Part::HopByHop(&options)];
        scene
            .say(comment, &[&headers, &scene.data(0x701)[..]].concat())?
            .breaks(&[rule]);
    }
    Ok(())
}
