//! See [`twill_fuzz::replay`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twill_fuzz::replay::check(bytes);
});
