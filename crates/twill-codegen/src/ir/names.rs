//! Names from the source.

use crate::ir::WarpProgram;
use std::collections::BTreeSet;
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
    "constexpr",
    "program_of",
    "tile_count",
    "thread_barrier",
    "async_load",
    "async_store",
    "cp_async",
    "tma_add",
    "call_libdevice",
    "unsigned",
    "unknown",
    "unknown_zero",
    "in_columns",
    "in_rows",
    "dot_fma_shared",
    "dot_mma_shared",
    "zero",
    "undefined_scalar",
    "scalar",
    "splat",
    "broadcast_to",
    "elementwise",
    "bitcast",
    "unsplat",
    "clamp_nan",
    "atomic",
    "compare_and_swap",
    "print_values",
    "assert_all",
    "tma_load",
    "tma_store",
    "tma_reduce",
    "tma_reduce_tile",
    "dot_wgmma",
    "dot_mma",
    "dot_fma",
    "multiply_wgmma",
    "mma_v2",
    "named_barrier_sync",
    "named_barrier_arrive",
    "fence_async_shared",
    "async_copy",
    "warpgroup_mma",
    "warpgroup_mma_init",
    "warpgroup_mma_wait",
    "PropagateNan",
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
    "tile_of",
    "waves_of",
    "wave",
    "tiles",
    "mbarrier_wait",
    "mbarrier_arrive",
    "next_slot",
    "advance",
    "row_partials",
    "barrier_base",
    "range",
    "min",
    "max",
    "sum",
    "abs",
];

/// Names of the kernel's entry that no parameter may have: the entry's parameters keep their names, for `launch.py` and
/// `assemble.py` know them by these.
const OF_THE_ENTRY: &[&str] = &["gl", "gluon", "mbarrier", "bars", "BARRIERS_AT", "range", "allocate_tensor_memory"];

/// Words that are no names in Python 3.
const KEYWORDS: &[&str] = &[
    "False",
    "None",
    "True",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "__debug__",
];

/// Whether generated code uses the name itself.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || KEYWORDS.contains(&name)
        || name.starts_with("program_")
        || name.starts_with("combine_")
        || name.starts_with("iteration_")
        || name.starts_with("programs_")
}

/// Whether storage, barriers or a group of the kernel have the name, as arguments or as constants.
pub fn is_own(kernel: &WarpProgram, name: &str) -> bool {
    let named = kernel.buffers.iter().map(|b| &b.name).chain(kernel.barriers.iter().map(|b| &b.name));
    named
        .flat_map(|n| [n.clone(), n.to_uppercase()])
        .chain(kernel.groups.iter().map(|g| g.name.clone()))
        .any(|n| n == name)
}

/// Why a parameter cannot have this name in the kernel's entry.
pub(crate) fn refused(kernel: &WarpProgram, name: &str) -> Option<&'static str> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && !KEYWORDS.contains(&name);
    if !is_name {
        return Some("which is no name in Python");
    }
    let is_taken = OF_THE_ENTRY.contains(&name) || name.starts_with("programs_") || is_own(kernel, name);
    is_taken.then_some("which generated code calls something else")
}

/// Gives the variables of each group names that no parameter has: what the source assigns to a parameter is another value.
pub(crate) fn settle(kernel: &mut WarpProgram) {
    let parameters = kernel.parameters.iter().map(|p| p.name.clone());
    let given: BTreeSet<String> = parameters
        .flat_map(|name| [format!("{name}_"), name])
        .chain(kernel.descriptors.iter().map(|d| d.name.clone()))
        .collect();
    let clashes: Vec<Vec<bool>> = kernel
        .groups
        .iter()
        .map(|g| g.variables.iter().map(|v| given.contains(&v.name) || is_own(kernel, &v.name)).collect())
        .collect();
    for (group, clashes) in kernel.groups.iter_mut().zip(clashes) {
        let mut used: BTreeSet<String> = group.variables.iter().map(|v| v.name.clone()).collect();
        for cursor in &mut group.cursors {
            while given.contains(&cursor.name) || given.contains(&format!("{}_phase", cursor.name)) {
                cursor.name.push_str("_slot");
            }
            used.extend([cursor.name.clone(), format!("{}_phase", cursor.name)]);
        }
        for (variable, clashes) in group.variables.iter_mut().zip(clashes) {
            let mut number = 2;
            let stem = variable.name.clone();
            while clashes && (variable.name == stem || used.contains(&variable.name) || given.contains(&variable.name))
            {
                variable.name = format!("{stem}_v{number}");
                number += 1;
            }
            used.insert(variable.name.clone());
        }
    }
}

/// A name that Python can read and that means nothing else in generated code.
pub(crate) fn identifier(wish: &str) -> String {
    let name: String = wish.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_taken = name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || is_reserved(&name);
    if is_taken { format!("v_{name}") } else { name }
}

/// An identifier that is not taken: the wish, or with a number after it.
pub(crate) fn unique(wish: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = identifier(wish);
    let others = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.clone()).chain(others).find(|name| !is_taken(name)).unwrap_or(name)
}
