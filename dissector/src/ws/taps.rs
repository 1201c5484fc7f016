//! The tap: one record for each notification, one that cannot be read among them, for statistics of ours and of Wireshark's.

use super::{compat, scratch, sys};
use crate::show::Heard;
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
///
/// # Safety
/// Called on Wireshark's thread.
pub unsafe fn is_heard() -> bool {
    // SAFETY: the tap was registered at start.
    compat::is_true(unsafe { sys::have_tap_listener(tap()) })
}

/// Puts a notification before the listeners, who see it when the packet is done.
///
/// # Safety
/// Called by the postdissector: that one runs even where an exception has ended the dissection.
pub unsafe fn queue(pinfo: *mut sys::packet_info, heard: Heard) {
    // SAFETY: `pinfo` is live; the packet's pool outlasts the taps.
    unsafe {
        let place = scratch::<Heard>(pinfo, 1);
        place[0].write(heard);
        // An exception in a quoted packet may have left the mark of a quotation, whose records nobody hears.
        let quoted = compat::in_error(pinfo);
        compat::set_in_error(pinfo, false);
        sys::tap_queue_packet(tap(), pinfo, place.as_ptr().cast());
        compat::set_in_error(pinfo, quoted);
    }
}

/// The record that a listener is handed.
///
/// # Safety
/// `data` comes from this tap.
pub unsafe fn record(data: *const c_void) -> Heard {
    // SAFETY: `queue` wrote it.
    unsafe { data.cast::<Heard>().read() }
}
