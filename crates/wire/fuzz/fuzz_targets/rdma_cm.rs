//! libFuzzer entry point for [`rdma_cm`](fcn_wire_fuzz::targets::rdma_cm).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::rdma_cm(data));
