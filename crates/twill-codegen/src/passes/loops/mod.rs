//! A loop's steps as code of a group: names for values and slots of several iterations, MMAs in
//! flight, and what is there before the loop and after it.
//!
//! A variable is renamed when its operation makes the next value, so which iteration a name stands
//! for is known everywhere: in the prologue counted from the first iteration, in the loop from its
//! variable, in the epilogue from the trip count. How many older values need names is known beforehand ([`expansion`]). The state at the loop's end is that at its
//! beginning, one iteration on; so the body is made twice, the second time from the state that the
//! first left.

pub(crate) mod expansion;
mod issue;
mod rings;
mod state;
mod steady_state;
mod synchronous_mma;
pub(crate) mod tcgen05;
mod waits;
mod wgmma;

use crate::builder::group::{GroupBuilder, Track};
use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::builder::recurrences::{Recurrence, RecurrenceKey};
use crate::error::Error;
use crate::ir::{Form, Region, VariableId};
use crate::ir::{Node, Note, Op};
use crate::passes::steps::program::{Barrier, Block, BufferId as LoopBufferId, GroupSteps, Iteration, Step};
use expansion::{Expansion, carried_in_registers};
pub(crate) use issue::COPIED_ELEMENTS;
use std::collections::{BTreeSet, HashMap, VecDeque};
use twill_graph::saturate;
use twill_graph::{GroupRole, OpId};
use twill_triton::mlir::{ForLoop, Module};

/// Adds a loop to a group's program.
pub(crate) fn add_loop(lowering: &mut KernelBuilder<'_>, group: &mut GroupBuilder, index: usize) -> Result<(), Error> {
    let warp = lowering.loops[index].program.warps.iter().find(|w| w.group == group.id).cloned();
    if let Some(warp) = &warp {
        let mut wanted = results_that_are_read(lowering, group, index);
        loop {
            let before = group.clone();
            group.missing = Some(Vec::new());
            add_steps(lowering, group, index, warp, &wanted)?;
            let missing = group.missing.take().unwrap_or_default();
            if missing.is_empty() {
                break;
            }
            *group = before;
            let known = wanted.len();
            for key in missing {
                if !wanted.contains(&key) {
                    wanted.push(key);
                }
            }
            if wanted.len() == known {
                return Err(lowering.unsupported(
                    lowering.loops[index].parts.operation,
                    "a carried value that is read before its loop computes it",
                    "compute it from the loop's index, or use two kernels",
                ));
            }
        }
    }
    // After the loop the newest values are those of its last iteration.
    for track in group.tracks[index].values_mut() {
        track.latest = Some(Iteration::End(-1));
    }
    for slot in group.slots.values_mut() {
        slot.latest = None;
    }
    group.in_flight.clear();
    group.stores.clear();
    Ok(())
}

/// Numbers that the loop computes from iteration to iteration, and that are read after it.
fn results_that_are_read(
    lowering: &mut KernelBuilder<'_>,
    group: &mut GroupBuilder,
    index: usize,
) -> Vec<RecurrenceKey> {
    let parts = lowering.loops[index].parts;
    let module = lowering.module;
    let computes = lowering.role(group.id) == GroupRole::Compute;
    let reader = Reader { lowering, group };
    let is_number = |k: usize| !module.type_of(parts.results[k]).is_tensor();
    let is_read = |k: usize| !module.uses(parts.results[k]).is_empty() && reader.is_recurrent(index, k);
    let read = (0..parts.results.len()).filter(|k| computes && is_number(*k) && is_read(*k));
    read.map(|k| (index, k, Region::whole(&[]))).collect()
}

/// Adds a loop's steps to a group's program; it computes these carried values.
fn add_steps(
    lowering: &mut KernelBuilder<'_>,
    group: &mut GroupBuilder,
    index: usize,
    warp: &GroupSteps,
    wanted: &[RecurrenceKey],
) -> Result<(), Error> {
    let expansion = Expansion::of(lowering, group.id, index, warp);
    let mut builder = LoopBuilder {
        reader: Reader { lowering, group },
        index,
        trips: None,
        expansion,
        held_slot: None,
        next_mmas: VecDeque::new(),
        prepared: HashMap::new(),
        operands: HashMap::new(),
        received: HashMap::new(),
    };
    builder.reader.trip_count(index)?;
    builder.initial_values()?;
    builder.initial_sums()?;
    for key in wanted {
        builder.reader.begin_recurrence(key.clone(), iterations_at_once(warp))?;
    }
    let nodes = builder.nodes(warp)?;
    let parts = lowering.loops[index].parts;
    for recurrence in group.recurrences.iter_mut().filter(|r| r.key.0 == index) {
        let is_read = is_read_after(lowering.module, &parts, &recurrence.key);
        recurrence.latest = is_read.then_some(Iteration::End(0));
    }
    group.sections[index + 1].splice(0..0, nodes);
    Ok(())
}

