//! Registers protocols, fields, expert infos, preferences and handles with Wireshark.

use super::compat;
use super::handles::{Callback, ROCE_HANDLE, ROCE_PORT, UDP_PORT};
use super::ids::{
    EXPERT_PROTOCOL, EXPERT_TAP, FIELD_ETTS, FIELD_IDS, PROTOCOL_ETTS, PROTOCOL_IDS, RULE_IDS,
    expert, protocol,
};
use super::packet::callback;
use super::preferences::{INFINIBAND, PORTS, VXLAN};
use super::wrappers::ROCE;
use super::{
    ethernet, guard, ids, memory, messages, post, preferences, routing, statistics, sys, tables,
    taps, wrappers,
};
use crate::names::{F, Field, Kind, Link, P, Remark, expert_protocol};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use fcn_wire::finding::{Rule, Severity};
use fcn_wire::profile::VXLAN_PORT;
use std::ffi::CString;

/// Returns a text that lives as long as Wireshark runs.
fn leaked_text(text: &str) -> *const c_char {
    match CString::new(text) {
        Ok(text) => text.into_raw(),
        Err(_) => c"".as_ptr(),
    }
}

/// Registers the plugin; called by `plugin_register`.
pub fn plugin() {
    let plugin = Box::leak(Box::new(sys::proto_plugin {
        register_protoinfo: Some(protocols),
        register_handoff: Some(handoff),
    }));
    // SAFETY: Wireshark keeps the pointer; the structure is never freed.
    unsafe { sys::proto_register_plugin(plugin) };
}

unsafe extern "C" fn protocols() {
    for p in P::ALL {
        let def = p.def();
        // SAFETY: three texts that live forever.
        let id = unsafe {
            sys::proto_register_protocol(
                leaked_text(def.name),
                leaked_text(def.short),
                leaked_text(def.filter),
            )
        };
        PROTOCOL_IDS[*p as usize].store(id, Ordering::Relaxed);
    }
    for p in P::ALL {
        register_fields(*p);
        register_experts(*p);
    }
    register_subtrees();
    preferences::register();
    taps::register();
    statistics::register();
    tables::register();
}

fn register_fields(protocol_of: P) {
    let records: Vec<sys::hf_register_info> = F::ALL
        .iter()
        .filter(|f| f.def().protocol == protocol_of)
        .map(|f| {
            let def = f.def();
            let (type_, display) = wireshark_type(def);
            // SAFETY: all zeros is a valid value of this C structure; the relevant fields are set
            // below.
            let mut info: sys::header_field_info = unsafe { core::mem::zeroed() };
            info.name = leaked_text(def.name);
            info.abbrev = leaked_text(def.filter);
            info.type_ = type_;
            info.display = display;
            info.strings = value_strings(def);
            info.bitmask = def.mask;
            info.id = -1;
            info.same_name_prev_id = -1;
            sys::hf_register_info {
                p_id: FIELD_IDS[*f as usize].as_ptr(),
                hfinfo: info,
            }
        })
        .collect();
    let records = records.leak();
    // SAFETY: the records live forever, and so do the locations of the numbers.
    unsafe {
        sys::proto_register_field_array(
            protocol(protocol_of),
            records.as_mut_ptr(),
            records.len() as c_int,
        );
    }
}

fn wireshark_type(def: &Field) -> (sys::ftenum, c_int) {
    let number = |bits: u8| match bits {
        8 => sys::FT_UINT8,
        16 => sys::FT_UINT16,
        24 => sys::FT_UINT24,
        56 => sys::FT_UINT56,
        64 => sys::FT_UINT64,
        _ => sys::FT_UINT32,
    };
    let (type_, display) = match def.kind {
        Kind::Node => (sys::FT_NONE, sys::BASE_NONE as c_int),
        Kind::Dec(bits) => (number(bits), sys::BASE_DEC as c_int),
        Kind::Named(bits) => (number(bits), sys::BASE_NONE as c_int),
        Kind::Hex(bits) => (number(bits), sys::BASE_HEX as c_int),
        Kind::Signed => (sys::FT_INT16, sys::BASE_DEC as c_int),
        Kind::Mac => (sys::FT_ETHER, sys::BASE_NONE as c_int),
        Kind::Flag(bits) => (sys::FT_BOOLEAN, c_int::from(bits)),
        Kind::Ipv4 => (sys::FT_IPv4, sys::BASE_NONE as c_int),
        Kind::Ipv6 => (sys::FT_IPv6, sys::BASE_NONE as c_int),
        Kind::Bytes => (sys::FT_BYTES, sys::BASE_NONE as c_int),
        Kind::Text => (sys::FT_STRING, sys::BASE_NONE as c_int),
        Kind::Frame(_) => (sys::FT_FRAMENUM, sys::BASE_NONE as c_int),
        Kind::Span => (sys::FT_RELATIVE_TIME, sys::BASE_NONE as c_int),
    };
    (type_, display)
}

