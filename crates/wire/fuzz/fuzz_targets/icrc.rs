//! libFuzzer entry point for [`icrc`](fcn_wire_fuzz::targets::icrc).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::icrc(data));
