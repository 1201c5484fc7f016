//! Defects of Fast CNPs. Those of the trace in option 2 are in `ioam.rs`.

use super::BEHIND_V6;
use crate::gallery::cast::{FAST_V6, OPTION1, RECEIVER, RECEIVER_QP, SENDER, SWITCH};
use crate::gallery::messages::{HOP_TRACE, PATH, option2, trace};
use crate::gallery::scene::Scene;
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::OptType;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::{Result, Rule};
use std::net::Ipv6Addr;

/// Type of the option behind the options header's first two octets.
const OPTION: usize = BEHIND_V6 + 2;
/// The right header.
const OPTIONS1: Part<'static> = Part::DestinationOptions(&[OPTION1]);

pub fn compose(scene: &mut Scene) -> Result<()> {
    lengths(scene)?;
    headers(scene)?;
    alignment(scene)?;
    addresses(scene)?;
    behind(scene)?;
    icrcs(scene)?;
    scene.say("A good one behind them", &scene.fast_cnp1())?;
    Ok(())
}

fn lengths(scene: &mut Scene) -> Result<()> {
    let good = scene.fast_cnp1();
    scene
        .say("Opt Data Len 15: the address is not whole", &good)?
        .spoil(|b| {
            b[OPTION + 1] = 15;
            b[OPTION + 17] = 0;
        })
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 20", &good)?
        .spoil(|b| b[OPTION + 1] = 20)
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 0", &good)?
        .spoil(|b| {
            b[OPTION + 1] = 0;
            b[OPTION + 2..OPTION + 18].fill(0);
        })
        .breaks(&[Rule::FastCnpLength1]);
    scene
        .say("Opt Data Len 255 runs past the header", &good)?
        .spoil(|b| b[OPTION + 1] = 255)
        .breaks(&[Rule::FastCnpMalformed]);
    let short = [OptionPart::Raw(
        scene.profile().fast_cnp_option2,
        (4, 0),
        &[0; 17],
    )];
    scene
        .say(
            "Option 2 too short for an address and an IOAM header",
            &scene.fast_cnp(FAST_V6, &short),
        )?
        .breaks(&[Rule::FastCnpMalformed]);
    Ok(())
}

fn headers(scene: &mut Scene) -> Result<()> {
    let cnp = scene.cnp(RECEIVER_QP);
    let hop_by_hop = [FAST_V6, Part::HopByHop(&[OPTION1])];
    scene
        .say(
            "In a Hop-by-Hop Options header",
            &[&hop_by_hop, &cnp[..]].concat(),
        )?
        .breaks(&[Rule::FastCnpHopByHop]);
    scene
        .say(
            "Option 1 twice",
            &scene.fast_cnp(FAST_V6, &[OPTION1, OPTION1]),
        )?
        .breaks(&[Rule::FastCnpSeveral]);
    let bytes = trace(OptType::Incremental, HOP_TRACE, 0, &PATH)?;
    let both = [OPTION1, option2(OptType::Incremental, &bytes)];
    scene
        .say("Options 1 and 2", &scene.fast_cnp(FAST_V6, &both))?
        .breaks(&[Rule::FastCnpSeveral]);
    let second = [FAST_V6, OPTIONS1, Part::DestinationOptions(&[])];
    scene
        .say(
            "A second Destination Options header",
            &[&second, &cnp[..]].concat(),
        )?
        .breaks(&[Rule::FastCnpSeveralHeaders]);
    let split = [FAST_V6, OPTIONS1, OPTIONS1];
    scene
        .say(
            "An option in each of two Destination Options headers",
            &[&split, &cnp[..]].concat(),
        )?
        .breaks(&[Rule::FastCnpSeveral, Rule::FastCnpSeveralHeaders]);
    Ok(())
}

