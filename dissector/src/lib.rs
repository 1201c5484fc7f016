//! Wireshark plugin that decodes RoCEv2 congestion notification: CNP, Fast CNP, congestion
//! notification to the proxy node, Fast CNP in the WAN, and the Proxy Node Capability in routing.
//! It also decodes FECN, BECN and ICRC of every RoCEv2 packet.
//!
//! `fcn-wire` parses every format. `memory` correlates frames, by the rules of `fcn-observe`.
//! `names` lists the protocols and fields for filters. `show` decides what to display and writes it
//! down as a `plan`. All of that is safe code that can be tested without Wireshark. `ws` is the
//! interface to Wireshark: it registers the plugin, receives Wireshark's calls, and carries out
//! plans.
//!
//! License: GPL-2.0-or-later (Wireshark's own), unlike the crates it uses.

mod locate;
mod memory;
mod names;
mod plan;
mod show;
mod ws;

use core::ffi::{c_char, c_int};

/// Converts `text` to a NUL-terminated C array of fixed size.
const fn c_text<const N: usize>(text: &str) -> [c_char; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() < N);
    let mut out = [0; N];
    let mut i = 0;
    while i < bytes.len() {
        out[i] = bytes[i] as c_char;
        i += 1;
    }
    out
}

/// Version of the plugin, for Wireshark's list of plugins.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_version: [c_char; 32] = c_text(env!("CARGO_PKG_VERSION"));

/// Major version of the Wireshark that the plugin is built for; any other refuses to load it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_want_major: c_int = ws::VERSION.0;

/// Minor version of the Wireshark that the plugin is built for; any other refuses to load it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_want_minor: c_int = ws::VERSION.1;

/// Entry point that Wireshark calls after it has loaded the plugin.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_register() {
    ws::register::plugin();
}

/// Returns the kinds of plugin this is, for Wireshark 4.2 and later: a dissector.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_describe() -> u32 {
    1
}
