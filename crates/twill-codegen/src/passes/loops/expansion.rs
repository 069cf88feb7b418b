//! Modulo variable expansion (Lam, "Software Pipelining", PLDI 1988, section 2.3): how many older values of an operation, and how
//! many older slots of a ring, a group still reads when it has newer ones, so that each needs a name of its own.
//!
//! The group's steps are gone through in the order in which code is made of them, with what each step reads taken from the
//! dependences of the loop's graph.

use crate::builder::group::{iterations_before, shifted};
use crate::builder::kernel::KernelBuilder;
use crate::builder::source::Producer;
use crate::ir::BufferId;
use crate::passes::steps::program::{
    Barrier, Block, BufferId as StepsBufferId, BufferKind, GroupSteps, Iteration, Step,
};
use std::collections::HashMap;
use twill_graph::{GroupId, OpId};
use twill_triton::Stands;
use twill_triton::tile::TileOpKind;

/// Older values and slots that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expansion {
    /// By operation whose results are in registers, how many older ones are read.
    pub values: HashMap<OpId, usize>,
    /// By buffer, how many older slots are used.
    pub slots: HashMap<BufferId, usize>,
}

impl Expansion {
    /// That of a group's steps of a loop.
    pub fn of(builder: &KernelBuilder<'_>, group: GroupId, index: usize, steps: &GroupSteps) -> Expansion {
        let mut walk =
            Walk { builder, group, index, trips: None, latest: Latest::default(), found: Expansion::default() };
        for (_, producer) in carried_in_registers(builder, group, index) {
            walk.latest.values.insert(producer.op, Iteration::Absolute(-1));
        }
        for (_, producer) in sums_in_tensor_memory(builder, group, index) {
            if let Some(buffer) = builder.loops[index].buffer(producer.op) {
                walk.latest.slots.insert(builder.storage.buffers[&(index, buffer)], Iteration::Absolute(-1));
            }
        }
        walk.all(steps);
        walk.found
    }
}

/// The carried values that a group has in registers when the loop begins: their positions, and the parts of them.
pub(crate) fn carried_in_registers(
    builder: &KernelBuilder<'_>,
    group: GroupId,
    index: usize,
) -> Vec<(usize, Producer)> {
    let facts = &builder.loops[index];
    let (module, parts) = (builder.module, facts.parts);
    let mut all: Vec<(usize, Producer)> = Vec::new();
    for k in 0..parts.carried.len() {
        if module.uses(parts.carried[k]).is_empty() && module.uses(parts.results[k]).is_empty() {
            continue;
        }
        for producer in facts.producers.get(&parts.yielded[k]).into_iter().flatten() {
            let is_known = all.iter().any(|(_, known)| known.op == producer.op);
            if !is_known && is_in_registers(builder, group, index, producer.op) {
                all.push((k, producer.clone()));
            }
        }
    }
    all
}

/// The sums in tensor memory that a group loads in the loop's first iteration: their positions, and the parts of them.
pub(crate) fn sums_in_tensor_memory(
    builder: &KernelBuilder<'_>,
    group: GroupId,
    index: usize,
) -> Vec<(usize, Producer)> {
    let facts = &builder.loops[index];
    let mut all = Vec::new();
    for k in 0..facts.parts.carried.len() {
        for producer in facts.producers.get(&facts.parts.yielded[k]).into_iter().flatten() {
            let loads = builder.loads_from_tensor(index, producer.op);
            if loads.iter().any(|(distance, op)| *distance > 0 && facts.group(*op) == group) {
                all.push((k, producer.clone()));
            }
        }
    }
    all
}

/// Whether a group holds what an operation makes in registers.
fn is_in_registers(builder: &KernelBuilder<'_>, group: GroupId, index: usize, op: OpId) -> bool {
    let facts = &builder.loops[index];
    facts.group(op) == group && !facts.is_load(op) && !builder.is_tcgen05_mma(index, op)
}

/// Of which iterations the newest values and slots are.
#[derive(Clone, Default)]
struct Latest {
    values: HashMap<OpId, Iteration>,
    slots: HashMap<BufferId, Iteration>,
}

impl Latest {
    fn renumber(&mut self, new: impl Fn(Iteration) -> Iteration) {
        self.values.values_mut().chain(self.slots.values_mut()).for_each(|iteration| *iteration = new(*iteration));
    }
}

struct Walk<'w, 'a> {
    builder: &'w KernelBuilder<'a>,
    group: GroupId,
    index: usize,
    /// The trip count, where it is known.
    trips: Option<i64>,
    latest: Latest,
    found: Expansion,
}

