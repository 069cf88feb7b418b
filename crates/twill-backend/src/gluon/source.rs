//! A kernel's warp programs as a file of Gluon.

use super::barriers;
use super::group::Printer;
use super::names::dtype;
use super::tensor_memory;
use crate::header::Header;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use twill_codegen::ir::{Group, Op, VariableId, any};
use twill_codegen::ir::{Syntax, WarpProgram};
use twill_triton::mlir::Type;

const PRELUDE: &str = include_str!("prelude.py");
const COPIES: &str = include_str!("copies.py");
const VERSIONS: &str = include_str!("versions.py");
const IN_ORDER: &str = include_str!("in_order.py");

/// The functions of `in_order.py` that a kernel calls, and those that these call.
fn in_order_prelude(groups: &[String]) -> String {
    let functions: Vec<&str> = IN_ORDER.trim_end().split("\n\n\n").collect();
    let name =
        |f: &str| f.split_once("def ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name.to_owned());
    let mut called = vec![false; functions.len()];
    loop {
        let before = called.clone();
        for (k, function) in functions.iter().enumerate() {
            let call = format!("{}(", name(function).unwrap_or_default());
            let calls = |text: &str| {
                text.match_indices(&call)
                    .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.'))
            };
            let others = functions
                .iter()
                .zip(&before)
                .enumerate()
                .any(|(other, (text, used))| other != k && *used && calls(text));
            called[k] |= others || groups.iter().any(|g| calls(g));
        }
        if called == before {
            break;
        }
    }
    let used: Vec<&str> = functions.iter().zip(called).filter(|(_, used)| *used).map(|(f, _)| *f).collect();
    used.join("\n\n\n") + "\n"
}

/// The source.
pub(super) fn print(kernel: &WarpProgram, header: &Header) -> String {
    let mut used = BTreeSet::new();
    let groups: Vec<String> = kernel.groups.iter().map(|g| Printer::new(kernel, g).group(&mut used)).collect();
    let mut out = String::new();
    // Names and paths are the user's, and must not end the text.
    let text = header.text(kernel).replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let _ = writeln!(out, "\"\"\"{text}\"\"\"\n");
    out.push_str(if tensor_memory::is_used(kernel) { tensor_memory::IMPORTS } else { IMPORTS });
    let copies_async = groups.iter().any(|g| g.contains("async_copy.") || g.contains("cp_async("));
    if copies_async {
        out.push_str("from triton.experimental.gluon.language.nvidia.hopper import async_copy\n");
    }
    let calls_libdevice = groups.iter().any(|g| g.contains("call_libdevice("));
    let in_order = kernel.is_in_order();
    if groups.iter().any(|g| g.contains("dot_mma")) {
        out.push_str("from triton.experimental.gluon.language.nvidia.ampere import mma_v2\n");
    }
    let functions = in_order_prelude(&groups);
    let has_builtin = in_order || functions.contains("@builtin");
    if has_reduce(kernel) || functions.contains(" ir.") || functions.contains("(ir.") {
        out.push_str("from triton._C.libtriton import ir\n");
    }
    if has_reduce(kernel) || calls_libdevice || has_builtin {
        out.push_str("from triton.experimental.gluon.language._core import builtin\n");
    }
    if calls_libdevice || has_builtin {
        out.push_str("from triton.language import core\n");
    }
    if groups.iter().any(|g| g.contains("PROPAGATE_NAN")) {
        out.push_str("from triton.language import PropagateNan\n");
        out.push_str("\nPROPAGATE_NAN = gl.constexpr(PropagateNan.ALL)\n");
    }
    let _ = write!(out, "\n{VERSIONS}");
    if copies_async {
        out.push_str(CP_ASYNC);
    }
    if tensor_memory::is_used(kernel) {
        out.push_str(tensor_memory::REGISTER_LAYOUTS);
    }
    out.push_str("\n# How the threads of a warp group hold tiles.\n");
    let along_columns = u64::from(kernel.groups.first().map_or(1, |group| group.warps.div_ceil(4)));
    let widest = if has_integer_mma(kernel) { WIDEST_OF_INTEGERS } else { 256 };
    for layout in used.iter().filter(|layout| layout.depth() == 0) {
        let _ = writeln!(out, "{} = gl.constexpr({})", layout.name(), layout.definition(along_columns, widest));
    }
    let has_tensor_memory = tensor_memory::is_used(kernel);
    out.push_str(if in_order {
        ""
    } else if has_tensor_memory {
        "\n# Tiles in shared and tensor memory.\n"
    } else {
        "\n# Tiles in shared memory.\n"
    });
    for buffer in kernel.buffers.iter().filter(|b| !b.shape.is_empty()) {
        let shape = list(&buffer.shape);
        let layout = if buffer.is_tensor() {
            tensor_memory::buffer_layout(buffer)
        } else if buffer.plain {
            let order: Vec<u64> = (0..buffer.shape.len() as u64).rev().collect();
            format!("gl.SwizzledSharedLayout(1, 1, 1, {})", list(&order))
        } else {
            format!("gl.NVMMASharedLayout.get_default_for({shape}, {})", dtype(&buffer.element))
        };
        let _ = writeln!(out, "{} = gl.constexpr({layout})", buffer.name.to_uppercase());
    }
    if !in_order {
        out.push_str("\n# Where the barriers of each kind begin in `bars`.\n");
    }
    for (k, barriers) in kernel.barriers.iter().enumerate() {
        let _ = writeln!(out, "{} = gl.constexpr({})", barriers.name.to_uppercase(), barriers::first(kernel, k));
    }
    let prelude = if in_order {
        functions.clone()
    } else if has_tensor_memory {
        tensor_memory::ordered(PRELUDE)
    } else {
        PRELUDE.to_owned()
    };
    let prelude = match !in_order && functions.len() > 1 {
        true => format!("{prelude}\n\n{functions}"),
        false => prelude,
    };
    let prelude = match in_order || has_tensor_memory || kernel.barriers.is_empty() {
        true => prelude,
        false => format!("{prelude}\n\n{}", barriers::function(kernel)),
    };
    let _ = write!(out, "\n\n{prelude}");
    if copies_async && !in_order {
        let _ = write!(out, "\n\n{COPIES}");
    }
    let _ = write!(out, "\n\n{}", tile_order(kernel));
    if !kernel.named_barriers.is_empty() {
        out.push_str(NAMED);
    }
    if has_reduce(kernel) && !in_order {
        out.push_str(REDUCE);
    }
    if kernel.dependent_launch {
        out.push_str(DEPENDENT);
    }
    if calls_libdevice {
        out.push_str(LIBDEVICE);
    }
    if groups.iter().any(|g| g.contains("unsigned(")) {
        out.push_str(UNSIGNED);
    }
    for group in groups {
        let _ = write!(out, "\n\n{group}");
    }
    let _ = write!(out, "\n\n{}", entry(kernel));
    out
}

const IMPORTS: &str = "import triton.experimental.gluon.language as gl
from triton.experimental import gluon
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
";

/// Copies by `cp.async`, for `versions.py`.
const CP_ASYNC: &str =
    "cp_async = getattr(async_copy, \"async_load\", None) or async_copy.async_copy_global_to_shared\n";

/// TMA reductions, which Gluon has a name for since Triton 3.8.
const REDUCE: &str = "

@builtin
def tma_add(tensor_desc, coord, src, _semantic=None):
    \"\"\"Start adding a tile in shared memory to global memory, which Gluon has no function for before Triton 3.8.\"\"\"
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle)
";

