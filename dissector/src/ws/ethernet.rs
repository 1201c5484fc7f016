//! Our dissectors at EtherTypes that Wireshark itself does not decode: the congestion notification
//! message of a bridge, the CN-TAG and the CSIG tag. If Wireshark, or another plugin, has a
//! dissector for one of them, that one stays.

use super::draw::{draw, plan};
use super::handles::{Callback, ETHERTYPE, Handle};
use super::packet::{Call, Tree, Tvb, callback};
use super::{ids, preferences, sys};
use crate::names::P;
use crate::plan::Plan;
use crate::show::{self, MessageResult, TAG_LEN};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicU16, Ordering};
use fcn_wire::cnm::CNM_LEN;
use fcn_wire::header::ethernet::{CN_TAG, CNM};

/// Handle of the dissector of the CSIG tag, and the EtherType that it has; 0 if none.
static CSIG: Handle = Handle::new(ptr::null_mut());
static CSIG_ETHER_TYPE: AtomicU16 = AtomicU16::new(0);

/// Registers the dissectors, except for [`register_csig`].
///
/// # Safety
/// Called while Wireshark starts, after the protocols were registered.
pub unsafe fn register() {
    // SAFETY: callbacks of the right type, protocols registered before.
    unsafe {
        let message: Callback = callback!(dissect_cnm);
        let cn_tag: Callback = callback!(dissect_tag, show::cn_tag);
        let csig: Callback = callback!(dissect_tag, show::csig);
        for (ether_type, protocol, dissector) in
            [(CNM, P::Cnm, message), (CN_TAG, P::CnTag, cn_tag)]
        {
            let handle = sys::create_dissector_handle(Some(dissector), ids::protocol(protocol));
            add(ether_type, handle);
        }
        let csig = sys::create_dissector_handle(Some(csig), ids::protocol(P::Csig));
        CSIG.store(csig, Ordering::Relaxed);
    }
}

/// Registers the dissector of the CSIG tag at the EtherType in its preference.
///
/// # Safety
/// Called while Wireshark starts, after [`register`], or between packets.
pub unsafe fn register_csig() {
    let ether_type = preferences::csig_ether_type();
    let before = CSIG_ETHER_TYPE.swap(ether_type, Ordering::Relaxed);
    if before == ether_type {
        return;
    }
    let handle = CSIG.load(Ordering::Relaxed);
    // SAFETY: a table of numbers, and a handle of ours.
    unsafe {
        if before != 0 && dissector_at(before) == handle {
            sys::dissector_delete_uint(ETHERTYPE.as_ptr(), before.into(), handle);
        }
        if ether_type != 0 {
            add(ether_type, handle);
        }
    }
}

/// Registers a dissector at an EtherType that has none.
///
/// # Safety
/// Called while Wireshark starts, or between packets.
unsafe fn add(ether_type: u16, handle: sys::dissector_handle_t) {
    // SAFETY: a table of numbers, and a handle of ours.
    unsafe {
        if dissector_at(ether_type).is_null() {
            sys::dissector_add_uint(ETHERTYPE.as_ptr(), ether_type.into(), handle);
        }
    }
}

/// # Safety
/// As for [`add`].
unsafe fn dissector_at(ether_type: u16) -> sys::dissector_handle_t {
    // SAFETY: lookups in tables that exist since startup.
    unsafe {
        let table = sys::find_dissector_table(ETHERTYPE.as_ptr());
        match table.is_null() {
            true => ptr::null_mut(),
            false => sys::dissector_get_uint_handle(table, ether_type.into()),
        }
    }
}

/// Shows a bridge's message, and dissects the packet that it quotes.
fn dissect_cnm(call: Call<'_>) -> c_int {
    let Call { packet, tvb, .. } = call;
    let Some((open, shown)) = show_cnm(call) else {
        return 0;
    };
    if let Some(need) = shown.missing {
        tvb.demand(need);
    }
    if let Some((at, ipv6)) = shown.invoking {
        packet.dissect_quoted(tvb, at, open, if ipv6 { c"ipv6" } else { c"ip" });
    }
    length(tvb)
}

// Not inlined, as below: its buffers are not to stay on the stack while others dissect.
#[inline(never)]
fn show_cnm(call: Call<'_>) -> Option<(Tree<'_>, MessageResult)> {
    let Call {
        packet, tvb, tree, ..
    } = call;
    let bytes = tvb.bytes();
    let (plan, shown) = plan(packet, packet.is_quoted(), |plan| show::cnm(plan, bytes))?;
    packet.set_columns(P::Cnm, &shown.info);
    let msdu_len = bytes
        .get(CNM_LEN - 2..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |len| usize::from(u16::from_be_bytes(*len)));
    let open = draw(packet, tree, tvb, plan);
    tvb.shorten(CNM_LEN + msdu_len);
    Some((open, shown))
}

/// Shows a tag with the plan that `show` makes, and dissects what follows it.
fn dissect_tag(call: Call<'_>, show: fn(&mut Plan, &[u8]) -> Option<u16>) -> c_int {
    let Call {
        packet, tvb, tree, ..
    } = call;
    match show_tag(call, show) {
        Some(Some(ether_type)) => {
            let payload = tvb.rest(TAG_LEN);
            packet.dissect_ether_type(ether_type, payload, tree);
            // What the payload has left is padding of the frame.
            tvb.shorten(TAG_LEN + payload.reported());
        }
        Some(None) => tvb.demand(TAG_LEN),
        None => return 0,
    }
    length(tvb)
}

#[inline(never)]
fn show_tag(call: Call<'_>, show: fn(&mut Plan, &[u8]) -> Option<u16>) -> Option<Option<u16>> {
    let bytes = call.tvb.bytes();
    let (plan, ether_type) = plan(call.packet, false, |plan| show(plan, bytes))?;
    draw(call.packet, call.tree, call.tvb, plan);
    Some(ether_type)
}

/// Returns what a dissector returns that accepted everything; 0 would mean refusal.
fn length(tvb: Tvb<'_>) -> c_int {
    c_int::try_from(tvb.captured().max(1)).unwrap_or(c_int::MAX)
}
