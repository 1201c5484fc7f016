//! libFuzzer entry point for [`fast_cnp`](fcn_wire_fuzz::targets::fast_cnp).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::fast_cnp(data));
