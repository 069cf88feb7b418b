//! Gluon's names of the kernel's parameters and of element types.

use twill_codegen::ir::WarpProgram;
use twill_codegen::ir::names::{is_own, is_reserved};
use twill_triton::mlir::{FloatKind, Type};

/// A parameter in a group's function: names that mean something else there get an underscore after them, and so do those that end
/// with one, so that different names stay different.
pub(super) fn parameter(kernel: &WarpProgram, name: &str) -> String {
    if is_reserved(name) || is_own(kernel, name) || name.ends_with('_') { format!("{name}_") } else { name.to_owned() }
}

/// Gluon's name of an element type.
pub(super) fn dtype(element: &Type) -> String {
    match element {
        Type::Integer(1) => "gl.int1".into(),
        Type::Integer(bits) => format!("gl.int{bits}"),
        Type::Index => "gl.int64".into(),
        Type::Float(FloatKind::BF16) => "gl.bfloat16".into(),
        Type::Float(FloatKind::F8E4M3FN) => "gl.float8e4nv".into(),
        Type::Float(FloatKind::F8E5M2) => "gl.float8e5".into(),
        Type::Float(FloatKind::F8E4M3FNUZ) => "gl.float8e4b8".into(),
        Type::Float(FloatKind::F8E5M2FNUZ) => "gl.float8e5b16".into(),
        Type::Float(kind) => format!("gl.float{}", kind.bits()),
        Type::Pointer { pointee, .. } => format!("gl.pointer_type({})", dtype(pointee)),
        other => format!("{other:?}"),
    }
}

/// A text as a literal of Python: what the source has in it means nothing else.
pub(super) fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted + "\""
}

/// The variable that counts a pipelined loop's iterations. Those of two loops may have different types, and a name has one.
pub(super) fn induction(index: usize) -> String {
    if index == 0 { "i".into() } else { format!("iteration_{index}") }
}
