//! The operations of a warp program as statements of C++.

use super::{FIRST_PINGPONG_BARRIER, Printer};
use crate::cuda::expression::operand;
use crate::cuda::fragment::Fragment;
use crate::cuda::names::{self, missing};
use crate::cuda::operation::bare;
use crate::cuda::{opaque, tensor_memory, trace};
use crate::layout::Layout;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::Expression;
use twill_codegen::ir::Op;
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{Operand, Slot, VariableId};
use twill_triton::mlir::Type;

/// Bytes that `cp.async` copies at least, and at most.
const LEAST_COPIED: u64 = 4;
const MOST_COPIED: u64 = 16;

impl Printer<'_> {
    pub(super) fn code(&self, op: &Op) -> Result<String, Error> {
        let print = &self.expressions;
        let threads = 32 * self.group.warps;
        Ok(match op {
            Op::Let { to, value } => {
                if print.inlined.contains_key(to) {
                    return Ok(String::new());
                }
                let text = match print.fragment_of(*to) {
                    Some(fragment) => print.tile(value, &fragment)?,
                    None => print.scalar(value)?,
                };
                let name = print.variable(*to);
                if name == text { String::new() } else { format!("{name} = {};", bare(&text)) }
            }
            Op::Copy { to, from } => {
                let text = match (print.fragment_of(*to), print.fragment_of(*from)) {
                    (Some(want), Some(have)) if want != have => {
                        let shape = &self.group.variables[from.index()].shape;
                        print.converted(&print.variable(*from), shape, &want, &want.axes(shape.len()))
                    }
                    _ => print.variable(*from),
                };
                format!("{} = {text};", print.variable(*to))
            }
            Op::Wgmma { to, left, right, accumulator } => self.mma(*to, left, right, *accumulator)?,
            Op::Tcgen05Mma(mma) => tensor_memory::mma(print, mma, &self.barriers(&mma.signals))?,
            Op::Tcgen05Commit(signals) => tensor_memory::commit(&self.barriers(signals)),
            Op::WgmmaInit(_) => String::new(),
            Op::WgmmaWait { pending, completed, .. } => {
                let mut code = format!("wgmma_wait_group<{pending}>();");
                for variable in completed {
                    let _ = write!(
                        code,
                        "
operand_fence({});",
                        print.variable(*variable)
                    );
                }
                code
            }
            Op::TmaLoad { descriptor, coordinates, to, full } => {
                let barrier = to.at.map(|at| self.barrier(*full, at)).unwrap_or_default();
                let (from, at) = (self.descriptor(*descriptor), self.joined(coordinates)?);
                let load = if self.kernel.is_loaded_in_halves(to.buffer) { "tma_load_multicast" } else { "tma_load" };
                self.by_one(&format!("{load}({from}, at({at}), {}, {barrier});", print.smem_tile(to)?))
            }
            Op::CpAsync { pointers, mask, elements, to, full: Some(full), .. } => {
                self.copy(pointers, mask.as_ref(), *elements, to, *full)?
            }
            Op::CpAsync { full: None, .. } | Op::CpAsyncCommit | Op::CpAsyncWait(_) => {
                return Err(missing("groups of copies".into()));
            }
            Op::LocalStore { value, to } => self.local_store(value, to)?,
            Op::FenceProxyAsync => "fence_proxy_async();".into(),
            Op::GroupSync => format!("named_barrier_sync<{}, {threads}>();", self.number + 1),
            Op::TmaStore { coordinates, reduce: Some(_), .. } if coordinates.len() > 2 => {
                return Err(missing(format!("an addition to a tensor of {} dimensions", coordinates.len())));
            }
            Op::TmaStore { descriptor, coordinates, from, reduce } => {
                let call = if reduce.is_some() { "tma_reduce_add" } else { "tma_store" };
                let (to, at) = (self.descriptor(*descriptor), self.joined(coordinates)?);
                self.by_one(&format!("{call}({to}, at({at}), {});", print.smem_tile(from)?))
            }
            Op::TmaStoreWait(left) => self.by_one(&format!("tma_store_wait<{left}>();")),
            Op::GlobalStore { pointers, value, mask } => self.global_store(pointers, value, mask.as_ref(), false)?,
            Op::AtomicAdd { pointers, value, mask } => self.global_store(pointers, value, mask.as_ref(), true)?,
            Op::MbarrierWait { barrier, at, previous } => {
                let phase = format!("{}_phase", names::name(&self.group.cursors[at.index()].name));
                let phase = if *previous { format!("{phase} ^ 1") } else { phase };
                format!("mbarrier_wait{}({}, {phase});", self.ordered(), self.barrier(*barrier, *at))
            }
            Op::MbarrierArrive { barrier, at } => {
                let how = if self.kernel.has_arrivals_of_both_ctas(*barrier) { "_both" } else { self.ordered() };
                format!("mbarrier_arrive{how}({});", self.barrier(*barrier, *at))
            }
            Op::Opaque { operation, operands, results } => opaque::statement(print, operation, operands, results)?,
            Op::AdvanceCursor(cursor) => self.advance(*cursor),
            Op::CopyCursor { to, from } => self.copy_cursor(*to, *from),
            Op::NamedBarrierSync(id) => {
                format!("named_barrier_sync<{}, {}>();", FIRST_PINGPONG_BARRIER + id.0, 2 * threads)
            }
            Op::NamedBarrierArrive(id) => {
                format!("named_barrier_arrive<{}, {}>();", FIRST_PINGPONG_BARRIER + id.0, 2 * threads)
            }
            Op::Timestamp(stamps) => match &self.kernel.trace {
                Some(traced) => trace::timestamps(traced, self.group, print, stamps)?,
                None => String::new(),
            },
        })
    }

    pub(super) fn descriptor(&self, id: twill_codegen::ir::DescriptorId) -> String {
        names::name(&self.kernel.descriptors[id.index()].name)
    }

    pub(super) fn mma(
        &self,
        to: VariableId,
        left: &Operand,
        right: &Operand,
        accumulator: Option<VariableId>,
    ) -> Result<String, Error> {
        let operand = |o: &Operand| match o {
            Operand::Shared(slot) => operand(&self.expressions, slot),
            Operand::Registers(v) => Ok(self.expressions.variable(*v)),
        };
        let name = self.expressions.variable(to);
        let mut code = String::new();
        if let Some(from) = accumulator.filter(|from| *from != to) {
            let _ = writeln!(code, "{name} = {};", self.expressions.variable(from));
        }
        let _ = write!(code, "wgmma({name}, {}, {}, {});", operand(left)?, operand(right)?, accumulator.is_some());
        Ok(code)
    }

    /// A copy through pointers of which so many elements of a row are neighbours in memory, and masked alike.
    pub(super) fn copy(
        &self,
        pointers: &Expression,
        mask: Option<&Expression>,
        elements: u64,
        to: &Slot,
        full: BarrierId,
    ) -> Result<String, Error> {
        let print = &self.expressions;
        let fragment = Fragment::of_shape(&pointers.shape, self.group.warps);
        let axes = fragment.axes(pointers.shape.len());
        let mask = mask.map_or_else(|| Ok("true".into()), |m| print.element(m, &fragment, &axes))?;
        let from = print.element(pointers, &fragment, &axes)?;
        let element = names::element(&self.kernel.buffers[to.buffer.index()].element)?;
        let (tile, name) = (print.smem_tile(to)?, fragment.name());
        let (row, column) = print.place_in_shared(to, &pointers.shape, &axes);
        let barrier = to.at.map(|at| self.barrier(full, at)).unwrap_or_default();
        let size = u64::from(self.kernel.buffers[to.buffer.index()].element.scalar_bits().unwrap_or(8).max(8)) / 8;
        let most = fragment.neighbours().min((MOST_COPIED / size).max(1));
        // Both are powers of two.
        let each = if elements.is_power_of_two() { elements.min(most) } else { 1 };
        let each = if each * size < LEAST_COPIED { 1 } else { each };
        Ok(format!(
            "for_each<{name}, {each}>([&](auto e) {{ cp_async_elements<{each}>({tile}.address({row}, {column}), {}, {}); }});\ncp_async_mbarrier_arrive<{element}, {each}>({barrier});",
            bare(&from),
            bare(&mask)
        ))
    }

    pub(super) fn local_store(&self, value: &Expression, to: &Slot) -> Result<String, Error> {
        let print = &self.expressions;
        if value.shape.is_empty() {
            let element = names::element(&self.kernel.buffers[to.buffer.index()].element)?;
            let (tile, number) = (print.smem_tile(to)?, print.scalar(value)?);
            return Ok(self.by_one(&format!("st_shared_element<{element}>({tile}.address(0, 0), {});", bare(&number))));
        }
        if self.kernel.buffers[to.buffer.index()].is_tensor() {
            let [rows, columns] = value.shape[..] else { return Err(missing("a vector in tensor memory".into())) };
            let layout = Layout::Tensor { rows, columns, warps: self.group.warps };
            let text = print.tile(value, &Fragment::of(&layout, &value.shape, self.group.warps))?;
            return Ok(format!("tmem_store({}, {text});", tensor_memory::tmem_tile(print, to)?));
        }
        let tile = print.smem_tile(to)?;
        let fragment = print.fragment(value);
        if to.transposed || value.shape.len() > 2 || matches!(fragment, Fragment::Linear { .. }) {
            let element = names::element(&self.kernel.buffers[to.buffer.index()].element)?;
            let whole = print.held(value, &fragment)?;
            let (row, column) = print.place_in_shared(to, &value.shape, &fragment.axes(value.shape.len()));
            let put = format!("st_shared_element<{element}>({tile}.address({row}, {column}), {element}({whole}[e]))");
            return Ok(format!("for_each<{}>([&](auto e) {{ {put}; }});", fragment.name()));
        }
        let text = print.tile(value, &fragment)?;
        if fragment.is_in_vectors() {
            return Ok(format!("st_shared_v4({tile}, {text});"));
        }
        let is_half = matches!(&value.element, Type::Float(kind) if kind.bits() == 16);
        let by_matrices = matches!(&fragment, Fragment::Accumulator { rows, columns }
            if is_half && rows % 64 == 0 && columns % 16 == 0);
        Ok(format!("{}({tile}, {text});", if by_matrices { "stmatrix" } else { "st_shared" }))
    }

    /// A store through pointers: those, the mask and the value in one layout.
    pub(super) fn global_store(
        &self,
        pointers: &Expression,
        value: &Expression,
        mask: Option<&Expression>,
        adds: bool,
    ) -> Result<String, Error> {
        let print = &self.expressions;
        let is_long = value.element == Type::Integer(64);
        if adds && matches!(value.element, Type::Integer(1 | 8 | 16)) {
            return Err(missing(format!("an atomic addition of {}", value.element)));
        }
        let store = |pointer: &str, value: &str, mask: Option<String>| {
            let act = match adds {
                // CUDA knows it of numbers without a sign, whose sums have the same bits.
                true if is_long => format!("atomicAdd(reinterpret_cast<u64 *>({}), u64({value}))", bare(pointer)),
                true => format!("atomicAdd({}, {value})", bare(pointer)),
                false => format!("*{pointer} = {value}"),
            };
            mask.map_or(act.clone(), |m| format!("if ({}) {act}", bare(&m)))
        };
        if pointers.shape.is_empty() {
            let mask = mask.map(|m| print.scalar(m)).transpose()?;
            let act = store(&print.scalar(pointers)?, bare(&print.scalar(value)?), mask);
            return Ok(self.by_one(&format!("{{ {act}; }}")));
        }
        let layout = crate::layout::infer(value, &print.layouts)
            .or_else(|| crate::layout::infer(pointers, &print.layouts))
            .unwrap_or_else(|| print.open(&pointers.shape));
        let fragment = Fragment::of(&layout, &pointers.shape, self.group.warps);
        let axes = fragment.axes(pointers.shape.len());
        let part = |e: &Expression| print.element(e, &fragment, &axes);
        let act = store(&part(pointers)?, bare(&part(value)?), mask.map(part).transpose()?);
        Ok(format!("for_each<{}>([&](auto e) {{ {act}; }});", fragment.name()))
    }

    pub(super) fn advance(&self, cursor: CursorId) -> String {
        let c = &self.group.cursors[cursor.index()];
        let name = names::name(&c.name);
        match (c.slots, c.phase) {
            (1, true) => format!("{name}_phase ^= 1;"),
            (1, false) => String::new(),
            (slots, true) => format!("advance<{slots}>({name}, {name}_phase);"),
            (slots, false) => format!("advance<{slots}>({name});"),
        }
    }

    pub(super) fn copy_cursor(&self, to: CursorId, from: CursorId) -> String {
        let (to, from) = (&self.group.cursors[to.index()], &self.group.cursors[from.index()]);
        let (a, b) = (names::name(&to.name), names::name(&from.name));
        let mut lines = Vec::new();
        if to.slots > 1 {
            lines.push(format!("{a} = {b};"));
        }
        if to.phase {
            lines.push(format!("{a}_phase = {b}_phase;"));
        }
        lines.join("\n")
    }
}
