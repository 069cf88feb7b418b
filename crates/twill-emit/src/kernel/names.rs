//! Names from the source.

use twill_triton::mlir::{Module, OperationId, ValueId};

/// The Python variable behind a value, or what comes nearest to it.
pub(crate) fn of_value(module: &Module, value: ValueId) -> String {
    let python = module.defining_operation(value).and_then(|id| module.operation(id).location.as_ref()?.name.clone());
    python.unwrap_or_else(|| {
        let name = module.value(value).name.split('#').next().unwrap_or_default().to_owned();
        match name.rsplit_once('_') {
            Some((stem, number)) if !stem.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => stem.to_owned(),
            _ => name,
        }
    })
}

/// The line of the source that an operation comes from.
pub(crate) fn line(module: &Module, id: OperationId) -> Option<u32> {
    module.operation(id).location.as_deref().map(|location| location.in_kernel().line)
}

/// What generated code calls by these names itself.
const RESERVED: &[&str] = &[
    "gl",
    "tma",
    "mbarrier",
    "gluon",
    "triton",
    "core",
    "ir",
    "builtin",
    "bars",
    "base",
    "i",
    "tile",
    "tiles",
    "acquire",
    "release",
    "following",
    "advance",
    "row_shares",
    "barrier_base",
    "if",
    "for",
    "in",
    "is",
    "or",
    "and",
    "not",
    "def",
    "del",
    "from",
    "as",
    "lambda",
    "None",
    "True",
    "False",
    "range",
    "min",
    "max",
    "sum",
    "abs",
    "return",
    "class",
    "while",
    "with",
    "yield",
    "pass",
    "break",
    "continue",
    "else",
    "elif",
    "import",
    "global",
    "try",
];

/// A name that Python can read and that means nothing else in generated code.
pub(super) fn identifier(wish: &str) -> String {
    let name: String = wish.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_taken =
        name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || RESERVED.contains(&name.as_str());
    if is_taken { format!("v_{name}") } else { name }
}

/// An identifier that is not taken: the wish, or with a number behind it.
pub(super) fn unique(wish: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name: String = wish.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let others = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.clone()).chain(others).find(|name| !is_taken(name)).unwrap_or(name)
}
