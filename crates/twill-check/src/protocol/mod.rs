//! Are the barriers of generated code enough, and none too many?

mod system;

pub use system::{
    Access, BarrierArray, BarrierId, Buffer, BufferId, Cursor, CursorId, Event, Iteration, LoopId, NamedBarrier,
    NamedBarrierId, Node, Process, System, Tag,
};