/// Whether a carried number is read after its loop.
fn is_read_after(module: &Module, parts: &ForLoop<'_>, (_, k, region): &RecurrenceKey) -> bool {
    region.extents.is_empty() && !module.uses(parts.results[*k]).is_empty()
}

/// How many iterations an iteration of the loop works on, and one more, which it goes on to.
fn iterations_at_once(warp: &GroupSteps) -> usize {
    let iteration = |step: &Step| match step {
        Step::Issue { iteration, .. }
        | Step::Store { iteration, .. }
        | Step::MbarrierWait { iteration, .. }
        | Step::MbarrierArrive { iteration, .. }
        | Step::WaitAsync { iteration, .. } => match iteration {
            Iteration::Current(n) => *n,
            _ => 0,
        },
    };
    let (first, last) = warp.steady.iter().map(iteration).fold((0, 0), |(a, b), n| (n.min(a), n.max(b)));
    usize::try_from(last - first).unwrap_or(0) + 2
}

/// The buffers that a group's steps name.
fn buffers(warp: &GroupSteps) -> BTreeSet<LoopBufferId> {
    let of = |step: &Step| match step {
        Step::MbarrierWait { barrier, .. } | Step::MbarrierArrive { barrier, .. } => match *barrier {
            Barrier::Full { buffer, .. } | Barrier::Empty { buffer } => Some(buffer),
        },
        Step::Store { buffer, .. } => Some(*buffer),
        Step::Issue { .. } | Step::WaitAsync { .. } => None,
    };
    let blocks = warp.prologue.iter().chain(&warp.epilogue).flat_map(|b| &b.steps);
    blocks.chain(&warp.steady).filter_map(of).collect()
}

/// Makes code of one loop for one group.
pub(crate) struct LoopBuilder<'r, 'a> {
    pub reader: Reader<'r, 'a>,
    pub index: usize,
    /// The trip count, where it is known.
    trips: Option<i64>,
    /// How many older values and slots are read.
    pub expansion: Expansion,
    /// The ping-pong slot that the group has.
    pub held_slot: Option<crate::builder::planned::PingPongSlot>,
    /// MMAs that follow in the code that is being made.
    pub next_mmas: VecDeque<OpId>,
    /// Operands of MMAs that are in the form for them, by the tile and the result's columns.
    pub prepared: HashMap<(VariableId, u64), VariableId>,
    /// The names of such operands.
    pub operands: HashMap<(VariableId, u64), VariableId>,
    /// The names of operands that other groups make.
    pub received: HashMap<(OpId, u64), VariableId>,
}

impl LoopBuilder<'_, '_> {
    /// The values that the loop's first iteration finds, under the names that its own will have.
    fn initial_values(&mut self) -> Result<(), Error> {
        let (index, id) = (self.index, self.reader.group.id);
        for (k, producer) in carried_in_registers(self.reader.lowering, id, index) {
            let value = self.reader.initial(index, k, producer.op, &producer.region, producer.program)?;
            let to = self.new_track(producer.op);
            self.reader.group.define(to, index + 1);
            if let Some(track) = self.reader.group.tracks[index].get_mut(&producer.op) {
                track.latest = Some(Iteration::Absolute(-1));
            }
            self.reader.group.sections[index].push(Node::Op(Op::Let { to, value }, Note::default()));
        }
        Ok(())
    }

