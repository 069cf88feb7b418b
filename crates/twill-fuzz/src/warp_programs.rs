//! Target: random kernels, from their TTIR to numbers, by `twill-interpret`.

/// Compiles the kernel that the bytes make, proves its programs and executes them in every habit.
///
/// # Panics
/// When they do not compute what the TTIR says, or Twill calls something a defect of its own.
pub fn check(bytes: &[u8]) {
    let finding = twill_interpret::fuzz(bytes).err().map(|finding| finding.to_string());
    assert_eq!(finding, None);
}
