//! Wrappers in front of Wireshark's own dissectors. A wrapper only notes the packet and calls the
//! original, which may never return (an exception jumps over the wrapper); the postdissector adds
//! items to the tree.

use super::handles::{self, Wrapped, wrappers};
use super::note::{Note, NoteKind};
use super::packet::{Call, Packet};
use super::{guard, ids, memory, notes, preferences};
use crate::names::P;
use crate::show::{self, PayloadAt};
use core::cell::Cell;
use core::ffi::c_int;
use fcn_wire::Profile;
use fcn_wire::claim::must_prove_roce;

wrappers! {
    /// RoCEv2 at its UDP port.
    ROCE = c"udp.port", Profile::DEFAULT.rocev2_port as u32, Some(c"infiniband") => before_roce, c"fcn.rocev2", c"RoCEv2 with congestion notification";
    /// Destination Options headers.
    DESTINATION_OPTIONS = c"ip.proto", 60, None => before_destination_options, c"fcn.ipv6.dstopts", c"IPv6 Destination Options with congestion notification";
    /// Hop-by-Hop Options headers.
    HOP_BY_HOP = c"ip.proto", 0, None => before_hop_by_hop, c"fcn.ipv6.hopopts", c"IPv6 Hop-by-Hop Options with congestion notification";
    /// MAC control frames.
    MAC_CONTROL = c"ethertype", fcn_wire::pfc::ETHERTYPE_MAC_CONTROL as u32, None => before_mac_control, c"fcn.macctrl", c"MAC control with the rules of PFC";
}

/// A data packet in its frame.
#[derive(Clone, Copy)]
struct UnnotedPacket {
    frame: u32,
    at: PayloadAt,
    port: u16,
}

thread_local! {
    /// Last data packet: most frames contain only one, and nothing of it is shown. A note in the
    /// packet's pool would cost more than everything else.
    static PLAIN: Cell<Option<UnnotedPacket>> = const { Cell::new(None) };
}

/// Returns true if a RoCEv2 packet only needs to be remembered: it is not a CNP, nothing displays
/// it, and it lies in the frame itself, where the postdissector can find it again.
fn is_plain(call: Call<'_>, new: &Note<'_>) -> bool {
    call.tree.is_none()
        && !new.quoted
        && new.at.captured > 0
        && !new.is_any_cnp()
        && call.packet.frame_tvb() == Some(new.ds)
        && !ids::has_expert_listener()
        && !notes::any(call.packet)
}

/// Returns the data packet of this frame that has no note. Packets with notes are further in, or
/// need more work.
pub fn take_plain<'p>(call: Call<'p>) -> Option<Note<'p>> {
    let plain = PLAIN.take()?;
    (plain.frame == call.packet.number()).then(|| Note {
        kind: NoteKind::Roce,
        ds: call.tvb.source().0,
        at: plain.at,
        quoted: false,
        port: plain.port,
        returned: false,
    })
}

fn before_roce(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    let (packet, (from, port)) = (call.packet, call.packet.ports());
    if port != packet.matched() {
        // RoCEv2 is sent *to* the port.
        return dispatch_other(call, wrapped, port);
    }
    if packet.is_by_udp_lite() {
        return dispatch_other(call, wrapped, from);
    }
    let new = Note::new(call, NoteKind::Roce, port as u16);
    if must_prove_roce(from as u16, new.port) && !is_roce(packet, &new) {
        return dispatch_other(call, wrapped, from);
    }
    let mut noted = None;
    if !is_plain(call, &new) {
        noted = notes::note(packet, new);
    } else if memory::is_on() {
        PLAIN.set(Some(UnnotedPacket {
            frame: packet.number(),
            at: new.at,
            port: new.port,
        }));
    }
    let done = call.original(wrapped);
    if let Some(noted) = noted {
        let kind = if done == 0 { NoteKind::Void } else { new.kind };
        noted.set(Note {
            kind,
            returned: true,
            ..new
        });
    } else if done == 0 {
        PLAIN.set(None);
    }
    if done != 0 && !new.quoted {
        new.set_columns(packet);
    }
    done
}

/// Passes a packet that is not RoCEv2 to the dissector that would have it without this plugin:
/// Wireshark would have tried the dissector of the other port before InfiniBand, or tries it
/// afterwards.
fn dispatch_other(call: Call<'_>, wrapped: &Wrapped, other: u32) -> c_int {
    if handles::comes_first(other, call.packet.matched()) {
        let done = call.try_udp_port(other);
        if done != 0 {
            return done;
        }
    }
    call.original(wrapped)
}

/// Returns true if a packet whose source port belongs to another protocol proves to be RoCEv2.
fn is_roce<'p>(packet: Packet<'p>, seen: &Note<'p>) -> bool {
    let place = seen.roce_at(seen.option_presence(packet));
    let profile = preferences::profile_at(P::Roce, seen.port);
    guard(|| show::is_roce(&seen.source(packet, &profile), &place)).unwrap_or(false)
}

fn before_destination_options(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    note_options(call, false);
    call.original(wrapped)
}

fn before_hop_by_hop(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    note_options(call, true);
    call.original(wrapped)
}

/// Notes an options header that has options of ours.
fn note_options(call: Call<'_>, hop_by_hop: bool) {
    let here = call.tvb.bytes();
    let profile = preferences::profile();
    let found = guard(|| {
        let len = (usize::from(*here.get(1)?) + 1) * 8;
        let header = &here[..len.min(here.len())];
        Some((show::has_known_options(header, &profile), header.len()))
    });
    if let Some(Some(((true, fast), len))) = found {
        let mut new = Note::new(call, NoteKind::Options { hop_by_hop, fast }, 0);
        (new.at.captured, new.at.reported) = (len, len);
        notes::note(call.packet, new);
    }
}

fn before_mac_control(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    let mut new = Note::new(call, NoteKind::MacControl, 0);
    new.at.addresses = None;
    notes::note(call.packet, new);
    call.original(wrapped)
}
