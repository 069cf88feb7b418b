//! Tensor memory and the MMAs that leave their results there (`tcgen05`), by the primitives of `twill_tcgen05.cuh`.

use super::expression::Expressions;
use super::expression::operand;
use super::names::{self, missing};
use super::storage::extents;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::Iteration;
use twill_codegen::ir::{Addend, Buffer, Group, Slot, Tcgen05Mma, WarpProgram};
use twill_codegen::ir::{Op, any};
use twill_triton::mlir::{FloatKind, Type};

/// The least that is allocated; all that is allocated is a power of two (PTX ISA, `tcgen05.alloc`).
const LEAST_COLUMNS: u64 = 32;

/// Bytes of shared memory for where tensor memory begins, and for the barrier of the last MMA.
const ADDRESS: u64 = 8;
const BARRIER: u64 = 8;

/// A group's name for where the CTA's tensor memory begins.
const BEGIN: &str = "tensor_";

/// Whether a thread of a warp is the one that starts MMAs.
pub(super) const ELECTED: &str = "elected()";

/// Whether a kernel has values in tensor memory.
pub(super) fn is_used(kernel: &WarpProgram) -> bool {
    kernel.buffers.iter().any(Buffer::is_tensor)
}

/// Bytes of shared memory after the barriers.
pub(super) fn shared_bytes(kernel: &WarpProgram) -> u64 {
    if is_used(kernel) { ADDRESS + BARRIER } else { 0 }
}

/// Columns that a CTA takes.
fn columns(kernel: &WarpProgram) -> u64 {
    kernel.tensor_columns().next_power_of_two().max(LEAST_COLUMNS)
}

/// The buffers as functions from the begin of tensor memory, and a slot, to a tile; and where the begin is kept.
pub(super) fn tmem_tiles(kernel: &WarpProgram, address: u64) -> Result<String, Error> {
    let mut out = format!(
        "
// Tensor memory, and the barrier of the last MMA.
TWILL u32 tensor_memory() {{ return __shfl_sync(~0u, ld_shared_element<u32>(shared_at({address})), 0); }}
TWILL u32 last_mma() {{ return shared_at({}); }}
",
        address + ADDRESS
    );
    let mut at = 0;
    for buffer in kernel.buffers.iter().filter(|b| b.is_tensor()) {
        let [rows, columns] = extents(buffer);
        let kind = format!("tmem_tile<{}, {rows}, {columns}>", names::element(&buffer.element)?);
        let (name, each) = (names::name(&buffer.name), buffer.columns() / u64::from(buffer.slots.max(1)));
        let (slot, offset) =
            if buffer.slots > 1 { (", u32 slot", format!(" + slot * {each}")) } else { ("", String::new()) };
        let _ = writeln!(out, "TWILL {kind} {name}(u32 begin{slot}) {{ return {{begin + {at}{offset}}}; }}");
        at += buffer.columns();
    }
    Ok(out)
}

/// What stands in front of a group's variables.
pub(super) fn begin_of_group() -> String {
    format!("const u32 {BEGIN} = tensor_memory();")
}

/// What stands at the end of a group that starts MMAs.
pub(super) fn end_of_group(group: &Group) -> Option<&'static str> {
    let mmas = |op: &Op| matches!(op, Op::Tcgen05Mma(_));
    any(&group.body, mmas).then_some("tcgen05_wait_all(last_mma());")
}

/// Where the kernel takes tensor memory, and all threads wait for it.
pub(super) fn begin(kernel: &WarpProgram, address: u64) -> String {
    let columns = columns(kernel);
    format!("  if (threadIdx.x / 32 == 0) tmem_alloc<{columns}>(shared_at({address}));\n  cta_sync();\n")
}

/// Where it gives tensor memory back: everybody has read the results.
pub(super) fn end(kernel: &WarpProgram, address: u64) -> String {
    let columns = columns(kernel);
    format!("  cta_sync();\n  if (warp == 0) tmem_dealloc<{columns}>(shared_at({address}));\n")
}

/// A tile, or some of its columns.
pub(super) fn tmem_tile(print: &Expressions<'_>, slot: &Slot) -> Result<String, Error> {
    let buffer = &print.kernel.buffers[slot.buffer.index()];
    let name = names::name(&buffer.name);
    let mut text = match slot.at {
        Some(at) if buffer.slots > 1 => {
            format!("{name}({BEGIN}, {})", names::name(&print.group.cursors[at.index()].name))
        }
        _ => format!("{name}({BEGIN})"),
    };
    match slot.slice {
        None => {}
        Some((dimension, first, count)) if dimension + 1 == buffer.shape.len() => {
            let _ = write!(text, ".column_part<{first}, {count}>()");
        }
        Some(_) => return Err(missing("some of the rows of a tile in tensor memory".into())),
    }
    if slot.transposed { Err(missing("a transposed tile in tensor memory".into())) } else { Ok(text) }
}

/// An MMA, which signals `barriers` when it is done.
pub(super) fn mma(print: &Expressions<'_>, mma: &Tcgen05Mma, barriers: &[String]) -> Result<String, Error> {
    let Tcgen05Mma { left, right, to, addend, .. } = mma;
    if print.kernel.buffers[to.buffer.index()].element != Type::Float(FloatKind::F32) {
        return Err(missing("sums of other than 32 bits in tensor memory".into()));
    }
    let adds = match addend {
        Addend::Zero => "false".to_owned(),
        Addend::Value(_) | Addend::Before => "true".to_owned(),
        Addend::BeforeUnlessFirst(number) => match number.iteration {
            Iteration::Current(n) => format!("i > {}", -n),
            other => format!("{} > 0", print.iteration(number.index, other)),
        },
    };
    let is_tensor = |slot: &Slot| print.kernel.buffers[slot.buffer.index()].is_tensor();
    let left = if is_tensor(left) { tmem_tile(print, left)? } else { operand(print, left)? };
    let mut code = format!(
        "if ({ELECTED}) {{\n  tcgen05_mma({}, {left}, {}, {adds});\n",
        tmem_tile(print, to)?,
        operand(print, right)?
    );
    code.push_str(&signals(barriers));
    code.push('}');
    Ok(code)
}

/// Barriers that are signalled when all MMAs so far are done.
pub(super) fn commit(barriers: &[String]) -> String {
    format!("if ({ELECTED}) {{\n{}}}", signals(barriers))
}

fn signals(barriers: &[String]) -> String {
    barriers.iter().map(|b| format!("  tcgen05_commit({b});\n")).collect()
}
