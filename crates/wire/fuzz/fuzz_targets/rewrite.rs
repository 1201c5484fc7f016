//! libFuzzer entry point for [`rewrite`](fcn_wire_fuzz::targets::rewrite).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::rewrite(data));
