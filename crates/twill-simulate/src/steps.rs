//! A group's program as a list of steps: tiles and trip counts are in place, slots and phases are numbers.

use crate::Timing;
use crate::work::{Costs, Work};
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{Group, Operand, VariableId, WarpProgram};
use twill_codegen::ir::{Node, Op};

/// The next step of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Its threads compute.
    Compute(Work),
    /// Starts an MMA.
    Mma { cycles: f64, instructions: f64, shared_bytes: f64 },
    /// Waits until at most N of its MMAs run.
    WaitMmas(u32),
    /// Starts a copy to shared memory.
    Load { bytes: f64, barrier: usize },
    /// Arrives.
    Arrive { barrier: usize },
    /// Until this many phases are complete.
    Wait { barrier: usize, target: u32 },
    /// Arrives at a named barrier and waits.
    NamedBarrierSync(usize),
    /// Arrives at a named barrier and goes on.
    NamedBarrierArrive(usize),
    /// Starts a copy from shared memory.
    Store { bytes: f64 },
    /// Waits until at most N of its copies from shared memory read it.
    WaitStores(u32),
    /// A time that nothing shortens.
    Delay(f64),
    /// An iteration of a loop begins.
    Iteration { index: usize },
}

/// Steps of a group.
struct Writer<'a> {
    program: &'a WarpProgram,
    group: &'a Group,
    costs: Costs<'a>,
    trips: &'a [u32],
    first_barrier: Vec<usize>,
    /// Slot, and how often it has come round.
    cursors: Vec<(u32, u32)>,
    steps: Vec<Step>,
    /// Something that is not simulated.
    unknown: bool,
}

/// The steps of a group for N tiles; `None` where it does something that is not simulated (tensor memory).
pub(crate) fn steps(
    program: &WarpProgram,
    group: &Group,
    timing: &Timing,
    trips: &[u32],
    tiles: u32,
) -> Option<Vec<Step>> {
    let first_barrier = program
        .barriers
        .iter()
        .scan(0, |sum, b| {
            let first = *sum;
            *sum += b.slots as usize;
            Some(first)
        })
        .collect();
    let costs = Costs { timing, buffers: &program.buffers, threads: f64::from(32 * group.warps.max(1)) };
    let cursors = vec![(0, 0); group.cursors.len()];
    let steps = Vec::new();
    let mut writer = Writer { program, group, costs, trips, first_barrier, cursors, steps, unknown: false };
    writer.nodes(&group.begin);
    for _ in 0..tiles {
        writer.nodes(&group.body);
    }
    writer.nodes(&group.end);
    hide(&mut writer.steps, timing);
    (!writer.unknown).then_some(writer.steps)
}

/// Instructions that stand in one stretch with special functions are partly hidden by them.
fn hide(steps: &mut [Step], timing: &Timing) {
    for stretch in steps.chunk_by_mut(|a, b| matches!((a, b), (Step::Compute(_), Step::Compute(_)))) {
        let sum = |of: fn(&Work) -> f64| -> f64 {
            stretch.iter().map(|s| if let Step::Compute(work) = s { of(work) } else { 0.0 }).sum()
        };
        let (special, other) = (sum(|w| w.special), sum(|w| w.other));
        let hidden = other.min(special) * (1.0 - timing.special_overlap);
        if hidden > 0.0 {
            for step in stretch {
                if let Step::Compute(work) = step {
                    work.other *= 1.0 - hidden / other;
                }
            }
        }
    }
}

