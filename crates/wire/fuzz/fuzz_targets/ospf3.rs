//! libFuzzer entry point for [`ospf3`](fcn_wire_fuzz::targets::ospf3).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::ospf3(data));
