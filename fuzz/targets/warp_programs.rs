//! See [`twill_fuzz::warp_programs`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::warp_programs::check(bytes));
