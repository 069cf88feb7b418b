//! See [`twill_fuzz::machine_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::machine_file::check(bytes));
