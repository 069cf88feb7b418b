//! A warp program as text, which [`parse`](super::parse) reads back.
//!
//! Things are called by their names, `name#k` where several have one. An expression has its shape and type after it, unless it
//! is a variable, whose declaration has them.

mod expression;
mod op;

use super::*;
use std::fmt::{self, Display, Formatter, Write};

impl Display for WarpProgram {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = Text { program: self, names: Names::of(self), group: None };
        text.program(f)
    }
}

/// The names of all things of a program, each once.
pub(super) struct Names {
    buffers: Vec<String>,
    barriers: Vec<String>,
    descriptors: Vec<String>,
    named: Vec<String>,
}

impl Names {
    fn of(program: &WarpProgram) -> Names {
        Names {
            buffers: unique(program.buffers.iter().map(|b| b.name.as_str())),
            barriers: unique(program.barriers.iter().map(|b| b.name.as_str())),
            descriptors: unique(program.descriptors.iter().map(|d| d.name.as_str())),
            named: unique(program.named_barriers.iter().map(|(name, _)| name.as_str())),
        }
    }
}

fn unique<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let known = all.iter().filter(|known| known.split('#').next() == Some(name)).count();
        all.push(if known == 0 { name.to_owned() } else { format!("{name}#{known}") });
    }
    all
}

