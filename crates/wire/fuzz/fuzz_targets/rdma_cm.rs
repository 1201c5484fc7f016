//! libFuzzer's way in to [`rdma_cm`](fcn_wire_fuzz::targets::rdma_cm).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::rdma_cm(data));
