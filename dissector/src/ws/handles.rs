//! Handles of Wireshark's own dissectors: those that a wrapper of ours stands in front of, and who has a UDP port.

use super::{compat, sys};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use fcn_wire::Profile;

pub const UDP_PORT: &CStr = c"udp.port";
pub type Handle = AtomicPtr<sys::dissector_handle>;

/// Dissectors for the packet that a proxy notification quotes: IPv4, IPv6.
pub static INVOKING: [Handle; 2] = [const { Handle::new(ptr::null_mut()) }; 2];

/// A handle of Wireshark's own that a wrapper of ours stands in front of.
pub struct Wrapped {
    ours: Handle,
    original: Handle,
}

impl Wrapped {
    pub(super) const fn new() -> Self {
        Self {
            ours: Handle::new(ptr::null_mut()),
            original: Handle::new(ptr::null_mut()),
        }
    }

    /// Wireshark's own handle.
    pub fn original(&self) -> sys::dissector_handle_t {
        self.original.load(Ordering::Relaxed)
    }

    /// Sets Wireshark's own handle.
    pub(super) fn set_original(&self, original: sys::dissector_handle_t) {
        self.original.store(original, Ordering::Relaxed);
    }

    /// The wrapper's handle, made once. Later Wiresharks complain where handles of a table have no names to tell them
    /// apart. The description names it in Decode As; a comma would break the file that keeps
    /// a user's choices.
    pub(super) unsafe fn ours(
        &self,
        callback: sys::dissector_t,
        name: &CStr,
        description: &CStr,
    ) -> sys::dissector_handle_t {
        let mut ours = self.ours.load(Ordering::Relaxed);
        if ours.is_null() {
            // No protocol: Wireshark's own handle then enters its own name into the packet's list of protocols, once.
            // SAFETY: a callback of the right type and a text that lives forever.
            ours = unsafe {
                sys::create_dissector_handle_with_name_and_description(
                    callback,
                    -1,
                    name.as_ptr(),
                    description.as_ptr(),
                )
            };
            self.ours.store(ours, Ordering::Relaxed);
        }
        ours
    }
}

/// The UDP port of InfiniBand's preference.
pub static ROCE_PORT: AtomicU32 = AtomicU32::new(Profile::DEFAULT.rocev2_port as u32);
/// RoCEv2 at its UDP port.
pub static ROCE: Wrapped = Wrapped::new();
/// Destination Options headers.
pub static DESTINATION_OPTIONS: Wrapped = Wrapped::new();
/// Hop-by-Hop Options headers.
pub static HOP_BY_HOP: Wrapped = Wrapped::new();
/// MAC control frames.
pub static MAC_CONTROL: Wrapped = Wrapped::new();

/// The dissector for an invoking packet.
pub fn invoking(ipv6: bool) -> sys::dissector_handle_t {
    INVOKING[usize::from(ipv6)].load(Ordering::Relaxed)
}

/// Whether Wireshark without us would ask what is at UDP port `other` before InfiniBand at port `roce`, and has not asked it
/// yet: it asks what a user has chosen first, then the lower port. Our wrapper counts as chosen.
pub fn is_asked_first(other: u32, roce: u32) -> bool {
    other != roce
        && roce == ROCE_PORT.load(Ordering::Relaxed)
        && (other < roce) != is_chosen_udp_port(other)
}

/// Whether a user has chosen what dissects UDP port `port`, by Decode As or by a preference.
pub fn is_chosen_udp_port(port: u32) -> bool {
    // SAFETY: lookups in tables that exist since start.
    unsafe {
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        !table.is_null() && compat::is_true(sys::dissector_is_uint_changed(table, port))
    }
}

pub(super) type Callback = unsafe extern "C" fn(
    *mut sys::tvbuff_t,
    *mut sys::packet_info,
    *mut sys::proto_tree,
    *mut c_void,
) -> c_int;

/// The numbers in a dissector table at which that handle is.
///
/// # Safety
/// Called while Wireshark starts, or between packets; `table` is one of numbers.
pub(super) unsafe fn numbers_of(table: &CStr, handle: sys::dissector_handle_t) -> Vec<u32> {
    unsafe extern "C" fn collect(
        _table: *const c_char,
        _kind: sys::ftenum_t,
        key: *mut c_void,
        entry: *mut c_void,
        found: *mut c_void,
    ) {
        // SAFETY: Wireshark hands over an entry of the table and what it was given below.
        unsafe {
            let found: *mut (sys::dissector_handle_t, Vec<u32>) = found.cast();
            if sys::dtbl_entry_get_handle(entry.cast()) == (*found).0 {
                // Tables of numbers keep them in place of the key's address.
                (*found).1.push(key.addr() as u32);
            }
        }
    }
    let mut found = (handle, Vec::new());
    // SAFETY: the callback is given the address of `found`, which outlives the call.
    unsafe {
        sys::dissector_table_foreach(table.as_ptr(), Some(collect), (&raw mut found).cast());
    }
    found.1
}
