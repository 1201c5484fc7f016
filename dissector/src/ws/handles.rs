//! Handles of Wireshark's own dissectors: those that our wrappers precede, and the owners of UDP
//! ports.

use super::{compat, sys};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use fcn_wire::Profile;

pub const UDP_PORT: &CStr = c"udp.port";
pub const ETHERTYPE: &CStr = c"ethertype";
pub type Handle = AtomicPtr<sys::dissector_handle>;

/// A wrapper of ours in front of one of Wireshark's own dissectors.
pub struct Wrapped {
    pub table: &'static CStr,
    /// Key in the table.
    pub number: u32,
    /// Filter name of the protocol whose handle is expected there; `None`: any.
    pub protocol: Option<&'static CStr>,
    pub callback: Callback,
    pub name: &'static CStr,
    pub description: &'static CStr,
    pub ours: Handle,
    pub original: Handle,
}

/// Defines statics of wrappers, each for a function that takes the call and the wrapper.
macro_rules! wrappers {
    ($( $(#[$doc:meta])* $id:ident = $table:literal, $number:expr, $protocol:expr => $work:path, $name:literal, $description:literal; )+) => { $(
        $(#[$doc])*
        pub static $id: $crate::ws::handles::Wrapped = $crate::ws::handles::Wrapped {
            table: $table,
            number: $number,
            protocol: $protocol,
            callback: $crate::ws::packet::callback!($work, &$id),
            name: $name,
            description: $description,
            ours: $crate::ws::handles::Handle::new(core::ptr::null_mut()),
            original: $crate::ws::handles::Handle::new(core::ptr::null_mut()),
        };
    )+ };
}
pub(super) use wrappers;

impl Wrapped {
    /// Returns Wireshark's own handle.
    pub fn original(&self) -> sys::dissector_handle_t {
        self.original.load(Ordering::Relaxed)
    }

    /// Returns the wrapper's handle, created once. Later versions of Wireshark complain if handles
    /// of a table have no names to tell them apart. Decode As shows the description; a comma in it
    /// would corrupt the file that stores a user's choices.
    pub fn ours(&self) -> sys::dissector_handle_t {
        let mut ours = self.ours.load(Ordering::Relaxed);
        if ours.is_null() {
            // No protocol: Wireshark's own handle then enters its own name into the packet's list
            // of protocols, once.
            // SAFETY: a callback of the right type and texts that live forever.
            ours = unsafe {
                sys::create_dissector_handle_with_name_and_description(
                    Some(self.callback),
                    -1,
                    self.name.as_ptr(),
                    self.description.as_ptr(),
                )
            };
            self.ours.store(ours, Ordering::Relaxed);
        }
        ours
    }

    /// Puts the wrapper in front of Wireshark's own handle at `number`, if there is one; a user's
    /// choice by Decode As stays. `as_chosen`: in the same way as Decode As.
    ///
    /// # Safety
    /// Called while Wireshark starts, or between packets.
    pub unsafe fn hook(&self, number: u32, as_chosen: bool) {
        let (ours, name) = (self.ours(), self.table.as_ptr());
        // SAFETY: the tables and handles have existed since startup; texts end with a NUL.
        unsafe {
            let table = sys::find_dissector_table(name);
            if table.is_null() {
                return;
            }
            let present = sys::dissector_get_uint_handle(table, number);
            let is_wanted = |protocol: &CStr| {
                sys::dissector_handle_get_protocol_index(present)
                    == sys::proto_get_id_by_filter_name(protocol.as_ptr())
            };
            if present.is_null() || present == ours || !self.protocol.is_none_or(is_wanted) {
                return;
            }
            self.original.store(present, Ordering::Relaxed);
            if as_chosen {
                sys::dissector_change_uint(name, number, ours);
            } else {
                sys::dissector_add_uint(name, number, ours);
            }
        }
    }

    /// Puts the wrapper in front of Wireshark's own handle at the numbers that a user has chosen
    /// for it by Decode As.
    ///
    /// # Safety
    /// As for [`Self::hook`].
    pub unsafe fn hook_chosen(&self) {
        if !self.original().is_null() {
            // SAFETY: a table of numbers.
            unsafe {
                for number in numbers_of(self.table, self.original()) {
                    sys::dissector_change_uint(self.table.as_ptr(), number, self.ours());
                }
            }
        }
    }
}

/// UDP port in InfiniBand's preference.
pub static ROCE_PORT: AtomicU32 = AtomicU32::new(Profile::DEFAULT.rocev2_port as u32);

/// Handle of our wrapper, which is registered wherever RoCEv2 is dissected.
pub static ROCE_HANDLE: Handle = Handle::new(core::ptr::null_mut());

/// Returns [`ROCE_PORT`], or 0 if InfiniBand's preference names none.
pub fn roce_port() -> u16 {
    u16::try_from(ROCE_PORT.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Returns true if Wireshark without this plugin would try the dissector of UDP port `other` before
/// InfiniBand at port `roce`, and has not tried it yet. Wireshark tries a dissector that the user
/// has chosen first, then the one of the lower port. Our wrapper counts as chosen.
pub fn comes_first(other: u32, roce: u32) -> bool {
    other != roce
        && roce == ROCE_PORT.load(Ordering::Relaxed)
        && (other < roce) != is_chosen_udp_port(other)
}

/// Returns true if a user has chosen the dissector of UDP port `port`, by Decode As or by a
/// preference.
pub fn is_chosen_udp_port(port: u32) -> bool {
    // SAFETY: lookups in tables that have existed since startup.
    unsafe {
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        !table.is_null() && compat::is_true(sys::dissector_is_uint_changed(table, port))
    }
}

/// Returns true if packets to UDP port `port` are dissected as RoCEv2, by InfiniBand's preference
/// or by Decode As.
pub fn is_roce_port(port: u16) -> bool {
    // SAFETY: lookups in tables that have existed since startup.
    unsafe {
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        let handle = ROCE_HANDLE.load(Ordering::Relaxed);
        !table.is_null() && sys::dissector_get_uint_handle(table, port.into()) == handle
    }
}

pub type Callback = unsafe extern "C" fn(
    *mut sys::tvbuff_t,
    *mut sys::packet_info,
    *mut sys::proto_tree,
    *mut c_void,
) -> c_int;

/// Returns the numbers in a dissector table that have this handle.
///
/// # Safety
/// Called while Wireshark starts, or between packets; `table` is one of numbers.
unsafe fn numbers_of(table: &CStr, handle: sys::dissector_handle_t) -> Vec<u32> {
    unsafe extern "C" fn collect(
        _table: *const c_char,
        _kind: sys::ftenum_t,
        key: *mut c_void,
        entry: *mut c_void,
        found: *mut c_void,
    ) {
        // SAFETY: Wireshark passes an entry of the table and the pointer that it was given below.
        unsafe {
            let found: *mut (sys::dissector_handle_t, Vec<u32>) = found.cast();
            if sys::dtbl_entry_get_handle(entry.cast()) == (*found).0 {
                // Tables of numbers store them in the key's pointer.
                (*found).1.push(key.addr() as u32);
            }
        }
    }
    let mut found = (handle, Vec::new());
    // SAFETY: the callback gets the address of `found`, which outlives the call.
    unsafe {
        sys::dissector_table_foreach(table.as_ptr(), Some(collect), (&raw mut found).cast());
    }
    found.1
}
