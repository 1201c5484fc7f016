//! libFuzzer's entry point of [`scenario`](fcn_gen_fuzz::targets::scenario).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fcn_gen_fuzz::targets::scenario(data));
