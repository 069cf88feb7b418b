//! What the functions of Gluon call the kernel's parameters.

use twill_codegen::ir::WarpProgram;
use twill_codegen::ir::names::{is_own, is_reserved};

/// A parameter in a group's function: names that mean something else there get an underscore after them, and so do those that end
/// with one, so that different names stay different.
pub(super) fn parameter(kernel: &WarpProgram, name: &str) -> String {
    if is_reserved(name) || is_own(kernel, name) || name.ends_with('_') { format!("{name}_") } else { name.to_owned() }
}
