//! The Proxy Node Capability in IS-IS, OSPFv2, OSPFv3 and BGP.

use crate::gallery::cast::{PROXY, PROXY4};
use crate::gallery::routing::{
    ISIS_PNC, OSPF_PNC, OTHER_CHARACTERISTIC, bgp, hosts, isis, lsp, ospf2, ospf2_update, ospf3,
    ospf3_update, reach, update,
};
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::pnc::Prefix;
use fcn_wire::pnc::isis::ReachKind;
use fcn_wire::pnc::ospf3::LsaKind;

pub fn compose(scene: &mut Scene) -> Result<()> {
    let [host4, host6] = hosts();
    let net = Prefix::new(PROXY4.into(), 24).unwrap_or(host4);
    let topology = ReachKind::MultiTopology { id: 2 };
    let locator = ReachKind::Srv6Locator {
        id: 0,
        algorithm: 0,
    };
    let prefixes = [
        reach(ReachKind::Plain, host4, Some(ISIS_PNC)),
        reach(ReachKind::Plain, net, Some(&[0x20])),
        reach(ReachKind::Plain, host6, Some(ISIS_PNC)),
        reach(topology, host4, Some(ISIS_PNC)),
        reach(topology, host6, Some(&[0x41, 0x80])),
        reach(locator, host6, Some(ISIS_PNC)),
    ];
    scene.framed(
        "IS-IS LSP: the flag at TLVs 135, 236, 235, 237 and 27, and a prefix without it",
        &isis(&lsp(&prefixes)?),
    )?;
    scene.say(
        "OSPFv2: Extended Prefix Opaque LSA with PNC",
        &ospf2(&ospf2_update(host4, Some(OSPF_PNC))?),
    )?;
    for (kind, name) in [
        (LsaKind::IntraAreaPrefix, "E-Intra-Area-Prefix"),
        (LsaKind::InterAreaPrefix, "E-Inter-Area-Prefix"),
        (LsaKind::AsExternal, "E-AS-External"),
    ] {
        let bytes = ospf3_update(kind, host6, Some(OSPF_PNC))?;
        scene.say(&format!("OSPFv3: {name} LSA with PNC"), &ospf3(&bytes))?;
    }
    let both = [
        update(
            &[host4],
            PROXY4.into(),
            PROXY4.into(),
            &[OTHER_CHARACTERISTIC, scene.pnc()],
        )?,
        update(&[host6], PROXY.into(), PROXY.into(), &[scene.pnc()])?,
    ];
    scene.say(
        "BGP: two UPDATEs in a segment, IPv4 by NEXT_HOP and IPv6 by MP_REACH_NLRI, attribute 39 with PNC",
        &bgp(1, &both.concat()),
    )?;
    Ok(())
}
