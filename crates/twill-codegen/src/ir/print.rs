//! A warp program as text, which [`parse`](super::parse) reads back.
//!
//! Things are called by their names, `name#k` where several have one. An expression has its shape and type after it, unless it
//! is a variable, whose declaration has them.

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
            let more = attributes(divisible.into_iter().chain(at_least).collect());
            writeln!(f, "  parameter {} : {}{more}", p.name, p.kind)?;
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
                all.push(format!("not_negative = {}", list(&matrix.natural)));
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
        self.tiling(f)?;
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

    fn tiling(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tiling { persistent, wave_sync, cta_coarsening, order } = &self.program.tiling;
        let mut all = Vec::new();
        all.extend(persistent.then(|| "persistent".to_owned()));
        all.extend(wave_sync.then(|| "wave_sync".to_owned()));
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
                Form::Accumulator { columns } => format!(" accumulator({columns})"),
                Form::LeftOperand { columns } => format!(" left_operand({columns})"),
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
                Node::TripSwitch { index, at_least, then, exactly } => {
                    block(f, &format!("trip_switch {index} at_least {at_least}"), then, "")?;
                    for (trips, nodes) in exactly {
                        block(f, &format!(" exactly {trips}"), nodes, "")?;
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

    fn expressions(&self, all: &[Expression]) -> String {
        all.iter().map(|e| self.expression(e)).collect::<Vec<_>>().join(", ")
    }

    fn mask(&self, mask: Option<&Expression>) -> String {
        mask.map_or_else(String::new, |mask| format!(" mask {}", self.expression(mask)))
    }

    fn expression(&self, of: &Expression) -> String {
        use ExpressionKind as K;
        let text = match &of.kind {
            K::Variable(id) => self.variable(*id),
            K::Parameter(name) => format!("parameter {name}"),
            K::ProgramId { axis, instance: None } => format!("program_id({axis})"),
            K::ProgramId { axis, instance: Some(which) } => format!("program_id({axis}, {which})"),
            K::ProgramCount(axis) => format!("num_programs({axis})"),
            K::Iteration(number) => format!("iteration({})", Self::number(*number)),
            K::Integer(n) => format!("integer({n})"),
            K::Float(x) => format!("float({x:?})"),
            K::Range(start, end) => format!("range({start}, {end})"),
            K::Apply { operation, operands } => {
                format!("{}({})", Self::operation(operation), self.expressions(operands))
            }
            K::Broadcast(x) => format!("broadcast({})", self.expression(x)),
            K::ExpandDims(axis, x) => format!("expand_dims {axis} ({})", self.expression(x)),
            K::Transpose(order, x) => format!("transpose {} ({})", list(order), self.expression(x)),
            K::Reduce { axis, combine, operand } => {
                format!("reduce {axis} {} ({})", combine.name(), self.expression(operand))
            }
            K::PartialSums(x) => format!("partial_sums({})", self.expression(x)),
            K::Load { pointers, mask, other } => {
                let other =
                    other.as_ref().map_or_else(String::new, |other| format!(" other {}", self.expression(other)));
                format!("load({}{}{other})", self.expression(pointers), self.mask(mask.as_deref()))
            }
            K::FromShared(slot) => format!("local_load({})", self.slot(slot)),
            K::FromTensor(slot) => format!("tmem_load({})", self.slot(slot)),
        };
        let is_declared = match of.kind {
            K::Variable(id) => {
                let own = self.group.as_ref().and_then(|(group, ..)| group.variables.get(id.index()));
                own.is_some_and(|v| v.shape == of.shape && v.element == of.element)
            }
            _ => false,
        };
        if is_declared { text } else { format!("{text} : {} {}", list(&of.shape), of.element) }
    }

    fn operation(operation: &Elementwise) -> String {
        match operation {
            Elementwise::Opaque(opaque) => Self::opaque(opaque),
            known => known.to_string(),
        }
    }

    fn opaque(opaque: &Opaque) -> String {
        let all = opaque.attributes.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        format!("opaque {}{} ", quoted(&opaque.name), attributes(all))
    }

    fn op(&self, op: &Op) -> String {
        match op {
            Op::Let { to, value } => format!("let {} = {}", self.variable(*to), self.expression(value)),
            Op::Copy { to, from } => format!("copy {} = {}", self.variable(*to), self.variable(*from)),
            Op::Wgmma { to, left, right, accumulator } => {
                let adds = accumulator.map_or_else(String::new, |id| format!(" accumulator {}", self.variable(id)));
                format!("wgmma {} = {}, {}{adds}", self.variable(*to), self.operand(left), self.operand(right))
            }
            Op::Tcgen05Mma(mma) => {
                let addend = match &mma.addend {
                    Addend::Zero => "zero".to_owned(),
                    Addend::Value(value) => format!("value {}", Self::value(value)),
                    Addend::Before => "before".to_owned(),
                    Addend::BeforeUnlessFirst(number) => format!("before_unless_first({})", Self::number(*number)),
                };
                let [to, left, right] = [&mma.to, &mma.left, &mma.right].map(|slot| self.slot(slot));
                format!("tcgen05_mma {to} = {left}, {right}, {addend} signals {}", self.signals(&mma.signals))
            }
            Op::Tcgen05Commit(signals) => format!("tcgen05_commit {}", self.signals(signals)),
            Op::WgmmaInit(id) => format!("wgmma_init {}", self.variable(*id)),
            Op::WgmmaWait { pending, completed, in_flight } => format!(
                "wgmma_wait {pending} completed {} in_flight {}",
                self.variables(completed),
                self.variables(in_flight)
            ),
            Op::TmaLoad { descriptor, coordinates, to, full } => {
                let (descriptor, at) = (self.descriptor(*descriptor), self.expressions(coordinates));
                format!("tma_load {descriptor} [{at}] to {} full {}", self.slot(to), self.barrier(*full))
            }
            Op::CpAsync { pointers, mask, to, full } => {
                let (pointers, mask) = (self.expression(pointers), self.mask(mask.as_ref()));
                format!("cp_async {pointers}{mask} to {} full {}", self.slot(to), self.barrier(*full))
            }
            Op::LocalStore { value, to } => format!("local_store {} to {}", self.expression(value), self.slot(to)),
            Op::FenceProxyAsync => "fence_proxy_async".to_owned(),
            Op::GroupSync => "group_sync".to_owned(),
            Op::TmaStore { descriptor, coordinates, from, reduce } => {
                let (descriptor, at) = (self.descriptor(*descriptor), self.expressions(coordinates));
                let reduce = reduce.map_or("", |AtomicOp::Add| " reduce add");
                format!("tma_store {descriptor} [{at}] from {}{reduce}", self.slot(from))
            }
            Op::TmaStoreWait(pending) => format!("tma_store_wait {pending}"),
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                let name = if matches!(op, Op::AtomicAdd { .. }) { "atomic_add" } else { "global_store" };
                let (to, value) = (self.expression(pointers), self.expression(value));
                format!("{name} {value} to {to}{}", self.mask(mask.as_ref()))
            }
            Op::MbarrierWait { barrier, at, previous } => {
                format!("mbarrier_wait {}{}", self.at(*barrier, *at), if *previous { " previous" } else { "" })
            }
            Op::MbarrierArrive { barrier, at } => format!("mbarrier_arrive {}", self.at(*barrier, *at)),
            Op::AdvanceCursor(cursor) => format!("advance_cursor {}", self.cursor(*cursor)),
            Op::CopyCursor { to, from } => format!("copy_cursor {} = {}", self.cursor(*to), self.cursor(*from)),
            Op::NamedBarrierSync(id) => format!("named_barrier_sync {}", self.named(*id)),
            Op::NamedBarrierArrive(id) => format!("named_barrier_arrive {}", self.named(*id)),
            Op::Opaque { operation, operands, results } => {
                format!("{}({}) to {}", Self::opaque(operation), self.expressions(operands), self.variables(results))
            }
            Op::Timestamp(stamps) => {
                let stamp = |stamp: &Stamp| {
                    let moment = match stamp.moment {
                        Moment::Issue => "issue",
                        Moment::End => "end",
                        Moment::Completed => "completed",
                    };
                    format!("{} {moment} ({})", quoted(&stamp.operation), Self::number(stamp.at))
                };
                format!("timestamp {}", list(stamps.iter().map(stamp)))
            }
        }
    }
}
