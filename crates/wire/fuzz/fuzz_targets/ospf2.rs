//! libFuzzer entry point for [`ospf2`](fcn_wire_fuzz::targets::ospf2).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::ospf2(data));
