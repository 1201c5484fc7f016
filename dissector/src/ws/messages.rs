//! Our own dissectors: notifications to the proxy node and FCNs in the WAN, at their ports.

use super::draw::draw;
use super::handles;
use super::packet::{Call, Packet, Tree, Tvb, callbacks};
use super::seen::{Note, NoteKind, set_columns};
use super::{guard, notes, preferences};
use crate::names::P;
use crate::plan::{ColumnText, Op, Plan};
use crate::show::{self, Scene};
use core::ffi::c_int;
use fcn_wire::Claim;
use fcn_wire::wan_fcn::WAN_FCN_LEN;

callbacks! {
    /// The dissector of notifications to the proxy node.
    proxy_cn => dissect_proxy_cn;
    /// The dissector of Fast CNPs in the WAN.
    wan_fcn => dissect_wan_fcn;
}

/// Whose a datagram is that Wireshark hands to the dissector of `protocol`, and notes it unless it is others'.
///
/// Ours, it is shown in place. Where it is broken, its own dissector refuses it, so that Wireshark asks whoever is known for
/// the other port, and everybody's heuristics; the postdissector shows it if nobody took it. A user who has chosen the port,
/// by Decode As or by the preference, has chosen this: then whatever goes there is shown in place.
fn claim(call: Call<'_>, protocol: P) -> Claim {
    let (from, to) = call.packet.ports();
    if to != call.packet.matched() {
        return Claim::Others;
    }
    let mut new = Note::new(call, NoteKind::Broken(protocol), to as u16);
    let here = call.tvb.bytes();
    let profile = preferences::profile();
    let ports = (from as u16, to as u16);
    let found = guard(|| show::claim(ports, here, new.reported, new.addresses, &profile));
    let claim = if handles::is_chosen_udp_port(to) {
        Claim::Ours
    } else {
        found.unwrap_or(Claim::Others)
    };
    if claim == Claim::Ours {
        new.kind = match protocol {
            P::WanFcn => NoteKind::Wan,
            _ => NoteKind::Proxy,
        };
    }
    if claim != Claim::Others {
        notes::note(call.packet, new);
    }
    claim
}

fn dissect_proxy_cn(call: Call<'_>) -> c_int {
    match claim(call, P::ProxyCn) {
        Claim::Ours => show_proxy_cn(call.packet, call.tree, call.tvb, true),
        Claim::Broken | Claim::Others => 0,
    }
}

fn dissect_wan_fcn(call: Call<'_>) -> c_int {
    if claim(call, P::WanFcn) != Claim::Ours {
        return 0;
    }
    let done = show_wan_fcn(call.packet, call.tree, call.tvb);
    let captured = call.tvb.captured();
    if captured < call.tvb.reported() && captured < WAN_FCN_LEN {
        call.tvb.demand(WAN_FCN_LEN);
    }
    done
}

/// Shows a broken message of ours that nobody else took.
pub fn show_broken<'p>(packet: Packet<'p>, tree: Tree<'p>, seen: &Note<'p>) {
    if seen.quoted || !packet.is_plain_udp() {
        return;
    }
    let tvb = seen.ds.part(seen.start, seen.captured, seen.reported);
    match seen.kind {
        NoteKind::Broken(P::WanFcn) => show_wan_fcn(packet, tree, tvb),
        _ => show_proxy_cn(packet, tree, tvb, false),
    };
}

/// Shows what `work` plans of the message in `tvb`, and names it in the columns. Gives the tree that it leaves open, and what
/// else `work` told beside the Info column's text.
fn show_message<'p, T>(
    packet: Packet<'p>,
    tree: Tree<'p>,
    tvb: Tvb<'p>,
    protocol: P,
    work: impl FnOnce(&mut Plan<'p>, &Scene<'_>, usize, (usize, usize)) -> (ColumnText, T),
) -> Option<(Tree<'p>, T)> {
    let (ds, start) = tvb.source();
    let lengths = (tvb.captured(), tvb.reported());
    let (ops, store) = (packet.room(64, Op::Close), packet.room(4096, 0));
    let profile = preferences::profile_at(protocol, packet.ports().1 as u16);
    let scene = Scene {
        bytes: ds.bytes(),
        wire_len: ds.reported(),
        profile: &profile,
        check_icrc: false,
        quoted: packet.is_quoted(),
        link: packet.link_of(ds),
    };
    let (plan, (info, told)) = guard(|| {
        let mut plan = Plan::new(ops, store).quoting(scene.quoted);
        let told = work(&mut plan, &scene, start, lengths);
        (plan, told)
    })?;
    set_columns(packet, protocol, &info);
    Some((draw(packet, tree, tvb, &plan), told))
}

/// Shows the notification to the proxy node in `tvb`, and dissects what it quotes if asked to.
fn show_proxy_cn<'p>(packet: Packet<'p>, tree: Tree<'p>, tvb: Tvb<'p>, with_quoted: bool) -> c_int {
    let shown = show_message(
        packet,
        tree,
        tvb,
        P::ProxyCn,
        |plan, scene, start, lengths| {
            let shown = show::proxy_cn(plan, scene, start, lengths, packet.addresses());
            (shown.info, (shown.invoking, shown.missing))
        },
    );
    let Some((open, (invoking, missing))) = shown else {
        return 0;
    };
    if with_quoted {
        if let Some((at, ipv6)) = invoking {
            packet.dissect_quoted(tvb, at, open, handles::invoking(ipv6));
        }
        if let Some(need) = missing {
            tvb.demand(need);
        }
    }
    accepted(tvb.captured())
}

/// Shows the FCN in `tvb`.
fn show_wan_fcn<'p>(packet: Packet<'p>, tree: Tree<'p>, tvb: Tvb<'p>) -> c_int {
    let shown = show_message(
        packet,
        tree,
        tvb,
        P::WanFcn,
        |plan, scene, start, lengths| {
            let info = show::wan_fcn(plan, scene, start, lengths, packet.addresses());
            (info, ())
        },
    );
    shown.map_or(0, |_| accepted(tvb.captured()))
}

/// What a dissector returns that took a message of `len` octets. 0 would mean that it refused it, so that Wireshark would
/// ask others about a message without any octets.
fn accepted(len: usize) -> c_int {
    c_int::try_from(len.max(1)).unwrap_or(c_int::MAX)
}
