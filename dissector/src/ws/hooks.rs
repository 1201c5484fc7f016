//! The callbacks that Wireshark calls: wrappers in front of its own dissectors, our own dissectors, the postdissector.
//!
//! A wrapper only notes what it saw and calls the original; what is to be added to the tree is added by the
//! postdissector, when the tree stands: the original may never return (an exception jumps over the wrapper).

use super::draw::{Canvas, draw};
use super::notes::{self, Notes};
use super::{addresses, bytes, compat, guard, memory, register, room, routing, source, sys, taps};
use crate::locate::Known;
use crate::memory::Context;
use crate::names::P;
use crate::plan::{ColumnText, Op, Plan, at};
use crate::show::{self, Heard, MessageAt, OptionNoted, OptionsAt, RoceAt, Scene, Told};
use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use fcn_observe::FlowKey;
use fcn_observe::broken::Broken;
use fcn_wire::bth::{Bth, Opcode};
use fcn_wire::claim::must_prove_roce;
use fcn_wire::frame::Datagram;
use fcn_wire::notification::Gist;
use fcn_wire::{Claim, Frame, Profile};
use std::net::IpAddr;

/// Octets of a UDP header.
const UDP_HEADER_LEN: usize = 8;

/// What a wrapper saw.
#[derive(Clone, Copy)]
struct Note {
    kind: NoteKind,
    /// The data source, and where in it the noted part begins.
    ds: *mut sys::tvbuff_t,
    start: usize,
    /// Octets captured and on the wire.
    captured: usize,
    reported: usize,
    addresses: Option<(IpAddr, IpAddr)>,
    quoted: bool,
    /// The RoCEv2 port it came by; 0 for others.
    port: u16,
    /// Whether the original came back, instead of throwing an exception.
    returned: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NoteKind {
    Roce,
    Options {
        hop_by_hop: bool,
        fast: bool,
    },
    MacControl,
    Proxy,
    Wan,
    /// Meant as a message of ours, as it seems, but broken, so that others were asked first.
    Broken(P),
    /// The original refused the packet.
    Void,
}

/// The packet's notes, or null.
unsafe fn notes(pinfo: *mut sys::packet_info) -> *mut Notes<Note> {
    // SAFETY: `pinfo` is live, and this protocol's notes are of that type.
    unsafe { notes::of(pinfo, P::Roce) }
}

/// Notes something, and gives its place; null where there are too many.
unsafe fn note(pinfo: *mut sys::packet_info, new: Note) -> *mut Note {
    // SAFETY: as above.
    unsafe { notes::note(pinfo, P::Roce, new) }
}

thread_local! {
    /// The data packet that was met last, and its frame: most packets are that alone, and nothing of them is shown. A note
    /// in the packet's pool would cost more than all the rest.
    static PLAIN: Cell<Option<(u32, Note)>> = const { Cell::new(None) };
}

/// Whether nothing but what is remembered will be asked of a RoCEv2 packet: no CNP, nobody looks, and it lies in the
/// frame itself, from where the postdissector finds it again.
unsafe fn is_plain(pinfo: *mut sys::packet_info, tree: *mut sys::proto_tree, new: &Note) -> bool {
    // SAFETY: the pointers are live.
    unsafe {
        tree.is_null()
            && !new.quoted
            && bytes(new.ds)
                .get(new.start)
                .is_some_and(|opcode| !CNP_OPCODES.contains(opcode))
            && compat::frame_tvb(pinfo) == new.ds
            && !compat::is_true(sys::have_tap_listener(register::expert_tap()))
            && !notes::any(pinfo)
    }
}

/// The packet that [`PLAIN`] holds, if it is of this frame. Whatever else was noted is further in, or is asked more of.
unsafe fn take_plain(tvb: *mut sys::tvbuff_t, pinfo: *mut sys::packet_info) -> Option<Note> {
    let (frame, seen) = PLAIN.take()?;
    // SAFETY: the pointers are live. The data source is this frame's own, whatever became of that of the note.
    unsafe {
        let ds = sys::tvb_get_ds_tvb(tvb);
        (frame == (*pinfo).num).then_some(Note { ds, ..seen })
    }
}

/// Calls the dissector that a wrapper stands in front of, as if there were no wrapper.
pub(super) unsafe fn call_original(
    wrapped: &register::Wrapped,
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are Wireshark's own.
    unsafe {
        // Every call counts this down by one; the wrapper is not to be counted.
        (*pinfo).can_desegment = (*pinfo).saved_can_desegment;
        sys::call_dissector_only(wrapped.original(), tvb, pinfo, tree, data)
    }
}

/// In front of InfiniBand at the RoCEv2 port.
pub unsafe extern "C" fn roce(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        let (port, from) = ((*pinfo).destport, (*pinfo).srcport);
        if port != (*pinfo).match_uint {
            // RoCEv2 goes *to* the port.
            return leave(port, tvb, pinfo, tree, data);
        }
        let (ds, start) = source(tvb);
        let new = Note {
            kind: NoteKind::Roce,
            ds,
            start,
            captured: sys::tvb_captured_length(tvb) as usize,
            reported: sys::tvb_reported_length(tvb) as usize,
            addresses: addresses(pinfo),
            quoted: compat::in_error(pinfo),
            port: port as u16,
            returned: false,
        };
        if must_prove_roce(from as u16, new.port) && !is_roce(pinfo, &new) {
            return leave(from, tvb, pinfo, tree, data);
        }
        let mut noted = ptr::null_mut();
        let mut chain = None;
        if !is_plain(pinfo, tree, &new) {
            noted = note(pinfo, new);
        } else if memory::is_on() {
            PLAIN.set(Some(((*pinfo).num, new)));
            let bytes = bytes(new.ds);
            chain = guard(|| memory::expected(&flow(&new, bytes)?)).flatten();
        }
        let done = call_original(&register::ROCE, tvb, pinfo, tree, data);
        if let Some(chain) = chain {
            guard(|| memory::expected_at(chain));
        }
        if !noted.is_null() {
            (*noted).returned = true;
            if done == 0 {
                (*noted).kind = NoteKind::Void;
            }
        } else if done == 0 {
            PLAIN.set(None);
        }
        if done != 0 && !new.quoted {
            columns(pinfo, &new);
        }
        done
    }
}

