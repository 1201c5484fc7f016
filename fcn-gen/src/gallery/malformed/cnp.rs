//! Defects of plain CNPs, and of RoCEv2 in general.

use super::BEHIND_V6;
use crate::gallery::cast::{CNP_V6, DATA_V6, RECEIVER_QP, RECEIVER4, SENDER_QP, SENDER4};
use crate::gallery::scene::Scene;
use fcn_wire::bth::{BthRepr, Opcode};
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::Part;
use fcn_wire::icrc::Policy;
use fcn_wire::{Result, Rule};

/// First octet of the BTH.
const BTH: usize = BEHIND_V6 + 8;

pub fn compose(scene: &mut Scene) -> Result<()> {
    fields(scene)?;
    lengths(scene)?;
    icrcs(scene)?;
    let good = [&[CNP_V6], &scene.cnp(SENDER_QP)[..]].concat();
    scene.say("A good one behind them", &good)?;
    Ok(())
}

fn fields(scene: &mut Scene) -> Result<()> {
    let good = [&[CNP_V6], &scene.cnp(SENDER_QP)[..]].concat();
    for (comment, octet, value, rule) in [
        ("BECN is 0", 4, 0, Rule::CnpBecn),
        ("FECN instead of BECN", 4, 0x80, Rule::CnpBecn),
        ("PSN is 7", 11, 7, Rule::CnpPsn),
        (
            "The first reserved octet is not 0",
            12,
            0x80,
            Rule::CnpReserved,
        ),
        ("A reserved octet is not 0", 20, 1, Rule::CnpReserved),
        ("Transport version 1", 1, 1, Rule::RoceTver),
        ("InfiniBand's own opcode", 0, 0x80, Rule::RoceIbCnp),
    ] {
        scene
            .say(comment, &good)?
            .spoil(|b| b[BTH + octet] = value)
            .breaks(&[rule]);
    }
    scene
        .say("All at once", &good)?
        .spoil(|b| {
            b[BTH + 1] = 2;
            b[BTH + 4] = 0x80;
            b[BTH + 9] = 1;
            b[BTH + 12] = 0xFF;
        })
        .breaks(&[
            Rule::RoceTver,
            Rule::CnpBecn,
            Rule::CnpPsn,
            Rule::CnpReserved,
        ]);
    Ok(())
}

fn lengths(scene: &mut Scene) -> Result<()> {
    let (udp, icrc) = (scene.cnp_udp(), scene.icrc());
    let bth = Part::Bth(CnpRepr::new(SENDER_QP).bth);
    for (comment, reserved) in [
        ("12 reserved octets instead of 16", &[0; 12][..]),
        ("20 reserved octets instead of 16", &[0; 20]),
        ("No reserved octets", &[]),
    ] {
        scene
            .say(comment, &[CNP_V6, udp, bth, Part::Bytes(reserved), icrc])?
            .breaks(&[Rule::CnpMalformed]);
    }
    let write = Part::Bth(BthRepr::new(Opcode::RC_WRITE_ONLY, RECEIVER_QP, 1));
    scene
        .say(
            "RDMA WRITE Only without its RETH",
            &[DATA_V6, udp, write, icrc],
        )?
        .breaks(&[Rule::RoceMalformed]);
    let half = [0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 1];
    scene
        .say("Shorter than a BTH", &[CNP_V6, udp, Part::Bytes(&half)])?
        .breaks(&[Rule::RoceMalformed]);
    scene
        .say("One octet", &[CNP_V6, udp, Part::Bytes(&half[..1])])?
        .breaks(&[Rule::RoceMalformed]);
    Ok(())
}

fn icrcs(scene: &mut Scene) -> Result<()> {
    let [udp, cnp, _] = scene.cnp(SENDER_QP);
    let v4 = Part::v4(RECEIVER4, SENDER4, DEFAULT_TRAFFIC_CLASS);
    for (comment, ip, policy) in [
        ("ICRC wrong", CNP_V6, Policy::Corrupt),
        ("ICRC left 0, over IPv4", v4, Policy::Zero),
    ] {
        scene
            .say(comment, &[ip, udp, cnp, Part::Icrc(policy)])?
            .breaks(&[Rule::RoceIcrcBad]);
    }
    let [udp, bth, payload, _] = scene.data(0x6FF);
    scene
        .say(
            "ICRC of a data packet wrong",
            &[DATA_V6, udp, bth, payload, Part::Icrc(Policy::Corrupt)],
        )?
        .breaks(&[Rule::RoceIcrcBad]);
    Ok(())
}
