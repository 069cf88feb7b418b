//! A warp group's program as a function of C++.

mod statement;

use super::expression::Expressions;
use super::names::{self, missing};
use super::one_thread::is_one_thread;
use super::operation::bare;
use super::rows::layouts_in_rows;
use super::source::PrintedGroup;
use super::{opaque, tensor_memory, tiles, trace, wave_sync};
use crate::layout::{Layout, Reach, inlined, of_other_variables};
use crate::listing::end_with_marker;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::Expression;
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{FewTrips, Node, Note, Op};
use twill_codegen::ir::{Group, VariableId, WarpProgram};

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
        let mut layouts = if tensor_memory::is_used(kernel) {
            layouts_in_rows(group)
        } else {
            of_other_variables(group, Reach::Slices, &opaque::layouts(group))
        };
        let inlined = inlined(group, &layouts);
        // What is made more than once is held, wherever it is.
        for (k, variable) in group.variables.iter().enumerate() {
            let is_held = !variable.shape.is_empty() && !inlined.contains_key(&VariableId::at(k));
            if is_held && layouts[k].is_none() {
                layouts[k] = Some(Layout::of_shape(&variable.shape, group.warps));
            }
        }
        let (before, made) = (RefCell::new(Vec::new()), Cell::new(0));
        Printer {
            kernel,
            group,
            number,
            expressions: Expressions { kernel, group, layouts, inlined, before, made, scratch: Cell::new(None) },
            out: String::new(),
        }
    }

    /// The group's function.
    pub(super) fn group(mut self) -> Result<PrintedGroup, Error> {
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
        Ok(PrintedGroup { text: self.out, scratch: self.expressions.scratch.get() })
    }

    /// Declarations of all variables: their values live from one part of the pipeline to another.
    fn variables(&mut self) -> Result<(), Error> {
        for (k, variable) in self.group.variables.iter().enumerate() {
            let id = VariableId::at(k);
            let element = names::element(&variable.element)?;
            let name = self.expressions.variable(id);
            let is_scalar = variable.shape.is_empty();
            match self.expressions.fragment_of(id) {
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
                Node::TripSwitch { index, at_least, then, fewer } => {
                    let trips = self.trips(*index);
                    let has_loop = then.iter().any(|n| matches!(n, Node::PipelinedLoop { .. }));
                    let comment = if has_loop { "prologue, steady state, epilogue" } else { "" };
                    self.line(depth, &format!("if ({trips} >= {at_least}) {{"), comment);
                    self.nodes(depth + 1, then)?;
                    let each = match fewer {
                        FewTrips::Each(each) => each.as_slice(),
                        FewTrips::Any(nodes) => {
                            self.line(depth, "} else {", "fewer trips than stages");
                            self.nodes(depth + 1, nodes)?;
                            &[]
                        }
                    };
                    for (trip, nodes) in each {
                        self.line(depth, &format!("}} else if ({trips} == {trip}) {{"), "fewer trips than stages");
                        self.nodes(depth + 1, nodes)?;
                    }
                    self.line(depth, "}", "");
                }
                Node::For { variable, lower, upper, step, body } => {
                    let name = self.expressions.variable(*variable);
                    let lower = self.number(depth, lower)?;
                    let upper = self.number(depth, upper)?;
                    let step = self.number(depth, step)?;
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
                    let condition = self.number(depth + 1, condition)?;
                    self.line(depth + 1, &format!("if (!({})) break;", bare(&condition)), "");
                    self.nodes(depth + 1, body)?;
                    self.line(depth, "}", "");
                }
                Node::If { condition, then, otherwise } => {
                    let condition = self.number(depth, condition)?;
                    self.line(depth, &format!("if ({}) {{", bare(&condition)), "");
                    self.nodes(depth + 1, then)?;
                    if !otherwise.is_empty() {
                        self.line(depth, "} else {", "");
                        self.nodes(depth + 1, otherwise)?;
                    }
                    self.line(depth, "}", "");
                }
                Node::Return if self.kernel.is_in_order() => self.line(depth, "return;", ""),
                Node::Return => return Err(missing("an early return from a loop".into())),
            }
        }
        Ok(())
    }

    /// A bound or condition, after what it is made of.
    fn number(&mut self, depth: usize, value: &Expression) -> Result<String, Error> {
        let text = self.expressions.scalar(value)?;
        let before: Vec<String> = self.expressions.before.borrow_mut().drain(..).collect();
        before.iter().for_each(|line| self.line(depth, line, ""));
        Ok(text)
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
}