/// Leaves what is no RoCEv2 to whose it is without us: whoever is at its other port would have been asked before InfiniBand,
/// or is asked after it.
unsafe fn leave(
    other: u32,
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are Wireshark's own.
    unsafe {
        if register::is_asked_first(other, (*pinfo).match_uint) {
            let done = register::try_udp_port(other, tvb, pinfo, tree);
            if done != 0 {
                return done;
            }
        }
        call_original(&register::ROCE, tvb, pinfo, tree, data)
    }
}

/// Whether a packet that comes from the port of others shows that it is RoCEv2.
unsafe fn is_roce(pinfo: *mut sys::packet_info, seen: &Note) -> bool {
    // SAFETY: the pointers are live.
    unsafe {
        let bytes = bytes(seen.ds);
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let fast = option_noted(pinfo, seen);
        let profile = register::profile(seen.port);
        guard(|| {
            show::is_roce(
                &scene(bytes, wire_len, &profile, seen),
                &roce_at(seen, fast),
            )
        })
        .unwrap_or(false)
    }
}

/// The flow of a data packet that begins with its transport header, as it seems: tunnels are not looked for.
fn flow(seen: &Note, bytes: &[u8]) -> Option<FlowKey> {
    let (sender, receiver) = seen.addresses?;
    let bth = Bth::new_checked(bytes.get(seen.start..)?).ok()?;
    Some(FlowKey {
        sender,
        receiver,
        receiver_qp: bth.dest_qp(),
    })
}

/// Names a CNP of either kind in the columns.
unsafe fn columns(pinfo: *mut sys::packet_info, seen: &Note) {
    // SAFETY: `pinfo` is live.
    unsafe {
        let info = (*pinfo).cinfo;
        if info.is_null() || !compat::is_true(sys::col_get_writable(info, compat::COL_INFO)) {
            return;
        }
        let Some((protocol, mut text)) = cnp_text(pinfo, seen) else {
            return;
        };
        if !seen.returned {
            // An exception ended the dissection, and Wireshark has said so behind what it knew; that stays.
            let present = sys::col_get_text(info, compat::COL_INFO);
            if !present.is_null() {
                let present = CStr::from_ptr(present).to_bytes();
                if let Some(longer) = guard(|| show::with_remark(&text, present)) {
                    text = longer;
                }
            }
        }
        set_columns(pinfo, protocol, &text);
    }
}

/// Which kind of CNP a RoCEv2 packet is, and the Info column's text; `None` where it is none.
unsafe fn cnp_text(pinfo: *mut sys::packet_info, seen: &Note) -> Option<(P, ColumnText)> {
    // SAFETY: the pointers are live.
    unsafe {
        let bytes = bytes(seen.ds);
        // Most packets are no CNP: look before anything is searched.
        if bytes.get(seen.start) != Some(&CNP_OPCODE) {
            return None;
        }
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let fast = option_noted(pinfo, seen);
        let profile = register::profile(seen.port);
        guard(|| {
            let scene = scene(bytes, wire_len, &profile, seen);
            show::info(&scene, &roce_at(seen, fast))
        })
        .flatten()
    }
}

/// Says in the Info column of a packet that it quotes a Fast CNP.
unsafe fn say_quotation(pinfo: *mut sys::packet_info, seen: &Note, hop_by_hop: bool) {
    // SAFETY: `pinfo` is live.
    unsafe {
        let info = (*pinfo).cinfo;
        if info.is_null() {
            return;
        }
        let bytes = bytes(seen.ds);
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let profile = register::profile(port_of(pinfo, seen));
        let text = guard(|| {
            let place = options_at(seen, hop_by_hop, None);
            show::quotation(&scene(bytes, wire_len, &profile, seen), &place)
        });
        if let Some(Some(text)) = text {
            sys::col_append_str(info, compat::COL_INFO, text.as_ptr());
        }
    }
}