    /// Variables for an operation's results: the newest and as many older ones as are read.
    fn new_track(&mut self, op: OpId) -> VariableId {
        let index = self.index;
        let facts = &self.reader.lowering.loops[index];
        let name = facts.problem.graph().operation(op).name.clone();
        let producer = facts.producers.iter().find_map(|(v, ps)| Some((*v, ps.iter().find(|p| p.op == op)?.clone())));
        let (shape, element, form) = match producer {
            Some((value, producer)) => {
                let columns = producer.region.extents.last().copied().unwrap_or(8);
                let form = if facts.is_wgmma(self.reader.lowering.module, op) {
                    Form::Accumulator { columns, bits: facts.mma_bits(self.reader.lowering.module, op) }
                } else {
                    Form::Any
                };
                (producer.region.extents, self.reader.lowering.element(value), form)
            }
            None => {
                let (shape, element) = self.reader.lowering.tile_of(index, op);
                (shape, element, Form::Any)
            }
        };
        let facts = &self.reader.lowering.loops[index];
        let in_partials = facts.sums.contains_key(&op) || facts.sums.values().any(|s| s.reduce == op);
        let shape = if in_partials { vec![shape[0], crate::ir::PARTIALS] } else { shape };
        let count = self.expansion.values.get(&op).copied().unwrap_or(0) + 1;
        let variables: Vec<VariableId> = (0..count)
            .map(|age| {
                let wish = if age == 0 { name.clone() } else { format!("{name}_before_{age}") };
                self.reader.group.variable(&wish, &shape, element.clone(), form)
            })
            .collect();
        let newest = variables[0];
        for variable in &variables {
            self.reader.group.define(*variable, index + 1);
        }
        self.reader.group.tracks[index].insert(op, Track { variables, latest: None, defined: 0 });
        newest
    }

    /// The variable for a new result of an operation; what it held is renamed first.
    pub fn produce(&mut self, op: OpId, iteration: Iteration) -> VariableId {
        let index = self.index;
        if !self.reader.group.tracks[index].contains_key(&op) {
            self.new_track(op);
        }
        let (variables, had) = match self.reader.group.tracks[index].get_mut(&op) {
            Some(track) => {
                let had = track.latest.is_some();
                track.latest = Some(iteration);
                (track.variables.clone(), had)
            }
            None => return VariableId(0),
        };
        // What was prepared is a form of the value before.
        self.prepared.retain(|(of, _), _| *of != variables[0]);
        let note = std::mem::take(&mut self.reader.group.note);
        if had {
            self.define_sources(op);
            for age in (1..variables.len()).rev() {
                let (to, from) = (variables[age], variables[age - 1]);
                self.reader.group.act(Op::Copy { to, from });
                for flight in self.reader.group.in_flight.iter_mut().filter(|f| f.op == op && f.result == from) {
                    flight.result = to;
                }
            }
        }
        self.release_name(variables[0]);
        self.reader.group.note = note;
        variables[0]
    }

    /// Older values that are renamed before there are any: they are read by nobody then, but must be something.
    fn define_sources(&mut self, op: OpId) {
        let Some(track) = self.reader.group.tracks[self.index].get_mut(&op) else { return };
        let sources = track.variables.len().saturating_sub(1);
        let (first, newest) = (track.defined.max(1), track.variables[0]);
        let undefined: Vec<VariableId> = track.variables.get(first..sources).unwrap_or_default().to_vec();
        track.defined = track.defined.max(track.variables.len());
        for to in undefined {
            self.reader.group.act(Op::Copy { to, from: newest });
        }
    }

    /// Before a variable changes that an MMA still reads, the MMA's operand gets another name. Operands of 32 bits are waited for: they
    /// take twice the registers, and ptxas has MMAs run one by one where others are made meanwhile (C7513).
    pub fn release_name(&mut self, variable: VariableId) {
        let Some(last) = self.reader.group.in_flight.iter().rposition(|f| f.operands.contains(&variable)) else {
            return;
        };
        if self.reader.group.variables[variable.index()].element.scalar_bits() == Some(32) {
            self.wgmma_wait_up_to(last);
            return;
        }
        let group = &mut self.reader.group;
        let in_flight = |name: &VariableId| group.in_flight.iter().any(|f| f.operands.contains(name));
        let free = group.in_use.get(&variable).and_then(|names| names.iter().copied().find(|name| !in_flight(name)));
        let to = free.unwrap_or_else(|| {
            let old = group.variables[variable.index()].clone();
            let to = group.variable(&format!("{}_in_use", old.name), &old.shape, old.element, old.form);
            group.in_use.entry(variable).or_default().push(to);
            to
        });
        self.reader.group.act(Op::Copy { to, from: variable });
        for operand in self.reader.group.in_flight.iter_mut().flat_map(|f| &mut f.operands) {
            if *operand == variable {
                *operand = to;
            }
        }
    }