fn value_strings(def: &Field) -> *const c_void {
    if let Kind::Frame(link) = def.kind {
        // Wireshark takes a number here, where other fields have a list.
        let link = match link {
            Link::Cause => sys::FT_FRAMENUM_REQUEST,
            Link::Effect => sys::FT_FRAMENUM_RESPONSE,
        };
        return ptr::without_provenance(link as usize);
    }
    if def.values.is_empty() {
        return ptr::null();
    }
    let mut strings: Vec<sys::value_string> = def
        .values
        .iter()
        .map(|(value, text)| sys::value_string {
            value: *value,
            strptr: leaked_text(text),
        })
        .collect();
    strings.push(sys::value_string {
        value: 0,
        strptr: ptr::null(),
    });
    strings.leak().as_ptr().cast()
}

fn register_experts(protocol_of: P) {
    let mut records: Vec<sys::ei_register_info> = Rule::ALL
        .iter()
        .filter(|rule| expert_protocol(**rule) == protocol_of)
        .map(|rule| {
            let info = rule.info();
            RULE_IDS[*rule as usize].store(leaked_text(info.id).cast_mut(), Ordering::Relaxed);
            let text = format!("{} [{}]", info.text, info.section);
            let kind = (group(*rule), severity(info.severity));
            expert_record(expert(*rule), &rule.filter_name(), kind, &text)
        })
        .collect();
    if protocol_of == P::Roce {
        records.extend(Remark::ALL.into_iter().map(|remark| {
            let severity = remark.severity().map_or(sys::PI_COMMENT, severity);
            let kind = (sys::PI_SEQUENCE, severity);
            expert_record(ids::remark(remark), remark.id(), kind, remark.text())
        }));
    }
    if records.is_empty() {
        return;
    }
    let records = records.leak();
    // SAFETY: the records live forever, and so do the locations of the numbers.
    unsafe {
        let module = sys::expert_register_protocol(protocol(protocol_of));
        sys::expert_register_field_array(module, records.as_mut_ptr(), records.len() as c_int);
    }
}

/// Returns a record of expert info, of this group and severity.
fn expert_record(
    ids: *mut sys::expert_field,
    name: &str,
    (group, severity): (u32, u32),
    summary: &str,
) -> sys::ei_register_info {
    // SAFETY: all zeros is a valid value of this C structure; the relevant fields are set below.
    let mut record: sys::ei_register_info = unsafe { core::mem::zeroed() };
    record.ids = ids;
    record.eiinfo.name = leaked_text(name);
    record.eiinfo.group = group as c_int;
    record.eiinfo.severity = severity as c_int;
    record.eiinfo.summary = leaked_text(summary);
    record.eiinfo.hf_info.hfinfo.type_ = sys::FT_NONE;
    record.eiinfo.hf_info.hfinfo.id = -1;
    record.eiinfo.hf_info.hfinfo.same_name_prev_id = -1;
    record
}

const fn severity(severity: Severity) -> u32 {
    match severity {
        Severity::Note => sys::PI_NOTE,
        Severity::Warning => sys::PI_WARN,
        Severity::Error => sys::PI_ERROR,
    }
}

fn group(rule: Rule) -> u32 {
    if rule.is_icrc() {
        sys::PI_CHECKSUM
    } else if rule.is_malformed() {
        sys::PI_MALFORMED
    } else {
        sys::PI_PROTOCOL
    }
}

fn register_subtrees() {
    let places: Vec<*mut c_int> = PROTOCOL_ETTS
        .iter()
        .chain(&FIELD_ETTS)
        .map(AtomicI32::as_ptr)
        .collect();
    let places = places.leak();
    // SAFETY: the locations live forever.
    unsafe { sys::proto_register_subtree_array(places.as_ptr(), places.len() as c_int) };
}

