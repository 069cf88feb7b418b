//! See [`twill_fuzz::gaus`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::gaus::check(bytes));