const CNP_OPCODE: u8 = Opcode::CNP.0;
/// With InfiniBand's, which prototypes send.
const CNP_OPCODES: [u8; 2] = [CNP_OPCODE, Opcode::IB_CNP.0];

unsafe fn set_columns(pinfo: *mut sys::packet_info, protocol: P, text: &ColumnText) {
    let name = match protocol {
        P::FastCnp => c"Fast CNP",
        P::ProxyCn => c"Proxy CN",
        P::WanFcn => c"WAN FCN",
        _ => c"CNP",
    };
    // SAFETY: `pinfo` is live, both texts end with a NUL; the one of the Info column is copied.
    unsafe {
        sys::col_set_str((*pinfo).cinfo, compat::COL_PROTOCOL, name.as_ptr());
        sys::col_add_str((*pinfo).cinfo, compat::COL_INFO, text.as_ptr());
    }
}

fn scene<'a>(bytes: &'a [u8], wire_len: usize, profile: &'a Profile, seen: &Note) -> Scene<'a> {
    Scene {
        bytes,
        wire_len,
        profile,
        check_icrc: register::checks_icrc(),
        quoted: seen.quoted,
    }
}

const fn roce_at(seen: &Note, option_noted: OptionNoted) -> RoceAt {
    RoceAt {
        payload: seen.start,
        captured: seen.captured,
        reported: seen.reported,
        addresses: seen.addresses,
        option_noted,
    }
}

fn options_at(seen: &Note, hop_by_hop: bool, roce_noted: Option<Note>) -> OptionsAt {
    OptionsAt {
        start: seen.start,
        hop_by_hop,
        addresses: seen.addresses,
        roce_noted: roce_noted.map(|roce| roce_at(&roce, OptionNoted::Here)),
    }
}

/// Whether a Fast CNP option was noted that belongs to `seen` by its addresses. This counts where the IP header cannot
/// be found: reassembly leaves it behind, and the extension headers in front of the Fragment header with it.
unsafe fn option_noted(pinfo: *mut sys::packet_info, seen: &Note) -> OptionNoted {
    // SAFETY: passed on.
    let option = unsafe {
        counterpart(pinfo, seen, |kind| {
            matches!(kind, NoteKind::Options { fast: true, .. })
        })
    };
    match option {
        None => OptionNoted::No,
        Some(option) if option.ds == seen.ds => OptionNoted::Here,
        Some(_) => OptionNoted::Elsewhere,
    }
}

unsafe fn counterpart(
    pinfo: *mut sys::packet_info,
    seen: &Note,
    wanted: impl Fn(NoteKind) -> bool,
) -> Option<Note> {
    // SAFETY: the pointers are live.
    unsafe {
        let all = notes(pinfo);
        if all.is_null() {
            return None;
        }
        (*all).iter().find(|other| {
            wanted(other.kind) && other.quoted == seen.quoted && other.addresses == seen.addresses
        })
    }
}

/// In front of the Destination Options header.
pub unsafe extern "C" fn destination_options(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        note_options(tvb, pinfo, false);
        call_original(&register::DESTINATION_OPTIONS, tvb, pinfo, tree, data)
    }
}

/// In front of the Hop-by-Hop Options header.
pub unsafe extern "C" fn hop_by_hop(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        note_options(tvb, pinfo, true);
        call_original(&register::HOP_BY_HOP, tvb, pinfo, tree, data)
    }
}

/// Notes an options header that has options of ours in it.
unsafe fn note_options(tvb: *mut sys::tvbuff_t, pinfo: *mut sys::packet_info, hop_by_hop: bool) {
    // SAFETY: the pointers are live.
    unsafe {
        let here = bytes(tvb);
        let profile = register::profile(Profile::DEFAULT.rocev2_port);
        let found = guard(|| {
            let len = (usize::from(*here.get(1)?) + 1) * 8;
            let header = &here[..len.min(here.len())];
            Some((show::has_ours(header, &profile), header.len()))
        });
        let Some(Some(((true, fast), captured))) = found else {
            return;
        };
        let (ds, start) = source(tvb);
        let new = Note {
            kind: NoteKind::Options { hop_by_hop, fast },
            ds,
            start,
            captured,
            reported: captured,
            addresses: addresses(pinfo),
            quoted: compat::in_error(pinfo),
            port: 0,
            returned: false,
        };
        note(pinfo, new);
    }
}

/// In front of MAC control frames.
pub unsafe extern "C" fn mac_control(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        let (ds, start) = source(tvb);
        let new = Note {
            kind: NoteKind::MacControl,
            ds,
            start,
            captured: sys::tvb_captured_length(tvb) as usize,
            reported: sys::tvb_reported_length(tvb) as usize,
            addresses: None,
            quoted: compat::in_error(pinfo),
            port: 0,
            returned: false,
        };
        note(pinfo, new);
        call_original(&register::MAC_CONTROL, tvb, pinfo, tree, data)
    }
}

/// The destination MAC address; zeros where there is none.
unsafe fn mac_destination(pinfo: *mut sys::packet_info) -> [u8; 6] {
    // SAFETY: `pinfo` is live, and an address of 6 octets has them.
    unsafe {
        let address = &(*pinfo).dl_dst;
        if address.len == 6 && !address.data.is_null() {
            address.data.cast::<[u8; 6]>().read_unaligned()
        } else {
            [0; 6]
        }
    }
}

