//! Defects of routing messages that advertise the Proxy Node Capability.

use crate::gallery::cast::{PROXY, PROXY4, SWITCH, SWITCH4};
use crate::gallery::routing::{
    BACKBONE, ISIS_PNC, OSPF_PNC, OTHER_CHARACTERISTIC, ROUTER, bgp, hosts, isis, lsp, lsp_of,
    ospf2, ospf2_update, ospf2_update_of, ospf3, ospf3_update, ospf3_update_of, reach, update,
};
use crate::gallery::scene::Scene;
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{FLAG_READVERTISED, ReachKind, ReachRepr};
use fcn_wire::pnc::ospf2::{INTER_AREA, INTRA_AREA};
use fcn_wire::pnc::ospf3::LsaKind;
use fcn_wire::pnc::{Level, Prefix};
use fcn_wire::{Result, Rule};
use std::net::Ipv4Addr;

/// PDU length of an LSP behind its LLC (ISO/IEC 10589 section 9.8).
const PDU_LENGTH: usize = 3 + 8;

pub fn compose(scene: &mut Scene) -> Result<()> {
    igp_isis(scene)?;
    igp_ospf(scene)?;
    passed_on(scene)?;
    let mut session = Session { sequence: 1 };
    session.characteristics(scene)?;
    session.attributes(scene)
}

fn igp_isis(scene: &mut Scene) -> Result<()> {
    let [host4, _] = hosts();
    let net = Prefix::new(PROXY4.into(), 24).unwrap_or(host4);
    let plain = ReachKind::Plain;
    for (comment, prefix, flags, rule) in [
        (
            "IS-IS: PNC at a prefix that is no host",
            net,
            ISIS_PNC,
            Rule::PncNotHost,
        ),
        ("IS-IS: empty flags", host4, &[], Rule::PncFlagsLength),
    ] {
        let bytes = lsp(&[reach(plain, prefix, Some(flags))])?;
        scene.framed(comment, &isis(&bytes))?.breaks(&[rule]);
    }
    let mut bytes = lsp(&[reach(plain, host4, Some(ISIS_PNC))])?;
    bytes[PDU_LENGTH..][..2].fill(0xFF);
    scene
        .framed("IS-IS: PDU length 65535", &isis(&bytes))?
        .breaks(&[Rule::PncMalformed]);
    Ok(())
}

/// PNC that a router does not keep on the way to another level or area. No packet alone shows it.
fn passed_on(scene: &mut Scene) -> Result<()> {
    const AREA: Ipv4Addr = Ipv4Addr::new(0, 0, 0, 1);
    let (border, border_router) = (0x16, Ipv4Addr::new(10, 0, 0, 16));
    // Those of other frames are told apart by their prefixes.
    let [host4, host6] = [Prefix::host(SWITCH4.into()), Prefix::host(SWITCH.into())];
    let plain = ReachKind::Plain;
    for (from, to, name) in [
        (Level::L1, Level::L2, "level 1 to level 2"),
        (Level::L2, Level::L1, "level 2 to level 1"),
    ] {
        let host = if from == Level::L1 { host4 } else { host6 };
        let own = lsp_of(from, 0x15, &[reach(plain, host, Some(ISIS_PNC))])?;
        scene.framed(
            &format!("A good one, IS-IS: PNC to be passed on from {name}"),
            &isis(&own),
        )?;
        let again = ReachRepr {
            down: from == Level::L2,
            ..reach(plain, host, Some(&[FLAG_READVERTISED]))
        };
        let bytes = lsp_of(to, border, &[again])?;
        scene.framed(
            &format!("A good one for itself, IS-IS: from {name}, and PNC was not kept"),
            &isis(&bytes),
        )?;
    }
    let own = ospf2_update_of((ROUTER, AREA), INTRA_AREA, host4, Some(OSPF_PNC))?;
    scene.say(
        "A good one, OSPFv2: PNC to be passed on to the backbone",
        &ospf2(&own),
    )?;
    let to = (border_router, BACKBONE);
    let bytes = ospf2_update_of(to, INTER_AREA, host4, None)?;
    scene.say(
        "A good one for itself, OSPFv2: inter-area, and PNC was not kept",
        &ospf2(&bytes),
    )?;
    let own = ospf3_update_of(
        (ROUTER, AREA),
        LsaKind::IntraAreaPrefix,
        host6,
        Some(OSPF_PNC),
    )?;
    scene.say(
        "A good one, OSPFv3: PNC to be passed on to the backbone",
        &ospf3(&own),
    )?;
    let bytes = ospf3_update_of(to, LsaKind::InterAreaPrefix, host6, Some(&[0; 4]))?;
    scene.say(
        "A good one for itself, OSPFv3: inter-area, and PNC was not kept",
        &ospf3(&bytes),
    )?;
    Ok(())
}

