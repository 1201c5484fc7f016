//! What differs between versions of Wireshark, under one name each, as its headers have it (`build.rs`). Layouts and constants
//! come from bindgen.

use super::sys;
use core::ffi::c_int;

/// What a Boolean preference is stored in: `gboolean` in older versions, `bool` later.
#[cfg(has_gboolean)]
pub type BoolPreference = core::sync::atomic::AtomicI32;
/// What a Boolean preference is stored in: `gboolean` in older versions, `bool` later.
#[cfg(not(has_gboolean))]
pub type BoolPreference = core::sync::atomic::AtomicBool;

/// A Boolean preference.
#[cfg(has_gboolean)]
pub const fn preference(is_on: bool) -> BoolPreference {
    BoolPreference::new(is_on as i32)
}
/// A Boolean preference.
#[cfg(not(has_gboolean))]
pub const fn preference(is_on: bool) -> BoolPreference {
    BoolPreference::new(is_on)
}

/// Whether a Boolean preference is on.
pub fn is_on(preference: &BoolPreference) -> bool {
    is_true(preference.load(core::sync::atomic::Ordering::Relaxed))
}

/// Truth of a C Boolean, whichever of the two types it has.
pub fn is_true<T: Default + PartialEq>(value: T) -> bool {
    value != T::default()
}

/// The value of a preference that holds a number.
///
/// # Safety
/// `preference` was found just now, and is one of numbers.
pub unsafe fn uint_value(preference: *mut sys::preference) -> u32 {
    #[cfg(not(has_uint_value_real))]
    use sys::prefs_get_uint_value as get;
    // Up to 4.4, where the other name is another function's.
    #[cfg(has_uint_value_real)]
    use sys::prefs_get_uint_value_real as get;
    // SAFETY: reads a live preference.
    unsafe { get(preference, sys::pref_current) }
}

/// A C Boolean that is handed over: `gboolean` in older versions, `bool` later.
#[cfg(has_gboolean)]
pub type Boolean = c_int;
/// A C Boolean that is handed over: `gboolean` in older versions, `bool` later.
#[cfg(not(has_gboolean))]
pub type Boolean = bool;

/// `value` as Wireshark's functions take it.
#[allow(
    clippy::useless_conversion,
    reason = "the type differs between versions"
)]
pub fn boolean(value: bool) -> Boolean {
    value.into()
}

/// The number of an address type or of a column as Wireshark's functions take it.
pub const COL_INFO: c_int = sys::COL_INFO as c_int;
/// See [`COL_INFO`].
pub const COL_PROTOCOL: c_int = sys::COL_PROTOCOL as c_int;

/// Wireshark's own "compare with what was computed" for checksums (`PROTO_CHECKSUM_VERIFY`, a macro).
pub const CHECKSUM_VERIFY: u32 = 1;

/// Marks an item (an inline function in C, so not exported).
///
/// # Safety
/// `item` is an item that Wireshark just returned.
pub unsafe fn set_flag(item: *mut sys::proto_item, flag: u32) {
    if item.is_null() {
        return;
    }
    // SAFETY: a node is live as long as its tree; faked ones may have no field information.
    unsafe {
        let info = (*item).finfo;
        if !info.is_null() {
            (*info).flags |= flag;
        }
    }
}

/// The separator of submenus in the names of statistics trees is "/" up to 4.0 and "//" later: without a submenu, one
/// name does for all.
pub const STATISTICS_NAME: &core::ffi::CStr = c"Congestion Notification";