/// Adds to the finished tree what the wrappers noted.
pub unsafe extern "C" fn post(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        let plain = take_plain(tvb, pinfo);
        let mut all = ptr::null_mut();
        if notes::any(pinfo) {
            notes::done();
            routing::post(pinfo, tree);
            all = notes(pinfo);
        }
        if all.is_null() {
            if let Some(seen) = plain {
                remember(tvb, pinfo, &seen);
            }
            return 0;
        }
        for seen in (*all).iter() {
            match seen.kind {
                NoteKind::Roce if !seen.returned && !seen.quoted => columns(pinfo, &seen),
                NoteKind::Broken(_) => add_broken(pinfo, tree, &seen),
                NoteKind::Options {
                    hop_by_hop,
                    fast: true,
                } if seen.quoted => say_quotation(pinfo, &seen, hop_by_hop),
                _ => {}
            }
        }
        if let Some(seen) = innermost(&*all).or(plain) {
            remember(tvb, pinfo, &seen);
        }
        let tapped = taps::is_heard();
        let shown =
            is_wanted(tree) || compat::is_true(sys::have_tap_listener(register::expert_tap()));
        if shown {
            for seen in (*all).iter() {
                add(pinfo, tree, &seen);
            }
        } else if !tree.is_null() {
            add_protocols(pinfo, tree, &*all);
        }
        let mut is_told = false;
        for seen in (*all).iter().filter(|_| tapped || shown) {
            let Some(gist) = said(pinfo, &seen) else {
                continue;
            };
            is_told = true;
            let number = (*pinfo).num;
            let mut told = Told::alone(gist);
            let mut is_copy = false;
            if let Some(Some(Context::Notice(context))) = guard(|| memory::context(number)) {
                is_copy = context.copy_of.is_some();
                told.gist.origin = context.origin;
                told.flow = context.flow.or_else(|| guard(|| memory::flow_of(&gist))?);
                told.sender_qp = context.sender_qp.map(|(qp, _)| qp);
            }
            // What is seen at several places counts once.
            if tapped && !is_copy {
                taps::queue(pinfo, Heard::Told(told));
            }
            if shown {
                add_summary(pinfo, tree, &seen, &told);
            }
        }
        if tapped && !is_told {
            let mut broken = (*all).iter().filter_map(|seen| broken(pinfo, &seen));
            if let Some(broken) = broken.next() {
                taps::queue(pinfo, Heard::Malformed(broken));
            }
        }
        if shown {
            add_effects(pinfo, tree, &*all);
        }
    }
    0
}

/// What a note was meant as, where it cannot be read as a notification and is nobody else's.
unsafe fn broken(pinfo: *mut sys::packet_info, seen: &Note) -> Option<Broken> {
    // SAFETY: the pointers are live.
    unsafe {
        let here = bytes(seen.ds);
        let (known, place) = match seen.kind {
            _ if seen.quoted => return None,
            // Most packets are no CNP: look before anything is searched.
            NoteKind::Roce if !CNP_OPCODES.contains(here.get(seen.start)?) => return None,
            NoteKind::Broken(_) if !is_plain_udp(pinfo) => return None,
            NoteKind::Options { fast: true, .. } => (Known::ExtensionHeader, seen.start),
            NoteKind::Options { .. } | NoteKind::MacControl | NoteKind::Void => return None,
            NoteKind::Roce | NoteKind::Proxy | NoteKind::Wan | NoteKind::Broken(_) => {
                (Known::Udp, seen.start.checked_sub(UDP_HEADER_LEN)?)
            }
        };
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let profile = profile_of(pinfo, seen);
        let (source, _) = seen.addresses?;
        guard(|| show::broken(&scene(here, wire_len, &profile, seen), place, known, source))
            .flatten()
    }
}

/// What a note says, where it is a notification and not the quotation of one.
unsafe fn said(pinfo: *mut sys::packet_info, seen: &Note) -> Option<Gist> {
    if seen.quoted {
        return None;
    }
    // SAFETY: the pointers are live.
    unsafe {
        let here = bytes(seen.ds);
        match seen.kind {
            // Most packets are no CNP: look before anything is searched.
            NoteKind::Roce if here.get(seen.start) == Some(&CNP_OPCODE) => {}
            NoteKind::Proxy | NoteKind::Wan => {}
            _ => return None,
        }
        let profile = profile_of(pinfo, seen);
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let options = counterpart(pinfo, seen, |kind| {
            matches!(kind, NoteKind::Options { fast: true, .. })
        })
        .and_then(|option| bytes(option.ds).get(option.start..option.start + option.captured));
        guard(|| {
            let place = MessageAt {
                payload: seen.start,
                captured: seen.captured,
                reported: seen.reported,
                addresses: seen.addresses,
                options,
            };
            show::gist(&scene(here, wire_len, &profile, seen), &place)
        })
        .flatten()
    }
}

