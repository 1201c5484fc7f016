//! Differences between Wireshark versions, under one name each, as detected in the headers by
//! `build.rs`. Layouts and constants come from bindgen.

use super::sys;
use core::ffi::c_int;

/// Storage of a Boolean preference: `gboolean` in older versions, `bool` in later ones.
#[cfg(has_gboolean)]
pub type BoolPreference = core::sync::atomic::AtomicI32;
/// Storage of a Boolean preference: `gboolean` in older versions, `bool` in later ones.
#[cfg(not(has_gboolean))]
pub type BoolPreference = core::sync::atomic::AtomicBool;

/// Returns a Boolean preference with this value.
#[cfg(has_gboolean)]
pub const fn preference(is_on: bool) -> BoolPreference {
    BoolPreference::new(is_on as i32)
}
/// Returns a Boolean preference with this value.
#[cfg(not(has_gboolean))]
pub const fn preference(is_on: bool) -> BoolPreference {
    BoolPreference::new(is_on)
}

/// Returns true if a Boolean preference is on.
pub fn is_on(preference: &BoolPreference) -> bool {
    is_true(preference.load(core::sync::atomic::Ordering::Relaxed))
}

/// Converts a C Boolean of either type.
pub fn is_true<T: Default + PartialEq>(value: T) -> bool {
    value != T::default()
}

/// Returns the value of a numeric preference.
///
/// # Safety
/// `preference` has just been looked up, and is numeric.
pub unsafe fn uint_value(preference: *mut sys::preference) -> u32 {
    #[cfg(not(has_uint_value_real))]
    use sys::prefs_get_uint_value as get;
    // Up to 4.4, where the other name belongs to a different function.
    #[cfg(has_uint_value_real)]
    use sys::prefs_get_uint_value_real as get;
    // SAFETY: reads a live preference.
    unsafe { get(preference, sys::pref_current) }
}

/// A C Boolean as function argument: `gboolean` in older versions, `bool` in later ones.
#[cfg(has_gboolean)]
pub type Boolean = c_int;
/// A C Boolean as function argument: `gboolean` in older versions, `bool` in later ones.
#[cfg(not(has_gboolean))]
pub type Boolean = bool;

/// Converts `value` to the type that Wireshark's functions take.
#[allow(
    clippy::useless_conversion,
    reason = "the type differs between versions"
)]
pub fn boolean(value: bool) -> Boolean {
    value.into()
}

/// Number of the Info column, in the type that Wireshark's functions take.
pub const COL_INFO: c_int = sys::COL_INFO as c_int;
/// Number of the Protocol column; see [`COL_INFO`].
pub const COL_PROTOCOL: c_int = sys::COL_PROTOCOL as c_int;

/// Wireshark's flag to compare a checksum with the computed value (`PROTO_CHECKSUM_VERIFY`, a
/// macro).
pub const CHECKSUM_VERIFY: u32 = 1;

/// Sets a flag of an item (an inline function in C, so not exported).
///
/// # Safety
/// `item` is an item that Wireshark has just returned.
pub unsafe fn set_flag(item: *mut sys::proto_item, flag: u32) {
    if item.is_null() {
        return;
    }
    // SAFETY: a node lives as long as its tree; faked nodes may have no field information.
    unsafe {
        let info = (*item).finfo;
        if !info.is_null() {
            (*info).flags |= flag;
        }
    }
}

/// Name of our statistics tree. The separator of submenus in such names is "/" up to 4.0 and "//"
/// later; without a submenu, one name works for all versions.
pub const STATISTICS_NAME: &core::ffi::CStr = c"Congestion Notification";
