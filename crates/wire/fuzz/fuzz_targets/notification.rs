//! libFuzzer entry point for [`notification`](fcn_wire_fuzz::targets::notification).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::notification(data));
