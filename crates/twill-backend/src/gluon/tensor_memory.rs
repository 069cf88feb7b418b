//! Tensor memory and the MMAs that leave their results there (`tcgen05`).

use super::expression::Names;
use super::layout::Layout;
use super::names::dtype;
use twill_codegen::Iteration;
use twill_codegen::ir::{Addend, Buffer, Group, Slot, Tcgen05Mma, WarpProgram};
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{FewTrips, Node, Note, Op, any};

/// What a kernel with tensor memory imports.
pub(super) const IMPORTS: &str = "import triton.experimental.gluon.language as gl
from triton.experimental import gluon
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
";

/// What Triton 3.8 has as a method of a type, for `versions.py`.
pub(super) const REGISTER_LAYOUTS: &str = "

def get_tmem_reg_layout(element, shape, layout, warps):
    \"\"\"How the threads of a group hold a tile of tensor memory.\"\"\"
    if hasattr(blackwell, \"get_tmem_reg_layout\"):
        return blackwell.get_tmem_reg_layout(element, shape, layout, warps)
    return blackwell.tensor_memory_descriptor_type(element, shape, layout, shape).get_reg_layout(warps)

";

/// With fewer registers a thread, the descriptors of all operands do not fit.
const FEW_REGISTERS: u32 = 48;

/// The number of a slot that is always the same, as the compiler does not know.
pub(super) const NO_SLOT: &str = "zero = unknown_zero()";

/// Whether a loop has MMAs with operands in one place, whose descriptors would take too many registers.
pub(super) fn is_short_of_registers(kernel: &WarpProgram, group: &Group, body: &[Node]) -> bool {
    let is_fixed = |slot: &Slot| {
        let is_one = slot.at.is_none_or(|at| group.cursors[at.index()].slots == 1);
        is_one && !kernel.buffers[slot.buffer.index()].is_tensor()
    };
    let has_fixed = |op: &Op| match op {
        Op::Tcgen05Mma(mma) => is_fixed(&mma.left) || is_fixed(&mma.right),
        _ => false,
    };
    any(body, has_fixed) && group.registers < FEW_REGISTERS
}

/// Waits and arrivals that also order what threads and the unit do to tensor memory (`tcgen05.fence`).
pub(super) fn ordered(prelude: &str) -> String {
    let arrive = ("bar.warp.sync 0xffffffff;", "tcgen05.fence::before_thread_sync; bar.warp.sync 0xffffffff;");
    let wait = ("@!p bra.uni waitLoop;", "@!p bra.uni waitLoop; tcgen05.fence::after_thread_sync;");
    [arrive, wait].iter().fold(prelude.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Whether a kernel has values in tensor memory.
pub(super) fn is_used(kernel: &WarpProgram) -> bool {
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

/// How the threads of a group of N warps hold a tile that is loaded from tensor memory.
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

/// An MMA, which signals `barriers` when it is done.
pub(super) fn mma(names: &Names<'_>, mma: &Tcgen05Mma, barriers: &[String], finds_anew: bool) -> String {
    let Tcgen05Mma { left, right, to, addend, .. } = mma;
    let adds = match addend {
        Addend::Zero => "False".to_owned(),
        Addend::Value(_) | Addend::Before => "True".to_owned(),
        Addend::BeforeUnlessFirst(number) => first(names, number.index, number.iteration),
    };
    let signals = if barriers.is_empty() { String::new() } else { format!(", mbarriers=[{}]", barriers.join(", ")) };
    let operand = |slot: &Slot| {
        let text = names.slot(slot);
        let is_fixed = finds_anew && !names.kernel.buffers[slot.buffer.index()].is_tensor();
        if is_fixed { text.replacen(".index(0)", ".index(zero)", 1) } else { text }
    };
    format!("tcgen05_mma({}, {}, {}, use_acc={adds}{signals})", operand(left), operand(right), names.slot(to))
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
        shape => Layout::blocked(shape.len(), names.group.warps),
    };
    format!("{}.store({})", names.slot(to), names.tile(value, &layout))
}

/// A tile that is loaded if there are enough trips, and otherwise stays what it is: without a branch, since loading what
/// nobody has written does no harm.
pub(super) fn choice<'n>(names: &Names<'_>, trips: &str, switch: &'n Node) -> Option<(String, &'n Note)> {
    let Node::TripSwitch { at_least, then, fewer: FewTrips::Each(each), .. } = switch else { return None };
    let [Node::Op(Op::Let { to, value }, note)] = then.as_slice() else { return None };
    let is_load = matches!(value.kind, ExpressionKind::FromTensor(_)) && each.is_empty();
    let layout = names.layouts[to.index()].as_ref().filter(|_| is_load)?;
    let name = names.variable(*to);
    Some((format!("{name} = gl.where({trips} >= {at_least}, {}, {name})", names.tile(value, layout)), note))
}

/// Barriers that are signalled when all MMAs so far are done.
pub(super) fn commit(barriers: &[String]) -> String {
    let lines: Vec<String> = barriers.iter().map(|b| format!("tcgen05_commit({b})")).collect();
    lines.join("\n")
}
