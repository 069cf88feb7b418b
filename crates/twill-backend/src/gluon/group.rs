//! A warp group's program as a function of Gluon.

use super::ahead::Ahead;
use super::changing::changing;
use super::expression::Names;
use super::layout::{Layout, Reach, inlined, of_other_variables};
use super::names::dtype;
use super::names::parameter;
use super::operation::is_number;
use super::source::group_arguments;
use super::tensor_memory;
use crate::listing::end_with_marker;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Group, Operand, VariableId, WarpProgram};
use twill_codegen::ir::{Node, Note, Op};
use twill_triton::mlir::Type;

/// Gluon uses the named barriers below for its own.
const FIRST_NAMED: u32 = 8;

/// Column in which comments begin, if the code before leaves it free.
const COMMENT: usize = 92;

/// Writes one group's function.
pub(super) struct Printer<'a> {
    kernel: &'a WarpProgram,
    pub(super) group: &'a Group,
    pub(super) names: Names<'a>,
    out: String,
    /// What reductions and scans of the group do to two elements.
    functions: Vec<String>,
    /// Places of operands are found anew in every iteration.
    is_short_of_registers: bool,
    /// Names that mean something.
    pub(super) taken: HashSet<String>,
    /// Results of MMAs that were started beside a pipeline, and names of their operands.
    pub(super) started: Vec<(VariableId, Vec<String>)>,
    /// How often each variable is read.
    pub(super) reads: Vec<usize>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(kernel: &'a WarpProgram, group: &'a Group) -> Printer<'a> {
        let in_order = kernel.is_in_order();
        let layouts = match in_order {
            true => super::in_order::layouts(group),
            false => of_other_variables(group, Reach::Tiles, &super::dot::results(group)),
        };
        let inlined = if in_order { HashMap::new() } else { inlined(group, &layouts) };
        let names = Names {
            kernel,
            group,
            layouts,
            inlined,
            recomputed: if in_order { super::in_order::recomputed(group) } else { HashMap::new() },
            in_order,
            used: RefCell::new(BTreeSet::new()),
            held: RefCell::new(HashMap::new()),
            changing: RefCell::new(None),
            ahead: RefCell::new(None),
        };
        let parameters = kernel.parameters.iter().map(|one| one.name.clone());
        let taken = group.variables.iter().map(|one| one.name.clone()).chain(parameters).collect();
        Printer {
            kernel,
            group,
            names,
            out: String::new(),
            functions: Vec::new(),
            is_short_of_registers: false,
            taken,
            started: Vec::new(),
            reads: if in_order { super::started_mmas::reads(group) } else { Vec::new() },
        }
    }

    /// The group's function.
    pub(super) fn group(mut self, used: &mut BTreeSet<Layout>) -> String {
        let _ = writeln!(self.out, "@gluon.jit\ndef {}(", self.group.name);
        let given = |name: &String| self.kernel.parameters.iter().any(|p| p.name == *name);
        for name in group_arguments(self.kernel) {
            let name = if given(&name) { parameter(self.kernel, &name) } else { name };
            let _ = writeln!(self.out, "    {name},");
        }
        self.out.push_str("    BARRIERS_AT: gl.constexpr,\n):\n");
        let _ = writeln!(
            self.out,
            "    \"\"\"{} warp{}, {} registers a thread.\"\"\"",
            self.group.warps,
            if self.group.warps == 1 { "" } else { "s" },
            self.group.registers
        );
        let after_head = self.out.len();
        if !self.names.in_order {
            self.line(1, "base = barrier_base(BARRIERS_AT)", "");
        }
        for cursor in crate::cursors::defined_first(self.group) {
            let c = &self.group.cursors[cursor.index()];
            let (name, phase) = (c.name.clone(), c.phase);
            if c.slots > 1 {
                self.line(1, &format!("{name} = gl.to_tensor(0)"), "");
            }
            if phase {
                self.line(1, &format!("{name}_phase = gl.to_tensor(0)"), "");
            }
        }
        let begin = &self.group.begin;
        self.nodes(1, begin);
        let depth = if self.kernel.tile_scheduler.persistent {
            let tiles = "tile_count(programs_x, programs_y, programs_z)";
            if self.kernel.tile_scheduler.serpentine().is_some() {
                self.line(1, &format!("for wave in range(waves_of({tiles})):"), "serpentine order");
                self.line(2, "tile = tile_of(wave)", "");
            } else {
                self.line(1, &format!("for tile in range(gl.program_id(0), {tiles}, gl.num_programs(0)):"), "");
            }
            2
        } else {
            self.line(1, "tile = gl.program_id(0)", "");
            1
        };
        self.programs(depth);
        let (body, end) = (&self.group.body, &self.group.end);
        self.nodes(depth, body);
        self.nodes(1, end);
        let own = self.names.used.into_inner();
        self.out.insert_str(after_head, &super::layout::views(&own));
        used.extend(own);
        self.functions.push(self.out);
        self.functions.join("\n\n")
    }

    /// Which program of the grid this is.
    fn programs(&mut self, depth: usize) {
        self.line(depth, "program_x, program_y, program_z = program_of(tile, programs_x, programs_y, programs_z)", "");
        for (axis, name) in ["x", "y", "z"].iter().enumerate() {
            let count = self.kernel.tile_scheduler.cta_coarsening[axis];
            if count > 1 {
                for k in 0..count {
                    let program = format!("gl.minimum(program_{name} * {count} + {k}, programs_{name} - 1)");
                    let note = if k == 0 { "a program beyond the grid repeats its last one" } else { "" };
                    self.line(depth, &format!("program_{name}_{k} = {program}"), note);
                }
            }
        }
    }

    pub(super) fn line(&mut self, depth: usize, code: &str, comment: &str) {
        let mut line = format!("{}{code}", "    ".repeat(depth));
        if !comment.is_empty() {
            let width = line.chars().count();
            let _ = write!(line, "{}  # {comment}", " ".repeat(COMMENT.saturating_sub(width)));
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn nodes(&mut self, depth: usize, nodes: &[Node]) {
        for node in nodes {
            if !matches!(node, Node::Op(op, _) if self.may_run_under_mmas(op)) {
                self.wait_for_mmas(depth);
            }
            match node {
                Node::Op(op, note) => self.op(depth, op, note),
                Node::PipelinedLoop { index, first, body } => {
                    let trips = self.trips(*index);
                    let number = super::names::induction(*index);
                    let start = self.out.len();
                    *self.names.ahead.borrow_mut() = Ahead::of(self.group, *index, body, &self.taken);
                    self.line(depth, &format!("for {number} in range({first}, {trips}):"), "steady state");
                    self.is_short_of_registers = tensor_memory::is_short_of_registers(self.kernel, self.group, body);
                    if self.is_short_of_registers {
                        self.line(depth + 1, tensor_memory::NO_SLOT, "");
                    }
                    self.block(depth + 1, body);
                    self.is_short_of_registers = false;
                    self.put_ahead(depth, start);
                }
                Node::TripSwitch { index, at_least, then, exactly, fewer } => {
                    let trips = self.trips(*index);
                    if let Some((code, note)) = tensor_memory::choice(&self.names, &trips, node) {
                        self.line(depth, &code, &Self::comment(note));
                        continue;
                    }
                    let has_loop = then.iter().any(|n| matches!(n, Node::PipelinedLoop { .. }));
                    let comment = if has_loop { "prologue, steady state, epilogue" } else { "" };
                    self.line(depth, &format!("if {trips} >= {at_least}:"), comment);
                    self.block(depth + 1, then);
                    for (trip, nodes) in exactly {
                        self.line(depth, &format!("if {trips} == {trip}:"), "fewer trips than stages");
                        self.block(depth + 1, nodes);
                    }
                    if !fewer.is_empty() {
                        self.line(depth, &format!("if {trips} < {at_least}:"), "fewer trips than stages");
                        self.block(depth + 1, fewer);
                    }
                }
                Node::For { variable, lower, upper, step, body } => {
                    let [lower, upper, step] = [lower, upper, step].map(|bound| self.names.scalar(bound));
                    let name = self.names.variable(*variable).to_owned();
                    let held = self.hold_operands(depth, body);
                    self.line(depth, &format!("for {name} in range({lower}, {upper}, {step}):"), "");
                    let around = self.names.changing.replace(Some(changing(body, Some(*variable))));
                    self.block(depth + 1, body);
                    self.names.changing.replace(around);
                    held.iter().for_each(|operand| {
                        self.names.held.borrow_mut().remove(operand);
                    });
                }
                // The condition is computed ahead of the loop, and again at the end of its body.
                Node::While { before, condition, body } => {
                    self.nodes(depth, before);
                    let condition = self.names.scalar(condition);
                    self.line(depth, &format!("while {condition}:"), "");
                    let around = self.names.changing.replace(Some(changing(body, None)));
                    self.nodes(depth + 1, body);
                    self.block(depth + 1, before);
                    self.names.changing.replace(around);
                }
                Node::If { condition, then, otherwise } => {
                    let condition = self.names.scalar(condition);
                    self.line(depth, &format!("if {condition}:"), "");
                    self.block(depth + 1, then);
                    if !otherwise.is_empty() {
                        self.line(depth, "else:", "");
                        self.block(depth + 1, otherwise);
                    }
                }
                // `check` refuses it.
                Node::Return => self.line(depth, "return", ""),
            }
        }
        self.wait_for_mmas(depth);
    }

    /// Writes what the loop that begins here needs of what is the same in every iteration.
    fn put_ahead(&mut self, depth: usize, start: usize) {
        let Some(ahead) = self.names.ahead.take() else { return };
        let after = self.out.split_off(start);
        for (name, text) in ahead.into_lines() {
            self.taken.insert(name.clone());
            self.line(depth, &format!("{name} = {text}"), "");
        }
        self.out.push_str(&after);
    }

    fn block(&mut self, depth: usize, nodes: &[Node]) {
        let before = self.out.len();
        self.nodes(depth, nodes);
        if self.out.len() == before {
            self.line(depth, "pass", "");
        }
    }

    fn trips(&self, index: usize) -> String {
        self.group.trips.get(index).copied().flatten().map_or("0".into(), |v| self.names.variable(v).to_owned())
    }

    fn comment(note: &Note) -> String {
        let mut parts = Vec::new();
        if let Some((cycle, stage)) = note.scheduled {
            parts.push(format!("cycle {cycle}, stage {stage}"));
        }
        if let Some(line) = note.line {
            parts.push(format!("line {line}"));
        }
        if !note.text.is_empty() {
            parts.push(note.text.clone());
        }
        parts.join(", ")
    }

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

    fn op(&mut self, depth: usize, op: &Op, note: &Note) {
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
            Op::Copy { to, from } => format!("{} = {}", self.names.variable(*to), self.names.variable(*from)),
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
                let names: Vec<&str> = completed.iter().chain(in_flight).map(|v| self.names.variable(*v)).collect();
                let deps =
                    if names.len() == 1 { format!("({},)", names[0]) } else { format!("({})", names.join(", ")) };
                let mut code =
                    format!("{} = warpgroup_mma_wait(num_outstanding={pending}, deps={deps})", names.join(", "));
                for variable in in_flight {
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
                let arrival = format!("async_copy.mbarrier_arrive(bars.index({barrier}), increment_count=False)");
                match whole {
                    None if full.is_none() => copied,
                    None => format!("{copied}\n{arrival}"),
                    Some(whole) => {
                        let buffer = &self.kernel.buffers[to.buffer.index()];
                        let bytes = buffer.bytes() / u64::from(buffer.slots.max(1)) / u64::from(self.group.warps);
                        let descriptor = &self.kernel.descriptors[whole.descriptor.index()].name;
                        // Only where it is known where barriers are can bytes be expected without an arrival.
                        format!(
                            "if ({}) & (BARRIERS_AT >= 0):\n    mbarrier_expect_from_warps(base, {barrier}, {bytes})\n    async_load({descriptor}, [{}], bars.index({barrier}), {slot})\nelse:\n    {copied}\n{arrival}",
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