fn alignment(scene: &mut Scene) -> Result<()> {
    let address = RECEIVER.octets();
    let odd = [OptionPart::Raw(
        scene.profile().fast_cnp_option1,
        (1, 0),
        &address,
    )];
    scene
        .say("Option 1 not at 4n+2", &scene.fast_cnp(FAST_V6, &odd))?
        .spoil(|b| {
            // One octet of padding in front instead of behind.
            b.copy_within(OPTION..OPTION + 18, OPTION + 1);
            b[OPTION] = 0;
            b[OPTION + 19..OPTION + 22].copy_from_slice(&[1, 1, 0]);
        })
        .breaks(&[Rule::FastCnpAlignment]);
    let mut data = vec![0, OptType::Incremental.code()];
    data.extend(trace(OptType::Incremental, HOP_TRACE, 0, &PATH)?);
    data.extend(address);
    let odd = [OptionPart::Raw(
        scene.profile().fast_cnp_option2,
        (4, 2),
        &data,
    )];
    scene
        .say("Option 2 not at 4n", &scene.fast_cnp(FAST_V6, &odd))?
        .breaks(&[Rule::FastCnpAlignment]);
    Ok(())
}

fn addresses(scene: &mut Scene) -> Result<()> {
    let to_receiver = Part::v6(SWITCH, RECEIVER, DEFAULT_TRAFFIC_CLASS);
    scene
        .say(
            "Addressed to the receiver",
            &scene.fast_cnp(to_receiver, &[OPTION1]),
        )?
        .breaks(&[Rule::FastCnpAddressed]);
    for (comment, source) in [
        (
            "From a link-local address",
            Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3),
        ),
        ("From the unspecified address", Ipv6Addr::UNSPECIFIED),
        ("From ::1", Ipv6Addr::LOCALHOST),
    ] {
        let ip = Part::v6(source, SENDER, DEFAULT_TRAFFIC_CLASS);
        scene
            .say(comment, &scene.fast_cnp(ip, &[OPTION1]))?
            .breaks(&[Rule::FastCnpSource]);
    }
    for (comment, original_destination) in [
        (
            "The original destination is a multicast address",
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        ),
        (
            "The original destination is the unspecified address",
            Ipv6Addr::UNSPECIFIED,
        ),
    ] {
        let option = OptionPart::FastCnp(FastCnpRepr::Option1 {
            original_destination,
        });
        scene
            .say(comment, &scene.fast_cnp(FAST_V6, &[option]))?
            .breaks(&[Rule::FastCnpOriginal]);
    }
    Ok(())
}

/// What the option precedes.
fn behind(scene: &mut Scene) -> Result<()> {
    let data = [&[FAST_V6, OPTIONS1], &scene.data(0x700)[..]].concat();
    scene
        .say("In front of a data packet", &data)?
        .breaks(&[Rule::FastCnpNotCnp]);
    let nothing = Part::Payload {
        ether_type: 0,
        protocol: next_header::NONE,
        bytes: &[],
    };
    scene
        .say("In front of nothing", &[FAST_V6, OPTIONS1, nothing])?
        .breaks(&[Rule::FastCnpNotCnp]);
    let bth = BEHIND_V6 + 24 + 8;
    scene
        .say("The CNP behind it has BECN 0", &scene.fast_cnp1())?
        .spoil(|b| b[bth + 4] = 0)
        .breaks(&[Rule::CnpBecn]);
    let short = [
        FAST_V6,
        OPTIONS1,
        scene.cnp_udp(),
        Part::Bth(CnpRepr::new(RECEIVER_QP).bth),
        Part::Bytes(&[0; 12]),
        scene.icrc(),
    ];
    scene
        .say("The CNP behind it is 4 octets short", &short)?
        .breaks(&[Rule::CnpMalformed]);
    Ok(())
}

fn icrcs(scene: &mut Scene) -> Result<()> {
    let [udp, cnp, _] = scene.cnp(RECEIVER_QP);
    let icrc = Part::Icrc(Policy::Corrupt);
    scene
        .say(
            "ICRC wrong by every reading",
            &[FAST_V6, OPTIONS1, udp, cnp, icrc],
        )?
        .breaks(&[Rule::RoceIcrcBad]);
    Ok(())
}
