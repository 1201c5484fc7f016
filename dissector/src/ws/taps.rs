//! The tap: one record for each notification, one that cannot be read among them, for statistics of ours and of Wireshark's.

use super::packet::Packet;
use super::{compat, sys};
use crate::show::Record;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};

/// The tap's name. Wireshark finds the tap of a conversation table by the filter name of its protocol.
pub const NAME: &CStr = c"fcn";

static TAP: AtomicI32 = AtomicI32::new(-1);

fn tap() -> c_int {
    TAP.load(Ordering::Relaxed)
}

/// Registers the tap.
pub fn register() {
    // SAFETY: a text that ends with a NUL.
    let id = unsafe { sys::register_tap(NAME.as_ptr()) };
    TAP.store(id, Ordering::Relaxed);
}

/// Whether anyone listens.
pub fn has_listener() -> bool {
    // SAFETY: the tap was registered at start.
    compat::is_true(unsafe { sys::have_tap_listener(tap()) })
}

/// Puts a notification before the listeners, who see it when the packet is done. Called by the postdissector: that one runs
/// even where an exception has ended the dissection.
pub fn queue(packet: Packet<'_>, record: Record) {
    let record = packet.scratch(1)[0].write(record);
    // An exception in a quoted packet may have left the mark of a quotation, whose records nobody hears.
    let quoted = packet.is_quoted();
    packet.set_quoted(false);
    // SAFETY: the packet is live, and its pool outlasts the taps.
    unsafe { sys::tap_queue_packet(tap(), packet.0, core::ptr::from_mut(record).cast()) };
    packet.set_quoted(quoted);
}

/// The record that a listener is handed.
///
/// # Safety
/// `data` comes from this tap.
pub unsafe fn record(data: *const c_void) -> Record {
    // SAFETY: `queue` wrote it.
    unsafe { data.cast::<Record>().read() }
}
