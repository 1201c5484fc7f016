//! Routing messages: wrappers in front of Wireshark's IS-IS, OSPF and BGP dissectors that note the
//! messages, and the part of the postdissector that adds the Proxy Node Capability to the finished
//! tree. `show::pnc` decides what is shown.
//!
//! The BGP wrapper receives what TCP has reassembled: a segment, or the part of the session that
//! was requested when a message ran past one.
//!
//! `fcn_observe` derives state from several messages; it is kept here from frame to frame.

use super::draw::{draw, plan};
use super::handles::{Wrapped, wrappers};
use super::notes::{self, NoteType};
use super::packet::{Call, Packet, Tree, Tvb, Wanted};
use super::{PerFile, compat, guard, ids, memory, preferences, sys};
use crate::names::P;
use crate::show::PayloadAt;
use crate::show::pnc::{self, Routing};
use core::ffi::c_int;
use fcn_wire::Profile;
use fcn_wire::pnc::bgp::Session;
use fcn_wire::pnc::{Protocol, bgp, isis, ospf2, ospf3};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A message that a wrapper received.
#[derive(Clone, Copy)]
struct RoutingNote<'p> {
    protocol: Protocol,
    /// Data source, and the message's position in it.
    ds: Tvb<'p>,
    at: PayloadAt,
    /// True if Wireshark's own dissector refused it.
    refused: bool,
}

// SAFETY: nothing else is noted under this protocol.
unsafe impl NoteType for RoutingNote<'_> {
    const PROTOCOL: P = P::Pnc;
}

/// State learned from the messages of a file, and the prefixes that have lost their PNC, by frame
/// and message.
#[derive(Default)]
struct Learned {
    routing: fcn_observe::Routing,
    not_kept: BTreeMap<(u32, usize), Box<[u32]>>,
}

/// Maximum number of messages remembered for prefixes that have lost their PNC.
const MAX_NOT_KEPT: usize = 100_000;
/// Maximum number of such prefixes per message.
const MAX_LACKING: usize = 64;

static LEARNED: PerFile<Learned> = PerFile::new();

/// Forgets everything.
pub fn forget() {
    LEARNED.forget();
}

/// Processes a message of a frame that is dissected for the first time. Calls no C: for use within
/// [`guard`].
fn learn(frame: u32, seen: (Protocol, usize), bytes: &[u8], ends: Option<(IpAddr, IpAddr)>) {
    let mut learned = LEARNED.locked();
    let learned = learned.get_or_insert_default();
    let mut lacking = Vec::new();
    // The protocols with flags have none of our code points.
    (learned.routing).learn(seen.0, bytes, ends, |offset| {
        if lacking.len() < MAX_LACKING {
            lacking.push(offset as u32);
        }
    });
    if !lacking.is_empty() && learned.not_kept.len() < MAX_NOT_KEPT {
        let key = (frame, seen.1);
        learned.not_kept.insert(key, lacking.into_boxed_slice());
    }
}

/// Returns the message that is being dissected, if it can advertise prefixes.
fn seen<'p>(call: Call<'p>, which: impl Fn(&[u8]) -> Option<Protocol>) -> Option<RoutingNote<'p>> {
    // The quotation in an error is only the beginning of a message, and not an advertisement.
    if call.packet.is_quoted() {
        return None;
    }
    let (ds, at) = PayloadAt::from_call(call);
    let here = call.tvb.bytes();
    let protocol = guard(|| which(here)).flatten()?;
    if let Some(visit) = memory::first_visit(call.tvb, call.packet) {
        guard(|| learn(visit.frame, (protocol, at.start), here, at.addresses));
    }
    Some(RoutingNote {
        protocol,
        ds,
        at,
        refused: false,
    })
}

/// Notes the message, if there is one, and calls the wrapped dissector.
fn pass(call: Call<'_>, wrapped: &Wrapped, which: impl Fn(&[u8]) -> Option<Protocol>) -> c_int {
    let new = seen(call, which);
    let noted = new.and_then(|new| notes::note(call.packet, new));
    let done = call.original(wrapped);
    if done == 0
        && let Some(noted) = noted
    {
        noted.set(RoutingNote {
            refused: true,
            ..noted.get()
        });
    }
    done
}

