//! Tensor memory and the multiplies that leave their results there (`tcgen05`).

use super::expression::{Names, dtype};
use super::layout::Layout;
use crate::kernel::expression::Expression;
use crate::kernel::program::{Addend, Buffer, KernelProgram, Slot};
use crate::program::Iteration;

/// What a kernel with tensor memory imports.
pub(super) const IMPORTS: &str = "import triton.experimental.gluon.language as gl
from triton.experimental import gluon
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    get_tmem_reg_layout,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
";

/// Whether a kernel has values in tensor memory.
pub(super) fn is_used(kernel: &KernelProgram) -> bool {
    kernel.buffers.iter().any(Buffer::is_tensor)
}

/// A tile's place in tensor memory: a row is a lane, elements of less than 32 bits are packed.
fn layout(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("TensorMemoryLayout([{}], col_stride=1)", extents.join(", "))
}

/// The layout of a buffer, named as the buffer in capitals.
pub(super) fn buffer_layout(buffer: &Buffer) -> String {
    layout(&buffer.shape)
}

/// How the threads of a group of so many warps hold a tile that comes from tensor memory.
pub(super) fn register_layout(rows: u64, columns: u64, warps: u32) -> String {
    let shape = [rows, columns];
    format!("get_tmem_reg_layout(gl.float32, [{rows}, {columns}], {}, {warps})", layout(&shape))
}

/// A part of a tile in tensor memory: only columns can be cut.
pub(super) fn part(slot: &Slot) -> String {
    slot.slice.map_or(String::new(), |(_, start, extent)| format!(".slice({start}, {extent})"))
}

/// The allocation of a buffer.
pub(super) fn allocation(buffer: &Buffer) -> String {
    let mut shape = vec![buffer.slots.to_string()];
    shape.extend(buffer.shape.iter().map(u64::to_string));
    let (name, element) = (&buffer.name, dtype(&buffer.element));
    format!("{name} = allocate_tensor_memory({element}, [{}], {})", shape.join(", "), name.to_uppercase())
}

/// A multiply, which signals `barriers` when it is done.
pub(super) fn multiply(
    names: &Names<'_>,
    left: &Slot,
    right: &Slot,
    to: &Slot,
    addend: &Addend,
    barriers: &[String],
) -> String {
    let adds = match addend {
        Addend::Zero => "False".to_owned(),
        Addend::Value(_) | Addend::Before => "True".to_owned(),
        Addend::BeforeUnlessFirst(number) => first(names, number.index, number.iteration),
    };
    let signals = if barriers.is_empty() { String::new() } else { format!(", mbarriers=[{}]", barriers.join(", ")) };
    format!("tcgen05_mma({}, {}, {}, use_acc={adds}{signals})", names.slot(left), names.slot(right), names.slot(to))
}

/// Whether an iteration is not the first.
fn first(names: &Names<'_>, index: usize, iteration: Iteration) -> String {
    match iteration {
        Iteration::Current(n) => format!("i > {}", -n),
        other => format!("{} > 0", names.iteration(index, other)),
    }
}

/// A store of a tile in the layout of the threads that reach it.
pub(super) fn store(names: &Names<'_>, value: &Expression, to: &Slot) -> String {
    let layout = match value.shape.as_slice() {
        [rows, columns] => Layout::Tensor { rows: *rows, columns: *columns, warps: names.group.warps },
        shape => Layout::spread(shape.len(), names.group.warps),
    };
    format!("{}.store({})", names.slot(to), names.tile(value, &layout))
}

/// Barriers that are signalled when all multiplies so far are done.
pub(super) fn commit(barriers: &[String]) -> String {
    let lines: Vec<String> = barriers.iter().map(|b| format!("tcgen05_commit({b})")).collect();
    lines.join("\n")
}
