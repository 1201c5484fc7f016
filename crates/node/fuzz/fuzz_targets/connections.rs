//! libFuzzer's entry point for [`connections`](fcn_node_fuzz::targets::connections).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_node_fuzz::targets::connections(data));