wrappers! {
    /// Level 1 LSPs.
    LEVEL1 = c"isis.type", isis::PDU_L1_LSP as u32, Some(c"isis.lsp") => before_lsp, c"fcn.isis.l1_lsp", c"IS-IS level 1 LSP with proxy node capability";
    /// Level 2 LSPs.
    LEVEL2 = c"isis.type", isis::PDU_L2_LSP as u32, Some(c"isis.lsp") => before_lsp, c"fcn.isis.l2_lsp", c"IS-IS level 2 LSP with proxy node capability";
    /// OSPFv2 and OSPFv3.
    OSPF = c"ip.proto", 89, Some(c"ospf") => before_ospf, c"fcn.ospf", c"OSPF with proxy node capability";
    /// BGP at its TCP port.
    BGP = c"tcp.port", bgp::PORT as u32, Some(c"bgp") => before_bgp, c"fcn.bgp", c"BGP with proxy node capability";
}

fn before_lsp(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    pass(call, wrapped, |bytes| {
        isis::is_lsp(bytes).then_some(Protocol::IsIs)
    })
}

fn before_ospf(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    let over_v4 = (call.packet.addresses()).map(|(source, _)| source.is_ipv4());
    pass(call, wrapped, |bytes| match over_v4? {
        true => ospf2::LsUpdate::is_at(bytes).then_some(Protocol::Ospf2),
        false => ospf3::LsUpdate::is_at(bytes).then_some(Protocol::Ospf3),
    })
}

fn before_bgp(call: Call<'_>, wrapped: &Wrapped) -> c_int {
    pass(call, wrapped, |bytes| {
        (bytes.len() > bgp::HEADER).then_some(Protocol::Bgp)
    })
}

/// Adds items for the wrappers' notes to the finished tree.
pub fn post<'p>(packet: Packet<'p>, tree: Tree<'p>) {
    let Some(all) = notes::for_packet::<RoutingNote<'_>>(packet) else {
        return;
    };
    // SAFETY: a query by the number that Wireshark assigned.
    let is_enabled = unsafe {
        let protocol = sys::find_protocol_by_id(ids::protocol(P::Pnc));
        compat::is_true(sys::proto_is_protocol_enabled(protocol))
    };
    if !is_enabled || tree.wanted() != Wanted::Everything && !ids::has_expert_listener() {
        return;
    }
    let profile = preferences::profile();
    for seen in all.iter().filter(|seen| !seen.refused) {
        add(packet, tree, &seen, &profile);
    }
    if all.lost() > 0
        && let Some(first) = all.iter().next()
    {
        let too_many = plan(packet, false, |plan| pnc::too_many(plan, all.lost()));
        if let Some((plan, ())) = too_many {
            draw(packet, tree, first.ds, plan);
        }
    }
}

/// Adds the items for one message.
fn add<'p>(packet: Packet<'p>, tree: Tree<'p>, note: &RoutingNote<'p>, profile: &Profile) {
    let frame = packet.number();
    let known = guard(|| {
        let learned = LEARNED.locked();
        let learned = learned.as_ref().filter(|_| memory::is_on())?;
        let session = note.at.addresses.map(|ends| learned.routing.session(ends));
        let not_kept = learned.not_kept.get(&(frame, note.at.start));
        let mut lacking = [0; MAX_LACKING];
        let all = not_kept.map_or(&[][..], |all| all);
        for (to, from) in lacking.iter_mut().zip(all) {
            *to = *from;
        }
        Some((session.unwrap_or_default(), lacking, all.len()))
    });
    let (session, lacking, count) =
        known
            .flatten()
            .unwrap_or((Session::default(), [0; MAX_LACKING], 0));
    let PayloadAt {
        start,
        captured,
        reported,
        ..
    } = note.at;
    let whole = note.ds.bytes();
    let end = (start + captured).min(whole.len());
    let message = Routing {
        protocol: note.protocol,
        bytes: whole.get(start..end).unwrap_or_default(),
        start,
        wire_len: reported,
        session,
        not_kept: lacking.get(..count).unwrap_or_default(),
        profile,
    };
    if let Some((plan, ())) = plan(packet, false, |plan| pnc::routing(plan, &message)) {
        draw(packet, tree, note.ds, plan);
    }
}
