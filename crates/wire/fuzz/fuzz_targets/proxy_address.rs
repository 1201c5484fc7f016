//! libFuzzer entry point for [`proxy_address`](fcn_wire_fuzz::targets::proxy_address).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::proxy_address(data));
