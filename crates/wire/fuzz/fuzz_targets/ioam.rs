//! libFuzzer entry point for [`ioam`](fcn_wire_fuzz::targets::ioam).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_wire_fuzz::targets::ioam(data));
