//! A warp group's program as a function of Gluon.

use super::ahead::Ahead;
use super::changing::changing;
use super::expression::Names;
use super::layout::{Layout, Reach, inlined, of_other_variables};
use super::names::parameter;
use super::source::group_arguments;
use super::tensor_memory;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use twill_codegen::ir::{FewTrips, Node, Note};
use twill_codegen::ir::{Group, VariableId, WarpProgram};

/// Column in which comments begin, if the code before leaves it free.
const COMMENT: usize = 92;

/// Writes one group's function.
pub(super) struct Printer<'a> {
    pub(super) kernel: &'a WarpProgram,
    pub(super) group: &'a Group,
    pub(super) names: Names<'a>,
    pub(super) out: String,
    /// What reductions and scans of the group do to two elements.
    pub(super) functions: Vec<String>,
    /// Places of operands are found anew in every iteration.
    pub(super) is_short_of_registers: bool,
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
                Node::TripSwitch { index, at_least, then, fewer } => {
                    let trips = self.trips(*index);
                    if let Some((code, note)) = tensor_memory::choice(&self.names, &trips, node) {
                        self.line(depth, &code, &Self::comment(note));
                        continue;
                    }
                    let has_loop = then.iter().any(|n| matches!(n, Node::PipelinedLoop { .. }));
                    let comment = if has_loop { "prologue, steady state, epilogue" } else { "" };
                    self.line(depth, &format!("if {trips} >= {at_least}:"), comment);
                    self.block(depth + 1, then);
                    let few = match fewer {
                        FewTrips::Each(each) => each.iter().map(|(n, nodes)| (format!("== {n}"), nodes)).collect(),
                        FewTrips::Any(nodes) => vec![(format!("< {at_least}"), nodes)],
                    };
                    for (is, nodes) in few {
                        self.line(depth, &format!("if {trips} {is}:"), "fewer trips than stages");
                        self.block(depth + 1, nodes);
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

    pub(super) fn trips(&self, index: usize) -> String {
        self.group.trips.get(index).copied().flatten().map_or("0".into(), |v| self.names.variable(v).to_owned())
    }

    pub(super) fn comment(note: &Note) -> String {
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
}
