//! What a group does, one operation at a time.

use super::group::Printer;
use super::layout::Layout;
use super::names::dtype;
use super::operation::is_number;
use super::tensor_memory;
use crate::listing::end_with_marker;
use twill_codegen::ir::{BarrierId, CursorId, Expression, ExpressionKind, Note, Op, Operand, VariableId};
use twill_triton::mlir::Type;

/// Gluon uses the named barriers below for its own.
const FIRST_NAMED: u32 = 8;

impl Printer<'_> {
    fn barrier(&self, id: BarrierId, at: CursorId) -> String {
        let name = self.kernel.barriers[id.index()].name.to_uppercase();
        let cursor = &self.group.cursors[at.index()];
        if cursor.slots > 1 { format!("{name} + {}", cursor.name) } else { name }
    }

    /// Barriers as values.
    fn barriers(&self, signals: &[(BarrierId, CursorId)]) -> Vec<String> {
        signals.iter().map(|(id, at)| format!("bars.index({})", self.barrier(*id, *at))).collect()
    }

    fn joined(&self, expressions: &[Expression]) -> String {
        let texts: Vec<String> = expressions.iter().map(|e| self.names.scalar(e)).collect();
        texts.join(", ")
    }

    fn blocked(&self, value: &Expression) -> String {
        if value.shape.is_empty() {
            return self.names.scalar(value);
        }
        let layout = super::layout::infer(value, &self.names.layouts)
            .unwrap_or_else(|| Layout::of_shape(&value.shape, self.group.warps));
        self.names.tile(value, &layout)
    }

    /// Pointers, a mask and a value in one layout: that of the value.
    fn store_operands(&self, pointers: &Expression, value: &Expression, mask: Option<&Expression>) -> String {
        let (first, second) = if self.names.in_order { (pointers, value) } else { (value, pointers) };
        let layout = super::layout::infer(first, &self.names.layouts)
            .or_else(|| super::layout::infer(second, &self.names.layouts))
            .unwrap_or_else(|| Layout::of_shape(&value.shape, self.group.warps));
        let part = |e: &Expression| {
            if e.shape.is_empty() { self.names.scalar(e) } else { self.names.tile(e, &layout) }
        };
        // Atomic operations take no number of Python's for a mask.
        let mask = mask.map(part).filter(|mask| mask != "True");
        let mask = mask.map_or(String::new(), |mask| format!(", mask={mask}"));
        format!("{}, {}{mask}", part(pointers), part(value))
    }

    pub(super) fn op(&mut self, depth: usize, op: &Op, note: &Note) {
        let comment = Self::comment(note);
        let code = match op {
            // Only CUDA is traced.
            Op::Timestamp(_) => return,
            Op::Opaque { operation, operands, results } => {
                let mut combine = String::new();
                if let Some(region) = &operation.combine {
                    // Functions of all groups stand next to each other.
                    let of_group =
                        if self.kernel.groups.len() > 1 { format!("{}_", self.group.name) } else { String::new() };
                    combine = format!("combine_{of_group}{}", self.functions.len());
                    self.functions.push(super::opaque::combine_function(&combine, region));
                }
                if self.starts_mma(depth, op, &comment) {
                    return;
                }
                super::opaque::statement(&self.names, operation, operands, results, &combine)
            }
            Op::Let { to, value } => {
                if self.names.inlined.contains_key(to) {
                    return;
                }
                let text = match &self.names.layouts[to.index()] {
                    // The layout is the variable's own from here on.
                    _ if matches!(value.kind, ExpressionKind::PartialSums(_)) => self.names.partials(value),
                    Some(layout) if !value.shape.is_empty() => self.names.tile(value, layout),
                    _ => self.blocked(value),
                };
                let name = self.names.variable(*to);
                if name == text {
                    return;
                }
                let is_trip_count = self.group.trips.contains(&Some(*to));
                match value.shape.is_empty() && !is_trip_count && is_number(&text) {
                    // Else it were a number of Python's, which has no type.
                    true => format!("{name} = gl.to_tensor({text}).to({})", dtype(&value.element)),
                    false => format!("{name} = {text}"),
                }
            }
            Op::Copy { to, from } => self.copy(*to, *from),
            Op::Wgmma { to, left, right, accumulator } => self.mma(*to, left, right, *accumulator),
            Op::Tcgen05Mma(mma) => {
                let barriers = self.barriers(&mma.signals);
                tensor_memory::mma(&self.names, mma, &barriers, self.is_short_of_registers)
            }
            Op::Tcgen05Commit(signals) => tensor_memory::commit(&self.barriers(signals)),
            Op::WgmmaInit(variable) => {
                let name = self.names.variable(*variable);
                format!("{name} = warpgroup_mma_init({name})")
            }
            Op::WgmmaWait { pending, completed, in_flight } => {
                // Triton has no wait that names operands of 8 bits ("ConvertNVGPUToLLVM" fails, 3.6). That nothing overwrites their
                // registers in the meantime is seen in the machine code (`twill lint`).
                let is_named =
                    |v: &&VariableId| self.group.variables[v.index()].element.scalar_bits().is_none_or(|bits| bits > 8);
                let in_flight = || in_flight.iter().filter(is_named);
                let completed = completed.iter().filter(is_named);
                let names: Vec<&str> = completed.chain(in_flight()).map(|v| self.names.variable(*v)).collect();
                let deps =
                    if names.len() == 1 { format!("({},)", names[0]) } else { format!("({})", names.join(", ")) };
                let mut code =
                    format!("{} = warpgroup_mma_wait(num_outstanding={pending}, deps={deps})", names.join(", "));
                for variable in in_flight() {
                    let name = self.names.variable(*variable);
                    code.push_str(&format!("\n{name} = warpgroup_mma_init({name})"));
                }
                code
            }
            Op::TmaLoad { descriptor, coordinates, to, full } => {
                let buffer = &self.kernel.buffers[to.buffer.index()];
                let bytes = buffer.bytes() / u64::from(buffer.slots.max(1));
                let barrier = to.at.map(|at| self.barrier(*full, at)).unwrap_or_default();
                let descriptor = &self.kernel.descriptors[descriptor.index()].name;
                format!(
                    "mbarrier.expect(bars.index({barrier}), {bytes})\nasync_load({descriptor}, [{}], bars.index({barrier}), {})",
                    self.joined(coordinates),
                    self.names.slot(to)
                )
            }
            Op::CpAsync { pointers, mask, elements, whole, to, full } => {
                let barrier = full.and_then(|full| Some(self.barrier(full, to.at?))).unwrap_or_default();
                let layout = Layout::neighbours(&pointers.shape, *elements, self.group.warps);
                // What was proved of the TTIR: that of the same expression here the compiler may not see.
                let along = |last: u64| {
                    let mut each = vec![1; pointers.shape.len()];
                    each.last_mut().into_iter().for_each(|each| *each = last);
                    format!("{each:?}")
                };
                let element = &self.kernel.buffers[to.buffer.index()].element;
                let bytes = elements * u64::from(element.scalar_bits().unwrap_or(8)) / 8;
                let mask = mask.as_ref().map_or(String::new(), |m| {
                    format!(", mask=gl.max_constancy({}, {})", self.names.tile(m, &layout), along(*elements))
                });
                let pointers = self.names.tile(pointers, &layout);
                let (contiguous, aligned) = (along(*elements), along(bytes));
                let slot = self.names.slot(to);
                let copied = format!(
                    "cp_async({slot}, gl.max_contiguous(gl.multiple_of({pointers}, {aligned}), {contiguous}){mask})"
                );
                let arrival = match whole {
                    None => format!("mbarrier_arrive_after_copies(bars, base, {barrier}, BARRIERS_AT)"),
                    // The group meets before it: an arrival that comes later by itself has no order with the bytes that are expected.
                    Some(_) => format!("async_copy.mbarrier_arrive(bars.index({barrier}), increment_count=False)"),
                };
                match whole {
                    None if full.is_none() => copied,
                    None => format!("{copied}\n{arrival}"),
                    Some(whole) => {
                        let buffer = &self.kernel.buffers[to.buffer.index()];
                        let bytes = buffer.bytes() / u64::from(buffer.slots.max(1)) / u64::from(self.group.warps);
                        let descriptor = &self.kernel.descriptors[whole.descriptor.index()].name;
                        // Only where it is known where barriers are can bytes be expected without an arrival. The fence orders
                        // nothing, as copies go on: readers fence what they wait for. It is there for Triton's compiler, which else
                        // puts one before the TMA load, where it waits for the copies of every iteration.
                        format!(
                            "if ({}) & (BARRIERS_AT >= 0):\n    mbarrier_expect_from_warps(base, {barrier}, {bytes})\n    async_load({descriptor}, [{}], bars.index({barrier}), {slot})\nelse:\n    {copied}\n    fence_async_shared()\n{arrival}",
                            self.names.scalar(&whole.condition),
                            self.joined(&whole.coordinates),
                        )
                    }
                }
            }
            Op::LocalStore { value, to } if self.kernel.buffers[to.buffer.index()].is_tensor() => {
                tensor_memory::store(&self.names, value, to)
            }
            Op::LocalStore { value, to } => {
                let have = &self.kernel.buffers[to.buffer.index()].element;
                let is_bit = value.element == twill_triton::mlir::Type::Integer(1);
                let converted = if is_bit { format!(".to({})", dtype(have)) } else { String::new() };
                let text = match value.shape.is_empty() {
                    true => {
                        let layout = self.names.layout(&Layout::blocked(1, self.group.warps));
                        format!("gl.full([1], {}, {}, {layout})", self.names.scalar(value), dtype(&value.element))
                    }
                    false => self.blocked(value),
                };
                let text = if is_bit { format!("({text}){converted}") } else { text };
                format!("{}.store({text})", self.names.slot(to))
            }
            Op::CpAsyncCommit => "async_copy.commit_group()".into(),
            Op::CpAsyncWait(pending) => format!("async_copy.wait_group({pending})"),
            Op::FenceProxyAsync => "fence_async_shared()".into(),
            Op::GroupSync => "thread_barrier()".into(),
            Op::TmaStore { descriptor, coordinates, from, reduce } => {
                let call = if reduce.is_some() { "tma_add" } else { "async_store" };
                let descriptor = &self.kernel.descriptors[descriptor.index()].name;
                format!("{call}({descriptor}, [{}], {})", self.joined(coordinates), self.names.slot(from))
            }
            Op::TmaStoreWait(left) => format!("tma.store_wait(pendings={left})"),
            Op::GlobalStore { pointers, value, mask } => {
                format!("gl.store({})", self.store_operands(pointers, value, mask.as_ref()))
            }
            Op::AtomicAdd { pointers, value, mask } => {
                format!("gl.atomic_add({})", self.store_operands(pointers, value, mask.as_ref()))
            }
            Op::MbarrierWait { barrier, at, previous } => {
                let phase = &self.group.cursors[at.index()].name;
                let phase = if *previous { format!("{phase}_phase ^ 1") } else { format!("{phase}_phase") };
                format!("mbarrier_wait(bars, base, {}, {phase}, BARRIERS_AT)", self.barrier(*barrier, *at))
            }
            Op::MbarrierArrive { barrier, at } => {
                format!("mbarrier_arrive(bars, base, {}, BARRIERS_AT)", self.barrier(*barrier, *at))
            }
            Op::AdvanceCursor(cursor) => self.advance(*cursor),
            Op::CopyCursor { to, from } => self.copy_cursor(*to, *from),
            Op::NamedBarrierSync(id) => format!("named_barrier_sync({}, {})", FIRST_NAMED + id.0, self.threads()),
            Op::NamedBarrierArrive(id) => format!("named_barrier_arrive({}, {})", FIRST_NAMED + id.0, self.threads()),
        };
        let mut comment = comment;
        for line in code.lines() {
            self.line(depth, line, &comment);
            end_with_marker(&mut self.out, note.operation);
            comment.clear();
        }
    }

    /// A variable takes the value of another: in its own layout, where the two are held in different ones.
    fn copy(&self, to: VariableId, from: VariableId) -> String {
        let layout = |id: VariableId| {
            self.names
                .layouts
                .get(id.index())
                .and_then(Option::as_ref)
                .filter(|layout| !matches!(layout, Layout::Like(_)))
        };
        let (name, value) = (self.names.variable(to), self.names.variable(from));
        match (layout(to), layout(from)) {
            (Some(want), Some(have)) if want != have => {
                format!("{name} = gl.convert_layout({value}, {})", self.names.layout(want))
            }
            _ => format!("{name} = {value}"),
        }
    }

    /// Threads of a ping-pong's named barrier: those of two groups.
    fn threads(&self) -> u32 {
        2 * 32 * self.group.warps
    }

    fn mma(&self, to: VariableId, left: &Operand, right: &Operand, accumulator: Option<VariableId>) -> String {
        let operand = |o: &Operand| match o {
            Operand::Shared(slot) => self.names.slot(slot),
            Operand::Registers(v) => self.names.variable(*v).to_owned(),
        };
        let variable = &self.group.variables[to.index()];
        let (sum, fresh) = match accumulator {
            Some(v) => (self.names.variable(v).to_owned(), ""),
            None => {
                let is_integer = matches!(variable.element, Type::Integer(_));
                let zero = Expression {
                    kind: if is_integer { ExpressionKind::Integer(0) } else { ExpressionKind::Float(0.0) },
                    shape: variable.shape.clone(),
                    element: variable.element.clone(),
                };
                let layout = self.names.layouts[to.index()].clone().unwrap_or(Layout::accumulator(8));
                (self.names.tile(&zero, &layout), ", use_acc=False")
            }
        };
        format!("{} = warpgroup_mma({}, {}, {sum}{fresh}, is_async=True)", variable.name, operand(left), operand(right))
    }
}
