//! Registers and memories over the cycles of the steady state (docs/model.md, "Live values, folded"). This is what is live,
//! for every model variant.

use crate::liveness::{Life, MemorySpace, lives, ring, steady};
use serde::Serialize;
use twill_graph::saturate;
use twill_graph::{Cycles, GroupRole, Problem, Schedule};

const WARP_THREADS: u64 = 32;

/// Registers of a warp group over the steady state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupRegisters {
    /// Id of the group.
    pub group: usize,
    /// Where it changes, from cycle 0 to below I, and how many words a thread keeps from there on.
    pub live: Vec<(i64, u64)>,
    /// Registers a thread that are kept for addresses and the like.
    pub reserve: u32,
    /// Registers that a thread is given.
    pub granted: u32,
    /// Most registers that a thread can have.
    pub limit: u32,
}

/// A memory over the steady state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Which.
    pub memory: MemoryKind,
    /// In what amounts are counted.
    pub unit: Unit,
    /// All of it.
    pub capacity: u64,
    /// The storage outside the loop's pipeline.
    pub reserved: u64,
    /// Where it changes, from cycle 0 to below I, and how much is in use from there on: rings and reserve included.
    pub live: Vec<(i64, u64)>,
    /// Its contents.
    pub buffers: Vec<Buffer>,
}

/// Memories that hold tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Shared memory.
    SharedMemory,
    /// Tensor memory.
    TensorMemory,
}

/// The unit of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Columns of tensor memory.
    Columns,
}

/// A result in a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// The operation whose result it is.
    pub operation: String,
    /// Size of one copy.
    pub amount: u64,
    /// Copies that are live at once at most.
    pub slots: u64,
    /// Cycle of its own iteration from which a copy is taken. Of a ring before the load issues, perhaps below 0: the load runs
    /// ahead.
    pub start: i64,
    /// Cycle of its own iteration up to which a copy is taken; may lie beyond I.
    pub end: i64,
    /// True if it is the ring of a streaming load, all slots of which are there all the time.
    pub ring: bool,
}

/// Registers of each group in use.
pub(super) fn registers(problem: &Problem, schedule: &Schedule) -> Vec<GroupRegisters> {
    let file = &problem.resources().registers;
    let one = |group: &twill_graph::WarpGroup| {
        let threads = WARP_THREADS * u64::from(group.warps.max(1));
        let lives = lives(problem, schedule, MemorySpace::Registers(group.id));
        let mut live = steady(&lives, schedule.interval);
        live.iter_mut().for_each(|(_, words)| *words = words.div_ceil(threads));
        live.dedup_by_key(|(_, words)| *words);
        GroupRegisters {
            group: group.id.index(),
            live,
            reserve: if group.role == GroupRole::Compute { file.reserve_per_thread } else { 0 },
            granted: group.registers_per_thread,
            limit: file.maximum_per_thread,
        }
    };
    schedule.groups.iter().map(one).collect()
}

/// Shared memory; tensor memory where there is any.
pub(super) fn memories(problem: &Problem, schedule: &Schedule) -> Vec<Memory> {
    let (resources, reserved) = (problem.resources(), problem.graph().reserved());
    let rings =
        schedule.rings.iter().map(|r| buffer(problem, schedule.interval, &ring(problem, schedule, r), Some(r.depth)));
    let shared = Memory {
        memory: MemoryKind::SharedMemory,
        unit: Unit::Bytes,
        capacity: resources.shared_memory.0,
        reserved: reserved.shared.0,
        live: Vec::new(),
        buffers: rings.collect(),
    };
    let tensor = Memory {
        memory: MemoryKind::TensorMemory,
        unit: Unit::Columns,
        capacity: resources.tensor_memory.0,
        reserved: reserved.tensor.0,
        live: Vec::new(),
        buffers: Vec::new(),
    };
    let filled = |mut memory: Memory, space: MemorySpace| {
        let lives = lives(problem, schedule, space);
        let rings = memory.buffers.iter().map(|b| b.amount.saturating_mul(b.slots));
        let always = rings.fold(memory.reserved, u64::saturating_add);
        memory.live = steady(&lives, schedule.interval);
        memory.live.iter_mut().for_each(|(_, amount)| *amount = amount.saturating_add(always));
        memory.buffers.extend(lives.iter().map(|life| buffer(problem, schedule.interval, life, None)));
        memory
    };
    let shared = filled(shared, MemorySpace::Shared);
    let tensor = filled(tensor, MemorySpace::Tensor);
    let has_tensor = tensor.capacity > 0 || !tensor.buffers.is_empty();
    std::iter::once(shared).chain(Some(tensor).filter(|_| has_tensor)).collect()
}

/// A result; `depth` is that of a ring.
fn buffer(problem: &Problem, interval: Cycles, life: &Life, depth: Option<u32>) -> Buffer {
    let taken = Cycles(life.end - life.start).div_ceil(interval);
    Buffer {
        operation: problem.graph().operation(life.operation).name.clone(),
        amount: life.amount,
        slots: depth.map_or_else(|| saturate::<u64>(taken), u64::from),
        start: life.start,
        end: life.end,
        ring: depth.is_some(),
    }
}
