//! A kernel's warp programs as a file of Gluon.

use super::Header;
use super::expression::{Names, dtype};
use super::layout::{Layout, of_variables, visit};
use super::tensor_memory;
use crate::kernel::expression::{Expression, ExpressionKind};
use crate::kernel::program::{Action, Arrival, Group, KernelProgram, Node, Note, Operand, TileOrder, VariableId};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use twill_check::protocol::{BarrierId, CursorId};

/// Gluon uses the named barriers below for its own.
const FIRST_NAMED: u32 = 8;

const PRELUDE: &str = include_str!("prelude.py");

/// Column in which comments begin, if the code before leaves it free.
const COMMENT: usize = 92;

/// The source.
pub(super) fn print(kernel: &KernelProgram, header: &Header) -> String {
    let mut used = BTreeSet::new();
    let groups: Vec<String> = kernel.groups.iter().map(|g| Printer::new(kernel, g).group(&mut used)).collect();
    let mut out = String::new();
    let _ = writeln!(out, "\"\"\"{}\"\"\"\n", header.text(kernel));
    out.push_str(if tensor_memory::is_used(kernel) { tensor_memory::IMPORTS } else { IMPORTS });
    if groups.iter().any(|g| g.contains("async_copy.")) {
        out.push_str("from triton.experimental.gluon.language.nvidia.hopper import async_copy\n");
    }
    if has_reduce(kernel) {
        out.push_str(
            "from triton._C.libtriton import ir\nfrom triton.experimental.gluon.language._core import builtin\n",
        );
    }
    if groups.iter().any(|g| g.contains("PROPAGATE_NAN")) {
        out.push_str("from triton.language import PropagateNan\n");
        out.push_str("\nPROPAGATE_NAN = gl.constexpr(PropagateNan.ALL)\n");
    }
    out.push_str("\n# How the threads of a warp group hold tiles.\n");
    for layout in &used {
        let _ = writeln!(out, "{} = gl.constexpr({})", layout.name(), layout.definition());
    }
    let has_tensor_memory = tensor_memory::is_used(kernel);
    out.push_str(if has_tensor_memory {
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
    out.push_str("\n# Where the barriers of each kind begin in `bars`.\n");
    for (k, barriers) in kernel.barriers.iter().enumerate() {
        let _ = writeln!(out, "{} = gl.constexpr({})", barriers.name.to_uppercase(), first_barrier(kernel, k));
    }
    let prelude = if has_tensor_memory { tensor_memory::ordered(PRELUDE) } else { PRELUDE.to_owned() };
    let _ = write!(out, "\n\n{prelude}\n\n{}", tile_order(kernel));
    if !kernel.named_barriers.is_empty() {
        out.push_str(NAMED);
    }
    if has_reduce(kernel) {
        out.push_str(REDUCE);
    }
    if groups.iter().any(|g| g.contains(tensor_memory::NO_SLOT)) {
        out.push_str(tensor_memory::NO_SLOT_FUNCTION);
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

/// TMA reductions, which Gluon 3.6 has no name for.
const REDUCE: &str = "

@builtin
def tma_add(tensor_desc, coord, src, _semantic=None):
    \"\"\"Start adding a tile in shared memory to global memory, which Gluon 3.6 has no function for.\"\"\"
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle)
";

/// Turns on the tensor core.
const NAMED: &str = "

@gluon.constexpr_function
def _bar_ptx(operation, barrier, threads):
    return f\"{operation} {barrier}, {threads}; mov.u32 $0, 0;\"


@gluon.jit
def named_sync(BARRIER: gl.constexpr, THREADS: gl.constexpr):
    \"\"\"Wait for the turn on the tensor core.\"\"\"
    gl.inline_asm_elementwise(
        _bar_ptx(\"bar.sync\", BARRIER, THREADS), \"=r\", [], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def named_arrive(BARRIER: gl.constexpr, THREADS: gl.constexpr):
    \"\"\"Pass the turn on.\"\"\"
    gl.inline_asm_elementwise(
        _bar_ptx(\"bar.arrive\", BARRIER, THREADS), \"=r\", [], dtype=gl.int32, is_pure=False, pack=1
    )
";

fn has_reduce(kernel: &KernelProgram) -> bool {
    let mut found = false;
    for group in &kernel.groups {
        visit(&group.body, &mut |a| found |= matches!(a, Action::Store { reduce: Some(_), .. }));
    }
    found
}

fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    format!("[{}]", values.join(", "))
}

fn first_barrier(kernel: &KernelProgram, index: usize) -> u32 {
    kernel.barriers[..index].iter().map(|b| b.slots).sum()
}

/// From a tile's number to the program that it is.
fn tile_order(kernel: &KernelProgram) -> String {
    let [px, _, _] = kernel.tiling.programs_per_cta;
    let columns = if px > 1 { format!("(programs_x + {}) // {px}", px - 1) } else { "programs_x".into() };
    let mut text = format!(
        "@gluon.jit
def tile_count(programs_x, programs_y, programs_z):
    \"\"\"Tiles of the grid: each is the work of one CTA.\"\"\"
    return ({columns}) * programs_y * programs_z


@gluon.jit
def program_of(tile, programs_x, programs_y, programs_z):
"
    );
    let body = match kernel.tiling.order {
        TileOrder::Linear => format!(
            "    \"\"\"The program that a tile is: the first axis fastest.\"\"\"
    columns = {columns}
    return tile % columns, tile // columns % programs_y, tile // columns // programs_y
"
        ),
        TileOrder::LongestFirst { heads } => format!(
            "    \"\"\"The program that a tile is: long loops first, {heads} of the second axis together, which share the L2 cache.\"\"\"
    columns = {columns}
    rest = tile % (columns * programs_y)
    first = rest // (columns * {heads}) * {heads}
    heads = gl.minimum(programs_y - first, {heads})
    within = rest - first * columns
    return columns - 1 - within // heads, first + within % heads, tile // (columns * programs_y)
"
        ),
        TileOrder::Grouped(rows) => format!(
            "    \"\"\"The program that a tile is: bands of {rows} along the first axis, which is fastest within a band.\"\"\"
    columns = {columns}
    rest = tile % (columns * programs_y)
    first = rest // ({rows} * programs_y) * {rows}
    rows = gl.minimum(columns - first, {rows})
    within = rest - first * programs_y
    return first + within % rows, within // rows, tile // (columns * programs_y)
"
        ),
    };
    text.push_str(&body);
    text
}

/// The kernel's entry: storage, barriers, groups.
fn entry(kernel: &KernelProgram) -> String {
    let mut out = String::from("@gluon.jit\n");
    let _ = writeln!(out, "def {}(", kernel.name);
    for name in arguments(kernel) {
        let _ = writeln!(out, "    {name},");
    }
    out.push_str("    BARRIERS_AT: gl.constexpr,\n):\n");
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
    let total = first_barrier(kernel, kernel.barriers.len());
    let _ = writeln!(out, "    bars = gl.allocate_shared_memory(gl.int64, [{total}, 1], mbarrier.MBarrierLayout())");
    for barriers in &kernel.barriers {
        let by_unit: u32 = barriers
            .arrivals
            .iter()
            .map(|a| match a {
                Arrival::Unit => 1,
                Arrival::EachThread { warps } => 32 * warps,
                Arrival::Threads { .. } => 0,
            })
            .sum();
        let groups = barriers.arrivals.iter().filter(|a| matches!(a, Arrival::Threads { .. })).count();
        let warps: u32 =
            barriers.arrivals.iter().map(|a| if let Arrival::Threads { warps } = a { *warps } else { 0 }).sum();
        let (whole, inline) = (by_unit as usize + groups, by_unit + warps);
        let count = if whole == inline as usize {
            whole.max(1).to_string()
        } else {
            format!("{whole} if BARRIERS_AT < 0 else {inline}")
        };
        let _ = writeln!(
            out,
            "    for k in gl.static_range({}):\n        mbarrier.init(bars.index({} + k), count={count})",
            barriers.slots,
            barriers.name.to_uppercase()
        );
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
    out
}

/// Run-time arguments of the kernel, in order.
pub(super) fn arguments(kernel: &KernelProgram) -> Vec<String> {
    let mut names: Vec<String> = kernel.descriptors.iter().map(|d| d.name.clone()).collect();
    let plain =
        |p: &&crate::kernel::program::Parameter| !matches!(p.kind, twill_triton::mlir::Type::TensorDescriptor(_));
    names.extend(kernel.parameters.iter().filter(plain).map(|p| p.name.clone()));
    names.extend(["programs_x", "programs_y", "programs_z"].map(str::to_owned));
    names
}

fn group_arguments(kernel: &KernelProgram) -> Vec<String> {
    let mut names = arguments(kernel);
    names.extend(kernel.buffers.iter().filter(|b| !b.shape.is_empty()).map(|b| b.name.clone()));
    names.push("bars".into());
    names
}

struct Printer<'a> {
    kernel: &'a KernelProgram,
    group: &'a Group,
    names: Names<'a>,
    out: String,
    /// Places of operands are found anew in every iteration.
    is_short_of_registers: bool,
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a KernelProgram, group: &'a Group) -> Printer<'a> {
        let layouts = of_variables(group);
        let mut inlined = HashMap::new();
        let mut made: HashMap<VariableId, usize> = HashMap::new();
        visit(&group.body, &mut |action| {
            if let Action::Let { to, value } = action {
                *made.entry(*to).or_default() += 1;
                if layouts[to.index()].is_none() && !value.shape.is_empty() {
                    inlined.insert(*to, value.clone());
                }
            }
        });
        inlined.retain(|v, _| made.get(v) == Some(&1));
        let names = Names { kernel, group, layouts, inlined, used: RefCell::new(BTreeSet::new()) };
        Printer { kernel, group, names, out: String::new(), is_short_of_registers: false }
    }

    /// The group's function.
    fn group(mut self, used: &mut BTreeSet<Layout>) -> String {
        let _ = writeln!(self.out, "@gluon.jit\ndef {}(", self.group.name);
        for name in group_arguments(self.kernel) {
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
        self.line(1, "base = barrier_base(BARRIERS_AT)", "");
        for cursor in super::cursors::defined_first(self.group) {
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
        let depth = if self.kernel.tiling.persistent {
            self.line(
                1,
                "for tile in range(gl.program_id(0), tile_count(programs_x, programs_y, programs_z), gl.num_programs(0)):",
                "",
            );
            2
        } else {
            self.line(1, "tile = gl.program_id(0)", "");
            1
        };
        self.programs(depth);
        let (body, end) = (&self.group.body, &self.group.end);
        self.nodes(depth, body);
        self.nodes(1, end);
        used.extend(self.names.used.into_inner());
        self.out
    }

    /// Which program of the grid this is.
    fn programs(&mut self, depth: usize) {
        self.line(depth, "program_x, program_y, program_z = program_of(tile, programs_x, programs_y, programs_z)", "");
        for (axis, name) in ["x", "y", "z"].iter().enumerate() {
            let count = self.kernel.tiling.programs_per_cta[axis];
            if count > 1 {
                for k in 0..count {
                    let program = format!("gl.minimum(program_{name} * {count} + {k}, programs_{name} - 1)");
                    let note = if k == 0 { "a program beyond the grid repeats its last one" } else { "" };
                    self.line(depth, &format!("program_{name}_{k} = {program}"), note);
                }
            }
        }
    }

    fn line(&mut self, depth: usize, code: &str, comment: &str) {
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
            match node {
                Node::Do(action, note) => self.action(depth, action, note),
                Node::Loop { index, first, body } => {
                    let trips = self.trips(*index);
                    self.line(depth, &format!("for i in range({first}, {trips}):"), "steady state");
                    self.is_short_of_registers = tensor_memory::is_short_of_registers(self.kernel, self.group, body);
                    if self.is_short_of_registers {
                        self.line(depth + 1, tensor_memory::NO_SLOT, "");
                    }
                    self.block(depth + 1, body);
                    self.is_short_of_registers = false;
                }
                Node::When { index, at_least, then, exactly } => {
                    let trips = self.trips(*index);
                    if let Some((code, note)) = tensor_memory::choice(&self.names, &trips, *at_least, then, exactly) {
                        self.line(depth, &code, &Self::comment(note));
                        continue;
                    }
                    let has_loop = then.iter().any(|n| matches!(n, Node::Loop { .. }));
                    let comment = if has_loop { "prologue, steady state, epilogue" } else { "" };
                    self.line(depth, &format!("if {trips} >= {at_least}:"), comment);
                    self.block(depth + 1, then);
                    for (k, (trip, nodes)) in exactly.iter().enumerate() {
                        let _ = k;
                        self.line(depth, &format!("if {trips} == {trip}:"), "fewer trips than stages");
                        self.block(depth + 1, nodes);
                    }
                }
            }
        }
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

    fn spread(&self, value: &Expression) -> String {
        if value.shape.is_empty() {
            return self.names.scalar(value);
        }
        let layout = super::layout::infer(value, &self.names.layouts)
            .unwrap_or_else(|| Layout::spread(value.shape.len(), self.group.warps));
        self.names.tile(value, &layout)
    }

    /// Pointers, a mask and a value in one layout: that of the value.
    fn put(&self, pointers: &Expression, value: &Expression, mask: Option<&Expression>) -> String {
        let layout = super::layout::infer(value, &self.names.layouts)
            .or_else(|| super::layout::infer(pointers, &self.names.layouts))
            .unwrap_or_else(|| Layout::spread(value.shape.len(), self.group.warps));
        let part = |e: &Expression| {
            if e.shape.is_empty() { self.names.scalar(e) } else { self.names.tile(e, &layout) }
        };
        let mask = mask.map_or(String::new(), |m| format!(", mask={}", part(m)));
        format!("{}, {}{mask}", part(pointers), part(value))
    }

    fn action(&mut self, depth: usize, action: &Action, note: &Note) {
        let comment = Self::comment(note);
        let code = match action {
            Action::Let { to, value } => {
                if self.names.inlined.contains_key(to) {
                    return;
                }
                let text = match &self.names.layouts[to.index()] {
                    // The layout is the variable's own from here on.
                    _ if matches!(value.kind, ExpressionKind::Shares(_)) => self.names.shares(value),
                    Some(layout) if !value.shape.is_empty() => self.names.tile(value, layout),
                    _ => self.spread(value),
                };
                let name = self.names.variable(*to);
                if name == text {
                    return;
                }
                format!("{name} = {text}")
            }
            Action::Rename { to, from } => format!("{} = {}", self.names.variable(*to), self.names.variable(*from)),
            Action::Multiply { to, left, right, accumulator } => self.multiply(*to, left, right, *accumulator),
            Action::MultiplyInTensor(multiply) => {
                let barriers = self.barriers(&multiply.signals);
                tensor_memory::multiply(&self.names, multiply, &barriers, self.is_short_of_registers)
            }
            Action::Commit(signals) => tensor_memory::commit(&self.barriers(signals)),
            Action::Fly(variable) => {
                let name = self.names.variable(*variable);
                format!("{name} = warpgroup_mma_init({name})")
            }
            Action::WaitMultiplies { outstanding, landed, flying } => {
                let names: Vec<&str> = landed.iter().chain(flying).map(|v| self.names.variable(*v)).collect();
                let deps =
                    if names.len() == 1 { format!("({},)", names[0]) } else { format!("({})", names.join(", ")) };
                let mut code =
                    format!("{} = warpgroup_mma_wait(num_outstanding={outstanding}, deps={deps})", names.join(", "));
                for variable in flying {
                    let name = self.names.variable(*variable);
                    code.push_str(&format!("\n{name} = warpgroup_mma_init({name})"));
                }
                code
            }
            Action::Load { descriptor, coordinates, to, full } => {
                let buffer = &self.kernel.buffers[to.buffer.index()];
                let bytes = buffer.bytes() / u64::from(buffer.slots.max(1));
                let barrier = to.at.map(|at| self.barrier(*full, at)).unwrap_or_default();
                let descriptor = &self.kernel.descriptors[descriptor.index()].name;
                format!(
                    "mbarrier.expect(bars.index({barrier}), {bytes})\ntma.async_copy_global_to_shared({descriptor}, [{}], bars.index({barrier}), {})",
                    self.joined(coordinates),
                    self.names.slot(to)
                )
            }
            Action::Copy { pointers, mask, to, full } => {
                let barrier = to.at.map(|at| self.barrier(*full, at)).unwrap_or_default();
                let layout = Layout::spread(pointers.shape.len(), self.group.warps);
                let mask = mask.as_ref().map_or(String::new(), |m| format!(", mask={}", self.names.tile(m, &layout)));
                format!(
                    "async_copy.async_copy_global_to_shared({}, {}{mask})\nasync_copy.mbarrier_arrive(bars.index({barrier}), increment_count=False)",
                    self.names.slot(to),
                    self.names.tile(pointers, &layout)
                )
            }
            Action::Write { value, to } if self.kernel.buffers[to.buffer.index()].is_tensor() => {
                tensor_memory::store(&self.names, value, to)
            }
            Action::Write { value, to } => {
                let have = &self.kernel.buffers[to.buffer.index()].element;
                let is_bit = value.element == twill_triton::mlir::Type::Integer(1);
                let converted = if is_bit { format!(".to({})", dtype(have)) } else { String::new() };
                let text = self.spread(value);
                let text = if is_bit { format!("({text}){converted}") } else { text };
                format!("{}.store({text})", self.names.slot(to))
            }
            Action::Fence => "fence_async_shared()".into(),
            Action::Meet => "gl.thread_barrier()".into(),
            Action::Store { descriptor, coordinates, from, reduce } => {
                let call = if reduce.is_some() { "tma_add" } else { "tma.async_copy_shared_to_global" };
                let descriptor = &self.kernel.descriptors[descriptor.index()].name;
                format!("{call}({descriptor}, [{}], {})", self.joined(coordinates), self.names.slot(from))
            }
            Action::WaitStores(left) => format!("tma.store_wait(pendings={left})"),
            Action::Put { pointers, value, mask } => format!("gl.store({})", self.put(pointers, value, mask.as_ref())),
            Action::PutAdd { pointers, value, mask } => {
                format!("gl.atomic_add({})", self.put(pointers, value, mask.as_ref()))
            }
            Action::Wait { barrier, at, previous } => {
                let phase = &self.group.cursors[at.index()].name;
                let phase = if *previous { format!("{phase}_phase ^ 1") } else { format!("{phase}_phase") };
                format!("acquire(bars, base, {}, {phase}, BARRIERS_AT)", self.barrier(*barrier, *at))
            }
            Action::Arrive { barrier, at } => {
                format!("release(bars, base, {}, BARRIERS_AT)", self.barrier(*barrier, *at))
            }
            Action::Advance(cursor) => self.advance(*cursor),
            Action::Keep { to, from } => self.keep(*to, *from),
            Action::Sync(id) => format!("named_sync({}, {})", FIRST_NAMED + id, self.threads()),
            Action::Signal(id) => format!("named_arrive({}, {})", FIRST_NAMED + id, self.threads()),
        };
        let mut comment = comment;
        for line in code.lines() {
            self.line(depth, line, &comment);
            comment.clear();
        }
    }

    /// Threads that meet at a turn's barrier: those of two groups.
    fn threads(&self) -> u32 {
        2 * 32 * self.group.warps
    }

    fn multiply(&self, to: VariableId, left: &Operand, right: &Operand, accumulator: Option<VariableId>) -> String {
        let operand = |o: &Operand| match o {
            Operand::Shared(slot) => self.names.slot(slot),
            Operand::Registers(v) => self.names.variable(*v).to_owned(),
        };
        let variable = &self.group.variables[to.index()];
        let (sum, fresh) = match accumulator {
            Some(v) => (self.names.variable(v).to_owned(), ""),
            None => {
                let zero = Expression {
                    kind: ExpressionKind::Float(0.0),
                    shape: variable.shape.clone(),
                    element: variable.element.clone(),
                };
                let layout = self.names.layouts[to.index()].clone().unwrap_or(Layout::Accumulator(8));
                (self.names.tile(&zero, &layout), ", use_acc=False")
            }
        };
        format!("{} = warpgroup_mma({}, {}, {sum}{fresh}, is_async=True)", variable.name, operand(left), operand(right))
    }

    fn advance(&self, cursor: CursorId) -> String {
        let c = &self.group.cursors[cursor.index()];
        let name = &c.name;
        match (c.slots, c.phase) {
            (1, true) => format!("{name}_phase = {name}_phase ^ 1"),
            (1, false) => String::new(),
            (slots, true) => format!("{name}, {name}_phase = advance({name}, {name}_phase, {slots})"),
            (slots, false) => format!("{name} = following({name}, {slots})"),
        }
    }

    fn keep(&self, to: CursorId, from: CursorId) -> String {
        let (to, from) = (&self.group.cursors[to.index()], &self.group.cursors[from.index()]);
        let mut lines = Vec::new();
        if to.slots > 1 {
            lines.push(format!("{} = {}", to.name, from.name));
        }
        if to.phase {
            lines.push(format!("{}_phase = {}_phase", to.name, from.name));
        }
        lines.join("\n")
    }
}
