//! See [`twill_fuzz::benchmark_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::benchmark_file::check(bytes));
