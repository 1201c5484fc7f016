//! Conversations and endpoints by QP: `tshark -z conv,fcn` and `-z endpoints,fcn`, and in
//! Wireshark's Statistics menu.
//!
//! An end is a text with address and QP. If the QP were a port, tshark would not print it, because
//! it prints ports only for TCP, UDP and SCTP; and the filter that Wireshark makes of a row would
//! lack it.

use super::{compat, guard, ids, sys, taps};
use crate::names::P;
use crate::plan::ColumnText;
use crate::show::Record;
use core::ffi::{CStr, c_char, c_int, c_void};

/// Registers both tables. Wireshark takes the tap and the names from the protocol.
pub fn register() {
    // SAFETY: the protocol was registered before; callbacks of the right type.
    unsafe {
        sys::register_conversation_table(
            ids::protocol(P::Fcn),
            compat::boolean(true),
            Some(conversation),
            Some(endpoint),
        );
    }
}

/// Returns the table that listens, and the two ends of the connection that a record is about, the
/// sender first.
unsafe fn row(
    table: *mut c_void,
    flags: sys::tap_flags_t,
    data: *const c_void,
) -> Option<(*mut sys::conv_hash_t, [ColumnText; 2])> {
    let table = table.cast::<sys::conv_hash_t>();
    // SAFETY: Wireshark passes the table that listens; the record belongs to this tap.
    let record = unsafe {
        (*table).flags = flags;
        taps::record(data)
    };
    let Record::Notification(notified) = record else {
        return None;
    };
    let ends = guard(|| {
        let ends = notified.ends()?;
        Some(ends.map(|end| ColumnText::new(format_args!("{end}"))))
    });
    Some((table, ends.flatten()?))
}

/// Returns Wireshark's form of a text address.
fn address(text: &ColumnText) -> sys::address {
    // SAFETY: all zeros is a valid value of this C structure.
    let mut address: sys::address = unsafe { core::mem::zeroed() };
    address.type_ = sys::AT_STRINGZ as c_int;
    // Includes the NUL.
    address.len = c_int::try_from(text.as_str().len() + 1).unwrap_or(1);
    address.data = text.as_c_str().as_ptr().cast();
    address
}

/// Wireshark's functions take these by mutable pointers, but do not write through them.
static CONVERSATIONS: sys::ct_dissector_info_t = sys::ct_dissector_info_t {
    get_filter_type: Some(field),
};
static ENDPOINTS: sys::et_dissector_info_t = sys::et_dissector_info_t {
    get_filter_type: Some(field),
};

/// Returns the length of the frame on the wire, in octets.
unsafe fn frame_len(pinfo: *mut sys::packet_info) -> c_int {
    // SAFETY: `pinfo` and its frame are live.
    unsafe { c_int::try_from((*(*pinfo).fd).pkt_len).unwrap_or(c_int::MAX) }
}

unsafe extern "C" fn conversation(
    table: *mut c_void,
    pinfo: *mut sys::packet_info,
    _edt: *mut sys::epan_dissect_t,
    data: *const c_void,
    flags: sys::tap_flags_t,
) -> sys::tap_packet_status {
    // SAFETY: Wireshark passes the table that listens, and copies the addresses.
    unsafe {
        let Some((table, [sender, other])) = row(table, flags, data) else {
            return sys::TAP_PACKET_DONT_REDRAW;
        };
        // The notification goes to the sender.
        let (from, to) = (address(&other), address(&sender));
        sys::add_conversation_table_data(
            table,
            &raw const from,
            &raw const to,
            0,
            0,
            1,
            frame_len(pinfo),
            &raw mut (*pinfo).rel_ts,
            &raw mut (*pinfo).abs_ts,
            (&raw const CONVERSATIONS).cast_mut(),
            sys::CONVERSATION_NONE,
        );
    }
    sys::TAP_PACKET_REDRAW
}

unsafe extern "C" fn endpoint(
    table: *mut c_void,
    pinfo: *mut sys::packet_info,
    _edt: *mut sys::epan_dissect_t,
    data: *const c_void,
    flags: sys::tap_flags_t,
) -> sys::tap_packet_status {
    // SAFETY: Wireshark passes the table that listens, and copies the addresses.
    unsafe {
        let Some((table, [sender, other])) = row(table, flags, data) else {
            return sys::TAP_PACKET_DONT_REDRAW;
        };
        for (end, sends) in [(&other, true), (&sender, false)] {
            let address = address(end);
            sys::add_endpoint_table_data(
                table,
                &raw const address,
                0,
                compat::boolean(sends),
                1,
                frame_len(pinfo),
                (&raw const ENDPOINTS).cast_mut(),
                sys::CONVERSATION_NONE,
            );
        }
    }
    sys::TAP_PACKET_REDRAW
}

/// Returns the field that Wireshark compares with an end, in the filter that it makes of a row.
unsafe extern "C" fn field<T>(_item: *mut T, kind: sys::conv_filter_type_e) -> *const c_char {
    let name: &CStr = match kind {
        sys::CONV_FT_SRC_ADDRESS => c"fcn.end.other",
        sys::CONV_FT_DST_ADDRESS => c"fcn.end.sender",
        _ => c"fcn.end",
    };
    name.as_ptr()
}
