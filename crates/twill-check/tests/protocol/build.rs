//! Systems in few words.

use twill_check::protocol::{
    Access, BarrierArray, BarrierId, Buffer, BufferId, Cursor, CursorId, Event, Iteration, LoopId, NamedBarrier,
    NamedBarrierId, Node, Process, System, Tag,
};

pub use Iteration::{Absolute, Current, End};

/// A system that gets its parts one by one.
#[derive(Default)]
pub struct Builder(pub System);

impl Builder {
    pub fn buffer(&mut self, name: &str, slots: u32) -> BufferId {
        self.0.buffers.push(Buffer { name: name.into(), slots });
        BufferId(self.0.buffers.len() as u32 - 1)
    }

    pub fn barrier(&mut self, name: &str, slots: u32, arrivals: u32) -> BarrierId {
        self.0.barriers.push(BarrierArray { name: name.into(), slots, arrivals });
        BarrierId(self.0.barriers.len() as u32 - 1)
    }

    pub fn named(&mut self, name: &str, participants: u32) -> NamedBarrierId {
        self.0.named_barriers.push(NamedBarrier { name: name.into(), participants });
        NamedBarrierId(self.0.named_barriers.len() as u32 - 1)
    }

    pub fn trips(&mut self, name: &str) -> LoopId {
        self.0.loops.push(name.into());
        LoopId(self.0.loops.len() as u32 - 1)
    }

    /// A process whose cursors have these names and slots.
    pub fn process(&mut self, name: &str, cursors: &[(&str, u32)], body: Vec<Node>) {
        let cursors = cursors.iter().map(|&(name, slots)| Cursor { name: name.into(), slots }).collect();
        self.0.processes.push(Process { name: name.into(), cursors, body });
    }
}

pub fn at(cursor: u32) -> CursorId {
    CursorId(cursor)
}

/// A value of an iteration in the slot of a cursor.
pub fn access(buffer: BufferId, cursor: u32, value: u32, iteration: Iteration) -> Access {
    Access { buffer, at: Some(at(cursor)), value: Tag { value, iteration } }
}

/// The same in the only slot.
pub fn only(buffer: BufferId, value: u32, iteration: Iteration) -> Access {
    Access { buffer, at: None, value: Tag { value, iteration } }
}

pub fn wait(barrier: BarrierId, cursor: u32) -> Node {
    Node::Do(Event::Wait { barrier, at: at(cursor), previous: false })
}

pub fn wait_previous(barrier: BarrierId, cursor: u32) -> Node {
    Node::Do(Event::Wait { barrier, at: at(cursor), previous: true })
}

pub fn arrive(barrier: BarrierId, cursor: u32) -> Node {
    Node::Do(Event::Arrive { barrier, at: at(cursor) })
}

pub fn load(writes: Access, barrier: BarrierId, cursor: u32) -> Node {
    Node::Do(Event::Load { writes, barrier, at: at(cursor), by_unit: true })
}

pub fn mma(reads: &[Access]) -> Node {
    Node::Do(Event::Mma { reads: reads.to_vec(), writes: vec![], signals: vec![] })
}

pub fn wgmma_wait_group(most: u32) -> Node {
    Node::Do(Event::MmaWait(most))
}

pub fn write(access: Access) -> Node {
    Node::Do(Event::Write(access))
}

pub fn read(access: Access) -> Node {
    Node::Do(Event::Read(access))
}

pub fn fence() -> Node {
    Node::Do(Event::Fence)
}

pub fn store(access: Access) -> Node {
    Node::Do(Event::Store(access))
}

pub fn wait_stores(most: u32) -> Node {
    Node::Do(Event::StoreWait(most))
}

pub fn named_barrier_sync(named: NamedBarrierId) -> Node {
    Node::Do(Event::NamedBarrierSync(named))
}

pub fn named_barrier_arrive(named: NamedBarrierId) -> Node {
    Node::Do(Event::NamedBarrierArrive(named))
}

pub fn advance(cursor: u32) -> Node {
    Node::Do(Event::Advance(at(cursor)))
}

pub fn copy_cursor(to: u32, from: u32) -> Node {
    Node::Do(Event::CopyCursor { to: at(to), from: at(from) })
}

/// `for i in first..trips`.
pub fn each(trips: LoopId, first: u32, body: Vec<Node>) -> Node {
    Node::Loop { trips, first, body }
}

/// `if trips >= 1`.
pub fn if_any(trips: LoopId, body: Vec<Node>) -> Node {
    Node::When { trips, at_least: 1, at_most: None, body }
}
