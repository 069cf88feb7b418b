//! Warp programs as text for people.

use crate::passes::steps::program::{
    Barrier, Block, BufferId, BufferKind, GroupSteps, Iteration, LoopProgram, Purpose, Step,
};
use std::fmt::Write as _;
use twill_check::Verified;
use twill_graph::{GroupId, LoopGraph, OpId, Problem, Schedule, WarpGroup, grouped};

/// The pipelined, warp-specialised program of a schedule, which must have been verified against
/// `problem`, on lines of at most `width` columns.
pub fn pseudocode(problem: &Problem, schedule: &Verified<Schedule>, width: usize) -> String {
    print(problem, schedule, &LoopProgram::new(problem, schedule), width)
}

/// Percent of the columns, of at most a hundred, that are left of comments.
const COMMENT: usize = 56;

pub(crate) fn print(problem: &Problem, schedule: &Schedule, program: &LoopProgram, width: usize) -> String {
    let mut printer = Printer { problem, graph: problem.graph(), schedule, program, width, out: String::new() };
    printer.header();
    for k in 0..program.buffers.len() {
        printer.buffer(BufferId(k));
    }
    for warp in &program.warps {
        printer.warp(warp);
    }
    printer.out
}

struct Printer<'a> {
    problem: &'a Problem,
    graph: &'a LoopGraph,
    schedule: &'a Schedule,
    program: &'a LoopProgram,
    width: usize,
    out: String,
}

/// A name without blanks.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

fn plural(count: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Words on lines of at most `width` columns, the first and the others with that many blanks before them.
fn wrapped(text: &str, width: usize, first: usize, others: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut is_empty = true;
    // Blanks within code are kept.
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(others)));
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

