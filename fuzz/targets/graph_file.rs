//! See [`twill_fuzz::graph_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| twill_fuzz::graph_file::check(bytes));