/// Adds what is the same for every kind of notification.
unsafe fn add_summary(
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    seen: &Note,
    told: &Told,
) {
    // SAFETY: the pointers are live, and everything lent to the plan lives as long as the packet.
    unsafe {
        let number = (*pinfo).num;
        let (ops, store) = (
            room(pinfo, SUMMARY_PLAN.0, Op::Close),
            room(pinfo, SUMMARY_PLAN.1, 0),
        );
        let plan = guard(|| {
            let mut plan = Plan::new(ops, store);
            show::summary(&mut plan, told, seen.start, seen.captured);
            match memory::context(number) {
                Some(Context::Notice(context)) => {
                    show::context::notice(&mut plan, &context, seen.start);
                }
                Some(Context::Forgotten) => show::context::forgotten(&mut plan, seen.start),
                Some(Context::Data(_)) | None => {}
            }
            plan
        });
        if let Some(plan) = plan {
            let canvas = Canvas {
                pinfo,
                root: tree,
                tvb: seen.ds,
            };
            draw(canvas, &plan);
        }
    }
}

/// Room for steps and texts of the summary of a notification, and of what is known beside it.
pub const SUMMARY_PLAN: (usize, usize) = (64, 2048);

/// Has the frame remembered for its innermost message, if it is dissected for the first time.
unsafe fn remember(tvb: *mut sys::tvbuff_t, pinfo: *mut sys::packet_info, seen: &Note) {
    // SAFETY: the pointers are live.
    unsafe {
        let Some(frame_seen) = memory::first_visit(tvb, pinfo) else {
            return;
        };
        if let Some(gist) = said(pinfo, seen) {
            let inner = bytes(seen.ds);
            guard(|| {
                let payload = inner.get(seen.start..seen.start + seen.captured);
                let port = seen.start.checked_sub(UDP_HEADER_LEN);
                let port = port.and_then(|at| inner.get(at..)?.first_chunk::<2>());
                let port = port.map_or(0, |octets| u16::from_be_bytes(*octets));
                memory::notified(frame_seen, &gist, port, payload.unwrap_or_default());
            });
        } else if seen.kind == NoteKind::Roce {
            let (inner, wire_len) = (bytes(seen.ds), sys::tvb_reported_length(seen.ds) as usize);
            // From the link layer on, tunnels and their labels can be read, too.
            let link = compat::link_type(pinfo).filter(|_| sys::tvb_get_ds_tvb(tvb) == seen.ds);
            let profile = register::profile(seen.port);
            guard(|| {
                if let Some(link) = link {
                    let mut whole = Frame::empty(&profile);
                    whole.renew(inner, wire_len, link);
                    if whole.datagram().map(Datagram::payload_at) == Some(seen.start) {
                        return memory::passed(frame_seen, &whole);
                    }
                }
                let scene = scene(inner, wire_len, &profile, seen);
                if let Some(frame) = show::frame(&scene, &roce_at(seen, OptionNoted::No)) {
                    memory::passed(frame_seen, &frame);
                }
            });
        }
    }
}

/// The innermost message of a frame that is not quoted.
fn innermost(all: &Notes<Note>) -> Option<Note> {
    let is_message = |kind| matches!(kind, NoteKind::Roce | NoteKind::Proxy | NoteKind::Wan);
    all.iter()
        .filter(|seen| !seen.quoted && is_message(seen.kind))
        .last()
}

/// Adds what a data frame led to.
unsafe fn add_effects(pinfo: *mut sys::packet_info, tree: *mut sys::proto_tree, all: &Notes<Note>) {
    // SAFETY: the pointers are live, and everything lent to the plan lives as long as the packet.
    unsafe {
        let number = (*pinfo).num;
        let (Some(seen), Some(Some(Context::Data(context)))) =
            (innermost(all), guard(|| memory::context(number)))
        else {
            return;
        };
        let (ops, store) = (
            room(pinfo, SUMMARY_PLAN.0, Op::Close),
            room(pinfo, SUMMARY_PLAN.1, 0),
        );
        let plan = guard(|| {
            let mut plan = Plan::new(ops, store);
            show::context::data(&mut plan, &context, seen.start);
            plan
        });
        if let Some(plan) = plan {
            let canvas = Canvas {
                pinfo,
                root: tree,
                tvb: seen.ds,
            };
            draw(canvas, &plan);
        }
    }
}

/// Whether anyone looks at what would be added to `tree`: it is shown, or asks for every protocol, or a filter, a
/// column or a list of fields refers to one of ours or to expert info.
pub(super) unsafe fn is_wanted(tree: *mut sys::proto_tree) -> bool {
    // SAFETY: `tree` is null or live, and so is what it points to; the numbers were given by Wireshark.
    unsafe {
        if tree.is_null() {
            return false;
        }
        let data = (*tree).tree_data;
        if data.is_null()
            || compat::is_true((*data).visible)
            || !compat::is_true((*data).fake_protocols)
        {
            return true;
        }
        register::referable().any(|id| {
            u32::try_from(id).is_ok_and(|id| {
                let info = sys::proto_registrar_get_nth(id);
                !info.is_null() && (*info).ref_type != sys::HF_REF_TYPE_NONE
            })
        })
    }
}

