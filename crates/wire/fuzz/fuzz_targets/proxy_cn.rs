//! libFuzzer entry point for [`proxy_cn`](fcn_wire_fuzz::targets::proxy_cn).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::proxy_cn(data));
