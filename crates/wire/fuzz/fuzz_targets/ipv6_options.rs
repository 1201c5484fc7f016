//! libFuzzer entry point for [`ipv6_options`](fcn_wire_fuzz::targets::ipv6_options).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::ipv6_options(data));