/// Adds the protocols alone, to a tree that nobody looks into: statistics of the protocol hierarchy count them.
unsafe fn add_protocols(
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    all: &Notes<Note>,
) {
    // SAFETY: the pointers are live; start and length are within what was captured.
    unsafe {
        let mut has_fast = false;
        for seen in all.iter() {
            if seen.quoted {
                continue;
            }
            let add = |protocol| {
                let id = register::protocol(protocol);
                let (start, len) = (seen.start as c_int, seen.captured as c_int);
                sys::proto_tree_add_item(tree, id, seen.ds, start, len, sys::ENC_BIG_ENDIAN)
            };
            let is_cnp = match seen.kind {
                NoteKind::Roce => {
                    compat::set_flag(add(P::Roce), sys::FI_HIDDEN);
                    bytes(seen.ds).get(seen.start) == Some(&CNP_OPCODE) && seen.captured > 0
                }
                NoteKind::Options { fast, .. } => {
                    if fast && !has_fast {
                        add(P::FastCnp);
                        has_fast = true;
                    }
                    false
                }
                NoteKind::MacControl
                | NoteKind::Proxy
                | NoteKind::Wan
                | NoteKind::Broken(_)
                | NoteKind::Void => false,
            };
            if is_cnp && matches!(cnp_text(pinfo, &seen), Some((P::Cnp, _))) {
                add(P::Cnp);
            }
        }
    }
}

/// Adds what is to be shown of one note.
unsafe fn add(pinfo: *mut sys::packet_info, tree: *mut sys::proto_tree, seen: &Note) {
    let size = match seen.kind {
        NoteKind::Void => return,
        // Somebody else's, in the end.
        // SAFETY: `pinfo` is live.
        NoteKind::Broken(_) if unsafe { !is_plain_udp(pinfo) } => return,
        NoteKind::Roce | NoteKind::MacControl => ROCE_PLAN,
        // Shown already, but for what is around them.
        NoteKind::Proxy | NoteKind::Wan | NoteKind::Broken(_) => ROCE_PLAN,
        NoteKind::Options { .. } => options_plan(seen.captured),
    };
    // SAFETY: the pointers are live, and everything lent to the plan lives as long as the packet.
    unsafe {
        let (ops, store) = (room(pinfo, size.0, Op::Close), room(pinfo, size.1, 0));
        let bytes = bytes(seen.ds);
        let wire_len = sys::tvb_reported_length(seen.ds) as usize;
        let profile = profile_of(pinfo, seen);
        let fast = match seen.kind {
            NoteKind::Roce => option_noted(pinfo, seen),
            _ => OptionNoted::No,
        };
        let roce_noted = match seen.kind {
            NoteKind::Options { fast: true, .. } => {
                counterpart(pinfo, seen, |kind| kind == NoteKind::Roce)
                    .filter(|roce| roce.ds == seen.ds)
            }
            _ => None,
        };
        let destination = mac_destination(pinfo);
        let plan = guard(|| {
            let mut plan = Plan::new(ops, store).quoting(seen.quoted);
            let scene = scene(bytes, wire_len, &profile, seen);
            match seen.kind {
                NoteKind::Roce => show::roce(&mut plan, &scene, &roce_at(seen, fast)),
                NoteKind::Options { hop_by_hop, .. } => {
                    let place = options_at(seen, hop_by_hop, roce_noted);
                    show::options(&mut plan, &scene, &place);
                }
                NoteKind::MacControl => {
                    let end = (seen.start + seen.captured).min(bytes.len());
                    let frame = bytes.get(seen.start..end).unwrap_or_default();
                    let cut = seen.captured < seen.reported;
                    show::mac_control(&mut plan, frame, cut, destination, seen.start);
                }
                NoteKind::Proxy | NoteKind::Wan | NoteKind::Broken(_) => {
                    let source = seen.addresses.map(|(source, _)| source);
                    show::around(&mut plan, &scene, seen.start, source);
                }
                NoteKind::Void => {}
            }
            plan.say_left_out(at(seen.start, 0));
            plan
        });
        if let Some(plan) = plan {
            // A CNP's own line says so whoever looks; for data the ICRC is computed only where details are asked for.
            let is_data = seen.kind == NoteKind::Roce && bytes.get(seen.start) != Some(&CNP_OPCODE);
            if is_data && !seen.quoted && plan.ops().any(|op| matches!(op, Op::Found(..))) {
                let said = c" [ICRC incorrect]".as_ptr();
                sys::col_append_str((*pinfo).cinfo, compat::COL_INFO, said);
            }
            let canvas = Canvas {
                pinfo,
                root: tree,
                tvb: seen.ds,
            };
            draw(canvas, &plan);
        }
    }
}

/// The code points for what was noted: Decode As may have brought it from any port.
unsafe fn profile_of(pinfo: *mut sys::packet_info, seen: &Note) -> Profile {
    let usual = register::profile(Profile::DEFAULT.rocev2_port);
    match seen.kind {
        NoteKind::Proxy | NoteKind::Broken(P::ProxyCn) => Profile {
            proxy_cn_port: seen.port,
            ..usual
        },
        NoteKind::Wan | NoteKind::Broken(_) => Profile {
            wan_fcn_port: seen.port,
            ..usual
        },
        // SAFETY: the pointers are live.
        _ => register::profile(unsafe { port_of(pinfo, seen) }),
    }
}

