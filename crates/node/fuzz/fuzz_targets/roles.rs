//! libFuzzer's entry point for [`roles`](fcn_node_fuzz::targets::roles).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_node_fuzz::targets::roles(data));
