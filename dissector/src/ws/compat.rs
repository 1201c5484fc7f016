//! What differs between Wireshark 4.0, 4.4 and 4.6, under one name each. Layouts and constants come from bindgen.

use super::sys;
use core::ffi::c_int;
use fcn_wire::LinkType;

/// What a Boolean preference is stored in: `gboolean` up to 4.0, `bool` later.
#[cfg(wireshark = "4.0")]
pub type BoolPreference = core::sync::atomic::AtomicI32;
/// What a Boolean preference is stored in: `gboolean` up to 4.0, `bool` later.
#[cfg(not(wireshark = "4.0"))]
pub type BoolPreference = core::sync::atomic::AtomicBool;

/// A Boolean preference.
#[cfg(wireshark = "4.0")]
pub const fn preference(is_on: bool) -> BoolPreference {
    BoolPreference::new(is_on as i32)
}
/// A Boolean preference.
#[cfg(not(wireshark = "4.0"))]
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
    #[cfg(wireshark = "4.6")]
    use sys::prefs_get_uint_value as get;
    // Renamed in 4.6, where the old function of that name is gone.
    #[cfg(not(wireshark = "4.6"))]
    use sys::prefs_get_uint_value_real as get;
    // SAFETY: reads a live preference.
    unsafe { get(preference, sys::pref_current) }
}

/// A C Boolean that is handed over: `gboolean` up to 4.0, `bool` later.
#[cfg(wireshark = "4.0")]
pub type Boolean = c_int;
/// A C Boolean that is handed over: `gboolean` up to 4.0, `bool` later.
#[cfg(not(wireshark = "4.0"))]
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

/// Whether the packet being dissected is quoted in another one.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn in_error(pinfo: *mut sys::packet_info) -> bool {
    // SAFETY: `pinfo` is live.
    is_true(unsafe { (*pinfo).flags.in_error_pkt() })
}

/// Marks what is dissected from now on as quoted, or not.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn set_in_error(pinfo: *mut sys::packet_info, quoted: bool) {
    // A bit of an integer or of a bool, by version.
    #[allow(
        clippy::useless_conversion,
        reason = "the type differs between versions"
    )]
    // SAFETY: `pinfo` is live.
    unsafe {
        (*pinfo).flags.set_in_error_pkt(quoted.into());
    }
}

/// The separator of submenus in the names of statistics trees is "/" up to 4.0 and "//" later: without a submenu, one
/// name does for all.
pub const STATISTICS_NAME: &core::ffi::CStr = c"Congestion Notification";

/// Whether the frame was dissected before.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn visited(pinfo: *mut sys::packet_info) -> bool {
    // SAFETY: `pinfo` is live, and so is its frame's data.
    is_true(unsafe { (*(*pinfo).fd).visited() })
}

/// The frame's time in nanoseconds since 1970, where it has one; what lies before counts as 1970.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn time(pinfo: *mut sys::packet_info) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    // SAFETY: `pinfo` is live, and so is its frame's data.
    unsafe {
        if !is_true((*(*pinfo).fd).has_ts()) {
            return None;
        }
        let time = (*pinfo).abs_ts;
        let seconds = u64::try_from(time.secs).unwrap_or(0);
        let nanoseconds = u64::try_from(time.nsecs).unwrap_or(0);
        Some(seconds.saturating_mul(SECOND).saturating_add(nanoseconds))
    }
}

/// The frame's own octets, among the sources that a packet's data is taken from; null where there are none.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn frame_tvb(pinfo: *mut sys::packet_info) -> *mut sys::tvbuff_t {
    // SAFETY: `pinfo` is live, and so are its sources, of which the frame is the first.
    unsafe {
        let first = (*pinfo).data_src;
        if first.is_null() {
            return core::ptr::null_mut();
        }
        sys::get_data_source_tvb((*first).data.cast())
    }
}

/// The number of the interface that the frame was captured on; 0 where the file does not say.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn interface(pinfo: *mut sys::packet_info) -> u32 {
    // SAFETY: `pinfo` is live, and so is its record; the flags say that the field is there.
    unsafe {
        let record = (*pinfo).rec;
        if record.is_null() || (*record).presence_flags & sys::WTAP_HAS_INTERFACE_ID == 0 {
            return 0;
        }
        (*record).rec_header.packet_header.interface_id
    }
}

/// What the frame begins with, where `fcn-wire` can read that.
///
/// # Safety
/// `pinfo` comes from Wireshark.
pub unsafe fn link_type(pinfo: *mut sys::packet_info) -> Option<LinkType> {
    // SAFETY: `pinfo` is live, and so is its record; what is dissected as a frame is a packet.
    let encapsulation = unsafe {
        let record = (*pinfo).rec;
        if record.is_null() {
            return None;
        }
        (*record).rec_header.packet_header.pkt_encap
    };
    match u32::try_from(encapsulation).ok()? {
        sys::WTAP_ENCAP_ETHERNET => Some(LinkType::Ethernet),
        sys::WTAP_ENCAP_RAW_IP | sys::WTAP_ENCAP_RAW_IP4 | sys::WTAP_ENCAP_RAW_IP6 => {
            Some(LinkType::RawIp)
        }
        sys::WTAP_ENCAP_SLL => Some(LinkType::LinuxCooked),
        sys::WTAP_ENCAP_SLL2 => Some(LinkType::LinuxCooked2),
        sys::WTAP_ENCAP_NULL | sys::WTAP_ENCAP_LOOP => Some(LinkType::Null),
        _ => None,
    }
}
