//! libFuzzer entry point for [`roce`](fcn_wire_fuzz::targets::roce).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::roce(data));
