//! Tensor memory and the multiplies that leave their results there (`tcgen05`), by the primitives of `twill_tcgen05.cuh`.

use super::expression::Expressions;
use super::group::operand;
use super::names::{self, missing};
use super::source::extents;
use crate::error::Error;
use crate::kernel::op::{Op, any};
use crate::kernel::program::{Addend, Buffer, Group, KernelProgram, Slot, Tcgen05Mma};
use crate::program::Iteration;
use std::fmt::Write as _;
use twill_triton::mlir::{FloatKind, Type};

/// The least that is allocated; all that is allocated is a power of two (PTX ISA, `tcgen05.alloc`).
const LEAST_COLUMNS: u64 = 32;

/// Bytes of shared memory for where tensor memory begins, and for the barrier of the last multiply.
const ADDRESS: u64 = 8;
const BARRIER: u64 = 8;

/// A group's name for where the CTA's tensor memory begins.
const BEGIN: &str = "tensor_";

/// Whether a thread of a warp is the one that starts multiplies.
pub(super) const ELECTED: &str = "elected()";

/// Whether a kernel has values in tensor memory.
pub(super) fn is_used(kernel: &KernelProgram) -> bool {
    kernel.buffers.iter().any(Buffer::is_tensor)
}

/// Bytes of shared memory behind the barriers.
pub(super) fn shared_bytes(kernel: &KernelProgram) -> u64 {
    if is_used(kernel) { ADDRESS + BARRIER } else { 0 }
}

/// Columns that a CTA takes.
fn columns(kernel: &KernelProgram) -> u64 {
    kernel.tensor_columns().next_power_of_two().max(LEAST_COLUMNS)
}

/// The buffers as functions from the begin of tensor memory, and a slot, to a place; and where the begin is kept.
pub(super) fn places(kernel: &KernelProgram, address: u64) -> Result<String, Error> {
    let mut out = format!(
        "
// Tensor memory, and the barrier of the last multiply.
TWILL u32 tensor_memory() {{ return __shfl_sync(~0u, get<u32>(shared_at({address})), 0); }}
TWILL u32 last_multiply() {{ return shared_at({}); }}
",
        address + ADDRESS
    );
    let mut at = 0;
    for buffer in kernel.buffers.iter().filter(|b| b.is_tensor()) {
        let [rows, columns] = extents(buffer);
        let kind = format!("tensor_place<{}, {rows}, {columns}>", names::element(&buffer.element)?);
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

/// What stands at the end of a group that starts multiplies.
pub(super) fn end_of_group(group: &Group) -> Option<&'static str> {
    let multiplies = |action: &Op| matches!(action, Op::Tcgen05Mma(_));
    any(&group.body, multiplies).then_some("finish_mmas(last_multiply());")
}

/// Where the kernel takes tensor memory, and all threads wait for it.
pub(super) fn begin(kernel: &KernelProgram, address: u64) -> String {
    let columns = columns(kernel);
    format!("  if (threadIdx.x / 32 == 0) take_tensor_memory<{columns}>(shared_at({address}));\n  meet_all();\n")
}

/// Where it gives tensor memory back: everybody has read the results.
pub(super) fn end(kernel: &KernelProgram, address: u64) -> String {
    let columns = columns(kernel);
    format!("  meet_all();\n  if (warp == 0) give_tensor_memory<{columns}>(shared_at({address}));\n")
}

/// A tile, or some of its columns.
pub(super) fn place(print: &Expressions<'_>, slot: &Slot) -> Result<String, Error> {
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

/// A multiply, which signals `barriers` when it is done.
pub(super) fn multiply(
    print: &Expressions<'_>,
    multiply: &Tcgen05Mma,
    barriers: &[String],
) -> Result<String, Error> {
    let Tcgen05Mma { left, right, to, addend, .. } = multiply;
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
    let left = if is_tensor(left) { place(print, left)? } else { operand(print, left)? };
    let mut code =
        format!("if ({ELECTED}) {{\n  multiply({}, {left}, {}, {adds});\n", place(print, to)?, operand(print, right)?);
    code.push_str(&signals(barriers));
    code.push('}');
    Ok(code)
}

/// Barriers that are signalled when all multiplies so far are done.
pub(super) fn commit(barriers: &[String]) -> String {
    format!("if ({ELECTED}) {{\n{}}}", signals(barriers))
}

fn signals(barriers: &[String]) -> String {
    barriers.iter().map(|b| format!("  commit({b});\n")).collect()
}
