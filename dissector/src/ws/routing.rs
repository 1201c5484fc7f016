//! Routing messages: wrappers in front of Wireshark's IS-IS, OSPF and BGP that note what passes, and the part of the
//! postdissector that adds the Proxy Node Capability to the finished tree. What is shown is `show::pnc`'s business.
//!
//! The BGP wrapper sees what TCP has put together: a segment, or the stretch of the session that was asked for when a
//! message ran past one.
//!
//! What several messages tell together is `fcn_observe`'s business, and is kept here from frame to frame.

use super::draw::draw;
use super::handles::{Callback, Wrapped, numbers_of};
use super::notes::{self, Noted};
use super::packet::{Call, Packet, Tree, Tvb, callbacks};
use super::{compat, guard, ids, memory, preferences, sys};
use crate::names::P;
use crate::plan::{Op, Plan};
use crate::show::pnc::{self, Extent, Routing};
use core::ffi::{CStr, c_int};
use fcn_wire::Profile;
use fcn_wire::pnc::bgp::Session;
use fcn_wire::pnc::{Protocol, bgp, isis, ospf2, ospf3};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};

/// A message that a wrapper saw.
#[derive(Clone, Copy)]
struct Seen<'p> {
    protocol: Protocol,
    /// The data source, and where in it the message begins.
    ds: Tvb<'p>,
    start: usize,
    /// Octets captured and on the wire.
    captured: usize,
    reported: usize,
    /// Source and destination.
    ends: Option<(IpAddr, IpAddr)>,
    /// Whether Wireshark's own dissector refused it.
    refused: bool,
}

// SAFETY: nothing else is noted under this protocol.
unsafe impl Noted for Seen<'_> {
    const PROTOCOL: P = P::Pnc;
}

/// What the messages of a file tell together, and which prefixes have lost their PNC, by frame and message.
#[derive(Default)]
struct Heard {
    routing: fcn_observe::Routing,
    not_kept: BTreeMap<(u32, usize), Box<[u32]>>,
}

/// Most messages remembered for prefixes that have lost their PNC.
const MAX_NOT_KEPT: usize = 100_000;
/// Most prefixes of one of them.
const MAX_LACKING: usize = 64;

/// Nothing before the first message of a file. Wireshark dissects on one thread; the lock is never waited for, and no
/// function of Wireshark is called while it is held.
static HEARD: Mutex<Option<Box<Heard>>> = Mutex::new(None);

/// What was heard, locked; what a panic of ours left behind is dropped.
fn heard() -> MutexGuard<'static, Option<Box<Heard>>> {
    HEARD.lock().unwrap_or_else(|poisoned| {
        HEARD.clear_poison();
        let mut heard = poisoned.into_inner();
        *heard = None;
        heard
    })
}

/// Forgets everything: another file, or new preferences. Called by Wireshark.
pub unsafe extern "C" fn forget() {
    guard(|| *heard() = None);
}

/// Takes in a message of a frame that is dissected for the first time. Calls no C: for use within [`guard`].
fn hear(frame: u32, seen: (Protocol, usize), bytes: &[u8], ends: Option<(IpAddr, IpAddr)>) {
    let mut heard = heard();
    let heard = heard.get_or_insert_default();
    let mut lacking = Vec::new();
    // The protocols that have flags have no code points of ours.
    (heard.routing).hear(seen.0, bytes, ends, &Profile::DEFAULT, |offset| {
        if lacking.len() < MAX_LACKING {
            lacking.push(offset as u32);
        }
    });
    if !lacking.is_empty() && heard.not_kept.len() < MAX_NOT_KEPT {
        let key = (frame, seen.1);
        heard.not_kept.insert(key, lacking.into_boxed_slice());
    }
}

/// Which message is being dissected, if it is one that can advertise prefixes.
fn seen<'p>(call: Call<'p>, which: impl Fn(&[u8]) -> Option<Protocol>) -> Option<Seen<'p>> {
    // What is quoted in an error is a torn-off beginning, and no advertisement.
    if call.packet.is_quoted() {
        return None;
    }
    let (ds, start) = call.tvb.source();
    let here = call.tvb.bytes();
    let protocol = guard(|| which(here)).flatten()?;
    let ends = call.packet.addresses();
    if let Some(visit) = memory::first_visit(call.tvb, call.packet) {
        guard(|| hear(visit.frame, (protocol, start), here, ends));
    }
    Some(Seen {
        protocol,
        ds,
        start,
        captured: here.len(),
        reported: call.tvb.reported(),
        ends,
        refused: false,
    })
}

