//! Our own dissectors: congestion notification to the proxy node and FCN in the WAN, at their
//! ports.

use super::draw::{draw, plan};
use super::handles;
use super::note::{Note, NoteKind, readable_octets};
use super::packet::{Call, Tree};
use super::{guard, notes};
use crate::names::P;
use crate::show::{self, MessageResult, PayloadAt, Source};
use core::ffi::c_int;
use fcn_wire::{Claim, Profile};

/// Notes a datagram that Wireshark passes to the dissector of `protocol`, unless it belongs to
/// another protocol, and returns the code points for reading it if it is ours.
///
/// A datagram of ours is shown in place. If it is broken, its own dissector refuses it, so that
/// Wireshark tries the dissector of the other port and all heuristics; the postdissector shows it
/// if no dissector accepted it. If the user has chosen the port, by Decode As or by the preference,
/// everything sent to it is shown in place.
fn claim(call: Call<'_>, protocol: P) -> Option<Profile> {
    let (from, to) = call.packet.ports();
    if to != call.packet.matched() || call.packet.is_by_udp_lite() {
        return None;
    }
    let mut new = Note::new(call, NoteKind::Broken(protocol), to as u16);
    let here = call.tvb.bytes();
    let profile = new.profile(call.packet);
    let ports = (from as u16, to as u16);
    let found = guard(|| show::claim(ports, here, &new.at, &profile));
    let claim = match handles::is_chosen_udp_port(to) {
        true => Claim::Ours,
        false => found.unwrap_or(Claim::Others),
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
    (claim == Claim::Ours).then_some(profile)
}

/// Shows one of our messages, and dissects the packet that it quotes; returns 0 if it is not one.
pub fn dissect(call: Call<'_>, protocol: P) -> c_int {
    let Call { packet, tvb, .. } = call;
    let shown = claim(call, protocol).and_then(|profile| show_message(call, protocol, &profile));
    let Some((open, shown)) = shown else {
        return 0;
    };
    if let Some((at, ipv6)) = shown.invoking {
        packet.dissect_quoted(tvb, at, open, if ipv6 { c"ipv6" } else { c"ip" });
    }
    if let Some(need) = shown.missing {
        tvb.demand(need);
    }
    // 0 would mean refusal: Wireshark would then try other dissectors on a message without any
    // octets.
    c_int::try_from(tvb.captured().max(1)).unwrap_or(c_int::MAX)
}

/// Shows a broken message of ours that no other dissector accepted.
pub fn show_broken<'p>(call: Call<'p>, seen: &Note<'p>, protocol: P) {
    if !seen.quoted && call.packet.is_plain_udp() {
        let PayloadAt {
            start,
            captured,
            reported,
            ..
        } = seen.at;
        let tvb = seen.ds.part(start, captured, reported);
        show_message(Call { tvb, ..call }, protocol, &seen.profile(call.packet));
    }
}

/// Shows the message of `protocol` that is to be dissected, and names it in the columns. Returns
/// the tree that it leaves open.
fn show_message<'p>(
    call: Call<'p>,
    protocol: P,
    profile: &Profile,
) -> Option<(Tree<'p>, MessageResult)> {
    let Call {
        packet, tvb, tree, ..
    } = call;
    let (ds, place) = PayloadAt::from_call(call);
    let (bytes, wire_len) = readable_octets(packet, ds, &place);
    let source = Source {
        bytes,
        wire_len,
        profile,
        check_icrc: false,
        quoted: packet.is_quoted(),
        link: packet.link_of(ds),
    };
    let (plan, shown) = plan(packet, source.quoted, |plan| match protocol {
        P::WanFcn => show::wan_fcn(plan, &source, &place),
        _ => show::proxy_cn(plan, &source, &place),
    })?;
    packet.set_columns(protocol, &shown.info);
    Some((draw(packet, tree, tvb, plan), shown))
}
