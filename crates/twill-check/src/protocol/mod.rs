//! Proves that the barriers of generated code suffice in every order in which warp groups and asynchronous units work.
//!
//! [`verify`] takes a [`System`] and shows that nothing can go wrong, or gives the shortest way to something that does:
//! a [`Counterexample`]. `docs/codegen.md` says what is checked, and what is not.
//!
//! # Method
//!
//! 1. Trip counts are fixed to those that stand for all (`cases.rs` says why they do), so that every process becomes a
//!    list of operations (`unrolled.rs`); what an operation or the end of an asynchronous operation does, and what must not
//!    happen, is in one place (`machine.rs`).
//! 2. One run with vector clocks proves all interleavings of a case at once, if the order that matters is forced
//!    (`order.rs` says what is demanded and why that is enough). Correct programs pass here, in time linear in their length.
//! 3. What is not proved is searched breadth first through all interleavings (`search.rs`). So a counterexample is a run
//!    that the machine has made, never a suspicion, and it is the shortest for the smallest trip counts that have one.
//!    Where the search finds none and has seen all, the case holds, too. Where it does not get through, a run that
//!    follows the gap in the proof may still be a counterexample, then not the shortest; or there is no verdict.
//!
//! ```
//! use twill_check::protocol::{Access, Buffer, BufferId, Event, Iteration, Limits, Node, Process, System, Tag, verify};
//!
//! let tile = Access { buffer: BufferId(0), at: None, value: Tag { value: 0, iteration: Iteration::Absolute(0) } };
//! let process = |name: &str, body: Vec<Event>| {
//!     Process { name: name.into(), cursors: vec![], body: body.into_iter().map(Node::Do).collect() }
//! };
//! let mut system = System {
//!     buffers: vec![Buffer { name: "tile".into(), slots: 1 }],
//!     processes: vec![process("softmax", vec![Event::Write(tile), Event::Fence, Event::Store(tile), Event::StoreWait(0)])],
//!     ..System::default()
//! };
//! let verified = verify(&system, &Limits::default()).unwrap();
//! assert_eq!(verified.proof().searched, 0);
//!
//! system.processes.push(process("reader", vec![Event::Read(tile)]));
//! let error = verify(&system, &Limits::default()).unwrap_err();
//! assert!(error.to_string().starts_with("softmax writes tile and reader reads it, in no order"), "{error}");
//! ```

mod access;
mod cases;
mod clock;
mod counterexample;
mod error;
mod fault;
mod limits;
mod machine;
mod mutants;
mod order;
mod replay;
mod search;
mod structure;
mod system;
mod unrolled;
mod uses;
mod verify;
mod witness;
mod wording;

pub use counterexample::{Counterexample, Moment};
pub use error::ProtocolError;
pub use fault::FaultKind;
pub use limits::Limits;
#[doc(hidden)]
pub use mutants::{Mutant, Mutation, mutants};
pub use system::{
    Access, BarrierArray, BarrierId, Buffer, BufferId, Cursor, CursorId, Event, Iteration, LoopId, NamedBarrier,
    NamedBarrierId, Node, Process, System, Tag,
};
pub use verify::{Proof, VerifiedSystem, verify};
#[doc(hidden)]
pub use verify::{explore, try_at_random};