unsafe extern "C" fn handoff() {
    ids::find();
    // SAFETY: callbacks of the right type, protocols registered before, texts that end with a NUL.
    unsafe {
        for (port, dissector) in PORTS.iter().zip([
            callback!(messages::dissect, P::ProxyCn) as Callback,
            callback!(messages::dissect, P::WanFcn),
        ]) {
            let handle = sys::create_dissector_handle(Some(dissector), protocol(port.protocol));
            let number = leaked_text(&port.default.to_string());
            sys::dissector_add_uint_range_with_preference(UDP_PORT.as_ptr(), number, handle);
            port.handle.store(handle, Ordering::Relaxed);
        }
        ethernet::register();
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        if !table.is_null() {
            let vxlan = sys::dissector_get_uint_handle(table, VXLAN_PORT.into());
            VXLAN.store(vxlan, Ordering::Relaxed);
        }
        let post = sys::create_dissector_handle(Some(callback!(post::post)), protocol(P::Roce));
        sys::register_postdissector(post);
        sys::dissector_add_for_decode_as(UDP_PORT.as_ptr(), ROCE.ours());
        hook(false);
        // Another file, or new preferences, may have restored Wireshark's own handles.
        sys::register_init_routine(Some(hook_again));
        // The same applies to the memory; and nothing of a closed file need be kept.
        sys::register_init_routine(Some(forget));
        sys::register_cleanup_routine(Some(forget));
    }
}

unsafe extern "C" fn forget() {
    guard(memory::forget);
    guard(routing::forget);
}

unsafe extern "C" fn hook_again() {
    // SAFETY: Wireshark calls this between packets; the tap is registered only after all handoffs.
    unsafe {
        EXPERT_TAP.store(sys::find_tap_id(c"expert".as_ptr()), Ordering::Relaxed);
        EXPERT_PROTOCOL.store(
            sys::proto_get_id_by_filter_name(c"_ws.expert".as_ptr()),
            Ordering::Relaxed,
        );
        hook(true);
    }
}

/// Puts the wrappers in front of Wireshark's dissectors, unless they are there already. `again`:
/// called before a file is read, because preferences and Decode As may have changed.
unsafe fn hook(again: bool) {
    use routing::{BGP, LEVEL1, LEVEL2, OSPF};
    use wrappers::{DESTINATION_OPTIONS, HOP_BY_HOP, MAC_CONTROL};
    // SAFETY: Wireshark is starting, or is between packets.
    unsafe {
        for any in [&DESTINATION_OPTIONS, &HOP_BY_HOP, &MAC_CONTROL] {
            any.hook(any.number, false);
        }
        // A dissector chosen by hand precedes the one of the other port; it must keep that
        // precedence.
        for one in [&LEVEL1, &LEVEL2, &OSPF, &BGP] {
            one.hook(one.number, again);
        }
        if again {
            BGP.hook_chosen();
        }
        hook_roce();
        ethernet::register_csig();
    }
}

/// Puts the wrapper in front of InfiniBand's handle at the port in InfiniBand's own preference, and
/// at those that a user has chosen for it by Decode As.
///
/// It is registered in the same way as Decode As does it, which UDP tries before a protocol that
/// claims the other port. So RoCEv2 wins over the protocol of its source port, which RoCEv2 uses
/// for entropy. A user's choice by Decode As, for either port, stays.
unsafe fn hook_roce() {
    // SAFETY: as in `hook`.
    unsafe {
        let module = sys::prefs_find_module(c"infiniband".as_ptr());
        let preference = if module.is_null() {
            ptr::null_mut()
        } else {
            sys::prefs_find_preference(module, c"rroce.port".as_ptr())
        };
        let port = if preference.is_null() {
            ROCE.number
        } else {
            compat::uint_value(preference)
        };
        if ROCE_PORT.swap(port, Ordering::Relaxed) != port {
            preferences::check_roce_port(port as u16);
        }
        ROCE.hook_chosen();
        ROCE.hook(port, true);
        INFINIBAND.store(ROCE.original(), Ordering::Relaxed);
        ROCE_HANDLE.store(ROCE.ours(), Ordering::Relaxed);
    }
}
