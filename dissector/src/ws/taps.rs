//! The tap: one record for each notification, including unreadable ones, for our statistics and for
//! Wireshark's.

use super::packet::Packet;
use super::{compat, sys};
use crate::show::Record;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};

/// Name of the tap. Wireshark finds the tap of a conversation table by the filter name of its
/// protocol.
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

/// Returns true if the tap has a listener.
pub fn has_listener() -> bool {
    // SAFETY: the tap was registered at startup.
    compat::is_true(unsafe { sys::have_tap_listener(tap()) })
}

/// Queues a record for the listeners, which receive it when the packet is finished. Called by the
/// postdissector, which runs even if an exception has ended the dissection.
pub fn queue(packet: Packet<'_>, record: Record) {
    let record = packet.scratch(1)[0].write(record);
    // An exception in a quoted packet may have left the quotation flag set, with which no listener
    // receives the record.
    let quoted = packet.is_quoted();
    packet.set_quoted(false);
    // SAFETY: the packet is live, and its pool outlasts the taps.
    unsafe { sys::tap_queue_packet(tap(), packet.0, core::ptr::from_mut(record).cast()) };
    packet.set_quoted(quoted);
}

/// Returns the record that a listener receives.
///
/// # Safety
/// `data` comes from this tap.
pub unsafe fn record(data: *const c_void) -> Record {
    // SAFETY: `queue` wrote it.
    unsafe { data.cast::<Record>().read() }
}