fn groups(groups: &[GroupId]) -> String {
    let numbers: Vec<String> = groups.iter().map(|g| g.index().to_string()).collect();
    match numbers.split_last() {
        None => "none".into(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

fn index(iteration: Iteration) -> String {
    let offset = |base: &str, n: i64| match n {
        0 => base.to_owned(),
        n => format!("{base}{n:+}"),
    };
    match iteration {
        Iteration::Absolute(n) => n.to_string(),
        Iteration::Current(n) => offset("i", n),
        Iteration::End(n) => offset("T", n),
    }
}

fn shifted(iteration: Iteration, by: i64) -> Iteration {
    match iteration {
        Iteration::Absolute(n) => Iteration::Absolute(n + by),
        Iteration::Current(n) => Iteration::Current(n + by),
        Iteration::End(n) => Iteration::End(n + by),
    }
}

impl Printer<'_> {
    fn line(&mut self, indent: usize, code: &str, comment: &str) {
        let mut lines = wrapped(code, self.width, indent, indent + 4);
        let column = COMMENT * self.width.min(100) / 100 + 2;
        let used = lines.last().map_or(0, |line| line.chars().count() + 2);
        if !comment.is_empty() && used.max(column) + 2 + comment.chars().count() <= self.width {
            if let Some(last) = lines.last_mut() {
                let _ = write!(last, "{}# {comment}", " ".repeat(used.max(column) - used + 2));
            }
        } else if !comment.is_empty() {
            // In a column of its own, next to the code where that leaves it free.
            let mut parts = wrapped(comment, self.width.saturating_sub(column + 2), 0, 0).into_iter();
            let same_line = lines.last_mut().filter(|_| used <= column);
            if let Some((last, part)) = same_line.and_then(|last| Some((last, parts.next()?))) {
                let _ = write!(last, "{}# {part}", " ".repeat(column - used + 2));
            }
            lines.extend(parts.map(|part| format!("{}# {part}", " ".repeat(column))));
        }
        for line in lines {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn header(&mut self) {
        let Schedule { interval, length, .. } = self.schedule;
        let text = [
            format!("{} on {}", identifier(self.graph.name()), self.problem.resources().name),
            format!(
                "I = {} cycles, N = {} overlapped iterations, L = {} cycles",
                grouped(interval.0),
                self.schedule.stages(),
                grouped(length.0)
            ),
            String::new(),
            "T is the trip count, x[i] the result of x in iteration i. What the loop reads".into(),
            "of iterations before 0 is there at its start; waits for these return at once.".into(),
        ];
        for line in text.iter().flat_map(|line| wrapped(line, self.width.saturating_sub(2), 0, 0)) {
            self.out.push_str(format!("# {line}").trim_end());
            self.out.push('\n');
        }
        if !self.program.buffers.is_empty() {
            self.out.push('\n');
        }
    }

    fn name(&self, op: OpId) -> String {
        identifier(&self.graph.operation(op).name)
    }

    fn buffer_name(&self, id: BufferId) -> String {
        let buffer = self.program.buffer(id);
        let first = buffer.values.first().map_or_else(String::new, |v| self.name(v.op));
        match buffer.kind {
            BufferKind::Order(to) => format!("{first}_before_{}", self.name(to)),
            _ => first,
        }
    }

    fn buffer(&mut self, id: BufferId) {
        let buffer = self.program.buffer(id);
        let (kind, size) = match buffer.kind {
            BufferKind::Ring(bytes) => ("ring   ", format!(" x {}", plural(bytes.0, "byte"))),
            BufferKind::Handoff(bytes) => ("handoff", format!(" x {} of shared memory", plural(bytes.0, "byte"))),
            BufferKind::Shared(bytes) => ("shared ", format!(" x {}", plural(bytes.0, "byte"))),
            BufferKind::Tensor(columns) => ("tensor ", format!(" x {}", plural(columns.0, "column"))),
            BufferKind::Order(_) => ("order  ", String::new()),
        };
        let code = format!("{kind} {}: {}{size}", self.buffer_name(id), buffer.depth);
        let mut comment = format!("written by group {}", buffer.writer.index());
        let others: Vec<String> = buffer.values.iter().skip(1).map(|v| self.name(v.op)).collect();
        if !others.is_empty() {
            let _ = write!(comment, ", then holds {}", others.join(", "));
        }
        let shared: Vec<OpId> = buffer.values.iter().filter(|v| v.shared).map(|v| v.op).collect();
        let fulls: Vec<String> =
            shared.iter().map(|&value| self.barrier_name(Barrier::Full { buffer: id, value })).collect();
        if !fulls.is_empty() {
            let _ = write!(comment, "; {}", fulls.join(", "));
        }
        if !buffer.released_by.is_empty() {
            let empty = self.barrier_name(Barrier::Empty { buffer: id });
            let _ = write!(comment, "; {empty} from {}", groups(&buffer.released_by));
        }
        self.line(0, &code, &comment);
    }

    fn warp(&mut self, warp: &GroupSteps) {
        let group = self.schedule.groups.iter().find(|g| g.id == warp.group);
        let about = group.map_or_else(String::new, |g: &WarpGroup| {
            format!(" ({}, {}, {} registers)", g.role, plural(g.warps.into(), "warp"), g.registers_per_thread)
        });
        self.out.push('\n');
        self.line(0, &format!("warp group {}{about}:", warp.group.index()), "");
        self.blocks("prologue", &warp.prologue);
        self.line(2, &format!("for i in {}..T:", warp.first), "steady state");
        for step in &warp.steady {
            self.step(4, step);
        }
        self.blocks("epilogue", &warp.epilogue);
    }

    fn blocks(&mut self, part: &str, blocks: &[Block]) {
        for block in blocks {
            self.line(2, &format!("if T > {}:", block.trip_count_above), part);
            for step in &block.steps {
                self.step(4, step);
            }
        }
    }

    fn barrier_name(&self, barrier: Barrier) -> String {
        match barrier {
            Barrier::Full { buffer, value } => match self.program.buffer(buffer).kind {
                BufferKind::Order(_) => format!("{}.full", self.buffer_name(buffer)),
                _ => format!("{}.full", self.name(value)),
            },
            Barrier::Empty { buffer } => format!("{}.empty", self.buffer_name(buffer)),
        }
    }

    fn barrier(&self, barrier: Barrier, iteration: Iteration) -> String {
        let (Barrier::Full { buffer, .. } | Barrier::Empty { buffer }) = barrier;
        format!("{}[{}]", self.barrier_name(barrier), slot(iteration, self.program.buffer(buffer).depth))
    }

    fn step(&mut self, indent: usize, step: &Step) {
        let (code, comment) = match step {
            Step::Issue { op, iteration, signals } => self.issue(*op, *iteration, signals),
            Step::Store { op, iteration, buffer } => {
                let slot = slot(*iteration, self.program.buffer(*buffer).depth);
                let name = self.name(*op);
                (format!("store {name}[{}] -> {name}.buffer[{slot}]", index(*iteration)), String::new())
            }
            Step::MbarrierWait { barrier, iteration } => {
                (format!("wait {}", self.barrier(*barrier, *iteration)), self.meaning(*barrier, *iteration))
            }
            Step::MbarrierArrive { barrier, iteration } => {
                (format!("arrive {}", self.barrier(*barrier, *iteration)), String::new())
            }
            Step::WaitAsync { op, iteration, newer_in_flight, purpose } => {
                let why = match purpose {
                    Purpose::Operand => "",
                    Purpose::Reuse => "until its operands' storage can be written again",
                    Purpose::ProducerCommit => "to pass its result on",
                    Purpose::ConsumerRelease => "until it has read its operands",
                };
                let code =
                    format!("wait {}[{}] ({newer_in_flight} newer in flight)", self.name(*op), index(*iteration));
                (code, why.into())
            }
        };
        self.line(indent, &code, &comment);
    }

    /// What a wait is for, where slots alone do not say it.
    fn meaning(&self, barrier: Barrier, iteration: Iteration) -> String {
        match barrier {
            Barrier::Full { buffer, value } => match self.program.buffer(buffer).kind {
                BufferKind::Order(_) => format!("{}[{}] is done", self.name(value), index(iteration)),
                _ => format!("{}[{}] is there", self.name(value), index(iteration)),
            },
            Barrier::Empty { buffer } => {
                let depth = i64::from(self.program.buffer(buffer).depth);
                format!("{}[{}] is released", self.buffer_name(buffer), index(shifted(iteration, -depth)))
            }
        }
    }

    fn issue(&self, op: OpId, iteration: Iteration, signals: &[(Barrier, Iteration)]) -> (String, String) {
        let operation = self.graph.operation(op);
        let operand = |d: &twill_graph::Dependence| {
            format!("{}[{}]", self.name(d.from), index(shifted(iteration, -i64::from(d.distance))))
        };
        let reads = self.graph.dependences().iter().filter(|d| d.to == op && d.carries_value);
        let operands: Vec<String> = reads.map(operand).collect();
        let verb = if operation.is_synchronous() { "" } else { "issue " };
        let code = format!(
            "{verb}{}[{}] = {}({})",
            self.name(op),
            index(iteration),
            identifier(&operation.kind),
            operands.join(", ")
        );
        let cycle = grouped(self.schedule.placement(op).cycle.0);
        let mut comment = format!("cycle {cycle}, stage {}", self.schedule.stage(op));
        for r in &operation.reservations {
            let _ = write!(comment, ", {} {}", r.unit, grouped(r.cycles.0));
        }
        if let Some(source) = &operation.source {
            let _ = write!(comment, ", line {}", source.line);
        }
        if !signals.is_empty() {
            let names: Vec<String> = signals.iter().map(|(b, i)| self.barrier(*b, *i)).collect();
            let _ = write!(comment, "; done: arrives at {}", names.join(", "));
        }
        (code, comment)
    }
}

/// The slot of an iteration, worked out where it can be.
fn slot(iteration: Iteration, depth: u32) -> String {
    let depth = i64::from(depth.max(1));
    match iteration {
        _ if depth == 1 => "0".into(),
        Iteration::Absolute(n) => n.rem_euclid(depth).to_string(),
        Iteration::Current(0) | Iteration::End(0) => format!("{} % {depth}", index(iteration)),
        Iteration::Current(_) | Iteration::End(_) => format!("({}) % {depth}", index(iteration)),
    }
}
