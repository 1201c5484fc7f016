//! libFuzzer entry point for [`pfc`](fcn_wire_fuzz::targets::pfc).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::pfc(data));
