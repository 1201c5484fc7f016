//! libFuzzer entry point for [`wan_fcn`](fcn_wire_fuzz::targets::wan_fcn).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::wan_fcn(data));