/// Notes what there is to note, and calls the dissector that the wrapper stands in front of.
fn pass(call: Call<'_>, wrapped: &Wrapped, which: impl Fn(&[u8]) -> Option<Protocol>) -> c_int {
    let new = seen(call, which);
    let noted = new.and_then(|new| notes::note(call.packet, new));
    let done = call.original(wrapped);
    if done == 0
        && let Some(noted) = noted
    {
        noted.set(Seen {
            refused: true,
            ..noted.get()
        });
    }
    done
}

fn lsp(bytes: &[u8]) -> Option<Protocol> {
    isis::is_lsp(bytes).then_some(Protocol::IsIs)
}

callbacks! {
    /// In front of level 1 LSPs.
    level1 => before_level1;
    /// In front of level 2 LSPs.
    level2 => before_level2;
    /// In front of OSPF of either version.
    ospf => before_ospf;
    /// In front of BGP at its TCP port.
    bgp_session => before_bgp;
}

fn before_level1(call: Call<'_>) -> c_int {
    pass(call, &LEVEL1, lsp)
}

fn before_level2(call: Call<'_>) -> c_int {
    pass(call, &LEVEL2, lsp)
}

fn before_ospf(call: Call<'_>) -> c_int {
    let over_v4 = (call.packet.addresses()).map(|(source, _)| source.is_ipv4());
    pass(call, &OSPF, |bytes| match over_v4? {
        true => ospf2::LsUpdate::is_at(bytes).then_some(Protocol::Ospf2),
        false => ospf3::LsUpdate::is_at(bytes).then_some(Protocol::Ospf3),
    })
}

fn before_bgp(call: Call<'_>) -> c_int {
    pass(call, &BGP, |bytes| {
        (bytes.len() > bgp::HEADER).then_some(Protocol::Bgp)
    })
}

/// Adds to the finished tree what the wrappers noted.
pub fn post<'p>(packet: Packet<'p>, tree: Tree<'p>) {
    let Some(all) = notes::of::<Seen<'_>>(packet) else {
        return;
    };
    // SAFETY: asks by the number that Wireshark gave.
    let is_enabled = unsafe {
        let protocol = sys::find_protocol_by_id(ids::protocol(P::Pnc));
        compat::is_true(sys::proto_is_protocol_enabled(protocol))
    };
    if !is_enabled || !tree.is_wanted() && !ids::is_expert_heard() {
        return;
    }
    let profile = preferences::profile();
    for seen in all.iter().filter(|seen| !seen.refused) {
        add(packet, tree, &seen, &profile);
    }
    if all.lost() > 0
        && let Some(first) = all.iter().next()
    {
        let (ops, store) = (packet.room(4, Op::Close), packet.room(0, 0));
        let mut plan = Plan::new(ops, store);
        pnc::too_many(&mut plan, all.lost());
        draw(packet, tree, first.ds, &plan);
    }
}