fn igp_ospf(scene: &mut Scene) -> Result<()> {
    let [host4, host6] = hosts();
    let net4 = Prefix::new(PROXY4.into(), 24).unwrap_or(host4);
    let net6 = Prefix::new(PROXY.into(), 64).unwrap_or(host6);
    for (comment, prefix, flags, rule) in [
        (
            "OSPFv2: flags of 3 octets",
            host4,
            &OSPF_PNC[..3],
            Rule::PncFlagsLength,
        ),
        (
            "OSPFv2: flags of 8 octets, of which the bits set need 4",
            host4,
            &[0x20, 0, 0, 0, 0, 0, 0, 0],
            Rule::PncFlagsExcess,
        ),
        (
            "OSPFv2: PNC at a prefix that is no host",
            net4,
            OSPF_PNC,
            Rule::PncNotHost,
        ),
    ] {
        let bytes = ospf2_update(prefix, Some(flags))?;
        scene.say(comment, &ospf2(&bytes))?.breaks(&[rule]);
    }
    for (comment, prefix, flags, rule) in [
        (
            "OSPFv3: flags of 2 octets",
            host6,
            &OSPF_PNC[..2],
            Rule::PncFlagsLength,
        ),
        (
            "OSPFv3: PNC at a prefix that is no host",
            net6,
            OSPF_PNC,
            Rule::PncNotHost,
        ),
    ] {
        let bytes = ospf3_update(LsaKind::IntraAreaPrefix, prefix, Some(flags))?;
        scene.say(comment, &ospf3(&bytes))?.breaks(&[rule]);
    }
    Ok(())
}

/// One side of a BGP session.
struct Session {
    sequence: u32,
}

impl Session {
    fn say(&mut self, scene: &mut Scene, comment: &str, update: &[u8], rule: Rule) -> Result<()> {
        scene
            .say(comment, &bgp(self.sequence, update))?
            .breaks(&[rule]);
        self.sequence += update.len() as u32;
        Ok(())
    }

    fn characteristics(&mut self, scene: &mut Scene) -> Result<()> {
        let [host4, _] = hosts();
        let (proxy, pnc) = (PROXY4.into(), scene.pnc());
        let valued = CharacteristicRepr {
            value: &[0, 1],
            ..pnc
        };
        for (comment, of, characteristics, rule) in [
            (
                "BGP: PNC carries a value",
                proxy,
                &[valued][..],
                Rule::PncNhcLength,
            ),
            (
                "BGP: codes not in increasing order",
                proxy,
                &[pnc, OTHER_CHARACTERISTIC],
                Rule::PncNhcOrder,
            ),
            (
                "BGP: the same characteristic twice",
                proxy,
                &[pnc, pnc],
                Rule::PncNhcDuplicate,
            ),
            (
                "BGP: the attribute's next hop is not the route's",
                SWITCH4.into(),
                &[pnc],
                Rule::PncNhcNextHop,
            ),
        ] {
            let bytes = update(&[host4], proxy, of, characteristics)?;
            self.say(scene, comment, &bytes, rule)?;
        }
        Ok(())
    }

    fn attributes(&mut self, scene: &mut Scene) -> Result<()> {
        let [host4, _] = hosts();
        let (proxy, pnc) = (PROXY4.into(), scene.pnc());
        let good = update(&[host4], proxy, proxy, &[pnc])?;
        let mut bytes = good.clone();
        if let Some(at) = attribute_39(&bytes) {
            bytes[at] = 0x80;
        }
        let comment = "BGP: attribute 39 is not marked transitive";
        self.say(scene, comment, &bytes, Rule::PncNhcFlags)?;

        let mut bytes = good;
        if let Some(at) = attribute_39(&bytes) {
            bytes[at + CHARACTERISTIC + 3] = 255;
        }
        let comment = "BGP: a characteristic runs past the attribute";
        self.say(scene, comment, &bytes, Rule::PncNhcMalformed)?;

        let mut again = [0; 32];
        let len = NhcRepr {
            afi: 1,
            safi: 1,
            next_hop: proxy,
            characteristics: &[pnc],
        }
        .emit(&mut again)?;
        // A second attribute, first written as the value of a characteristic, then let out of it.
        let carrier = CharacteristicRepr {
            code: 1,
            value: &again[..len],
        };
        let mut bytes = update(&[host4], proxy, proxy, &[carrier])?;
        if let Some(at) = attribute_39(&bytes) {
            bytes[at + 2] -= len as u8;
            bytes[at + CHARACTERISTIC + 3] = 0;
        }
        self.say(scene, "BGP: attribute 39 twice", &bytes, Rule::PncSeveral)
    }
}

/// Octets from attribute 39 to its first characteristic: flags, type and length, then AFI, SAFI, and an IPv4 next hop
/// with its length.
const CHARACTERISTIC: usize = 3 + 4 + 4;

/// Where attribute 39, of fewer than 256 octets, begins in a BGP UPDATE.
fn attribute_39(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|w| w == [0xC0, 39])
}
