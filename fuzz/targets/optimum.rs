//! See [`twill_fuzz::optimum`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twill_fuzz::optimum::check(bytes);
});
