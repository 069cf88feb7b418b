//! See [`twill_fuzz::ttir`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::ttir::check(bytes));
