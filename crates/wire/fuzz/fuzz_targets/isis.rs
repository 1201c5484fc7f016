//! libFuzzer entry point for [`isis`](fcn_wire_fuzz::targets::isis).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::isis(data));
