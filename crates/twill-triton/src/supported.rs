//! What becomes of each operation of TTIR inside a loop that is scheduled: the table of docs/operations.md.
//!
//! The rules are those that the lowering asks; this only puts the question to them, in its order.

use crate::kernel::views;
use crate::operations::{self, Memory, memory};
use crate::tile::{Recipe, Transfer, elementwise};

/// Operations of TTIR as Triton 3.6 to 3.9 print it, in the order of the table.
pub const NAMES: &[&str] = &[
    "tt.dot",
    "tt.dot_scaled",
    "tt.reduce",
    "tt.scan",
    "tt.load",
    "tt.store",
    "tt.descriptor_load",
    "tt.descriptor_store",
    "tt.descriptor_gather",
    "tt.descriptor_scatter",
    "tt.descriptor_reduce",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.atomic_load",
    "tt.atomic_poll",
    "tt.atomic_store",
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.divf",
    "arith.remf",
    "arith.negf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.maximumf",
    "arith.minimumf",
    "arith.cmpf",
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
    "arith.maxsi",
    "arith.minsi",
    "arith.maxui",
    "arith.minui",
    "arith.cmpi",
    "arith.select",
    "math.absf",
    "math.absi",
    "math.ceil",
    "math.cos",
    "math.erf",
    "math.exp",
    "math.exp2",
    "math.floor",
    "math.fma",
    "math.log",
    "math.log2",
    "math.rsqrt",
    "math.sin",
    "math.sqrt",
    "math.tanh",
    "tt.clampf",
    "tt.mulhiui",
    "tt.precise_divf",
    "tt.precise_sqrt",
    "tt.extern_elementwise",
    "tt.elementwise_inline_asm",
    "tt.map_elementwise",
    "arith.extf",
    "arith.truncf",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.sitofp",
    "arith.uitofp",
    "arith.fptosi",
    "arith.fptoui",
    "arith.index_cast",
    "tt.fp_to_fp",
    "tt.trans",
    "tt.reshape",
    "tt.splat",
    "tt.unsplat",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.bitcast",
    "arith.bitcast",
    "tt.join",
    "tt.split",
    "tt.cat",
    "tt.gather",
    "tt.histogram",
    "arith.constant",
    "tt.make_range",
    "tt.addptr",
    "tt.advance",
    "tt.make_tensor_descriptor",
    "tt.make_tensor_ptr",
    "tt.int_to_ptr",
    "tt.ptr_to_int",
    "llvm.intr.assume",
    "gpu.barrier",
    "scf.if",
    "scf.while",
    "tt.call",
    "tt.print",
    "tt.assert",
];

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// On each element: its name in timelines, and instructions an element.
    Elementwise(&'static str, Recipe),
    /// Changes the type of elements.
    Conversion,
    /// Multiplies tiles.
    Dot,
    /// Becomes conversions, scalings and an MMA of 16-bit floats.
    ScaledDot,
    /// Becomes the operations of a function of numbers, on tiles.
    Mapped,
    /// Reduces a dimension.
    Reduction,
    /// Reads global memory.
    Load(Transfer),
    /// Writes global memory.
    Store(Transfer),
    /// Combines something with global memory.
    Atomic(Transfer),
    /// Shows a tile in another shape, at no cost.
    View,
    /// Is known before the loop.
    Constant,
    /// Computes addresses, at no cost.
    Addressing,
    /// Does nothing at run time.
    Hint,
    /// Needs no rule, as it only computes its results: four instructions for each element.
    Default,
    /// Branches around tiles, and loops that count, are rewritten if they can be, and refused otherwise.
    Branch,
    /// Is refused inside the loop.
    Refused,
}

/// What becomes of the operation of this name.
pub fn rule(name: &str) -> Rule {
    match memory(name) {
        Some(Memory::Load { transfer, .. }) => return Rule::Load(transfer),
        Some(Memory::Store { transfer, .. }) => return Rule::Store(transfer),
        Some(Memory::Atomic { transfer, .. }) => return Rule::Atomic(transfer),
        None => {}
    }
    match name {
        "scf.if" | "scf.while" => Rule::Branch,
        "tt.call" | "tt.print" | "tt.assert" => Rule::Refused,
        _ if operations::is_synchronization(name) => Rule::Refused,
        "gpu.barrier" => Rule::Hint,
        "tt.dot" => Rule::Dot,
        "tt.dot_scaled" => Rule::ScaledDot,
        "tt.map_elementwise" => Rule::Mapped,
        "tt.reduce" => Rule::Reduction,
        _ if views::is_view(name) => Rule::View,
        _ if views::is_constant(name) => Rule::Constant,
        _ if operations::is_addressing(name) => Rule::Addressing,
        _ if operations::is_hint(name) => Rule::Hint,
        _ if operations::is_conversion(name) => Rule::Conversion,
        _ => elementwise(name).map_or(Rule::Default, |(shown, recipe)| Rule::Elementwise(shown, recipe)),
    }
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use std::collections::BTreeSet;

    /// Names of operations in a text, in quotes.
    fn named(text: &str) -> BTreeSet<&str> {
        let dialects = ["tt.", "arith.", "math.", "llvm."];
        let is_name = |part: &&str| dialects.iter().any(|d| part.starts_with(d)) && !part.contains([' ', '\n', '`']);
        text.split('"').filter(is_name).filter(|part| !part.ends_with(".return") && !part.ends_with('.')).collect()
    }

    #[test]
    fn every_operation_that_has_a_rule_is_in_the_table() {
        let rules = [
            include_str!("operations.rs"),
            include_str!("tile/recipe.rs"),
            include_str!("kernel/views.rs"),
            include_str!("kernel/extract.rs"),
        ];
        let table: BTreeSet<&str> = NAMES.iter().copied().collect();
        assert_eq!(table.len(), NAMES.len(), "once each");
        let missing: Vec<&str> =
            rules.iter().flat_map(|text| named(text)).filter(|name| !table.contains(name)).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
