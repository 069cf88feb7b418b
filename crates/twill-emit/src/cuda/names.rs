//! What C++ calls things.

use crate::error::Error;
use twill_triton::mlir::{FloatKind, Type};

/// A name of the kernel's that C++ can take: words of its own, and those of the primitives, get a line behind them.
pub(super) fn name(text: &str) -> String {
    if RESERVED.contains(&text) { format!("{text}_") } else { text.to_owned() }
}

/// The type of an element.
pub(super) fn element(kind: &Type) -> Result<String, Error> {
    Ok(match kind {
        Type::Integer(1) => "bool".into(),
        Type::Integer(8) => "i8".into(),
        Type::Integer(16) => "short".into(),
        Type::Integer(32) => "int".into(),
        Type::Integer(64) | Type::Index => "i64".into(),
        Type::Float(FloatKind::F16) => "__half".into(),
        Type::Float(FloatKind::BF16) => "__nv_bfloat16".into(),
        Type::Float(FloatKind::F32) => "float".into(),
        Type::Float(FloatKind::F64) => "double".into(),
        Type::Pointer { pointee, .. } => format!("{} *", element(pointee)?),
        other => return Err(missing(format!("elements of type {other}"))),
    })
}

/// Of an integer, the type without a sign.
pub(super) fn unsigned(kind: &Type) -> &'static str {
    match kind {
        Type::Integer(1) => "bool",
        Type::Integer(8) => "u8",
        Type::Integer(16) => "u16",
        Type::Integer(32) => "u32",
        _ => "u64",
    }
}

/// What this back end cannot write.
pub(super) fn missing(what: String) -> Error {
    Error::NotInCuda { what }
}

/// Words of C++ that Python lets be names, and names of the primitives and of CUDA.
const RESERVED: &[&str] = &[
    "acquire",
    "add",
    "add_out",
    "advance",
    "alignas",
    "alignof",
    "at",
    "auto",
    "bars",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "come",
    "const",
    "constexpr",
    "continue",
    "coordinates",
    "default",
    "delete",
    "divide",
    "do",
    "double",
    "e",
    "each",
    "each_panel",
    "element",
    "else",
    "enum",
    "expect",
    "explicit",
    "extern",
    "false",
    "fence",
    "float",
    "for",
    "for_each",
    "friend",
    "get",
    "goto",
    "i64",
    "if",
    "inline",
    "instruction",
    "int",
    "landed",
    "lane",
    "leader",
    "least",
    "load",
    "long",
    "main",
    "matrix",
    "maximum",
    "meet",
    "minimum",
    "most",
    "multiply",
    "mutable",
    "namespace",
    "new",
    "operand",
    "operator",
    "or",
    "place",
    "private",
    "protected",
    "public",
    "put",
    "read",
    "register",
    "release",
    "return",
    "rows",
    "short",
    "signed",
    "sizeof",
    "spread",
    "static",
    "store",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "tile",
    "touch",
    "transpose",
    "transposed",
    "true",
    "try",
    "twill",
    "typedef",
    "typename",
    "u16",
    "u32",
    "u64",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warp",
    "while",
    "write",
];
