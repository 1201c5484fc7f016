//! libFuzzer entry point for [`frame`](fcn_wire_fuzz::targets::frame).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::frame(data));
