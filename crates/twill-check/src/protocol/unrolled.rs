//! One case of a system: trip counts are fixed, so that every process is a list of operations.

use super::cases::Case;
use super::error::ProtocolError;
use super::system::{Access, BarrierId, BufferId, CursorId, Event, Iteration, LoopId, Node, Process, System, Tag};
use std::collections::HashMap;
use twill_graph::saturate;

/// A value of one iteration of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    pub(super) value: u32,
    pub(super) iteration: i64,
    pub(super) tile: usize,
}

/// A slot, and the value that is stored or expected there. Values count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotAccess {
    pub(super) slot: usize,
    pub(super) value: u16,
}

/// An event whose slots, phases and iterations are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProtocolOp {
    /// Until this many phases are complete; the hardware looks at the parity alone.
    Wait {
        barrier: usize,
        target: u32,
    },
    Arrive {
        barrier: usize,
    },
    /// `id` is a position in [`UnrolledSystem::loads`].
    Load {
        id: u16,
        writes: SlotAccess,
        barrier: usize,
        by_unit: bool,
    },
    Mma {
        reads: Vec<SlotAccess>,
        writes: Vec<SlotAccess>,
        signals: Vec<usize>,
    },
    MmaWait(u32),
    Write(SlotAccess),
    Read(SlotAccess),
    Fence,
    Store(SlotAccess),
    StoreWait(u32),
    NamedBarrierSync(usize),
    NamedBarrierArrive(usize),
}

impl ProtocolOp {
    /// The slots that are read, from now on.
    pub(super) fn reads(&self) -> &[SlotAccess] {
        match self {
            ProtocolOp::Mma { reads, .. } => reads,
            ProtocolOp::Read(access) | ProtocolOp::Store(access) => std::slice::from_ref(access),
            _ => &[],
        }
    }

    /// The slots that are written, from now on.
    pub(super) fn writes(&self) -> &[SlotAccess] {
        match self {
            ProtocolOp::Mma { writes, .. } => writes,
            ProtocolOp::Load { writes, .. } => std::slice::from_ref(writes),
            ProtocolOp::Write(access) => std::slice::from_ref(access),
            _ => &[],
        }
    }
}

/// A system with fixed trip counts, its loops unrolled.
#[derive(Debug)]
pub(super) struct UnrolledSystem<'a> {
    pub(super) system: &'a System,
    pub(super) case: &'a Case,
    /// The operations of each process.
    pub(super) ops: Vec<Vec<ProtocolOp>>,
    /// Positions of each process's MMAs in its operations.
    pub(super) mmas: Vec<Vec<usize>>,
    /// Positions of each process's stores.
    pub(super) stores: Vec<Vec<usize>>,
    /// Process and position of each load.
    pub(super) loads: Vec<(usize, usize)>,
    /// Single barriers: array and slot.
    pub(super) barriers: Vec<(BarrierId, u32)>,
    /// Single slots: buffer and slot.
    pub(super) slots: Vec<(BufferId, u32)>,
    /// Value 1 is the first.
    pub(super) values: Vec<Value>,
}

impl<'a> UnrolledSystem<'a> {
    /// # Errors
    /// More events than allowed.
    pub(super) fn new(system: &'a System, case: &'a Case, limit: usize) -> Result<UnrolledSystem<'a>, ProtocolError> {
        let numbered = |slots: &mut dyn Iterator<Item = u32>| -> Vec<(u32, u32)> {
            (0u32..).zip(slots).flat_map(|(id, count)| (0..count).map(move |slot| (id, slot))).collect()
        };
        let barriers = numbered(&mut system.barriers.iter().map(|b| b.slots));
        let slots = numbered(&mut system.buffers.iter().map(|b| b.slots));
        let mut writer = Writer {
            case,
            limit: limit.min(60_000),
            first_barrier: firsts(&mut system.barriers.iter().map(|b| b.slots)),
            first_slot: firsts(&mut system.buffers.iter().map(|b| b.slots)),
            tile: 0,
            loop_variable: 0,
            cursors: Vec::new(),
            slots_of: Vec::new(),
            ops: Vec::new(),
            written: 0,
            process: 0,
            loads: Vec::new(),
            values: Vec::new(),
            numbers: HashMap::new(),
        };
        let ops: Vec<Vec<ProtocolOp>> =
            system.processes.iter().enumerate().map(|(p, process)| writer.process(p, process)).collect();
        if writer.written > writer.limit {
            return Err(ProtocolError::TooLarge { events: writer.written, limit: writer.limit });
        }
        let positions = |wanted: fn(&ProtocolOp) -> bool| -> Vec<Vec<usize>> {
            let of = |list: &Vec<ProtocolOp>| (0..list.len()).filter(|&at| wanted(&list[at])).collect();
            ops.iter().map(of).collect()
        };
        Ok(UnrolledSystem {
            system,
            case,
            mmas: positions(|a| matches!(a, ProtocolOp::Mma { .. })),
            stores: positions(|a| matches!(a, ProtocolOp::Store(_))),
            ops,
            loads: writer.loads,
            barriers: barriers.into_iter().map(|(id, slot)| (BarrierId(id), slot)).collect(),
            slots: slots.into_iter().map(|(id, slot)| (BufferId(id), slot)).collect(),
            values: writer.values,
        })
    }

    /// Events of all processes together.
    pub(super) fn length(&self) -> usize {
        self.ops.iter().map(Vec::len).sum()
    }

    /// Arrivals that complete a phase.
    pub(super) fn arrivals(&self, barrier: usize) -> usize {
        self.system.barriers[self.barriers[barrier].0.index()].arrivals as usize
    }
}

