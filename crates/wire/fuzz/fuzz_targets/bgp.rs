//! libFuzzer entry point for [`bgp`](fcn_wire_fuzz::targets::bgp).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::bgp(data));