impl Walk<'_, '_> {
    /// In the order in which code is made: prologue, the steady state from its own end, epilogue; then fewer trips than stages.
    fn all(&mut self, steps: &GroupSteps) {
        let (before, first) = (self.latest.clone(), i64::from(steps.first));
        self.blocks(&steps.prologue);
        self.latest.renumber(|it| match it {
            Iteration::Absolute(n) => Iteration::Current(n - first),
            other => other,
        });
        for _ in 0..2 {
            steps.steady.iter().for_each(|step| self.step(step));
            self.latest.renumber(|it| shifted(it, -1));
        }
        self.latest.renumber(|it| match it {
            Iteration::Current(n) => Iteration::End(n),
            other => other,
        });
        self.blocks(&steps.epilogue);
        if let Some(shorter) = &steps.shorter {
            self.latest = before;
            return self.all(shorter);
        }
        for trips in 1..first {
            self.latest = before.clone();
            self.trips = Some(trips);
            self.blocks(&steps.prologue);
            self.blocks(&steps.epilogue);
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let trips = self.trips;
        let done = blocks.iter().filter(|block| trips.is_none_or(|t| t > i64::from(block.trip_count_above)));
        done.flat_map(|block| &block.steps).for_each(|step| self.step(step));
    }

    /// With a known trip count, iterations are counted from the first.
    fn iteration(&self, iteration: Iteration) -> Iteration {
        match (iteration, self.trips) {
            (Iteration::End(n), Some(trips)) => Iteration::Absolute(trips + n),
            (other, _) => other,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Issue { op, iteration, signals } => {
                let iteration = self.iteration(*iteration);
                self.issue(*op, iteration);
                for (barrier, at) in signals {
                    self.signal(*barrier, self.iteration(*at));
                }
            }
            Step::Store { op, iteration, buffer } => {
                let iteration = self.iteration(*iteration);
                self.take(*buffer, iteration);
                self.read(*op, iteration);
            }
            Step::MbarrierWait { barrier: Barrier::Full { buffer, .. }, iteration } => {
                let iteration = self.iteration(*iteration);
                let age =
                    self.latest.slots.get(&self.at(*buffer)).and_then(|latest| iterations_before(iteration, *latest));
                if age.is_none_or(|age| age < 0) {
                    self.take(*buffer, iteration);
                }
            }
            Step::MbarrierArrive { barrier, iteration } => self.signal(*barrier, self.iteration(*iteration)),
            Step::MbarrierWait { .. } | Step::WaitAsync { .. } => {}
        }
    }

    fn issue(&mut self, op: OpId, iteration: Iteration) {
        let facts = &self.builder.loops[self.index];
        let buffers = &facts.program.buffers;
        for (number, buffer) in buffers.iter().enumerate() {
            let is_first = buffer.values.first().is_some_and(|value| value.op == op);
            if is_first && buffer.guarded_by.is_none() && !matches!(buffer.kind, BufferKind::Handoff(_)) {
                self.take(StepsBufferId(number), iteration);
            }
        }
        for dependence in facts.problem.graph().dependences() {
            // An MMA that adds to its own result in tensor memory names no slot of it.
            let adds_in_place = dependence.from == op && self.builder.is_tcgen05_mma(self.index, op);
            if dependence.to == op && dependence.carries_value && !adds_in_place {
                self.read(dependence.from, shifted(iteration, -i64::from(dependence.distance)));
            }
        }
        if self.produces(op) {
            self.latest.values.insert(op, iteration);
        } else {
            self.slot(op, iteration);
        }
    }

    /// Whether an operation's results are in registers of its group.
    fn produces(&self, op: OpId) -> bool {
        let facts = &self.builder.loops[self.index];
        match facts.stands_for.get(op.index()) {
            Some(Stands::FromTensor(..)) => true,
            Some(Stands::Tile(id)) => match facts.tiles.operation(*id).kind {
                TileOpKind::Dot { .. } => !self.builder.is_tcgen05_mma(self.index, op),
                TileOpKind::Elementwise { .. }
                | TileOpKind::Convert
                | TileOpKind::Reduce { .. }
                | TileOpKind::Opaque { .. } => true,
                TileOpKind::Load(_) | TileOpKind::Store(_) | TileOpKind::AtomicReduce(_) => false,
            },
            _ => false,
        }
    }

    /// What an operation made is read: from registers, where the group has it there, or from its slot.
    fn read(&mut self, op: OpId, iteration: Iteration) {
        let is_own = self.builder.loops[self.index].group(op) == self.group;
        if is_own && self.produces(op) {
            let age = self.latest.values.get(&op).and_then(|latest| iterations_before(iteration, *latest));
            note(&mut self.found.values, op, age);
        } else {
            self.slot(op, iteration);
        }
    }

    fn at(&self, buffer: StepsBufferId) -> BufferId {
        self.builder.ring_of(self.index, buffer)
    }

    fn slot(&mut self, op: OpId, iteration: Iteration) {
        if let Some(buffer) = self.builder.loops[self.index].buffer(op) {
            self.slot_of(buffer, iteration);
        }
    }

    fn slot_of(&mut self, buffer: StepsBufferId, iteration: Iteration) {
        let at = self.at(buffer);
        let age = self.latest.slots.get(&at).and_then(|latest| iterations_before(iteration, *latest));
        note(&mut self.found.slots, at, age);
    }

    /// The slot of an iteration is taken.
    fn take(&mut self, buffer: StepsBufferId, iteration: Iteration) {
        let at = self.at(buffer);
        self.latest.slots.insert(at, iteration);
    }

    fn signal(&mut self, barrier: Barrier, iteration: Iteration) {
        let (Barrier::Full { buffer, .. } | Barrier::Empty { buffer }) = barrier;
        self.slot_of(buffer, iteration);
    }
}

fn note<K: std::hash::Hash + Eq>(found: &mut HashMap<K, usize>, key: K, age: Option<i64>) {
    if let Some(age) = age.and_then(|age| usize::try_from(age).ok()) {
        let most = found.entry(key).or_insert(0);
        *most = age.max(*most);
    }
}