impl Writer<'_> {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Op(op, _) => self.op(op),
                Node::PipelinedLoop { index, first, body } => {
                    for _ in *first..self.trips(*index) {
                        self.steps.push(Step::Iteration { index: *index });
                        self.nodes(body);
                    }
                }
                Node::TripSwitch { index, .. } => {
                    let trips = u64::from(self.trips(*index));
                    self.nodes(node.of_trips(trips).unwrap_or_default());
                }
                // An early return: programs that do not take it are what is asked about.
                Node::If { then, otherwise, .. } if then.is_empty() => self.nodes(otherwise),
                Node::If { then, otherwise, .. } if otherwise.is_empty() => self.nodes(then),
                // How often they run is not known here.
                Node::For { .. } | Node::While { .. } | Node::If { .. } | Node::Return => self.unknown = true,
            }
        }
    }

    fn trips(&self, index: usize) -> u32 {
        self.trips.get(index).copied().unwrap_or(0)
    }

    fn barrier(&self, barrier: BarrierId, at: CursorId) -> usize {
        self.first_barrier[barrier.index()] + self.cursors[at.index()].0 as usize
    }

    fn compute(&mut self, work: Work) {
        if work == Work::default() {
            return;
        }
        self.steps.push(Step::Compute(work));
    }

    fn op(&mut self, op: &Op) {
        let timing = self.costs.timing;
        match op {
            Op::Let { value, .. } => self.compute(self.costs.of(value)),
            Op::Wgmma { to, left, right, .. } => self.mma(*to, left, right),
            Op::Tcgen05Mma(_) | Op::Tcgen05Commit(_) | Op::Opaque { .. } => self.unknown = true,
            Op::WgmmaWait { pending, .. } => self.steps.push(Step::WaitMmas(*pending)),
            Op::CpAsync { full: None, .. } | Op::CpAsyncCommit | Op::CpAsyncWait(_) => self.unknown = true,
            Op::TmaLoad { to, full, .. } | Op::CpAsync { to, full: Some(full), .. } => {
                if let Some(at) = to.at {
                    let (bytes, barrier) = (self.costs.bytes(to), self.barrier(*full, at));
                    self.steps.push(Step::Load { bytes, barrier });
                }
            }
            Op::LocalStore { value, to } => {
                let bytes = self.costs.bytes(to);
                let store = Work {
                    shared_bytes: bytes,
                    chain: timing.shared_write,
                    issue: bytes / self.costs.threads / 16.0,
                    ..Work::default()
                };
                self.compute(self.costs.of(value));
                self.compute(store);
            }
            Op::FenceProxyAsync => self.steps.push(Step::Delay(timing.fence)),
            Op::GroupSync => self.steps.push(Step::Delay(timing.group_sync)),
            Op::TmaStore { from, .. } => {
                let bytes = self.costs.bytes(from);
                self.steps.push(Step::Store { bytes });
            }
            Op::TmaStoreWait(left) => self.steps.push(Step::WaitStores(*left)),
            Op::GlobalStore { value, .. } | Op::AtomicAdd { value, .. } => {
                let work = self.costs.of(value);
                let elements: f64 = value.shape.iter().map(|e| *e as f64).product();
                self.compute(work.then(Work { other: elements / self.costs.threads * 4.0, ..Work::default() }));
            }
            Op::MbarrierWait { barrier, at, previous } => {
                let target = self.cursors[at.index()].1 + u32::from(!previous);
                let barrier = self.barrier(*barrier, *at);
                self.steps.push(Step::Wait { barrier, target });
            }
            Op::MbarrierArrive { barrier, at } => {
                let barrier = self.barrier(*barrier, *at);
                self.steps.push(Step::Arrive { barrier });
            }
            Op::AdvanceCursor(cursor) => {
                let slots = self.group.cursors[cursor.index()].slots;
                let (slot, round) = &mut self.cursors[cursor.index()];
                *slot += 1;
                if *slot >= slots {
                    (*slot, *round) = (0, *round + 1);
                }
            }
            Op::CopyCursor { to, from } => self.cursors[to.index()] = self.cursors[from.index()],
            Op::NamedBarrierSync(id) => self.steps.push(Step::NamedBarrierSync(id.index())),
            Op::NamedBarrierArrive(id) => self.steps.push(Step::NamedBarrierArrive(id.index())),
            Op::Copy { .. } | Op::WgmmaInit(_) | Op::Timestamp(_) => {}
        }
    }

    fn mma(&mut self, to: VariableId, left: &Operand, right: &Operand) {
        let result = self.group.variables.get(to.index()).map(|v| v.shape.clone()).unwrap_or_default();
        let [rows, columns] = [0, 1].map(|d| result.get(d).copied().unwrap_or(1) as f64);
        let Operand::Shared(right) = right else {
            self.unknown = true;
            return;
        };
        let Some(buffer) = self.program.buffers.get(right.buffer.index()) else { return };
        let bits = buffer.element.scalar_bits().unwrap_or(16);
        let right_bytes = self.costs.bytes(right);
        let depth = right_bytes * 8.0 / f64::from(bits) / columns;
        let rate = self.costs.timing.mma_flop * 16.0 / f64::from(bits.max(1));
        let cycles = 2.0 * rows * columns * depth / rate;
        let instructions = (rows / 64.0).ceil() * (columns / 256.0).ceil() * (depth * f64::from(bits) / 256.0).ceil();
        let left_bytes = match left {
            Operand::Shared(_) => rows * depth * f64::from(bits) / 8.0 * (columns / 256.0).ceil(),
            Operand::Registers(_) => 0.0,
        };
        let shared_bytes = right_bytes * (rows / 64.0).ceil() + left_bytes;
        self.steps.push(Step::Mma { cycles, instructions, shared_bytes });
    }
}