    /// The carried values that the loop's code computes, and of which iteration the newest is.
    fn newest(&self) -> Vec<(usize, Iteration)> {
        let own = |(number, r): (usize, &Recurrence)| Some((number, r.latest?)).filter(|_| r.key.0 == self.index);
        self.reader.group.recurrences.iter().enumerate().filter_map(own).collect()
    }

    /// Computes carried values so far that every iteration of the loop goes on by one.
    fn begin_recurrences(&mut self, warp: &GroupSteps) -> Result<(), Error> {
        let entry = self.newest();
        if entry.is_empty() {
            return Ok(());
        }
        // How far an iteration goes is known when it is made.
        let (before, out) = (self.state(), self.reader.group.out.clone());
        let first = i64::from(warp.first);
        self.renumber(|it| match it {
            Iteration::Absolute(n) => Iteration::Current(n - first),
            other => other,
        });
        self.steps(&warp.steady)?;
        let reached = self.newest();
        self.restore(before);
        self.reader.group.out = out;
        for ((number, _), (_, reached)) in entry.into_iter().zip(reached) {
            if let Iteration::Current(n) = reached {
                self.reader.advance_to(number, Iteration::Absolute(first + n - 1))?;
            }
        }
        Ok(())
    }

    /// What is read after the loop is what it carries then.
    fn end_recurrences(&mut self, end: Iteration) -> Result<(), Error> {
        let parts = self.reader.lowering.loops[self.index].parts;
        let module = self.reader.lowering.module;
        for (number, _) in self.newest() {
            if is_read_after(module, &parts, &self.reader.group.recurrences[number].key) {
                self.reader.advance_to(number, end)?;
            }
        }
        Ok(())
    }

    fn blocks(&mut self, blocks: &[Block]) -> Result<(), Error> {
        let done = |block: &&Block| self.trips.is_none_or(|t| t > i64::from(block.trip_count_above));
        let steps: Vec<Step> = blocks.iter().filter(done).flat_map(|b| b.steps.iter().cloned()).collect();
        self.steps(&steps)
    }

    /// With a known trip count, iterations are counted from the first.
    pub(crate) fn iteration(&self, iteration: Iteration) -> Iteration {
        match (iteration, self.trips) {
            (Iteration::End(n), Some(trips)) => Iteration::Absolute(trips + n),
            (other, _) => other,
        }
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Error> {
        self.next_mmas = steps.iter().filter_map(|s| self.mmas(s)).collect();
        for step in steps {
            if self.mmas(step).is_some() {
                self.next_mmas.pop_front();
            }
            match step {
                Step::Issue { op, iteration, signals } => {
                    let iteration = self.iteration(*iteration);
                    self.describe(*op);
                    self.issue(*op, iteration, signals)?;
                }
                Step::Store { op, iteration, buffer } => {
                    let iteration = self.iteration(*iteration);
                    self.handoff(*op, iteration, *buffer)?;
                }
                Step::MbarrierWait { barrier, iteration } => self.wait(*barrier, self.iteration(*iteration))?,
                Step::MbarrierArrive { barrier, iteration } => self.arrive(*barrier, self.iteration(*iteration))?,
                Step::WaitAsync { op, iteration, .. } => self.wait_for(*op, self.iteration(*iteration)),
            }
            self.reader.group.note = Note::default();
        }
        Ok(())
    }

    /// The MMA that a step issues.
    fn mmas(&self, step: &Step) -> Option<OpId> {
        let Step::Issue { op, .. } = step else { return None };
        Some(*op).filter(|op| self.is_mma(*op))
    }

    /// Whether an operation is an MMA.
    pub(crate) fn is_mma(&self, op: OpId) -> bool {
        let tile = self.reader.lowering.loops[self.index].tile_operation(op);
        tile.is_some_and(|tile| matches!(tile.kind, twill_triton::tile::TileOpKind::Dot { .. }))
    }

    /// The note on an operation.
    fn describe(&mut self, op: OpId) {
        let facts = &self.reader.lowering.loops[self.index];
        let cycle = facts.schedule.placement(op).cycle.0;
        let interval = facts.schedule.interval.0.max(1);
        let graph = facts.problem.graph().operation(op);
        self.reader.group.note = Note {
            scheduled: Some((cycle, saturate::<u32>(cycle / interval))),
            line: graph.source.as_ref().map(|s| s.line),
            operation: Some(twill_graph::LoopOperation { index: self.index, op }),
            text: String::new(),
        };
    }
}
