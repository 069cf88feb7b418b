//! See [`twill_fuzz::clause`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twill_fuzz::clause::check(bytes);
});
