//! Wireshark plugin that decodes RoCEv2 congestion notification: CNP, Fast CNP, notification to the proxy node, Fast
//! CNP in the WAN, the Proxy Node Capability in routing; and FECN, BECN and ICRC of every RoCEv2 packet.
//!
//! Every format is read by `fcn-wire`; which frames belong together is found in `memory`, by the rules of `fcn-observe`.
//! `names` lists what can be filtered, `show` decides what is shown of octets and writes it down as a `plan`; all of that
//! is safe code that can be tested without Wireshark. `ws` is the border: it registers, is called by Wireshark, and
//! carries plans out.
//!
//! License: GPL-2.0-or-later (Wireshark's own), unlike the crates it uses.

mod locate;
mod memory;
mod names;
mod plan;
mod show;
mod ws;

use core::ffi::{c_char, c_int};

/// A text of fixed size as C has it.
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

/// The plugin's version, for Wireshark's list of plugins.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_version: [c_char; 32] = c_text(env!("CARGO_PKG_VERSION"));

/// Major version of the Wireshark it is built for; another one refuses to load it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_want_major: c_int = ws::VERSION.0;

/// Minor version of the Wireshark it is built for; another one refuses to load it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that Wireshark looks for")]
pub static plugin_want_minor: c_int = ws::VERSION.1;

/// Called by Wireshark when it has loaded the plugin.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_register() {
    ws::register::plugin();
}

/// Tells Wireshark 4.2 and later what kinds of plugin this is: a dissector.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_describe() -> u32 {
    1
}