/// Adds what is to be shown of one message.
fn add<'p>(packet: Packet<'p>, tree: Tree<'p>, seen: &Seen<'p>, profile: &Profile) {
    let frame = packet.number();
    let known = guard(|| {
        let heard = heard();
        let heard = heard.as_ref().filter(|_| memory::is_on())?;
        let session = seen.ends.map(|ends| heard.routing.session(ends));
        let not_kept = heard.not_kept.get(&(frame, seen.start));
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
    let whole = seen.ds.bytes();
    let end = (seen.start + seen.captured).min(whole.len());
    let message = Routing {
        protocol: seen.protocol,
        bytes: whole.get(seen.start..end).unwrap_or_default(),
        start: seen.start,
        wire_len: seen.reported,
        session,
        not_kept: lacking.get(..count).unwrap_or_default(),
        profile,
    };
    let Some(Some(extent)) = guard(|| Extent::of(&message)) else {
        return;
    };
    let size = extent.room();
    let (ops, store) = (packet.room(size.0, Op::Close), packet.room(size.1, 0));
    let plan = guard(|| {
        let mut plan = Plan::new(ops, store);
        pnc::routing(&mut plan, &message);
        plan
    });
    if let Some(plan) = plan {
        draw(packet, tree, seen.ds, &plan);
    }
}

static LEVEL1: Wrapped = Wrapped::new();
static LEVEL2: Wrapped = Wrapped::new();
static OSPF: Wrapped = Wrapped::new();
static BGP: Wrapped = Wrapped::new();

const TCP_PORT: &CStr = c"tcp.port";

/// When wrappers are put in front.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// While Wireshark starts.
    Start,
    /// Before a file is read: preferences and Decode As may have changed.
    Again,
}

struct Hook {
    table: &'static CStr,
    number: u32,
    /// Filter name of the protocol whose handle is to be there.
    protocol: &'static CStr,
    wrapped: &'static Wrapped,
    callback: Callback,
    name: &'static CStr,
    description: &'static CStr,
}

static HOOKS: [Hook; 4] = [
    Hook {
        table: c"isis.type",
        number: isis::PDU_L1_LSP as u32,
        protocol: c"isis.lsp",
        wrapped: &LEVEL1,
        callback: level1,
        name: c"fcn.isis.l1_lsp",
        description: c"IS-IS level 1 LSP with proxy node capability",
    },
    Hook {
        table: c"isis.type",
        number: isis::PDU_L2_LSP as u32,
        protocol: c"isis.lsp",
        wrapped: &LEVEL2,
        callback: level2,
        name: c"fcn.isis.l2_lsp",
        description: c"IS-IS level 2 LSP with proxy node capability",
    },
    Hook {
        table: c"ip.proto",
        number: 89,
        protocol: c"ospf",
        wrapped: &OSPF,
        callback: ospf,
        name: c"fcn.ospf",
        description: c"OSPF with proxy node capability",
    },
    Hook {
        table: TCP_PORT,
        number: bgp::PORT as u32,
        protocol: c"bgp",
        wrapped: &BGP,
        callback: bgp_session,
        name: c"fcn.bgp",
        description: c"BGP with proxy node capability",
    },
];

/// Puts the wrappers in front of Wireshark's own handles, where these are; what a user has chosen by Decode As stays.
///
/// # Safety
/// Called while Wireshark starts, or between packets.
pub unsafe fn hook(when: When) {
    // SAFETY: tables and handles that exist since start; texts end with a NUL.
    unsafe {
        for hook in &HOOKS {
            let ours = hook
                .wrapped
                .ours(Some(hook.callback), hook.name, hook.description);
            let table = sys::find_dissector_table(hook.table.as_ptr());
            if table.is_null() {
                continue;
            }
            let present = sys::dissector_get_uint_handle(table, hook.number);
            if present.is_null() || present == ours {
                continue;
            }
            let wanted = sys::proto_get_id_by_filter_name(hook.protocol.as_ptr());
            if sys::dissector_handle_get_protocol_index(present) != wanted {
                continue;
            }
            hook.wrapped.set_original(present);
            match when {
                When::Start => sys::dissector_add_uint(hook.table.as_ptr(), hook.number, ours),
                // What was chosen by hand goes before what is known for the other port: it is to stay so.
                When::Again => sys::dissector_change_uint(hook.table.as_ptr(), hook.number, ours),
            }
        }
        if when == When::Again {
            hook_chosen_ports();
        }
    }
}

/// Puts the BGP wrapper in front of BGP at the ports that a user has chosen for it.
unsafe fn hook_chosen_ports() {
    // SAFETY: tables as in `hook`.
    unsafe {
        let hook = &HOOKS[HOOKS.len() - 1];
        let ours = hook
            .wrapped
            .ours(Some(hook.callback), hook.name, hook.description);
        if BGP.original().is_null() {
            return;
        }
        for port in numbers_of(TCP_PORT, BGP.original()) {
            sys::dissector_change_uint(TCP_PORT.as_ptr(), port, ours);
        }
    }
}