/// The RoCEv2 port that the packet around an options header came by.
unsafe fn port_of(pinfo: *mut sys::packet_info, seen: &Note) -> u16 {
    if seen.port != 0 {
        return seen.port;
    }
    // SAFETY: the pointers are live.
    unsafe {
        let all = notes(pinfo);
        (*all)
            .iter()
            .find(|other| other.kind == NoteKind::Roce)
            .map_or(Profile::DEFAULT.rocev2_port, |other| other.port)
    }
}

/// Room for steps and texts of a RoCEv2 packet.
pub const ROCE_PLAN: (usize, usize) = (96, 2048);

/// Room for steps and texts of an options header of `len` octets: a node takes up to 5 steps for 4 octets, an option up
/// to 30 beside its nodes.
pub const fn options_plan(len: usize) -> (usize, usize) {
    let options = if len / 2 < show::MAX_SHOWN {
        len / 2
    } else {
        show::MAX_SHOWN
    };
    (96 + 30 * options + 2 * len, 1536 + 160 * options + 16 * len)
}

/// Whose a datagram is that Wireshark hands to the dissector of `protocol`, and notes it unless it is others'.
///
/// Ours, it is shown in place. Where it is broken, its own dissector refuses it, so that Wireshark asks whoever is known for
/// the other port, and everybody's heuristics; the postdissector shows it if nobody took it. A user who has chosen the port,
/// by Decode As or by the preference, has chosen this: then whatever goes there is shown in place.
unsafe fn claim(tvb: *mut sys::tvbuff_t, pinfo: *mut sys::packet_info, protocol: P) -> Claim {
    // SAFETY: the pointers are live.
    unsafe {
        let port = (*pinfo).destport;
        if port != (*pinfo).match_uint {
            return Claim::Others;
        }
        let (ds, start) = source(tvb);
        let mut new = Note {
            kind: NoteKind::Broken(protocol),
            ds,
            start,
            captured: sys::tvb_captured_length(tvb) as usize,
            reported: sys::tvb_reported_length(tvb) as usize,
            addresses: addresses(pinfo),
            quoted: compat::in_error(pinfo),
            port: port as u16,
            returned: true,
        };
        let here = bytes(tvb);
        let profile = register::profile(Profile::DEFAULT.rocev2_port);
        let ports = ((*pinfo).srcport as u16, port as u16);
        let found = guard(|| show::claim(ports, here, new.reported, new.addresses, &profile));
        let claim = if register::is_chosen_udp_port(port) {
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
            note(pinfo, new);
        }
        claim
    }
}

/// Shows a broken message of ours that nobody else took.
unsafe fn add_broken(pinfo: *mut sys::packet_info, tree: *mut sys::proto_tree, seen: &Note) {
    // SAFETY: the pointers are live; the part of the data source is what the dissector was handed.
    unsafe {
        if seen.quoted || !is_plain_udp(pinfo) {
            return;
        }
        let tvb = sys::tvb_new_subset_length_caplen(
            seen.ds,
            seen.start as c_int,
            seen.captured as c_int,
            seen.reported as c_int,
        );
        match seen.kind {
            NoteKind::Broken(P::WanFcn) => show_wan_fcn(tvb, pinfo, tree),
            _ => show_proxy_cn(tvb, pinfo, tree, false),
        };
    }
}

/// Whether the payload of UDP is data to Wireshark: nobody took it. What somebody took may hold data further in.
unsafe fn is_plain_udp(pinfo: *mut sys::packet_info) -> bool {
    // SAFETY: the list of the packet's protocols is live, and holds their numbers in place of addresses.
    unsafe {
        let [data, udp] =
            [c"data", c"udp"].map(|name| sys::proto_get_id_by_filter_name(name.as_ptr()));
        let number = |frame| sys::wmem_list_frame_data(frame).addr() as c_int;
        let mut layer = sys::wmem_list_tail((*pinfo).layers);
        while !layer.is_null() {
            let before = sys::wmem_list_frame_prev(layer);
            if number(layer) == data && !before.is_null() && number(before) == udp {
                return true;
            }
            layer = before;
        }
        false
    }
}

/// The dissector of notifications to the proxy node.
pub unsafe extern "C" fn proxy_cn(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        match claim(tvb, pinfo, P::ProxyCn) {
            Claim::Ours => show_proxy_cn(tvb, pinfo, tree, true),
            Claim::Broken | Claim::Others => 0,
        }
    }
}

