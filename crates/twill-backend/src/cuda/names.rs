//! What C++ calls things.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use twill_codegen::Error;
use twill_triton::mlir::{FloatKind, Type};

/// A name of the kernel's that C++ can take: words of its own, what generated code calls its own, and the names of the
/// primitives get an underscore after them.
pub(super) fn name(text: &str) -> String {
    // Names of generated code's own end with a line, or say which program it is.
    let is_own = text.ends_with('_') || text.starts_with("program_") || text.starts_with("programs_");
    let is_taken = is_own || RESERVED.contains(&text) || DECLARED.contains(text);
    if is_taken { format!("{text}_") } else { text.to_owned() }
}

/// Types and functions of the primitives.
static DECLARED: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    [
        super::PRIMITIVES,
        super::SCRATCH_PRIMITIVES,
        super::TENSOR_PRIMITIVES,
        super::CLUSTER_PRIMITIVES,
        super::WAVE_SYNC_PRIMITIVES,
    ]
    .into_iter()
    .flat_map(declared)
    .collect()
});

/// What a header declares outside of its types.
fn declared(header: &'static str) -> BTreeSet<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = |line: &'static str, word: &str| {
        let rest = line.find(word).map(|at| &line[at + word.len()..])?;
        let rest = rest.strip_prefix("alignas(64) ").unwrap_or(rest);
        rest.split(|c| !is_word(c)).next().filter(|name| !name.is_empty())
    };
    let before_parenthesis = |line: &'static str| {
        let start = line.rfind("TWILL ")? + "TWILL ".len();
        let head = line[start..].split('(').next()?;
        head.rsplit(|c| !is_word(c)).next().filter(|name| !name.is_empty())
    };
    header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#', '}']))
        .flat_map(|line| [after(line, "struct "), after(line, "using "), before_parenthesis(line)])
        .flatten()
        .collect()
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
        Type::Float(FloatKind::F8E4M3FN) => "__nv_fp8_e4m3".into(),
        Type::Float(FloatKind::F8E5M2) => "__nv_fp8_e5m2".into(),
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

/// A parameter of the entry: what the entry itself calls things gets an underscore after it.
pub(super) fn parameter_of_entry(text: &str) -> String {
    const RESERVED: [&str; 13] = [
        "cta_count",
        "ctas",
        "describe",
        "device",
        "failed",
        "grid",
        "multiprocessors",
        "refuse",
        "restrict",
        "stream",
        "unfit",
        "why",
        "zeros",
    ];
    if RESERVED.contains(&text) { format!("{text}_") } else { name(text) }
}

/// What this back end cannot write.
pub(super) fn missing(what: String) -> Error {
    Error::NotInCuda { what }
}

/// Words of C++ that Python lets be names, and what generated code calls its own.
const RESERVED: &[&str] = &[
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "char16_t",
    "char32_t",
    "char8_t",
    "compl",
    "const_cast",
    "decltype",
    "dynamic_cast",
    "export",
    "gridDim",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "or",
    "or_eq",
    "reinterpret_cast",
    "static_assert",
    "static_cast",
    "struct",
    "thread_local",
    "threadIdx",
    "typeid",
    "warpSize",
    "wchar_t",
    "xor",
    "xor_eq",
    "alignas",
    "alignof",
    "auto",
    "bool",
    "case",
    "catch",
    "char",
    "const",
    "constexpr",
    "ctas",
    "default",
    "delete",
    "describe",
    "device",
    "do",
    "double",
    "e",
    "enum",
    "explicit",
    "extern",
    "failed",
    "false",
    "float",
    "friend",
    "goto",
    "i",
    "inline",
    "int",
    "leader",
    "long",
    "main",
    "move_on",
    "multiprocessors",
    "mutable",
    "namespace",
    "new",
    "operator",
    "private",
    "program",
    "program_ids",
    "program_of",
    "protected",
    "public",
    "refusal",
    "refuse",
    "register",
    "shared",
    "shared_at",
    "short",
    "signed",
    "sizeof",
    "static",
    "step",
    "stream",
    "switch",
    "template",
    "this",
    "throw",
    "tile_count",
    "true",
    "try",
    "twill",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warp",
    "zeros",
    "bars",
];

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_that_mean_something_else_get_a_line_behind_them() {
        for taken in [
            "accumulator",
            "tile",
            "row_partials",
            "mbarrier_arrive_both",
            "tensor_map",
            "transposed",
            "u32",
            "max",
            "int",
            "template",
            "i",
            "program_x",
            "tile_at_",
            "xor",
        ] {
            assert_eq!(name(taken), format!("{taken}_"));
        }
        // What groups call their own locals: nothing of the kernel's gets one of these names.
        for own in ["tile_at_", "step_to_", "wave_sync_", "record_", "whole_1_", "part_1_"] {
            let stem = own.trim_end_matches('_');
            assert_eq!(name(stem), stem);
        }
        for free in ["row", "acc", "K", "held", "scale", "bias_ptr", "index"] {
            assert_eq!(name(free), free);
        }
    }
}
