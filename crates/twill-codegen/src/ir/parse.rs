//! Reads the text of a warp program ([`print`](super::print)).

use super::*;
use std::collections::HashMap;
use std::str::FromStr;
use thiserror::Error;
use twill_graph::{GroupId, LoopOperation, OpId, Source};
use twill_triton::mlir::Type;

/// What is wrong with the text of a warp program.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

type Read<T> = Result<T, ReadError>;

impl FromStr for WarpProgram {
    type Err = ReadError;

    fn from_str(text: &str) -> Read<WarpProgram> {
        let mut reader = Reader { text, at: 0, names: HashMap::new(), variables: Vec::new() };
        let program = reader.program()?;
        reader.blank();
        if reader.at < text.len() { Err(reader.error("nothing follows a program")) } else { Ok(program) }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum NameKind {
    Buffer,
    Barrier,
    Descriptor,
    Named,
    Variable,
    Cursor,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    names: HashMap<(NameKind, String), u32>,
    /// Of the group that is read.
    variables: Vec<Variable>,
}

impl<'t> Reader<'t> {
    fn error(&self, what: impl Into<String>) -> ReadError {
        ReadError { line: 1 + self.text[..self.at].matches('\n').count(), what: what.into() }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes blanks and comments.
    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn accept(&mut self, punctuation: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(punctuation);
        if found {
            self.at += punctuation.len();
        }
        found
    }

    fn expect(&mut self, punctuation: &str) -> Read<()> {
        if self.accept(punctuation) { Ok(()) } else { Err(self.error(format!("`{punctuation}` is expected"))) }
    }

    fn word_ahead(&mut self) -> &'t str {
        self.blank();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '$');
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    }

    fn word(&mut self) -> Read<&'t str> {
        let word = self.word_ahead();
        if word.is_empty() {
            return Err(self.error("a word is expected"));
        }
        self.at += word.len();
        Ok(word)
    }

    fn accept_word(&mut self, wanted: &str) -> bool {
        let found = self.word_ahead() == wanted;
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn expect_word(&mut self, wanted: &str) -> Read<()> {
        if self.accept_word(wanted) { Ok(()) } else { Err(self.error(format!("`{wanted}` is expected"))) }
    }

    fn number<T: FromStr>(&mut self) -> Read<T> {
        self.blank();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let digits = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let number = digits.parse().map_err(|_| self.error(format!("a number is expected, not `{digits}`")))?;
        self.at += digits.len();
        Ok(number)
    }

    fn string(&mut self) -> Read<String> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut rest = self.rest().char_indices();
        while let Some((k, c)) = rest.next() {
            match c {
                '"' => {
                    self.at += k + 1;
                    return Ok(text);
                }
                '\\' => match rest.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, '0')) => text.push('\0'),
                    Some((_, 'u')) => {
                        let code: String = rest.by_ref().map(|(_, c)| c).skip(1).take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        text.push(code.ok_or_else(|| self.error("an escape is wrong"))?);
                    }
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(self.error("a string does not end"))
    }

