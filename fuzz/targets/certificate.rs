//! See [`twill_fuzz::certificate`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twill_fuzz::certificate::check(bytes);
});