struct Text<'p> {
    program: &'p WarpProgram,
    names: Names,
    /// The group that is being printed, with the names of its variables and cursors.
    group: Option<(&'p Group, Vec<String>, Vec<String>)>,
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// Attributes in braces; nothing where there are none.
fn attributes(all: Vec<String>) -> String {
    if all.is_empty() { String::new() } else { format!(" {{{}}}", all.join(", ")) }
}

fn amount(amount: &Amount) -> String {
    match amount {
        Amount::Parameter(name) => name.clone(),
        Amount::Constant(number) => number.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

impl Text<'_> {
    fn program(mut self, f: &mut Formatter<'_>) -> fmt::Result {
        let program = self.program;
        writeln!(f, "warp_program {} {{", program.name)?;
        for p in &program.parameters {
            let divisible = p.divisible_by_16.then(|| "divisible_by_16".to_owned());
            let at_least = p.at_least.map(|n| format!("at_least = {n}"));
            let not_zero = p.not_zero.then(|| "not_zero".to_owned());
            let positive = p.positive.then(|| "positive".to_owned());
            let read_only = p.read_only.then(|| "read_only".to_owned());
            let all = divisible.into_iter().chain(at_least).chain(not_zero).chain(positive).chain(read_only);
            let more = attributes(all.collect());
            writeln!(f, "  parameter {} : {}{more}", p.name, p.kind)?;
        }
        if program.dependent_launch {
            writeln!(f, "  dependent_launch")?;
        }
        for (index, l) in program.loops.iter().enumerate() {
            let mut all = vec![format!("interval = {}", l.interval), format!("stages = {}", l.stages)];
            all.extend(l.dot.map(|dot| format!("dot = {}", list(dot))));
            all.extend(l.trip_count.map(|trips| format!("trips = {trips}")));
            all.extend(l.source_step.map(|step| format!("source_step = {step}")));
            writeln!(f, "  loop {index} {}{}", quoted(&l.name), attributes(all))?;
        }
        for (d, name) in program.descriptors.iter().zip(&self.names.descriptors) {
            let mut all = Vec::new();
            if let Some(matrix) = &d.matrix {
                all.push(format!("extents = {}", list(matrix.extents.iter().map(amount))));
                all.push(format!("stride = {}", amount(&matrix.stride)));
                if matrix.rows_before > 0 {
                    all.push(format!("rows_before = {}", matrix.rows_before));
                }
                if !matrix.batches.is_empty() {
                    all.push(format!("batches = {}", list(matrix.batches.iter().map(amount))));
                }
                all.push(format!("not_negative = {}", list(matrix.natural.iter().map(Formula::functions))));
            }
            let (block, element) = (list(&d.block), &d.element);
            writeln!(f, "  descriptor {name} = {} {block} : {element}{}", d.parameter, attributes(all))?;
        }
        for (b, name) in program.buffers.iter().zip(&self.names.buffers) {
            let mut all = vec![format!("slots = {}", b.slots), format!("least = {}", b.least_slots)];
            all.extend(b.plain.then(|| "plain".to_owned()));
            let kind = match b.memory {
                Memory::Shared => "smem",
                Memory::Tensor { columns } => {
                    all.push(format!("columns = {columns}"));
                    "tmem"
                }
            };
            if let Some(source) = &b.source {
                let column = source.column.map_or_else(String::new, |column| format!(", column = {column}"));
                all.push(format!("file = {}, line = {}{column}", quoted(&source.file), source.line));
            }
            writeln!(f, "  {kind} {name} {} : {}{}", list(&b.shape), b.element, attributes(all))?;
        }
        for (b, name) in program.barriers.iter().zip(&self.names.barriers) {
            let arrivals = b.arrivals.iter().map(|arrival| match arrival {
                Arrival::Unit => "unit".to_owned(),
                Arrival::Threads { warps } => format!("threads({warps})"),
                Arrival::EachThread { warps } => format!("each_thread({warps})"),
            });
            writeln!(f, "  mbarrier {name} {} {}", b.slots, list(arrivals))?;
        }
        for ((_, groups), name) in program.named_barriers.iter().zip(&self.names.named) {
            writeln!(f, "  named_barrier {name} {groups}")?;
        }
        self.tile_scheduler(f)?;
        for ring in program.cluster.iter().flat_map(|cluster| &cluster.rings) {
            let (buffer, descriptor) = (self.buffer(ring.buffer), self.descriptor(ring.descriptor));
            let (full, empty) = (self.barrier(ring.full), self.barrier(ring.empty));
            writeln!(f, "  multicast {buffer} {descriptor} {full} {empty}")?;
        }
        if let Some(trace) = &program.trace {
            let detail = match trace.detail {
                Detail::Operations => "operations",
                Detail::Segments => "segments",
                Detail::Iterations => "iterations",
            };
            writeln!(f, "  trace {} {} {detail}", trace.parameter, trace.iterations)?;
        }
        for group in &program.groups {
            let variables = unique(group.variables.iter().map(|v| v.name.as_str()));
            let cursors = unique(group.cursors.iter().map(|c| c.name.as_str()));
            self.group = Some((group, variables, cursors));
            self.group(f, group)?;
        }
        writeln!(f, "}}")
    }

    fn tile_scheduler(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TileScheduler { persistent, wave_sync, ctas_per_sm, cta_coarsening, order } = &self.program.tile_scheduler;
        let mut all = Vec::new();
        all.extend(persistent.then(|| "persistent".to_owned()));
        all.extend(wave_sync.then(|| "wave_sync".to_owned()));
        all.extend((*ctas_per_sm > 1).then(|| format!("ctas_per_sm = {ctas_per_sm}")));
        all.push(format!("cta_coarsening = {}", list(cta_coarsening)));
        let order = match order {
            TileOrder::Linear => "linear".to_owned(),
            TileOrder::Lpt { width, even_in_pairs: true } => format!("lpt({width}, even)"),
            TileOrder::Lpt { width, even_in_pairs: false } => format!("lpt({width})"),
            TileOrder::GroupM(rows) => format!("group_m({rows})"),
        };
        writeln!(f, "  tiles {order}{}", attributes(all))
    }

    fn group(&self, f: &mut Formatter<'_>, group: &Group) -> fmt::Result {
        let (id, warps, registers) = (group.id.index(), group.warps, group.registers);
        writeln!(f, "  group {} {{id = {id}, warps = {warps}, registers = {registers}}} {{", group.name)?;
        for (k, v) in group.variables.iter().enumerate() {
            let form = match v.form {
                Form::Any => String::new(),
                Form::Accumulator { columns, bits: 16 } => format!(" accumulator({columns})"),
                Form::Accumulator { columns, bits } => format!(" accumulator({columns}) of {bits}"),
                Form::LeftOperand { columns } => format!(" left_operand({columns})"),
                Form::Neighbours { elements } => format!(" neighbours({elements})"),
                Form::Pointers { dimension } => format!(" pointers({dimension})"),
            };
            writeln!(f, "    variable {} {} : {}{form}", self.variable(VariableId::at(k)), list(&v.shape), v.element)?;
        }
        for (k, c) in group.cursors.iter().enumerate() {
            let phase = if c.phase { " phase" } else { "" };
            writeln!(f, "    cursor {} {}{phase}", self.cursor(CursorId::at(k)), c.slots)?;
        }
        for (index, variable) in group.trips.iter().enumerate() {
            if let Some(variable) = variable {
                writeln!(f, "    trips {index} = {}", self.variable(*variable))?;
            }
        }
        for (name, nodes) in [("begin", &group.begin), ("body", &group.body), ("end", &group.end)] {
            writeln!(f, "    {name} {{")?;
            self.nodes(f, 3, nodes)?;
            writeln!(f, "    }}")?;
        }
        writeln!(f, "  }}")
    }

    fn nodes(&self, f: &mut Formatter<'_>, depth: usize, nodes: &[Node]) -> fmt::Result {
        let indent = "  ".repeat(depth);
        let block = |f: &mut Formatter<'_>, head: &str, nodes: &[Node], tail: &str| {
            writeln!(f, "{head} {{")?;
            self.nodes(f, depth + 1, nodes)?;
            write!(f, "{indent}}}{tail}")
        };
        for node in nodes {
            f.write_str(&indent)?;
            match node {
                Node::Op(op, note) => write!(f, "{}{}", self.op(op), self.note(note))?,
                Node::PipelinedLoop { index, first, body } => {
                    block(f, &format!("pipelined_loop {index} from {first}"), body, "")?;
                }
                Node::TripSwitch { index, at_least, then, fewer } => {
                    block(f, &format!("trip_switch {index} at_least {at_least}"), then, "")?;
                    match fewer {
                        FewTrips::Each(each) => {
                            for (trips, nodes) in each {
                                block(f, &format!(" exactly {trips}"), nodes, "")?;
                            }
                        }
                        FewTrips::Any(nodes) => block(f, " fewer", nodes, "")?,
                    }
                }
                Node::For { variable, lower, upper, step, body } => {
                    let [lower, upper, step] = [lower, upper, step].map(|bound| self.expression(bound));
                    let head = format!("for {} = {lower} to {upper} step {step}", self.variable(*variable));
                    block(f, &head, body, "")?;
                }
                Node::While { before, condition, body } => {
                    block(f, "while", before, "")?;
                    block(f, &format!(" condition {}", self.expression(condition)), body, "")?;
                }
                Node::If { condition, then, otherwise } => {
                    block(f, &format!("if {}", self.expression(condition)), then, "")?;
                    block(f, " else", otherwise, "")?;
                }
                Node::Return => f.write_str("return")?,
            }
            f.write_char('\n')?;
        }
        Ok(())
    }

    fn note(&self, note: &Note) -> String {
        let mut all = Vec::new();
        all.extend(note.scheduled.map(|(cycle, stage)| format!("cycle = {cycle}, stage = {stage}")));
        all.extend(note.line.map(|line| format!("line = {line}")));
        all.extend(note.operation.map(|of| format!("loop = {}, operation = {}", of.index, of.op.index())));
        all.extend(Some(&note.text).filter(|text| !text.is_empty()).map(|text| format!("text = {}", quoted(text))));
        attributes(all)
    }

    fn variable(&self, id: VariableId) -> String {
        let name = self.group.as_ref().and_then(|(_, variables, _)| variables.get(id.index()));
        format!("%{}", name.map_or("?", String::as_str))
    }

    fn cursor(&self, id: CursorId) -> &str {
        self.group.as_ref().and_then(|(.., cursors)| cursors.get(id.index())).map_or("?", String::as_str)
    }

    fn buffer(&self, id: BufferId) -> &str {
        self.names.buffers.get(id.index()).map_or("?", String::as_str)
    }

    fn barrier(&self, id: BarrierId) -> &str {
        self.names.barriers.get(id.index()).map_or("?", String::as_str)
    }

    fn descriptor(&self, id: DescriptorId) -> &str {
        self.names.descriptors.get(id.index()).map_or("?", String::as_str)
    }

    fn named(&self, id: NamedBarrierId) -> &str {
        self.names.named.get(id.index()).map_or("?", String::as_str)
    }

    fn variables(&self, all: &[VariableId]) -> String {
        list(all.iter().map(|id| self.variable(*id)))
    }

    fn at(&self, barrier: BarrierId, at: CursorId) -> String {
        format!("{}[{}]", self.barrier(barrier), self.cursor(at))
    }

    fn signals(&self, all: &[(BarrierId, CursorId)]) -> String {
        list(all.iter().map(|(barrier, at)| self.at(*barrier, *at)))
    }

    fn iteration(iteration: Iteration) -> String {
        match iteration {
            Iteration::Absolute(n) => format!("first {n}"),
            Iteration::Current(n) => format!("current {n}"),
            Iteration::End(n) => format!("end {n}"),
        }
    }

    fn number(number: IterationNumber) -> String {
        format!("{}, {}", number.index, Self::iteration(number.iteration))
    }

    fn value(value: &SlotValue) -> String {
        let what = match value.id {
            MemoryValue::Result(of) => format!("result {} {}", of.index, of.op.index()),
            MemoryValue::Invariant(k) => format!("invariant {k}"),
            MemoryValue::Staged(k) => format!("staged {k}"),
            MemoryValue::Exported(k) => format!("exported {k}"),
        };
        format!("<{what}, {}>", Self::number(value.at))
    }

    fn slot(&self, slot: &Slot) -> String {
        let at = slot.at.map_or_else(String::new, |at| format!("[{}]", self.cursor(at)));
        let slice = slot.slice.map_or_else(String::new, |(d, start, extent)| format!(" slice({d}, {start}, {extent})"));
        let transposed = if slot.transposed { " transposed" } else { "" };
        format!("{}{at}{slice}{transposed} {}", self.buffer(slot.buffer), Self::value(&slot.value))
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Shared(slot) => self.slot(slot),
            Operand::Registers(id) => self.variable(*id),
        }
    }
}