    /// `[a, b]`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.expect("[")?;
        let mut all = Vec::new();
        while !self.accept("]") {
            if !all.is_empty() {
                self.expect(",")?;
            }
            all.push(item(self)?);
        }
        Ok(all)
    }

    fn array<T, const N: usize>(&mut self, item: impl FnMut(&mut Self) -> Read<T>) -> Read<[T; N]> {
        let all = self.list(item)?;
        let count = all.len();
        all.try_into().map_err(|_| self.error(format!("{N} items are expected, not {count}")))
    }

    /// `{name, name = value}`: calls the function with each name, which reads the value.
    fn attributes(&mut self, mut each: impl FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        if !self.accept("{") {
            return Ok(());
        }
        let mut is_first = true;
        while !self.accept("}") {
            if !is_first {
                self.expect(",")?;
            }
            is_first = false;
            let name = self.word()?;
            self.accept("=");
            each(self, name)?;
        }
        Ok(())
    }

    fn unknown(&self, what: &str, name: &str) -> ReadError {
        self.error(format!("`{name}` is no {what}"))
    }

    /// A type: up to the end of its brackets.
    fn element(&mut self) -> Read<Type> {
        self.blank();
        let rest = self.rest();
        let mut depth = 0_i32;
        let end = rest.find(|c: char| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0 && c != '>' && !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '!'))
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        let found = text.parse().map_err(|error| self.error(format!("a type is expected, not `{text}`: {error}")))?;
        self.at += text.len();
        Ok(found)
    }

    fn define(&mut self, kind: NameKind, name: &str, number: usize) {
        self.names.insert((kind, name.to_owned()), twill_graph::narrow(number));
    }

    fn find(&self, kind: NameKind, name: &str) -> Read<u32> {
        let found = self.names.get(&(kind, name.to_owned())).copied();
        found.ok_or_else(|| self.error(format!("there is no {kind:?} `{name}`").to_lowercase()))
    }

    fn name(&mut self, kind: NameKind) -> Read<u32> {
        let name = self.word()?;
        self.find(kind, name)
    }

    fn program(&mut self) -> Read<WarpProgram> {
        self.expect_word("warp_program")?;
        let mut program = WarpProgram {
            name: self.word()?.to_owned(),
            parameters: Vec::new(),
            descriptors: Vec::new(),
            buffers: Vec::new(),
            barriers: Vec::new(),
            named_barriers: Vec::new(),
            loops: Vec::new(),
            groups: Vec::new(),
            tiling: Tiling { persistent: false, wave_sync: false, cta_coarsening: [1; 3], order: TileOrder::Linear },
            cluster: None,
            trace: None,
        };
        self.expect("{")?;
        while !self.accept("}") {
            let keyword = self.word()?;
            match keyword {
                "parameter" => program.parameters.push(self.parameter()?),
                "loop" => program.loops.push(self.loop_of_program()?),
                "descriptor" => {
                    let descriptor = self.descriptor(program.descriptors.len())?;
                    program.descriptors.push(descriptor);
                }
                "smem" | "tmem" => {
                    let buffer = self.buffer(keyword == "tmem", program.buffers.len())?;
                    program.buffers.push(buffer);
                }
                "mbarrier" => {
                    let name = self.word()?;
                    self.define(NameKind::Barrier, name, program.barriers.len());
                    let slots = self.number()?;
                    let arrivals = self.list(Self::arrival)?;
                    program.barriers.push(Barriers { name: stem(name), slots, arrivals });
                }
                "named_barrier" => {
                    let name = self.word()?;
                    self.define(NameKind::Named, name, program.named_barriers.len());
                    program.named_barriers.push((stem(name), self.number()?));
                }
                "tiles" => program.tiling = self.tiling()?,
                "multicast" => {
                    let ring = MulticastRing {
                        buffer: BufferId(self.name(NameKind::Buffer)?),
                        descriptor: DescriptorId(self.name(NameKind::Descriptor)?),
                        full: BarrierId(self.name(NameKind::Barrier)?),
                        empty: BarrierId(self.name(NameKind::Barrier)?),
                    };
                    program.cluster.get_or_insert(Cluster { rings: Vec::new() }).rings.push(ring);
                }
                "trace" => {
                    let (parameter, iterations) = (self.word()?.to_owned(), self.number()?);
                    let detail = match self.word()? {
                        "operations" => Detail::Operations,
                        "segments" => Detail::Segments,
                        "iterations" => Detail::Iterations,
                        other => return Err(self.unknown("detail of a trace", other)),
                    };
                    program.trace = Some(Trace { parameter, iterations, detail, timestamps: Vec::new() });
                }
                "group" => {
                    let group = self.group()?;
                    program.groups.push(group);
                }
                other => return Err(self.unknown("part of a warp program", other)),
            }
        }
        let timestamps = program.timestamps();
        if let Some(trace) = &mut program.trace {
            trace.timestamps = timestamps;
        }
        Ok(program)
    }

    fn parameter(&mut self) -> Read<Parameter> {
        let name = self.word()?.to_owned();
        self.expect(":")?;
        let mut parameter = Parameter { name, kind: self.element()?, divisible_by_16: false, at_least: None };
        self.attributes(|reader, name| {
            match name {
                "divisible_by_16" => parameter.divisible_by_16 = true,
                "at_least" => parameter.at_least = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a parameter", other)),
            }
            Ok(())
        })?;
        Ok(parameter)
    }

    fn loop_of_program(&mut self) -> Read<LoopMetadata> {
        let _: usize = self.number()?;
        let name = self.string()?;
        let mut found = LoopMetadata { name, interval: 0, stages: 1, dot: None, trip_count: None, source_step: None };
        self.attributes(|reader, name| {
            match name {
                "interval" => found.interval = reader.number()?,
                "stages" => found.stages = reader.number()?,
                "dot" => found.dot = Some(reader.array(Self::number)?),
                "trips" => found.trip_count = Some(reader.number()?),
                "source_step" => found.source_step = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a loop", other)),
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn amount(&mut self) -> Read<Amount> {
        let word = self.word()?;
        Ok(word.parse().map_or_else(|_| Amount::Parameter(word.to_owned()), Amount::Constant))
    }

    fn descriptor(&mut self, number: usize) -> Read<Descriptor> {
        let name = self.word()?;
        self.define(NameKind::Descriptor, name, number);
        self.expect("=")?;
        let (parameter, block) = (self.word()?.to_owned(), self.list(Self::number)?);
        self.expect(":")?;
        let element = self.element()?;
        let (mut extents, mut stride, mut natural) = (None, None, Vec::new());
        self.attributes(|reader, name| {
            match name {
                "extents" => extents = Some(reader.array(Self::amount)?),
                "stride" => stride = Some(reader.amount()?),
                "not_negative" => natural = reader.list(|reader| reader.word().map(str::to_owned))?,
                other => return Err(reader.unknown("attribute of a descriptor", other)),
            }
            Ok(())
        })?;
        let matrix = extents.zip(stride).map(|(extents, stride)| Matrix { extents, stride, natural });
        Ok(Descriptor { name: stem(name), parameter, block, element, matrix })
    }

    fn buffer(&mut self, is_tensor: bool, number: usize) -> Read<Buffer> {
        let name = self.word()?;
        self.define(NameKind::Buffer, name, number);
        let shape = self.list(Self::number)?;
        self.expect(":")?;
        let element = self.element()?;
        let memory = if is_tensor { Memory::Tensor { columns: 0 } } else { Memory::Shared };
        let mut found =
            Buffer { name: stem(name), shape, element, slots: 1, least_slots: 1, memory, plain: false, source: None };
        let (mut file, mut line, mut column) = (None, 0, None);
        self.attributes(|reader, name| {
            match name {
                "slots" => found.slots = reader.number()?,
                "least" => found.least_slots = reader.number()?,
                "plain" => found.plain = true,
                "columns" => found.memory = Memory::Tensor { columns: reader.number()? },
                "file" => file = Some(reader.string()?),
                "line" => line = reader.number()?,
                "column" => column = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a buffer", other)),
            }
            Ok(())
        })?;
        found.source = file.map(|file| Source { file, line, column });
        Ok(found)
    }

    fn arrival(&mut self) -> Read<Arrival> {
        let kind = self.word()?;
        let mut warps = || {
            self.expect("(")?;
            let warps = self.number()?;
            self.expect(")")?;
            Ok(warps)
        };
        match kind {
            "unit" => Ok(Arrival::Unit),
            "threads" => Ok(Arrival::Threads { warps: warps()? }),
            "each_thread" => Ok(Arrival::EachThread { warps: warps()? }),
            other => Err(self.unknown("arrival", other)),
        }
    }

    fn tiling(&mut self) -> Read<Tiling> {
        let order = match self.word()? {
            "linear" => TileOrder::Linear,
            "group_m" => {
                self.expect("(")?;
                let rows = self.number()?;
                self.expect(")")?;
                TileOrder::GroupM(rows)
            }
            "lpt" => {
                self.expect("(")?;
                let width = self.number()?;
                let even_in_pairs = self.accept(",");
                if even_in_pairs {
                    self.expect_word("even")?;
                }
                self.expect(")")?;
                TileOrder::Lpt { width, even_in_pairs }
            }
            other => return Err(self.unknown("order of tiles", other)),
        };
        let mut tiling = Tiling { persistent: false, wave_sync: false, cta_coarsening: [1; 3], order };
        self.attributes(|reader, name| {
            match name {
                "persistent" => tiling.persistent = true,
                "wave_sync" => tiling.wave_sync = true,
                "cta_coarsening" => tiling.cta_coarsening = reader.array(Self::number)?,
                other => return Err(reader.unknown("attribute of the tiles", other)),
            }
            Ok(())
        })?;
        Ok(tiling)
    }

    fn group(&mut self) -> Read<Group> {
        let name = self.word()?.to_owned();
        let mut group = Group {
            id: GroupId::new(0),
            name,
            warps: 4,
            registers: 0,
            variables: Vec::new(),
            cursors: Vec::new(),
            trips: Vec::new(),
            begin: Vec::new(),
            body: Vec::new(),
            end: Vec::new(),
        };
        self.names.retain(|(kind, _), _| !matches!(kind, NameKind::Variable | NameKind::Cursor));
        self.variables.clear();
        self.attributes(|reader, name| {
            match name {
                "id" => group.id = GroupId::new(reader.number()?),
                "warps" => group.warps = reader.number()?,
                "registers" => group.registers = reader.number()?,
                other => return Err(reader.unknown("attribute of a group", other)),
            }
            Ok(())
        })?;
        self.expect("{")?;
        while !self.accept("}") {
            match self.word()? {
                "variable" => self.variable()?,
                "cursor" => {
                    let name = self.word()?;
                    self.define(NameKind::Cursor, name, group.cursors.len());
                    let slots = self.number()?;
                    group.cursors.push(Cursor { name: stem(name), slots, phase: self.accept_word("phase") });
                }
                "trips" => {
                    let index: usize = self.number()?;
                    self.expect("=")?;
                    if group.trips.len() <= index {
                        group.trips.resize(index + 1, None);
                    }
                    group.trips[index] = Some(self.read_variable()?);
                }
                "begin" => group.begin = self.block()?,
                "body" => group.body = self.block()?,
                "end" => group.end = self.block()?,
                other => return Err(self.unknown("part of a group", other)),
            }
        }
        group.variables.append(&mut self.variables);
        Ok(group)
    }

    fn variable(&mut self) -> Read<()> {
        self.expect("%")?;
        let name = self.word()?;
        self.define(NameKind::Variable, name, self.variables.len());
        let shape = self.list(Self::number)?;
        self.expect(":")?;
        let element = self.element()?;
        let columns = |reader: &mut Self| {
            reader.expect("(")?;
            let columns = reader.number()?;
            reader.expect(")")?;
            Ok(columns)
        };
        let form = if self.accept_word("accumulator") {
            Form::Accumulator { columns: columns(self)? }
        } else if self.accept_word("left_operand") {
            Form::LeftOperand { columns: columns(self)? }
        } else {
            Form::Any
        };
        self.variables.push(Variable { name: stem(name), shape, element, form });
        Ok(())
    }

    fn block(&mut self) -> Read<Vec<Node>> {
        self.expect("{")?;
        let mut nodes = Vec::new();
        while !self.accept("}") {
            nodes.push(self.node()?);
        }
        Ok(nodes)
    }

    fn node(&mut self) -> Read<Node> {
        Ok(match self.word_ahead() {
            "pipelined_loop" => {
                self.word()?;
                let index = self.number()?;
                self.expect_word("from")?;
                Node::PipelinedLoop { index, first: self.number()?, body: self.block()? }
            }
            "trip_switch" => {
                self.word()?;
                let index = self.number()?;
                self.expect_word("at_least")?;
                let (at_least, then) = (self.number()?, self.block()?);
                let mut exactly = Vec::new();
                while self.accept_word("exactly") {
                    exactly.push((self.number()?, self.block()?));
                }
                Node::TripSwitch { index, at_least, then, exactly }
            }
            "for" => {
                self.word()?;
                let variable = self.read_variable()?;
                self.expect("=")?;
                let lower = self.expression()?;
                self.expect_word("to")?;
                let upper = self.expression()?;
                self.expect_word("step")?;
                Node::For { variable, lower, upper, step: self.expression()?, body: self.block()? }
            }
            "while" => {
                self.word()?;
                let before = self.block()?;
                self.expect_word("condition")?;
                Node::While { before, condition: self.expression()?, body: self.block()? }
            }
            "if" => {
                self.word()?;
                let (condition, then) = (self.expression()?, self.block()?);
                let otherwise = if self.accept_word("else") { self.block()? } else { Vec::new() };
                Node::If { condition, then, otherwise }
            }
            "return" => {
                self.word()?;
                Node::Return
            }
            _ => Node::Op(self.op()?, self.note()?),
        })
    }

    fn note(&mut self) -> Read<Note> {
        let mut note = Note::default();
        let (mut cycle, mut stage, mut index, mut operation) = (None, None, None, None);
        self.attributes(|reader, name| {
            match name {
                "cycle" => cycle = Some(reader.number()?),
                "stage" => stage = Some(reader.number()?),
                "line" => note.line = Some(reader.number()?),
                "loop" => index = Some(reader.number()?),
                "operation" => operation = Some(OpId::new(reader.number()?)),
                "text" => note.text = reader.string()?,
                other => return Err(reader.unknown("attribute of an operation", other)),
            }
            Ok(())
        })?;
        note.scheduled = cycle.zip(stage);
        note.operation = index.zip(operation).map(|(index, op)| LoopOperation { index, op });
        Ok(note)
    }

    fn read_variable(&mut self) -> Read<VariableId> {
        self.expect("%")?;
        Ok(VariableId(self.name(NameKind::Variable)?))
    }

    fn variables(&mut self, keyword: &str) -> Read<Vec<VariableId>> {
        self.expect_word(keyword)?;
        self.list(Self::read_variable)
    }

    /// A barrier and the cursor at its slot.
    fn at(&mut self) -> Read<(BarrierId, CursorId)> {
        let barrier = BarrierId(self.name(NameKind::Barrier)?);
        self.expect("[")?;
        let cursor = CursorId(self.name(NameKind::Cursor)?);
        self.expect("]")?;
        Ok((barrier, cursor))
    }

    fn iteration(&mut self) -> Read<IterationNumber> {
        let index = self.number()?;
        self.expect(",")?;
        let from = self.word()?;
        let n = self.number()?;
        let iteration = match from {
            "first" => Iteration::Absolute(n),
            "current" => Iteration::Current(n),
            "end" => Iteration::End(n),
            other => return Err(self.unknown("iteration", other)),
        };
        Ok(IterationNumber { index, iteration })
    }

    fn value(&mut self) -> Read<SlotValue> {
        self.expect("<")?;
        let id = match self.word()? {
            "result" => MemoryValue::Result(LoopOperation { index: self.number()?, op: OpId::new(self.number()?) }),
            "invariant" => MemoryValue::Invariant(self.number()?),
            "staged" => MemoryValue::Staged(self.number()?),
            "exported" => MemoryValue::Exported(self.number()?),
            other => return Err(self.unknown("value in memory", other)),
        };
        self.expect(",")?;
        let at = self.iteration()?;
        self.expect(">")?;
        Ok(SlotValue { id, at })
    }

    fn slot(&mut self) -> Read<Slot> {
        let buffer = BufferId(self.name(NameKind::Buffer)?);
        let mut slot = Slot {
            buffer,
            at: None,
            slice: None,
            transposed: false,
            value: SlotValue::outside(MemoryValue::Staged(0)),
        };
        if self.accept("[") {
            slot.at = Some(CursorId(self.name(NameKind::Cursor)?));
            self.expect("]")?;
        }
        if self.accept_word("slice") {
            self.expect("(")?;
            let dimension = self.number()?;
            self.expect(",")?;
            let start = self.number()?;
            self.expect(",")?;
            slot.slice = Some((dimension, start, self.number()?));
            self.expect(")")?;
        }
        slot.transposed = self.accept_word("transposed");
        slot.value = self.value()?;
        Ok(slot)
    }

    fn operand(&mut self) -> Read<Operand> {
        self.blank();
        if self.rest().starts_with('%') {
            Ok(Operand::Registers(self.read_variable()?))
        } else {
            Ok(Operand::Shared(self.slot()?))
        }
    }

    fn optional(&mut self, keyword: &str) -> Read<Option<Expression>> {
        if self.accept_word(keyword) { Ok(Some(self.expression()?)) } else { Ok(None) }
    }

    fn op(&mut self) -> Read<Op> {
        Ok(match self.word()? {
            "let" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                Op::Let { to, value: self.expression()? }
            }
            "copy" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                Op::Copy { to, from: self.read_variable()? }
            }
            "wgmma" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                let left = self.operand()?;
                self.expect(",")?;
                let right = self.operand()?;
                let accumulator = if self.accept_word("accumulator") { Some(self.read_variable()?) } else { None };
                Op::Wgmma { to, left, right, accumulator }
            }
            "tcgen05_mma" => {
                let to = self.slot()?;
                self.expect("=")?;
                let left = self.slot()?;
                self.expect(",")?;
                let right = self.slot()?;
                self.expect(",")?;
                let addend = self.addend()?;
                self.expect_word("signals")?;
                Op::Tcgen05Mma(Box::new(Tcgen05Mma { left, right, to, addend, signals: self.list(Self::at)? }))
            }
            "tcgen05_commit" => Op::Tcgen05Commit(self.list(Self::at)?),
            "wgmma_init" => Op::WgmmaInit(self.read_variable()?),
            "wgmma_wait" => Op::WgmmaWait {
                pending: self.number()?,
                completed: self.variables("completed")?,
                in_flight: self.variables("in_flight")?,
            },
            "tma_load" => {
                let descriptor = DescriptorId(self.name(NameKind::Descriptor)?);
                let coordinates = self.list(Self::expression)?;
                self.expect_word("to")?;
                let to = self.slot()?;
                self.expect_word("full")?;
                Op::TmaLoad { descriptor, coordinates, to, full: BarrierId(self.name(NameKind::Barrier)?) }
            }
            "cp_async" => {
                let (pointers, mask) = (self.expression()?, self.optional("mask")?);
                self.expect_word("to")?;
                let to = self.slot()?;
                self.expect_word("full")?;
                Op::CpAsync { pointers, mask, to, full: BarrierId(self.name(NameKind::Barrier)?) }
            }
            "local_store" => {
                let value = self.expression()?;
                self.expect_word("to")?;
                Op::LocalStore { value, to: self.slot()? }
            }
            "fence_proxy_async" => Op::FenceProxyAsync,
            "group_sync" => Op::GroupSync,
            "tma_store" => {
                let descriptor = DescriptorId(self.name(NameKind::Descriptor)?);
                let coordinates = self.list(Self::expression)?;
                self.expect_word("from")?;
                let from = self.slot()?;
                let reduce = self.accept_word("reduce");
                if reduce {
                    self.expect_word("add")?;
                }
                Op::TmaStore { descriptor, coordinates, from, reduce: reduce.then_some(AtomicOp::Add) }
            }
            "tma_store_wait" => Op::TmaStoreWait(self.number()?),
            name @ ("global_store" | "atomic_add") => {
                let value = self.expression()?;
                self.expect_word("to")?;
                let (pointers, mask) = (self.expression()?, self.optional("mask")?);
                match name {
                    "atomic_add" => Op::AtomicAdd { pointers, value, mask },
                    _ => Op::GlobalStore { pointers, value, mask },
                }
            }
            "mbarrier_wait" => {
                let (barrier, at) = self.at()?;
                Op::MbarrierWait { barrier, at, previous: self.accept_word("previous") }
            }
            "mbarrier_arrive" => {
                let (barrier, at) = self.at()?;
                Op::MbarrierArrive { barrier, at }
            }
            "advance_cursor" => Op::AdvanceCursor(CursorId(self.name(NameKind::Cursor)?)),
            "copy_cursor" => {
                let to = CursorId(self.name(NameKind::Cursor)?);
                self.expect("=")?;
                Op::CopyCursor { to, from: CursorId(self.name(NameKind::Cursor)?) }
            }
            "named_barrier_sync" => Op::NamedBarrierSync(NamedBarrierId(self.name(NameKind::Named)?)),
            "named_barrier_arrive" => Op::NamedBarrierArrive(NamedBarrierId(self.name(NameKind::Named)?)),
            "opaque" => {
                let operation = Box::new(self.opaque()?);
                let operands = self.operands()?;
                Op::Opaque { operation, operands, results: self.variables("to")? }
            }
            "timestamp" => Op::Timestamp(self.list(|reader| {
                let operation = reader.string()?;
                let moment = match reader.word()? {
                    "issue" => Moment::Issue,
                    "end" => Moment::End,
                    "completed" => Moment::Completed,
                    other => return Err(reader.unknown("moment", other)),
                };
                reader.expect("(")?;
                let at = reader.iteration()?;
                reader.expect(")")?;
                Ok(Stamp { operation, moment, at })
            })?),
            other => return Err(self.unknown("operation", other)),
        })
    }

    fn addend(&mut self) -> Read<Addend> {
        Ok(match self.word()? {
            "zero" => Addend::Zero,
            "value" => Addend::Value(self.value()?),
            "before" => Addend::Before,
            "before_unless_first" => {
                self.expect("(")?;
                let number = self.iteration()?;
                self.expect(")")?;
                Addend::BeforeUnlessFirst(number)
            }
            other => return Err(self.unknown("addend", other)),
        })
    }

    fn opaque(&mut self) -> Read<Opaque> {
        let mut opaque = Opaque { name: self.string()?, attributes: Vec::new() };
        self.attributes(|reader, name| {
            opaque.attributes.push((name.to_owned(), reader.string()?));
            Ok(())
        })?;
        Ok(opaque)
    }

    fn operands(&mut self) -> Read<Vec<Expression>> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.accept(")") {
            if !all.is_empty() {
                self.expect(",")?;
            }
            all.push(self.expression()?);
        }
        Ok(all)
    }

    fn operand_in_parentheses(&mut self) -> Read<Box<Expression>> {
        self.expect("(")?;
        let operand = self.expression()?;
        self.expect(")")?;
        Ok(Box::new(operand))
    }

    fn expression(&mut self) -> Read<Expression> {
        self.blank();
        let kind = if self.rest().starts_with('%') {
            let id = self.read_variable()?;
            if !self.accept(":") {
                let variable = &self.variables[id.index()];
                let (shape, element) = (variable.shape.clone(), variable.element.clone());
                return Ok(Expression { kind: ExpressionKind::Variable(id), shape, element });
            }
            ExpressionKind::Variable(id)
        } else {
            let kind = self.expression_kind()?;
            self.expect(":")?;
            kind
        };
        Ok(Expression { kind, shape: self.list(Self::number)?, element: self.element()? })
    }

    fn expression_kind(&mut self) -> Read<ExpressionKind> {
        use ExpressionKind as K;
        let word = self.word()?;
        let simple = matches!(
            word,
            "program_id"
                | "num_programs"
                | "iteration"
                | "integer"
                | "float"
                | "range"
                | "load"
                | "local_load"
                | "tmem_load"
        );
        if !simple {
            return self.compound(word);
        }
        self.expect("(")?;
        let kind = match word {
            "program_id" => {
                let axis = self.number()?;
                K::ProgramId { axis, instance: if self.accept(",") { Some(self.number()?) } else { None } }
            }
            "num_programs" => K::ProgramCount(self.number()?),
            "iteration" => K::Iteration(self.iteration()?),
            "integer" => K::Integer(self.number()?),
            "float" => K::Float(self.number()?),
            "range" => {
                let start = self.number()?;
                self.expect(",")?;
                K::Range(start, self.number()?)
            }
            "load" => {
                let pointers = Box::new(self.expression()?);
                let mask = self.optional("mask")?.map(Box::new);
                K::Load { pointers, mask, other: self.optional("other")?.map(Box::new) }
            }
            "local_load" => K::FromShared(self.slot()?),
            _ => K::FromTensor(self.slot()?),
        };
        self.expect(")")?;
        Ok(kind)
    }

    fn compound(&mut self, word: &str) -> Read<ExpressionKind> {
        use ExpressionKind as K;
        Ok(match word {
            "parameter" => K::Parameter(self.word()?.to_owned()),
            "broadcast" => K::Broadcast(self.operand_in_parentheses()?),
            "partial_sums" => K::PartialSums(self.operand_in_parentheses()?),
            "expand_dims" => K::ExpandDims(self.number()?, self.operand_in_parentheses()?),
            "transpose" => K::Transpose(self.list(Self::number)?, self.operand_in_parentheses()?),
            "reduce" => {
                let axis = self.number()?;
                let name = self.word()?;
                let combine = Elementwise::of(name, None).ok_or_else(|| self.unknown("combination", name))?;
                K::Reduce { axis, combine, operand: self.operand_in_parentheses()? }
            }
            "opaque" => {
                let operation = Elementwise::Opaque(Box::new(self.opaque()?));
                K::Apply { operation, operands: self.operands()? }
            }
            name => {
                let predicate = if self.accept("<") { Some(self.word()?) } else { None };
                if predicate.is_some() {
                    self.expect(">")?;
                }
                let operation = Elementwise::of(name, predicate).ok_or_else(|| self.unknown("expression", name))?;
                K::Apply { operation, operands: self.operands()? }
            }
        })
    }
}

/// A name without the number that tells it from others.
fn stem(name: &str) -> String {
    name.split('#').next().unwrap_or(name).to_owned()
}
