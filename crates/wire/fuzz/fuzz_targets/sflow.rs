//! libFuzzer entry point for [`sflow`](fcn_wire_fuzz::targets::sflow).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::sflow(data));