/// Programmatic dependent launch.
const DEPENDENT: &str = "

@gluon.jit
def wait_for_grids():
    \"\"\"Wait until the grids before this one have ended and what they wrote can be read.\"\"\"
    gl.inline_asm_elementwise(
        \"griddepcontrol.wait; mov.u32 $0, 0;\", \"=r,~{memory}\", [], dtype=gl.int32, is_pure=False, pack=1
    )
";

/// Functions of CUDA's libdevice by their symbols.
const LIBDEVICE: &str = "

@builtin
def call_libdevice(symbol, dtype, *operands, _semantic=None):
    \"\"\"A function of libdevice on each element; dtype: that of its result.\"\"\"
    operands = [_semantic.to_tensor(operand) for operand in operands]
    called = tuple(core._unwrap_if_constexpr(value) for value in (symbol, dtype))
    types = tuple(operand.dtype for operand in operands)
    return core.extern_elementwise(\"\", \"\", operands, {types: called}, is_pure=True, _semantic=_semantic)
";

/// Integers as numbers without a sign.
const UNSIGNED: &str = "

@gluon.jit
def unsigned(x):
    \"\"\"The same bits as integers without a sign; a truth value as it is.\"\"\"
    if x.dtype == gl.int8:
        return x.to(gl.uint8, bitcast=True)
    elif x.dtype == gl.int16:
        return x.to(gl.uint16, bitcast=True)
    elif x.dtype == gl.int32:
        return x.to(gl.uint32, bitcast=True)
    elif x.dtype == gl.int64:
        return x.to(gl.uint64, bitcast=True)
    else:
        return x
";

/// Ping-pong on the tensor core.
const NAMED: &str = "

@gluon.constexpr_function
def _bar_ptx(operation, barrier, threads):
    return f\"{operation} {barrier}, {threads}; mov.u32 $0, 0;\"


@gluon.jit
def named_barrier_sync(BARRIER: gl.constexpr, THREADS: gl.constexpr):
    \"\"\"Wait at a named barrier until another group arrives.\"\"\"
    gl.inline_asm_elementwise(
        _bar_ptx(\"bar.sync\", BARRIER, THREADS), \"=r,~{memory}\", [], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def named_barrier_arrive(BARRIER: gl.constexpr, THREADS: gl.constexpr):
    \"\"\"Arrive at a named barrier without waiting.\"\"\"
    gl.inline_asm_elementwise(
        _bar_ptx(\"bar.arrive\", BARRIER, THREADS), \"=r,~{memory}\", [], dtype=gl.int32, is_pure=False, pack=1
    )
";

fn has_reduce(kernel: &WarpProgram) -> bool {
    let reduces = |op: &Op| matches!(op, Op::TmaStore { reduce: Some(_), .. });
    kernel.groups.iter().any(|group| any(&group.body, reduces))
}

/// Columns of the widest `wgmma` of i8 that Triton knows and a tile has: its table ends at 224, PTX's at 256.
const WIDEST_OF_INTEGERS: u64 = 128;

/// Whether it has MMAs of integers.
fn has_integer_mma(kernel: &WarpProgram) -> bool {
    let of = |group: &Group, id: VariableId| matches!(group.variables[id.index()].element, Type::Integer(_));
    kernel.groups.iter().any(|group| {
        any(&group.body, |op| match op {
            Op::Wgmma { to, .. } => of(group, *to),
            Op::Opaque { operation, results, .. } => {
                operation.name == "tt.dot" && results.iter().any(|result| of(group, *result))
            }
            _ => false,
        })
    })
}

fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    format!("[{}]", values.join(", "))
}

/// How formulas are written.
const SYNTAX: Syntax = Syntax { division: "//", minimum: "gl.minimum", maximum: "gl.maximum", and: "and", or: "or" };

/// The tile scheduler: from a tile's number to the program that it is, and the tiles of a CTA.
fn tile_order(kernel: &WarpProgram) -> String {
    let order = kernel.tile_scheduler.program_of();
    let named = order.named.iter().map(|(name, formula)| format!("    {name} = {}\n", formula.print(SYNTAX)));
    let program = order.program.each_ref().map(|formula| formula.print(SYNTAX)).join(", ");
    let mut text = format!(
        "@gluon.jit
def tile_count(programs_x, programs_y, programs_z):
    \"\"\"Tiles of the grid: each is the work of one CTA.\"\"\"
    return {}


@gluon.jit
def program_of(tile, programs_x, programs_y, programs_z):
    \"\"\"The program that a tile is: {}.\"\"\"
    columns = {}
{}    return {program}
",
        kernel.tile_scheduler.tile_count().print(SYNTAX),
        order.note,
        kernel.tile_scheduler.columns().print(SYNTAX),
        named.collect::<String>(),
    );
    if kernel.tile_scheduler.serpentine().is_some() {
        let tile = kernel.tile_scheduler.tile_of_wave().print(SYNTAX);
        text.push_str(&format!(
            "

@gluon.jit
def tile_of(wave):
    \"\"\"The tile of this CTA in a wave: every other wave goes from the last CTA to the first.\"\"\"
    cta, ctas = gl.program_id(0), gl.num_programs(0)
    return {tile}


@gluon.jit
def waves_of(tiles):
    \"\"\"In how many waves this CTA has a tile.\"\"\"
    whole = tiles // gl.num_programs(0)
    return whole + (tile_of(whole) < tiles).to(gl.int32)
"
        ));
    }
    text
}

/// The kernel's entry: storage, barriers, groups.
fn entry(kernel: &WarpProgram) -> String {
    let mut out = String::from("@gluon.jit\n");
    let _ = writeln!(out, "def {}(", kernel.name);
    for name in arguments(kernel) {
        let _ = writeln!(out, "    {name},");
    }
    out.push_str("    BARRIERS_AT: gl.constexpr,\n):\n");
    if kernel.dependent_launch {
        out.push_str("    wait_for_grids()\n");
    }
    for buffer in kernel.buffers.iter().filter(|b| !b.shape.is_empty()) {
        if buffer.is_tensor() {
            let _ = writeln!(out, "    {}", tensor_memory::allocation(buffer));
            continue;
        }
        let mut shape = vec![u64::from(buffer.slots)];
        shape.extend(&buffer.shape);
        let _ = writeln!(
            out,
            "    {} = gl.allocate_shared_memory({}, {}, {})",
            buffer.name,
            dtype(&buffer.element),
            list(&shape),
            buffer.name.to_uppercase()
        );
    }
    if kernel.is_in_order() {
        let names = group_arguments(kernel).join(", ");
        let _ = writeln!(out, "    {}({names}, BARRIERS_AT)", kernel.groups[0].name);
        return out;
    }
    let mut k = "k".to_owned();
    while arguments(kernel).contains(&k) {
        k.push('_');
    }
    out.push_str(&barriers::statements(kernel, &k));
    // A group that waits for nobody is the kernel's warps.
    if let ([only], true) = (kernel.groups.as_slice(), kernel.barriers.is_empty()) {
        let _ = writeln!(out, "    {}({}, BARRIERS_AT)", only.name, group_arguments(kernel).join(", "));
        return out;
    }
    out.push_str("    gl.warp_specialize(\n        [\n");
    for group in &kernel.groups {
        let names = group_arguments(kernel);
        let _ = writeln!(out, "            (\n                {},\n                (", group.name);
        for name in names {
            let _ = writeln!(out, "                    {name},");
        }
        out.push_str("                    BARRIERS_AT,\n                ),\n            ),\n");
    }
    let workers = kernel.groups.get(1..).unwrap_or_default();
    let warps: Vec<String> = workers.iter().map(|g| g.warps.to_string()).collect();
    let registers: Vec<String> = workers.iter().map(|g| g.registers.to_string()).collect();
    let _ = writeln!(out, "        ],\n        [{}],\n        [{}],\n    )", warps.join(", "), registers.join(", "));
    out.push_str(barriers::end(kernel));
    out
}

/// Run-time arguments of the kernel, in order.
pub(crate) fn arguments(kernel: &WarpProgram) -> Vec<String> {
    let mut names: Vec<String> = kernel.descriptors.iter().map(|d| d.name.clone()).collect();
    let plain = |p: &&twill_codegen::ir::Parameter| !matches!(p.kind, twill_triton::mlir::Type::TensorDescriptor(_));
    names.extend(kernel.parameters.iter().filter(plain).map(|p| p.name.clone()));
    names.extend(["programs_x", "programs_y", "programs_z"].map(str::to_owned));
    names
}

/// What the entry passes to its groups.
pub(super) fn group_arguments(kernel: &WarpProgram) -> Vec<String> {
    let mut names = arguments(kernel);
    names.extend(kernel.buffers.iter().filter(|b| !b.shape.is_empty()).map(|b| b.name.clone()));
    if !kernel.is_in_order() {
        names.push("bars".into());
    }
    names
}
