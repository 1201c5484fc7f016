//! libFuzzer's entry point for [`capture`](fcn_link_fuzz::targets::capture).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_link_fuzz::targets::capture(data));