/// Shows the notification to the proxy node in `tvb`, and dissects what it quotes if asked to.
unsafe fn show_proxy_cn(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    with_quoted: bool,
) -> c_int {
    // SAFETY: the pointers are live; what is lent to the plan lives as long as the packet.
    unsafe {
        let (ds, start) = source(tvb);
        let lengths = (
            sys::tvb_captured_length(tvb) as usize,
            sys::tvb_reported_length(tvb) as usize,
        );
        let (ops, store) = (room(pinfo, 64, Op::Close), room(pinfo, 4096, 0));
        let bytes = bytes(ds);
        let wire_len = sys::tvb_reported_length(ds) as usize;
        let ends = addresses(pinfo);
        let quoted = compat::in_error(pinfo);
        // Decode As may have brought the message here from any port.
        let profile = Profile {
            proxy_cn_port: (*pinfo).destport as u16,
            ..register::profile(Profile::DEFAULT.rocev2_port)
        };
        let planned = guard(|| {
            let mut plan = Plan::new(ops, store).quoting(quoted);
            let scene = Scene {
                bytes,
                wire_len,
                profile: &profile,
                check_icrc: false,
                quoted,
            };
            let shown = show::proxy_cn(&mut plan, &scene, start, lengths, ends);
            (plan, shown)
        });
        let Some((plan, shown)) = planned else {
            return 0;
        };
        set_columns(pinfo, P::ProxyCn, &shown.info);
        let canvas = Canvas {
            pinfo,
            root: tree,
            tvb,
        };
        let open = draw(canvas, &plan);
        if with_quoted {
            if let Some((at, ipv6)) = shown.invoking {
                invoking_packet(tvb, at, pinfo, open, register::invoking(ipv6));
            }
            if let Some(need) = shown.missing {
                demand(tvb, need);
            }
        }
        accepted(lengths.0)
    }
}

/// What a dissector returns that took a message of `len` octets. 0 would mean that it refused it, so that Wireshark would
/// ask others about a message without any octets.
fn accepted(len: usize) -> c_int {
    c_int::try_from(len.max(1)).unwrap_or(c_int::MAX)
}

/// Dissects the packet that a notification quotes, marked as a quotation: so it feeds no conversation, and the columns
/// and addresses stay those of the packet around it.
unsafe fn invoking_packet(
    tvb: *mut sys::tvbuff_t,
    at: usize,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    handle: sys::dissector_handle_t,
) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the pointers are live, and `at` is within the captured octets.
    unsafe {
        let at = at as c_int;
        let captured = sys::tvb_captured_length(tvb) as c_int - at;
        let reported = sys::tvb_reported_length(tvb) as c_int - at;
        if captured <= 0 {
            return;
        }
        let quoted = sys::tvb_new_subset_length_caplen(tvb, at, captured, reported);
        let before = compat::in_error(pinfo);
        compat::set_in_error(pinfo, true);
        sys::call_dissector_only(handle, quoted, pinfo, tree, ptr::null_mut());
        compat::set_in_error(pinfo, before);
    }
}

/// Asks for octets that were not captured: Wireshark then says so in its own words.
unsafe fn demand(tvb: *mut sys::tvbuff_t, need: usize) {
    // SAFETY: throws, past frames with nothing to drop.
    unsafe { sys::tvb_get_ptr(tvb, 0, c_int::try_from(need).unwrap_or(c_int::MAX)) };
}

/// The dissector of Fast CNPs in the WAN.
pub unsafe extern "C" fn wan_fcn(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: Wireshark calls with live pointers.
    unsafe {
        if claim(tvb, pinfo, P::WanFcn) != Claim::Ours {
            return 0;
        }
        let done = show_wan_fcn(tvb, pinfo, tree);
        let (captured, reported) = (
            sys::tvb_captured_length(tvb) as usize,
            sys::tvb_reported_length(tvb) as usize,
        );
        if captured < reported && captured < fcn_wire::wan_fcn::WAN_FCN_LEN {
            demand(tvb, fcn_wire::wan_fcn::WAN_FCN_LEN);
        }
        done
    }
}

/// Shows the FCN in `tvb`.
unsafe fn show_wan_fcn(
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
) -> c_int {
    // SAFETY: the pointers are live; what is lent to the plan lives as long as the packet.
    unsafe {
        let (ds, start) = source(tvb);
        let lengths = (
            sys::tvb_captured_length(tvb) as usize,
            sys::tvb_reported_length(tvb) as usize,
        );
        let (ops, store) = (room(pinfo, 32, Op::Close), room(pinfo, 2048, 0));
        let bytes = bytes(ds);
        let wire_len = sys::tvb_reported_length(ds) as usize;
        let ends = addresses(pinfo);
        let quoted = compat::in_error(pinfo);
        // Decode As may have brought the message here from any port.
        let profile = Profile {
            wan_fcn_port: (*pinfo).destport as u16,
            ..register::profile(Profile::DEFAULT.rocev2_port)
        };
        let planned = guard(|| {
            let mut plan = Plan::new(ops, store).quoting(quoted);
            let scene = Scene {
                bytes,
                wire_len,
                profile: &profile,
                check_icrc: false,
                quoted,
            };
            let info = show::wan_fcn(&mut plan, &scene, start, lengths, ends);
            (plan, info)
        });
        let Some((plan, info)) = planned else {
            return 0;
        };
        set_columns(pinfo, P::WanFcn, &info);
        let canvas = Canvas {
            pinfo,
            root: tree,
            tvb,
        };
        draw(canvas, &plan);
        accepted(lengths.0)
    }
}
