//! libFuzzer entry point for [`profile`](fcn_wire_fuzz::targets::profile).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::profile(data));
