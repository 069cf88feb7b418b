//! A warp group's program as a function of C++.

use super::expression::{Expressions, operand};
use super::fragment::Fragment;
use super::names::{self, missing};
use super::one_thread::is_one_thread;
use super::operation::bare;
use super::rows::layouts_in_rows;
use super::{tensor_memory, tiles, trace, wave_sync};
use crate::layout::{Layout, Reach, inlined, of_variables};
use crate::listing::end_with_marker;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::Expression;
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{Group, Operand, Slot, VariableId, WarpProgram};
use twill_codegen::ir::{Node, Note, Op};
use twill_triton::mlir::Type;

/// Named barriers of a group's own threads come before those of ping-pong.
const FIRST_PINGPONG_BARRIER: u32 = 8;

/// The first thread of a group.
const LEADER: &str = "leader";

/// Column in which comments begin, if the code before leaves it free.
const COMMENT: usize = 92;

/// Writes one group's function.
pub(super) struct Printer<'a> {
    kernel: &'a WarpProgram,
    group: &'a Group,
    /// Its number among the groups, from 0.
    number: usize,
    expressions: Expressions<'a>,
    out: String,
}

impl<'a> Printer<'a> {
    pub(super) fn new(kernel: &'a WarpProgram, group: &'a Group, number: usize) -> Printer<'a> {
        let layouts =
            if tensor_memory::is_used(kernel) { layouts_in_rows(group) } else { of_variables(group, Reach::Slices) };
        let inlined = inlined(group, &layouts);
        let (before, made) = (RefCell::new(Vec::new()), Cell::new(0));
        Printer {
            kernel,
            group,
            number,
            expressions: Expressions { kernel, group, layouts, inlined, before, made },
            out: String::new(),
        }
    }

    /// The group's function.
    pub(super) fn group(mut self) -> Result<String, Error> {
        let Group { name, warps, registers, .. } = self.group;
        let threads = match warps {
            1 if is_one_thread(self.kernel, self.group) => "One thread".into(),
            1 => "1 warp".into(),
            _ => format!("{warps} warps"),
        };
        let _ = writeln!(self.out, "/// {threads}, {registers} registers a thread.");
        let _ = writeln!(self.out, "TWILL void {}(", names::name(name));
        let taken = super::storage::parameters(self.kernel)?;
        let _ = writeln!(
            self.out,
            "    {}) {{",
            taken.iter().map(|p| p.borrowed.as_str()).collect::<Vec<_>>().join(",\n    ")
        );
        let start_of_code = self.out.len();
        if tensor_memory::is_used(self.kernel) {
            self.line(1, &tensor_memory::begin_of_group(), "");
        }
        self.variables()?;
        for cursor in &self.group.cursors {
            let name = names::name(&cursor.name);
            if cursor.slots > 1 {
                self.line(1, &format!("u32 {name} = 0;"), "");
            }
            if cursor.phase {
                self.line(1, &format!("u32 {name}_phase = 0;"), "");
            }
        }
        self.nodes(1, &self.group.begin)?;
        let is_waiting_group = wave_sync::is_waiting_group(self.kernel, self.group);
        if is_waiting_group {
            self.line(1, wave_sync::BEGIN, "");
        }
        let start = self.out.len();
        if let Some(traced) = &self.kernel.trace {
            self.line(2, &trace::begin(traced, self.group, is_one_thread(self.kernel, self.group)), "");
        }
        let first_loop = self.group.body.iter().position(|node| !matches!(node, Node::Op(..)));
        let (ahead, loops) = self.group.body.split_at(first_loop.unwrap_or(0));
        self.nodes(2, ahead)?;
        if is_waiting_group {
            self.line(2, wave_sync::WAIT, "what all load reaches the L2 cache once");
        }
        self.nodes(2, loops)?;
        let body = self.out.split_off(start);
        for (depth, code, comment) in tiles::head(self.kernel, &body) {
            self.line(depth, &code, comment);
        }
        self.out.push_str(&body);
        self.line(1, "}", "");
        if is_waiting_group {
            self.line(1, wave_sync::END, "");
        }
        self.nodes(1, &self.group.end)?;
        if let Some(last) = tensor_memory::end_of_group(self.group) {
            self.line(1, last, "tensor memory, and the barriers, must outlive them");
        }
        self.out.push_str("}\n");
        if self.out[start_of_code..].contains(&format!("({LEADER})")) {
            let definition = format!("  const bool {LEADER} = thread_of<{}>() == 0;\n", self.group.warps);
            self.out.insert_str(start_of_code, &definition);
        }
        Ok(self.out)
    }

    /// Declarations of all variables: their values live from one part of the pipeline to another.
    fn variables(&mut self) -> Result<(), Error> {
        for (k, variable) in self.group.variables.iter().enumerate() {
            let id = VariableId::at(k);
            let element = names::element(&variable.element)?;
            let name = self.expressions.variable(id);
            let is_scalar = variable.shape.is_empty();
            match self.expressions.fragment_of(id)? {
                Some(fragment) => self.line(1, &format!("tile<{element}, {}> {name};", fragment.name()), ""),
                None if is_scalar => self.line(1, &format!("{element} {name};"), ""),
                None => {}
            }
        }
        Ok(())
    }

    fn line(&mut self, depth: usize, code: &str, comment: &str) {
        let mut line = format!("{}{code}", "  ".repeat(depth));
        if !comment.is_empty() {
            let width = line.chars().count();
            let _ = write!(line, "{}  // {comment}", " ".repeat(COMMENT.saturating_sub(width)));
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn nodes(&mut self, depth: usize, nodes: &[Node]) -> Result<(), Error> {
        for node in nodes {
            match node {
                Node::Op(op, note) => self.op(depth, op, note)?,
                Node::PipelinedLoop { index, first, body } => {
                    let trips = self.trips(*index);
                    self.line(0, "#pragma unroll 1", "");
                    self.line(depth, &format!("for (int i = {first}; i < {trips}; i++) {{"), "steady state");
                    self.nodes(depth + 1, body)?;
                    self.line(depth, "}", "");
                }
                Node::TripSwitch { index, at_least, then, exactly } => {
                    let trips = self.trips(*index);
                    let has_loop = then.iter().any(|n| matches!(n, Node::PipelinedLoop { .. }));
                    let comment = if has_loop { "prologue, steady state, epilogue" } else { "" };
                    self.line(depth, &format!("if ({trips} >= {at_least}) {{"), comment);
                    self.nodes(depth + 1, then)?;
                    for (trip, nodes) in exactly {
                        self.line(depth, &format!("}} else if ({trips} == {trip}) {{"), "fewer trips than stages");
                        self.nodes(depth + 1, nodes)?;
                    }
                    self.line(depth, "}", "");
                }
                Node::For { variable, lower, upper, step, body } => {
                    let name = self.expressions.variable(*variable);
                    let [lower, upper, step] = [lower, upper, step].map(|bound| self.expressions.scalar(bound));
                    let (lower, upper, step) = (lower?, upper?, step?);
                    self.line(0, "#pragma unroll 1", "");
                    let code =
                        format!("for ({name} = {}; {name} < {upper}; {name} += {}) {{", bare(&lower), bare(&step));
                    self.line(depth, &code, "");
                    self.nodes(depth + 1, body)?;
                    self.line(depth, "}", "");
                }
                Node::While { before, condition, body } => {
                    self.line(0, "#pragma unroll 1", "");
                    self.line(depth, "while (true) {", "");
                    self.nodes(depth + 1, before)?;
                    let condition = self.expressions.scalar(condition)?;
                    self.line(depth + 1, &format!("if (!({})) break;", bare(&condition)), "");
                    self.nodes(depth + 1, body)?;
                    self.line(depth, "}", "");
                }
                Node::If { condition, then, otherwise } => {
                    let condition = self.expressions.scalar(condition)?;
                    self.line(depth, &format!("if ({}) {{", bare(&condition)), "");
                    self.nodes(depth + 1, then)?;
                    if !otherwise.is_empty() {
                        self.line(depth, "} else {", "");
                        self.nodes(depth + 1, otherwise)?;
                    }
                    self.line(depth, "}", "");
                }
                Node::Return => return Err(missing("an early return from a loop".into())),
            }
        }
        Ok(())
    }

    fn trips(&self, index: usize) -> String {
        self.group.trips.get(index).copied().flatten().map_or("0".into(), |v| self.expressions.variable(v))
    }

    fn comment(note: &Note) -> String {
        let cycle = note.scheduled.map(|(cycle, stage)| format!("cycle {cycle}, stage {stage}"));
        let line = note.line.map(|line| format!("line {line}"));
        let text = Some(note.text.clone()).filter(|t| !t.is_empty());
        // A backslash would join the next line.
        [cycle, line, text].into_iter().flatten().collect::<Vec<_>>().join(", ").replace('\\', "/")
    }

    fn barrier(&self, id: BarrierId, at: CursorId) -> String {
        let name = self.kernel.barriers[id.index()].name.to_uppercase();
        let cursor = &self.group.cursors[at.index()];
        if cursor.slots > 1 { format!("bars({name} + {})", names::name(&cursor.name)) } else { format!("bars({name})") }
    }

    /// Something that one thread does. Of a warp it is elected, as ptxas then knows that it is one, and makes no loop over
    /// all that might be.
    fn by_one(&self, act: &str) -> String {
        match self.group.warps {
            1 if is_one_thread(self.kernel, self.group) => act.into(),
            1 => format!("if ({}) {act}", tensor_memory::ELECTED),
            _ => format!("if ({LEADER}) {act}"),
        }
    }

    fn barriers(&self, signals: &[(BarrierId, CursorId)]) -> Vec<String> {
        signals.iter().map(|(id, at)| self.barrier(*id, *at)).collect()
    }

    /// Waits and arrivals also order what happens in tensor memory.
    fn ordered(&self) -> &'static str {
        if tensor_memory::is_used(self.kernel) { "_tensor" } else { "" }
    }

    fn joined(&self, expressions: &[Expression]) -> Result<String, Error> {
        let texts: Result<Vec<String>, Error> =
            expressions.iter().map(|e| self.expressions.scalar(e).map(|t| bare(&t).to_owned())).collect();
        Ok(texts?.join(", "))
    }

    fn op(&mut self, depth: usize, op: &Op, note: &Note) -> Result<(), Error> {
        let code = self.code(op)?;
        let mut comment = Self::comment(note);
        let before: Vec<String> = self.expressions.before.borrow_mut().drain(..).collect();
        let (needs_block, inner) = if before.is_empty() { (false, depth) } else { (true, depth + 1) };
        if needs_block {
            self.line(depth, "{", "");
        }
        for line in before.iter().map(String::as_str).chain(code.lines()) {
            self.line(inner, line, &comment);
            end_with_marker(&mut self.out, note.operation);
            comment.clear();
        }
        if needs_block {
            self.line(depth, "}", "");
        }
        Ok(())
    }

    fn code(&self, op: &Op) -> Result<String, Error> {
        let print = &self.expressions;
        let threads = 32 * self.group.warps;
        Ok(match op {
            Op::Let { to, value } => {
                if print.inlined.contains_key(to) {
                    return Ok(String::new());
                }
                let text = match print.fragment_of(*to)? {
                    Some(fragment) => print.tile(value, &fragment)?,
                    None => print.scalar(value)?,
                };
                let name = print.variable(*to);
                if name == text { String::new() } else { format!("{name} = {};", bare(&text)) }
            }
            Op::Copy { to, from } => format!("{} = {};", print.variable(*to), print.variable(*from)),
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
            Op::CpAsync { pointers, mask, to, full } => self.copy(pointers, mask.as_ref(), to, *full)?,
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
            Op::Opaque { operation, .. } => return Err(missing(format!("the operation {}", operation.name))),
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

    fn descriptor(&self, id: twill_codegen::ir::DescriptorId) -> String {
        names::name(&self.kernel.descriptors[id.index()].name)
    }

    fn mma(
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

    fn copy(
        &self,
        pointers: &Expression,
        mask: Option<&Expression>,
        to: &Slot,
        full: BarrierId,
    ) -> Result<String, Error> {
        let print = &self.expressions;
        let fragment = Fragment::of(&Layout::blocked(pointers.shape.len(), self.group.warps), &pointers.shape)?;
        let axes = fragment.axes(pointers.shape.len());
        let mask = mask.map_or_else(|| Ok("true".into()), |m| print.element(m, &fragment, &axes))?;
        let from = print.element(pointers, &fragment, &axes)?;
        let element = names::element(&self.kernel.buffers[to.buffer.index()].element)?;
        let (tile, name) = (print.smem_tile(to)?, fragment.name());
        let index = if pointers.shape.len() == 1 { "0, e.row()" } else { "e.row(), e.column()" };
        let barrier = to.at.map(|at| self.barrier(full, at)).unwrap_or_default();
        Ok(format!(
            "for_each<{name}>([&](auto e) {{ cp_async_element({tile}.address({index}), {}, {}); }});\ncp_async_mbarrier_arrive<{element}>({barrier});",
            bare(&from),
            bare(&mask)
        ))
    }

    fn local_store(&self, value: &Expression, to: &Slot) -> Result<String, Error> {
        let print = &self.expressions;
        if value.shape.is_empty() {
            return Err(missing("the handoff of a number through shared memory".into()));
        }
        if self.kernel.buffers[to.buffer.index()].is_tensor() {
            let [rows, columns] = value.shape[..] else { return Err(missing("a vector in tensor memory".into())) };
            let layout = Layout::Tensor { rows, columns, warps: self.group.warps };
            let text = print.tile(value, &Fragment::of(&layout, &value.shape)?)?;
            return Ok(format!("tmem_store({}, {text});", tensor_memory::tmem_tile(print, to)?));
        }
        let tile = print.smem_tile(to)?;
        let fragment = print.fragment(value)?;
        let text = print.tile(value, &fragment)?;
        if fragment.is_in_vectors() {
            return Ok(format!("st_shared_v4({tile}, {text});"));
        }
        let is_half = matches!(&value.element, Type::Float(kind) if kind.bits() == 16);
        let by_matrices = matches!(&fragment, Fragment::Accumulator { columns, .. } if is_half && columns % 16 == 0);
        Ok(format!("{}({tile}, {text});", if by_matrices { "stmatrix" } else { "st_shared" }))
    }

    /// A store through pointers: those, the mask and the value in one layout.
    fn global_store(
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
        let fragment = Fragment::of(&layout, &pointers.shape)?;
        let axes = fragment.axes(pointers.shape.len());
        let part = |e: &Expression| print.element(e, &fragment, &axes);
        let act = store(&part(pointers)?, bare(&part(value)?), mask.map(part).transpose()?);
        Ok(format!("for_each<{}>([&](auto e) {{ {act}; }});", fragment.name()))
    }

    fn advance(&self, cursor: CursorId) -> String {
        let c = &self.group.cursors[cursor.index()];
        let name = names::name(&c.name);
        match (c.slots, c.phase) {
            (1, true) => format!("{name}_phase ^= 1;"),
            (1, false) => String::new(),
            (slots, true) => format!("advance<{slots}>({name}, {name}_phase);"),
            (slots, false) => format!("advance<{slots}>({name});"),
        }
    }

    fn copy_cursor(&self, to: CursorId, from: CursorId) -> String {
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