/// Where each list begins when all are concatenated.
fn firsts(counts: &mut dyn Iterator<Item = u32>) -> Vec<usize> {
    counts
        .scan(0, |sum, count| {
            let first = *sum;
            *sum += count as usize;
            Some(first)
        })
        .collect()
}

struct Writer<'a> {
    case: &'a Case,
    limit: usize,
    first_barrier: Vec<usize>,
    first_slot: Vec<usize>,
    tile: usize,
    loop_variable: u32,
    /// Slot, and how often it has come round.
    cursors: Vec<(u32, u32)>,
    slots_of: Vec<u32>,
    ops: Vec<ProtocolOp>,
    written: usize,
    process: usize,
    loads: Vec<(usize, usize)>,
    values: Vec<Value>,
    numbers: HashMap<Value, u16>,
}

impl Writer<'_> {
    fn process(&mut self, p: usize, process: &Process) -> Vec<ProtocolOp> {
        self.process = p;
        self.tile = 0;
        self.cursors = vec![(0, 0); process.cursors.len()];
        self.slots_of = process.cursors.iter().map(|c| c.slots).collect();
        self.nodes(&process.body);
        std::mem::take(&mut self.ops)
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            if self.written > self.limit {
                return;
            }
            match node {
                Node::Do(event) => self.event(event),
                Node::Loop { trips, first, body } => {
                    let outer = self.loop_variable;
                    for i in *first..self.trips(*trips) {
                        self.loop_variable = i;
                        self.nodes(body);
                    }
                    self.loop_variable = outer;
                }
                Node::When { trips, at_least, at_most, body } => {
                    let count = self.trips(*trips);
                    if *at_least <= count && at_most.is_none_or(|most| count <= most) {
                        self.nodes(body);
                    }
                }
                Node::Tiles(body) => {
                    for tile in 0..self.case.tiles.len() {
                        self.tile = tile;
                        self.nodes(body);
                    }
                    self.tile = 0;
                }
            }
        }
    }

    fn trips(&self, id: LoopId) -> u32 {
        self.case.tiles[self.tile][id.index()]
    }

    fn event(&mut self, event: &Event) {
        let op = match event {
            Event::Advance(cursor) => {
                let (slot, round) = &mut self.cursors[cursor.index()];
                *slot += 1;
                if *slot == self.slots_of[cursor.index()] {
                    (*slot, *round) = (0, *round + 1);
                }
                return;
            }
            Event::CopyCursor { to, from } => {
                self.cursors[to.index()] = self.cursors[from.index()];
                return;
            }
            Event::Wait { barrier, at, previous } => ProtocolOp::Wait {
                barrier: self.barrier(*barrier, *at),
                target: self.cursors[at.index()].1 + u32::from(!previous),
            },
            Event::Arrive { barrier, at } => ProtocolOp::Arrive { barrier: self.barrier(*barrier, *at) },
            Event::Load { writes, barrier, at, by_unit } => {
                let (writes, barrier) = (self.slot_access(writes), self.barrier(*barrier, *at));
                self.loads.push((self.process, self.ops.len()));
                ProtocolOp::Load { id: number(self.loads.len() - 1), writes, barrier, by_unit: *by_unit }
            }
            Event::Mma { reads, writes, signals } => ProtocolOp::Mma {
                reads: reads.iter().map(|access| self.slot_access(access)).collect(),
                writes: writes.iter().map(|access| self.slot_access(access)).collect(),
                signals: signals.iter().map(|&(barrier, at)| self.barrier(barrier, at)).collect(),
            },
            Event::MmaWait(count) => ProtocolOp::MmaWait(*count),
            Event::Write(access) => ProtocolOp::Write(self.slot_access(access)),
            Event::Read(access) => ProtocolOp::Read(self.slot_access(access)),
            Event::Fence => ProtocolOp::Fence,
            Event::Store(access) => ProtocolOp::Store(self.slot_access(access)),
            Event::StoreWait(count) => ProtocolOp::StoreWait(*count),
            Event::NamedBarrierSync(barrier) => ProtocolOp::NamedBarrierSync(barrier.index()),
            Event::NamedBarrierArrive(barrier) => ProtocolOp::NamedBarrierArrive(barrier.index()),
        };
        self.written += 1 + op.reads().len() + op.writes().len();
        self.ops.push(op);
    }

    fn barrier(&self, barrier: BarrierId, at: CursorId) -> usize {
        self.first_barrier[barrier.index()] + self.cursors[at.index()].0 as usize
    }

    fn slot_access(&mut self, access: &Access) -> SlotAccess {
        let slot = access.at.map_or(0, |at| self.cursors[at.index()].0);
        SlotAccess { slot: self.first_slot[access.buffer.index()] + slot as usize, value: self.value(access.value) }
    }

    fn value(&mut self, tag: Tag) -> u16 {
        let iteration = match tag.iteration {
            Iteration::Absolute(i) => i,
            Iteration::Current(plus) => i64::from(self.loop_variable) + plus,
            Iteration::End(id, plus) => i64::from(self.trips(id)) + plus,
        };
        let value = Value { value: tag.value, iteration, tile: self.tile };
        if let Some(&known) = self.numbers.get(&value) {
            return known;
        }
        self.values.push(value);
        let new = number(self.values.len());
        self.numbers.insert(value, new);
        new
    }
}

/// Numbers of one case stay below 60000, since each takes an event or an access, which are counted.
fn number(count: usize) -> u16 {
    saturate::<u16>(count)
}
