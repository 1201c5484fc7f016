//! Data with IOAM traces, and Fast CNPs with option 2 that carry them.

use crate::gallery::cast::{CNP_V6, DATA_V6, FAST_V6};
use crate::gallery::messages::{HOP_TRACE, PATH, ioam, option2, trace};
use crate::gallery::scene::Scene;
use fcn_wire::compose::Part;
use fcn_wire::ioam::{NodeValues, OptType, TraceType, fill_preallocated};
use fcn_wire::{Result, Rule};

const PRE: OptType = OptType::Preallocated;
const INCREMENTAL: OptType = OptType::Incremental;
/// Every bit with a meaning: 0 to 11, and the opaque state snapshot.
const EVERY_FIELD: TraceType = TraceType::from_bits(0xFF_F002);

pub fn compose(scene: &mut Scene) -> Result<()> {
    let full = growing(scene)?;
    fast(
        scene,
        "Fast CNP with option 2: node 0x301, passed last, stands first and has the deepest queue",
        PRE,
        &full,
    )?;
    incremental(scene)?;
    fields(scene)?;
    limits(scene)?;
    scene.say(
        "The same trace from the receiver",
        &scene.fast_cnp(CNP_V6, &[option2(PRE, &full)]),
    )?;
    Ok(())
}

/// A Fast CNP from the switch with option 2 around `trace`.
fn fast<'a>(
    scene: &'a mut Scene,
    comment: &str,
    opt_type: OptType,
    trace: &[u8],
) -> Result<&'a mut Scene> {
    scene.say(
        comment,
        &scene.fast_cnp(FAST_V6, &[option2(opt_type, trace)]),
    )
}

/// Data with `trace` in its Hop-by-Hop Options header.
fn traced(
    scene: &mut Scene,
    comment: &str,
    opt_type: OptType,
    trace: &[u8],
    psn: u32,
) -> Result<()> {
    let option = [ioam(opt_type, trace)];
    let parts = [&[DATA_V6, Part::HopByHop(&option)], &scene.data(psn)[..]];
    scene.say(comment, &parts.concat())?;
    Ok(())
}

/// Data on its way past three nodes; returns the full trace.
fn growing(scene: &mut Scene) -> Result<Vec<u8>> {
    let mut bytes = trace(PRE, HOP_TRACE, 3 * HOP_TRACE.node_len() * 4, &[])?;
    for (passed, node) in PATH.iter().enumerate() {
        let comment = format!("Data with a pre-allocated trace, {passed} of 3 nodes filled");
        traced(scene, &comment, PRE, &bytes, 0x300)?;
        fill_preallocated(&mut bytes, node)?;
    }
    let comment = "Data with a pre-allocated trace, 3 of 3 nodes filled: here it meets congestion";
    traced(scene, comment, PRE, &bytes, 0x300)?;
    Ok(bytes)
}

fn incremental(scene: &mut Scene) -> Result<()> {
    let mut bytes = trace(INCREMENTAL, HOP_TRACE, 0, &PATH[..2])?;
    // RemainingLen: room for one node more.
    bytes[3] |= HOP_TRACE.node_len() as u8;
    let comment = "Data with an incremental trace of two nodes";
    traced(scene, comment, INCREMENTAL, &bytes, 0x301)?;
    fast(
        scene,
        "Fast CNP with that incremental trace",
        INCREMENTAL,
        &bytes,
    )?;
    Ok(())
}

fn fields(scene: &mut Scene) -> Result<()> {
    let opaque = NodeValues {
        opaque: (0x00_2A_01, b"8 octets"),
        ..PATH[2]
    };
    fast(
        scene,
        "Every defined data field, opaque state snapshots included (one empty, one of 8 octets)",
        INCREMENTAL,
        &trace(INCREMENTAL, EVERY_FIELD, 0, &[PATH[1], opaque])?,
    )?;
    for bit in (0..12).chain([TraceType::OPAQUE]) {
        let alone = TraceType::default().with(bit);
        fast(
            scene,
            &format!("Bit {bit} of the trace type alone, three nodes"),
            INCREMENTAL,
            &trace(INCREMENTAL, alone, 0, &[PATH[0], PATH[1], opaque])?,
        )?;
    }
    let wide = TraceType::default().with(8).with(9).with(10);
    fast(
        scene,
        "Wide fields, room for two nodes more",
        PRE,
        &trace(PRE, wide, 2 * 4 * wide.node_len(), &PATH[2..])?,
    )?;
    Ok(())
}

fn limits(scene: &mut Scene) -> Result<()> {
    let mut overflowed = trace(PRE, HOP_TRACE, 0, &PATH[..1])?;
    fill_preallocated(&mut overflowed, &PATH[1])?;
    fast(
        scene,
        "Overflow: the second node found no room",
        PRE,
        &overflowed,
    )?
    .breaks(&[Rule::IoamOverflow]);
    let none = trace(PRE, HOP_TRACE, 0, &[])?;
    fast(scene, "A trace without a node", PRE, &none)?;
    let most = vec![PATH[2]; 14];
    fast(
        scene,
        "14 nodes: the longest trace of this type that option 2 holds (250 octets of 255)",
        PRE,
        &trace(PRE, HOP_TRACE, 0, &most)?,
    )?;
    Ok(())
}
